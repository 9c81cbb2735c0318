r"""Errors over the entries of the predictions: each pair of an observation and an outcome is a binary prediction.

An entry predicts outcome k of observation i with probability :math:`p_{ik}`. Entries are sorted into cells (bins) by
their values, class by class or all together, and the outcome of an observation selects one of its entries. So one draw
of the outcome serves every class and every cell.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._cells import count_outcomes, weigh_outcomes
from caltest.predictions._arrays import Booleans, Floats, Integers
from caltest.predictions._sample import Sample
from caltest.predictions.cells._cells import cell_dtype
from caltest.predictions.cells._partitions import Intervals
from caltest.predictions.inputs._parts import sums_in_parts
from caltest.resampling.draws._signs import signed_sums
from caltest.resampling.draws._summaries import EntryCounts
from caltest.statistics._base import Statistic


@dataclass(frozen=True, eq=False)
class EntryCells:
    """Entries in cells, and the properties of each cell that do not depend on outcomes.

    Attributes
    ----------
    cell : array of shape (n_samples, n_outcomes), uint16 or uint32
        Cell of each entry; n_cells where the entry is left out.
    count : array of shape (n_cells,)
        Number (weight) of the entries in each cell.
    expected : array of shape (n_cells,)
        Sum of the null probabilities of these entries.
    importance : array of shape (n_cells,)
        Weight of each cell in the average over cells.
    """

    cell: NDArray[Any]
    count: Floats
    expected: Floats
    importance: Floats

    @property
    def n_cells(self) -> int:
        """Number of cells, including empty ones."""
        return len(self.count)

    def happened(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return the number (weight) of entries ``(..., n_cells)`` that outcomes ``(..., n_samples)`` select."""
        flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
        sizes = sample.n_outcomes, self.n_cells + 1
        if sample.weight is None:
            counted = count_outcomes(flat, self.cell, *sizes)
        else:
            counted = weigh_outcomes(flat, self.cell, sample.weight, *sizes)
        return counted[:, :-1].reshape(*outcomes.shape[:-1], self.n_cells).astype(np.float64)

    def error(self, happened: Floats, power: int) -> Floats:
        r"""Return :math:`(\sum_b \text{importance}_b |\text{gap}_b|^\text{power})^{1/\text{power}}`, ``(...)``."""
        count = np.where(self.count > 0, self.count, 1.0)
        total = np.abs(happened - self.expected)
        if power == 1:
            return (total * (self.importance / count)).sum(axis=-1)
        return np.sqrt((np.square(total / count) * self.importance).sum(axis=-1))


class EntryStatistic(Statistic):
    """Base class of statistics of the gaps in cells of entries; `entry_cells` defines the cells."""

    power: int = 1
    """The exponent of the gaps: 1 or 2."""

    @abstractmethod
    def entry_cells(self, sample: Sample) -> EntryCells:
        """Return the cells of the entries of a sample, computed once."""

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return the statistic ``(...)`` of outcomes ``(..., n_samples)``."""
        cells = self.entry_cells(sample)
        return cells.error(cells.happened(sample, outcomes), self.power)

    def summary(self, sample: Sample) -> EntryCounts:
        """Return what suffices: the counts of the entries that outcomes select."""
        return sample.once(_entry_counts, self)

    def evaluate_summary(self, sample: Sample, counted: NDArray[Any]) -> Floats:
        """Return the statistic of counted entries."""
        return self.entry_cells(sample).error(counted[:, :-1].astype(np.float64), self.power)

    def evaluate_signs(self, sample: Sample, signs: NDArray[np.int8]) -> Floats | None:
        """Return the statistic of signed residuals."""
        cells = self.entry_cells(sample)
        happened = np.zeros((len(signs), cells.n_cells + 1))
        for k, cell in enumerate(cells.cell.T):
            one = slice(k, k + 1)
            happened += signed_sums(sample, signs, cell, cells.n_cells + 1, of=sample, outcomes=one)[..., 0]
        return cells.error(cells.expected + happened[:, :-1], self.power)


def _entry_counts(sample: Sample, statistic: EntryStatistic) -> EntryCounts:
    cells = statistic.entry_cells(sample)
    return EntryCounts(cells.cell, cells.n_cells + 1)


@dataclass(frozen=True)
class Layout:
    """Definition of a class-wise error: the entries that are used, their cells, and the weights of the cells.

    Parameters
    ----------
    partition : partition of one probability
        Fitted to the values of each class, or to all of them.
    max_prob : bool
        Use the top prediction of each observation only (among equals the smaller class) instead of every entry.
    class_conditional : bool
        Separate cells for each class; with ``max_prob`` for each predicted class.
    threshold : float or None
        Drop entries of this value or below.
    cell_weight : {"observations", "cells", "occupied"}
        Weight of a cell within a class: its share of the entries, 1 / n_cells, or the same for all occupied cells.
    class_weight : {"equal", "sum", "observations"}
        Weight of a class: 1 / n_classes, 1, or its share of the entries that are used.
    """

    partition: Any
    max_prob: bool
    class_conditional: bool
    threshold: float | None = None
    cell_weight: str = "observations"
    class_weight: str = "equal"

    def __call__(self, sample: Sample) -> EntryCells:
        """Return the cells of a sample; for `Sample.once`."""
        kept = self._kept(sample.prob)
        n_groups = sample.n_outcomes if self.class_conditional else 1
        width = sample.n_outcomes // n_groups
        columns = [slice(k * width, (k + 1) * width) for k in range(n_groups)]
        cells = [labels_of(self.partition, sample.prob[:, one][kept[:, one]]).astype(np.uint32) for one in columns]
        size = max(int(cell.max()) + 1 if cell.size else 0 for cell in cells)
        n_cells = n_groups * size
        labels = np.full(sample.prob.shape, n_cells, dtype=cell_dtype(n_cells))
        count, expected = np.empty((2, n_groups, size))
        for k, (group, cell) in enumerate(zip(columns, cells, strict=True)):  # one after the other takes less memory
            inside = kept[:, group]
            labels[:, group][inside] = cell + np.uint32(k * size)
            weight = sample.weight_or_ones[np.nonzero(inside)[0]]
            count[k] = sums_in_parts(cell, weight, size)
            expected[k] = sums_in_parts(cell, weight * sample.null_prob[:, group][inside], size)
        return EntryCells(labels, count.ravel(), expected.ravel(), self.importance(count).ravel())

    def lower_ends(self, sample: Sample) -> Floats:
        """Return the smallest entry of each cell, ``(n_groups, n_cells)``; NaN where a cell is empty."""
        cells = sample.once(self)
        lowest = np.full(cells.n_cells + 1, np.inf)
        np.minimum.at(lowest, cells.cell.ravel(), sample.prob.ravel())
        n_groups = sample.n_outcomes if self.class_conditional else 1
        return np.where(np.isinf(lowest), np.nan, lowest)[:-1].reshape(n_groups, cells.n_cells // n_groups)

    def _kept(self, prob: Floats) -> Booleans:
        kept = np.ones(prob.shape, dtype=bool) if self.threshold is None else prob > self.threshold
        return kept & (prob.argmax(axis=1)[:, None] == np.arange(prob.shape[1])) if self.max_prob else kept

    def importance(self, count: Floats) -> Floats:
        """Return the weight of each cell in the average, ``(..., n_groups, n_cells)`` as the counts of the cells."""
        total = count.sum(axis=-1, keepdims=True)
        occupied = np.count_nonzero(count, axis=-1, keepdims=True)
        within = {
            "observations": lambda: count / np.where(total > 0, total, 1.0),
            "cells": lambda: (count > 0) / self.partition.n_cells,
            "occupied": lambda: (count > 0) / np.maximum(occupied, 1),
        }[self.cell_weight]()
        whole = total.sum(axis=-2, keepdims=True)
        between = {"equal": 1 / count.shape[-2], "sum": 1.0, "observations": total / np.where(whole > 0, whole, 1.0)}[
            self.class_weight
        ]
        return np.asarray(within * between)


class OverClasses(EntryStatistic):
    """Base class of errors over the entries of the predictions; `layout` defines one."""

    measures_scatter = True

    @abstractmethod
    def layout(self, n_samples: int) -> Layout:
        """Return which entries are used, how they are cut and how cells are weighted."""

    def entry_cells(self, sample: Sample) -> EntryCells:
        """Return the cells of the entries of a sample, computed once."""
        return sample.once(self.layout(sample.n_samples))

    def lower_ends(self, sample: Sample) -> Floats | None:
        """Return the smallest prediction in each cell ``(n_groups, n_cells)``; None for cells of equal width."""
        layout = self.layout(sample.n_samples)
        return layout.lower_ends(sample) if layout.partition.depends_on_sample else None


@dataclass(frozen=True)
class AuthorsCells:
    """Cells of one probability as in the code of Nixon et al.: values of exactly 1 have a separate cell.

    Equal mass: edge r is the sorted value at index round(r n / n_cells), halves to even; ties stay together. With
    fewer values than half of n_cells that code fails; here the index is at most n - 1.
    """

    scheme: str
    n_cells: int

    @property
    def depends_on_sample(self) -> bool:
        """Whether the cells depend on the predictions."""
        return self.scheme != "equal-width"

    def fit(self, prob: Floats) -> Intervals:
        """Return the intervals of column 1 of probabilities ``(n, 2)``."""
        if self.scheme == "equal-width":
            return Intervals(np.arange(1, self.n_cells + 1) / self.n_cells)
        first = np.rint(np.linspace(0, len(prob), self.n_cells, endpoint=False)).astype(np.int64)[1:]
        edges = np.sort(prob[:, 1])[np.minimum(first, len(prob) - 1)]
        return Intervals(np.sort(np.append(edges, 1.0)))  # sums behind a lens may exceed 1 by rounding


def labels_of(partition: Any, values: Floats) -> Integers:
    """Return the cell of each of some values ``(n,)`` of a partition of one probability that is fitted to them."""
    if not values.size:
        return np.empty(0, dtype=np.int64)
    event = np.broadcast_to(values[:, None], (len(values), 2))  # a partition reads the second column alone
    return np.asarray(partition.fit(event)(event))
