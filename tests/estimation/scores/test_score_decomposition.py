"""The decomposition of a score: its terms, what they do not depend on, and what it prints."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss, log_loss

import caltest as ct
from tests.results.printed import printed

PROFILE = settings(deadline=None, derandomize=True, database=None, max_examples=60)
SCORES = {"brier": brier_score_loss, "log": log_loss}
TERMS = ("mean_score", "miscalibration", "discrimination", "uncertainty")


def terms(y_true, y_prob, **options):
    """The mean score and its three terms."""
    found = ct.score_decomposition(y_true, y_prob, **options)
    return tuple(getattr(found, name) for name in TERMS)


def mean_score(score, p, y, weight=None):
    """Of probabilities of the event; 0 log 0 = 0."""
    with np.errstate(divide="ignore"):
        values = (p - y) ** 2 if score == "brier" else -np.log(np.where(y == 1, p, 1 - p))
    return np.average(values, weights=weight)


def test_terms_by_hand():
    """Pooled: the labels 1 and 0 of 0.25 and 0.5; the base rate is 1/2."""
    found = terms([0, 1, 0, 1], [0.125, 0.25, 0.5, 0.75])
    recalibrated = np.mean(np.square([0, 0.5, 0.5, 0]))
    score = np.mean(np.square([0.125, 0.75, 0.5, 0.25]))
    assert found == pytest.approx((score, score - recalibrated, 0.25 - recalibrated, 0.25))


@pytest.mark.slow(few_draws=True)
@PROFILE
@given(
    st.lists(st.tuples(st.integers(1, 7), st.integers(0, 1), st.integers(0, 3)), min_size=1, max_size=40).filter(
        lambda rows: any(weight for *_, weight in rows)
    ),
    st.sampled_from(sorted(SCORES)),
)
def test_terms_of_any_data(rows, score):
    event, happened, weight = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    event, happened = event / 8, happened == 1
    found = terms(happened, event, score=score, sample_weight=weight)
    predicted, miscalibration, discrimination, uncertainty = found
    assert predicted == pytest.approx(miscalibration - discrimination + uncertainty, abs=1e-12)
    assert predicted == pytest.approx(mean_score(score, event[weight > 0], happened[weight > 0], weight[weight > 0]))
    assert min(found) >= -1e-12
    statistic = ct.statistics.IsotonicError(score)
    assert miscalibration == ct.calibration_error(happened, event, statistic=statistic, sample_weight=weight)
    # A whole weight is a repeated observation.
    times = weight.astype(int)
    repeated = terms(np.repeat(happened, times), np.repeat(event, times), score=score)
    np.testing.assert_allclose(repeated, found, rtol=1e-12, atol=1e-12)
    # Only the order of the predictions matters to the other terms.
    np.testing.assert_allclose(
        terms(happened, event**2, score=score, sample_weight=weight)[2:], found[2:], rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("score", SCORES)
def test_terms_are_those_of_scikit_learn(score):
    rng = np.random.default_rng(3)
    y_true, y_prob = (part[:500] for part in ct.datasets.load_cifar10_vgg16())
    for lens in (ct.Confidence(), ct.ClassWise(3), ct.TopRank(2)):
        for weight in (None, rng.random(500)):
            prob, outcome = lens(y_prob.astype(float), y_true)
            event = prob[:, 1].clip(0, 1)
            fit = IsotonicRegression(y_min=0, y_max=1).fit(event, outcome, sample_weight=weight).predict(event)
            base = np.full(500, np.average(outcome, weights=weight))
            scores = [SCORES[score](outcome, p, sample_weight=weight) for p in (event, fit, base)]
            expected = scores[0], scores[0] - scores[1], scores[2] - scores[1], scores[2]
            found = terms(y_true, y_prob, score=score, lens=lens, sample_weight=weight)
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9, err_msg=str(lens))


def test_recalibrated_predictions_have_no_miscalibration():
    rng = np.random.default_rng(1)
    event = rng.random(60).round(2)
    happened = rng.random(60) < event**2
    fit = IsotonicRegression(y_min=0, y_max=1).fit(event, happened).predict(event)
    for score in SCORES:
        assert terms(happened, fit, score=score)[1] == pytest.approx(0, abs=1e-12), score


def test_a_label_of_probability_zero_is_infinite_under_the_log_score():
    found = ct.score_decomposition([1, 1, 0], [0.0, 0.5, 0.5], score="log")
    assert found.mean_score == found.miscalibration == np.inf
    assert np.isfinite([found.discrimination, found.uncertainty]).all()
    assert found.conclusion == "The mean log score is infinite, because a label had been given probability 0."
    assert found.to_dict()["mean_score"] is None
    assert np.isfinite(terms([1, 1, 0], [0.0, 0.5, 0.5])).all()
    ignored = terms([1, 1, 0], [0.0, 0.5, 0.5], score="log", sample_weight=[0.0, 1.0, 1.0])
    assert ignored == pytest.approx((np.log(2), 0, 0, np.log(2)), abs=1e-15)


def test_one_class_only():
    assert terms([1, 1], [0.5, 0.75]) == (5 / 32, 5 / 32, 0, 0)
    assert terms([1, 1], [1.0, 1.0], score="log") == (0, 0, 0, 0)
    perfect = ct.score_decomposition([1, 1], [1.0, 1.0])
    assert perfect.conclusion == "The mean Brier score is 0. Isotonic recalibration would lower it by 0 %."


def test_default_lens():
    y_true, y_prob = (part[:300] for part in ct.datasets.load_cifar10_vgg16())
    one = ct.score_decomposition(y_true, y_prob)
    assert one.lens == ct.Confidence()
    assert one.to_dict() == ct.score_decomposition(y_true, y_prob, lens=ct.Confidence()).to_dict()
    event = ct.score_decomposition(y_true == 3, y_prob[:, 3])
    assert event.lens == ct.Canonical()
    named = ct.score_decomposition(y_true == 3, y_prob[:, 3], classes=[False, True])
    assert (named.mean_score, named.miscalibration) == (event.mean_score, event.miscalibration)


def test_refusals():
    y_prob = np.full((2, 3), 1 / 3)
    for refused in ("Brier", "quadratic"):
        with pytest.raises(ValueError, match=r"`score` must be one of 'brier', 'log', got"):
            ct.score_decomposition([0, 1], [0.25, 0.75], score=refused)
    with pytest.raises((TypeError, ValueError), match="`score` must be"):
        ct.score_decomposition([0, 1], [0.25, 0.75], score=None)
    with pytest.raises(ValueError, match="`lens` must have two outcomes"):
        ct.score_decomposition([0, 1], y_prob, lens=ct.Canonical())
    with pytest.raises(ValueError, match=r"`sample_weight` must have shape \(2,\)"):
        ct.score_decomposition([0, 1], [0.25, 0.75], sample_weight=[1.0])
    found = ct.score_decomposition([0, 1], [0.25, 0.75])
    with pytest.raises(FrozenInstanceError):
        found.miscalibration = 0.0


PRINTED = """
Decomposition of the Brier score (confidence, 899 observations)
The mean Brier score is 0.04208. Isotonic recalibration would lower it by 36 %.

 term              value  meaning
 mean score      0.04208  miscalibration - discrimination + uncertainty
 miscalibration  0.01529  what isotonic recalibration gains; smaller is better
 discrimination  0.01165  what that gains on the base rate; larger is better
 uncertainty     0.03844  score of the base rate; a property of the labels

  Both gains are too large in small samples, because recalibration is fitted to
    the same labels. To test the miscalibration, use calibration_test with
    IsotonicError.
"""
PRINTED_INFINITE = """
Decomposition of the log score (confidence, 899 observations)
The mean log score is infinite, because a label had been given probability 0.

 term             value  meaning
 mean score         inf  miscalibration - discrimination + uncertainty
 miscalibration     inf  what isotonic recalibration gains; smaller is better
 discrimination  0.1199  what that gains on the base rate; larger is better
 uncertainty     0.4491  score of the base rate; a property of the labels

  Both gains are too large in small samples, because recalibration is fitted to
    the same labels. To test the miscalibration, use calibration_test with
    IsotonicError.
"""


def print_it(score, model="logistic_regression"):
    y_true, models = ct.datasets.load_digits_predictions()
    return ct.score_decomposition(y_true, models[model], score=score)


def test_what_is_printed():
    assert printed(print_it("brier")) == PRINTED.strip("\n")
    assert printed(print_it("log", "naive_bayes")) == PRINTED_INFINITE.strip("\n")
