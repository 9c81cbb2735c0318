"""The calibration slope, as users ask for it: words and odd data."""

import math

import numpy as np
import pytest
from scipy.special import expit

from caltest.estimation import brier_score, calibration_in_the_large, calibration_slope
from tests.reference.val_prob import breast_cancer, cat, digit_8
from tests.results.printed import printed


def problem(slope, n=400, seed=0):
    rng = np.random.default_rng(seed)
    logit = rng.normal(-1, 1.5, n)
    return (rng.random(n) < expit(slope * logit)).astype(int), expit(logit)


@pytest.mark.parametrize(
    ("slope", "words", "direction"),
    [
        (0.5, "Predicted risks are too extreme: differences between low and high risks are overstated", "too extreme"),
        (2.0, "Predicted risks are not extreme enough: differences between low and high", "not extreme enough"),
        (1.0, "No wrong slope is found", None),
        (-1.0, "The event is less frequent where it is predicted to be more frequent", "too extreme"),
    ],
)
def test_it_says_what_is_wrong_and_what_is_not(slope, words, direction):
    found = calibration_slope(*problem(slope))
    assert found.conclusion.startswith(words)
    assert found.direction == direction
    assert found.verdict.decision == ("not rejected" if direction is None else "rejected")
    assert "intercept (with this slope)" in printed(found)


def test_the_complement_is_mirrored():
    y, prob = problem(0.7)
    for design in ({}, {"groups": np.arange(400) // 5}, {"sample_weight": np.linspace(1, 3, 400)}):
        slope = calibration_slope(y, prob, **design)
        mirrored = calibration_slope(1 - y, 1 - prob, **design)
        assert mirrored.estimate == pytest.approx(slope.estimate, rel=1e-8)
        assert mirrored.intercept == pytest.approx(-slope.intercept, rel=1e-8)
        assert list(mirrored.confidence_interval) == pytest.approx(list(slope.confidence_interval), rel=1e-6)
        assert mirrored.pvalue == pytest.approx(slope.pvalue, rel=1e-5)


def test_weights_of_one_and_groups_of_one_change_nothing():
    y, prob = problem(0.7)
    plain = calibration_slope(y, prob)
    for design in ({"sample_weight": np.full(400, 3.0)}, {"groups": np.arange(400)}):
        assert calibration_slope(y, prob, **design).to_dict() == plain.to_dict()


def test_separated_labels_have_one_end_and_a_reason():
    found = calibration_slope([0] * 20 + [1] * 20, np.linspace(0.1, 0.9, 40))
    assert (found.estimate, found.confidence_interval.high, found.decision) == (math.inf, math.inf, "rejected")
    assert "95 % interval above 3.7" in found.conclusion
    assert "no finite slope" in found.conclusion
    assert found.to_dict()["estimate"] is None


def test_what_has_no_slope_says_why():
    found = calibration_slope([1, 0, 1], [0.2, 0.5, 0.9])
    assert found.conclusion.startswith("There is no slope: it takes at least 5 events")
    assert found.verdict.decision == "undecidable"
    assert (found.decision, found.pvalue, found.to_dict()["confidence_interval"]["low"]) == ("undecidable", 1.0, None)


def test_predictions_of_0_and_1_do_not_count():
    y, prob = problem(0.7)
    found = calibration_slope(np.r_[y, 0, 1, 1], np.r_[prob, 0.0, 1.0, 0.0])
    assert found.confidence_interval == calibration_slope(y, prob).confidence_interval
    assert [note.code for note in found.notes] == ["C201", "C501"]


@pytest.mark.slow(few_draws=True)
def test_odd_predictions_have_numbers_or_reasons():
    """Ties, three decimals, half zero, one-hot, rare events, one and two observations, extreme logits."""
    rng = np.random.default_rng(0)
    p = expit(rng.normal(-1, 2, 300))
    kinds = [np.round(p, 3), np.round(p, 1), np.where(p < 0.3, 0.0, p), np.round(p), p / 1_000, p**60, 1 - p**60]
    for prob in [*kinds, p[:1], p[:2]]:
        y = (rng.random(len(prob)) < prob).astype(int)
        for function in (calibration_in_the_large, calibration_slope):
            for design in (
                {},
                {"groups": np.arange(len(y)) // 4} if len(y) > 4 else {},
                {"sample_weight": rng.uniform(0.5, 2, len(y))},
            ):
                found = function(y, prob, **design)
                low, high = found.confidence_interval
                assert 0 <= found.pvalue <= 1
                assert found.reason or (low <= found.estimate <= high and math.isfinite(low) and math.isfinite(high))


@pytest.mark.parametrize(
    ("data", "intercept", "slope", "brier", "in_the_large"),
    [
        (breast_cancer, 0.0750670492298, 0.7537875721005, 0.0940055984155, 0.2983527991),
        (digit_8, 1.4261277373575, 1.8812266361660, 0.018495314214962, 0.316935900806),
        (cat, -0.128558440610, 0.519380847528, 0.022579156615, 0.4077036264),
    ],
)
def test_val_prob_of_r_agrees(data, intercept, slope, brier, in_the_large):
    """rms 6.5.0 in R 4.2.2: `val.prob(p, y)[c("Intercept", "Slope", "Brier")]`, which leaves out 8 predictions of 0 or
    1 of the first, as we do. It prints 3 decimals; many observations share cells of logits here, which moves the
    sixth. The last number is that of `glm(y ~ offset(qlogis(p)), binomial)`, which `val.prob.ci.2` of CalibrationCurves
    is documented to print."""
    y, p = data()
    found = calibration_slope(y, p)
    assert (found.intercept, found.estimate) == pytest.approx((intercept, slope), abs=5e-6)
    assert brier_score(y, p) == pytest.approx(brier, rel=1e-11)
    assert calibration_in_the_large(y, p).intercept == pytest.approx(in_the_large, abs=5e-6)
