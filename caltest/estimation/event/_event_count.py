"""Tails of the number of events at every intercept of a logistic model whose slope is fixed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from caltest._compiled._poisson_binomial import convolve_binomials
from caltest.estimation.event._event_cells import EventCells
from caltest.predictions._arrays import Floats
from caltest.predictions.inputs._parts import sums_in_parts
from caltest.resampling.distributions._base import SMALLEST_PVALUE
from caltest.resampling.distributions._root import root_between

_EXACT_BELOW = 40.0  # variance of a number of events whose distribution is convolved
_FURTHER, _REACH = 50, 12.0  # counts that are kept: so many, and so many standard deviations, above the mean
_MOST_CELLS = 512  # that are convolved
_NEAR = 1e-4  # standard deviations from the mean, where the saddlepoint formula is 0 / 0
_STEPS, _PRECISION = 60, 1e-8
_MOST_SKEWED = 0.25  # a sixth of the standardised third moment
MOST_OF_WEIGHTED = 0.12
"""The same of a weighted sum, which is compared with a normal distribution: with more, 2 and 6 would be alike."""
_ROOT_2PI = math.sqrt(2 * math.pi)


@dataclass(frozen=True, eq=False)
class EventCount:
    r"""The number of events O of cells whose logits are multiplied by a slope, at every intercept a.

    :math:`P_a(O = k)` is proportional to :math:`c_k e^{ak}`. Where the variance is below 40, the distribution is
    convolved once and tilted: exact. Otherwise (Lugannani and Rice 1980, with the correction for a lattice), s with
    :math:`A'(s) = o - 1/2` is found once, and for every a

    .. math:: w^2 = 2 [(s - a) (o - \tfrac12) - A(s) + A(a)], \quad u = 2 \sinh \tfrac{s - a}2 \sqrt{A''(s)}, \quad
              P_a(O \ge o) = \Phi(-w) + \varphi(w) \Bigl(\frac1u - \frac1w\Bigr),

    with a relative error of at most .0025 from 30 expected events on. With weights O is a weighted sum, whose
    standardised value is compared with a normal distribution after its skewness was removed.

    Attributes
    ----------
    cells : EventCells
        The cells.
    slope : float
        What the logits are multiplied by.
    """

    cells: EventCells
    slope: float = 1.0

    @cached_property
    def estimate(self) -> float:
        """The intercept at which as many events are expected as happened; infinite for none and all."""
        return self.cells.intercept(self.slope)

    @cached_property
    def _start(self) -> float:
        """The estimate, or where half an event (or non-event) is expected."""
        size, observed = self.cells.size, self.cells.observed
        return self.cells.intercept(self.slope, total=min(max(observed, min(0.5, size / 2)), max(size - 0.5, size / 2)))

    def pvalue(self, intercept: float) -> float:
        """Return the two-sided p-value of an intercept: twice the smaller tail of O, at most 1."""
        if self.cells.squares is not None:
            tails = self._below(intercept), self._above(intercept)
        elif self.cells.at(intercept, self.slope).variance < _EXACT_BELOW:  # convolved there, as it may be far away
            tails = self._of_masses(_masses(self.cells, intercept, self.slope), 0.0)[:2]
        else:
            tails = self._saddlepoint(intercept, 0.5, -1.0), self._saddlepoint(intercept, -0.5, 1.0)
        return min(1.0, max(2 * min(tails), SMALLEST_PVALUE))

    def mass(self, intercept: float) -> float:
        """Return the probability of the observed number of events at an intercept."""
        if self.cells.at(intercept, self.slope).variance < _EXACT_BELOW:
            return self._of_masses(_masses(self.cells, intercept, self.slope), 0.0)[2]
        return max(self._saddlepoint(intercept, -0.5, 1.0) - self._saddlepoint(intercept, 0.5, 1.0), 0.0)

    def interval(self, missed: float) -> tuple[float, float]:
        """Return the intercepts at which a tail has the probability ``missed``: the lower, and the upper one."""
        low = high = self.estimate
        if low > -math.inf:
            low = self._end(self._above, missed, -1.0)
        if high < math.inf:
            high = self._end(self._below, missed, 1.0)
        return low, high

    def _end(self, tail: Callable[[float], float], missed: float, sign: float) -> float:
        """Return where a tail, which decreases away from the estimate, has a probability."""

        def gap(a: float) -> float:
            return math.log(max(tail(a), SMALLEST_PVALUE) / missed)

        variance = self.cells.at(self._start, self.slope).variance
        return outward_root(gap, self._start, sign * 2.2 / math.sqrt(max(variance, 0.2)))

    @cached_property
    def _near(self) -> tuple[int, Floats] | None:
        """The distribution at the estimate, if it is convolved."""
        if self.cells.at(self._start, self.slope).variance >= _EXACT_BELOW:
            return None
        return _masses(self.cells, self._start, self.slope)

    def _above(self, intercept: float) -> float:
        """Return the probability of as many events or more."""
        if self.cells.squares is not None:
            return _normal(-self._standardised(intercept))
        if self._near is not None:
            return self._of_masses(self._near, intercept - self._start)[1]
        return self._saddlepoint(intercept, -0.5, 1.0)

    def _below(self, intercept: float) -> float:
        """Return the probability of as many events or fewer."""
        if self.cells.squares is not None:
            return _normal(self._standardised(intercept))
        if self._near is not None:
            return self._of_masses(self._near, intercept - self._start)[0]
        return self._saddlepoint(intercept, 0.5, -1.0)

    def _of_masses(self, masses: tuple[int, Floats], tilt: float) -> tuple[float, float, float]:
        """Return the probabilities of O or fewer, of O or more, and of O, of a tilted distribution from a count on."""
        first, mass = masses
        with np.errstate(divide="ignore"):
            tilted = np.log(mass) + tilt * np.arange(len(mass))
        tilted = np.exp(tilted - tilted.max())
        tilted /= tilted.sum()
        here = min(max(round(self.cells.observed) - first, 0), len(mass) - 1)
        return float(tilted[: here + 1].sum()), float(tilted[here:].sum()), float(tilted[here])

    @cached_property
    def _saddles(self) -> dict[float, tuple[float, float, float]]:
        """For points half an event beside O: the intercept with this mean, the log norm and the variance."""
        found = {}
        for side in (-0.5, 0.5):
            point = self.cells.observed + side
            if 0 < point < self.cells.size:
                a = self.cells.intercept(self.slope, total=point, start=self._start)
                moments = self.cells.at(a, self.slope)
                found[side] = a, moments.log_norm, moments.variance
        return found

    def _saddlepoint(self, intercept: float, side: float, sign: float) -> float:
        """Return the probability of more events than ``O + side``, or of fewer for the sign -1."""
        if side not in self._saddles:
            return float((side < 0) == (sign > 0))
        s, log_norm, variance = self._saddles[side]
        t, point = s - intercept, self.cells.observed + side
        if abs(t) * math.sqrt(variance) < _NEAR:
            return 0.5
        square = 2 * (t * point - log_norm + self.cells.log_norm(intercept, self.slope))
        w = sign * math.copysign(math.sqrt(max(square, 0.0)), t)
        u = sign * 2 * math.sinh(t / 2) * math.sqrt(variance)
        tail = _normal(-w) + math.exp(-w * w / 2) / _ROOT_2PI * (1 / u - 1 / w)
        return min(max(tail, 0.0), 1.0)

    def _standardised(self, intercept: float) -> float:
        """Return the weighted number of events minus its mean, over its standard deviation, without skewness."""
        cells = self.cells
        assert cells.squares is not None
        assert cells.cubes is not None
        prob = cells.prob(intercept, self.slope)
        spread = prob * (1 - prob)
        third = float(cells.cubes @ (spread * (1 - 2 * prob)))
        deviation, variance = cells.observed - float(cells.count @ prob), float(cells.squares @ spread)
        return float(without_skewness(deviation, variance, third, MOST_OF_WEIGHTED))


def without_skewness(deviation: Any, variance: Any, third: Any, most: float = _MOST_SKEWED) -> Any:
    """Return deviations over their standard deviation, made symmetric by their third moment, a sixth at ``most``.

    The cubic of Hall (1992, section 3.9), which increases everywhere, unlike the quadratic of Cornish and Fisher.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = deviation / np.sqrt(variance)
        q = np.clip(np.divide(third, variance) / np.sqrt(variance) / 6, -most, most)  # floats of Python refuse 0
        skewed = q * z
        standardised = q + z * (1 - skewed * (1 - skewed / 3))
    return np.where(variance > 0, standardised, np.where(deviation == 0, 0.0, np.copysign(np.inf, deviation)))[()]


def outward_root(gap: Callable[[float], float], start: float, step: float) -> float:
    """Return where a decreasing gap is 0, looking from the start in the direction of the step; infinite if nowhere."""
    near, value = start, gap(start)
    if value <= 0:
        return start
    for _ in range(_STEPS):
        far = near + step
        if (beyond := gap(far)) <= 0:
            return root_between(gap, near, far, _PRECISION * (1 + abs(far))) if beyond < 0 else far
        near, step = far, 1.6 * step
    return math.copysign(math.inf, step)


def _masses(cells: EventCells, intercept: float, slope: float) -> tuple[int, Floats]:
    """Return the distribution of the number of events: the first number, and probabilities from there on.

    Likely events are counted down from certain, so that few numbers are possible and an event is its mirror image.
    """
    prob = cells.prob(intercept, slope)
    likely = prob > 0.5
    rare, common = _sum(prob[~likely], cells.count[~likely]), _sum(1 - prob[likely], cells.count[likely])
    mass = np.maximum(np.convolve(rare, common[::-1]), 0.0)
    return round(float(cells.count[likely].sum())) - (len(common) - 1), mass


def _sum(prob: Floats, count: Floats) -> Floats:
    if len(prob) > _MOST_CELLS:  # of nearly equal probabilities: their mean stays, their variance nearly
        index = np.arange(len(prob)) * _MOST_CELLS // len(prob)
        size, total = sums_in_parts(index, count, _MOST_CELLS), sums_in_parts(index, count * prob, _MOST_CELLS)
        prob, count = total / size, size
    mean, variance = float(count @ prob), float(count @ (prob * (1 - prob)))
    most = min(math.ceil(float(count.sum())), math.ceil(mean + _REACH * math.sqrt(variance)) + _FURTHER)
    mass = np.eye(1, most + 1)[0]
    convolve_binomials(prob, count, np.empty_like(mass), mass)
    return mass


def _normal(z: float) -> float:
    """Return the standard normal distribution function."""
    return math.erfc(-z / math.sqrt(2)) / 2
