"""Pictures of leaderboards: the confidence sets of the ranks, with the tiers."""

from __future__ import annotations

from typing import Any

from caltest.plotting._axes import BAR, DENSITY, LINE, POINT, in_one_look, require, several
from caltest.ranking import Leaderboard
from caltest.results._description import percent

_LINE_OF_TEXT = 0.27  # inches
_NAMED = 60  # models whose names fit below each other


@in_one_look
def plot_leaderboard(result: Leaderboard, axes: Any = None) -> Any:
    """Plot the ranks of all models by each measure, with their simultaneous confidence sets.

    Models are in the order of their estimates. A bar is the confidence set of the rank, the dot the rank of the
    estimate. Every second tier is shaded: models of the first one cannot be separated from the best.

    Parameters
    ----------
    result : Leaderboard
        From `caltest.leaderboard`.
    axes : array of matplotlib.axes.Axes, optional
        Where to draw, one for each measure; new axes by default.

    Returns
    -------
    array of matplotlib.axes.Axes
        What was drawn into.

    Raises
    ------
    TypeError
        If ``result`` is no `Leaderboard`.
    ValueError
        If there is another number of axes.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> matplotlib.use("Agg")
    >>> y_true, y_prob = caltest.datasets.load_digits_predictions()
    >>> board = caltest.leaderboard(y_true, y_prob, by=("brier", "accuracy"), n_resamples=99, rng=0)
    >>> [ax.get_title() for ax in board.plot()]
    ['Brier score', 'accuracy']
    """
    require(result, Leaderboard, "result", "leaderboard")
    axes = several(axes, (1, len(result)), figure_size(result))
    for ax, ranking in zip(axes, result, strict=True):
        places = range(len(ranking))
        first = {tier: place for place, tier in reversed([*enumerate(model.tier for model in ranking)])}
        for place, model in zip(places, ranking, strict=True):
            low, high = model.rank_interval
            if model.tier % 2:
                ax.axhspan(place - 0.5, place + 0.5, color=DENSITY, alpha=0.5, linewidth=0, zorder=0)
            ax.barh(place, high - low + 0.6, left=low - 0.3, height=0.5, color=BAR, zorder=2)
            ax.plot(model.rank, place, "o", color=POINT, markersize=4, zorder=3)
            if first[model.tier] == place:
                ax.annotate(
                    f"tier {model.tier}",
                    (1, place),
                    xycoords=("axes fraction", "data"),
                    xytext=(-3, 0),
                    textcoords="offset points",
                    ha="right",
                    va="center",
                    fontsize="small",
                    color=LINE,
                    zorder=4,
                )
        shown = len(ranking) <= _NAMED
        ax.set_yticks(places if shown else [], [model.name for model in ranking] if shown else [])
        ax.set_ylim(len(ranking) - 0.5, -0.5)
        ax.set_xlim(0.4, len(ranking) + max(1.0, 0.2 * len(ranking)))
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_xlabel(f"rank, {percent(result.confidence_level)} sets of all models together")
        ax.set_title(ranking.words)
    return axes


def figure_size(result: Leaderboard) -> tuple[float, float]:
    """Return width and height in inches that leave room for every name."""
    models = result.rankings[0].models
    named = max(len(model.name) for model in models) if len(models) <= _NAMED else 0
    return len(result) * (3.6 + 0.08 * min(named, 40)), 1.2 + _LINE_OF_TEXT * min(len(models), _NAMED)
