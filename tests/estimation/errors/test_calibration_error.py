"""The plain estimate is the value of its statistic; the statistics have tests of their own."""

import numpy as np
import pytest

import caltest as ct
from tests.reference.examples import draw_labels


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    prob = rng.dirichlet(np.ones(3), 80)
    return draw_labels(prob, rng), prob


def test_it_is_the_statistic_of_the_test(problem):
    for statistic in (ct.ECE(), ct.MCE(ct.EqualWidth(3)), ct.KS(), ct.SKCE()):
        error = ct.calibration_error(*problem, statistic=statistic)
        assert isinstance(error, float)
        assert error == ct.calibration_test(*problem, statistic=statistic, n_resamples=9, rng=0).statistic, statistic


def test_defaults(problem):
    """ECE of the whole prediction; of the confidence where the statistic needs two outcomes."""
    assert ct.calibration_error(*problem) == ct.calibration_error(*problem, lens=ct.Canonical(), statistic=ct.ECE())
    of_confidence = ct.calibration_error(*problem, lens=ct.Confidence(), statistic=ct.KS())
    assert ct.calibration_error(*problem, statistic=ct.KS()) == of_confidence


def test_weights_regions_and_names(problem):
    y, prob = problem
    weight = (np.arange(80) < 40).astype(float)
    assert ct.calibration_error(y, prob, lens=ct.ClassWise(0), sample_weight=weight, statistic=ct.KS()) == (
        pytest.approx(ct.calibration_error(y[:40], prob[:40], lens=ct.ClassWise(0), statistic=ct.KS()))
    )
    inside = prob[:, 0] > 0.4
    assert ct.calibration_error(y, prob, region=lambda p: p[:, 0] > 0.4) == ct.calibration_error(
        y[inside], prob[inside]
    )
    named = ct.calibration_error(np.array(list("abc"))[y], prob, classes=list("abc"))
    assert named == ct.calibration_error(y, prob)


def test_refusals(problem):
    for error, options, message in (
        (TypeError, {"statistic": 3}, "`statistic` must be a statistic"),
        (ValueError, {"statistic": ct.Omnibus()}, "`Omnibus` combines tests and estimates no error"),
        (ValueError, {"statistic": ct.KS(), "lens": ct.Canonical()}, "`KS` needs a two-outcome lens"),
        (ValueError, {"region": lambda p: p[:, 0] > 2}, "`region` must hold at least one"),
        (ValueError, {"sample_weight": [1.0]}, r"`sample_weight` must have shape \(80,\)"),
    ):
        with pytest.raises(error, match=message):
            ct.calibration_error(*problem, **options)
