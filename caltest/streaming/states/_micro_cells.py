"""Micro-cells: narrow cells (bins) of one probability, of which coarser cells are made, and sums over them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._micro_cells import DEEPEST, PARTS
from caltest.predictions._arrays import Booleans, Floats, Integers
from caltest.predictions.cells._partitions import Edges, EqualWidth, Intervals, resolve_n_cells
from caltest.predictions.inputs._refusals import refuse
from caltest.resampling.distributions._poisson_binomial import Events
from caltest.resampling.draws._summaries import KeptCells
from caltest.results._naming import describe

SMALLEST, LARGEST = 2**11, 2**15
"""Numbers of micro-cells that are possible."""
USUAL = 2**12
"""Number of micro-cells by default."""
_DIGITS = 53  # of a double
_Q_UNIT, _SQUARE_UNIT, _CUBE_UNIT = 2.0**-52, 2.0**-52, 2.0**-51
_EQUAL = 2.0**-24  # variance of predictions that rounding may leave where all are equal, in units of the squared width
_SKEWED = 1e-3  # variance above which the third moment is more than rounding


@dataclass(frozen=True, eq=False)
class MicroCells:
    """Narrow cells of one probability, closed on the left.

    Their edges are the doubles ``j / n`` and ``j / 1800``, so that they are those of EqualWidth(m) for every m that
    divides n or 1800. The first and the last of the n cells are cut at powers of 2, which end at 2^-64, and at their
    complements; 0 and 1 have a micro-cell each.

    Attributes
    ----------
    lower : array of shape (n_cells,)
        Lower ends, increasing; those of the micro-cell of 0 and of the next one are both 0.
    scale : array of shape (n_cells,)
        2^52 divided by the width, which is rounded up to a power of 2.
    power : int
        Logarithm of n to base 2.
    """

    lower: Floats
    scale: Floats
    power: int

    @classmethod
    @cache
    def of(cls, n: int) -> Self:
        """Return micro-cells of width 1 / n, a power of 2; made once."""
        m = n.bit_length() - 1
        deep = np.arange(DEEPEST, m, -1)  # the cells from 2^-e to 2^(1 - e)
        inside = np.union1d(np.arange(1, n - 1) / n, np.arange(1, PARTS) / PARTS)
        inside = inside[(inside >= 1 / n) & (inside < 1 - 1 / n)]
        high = np.arange(m, _DIGITS + 1)  # the cells from 1 - 2^-k to 1 - 2^-(k + 1)
        lower = np.concatenate([[0.0, 0.0], 2.0**-deep, inside, 1 - 2.0**-high, [1.0]])
        powers = np.concatenate([[0, 52 + DEEPEST], 52 + deep, np.full(len(inside), 52 + m), 53 + high, [0]])
        return cls(lower, 2.0**powers, m)

    @property
    def n_cells(self) -> int:
        """Number of micro-cells."""
        return len(self.lower)

    @property
    def width(self) -> Floats:
        """Upper bound of the width of each micro-cell, ``(n_cells,)``."""
        return 2.0**52 / self.scale

    def starts(self, partition: Any) -> tuple[Integers, Floats]:
        """Return the first micro-cell of every cell of a partition, and the edges ``(n_cells + 1,)`` of these cells.

        Raises
        ------
        ValueError
            If an edge of the partition is none of a micro-cell, or the cells depend on the predictions.
        """
        edges = _edges(partition)
        n = 2**self.power
        place = np.searchsorted(self.lower, edges)
        known = self.lower[np.minimum(place, self.n_cells - 1)] == edges
        if not known.all():
            refuse(
                f"the cells of {describe(partition)} cannot be made of micro-cells, whose edges are j / {n} and "
                f"j / {PARTS}; its edge {edges[~known][0]:.6g} is none of them. Possible are EqualWidth(n) for every n "
                f"that divides {n} or {PARTS} (such as 10, 15, 20, 100), and Edges at such places."
            )
        return np.append(0, place), np.concatenate([[0.0], edges, [1.0]])


def _edges(partition: Any) -> Floats:
    """Return the inner edges of cells that do not depend on the predictions, closed on the left."""
    fixed = isinstance(partition, EqualWidth) and not isinstance(partition.n_cells, str)
    if not (fixed or isinstance(partition, Edges)) or partition.closed != "left":
        refuse(
            f"a state has cells (bins) that are fixed beforehand and closed on the left; use EqualWidth(15), "
            f"Edges([0.1, 0.5]) or equal_mass_cells(state, 15) of caltest.streaming, got {describe(partition)}."
        )
    if isinstance(partition, EqualWidth):
        n_cells = resolve_n_cells(partition.n_cells, 1)
        return np.arange(1, n_cells) / n_cells
    return Intervals(np.array(partition.edges)).edges


@dataclass(frozen=True, eq=False)
class Sums:
    """Numbers of observations in micro-cells and sums of their predictions.

    Attributes
    ----------
    cells : MicroCells
        The micro-cells.
    count : array of shape (n_cells, 2), integers
        Number of observations with outcome 0 and 1.
    first, second, third : arrays of shape (n_cells, 2)
        Sums of the distances from the lower end of the micro-cell, of their squares and their cubes, in units of its
        width.
    """

    cells: MicroCells
    count: Integers
    first: Floats
    second: Floats
    third: Floats

    @classmethod
    def of(cls, cells: MicroCells, table: Integers) -> Sums:
        """Return the sums of a table ``(2 * n_cells, 7)`` of pairs of upper and lower bits."""
        pairs = table[:, 1:].astype(np.float64).reshape(-1, 2, 3, 2)
        totals = pairs[..., 0] * 2.0**26 + pairs[..., 1]
        units = np.array([_Q_UNIT, _SQUARE_UNIT, _CUBE_UNIT])
        return cls(cells, table[:, 0].reshape(-1, 2).copy(), *np.moveaxis(totals * units, -1, 0))

    @property
    def n_samples(self) -> int:
        """Number of observations."""
        return int(self.count.sum())

    @cached_property
    def prob(self) -> Floats:
        """Sums of the predictions by outcome, ``(n_cells, 2)``."""
        lower, width = self.cells.lower[:, None], self.cells.width[:, None]
        return self.count * lower + self.first * width

    @cached_property
    def squares(self) -> Floats:
        """Sums of the squared predictions by outcome, ``(n_cells, 2)``."""
        lower, width = self.cells.lower[:, None], self.cells.width[:, None]
        return self.count * lower**2 + 2 * lower * width * self.first + width**2 * self.second

    @cached_property
    def spread(self) -> Floats:
        """Sums of p (1 - p) over both outcomes, ``(n_cells,)``, without cancellation near 1."""
        lower, width = self.cells.lower, self.cells.width
        first, second = self.first.sum(axis=1) * width, self.second.sum(axis=1) * width**2
        return self.count.sum(axis=1) * lower * (1 - lower) + (1 - 2 * lower) * first - second

    @cached_property
    def brier_variance(self) -> float:
        """Sum of (1 - 2 p)^2 p (1 - p), by a Taylor series about the mean of each micro-cell, to 1e-15 n."""
        n = self.count.sum(axis=1)
        size, lower, width = np.maximum(n, 1), self.cells.lower, self.cells.width
        mean, second, third = (part.sum(axis=1) / size for part in (self.first, self.second, self.third))
        p, rest = lower + mean * width, (1 - lower) - mean * width
        central = third - 3 * mean * second + 2 * mean**3
        curvature = (24 * p * rest - 5) * np.maximum(second - mean**2, 0.0) * width**2
        return float(n @ (p * rest * (rest - p) ** 2 + curvature + (8 - 16 * p) * central * width**3))

    @property
    def n_impossible(self) -> int:
        """Number of observations whose outcome had been given probability 0."""
        return int(self.count[0, 1] + self.count[-1, 0])

    @cached_property
    def nodes(self) -> Nodes:
        """What stands for the predictions."""
        return Nodes.of(self)


@dataclass(frozen=True, eq=False)
class Nodes(Events):
    r"""Gauss quadrature of the predictions: in every micro-cell two probabilities with weights.

    Weights and probabilities have the same sums of 1, p, :math:`p^2` and :math:`p^3` as the predictions; where a
    micro-cell has one or two different predictions, they are these predictions. For a smooth function f the sums of
    :math:`f(p)` over a micro-cell of width h differ by at most :math:`n h^4 \max |f^{(4)}| / 384`.

    Attributes
    ----------
    prob, weight : arrays of shape (n_nodes,)
        Probabilities, increasing from one micro-cell to the next, and how many observations have them.
    cell : array of shape (n_nodes,)
        Their micro-cells.
    """

    cell: Integers

    @classmethod
    def of(cls, sums: Sums) -> Nodes:
        """Return the nodes of the predictions, whatever their outcomes are."""
        n = sums.count.sum(axis=1)
        used = np.flatnonzero(n)
        size = n[used].astype(np.float64)
        mean, second, third = (part[used].sum(axis=1) / size for part in (sums.first, sums.second, sums.third))
        variance = second - mean**2
        two = (variance > _EQUAL) & (size > 1)
        variance = np.where(two, variance, 1.0)
        skew = np.where(variance > _SKEWED, third - 3 * mean * second + 2 * mean**3, 0.0) / variance
        left, right = _roots(skew, variance)
        outside = (mean + left < 0) | (mean + right > 1)
        symmetric = _roots(0 * skew, variance)
        left, right = (np.where(outside, *pair) for pair in zip(symmetric, (left, right), strict=True))
        left, right = np.maximum(left, -mean), np.minimum(right, 1 - mean)
        share = np.where(two, right / np.where(two, right - left, 1.0), 1.0)
        left, right = (np.where(two, side, 0.0) for side in (left, right))
        place = np.stack([mean + left, mean + right], axis=1)
        weight = np.stack([share * size, size - share * size], axis=1)
        prob = sums.cells.lower[used, None] + place * sums.cells.width[used, None]
        kept = weight.ravel() > 0
        return cls(prob.ravel()[kept], weight.ravel()[kept], np.repeat(used, 2)[kept])

    @property
    def whole(self) -> Nodes:
        """Nodes whose weights are whole numbers, with the same means and variances in every micro-cell."""
        two = np.flatnonzero(self.cell[1:] == self.cell[:-1])
        weight, prob = self.weight.copy(), self.prob.copy()
        a, b = weight[two], weight[two + 1]
        size = np.rint(a + b)
        left = np.clip(np.rint(a), 1, size - 1)
        right = size - left
        mean = (a * prob[two] + b * prob[two + 1]) / size
        std = np.sqrt(a * b) / size * (prob[two + 1] - prob[two])
        weight[two], weight[two + 1] = left, right
        prob[two], prob[two + 1] = mean - std * np.sqrt(right / left), mean + std * np.sqrt(left / right)
        return Nodes(np.clip(prob, 0.0, 1.0), np.rint(weight), self.cell)

    def split(self, starts: Integers) -> list[Nodes]:
        """Return the nodes of coarser cells, which begin at given micro-cells."""
        ends = np.searchsorted(self.cell, np.append(starts[1:], np.iinfo(np.int64).max))
        begins = np.append(0, ends[:-1])
        return [Nodes(self.prob[a:b], self.weight[a:b], self.cell[a:b]) for a, b in zip(begins, ends, strict=True)]


def _roots(skew: Floats, variance: Floats) -> tuple[Floats, ...]:
    """Return the two nodes relative to the mean, from the third moment over the variance, and the variance."""
    root = np.sqrt(skew**2 + 4 * variance)
    return (skew - root) / 2, (skew + root) / 2


class CoarseCells:
    """The occupied cells of a partition.

    Attributes
    ----------
    lower, upper : arrays of shape (n_cells,)
        Ends of the cells.
    starts : array of shape (n_cells,)
        The first micro-cell of each cell.
    count, events : arrays of shape (n_cells,), integers
        Number of observations and of events.
    expected, spread : arrays of shape (n_cells,)
        Sums of p and of p (1 - p).
    own : array of shape (n_cells,)
        Sums of the squared residuals.
    """

    def __init__(self, sums: Sums, partition: Any) -> None:
        starts, edges = sums.cells.starts(partition)
        count = np.add.reduceat(sums.count, starts, axis=0)
        used = np.flatnonzero(count.sum(axis=1))
        self._sums, self._all, self._used = sums, starts, used
        self.starts, self.lower, self.upper = starts[used], edges[used], edges[used + 1]
        self.count, self.events = count.sum(axis=1)[used], count[used, 1]
        prob, squares = (np.add.reduceat(part, starts, axis=0)[used] for part in (sums.prob, sums.squares))
        self.expected, self.squares = prob.sum(axis=1), squares.sum(axis=1)
        self.own = self.squares + self.events - 2 * prob[:, 1]
        self.spread = np.add.reduceat(sums.spread, starts)[used]

    @property
    def n_cells(self) -> int:
        """Number of occupied cells."""
        return len(self.count)

    def kept(self, events: NDArray[Any], own: Floats) -> KeptCells:
        """Return what statistics read, for numbers of events and squared residuals ``(n_data_sets, n_cells)``."""
        predicted = np.column_stack([self.count - self.expected, self.expected])
        observed = np.stack([self.count - events, events], axis=-1).astype(np.float64)
        return KeptCells(self.count.astype(np.float64), predicted, observed, own, self.spread)

    @cached_property
    def nodes(self) -> list[Nodes]:
        """What stands for the predictions of each cell."""
        parts = self._sums.nodes.split(self._all)
        return [parts[b] for b in self._used]

    def impossible(self) -> Booleans:
        """Return which cells have an outcome that had been given probability 0."""
        ends = np.append(self._all[1:], len(self._sums.count))[self._used]
        below = (self.starts == 0) & (self._sums.count[0, 1] > 0)
        return below | ((ends == len(self._sums.count)) & (self._sums.count[-1, 0] > 0))
