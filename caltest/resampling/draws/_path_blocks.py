"""Paths of several events, cut into blocks: what does not depend on simulated labels; see _compiled/_path_blocks.py."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._path_blocks import (
    LANES,
    BlockCounters,
    Paths,
    bound_blocks,
    count_block_events,
    fill_path,
    find_places,
    read_paths,
)
from caltest.predictions._arrays import Floats
from caltest.predictions.cells._cells import columns_together, store_columns
from caltest.predictions.cells._order import stable_order
from caltest.resampling.draws._alias_tables import FEW

_MOST_ROWS = 2**16 - 1  # of a block: counts of 16 bits
_LARGEST_SHIFT = 16
_SORTED_TOGETHER = 2**18  # values
_COUNTERS = 2**18  # of all replicates that are counted together
_MOST_BLOCKS = 2048  # of 256, a fifth of the rows of a million were read in every draw
_NO_USUAL, _ALL_LABELS, _DEPARTURES = 3.0, 1.5, 0.4  # factors of the number of blocks, measured: fewer where few depart
_IN_PLACE = 4.0  # the same where what is read is far apart in memory
EACH_PATH = 1.6  # the same where labels depart and every path is read, not only the one that goes farthest


@dataclass(frozen=True, eq=False)
class Path:
    """The cumulative residual of an event in the order of a score.

    Attributes
    ----------
    score : array of shape (n_samples,)
        The path goes from the smallest score to the largest.
    expected : array of shape (n_samples,)
        Null probability of the event.
    label : int, or array of shape (n_samples,)
        The label that is the event, for all rows or for each.
    """

    score: NDArray[Any]
    expected: NDArray[Any]
    label: int | NDArray[Any]


@dataclass(frozen=True, eq=False)
class PathBlocks:
    """Paths cut into blocks.

    Attributes
    ----------
    paths : Paths
        Orders, probabilities and events of the paths, for blocks that are read label by label.
    table : array of shape (n_groups, n_blocks + 1, 5, LANES), int32
        Bounds of the blocks of the base path. Those of draws are written into a copy of it.
    shift : int
        Bounds are in units of ``2**-shift``.
    rows : Rows
        The counter of each row in each path, and its label on the usual path.
    """

    paths: Paths
    table: NDArray[np.int32]
    shift: int
    rows: BlockCounters

    @classmethod
    def of(
        cls,
        paths: Iterable[Path],
        n_paths: int,
        n_samples: int,
        label_dtype: np.dtype[Any],
        *,
        expected_dtype: np.dtype[Any] | type = np.float64,
        in_place: NDArray[Any] | None = None,
        usual: NDArray[Any] | None = None,
        n_blocks: int | None = None,
        factor: float | None = None,
    ) -> PathBlocks:
        """Cut ``n_paths`` paths, which are read one by one.

        Parameters
        ----------
        paths : iterable of Path
            The paths.
        n_paths, n_samples : int
            Their number, and that of the rows.
        label_dtype, expected_dtype : numpy.dtype
            Types of the labels, and of the null probabilities as they are stored.
        in_place : array of shape (n_samples, n_paths), optional
            Null probabilities of all paths, of type ``expected_dtype`` and writeable, if no copy of them shall be made.
        usual : array of shape (n_samples,), integers, optional
            Labels of the base path; -1 where a row has none. By default no row has one.
        n_blocks : int, optional
            Number of blocks of each path.
        factor : float, optional
            Factor of their number by default.
        """
        if factor is None:
            has_usual = np.zeros(1, dtype=np.bool_) if usual is None else usual >= 0
            factor = _DEPARTURES if has_usual.all() else _ALL_LABELS if has_usual.any() else _NO_USUAL
            factor *= 1 if in_place is None else _IN_PLACE
        groups = -(-n_paths // LANES)
        if n_blocks is None:  # the time of bounds grows with their number, that of the rows to read falls with it
            n_blocks = min(max(int(math.sqrt(factor * n_samples / groups)), 8), _MOST_BLOCKS)
        size = max(1, min(n_blocks, n_samples), -(-2 * n_samples // (_MOST_ROWS - 1)))
        # Bounds of values up to n_samples in absolute value reach twice as far.
        shift = max(0, min(_LARGEST_SHIFT, int(math.log2(2**30 / (1.01 * n_samples + 8)))))
        shape, ends = (n_paths, n_samples), (n_paths, size + 1)
        low = np.full((groups, size, LANES), np.inf)
        high = -low
        place = np.empty((n_samples, n_paths), dtype=unsigned(groups * size * LANES))
        step = np.zeros(n_paths, dtype=np.int64)
        made = Paths(
            np.empty(shape, dtype=unsigned(n_samples)),
            np.empty(shape, dtype=expected_dtype) if in_place is None else in_place,
            0 if in_place is None else n_paths,
            np.empty(shape, dtype=np.bool_),
            np.empty(0, dtype=label_dtype),
            np.zeros(n_paths, dtype=np.int64),
            step,
            np.empty(ends, dtype=np.int64),
            np.empty(ends, dtype=np.int64),
            np.empty(ends),
        )
        labels = []
        columns = np.empty((columns_together(n_samples), n_samples), dtype=place.dtype)
        for p, (path, order, score, expected) in enumerate(_in_order(paths, n_samples, expected_dtype)):
            each = np.asarray(path.label)
            happens = np.zeros(n_samples, dtype=np.bool_) if usual is None else usual == each
            column = p % len(columns)
            fill_path(p, order, score, expected, happens, made, high, low, columns[column])
            if column == len(columns) - 1 or p == n_paths - 1:
                store_columns(columns[: column + 1], place[:, p - column : p + 1])
            step[p] = each.ndim
            labels.append(each[order] if each.ndim else each[None])
        start = np.cumsum([0] + [len(some) for some in labels[:-1]])
        made = made._replace(label=np.concatenate(labels).astype(label_dtype), label_start=start)
        return cls(made, bound_blocks(high, low, shift), shift, _rows(place, usual, label_dtype))

    def starts_from(self, usual: NDArray[Any]) -> bool:
        """Return whether the base paths are those of these labels ``(n_samples,)``."""
        return not self.rows.others.size and bool(np.array_equal(self.rows.usual, usual))

    @property
    def n_usual(self) -> int:
        """Number of rows that have a label on the base paths."""
        return len(self.rows.place) - len(self.rows.others)

    @property
    def n_paths(self) -> int:
        """Number of paths."""
        return self.rows.place.shape[1]

    @property
    def n_blocks(self) -> int:
        """Number of blocks of each path."""
        return self.table.shape[1] - 1

    @property
    def n_counters(self) -> int:
        """Number of counters of a draw."""
        return len(self.table) * self.n_blocks * LANES

    def largest_of_labels(self, labels: NDArray[Any], scale: Floats) -> Floats:
        """Return the largest standardised excursion of all paths, ``(n_replicates,)``; path k must be that of label k.

        ``labels`` have the shape (n_replicates, n_samples).
        """
        found = np.empty(len(labels))
        size = int(np.clip(_COUNTERS // self.n_counters, 1, len(labels)))
        counts = np.empty((size, self.n_counters), dtype=np.int32)
        none = np.empty(0, dtype=np.uint32), np.zeros(size + 1, dtype=np.int64), 0, self.rows.usual
        places = np.empty((len(labels), len(self.rows.others) if self.n_paths > FEW else 0), self.rows.place.dtype)
        if places.size:
            find_places(labels, self.rows, places)
        for start in range(0, len(labels), size):
            some = labels[start : start + size]
            count_block_events(some, self.rows, places[start : start + size], counts[: len(some)])
            self.read(counts[: len(some)], 0, some, none, scale=scale, largest=found[start : start + size])
        return found

    def read(
        self,
        counts: NDArray[np.int32],
        first: int,
        labels: NDArray[Any],
        departures: tuple[Any, ...],
        *,
        scale: Floats | None = None,
        largest: Floats | None = None,
        either: Floats | None = None,
        extremes: Floats | None = None,
    ) -> None:
        """Fill the values that are passed, of replicates whose blocks are counted; see `read_paths`."""
        scale, largest = (np.empty(0) if some is None else some for some in (scale, largest))
        either = np.empty((len(counts), 0)) if either is None else either
        extremes = np.empty((len(counts), 0, 3)) if extremes is None else extremes
        read = self.paths, self.table.copy(), self.shift, scale, np.empty(len(scale)), largest, either, extremes
        read_paths(counts, first, labels, departures, *read)


def _in_order(paths: Iterable[Path], n_samples: int, dtype: np.dtype[Any] | type) -> Iterator[tuple[Any, ...]]:
    """Yield paths with their orders, scores and null probabilities; some of few rows are sorted together."""
    rest, together = iter(paths), max(1, _SORTED_TOGETHER // n_samples)
    while some := list(islice(rest, together)):
        scores = np.array([path.score for path in some], dtype=dtype)
        expected = np.array([path.expected for path in some], dtype=dtype)
        yield from zip(some, stable_order(scores), scores, expected, strict=True)


def unsigned(n: int) -> np.dtype[Any]:
    """Return the type of numbers below n: one of two, so that little is compiled."""
    return np.dtype(np.uint16 if n <= 2**16 else np.uint32)


def _rows(place: NDArray[Any], usual: NDArray[Any] | None, dtype: np.dtype[Any]) -> BlockCounters:
    """Return the counter of each row in each path, and its label on the usual path."""
    n_samples = len(place)
    has_usual = np.zeros(n_samples, dtype=np.bool_) if usual is None else usual >= 0
    words = np.zeros(-(-n_samples // 64), dtype=np.uint64)
    bits = np.packbits(has_usual, bitorder="little")
    words.view(np.uint8)[: len(bits)] = bits
    labels = np.zeros(n_samples, dtype=dtype) if usual is None else np.where(has_usual, usual, 0).astype(dtype)
    return BlockCounters(place, labels, words, np.flatnonzero(~has_usual).astype(np.uint32))
