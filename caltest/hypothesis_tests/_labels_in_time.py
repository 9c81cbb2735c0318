"""Labels that depend on each other in time as observed ones do, and whether a test with times rejects them.

Their dependence is that of the draws of the test, `TimedDraws`: the correlation of their shocks is the one that makes
the inflation of the residuals that of the observed labels, raised by one standard error. A test of new labels estimates
it again; here its draws have the same correlation as the labels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Floats
from caltest.predictions._sample import Sample
from caltest.predictions._view import LensView
from caltest.resampling.draws._labels import Draws
from caltest.resampling.draws._schemes import Consistency, TimedLabels
from caltest.resampling.draws._timed_draws import SharedShockDraws, TimedDraws, TimedOutcome, inflation_of
from caltest.resampling.engine._evaluation import Question, components, draw_nulls, scale_components
from caltest.resampling.engine._pvalues import RankedDraws
from caltest.resampling.engine._statistic import Statistic


@dataclass(frozen=True, eq=False)
class LabelsInTime:
    """The test of a sample with times on labels that depend on each other as those of the sample do.

    Attributes
    ----------
    sample : Sample
        The predictions, with times; of their labels only the dependence is used.
    """

    sample: Sample

    @cached_property
    def scheme(self) -> TimedLabels:
        """The null hypothesis."""
        found = Consistency().for_sample(self.sample)
        assert isinstance(found, TimedLabels)
        return found

    @property
    def inflation(self) -> float:
        """How much more the residuals vary together than independent ones."""
        return inflation_of(self.sample)

    @cached_property
    def _shares(self) -> tuple[float, float]:
        return self.sample.once(TimedOutcome.of).correlations(self.sample.outcome)

    def null(self, statistic: Statistic, number: int, seed: np.uint64) -> Floats:
        """Return the components of draws from the predictions, ``(n_components, number)``."""
        return self._null(statistic, TimedDraws(seed, 0, number, *self._shares))

    def shared(self, statistic: Statistic, number: int, seed: np.uint64) -> RankedDraws | None:
        """Return draws of labels that share more of their shocks, where the test needs them; None where it does not."""
        for shares in self.scheme.further:
            draws = SharedShockDraws.with_shares(shares, self.sample, number, 0)
            return RankedDraws.of(self._null(statistic, replace(draws, seed=seed)))
        return None

    def _null(self, statistic: Statistic, draws: Draws) -> Floats:
        (found,) = draw_nulls([Question(statistic, LensView(self.sample))], self.sample, draws)
        return found

    def values(
        self, statistic: Statistic, true_prob: Floats, seed: np.uint64, first: int, number: int
    ) -> tuple[Floats, Floats]:
        """Return the components of some data sets with true probabilities, studentised and as they are."""
        draws = TimedDraws(seed, first, number, *self._shares)
        moved = replace(self.sample, given_null=true_prob)
        parts = [self._components(statistic, draws, labels) for _, labels in draws.blocks(moved)]
        scaled, plain = (np.concatenate(each, axis=1) for each in zip(*parts, strict=True))
        return scaled, plain

    def _components(
        self, statistic: Statistic, draws: TimedDraws, labels: NDArray[np.unsignedinteger]
    ) -> tuple[Floats, Floats]:
        plain, scale = components(statistic, self.sample, labels), draws.scale(self.sample, labels)
        assert scale is not None
        return scale_components(statistic, plain, scale), plain
