"""What the pictures have in common: colours, names, axes, and files that hold them."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.predictions.inputs._models import validate_names
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import refuse_if
from caltest.results._atomic_file import atomic_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.text import Text
    from matplotlib.transforms import Transform


def literal(text: object) -> str:
    r"""Return a text in which dollar signs are escaped.

    Of a text with two dollar signs matplotlib draws what is between them as mathematics, or refuses it. Every text that
    names classes, models, lenses or methods of the user comes through here on its way into a picture.

    Parameters
    ----------
    text : object
        A name or a sentence.

    Returns
    -------
    str
        The text that matplotlib shows as it was.
    """
    return str(text).replace("$", r"\$")


def to_svg(draw: Callable[[Figure], Any], size: tuple[float, float]) -> bytes:
    """Return what ``draw(figure)`` draws, which is the same for the same numbers: no date, no random names.

    ``size`` is width and height in inches.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure, buffer = Figure(figsize=size, layout="constrained"), io.BytesIO()
    draw(figure)
    with rc_context({"svg.hashsalt": "caltest"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


_DPI = 150


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure, which replaces the file at once; its suffix decides the format."""
    with atomic_file(path) as stream:
        figure.savefig(stream, format=path.suffix[1:].lower(), dpi=_DPI)


def save_drawn(draw: Callable[[Figure], Any], size: tuple[float, float], caption: str, path: Path) -> None:
    """Write what ``draw(figure)`` draws, with a caption below; ``size`` is width and height in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    draw(figure)
    if caption:
        figure.supxlabel(literal(caption), fontsize=TEXT)
    save_figure(figure, path)


TEXT = "small"
"""The one size of text."""

POINT = "#101418"
FINDING = "#d55e00"
"""What is significant, and nothing else."""
BAR = "#86a5c6"
DENSITY = "#c3d2e3"
LINE = "#5a6470"
COLORS = (POINT, "#0072b2", "#1b9e77", "#88ccee", "#cc79a7", "#8a6d1d", "#6f7f8f", "#5b3a8c")
"""Colours of several series in one panel: the first ones can be distinguished by the colour-blind too."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

MOST_TOGETHER = 4
"""Models in one panel; more of them have a panel each."""

FEW = 10
"""Fewer observations in a cell are pale."""
FAINT = 0.35
"""How opaque what is pale is."""

DASHED: dict[str, Any] = {"linewidth": 1, "linestyle": (0, (4, 3))}
"""How reference lines look."""

STAR: dict[str, Any] = {
    **{"linestyle": "none", "marker": "*", "markersize": 12, "zorder": 5},
    **{"markeredgecolor": "white", "markeredgewidth": 0.6},
}
"""How the smallest values of curves look."""

NAME_WIDTH = 44
"""Characters of a line of a name in a legend."""

_POINT: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 6, "zorder": 3}
_BELOW = 4.6  # heights of a letter between axes and legend: those of tick labels and axis label
_LETTER = 0.064  # inches, of the width of a letter
_HANDLE = 0.36  # inches, of what stands beside a text of a legend
_CAPTIONED = 3.2  # inches, the least height of a picture with a caption
_DECORATION = 0.7  # inches, of the labels beside axes

Drawing = TypeVar("Drawing", bound=Callable[..., Any])


def in_one_look(draw: Drawing) -> Drawing:
    """Give all texts of the axes that a function draws into and returns the one size, in lines that fit."""

    @wraps(draw)
    def drawn(*args: Any, **options: Any) -> Any:
        axes = draw(*args, **options)
        for ax in np.ravel(axes):
            for each in (ax, *ax.child_axes):
                dress(each)
            _, width, height = room(ax)
            wrap(ax.title, width - 0.9)
            wrap(ax.xaxis.label, width - _DECORATION)
            wrap(ax.yaxis.label, max(height / 3, height - 2.8))
        return axes

    return drawn  # type: ignore[return-value]


def dress(ax: Axes) -> None:
    """Give all texts of axes the one size."""
    ax.tick_params(which="both", labelsize=TEXT)
    for text in (
        ax.title,
        *ax.texts,
        *(part for axis in (ax.xaxis, ax.yaxis) for part in (axis.label, axis.offsetText)),
    ):
        text.set_fontsize(TEXT)


def wrap(text: Text, width: float) -> None:
    """Break the lines of a text that are longer than a number of inches."""
    letters = max(10, int(width / _LETTER))
    lines = (fill(line, letters, break_on_hyphens=False) for line in text.get_text().split("\n"))
    text.set_text("\n".join(lines))


def room(ax: Axes) -> tuple[float, float, float]:
    """Return the left end in inches of what axes and their texts may fill of the figure, its width and its height."""
    figure: Any = ax.get_figure(root=True)
    (width, height), place = figure.get_size_inches(), ax.get_subplotspec()
    if place is None:
        return 0.0, width, height
    grid = place.get_gridspec()
    columns, rows = (
        inches * np.insert(np.cumsum(ratios), 0, 0.0) / np.sum(ratios)
        for inches, ratios in ((width, grid.get_width_ratios()), (height, grid.get_height_ratios()))
    )
    left, right = columns[[place.colspan.start, place.colspan.stop]]
    top, bottom = rows[[place.rowspan.start, place.rowspan.stop]]
    return float(left), float(right - left), float(bottom - top)


def below(ax: Axes) -> Transform:
    """Return the transform of shares of the width of the axes, and of inches above their lower edge."""
    from matplotlib.transforms import ScaledTranslation, blended_transform_factory

    figure: Any = ax.get_figure(root=True)
    corner: Any = ax.transAxes
    inches = figure.dpi_scale_trans + ScaledTranslation(0, 0, corner)
    return blended_transform_factory(ax.transAxes, inches)


def require(result: Any, kind: type, name: str, made_by: str) -> None:
    """Refuse what is not a result of the kind that is drawn."""
    if isinstance(result, kind):
        return
    article = "an" if kind.__name__[0] in "AEIOU" else "a"
    refuse(f"`{name}` must be {article} {kind.__name__} from {made_by}(...), got {type(result).__name__}.", TypeError)


def named(results: Any, kind: type, name: str, made_by: str) -> dict[str, Any]:
    """Return results of the kind that is drawn by the names of their models; a single one has the name ""."""
    if not isinstance(results, Mapping):
        require(results, kind, name, made_by)
        return {"": results}
    validate_names(list(results), name)
    for model, result in results.items():
        require(result, kind, f"{name}[{model!r}]", made_by)
    refuse_if(not results, f"`{name}` must hold at least one {kind.__name__}, got none.")
    return dict(results)


def small_share(ax: Axes) -> float:
    """Return the share of their usual size that points and lines have in a small picture."""
    return min(1.0, min(room(ax)[1:]) / 5.0)


def marker_of(points: Sequence[Any] | NDArray[Any]) -> str:
    """Return the marker of a line through points: none, but a dot for a single one, which is no line."""
    return "o" if len(points) == 1 else ""


def colors_of(n_models: int) -> list[str]:
    """Return the colour of each model: the first one is that of points."""
    return [color_of(place) for place in range(n_models)]


def color_of(number: int) -> str:
    """Return the colour of a series by its number; colours repeat where there are more series."""
    return COLORS[number % len(COLORS)]


def plain_logarithmic(axis: Axis, subs: Sequence[int]) -> None:
    """Give a logarithmic axis plain numbers, at these multiples of powers of ten only."""
    from matplotlib.ticker import LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter("{x:g}")


def single(ax: Axes | None, figsize: tuple[float, float]) -> Axes:
    """Return the axes to draw into: those of the caller, or those of a new figure."""
    if ax is not None:
        return ax
    from matplotlib import pyplot as plt

    return plt.subplots(figsize=figsize, layout="constrained")[1]


def several(axes: Any, shape: tuple[int, int], figsize: tuple[float, float], **options: Any) -> NDArray[Any]:
    """Return the axes of all panels: those of the caller as they are, or those of a new figure, a single row flat."""
    if axes is None:
        from matplotlib import pyplot as plt

        grid = plt.subplots(*shape, figsize=figsize, squeeze=False, layout="constrained", **options)[1]
        return grid[0] if shape[0] == 1 else grid
    given = np.atleast_1d(axes)
    wanted = shape[0] * shape[1]
    refuse_if(given.size != wanted, f"`axes` must hold {wanted} axes, one for each panel, got {given.size}.")
    return given


def wrapped(
    axes: Any, n_panels: int, n_columns: int, panel: tuple[float, float], margin: float, *, sharey: bool = True
) -> NDArray[Any]:
    """Return the axes ``(n_panels,)`` of panels that fill rows of a new figure; those of the caller as they are."""
    if axes is not None:
        return several(axes, (1, n_panels), (0.0, 0.0))
    columns = min(n_panels, n_columns)
    rows = -(-n_panels // columns)
    size = 0.6 + max(panel[0] * columns, 3.8), margin + panel[1] * rows
    grid = several(None, (rows, columns), size, sharey=sharey)
    for unused in grid.flat[n_panels:]:
        unused.remove()
    return grid.ravel()[:n_panels]


def legend_below(
    ax: Axes, *, entries: Mapping[str, Any] | None = None, bottom: float = 0.0, caption: str = "", **options: Any
) -> None:
    """Add a legend below the label of the horizontal axis, in at most two columns.

    ``bottom`` is where what stands below the axes ends, in inches. The legend may be wider than the axes: it is in the
    middle of what they may fill of the figure. Pictures that are very small have no room for a caption.
    """
    from matplotlib.transforms import blended_transform_factory

    figure: Any = ax.get_figure(root=True)
    left, width, height = room(ax)
    look = {
        "title": literal(caption) if height >= _CAPTIONED else "",
        "loc": "upper center",
        "bbox_to_anchor": (left + width / 2, bottom),
        "bbox_transform": blended_transform_factory(figure.dpi_scale_trans, below(ax)),
        "borderaxespad": _BELOW,
    }
    _fit(ax, legend_entries([ax]) if entries is None else entries, width - 0.1, 2, look | options)


def _fit(place: Any, entries: Mapping[str, Any], width: float, n_columns: int, look: Mapping[str, Any]) -> None:
    """Add a legend to axes or to a figure that is no wider than a number of inches, in some columns at most."""
    lengths = [max(map(len, label.split("\n"))) for label in entries]
    columns = max(1, min(n_columns, len(entries)))
    while columns > 1 and _inches_of(lengths, columns) > width:
        columns -= 1
    letters = max(12, int((width - _HANDLE) / _LETTER))
    labels = ["\n".join(fill(line, letters) for line in label.split("\n")) for label in entries]
    title = "\n".join(fill(line, letters) for line in look.get("title", "").split("\n"))
    usual = {"title": title, "title_fontsize": TEXT} | {
        "frameon": False,
        "fontsize": TEXT,
        "title_fontsize": TEXT,
        "handlelength": 1.6,
        "handletextpad": 0.6,
        "columnspacing": 1.2,
    }
    place.legend(list(entries.values()), labels, ncols=columns, **dict(look) | usual)


def _inches_of(lengths: Sequence[int], columns: int) -> float:
    """Return the width of a legend whose entries, which fill column by column, have these numbers of letters."""
    return sum(_HANDLE + _LETTER * max(part, default=0) for part in np.array_split(np.array(lengths), columns))


def legend_entries(axes: Iterable[Axes]) -> dict[str, Any]:
    """Return what the legends of axes would show, each label once."""
    return {label: handle for ax in axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}


def add_legend(axes: NDArray[Any], *, new: bool, ncols: int = 3, caption: str = "") -> None:
    """Add one legend for all panels below a figure that holds nothing else, or else below the last panel."""
    figure, entries = axes.flat[0].figure, legend_entries(axes.flat)
    alone = figure.get_layout_engine() is not None and set(figure.axes) <= set(axes.flat)
    if new or alone:
        _fit(
            figure,
            entries,
            figure.get_figwidth() - 0.2,
            ncols,
            {"loc": "outside lower center", "title": literal(caption)},
        )
    else:
        legend_below(axes.flat[-1], entries=entries, caption=caption)


def label_first(ax: Axes, text: str) -> None:
    """Name the vertical axis of a panel in the first column, or of axes that are in no grid."""
    place = ax.get_subplotspec()
    if place is None or place.is_first_col():
        ax.set_ylabel(text)


def draw_forest(
    ax: Axes,
    at: ArrayLike,
    filled: ArrayLike,
    names: Sequence[str],
    *,
    xlabel: str,
    title: str,
    intervals: ArrayLike | None = None,
) -> None:
    """Draw a forest plot: a row for each name, the first one on top.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        What to draw into.
    at : array of shape (n_rows,)
        Places of the points; NaN for none.
    filled : array of bool, shape (n_rows,)
        Which points are findings, which are filled and orange.
    names : sequence of str
        Names of the rows, which may be empty.
    xlabel, title : str
        Texts of the axes.
    intervals : array of shape (n_rows, 2), optional
        Lower and upper ends.
    """
    place, rows, chosen = np.asarray(at), np.arange(len(names)), np.asarray(filled)
    if intervals is not None:
        ax.hlines(rows, *np.asarray(intervals).T, color=BAR, linewidth=2.5, zorder=2)
    for which, look in ((chosen, {"color": FINDING}), (~chosen, {"color": POINT, "markerfacecolor": "white"})):
        ax.plot(place[which], rows[which], **_POINT | look)
    ax.set_yticks(rows, [literal(name) for name in names])
    ax.set(ylim=(len(names) - 0.5, -0.5), xlabel=xlabel)
    ax.set_title(title)
    ax.locator_params(axis="x", nbins=4)
    ax.spines[["top", "right"]].set_visible(False)
