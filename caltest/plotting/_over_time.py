"""What changes with time: the e-value of a monitor, and errors over the epochs of a training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caltest.comparison._training import TrainingTrack
from caltest.plotting._axes import (
    DASHED,
    FINDING,
    LINE,
    POINT,
    STAR,
    colors_of,
    in_one_look,
    legend_below,
    legend_entries,
    literal,
    plain_logarithmic,
    require,
    several,
    single,
)
from caltest.plotting._heading import first_sentence, what_is_shown
from caltest.results._description import percent
from caltest.streaming import MonitorResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HIGHEST = 200.0  # powers of ten that axes can show


@in_one_look
def plot_monitor(monitor: MonitorResult, ax: Axes | None = None, *, legend: bool = True) -> Axes:
    """Plot the path of the e-value of a monitor on a logarithmic scale, with the threshold of the alarm.

    Parameters
    ----------
    monitor : MonitorResult
        From the method ``result`` of `caltest.CalibrationMonitor`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes by default.
    legend : bool
        Whether to draw the legend, below the axes.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn into.

    Raises
    ------
    TypeError
        If ``monitor`` is not a `MonitorResult`.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> matplotlib.use("Agg")
    >>> monitor = caltest.CalibrationMonitor().update([0, 1, 1], [0.2, 0.6, 0.9])
    >>> monitor.plot().get_yscale()
    'log'
    """
    require(monitor, MonitorResult, "monitor", "CalibrationMonitor.result")
    ax = single(ax, (6.4, 4.2))
    number, height = monitor.path[:, 0], monitor.path[:, 1] / np.log(10.0)
    if monitor.n_samples > number[-1]:
        number = np.append(number, monitor.n_samples)
        height = np.append(height, monitor.log_e_value / np.log(10.0))
    ax.plot(number, 10.0 ** np.clip(height, -_HIGHEST, _HIGHEST), color=POINT, linewidth=1.2, label="e-value")
    words = f"alarm at {1 / monitor.alpha:.4g}"
    ax.axhline(1 / monitor.alpha, color=LINE, label=words, **DASHED)
    if monitor.alarm is not None:
        words = f"alarm, observation {monitor.alarm:,}: {monitor.direction}"
        ax.axvline(monitor.alarm, color=FINDING, linewidth=1.5, label=words)
    ax.set(yscale="log", xlim=(0, max(monitor.n_samples, 1)), xlabel="observations", ylabel="e-value")
    ax.set_title(literal(first_sentence(monitor.verdict)))
    if legend:
        legend_below(ax, caption=what_is_shown([monitor]))
    return ax


@in_one_look
def plot_training(track: TrainingTrack, axes: NDArray[Any] | None = None) -> NDArray[Any]:
    r"""Plot accuracy, negative log-likelihood, calibration error and p-value against the epoch, one line for each run.

    Stars are the epochs of smallest negative log-likelihood. The dashed lines beside the errors are their noise floors:
    what a calibrated model with these predictions has on average. All vertical axes but that of the accuracy are
    logarithmic, unless errors are 0 or negative.

    Parameters
    ----------
    track : TrainingTrack
        From `caltest.training_track`.
    axes : array of four matplotlib.axes.Axes, optional
        Where to draw; those of a new figure by default. The legends are below the last two.

    Returns
    -------
    array of four matplotlib.axes.Axes
        What was drawn into, in the shape of ``axes`` or (2, 2): negative log-likelihood, accuracy, error, p-value.

    Raises
    ------
    TypeError
        If ``track`` is not a `TrainingTrack`.
    ValueError
        If there are not four axes.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> matplotlib.use("Agg")
    >>> found = caltest.training_track([0, 1, 1], [[0.4, 0.5, 0.6], [0.2, 0.7, 0.9]], n_resamples=99, rng=0)
    >>> axes = caltest.plotting.plot_training(found)
    >>> [ax.get_ylabel().replace("\n", " ") for ax in axes.flat]
    ['negative log-likelihood', 'accuracy', 'average error in cells', 'p-value']
    """
    require(track, TrainingTrack, "track", "training_track")
    grid = several(axes, (2, 2), (8.4, 6.4), sharex=True)
    panels: list[Any] = list(grid.flat)
    values = (track.log_score, track.accuracy, track.error, track.pvalue)
    names = ("negative log-likelihood", "accuracy", track.error_statistic.words, "p-value")
    best = track.best
    for run, color in zip(track.runs, colors_of(len(track.runs)), strict=True):
        entries = track.entries(run)
        star = entries[best[entries]]
        panels[2].plot(track.epoch[entries], track.noise_floor[entries], color=color, **DASHED)
        for ax, value in zip(panels, values, strict=True):
            shown = np.where(np.isfinite(value), value, np.nan)
            marker = "o" if len(entries) == 1 else ""
            ax.plot(track.epoch[entries], shown[entries], color=color, linewidth=1.3, marker=marker, label=literal(run))
            ax.plot(track.epoch[star], shown[star], color=color, **STAR)
    for ax, name in zip(panels, names, strict=True):
        ax.set_ylabel(name)
    _stretch(panels[0], track.log_score)
    _stretch(panels[2], np.append(track.error, track.noise_floor))
    panels[2].plot([], [], color=LINE, label="noise floors", **DASHED)
    panels[3].set_yscale("log")
    lowest = min(track.pvalue.min(), track.alpha)
    panels[3].set_ylim(lowest**1.05, lowest**-0.05)
    panels[3].axhline(track.alpha, color=LINE, zorder=1, label=f"{percent(track.alpha)} level", **DASHED)
    panels[3].plot([], [], color=LINE, label="smallest negative log-likelihood", **STAR)
    for ax, first in ((panels[2], 0), (panels[3], len(track.runs))):  # the names of the runs are needed once only
        ax.set_xlabel("epoch")
        ax.xaxis.get_major_locator().set_params(integer=True)
        found = list(legend_entries([ax]).items())[first if track.runs != ("",) else 0 :]
        legend_below(ax, entries=dict(found))
    return grid


def _stretch(ax: Axes, values: np.ndarray) -> None:
    """Make the axis logarithmic if all values are positive, because later epochs differ by small amounts."""
    if np.all(values > 0):
        ax.set_yscale("log")
        plain_logarithmic(ax.yaxis, (1, 2, 3, 5, 7))
