"""Several summaries of the same simulated labels, computed together from the labels that are not the usual ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._tally import add_departures, count_departures, list_by_entry, longest_list
from caltest.predictions._cells import CellSums
from caltest.predictions._sample import Sample
from caltest.predictions._view import LensView
from caltest.resampling._counted_paths import CountedPaths, Listed, Wanted
from caltest.resampling._points import Departures, Points
from caltest.resampling._summaries import CellCounts, EntryCounts, EntrySums, Summary


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
        usual = np.arange(points.n_samples) * points.n_outcomes + points.usual
        self._counted = [pair for pair in wanted if isinstance(pair[1], CellCounts | EntryCounts)]
        self._summed = [pair for pair in wanted if isinstance(pair[1], EntrySums)]
        self._paths = CountedPaths.of(points, wanted)
        sizes = [_n_counters(view.sample, summary) for view, summary in self._counted]
        self._ends = np.cumsum([0, *sizes])
        n_counters = self._ends[-1] + self._paths.n_counters
        # What fills the lists of entries counts in a last counter, and adds 0 to the first sum.
        self._counters = EntryLists.of(points, self._counters_of_entries(), n_counters)
        self._path_counters = EntryLists.of(points, self._paths.counters(points, self._ends[-1]), n_counters)
        self._terms = EntryLists.of(points, self._terms_of_entries(), 0)
        self._counts = np.zeros(n_counters + 1, dtype=np.int32)  # paths are counted from the usual ones, others added
        np.add.at(self._counts, self._counters.place[usual], 1)
        self._sums = np.array([_constant(view.sample, summary) for view, summary in self._summed])
        np.add.at(self._sums, self._terms.place[usual], self._terms.value[usual])
        self._known = {*self._counted, *self._summed, *self._paths.wanted}

    def covers(self, wanted: Iterable[tuple[LensView, Summary | None]]) -> bool:
        """Return whether all of some summaries are computed."""
        return all(pair in self._known for pair in wanted)

    def read(self, blocks: Iterable[Departures], n_replicates: int) -> dict[Wanted, Any]:
        """Return every summary of the replicates of some blocks, as `Statistic.evaluate_summary` receives it."""
        n_counts = int(self._ends[-1])
        counts, sums = np.empty((n_replicates, n_counts), dtype=np.int32), np.empty((n_replicates, len(self._sums)))
        values, first = self._paths.empty(n_replicates), 0
        for drawn in blocks:
            part = slice(first, first + len(drawn.labels))
            where = drawn.entry, drawn.end, self.points.shift, self.points.usual
            counted = np.empty((len(drawn.labels), len(self._counts)), dtype=np.int32)
            count_departures(*where, self._counters.place, self._path_counters.place, self._counts, counted)
            add_departures(*where, self._terms.place, self._terms.value, self._sums, sums[part])
            self._paths.read(counted[:, n_counts:-1], drawn.labels, [some[part] for some in values])
            counts[part] = counted[:, :n_counts]
            first = part.stop
        found: dict[Wanted, Any] = dict(zip(self._summed, sums.T, strict=True))
        for pair, start, end in zip(self._counted, self._ends[:-1], self._ends[1:], strict=True):
            found[pair] = _read(*pair, counts[:, start:end])
        return found | self._paths.by_summary(values)

    def _counters_of_entries(self) -> Iterator[Listed]:
        for (view, summary), start in zip(self._counted, self._ends, strict=False):
            for outcome, counter in _counters(view.sample, summary):
                entry, row = entries_of(view, outcome, self.points.n_outcomes)
                yield entry, counter[row] + start, None

    def _terms_of_entries(self) -> Iterator[Listed]:
        for place, (view, summary) in enumerate(self._summed):
            for outcome, term in _terms(view.sample, summary):
                entry, row = entries_of(view, outcome, self.points.n_outcomes)
                yield entry, np.full(len(row), place), term[row]


@dataclass(frozen=True, eq=False)
class EntryLists:
    """For every entry a list of counters or sums that it adds to.

    Attributes
    ----------
    place : array of shape (n_entries, width)
        Counters or sums.
    value : array of shape (n_entries, width) or (n_entries, 0)
        What is added to them; nothing if that is always 1.
    """

    place: NDArray[Any]
    value: NDArray[np.float64]

    @classmethod
    def of(cls, points: Points, parts: Iterator[Listed], nowhere: int) -> EntryLists:
        """List by entry; what is shorter than others is filled with 0 for the place ``nowhere``."""
        listed, n_entries = list(parts), points.n_samples * points.n_outcomes
        entry, place, value = (
            np.concatenate([np.empty(0, dtype), *(some[j] for some in listed if some[j] is not None)])
            for j, dtype in enumerate((np.int64, np.uint16, np.float64))
        )
        shape = n_entries, longest_list(entry, n_entries)
        made = cls(
            np.full(shape, nowhere, dtype=np.min_scalar_type(max(nowhere, 2**8))),
            np.zeros(shape if len(value) else (n_entries, 0)),
        )
        list_by_entry(entry, place, value, made.place, made.value)
        return made


def entries_of(view: LensView, outcome: int, n_outcomes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the entries of the labels that have an outcome behind a lens, and the observation of each behind it."""
    n_samples = view.sample.n_samples
    if view.seen is None or view.base_row is None:
        row = np.arange(n_samples)
        return row * n_outcomes + outcome, row
    if len(view.seen) == 1:
        labels = np.flatnonzero(view.seen[0] == outcome)
        row = np.tile(np.arange(n_samples), len(labels))
        return view.base_row[row] * n_outcomes + np.repeat(labels, n_samples), row
    row, label = np.nonzero(view.seen[view.base_row] == outcome)
    return view.base_row[row] * n_outcomes + label, row


def _n_counters(sample: Sample, summary: Summary) -> int:
    if isinstance(summary, EntryCounts):
        return summary.n_cells
    assert isinstance(summary, CellCounts)
    n_cells = sample.cells(summary.partition).n_cells
    return n_cells if sample.n_outcomes == 2 else n_cells * sample.n_outcomes


def _counters(sample: Sample, summary: Summary) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield the outcomes that are counted, and the counter of each observation with this outcome."""
    if isinstance(summary, EntryCounts):
        yield from enumerate(summary.cell.T.astype(np.int64))
        return
    assert isinstance(summary, CellCounts)
    index = sample.cells(summary.partition).index
    if sample.n_outcomes == 2:  # the others are what remains
        yield 1, index
        return
    for k in range(sample.n_outcomes):
        yield k, index * sample.n_outcomes + k


def _read(view: LensView, summary: Summary, counts: NDArray[np.int32]) -> Any:
    """Return what a statistic receives of its counters ``(n_replicates, n_counters)``."""
    if not isinstance(summary, CellCounts):
        return counts
    cells = view.sample.cells(summary.partition)
    if view.sample.n_outcomes == 2:
        observed = np.stack([np.bincount(cells.index) - counts, counts], axis=-1)
    else:
        observed = counts.reshape(len(counts), cells.n_cells, -1)
    return CellSums(cells.count, cells.null_sum, observed.astype(np.float64))


def _terms(sample: Sample, summary: EntrySums) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Yield the outcomes that add to a sum, and what each observation with this outcome adds."""
    if sample.n_outcomes == 2:  # relative to the other one
        yield 1, summary.term[:, 1] - summary.term[:, 0]
        return
    yield from enumerate(summary.term.T)


def _constant(sample: Sample, summary: EntrySums) -> float:
    return float(summary.term[:, 0].sum()) if sample.n_outcomes == 2 else 0.0
