"""Calibration in the large: observed over expected number of events."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Unpack

from numpy.typing import ArrayLike

from caltest.estimation._options import EventDesignOptions
from caltest.estimation.event._event_cells import FEWEST_EVENTS, FEWEST_GROUPS, EventCells
from caltest.estimation.event._event_count import EventCount
from caltest.estimation.event._event_estimate import EventEstimate, event_cells, show_interval
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._validation import validate_level
from caltest.resampling.draws._timed_draws import FEWEST_WINDOWS
from caltest.results import ConfidenceInterval
from caltest.results._decision import level_of
from caltest.results._description import counted

_NAN = float("nan")
UNKNOWN = ConfidenceInterval(_NAN, _NAN)
"""The interval where there is none."""
NOTHING = "There is no interval and nothing is tested"
_SLOPES = 0.2, 5.0  # between which the fitted slope is used, as that of few labels is not known well
_SAME = 1e-6  # slopes that differ by less from 1


def nothing_known(cells: EventCells) -> str:
    """Return why there is no interval with so few groups or so little time; empty if there are enough."""
    if cells.n_windows < FEWEST_WINDOWS:
        return f"{NOTHING}: the time is worth only {cells.n_windows:.2g} leads, and it takes {FEWEST_WINDOWS} or more."
    n = FEWEST_GROUPS if cells.clusters is None else cells.clusters.n_groups
    why = f"{NOTHING}: {counted(n, 'independent group')} cannot show how groups differ; at least {FEWEST_GROUPS} can."
    return why if n < FEWEST_GROUPS else ""


@dataclass(frozen=True, eq=False)
class InTheLarge:
    """Calibration in the large.

    Attributes
    ----------
    ratio : float
        Observed over expected number of events; NaN if no event was expected.
    ratio_interval, intercept_interval : ConfidenceInterval
        The interval of the ratio, and the same in shifts of the logits.
    intercept : float
        The shift of all logits by which as many events are expected as happened.
    pvalue : float
        Two-sided p-value of "the ratio is 1"; 1 where nothing can be tested.
    reason : str
        Why there is no interval; may be empty.
    """

    ratio: float
    ratio_interval: ConfidenceInterval
    intercept: float
    intercept_interval: ConfidenceInterval
    pvalue: float
    reason: str = ""

    @classmethod
    def of(cls, cells: EventCells, confidence_level: float) -> InTheLarge:
        """Return the numbers of cells."""
        expected = cells.predicted + cells.certain
        ratio = (cells.observed + cells.certain) / expected if expected > 0 else _NAN
        if not cells.size:
            return cls(ratio, UNKNOWN, _NAN, UNKNOWN, 1.0, f"{NOTHING}: all predictions are 0 or 1.")
        missed = level_of(confidence_level) / 2
        count = EventCount(cells)
        intercept = count.estimate
        error, reason = _error_of_groups(cells, intercept)
        if reason:
            return cls(ratio, UNKNOWN, intercept, UNKNOWN, 1.0, reason)
        ends, pvalue = count.interval(missed), count.pvalue(0.0)
        low, high = _expected_events(cells, ends[0], 1.0), _expected_events(cells, ends[1], 1.0)
        slope = min(max(cells.raw_fit[1], _SLOPES[0]), _SLOPES[1])  # NaN stays NaN
        if abs(slope - 1) > _SAME:
            other = EventCount(cells, slope)
            hypothesis = cells.intercept(slope, total=cells.predicted)
            pvalue = max(pvalue, other.pvalue(hypothesis))
            more = other.interval(missed)
            low = min(low, _expected_events(cells, more[0], slope))
            high = max(high, _expected_events(cells, more[1], slope))
        if cells.clusters is not None:
            reach, of_groups = cells.clusters.student(intercept, error, missed)
            pvalue = max(pvalue, of_groups)
            low = min(low, _expected_events(cells, intercept - reach, 1.0))
            high = max(high, _expected_events(cells, intercept + reach, 1.0))
        shifts = (cells.intercept(total=total) for total in (low, high))
        ratios = ((total + cells.certain) / expected for total in (low, high))
        return cls(ratio, ConfidenceInterval(*ratios), intercept, ConfidenceInterval(*shifts), pvalue)


def _expected_events(cells: EventCells, intercept: float, slope: float) -> float:
    """Return the number of events that are expected in the cells at an intercept, which may be infinite."""
    if math.isinf(intercept):
        return 0.0 if intercept < 0 else cells.size
    return cells.at(intercept, slope).mean


def _error_of_groups(cells: EventCells, intercept: float) -> tuple[float, str]:
    """Return the standard error of the shift between groups, if there are any, and why nothing is known."""
    few = nothing_known(cells)
    if few or cells.clusters is None:
        return math.inf, few
    if math.isinf(intercept):
        none = f"there are no {'events' if intercept < 0 else 'non-events'}"
        return math.inf, f"{NOTHING}: {none}, and the groups do not show whether others would have had some."
    error = cells.clusters.intercept_error(intercept)
    return error, "" if math.isfinite(error) else f"{NOTHING}: one group alone decides how many events there are."


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CalibrationInTheLarge(EventEstimate):
    """Result of `calibration_in_the_large`.

    Attributes
    ----------
    estimate : float
        Observed over expected number of events: 1 if the predictions are right on average, above 1 if they are too low.
        NaN if no event was expected.
    confidence_interval : ConfidenceInterval
        Interval for the ratio of the true to the predicted mean probability; NaN where there is none (`reason`).
    pvalue : float
        Two-sided p-value of the hypothesis that the predictions are right on average; 1 where nothing can be tested.
    confidence_level : float
        Probability with which the interval contains its target; `alpha` is 1 minus it.
    predicted, observed : float
        Mean predicted probability, and frequency of the event (weighted means).
    n_events : int
        Number of events.
    expected_events : float
        Sum of the predictions (times weights, whose mean is 1).
    intercept : float
        Calibration intercept with slope 1: the shift of all logits by which as many events are expected as happened.
        Infinite if there are no events, or only events.
    intercept_interval : ConfidenceInterval
        The interval as shifts of the logits.
    reason : str
        Why there is no interval; empty if there is one.
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
    calibration_in_the_large : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> result = caltest.estimation.calibration_in_the_large(y_true, y_prob[:, 1])
    >>> result.n_events, round(result.expected_events, 1), round(result.estimate, 3)
    (150, 150.4, 0.997)
    """

    intercept_interval: ConfidenceInterval

    _title = "Calibration in the large"

    @property
    def direction(self) -> str | None:
        """How the predictions are significantly wrong on average: "too low" or "too high"; None if they are not."""
        return None if not self.rejected else "too low" if self.observed > self.predicted else "too high"

    @property
    def _too_few(self) -> bool:
        others = self.expected_events * (1 / self.predicted - 1) if self.predicted else 0.0
        return bool(self.reason) or min(self.expected_events, others) < FEWEST_EVENTS

    @property
    def conclusion(self) -> str:
        """The decision in words, with the numbers."""
        if self.reason:
            return self.reason
        about = self._subject
        shown = (
            f"{about.compare(self.predicted, self.observed)} (observed/expected {self.estimate:.3g}, {self._numbers})"
        )
        if self.decision == "undecidable":
            few = f"{self.expected_events:.3g} events were expected among {self.n_samples - self.n_impossible}"
            return f"It cannot be told whether the predictions are right on average, as {few}: {shown}."
        if self.decision == "not rejected":
            return f"On average no error is found: {shown}. This does not prove that there is none."
        return f"{about.wrong(self.direction or '')}: {shown}."

    @property
    def _rows(self) -> list[tuple[str, str, str, str]]:
        return [
            ("observed/expected", f"{self.estimate:.4g}", show_interval(self.confidence_interval), "1"),
            ("intercept (slope 1)", f"{self.intercept:.4g}", show_interval(self.intercept_interval), "0"),
        ]


@reads_arguments
def calibration_in_the_large(
    y_true: ArrayLike, y_prob: ArrayLike, *, confidence_level: float = 0.95, **options: Unpack[EventDesignOptions]
) -> CalibrationInTheLarge:
    r"""Estimate calibration in the large, the ratio of observed to expected events, with interval and p-value.

    The estimate is :math:`\sum_i y_i / \sum_i p_i`. Its target is the ratio :math:`\sum_i \pi_i / \sum_i p_i` with the
    true probabilities :math:`\pi_i` of these observations. The model is a shift of the logits,

    .. math:: \operatorname{logit} \pi_i = a + b \operatorname{logit} p_i, \qquad b = 1,

    so that a ratio belongs to an intercept a, and no ratio is beyond what probabilities allow. The interval holds the
    ratios at which neither tail of the number of events is below half of 1 - ``confidence_level``; the p-value is twice
    the smaller tail at a = 0. The tails are exact where the variance of the number of events is below 40 (sums over
    binomial numbers), otherwise of the saddlepoint approximation for lattices, whose relative error is below .003
    there. If predictions are too extreme, the number of events varies more than with b = 1. So the same is done with
    the fitted slope (between 1/5 and 5); the interval is the union, the p-value the larger one. Both are therefore
    conservative, most with few events, because the number of events is discrete.

    The calibration intercept has two conventions. `intercept` of this result has the slope fixed at 1 and is the ratio
    on another scale: it is 0 if the ratio is 1. The intercept that is fitted together with the slope is that of
    `calibration_slope`; it is not a measure of calibration in the large.

    Predictions of exactly 0 and 1 count as expected and as observed events, but do not shift. Labels that were given
    probability 0 are left out, with a note.

    Parameters
    ----------
    lens : lens, optional
        A lens with two outcomes; by default the event of two classes. More than two classes need one.
    confidence_level : float
        Probability with which the interval contains its target.

    Returns
    -------
    CalibrationInTheLarge
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
    calibration_slope : Whether differences between low and high predictions are right.
    caltest.cox_test : Intercept and slope, tested with simulated labels.
    l2_interval : How far predictions are wrong, whatever the form of the error.

    Notes
    -----
    For independent observations the p-value is valid at every number of observations where the tails are exact: it is
    never below the exact one. Simulated coverage is in docs/how-much.md.

    With ``groups`` the union also holds the interval of the jackknife over groups (the standard error CR3) for the
    shift, with the t distribution of (number of groups - 1) degrees of freedom; the p-value is the largest one. Fewer
    than 6 groups have no interval, and neither have groups without any event. With ``sample_weight`` the weighted sum
    of the events is standardised, its skewness removed (Hall 1992), and compared with a normal distribution.

    With ``time`` and ``lead`` the same is done with weights whose squares are multiplied by the inflation of the
    residuals, raised by one standard error, and whose cubes by its square. It is the number by which
    `caltest.calibration_test` divides: how much more the residuals vary together than those of independent labels.
    With fewer than 20 stretches of time as long as the lead, or 20 labels other than the most probable one expected,
    it is the largest one that labels with this lead can have; fewer than 5 such stretches have no interval.

    References
    ----------
    Y. Vergouwe, E. W. Steyerberg, M. J. C. Eijkemans and J. D. F. Habbema (2005), Substantial effective sample sizes
    were required for external validation studies of predictive logistic regression models, Journal of Clinical
    Epidemiology 58, 475-483: the quantity.
    R. Lugannani and S. Rice (1980), Saddle point approximation for the distribution of the sum of independent random
    variables, Advances in Applied Probability 12, 475-490.
    P. Hall (1992), The bootstrap and Edgeworth expansion, section 3.9.

    Examples
    --------
    Eighteen events where ten are expected:

    >>> from caltest.estimation import calibration_in_the_large
    >>> y_true, y_prob = [1] * 18 + [0] * 22, [0.25] * 40
    >>> large = calibration_in_the_large(y_true, y_prob)
    >>> large.estimate, [round(end, 2) for end in large.confidence_interval], round(large.pvalue, 3)
    (1.8, [1.17, 2.46], 0.009)
    >>> large.direction
    'too low'
    """
    level = validate_level(confidence_level, "confidence_level")
    cells, about = event_cells(y_true, y_prob, options)
    found = InTheLarge.of(cells, level)
    return CalibrationInTheLarge(
        **about,
        estimate=found.ratio,
        confidence_interval=found.ratio_interval,
        pvalue=found.pvalue,
        confidence_level=level,
        intercept=found.intercept,
        intercept_interval=found.intercept_interval,
        reason=found.reason if not math.isnan(found.ratio) else _NO_EVENT,
    )


_NO_EVENT = "There is no ratio: the predictions are all 0, so that no event is expected."
