"""Curves with bands: the isotonic (CORP) reliability diagram, the band of non-decreasing functions, the GiViTI belt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest.estimation.curves._calibration_band import CalibrationBand
from caltest.estimation.curves._isotonic_curve import IsotonicCurve
from caltest.hypothesis_tests.classical._giviti import GivitiBelt
from caltest.plotting._axes import (
    BAR,
    DASHED,
    DENSITY,
    FINDING,
    LINE,
    MOST_TOGETHER,
    NAME_WIDTH,
    POINT,
    colors_of,
    in_one_look,
    legend_below,
    literal,
    marker_of,
    named,
    require,
    single,
)
from caltest.plotting._heading import DIFFERENCE, QUESTION, in_panels, what_is_shown
from caltest.plotting._prediction_axis import PredictionAxis, finish, set_linear
from caltest.predictions.inputs._validation import validate_choice
from caltest.results._decision import decided, equate_pvalue, rejects
from caltest.results._description import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ALPHA = 0.05  # level of findings
_PALE = 0.14  # opacity of the bands of several models
_MOST_TICKS = 200
_TICKS: dict[str, Any] = {"linestyle": "none", "marker": "|", "markersize": 7, "color": LINE, "clip_on": False}


@in_one_look
def plot_isotonic_curve(
    curve: IsotonicCurve | Mapping[str, IsotonicCurve],
    ax: Any = None,
    style: str = "classical",
    *,
    scale: str | None = None,
    histogram: bool = True,
    legend: bool = True,
    **options: Any,
) -> Any:
    """Plot an isotonic (CORP) reliability curve with its band, or those of several models.

    The legend has the decomposition of the Brier score: mean = miscalibration (MCB) - discrimination (DSC) +
    uncertainty (UNC); of several models the miscalibration with its noise floor. The panel below is the distribution of
    the predictions. Thick parts of the curve are where the band is evidence against calibration; they are orange if
    the test rejects at the 5 % level. Up to four models share the axes, more have a panel each.

    Parameters
    ----------
    curve : IsotonicCurve or mapping of str to IsotonicCurve
        From `caltest.isotonic_curve`; of several models by their names.
    ax : matplotlib.axes.Axes or array of them, optional
        Where to draw; new axes by default. Histogram and legend are below the axes: a figure with
        ``layout="constrained"`` makes room for them.
    style : {"classical", "deviation"}
        Calibration function against prediction, with square axes; or calibration function minus prediction.
    scale : {"linear", "logit", "equal-mass"}, optional
        Scale of the predictions, by default chosen from them as in `plot_reliability`.
    histogram : bool
        Whether to draw the distribution of the predictions below.
    legend : bool
        Whether to draw the legend.
    **options
        Passed to ``matplotlib.axes.Axes.plot`` for the line of the curve, such as ``linewidth=2``.

    Returns
    -------
    matplotlib.axes.Axes or array of them
        What was drawn into.

    Raises
    ------
    TypeError
        If ``curve`` is not an `IsotonicCurve` or a mapping of names to such.
    ValueError
        If there is no curve, or ``style`` or ``scale`` is unknown.

    See Also
    --------
    caltest.isotonic_curve : Computes what is drawn.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> matplotlib.use("Agg")
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> ax = caltest.plotting.plot_isotonic_curve(caltest.isotonic_curve(y_true[:500], y_prob[:500], rng=0))
    >>> ax.get_ylabel()
    'observed frequency (logit scale)'
    """
    validate_choice(style, "style", ("classical", "deviation"))
    curves = named(curve, IsotonicCurve, "curve", "isotonic_curve")
    if len(curves) > MOST_TOGETHER:
        plot = partial(plot_isotonic_curve, style=style, scale=scale, histogram=histogram, **options)
        return in_panels(plot, curves, ax, caption=what_is_shown(curves.values()), legend=legend)
    square = style == "classical"
    ax = single(ax, (6.4, 6.6 if len(curves) == 1 else 7.0) if square else (6.4, 5.4))
    each, alone = list(curves.values()), len(curves) == 1
    inside = [one.recalibrated[(one.recalibrated > 0) & (one.recalibrated < 1)] for one in each]
    heights = inside if square else []  # a few labels at either end make fits of 0 and 1, which say little
    densities = {name: one.density for name, one in curves.items()}
    axis = PredictionAxis.of(scale, densities, [*(one.score for one in each), *heights])
    colors = colors_of(len(each))
    for (name, one), color in zip(curves.items(), colors, strict=True):
        _draw(one, ax, square=square, color=color, label=None if alone else _model_label(name, one), options=options)
    said, caption = QUESTION if square else DIFFERENCE, what_is_shown(each)
    if alone:
        said, caption = decided(each[0].pvalue, _ALPHA), f"{caption}; {_decomposition(each[0])}"
    else:
        for label in dict.fromkeys(map(_band_label, each)):
            ax.fill_between([], [], [], color=LINE, alpha=_PALE, linewidth=0, label=label)
    reach = None if square else _reach(each)
    finish(axis, ax, colors, said, reach, caption=caption, histogram=histogram, legend=legend)
    return ax


def _draw(
    curve: IsotonicCurve, ax: Axes, *, square: bool, color: str, label: str | None, options: dict[str, Any]
) -> None:
    """Draw curve and band of a model, in its colour if there are several."""
    alone = label is None
    base = np.zeros(len(curve.score)) if square else curve.score
    low, high, height = curve.lower - base, curve.upper - base, curve.recalibrated - base
    band: dict[str, Any] = (
        {"color": DENSITY, "label": _band_label(curve)} if alone else {"color": color, "alpha": _PALE}
    )
    ax.fill_between(curve.score, low, high, linewidth=0, zorder=1, **band)
    marker = marker_of(curve.score)
    if marker:
        ax.vlines(curve.score, low, high, color=BAR if alone else color, linewidth=5, alpha=0.5, zorder=1)
    line: dict[str, Any] = {"color": color, "linewidth": 1.3, "marker": marker, "zorder": 4}
    ax.plot(curve.score, height, **line | {"label": "isotonic fit" if alone else label} | options)
    if curve.outside.any():
        thick = np.where(curve.outside, height, np.nan)
        found = FINDING if rejects(curve.pvalue, _ALPHA) else color
        look: dict[str, Any] = {"color": found, "label": "outside the band"} if alone else {"color": color}
        ax.plot(curve.score, thick, linewidth=3, marker=".", zorder=5, **look)


def _band_label(curve: IsotonicCurve) -> str:
    together = "everywhere at once" if curve.band == "confidence" else "at each prediction"
    return f"{percent(curve.confidence_level)} {curve.band} band, {together}"


def _model_label(name: str, curve: IsotonicCurve) -> str:
    size = f"MCB {curve.brier.miscalibration:.2g} (noise floor {curve.noise_floor:.2g}), {equate_pvalue(curve.pvalue)}"
    return literal(f"{fill(name, NAME_WIDTH)}\n{size}")


def _reach(curves: Sequence[IsotonicCurve]) -> tuple[float, float]:
    """Return the range of deviations.

    Confidence bands do not determine it: they may be as wide as the axes.
    """
    heights = [one.recalibrated - one.score for one in curves]
    heights += [end - one.score for one in curves if one.band != "confidence" for end in (one.lower, one.upper)]
    reach = max(0.01, *(np.abs(height).max() for height in heights))
    return -1.2 * reach, 1.2 * reach


def _decomposition(curve: IsotonicCurve) -> str:
    """Return the decomposition of the Brier score."""
    one = curve.brier
    return f"Brier: MCB {one.miscalibration:.2g}, DSC {one.discrimination:.2g}, UNC {one.uncertainty:.2g}"


@in_one_look
def plot_calibration_band(
    band: CalibrationBand, ax: Axes | None = None, style: str = "classical", *, legend: bool = True
) -> Axes:
    """Plot a simultaneous confidence band for a non-decreasing calibration function.

    The pale area is the confidence band, the line the isotonic fit to the labels. The dotted lines are the band of the
    test: where the diagonal is outside of it, calibration is rejected, and the diagonal is thick. Ticks at the bottom
    are the distinct scores, every k-th of them if there are more than 200.

    Parameters
    ----------
    band : CalibrationBand
        From `caltest.calibration_band`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes by default. The legend is below the axes: a figure with ``layout="constrained"`` makes
        room for it.
    style : {"classical", "deviation"}
        Calibration function against prediction, with square axes; or calibration function minus prediction.
    legend : bool
        Whether to draw the legend.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn into.

    Raises
    ------
    TypeError
        If ``band`` is not a `CalibrationBand`.
    ValueError
        If ``style`` is unknown.

    See Also
    --------
    caltest.calibration_band : Computes what is drawn.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> matplotlib.use("Agg")
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> ax = caltest.plotting.plot_calibration_band(caltest.calibration_band(y_true[:500], y_prob[:500]))
    >>> ax.get_ylabel()
    'calibration function'
    """
    validate_choice(style, "style", ("classical", "deviation"))
    require(band, CalibrationBand, "band", "calibration_band")
    square = style == "classical"
    ax = single(ax, (6.4, 6.0) if square else (6.4, 4.6))
    point, lower, upper = _outline(band.score, band.lower, band.upper)
    base = 0.0 if square else point
    label = f"{percent(band.confidence_level)} confidence band, all scores together"
    ax.fill_between(point, lower - base, upper - base, color=DENSITY, linewidth=0, zorder=1, label=label)
    for edge in (lower, upper):
        ax.plot(point, edge - base, color=LINE, linewidth=0.7, zorder=2)
    _, *edges = _outline(band.score, band.test_lower, band.test_upper)
    for edge, words in zip(edges, ("band of the test", None), strict=True):
        ax.plot(point, edge - base, color=LINE, linewidth=0.9, linestyle=":", zorder=3, label=words)
    fit = band.recalibrated - (0.0 if square else band.score)
    ax.plot(band.score, fit, color=POINT, linewidth=1.3, zorder=4, label="isotonic fit")
    ax.plot([0, 1], [0, 1 if square else 0], color=LINE, zorder=3, label="calibrated", **DASHED)
    for i, (start, end) in enumerate(band.rejected_regions):
        height = [start, end] if square else [0, 0]
        label_once: dict[str, Any] = {"label": "calibration rejected"} if i == 0 else {}
        ax.plot([start, end], height, color=FINDING, linewidth=3.5, solid_capstyle="butt", zorder=5, **label_once)
    ax.set_box_aspect(1 if square else None)
    set_linear(ax.xaxis, band.score)
    ax.set_xlabel("predicted probability")
    ax.set_title(literal(decided(band.pvalue, band.alpha)))
    shown = band.score[:: -(-len(band.score) // _MOST_TICKS)]
    ax.plot(shown, np.zeros(len(shown)), transform=ax.get_xaxis_transform(), **_TICKS)
    if square:
        set_linear(ax.yaxis, band.score)
        ax.set_ylabel("calibration function")
    else:
        reach = 1.1 * max(np.abs(band.lower - band.score).max(), np.abs(band.upper - band.score).max(), 0.01)
        ax.set(ylim=(-reach, reach), ylabel="calibration function - predicted")
    if legend:
        legend_below(ax, caption=what_is_shown([band]))
    return ax


def _outline(score: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return abscissae and ends of the band; the lower end steps up after a score, the upper end before one."""
    point = np.concatenate([[0.0], np.repeat(score, 2), [1.0]])
    return point, np.repeat(np.append(0.0, lower), 2), np.repeat(np.append(upper, 1.0), 2)


_INNER = 0.3  # opacity of the inner belt


@in_one_look
def plot_giviti_belt(belt: GivitiBelt, ax: Axes | None = None, *, legend: bool = True) -> Axes:
    """Plot the GiViTI calibration belt: the fitted polynomial with its inner and outer belt.

    Where the outer belt does not contain the diagonal, the diagonal is thick.

    Parameters
    ----------
    belt : GivitiBelt
        From `caltest.hypothesis_tests.giviti_belt`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes by default. The legend is below the axes: a figure with ``layout="constrained"`` makes
        room for it.
    legend : bool
        Whether to draw the legend.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn into.

    Raises
    ------
    TypeError
        If ``belt`` is not a `GivitiBelt`.

    See Also
    --------
    caltest.hypothesis_tests.giviti_belt : Computes what is drawn.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> matplotlib.use("Agg")
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> ax = caltest.plotting.plot_giviti_belt(caltest.hypothesis_tests.giviti_belt(y_true[:500], y_prob[:500]))
    >>> ax.get_ylabel()
    'observed frequency'
    """
    require(belt, GivitiBelt, "belt", "giviti_belt")
    ax = single(ax, (6.4, 6.0))
    x = belt.prediction
    outer: dict[str, Any] = {"color": DENSITY, "label": f"{percent(belt.confidence_level)} belt"}
    inner: dict[str, Any] = {"color": LINE, "alpha": _INNER, "label": f"{percent(belt.inner_level)} belt"}
    ax.fill_between(x, belt.lower, belt.upper, linewidth=0, zorder=1, **outer)
    ax.fill_between(x, belt.inner_lower, belt.inner_upper, linewidth=0, zorder=2, **inner)
    ax.plot(x, belt.curve, color=POINT, linewidth=1.3, zorder=4, label=f"polynomial of degree {belt.selected_degree}")
    ax.plot([0, 1], [0, 1], color=LINE, zorder=3, label="calibrated", **DASHED)
    for i, run in enumerate(sorted(belt.too_low + belt.too_high)):
        label_once: dict[str, Any] = {"label": "outside the outer belt"} if i == 0 else {}
        ax.plot(run, run, color=FINDING, linewidth=3.5, solid_capstyle="butt", zorder=5, **label_once)
    ax.set_box_aspect(1)
    set_linear(ax.xaxis, x)
    set_linear(ax.yaxis, np.concatenate([x, belt.lower, belt.upper]))  # of rare events wider than the predictions
    ax.set(xlabel="predicted probability", ylabel="observed frequency")
    ax.set_title(literal(decided(belt.pvalue, belt.alpha)))
    if legend:
        legend_below(ax, caption=what_is_shown([belt]))
    return ax
