"""The test of revisions: forecasts of the same outcomes that were made one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.hypothesis_tests._diagnostics import impossible_note
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._sample import are_impossible
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._parts import effective_number, validate_ids
from caltest.predictions.inputs._refusals import refuse, refuse_if
from caltest.predictions.inputs._times import read_known_times
from caltest.predictions.inputs._validation import validate_given_problem
from caltest.resampling.distributions._base import SMALLEST_PVALUE
from caltest.resampling.engine._options import RevisionOptions
from caltest.results import Note, Result, Verdict
from caltest.results._decision import Decision, equate_pvalue
from caltest.results._description import Description, Table, counted
from caltest.results._note import PAGE

_FEWEST_TIMES = 10
"""With fewer effective times a test that does not reject decides nothing."""
_SMALLEST_PROB = 1e-4  # whose logit is taken for smaller ones: a single revision should not decide
_RANK = 1e-10


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RevisionTest(Decision, Result):
    """Result of `revision_test`; unpacks as ``statistic, pvalue``.

    Attributes
    ----------
    statistic : float
        Hotelling's statistic as a number of the F distribution.
    pvalue, smallest_possible_pvalue, alpha : float
        P-value, the smallest possible one (1 where too few times decide nothing), and the level.
    degrees_of_freedom : tuple of float
        Those of the F distribution.
    shift, slope : float
        Standardised sums of the revisions, and of the revisions times the logit of what was revised. Above 0 forecasts
        are revised upwards, and away from one half; about normal if they are calibrated. NaN where nothing varies.
    mean_forecast, mean_outcome : float
        Mean of the first forecasts, and frequency of the event, over outcomes.
    n_samples, n_targets, n_revisions : int
        Numbers of forecasts, of outcomes that they are of, and of revisions that are tested.
    n_left_out : int
        Number of revisions that took longer than one time, and are left out.
    n_times : int
        Number of times at which forecasts are revised.
    effective_times : float
        How many times of equal weight these are worth.
    n_impossible : int
        Number of forecasts that gave what happened probability 0; the p-value is then the smallest possible one.
    notes : tuple of Note
        Cautions.

    See Also
    --------
    revision_test : The test that returns it.

    Examples
    --------
    >>> import numpy as np
    >>> from caltest.hypothesis_tests import revision_test
    >>> day = np.arange(40) // 2
    >>> result = revision_test(
    ...     day % 3 == 0, np.tile([0.3, 0.4], 20), time=day + np.tile([0, 1], 20), lead=np.tile([2, 1], 20)
    ... )
    >>> result.n_revisions, round(result.pvalue, 3)
    (40, 0.002)
    """

    statistic: float
    pvalue: float
    smallest_possible_pvalue: float
    alpha: float
    degrees_of_freedom: tuple[float, float]
    shift: float
    slope: float
    mean_forecast: float
    mean_outcome: float
    n_samples: int
    n_targets: int
    n_revisions: int
    n_left_out: int
    n_times: int
    effective_times: float
    n_impossible: int = 0
    notes: tuple[Note, ...] = ()

    _derived: ClassVar[tuple[str, ...]] = ("rejected", "decision", "conclusion", "verdict", "hypothesis")

    hypothesis: ClassVar[str] = "Calibration of all forecasts, given what was known when they were made"
    """The null hypothesis in words."""

    @property
    def conclusion(self) -> str:
        """The decision in words, with the direction in which forecasts are revised."""
        p = equate_pvalue(self.pvalue)
        if self.decision == "undecidable":
            few = f"revisions are worth {self.effective_times:.2g} times, and {_FEWEST_TIMES} are needed"
            return f"These data cannot decide whether the forecasts are calibrated: their {few} ({p})."
        shown = f"{100 * self.mean_forecast:.1f} % forecast at first, {100 * self.mean_outcome:.1f} % observed"
        if not self.rejected:
            return (
                f"No miscalibration is found in the revisions: {shown} ({p}). This does not prove that there is none."
            )
        if self.n_impossible:
            many = counted(self.n_impossible, "forecast")
            return f"The forecasts are miscalibrated: {many} gave what happened probability 0 ({p}; {shown})."
        kinds = []
        if abs(self.shift) > 2:
            kinds.append(
                "upwards, so that they are too low" if self.shift > 0 else "downwards, so that they are too high"
            )
        if abs(self.slope) > 2:
            against = "back towards one half, so that they are too extreme"
            kinds.append(against if self.slope < 0 else "away from one half, so that they are not extreme enough")
        how = f": they are revised {' and '.join(kinds)}" if kinds else ""
        return f"The forecasts are miscalibrated{how} ({p}; {shown})."

    @cached_property
    def verdict(self) -> Verdict:
        """The decision, and what to do."""
        advice = "Test them again when more outcomes are known."
        if self.rejected:
            advice = "Do not use these forecasts as they are: what they will be revised to can be predicted."
        return Verdict(
            pvalue=self.pvalue,
            alpha=self.alpha,
            smallest_possible_pvalue=self.smallest_possible_pvalue,
            hypothesis=self.hypothesis,
            proof="that the forecasts are calibrated",
            n_samples=self.n_samples,
            n_outcomes=2,
            cautions=self.notes,
            said=self.conclusion,
            advised=(advice,),
        )

    def _describe(self) -> Description:
        rows = [
            ("shift", f"{self.shift:.2f}", "revised upwards: too low"),
            ("slope", f"{self.slope:.2f}", "revised away from one half: not extreme enough"),
        ]
        first, second = self.degrees_of_freedom
        return Description(
            f"Test of revisions ({counted(self.n_samples, 'forecast')} of {counted(self.n_targets, 'outcome')})",
            [self.conclusion],
            tables=[Table(("", "standardised sum", "above 0"), rows)],
            remarks=[
                f"{self.n_revisions:,} revisions at {counted(self.n_times, 'time')}, which are worth "
                f"{self.effective_times:.3g} of equal weight; statistic {self.statistic:.4g}.",
                f"Null distribution: F with {first:g} and {second:.3g} degrees of freedom, valid as the number of "
                "times grows.",
                "Valid if each forecast is the probability of its outcome given all that was known when it was made, "
                f"the other forecasts and outcomes included [C101: {PAGE}].",
            ],
            notes=self.notes,
        )


@reads_arguments
def revision_test(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    time: Any,
    lead: Any,
    forecast_of: Any = None,
    **options: Unpack[RevisionOptions],
) -> RevisionTest:
    r"""Test forecasts of an event that were revised until its outcome was known, such as those of all leads.

    If each forecast :math:`p_{is}`, made at time s of outcome i, is the probability of the event given all that was
    known then, its next revision :math:`p_{i,s+1} - p_{is}` has mean 0, whatever is known at time s; the last
    revision is the outcome minus the forecast. With functions :math:`\phi` of the forecast before it, here 1 and its
    logit, the sums over all outcomes

    .. math:: d_t = \sum_i \phi(p_{i,t-1}) (p_{it} - p_{i,t-1}), \qquad
              T = \Bigl(\sum_t d_t\Bigr)^{\!\top} \Bigl(\sum_t d_t d_t^\top\Bigr)^{-1} \Bigl(\sum_t d_t\Bigr),

    are martingale differences from one time to the next, however the outcomes depend on each other. With K functions
    and :math:`\nu = m - K`, where :math:`m = K^2 / \sum_t (d_t^\top (\sum_s d_s d_s^\top)^{-1} d_t)^2` is the effective
    number of times, :math:`T \nu / (m K)` is compared with the F distribution with K and :math:`\nu` degrees of freedom
    (Hotelling's T-squared, with the effective number). Forecasts of long leads, which overlap, need no blocks of time:
    the test has much more power than one of a single lead (docs/forecasts.md).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        The outcome of each forecast, the same for all forecasts of an outcome.
    y_prob : array-like of shape (n_samples,) or (n_samples, 2)
        Forecasts: the probability of the event.
    time : array-like of shape (n_samples,)
        When each forecast was made: numbers, dates, datetimes or texts of dates, in any order.
    lead : array-like of shape (n_samples,), int or duration
        How long after each forecast its outcome is known.
    forecast_of : array-like of shape (n_samples,), optional
        What each forecast is of, such as a day and a place. By default it is the time at which the outcome is known.

    Returns
    -------
    RevisionTest
        Prints as a report; unpacks as ``statistic, pvalue``.

    Raises
    ------
    TypeError
        If ``time`` holds neither numbers nor dates, or ``lead`` neither whole numbers nor durations.
    ValueError
        If there are more than two classes; if ``y_prob`` has values outside [0, 1] or an unknown label occurs in
        ``y_true``; if ``time``, ``lead`` or ``forecast_of`` have another length or missing values; if forecasts of an
        outcome have different labels, or were made at the same time; if no outcome is known one time after a forecast
        of it, or no forecast is ever revised.

    See Also
    --------
    calibration_test : With ``time`` and ``lead``, the test of forecasts of one lead.
    CalibrationMonitor : Watches forecasts, with an alarm.

    Notes
    -----
    A revision counts if its forecasts were made at successive times, of all times at which anything is forecast or
    known; others are left out, with a note. Logits are those of forecasts from 0.0001 to 0.9999. If a forecast gave
    what happened probability 0, the p-value is the smallest possible one.

    The p-value is valid as the effective number of times grows. At the 5 % level 3.6 to 5.5 % of calibrated data sets
    were rejected in nine designs, with 14 to 122 effective times and events of 1 to 30 % (docs/forecasts.md). With
    fewer than 10 a test that does not reject is undecidable.

    References
    ----------
    W. D. Nordhaus (1987), Forecasting efficiency: concepts and applications, Review of Economics and Statistics 69:
    revisions of efficient forecasts are uncorrelated.
    H. Hotelling (1931), The generalization of Student's ratio, Annals of Mathematical Statistics 2.

    Examples
    --------
    Whether a temperature will be above 1, forecast 5 to 1 days ahead by a model whose logits are twice too large:

    >>> import numpy as np
    >>> from scipy.stats import norm
    >>> from caltest.hypothesis_tests import revision_test
    >>> rng = np.random.default_rng(0)
    >>> warmth = np.zeros(206)
    >>> for day in range(1, 206):
    ...     warmth[day] = 0.8 * warmth[day - 1] + 0.6 * rng.normal()
    >>> day, lead = np.repeat(np.arange(200), 5), np.tile(np.arange(1, 6), 200)
    >>> right = norm.sf(1, 0.8**lead * warmth[day], (1 - 0.64**lead) ** 0.5)
    >>> extreme = right**2 / (right**2 + (1 - right) ** 2)
    >>> for forecast in (right, extreme):
    ...     result = revision_test(warmth[day + lead] > 1, forecast, time=day, lead=lead)
    ...     print(f"{result.decision}: p = {result.pvalue:.3f}, shift {result.shift:.2f}, slope {result.slope:.2f}")
    not rejected: p = 0.678, shift 0.13, slope 0.56
    rejected: p = 0.021, shift 2.29, slope -3.26
    """
    prob, outcome = validate_given_problem(y_true, y_prob, options["classes"])
    refuse_if(prob.shape[1] != 2, f"`y_prob` must be the probability of an event, got {prob.shape[1]} classes.")
    made, known = read_known_times(time, lead, len(prob))
    target = None if forecast_of is None else validate_ids(forecast_of, len(prob), "forecast_of", "target")[1]
    target = np.unique(known, return_inverse=True)[1] if target is None else target
    steps = _steps(prob[:, 1].astype(np.float64), outcome, made, known, target)
    found = _hotelling(steps)
    enough = found.effective >= _FEWEST_TIMES
    impossible = np.flatnonzero(are_impossible(prob, outcome))
    notes = impossible_note(impossible)
    if steps.n_left_out:
        text = (
            f"{counted(steps.n_left_out, 'revision')} took longer than from one time to the next and "
            f"{'is' if steps.n_left_out == 1 else 'are'} left out: other forecasts or outcomes lie in between."
        )
        notes.append(Note("C212", text))
    return RevisionTest(
        statistic=found.statistic,
        pvalue=SMALLEST_PVALUE if impossible.size else found.pvalue,
        smallest_possible_pvalue=0.0 if enough else 1.0,
        alpha=options["alpha"],
        degrees_of_freedom=found.freedom,
        shift=found.shift,
        slope=found.slope,
        mean_forecast=float(steps.first.mean()),
        mean_outcome=float(steps.outcome.mean()),
        n_samples=len(prob),
        n_targets=len(steps.first),
        n_revisions=len(steps.change),
        n_left_out=steps.n_left_out,
        n_times=len(np.unique(steps.at)),
        effective_times=found.effective,
        n_impossible=len(impossible),
        notes=tuple(notes),
    )


class Steps(NamedTuple):
    """Revisions from one time to the next.

    ``before`` is what is revised, ``change`` by how much, and ``at`` the time, ``(n_revisions,)`` each; ``first`` and
    ``outcome`` are those of each target, ``(n_targets,)``.
    """

    before: Floats
    change: Floats
    at: Integers
    first: Floats
    outcome: NDArray[Any]
    n_left_out: int


def _steps(prob: Floats, outcome: NDArray[Any], made: NDArray[Any], known: NDArray[Any], target: Integers) -> Steps:
    """Return the revisions of forecasts, and refuse what is no sequence of forecasts."""
    order = np.lexsort((made, target))
    prob, outcome, made, known, target = prob[order], outcome[order], made[order], known[order], target[order]
    same = target[1:] == target[:-1]
    for i in np.flatnonzero(same & (outcome[1:] != outcome[:-1]))[:1]:
        refuse(
            f"forecasts of the same outcome must have the same label, but those of rows {order[i]} and {order[i + 1]} "
            "have not; pass in `forecast_of` what each forecast is of, such as a day and a place."
        )
    for i in np.flatnonzero(same & (made[1:] == made[:-1]))[:1]:
        refuse(
            f"forecasts of the same outcome must be made at different times, but those of rows {order[i]} and "
            f"{order[i + 1]} are not; pass in `forecast_of` what each forecast is of, such as a day and a place."
        )
    place = np.unique(np.concatenate([made, known]), return_inverse=True)[1]
    start, end = place[: len(made)], place[len(made) :]
    after = np.where(np.append(same, False), np.append(prob[1:], 0.0), outcome)
    at = np.where(np.append(same, False), np.append(start[1:], 0), end)
    next_one = at == start + 1
    is_last = ~np.append(same, False)
    refuse_if(
        not (next_one & is_last).any(),
        "`lead`: no outcome is known one time after a forecast of it, so that revisions cannot be compared with "
        "outcomes; test forecasts of one lead with calibration_test(..., time=, lead=).",
    )
    refuse_if(not same.any(), "no outcome has two forecasts; test them with calibration_test(..., time=, lead=).")
    kept = np.flatnonzero(next_one)
    first = np.append(True, ~same)
    return Steps(prob[kept], (after - prob)[kept], at[kept], prob[first], outcome[first], int((~next_one).sum()))


class Found(NamedTuple):
    """What the test finds."""

    statistic: float
    pvalue: float
    freedom: tuple[float, float]
    effective: float
    shift: float
    slope: float


def _hotelling(steps: Steps) -> Found:
    """Compare the sum of martingale differences with their squares."""
    from scipy.stats import f

    clipped = np.clip(steps.before, _SMALLEST_PROB, 1 - _SMALLEST_PROB)
    factors = np.ones(len(clipped)), np.log(clipped) - np.log1p(-clipped)
    place = np.unique(steps.at, return_inverse=True)[1]
    sums = np.column_stack([np.bincount(place, factor * steps.change) for factor in factors])
    length = np.sqrt(np.square(sums).sum(axis=0))
    with np.errstate(invalid="ignore", divide="ignore"):
        shift, slope = np.where(length > 0, sums.sum(axis=0) / length, np.nan).tolist()
    left, size, _ = np.linalg.svd(sums / np.where(length > 0, length, 1.0), full_matrices=False)
    left = left[:, size > _RANK]
    rank = left.shape[1]
    if not rank:
        return Found(0.0, 1.0, (0.0, 0.0), 0.0, shift, slope)
    effective = effective_number(np.square(left).sum(axis=1))
    rest = effective - rank
    if rest <= 0:
        return Found(0.0, 1.0, (float(rank), 0.0), effective, shift, slope)
    statistic = float(np.square(left.sum(axis=0)).sum()) * rest / (effective * rank)
    return Found(statistic, float(f.sf(statistic, rank, rest)), (float(rank), rest), effective, shift, slope)
