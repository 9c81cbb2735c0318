"""Coarser cells (bins) that are made of micro-cells."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Booleans, Floats
from caltest.resampling.draws._kept_sums import KeptCells
from caltest.streaming.states._micro_cells import Nodes, Sums


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
