"""The reliability diagram of three or four classes, as in figure 1 of Vaicenavicius et al. (2019)."""

from __future__ import annotations

import math
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from caltest.estimation.simplex._simplex_diagram import SimplexDiagram
from caltest.plotting._axes import (
    FAINT,
    FEW,
    FINDING,
    LINE,
    POINT,
    dress,
    in_one_look,
    legend_below,
    literal,
    require,
    room,
    single,
)
from caltest.plotting._heading import decided_in_cells
from caltest.predictions._arrays import Booleans, Floats
from caltest.predictions.cells._simplex_grid import SimplexGrid
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import validate_level
from caltest.results._decision import show_pvalue
from caltest.results._description import counted, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap, Normalize
    from plotly.graph_objects import Figure

TRIANGLE = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]])
TETRAHEDRON = np.array([
    [0.0, 0.0, 0.0],
    [1.0, 0.0, 0.0],
    [0.5, 0.75**0.5, 0.0],
    [0.5, 0.75**0.5 / 3, (2 / 3) ** 0.5],
])  # fmt: skip
"""Where the corners of the simplex are drawn, ``(n_outcomes, n_outcomes - 1)``."""

SHADES = ("#edf3f9", "#8fb6dc")
"""Colours of the smallest and the largest share: arrows stay visible on both."""
PALE = "#6c7884"

_MOST_LINES = 3  # of a name at a corner
_LETTER, _LINE, _LEGEND = 0.07, 0.16, 1.15  # inches
_CAPTION = "arrow: from the average prediction to the frequencies, more opaque with more observations"


@in_one_look
def plot_simplex(
    diagram: SimplexDiagram,
    ax: Axes | None = None,
    *,
    ellipses: float | None = None,
    legend: bool = True,
    **options: Any,
) -> Axes:
    r"""Plot a reliability diagram of three classes as a triangle, of four classes as a tetrahedron.

    An arrow leads from the average prediction of each cell (bin), a point, to the frequencies of the outcomes. It is
    orange and wide where calibration is rejected after the correction for the number of cells, otherwise pale, and more
    opaque the more observations the cell has; cells of fewer than 10 have none. With three classes cells are coloured
    by their share of the observations, and white where there are none; with four classes the points are.

    Parameters
    ----------
    diagram : SimplexDiagram
        From `caltest.simplex_diagram`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes by default. Four classes need axes with ``projection="3d"``. The legend is below the
        axes: a figure with ``layout="constrained"`` makes room for it.
    ellipses : float, optional
        Level of the ellipses around the average predictions of three classes, for example 0.9: if the model is
        calibrated, each of them contains the head of its arrow with about this probability. Their covariance is that of
        the frequencies, and the quantile that of the normal distribution, so that they are approximate in cells of few
        observations; the colour of an arrow does not depend on them.
    legend : bool
        Whether to draw the legend.
    **options
        Passed to ``quiver``, which draws the arrows, such as ``width``.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn into.

    Raises
    ------
    TypeError
        If ``diagram`` is not a `SimplexDiagram`.
    ValueError
        If ``ellipses`` is not strictly between 0 and 1, or is given for four classes or for groups of observations; if
        four classes are drawn into flat axes, or three classes into those of three dimensions.

    See Also
    --------
    plot_simplex_interactive : The same, to be rotated.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> matplotlib.use("Agg")
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> diagram = caltest.simplex_diagram(y_true, y_prob, lens=caltest.TopK(2), rng=0)
    >>> ax = caltest.plotting.plot_simplex(diagram, ellipses=0.9)
    >>> ax.get_title()
    'Calibration is rejected in 6 of 11 cells (bins).'
    """
    require(diagram, SimplexDiagram, "diagram", "simplex_diagram")
    level = _checked_level(ellipses, diagram)
    solid = diagram.n_outcomes == 4
    where = _checked_axes(ax, solid=solid)
    if solid:
        _draw_tetrahedron(diagram, where, options)
    else:
        _draw_triangle(diagram, where, level, options)
    if legend:
        entries = {handle.get_label(): handle for handle in _handles(diagram, level)}
        look: dict[str, Any] = {
            "handler_map": _arrows_in_legend(),
            "title": f"{about(diagram)}\n{_CAPTION}",
            "borderaxespad": 1.8 if solid else 0.3,
        }
        legend_below(where, entries=entries, **look)
    return where


def about(diagram: SimplexDiagram) -> str:
    """Return the lens and the number of observations."""
    return f"{diagram.lens_name}, {counted(diagram.count.sum())}"


def title(diagram: SimplexDiagram, width: int = 60) -> str:
    """Return in how many cells calibration is rejected, in lines of some length."""
    return "\n".join(wrap(decided_in_cells(diagram.rejected), width))


def rejected_words(diagram: SimplexDiagram) -> str:
    """Return what an orange arrow means."""
    return f"rejected ({diagram.correction.title()}, p ≤ {diagram.alpha:.4g})"


def _checked_level(ellipses: float | None, diagram: SimplexDiagram) -> float | None:
    if ellipses is None:
        return None
    level = validate_level(ellipses, "ellipses")
    if diagram.n_outcomes == 3 and diagram.n_groups is None:
        return level
    why = f"{diagram.n_outcomes} outcomes" if diagram.n_outcomes != 3 else "groups, whose covariances are not known"
    msg = f"`ellipses` needs three outcomes and independent observations, got {why}; leave it out."
    raise ValueError(msg)


def _checked_axes(ax: Axes | None, *, solid: bool) -> Any:
    if ax is None and solid:
        from matplotlib import pyplot as plt

        return plt.figure(figsize=(6.4, 6.0), layout="constrained").add_subplot(projection="3d")
    where = single(ax, (6.0, 6.0))
    if (where.name == "3d") == solid:
        return where
    needed = 'four outcomes need axes with projection="3d"' if solid else "three outcomes need flat axes"
    msg = f'`ax` does not fit: {needed}, got projection="{where.name}".'
    raise ValueError(msg)


def share_scale(share: Floats) -> tuple[Colormap, Normalize]:
    """Return colours of shares, on a logarithmic scale if the largest is more than ten times the smallest."""
    from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize

    colours = LinearSegmentedColormap.from_list("share", SHADES)
    if share.max() > 10 * share.min():
        return colours, LogNorm(share.min(), share.max())
    return colours, Normalize(0, share.max())


def _draw_triangle(diagram: SimplexDiagram, ax: Axes, level: float | None, options: dict[str, Any]) -> None:
    from matplotlib.collections import PolyCollection

    if isinstance(diagram.partition, SimplexGrid):
        grid = PolyCollection(list(diagram.partition.corners @ TRIANGLE), facecolor="white", edgecolor="#d0d6dc")
        grid.set(linewidth=0.5, zorder=1, label="_all cells")
        ax.add_collection(grid)
    colours, scale = share_scale(diagram.share)
    cells = PolyCollection([corners @ TRIANGLE for corners in diagram.corners], cmap=colours, norm=scale)
    cells.set(array=diagram.share, edgecolor="#7d90a3", linewidth=0.5, zorder=2, label="_cells")
    ax.add_collection(cells)
    (frame,) = ax.fill(*TRIANGLE.T, fill=False, edgecolor=LINE, linewidth=1, zorder=3, joinstyle="round")
    if level is not None:
        for mean, covariance in zip(diagram.predicted, diagram.covariance, strict=True):
            ax.add_artist(_ellipse(mean, covariance, level)).set_clip_path(frame)  # not to widen the limits
    look: dict[str, Any] = {"angles": "xy", "scale_units": "xy", "scale": 1.0, "zorder": 5} | options
    for kind in _kinds(diagram):
        start, step = diagram.predicted[kind.chosen] @ TRIANGLE, diagram.arrow[kind.chosen] @ TRIANGLE
        point: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 3, "markerfacecolor": "white"}
        ax.plot(*start.T, color=kind.colour, zorder=4, alpha=1.0 if kind.width else 2 * FAINT, **point)
        if kind.chosen.any() and kind.width:
            drawn: dict[str, Any] = {"color": _by_count(diagram, kind), "width": kind.width} | look
            ax.quiver(*start.T, *step.T, **drawn)
    _name_corners(diagram, ax)
    ax.set(xticks=[], yticks=[])
    ax.set_aspect("equal", anchor="S")  # what stands below them has room where the axes are not as tall as they could
    ax.spines[:].set_visible(False)
    _add_scale(cells, ax.inset_axes((1.03, 0.17, 0.034, 0.36), transform=ax.transData))


class _Kind(NamedTuple):
    """Cells that look alike: which, their colour, the width of their arrows, and what the legend calls them."""

    chosen: Booleans
    colour: str
    width: float
    words: str


def _kinds(diagram: SimplexDiagram) -> list[_Kind]:
    """Return the kinds of cells; those of few observations have no arrows, and the rejected ones come last."""
    few, rejected = diagram.count < FEW, diagram.rejected
    return [
        _Kind(few, PALE, 0.0, f"fewer than {FEW} observations"),
        _Kind(~few & ~rejected, PALE, 0.005, "not rejected"),
        _Kind(~few & rejected, FINDING, 0.012, rejected_words(diagram)),
    ]


def _by_count(diagram: SimplexDiagram, kind: _Kind) -> list[Any]:
    """Return the colours of arrows, more opaque the more observations there are."""
    from matplotlib.colors import to_rgba

    share = np.sqrt(diagram.count[kind.chosen] / diagram.count.max())
    return [to_rgba(kind.colour, FAINT + (1 - FAINT) * each) for each in share]


def _ellipse(mean: Floats, covariance: Floats, level: float) -> Any:
    from matplotlib.patches import Ellipse

    size, axes = np.linalg.eigh(TRIANGLE.T @ covariance @ TRIANGLE)
    radius = np.sqrt(-2 * math.log(1 - level) * np.clip(size, 0.0, None))
    angle = math.degrees(math.atan2(axes[1, 1], axes[0, 1]))
    at = mean @ TRIANGLE
    return Ellipse((at[0], at[1]), 2 * radius[1], 2 * radius[0], angle=angle, fill=False, edgecolor=POINT, zorder=4)


def _letters(ax: Axes, share: float = 0.8) -> int:
    """Return how many letters are as wide as a share of the room of axes."""
    return max(8, int(share * room(ax)[1] / _LETTER))


def _name_corners(diagram: SimplexDiagram, ax: Axes) -> None:
    """Write the names of the outcomes at the corners; long ones at the bottom go outwards from the middle."""
    _, width, height = room(ax)
    half = _letters(ax, 0.42)
    shown = [
        lines(name, letters) for name, letters in zip(diagram.outcomes, (half, half, int(1.4 * half)), strict=True)
    ]
    heading = title(diagram, _letters(ax))
    counts = [text.count("\n") + 1 for text in (*shown, heading)]
    below, above = max(counts[:2]), counts[2] + counts[3] + 0.5
    # What legend, names and title leave of the height is that of the triangle.
    side = float(np.clip((height - _LEGEND - _LINE * (below + above)) / 0.92, 0.5, 0.9 * width))
    is_long = [max(map(len, text.split("\n"))) * _LETTER > 0.5 * side for text in shown[:2]]
    ends = [(0.49, "right") if is_long[0] else (-0.05, "left"), (0.51, "left") if is_long[1] else (1.05, "right")]
    for text, (x, across), y, up in zip(
        shown, [*ends, (0.5, "center")], (-0.03, -0.03, 0.89), ("top", "top", "bottom"), strict=True
    ):
        ax.text(x, y, literal(text), ha=across, va=up)
    ax.set_title(literal(heading), y=1.0, pad=0, va="top")  # inside: layouts forget what is above
    ax.set(xlim=(-0.06, 1.06), ylim=(-0.03 - below * _LINE / side, 0.89 + above * _LINE / side))


def lines(name: str, width: int) -> str:
    """Return a name in at most three lines."""
    found = wrap(name, width)
    if len(found) > _MOST_LINES:
        found = [*found[: _MOST_LINES - 1], found[_MOST_LINES - 1][: width - 1] + "…"]
    return "\n".join(found)


def _add_scale(shares: Any, place: Axes) -> None:
    """Draw the colours of the shares, in percent."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    bar = place.figure.colorbar(shares, cax=place)
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.3g} %"))
    bar.ax.yaxis.set_minor_formatter(NullFormatter())
    low, high = shares.get_array().min(), shares.get_array().max()
    bar.set_ticks([low, math.sqrt(low * high), high] if high > 10 * low else [0, high / 2, high])
    bar.ax.minorticks_off()
    bar.ax.tick_params(colors=LINE)
    dress(bar.ax)
    bar.outline.set_visible(False)
    bar.ax.set_title("share", color=LINE)


def _draw_tetrahedron(diagram: SimplexDiagram, ax: Any, options: dict[str, Any]) -> None:
    for i in range(4):
        for j in range(i):
            ax.plot(*TETRAHEDRON[[i, j]].T, color=LINE, linewidth=0.8, alpha=0.7)
    colours, scale = share_scale(diagram.share)
    start, step = diagram.predicted @ TETRAHEDRON, diagram.arrow @ TETRAHEDRON
    points = ax.scatter(*start.T, c=diagram.share, cmap=colours, norm=scale, s=45, edgecolors=LINE, linewidths=0.5)
    points.set(depthshade=False, label="_cells")
    for kind in _kinds(diagram):
        look = {"color": kind.colour, "linewidth": 250 * kind.width, "arrow_length_ratio": 0.25, "zorder": 5} | options
        if kind.chosen.any() and kind.width:
            ax.quiver(*start[kind.chosen].T, *step[kind.chosen].T, **look)
    middle = TETRAHEDRON.mean(axis=0)
    for name, corner in zip(diagram.outcomes, TETRAHEDRON, strict=True):
        place = corner + 0.13 * (corner - middle)
        ax.text(*place, literal(lines(name, 16)), ha="center", va="center")
    ax.set_axis_off()
    ax.set_box_aspect((1, 0.75**0.5, (2 / 3) ** 0.5), zoom=1.1)
    ax.set(xlim=(0, 1), ylim=(0, 0.75**0.5), zlim=(0, (2 / 3) ** 0.5))
    ax.view_init(elev=18, azim=-65)
    ax.set_title(literal(title(diagram, _letters(ax))))
    _add_scale(points, ax.inset_axes((0.97, 0.5, 0.03, 0.36)))


def _handles(diagram: SimplexDiagram, level: float | None) -> list[Any]:
    """Return what the legend shows: only what is there."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import FancyArrow, Patch

    handles: list[Any] = []
    for kind in reversed(_kinds(diagram)):
        label = f"{kind.words} ({int(kind.chosen.sum())} of {diagram.n_cells} cells)"
        if kind.chosen.any() and kind.width:
            handles.append(FancyArrow(0, 0, 1, 0, color=kind.colour, width=100 * kind.width, label=label))
        elif kind.chosen.any():
            point: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 4, "markerfacecolor": "white"}
            handles.append(Line2D([], [], color=PALE, alpha=FAINT, label=label, **point))
    ring: dict[str, Any] = {"linestyle": "none", "marker": "o"}
    tail = ring | {"markersize": 4, "color": LINE, "markerfacecolor": "white"}
    handles.append(Line2D([], [], label="average prediction of a cell (bin)", **tail))
    if level is not None:
        label = f"{percent(level)} of the frequencies if calibrated"
        handles.append(Line2D([], [], label=label, **ring | {"markersize": 9, "color": POINT, "fillstyle": "none"}))
    grid = diagram.partition
    if diagram.n_outcomes == 3 and isinstance(grid, SimplexGrid) and diagram.n_cells < grid.n**2:
        handles.append(Patch(facecolor="white", edgecolor="#d0d6dc", label="no observations"))
    return handles


def _arrows_in_legend() -> dict[type, Any]:
    """Return how the legend draws an arrow."""
    from matplotlib.legend_handler import HandlerPatch
    from matplotlib.patches import FancyArrow

    def arrow(orig_handle: Any, xdescent: float, ydescent: float, width: float, height: float, **_: Any) -> Any:
        size = {"width": orig_handle._width, "head_width": 0.8 * height, "head_length": 0.4 * width}
        return FancyArrow(-xdescent, height / 2 - ydescent, width, 0, length_includes_head=True, **size)

    return {FancyArrow: HandlerPatch(patch_func=arrow)}


def plot_simplex_interactive(diagram: SimplexDiagram, figure: Figure | None = None, **layout: Any) -> Figure:
    """Plot a reliability diagram of three or four classes with plotly, to be rotated and asked for its numbers.

    The text under the pointer gives the number of observations of a cell (bin), its average prediction, the frequencies
    of the outcomes and the p-values.

    Parameters
    ----------
    diagram : SimplexDiagram
        From `caltest.simplex_diagram`.
    figure : plotly.graph_objects.Figure, optional
        Where to draw; a new figure by default.
    **layout
        Passed to ``figure.update_layout``, such as ``width``.

    Returns
    -------
    plotly.graph_objects.Figure
        What was drawn into: ``figure.show()``, ``figure.write_html(path)``.

    Raises
    ------
    TypeError
        If ``diagram`` is not a `SimplexDiagram`.
    ImportError
        If plotly is not installed.

    See Also
    --------
    plot_simplex : The same, not interactive.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> diagram = caltest.simplex_diagram(y_true, y_prob, lens=caltest.TopK(3), rng=0)
    >>> figure = caltest.plotting.plot_simplex_interactive(diagram)  # doctest: +SKIP
    >>> figure.write_html("diagram.html")  # doctest: +SKIP
    """
    require(diagram, SimplexDiagram, "diagram", "simplex_diagram")
    try:
        from plotly import graph_objects as go
    except ImportError:
        refuse(
            'an interactive diagram needs plotly: pip install "caltest[interactive]" or pip install plotly.',
            ImportError,
        )
    solid = diagram.n_outcomes == 4
    place = TETRAHEDRON if solid else TRIANGLE
    scatter, axes = (go.Scatter3d, "xyz") if solid else (go.Scatter, "xy")
    shown = go.Figure() if figure is None else figure

    def at(points: Any) -> dict[str, Any]:
        return dict(zip(axes, np.asarray(points, dtype=float).T, strict=True))

    path = [0, 1, 2, 3, 0, 2, 1, 3] if solid else [0, 1, 2, 0]
    quiet = {"hoverinfo": "skip", "showlegend": False}
    edge = {"color": LINE, "width": 1.5}
    shown.add_trace(scatter(**at(place[path]), mode="lines", line=edge, name="simplex", **quiet))
    names = [f"<b>{name}</b>" for name in diagram.outcomes]
    where = place + 0.06 * (place - place.mean(axis=0))
    shown.add_trace(scatter(**at(where), mode="text", text=names, name="outcomes", **quiet))
    start, end = diagram.predicted @ place, diagram.observed @ place
    full = diagram.count >= FEW
    for chosen, colour, width, words in (
        (full & ~diagram.rejected, PALE, 2, "not rejected"),
        (full & diagram.rejected, FINDING, 5, rejected_words(diagram)),
    ):
        if not chosen.any():
            continue
        gaps = np.full((int(chosen.sum()), 1, len(axes)), np.nan)
        lines = np.concatenate([start[chosen, None], end[chosen, None], gaps], axis=1).reshape(-1, len(axes))
        look = {"color": colour, "width": width}
        shown.add_trace(scatter(**at(lines), mode="lines", line=look, name=words, hoverinfo="skip"))
        head = {"color": colour, "size": 3 if solid else 7, "symbol": "diamond" if solid else "circle"}
        shown.add_trace(scatter(**at(end[chosen]), mode="markers", marker=head, name=f"{words}: head", **quiet))
    shares = {"color": np.log10(diagram.share), "colorscale": [[0, SHADES[0]], [1, SHADES[1]]], "size": 6}
    ticks = np.log10(np.unique([diagram.share.min(), diagram.share.max()]))
    shares["colorbar"] = {"title": "share", "tickvals": ticks, "ticktext": [f"{100 * 10**t:.3g} %" for t in ticks]}
    shares["line"] = {"color": LINE, "width": 1}
    text = [_words(diagram, cell) for cell in range(diagram.n_cells)]
    label = "average prediction of a cell (bin)"
    shown.add_trace(scatter(**at(start), mode="markers", marker=shares, text=text, hoverinfo="text", name=label))
    hidden = {"visible": False}
    frame: dict[str, Any] = {"scene": {f"{axis}axis": hidden for axis in axes} | {"aspectmode": "data"}}
    if not solid:
        frame = {"xaxis": hidden, "yaxis": hidden | {"scaleanchor": "x"}, "plot_bgcolor": "white"}
    shown.update_layout(title=f"{title(diagram)}<br>{about(diagram)}", legend={"orientation": "h", "y": 0}, **frame)
    return shown.update_layout(**layout)


def _words(diagram: SimplexDiagram, cell: int) -> str:
    """Return the numbers of a cell."""
    lines = [
        f"{name}: predicted {predicted:.4f}, observed {observed:.4f}"
        for name, predicted, observed in zip(
            diagram.outcomes, diagram.predicted[cell], diagram.observed[cell], strict=True
        )
    ]
    pvalue, adjusted = show_pvalue(diagram.pvalue[cell]), show_pvalue(diagram.pvalue_adjusted[cell])
    numbers = f"{counted(diagram.count[cell])} ({100 * diagram.share[cell]:.3g} %)"
    return "<br>".join([numbers, *lines, f"p-value {pvalue}, {diagram.correction.title()}-adjusted {adjusted}"])
