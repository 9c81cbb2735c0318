"""Sums of a state as statistics read them: of the outcomes that happened, and of simulated ones."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from caltest.predictions._arrays import Floats, Integers
from caltest.predictions.cells._partitions import EqualWidth
from caltest.resampling.draws._summaries import Extremes, KeptCells, KeptSums
from caltest.results._naming import describe
from caltest.statistics import ECE
from caltest.statistics._base import Statistic
from caltest.streaming.states._micro_cells import CoarseCells, Nodes, Sums
from caltest.streaming.states._redrawn_cells import RedrawnCells

_BLOCK = 64  # replicates at a time
_EQUAL = 2.0**-24


class StateSums(KeptSums):
    """What a state knows of the outcomes that happened."""

    n_impossible: int
    """Number of outcomes that had been given probability 0."""
    total_loss: float
    """Sum of -log of the probability of the outcome, where it is possible."""

    @property
    @abstractmethod
    def default(self) -> Statistic:
        """The statistic where none is asked for."""

    @property
    @abstractmethod
    def possible(self) -> str:
        """Which statistics have a value, in words."""

    @property
    @abstractmethod
    def brier_score(self) -> float:
        """Mean squared error of the predictions."""


@dataclass(frozen=True, eq=False)
class Streamed(StateSums):
    """What a state of two outcomes knows: sums over micro-cells, and sums of logarithms.

    Attributes
    ----------
    micro : Sums
        Sums over micro-cells.
    total_loss, expected_loss : float
        Sum of -log of the probability of the outcome, where it is possible, and of its expectation.
    """

    micro: Sums
    total_loss: float
    expected_loss: float
    _coarse: dict[Any, CoarseCells] = field(default_factory=dict, init=False)

    n_outcomes = 2
    default = ECE(EqualWidth(15))
    possible = (
        "a state has no observations, so that `statistic` may be ECE, MCE, SquaredL2 and HosmerLemeshow with "
        "EqualWidth or Edges cells, KS, Kuiper, Spiegelhalter, TemperatureScore and its sides, and in tests TCal(n)"
    )

    @property
    def n_samples(self) -> int:  # type: ignore[override]
        """Number of observations."""
        return self.micro.n_samples

    @property
    def n_impossible(self) -> int:  # type: ignore[override]
        """Number of outcomes that had been given probability 0."""
        return self.micro.n_impossible

    @property
    def brier_score(self) -> float:
        """Mean of (y - p)^2."""
        sums = self.micro
        prob, squares = sums.prob.sum(axis=0), sums.squares.sum()
        return float((squares + sums.count[:, 1].sum() - 2 * prob[1]) / sums.n_samples)

    def coarse(self, partition: Any) -> CoarseCells:
        """Return the cells of a partition, made once."""
        if partition not in self._coarse:
            self._coarse[partition] = CoarseCells(self.micro, partition)
        return self._coarse[partition]

    def cells(self, partition: Any) -> KeptCells:
        """Return the sums over the cells of a partition."""
        cells = self.coarse(partition)
        return cells.kept(cells.events[None], cells.own[None])

    def events(self, partition: Any) -> list[Nodes]:
        """Return what stands for the event's probabilities in the cells of a partition."""
        return self.coarse(partition).nodes

    @property
    def log_excess(self) -> Floats:
        """Sum of the logarithms of the outcomes' probabilities minus its expectation."""
        return np.array([-math.inf if self.n_impossible else self.expected_loss - self.total_loss])

    @property
    def brier_excess(self) -> Floats:
        """Spiegelhalter's Z: positive if over-confident."""
        sums = self.micro
        prob, squares = sums.prob.sum(axis=0), sums.squares.sum(axis=0)
        total = (sums.count[:, 1].sum() - 3 * prob[1] + 2 * squares[1]) - (prob[0] - 2 * squares[0])
        if sums.brier_variance > 0:
            return np.array([total / math.sqrt(sums.brier_variance)])
        return np.array([math.inf if sums.n_impossible else 0.0])

    @cached_property
    def _path(self) -> Floats:
        """The cumulative residual at the ends of the micro-cells, 0 first."""
        return np.append(0.0, np.cumsum(self.micro.count[:, 1] - self.micro.prob.sum(axis=1)))

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
        sums, path = self.micro, self._path
        n = sums.count.sum(axis=1)
        mean, second = (part.sum(axis=1) / np.maximum(n, 1) for part in (sums.first, sums.second))
        several = (n > 1) & (second - mean**2 > _EQUAL)
        rise = np.where(several, sums.count[:, 1] - sums.prob[:, 1], 0.0)
        fall = np.where(several, sums.prob[:, 0], 0.0)
        high, low = self.extremes
        return np.maximum(high, (path[:-1] + rise).max()), np.minimum(low, (path[:-1] - fall).min())


@dataclass(frozen=True, eq=False)
class OutcomeSums(StateSums):
    """Sums over cells, as numbers; leading axes of B + 1 data sets begin with the outcomes that happened.

    Attributes
    ----------
    redrawn : RedrawnCells
        The cells.
    label : array of shape (n_cells,)
        Labels of the occupied cells, increasing.
    count, squares : arrays of shape (n_cells,)
        Number of observations, and sums of the squared lengths of the predictions.
    predicted : array of shape (n_cells, n_outcomes)
        Sums of the predictions.
    outcomes : array of shape (B + 1, n_cells, n_outcomes)
        Numbers of outcomes.
    own : array of shape (B + 1, n_cells)
        Sums of the probabilities of the outcomes.
    loss : array of shape (B + 1,)
        Sum of -log of the probability of the outcome, where it is possible.
    expected_loss : float
        Expectation of that sum, if the predictions are the true probabilities.
    n_impossible : int
        Number of outcomes that had been given probability 0.
    confidence : Streamed
        Sums over micro-cells of the largest probability, whose event is that this outcome happened.
    """

    redrawn: RedrawnCells
    label: Integers
    count: Floats
    predicted: Floats
    squares: Floats
    outcomes: Floats
    own: Floats
    loss: Floats
    expected_loss: float
    n_impossible: int
    confidence: Streamed

    @property
    def n_samples(self) -> int:  # type: ignore[override]
        """Number of observations."""
        return int(self.count.sum())

    @property
    def n_outcomes(self) -> int:  # type: ignore[override]
        """Number of outcomes."""
        return self.predicted.shape[1]

    def cells(self, partition: Any) -> KeptCells:
        """Return the sums over the cells of a partition."""
        label = self.redrawn.coarser(self.label, self.n_outcomes, partition)
        _, index = np.unique(label, return_inverse=True)
        order = np.argsort(index, kind="stable")
        first = np.flatnonzero(np.diff(index[order], prepend=-1))

        def total(values: Floats, axis: int) -> Floats:
            return np.add.reduceat(np.take(values, order, axis), first, axis)

        count, squares = total(self.count, 0), total(self.squares, 0)
        own = count - 2 * total(self.own, 1) + squares
        return KeptCells(count, total(self.predicted, 0), total(self.outcomes, 1), own, count - squares)

    @property
    def log_excess(self) -> Floats:
        """Sums of the logarithms of the outcomes' probabilities minus their expectation."""
        excess = self.expected_loss - self.loss
        if self.n_impossible:
            excess[0] = -np.inf
        return excess

    @property
    def default(self) -> Statistic:
        """ECE with the cells of the state."""
        return ECE(self.redrawn.partition)

    @property
    def possible(self) -> str:
        """Which statistics have a value, in words."""
        return (
            f"a state of {self.n_outcomes} outcomes has no observations, so that `statistic` may be ECE, MCE and "
            "SquaredL2 with cells made of those of the state, TemperatureScore and its sides"
        )

    @property
    def brier_score(self) -> float:
        """Mean squared distance of predictions from outcomes."""
        return float((self.squares.sum() - 2 * self.own[0].sum() + self.count.sum()) / self.count.sum())

    @property
    def total_loss(self) -> float:  # type: ignore[override]
        """Sum of -log of the probability of the outcome, where it is possible."""
        return float(self.loss[0])


class Simulation:
    """Simulated outcomes of a state: numbers of events of its nodes, some data sets at a time.

    Attributes
    ----------
    state : Streamed
        The state.
    nodes : Nodes
        What stands for its predictions, with whole weights.
    slope, logit : arrays of shape (n_nodes,)
        What an event adds to the Brier score, without the sign, and to the logarithm; 0 where nothing is simulated.
    brier_std : float
        Standard deviation of the Brier score.
    last : array of int
        The last node of each micro-cell.
    """

    def __init__(self, state: Streamed) -> None:
        self.state, self.nodes = state, state.micro.nodes.whole
        prob, cell = self.nodes.prob, self.nodes.cell
        self.slope = 1 - 2 * prob
        self.brier_std = math.sqrt(float(self.nodes.weight @ (self.slope**2 * prob * (1 - prob))))
        with np.errstate(divide="ignore"):
            self.logit = np.where((prob > 0) & (prob < 1), np.log(prob) - np.log1p(-prob), 0.0)
        self.last = np.append(np.flatnonzero(np.diff(cell)), len(cell) - 1)

    def data_sets(self, n_resamples: int, rng: np.random.Generator) -> Iterator[SimulatedSums]:
        """Yield the sums of simulated data sets."""
        number = self.nodes.weight.astype(np.int64)
        for start in range(0, n_resamples, _BLOCK):
            size = min(_BLOCK, n_resamples - start), len(number)
            yield SimulatedSums(self, rng.binomial(number, self.nodes.prob, size=size).astype(np.float64))


@dataclass(frozen=True, eq=False)
class SimulatedSums(KeptSums):
    """Sums of simulated data sets, from numbers of events of the nodes ``(n_data_sets, n_nodes)``."""

    of: Simulation
    number: Floats

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
    def _residual(self) -> Floats:
        return self.number - self.of.nodes.weight * self.of.nodes.prob

    @property
    def log_excess(self) -> Floats:
        """Sums of the logarithms of the outcomes' probabilities minus their expectations."""
        return self._residual @ self.of.logit

    @property
    def brier_excess(self) -> Floats:
        """Spiegelhalter's Z, but for its sign."""
        std = self.of.brier_std
        return self._residual @ self.of.slope / std if std > 0 else np.zeros(len(self.number))

    @property
    def extremes(self) -> Extremes:
        """Extremes at the ends of the micro-cells."""
        path = np.cumsum(self._residual, axis=1)[:, self.of.last]
        return path.max(axis=1, initial=0.0), path.min(axis=1, initial=0.0)


def values_of(parts: Sequence[Statistic], sums: KeptSums, refusal: ValueError) -> Floats:
    """Return the values of statistics ``(n_statistics, n_data_sets)``; refuse what needs the observations."""
    if any(part.n_outcomes not in {None, sums.n_outcomes} for part in parts):
        raise refusal
    try:
        found = [part.evaluate_sums(sums) for part in parts]
    except ValueError:  # cells cannot be made of those of the state
        if len(parts) == 1:
            raise
        raise refusal from None
    values = [value for value in found if value is not None]
    if len(values) < len(found):
        raise refusal
    return np.stack(values)


def refusal(statistic: Statistic, sums: StateSums) -> ValueError:
    """Return the error of a statistic that needs the observations."""
    return ValueError(f"{sums.possible}; got {describe(statistic)}{statistic.hint_of_sums}.")
