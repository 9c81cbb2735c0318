"""Tolerance test: is the miscalibration larger than is tolerated?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest.estimation._options import LevelOptions, look_at
from caltest.hypothesis_tests._classical_result import ClassicalTestResult
from caltest.hypothesis_tests._diagnostics import describe_answer, impossible_note
from caltest.predictions._arrays import Floats
from caltest.predictions.cells._partitions import Partition
from caltest.predictions.cells._quantiles import AgainstRest
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import refuse_if, validate_positive
from caltest.resampling import Consistency
from caltest.resampling.distributions._base import SMALLEST_PVALUE, Distribution, LimitDistribution, Tail, chi_squared
from caltest.resampling.distributions._root import root_between
from caltest.resampling.engine._run import Answer, settle
from caltest.results import ConfidenceInterval, Number
from caltest.results._description import Table, percent
from caltest.results._margin_verdict import MarginFinding, MarginVerdict
from caltest.statistics import HosmerLemeshow


def tolerance_pvalue(statistic: ArrayLike, df: ArrayLike, n_samples: ArrayLike, margin: ArrayLike) -> float | Floats:
    r"""Compute the p-values of a tolerance test from chi-squared statistics of calibration.

    .. math:: p = P\bigl(\chi^2_\mathrm{df}(n \varepsilon_0^2) \ge C\bigr)

    The hypothesis is that the standardised miscalibration :math:`\varepsilon` is at most the margin. The statistic of n
    observations is close to non-central chi-squared with non-centrality :math:`n \varepsilon^2`; see `tolerance_test`.
    At margin 0 this is the usual p-value. ``1 - p`` is the p-value of the opposite hypothesis, that the
    miscalibration is at least the margin.

    Parameters
    ----------
    statistic : array-like
        C, not negative.
    df : array-like
        Degrees of freedom, positive: the number of groups if the model was made from other data.
    n_samples : array-like
        Number of observations.
    margin : array-like
        :math:`\varepsilon_0`, not negative. All four are broadcast.

    Returns
    -------
    float or array
        p-values, in the broadcast shape.

    Raises
    ------
    TypeError
        If an argument does not hold numbers.
    ValueError
        If ``statistic``, ``n_samples`` or ``margin`` is negative; if ``df`` is not positive; if ``n_samples`` or
        ``margin`` is infinite; if the shapes do not broadcast.

    See Also
    --------
    caltest.tolerance_test : The test that returns it.

    References
    ----------
    G. Nattino, M. L. Pennell and S. Lemeshow (2020), Assessing the goodness of fit of logistic regression models in
    large samples: a modification of the Hosmer-Lemeshow test, Biometrics 76, 549-560.

    Examples
    --------
    The example of the paper has 315,828 observations and eight degrees of freedom.

    >>> import caltest
    >>> caltest.hypothesis_tests.tolerance_pvalue([25.35, 16.66], 8, 315_828, 2.74e-3).round(4).tolist()
    [0.0102, 0.1129]
    """
    from scipy.stats import chi2

    arrays = [_numbers(statistic, "statistic"), _numbers(df, "df", positive=True)]
    arrays += [_numbers(n_samples, "n_samples"), _numbers(margin, "margin")]
    try:
        c, freedom, n, epsilon = np.broadcast_arrays(*arrays)
    except ValueError:
        shapes = ", ".join(str(array.shape) for array in arrays)
        refuse(f"`statistic`, `df`, `n_samples` and `margin` must have shapes that broadcast, got {shapes}.")
    is_finite = np.isfinite(n).all() and np.isfinite(epsilon).all()
    refuse_if(not is_finite, "`n_samples` and `margin` must be finite, got infinity.")
    noncentrality = n * np.square(epsilon)
    pvalue = np.where(noncentrality > 0, _noncentral_tail(c, freedom, noncentrality), chi2.sf(c, freedom))
    return float(pvalue) if pvalue.ndim == 0 else pvalue


def _noncentral_tail(x: Floats, df: Floats, noncentrality: Floats) -> Floats:
    """Return P(non-central chi-squared >= x); below 1e-130, where SciPy's value breaks off, Chernoff's bound of it."""
    from scipy.stats import ncx2

    mean, deviation = df + noncentrality, np.sqrt(2 * (df + 2 * noncentrality))
    y = np.clip(x, mean, 1e300 / (1 + noncentrality))
    u = (df + np.sqrt(df**2 + 4 * noncentrality * y)) / (2 * y)  # 1 - 2 t, where the bound is smallest
    log_bound = noncentrality * (1 - u) / (2 * u) - df * np.log(u) / 2 - (1 - u) * y / 2
    near = (x > mean - 40 * deviation) & (log_bound > -300)
    found = ncx2.sf(np.where(near, x, mean), df, noncentrality)
    return np.where(near, found, np.where(x < mean, 1.0, np.exp(log_bound)))


def _numbers(values: ArrayLike, name: str, *, positive: bool = False) -> Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (ValueError, TypeError):
        refuse(f"`{name}` must hold numbers, got {values!r}.", TypeError)
    wrong = ~(array > 0) if positive else ~(array >= 0)
    if wrong.any():
        refuse(f"`{name}` must be {'positive' if positive else 'at least 0'}, got {array[wrong].flat[0]}.")
    return array


_WITHOUT_LIMIT = "compatible with 0", "infinite, because a label had been given probability 0"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ToleranceResult(ClassicalTestResult):
    """Result of `tolerance_test`: a `ClassicalTestResult` with the margin.

    Attributes
    ----------
    margin : float
        The miscalibration that is tolerated, standardised.
    miscalibration : float
        Estimate of the standardised miscalibration, debiased: the root of ``max(C - degrees_of_freedom, 0) / n``.
    largest_margin : float
        The largest margin that these observations show to be exceeded at the level; 0 if there is none.

    See Also
    --------
    caltest.tolerance_test : The test that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel, Temperature
    >>> _, y_true, y_prob = DirichletModel(2, truth=Temperature(2.0)).draw(300, rng=0)
    >>> result = caltest.tolerance_test(y_true, y_prob, 0.01)
    >>> result.margin, result.rejected
    (0.01, True)
    """

    margin: float
    miscalibration: float
    largest_margin: float

    @property
    def n_expected(self) -> float:  # type: ignore[override]
        """Expected number of the rarer one of events and other observations."""
        return float(self._evidence.n_expected)

    def _verdict(self) -> MarginVerdict:
        at_least = f"at least {self.largest_margin:.4g} ({percent(1 - self.alpha)} confidence)"
        question = MarginFinding(
            kind="above",
            size=Number(
                name="standardised miscalibration",
                estimate=self.miscalibration,
                interval=ConfidenceInterval(self.largest_margin, math.inf),
                shown=at_least if 0 < self.largest_margin < math.inf else _WITHOUT_LIMIT[self.largest_margin > 0],
            ),
            margin=self.margin,
            pvalue=self.pvalue,
            n=self.n_samples,
        )
        return MarginVerdict(
            pvalue=self.pvalue,
            alpha=self.alpha,
            n_samples=self.n_samples,
            n_outcomes=self.n_outcomes,
            n_expected=self.n_expected,
            findings=(question,) if self.rejected else (),
            question=question,
            numbers=(question.size,),
            cautions=self.notes,
        )


@reads_arguments
def tolerance_test(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    margin: float,
    *,
    partition: Partition | Any = AgainstRest(),
    **options: Unpack[LevelOptions],
) -> ToleranceResult:
    r"""Test whether a model is more miscalibrated than is tolerated (Nattino et al. 2020).

    With enough observations every model is rejected by a test of perfect calibration. Here the hypothesis is
    :math:`\varepsilon \le \varepsilon_0`, "the miscalibration is at most the margin", for the standardised
    miscalibration within groups of observations

    .. math:: \varepsilon^2 = \sum_g \frac{n_g}{n} \mu_g^\top \bar\Sigma_g^{+} \mu_g, \qquad
              \text{two outcomes:} \quad \varepsilon^2 = \sum_g \frac{n_g}{n} \frac{\mu_g^2}{\bar v_g},

    :math:`\mu_g` being the mean over the group of true minus predicted probabilities, and :math:`\bar\Sigma_g`
    (:math:`\bar v_g`) the mean covariance (variance) of an outcome as predicted: the deviation in units of the standard
    deviation of a single outcome. The Hosmer-Lemeshow statistic C is then close to non-central chi-squared with
    non-centrality :math:`n \varepsilon^2`, and :math:`p = P(\chi^2_\mathrm{df}(n \varepsilon_0^2) \ge C)`.

    Nattino, Pennell and Lemeshow take :math:`\varepsilon_0^2 = (\chi^2_{\mathrm{df}, .95} - \mathrm{df}) / 10^6`, the
    miscalibration that the usual test would just detect in a million observations: 2.74e-3 for 8 degrees of freedom.
    There is no default, because what is tolerable depends on the use.

    The test is asymptotic. It rejects too often where groups hold few expected events or non-events, as the chi-squared
    test does (`hosmer_lemeshow_test`), and where the miscalibration is so large that outcomes have another variance
    than predicted. A large p-value does not show that the model is within the margin; see `equivalence_test`.

    Parameters
    ----------
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities of a model that was not fitted to these labels; one dimension is the probability of the
        positive class.
    margin : float
        :math:`\varepsilon_0`, positive.
    partition : Partition or callable
        The groups, as for `hosmer_lemeshow_test`: tenths of the observations.

    Returns
    -------
    ToleranceResult
        Prints as a report; unpacks as ``statistic, pvalue``.

    Raises
    ------
    TypeError
        If ``margin`` is no number, ``lens`` no lens or ``region`` no function.
    ValueError
        If ``margin`` is not positive; if ``y_prob`` has values outside [0, 1] or rows that do not sum to 1; if
        ``y_true`` holds other labels than the columns; if ``region`` holds no observation; if ``partition`` needs two
        outcomes and the lens returns more; if ``alpha`` is not strictly between 0 and 1.

    See Also
    --------
    equivalence_test : Is the miscalibration smaller than a margin?
    hosmer_lemeshow_test : Is there any miscalibration?

    References
    ----------
    G. Nattino, M. L. Pennell and S. Lemeshow (2020), Assessing the goodness of fit of logistic regression models in
    large samples: a modification of the Hosmer-Lemeshow test, Biometrics 76, 549-560.

    Examples
    --------
    >>> import caltest
    >>> y_true, models = caltest.datasets.load_digits_predictions()
    >>> result = caltest.tolerance_test(y_true, models["logistic_regression"], 0.05, lens=caltest.Confidence())
    >>> result.rejected, f"{result.pvalue:.4g}", round(result.miscalibration, 3)
    (True, '9.746e-11', 0.279)
    """
    tolerated = validate_positive(margin, "margin")
    sample, about = look_at(y_true, y_prob, options)
    statistic = settle(HosmerLemeshow(partition), sample)
    value, freedom = float(statistic.evaluate(sample, sample.outcome)), statistic.degrees_of_freedom(sample)
    null = _null(freedom, sample.n_samples * tolerated**2)
    pvalue = float(tolerance_pvalue(value, freedom, sample.n_samples, tolerated)) if freedom else float(value <= 0)
    pvalue = max(pvalue, SMALLEST_PVALUE)
    one = np.array([value]), np.array([pvalue])
    tail = Tail(pvalue, math.nan, f"non-central chi-squared({freedom}, {sample.n_samples * tolerated**2:.4g})")
    answer = Answer(statistic, sample, value, null, pvalue, *one, (null,), "asymptotic", tail=tail)
    result = describe_answer(
        answer,
        Consistency(),
        lens=about["lens"],
        classes=options["classes"],
        alpha=options["alpha"],
        title="Tolerance test of calibration",
    )
    hypothesis = f"the standardised miscalibration within groups is at most {tolerated:.4g}"
    return result.extend(
        ToleranceResult,
        hypothesis=hypothesis,
        of_calibration=False,
        notes=tuple(impossible_note(sample.impossible)),
        sentences=(),
        table=Table(("statistic", "value", "at the margin (5 % to 95 %)", "p-value"), [result._row()]),
        margin=tolerated,
        miscalibration=math.sqrt(max(value - freedom, 0.0) / sample.n_samples),
        largest_margin=_largest_margin(value, freedom, sample.n_samples, options["alpha"]),
    )


def _largest_margin(value: float, freedom: int, n_samples: int, alpha: float) -> float:
    """Return the margin at which the p-value of a statistic is the level."""

    def excess(margin: float) -> float:
        return float(tolerance_pvalue(value, freedom, n_samples, margin)) - alpha

    if not freedom or excess(0.0) >= 0:
        return 0.0
    if not math.isfinite(value):
        return math.inf
    return root_between(excess, 0.0, math.sqrt(value / n_samples), 1e-9)


def _null(freedom: int, noncentrality: float) -> Distribution:
    from scipy.stats import ncx2

    if not freedom:
        return chi_squared(0)
    return LimitDistribution(ncx2(freedom, noncentrality), f"non-central chi-squared({freedom}, {noncentrality:.4g})")
