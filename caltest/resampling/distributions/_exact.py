"""Exact null distributions of sums and maxima over cells, without Monte Carlo error."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np

from caltest._compiled._poisson_binomial import pearson_tail
from caltest.predictions._arrays import Floats, Integers
from caltest.resampling.distributions._base import SMALLEST_PVALUE, TIE_TOLERANCE, CellDistribution, Distribution, Tail
from caltest.resampling.distributions._poisson_binomial import CHERNOFF, SMALLEST_EXACT

NEGLIGIBLE = 1e-19
"""Atoms of less mass are dropped; a million of them lose 1e-13."""
SMALLEST_GRID = 2**14
"""Number of points."""
_BLOCK, _TOGETHER = 2**18, 8  # numbers; distributions whose sum is found at a time
_SHORT = 2**14  # points of a grid of which several rows stay in cache
_SLOPES = (9.0, 7.0, 5.0, 3.0, 1.5, 0.7, 0.3, 0.1)  # over the standard deviation
_NOISE = 1e-13  # of a mass that a Fourier transform returned, over the largest one
_PARTS = 8  # the end of a grid is a power of 2^(1/8)
_FEWEST_STEPS, _ROOM = 256, 64  # of the grid: below a quantile, and above it, where it smears atoms

_Atoms = tuple[Integers, Floats]
_MOST_ATOMS = 10**6
_HOPELESS = 5  # estimates of their number are rough
_LARGEST_GRID, _LARGEST_LATTICE = 2**18, 2**20
_AGREEMENT = 2e-4
_ALIGNED = 1e-6
_FAR = 6.0  # standard deviations, below which no bound of 1e-12 is to be expected
_ROUNDING = 1e-15  # of a sum of probabilities that Fourier transforms returned
_PRODUCT = "product of the cells' distribution functions"
Bound = Callable[[float], float]
"""From x to an upper bound of P(T >= x)."""
MOST_COUNTS = 20_000
"""The exact distribution is computed if there are at most so many different counts: some milliseconds."""
_PEARSON_ROUNDING = 1e-10  # of values that are equal: ties count


def quantile_of_sum(cells: Sequence[CellDistribution], q: float) -> float:
    """Return the q-quantile of a sum, to within 1/256 of it or the step of a grid of 2**14 points.

    Rare large contributions make the grid coarse. Contributions above the quantile are cut off, which does not change
    the distribution below it, until the grid is fine enough.
    """
    if q <= math.prod(float(cell.mass[0]) for cell in cells):
        return sum(float(cell.values[0]) for cell in cells)
    before = math.inf
    while True:
        step = end_of_grid(cells) / SMALLEST_GRID
        pmf = convolve([split(cell.values, cell.mass, step) for cell in cells], SMALLEST_GRID)
        found = float(np.interp(q, np.cumsum(pmf), np.arange(SMALLEST_GRID) * step))
        if found >= _FEWEST_STEPS * step or step > before / 2:
            return found
        cells, before = [cell.cut_off(2 * found + _ROOM * step) for cell in cells], step


def split(values: Floats, mass: Floats, step: float) -> _Atoms:
    """Split atoms linearly over the two grid points beside them: the mean stays exact."""
    position = values / step
    point = position.astype(np.int64)
    upper = mass * (position - point)
    return np.concatenate([point, point + 1]), np.concatenate([mass - upper, upper])


def convolve(cells: Sequence[_Atoms], size: int) -> Floats:
    """Return the distribution of the sum on grid points ``0 .. size - 1``; the last one has what is beyond it, too.

    Atoms beyond the last point are left out of the transforms, so that they do not wrap. Sums beyond it of several
    atoms must be negligible, because they do. Short distributions are convolved with each other first: a transform of
    the whole grid for each cell takes longer, and leaves more rounding in the tail.
    """
    masses = [np.bincount(np.minimum(point, size), weight).astype(np.float64, copy=False) for point, weight in cells]
    inside = math.prod(1 - float(mass[size:].sum()) for mass in masses)
    masses, before = [mass[:size] for mass in masses], math.inf
    while 1 < len(masses) < before:
        before = len(masses)
        masses = _fewer(masses, size)
    at_once = max(_BLOCK // size, 1) if size <= _SHORT else 1  # several transforms in one call are faster
    spectrum = np.ones(size // 2 + 1)
    for start in range(0, len(masses), at_once):
        rows = _rows(masses[start : start + at_once], size)
        spectrum = spectrum * np.multiply.reduce(np.fft.rfft(rows), axis=0)
    pmf = np.clip(np.fft.irfft(spectrum, size), 0.0, None)
    pmf[-1] += 1 - inside
    return pmf


def _fewer(masses: Sequence[Floats], size: int) -> list[Floats]:
    """Return the distributions of sums of `_TOGETHER` each, of similar length, as far as they fit into the grid."""
    found: list[Floats] = []
    masses, start = sorted(masses, key=len), 0
    while start < len(masses):
        n_groups = max(_BLOCK // (_TOGETHER**2 * len(masses[start])), 1)
        some = masses[start : start + n_groups * _TOGETHER]
        ends = np.add.reduceat([len(mass) - 1 for mass in some], range(0, len(some), _TOGETHER))
        part = 1 << max(int(ends.max()).bit_length() - 3, 0)
        length = part * (int(ends.max()) // part + 1)  # 4 to 8 times a power of two
        if length > size // 4:
            return found + masses[start:]
        rows = _rows(some + [np.ones(1)] * (-len(some) % _TOGETHER), length)
        spectrum = np.fft.rfft(rows).reshape(len(ends), _TOGETHER, -1)
        sums = np.fft.irfft(np.multiply.reduce(spectrum, axis=1), length)
        found += [row[: end + 1] for row, end in zip(sums, ends, strict=True)]
        start += len(some)
    return found


def _rows(masses: Sequence[Floats], length: int) -> Floats:
    rows = np.zeros((len(masses), length))
    for row, mass in zip(rows, masses, strict=True):
        row[: len(mass)] = mass
    return rows


def end_of_grid(cells: Sequence[CellDistribution]) -> float:
    """Return where a grid may end: the largest possible sum, or what is exceeded with probability below 1e-18.

    Splitting may move an atom up by one step per cell; the grid has room for that, as what leaves it would wrap. Far
    from the mean a mass is mostly the rounding of a Fourier transform, which exponential moments enlarge: so much is
    subtracted from all, and the end is rounded up to a power of 2^(1/8). So the same predictions have the same grid in
    whatever way their distributions were computed, and p-values that agree to rounding, not just to the grid's error.
    """
    cells = [cell.less(_NOISE * float(cell.mass.max())) for cell in cells]
    top = sum(float(cell.values[-1]) for cell in cells)
    std = math.sqrt(sum(cell.variance for cell in cells))
    if std > 0:  # Chernoff's inequality, for the t of a normal distribution and for heavier tails
        t = np.array(_SLOPES) / std
        log_moment = t * top
        for cell in cells:
            log_moment += np.log(np.exp(np.outer(t, cell.values - cell.values[-1])) @ cell.mass)
        top = min(top, float(((log_moment - math.log(1e-18)) / t).min()))
    top = top * (1 + 2 * (len(cells) + 2) / SMALLEST_GRID) + 1e-300
    return 2.0 ** (math.ceil(_PARTS * math.log2(top)) / _PARTS)


@dataclass(frozen=True, eq=False)
class MaximumDistribution(Distribution):
    r"""Distribution of the largest of independent contributions: :math:`P(\max \ge t) = 1 - \prod_b P(d_b < t)`.

    Attributes
    ----------
    cells : sequence of CellDistribution
        The distribution of each cell's contribution.
    bound : callable
        As in `SumDistribution`.
    """

    cells: Sequence[CellDistribution]
    bound: Bound | None = None

    @cached_property
    def _atoms(self) -> tuple[Floats, Floats]:
        """Possible values, increasing, and the probability of each value or a larger one."""
        values = np.unique(np.concatenate([cell.values for cell in self.cells]))
        return values, _maximum_tail(self.cells, values - self._slack)

    @property
    def _slack(self) -> float:
        return TIE_TOLERANCE * max(float(cell.values[-1]) for cell in self.cells)

    @property
    def _mass(self) -> Floats:
        return -np.diff(np.append(self._atoms[1], 0.0))

    @property
    def mean(self) -> float:
        """Expected value."""
        return float(self._atoms[0] @ self._mass)

    @property
    def std(self) -> float:
        """Standard deviation."""
        return float(math.sqrt(np.square(self._atoms[0] - self.mean) @ self._mass))

    def sf(self, x: float) -> float:
        """Return P(T >= x), ties counted."""
        return self.tail(x).probability

    def cdf(self, x: float) -> float:
        """Return P(T <= x), ties counted."""
        return 1.0 - float(_maximum_tail(self.cells, np.array(x + self._slack)))

    def tail(self, x: float) -> Tail:
        """Return P(T >= x), ties counted, with its method and error; below 1e-12 an upper bound."""
        floor = x - self._slack
        probability = float(_maximum_tail(self.cells, np.array(floor)))
        if probability >= SMALLEST_EXACT:
            return Tail(probability, max(1e-12, _ROUNDING / probability), _PRODUCT)
        return _far_tail(SMALLEST_EXACT if self.bound is None else self.bound(floor), _PRODUCT)

    def quantile(self, q: float) -> float:
        """Return the smallest value t with P(T <= t) >= q."""
        values, above = self._atoms
        below = 1.0 - np.append(above[1:], 0.0)
        return float(values[np.argmax(below >= q - TIE_TOLERANCE)])


def _maximum_tail(cells: Sequence[CellDistribution], floor: Floats) -> Floats:
    """Return the probability that one cell at least reaches each of the floors ``(...)``."""
    log_below = np.zeros(floor.shape)
    with np.errstate(divide="ignore"):
        for cell in cells:
            above = np.append(np.cumsum(cell.mass[::-1])[::-1], 0.0)
            log_below += np.log1p(-np.minimum(above[np.searchsorted(cell.values, floor)], 1.0))
    return -np.expm1(log_below)


@dataclass(frozen=True, eq=False)
class SumDistribution(Distribution):
    r"""Distribution of a sum of independent contributions, :math:`T = \sum_b v_b`.

    A tail probability comes from the first of these that applies:

    1. on the lattice of the contributions, if there is one: a convolution without any discretisation, ties included;
    2. atom by atom, from the distributions of two halves of the cells, while each has at most 10^6 atoms: exact to
       rounding, ties included;
    3. on a grid fine enough that halving its step changes nothing: each atom is split linearly over its two
       neighbours, and the survival function is interpolated at half steps.

    Below 1e-12 an upper bound is reported, which is 1e-12 at most: Chernoff's where one is known, so that nothing is
    convolved where it is that small. The tail that is reported never increases with x.

    Attributes
    ----------
    cells : sequence of CellDistribution
        The distribution of each cell's contribution.
    bound : callable or None
        Function from x to an upper bound of P(T >= x); None where none is known.
    spacing : float
        How much one more event adds to a contribution, where that is the same in all cells.
    unit : float or None
        Step of the lattice on which all contributions lie, if there is one.
    observed : array of shape (n_cells,) or None
        What each cell contributed to an observed value. This value is an atom of the distribution, which a grid would
        count by half; with known contributions it counts in full.
    """

    cells: Sequence[CellDistribution]
    spacing: float
    bound: Bound | None = None
    unit: float | None = None
    observed: Floats | None = None

    @cached_property
    def mean(self) -> float:
        """Expected value."""
        return sum(cell.mean for cell in self.cells)

    @cached_property
    def std(self) -> float:
        """Standard deviation."""
        return math.sqrt(sum(cell.variance for cell in self.cells))

    def sf(self, x: float) -> float:
        """Return P(T >= x), ties counted."""
        return self.tail(x).probability

    @property
    def _slack(self) -> float:
        return TIE_TOLERANCE * sum(float(cell.values[-1]) for cell in self.cells)

    def cdf(self, x: float) -> float:
        """Return P(T <= x), ties counted."""
        return 1.0 - self.sf(x + self.unit / 2) if self._has_lattice and self.unit else super().cdf(x)

    def tail(self, x: float) -> Tail:
        """Return P(T >= x), ties counted, with its method and error; below 1e-12 an upper bound."""
        floor = x - self._slack
        known = self.observed is not None and abs(float(self.observed.sum()) - x) <= self._slack
        contributions = self.observed if known else None
        if floor <= sum(cell.values[0] for cell in self.cells):
            return Tail(1.0, 0.0, "the whole distribution")
        far = floor > self.mean + _FAR * self.std
        bound = self.bound(floor) if far and self.bound is not None else 1.0
        if bound < SMALLEST_EXACT:
            return _far_tail(bound, CHERNOFF)
        if self._has_lattice:
            tail = _on_lattice(self.cells, self.unit, floor)
        elif self._halves is not None:
            tail = _from_atoms(self._halves, floor)
        else:
            tail = _on_grid(self.cells, floor, contributions=contributions, spacing=self.spacing)
        return tail if tail.probability >= SMALLEST_EXACT else _far_tail(bound, tail.method)

    def quantile(self, q: float) -> float:
        """Return the q-quantile, to within 1/256 of it or the step of a grid of 2**14 points."""
        return quantile_of_sum(self.cells, q)

    @property
    def _has_lattice(self) -> bool:
        return self.unit is not None and sum(cell.values[-1] for cell in self.cells) < self.unit * _LARGEST_LATTICE

    @cached_property
    def _halves(self) -> tuple[CellDistribution, CellDistribution] | None:
        return _meet_in_the_middle(self.cells)


def _far_tail(bound: float, method: str) -> Tail:
    """Return what is reported of a tail below 1e-12."""
    return Tail(max(min(bound, SMALLEST_EXACT), SMALLEST_PVALUE), math.inf, method)


def _meet_in_the_middle(cells: Sequence[CellDistribution]) -> tuple[CellDistribution, CellDistribution] | None:
    """Return two distributions whose sum is T, the second one sorted; None if they would have too many atoms."""
    halves = [CellDistribution(np.zeros(1), np.ones(1)), CellDistribution(np.zeros(1), np.ones(1))]
    cells = sorted((cell.heavier_than(NEGLIGIBLE) for cell in cells), key=lambda cell: -len(cell.values))
    if min(_n_atoms(cells[::2]), _n_atoms(cells[1::2])) > _HOPELESS * _MOST_ATOMS:
        return None
    for cell in cells:
        halves.sort(key=lambda half: len(half.values))
        if len(halves[0].values) * len(cell.values) > 4 * _MOST_ATOMS:
            return None
        halves[0] = halves[0].plus(cell).heavier_than(NEGLIGIBLE)
    if max(len(half.values) for half in halves) > _MOST_ATOMS:
        return None
    order = np.argsort(halves[1].values)
    return halves[0], CellDistribution(halves[1].values[order], halves[1].mass[order])


def _n_atoms(cells: Sequence[CellDistribution]) -> float:
    """Estimate how many atoms of a sum are not negligible: of normal distributions, those of an ellipsoid."""
    log_radius, log_number, k = -math.log(NEGLIGIBLE), 0.0, 0
    for cell in cells:
        entropy = -float(cell.mass @ np.log(cell.mass))
        log_std = entropy - math.log(2 * math.pi * math.e) / 2  # in atoms
        if log_std < -1:
            log_number += math.log(len(cell.values))  # too few to be normal
            continue
        log_radius -= log_std + math.log(2 * math.pi) / 2
        log_number += log_std
        k += 1
    if k and log_radius > 0:
        log_number += k / 2 * math.log(2 * math.pi * log_radius) - math.lgamma(k / 2 + 1)
    return math.exp(min(log_number, 700.0))


def _from_atoms(halves: tuple[CellDistribution, CellDistribution], floor: float) -> Tail:
    """Return P(T >= floor) from two halves."""
    one, other = halves
    above = np.append(np.cumsum(other.mass[::-1])[::-1], 0.0)[np.searchsorted(other.values, floor - one.values)]
    probability = float(one.mass @ above)
    lost = _ROUNDING + NEGLIGIBLE * (len(one.values) + len(other.values))
    return Tail(probability, max(1e-12, lost / max(probability, 1e-300)), "cells convolved atom by atom")


def _on_lattice(cells: Sequence[CellDistribution], unit: Any, floor: float) -> Tail:
    atoms = [(np.rint(cell.values / unit).astype(np.int64), cell.mass) for cell in cells]
    size = 1 << sum(int(point[-1]) for point, _ in atoms).bit_length()
    probability = float(convolve(atoms, size)[math.ceil(floor / unit - 1e-6) :].sum())
    error = max(1e-12, _ROUNDING / max(probability, 1e-300))
    return Tail(probability, error, "cells convolved on the lattice of the predictions")


def _on_grid(cells: Sequence[CellDistribution], floor: float, *, contributions: Floats | None, spacing: float) -> Tail:
    """Halve the step until the tail settles."""
    top = end_of_grid(cells)
    atom = 0.0 if contributions is None else _observed_mass(cells, contributions, spacing)
    size, previous = SMALLEST_GRID // 2, math.nan
    while True:
        step = top / size
        pmf = convolve([split(cell.values, cell.mass, step) for cell in cells], size)
        first = max(math.floor(floor / step) - 1, 0)
        probability = float(pmf[first:] @ _share_above(np.arange(first, size), floor, step))
        if contributions is not None:
            probability += atom * (1 - _share_counted(contributions, floor, step))
        error = abs(probability / previous - 1) if previous else math.nan
        if error < _AGREEMENT or size >= _LARGEST_GRID or probability < SMALLEST_EXACT:
            # Atoms of other patterns may lie within a step of the observed one; grids that agree prove nothing there.
            error = max(error, (_ROUNDING + atom / 4) / max(probability, 1e-300))
            return Tail(probability, error, f"cells convolved on a grid of {size} points")
        size, previous = 2 * size, probability


def _share_above(point: Integers, floor: float, step: float) -> Floats:
    """Return the share of the mass of grid points above the floor; it is spread over half a step on either side."""
    low, high = (np.maximum((point + half) * step - floor, 0.0) for half in (-0.5, 0.5))
    return (high - low) / step


def _observed_mass(cells: Sequence[CellDistribution], observed: Floats, spacing: float) -> float:
    """Return P(T = x) for observed contributions, as far as the pattern of signs stays the observed one.

    One more event in one cell and one event less in another may leave a sum of absolute deviations unchanged. Within a
    pattern of signs all sums lie ``spacing`` apart, so that many sets of labels have exactly the observed value.
    """
    same, zero = np.ones(1), 0  # zero: where in ``same`` the observed sum stands
    for cell, value in zip(cells, observed, strict=True):
        moves = (cell.values - value) / spacing
        whole = np.abs(moves - np.rint(moves)) < _ALIGNED
        if not whole.any():  # so improbable that the cell's window leaves it out
            return 0.0
        move = np.rint(moves[whole]).astype(np.int64)
        same = np.convolve(same, np.bincount(move - move[0], cell.mass[whole]))
        zero -= int(move[0])
    return float(same[zero]) if 0 <= zero < len(same) else 0.0


def _share_counted(observed: Floats, floor: float, step: float) -> float:
    """Return the share of the observed atom's mass that a grid counts, once it is split over its neighbours."""
    position = observed / step
    spread = reduce(np.convolve, [np.array([1 - upper, upper]) for upper in position % 1])
    point = int(np.floor(position).sum()) + np.arange(len(spread))
    return float(spread @ _share_above(point, floor, step))


def pearson_statistic(deviation: Floats, expected: Floats) -> Floats:
    r"""Return :math:`X^2 = \sum_k (N_k - m_k)^2 / m_k` over the outcomes that are expected.

    Parameters
    ----------
    deviation : array of shape (..., n_outcomes)
        Counts (or weights) of the outcomes minus their expected values.
    expected : array of shape (..., n_outcomes)
        Expected values, not negative; an outcome with 0 adds nothing.
    """
    return (np.square(deviation) / np.where(expected > 0, expected, np.inf)).sum(axis=-1)


def n_counts(n_samples: int, n_outcomes: int) -> int:
    """Return how many different counts of outcomes there are."""
    return math.comb(n_samples + n_outcomes - 1, n_outcomes - 1)


def exact_pearson_pvalue(prob: Floats, statistic: float) -> float:
    """Return the probability of a statistic at least as large, computed from all counts of three or four outcomes.

    Parameters
    ----------
    prob : array of shape (n_samples, n_outcomes)
        Probabilities of the outcomes.
    statistic : float
        The observed value.
    """
    four = np.zeros((len(prob), 4))
    four[:, : prob.shape[1]] = prob
    tail = pearson_tail(four, four.sum(axis=0), statistic - _PEARSON_ROUNDING * (1 + statistic))
    return min(max(tail, SMALLEST_PVALUE), 1.0)
