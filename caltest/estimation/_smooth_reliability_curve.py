"""Smooth reliability curve: frequencies smoothed over the prediction, without cells (bins), with a bootstrap band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.predictions._lens import LensLike, lens_name
from caltest.predictions._sample import make_event_sample
from caltest.predictions._user_functions import Region
from caltest.predictions._validation import SeedLike, validate_count, validate_level, validate_rng
from caltest.results import Result
from caltest.results._description import Description
from caltest.results._naming import describe
from caltest.results._test_result import percent
from caltest.statistics import KDEError
from caltest.statistics._smoothing import KernelSmoother

if TYPE_CHECKING:
    import pandas as pd

_MOST_SHOWN = 2**12
_NEGLIGIBLE = 1e-9  # of the largest density: far above the rounding of a Fourier transform


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SmoothReliabilityCurve(Result):
    """Result of `smooth_reliability_curve`; one entry per point of a grid near predictions, increasing.

    Attributes
    ----------
    point : array of shape (n_points,)
        Predicted probabilities of the event.
    observed : array of shape (n_points,)
        Smoothed frequency of the event there.
    expected : array of shape (n_points,)
        Its value if the model is calibrated: the point, or the smoothed prediction with ``reference="mean"``.
    density : array of shape (n_points,)
        Density of the predictions; its integral over the probability axis is 1.
    band_low, band_high : arrays of shape (n_points,)
        Ends of the pointwise bootstrap band: percentiles of the curves of resampled observations. It shows the
        variability of ``observed``, including the bias of smoothing, not where the calibration function is.
    error : float
        Average of the local calibration error, weighted with the density: `caltest.KDEError` on these observations.
    bandwidth : float
        Standard deviation of the kernel.
    confidence_level : float
        Share of the resampled curves between the ends of the band, at each point.
    n_samples, n_resamples : int
        Number of observations and of bootstrap samples.
    lens : lens
        The lens.
    lens_name : str
        The lens in words.
    test_statistic : KDEError
        The statistic of the error: the kernel, its bandwidth and the grid.
    """

    point: NDArray[np.float64]
    observed: NDArray[np.float64]
    expected: NDArray[np.float64]
    density: NDArray[np.float64]
    band_low: NDArray[np.float64]
    band_high: NDArray[np.float64]
    error: float
    bandwidth: float
    confidence_level: float
    n_samples: int
    n_resamples: int
    lens: LensLike
    lens_name: str
    test_statistic: KDEError

    _picture: ClassVar[str | None] = "plot_smooth_reliability"
    _derived: ClassVar[tuple[str, ...]] = ("conclusion",)

    @property
    def deviation(self) -> NDArray[np.float64]:
        """``observed - expected``, ``(n_points,)``."""
        return self.observed - self.expected

    @property
    def local_error(self) -> NDArray[np.float64]:
        """The local calibration error, ``|observed - expected|``, ``(n_points,)``."""
        return np.abs(self.deviation)

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each point as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            Point, smoothed frequency, its value if calibrated, deviation, density of the predictions, ends of the band.
        """
        import pandas as pd

        names = ("point", "observed", "expected", "deviation", "density", "band_low", "band_high")
        return pd.DataFrame({name: getattr(self, name) for name in names})

    @property
    def conclusion(self) -> str:
        """The size of the error and its largest part, in words."""
        worst = int(np.argmax(self.local_error * self.density))
        band = f"{self.band_low[worst]:.4f} to {self.band_high[worst]:.4f}"
        return (
            f"The calibration error is {self.error:.4g}. Its largest part is near the prediction "
            f"{self.point[worst]:.4f}, where the event has the frequency {self.observed[worst]:.4f} "
            f"({percent(self.confidence_level)} bootstrap band {band})."
        )

    def _describe(self) -> Description:
        return Description(
            f"Smooth reliability curve ({self.lens_name}, {self.n_samples} observations)",
            [self.conclusion],
            remarks=[
                f"Curve: {len(self.point)} points from {self.point[0]:.4f} to {self.point[-1]:.4f}, "
                f"{describe(self.test_statistic)}, bandwidth {self.bandwidth:.4g}.",
                f"Band: {self.n_resamples} bootstrap samples, pointwise. It shows how much the curve varies, including "
                "the bias of smoothing, not where the calibration function is.",
            ],
        )


def smooth_reliability_curve(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    lens: LensLike | None = None,
    region: Region | None = None,
    statistic: KDEError | None = None,
    confidence_level: float = 0.9,
    n_resamples: int = 200,
    rng: SeedLike = None,
) -> SmoothReliabilityCurve:
    r"""Compute a smooth reliability curve with a bootstrap band (Posocco & Bonnefoy 2021).

    .. math:: \hat r(g) = \frac{\sum_i y_i k_h(g - p_i)}{\sum_i k_h(g - p_i)}

    is computed at the points g of a grid, with the kernel density estimates of `caltest.KDEError` instead of cells
    (bins). For the band, observations (predictions with their labels) are resampled and the bandwidth is kept.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    lens : lens, optional
        A lens with two outcomes; by default `Confidence()`, or the event itself for two classes.
    region : callable, optional
        From induced probabilities ``(n_samples, 2)`` to booleans ``(n_samples,)``; others are left out.
    statistic : KDEError, optional
        Kernel, bandwidth, support, grid and reference; ``KDEError(bandwidth=0.05)`` by default. Of a grid with more
        than 4,096 points only every second, third ... point is returned.
    confidence_level : float
        Level of the band at each point; 0.9 leaves 5 % on either side.
    n_resamples : int
        Number of bootstrap samples.
    rng : None, int or numpy.random.Generator
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

    References
    ----------
    N. Posocco and A. Bonnefoy (2021), Estimating expected calibration errors, ICANN, section 4.4.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> curve = caltest.smooth_reliability_curve(y_true, y_prob, rng=0)
    >>> curve.conclusion.partition(". ")[0], len(curve.point)
    ('The calibration error is 0.02721', 223)
    """
    level = validate_level(confidence_level, "confidence_level")
    n_curves = validate_count(n_resamples, "n_resamples")
    generator = validate_rng(rng)
    chosen = KDEError(bandwidth=0.05) if statistic is None else statistic
    if not isinstance(chosen, KDEError):
        msg = f"`statistic` must be a KDEError such as KDEError(bandwidth=0.05), got {statistic!r}."
        raise TypeError(msg)
    sample, look = make_event_sample(y_true, y_prob, classes=classes, lens=lens, region=region)
    error = float(chosen.evaluate(sample, sample.outcome))
    smoother = chosen.smoother(sample)
    rows = np.ones((1, sample.n_samples), dtype=np.uint8)
    density = smoother.sums(rows)[0]
    shown = np.flatnonzero(density > _NEGLIGIBLE * density.max())[:: -(-len(density) // _MOST_SHOWN)]
    observed = _frequencies(smoother, rows, sample.outcome, shown)
    expected = smoother.point[shown]
    if chosen.reference == "mean":
        expected = smoother.sum_of(sample.event)[shown] / density[shown]
    curves = [observed]
    for start in range(0, n_curves, smoother.batch):
        drawn = generator.integers(sample.n_samples, size=(min(smoother.batch, n_curves - start), sample.n_samples))
        # Counts are bytes: no observation is drawn more than 255 times, unless there are very few.
        times = [np.minimum(np.bincount(one, minlength=sample.n_samples), 255) for one in drawn]
        curves.append(_frequencies(smoother, np.array(times, dtype=np.uint8), sample.outcome, shown))
    low, high = np.nanquantile(np.concatenate(curves), [(1 - level) / 2, (1 + level) / 2], axis=0)
    return SmoothReliabilityCurve(
        point=smoother.point[shown],
        observed=observed[0],
        expected=expected,
        density=density[shown] / (density.sum() * smoother.step),
        band_low=low,
        band_high=high,
        error=error,
        bandwidth=smoother.bandwidth,
        confidence_level=level,
        n_samples=sample.n_samples,
        n_resamples=n_curves,
        lens=look,
        lens_name=lens_name(look, classes),
        test_statistic=chosen,
    )


def _frequencies(
    smoother: KernelSmoother, rows: NDArray[np.uint8], outcome: NDArray[np.uint8], shown: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return smoothed frequencies ``(n_resamples, n_shown)`` for counts of observations; nan where none is near."""
    density = smoother.sums(rows)[:, shown]
    events = smoother.sums(rows * outcome)[:, shown]
    near = density > _NEGLIGIBLE * density.max(axis=1, keepdims=True)
    ratio = np.divide(events, density, where=near, out=np.full(density.shape, np.nan))
    return np.clip(ratio, 0.0, 1.0)
