"""The power of a test as a curve of what it depends on, fitted to counts of rejections."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from caltest.predictions._arrays import Floats
from caltest.predictions.inputs._validation import refuse_if, validate_level

Count = tuple[float, int, int]
"""A place x, the number of data sets that were rejected there, and the number of data sets."""

_WINDOWS = (1.26, 1.6, 2.5, math.inf)  # places this near the answer, as a factor, determine it
_STEPS, _STEEPEST = 50, 37.0  # Newton steps; beyond so many standard deviations a float has no tail

_FEW, _MANY = 100, 600  # data sets at a place: to find the answer, and near it
_AROUND, _ROUNDS, _MOST_LOOKS = (0.85, 1.0, 1.18), 2, 12
_CRITICAL, _LEAST = 2.2, 0.3  # critical value of the default test, about, and the smallest signal that counts
_NEAR, _FARTHEST = 1.15, 2.0  # steps, as factors


def validate_power(power: Any, alpha: float) -> float:
    """Return ``power`` as float if it is larger than the level, which a test reaches by itself."""
    power = validate_level(power, "power")
    refuse_if(power <= alpha, f"`power` must be larger than `alpha` {alpha:g}, got {power:g}.")
    return power


@dataclass(frozen=True, eq=False)
class PowerCurve:
    r"""Probit regression of rejection, :math:`\Phi(a + b x)`, and where it reaches a power.

    It is exact for a test by a mean with known variance, where x is the size of an error or the root of the number of
    observations, and close for others within a factor of 1.3 of x.

    Attributes
    ----------
    coefficients : array of shape (2,)
        a and b.
    covariance : array of shape (2, 2)
        Their covariance.
    target : float
        Normal quantile of the power.
    centre : float
        Mean of the places that determine the curve.
    """

    coefficients: Floats
    covariance: Floats
    target: float
    centre: float

    @classmethod
    def near(cls, x: float, counted: Sequence[Count], power: float) -> PowerCurve:
        """Fit to the places near x, or to more of them if these do not determine the slope."""
        from scipy.special import ndtri

        counts = np.array(counted, dtype=np.float64)
        for factor in _WINDOWS:
            place, rejected, total = counts[np.abs(np.log(counts[:, 0] / x)) <= math.log(factor) + 1e-9].T
            if len(np.unique(place)) > 1 and 0 < rejected.sum() < total.sum():
                break
        half = 0.5 / len(place)  # half a data set on either side keeps the fit finite where all results are the same
        return cls(*_fit(place, rejected + half, total + 2 * half), float(ndtri(power)), float(place.mean()))

    @property
    def place(self) -> float:
        """Where the fit reaches the power; 0 or infinity where the fitted power does not increase."""
        a, b = self.coefficients
        if b <= 0:
            return 0.0 if a + b * self.centre >= self.target else math.inf
        return max((self.target - a) / b, 0.0)

    def interval(self, confidence_level: float) -> tuple[float, float]:
        r"""Return the places x with :math:`(a + b x - z)^2 \le c^2 \mathrm{Var}(a + b x)` (Fieller)."""
        from scipy.special import ndtri

        (a, b), v = self.coefficients, ndtri((1 + confidence_level) / 2) ** 2 * self.covariance
        square, half, constant = b**2 - v[1, 1], b * (a - self.target) - v[0, 1], (a - self.target) ** 2 - v[0, 0]
        if square <= 0 or b <= 0:  # the slope may be 0: no end is known
            return 0.0, math.inf
        reach = math.sqrt(max(half**2 - square * constant, 0.0))
        return max((-half - reach) / square, 0.0), max((-half + reach) / square, 0.0)


def _fit(place: Floats, rejected: Floats, total: Floats) -> tuple[Floats, Floats]:
    """Return the coefficients of the probit regression, and their covariance, by Fisher's scoring."""
    from scipy.special import ndtr, ndtri

    scale = np.abs(place).max()
    design = np.column_stack([np.ones_like(place), place / scale])
    share = rejected / total
    linear = ndtri(share)
    for _ in range(_STEPS):
        mean = np.clip(ndtr(linear), 1e-12, 1 - 1e-12)
        density = np.maximum(np.exp(-np.square(linear) / 2) / math.sqrt(2 * math.pi), 1e-12)
        weight = total * np.square(density) / (mean * (1 - mean))
        information = design.T @ (weight[:, None] * design)
        # One place does not determine two coefficients: those of the least norm are taken.
        inverse = np.linalg.pinv(information, hermitian=True)
        found = inverse @ (design.T @ (weight * (linear + (share - mean) / density)))
        before, linear = linear, np.clip(design @ found, -_STEEPEST, _STEEPEST)
        if np.abs(linear - before).max() < 1e-10:
            break
    unit = np.array([1.0, 1 / scale])
    return found * unit, inverse * np.outer(unit, unit)


def search_power(
    rejections: Callable[[float, int, int], int], start: float, largest: float, power: float, *, fewer: int = 1
) -> tuple[float, float]:
    """Return the place x at which a share of data sets is rejected, and that share.

    Parameters
    ----------
    rejections : callable
        From a place, a number of data sets and the number of the first of them to how many of them are rejected.
    start, largest : float
        Where the search begins, and the largest place. If the power is not reached there, the place is infinite, and
        the share is that of the largest place.
    power : float
        The share of data sets.
    fewer : int
        The numbers of data sets are divided by it.
    """
    from scipy.special import ndtri

    counted: list[Count] = []
    few, many, goal = _FEW // fewer, _MANY // fewer, float(ndtri(power)) + _CRITICAL

    def look(x: float, number: int) -> float:
        first = sum(sets for *_, sets in counted)
        counted.append((x, rejections(x, number, first), number))
        return counted[-1][1] / number

    x = min(start, largest / _FARTHEST)
    for _ in range(_MOST_LOOKS):  # as if the power was that of a one-sided test by a mean
        rate = look(x, few)
        if x >= largest and rate < power:
            break
        signal = float(ndtri(np.clip(rate, 0.5 / few, 1 - 0.5 / few))) + _CRITICAL
        step = float(np.clip(goal / max(signal, _LEAST), 1 / _FARTHEST, _FARTHEST))
        x = min(x * step, largest)
        if 1 / _NEAR < step < _NEAR:
            break
    for _ in range(_ROUNDS):
        for factor in _AROUND:
            rate = look(min(x * factor, largest), many)
        place = PowerCurve.near(x, counted, power).place
        x = float(np.clip(place, x / _FARTHEST, x * _FARTHEST))
        if x > largest:
            return math.inf, rate
    return x, power
