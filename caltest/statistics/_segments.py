"""Observations in segments, a group in a cell each: their residual sums, and lists of the labels that surprise."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._signs import Layout
from caltest.predictions._arrays import Booleans, Floats, Integers
from caltest.predictions._sample import Sample
from caltest.predictions.cells._cells import cells_of
from caltest.predictions.cells._trees import VarianceTree
from caltest.predictions.inputs._parts import effective_numbers, sums_in_parts
from caltest.statistics._base import Statistic
from caltest.statistics._squared_l2_distribution import squared_norms
from caltest.statistics._windows import Windows


@dataclass(frozen=True, eq=False)
class Surprises:
    """The observations of each replicate whose outcome is not the usual one.

    Attributes
    ----------
    place : array of shape (n_surprises,)
        Places of the observations in the sample, replicate by replicate.
    end : array of shape (n_replicates + 1,)
        The surprises of replicate r are those from ``end[r]`` to ``end[r + 1]``.
    """

    place: Integers
    end: Integers

    @classmethod
    def of(cls, surprise: NDArray[np.uint8]) -> Surprises:
        """List the surprises ``(n_replicates, n_samples)``, which are 1, the others 0."""
        n_replicates, n = surprise.shape
        found = np.flatnonzero(surprise.view(bool))
        end = np.searchsorted(found, np.arange(n_replicates + 1) * n)
        found -= np.repeat(np.arange(n_replicates) * n, np.diff(end))
        return cls(found, end)

    @classmethod
    def of_unsorted(cls, sample: Sample, happened: Booleans) -> Surprises:
        """List the surprises of whether the event happened, in the order of the caller's rows ``sample.row``."""
        place, expected = sample.once(_unsorted)
        listed = cls.of((happened != expected).view(np.uint8))
        return cls(place[listed.place], listed.end)


def _unsorted(sample: Sample) -> tuple[Integers, Booleans]:
    """Return the place of each row of the caller, and whether the event is usual there; for `Sample.once`."""
    place, expected = np.empty(sample.n_samples, dtype=np.int64), np.empty(sample.n_samples, dtype=bool)
    place[sample.row], expected[sample.row] = np.arange(sample.n_samples), sample.once(usual)
    return place, expected


class SurpriseStatistic(Statistic):
    """Base class of statistics that are faster from lists of surprises, where these are few."""

    @abstractmethod
    def needs_surprises(self, sample: Sample) -> bool:
        """Return whether surprises suffice and are faster, from the predictions alone."""

    @abstractmethod
    def evaluate_surprises(self, sample: Sample, listed: Surprises) -> Floats:
        """Return the statistic ``(n_replicates,)`` of surprises."""


_FEW_SHARE = 0.05  # of the weight, that may lie in cells of few groups
_EQUAL = 1e-12  # residuals that differ less from the mean of their cell are equal to it
_TOGETHER = 2**20  # sums of draws
_NOISE = 2**22  # random numbers of draws
_TABLE = 2**22  # entries of groups and cells


def usual(sample: Sample) -> NDArray[np.uint8]:
    """Return the more probable outcome of each observation, ``(n_samples,)``."""
    return (sample.null_prob[:, 1] > 0.5).astype(np.uint8)


def sign(usual: NDArray[np.uint8]) -> NDArray[Any]:
    """Return what a surprise adds to the number of events, ``(n_samples,)``: -1 where the event is usual, else 1."""
    return 1.0 - 2.0 * usual


def surprises(sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.uint8]:
    """Return 1 where an outcome ``(..., n_samples)`` is a surprise, else 0, with shape ``(n_replicates, n_samples)``.

    Sums of events are sums of signed surprises plus a constant; a sharp model leaves few surprises to sum.
    """
    return np.atleast_2d(outcomes).reshape(-1, sample.n_samples) ^ sample.once(usual)


def rare_outcomes(outcome: NDArray[np.integer], prob: Floats, cell: NDArray[np.integer]) -> int:
    """Return how many labels show that labels vary: those that are not the usual one of their cell and prediction.

    The usual label is the most frequent one among the observations of a cell with the same most probable outcome, and
    of a single one this outcome. Of several classes in a cell, labels differ that all are as predicted.
    """
    n_outcomes, top = prob.shape[1], prob.argmax(axis=1)
    _, place, size = np.unique(cell * n_outcomes + top, return_inverse=True, return_counts=True)
    number = np.bincount(place * n_outcomes + outcome, minlength=len(size) * n_outcomes).reshape(-1, n_outcomes)
    alone = (size[place] == 1) & (outcome != top)
    return int((size - number.max(axis=1)).sum() + np.count_nonzero(alone))


FEWEST_GROUPS = 5
"""Fewer effective groups show nothing of how much groups differ."""
LARGEST_SHARE = 0.99
"""Most that the sum of squared shares of a cell counts where a variance is corrected for the mean."""


@dataclass(frozen=True, eq=False)
class GroupsInCells:
    """Base class of sums over groups in cells; an entry is a group in a cell. Entries are sorted by group.

    Attributes
    ----------
    group, place, mass : arrays of shape (n_entries,)
        Group, from 0 without gaps, cell and weight of each entry.
    """

    group: Integers
    place: Integers
    mass: Floats

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(self.group[-1]) + 1

    @cached_property
    def count(self) -> Floats:
        """Weight of each cell, ``(n_cells,)``."""
        return sums_in_parts(self.place, self.mass, int(self.place.max()) + 1)

    @cached_property
    def factor(self) -> Floats:
        """The factor of the pairs of each cell; 0 in a cell of a single group."""
        pairs = np.square(self.count) - np.bincount(self.place, np.square(self.mass))
        several = np.bincount(self.place) > 1
        return np.divide(self.count, pairs, out=np.zeros_like(self.count), where=several)

    @cached_property
    def lever(self) -> Floats:
        """One over the root of one minus the share of each entry in its cell; 0 in a cell of a single group."""
        share = self.mass / self.count[self.place]
        known = self.factor[self.place] > 0
        return np.where(known, 1 / np.sqrt(np.where(known, 1 - share, 1.0)), 0.0)


@dataclass(frozen=True, eq=False)
class Segments(GroupsInCells):
    """Observations of the cells that are known, sorted by group, cell and prediction; a segment is an entry.

    Attributes
    ----------
    prob, outcome : arrays of shape (n_samples, n_outcomes), (n_samples,)
        Predictions and labels; of two outcomes the rarer one first.
    weight, cell : arrays of shape (n_samples,)
        Weight and cell.
    start : array of shape (n_segments + 1,)
        First observation of each segment.
    """

    prob: Floats
    outcome: Integers
    weight: Floats
    cell: Integers
    start: Integers

    @classmethod
    def of(cls, prob: Floats, outcome: Integers, weight: Floats, group: Integers | None, cell: Integers) -> Segments:
        """Sort observations and sum over segments and cells; without groups each observation is one."""
        cell = np.unique(cell, return_inverse=True)[1]
        n_cells, n_outcomes = int(cell.max()) + 1, prob.shape[1]
        mean = weight @ prob
        classes = np.argsort(mean if n_outcomes == 2 else -mean, kind="stable")
        prob, outcome = prob[:, classes], np.argsort(classes)[outcome]
        # Which observation takes which random number depends neither on the order of the caller nor on that of classes
        # or cells: observations are sorted by prediction, and equal ones of a group may be exchanged.
        value = prob @ np.sqrt(np.arange(1.0, n_outcomes + 1))
        middle = np.bincount(cell, value, n_cells) / np.bincount(cell, minlength=n_cells)
        cell = np.argsort(np.argsort(middle, kind="stable"), kind="stable")[cell]
        if group is None:
            order = np.lexsort((outcome, weight, value, cell))
            group = np.arange(len(order))
        else:
            order = np.lexsort((outcome, weight, value, cell, group))
            group = np.unique(group[order], return_inverse=True)[1]
        prob, outcome, weight, cell = prob[order], outcome[order], weight[order], cell[order]
        first = np.append(True, (np.diff(group) > 0) | (np.diff(cell) > 0) | (np.diff(cell) < 0))
        start = np.append(np.flatnonzero(first), len(weight))
        mass = np.add.reduceat(weight, start[:-1])
        return cls(group[first], cell[first], mass, prob, outcome, weight, cell, start)

    @cached_property
    def square(self) -> Floats:
        """Sum of the squared weights of each cell."""
        return sums_in_parts(self.cell, np.square(self.weight), len(self.count))

    @cached_property
    def keep(self) -> Floats:
        """The factor of the variance of each cell."""
        return 1 / (1 - np.minimum(self.square / np.square(self.count), LARGEST_SHARE))

    @property
    def n_columns(self) -> int:
        """Number of outcomes that count: 1 of two."""
        return 1 if self.prob.shape[1] == 2 else self.prob.shape[1]

    @cached_property
    def columns(self) -> Floats:
        """Predictions of the outcomes that count, ``(n_samples, n_columns)``."""
        return np.ascontiguousarray(self.prob[:, : self.n_columns])

    @cached_property
    def group_start(self) -> Integers:
        """First segment of each group, ``(n_groups + 1,)``."""
        return np.append(np.flatnonzero(np.append(True, np.diff(self.group) > 0)), len(self.group))

    @cached_property
    def layout(self) -> Layout:
        """What kernels take of the segments and cells."""
        n_cells, width = len(self.count), self.lever * self.mass
        if n_cells * self.n_groups <= _TABLE:
            of_group = np.zeros((self.n_groups, n_cells))
            of_group[self.group, self.place] = width
            table = of_group.T @ of_group
        else:
            from scipy.sparse import csr_array

            some = csr_array((width, (self.group, self.place)), shape=(self.n_groups, n_cells))
            table = (some.T @ some).toarray()
        predicted = self.by_segment(self.weight[:, None] * self.columns)
        return Layout(
            self.start,
            self.group_start,
            self.place,
            self.lever,
            width,
            self.mass,
            self.count,
            self.factor,
            table,
            predicted,
        )

    @cached_property
    def total(self) -> float:
        """Weight of all observations."""
        return float(self.count.sum())

    @property
    def draws_together(self) -> int:
        """Number of draws whose noise and sums are held in memory."""
        of_sums = max(1, _TOGETHER // (len(self.count) * self.n_columns))
        return min(32, of_sums, max(8, _NOISE // len(self.weight)))

    @property
    def grouped(self) -> bool:
        """Whether some group has several observations."""
        return self.n_groups < len(self.weight)

    def by_cell(self, values: Floats) -> Floats:
        """Return the weighted sums ``(n_cells, n)`` of values ``(n_samples, n)``."""
        return sums_by_cell(self.cell, self.weight[:, None] * values, len(self.count))

    def by_segment(self, values: Floats) -> Floats:
        """Return the sums ``(n_segments, n)`` of values ``(n_samples, n)``."""
        return np.add.reduceat(values, self.start[:-1], axis=0)

    def squared_error(self, mean: Floats) -> float:
        """Return the squared l2 error of mean residuals ``(n_cells, n_outcomes)``."""
        return float(self.count @ np.square(mean[:, : self.n_columns]).sum(axis=1)) / self.total


@dataclass(frozen=True, eq=False)
class ResidualSums:
    """What the labels show.

    Attributes
    ----------
    value : float
        T.
    inflation : float
        Variance of the centred sums of groups over that of independent observations; 0 if residuals do not vary.
    varies : bool
        Whether labels of the same most probable outcome vary in some cell. If they do not, nothing is seen of how they
        depend on each other.
    mean : array of shape (n_cells, n_columns)
        Mean residual of each cell.
    sums, centred : arrays of shape (n_segments, n_columns)
        Sums of the residuals of segments, and those minus the means of their cells, corrected for their shares.
    """

    value: float
    inflation: float
    varies: bool
    mean: Floats
    sums: Floats
    centred: Floats

    @classmethod
    def of(cls, segments: Segments) -> ResidualSums:
        """Sum over the residuals of the observations."""
        error = (segments.outcome[:, None] == np.arange(segments.n_columns)) - segments.columns
        sums = segments.by_segment(segments.weight[:, None] * error)
        whole = segments.by_cell(error)
        lengths = np.bincount(segments.place, np.square(sums).sum(axis=1), len(segments.count))
        value = float(segments.factor @ (np.square(whole).sum(axis=1) - lengths)) / segments.total
        mean = whole / segments.count[:, None]
        deviation = error - mean[segments.cell]
        deviation[np.abs(deviation) < _EQUAL] = 0.0  # rounding would decide how much groups of equal residuals vary
        weighted = segments.weight[:, None] * deviation
        centred = segments.by_segment(weighted) * segments.lever[:, None]
        between = float(np.square(np.add.reduceat(centred, segments.group_start[:-1], axis=0)).sum())
        own = np.square(weighted).sum(axis=1)
        independent = float(segments.keep @ np.bincount(segments.cell, own, len(segments.count)))
        varies = rare_outcomes(segments.outcome, segments.prob, segments.cell) > 0
        return cls(value, between / independent if independent > 0 else 0.0, varies, mean, sums, centred)

    def third_moment(self, segments: Segments) -> float:
        r"""Return how far T is from what normal sums of the cells give: a standardised third moment, 0 at the limit.

        With the second and third moments :math:`v_b = \sum_g E|R_{gb}|^2` and :math:`t_b = \sum_g E|R_{gb}|^3` of the
        sums of groups, and the factors c of T, it is the largest of :math:`(\sum_b c_b^2 t_b^2 / v_b)^{1/2} / (\sum_b
        c_b^2 v_b^2)^{1/2}` and :math:`\sum_b |\mu_b|^3 t_b / (\sum_b |\mu_b|^2 v_b)^{3/2}`, where all mean residuals
        :math:`\mu` are alike or are those of the labels. Moments are those of the observed sums and those of
        independent labels that follow the predictions, with the observed inflation. It is infinite if nothing varies.
        """
        n_cells = len(segments.count)
        squared = np.square(self.centred).sum(axis=1)
        second, third = np.zeros((2, len(segments.weight)))
        length = np.square(segments.prob).sum(axis=1)
        for p in segments.prob.T:  # if this outcome happens
            gap = np.maximum(1 - 2 * p + length, 0.0)
            second += p * gap
            third += p * gap**1.5
        weight, ratio = segments.weight, max(self.inflation, 1.0)
        shift = np.sqrt(np.square(self.mean).sum(axis=1))
        found = []
        for v, t in (
            [np.bincount(segments.place, squared**power, n_cells) for power in (1, 1.5)],
            (
                ratio * np.bincount(segments.cell, weight**2 * second, n_cells),
                ratio**2 * np.bincount(segments.cell, weight**3 * third, n_cells),
            ),
        ):
            if not v.any():
                return math.inf
            own = np.divide(np.square(t), v, out=np.zeros(n_cells), where=v > 0)
            squares = np.square(segments.factor)
            found.append(math.sqrt(squares @ own / (squares @ np.square(v))))
            found += [float(m**3 @ t / (m**2 @ v) ** 1.5) for m in (np.ones(n_cells), shift) if m**2 @ v > 0]
        return max(found)


def sums_by_cell(cell: Integers, values: Floats, n_cells: int) -> Floats:
    """Return the sums ``(n_cells, n_columns)`` of values ``(n_values, n_columns)``."""
    return np.column_stack([np.bincount(cell, column, n_cells) for column in values.T])


def cells_of_groups(sample: Sample) -> VarianceTree:
    """Return the default cells: as many as usual, or fewer, such that nearly all cells are worth five groups.

    Groups that are alone in a cell show nothing of its error.
    """
    partition = VarianceTree()
    wanted = partition.wanted_cells(sample.n_samples)
    while True:
        cells = cells_of(sample, partition)
        few = worth_of_cells(sample, partition) < FEWEST_GROUPS
        if wanted == 1 or cells.count[few].sum() <= _FEW_SHARE * cells.count.sum():
            return partition
        wanted //= 2
        partition = VarianceTree(max_cells=wanted)


def worth_of_cells(sample: Sample, partition: Any) -> Floats:
    """Return how many groups (observations) of equal weight each cell of a partition is worth, ``(n_cells,)``.

    Of forecasts in time it is how many windows as long as the lead.
    """
    cells = cells_of(sample, partition)
    if sample.timing is not None:
        near = Windows.of(cells.index, sample.timing).products(sample.weight_or_ones)
        return np.square(cells.count) / near
    group = np.arange(sample.n_samples) if sample.group is None else sample.group
    code, place = np.unique(group * np.int64(cells.n_cells) + cells.index, return_inverse=True)
    weight = np.bincount(place, sample.weight).astype(np.float64)
    return effective_numbers(weight, code % cells.n_cells, cells.n_cells)


@dataclass(frozen=True, eq=False)
class Spread:
    """The standard deviation of T, for an inflation of the variance of the sums of groups."""

    pairs: float
    linear: float

    @classmethod
    def of(cls, segments: Segments, margin: Floats) -> Spread:
        """Return that of labels with given probabilities."""
        p, w2 = margin[:, : segments.n_columns], np.square(segments.weight)
        shift = segments.by_cell(p - segments.columns) / segments.count[:, None]
        n_cells = len(segments.count)
        pairs, along = np.empty((2, n_cells))
        if segments.n_columns == 1:
            variance = w2 * (p[:, 0] * (1 - p[:, 0]))
            of_segment = np.add.reduceat(variance, segments.start[:-1])
            whole = sums_in_parts(segments.place, of_segment, n_cells)
            pairs[:] = np.square(whole) - np.bincount(segments.place, np.square(of_segment), n_cells)
            along[:] = np.square(shift[:, 0]) * whole
        else:
            for b in range(n_cells):
                rows = segments.cell == b
                part, weight = p[rows], w2[rows]
                whole = np.diag(weight @ part) - part.T @ (weight[:, None] * part)
                own = np.square(weight) * squared_norms(part)
                pairs[b] = max(float(np.square(whole).sum() - own.sum()), 0.0)
                along[b] = shift[b] @ whole @ shift[b]
        return cls(
            2 * float(np.square(segments.factor) @ pairs) / segments.total**2,
            4 * float(along.sum()) / segments.total**2,
        )

    def __call__(self, inflation: Any) -> Any:
        """Return the standard deviation; an inflation below 1 counts as 1."""
        ratio = np.maximum(inflation, 1.0)
        return np.sqrt(self.pairs * ratio**2 + self.linear * ratio + np.finfo(float).tiny)
