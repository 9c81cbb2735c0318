"""A recalibration study as forest plots, and reliability before and after one method."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caltest.estimation import reliability_curve
from caltest.plotting._axes import BAR, DASHED, LINE, POINT, literal, require, save_figure, several
from caltest.plotting._reliability import plot_reliability
from caltest.recalibration import RecalibrationStudy
from caltest.results._decision import rejects
from caltest.results._description import percent
from caltest.results._naming import describe

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INTERVAL = "#7d93b0"
_CAPTION = 130


def plot_recalibration(study: RecalibrationStudy, axes: Sequence[Axes] | None = None) -> NDArray[Any]:
    r"""Plot a recalibration study as three forest plots: noise, miscalibration, and change by each method.

    Left, the first error of each model before and after each method, over the tick of its noise floor; middle, the l2
    error with its interval; both filled where calibration is rejected by the adjusted p-value. Right, the squared l2
    error before minus after, with its interval, filled where the method makes it better or worse.

    Parameters
    ----------
    study : RecalibrationStudy
        From `caltest.recalibration_study`.
    axes : sequence of three matplotlib.axes.Axes, optional
        Where to draw; those of a new figure by default.

    Returns
    -------
    array of three matplotlib.axes.Axes
        What was drawn into.

    Raises
    ------
    TypeError
        If ``study`` is not a `RecalibrationStudy`.
    ValueError
        If there are not three axes.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> from caltest.recalibration import PlattScaling, TemperatureScaling
    >>> matplotlib.use("Agg")
    >>> y_true, y_prob = caltest.datasets.load_digits_predictions()
    >>> models, methods = {"naive Bayes": y_prob["naive_bayes"]}, [TemperatureScaling(), PlattScaling()]
    >>> study = caltest.recalibration_study(y_true, models, methods, folds=2, n_resamples=199, rng=0)
    >>> axes = caltest.plotting.plot_recalibration(study)
    >>> [ax.get_xlabel() for ax in axes]
    ['ECE()', 'l2 error (debiased)', 'squared l2 error, before - after']
    """
    require(study, RecalibrationStudy, "study", "recalibration_study")
    rows = study.rows
    longest = max(len(_name(study, row)) for row in rows)
    size = 8.0 + 0.08 * longest, 1.8 + 0.32 * max(len(rows), 3)
    panels = several(axes, (1, 3), size, width_ratios=(1.0, 1.0, 1.0))
    plain, l2, change = panels.flat
    rejected = np.array([bool(rejects(row.pvalue_adjusted, study.alpha)) for row in rows])
    errors = np.array([row.mean_error(0) for row in rows])
    plain.plot(
        errors[:, 1], range(len(rows)), linestyle="none", marker="|", markersize=13, markeredgewidth=3, color=BAR
    )
    _draw_points(plain, errors[:, 0], rejected)
    _label(plain, [_name(study, row) for row in rows], describe(rows[0].folds[0].errors[0].test_statistic))
    plain.set_title("error and noise floor (tick)", fontsize="medium")
    _draw_intervals(l2, np.array([row.miscalibration.root_interval for row in rows]))
    _draw_points(l2, np.array([row.miscalibration.root for row in rows]), rejected)
    _label(l2, [""] * len(rows), "l2 error (debiased)")
    level = percent(1 - study.alpha)
    l2.set_title(f"{level} intervals", fontsize="medium")
    nothing = (np.nan, np.nan)
    _draw_intervals(change, np.array([nothing if r.change is None else r.change.confidence_interval for r in rows]))
    _draw_points(
        change,
        np.array([np.nan if row.change is None else row.change.difference for row in rows]),
        np.array([row.better is not None for row in rows]),
    )
    change.axvline(0, color=LINE, zorder=0, **DASHED)
    _label(change, [""] * len(rows), "squared l2 error, before - after")
    change.set_title("change: to the right is better", fontsize="medium")
    for ax in (plain, l2):
        ax.set_xlim(left=0.0)
    return panels


def plot_before_after(
    study: RecalibrationStudy, recalibrator: str, axes: Sequence[Axes] | None = None, *, model: str | None = None
) -> NDArray[Any]:
    """Plot reliability diagrams of the confidence before and after a recalibration method, on held-out observations.

    The curves hold the observations of all folds, which different maps predict: they show where the model deviates, and
    the tests of the study, which pool no folds, decide. With two classes the probability of the event is shown.

    Parameters
    ----------
    study : RecalibrationStudy
        From `caltest.recalibration_study`.
    recalibrator : str
        The name of a recalibrator.
    axes : sequence of two matplotlib.axes.Axes, optional
        Where to draw; those of a new figure by default.
    model : str, optional
        The name of the model; the first one by default.

    Returns
    -------
    array of two matplotlib.axes.Axes
        What was drawn into.

    Raises
    ------
    TypeError
        If ``study`` is not a `RecalibrationStudy`.
    KeyError
        If there is no such model or method.
    ValueError
        If there are not two axes.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> from caltest.recalibration import TemperatureScaling
    >>> matplotlib.use("Agg")
    >>> y_true, y_prob = caltest.datasets.load_digits_predictions()
    >>> models = {"naive Bayes": y_prob["naive_bayes"]}
    >>> study = caltest.recalibration_study(y_true, models, [TemperatureScaling()], folds=2, n_resamples=199, rng=0)
    >>> before, after = caltest.plotting.plot_before_after(study, "TemperatureScaling()")
    >>> before.get_title(), after.get_title()
    ('before', 'after TemperatureScaling()')
    """
    require(study, RecalibrationStudy, "study", "recalibration_study")
    panels = several(axes, (1, 2), (11.0, 5.4))
    rows = np.concatenate(study.held_out)
    for ax, name in zip(panels.flat, ("before", recalibrator), strict=True):
        prob = study.predict(name, model)[rows]
        plot_reliability(reliability_curve(study.y_true[rows], prob), ax, style="classical")
        ax.set_title(literal(name if name == "before" else f"after {name}"), fontsize="medium")
    return panels


def save_before_after(study: RecalibrationStudy, recalibrator: str, path: Path) -> None:
    """Write the picture of a method before and after, with its verdict.

    Parameters
    ----------
    study : RecalibrationStudy
        From `caltest.recalibration_study`.
    recalibrator : str
        The name of a recalibrator.
    path : Path
        File name; its suffix decides the format.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 6.4), layout="constrained")
    plot_before_after(study, recalibrator, figure.subplots(1, 2))
    figure.supxlabel(literal(fill(study.verdict(recalibrator), _CAPTION)), fontsize="small")
    save_figure(figure, path)


def _name(study: RecalibrationStudy, row: Any) -> str:
    return row.recalibrator if len(study.models) == 1 else f"{row.model}, {row.recalibrator}"


def _draw_intervals(ax: Axes, ends: NDArray[Any]) -> None:
    ax.hlines(np.arange(len(ends)), ends[:, 0], ends[:, 1], color=_INTERVAL, linewidth=2.5, zorder=2)


def _draw_points(ax: Axes, at: NDArray[Any], filled: NDArray[Any]) -> None:
    rows = np.arange(len(at))
    look: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 6, "color": POINT, "zorder": 3}
    for chosen, face in ((filled, POINT), (~filled, "white")):
        ax.plot(at[chosen], rows[chosen], markerfacecolor=face, **look)


def _label(ax: Axes, names: Sequence[str], quantity: str) -> None:
    ax.set_yticks(range(len(names)), [literal(name) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)  # the first one on top
    ax.set_xlabel(quantity)
    ax.locator_params(axis="x", nbins=4)
    ax.spines[["top", "right"]].set_visible(False)
