r"""Which models are shown to be better than which: step-down max-T over all ordered pairs of models.

The estimate of model j is a sum of what independent units (observations, or groups of them) add,
:math:`\hat\theta_j = \sum_g c_{jg}`. Under "j is not better than k" the differences :math:`d_g = c_{kg} - c_{jg}` of
models that are equally good keep their distribution if all of a unit change their signs, as far as it is symmetric, and
otherwise for large data. So the largest studentised difference of all pairs is compared with that of random signs, the
same for all pairs and models.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from caltest._compiled._step_down import step_down
from caltest.predictions._arrays import Floats
from caltest.predictions.inputs._parts import effective_number
from caltest.statistics._segments import FEWEST_GROUPS
from caltest.statistics._sums_in_time import FEWEST_COSINES

_SIMILAR = 1e-6  # relative; squares of similar models are summed over their differences, not cancelled
_EQUAL = 1e-24  # relative squares of models that differ by rounding
_MOST_SKEWED = 1.0  # third moment of a difference over the cube of its standard error
_UNSEEN, _MOST_UNSEEN = 20.0, 3.0  # over the root of the number of units: how much skewness they do not show
_BLOCK = 2**10  # units whose signs are held at a time


@dataclass(frozen=True, eq=False)
class Separation:
    """Which models are shown to be better than which.

    Attributes
    ----------
    pvalue : array of shape (n_models, n_models)
        Adjusted p-value of "row j is not better than column k".
    error : array of shape (n_models, n_models)
        Standard error of the difference of two estimates; 0 where nothing is known of it.
    largest : array of shape (n_resamples,)
        The largest difference of any two models in standard errors, of each draw.
    """

    pvalue: Floats
    error: Floats
    largest: Floats

    def critical_value(self, level: float) -> float:
        """Return how many standard errors separate two models among all; infinite with too few draws."""
        number = int((len(self.largest) + 1) * level * (1 + _SIMILAR))
        return float(np.sort(self.largest)[-number]) if number else math.inf


@dataclass(frozen=True, eq=False)
class Contributions:
    """What the units add to the estimates of all models, of which smaller ones are better.

    Attributes
    ----------
    adds : array of shape (n_models, n_units)
        Their sums are the estimates.
    share : array of shape (n_units,)
        Share of the weight of each unit.
    least : array of shape (n_models, n_models)
        What the standard error of a difference is at least, where labels show hardly any; 0 elsewhere.
    is_known : array of shape (n_models,)
        False for models with an infinite estimate, which is worse than every finite one.
    in_time : bool
        Whether the units are stretches of time, whose normal limit knows no other direction than their sum.
    """

    adds: Floats
    share: Floats
    least: Floats
    is_known: np.ndarray
    in_time: bool = False

    @property
    def estimate(self) -> Floats:
        """The estimates, ``(n_models,)``."""
        return np.where(self.is_known, self.adds.sum(axis=1), np.inf)

    @property
    def is_enough(self) -> bool:
        """Whether the units show how much estimates vary."""
        fewest = FEWEST_COSINES + 1 if self.in_time else FEWEST_GROUPS
        return effective_number(self.share) > fewest * (1 - _SIMILAR)

    def separate(self, n_resamples: int, rng: np.random.Generator) -> Separation:
        """Return which models are shown to be better than which."""
        if not self.is_enough:
            return nothing_separated(len(self.adds), n_resamples)
        # Rows without what all models have in common, in an order that neither rows nor models of the caller change.
        centred = np.where(self.is_known[:, None], self.adds, 0.0)
        centred = centred - centred[self.is_known].mean(axis=0) if self.is_known.any() else centred
        centred[~self.is_known] = 0.0
        order = np.lexsort((np.sum(centred**3, axis=0), np.square(centred).sum(axis=0), self.share))
        centred, share = np.ascontiguousarray(centred[:, order]), self.share[order]
        estimate = centred.sum(axis=1)
        cubes = None if self.in_time else cubed_differences(centred - estimate[:, None] * share)
        squares = squared_differences(centred, np.square(self.adds).sum(axis=1))
        estimate, shared = np.where(self.is_known, estimate, np.inf), centred @ share
        draw = partial(_directions if self.in_time else _signs, rng, n_resamples)
        pairs = Pairs(estimate, squares, cubes, shared, float(np.square(share).sum()))
        return pairs.separate(*_drawn_sums(centred, share, draw), self.least)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Sums over units, from which all pairs of models are compared.

    Attributes
    ----------
    estimate : array of shape (n_models,)
        The estimates, which may miss the same number; infinite ones are worse than every finite one.
    squares : array of shape (n_models, n_models)
        Sums of the squared differences of what units add; 0 of equal models.
    cubes : array of shape (n_models, n_models) or None
        Sums of the cubes of the differences "column minus row" without their shares of the estimate; None if skewness
        means nothing.
    shared : array of shape (n_models,)
        Sums of what units add times their share.
    squared_shares : float
        Sum of the squared shares.
    """

    estimate: Floats
    squares: Floats
    cubes: Floats | None
    shared: Floats
    squared_shares: float

    def separate(self, total: Floats, by_share: Floats, least: Floats | float = 0.0) -> Separation:
        """Return which models are shown to be better than which.

        ``total`` and ``by_share`` are the sums of what units add times draws, and of that times their share,
        ``(n_models, n_resamples)``; no standard error is smaller than ``least``.
        """
        estimate, squares, is_known = self.estimate, self.squares, np.isfinite(self.estimate)
        found, error, number = np.ones(squares.shape), np.zeros(squares.shape), 1 / self.squared_shares
        found[np.ix_(is_known, ~is_known)] = 0.0
        first, second = np.nonzero(np.triu(squares > 0) & np.logical_and.outer(is_known, is_known))
        is_later = estimate[second] < estimate[first]
        better, worse = np.where(is_later, second, first), np.where(is_later, first, second)
        gap, square = estimate[worse] - estimate[better], squares[better, worse]
        moved = gap * (self.shared[worse] - self.shared[better])
        spread = np.maximum(square - 2 * moved + np.square(gap) * self.squared_shares, 1e-12 * square)
        ratio = number / (number - 1)
        variance = np.maximum(ratio * spread, np.square(np.broadcast_to(least, squares.shape)[better, worse]))
        error[better, worse] = error[worse, better] = np.sqrt(variance)
        observed = ratio * np.square(gap) / variance
        if self.cubes is not None:
            unseen = min(_MOST_UNSEEN, 1 + _UNSEEN / math.sqrt(number))
            skewness = unseen * self.cubes[better, worse] / spread**1.5
            observed = np.square(_least_without_skewness(np.sqrt(observed), skewness))
        rank = np.lexsort((worse, better, observed))
        better, worse, observed = better[rank], worse[rank], observed[rank]
        sums = total, by_share, squares, self.squared_shares
        found[better, worse], largest = step_down(better, worse, observed, *sums)
        return Separation(found, error, np.sqrt(largest / ratio))


def nothing_separated(n_models: int, n_resamples: int) -> Separation:
    """Return what too few units show."""
    return Separation(np.ones((n_models, n_models)), np.zeros((n_models, n_models)), np.full(n_resamples, np.inf))


def squared_differences(adds: Floats, scale: Floats) -> Floats:
    """Return the sum of the squared differences of each pair of models; 0 of models that are equal up to rounding."""
    inner = adds @ adds.T
    own = inner.diagonal()
    found = np.add.outer(own, own) - 2 * inner
    limit = np.add.outer(scale, scale)
    for a, b in zip(*np.nonzero(np.triu(found <= _SIMILAR * np.add.outer(own, own), 1)), strict=True):
        found[a, b] = found[b, a] = np.square(adds[a] - adds[b]).sum()
    return np.where(found > _EQUAL * limit, found, 0.0)


def cubed_differences(adds: Floats) -> Floats:
    """Return the sum of the cubed differences "column minus row" of each pair of models."""
    mixed = np.square(adds) @ adds.T
    own = mixed.diagonal()
    found = 3 * (mixed - mixed.T) + np.subtract.outer(-own, -own)
    size = np.cbrt(np.sum(np.abs(adds) ** 3, axis=1))
    similar = np.abs(found) <= _SIMILAR * np.add.outer(size, size) ** 3
    for a, b in zip(*np.nonzero(np.triu(similar, 1)), strict=True):
        found[a, b] = np.power(adds[b] - adds[a], 3).sum()
        found[b, a] = -found[a, b]
    return found


def _least_without_skewness(t: Floats, skewness: Floats) -> Floats:
    """Return studentised differences that are positive, or what is left of them without their skewness if it is less.

    The transformation is that of Hall (1992), ``t + g t^2 / 3 + g^2 t^3 / 27 + g / 6``.
    """
    g = np.clip(skewness, -_MOST_SKEWED, 0.0)
    return np.clip(t + g * t**2 / 3 + g**2 * t**3 / 27 + g / 6, 0.0, t)


def _signs(rng: np.random.Generator, n_resamples: int, n_units: int) -> Iterator[Floats]:
    """Yield random signs of some units after the other, ``(n_some, n_resamples)``."""
    for start in range(0, n_units, _BLOCK):
        size = (min(_BLOCK, n_units - start), n_resamples)
        yield 2 * rng.integers(0, 2, size=size, dtype=np.int8).astype(np.float64) - 1


def _directions(rng: np.random.Generator, n_resamples: int, n_units: int) -> Iterator[Floats]:
    """Yield random directions, as long as signs are: what independent normal units are as often as any other one."""
    normal = rng.standard_normal((n_units, n_resamples))
    length = np.sqrt(np.square(normal).sum(axis=0) / n_units)
    yield np.divide(normal, length)


def _drawn_sums(adds: Floats, share: Floats, draws: Callable[[int], Iterator[Floats]]) -> tuple[Floats, Floats]:
    """Return sums of what units add times draws, and of that times their share, ``(n_models, n_resamples)``."""
    total: Any = 0.0
    by_share: Any = 0.0
    start, is_equal = 0, np.ptp(share) <= 1e-12 * share.max()
    for signs in draws(len(share)):
        some = slice(start, start := start + len(signs))
        total = total + adds[:, some] @ signs
        if not is_equal:
            by_share = by_share + (adds[:, some] * share[some]) @ signs
    return total, total * share[0] if is_equal else by_share


def tiers(is_better: np.ndarray) -> list[int]:
    """Return the tier of each model, from 1: one more than the largest tier of a model that is shown to be better."""
    found = np.zeros(len(is_better), dtype=np.int64)
    left, number = np.ones(len(is_better), dtype=bool), 0
    while left.any():
        number += 1
        now = left & ~(is_better & left[:, None]).any(axis=0)
        found[now], left[now] = number, False
    return [int(tier) for tier in found]
