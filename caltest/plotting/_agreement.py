"""How far the rankings of models by many metrics agree, as a heat map (Nixon et al. 2019, section 5.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from caltest.hypothesis_tests._gce_table import gce_name
from caltest.plotting._axes import BAR, LINE, require, single
from caltest.plotting._literal import literal
from caltest.simulation.replications._agreement import MetricAgreement
from caltest.statistics import GCE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_AGREE = "#23507d"
_UNKNOWN = "#b8bec6"


def plot_metric_agreement(agreement: MetricAgreement, ax: Axes | None = None) -> Axes:
    """Plot the rank correlation of any two metrics over the models as a heat map.

    Blue means that two metrics rank the models alike, white that the rankings are unrelated, orange that they are
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

    Examples
    --------
    >>> import caltest, matplotlib
    >>> matplotlib.use("Agg")
    >>> agreement = caltest.simulation.metric_agreement(*caltest.datasets.load_digits_predictions(), n_cells=[5, 10])
    >>> ax = caltest.plotting.plot_metric_agreement(agreement)
    >>> ax.get_title()
    'Rank correlation of 32 metrics over 4 models'
    """
    from matplotlib.colors import LinearSegmentedColormap

    require(agreement, MetricAgreement, "agreement", "metric_agreement")
    n_metrics = len(agreement.metrics)
    size = max(0.23 * n_metrics, 2.4)
    ax = single(ax, (size + 5, size + 1.1))
    colours = LinearSegmentedColormap.from_list("agreement", [BAR, "white", _AGREE]).with_extremes(bad=_UNKNOWN)
    look: dict[str, Any] = {"cmap": colours, "vmin": -1.0, "vmax": 1.0}
    square = np.arange(n_metrics + 1) - 0.5
    image = ax.pcolormesh(square, square, agreement.correlation, **look)
    beside = np.array([n_metrics + 0.3, n_metrics + 1.3])
    ax.pcolormesh(beside, square, agreement.cells_correlation[:, None], **look)
    labels = [f"{_label(metric)}   {number:2}" for number, metric in enumerate(agreement.metrics)]
    ax.set_yticks(range(n_metrics), [literal(label) for label in labels], fontsize="small")
    numbers = [str(number) for number in range(n_metrics)]
    ax.set_xticks([*range(n_metrics), beside.mean()], [*numbers, "other cells"], fontsize="small")
    ax.get_xticklabels()[-1].set_rotation(90)
    ax.set_xlim(-0.5, beside[1])
    ax.set_ylim(n_metrics - 0.5, -0.5)
    ax.set_aspect("equal")
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.5, aspect=30, pad=0.01)
    bar.set_label("Spearman's rank correlation", fontsize="small", color=LINE)
    bar.ax.tick_params(labelsize="small")
    bar.outline.set_visible(False)
    ax.set_title(f"Rank correlation of {n_metrics} metrics over {len(agreement.models)} models", fontsize="medium")
    return ax


def _label(metric: GCE) -> str:
    """Return the properties of a metric in a few words, and its name if it has one."""
    parts = [
        metric.scheme.removeprefix("equal-"),
        "top" if metric.max_prob else "all",
        "apart" if metric.class_conditional else "together",
        f"> {metric.threshold:g}",
        metric.norm,
    ]
    name = gce_name(metric)
    return (f"{name}:  " if name else "") + " · ".join(parts)
