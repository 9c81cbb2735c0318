"""P-values of every value of the squared l2 error, of groups of observations or of weighted ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._group_draws import independent_sums, shocked_sums, signed_sums_of_groups
from caltest.predictions._effective import effective_number, effective_numbers
from caltest.predictions._sample import Sample
from caltest.predictions._variance_tree import VarianceTree
from caltest.resampling._group_shocks import Shocks, latent_bounds, latent_correlation
from caltest.statistics._squared_l2_distribution import greatest_l2

FEWEST_GROUPS = 5
"""Fewer effective groups show nothing of how much groups differ."""
CERTIFYING_GROUPS = 20
"""With fewer effective groups an upper limit must hold for groups whose labels are all equal, too."""
_WORTH = 2 - 1e-9  # effective groups of a cell; of the error of a cell of fewer nothing is known
_SAME = 0.9999  # latent correlation at which all labels of a group follow its shock
_ROUNDING = 1e-9
_CLOSE = 1e-4  # of the squared error, relative
_STEPS = 40
_TOGETHER = 2**22  # sums of draws
_FEW_SHARE = 0.05  # of the weight, that may lie in cells of few groups
_DRAWS = ((2**15, 999), (2**17, 499), (math.inf, 199))  # for so many labels of a draw, at most


@dataclass(frozen=True, eq=False)
class _Blocks:
    """Observations of the cells that are known, sorted by group, cell and prediction; a segment is a group in a cell.

    Attributes
    ----------
    prob, outcome : arrays of shape (n_samples, n_outcomes), (n_samples,)
        Predictions and labels; of two outcomes the rarer one first.
    weight, cell : arrays of shape (n_samples,)
        Weight and cell.
    start : array of shape (n_segments + 1,)
        First observation of each segment.
    group, place, mass : arrays of shape (n_segments,)
        Group, cell and weight of each segment.
    count, factor, square, keep : arrays of shape (n_cells,)
        Weight of each cell, the factor of its pairs, its sum of squared weights, and the factor of its variance.
    lever : array of shape (n_segments,)
        One over the root of one minus the share of the segment in its cell.
    """

    prob: NDArray[np.float64]
    outcome: NDArray[np.int64]
    weight: NDArray[np.float64]
    cell: NDArray[np.int64]
    start: NDArray[np.int64]
    group: NDArray[np.int64]
    place: NDArray[np.int64]
    mass: NDArray[np.float64]
    count: NDArray[np.float64]
    factor: NDArray[np.float64]
    square: NDArray[np.float64]
    keep: NDArray[np.float64]
    lever: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        prob: NDArray[np.float64],
        outcome: NDArray[np.int64],
        weight: NDArray[np.float64],
        group: NDArray[np.int64],
        cell: NDArray[np.int64],
    ) -> _Blocks:
        """Sort observations and sum over segments and cells."""
        cell, group = np.unique(cell, return_inverse=True)[1], np.unique(group, return_inverse=True)[1]
        n_cells, n_outcomes = int(cell.max()) + 1, prob.shape[1]
        mean = weight @ prob
        classes = np.argsort(mean if n_outcomes == 2 else -mean, kind="stable")
        prob, outcome = prob[:, classes], np.argsort(classes)[outcome]
        # The order of the caller does not matter: equal observations of a group may be exchanged.
        value = prob @ np.sqrt(np.arange(1.0, n_outcomes + 1))
        order = np.lexsort((outcome, weight, value, cell, group))
        prob, outcome, weight = prob[order], outcome[order], weight[order]
        cell, group = cell[order], group[order]
        first = np.append(True, (np.diff(group) > 0) | (np.diff(cell) > 0) | (np.diff(cell) < 0))
        start = np.append(np.flatnonzero(first), len(weight))
        place, owner = cell[start[:-1]], group[start[:-1]]
        mass = np.add.reduceat(weight, start[:-1])
        count = _sums(place, mass, n_cells)
        square = _sums(cell, np.square(weight), n_cells)
        pairs = np.square(count) - np.bincount(place, np.square(mass), n_cells)
        share = mass / count[place]
        return cls(
            prob,
            outcome,
            weight,
            cell,
            start,
            owner,
            place,
            mass,
            count,
            count / pairs,
            square,
            1 / (1 - np.minimum(square / np.square(count), 0.99)),
            1 / np.sqrt(1 - share),
        )

    @property
    def n_columns(self) -> int:
        """Number of outcomes that count: 1 of two."""
        return 1 if self.prob.shape[1] == 2 else self.prob.shape[1]

    @cached_property
    def columns(self) -> NDArray[np.float64]:
        """Predictions of the outcomes that count, ``(n_samples, n_columns)``."""
        return np.ascontiguousarray(self.prob[:, : self.n_columns])

    @cached_property
    def total(self) -> float:
        """Weight of all observations."""
        return float(self.count.sum())

    @cached_property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(self.group[-1]) + 1

    @property
    def draws_together(self) -> int:
        """Number of draws whose sums are held in memory."""
        return max(1, min(32, _TOGETHER // (len(self.mass) * self.n_columns)))

    @property
    def grouped(self) -> bool:
        """Whether some group has several observations."""
        return self.n_groups < len(self.weight)

    def by_cell(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weighted sums ``(n_cells, n)`` of values ``(n_samples, n)``."""
        found = np.empty((len(self.count), values.shape[1]))
        for k, column in enumerate(values.T):
            found[:, k] = np.bincount(self.cell, self.weight * column, len(self.count))
        return found

    def by_segment(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums ``(n_segments, n)`` of values ``(n_samples, n)``."""
        return np.add.reduceat(values, self.start[:-1], axis=0)

    def squared_error(self, mean: NDArray[np.float64]) -> float:
        """Return the squared l2 error of mean residuals ``(n_cells, n_outcomes)``."""
        return float(self.count @ np.square(mean[:, : self.n_columns]).sum(axis=1)) / self.total


@dataclass(frozen=True, eq=False)
class _Seen:
    """What the labels show: T, the inflation, the sums of segments ``(n_segments, n_columns)`` and the centred ones."""

    value: float
    inflation: float
    sums: NDArray[np.float64]
    centred: NDArray[np.float64]

    @classmethod
    def of(cls, blocks: _Blocks) -> _Seen:
        """Sum over the residuals of the observations."""
        error = (blocks.outcome[:, None] == np.arange(blocks.n_columns)) - blocks.columns
        weighted = blocks.weight[:, None] * error
        sums = blocks.by_segment(weighted)
        whole = blocks.by_cell(error)
        lengths = np.bincount(blocks.place, np.square(sums).sum(axis=1), len(blocks.count))
        value = float(blocks.factor @ (np.square(whole).sum(axis=1) - lengths)) / blocks.total
        mean = whole / blocks.count[:, None]
        centred = (sums - blocks.mass[:, None] * mean[blocks.place]) * blocks.lever[:, None]
        first = np.flatnonzero(np.append(True, np.diff(blocks.group) > 0))
        between = float(np.square(np.add.reduceat(centred, first, axis=0)).sum())
        own = np.square(blocks.weight[:, None] * (error - mean[blocks.cell])).sum(axis=1)
        independent = float(blocks.keep @ np.bincount(blocks.cell, own, len(blocks.count)))
        return cls(value, between / independent if independent > 0 else 0.0, sums, centred)


@dataclass(frozen=True, eq=False)
class SquaredL2Inversion:
    r"""P-values of every value :math:`\theta` of the squared l2 error, of groups or of weighted observations.

    The same questions as `SquaredL2Distribution`, answered by simulation: `l2_interval` defines how.

    Attributes
    ----------
    estimate : float
        The debiased squared l2 error of all observations whose error is known, T.
    unknown : float
        Share of the weight in cells that are worth less than two groups, whose error may be the largest possible.
    largest : float
        Largest possible squared error.
    n_effective : float
        Number of groups of equal weight that the groups of the known cells are worth.
    n_draws : int
        Number of simulated data sets for each value.
    any_shock : bool
        Whether upper limits must hold if all labels of a group may be equal.
    """

    blocks: _Blocks | None
    seen: _Seen | None
    estimate: float
    unknown: float
    largest: float
    n_effective: float
    n_draws: int
    any_shock: bool
    seed: int

    @classmethod
    def of(cls, sample: Sample, partition: Any, *, any_shock: bool, rng: np.random.Generator) -> SquaredL2Inversion:
        """Prepare the observations of a sample, in the cells of a partition."""
        cells = sample.cells(partition)
        weight = np.ones(sample.n_samples) if sample.weight is None else sample.weight
        group = np.arange(sample.n_samples) if sample.group is None else sample.group
        worth = worth_of_cells(weight, group, cells.index, cells.n_cells)
        known = (worth >= _WORTH)[cells.index]
        largest = greatest_l2(sample.n_outcomes)
        seed = int(rng.integers(2**63))
        if not known.any():
            return cls(None, None, 0.0, 1.0, largest, 0.0, 0, any_shock, seed)
        blocks = _Blocks.of(
            sample.expected[known], sample.outcome[known].astype(np.int64), weight[known], group[known],
            cells.index[known],
        )  # fmt: skip
        seen = _Seen.of(blocks)
        unknown = 1 - blocks.total / float(weight.sum()) if not known.all() else 0.0
        size = _sums(blocks.group, blocks.mass, blocks.n_groups)
        n_draws = next(number for most, number in _DRAWS if blocks.columns.size <= most)
        return cls(
            blocks,
            seen,
            seen.value * (1 - unknown),
            unknown,
            largest,
            effective_number(size),
            n_draws,
            any_shock and blocks.grouped and effective_number(size) < CERTIFYING_GROUPS,
            seed,
        )

    @property
    def origin(self) -> str:
        """How an interval is found, in words."""
        groups = ", with shocks that groups share, and random signs of groups" if self.is_grouped else ""
        return f"inversion of Monte Carlo tests, each with {self.n_draws} simulated data sets{groups}"

    @property
    def is_grouped(self) -> bool:
        """Whether some group has several observations."""
        return self.blocks is not None and self.blocks.grouped

    @property
    def null_tail(self) -> float:
        """Probability of a value at most T if the model is calibrated."""
        return self._pvalues(0.0)[0] if self.is_known else 1.0

    @property
    def is_known(self) -> bool:
        """Whether there are enough groups to say anything."""
        return self.blocks is not None and self.n_effective >= FEWEST_GROUPS

    @cached_property
    def noise(self) -> float:
        """Approximate standard deviation of T if the model is calibrated."""
        if self.blocks is None or self.seen is None:
            return 0.0
        spread = _Spread.of(self.blocks, self.blocks.prob)
        return float(spread(self.seen.inflation)) * (1 - self.unknown)

    def below(self, target: float) -> float:
        r"""Return the p-value of the hypothesis that the squared error is ``target`` or more."""
        if not self.is_known:
            return 1.0
        known = (target - self.unknown * self.largest) / (1 - self.unknown)
        return 1.0 if known <= 0 < self.unknown else self._pvalues(max(known, 0.0))[0]

    def above(self, target: float) -> float:
        r"""Return the p-value of the hypothesis that the squared error is ``target`` or less."""
        return self._pvalues(target / (1 - self.unknown))[1] if self.is_known else 1.0

    def upper_end(self, alpha: float) -> float:
        """Return the largest squared error that is not rejected at level ``alpha``."""
        if not self.is_known:
            return self.largest
        centre = math.sqrt(max(self.estimate / (1 - self.unknown), 0.0))
        end = _end(lambda root: self._pvalues(root**2)[0] - alpha, centre, self._guess(1.0), math.sqrt(self.largest))
        return min(end**2 * (1 - self.unknown) + self.unknown * self.largest, self.largest)

    def lower_end(self, alpha: float) -> float:
        """Return the smallest squared error that is not rejected at level ``alpha``."""
        if not self.is_known or self.estimate <= 0 or self._pvalues(0.0)[1] > alpha:
            return 0.0
        centre = math.sqrt(self.estimate / (1 - self.unknown))
        end = _end(lambda root: self._pvalues(root**2)[1] - alpha, centre, self._guess(-1.0), 0.0)
        return end**2 * (1 - self.unknown)

    def _guess(self, sign: float) -> float:
        """Return a root error at which the search for an end begins."""
        estimate, noise = self.estimate, 2 * self.noise
        return math.sqrt(max(estimate + sign * noise, 0.0) / (1 - self.unknown))

    @cached_property
    def _shocks(self) -> Shocks:
        blocks = self.blocks
        if blocks is None:
            raise ValueError
        return Shocks(self.seed, self.n_draws, blocks.n_groups, len(blocks.weight), blocks.draws_together)

    @cached_property
    def _known_pvalues(self) -> dict[float, tuple[float, float]]:
        return {}

    def _pvalues(self, theta: float) -> tuple[float, float]:
        """Return the p-values of `theta or more` and of `theta or less` of the known cells."""
        if theta not in self._known_pvalues:
            self._known_pvalues[theta] = self._compute(theta)
        return self._known_pvalues[theta]

    def _compute(self, theta: float) -> tuple[float, float]:
        blocks, seen = self.blocks, self.seen
        if blocks is None or seen is None:
            return 1.0, 1.0
        low, high = [], []
        margins = _boundary_margins(blocks, seen, theta)
        if not margins:
            return 0.0, 1.0  # no probabilities have so large an error
        for margin in margins:
            for small, large in self._of_labels(blocks, seen, theta, margin):
                low.append(small)
                high.append(large)
        if blocks.grouped:
            for small, large in self._of_signs(blocks, seen, theta):
                low.append(small)
                high.append(large)
        return max(low), max(high)

    def _of_labels(
        self, blocks: _Blocks, seen: _Seen, theta: float, margin: NDArray[np.float64]
    ) -> list[tuple[float, float]]:
        """Return the p-values from labels that are simulated with given probabilities."""
        bound = latent_bounds(margin)
        if not blocks.grouped:
            drawn = np.empty(self.n_draws)
            for part, _, noise in self._shocks.blocks():
                independent_sums(
                    noise, bound, blocks.columns, blocks.weight, blocks.cell, blocks.count, blocks.factor,
                    blocks.total, drawn[part],
                )  # fmt: skip
            return [_tails(drawn, seen.value)]
        inflation = max(seen.inflation, 1.0)
        upper = inflation * (1 + math.sqrt(2 / max(self.n_effective - 1, 1.0)))
        inside = np.clip(margin[:, : blocks.n_columns], 1e-9, 1 - 1e-9)
        variance = float(np.square(blocks.weight) @ (inside * (1 - inside)).sum(axis=1))
        correlation = [
            latent_correlation(
                bound,
                blocks.weight,
                blocks.start,
                blocks.group,
                target=(ratio - 1) * variance,
                n_columns=blocks.n_columns,
            )
            for ratio in (inflation, upper)
        ]
        if self.any_shock:
            correlation.append(_SAME)
        value, ratio = np.empty((2, len(correlation), self.n_draws))
        for part, shock, noise in self._shocks.blocks():
            drawn = np.empty((2, len(correlation), shock.shape[1]))
            shocked_sums(
                shock, noise, bound, np.array(correlation), blocks.columns, blocks.weight, blocks.start, blocks.group,
                blocks.place, blocks.mass, blocks.lever, blocks.count, blocks.factor, blocks.square, blocks.keep,
                blocks.total, drawn[0], drawn[1],
            )  # fmt: skip
            value[:, part], ratio[:, part] = drawn
        spread = _Spread.of(blocks, margin)
        observed = (seen.value - theta) / spread(seen.inflation)
        found = [_tails((value[c] - theta) / spread(ratio[c]), observed) for c in range(2)]
        if self.any_shock:
            found.append(_tails(value[2], seen.value))
        return found

    def _of_signs(self, blocks: _Blocks, seen: _Seen, theta: float) -> list[tuple[float, float]]:
        """Return the p-values from random signs of the sums of groups around a squared error."""
        base = seen.centred * blocks.lever[:, None] if theta > 0 else seen.sums
        first = np.flatnonzero(np.append(True, np.diff(blocks.group) > 0))
        between = float(np.square(np.add.reduceat(seen.centred, first, axis=0)).sum())
        n_cells = len(blocks.count)
        joint = np.zeros((n_cells, blocks.n_columns, blocks.n_columns))
        np.add.at(joint, blocks.place, base[:, :, None] * base[:, None, :])
        lengths = np.square(np.square(base).sum(axis=1))
        pairs = np.square(joint).sum(axis=(1, 2)) - np.bincount(blocks.place, lengths, n_cells)
        quadratic = 2 * float(np.square(blocks.factor) @ np.maximum(pairs, 0.0)) / blocks.total**2
        found = []
        for shift in _shifts(blocks, seen, theta):
            moved = shift[:, : blocks.n_columns]
            linear = 4 * float(np.einsum("bk,bkl,bl->", moved, joint, moved)) / blocks.total**2
            value, variance = np.empty((2, self.n_draws))
            for part, shock, _ in self._shocks.blocks():
                signed_sums_of_groups(
                    shock, base, np.ascontiguousarray(moved), blocks.group, blocks.place, blocks.mass, blocks.lever,
                    blocks.count, blocks.factor, blocks.total, value[part], variance[part],
                )  # fmt: skip
            ratio = variance / between if between > 0 else np.zeros(self.n_draws)
            tiny = np.finfo(float).tiny
            null = (value - theta) / np.sqrt(quadratic * ratio**2 + linear * ratio + tiny)
            found.append(_tails(null, (seen.value - theta) / math.sqrt(quadratic + linear + tiny)))
        return found


def cells_of_groups(sample: Sample) -> VarianceTree:
    """Return the default cells: as many as usual, or fewer, such that nearly all cells are worth five groups.

    Groups that are alone in a cell show nothing of its error.
    """
    weight = np.ones(sample.n_samples) if sample.weight is None else sample.weight
    group = np.arange(sample.n_samples) if sample.group is None else sample.group
    partition = VarianceTree()
    wanted = partition.wanted_cells(sample.n_samples)
    while True:
        cells = sample.cells(partition)
        few = worth_of_cells(weight, group, cells.index, cells.n_cells) < FEWEST_GROUPS
        if wanted == 1 or cells.count[few].sum() <= _FEW_SHARE * cells.count.sum():
            return partition
        wanted //= 2
        partition = VarianceTree(max_cells=wanted)


def worth_of_cells(
    weight: NDArray[np.float64], group: NDArray[np.int64], cell: NDArray[np.int64], n_cells: int
) -> NDArray[np.float64]:
    """Return how many groups of equal weight each cell is worth, ``(n_cells,)``."""
    code, place = np.unique(group * np.int64(n_cells) + cell, return_inverse=True)
    return effective_numbers(_sums(place, weight, len(code)), code % n_cells, n_cells)


def _sums(index: NDArray[np.int64], values: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return the sums of values in n parts."""
    return np.bincount(index, values, n).astype(np.float64, copy=False)


@dataclass(frozen=True, eq=False)
class _Spread:
    """The standard deviation of T, for an inflation of the variance of the sums of groups."""

    pairs: float
    linear: float

    @classmethod
    def of(cls, blocks: _Blocks, margin: NDArray[np.float64]) -> _Spread:
        """Return that of labels with given probabilities."""
        p, w2 = margin[:, : blocks.n_columns], np.square(blocks.weight)
        shift = blocks.by_cell(p - blocks.columns) / blocks.count[:, None]
        n_cells = len(blocks.count)
        pairs, along = np.empty((2, n_cells))
        if blocks.n_columns == 1:
            variance = w2 * (p[:, 0] * (1 - p[:, 0]))
            of_segment = np.add.reduceat(variance, blocks.start[:-1])
            whole = _sums(blocks.place, of_segment, n_cells)
            pairs[:] = np.square(whole) - np.bincount(blocks.place, np.square(of_segment), n_cells)
            along[:] = np.square(shift[:, 0]) * whole
        else:
            for b in range(n_cells):
                rows = blocks.cell == b
                part, weight = p[rows], w2[rows]
                whole = np.diag(weight @ part) - part.T @ (weight[:, None] * part)
                own = np.square(weight) * _squared_norm(part)
                pairs[b] = max(float(np.square(whole).sum() - own.sum()), 0.0)
                along[b] = shift[b] @ whole @ shift[b]
        return cls(
            2 * float(np.square(blocks.factor) @ pairs) / blocks.total**2, 4 * float(along.sum()) / blocks.total**2
        )

    def __call__(self, inflation: Any) -> Any:
        """Return the standard deviation; an inflation below 1 counts as 1."""
        ratio = np.maximum(inflation, 1.0)
        return np.sqrt(self.pairs * ratio**2 + self.linear * ratio + np.finfo(float).tiny)


def _squared_norm(prob: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the squared norm of the covariance of each label, ``(n_samples,)``: |diag p - p p'|^2."""
    second = np.square(prob)
    return second.sum(axis=1) - 2 * (second * prob).sum(axis=1) + np.square(second.sum(axis=1))


def _tails(null: NDArray[np.float64], observed: float) -> tuple[float, float]:
    """Return the p-values of a value so small, and of one so large; ties count on both sides."""
    slack = _ROUNDING * max(abs(observed), float(np.abs(null).max()))
    n = len(null) + 1
    small, large = np.count_nonzero(null <= observed + slack), np.count_nonzero(null >= observed - slack)
    return (1 + small) / n, (1 + large) / n


def _patterns(blocks: _Blocks, seen: _Seen) -> list[NDArray[np.float64]]:
    """Return patterns of mean residuals ``(n_cells, n_outcomes)``, whose sums over the outcomes are 0.

    The observed one and the opposite one, and two that are alike in all cells: for two outcomes up and down, else
    towards equal probabilities and away from them.
    """
    mean = np.zeros((len(blocks.count), blocks.n_columns))
    np.add.at(mean, blocks.place, seen.sums)
    mean /= blocks.count[:, None]
    if blocks.n_columns == 1:
        flat = np.ones_like(mean)
        flat, mean = np.hstack([flat, -flat]), np.hstack([mean, -mean])
    else:
        flat = 1 / blocks.n_columns - blocks.by_cell(blocks.prob) / blocks.count[:, None]
    found = [flat, -flat] if np.any(np.abs(flat) > _ROUNDING) else []
    observed = np.any(np.abs(mean) > _ROUNDING) and not (len(mean) == blocks.n_columns == 1)
    return found + [mean, -mean] * bool(observed)


def _shifts(blocks: _Blocks, seen: _Seen, theta: float) -> list[NDArray[np.float64]]:
    """Return mean residuals ``(n_cells, n_outcomes)`` of a squared error, one for each pattern."""
    if theta <= 0:
        return [np.zeros((len(blocks.count), blocks.prob.shape[1]))]
    patterns = _patterns(blocks, seen)
    return [pattern * math.sqrt(theta / blocks.squared_error(pattern)) for pattern in patterns]


def _boundary_margins(blocks: _Blocks, seen: _Seen, theta: float) -> list[NDArray[np.float64]]:
    """Return probabilities ``(n_samples, n_outcomes)`` whose squared error is theta, shifted by each pattern.

    A pattern that cannot reach theta, because probabilities are at 0 or 1 first, is left out. If none can, every cell
    is shifted towards the end that is farther away.
    """
    if theta <= 0:
        return [blocks.prob]
    found = [_shifted(blocks, shift, theta) for shift in _shifts(blocks, seen, theta)]
    if all(margin is None for margin in found):
        mean = blocks.by_cell(blocks.prob) / blocks.count[:, None]
        corner = np.eye(blocks.prob.shape[1])[mean.argmin(axis=1)] - mean
        found = [_shifted(blocks, corner * math.sqrt(theta / blocks.squared_error(corner)), theta)]
    return [margin for margin in found if margin is not None]


def _shifted(blocks: _Blocks, shift: NDArray[np.float64], theta: float) -> NDArray[np.float64] | None:
    """Return shifted probabilities that have the squared error theta; None if the shift cannot reach it."""
    scale, last = 1.0, 0.0
    for _ in range(_STEPS):
        margin = np.clip(blocks.prob + scale * shift[blocks.cell], 0.0, 1.0)
        margin /= margin.sum(axis=1, keepdims=True)
        reached = blocks.squared_error(blocks.by_cell(margin - blocks.prob) / blocks.count[:, None])
        if abs(reached - theta) < _CLOSE * theta:
            return margin
        if reached <= last * (1 + 1e-9) or not reached:
            return None
        last = reached if reached < theta else 0.0
        scale *= math.sqrt(theta / reached)
    return None


def _end(inside: Callable[[float], float], centre: float, guess: float, limit: float) -> float:
    """Return where the interval around ``centre`` ends: beyond it values of ``inside`` are not positive.

    The end is on the safe side, a point that is outside already; ``limit`` if the interval goes on to there.
    """
    sign = 1.0 if limit > centre else -1.0
    near, step = centre, max(abs(guess - centre), 1e-3)
    while True:
        far = near + sign * step
        if sign * (limit - far) <= 0:
            far = limit
        if inside(far) <= 0:
            break
        if far == limit:
            return limit
        near, step = far, 1.5 * step
    while abs(far - near) > _RESOLUTION * max(abs(far), abs(near)) + 1e-6:
        middle = (near + far) / 2
        near, far = (middle, far) if inside(middle) > 0 else (near, middle)
    return far


_RESOLUTION = 0.005  # of an end, as a root
