"""How estimates of miscalibration are distributed, by numbers of samples and of cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from caltest.plotting._reliability import BAR, DENSITY, LINE, POINT
from caltest.predictions._validation import validate_choice
from caltest.simulation.studies._bias import BiasStudy

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_bias_study(
    study: BiasStudy, by: str = "n_samples", *, model: str | None = None, lens: str | None = None
) -> Figure:
    """Draw the distribution of estimates as in appendix C of Vaicenavicius et al. (2019).

    A box holds the middle half of the estimates, its whiskers 90 % of them; the bar in it is the median, the point the
    mean. The line is the truth. All panels share one axis.

    Parameters
    ----------
    study : BiasStudy
        From `caltest.simulation.bias_study`; one statistic per panel.
    by : {"n_samples", "n_cells"}
        What stands on the horizontal axis: numbers of samples, in panels by statistic; or numbers of cells, in panels
        by number of samples.
    model, lens : str, optional
        Which model and lens of the study are drawn; the first by default.

    Returns
    -------
    matplotlib Figure
        A new figure.

    Raises
    ------
    ValueError
        If ``by``, ``model`` or ``lens`` is not of the study, or a statistic has no number of cells.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> from caltest.simulation import GaussianMixture1D, bias_study
    >>> matplotlib.use("Agg")
    >>> statistics = {f"{n} cells": caltest.ECE(caltest.EqualWidth(n)) for n in (5, 20)}
    >>> study = bias_study(GaussianMixture1D(1, 1), statistics, [50, 200], 100, rng=0)
    >>> [ax.get_title() for ax in caltest.plot_bias_study(study).axes]
    ['5 cells', '20 cells']
    """
    from matplotlib import pyplot as plt

    validate_choice(by, "by", ("n_samples", "n_cells"))
    frame = study.to_frame()
    for name, value in (("model", model), ("lens", lens)):
        known = list(dict.fromkeys(frame[name]))
        frame = frame[frame[name] == validate_choice(known[0] if value is None else value, name, known)]
    if by == "n_cells" and frame["n_cells"].isna().any():
        msg = '`by` must be "n_samples": a statistic of the study has no number of cells.'
        raise ValueError(msg)
    panels = frame.groupby("statistic" if by == "n_samples" else "n_samples", sort=False)
    columns = min(len(panels), 5)
    rows = -(-len(panels) // columns)
    size = (0.6 + max(2.1 * columns, 3.6), 0.9 + 2.5 * rows)
    figure, axes = plt.subplots(rows, columns, figsize=size, sharey=True, squeeze=False, layout="constrained")
    for ax, (panel, group) in zip(axes.flat, panels, strict=False):
        _draw_boxes(ax, group, by)
        ax.set_title(str(panel) if by == "n_samples" else f"{panel:,} samples", fontsize="small")
        ax.set_xlabel("samples" if by == "n_samples" else "cells")
    for ax in axes[:, 0]:
        ax.set_ylabel("estimate")
    for ax in axes.flat[len(panels) :]:
        ax.set_visible(False)
    title = f"{frame['model'].iloc[0]} through {frame['lens'].iloc[0]}"
    figure.suptitle(title + (" (line: true value)" if frame["truth"].notna().any() else ""), fontsize="medium")
    return figure


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
