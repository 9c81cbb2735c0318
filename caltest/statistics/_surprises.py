"""Outcomes as lists of surprises: what a statistic is computed from that few of many labels change."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Booleans, Floats, Integers
from caltest.predictions._sample import Sample
from caltest.statistics._base import Statistic
from caltest.statistics._segments import usual


@dataclass(frozen=True, eq=False)
class Surprises:
    """The observations of each replicate whose outcome is not the usual one.

    Attributes
    ----------
    place : array of shape (n_surprises,)
        Places of the observations in the sample, replicate by replicate.
    end : array of shape (n_replicates + 1,)
        The surprises of replicate r are those from ``end[r]`` to ``end[r + 1]``.
    """

    place: Integers
    end: Integers

    @classmethod
    def of(cls, surprise: NDArray[np.uint8]) -> Surprises:
        """List the surprises ``(n_replicates, n_samples)``, which are 1, the others 0."""
        n_replicates, n = surprise.shape
        found = np.flatnonzero(surprise.view(bool))
        end = np.searchsorted(found, np.arange(n_replicates + 1) * n)
        found -= np.repeat(np.arange(n_replicates) * n, np.diff(end))
        return cls(found, end)

    @classmethod
    def of_unsorted(cls, sample: Sample, happened: Booleans) -> Surprises:
        """List the surprises of whether the event happened, in the order of the caller's rows ``sample.row``."""
        place, expected = sample.once(_unsorted)
        listed = cls.of((happened != expected).view(np.uint8))
        return cls(place[listed.place], listed.end)


def _unsorted(sample: Sample) -> tuple[Integers, Booleans]:
    """Return the place of each row of the caller, and whether the event is usual there; for `Sample.once`."""
    place, expected = np.empty(sample.n_samples, dtype=np.int64), np.empty(sample.n_samples, dtype=bool)
    place[sample.row], expected[sample.row] = np.arange(sample.n_samples), sample.once(usual)
    return place, expected


class SurpriseStatistic(Statistic):
    """Base class of statistics that are faster from lists of surprises, where these are few."""

    @abstractmethod
    def needs_surprises(self, sample: Sample) -> bool:
        """Return whether surprises suffice and are faster, from the predictions alone."""

    @abstractmethod
    def evaluate_surprises(self, sample: Sample, listed: Surprises) -> Floats:
        """Return the statistic ``(n_replicates,)`` of surprises."""
