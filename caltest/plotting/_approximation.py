"""How well estimators approximate the truth, by evaluation size: figure 2 of Posocco and Bonnefoy (2021)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from caltest.plotting._axes import COLORS, add_legend, require, several
from caltest.plotting._literal import literal
from caltest.predictions._validation import validate_choice
from caltest.simulation.replications._approximation import TRUTHS, ApproximationStudy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STYLES = ("-", (0, (4, 2)), (0, (1, 1.5)))


def plot_approximation(
    study: ApproximationStudy, axes: Sequence[Axes] | None = None, truth: str = "level set"
) -> NDArray[Any]:
    """Plot the median over the models of the 95th percentile of the relative error against the evaluation size.

    Both axes are logarithmic; lower is better. Estimators whose names are the same up to a comma share a colour, and
    those whose names are the same after it share a line style. Standard errors are in ``study.to_frame()``: they are
    those of a level that all estimators share, and would hide the differences.

    Parameters
    ----------
    study : ApproximationStudy
        From `caltest.simulation.approximation_study`.
    axes : sequence of matplotlib.axes.Axes, optional
        Where to draw, one for each setting; those of a new figure by default.
    truth : {"level set", "large sample"}
        What estimates are compared with.

    Returns
    -------
    array of matplotlib.axes.Axes
        What was drawn into, one for each setting.

    Raises
    ------
    TypeError
        If ``study`` is not an `ApproximationStudy`.
    ValueError
        If ``truth`` is unknown, or the number of axes is not that of the settings.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> from caltest.simulation import GaussianMixture1D, approximation_study
    >>> matplotlib.use("Agg")
    >>> study = approximation_study(GaussianMixture1D(0, -1), None, [30, 100], 5, n_holdout=1000, rng=0)
    >>> [ax.get_title() for ax in caltest.plotting.plot_approximation(study)]
    ['confidence', 'class-wise']
    """
    from matplotlib.ticker import NullFormatter, ScalarFormatter

    require(study, ApproximationStudy, "study", "approximation_study")
    frame = study.to_frame()
    frame = frame[frame["truth"] == validate_choice(truth, "truth", TRUTHS)]
    heads, tails = (list(dict.fromkeys(name.partition(", ")[part] for name in frame["estimator"])) for part in (0, 2))
    sizes = sorted(frame["n_samples"].unique())
    settings = list(frame["setting"].unique())
    new, panels = axes is None, several(axes, (1, len(settings)), (1.0 + 5.0 * len(settings), 5.6), sharey=True)
    for ax, setting in zip(panels.flat, settings, strict=True):
        for name, rows in frame[frame["setting"] == setting].groupby("estimator", sort=False):
            head, _, tail = str(name).partition(", ")
            color = COLORS[heads.index(head) % len(COLORS)]
            style = _STYLES[tails.index(tail) % len(_STYLES)]
            ax.plot(rows["n_samples"], rows["median"], color=color, linestyle=style, linewidth=1.5, label=literal(name))
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xticks(sizes, [str(size) for size in sizes])
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.yaxis.set_major_formatter(ScalarFormatter())
        ax.yaxis.set_minor_formatter(ScalarFormatter())
        ax.tick_params(which="both", labelsize="small")
        ax.grid(which="both", color="#e6e9ee", linewidth=0.6)
        ax.set_axisbelow(True)
        ax.set_title(literal(setting), fontsize="medium")
        ax.set_xlabel("observations of an evaluation set")
    panels.flat[0].set_ylabel("95th percentile of the relative error, median over models")
    add_legend(panels, new=new, ncols=4)
    return panels
