"""How estimates of miscalibration are distributed, by numbers of observations and of cells (bins)."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caltest.plotting._axes import BAR, DENSITY, LINE, POINT, require, wrapped
from caltest.plotting._literal import literal
from caltest.predictions._validation import validate_choice
from caltest.simulation.studies._bias import BiasStudy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TITLE = 30  # characters of a line
_PER_INCH = 11  # characters of the title of the figure


def plot_bias_study(
    study: BiasStudy,
    axes: Sequence[Axes] | None = None,
    by: str = "n_samples",
    *,
    model: str | None = None,
    lens: str | None = None,
) -> NDArray[Any]:
    """Plot the distribution of estimates as in appendix C of Vaicenavicius et al. (2019).

    A box contains the middle half of the estimates, its whiskers 90 % of them; the bar in it is the median, the point
    the mean. The line is the truth. All panels of a new figure share one axis.

    Parameters
    ----------
    study : BiasStudy
        From `caltest.simulation.bias_study`.
    axes : sequence of matplotlib.axes.Axes, optional
        Where to draw, one for each panel; those of a new figure, with a title, by default.
    by : {"n_samples", "n_cells"}
        Horizontal axis: numbers of observations, with a panel for each statistic; or numbers of cells, with a panel
        for each number of observations.
    model, lens : str, optional
        Which model and lens of the study are drawn; the first by default.

    Returns
    -------
    array of matplotlib.axes.Axes
        What was drawn into, one for each panel.

    Raises
    ------
    TypeError
        If ``study`` is not a `BiasStudy`.
    ValueError
        If ``by``, ``model`` or ``lens`` is not of the study, or a statistic has no number of cells; if the number of
        axes is not that of the panels.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> from caltest.simulation import GaussianMixture1D, bias_study
    >>> matplotlib.use("Agg")
    >>> statistics = {f"{n} cells": caltest.ECE(caltest.EqualWidth(n)) for n in (5, 20)}
    >>> study = bias_study(GaussianMixture1D(1, 1), statistics, [50, 200], 100, rng=0)
    >>> [ax.get_title() for ax in caltest.plotting.plot_bias_study(study)]
    ['5 cells', '20 cells']
    """
    require(study, BiasStudy, "study", "bias_study")
    validate_choice(by, "by", ("n_samples", "n_cells"))
    frame = study.to_frame()
    for name, value in (("model", model), ("lens", lens)):
        known = list(dict.fromkeys(frame[name]))
        frame = frame[frame[name] == validate_choice(known[0] if value is None else value, name, known)]
    if by == "n_cells" and frame["n_cells"].isna().any():
        msg = '`by` must be "n_samples": a statistic of the study has no number of cells.'
        raise ValueError(msg)
    groups = frame.groupby("test_statistic" if by == "n_samples" else "n_samples", sort=False)
    panels = wrapped(axes, len(groups), 5, (2.4, 2.6), 0.9)
    for ax, (panel, group) in zip(panels.flat, groups, strict=True):
        _draw_boxes(ax, group, by)
        ax.set_title(
            literal(fill(str(panel), _TITLE)) if by == "n_samples" else f"{panel:,} observations", fontsize="small"
        )
        ax.set_xlabel("observations" if by == "n_samples" else "cells")
        if ax.get_subplotspec() is None or ax.get_subplotspec().is_first_col():
            ax.set_ylabel("estimate")
    if axes is None:
        title = f"{frame['model'].iloc[0]} through {frame['lens'].iloc[0]}"
        line = " (line: true value)" if frame["truth"].notna().any() else ""
        figure = panels[0].figure
        figure.suptitle(literal(fill(title + line, int(_PER_INCH * figure.get_figwidth()))), fontsize="medium")
    return panels


def _draw_boxes(ax: Any, group: Any, by: str) -> None:
    place = np.arange(len(group))
    drawn = {"whislo": "q05", "q1": "q25", "med": "q50", "mean": "mean", "q3": "q75", "whishi": "q95"}
    boxes = [{part: row[column] for part, column in drawn.items()} for row in group.to_dict("records")]
    ax.bxp(
        boxes,
        positions=place,
        widths=0.6,
        showfliers=False,
        showmeans=True,
        patch_artist=True,
        boxprops={"facecolor": DENSITY, "edgecolor": LINE},
        whiskerprops={"color": LINE},
        capprops={"color": LINE},
        medianprops={"color": POINT, "linewidth": 1.5},
        meanprops={"marker": "o", "markersize": 3, "markerfacecolor": POINT, "markeredgecolor": POINT},
    )
    truth = group["truth"].to_numpy()
    if np.isfinite(truth).all():
        ax.hlines(truth, place - 0.5, place + 0.5, color=BAR, linewidth=1.5, zorder=3)
    ax.set_xticks(place, [f"{int(value):,}" for value in group[by]], fontsize="small")
    ax.tick_params(axis="x", rotation=45)
    ax.set_xlim(-0.6, len(group) - 0.4)
