"""Cox's test of intercept and slope, with their estimates."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.estimation.event._event_cells import EventCells
from caltest.hypothesis_tests._calibration import look_at
from caltest.hypothesis_tests._classical_result import ClassicalTestResult
from caltest.hypothesis_tests._diagnostics import describe_answer
from caltest.predictions._arrays import Floats
from caltest.predictions._sample import Sample
from caltest.predictions._view import LensView
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import validate_choice
from caltest.resampling import Consistency
from caltest.resampling.distributions._base import Distribution, chi_squared
from caltest.resampling.engine._evaluation import Question
from caltest.resampling.engine._options import TestOptions, drawing_of
from caltest.resampling.engine._pvalues import tail_pvalue
from caltest.resampling.engine._run import Answer, run, settle
from caltest.results import Note, TestResult
from caltest.results._decision import align_pvalue
from caltest.results._description import Table
from caltest.results._naming import Specification
from caltest.results._progress import reporting
from caltest.statistics import CoxScore
from caltest.statistics._recalibration_scores import logits

_NAN = float("nan")
_PARTS = ("joint", "intercept", "slope")


@dataclass(frozen=True, repr=False)
class CoxLikelihoodRatio(Specification):
    r"""Statistic of ``cox_test(kind="likelihood-ratio")``: twice the logarithm of the likelihood ratio.

    It stands in the results of that test. `calibration_test` does not take it, because a logistic regression of
    simulated labels need not have a maximum; it takes `CoxScore`, whose limit is the same.

    Parameters
    ----------
    part : {"joint", "intercept", "slope"}
        What is tested: :math:`2 (\ell(\hat a, \hat b) - \ell(0, 1))`, or one of the two parts that sum to it, a = 0
        with b fixed at 1 and b = 1 with a free.

    Raises
    ------
    TypeError
        If ``part`` is not a text.
    ValueError
        If ``part`` is unknown.

    See Also
    --------
    caltest.cox_test : The test that uses it.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = [1, 0, 0, 0] * 10 + [1, 1, 1, 0] * 10, [0.1] * 40 + [0.9] * 40
    >>> caltest.cox_test(y_true, y_prob, kind="likelihood-ratio", method="asymptotic").test_statistic
    CoxLikelihoodRatio()
    """

    part: str = "joint"

    partition: ClassVar[None] = None
    measures_scatter: ClassVar[bool] = False

    def __post_init__(self) -> None:
        validate_choice(self.part, "part", _PARTS)

    @property
    def name(self) -> str:
        """Its short name."""
        return type(self).__name__

    @property
    def words(self) -> str:
        """What it is called on the axes of pictures."""
        return str(self)

    @property
    def components(self) -> tuple[CoxLikelihoodRatio, ...]:
        """The statistic itself."""
        return (self,)

    def derived(self, sample: Sample, value: float, null: Distribution) -> dict[str, float]:
        """Return no further numbers: those of `cox_test` belong to all parts together."""
        return {}

    def direction(self, sample: Sample, outcomes: NDArray[Any]) -> float | None:
        """Return that of the score statistic."""
        return CoxScore(self.part).direction(sample, outcomes)


@reads_arguments
def cox_test(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    kind: str = "score",
    method: str = "monte-carlo",
    **options: Unpack[TestOptions],
) -> ClassicalTestResult:
    r"""Perform Cox's test of calibration intercept and slope, and estimate both (Cox 1958).

    The model is :math:`\operatorname{logit} P(Y = 1 \mid p) = a + b \operatorname{logit} p` with the hypothesis
    a = 0 and b = 1. With the log-likelihood :math:`\ell`, its gradient U and its information matrix I at (0, 1), and
    the maximum :math:`(\hat a, \hat b)`, the two statistics are

    .. math:: T_\text{score} = U^\top I^{-1} U, \qquad
              T_\text{likelihood-ratio} = 2 \bigl(\ell(\hat a, \hat b) - \ell(0, 1)\bigr).

    Estimates are those of a logistic regression. The parts of the hypothesis are tested too:
    calibration in the large (a = 0 given b = 1), and the slope (b = 1, a free). The test detects miscalibration that is
    linear in the logit; a calibration curve that crosses the diagonal symmetrically may have a = 0 and b = 1.

    Predictions of exactly 0 and 1, whose logit is infinite, do not depend on a and b > 0. They are left out of the
    estimates and statistics, and a note counts them; a label that contradicts one makes the p-value the smallest
    possible. Nothing is clipped.

    Parameters
    ----------
    lens : lens, optional
        A two-outcome lens. By default the event of two classes, and the confidence of more classes.
    kind : {"score", "likelihood-ratio"}
        The statistic: Rao's score (`CoxScore`), for which no model is fitted, or twice the logarithm of the likelihood
        ratio, which needs ``method="asymptotic"``.
    method : {"monte-carlo", "asymptotic"}
        How the null distribution is found. "monte-carlo" simulates labels, predictions fixed: the p-values are valid at
        every sample size. "asymptotic" is chi-squared with two degrees of freedom, and one for each part. This limit
        needs many events and non-events: at the 1 % level the score statistic rejected 2.6 % of calibrated data sets
        with 100 observations and 2 expected events.

    Returns
    -------
    ClassicalTestResult
        Prints as a report; unpacks as ``statistic, pvalue``. It has the attributes

        * ``kind``, as above;
        * ``intercept``, ``slope``, ``intercept_error``, ``slope_error``: estimates of a and b, and their standard
          errors;
        * ``in_the_large``, ``in_the_large_error``: estimate of a with b fixed at 1 (calibration in the large);
        * ``in_the_large_statistic``, ``in_the_large_pvalue``: test of a = 0 with b = 1, by the same method;
        * ``slope_statistic``, ``slope_pvalue``: test of b = 1 with a free, by the same method;
        * ``degrees_of_freedom``: 2; 1 if the predictions are constant, 0 if all of them are 0 or 1.

        Estimates are NaN where they do not exist, and a note gives the reason. The statistics of the two parts sum to
        the joint one.

    Raises
    ------
    TypeError
        If ``lens`` is no lens or ``region`` no function.
    ValueError
        If ``y_prob`` has values outside [0, 1] or rows that do not sum to 1; if ``y_true`` holds other labels than the
        columns; if ``region`` holds no observation; if the lens has more than two outcomes; if ``kind`` or ``method``
        is unknown; if ``kind="likelihood-ratio"`` comes without ``method="asymptotic"``, or with labels that are all
        equal or separated by the predictions, so that the likelihood has no maximum; if ``n_resamples`` < 1, or
        ``alpha`` is not strictly between 0 and 1.

    See Also
    --------
    caltest.estimation.calibration_in_the_large : Observed over expected events, with a confidence interval.
    caltest.estimation.calibration_slope : The slope, with a confidence interval.
    spiegelhalter_test : Over- and under-confidence for any number of outcomes, with predictions of 0 and 1.
    bridge_test : All deviations of the cumulative residual, not only linear ones.
    hosmer_lemeshow_test : Deviations within groups of predictions.

    References
    ----------
    D. R. Cox (1958), Two further applications of a model for binary regression, Biometrika 45, 562-565.
    M. E. Miller, S. L. Hui and W. M. Tierney (1991), Validation techniques for logistic regression models, Statistics
    in Medicine 10, 1213-1226.

    Examples
    --------
    Events happen in 1/4 of the observations at 0.1 and in 3/4 of those at 0.9, so that logits are halved:

    >>> import caltest
    >>> y_true, y_prob = [1, 0, 0, 0] * 10 + [1, 1, 1, 0] * 10, [0.1] * 40 + [0.9] * 40
    >>> result = caltest.cox_test(y_true, y_prob, n_resamples=999, rng=0)
    >>> round(result.slope, 6), result.direction, result.pvalue
    (0.5, 'too extreme', 0.001)
    """
    validate_choice(kind, "kind", ("score", "likelihood-ratio"))
    validate_choice(method, "method", ("monte-carlo", "asymptotic"))
    null = Consistency()
    if kind == "likelihood-ratio" and method != "asymptotic":
        refuse(f'`method` must be "asymptotic" for kind="likelihood-ratio", got {method!r}.')
    sample, look = look_at(CoxScore(), y_true, y_prob, options)
    settle(CoxScore(), sample)  # more than two outcomes are refused before anything is fitted
    fit = _Fit.of(sample)
    if kind == "likelihood-ratio" and fit.separated:
        reason = "`y_true` holds equal labels only" if fit.one_class else "`y_prob` separates the labels"
        refuse(
            f'{reason}, so that the likelihood has no maximum; kind="likelihood-ratio" needs labels that overlap, '
            'kind="score" does not.'
        )
    questions = [Question(CoxScore(part), LensView(sample)) for part in _PARTS]
    drawing = drawing_of(options, sample)
    with reporting(options["progress"], "simulating labels") as report:
        if method == "asymptotic":
            found = [run([question], sample, null, method=method, **drawing).answers[0] for question in questions]
        else:
            found = list(run(questions, sample, null, progress=report, **drawing).answers)
    if kind == "likelihood-ratio":  # the score tests have refused bad options
        found = [fit.likelihood_ratio(part, sample) for part in _PARTS]
    described: dict[str, Any] = {"lens": look, "classes": options["classes"], "alpha": options["alpha"]}
    joint, large, slope = (describe_answer(finding, null, **described, title="Cox test") for finding in found)
    derived = {
        **fit.estimates,
        "in_the_large_statistic": large.statistic,
        "in_the_large_pvalue": large.pvalue,
        "slope_statistic": slope.statistic,
        "slope_pvalue": slope.pvalue,
        "degrees_of_freedom": fit.rank,
    }
    tested = replace(joint, derived=derived, score=slope.score, notes=(*joint.notes, *fit.notes))
    return tested.extend(ClassicalTestResult, kind=kind, sentences=_estimates(tested), table=_parts_table(tested, kind))


def _estimates(result: TestResult) -> tuple[str, ...]:
    if math.isnan(result.slope):
        return ()
    return (
        f"Estimated slope {result.slope:.3g} (standard error {result.slope_error:.2g}) and intercept "
        f"{result.intercept:.3g} (standard error {result.intercept_error:.2g}); a calibrated model has slope 1 and "
        "intercept 0.",
    )


def _parts_table(result: TestResult, kind: str) -> Table:
    rows = [
        ("a = 0 and b = 1", "", "", *_shown(result.statistic), align_pvalue(result.pvalue)),
        (
            "slope b (a free)",
            *_shown(result.slope, result.slope_error, result.slope_statistic),
            align_pvalue(result.slope_pvalue),
        ),
        ("intercept a (b free)", *_shown(result.intercept, result.intercept_error), "", ""),
        (
            "in the large: a (b = 1)",
            *_shown(result.in_the_large, result.in_the_large_error),
            *_shown(result.in_the_large_statistic),
            align_pvalue(result.in_the_large_pvalue),
        ),
    ]
    return Table((f"{kind} test", "estimate", "std. error", "statistic", "p-value"), rows)


def _shown(*numbers: float) -> list[str]:
    return ["" if math.isnan(number) else f"{number:.4g}" for number in numbers]


_ONE_LEFT_OUT = "1 prediction of exactly 0 or 1, whose logit is infinite, is left out of the estimates."
_SEPARATED = Note("C502", "Intercept and slope have no finite estimate, because the predictions separate the labels.")
_ONE_CLASS = Note("C502", "Intercept and slope have no finite estimate, because all labels are equal.")
_CONSTANT = Note("C503", "The slope has no estimate and is not tested, because the predictions are constant.")


@dataclass(frozen=True, eq=False)
class _Fit:
    """Estimates and likelihood ratios of logistic regression, with notes where there are none."""

    rank: int
    separated: bool
    one_class: bool
    estimates: dict[str, float]
    ratio: dict[str, float]
    notes: tuple[Note, ...]

    @classmethod
    def of(cls, sample: Sample) -> _Fit:
        logit = logits(sample)
        inside = np.isfinite(logit)
        x, y = logit[inside], sample.outcome[inside].astype(np.float64)
        notes: list[Note] = []
        if not inside.all():
            left_out = int((~inside).sum())
            text = f"{left_out} predictions of exactly 0 or 1, whose logit is infinite, are left out of the estimates."
            notes.append(Note("C501", text if left_out > 1 else _ONE_LEFT_OUT))
        one_class = not x.size or y.min() == y.max()
        varies = bool(x.size) and bool(CoxScore("slope").informative(sample))
        cells = EventCells.of_values(sample)
        # Labels that overlap by so little that the slope is thousands of times the spread count as separated.
        crossed = varies and cells.separation == 0 and math.isfinite(cells.raw_fit[1])
        names = ("intercept", "slope", "in_the_large")
        estimates = {name: _NAN for part in names for name in (part, f"{part}_error")}
        null = _log_likelihood(y, x)
        large = full = null
        if not one_class:
            a = cells.intercept()
            full = large = _log_likelihood(y, a + x)
            estimates |= {"in_the_large": a, "in_the_large_error": 1 / math.sqrt(cells.at(a, 1.0).variance)}
        if crossed:
            a, b = cells.raw_fit
            full = _log_likelihood(y, a + b * x)
            variance = cells.count / np.square(2 * np.cosh(np.clip(a + b * cells.logit, -700, 700) / 2))
            middle = variance @ cells.logit / variance.sum()  # where the fit does not depend on the slope
            b_error = 1 / math.sqrt(variance @ np.square(cells.logit - middle))
            a_error = math.hypot(1 / math.sqrt(variance.sum()), middle * b_error)
            estimates |= {"intercept": a, "intercept_error": a_error, "slope": b, "slope_error": b_error}
        if x.size and not crossed:
            notes.append(_ONE_CLASS if one_class else _SEPARATED if varies else _CONSTANT)
        ratio = {"joint": 2 * (full - null), "intercept": 2 * (large - null), "slope": 2 * (full - large)}
        separated = bool(x.size) and (one_class or (varies and not crossed))
        return cls(int(x.size > 0) + varies, separated, bool(one_class), estimates, ratio, tuple(notes))

    def likelihood_ratio(self, part: str, sample: Sample) -> Answer:
        """Return the numbers of the likelihood ratio test of a part."""
        freedom = {"joint": self.rank, "intercept": min(self.rank, 1), "slope": max(self.rank - 1, 0)}
        null, value = chi_squared(freedom[part]), self.ratio[part]
        tail = null.tail(value)
        pvalue = tail_pvalue(sample, tail.probability)
        statistic: Any = CoxLikelihoodRatio(part)
        one = np.array([value]), np.array([pvalue])
        return Answer(statistic, sample, value, null, pvalue, *one, (null,), "asymptotic", tail=tail)


def _log_likelihood(y: Floats, logit: Floats) -> float:
    return -float(np.logaddexp(0, np.where(y == 1, -logit, logit)).sum())
