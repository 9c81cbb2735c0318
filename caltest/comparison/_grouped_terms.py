r"""The debiased squared l2 error of one model as a sum over pairs of groups, and differences of two of them.

With the sums :math:`R_{gb}` of the weighted residuals of group g in cell b, their weights :math:`W_{gb}` and the factor
:math:`c_b = W_b / (W_b^2 - \sum_g W_{gb}^2)` (0 in a cell of a single group),

.. math:: T = \frac1W \sum_b c_b \Bigl(\bigl|\sum_g R_{gb}\bigr|^2 - \sum_g |R_{gb}|^2\Bigr)

is unbiased however the residuals of a group depend on each other. Weighted observations are groups of one. For
variances, sums are centred by the mean residual of their cell and divided by the root of one minus their share of the
cell (Bell & McCaffrey 2002, CR2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._group_contrasts import contrast_labels, contrast_signs, contrast_sums
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._sample import Sample
from caltest.predictions.cells._cells import cells_of
from caltest.predictions.inputs._parts import sums_in_parts
from caltest.statistics._segments import FEWEST_GROUPS, LARGEST_SHARE, GroupsInCells, rare_outcomes, sums_by_cell
from caltest.statistics._squared_l2_distribution import greatest_l2

FEW_SURPRISES = 10
"""With fewer observations that have a rare outcome (`rare_outcomes`), their sample variance is unreliable."""
_FEW_GROUPS = 1000  # up to so many the inner products of all groups may be held
_NO_PLACES = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class GroupedPairTerms(GroupsInCells):
    """The sums over groups and cells of one model; observations in the caller's order.

    Attributes
    ----------
    row_group, entry : arrays of shape (n_samples,)
        Group of each observation, from 0 without gaps, and its entry.
    weight : array of shape (n_samples,)
        Weight of each observation.
    prob : array of shape (n_samples, n_outcomes)
        Predictions.
    sums, expected : arrays of shape (n_entries, n_columns)
        Sums of the weighted residuals and of the weighted predictions; of two outcomes those of the event alone.
    squares : float
        Sum of the squared weighted residuals, centred within cells, over the observations of cells that are known.
    is_grouped : bool
        Whether observations of a group may depend on each other; False for weighted observations.
    rare : int
        Number of labels that show that labels vary (`rare_outcomes`), in cells that are known.
    """

    degrees: ClassVar[float] = math.inf  # the pivots know that groups are few

    row_group: Integers
    entry: Integers
    weight: Floats
    prob: Floats
    sums: Floats
    expected: Floats
    squares: float
    is_grouped: bool
    rare: int

    @classmethod
    def of(cls, sample: Sample, partition: Any) -> GroupedPairTerms:
        """Return the terms of a sample over the cells of a partition."""
        position = np.argsort(sample.row)
        ids = sample.row if sample.group is None else sample.group  # the same for all models of these observations
        _, group = np.unique(ids[position], return_inverse=True)
        cells = cells_of(sample, partition)
        place, entry = np.unique(group * cells.n_cells + cells.index[position], return_inverse=True)
        n, n_entries = sample.n_samples, len(place)
        weight = np.ones(n) if sample.weight is None else sample.weight[position]
        prob, outcome = sample.prob[position], sample.outcome[position]
        columns = range(1 if sample.n_outcomes == 2 else 0, sample.n_outcomes)
        cell = place % cells.n_cells
        mass, count = sums_in_parts(entry, weight, n_entries), sums_in_parts(cell[entry], weight, cells.n_cells)
        known = np.bincount(cell, minlength=cells.n_cells) > 1
        expected, sums = np.empty((2, n_entries, len(columns)))
        squares, row_cell = 0.0, cell[entry]
        rows = np.bincount(row_cell, np.square(weight), cells.n_cells) / np.square(count)
        lever = np.where(known, 1 / (1 - np.minimum(rows, LARGEST_SHARE)), 0.0)
        for j, k in enumerate(columns):
            residual = (outcome == k) - prob[:, k]
            expected[:, j] = np.bincount(entry, weight * prob[:, k], n_entries)
            sums[:, j] = np.bincount(entry, weight * residual, n_entries)
            mean = np.bincount(row_cell, weight * residual, cells.n_cells) / count
            squares += float(np.square(weight * (residual - mean[row_cell])) @ lever[row_cell])
        is_known = known[row_cell]
        return cls(
            place // cells.n_cells,
            cell,
            mass,
            group,
            entry,
            weight,
            prob,
            sums,
            expected,
            squares,
            sample.group is not None,
            rare_outcomes(outcome[is_known].astype(np.int64), prob[is_known], row_cell[is_known]),
        )

    @property
    def n_columns(self) -> int:
        """Number of outcomes that are summed."""
        return int(self.sums.shape[1])

    @cached_property
    def total_weight(self) -> float:
        """Weight of all observations."""
        return float(self.weight.sum())

    @cached_property
    def mean(self) -> Floats:
        """Mean residual of each cell, ``(n_cells, n_columns)``."""
        return sums_by_cell(self.place, self.sums, len(self.count)) / self.count[:, None]

    @cached_property
    def centred(self) -> Floats:
        """Sums of each entry minus the mean of its cell, corrected for its share of the cell."""
        return (self.sums - self.mass[:, None] * self.mean[self.place]) * self.lever[:, None]

    def means_of(self, chance: Floats) -> Floats:
        """Return the mean residual of each cell if outcomes have probabilities ``(n_samples, n_outcomes)``."""
        gap = (chance - self.prob)[:, -self.n_columns :] * self.weight[:, None]
        return sums_by_cell(self.place[self.entry], gap, len(self.count)) / self.count[:, None]

    @property
    def unknown(self) -> float:
        """How large the squared error may be in cells of a single group, which no pair of groups shows."""
        share = float(self.count[self.factor == 0].sum()) / self.total_weight
        return share * greatest_l2(2 if self.n_columns == 1 else self.n_columns)

    @property
    def known_weight(self) -> Floats:
        """Weight of each group in cells of several groups, ``(n_groups,)``."""
        return sums_in_parts(self.group, np.where(self.factor[self.place] > 0, self.mass, 0.0), self.n_groups)

    @cached_property
    def inflation(self) -> float:
        """Variance of the centred sums of groups over that of independent observations."""
        sums = np.stack([np.bincount(self.group, column, self.n_groups) for column in self.centred.T])
        return float(np.square(sums).sum()) / self.squares if self.squares > 0 else 1.0

    @property
    def minority(self) -> float:
        """How many labels show that labels vary; of groups, so many that `FEW_SURPRISES` stands for `FEWEST_GROUPS`.

        All labels of a group may be one outcome: a number of labels over the inflation is one of groups.
        """
        of_groups = FEW_SURPRISES / FEWEST_GROUPS * self.rare / max(self.inflation, 1.0)
        return min(of_groups, self.rare) if self.is_grouped else self.rare

    @cached_property
    def predicted_deviation(self) -> float:
        """Standard deviation of T according to the predictions, at the observed mean residuals.

        Groups vary as much more than independent observations as is observed. If no label differs from the others of
        its cell, nothing is observed, and all labels of a group may be equal.
        """
        p = self.prob[:, -self.n_columns :]
        own = p * (1 - p) if self.n_columns == 1 else p  # an upper limit of more than two
        power, ratio = (1, 1.0) if not self.is_grouped or self.minority else (2, 1.0)
        if self.is_grouped and self.minority:
            ratio = max(self.inflation, 1.0)
        pairs = along = 0.0
        for k, column in enumerate(own.T):
            each = np.square(self.weight) * column if power == 1 else self.weight * np.sqrt(column)
            variance = ratio * sums_in_parts(self.entry, each, len(self.place)) ** power
            whole = sums_in_parts(self.place, variance, len(self.count))
            between = np.square(whole) - sums_in_parts(self.place, np.square(variance), len(self.count))
            pairs += 2 * float(np.square(self.factor) @ np.maximum(between, 0.0))
            along += 4 * float(np.where(self.factor > 0, np.square(self.mean[:, k]), 0.0) @ whole)
        return math.sqrt(pairs + along) / self.total_weight

    @cached_property
    def alone(self) -> Contrast:
        """The contrast of this model alone."""
        return Contrast.of([self])

    @property
    def estimate(self) -> float:
        """The debiased squared l2 calibration error T."""
        return self.alone.observed[0]

    @cached_property
    def scores(self) -> Floats:
        r"""The part of T that is linear in the groups, times :math:`W / 2`, ``(n_groups,)``."""
        each = (self.centred * self.mean[self.place]).sum(axis=1)
        return sums_in_parts(self.group, np.where(self.factor[self.place] > 0, each, 0.0), self.n_groups)

    def inner(self, other: GroupedPairTerms) -> float:
        r"""Return :math:`\sum_{g \ne h} H_{gh} H'_{gh}` of the centred sums of two models on the same groups."""
        own = self.alone.pair_squares
        if other is self:
            return own
        return (own + other.alone.pair_squares - Contrast.of([self, other]).pair_squares) / 2

    def deviations(self, change: NDArray[Any]) -> tuple[Floats, Floats]:
        """Return the changes of the estimate if groups count more or less, ``(n_replicates,)`` each.

        For changes ``(n_replicates, n_groups)``: the part linear in the groups, and that of the pairs of groups.
        """
        from scipy.sparse import csr_array

        change = change.astype(np.float64)
        linear = 2 / self.total_weight * (change @ (self.scores - self.scores.mean()))
        root = np.sqrt(self.factor)[self.place]
        by_pair = np.zeros(len(change))
        for column in self.centred.T:
            vector = csr_array((column * root, (self.group, self.place)), shape=(self.n_groups, len(self.count)))
            own = np.bincount(self.group, np.square(column * root), self.n_groups)
            by_pair += np.square(vector.T @ change.T).sum(axis=0) - np.square(change) @ own
        return linear, by_pair / self.total_weight


@dataclass(frozen=True, eq=False)
class Contrast(GroupsInCells):
    """The error of one model, or that of a model minus that of another one on the same groups.

    Attributes
    ----------
    terms : tuple of GroupedPairTerms
        The models.
    sign : array of shape (n_cells,)
        1 for the cells of the first model, -1 for those of the second one.
    sums : array of shape (n_entries, n_columns)
        Their sums of residuals.
    row_entry : array of shape (n_models, n_samples)
        Entry of each observation.
    """

    terms: tuple[GroupedPairTerms, ...]
    sign: Floats
    sums: Floats
    expected: Floats
    row_entry: Integers

    @classmethod
    def of(cls, terms: list[GroupedPairTerms]) -> Contrast:
        """Return the contrast of one model or two."""
        offsets = np.cumsum([0, *(len(part.count) for part in terms)])
        group = np.concatenate([part.group for part in terms])
        order = np.argsort(group, kind="stable")
        place = np.argsort(order)
        starts = np.cumsum([0, *(len(part.group) for part in terms)])
        cell = np.concatenate([part.place + offset for part, offset in zip(terms, offsets[:-1], strict=True)])
        sign = np.repeat([1.0, -1.0][: len(terms)], np.diff(offsets))
        joined = {
            name: np.concatenate([getattr(part, name) for part in terms])[order]
            for name in ("mass", "sums", "expected")
        }
        row_entry = np.stack([place[part.entry + start] for part, start in zip(terms, starts[:-1], strict=True)])
        return cls(group[order], cell[order], terms=tuple(terms), sign=sign, **joined, row_entry=row_entry)

    @property
    def total_weight(self) -> float:
        """Weight of all observations."""
        return self.terms[0].total_weight

    @cached_property
    def mean(self) -> Floats:
        """Mean residual of each cell."""
        return np.concatenate([part.mean for part in self.terms])

    @cached_property
    def _work(self) -> tuple[Any, tuple[int, ...]]:
        """What the kernels need of the design, and the shape of their memory for products."""
        start = np.searchsorted(self.group, np.arange(self.n_groups + 1))
        by_cell = np.argsort(self.place, kind="stable")
        in_cell = np.bincount(self.place, minlength=len(self.count))
        n_columns, each = self.sums.shape[1], np.diff(start)
        in_groups = float(np.square(each, dtype=np.float64).sum()) * n_columns
        by_groups = self.n_groups <= _FEW_GROUPS and float(np.square(in_cell, dtype=np.float64).sum()) < in_groups
        joint, weight = (_NO_PLACES, np.empty(0)) if by_groups else self._joint(start, each)
        cell_start = np.append(0, np.cumsum(in_cell)) if by_groups else _NO_PLACES
        design = (start, self.group, self.place, self.mass, self.lever, self.count, self.factor, self.sign)
        shape = (1, self.n_groups, self.n_groups) if by_groups else (len(weight), n_columns, n_columns)
        return (*design, joint, weight, by_cell if by_groups else _NO_PLACES, cell_start, self.total_weight), shape

    def _joint(self, start: Integers, each: Integers) -> tuple[Integers, NDArray[Any]]:
        """Return which two cells each pair of entries of a group belongs to, and how often the two cells count."""
        later = np.repeat(start[1:], each) - np.arange(len(self.place))  # entries of the group from this one on
        first = np.repeat(np.arange(len(self.place)), later)
        second = first + np.arange(len(first)) - np.repeat(np.cumsum(later) - later, later)
        one, two = np.sort([self.place[first], self.place[second]], axis=0)
        known, joint = np.unique(one * len(self.count) + two, return_inverse=True)
        a, b = known // len(self.count), known % len(self.count)
        return joint, self.sign[a] * self.sign[b] * np.where(a == b, 1.0, 2.0)

    def _memory(self) -> tuple[Floats, ...]:
        """Return memory for the kernels: sums of cells, vectors of entries, and products."""
        n_columns = self.sums.shape[1]
        shape = self._work[1]
        return np.empty((len(self.count), n_columns)), np.empty((len(self.place), n_columns)), np.empty(shape)

    @cached_property
    def observed(self) -> tuple[float, float, float]:
        """The difference, the variance of its pairs of groups, and that of its linear part."""
        out = np.empty((1, 3))
        contrast_sums(self.sums[None], self._work[0], *self._memory(), out)
        value, pairs, linear = out[0].tolist()
        return value, pairs, linear

    @property
    def pair_squares(self) -> float:
        """Sum of the squared terms of all pairs of groups."""
        return self.observed[1] * self.total_weight**2 / 2

    def of_labels(
        self,
        shock: NDArray[np.float32],
        noise: NDArray[np.float32],
        correlation: float,
        bound: NDArray[np.float32],
        outcome: Integers,
    ) -> Floats:
        """Return difference and variances of simulated labels, ``(n_replicates, 3)``.

        Parameters
        ----------
        shock, noise : arrays of shape (n_replicates, n_groups) and (n_replicates, n_samples)
            Normal numbers; all observations have the first shock if they are independent.
        correlation : float
            Latent correlation of labels of a group.
        bound : array of shape (n_samples, n_labels - 1)
            Normal quantiles of the cumulative probabilities of the labels.
        outcome : array of shape (n_models, n_labels)
            The outcome of each label.
        """
        out = np.empty((len(noise), 3))
        column = outcome - 1 if self.sums.shape[1] == 1 else outcome
        weight = self.terms[0].weight
        group = self.terms[0].row_group if self.terms[0].is_grouped else np.zeros(len(weight), np.int64)
        size = math.sqrt(correlation), math.sqrt(1 - correlation)
        rows = group, bound, self.row_entry, weight, column, self.expected
        contrast_labels(shock, noise, *size, *rows, self._work[0], *self._memory(), out)
        return out

    def of_signs(self, shock: NDArray[np.float32]) -> Floats:
        """Return the same of the observed sums with random signs of their deviations, around the observed means.

        The sign of a group is that of its shock.
        """
        out = np.empty((len(shock), 3))
        centre = self.mass[:, None] * self.mean[self.place]
        deviation = (self.sums - centre) * np.square(self.lever)[:, None]  # CR3
        contrast_signs(shock, centre, deviation, self.group, self._work[0], *self._memory(), out)
        return out

    def error_of(self, means: Floats) -> float:
        """Return the difference of the squared errors of mean residuals ``(n_cells, n_columns)``."""
        share = np.where(self.factor > 0, self.count, 0.0) / self.total_weight
        return float((self.sign * share) @ np.square(means).sum(axis=1))

    def means_of(self, chances: list[Floats]) -> Floats:
        """Return the mean residuals of cells if outcomes have the given probabilities, for each model."""
        return np.concatenate([part.means_of(chance) for part, chance in zip(self.terms, chances, strict=True)])
