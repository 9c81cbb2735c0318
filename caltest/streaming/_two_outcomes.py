"""What a state of two outcomes answers: from sums over micro-cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caltest.estimation import ReliabilityCurve
from caltest.predictions._lens import Lens
from caltest.predictions._partitions import EqualWidth, Partition
from caltest.predictions._validation import SeedLike, validate_rng
from caltest.results import TestResult
from caltest.statistics import ECE
from caltest.statistics._base import Statistic, validate_estimate, validate_statistic
from caltest.statistics._cumulative import Cumulative
from caltest.streaming._conclusion import conclude
from caltest.streaming._state_curve import curve_of
from caltest.streaming._values import Streamed, excursion_bounds, value_of

_DEFAULT, _DRAWS = ECE(EqualWidth(15)), 999


@dataclass(frozen=True, eq=False)
class TwoOutcomes:
    """Answers from sums over micro-cells of the probability of an event."""

    streamed: Streamed
    lens: Lens

    def error(self, statistic: Statistic | None) -> float:
        """Return the value of a statistic."""
        return value_of(validate_estimate(_chosen(statistic)), self.streamed)

    def error_bounds(self, statistic: Statistic | None) -> tuple[float, float]:
        """Return bounds of the value that a statistic has on all observations."""
        chosen = validate_estimate(_chosen(statistic))
        if isinstance(chosen, Cumulative):
            return excursion_bounds(chosen, self.streamed.sums)
        value = self.error(chosen)
        return value, value

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
