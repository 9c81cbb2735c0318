"""The reliability diagram of three or four classes, as in figure 1 of Vaicenavicius et al. (2019)."""

from __future__ import annotations

import math
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caltest.estimation.simplex._simplex_diagram import SimplexDiagram
from caltest.plotting._axes import BAR, LINE, POINT, legend_below, literal, require, single
from caltest.predictions.cells._simplex_grid import SimplexGrid
from caltest.predictions.inputs._validation import validate_level
from caltest.results._description import counted, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap, Normalize

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
_LETTER, _LINE = 0.085, 0.18  # inches
_WIDE = 60  # letters of two columns of a legend
_CAPTION = "arrow: from the average prediction to the observed frequencies"


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
    dark where calibration is rejected after the correction for the number of cells, otherwise pale. With three classes
    cells are coloured by their share of the observations, and white where there are none; with four classes the points
    are.

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
    >>> ax.get_xlabel()
    'arrow: from the average prediction to the observed frequencies'
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
        handles, narrow = _handles(diagram, level), _letters(where) < _WIDE
        options = {"ncols": 1, "borderaxespad": 6.5} if narrow else {}
        legend_below(where, handles=handles, handler_map=_arrows_in_legend(), **options)
    return where


def title(diagram: SimplexDiagram, width: int = 60) -> str:
    """Return the lens and the number of observations, in lines of some length."""
    return "\n".join(wrap(f"{diagram.lens_name}, {counted(diagram.count.sum(), ',')}", width))


def rejected_words(diagram: SimplexDiagram) -> str:
    """Return what a dark arrow means."""
    return f"rejected: {diagram.correction.title()}-adjusted p ≤ {diagram.alpha:.4g}"


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


def share_scale(share: NDArray[np.float64]) -> tuple[Colormap, Normalize]:
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
    for chosen, colour, width, face in _kinds(diagram):
        start, step = diagram.predicted[chosen] @ TRIANGLE, diagram.arrow[chosen] @ TRIANGLE
        ax.plot(*start.T, linestyle="none", marker="o", markersize=3, color=colour, markerfacecolor=face, zorder=5)
        if chosen.any():
            drawn: dict[str, Any] = {"color": colour, "width": width} | look
            ax.quiver(*start.T, *step.T, **drawn)
    _name_corners(diagram, ax)
    ax.set(xticks=[], yticks=[])
    ax.set_aspect("equal", anchor="S")  # what stands below them has room where the axes are not as tall as they could
    ax.spines[:].set_visible(False)
    ax.set_xlabel("\n".join(wrap(_CAPTION, _letters(ax))), fontsize="small")
    _add_scale(cells, ax.inset_axes((0.93, 0.48, 0.03, 0.34)))


def _kinds(diagram: SimplexDiagram) -> list[tuple[NDArray[np.bool_], str, float, str]]:
    """Return which arrows are pale and which are dark, with colour, width and the face of the point; dark ones last."""
    return [(~diagram.rejected, PALE, 0.004, "white"), (diagram.rejected, POINT, 0.008, POINT)]


def _ellipse(mean: NDArray[np.float64], covariance: NDArray[np.float64], level: float) -> Any:
    from matplotlib.patches import Ellipse

    size, axes = np.linalg.eigh(TRIANGLE.T @ covariance @ TRIANGLE)
    radius = np.sqrt(-2 * math.log(1 - level) * np.clip(size, 0.0, None))
    angle = math.degrees(math.atan2(axes[1, 1], axes[0, 1]))
    at = mean @ TRIANGLE
    return Ellipse((at[0], at[1]), 2 * radius[1], 2 * radius[0], angle=angle, fill=False, edgecolor=BAR, zorder=4)


def _letters(ax: Axes) -> int:
    """Return how many small letters are as wide as axes."""
    return max(20, int(_inches(ax) / (0.75 * _LETTER)))


def _inches(ax: Axes) -> float:
    """Return how wide a triangle is in axes, about: layout and legend take some of it."""
    figure: Any = ax.get_figure(root=True)
    box = ax.get_window_extent()
    return float(min(0.9 * box.width, box.height)) / figure.dpi


def _name_corners(diagram: SimplexDiagram, ax: Axes) -> None:
    """Write the names of the outcomes at the corners; those at the bottom are wrapped so that they do not overlap."""
    inches = _inches(ax)
    half = max(8, int(0.42 * inches / _LETTER))
    shown = [lines(name, width) for name, width in zip(diagram.outcomes, (half, half, int(1.4 * half)), strict=True)]
    corners = (-0.05, -0.03, "left", "top"), (1.05, -0.03, "right", "top"), (0.5, 0.89, "center", "bottom")
    for text, (x, y, across, up) in zip(shown, corners, strict=True):
        ax.text(x, y, literal(text), ha=across, va=up, fontsize="medium")
    line = _LINE * 1.2 / inches
    heading = title(diagram, _letters(ax))
    ax.set_title(literal(heading), y=1.0, pad=0, va="top", fontsize="medium")  # inside: layouts forget what is above
    below, above = (
        line * (1 + max(text.count("\n") for text in texts)) for texts in (shown[:2], [shown[2] + "\n\n" + heading])
    )
    ax.set(xlim=(-0.06, 1.06), ylim=(-0.03 - below, 0.89 + above))


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
    bar.ax.tick_params(labelsize="small", colors=LINE)
    bar.outline.set_visible(False)
    bar.ax.set_title("share", fontsize="small", color=LINE)


def _draw_tetrahedron(diagram: SimplexDiagram, ax: Any, options: dict[str, Any]) -> None:
    for i in range(4):
        for j in range(i):
            ax.plot(*TETRAHEDRON[[i, j]].T, color=LINE, linewidth=0.8, alpha=0.7)
    colours, scale = share_scale(diagram.share)
    start, step = diagram.predicted @ TETRAHEDRON, diagram.arrow @ TETRAHEDRON
    points = ax.scatter(*start.T, c=diagram.share, cmap=colours, norm=scale, s=45, edgecolors=LINE, linewidths=0.5)
    points.set(depthshade=False, label="_cells")
    for chosen, colour, width, _ in _kinds(diagram):
        look = {"color": colour, "linewidth": 250 * width, "arrow_length_ratio": 0.25, "zorder": 5} | options
        if chosen.any():
            ax.quiver(*start[chosen].T, *step[chosen].T, **look)
    middle = TETRAHEDRON.mean(axis=0)
    for name, corner in zip(diagram.outcomes, TETRAHEDRON, strict=True):
        place = corner + 0.13 * (corner - middle)
        ax.text(*place, literal(lines(name, 16)), ha="center", va="center", fontsize="medium")
    ax.set_axis_off()
    ax.set_box_aspect((1, 0.75**0.5, (2 / 3) ** 0.5), zoom=1.1)
    ax.set(xlim=(0, 1), ylim=(0, 0.75**0.5), zlim=(0, (2 / 3) ** 0.5))
    ax.view_init(elev=18, azim=-65)
    ax.set_xlabel(_CAPTION)  # for those who read it; it is not drawn without an axis
    ax.set_title(literal(title(diagram, _letters(ax))), fontsize="medium")
    ax.text2D(0.5, -0.03, _CAPTION, transform=ax.transAxes, ha="center", va="top", fontsize="small")
    _add_scale(points, ax.inset_axes((0.97, 0.5, 0.03, 0.36)))


def _handles(diagram: SimplexDiagram, level: float | None) -> list[Any]:
    """Return what the legend shows: only what is there."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import FancyArrow, Patch

    words = {PALE: "not rejected", POINT: rejected_words(diagram)}
    handles: list[Any] = []
    for chosen, colour, width, _ in reversed(_kinds(diagram)):
        if chosen.any():
            label = f"{words[colour]} ({int(chosen.sum())} of {diagram.n_cells} cells)"
            handles.append(FancyArrow(0, 0, 1, 0, color=colour, width=100 * width, label=label))
    ring: dict[str, Any] = {"linestyle": "none", "marker": "o"}
    tail = ring | {"markersize": 4, "color": LINE, "markerfacecolor": "white"}
    handles.append(Line2D([], [], label="average prediction of a cell (bin)", **tail))
    if level is not None:
        label = f"{percent(level)} of the frequencies if calibrated"
        handles.append(Line2D([], [], label=label, **ring | {"markersize": 9, "color": BAR, "fillstyle": "none"}))
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
