"""How often tests reject: size by number of samples, power by amount, under-confidence in panels of its own."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest.plotting._reliability import DENSITY, LINE
from caltest.predictions._validation import validate_choice
from caltest.simulation.studies._power import PowerStudy
from caltest.simulation.studies._size import RejectionStudy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = ("#101418", "#d9643a", "#2f6fa7", "#4f9153", "#9a6fb0", "#b8901f", "#6f7f8f", "#c2557a")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_TITLE = 44  # characters of a line
_SPREAD = 0.012  # of the width between tests, so that their bars do not hide each other


def plot_size_study(study: RejectionStudy, *, level: float | None = None) -> Figure:
    """Draw rejection rates under calibrated models against the number of samples.

    One panel for each model and lens. The broken line is the level, the pale area above it is what binomial scatter
    explains, familywise over all rows of the study: a point above the area belongs to a test that rejects too often.

    Parameters
    ----------
    study : RejectionStudy
        From `caltest.simulation.size_study`.
    level : float, optional
        Which level is drawn; 0.05, or the first of a study without it, by default.

    Returns
    -------
    matplotlib Figure
        A new figure.

    Raises
    ------
    ValueError
        If ``study`` is no `RejectionStudy`, or ``level`` is not of the study.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> from caltest.simulation import DirichletModel, size_study
    >>> matplotlib.use("Agg")
    >>> study = size_study(DirichletModel(3), caltest.TemperatureScore(), [50, 200], 100, n_resamples=99, rng=0)
    >>> [ax.get_title() for ax in caltest.plot_size_study(study).axes]
    ['DirichletModel(n_classes=3), Canonical()']
    """
    from matplotlib import pyplot as plt

    if not isinstance(study, RejectionStudy):
        msg = f"`study` must be a RejectionStudy from size_study(...), got {type(study).__name__}."
        raise ValueError(msg)
    chosen = _level(study, level)
    frame = study.to_frame()
    panels = frame[frame["level"] == chosen].groupby(["model", "lens"], sort=False)
    columns = min(len(panels), 3)
    rows = -(-len(panels) // columns)
    size = (1.0 + 4.0 * columns, 1.2 + 3.0 * rows)
    figure, axes = plt.subplots(rows, columns, figsize=size, sharey=True, squeeze=False, layout="constrained")
    for ax, (names, group) in zip(axes.flat, panels, strict=False):
        _draw_sizes(ax, group, chosen)
        ax.set_title(fill(", ".join(names), _TITLE), fontsize="small")
        ax.set_xlabel("samples")
    for ax in axes[:, 0]:
        ax.set_ylabel("rejection rate")
    axes[0, 0].set_ylim(bottom=0)
    for ax in axes.flat[len(panels) :]:
        ax.set_visible(False)
    _legend(figure, axes[0, 0])
    return figure


def plot_power_study(study: PowerStudy, *, lens: str | None = None, level: float | None = None) -> Figure:
    r"""Draw rejection rates against the amount of miscalibration.

    One row of panels for each family, under-confident models apart, one column for each number of samples. Bars are
    95 % intervals of the power, the broken line is the level. Tests stand a little beside each other, so that bars can
    be told apart.

    Parameters
    ----------
    study : PowerStudy
        From `caltest.simulation.power_study`.
    lens : str, optional
        Which lens of the study is drawn; the first by default.
    level : float, optional
        Which level is drawn; 0.05, or the first of a study without it, by default.

    Returns
    -------
    matplotlib Figure
        A new figure.

    Raises
    ------
    ValueError
        If ``study`` is no `PowerStudy`, or ``lens`` or ``level`` is not of the study.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> from caltest.simulation import DirichletModel, Temperature, power_study
    >>> matplotlib.use("Agg")
    >>> study = power_study(lambda t: DirichletModel(3, 1.0, Temperature(t)), [0.8, 1.0, 1.25],
    ...                     [caltest.ECE(), caltest.TemperatureScore()], 200, 50, n_resamples=99, rng=0)
    >>> [ax.get_title() for ax in caltest.plot_power_study(study).axes]
    ['<lambda>: under-confident\n200 samples', '<lambda>: over-confident\n200 samples']
    """
    from matplotlib import pyplot as plt

    if not isinstance(study, PowerStudy):
        msg = f"`study` must be a PowerStudy from power_study(...), got {type(study).__name__}."
        raise ValueError(msg)
    lenses = list(dict.fromkeys(study.pvalues["lens"]))
    seen = validate_choice(lenses[0] if lens is None else lens, "lens", lenses)
    chosen = _level(study, level)
    panels = [(name, frame[(frame["lens"] == seen) & (frame["level"] == chosen)]) for name, frame in study.panels()]
    sizes = sorted(study.pvalues["n_samples"].unique())
    figure, axes = plt.subplots(
        len(panels),
        len(sizes),
        figsize=(1.0 + 3.3 * len(sizes), 1.0 + 2.7 * len(panels)),
        sharex="row",
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for row, (name, frame) in zip(axes, panels, strict=True):
        for ax, n in zip(row, sizes, strict=True):
            _draw_curves(ax, frame[frame["n_samples"] == n], chosen)
            ax.set_title(f"{fill(name, _TITLE)}\n{n:,} samples", fontsize="small")
            ax.set_xlabel("amount")
        row[0].set_ylabel("rejection rate")
    _legend(figure, axes[0, 0])
    return figure


def _level(study: RejectionStudy, level: float | None) -> float:
    usual = 0.05 if 0.05 in study.levels else study.levels[0]
    chosen = usual if level is None else level
    if chosen not in study.levels:
        msg = f"`level` must be one of {', '.join(map(str, study.levels))}, got {level!r}."
        raise ValueError(msg)
    return chosen


def _legend(figure: Figure, ax: Axes) -> None:
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize="small")


def _draw_sizes(ax: Axes, frame: Any, level: float) -> None:
    explained = frame.groupby("n_samples")[["limit", "n_replicates"]].max()
    share = explained["limit"] / explained["n_replicates"]
    place = {n: float(number) for number, n in enumerate(explained.index)}
    edges = np.array([-0.5, len(place) - 0.5]) if len(place) == 1 else np.array(list(place.values()))
    ax.axhline(level, color=LINE, linewidth=1, linestyle=(0, (4, 3)), label=f"level {level:g}")
    ax.fill_between(edges, level, np.broadcast_to(share, len(edges)), color=DENSITY, linewidth=0, label="scatter")
    groups = list(frame.groupby("test", sort=False))
    for number, (test, rows) in enumerate(groups):
        beside = _SPREAD * len(place) * (number - (len(groups) - 1) / 2)
        ax.plot(rows["n_samples"].map(place) + beside, rows["rate"], label=test, **_look(number))
    ax.set_xticks(list(place.values()), [f"{n:,}" for n in place])


def _look(number: int) -> dict[str, Any]:
    color, marker = COLORS[number % len(COLORS)], MARKERS[number % len(MARKERS)]
    return {"color": color, "marker": marker, "markersize": 4, "linewidth": 1.2}


def _draw_curves(ax: Axes, frame: Any, level: float) -> None:
    ax.axhline(level, color=LINE, linewidth=1, linestyle=(0, (4, 3)), label=f"level {level:g}")
    amounts = frame["amount"]
    width = (amounts.max() - amounts.min()) or 1.0
    groups = list(frame.groupby("test", sort=False))
    for number, (test, rows) in enumerate(groups):
        beside = _SPREAD * width * (number - (len(groups) - 1) / 2)
        ax.errorbar(
            rows["amount"] + beside,
            rows["rate"],
            yerr=[rows["rate"] - rows["lower"], rows["upper"] - rows["rate"]],
            elinewidth=0.8,
            label=test,
            **_look(number),
        )
    ax.set_ylim(-0.03, 1.03)
