"""Intervals of functions of means of observations, from what each observation adds to them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from caltest.predictions._arrays import Floats
from caltest.predictions._sample import Sample
from caltest.predictions.inputs._parts import effective_number
from caltest.resampling.draws._signs import sums_of_groups
from caltest.results import ConfidenceInterval
from caltest.statistics._sums_in_time import FEWEST_COSINES, deviations_in_time, number_of_cosines

FEWEST_UNITS = 6
"""Observations, or groups of them, that show how much a mean varies."""
UNKNOWN = ConfidenceInterval(math.nan, math.nan)
"""The interval where there is none."""
_MOST_SKEWED, _NO_SKEWNESS = 1.0, 1e-6  # third moments over the cube of the standard error


@dataclass(frozen=True)
class Spread:
    """How much an estimate varies between data sets: standard error, standardised third moment, and a quantile."""

    error: float
    skewness: float
    quantile: float

    @classmethod
    def of(cls, influence: Floats, sample: Sample, missed: float) -> Spread | None:
        r"""Return the spread of an estimate that observation i of n moves by :math:`w_i \psi_i / n`.

        ``influence`` :math:`\psi_i` has the mean 0. The sums of these terms in each group are independent, or the terms
        themselves where all observations are. The quantile is that of the normal distribution, with groups that of
        Student's for their number minus 1. None if nothing varies, or with fewer than 6 groups or observations. In time
        the variance comes from cosines (`SumsInTime`), the quantile is Student's for their number, and no skewness is
        known; None with fewer than 3.
        """
        parts, number = influence * sample.weight_or_ones / sample.n_samples, sample.n_samples
        if sample.timing is not None:
            error = math.sqrt(float(np.square(deviations_in_time(sample, parts)).sum()))
            is_known = number_of_cosines(sample.timing) >= FEWEST_COSINES and 0 < error < math.inf
            return cls(error, 0.0, cls.quantile_of(sample, missed)) if is_known else None
        if sample.n_groups is not None:
            parts, number = sums_of_groups(sample, parts), sample.n_groups
        squares, cubes = float(np.square(parts).sum()), float(np.power(parts, 3).sum())
        return cls.of_sums(number, squares, cubes, cls.quantile_of(sample, missed))

    @classmethod
    def of_sums(cls, number: int, squares: float, cubes: float, quantile: float) -> Spread | None:
        """Return the spread of the sum of so many independent units, from the sums of their squares and cubes."""
        if number < FEWEST_UNITS:
            return None
        ratio = number / (number - 1)
        error = math.sqrt(ratio * squares)
        if not 0 < error < math.inf:
            return None
        skewness = ratio**1.5 * cubes / error**3
        return cls(error, min(max(skewness, -_MOST_SKEWED), _MOST_SKEWED), quantile)

    @staticmethod
    def quantile_of(sample: Sample, missed: float) -> float:
        """Return the quantile 1 - ``missed`` of a standardised difference."""
        from scipy.special import ndtri, stdtrit

        if sample.timing is not None:
            return float(stdtrit(number_of_cosines(sample.timing), 1 - missed))
        if sample.n_groups is None:
            return float(ndtri(1 - missed))
        return float(stdtrit(max(sample.n_groups - 1, 1), 1 - missed))


def mean_interval(
    estimate: float, influence: Floats, sample: Sample, missed: float, n_units: int | None = None
) -> ConfidenceInterval:
    r"""Return the interval of an estimate that is a smooth function of means of independent observations.

    With the standard error s and the standardised third moment g of what units add to the estimate, the ends are those
    of its standardised difference after the skewness was removed (Hall 1992, section 3.9),

    .. math:: \hat t - s\, h(\pm z), \qquad h(x) = \frac3g \Bigl[\bigl(1 + g (x - g / 6)\bigr)^{1/3} - 1\Bigr].

    If only some units show how much it varies, z is at least the quantile of Student's distribution for their number
    minus 1. NaN where nothing varies, or with too few units.
    """
    from scipy.special import stdtrit

    spread = Spread.of(influence, sample, missed)
    if spread is not None and n_units is not None:
        least = float(stdtrit(n_units - 1, 1 - missed)) if n_units > 1 else math.nan
        spread = None if math.isnan(least) else replace(spread, quantile=max(spread.quantile, least))
    return spread_interval(estimate, spread)


def spread_interval(estimate: float, spread: Spread | None) -> ConfidenceInterval:
    """Return the interval of an estimate whose spread is known."""
    if spread is None:
        return UNKNOWN
    low, high = (
        estimate - spread.error * _with_skewness(x, spread.skewness) for x in (spread.quantile, -spread.quantile)
    )
    return ConfidenceInterval(low, high)


def logit_interval(share: float, influence: Floats, sample: Sample, missed: float, n_units: int) -> ConfidenceInterval:
    """Return the interval of an estimate between 0 and 1 that is symmetric for its logit.

    The quantile is that of Student's distribution for the number of units minus 1 that show how much it varies.
    """
    from scipy.special import stdtrit

    spread = Spread.of(influence, sample, missed) if 0 < share < 1 and n_units > 1 else None
    if spread is None:
        return UNKNOWN
    reach = float(stdtrit(n_units - 1, 1 - missed)) * spread.error / (share * (1 - share))
    logit = math.log(share / (1 - share))
    return ConfidenceInterval(1 / (1 + math.exp(reach - logit)), 1 / (1 + math.exp(-reach - logit)))


def share_interval(happened: Floats, sample: Sample, missed: float) -> tuple[float, ConfidenceInterval]:
    """Return the share of observations to which something happened, ``(n_samples,)`` of 0 and 1, with its interval.

    Wilson's (1927) of as many independent observations of equal weight as the share is worth; if it happened to none or
    to all, of as many as there are groups, or effective observations.
    """
    share = float(np.average(happened, weights=sample.weight))
    spread = Spread.of(happened - share, sample, missed)
    worth = float(sample.n_groups or effective_number(sample.weight_or_ones))
    if sample.timing is not None:
        worth = min(worth, sample.timing.n_windows)
    return share, wilson_interval(share, spread, worth, Spread.quantile_of(sample, missed))


def wilson_interval(share: float, spread: Spread | None, worth: float, quantile: float) -> ConfidenceInterval:
    """Return Wilson's interval of a share, of what it is worth by its spread, or if that is not known ``worth``."""
    if spread is not None and 0 < share < 1:
        worth = share * (1 - share) / spread.error**2
    square = quantile**2 / worth
    middle, reach = share + square / 2, math.sqrt(square * (share * (1 - share) + square / 4))
    return ConfidenceInterval(max(middle - reach, 0.0) / (1 + square), min(middle + reach, 1 + square) / (1 + square))


def _with_skewness(x: float, skewness: float) -> float:
    """Return the quantile of a studentised mean whose transformed value is x."""
    if abs(skewness) < _NO_SKEWNESS:
        return x
    moved = 1 + skewness * (x - skewness / 6)
    return 3 / skewness * (math.copysign(abs(moved) ** (1 / 3), moved) - 1)
