"""Blocks of neighbouring predictions, whose numbers of events bound a non-decreasing calibration function."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._bands import lower_band, smallest_tails
from caltest.predictions._sample import Sample
from caltest.resampling._draws import Draws

_MOST_SCORES, _DIGITS = 10_000, 4  # the band takes time in proportion to the square of the groups
_ALL_UP_TO, _GROWTH = 8, 1.5  # lengths of the blocks that the test compares


@dataclass(frozen=True, eq=False)
class ScoreGroups:
    """Neighbouring scores in groups whose blocks are bounded.

    Attributes
    ----------
    score, count, events : arrays of shape (n_scores,)
        Distinct scores, increasing, with their numbers of observations and events.
    index : array of shape (n_scores,)
        Group of each score, 0 to n_groups - 1.
    digits : int or None
        Decimals to which the scores of a group are equal; None if each score is a group.
    """

    score: NDArray[np.float64]
    count: NDArray[np.int64]
    events: NDArray[np.int64]
    index: NDArray[np.int64]
    digits: int | None

    @classmethod
    def of(cls, sample: Sample, digits: int | None = None) -> ScoreGroups:
        """Group the scores of a sample that are equal when rounded; without ``digits``, only where there are many."""
        score, place = np.unique(np.clip(sample.event, 0.0, 1.0), return_inverse=True)
        count = np.bincount(place)
        events = np.bincount(place, weights=sample.outcome).astype(np.int64)
        if digits is None and len(score) > _MOST_SCORES:
            digits = _DIGITS
        shown = score if digits is None else np.round(score, digits)
        return cls(score, count, events, np.append(0, np.cumsum(np.diff(shown) > 0)), digits)

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(self.index[-1]) + 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Numbers of groups in the blocks that the test compares: all small ones, then some of the larger ones."""
        steps = np.arange(1 + math.log(max(self.n_groups / _ALL_UP_TO, 1.0)) / math.log(_GROWTH))
        longer = np.rint(_ALL_UP_TO * _GROWTH**steps).astype(np.int64)
        lengths = np.unique(np.concatenate([np.arange(1, _ALL_UP_TO + 1), longer]))
        return lengths[lengths <= self.n_groups]

    @cached_property
    def is_first(self) -> NDArray[np.bool_]:
        """Whether a score is the smallest of its group."""
        return np.append(True, np.diff(self.index) > 0)

    @cached_property
    def is_last(self) -> NDArray[np.bool_]:
        """Whether a score is the largest of its group."""
        return np.append(np.diff(self.index) > 0, True)

    @cached_property
    def observations(self) -> NDArray[np.int64]:
        """Number of observations in each group."""
        return self._by_group(self.count)

    def _by_group(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return sums over groups ``(..., n_groups)`` of values ``(..., n_scores)``."""
        return np.add.reduceat(values, np.flatnonzero(self.is_first), axis=-1)

    def band(self, lengths: NDArray[np.int64], log_level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the ends of the band ``(n_scores,)`` that blocks of some lengths bound at a level each."""
        events = self._by_group(self.events)
        if log_level == -math.inf:
            return np.zeros(len(self.score)), np.ones(len(self.score))
        low = self._lower_band(self.observations, events, lengths, log_level)
        rest = (self.observations - events)[::-1]
        high = 1 - self._lower_band(self.observations[::-1], rest, lengths, log_level)[::-1]
        # Inside a group the blocks that end with it, or begin with it, give no bound.
        lower = np.where(self.is_last, low[self.index], np.append(0.0, low)[self.index])
        upper = np.where(self.is_first, high[self.index], np.append(high, 1.0)[self.index + 1])
        return lower, upper

    def _lower_band(
        self, rows: NDArray[np.int64], events: NDArray[np.int64], lengths: NDArray[np.int64], log_level: float
    ) -> NDArray[np.float64]:
        full = np.append(False, rows == events)[:-1]
        begins = ((events > 0) & ~full) | (len(lengths) < self.n_groups)
        place = np.arange(len(rows) + 1)
        next_begin = np.minimum.accumulate(np.where(np.append(begins, True), place, len(rows))[::-1])[::-1]
        return lower_band(_before(rows), _before(events), next_begin, lengths, self._log_factorial, log_level)

    def drawn_tails(self, sample: Sample, draws: Draws) -> NDArray[np.float64]:
        """Return the smallest tail of each draw of the labels, ``(n_resamples,)``."""
        start = np.append(0, np.cumsum(self.count))[:-1]  # observations are sorted by the event
        blocks = (outcomes for _, outcomes in draws.blocks(sample))
        return np.concatenate(
            [self.smallest_tails(np.add.reduceat(some, start, axis=1, dtype=np.int64)) for some in blocks]
        )

    def smallest_tails(self, events: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the smallest log tail probability of all blocks if the model is calibrated, ``(n_draws,)``.

        ``events (n_draws, n_scores)`` are the numbers of events. A tail is that of so many events in a block, or more,
        with the probability of its last score, or of so few with the probability of its first.
        """
        counted = self._by_group(events)
        best = np.zeros(len(events))
        last, first = self.score[self.is_last], 1 - self.score[self.is_first][::-1]
        rest = (self.observations - counted)[:, ::-1]
        for rows, some, score in ((self.observations, counted, last), (self.observations[::-1], rest, first)):
            smallest_tails(_before(rows), _before(some), self.lengths, score, self._log_factorial, best)
        return best

    @cached_property
    def _log_factorial(self) -> NDArray[np.float64]:
        from scipy.special import gammaln

        return gammaln(np.arange(self.count.sum() + 1) + 1.0)


def _before(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sums before each position of the last axis, and all of them last."""
    total = np.zeros((*values.shape[:-1], values.shape[-1] + 1), dtype=np.int64)
    np.cumsum(values, axis=-1, out=total[..., 1:])
    return total
