"""Observed over expected from cells: the union over slopes, groups, and predictions of 0 and 1."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logit

from caltest.estimation.event._calibration_in_the_large import InTheLarge
from caltest.estimation.event._calibration_slope import Slope
from caltest.estimation.event._event_cells import EventCells
from caltest.estimation.event._event_count import EventCount
from caltest.predictions._sample import make_sample
from caltest.resampling.draws._timed_draws import TimedOutcome
from tests.reference.events import best_intercept, logistic, tails_of_sum


def cells_of(y, prob, **design):
    return EventCells.of(make_sample(y, prob, **design))


def test_a_constant_prediction_has_the_interval_of_clopper_and_pearson():
    large = InTheLarge.of(cells_of(np.arange(40) < 16, np.full(40, 0.25)), 0.95)
    low, high = stats.beta.ppf([0.025, 0.975], [16, 17], [25, 24])
    assert list(large.ratio_interval) == pytest.approx([low / 0.25, high / 0.25], rel=1e-6)
    tail = 2 * stats.binom.sf(15, 40, 0.25)
    assert large.pvalue == pytest.approx(tail, rel=1e-9)
    assert large.intercept == pytest.approx(logit(0.4) - logit(0.25), rel=1e-9)
    assert list(large.intercept_interval) == pytest.approx(logit([low, high]) - logit(0.25), rel=1e-6)


def test_the_interval_is_the_union_of_two_slopes():
    rng = np.random.default_rng(1)
    prob = expit(rng.normal(0, 2, 12))
    y = (rng.random(12) < expit(0.5 * logit(prob))).astype(int)
    y[:2] = [0, 1] if prob[0] > prob[1] else [1, 0]
    cells = cells_of(y, prob)
    slope = min(max(logistic(y, logit(prob))[1], 0.2), 5.0)
    large = InTheLarge.of(cells, 0.95)
    ends, tails = [], []
    for b in (1.0, slope):
        for end in EventCount(cells, b).interval(0.025):
            ends.append(expit(end + b * logit(prob)).sum() / prob.sum())
            tails.append(min(tails_of_sum(prob, end, b, y.sum())))
    assert tails == pytest.approx([0.025] * 4, rel=1e-5)
    assert list(large.ratio_interval) == pytest.approx([min(ends), max(ends)], rel=1e-6)
    shifted = best_intercept(np.full(12, prob.mean()), logit(prob), slope)
    both = [2 * min(tails_of_sum(prob, a, b, y.sum())) for a, b in ((0.0, 1.0), (shifted, slope))]
    assert large.pvalue == pytest.approx(min(1.0, max(both)), rel=1e-7)


def test_one_is_outside_of_the_interval_where_the_pvalue_rejects():
    rng = np.random.default_rng(3)
    found = []
    for n in (20, 60, 300):
        for shift in (-1.0, -0.5, 0.5, 1.0):
            prob = expit(rng.normal(0, 2, n))
            y = (rng.random(n) < expit(0.6 * logit(prob) + shift)).astype(int)
            large = InTheLarge.of(cells_of(y, prob), 0.95)
            found.append((large.pvalue <= 0.05, not large.ratio_interval.low <= 1 <= large.ratio_interval.high))
    assert set(found) == {(True, True), (False, False)}


def test_certain_predictions_count_and_do_not_shift():
    y, prob = np.r_[np.arange(30) < 12, np.ones(5), np.zeros(9)], np.r_[np.full(30, 0.3), np.ones(5), np.zeros(9)]
    inner, large = InTheLarge.of(cells_of(y[:30], prob[:30]), 0.95), InTheLarge.of(cells_of(y, prob), 0.95)
    assert large.ratio == pytest.approx(17 / 14)
    assert (large.pvalue, large.intercept_interval) == (inner.pvalue, inner.intercept_interval)
    assert list(large.ratio_interval) == pytest.approx([(9 * end + 5) / 14 for end in inner.ratio_interval])
    impossible = cells_of(np.r_[y, 1, 0], np.r_[prob, 0, 1])
    assert impossible.n_impossible == 2
    assert InTheLarge.of(impossible, 0.95).ratio_interval == large.ratio_interval


def test_groups_that_differ_widen_the_interval():
    rng = np.random.default_rng(2)
    group = np.repeat(np.arange(20), 25)
    prob = rng.uniform(0.1, 0.5, 500)
    y = (rng.random(500) < expit(logit(prob) + rng.normal(0, 1, 20)[group])).astype(int)
    plain, large = (InTheLarge.of(cells_of(y, prob, **design), 0.95) for design in ({}, {"groups": group}))
    assert np.ptp(large.ratio_interval) > 1.5 * np.ptp(plain.ratio_interval)
    left = [best_intercept(y[group != g], logit(prob[group != g]), 1.0) for g in range(20)]
    error = np.sqrt(19 / 20 * np.sum((np.array(left) - plain.intercept) ** 2))
    reach = stats.t.ppf(0.975, 19) * error
    assert list(large.intercept_interval) == pytest.approx([plain.intercept - reach, plain.intercept + reach], abs=0.08)


@pytest.mark.parametrize(
    ("y", "groups", "word"),
    [
        (np.arange(60) % 2, np.arange(60) % 5, "5 independent groups"),
        (np.zeros(60), np.arange(60) % 10, "no events"),
        (np.arange(60) < 6, np.r_[np.zeros(6), np.arange(54) % 9 + 1], "one group alone"),
    ],
)
def test_groups_that_show_nothing_have_no_interval(y, groups, word):
    large = InTheLarge.of(cells_of(y.astype(int), np.full(60, 0.1), groups=groups.astype(int)), 0.95)
    assert word in large.reason
    assert np.isnan(large.ratio_interval).all()
    assert large.pvalue == 1


def stream(rng, n, lead):
    """Calibrated forecasts whose outcomes share the shocks between prediction and outcome."""
    shock = np.convolve(rng.normal(size=n + lead - 1), np.ones(lead), "valid") / np.sqrt(lead)
    prob = stats.norm.cdf(0.7 * rng.normal(size=n) - 0.5)
    return prob, (stats.norm.cdf(np.sqrt(0.5) * (shock + rng.normal(size=n))) < prob).astype(int)


def timed(y, prob, lead, n_times=None):
    time = np.arange(len(y)) if n_times is None else np.arange(len(y)) % n_times
    return make_sample(y, prob, time=time, lead=lead)


def test_times_multiply_the_variance_by_the_inflation():
    prob, y = stream(np.random.default_rng(0), 400, 7)
    sample = timed(y, prob, 7)
    ratio = sample.once(TimedOutcome.of).raised_inflation(sample.outcome)
    assert ratio > 1.5
    cells = EventCells.of(sample)
    large = InTheLarge.of(cells, 0.95)
    # each observation counts as 1 / ratio observations of the weight ratio
    p = 1 / (1 + np.exp(-(cells.logit + large.intercept_interval.low)))
    assert cells.squares @ (p * (1 - p)) == pytest.approx(ratio * cells.count @ (p * (1 - p)))
    shift = (cells.observed - prob.sum()) / np.sqrt(ratio * (prob * (1 - prob)).sum())
    assert large.pvalue == pytest.approx(2 * stats.norm.sf(abs(shift)), abs=0.03)
    alone, plain = (InTheLarge.of(one, 0.95) for one in (EventCells.of(timed(y, prob, 1)), cells_of(y, prob)))
    assert (alone.pvalue, alone.ratio_interval) == (plain.pvalue, plain.ratio_interval)


def test_little_time_has_the_largest_inflation_or_no_interval():
    prob, y = stream(np.random.default_rng(0), 120, 12)
    sample = timed(y, prob, 12)
    cells, largest = EventCells.of(sample), sample.once(TimedOutcome.of).largest
    assert cells.squares.sum() == pytest.approx(120 * largest)
    assert largest > sample.once(TimedOutcome.of).raised_inflation(sample.outcome)
    few = EventCells.of(timed(y, prob, 1, n_times=4))
    for found in (InTheLarge.of(few, 0.95), Slope.of(few, 0.95)):
        assert "the time is worth only 4 leads, and it takes 5 or more" in found.reason
        assert found.pvalue == 1


@pytest.mark.slow
def test_coverage_of_calibrated_forecasts_in_time():
    rng, found = np.random.default_rng(4), []
    for _ in range(200):
        prob, y = stream(rng, 365, 7)
        cells = EventCells.of(timed(y, prob, 7))
        ends = InTheLarge.of(cells, 0.95).ratio_interval, Slope.of(cells, 0.95).interval
        found.append([low <= 1 <= high for low, high in ends])
    assert (np.mean(found, axis=0) >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / 200)).all()
