"""The slope: against a logistic regression, likelihoods, and the enumeration of all labels with as many events."""

import math

import numpy as np
import pytest
from scipy.special import expit, logit, ndtr

from caltest.estimation.event._calibration_slope import Slope, _SignedRoot
from caltest.estimation.event._event_cells import EventCells
from caltest.predictions._sample import make_sample
from tests.reference.events import logistic, signed_root, tails_of_slope


def problem(n, spread=1.0, slope=0.7, seed=0):
    rng = np.random.default_rng(seed)
    prob = expit(rng.normal(0, spread, n))
    return (rng.random(n) < expit(0.3 + slope * logit(prob))).astype(int), prob


def cells_of(y, prob, **design):
    return EventCells.of(make_sample(y, prob, **design))


def test_estimates_are_those_of_a_logistic_regression():
    y, prob = problem(200)
    slope = Slope.of(cells_of(y, prob), 0.95)
    assert [slope.intercept, slope.slope] == pytest.approx(logistic(y, logit(prob)).tolist(), rel=1e-6)


@pytest.mark.slow
def test_statsmodels_has_the_same_estimates_and_a_similar_interval():
    from statsmodels.discrete.discrete_model import Logit

    y, prob = problem(200)
    slope = Slope.of(cells_of(y, prob), 0.95)
    fit = Logit(y, np.column_stack([np.ones(200), logit(prob)])).fit(disp=0)
    assert slope.slope == pytest.approx(fit.params[1], rel=1e-9)
    wald = fit.params[1] + np.array([-1.96, 1.96]) * fit.bse[1]
    assert list(slope.interval) == pytest.approx(wald, abs=0.15 * fit.bse[1])


def test_ends_and_pvalue_are_those_of_the_corrected_root():
    y, prob = problem(40, seed=2)
    slope = Slope.of(cells_of(y, prob), 0.9)
    assert [signed_root(y, prob, end) for end in slope.interval] == pytest.approx([1.644854, -1.644854], abs=1e-4)
    assert slope.pvalue == pytest.approx(2 * ndtr(-abs(signed_root(y, prob, 1.0))), rel=1e-5)


def test_the_root_has_no_gap_at_the_estimate():
    root = _SignedRoot(cells_of(*problem(40, seed=2)).centred)
    estimate = root._b
    values = [root.root(estimate + step) for step in np.linspace(-0.02, 0.02, 41)]
    assert np.abs(np.diff(values, 2)).max() < 0.1 * np.abs(np.diff(values)).min()


@pytest.mark.parametrize("seed", range(6))
def test_roots_agree_with_enumeration(seed):
    """At the slope 1 the one-sided mid-p-value of all labels with as many events is about that of r*."""
    y, prob = problem(12, seed=seed)
    y[:6] = y[:6] if 5 <= y.sum() <= 7 else [0, 1, 0, 1, 0, 1]
    more, here = tails_of_slope(prob, 1.0, y)
    found = ndtr(-_SignedRoot(cells_of(y, prob).centred).root(1.0))
    assert found == pytest.approx(more + here / 2, abs=0.08)


def test_separated_labels_have_their_exact_probability():
    prob = np.linspace(0.3, 0.7, 12)
    for events in (np.arange(12) >= 6, np.arange(12) < 6):
        slope = Slope.of(cells_of(events, prob), 0.95)
        end = slope.interval.low if events[-1] else slope.interval.high
        assert math.isinf(slope.slope)
        assert tails_of_slope(prob, end, events.astype(int))[1] == pytest.approx(0.025, rel=1e-5)
        assert slope.pvalue == pytest.approx(min(1.0, 2 * tails_of_slope(prob, 1.0, events.astype(int))[1]), rel=1e-6)
        assert "no finite slope" in slope.reason


def test_ties_between_events_and_others_at_the_threshold_separate_too():
    prob, y = np.repeat([0.2, 0.5, 0.8], 5), np.array([0] * 5 + [0, 1, 0, 1, 0] + [1] * 5)
    assert Slope.of(cells_of(y, prob), 0.95).slope == math.inf


def test_predictions_that_hardly_differ_have_a_slope():
    y, prob = problem(100)
    small = expit(1e-6 * logit(prob) - 4)
    assert Slope.of(cells_of(y, small), 0.95).slope == pytest.approx(1e6 * logistic(y, logit(prob))[1], rel=1e-4)


def test_what_has_no_slope_says_why():
    prob = np.linspace(0.1, 0.9, 40)
    few = Slope.of(cells_of(np.arange(40) < 4, prob), 0.95)
    assert "the number of events is 4." in few.reason
    assert "the number of non-events is 3." in Slope.of(cells_of(np.arange(40) >= 3, prob), 0.95).reason
    assert "all predictions are equal" in Slope.of(cells_of(np.arange(40) % 2, np.full(40, 0.3)), 0.95).reason
    assert (few.pvalue, math.isnan(few.slope), math.isnan(few.interval.low)) == (1.0, True, True)


def test_weights_have_a_similar_interval_and_their_own_estimate():
    y, prob = problem(300, seed=4)
    plain = Slope.of(cells_of(y, prob), 0.95)
    rng = np.random.default_rng(0)
    weighted = Slope.of(cells_of(y, prob, sample_weight=rng.uniform(0.999, 1.001, 300)), 0.95)
    assert list(weighted.interval) == pytest.approx(list(plain.interval), abs=0.05 * np.ptp(plain.interval))
    assert weighted.pvalue == pytest.approx(plain.pvalue, abs=0.02)
    twice = Slope.of(cells_of(y, prob, sample_weight=np.arange(300) % 2 + 1), 0.95)
    rows = np.repeat(np.arange(300), np.arange(300) % 2 + 1)
    assert twice.slope == pytest.approx(logistic(y[rows], logit(prob[rows]))[1], rel=1e-6)
    assert np.ptp(twice.interval) > np.ptp(plain.interval)  # labels are not repeated


def test_groups_widen_the_interval():
    y, prob = problem(300, seed=4)
    plain = Slope.of(cells_of(y, prob), 0.95)
    grouped = Slope.of(cells_of(y, prob, groups=np.arange(300) // 50), 0.95)
    assert grouped.slope == plain.slope
    assert grouped.interval.low <= plain.interval.low < plain.interval.high <= grouped.interval.high
    assert grouped.pvalue >= plain.pvalue
    assert "at least 6" in Slope.of(cells_of(y, prob, groups=np.arange(300) // 75), 0.95).reason
