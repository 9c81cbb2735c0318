"""Trees of cells (bins): grown on the predictions that are judged, or on other ones."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from operator import index
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest._compiled._refit_intervals import fit_trees, grow_trees
from caltest._compiled._refit_trees import fit_class_trees
from caltest.predictions._arrays import Floats, Integers, blocks
from caltest.predictions._lens import Lens
from caltest.predictions._lenses import Canonical
from caltest.predictions._sample import Sample
from caltest.predictions.cells._partitions import Assignment, Boxes, Intervals, Partition, block_starts, number_drawn
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._options import InputOption
from caltest.predictions.inputs._refusals import refuse, refuse_if, require
from caltest.predictions.inputs._validation import validate_choice, validate_count, validate_prob

_BLOCK_VALUES = 2**15
_ROUNDING = 1e-9  # of a mean


@dataclass(frozen=True, repr=False)
class VarianceTree(Partition):
    r"""Tree whose nodes are split on the class with the largest variance of its probability.

    The data-dependent partition of Vaicenavicius et al. (2019, appendix B; Nobel 1996), with both stopping rules found
    in practice. A node is cut at its median.

    * ``min_leaf`` given: a node is split if both children keep at least ``min_leaf`` observations
      (CalibrationErrors.jl).
    * ``min_split`` given: every node of at least that many observations is split, at its median or mean, unless one
      side would be empty (uu-sml/calibration).
    * neither given: ``max_cells`` = 2 ** round(0.3 log2 n) unless given, and ``min_leaf`` = max(1, int(0.7 n /
      max_cells)).

    Observations that are equal to the median m stay together: the cut is ``x < m | x >= m`` or, where the lower side is
    too small, ``x <= m | x > m``. If that is none either, the class of next largest variance is tried, until no class
    is left; the two programs stop there. Two outcomes are cut where the sides are more equal, and where both cuts are
    as good, by the second if m < 1/2, or if m = 1/2 and the mean is smaller. An event and its complement then have the
    same cells, unless predictions of 1/2 stand in the middle of a node that is symmetric about them. With ``min_split``
    two outcomes are cut like more. Predictions with few different values have few cells, in which errors may cancel;
    results report it (note C402).

    Parameters
    ----------
    split : {"median", "mean"}
        Where a node is cut; "mean" needs ``min_split``.
    min_leaf, min_split : int, optional
        Smallest number of observations of a leaf; smallest number of a node that is split. At most one of the two.
    max_cells : int, optional
        Largest number of cells; the node of largest variance is split first.

    Raises
    ------
    TypeError
        If a number is not an integer, or ``split`` is no text.
    ValueError
        If both minima are given, if ``split="mean"`` is given without ``min_split``, if a number is < 1, or if
        ``split`` is unknown.

    See Also
    --------
    EqualWidth : Cells of equal width, which do not depend on the predictions.
    EqualMass : Cells with equal numbers of observations, for two outcomes.

    References
    ----------
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, appendix B.
    A. Nobel (1996), Histogram regression estimation using data-dependent partitions, Annals of Statistics 24.

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

    accepts_float32 = True

    def __post_init__(self) -> None:
        validate_choice(self.split, "split", ("median", "mean"))
        for name in ("min_leaf", "min_split", "max_cells"):
            if getattr(self, name) is not None:
                validate_count(getattr(self, name), name)
        if self.min_leaf is not None and self.min_split is not None:
            refuse(f"`min_leaf` and `min_split` exclude each other, got {self.min_leaf} and {self.min_split}.")
        refuse_if(self.split == "mean" and self.min_split is None, 'split="mean" needs `min_split`, got None.')

    def fit(self, prob: Floats) -> Assignment:
        """Grow the tree on ``prob (n_samples, n_outcomes)`` and return the assignment of predictions to its leaves."""
        min_samples, min_leaf, mirrors, max_cells = self._limits(len(prob))
        middle = _upper_median if mirrors else _mean if self.split == "mean" else _median
        if prob.shape[1] == 2:
            cut = _Cut(min_samples, min_leaf, middle, mirrors, increasing=True)
            return Intervals(_thresholds(_increasing(prob[:, 1]), cut, max_cells))
        return _grow(prob, _Cut(min_samples, min_leaf, middle), max_cells)

    @property
    def refits(self) -> bool:
        """Whether `refit` is defined: for medians, which are values; rounding may move a mean across one."""
        return self.split == "median"

    def refit(self, event: Floats, drawn: NDArray[np.uint16]) -> Integers:
        """Grow the tree on every resample of two outcomes, cut at medians."""
        values = np.ascontiguousarray(event)
        return fit_trees(values, block_starts(values), drawn, *self._limits(number_drawn(drawn)))

    def starts(self, values: Floats) -> Integers:
        """Grow the tree on every data set of two outcomes, ``values (n_replicates, n_samples)``, cut at medians."""
        return grow_trees(values, *self._limits(values.shape[1]))

    @property
    def refits_classes(self) -> bool:
        """Whether `refit_classes` is defined: for medians."""
        return self.split == "median"

    def refit_classes(
        self, sample: Sample, positions: NDArray[np.int32], outcomes: NDArray[Any]
    ) -> tuple[Floats, Floats, Floats]:
        """Grow the tree on every resample of more than two outcomes, and sum over its leaves."""
        prob, null_prob = np.ascontiguousarray(sample.prob), sample.null_prob
        rank = sample.once(_ranks)
        n_drawn = positions.shape[1]
        min_samples, min_leaf, _, cells = self._limits(n_drawn)
        limits = min_samples, min_leaf, cells
        capacity = min(cells, 4 * n_drawn // min_samples + 16)
        while True:
            shape = len(positions), capacity
            sums = np.zeros(shape), np.zeros((*shape, sample.n_outcomes)), np.zeros((*shape, sample.n_outcomes))
            used = fit_class_trees(prob, null_prob, rank, positions, outcomes, *limits, *sums)
            if used >= 0:
                return sums[0][:, :used], sums[1][:, :used], sums[2][:, :used]
            capacity = min(cells, 2 * capacity)  # ties cut off small leaves

    def wanted_cells(self, n_samples: int) -> int:
        """Return the number of cells that the default rule aims at; 1 for the others, which aim at none."""
        if self.min_leaf is None and self.min_split is None:
            return self.max_cells or 2 ** round(0.3 * np.log2(n_samples))
        return 1

    def _limits(self, n_samples: int) -> tuple[int, int, bool, int]:
        """Return the smallest node and leaf, whether events mirror, and the most cells."""
        if self.min_split is not None:
            return self.min_split, 1, False, min(self.max_cells or n_samples, n_samples)
        max_cells, min_leaf = self.max_cells or n_samples, self.min_leaf
        if min_leaf is None:
            max_cells = self.wanted_cells(n_samples)
            min_leaf = max(1, int(0.7 * n_samples / max_cells))
        return 2 * min_leaf, min_leaf, True, max(1, min(max_cells, n_samples // min_leaf))


def _ranks(sample: Sample) -> NDArray[np.int32]:
    """Return the rank of each prediction among the distinct values of its class, ``(n_outcomes, n_samples)``."""
    rank = np.empty(sample.prob.T.shape, dtype=np.int32)
    for k, column in enumerate(sample.prob.T):
        rank[k] = np.unique(column, return_inverse=True)[1]
    return rank


def _mean(values: Floats) -> float:
    return math.fsum(values) / len(values)  # rounded once, so that the order of the observations does not matter


def _median(parted: Floats) -> float:
    half = len(parted) // 2
    upper = parted[half]
    lower = upper if len(parted) % 2 else parted[:half].max()
    between = (lower + upper) / 2
    return float(between if between > lower else upper)  # it may round down to the lower one


def _upper_median(parted: Floats) -> float:
    return float(parted[len(parted) // 2])


def _leans_down(values: Floats, median: float) -> bool:
    """Return whether a median lies below 1/2, or equals 1/2 with a mean below it: false of the complements."""
    return median < 0.5 or (median == 0.5 and _mean(values) < 0.5 - _ROUNDING)


@dataclass(frozen=True)
class _Cut:
    """When and where a node is split: at least ``min_samples`` observations, at least ``min_leaf`` on either side.

    ``middle`` gets values that are parted at their middle. Increasing values are, and need not be read from end to end.
    """

    min_samples: int
    min_leaf: int
    middle: Callable[[Floats], float]
    mirrors: bool = False
    increasing: bool = False

    def __call__(self, values: Floats) -> float | None:
        """Return the threshold, from which on values go to the right, or None for a leaf.

        If ``mirrors``, the probabilities of an event and of its complement are cut at the same place.
        """
        if self.increasing:
            middle = self.middle(values)
            n_below, n_up_to = int(values.searchsorted(middle)), int(values.searchsorted(middle, "right"))
        else:
            middle = self.middle(np.partition(values, len(values) // 2))
            n_below, n_up_to = int(np.count_nonzero(values < middle)), int(np.count_nonzero(values <= middle))
        lead = abs(2 * n_below - len(values)) - abs(2 * n_up_to - len(values))
        better = n_below < self.min_leaf
        if self.mirrors:
            better = lead > 0 or (lead == 0 and n_below < n_up_to and _leans_down(values, middle))
        if better:
            n_below, middle = n_up_to, float(values[values > middle].min(initial=math.inf))
        return middle if min(n_below, len(values) - n_below) >= self.min_leaf else None


@dataclass
class Tree:
    """Nodes as arrays: axis, threshold and children of inner nodes (left < 0 marks a leaf)."""

    axis: Integers
    threshold: Floats
    left: Integers

    def __call__(self, prob: Floats) -> Integers:
        node = np.zeros(len(prob), dtype=np.int64)
        row = np.arange(len(prob))
        while len(row):
            row = row[self.left[node[row]] >= 0]
            at = node[row]
            node[row] = self.left[at] + (prob[row, self.axis[at]] >= self.threshold[at])
        return node

    def boxes(self, label: Integers, n_outcomes: int) -> Boxes:
        """Return the ends of leaves on every axis: of all cuts on the way to a leaf the narrowest."""
        lower, upper = np.zeros((len(self.left), n_outcomes)), np.ones((len(self.left), n_outcomes))
        for node in np.flatnonzero(self.left >= 0):  # children come after their parents
            axis, threshold, child = self.axis[node], self.threshold[node], self.left[node]
            lower[child : child + 2], upper[child : child + 2] = lower[node], upper[node]
            upper[child, axis] = lower[child + 1, axis] = threshold
        return lower[label], upper[label]


def _variances(feature: NDArray[Any], row: Integers) -> Floats:
    """Return the variance of each column over some observations."""
    parts = (feature.take(row[some], axis=0) for some in blocks(len(row), feature.shape[1]))
    return _variance_of_blocks(parts, feature.shape[1])


def _variance_of_blocks(blocks: Iterable[NDArray[Any]], n_columns: int) -> Floats:
    """Return the variance of each column ``(n_columns,)`` of blocks of observations, which stay in the cache.

    Their means and sums of squares are combined by the rule of Chan, Golub and LeVeque (1983), so that the predictions
    are read once.
    """
    count, mean, square = 0, np.zeros(n_columns), np.zeros(n_columns)
    for part in blocks:
        block = part.astype(np.float64, copy=False)
        centre = np.add.reduce(block, axis=0) / len(block)
        block = block - centre
        own = np.einsum("ik,ik->k", block, block)
        if count:
            shift, share = centre - mean, len(block) / (count + len(block))
            own, centre = square + (own + shift * shift * (share * count)), mean + shift * share
        count, mean, square = count + len(block), centre, own
    return square / count


def _without_rounding(variance: float) -> float:
    """Return a variance without its last digits, which depend on an order and must decide nothing."""
    return float(f"{variance:.12g}")


def _widest(variance: Floats) -> tuple[float, int]:
    """Return the largest variance and its first class."""
    largest = _without_rounding(variance.max())
    return largest, int(np.argmax(variance >= largest * (1 - 1e-11)))


def _place(feature: NDArray[Any], row: Integers, axis: int, cut: _Cut) -> tuple[int, float] | None:
    """Return the class and the threshold at which a node is cut, from its class ``axis`` of largest variance on."""
    variance: Floats | None = None
    while True:
        threshold = cut(feature[row, axis].astype(np.float64, copy=False))
        if threshold is not None:
            return axis, threshold
        variance = _variances(feature, row) if variance is None else variance
        variance[axis] = -1.0
        largest, axis = _widest(variance)
        if largest <= 0:
            return None


def _increasing(values: NDArray[Any]) -> NDArray[Any]:
    """Return values in increasing order, without gaps in memory; those of a sample are so already."""
    packed = np.ascontiguousarray(values)
    return packed if bool(np.all(packed[:-1] <= packed[1:])) else np.sort(packed)


def _thresholds(values: NDArray[Any], cut: _Cut, max_cells: int) -> Floats:
    """Return the increasing thresholds of the tree of an event, whose nodes are ranges of its increasing values.

    The same nodes as those of `_grow`, but no list of observations is made for any of them.
    """
    heap: list[tuple[float, int, int, int]] = []
    found: list[float] = []

    def offer(node: int, start: int, end: int) -> None:
        if end - start >= cut.min_samples:
            blocks = (values[i : min(i + _BLOCK_VALUES, end), None] for i in range(start, end, _BLOCK_VALUES))
            largest = _without_rounding(_variance_of_blocks(blocks, 1)[0])
            heapq.heappush(heap, (-largest, node, start, end))

    offer(0, 0, len(values))
    while heap and len(found) + 1 < max_cells:
        _, _, start, end = heapq.heappop(heap)
        inside = values[start:end].astype(np.float64, copy=False)
        threshold = cut(inside)
        if threshold is None:
            continue
        found.append(threshold)
        middle = start + int(np.searchsorted(inside, threshold))
        offer(2 * len(found) - 1, start, middle)
        offer(2 * len(found), middle, end)
    return np.sort(np.array(found, dtype=np.float64))


def _grow(feature: NDArray[Any], cut: _Cut, max_cells: int) -> Tree:
    """Split the node of largest variance until no node can be split or there are ``max_cells`` leaves."""
    axis, threshold, left = [0], [0.0], [-1]
    heap: list[tuple[float, int, int, Integers]] = []

    def offer(node: int, row: Integers) -> None:
        if len(row) >= cut.min_samples:
            largest, widest = _widest(_variances(feature, row))
            heapq.heappush(heap, (-largest, node, widest, row))

    offer(0, np.arange(len(feature)))
    while heap and len(left) // 2 + 1 < max_cells:  # a node that is split has two children
        _, node, widest, row = heapq.heappop(heap)
        place = _place(feature, row, widest, cut)
        if place is None:
            continue
        axis[node], threshold[node], left[node] = *place, len(left)
        axis += [0, 0]
        threshold += [0.0, 0.0]
        left += [-1, -1]
        below = feature[row, axis[node]].astype(np.float64, copy=False) < threshold[node]
        offer(left[node], row[below])
        offer(left[node] + 1, row[~below])
    return Tree(np.array(axis), np.array(threshold), np.array(left))


_SHOWN = 4  # cells of a tree that is printed as code


@dataclass(frozen=True, repr=False)
class FixedTree(Partition):
    """Cells (bins) of a tree that does not change, however many predictions there are.

    `FixedTree.grow` makes it of a sample of predictions. Node 0 is the root; a prediction goes to node ``left`` if its
    probability of outcome ``axis`` is less than ``threshold``, and otherwise to node ``left + 1``.

    Parameters
    ----------
    axis : sequence of int
        The outcome at which each node is cut.
    threshold : sequence of float
        Where each node is cut.
    left : sequence of int
        The first child of each node; -1 for a leaf, which is a cell.

    Raises
    ------
    TypeError
        If an argument is no sequence of numbers.
    ValueError
        If lengths differ, these are not the nodes of one tree, or a threshold is not finite; if the fitted predictions
        have fewer outcomes.

    See Also
    --------
    VarianceTree : Grows the tree on the predictions that are tested.
    caltest.streaming.RedrawnCells : Cells of predictions that do not fit into memory, which must be fixed beforehand.

    Examples
    --------
    >>> import numpy as np
    >>> prob = np.array([[0.1, 0.2, 0.7], [0.1, 0.8, 0.1], [0.6, 0.3, 0.1]])
    >>> tree = FixedTree(axis=[1, 0, 0], threshold=[0.5, 0.0, 0.0], left=[1, -1, -1])
    >>> tree.fit(prob)(prob)
    array([1, 2, 1])
    """

    axis: tuple[int, ...]
    threshold: tuple[float, ...]
    left: tuple[int, ...]

    depends_on_sample = False

    def __init__(self, axis: Sequence[int], threshold: Sequence[float], left: Sequence[int]) -> None:
        try:
            object.__setattr__(self, "axis", tuple(index(k) for k in axis))
            object.__setattr__(self, "threshold", tuple(float(cut) for cut in threshold))
            object.__setattr__(self, "left", tuple(index(child) for child in left))
        except (TypeError, ValueError):
            refuse("`axis` and `left` must be sequences of integers, and `threshold` one of numbers.", TypeError)
        n_nodes = len(self.left)
        children = sorted(child for child in self.left if child >= 0)
        whole = children == list(range(1, n_nodes, 2)) and n_nodes % 2 == 1
        later = all(child < 0 or child > node for node, child in enumerate(self.left))
        numbered = later and all(child >= -1 for child in self.left) and all(k >= 0 for k in self.axis)
        if not (len(self.axis) == len(self.threshold) == n_nodes and whole and numbered):
            refuse(
                "`axis`, `threshold` and `left` must be the nodes of one tree: of equal lengths, each node but the "
                "root being a child of an earlier one, -1 for no child, and outcomes numbered from 0."
            )
        refuse_if(not np.isfinite(self.threshold).all(), f"`threshold` must be finite, got {self.threshold}.")

    @classmethod
    @reads_arguments
    def grow(
        cls, y_prob: ArrayLike, tree: VarianceTree | None = None, *, lens: Lens | None = None, **_: Unpack[InputOption]
    ) -> FixedTree:
        """Return the cells of a `VarianceTree` that is grown on predictions of three outcomes or more.

        Parameters
        ----------
        y_prob : array-like of shape (n_samples, n_classes)
            Predictions of a sample; labels play no part.
        tree : VarianceTree, optional
            The tree, ``VarianceTree()`` by default.
        lens : lens, optional
            What will be looked at; the whole prediction by default.

        Returns
        -------
        FixedTree
            The same cells, for any predictions.

        Raises
        ------
        TypeError
            If ``tree`` is no `VarianceTree`.
        ValueError
            If a probability is missing or outside [0, 1], rows do not sum to 1, or there are only two outcomes.

        Examples
        --------
        >>> import caltest
        >>> _, y_prob = caltest.datasets.load_cifar10_vgg16()
        >>> FixedTree.grow(y_prob, caltest.VarianceTree(max_cells=8)).n_cells
        8
        """
        chosen = VarianceTree() if tree is None else tree
        require(isinstance(chosen, VarianceTree), "`tree` must be a VarianceTree", tree, right_type=False)
        must = "`lens` must be a lens such as Canonical() or TopK(2)"
        require(isinstance(lens, Lens | None), must, lens, right_type=False)
        prob = (Canonical() if lens is None else lens).induced(validate_prob(y_prob))
        if prob.shape[1] == 2:
            refuse("`y_prob` must have three outcomes or more; for two, take EqualWidth, Edges or equal_mass_cells.")
        grown = chosen.fit(prob)
        return cls(grown.axis, grown.threshold, grown.left)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        """Code of a small tree; of a larger one its size, and a hash by which different trees are distinguished."""
        code = super().__repr__()
        if self.n_cells <= _SHOWN:
            return code
        return f"<FixedTree of {self.n_cells} cells, {sha256(code.encode()).hexdigest()[:8]}>"

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.left.count(-1)

    def fit(self, prob: Floats) -> Assignment:
        """Return the assignment of probabilities to leaves."""
        if max(self.axis) >= prob.shape[1]:
            refuse(f"this `FixedTree` cuts at outcome {max(self.axis)}, got predictions of {prob.shape[1]} outcomes.")
        return Tree(np.array(self.axis), np.array(self.threshold), np.array(self.left))
