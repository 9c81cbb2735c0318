"""What a state answers: errors, tests and curves from its sums."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Never

import numpy as np

from caltest.estimation import ReliabilityCurve
from caltest.estimation.curves._bars import exact_deviations, smallest_pvalues
from caltest.estimation.errors._cell_tests import EXACT
from caltest.estimation.uncertainty._prediction_distribution import EDGES, prediction_density
from caltest.predictions._arrays import Floats
from caltest.predictions._lens import Lens, lens_name
from caltest.predictions.cells._partitions import EqualWidth, Partition
from caltest.predictions.inputs._validation import SeedLike, validate_rng
from caltest.resampling.distributions._base import SMALLEST_PVALUE
from caltest.results import TestResult
from caltest.statistics._base import Statistic, validate_estimate, validate_statistic
from caltest.streaming.states._conclusion import computed_of_draws, conclude, report
from caltest.streaming.states._micro_cells import CoarseCells, Sums
from caltest.streaming.states._values import OutcomeSums, StateSums, Streamed, refusal, values_of

_DRAWS = 999


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


@dataclass(frozen=True, eq=False)
class Answers(ABC):
    """What the sums of a state answer."""

    sums: StateSums
    lens: Lens

    def chosen(self, statistic: Statistic | None) -> Statistic:
        """Return the statistic that is asked for, or the default."""
        return self.sums.default if statistic is None else statistic

    def values(self, statistic: Statistic) -> Floats:
        """Return the values of a statistic, ``(n_data_sets,)``."""
        return values_of((statistic,), self.sums, refusal(statistic, self.sums))[0]

    def error(self, statistic: Statistic | None) -> float:
        """Return the value of a statistic."""
        return float(self.values(validate_estimate(self.chosen(statistic)))[0])

    def error_bounds(self, statistic: Statistic | None) -> tuple[float, float]:
        """Return bounds of the value that a statistic has on all observations."""
        chosen = validate_estimate(self.chosen(statistic))
        value = self.error(chosen)
        return chosen.bounds_of_sums(self.sums) or (value, value)

    def log_score(self) -> float:
        """Return the mean of -log of the probability of the outcome."""
        return math.inf if self.sums.n_impossible else self.sums.total_loss / self.sums.n_samples

    @abstractmethod
    def test(self, statistic: Statistic | None, *, alpha: float, n_resamples: int | None, rng: SeedLike) -> TestResult:
        """Return the result of a test."""

    @abstractmethod
    def curve(self, partition: Partition | None, level: float, *, simultaneous: bool) -> ReliabilityCurve:
        """Return the reliability curve."""


@dataclass(frozen=True, eq=False)
class TwoOutcomes(Answers):
    """Answers from sums over micro-cells of the probability of an event."""

    sums: Streamed

    def test(self, statistic: Statistic | None, *, alpha: float, n_resamples: int | None, rng: SeedLike) -> TestResult:
        """Return the result of a test."""
        chosen = validate_statistic(self.chosen(statistic))
        n_draws = _DRAWS if n_resamples is None else n_resamples
        source = validate_rng(rng)
        return conclude(chosen, self.sums, lens=self.lens, alpha=alpha, n_resamples=n_draws, rng=source)

    def curve(self, partition: Partition | None, level: float, *, simultaneous: bool) -> ReliabilityCurve:
        """Return the reliability curve."""
        cut = EqualWidth(15) if partition is None else partition
        return curve_of(self.sums.micro, self.lens, cut, level, simultaneous=simultaneous)


@dataclass(frozen=True, eq=False)
class ManyOutcomes(Answers):
    """Answers from sums over cells of more than two outcomes."""

    sums: OutcomeSums

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
        chosen = validate_estimate(self.chosen(statistic))
        origin = (
            f"{self.sums.redrawn.n_resamples} Monte Carlo draws of the outcomes of every observation, made when it was "
            "added, predictions fixed (valid at every sample size)"
        )
        found = computed_of_draws((chosen,), self.values(chosen)[None], self.sums.n_impossible, origin)
        return report(chosen, found, self.sums, lens=self.lens, alpha=alpha)

    def curve(self, partition: Partition | None, level: float, *, simultaneous: bool) -> Never:
        """Raise ValueError: a curve has two outcomes."""
        msg = f"a reliability curve needs a lens with two outcomes, such as Confidence(); this state has {self.lens!r}."
        raise ValueError(msg)
