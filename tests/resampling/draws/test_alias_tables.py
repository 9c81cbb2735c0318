"""Alias tables and strata."""

import numpy as np
import pytest
from scipy.stats import poisson

from caltest._compiled._draws import draw_counts
from caltest.resampling.draws._alias_tables import AliasTables, BinomialNumbers, Strata, _poisson
from tests.resampling.checks import assert_close


@pytest.mark.parametrize("size", [1, 2, 3, 17, 1000])
def test_alias_tables_draw_their_distribution(size):
    mass = np.random.default_rng(size).exponential(size=size) ** 4
    if size > 2:
        mass[1] = 0
    tables = AliasTables.of([mass, np.array([0.0, 1.0])]).take(np.array([0, 1, 0]))
    drawn = np.empty((40_000, 3), dtype=np.int64)
    draw_counts(*tables.arrays, np.uint64(7), 0, drawn)
    assert np.all(drawn[:, 1] == 1)
    counts = np.bincount(drawn[:, [0, 2]].ravel(), minlength=size)
    expected = 80_000 * mass / mass.sum()
    assert not np.any(counts[mass == 0])
    likely = expected > 5
    pearson = (np.square(counts - expected)[likely] / expected[likely]).sum()
    assert_close(pearson, likely.sum(), np.sqrt(2 * likely.sum()) + 1)


def test_strata_are_parts_of_cells():
    rng = np.random.default_rng(0)
    index = np.concatenate([rng.permutation(np.repeat([0, 2], [5000, 3])), np.full(2048, 1)])
    strata = Strata.of(index, 3)
    size = np.diff(strata.start)
    assert size.tolist() == [2048, 2048, 904, 2048, 3]
    assert strata.cell.tolist() == [0, 3, 4]
    np.testing.assert_array_equal(np.sort(strata.row), np.arange(len(index)))
    np.testing.assert_array_equal(index[strata.row], np.repeat([0, 1, 2], [5000, 2048, 3]))
    np.testing.assert_array_equal(strata.sum_by_cell(np.ones((2, 5, 1)))[..., 0], [[3, 1, 1]] * 2)
    assert len(strata.tables.begin) == len(size) + 1


def test_poisson_probabilities():
    for mean in (0.0, 0.3, 12.0, 2000.0):
        mass = _poisson(mean)
        np.testing.assert_allclose(mass, poisson.pmf(np.arange(len(mass)), mean), rtol=1e-9, atol=1e-300)
        assert mass.sum() == pytest.approx(1, abs=1e-12)


def test_binomial_numbers():
    """Their means and variances, up to 4 standard errors; of chances 0 and 1 nothing varies."""
    size, prob = np.array([1, 7, 98, 977, 5, 5]), np.array([0.3, 0.01, 0.2, 0.999, 0.0, 1.0])
    drawn = BinomialNumbers.of(size, prob).draw(20_000, np.random.default_rng(0))
    mean, variance = size * prob, size * prob * (1 - prob)
    assert (drawn >= 0).all()
    assert (drawn <= size).all()
    assert (abs(drawn.mean(axis=0) - mean) <= 4 * np.sqrt(variance / 20_000)).all()
    kurtosis = np.divide(1 - 6 * prob * (1 - prob), variance, out=np.zeros(6), where=variance > 0)
    error = variance * np.sqrt((2 + kurtosis) / 20_000)
    assert (abs(drawn.var(axis=0) - variance) <= 4 * error + 1e-12).all()
