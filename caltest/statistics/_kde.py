"""Calibration error by kernel density estimation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Floats
from caltest.predictions._distances import Distance, total_variation
from caltest.predictions._sample import Sample
from caltest.predictions.inputs._validation import is_number, one_of, require
from caltest.results._naming import parameter
from caltest.statistics._base import in_batches
from caltest.statistics._beta_kernels import NARROWEST, WIDEST, BetaSmoother, usual_bandwidth
from caltest.statistics._segments import Surprises, SurpriseStatistic, sign, surprises, usual
from caltest.statistics._smoothing import (
    KERNELS,
    MOST_POINTS,
    STEPS_PER_BANDWIDTH,
    KernelSmoother,
    MirroredKernel,
    into_support,
    silverman_bandwidth,
)


def _validate_support(value: Any, name: str) -> tuple[float, float]:
    ends = _numbers(value)
    right = len(ends) == 2 and 0 <= ends[0] < ends[1] <= 1
    require(right, f"`{name}` must be a pair (low, high) with 0 <= low < high <= 1", value, right_type=ends)
    return ends[0], ends[1]


@dataclass(frozen=True, repr=False)
class KDEError(SurpriseStatistic):
    r"""Calibration error by kernel density estimation (Posocco & Bonnefoy 2021), for two-outcome lenses.

    .. math:: \frac{\sum_g \hat f(g) \, |\hat r(g) - g|}{\sum_g \hat f(g)}, \qquad
              \hat r(g) = \frac{\sum_i y_i k_h(g - p_i)}{\sum_i k_h(g - p_i)}

    over the points g of a grid, where :math:`\hat f`, the sum in the denominator, is the density of the predictions
    up to a factor, and the kernel is mirrored at both ends of the support. The local calibration error
    :math:`|\hat r(g) - g|` is drawn by `smooth_reliability_curve`. Its target is the expected miscalibration
    :math:`E|r(p) - p|`.

    As published, the error includes the bias of smoothing: predictions that lie close together, as near 1, are moved by
    about the bandwidth. For a sharp model this bias can be larger than all miscalibration, and the test then has no
    power; the noise floor contains it. ``reference="mean"`` removes the bias: :math:`\hat r` is compared with the
    equally smoothed prediction, :math:`\sum_i p_i k_h(g - p_i) / \hat f(g)`, so that residuals are smoothed.

    If the null hypothesis is a calibration function :math:`\rho`, :math:`\hat r` is compared with the reference plus
    the smoothed :math:`\rho(p_i) - p_i`. Sample weights multiply the terms of all sums; Silverman's rule ignores them.

    Parameters
    ----------
    bandwidth : float or "silverman"
        Standard deviation h of the kernel, at most the width of the support (0.22 times that for beta kernels); or
        Silverman's rule on the predictions, ``(4 / (3 n)) ** 0.2 * min(sd, interquartile range / 1.349)``, at least a
        2 ** 14th of the support, which is used if all predictions are equal. For sharp models the interquartile range
        makes the bandwidth tiny.
    kernel : {"triweight", "gaussian", "beta"}
        Shape of the kernel; the triweight ends at 3 standard deviations. With "beta", which the authors propose for
        later (section 6), :math:`k_h(g - p_i)` is the density at :math:`p_i` of a beta distribution with a mean near g
        (the second estimator of Chen 1999), divided by its integral over g, so that predictions of 0 and 1 count as
        others. It ends where the support ends, so that nothing is mirrored. Its standard
        deviation falls from ``bandwidth`` in the middle of the support towards the ends, as
        :math:`\sqrt{g (1 - g)}`, and Silverman's rule is for its average over the predictions. The points of the
        grid are its own: equally spaced in :math:`\arcsin \sqrt g` and weighted by what they stand for.
    support : (low, high)
        Range of the event's probability; the authors use ``(1 / n_classes, 1)`` for a confidence.
    grid : (start, stop, n_points), optional
        Equally spaced points, of which those in ``(low, high]`` are used; their distance should be much smaller than
        the bandwidth. By default midpoints of 2 ** b >= 256 parts of the support, 8 or more to a bandwidth. The
        authors' program has ``(low - 3, high + 3, 2 ** 14)`` for a confidence, ``(-2.5, 3.5, 2 ** 14)`` for a class:
        steps of 0.0004, which do not resolve the bandwidths of Silverman's rule for sharp models (the confidence of a
        VGG-19 on CIFAR-10, bandwidth 0.00009: 0.086 on that grid, 0.060 on finer ones).
    reference : {"point", "mean"}
        What the smoothed frequency is compared with: the point of the grid, or the smoothed prediction.

    Raises
    ------
    TypeError
        If ``bandwidth`` is neither a number nor a text, ``kernel`` or ``reference`` is not a text, or ``support`` or
        ``grid`` is not a sequence of numbers.
    ValueError
        If ``bandwidth`` is another text than "silverman" or outside its range, ``kernel`` or ``reference`` is unknown,
        ``support`` is not an interval in [0, 1], or ``grid`` does not cover the support with at least two steps or is
        given for beta kernels; when
        it is evaluated, if a prediction lies outside the support.

    See Also
    --------
    SmoothECE : Smooths residuals at the bandwidth that equals the error.
    caltest.smooth_reliability_curve : The smoothed frequencies as a curve.

    References
    ----------
    N. Posocco and A. Bonnefoy (2021), Estimating expected calibration errors, ICANN, sections 4.4, 4.5 and 6.
    S. X. Chen (1999), Beta kernel estimators for density functions, Computational Statistics & Data Analysis 31.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> error = caltest.statistics.KDEError(bandwidth=0.05, reference="mean")
    >>> round(caltest.calibration_error(y_true, y_prob, lens=caltest.Confidence(), statistic=error), 4)
    0.0398
    """

    words = "average error of the smooth curve"

    bandwidth: float | str = "silverman"
    kernel: str = parameter("triweight", one_of(*KERNELS, "beta"))
    support: tuple[float, float] = parameter((0.0, 1.0), _validate_support)
    grid: tuple[float, float, int] | None = None
    reference: str = parameter("point", one_of("point", "mean"))

    n_outcomes = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = self.support
        if self.grid is not None:
            object.__setattr__(self, "grid", _grid(self.grid, low, high))
        smallest, widest = self._smallest if self.grid is None else 0.0, high - low
        if self.kernel == "beta":
            require(self.grid is None, "`grid` must be None for kernel='beta', which has its own points", self.grid)
            smallest, widest = NARROWEST * (high - low), WIDEST * (high - low)
        object.__setattr__(self, "bandwidth", _bandwidth(self.bandwidth, smallest, widest))

    @property
    def _smallest(self) -> float:
        return STEPS_PER_BANDWIDTH * (self.support[1] - self.support[0]) / MOST_POINTS

    @property
    def target(self) -> Distance:
        """The distance that is averaged."""
        return total_variation

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return the error ``(...)`` of outcomes ``(..., n_samples)``."""
        smoother, expected, total, sparse = sample.once(self._prepare)
        surprise = surprises(sample, outcomes)
        if sparse:
            return self.evaluate_surprises(sample, Surprises.of(surprise)).reshape(outcomes.shape[:-1])

        def gaps(surprise: NDArray[Any]) -> Floats:
            return smoother.total(np.abs(smoother.sums(surprise) - expected))

        return (in_batches(gaps, surprise, smoother.batch) / total).reshape(outcomes.shape[:-1])

    def needs_surprises(self, sample: Sample) -> bool:
        """Return whether so few labels surprise that their kernels are added one by one."""
        return sample.once(self._prepare)[-1]

    def evaluate_surprises(self, sample: Sample, listed: Surprises) -> Floats:
        """Return the error ``(n_replicates,)`` of surprises."""
        smoother, expected, total, _ = sample.once(self._prepare)
        assert isinstance(smoother, KernelSmoother)
        return smoother.changed_errors(listed.place, listed.end, expected) / total

    def smoother(self, sample: Sample) -> KernelSmoother | BetaSmoother:
        """Return the smoother of a sample, fitted to its predictions without weights."""
        position = into_support(sample.event, self.support)
        bandwidth = self.bandwidth
        if self.kernel == "beta":
            chosen = usual_bandwidth(position, self.support) if isinstance(bandwidth, str) else bandwidth
            return BetaSmoother.fit(position, chosen, self.support)
        if isinstance(bandwidth, str):
            bandwidth = max(silverman_bandwidth(position), self._smallest)
        return KernelSmoother.fit(position, MirroredKernel(self.kernel, float(bandwidth), self.support), self.grid)

    def _prepare(self, sample: Sample) -> tuple[KernelSmoother | BetaSmoother, Floats, float, bool]:
        """Return what depends on predictions only.

        That are the smoother of surprises, their expected sums, the total density, and whether they are few.
        """
        plain = self.smoother(sample)
        weight = sample.weight_or_ones
        likely = sample.once(usual)
        density, surplus = plain.sum_of(weight), sample.null_prob[:, 1] - likely
        if self.reference == "point":
            expected = density * plain.point + plain.sum_of(weight * (surplus - sample.event))
        else:
            expected = plain.sum_of(weight * surplus)
        sparse = plain.is_sparse(np.abs(likely - sample.null_prob[:, 1]))
        return plain.weighted(weight * sign(likely)), expected, float(plain.total(density)), sparse


def _bandwidth(bandwidth: Any, smallest: float, widest: float) -> float | str:
    """Return a bandwidth that the grid resolves, or "silverman"."""
    is_text, is_real = isinstance(bandwidth, str), is_number(bandwidth)
    right = bandwidth == "silverman" if is_text else is_real and 0 < bandwidth <= widest and smallest <= bandwidth
    allowed = f"a number from {smallest:.3g} to {widest:.6g} for this `support`"
    require(right, f"`bandwidth` must be 'silverman' or {allowed}", bandwidth, right_type=is_text or is_real)
    return bandwidth if is_text else float(bandwidth)


def _grid(grid: Any, low: float, high: float) -> tuple[float, float, int]:
    values = _numbers(grid)
    right = len(values) == 3 and values[0] <= low and high <= values[1] and isinstance(grid[2], int | np.integer)
    right = right and values[2] >= 2 and (values[1] - values[0]) / (values[2] - 1) <= (high - low) / 2
    allowed = f"(start, stop, n_points) with start <= {low}, stop >= {high} and at least two steps in `support`"
    require(right, f"`grid` must be {allowed}", grid, right_type=values)
    return values[0], values[1], int(values[2])


def _numbers(values: Any) -> list[float]:
    """Return a sequence of numbers as floats; nothing if it is none."""
    several = values if isinstance(values, list | tuple | np.ndarray) else []
    return [float(value) for value in several] if all(map(is_number, several)) else []
