"""Isotonic recalibration: the fit against other programs, the CORP error and the decomposition of a score."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss, log_loss

import caltest
from caltest._compiled._cumulative import pool_adjacent_violators
from caltest.predictions._sample import make_sample
from caltest.statistics._isotonic import _tie_masks

SCORES = ["brier", "log"]
SKLEARN = {"brier": brier_score_loss, "log": log_loss}


def terms(y_true, y_prob, **options):
    """The three terms and the mean score."""
    found = caltest.score_decomposition(y_true, y_prob, **options)
    return found.mean_score, found.miscalibration, found.discrimination, found.uncertainty


def mean_score(score, p, y, weight=None):
    """Of probabilities of the event; 0 log 0 = 0."""
    with np.errstate(divide="ignore"):
        values = (p - y) ** 2 if score == "brier" else -np.log(np.where(y == 1, p, 1 - p))
    return np.average(values, weights=weight)


# The blocks.

EVENTS = {
    "even": lambda n, rng: rng.random(n),
    "sharp": lambda n, rng: rng.beta(0.1, 0.02, n),
    "three values": lambda n, rng: rng.choice([0.2, 0.5, 0.7], n),
    "long and short blocks": lambda n, rng: np.where(rng.random(n) < 0.6, 0.75, rng.random(n)),
    "pairs": lambda n, rng: np.repeat(rng.random(n), 2)[:n],
    "constant": lambda n, rng: np.full(n, 0.9),
}


@pytest.mark.parametrize("kind", EVENTS)
@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 127, 128, 129, 1000])
def test_blocks_are_those_of_scipy(kind, n):
    rng = np.random.default_rng(n)
    sample = make_sample(np.zeros(n, dtype=int), EVENTS[kind](n, rng))
    runs = np.arange(n) < rng.integers(n + 1, size=(4, 1))
    rising = rng.random((200, n)) < np.linspace(0, 1, n)  # more blocks than there is room for at first
    drawn = [rng.random((8, n)) < sample.event, rng.random((4, n)) < 0.5, runs, ~runs, rising]
    outcomes = np.concatenate([*drawn, np.zeros((1, n)), np.ones((1, n))]).astype(np.uint8)
    size, events, first = pool_adjacent_violators(outcomes, _tie_masks(sample))
    assert first[0] == 0
    assert first[-1] == len(size) == len(events)
    start = np.flatnonzero(np.append(True, np.diff(sample.event) > 0))
    count = np.diff(np.append(start, n))
    for r, outcome in enumerate(outcomes):
        fit = isotonic_regression(np.add.reduceat(outcome, start, dtype=float) / count, weights=count)
        block = slice(first[r], first[r + 1])
        assert np.all(np.diff(events[block] / size[block]) > 0)
        fitted = np.repeat(events[block] / size[block], size[block])
        np.testing.assert_allclose(fitted, np.repeat(fit.x, count), rtol=0, atol=1e-12)


def test_many_blocks_of_few_replicates():
    """Blocks of sizes 1, 2, ... with growing shares: more than the 64 that are expected."""
    shares = sorted({(k / w, k, w) for w in range(1, 40) for k in range(w + 1) if np.gcd(k, w) == 1})
    outcome = np.concatenate([np.arange(w) < k for _, k, w in shares])[None].astype(np.uint8)
    sample = make_sample(np.zeros(outcome.size, dtype=int), np.linspace(0, 1, outcome.size))
    size, events, _ = pool_adjacent_violators(outcome, _tie_masks(sample))
    assert size.tolist() == [w for _, _, w in shares]
    assert events.tolist() == [k for _, k, _ in shares]


# By hand.


def test_by_hand():
    # The fit is 0, 1/2, 1/2, 1; the base rate 1/2.
    y_true, y_prob = [0, 1, 0, 1], [0.125, 0.25, 0.5, 0.75]
    stated = (1 / 64 + 9 / 16 + 1 / 4 + 1 / 16) / 4
    assert terms(y_true, y_prob) == pytest.approx((stated, stated - 1 / 8, 1 / 4 - 1 / 8, 1 / 4), rel=1e-15)
    stated = -np.log([7 / 8, 1 / 4, 1 / 2, 3 / 4]).mean()
    recalibrated, uncertainty = np.log(2) / 2, np.log(2)
    expected = (stated, stated - recalibrated, uncertainty - recalibrated, uncertainty)
    assert terms(y_true, y_prob, score="log") == pytest.approx(expected, rel=1e-14)
    # Ties are pooled first: 1/2 whatever their order.
    for labels in ([1, 0], [0, 1]):
        assert terms(labels, [0.5, 0.5]) == (0.25, 0, 0, 0.25)
    # Weights 1 and 3: a decreasing pair is pooled to 1/4, the base rate.
    weighted = terms([1, 0], [0.25, 0.75], sample_weight=[1.0, 3.0])
    assert weighted == pytest.approx((9 / 16, 9 / 16 - 3 / 16, 0, 3 / 16), rel=1e-15)


def test_an_excluded_outcome_is_infinite_under_the_log_score():
    found = caltest.score_decomposition([1, 1, 0], [0.0, 0.5, 0.5], score="log")
    assert found.mean_score == found.miscalibration == np.inf
    assert np.isfinite([found.discrimination, found.uncertainty]).all()
    assert "inf" in str(found)
    assert np.isfinite(terms([1, 1, 0], [0.0, 0.5, 0.5])).all()
    ignored = terms([1, 1, 0], [0.0, 0.5, 0.5], score="log", sample_weight=[0.0, 1.0, 1.0])
    assert ignored == pytest.approx((np.log(2), 0, 0, np.log(2)), abs=1e-15)
    result = caltest.calibration_test(
        [1, 1, 0], [0.0, 0.5, 0.5], statistic=caltest.IsotonicError("log"), n_resamples=99
    )
    assert result.statistic == np.inf
    assert result.pvalue == 1 / 100
    assert np.isfinite(result.null_distribution).all()


def test_one_class_only():
    assert terms([1, 1], [0.5, 0.75]) == (5 / 32, 5 / 32, 0, 0)
    assert terms([1, 1], [1.0, 1.0], score="log") == (0, 0, 0, 0)


# Against scikit-learn.


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("lens", [None, caltest.ClassWise(3), caltest.TopRank(2)], ids=str)
def test_terms_are_those_of_scikit_learn(lens, weighted, score):
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    prob, happened = (lens or caltest.Confidence())(y_prob.astype(float), y_true)
    event = prob[:, 1]
    weight = np.random.default_rng(0).exponential(size=len(event)) if weighted else None
    fitted = IsotonicRegression().fit_transform(event, happened, sample_weight=weight)
    rate = np.full(len(event), np.average(happened, weights=weight))
    original, recalibrated, base = (
        SKLEARN[score](happened, forecast, sample_weight=weight) for forecast in (event, fitted, rate)
    )
    found = terms(y_true, y_prob, lens=lens, score=score, sample_weight=weight)
    expected = (original, original - recalibrated, base - recalibrated, base)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


# What must hold.

problems = st.lists(st.tuples(st.integers(0, 8), st.booleans(), st.integers(0, 3)), min_size=1, max_size=20).filter(
    lambda rows: any(weight for _, _, weight in rows)
)
PROFILE = settings(deadline=None, derandomize=True, database=None, max_examples=100)


@PROFILE
@given(problems, st.sampled_from(SCORES))
def test_the_decomposition(rows, score):
    event, happened, weight = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    event, happened = event / 8, happened == 1
    stated, miscalibration, discrimination, uncertainty = found = terms(
        happened, event, score=score, sample_weight=weight
    )
    assert stated == pytest.approx(miscalibration - discrimination + uncertainty, abs=1e-12)
    assert stated == pytest.approx(mean_score(score, event[weight > 0], happened[weight > 0], weight[weight > 0]))
    assert min(found) >= -1e-12
    statistic = caltest.IsotonicError(score)
    assert miscalibration == caltest.calibration_error(happened, event, statistic=statistic, sample_weight=weight)
    # A whole weight is a repeated row.
    times = weight.astype(int)
    repeated = terms(np.repeat(happened, times), np.repeat(event, times), score=score)
    np.testing.assert_allclose(repeated, found, rtol=1e-12, atol=1e-12)
    # Only the order of the predictions matters to the other terms.
    np.testing.assert_allclose(
        terms(happened, event**2, score=score, sample_weight=weight)[2:], found[2:], rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("score", SCORES)
def test_the_fit_beats_every_increasing_function_under_both_scores(score):
    """And it is not to be improved: recalibrated predictions have no miscalibration."""
    rng = np.random.default_rng(1)
    event = rng.random(60).round(2)
    happened = rng.random(60) < event**2
    fitted = IsotonicRegression().fit_transform(event, happened)
    best = mean_score(score, event, happened) - terms(happened, event, score=score)[1]
    for _ in range(300):
        rival = np.interp(event, np.linspace(0, 1, 101), np.sort(rng.random(101)))
        mixed = 0.9 * fitted + 0.1 * rival
        assert min(mean_score(score, rival, happened), mean_score(score, mixed, happened)) >= best - 1e-12
    assert terms(happened, fitted, score=score)[1] == pytest.approx(0, abs=1e-12)


# The interface.


def test_default_lens():
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    one = caltest.score_decomposition(y_true, y_prob)
    assert one == caltest.score_decomposition(y_true, y_prob, lens=caltest.Confidence())
    assert one.lens == "Confidence()"
    binary = caltest.score_decomposition(y_true == 3, y_prob[:, 3])
    assert binary.lens == "Canonical()"
    named = caltest.score_decomposition(y_true == 3, y_prob[:, 3], classes=[False, True])
    assert (named.mean_score, named.miscalibration) == (binary.mean_score, binary.miscalibration)


def test_the_result_prints_and_is_frozen():
    found = caltest.score_decomposition([0, 1, 0, 1], [0.125, 0.25, 0.5, 0.75])
    for name in ("mean_score", "miscalibration", "discrimination", "uncertainty"):
        assert f"{getattr(found, name):.4g}" in str(found)
        with pytest.raises(FrozenInstanceError):
            setattr(found, name, 0.0)
    assert "4 rows" in str(found)


def test_refusals():
    y_prob = np.full((2, 3), 1 / 3)
    for refused in ("Brier", None, "quadratic"):
        with pytest.raises(ValueError, match=r"`score` must be one of 'brier', 'log', got"):
            caltest.IsotonicError(refused)
        with pytest.raises(ValueError, match=r"`score` must be one of 'brier', 'log', got"):
            caltest.score_decomposition([0, 1], [0.25, 0.75], score=refused)
    message = r"needs a two-outcome lens such as Confidence\(\), got 3 outcomes"
    with pytest.raises(ValueError, match="`score_decomposition` " + message):
        caltest.score_decomposition([0, 1], y_prob, lens=caltest.Canonical())
    with pytest.raises(ValueError, match="`IsotonicError` " + message):
        caltest.calibration_error([0, 1], y_prob, statistic=caltest.IsotonicError())
    with pytest.raises(ValueError, match=r"`sample_weight` must have shape \(2,\)"):
        caltest.score_decomposition([0, 1], [0.25, 0.75], sample_weight=[1.0])
