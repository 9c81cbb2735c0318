"""The induced problem: predictions and outcomes behind a lens, and their sums over cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import RLock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest._compiled._cells import count_events, count_outcomes, weigh_outcomes
from caltest.predictions._distances import Distance
from caltest.predictions._lenses import Lens
from caltest.predictions._order import stable_order
from caltest.predictions._partitions import Assignment, fit_partition, validate_partition
from caltest.predictions._validation import SUM_TOLERANCE, is_ours, validate_problem, validate_weight

CalibrationFunction = Callable[[NDArray[np.float64]], NDArray[np.float64]]
Region = Callable[[NDArray[np.float64]], NDArray[np.bool_]]
Derived = TypeVar("Derived")

_BLOCK_ROWS = 2**16  # what is made of many rows for a moment is made in parts


@dataclass(frozen=True, eq=False)
class Sample:
    """A classification problem as statistics see it; with two outcomes, rows are sorted by the event's probability.

    Attributes
    ----------
    prob : array of shape (n_samples, n_outcomes)
        Predictions; cells, scores and orders are made from them.
    outcome : array of shape (n_samples,), unsigned integers
        What happened.
    null_prob : array of shape (n_samples, n_outcomes)
        Probabilities of the outcomes under the null hypothesis: ``prob``, or a known calibration function of it.
    row : array of shape (n_samples,)
        Number of each row in the caller's arrays.
    weight : array of shape (n_samples,) or None
        Importance of each row.
    """

    prob: NDArray[np.float64]
    outcome: NDArray[Any]
    null_prob: NDArray[np.float64]
    row: NDArray[np.int64]
    weight: NDArray[np.float64] | None = None
    _derived: dict[Any, Any] = field(default_factory=dict, repr=False)
    _lock: RLock = field(default_factory=RLock, repr=False)

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return len(self.prob)

    @property
    def n_outcomes(self) -> int:
        """Number of outcomes behind the lens."""
        return self.prob.shape[1]

    @property
    def event(self) -> NDArray[np.float64]:
        """Probability of the event of a two-outcome problem, ``(n_samples,)``, increasing."""
        return self.prob[:, 1]

    @cached_property
    def thresholds(self) -> NDArray[np.uint32]:
        """What outcomes are drawn from under the null hypothesis, ``(n_outcomes - 1, n_samples)``."""
        return outcome_thresholds(self.null_prob)

    @cached_property
    def expected(self) -> NDArray[np.float64]:
        """Probabilities with which outcomes are drawn, ``(n_samples, n_outcomes)``: ``null_prob`` free of drift."""
        clipped = np.clip(self.null_prob, 0.0, None)
        return clipped / clipped.sum(axis=1, keepdims=True)

    @cached_property
    def impossible(self) -> NDArray[np.int64]:
        """Caller's row numbers whose outcome has probability 0 under the null hypothesis, increasing."""
        stated = self.null_prob[np.arange(self.n_samples), self.outcome]
        return np.sort(self.row[stated <= 0])

    def cells(self, partition: Any) -> Cells:
        """Return the cells of a partition fitted to these predictions; fitted once."""
        validate_partition(partition)
        return self.once(Cells.of, partition)

    def once(self, derive: Callable[..., Derived], *arguments: Any) -> Derived:
        """Return ``derive(self, *arguments)``, computed once: what depends on predictions alone serves every draw."""
        key = (derive, *arguments)
        with self._lock:  # threads that need the same thing wait for it
            if key not in self._derived:
                self._derived[key] = derive(self, *arguments)
            return self._derived[key]

    def take(self, row: NDArray[np.int64]) -> Sample:
        """Return the sample of the given rows (increasing, repeats allowed)."""
        return Sample(
            self.prob[row],
            self.outcome[row],
            self.null_prob[row],
            self.row[row],
            None if self.weight is None else self.weight[row],
        )


def outcome_thresholds(prob: NDArray[np.float64]) -> NDArray[np.uint32]:
    """Return cumulative probabilities times 2**32, ``(n_outcomes - 1, n_samples)``: what outcomes are drawn from.

    Drift is normalised away and a slightly negative rest clipped at 0 where outcomes are drawn, and nowhere else.
    """
    thresholds = np.empty((prob.shape[1] - 1, len(prob)), dtype=np.uint32)
    for start in range(0, len(prob), _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        cumulative = np.cumsum(np.clip(prob[rows], 0.0, None), axis=1)
        share = cumulative[:, :-1].T / cumulative[:, -1]
        thresholds[:, rows] = np.minimum(np.rint(share * 2.0**32), 2.0**32 - 1)
    return thresholds


@dataclass(frozen=True, eq=False)
class Cells:
    """Occupied cells of a fitted partition.

    Attributes
    ----------
    index : array of shape (n_samples,)
        Cell of each row, 0 to n_cells - 1.
    label : array of shape (n_cells,)
        The partition's own label of each cell, increasing.
    assign : callable
        The fitted partition, from probabilities to labels.
    count : array of shape (n_cells,)
        Rows (weights) in each cell.
    predicted_sum, null_sum : arrays of shape (n_cells, n_outcomes)
        Sums of predictions and of null probabilities.
    start : array of shape (n_cells + 1,) or None
        First row of each cell where rows are sorted by cell.
    """

    index: NDArray[np.int64]
    label: NDArray[np.int64]
    assign: Assignment
    count: NDArray[np.float64]
    predicted_sum: NDArray[np.float64]
    null_sum: NDArray[np.float64]
    start: NDArray[np.int64] | None

    @classmethod
    def of(cls, sample: Sample, partition: Any) -> Cells:
        """Fit a partition to the predictions of a sample."""
        assign = fit_partition(partition, sample.prob)
        labels = assign(sample.prob)
        step = np.diff(labels)
        in_order = bool(np.all(step >= 0))
        if in_order:  # no need to sort
            index = np.append(0, np.cumsum(step > 0))
            label = labels[np.append(True, step > 0)]
        else:
            label, index = np.unique(labels, return_inverse=True)
        return cls(
            index,
            label,
            assign,
            np.bincount(index, weights=sample.weight, minlength=len(label)).astype(np.float64),
            _sum_by_cell(sample.prob, index, len(label), sample.weight),
            _sum_by_cell(sample.null_prob, index, len(label), sample.weight),
            np.searchsorted(index, np.arange(len(label) + 1)) if in_order else None,
        )

    @property
    def n_cells(self) -> int:
        """Number of occupied cells."""
        return len(self.label)

    def rows(self, cell: int) -> slice | NDArray[np.bool_]:
        """Return what selects the rows of a cell."""
        return self.index == cell if self.start is None else slice(self.start[cell], self.start[cell + 1])

    def split(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """Return the values ``(n_samples,)`` of each cell."""
        return [values[self.rows(cell)] for cell in range(self.n_cells)]


@dataclass(frozen=True, eq=False)
class CellSums:
    """The sums from which everything binned is made; sums over parts of the rows add up.

    Attributes
    ----------
    count : array of shape (..., n_cells)
        Rows (weights) in each cell; leading axes are resamples of the rows, where there are any.
    predicted_sum : array of shape (..., n_cells, n_outcomes)
        Sum of what the null hypothesis says of each outcome: the predictions, unless a calibration function is given.
    observed_count : array of shape (..., n_cells, n_outcomes)
        Rows (weights) that fell to each outcome; leading axes are replicates.
    """

    count: NDArray[np.float64]
    predicted_sum: NDArray[np.float64]
    observed_count: NDArray[np.float64]

    @classmethod
    def of(cls, sample: Sample, cells: Cells, outcomes: NDArray[Any]) -> CellSums:
        """Sum outcomes ``(..., n_samples)`` of a sample over cells."""
        flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
        if sample.weight is not None:
            counted = weigh_outcomes(flat, cells.index, sample.weight, cells.n_cells, sample.n_outcomes)
        elif sample.n_outcomes == 2 and cells.start is not None:
            events = count_events(flat, cells.start)
            counted = np.stack([np.diff(cells.start) - events, events], axis=-1)
        else:
            counted = count_outcomes(flat, cells.index, cells.n_cells, sample.n_outcomes)
        shape = outcomes.shape[:-1] + counted.shape[1:]
        return cls(cells.count, cells.null_sum, counted.reshape(shape).astype(np.float64))

    def __add__(self, other: CellSums) -> CellSums:
        """Return the sums over the rows of both; both must speak of the same cells."""
        if self.count.shape != other.count.shape:
            msg = f"cell sums must speak of the same cells, got {self.count.shape} and {other.count.shape}."
            raise ValueError(msg)
        return CellSums(
            self.count + other.count,
            self.predicted_sum + other.predicted_sum,
            self.observed_count + other.observed_count,
        )

    @property
    def share(self) -> NDArray[np.float64]:
        r"""Proportion of rows (weights) in each cell, :math:`\hat p^{(i)}`, ``(n_cells,)``."""
        return self.count / self.count.sum(axis=-1, keepdims=True)

    @property
    def predicted(self) -> NDArray[np.float64]:
        r"""Average prediction of each cell, :math:`\hat g^{(i)}`, ``(n_cells, n_outcomes)``; 0 where empty."""
        return self.predicted_sum / np.where(self.count > 0, self.count, 1.0)[..., None]

    @property
    def observed(self) -> NDArray[np.float64]:
        r"""Observed frequencies, :math:`\hat r^{(i)}`, ``(..., n_cells, n_outcomes)``; 0 where empty."""
        return self.observed_count / np.where(self.count > 0, self.count, 1.0)[..., None]


def make_sample(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    region: Region | None = None,
    sample_weight: ArrayLike | None = None,
) -> Sample:
    """Validate what the user passed and look at it through the lens."""
    prob, outcome = validate_problem(y_true, y_prob, classes)
    weight = validate_weight(sample_weight, len(prob))
    return induce(prob, outcome, lens=lens, region=region, weight=weight)


def induce(
    prob: NDArray[np.float64],
    outcome: NDArray[Any],
    *,
    lens: Lens | None = None,
    region: Region | None = None,
    weight: NDArray[np.float64] | None = None,
) -> Sample:
    """Return the sample behind the lens, restricted to the region, in the package's row order."""
    if lens is not None:
        prob, outcome = apply_lens(lens, prob, outcome)
    row = np.arange(len(prob))
    if region is not None:
        row = np.flatnonzero(_inside(region, prob))
        if not row.size or (weight is not None and not weight[row].sum() > 0):
            msg = "`region` must hold at least one row (of positive weight), got none."
            raise ValueError(msg)
    if prob.shape[1] == 2:
        row = row[stable_order(prob[row, 1])]  # rows are drawn by their place: ties too need a place
    if region is not None or prob.shape[1] == 2:
        prob = prob[row]
    prob = np.ascontiguousarray(prob)
    return Sample(
        prob,
        outcome[row].astype(outcome_dtype(prob.shape[1])),
        prob,
        row,
        None if weight is None else weight[row],
    )


def outcome_dtype(n_outcomes: int) -> np.dtype[Any]:
    """Return the smallest unsigned integer type that holds the outcomes: drawn outcomes are the bulk of all memory."""
    return np.min_scalar_type(n_outcomes - 1)


def with_calibration_function(sample: Sample, calibration_function: CalibrationFunction) -> Sample:
    """Return the sample whose outcomes follow ``calibration_function(prob)`` under the null hypothesis."""
    null_prob = apply_calibration_function(calibration_function, sample.prob, "calibration_function")
    return Sample(sample.prob, sample.outcome, null_prob, sample.row, sample.weight)


def apply_calibration_function(
    calibration_function: CalibrationFunction, prob: NDArray[np.float64], name: str
) -> NDArray[np.float64]:
    """Call a calibration function and check what it returns; ``name`` is that of the argument."""
    if is_ours(calibration_function):
        return calibration_function(prob)
    true = np.asarray(calibration_function(prob.copy()), dtype=np.float64)
    if true.shape != prob.shape:
        msg = f"`{name}` must return shape {prob.shape}, got {true.shape}."
        raise ValueError(msg)
    valid = (true >= -SUM_TOLERANCE) & (true <= 1 + SUM_TOLERANCE)
    wrong = np.flatnonzero(~valid.all(axis=1) | ~(np.abs(true.sum(axis=1) - 1) <= SUM_TOLERANCE))
    if wrong.size:
        msg = f"`{name}` must return probabilities that sum to 1, got {true[wrong[0]]}."
        raise ValueError(msg)
    return true


def apply_lens(
    lens: Lens, prob: NDArray[np.float64], outcome: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Call a lens and check the form of what it returns."""
    if not callable(lens) or isinstance(lens, type):
        msg = f"`lens` must be a lens such as Confidence() or a function of (prob, outcome), got {lens!r}."
        raise ValueError(msg)
    if is_ours(lens):
        return lens(prob, outcome)
    returned = lens(prob.copy(), outcome.copy())
    if not isinstance(returned, tuple) or len(returned) != 2:
        msg = f"`lens` must return a pair (prob, outcome), got {type(returned).__name__}."
        raise ValueError(msg)
    induced, seen = np.asarray(returned[0], dtype=np.float64), np.asarray(returned[1])
    if induced.ndim != 2 or induced.shape[1] < 2 or seen.shape != (len(prob),) or len(induced) != len(prob):
        msg = (
            f"`lens` must return probabilities ({len(prob)}, n_outcomes >= 2) and outcomes ({len(prob)},), "
            f"got {induced.shape} and {seen.shape}."
        )
        raise ValueError(msg)
    if seen.dtype.kind not in "iub" or seen.min() < 0 or seen.max() >= induced.shape[1]:
        msg = (
            f"`lens` must return outcomes 0 to {induced.shape[1] - 1}, "
            f"got {seen.dtype} from {seen.min()} to {seen.max()}."
        )
        raise ValueError(msg)
    if not np.isfinite(induced).all():
        msg = f"`lens` must return finite probabilities, got {induced[~np.isfinite(induced)][0]}."
        raise ValueError(msg)
    total = induced.sum(axis=1)
    if np.any(np.abs(total - 1) > 2 * SUM_TOLERANCE):
        row = int(np.argmax(np.abs(total - 1)))
        msg = f"`lens` must return probabilities that sum to 1, got {total[row]:.9g} in row {row}."
        raise ValueError(msg)
    return induced, seen


def apply_distance(
    distance: Distance, predicted: NDArray[np.float64], observed: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Call a distance of arrays ``(..., n_outcomes)``, whose leading axes broadcast, and check what it returns."""
    if not callable(distance):
        msg = f"`distance` must be a function of (predicted, observed), got {distance!r}."
        raise ValueError(msg)
    shape = np.broadcast_shapes(predicted.shape, observed.shape)[:-1]
    distances = np.asarray(distance(predicted, observed), dtype=np.float64)
    if distances.shape != shape:
        msg = (
            f"`distance` must reduce the last axis of arrays (..., n_outcomes): expected shape {shape}, "
            f"got {distances.shape}."
        )
        raise ValueError(msg)
    if np.isnan(distances).any():
        msg = "`distance` must return numbers, got nan."
        raise ValueError(msg)
    return distances


def _inside(region: Region, prob: NDArray[np.float64]) -> NDArray[np.bool_]:
    if not callable(region):
        msg = f"`region` must be a function of probabilities, got {region!r}."
        raise ValueError(msg)
    inside = np.asarray(region(prob.copy()))
    if inside.shape != (len(prob),) or inside.dtype.kind != "b":
        msg = f"`region` must return booleans of shape ({len(prob)},), got {inside.dtype} of shape {inside.shape}."
        raise ValueError(msg)
    return inside


def _sum_by_cell(
    values: NDArray[np.float64], index: NDArray[np.int64], n_cells: int, weight: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    weighted = values if weight is None else values * weight[:, None]
    return np.stack([np.bincount(index, weights=column, minlength=n_cells) for column in weighted.T], axis=-1)
