r"""Partitions of the simplex into cells :math:`\Phi = \{\Phi^{(i)}\}` (Vaicenavicius et al. 2019, section 4.1).

A partition has one method, ``fit(prob)``, which returns a function from probabilities ``(n_samples, n_outcomes)`` to
integer cell labels ``(n_samples,)``. The labels of equal rows are equal; nothing else is assumed of them, so that a
grid of 10 cells on each of 10 classes costs memory for its occupied cells only. A plain function from probabilities
to labels is a partition too.

Partitions look at predictions, never at outcomes. For two outcomes every partition acts on the event's probability
(column 1) alone.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._refit_intervals import cut_equal_mass
from caltest.predictions._validation import is_ours, validate_choice, validate_count

Assignment = Callable[[NDArray[np.float64]], NDArray[np.int64]]


class Partition(ABC):
    """What a partition promises: `fit`."""

    @abstractmethod
    def fit(self, prob: NDArray[np.float64]) -> Assignment:
        """Return the function from probabilities ``(n_samples, n_outcomes)`` to cell labels ``(n_samples,)``."""

    depends_on_rows: ClassVar[bool] = True
    """Whether other rows may give other cells, so that it is fitted again to every resample of the rows."""

    refits: ClassVar[bool] = False
    """Whether `refit` is defined; otherwise resampled rows are copied and `fit` is called."""

    def refit(self, event: NDArray[np.float64], drawn: NDArray[np.uint16]) -> NDArray[np.int64]:
        """Return the cells of every resample of a two-outcome problem.

        Parameters
        ----------
        event : array of shape (n_samples,)
            The event's probabilities, increasing.
        drawn : array of shape (n_replicates, n_samples)
            How often each row was drawn, in the lower 8 bits.

        Returns
        -------
        array of shape (n_replicates, n_cells + 1)
            Cell b of replicate r holds the rows ``[r, b] : [r, b + 1]``; it may be empty.
        """
        raise NotImplementedError


def block_starts(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the first row of the block of ties of each row, for increasing values."""
    return np.searchsorted(values, values)


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
    n_cells : int or "sqrt"
        Cells on each axis; "sqrt" makes the integer part of the square root of the number of rows (Posocco and
        Bonnefoy 2021, section 4.5.1; they find that it grows somewhat too fast).
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

    n_cells: int | str
    axes: str = "free"
    closed: str = "left"

    depends_on_rows = False

    def __post_init__(self) -> None:
        _validate_n_cells(self.n_cells)
        validate_choice(self.axes, "axes", ("free", "all"))
        validate_choice(self.closed, "closed", ("left", "right"))

    def fit(self, prob: NDArray[np.float64]) -> Assignment:
        """Return the assignment of probabilities to cells; nothing is learned from ``prob`` but its occupied cells."""
        n_cells = _resolve_n_cells(self.n_cells, len(prob))
        edges = np.arange(1, n_cells) / n_cells
        n_outcomes = prob.shape[1]
        if n_outcomes == 2:
            return Intervals(edges, self.closed)
        side = _side(self.closed)
        n_axes = n_outcomes if self.axes == "all" else n_outcomes - 1
        return _Grid(lambda p: np.searchsorted(edges, p[:, :n_axes].T, side=side), n_cells, prob)


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

    depends_on_rows = False

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

    Row order never matters: a block of tied values goes whole to one cell, and cells left empty by that vanish.

    Parameters
    ----------
    n_cells : int or "sqrt"
        Number of cells aimed at; "sqrt" makes the integer part of the square root of the number of rows (Posocco and
        Bonnefoy 2021, section 4.5.1; they find that it grows somewhat too fast).
    cut : {"row", "halfway"}
        "row" cuts the sorted rows where ``numpy.array_split`` cuts them, and a block of tied values belongs to the
        cell of its first row. "halfway" (the adaptive binning of Posocco and Bonnefoy 2021, as released) cuts after
        every ``n_samples // n_cells`` rows, halfway to the next value; a value equal to an edge belongs above it, the
        last cell takes the remainder, and there are at most as many cells as rows.

    Raises
    ------
    ValueError
        If a parameter is not one of those allowed, or there are more than two outcomes when fitted.

    References
    ----------
    N. Posocco and A. Bonnefoy (2021), Estimating expected calibration errors, ICANN, section 4.3.

    Examples
    --------
    >>> import numpy as np
    >>> event = np.array([0.1, 0.2, 0.2, 0.2, 0.7, 0.9])
    >>> prob = np.column_stack([1 - event, event])
    >>> EqualMass(3).fit(prob)(prob)
    array([0, 0, 0, 0, 1, 1])
    >>> EqualMass(3, cut="halfway").fit(prob)(prob)
    array([0, 1, 1, 1, 2, 2])
    """

    n_cells: int | str
    cut: str = "row"

    def __post_init__(self) -> None:
        _validate_n_cells(self.n_cells)
        validate_choice(self.cut, "cut", ("row", "halfway"))

    def fit(self, prob: NDArray[np.float64]) -> Assignment:
        """Return the assignment to intervals between the cuts of the fitted rows."""
        _require_two_outcomes(prob, "EqualMass")
        event = np.sort(prob[:, 1])
        if self.cut == "halfway":
            n_cells = min(_resolve_n_cells(self.n_cells, len(event)), len(event))
            after = np.arange(1, n_cells) * (len(event) // n_cells)
            return Intervals((event[after - 1] + event[after]) / 2)
        starts = self.refit(event, np.ones((1, len(event)), dtype=np.uint16))[0, 1:-1]
        return Intervals(np.unique(event[starts[starts < len(event)]]))

    @property
    def refits(self) -> bool:  # type: ignore[override]
        """Whether `refit` is defined: for cuts at rows."""
        return self.cut == "row"

    def refit(self, event: NDArray[np.float64], drawn: NDArray[np.uint16]) -> NDArray[np.int64]:
        """Cut every resample anew: a cell starts at the first block of ties that begins at or after its cut."""
        n_cells = _resolve_n_cells(self.n_cells, len(event))
        size, larger = divmod(len(event), n_cells)
        cut = np.cumsum(np.where(np.arange(n_cells) < larger, size + 1, size))[:-1]
        return cut_equal_mass(block_starts(event), drawn, cut)


def _validate_n_cells(n_cells: Any) -> None:
    if isinstance(n_cells, str) and n_cells == "sqrt":
        return
    try:
        validate_count(n_cells, "n_cells")
    except ValueError:
        msg = f'`n_cells` must be an integer >= 1 or "sqrt", got {n_cells!r}.'
        raise ValueError(msg) from None


def _resolve_n_cells(n_cells: int | str, n_samples: int) -> int:
    return math.isqrt(n_samples) if isinstance(n_cells, str) else n_cells


@dataclass(frozen=True)
class AgainstRest(Partition):
    """Cells of one outcome against the rest: a partition of the probability that outcome k does not happen.

    A partition made for two outcomes serves any number of them. With two outcomes it is that partition itself.

    Parameters
    ----------
    k : int
        The outcome, from 0.
    partition : Partition or callable
        Cells of the pair ``(prob[:, k], 1 - prob[:, k])``.

    Raises
    ------
    ValueError
        If ``k`` is negative, not an integer, or no outcome when applied.

    Examples
    --------
    >>> import numpy as np
    >>> prob = np.array([[0.5, 0.25, 0.25], [0.125, 0.5, 0.375], [0.25, 0.375, 0.375]])
    >>> AgainstRest(0, EqualMass(3)).fit(prob)(prob)
    array([0, 2, 1])
    """

    k: int = 0
    partition: Partition | Any = EqualMass(10)

    def __post_init__(self) -> None:
        validate_count(self.k, "k", minimum=0)
        validate_partition(self.partition)

    @property
    def depends_on_rows(self) -> bool:  # type: ignore[override]
        """Whether the cells of the pair do."""
        return getattr(self.partition, "depends_on_rows", False)

    def fit(self, prob: NDArray[np.float64]) -> Assignment:
        """Return the function from probabilities to cell numbers."""
        assign = fit_partition(self.partition, self._pair(prob))
        return lambda new: assign(self._pair(new))

    def _pair(self, prob: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.k >= prob.shape[1]:
            msg = f"`k` must be less than the number of outcomes, {prob.shape[1]}, got {self.k}."
            raise ValueError(msg)
        return prob if prob.shape[1] == 2 else np.column_stack([prob[:, self.k], 1 - prob[:, self.k]])


def fit_partition(partition: Any, prob: NDArray[np.float64]) -> Assignment:
    """Return the fitted assignment of a `Partition` or of a plain function from probabilities to labels."""
    if is_ours(partition):
        return partition.fit(prob)
    if isinstance(partition, Partition):
        assign = partition.fit(prob.copy())
        return lambda new: assign(new.copy())
    return lambda new: _checked_labels(partition(new.copy()), len(new))


def validate_partition(partition: Any) -> None:
    """Raise ValueError unless ``partition`` is a `Partition` or a function."""
    if isinstance(partition, type) or not (isinstance(partition, Partition) or callable(partition)):
        msg = f"`partition` must be a partition such as EqualWidth(15) or a function, got {partition!r}."
        raise ValueError(msg)
    try:
        hash(partition)
    except TypeError:
        msg = f"`partition` must be hashable, such as a frozen dataclass, got {partition!r}."
        raise ValueError(msg) from None


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
