"""The smooth reliability curve with its bands, in the two styles of the reliability diagram."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from caltest.estimation._smooth_reliability_curve import SmoothReliabilityCurve
from caltest.plotting._axes import BAR, DASHED, DENSITY, LINE, POINT, legend_below, require, single
from caltest.predictions._validation import validate_choice
from caltest.results._description import counted
from caltest.results._test_result import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_smooth_reliability(
    curve: SmoothReliabilityCurve, ax: Axes | None = None, style: str = "deviation", *, legend: bool = True
) -> Axes:
    """Plot a smooth reliability curve with its two bands.

    The line is the smoothed frequency, interrupted where there are no predictions, with its confidence band in colour.
    The grey band around "calibrated" is where the line would lie if the model were calibrated. Bands from 0 to 1 are
    not drawn. The pale area at the bottom is the density of the predictions. Points with less than 1 % of the largest
    density do not determine the scale of deviations.

    Parameters
    ----------
    curve : SmoothReliabilityCurve
        From `caltest.smooth_reliability_curve`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes by default. The legend is below the axes: a figure with ``layout="constrained"`` makes
        room for it.
    style : {"deviation", "classical"}
        Frequency minus what it is compared with, against prediction; or frequency against prediction, with square axes.
    legend : bool
        Whether to draw the legend.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn into.

    Raises
    ------
    TypeError
        If ``curve`` is not a `SmoothReliabilityCurve`.
    ValueError
        If ``style`` is unknown.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> matplotlib.use("Agg")
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> ax = caltest.plotting.plot_smooth_reliability(caltest.smooth_reliability_curve(y_true, y_prob, rng=0))
    >>> ax.get_ylabel()
    'observed - predicted'
    """
    validate_choice(style, "style", ("deviation", "classical"))
    require(curve, SmoothReliabilityCurve, "curve", "smooth_reliability_curve")
    square = style == "classical"
    ax = single(ax, (5.2, 5.9) if square else (6.4, 4.6))
    base = np.zeros(len(curve.point)) if square else curve.point
    _draw_density(curve, ax, square=square)
    level = percent(curve.confidence_level)
    kind = "all together" if curve.simultaneous else "point by point"
    bands = np.array([curve.calibrated_low, curve.calibrated_high, curve.confidence_low, curve.confidence_high])
    for low, high in (bands[:2], bands[2:]):
        low[high - low >= 1] = np.nan
    ends = [*bands, curve.observed]
    point, calibrated_low, calibrated_high, low, high, line = _broken(curve.point, *(end - base for end in ends))
    label = f"{level} band if calibrated, {kind}"
    ax.fill_between(point, calibrated_low, calibrated_high, color=LINE, alpha=0.3, linewidth=0, zorder=2, label=label)
    label = f"{level} confidence band, point by point"
    ax.fill_between(point, low, high, color=BAR, alpha=0.4, linewidth=0, zorder=3, label=label)
    ax.plot(point, line, color=POINT, linewidth=1.5, zorder=4, label=f"observed, bandwidth {curve.bandwidth:.3g}")
    ax.set_xlim(-0.02, 1.02)
    ax.set_xlabel("predicted probability")
    ax.set_title(f"{curve.lens_name}, {counted(curve.n_samples, ',')}", fontsize="medium")
    if square:
        ax.plot([0, 1], [0, 1], color=LINE, zorder=2, label="calibrated", **DASHED)
        ax.set_ylim(-0.02, 1.02)
        ax.set_ylabel("observed frequency")
        ax.set_box_aspect(1)
    else:
        ax.axhline(0, color=LINE, zorder=2, label="calibrated", **DASHED)
        full = curve.density >= 0.01 * curve.density.max()
        reach = 1.2 * max(np.nanmax(np.abs([end - base for end in ends])[:, full]), 0.01)
        ax.set_ylim(-reach, reach)
        ax.set_ylabel("observed - predicted")
    if legend:
        legend_below(ax)
    return ax


def _broken(point: np.ndarray, *heights: np.ndarray) -> list[np.ndarray]:
    """Return points and heights with a nan in every gap of the grid, which breaks lines and areas."""
    step = np.diff(point)
    gap = 1 + np.flatnonzero(step > 1.5 * step.min(initial=np.inf))
    return [np.insert(values, gap, np.nan) for values in (point, *heights)]


def _draw_density(curve: SmoothReliabilityCurve, ax: Axes, *, square: bool) -> None:
    """Draw the density of the predictions behind everything, in the lowest quarter, with its own scale."""
    foot = ax.twinx()
    point, density = _broken(curve.point, curve.density)
    foot.fill_between(point, density, color=DENSITY, linewidth=0)
    top = curve.density.max()
    foot.set_ylim(0, 4 * top)
    foot.set_yticks([0, top], ["0", f"{top:.3g}"])
    foot.tick_params(labelsize="small", colors=LINE)
    foot.set_ylabel("density", loc="bottom", color=LINE, fontsize="small")
    ax.set_zorder(foot.get_zorder() + 1)
    ax.patch.set_visible(False)
    if square:
        foot.set_box_aspect(1)
