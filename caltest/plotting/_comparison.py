"""A comparison of models as a forest plot: noise, miscalibration, and the differences between pairs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caltest.comparison import ModelComparison
from caltest.plotting._axes import BAR, DASHED, LINE, POINT, literal, require, save_figure, several
from caltest.results._description import percent
from caltest.results._naming import describe

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INTERVAL = "#7d93b0"
_PANELS = 3
_NAME_WIDTH = 30  # characters of a line of a name


def plot_comparison(comparison: ModelComparison, axes: Sequence[Axes] | None = None) -> NDArray[Any]:
    r"""Plot a comparison of models as three forest plots.

    Left, the plain estimate of each model over the bar of what a calibrated model shows on the same predictions (5 % to
    95 % of the null distribution, its mean as a tick); middle, the root of the debiased squared l2 error with its
    interval. Points are filled where calibration is rejected, by the adjusted p-value. Right, the difference of each
    pair with its simultaneous interval, filled where one model is better calibrated.

    Parameters
    ----------
    comparison : ModelComparison
        From `caltest.compare_models`.
    axes : sequence of three matplotlib.axes.Axes, optional
        Where to draw; those of a new figure by default. Names are beside the first and the third: a figure with
        ``layout="constrained"`` makes room for them.

    Returns
    -------
    array of three matplotlib.axes.Axes
        What was drawn into.

    Raises
    ------
    TypeError
        If ``comparison`` is not a `ModelComparison`.
    ValueError
        If there are not three axes.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> matplotlib.use("Agg")
    >>> y_true, y_prob = caltest.datasets.load_digits_predictions()
    >>> axes = caltest.plotting.plot_comparison(caltest.compare_models(y_true, y_prob, n_resamples=99, rng=0))
    >>> [ax.get_xlabel().replace("\n", " ") for ax in axes]
    ['ECE()', 'l2 error (debiased)', 'difference of squared l2 errors (first - second)']
    """
    require(comparison, ModelComparison, "comparison", "compare_models")
    if comparison.folds:
        msg = "`comparison` has no picture of all folds; plot one of its `folds`."
        raise ValueError(msg)
    panels = several(axes, (1, _PANELS), figure_size(comparison), width_ratios=_WIDTHS)
    plain, size, pairs = panels.flat
    models, level = comparison.models, percent(comparison.confidence_level)
    names, labels = _row_names(comparison)
    rejected = np.array([model.rejected for model in models])
    noise = np.array([model.plain.noise_interval for model in models])
    _draw_bars(plain, noise, BAR, linewidth=7, alpha=0.6)
    floors = [model.plain.noise_floor for model in models]
    plain.plot(floors, range(len(models)), linestyle="none", marker="|", markersize=11, color=BAR)
    _draw_points(plain, np.array([model.plain.statistic for model in models]), rejected)
    _label(plain, names, describe(models[0].plain.test_statistic), "estimate and noise floor")
    sizes = [model.miscalibration for model in models]
    _draw_bars(size, np.array([found.root_interval for found in sizes]), _INTERVAL, linewidth=2.5)
    _draw_points(size, np.array([found.root for found in sizes]), rejected)
    _label(size, [""] * len(models), "l2 error (debiased)", f"{level} intervals")
    ends = np.array([pair.simultaneous_interval for pair in comparison.pairs])
    _draw_bars(pairs, ends, _INTERVAL, linewidth=2.5)
    decided = np.array([pair.better is not None for pair in comparison.pairs])
    _draw_points(pairs, np.array([pair.test.difference for pair in comparison.pairs]), decided)
    pairs.axvline(0, color=LINE, zorder=0, **DASHED)
    title = f"{level} intervals,\nall pairs together"
    _label(pairs, labels, "difference of squared l2 errors\n(first - second)", title)
    for ax in (plain, size):
        ax.set_xlim(left=min(0.0, 1.1 * ax.dataLim.x0))
    return panels


def save_comparison(comparison: ModelComparison, path: Path) -> None:
    """Write the picture of a comparison.

    Parameters
    ----------
    comparison : ModelComparison
        From `caltest.compare_models`.
    path : Path
        File name; its suffix decides the format.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=figure_size(comparison), layout="constrained")
    plot_comparison(comparison, figure.subplots(1, _PANELS, width_ratios=_WIDTHS))
    said = f"Filled: the adjusted p-value of calibration, or of no difference, is at most {comparison.alpha:.4g}."
    figure.supxlabel(said, fontsize="small")
    save_figure(figure, path)


_WIDTHS = (1.0, 1.0, 1.3)


def figure_size(comparison: ModelComparison) -> tuple[float, float]:
    """Return width and height in inches that leave room for every row and its name."""
    both = _row_names(comparison)
    lines = max(sum(name.count("\n") + 1 for name in names) for names in both)
    rows = max(map(len, both))
    widths = [max(len(line) for name in names for line in name.split("\n")) for names in both]
    return 7.6 + 0.09 * sum(widths), 1.8 + 0.14 * max(rows, 3) + 0.18 * max(lines, 3)


def _row_names(comparison: ModelComparison) -> tuple[list[str], list[str]]:
    """Return the names of models and of pairs, in lines that leave room for the panels."""
    names = [fill(model.name, _NAME_WIDTH) for model in comparison.models]
    labels = []
    for pair in comparison.pairs:
        label = f"{pair.a} - {pair.b}"
        parts = (label,) if len(label) <= _NAME_WIDTH else (fill(pair.a, _NAME_WIDTH), fill(f"- {pair.b}", _NAME_WIDTH))
        labels.append("\n".join(parts))
    return names, labels


def _draw_bars(ax: Axes, ends: np.ndarray, color: str, **look: Any) -> None:
    ax.hlines(np.arange(len(ends)), ends[:, 0], ends[:, 1], color=color, zorder=2, **look)


def _draw_points(ax: Axes, at: np.ndarray, filled: np.ndarray) -> None:
    rows = np.arange(len(at))
    look: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 6, "color": POINT, "zorder": 3}
    for chosen, face in ((filled, POINT), (~filled, "white")):
        ax.plot(at[chosen], rows[chosen], markerfacecolor=face, **look)


def _label(ax: Axes, names: Sequence[str], quantity: str, title: str) -> None:
    ax.set_yticks(range(len(names)), [literal(name) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)  # the first one on top
    ax.set_xlabel(quantity)
    ax.set_title(title, fontsize="medium")
    ax.margins(x=0.08)
    ax.locator_params(axis="x", nbins=4)
    ax.spines[["top", "right"]].set_visible(False)
