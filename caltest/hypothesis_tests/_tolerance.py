"""Not calibrated enough: is miscalibration shown to exceed what is tolerated?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.hypothesis_tests._diagnostics import conditions_text, lens_text
from caltest.hypothesis_tests.classical._result import ClassicalTestResult
from caltest.predictions._lenses import Lens
from caltest.predictions._partitions import AgainstRest, Partition
from caltest.predictions._sample import Region, make_sample
from caltest.predictions._validation import validate_positive
from caltest.resampling._distributions import SMALLEST_PVALUE
from caltest.resampling._schemes import Consistency
from caltest.statistics import HosmerLemeshow

_LEVEL = 0.05  # of the words


def tolerance_pvalue(
    statistic: ArrayLike, df: ArrayLike, n_samples: ArrayLike, margin: ArrayLike
) -> float | NDArray[np.float64]:
    r"""Return p-values of "no more miscalibrated than the margin" for a chi-squared statistic of calibration.

    .. math:: p = P\bigl(\chi^2_\mathrm{df}(n \varepsilon_0^2) \ge C\bigr)

    The statistic of n rows whose standardised miscalibration is :math:`\varepsilon` is close to non-central
    chi-squared with non-centrality :math:`n \varepsilon^2`; see `tolerance_test`. At margin 0 it is the usual p-value.
    ``1 - p`` is the p-value of the opposite hypothesis, "at least as miscalibrated as the margin", on the same scale.

    Parameters
    ----------
    statistic : array-like
        C, not negative.
    df : array-like
        Degrees of freedom, positive: the number of groups if the model was made from other data.
    n_samples : array-like
        Number of rows.
    margin : array-like
        :math:`\varepsilon_0`, not negative. All four are broadcast.

    Returns
    -------
    float or array
        p-values, in the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is out of its range, or the shapes do not fit.

    References
    ----------
    G. Nattino, M. L. Pennell and S. Lemeshow (2020), Assessing the goodness of fit of logistic regression models in
    large samples: a modification of the Hosmer-Lemeshow test, Biometrics 76, 549-560.

    Examples
    --------
    The example of the paper: 315,828 rows, eight degrees of freedom.

    >>> import caltest
    >>> caltest.tolerance_pvalue([25.35, 16.66], 8, 315_828, 2.74e-3).round(4).tolist()
    [0.0102, 0.1129]
    """
    from scipy.stats import chi2

    arrays = [_numbers(statistic, "statistic"), _numbers(df, "df", positive=True)]
    arrays += [_numbers(n_samples, "n_samples"), _numbers(margin, "margin")]
    try:
        c, freedom, n, epsilon = np.broadcast_arrays(*arrays)
    except ValueError:
        shapes = ", ".join(str(array.shape) for array in arrays)
        msg = f"`statistic`, `df`, `n_samples` and `margin` must have shapes that broadcast, got {shapes}."
        raise ValueError(msg) from None
    if not (np.isfinite(n).all() and np.isfinite(epsilon).all()):
        msg = "`n_samples` and `margin` must be finite, got infinity."
        raise ValueError(msg)
    noncentrality = n * np.square(epsilon)
    pvalue = np.where(noncentrality > 0, _noncentral_tail(c, freedom, noncentrality), chi2.sf(c, freedom))
    return float(pvalue) if pvalue.ndim == 0 else pvalue


def _noncentral_tail(
    x: NDArray[np.float64], df: NDArray[np.float64], noncentrality: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return P(non-central chi-squared >= x); below 1e-130, where SciPy's value breaks off, Chernoff's bound of it."""
    from scipy.stats import ncx2

    mean, deviation = df + noncentrality, np.sqrt(2 * (df + 2 * noncentrality))
    y = np.clip(x, mean, 1e300 / (1 + noncentrality))
    u = (df + np.sqrt(df**2 + 4 * noncentrality * y)) / (2 * y)  # 1 - 2 t, where the bound is smallest
    log_bound = noncentrality * (1 - u) / (2 * u) - df * np.log(u) / 2 - (1 - u) * y / 2
    near = (x > mean - 40 * deviation) & (log_bound > -300)
    found = ncx2.sf(np.where(near, x, mean), df, noncentrality)
    return np.where(near, found, np.where(x < mean, 1.0, np.exp(log_bound)))


def _numbers(values: ArrayLike, name: str, *, positive: bool = False) -> NDArray[np.float64]:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (ValueError, TypeError):
        msg = f"`{name}` must hold numbers, got {values!r}."
        raise ValueError(msg) from None
    wrong = ~(array > 0) if positive else ~(array >= 0)
    if wrong.any():
        msg = f"`{name}` must be {'positive' if positive else 'at least 0'}, got {array[wrong].flat[0]}."
        raise ValueError(msg)
    return array


@dataclass(frozen=True, eq=False, kw_only=True)
class ToleranceResult(ClassicalTestResult):
    """Result of `tolerance_test`; unpacks as ``statistic, pvalue``.

    Attributes
    ----------
    statistic, pvalue : float
        C and its p-value.
    margin : float
        The miscalibration that is tolerated, standardised.
    miscalibration : float
        Estimate of the standardised miscalibration, debiased: the root of ``max(C - degrees_of_freedom, 0) / n``.
    degrees_of_freedom : int
        Sum of the ranks of the groups' covariances.
    method, null_law, accuracy : str
        How the p-value was found.
    hypothesis, lens : str
        What was tested, and what was looked at.
    conditions, notes : tuple of str
        When the p-value is valid, and what the reader should know beyond it.
    n_samples, n_outcomes : int
        Size of the induced problem.
    impossible_rows : array of int
        Rows whose label was given probability 0.
    """

    title = "Tolerance test of calibration"

    margin: float
    miscalibration: float

    @property
    def interpretation(self) -> str:
        """What the p-value says, in one sentence."""
        shown = "is shown" if self.pvalue <= _LEVEL else "is not shown"
        return f"Miscalibration above {self.margin:.4g} (standardised) {shown}, p = {self.pvalue:.4g}."

    def _findings(self) -> list[str]:
        return [
            f"C = {self.statistic:.4g} on {self.degrees_of_freedom} degrees of freedom",
            f"standardised miscalibration {self.miscalibration:.4g} (debiased), tolerated {self.margin:.4g}",
        ]


def tolerance_test(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    margin: float,
    *,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    partition: Partition | Any = AgainstRest(),
    region: Region | None = None,
) -> ToleranceResult:
    r"""Test whether a model is more miscalibrated than is tolerated; nothing is drawn.

    With enough rows every model is rejected by a test of perfect calibration. Here the hypothesis is
    :math:`\varepsilon \le \varepsilon_0`, "the miscalibration is at most the margin", for the standardised
    miscalibration within groups of rows

    .. math:: \varepsilon^2 = \sum_g \frac{n_g}{n} \mu_g^\top \bar\Sigma_g^{+} \mu_g, \qquad
              \text{two outcomes:} \quad \varepsilon^2 = \sum_g \frac{n_g}{n} \frac{\mu_g^2}{\bar v_g},

    :math:`\mu_g` being the mean over the group of true minus predicted probabilities, and :math:`\bar\Sigma_g`
    (:math:`\bar v_g`) the mean covariance (variance) of an outcome as predicted: the deviation in units of the standard
    deviation of a single outcome. The Hosmer-Lemeshow statistic C is then close to non-central chi-squared with
    non-centrality :math:`n \varepsilon^2`, and :math:`p = P(\chi^2_\mathrm{df}(n \varepsilon_0^2) \ge C)`.

    Nattino, Pennell and Lemeshow take :math:`\varepsilon_0^2 = (\chi^2_{\mathrm{df}, .95} - \mathrm{df}) / 10^6`, so
    that what is tolerated is what the usual test would just find in a million rows: 2.74e-3 for 8 degrees of freedom.
    What is tolerable depends on the use, so that there is no default.

    Asymptotic: it rejects too often where groups hold few expected events or non-events, as the chi-squared test does
    (`hosmer_lemeshow_test`), and where the miscalibration is so large that outcomes have another variance than
    predicted. A large p-value does not show that the model is within the margin: see `equivalence_test`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities of a model that has not seen these labels; one dimension is the probability of the
        positive class.
    margin : float
        :math:`\varepsilon_0`, positive.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    lens : lens, optional
        What to look at; the whole prediction by default.
    partition : Partition or callable
        The groups, as for `hosmer_lemeshow_test`: tenths of the rows.
    region : callable, optional
        From induced probabilities ``(n_samples, n_outcomes)`` to booleans ``(n_samples,)``; rows outside are left out.

    Returns
    -------
    ToleranceResult
        Prints as a report; unpacks as ``statistic, pvalue``.

    Raises
    ------
    ValueError
        If an argument is not of the form above.

    References
    ----------
    G. Nattino, M. L. Pennell and S. Lemeshow (2020), Assessing the goodness of fit of logistic regression models in
    large samples: a modification of the Hosmer-Lemeshow test, Biometrics 76, 549-560.

    Examples
    --------
    >>> import caltest
    >>> y_true, models = caltest.datasets.load_digits_predictions()
    >>> result = caltest.tolerance_test(y_true, models["logistic_regression"], 0.05, lens=caltest.Confidence())
    >>> result.interpretation
    'Miscalibration above 0.05 (standardised) is shown, p = 9.746e-11.'
    """
    tolerated = validate_positive(margin, "margin")
    sample = make_sample(y_true, y_prob, classes=classes, lens=lens, region=region)
    statistic = HosmerLemeshow(partition)
    value, freedom = float(statistic.evaluate(sample, sample.outcome)), statistic.degrees_of_freedom(sample)
    pvalue = float(tolerance_pvalue(value, freedom, sample.n_samples, tolerated)) if freedom else float(value <= 0)
    return ToleranceResult(
        statistic=value,
        pvalue=max(pvalue, SMALLEST_PVALUE),
        degrees_of_freedom=freedom,
        margin=tolerated,
        miscalibration=math.sqrt(max(value - freedom, 0.0) / sample.n_samples),
        method="asymptotic",
        null_law=f"non-central chi-squared({freedom}, {sample.n_samples * tolerated**2:.4g}), asymptotic",
        accuracy="asymptotic",
        hypothesis=f"standardised miscalibration within groups is at most {tolerated:.4g}",
        conditions=(
            *conditions_text(Consistency()),
            "groups hold many rows whose predictions are far from 0 and 1.",
        ),
        notes=(),
        lens=lens_text(lens, classes),
        n_samples=sample.n_samples,
        n_outcomes=sample.n_outcomes,
        impossible_rows=sample.impossible,
    )
