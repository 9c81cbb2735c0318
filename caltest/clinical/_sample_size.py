"""How many patients a validation needs, so that its measures have intervals of a wanted width."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest.clinical._clinical_calibration import validate_thresholds
from caltest.clinical._discrimination import concordance
from caltest.predictions._arrays import Floats
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._refusals import refuse, refuse_if, require
from caltest.predictions.inputs._validation import validate_level, validate_positive, validate_prob
from caltest.resampling.engine._options import PrecisionOptions
from caltest.results import Result
from caltest.results._decision import level_of
from caltest.results._description import Description, Table, counted, percent
from caltest.statistics._logistic_curves import expit
from caltest.statistics._recalibration_scores import logits_of

USUAL_WIDTHS: Mapping[str, float] = {
    "observed_expected": 0.2,
    "calibration_slope": 0.2,
    "c_statistic": 0.1,
    "net_benefit": 0.2,
}
"""The widths of Riley et al. (2021), that of net benefit with thresholds only."""
_WORDS = {
    "observed_expected": "observed/expected",
    "intercept": "intercept (slope 1)",
    "calibration_slope": "calibration slope",
    "c_statistic": "c-statistic",
    "net_benefit": "standardised net benefit",
}
_BOUND = 50.0  # beyond it a probability is 0 or 1, up to rounding of its sums


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PrecisionCriterion(Result):
    """How many patients one measure needs.

    Attributes
    ----------
    measure : {"observed_expected", "intercept", "calibration_slope", "c_statistic", "net_benefit"}
        The measure, as in `ClinicalCalibration`; net benefit is divided by the observed share of events.
    threshold : float or None
        The threshold of a net benefit.
    anticipated : float
        The value that the measure is expected to have.
    width : float
        Wanted width of its interval.
    standard_error : float
        Standard error that leads to this width; of observed/expected that of its logarithm.
    n_samples : int
        Number of patients.
    n_events : float
        Number of events that are expected among them.

    See Also
    --------
    clinical_sample_size : The plan that returns criteria.

    Examples
    --------
    >>> import numpy as np
    >>> from caltest.clinical import clinical_sample_size
    >>> [(c.measure, c.n_samples) for c in clinical_sample_size(np.linspace(0.05, 0.4, 200)).criteria]
    [('observed_expected', 1328), ('calibration_slope', 7253), ('c_statistic', 636)]
    """

    measure: str
    threshold: float | None
    anticipated: float
    width: float
    standard_error: float
    n_samples: int
    n_events: float

    head: ClassVar[tuple[str, ...]] = ("", "anticipated", "wanted width", "standard error", "patients", "events")

    @property
    def words(self) -> str:
        """What is measured, in words."""
        return _WORDS[self.measure] + ("" if self.threshold is None else f" at {self.threshold:g}")

    @property
    def row(self) -> tuple[str, ...]:
        """The line of a table."""
        numbers = (f"{value:.3g}" for value in (self.anticipated, self.width, self.standard_error))
        return self.words, *numbers, f"{self.n_samples:,}", f"{math.ceil(self.n_events):,}"

    def _describe(self) -> Description:
        return Description(f"Patients for the {self.words}", (), [Table(self.head, [self.row])])


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ClinicalSampleSize(Result):
    """Result of `clinical_sample_size`.

    Attributes
    ----------
    criteria : tuple of PrecisionCriterion
        The number of patients for each measure; the largest decides.
    prevalence : float
        Share of patients with the event.
    confidence_level : float
        Probability with which an interval contains its target.

    See Also
    --------
    clinical_sample_size : The plan that returns it.

    Examples
    --------
    >>> import numpy as np
    >>> from caltest.clinical import clinical_sample_size
    >>> plan = clinical_sample_size(np.linspace(0.05, 0.4, 200))
    >>> plan.n_samples, round(plan.prevalence, 3)
    (7253, 0.225)
    """

    criteria: tuple[PrecisionCriterion, ...]
    prevalence: float
    confidence_level: float

    _derived: ClassVar[tuple[str, ...]] = ("n_samples", "n_events", "conclusion")

    @property
    def _decides(self) -> PrecisionCriterion:
        return max(self.criteria, key=lambda one: one.n_samples)

    @property
    def n_samples(self) -> int:
        """Number of patients that meets all criteria."""
        return self._decides.n_samples

    @property
    def n_events(self) -> float:
        """Number of events that are expected among them."""
        return self._decides.n_events

    @property
    def conclusion(self) -> str:
        """How many patients are needed, and for which measure."""
        events = counted(math.ceil(self.n_events), "event")
        return (
            f"{counted(self.n_samples, 'patient')} with {events} are needed for intervals of the wanted widths; most "
            f"are needed for the {self._decides.words}."
        )

    def _describe(self) -> Description:
        return Description(
            f"Sample size of a validation (prevalence {percent(self.prevalence)}, {percent(self.confidence_level)} "
            "intervals)",
            [self.conclusion],
            [Table(PrecisionCriterion.head, [one.row for one in self.criteria])],
            [
                "Formulas of Riley et al. (2021), for large samples; the standard error of observed/expected is that "
                "of its logarithm, and the net benefit is divided by the observed share of events. How many patients "
                "find an error of some size is another question: plan_sample_size."
            ],
        )


@reads_arguments
def clinical_sample_size(
    y_prob: ArrayLike,
    *,
    prevalence: float | None = None,
    slope: float = 1.0,
    c_statistic: float | None = None,
    thresholds: Any = None,
    widths: Mapping[str, float] | None = None,
    **options: Unpack[PrecisionOptions],
) -> ClinicalSampleSize:
    r"""Return how many patients the validation of a prediction model needs for intervals of wanted widths.

    The predictions stand for those of the patients of the validation, and need no labels. With the share
    :math:`\varphi` of events, true risks :math:`\pi_i = 1 / (1 + e^{-a - b\, l_i})` of patients with
    :math:`l_i = \operatorname{logit} p_i`, :math:`v_i = \pi_i (1 - \pi_i)`, and means over patients, the standard
    errors with n patients are (Riley et al. 2021)

    ==================  ================================================================================================
    observed/expected   :math:`\sqrt{(1 - \varphi) / (n \varphi)}`, of the logarithm
    intercept           :math:`1 / \sqrt{n\, \overline v}`, with the slope fixed at 1
    calibration slope   :math:`\sqrt{\overline v / (n (\overline v\, \overline{v l^2} - \overline{v l}^2))}`
    c-statistic         Newcombe's (2006), method 4, with :math:`n \varphi` events
    net benefit         divided by :math:`\varphi`, from sensitivity, specificity and
                        :math:`w = \frac{1 - \varphi}\varphi \frac t{1 - t}`
    ==================  ================================================================================================

    Parameters
    ----------
    y_prob : array-like of shape (n_samples,) or (n_samples, 2)
        Predicted risks as they are expected in the validation, such as those of an earlier study, or drawn from a
        distribution that was published. Their number does not matter.
    prevalence : float, optional
        Share of patients with the event, by default the mean of the predictions. The intercept a moves the true risks
        so that they have this mean.
    slope : float
        Calibration slope b that is anticipated.
    c_statistic : float, optional
        The c-statistic that is anticipated; by default that of the true risks.
    thresholds : sequence of float, optional
        Risks from which on patients would be treated: a criterion for the net benefit at each.
    widths : mapping of str to float, optional
        Wanted widths of the intervals of "observed_expected", "intercept", "calibration_slope", "c_statistic" and
        "net_benefit"; measures that are not named have no criterion. By default 0.2, none, 0.2, 0.1, and with
        ``thresholds`` 0.2.
    alpha : float
        Intervals have the confidence level 1 - ``alpha``.

    Returns
    -------
    ClinicalSampleSize
        A criterion for each measure, of which the largest decides.

    Raises
    ------
    TypeError
        If a number is none, or ``widths`` is no mapping.
    ValueError
        If ``y_prob`` has values outside [0, 1] or more than two classes, or predicts the same risk for all patients
        where a slope is asked for; if ``prevalence``, ``c_statistic``, a threshold or ``alpha`` is not strictly between
        0 and 1, or no risks other than 0 and 1 have the prevalence; if ``c_statistic`` is below 0.5; if a width is not
        positive, names no measure, or is that of a net benefit without thresholds.

    See Also
    --------
    caltest.hypothesis_tests.plan_sample_size : Patients that find an error of some size, by simulation.
    clinical_calibration : The validation.

    Notes
    -----
    R's pmvalsampsize computes the same with the quantile 1.96, a standard error of observed/expected that is found in
    steps of 0.0001, and sensitivity and specificity rounded to two digits. It takes predictions for the slope as they
    are, also where their mean is not the prevalence: call twice for the same numbers.

    The intervals of `clinical_calibration` are not symmetric, so that these widths are those of many patients. That of
    observed/expected knows the predictions, and is shorter: the formula takes all events as equally likely. The net
    benefit of Riley et al. is divided by the observed share of events. That of `clinical_calibration` is counted for
    each patient, and depends on how many of them have an event: its interval, divided by the prevalence, was 10 to 40 %
    wider than wanted in simulations (docs/clinical-validity.md). About half of all data sets have a wider interval than
    wanted, as the formula is for the width on average. For the ICI there is no formula; `plan_sample_size` simulates
    how many patients find one, because its points are the mean absolute difference of predicted and true risks.

    References
    ----------
    R. D. Riley, T. P. A. Debray, G. S. Collins, L. Archer, J. Ensor, M. van Smeden and K. I. E. Snell (2021), Minimum
    sample size for external validation of a clinical prediction model with a binary outcome, Statistics in Medicine 40,
    4230-4251.
    R. G. Newcombe (2006), Confidence intervals for an effect size measure based on the Mann-Whitney statistic. Part 2,
    Statistics in Medicine 25, 559-573.

    Examples
    --------
    >>> import caltest
    >>> import numpy as np
    >>> risks = 1 / (1 + np.exp(-np.random.default_rng(0).normal(-2, 1, 20_000)))
    >>> found = caltest.clinical.clinical_sample_size(risks, thresholds=[0.2])
    >>> [(one.measure, one.n_samples) for one in found.criteria]
    [('observed_expected', 2090), ('calibration_slope', 4354), ('c_statistic', 700), ('net_benefit', 1013)]
    """
    wanted = _validate_widths(widths, cuts := validate_thresholds(thresholds))
    patients = _Patients.of(validate_prob(y_prob), prevalence, slope)
    if c_statistic is not None:
        must = "`c_statistic` must be at least 0.5"
        require(validate_level(c_statistic, "c_statistic") >= 0.5, must, c_statistic)
    from scipy.special import ndtri

    z = float(ndtri(1 - options["alpha"] / 2))
    criteria: list[PrecisionCriterion] = []
    for measure, width in wanted.items():
        for cut in cuts if measure == "net_benefit" else [None]:
            anticipated, error, number = patients.needed(measure, width, z, cut, c_statistic)
            criteria.append(
                PrecisionCriterion(
                    measure=measure,
                    threshold=cut,
                    anticipated=anticipated,
                    width=width,
                    standard_error=error,
                    n_samples=max(math.ceil(number), 1),
                    n_events=max(math.ceil(number), 1) * patients.prevalence,
                )
            )
    return ClinicalSampleSize(
        criteria=tuple(criteria), prevalence=patients.prevalence, confidence_level=level_of(options["alpha"])
    )


def _validate_widths(widths: Any, cuts: Iterable[float]) -> dict[str, float]:
    """Return the wanted width of each measure."""
    if widths is None:
        return {name: width for name, width in USUAL_WIDTHS.items() if name != "net_benefit" or cuts}
    must = f"`widths` must map names of measures to numbers, as {dict(USUAL_WIDTHS)}"
    if not isinstance(widths, Mapping):
        refuse(f"{must}, got {widths!r}.", TypeError)
    unknown = [name for name in widths if name not in _WORDS]
    refuse_if(unknown or not widths, f"`widths` must name at least one of {', '.join(_WORDS)}, got {unknown}.")
    refuse_if("net_benefit" in widths and not cuts, "`widths` has a net benefit, which needs `thresholds`.")
    return {name: validate_positive(widths[name], f"widths[{name!r}]") for name in _WORDS if name in widths}


@dataclass(frozen=True, eq=False)
class _Patients:
    """Predicted and true risks of the patients of a validation."""

    predicted: Floats
    risk: Floats
    logit: Floats
    prevalence: float
    slope: float

    @classmethod
    def of(cls, prob: Floats, prevalence: float | None, slope: float) -> _Patients:
        refuse_if(prob.shape[1] != 2, f"`y_prob` must be the predicted risk of one event, got {prob.shape[1]} classes.")
        slope, predicted = validate_positive(slope, "slope"), prob[:, 1].astype(np.float64)
        logit = logits_of(prob.astype(np.float64))
        refuse_if(np.isinf(logit).all(), "`y_prob` must hold risks other than 0 and 1.")
        if prevalence is None and slope == 1:
            return cls(predicted, predicted, logit, float(predicted.mean()), slope)
        mean = float(predicted.mean()) if prevalence is None else validate_level(prevalence, "prevalence")
        return cls(predicted, expit(_shift(slope * logit, mean) + slope * logit), logit, mean, slope)

    def needed(
        self, measure: str, width: float, z: float, cut: float | None, c: float | None
    ) -> tuple[float, float, float]:
        """Return the anticipated value of a measure, the standard error of the width, and the number of patients."""
        events, error = self.prevalence, width / (2 * z)
        if measure == "observed_expected":
            ratio = events / float(self.predicted.mean())
            error = math.asinh(width / (2 * ratio)) / z
            return ratio, error, (1 - events) / (events * error**2)
        if cut is not None:
            return self._net_benefit(cut, error)
        if measure == "c_statistic":
            value = c or concordance(self.predicted, self.risk, 1 - self.risk)
            return value, error, _patients_for_c(value, events, error)
        if measure == "intercept":
            intercept = _shift(self.logit, events)
            risk = expit(intercept + self.logit)
            return intercept, error, 1 / (float((risk * (1 - risk)).mean()) * error**2)
        variance, logit = self.risk * (1 - self.risk), np.where(np.isfinite(self.logit), self.logit, 0.0)
        none, once, twice = (float((variance * logit**power).mean()) for power in range(3))
        spread = none * twice - once**2
        refuse_if(
            spread <= 1e-12 * none * twice,
            "`y_prob` must hold different risks: no number of patients estimates the calibration slope of equal ones. "
            "Name other measures in `widths`.",
        )
        return self.slope, error, none / (error**2 * spread)

    def _net_benefit(self, cut: float, error: float) -> tuple[float, float, float]:
        treated, events = self.predicted >= cut, self.prevalence
        refuse_if(not treated.any(), f"`thresholds` must be reached by a risk, got {cut:g}: nobody is treated.")
        sensitivity = float(self.risk[treated].sum() / self.risk.sum())
        false = float((1 - self.risk[treated]).sum() / (1 - self.risk).sum())
        odds = (1 - events) / events * cut / (1 - cut)
        variance = sensitivity * (1 - sensitivity) / events + odds**2 * false / (1 - events) * (
            1 - false + false / events
        )
        return sensitivity - odds * false, error, variance / error**2


def _shift(logit: Floats, prevalence: float) -> float:
    """Return the intercept with which risks of some logits have a mean."""
    from scipy.optimize import brentq

    inner = logit[np.isfinite(logit)]
    missing = prevalence * len(logit) - float(np.count_nonzero(logit == np.inf))
    require(0 < missing < len(inner), "`prevalence` must be possible with the predictions of 0 and 1", prevalence)
    ends = -_BOUND - float(inner.max()), _BOUND - float(inner.min())
    return float(brentq(lambda a: float(expit(a + inner).sum()) - missing, *ends, xtol=1e-13))


def _patients_for_c(c: float, events: float, error: float) -> float:
    r"""Return the number n of patients for a standard error s of the c-statistic c.

    Newcombe's variance is :math:`c (1 - c) (1 + (n / 2 - 1) k) / (n^2 \varphi (1 - \varphi))` with
    :math:`k = \frac{1 - c}{2 - c} + \frac c{1 + c}`: a quadratic equation.
    """
    k, size = (1 - c) / (2 - c) + c / (1 + c), error**2 * events * (1 - events) / (c * (1 - c))
    return (k / 2 + math.sqrt(k**2 / 4 + 4 * size * (1 - k))) / (2 * size)
