"""Kernel sums with densities of beta distributions, which end where the probability axis ends."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._smoothing import spread_counts
from caltest.predictions._arrays import Floats, Integers
from caltest.statistics._smoothing import Image, SquaredKernels, silverman_bandwidth, spread_weighted

WIDEST = math.sqrt(0.05)
"""Largest standard deviation in the middle of the support, as a share of it: the two ends must not meet (b <= 1/4)."""
_STEPS_PER_BANDWIDTH = 16
_FEWEST_POINTS, _MOST_POINTS = 2**9, 2**13
NARROWEST = math.pi * _STEPS_PER_BANDWIDTH / (2 * _MOST_POINTS)
"""Smallest standard deviation in the middle, as a share of the support."""
_REACH = 12.5  # standard deviations on the scale of angles: the density beyond is below 1e-16 of its peak
_BATCH = 2**18  # numbers smoothed at a time


def usual_bandwidth(position: Floats, support: tuple[float, float]) -> float:
    """Return the bandwidth whose kernels have, averaged over the predictions, the variance of Silverman's rule."""
    low, high = support
    x = (position - low) / (high - low)
    middle = silverman_bandwidth(x) / (2 * math.sqrt(max(float((x * (1 - x)).mean()), NARROWEST**2)))
    return (high - low) * min(max(middle, NARROWEST), WIDEST)


def _smoothing_parameter(bandwidth: float) -> float:
    """Return Chen's b: the variance of a beta(x / b, (1 - x) / b) is b x (1 - x) / (1 + b), and h ** 2 at x = 1/2."""
    return 4 * bandwidth**2 / (1 - 4 * bandwidth**2)


def _shapes(x: Floats, b: float) -> tuple[Floats, Floats]:
    """Return the two shape parameters of the kernels at points of [0, 1].

    Less than 2 b away from an end, the parameter towards it falls from 2 to 1 (Chen 1999, his second estimator).
    """

    def shape(x: Floats) -> Floats:
        near = 2 * b**2 + 2.5 - np.sqrt(np.maximum(4 * b**4 + 6 * b**2 + 2.25 - x**2 - x / b, 0.0))
        return np.where(x < 2 * b, near, x / b)

    return shape(x), shape(1 - x)


class _Kernels(NamedTuple):
    """Kernels of points of [0, 1]: points, what they stand for, values at their own place, and at all nodes."""

    x: Floats
    width: Floats
    peak: Floats
    matrix: Any


@lru_cache(maxsize=4)
def _kernels_of(bandwidth: float) -> _Kernels:
    """Return the kernels of a bandwidth, which are the same for all predictions."""
    from scipy.sparse import csr_array
    from scipy.special import betaln, xlog1py, xlogy

    b = _smoothing_parameter(bandwidth)
    n_points = min(max(_FEWEST_POINTS, math.ceil(math.pi * _STEPS_PER_BANDWIDTH / math.sqrt(b))), _MOST_POINTS)
    angle = math.pi * np.arange(0.5, n_points) / n_points
    x, nodes = np.sin(angle / 2) ** 2, np.sin(math.pi * np.arange(n_points + 1) / n_points / 2) ** 2
    first, second = _shapes(x, b)

    def density(of: Integers, value: Floats) -> Floats:
        logs = xlogy(first[of] - 1, value) + xlog1py(second[of] - 1, -value) - betaln(first[of], second[of])
        return np.exp(logs)

    points = np.arange(n_points)
    reach = math.ceil(_REACH * math.sqrt(b) / math.pi * n_points)
    begin, end = np.maximum(points - reach, 0), np.minimum(points + reach + 2, n_points + 1)
    start = np.concatenate([[0], np.cumsum(end - begin)])
    row = np.repeat(points, end - begin)
    column = np.arange(len(row)) - (start[:-1] - begin)[row]
    value = density(row, nodes[column])
    value[0], value[-1] = 1.0, 1.0  # an observation at an end, whose kernels are 0, is at the point next to it
    matrix = csr_array((value, column, start), shape=(n_points, n_points + 1))
    width = np.sin(angle) / np.sin(angle).mean()
    mass = width @ matrix / n_points
    matrix.data /= mass[column]
    return _Kernels(x, width, density(points, x) / np.interp(points + 0.5, np.arange(n_points + 1), mass), matrix)


@dataclass(frozen=True, eq=False)
class BetaSmoother:
    r"""Kernel sums :math:`\sum_i c_i K_g(p_i)` at points g of the support, for counts c of the observations.

    :math:`K_g` is the density of a beta distribution with a mean near g, divided by its integral over the points, so
    that every observation counts once: without that, one would count the less, the nearer it is to an end, and not at
    all at 0 and 1. On the scale of angles, :math:`2 \arcsin \sqrt p`, all of them are about equally wide: there the
    points are equally spaced, and every observation is split linearly between two nodes. As each point has a kernel of
    its own, the sums are a product of the nodes with a matrix of bands.

    Attributes
    ----------
    point : array of shape (n_points,)
        The points.
    peak : array of shape (n_points,)
        What an observation at a point adds to the kernel sum there.
    step : float
        Average distance between the points.
    bandwidth : float
        Standard deviation of the kernel in the middle of the support.
    """

    point: Floats
    peak: Floats
    step: float
    bandwidth: float
    _node: Integers
    _share: Floats
    _width: Floats
    _kernels: Any

    @classmethod
    def fit(cls, position: Floats, bandwidth: float, support: tuple[float, float]) -> BetaSmoother:
        """Return the smoother of observations at ``position (n_samples,)`` in the support."""
        low, high = support
        kernels = _kernels_of(bandwidth / (high - low))
        n_points = len(kernels.x)
        place = np.arcsin(np.sqrt((position - low) / (high - low))) * 2 * n_points / math.pi
        node = np.minimum(place.astype(np.int64), n_points - 1)
        share = np.stack([node + 1 - place, place - node], axis=1) / (high - low)
        point, step = low + (high - low) * kernels.x, (high - low) / n_points
        return cls(point, kernels.peak / (high - low), step, bandwidth, node, share, kernels.width, kernels.matrix)

    def weighted(self, weight: Floats) -> BetaSmoother:
        """Return the smoother with weights ``(n_samples,)`` of the observations, which may be negative."""
        return replace(self, _share=self._share * weight[:, None])

    def sums(self, counts: NDArray[np.uint8]) -> Floats:
        """Return the kernel sums ``(n_replicates, n_points)`` of counts ``(n_replicates, n_samples)``."""
        binned = np.zeros((len(counts), len(self.point) + 1))
        spread_counts(counts, 0, self._node, self._share, binned)
        return np.ascontiguousarray((self._kernels @ binned.T).T)

    def several_sums(self, counts: NDArray[np.uint8], weight: Floats) -> list[Floats]:
        """Return kernel sums ``(n_replicates, n_points)`` of counts times each column of ``weight (n_samples, n)``."""
        binned = np.zeros((len(counts), len(self.point) + 1, weight.shape[1]))
        spread_weighted(counts, Image(0, self._node, self._share), weight, binned)
        return [(self._kernels @ part.T).T for part in np.moveaxis(binned, 2, 0)]

    def sum_of(self, values: Floats) -> Floats:
        """Return the kernel sums ``(n_points,)`` of any numbers ``(n_samples,)``."""
        n_nodes = len(self.point) + 1
        binned = sum(np.bincount(self._node + j, values * self._share[:, j], n_nodes) for j in (0, 1))
        return np.asarray(self._kernels @ binned)

    def total(self, values: Floats) -> Floats:
        """Return the sums ``(...)`` over the support of values ``(..., n_points)``; points count by their distance."""
        return values @ self._width

    def is_sparse(self, chance: Floats) -> bool:
        """Return that surprises are never added one by one: each point has its kernel."""
        return False

    @property
    def batch(self) -> int:
        """Number of replicates to smooth at a time."""
        return max(_BATCH // len(self.point), 1)

    def squared_kernels(self, position: Floats, shown: Integers) -> SquaredKernels:
        """Return the sums of squared kernels at some points; observations are moved to the nearest node."""
        nearest, node = np.unique(self._node + (self._share[:, 1] > self._share[:, 0]), return_inverse=True)
        return SquaredKernels(node, self._kernels[shown][:, nearest])
