"""The path of an e-value, with the threshold of the alarm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from caltest.plotting._axes import BAR, DASHED, LINE, POINT, legend_below, literal, require, single
from caltest.results._description import counted
from caltest.streaming import MonitorResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HIGHEST = 250.0  # powers of ten that axes can show


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
        ax.axvline(monitor.alarm, color=BAR, linewidth=1.5, label=words)
    ax.set_yscale("log")
    ax.set_xlim(0, max(monitor.n_samples, 1))
    ax.set_xlabel("observations")
    ax.set_ylabel("e-value")
    ax.set_title(literal(f"{monitor.lens_name}, {counted(monitor.n_samples, ',')}"), fontsize="medium")
    if legend:
        legend_below(ax, ncols=3)
    return ax
