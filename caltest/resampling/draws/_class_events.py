"""Summaries of lenses whose event is one class, from the labels and the paths of all classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._label_tally import tally_events
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._sample import Sample
from caltest.predictions._view import LensView
from caltest.resampling.draws._path_blocks import PathBlocks
from caltest.resampling.draws._summaries import CellCounts, EitherEndExcursion, EntrySums, Summary, Wanted
from caltest.resampling.draws._tally import Terms, counters_of, drawn_path, n_counters_of, read_counts

_SPREAD = 16  # counters of labels whose cells nobody wants: a single one would wait for itself
_COMBINATIONS = 2**22  # of cells, of which those that occur get counters
_SUMS = 2  # of each class


@dataclass(frozen=True, eq=False)
class ClassEvents:
    """What each label adds to the summaries of its class against the rest.

    Attributes
    ----------
    counted : tuple of (LensView, CellCounts) with the first and the last column of their counts
        The summaries that count cells.
    summed : tuple of (LensView, EntrySums) with the terms, and the class and number of the sum
        The summaries that are sums.
    paths : tuple of (LensView, EitherEndExcursion) with the class
        Those of paths, which are the paths of the classes.
    places : array of shape (n_entries,), uint16
        Joint cell of every entry.
    values : two arrays of shape (n_entries,)
        What entries add to the sums of their class.
    cells : array of shape (n_joint_cells, n)
        The columns that a joint cell adds to; see `_compiled._label_tally.tally_events`.
    n_columns : int
        Number of columns.
    """

    counted: tuple[tuple[tuple[LensView, CellCounts], int, int], ...]
    summed: tuple[tuple[Wanted, Terms, int, int], ...]
    paths: tuple[tuple[Wanted, int], ...]
    places: NDArray[np.uint16]
    values: tuple[Integers, ...]
    cells: NDArray[np.int32]
    n_columns: int

    @classmethod
    def of(cls, base: Sample, views: Mapping[LensView, Sequence[Summary]], blocks: PathBlocks) -> ClassEvents | None:
        """Return the summaries of the views whose event is one class; None if there is no such view."""
        by_class: dict[int, tuple[LensView, Sequence[Summary]]] = {}
        for view, summaries in views.items():
            if (label := _class_of(base, view, summaries, blocks)) is not None:
                by_class.setdefault(label, (view, summaries))
        if not by_class:
            return None
        shape = base.n_samples, base.n_outcomes
        places, values = np.zeros(shape, dtype=np.int64), np.zeros((_SUMS, *shape), dtype=np.int64)
        counted, summed, paths, tables, n_columns, n_joint = [], [], [], [], 0, 0
        for label, (view, summaries) in by_class.items():
            cells = [each for each in summaries if isinstance(each, CellCounts)]
            sizes = [n_counters_of(view.sample, each) for each in cells]
            joint = joint_cells([counters_of(view.sample, each)[0] for each in cells], sizes, (shape[0], 1))
            if joint is None:
                return None
            places[view.base_row, label] = joint[0][:, 0] + n_joint
            tables.append(joint[1] + n_columns)
            n_joint += len(joint[1])
            ends = n_columns + np.cumsum([0, *sizes])
            counted += [((view, each), *ends[j : j + 2].tolist()) for j, each in enumerate(cells)]
            n_columns = int(ends[-1])
            for j, each in enumerate(each for each in summaries if isinstance(each, EntrySums)):
                terms = Terms.of(view.sample, each)
                values[j, view.base_row, label] = terms.steps[:, 0]
                summed.append(((view, each), terms, label, j))
            paths += [((view, each), label) for each in summaries if isinstance(each, EitherEndExcursion)]
        if n_joint > np.iinfo(np.uint16).max:
            return None
        columns = np.full((n_joint, max(table.shape[1] for table in tables)), n_columns, dtype=np.int32)  # nobody's
        first = 0
        for table in tables:
            columns[first : first + len(table), : table.shape[1]] = table
            first += len(table)
        places16 = places.astype(np.uint16).ravel()
        sums = tuple(some.ravel() for some in values)
        return cls(tuple(counted), tuple(summed), tuple(paths), places16, sums, columns, n_columns + 1)

    @property
    def wanted(self) -> set[Wanted]:
        """The summaries."""
        return {*(one[0] for one in self.counted), *(one[0] for one in self.summed), *(one[0] for one in self.paths)}

    def empty(self, n_replicates: int, n_outcomes: int) -> tuple[NDArray[np.int32], Integers, Floats]:
        """Return arrays for the counts, sums and excursions of some replicates."""
        counts = np.empty((n_replicates, self.n_columns), dtype=np.int32)
        return counts, np.empty((n_replicates, _SUMS, n_outcomes), dtype=np.int64), np.empty((n_replicates, n_outcomes))

    def fill(self, labels: NDArray[Any], values: Sequence[NDArray[Any]]) -> Floats | None:
        """Fill counts and sums of what `empty` returned; return where excursions belong, if any are wanted."""
        counts, sums, excursions = values
        tally_events(labels, self.places, *self.values, self.cells, counts, sums)
        return excursions if self.paths else None

    def by_summary(self, values: Sequence[NDArray[Any]]) -> dict[Wanted, Any]:
        """Return what the statistics receive."""
        counts, sums, excursions = values
        found: dict[Wanted, Any] = {}
        for (view, each), start, end in self.counted:
            found[view, each] = read_counts(view, each, counts[:, start:end])
        for pair, terms, label, number in self.summed:
            found[pair] = terms.read(sums[:, number, label])
        return found | {pair: excursions[:, label] for pair, label in self.paths}


def _class_of(base: Sample, view: LensView, summaries: Sequence[Summary], blocks: PathBlocks) -> int | None:
    """Return the class that is the event behind a lens, if all observations and summaries are those of its path."""
    if view.seen is None or view.base_row is None or len(view.seen) > 1 or len(view.base_row) != base.n_samples:
        return None
    label, sums = np.flatnonzero(view.seen[0] == 1), [each for each in summaries if isinstance(each, EntrySums)]
    if len(label) != 1 or view.sample.n_outcomes != 2 or len(sums) > _SUMS:
        return None
    if not all(isinstance(each, CellCounts | EntrySums | EitherEndExcursion) for each in summaries):
        return None
    k = int(label[0])
    for each in summaries:
        if isinstance(each, EitherEndExcursion):
            path, order = drawn_path(view, each.path), blocks.paths.order[k]
            same = np.array_equal(path.score, base.given[:, k])
            if not same or not np.array_equal(path.expected[order], blocks.paths.expected[k]):
                return None
    return k if all(np.isfinite(each.term).all() for each in sums) else None


def joint_cells(
    counters: Sequence[Integers], sizes: Sequence[int], shape: tuple[int, int]
) -> tuple[NDArray[np.uint32], NDArray[np.int32]] | None:
    """Return combinations of the cells of entries of some shape; None if there may be too many.

    The first array is the joint cell of each entry. The second one has the counters of each joint cell, those of all
    partitions one after the other, ``(n_joint_cells, n_partitions)``.
    """
    if np.prod(sizes, dtype=np.float64) > _COMBINATIONS:
        return None
    number, joint = len(sizes), np.zeros(shape, dtype=np.int64)
    for counter, size in zip(counters, sizes, strict=True):
        joint = joint * size + counter
    if not number:
        joint += np.arange(shape[0])[:, None] % _SPREAD
    occupied = np.flatnonzero(np.bincount(joint.ravel()))
    code = np.zeros(occupied[-1] + 1, dtype=np.uint32)
    code[occupied] = np.arange(len(occupied))
    cells = np.empty((len(occupied), number), dtype=np.int32)
    for column, cell in enumerate(np.unravel_index(occupied, sizes) if number else ()):
        cells[:, column] = cell + sum(sizes[:column])
    return code[joint], cells
