"""The data-dependent partition of the paper: a tree that splits where predictions vary most."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._refit_intervals import fit_trees
from caltest._compiled._refit_trees import fit_class_trees
from caltest.predictions._partitions import Assignment, Intervals, Partition, block_starts
from caltest.predictions._validation import validate_choice, validate_count


@dataclass(frozen=True)
class VarianceTree(Partition):
    r"""The data-dependent tree: a node is split on the class whose probability varies most in it.

    The paper's data-dependent scheme (appendix B; Nobel 1996), with both stopping rules found in practice. The left
    child takes the rows with probability below the threshold t.

    * ``min_leaf`` given: t is the upper median ``sorted(x)[n // 2]``; a node is split if both children keep at least
      ``min_leaf`` rows, else it is a leaf; no other class is tried (CalibrationErrors.jl).
    * ``min_split`` given: every node of at least that many rows is split, at its mean or median (the average of the
      two middle values for even n), unless one side would be empty (uu-sml/calibration).
    * neither given: ``max_cells`` = 2 ** round(0.3 log2 n) unless given, and ``min_leaf`` = max(1, int(0.7 n /
      max_cells)).

    A node of which half the rows share the smallest value of that class is a leaf by the first and third rule: nothing
    lies below its median. Rounded or one-hot predictions may so share one cell, in which errors cancel; then choose
    `EqualWidth` or `min_split`.

    Parameters
    ----------
    split : {"median", "mean"}
        Where a node is cut; "mean" needs ``min_split``.
    min_leaf, min_split : int, optional
        Fewest rows of a leaf; fewest rows of a node that is split. At most one of the two.
    max_cells : int, optional
        At most this many cells; the node of largest variance is split first.

    Raises
    ------
    ValueError
        If both minima are given, if ``split="mean"`` comes without ``min_split``, or a number is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> event = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
    >>> prob = np.column_stack([1 - event, event])
    >>> VarianceTree(min_leaf=2).fit(prob)(prob)
    array([0, 0, 1, 1, 2, 2, 3, 3])
    """

    split: str = "median"
    min_leaf: int | None = None
    min_split: int | None = None
    max_cells: int | None = None

    def __post_init__(self) -> None:
        validate_choice(self.split, "split", ("median", "mean"))
        for name in ("min_leaf", "min_split", "max_cells"):
            if getattr(self, name) is not None:
                validate_count(getattr(self, name), name)
        if self.min_leaf is not None and self.min_split is not None:
            msg = f"`min_leaf` and `min_split` exclude each other, got {self.min_leaf} and {self.min_split}."
            raise ValueError(msg)
        if self.split == "mean" and self.min_split is None:
            msg = 'split="mean" needs `min_split`, got None.'
            raise ValueError(msg)

    def fit(self, prob: NDArray[np.float64]) -> Assignment:
        """Grow the tree on ``prob (n_samples, n_outcomes)`` and return the assignment of rows to its leaves."""
        feature = prob[:, 1:] if prob.shape[1] == 2 else prob
        min_leaf, max_cells = self._limits(len(prob))
        tree = _grow(feature, self._cut(min_leaf), max_cells)
        if prob.shape[1] == 2:
            return Intervals(np.sort(tree.threshold[tree.left >= 0]))
        return tree

    @property
    def refits(self) -> bool:  # type: ignore[override]
        """Whether `refit` is defined: for medians, which are values; rounding may move a mean across one."""
        return self.split == "median"

    def refit(self, event: NDArray[np.float64], drawn: NDArray[np.uint16]) -> NDArray[np.int64]:
        """Grow the tree anew on every resample, cut at medians."""
        min_leaf, max_cells = self._limits(len(event))
        cut = self._cut(min_leaf)
        cells = max(1, min(max_cells, len(event) // cut.min_leaf))
        values = np.ascontiguousarray(event)
        limits = cut.min_rows, cut.min_leaf, min_leaf is not None, cells
        return fit_trees(values, block_starts(values), drawn, *limits)

    def refit_classes(
        self,
        ranks: Ranks,
        null_prob: NDArray[np.float64],
        rows: NDArray[np.int32],
        outcomes: NDArray[Any],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Grow the tree anew on rows drawn from many classes, ``(n_replicates, n_samples)``, and sum over its leaves.

        Returns counts ``(n_replicates, n_cells)``, sums of ``null_prob (n_samples, n_outcomes)`` and outcome counts,
        ``(n_replicates, n_cells, n_outcomes)``; cells may be empty.
        """
        min_leaf, max_cells = self._limits(len(ranks.prob))
        cut = self._cut(min_leaf)
        cells = max(1, min(max_cells, len(ranks.prob) // cut.min_leaf))
        limits = cut.min_rows, cut.min_leaf, min_leaf is not None, cells
        capacity = min(cells, 4 * len(ranks.prob) // cut.min_rows + 16)
        while True:
            shape = len(rows), capacity
            sums = np.zeros(shape), np.zeros((*shape, null_prob.shape[1])), np.zeros((*shape, null_prob.shape[1]))
            used = fit_class_trees(ranks.prob, null_prob, ranks.rank, ranks.values, rows, outcomes, *limits, *sums)
            if used >= 0:
                return sums[0][:, :used], sums[1][:, :used], sums[2][:, :used]
            capacity = min(cells, 2 * capacity)  # ties cut off small leaves

    def wanted_cells(self, n_samples: int) -> int:
        """Return the number of cells that the default rule aims at; 1 for the others, which aim at none."""
        if self.min_leaf is None and self.min_split is None:
            return self._limits(n_samples)[1]
        return 1

    def _limits(self, n_samples: int) -> tuple[int | None, int]:
        """Return the fewest rows of a leaf, if given or by default, and the most cells."""
        min_leaf, max_cells = self.min_leaf, self.max_cells
        if min_leaf is None and self.min_split is None:
            max_cells = max_cells or 2 ** round(0.3 * np.log2(n_samples))
            min_leaf = max(1, int(0.7 * n_samples / max_cells))
        return min_leaf, max_cells or n_samples

    def _cut(self, min_leaf: int | None) -> _Cut:
        if min_leaf is not None:
            return _Cut(min_rows=2 * min_leaf, min_leaf=min_leaf, middle=_upper_median)
        middle = _mean if self.split == "mean" else np.median
        return _Cut(min_rows=self.min_split or 1, min_leaf=1, middle=middle)


@dataclass(frozen=True, eq=False)
class Ranks:
    """Predictions with their order, made once for all resamples.

    Attributes
    ----------
    prob : array of shape (n_samples, n_outcomes)
        Predictions.
    rank : array of shape (n_outcomes, n_samples)
        Place of each prediction among the distinct values of its class.
    values : array of shape (n_outcomes, n_samples)
        Distinct values of each class, increasing; the rest is 0.
    """

    prob: NDArray[np.float64]
    rank: NDArray[np.int32]
    values: NDArray[np.float64]

    @classmethod
    def of(cls, prob: NDArray[np.float64]) -> Ranks:
        """Return the ranks of ``prob (n_samples, n_outcomes)``."""
        rank, values = np.empty(prob.T.shape, dtype=np.int32), np.zeros(prob.T.shape)
        for k, column in enumerate(prob.T):
            distinct, rank[k] = np.unique(column, return_inverse=True)
            values[k, : len(distinct)] = distinct
        return cls(np.ascontiguousarray(prob), rank, values)


def _mean(values: NDArray[np.float64]) -> float:
    return math.fsum(values) / len(values)  # rounded once: values at the mean change sides with no row order


def _upper_median(values: NDArray[np.float64]) -> Any:
    return np.partition(values, len(values) // 2)[len(values) // 2]


@dataclass(frozen=True)
class _Cut:
    """When and where a node is split: at least ``min_rows`` rows, at least ``min_leaf`` on either side."""

    min_rows: int
    min_leaf: int
    middle: Callable[[NDArray[np.float64]], Any]

    def __call__(self, values: NDArray[np.float64]) -> float | None:
        if len(values) < self.min_rows:
            return None
        threshold = float(self.middle(values))
        below = np.count_nonzero(values < threshold)
        return threshold if min(below, len(values) - below) >= self.min_leaf else None


@dataclass
class _Tree:
    """Nodes as arrays: axis, threshold and children of inner nodes (left < 0 marks a leaf)."""

    axis: NDArray[np.int64]
    threshold: NDArray[np.float64]
    left: NDArray[np.int64]

    def __call__(self, prob: NDArray[np.float64]) -> NDArray[np.int64]:
        node = np.zeros(len(prob), dtype=np.int64)
        row = np.arange(len(prob))
        while len(row):
            row = row[self.left[node[row]] >= 0]
            at = node[row]
            node[row] = self.left[at] + (prob[row, self.axis[at]] >= self.threshold[at])
        return node


def _grow(feature: NDArray[np.float64], cut: _Cut, max_cells: int) -> _Tree:
    """Split the node of largest variance until no node can be split or there are ``max_cells`` leaves."""
    axis, threshold, left = [0], [0.0], [-1]
    heap: list[tuple[float, int, int, NDArray[np.int64]]] = []

    def offer(node: int, row: NDArray[np.int64]) -> None:
        if len(row) >= cut.min_rows:
            variance = feature[row].var(axis=0)
            largest = float(f"{variance.max():.12g}")  # rounding, which depends on row order, shall decide nothing
            heapq.heappush(heap, (-largest, node, int(np.argmax(variance >= largest * (1 - 1e-11))), row))

    offer(0, np.arange(len(feature)))
    n_cells = 1
    while heap and n_cells < max_cells:
        _, node, split_axis, row = heapq.heappop(heap)
        values = feature[row, split_axis]
        at = cut(values)
        if at is None:
            continue
        axis[node], threshold[node], left[node] = split_axis, at, len(left)
        axis += [0, 0]
        threshold += [0.0, 0.0]
        left += [-1, -1]
        offer(left[node], row[values < at])
        offer(left[node] + 1, row[values >= at])
        n_cells += 1
    return _Tree(np.array(axis), np.array(threshold), np.array(left))
