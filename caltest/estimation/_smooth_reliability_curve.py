"""The reliability curve without cells: frequencies smoothed over the prediction, with a bootstrap band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.predictions._lenses import Canonical, Confidence, Lens
from caltest.predictions._sample import Region, make_sample
from caltest.predictions._validation import SeedLike, validate_count, validate_level, validate_prob, validate_rng
from caltest.results._naming import describe
from caltest.statistics import KDEError
from caltest.statistics._smoothing import KernelSmoother

if TYPE_CHECKING:
    import pandas as pd

_MOST_SHOWN = 2**12
_NEGLIGIBLE = 1e-9  # of the largest density: far above the rounding of a Fourier transform


@dataclass(frozen=True, eq=False)
class SmoothReliabilityCurve:
    """A continuous reliability diagram, as data; one entry per point of the grid that predictions reach, increasing.

    Attributes
    ----------
    point : array of shape (n_points,)
        Predicted probabilities of the event.
    observed : array of shape (n_points,)
        Smoothed frequency of the event there.
    expected : array of shape (n_points,)
        What it is compared with: the point, or the smoothed prediction with ``reference="mean"``.
    density : array of shape (n_points,)
        Density of the predictions; its integral over the probability axis is 1.
    band_low, band_high : arrays of shape (n_points,)
        Ends of the bootstrap band, point by point: percentiles of the curves of resampled rows. It shows the
        variability of ``observed``, bias of smoothing included, not where the calibration function lies.
    error : float
        The average of the local calibration error, weighted with the density: `caltest.KDEError` on these rows.
    bandwidth : float
        Standard deviation of the kernel.
    confidence_level : float
        Share of the resampled curves between the ends of the band, at each point.
    n_samples, n_resamples : int
        Number of rows and of resamples.
    lens, statistic : str
        What was looked at and how it was smoothed.
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
    lens: str
    statistic: str

    @property
    def deviation(self) -> NDArray[np.float64]:
        """``observed - expected``, ``(n_points,)``."""
        return self.observed - self.expected

    @property
    def local_error(self) -> NDArray[np.float64]:
        """The local calibration error, ``|observed - expected|``, ``(n_points,)``."""
        return np.abs(self.deviation)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per point as a pandas frame."""
        import pandas as pd

        names = ("point", "observed", "expected", "deviation", "density", "band_low", "band_high")
        return pd.DataFrame({name: getattr(self, name) for name in names})

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def __str__(self) -> str:
        worst = int(np.argmax(self.local_error * self.density))
        return "\n".join([
            f"Smooth reliability curve through {self.lens}, {self.n_samples:,} rows, {self.statistic}",
            f"bandwidth {self.bandwidth:.4g}, {len(self.point):,} points from {self.point[0]:.4f} to "
            f"{self.point[-1]:.4f}, calibration error {self.error:.6f}",
            f"heaviest local error at {self.point[worst]:.4f}: observed {self.observed[worst]:.4f}, "
            f"{self.confidence_level:.0%} bootstrap band [{self.band_low[worst]:.4f}, {self.band_high[worst]:.4f}]",
        ])  # fmt: skip


def smooth_reliability_curve(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    region: Region | None = None,
    statistic: KDEError | None = None,
    confidence_level: float = 0.9,
    n_resamples: int = 200,
    rng: SeedLike = None,
) -> SmoothReliabilityCurve:
    r"""Compute the reliability curve of Posocco & Bonnefoy (2021): a reliability diagram without cells.

    .. math:: \hat r(g) = \frac{\sum_i y_i k_h(g - p_i)}{\sum_i k_h(g - p_i)}

    at the points g of a grid, by the kernel density estimates of `caltest.KDEError`. For the band, rows (prediction and
    outcome together) are resampled and the bandwidth is kept.

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
        From induced probabilities ``(n_samples, 2)`` to booleans; rows outside are left out.
    statistic : KDEError, optional
        Kernel, bandwidth, support, grid and reference; ``KDEError(bandwidth=0.05)`` by default. Of a grid with more
        than 4,096 points, every second, third ... is shown.
    confidence_level : float
        Of the band; 0.9 leaves 5 % on either side.
    n_resamples : int
        Number of resamples.
    rng : None, int or numpy.random.Generator
        Source of randomness.

    Returns
    -------
    SmoothReliabilityCurve
        Data for `caltest.plot_smooth_reliability`.

    Raises
    ------
    ValueError
        If an argument is not of the form above, or the lens has more than two outcomes.

    References
    ----------
    N. Posocco and A. Bonnefoy (2021), Estimating expected calibration errors, ICANN, section 4.4.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> curve = caltest.smooth_reliability_curve(y_true, y_prob, rng=0)
    >>> print(curve)
    Smooth reliability curve through Confidence(), 10,000 rows, KDEError(bandwidth=0.05)
    bandwidth 0.05, 223 points from 0.1309 to 0.9980, calibration error 0.027213
    heaviest local error at 0.9980: observed 0.9710, 90% bootstrap band [0.9683, 0.9735]
    """
    level = validate_level(confidence_level, "confidence_level")
    n_curves = validate_count(n_resamples, "n_resamples")
    generator = validate_rng(rng)
    chosen = KDEError(bandwidth=0.05) if statistic is None else statistic
    if not isinstance(chosen, KDEError):
        msg = f"`statistic` must be a KDEError such as KDEError(bandwidth=0.05), got {statistic!r}."
        raise ValueError(msg)
    prob = validate_prob(y_prob)
    view = lens if lens is not None else Canonical() if prob.shape[1] == 2 else Confidence()
    sample = make_sample(y_true, prob, classes=classes, lens=view, region=region)
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
        # A row is drawn 256 times only if n is small or chance out of order.
        times = [np.minimum(np.bincount(one, minlength=sample.n_samples), 255) for one in drawn]
        curves.append(_frequencies(smoother, np.array(times, dtype=np.uint8), sample.outcome, shown))
    low, high = np.nanquantile(np.concatenate(curves), [(1 - level) / 2, (1 + level) / 2], axis=0)
    return SmoothReliabilityCurve(
        smoother.point[shown],
        observed[0],
        expected,
        density[shown] / (density.sum() * smoother.step),
        low,
        high,
        error,
        smoother.bandwidth,
        level,
        sample.n_samples,
        n_curves,
        describe(view),
        str(chosen),
    )


def _frequencies(
    smoother: KernelSmoother, rows: NDArray[np.uint8], outcome: NDArray[np.uint8], shown: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return smoothed frequencies ``(n_resamples, n_shown)`` for rows drawn so often; nan where none is near."""
    density = smoother.sums(rows)[:, shown]
    events = smoother.sums(rows * outcome)[:, shown]
    near = density > _NEGLIGIBLE * density.max(axis=1, keepdims=True)
    ratio = np.divide(events, density, where=near, out=np.full(density.shape, np.nan))
    return np.clip(ratio, 0.0, 1.0)
