"""Values of the common statistics on one data set, all of them from predictions that are sorted once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._block_sums import block_sums, sorted_sums
from caltest._compiled._interval_sums import interval_sums
from caltest._compiled._usual import are_usual
from caltest.predictions._distances import total_variation
from caltest.predictions._equal_mass import EqualMass
from caltest.predictions._lens import LensLike
from caltest.predictions._lenses import Canonical
from caltest.predictions._partitions import Edges, EqualWidth, Intervals, resolve_n_cells
from caltest.predictions._sample import induce
from caltest.predictions._user_functions import apply_lens
from caltest.predictions._validation import FLOAT32_ROUNDING, validate_given_problem
from caltest.predictions._variance_tree import VarianceTree
from caltest.resampling._run import settle
from caltest.statistics import SquaredL2, Statistic
from caltest.statistics._binned import ECE
from caltest.statistics._classwise_cells import AuthorsCells, EntryCells, EntryStatistic, Layout, OverClasses
from caltest.statistics._cumulative import Cumulative

_PARTITIONS = (EqualWidth, EqualMass, VarianceTree, Edges, AuthorsCells)
_MOST = 2**20  # observations whose multiplicity 1 is kept from data set to data set


def is_common(statistic: Statistic, n_outcomes: int) -> bool:
    """Return whether `CommonEstimates` knows a statistic: `ECE`, `SquaredL2`, `KS`, `Kuiper`, `GCE` and its relatives.

    Those of a class of the user, of other partitions and distances, and cells of more than two outcomes are left to
    `Statistic.evaluate`.
    """
    if isinstance(statistic, OverClasses):
        own = type(statistic).evaluate is EntryStatistic.evaluate
        return own and type(statistic.layout(1).partition) in _PARTITIONS
    if n_outcomes != 2:
        return False
    if isinstance(statistic, Cumulative):
        return type(statistic).evaluate is Cumulative.evaluate
    binned = (type(statistic) is ECE and statistic.distance is total_variation) or (
        type(statistic) is SquaredL2 and statistic.estimator != "kumar"
    )
    return binned and type(statistic.partition) in _PARTITIONS


class Estimates:
    """The values of statistics through one lens, data set by data set; what they share is prepared once."""

    def __init__(self, lens: LensLike, statistics: Mapping[str, Statistic]) -> None:
        self._lens, self._statistics = lens, statistics
        self._common: dict[tuple[int, int], CommonEstimates] = {}

    def of_many(self, y_true: NDArray[np.int64], y_prob: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return values ``(n_replicates, n_statistics)`` of data sets that are known to be valid.

        ``y_true`` has shape (n_replicates, n_samples) and ``y_prob`` has shape (n_replicates, n_samples, n_classes).
        """
        names = list(self._statistics)
        if isinstance(self._lens, Canonical):
            common = self._known(*y_prob.shape[1:])
            if len(common.statistics) == len(names):
                found = common.of_many(y_prob, y_true)
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


def validated(y_true: NDArray[Any], y_prob: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
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
        fitted = [one for one in partitions if not _is_shared(one)]
        cumulative = any(isinstance(statistic, Cumulative) for statistic in statistics.values())
        self._shared = _Shared([one for one in partitions if _is_shared(one)], n_samples, cumulative)
        self._cuts = _Cuts(fitted)
        self._place = {one: (on is fitted, i) for on in (fitted, self._shared.partitions) for i, one in enumerate(on)}
        self._squared = any(isinstance(statistic, SquaredL2) for statistic in binned)
        self._alone = fitted or any(isinstance(statistic, OverClasses) for statistic in statistics.values())

    def __call__(self, prob: NDArray[np.float64], outcome: NDArray[Any]) -> dict[str, float]:
        """Return the value of each statistic on ``prob (n_samples, n_outcomes)`` and ``outcome (n_samples,)``."""
        found = self.of_many(np.ascontiguousarray(prob)[None], np.asarray(outcome, dtype=np.int64)[None])
        return {name: float(values[0]) for name, values in found.items()}

    def of_many(self, prob: NDArray[np.float64], outcome: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
        """Return the values ``(n_replicates,)`` of each statistic.

        ``prob`` has shape (n_replicates, n_samples, n_outcomes), ``outcome`` has shape (n_replicates, n_samples).
        """
        found: dict[Any, Any] = {}
        if self._shared.needed:
            sums, found["extremes"] = self._shared(prob, outcome, self._squared)
            found[False] = self._in_cells(sums[..., 0], sums[..., 1], sums[..., 2], self._shared.start)
        entries = [_Entries(*each) for each in zip(prob, outcome, strict=True)] if self._alone else []
        if self._cuts.partitions:
            each = [self._fitted(one.event) for one in entries]
            found[True] = {kind: np.array([values[kind] for values in each]) for kind in each[0]}
        return {name: self._values(statistic, entries, found) for name, statistic in self.statistics.items()}

    def _fitted(self, event: _Binary) -> dict[str, NDArray[np.float64]]:
        """Return the estimates ``(n_partitions,)`` of one data set in cells that are fitted to it."""
        sums, start = self._cuts.sums(event)
        count, predicted, events, scatter = np.ascontiguousarray(sums.T)
        return self._in_cells(count, events - predicted, scatter, start)

    def _values(self, statistic: Statistic, entries: list[_Entries], found: dict[Any, Any]) -> NDArray[np.float64]:
        if isinstance(statistic, OverClasses):
            return np.array([_entry_error(statistic, one) for one in entries])
        if isinstance(statistic, Cumulative):
            return statistic.read(*found["extremes"].T) / self._n
        kind = statistic.estimator if isinstance(statistic, SquaredL2) else "ece"
        is_fitted, place = self._place[statistic.partition]
        return cast("NDArray[np.float64]", found[is_fitted][kind][:, place])

    def _in_cells(
        self,
        count: NDArray[np.float64],
        residual: NDArray[np.float64],
        scatter: NDArray[np.float64],
        start: NDArray[np.int64],
    ) -> dict[str, NDArray[np.float64]]:
        """Return `ECE` and, where one is asked for, both kinds of `SquaredL2`, ``(..., n_partitions)``.

        Sums have shape (..., n_cells), ``scatter`` those of squared residuals; the cells of a partition begin at its
        ``start``.
        """
        if not len(start):
            return {}
        found = {"ece": np.add.reduceat(np.abs(residual), start, axis=-1) / self._n}
        if self._squared:
            excess = (np.square(residual) - scatter) * count / self._n
            for kind, less in (("unbiased", count), ("t-cal", 0.0)):
                terms = np.divide(excess, np.square(count) - less, where=count > 1, out=np.zeros(count.shape))
                found[kind] = np.add.reduceat(terms, start, axis=-1)
        return found


def _is_shared(partition: Any) -> bool:
    mass = type(partition) is EqualMass and partition.cut == "value"
    return mass or not getattr(partition, "depends_on_sample", True)


class _Shared:
    """Sums over the cells of fixed partitions and of equal mass, and cumulative residuals, of many data sets."""

    def __init__(self, partitions: Sequence[Any], n_samples: int, cumulative: bool) -> None:
        fixed = [one for one in partitions if not isinstance(one, EqualMass)]
        masses = [one for one in partitions if isinstance(one, EqualMass)]
        edges = [_open_below(one.fit(np.full((n_samples, 2), 0.5))) for one in fixed]
        self._merged = np.unique(np.concatenate([np.empty(0), *edges]))
        bounds = [np.concatenate([[0], np.searchsorted(self._merged, e) + 1, [len(self._merged) + 1]]) for e in edges]
        cells = [np.column_stack([bound[:-1], bound[1:]]) for bound in bounds]
        self._cells = np.concatenate([np.empty((0, 2), dtype=np.int64), *cells])
        n_cells = [min(resolve_n_cells(one.n_cells, n_samples), n_samples) for one in masses]
        self._n_cells = np.array(n_cells, dtype=np.int64)
        self._sorted = cumulative or bool(masses)
        self.partitions = fixed + masses
        self.needed = cumulative or bool(partitions)
        self.start = np.cumsum([0, *map(len, cells), *n_cells])[:-1]

    def __call__(
        self, prob: NDArray[np.float64], outcome: NDArray[np.int64], squared: bool
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the sums ``(n_replicates, n_cells, 3)`` of `block_sums`, and the extremes of `sorted_sums`.

        Squared residuals are only sure to be summed if ``squared``; extremes are undefined if no statistic needs them.
        """
        if self._sorted:
            keys = (prob[..., 1] + 0.0).view(np.int64)  # increasing, as no value is negative: + 0.0 makes 0 of -0
            keys <<= 1  # of a value of at most 1 the upper two bits are 0
            keys |= outcome == 1
            keys.sort(axis=1)
            return cast("tuple[Any, Any]", sorted_sums(keys, self._merged, self._cells, self._n_cells))
        # What is read-only or strided is another type for Numba.
        arrays = np.require(prob, np.float64, ["C", "W"]), np.require(outcome, np.int64, ["C", "W"])
        return block_sums(*arrays, self._merged, self._cells, squared), np.empty((len(prob), 2))


def _open_below(found: Intervals) -> NDArray[np.float64]:
    """Return edges such that a value on an edge lies above it: closed on the right, the next number is the edge."""
    edges = np.asarray(found.edges, dtype=np.float64)
    return np.nextafter(edges, np.inf) if found.closed == "right" else edges


class _Binary(NamedTuple):
    """Increasing probabilities of an event, and those of them whose event happened, increasing."""

    values: NDArray[np.float64]
    happened: NDArray[np.float64]

    @classmethod
    def of(cls, values: NDArray[np.float64], happened: NDArray[np.bool_]) -> _Binary:
        return cls(np.sort(values), np.sort(values[happened]))


@dataclass(frozen=True)
class _Entries:
    """Predictions and outcomes of a data set, and its entries, sorted when they are first needed."""

    prob: NDArray[np.float64]
    outcome: NDArray[Any]
    _sorted: dict[Any, Any] = field(default_factory=dict)

    @property
    def event(self) -> _Binary:
        """The event of two outcomes."""
        if "event" not in self._sorted:
            self._sorted["event"] = _Binary.of(np.ascontiguousarray(self.prob[:, 1]), self.outcome == 1)
        return self._sorted["event"]

    def groups(self, layout: Layout) -> list[_Binary]:
        """Return the entries of each group of a layout."""
        key = layout.max_prob, layout.class_conditional, layout.threshold
        if key not in self._sorted:
            self._sorted[key] = [
                _Binary.of(values[kept], happened[kept])
                for values, happened in self._grouped(layout)
                for kept in [np.full(len(values), True) if layout.threshold is None else values > layout.threshold]
            ]
        return self._sorted[key]

    def _grouped(self, layout: Layout) -> Iterator[tuple[NDArray[np.float64], NDArray[np.bool_]]]:
        n_samples, n_outcomes = self.prob.shape
        if layout.max_prob:
            top = self.prob.argmax(axis=1)
            values, happened = self.prob[np.arange(n_samples), top], top == self.outcome
            for k in range(n_outcomes) if layout.class_conditional else [None]:
                chosen = slice(None) if k is None else top == k
                yield values[chosen], happened[chosen]
        elif layout.class_conditional:
            for k in range(n_outcomes):
                yield np.ascontiguousarray(self.prob[:, k]), self.outcome == k
        else:
            yield self.prob.ravel(), (self.outcome[:, None] == np.arange(n_outcomes)).ravel()


def _entry_error(statistic: OverClasses, entries: _Entries) -> float:
    """Return the error over the cells of all groups, as `EntryCells` defines it."""
    layout = statistic.layout(len(entries.outcome))
    groups = entries.groups(layout)
    cuts = _Cuts([layout.partition])
    found = [cuts.sums(group)[0] if len(group.values) else np.zeros((0, 4)) for group in groups]
    count, expected, events, _ = np.concatenate(found).T
    importance = layout.importance(count, np.repeat(np.arange(len(found)), [len(part) for part in found]), len(found))
    return float(EntryCells(np.empty(0), count, expected, importance).error(events, statistic.power))


class _Cuts:
    """Partitions of one probability, fitted to every data set."""

    def __init__(self, partitions: Sequence[Any]) -> None:
        self.partitions = partitions

    def sums(self, binary: _Binary) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the sums ``(n_cells, 4)`` of `interval_sums` and the first cell of each partition."""
        arranged = _arranged([_intervals(partition, binary.values) for partition in self.partitions])
        return interval_sums(*binary, *arranged[:-1]), arranged[-1]


def _arranged(intervals: Sequence[Intervals]) -> tuple[NDArray[Any], ...]:
    """Return edges, first edges and closed ends as the kernel takes them, and the first cell of each partition."""
    edges = np.concatenate([each.edges for each in intervals])
    first = np.cumsum([0, *(len(each.edges) for each in intervals)])
    right = np.array([each.closed == "right" for each in intervals])
    return edges, first, right, first[:-1] + np.arange(len(intervals))


def _intervals(partition: Any, values: NDArray[np.float64]) -> Intervals:
    """Fit a partition to increasing values."""
    if getattr(partition, "refits", False):
        starts = np.unique(partition.refit(values, _once(len(values))))
        return Intervals(np.unique(values[starts[(starts > 0) & (starts < len(values))]]))
    found = partition.fit(np.broadcast_to(values[:, None], (len(values), 2)))  # it reads the second column alone
    return Intervals(np.asarray(found.edges, dtype=np.float64), found.closed)


def _once(n_samples: int) -> NDArray[np.uint16]:
    """Return the multiplicities of a data set that is no resample."""
    return np.ones((1, n_samples), dtype=np.uint16) if n_samples > _MOST else _kept_ones(n_samples)


@lru_cache(maxsize=16)
def _kept_ones(n_samples: int) -> NDArray[np.uint16]:
    return np.ones((1, n_samples), dtype=np.uint16)
