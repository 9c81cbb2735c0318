"""Figures of published studies: agreement of metrics, approximation of the truth, random labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caltest.hypothesis_tests._gce_table import gce_name
from caltest.plotting._axes import (
    COLORS,
    LINE,
    POINT,
    add_legend,
    color_of,
    dress,
    in_one_look,
    legend_below,
    literal,
    require,
    several,
    single,
)
from caltest.predictions.inputs._validation import validate_choice
from caltest.simulation.replications._agreement import MetricAgreement
from caltest.simulation.replications._approximation import TRUTHS, ApproximationStudy
from caltest.simulation.replications._label_noise import LabelNoiseStudy
from caltest.statistics import GCE, Statistic

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SCHEMES = {"equal-width": "width", "equal-mass": "mass"}
_AGREE = "#23507d"
_UNKNOWN = "#b8bec6"
_STYLES = ("-", (0, (4, 2)), (0, (1, 1.5)))
_LABEL_NOISE_STYLES: dict[str, Any] = {"clean": "-", "noisy": (0, (4, 2))}
_ALPHA = 0.05


@in_one_look
def plot_metric_agreement(agreement: MetricAgreement, ax: Axes | None = None) -> Axes:
    """Plot the rank correlation of any two metrics over the models as a heat map.

    Blue means that two metrics rank the models alike, white that the rankings are unrelated, brown that they are
    opposite; grey means that a metric is the same on all models. Metrics keep their order, which for the 32 of the
    paper is that of its appendix C. The single column on the right is the correlation of each metric with itself over
    numbers of cells (bins).

    Parameters
    ----------
    agreement : MetricAgreement
        From `caltest.simulation.metric_agreement`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes by default. For 32 metrics a figure needs 12 inches and ``layout="constrained"``.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn into.

    Raises
    ------
    TypeError
        If ``agreement`` is not a `MetricAgreement`.

    See Also
    --------
    caltest.simulation.metric_agreement : Computes what is drawn.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> matplotlib.use("Agg")
    >>> problem = caltest.datasets.load_digits_predictions()
    >>> agreement = caltest.simulation.metric_agreement(*problem, n_cells=[5, 10], n_resamples=19, rng=0)
    >>> ax = caltest.plotting.plot_metric_agreement(agreement)
    >>> ax.get_title()
    'Rank correlation of 32 metrics over 4 models'
    """
    from matplotlib.colors import LinearSegmentedColormap

    require(agreement, MetricAgreement, "agreement", "metric_agreement")
    n_metrics = len(agreement.metrics)
    size = max(0.23 * n_metrics, 2.4)
    ax = single(ax, (size + 5, size + 1.1))
    colours = LinearSegmentedColormap.from_list("agreement", [COLORS[5], "white", _AGREE]).with_extremes(bad=_UNKNOWN)
    look: dict[str, Any] = {"cmap": colours, "vmin": -1.0, "vmax": 1.0}
    square = np.arange(n_metrics + 1) - 0.5
    image = ax.pcolormesh(square, square, agreement.correlation, **look)
    beside = np.array([n_metrics + 0.3, n_metrics + 1.3])
    ax.pcolormesh(beside, square, agreement.cells_correlation[:, None], **look)
    labels = [f"{_label(metric)}   {number:2}" for number, metric in enumerate(agreement.metrics)]
    ax.set_yticks(range(n_metrics), [literal(label) for label in labels])
    numbers = [str(number) for number in range(n_metrics)]
    ax.set_xticks([*range(n_metrics), beside.mean()], [*numbers, "other cells"])
    ax.get_xticklabels()[-1].set_rotation(90)
    ax.set(xlim=(-0.5, beside[1]), ylim=(n_metrics - 0.5, -0.5), aspect="equal")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.5, aspect=30, pad=0.01)
    bar.set_label("Spearman's rank correlation", color=LINE)
    dress(bar.ax)
    bar.outline.set_visible(False)
    ax.set_title(f"Rank correlation of {n_metrics} metrics over {len(agreement.models)} models")
    return ax


def _label(metric: Statistic) -> str:
    """Return the properties of a metric of the paper in a few words, and its name if it has one; others as code."""
    if not isinstance(metric, GCE):
        return str(metric)
    parts = [
        _SCHEMES[metric.scheme],
        "top" if metric.max_prob else "all",
        "apart" if metric.class_conditional else "together",
        f"> {metric.threshold:g}",
        metric.norm,
    ]
    name = gce_name(metric)
    return (f"{name}:  " if name else "") + " · ".join(parts)


@in_one_look
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

    See Also
    --------
    caltest.simulation.approximation_study : Computes what is drawn.

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
            color = color_of(heads.index(head))
            style = _STYLES[tails.index(tail) % len(_STYLES)]
            ax.plot(rows["n_samples"], rows["median"], color=color, linestyle=style, linewidth=1.5, label=literal(name))
        ax.set(xscale="log", yscale="log", axisbelow=True, xlabel="observations of an evaluation set")
        ax.set_xticks(sizes, [str(size) for size in sizes])
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.yaxis.set_major_formatter(ScalarFormatter())
        ax.yaxis.set_minor_formatter(ScalarFormatter())
        ax.grid(which="both", color="#e6e9ee", linewidth=0.6)
        ax.set_title(literal(setting))
    panels.flat[0].set_ylabel("95th percentile of the relative error, median over models")
    add_legend(panels, new=new, ncols=4)
    return panels


@in_one_look
def plot_label_noise(study: LabelNoiseStudy, axes: Sequence[Axes] | None = None) -> NDArray[Any]:
    """Plot calibration errors and p-values against the share of random labels.

    Left, each statistic as a multiple of its noise floor, so that errors of different size share a scale and a
    calibrated model has 1 on average; middle, its p-value; right, the model. All are means over the replicates. Full
    lines are for held-out labels as they are, dashed lines for labels with the same share of noise.

    Parameters
    ----------
    study : LabelNoiseStudy
        From `caltest.simulation.label_noise_study`.
    axes : sequence of three matplotlib.axes.Axes, optional
        Where to draw; those of a new figure by default. Legends are below the axes: a figure with
        ``layout="constrained"`` makes room for them.

    Returns
    -------
    array of three matplotlib.axes.Axes
        What was drawn into.

    Raises
    ------
    TypeError
        If ``study`` is not a `LabelNoiseStudy`.
    ValueError
        If there are not three axes.

    See Also
    --------
    caltest.simulation.label_noise_study : Computes what is drawn.

    Examples
    --------
    >>> import caltest, matplotlib, numpy as np
    >>> matplotlib.use("Agg")
    >>> labels = np.arange(200) % 2
    >>> study = caltest.simulation.label_noise_study(
    ...     lambda train: np.tile(np.bincount(train) / 200, (200, 1)), labels, labels,
    ...     shares=[0, 0.5], n_resamples=19, rng=0
    ... )
    >>> [ax.get_ylabel() for ax in caltest.plotting.plot_label_noise(study)]
    ['value / noise floor', 'p-value', 'share']
    """
    require(study, LabelNoiseStudy, "study", "label_noise_study")
    panels = several(axes, (1, 3), (13.5, 4.8))
    ratio, pvalue, model = panels.flat
    frame = study.to_frame()
    colors = {name: color_of(number) for number, name in enumerate(frame["test_statistic"].unique())}
    for (labels, name), rows in frame.groupby(["labels", "test_statistic"], sort=False):
        look = {"color": colors[name], "linestyle": _LABEL_NOISE_STYLES[labels], "linewidth": 1.4}
        label = literal(f"{name}, {labels} labels")
        ratio.plot(rows["share"], rows["statistic"] / rows["noise_floor"], label=label, **look)
        pvalue.plot(rows["share"], rows["pvalue"], **look)
    ratio.axhline(1, color=LINE, linewidth=1, zorder=0)
    pvalue.axhline(_ALPHA, color=LINE, linewidth=1, zorder=0)
    beside: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "color": LINE}
    pvalue.annotate(f"{_ALPHA:g} ", (1, 1.1 * _ALPHA), ha="right", **beside)
    clean, noisy = (frame[frame["labels"] == labels].drop_duplicates("share") for labels in ("clean", "noisy"))
    for label, rows, column, color, style in (
        ("accuracy, clean labels", clean, "accuracy", POINT, _LABEL_NOISE_STYLES["clean"]),
        ("accuracy, noisy labels", noisy, "accuracy", POINT, _LABEL_NOISE_STYLES["noisy"]),
        ("mean confidence", clean, "mean_confidence", color_of(1), "-"),
        ("predictions missed by ECE", clean, "missed", color_of(2), "-"),
    ):
        model.plot(rows["share"], rows[column], label=label, color=color, linestyle=style, linewidth=1.4)
    ratio.set(ylabel="value / noise floor", ylim=(0, None))
    pvalue.set(ylabel="p-value", yscale="log", ylim=(None, 1.3))
    model.set(ylabel="share", ylim=(0, 1.02))
    for ax in panels.flat:
        ax.set_xlabel("share of random labels")
    for ax in (ratio, model):
        legend_below(ax)
    return panels
