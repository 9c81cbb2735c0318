r"""Errors by kernel smoothing: from estimated densities (KDEError) and of smoothed residuals (SmoothECE)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._smoothing import spread_counts
from caltest.predictions._sample import Sample
from caltest.predictions._validation import validate_choice, validate_count
from caltest.statistics._base import Statistic
from caltest.statistics._smoothing import (
    KERNELS,
    MOST_POINTS,
    STEPS_PER_BANDWIDTH,
    KernelSmoother,
    into_support,
    silverman_bandwidth,
)


@dataclass(frozen=True)
class KDEError(Statistic):
    r"""Calibration error by kernel density estimation, Posocco & Bonnefoy (2021), for two-outcome lenses.

    .. math:: \frac{\sum_g \hat f(g) \, |\hat r(g) - g|}{\sum_g \hat f(g)}, \qquad
              \hat r(g) = \frac{\sum_i y_i k_h(g - p_i)}{\sum_i k_h(g - p_i)}

    over the points g of a grid, where :math:`\hat f`, the sum in the denominator, is the density of the predictions
    up to a factor, and the kernel is mirrored at both ends of the support. The local calibration error
    :math:`|\hat r(g) - g|` is drawn by `smooth_reliability_curve`. Its target is the expected miscalibration
    :math:`E|r(p) - p|`.

    As published it counts as error what smoothing does to a calibrated model: predictions that crowd together, as near
    1, are moved by about the bandwidth. On a sharp model this bias can exceed all miscalibration, and the test is then
    blind; the noise floor contains it. With ``reference="mean"`` it is gone: :math:`\hat r` is compared with the
    equally smoothed prediction, :math:`\sum_i p_i k_h(g - p_i) / \hat f(g)`, so that residuals are smoothed.

    With a calibration function :math:`\rho` as null, smoothed :math:`\rho(p_i) - p_i` are added to what
    :math:`\hat r` is compared with. Sample weights multiply the terms of all sums; Silverman's rule does not see them.

    Parameters
    ----------
    bandwidth : float or "silverman"
        Standard deviation h of the kernel, at most the width of the support; or Silverman's rule on the predictions,
        ``(4 / (3 n)) ** 0.2 * min(sd, interquartile range / 1.349)``, at least a 2 ** 14th of the support: so much for
        predictions that are all alike. On sharp models the rule follows the quartiles to tiny bandwidths.
    kernel : {"triweight", "gaussian"}
        Shape of the kernel; the triweight ends at 3 standard deviations.
    support : (low, high)
        Where the probability of the event may lie; ``(1 / n_classes, 1)`` for a confidence, as its authors take it.
    grid : (start, stop, n_points), optional
        Equally spaced points, of which those in ``(low, high]`` are used; should be much closer than the bandwidth. By
        default midpoints of 2 ** b >= 256 parts of the support, 8 or more to a bandwidth. The authors' program has
        ``(low - 3, high + 3, 2 ** 14)`` for a confidence, ``(-2.5, 3.5, 2 ** 14)`` for a class.
    reference : {"point", "mean"}
        What the smoothed frequency is compared with: the point of the grid, or the smoothed prediction.

    Raises
    ------
    ValueError
        If a parameter is not of the form above, a prediction lies outside the support, or the lens has more than two
        outcomes.

    References
    ----------
    N. Posocco and A. Bonnefoy (2021), Estimating expected calibration errors, ICANN, sections 4.4 and 4.5.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> error = caltest.KDEError(bandwidth=0.05, reference="mean")
    >>> round(caltest.calibration_error(y_true, y_prob, lens=caltest.Confidence(), statistic=error), 4)
    0.0398
    """

    bandwidth: float | str = "silverman"
    kernel: str = "triweight"
    support: tuple[float, float] = (0.0, 1.0)
    grid: tuple[float, float, int] | None = None
    reference: str = "point"

    def __post_init__(self) -> None:
        validate_choice(self.kernel, "kernel", tuple(KERNELS))
        validate_choice(self.reference, "reference", ("point", "mean"))
        low, high = _ends(self.support)
        object.__setattr__(self, "support", (low, high))
        if self.grid is not None:
            object.__setattr__(self, "grid", _grid(self.grid, low, high))
        smallest = self._smallest if self.grid is None else 0.0
        if isinstance(self.bandwidth, int | float | np.number):
            valid = self.bandwidth > 0 and smallest <= self.bandwidth <= high - low
        else:
            valid = isinstance(self.bandwidth, str) and self.bandwidth == "silverman"
        if not valid:
            msg = (
                f"`bandwidth` must be 'silverman' or a number from {smallest:.3g} to {high - low:.6g}, the width of "
                f"`support`, got {self.bandwidth!r}."
            )
            raise ValueError(msg)

    @property
    def _smallest(self) -> float:
        return STEPS_PER_BANDWIDTH * (self.support[1] - self.support[0]) / MOST_POINTS

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        """Return the error ``(...)`` of outcomes ``(..., n_samples)``."""
        _require_two_outcomes(self, sample)
        smoother, expected, total = sample.once(self._prepare)
        surprise = _surprises(sample, outcomes)
        parts = [
            np.abs(smoother.sums(surprise[start : start + smoother.batch]) - expected).sum(axis=-1)
            for start in range(0, len(surprise), smoother.batch)
        ]
        return (np.concatenate(parts) / total).reshape(outcomes.shape[:-1])

    def smoother(self, sample: Sample) -> KernelSmoother:
        """Return the smoother of a sample, fitted to its predictions; every row counts 1."""
        position = into_support(sample.event, self.support)
        bandwidth = self.bandwidth
        if isinstance(bandwidth, str):
            bandwidth = max(silverman_bandwidth(position), self._smallest)
        return KernelSmoother.fit(
            position, kernel=self.kernel, bandwidth=float(bandwidth), support=self.support, grid=self.grid
        )

    def _prepare(self, sample: Sample) -> tuple[KernelSmoother, NDArray[np.float64], float]:
        """Return what depends on the predictions: smoother of surprises, their expected sums, total density."""
        plain = self.smoother(sample)
        weight = np.ones(sample.n_samples) if sample.weight is None else sample.weight
        usual = sample.once(_usual)
        density = plain.sum_of(weight)
        expected = plain.sum_of(weight * (sample.null_prob[:, 1] - usual))
        if self.reference == "point":
            expected += density * plain.point - plain.sum_of(weight * sample.event)
        return plain.weighted(weight * _sign(usual)), expected, float(density.sum())


def _usual(sample: Sample) -> NDArray[np.uint8]:
    """Return the more probable outcome of each row, ``(n_samples,)``."""
    return (sample.null_prob[:, 1] > 0.5).astype(np.uint8)


def _sign(usual: NDArray[np.uint8]) -> NDArray[Any]:
    """Return what a surprise adds to the events of each row: -1 where the event is usual, else 1."""
    return 1.0 - 2.0 * usual


def _surprises(sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the outcomes ``(n_replicates, n_samples)`` as 1 where a row fell to its less probable outcome.

    Sums of events are sums of signed surprises plus a constant; on a sharp model few surprises are left to sum.
    """
    return np.atleast_2d(outcomes).reshape(-1, sample.n_samples) ^ sample.once(_usual)


def _require_two_outcomes(statistic: Statistic, sample: Sample) -> None:
    if sample.n_outcomes != 2:
        name = type(statistic).__name__
        msg = f"`{name}` needs a two-outcome lens such as Confidence(), got {sample.n_outcomes} outcomes."
        raise ValueError(msg)


def _ends(support: Any) -> tuple[float, float]:
    try:
        low, high = map(float, support)
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    if not 0 <= low < high <= 1:
        msg = f"`support` must be a pair (low, high) with 0 <= low < high <= 1, got {support!r}."
        raise ValueError(msg)
    return low, high


def _grid(grid: Any, low: float, high: float) -> tuple[float, float, int]:
    try:
        start, stop, n_points = float(grid[0]), float(grid[1]), validate_count(grid[2], "grid", 2)
        valid = len(grid) == 3 and start <= low and high <= stop and (stop - start) / (n_points - 1) <= (high - low) / 2
    except (TypeError, ValueError, IndexError):
        valid = False
    if not valid:
        msg = (
            f"`grid` must be (start, stop, n_points) with start <= {low}, stop >= {high} and at least two steps in "
            f"`support`, got {grid!r}."
        )
        raise ValueError(msg)
    return start, stop, n_points


_TAU = 1.6  # bandwidth of the first smoothing, in steps of the grid
_HALF = 14  # nodes on either side of a row: beyond 8.7 bandwidths the Gaussian is lost in rounding
_STEPS = 3.0  # smallest bandwidth, in steps of the grid
_TILE = 2**13  # rows spread at a time
_KEPT_ROWS = 2**16  # whose tables are kept
_BATCH = 2**16  # numbers transformed at a time: they should stay in cache
_LOG_EPS = 37.0
_TINY = 1e-300
_SOLVED = 1e-13  # relative difference of bandwidth and error
_MOST_STEPS = 60


Tile = tuple[int, NDArray[np.int64], NDArray[np.float64]]


@dataclass(frozen=True)
class SmoothECE(Statistic):
    r"""Smooth calibration error of Błasiok & Nakkiran (2023), for two-outcome lenses.

    .. math:: \mathrm{smECE}_\sigma = \int_0^1 \Bigl|\frac1n \sum_i (y_i - p_i) K_\sigma(t, p_i)\Bigr| dt, \qquad
              K_\sigma(t, p) = \sum_{k \in \mathbb{Z}} \varphi_\sigma(t - p + 2k) + \varphi_\sigma(t + p + 2k)

    with the Gaussian density :math:`\varphi_\sigma` reflected at 0 and 1, so that no mass is lost at the ends. The
    error is the value at the bandwidth that solves :math:`\mathrm{smECE}_\sigma = \sigma`; as it decreases in
    :math:`\sigma`, there is one. Its target is the smoothed residual of the whole population, within a constant
    factor and a square root of the distance to calibration. Predictions need no density and may be tied, 0 or 1.

    The integral is the midpoint rule on ``n_points`` cells, for observed and redrawn outcomes alike. The kernel sums
    at the midpoints are exact to rounding: the residuals are smoothed with a small bandwidth by direct summation, and
    from there to any larger one in the cosine basis, where Gaussian smoothing is a product.

    Parameters
    ----------
    bandwidth : float, optional
        A fixed :math:`\sigma` from ``3 / n_points`` to 1 instead of the fixed point.
    n_points : int
        Number of midpoints, at least 28. A fixed point below ``3 / n_points``, 0.0015 by default, cannot be
        resolved: the value is then that at this smallest bandwidth, which is smaller still.

    Raises
    ------
    ValueError
        If a parameter is not of the form above or the lens has more than two outcomes.

    References
    ----------
    J. Błasiok and P. Nakkiran (2023), Smooth ECE: principled reliability diagrams via kernel smoothing, ICLR 2024.

    Examples
    --------
    Of ten certain predictions two are wrong:

    >>> import caltest
    >>> round(caltest.calibration_error([1] * 8 + [0] * 2, [1.0] * 10, statistic=caltest.SmoothECE()), 12)
    0.2
    """

    bandwidth: float | None = None
    n_points: int = 2000

    measures_scatter = True

    def __post_init__(self) -> None:
        validate_count(self.n_points, "n_points", 2 * _HALF)
        given = isinstance(self.bandwidth, int | float | np.number)
        if self.bandwidth is not None and not (given and self._smallest <= self.bandwidth <= 1):
            msg = f"`bandwidth` must be None or a number from 3 / n_points to 1, got {self.bandwidth!r}."
            raise ValueError(msg)

    @property
    def _smallest(self) -> float:
        return _STEPS / self.n_points

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        """Return the error ``(...)`` of outcomes ``(..., n_samples)``."""
        from scipy import fft

        _require_two_outcomes(self, sample)
        surprise = _surprises(sample, outcomes)
        residual = np.tile(-sample.once(self._expected), (len(surprise), 1))
        for tile in sample.once(self._kept) if sample.n_samples <= _KEPT_ROWS else self._tiles(sample):
            spread_counts(surprise, *tile, residual)
        size = max(_BATCH // self.n_points, 1)
        parts = [
            self._errors(fft.dct(_fold(residual[start : start + size]), axis=-1, overwrite_x=True))
            for start in range(0, len(residual), size)
        ]
        return np.concatenate(parts).reshape(outcomes.shape[:-1])

    def _kept(self, sample: Sample) -> list[Tile]:
        return list(self._tiles(sample))

    def _tiles(self, sample: Sample) -> Iterator[Tile]:
        """Yield for tiles of rows: the first row, first nodes ``(n_rows,)``, what a surprise adds to 28 nodes."""
        total = sample.n_samples if sample.weight is None else sample.weight.sum()
        share = _sign(sample.once(_usual)) / (total * _TAU * math.sqrt(2 * math.pi))
        if sample.weight is not None:
            share *= sample.weight
        for start in range(0, sample.n_samples, _TILE):
            row = slice(start, start + _TILE)
            node = np.clip(sample.event[row], 0.0, 1.0) * self.n_points - 0.5
            below = np.floor(node)
            distance = np.arange(1.0 - _HALF, 1.0 + _HALF) - (node - below)[:, None]
            yield start, below.astype(np.int64) + 1, share[row, None] * np.exp(-np.square(distance / _TAU) / 2)

    def _expected(self, sample: Sample) -> NDArray[np.float64]:
        """Return the sums ``(n_points + 28,)`` if every surprise happens with its probability under the null."""
        spread = np.zeros(self.n_points + 2 * _HALF)
        event = sample.null_prob[:, 1]
        probability = np.where(sample.once(_usual), 1 - event, event)
        for start, first, table in self._tiles(sample):
            for j, column in enumerate((table * probability[start : start + len(first), None]).T):
                spread += np.bincount(first + j, column, len(spread))
        return spread

    def _errors(self, spectrum: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the errors ``(n_replicates,)`` from the cosine coefficients of the residuals."""
        if self.bandwidth is not None:
            return self._smoothed(spectrum, np.array([float(self.bandwidth)]))
        smallest = np.array([self._smallest])
        error = self._smoothed(spectrum, smallest)
        larger = np.flatnonzero(error > smallest)
        error[larger] = self._fixed_points(spectrum[larger], error[larger])
        return error

    def _smoothed(self, spectrum: NDArray[np.float64], bandwidth: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the error ``(n_replicates,)`` at one bandwidth for each replicate, or one for all."""
        from scipy import fft

        if not len(spectrum):
            return np.empty(0)
        rate = (np.square(bandwidth) - (_TAU / self.n_points) ** 2) * math.pi**2 / 2
        kept = min(math.ceil(math.sqrt(_LOG_EPS / rate.min())) + 1, self.n_points)
        exponent = np.square(np.arange(float(kept))) * rate[:, None]
        # A coefficient counts or not by its own bandwidth, whichever replicates it is computed with.
        damping = np.where(exponent > _LOG_EPS, 0.0, np.exp(-exponent))
        damped = np.zeros_like(spectrum)
        np.multiply(damping, spectrum[:, :kept], out=damped[:, :kept])
        return np.asarray(np.abs(fft.idct(damped, axis=-1, overwrite_x=True)).sum(axis=-1))

    def _fixed_points(self, spectrum: NDArray[np.float64], largest: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the bandwidth that equals its own error for each replicate.

        It lies between the smallest bandwidth and the error there, ``largest``, because the error decreases. As
        log(error) is nearly linear in log(bandwidth), regula falsi on this scale, with the stale end halved (Illinois),
        needs few steps.
        """

        def excess(i: NDArray[np.int64], bandwidth: NDArray[np.float64]) -> NDArray[np.float64]:
            error = self._smoothed(spectrum[i], bandwidth)
            return np.log(np.maximum(error, _TINY) / bandwidth)

        every = np.arange(len(spectrum))
        far, near = np.full(len(spectrum), math.log(self._smallest)), np.log(largest)
        at_far, at_near = near - far, excess(every, largest)
        for _ in range(_MOST_STEPS):
            i = np.flatnonzero(np.abs(at_near) > _SOLVED)
            if not i.size:
                break
            new = near[i] - at_near[i] * (far[i] - near[i]) / (at_far[i] - at_near[i])
            at_new = excess(i, np.exp(new))
            crossed = at_new * at_near[i] < 0
            far[i], at_far[i] = np.where(crossed, near[i], far[i]), np.where(crossed, at_near[i], at_far[i] / 2)
            near[i], at_near[i] = new, at_new
        return np.exp(near)


def _fold(spread: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``(n_replicates, n_points)``: what was spread beyond the ends is reflected."""
    inner = spread[:, _HALF:-_HALF]
    inner[:, :_HALF] += spread[:, _HALF - 1 :: -1]
    inner[:, -_HALF:] += spread[:, : -_HALF - 1 : -1]
    return inner
