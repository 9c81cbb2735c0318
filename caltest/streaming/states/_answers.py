"""What a state answers: errors, tests and curves from its sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Never

import numpy as np
from numpy.typing import NDArray

from caltest.estimation import ReliabilityCurve
from caltest.estimation.curves._bars import exact_deviations, smallest_pvalues
from caltest.estimation.errors._cell_tests import EXACT
from caltest.estimation.uncertainty._prediction_distribution import EDGES, prediction_density
from caltest.predictions._lens import Lens, lens_name
from caltest.predictions.cells._partitions import EqualWidth, Partition
from caltest.predictions.inputs._validation import SeedLike, validate_rng
from caltest.resampling.distributions._base import SMALLEST_PVALUE
from caltest.resampling.draws._kept_sums import KeptCells, KeptSums
from caltest.results import TestResult
from caltest.statistics import ECE
from caltest.statistics._base import Statistic, validate_estimate, validate_statistic
from caltest.streaming.states._cells import CoarseCells
from caltest.streaming.states._conclusion import POSSIBLE, conclude, drawn_finding, report, values_of
from caltest.streaming.states._micro_cells import Sums
from caltest.streaming.states._redrawn_cells import RedrawnCells
from caltest.streaming.states._values import Streamed


def curve_of(sums: Sums, lens: Lens, partition: Partition, level: float, *, simultaneous: bool) -> ReliabilityCurve:
    """Return the curve with exact consistency bars and p-values of the cells."""
    cells = CoarseCells(sums, partition)
    nodes = cells.nodes
    counts = [part.count for part in nodes]
    own_level = level ** (1 / cells.n_cells) if simultaneous else level
    bars = np.array([count.central_interval(own_level) for count in counts]) / cells.count[:, None]
    pvalues = [part.two_sided(events) for part, events in zip(nodes, cells.events.tolist(), strict=True)]
    predicted, observed, share = cells.expected / cells.count, cells.events / cells.count, cells.count / sums.n_samples
    size, mean = sums.count.sum(axis=1), sums.prob.sum(axis=1)
    used = size > 0  # the prediction of each micro-cell for the picture: its mean
    return ReliabilityCurve(
        lower=cells.lower,
        upper=cells.upper,
        count=cells.count,
        predicted=predicted,
        expected=predicted,
        observed=observed,
        bar_lower=bars[:, 0],
        bar_upper=bars[:, 1],
        bars="consistency",
        confidence_level=level,
        simultaneous=simultaneous,
        exact=True,
        lens=lens,
        lens_name=lens_name(lens),
        partition=partition,
        notes=(),
        density_edges=EDGES,
        density=prediction_density(mean[used] / size[used], size[used]),
        error=float(np.abs(observed - predicted) @ share),
        noise_floor=float(exact_deviations(counts, cells.count) @ share),
        pvalue=np.where(cells.impossible(), SMALLEST_PVALUE, pvalues),
        smallest_pvalue=smallest_pvalues(counts, cells.count),
        origin=EXACT,
    )


_DEFAULT, _DRAWS = ECE(EqualWidth(15)), 999


@dataclass(frozen=True, eq=False)
class TwoOutcomes:
    """Answers from sums over micro-cells of the probability of an event."""

    streamed: Streamed
    lens: Lens

    def error(self, statistic: Statistic | None) -> float:
        """Return the value of a statistic."""
        return float(_values(validate_estimate(_chosen(statistic)), self.streamed)[0])

    def error_bounds(self, statistic: Statistic | None) -> tuple[float, float]:
        """Return bounds of the value that a statistic has on all observations."""
        chosen = validate_estimate(_chosen(statistic))
        value = self.error(chosen)
        return chosen.bounds_of_sums(self.streamed) or (value, value)

    def brier_score(self) -> float:
        """Return the mean of (y - p)^2."""
        sums = self.streamed.sums
        prob, squares = sums.prob.sum(axis=0), sums.squares.sum()
        return float((squares + sums.count[:, 1].sum() - 2 * prob[1]) / sums.n_samples)

    def log_score(self) -> float:
        """Return the mean of -log of the probability of the outcome."""
        sums = self.streamed.sums
        return np.inf if sums.n_impossible else self.streamed.log_loss / sums.n_samples

    def test(self, statistic: Statistic | None, *, alpha: float, n_resamples: int | None, rng: SeedLike) -> TestResult:
        """Return the result of a test."""
        chosen = validate_statistic(_chosen(statistic))
        n_draws = _DRAWS if n_resamples is None else n_resamples
        source = validate_rng(rng)
        return conclude(chosen, self.streamed, lens=self.lens, alpha=alpha, n_resamples=n_draws, rng=source)

    def curve(self, partition: Partition | None, level: float, *, simultaneous: bool) -> ReliabilityCurve:
        """Return the reliability curve."""
        cut = EqualWidth(15) if partition is None else partition
        return curve_of(self.streamed.sums, self.lens, cut, level, simultaneous=simultaneous)


def _chosen(statistic: Statistic | None) -> Statistic:
    return _DEFAULT if statistic is None else statistic


def _values(statistic: Statistic, sums: KeptSums, possible: str = POSSIBLE) -> NDArray[np.float64]:
    """Return the values of a statistic, ``(n_data_sets,)``."""
    return values_of((statistic,), sums, statistic, possible)[0]


@dataclass(frozen=True, eq=False)
class OutcomeSums(KeptSums):
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
    """

    redrawn: RedrawnCells
    label: NDArray[np.int64]
    count: NDArray[np.float64]
    predicted: NDArray[np.float64]
    squares: NDArray[np.float64]
    outcomes: NDArray[np.float64]
    own: NDArray[np.float64]
    loss: NDArray[np.float64]
    expected_loss: float
    n_impossible: int

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

        def total(values: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
            return np.add.reduceat(np.take(values, order, axis), first, axis)

        count, squares = total(self.count, 0), total(self.squares, 0)
        own = count - 2 * total(self.own, 1) + squares
        return KeptCells(count, total(self.predicted, 0), total(self.outcomes, 1), own, count - squares)

    @property
    def log_excess(self) -> NDArray[np.float64]:
        """Sums of the logarithms of the outcomes' probabilities minus their expectation."""
        excess = self.expected_loss - self.loss
        if self.n_impossible:
            excess[0] = -np.inf
        return excess


@dataclass(frozen=True, eq=False)
class ManyOutcomes:
    """Answers from sums over cells of more than two outcomes."""

    sums: OutcomeSums
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
                f"`n_resamples` is not for this state, whose {self.sums.redrawn.n_resamples} draws were made when rows "
                f"were added, got {n_resamples}; more are made by RedrawnCells(n_resamples={n_resamples})."
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
            f"{self.sums.redrawn.n_resamples} Monte Carlo draws of the outcomes of every observation, made when it was "
            "added, predictions fixed (valid at every sample size)"
        )
        found = drawn_finding((chosen,), values[None], self.sums.n_impossible, origin)
        size = self.sums.n_samples, self.sums.n_outcomes
        return report(chosen, found, lens=self.lens, alpha=alpha, size=size, n_impossible=self.sums.n_impossible)

    def curve(self, partition: Partition | None, level: float, *, simultaneous: bool) -> Never:
        """Raise ValueError: a curve has two outcomes."""
        msg = f"a reliability curve needs a lens with two outcomes, such as Confidence(); this state has {self.lens!r}."
        raise ValueError(msg)

    def _chosen(self, statistic: Statistic | None) -> Statistic:
        return validate_estimate(ECE(self.sums.redrawn.partition) if statistic is None else statistic)

    def _values(self, statistic: Statistic) -> NDArray[np.float64]:
        """Return the statistic of the outcomes that happened and of the redrawn ones, ``(B + 1,)``."""
        possible = (
            f"a state of {self.sums.n_outcomes} outcomes has no observations, so that `statistic` may be ECE, MCE and "
            "SquaredL2 with cells made of those of the state, TemperatureScore and its sides"
        )
        return _values(statistic, self.sums, possible)
