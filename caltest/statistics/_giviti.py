"""The statistic of the GiViTI test: the likelihood ratio of a polynomial of the logit, its degree selected forward."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Booleans, Floats, Integers
from caltest.predictions._sample import Sample
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import validate_count, validate_level
from caltest.resampling.distributions._base import Distribution, chi_squared
from caltest.resampling.distributions._forward_selection import ForwardSelection
from caltest.results._naming import parameter
from caltest.statistics._base import Statistic, in_equal_batches
from caltest.statistics._logistic_polynomials import fit_polynomials
from caltest.statistics._recalibration_scores import logits, logits_of


@dataclass(frozen=True, repr=False)
class GiViTI(Statistic):
    r"""Statistic of the GiViTI calibration test (Nattino, Finazzi & Bertolini 2014), for two outcomes.

    .. math:: T = 2 (\ell_m - \ell_0), \qquad
              \operatorname{logit} P(Y = 1 \mid p) = \beta_0 + \beta_1 \operatorname{logit} p + \dots
              + \beta_m (\operatorname{logit} p)^m

    with the largest log-likelihood :math:`\ell_m` of polynomials of degree m and that of the predictions,
    :math:`\ell_0`. The degree begins at ``first_degree`` and rises as long as one more power improves
    :math:`2 \ell` by more than the quantile ``threshold`` of chi-squared with one degree of freedom, up to
    ``last_degree``. It detects intercept, slope, and bends of the calibration curve on the logit; `CoxScore` is the
    test of the first two. Predictions of exactly 0 and 1 have no logit: they add nothing, or infinity if they are
    wrong.

    The null distribution accounts for the selection. ``method="asymptotic"`` is the limit over all degrees: a
    chi-squared number with ``first_degree + 1`` degrees of freedom, to which those of further powers are added only if
    they are significant. R's givitiR takes the distribution given the selected degree. The limit needs many events;
    simulated labels, the default, do not. Weights multiply the terms of the likelihood; the limit is then not known.

    Parameters
    ----------
    first_degree, last_degree : int
        Degrees of the first and of the largest polynomial, ``1 <= first_degree <= last_degree <= 6``. R's givitiR has
        1 and 4 for external validation.
    threshold : float
        Share of chi-squared(1) below which an improvement is not significant, 0.95 there.

    Raises
    ------
    TypeError
        If a degree is not an integer or ``threshold`` not a number.
    ValueError
        If degrees are outside their range or ``threshold`` is not strictly between 0 and 1.

    See Also
    --------
    caltest.hypothesis_tests.giviti_test : The test, with the polynomial that was selected.
    CoxScore : Intercept and slope.
    caltest.statistics.ICI : Mean distance to a smooth curve.

    References
    ----------
    G. Nattino, S. Finazzi and G. Bertolini (2014), A new calibration test and a reappraisal of the calibration belt for
    the assessment of prediction models based on dichotomous outcomes, Statistics in Medicine 33, 2390-2407.

    Examples
    --------
    Events happen in 1/4 of the observations at 0.1 and in 3/4 of those at 0.9:

    >>> import caltest
    >>> y_true, y_prob = [1, 0, 0, 0] * 10 + [1, 1, 1, 0] * 10, [0.1] * 40 + [0.9] * 40
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=caltest.statistics.GiViTI()), 3)
    14.773
    """

    words = "likelihood ratio of the calibration polynomial"

    first_degree: int = parameter(1, partial(validate_count, minimum=1))
    last_degree: int = parameter(4, partial(validate_count, minimum=1))
    threshold: float = parameter(0.95, validate_level)

    n_outcomes = 2
    degree = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.first_degree <= self.last_degree <= 6:
            refuse(
                f"`last_degree` must be at least `first_degree` and at most 6, got {self.first_degree} and "
                f"{self.last_degree}."
            )

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return the likelihood ratio ``(...)`` of outcomes ``(..., n_samples)``."""
        flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
        return in_equal_batches(lambda part: self.selected(sample, part)[0], flat).reshape(outcomes.shape[:-1])

    def selected(self, sample: Sample, outcomes: NDArray[Any]) -> tuple[Floats, Integers]:
        """Return likelihood ratios and degrees ``(n_replicates,)`` of outcomes ``(n_replicates, n_samples)``."""
        from scipy.stats import chi2

        limit = chi2(1).ppf(self.threshold)
        inner = np.isfinite(sample.of_predictions(logits))
        happened = outcomes[:, inner]
        curves = sample.of_predictions(fit_polynomials, self.last_degree)
        null = sample.of_predictions(_Null.of)
        base = null.twice_log_likelihood(happened)
        degree = np.full(len(outcomes), self.first_degree)
        twice = curves.fit(happened, self.first_degree)[1]
        rising = np.arange(len(outcomes))
        for more in range(self.first_degree + 1, self.last_degree + 1):
            if not rising.size:
                break
            higher = curves.fit(happened[rising], more)[1]
            better = higher - twice[rising] >= limit
            rising = rising[better]
            twice[rising], degree[rising] = higher[better], more
        wrong = null.contradicted(outcomes)
        return np.where(wrong, np.inf, np.maximum(twice - base, 0.0)), degree

    def asymptotic_distribution(self, sample: Sample) -> Distribution | None:
        """Return the limit after forward selection; None with weights."""
        if sample.weight is not None:
            return None
        logit = sample.of_predictions(logits)
        n_values = len(np.unique(logit[np.isfinite(logit)]))
        if not n_values:
            return chi_squared(0)
        varied = min(n_values - 1, self.last_degree)  # more powers than values change nothing
        first = min(self.first_degree, varied)
        return ForwardSelection(first + 1, varied - first, self.threshold)

    def derived(self, sample: Sample, value: float, null: Distribution) -> dict[str, Any]:
        """Return the degree that was selected, and the coefficients of this polynomial, ``(degree + 1,)``."""
        (degree,) = self.selected(sample, sample.outcome[None])[1]
        inner = np.isfinite(sample.of_predictions(logits))
        curves = sample.of_predictions(fit_polynomials, self.last_degree)
        if not inner.any():
            return {"selected_degree": int(degree), "coefficients": np.full(degree + 1, np.nan)}
        (fitted,), _ = curves.fit(sample.outcome[None, inner], int(degree))
        return {"selected_degree": int(degree), "coefficients": curves.of_logit(fitted)}


@dataclass(frozen=True, eq=False)
class _Null:
    """The log-likelihood under the null hypothesis, of predictions other than 0 and 1.

    Attributes
    ----------
    slope : array of shape (n,)
        Weighted logits of these predictions under the null hypothesis, 0 where they are infinite.
    size : float
        Log-likelihood without events, up to its sign.
    never, always : arrays of shape (n_samples,)
        Whether an event, and whether none, contradicts a prediction or the null hypothesis.
    """

    slope: Floats
    size: float
    never: Booleans
    always: Booleans

    @classmethod
    def of(cls, sample: Sample) -> _Null:
        logit = sample.of_predictions(logits)
        inner = np.isfinite(logit)
        under = np.where(inner, logits_of(sample.null_prob), logit)
        inside, weight = np.isfinite(under), sample.weight_or_ones
        size = float(np.logaddexp(0.0, under[inside]) @ weight[inside])
        return cls((np.where(inside, under, 0.0) * weight)[inner], size, under == -np.inf, under == np.inf)

    def twice_log_likelihood(self, happened: NDArray[Any]) -> Floats:
        return 2 * (in_equal_batches(lambda part: part @ self.slope, happened) - self.size)

    def contradicted(self, outcomes: NDArray[Any]) -> Booleans:
        return np.asarray((outcomes[:, self.never] == 1).any(axis=1) | (outcomes[:, self.always] == 0).any(axis=1))
