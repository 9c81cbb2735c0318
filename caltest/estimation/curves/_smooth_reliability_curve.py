"""Smooth reliability curve: deviations smoothed over the prediction, without cells (bins), with two bands."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.estimation._options import EventOptions, event_of
from caltest.estimation.curves._bars import drawn_ends, frequency_intervals
from caltest.predictions._arrays import Booleans, Floats, Integers
from caltest.predictions._lens import LensLike
from caltest.predictions._sample import Sample
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._validation import SeedLike, require, validate_level, validate_rng
from caltest.resampling.draws._labels import OutcomeDraws
from caltest.resampling.draws._rows import BootstrapDraws
from caltest.resampling.engine._stopping import number_of_draws
from caltest.results import Note, Result
from caltest.results._description import Description, counted, percent
from caltest.results._naming import describe
from caltest.results._picture import Picture
from caltest.statistics import KDEError
from caltest.statistics._beta_kernels import BetaSmoother
from caltest.statistics._smoothing import KernelSmoother, into_support

_MOST_SHOWN = 2**12
_COUNTS = 2**23  # of drawn observations that are held at a time
_NEGLIGIBLE = 1e-9  # of the largest density: far above the rounding of a Fourier transform
_ENOUGH = 0.01  # of the largest density, for what is said of all points together
_FEWEST = 5.0  # observations near a point, weighted by the kernel, that can be resampled
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SmoothReliabilityCurve(Result):
    """Result of `smooth_reliability_curve`; one entry per point of a grid near predictions, increasing.

    Attributes
    ----------
    point : array of shape (n_points,)
        Predicted probabilities of the event.
    deviation : array of shape (n_points,)
        Smoothed difference of the event (0 or 1) and its prediction; the smoothed frequency minus the point with
        ``reference="point"``.
    observed : array of shape (n_points,)
        Frequency of the event there: ``point + deviation``, clipped to [0, 1].
    density : array of shape (n_points,)
        Density of the predictions; its integral over the probability axis is 1.
    calibrated_lower, calibrated_upper : arrays of shape (n_points,)
        Ends of the band under calibration: where ``observed`` lies if the model is calibrated. From simulated labels,
        predictions fixed.
    confidence_lower, confidence_upper : arrays of shape (n_points,)
        Ends of the confidence band of the estimate: it contains the equally smoothed calibration function. Clopper and
        Pearson's intervals for the effective number of observations near each point; 0 and 1 where it is below 5.
    bootstrap_median : array of shape (n_points,)
        Median of the smoothed frequencies of resampled observations, which Posocco and Bonnefoy (2021, figure 1) take
        as the reliability curve; nan where fewer than 5 observations are near.
    error : float
        Average of the local calibration error, weighted with the density: `caltest.statistics.KDEError` on these
        observations.
    bandwidth : float
        Standard deviation of the kernel.
    confidence_level : float
        Level of both bands.
    simultaneous : bool
        Whether the level of the band under calibration is that of all points together; else it is that of each point,
        as always for the confidence band.
    n_samples, n_resamples : int
        Number of observations, and of draws of the labels and of the observations.
    lens : lens
        The lens.
    lens_name : str
        The lens in words.
    test_statistic : KDEError
        The statistic of the error: the kernel, its bandwidth and the grid.

    See Also
    --------
    caltest.smooth_reliability_curve : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> curve = caltest.smooth_reliability_curve(y_true, y_prob[:, 1], n_resamples=19, rng=0)
    >>> curve.point.shape == curve.observed.shape, curve.n_samples
    (True, 300)
    """

    point: Floats
    deviation: Floats
    observed: Floats
    density: Floats
    calibrated_lower: Floats
    calibrated_upper: Floats
    confidence_lower: Floats
    confidence_upper: Floats
    bootstrap_median: Floats
    error: float
    bandwidth: float
    confidence_level: float
    simultaneous: bool
    n_samples: int
    n_resamples: int
    lens: LensLike
    lens_name: str
    test_statistic: KDEError

    plot = Picture("plot_smooth_reliability")
    _derived: ClassVar[tuple[str, ...]] = ("outside", "conclusion", "notes")
    _columns: ClassVar[tuple[str, ...]] = (
        *("point", "observed", "deviation", "density", "calibrated_lower"),
        *("calibrated_upper", "confidence_lower", "confidence_upper", "bootstrap_median", "outside"),
    )

    @property
    def notes(self) -> tuple[Note, ...]:
        """Cautions about what was passed."""
        return self._input_notes

    @property
    def local_error(self) -> Floats:
        """The local calibration error, ``|deviation|``, ``(n_points,)``."""
        return np.abs(self.deviation)

    @property
    def outside(self) -> Booleans:
        """Whether the curve is outside the band under calibration at each point, ``(n_points,)``."""
        return (self.observed < self.calibrated_lower - _ROUNDING) | (self.observed > self.calibrated_upper + _ROUNDING)

    @property
    def conclusion(self) -> str:
        """Where a calibrated model would lie, and the size of the error, in words."""
        level, rest = percent(self.confidence_level), percent(1 - self.confidence_level)
        share = float(self.outside @ self.density / self.density.sum())
        if not self.simultaneous:
            where = (
                f"is outside the {level} band of a calibrated model at {100 * share:.0f} % of the predictions ({rest} "
                "are expected if the model is calibrated)"
            )
        elif self.outside.any():
            where = f"leaves the {level} band of a calibrated model, as at most {rest} of calibrated models do"
        else:
            where = f"is inside the {level} band of a calibrated model everywhere"
        worst = int(np.argmax(self.local_error * self.density))
        band = f"{self.confidence_lower[worst]:.4f} to {self.confidence_upper[worst]:.4f}"
        usual = f"{self.calibrated_lower[worst]:.4f} to {self.calibrated_upper[worst]:.4f}"
        return (
            f"The curve {where}. The calibration error is {self.error:.4g}. Its largest part is near the prediction "
            f"{self.point[worst]:.4f}, where the event has the frequency {self.observed[worst]:.4f} ({level} "
            f"confidence band {band}; {usual} if the model is calibrated)."
        )

    def _describe(self) -> Description:
        kind = "all points together" if self.simultaneous else "point by point"
        smoothed = "frequencies, with the bias of smoothing"
        if self.test_statistic.reference == "mean":
            smoothed = "differences from the predictions"
        return Description(
            f"Smooth reliability curve ({self.lens_name}, {counted(self.n_samples)})",
            [self.conclusion],
            remarks=[
                f"Curve: {len(self.point)} points from {self.point[0]:.4f} to {self.point[-1]:.4f}, "
                f"{describe(self.test_statistic)}, bandwidth {self.bandwidth:.4g}; smoothed are {smoothed}.",
                f"Band under calibration, {kind}: {self.n_resamples:,} Monte Carlo draws of the labels, predictions "
                "fixed.",
                "Confidence band, point by point: Clopper-Pearson intervals for the effective number of observations "
                "near each point. It contains the equally smoothed calibration function.",
            ],
        )


@reads_arguments
def smooth_reliability_curve(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    statistic: KDEError | None = None,
    confidence_level: float = 0.9,
    simultaneous: bool = False,
    n_resamples: int | None = None,
    rng: SeedLike = None,
    **options: Unpack[EventOptions],
) -> SmoothReliabilityCurve:
    r"""Compute a smooth reliability curve with a band under calibration and a confidence band.

    .. math:: \hat r(g) = g + \frac{\sum_i (y_i - p_i) k_h(g - p_i)}{\sum_i k_h(g - p_i)}

    is computed at the points g of a grid, with the kernel sums of `caltest.statistics.KDEError` instead of cells.
    Residuals are smoothed, so that the curve of a calibrated model is g on average. The published curve (Posocco &
    Bonnefoy 2021) smooths the events y instead and draws even a calibrated model away from the diagonal, wherever the
    density of the predictions changes; ``statistic=KDEError(0.05, reference="point")`` has it.

    Two bands answer two questions. If the model is calibrated, where would the curve be? Labels are simulated from the
    predictions; this is valid at every sample size. How well is the curve determined? The smoothed frequency is a
    weighted one, with the weights :math:`w_i = k_h(g - p_i)`; its interval is that of Clopper and Pearson for the
    effective number of observations :math:`(\sum_i w_i)^2 / \sum_i w_i^2` (Kish 1965). It does not collapse where no
    event, or nothing else, happened. The band is for the equally smoothed calibration function,
    :math:`g + \sum_i (r(p_i) - p_i) k_h(g - p_i) / \sum_i k_h(g - p_i)`, and approximate, because the number of
    observations is only effective.

    Parameters
    ----------
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities.
    statistic : KDEError, optional
        Kernel, bandwidth, support, grid and reference; ``KDEError(bandwidth=0.05, reference="mean")`` by default. Of a
        grid with more than 4,096 points only every second, third ... point is returned.
    confidence_level : float
        Level of both bands; at each point 0.9 leaves 5 % on either side.
    simultaneous : bool
        Whether the band under calibration has its level for all points together that have at least 1 % of the largest
        density and 5 observations near them. It is as many standard deviations wide at each of them, and reaches from 0
        to 1 at other points. The confidence band is pointwise in any case.
    n_resamples : int, optional
        Number of draws of the labels, and of the bootstrap samples of the median; 999 by default.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness.

    Returns
    -------
    SmoothReliabilityCurve
        Data for `caltest.plotting.plot_smooth_reliability`; prints as a report.

    Raises
    ------
    TypeError
        If ``statistic`` is no `KDEError`, or ``lens``, ``region``, ``n_resamples`` or ``rng`` has another wrong type.
    ValueError
        If ``y_prob`` has values outside [0, 1] or does not sum to 1, a label is unknown or lengths differ; if the lens
        has more than two outcomes; if ``confidence_level`` is not strictly between 0 and 1, or ``n_resamples`` < 1; if
        no observation lies in the region.

    See Also
    --------
    caltest.reliability_curve : Frequencies in cells (bins).
    caltest.calibration_band : A band for the whole curve.

    References
    ----------
    N. Posocco and A. Bonnefoy (2021), Estimating expected calibration errors, ICANN, section 4.4.
    L. Kish (1965), Survey Sampling, Wiley.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> curve = caltest.smooth_reliability_curve(y_true, y_prob, rng=0)
    >>> round(float(curve.outside.mean()), 2), round(curve.error, 4), len(curve.point)
    (0.53, 0.0398, 223)
    """
    level = validate_level(confidence_level, "confidence_level")
    n_curves = number_of_draws(n_resamples)
    generator = validate_rng(rng)
    chosen = KDEError(bandwidth=0.05, reference="mean") if statistic is None else statistic
    must = "`statistic` must be a KDEError such as KDEError(bandwidth=0.05)"
    require(isinstance(chosen, KDEError), must, statistic, right_type=False)
    sample, about = event_of(y_true, y_prob, options)
    smoother = chosen.smoother(sample)
    density = smoother.sums(np.ones((1, sample.n_samples), dtype=np.uint8))[0]
    shown = np.flatnonzero(density > _NEGLIGIBLE * density.max())[:: -(-len(density) // _MOST_SHOWN)]
    point = smoother.point[shown]
    curves = _Curves(smoother, sample, shown, centred=chosen.reference == "mean")
    deviation = curves.deviations(sample.outcome[None])[0]
    draws = OutcomeDraws.of(n_curves, generator)
    calibrated = np.concatenate([curves.deviations(some) for _, some in draws.blocks(sample)])
    squared = smoother.squared_kernels(into_support(sample.event, chosen.support), shown)
    together = max(min(smoother.batch, _COUNTS // sample.n_samples), 1)
    parts = BootstrapDraws.of(n_curves, generator).slices(together)
    resampled = [curves.resampled(part.row_counts(sample.n_samples).astype(np.uint8)) for part in parts]
    several = density[shown] >= _FEWEST * smoother.peak[shown]
    if simultaneous:
        full = several & (density[shown] >= _ENOUGH * density.max())
        std = np.sqrt(squared.variance(sample.expected[:, 0] * sample.expected[:, 1]))
        under_calibration = _simultaneous(calibrated, curves.expected - curves.base, std, level, full)
    else:
        under_calibration = np.array(drawn_ends(calibrated, level))
    share = np.clip(deviation + curves.base, 0.0, 1.0)  # of the kernel weights: those of events
    share[share < _ROUNDING], share[share > 1 - _ROUNDING] = 0.0, 1.0  # as it is without the transform
    ends = np.array(frequency_intervals(share, 1 - share, squared.effective_number(), level))
    of_estimate = np.where(several, ends - curves.base, [[-1.0], [1.0]])
    estimates = np.concatenate(resampled)[:, several]
    median = np.full(len(shown), np.nan)
    median[several] = np.clip(point[several] + np.nanmedian(estimates, axis=0), 0.0, 1.0)
    (low, high), (lower, upper) = (np.clip(point + band, 0.0, 1.0) for band in (under_calibration, of_estimate))
    return SmoothReliabilityCurve(
        **about,
        point=point,
        deviation=deviation,
        observed=np.clip(point + deviation, 0.0, 1.0),
        density=density[shown] / (smoother.total(density) * smoother.step),
        calibrated_lower=low,
        calibrated_upper=high,
        confidence_lower=lower,
        confidence_upper=upper,
        bootstrap_median=median,
        error=float(chosen.evaluate(sample, sample.outcome)),
        bandwidth=smoother.bandwidth,
        confidence_level=level,
        simultaneous=simultaneous,
        n_samples=sample.n_samples,
        n_resamples=n_curves,
        test_statistic=chosen,
    )


@dataclass(frozen=True, eq=False)
class _Curves:
    """Smoothed deviations at the points that are shown; centred ones are those of residuals."""

    smoother: KernelSmoother | BetaSmoother
    sample: Sample
    shown: Integers
    centred: bool

    @cached_property
    def density(self) -> Floats:
        """Kernel sums of the observations, ``(n_shown,)``."""
        return self._sums(self.smoother, np.ones((1, self.sample.n_samples), dtype=np.uint8))[0]

    @cached_property
    def expected(self) -> Floats:
        """Smoothed frequency if the model is calibrated, on average, ``(n_shown,)``."""
        predicted = self.smoother.weighted(self.sample.event)
        return self._sums(predicted, np.ones((1, self.sample.n_samples), dtype=np.uint8))[0] / self.density

    @property
    def base(self) -> Floats:
        """What the smoothed frequency is compared with, ``(n_shown,)``."""
        return self.expected if self.centred else self.smoother.point[self.shown]

    def _sums(self, smoother: KernelSmoother | BetaSmoother, times: NDArray[np.uint8]) -> Floats:
        """Return kernel sums ``(n_draws, n_shown)`` of counts ``(n_draws, n_samples)``."""
        step = smoother.batch
        parts = [smoother.sums(times[i : i + step])[:, self.shown] for i in range(0, len(times), step)]
        return np.concatenate(parts)

    @cached_property
    def _usual(self) -> tuple[NDArray[np.uint8], Floats, KernelSmoother | BetaSmoother]:
        """The more probable outcomes ``(n_samples,)``, their kernel sums, and the smoother of what the others change.

        Where predictions are sharp, few outcomes differ from these.
        """
        usual = (self.sample.expected[:, 1] > 0.5).astype(np.uint8)
        return usual, self._sums(self.smoother, usual[None])[0], self.smoother.weighted(np.where(usual, -1.0, 1.0))

    def deviations(self, outcomes: NDArray[np.uint8]) -> Floats:
        """Return deviations ``(n_draws, n_shown)`` of outcomes ``(n_draws, n_samples)``."""
        usual, sums, changes = self._usual
        return (sums + self._sums(changes, outcomes ^ usual)) / self.density - self.base

    def resampled(self, times: NDArray[np.uint8]) -> Floats:
        """Return deviations for counts of observations ``(n_draws, n_samples)``; nan where none is near."""
        values = self.sample.outcome - (self.sample.event if self.centred else 0.0)
        columns = np.column_stack([np.ones(self.sample.n_samples), values])
        density, total = (sums[:, self.shown] for sums in self.smoother.several_sums(times, columns))
        near = density > _NEGLIGIBLE * density.max(axis=1, keepdims=True)
        average = np.divide(total, density, where=near, out=np.full(density.shape, np.nan))
        return average if self.centred else average - self.base


def _simultaneous(drawn: Floats, middle: Floats, std: Floats, level: float, full: Booleans) -> Floats:
    """Return the ends ``(2, n_points)`` of a band for all full points together, as many deviations wide at each.

    Mean and standard deviation of a draw are known without draws, so that the largest standardised distances of the
    draws and of another one are exchangeable: it is outside with probability 1 - level at most.
    """
    varies = full & (std > 0)
    distance = np.abs(drawn - middle)[:, varies] / std[varies]
    largest = np.sort(distance.max(axis=1, initial=0.0))
    rank = math.ceil(level * (len(largest) + 1) * (1 - _ROUNDING))
    width = largest[rank - 1] if rank <= len(largest) else math.inf
    half = np.ones(len(full))
    half[full] = np.where(varies, np.minimum(width * std, 1.0), 0.0)[full] if math.isfinite(width) else 1.0
    return np.stack([middle - half, middle + half])
