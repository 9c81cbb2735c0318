"""Subgroups as a forest plot: average predictions and observed frequencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from caltest.plotting._axes import LINE, NAME_WIDTH, draw_forest, dress, save_drawn
from caltest.plotting._heading import first_sentence, head_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from caltest.results import Verdict

_PER_INCH = 13  # characters of the caption


def save_subgroups(records: Sequence[Mapping[str, Any]], words: tuple[str, str], verdict: Verdict, path: Path) -> None:
    """Write the picture of subgroups: a tick for the average prediction and a point for the observed frequency.

    Parameters
    ----------
    records : sequence of mappings
        ``subgroup``, ``n_samples``, ``predicted``, ``observed`` and ``rejected`` of each subgroup.
    words : tuple of str
        What the two numbers are.
    verdict : Verdict
        What the tests found, which stands above.
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
            title="",
            intervals=list(zip(low, high, strict=True)),
        )
        ax.plot(low, range(len(names)), linestyle="none", marker="|", markersize=13, markeredgewidth=2, color=LINE)
        ax.margins(x=0.08)
        dress(ax)
        head_figure(figure, first_sentence(verdict))

    size = 5.4 + 0.08 * max(map(len, names)), 1.6 + 0.3 * max(len(names), 3)
    caption = "In brackets: observations. Filled: rejected after the adjustment for the number of subgroups."
    caption += " Tests allow for labels that depend on each other in time." * verdict.in_time
    save_drawn(draw, size, fill(caption, round(_PER_INCH * size[0])), path)
