"""Subgroups, or labels of one observation, as a forest plot: average predictions and observed frequencies."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from caltest.hypothesis_tests._parts_table import PartsTable
from caltest.plotting._axes import LINE, NAME_WIDTH, draw_forest, in_one_look, require, save_drawn, single
from caltest.plotting._heading import first_sentence

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PER_INCH = 13  # characters of the caption


@in_one_look
def plot_parts(table: PartsTable, ax: Axes | None = None) -> Axes:
    """Plot the tests of several parts as a forest plot: a tick for the average prediction, a point for what happened.

    The line between them is the difference of the averages. Points are filled where calibration is rejected after the
    adjustment for the number of parts. A part can be rejected although its averages agree, because the tests look at
    all predictions. Of more than 25 segments, those with the smallest p-values are drawn.

    Parameters
    ----------
    table : SubgroupTests or MultilabelTable
        From `caltest.subgroup_tests` or `caltest.multilabel_table`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes by default. Names are beside the axes: a figure with ``layout="constrained"`` makes
        room for them.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn into.

    Raises
    ------
    TypeError
        If ``table`` has no parts.

    See Also
    --------
    caltest.score_decomposition : Computes what is drawn.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> matplotlib.use("Agg")
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> table = caltest.subgroup_tests(y_true, y_prob, subgroup=y_prob.argmax(axis=1) < 5, n_resamples=99, rng=0)
    >>> caltest.plotting.plot_parts(table).get_xlabel()
    'confidence (tick) and right (point), %'
    """
    require(table, PartsTable, "table", "subgroup_tests or multilabel_table")
    means, names = table.means(), _names(table)
    parts = [means[number] for number in table.drawn_parts]
    predicted, observed = ([100 * one[name] for one in parts] for name in ("predicted", "observed"))
    average, happened = table.words
    ax = single(ax, _size(names))
    draw_forest(
        ax,
        observed,
        [one["rejected"] for one in parts],
        names,
        xlabel=f"{average} (tick) and {happened} (point), %",
        title=first_sentence(table.verdict),
        intervals=list(zip(predicted, observed, strict=True)),
    )
    ax.plot(predicted, range(len(names)), linestyle="none", marker="|", markersize=13, markeredgewidth=2, color=LINE)
    ax.margins(x=0.08)
    return ax


def save_parts(table: PartsTable, path: Path) -> None:
    """Write the picture of several parts; the suffix of ``path`` decides the format."""
    size = _size(_names(table))
    (_, several), shown = table._what, len(table.drawn_parts)
    caption = f"In brackets: observations. Filled: rejected after the adjustment for the number of {several}."
    caption += f" The {shown} of {len(table)} with the smallest p-values." * (shown < len(table))
    caption += " Tests allow for labels that depend on each other in time." * table.verdict.in_time
    save_drawn(
        lambda figure: plot_parts(table, figure.subplots()), size, fill(caption, round(_PER_INCH * size[0])), path
    )


def _names(table: PartsTable) -> list[str]:
    means = table.means()
    return [
        fill(f"{table.labels[number]} ({means[number]['n_samples']:,})", NAME_WIDTH) for number in table.drawn_parts
    ]


def _size(names: list[str]) -> tuple[float, float]:
    return 5.4 + 0.08 * max(map(len, names)), 1.6 + 0.3 * max(len(names), 3)
