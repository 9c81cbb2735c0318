r"""Kernel sums of drawn outcomes, expanded about the most likely ones, so that a draw costs only what it changes.

With :math:`z_i = e_{y_i} - p_i = b_i + s_i`, where the base :math:`b_i` is :math:`e_c - p_i` if class c is more
probable than not and :math:`-p_i` otherwise,

.. math:: \sum_{i,j} k_{ij} \, z_i \cdot z_j = \sum_{i,j} k_{ij} \, b_i \cdot b_j
          + 2 \sum_i s_i \cdot \sum_j k_{ij} b_j + \sum_{i,j} k_{ij} \, s_i \cdot s_j.

The first two sums are computed once. In the third :math:`s_i` is 0 for an observation of its base class and one or two
signed unit vectors otherwise, and only pairs of the same class add something.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._kernel_updates import add_changes, list_changes
from caltest._compiled._lookup import sum_selected
from caltest.predictions._sample import Sample
from caltest.statistics._similarity import Similarity, tiles_of


@dataclass(frozen=True)
class Expand:
    """The function that computes the expansion of a sample without weights; for `Sample.once`."""

    similarity: Similarity

    def __call__(self, sample: Sample) -> Expansion:
        """Return the expansion: one pass over all pairs of observations."""
        expected = sample.null_prob
        top = expected.argmax(axis=1)
        likely = expected.max(axis=1) > 0.5
        # Observations that change most often come first: blocks that never change are never visited.
        order = np.argsort(np.where(likely, expected.max(axis=1), 0.0), kind="stable")
        prob, expected = sample.prob[order], expected[order]
        base = np.where(likely, top, -1)[order]
        row, kept = np.flatnonzero(base >= 0), base[base >= 0]
        residual = -expected
        residual[row, kept] += 1.0

        smoothed = np.zeros(prob.shape)
        own = np.empty(len(prob))
        for rows, others, similar in self.similarity.blocks(prob):
            smoothed[rows] += similar @ residual[others]
            if rows == others:
                own[rows] = similar.diagonal()
            else:
                smoothed[others] += similar.T @ residual[rows]
        change = 2 * smoothed
        change[row] -= change[row, kept][:, None]
        squared = 1.0 - 2 * expected + np.square(expected).sum(axis=1, keepdims=True)
        return Expansion(
            self.similarity,
            order,
            prob,
            base,
            float((residual * smoothed).sum()),
            change,
            own[:, None] * squared,
        )


@dataclass(frozen=True, eq=False)
class Expansion:
    """The parts of the kernel sum that all draws share.

    Attributes
    ----------
    similarity : Similarity
        The kernel.
    order : array of shape (n_samples,)
        Position in the sample of each observation.
    prob : array of shape (n_samples, n_outcomes)
        Predictions in this order.
    base : array of shape (n_samples,)
        The base class of each observation, -1 for none.
    constant : float
        The sum if every observation had its base class.
    change : array of shape (n_samples, n_outcomes)
        What an outcome adds if all other observations have their base class, without the pair of the observation with
        itself.
    own : array of shape (n_samples, n_outcomes)
        The term of the pair of the observation with itself.
    """

    similarity: Similarity
    order: NDArray[np.int64]
    prob: NDArray[np.float64]
    base: NDArray[np.int64]
    constant: float
    change: NDArray[np.float64]
    own: NDArray[np.float64]

    def sums(self, outcomes: NDArray[Any], *, with_own: bool) -> NDArray[np.float64]:
        """Return the sums over all pairs, or over pairs of different observations, of ``(n_replicates, n_samples)``."""
        drawn = np.ascontiguousarray(outcomes[:, self.order])
        table = self.change if with_own else self.change - self.own
        return self.constant + sum_selected(drawn, table) + self._sum_changes(drawn)

    def _sum_changes(self, drawn: NDArray[Any]) -> NDArray[np.float64]:
        """Return the third sum of the expansion, ``(n_replicates,)``."""
        sums = np.zeros(len(drawn))
        changed = (drawn != self.base).any(axis=0)
        tiles = [tile for tile in tiles_of(len(self.base)) if changed[tile].any()]
        lists = [
            list_changes(drawn, self.base, tile.start, tile.stop - tile.start, self.prob.shape[1]) for tile in tiles
        ]
        for a, rows in enumerate(tiles):
            row = rows.start + np.flatnonzero(changed[rows])
            for tile, (start, place) in zip(tiles[a:], lists[a:], strict=True):
                similar = self.similarity.block(self.prob[row], self.prob[tile])
                add_changes(similar, row, drawn, self.base, start, place, 1.0 if tile == rows else 2.0, sums)
        return sums
