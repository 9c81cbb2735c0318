r"""Limit distributions of `KS`, `Kuiper` and `ClasswiseKS`: functionals of a Brownian motion.

Standardised by :math:`(\sum_i p_i (1 - p_i))^{1/2}`, the path of a calibrated model tends to a Brownian motion B on
[0, 1]; `KS` tends to the largest value of \|B\|, `Kuiper` to the range of B, whose distributions Feller (1951) derived.
`ClasswiseKS` of two outcomes tends to the largest distance of B from either of its ends, B(0) = 0 and B(1). Every tail
probability is a sum whose first term dominates, so that its logarithm is exact to rounding however small it is.

These p-values are limits, never exact, and `calibration_test` simulates labels by default. They are wrong in four
cases, where :math:`V = \sum_i p_i (1 - p_i)`:

* The path moves in steps, and its excursion falls short of the limit by about :math:`0.2 V^{-1/2}` (KS) or
  :math:`0.4 V^{-1/2}` (Kuiper): for V = 33, 200 even predictions, the p-value is 0.054 or 0.060 where 0.05 is exact.
* With few distinct predictions the path is evaluated only where they differ, and the p-value is too large: 0.07 or
  0.11 for 11 values, 0.09 or 0.16 for three, at any n.
* With rare events, V below about 10, it is too small in the tail (size 0.011 at 0.01 for V = 5).
* Far in the tail a sum of bounded residuals is not normal: a p-value of 1e-50 is very small, but not exactly that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.predictions._arrays import Floats
from caltest.predictions.inputs._refusals import refuse
from caltest.resampling.distributions._base import Distribution, Tail
from caltest.resampling.distributions._root import root_between

_TERMS = np.arange(12)
_ODD, _SIGNS = 2 * _TERMS + 1, (-1.0) ** _TERMS
_SWITCH = 1.5  # below it the series of the other tail converges faster
_SMALLEST = 0.01  # smaller values have a probability below exp(-10,000)
_MULTIPLES = np.arange(1, 100)
_NEVER = 0.1  # smaller values have a probability below 1e-50


def ks_pvalue(statistic: ArrayLike) -> float | Floats:
    r"""Return the asymptotic p-value of the standardised KS statistic, :math:`P(\max_t |B(t)| \ge x)`.

    .. math:: 4 \sum_{k \ge 0} (-1)^k Q((2k + 1) x) = 1 - \frac4\pi \sum_{k \ge 0} \frac{(-1)^k}{2k + 1}
              \exp\Bigl(-\frac{(2k + 1)^2 \pi^2}{8 x^2}\Bigr), \qquad Q(x) = P(N(0, 1) > x)

    It is a limit, and not exact with few observations, few distinct predictions or rare events. Below 1e-308 it is 0;
    `ks_log_pvalue` is finite there.

    Parameters
    ----------
    statistic : float or array-like of shape (...)
        ``n * KS / sqrt(sum(p * (1 - p)))``.

    Returns
    -------
    float or array of shape (...)
        P-values.

    Raises
    ------
    ValueError
        If a statistic is negative or NaN.

    See Also
    --------
    kuiper_pvalue : The same for the range.
    caltest.calibration_test : Exact or simulated p-values.

    References
    ----------
    W. Feller (1951), The asymptotic distribution of the range of sums of independent random variables, Annals of
    Mathematical Statistics 22, 427-432.
    I. Arrieta-Ibarra et al. (2022), Metrics of calibration for probabilistic predictions, Journal of Machine Learning
    Research 23.

    Examples
    --------
    >>> import caltest
    >>> round(caltest.resampling.ks_pvalue(2.0), 6)
    0.091001
    """
    return _plain(np.exp(_log_excursion_tail(_validated(statistic))))


def ks_log_pvalue(statistic: ArrayLike) -> float | Floats:
    """Return the natural logarithm of `ks_pvalue`, exact to rounding in both tails.

    Parameters
    ----------
    statistic : float or array-like of shape (...)
        As in `ks_pvalue`.

    Returns
    -------
    float or array of shape (...)
        Logarithms of p-values.

    Raises
    ------
    ValueError
        If a statistic is negative or NaN.

    See Also
    --------
    ks_pvalue : The p-value itself.

    Examples
    --------
    >>> import caltest
    >>> round(caltest.resampling.ks_log_pvalue(49.07), 2)
    -1207.36
    """
    return _plain(_log_excursion_tail(_validated(statistic)))


def kuiper_pvalue(statistic: ArrayLike) -> float | Floats:
    r"""Return the asymptotic p-value of the standardised Kuiper statistic, :math:`P(\max_t B(t) - \min_t B(t) \ge x)`.

    .. math:: 8 \sum_{k \ge 1} (-1)^{k - 1} k \, Q(k x) = 1 - \sum_{k \ge 0} \Bigl(\frac8{x^2} + \frac8{(2k + 1)^2
              \pi^2}\Bigr) \exp\Bigl(-\frac{(2k + 1)^2 \pi^2}{2 x^2}\Bigr), \qquad Q(x) = P(N(0, 1) > x)

    It is a limit, and not exact with few observations, few distinct predictions or rare events. Below 1e-308 it is 0;
    `kuiper_log_pvalue` is finite there.

    Parameters
    ----------
    statistic : float or array-like of shape (...)
        ``n * Kuiper / sqrt(sum(p * (1 - p)))``, known as ECCE-R.

    Returns
    -------
    float or array of shape (...)
        P-values.

    Raises
    ------
    ValueError
        If a statistic is negative or NaN.

    See Also
    --------
    ks_pvalue : The same for the largest distance from 0.
    caltest.calibration_test : Exact or simulated p-values.

    References
    ----------
    W. Feller (1951), The asymptotic distribution of the range of sums of independent random variables, Annals of
    Mathematical Statistics 22, 427-432.
    I. Arrieta-Ibarra et al. (2022), Metrics of calibration for probabilistic predictions, Journal of Machine Learning
    Research 23.

    Examples
    --------
    >>> import caltest
    >>> round(caltest.resampling.kuiper_pvalue(2.0), 6)
    0.181494
    """
    return _plain(np.exp(_log_range_tail(_validated(statistic))))


def kuiper_log_pvalue(statistic: ArrayLike) -> float | Floats:
    """Return the natural logarithm of `kuiper_pvalue`, exact to rounding in both tails.

    Parameters
    ----------
    statistic : float or array-like of shape (...)
        As in `kuiper_pvalue`.

    Returns
    -------
    float or array of shape (...)
        Logarithms of p-values.

    Raises
    ------
    ValueError
        If a statistic is negative or NaN.

    See Also
    --------
    kuiper_pvalue : The p-value itself.

    Examples
    --------
    >>> import caltest
    >>> round(caltest.resampling.kuiper_log_pvalue(49.07), 2)
    -1206.67
    """
    return _plain(_log_range_tail(_validated(statistic)))


def _log_excursion_tail(x: Floats) -> Floats:
    body = np.clip(x, _SMALLEST, _SWITCH)[..., None]
    cdf = 4 / np.pi * (_SIGNS / _ODD * np.exp(-np.square(_ODD * np.pi / body) / 8)).sum(axis=-1)
    return np.where(x < _SWITCH, np.log1p(-cdf), _log_normal_series(x, _ODD, 4 * _SIGNS))


def _log_range_tail(x: Floats) -> Floats:
    body = np.clip(x, _SMALLEST, _SWITCH)[..., None]
    weight = 8 / np.square(body) + 8 / np.square(_ODD * np.pi)
    cdf = (weight * np.exp(-np.square(_ODD * np.pi / body) / 2)).sum(axis=-1)
    return np.where(x < _SWITCH, np.log1p(-cdf), _log_normal_series(x, _TERMS + 1, 8 * _SIGNS * (_TERMS + 1)))


def _log_either_end_tail(x: Floats) -> Floats:
    r"""Return log P(max(\|B(t)\|, \|B(1) - B(t)\|) >= x).

    Given B(1) = w >= 0, the path stays in [w - x, x]: by reflection with density :math:`\sum_k \phi(w + 2 k d) -
    \phi(2 x - w + 2 k d)`, where d = 2 x - w. Integrated over w from 0 to x it is a series of normal tails Q(m x).
    """
    from scipy.special import ndtr

    body = np.clip(x, _NEVER, _SWITCH)[..., None]
    tail = (_EITHER_END * ndtr(-_MULTIPLES * body)).sum(axis=-1)
    smaller = np.where(x > _NEVER, np.log(np.minimum(tail, 1.0)), 0.0)
    return np.where(x < _SWITCH, smaller, _log_normal_series(x, _MULTIPLES, _EITHER_END))


def _either_end_factor(m: int) -> float:
    """Return the factor of the normal tail at m times x."""
    if m % 2:
        return 16 / 3 if m == 1 else 4 / m - 2 / (m - 2) - 2 / (m + 2)
    return -8 / m if m % 4 else 4 / (m - 2) + 4 / (m + 2)


_EITHER_END = np.array([_either_end_factor(m) for m in range(1, 100)])


def _log_normal_series(x: Floats, multiple: NDArray[Any], factor: NDArray[Any]) -> Floats:
    """Return the logarithm of ``sum(factor * Q(multiple * x))``, the first term taken out, for x from the switch on."""
    from scipy.special import log_ndtr

    finite = np.clip(x, _SWITCH, 1e150)[..., None]
    logs = log_ndtr(-multiple * finite)
    total = logs[..., 0] + np.log((factor * np.exp(logs - logs[..., :1])).sum(axis=-1))
    return np.where(np.isinf(x), -np.inf, total)


class BrownianLimit(NamedTuple):
    """A functional of a Brownian motion: its mean, its standard deviation and its tail.

    Attributes
    ----------
    mean, std : float
        Of the functional.
    log_tail : callable
        From values to the logarithms of their tail probabilities.
    """

    mean: float
    std: float
    log_tail: Callable[[Floats], Floats]


# The second has twice Catalan's constant; the third is the integral of the tail, by quadrature.
EXCURSION = BrownianLimit(
    math.sqrt(math.pi / 2), math.sqrt(2 * 0.915965594177219015 - math.pi / 2), _log_excursion_tail
)
"""The largest distance from 0."""
RANGE = BrownianLimit(2 * math.sqrt(2 / math.pi), math.sqrt(4 * math.log(2) - 8 / math.pi), _log_range_tail)
"""The range."""
EITHER_END = BrownianLimit(1.3832929020090838, 0.5106603792429038, _log_either_end_tail)
"""The largest distance from either end: from 0, and from the last value."""


@dataclass(frozen=True)
class BrownianDistribution(Distribution):
    """The distribution of ``scale`` times a functional of a Brownian motion.

    Attributes
    ----------
    limit : BrownianLimit
        The functional.
    scale : float
        Standard deviation of the path's end, in the unit of the statistic; a statistic divided by it is standardised.
    """

    limit: BrownianLimit
    scale: float

    @property
    def mean(self) -> float:
        """Expected value: the noise floor."""
        return self.scale * self.limit.mean

    @property
    def std(self) -> float:
        """Standard deviation."""
        return self.scale * self.limit.std

    def log_sf(self, x: float) -> float:
        """Return log P(T >= x); a path without variance stays at 0."""
        if self.scale > 0:
            return float(self.limit.log_tail(np.array(max(x, 0.0) / self.scale)))
        return -math.inf if x > 0 else 0.0

    def sf(self, x: float) -> float:
        """Return P(T >= x)."""
        return math.exp(self.log_sf(x))

    def tail(self, x: float) -> Tail:
        """Return P(T >= x), with the standardised statistic and the logarithm of the tail in words."""
        standardised = x / self.scale if self.scale > 0 else 0.0
        words = (
            f"Brownian limit, standardised statistic {standardised:.6g}, log10 p {self.log_sf(x) / np.log(10):.4g}; "
            "not reliable where few predictions are distinct or few lie far from 0 and 1"
        )
        return Tail(self.sf(x), math.nan, words)

    def quantile(self, q: float) -> float:
        """Return the value t with P(T <= t) = q, to about 1e-12 of the scale."""

        def excess(x: float) -> float:
            return float(np.exp(self.limit.log_tail(np.array(x)))) - (1 - q)

        return self.scale * root_between(excess, 1e-3, 40.0, 1e-12)


def _validated(statistic: ArrayLike) -> Floats:
    value = np.asarray(statistic, dtype=np.float64)
    if not np.all(value >= 0):
        refuse(f"`statistic` must not be negative or nan, got {value[~(value >= 0)][0]}.")
    return value


def _plain(value: Floats) -> float | Floats:
    return value if value.ndim else float(value)
