"""Figures of studies: distributions of estimates, and how often tests reject."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caltest.plotting._axes import (
    COLORS,
    DASHED,
    DENSITY,
    LINE,
    MARKERS,
    POINT,
    TEXT,
    add_legend,
    in_one_look,
    label_first,
    literal,
    require,
    several,
    wrapped,
)
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import validate_choice
from caltest.results._description import percent
from caltest.simulation.studies._bias import BiasStudy
from caltest.simulation.studies._power import PowerStudy
from caltest.simulation.studies._size import RejectionStudy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TITLE, _REJECTION_TITLE = 30, 44  # characters of a line
_SPREAD = 0.012  # of the width between tests
_PER_INCH = 13  # characters of the title of the figure


@in_one_look
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

    See Also
    --------
    caltest.simulation.bias_study : Computes what is drawn.

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
        refuse('`by` must be "n_samples": a statistic of the study has no number of cells.')
    groups = frame.groupby("test_statistic" if by == "n_samples" else "n_samples", sort=False)
    panels = wrapped(axes, len(groups), 5, (2.4, 2.6), 0.9)
    for ax, (panel, group) in zip(panels.flat, groups, strict=True):
        _draw_boxes(ax, group, by)
        title = literal(fill(str(panel), _TITLE)) if by == "n_samples" else f"{panel:,} observations"
        ax.set_title(title)
        ax.set_xlabel("observations" if by == "n_samples" else "cells")
        label_first(ax, "estimate")
    if axes is None:
        title = f"{frame['model'].iloc[0]} through {frame['lens'].iloc[0]}"
        line = " (line: true value)" if frame["truth"].notna().any() else ""
        figure = panels[0].figure
        figure.suptitle(literal(fill(title + line, int(_PER_INCH * figure.get_figwidth()))), fontsize=TEXT)
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
        ax.hlines(truth, place - 0.5, place + 0.5, color=COLORS[1], linewidth=1.5, zorder=3)
    ax.set_xticks(place, [f"{int(value):,}" for value in group[by]])
    ax.tick_params(axis="x", rotation=90)
    ax.set_xlim(-0.6, len(group) - 0.4)


@in_one_look
def plot_size_study(
    study: RejectionStudy, axes: Sequence[Axes] | None = None, *, level: float | None = None
) -> NDArray[Any]:
    """Plot rejection rates under calibrated models against the number of observations.

    There is a panel for each model and lens. The dashed line is the level, the pale area above it is what binomial
    variation explains, with familywise error 0.001 over all rows of the study: a point above the area belongs to a test
    that rejects too often.

    Parameters
    ----------
    study : RejectionStudy
        From `caltest.simulation.size_study`.
    axes : sequence of matplotlib.axes.Axes, optional
        Where to draw, one for each panel; those of a new figure by default.
    level : float, optional
        Which level is drawn; 0.05, or the first of a study without it, by default.

    Returns
    -------
    array of matplotlib.axes.Axes
        What was drawn into, one for each panel.

    Raises
    ------
    TypeError
        If ``study`` is not a `RejectionStudy`.
    ValueError
        If ``level`` is not of the study, or the number of axes is not that of the panels.

    See Also
    --------
    caltest.simulation.size_study : Computes what is drawn.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> from caltest.simulation import DirichletModel, size_study
    >>> matplotlib.use("Agg")
    >>> study = size_study(DirichletModel(3), caltest.TemperatureScore(), [50, 200], 20, n_resamples=99, rng=0)
    >>> [ax.get_title() for ax in caltest.plotting.plot_size_study(study)]
    ['DirichletModel(3), Canonical()']
    """
    require(study, RejectionStudy, "study", "size_study")
    chosen = _level(study, level)
    frame = study.to_frame()
    groups = frame[frame["level"] == chosen].groupby(["model", "lens"], sort=False)
    looks = _looks(frame)
    panels = wrapped(axes, len(groups), 3, (4.0, 3.0), 1.2)
    for ax, (names, group) in zip(panels.flat, groups, strict=True):
        _draw_sizes(ax, group, chosen, looks)
        ax.set_title(literal(fill(", ".join(names), _REJECTION_TITLE)))
        ax.set_xlabel("observations")
        label_first(ax, "rejection rate")
        ax.set_ylim(bottom=0)
    add_legend(panels, new=axes is None)
    return panels


@in_one_look
def plot_power_study(
    study: PowerStudy, axes: Sequence[Axes] | None = None, *, lens: str | None = None, level: float | None = None
) -> NDArray[Any]:
    r"""Plot rejection rates against the amount of miscalibration.

    There is a row of panels for each family, with under-confident models separated, and a column for each number of
    observations. Bars are 95 % intervals of the power, the dashed line is the level. Tests are drawn a little beside
    each other, so that their bars do not overlap.

    Parameters
    ----------
    study : PowerStudy
        From `caltest.simulation.power_study`.
    axes : sequence of matplotlib.axes.Axes, optional
        Where to draw, one for each panel, row by row; those of a new figure by default.
    lens : str, optional
        Which lens of the study is drawn. By default the first one, or all if every test has one lens only.
    level : float, optional
        Which level is drawn; 0.05, or the first of a study without it, by default.

    Returns
    -------
    array of matplotlib.axes.Axes of shape (n_families, n_sizes)
        What was drawn into.

    Raises
    ------
    TypeError
        If ``study`` is not a `PowerStudy`.
    ValueError
        If ``lens`` or ``level`` is not of the study, or the number of axes is not that of the panels.

    See Also
    --------
    caltest.simulation.power_study : Computes what is drawn.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> from caltest.simulation import DirichletModel, Temperature, power_study
    >>> matplotlib.use("Agg")
    >>> study = power_study(lambda t: DirichletModel(3, 1.0, Temperature(t)), [0.8, 1.0, 1.25],
    ...                     [caltest.ECE(), caltest.TemperatureScore()], 200, 10, n_resamples=99, rng=0)
    >>> [ax.get_title() for ax in caltest.plotting.plot_power_study(study).flat]
    ['<lambda>: under-confident\n200 observations', '<lambda>: over-confident\n200 observations']
    """
    require(study, PowerStudy, "study", "power_study")
    chosen, lenses = _level(study, level), _lenses(study, lens)
    groups = [(name, frame[frame["lens"].isin(lenses) & (frame["level"] == chosen)]) for name, frame in study.panels()]
    sizes = sorted(study.pvalues["n_samples"].unique())
    looks = _looks(study.pvalues)
    shape = len(groups), len(sizes)
    size = 1.0 + 3.3 * len(sizes), 1.0 + 2.8 * len(groups)
    panels = several(axes, shape, size, sharex="row", sharey=True).reshape(shape)
    for row, (name, frame) in zip(panels, groups, strict=True):
        for ax, n in zip(row, sizes, strict=True):
            _draw_curves(ax, frame[frame["n_samples"] == n], chosen, looks)
            ax.set_title(literal(f"{fill(name, _REJECTION_TITLE)}\n{n:,} observations"))
            ax.set_xlabel("amount")
        row[0].set_ylabel("rejection rate")
    add_legend(panels, new=axes is None)
    return panels


def _level(study: RejectionStudy, level: float | None) -> float:
    usual = 0.05 if 0.05 in study.levels else study.levels[0]
    chosen = usual if level is None else level
    if chosen not in study.levels:
        refuse(f"`level` must be one of {', '.join(map(str, study.levels))}, got {level!r}.")
    return chosen


def _lenses(study: PowerStudy, lens: str | None) -> list[str]:
    """Return the names of the lenses that are drawn together: one for each test."""
    used = study.pvalues[["family", "test", "lens"]].drop_duplicates()
    lenses = list(dict.fromkeys(used["lens"]))
    if lens is None:
        return lenses[:1] if used.duplicated(["family", "test"]).any() else lenses
    return [validate_choice(lens, "lens", lenses)]


def _looks(frame: Any) -> dict[str, dict[str, Any]]:
    """Return colour and marker of every test, the same in all panels."""
    return {
        test: {"color": color, "marker": marker, "markersize": 4, "linewidth": 1.2}
        for test, color, marker in zip(frame["test"].unique(), cycle(COLORS), cycle(MARKERS), strict=False)
    }


def _beside(frame: Any, width: float) -> Iterator[tuple[str, Any, float]]:
    """Yield the rows of each test, and how far beside their place they are drawn, so that no bar hides another one."""
    groups = list(frame.groupby("test", sort=False))
    for number, (test, rows) in enumerate(groups):
        yield test, rows, _SPREAD * width * (number - (len(groups) - 1) / 2)


def _draw_sizes(ax: Axes, frame: Any, level: float, looks: dict[str, dict[str, Any]]) -> None:
    explained = frame.groupby("n_samples")[["limit", "n_replicates"]].max()
    share = explained["limit"] / explained["n_replicates"]
    place = {n: float(number) for number, n in enumerate(explained.index)}
    edges = np.array([-0.5, len(place) - 0.5]) if len(place) == 1 else np.array(list(place.values()))
    ax.axhline(level, color=LINE, label=f"{percent(level)} level", **DASHED)
    highest = np.broadcast_to(share, len(edges))
    ax.fill_between(edges, level, highest, color=DENSITY, linewidth=0, label="binomial variation")
    for test, rows, beside in _beside(frame, len(place)):
        ax.plot(rows["n_samples"].map(place) + beside, rows["rate"], label=literal(test), **looks[test])
    ax.set_xticks(list(place.values()), [f"{n:,}" for n in place])


def _draw_curves(ax: Axes, frame: Any, level: float, looks: dict[str, dict[str, Any]]) -> None:
    ax.axhline(level, color=LINE, label=f"{percent(level)} level", **DASHED)
    amounts = frame["amount"]
    width = (amounts.max() - amounts.min()) or 1.0
    for test, rows, beside in _beside(frame, width):
        ax.errorbar(
            rows["amount"] + beside,
            rows["rate"],
            yerr=[rows["rate"] - rows["lower"], rows["upper"] - rows["rate"]],
            elinewidth=0.8,
            label=literal(test),
            **looks[test],
        )
    ax.set_ylim(-0.03, 1.03)
