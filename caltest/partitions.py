r"""Partitions of the simplex into cells :math:`\Phi = \{\Phi^{(i)}\}` (Vaicenavicius et al. 2019, section 4.1).

A partition has one method, ``fit(prob)``, which returns a function from probabilities ``(n_samples, n_outcomes)`` to
integer cell labels ``(n_samples,)``. The labels of equal rows are equal; nothing else is assumed of them, so that a
grid of 10 cells on each of 10 classes costs memory for its occupied cells only. A plain function from probabilities
to labels is a partition too.

Partitions look at predictions, never at outcomes. For two outcomes every partition acts on the event's probability
(column 1) alone.
"""

import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from caltest._validation import validate_choice, validate_count

Assignment = Callable[[NDArray[np.float64]], NDArray[np.int64]]


class Partition(ABC):
    """What a partition promises: `fit`."""

    @abstractmethod
    def fit(self, prob: NDArray[np.float64]) -> Assignment:
        """Return the function from probabilities ``(n_samples, n_outcomes)`` to cell labels ``(n_samples,)``."""


@dataclass(frozen=True)
class Intervals:
    """Cells of one probability, cut at sorted inner ``edges (n_cells - 1,)``: what 1-D partitions are fitted to.

    With ``closed="left"`` a value equal to an edge belongs to the cell above it, with ``"right"`` to the one below.
    """

    edges: NDArray[np.float64]
    closed: str = "left"

    def __call__(self, prob: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the interval of each row's event probability, 0 to ``len(edges)``."""
        return np.searchsorted(self.edges, prob[:, 1], side=_side(self.closed))


def _side(closed: str) -> Literal["left", "right"]:
    return "right" if closed == "left" else "left"


@dataclass(frozen=True)
class EqualWidth(Partition):
    r"""Cells of equal width: :math:`[j/L, (j+1)/L)`, the last one closed on both sides.

    The edges are the doubles ``j / n_cells`` and are compared exactly: 0.3 lies in cell 3 of 10. For more than two
    outcomes the cells are those of the product grid.

    Parameters
    ----------
    n_cells : int
        Cells on each axis.
    axes : {"free", "all"}
        For more than two outcomes: the grid over all classes but the last, whose probability is determined by the
        others ("free", as in the paper's own code), or over all ("all", as in CalibrationErrors.jl).
    closed : {"left", "right"}
        Which end of an interval belongs to it; with "right" the first cell is closed on both sides.

    Raises
    ------
    ValueError
        If a parameter is not one of those allowed.

    Examples
    --------
    >>> import numpy as np
    >>> event = np.array([0.0, 0.1, 0.29, 0.3, 1.0])
    >>> prob = np.column_stack([1 - event, event])
    >>> EqualWidth(10).fit(prob)(prob)
    array([0, 1, 2, 3, 9])
    """

    n_cells: int
    axes: str = "free"
    closed: str = "left"

    def __post_init__(self) -> None:
        validate_count(self.n_cells, "n_cells")
        validate_choice(self.axes, "axes", ("free", "all"))
        validate_choice(self.closed, "closed", ("left", "right"))

    def fit(self, prob: NDArray[np.float64]) -> Assignment:
        """Return the assignment of probabilities to cells; nothing is learned from ``prob`` but its occupied cells."""
        edges = np.arange(1, self.n_cells) / self.n_cells
        n_outcomes = prob.shape[1]
        if n_outcomes == 2:
            return Intervals(edges, self.closed)
        side = _side(self.closed)
        n_axes = n_outcomes if self.axes == "all" else n_outcomes - 1
        return _Grid(lambda p: np.searchsorted(edges, p[:, :n_axes].T, side=side), self.n_cells, prob)


class _Grid:
    """Labels for the occupied cells of a product grid of any size.

    Axis numbers are folded into one integer, axis by axis; before it would overflow, the codes met so far are replaced
    by their rank among the fitted rows. A cell without fitted rows has the label -1.
    """

    def __init__(self, locate: Callable[[Any], NDArray[np.int64]], n_cells: int, prob: NDArray[np.float64]) -> None:
        self._locate = locate
        self._n_cells = n_cells
        self._known: dict[int, NDArray[np.int64]] = {}
        size = 1
        position = locate(prob)
        code = np.zeros(len(prob), dtype=np.int64)
        for axis, index in enumerate(position):
            if size > 2**62 // n_cells:
                self._known[axis], code = np.unique(code, return_inverse=True)
                size = len(self._known[axis])
            code = code * n_cells + index
            size *= n_cells

    def __call__(self, prob: NDArray[np.float64]) -> NDArray[np.int64]:
        code = np.zeros(len(prob), dtype=np.int64)
        lost = np.zeros(len(prob), dtype=bool)
        for axis, index in enumerate(self._locate(prob)):
            if axis in self._known:
                known = self._known[axis]
                rank = np.minimum(np.searchsorted(known, code), len(known) - 1)
                lost |= known[rank] != code
                code = rank
            code = code * self._n_cells + index
        return np.where(lost, -1, code)


@dataclass(frozen=True)
class Edges(Partition):
    """Intervals between given inner edges; for two outcomes.

    Parameters
    ----------
    edges : iterable of float
        Strictly increasing, strictly inside (0, 1): k edges make k + 1 cells.
    closed : {"left", "right"}
        Which end of an interval belongs to it; the outermost ends always do.

    Raises
    ------
    ValueError
        If the edges are not increasing, leave (0, 1), or there are more than two outcomes when fitted.

    Examples
    --------
    >>> import numpy as np
    >>> event = np.array([0.1, 0.5, 0.9])
    >>> prob = np.column_stack([1 - event, event])
    >>> Edges([0.5, 0.8]).fit(prob)(prob)
    array([0, 1, 2])
    """

    edges: tuple[float, ...]
    closed: str = "left"

    def __init__(self, edges: Iterable[float], closed: str = "left") -> None:
        values = tuple(float(edge) for edge in edges)
        if not values or not all(np.diff((0.0, *values, 1.0)) > 0):
            msg = f"`edges` must be strictly increasing and strictly between 0 and 1, got {values!r}."
            raise ValueError(msg)
        object.__setattr__(self, "edges", values)
        object.__setattr__(self, "closed", validate_choice(closed, "closed", ("left", "right")))

    def fit(self, prob: NDArray[np.float64]) -> Assignment:
        """Return the assignment of probabilities to the given intervals."""
        _require_two_outcomes(prob, "Edges")
        return Intervals(np.array(self.edges), self.closed)


@dataclass(frozen=True)
class EqualMass(Partition):
    """Cells that hold the same number of rows, as far as ties allow; for two outcomes.

    The sorted probabilities are cut where ``numpy.array_split`` cuts them; a block of tied values goes whole to the
    cell of its first row, and cells left empty by that vanish. Row order never matters.

    Parameters
    ----------
    n_cells : int
        Number of cells aimed at.

    Raises
    ------
    ValueError
        If ``n_cells`` is not a positive integer, or there are more than two outcomes when fitted.

    Examples
    --------
    >>> import numpy as np
    >>> event = np.array([0.1, 0.2, 0.2, 0.2, 0.7, 0.9])
    >>> prob = np.column_stack([1 - event, event])
    >>> EqualMass(3).fit(prob)(prob)
    array([0, 0, 0, 0, 1, 1])
    """

    n_cells: int

    def __post_init__(self) -> None:
        validate_count(self.n_cells, "n_cells")

    def fit(self, prob: NDArray[np.float64]) -> Assignment:
        """Return the assignment to intervals that start at the fitted rows' cut values."""
        _require_two_outcomes(prob, "EqualMass")
        event = np.sort(prob[:, 1])
        size, larger = divmod(len(event), self.n_cells)
        cut = np.cumsum(np.where(np.arange(self.n_cells) < larger, size + 1, size))[:-1]
        # A cell starts at the first block of ties that begins at or after its cut.
        start = np.searchsorted(event, event, side="left")
        begins = np.flatnonzero(start == np.arange(len(event)))
        first = np.searchsorted(begins, cut)
        return Intervals(np.unique(event[begins[first[first < len(begins)]]]))


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
        min_leaf, max_cells = self.min_leaf, self.max_cells
        if min_leaf is None and self.min_split is None:
            max_cells = max_cells or 2 ** round(0.3 * np.log2(len(prob)))
            min_leaf = max(1, int(0.7 * len(prob) / max_cells))
        tree = _grow(feature, self._cut(min_leaf), max_cells or len(prob))
        if prob.shape[1] == 2:
            return Intervals(np.sort(tree.threshold[tree.left >= 0]))
        return tree

    def _cut(self, min_leaf: int | None) -> "_Cut":
        if min_leaf is not None:
            return _Cut(min_rows=2 * min_leaf, min_leaf=min_leaf, middle=_upper_median)
        middle = np.mean if self.split == "mean" else np.median
        return _Cut(min_rows=self.min_split or 1, min_leaf=1, middle=middle)


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


def fit_partition(partition: Any, prob: NDArray[np.float64]) -> Assignment:
    """Return the fitted assignment of a `Partition` or of a plain function from probabilities to labels."""
    if isinstance(partition, Partition):
        return partition.fit(prob)
    return lambda new: _checked_labels(partition(new), len(new))


def validate_partition(partition: Any) -> None:
    """Raise ValueError unless ``partition`` is a `Partition` or a function."""
    if isinstance(partition, type) or not (isinstance(partition, Partition) or callable(partition)):
        msg = f"`partition` must be a partition such as EqualWidth(15) or a function, got {partition!r}."
        raise ValueError(msg)


def _checked_labels(label: Any, n_samples: int) -> NDArray[np.int64]:
    values = np.asarray(label)
    if values.shape != (n_samples,) or values.dtype.kind not in "iub":
        msg = (
            f"`partition` must return an integer cell number per row, shape ({n_samples},), "
            f"got {values.dtype} of shape {values.shape}."
        )
        raise ValueError(msg)
    return values.astype(np.int64)


def _require_two_outcomes(prob: NDArray[np.float64], name: str) -> None:
    if prob.shape[1] != 2:
        msg = f"`{name}` needs a two-outcome lens such as Confidence(), got {prob.shape[1]} outcomes."
        raise ValueError(msg)
