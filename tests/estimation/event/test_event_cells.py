"""Cells of logits: what many predictions lose in them, and what a stream makes of its sums."""

import numpy as np
import pytest
from scipy.special import expit, logit

from caltest.estimation.event import _event_cells
from caltest.estimation.event._calibration_in_the_large import InTheLarge
from caltest.estimation.event._calibration_slope import Slope
from caltest.estimation.event._event_cells import EventCells
from caltest.predictions._sample import make_sample


def problem(n=5_000, seed=0):
    rng = np.random.default_rng(seed)
    prob = expit(rng.normal(-1, 2, n))
    return (rng.random(n) < expit(0.2 + 0.8 * logit(prob))).astype(int), prob


def numbers(cells):
    large, slope = InTheLarge.of(cells, 0.95), Slope.of(cells, 0.95)
    return np.array([large.ratio, *large.ratio_interval, large.pvalue, slope.slope, *slope.interval, slope.pvalue])


def test_cells_of_many_logits_change_hardly_anything(monkeypatch):
    sample = make_sample(*problem())
    pooled = EventCells.of(sample)
    assert len(pooled.logit) <= 1_024
    monkeypatch.setattr(_event_cells, "_MANY", 10_000)
    exact = EventCells.of(sample)
    assert len(exact.logit) == 5_000
    np.testing.assert_allclose(numbers(pooled)[:3], numbers(exact)[:3], rtol=1e-6)
    np.testing.assert_allclose(numbers(pooled)[4:7], numbers(exact)[4:7], atol=5e-5)


def test_counts_of_distinct_predictions_are_the_same_cells():
    y, prob = problem(400)
    prob = np.round(prob, 2)
    values, index = np.unique(prob, return_inverse=True)
    counted = EventCells.of_counts(values, np.bincount(index).astype(float), np.bincount(index, y))
    found = EventCells.of(make_sample(y, prob))
    np.testing.assert_allclose(numbers(counted), numbers(found), rtol=1e-8)
    assert (counted.n_samples, counted.n_events, counted.n_impossible) == (
        found.n_samples,
        found.n_events,
        found.n_impossible,
    )


def test_extreme_predictions_do_not_make_all_cells_coarse():
    y, prob = problem()
    cells = EventCells.of(make_sample(np.r_[y, 0], np.r_[prob, 1e-300]))
    assert Slope.of(cells, 0.95).slope == pytest.approx(numbers(EventCells.of(make_sample(y, prob)))[4], abs=1e-3)
    far = EventCells.of(make_sample(np.arange(2_000) % 2, np.logspace(-300, -20, 2_000)))
    assert far.varies


def test_the_intercept_has_as_many_expected_events():
    y, prob = problem(300)
    cells = EventCells.of(make_sample(y, prob))
    for slope in (-3.0, 0.0, 0.2, 1.0, 8.0):
        for total in (0.01, 1.0, 150.0, 299.99):
            for start in (-40.0, 0.0, 40.0):
                intercept = cells.intercept(slope, total=total, start=start)
                assert expit(intercept + slope * logit(prob)).sum() == pytest.approx(total, rel=1e-9)
    assert [cells.intercept(total=total) for total in (0, 300)] == [-np.inf, np.inf]


def test_the_intercept_is_found_among_logits_that_are_far_from_each_other():
    prob = 10.0 ** -np.arange(1, 290, 24)
    cells = EventCells.of(make_sample(np.ones(len(prob), dtype=int), prob))
    for total in (0.5, 6.5, len(prob) - 0.5):
        assert expit(cells.intercept(total=total) + logit(prob)).sum() == pytest.approx(total, rel=1e-9)
    assert InTheLarge.of(cells, 0.95).ratio_interval.low == pytest.approx((12 + 0.025) / prob.sum())


def test_groups_without_a_possible_observation_do_not_count():
    y, prob = np.r_[np.arange(40) % 2, 0, 0], np.r_[np.full(40, 0.4), 0, 0]
    cells = EventCells.of(make_sample(y, prob, groups=np.r_[np.arange(40) // 4, 10, 10]))
    assert cells.clusters.n_groups == 10
