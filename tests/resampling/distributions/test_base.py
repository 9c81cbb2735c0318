"""Null distributions: draws, limits, a statistic that is always 0, and contributions of cells."""

import math
from typing import ClassVar

import numpy as np
import pytest
from scipy.stats import chi2

from caltest.resampling.distributions._base import (
    CellDistribution,
    Distribution,
    LimitDistribution,
    MonteCarloDistribution,
    PointMassAtZero,
    Tail,
    chi_squared,
)


def test_draws():
    drawn = MonteCarloDistribution(np.array([0.1, 0.2, 0.3, np.inf]))
    assert drawn.mean == pytest.approx(0.2)
    assert drawn.std == pytest.approx(np.std([0.1, 0.2, 0.3]))
    assert drawn.sf(0.2) == pytest.approx(4 / 5)
    assert drawn.sf(math.inf) == pytest.approx(2 / 5)
    assert drawn.cdf(0.2) == pytest.approx(2 / 4)
    assert drawn.quantile(0.0) == pytest.approx(0.1)
    assert drawn.quantile(0.5) == pytest.approx(0.2)
    tail = drawn.tail(0.2)
    assert tail.probability == pytest.approx(4 / 5)
    assert tail.relative_error == pytest.approx(math.sqrt(0.2 / 0.8 / 4))
    assert tail.method == "4 Monte Carlo draws"
    infinite = MonteCarloDistribution(np.full(3, np.inf))
    assert (infinite.mean, infinite.std, infinite.sf(1.0)) == (math.inf, 0.0, 1.0)


def test_ties_of_draws_count():
    """Relative to the largest value, whatever the order of a sum was."""
    drawn = MonteCarloDistribution(np.array([0.3, 1e3, 0.1]))
    assert drawn.sf(0.1 + 0.2) == 3 / 4
    assert drawn.cdf(0.3 - 1e-10) == drawn.cdf(0.3) == 2 / 3
    assert drawn.sf(0.3 + 1e-8) == 2 / 4


def test_limits():
    limit = chi_squared(4)
    assert isinstance(limit, LimitDistribution)
    assert (limit.mean, limit.std) == (4.0, pytest.approx(math.sqrt(8)))
    for x in (0.5, 4.0, 30.0):
        assert limit.sf(x) == limit.tail(x).probability == chi2.sf(x, 4)
        assert limit.cdf(x) == pytest.approx(chi2.cdf(x, 4), rel=1e-7)
    assert limit.quantile(0.9) == chi2.ppf(0.9, 4)
    assert math.isnan(limit.tail(1.0).relative_error)
    assert str(limit.tail(1.0)) == "asymptotic: chi-squared(4)"


def test_a_statistic_that_is_always_zero():
    """Chi-squared without a degree of freedom is no distribution of draws."""
    zero = chi_squared(0)
    assert zero == PointMassAtZero()
    assert not hasattr(zero, "values")
    assert (zero.mean, zero.std, zero.quantile(0.3)) == (0.0, 0.0, 0.0)
    assert (zero.sf(0.0), zero.sf(1e-9), zero.cdf(0.0), zero.cdf(-1e-9)) == (1.0, 0.0, 1.0, 0.0)
    assert zero.tail(0.0) == Tail(1.0, 0.0, "the statistic is always 0")


def test_what_a_distribution_defaults_to():
    class Uniform(Distribution):
        mean: ClassVar[float] = 0.5
        std: ClassVar[float] = math.sqrt(1 / 12)

        def sf(self, x):
            return min(max(1.0 - x, 0.0), 1.0)

        def quantile(self, q):
            return q

    uniform = Uniform()
    assert uniform.cdf(0.3) == pytest.approx(0.3, abs=1e-8)
    assert uniform.tail(0.3).probability == 0.7
    assert str(uniform.tail(0.3)) == "asymptotic: limit of the null distribution"
    with pytest.raises(TypeError, match="abstract"):
        Distribution()


def test_tails_in_words():
    assert str(Tail(0.1, 1e-12, "convolved")) == "exact: convolved, relative error about 1e-12"
    assert str(Tail(0.1, math.inf, "Chernoff")) == "upper bound: Chernoff"
    assert str(Tail(0.1, math.nan, "normal")) == "asymptotic: normal"


def test_contributions_of_cells():
    cell = CellDistribution.of(np.array([3.0, 1.0, 1.0 + 1e-13, 2.0]), np.array([0.5, 0.125, 0.125, 0.25]))
    assert cell.values.tolist() == [1.0, 2.0, 3.0]
    np.testing.assert_allclose(cell.mass, [0.25, 0.25, 0.5])
    assert cell.mean == pytest.approx(2.25)
    assert cell.variance == pytest.approx((1.25**2 + 0.25**2) / 4 + 0.75**2 / 2)
    assert cell.heavier_than(0.25).values.tolist() == [3.0]
    several = CellDistribution.of_each(np.array([3.0, 1.0, 2.0, 2.0, 5.0, 0.0]), np.full(6, 0.5), np.array([2, 1, 3]))
    assert [one.values.tolist() for one in several] == [[1.0, 3.0], [2.0], [0.0, 2.0, 5.0]]
    ties = CellDistribution.of_each(np.array([1.0, 1.0 + 1e-13, 1.0]), np.array([0.25, 0.5, 1.0]), np.array([2, 1]))
    assert [one.mass.tolist() for one in ties] == [[0.75], [1.0]]
    coin = CellDistribution(np.array([0.0, 1.0]), np.array([0.25, 0.75]))
    both = CellDistribution.of(*(getattr(coin.plus(coin), name) for name in ("values", "mass")))
    assert both.values.tolist() == [0.0, 1.0, 2.0]
    np.testing.assert_allclose(both.mass, [1 / 16, 6 / 16, 9 / 16])
