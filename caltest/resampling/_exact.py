r"""Exact null distributions of sums and maxima over cells, without Monte Carlo error.

With predictions fixed, a two-outcome lens and a fixed partition, the event counts of the cells are independent
Poisson-binomial variables. The distribution of a sum over cells is a convolution, and the distribution function of a
maximum is the product of the cells' distribution functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.resampling._distributions import TIE_TOLERANCE, CellDistribution, Distribution, Tail
from caltest.resampling._grid import (
    NEGLIGIBLE,
    SMALLEST_GRID,
    convolve,
    end_of_grid,
    quantile_of_sum,
    split,
    tilt,
    tilted_mass,
)

_MOST_ATOMS = 10**6
_HOPELESS = 100  # estimates of their number are rough
_FOURIER_FLOOR = 1e-8
_LOG_SMALLEST = 80.0  # terms below exp(-80) of the largest are dropped
_LARGEST_GRID, _LARGEST_LATTICE = 2**18, 2**20
_AGREEMENT, _FAR_AGREEMENT = 2e-4, 1e-2
_ALIGNED = 1e-6
_PRODUCT = "product of the cells' distribution functions"
_LARGEST_ERROR = 0.1


@dataclass(frozen=True, eq=False)
class MaximumDistribution(Distribution):
    r"""Distribution of the largest of independent contributions: :math:`P(\max \ge t) = 1 - \prod_b P(d_b < t)`.

    Attributes
    ----------
    cells, with_tails
        As in `SumDistribution`.
    """

    cells: Sequence[CellDistribution]
    with_tails: Callable[[], Sequence[CellDistribution]]

    @cached_property
    def _atoms(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Possible values, increasing, and the probability of each value or a larger one."""
        values = np.unique(np.concatenate([cell.values for cell in self.cells]))
        return values, _maximum_tail(self.cells, values - self._slack)

    @property
    def _slack(self) -> float:
        return TIE_TOLERANCE * max(float(cell.values[-1]) for cell in self.cells)

    @property
    def _mass(self) -> NDArray[np.float64]:
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
        r"""Return :math:`-\mathrm{expm1} \sum_b \log(1 - P(d_b \ge x))`, which keeps its digits in the tail."""
        floor = np.array(x - self._slack)
        probability = float(_maximum_tail(self.cells, floor))
        return probability if probability > _FOURIER_FLOOR else float(_maximum_tail(self.with_tails(), floor))

    def cdf(self, x: float) -> float:
        """Return P(T <= x), ties counted."""
        return 1.0 - float(_maximum_tail(self.cells, np.array(x + self._slack)))

    def tail(self, x: float) -> Tail:
        """Return P(T >= x), ties counted, with its method and error."""
        return Tail(self.sf(x), 1e-12, _PRODUCT)

    def quantile(self, q: float) -> float:
        """Return the smallest value t with P(T <= t) >= q."""
        values, above = self._atoms
        below = 1.0 - np.append(above[1:], 0.0)
        return float(values[np.argmax(below >= q - TIE_TOLERANCE)])


def _maximum_tail(cells: Sequence[CellDistribution], floor: NDArray[np.float64]) -> NDArray[np.float64]:
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
       neighbours, and the survival function is interpolated at half steps;
    4. below 1e-8, where Fourier transforms would return noise, by exponential tilting (a change of measure that puts
       the mean at x, exact on atoms) of distributions of the cells with accurate tails.

    Attributes
    ----------
    cells : sequence of CellDistribution
        The distribution of each cell's contribution.
    with_tails : callable
        Returns the same distributions with a small relative error in the far tails; called for tail probabilities below
        1e-8.
    spacing : float
        How much one more event adds to a contribution, where that is the same in all cells.
    unit : float or None
        Step of the lattice on which all contributions lie, if there is one.
    observed : array of shape (n_cells,) or None
        What each cell contributed to an observed value. This value is an atom of the distribution, which a grid would
        count by half; with known contributions it counts in full.
    """

    cells: Sequence[CellDistribution]
    with_tails: Callable[[], Sequence[CellDistribution]]
    spacing: float
    unit: float | None = None
    observed: NDArray[np.float64] | None = None

    @property
    def mean(self) -> float:
        """Expected value."""
        return sum(cell.mean for cell in self.cells)

    @property
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
        """Return P(T >= x), ties counted, with its method and error."""
        floor = x - self._slack
        known = self.observed is not None and abs(float(self.observed.sum()) - x) <= self._slack
        contributions = self.observed if known else None
        if floor <= sum(cell.values[0] for cell in self.cells):
            return Tail(1.0, 0.0, "the whole distribution")
        if floor > self.mean and tilt(self.cells, floor)[1] < math.log(_FOURIER_FLOOR):
            return self._far_tail(floor, contributions)
        if self._has_lattice:
            tail = _on_lattice(self.cells, self.unit, floor)
        elif self._halves is not None:
            tail = _from_atoms(self._halves, floor)
        else:
            tail = _on_grid(self.cells, floor, contributions=contributions, spacing=self.spacing)
        return tail if tail.probability > _FOURIER_FLOOR else self._far_tail(floor, contributions)

    def bounds(self, x: float) -> tuple[float, float]:
        """Return rigorous bounds on P(T >= x), up to rounding: all atoms moved down, and up, to the grid.

        They are absolute: below 1e-12 the upper one is rounding noise.
        """
        floor, top = x - self._slack, end_of_grid(self.cells)
        step = top / _LARGEST_GRID
        above = []
        for moved in (np.floor, np.ceil):
            pmf = convolve(
                [(moved(cell.values / step).astype(np.int64), cell.mass) for cell in self.cells], _LARGEST_GRID
            )
            above.append(float(pmf[min(math.ceil(floor / step), _LARGEST_GRID) :].sum()))
        return above[0], min(above[1], 1.0)

    def quantile(self, q: float) -> float:
        """Return the q-quantile, to within 1/256 of it or the step of a grid of 2**14 points."""
        return quantile_of_sum(self.cells, q)

    @property
    def _has_lattice(self) -> bool:
        return self.unit is not None and sum(cell.values[-1] for cell in self.cells) < self.unit * _LARGEST_LATTICE

    @cached_property
    def _halves(self) -> tuple[CellDistribution, CellDistribution] | None:
        return _meet_in_the_middle(self.cells)

    def _far_tail(self, floor: float, contributions: NDArray[np.float64] | None) -> Tail:
        cells = self.with_tails()
        largest = sum(cell.values[-1] for cell in cells)
        if floor > largest:
            return Tail(1e-300, math.inf, "beyond all outcomes of probability above 1e-305")
        if floor > largest * (1 - 1e-9):
            probability = math.prod(float(cell.mass[-1]) for cell in cells)
            return Tail(max(probability, 5e-324), 1e-9, "the largest possible value")
        theta, log_bound = tilt(cells, floor)
        bound = Tail(math.exp(log_bound) or 5e-324, math.inf, "Chernoff's inequality")
        tilted = [CellDistribution(cell.values, tilted_mass(cell, theta)).heavier_than(NEGLIGIBLE) for cell in cells]
        halves = None if self._has_lattice else _meet_in_the_middle(tilted)
        if self._has_lattice:
            tail = _on_lattice(tilted, self.unit, floor, theta)
        elif halves is not None:
            tail = _from_atoms(halves, floor, theta)
        else:
            tail = _on_grid(tilted, floor, theta, contributions=contributions, spacing=self.spacing)
        scaled = tail.probability * math.exp(log_bound)
        if scaled <= 0 or tail.relative_error > _LARGEST_ERROR:
            return bound
        return Tail(scaled, tail.relative_error, tail.method + ", tilted to the tail")


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
    """Estimate how many atoms of a sum are not negligible: those of an ellipsoid inside the box of all."""
    k = len(cells)
    log_ball = k / 2 * math.log(math.pi) - math.lgamma(k / 2 + 1)
    return math.exp(min(log_ball + sum(math.log(len(cell.values) / 2) for cell in cells), 700.0))


def _from_atoms(halves: tuple[CellDistribution, CellDistribution], floor: float, theta: float = 0.0) -> Tail:
    """Return P(T >= floor) from two halves; with ``theta`` the halves are tilted and the tail is tilted back."""
    one, other = halves
    middle = other.mean
    weighted = other.mass * np.exp(-theta * (other.values - middle))
    above = np.append(np.cumsum(weighted[::-1])[::-1], 0.0)[np.searchsorted(other.values, floor - one.values)]
    probability = float((one.mass * np.exp(-theta * (one.values + middle - floor))) @ above)
    lost = NEGLIGIBLE * (len(one.values) + len(other.values))
    return Tail(probability, max(1e-12, lost / max(probability, 1e-300)), "cells convolved atom by atom")


def _on_lattice(cells: Sequence[CellDistribution], unit: Any, floor: float, theta: float = 0.0) -> Tail:
    atoms = [(np.rint(cell.values / unit).astype(np.int64), cell.mass) for cell in cells]
    size = 1 << sum(int(point[-1]) for point, _ in atoms).bit_length()
    pmf = convolve(atoms, size)
    first = math.ceil(floor / unit - 1e-6)
    probability = float(pmf[first:] @ np.exp(-theta * (unit * np.arange(first, size) - floor)))
    return Tail(
        probability, max(1e-12, 1e-15 / max(probability, 1e-300)), "cells convolved on the lattice of the predictions"
    )


def _on_grid(
    cells: Sequence[CellDistribution],
    floor: float,
    theta: float = 0.0,
    *,
    contributions: NDArray[np.float64] | None,
    spacing: float,
) -> Tail:
    """Halve the step until the tail settles; with ``theta`` cells are tilted and the tail is tilted back."""
    top = end_of_grid(cells)
    atom = 0.0 if contributions is None else _observed_mass(cells, contributions, spacing)
    size, previous = SMALLEST_GRID // 2, math.nan
    while True:
        step = top / size
        pmf = convolve([split(cell.values, cell.mass, step) for cell in cells], size)
        probability = float(pmf @ _share_above(np.arange(size), floor, step, theta))
        if contributions is not None:
            probability += atom * (1 - _share_counted(contributions, floor, step, theta))
        error = abs(probability / previous - 1) if previous else math.nan
        if error < (_AGREEMENT if theta == 0 else _FAR_AGREEMENT) or size >= _LARGEST_GRID or probability < 1e-14:
            # Atoms of other patterns may lie within a step of the observed one; grids that agree prove nothing there.
            error = max(error, (1e-15 + atom / 4) / max(probability, 1e-300))
            return Tail(probability, error, f"cells convolved on a grid of {size} points")
        size, previous = 2 * size, probability


def _share_above(point: NDArray[np.int64], floor: float, step: float, theta: float) -> NDArray[np.float64]:
    """Return the share of the mass of grid points above the floor; it is spread over half a step on either side."""
    low, high = (np.maximum((point + half) * step - floor, 0.0) for half in (-0.5, 0.5))
    if theta == 0:
        return (high - low) / step
    share = np.zeros(len(point))
    counts = (high > 0) & (theta * low < _LOG_SMALLEST)
    share[counts] = (np.exp(-theta * low[counts]) - np.exp(-theta * high[counts])) / (theta * step)
    return share


def _observed_mass(cells: Sequence[CellDistribution], observed: NDArray[np.float64], spacing: float) -> float:
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


def _share_counted(observed: NDArray[np.float64], floor: float, step: float, theta: float) -> float:
    """Return the share of the observed atom's mass that a grid counts, once it is split over its neighbours."""
    position = observed / step
    spread = reduce(np.convolve, [np.array([1 - upper, upper]) for upper in position % 1])
    point = int(np.floor(position).sum()) + np.arange(len(spread))
    return float(spread @ _share_above(point, floor, step, theta))
