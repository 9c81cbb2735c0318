"""Cells (bins) of a fitted partition, and the sums over cells that every binned statistic needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._cells import count_events, count_outcomes, weigh_outcomes
from caltest.predictions._arrays import Booleans, Floats, Integers
from caltest.predictions._sample import Sample
from caltest.predictions.cells._partitions import Assignment, Partition, fit_partition, validate_partition
from caltest.predictions.inputs._refusals import refuse
from caltest.results import Note

_COLUMNS, _ROWS = 16, 512  # neighbouring columns share lines of memory, which stay in the cache for so many rows
_TOGETHER = 2**21  # values of columns that are copied together, if there are more rows than columns
_BLOCK = 2**15  # observations
_FEW_COLUMNS = 2  # are not worth a copy


def columns_together(n_samples: int) -> int:
    """Return how many columns are copied together: few long ones, which take as much memory as all predictions."""
    return max(2, min(_COLUMNS, _TOGETHER // n_samples))


def contiguous_columns(values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield every column of ``values (n_samples, n_columns)``, copied together with its neighbours."""
    n_samples, n_columns = values.shape
    size = columns_together(n_samples)
    for first in range(0, n_columns, size):
        some = values[:, first : first + size]
        block = np.empty(some.T.shape, dtype=values.dtype)
        for start in range(0, n_samples, _ROWS):
            block[:, start : start + _ROWS] = some[start : start + _ROWS].T
        yield from block


def store_columns(columns: NDArray[Any], values: NDArray[Any]) -> None:
    """Copy ``columns (n_columns, n_samples)`` into ``values (n_samples, n_columns)``; the way back."""
    for start in range(0, len(values), _ROWS):
        values[start : start + _ROWS] = columns[:, start : start + _ROWS].T


@dataclass(frozen=True, eq=False)
class Cells:
    """Occupied cells (bins) of a fitted partition.

    Attributes
    ----------
    label : array of shape (n_cells,)
        The partition's label of each cell, increasing.
    assign : callable
        The fitted partition, from probabilities to labels.
    count : array of shape (n_cells,)
        Observations (weights) in each cell.
    predicted_sum, null_sum : arrays of shape (n_cells, n_outcomes)
        Sums of predictions and of null probabilities.
    start : array of shape (n_cells + 1,) or None
        Position of the first observation of each cell where observations are sorted by cell; None where they are not.
    """

    label: Integers
    assign: Assignment
    count: Floats
    predicted_sum: Floats
    null_sum: Floats
    start: Integers | None
    _index: NDArray[np.unsignedinteger] | None

    @classmethod
    def of(cls, sample: Sample, partition: Any) -> Cells:
        """Fit a partition to the predictions of a sample."""
        prob = sample.given if getattr(partition, "accepts_float32", False) else sample.prob
        assign = fit_partition(partition, prob)
        labels = assign(prob)
        label, index = _numbered(labels)
        is_sorted = not (labels[1:] < labels[:-1]).any()
        del labels  # of millions of observations
        start = np.append(0, np.cumsum(np.bincount(index))) if is_sorted else None
        sums = partial(_sum_by_cell, index=index, n_cells=len(label), weight=sample.weight)
        predicted = sums(sample.given)
        return cls(
            label,
            assign,
            np.bincount(index, weights=sample.weight, minlength=len(label)).astype(np.float64),
            predicted,
            predicted if sample.given_null is sample.given else sums(sample.given_null),
            start,
            index.astype(cell_dtype(len(label))) if start is None else None,
        )

    @property
    def index(self) -> Integers:
        """Cell of each observation, ``(n_samples,)``, 0 to n_cells - 1; not kept where observations are sorted."""
        return self.short_index.astype(np.int64)

    @property
    def short_index(self) -> NDArray[np.unsignedinteger]:
        """The same in as few bytes as numbers of cells need."""
        if self.start is None:
            assert self._index is not None
            return self._index
        return np.repeat(np.arange(self.n_cells, dtype=cell_dtype(self.n_cells)), np.diff(self.start))

    @property
    def n_cells(self) -> int:
        """Number of occupied cells."""
        return len(self.label)

    def members(self, cell: int) -> slice | Booleans:
        """Return the index that selects the observations of a cell."""
        return self.short_index == cell if self.start is None else slice(self.start[cell], self.start[cell + 1])

    def split(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """Return the values ``(n_samples,)`` of each cell."""
        return [values[self.members(cell)] for cell in range(self.n_cells)]


def _numbered(labels: Integers) -> tuple[Integers, Integers]:
    """Return the labels that occur, increasing, and the place of each among them."""
    if labels.min() < 0 or labels.max() >= 8 * len(labels):  # counters would take more memory than to sort
        return np.unique(labels, return_inverse=True)
    occurs = np.bincount(labels) > 0  # several times as fast as to sort
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1).take(labels)


def cells_of(sample: Sample, partition: Any) -> Cells:
    """Return the cells of a partition fitted to the predictions of a sample; fitted once.

    Parameters
    ----------
    sample : Sample
        The observations.
    partition : Partition or callable
        What makes the cells.

    Returns
    -------
    Cells
        The occupied cells, the cell of each observation among them.

    Raises
    ------
    TypeError
        If ``partition`` is no partition.

    See Also
    --------
    CellSums : Sums over them.

    Examples
    --------
    >>> from caltest.predictions import EqualWidth, Sample
    >>> prob = np.array([[0.85, 0.15], [0.8, 0.2], [0.1, 0.9]])
    >>> sample = Sample(prob, np.array([0, 1, 1]), prob, row=np.arange(3))
    >>> cells_of(sample, EqualWidth(2)).count
    array([2., 1.])
    """
    validate_partition(partition)
    return sample.of_predictions(Cells.of, partition)


def few_cells_notes(sample: Sample, partition: Any) -> tuple[Note, ...]:
    """Return a note where ties left a partition fewer than half of the cells that it aims at, so that errors cancel.

    Cells whose predictions are all equal hide nothing, however few they are.
    """
    wanted = partition.wanted_cells(sample.n_samples) if isinstance(partition, Partition) else 1
    if wanted == 1:
        return ()
    cells = cells_of(sample, partition)
    if 2 * cells.n_cells >= wanted or not any(np.ptp(part, axis=0).any() for part in cells.split(sample.given)):
        return ()
    number = "1 cell (bin)" if cells.n_cells == 1 else f"{cells.n_cells} cells (bins)"
    return (
        Note(
            "C402",
            f"{partition} has only {number} instead of {wanted}, because many predictions are equal. Deviations of "
            "opposite sign within a cell cancel and are not detected; another partition may have more cells.",
        ),
    )


@dataclass(frozen=True, eq=False)
class CellSums:
    """Sums over cells that binned statistics are computed from; sums over parts of the observations add up.

    Attributes
    ----------
    count : array of shape (..., n_cells)
        Observations (weights) in each cell; leading axes are resamples of the observations, where there are any.
    predicted_sum : array of shape (..., n_cells, n_outcomes)
        Sums of the null probabilities: the predictions, unless a calibration function is given.
    observed_count : array of shape (..., n_cells, n_outcomes)
        Observations (weights) with each outcome; leading axes are replicates.

    See Also
    --------
    caltest.ECE : A statistic that is computed from such sums.

    Examples
    --------
    >>> import numpy as np
    >>> sums = CellSums(np.array([3]), np.array([[1.5]]), np.array([[2]]))
    >>> sums.observed_count / sums.count, sums.predicted_sum / sums.count
    (array([[0.66666667]]), array([[0.5]]))
    """

    count: Floats
    predicted_sum: Floats
    observed_count: Floats

    @classmethod
    def of(cls, sample: Sample, cells: Cells, outcomes: NDArray[Any]) -> CellSums:
        """Sum outcomes ``(..., n_samples)`` of a sample over cells."""
        flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
        sizes = sample.n_outcomes, cells.n_cells * sample.n_outcomes
        if sample.weight is None and sample.n_outcomes == 2 and cells.start is not None:
            events = count_events(flat, cells.start)
            counted = np.stack([np.diff(cells.start) - events, events], axis=-1)
        else:
            index = cells.short_index[:, None]
            weighed = () if sample.weight is None else (sample.weight,)
            counted = (weigh_outcomes if weighed else count_outcomes)(flat, index, *weighed, *sizes)
        shape = *outcomes.shape[:-1], cells.n_cells, sample.n_outcomes
        return cls(cells.count, cells.null_sum, counted.reshape(shape).astype(np.float64))

    def __add__(self, other: CellSums) -> CellSums:
        """Return the sums over the observations of both, which must have the same cells."""
        if self.count.shape != other.count.shape:
            refuse(f"cell sums must have the same cells, got shapes {self.count.shape} and {other.count.shape}.")
        return CellSums(
            self.count + other.count,
            self.predicted_sum + other.predicted_sum,
            self.observed_count + other.observed_count,
        )

    @property
    def share(self) -> Floats:
        r"""Proportion of observations (weights) in each cell, :math:`\hat p^{(i)}`, ``(n_cells,)``."""
        return self.count / self.count.sum(axis=-1, keepdims=True)

    @property
    def predicted(self) -> Floats:
        r"""Average prediction of each cell, :math:`\hat g^{(i)}`, ``(n_cells, n_outcomes)``; 0 where empty."""
        return self.predicted_sum / np.where(self.count > 0, self.count, 1.0)[..., None]

    @property
    def observed(self) -> Floats:
        r"""Observed frequencies, :math:`\hat r^{(i)}`, ``(..., n_cells, n_outcomes)``; 0 where empty."""
        return self.observed_count / np.where(self.count > 0, self.count, 1.0)[..., None]


def cell_dtype(n_cells: int) -> np.dtype[Any]:
    """Return the smaller of two integer types that holds cells 0 to n_cells; the table is read for every draw."""
    return np.dtype(np.uint16 if n_cells <= np.iinfo(np.uint16).max else np.uint32)


def _sum_by_cell(values: NDArray[Any], index: Integers, n_cells: int, weight: Floats | None) -> Floats:
    """Return the sums of each column over the observations of each cell, ``(n_cells, n_columns)``.

    Sums of millions of observations are added up block by block: a residual is a small difference of two large sums.
    """
    size = max(_BLOCK, 8 * n_cells)
    sums = np.zeros((n_cells, values.shape[1]))
    columns = contiguous_columns(values) if values.shape[1] > _FEW_COLUMNS else values.T
    for k, column in enumerate(columns):
        for start in range(0, len(index), size):
            rows = slice(start, start + size)
            part = column[rows] if weight is None else column[rows] * weight[rows]
            sums[:, k] += np.bincount(index[rows], weights=part, minlength=n_cells)
    return sums
