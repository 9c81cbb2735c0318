"""The number of observations of each class, against its distribution if the model is calibrated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from caltest.estimation.event._event_cells import EventCells
from caltest.estimation.event._event_count import EventCount
from caltest.predictions._arrays import Floats, Integers, blocks
from caltest.predictions._sample import Sample
from caltest.resampling.distributions._poisson_binomial import Events
from caltest.resampling.draws._timed_draws import draws_of_test
from caltest.resampling.engine._pvalues import correct_pvalues

_TIES = 1 - 1e-12
_BLOCK_VALUES = 2**16  # in the cache
_N_SUMS = 6
_DRAWS = 999  # of labels that depend on each other in time


@dataclass(frozen=True, eq=False)
class ClassTotals:
    r"""Numbers of observations of each class, which are Poisson-binomial if the model is calibrated.

    The probabilities :math:`p_{1k}, \dots, p_{nk}` of a class are replaced by three with weights that have the same
    sums of powers up to the fifth, so that one pass over the predictions suffices. The number of observations then has
    the same first five cumulants. Two-sided p-values above 1e-4 had a relative error of .02 at most in 15 designs.

    Attributes
    ----------
    count : array of shape (n_classes,)
        Observed number of observations of each class.
    events : sequence of Events
        For each class, the distribution of this number.
    """

    count: Integers
    events: Sequence[Events]

    @classmethod
    def of(cls, prob: NDArray[np.floating], outcome: NDArray[np.integer]) -> ClassTotals:
        """Return the totals of predictions ``(n_samples, n_classes)`` and outcomes ``(n_samples,)``."""
        n, n_classes = prob.shape
        sums = np.zeros((_N_SUMS, n_classes))
        sums[0] = n
        for rows in blocks(n, n_classes, _BLOCK_VALUES):
            part = prob[rows].astype(np.float64)
            power = part.copy()
            for k in range(1, _N_SUMS):
                sums[k] += power.sum(axis=0)
                power *= part
        return cls(np.bincount(outcome, minlength=n_classes), Events.of_power_sums(sums))

    @property
    def n_samples(self) -> int:
        """Number of observations."""
        return int(self.count.sum())

    @cached_property
    def predicted(self) -> Floats:
        """Average prediction of each class."""
        return np.array([events.weight @ events.prob for events in self.events]) / self.n_samples

    @property
    def observed(self) -> Floats:
        """Frequency of each class."""
        return self.count / self.n_samples

    @cached_property
    def pvalue(self) -> Floats:
        """Two-sided p-values of the classes, adjusted for their number by Holm's method."""
        single = [events.two_sided(int(k)) for events, k in zip(self.events, self.count, strict=True)]
        return correct_pvalues(single)

    def interval(self, k: int, level: float) -> tuple[float, float]:
        """Return confidence limits of the average probability of a class, if the logits of all predictions are shifted.

        Parameters
        ----------
        k : int
            Number of the class.
        level : float
            Confidence level of the intervals of all classes together (Bonferroni).

        Returns
        -------
        tuple of float
            Lower and upper limit.
        """
        events, share = self.events[k], self.observed[k]
        cells = EventCells.of_counts(events.prob, events.weight, events.weight * share)
        ends = EventCount(cells).interval((1 - level) / 2 / len(self.count))
        low, high = (float(cells.count @ cells.prob(end, 1.0)) / self.n_samples for end in ends)
        return low, high


@dataclass(frozen=True, eq=False)
class DrawnTotals(ClassTotals):
    r"""Numbers of observations of each class, of which draws were made: by a state, or of labels that depend in time.

    The score of a class is :math:`|n_k - E_k| / s_k`, with its expected number :math:`E_k` and the mean square
    :math:`s_k^2` of this difference over the draws and the data. The p-value of a class is the share of them whose
    largest score of all classes is at least as large (single-step max), which is exact at every sample size.

    Attributes
    ----------
    drawn : array of shape (n_resamples, n_classes)
        Drawn numbers of observations of each class.
    expected : array of shape (n_classes,)
        Sums of the predictions.
    """

    drawn: Integers
    expected: Floats

    @classmethod
    def in_time(cls, sample: Sample) -> DrawnTotals:
        """Return the totals of a sample with times, with draws of labels as dependent as those of its test."""
        n_classes, labels = sample.n_outcomes, draws_of_test(sample, _DRAWS, 0).blocks(sample)
        drawn = [np.bincount(one, minlength=n_classes) for _, some in labels for one in some]
        count = np.bincount(sample.outcome, minlength=n_classes)
        return cls(count, (), np.stack(drawn), sample.given.sum(axis=0, dtype=np.float64))

    @cached_property
    def predicted(self) -> Floats:
        """Average prediction of each class."""
        return self.expected / self.n_samples

    @cached_property
    def _differences(self) -> Floats:
        return np.vstack([self.count, self.drawn]) - self.expected

    @cached_property
    def _std(self) -> Floats:
        return np.sqrt(np.square(self._differences).mean(axis=0))

    @cached_property
    def pvalue(self) -> Floats:
        """P-values of the classes, adjusted for their number."""
        scores = np.abs(self._differences) / np.maximum(self._std, np.finfo(np.float64).tiny)
        return (scores.max(axis=1, keepdims=True) >= _TIES * scores[0]).mean(axis=0)

    def interval(self, k: int, level: float) -> tuple[float, float]:
        """Return approximate confidence limits of the average probability of a class, from the normal distribution."""
        from scipy.special import ndtri

        half = ndtri(1 - (1 - level) / 2 / len(self.count)) * self._std[k] / self.n_samples
        share = float(self.observed[k])
        return max(share - half, 0.0), min(share + half, 1.0)
