"""How often tests reject: power curves, under-confident models always in panels of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from caltest._validation import validate_choice
from caltest.plotting.reliability import LINE
from caltest.simulation.power import PowerStudy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = ("#101418", "#d9643a", "#2f6fa7", "#4f9153", "#9a6fb0", "#b8901f", "#6f7f8f", "#c2557a")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_SPREAD = 0.012  # of the width between tests, so that their bars do not hide each other


def plot_power_study(study: PowerStudy, *, lens: str | None = None, level: float | None = None) -> Figure:
    """Draw rejection rates against the amount of miscalibration.

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
    ['<lambda>: under-confident, 200 samples', '<lambda>: over-confident, 200 samples']
    """
    from matplotlib import pyplot as plt

    if not isinstance(study, PowerStudy):
        msg = f"`study` must be a PowerStudy from power_study(...), got {type(study).__name__}."
        raise ValueError(msg)
    lenses = list(dict.fromkeys(study.pvalues["lens"]))
    seen = validate_choice(lenses[0] if lens is None else lens, "lens", lenses)
    usual = 0.05 if 0.05 in study.levels else study.levels[0]
    chosen = usual if level is None else level
    if chosen not in study.levels:
        msg = f"`level` must be one of {', '.join(map(str, study.levels))}, got {level!r}."
        raise ValueError(msg)
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
            ax.set_title(f"{name}, {n:,} samples", fontsize="small")
            ax.set_xlabel("amount")
        row[0].set_ylabel("rejection rate")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure


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
            color=COLORS[number % len(COLORS)],
            marker=MARKERS[number % len(MARKERS)],
            markersize=4,
            linewidth=1.2,
            elinewidth=0.8,
            label=test,
        )
    ax.set_ylim(-0.03, 1.03)
