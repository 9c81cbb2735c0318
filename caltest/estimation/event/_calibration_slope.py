"""The calibration slope: whether differences between low and high predictions are right."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Unpack

from numpy.typing import ArrayLike

from caltest.estimation._options import EventDesignOptions
from caltest.estimation.event._event_cells import EventCells
from caltest.estimation.event._event_estimate import EventEstimate, event_cells, show_interval
from caltest.estimation.event._slope import Slope
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._validation import validate_level
from caltest.results import Note
from caltest.results._description import Description, Table


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

    @property
    def direction(self) -> str | None:
        """How the slope is significantly wrong: "too extreme" or "not extreme enough"; None if it is not."""
        if not self.rejected:
            return None
        return "too extreme" if self.estimate < 1 else "not extreme enough"

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

    def _describe(self) -> Description:
        rows = [
            ("slope", f"{self.estimate:.4g}", show_interval(self.confidence_interval), "1"),
            ("intercept (with this slope)", f"{self.intercept:.4g}", "", "0"),
        ]
        return Description(
            f"Calibration slope ({self.lens_name}, {self._size}, {self.n_events} events)",
            [self.conclusion],
            [Table(("", "estimate", "interval", "if calibrated"), rows)],
            self._remarks,
            self.notes,
        )


@reads_arguments
def calibration_slope(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    confidence_level: float = 0.95,
    **options: Unpack[EventDesignOptions],
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
