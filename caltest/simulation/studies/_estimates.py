"""Values of the common statistics on many data sets, all of them from predictions that are sorted once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._block_sums import block_sums, equal_mass_starts, rank_starts, sorted_sums
from caltest._compiled._usual import are_usual
from caltest.predictions._arrays import Booleans, Floats, Integers
from caltest.predictions._distances import total_variation
from caltest.predictions._lens import LensLike
from caltest.predictions._lenses import Canonical, ClassGroups, ClassWise, Confidence, TopK, TopRank, WithinTop
from caltest.predictions._sample import induce
from caltest.predictions._user_functions import apply_lens
from caltest.predictions.cells._order import TIED_FLOAT32, stable_order, with_ties
from caltest.predictions.cells._partitions import Edges, EqualWidth, Intervals, resolve_n_cells
from caltest.predictions.cells._quantiles import EqualMass
from caltest.predictions.cells._trees import VarianceTree
from caltest.predictions.inputs._validation import FLOAT32_ROUNDING, validate_given_problem
from caltest.resampling.engine._run import settle
from caltest.statistics import SquaredL2, Statistic
from caltest.statistics._binned import ECE
from caltest.statistics._classwise_cells import AuthorsCells, EntryCells, EntryStatistic, Layout, OverClasses
from caltest.statistics._cumulative import Cumulative


class Rows(NamedTuple):
    """Sorted entries of many groups, as `sorted_sums` takes them; those before ``first`` do not count."""

    keys: Integers
    values: Floats
    first: Integers

    @classmethod
    def of(cls, values: Floats, happened: Booleans, counts: Booleans | None = None) -> Rows:
        """Return rows of entries ``(n_rows, n_entries)``; by default all of them count."""
        # Bits of floats increase, as none is negative: + 0.0 makes 0 of -0. Of a value below 2 the upper two are 0.
        keys = np.add(values, 0.0, dtype=np.float64, order="C").view(np.int64)
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
        self._known: dict[tuple[int, ...], tuple[Integers, Integers]] = {}

    def sums(self, rows: Rows) -> tuple[Floats, Floats, Integers]:
        """Return sums and extremes as `sorted_sums`, and the first cell of each partition."""
        starts = [_starts(partition, rows) for partition in self.fitted]
        own = np.concatenate(starts, axis=1) if starts else np.empty((len(rows.keys), 0), dtype=np.int64)
        bounds, start = self._all(tuple(one.shape[1] for one in starts))
        return *sorted_sums(*rows, self.merged, own, bounds), start

    def _all(self, sizes: tuple[int, ...]) -> tuple[Integers, Integers]:
        """Return the bounds of all cells, given the numbers of bounds that depend on the data, and the first cells."""
        if sizes not in self._known:
            ends = np.cumsum([len(self.merged) + 2, *sizes])
            bounds, start = _pairs([np.arange(*both) for both in pairwise(ends)])
            together = np.concatenate([self.bounds, bounds]), np.concatenate([self.start, start + len(self.bounds)])
            self._known[sizes] = together
        return self._known[sizes]


def _pairs(places: Sequence[Integers]) -> tuple[Integers, Integers]:
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


def _open_below(found: Intervals) -> Floats:
    """Return edges such that a value on an edge lies above it: closed on the right, the next number is the edge."""
    edges = np.asarray(found.edges, dtype=np.float64)
    return np.nextafter(edges, np.inf) if found.closed == "right" else edges


def _starts(partition: Any, rows: Rows) -> Integers:
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
    width = max(n_entries + 1, *map(len, found))  # as many for all data sets: rounding must not depend on the others
    return np.stack([np.pad(one, (0, width - len(one)), constant_values=n_entries) for one in found])


_FIRST = 2**8  # of 10,000 different predictions, so many have two that are equal in 96 % of data sets
_PARTITIONS = (EqualWidth, EqualMass, VarianceTree, Edges)
_BY_ROW = (Canonical, Confidence, ClassWise, ClassGroups, TopK, TopRank, WithinTop)
"""Lenses that look at one observation at a time."""


def is_common(statistic: Statistic, n_outcomes: int) -> bool:
    """Return whether `CommonEstimates` knows a statistic: `ECE`, `SquaredL2`, `KS`, `Kuiper`, `GCE` and its relatives.

    Those of a class of the user, of other partitions and distances, and cells of more than two outcomes are left to
    `Statistic.evaluate`.
    """
    if isinstance(statistic, OverClasses):
        cells = statistic.layout(1).partition
        counted = isinstance(getattr(cells, "n_cells", 1), int)  # the same number for groups of any size
        known = is_fixed(cells) or isinstance(cells, AuthorsCells) or has_equal_mass(cells)
        return type(statistic).evaluate is EntryStatistic.evaluate and counted and known
    if n_outcomes != 2:
        return False
    if isinstance(statistic, Cumulative):
        return type(statistic).evaluate is Cumulative.evaluate and statistic.scale_weight is None
    binned = (type(statistic) is ECE and statistic.distance is total_variation and statistic.scale_weight is None) or (
        type(statistic) is SquaredL2 and statistic.estimator != "kumar"
    )
    return binned and type(statistic.partition) in _PARTITIONS


class Estimates:
    """The values of statistics through one lens, data set by data set; what they share is prepared once."""

    def __init__(self, lens: LensLike, statistics: Mapping[str, Statistic]) -> None:
        self._lens, self._statistics = lens, statistics
        self._common: dict[tuple[int, int], CommonEstimates] = {}

    def of_many(self, y_true: Integers, y_prob: Floats) -> Floats:
        """Return values ``(n_replicates, n_statistics)`` of data sets that are known to be valid.

        ``y_true`` has shape (n_replicates, n_samples) and ``y_prob`` has shape (n_replicates, n_samples, n_classes).
        """
        names, size = list(self._statistics), y_true.shape
        if type(self._lens) in _BY_ROW:
            prob, outcome = y_prob, y_true
            if not isinstance(self._lens, Canonical):
                prob, outcome = apply_lens(self._lens, y_prob.reshape(-1, y_prob.shape[2]), y_true.ravel())
            common = self._known(size[1], prob.shape[-1])
            if len(common.statistics) == len(names):
                found = common.of_many(prob.reshape(*size, -1), outcome.reshape(size))
                return np.stack([found[name] for name in names], axis=1)
        # A statistic or lens of the user may keep what it gets, and these arrays are filled again.
        each = [self(labels.copy(), prob.copy()) for labels, prob in zip(y_true, y_prob, strict=True)]
        return np.array([[values[name] for name in names] for values in each])

    def __call__(self, y_true: NDArray[Any], y_prob: NDArray[Any]) -> dict[str, float]:
        """Return the value of each statistic on labels ``(n_samples,)`` and predictions ``(n_samples, n_classes)``."""
        prob, outcome = validated(y_true, y_prob)
        if not isinstance(self._lens, Canonical):
            prob, outcome = apply_lens(self._lens, prob, outcome)
        values = self._known(*prob.shape)(prob.astype(np.float64, copy=False), outcome)
        if len(values) < len(self._statistics):
            sample = induce(prob, outcome)
            for name, statistic in self._statistics.items():
                if name not in values:
                    values[name] = float(settle(statistic, sample).evaluate(sample, sample.outcome))
        return values

    def _known(self, n_samples: int, n_outcomes: int) -> CommonEstimates:
        if (n_samples, n_outcomes) not in self._common:
            common = {name: one for name, one in self._statistics.items() if is_common(one, n_outcomes)}
            self._common[n_samples, n_outcomes] = CommonEstimates(common, n_samples)
        return self._common[n_samples, n_outcomes]


def validated(y_true: NDArray[Any], y_prob: NDArray[Any]) -> tuple[NDArray[Any], Integers]:
    """Return predictions ``(n_samples, n_classes)`` and labels ``(n_samples,)``, as public functions take them."""
    if isinstance(y_prob, np.ndarray) and y_prob.ndim == 2 and y_prob.shape[1] > 1 and y_prob.dtype == np.float64:
        prob, outcome = np.ascontiguousarray(y_prob), np.asarray(y_true)
        if outcome.dtype == np.int64 and outcome.ndim == 1 and outcome.flags.c_contiguous:
            writable = prob.flags.writeable and outcome.flags.writeable  # a read-only array is another type for Numba
            if writable and are_usual(prob, outcome, FLOAT32_ROUNDING * prob.shape[1]):
                return prob, outcome
    return validate_given_problem(y_true, y_prob)  # refuses it in words, or normalises rows


class CommonEstimates:
    """The values of statistics that `is_common` knows, those of `Statistic.evaluate` to rounding."""

    def __init__(self, statistics: Mapping[str, Statistic], n_samples: int) -> None:
        self.statistics, self._n = statistics, n_samples
        binned = [statistic for statistic in statistics.values() if isinstance(statistic, ECE | SquaredL2)]
        partitions = list(dict.fromkeys(one.partition for one in binned))
        self._cells = Cells(partitions, n_samples)
        self._groups = _Groups([one.layout(n_samples) for one in statistics.values() if isinstance(one, OverClasses)])
        self._place = {partition: i for i, partition in enumerate(self._cells.partitions)}
        self._squared = any(isinstance(statistic, SquaredL2) for statistic in binned)
        cumulative = any(isinstance(statistic, Cumulative) for statistic in statistics.values())
        self._sorted = cumulative or bool(self._cells.fitted)
        self._needed = cumulative or bool(binned)

    def __call__(self, prob: Floats, outcome: NDArray[Any]) -> dict[str, float]:
        """Return the value of each statistic on ``prob (n_samples, n_outcomes)`` and ``outcome (n_samples,)``."""
        found = self.of_many(np.ascontiguousarray(prob)[None], np.asarray(outcome, dtype=np.int64)[None])
        return {name: float(values[0]) for name, values in found.items()}

    def of_many(self, prob: Floats, outcome: Integers) -> dict[str, Floats]:
        """Return the values ``(n_replicates,)`` of each statistic.

        ``prob`` has shape (n_replicates, n_samples, n_outcomes), ``outcome`` has shape (n_replicates, n_samples).
        """
        if prob.shape[2] == 2:
            prob = _with_ties(prob)
        binned, extremes = self._of_event(prob, outcome) if self._needed else ({}, np.empty((len(prob), 2)))
        groups = self._groups.sums(prob, outcome)

        def value(statistic: Statistic) -> Floats:
            if isinstance(statistic, OverClasses):
                layout = statistic.layout(self._n)
                return _over_classes(layout, groups[layout], statistic.power)
            if isinstance(statistic, Cumulative):
                return statistic.read(*extremes.T) / self._n
            kind = statistic.estimator if isinstance(statistic, SquaredL2) else "ece"
            return binned[kind][:, self._place[statistic.partition]]

        return {name: value(statistic) for name, statistic in self.statistics.items()}

    def _of_event(self, prob: Floats, outcome: Integers) -> tuple[dict[str, Floats], Floats]:
        """Return the errors in cells ``(n_replicates, n_partitions)`` by name, and the extremes of `sorted_sums`."""
        if self._sorted:
            sums, extremes, start = self._cells.sums(Rows.of(prob[..., 1], outcome == 1))
        else:
            # What is read-only or strided is another type for Numba.
            arrays = np.require(prob, np.float64, ["C", "W"]), np.require(outcome, np.int64, ["C", "W"])
            sums = block_sums(*arrays, self._cells.merged, self._cells.bounds, self._squared)
            start, extremes = self._cells.start, np.empty((len(prob), 2))
        if not len(start):
            return {}, extremes
        count, residual, scatter = sums[..., 0], sums[..., 1], sums[..., 2]
        found = {"ece": np.add.reduceat(np.abs(residual), start, axis=-1) / self._n}
        if self._squared:
            excess = (np.square(residual) - scatter) * count / self._n
            for kind, less in (("unbiased", count), ("t-cal", 0.0)):
                terms = np.divide(excess, np.square(count) - less, where=count > 1, out=np.zeros(count.shape))
                found[kind] = np.add.reduceat(terms, start, axis=-1)
        return found, extremes


def _with_ties(prob: Floats) -> Floats:
    """Return two columns ``(n_replicates, n_samples, 2)`` whose events are tied where a sample has them tied.

    Data sets whose first events all differ by more than rounding come from a model without ties, and are not sorted.
    """
    some = (np.diff(np.sort(prob[:, :_FIRST, 1], axis=1), axis=1) <= TIED_FLOAT32).any(axis=1)
    if some.any():
        prob = prob.copy()
        for one in (prob[r] for r in np.flatnonzero(some)):
            order = stable_order(one[:, 1])
            one[order] = with_ties(one[order])
    return prob


class _Groups:
    """The cells of errors over classes; layouts with the same groups share a pass."""

    def __init__(self, layouts: Sequence[Layout]) -> None:
        self._alike: dict[Any, list[Layout]] = {}
        for layout in dict.fromkeys(layouts):
            key = layout.max_prob, layout.class_conditional, layout.threshold
            self._alike.setdefault(key, []).append(layout)
        # Their numbers of cells are given, so that one entry is as good as any number of them.
        self._cells = {
            key: Cells(list(dict.fromkeys(one.partition for one in alike)), 1) for key, alike in self._alike.items()
        }

    def sums(self, prob: Floats, outcome: Integers) -> dict[Layout, Floats]:
        """Return the sums ``(n_replicates, n_groups, n_cells, 3)`` over the cells of each layout."""
        found: dict[Layout, Floats] = {}
        for key, alike in self._alike.items():
            cells = self._cells[key]
            sums, _, start = cells.sums(_rows_of_groups(alike[0], prob, outcome))
            parts = np.split(sums.reshape(len(prob), -1, *sums.shape[1:]), start[1:], axis=2)
            of = dict(zip(cells.partitions, parts, strict=True))
            found |= {layout: of[layout.partition] for layout in alike}
        return found


def _rows_of_groups(layout: Layout, prob: Floats, outcome: Integers) -> Rows:
    """Return the entries of each group of a layout, in the rows of one data set after those of another."""
    classes = np.arange(prob.shape[2])[:, None]
    counts = None
    if layout.max_prob:
        top = prob.argmax(axis=2)
        values = np.take_along_axis(prob, top[..., None], axis=2).transpose(0, 2, 1)
        happened = (top == outcome)[:, None]
        if layout.class_conditional:
            counts = top[:, None] == classes
            values, happened = (np.broadcast_to(one, counts.shape) for one in (values, happened))
    else:
        values, happened = prob.transpose(0, 2, 1), outcome[:, None] == classes
    if layout.threshold is not None:
        above = values > layout.threshold
        counts = above if counts is None else counts & above
    shape = len(prob) * (prob.shape[2] if layout.class_conditional else 1), -1
    return Rows.of(values.reshape(shape), happened.reshape(shape), None if counts is None else counts.reshape(shape))


def _over_classes(layout: Layout, sums: Floats, power: int) -> Floats:
    """Return the error ``(n_replicates,)`` over the cells of all groups, as `EntryCells` defines it."""
    count, residual = (np.ascontiguousarray(sums[..., place]) for place in (0, 1))
    importance = layout.importance(count)
    flat = [one.reshape(len(sums), -1) for one in (count, residual, importance)]
    return EntryCells(np.empty(0), flat[0], np.zeros(1), flat[2]).error(flat[1], power)
