"""Resampled observations, with simulated or observed labels; counted where possible instead of copied."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._alias import alias_tables
from caltest._compiled._cells import sum_multiplicities
from caltest._compiled._draws import draw_class_rows, draw_classes, draw_events, draw_multiplicities, draw_rows
from caltest.predictions._arrays import Booleans, Floats, Integers, blocks
from caltest.predictions._lens import outcome_dtype
from caltest.predictions._sample import Sample, outcome_thresholds
from caltest.predictions.cells._cells import CellSums, cells_of
from caltest.predictions.cells._partitions import Partition
from caltest.resampling.distributions._base import TIE_TOLERANCE
from caltest.resampling.draws._alias_tables import Strata
from caltest.resampling.draws._labels import Draws
from caltest.resampling.draws._summaries import CellCounts, Summary

OutcomeProb = Callable[[Sample], Floats]


def _null_prob(sample: Sample) -> Floats:
    return sample.null_prob


def _observed_prob(sample: Sample) -> Floats:
    return np.eye(sample.n_outcomes)[sample.outcome]


@dataclass(frozen=True)
class RowDraws(Draws):
    """Observations drawn with replacement, each with a label simulated from its null probabilities."""

    resample_predictions: ClassVar[bool] = True
    _prob = staticmethod(_null_prob)

    def blocks(self, sample: Sample) -> Iterator[tuple[Sample, NDArray[Any]]]:
        """Yield one resample after the other, positions increasing, with its outcomes ``(1, n_samples)``."""
        for part in self.slices(1):
            rows, outcomes = part.rows(sample)
            order = np.argsort(rows[0], kind="stable")
            yield sample.take(rows[0, order]), outcomes[:, order]

    def rows(self, sample: Sample) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Return the positions drawn and their outcomes, ``(n_resamples, n_samples)`` each."""
        shape = self.n_resamples, sample.n_samples
        rows, outcomes = np.empty(shape, dtype=np.int32), np.empty(shape, dtype=outcome_dtype(sample.n_outcomes))
        if sample.n_outcomes == 2:
            draw_rows(sample.once(_thresholds, self._prob)[0], self.seed, self.first, rows, outcomes)
        else:
            draw_class_rows(sample.once(_class_records, self._prob), self.seed, self.first, rows, outcomes)
        return rows, outcomes

    def row_counts(self, n: int) -> NDArray[np.int16]:
        """Return how often each of n observations was drawn, ``(n_resamples, n)``: the same draws as `blocks`."""
        drawn = np.empty((self.n_resamples, n), dtype=np.uint16)
        draw_multiplicities(np.zeros(n, dtype=np.uint32), self.seed, self.first, drawn)
        return (drawn & np.uint16(255)).view(np.int16)  # labels are of no interest

    def summarise(self, sample: Sample, summary: Summary) -> Iterator[Any] | None:
        """Count observations instead of copying them, where cells are fixed or can be fitted again to counts."""
        if sample.weight is not None or not isinstance(summary, CellCounts):
            return None
        partition = summary.partition
        if not getattr(partition, "depends_on_sample", False):
            return self.sums_of_fixed_cells(sample, partition)
        if sample.n_outcomes == 2:
            return self._sums_of_intervals(sample, partition) if partition.refits else None
        return self._sums_of_leaves(sample, partition) if partition.refits_classes else None

    def sums_of_fixed_cells(self, sample: Sample, partition: Any) -> Iterator[CellSums]:
        """Yield the sums of every draw over the cells of the sample, drawn stratum by stratum."""
        strata = sample.once(_strata, partition)
        n_strata, n_outcomes = len(strata.start) - 1, sample.n_outcomes
        by_event = n_outcomes == 2 and self._prob is _null_prob and sample.once(_adds_to_one)
        for part in self.blocks_of(16 * n_strata * n_outcomes):
            shape = (part.n_resamples, n_strata)
            counts = np.empty(shape, dtype=np.int64)
            common = strata.start, *strata.tables.arrays, self.seed, part.first, counts
            if by_event:
                predicted, observed = np.empty(shape), np.empty(shape)
                draw_events(sample.once(_whole, partition), *common, predicted, observed)
                predicted, observed = (np.stack([counts - event, event], axis=-1) for event in (predicted, observed))
            else:
                predicted, observed = np.empty((*shape, n_outcomes)), np.empty((*shape, n_outcomes))
                draw_classes(*sample.once(_class_tables, partition, self._prob), *common, predicted, observed)
            yield CellSums(*(strata.sum_by_cell(values) for values in (counts, predicted, observed)))

    def _sums_of_intervals(self, sample: Sample, partition: Partition) -> Iterator[CellSums]:
        columns = sample.once(_columns)
        for part in self.blocks_of(2 * sample.n_samples):
            drawn = part.multiplicities(sample)
            yield CellSums(*sum_multiplicities(drawn, columns, partition.refit(sample.event, drawn)))

    def _sums_of_leaves(self, sample: Sample, partition: Partition) -> Iterator[CellSums]:
        for part in self.blocks_of(5 * sample.n_samples):
            yield CellSums(*partition.refit_classes(sample, *part.rows(sample)))

    def multiplicities(self, sample: Sample) -> NDArray[np.uint16]:
        """Return how often each observation was drawn + 256 times how often with the event.

        The shape is ``(n_resamples, n_samples)``. The same draws as `blocks`, for two outcomes, without copies.
        """
        drawn = np.empty((self.n_resamples, sample.n_samples), dtype=np.uint16)
        draw_multiplicities(sample.once(_thresholds, self._prob)[0], self.seed, self.first, drawn)
        return drawn


@dataclass(frozen=True)
class BootstrapDraws(RowDraws):
    """Observations drawn with replacement, each with its observed label."""

    _prob = staticmethod(_observed_prob)

    def blocks(self, sample: Sample) -> Iterator[tuple[Sample, NDArray[Any]]]:
        """Yield one resample after the other; whole groups are drawn where there are groups."""
        if sample.group is None:
            yield from super().blocks(sample)
            return
        _, group = np.unique(sample.group, return_inverse=True)
        for part in self.slices(1):
            drawn = sample.take(np.repeat(np.arange(sample.n_samples), part.row_counts(group.max() + 1)[0, group]))
            yield drawn, drawn.outcome[None]

    def summarise(self, sample: Sample, summary: Summary) -> Iterator[Any] | None:
        """Count observations instead of copying them, unless whole groups are drawn."""
        return super().summarise(sample, summary) if sample.group is None else None


@dataclass(frozen=True, eq=False)
class LeftOut(RowDraws):
    """All observations but those of one group, with observed labels: replicate g leaves out group g. Nothing is drawn.

    Attributes
    ----------
    group : array of shape (n_samples,)
        Group of each observation, 0 to ``n_resamples - 1`` of all replicates.
    """

    group: Integers

    _prob = staticmethod(_observed_prob)

    @classmethod
    def each(cls, group: Integers) -> Self:
        """Return a replicate for each of the groups 0, 1, ..., none of them empty."""
        return cls(np.uint64(0), 0, int(group.max()) + 1, group)

    def slices(self, size: int) -> list[Self]:
        """Cut into consecutive parts of at most ``size`` replicates with as many observations each."""
        counts = np.bincount(self.group)[self.first : self.first + self.n_resamples]
        ends = np.append(np.flatnonzero(np.diff(counts)) + 1, len(counts))
        parts, start = [], 0
        for end in ends:
            alike = replace(self, first=self.first + start, n_resamples=int(end) - start)
            parts += super(LeftOut, alike).slices(size)
            start = int(end)
        return parts

    def blocks(self, sample: Sample) -> Iterator[tuple[Sample, NDArray[Any]]]:
        """Yield the observations that are kept, in one replicate after the other."""
        for kept in self._kept:
            left = sample.take(np.flatnonzero(kept))
            yield left, left.outcome[None]

    def rows(self, sample: Sample) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Return the positions that are kept and their outcomes, where every replicate has as many."""
        rows = np.nonzero(self._kept)[1].astype(np.int32).reshape(self.n_resamples, -1)
        return rows, sample.outcome[rows]

    def multiplicities(self, sample: Sample) -> NDArray[np.uint16]:
        """Return 1 + 256 times the event of each observation, 0 where it is left out, ``(n_resamples, n_samples)``."""
        return self._kept * (1 + 256 * sample.outcome.astype(np.uint16))

    def sums_of_fixed_cells(self, sample: Sample, partition: Any) -> Iterator[CellSums]:
        """Yield sums over the cells of the sample, each from those of the groups before and after."""
        cells = cells_of(sample, partition)
        for part in self.blocks_of(16 * cells.n_cells * sample.n_outcomes):
            groups = np.clip(self.group - part.first, -1, part.n_resamples) + 1
            index, shape = groups * cells.n_cells + cells.index, (part.n_resamples + 2, cells.n_cells)
            own = [np.bincount(index, values, np.prod(shape)) for values in (None, *sample.null_prob.T)]
            happened = np.bincount(index * sample.n_outcomes + sample.outcome, None, np.prod(shape) * sample.n_outcomes)
            yield CellSums(
                _others(own[0].reshape(shape)),
                _others(np.stack(own[1:], axis=-1).reshape(*shape, -1)),
                _others(happened.reshape(*shape, -1)),
            )

    @property
    def _kept(self) -> Booleans:
        return self.group != np.arange(self.first, self.first + self.n_resamples)[:, None]


def _others(values: NDArray[Any]) -> Floats:
    """Return for each row but the first and the last the sum of all other rows; none is subtracted from a total."""
    before, after = np.cumsum(values, axis=0)[:-2], np.cumsum(values[::-1], axis=0)[-3::-1]
    return (before + after).astype(np.float64)


def _thresholds(sample: Sample, prob: OutcomeProb) -> NDArray[np.uint32]:
    return sample.thresholds if prob is _null_prob else outcome_thresholds(prob(sample))


def _strata(sample: Sample, partition: Any) -> Strata:
    cells = cells_of(sample, partition)
    return Strata.of(cells.index, cells.n_cells)


def _adds_to_one(sample: Sample) -> bool:
    """Return whether either probability is 1 minus the other, up to rounding."""
    return bool(np.all(np.abs(sample.null_prob.sum(axis=1) - 1) < TIE_TOLERANCE))


def _whole(sample: Sample, partition: Any) -> NDArray[np.uint64]:
    """Return the event's null probability times 2**48 as whole numbers, in the order of the strata."""
    prob = np.clip(sample.null_prob[sample.once(_strata, partition).row, 1], 0.0, 1.0)
    return np.rint(prob * 2.0**48).astype(np.uint64)


def _class_tables(sample: Sample, partition: Any, prob: OutcomeProb) -> tuple[Floats, NDArray[np.uint64]]:
    """Return null probabilities ``(n_outcomes, n_samples)`` in the order of the strata, and alias tables."""
    row = sample.once(_strata, partition).row
    records, columns = _records(prob(sample), row), np.empty(sample.given.T.shape)
    for some in blocks(*sample.given.shape):
        columns[:, some] = sample.null_prob[row[some]].T
    return columns, records


def _class_records(sample: Sample, prob: OutcomeProb) -> NDArray[np.uint64]:
    return _records(prob(sample), np.arange(sample.n_samples))


def _records(prob: Floats, row: Integers) -> NDArray[np.uint64]:
    """Return the alias table of each of some rows, ``(n_samples * n_outcomes,)``, as `draw_class_rows` takes it."""
    records = np.empty(prob.shape, dtype=np.uint64)
    for some in blocks(*prob.shape):  # copies of a million observations would be large
        masses = prob[row[some]]
        tables = alias_tables(masses.ravel(), np.arange(0, masses.size + 1, prob.shape[1]))
        threshold, alias = (table.reshape(masses.shape).astype(np.uint64) for table in tables)
        records[some] = threshold << np.uint64(32) | alias << np.uint64(16) | np.arange(prob.shape[1], dtype=np.uint64)
    return records.ravel()


def _columns(sample: Sample) -> Floats:
    return np.ascontiguousarray(sample.null_prob.T)
