"""Null distributions of statistics: computed exactly, known in the limit, or from Monte Carlo draws."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from caltest.predictions._arrays import Floats, Integers
from caltest.results._distribution import TIE_TOLERANCE, Distribution, Tail

__all__ = ["AllArrangements", "Distribution", "LimitDistribution", "MonteCarloDistribution", "Tail", "chi_squared"]


SMALLEST_PVALUE = float(np.finfo(np.float64).tiny)
"""A p-value is never reported as 0."""


@dataclass(frozen=True, eq=False)
class MonteCarloDistribution(Distribution):
    """Empirical distribution of B draws; tail probabilities count the observed data too.

    Values that differ by less than 1e-12 of the largest are ties.

    Attributes
    ----------
    values : array of shape (n_resamples,)
        The statistic of every draw.
    """

    values: Floats

    def _slack(self, x: float) -> float:
        return TIE_TOLERANCE * np.abs(self._finite).max(initial=abs(x) if math.isfinite(x) else 0.0)

    @property
    def _finite(self) -> Floats:
        finite = np.isfinite(self.values)
        return self.values if finite.all() else self.values[finite]

    @property
    def mean(self) -> float:
        """Mean of the finite draws."""
        return float(self._finite.mean()) if self._finite.size else math.inf

    @property
    def std(self) -> float:
        """Standard deviation of the finite draws."""
        return float(self._finite.std()) if self._finite.size else 0.0

    def sf(self, x: float) -> float:
        """Return ``(1 + #{T_b >= x}) / (1 + B)``, ties counted."""
        return float((1 + np.count_nonzero(self.values >= x - self._slack(x))) / (1 + len(self.values)))

    def tail(self, x: float) -> Tail:
        """Return ``(1 + #{T_b >= x}) / (1 + B)`` with its relative standard error."""
        probability = self.sf(x)
        error = math.sqrt((1 - probability) / (probability * len(self.values)))
        return Tail(probability, error, f"{len(self.values)} Monte Carlo draws")

    def cdf(self, x: float) -> float:
        """Return the share of the draws that are at most x."""
        return float(np.mean(self.values <= x + self._slack(x)))

    def quantile(self, q: float) -> float:
        """Return the smallest drawn value t with at least a share q of the draws at or below it."""
        return float(np.quantile(self.values, q, method="inverted_cdf"))


@dataclass(frozen=True, eq=False)
class AllArrangements(MonteCarloDistribution):
    """Distribution over all arrangements of the signs of groups, each as probable as the others.

    Attributes
    ----------
    values : array of shape (n_arrangements,)
        The statistic of every arrangement, the observed one among them.
    """

    @property
    def mean(self) -> float:
        """Mean of all arrangements; 0 where opposite values cancel but for rounding."""
        mean = super().mean
        return 0.0 if abs(mean) <= self._slack(mean) else mean

    def sf(self, x: float) -> float:
        """Return the share of the arrangements that are at least x, ties counted."""
        return float(np.mean(self.values >= x - self._slack(x)))

    def tail(self, x: float) -> Tail:
        """Return the share of the arrangements that are at least x."""
        return Tail(self.sf(x), 0.0, f"all {len(self.values)} arrangements of signs")


@dataclass(frozen=True, eq=False)
class LimitDistribution(Distribution):
    """The limit of a null distribution as the sample grows, by SciPy.

    Parameters
    ----------
    frozen : frozen distribution of scipy.stats
        Such as ``scipy.stats.chi2(4)``.
    name : str
        Its name in words.

    See Also
    --------
    caltest.resampling.chi_squared : A limit that is used often.

    Examples
    --------
    >>> from scipy.stats import halfnorm
    >>> LimitDistribution(halfnorm(), "half-normal").tail(1.96)
    Tail(probability=0.04999579029644087, relative_error=nan, method='half-normal')
    """

    frozen: Any
    name: str

    @property
    def mean(self) -> float:
        """Expected value."""
        return float(self.frozen.mean())

    @property
    def std(self) -> float:
        """Standard deviation."""
        return float(self.frozen.std())

    def sf(self, x: float) -> float:
        """Return P(T >= x)."""
        return float(self.frozen.sf(x))

    def tail(self, x: float) -> Tail:
        """Return P(T >= x)."""
        return Tail(self.sf(x), math.nan, self.name)

    def quantile(self, q: float) -> float:
        """Return the value t with P(T <= t) = q."""
        return float(self.frozen.ppf(q))


@dataclass(frozen=True)
class PointMassAtZero(Distribution):
    """The distribution of a statistic that is 0 whatever the labels are."""

    mean: ClassVar[float] = 0.0
    std: ClassVar[float] = 0.0

    def sf(self, x: float) -> float:
        """Return P(T >= x)."""
        return float(x <= 0)

    def tail(self, x: float) -> Tail:
        """Return P(T >= x)."""
        return Tail(self.sf(x), 0.0, "the statistic is always 0")

    def quantile(self, q: float) -> float:
        """Return 0."""
        return 0.0


def chi_squared(degrees_of_freedom: int) -> Distribution:
    """Return the chi-squared distribution; without a degree of freedom the statistic is 0.

    Parameters
    ----------
    degrees_of_freedom : int
        Its degrees of freedom.

    Returns
    -------
    Distribution
        The distribution.

    See Also
    --------
    caltest.resampling.LimitDistribution : What it returns.

    Examples
    --------
    >>> chi_squared(1).quantile(0.95)
    3.841458820694124
    """
    from scipy.stats import chi2

    if not degrees_of_freedom:
        return PointMassAtZero()
    return LimitDistribution(chi2(degrees_of_freedom), f"chi-squared({degrees_of_freedom})")


@dataclass(frozen=True, eq=False)
class CellDistribution:
    """Distribution of the contribution of one cell to a statistic.

    Attributes
    ----------
    values : array of shape (n_atoms,)
        Contributions, increasing and distinct.
    mass : array of shape (n_atoms,)
        Their probabilities.
    """

    values: Floats
    mass: Floats

    @classmethod
    def of(cls, values: Floats, mass: Floats) -> CellDistribution:
        """Sort atoms and merge those that tie."""
        return cls.of_each(values, mass, np.array([len(values)]))[0]

    @classmethod
    def of_each(cls, values: Floats, mass: Floats, sizes: Integers) -> list[Self]:
        """Return the distributions of several cells, whose numbers of atoms are ``sizes (n_cells,)``, one or more."""
        cell = np.repeat(np.arange(len(sizes)), sizes)
        order = np.lexsort((values, cell)) if len(sizes) > 1 else np.argsort(values, kind="stable")
        values, mass = values[order], mass[order]
        end = np.cumsum(sizes)
        is_first = np.diff(values, prepend=-np.inf) > TIE_TOLERANCE * values[end - 1][cell]
        is_first[end[:-1]] = True
        start = np.flatnonzero(is_first)
        values, mass = values[start], np.add.reduceat(mass, start)
        ends = pairwise([0, *np.searchsorted(start, end).tolist()])
        return [cls(values[low:high], mass[low:high]) for low, high in ends]

    @property
    def mean(self) -> float:
        """Expected contribution."""
        return float(self.values @ self.mass)

    @property
    def variance(self) -> float:
        """Variance of the contribution."""
        return float(np.square(self.values - self.mean) @ self.mass)

    def heavier_than(self, negligible: float) -> CellDistribution:
        """Return the distribution without the atoms of less mass."""
        return CellDistribution(self.values[self.mass > negligible], self.mass[self.mass > negligible])

    def less(self, noise: float) -> CellDistribution:
        """Return the distribution with so much less mass of every atom, without the atoms that have no more."""
        kept = self.mass > noise
        return CellDistribution(self.values[kept], self.mass[kept] - noise)

    def cut_off(self, scale: float) -> CellDistribution:
        """Return the distribution of the contribution or ``scale``, whichever is smaller."""
        return CellDistribution.of(np.minimum(self.values, scale), self.mass)

    def plus(self, other: CellDistribution) -> CellDistribution:
        """Return the distribution of the sum of two independent contributions, its atoms not sorted."""
        values = np.add.outer(self.values, other.values).ravel()
        return CellDistribution(values, np.multiply.outer(self.mass, other.mass).ravel())
