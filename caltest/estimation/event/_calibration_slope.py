"""The calibration slope: whether differences between low and high predictions are right."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest.estimation._options import EventDesignOptions
from caltest.estimation.event._calibration_in_the_large import NOTHING, UNKNOWN, nothing_known
from caltest.estimation.event._event_cells import FEWEST_EVENTS, EventCells, Moments
from caltest.estimation.event._event_count import MOST_OF_WEIGHTED, EventCount, outward_root, without_skewness
from caltest.estimation.event._event_estimate import EventEstimate, event_cells, show_interval
from caltest.predictions._arrays import Floats
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._validation import validate_level
from caltest.resampling.distributions._base import SMALLEST_PVALUE
from caltest.results import ConfidenceInterval, Note
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
        pvalue = max(math.erfc(abs(evidence.root(1.0)) / math.sqrt(2)), SMALLEST_PVALUE)
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


def _upper_quantile(tail: float) -> float:
    from scipy.special import ndtri

    return -float(ndtri(tail))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CalibrationSlope(EventEstimate):
    """Result of `calibration_slope`.

    Attributes
    ----------
    estimate : float
        The slope of the logits: 1 if the differences between predictions are right, below 1 if the predictions are too
        extreme. Infinite if the predictions separate the labels, NaN if there is none (`reason`).
    confidence_interval : ConfidenceInterval
        Interval for the slope. One end may be infinite, both are NaN where there is none (`reason`).
    pvalue : float
        Two-sided p-value of the hypothesis that the slope is 1; 1 where nothing can be tested.
    confidence_level : float
        Probability with which the interval contains its target; `alpha` is 1 minus it.
    predicted, observed : float
        Mean predicted probability, and frequency of the event (weighted means).
    n_events : int
        Number of events.
    expected_events : float
        Sum of the predictions (times weights, whose mean is 1).
    intercept : float
        The intercept that is fitted together with the slope.
    reason : str
        Why there is no slope or no interval, or why the interval has a single end; empty otherwise.
    lens, lens_name : lens, str
        The lens, and what it looks at in words.
    n_samples, n_impossible : int
        Number of observations, and of those whose label had been given probability 0; the latter are left out of all
        other numbers.
    n_groups, weighted : int or None, bool
        Number of groups, if only these are independent, and whether observations have weights.
    lead : str or None
        How long after their predictions labels are known, if those of several times depend on each other.
    notes : tuple of Note
        Cautions.

    See Also
    --------
    calibration_slope : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel, Temperature
    >>> _, y_true, y_prob = DirichletModel(2, truth=Temperature(2.0)).draw(300, rng=0)
    >>> slope = caltest.estimation.calibration_slope(y_true, y_prob[:, 1])
    >>> round(slope.estimate, 2), [round(float(end), 2) for end in slope.confidence_interval]
    (0.42, [0.27, 0.58])
    """

    _title = "Calibration slope"

    @property
    def direction(self) -> str | None:
        """How the slope is significantly wrong: "too extreme" or "not extreme enough"; None if it is not."""
        return None if not self.rejected else "too extreme" if self.estimate < 1 else "not extreme enough"

    @property
    def conclusion(self) -> str:
        """The decision in words, with the numbers."""
        if self._too_few:
            return self.reason
        slope = "" if math.isinf(self.estimate) else f" {self.estimate:.3g}"
        shown = f"(calibration slope{slope}, {self._numbers}).{f' {self.reason}' if self.reason else ''}"
        if not self.rejected:
            return f"No wrong slope is found {shown} This does not prove that the slope is right."
        if self.confidence_interval.high < 0:
            return f"{self._subject.turned.capitalize()} {shown}"
        return f"{self._subject.wrong(self.direction or '')} {shown}"

    @property
    def _rows(self) -> list[tuple[str, str, str, str]]:
        return [
            ("slope", f"{self.estimate:.4g}", show_interval(self.confidence_interval), "1"),
            ("intercept (with this slope)", f"{self.intercept:.4g}", "", "0"),
        ]


@reads_arguments
def calibration_slope(
    y_true: ArrayLike, y_prob: ArrayLike, *, confidence_level: float = 0.95, **options: Unpack[EventDesignOptions]
) -> CalibrationSlope:
    r"""Estimate the calibration slope of predictions of an event, with interval and p-value (Cox 1958).

    The slope is b in :math:`\operatorname{logit} \pi_i = a + b \operatorname{logit} p_i`, by maximum likelihood with a
    free intercept a. Below 1 the predictions are too extreme: low ones too low, high ones too high, but for a shift.
    The interval and the p-value are those of

    .. math:: r^* = r + \frac1r \log\frac ur, \quad
              r = \operatorname{sign}(\hat b - b) \sqrt{2 (\ell(\hat a, \hat b) - \ell(\hat a_b, b))}, \quad
              u = (\hat b - b) \sqrt{\frac{|j(\hat a, \hat b)|}{j_{aa}(\hat a_b, b)}},

    with the log-likelihood :math:`\ell`, the information matrix j and the best intercept :math:`\hat a_b` for b. It is
    a saddlepoint approximation of the distribution of :math:`\sum y_i \operatorname{logit} p_i` given the number of
    events, and about standard normal at the true slope from 5 events on. If the predictions separate the labels, the
    probability of that is computed exactly instead, and the interval has one end.

    The calibration intercept has two conventions. `intercept` of this result is fitted together with the slope. The
    intercept with the slope fixed at 1 is that of `calibration_in_the_large`.

    There is no slope with fewer than 5 events or 5 non-events that were predicted with a probability strictly between 0
    and 1, nor if all of these are equal; `reason` says so.

    Parameters
    ----------
    lens : lens, optional
        A lens with two outcomes; by default the event of two classes. More than two classes need one.
    confidence_level : float
        Probability with which the interval contains its target.

    Returns
    -------
    CalibrationSlope
        Prints as a report.

    Raises
    ------
    TypeError
        If ``lens`` or ``region`` has a wrong type.
    ValueError
        If ``y_prob`` has values outside [0, 1] or does not sum to 1, a label is unknown or lengths differ; if there are
        more than two outcomes; if ``confidence_level`` is not strictly between 0 and 1; if no observation lies in the
        region; if ``lead`` is given without times, is not positive or longer than the data; if ``time`` is given with
        ``groups``.

    See Also
    --------
    calibration_in_the_large : Whether the predictions are right on average.
    caltest.cox_test : Intercept and slope, tested with simulated labels.

    Notes
    -----
    If the true probabilities are no logistic function of the predictions, the target is the slope that a regression on
    infinitely many such observations would have. Simulated coverage is in docs/how-much.md. More than 1,500
    observations are put into 1,024 cells of logits, which moves the slope by less than 1e-4.

    With ``groups`` the interval is the union with that of the jackknife over groups (one step, the standard error CR3)
    with the t distribution of (number of groups - 1) degrees of freedom, and the p-value is the larger one. Fewer than
    6 groups have no interval. With ``sample_weight`` the estimate is that of weighted likelihood. The score of the
    slope with the best intercept is standardised, its skewness removed (Hall 1992), and compared with a normal
    distribution. ``time`` and ``lead`` multiply the squares of the weights by the inflation of the residuals, as in
    `calibration_in_the_large`.

    References
    ----------
    D. R. Cox (1958), Two further applications of a model for binary regression, Biometrika 45, 562-565.
    I. M. Skovgaard (1987), Saddlepoint expansions for conditional distributions, Journal of Applied Probability 24,
    875-887.
    P. Hall (1992), The bootstrap and Edgeworth expansion, section 3.9.

    Examples
    --------
    Events happen in 1/4 of the observations at 0.1 and in 3/4 of those at 0.9, so that logits are halved:

    >>> from caltest.estimation import calibration_slope
    >>> y_true, y_prob = [1, 0, 0, 0] * 10 + [1, 1, 1, 0] * 10, [0.1] * 40 + [0.9] * 40
    >>> slope = calibration_slope(y_true, y_prob)
    >>> round(slope.estimate, 6), slope.direction
    (0.5, 'too extreme')
    """
    level = validate_level(confidence_level, "confidence_level")
    cells, about = event_cells(y_true, y_prob, options)
    found = Slope.of(cells, level)
    about["notes"] = (*about["notes"], *_left_out(cells))
    return CalibrationSlope(
        **about,
        estimate=found.slope,
        confidence_interval=found.interval,
        pvalue=found.pvalue,
        confidence_level=level,
        intercept=found.intercept,
        reason=found.reason,
    )


def _left_out(cells: EventCells) -> tuple[Note, ...]:
    """Return what is said of predictions of 0 and 1, whose logit is infinite."""
    if not cells.certain and not cells.excluded:
        return ()
    share = 100 * (cells.certain + cells.excluded) / cells.total
    text = f"{share:.3g} % of the observations were predicted with exactly 0 or 1, which no slope changes."
    return (Note("C501", text),)
