"""Errors against temperature or number of cells, with noise floors: figures 1 and 5 to 8 of Laves et al. (2020)."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caltest.estimation.curves._cells_curve import CellsCurve, ErrorCurve
from caltest.estimation.curves._temperature_curve import TemperatureCurve
from caltest.plotting._axes import (
    DASHED,
    LINE,
    STAR,
    add_legend,
    color_of,
    in_one_look,
    literal,
    marker_of,
    plain_logarithmic,
    require,
    wrapped,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PANEL = (3.9, 3.2)
_WIDEST = 40  # characters of a line of the legend


@in_one_look
def plot_temperature_curve(
    curve: TemperatureCurve, axes: NDArray[Any] | None = None, *, legend: bool = True, **options: Any
) -> NDArray[Any]:
    r"""Plot errors against the softmax temperature, a panel for each statistic, and the negative log-likelihood.

    Each model has a colour. Stars are the smallest values. Dashed lines are the noise floors, and the pale areas reach
    up to what 95 % of calibrated models have: an error above shows miscalibration at this temperature. The last panel
    is the negative log-likelihood, unless it is one of the statistics ("log").

    Parameters
    ----------
    curve : TemperatureCurve
        From `caltest.temperature_curve`.
    axes : array of matplotlib.axes.Axes, optional
        Where to draw, one for each panel; those of a new figure by default.
    legend : bool
        Whether to draw the legend.
    **options
        Passed to ``matplotlib.axes.Axes.plot`` for the lines of the errors, such as ``linewidth=2``.

    Returns
    -------
    array of matplotlib.axes.Axes
        What was drawn into, ``(n_panels,)``.

    Raises
    ------
    TypeError
        If ``curve`` is not a `TemperatureCurve`.
    ValueError
        If there are too few or too many axes.

    See Also
    --------
    caltest.temperature_curve : Computes what is drawn.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> matplotlib.use("Agg")
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> curve = caltest.temperature_curve(y_true, y_prob, temperatures=[0.5, 1, 1.5, 2, 3], rng=0)
    >>> [ax.get_ylabel().replace("\n", " ") for ax in caltest.plotting.plot_temperature_curve(curve)]
    ['average error of the confidence', 'average error of the uncertainty', 'negative log-likelihood']
    """
    require(curve, TemperatureCurve, "curve", "temperature_curve")
    n_statistics = len(curve.statistics)
    grid = _panels(axes, n_statistics + ("log score" not in curve.statistics))
    _draw_errors(curve, grid[:n_statistics], options)
    x = curve.temperature
    for values, places, ax in zip(
        [*curve.value, curve.log_score], [*curve.best, curve.best_log_score], grid, strict=False
    ):
        for m, at in enumerate(places):
            if np.isfinite(values[m, at]):
                ax.plot(x[at], values[m, at], color=color_of(m), **STAR)
        if not np.isfinite(values).all():
            above = {"xycoords": "axes fraction", "va": "top", "color": LINE}
            ax.annotate("infinite: a label had probability 0", (0.04, 0.97), **above)
    for ax in grid[n_statistics:]:
        _draw_values(ax, curve, curve.log_score, options)
        ax.set_ylabel("negative log-likelihood")
    for ax in grid:
        _logarithmic(ax, x, "softmax temperature")
        if x[0] < 1 < x[-1]:
            ax.axvline(1.0, color=LINE, linewidth=0.8, linestyle=":", zorder=1)
    grid[0].plot([], [], color=LINE, label="smallest value", **STAR)
    if legend:
        add_legend(grid, new=axes is None)
    return grid


@in_one_look
def plot_cells_curve(
    curve: CellsCurve, axes: NDArray[Any] | None = None, *, legend: bool = True, **options: Any
) -> NDArray[Any]:
    r"""Plot binned errors against the number of cells (bins), a panel for each statistic.

    Each model has a colour. Dashed lines are the noise floors, and the pale areas reach up to what 95 % of calibrated
    models have: an error above shows miscalibration.

    Parameters
    ----------
    curve : CellsCurve
        From `caltest.cells_curve`.
    axes : array of matplotlib.axes.Axes, optional
        Where to draw, one for each statistic; those of a new figure by default.
    legend : bool
        Whether to draw the legend.
    **options
        Passed to ``matplotlib.axes.Axes.plot`` for the lines of the errors, such as ``linewidth=2``.

    Returns
    -------
    array of matplotlib.axes.Axes
        What was drawn into, ``(n_statistics,)``.

    Raises
    ------
    TypeError
        If ``curve`` is not a `CellsCurve`.
    ValueError
        If there are too few or too many axes.

    See Also
    --------
    caltest.cells_curve : Computes what is drawn.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> matplotlib.use("Agg")
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> axes = caltest.plotting.plot_cells_curve(caltest.cells_curve(y_true, y_prob, n_cells=[5, 15, 45], rng=0))
    >>> [ax.get_ylabel().replace("\n", " ") for ax in axes[::2]]
    ['general calibration error (ECE)', 'average error of the uncertainty (UCE)']
    """
    require(curve, CellsCurve, "curve", "cells_curve")
    grid = _panels(axes, len(curve.statistics))
    _draw_errors(curve, grid, options)
    for ax in grid:
        _logarithmic(ax, curve.n_cells, "number of cells (bins)")
    if legend:
        add_legend(grid, new=axes is None)
    return grid


def _panels(axes: Any, n_panels: int) -> NDArray[Any]:
    return np.ravel(wrapped(axes, n_panels, 3, _PANEL, 0.7, sharey=False))  # errors have different units


def _draw_errors(curve: ErrorCurve, grid: NDArray[Any], options: dict[str, Any]) -> None:
    x = curve.points
    for s, (ax, quantity) in enumerate(zip(grid, curve.quantities, strict=True)):
        _draw_values(ax, curve, curve.value[s], options)
        for m, (floor, upper) in enumerate(zip(curve.floor[s], curve.floor_upper[s], strict=True)):
            ax.plot(x, floor, color=color_of(m), marker=marker_of(x), zorder=3, **DASHED)
            ax.fill_between(x, 0.0, upper, color=color_of(m), alpha=0.12, linewidth=0, zorder=1)
        ax.set(ylabel=literal(quantity), ylim=(0.0, None))
    grid[0].plot([], [], color=LINE, label="noise floor", **DASHED)
    grid[0].fill_between([], [], [], color=LINE, alpha=0.2, label="95 % of calibrated models")


def _draw_values(ax: Axes, curve: ErrorCurve, values: NDArray[Any], options: dict[str, Any]) -> None:
    """Draw values of each model ``(n_models, n_points)``, with gaps where they are infinite."""
    x = curve.points
    for m, (model, shown) in enumerate(zip(curve.models, np.where(np.isfinite(values), values, np.nan), strict=True)):
        line: dict[str, Any] = {"linewidth": 1.6, "color": color_of(m), "zorder": 4} | options
        ax.plot(x, shown, marker=marker_of(x), label=literal(fill(model or "observed", _WIDEST)), **line)


def _logarithmic(ax: Axes, x: NDArray[Any], xlabel: str) -> None:
    """Make the horizontal axis logarithmic, from the first to the last of its values."""
    ax.set(xscale="log", xlim=(x[0] / 1.1, x[-1] * 1.1), xlabel=xlabel)
    plain_logarithmic(ax.xaxis, (1, 2, 5))
