"""Sums over the cells of many partitions of one probability, of many data sets that are sorted once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._block_sums import sorted_sums
from caltest._compiled._cell_starts import equal_mass_starts, rank_starts
from caltest.predictions._equal_mass import EqualMass
from caltest.predictions._partitions import Edges, EqualWidth, Intervals, resolve_n_cells
from caltest.predictions._variance_tree import VarianceTree
from caltest.statistics._classwise_cells import AuthorsCells


class Rows(NamedTuple):
    """Sorted entries of many groups, as `sorted_sums` takes them; those before ``first`` do not count."""

    keys: NDArray[np.int64]
    values: NDArray[np.float64]
    first: NDArray[np.int64]

    @classmethod
    def of(
        cls, values: NDArray[np.float64], happened: NDArray[np.bool_], counts: NDArray[np.bool_] | None = None
    ) -> Rows:
        """Return rows of entries ``(n_rows, n_entries)``; by default all of them count."""
        # Bits of floats increase, as none is negative: + 0.0 makes 0 of -0. Of a value below 2 the upper two are 0.
        keys = np.add(values, 0.0, dtype=np.float64).view(np.int64)
        keys <<= 1
        keys |= happened
        first = np.zeros(len(keys), dtype=np.int64)
        if counts is not None:
            keys[~counts] = -1
            first += keys.shape[1] - np.count_nonzero(counts, axis=1)
        keys.sort(axis=1)
        return cls(keys, (keys >> 1).view(np.float64), first)


class Cells:
    """The cells of partitions of one probability: those with fixed edges first, then those that depend on the data."""

    def __init__(self, partitions: Sequence[Any], n_entries: int) -> None:
        fixed = [one for one in partitions if is_fixed(one)]
        self.fitted = [one for one in partitions if not is_fixed(one)]
        self.partitions = fixed + self.fitted
        edges = [_open_below(one.fit(np.full((n_entries, 2), 0.5))) for one in fixed]
        self.merged = np.unique(np.concatenate([np.empty(0), *edges]))
        places = [np.concatenate([[0], np.searchsorted(self.merged, e) + 1, [len(self.merged) + 1]]) for e in edges]
        self.bounds, self.start = _pairs(places)
        self._known: dict[tuple[int, ...], tuple[NDArray[np.int64], NDArray[np.int64]]] = {}

    def sums(self, rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
        """Return sums and extremes as `sorted_sums`, and the first cell of each partition."""
        starts = [_starts(partition, rows) for partition in self.fitted]
        own = np.concatenate(starts, axis=1) if starts else np.empty((len(rows.keys), 0), dtype=np.int64)
        bounds, start = self._all(tuple(one.shape[1] for one in starts))
        return *sorted_sums(*rows, self.merged, own, bounds), start

    def _all(self, sizes: tuple[int, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the bounds of all cells, given the numbers of bounds that depend on the data, and the first cells."""
        if sizes not in self._known:
            ends = np.cumsum([len(self.merged) + 2, *sizes])
            bounds, start = _pairs([np.arange(*both) for both in pairwise(ends)])
            together = np.concatenate([self.bounds, bounds]), np.concatenate([self.start, start + len(self.bounds)])
            self._known[sizes] = together
        return self._known[sizes]


def _pairs(places: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return lower and upper bounds of consecutive cells, ``(n_cells, 2)``, and the first cell of each sequence."""
    bounds = np.concatenate([np.empty((0, 2), np.int64), *(np.column_stack([one[:-1], one[1:]]) for one in places)])
    return bounds, np.cumsum([0, *(len(one) - 1 for one in places)])[:-1]


def is_fixed(partition: Any) -> bool:
    """Return whether the edges of a partition are the same for all data sets of one size."""
    if isinstance(partition, AuthorsCells):
        return partition.scheme == "equal-width"
    return type(partition) in (EqualWidth, Edges)


def has_equal_mass(partition: Any) -> bool:
    """Return whether the cells of a partition are cut at values into equal numbers of observations."""
    return type(partition) is EqualMass and partition.cut == "value"


def _open_below(found: Intervals) -> NDArray[np.float64]:
    """Return edges such that a value on an edge lies above it: closed on the right, the next number is the edge."""
    edges = np.asarray(found.edges, dtype=np.float64)
    return np.nextafter(edges, np.inf) if found.closed == "right" else edges


def _starts(partition: Any, rows: Rows) -> NDArray[np.int64]:
    """Return where the cells of every row begin, and the end of the row, ``(n_rows, n_cells + 1)``."""
    n_entries = rows.values.shape[1]
    if isinstance(partition, AuthorsCells):
        return rank_starts(rows.values, rows.first, partition.n_cells)
    if has_equal_mass(partition):
        n_cells = min(resolve_n_cells(partition.n_cells, n_entries), n_entries)
        return equal_mass_starts(rows.values, rows.first, n_cells)
    if isinstance(partition, VarianceTree) and partition.refits:
        return partition.starts(rows.values)
    found = []
    for values in rows.values:
        fitted = partition.fit(np.broadcast_to(values[:, None], (n_entries, 2)))  # it reads the second column alone
        found.append(np.concatenate([[0], np.searchsorted(values, _open_below(fitted)), [n_entries]]))
    width = max(map(len, found))
    return np.stack([np.pad(one, (0, width - len(one)), constant_values=n_entries) for one in found])
