"""The reliability diagram, in both styles of figure 4 of Vaicenavicius et al. (2019)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest.estimation.curves._reliability_curve import ReliabilityCurve
from caltest.estimation.errors._cell_tests import CellTests
from caltest.plotting._axes import BAR, LINE, NAME_WIDTH, colors_of, literal, named, save_drawn, single
from caltest.plotting._prediction_axis import Array, PredictionAxis, finish
from caltest.predictions.inputs._validation import validate_choice
from caltest.results._description import counted, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WORDS = {
    "consistency": ("observed, inside its bar", "observed, outside its bar"),
    "confidence": ("observed, its bar contains the diagonal", "observed, its bar misses the diagonal"),
}
Ends = tuple[float, float]
_CAPTION = 150  # characters of a line
_TITLE = 44  # the same of a title, which is as wide as the narrower of two diagrams


def plot_reliability(
    curve: ReliabilityCurve | Mapping[str, ReliabilityCurve],
    ax: Axes | None = None,
    style: str = "deviation",
    *,
    scale: str | None = None,
    tests: CellTests | Mapping[str, CellTests] | None = None,
    histogram: bool = True,
    legend: bool = True,
    **options: Any,
) -> Axes:
    """Plot a reliability diagram with consistency or confidence bars, of one model or of several in the same axes.

    Points are observed frequencies, filled where the bar is evidence against calibration; bars are the quantiles under
    calibration, or confidence intervals. The panel below is the distribution of the predictions. If ``tests`` are
    given, the cells (bins) that they reject are stars. Several models have one colour each, and the legend has their
    errors with their noise floors.

    Cells with less than 1 % of the observations do not determine the scale of deviations if they would more than
    treble it: points and bars that reach beyond it end in arrow heads at the edge, large ones instead of stars.

    Parameters
    ----------
    curve : ReliabilityCurve or mapping of str to ReliabilityCurve
        From `caltest.reliability_curve`; of several models by their names.
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes by default. Histogram and legend are below the axes: a figure with
        ``layout="constrained"`` makes room for them.
    style : {"deviation", "classical"}
        Frequency minus prediction against prediction, as the paper prefers; or frequency against prediction, with
        square axes.
    scale : {"linear", "logit", "equal-mass"}, optional
        Scale of the predictions, which the label of the axis names; with the logit scale and square axes that of the
        frequencies too. By default it is chosen from the predictions: logit if more than half of them are below 0.05
        or above 0.95, where a linear scale cannot show them apart; otherwise equal-mass if more than half of them lie
        in one of 20 intervals of equal width; otherwise linear. The logit scale has finite ends, so that 0 and 1 have
        their place.
    tests : CellTests, or mapping of str to CellTests, optional
        From ``curve.cell_tests()``, of several models by their names: rejected cells become stars.
    histogram : bool
        Whether to draw the distribution of the predictions below, of several models as outlines. There is none on the
        equal-mass scale, on which all its columns would be equal.
    legend : bool
        Whether to draw the legend.
    **options
        Passed to ``matplotlib.axes.Axes.plot`` for the points, such as ``markersize=4``.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn into; the panel of the histogram is its ``child_axes[0]``.

    Raises
    ------
    TypeError
        If ``curve`` is not a `ReliabilityCurve` or a mapping of names to such, or ``tests`` are no `CellTests`.
    ValueError
        If there is no curve, ``style`` or ``scale`` is unknown, or ``tests`` are not those of this curve.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> matplotlib.use("Agg")
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> ax = caltest.plotting.plot_reliability(caltest.reliability_curve(y_true, y_prob))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('predicted probability (logit scale)', 'observed - predicted')
    """
    validate_choice(style, "style", ("deviation", "classical"))
    curves = named(curve, ReliabilityCurve, "curve", "reliability_curve")
    stars = _check_tests(tests, curves)
    square = style == "classical"
    each, alone = list(curves.values()), len(curves) == 1
    labels = {name: None if alone else _model_label(name, one) for name, one in curves.items()}
    lines = sum(label.count("\n") + 1 for label in labels.values() if label is not None)
    ax = single(ax, (5.4, 7.0 + 0.2 * lines) if square else (6.4, 5.2 + 0.1 * lines))
    heights = [end for one in each for end in (one.observed, one.bar_lower, one.bar_upper)] if square else []
    axis = PredictionAxis.of(
        scale, {name: one.density for name, one in curves.items()}, [*(one.predicted for one in each), *heights]
    )
    reach = None if square else _reach(each)
    limits = (-np.inf, np.inf) if reach is None else (0.96 * reach[0], 0.96 * reach[1])
    colors = colors_of(len(each))
    for (name, one), color in zip(curves.items(), colors, strict=True):
        base = np.zeros(one.n_cells) if square else one.expected
        _draw_bars(one, ax, base, limits, color=BAR if alone else color, alone=alone)
        _draw_points(one, stars.get(name), ax, base, limits, color=color, label=labels[name], options=options)
    if not alone:
        _explain(each, ax, stars)
    finish(axis, ax, colors, _title(each), reach, histogram=histogram, legend=legend)
    return ax


def draw_both_styles(figure: Figure, curve: ReliabilityCurve | Mapping[str, ReliabilityCurve]) -> None:
    """Draw a reliability diagram, of one model or of several, as deviations and as frequencies."""
    left, right = figure.subplots(1, 2, width_ratios=[1.25, 1])
    curves: dict[str, ReliabilityCurve] = named(curve, ReliabilityCurve, "curve", "reliability_curve")
    tests = {name: one.cell_tests() for name, one in curves.items()}
    plot_reliability(curve, left, tests=tests)
    plot_reliability(curve, right, style="classical", tests=tests, legend=len(curves) == 1)


def save_reliability(curve: ReliabilityCurve, path: Path) -> None:
    """Write a picture with both styles side by side and the conclusion of the curve.

    Parameters
    ----------
    curve : ReliabilityCurve
        From `caltest.reliability_curve`.
    path : Path
        File name; its suffix decides the format.
    """
    caption = fill(curve.conclusion, _CAPTION)
    save_drawn(lambda figure: draw_both_styles(figure, curve), (11, 6.2), caption, path)


def picture_formats() -> set[str]:
    """Return the suffixes of the pictures that can be written, without the dot."""
    from matplotlib.backend_bases import FigureCanvasBase

    return set(FigureCanvasBase.get_supported_filetypes()) - {"pgf"}  # LaTeX, with further files beside it


def _title(curves: Sequence[ReliabilityCurve]) -> str:
    """Return lens and number of observations, and of a single model its error."""
    lenses = dict.fromkeys(curve.lens_name for curve in curves)
    sizes = dict.fromkeys(int(curve.count.sum()) for curve in curves)
    lens = next(iter(lenses)) if len(lenses) == 1 else "several lenses"
    size = counted(next(iter(sizes)), ",") if len(sizes) == 1 else "different numbers of observations"
    what = fill(f"{lens}, {size}", _TITLE)
    return what if len(curves) > 1 else f"{what}\n{_error(curves[0])}"


def _error(curve: ReliabilityCurve) -> str:
    return f"ECE {curve.error:.3g} (noise floor {curve.noise_floor:.2g})"


def _model_label(name: str, curve: ReliabilityCurve) -> str:
    return literal(f"{fill(name, NAME_WIDTH)}\n{_error(curve)}")


def _reach(curves: Sequence[ReliabilityCurve]) -> Ends:
    """Return the smallest and largest deviation shown.

    Cells with few observations do not determine them if they would treble the extent.
    """
    dense, every = np.zeros(2), np.zeros(2)
    for curve in curves:
        full = curve.count >= min(0.01 * curve.count.sum(), curve.count.max())
        above = np.maximum(curve.deviation, curve.bar_upper - curve.expected)
        below = np.minimum(curve.deviation, curve.bar_lower - curve.expected)
        for ends, chosen in ((dense, full), (every, slice(None))):
            ends[:] = min(ends[0], below[chosen].min()), max(ends[1], above[chosen].max())
    low, high = 1.2 * (every if np.abs(every).max() <= 3 * np.abs(dense).max() else dense)
    least = max(0.3 * max(-low, high), 0.002)
    return min(low, -least), max(high, least)


def _check_tests(tests: Any, curves: Mapping[str, ReliabilityCurve]) -> dict[str, CellTests]:
    """Return the tests of the cells by the name of the model."""
    if tests is None:
        return {}
    given = dict(tests) if isinstance(tests, Mapping) else dict.fromkeys([*curves][:1], tests)
    for name, one in given.items():
        msg = f"`tests` must be the cell_tests(...) of this curve, got {type(one).__name__}."
        if not isinstance(one, CellTests):
            raise TypeError(msg)
        if name not in curves or not np.array_equal(one.pvalue, curves[name].pvalue):
            raise ValueError(msg)
    return given


def _bars_label(curve: ReliabilityCurve) -> str:
    together = ", all cells together" if curve.simultaneous else ""
    return f"{percent(curve.confidence_level)} {curve.bars} bars{together}"


def _stars_label(tests: CellTests) -> str:
    return f"rejected: {tests.correction.title()}-adjusted p ≤ {tests.alpha:.4g}"


def _draw_bars(curve: ReliabilityCurve, ax: Axes, base: Array, limits: Ends, *, color: str, alone: bool) -> None:
    """Draw bars minus ``base``, frequencies or deviations; what is beyond the limits ends in an arrow head."""
    low, high = curve.bar_lower - base, curve.bar_upper - base
    width, alpha, label = (5, 0.75, _bars_label(curve)) if alone else (3.5, 0.35, "_bars")
    look: dict[str, Any] = {"color": color, "zorder": 3}
    ends = np.clip(low, *limits), np.clip(high, *limits)
    ax.vlines(curve.predicted, *ends, linewidth=width, alpha=alpha, label=label, **look)
    look |= {"linestyle": "none", "markersize": 9 if alone else 6, "alpha": 1.0 if alone else 0.6}
    for end, cut, limit, arrow in ((low, low < limits[0], limits[0], "v"), (high, high > limits[1], limits[1], "^")):
        # Caps keep a bar visible that is shorter than a pixel; an arrow head instead says that a bar goes on.
        ax.plot(curve.predicted[~cut], end[~cut], marker="_", **look)
        if cut.any():
            place = np.full(cut.sum(), limit)
            ax.plot(curve.predicted[cut], place, marker=arrow, **look | {"markersize": 6, "clip_on": False})


def _draw_points(
    curve: ReliabilityCurve,
    tests: CellTests | None,
    ax: Axes,
    base: Array,
    limits: Ends,
    *,
    color: str,
    label: str | None,
    options: dict[str, Any],
) -> None:
    """Draw frequencies minus ``base``; with a ``label`` of the model they have one entry in the legend."""
    height, marked = curve.observed - base, np.zeros(curve.n_cells, dtype=bool) if tests is None else tests.rejected
    hit, miss = _WORDS[curve.bars]
    kinds = [(curve.outside & ~marked, miss, "o", 5.5, color), (~curve.outside & ~marked, hit, "o", 5.5, "white")]
    if tests is not None:
        kinds.insert(0, (marked, _stars_label(tests), "*", 11, color))
    entry = label
    for chosen, words, marker, size, face in kinds:
        if not chosen.any():
            continue
        shown = chosen & (height >= limits[0]) & (height <= limits[1])
        look: dict[str, Any] = {"linestyle": "none", "markersize": size, "color": color, "markerfacecolor": face}
        look = look | {"zorder": 4} | options
        own = {"marker": marker, "label": words if label is None else entry}
        ax.plot(curve.predicted[shown], height[shown], **own | look)
        entry = None
        for arrow, beyond, edge in (("^", height > limits[1], limits[1]), ("v", height < limits[0], limits[0])):
            at = curve.predicted[chosen & beyond]
            if at.size:
                ax.plot(at, np.full(at.size, edge), **look | {"marker": arrow})


def _explain(curves: Sequence[ReliabilityCurve], ax: Axes, stars: Mapping[str, CellTests]) -> None:
    """Add to the legend of several models what points and bars mean."""
    hit, miss = _WORDS[curves[0].bars]
    look: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 5.5, "color": LINE}
    for label in dict.fromkeys(map(_bars_label, curves)):
        ax.plot([], [], color=LINE, linewidth=3.5, alpha=0.5, label=label)
    ax.plot([], [], label=miss, **look)
    ax.plot([], [], label=hit, **look | {"markerfacecolor": "white"})
    for label in dict.fromkeys(map(_stars_label, stars.values())):
        ax.plot([], [], label=label, **look | {"marker": "*", "markersize": 11})
