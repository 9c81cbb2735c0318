"""Calibration during training, in the manner of figure 3 of Vaicenavicius et al. (2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from caltest.comparison._training import TrainingTrack
from caltest.hypothesis_tests._calibration_table import LEVEL
from caltest.plotting._reliability import LINE

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_STAR: dict[str, Any] = {
    "linestyle": "none",
    "marker": "*",
    "markersize": 12,
    "markeredgecolor": "white",
    "markeredgewidth": 0.6,
    "zorder": 4,
}
_DASHED: dict[str, Any] = {"linewidth": 1, "linestyle": (0, (4, 3))}


def plot_training(track: TrainingTrack, axes: np.ndarray | None = None) -> np.ndarray:
    """Draw accuracy, negative log-likelihood, error and p-value against the epoch, one line per run.

    Asterisks mark the epoch of smallest negative log-likelihood of each run. The dashed lines beside the errors are
    their noise floors: what perfect models would show on these predictions. All axes but that of the accuracy are
    logarithmic, unless errors are 0 or negative.

    Parameters
    ----------
    track : TrainingTrack
        From `caltest.track`.
    axes : array of four matplotlib Axes, optional
        Where to draw; a new figure by default. The legend stands below the last two.

    Returns
    -------
    array of matplotlib Axes, of the shape of ``axes`` or (2, 2)
        The axes drawn on: negative log-likelihood, accuracy, error, p-value.

    Raises
    ------
    ValueError
        If ``track`` is no `TrainingTrack`, or ``axes`` are not four.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> matplotlib.use("Agg")
    >>> found = caltest.track([([0, 1, 1], [0.4, 0.5, 0.6]), ([0, 1, 1], [0.2, 0.7, 0.9])], n_resamples=99, rng=0)
    >>> axes = caltest.plot_training(found)
    >>> [ax.get_ylabel() for ax in axes.flat]
    ['negative log-likelihood', 'accuracy', 'ECE()', 'p-value']
    """
    if not isinstance(track, TrainingTrack):
        msg = f"`track` must be a TrainingTrack from track(...), got {type(track).__name__}."
        raise ValueError(msg)
    if axes is None:
        from matplotlib import pyplot as plt

        _, axes = plt.subplots(2, 2, figsize=(8.4, 6.2), sharex=True, layout="constrained")
    axes = np.asarray(axes)
    if axes.size != 4:
        msg = f"`axes` must be four axes, got {axes.size}."
        raise ValueError(msg)
    panels: list[Any] = list(axes.flat)
    values = (track.log_score, track.accuracy, track.error, track.pvalue)
    names = ("negative log-likelihood", "accuracy", track.statistic, "p-value")
    best = track.best
    for run, color in zip(track.runs, _tones(len(track.runs)), strict=True):
        entries = track.entries(run)
        star = entries[best[entries]]
        panels[2].plot(track.epoch[entries], track.noise_floor[entries], color=color, **_DASHED)
        for ax, value in zip(panels, values, strict=True):
            shown = np.where(np.isfinite(value), value, np.nan)
            marker = "o" if len(entries) == 1 else ""
            ax.plot(track.epoch[entries], shown[entries], color=color, linewidth=1.3, marker=marker, label=run)
            ax.plot(track.epoch[star], shown[star], color=color, **_STAR)
    for ax, name in zip(panels, names, strict=True):
        ax.set_ylabel(name)
    _stretch(panels[0], track.log_score)
    _stretch(panels[2], np.append(track.error, track.noise_floor))
    panels[2].plot([], [], color=LINE, label="noise floors", **_DASHED)
    panels[3].set_yscale("log")
    lowest = min(track.pvalue.min(), LEVEL)
    panels[3].set_ylim(lowest**1.05, lowest**-0.05)
    panels[3].axhline(LEVEL, color=LINE, zorder=1, label=f"level {LEVEL:.4g}", **_DASHED)
    panels[3].plot([], [], color=LINE, label="least negative log-likelihood", **_STAR)
    below: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16), "fontsize": "small"}
    for ax, first in ((panels[2], 0), (panels[3], len(track.runs))):  # the runs need their names once
        ax.set_xlabel("epoch")
        ax.xaxis.get_major_locator().set_params(integer=True)
        lines = [line for line in ax.get_lines() if line.get_label() and not line.get_label().startswith("_")]
        ax.legend(handles=lines[first if track.runs != ("",) else 0 :], ncols=3, frameon=False, **below)
    return axes


def _stretch(ax: Axes, values: np.ndarray) -> None:
    """Make the axis logarithmic if all values are positive: what matters happens long after the first epochs."""
    from matplotlib.ticker import LogLocator, NullLocator

    if np.all(values > 0):
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5, 7)))
        ax.yaxis.set_minor_locator(NullLocator())
        ax.yaxis.set_major_formatter("{x:g}")


def _tones(n_runs: int) -> np.ndarray:
    """Return colours from dark to light that differ in lightness too, ``(n_runs, 4)``."""
    from matplotlib import colormaps

    return colormaps["inferno"](np.linspace(0.1, 0.78, n_runs) if n_runs > 1 else np.array([0.1]))
