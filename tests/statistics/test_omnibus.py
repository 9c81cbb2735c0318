"""The default test: which parts it takes."""

import pytest

import caltest
from tests.reference.cases import check_refused


def test_parts():
    assert caltest.Omnibus().parts == (caltest.ECE(), caltest.TemperatureScore(), caltest.ClasswiseKS())
    several = [caltest.ECE(), caltest.MCE()]
    for parts in (several, tuple(several), iter(several)):
        omnibus = caltest.Omnibus(parts)
        assert omnibus.components == omnibus.parts == tuple(several)
    assert repr(omnibus) == "Omnibus(parts=[ECE(), MCE()])"


def test_bad_parts_are_refused():
    few = "`parts` must be at least two statistics other than combinations such as Omnibus, got"
    for parts in ((), (caltest.ECE(),), (caltest.ECE(), caltest.Omnibus()), (caltest.ECE(), caltest.TCal())):
        check_refused(caltest.Omnibus, ValueError, f"{few} {parts!r}.", parts)
    for parts in (3, caltest.ECE(), (caltest.ECE(), "KS"), "KS", (caltest.ECE(), caltest.KS)):
        message = f"`parts` must be statistics such as (ECE(), ClasswiseKS()), got {parts!r}."
        check_refused(caltest.Omnibus, TypeError, message, parts)


def test_a_combination_estimates_nothing():
    message = r"combines tests and estimates no error; use calibration_test, or ECE\(\) to estimate"
    for statistic in (caltest.Omnibus(), caltest.TCal()):
        for function in (caltest.calibration_error, caltest.bootstrap_interval):
            with pytest.raises(ValueError, match=f"`{type(statistic).__name__}` {message}"):
                function([0, 1], [0.25, 0.75], statistic=statistic)
        with pytest.raises(ValueError, match=message):
            statistic.evaluate(None, None)
