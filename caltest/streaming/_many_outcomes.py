"""What a state of more than two outcomes answers: from sums over cells, of the outcomes and of redrawn ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Never

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._cells import CellSums
from caltest.predictions._lens import Lens
from caltest.predictions._partitions import Partition
from caltest.predictions._validation import SeedLike
from caltest.results import TestResult
from caltest.results._naming import describe
from caltest.statistics import ECE, MCE, SquaredL2, TemperatureScore
from caltest.statistics._base import Statistic, validate_estimate
from caltest.streaming._conclusion import Finding, drawn_finding, report
from caltest.streaming._redrawn_cells import RedrawnCells

_POSSIBLE = "ECE, MCE and SquaredL2 with cells made of those of the state, TemperatureScore and its sides"


@dataclass(frozen=True, eq=False)
class OutcomeSums:
    """Sums over cells, as numbers; leading axes of B + 1 data sets begin with the outcomes that happened.

    Attributes
    ----------
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
    """

    label: NDArray[np.int64]
    count: NDArray[np.float64]
    predicted: NDArray[np.float64]
    squares: NDArray[np.float64]
    outcomes: NDArray[np.float64]
    own: NDArray[np.float64]
    loss: NDArray[np.float64]
    expected_loss: float
    n_impossible: int

    def over(self, label: NDArray[np.int64]) -> tuple[CellSums, NDArray[np.float64], NDArray[np.float64]]:
        """Return the sums over coarser cells with given labels ``(n_cells,)``, and those of ``squares`` and ``own``."""
        _, index = np.unique(label, return_inverse=True)
        order = np.argsort(index, kind="stable")
        first = np.flatnonzero(np.diff(index[order], prepend=-1))

        def total(values: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
            return np.add.reduceat(np.take(values, order, axis), first, axis)

        cells = CellSums(total(self.count, 0), total(self.predicted, 0), total(self.outcomes, 1))
        return cells, total(self.squares, 0), total(self.own, 1)


@dataclass(frozen=True, eq=False)
class ManyOutcomes:
    """Answers from sums over cells of more than two outcomes."""

    sums: OutcomeSums
    cells: RedrawnCells
    lens: Lens

    def error(self, statistic: Statistic | None) -> float:
        """Return the value of a statistic; ECE with the state's cells by default."""
        return float(self._values(self._chosen(statistic))[0])

    def error_bounds(self, statistic: Statistic | None) -> tuple[float, float]:
        """Return the value twice: it is that of all observations."""
        value = self.error(statistic)
        return value, value

    def brier_score(self) -> float:
        """Return the mean squared distance of predictions from outcomes."""
        total = self.sums.squares.sum() - 2 * self.sums.own[0].sum() + self.sums.count.sum()
        return float(total / self.sums.count.sum())

    def log_score(self) -> float:
        """Return the mean of -log of the probability of the outcome."""
        return np.inf if self.sums.n_impossible else float(self.sums.loss[0] / self.sums.count.sum())

    def test(self, statistic: Statistic | None, *, alpha: float, n_resamples: int | None, rng: SeedLike) -> TestResult:
        """Return the result of a test with the draws that were made when the rows were added."""
        if n_resamples is not None:
            msg = (
                f"`n_resamples` is not for this state, whose {self.cells.n_resamples} draws were made when rows were "
                f"added, got {n_resamples}; more are made by RedrawnCells(n_resamples={n_resamples})."
            )
            raise ValueError(msg)
        if rng is not None:
            msg = (
                "`rng` is not for this state, whose draws were made when rows were added; another seed is chosen by "
                f"RedrawnCells(rng=...), got {rng!r}."
            )
            raise ValueError(msg)
        chosen = self._chosen(statistic)
        values = self._values(chosen)
        origin = (
            f"{self.cells.n_resamples} Monte Carlo draws of the outcomes of every observation, made when it was added, "
            "predictions fixed (valid at every sample size)"
        )
        found: Finding = drawn_finding((chosen,), values[None], self.sums.n_impossible, origin)
        n_samples, n_outcomes = int(self.sums.count.sum()), self.sums.predicted.shape[1]
        return report(
            chosen,
            found,
            lens=self.lens,
            alpha=alpha,
            size=(n_samples, n_outcomes),
            n_impossible=self.sums.n_impossible,
        )

    def curve(self, partition: Partition | None, level: float, *, simultaneous: bool) -> Never:
        """Raise ValueError: a curve has two outcomes."""
        msg = f"a reliability curve needs a lens with two outcomes, such as Confidence(); this state has {self.lens!r}."
        raise ValueError(msg)

    def _chosen(self, statistic: Statistic | None) -> Statistic:
        return validate_estimate(ECE(self.cells.partition) if statistic is None else statistic)

    def _values(self, statistic: Statistic) -> NDArray[np.float64]:
        """Return the statistic of the outcomes that happened and of the redrawn ones, ``(B + 1,)``."""
        if isinstance(statistic, TemperatureScore):
            signed = self.sums.expected_loss - self.sums.loss
            if self.sums.n_impossible:
                signed[0] = -np.inf
            return statistic.read(signed)
        if type(statistic) not in (ECE, MCE, SquaredL2):
            msg = (
                f"a state of {self.sums.predicted.shape[1]} outcomes has no observations, so that `statistic` may be "
                f"{_POSSIBLE}; got {describe(statistic)}."
            )
            raise ValueError(msg)
        label = self.cells.coarser(self.sums.label, self.sums.predicted.shape[1], statistic.partition)
        cells, squares, own = self.sums.over(label)
        if isinstance(statistic, SquaredL2):
            return _squared_l2(statistic, cells, cells.count - 2 * own + squares)
        return statistic.reduce(cells)  # type: ignore[attr-defined]


def _squared_l2(statistic: SquaredL2, cells: CellSums, own: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the debiased squared error ``(B + 1,)``; ``own (B + 1, n_cells)`` are sums of squared residuals."""
    n = cells.count
    pairs = n**2 if statistic.estimator == "t-cal" else n**2 - n
    scale = np.divide(cells.share, pairs, where=n > 1, out=np.zeros(len(n)))
    if statistic.estimator == "kumar":
        gap = np.square(cells.observed - cells.predicted).sum(axis=-1)
        own = (cells.observed * (1 - cells.observed)).sum(axis=-1) * n
        return (np.where(n > 1, cells.share * gap, 0.0) - scale * own).sum(axis=-1)
    return ((np.square(cells.observed_count - cells.predicted_sum).sum(axis=-1) - own) * scale).sum(axis=-1)
