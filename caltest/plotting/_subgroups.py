"""Subgroups as a forest plot: average predictions and observed frequencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from caltest.plotting._axes import LINE, NAME_WIDTH, draw_forest, save_drawn
from caltest.results._description import percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save_subgroups(records: Sequence[Mapping[str, Any]], words: tuple[str, str], alpha: float, path: Path) -> None:
    """Write the picture of subgroups: a tick for the average prediction and a point for the observed frequency.

    Parameters
    ----------
    records : sequence of mappings
        ``subgroup``, ``n_samples``, ``predicted``, ``observed`` and ``rejected`` of each subgroup.
    words : tuple of str
        What the two numbers are.
    alpha : float
        The level of the tests.
    path : Path
        File name; its suffix decides the format.
    """
    names = [fill(f"{one['subgroup']} ({one['n_samples']:,})", NAME_WIDTH) for one in records]

    def draw(figure: Figure) -> None:
        ax = figure.subplots()
        low = [100 * one["predicted"] for one in records]
        high = [100 * one["observed"] for one in records]
        filled = [one["rejected"] for one in records]
        draw_forest(
            ax,
            high,
            filled,
            names,
            xlabel=f"{words[0]} (tick) and {words[1]} (point), %",
            title="subgroups (observations)",
            intervals=list(zip(low, high, strict=True)),
        )
        ax.plot(low, range(len(names)), linestyle="none", marker="|", markersize=13, markeredgewidth=2, color=LINE)
        ax.margins(x=0.08)

    size = 5.4 + 0.08 * max(map(len, names)), 1.6 + 0.3 * max(len(names), 3)
    save_drawn(draw, size, f"Filled: rejected at the {percent(alpha)} level after the adjustment.", path)
