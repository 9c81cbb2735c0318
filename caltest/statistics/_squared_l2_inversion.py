"""P-values of every value of the squared l2 error, of groups of observations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from caltest._compiled._signs import independent_sums, shocked_sums, signed_sums_of_groups
from caltest.predictions._arrays import Floats
from caltest.predictions._sample import Sample
from caltest.predictions.cells._cells import cells_of
from caltest.predictions.inputs._parts import effective_number, sums_in_parts
from caltest.resampling.draws._alike_draws import RareOutcome
from caltest.resampling.draws._group_shocks import Shocks, latent_bounds, latent_correlation
from caltest.results._decision import rejects
from caltest.statistics._segments import FEWEST_GROUPS, ResidualSums, Segments, Spread, worth_of_cells
from caltest.statistics._squared_l2_distribution import greatest_l2

_LEAST = 1e-12  # of the squares of the sums of groups, which counts as variation between them
_WORTH = 2 - 1e-9  # effective groups of a cell; of the error of a cell of fewer nothing is known
_SAME = 0.9999  # latent correlation at which all labels of a group follow its shock
_ROUNDING = 1e-9
_CLOSE = 1e-4  # of the squared error, relative
_LOW = 0.16  # of the null distribution: a smaller quantile counts as this one, one standard deviation below the centre
_STEPS = 40
_MANY_LABELS = 2**14
_DRAWS = ((2**12, 999), (_MANY_LABELS, 499), (math.inf, 199))  # for so many labels of a draw, at most
_MANY_GROUPS = 400
_NEARLY_NORMAL = 0.2  # third moments up to which sums of groups are symmetric enough for random signs alone
_RESOLUTION = 0.005  # of an end, as a root


@dataclass(frozen=True, eq=False)
class GroupSigns:
    r"""T where the sum of each group has a random sign, and cells have a mean residual.

    With :math:`S_{gb} = \epsilon_g R_{gb} + W_{gb}\, c\, \pi_b`, for sums R, signs :math:`\epsilon`, weights W of
    groups in cells and a pattern :math:`\pi` of mean residuals, T is :math:`A + c B + \theta` with the squared error
    :math:`\theta = c^2 |\pi|^2` of the cells: one pass over the groups serves every value of it.

    Attributes
    ----------
    value, ratio : arrays of shape (n_draws,)
        A, and the variance of the centred sums of groups over the observed one.
    along : array of shape (n_patterns, n_draws)
        B of each pattern.
    quadratic : float
        Variance of A.
    linear, length : arrays of shape (n_patterns,)
        Variance of B and squared error of each pattern.
    """

    value: Floats
    ratio: Floats
    along: Floats
    quadratic: float
    linear: Floats
    length: Floats

    @classmethod
    def of(
        cls, segments: Segments, base: Floats, centred: Floats, patterns: Sequence[Floats], shocks: Shocks
    ) -> GroupSigns:
        """Draw the signs of sums ``base (n_segments, n_columns)``, of which ``centred`` shows the variance."""
        n_cells, n_columns = len(segments.count), segments.n_columns
        between = float(np.square(np.add.reduceat(centred, segments.group_start[:-1], axis=0)).sum())
        between = max(between, _LEAST * float(np.square(base).sum()))
        pairs = 0.0
        linear = np.zeros(len(patterns))
        order = np.argsort(segments.place, kind="stable")
        for b, rows in enumerate(np.split(order, np.cumsum(np.bincount(segments.place, minlength=n_cells))[:-1])):
            some = base[rows]
            joint = some.T @ some if len(some) > n_columns else some @ some.T  # the sums of squares are the same
            own = np.square(np.square(some).sum(axis=1)).sum()
            pairs += segments.factor[b] ** 2 * max(float(np.square(joint).sum() - own), 0.0)
            linear += [np.square(some @ pattern[b, :n_columns]).sum() for pattern in patterns]
        moved = np.array([pattern[:, :n_columns] for pattern in patterns]).reshape(-1, n_cells, n_columns)
        value, variance = np.empty((2, shocks.n_draws))
        along = np.empty((len(patterns), shocks.n_draws))
        for part, shock in shocks.of_groups():
            drawn = np.empty((len(patterns), shock.shape[1]))
            signed_sums_of_groups(segments.layout, shock, base, moved, value[part], drawn, variance[part])
            along[:, part] = drawn
        return cls(
            value,
            variance / between if between > 0 else np.ones(shocks.n_draws),
            along,
            2 * pairs / segments.total**2,
            4 * linear / segments.total**2,
            np.array([segments.squared_error(pattern) for pattern in patterns]),
        )

    def pivots(self, theta: float) -> Iterator[tuple[Floats, float]]:
        """Yield T minus theta over its standard deviation of all draws, and the observed one, for each pattern."""
        tiny = np.finfo(float).tiny
        shifts: Iterable[tuple[Any, Any]] = [(0.0, 0.0)]  # of T, and their variances
        if theta > 0:
            square = theta / self.length
            shifts = zip(np.sqrt(square)[:, None] * self.along, square * self.linear, strict=True)
        for shift, linear in shifts:
            spread = np.sqrt(self.quadratic * self.ratio**2 + linear * self.ratio + tiny)
            yield (self.value + shift) / spread, float(np.sqrt(self.quadratic + linear + tiny))


CERTIFYING_GROUPS = 20
"""With fewer effective groups an upper limit must hold for groups whose labels are all equal, too."""


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
        Whether limits must hold if all labels of a group may be equal: upper limits of few groups, and both if labels
        do not vary within cells.
    may_be_copies : bool
        Whether all labels of each group may be one outcome (`RareOutcome.may_be_copies`).
    by_signs : bool
        Whether random signs of groups (observations) are enough, without simulated labels: there are many of both.
    """

    segments: Segments
    seen: ResidualSums
    estimate: float
    unknown: float
    largest: float
    n_effective: float
    n_draws: int
    any_shock: bool
    by_signs: bool
    may_be_copies: bool
    seed: int

    @classmethod
    def of(cls, sample: Sample, partition: Any, *, any_shock: bool, rng: np.random.Generator) -> SquaredL2Inversion:
        """Prepare the observations of a sample, in the cells of a partition."""
        cells = cells_of(sample, partition)
        shown = (worth_of_cells(sample, partition) >= _WORTH)[cells.index]
        known = shown if shown.any() else ~shown  # if no cell shows its error, all are taken and count for nothing
        segments = Segments.of(
            sample.expected[known],
            sample.outcome[known].astype(np.int64),
            sample.weight_or_ones[known],
            None if sample.group is None else sample.group[known],
            cells.index[known],
        )
        seen = ResidualSums.of(segments)
        unknown = 1 - segments.total / sample.total_weight if not known.all() else 0.0
        n_effective = effective_number(sums_in_parts(segments.group, segments.mass, segments.n_groups))
        n_draws = next(number for most, number in _DRAWS if segments.columns.size <= most)
        if not shown.any():
            unknown, n_effective, n_draws = 1.0, 0.0, 0
        return cls(
            segments,
            seen,
            seen.value * (1 - unknown) + 0.0,  # never -0
            unknown,
            greatest_l2(sample.n_outcomes),
            n_effective,
            n_draws,
            segments.grouped and (not seen.varies or (any_shock and n_effective < CERTIFYING_GROUPS)),
            segments.columns.size > _MANY_LABELS
            and n_effective >= _MANY_GROUPS
            and seen.third_moment(segments) <= _NEARLY_NORMAL,
            segments.grouped and sample.of_predictions(RareOutcome.of).may_be_copies(sample),
            int(rng.integers(2**63)),
        )

    @property
    def origin(self) -> str:
        """How an interval is found, in words."""
        if self.by_signs:
            of = "groups" if self.segments.grouped else "observations"
            return f"inversion of Monte Carlo tests, each with {self.n_draws:,} draws of random signs of {of}"
        drawn = self.segments.grouped and self.n_draws > 0
        groups = ", with shocks that groups share, and random signs of groups" if drawn else ""
        return f"inversion of Monte Carlo tests, each with {self.n_draws} simulated data sets{groups}"

    @property
    def null_tail(self) -> float:
        """Probability of a value at most T if the model is calibrated."""
        return _tails(self._null_values, self.seen.value)[0] if self.is_known else 1.0

    @property
    def is_known(self) -> bool:
        """Whether there are enough groups for an interval."""
        return self.n_effective >= FEWEST_GROUPS

    @cached_property
    def noise(self) -> float:
        """Approximate standard deviation of T if the model is calibrated."""
        spread = Spread.of(self.segments, self.segments.prob)
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
        if not self.is_known or self.estimate <= 0 or not rejects(self._pvalues(0.0)[1], alpha):
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
        segments = self.segments
        return Shocks(self.seed, self.n_draws, segments.n_groups, len(segments.weight), segments.draws_together)

    @cached_property
    def _null_values(self) -> Floats:
        """T of a calibrated model, ``(n_draws,)``: of labels that follow the predictions, or of random signs."""
        return self._signs_at_zero.value if self.by_signs else self._simulate(self.segments.prob)[0][0]

    @cached_property
    def _low(self) -> float:
        """T for upper ends: labels that vary less than predicted do not show that the error is below 0."""
        return max(self.seen.value, float(np.quantile(self._null_values, _LOW)))

    @cached_property
    def _known_pvalues(self) -> dict[float, tuple[float, float]]:
        return {}

    def _pvalues(self, theta: float) -> tuple[float, float]:
        """Return the p-values of `theta or more` and of `theta or less` of the known cells."""
        if theta not in self._known_pvalues:
            self._known_pvalues[theta] = self._compute(theta)
        return self._known_pvalues[theta]

    @cached_property
    def _largest_known(self) -> float:
        """Largest squared error that some probabilities have."""
        return self.segments.squared_error(_corner(self.segments)) * (1 + _CLOSE)

    @cached_property
    def _patterns(self) -> list[Floats]:
        return _patterns(self.segments, self.seen)

    def _compute(self, theta: float) -> tuple[float, float]:
        if self.by_signs:
            found = self._of_signs(theta) if theta <= self._largest_known else []
        else:
            found = self._of_labels(theta)
            if found and self.segments.grouped:
                found += self._of_signs(theta)
        if not found:
            return 0.0, 1.0  # no probabilities have so large an error
        low, high = zip(*found, strict=True)
        return max(low), max(high)

    def _of_labels(self, theta: float) -> list[tuple[float, float]]:
        """Return the p-values from labels that are simulated with the probabilities of a squared error."""
        segments, seen, found = self.segments, self.seen, []
        for margin in _boundary_margins(segments, self._patterns, theta):
            value, ratio = self._simulate(margin)
            if not segments.grouped:
                found.append(_tails(value[0], seen.value, self._low))
                continue
            spread = Spread.of(segments, margin)
            observed, low = (np.array([seen.value, self._low]) - theta) / spread(seen.inflation)
            found += [_tails((value[c] - theta) / spread(ratio[c]), observed, low) for c in range(2)]
            if self.any_shock:
                found.append(_tails(value[2], seen.value, self._low))
            if self.may_be_copies:
                found.append((0.0, _tails(self._simulate_copies(margin), seen.value)[1]))
        return found

    def _simulate_copies(self, margin: Floats) -> Floats:
        """Return T of groups that have one outcome each, with the mean probabilities of their observations."""
        segments = self.segments
        group = np.repeat(segments.group, np.diff(segments.start))
        total = np.maximum(np.bincount(group, segments.weight), np.finfo(float).tiny)
        mean = np.column_stack([np.bincount(group, segments.weight * one) / total for one in margin.T])
        bound, value = latent_bounds(mean)[group], np.empty((1, self.n_draws))
        each = segments.columns, segments.weight, segments.square, segments.keep
        for part, shock, noise in self._shocks.blocks():
            drawn = np.empty((2, 1, shock.shape[1]))
            shocked_sums(segments.layout, shock, noise, bound, np.array([_SAME]), *each, *drawn)
            value[:, part] = drawn[0]
        return value[0]

    def _simulate(self, margin: Floats) -> tuple[Floats, Floats]:
        """Return T and the inflation of simulated labels, ``(n_correlations, n_draws)`` each.

        With groups, the first correlation has the observed inflation, the second one a standard error more, and a third
        one lets all labels of a group follow its shock if that must be allowed for.
        """
        segments, seen = self.segments, self.seen
        bound = latent_bounds(margin)
        if not segments.grouped:
            value = np.empty((1, self.n_draws))
            given = segments.columns, segments.weight, segments.cell, segments.count, segments.factor, segments.total
            for part, _, noise in self._shocks.blocks():
                independent_sums(noise, bound, *given, value[0, part])
            return value, np.ones_like(value)
        inflation = max(seen.inflation, 1.0)
        upper = inflation * (1 + math.sqrt(2 / max(self.n_effective - 1, 1.0)))
        inside = np.clip(margin[:, : segments.n_columns], 1e-9, 1 - 1e-9)
        variance = float(np.square(segments.weight) @ (inside * (1 - inside)).sum(axis=1))
        correlation = [
            latent_correlation(
                bound,
                segments.weight,
                segments.start,
                segments.group,
                target=(ratio - 1) * variance,
                n_columns=segments.n_columns,
            )
            for ratio in (inflation, upper)
        ]
        if self.any_shock:
            correlation.append(_SAME)
        value, inflations = np.empty((2, len(correlation), self.n_draws))
        each = segments.columns, segments.weight, segments.square, segments.keep
        for part, shock, noise in self._shocks.blocks():
            drawn = np.empty((2, len(correlation), shock.shape[1]))
            shocked_sums(segments.layout, shock, noise, bound, np.array(correlation), *each, *drawn)
            value[:, part], inflations[:, part] = drawn
        return value, inflations

    @cached_property
    def _signs_at_zero(self) -> GroupSigns:
        return GroupSigns.of(self.segments, self.seen.sums, self.seen.centred, [], self._shocks)

    @cached_property
    def _signs(self) -> GroupSigns:
        """Signs of the sums of groups around the means of their cells, corrected for their shares."""
        base = self.seen.centred * self.segments.lever[:, None]
        return GroupSigns.of(self.segments, base, self.seen.centred, self._patterns, self._shocks)

    def _of_signs(self, theta: float) -> list[tuple[float, float]]:
        """Return the p-values from random signs of the sums of groups around a squared error."""
        observed, low = self.seen.value - theta, self._low - theta
        signs = self._signs if theta > 0 else self._signs_at_zero
        return [_tails(null, observed / unit, low / unit) for null, unit in signs.pivots(theta)]


def _tails(null: Floats, observed: float, low: float | None = None) -> tuple[float, float]:
    """Return the p-values of a value so small (``low`` if given) and of one so large; ties count on both sides."""
    small = observed if low is None else low
    slack = _ROUNDING * max(abs(observed), abs(small), float(np.abs(null).max()))
    below, above = np.count_nonzero(null <= small + slack), np.count_nonzero(null >= observed - slack)
    return (1 + below) / (len(null) + 1), (1 + above) / (len(null) + 1)


def _patterns(segments: Segments, seen: ResidualSums) -> list[Floats]:
    """Return patterns of mean residuals ``(n_cells, n_outcomes)``, whose sums over the outcomes are 0.

    The observed one and the opposite one, and two that are alike in all cells: for two outcomes up and down, else
    towards equal probabilities and away from them. If these are all 0, as equal predictions of equally frequent classes
    make them, every cell is shifted towards its least probable outcome.
    """
    mean = seen.mean
    if segments.n_columns == 1:
        flat = np.ones_like(mean)
        flat, mean = np.hstack([flat, -flat]), np.hstack([mean, -mean])
    else:
        flat = 1 / segments.n_columns - segments.by_cell(segments.prob) / segments.count[:, None]
    found = [flat, -flat] if np.any(np.abs(flat) > _ROUNDING) else []
    observed = np.any(np.abs(mean) > _ROUNDING) and not (len(mean) == segments.n_columns == 1)
    return found + [mean, -mean] * bool(observed) or [_corner(segments)]


def _boundary_margins(segments: Segments, patterns: Sequence[Floats], theta: float) -> list[Floats]:
    """Return probabilities ``(n_samples, n_outcomes)`` whose squared error is theta, shifted by each pattern.

    A pattern that cannot reach theta, because probabilities are at 0 or 1 first, is left out. If none can, every cell
    is shifted towards the end that is farther away.
    """
    if theta <= 0:
        return [segments.prob]
    found = [_shifted(segments, pattern, theta) for pattern in patterns]
    if all(margin is None for margin in found):
        found = [_shifted(segments, _corner(segments), theta)]
    return [margin for margin in found if margin is not None]


def _corner(segments: Segments) -> Floats:
    """Return the mean residuals ``(n_cells, n_outcomes)`` if the least probable outcome of each cell always happens."""
    mean = segments.by_cell(segments.prob) / segments.count[:, None]
    return np.eye(segments.prob.shape[1])[mean.argmin(axis=1)] - mean


def _shifted(segments: Segments, pattern: Floats, theta: float) -> Floats | None:
    """Return shifted probabilities that have the squared error theta; None if the pattern cannot reach it."""
    shift = pattern * math.sqrt(theta / segments.squared_error(pattern))
    scale, last = 1.0, 0.0
    for _ in range(_STEPS):
        margin = np.clip(segments.prob + scale * shift[segments.cell], 0.0, 1.0)
        margin /= margin.sum(axis=1, keepdims=True)
        reached = segments.squared_error(segments.by_cell(margin - segments.prob) / segments.count[:, None])
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
