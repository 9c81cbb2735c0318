r"""Partitions of the simplex into cells :math:`\Phi = \{\Phi^{(i)}\}` (Vaicenavicius et al. 2019, section 4.1).

A partition has one method, ``fit(prob)``, which returns a function from probabilities ``(n_samples, n_outcomes)`` to
integer cell labels ``(n_samples,)``. Equal predictions have equal labels; nothing else is assumed of them, so that a
grid of 10 cells on each of 10 classes costs memory for its occupied cells only. A plain function from probabilities
to labels is a partition too.

Partitions depend on predictions, never on outcomes. For two outcomes every partition acts on the event's probability
(column 1) alone.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._sample import Sample
from caltest.predictions._user_functions import call
from caltest.predictions.inputs._refusals import refuse, require
from caltest.predictions.inputs._validation import validate_choice, validate_count
from caltest.results._naming import Specification

Assignment = Callable[[Floats], Integers]
Boxes = tuple[Floats, Floats]
"""Smallest and largest probabilities of cells, both ``(n_cells, n_outcomes)``."""


class Partition(Specification, ABC):
    """Base class of partitions of the predictions into cells (bins).

    A subclass is a frozen dataclass that defines `fit`. It may define `refit` and `refit_classes`, which are faster
    where observations are resampled, and then sets ``refits`` and ``refits_classes``.

    See Also
    --------
    caltest.EqualWidth : A partition.

    Examples
    --------
    >>> from caltest import EqualWidth
    >>> isinstance(EqualWidth(10), Partition)
    True
    """

    n_outcomes: ClassVar[int | None] = None
    """The number of outcomes that it can cut; None if any."""
    accepts_float32: ClassVar[bool] = False
    """Whether `fit` and the cells take float32 predictions too, so that large ones need not be converted."""

    @abstractmethod
    def fit(self, prob: Floats) -> Assignment:
        """Return the function from probabilities ``(n_samples, n_outcomes)`` to cell labels ``(n_samples,)``."""

    @property
    def depends_on_sample(self) -> bool:
        """Whether the cells depend on the predictions, so that it is fitted again to every resample; an attribute."""
        return True

    def wanted_cells(self, n_samples: int) -> int:
        """Return the number of cells that it aims at; 1 if it aims at none. Far fewer are reported (C402)."""
        return 1

    @property
    def refits(self) -> bool:
        """Whether `refit` is defined; otherwise resampled observations are copied and `fit` is called; an attribute."""
        return False

    @property
    def refits_classes(self) -> bool:
        """Whether `refit_classes` is defined, for more than two outcomes; an attribute."""
        return False

    def refit(self, event: Floats, drawn: NDArray[np.uint16]) -> Integers:
        """Return the cells of every resample of a two-outcome problem.

        Parameters
        ----------
        event : array of shape (n_samples,)
            The event's probabilities, increasing.
        drawn : array of shape (n_replicates, n_samples)
            How often each observation was drawn, in the lower 8 bits; as many of them in every replicate.

        Returns
        -------
        array of shape (n_replicates, n_cells + 1)
            Cell b of replicate r holds the observations ``[r, b] : [r, b + 1]``; it may be empty.
        """
        raise NotImplementedError

    def refit_classes(
        self, sample: Sample, positions: NDArray[np.int32], outcomes: NDArray[Any]
    ) -> tuple[Floats, Floats, Floats]:
        """Return the sums over the cells of every resample of more than two outcomes; cells may be empty.

        Parameters
        ----------
        sample : Sample
            The sample that observations are drawn from.
        positions, outcomes : arrays of shape (n_replicates, n_drawn)
            Positions of the observations drawn, and their outcomes.

        Returns
        -------
        counts, predicted, observed : arrays of shape (n_replicates, n_cells) and (n_replicates, n_cells, n_outcomes)
            Numbers of observations, sums of the sample's ``null_prob``, and counts of outcomes.
        """
        raise NotImplementedError


def number_drawn(drawn: NDArray[np.uint16]) -> int:
    """Return how many observations every replicate of ``drawn (n_replicates, n_samples)`` has, as `refit` takes it."""
    return int((drawn[0] & np.uint16(255)).sum())


def block_starts(values: Floats) -> Integers:
    """Return the first position of the block of ties of each value, for increasing values."""
    first = np.flatnonzero(np.append(True, values[1:] > values[:-1]))
    return np.repeat(first, np.diff(first, append=len(values)))


@dataclass(frozen=True)
class Intervals:
    """Cells of one probability, cut at sorted inner ``edges (n_cells - 1,)``; one-dimensional partitions return it.

    With ``closed="left"`` a value equal to an edge belongs to the cell above it, with ``"right"`` to the one below.
    """

    edges: Floats
    closed: str = "left"

    def __call__(self, prob: Floats) -> Integers:
        """Return the interval of each observation's event probability, 0 to ``len(edges)``."""
        return np.searchsorted(self.edges, prob[:, 1], side=_side(self.closed))


def _side(closed: str) -> Literal["left", "right"]:
    return "right" if closed == "left" else "left"


@dataclass(frozen=True, repr=False)
class EqualWidth(Partition):
    r"""Cells of equal width: :math:`[j/L, (j+1)/L)`, the last one closed on both sides.

    The edges are the doubles ``j / n_cells`` and are compared exactly: 0.3 lies in cell 3 of 10. For more than two
    outcomes the cells are those of the product grid.

    Parameters
    ----------
    n_cells : int, "sqrt" or "cube-root"
        Cells on each axis; "sqrt" makes the integer part of the square root of the number of observations (Posocco
        and Bonnefoy 2021, section 4.5.1; they find that it grows somewhat too fast), "cube-root" its cube root, rounded
        up (``n_bins="cube_root"`` of scikit-learn, pull request 33856).
    axes : {"free", "all"}
        For more than two outcomes: the grid over all classes but the last, whose probability is determined by the
        others ("free", as in the paper's own code), or over all ("all", as in CalibrationErrors.jl).
    closed : {"left", "right", "outer"}
        Which end of an interval belongs to it; with "right" the first cell is closed on both sides. With "outer" a
        value on an edge belongs to the cell that is nearer to 0 or 1, so that the cells of an event and of its
        complement are mirror images, whatever the rounding of ``1 - p`` (an edge at 0.5 belongs to the cell above).

    Raises
    ------
    TypeError
        If ``n_cells`` is neither an integer nor a text, or ``axes`` or ``closed`` is no text.
    ValueError
        If ``n_cells`` < 1 or another text, or if ``axes`` or ``closed`` is unknown.

    See Also
    --------
    EqualMass : Cells with equal numbers of observations.
    Edges : Intervals between given edges.

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

    depends_on_sample = False

    def __post_init__(self) -> None:
        validate_n_cells(self.n_cells)
        validate_choice(self.axes, "axes", ("free", "all"))
        validate_choice(self.closed, "closed", ("left", "right", "outer"))

    def fit(self, prob: Floats) -> Assignment:
        """Return the assignment of probabilities to cells; only its occupied cells depend on ``prob``."""
        n_cells = resolve_n_cells(self.n_cells, len(prob))
        edges = np.arange(1, n_cells) / n_cells
        closed = self.closed
        if closed == "outer":
            edges, closed = _mirrored(edges), "left"
        n_outcomes = prob.shape[1]
        if n_outcomes == 2:
            return Intervals(edges, closed)
        side = _side(closed)
        return _Grid(edges, side, n_outcomes if self.axes == "all" else n_outcomes - 1, prob)


def _mirrored(edges: Floats) -> Floats:
    """Return edges of cells closed on the left for which p lies below an edge if ``1 - p`` lies above its mirror image.

    An edge e below 0.5 becomes the smallest number p whose complement, rounded as ``1 - p`` is, falls short of 1 - e.
    """
    n_low = len(edges) // 2
    mirror = edges[::-1][:n_low]
    low = 1.0 - mirror + 2.0**-54  # where the complement is halfway between two numbers
    while (beyond := 1.0 - (below := np.nextafter(low, 0.0)) < mirror).any():
        low = np.where(beyond, below, low)
    while (short := 1.0 - low >= mirror).any():
        low = np.where(short, np.nextafter(low, 1.0), low)
    return np.concatenate([low, edges[n_low:]])


class _Grid:
    """Labels for the occupied cells of a product grid of any size.

    Axis numbers are folded into one integer, axis by axis; before it would overflow, the codes met so far are replaced
    by their rank among the fitted observations. A cell without fitted observations has the label -1.
    """

    def __init__(self, edges: Floats, side: Literal["left", "right"], n_axes: int, prob: Floats) -> None:
        self._edges, self._side, self._n_axes = edges, side, n_axes
        self._n_cells = n_cells = len(edges) + 1
        self._known: dict[int, Integers] = {}
        size = 1
        position = self._locate(prob)
        code = np.zeros(len(prob), dtype=np.int64)
        for axis, index in enumerate(position):
            if size > 2**62 // n_cells:
                self._known[axis], code = np.unique(code, return_inverse=True)
                size = len(self._known[axis])
            code = code * n_cells + index
            size *= n_cells

    def __call__(self, prob: Floats) -> Integers:
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

    def _locate(self, prob: Floats) -> Integers:
        return np.searchsorted(self._edges, prob[:, : self._n_axes].T, side=self._side)

    def boxes(self, label: Integers, n_outcomes: int) -> Boxes | None:
        """Return the ends of cells on every axis; None if the grid is so large that labels are ranks."""
        if self._known:
            return None
        ends = np.concatenate([[0.0], self._edges, [1.0]])
        lower, upper = np.zeros((len(label), n_outcomes)), np.ones((len(label), n_outcomes))
        for axis in reversed(range(self._n_axes)):
            label, place = np.divmod(label, self._n_cells)
            lower[:, axis], upper[:, axis] = ends[place], ends[place + 1]
        return lower, upper


@dataclass(frozen=True, repr=False)
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
    TypeError
        If ``edges`` is no sequence of numbers, or ``closed`` no text.
    ValueError
        If the edges are not strictly increasing or not strictly between 0 and 1, if ``closed`` is unknown, or if the
        fitted predictions have more than two outcomes.

    See Also
    --------
    EqualWidth : Intervals of equal width.

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

    depends_on_sample = False
    n_outcomes = 2

    def __init__(self, edges: Iterable[float], closed: str = "left") -> None:
        try:
            values = tuple(float(edge) for edge in edges)
        except (TypeError, ValueError):
            refuse(f"`edges` must be a sequence of numbers, got {edges!r}.", TypeError)
        must = "`edges` must be strictly increasing and strictly between 0 and 1"
        require(values and all(np.diff((0.0, *values, 1.0)) > 0), must, values)
        object.__setattr__(self, "edges", values)
        object.__setattr__(self, "closed", validate_choice(closed, "closed", ("left", "right")))

    def fit(self, prob: Floats) -> Assignment:
        """Return the assignment of probabilities to the given intervals."""
        require_two_outcomes(prob, "Edges")
        return Intervals(np.array(self.edges), self.closed)


def validate_n_cells(n_cells: Any) -> None:
    """Refuse a number of cells that is neither a positive integer nor the name of a rule."""
    if isinstance(n_cells, str) and n_cells in {"sqrt", "cube-root"}:
        return
    try:
        validate_count(n_cells, "cells")  # any number, as the scales of TCal have, until the cells are made
    except (TypeError, ValueError) as error:
        msg = f'`n_cells` must be an integer >= 1, "sqrt" or "cube-root", got {n_cells!r}.'
        raise (ValueError if isinstance(n_cells, str) else type(error))(msg) from None


def resolve_n_cells(n_cells: int | str, n_samples: int) -> int:
    """Return the number of cells: the square root of the number of observations, down, or the cube root, up, or given.

    Raises
    ------
    ValueError
        If memory has no room for so many.
    """
    if n_cells == "cube-root":
        return math.ceil(n_samples ** (1 / 3))  # of whole roots no larger than these: tested
    return math.isqrt(n_samples) if isinstance(n_cells, str) else validate_count(n_cells, "n_cells")


def fit_partition(partition: Any, prob: Floats) -> Assignment:
    """Return the fitted assignment of a `Partition` or of a plain function from probabilities to labels."""
    assign = call("partition", partition.fit, prob) if isinstance(partition, Partition) else partition
    return assign if isinstance(assign, Intervals) else partial(_assign, assign)  # results that hold it can be pickled


def cell_boxes(assign: Assignment, label: Integers, n_outcomes: int) -> Boxes | None:
    """Return the boxes that cells of a fitted partition are cut out of the simplex by; None if they are not boxes."""
    inner = assign.args[0] if isinstance(assign, partial) else assign
    return inner.boxes(label, n_outcomes) if hasattr(inner, "boxes") else None


def validate_partition(partition: Any, name: str = "partition") -> Any:
    """Return ``partition`` if it is a `Partition` or a function."""
    if isinstance(partition, type) or not (isinstance(partition, Partition) or callable(partition)):
        refuse(f"`{name}` must be a partition such as EqualWidth(15) or a function, got {partition!r}.", TypeError)
    try:
        hash(partition)
    except TypeError:
        refuse(f"`{name}` must be hashable, such as a frozen dataclass, got {partition!r}.", TypeError)
    return partition


def _assign(assign: Assignment, prob: Floats) -> Integers:
    return _checked_labels(call("partition", assign, prob), len(prob))


def _checked_labels(label: Any, n_samples: int) -> Integers:
    values = np.asarray(label)
    if values.shape != (n_samples,) or values.dtype.kind not in "iub":
        refuse(
            f"`partition` must return an integer cell label per observation, shape ({n_samples},), "
            f"got {values.dtype} of shape {values.shape}."
        )
    return values.astype(np.int64, copy=False)


def require_two_outcomes(prob: Floats, name: str) -> None:
    """Refuse predictions of more than two outcomes; ``name`` is that of the partition."""
    if prob.shape[1] != 2:
        refuse(f"`{name}` needs a two-outcome lens such as Confidence(), got {prob.shape[1]} outcomes.")
