"""The slope of a logistic recalibration, with an interval and a p-value, from cells."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from caltest.estimation.event._event_cells import FEWEST_EVENTS, EventCells, Moments
from caltest.estimation.event._event_count import MOST_OF_WEIGHTED, EventCount, outward_root, without_skewness
from caltest.estimation.event._in_the_large import NOTHING, UNKNOWN, nothing_known
from caltest.predictions._arrays import Floats
from caltest.resampling.distributions._base import SMALLEST_PVALUE
from caltest.results import ConfidenceInterval
from caltest.results._decision import level_of

_NAN = float("nan")
_STEEP = 50.0  # a slope that hardly leaves any label uncertain, over the spread of the logits
_NEAR = 1e-2  # values of r, where the correction is 0 / 0
_STEP = 0.05  # standard errors beside the estimate, where it is known


@dataclass(frozen=True, eq=False)
class Slope:
    """The calibration slope.

    Attributes
    ----------
    slope : float
        The slope of greatest likelihood: infinite for separated labels, NaN if there is none.
    intercept : float
        The intercept that was fitted with it.
    interval : ConfidenceInterval
        The interval of the slope.
    pvalue : float
        Two-sided p-value of "the slope is 1"; 1 where nothing can be tested.
    reason : str
        Why there is no slope or no interval, or why it has one end; may be empty.
    """

    slope: float
    intercept: float
    interval: ConfidenceInterval
    pvalue: float
    reason: str = ""

    @classmethod
    def of(cls, cells: EventCells, confidence_level: float) -> Slope:
        """Return the numbers of cells."""
        missing = _no_slope(cells)
        if missing:
            return cls(_NAN, _NAN, UNKNOWN, 1.0, missing)
        missed = level_of(confidence_level) / 2
        centred = cells.centred
        evidence = _Weighted(centred) if cells.squares is not None else _SignedRoot(centred)
        intercept, slope = cells.raw_fit
        if reason := nothing_known(cells):
            return cls(slope, intercept, UNKNOWN, 1.0, reason)
        if cells.clusters is not None:
            error = cells.clusters.slope_error(intercept, slope) if math.isfinite(slope) else math.inf
            if not math.isfinite(error):
                return cls(slope, intercept, UNKNOWN, 1.0, f"{NOTHING}: without one group there is no slope.")
        low, high = evidence.interval(missed)
        pvalue = max(2 * _upper_tail(abs(evidence.root(1.0))), SMALLEST_PVALUE)
        if cells.clusters is not None:
            reach, of_groups = cells.clusters.student(slope - 1, error, missed)
            pvalue = max(pvalue, of_groups)
            low, high = min(low, slope - reach), max(high, slope + reach)
        return cls(slope, intercept, ConfidenceInterval(low, high), min(pvalue, 1.0), _one_sided(slope, low, high))


def _no_slope(cells: EventCells) -> str:
    """Return why there is no slope; empty if there is one."""
    for number, what in zip(cells.worth, ("events", "non-events"), strict=True):
        if number < FEWEST_EVENTS:
            return (
                f"There is no slope: it takes at least {FEWEST_EVENTS:g} events and {FEWEST_EVENTS:g} non-events whose "
                f"predictions are neither 0 nor 1; the number of {what} is {number:.3g}."
            )
    return "" if cells.varies else "There is no slope: all predictions are equal."


def _one_sided(slope: float, low: float, high: float) -> str:
    """Return why an interval has one end; empty if it has both."""
    if math.isfinite(low) and math.isfinite(high):
        return ""
    if math.isinf(slope):
        better = "larger" if slope > 0 else "smaller"
        return f"All events have {better} predictions than the non-events, so that no finite slope is the best one."
    return "These data do not exclude slopes on both sides of the estimate."


class _SignedRoot:
    r"""The corrected signed root of the likelihood ratio, about standard normal at the true slope.

    .. math:: r(b) = \operatorname{sign}(\hat b - b) \sqrt{2 (\ell(\hat a, \hat b) - \ell(a_b, b))}, \quad
              u = (\hat b - b) \sqrt{|j(\hat a, \hat b)| / j_{aa}(a_b, b)}, \quad r^* = r + \log(u / r) / r,

    the saddlepoint approximation of the distribution of :math:`\sum y l` given the number of events (Skovgaard 1987).
    Where the labels are separated, this sum is the largest (smallest) one that is possible. Its probability is the
    likelihood times the number of orders of the labels over the probability of the number of events: exact.
    """

    def __init__(self, cells: EventCells) -> None:
        self._cells = cells
        self._a, self._b = cells.fitted
        if math.isfinite(self._b):
            best = cells.at(self._a, self._b)
            self._best, self._information = best, best.of_slope
            self._largest = cells.log_likelihood(self._a, best, self._b)
        self._start = cells.intercept(0.0)

    def interval(self, missed: float) -> tuple[float, float]:
        """Return the slopes between which no tail is below ``missed``."""
        z = _upper_quantile(missed)
        if math.isinf(self._b):
            start = math.copysign(_STEEP / float(np.ptp(self._cells.logit)), self._b)
            end = outward_root(lambda b: self._log_tail(b) - math.log(missed), start, -start / _STEEP)
            return (end, math.inf) if self._b > 0 else (-math.inf, end)
        unit = 1 / math.sqrt(self._information)
        low = outward_root(lambda b: z - self.root(b), self._b, -2 * unit)
        high = outward_root(lambda b: z + self.root(b), self._b, 2 * unit)
        return low, high

    def root(self, b: float) -> float:
        """Return r*, which is positive if the estimate is larger than b."""
        if math.isinf(self._b):
            tail = min(math.exp(self._log_tail(b)), 0.5)
            return math.copysign(_upper_quantile(max(tail, SMALLEST_PVALUE)), self._b)
        r, u = self._pair(b)
        if abs(r) >= _NEAR:
            return r + math.log(u / r) / r
        step = _STEP / math.sqrt(self._information)
        beside = (self._pair(self._b + side * step) for side in (-1.0, 1.0))
        return r + sum(math.log(w / s) / s for s, w in beside) / 2

    def _pair(self, b: float) -> tuple[float, float]:
        moments, likelihood, _ = self._profile(b)
        r = math.copysign(math.sqrt(max(2 * (self._largest - likelihood), 1e-300)), self._b - b)
        scale = self._best.variance / moments.variance if moments.variance > 0 else 1.0
        return r, (self._b - b) * math.sqrt(self._information * scale)

    def _profile(self, b: float) -> tuple[Moments, float, float]:
        """Return the moments, the likelihood and the intercept where the intercept is the most likely one."""
        a = self._start = self._cells.intercept(b, start=self._start)  # the next slope is near
        moments = self._cells.at(a, b)
        return moments, self._cells.log_likelihood(a, moments, b), a

    @cached_property
    def _log_orders(self) -> float:
        """Logarithm of the number of orders of the labels within cells."""
        from scipy.special import gammaln

        n, k = self._cells.count, self._cells.events
        return float((gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)).sum())

    def _log_tail(self, b: float) -> float:
        _, likelihood, a = self._profile(b)
        here = EventCount(self._cells, b).mass(a)
        return min(likelihood + self._log_orders - math.log(max(here, SMALLEST_PVALUE)), 0.0)


class _Weighted:
    """The score of the slope with a free intercept, with weights: standardised, its skewness removed."""

    def __init__(self, cells: EventCells) -> None:
        self._cells = cells
        self._b = cells.fitted[1]
        self._start = cells.intercept(0.0)
        self._unit = 1 / float(np.ptp(cells.logit))

    def interval(self, missed: float) -> tuple[float, float]:
        """Return the slopes between which no tail is below ``missed``."""
        z = _upper_quantile(missed)
        ends = []
        for sign in (-1.0, 1.0):
            if self._b == sign * math.inf:
                ends.append(self._b)
                continue
            start = self._b if math.isfinite(self._b) else -sign * _STEEP * self._unit
            ends.append(outward_root(_crossing(self.root, -sign, z), start, sign * self._unit))
        return ends[0], ends[1]

    def root(self, b: float) -> float:
        """Return the standardised score, which is positive if the estimate is larger than b."""
        cells = self._cells
        assert cells.squares is not None
        assert cells.cubes is not None
        a = cells.intercept(b, start=self._start)
        prob = cells.prob(a, b)
        spread: Floats = prob * (1 - prob)
        mass = cells.count * spread
        total = float(mass.sum())
        distance = cells.logit - (float(mass @ cells.logit) / total if total > 0 else 0.0)
        deviation = cells.events_logit - float((cells.count * prob) @ cells.logit)
        third = float((cells.cubes * spread * (1 - 2 * prob)) @ distance**3)
        variance = float((cells.squares * spread) @ distance**2)
        return float(without_skewness(deviation, variance, third, MOST_OF_WEIGHTED))


def _crossing(root: Callable[[float], float], sign: float, z: float) -> Callable[[float], float]:
    """Return what is 0 where a root is z with a sign, and positive before."""
    return lambda b: z - sign * root(b)


def _upper_tail(z: float) -> float:
    return math.erfc(z / math.sqrt(2)) / 2


def _upper_quantile(tail: float) -> float:
    from scipy.special import ndtri

    return -float(ndtri(tail))
