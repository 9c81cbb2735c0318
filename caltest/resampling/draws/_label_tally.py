"""Several summaries of the same simulated labels, from one pass over all labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._label_tally import tally_labels
from caltest.predictions._arrays import Integers
from caltest.predictions._sample import Sample
from caltest.predictions._view import LensView
from caltest.resampling.draws._class_events import ClassEvents, joint_cells
from caltest.resampling.draws._summaries import CellCounts, EntryCounts, EntrySums, LargestExcursion, Summary, Wanted
from caltest.resampling.draws._tally import Terms, counters_of, n_counters_of, read_counts

Counted = tuple[LensView, CellCounts | EntryCounts]
_COUNTERS = 2**16  # that a record can hold
_MOST_JOINT = 2**10  # joint cells, or as many as observations: they are read after every replicate


@dataclass(frozen=True, eq=False)
class LabelTally:
    """Summaries of labels that are all drawn: cells, the paths of all outcomes, and perhaps a sum.

    One record for each entry, observation and outcome, holds what a label adds to all summaries, so that labels are
    read once. Cells of several partitions share a counter for each combination that occurs.

    Attributes
    ----------
    sample : Sample
        What labels are drawn for.
    counted : tuple of pairs of a LensView and a summary
        The summaries that count cells.
    summed : tuple
        Such a pair and what labels add to its sum, or nothing.
    largest : pair of a LensView and a LargestExcursion
        That of the paths.
    places, values : arrays of shape (n_entries,)
        The records; see `_compiled._label_tally.tally_labels`.
    cells : array of shape (n_joint_cells, n_partitions)
        Counters of each combination, those of all summaries one after the other.
    ends : array of shape (n_partitions + 1,)
        Where the counters of each summary begin and end.
    events : ClassEvents or None
        The summaries of single classes against the rest.
    """

    sample: Sample
    counted: tuple[Counted, ...]
    summed: tuple[tuple[Wanted, Terms], ...]
    largest: tuple[LensView, LargestExcursion]
    places: NDArray[np.uint32]
    values: Integers
    cells: NDArray[np.int32]
    ends: Integers
    events: ClassEvents | None

    @property
    def wanted(self) -> set[Wanted]:
        """The summaries."""
        own = {*self.counted, *(pair for pair, _ in self.summed), self.largest}
        return own if self.events is None else own | self.events.wanted

    @classmethod
    def of(cls, sample: Sample, wanted: Sequence[Wanted]) -> LabelTally | None:
        """Return how summaries of the outcomes of a sample are computed together; None if they cannot be."""
        own = [(view, each) for view, each in wanted if view.is_base]
        counted = [(view, each) for view, each in own if isinstance(each, CellCounts | EntryCounts)]
        summed = [(view, each) for view, each in own if isinstance(each, EntrySums)]
        paths = [(view, each) for view, each in own if isinstance(each, LargestExcursion)]
        others = len(own) - len(counted) - len(summed) - len(paths)
        if others or len(paths) != 1 or len(summed) > 1 or paths[0][1].blocks.n_usual:
            return None
        blocks = paths[0][1].blocks
        sizes = [n_counters_of(sample, each) for _, each in counted]
        counters = [counters_of(sample, each)[0] for _, each in counted]
        joint = joint_cells(counters, sizes, sample.given.shape)
        if joint is None or len(joint[1]) > min(_COUNTERS - blocks.n_counters, max(_MOST_JOINT, sample.n_samples)):
            return None
        code, cells = joint
        ends = np.cumsum([0, *sizes])
        places = code | (blocks.rows.place.astype(np.uint32) + np.uint32(len(cells))) << np.uint32(16)
        sums = tuple((pair, Terms.of(sample, pair[1])) for pair in summed)
        values = sums[0][1].steps.ravel() if sums else np.zeros(places.size, dtype=np.int64)
        views: dict[LensView, list[Summary]] = {}
        for view, each in wanted:
            if not view.is_base:
                views.setdefault(view, []).append(each)
        events = ClassEvents.of(sample, views, blocks) if views else None
        return cls(sample, tuple(counted), sums, paths[0], places.ravel(), values, cells, ends, events)

    together: ClassVar[int] = 64
    """Replicates whose labels and counters should stay in the cache until all are read."""

    def read(self, blocks: Iterable[NDArray[Any]], n_replicates: int) -> dict[Wanted, Any]:
        """Return every summary of blocks of labels, as `Statistic.evaluate_summary` receives it."""
        paths, scale = self.largest[1].blocks, self.largest[1].scale
        counts = np.empty((min(self.together, n_replicates), len(self.cells) + paths.n_counters), dtype=np.int32)
        cell_counts = np.empty((n_replicates, self.ends[-1]), dtype=np.int32)
        sums, largest = np.empty(n_replicates, dtype=np.int64), np.empty(n_replicates)
        none = np.empty(0, dtype=np.uint32), np.zeros(len(counts) + 1, dtype=np.int64), 0, paths.rows.usual
        start = 0
        of_events = None if self.events is None else self.events.empty(n_replicates, self.sample.n_outcomes)
        for some in blocks:
            for labels in np.split(some, range(self.together, len(some), self.together)):
                part, block = slice(start, start + len(labels)), counts[: len(labels)]
                tally_labels(labels, self.places, self.values, self.cells, block, cell_counts[part], sums[part])
                either = None
                if self.events is not None and of_events is not None:
                    either = self.events.fill(labels, [some[part] for some in of_events])
                read = {"scale": scale, "largest": largest[part], "either": either}
                paths.read(block, len(self.cells), labels, none, **read)
                start = part.stop
        found: dict[Wanted, Any] = {self.largest: largest}
        if self.events is not None and of_events is not None:
            found |= self.events.by_summary(of_events)
        found |= {pair: terms.read(sums) for pair, terms in self.summed}
        for pair, begin, end in zip(self.counted, self.ends[:-1], self.ends[1:], strict=True):
            found[pair] = read_counts(*pair, cell_counts[:, begin:end])
        return found

    def of_labels(self, labels: NDArray[Any]) -> dict[Wanted, Any]:
        """Return every summary of given labels ``(n_replicates, n_samples)``, as if they were drawn."""
        return self.read([labels], len(labels))
