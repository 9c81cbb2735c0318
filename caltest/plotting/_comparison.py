"""A comparison of models as a forest plot: noise, errors, and the differences between pairs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caltest.comparison import ModelComparison
from caltest.plotting._axes import (
    BAR,
    DASHED,
    LINE,
    MOST_TOGETHER,
    draw_forest,
    in_one_look,
    require,
    save_drawn,
    several,
)
from caltest.plotting._heading import first_sentence, head_figure
from caltest.predictions.inputs._validation import refuse_if
from caltest.results._description import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTHS = (1.0, 1.0, 1.3)
_NAME_WIDTH = 30  # characters of a line of a name


@in_one_look
def plot_comparison(comparison: ModelComparison, axes: Sequence[Axes] | None = None) -> NDArray[Any]:
    r"""Plot a comparison of models as three forest plots.

    Left, the plain estimate of each model over the bar of what a calibrated model shows on the same predictions (5 % to
    95 % of the null distribution, its mean as a tick); middle, the typical error in percentage points, the
    root of the debiased squared l2 error, with its interval. Points are filled where calibration is rejected, by the
    adjusted p-value. Right, by how many points the errors of a pair differ, with simultaneous intervals, filled where
    one model is better calibrated; of more than four models the pairs with the one whose error is smallest.

    Parameters
    ----------
    comparison : ModelComparison
        From `caltest.compare_models`.
    axes : sequence of three matplotlib.axes.Axes, optional
        Where to draw; those of a new figure by default. Names are beside the first and the third: a figure with
        ``layout="constrained"`` makes room for them.

    Returns
    -------
    array of three matplotlib.axes.Axes
        What was drawn into.

    Raises
    ------
    TypeError
        If ``comparison`` is not a `ModelComparison`.
    ValueError
        If there are not three axes.

    See Also
    --------
    caltest.compare_models : Computes what is drawn.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> matplotlib.use("Agg")
    >>> y_true, y_prob = caltest.datasets.load_digits_predictions()
    >>> axes = caltest.plotting.plot_comparison(caltest.compare_models(y_true, y_prob, n_resamples=99, rng=0))
    >>> [ax.get_title() for ax in axes]
    ['How large is the plain estimate?', 'How wrong are the predictions?', 'Is one model better?']
    """
    require(comparison, ModelComparison, "comparison", "compare_models")
    refuse_if(comparison.folds, "`comparison` has no picture of all folds; plot one of its `folds`.")
    panels = several(axes, (1, 3), figure_size(comparison), width_ratios=_WIDTHS)
    plain, size, pairs = panels.flat
    models, level = comparison.models, percent(comparison.confidence_level)
    names, labels = _row_names(comparison)
    rows, rejected = np.arange(len(models)), [model.rejected for model in models]
    noise = np.array([model.plain.noise_interval for model in models])
    plain.hlines(rows, *noise.T, color=BAR, zorder=2, linewidth=7, alpha=0.6)
    floors = [model.plain.noise_floor for model in models]
    plain.plot(floors, rows, linestyle="none", marker="|", markersize=11, color=BAR)
    quantity = models[0].plain.test_statistic.words
    estimates = [model.plain.statistic for model in models]
    draw_forest(
        plain,
        estimates,
        rejected,
        names,
        xlabel=f"{quantity} (bar: calibrated)",
        title="How large is the plain estimate?",
    )
    sizes, found = [model.typical_error for model in models], _pairs(comparison)
    draw_forest(
        size,
        [one.estimate for one in sizes],
        rejected,
        [""] * len(models),
        intervals=np.array([one.interval for one in sizes]),
        xlabel=f"typical error (points), {level} intervals",
        title="How wrong are the predictions?",
    )
    apart = [one.difference for one in found]
    draw_forest(
        pairs,
        [one.estimate for one in apart],
        [one.better is not None for one in found],
        labels,
        intervals=[np.where(np.isfinite(one.interval), one.interval, np.nan) for one in apart],
        xlabel=f"difference of errors (points), joint {level} intervals",
        title="Is one model better?",
    )
    pairs.axvline(0, color=LINE, zorder=0, **DASHED)
    for ax in panels.flat:
        ax.margins(x=0.08)
    for ax in (plain, size):
        ax.set_xlim(left=min(-0.02 * ax.get_xlim()[1], 1.1 * ax.dataLim.x0))  # points at 0 are not cut off
    if axes is None:
        head_figure(plain.figure, first_sentence(comparison.verdict))
    return panels


def save_comparison(comparison: ModelComparison, path: Path) -> None:
    """Write the picture of a comparison.

    Parameters
    ----------
    comparison : ModelComparison
        From `caltest.compare_models`.
    path : Path
        File name; its suffix decides the format.
    """

    def draw(figure: Figure) -> None:
        plot_comparison(comparison, figure.subplots(1, 3, width_ratios=_WIDTHS))
        head_figure(figure, first_sentence(comparison.verdict))

    caption = f"Filled: the adjusted p-value of calibration, or of no difference, is at most {comparison.alpha:.4g}."
    if (lead := comparison.pairs[0].test.lead) is not None:
        caption += f"\nIntervals and tests allow for labels less than {lead} apart that depend on each other."
    save_drawn(draw, figure_size(comparison), caption, path)


def figure_size(comparison: ModelComparison) -> tuple[float, float]:
    """Return width and height in inches that leave room for every row and its name."""
    both = _row_names(comparison)
    lines = max(name.count("\n") + 1 for names in both for name in names)
    widths = [max(len(line) for name in names for line in name.split("\n")) for names in both]
    return 7.6 + 0.09 * sum(widths), 1.8 + max(3, *map(len, both)) * (0.12 + 0.16 * lines)


def _row_names(comparison: ModelComparison) -> tuple[list[str], list[str]]:
    """Return the names of models and of pairs, in lines that leave room for the panels."""
    names = [fill(model.name, _NAME_WIDTH) for model in comparison.models]
    found = (one.models for one in _pairs(comparison))
    return names, [fill(f"{second} - {first}", _NAME_WIDTH) for first, second in found]


def _pairs(comparison: ModelComparison) -> list[Any]:
    """Return the pairs that are drawn: all, or of many models those with the one whose error is smallest."""
    found = [pair.finding for pair in comparison.pairs]
    if len(comparison.models) <= MOST_TOGETHER:
        return found
    return [one for one in found if comparison.ranking[0] in one.models]
