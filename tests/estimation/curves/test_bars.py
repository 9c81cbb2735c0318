"""Bars and p-values of reliability curves with groups and weights."""

import numpy as np
import pytest
from scipy.stats import binom

import caltest as ct
from caltest.estimation.curves._bars import effective_counts
from caltest.predictions._sample import make_sample
from caltest.predictions.cells._cells import cells_of
from tests.estimation.curves.test_bars_effective_interval import slow_interval
from tests.resampling.draws.test_signs import clustered

FOUR = ct.EqualWidth(4)


def test_dependence_widens_bars_and_raises_pvalues():
    y_true, prob, group = clustered((50,) * 20, 0.3, np.random.default_rng(0))
    plain, grouped = (ct.reliability_curve(y_true, prob, partition=FOUR, groups=ids, rng=0) for ids in (None, group))
    assert np.all(grouped.bar_upper - grouped.bar_lower >= plain.bar_upper - plain.bar_lower)
    assert (grouped.bar_upper - grouped.bar_lower).sum() > 1.5 * (plain.bar_upper - plain.bar_lower).sum()
    assert np.all(grouped.pvalue > plain.pvalue)
    assert "20 groups" in str(grouped)
    assert "20 groups" in str(grouped.cell_tests())


@pytest.mark.parametrize("design", ["weights", "groups", "both"])
def test_confidence_bars_equal_loops(design):
    y_true, prob, group = clustered((6,) * 8, 0.3, np.random.default_rng(1))
    weight = np.random.default_rng(2).exponential(size=48) if design != "groups" else None
    sample = make_sample(y_true, prob, groups=group if design != "weights" else None, sample_weight=weight)
    cells = cells_of(sample, FOUR)
    low, high = effective_counts(sample, cells).intervals(0.9)
    w = np.ones(48) if weight is None else sample.weight
    ids = np.arange(48) if sample.group is None else sample.group
    for b in range(cells.n_cells):
        inside = cells.index == b
        expected = slow_interval(sample.outcome[inside] == 1, w[inside], ids[inside], 0.9)
        assert (low[b], high[b]) == pytest.approx(expected)


def test_a_weighted_cell_of_equal_labels_has_a_bar_of_positive_width():
    """The variance of its labels is 0 up to rounding, which once gave bars of width 0."""
    rng, n_equal = np.random.default_rng(0), 0
    for seed in range(20):
        prob = np.where(rng.random(300) < 0.5, 0.985, rng.random(300))
        y_true = rng.random(300) < prob
        weight = rng.pareto(2.0, 300) + 1
        curve = ct.reliability_curve(y_true, prob, sample_weight=weight, bars="confidence", n_resamples=9, rng=seed)
        equal = (curve.observed < 1e-12) | (curve.observed > 1 - 1e-12)
        n_equal += equal.sum()
        assert np.all((curve.bar_upper - curve.bar_lower)[equal] > 0.01)
    assert n_equal > 20


def test_bars_of_resampled_observations_are_frequencies():
    rng = np.random.default_rng(1)
    prob = rng.beta(0.5, 50, 400)
    y_true = rng.random(400) < prob
    resampled = ct.Consistency(resample_predictions=True)
    curve = ct.reliability_curve(
        y_true, prob, partition=ct.EqualMass(6), resampling=resampled, confidence_level=0.999, n_resamples=99, rng=0
    )
    assert curve.bar_lower.min() >= 0
    assert curve.bar_upper.max() <= 1


@pytest.mark.slow
@pytest.mark.parametrize("bars", ["consistency", "confidence"])
def test_coverage_of_bars(bars):
    """Of 90 % bars on calibrated data, less 4 standard errors; consistency bars are asymptotic in the groups."""
    rng, inside, number = np.random.default_rng(3), 0, 0
    for seed in range(60):
        y_true, prob, group = clustered((20,) * 30, 0.1, rng)
        curve = ct.reliability_curve(y_true, prob, partition=FOUR, groups=group, bars=bars, n_resamples=199, rng=seed)
        inside += np.count_nonzero(~curve.outside)
        number += curve.n_cells
    assert inside >= binom.ppf(1e-4, number, 0.87)


def test_weighted_frequencies_and_simultaneous_bars():
    y_true, prob, _ = clustered((1,) * 300, 0.0, np.random.default_rng(4))
    weight = np.random.default_rng(5).exponential(size=300)
    one, all_cells = (
        ct.reliability_curve(y_true, prob, partition=FOUR, sample_weight=weight, simultaneous=s, rng=0)
        for s in (False, True)
    )
    inside = (prob >= 0.25) & (prob < 0.5)
    assert one.observed[1] == pytest.approx(np.average(y_true[inside], weights=weight[inside]))
    assert one.predicted[1] == pytest.approx(np.average(prob[inside], weights=weight[inside]))
    assert one.count[1] == inside.sum()
    assert np.all(all_cells.bar_lower <= one.bar_lower)
    assert np.all(all_cells.bar_upper >= one.bar_upper)
    wide = ct.reliability_curve(y_true, prob, partition=FOUR, sample_weight=weight, n_resamples=5, rng=0)
    assert (wide.bar_lower[0], wide.bar_upper[0]) == (0, 1)  # too few draws


def test_a_label_of_probability_0_is_rejected_in_its_cell():
    y_true, prob = np.array([1, 0, 1, 0] * 10), np.array([0.0, 0.4, 0.6, 0.9] * 10)
    curve = ct.reliability_curve(y_true, prob, partition=FOUR, groups=np.arange(40) // 4, n_resamples=99, rng=0)
    assert curve.pvalue[0] == 0.01
    resampled = ct.Consistency(resample_predictions=True)
    with pytest.raises(ValueError, match="`sample_weight` and `groups` need fixed predictions"):
        ct.reliability_curve(y_true, prob, groups=np.arange(40) // 2, resampling=resampled)
