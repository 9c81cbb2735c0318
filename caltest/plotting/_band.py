"""The simultaneous band of a non-decreasing calibration function, in the two styles of the reliability diagram."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from caltest.estimation.curves._calibration_band import CalibrationBand
from caltest.plotting._axes import BAR, DASHED, DENSITY, LINE, POINT, legend_below, literal, require, single
from caltest.predictions.inputs._validation import validate_choice
from caltest.results._decision import equate_pvalue
from caltest.results._description import counted, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_TICKS = 200
_TICKS: dict[str, Any] = {"linestyle": "none", "marker": "|", "markersize": 7, "color": LINE, "clip_on": False}


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
    ax = single(ax, (5.2, 5.9) if square else (6.4, 4.6))
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
        ax.plot([start, end], height, color=BAR, linewidth=3.5, solid_capstyle="butt", zorder=5, **label_once)
    ax.set(xlim=(-0.02, 1.02), xlabel="predicted probability")
    title = f"{band.lens_name}, {counted(band.n_samples, ',')}, {equate_pvalue(band.pvalue)}"
    ax.set_title(literal(title), fontsize="medium")
    shown = band.score[:: -(-len(band.score) // _MOST_TICKS)]
    ax.plot(shown, np.zeros(len(shown)), transform=ax.get_xaxis_transform(), **_TICKS)
    if square:
        ax.set(ylim=(-0.02, 1.02), ylabel="calibration function", box_aspect=1)
    else:
        reach = 1.1 * max(np.abs(band.lower - band.score).max(), np.abs(band.upper - band.score).max(), 0.01)
        ax.set(ylim=(-reach, reach), ylabel="calibration function - predicted")
    if legend:
        legend_below(ax)
    return ax


def _outline(score: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return abscissae and ends of the band; the lower end steps up after a score, the upper end before one."""
    point = np.concatenate([[0.0], np.repeat(score, 2), [1.0]])
    return point, np.repeat(np.append(0.0, lower), 2), np.repeat(np.append(upper, 1.0), 2)
