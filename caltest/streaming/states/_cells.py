"""Coarser cells (bins) that are made of micro-cells, and the null distributions of what happens in them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._distances import Distance, total_variation
from caltest.predictions.cells._cells import CellSums
from caltest.resampling.distributions._base import SMALLEST_PVALUE, Distribution
from caltest.resampling.distributions._poisson_binomial import SMALLEST_EXACT, PoissonBinomial, chernoff_bound
from caltest.statistics._binned import ExactCells
from caltest.statistics._hosmer_lemeshow import EventGroups, GroupsDistribution, HosmerLemeshow, whiten
from caltest.streaming.states._micro_cells import Nodes, Sums

_WHOLE = 1e-9  # residuals of certain outcomes are 0 up to rounding


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

    @property
    def sums(self) -> CellSums:
        """The sums that binned statistics are made of."""
        predicted = np.column_stack([self.count - self.expected, self.expected])
        observed = np.column_stack([self.count - self.events, self.events])
        return CellSums(self.count.astype(np.float64), predicted, observed.astype(np.float64))

    def nodes(self) -> list[Nodes]:
        """Return what stands for the predictions of each cell."""
        parts = self._sums.nodes.split(self._all)
        return [parts[b] for b in self._used]

    def counts(self) -> list[PoissonBinomial]:
        """Return the distribution of the number of events of each cell."""
        return [PoissonBinomial.of_weighted(part.prob, part.weight) for part in self.nodes()]

    def impossible(self) -> NDArray[np.bool_]:
        """Return which cells have an outcome that had been given probability 0."""
        ends = np.append(self._all[1:], len(self._sums.count))[self._used]
        below = (self.starts == 0) & (self._sums.count[0, 1] > 0)
        return below | ((ends == len(self._sums.count)) & (self._sums.count[-1, 0] > 0))


class StreamedCells(ExactCells):
    """Null distributions of the distance in each cell, from the sums over micro-cells."""

    def __init__(self, cells: CoarseCells, distance: Distance) -> None:
        self._distance = distance
        self._nodes = cells.nodes()
        self._counts = cells.counts()
        self._probability = np.concatenate([part.prob for part in self._nodes])
        self._n = int(cells.count.sum())
        self.sums = cells.sums
        self.spacing = self._spacing()

    def bound_of_sum(self, x: float) -> float:
        """Return a bound of P(sum of share times distance >= x); 1 unless the distance is the total variation."""
        if self._distance is not total_variation:
            return 1.0
        centre = self.sums.predicted_sum[:, 1]

        def log_moment(t: float) -> float:
            total = 0.0
            for part, count, m in zip(self._nodes, self._counts, centre, strict=True):
                up, down = part.log_moment(t) - t * m, part.log_moment(-t) + t * m
                top = max(up, down)
                inner = float(count.pmf @ np.exp(-t * np.abs(count.counts - m) - top))
                total += top + math.log(math.exp(up - top) + math.exp(down - top) - inner)
            return total

        return chernoff_bound(log_moment, x / self.spacing)

    def bound_of_largest(self, x: float) -> float:
        """Return a bound of P(largest distance >= x); 1 unless the distance is the total variation."""
        if self._distance is not total_variation:
            return 1.0
        total = 0.0
        for part, n, m in zip(self._nodes, self.sums.count, self.sums.predicted_sum[:, 1], strict=True):
            above, below = math.ceil(m + n * x), math.floor(m - n * x)
            total += bound_of_count(part, above, upper=True) if above <= n else 0.0
            total += bound_of_count(part, below, upper=False) if below >= 0 else 0.0
        return total


def bound_of_count(nodes: Nodes, count: int, *, upper: bool) -> float:
    """Return Chernoff's bound of P(K >= count), or of P(K <= count), for the number of events K."""
    sign = 1.0 if upper else -1.0
    return chernoff_bound(lambda t: nodes.log_moment(sign * t), sign * count)


def two_sided(count: PoissonBinomial, nodes: Nodes, events: int) -> float:
    """Return the p-value of a number of events, a bound of it below 1e-12; see `caltest.ReliabilityCurve`."""
    pvalue = count.two_sided(events)
    if pvalue < SMALLEST_EXACT:
        upper = events > nodes.weight @ nodes.prob
        pvalue = min(2 * bound_of_count(nodes, events, upper=bool(upper)), SMALLEST_EXACT)
    return max(pvalue, SMALLEST_PVALUE)


def hosmer_lemeshow(statistic: HosmerLemeshow, cells: CoarseCells) -> tuple[float, Distribution]:
    """Return the observed value and the exact null distribution."""
    mean = cells.expected / cells.count
    covariance = cells.spread if statistic.covariance == "observations" else cells.count * mean * (1 - mean)
    expected = cells.sums.predicted_sum
    whitening = np.stack([
        whiten(np.array([[0.0, v], [v, 0.0]]), row)[0] for v, row in zip(covariance, expected, strict=True)
    ])  # fmt: skip
    factor = np.square(whitening @ [-1.0, 1.0]).sum(axis=-1)
    residual = cells.events - cells.expected
    with np.errstate(over="ignore"):
        value = float((np.square(residual) * factor).sum())
    if ((factor == 0) & (np.abs(residual) > _WHOLE * cells.count)).any():
        value = math.inf
    made_of = EventGroups(cells.counts(), cells.expected, whitening)
    null = GroupsDistribution(made_of, cells.n_cells, float(cells.spread @ factor))
    return value, null
