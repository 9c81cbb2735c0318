"""Calibration errors, p-values and confidence by the share of random labels (Nixon et al. 2019, figure 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from caltest.plotting._reliability import BAR, LINE, POINT
from caltest.simulation.replications._label_noise import LabelNoiseStudy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STATISTICS = (POINT, BAR, "#3f7cac", "#7a9e3f", "#8e5ea2")
_STYLES: dict[str, Any] = {"clean": "-", "noisy": (0, (4, 2))}


def plot_label_noise(study: LabelNoiseStudy, axes: Sequence[Axes] | None = None) -> Sequence[Axes]:
    """Draw means over the replicates against the share of random labels.

    On the left each statistic as a multiple of its noise floor, so that errors of different size share a scale and 1
    is what a calibrated model shows on average; in the middle its p-value; on the right the model. Full lines are for
    held-out labels as they are, dashed ones for labels with the same share of noise.

    Parameters
    ----------
    study : LabelNoiseStudy
        From `caltest.simulation.label_noise_study`.
    axes : three matplotlib Axes, optional
        Where to draw; a new figure by default. Legends stand below the axes: give your figure
        ``layout="constrained"`` to make room for them.

    Returns
    -------
    sequence of matplotlib Axes
        The axes drawn on.

    Raises
    ------
    ValueError
        If ``study`` is no `LabelNoiseStudy`, or there are not three axes.

    Examples
    --------
    >>> import caltest, matplotlib, numpy as np
    >>> matplotlib.use("Agg")
    >>> labels = np.arange(200) % 2
    >>> study = caltest.simulation.label_noise_study(
    ...     lambda train: np.tile(np.bincount(train) / 200, (200, 1)), labels, labels, n_resamples=19, rng=0
    ... )
    >>> [ax.get_ylabel() for ax in caltest.plot_label_noise(study)]
    ['value / noise floor', 'p-value', 'share']
    """
    if not isinstance(study, LabelNoiseStudy):
        msg = f"`study` must be a LabelNoiseStudy from label_noise_study(...), got {type(study).__name__}."
        raise ValueError(msg)
    if axes is None:
        from matplotlib import pyplot as plt

        axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")[1]
    if len(axes) != 3:
        msg = f"`axes` must be three, got {len(axes)}."
        raise ValueError(msg)
    ratio, pvalue, model = axes
    frame = study.to_frame()
    colours = dict(zip(frame["statistic"].unique(), _STATISTICS, strict=False))
    for (labels, statistic), rows in frame.groupby(["labels", "statistic"], sort=False):
        look = {"color": colours.get(statistic, LINE), "linestyle": _STYLES[labels], "linewidth": 1.4}
        ratio.plot(rows["share"], rows["value"] / rows["noise_floor"], label=f"{statistic}, {labels} labels", **look)
        pvalue.plot(rows["share"], rows["pvalue"], **look)
    ratio.axhline(1, color=LINE, linewidth=1, zorder=0)
    pvalue.axhline(0.05, color=LINE, linewidth=1, zorder=0)
    pvalue.annotate("0.05 ", (1, 0.055), xycoords=("axes fraction", "data"), fontsize="small", color=LINE, ha="right")
    clean, noisy = (frame[frame["labels"] == labels].drop_duplicates("share") for labels in ("clean", "noisy"))
    for label, rows, column, colour, style in (
        ("accuracy, clean labels", clean, "accuracy", POINT, _STYLES["clean"]),
        ("accuracy, noisy labels", noisy, "accuracy", POINT, _STYLES["noisy"]),
        ("mean confidence", clean, "mean_confidence", BAR, "-"),
        ("important predictions not seen by ECE", clean, "missed", "#3f7cac", "-"),
    ):
        model.plot(rows["share"], rows[column], label=label, color=colour, linestyle=style, linewidth=1.4)
    ratio.set_ylabel("value / noise floor")
    ratio.set_ylim(bottom=0)
    pvalue.set_ylabel("p-value")
    pvalue.set_yscale("log")
    pvalue.set_ylim(top=1.3)
    model.set_ylabel("share")
    model.set_ylim(0, 1.02)
    for ax in axes:
        ax.set_xlabel("share of random labels")
    for ax in (ratio, model):
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2, fontsize="x-small", frameon=False)
    return axes
