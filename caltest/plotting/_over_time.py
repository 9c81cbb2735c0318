"""What changes with time: the e-value of a monitor, correlated residuals, and errors over the epochs of a training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caltest.comparison._training import TrainingTrack
from caltest.hypothesis_tests._residual_correlation import ResidualCorrelation
from caltest.plotting._axes import (
    BAR,
    DASHED,
    FINDING,
    LINE,
    POINT,
    STAR,
    colors_of,
    in_one_look,
    label_first,
    legend_below,
    legend_entries,
    literal,
    marker_of,
    plain_logarithmic,
    require,
    several,
    single,
    wrapped,
)
from caltest.plotting._heading import first_sentence, head_figure, what_is_shown
from caltest.predictions.inputs._refusals import refuse
from caltest.results._description import percent
from caltest.results._naming import describe
from caltest.statistics._base import quantities
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

    See Also
    --------
    caltest.CalibrationMonitor : Computes what is drawn.

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
def plot_residual_correlation(result: ResidualCorrelation, axes: NDArray[Any] | None = None) -> NDArray[Any]:
    """Plot the correlations of residuals by lag, and how much their sums over consecutive times vary.

    Left, the correlogram: the correlation at each lag over the range that it has in 95 % of data sets whose labels are
    independent, lag by lag. Right, the variance ratios, from which the p-value comes, over the band that all of them
    leave with probability ``alpha`` at most if labels are independent; one outside of it is orange, and the test
    rejects.

    Parameters
    ----------
    result : ResidualCorrelation
        From `caltest.hypothesis_tests.residual_correlation`.
    axes : array of two matplotlib.axes.Axes, optional
        Where to draw; those of a new figure by default.

    Returns
    -------
    array of two matplotlib.axes.Axes
        What was drawn into.

    Raises
    ------
    TypeError
        If ``result`` is not a `ResidualCorrelation`.
    ValueError
        If there are not two axes.

    See Also
    --------
    caltest.hypothesis_tests.residual_correlation : Computes what is drawn.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> matplotlib.use("Agg")
    >>> found = caltest.hypothesis_tests.residual_correlation([0, 0, 1, 1] * 9, [0.3, 0.4, 0.6, 0.5] * 9, rng=0)
    >>> [ax.get_xlabel() for ax in found.plot()]
    ['lag', 'consecutive times']
    """
    require(result, ResidualCorrelation, "result", "residual_correlation")
    panels = several(axes, (1, 2), (8.4, 4.2))
    of_lags, of_sums = panels.flat
    outside = (result.variance_ratio < result.ratio_lower) | (result.variance_ratio > result.ratio_upper)
    nowhere = np.zeros(len(outside), dtype=np.bool_)
    for ax, x, value, lower, upper, finding, calm, band in (
        (of_lags, result.lag, result.correlation, result.lower, result.upper, nowhere, 0.0, "95 % at each lag"),
        (
            of_sums,
            result.window,
            result.variance_ratio,
            result.ratio_lower,
            result.ratio_upper,
            outside,
            1.0,
            f"{percent(1 - result.alpha)} for all together",
        ),
    ):
        if np.isfinite(lower).all():
            wide = np.repeat(x, 2) + np.tile([-0.5, 0.5], len(x))  # a band of one lag has a width, too
            ax.fill_between(
                wide, np.repeat(lower, 2), np.repeat(upper, 2), color=BAR, alpha=0.4, linewidth=0, label=band
            )
        ax.axhline(calm, color=LINE, label="independent labels", zorder=1, **DASHED)
        ax.vlines(x, calm, value, color=POINT, linewidth=1.2)
        for chosen, color, label in ((~finding, POINT, "observed"), (finding, FINDING, "observed, rejected")):
            if chosen.any():
                ax.plot(x[chosen], value[chosen], "o", color=color, markersize=5, label=label)
        ax.xaxis.get_major_locator().set_params(integer=True)
    of_lags.set(xlabel="lag", ylabel="correlation of residuals", title="Are residuals correlated?")
    of_sums.set(xlabel="consecutive times", ylabel="variance ratio", title="How much do their sums vary?")
    for ax in (of_lags, of_sums):
        legend_below(ax, caption=what_is_shown([result]) if ax is of_lags else "")
    if axes is None:
        head_figure(of_lags.figure, first_sentence(result.verdict))
    return panels


@in_one_look
def plot_training(track: TrainingTrack, axes: NDArray[Any] | None = None) -> NDArray[Any]:
    r"""Plot accuracy, negative log-likelihood, calibration errors and p-values by epoch, one line for each run.

    Stars are the epochs of smallest negative log-likelihood. The dashed lines beside the errors are their noise floors:
    what a calibrated model with these predictions has on average. Each statistic has a row of panels, with its p-value
    on the right, which is adjusted if several statistics test. All vertical axes but that of the accuracy are
    logarithmic, unless errors are 0 or negative.

    Parameters
    ----------
    track : TrainingTrack
        From `caltest.training_track`.
    axes : array of matplotlib.axes.Axes, optional
        Where to draw, two and two more for each statistic; those of a new figure by default. The legends are below the
        last two.

    Returns
    -------
    array of matplotlib.axes.Axes
        What was drawn into, in the shape of ``axes`` or (1 + n_statistics, 2): negative log-likelihood, accuracy, and
        error and p-value of each statistic.

    Raises
    ------
    TypeError
        If ``track`` is not a `TrainingTrack`.
    ValueError
        If there are too few or too many axes.

    See Also
    --------
    caltest.training_track : Computes what is drawn.

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
    n_rows = 1 + len(track.statistics)
    grid = several(axes, (n_rows, 2), (8.4, 3.2 * n_rows), sharex=True)
    panels: list[Any] = list(grid.flat)
    of_errors, of_pvalues = panels[2::2], panels[3::2]
    pvalues = np.broadcast_to(track.pvalue_adjusted, track.error.shape)
    values = [track.log_score, track.accuracy]
    names = ["negative log-likelihood", "accuracy"]
    for quantity, error, pvalue in zip(quantities(track.statistics), track.error, pvalues, strict=True):
        values += [error, pvalue]
        names += [literal(quantity), "p-value" if len(track.test_statistics) == 1 else "adjusted p-value"]
    best = track.best
    for run, color in zip(track.runs, colors_of(len(track.runs)), strict=True):
        entries = track.entries(run)
        star = entries[best[entries]]
        for ax, floor in zip(of_errors, track.noise_floor, strict=True):
            ax.plot(track.epoch[entries], floor[entries], color=color, **DASHED)
        for ax, value in zip(panels, values, strict=True):
            shown = np.where(np.isfinite(value), value, np.nan)
            ax.plot(
                track.epoch[entries],
                shown[entries],
                color=color,
                linewidth=1.3,
                marker=marker_of(entries),
                label=literal(run),
            )
            ax.plot(track.epoch[star], shown[star], color=color, **STAR)
    for ax, name in zip(panels, names, strict=True):
        ax.set_ylabel(name)
    _stretch(panels[0], track.log_score)
    for ax, error, floor in zip(of_errors, track.error, track.noise_floor, strict=True):
        _stretch(ax, np.append(error, floor))
    lowest = min(pvalues.min(), track.alpha)
    for ax in of_pvalues:
        ax.set_yscale("log")
        ax.set_ylim(lowest**1.05, lowest**-0.05)
        ax.axhline(track.alpha, color=LINE, zorder=1, label=f"{percent(track.alpha)} level", **DASHED)
    panels[-2].plot([], [], color=LINE, label="noise floors", **DASHED)
    panels[-1].plot([], [], color=LINE, label="smallest negative log-likelihood", **STAR)
    for ax, first in ((panels[-2], 0), (panels[-1], len(track.runs))):  # the names of the runs are needed once only
        ax.set_xlabel("epoch")
        ax.xaxis.get_major_locator().set_params(integer=True)
        found = list(legend_entries([ax]).items())[first if track.runs != ("",) else 0 :]
        legend_below(ax, entries=dict(found))
    return grid


@in_one_look
def plot_cell_edges(track: TrainingTrack, axes: NDArray[Any] | None = None) -> NDArray[Any]:
    """Plot the smallest prediction in each adaptive cell (bin) against the epoch: a panel for each statistic and run.

    Lines are averages over the classes that have the cell, dark for the first and pale for the last cell (Nixon et al.
    2019, figures 2 and 5, right). Cells become useless where lines meet: predictions of sharp models leave nearly all
    of them near 0.

    Parameters
    ----------
    track : TrainingTrack
        From `caltest.training_track`, of at least one statistic over all classes with adaptive cells, such as
        `caltest.statistics.ACE` or `caltest.statistics.TACE`.
    axes : array of matplotlib.axes.Axes, optional
        Where to draw, one for each statistic with such cells and run; those of a new figure by default.

    Returns
    -------
    array of matplotlib.axes.Axes
        What was drawn into, ``(n_panels,)``.

    Raises
    ------
    TypeError
        If ``track`` is not a `TrainingTrack`.
    ValueError
        If no statistic has adaptive cells, or there are too few or too many axes.

    See Also
    --------
    caltest.EqualWidth : A partition whose edges are drawn.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> matplotlib.use("Agg")
    >>> epochs = [[0.4, 0.5, 0.6], [0.2, 0.7, 0.9]]
    >>> found = caltest.training_track([0, 1, 1], epochs, statistics="ACE(3)", n_resamples=99, rng=0)
    >>> [len(ax.lines) for ax in caltest.plotting.plot_cell_edges(found)]
    [3]
    """
    from matplotlib import colormaps

    require(track, TrainingTrack, "track", "training_track")
    shade = colormaps["viridis"]
    pairs = zip(track.statistics, track.edges, strict=True)
    shown = [(one, edges, run) for one, edges in pairs if edges is not None for run in track.runs]
    if not shown:
        refuse("`track` has no adaptive cells; pass a statistic that has them to training_track, such as ACE(100).")
    grid = np.ravel(wrapped(axes, len(shown), 2, (4.4, 3.4), 0.7))
    for ax, (one, edges, run) in zip(grid, shown, strict=True):
        entries = track.entries(run)
        n_classes = np.count_nonzero(~np.isnan(edges[entries]), axis=1)
        mean = np.where(n_classes > 0, np.nansum(edges[entries], axis=1) / np.maximum(n_classes, 1), np.nan)
        n_cells = mean.shape[1]
        named = {0, (n_cells - 1) // 2, n_cells - 1}
        for cell, lower in enumerate(mean.T):
            label = f"cell {cell + 1}" if cell in named else None
            color = shade(0.9 * cell / max(n_cells - 1, 1))
            ax.plot(track.epoch[entries], lower, color=color, marker=marker_of(entries), label=label)
        ax.set(xlabel="epoch", title=literal(f"{describe(one)}, {run}" if run else describe(one)), ylim=(-0.03, 1.03))
        ax.xaxis.get_major_locator().set_params(integer=True)
        label_first(ax, "smallest prediction in the cell")
        legend_below(ax)
    return grid


def _stretch(ax: Axes, values: np.ndarray) -> None:
    """Make the axis logarithmic if all values are positive, because later epochs differ by small amounts."""
    if np.all(values > 0):
        ax.set_yscale("log")
        plain_logarithmic(ax.yaxis, (1, 2, 3, 5, 7))
