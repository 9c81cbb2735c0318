"""Calibration errors, p-values and confidence by the share of random labels (Nixon et al. 2019, figure 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from caltest.plotting._axes import BAR, COLORS, LINE, POINT, legend_below, require, several
from caltest.plotting._literal import literal
from caltest.simulation.replications._label_noise import LabelNoiseStudy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STYLES: dict[str, Any] = {"clean": "-", "noisy": (0, (4, 2))}
_ALPHA = 0.05


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
    colors = {name: COLORS[number % len(COLORS)] for number, name in enumerate(frame["test_statistic"].unique())}
    for (labels, name), rows in frame.groupby(["labels", "test_statistic"], sort=False):
        look = {"color": colors[name], "linestyle": _STYLES[labels], "linewidth": 1.4}
        ratio.plot(
            rows["share"], rows["statistic"] / rows["noise_floor"], label=literal(f"{name}, {labels} labels"), **look
        )
        pvalue.plot(rows["share"], rows["pvalue"], **look)
    ratio.axhline(1, color=LINE, linewidth=1, zorder=0)
    pvalue.axhline(_ALPHA, color=LINE, linewidth=1, zorder=0)
    pvalue.annotate(
        f"{_ALPHA:g} ", (1, 1.1 * _ALPHA), xycoords=("axes fraction", "data"), fontsize="small", color=LINE, ha="right"
    )
    clean, noisy = (frame[frame["labels"] == labels].drop_duplicates("share") for labels in ("clean", "noisy"))
    for label, rows, column, color, style in (
        ("accuracy, clean labels", clean, "accuracy", POINT, _STYLES["clean"]),
        ("accuracy, noisy labels", noisy, "accuracy", POINT, _STYLES["noisy"]),
        ("mean confidence", clean, "mean_confidence", BAR, "-"),
        ("predictions missed by ECE", clean, "missed", COLORS[2], "-"),
    ):
        model.plot(rows["share"], rows[column], label=label, color=color, linestyle=style, linewidth=1.4)
    ratio.set_ylabel("value / noise floor")
    ratio.set_ylim(bottom=0)
    pvalue.set_ylabel("p-value")
    pvalue.set_yscale("log")
    pvalue.set_ylim(top=1.3)
    model.set_ylabel("share")
    model.set_ylim(0, 1.02)
    for ax in panels.flat:
        ax.set_xlabel("share of random labels")
    for ax in (ratio, model):
        legend_below(ax)
    return panels
