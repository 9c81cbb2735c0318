"""Labels simulated by their departures from the usual ones, where these are few."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._alias import alias_tables
from caltest._compiled._draws import random_words
from caltest._compiled._points import draw_departures, point_rates, poisson_thresholds, usual_outcomes
from caltest.predictions._arrays import Integers
from caltest.predictions._lens import outcome_dtype
from caltest.predictions._sample import Sample
from caltest.resampling.draws._alias_tables import FEW

LARGEST_DEPARTURE = 0.13
"""Mean chance that a label is not the most probable one, up to which looking for such labels is faster than drawing all
of them. Measured; see docs/how-it-is-fast.md."""
MOST_ENTRIES = 2**20
"""Observations times classes, up to which there are tables: they take several times the memory of the predictions."""
_IN_CACHE = 2**18  # tables of more entries are read more slowly: a third as many labels may depart
_LIKELY = 0.5  # an outcome of this probability is more probable than all others
_DEVIATIONS = 12  # P(a Poisson number is so many standard deviations above its mean) is far below that of any draw
_LANES = 32  # words are made in groups of so many


@dataclass(frozen=True, eq=False)
class Departures:
    """Simulated labels of several replicates that are not the usual ones.

    Attributes
    ----------
    entry : array of unsigned integers
        ``row << shift | label`` of these labels, replicate by replicate.
    end : array of shape (n_replicates + 1,)
        Those of replicate r are ``entry[end[r] : end[r + 1]]``.
    """

    entry: NDArray[np.uint32]
    end: Integers

    @property
    def n_replicates(self) -> int:
        """Number of replicates."""
        return len(self.end) - 1


@dataclass(frozen=True, eq=False)
class Points:
    """What labels of a sample are drawn from by Poisson points; see `_compiled._points`.

    Attributes
    ----------
    n_outcomes : int
        Number of outcomes.
    usual : array of shape (n_samples,)
        The most probable outcome of each observation.
    shift : int
        The number of an entry is ``row << shift | outcome``.
    prob : array of shape (n_samples, n_outcomes)
        Null probabilities.
    """

    n_outcomes: int
    usual: NDArray[Any]
    shift: int
    prob: NDArray[Any]

    @classmethod
    def of(cls, sample: Sample) -> Points | None:
        """Return the points of a sample; None where drawing every label is faster."""
        prob = np.ascontiguousarray(sample.given_null)
        n_samples, n_outcomes = prob.shape
        if n_outcomes > FEW or prob.size > MOST_ENTRIES:
            return None
        usual = np.empty(n_samples, dtype=outcome_dtype(n_outcomes))
        departure = usual_outcomes(prob, usual)[2]
        # Not `mean` and `sum`, whose order depends on the processor.
        largest = LARGEST_DEPARTURE if prob.size <= _IN_CACHE else LARGEST_DEPARTURE / 3
        if np.cumsum(departure)[-1] > largest * n_samples:
            return None
        return cls(n_outcomes, usual, (n_outcomes - 1).bit_length(), prob)

    @cached_property
    def _tables(self) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        chances, others, departure = usual_outcomes(self.prob, self.usual.copy())
        entry, rate = point_rates(chances, others, departure, self.shift)
        mean = float(np.cumsum(rate)[-1]) if len(rate) else 0.0
        most = math.ceil(mean + _DEVIATIONS * math.sqrt(mean)) + 2 * _LANES - 1
        number = poisson_thresholds(mean, most // _LANES * _LANES)
        thresholds, alias = alias_tables(rate, np.array([0, len(rate)]))
        return number, np.column_stack([thresholds, entry, entry[alias]])

    @property
    def number(self) -> NDArray[np.uint64]:
        """Cumulative distribution of the number of points, times 2**64."""
        return self._tables[0]

    @property
    def table(self) -> NDArray[np.uint32]:
        """Alias table ``(m, 3)`` of the m entries that points fall on: thresholds, entries and their aliases."""
        return self._tables[1]

    @property
    def n_samples(self) -> int:
        """Number of observations."""
        return len(self.usual)

    @property
    def bytes_each(self) -> int:
        """Memory of the random numbers and departures of one replicate."""
        return 12 * len(self.number)

    def blocks(self, seed: np.uint64, first: int, n_replicates: int, size: int) -> Iterator[Departures]:
        """Yield the labels of the replicates from ``first`` on, ``size`` of them at a time, in the same memory."""
        size = min(size, n_replicates)
        words = np.empty((size, len(self.number)), dtype=np.uint64)
        entry, end = np.empty(words.size, dtype=np.uint32), np.empty(size + 1, dtype=np.int64)
        hit, table = np.zeros(self.n_samples, dtype=np.uint8), self.table.ravel()
        for start in range(0, n_replicates, size):
            part = min(size, n_replicates - start)
            random_words(seed, first + start, words[:part])
            draw_departures(words[:part], self.number, table, self.shift, hit, entry, end)
            yield Departures(entry, end[: part + 1])

    def labels(self, drawn: Departures) -> NDArray[Any]:
        """Return all labels ``(n_replicates, n_samples)``."""
        labels = np.tile(self.usual, (drawn.n_replicates, 1))
        entry = drawn.entry[: drawn.end[-1]]
        labels[np.repeat(np.arange(len(labels)), np.diff(drawn.end)), entry >> self.shift] = entry & (
            (1 << self.shift) - 1
        )
        return labels

    def departures(self, labels: NDArray[Any]) -> Departures:
        """Return given labels ``(n_replicates, n_samples)``."""
        replicate, row = np.nonzero(labels != self.usual)
        entry = (row << self.shift) | labels[replicate, row]
        number = np.bincount(replicate, minlength=len(labels))
        return Departures(entry.astype(np.uint32), np.concatenate([[0], np.cumsum(number)]))


def has_records(sample: Sample) -> bool:
    """Return whether entries have records of what labels add to several summaries: where they stay in the cache."""
    return sample.n_outcomes <= FEW and sample.given.size <= _IN_CACHE


def usual_labels(sample: Sample) -> Integers:
    """Return the usual label of each observation, ``(n_samples,)``: what most draws have; -1 where there is none.

    Where labels are drawn by their departures every observation has one; where all are counted none has.
    """
    points, null = sample.once(Points.of), sample.given_null
    if points is not None:
        return points.usual.astype(np.int64)
    if has_records(sample):
        return np.full(sample.n_samples, -1)
    return np.where(null.max(axis=1) >= _LIKELY, null.argmax(axis=1), -1)
