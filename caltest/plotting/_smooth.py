"""The smooth reliability curve with its bands, in the two styles of the reliability diagram."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest.estimation.curves._smooth_reliability_curve import SmoothReliabilityCurve
from caltest.estimation.uncertainty._prediction_distribution import EDGES
from caltest.plotting._axes import (
    COLORS,
    LINE,
    MOST_TOGETHER,
    NAME_WIDTH,
    colors_of,
    in_one_look,
    literal,
    named,
    single,
)
from caltest.plotting._heading import DIFFERENCE, QUESTION, in_panels, what_is_shown
from caltest.plotting._prediction_axis import PredictionAxis, finish
from caltest.predictions.inputs._validation import validate_choice
from caltest.results._description import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@in_one_look
def plot_smooth_reliability(
    curve: SmoothReliabilityCurve | Mapping[str, SmoothReliabilityCurve],
    ax: Any = None,
    style: str = "classical",
    *,
    scale: str | None = None,
    histogram: bool = True,
    legend: bool = True,
    **options: Any,
) -> Any:
    """Plot a smooth reliability curve with its two bands, or those of several models.

    The line is the smoothed frequency, interrupted where there are no predictions or no bands, with its confidence
    band. The broken line is the median of the curves of resampled observations (Posocco and Bonnefoy 2021, figure 1).
    The grey band around "calibrated" is where the line would lie if the model were calibrated. Bands from 0 to 1 are
    not drawn. Up to four models share the axes and have one colour each: that of the line, of its confidence band, and
    of the two thin lines between which the line of a calibrated model lies; more have a panel each. The panel below is
    the smoothed distribution of the predictions. Points with less than 1 % of the largest density do not determine the
    scale of deviations.

    Parameters
    ----------
    curve : SmoothReliabilityCurve or mapping of str to SmoothReliabilityCurve
        From `caltest.smooth_reliability_curve`; of several models by their names.
    ax : matplotlib.axes.Axes or array of them, optional
        Where to draw; new axes by default. Histogram and legend are below the axes: a figure with
        ``layout="constrained"`` makes room for them.
    style : {"classical", "deviation"}
        Frequency against prediction, with square axes; or frequency minus prediction, against prediction.
    scale : {"linear", "logit", "equal-mass"}, optional
        Scale of the predictions, by default "linear": the bandwidth is the same along it.
    histogram : bool
        Whether to draw the distribution of the predictions below.
    legend : bool
        Whether to draw the legend.
    **options
        Passed to ``matplotlib.axes.Axes.plot`` for the lines of the curves, such as ``linewidth=2``.

    Returns
    -------
    matplotlib.axes.Axes or array of them
        What was drawn into.

    Raises
    ------
    TypeError
        If ``curve`` is not a `SmoothReliabilityCurve` or a mapping of names to such.
    ValueError
        If there is no curve, or ``style`` or ``scale`` is unknown.

    See Also
    --------
    caltest.smooth_reliability_curve : Computes what is drawn.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> matplotlib.use("Agg")
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> ax = caltest.plotting.plot_smooth_reliability(caltest.smooth_reliability_curve(y_true, y_prob, rng=0))
    >>> ax.get_ylabel()
    'observed frequency'
    """
    validate_choice(style, "style", ("classical", "deviation"))
    curves = named(curve, SmoothReliabilityCurve, "curve", "smooth_reliability_curve")
    if len(curves) > MOST_TOGETHER:
        plot = partial(plot_smooth_reliability, style=style, scale=scale, histogram=histogram, **options)
        return in_panels(plot, curves, ax, caption=what_is_shown(curves.values()), legend=legend)
    square = style == "classical"
    ax = single(ax, (6.4, 6.6 if len(curves) == 1 else 7.0) if square else (6.4, 5.2))
    each, alone = list(curves.values()), len(curves) == 1
    densities = {name: _shares(one) for name, one in curves.items()}
    heights = [one.observed for one in each] if square else []
    axis = PredictionAxis.of("linear" if scale is None else scale, densities, [*(one.point for one in each), *heights])
    reach, colors = 0.01, colors_of(len(each))
    for (name, one), color in zip(curves.items(), colors, strict=True):
        size = f"KDEError {one.error:.3g}, bandwidth {one.bandwidth:.3g}"
        label = None if alone else f"{literal(fill(name, NAME_WIDTH))}\n{size}"
        reach = max(reach, _draw(one, ax, square=square, color=color, label=label, options=options))
    if not alone:
        null, own = _band_labels(each[0])
        ax.plot([], [], color=LINE, linestyle=":", label=null)
        ax.plot([], [], color=LINE, linewidth=6, alpha=0.3, label=own)
    ends = None if square else (-1.2 * reach, 1.2 * reach)
    said = QUESTION if square else DIFFERENCE
    finish(axis, ax, colors, said, ends, caption=what_is_shown(each), histogram=histogram, legend=legend)
    return ax


def _draw(
    curve: SmoothReliabilityCurve, ax: Axes, *, square: bool, color: str, label: str | None, options: dict[str, Any]
) -> float:
    """Draw curve and bands of a model, in its colour if there are several, and return its largest deviation."""
    base = np.zeros(len(curve.point)) if square else curve.point
    bands = np.array([curve.calibrated_lower, curve.calibrated_upper, curve.confidence_lower, curve.confidence_upper])
    for low, high in (bands[:2], bands[2:]):
        low[high - low >= 1] = np.nan
    observed, bootstrap_median = (
        np.where(np.isnan(bands[2]), np.nan, y) for y in (curve.observed, curve.bootstrap_median)
    )
    ends = [*bands, observed]
    point, calibrated_lower, calibrated_upper, low, high, line = _broken(curve.point, *(end - base for end in ends))
    look: dict[str, Any] = {"linewidth": 1.5, "zorder": 4, "color": color}
    alone = label is None
    if label is None:
        null, own = _band_labels(curve)
        grey: dict[str, Any] = {"color": LINE, "alpha": 0.3, "linewidth": 0, "zorder": 2}
        ax.fill_between(point, calibrated_lower, calibrated_upper, label=null, **grey)
        ax.fill_between(point, low, high, color=COLORS[1], alpha=0.35, linewidth=0, zorder=3, label=own)
        label = f"observed, bandwidth {curve.bandwidth:.3g}"
    else:
        for end in (calibrated_lower, calibrated_upper):
            ax.plot(point, end, color=color, linewidth=0.9, linestyle=":", zorder=2)
        ax.fill_between(point, low, high, color=color, alpha=0.2, linewidth=0, zorder=3)
    ax.plot(point, line, **look | {"label": label} | options)
    if alone:
        (median,) = _broken(curve.point, bootstrap_median - base)[1:]
        name = "median of the bootstrap curves"
        ax.plot(point, median, color=COLORS[1], linewidth=1.1, linestyle=(0, (2, 1.5)), zorder=5, label=name)
    full = curve.density >= 0.01 * curve.density.max()
    return float(np.nanmax(np.abs([end - curve.point for end in ends])[:, full], initial=0.0))


def _band_labels(curve: SmoothReliabilityCurve) -> tuple[str, str]:
    level = percent(curve.confidence_level)
    kind = "all together" if curve.simultaneous else "point by point"
    return f"{level} band if calibrated, {kind}", f"{level} confidence band, point by point"


def _shares(curve: SmoothReliabilityCurve) -> np.ndarray:
    """Return the smoothed share of the predictions in the bins of the axis, ``(n_bins,)``."""
    step = np.diff(curve.point).min(initial=1.0)
    edges = np.append(curve.point[0] - step / 2, curve.point + step / 2)
    mass = np.append(0.0, np.cumsum(curve.density))
    share = np.diff(np.interp(EDGES, edges, mass, left=0.0, right=mass[-1]))
    total = share.sum()
    return share / total if total > 0 else share


def _broken(point: np.ndarray, *heights: np.ndarray) -> list[np.ndarray]:
    """Return points and heights with a nan in every gap of the grid, which breaks lines and areas."""
    step = np.diff(point)
    gap = 1 + np.flatnonzero(step > 1.5 * step.min(initial=np.inf))
    return [np.insert(values, gap, np.nan) for values in (point, *heights)]
