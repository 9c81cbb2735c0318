"""Spiegelhalter's statistic: the standardised difference between the Brier score and its expectation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Floats, blocks
from caltest.predictions._sample import Sample, expected_outcomes
from caltest.resampling.distributions._base import Distribution, LimitDistribution
from caltest.resampling.draws._signs import sum_signed
from caltest.resampling.draws._summaries import KeptSums
from caltest.statistics._base import Statistic, sum_of_terms, terms_of_groups

_ROUNDING = 1e-12


@dataclass(frozen=True, repr=False)
class Spiegelhalter(Statistic):
    r"""Spiegelhalter's statistic :math:`|Z|`: standardised difference between the Brier score and its expectation.

    .. math:: Z = \frac{\sum_i (y_i - p_i)(1 - 2 p_i)}{\bigl(\sum_i (1 - 2 p_i)^2 p_i (1 - p_i)\bigr)^{1/2}}

    for two outcomes (Spiegelhalter 1986), and with the Brier score :math:`\sum_k (p_{ik} - 1\{y_i = k\})^2` of any
    number of outcomes

    .. math::
        Z = \frac{\sum_i (m_i - p_{i, y_i})}{\bigl(\sum_{ik} p_{ik} (p_{ik} - m_i)^2\bigr)^{1/2}},
        \qquad m_i = \sum_k p_{ik}^2,

    the same number for two outcomes. If Z > 0, the score is worse than expected and the predictions are over-confident;
    if Z < 0, it is better and they are under-confident. The limit of Z is standard normal:
    ``calibration_test(..., method="asymptotic")``. An observation whose possible outcomes have equal probabilities adds
    nothing. So the statistic has no power against some miscalibration: at :math:`p = 1/2`, and where shifts on both
    sides of 1/2 cancel. Without any variance it is 0, or infinite if an outcome of probability 0 happened. If the null
    hypothesis is a calibration function :math:`\rho`, expectation and variance are those under :math:`\rho(p_i)`.
    Sample weights multiply the terms.

    See Also
    --------
    TemperatureScore : The same for the logarithmic score.
    CoxScore : Intercept and slope on the logit scale.

    References
    ----------
    D. J. Spiegelhalter (1986), Probabilistic prediction in patient management and clinical trials, Statistics in
    Medicine 5, 421-433.

    Examples
    --------
    A forecaster predicts 0.9 and is right in 6 of 10 cases:

    >>> import caltest
    >>> y_true, y_prob = [1] * 6 + [0] * 4, [0.9] * 10
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=caltest.statistics.Spiegelhalter()), 4)
    3.1623
    """

    words = "Spiegelhalter's statistic"

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return :math:`|Z|`, ``(...)``, of outcomes ``(..., n_samples)``."""
        return np.abs(self.signed(sample, outcomes))

    def signed(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return Z, ``(...)``: positive if over-confident."""
        return sum_of_terms(sample, outcomes, sample.once(_terms))

    def evaluate_signs(self, sample: Sample, signs: NDArray[np.int8]) -> Floats:
        """Return :math:`|Z|` of signed residuals."""
        return np.abs(sum_signed(signs, sample.once(terms_of_groups, _terms))[:, 0])

    def evaluate_sums(self, sums: KeptSums) -> Floats | None:
        """Return :math:`|Z|` of kept sums."""
        return None if sums.brier_excess is None else np.abs(sums.brier_excess)

    def asymptotic_distribution(self, sample: Sample) -> Distribution:
        """Return the distribution of the absolute value of a standard normal variable."""
        from scipy.stats import halfnorm

        return LimitDistribution(halfnorm(), "standard normal, two-sided")

    def direction(self, sample: Sample, outcomes: NDArray[Any]) -> float:
        """Return -Z: below 0 where the Brier score is worse than expected."""
        return -float(self.signed(sample, outcomes))


def _terms(sample: Sample) -> Floats:
    """Return what each observation adds to Z by its outcome, ``(n_samples, n_outcomes)``."""
    excess, squares = np.empty(sample.given.shape), np.empty(sample.given.shape)
    for rows in blocks(*sample.given.shape):
        prob, expected = sample.prob[rows], expected_outcomes(sample.null_prob[rows])
        mean = (expected * prob).sum(axis=1, keepdims=True)
        own = np.subtract(mean, prob, out=excess[rows])
        # Equal probabilities differ by rounding only, which would be all there is if no others exist.
        own[(expected > 0) & (np.abs(own) <= _ROUNDING * mean)] = 0.0
        if sample.weight is not None:
            own *= sample.weight[rows, None]
        np.multiply(expected, np.square(own), out=squares[rows])
    variance = squares.sum()
    if variance > 0:
        return np.divide(excess, np.sqrt(variance), out=excess)
    return np.where(expected_outcomes(sample.null_prob) > 0, 0.0, np.inf)
