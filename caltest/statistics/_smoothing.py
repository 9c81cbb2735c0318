"""Kernel sums on the probability axis, mirrored at its ends, by linear binning and Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._smoothing import change_errors, spread_counts
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions.inputs._parts import effective_of_sums
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import SUM_TOLERANCE

STEPS_PER_BANDWIDTH = 8
FEWEST_POINTS, MOST_POINTS = 2**8, 2**17
_LISTED = 1.4  # time for a tap of an observation that is listed, against that for a node and halving of a transform
_BATCH = 2**18  # numbers transformed at a time: they should stay in cache

KERNELS: dict[str, tuple[float, Callable[[NDArray[Any]], NDArray[Any]]]] = {
    "triweight": (3.0, lambda z: 35 / 96 * np.clip(1 - np.square(z) / 9, 0.0, None) ** 3),
    "gaussian": (8.5, lambda z: np.exp(-np.square(z) / 2) / math.sqrt(2 * math.pi)),
}
"""End of each kernel and its density at z standard deviations; beyond 8.5 the Gaussian is lost in rounding."""
_NODES_PER_BANDWIDTH = 32  # where observations are moved to for sums of squares: 1.6 % of a bandwidth at most


def silverman_bandwidth(x: Floats) -> float:
    r"""Return Silverman's bandwidth of ``x (n_samples,)``; 0 if nearly all values are equal.

    .. math:: h = \Bigl(\frac{4}{3 n}\Bigr)^{1/5} \min\Bigl(s, \frac{q_{.75} - q_{.25}}{1.349}\Bigr)

    with the standard deviation s (divisor n - 1); where the quartiles coincide the spread is
    :math:`(q_{.99} - q_{.01}) / 4.653`.

    References
    ----------
    B. W. Silverman (1986), Density estimation for statistics and data analysis, equation 3.31.
    """
    if len(x) < 2:
        return 0.0
    q = np.percentile(x, [1, 25, 75, 99])
    spread = min(float(np.std(x, ddof=1)), (q[2] - q[1]) / 1.3489795003921634)
    if not spread > 0:
        spread = (q[3] - q[0]) / 4.6526957480816815
    return float(spread * (0.75 * len(x)) ** -0.2)


def lattice(
    support: tuple[float, float], bandwidth: float, grid: tuple[float, float, int] | None
) -> tuple[Floats, float]:
    """Return the points ``(n_points,)`` of the grid and the distance between them.

    By default the midpoints of 2 ** b >= 256 equal parts of the support, each at most an eighth of the bandwidth.
    """
    if grid is not None:
        return np.linspace(*grid, dtype=np.float64), (grid[1] - grid[0]) / (grid[2] - 1)
    low, high = support
    n_points = FEWEST_POINTS
    while n_points * bandwidth < STEPS_PER_BANDWIDTH * (high - low) and n_points < MOST_POINTS:
        n_points *= 2
    step = (high - low) / n_points
    return low + step * np.arange(0.5, n_points), step


class Image(NamedTuple):
    """Observations from ``start`` on, or their mirror image: lower nodes ``(n,)``, shares of two nodes ``(n, 2)``."""

    start: int
    first: Integers
    share: Floats


@dataclass(frozen=True, eq=False)
class MirroredKernel:
    """A kernel of a bandwidth, whose mass beyond the ends of the support is mirrored there.

    Attributes
    ----------
    name : str
        One of `KERNELS`.
    bandwidth : float
        Standard deviation.
    support : tuple of float
        Lower and upper end.
    """

    name: str
    bandwidth: float
    support: tuple[float, float]

    @property
    def reach(self) -> float:
        """Distance beyond which the density is 0."""
        return KERNELS[self.name][0] * self.bandwidth

    def density(self, distance: NDArray[Any]) -> Floats:
        """Return the density at a distance."""
        return KERNELS[self.name][1](distance / self.bandwidth) / self.bandwidth

    def images(self, position: Floats, reach: float) -> Iterator[Floats]:
        """Yield positions and their mirror images, as far as they are within reach of the support."""
        low, high = self.support
        turns = math.ceil(reach / (high - low))
        for turn in range(-turns, turns + 1):
            shift = 2 * turn * (high - low)
            yield position + shift
            yield 2 * low - position + shift


def spread_weighted(counts: NDArray[np.uint8], image: Image, weight: Floats, binned: Floats) -> None:
    """Add counts times weights ``(n_samples, n)`` to nodes ``(n_replicates, n_nodes, n)``, all weights in one pass."""
    start, first, share = image
    table = (share[:, :, None] * weight[start : start + len(first), None]).reshape(len(first), -1)
    spread_counts(counts, start, first * weight.shape[1], table, binned.reshape(len(counts), -1))


@dataclass(frozen=True, eq=False)
class KernelSmoother:
    r"""Kernel sums :math:`\sum_i c_i k_h(g - p_i)` at the points g of a grid, for counts c of the observations.

    Every observation and its mirror images are split linearly between the two nearest nodes of the grid; the kernel
    sums of the nodes are one convolution.

    Attributes
    ----------
    point : array of shape (n_points,)
        Points of the grid in the support that the kernel of some observation reaches.
    step : float
        Distance between the points.
    kernel : MirroredKernel
        The kernel.
    """

    point: Floats
    step: float
    kernel: MirroredKernel
    _images: list[Image]
    _taps: NDArray[Any]

    @classmethod
    def fit(cls, position: Floats, kernel: MirroredKernel, grid: tuple[float, float, int] | None) -> KernelSmoother:
        """Return the smoother of observations at ``position (n_samples,)``, increasing, in the support."""
        low, high = kernel.support
        points, step = lattice(kernel.support, kernel.bandwidth, grid)
        half = math.ceil(kernel.reach / step)
        reach = half * step
        inside = np.flatnonzero(
            (points > low) & (points <= high) & (points >= position[0] - reach) & (points <= position[-1] + reach)
        )
        first_node, n_nodes = inside[0] - half, len(inside) + 2 * half
        images = []
        for image in kernel.images(position, reach):
            node = (image - points[0]) / step - first_node
            below = np.floor(node).astype(np.int64)
            near = np.flatnonzero((below >= 0) & (below < n_nodes - 1))
            if near.size:
                share = (node - below)[near, None]
                images.append(Image(int(near[0]), below[near], np.concatenate([1 - share, share], axis=1)))
        taps = kernel.density(np.arange(-half, half + 1) * step)
        return cls(points[inside], step, kernel, images, taps)

    def weighted(self, weight: Floats) -> KernelSmoother:
        """Return the smoother with weights ``(n_samples,)`` of the observations, which may be negative."""
        images = [
            Image(start, first, share * weight[start : start + len(first), None])
            for start, first, share in self._images
        ]
        return replace(self, _images=images)

    def sums(self, counts: NDArray[np.uint8]) -> Floats:
        """Return the kernel sums ``(n_replicates, n_points)`` of counts ``(n_replicates, n_samples)``."""
        binned = np.zeros((len(counts), self._n_nodes))
        for image in self._images:
            spread_counts(counts, *image, binned)
        return self._convolve(binned)

    def several_sums(self, counts: NDArray[np.uint8], weight: Floats) -> list[Floats]:
        """Return kernel sums ``(n_replicates, n_points)`` of counts times each column of ``weight (n_samples, n)``."""
        binned = np.zeros((len(counts), self._n_nodes, weight.shape[1]))
        for image in self._images:
            spread_weighted(counts, image, weight, binned)
        return [self._convolve(part) for part in np.moveaxis(binned, 2, 0)]

    def changed_errors(self, place: Integers, end: Integers, expected: Floats) -> Floats:
        r"""Return :math:`\sum_g |\text{kernel sum} - \text{expected}|`, ``(n_replicates,)``, of lists of observations.

        Each one in the list counts once: ``place[end[r] : end[r + 1]]`` are those of replicate r. The time grows with
        the length of the lists and the taps of the kernel.
        """
        start = np.array([image.start for image in self._images])
        offset = np.cumsum([0, *(len(image.first) for image in self._images)])
        first, share = (np.concatenate([image[part] for image in self._images]) for part in (1, 2))
        error = np.full(len(end) - 1, np.abs(expected).sum())
        change_errors(place, end, start, offset, first, share, self._taps, expected, np.zeros(len(expected)), error)
        return error

    def is_sparse(self, chance: Floats) -> bool:
        """Return whether lists of observations with these chances ``(n_samples,)`` are faster than a transform."""
        listed = sum(float(chance[start : start + len(first)].sum()) for start, first, _ in self._images)
        return _LISTED * listed * 2 * len(self._taps) < self._n_nodes * math.log2(self._n_nodes)

    def sum_of(self, values: Floats) -> Floats:
        """Return the kernel sums ``(n_points,)`` of any numbers ``(n_samples,)``."""
        binned = np.zeros(self._n_nodes)
        for start, first, share in self._images:
            value = values[start : start + len(first), None] * share
            for j in (0, 1):
                binned += np.bincount(first + j, value[:, j], self._n_nodes)
        return self._convolve(binned[None])[0]

    @property
    def _n_nodes(self) -> int:
        return len(self.point) + len(self._taps) - 1

    def total(self, values: Floats) -> Floats:
        """Return the sums ``(...)`` over the support of values ``(..., n_points)`` at the points."""
        return values.sum(axis=-1)

    @property
    def bandwidth(self) -> float:
        """Standard deviation of the kernel."""
        return self.kernel.bandwidth

    @property
    def peak(self) -> Floats:
        """What an observation at each point adds to the kernel sum there, ``(n_points,)``."""
        return np.full(len(self.point), self._taps.max())

    def squared_kernels(self, position: Floats, shown: Integers) -> SquaredKernels:
        """Return the sums of squared kernels at some of the points, of observations at ``position (n_samples,)``."""
        return SquaredKernels.of(self.point[shown], position, self.kernel)

    @property
    def batch(self) -> int:
        """Number of replicates to smooth at a time."""
        return max(_BATCH // self._n_nodes, 1)

    def _convolve(self, binned: Floats) -> Floats:
        from scipy import fft

        length, taps = self._spectrum
        spectrum = fft.rfft(binned, length, axis=-1) * taps
        return fft.irfft(spectrum, length, axis=-1)[:, len(self._taps) - 1 : self._n_nodes]

    @cached_property
    def _spectrum(self) -> tuple[int, NDArray[Any]]:
        """Length and transform of the taps: what wraps around in a circular convolution falls beyond the points."""
        from scipy import fft

        length = fft.next_fast_len(self._n_nodes, real=True)
        return length, fft.rfft(self._taps, length)


@dataclass(frozen=True, eq=False)
class SquaredKernels:
    r"""Sums of squared kernels :math:`\sum_i c_i k_h(g - p_i)^2` at some points, mirrored as by the smoother.

    The squares are those of the whole weight that an observation has at a point, with its mirror images. Observations
    are moved to the middles of short pieces of the support, so that the sums are approximate.
    """

    _node: Integers
    _kernels: Any

    @classmethod
    def of(cls, point: Floats, position: Floats, kernel: MirroredKernel) -> SquaredKernels:
        """Return the sums at increasing points ``(n_points,)`` of observations at ``position (n_samples,)``."""
        from scipy.sparse import coo_array

        low, high = kernel.support
        step = kernel.bandwidth / _NODES_PER_BANDWIDTH
        piece, node = np.unique(np.floor((position - low) / step).astype(np.int64), return_inverse=True)
        middle = np.minimum(low + step * (piece + 0.5), high)
        rows, columns, values = [], [], []
        for image in kernel.images(middle, kernel.reach):
            first = np.searchsorted(point, image - kernel.reach)
            number = np.searchsorted(point, image + kernel.reach, side="right") - first
            column = np.repeat(np.arange(len(middle)), number)
            row = np.arange(len(column)) + np.repeat(first - np.cumsum(number) + number, number)
            rows.append(row)
            columns.append(column)
            values.append(kernel.density(point[row] - image[column]))
        entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
        total = coo_array(entries, shape=(len(point), len(middle))).tocsr()  # adds the images
        return cls(node, total)

    def effective_number(self) -> Floats:
        """Return the effective number of observations of equal weight that each point is worth, ``(n_points,)``."""
        count = np.bincount(self._node).astype(np.float64)
        return effective_of_sums(self._kernels @ count, self._kernels.power(2) @ count)

    def variance(self, variance: Floats) -> Floats:
        """Return the variance ``(n_points,)`` of the average of independent numbers with variances ``(n_samples,)``."""
        total = self._kernels @ np.bincount(self._node).astype(np.float64)
        spread = self._kernels.power(2) @ np.bincount(self._node, variance)
        return spread / np.square(np.where(total > 0, total, 1.0))


def into_support(position: Floats, support: tuple[float, float]) -> Floats:
    """Return positions clipped to the support; positions beyond it by more than rounding are refused."""
    low, high = support
    outside = (position < low - SUM_TOLERANCE) | (position > high + SUM_TOLERANCE)
    if outside.any():
        refuse(f"`support` must contain all probabilities of the event, got {support} and {position[outside][0]:.6g}.")
    return np.clip(position, low, high)
