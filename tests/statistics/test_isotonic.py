"""Isotonic recalibration: the blocks of the fit, the CORP error by hand, against scikit-learn, and what must hold."""

import numpy as np
import pytest
from scipy.optimize import isotonic_regression
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss, log_loss

import caltest
from caltest._compiled._cumulative import pool_adjacent_violators
from caltest.predictions._sample import make_sample
from caltest.statistics._isotonic import tie_masks
from tests.reference.cases import mostly_slow

SKLEARN = {"brier": brier_score_loss, "log": log_loss}


def error(y_true, y_prob, score="brier", **options):
    return caltest.calibration_error(y_true, y_prob, statistic=caltest.statistics.IsotonicError(score), **options)


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


@pytest.mark.parametrize("kind", mostly_slow(EVENTS))
def test_blocks_are_those_of_scipy(kind):
    for n in (1, 2, 63, 64, 65, 127, 128, 129, 1000):
        check_blocks(kind, n)


def check_blocks(kind, n):
    rng = np.random.default_rng(n)
    sample = make_sample(np.zeros(n, dtype=int), EVENTS[kind](n, rng))
    runs = np.arange(n) < rng.integers(n + 1, size=(4, 1))
    n_rising = 200 if n == 1000 else 20  # 200 of 1,000: more blocks than there is room for at first
    rising = rng.random((n_rising, n)) < np.linspace(0, 1, n)
    drawn = [rng.random((8, n)) < sample.event, rng.random((4, n)) < 0.5, runs, ~runs, rising]
    outcomes = np.concatenate([*drawn, np.zeros((1, n)), np.ones((1, n))]).astype(np.uint8)
    size, events, first = pool_adjacent_violators(outcomes, tie_masks(sample))
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
    size, events, _ = pool_adjacent_violators(outcome, tie_masks(sample))
    assert size.tolist() == [w for _, _, w in shares]
    assert events.tolist() == [k for _, k, _ in shares]


# By hand.


def test_by_hand():
    # The fit is 0, 1/2, 1/2, 1.
    y_true, y_prob = [0, 1, 0, 1], [0.125, 0.25, 0.5, 0.75]
    assert error(y_true, y_prob) == pytest.approx((1 / 64 + 9 / 16 + 1 / 4 + 1 / 16) / 4 - 1 / 8, rel=1e-15)
    stated = -np.log([7 / 8, 1 / 4, 1 / 2, 3 / 4]).mean()
    assert error(y_true, y_prob, "log") == pytest.approx(stated - np.log(2) / 2, rel=1e-14)
    # Ties are pooled first: 1/2 whatever their order.
    assert error([1, 0], [0.5, 0.5]) == error([0, 1], [0.5, 0.5]) == 0
    # Weights 1 and 3: a decreasing pair is pooled to 1/4.
    assert error([1, 0], [0.25, 0.75], sample_weight=[1.0, 3.0]) == pytest.approx(9 / 16 - 3 / 16, rel=1e-15)
    # One class only: the fit is certain.
    assert error([1, 1], [0.5, 0.75]) == 5 / 32
    assert error([1, 1], [1.0, 1.0], "log") == 0


def test_an_excluded_outcome_is_infinite_under_the_log_score():
    assert error([1, 1, 0], [0.0, 0.5, 0.5], "log") == np.inf
    assert np.isfinite(error([1, 1, 0], [0.0, 0.5, 0.5]))
    assert error([1, 1, 0], [0.0, 0.5, 0.5], "log", sample_weight=[0.0, 1.0, 1.0]) == pytest.approx(0, abs=1e-15)
    result = caltest.calibration_test(
        [1, 1, 0], [0.0, 0.5, 0.5], statistic=caltest.statistics.IsotonicError("log"), n_resamples=99
    )
    assert result.statistic == np.inf
    assert result.pvalue == 1 / 100
    assert np.isfinite(result.null_distribution).all()


# Against scikit-learn, and what must hold.


@pytest.mark.parametrize("score", SKLEARN)
def test_it_is_the_gain_of_scikit_learns_fit(score):
    y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    for lens in (caltest.Confidence(), caltest.ClassWise(3), caltest.TopRank(2)):
        prob, happened = lens(y_prob.astype(float), y_true)
        event = prob[:, 1]
        for weight in (None, np.random.default_rng(0).exponential(size=len(event))):
            fitted = IsotonicRegression().fit_transform(event, happened, sample_weight=weight)
            original, recalibrated = (
                SKLEARN[score](happened, forecast, sample_weight=weight) for forecast in (event, fitted)
            )
            found = error(y_true, y_prob, score, lens=lens, sample_weight=weight)
            assert found == pytest.approx(original - recalibrated, abs=1e-12), (lens, weight is None)


@pytest.mark.parametrize("score", SKLEARN)
def test_the_fit_beats_every_increasing_function_under_both_scores(score):
    """And it is not to be improved: recalibrated predictions have no miscalibration."""
    rng = np.random.default_rng(1)
    event = rng.random(60).round(2)
    happened = rng.random(60) < event**2
    fitted = IsotonicRegression().fit_transform(event, happened)
    best = mean_score(score, event, happened) - error(happened, event, score)
    for _ in range(300):
        rival = np.interp(event, np.linspace(0, 1, 101), np.sort(rng.random(101)))
        mixed = 0.9 * fitted + 0.1 * rival
        assert min(mean_score(score, rival, happened), mean_score(score, mixed, happened)) >= best - 1e-12
    assert error(happened, fitted, score) == pytest.approx(0, abs=1e-12)


def test_bad_scores_are_refused():
    for refused in ("Brier", "quadratic"):
        with pytest.raises(ValueError, match=f"`score` must be one of 'brier', 'log', got '{refused}'"):
            caltest.statistics.IsotonicError(refused)
