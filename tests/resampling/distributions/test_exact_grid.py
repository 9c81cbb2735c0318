"""Grids of sums: the same for masses that differ by rounding, and nothing beyond their end is lost."""

from functools import reduce

import numpy as np
import pytest

from caltest.resampling.distributions._base import CellDistribution
from caltest.resampling.distributions._exact import convolve, end_of_grid
from caltest.resampling.distributions._poisson_binomial import PoissonBinomial


def squared_residuals(rounding: float) -> list[CellDistribution]:
    rng, noise = np.random.default_rng(0), np.random.default_rng(1)
    cells = []
    for n in (30, 100, 1000, 3000):
        p = rng.random(n)
        count = PoissonBinomial.of(p)
        values = np.square(count.counts - p.sum()) / (p * (1 - p)).sum()
        mass = count.pmf + rounding * noise.random(len(values)) * count.pmf.max()
        cells.append(CellDistribution.of(values, mass))
    return cells


def test_rounding_of_far_masses_does_not_move_the_grid():
    assert end_of_grid(squared_residuals(0.0)) == end_of_grid(squared_residuals(1e-15))


def test_a_grid_ends_where_little_is_beyond():
    """The cells are close to normal, so that the sum of their squares is close to chi-squared(4)."""
    end = end_of_grid(squared_residuals(0.0))
    assert 93 < end < 250  # chi-squared(4) exceeds 93 with probability 3e-19


def test_atoms_beyond_the_end_are_counted_there():
    one = np.array([0, 3, 50]), np.array([0.5, 0.25, 0.25])
    other = np.array([1, 16]), np.array([0.5, 0.5])
    pmf = convolve([one, other], 16)
    expected = np.zeros(16)
    expected[[1, 4, 15]] = 0.25, 0.125, 0.625
    np.testing.assert_allclose(pmf, expected, atol=1e-15)
    assert pmf.sum() == pytest.approx(1)


def test_sums_of_many_cells_are_those_of_one_convolution_after_the_other():
    """Sums of probabilities, none of them negative, lose no digits; transforms lose 1e-15 or so of the largest one."""
    rng = np.random.default_rng(2)
    atoms = [(np.arange(n), rng.dirichlet(np.ones(n))) for n in rng.integers(1, 15, 1000, endpoint=True)]
    expected = reduce(np.convolve, [mass for _, mass in atoms])
    pmf = convolve(atoms, 2**13)[: len(expected)]
    np.testing.assert_allclose(pmf, expected, atol=1e-15)
    above = np.cumsum(expected[::-1])[::-1]
    rare = above < 1e-9
    np.testing.assert_allclose(np.cumsum(pmf[::-1])[::-1][rare], above[rare], atol=4e-15)
