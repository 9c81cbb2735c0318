"""Draws of labels under a null hypothesis: a seed and a range of replicates, from which every draw can be repeated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._cells import count_outcomes
from caltest._compiled._draws import count_drawn, draw_counts, draw_outcomes
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._lens import outcome_dtype
from caltest.predictions._sample import Sample
from caltest.predictions._view import LensView
from caltest.predictions.cells._cells import CellSums, cell_dtype, cells_of
from caltest.predictions.inputs._validation import SeedLike, validate_count, validate_rng, validate_workers
from caltest.resampling.distributions._poisson_binomial import PoissonBinomial
from caltest.resampling.draws._alias_tables import FEW, AliasTables, draw_many_labels, replicates_together
from caltest.resampling.draws._label_tally import LabelTally
from caltest.resampling.draws._points import Points, has_records
from caltest.resampling.draws._summaries import CellCounts, EntryCounts, Summary, Wanted
from caltest.resampling.draws._tally import Tally
from caltest.results._progress import Progress

_BLOCK_BYTES = 2**21  # a block of draws should stay in the cache until every statistic has read it
_BLOCK_REPLICATES = (4, 1024)
_PART_BYTES = 2**25
_PARTS = 4  # blocks of the labels of many classes that are drawn together: tables are read once for each block


@dataclass(frozen=True)
class Draws(ABC):
    """A range of replicates of simulated labels.

    Replicate r depends on the seed and on r alone, so that a test may be cut into slices in any way.

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

    resample_predictions: ClassVar[bool] = False
    """Whether observations are drawn too."""
    method: ClassVar[str] = "monte-carlo"
    """How results name the null distribution."""
    together: ClassVar[int] = 1
    """Replicates that are evaluated together where there are so many."""

    @classmethod
    def of(cls, n_resamples: int, rng: SeedLike = None) -> Self:
        """Return ``n_resamples`` draws; all randomness enters here."""
        seed = validate_rng(rng).integers(2**64, dtype=np.uint64)
        return cls(seed, 0, validate_count(n_resamples, "n_resamples"))

    @abstractmethod
    def blocks(self, sample: Sample) -> Iterator[tuple[Sample, NDArray[Any]]]:
        """Yield samples with outcomes ``(n_replicates, n_samples)`` drawn for them."""

    def summarise(self, sample: Sample, summary: Summary) -> Iterator[Any] | None:
        """Return an iterator over a summary of the draws; None if `blocks` must be used.

        Every way must agree with `blocks`, the general one.
        """
        return None

    def points(self, sample: Sample) -> Points | None:
        """Return what labels are drawn from by their departures from the usual ones; None if they are not."""
        return None

    def tallies_labels(self, sample: Sample) -> bool:
        """Return whether several summaries of labels that are all drawn are computed together."""
        return False

    def tallied(self, tally: Tally | LabelTally) -> Mapping[Wanted, Any]:
        """Return the summaries of a tally, of the labels of `blocks`; where there are `points` or `tallies_labels`."""
        raise NotImplementedError

    def scale(self, sample: Sample, outcomes: NDArray[Any]) -> Floats | None:
        """Return by what the residuals of drawn outcomes are multiplied, ``(n_replicates,)``; None for 1."""
        return None

    def scaled_blocks(self, sample: Sample) -> Iterator[tuple[Sample, NDArray[Any], Floats | None]]:
        """Yield samples with outcomes drawn for them, and the `scale` of their residuals."""
        return ((drawn, outcomes, self.scale(drawn, outcomes)) for drawn, outcomes in self.blocks(sample))

    def least_together(self, sample: Sample) -> int:
        """Return the number of replicates that a part should have on one thread, whose labels take little memory.

        The records of many classes are made again for every part.
        """
        most = _PART_BYTES // (sample.n_samples * outcome_dtype(sample.n_outcomes).itemsize)
        return min(replicates_together(sample), most) if sample.n_outcomes > FEW else 1

    def slices(self, size: int) -> list[Self]:
        """Cut into consecutive parts of at most ``size`` replicates."""
        return [
            replace(self, first=self.first + start, n_resamples=min(size, self.n_resamples - start))
            for start in range(0, self.n_resamples, size)
        ]

    def map(
        self, evaluate: Callable[[Self], Floats], workers: int = 1, progress: Progress | None = None, least: int = 1
    ) -> Floats:
        """Return ``evaluate(part)`` joined along the last axis over parts of the replicates, on ``workers`` threads.

        On one thread a part has at least ``least`` replicates if there are so many: to begin one takes a time, too.
        """
        threads = validate_workers(workers)
        # Not more parts for two threads than for one: records of many classes are made again for every part.
        size = max(self.together, least if threads == 1 else 1, -(-self.n_resamples // max(4, 2 * threads)))
        parts = self.slices(min(_BLOCK_REPLICATES[1], size))
        values = []
        # Not a pool of one thread: memory that another thread gives back is cleared before it is used again.
        with ThreadPoolExecutor(threads) if threads > 1 else nullcontext() as pool:
            found = map(evaluate, parts) if pool is None else pool.map(evaluate, parts)
            for part, value in zip(parts, found, strict=True):
                values.append(value)
                if progress is not None:
                    progress(part.first + part.n_resamples, self.n_resamples)
        return np.concatenate(values, axis=-1)

    def blocks_of(self, bytes_each: int) -> list[Self]:
        """Cut into parts that take some bytes for each replicate."""
        return self.slices(max(self.together, replicates_of(bytes_each)))


def replicates_of(bytes_each: int) -> int:
    """Return how many replicates make a block, which take some bytes each."""
    low, high = _BLOCK_REPLICATES
    return min(max(_BLOCK_BYTES // bytes_each, low), high)


@dataclass(frozen=True)
class OutcomeDraws(Draws):
    """Labels simulated from their null probabilities, predictions fixed."""

    def blocks(self, sample: Sample) -> Iterator[tuple[Sample, NDArray[Any]]]:
        """Yield the sample with outcomes ``(n_replicates, n_samples)`` drawn for it."""
        if (points := sample.once(Points.of)) is not None:
            size = replicates_of(sample.n_samples)
            departures = points.blocks(self.seed, self.first, self.n_resamples, size)
            yield from ((sample, points.labels(drawn)) for drawn in departures)
            return
        if sample.n_outcomes > FEW:
            some = self._many_outcomes(sample, replicates_together(sample) // _PARTS)
            yield from ((sample, outcomes) for outcomes in some)
            return
        for part in self.blocks_of(sample.n_samples):
            yield from ((sample, labels) for labels in part._labels(sample, part.n_resamples))

    def points(self, sample: Sample) -> Points | None:
        """Return what labels are drawn from by their departures, where these are few; None with weights."""
        return sample.once(Points.of) if sample.weight is None else None

    def tallies_labels(self, sample: Sample) -> bool:
        """Return whether there are several classes, few entries, no weights, and no label that is impossible."""
        plain = sample.n_outcomes > 2 and sample.weight is None and not sample.impossible.size
        return plain and has_records(sample) and self.points(sample) is None

    def tallied(self, tally: Tally | LabelTally) -> Mapping[Wanted, Any]:
        """Return the summaries of a tally, of the labels of `blocks`."""
        if isinstance(tally, LabelTally):
            return tally.read(self._labels(tally.sample, tally.together), self.n_resamples)
        size = replicates_of(tally.bytes_each)
        return tally.read(tally.points.blocks(self.seed, self.first, self.n_resamples, size), self.n_resamples)

    def _labels(self, sample: Sample, size: int) -> Iterator[NDArray[Any]]:
        """Yield labels that are all drawn, ``size`` replicates at a time, in the same memory."""
        out = np.empty((min(size, self.n_resamples), sample.n_samples), dtype=outcome_dtype(sample.n_outcomes))
        for part in self.slices(size):
            draw_outcomes(sample.thresholds, self.seed, part.first, out[: part.n_resamples])
            yield out[: part.n_resamples]

    def _many_outcomes(self, sample: Sample, size: int) -> Iterator[NDArray[Any]]:
        """Yield outcomes of many classes, ``size`` of those that are drawn together at a time."""
        for part in self.slices(replicates_together(sample)):
            out = draw_many_labels(sample, self.seed, part.first, part.n_resamples)
            yield from (out[start : start + size] for start in range(0, len(out), size))

    def summarise(self, sample: Sample, summary: Summary) -> Iterator[Any] | None:
        """Summarise simulated labels: from their departures where these are few, otherwise by counts."""
        if sample.weight is not None:
            return None
        wanted = LensView(sample), summary
        if not counts_events(*wanted) and (points := self.points(sample)) is not None:
            return iter([self.tallied(Tally(points, [wanted]))[wanted]])
        if isinstance(summary, EntryCounts):
            return self.counts(sample, summary.cell, summary.n_cells)
        return self._cell_sums(sample, summary.partition) if isinstance(summary, CellCounts) else None

    def _cell_sums(self, sample: Sample, partition: Any) -> Iterator[CellSums]:
        """Yield the cell sums of every draw; for two outcomes counts are drawn from Poisson-binomial distributions."""
        cells = cells_of(sample, partition)
        drawn: Iterator[NDArray[Any]] = self._event_counts(sample, partition)
        if sample.n_outcomes > 2:
            drawn = self.counts(sample, sample.once(_entries, partition), cells.n_cells * sample.n_outcomes)
        for observed in drawn:
            counted = observed.reshape(-1, cells.n_cells, sample.n_outcomes).astype(np.float64)
            yield CellSums(cells.count, cells.null_sum, counted)

    def _event_counts(self, sample: Sample, partition: Any) -> Iterator[Integers]:
        first, n_rows, tables = sample.once(_count_tables, partition)
        for part in self.blocks_of(8 * len(first)):
            events = np.empty((part.n_resamples, len(first)), dtype=np.int64)
            draw_counts(*tables.arrays, self.seed, part.first, events)
            yield np.stack([n_rows - first - events, first + events], axis=-1)

    def counts(self, sample: Sample, cell: NDArray[Any], n_cells: int) -> Iterator[NDArray[np.signedinteger]]:
        """Yield ``(n_replicates, n_cells)``: observations whose simulated label selects an entry of each cell.

        The same draws as `blocks`, without storing labels. ``cell (n_samples, n_outcomes)`` is the cell of every entry
        of the predictions, 0 to ``n_cells - 1``.
        """
        if sample.n_outcomes > FEW:
            labels = self._many_outcomes(sample, replicates_of(8 * n_cells + sample.n_samples))
            yield from (count_outcomes(outcomes, cell, sample.n_outcomes, n_cells) for outcomes in labels)
            return
        for part in self.blocks_of(4 * n_cells):
            counted = np.empty((part.n_resamples, n_cells), dtype=np.int32)
            count_drawn(sample.thresholds, cell.reshape(-1), self.seed, part.first, counted)
            yield counted


def counts_events(view: LensView, summary: Summary | None) -> bool:
    """Return whether a summary counts the events of two outcomes in cells, which are drawn from their distribution."""
    return view.is_base and view.sample.n_outcomes == 2 and isinstance(summary, CellCounts)


def _entries(sample: Sample, partition: Any) -> NDArray[Any]:
    """Return a number for each cell and outcome, ``(n_samples, n_outcomes)``."""
    cells = cells_of(sample, partition)
    number = cells.index[:, None] * sample.n_outcomes + np.arange(sample.n_outcomes)
    return number.astype(cell_dtype(cells.n_cells * sample.n_outcomes))


def _count_tables(sample: Sample, partition: Any) -> tuple[Integers, Integers, AliasTables]:
    """Return smallest event count and size of each cell, and tables for the events beyond the smallest count."""
    cells = cells_of(sample, partition)
    counts = PoissonBinomial.of_each(cells.split(sample.expected[:, 1]))
    smallest = np.array([count.first for count in counts])
    return smallest, np.bincount(cells.index), AliasTables.of([count.pmf for count in counts])
