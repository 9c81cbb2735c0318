"""A recalibration study as forest plots, and reliability before and after one method."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caltest.estimation import reliability_curve
from caltest.plotting._axes import BAR, DASHED, LINE, draw_forest, in_one_look, literal, require, save_drawn, several
from caltest.plotting._reliability import plot_reliability
from caltest.recalibration import RecalibrationStudy
from caltest.results import BeforeAfter
from caltest.results._decision import rejects
from caltest.results._description import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CAPTION = 130


@in_one_look
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
    ['average error in cells', 'l2 error (debiased)', 'squared l2 error, before - after']
    """
    require(study, RecalibrationStudy, "study", "recalibration_study")
    rows = study.rows
    names = [row.recalibrator if len(study.models) == 1 else f"{row.model}, {row.recalibrator}" for row in rows]
    size = 8.0 + 0.08 * max(map(len, names)), 1.8 + 0.32 * max(len(rows), 3)
    panels = several(axes, (1, 3), size)
    plain, l2, change = panels.flat
    rejected, unnamed = [bool(rejects(row.pvalue_adjusted, study.alpha)) for row in rows], [""] * len(rows)
    errors = np.array([row.mean_error(0) for row in rows])
    tick: dict[str, Any] = {"linestyle": "none", "marker": "|", "markersize": 13, "markeredgewidth": 3, "color": BAR}
    plain.plot(errors[:, 1], range(len(rows)), **tick)
    quantity = rows[0].folds[0].errors[0].test_statistic.words
    draw_forest(plain, errors[:, 0], rejected, names, xlabel=quantity, title="error and noise floor (tick)")
    draw_forest(
        l2,
        [row.miscalibration.root for row in rows],
        rejected,
        unnamed,
        intervals=[row.miscalibration.root_interval for row in rows],
        xlabel="l2 error (debiased)",
        title=f"{percent(1 - study.alpha)} intervals",
    )
    none = (np.nan, np.nan)
    draw_forest(
        change,
        [np.nan if row.change is None else row.change.difference for row in rows],
        [row.better is not None for row in rows],
        unnamed,
        intervals=[none if row.change is None else row.change.confidence_interval for row in rows],
        xlabel="squared l2 error, before - after",
        title="change: to the right is better",
    )
    change.axvline(0, color=LINE, zorder=0, **DASHED)
    for ax in (plain, l2):
        ax.set_xlim(left=0.0)
    return panels


@in_one_look
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
        ax.set_title(literal(name if name == "before" else f"after {name}"))
    return panels


def save_before_after(study: RecalibrationStudy, found: BeforeAfter, path: Path) -> None:
    """Write the picture of a method before and after, with what is said of it.

    Parameters
    ----------
    study : RecalibrationStudy
        From `caltest.recalibration_study`.
    found : BeforeAfter
        From `before_after` of the study.
    path : Path
        File name; its suffix decides the format.
    """
    caption = "\n".join(fill(said, _CAPTION) for said in found.sentences)
    save_drawn(
        lambda figure: plot_before_after(study, found.recalibrator, figure.subplots(1, 2)), (11.0, 6.4), caption, path
    )
