"""Predictions of an event in cells of equal or nearly equal logits, and logistic models of its probability."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from caltest.estimation.event._clusters import Clusters
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._sample import Sample
from caltest.predictions.inputs._parts import effective_number, sums_in_parts
from caltest.statistics._recalibration_scores import logits

_MANY, _N_CELLS = 1_500, 1_024  # predictions that are kept, and cells of more
_LOWEST, _HIGHEST = -37.0, 37.0  # logits between which cells are cut; 1 - 2^-53 has 36.7
_EQUAL = 1e-12  # logits that differ by less are equal
_LARGEST = 700.0  # whose exponential is a number
_STEPS, _PRECISION = 100, 1e-12
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

    @classmethod
    def of(cls, sample: Sample) -> EventCells:
        """Return the cells of a sample of two outcomes; use ``sample.once(EventCells.of)``."""
        logit, weight = logits(sample), sample.weight_or_ones
        cells = cls.of_counts(sample.event, weight, weight * sample.outcome, logit)
        if sample.weight is None and sample.group is None:
            return cells
        finite, event = np.isfinite(logit), sample.outcome > 0
        possible = finite | (event == (logit > 0))
        n_samples = int(np.count_nonzero(possible))
        logit, weight, inside = logit[finite], weight[finite], event[finite]
        index, n_cells = _cells_of(logit)
        weighted = sample.weight is not None
        return replace(
            cells,
            n_samples=n_samples,
            n_events=int(np.count_nonzero(event & possible)),
            n_impossible=sample.n_samples - n_samples,
            worth=(effective_number(weight[inside]), effective_number(weight[~inside])),
            squares=sums_in_parts(index, weight**2, n_cells) if weighted else None,
            cubes=sums_in_parts(index, weight**3, n_cells) if weighted else None,
            clusters=None if sample.group is None else Clusters.of(logit, inside, weight, sample.group[finite]),
        )

    @classmethod
    def of_counts(cls, prob: Floats, count: Floats, events: Floats, logit: Floats | None = None) -> EventCells:
        """Return the cells of probabilities in [0, 1] with numbers (weights) of observations and of events.

        The numbers need not be whole, as those of a stream are not, except where a label is impossible.
        """
        if logit is None:
            with np.errstate(divide="ignore"):
                logit = np.log(prob) - np.log1p(-prob)
        excluded = certain = impossible = 0.0
        inside = np.isfinite(logit)
        if not inside.all():
            sure, never = logit == np.inf, logit == -np.inf
            certain, excluded = float(events[sure].sum()), float((count - events)[never].sum())
            impossible = float((count - events)[sure].sum() + events[never].sum())
            prob, count, events, logit = prob[inside], count[inside], events[inside], logit[inside]
        index, n_cells = _cells_of(logit)
        size = sums_in_parts(index, count, n_cells)
        total, happened = float(count.sum()), float(events.sum())
        return cls(
            logit=sums_in_parts(index, count * logit, n_cells) / size,
            count=size,
            events=sums_in_parts(index, events, n_cells),
            events_logit=float(events @ logit),
            predicted=float(count @ prob),
            certain=certain,
            excluded=excluded,
            n_samples=round(total + certain + excluded),
            n_events=round(happened + certain),
            n_impossible=round(impossible),
            worth=(happened, total - happened),
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
        low, high, a, reach = -math.inf, math.inf, start, 1.0
        moved = slope * self.logit
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
            if not low < new < high:
                inside = math.isfinite(low) and math.isfinite(high)
                new = (low + high) / 2 if inside else a - math.copysign(reach, gap)
                reach *= 2
            a = new
        return a

    @cached_property
    def separation(self) -> float:
        """The slope of separated labels, inf or -inf; 0 if they overlap, NaN if there is no slope."""
        events, others = self.logit[self.events > 0], self.logit[self.events < self.count]
        if not self.varies or not events.size or not others.size:
            return math.nan
        if events[0] >= others[-1]:
            return math.inf
        return -math.inf if events[-1] <= others[0] else 0.0

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


def _cells_of(logit: Floats) -> tuple[Integers, int]:
    """Return the cell of each finite logit, and the number of cells, of which none is empty."""
    if len(logit) <= _MANY:
        values, index = np.unique(logit, return_inverse=True)
        return index, len(values)
    low, high = max(float(logit.min()), _LOWEST), min(float(logit.max()), _HIGHEST)
    if high <= low:
        low, high = float(logit.min()), float(logit.max())
    scale = _N_CELLS / max(high - low, 1e-9)
    index = np.clip((logit - low) * scale, 0, _N_CELLS - 1).astype(np.int64)
    used = np.bincount(index, minlength=_N_CELLS) > 0
    return (np.cumsum(used) - 1)[index], int(used.sum())
