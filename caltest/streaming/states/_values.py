"""Sums over micro-cells as statistics read them: of the outcomes that happened, and of simulated ones."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.resampling.draws._kept_sums import Extremes, KeptCells, KeptSums
from caltest.streaming.states._cells import CoarseCells
from caltest.streaming.states._micro_cells import Nodes, Sums

_BLOCK = 64  # replicates at a time
_EQUAL = 2.0**-24


@dataclass(frozen=True, eq=False)
class Streamed(KeptSums):
    """What a state of two outcomes knows: sums over micro-cells, and sums of logarithms.

    Attributes
    ----------
    sums : Sums
        Sums over micro-cells.
    log_loss, expected_log_loss : float
        Sum of -log of the probability of the outcome, where it is possible, and of its expectation.
    """

    sums: Sums
    log_loss: float
    expected_log_loss: float
    _coarse: dict[Any, CoarseCells] = field(default_factory=dict, init=False)

    n_outcomes = 2

    @property
    def n_samples(self) -> int:  # type: ignore[override]
        """Number of observations."""
        return self.sums.n_samples

    def coarse(self, partition: Any) -> CoarseCells:
        """Return the cells of a partition, made once."""
        if partition not in self._coarse:
            self._coarse[partition] = CoarseCells(self.sums, partition)
        return self._coarse[partition]

    def cells(self, partition: Any) -> KeptCells:
        """Return the sums over the cells of a partition."""
        cells = self.coarse(partition)
        return cells.kept(cells.events[None], cells.own[None])

    def events(self, partition: Any) -> list[Nodes]:
        """Return what stands for the event's probabilities in the cells of a partition."""
        return self.coarse(partition).nodes

    @property
    def log_excess(self) -> NDArray[np.float64]:
        """Sum of the logarithms of the outcomes' probabilities minus its expectation."""
        return np.array([-math.inf if self.sums.n_impossible else self.expected_log_loss - self.log_loss])

    @property
    def brier_excess(self) -> NDArray[np.float64]:
        """Spiegelhalter's Z: positive if over-confident."""
        sums = self.sums
        prob, squares = sums.prob.sum(axis=0), sums.squares.sum(axis=0)
        total = (sums.count[:, 1].sum() - 3 * prob[1] + 2 * squares[1]) - (prob[0] - 2 * squares[0])
        if sums.brier_variance > 0:
            return np.array([total / math.sqrt(sums.brier_variance)])
        return np.array([math.inf if sums.n_impossible else 0.0])

    @cached_property
    def _path(self) -> NDArray[np.float64]:
        """The cumulative residual at the ends of the micro-cells, 0 first."""
        return np.append(0.0, np.cumsum(self.sums.count[:, 1] - self.sums.prob.sum(axis=1)))

    @property
    def extremes(self) -> Extremes:
        """Extremes at the ends of the micro-cells."""
        return self._path.max(keepdims=True), self._path.min(keepdims=True)

    @property
    def widest_extremes(self) -> Extremes:
        """Extremes with what may happen within the micro-cells.

        There the cumulative residual rises by at most the sum of 1 - p over the events, and falls by at most the sum of
        p over the others. Predictions that differ by less than about 1e-7 count as equal.
        """
        sums, path = self.sums, self._path
        n = sums.count.sum(axis=1)
        mean, second = (part.sum(axis=1) / np.maximum(n, 1) for part in (sums.first, sums.second))
        several = (n > 1) & (second - mean**2 > _EQUAL)
        rise = np.where(several, sums.count[:, 1] - sums.prob[:, 1], 0.0)
        fall = np.where(several, sums.prob[:, 0], 0.0)
        high, low = self.extremes
        return np.maximum(high, (path[:-1] + rise).max()), np.minimum(low, (path[:-1] - fall).min())


class Simulation:
    """Simulated outcomes of a state: numbers of events of its nodes, some data sets at a time."""

    def __init__(self, state: Streamed) -> None:
        self.state, self.nodes = state, _whole(state.sums.nodes)

    def data_sets(self, n_resamples: int, rng: np.random.Generator) -> Iterator[SimulatedSums]:
        """Yield the sums of simulated data sets."""
        number = self.nodes.weight.astype(np.int64)
        for start in range(0, n_resamples, _BLOCK):
            size = min(_BLOCK, n_resamples - start), len(number)
            yield SimulatedSums(self, rng.binomial(number, self.nodes.prob, size=size).astype(np.float64))

    @cached_property
    def slope(self) -> NDArray[np.float64]:
        """What an event adds to the Brier score, without the sign."""
        return 1 - 2 * self.nodes.prob

    @cached_property
    def brier_std(self) -> float:
        """Standard deviation of the Brier score."""
        prob = self.nodes.prob
        return math.sqrt(float(self.nodes.weight @ (self.slope**2 * prob * (1 - prob))))

    @cached_property
    def logit(self) -> NDArray[np.float64]:
        """What an event adds to the logarithm; 0 where nothing is simulated."""
        prob = self.nodes.prob
        with np.errstate(divide="ignore"):
            return np.where((prob > 0) & (prob < 1), np.log(prob) - np.log1p(-prob), 0.0)

    @cached_property
    def last(self) -> NDArray[np.int64]:
        """The last node of each micro-cell."""
        return np.append(np.flatnonzero(np.diff(self.nodes.cell)), len(self.nodes.cell) - 1)


@dataclass(frozen=True, eq=False)
class SimulatedSums(KeptSums):
    """Sums of simulated data sets, from numbers of events of the nodes ``(n_data_sets, n_nodes)``."""

    of: Simulation
    number: NDArray[np.float64]

    n_outcomes = 2

    @property
    def n_samples(self) -> int:  # type: ignore[override]
        """Number of observations of a data set."""
        return self.of.state.n_samples

    def cells(self, partition: Any) -> KeptCells:
        """Return the sums over the cells of a partition."""
        cells = self.of.state.coarse(partition)
        first = np.searchsorted(self.of.nodes.cell, cells.starts)
        added = np.add.reduceat(self.number * self.of.slope, first, axis=1)
        return cells.kept(np.add.reduceat(self.number, first, axis=1), cells.squares + added)

    @cached_property
    def _residual(self) -> NDArray[np.float64]:
        return self.number - self.of.nodes.weight * self.of.nodes.prob

    @property
    def log_excess(self) -> NDArray[np.float64]:
        """Sums of the logarithms of the outcomes' probabilities minus their expectations."""
        return self._residual @ self.of.logit

    @property
    def brier_excess(self) -> NDArray[np.float64]:
        """Spiegelhalter's Z, but for its sign."""
        std = self.of.brier_std
        return self._residual @ self.of.slope / std if std > 0 else np.zeros(len(self.number))

    @property
    def extremes(self) -> Extremes:
        """Extremes at the ends of the micro-cells."""
        path = np.cumsum(self._residual, axis=1)[:, self.of.last]
        return path.max(axis=1, initial=0.0), path.min(axis=1, initial=0.0)


def _whole(nodes: Nodes) -> Nodes:
    """Return nodes whose weights are whole numbers, with the same means and variances in every micro-cell."""
    two = np.flatnonzero(nodes.cell[1:] == nodes.cell[:-1])
    weight, prob = nodes.weight.copy(), nodes.prob.copy()
    a, b = weight[two], weight[two + 1]
    size = np.rint(a + b)
    left = np.clip(np.rint(a), 1, size - 1)
    right = size - left
    mean = (a * prob[two] + b * prob[two + 1]) / size
    std = np.sqrt(a * b) / size * (prob[two + 1] - prob[two])
    weight[two], weight[two + 1] = left, right
    prob[two], prob[two + 1] = mean - std * np.sqrt(right / left), mean + std * np.sqrt(left / right)
    return Nodes(np.clip(prob, 0.0, 1.0), np.rint(weight), nodes.cell)
