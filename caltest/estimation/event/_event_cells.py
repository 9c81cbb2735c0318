"""Predictions of an event in cells of nearly equal logits, logistic models of its probability, and their jackknife."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from caltest.predictions._arrays import Booleans, Floats, Integers
from caltest.predictions._sample import Sample
from caltest.predictions.inputs._parts import effective_number, sums_in_parts
from caltest.resampling.draws._timed_draws import TimedOutcome
from caltest.statistics._recalibration_scores import logits, logits_of

FEWEST_GROUPS = 6
"""Fewer groups show too little of how much groups differ: of five, no two-sided p-value of signs is below 1/16."""


@dataclass(frozen=True, eq=False)
class Clusters:
    """Observations in groups that are independent of each other; predictions are strictly between 0 and 1.

    Attributes
    ----------
    logit, event, weight : arrays of shape (n_samples,)
        Logit of the prediction, whether the event happened, weight.
    group : array of shape (n_samples,)
        Number of the group, from 0 without gaps.
    n_groups : int
        Number of groups.
    """

    logit: Floats
    event: Floats
    weight: Floats
    group: Integers
    n_groups: int

    @classmethod
    def of(cls, logit: Floats, event: Booleans, weight: Floats, group: Integers) -> Clusters:
        """Return the groups that have an observation."""
        present = np.bincount(group) > 0 if len(group) else np.zeros(0, dtype=bool)
        numbered = (np.cumsum(present) - 1)[group] if len(group) else group
        return cls(logit, event.astype(np.float64), weight, numbered, int(present.sum()))

    def _sums(self, *values: Floats) -> list[Floats]:
        return [sums_in_parts(self.group, value, self.n_groups) for value in values]

    def _at(self, intercept: float, slope: float) -> tuple[Floats, Floats]:
        """Return residuals and variances at an intercept and a slope, both times the weight."""
        prob = 1.0 / (1.0 + np.exp(-np.clip(intercept + slope * self.logit, -700.0, 700.0)))
        return self.weight * (self.event - prob), self.weight * prob * (1 - prob)

    def intercept_error(self, intercept: float) -> float:
        r"""Return the standard error (CR3) of the intercept with slope 1; infinite if one group decides it.

        Without group g the intercept is moved by :math:`u_g / (V - V_g)` to first order, with the residuals and the
        variances of the group. For rare events it is moved by :math:`\log(1 - u_g / (V - V_g))`, and for rare
        non-events by the mirror image. The larger size of both is taken.
        """
        residual, variance = self._sums(*self._at(intercept, 1.0))
        rest = variance.sum() - variance
        moved = np.divide(np.abs(residual), rest, out=np.full(self.n_groups, np.inf), where=rest > 0)
        return math.inf if (moved >= 1).any() else self._error(np.log1p(-moved))

    def slope_error(self, intercept: float, slope: float) -> float:
        """Return the standard error (CR3) of the slope by one step of Newton's method without each group."""
        residual, variance = self._at(intercept, slope)
        score, score_logit, v, v_logit, v_square = self._sums(
            residual, residual * self.logit, variance, variance * self.logit, variance * self.logit**2
        )
        a, b, c = (part.sum() - part for part in (v, v_logit, v_square))
        determinant = a * c - b**2
        if not (determinant > 1e-12 * a * c).all():
            return math.inf
        return self._error((a * score_logit - b * score) / determinant)

    def student(self, deviation: float, error: float, missed: float) -> tuple[float, float]:
        """Return the half width of an interval by Student's t, and the p-value of a deviation."""
        from scipy.special import stdtr, stdtrit

        freedom = self.n_groups - 1
        value = abs(deviation) / error if error > 0 else math.inf
        return error * float(stdtrit(freedom, 1 - missed)), 2 * float(stdtr(freedom, -value))

    def _error(self, moved: Floats) -> float:
        return math.sqrt((self.n_groups - 1) / self.n_groups * float(moved @ moved))


_MANY, _N_CELLS = 1_500, 1_024  # predictions that are kept, and cells of more
_FAR = 37.0  # logits beyond which there are no more cells; 1 - 2^-53 has 36.7
_FARTHEST = 750.0  # the logarithm of the smallest number is -745
_BLOCK = 2**13  # observations; BLAS would use threads for dot products of many more
_UP_TO_HALF = np.array([1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5])
ROUND_NUMBERS = np.round(np.concatenate([[0.0], _UP_TO_HALF, 1 - _UP_TO_HALF[::-1], [1.0]]), 12)
"""Ends of the intervals of `between_round_numbers`, of which one half is twice one."""
_NEAR = 1e-6  # logits: distance of a prediction from a round number that it is equal to
_CUTS = np.log(_UP_TO_HALF) - np.log1p(-_UP_TO_HALF) - _NEAR
_CUTS = np.concatenate([_CUTS, -_CUTS[::-1]])
_EQUAL = 1e-12  # logits that differ by less are equal
_LARGEST = 700.0  # whose exponential is a number
_STEPS, _PRECISION = 100, 1e-7  # Newton steps, and the size of the last one, whose error is about its square
_STEEP = 1e4  # times the spread of the logits: a slope that only separated labels have
FEWEST_EVENTS = 5.0
"""Events, and non-events, that a slope needs; so many must be expected for a decision that is not a rejection."""


class Moments(NamedTuple):
    """Logarithm of the normalising constant at an intercept and a slope, and its derivatives."""

    log_norm: float
    mean: float
    mean_logit: float
    variance: float
    covariance: float
    variance_logit: float

    @property
    def of_slope(self) -> float:
        """Information on the slope if the intercept is free."""
        return self.variance_logit - self.covariance**2 / self.variance if self.variance > 0 else 0.0


@dataclass(frozen=True, eq=False)
class EventCells:
    r"""Predictions of an event in cells, with numbers of observations and events, for models of the logit.

    With the logit l of a prediction the model is :math:`\operatorname{logit} P(Y = 1) = a + b l`, an exponential family
    with the statistics :math:`O = \sum y` and :math:`S = \sum y l`. Predictions of 0 and 1 have no finite logit
    and are counted beside the cells.

    Attributes
    ----------
    logit, count, events : arrays of shape (n_cells,)
        Mean logit of each cell, increasing, number of observations and of events in it; sums of weights where
        observations have weights.
    events_logit : float
        S, from the logits themselves.
    predicted : float
        Sum of the predictions in the cells.
    certain, excluded : float
        Numbers (weights) of events that were predicted with probability 1, and of non-events with probability 0.
    n_samples, n_events : int
        Numbers of observations and of events, without impossible ones.
    n_impossible : int
        Number of labels that were predicted with probability 0.
    worth : tuple of float
        Effective numbers of events and of non-events in the cells.
    squares, cubes : arrays of shape (n_cells,) or None
        Sums of the squared and of the cubed weights, where observations have weights.
    clusters : Clusters or None
        The observations in their groups, where only these are independent.
    n_windows : float
        Number of stretches of time as long as the lead that count alike; infinite where labels are independent.
    """

    logit: Floats
    count: Floats
    events: Floats
    events_logit: float
    predicted: float
    certain: float
    excluded: float
    n_samples: int
    n_events: int
    n_impossible: int
    worth: tuple[float, float]
    squares: Floats | None = None
    cubes: Floats | None = None
    clusters: Clusters | None = None
    n_windows: float = math.inf

    @classmethod
    def of(cls, sample: Sample) -> EventCells:
        """Return the cells of a sample of two outcomes; use ``sample.once(EventCells.of)``.

        Labels that depend on each other in time count as fewer ones of a larger weight: their number is divided by the
        inflation, raised as in the draws of the test, or with little time by the largest one that is possible.
        """
        cells = cls._of_sample(sample)
        if sample.timing is None:
            return cells
        timed = sample.once(TimedOutcome.of)
        ratio = max(timed.raised_inflation(sample.outcome), timed.largest if timed.is_few else 1.0)
        squares, cubes = (cells.count if each is None else each for each in (cells.squares, cells.cubes))
        worth = cells.worth[0] / ratio, cells.worth[1] / ratio
        return replace(cells, squares=squares * ratio, cubes=cubes * ratio**2, worth=worth, n_windows=timed.n_windows)

    @classmethod
    def _of_sample(cls, sample: Sample) -> EventCells:
        cut, weight = _Cut.of_sample(sample), sample.weight
        cells = cls._of_blocks(_blocks(sample), cut)
        if weight is None and sample.group is None:
            return cells
        logit, event = logits(sample), sample.outcome > 0
        finite = np.isfinite(logit)
        possible = finite | (event == (logit > 0))
        logit, inside, own = logit[finite], event[finite], sample.weight_or_ones[finite]
        cells = replace(
            cells,
            n_samples=int(np.count_nonzero(possible)),
            n_events=int(np.count_nonzero(event & possible)),
            n_impossible=int(np.count_nonzero(~possible)),
            worth=(effective_number(own[inside]), effective_number(own[~inside])),
            clusters=None if sample.group is None else Clusters.of(logit, inside, own, sample.group[finite]),
        )
        if weight is None:
            return cells
        index = cut.index(logit)
        used = np.bincount(index, minlength=cut.n_cells) > 0
        squares, cubes = (sums_in_parts(index, own**power, cut.n_cells)[used] for power in (2, 3))
        return replace(cells, squares=squares, cubes=cubes)

    @classmethod
    def of_values(cls, sample: Sample) -> EventCells:
        """Return a cell for each value of the predictions, however many they are."""
        return cls._of_blocks(_blocks(sample), _Cut.at(logits(sample)))

    @classmethod
    def of_counts(cls, prob: Floats, count: Floats, events: Floats) -> EventCells:
        """Return the cells of probabilities in [0, 1] with numbers of observations and of events.

        The numbers need not be whole, as those of a stream are not, except where a label is impossible.
        """
        logit = logits_of(np.column_stack([1 - prob, prob]))
        return cls._of_blocks([(prob, logit, count, events)], _Cut.of(logit))

    @classmethod
    def _of_blocks(cls, blocks: Iterable[tuple[Floats, Floats, Floats, Floats]], cut: _Cut) -> EventCells:
        """Return the cells of blocks of probabilities, their logits, and numbers of observations and of events."""
        size, moments, happened = np.zeros((3, cut.n_cells))
        events_logit = predicted = excluded = certain = impossible = 0.0
        for block in blocks:
            prob, logit, count, events = block
            inside = np.isfinite(logit)
            if not inside.all():
                sure, never = logit == np.inf, logit == -np.inf
                certain += float(events[sure].sum())
                excluded += float((count - events)[never].sum())
                impossible += float((count - events)[sure].sum() + events[never].sum())
                prob, logit, count, events = (values[inside] for values in block)
            index = cut.index(logit)
            size += sums_in_parts(index, count, cut.n_cells)
            moments += sums_in_parts(index, count * logit, cut.n_cells)
            happened += sums_in_parts(index, events, cut.n_cells)
            events_logit += float(events @ logit)
            predicted += float(count @ prob)
        used = size > 0
        total, number = float(size.sum()), float(happened.sum())
        return cls(
            logit=moments[used] / size[used],
            count=size[used],
            events=happened[used],
            events_logit=events_logit,
            predicted=predicted,
            certain=certain,
            excluded=excluded,
            n_samples=round(total + certain + excluded),
            n_events=round(number + certain),
            n_impossible=round(impossible),
            worth=(number, total - number),
        )

    @cached_property
    def size(self) -> float:
        """Number (weight) of the observations in the cells."""
        return float(self.count.sum())

    @cached_property
    def observed(self) -> float:
        """O, the number (weight) of the events in the cells."""
        return float(self.events.sum())

    @property
    def total(self) -> float:
        """Number (weight) of all observations whose labels are possible."""
        return self.size + self.certain + self.excluded

    @property
    def varies(self) -> bool:
        """Whether the logits differ."""
        if len(self.logit) < 2:
            return False
        low, high = float(self.logit[0]), float(self.logit[-1])
        return high - low > _EQUAL * max(abs(low), abs(high), 1.0)

    @cached_property
    def centred(self) -> EventCells:
        """The cells with logits that are 0 on average where labels are uncertain, so that a and b are not confused."""
        centre = self.centre
        return replace(
            self, logit=self.logit - centre, events_logit=self.events_logit - centre * self.observed, clusters=None
        )

    @cached_property
    def centre(self) -> float:
        """The mean logit, weighted by the variance of the labels."""
        moments = self.at(0.0, 1.0)
        return moments.covariance / moments.variance if moments.variance > 0 else 0.0

    def at(self, intercept: float, slope: float) -> Moments:
        """Return the moments of O and S at an intercept and a slope."""
        x = intercept + slope * self.logit
        shrunk = np.exp(-np.minimum(np.abs(x), _LARGEST))
        upper = 1.0 / (1.0 + shrunk)
        prob = np.where(x > 0, upper, shrunk * upper)
        variance = self.count * shrunk * upper * upper
        moved = variance * self.logit
        mean = self.count * prob
        return Moments(
            float(self.count @ (np.maximum(x, 0.0) + np.log1p(shrunk))),
            float(mean.sum()),
            float(mean @ self.logit),
            float(variance.sum()),
            float(moved.sum()),
            float(moved @ self.logit),
        )

    def log_norm(self, intercept: float, slope: float) -> float:
        r"""Return :math:`A = \sum \log(1 + e^{a + b l})` alone."""
        x = intercept + slope * self.logit
        return float(self.count @ (np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))))

    def prob(self, intercept: float, slope: float) -> Floats:
        """Return the probability of the event in each cell at an intercept and a slope, ``(n_cells,)``."""
        return 1.0 / (1.0 + np.exp(-np.clip(intercept + slope * self.logit, -_LARGEST, _LARGEST)))

    def log_likelihood(self, intercept: float, moments: Moments, slope: float) -> float:
        """Return the log-likelihood at an intercept and a slope, whose moments are known."""
        return intercept * self.observed + slope * self.events_logit - moments.log_norm

    def intercept(self, slope: float = 1.0, total: float | None = None, start: float = 0.0) -> float:
        """Return the intercept at which a number of events is expected, by default O; infinite for none and all.

        Newton's method for the logit of the mean, which is nearly linear in the intercept, inside a bracket.
        """
        wanted = self.observed if total is None else total
        if wanted <= 0 or wanted >= self.size:
            return -math.inf if wanted <= 0 else math.inf
        goal = math.log(wanted / (self.size - wanted))
        moved = slope * self.logit
        low, high = goal - float(moved.max()), goal - float(moved.min())
        a, before = min(max(start, low), high), math.inf
        for _ in range(_STEPS):
            odds = np.exp(np.clip(a + moved, -_LARGEST, _LARGEST))
            share = self.count / (1.0 + odds)
            rest, mean = float(share.sum()), float(share @ odds)
            variance = float(share @ (odds / (1.0 + odds)))
            gap = math.log(mean / rest) - goal
            low, high = (low, a) if gap > 0 else (a, high)
            new = a - gap * mean * rest / (self.size * variance)
            if abs(new - a) <= _PRECISION * (1 + abs(a)):
                return new
            a = new if low < new < high and abs(gap) < before else (low + high) / 2
            before = abs(gap) / 2
        return a

    @cached_property
    def separation(self) -> float:
        """The slope of separated labels, inf or -inf; 0 if they overlap, NaN if there is no slope."""
        events, others = self.logit[self.events > 0], self.logit[self.events < self.count]
        if not self.varies or not events.size or not others.size:
            return math.nan
        return math.inf if events[0] >= others[-1] else -math.inf if events[-1] <= others[0] else 0.0

    @cached_property
    def fitted(self) -> tuple[float, float]:
        """Intercept and slope of greatest likelihood; the slope is infinite for separated labels, NaN if there is none.

        Newton's method for the slope, with the intercept that belongs to it: the likelihood is concave in the slope.
        """
        if self.separation != 0.0:
            return math.nan, self.separation
        low, high, b, a = -math.inf, math.inf, 1.0, 0.0
        unit = 1 / float(np.ptp(self.logit))
        for _ in range(_STEPS):
            a = self.intercept(b, start=a)
            moments = self.at(a, b)
            gap, information = self.events_logit - moments.mean_logit, moments.of_slope
            low, high = (b, high) if gap > 0 else (low, b)
            step = gap / information if information > 0 else math.copysign(math.inf, gap)
            if abs(step) <= _PRECISION * (abs(b) + unit):
                b += step
                break
            reach = 2 * (abs(b) + unit)
            new = b + min(max(step, -reach), reach)
            b = new if low < new < high else (low + high) / 2
            if abs(b) > _STEEP * unit:  # only cells of logits overlap, not the logits
                return math.nan, math.copysign(math.inf, b)
        return self.intercept(b, start=a), b

    @cached_property
    def raw_fit(self) -> tuple[float, float]:
        """`fitted` of the logits as they are."""
        a, b = self.centred.fitted
        return (a - b * self.centre if math.isfinite(b) else a), b


def between_round_numbers(logit: Floats) -> Integers:
    """Return the intervals between `ROUND_NUMBERS` in which predictions lie.

    A prediction that is a round number belongs to the side of one half, so that the intervals of the complement are
    mirror images: .2 lies between .2 and .3, and .8 between .7 and .8. One half has an interval.
    """
    return np.searchsorted(_CUTS, logit, side="right")


@dataclass(frozen=True, eq=False)
class _Cut:
    """Cells of finite logits: each value, where there are few, or intervals of equal width, cut at round numbers."""

    values: Floats | None
    low: float
    scale: float
    n_cells: int

    @classmethod
    def of(cls, logit: Floats) -> _Cut:
        """Return the cells of logits, which may be infinite."""
        finite = logit[np.isfinite(logit)]
        if len(finite) <= _MANY:
            return cls.at(logit)
        return cls.between(float(finite.min()), float(finite.max()))

    @classmethod
    def at(cls, logit: Floats) -> _Cut:
        """Return the values of logits, which may be infinite."""
        values = np.unique(logit[np.isfinite(logit)])
        return cls(values, 0.0, 0.0, len(values))

    @classmethod
    def of_sample(cls, sample: Sample) -> _Cut:
        """Return the cells of the logits of a sample, which is sorted."""
        if sample.n_samples <= _MANY:
            return cls.of(logits(sample))
        event = sample.given[:, 1]
        inside = slice(np.searchsorted(event, 0, "right"), np.searchsorted(event, 1, "left"))
        ends = logits_of(sample.given[inside][[0, -1]].astype(np.float64)) if len(event[inside]) else np.zeros(2)
        return cls.between(*np.clip(ends, -_FARTHEST, _FARTHEST).tolist())

    @classmethod
    def between(cls, first: float, last: float) -> _Cut:
        """Return intervals between the smallest and the largest logit; far ones do not make all of them wide."""
        low, high = max(first, -_FAR), min(last, _FAR)
        if high <= low:
            low, high = first, last
        return cls(None, low, _N_CELLS / max(high - low, 1e-9), _N_CELLS + len(_CUTS))

    def index(self, logit: Floats) -> Integers:
        """Return the cell of each logit."""
        if self.values is not None:
            return np.searchsorted(self.values, logit)
        narrow = np.clip((logit - self.low) * self.scale, 0, _N_CELLS - 1).astype(np.int64)
        return narrow + between_round_numbers(logit)


def _blocks(sample: Sample) -> Iterator[tuple[Floats, Floats, Floats, Floats]]:
    """Yield probabilities, logits, weights and weights of events of some observations at a time."""
    for start in range(0, sample.n_samples, _BLOCK):
        rows = slice(start, start + _BLOCK)
        prob, event = sample.given[rows].astype(np.float64), sample.outcome[rows].astype(np.float64)
        count = np.ones(len(event)) if sample.weight is None else sample.weight[rows]
        yield prob[:, 1], logits_of(prob), count, event * count
