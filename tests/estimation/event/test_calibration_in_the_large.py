"""Observed over expected, as users ask for it: words, refusals, odd data."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import caltest
from caltest.estimation import calibration_in_the_large
from tests.results.printed import printed


def problem(n=200, shift=0.0, seed=0):
    rng = np.random.default_rng(seed)
    logit = rng.normal(-1, 1, n)
    return (rng.random(n) < expit(logit + shift)).astype(int), expit(logit)


def test_it_says_what_is_wrong_and_what_is_not():
    low, high = calibration_in_the_large(*problem(shift=1.0)), calibration_in_the_large(*problem(shift=-1.0))
    assert low.conclusion.startswith("Predicted risks are too low: ")
    assert high.conclusion.startswith("Predicted risks are too high: ")
    assert (low.direction, high.direction, low.decision) == ("too low", "too high", "rejected")
    right = calibration_in_the_large(*problem(shift=0.1))
    assert right.conclusion.startswith("On average no error is found: ")
    assert "does not prove" in right.conclusion
    assert right.direction is None
    assert right.verdict.decision == "not rejected"
    assert "intercept (slope 1)" in printed(right)
    assert "Valid if observations are independent" in printed(right)


def test_numbers_belong_together():
    y, prob = problem()
    large = calibration_in_the_large(y, prob)
    assert large.estimate == pytest.approx(y.sum() / prob.sum())
    assert [large.predicted, large.observed] == pytest.approx([prob.mean(), y.mean()])
    assert (large.n_events, large.n_samples) == (y.sum(), 200)
    assert large.expected_events == pytest.approx(prob.sum())
    assert json.loads(json.dumps(large.to_dict()))["pvalue"] == large.pvalue
    assert len(large.to_frame()) == 1


def test_the_complement_is_mirrored():
    for design in ({}, {"groups": np.arange(200) // 5}, {"sample_weight": np.linspace(1, 3, 200)}):
        y, prob = problem()
        large = calibration_in_the_large(y, prob, **design)
        mirrored = calibration_in_the_large(1 - y, 1 - prob, **design)
        assert mirrored.pvalue == pytest.approx(large.pvalue, rel=1e-6)
        assert mirrored.intercept == pytest.approx(-large.intercept, rel=1e-8)
        assert mirrored.intercept_interval[::-1] == pytest.approx([-end for end in large.intercept_interval], abs=1e-6)
        assert mirrored.estimate == pytest.approx((1 - large.observed) / (1 - large.predicted))


def test_weights_of_one_and_groups_of_one_change_nothing():
    y, prob = problem()
    plain = calibration_in_the_large(y, prob)
    for design in ({"sample_weight": np.full(200, 3.0)}, {"groups": np.arange(200)}):
        assert calibration_in_the_large(y, prob, **design).to_dict() == plain.to_dict()
    with_zero = calibration_in_the_large(np.r_[y, 1], np.r_[prob, 0.5], sample_weight=np.r_[np.ones(200), 0.0])
    assert with_zero.to_dict() == plain.to_dict()


def test_frames_labels_and_two_columns_are_read_as_elsewhere():
    y, prob = problem()
    expected = calibration_in_the_large(y, prob).pvalue
    frame = pd.DataFrame({"prob_no": 1 - prob, "prob_yes": prob})
    assert calibration_in_the_large(np.where(y, "yes", "no"), frame).pvalue == pytest.approx(expected)
    assert calibration_in_the_large(y, np.column_stack([1 - prob, prob])).pvalue == pytest.approx(expected)


def test_several_classes_need_an_event():
    y, prob = np.arange(30) % 3, np.full((30, 3), 1 / 3)
    with pytest.raises(ValueError, match=r"`lens` must have two outcomes, such as Confidence\(\), got Canonical\(\)"):
        calibration_in_the_large(y, prob)
    one = calibration_in_the_large(y, prob, lens=caltest.ClassWise(2))
    assert one.estimate == pytest.approx(1.0)
    sharp = np.full((30, 3), 0.01) + 0.97 * np.eye(3)[(y + (np.arange(30) < 8)) % 3]
    confident = calibration_in_the_large(y, sharp, lens=caltest.Confidence())
    assert confident.conclusion.startswith("The model is over-confident: 98.0 % confidence, 73.3 % right (")


def test_bad_levels_are_refused():
    with pytest.raises(ValueError, match="`confidence_level`"):
        calibration_in_the_large([0, 1], [0.2, 0.7], confidence_level=1.0)


def test_few_expected_events_cannot_decide_unless_they_reject():
    few = calibration_in_the_large([1, 0, 0], [0.3, 0.2, 0.1])
    assert few.decision == few.verdict.decision == "undecidable"
    assert few.conclusion.startswith("It cannot be told whether the predictions are right on average, as 0.6 events")
    assert calibration_in_the_large([1] * 6, [0.01] * 6).decision == "rejected"
    none = calibration_in_the_large([0] * 300, np.linspace(0.1, 0.4, 300))
    assert (none.decision, none.estimate, none.confidence_interval.low) == ("rejected", 0.0, 0.0)
    assert 0 < none.confidence_interval.high < 0.1


@pytest.mark.parametrize(
    ("y", "prob", "word"),
    [([0] * 9, [0.0] * 9, "predictions are all 0"), ([0, 1], [0.0, 1.0], "all predictions are 0 or 1")],
)
def test_what_has_no_interval_says_why(y, prob, word):
    large = calibration_in_the_large(y, prob)
    assert word in large.conclusion
    assert math.isnan(large.confidence_interval.low)
    assert (large.pvalue, large.decision) == (1.0, "undecidable")


def test_impossible_labels_are_counted_and_left_out():
    y, prob = problem()
    large = calibration_in_the_large(np.r_[y, 1, 0, 0], np.r_[prob, 0.0, 1.0, 0.0])
    assert (large.n_impossible, large.n_samples) == (2, 203)
    assert large.pvalue == calibration_in_the_large(y, prob).pvalue
    assert [note.code for note in large.notes] == ["C201"]
