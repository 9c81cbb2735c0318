"""Rejection curves and shift curves of several models and measures of uncertainty."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

from caltest.estimation.uncertainty._prediction_distribution import WORDS
from caltest.estimation.uncertainty._rejection_curve import RejectionCurve
from caltest.estimation.uncertainty._shift_curve import ShiftCurve
from caltest.plotting._axes import COLORS, legend_below, require, single
from caltest.predictions.inputs._validation import validate_choice
from caltest.results._description import counted, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DASHES: dict[str, Any] = {"entropy": "-", "confidence": (0, (5, 2))}
_WIDEST = 40  # characters of a line of the legend
_AGAINST = {"rejected": "share of the predictions that is rejected", "threshold": "threshold of the uncertainty"}
_PALE: dict[str, Any] = {"alpha": 0.15, "linewidth": 0, "zorder": 1}


def curve_looks(curves: tuple[tuple[str, str], ...]) -> list[dict[str, Any]]:
    """Return colour, dash and label of each curve of a model and a measure of uncertainty."""
    models = list(dict.fromkeys(model for model, _ in curves))
    measures = list(dict.fromkeys(measure for _, measure in curves))
    looks = []
    for model, measure in curves:
        # A single model has a colour for each measure.
        number = models.index(model) if len(models) > 1 else (0, 2)[measures.index(measure)]
        label = ", ".join(filter(None, (model, WORDS[measure])))
        color = COLORS[number % len(COLORS)]
        looks.append({"color": color, "linestyle": _DASHES[measure], "label": fill(label, _WIDEST)})
    return looks


def plot_rejection_curve(
    curve: RejectionCurve,
    ax: Axes | None = None,
    against: str = "rejected",
    *,
    legend: bool = True,
    **options: Any,
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
        marker = "o" if len(rows) == 1 else ""
        line: dict[str, Any] = {"linewidth": 1.6, "marker": marker, "zorder": 4} | look | options
        (drawn,) = ax.plot(x[rows], curve.error[rows], **line)
        color = drawn.get_color()
        ax.fill_between(x[rows], curve.error_lower[rows], curve.error_upper[rows], color=color, **_PALE)
        ax.plot(x[rows], curve.predicted_error[rows], color=color, linewidth=1, linestyle=":", zorder=3)
        full = rows[curve.n_kept[rows] >= 0.1 * curve.n_samples]
        top = max(top, curve.error_upper[full].max(), curve.error[rows].max(), curve.predicted_error[rows].max())
    ax.plot([], [], color=ax.get_lines()[0].get_color(), linewidth=1, linestyle=":", label="error rate predicted")
    level = percent(curve.confidence_level)
    ax.fill_between([], [], [], color=ax.get_lines()[0].get_color(), alpha=0.15, label=f"{level} interval, pointwise")
    ax.set_xlabel(_AGAINST[against])
    ax.set_ylabel("error rate of what is kept")
    ax.set_ylim(0.0, min(1.05 * max(top, 0.01), 1.0))
    ax.set_title(counted(curve.n_samples, ","), fontsize="medium")
    right = ax.secondary_yaxis("right", functions=(_complement, _complement))
    right.set_ylabel("accuracy of what is kept")
    if legend:
        legend_below(ax)
    return ax


def _complement(share: Any) -> Any:
    return 1.0 - share


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
    ax.set_title(f"{curve.n_home:,} predictions at home, {curve.n_foreign:,} foreign", fontsize="medium")
    if legend:
        legend_below(ax)
    return ax
