"""Sorted scores, whose ties count as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._effective import effective_of_sums

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class TiedScores:
    """Blocks of equal scores, and what is the mean of a block.

    Attributes
    ----------
    distinct : array of shape (n_blocks,)
        The scores, increasing.
    start, total : arrays of shape (n_blocks,)
        Position of the first observation of each block, and the sum of the shares of all of them.
    share : array of shape (n_samples,)
        Weight of each observation; the sum is 1.
    """

    distinct: Floats
    start: NDArray[np.int64]
    total: Floats
    share: Floats

    @classmethod
    def of(cls, score: Floats, weight: Floats | None) -> TiedScores:
        """Return the blocks of increasing scores ``(n_samples,)``; without weights all observations count the same."""
        start = np.flatnonzero(np.append(True, np.diff(score) > 0))
        share = np.full(len(score), 1.0 / len(score)) if weight is None else weight / weight.sum()
        return cls(score[start], start, np.add.reduceat(share, start), share)

    @property
    def n_effective(self) -> float:
        r"""Effective number of observations, :math:`(\sum_i w_i)^2 / \sum_i w_i^2` (Kish 1965)."""
        return float(effective_of_sums(1.0, float(self.share @ self.share)))

    def mean(self, values: Floats) -> Floats:
        """Return the weighted means of the rows of blocks, ``(n_blocks, ...)`` of ``(n_samples, ...)``."""
        if len(self.start) == len(self.share):
            return values
        weight = self.share if values.ndim == 1 else self.share[:, None]
        total = self.total if values.ndim == 1 else self.total[:, None]
        return np.add.reduceat(weight * values, self.start, axis=0) / total

    def spread(self, values: Floats) -> Floats:
        """Return values of blocks ``(n_blocks,)`` for each of their observations, ``(n_samples,)``."""
        return (
            values
            if len(self.start) == len(self.share)
            else np.repeat(values, np.diff(self.start, append=len(self.share)))
        )
