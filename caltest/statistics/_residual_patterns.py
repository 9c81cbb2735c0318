"""Classical statistics of the residuals of equal predictions: those of Stukel, Osius and Rojek, and le Cessie."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._sample import Sample
from caltest.resampling.distributions._base import Distribution, LimitDistribution, chi_squared
from caltest.statistics._base import Statistic
from caltest.statistics._recalibration_scores import logits

_HALVINGS = 60
_MOST_SINGLE = 0.75  # of the variance of a quadratic form, by fourth cumulants; with 0.9 a level of 5 % was 3.1 %
_MOST_SKEWED = 1.0  # chi-squared with 8 degrees of freedom has this skewness
_FEWEST = 6  # observations; a level of 10 % was 39 % with one and 21 % with two
_ROUNDING = 1e-9  # of distances of logits


@dataclass(frozen=True, eq=False)
class Patterns:
    """Observations with equal predictions other than 0 and 1, in increasing order of these.

    Attributes
    ----------
    order : array of shape (n,)
        The observations.
    first : array of shape (n_patterns,)
        Place in ``order`` where the observations of each pattern begin.
    logit, weight, variance : array of shape (n_patterns,)
        The logit of the prediction, the sum of the weights, and the variance of the weighted residual.
    third, excess, sixth : array of shape (n_patterns,)
        The third, fourth and sixth cumulant of the weighted residual.
    """

    order: Integers
    first: Integers
    logit: Floats
    weight: Floats
    variance: Floats
    third: Floats
    excess: Floats
    sixth: Floats

    @classmethod
    def of(cls, sample: Sample) -> Patterns:
        """Return those of a sample; for `Sample.of_predictions`."""
        logit, weight = sample.of_predictions(logits), sample.weight_or_ones
        counts = np.isfinite(logit) & (weight > 0)
        order = np.flatnonzero(counts)[np.argsort(logit[counts], kind="stable")]
        x, w, v = logit[order], weight[order], sample.event_variance[order]
        first, skew = np.flatnonzero(np.diff(x, prepend=-np.inf)), 1 - 2 * sample.expected[order, 1]
        cumulants = (w**2 * v, w**3 * v * skew, w**4 * v * (1 - 6 * v), w**6 * v * (1 - 30 * v + 120 * v**2))
        total = (np.add.reduceat(terms, first) if len(x) else x for terms in (w, *cumulants))
        return cls(order, first, x[first], *total)

    def residuals(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return the weighted sums of residuals ``(..., n_patterns)`` of outcomes ``(..., n_samples)``."""
        if not len(self.order):
            return np.zeros((*outcomes.shape[:-1], 0))
        # np.take keeps the order in memory, on which sums depend; an index does not. So do the other ones below.
        residual = np.take(outcomes, self.order, axis=-1) - sample.expected[self.order, 1]
        if sample.weight is not None:
            residual *= sample.weight[self.order]
        if len(self.first) == len(self.order):
            return np.asarray(residual)
        return np.asarray(np.add.reduceat(residual, self.first, axis=-1))


class PatternStatistic(Statistic):
    """Base class of statistics of the residuals of patterns, infinite if an outcome of probability 0 happened."""

    n_outcomes = 2
    limit_needs = (
        "many different predictions, of which no few near 0 or 1 decide, predictions fixed "
        '(method="monte-carlo" is valid for all)'
    )

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return the statistic ``(...)`` of outcomes ``(..., n_samples)``."""
        value = self.read(sample, sample.of_predictions(Patterns.of).residuals(sample, outcomes))
        never, always = (sample.expected[:, k] <= 0 for k in (1, 0))
        if not (never.any() or always.any()):
            return value
        wrong = (outcomes[..., never] == 1).any(axis=-1) | (outcomes[..., always] == 0).any(axis=-1)
        return np.where(wrong, np.inf, value)

    @abstractmethod
    def read(self, sample: Sample, residual: Floats) -> Floats:
        """Return the statistic ``(...)`` of residuals of patterns ``(..., n_patterns)``."""


@dataclass(frozen=True, repr=False)
class Stukel(PatternStatistic):
    r"""Stukel's statistic: the score of two tails of the calibration curve, for two outcomes (Stukel 1988).

    .. math:: T = \sum_{s \in \{+, -\}} \frac{\bigl(\sum_{i \in s} z_i (y_i - p_i)\bigr)^2}
              {\sum_{i \in s} z_i^2 p_i (1 - p_i)}, \qquad z_i = \tfrac12 (\operatorname{logit} p_i)^2,

    over the predictions above and below 1/2. It is Rao's score statistic of the coefficients of the two features in a
    logistic regression whose offset is the logit of the predictions, so that it detects tails that are longer or
    shorter than those of a logistic curve. The limit is chi-squared with one degree of freedom for each side that holds
    predictions. Predictions of exactly 0 and 1 have no logit: they add nothing, or infinity if they are wrong. Weights
    multiply the residuals, their squares the variances.

    See Also
    --------
    caltest.hypothesis_tests.stukel_test : The test.
    CoxScore : Intercept and slope.
    GiViTI : Powers of the logit.

    References
    ----------
    T. A. Stukel (1988), Generalized logistic models, Journal of the American Statistical Association 83, 426-431.

    Examples
    --------
    Events happen in 1/4 of the observations at 0.1 and in 3/4 of those at 0.9:

    >>> import caltest
    >>> y_true, y_prob = [1, 0, 0, 0] * 10 + [1, 1, 1, 0] * 10, [0.1] * 40 + [0.9] * 40
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=caltest.statistics.Stukel()), 6)
    20.0
    """

    words = "Stukel's statistic"
    degree = 2

    def read(self, sample: Sample, residual: Floats) -> Floats:
        """Return T."""
        return np.asarray(np.square(self.sides(sample, residual)).sum(axis=-1))

    def sides(self, sample: Sample, residual: Floats) -> Floats:
        """Return the standardised scores ``(..., 2)`` below and above 1/2, positive if predictions are too low."""
        patterns = sample.of_predictions(Patterns.of)
        found = np.zeros((*residual.shape[:-1], 2))
        for k, side in enumerate((patterns.logit < 0, patterns.logit > 0)):
            z = np.where(side, np.square(patterns.logit) / 2, 0.0)
            variance = (z**2 * patterns.variance).sum()
            if variance > 0:
                found[..., k] = (residual * z).sum(axis=-1) / np.sqrt(variance)
        return found

    def asymptotic_distribution(self, sample: Sample) -> Distribution:
        """Return chi-squared with a degree of freedom for each side."""
        patterns = sample.of_predictions(Patterns.of)
        shown = patterns.variance > 0
        return chi_squared(int((shown & (patterns.logit < 0)).any()) + int((shown & (patterns.logit > 0)).any()))

    def derived(self, sample: Sample, value: float, null: Distribution) -> dict[str, Any]:
        """Return the standardised scores of the two sides."""
        residual = sample.of_predictions(Patterns.of).residuals(sample, sample.outcome)
        low, high = self.sides(sample, residual)
        return {"below_half": float(low), "above_half": float(high)}


@dataclass(frozen=True, repr=False)
class OsiusRojek(PatternStatistic):
    r"""Standardised Pearson chi-square :math:`|Z|` of Osius and Rojek (1992), for two outcomes, two-sided.

    .. math:: Z = \frac{X^2 - J}{\sigma}, \qquad
              X^2 = \sum_{j=1}^{J} \frac{(o_j - m_j p_j)^2}{m_j p_j (1 - p_j)}, \qquad
              \sigma^2 = \sum_j \Bigl(2 + \frac{1 - 6 p_j (1 - p_j)}{m_j p_j (1 - p_j)}\Bigr)

    over the J distinct predictions, each of :math:`m_j` observations with :math:`o_j` events. J and :math:`\sigma^2`
    are exactly the mean and variance of :math:`X^2` if the model is calibrated. Z > 0 if residuals are larger than
    predicted: over-confidence, or dependence of observations with the same prediction. Without ties it is a weighted
    sum of residuals, in which those of small and large predictions count most. The limit of Z is standard normal; it is
    refused where the exact skewness of :math:`X^2` is above 1: of few patterns with many observations each, or of
    predictions so near to 0 and 1 that few observations decide. Predictions of exactly 0 and 1 add nothing, or infinity
    if they are wrong. Weights multiply the residuals.

    See Also
    --------
    caltest.hypothesis_tests.osius_rojek_test : The test.
    HosmerLemeshow : Residuals of groups of neighbouring predictions.
    Spiegelhalter : The same for the sum of squared residuals, without division.

    References
    ----------
    G. Osius and D. Rojek (1992), Normal goodness-of-fit tests for multinomial models with large degrees of freedom,
    Journal of the American Statistical Association 87, 1145-1152.

    Examples
    --------
    Two predictions, of 10 observations each with 5 events:

    >>> import caltest
    >>> y_true, y_prob = [0, 1] * 10, [0.2] * 10 + [0.5] * 10
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=caltest.statistics.OsiusRojek()), 6)
    1.853499
    """

    words = "standardised Pearson chi-square"
    measures_scatter = True
    degree = 2

    def read(self, sample: Sample, residual: Floats) -> Floats:
        """Return :math:`|Z|`."""
        return np.abs(self.signed(sample, residual))

    def signed(self, sample: Sample, residual: Floats) -> Floats:
        """Return Z: positive if residuals are larger than predicted."""
        patterns = sample.of_predictions(Patterns.of)
        kept = patterns.variance > 0
        variance = patterns.variance[kept]
        spread = self._variance(patterns)
        if not spread > _ROUNDING * max(len(variance), 1):  # a single observation at 1/2 has always the same square
            return np.zeros(residual.shape[:-1])
        chi_square = (np.square(np.compress(kept, residual, axis=-1)) / variance).sum(axis=-1)
        return np.asarray((chi_square - len(variance)) / np.sqrt(spread))

    @staticmethod
    def _variance(patterns: Patterns) -> float:
        """Return the variance of Pearson's chi-square."""
        kept = patterns.variance > 0
        return float((2 + patterns.excess[kept] / patterns.variance[kept] ** 2).sum())

    def asymptotic_distribution(self, sample: Sample) -> Distribution | None:
        """Return the absolute value of a standard normal variable; None where the chi-square is too skewed for it."""
        from scipy.stats import halfnorm

        patterns = sample.of_predictions(Patterns.of)
        kept, spread = patterns.variance > 0, self._variance(patterns)
        v, third = patterns.variance[kept], patterns.third[kept]
        central = 8 + 12 * patterns.excess[kept] / v**2 + (10 * third**2 + patterns.sixth[kept]) / v**3
        if abs(central.sum()) > _MOST_SKEWED * max(spread, 0.0) ** 1.5:
            return None
        return LimitDistribution(halfnorm(), "standard normal, two-sided")

    def derived(self, sample: Sample, value: float, null: Distribution) -> dict[str, Any]:
        """Return Pearson's chi-square and the number of distinct predictions, its expected value."""
        patterns = sample.of_predictions(Patterns.of)
        kept = patterns.variance > 0
        residual = patterns.residuals(sample, sample.outcome)[kept]
        chi_square = float((residual**2 / patterns.variance[kept]).sum())
        return {"chi_square": chi_square, "n_patterns": int(kept.sum())}

    def direction(self, sample: Sample, outcomes: NDArray[Any]) -> float:
        """Return -Z: below 0 where residuals are larger than predicted."""
        return -float(self.signed(sample, sample.of_predictions(Patterns.of).residuals(sample, outcomes)))


@dataclass(frozen=True, repr=False)
class LeCessie(PatternStatistic):
    r"""Statistic of le Cessie and van Houwelingen (1991): smoothed residuals, for two outcomes.

    .. math:: T = \frac1n \sum_i \frac{\bigl(\sum_{j \in W_i} (y_j - p_j)\bigr)^2}{\sum_{j \in W_i} p_j (1 - p_j)},
              \qquad W_i = \{j : |\operatorname{logit} p_j - \operatorname{logit} p_i| \le h\}

    The window of each prediction has the half-width h on the logit at which it holds :math:`\sqrt n` observations on
    average, as the authors choose it, the kernel is uniform, and residuals are smoothed as they are (Hosmer et al.
    1997), in the space of predictions. If the model is calibrated, the mean of T is 1. Predictions of exactly 0 and 1
    add nothing, or infinity if they are wrong. Weights multiply the residuals, and the terms of the sum over i.

    ``method="asymptotic"`` is the authors' scaled chi-squared with the exact mean and variance of T. It is refused with
    fewer than 6 observations, and where much of the variance is due to fourth moments of single observations: windows
    hold few expected events.

    See Also
    --------
    caltest.hypothesis_tests.le_cessie_test : The test.
    HosmerLemeshow : The same with groups that do not overlap.
    SKCE : Smoothed residuals with any kernel, for any number of outcomes.

    References
    ----------
    S. le Cessie and J. C. van Houwelingen (1991), A goodness-of-fit test for binary regression models, based on
    smoothing methods, Biometrics 47, 1267-1282.
    D. W. Hosmer, T. Hosmer, S. le Cessie and S. Lemeshow (1997), A comparison of goodness-of-fit tests for the logistic
    regression model, Statistics in Medicine 16, 965-980.

    Examples
    --------
    Two windows, each of 40 observations with 6 events more, and fewer, than expected:

    >>> import caltest
    >>> y_true, y_prob = [1, 0, 0, 0] * 10 + [1, 1, 1, 0] * 10, [0.1] * 40 + [0.9] * 40
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=caltest.statistics.LeCessie()), 6)
    10.0
    """

    words = "mean square of smoothed residuals"
    measures_scatter = True
    degree = 2

    def read(self, sample: Sample, residual: Floats) -> Floats:
        """Return T."""
        start, stop, variance, weight = sample.of_predictions(_windows)
        if not len(start):
            return np.zeros(residual.shape[:-1])
        below = np.zeros((*residual.shape[:-1], residual.shape[-1] + 1))
        np.cumsum(residual, axis=-1, out=below[..., 1:])
        smoothed = np.square(np.take(below, stop, axis=-1) - np.take(below, start, axis=-1))
        return np.asarray(
            (smoothed * np.divide(weight, variance, out=np.zeros_like(weight), where=variance > 0)).sum(-1)
        )

    def asymptotic_distribution(self, sample: Sample) -> Distribution | None:
        """Return scaled chi-squared with the mean and variance of T; None where single observations decide."""
        from scipy.stats import gamma

        patterns = sample.of_predictions(Patterns.of)
        if 0 < len(patterns.order) < _FEWEST:
            return None
        start, stop, variance, weight = sample.of_predictions(_windows)
        share = np.divide(weight, variance, out=np.zeros_like(weight), where=variance > 0)
        before = np.append(0.0, np.cumsum(patterns.variance))
        total = 0.0
        for lag in range(len(start)):  # pairs of windows that have observations in common
            common = before[stop[: len(stop) - lag]] - before[start[lag:]]
            if not (common > 0).any():
                break
            pairs = np.square(common.clip(0.0)) * share[: len(share) - lag] * share[lag:]
            total += (2 if lag == 0 else 4) * float(pairs.sum())
        reached = np.append(0.0, np.cumsum(share))
        # The window of j contains i if and only if that of i contains j.
        diagonal = reached[stop] - reached[start]
        single = float((patterns.excess * np.square(diagonal)).sum())
        if single > _MOST_SINGLE * total:
            return None
        total += single
        mean = float((weight * (variance > 0)).sum())
        if not mean or total <= 0:
            return chi_squared(0)
        return LimitDistribution(gamma(mean**2 / total, scale=total / mean), "scaled chi-squared")


def _windows(sample: Sample) -> tuple[Integers, Integers, Floats, Floats]:
    """Return where the window of each pattern begins and ends, its variance, and the share of the pattern."""
    patterns = sample.of_predictions(Patterns.of)
    x, share = patterns.logit, patterns.weight / patterns.weight.sum() if len(patterns.weight) else patterns.weight
    before = np.append(0.0, np.cumsum(share))

    def ends(reach: float) -> tuple[Integers, Integers]:
        return np.searchsorted(x, x - reach), np.searchsorted(x, x + reach, side="right")

    weight = sample.weight_or_ones[patterns.order]
    wanted = np.sqrt(np.square(weight).sum()) / weight.sum() if len(x) else 0.0  # of equal weights 1 / sqrt(n)
    low, high = 0.0, float(x[-1] - x[0]) if len(x) else 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        start, stop = ends(middle)
        enough = share @ (before[stop] - before[start]) >= wanted * (1 - _ROUNDING)
        low, high = (low, middle) if enough else (middle, high)
    start, stop = ends(high * (1 + _ROUNDING))  # both of two predictions at this distance, or none
    total = np.append(0.0, np.cumsum(patterns.variance))
    return start, stop, total[stop] - total[start], share
