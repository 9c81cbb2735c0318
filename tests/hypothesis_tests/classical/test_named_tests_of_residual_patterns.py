"""The tests of Stukel, of Osius and Rojek, and of le Cessie and van Houwelingen."""

import numpy as np
import pytest

import caltest
from caltest.hypothesis_tests import le_cessie_test, osius_rojek_test, stukel_test
from caltest.statistics import LeCessie, OsiusRojek, Stukel
from tests.reference.cases import check_refused

TESTS = {stukel_test: Stukel(), osius_rojek_test: OsiusRojek(), le_cessie_test: LeCessie()}


def problem(n=300, slope=1.0):
    rng = np.random.default_rng(0)
    logit = rng.normal(-0.5, 1.2, n)
    return (rng.random(n) < 1 / (1 + np.exp(-slope * logit))).astype(int), 1 / (1 + np.exp(-logit))


@pytest.mark.parametrize("test", TESTS)
def test_it_is_the_test_of_its_statistic(test):
    y, p = problem()
    for method in ("monte-carlo", "asymptotic"):
        options = {"n_resamples": 199, "rng": 0, "method": method}
        statistic, pvalue = test(y, p, **options)
        same = caltest.calibration_test(y, p, statistic=TESTS[test], **options)
        assert (abs(statistic), pvalue) == (same.statistic, same.pvalue)
    assert test(y, p, n_resamples=99, rng=0).test_statistic == TESTS[test]


def test_signs_and_parts():
    y, p = problem(3_000, 0.5)  # predictions are too extreme
    extreme = stukel_test(y, p, method="asymptotic")
    assert extreme.below_half > 2
    assert extreme.above_half < -2
    assert extreme.statistic == pytest.approx(extreme.below_half**2 + extreme.above_half**2)
    pearson = osius_rojek_test(y, p, method="asymptotic")
    assert pearson.statistic > 2
    assert pearson.n_patterns == 3_000
    assert pearson.chi_square > 3_000
    assert osius_rojek_test(*problem(3_000, 2.0), method="asymptotic").statistic < -2
    assert "3,000 are expected" in str(pearson)


@pytest.mark.parametrize("test", TESTS)
def test_refusals(test):
    y, p = problem()
    check_refused(lambda: test(y, p, method="exact"), ValueError, "`method` must be one of 'monte-carlo', 'asymptotic'")
    three = np.full((300, 3), 1 / 3)
    assert test(np.arange(300) % 3, three, n_resamples=19, rng=0).lens_name == "confidence"


def test_a_limit_that_does_not_hold_is_refused_with_its_reason():
    """The refusal named other statistics, as if the limit were not known; here few values of predictions decide."""
    y = np.arange(300) % 3 == 0
    rounded = np.repeat([0.2, 0.3, 0.4], 100)
    with pytest.raises(ValueError, match="needs many different predictions, of which no few near 0 or 1 decide"):
        caltest.hypothesis_tests.osius_rojek_test(y, rounded, method="asymptotic")
