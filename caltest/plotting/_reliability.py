"""The reliability diagram in both styles of figure 4 of Vaicenavicius et al. (2019)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest.estimation._cell_tests import CellTests
from caltest.estimation._reliability_curve import ReliabilityCurve
from caltest.predictions._validation import validate_choice

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINT = "#101418"
BAR = "#d9643a"
DENSITY = "#c3d2e3"
LINE = "#5a6470"
_WORDS = {
    "consistency": ("observed, inside its bar", "observed, outside its bar"),
    "confidence": ("observed, its bar holds the diagonal", "observed, its bar misses the diagonal"),
}


def plot_reliability(
    curve: ReliabilityCurve,
    ax: Axes | None = None,
    style: str = "deviation",
    *,
    tests: CellTests | None = None,
    legend: bool = True,
) -> Axes:
    """Draw a reliability curve.

    Points are observed frequencies, filled where their bar speaks against calibration; bars are the quantiles under
    calibration (or confidence intervals); the pale columns at the foot are the distribution of the predictions. Stars
    are the cells that carry the evidence once all cells are accounted for, if ``tests`` are given. Cells with less than
    1 % of the rows do not set the scale of deviations: what leaves it is an arrow head at the edge, a large one instead
    of a star.

    Parameters
    ----------
    curve : ReliabilityCurve
        From `caltest.reliability_curve`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default. The legend stands below the axes: give your figure
        ``layout="constrained"`` to make room for it. Nothing else is touched.
    style : {"deviation", "classical"}
        Frequency minus prediction against prediction, as the paper prefers; or frequency against prediction, with
        square axes.
    tests : CellTests, optional
        From ``curve.cell_tests()``: rejected cells become stars.
    legend : bool
        Whether to draw the legend, which among small subplots is better drawn once.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.

    Raises
    ------
    ValueError
        If ``style`` is neither of the two, ``curve`` is no `ReliabilityCurve`, or ``tests`` are not of its cells.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> matplotlib.use("Agg")
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> ax = caltest.plot_reliability(caltest.reliability_curve(y_true, y_prob))
    >>> ax.get_ylabel()
    'observed - predicted'
    """
    validate_choice(style, "style", ("deviation", "classical"))
    if not isinstance(curve, ReliabilityCurve):
        msg = f"`curve` must be a ReliabilityCurve from reliability_curve(...), got {type(curve).__name__}."
        raise ValueError(msg)
    _check_tests(tests, curve)
    if ax is None:
        from matplotlib import pyplot as plt

        _, ax = plt.subplots(figsize=(5.2, 5.2) if style == "classical" else (6.4, 4.4), layout="constrained")
    base = curve.expected if style == "deviation" else np.zeros(curve.n_cells)
    _draw_density(curve, ax, square=style == "classical")
    _draw_cells(curve, tests, ax, base, np.inf if style == "classical" else 0.96 * _reach(curve))
    ax.set_xlim(-0.02, 1.02)
    ax.set_xlabel("predicted probability")
    ax.set_title(f"{curve.lens}, {curve.count.sum():,} rows", fontsize="medium")
    if style == "classical":
        ax.plot([0, 1], [0, 1], color=LINE, linewidth=1, linestyle=(0, (4, 3)), zorder=2, label="calibrated")
        ax.set_ylim(-0.02, 1.02)
        ax.set_ylabel("observed frequency")
        ax.set_box_aspect(1)
    else:
        ax.axhline(0, color=LINE, linewidth=1, linestyle=(0, (4, 3)), zorder=2, label="calibrated")
        reach = _reach(curve)
        ax.set_ylim(-reach, reach)
        ax.set_ylabel("observed - predicted")
    if legend:  # below the axes: bars reach everywhere inside
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, fontsize="small", frameon=False)
    return ax


def save_reliability(curve: ReliabilityCurve, path: Path) -> None:
    """Write a picture with both styles side by side, and what may be said about its bars.

    Parameters
    ----------
    curve : ReliabilityCurve
        From `caltest.reliability_curve`.
    path : Path
        File name; its suffix decides the format.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.25, 1])
    tests = curve.cell_tests()
    plot_reliability(curve, left, tests=tests)
    plot_reliability(curve, right, style="classical", tests=tests)
    figure.supxlabel(curve.reading, fontsize="small")
    figure.savefig(path, dpi=150)


def picture_formats() -> set[str]:
    """Return the suffixes of the pictures that can be written, without the dot."""
    from matplotlib.backend_bases import FigureCanvasBase

    return set(FigureCanvasBase.get_supported_filetypes())


def _bar_ends(curve: ReliabilityCurve) -> np.ndarray:
    return np.stack([curve.bar_low, curve.bar_high])


def _reach(curve: ReliabilityCurve) -> float:
    """Return the largest deviation shown: cells with less than 1 % of the rows do not set the scale."""
    full = curve.count >= min(0.01 * curve.count.sum(), curve.count.max())
    ends = np.abs(_bar_ends(curve) - curve.expected)
    return 1.2 * max(np.abs(curve.deviation[full]).max(), ends[:, full].max(), 0.01)


def _check_tests(tests: Any, curve: ReliabilityCurve) -> None:
    if tests is None or (isinstance(tests, CellTests) and np.array_equal(tests.pvalue, curve.pvalue)):
        return
    msg = f"`tests` must be the cell_tests(...) of this curve, got {type(tests).__name__}."
    raise ValueError(msg)


def _draw_cells(curve: ReliabilityCurve, tests: CellTests | None, ax: Axes, base: np.ndarray, limit: float) -> None:
    """Draw bars and points as heights above ``base (n_cells,)``; points beyond the limit become arrow heads at it."""
    low, high = _bar_ends(curve) - base
    whole = ", all cells at once" if curve.simultaneous else ""
    bars = f"{curve.confidence_level:.0%} {curve.bars} bars{whole}"
    ax.vlines(curve.predicted, low, high, color=BAR, linewidth=5, alpha=0.75, zorder=3, label=bars)
    for end in (low, high):  # caps keep a bar visible that is shorter than a pixel
        ax.plot(curve.predicted, end, linestyle="none", marker="_", markersize=9, color=BAR, zorder=3)
    hit, miss = _WORDS[curve.bars]
    marked = np.zeros(curve.n_cells, dtype=bool) if tests is None else tests.rejected
    points = [(curve.outside & ~marked, "o", 5.5, POINT, miss), (~curve.outside & ~marked, "o", 5.5, "white", hit)]
    if tests is not None:
        found = f"carries evidence: corrected p ≤ {tests.level:.4g} ({tests.correction})"
        points.insert(0, (marked, "*", 11, POINT, found))
    height = curve.observed - base
    for chosen, shape, size, face, label in points:
        look: dict[str, Any] = {"linestyle": "none", "markersize": size, "color": POINT, "markerfacecolor": face}
        shown = chosen & (np.abs(height) <= limit)
        if chosen.any():
            ax.plot(curve.predicted[shown], height[shown], marker=shape, zorder=4, label=label, **look)
        for marker, beyond, edge in (("^", height > limit, limit), ("v", height < -limit, -limit)):
            at = curve.predicted[chosen & beyond]
            if at.size:
                ax.plot(at, np.full(at.size, edge), marker=marker, zorder=4, **look)


def _draw_density(curve: ReliabilityCurve, ax: Axes, *, square: bool) -> None:
    """Draw the distribution of the predictions behind everything, in the lowest quarter, with its own scale."""
    foot = ax.twinx()
    foot.bar(curve.density_edges[:-1], curve.density, width=np.diff(curve.density_edges), align="edge", color=DENSITY)
    top = curve.density.max()
    foot.set_ylim(0, 4 * top)
    foot.set_yticks([0, top], ["0", f"{top:.0%}"])
    foot.tick_params(labelsize="small", colors=LINE)
    foot.set_ylabel("share of rows", loc="bottom", color=LINE, fontsize="small")
    ax.set_zorder(foot.get_zorder() + 1)
    ax.patch.set_visible(False)
    if square:
        foot.set_box_aspect(1)
