"""A recalibration study as forest plots, and reliability before and after one method."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caltest.estimation import reliability_curve
from caltest.plotting._axes import LINE, draw_forest, in_one_look, literal, require, save_drawn, several
from caltest.plotting._heading import head_figure
from caltest.plotting._reliability import plot_reliability
from caltest.recalibration import RecalibrationStudy
from caltest.recalibration.study._study_entries import BEFORE
from caltest.results import BeforeAfter
from caltest.results._decision import rejects
from caltest.results._description import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CAPTION = 130  # characters of a line
_NAME_WIDTH, _TITLE_WIDTH = 34, 52


@in_one_look
def plot_recalibration(study: RecalibrationStudy, axes: Sequence[Axes] | None = None) -> NDArray[Any]:
    r"""Plot a recalibration study as two forest plots: the error before and after each method, and the average score.

    Left, the typical error in percentage points, the root of the debiased squared l2 error, with its interval, over
    the tick of what chance alone shows in 95 % of data sets; filled where calibration is rejected, by the adjusted
    p-value. Right, the average log score of held-out observations; filled where a method makes the error larger or
    smaller, by its adjusted p-value. Infinite scores are left out.

    Parameters
    ----------
    study : RecalibrationStudy
        From `caltest.recalibration_study`.
    axes : sequence of two matplotlib.axes.Axes, optional
        Where to draw; those of a new figure by default.

    Returns
    -------
    array of two matplotlib.axes.Axes
        What was drawn into.

    Raises
    ------
    TypeError
        If ``study`` is not a `RecalibrationStudy`.
    ValueError
        If there are not two axes.

    See Also
    --------
    caltest.recalibration_study : Computes what is drawn.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> from caltest.recalibration import PlattScaling, TemperatureScaling
    >>> matplotlib.use("Agg")
    >>> y_true, y_prob = caltest.datasets.load_digits_predictions()
    >>> models, methods = {"naive Bayes": y_prob["naive_bayes"]}, [TemperatureScaling(), PlattScaling()]
    >>> study = caltest.recalibration_study(y_true, models, methods, folds=2, n_resamples=199, rng=0)
    >>> axes = caltest.plotting.plot_recalibration(study)
    >>> [ax.get_xlabel().replace("\n", " ") for ax in axes]
    ['typical error (points), 95 % intervals; tick: chance alone', 'average log score (smaller is better)']
    """
    require(study, RecalibrationStudy, "study", "recalibration_study")
    rows = study.rows
    names = [row.recalibrator if len(study.models) == 1 else f"{row.model}, {row.recalibrator}" for row in rows]
    names = [fill(name, _NAME_WIDTH) for name in names]
    lines = max(name.count("\n") + 1 for name in names)
    widest = max(len(line) for name in names for line in name.split("\n"))
    panels = several(axes, (1, 2), (6.4 + 0.08 * widest, 1.8 + max(len(rows), 3) * (0.16 + 0.16 * lines)))
    error, score = panels.flat
    sizes = [row.miscalibration for row in rows]
    tick: dict[str, Any] = {"linestyle": "none", "marker": "|", "markersize": 13, "markeredgewidth": 2, "color": LINE}
    error.plot([100 * size.chance for size in sizes], range(len(rows)), **tick)
    draw_forest(
        error,
        [100 * size.root for size in sizes],
        [bool(rejects(row.pvalue_adjusted, study.alpha)) for row in rows],
        names,
        intervals=100 * np.array([size.root_interval for size in sizes]),
        xlabel=f"typical error (points), {percent(1 - study.alpha)} intervals; tick: chance alone",
        title="How wrong are the predictions?",
    )
    error.set_xlim(left=-0.02 * error.get_xlim()[1])
    draw_forest(
        score,
        [row.log_score if np.isfinite(row.log_score) else np.nan for row in rows],
        [row.better is not None for row in rows],
        [""] * len(rows),
        xlabel="average log score (smaller is better)",
        title="How well is each label predicted?",
    )
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

    See Also
    --------
    caltest.recalibration_study : Computes what is drawn.

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
    ('before', 'after temperature scaling (T = 7.35 to 7.76)')
    """
    require(study, RecalibrationStudy, "study", "recalibration_study")
    panels = several(axes, (1, 2), (11.0, 5.4))
    rows = np.concatenate(study.held_out)
    names = {"sample_weight": "weight", "groups": "group", "time": "timing"}
    known = {name: study.design[of] for name, of in names.items()}
    design: dict[str, Any] = {name: None if values is None else values[rows] for name, values in known.items()}
    titles = "before", f"after {study.row(recalibrator, model).fitted}"
    for ax, name, title in zip(panels.flat, (BEFORE, recalibrator), titles, strict=True):
        prob = study.predict(name, model)[rows]
        curve = reliability_curve(study.y_true[rows], prob, **design, rng=0)
        plot_reliability(curve, ax, style="classical")
        ax.set_title(literal(fill(title, _TITLE_WIDTH)))
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
    said, *more = found.sentences

    def draw(figure: Figure) -> None:
        for ax in plot_before_after(study, found.recalibrator, figure.subplots(1, 2)):
            ax.set_anchor("C")  # the caption below leaves no room at the foot
        head_figure(figure, said)

    save_drawn(draw, (11.0, 6.6), "\n".join(fill(one, _CAPTION) for one in more), path)
