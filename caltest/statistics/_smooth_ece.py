"""Smooth calibration errors: of residuals smoothed at a bandwidth that equals the error, or by a Lipschitz weight."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._lipschitz import lipschitz_suprema
from caltest._compiled._smoothing import spread_counts
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._sample import Sample
from caltest.predictions.inputs._validation import is_number, require, validate_count
from caltest.resampling import Distribution
from caltest.resampling.draws._signs import group_of
from caltest.results._naming import parameter
from caltest.statistics._base import Statistic, in_batches
from caltest.statistics._segments import sign, surprises, usual

_TAU = 1.6  # bandwidth of the first smoothing, in steps of the grid
_HALF = 14  # nodes on either side of an observation: beyond 8.7 bandwidths the Gaussian is lost in rounding
_STEPS = 3.0  # smallest bandwidth, in steps of the grid
_TILE = 2**13  # observations spread at a time
_KEPT_ROWS = 2**16  # tables of up to so many observations are kept
_BATCH = 2**16  # numbers transformed at a time: they should stay in cache
_LOG_EPS = 37.0
_TINY = 1e-300
_SOLVED = 1e-13  # relative difference of bandwidth and error
_MOST_STEPS = 60


Tile = tuple[int, Integers, Floats]


@dataclass(frozen=True, repr=False)
class SmoothECE(Statistic):
    r"""Smooth calibration error (smECE) of Błasiok & Nakkiran (2023), for two-outcome lenses.

    .. math:: \mathrm{smECE}_\sigma = \int_0^1 \Bigl|\frac1n \sum_i (y_i - p_i) K_\sigma(t, p_i)\Bigr| dt, \qquad
              K_\sigma(t, p) = \sum_{k \in \mathbb{Z}} \varphi_\sigma(t - p + 2k) + \varphi_\sigma(t + p + 2k)

    with the Gaussian density :math:`\varphi_\sigma` reflected at 0 and 1, so that no mass is lost at the ends. The
    error is the value at the bandwidth that solves :math:`\mathrm{smECE}_\sigma = \sigma`, which exists because the
    left side decreases in :math:`\sigma`. Its target is the smoothed residual of the whole population, which is within
    a constant factor and a square root of the distance to calibration. Predictions need no density and may be tied, 0
    or 1.

    The integral is computed by the midpoint rule on ``n_points`` cells, for observed and simulated labels alike. The
    kernel sums at the midpoints are exact to rounding: the residuals are smoothed with a small bandwidth by direct
    summation, and from there with any larger one in the cosine basis, where Gaussian smoothing is a product.

    Parameters
    ----------
    bandwidth : float, optional
        A given :math:`\sigma` from ``3 / n_points`` to 1 instead of the solution.
    n_points : int
        Number of midpoints, at least 28. A solution below ``3 / n_points``, 0.0015 by default, cannot be resolved: the
        value is then the error at this smallest bandwidth, which is smaller than the bandwidth.

    Raises
    ------
    TypeError
        If ``bandwidth`` is not a number or ``n_points`` not an integer.
    ValueError
        If ``bandwidth`` is outside its range, or ``n_points`` < 28.

    See Also
    --------
    KDEError : Smooths with a given kernel and bandwidth.
    SmoothCalibrationError : Largest residual that a Lipschitz weight picks out, with bounds of a distance.

    References
    ----------
    J. Błasiok and P. Nakkiran (2023), Smooth ECE: principled reliability diagrams via kernel smoothing, ICLR 2024.

    Examples
    --------
    Two of ten predictions of probability 1 are wrong:

    >>> import caltest
    >>> round(caltest.calibration_error([1] * 8 + [0] * 2, [1.0] * 10, statistic=caltest.SmoothECE()), 12)
    0.2
    """

    words = "smooth calibration error"

    bandwidth: float | None = None
    n_points: int = parameter(2000, partial(validate_count, minimum=2 * _HALF))

    n_outcomes = 2
    measures_scatter = True

    def __post_init__(self) -> None:
        super().__post_init__()
        given, is_real = self.bandwidth, is_number(self.bandwidth)
        if given is not None:
            right, must = is_real and self._smallest <= given <= 1, "a number from 3 / n_points to 1"
            require(right, f"`bandwidth` must be None or {must}", given, right_type=is_real)
            object.__setattr__(self, "bandwidth", float(given))

    @property
    def _smallest(self) -> float:
        return _STEPS / self.n_points

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return the error ``(...)`` of outcomes ``(..., n_samples)``."""
        surprise = surprises(sample, outcomes)
        residual = np.tile(-sample.once(self._expected), (len(surprise), 1))
        for tile in sample.once(self._kept) if sample.n_samples <= _KEPT_ROWS else self._tiles(sample):
            spread_counts(surprise, *tile, residual)
        found = in_batches(self._errors, residual, max(_BATCH // self.n_points, 1))
        return found.reshape(outcomes.shape[:-1])

    def _kept(self, sample: Sample) -> list[Tile]:
        return list(self._tiles(sample))

    def _tiles(self, sample: Sample) -> Iterator[Tile]:
        """Yield for tiles of observations: their start, first nodes ``(n,)``, what a surprise adds to 28 nodes."""
        share = sign(sample.once(usual)) / (sample.total_weight * _TAU * math.sqrt(2 * math.pi)) * sample.weight_or_ones
        for start in range(0, sample.n_samples, _TILE):
            row = slice(start, start + _TILE)
            node = np.clip(sample.event[row], 0.0, 1.0) * self.n_points - 0.5
            below = np.floor(node)
            distance = np.arange(1.0 - _HALF, 1.0 + _HALF) - (node - below)[:, None]
            yield start, below.astype(np.int64) + 1, share[row, None] * np.exp(-np.square(distance / _TAU) / 2)

    def _expected(self, sample: Sample) -> Floats:
        """Return the expected sums ``(n_points + 28,)`` under the null hypothesis."""
        spread = np.zeros(self.n_points + 2 * _HALF)
        event = sample.null_prob[:, 1]
        probability = np.where(sample.once(usual), 1 - event, event)
        for start, first, table in self._tiles(sample):
            for j, column in enumerate((table * probability[start : start + len(first), None]).T):
                spread += np.bincount(first + j, column, len(spread))
        return spread

    def _errors(self, residual: Floats) -> Floats:
        """Return the errors ``(n_replicates,)`` from residuals on the nodes."""
        from scipy import fft

        spectrum = fft.dct(_fold(residual), axis=-1, overwrite_x=True)  # cosine coefficients
        if self.bandwidth is not None:
            return self._smoothed(spectrum, np.array([float(self.bandwidth)]))
        smallest = np.array([self._smallest])
        error = self._smoothed(spectrum, smallest)
        larger = np.flatnonzero(error > smallest)
        error[larger] = self._fixed_points(spectrum[larger], error[larger])
        return error

    def _smoothed(self, spectrum: Floats, bandwidth: Floats) -> Floats:
        """Return the error ``(n_replicates,)`` at one bandwidth for each replicate, or one for all."""
        from scipy import fft

        if not len(spectrum):
            return np.empty(0)
        rate = (np.square(bandwidth) - (_TAU / self.n_points) ** 2) * math.pi**2 / 2
        kept = min(math.ceil(math.sqrt(_LOG_EPS / rate.min())) + 1, self.n_points)
        exponent = np.square(np.arange(float(kept))) * rate[:, None]
        # Whether a coefficient counts depends on its bandwidth alone, not on the other replicates.
        damping = np.where(exponent > _LOG_EPS, 0.0, np.exp(-exponent))
        damped = np.zeros_like(spectrum)
        np.multiply(damping, spectrum[:, :kept], out=damped[:, :kept])
        return np.asarray(np.abs(fft.idct(damped, axis=-1, overwrite_x=True)).sum(axis=-1))

    def _fixed_points(self, spectrum: Floats, largest: Floats) -> Floats:
        """Return the bandwidth that equals its own error for each replicate.

        It lies between the smallest bandwidth and the error there, ``largest``, because the error decreases. Regula
        falsi with the retained end halved (Illinois) needs few steps, because log(error) is nearly linear in
        log(bandwidth).
        """

        def excess(i: Integers, bandwidth: Floats) -> Floats:
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


def _fold(spread: Floats) -> Floats:
    """Return the sums ``(n_replicates, n_points)``, those beyond the ends reflected."""
    inner = spread[:, _HALF:-_HALF]
    inner[:, :_HALF] += spread[:, _HALF - 1 :: -1]
    inner[:, -_HALF:] += spread[:, : -_HALF - 1 : -1]
    return inner


_SUMMED = 2**18  # numbers whose sums are kept at a time: they should stay in cache


@dataclass(frozen=True, repr=False)
class SmoothCalibrationError(Statistic):
    r"""Smooth calibration error (smCE) of Kakade & Foster (2008) and Błasiok et al. (2023), for two-outcome lenses.

    .. math:: \mathrm{smCE} = \max_{w} \Bigl|\frac1n \sum_i w(p_i) (y_i - p_i)\Bigr| \quad \text{over } w: [0, 1] \to
              [-1, 1] \text{ with } |w(p) - w(q)| \le |p - q|

    with the event's probability :math:`p_i` and its indicator :math:`y_i`. It has neither cells nor a bandwidth, and
    changes little if predictions change little. Its target is the same maximum over the whole population, which is at
    least the absolute mean residual and at most the expected miscalibration :math:`E|r(p) - p|`. As the maximum follows
    the labels, a calibrated model has a positive value of the order :math:`n^{-1/2}`, its noise floor. Deviations of
    opposite signs at close predictions cancel, so that a jagged calibration curve is hardly detected.

    The value is exact, to rounding: the maximum is a linear program on a line, whose dual, a median filter with a
    penalty on total variation, is solved by dynamic programming with two heaps in a time of n log n. Hu et al. (2024)
    solve the same program in n log² n.

    **Lower distance to calibration.** How far predictions have to be moved on average, :math:`E|p - u|`, to calibrated
    predictions u, which may be drawn at random given the prediction and the label, is known within a factor of 4:

    .. math:: \tfrac12\, \mathrm{smCE} \le \underline{\mathrm{dCE}} \le 2\, \mathrm{smCE}

    (Błasiok et al. 2023). Results of tests have both bounds as ``lower_distance_least`` and ``lower_distance_most``.
    They are those of the observed labels, so that half and twice the noise floor are what a calibrated model has. The
    distance to calibrated functions of what was known to the model is at least as large.

    Raises
    ------
    ValueError
        When it is evaluated, if a lens has more than two outcomes.

    See Also
    --------
    SmoothECE : Smooths residuals at the bandwidth that equals the error, another bound of the same distance.
    KS : Largest sum of residuals up to a prediction.

    References
    ----------
    J. Błasiok, P. Gopalan, L. Hu and P. Nakkiran (2023), A unifying theory of distance from calibration, STOC 2023.
    L. Hu, A. Jambulapati, K. Tian and C. Yang (2024), Testing calibration in nearly-linear time, NeurIPS 2024.
    S. M. Kakade and D. P. Foster (2008), Deterministic calibration and Nash equilibrium, Journal of Computer and System
    Sciences 74, 115-130.
    V. Kolmogorov, T. Pock and M. Rolinek (2016), Total variation on a tree, SIAM Journal on Imaging Sciences 9.

    Examples
    --------
    Residuals are 0.25 at one prediction and -0.25 at the other, which are 0.5 apart, so that the best weights are 0.25
    and -0.25, or 1 and 0.5:

    >>> import caltest
    >>> y_true, y_prob = [0, 1, 0, 1], [0.25, 0.25, 0.75, 0.75]
    >>> caltest.calibration_error(y_true, y_prob, statistic=caltest.statistics.SmoothCalibrationError())
    0.0625
    """

    words = "largest Lipschitz-weighted residual"

    n_outcomes = 2
    measures_scatter = True

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return the error ``(...)`` of outcomes ``(..., n_samples)``."""
        weight, expected = sample.weight_or_ones, sample.weight_or_ones * sample.null_prob[:, 1]
        flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
        found = _suprema(sample, flat, lambda some: some * weight - expected)
        return found.reshape(outcomes.shape[:-1])

    def evaluate_signs(self, sample: Sample, signs: NDArray[np.int8]) -> Floats:
        """Return the error of signed residuals."""
        residual, group = sample.weight_or_ones * (sample.outcome - sample.null_prob[:, 1]), group_of(sample)
        return _suprema(sample, signs, lambda some: some[:, group] * residual)

    def derived(self, sample: Sample, value: float, null: Distribution) -> dict[str, float]:
        """Return the bounds of the lower distance to calibration."""
        return {"lower_distance_least": value / 2, "lower_distance_most": 2 * value}


def _suprema(sample: Sample, replicates: NDArray[Any], residuals: Callable[[NDArray[Any]], Floats]) -> Floats:
    """Return the error ``(n_replicates,)`` from the weighted residuals ``(n, n_samples)`` of some replicates each."""
    start, gap = sample.of_predictions(_points)

    def errors(some: NDArray[Any]) -> Floats:
        sums = residuals(some)
        if len(start) < sample.n_samples:
            sums = np.add.reduceat(sums, start, axis=-1)
        return np.asarray(lipschitz_suprema(np.cumsum(sums, axis=-1), gap)) / sample.total_weight

    return in_batches(errors, replicates, max(_SUMMED // sample.n_samples, 1))


def _points(sample: Sample) -> tuple[Integers, Floats]:
    """Return the first observation of each different prediction, ``(n_points,)``, and the distances between them."""
    event = np.clip(sample.event, 0.0, 1.0)
    start = np.flatnonzero(np.append(True, np.diff(event) > 0))
    return start, np.diff(event[start])
