"""Forest plots: a row for each model, method or pair, with a point that is filled where something is decided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from caltest.plotting._axes import POINT, literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INTERVAL = "#7d93b0"
_POINT: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 6, "color": POINT, "zorder": 3}


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
    """Draw a row for each name, the first one on top.

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
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlabel(xlabel)
    ax.set_title(title, fontsize="medium")
    ax.locator_params(axis="x", nbins=4)
    ax.spines[["top", "right"]].set_visible(False)
