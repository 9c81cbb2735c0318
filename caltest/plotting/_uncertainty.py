"""Rejection curves, shift curves and the distribution of predictions, of several models and measures of uncertainty."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest.estimation.uncertainty._prediction_distribution import WORDS, PredictionDistribution
from caltest.estimation.uncertainty._rejection_curve import RejectionCurve
from caltest.estimation.uncertainty._shift_curve import ShiftCurve
from caltest.plotting._axes import (
    LINE,
    POINT,
    color_of,
    dress,
    in_one_look,
    legend_below,
    literal,
    marker_of,
    require,
    room,
    single,
)
from caltest.predictions.inputs._validation import validate_choice
from caltest.results._description import counted, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DASHES: dict[str, Any] = {
    "entropy": "-",
    "confidence": (0, (5, 2)),
    "mutual-information": (0, (6, 2, 1, 2)),
    "variance": (0, (1, 1)),
}
_WIDEST = 40  # characters of a line of the legend
_AGAINST = {"rejected": "share of the predictions that is rejected", "threshold": "threshold of the uncertainty"}
_PALE: dict[str, Any] = {"alpha": 0.15, "linewidth": 0, "zorder": 1}
_MOST_NAMED = 30  # rows that have a label
_MOST_WRITTEN = 20  # rows whose shares are written into their cells
_CELL, _BESIDE = 0.24, 2.0  # inches: width of a cell with a number, and of what stands beside the cells
_LONGEST = 24  # characters of a label


def curve_looks(curves: tuple[tuple[str, str], ...]) -> list[dict[str, Any]]:
    """Return colour, dash and label of each curve of a model and a measure of uncertainty."""
    models = list(dict.fromkeys(model for model, _ in curves))
    measures = list(dict.fromkeys(measure for _, measure in curves))
    looks = []
    for model, measure in curves:
        # A single model has a colour for each measure.
        number = models.index(model) if len(models) > 1 else measures.index(measure)
        label = ", ".join(filter(None, (model, WORDS[measure])))
        looks.append({"color": color_of(number), "linestyle": _DASHES[measure], "label": fill(label, _WIDEST)})
    return looks


@in_one_look
def plot_rejection_curve(
    curve: RejectionCurve, ax: Axes | None = None, against: str = "rejected", *, legend: bool = True, **options: Any
) -> Axes:
    """Plot the error rate of the predictions that are kept, with pointwise intervals; accuracy on the right.

    Each model has a colour, or each measure of uncertainty where there is one model. Thin dotted lines are the error
    rates that the models predict: a calibrated model is near its own. The intervals of the last few predictions that
    are kept are wide; they do not determine the scale.

    Parameters
    ----------
    curve : RejectionCurve
        From `caltest.rejection_curve`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes by default. The legend is below the axes: a figure with ``layout="constrained"`` makes
        room for it.
    against : {"rejected", "threshold"}
        The horizontal axis: share rejected, or largest uncertainty that is kept.
    legend : bool
        Whether to draw the legend.
    **options
        Passed to ``matplotlib.axes.Axes.plot`` for the lines of the error rates, such as ``linewidth=2``.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn into.

    Raises
    ------
    TypeError
        If ``curve`` is not a `RejectionCurve`.
    ValueError
        If ``against`` is unknown.

    See Also
    --------
    caltest.rejection_curve : Computes what is drawn.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> matplotlib.use("Agg")
    >>> ax = caltest.plotting.plot_rejection_curve(caltest.rejection_curve(*caltest.datasets.load_cifar10_vgg16()))
    >>> ax.get_ylabel()
    'error rate of what is kept'
    """
    validate_choice(against, "against", tuple(_AGAINST))
    require(curve, RejectionCurve, "curve", "rejection_curve")
    ax = single(ax, (6.4, 4.8))
    x, top = getattr(curve, against), 0.0
    for (model, measure), look in zip(curve.curves, curve_looks(curve.curves), strict=True):
        rows = curve.entries(model, measure)
        line: dict[str, Any] = {"linewidth": 1.6, "marker": marker_of(rows), "zorder": 4} | look | options
        (drawn,) = ax.plot(x[rows], curve.error[rows], **line)
        color = drawn.get_color()
        ax.fill_between(x[rows], curve.error_lower[rows], curve.error_upper[rows], color=color, **_PALE)
        ax.plot(x[rows], curve.predicted_error[rows], color=color, linewidth=1, linestyle=":", zorder=3)
        full = rows[curve.n_kept[rows] >= 0.1 * curve.n_samples]
        top = max(top, curve.error_upper[full].max(), curve.error[rows].max(), curve.predicted_error[rows].max())
    ax.plot([], [], color=ax.get_lines()[0].get_color(), linewidth=1, linestyle=":", label="error rate predicted")
    level = percent(curve.confidence_level)
    ax.fill_between([], [], [], color=ax.get_lines()[0].get_color(), alpha=0.15, label=f"{level} interval, pointwise")
    highest = min(1.05 * max(top, 0.01), 1.0)
    ax.set(xlabel=_AGAINST[against], ylabel="error rate of what is kept", ylim=(0.0, highest))
    ax.set_title("How many of the predictions that are kept are wrong?")
    right = ax.secondary_yaxis("right", functions=(_complement, _complement))
    right.set_ylabel("accuracy of what is kept")
    if legend:
        legend_below(ax, caption=counted(curve.n_samples))
    return ax


def _complement(share: Any) -> Any:
    return 1.0 - share


@in_one_look
def plot_shift_curve(curve: ShiftCurve, ax: Axes | None = None, *, legend: bool = True, **options: Any) -> Axes:
    """Plot the mean uncertainty of batches against their share of foreign data.

    Lines are expected values, pale areas the ranges of single batches.

    Parameters
    ----------
    curve : ShiftCurve
        From `caltest.shift_curve`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes by default. The legend is below the axes: a figure with ``layout="constrained"`` makes
        room for it.
    legend : bool
        Whether to draw the legend.
    **options
        Passed to ``matplotlib.axes.Axes.plot`` for the lines, such as ``linewidth=2``.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn into.

    Raises
    ------
    TypeError
        If ``curve`` is not a `ShiftCurve`.

    See Also
    --------
    caltest.shift_curve : Computes what is drawn.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> matplotlib.use("Agg")
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> curve = caltest.shift_curve(y_prob[:500], (y_prob[500:] + 0.1) / 2, rng=0)
    >>> caltest.plotting.plot_shift_curve(curve).get_ylabel()
    'mean uncertainty of a batch'
    """
    require(curve, ShiftCurve, "curve", "shift_curve")
    ax = single(ax, (6.4, 4.8))
    for (model, measure), look in zip(curve.curves, curve_looks(curve.curves), strict=True):
        rows = curve.entries(model, measure)
        line: dict[str, Any] = {"linewidth": 1.6, "marker": "o", "markersize": 3.5, "zorder": 4} | look | options
        (drawn,) = ax.plot(curve.share[rows], curve.mean[rows], **line)
        ax.fill_between(curve.share[rows], curve.lower[rows], curve.upper[rows], color=drawn.get_color(), **_PALE)
    level = percent(curve.confidence_level)
    words = f"{level} of batches of {curve.batch_size}"
    ax.fill_between([], [], [], color=ax.get_lines()[0].get_color(), alpha=0.15, label=words)
    ax.set(xlabel="share of foreign data", ylabel="mean uncertainty of a batch", ylim=(0.0, None))
    ax.set_title("Does foreign data make the predictions less certain?")
    if legend:
        legend_below(ax, caption=f"{counted(curve.n_home, 'prediction')} at home, {curve.n_foreign:,} foreign")
    return ax


@in_one_look
def plot_prediction_distribution(
    distribution: PredictionDistribution, ax: Axes | None = None, *, legend: bool = True, **options: Any
) -> Axes:
    """Plot how the confidence, the entropy and every class fill their cells (bins), one row each.

    The colour is the share of the predictions in the cell, on a logarithmic scale from one prediction to all; empty
    cells are white. Of few rows and cells the shares are written in per cent.

    Parameters
    ----------
    distribution : PredictionDistribution
        From `caltest.prediction_distribution`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes by default.
    legend : bool
        Whether to draw the scale of the colours.
    **options
        Passed to ``matplotlib.axes.Axes.pcolormesh``, such as ``cmap="Greys"``.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn into.

    Raises
    ------
    TypeError
        If ``distribution`` is not a `PredictionDistribution`.

    See Also
    --------
    caltest.prediction_distribution : Computes what is drawn.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> matplotlib.use("Agg")
    >>> _, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> ax = caltest.prediction_distribution(y_prob).plot()
    >>> ax.get_xlabel()
    'predicted probability, or normalised entropy (numbers: % of 10,000 observations)'
    """
    require(distribution, PredictionDistribution, "distribution", "prediction_distribution")
    from matplotlib.colors import LogNorm

    share = distribution.share
    rows, columns = share.shape
    ax = single(ax, (7.2, 1.6 + 0.27 * min(rows, _MOST_NAMED)))
    lowest = 1 / max(distribution.n_samples, 2)
    look: dict[str, Any] = {"cmap": "Blues", "norm": LogNorm(lowest, 1.0), "edgecolors": "none", "rasterized": True}
    filled = np.ma.masked_equal(share, 0.0)
    mesh = ax.pcolormesh(distribution.edges, np.arange(rows + 1), filled, **look | options)
    for row in range(1, min(rows, _MOST_NAMED)):
        ax.axhline(row, color="white", linewidth=1.5)
    ax.set_ylim(rows, 0)
    if rows <= _MOST_NAMED:
        names = [name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..." for name in distribution.quantity]
        ax.set_yticks(np.arange(rows) + 0.5, [literal(name) for name in names])
    else:
        ax.set_yticks([0.5, 1.5, rows - 0.5], ["confidence", "", f"last of {rows - 2} classes"])
    ax.tick_params(axis="y", length=0)
    wide = (room(ax)[1] - _BESIDE) / columns
    if rows <= _MOST_WRITTEN and wide >= _CELL:
        middle = (distribution.edges[:-1] + distribution.edges[1:]) / 2
        for row, column in zip(*np.nonzero(distribution.count), strict=True):
            value = share[row, column]
            dark = np.log(value) > 0.4 * np.log(lowest)
            text = f"{100 * value:.0f}" if value >= 0.095 else f"{100 * value:.1f}" if value >= 0.00095 else "·"
            ink = "white" if dark else POINT
            ax.text(middle[column], row + 0.5, text, ha="center", va="center", color=ink)
    size = counted(distribution.n_samples)
    ax.set_xlabel(f"predicted probability, or normalised entropy (numbers: % of {size})")
    ax.set_title("How are the predictions distributed?")
    if legend:
        bar = ax.figure.colorbar(mesh, ax=ax, pad=0.02, aspect=25)
        bar.set_label("share of the predictions", color=LINE)
        dress(bar.ax)
    return ax
