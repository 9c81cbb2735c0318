"""Sums of residuals in segments, against loops over groups, cells and observations."""

import numpy as np
import pytest

import caltest as ct
from caltest._compiled._signs import independent_sums, shocked_sums, signed_sums_of_groups
from caltest.predictions._sample import make_sample
from caltest.resampling.draws._group_shocks import latent_bounds
from caltest.statistics._segments import ResidualSums, Segments, Spread, cells_of_groups, worth_of_cells
from tests.reference import group_inversion as naive
from tests.reference.cases import mostly_slow


def segments_of(n_outcomes, rng, *, weighted=True, n_groups=6):
    n = 40
    prob = rng.dirichlet(np.ones(n_outcomes), n)
    weight = rng.exponential(size=n) if weighted else np.ones(n)
    group, cell = rng.integers(0, n_groups, n), np.arange(n) % 3
    return Segments.of(prob, rng.integers(0, n_outcomes, n), weight, group, cell)


def rows_of(segments, outcome):
    """Residuals, weights, groups and cells as lists, for the loops."""
    error = (np.asarray(outcome)[:, None] == np.arange(segments.n_columns)) - segments.columns
    group = np.repeat(segments.group, np.diff(segments.start))
    return [*error], segments.weight.tolist(), group.tolist(), segments.cell.tolist()


@pytest.mark.parametrize("n_outcomes", [2, 4])
def test_estimate_and_inflation_equal_the_loops(n_outcomes):
    segments = segments_of(n_outcomes, np.random.default_rng(0))
    seen, rows = ResidualSums.of(segments), rows_of(segments, segments.outcome)
    assert seen.value == pytest.approx(naive.estimate(*rows), rel=1e-12)
    assert seen.inflation == pytest.approx(naive.inflation(*rows), rel=1e-12)


@pytest.mark.parametrize("n_outcomes", mostly_slow([2, 4]))
@pytest.mark.parametrize("weighted", [False, True])
def test_simulated_labels_equal_the_loops(n_outcomes, weighted):
    rng = np.random.default_rng(1)
    segments = segments_of(n_outcomes, rng, weighted=weighted)
    correlation, n_draws = np.array([0.0, 0.4]), 5
    shock = rng.standard_normal((segments.n_groups, n_draws), dtype=np.float32)
    noise = rng.standard_normal((len(segments.weight), n_draws), dtype=np.float32)
    margin = rng.dirichlet(np.ones(n_outcomes), len(segments.weight))
    value, inflation = np.empty((2, 2, n_draws))
    shocked_sums(
        segments.layout, shock, noise, latent_bounds(margin), correlation, segments.columns, segments.weight,
        segments.square, segments.keep, value, inflation,
    )  # fmt: skip
    group = np.repeat(segments.group, np.diff(segments.start)).tolist()
    for c, r in np.ndindex(2, n_draws):
        outcome = naive.labels(margin, group, shock[:, r], noise[:, r], correlation[c])
        rows = rows_of(segments, outcome)
        assert value[c, r] == pytest.approx(naive.estimate(*rows), rel=1e-10)
        assert inflation[c, r] == pytest.approx(naive.inflation(*rows), rel=1e-10)


@pytest.mark.parametrize("n_outcomes", [2, 3])
def test_independent_labels_equal_the_loops(n_outcomes):
    rng = np.random.default_rng(2)
    segments = segments_of(n_outcomes, rng)
    n, n_draws = len(segments.weight), 4
    alone = Segments.of(segments.prob, segments.outcome, segments.weight, None, segments.cell)
    noise = rng.standard_normal((n, n_draws), dtype=np.float32)
    value, bound = np.empty(n_draws), latent_bounds(alone.prob)
    given = alone.columns, alone.weight, alone.cell, alone.count, alone.factor, alone.total
    independent_sums(noise, bound, *given, value)
    for r in range(n_draws):
        outcome = naive.labels(alone.prob, range(n), np.zeros(n), noise[:, r], 0.0)
        assert value[r] == pytest.approx(naive.estimate(*rows_of(alone, outcome)), rel=1e-10)


@pytest.mark.parametrize("n_outcomes", [2, 3])
def test_signs_of_groups_equal_the_loops(n_outcomes):
    rng = np.random.default_rng(3)
    segments = segments_of(n_outcomes, rng)
    base, pattern = ResidualSums.of(segments).centred, rng.normal(size=(2, 3, segments.n_columns))
    shock = rng.standard_normal((segments.n_groups, 4), dtype=np.float32)
    value, variance = np.empty((2, 4))
    along = np.empty((2, 4))
    signed_sums_of_groups(segments.layout, shock, base, pattern, value, along, variance)
    for r in range(4):
        for j, scale in ((0, 0.0), (0, 0.7), (1, 0.3)):
            # One observation for each segment, with the residual that gives its sum.
            shift = scale * pattern[j]
            sums = np.sign(shock[segments.group, r])[:, None] * base + segments.mass[:, None] * shift[segments.place]
            rows = [*(sums / segments.mass[:, None])], segments.mass.tolist(), [*segments.group], [*segments.place]
            whole = value[r] + scale * along[j, r] + segments.squared_error(shift)
            assert whole == pytest.approx(naive.estimate(*rows), rel=1e-10, abs=1e-14)


def test_spread_is_that_of_independent_labels():
    """At inflation 1 and with a group for each observation: the standard deviation of T over simulated labels."""
    rng = np.random.default_rng(4)
    for n_outcomes in (2, 3):
        prob = rng.dirichlet(np.ones(n_outcomes), 60)
        weight, cell = rng.uniform(0.5, 2, 60), np.arange(60) % 2
        segments = Segments.of(prob, np.zeros(60, dtype=np.int64), weight, None, cell)
        noise = rng.standard_normal((60, 4000), dtype=np.float32)
        margin = 0.7 * segments.prob + 0.3 / n_outcomes
        value = np.empty(4000)
        given = segments.columns, segments.weight, segments.cell, segments.count, segments.factor, segments.total
        independent_sums(noise, latent_bounds(margin), *given, value)
        spread = value.std()
        kurtosis = np.mean((value - value.mean()) ** 4) / spread**4
        error = spread * np.sqrt((kurtosis - 1) / 4 / len(value))
        assert abs(Spread.of(segments, margin)(1.0) - spread) < 4 * error


def test_cells_are_worth_groups_of_equal_weight():
    prob, weight = [0.1, 0.2, 0.3, 0.8, 0.9], [1.0, 1.0, 2.0, 3.0, 1.0]
    sample = make_sample([0, 1, 0, 1, 1], prob, groups=[0, 0, 1, 1, 2], sample_weight=weight)
    np.testing.assert_allclose(worth_of_cells(sample, ct.EqualWidth(2)), [2.0, 16 / 10])
    alone = make_sample([0, 1, 0, 1, 1], prob, sample_weight=weight)
    np.testing.assert_allclose(worth_of_cells(alone, ct.EqualWidth(2)), [16 / 6, 16 / 10])


def test_default_cells_follow_the_number_of_groups():
    """Groups that are alone in a cell show nothing of its error."""
    rng = np.random.default_rng(5)
    prob, y_true = rng.random(400), rng.integers(0, 2, 400)
    group = np.arange(400) // 40
    constant = rng.random(10)[group]
    assert cells_of_groups(make_sample(y_true, prob, groups=group)) == ct.VarianceTree()
    few = make_sample(y_true, constant, groups=group)
    assert cells_of_groups(few) == ct.VarianceTree(max_cells=2)
    assert worth_of_cells(few, ct.VarianceTree(max_cells=2)).min() >= 5
    heavy = make_sample(y_true, prob, sample_weight=np.where(np.arange(400) % 100, 0.01, 10.0))
    assert cells_of_groups(heavy).max_cells == 1
