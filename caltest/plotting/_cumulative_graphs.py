"""The four cumulative calibration graphs of Gupta et al. (2020), with the bands of a calibrated model."""

from __future__ import annotations

from textwrap import fill
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.estimation.curves._cumulative_graphs import CumulativeGraph, CumulativeGraphs
from caltest.plotting._axes import (
    COLORS,
    DASHED,
    DENSITY,
    FINDING,
    LINE,
    POINT,
    TEXT,
    add_legend,
    in_one_look,
    legend_below,
    legend_entries,
    literal,
    require,
    several,
)
from caltest.predictions.inputs._validation import validate_choice
from caltest.results._decision import decided
from caltest.results._description import counted, percent

_PALER = "#e6ecf3"
_WIDEST = 90  # characters of the name of a model
_LETTER: dict[str, Any] = {"xy": (0.03, 0.97), "xycoords": "axes fraction", "va": "top", "fontweight": "bold"}


@in_one_look
def plot_cumulative_graphs(
    graphs: CumulativeGraphs | CumulativeGraph,
    axes: NDArray[Any] | None = None,
    style: str = "deviation",
    *,
    legend: bool = True,
    **options: Any,
) -> NDArray[Any]:
    """Plot the four cumulative calibration graphs of each model, one row of axes for each.

    (a) Cumulative frequency and prediction against the share of the observations; (b) the same against the cumulative
    prediction; (c) frequency and prediction against the share of the observations; (d) the same against the prediction.

    Pale areas are where a calibrated model lies: in (a) and (b) everywhere at once, in (c) and (d) at each point. A
    path that leaves its band is drawn in another colour, and the dot is its largest deviation, the KS error.

    Parameters
    ----------
    graphs : CumulativeGraphs or CumulativeGraph
        From `caltest.cumulative_graphs`, or one of its models.
    axes : array of matplotlib.axes.Axes, optional
        Where to draw, four for each model; those of a new figure by default.
    style : {"deviation", "classical"}
        Frequency minus prediction, in which the bands can be seen with any number of observations; or both of them, as
        in the paper.
    legend : bool
        Whether to draw the legend, below a new figure or below the last row of the caller's axes.
    **options
        Passed to ``matplotlib.axes.Axes.plot`` for the lines of the frequencies, such as ``linewidth=2``.

    Returns
    -------
    array of matplotlib.axes.Axes
        What was drawn into: shape (4,) for one model, (n_models, 4) for several.

    Raises
    ------
    TypeError
        If ``graphs`` are not from `cumulative_graphs`.
    ValueError
        If ``style`` is unknown, or there are not four axes for each model.

    See Also
    --------
    caltest.cumulative_graphs : Computes what is drawn.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> matplotlib.use("Agg")
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> axes = caltest.plotting.plot_cumulative_graphs(caltest.cumulative_graphs(y_true, y_prob, rng=0))
    >>> [ax.get_xlabel() for ax in axes]
    ['share of observations', 'cumulative prediction', 'share of observations', 'predicted probability']
    """
    validate_choice(style, "style", ("deviation", "classical"))
    models = (graphs,) if isinstance(graphs, CumulativeGraph) else getattr(graphs, "models", ())
    if not models:
        require(graphs, CumulativeGraphs, "graphs", "cumulative_graphs")
    grid = several(axes, (len(models), 4), (13.0, 0.7 + 3.0 * len(models)))
    rows = np.asarray(grid).reshape(len(models), 4)
    caption = ", ".join(dict.fromkeys(counted(model.n_samples) for model in models))
    if isinstance(graphs, CumulativeGraphs):
        caption = f"{graphs.lens_name}, {caption}"
    for row, model in zip(rows, models, strict=True):
        _draw_model(model, row, style, options)
        name = fill(model.name, _WIDEST) + "\n" if model.name else ""
        said = decided(model.pvalue, model.alpha, n_expected=model.n_expected)
        title = f"{name}{said} KS error {model.statistic:.3g}"
        row[0].set_title(literal(title), loc="left", fontsize=TEXT)
    if legend and axes is None:
        add_legend(rows, new=True, ncols=4, caption=caption)
    elif legend:  # below the lowest row: paths and bands fill the small axes of the caller
        for columns in (slice(0, 2), slice(2, 4)):
            entries = legend_entries(rows[:, columns].flat)
            shown = caption if columns.start == 0 else ""
            legend_below(rows[-1, columns][0], entries=entries, caption=shown)
    return grid


def _draw_model(model: CumulativeGraph, row: NDArray[Any], style: str, options: dict[str, Any]) -> None:
    """Draw the four graphs of a model."""
    deviation, level = style == "deviation", percent(1 - model.alpha)
    color = FINDING if model.rejected else POINT
    look: dict[str, Any] = {"linewidth": 1.4, "zorder": 4} | options
    path = {"color": color, "label": "observed, leaves its band" if model.rejected else "observed, inside its band"}
    spline = {"color": COLORS[1], "label": "frequency, by a spline"}
    # Observed sums are no less than 0, and no more than the share of the observations.
    low = np.maximum(model.lower, 0.0)
    high = np.minimum(model.upper, model.fractile)
    sums = (model.predicted, low, high, model.observed)
    frequencies = (model.score, model.frequency_lower, model.frequency_upper, model.frequency)
    everywhere = {"color": DENSITY, "label": f"{level} band if calibrated, everywhere at once"}
    pointwise = {"color": _PALER, "label": f"{level} band if calibrated, at each point"}
    for ax, letter, x, xlabel, what, lines, band, own in (
        (row[0], "a", model.fractile, "share of observations", "cumulative share of events", sums, everywhere, path),
        (row[1], "b", model.predicted, "cumulative prediction", "cumulative share of events", sums, everywhere, path),
        (row[2], "c", model.grid, "share of observations", "frequency of the event", frequencies, pointwise, spline),
        (row[3], "d", model.score, "predicted probability", "frequency of the event", frequencies, pointwise, spline),
    ):
        predicted, lower, upper, observed = (line - lines[0] if deviation else line for line in lines)
        ax.fill_between(x, lower, upper, linewidth=0, zorder=1, **band)
        ax.locator_params(axis="x", nbins=4)  # numbers of small probabilities are long
        ax.plot(x, predicted, color=LINE, zorder=2, label="predicted", **DASHED)
        ax.plot(x, observed, **look | own)
        if own is path:
            ax.plot(x[model.worst], observed[model.worst], marker="o", markersize=5, color=color, zorder=5)
        ax.annotate(f"({letter})", **_LETTER)
        ax.set_xlabel(xlabel)
        if letter in "ac":  # that of (b) is the same as in (a), and that of (d) as in (c)
            ax.set_ylabel(f"{what}\nobserved - predicted" if deviation else what)
        ax.margins(x=0.02, y=0.2)  # room for the letter
