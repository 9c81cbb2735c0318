"""Draws under a null hypothesis, or of the data: seeds and a range of replicates, from which everything is repeated."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._alias import class_records
from caltest._compiled._cells import sum_multiplicities
from caltest._compiled._draws import (
    count_drawn,
    draw_class_rows,
    draw_classes,
    draw_counts,
    draw_events,
    draw_multiplicities,
    draw_outcomes,
    draw_rows,
)
from caltest.predictions._partitions import Partition
from caltest.predictions._sample import CellSums, Sample, outcome_dtype, outcome_thresholds
from caltest.predictions._validation import validate_count
from caltest.predictions._variance_tree import Ranks, VarianceTree
from caltest.resampling._distributions import TIE_TOLERANCE, PoissonBinomial
from caltest.resampling._row_counts import AliasTables, Strata

_BLOCK_BYTES = 2**21  # what is drawn at a time should stay in cache until every statistic has read it
_BLOCK_REPLICATES = (8, 1024)


@dataclass(frozen=True)
class Draws(ABC):
    """A range of replicates: what makes every resampled distribution, and makes it repeatable.

    Replicate r depends on the seed and on r alone, so a test may be cut into slices in any way.

    Attributes
    ----------
    seed : numpy.uint64
        Seed of all replicates.
    first, n_resamples : int
        The range of replicates.
    """

    seed: np.uint64
    first: int
    n_resamples: int

    resample_rows = False
    """Whether predictions are drawn too."""

    @abstractmethod
    def blocks(self, sample: Sample) -> Iterator[tuple[Sample, NDArray[Any]]]:
        """Yield samples with outcomes ``(n_replicates, n_samples)`` drawn for them."""

    def cell_sums(self, sample: Sample, partition: Any) -> Iterator[CellSums]:
        """Yield the cell sums of every draw; overridden where they can be drawn without outcomes in memory."""
        for drawn, outcomes in self.blocks(sample):
            yield CellSums.of(drawn, drawn.cells(partition), outcomes)

    def sums_of_fixed_cells(self, sample: Sample, partition: Any) -> Iterator[CellSums]:
        """Yield the sums of every draw over the cells of the sample itself."""
        return self.cell_sums(sample, partition)

    def slices(self, size: int) -> list[Self]:
        """Cut into consecutive parts of at most ``size`` replicates."""
        return [
            replace(self, first=self.first + start, n_resamples=min(size, self.n_resamples - start))
            for start in range(0, self.n_resamples, size)
        ]

    def map(
        self,
        evaluate: Callable[[Self], NDArray[np.float64]],
        workers: int = 1,
        progress: Callable[[int, int], None] | None = None,
    ) -> NDArray[np.float64]:
        """Return ``evaluate(part)`` joined along the last axis over parts of the replicates, on ``workers`` threads."""
        threads = _threads(workers)
        parts = self.slices(min(_BLOCK_REPLICATES[1], -(-self.n_resamples // (4 * threads))))
        values = []
        with ThreadPoolExecutor(threads) as pool:
            for part, value in zip(parts, pool.map(evaluate, parts), strict=True):
                values.append(value)
                if progress is not None:
                    progress(part.first + part.n_resamples, self.n_resamples)
        return np.concatenate(values, axis=-1)

    def _blocks_of(self, bytes_each: int) -> list[Self]:
        """Cut into parts that take some bytes for each replicate."""
        low, high = _BLOCK_REPLICATES
        return self.slices(min(max(_BLOCK_BYTES // bytes_each, low), high))


@dataclass(frozen=True)
class OutcomeDraws(Draws):
    """Predictions fixed, outcomes drawn from their null probabilities."""

    def blocks(self, sample: Sample) -> Iterator[tuple[Sample, NDArray[Any]]]:
        """Yield the sample with outcomes ``(n_replicates, n_samples)`` drawn for it."""
        for part in self._blocks_of(sample.n_samples):
            out = np.empty((part.n_resamples, sample.n_samples), dtype=outcome_dtype(sample.n_outcomes))
            draw_outcomes(sample.thresholds, self.seed, part.first, out)
            yield sample, out

    def cell_sums(self, sample: Sample, partition: Any) -> Iterator[CellSums]:
        """Yield the cell sums of every draw; for two outcomes the counts are drawn from their own laws."""
        if sample.weight is not None:
            yield from super().cell_sums(sample, partition)
            return
        cells = sample.cells(partition)
        draw = self._event_counts if sample.n_outcomes == 2 else self._class_counts
        for observed in draw(sample, partition):
            yield CellSums(cells.count, cells.null_sum, observed.astype(np.float64))

    def _event_counts(self, sample: Sample, partition: Any) -> Iterator[NDArray[np.int64]]:
        first, n_rows, tables = sample.once(_count_tables, partition)
        for part in self._blocks_of(8 * len(first)):
            events = np.empty((part.n_resamples, len(first)), dtype=np.int64)
            draw_counts(*tables.arrays, self.seed, part.first, events)
            yield np.stack([n_rows - first - events, first + events], axis=-1)

    def _class_counts(self, sample: Sample, partition: Any) -> Iterator[NDArray[np.int32]]:
        entry = sample.once(_entries, partition)
        shape = sample.cells(partition).n_cells, sample.n_outcomes
        for counted in self.counts(sample, entry, shape[0] * shape[1]):
            yield counted.reshape(-1, *shape)

    def counts(self, sample: Sample, cell: NDArray[Any], n_cells: int) -> Iterator[NDArray[np.int32]]:
        """Yield ``(n_replicates, n_cells)``: rows that fall to an outcome whose entry lies in each cell.

        The same draws as `blocks`, without storing outcomes. ``cell (n_samples, n_outcomes)`` is the cell of every
        entry of the predictions, 0 to ``n_cells - 1``.
        """
        for part in self._blocks_of(4 * n_cells):
            counted = np.empty((part.n_resamples, n_cells), dtype=np.int32)
            count_drawn(sample.thresholds, cell, self.seed, part.first, counted)
            yield counted


def _entries(sample: Sample, partition: Any) -> NDArray[Any]:
    """Return a number for each cell and outcome, ``(n_samples, n_outcomes)``."""
    cells = sample.cells(partition)
    number = cells.index[:, None] * sample.n_outcomes + np.arange(sample.n_outcomes)
    return number.astype(cell_dtype(cells.n_cells * sample.n_outcomes))


def cell_dtype(n_cells: int) -> np.dtype[Any]:
    """Return the smaller of two integer types that holds cells 0 to n_cells: this table is read for every draw."""
    return np.dtype(np.uint16 if n_cells <= np.iinfo(np.uint16).max else np.uint32)


def _count_tables(sample: Sample, partition: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], AliasTables]:
    """Return the smallest event count of each cell, its rows, and tables for what is more than the smallest."""
    cells = sample.cells(partition)
    laws = [PoissonBinomial.of(p) for p in cells.split(sample.expected[:, 1])]
    return np.array([law.first for law in laws]), np.bincount(cells.index), AliasTables.of([law.pmf for law in laws])


def _null_law(sample: Sample) -> NDArray[np.float64]:
    return sample.null_prob


def _observed_law(sample: Sample) -> NDArray[np.float64]:
    return np.eye(sample.n_outcomes)[sample.outcome]


@dataclass(frozen=True)
class RowDraws(Draws):
    """Rows drawn with replacement, and for each an outcome from its null probabilities."""

    resample_rows = True
    _law = staticmethod(_null_law)

    def blocks(self, sample: Sample) -> Iterator[tuple[Sample, NDArray[Any]]]:
        """Yield one resample after the other, rows increasing, with its outcomes ``(1, n_samples)``."""
        for part in self.slices(1):
            rows, outcomes = part.rows(sample)
            order = np.argsort(rows[0], kind="stable")
            yield sample.take(rows[0, order]), outcomes[:, order]

    def rows(self, sample: Sample) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Return the rows drawn and their outcomes, ``(n_resamples, n_samples)`` each."""
        shape = self.n_resamples, sample.n_samples
        rows, outcomes = np.empty(shape, dtype=np.int32), np.empty(shape, dtype=outcome_dtype(sample.n_outcomes))
        if sample.n_outcomes == 2:
            draw_rows(sample.once(_thresholds, self._law)[0], self.seed, self.first, rows, outcomes)
        else:
            draw_class_rows(sample.once(_class_records, self._law), self.seed, self.first, rows, outcomes)
        return rows, outcomes

    def row_counts(self, sample: Sample) -> NDArray[np.float64]:
        """Return how often each row was drawn, ``(n_resamples, n_samples)``: the same draws as `blocks`."""
        rows, _ = self.rows(sample)
        return np.stack([np.bincount(row, minlength=sample.n_samples) for row in rows]).astype(np.float64)

    def cell_sums(self, sample: Sample, partition: Any) -> Iterator[CellSums]:
        """Yield the cell sums of every draw; rows are counted, not copied, where the partition allows."""
        if sample.weight is not None:
            return super().cell_sums(sample, partition)
        if not getattr(partition, "depends_on_rows", False):
            return self.sums_of_fixed_cells(sample, partition)
        if not partition.refits or (sample.n_outcomes > 2 and not isinstance(partition, VarianceTree)):
            return super().cell_sums(sample, partition)
        return (self._sums_of_intervals if sample.n_outcomes == 2 else self._sums_of_leaves)(sample, partition)

    def sums_of_fixed_cells(self, sample: Sample, partition: Any) -> Iterator[CellSums]:
        """Yield the sums of every draw over the cells of the sample itself, drawn stratum by stratum."""
        strata = sample.once(_strata, partition)
        n_strata, n_outcomes = len(strata.start) - 1, sample.n_outcomes
        by_event = n_outcomes == 2 and self._law is _null_law and sample.once(_adds_to_one)
        for part in self._blocks_of(16 * n_strata * n_outcomes):
            shape = (part.n_resamples, n_strata)
            counts = np.empty(shape, dtype=np.int64)
            common = strata.start, *strata.tables.arrays, self.seed, part.first, counts
            if by_event:
                predicted, observed = np.empty(shape), np.empty(shape)
                draw_events(sample.once(_raised, partition), *common, predicted, observed)
                predicted, observed = (np.stack([counts - event, event], axis=-1) for event in (predicted, observed))
            else:
                predicted, observed = np.empty((*shape, n_outcomes)), np.empty((*shape, n_outcomes))
                draw_classes(*sample.once(_class_tables, partition, self._law), *common, predicted, observed)
            yield CellSums(*(strata.sum_by_cell(values) for values in (counts, predicted, observed)))

    def _sums_of_intervals(self, sample: Sample, partition: Partition) -> Iterator[CellSums]:
        columns = sample.once(_columns)
        for part in self._blocks_of(2 * sample.n_samples):
            drawn = part.multiplicities(sample)
            yield CellSums(*sum_multiplicities(drawn, columns, partition.refit(sample.event, drawn)))

    def _sums_of_leaves(self, sample: Sample, partition: VarianceTree) -> Iterator[CellSums]:
        for part in self._blocks_of(5 * sample.n_samples):
            yield CellSums(*partition.refit_classes(sample.once(_ranks), sample.null_prob, *part.rows(sample)))

    def multiplicities(self, sample: Sample) -> NDArray[np.uint16]:
        """Return how often each row was drawn + 256 times how often with the event, ``(n_resamples, n_samples)``.

        The same draws as `blocks`, for two outcomes, without copies of rows.
        """
        drawn = np.empty((self.n_resamples, sample.n_samples), dtype=np.uint16)
        draw_multiplicities(sample.once(_thresholds, self._law)[0], self.seed, self.first, drawn)
        return drawn


@dataclass(frozen=True)
class BootstrapDraws(RowDraws):
    """Rows drawn with replacement, each with the outcome that it had."""

    _law = staticmethod(_observed_law)


Law = Callable[[Sample], NDArray[np.float64]]


def _thresholds(sample: Sample, law: Law) -> NDArray[np.uint32]:
    return sample.thresholds if law is _null_law else outcome_thresholds(law(sample))


def _strata(sample: Sample, partition: Any) -> Strata:
    cells = sample.cells(partition)
    return Strata.of(cells.index, cells.n_cells)


def _adds_to_one(sample: Sample) -> bool:
    """Return whether either probability is 1 minus the other, rounding apart."""
    return bool(np.all(np.abs(sample.null_prob.sum(axis=1) - 1) < TIE_TOLERANCE))


def _raised(sample: Sample, partition: Any) -> NDArray[np.float64]:
    """Return 1 + the event's null probability, rows in the order of the strata."""
    return 1 + np.clip(sample.null_prob[sample.once(_strata, partition).row, 1], 0.0, 1.0)


def _class_tables(sample: Sample, partition: Any, law: Law) -> tuple[NDArray[np.float64], NDArray[np.uint64]]:
    """Return null probabilities ``(n_outcomes, n_samples)`` in the order of the strata, and alias tables."""
    row = sample.once(_strata, partition).row
    return np.ascontiguousarray(sample.null_prob[row].T), class_records(law(sample), row)


def _class_records(sample: Sample, law: Law) -> NDArray[np.uint64]:
    return class_records(law(sample), np.arange(sample.n_samples))


def _ranks(sample: Sample) -> Ranks:
    return Ranks.of(sample.prob)


def _columns(sample: Sample) -> NDArray[np.float64]:
    return np.ascontiguousarray(sample.null_prob.T)


def _threads(workers: int) -> int:
    if workers == -1:
        return os.cpu_count() or 1
    try:
        return validate_count(workers, "workers")
    except ValueError:
        msg = f"`workers` must be an integer >= 1, or -1 for all processors, got {workers!r}."
        raise ValueError(msg) from None
