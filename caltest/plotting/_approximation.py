"""How well estimators approximate the truth, by evaluation size: figure 2 of Posocco and Bonnefoy (2021)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from caltest.plotting._reliability import BAR, LINE, POINT
from caltest.predictions._validation import validate_choice
from caltest.simulation.replications._approximation import TRUTHS, ApproximationStudy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = (POINT, BAR, "#3f7cac", "#7a9e3f", "#8e5ea2", LINE)
_STYLES = ("-", (0, (4, 2)), (0, (1, 1.5)))


def plot_approximation(study: ApproximationStudy, truth: str = "level set") -> Figure:
    """Draw the median over the models of the 95th percentile of the relative error against the evaluation size.

    Both axes are logarithmic; lower is better. Estimators whose names are the same up to a comma share a colour, and
    those whose names are the same after it a style of line. Standard errors are in ``study.to_frame()``: they are
    those of a level, which all estimators share, and would hide the differences.

    Parameters
    ----------
    study : ApproximationStudy
        From `caltest.simulation.approximation_study`.
    truth : {"level set", "large sample"}
        What estimates are compared with.

    Returns
    -------
    matplotlib Figure
        A new figure, one panel for each setting.

    Raises
    ------
    ValueError
        If ``truth`` is neither of the two, or ``study`` is no `ApproximationStudy`.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> from caltest.simulation import GaussianMixture1D, approximation_study
    >>> matplotlib.use("Agg")
    >>> study = approximation_study(GaussianMixture1D(0, -1), None, [30, 100], 20, n_holdout=5000, rng=0)
    >>> [ax.get_title() for ax in caltest.plot_approximation(study).axes]
    ['confidence', 'class-wise']
    """
    from matplotlib import pyplot as plt
    from matplotlib.ticker import NullFormatter, ScalarFormatter

    if not isinstance(study, ApproximationStudy):
        msg = f"`study` must be an ApproximationStudy from approximation_study(...), got {type(study).__name__}."
        raise ValueError(msg)
    frame = study.to_frame()
    frame = frame[frame["truth"] == validate_choice(truth, "truth", TRUTHS)]
    heads, tails = (list(dict.fromkeys(name.partition(", ")[part] for name in frame["estimator"])) for part in (0, 2))
    sizes = sorted(frame["n_samples"].unique())
    settings = list(frame["setting"].unique())
    figure, axes = plt.subplots(1, len(settings), figsize=(11, 5.6), sharey=True, layout="constrained")
    for ax, setting in zip(axes, settings, strict=True):
        for name, rows in frame[frame["setting"] == setting].groupby("estimator", sort=False):
            head, _, tail = str(name).partition(", ")
            colour = _COLOURS[heads.index(head) % len(_COLOURS)]
            style = _STYLES[tails.index(tail) % len(_STYLES)]
            ax.plot(rows["n_samples"], rows["median"], color=colour, linestyle=style, linewidth=1.5, label=name)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xticks(sizes, [str(size) for size in sizes])
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.yaxis.set_major_formatter(ScalarFormatter())
        ax.yaxis.set_minor_formatter(ScalarFormatter())
        ax.tick_params(which="both", labelsize="small")
        ax.grid(which="both", color="#e6e9ee", linewidth=0.6)
        ax.set_axisbelow(True)
        ax.set_title(setting, fontsize="medium")
        ax.set_xlabel("rows of an evaluation set")
    axes[0].set_ylabel("95th percentile of the relative error, median over models")
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize="small", frameon=False
    )
    return figure
