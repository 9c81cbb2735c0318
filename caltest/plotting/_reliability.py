"""The reliability diagram, in both styles of figure 4 of Vaicenavicius et al. (2019), and the uncertainty diagram."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from caltest.estimation.curves._curve_in_cells import CurveInCells
from caltest.estimation.curves._reliability_curve import ReliabilityCurve
from caltest.estimation.curves._uncertainty_diagram import UncertaintyDiagram
from caltest.estimation.errors._cell_tests import CellTests
from caltest.plotting._axes import (
    BAR,
    FAINT,
    FEW,
    FINDING,
    LINE,
    MARKERS,
    MOST_TOGETHER,
    NAME_WIDTH,
    POINT,
    TEXT,
    colors_of,
    in_one_look,
    literal,
    named,
    save_drawn,
    single,
    small_share,
)
from caltest.plotting._heading import DIFFERENCE, QUESTION, decided_in_cells, first_sentence, head_figure, in_panels
from caltest.plotting._prediction_axis import PROBABILITIES, AxisWords, PredictionAxis, finish
from caltest.predictions.inputs._validation import validate_choice
from caltest.results._description import counted, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from caltest.results import Verdict

Ends = tuple[float, float]
_UNCERTAINTIES = AxisWords("normalised entropy", "error rate", "UCE 0", "gap (UCE)")
_LEAST, _LARGEST = 14.0, 130.0  # square points, the areas of the points
_CAPTION = 150  # characters of a line


@in_one_look
def plot_reliability(
    curve: ReliabilityCurve | Mapping[str, ReliabilityCurve],
    ax: Any = None,
    style: str = "classical",
    *,
    scale: str | None = None,
    tests: CellTests | Mapping[str, CellTests] | None = None,
    histogram: bool = True,
    legend: bool = True,
    verdict: Verdict | None = None,
    **options: Any,
) -> Any:
    """Plot a reliability diagram with consistency or confidence bars, of one model or of several.

    Points are observed frequencies; their area shows the number of observations, and cells (bins) of fewer than 10 are
    pale. Bars are the quantiles under calibration, or confidence intervals. Cells that ``tests`` reject are filled, in
    orange if there is one model. The panel below is the distribution of the predictions. Up to four models share the
    axes and have one colour each, and the legend has their errors with their noise floors; more have a panel each.

    Cells with less than 1 % of the observations do not determine the scale of deviations if they would more than
    treble it: points and bars that reach beyond it end in arrow heads at the edge.

    Parameters
    ----------
    curve : ReliabilityCurve or mapping of str to ReliabilityCurve
        From `caltest.reliability_curve`; of several models by their names.
    ax : matplotlib.axes.Axes or array of them, optional
        Where to draw; new axes by default. Histogram and legend are below the axes: a figure with
        ``layout="constrained"`` makes room for them. More than four models need axes each.
    style : {"classical", "deviation"}
        Frequency against prediction, with square axes; or frequency minus prediction against prediction, as the paper
        prefers.
    scale : {"linear", "logit", "equal-mass"}, optional
        Scale of the predictions, which the label of the axis names; with the logit scale and square axes that of the
        frequencies too. By default it is chosen from the predictions: logit if more than half of them are below 0.05
        or above 0.95, where a linear scale cannot show them apart; otherwise equal-mass if more than half of them lie
        in one of 20 intervals of equal width; otherwise linear. The logit scale has finite ends, so that 0 and 1 have
        their place.
    tests : CellTests, or mapping of str to CellTests, optional
        Which cells are rejected, of several models by their names; ``curve.cell_tests()`` by default.
    histogram : bool
        Whether to draw the distribution of the predictions below, of several models as outlines. There is none on the
        equal-mass scale, on which all its columns would be equal.
    legend : bool
        Whether to draw the legend, with lens, number of observations and error.
    verdict : Verdict, optional
        What a test of the same predictions found: its first sentence stands above. By default in how many cells
        calibration is rejected stands there.
    **options
        Passed to ``matplotlib.axes.Axes.scatter`` for the points, such as ``s=16``.

    Returns
    -------
    matplotlib.axes.Axes or array of them
        What was drawn into; the panel of a histogram is ``child_axes[0]``.

    Raises
    ------
    TypeError
        If ``curve`` is not a `ReliabilityCurve` or a mapping of names to such, or ``tests`` are no `CellTests`.
    ValueError
        If there is no curve, ``style`` or ``scale`` is unknown, or ``tests`` are not those of this curve.

    See Also
    --------
    caltest.reliability_curve : Computes what is drawn.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> matplotlib.use("Agg")
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> ax = caltest.plotting.plot_reliability(caltest.reliability_curve(y_true, y_prob))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('predicted probability (logit scale)', 'observed frequency (logit scale)')
    """
    validate_choice(style, "style", ("classical", "deviation"))
    curves = named(curve, ReliabilityCurve, "curve", "reliability_curve")
    tests_of = _check_tests(tests, curves)
    drawing: dict[str, Any] = {"scale": scale, "histogram": histogram}
    if len(curves) > MOST_TOGETHER:
        plot = partial(plot_reliability, style=style, **drawing, **options)
        return in_panels(plot, curves, ax, caption=_about(list(curves.values())), legend=legend, tests=tests_of)
    said = QUESTION if style == "classical" else DIFFERENCE
    if verdict is not None:
        said = first_sentence(verdict)
    elif len(curves) == 1 and tests_of and next(iter(tests_of.values())).rejected.any():
        said = decided_in_cells(next(iter(tests_of.values())).rejected)
    drawing |= {"words": PROBABILITIES, "said": said, "square": style == "classical", "legend": legend}
    return _draw(curves, ax, tests_of, options, **drawing)


@in_one_look
def plot_uncertainty_diagram(
    diagram: UncertaintyDiagram | Mapping[str, UncertaintyDiagram],
    ax: Any = None,
    *,
    scale: str | None = None,
    tests: CellTests | Mapping[str, CellTests] | None = None,
    histogram: bool = True,
    legend: bool = True,
    **options: Any,
) -> Any:
    """Plot error rates against the normalised entropy, with the bars in which a calibrated model lies.

    Above stands the decision by the UCE. Points are error rates; their area shows the number of observations, and cells
    (bins) of fewer than 10 are pale. Thin lines are the gaps to the diagonal, whose average is the UCE. Bars are where
    the error rates of a calibrated model lie, mostly below the diagonal, or confidence intervals. Cells that ``tests``
    reject are filled, in orange if there is one model. The panel below is the distribution of the entropies. Up to four
    models share the axes and have one colour each; more have a panel each.

    Parameters
    ----------
    diagram : UncertaintyDiagram or mapping of str to UncertaintyDiagram
        From `caltest.estimation.uncertainty_diagram`; of several models by their names.
    ax : matplotlib.axes.Axes or array of them, optional
        Where to draw; new axes by default. Histogram and legend are below the axes: a figure with
        ``layout="constrained"`` makes room for them. More than four models need axes each.
    scale : {"linear", "logit", "equal-mass"}, optional
        Scale of the entropies, as that of the predictions in `plot_reliability`.
    tests : CellTests, or mapping of str to CellTests, optional
        Which cells are rejected, of several models by their names; ``diagram.cell_tests()`` by default.
    histogram : bool
        Whether to draw the distribution of the entropies below.
    legend : bool
        Whether to draw the legend, with what is looked at, number of observations and UCE.
    **options
        Passed to ``matplotlib.axes.Axes.scatter`` for the points, such as ``s=16``.

    Returns
    -------
    matplotlib.axes.Axes or array of them
        What was drawn into; the panel of a histogram is ``child_axes[0]``.

    Raises
    ------
    TypeError
        If ``diagram`` is not an `UncertaintyDiagram` or a mapping of names to such, or ``tests`` are no `CellTests`.
    ValueError
        If there is no diagram, ``scale`` is unknown, or ``tests`` are not those of this diagram.

    See Also
    --------
    caltest.estimation.uncertainty_diagram : Computes what is drawn.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> matplotlib.use("Agg")
    >>> ax = caltest.estimation.uncertainty_diagram(*caltest.datasets.load_cifar10_vgg16()).plot()
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('normalised entropy (logit scale)', 'error rate (logit scale)')
    """
    diagrams = named(diagram, UncertaintyDiagram, "diagram", "uncertainty_diagram")
    tests_of = _check_tests(tests, diagrams)
    drawing: dict[str, Any] = {"scale": scale, "histogram": histogram}
    if len(diagrams) > MOST_TOGETHER:
        plot = partial(plot_uncertainty_diagram, **drawing, **options)
        return in_panels(plot, diagrams, ax, caption=_about(list(diagrams.values())), legend=legend, tests=tests_of)
    said = next(iter(diagrams.values())).decision_in_words if len(diagrams) == 1 else QUESTION
    drawing |= {"words": _UNCERTAINTIES, "said": said, "square": True, "legend": legend}
    return _draw(diagrams, ax, tests_of, options, **drawing)


def _draw(
    curves: Mapping[str, CurveInCells],
    ax: Any,
    tests_of: Mapping[str, CellTests],
    options: dict[str, Any],
    *,
    words: AxisWords,
    said: str,
    square: bool,
    scale: str | None,
    histogram: bool,
    legend: bool,
) -> Any:
    """Draw up to four curves into the same axes."""
    each, alone = list(curves.values()), len(curves) == 1
    labels = {name: None if alone else _model_label(name, one) for name, one in curves.items()}
    lines = sum(label.count("\n") + 1 for label in labels.values() if label is not None)
    ax = single(ax, (6.4, 6.6 + 0.1 * lines) if square else (6.4, 5.2 + 0.1 * lines))
    heights = [end for one in each for end in (one.observed, one.bar_lower, one.bar_upper)] if square else []
    axis = PredictionAxis.of(
        scale, {name: one.density for name, one in curves.items()}, [*(one.predicted for one in each), *heights], words
    )
    reach = None if square else _reach(each)
    limits = (-np.inf, np.inf) if reach is None else (0.96 * reach[0], 0.96 * reach[1])
    colors = colors_of(len(each))
    panel = _Panel(ax, limits, square, alone, small_share(ax), options)
    for (name, one), color, marker in zip(curves.items(), colors, MARKERS, strict=False):
        for chosen, opaque in ((one.count >= FEW, 1.0), (one.count < FEW, FAINT)):
            if chosen.any():
                bars = {"color": BAR if alone else color, "alpha": opaque * (1.0 if alone else 0.45)}
                _draw_bars(one, panel, chosen, bars)
                if words.gap:
                    at, low, high = one.predicted[chosen], one.predicted[chosen], one.observed[chosen]
                    ax.vlines(at, low, high, color=color, alpha=0.6 * opaque, linewidth=1, label="_gaps", zorder=2.5)
                _draw_points(
                    one, tests_of.get(name), panel, chosen, {"color": color, "alpha": opaque, "marker": marker}
                )
        if not alone:
            ax.plot([], [], color=color, marker=marker, linestyle="none", markersize=6, label=labels[name])
    if words.gap:
        ax.plot([], [], color=LINE, alpha=0.6, linewidth=1, label=words.gap)
    _explain(each, ax, list(tests_of.values()), alone=alone)
    finish(axis, ax, colors, said, reach, caption=_about(each), histogram=histogram, legend=legend)
    return ax


def draw_both_styles(figure: Figure, curve: ReliabilityCurve | Mapping[str, ReliabilityCurve]) -> None:
    """Draw a reliability diagram as frequencies and as deviations; of more than four models a diagram for each."""
    curves: dict[str, ReliabilityCurve] = named(curve, ReliabilityCurve, "curve", "reliability_curve")
    if len(curves) > MOST_TOGETHER:
        grid = figure.subplots(-(-len(curves) // 3), 3, squeeze=False).ravel()
        for unused in grid[len(curves) :]:
            unused.remove()
        plot_reliability(curves, grid[: len(curves)])
        return
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.25])
    plot_reliability(curve, left, legend=False)
    plot_reliability(curve, right, style="deviation")  # whose height is free, so that there is room for the legend
    for ax, asked in ((left, QUESTION), (right, DIFFERENCE)):
        ax.set_title(asked, fontsize=TEXT)


def save_reliability(curve: ReliabilityCurve, path: Path, verdict: Verdict | None = None) -> None:
    """Write a picture with both styles side by side; what was found is above, and what else there is to say below.

    Parameters
    ----------
    curve : ReliabilityCurve
        From `caltest.reliability_curve`.
    path : Path
        File name; its suffix decides the format.
    verdict : Verdict, optional
        What a test of the same predictions found; by default the tests of the cells.
    """
    said, more = decided_in_cells(curve.cell_tests().rejected), [curve.conclusion]
    if verdict is not None:
        said, *more = verdict.sentences(brief=True)

    def draw(figure: Figure) -> None:
        draw_both_styles(figure, curve)
        head_figure(figure, said)

    save_drawn(draw, (11, 6.4), fill(" ".join(more), _CAPTION), path)


def picture_formats() -> set[str]:
    """Return the suffixes of the pictures that can be written, without the dot."""
    from matplotlib.backend_bases import FigureCanvasBase

    return set(FigureCanvasBase.get_supported_filetypes()) - {"pgf"}  # LaTeX, with further files beside it


def _about(curves: Sequence[CurveInCells]) -> str:
    """Return lens and number of observations, and of a single model its error."""
    lenses = dict.fromkeys(curve.lens_name for curve in curves)
    sizes = dict.fromkeys(int(curve.count.sum()) for curve in curves)
    lens = next(iter(lenses)) if len(lenses) == 1 else "several lenses"
    size = counted(next(iter(sizes))) if len(sizes) == 1 else "different numbers of observations"
    return f"{lens}, {size}" if len(curves) > 1 else f"{lens}, {size}; {_error(curves[0])}"


def _error(curve: CurveInCells) -> str:
    return f"{curve.error_name} {curve.error:.3g} (noise floor {round(curve.noise_floor, 12):.2g})"


def _model_label(name: str, curve: CurveInCells) -> str:
    return literal(f"{fill(name, NAME_WIDTH)}\n{_error(curve)}")


def _reach(curves: Sequence[CurveInCells]) -> Ends:
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


def _check_tests(tests: Any, curves: Mapping[str, CurveInCells]) -> dict[str, CellTests]:
    """Return the tests of the cells by the name of the model."""
    if tests is None:
        return {name: one.cell_tests() for name, one in curves.items()}
    given = dict(tests) if isinstance(tests, Mapping) else dict.fromkeys([*curves][:1], tests)
    for name, one in given.items():
        msg = f"`tests` must be the cell_tests(...) of this curve, got {type(one).__name__}."
        if not isinstance(one, CellTests):
            raise TypeError(msg)
        if name not in curves or not np.array_equal(one.pvalue, curves[name].pvalue_of_cells):
            raise ValueError(msg)
    return given


def _bars_label(curve: CurveInCells) -> str:
    together = ", all cells together" if curve.simultaneous else ""
    return f"{percent(curve.confidence_level)} {curve.bars} bars{together}"


def _rejected_label(tests: CellTests) -> str:
    return f"rejected ({tests.correction.title()}, p ≤ {tests.alpha:.4g})"


class _Panel(NamedTuple):
    """Where points and bars are drawn, and how."""

    ax: Axes
    limits: Ends
    square: bool
    alone: bool
    size: float
    options: dict[str, Any]


def _draw_bars(curve: CurveInCells, panel: _Panel, chosen: Any, look: dict[str, Any]) -> None:
    """Draw bars of frequencies or deviations; what is beyond the limits ends in an arrow head."""
    ax, limits, width = panel.ax, panel.limits, panel.size * (5.0 if panel.alone else 3.5)
    base = 0.0 if panel.square else curve.expected
    at, low, high = (values[chosen] for values in (curve.predicted, curve.bar_lower - base, curve.bar_upper - base))
    look = look | {"zorder": 3}
    ax.vlines(at, np.clip(low, *limits), np.clip(high, *limits), linewidth=width, label="_bars", **look)
    look |= {"linestyle": "none", "markersize": 9 * panel.size}
    for end, cut, limit, arrow in ((low, low < limits[0], limits[0], "v"), (high, high > limits[1], limits[1], "^")):
        # Caps keep a bar visible that is shorter than a pixel; an arrow head instead says that a bar goes on.
        ax.plot(at[~cut], end[~cut], marker="_", **look)
        if cut.any():
            ax.plot(at[cut], np.full(cut.sum(), limit), marker=arrow, **look | {"markersize": 6, "clip_on": False})


def _draw_points(
    curve: CurveInCells, tests: CellTests | None, panel: _Panel, chosen: Any, look: dict[str, Any]
) -> None:
    """Draw frequencies or deviations, with areas by the number of observations; rejected cells are filled."""
    ax, limits, alone = panel.ax, panel.limits, panel.alone
    height = curve.observed - (0.0 if panel.square else curve.expected)
    rejected = np.zeros(curve.n_cells, dtype=bool) if tests is None else tests.rejected
    area = _LEAST + panel.size**2 * (_LARGEST if alone else _LARGEST / 2) * curve.count / curve.count.max()
    shown = (height >= limits[0]) & (height <= limits[1])
    for kind, filled in ((chosen & ~rejected, False), (chosen & rejected, True)):
        color = FINDING if filled and alone else look["color"]
        drawn, mine = kind & shown, look | {"color": color, "facecolor": color if filled else "white", "zorder": 4}
        if drawn.any():
            given = {"s": area[drawn], "linewidths": 1.2, "edgecolors": mine.pop("color")} | mine | panel.options
            ax.scatter(curve.predicted[drawn], height[drawn], label="_rejected" if filled else "_points", **given)
        for arrow, beyond, edge in (("^", height > limits[1], limits[1]), ("v", height < limits[0], limits[0])):
            at = curve.predicted[kind & beyond]
            if at.size:
                ax.plot(at, np.full(at.size, edge), linestyle="none", color=color, marker=arrow, zorder=4)


def _explain(curves: Sequence[CurveInCells], ax: Axes, tests: Sequence[CellTests], *, alone: bool) -> None:
    """Add to the legend what bars and points mean: only what is there."""
    color = BAR if alone else LINE
    for label in dict.fromkeys(map(_bars_label, curves)):
        ax.plot([], [], color=color, linewidth=4, alpha=1.0 if alone else 0.5, label=label)
    look: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 7, "color": POINT if alone else LINE}
    ax.plot([], [], label="observed (area: count)", **look | {"markerfacecolor": "white"})
    few = [one.count < FEW for one in curves]
    if any(some.any() for some in few):
        ax.plot([], [], label=f"fewer than {FEW} observations", alpha=FAINT, **look | {"markerfacecolor": "white"})
    for label in dict.fromkeys(_rejected_label(one) for one in tests if one.rejected.any()):
        ax.plot([], [], label=label, **look | ({"color": FINDING} if alone else {}))
