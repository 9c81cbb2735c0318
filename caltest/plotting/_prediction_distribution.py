"""The distribution of predictions over cells (bins): counts of the confidence and of every class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from caltest.estimation.uncertainty._prediction_distribution import PredictionDistribution
from caltest.plotting._axes import LINE, POINT, literal, require, single
from caltest.results._description import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_NAMED = 30  # rows that have a label
_MOST_WRITTEN = 20  # rows and columns whose shares are written into their cells
_LONGEST = 24  # characters of a label


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

    Examples
    --------
    >>> import caltest, matplotlib
    >>> matplotlib.use("Agg")
    >>> _, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> ax = caltest.prediction_distribution(y_prob).plot()
    >>> ax.get_xlabel()
    'predicted probability, or normalised entropy'
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
    if rows <= _MOST_WRITTEN and columns <= _MOST_WRITTEN:
        middle = (distribution.edges[:-1] + distribution.edges[1:]) / 2
        for row, column in zip(*np.nonzero(distribution.count), strict=True):
            value = share[row, column]
            dark = np.log(value) > 0.4 * np.log(lowest)
            text = f"{100 * value:.0f}" if value >= 0.095 else f"{100 * value:.1f}" if value >= 0.00095 else "·"
            ink = "white" if dark else POINT
            ax.text(middle[column], row + 0.5, text, ha="center", va="center", fontsize=8, color=ink)
    ax.set_xlabel("predicted probability, or normalised entropy")
    ax.set_title(f"share of {counted(distribution.n_samples, ',')} in each cell (bin), %", fontsize="medium")
    if legend:
        bar = ax.figure.colorbar(mesh, ax=ax, pad=0.02, aspect=25)
        bar.set_label("share of the predictions", fontsize="small", color=LINE)
        bar.ax.tick_params(labelsize="small", colors=LINE)
    return ax
