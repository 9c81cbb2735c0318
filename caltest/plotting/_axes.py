"""What the pictures have in common: colours, names, axes, and files that hold them."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    figure.supxlabel(literal(caption), fontsize="small")
    save_figure(figure, path)


POINT = "#101418"
BAR = "#d9643a"
DENSITY = "#c3d2e3"
LINE = "#5a6470"
COLORS = (POINT, BAR, "#2f6fa7", "#4f9153", "#9a6fb0", "#b8901f", "#6f7f8f", "#c2557a")
"""Colours of several series in one panel."""

DASHED: dict[str, Any] = {"linewidth": 1, "linestyle": (0, (4, 3))}
"""How reference lines look."""

STAR: dict[str, Any] = {
    **{"linestyle": "none", "marker": "*", "markersize": 12, "zorder": 5},
    **{"markeredgecolor": "white", "markeredgewidth": 0.6},
}
"""How the smallest values of curves look."""

NAME_WIDTH = 44
"""Characters of a line of a name in a legend."""

_INTERVAL = "#7d93b0"
_POINT: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 6, "color": POINT, "zorder": 3}
_BELOW = 4.6  # heights of a letter between axes and legend: those of tick labels and axis label


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


def legend_below(ax: Axes, **options: Any) -> None:
    """Add a legend below the label of the horizontal axis, two columns wide unless told otherwise."""
    look: dict[str, Any] = {"ncols": 2, "frameon": False, "fontsize": "small", "borderaxespad": _BELOW}
    ax.legend(**{"loc": "upper center", "bbox_to_anchor": (0.5, 0.0)} | look | options)


def legend_entries(axes: Iterable[Axes]) -> dict[str, Any]:
    """Return what the legends of axes would show, each label once."""
    return {label: handle for ax in axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}


def add_legend(axes: NDArray[Any], *, new: bool, ncols: int = 3) -> None:
    """Add one legend for all panels: below a new figure, or in the first axes of the caller."""
    entries = legend_entries(axes.flat)
    look: dict[str, Any] = {"loc": "outside lower center", "ncols": ncols} if new else {}
    place = axes.flat[0].figure if new else axes.flat[0]
    place.legend(entries.values(), entries, frameon=False, fontsize="small", **look)


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
        Which points are filled.
    names : sequence of str
        Names of the rows, which may be empty.
    xlabel, title : str
        Texts of the axes.
    intervals : array of shape (n_rows, 2), optional
        Lower and upper ends.
    """
    place, rows, chosen = np.asarray(at), np.arange(len(names)), np.asarray(filled)
    if intervals is not None:
        ax.hlines(rows, *np.asarray(intervals).T, color=_INTERVAL, linewidth=2.5, zorder=2)
    for which, face in ((chosen, POINT), (~chosen, "white")):
        ax.plot(place[which], rows[which], markerfacecolor=face, **_POINT)
    ax.set_yticks(rows, [literal(name) for name in names])
    ax.set(ylim=(len(names) - 0.5, -0.5), xlabel=xlabel)
    ax.set_title(title, fontsize="medium")
    ax.locator_params(axis="x", nbins=4)
    ax.spines[["top", "right"]].set_visible(False)
