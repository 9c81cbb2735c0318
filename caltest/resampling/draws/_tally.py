"""Several summaries of the same simulated labels, computed together from their departures and counts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._points import LANE, list_by_entry, tally_departures, tally_lines
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._sample import Sample
from caltest.predictions._view import LensView
from caltest.predictions.cells._cells import CellSums, cells_of
from caltest.resampling.draws._path_blocks import EACH_PATH, Path, PathBlocks, unsigned
from caltest.resampling.draws._points import Departures, Points
from caltest.resampling.draws._summaries import (
    CellCounts,
    EitherEndExcursion,
    EntryCounts,
    EntrySums,
    LargestExcursion,
    PathExtremes,
    Summary,
    Wanted,
)

Listed = tuple[NDArray[np.int32], NDArray[np.int32], Integers | None]
"""Entries, the counter or sum of each, and what it adds; None if that is 1."""
_BITS = 62  # of a sum, besides its sign


@dataclass(frozen=True, eq=False)
class CountedPaths:
    """Paths of several lenses, whose base paths are those of the usual labels.

    Attributes
    ----------
    largest : tuple of pairs of a LensView and a summary
        Each has the paths of all outcomes, in a separate table of blocks.
    either, extremes : tuples of such pairs
        Each has the path of an event; they share a table, in which those of ``either`` come first.
    blocks : tuple of PathBlocks
        The tables, that of events last; they read the labels of all observations.
    rows : tuple of arrays
        The observations of each table.
    labels : tuple of arrays of shape (n_paths, n), n the number of observations of the table
        The label that is the event of each path.
    """

    largest: tuple[tuple[LensView, LargestExcursion], ...]
    either: tuple[Wanted, ...]
    extremes: tuple[Wanted, ...]
    blocks: tuple[PathBlocks, ...]
    rows: tuple[Integers, ...]
    labels: tuple[NDArray[Any], ...]

    @classmethod
    def of(cls, points: Points, wanted: Iterable[Wanted]) -> CountedPaths:
        """Return the paths among the wanted summaries, which must be `has_counted_path`."""
        asked, n = list(wanted), points.n_samples
        largest = [(view, summary) for view, summary in asked if isinstance(summary, LargestExcursion)]
        blocks = [_read_from_all(view, summary.blocks, n) for view, summary in largest]
        rows = [np.arange(n) if view.base_row is None else view.base_row for view, _ in largest]
        outcomes = np.arange(points.n_outcomes)[:, None]
        labels = [np.broadcast_to(outcomes, (points.n_outcomes, len(some))) for some in rows]
        found: dict[type, dict[Wanted, Path]] = {EitherEndExcursion: {}, PathExtremes: {}}
        for view, summary in asked:
            if isinstance(summary, EitherEndExcursion | PathExtremes):
                found[type(summary)][view, summary] = drawn_path(view, summary.path)
        either, extremes = found.values()
        if paths := [*either.values(), *extremes.values()]:
            shape = len(paths), n
            blocks.append(PathBlocks.of(paths, *shape, points.usual.dtype, usual=points.usual, factor=EACH_PATH))
            rows.append(np.arange(n))
            labels.append(np.stack([np.broadcast_to(np.asarray(path.label), n) for path in paths]))
        return cls(tuple(largest), tuple(either), tuple(extremes), tuple(blocks), tuple(rows), tuple(labels))

    @property
    def n_counters(self) -> int:
        """Number of counters of all tables."""
        return sum(blocks.n_counters for blocks in self.blocks)

    def counters(self, points: Points, first: int) -> Iterator[Listed]:
        """Yield the entries that are events of each path, and the counter of each, from ``first`` on."""
        for blocks, rows, labels in zip(self.blocks, self.rows, self.labels, strict=True):
            entry = (rows * points.n_outcomes + labels).astype(np.int32).ravel()
            yield entry, blocks.rows.place.T.astype(np.int32).ravel() + np.int32(first), None
            first += blocks.n_counters

    @property
    def wanted(self) -> tuple[Wanted, ...]:
        """The summaries."""
        return *self.largest, *self.either, *self.extremes

    def empty(self, n_replicates: int) -> tuple[Floats, ...]:
        """Return arrays for largest excursions, excursions from either end, and extremes of some replicates."""
        shapes = (len(self.largest),), (len(self.either),), (len(self.extremes), 3)
        return tuple(np.empty((n_replicates, *shape)) for shape in shapes)

    def read(
        self,
        counts: NDArray[np.int32],
        first: int,
        labels: NDArray[Any],
        departures: tuple[Any, ...],
        values: Sequence[Floats],
    ) -> None:
        """Fill the values of replicates whose counters, from column ``first`` on, and departures are known.

        ``labels (1, n_samples)`` are the usual ones, afterwards again; ``departures`` are the first arguments of
        `_compiled._tally.tally_departures`.
        """
        largest, either, extremes = values
        for j, ((_, summary), blocks) in enumerate(zip(self.largest, self.blocks, strict=False)):
            found = np.empty(len(counts))
            blocks.read(counts, first, labels, departures, scale=summary.scale, largest=found)
            largest[:, j] = found
            first += blocks.n_counters
        if self.either or self.extremes:
            self.blocks[-1].read(counts, first, labels, departures, either=either, extremes=extremes)

    def by_summary(self, values: Sequence[Floats]) -> dict[Wanted, Floats]:
        """Return what the statistics receive."""
        largest, either, extremes = values
        found: dict[Wanted, Floats] = dict(zip(self.largest, largest.T, strict=True))
        found |= dict(zip(self.either, either.T, strict=True))
        return found | {pair: extremes[:, j] for j, pair in enumerate(self.extremes)}


def has_counted_path(points: Points, view: LensView, summary: Summary | None) -> bool:
    """Return whether a summary of paths can be counted.

    All observations must be seen through the lens, and each must have exactly one label that is the event. The paths of
    all outcomes may be those of some observations.
    """
    if isinstance(summary, LargestExcursion):
        if view.seen is None or view.base_row is None:
            return summary.blocks.starts_from(points.usual)
        same = np.array_equal(view.seen, np.arange(points.n_outcomes)[None])
        return same and summary.blocks.starts_from(points.usual[view.base_row])
    if not isinstance(summary, EitherEndExcursion | PathExtremes):
        return False
    if view.seen is None or view.base_row is None:
        return True
    return len(view.base_row) == points.n_samples and bool(np.all((view.seen == 1).sum(axis=1) == 1))


def _read_from_all(view: LensView, blocks: PathBlocks, n_samples: int) -> PathBlocks:
    """Return the blocks of some observations, for labels of all."""
    if view.base_row is None:
        return blocks
    paths, order = blocks.paths, view.base_row[blocks.paths.order].astype(unsigned(n_samples))
    if paths.by_row:  # rows of the view, which labels of all do not have
        columns = zip(paths.expected.T, paths.order, strict=True)
        paths = paths._replace(expected=np.stack([column[rows] for column, rows in columns]), by_row=0)
    return replace(blocks, paths=paths._replace(order=order))


def drawn_path(view: LensView, path: Path) -> Path:
    """Return the path of the event behind a lens in terms of the labels that are drawn."""
    if view.seen is None or view.base_row is None:
        return path
    label = (view.seen == 1).argmax(axis=1)
    score, expected = np.empty(len(view.base_row)), np.empty(len(view.base_row))
    score[view.base_row], expected[view.base_row] = path.score, path.expected
    return Path(score, expected, int(label[0]) if len(label) == 1 else label)


class Tally:
    """Summaries of labels that are drawn by their departures from the usual ones.

    Parameters
    ----------
    points : Points
        What labels are drawn from.
    wanted : sequence of pairs of a LensView and a summary
        The summaries, each of the outcomes behind a lens. Those of paths of several lenses share a table of blocks.
    """

    def __init__(self, points: Points, wanted: Sequence[Wanted]) -> None:
        self.points = points
        self._counted = [(view, some) for view, some in wanted if isinstance(some, CellCounts | EntryCounts)]
        self._summed = [(view, some) for view, some in wanted if isinstance(some, EntrySums)]
        self._paths = CountedPaths.of(points, wanted)
        self._terms = [Terms.of(view.sample, summary) for view, summary in self._summed]
        sizes = [n_counters_of(view.sample, summary) for view, summary in self._counted]
        self._ends = np.cumsum([0, *sizes])
        n_counters = int(self._ends[-1]) + self._paths.n_counters
        first_path = int(self._ends[-1])
        listed = chain(self._counters_of_entries(), self._paths.counters(points, first_path))
        self._lists = EntryLists.of(points, listed, self._terms_of_entries(), first_path, n_counters)
        self._counts = self._lists.counts(points, n_counters + 1)
        self._sums = self._lists.sums(points, len(self._summed))
        lines = self._lists.lines(len(self._summed), n_counters)
        self._tally = (tally_departures, self._lists.arrays) if lines is None else (tally_lines, (lines, first_path))

    @property
    def bytes_each(self) -> int:
        """Memory of one replicate while it is counted."""
        return 4 * len(self._counts) + self.points.bytes_each

    def read(self, blocks: Iterable[Departures], n_replicates: int) -> dict[Wanted, Any]:
        """Return every summary of the replicates of some blocks, as `Statistic.evaluate_summary` receives it."""
        n_counts = int(self._ends[-1])
        counts = np.empty((n_replicates, n_counts), dtype=np.int32)
        sums = np.empty((n_replicates, len(self._sums)), dtype=np.int64)
        values, first = self._paths.empty(n_replicates), 0
        counted, labels = np.empty((0, len(self._counts)), dtype=np.int32), self.points.usual[None].copy()
        for drawn in blocks:
            part = slice(first, first + drawn.n_replicates)
            if len(counted) < drawn.n_replicates:  # the same memory for every block: fresh memory is slow
                counted = np.empty((drawn.n_replicates, len(self._counts)), dtype=np.int32)
            block = counted[: drawn.n_replicates]
            where = drawn.entry, drawn.end, self.points.shift, self.points.usual
            tally, lists = self._tally
            tally(*where, *lists, self._counts, self._sums, block, sums[part])
            self._paths.read(block, n_counts, labels, where, [some[part] for some in values])
            counts[part] = block[:, :n_counts]
            first = part.stop
        found: dict[Wanted, Any] = {
            pair: terms.read(total) for pair, terms, total in zip(self._summed, self._terms, sums.T, strict=True)
        }
        for pair, start, end in zip(self._counted, self._ends[:-1], self._ends[1:], strict=True):
            found[pair] = read_counts(*pair, counts[:, start:end])
        return found | self._paths.by_summary(values)

    def of_labels(self, labels: NDArray[Any]) -> dict[Wanted, Any]:
        """Return every summary of given labels ``(n_replicates, n_samples)``, as if they were drawn."""
        return self.read([self.points.departures(labels)], len(labels))

    def _counters_of_entries(self) -> Iterator[Listed]:
        for (view, summary), start in zip(self._counted, self._ends[:-1], strict=True):
            counter, outcomes = counters_of(view.sample, summary)
            entry, position = _entries_of(view, outcomes, self.points.n_outcomes)
            yield entry, (counter.ravel()[position] + start).astype(np.int32), None

    def _terms_of_entries(self) -> Iterator[Listed]:
        for place, ((view, _), terms) in enumerate(zip(self._summed, self._terms, strict=True)):
            entry, position = _entries_of(view, terms.outcomes, self.points.n_outcomes)
            yield entry, np.full(len(entry), place, dtype=np.int32), terms.steps.ravel()[position]


@dataclass(frozen=True, eq=False)
class EntryLists:
    """For every entry the counters and sums that it adds to; see `_compiled._tally.tally_departures`.

    Attributes
    ----------
    place : array of shape (n_entries, width)
        First counters, then sums. What is shorter is filled with a last counter that nobody reads, and with the first
        sum, to which 0 is added.
    value : array of shape (n_entries, n), int64
        What is added to the sums, in the last n columns of ``place``.
    widths : array of shape (4,)
        Number of counters and of sums of a usual entry, and of any other.
    first_path : int
        Counters from there on are those of paths.
    """

    place: NDArray[Any]
    value: Integers
    widths: Integers
    first_path: int

    @classmethod
    def of(
        cls, points: Points, counters: Iterable[Listed], terms: Iterable[Listed], first_path: int, nowhere: int
    ) -> EntryLists:
        """List counters and sums by entry."""
        n_entries, usual = points.n_samples * points.n_outcomes, _usual_entries(points)
        parts = [_joined(counters), _joined(terms)]
        longest = np.zeros((2, 2), dtype=np.int64)
        for column, (entry, _, _) in enumerate(parts):
            length = np.bincount(entry, minlength=n_entries)
            longest[0, column] = length[usual].max()
            length[usual] = 0
            longest[1, column] = length.max()
        n_counters, n_sums = longest.max(axis=0)
        place = np.full((n_entries, n_counters + n_sums), nowhere, dtype=np.uint16 if nowhere < 2**16 else np.uint32)
        place[:, n_counters:] = 0
        made = cls(place, np.zeros((n_entries, n_sums), dtype=np.int64), longest.ravel(), first_path)
        length = np.empty(n_entries, dtype=np.uint16)
        for first, part in zip((0, n_counters), parts, strict=True):
            list_by_entry(*part, length, first, place, made.value)
        return made

    @property
    def arrays(self) -> tuple[Any, ...]:
        """Arguments of `tally_departures` that describe the lists."""
        return self.place, self.value, self.widths, self.first_path

    def lines(self, n_sums: int, nowhere: int) -> NDArray[np.uint64] | None:
        """Return the lists as the lines of `tally_lines`; None if they do not fit, or have too little for a gain."""
        n_counters = self.place.shape[1] - self.value.shape[1]
        if n_counters not in {2, 3} or n_sums not in {1, 2} or nowhere >> LANE:
            return None
        lines = np.zeros((len(self.place), 1 + n_sums), dtype=np.uint64)
        lines[:, 0] = np.uint64(nowhere) << np.uint64(2 * LANE) if n_counters == 2 else 0
        for k, counter in enumerate(self.place.T[:n_counters]):
            lines[:, 0] |= counter.astype(np.uint64) << np.uint64(k * LANE)
        for place, value in zip(self.place.T[n_counters:], self.value.T, strict=True):
            for k in range(n_sums):
                lines.view(np.int64)[:, 1 + k] += np.where(place == k, value, 0)
        return lines

    def counts(self, points: Points, n_counters: int) -> NDArray[np.int32]:
        """Return the counters ``(n_counters,)`` of the usual labels; those of paths count from there on."""
        place = self.place[_usual_entries(points), : self.widths[0]].ravel()
        return np.bincount(place[place < self.first_path], minlength=n_counters).astype(np.int32)

    def sums(self, points: Points, n_sums: int) -> Integers:
        """Return the sums ``(n_sums,)`` of the usual labels."""
        entry, sums = _usual_entries(points), np.zeros(n_sums, dtype=np.int64)
        first = self.place.shape[1] - self.value.shape[1]
        np.add.at(sums, self.place[entry, first:].ravel(), self.value[entry].ravel())
        return sums


def _usual_entries(points: Points) -> Integers:
    """Return the number of the entry of each usual label, ``(n_samples,)``, without gaps."""
    return np.arange(points.n_samples) * points.n_outcomes + points.usual


def _joined(parts: Iterable[Listed]) -> tuple[NDArray[np.int32], NDArray[np.int32], Integers]:
    listed, none = list(parts), np.empty(0, np.int32)
    entry, place = (np.concatenate([none, *(some[j] for some in listed)]) for j in (0, 1))
    return entry, place, np.concatenate([np.empty(0, np.int64), *(some[2] for some in listed if some[2] is not None)])


def _entries_of(view: LensView, outcomes: Integers, n_labels: int) -> tuple[NDArray[np.int32], Integers | slice]:
    """Return the entries of the labels that have one of some outcomes behind a lens, and where these outcomes stand.

    The second array, or slice, has positions in ``(n_samples, len(outcomes))``, flattened.
    """
    shape = view.sample.n_samples, len(outcomes)
    if view.seen is None or view.base_row is None:
        if shape[1] == n_labels:
            return np.arange(shape[0] * n_labels, dtype=np.int32), slice(None)
        return (np.arange(shape[0])[:, None] * n_labels + outcomes).ravel().astype(np.int32), slice(None)
    if len(view.seen) == 1:
        column, label = np.nonzero(view.seen[0] == outcomes[:, None])
        entry = view.base_row[:, None] * n_labels + label
        return entry.ravel().astype(np.int32), (np.arange(shape[0])[:, None] * shape[1] + column).ravel()
    row, column, label = np.nonzero(view.seen[view.base_row][:, None] == outcomes[:, None])
    return (view.base_row[row] * n_labels + label).astype(np.int32), row * shape[1] + column


def n_counters_of(sample: Sample, summary: CellCounts | EntryCounts) -> int:
    """Return the number of counters of a summary."""
    if isinstance(summary, EntryCounts):
        return summary.n_cells
    n_cells = cells_of(sample, summary.partition).n_cells
    return n_cells if sample.n_outcomes == 2 else n_cells * sample.n_outcomes


def counters_of(sample: Sample, summary: CellCounts | EntryCounts) -> tuple[Integers, Integers]:
    """Return the counters ``(n_samples, n)`` of n outcomes of each observation, and the outcomes that are counted."""
    outcomes = np.arange(sample.n_outcomes)
    if isinstance(summary, EntryCounts):
        return summary.cell.astype(np.int64), outcomes
    index = cells_of(sample, summary.partition).index[:, None]
    if sample.n_outcomes == 2:  # the others are what remains
        return index, outcomes[1:]
    return index * sample.n_outcomes + outcomes, outcomes


def read_counts(view: LensView, summary: CellCounts | EntryCounts, counts: NDArray[np.int32]) -> Any:
    """Return what a statistic receives of its counters ``(n_replicates, n_counters)``."""
    if isinstance(summary, EntryCounts):
        return counts
    cells = cells_of(view.sample, summary.partition)
    observed = np.empty((len(counts), cells.n_cells, view.sample.n_outcomes))
    if view.sample.n_outcomes == 2:
        observed[..., 1] = counts
        np.subtract(cells.count, counts, out=observed[..., 0])
    else:
        observed[:] = counts.reshape(observed.shape)
    return CellSums(cells.count, cells.null_sum, observed)


@dataclass(frozen=True, eq=False)
class Terms:
    """What labels add to a sum, in whole numbers of a unit.

    Whole numbers have the same sum in any order, so that equal sums are equal: the observed one is ranked among those
    of the draws. The unit is a power of 2, and rounds away less than any sum of doubles does.

    Attributes
    ----------
    outcomes : array of shape (n,)
        Outcomes that add something.
    steps : array of shape (n_samples, n), int64
        What they add, in units.
    constant : int
        What every data set adds.
    exponent : int
        The unit is 2 to the power of this.
    """

    outcomes: Integers
    steps: Integers
    constant: int
    exponent: int

    @classmethod
    def of(cls, sample: Sample, summary: EntrySums) -> Terms:
        """Return the terms of a sample; of two outcomes the second one relative to the first."""
        outcomes, largest = np.arange(sample.n_outcomes), float(np.abs(summary.term).max(initial=0.0))
        exponent = math.frexp(largest * 2.0 * sample.n_samples)[1]
        steps = np.rint(np.ldexp(summary.term, _BITS - exponent)).astype(np.int64)
        constant = 0
        if sample.n_outcomes == 2:
            constant = int(steps[:, 0].sum())
            outcomes, steps = outcomes[1:], steps[:, 1:] - steps[:, :1]
        return cls(outcomes, steps, constant, exponent - _BITS)

    def read(self, total: Integers) -> Floats:
        """Return the sums."""
        return np.ldexp((total + self.constant).astype(np.float64), self.exponent)


def countable(points: Points, view: LensView, summary: Summary | None) -> bool:
    """Return whether a tally computes a summary of the outcomes behind a lens."""
    if isinstance(summary, CellCounts):
        return True
    if isinstance(summary, EntryCounts):
        return summary.cell.shape == view.sample.given.shape
    if isinstance(summary, EntrySums):
        return summary.term.shape == view.sample.given.shape and bool(np.isfinite(summary.term).all())
    return has_counted_path(points, view, summary)
