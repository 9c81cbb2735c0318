"""Label shift: Bayes' rule by hand, as a null hypothesis, and what is refused."""

import numpy as np
import pytest

import caltest
from caltest.resampling import LabelShift
from tests.reference.cases import check_refused


def test_it_is_the_rule_of_bayes():
    """Densities of two inputs given three classes, with frequencies of two populations."""
    density = np.array([[0.2, 0.5, 0.9], [0.8, 0.5, 0.1]])
    trained, now = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.1, 0.8])
    before, after = (density * share / (density @ share)[:, None] for share in (trained, now))
    assert LabelShift(now, trained)(before) == pytest.approx(after, rel=1e-12)
    assert LabelShift(trained, now)(after) == pytest.approx(before, rel=1e-12)
    assert LabelShift(trained, trained)(before) == pytest.approx(before, rel=1e-12)


def test_two_classes_have_the_frequency_of_the_event():
    prob = np.array([[0.3, 0.7]])
    assert LabelShift(0.2, 0.5)(prob) == pytest.approx(LabelShift([0.8, 0.2], [0.5, 0.5])(prob))
    assert LabelShift(0.2, 0.5) == LabelShift([0.8, 0.2], (0.5, 0.5))


def test_a_model_that_was_calibrated_elsewhere_is_not_rejected():
    """Cases are drawn from a population with 40 % events, for which the model is right, so that there are 10 %."""
    rng = np.random.default_rng(0)
    prob = rng.beta(2, 3, 40_000)
    event = rng.random(40_000) < prob
    kept = ~event | (rng.random(40_000) < 1 / 6)
    y_true, y_prob = event[kept].astype(int)[:4_000], prob[kept][:4_000]
    now, trained = 0.4 / 6 / (0.4 / 6 + 0.6), 0.4
    options = {"statistic": caltest.ECE(), "n_resamples": 199, "rng": 0}
    null = caltest.Consistency(calibration_function=LabelShift(now, trained))
    result = caltest.calibration_test(y_true, y_prob, resampling=null, **options)
    assert result.pvalue > 0.05
    assert "LabelShift(" in str(result)
    assert "Of the predictions as they are, the l2 calibration error is" in " ".join(str(result).split())
    assert caltest.calibration_test(y_true, y_prob, **options).pvalue < 1e-9


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: LabelShift("many", 0.5), TypeError, "`now` must be frequencies of classes that sum to 1, or that of"),
        (lambda: LabelShift([0.5, 0.6], 0.5), ValueError, "`now` must be frequencies of classes that sum to 1, or"),
        (lambda: LabelShift(0.5, 1.5), ValueError, "`trained` must be frequencies of classes that sum to 1, or that"),
        (lambda: LabelShift(0.5, -0.5), ValueError, "`trained` must be frequencies of classes that sum to 1, or that"),
        (lambda: LabelShift(0.5, 1.0), ValueError, "`trained` must be positive for every class, got [0.0, 1.0]."),
        (lambda: LabelShift([1.0], 0.5), ValueError, "`now` must be frequencies of classes that sum to 1, or that of"),
        (
            lambda: LabelShift([0.2, 0.3, 0.5], 0.5),
            ValueError,
            "`now` and `trained` must have as many classes, got 3 and 2.",
        ),
        (
            lambda: LabelShift(0.5, 0.5)(np.full((1, 3), 1 / 3)),
            ValueError,
            "`LabelShift` has 2 classes, and the predictions 3.",
        ),
        (
            lambda: LabelShift(0.0, 0.5)(np.array([[0.0, 1.0]])),
            ValueError,
            "`LabelShift` leaves no class possible for the prediction [[0.0, 1.0]].",
        ),
    ],
)
def test_refusals(make, kind, message):
    check_refused(make, kind, message)
