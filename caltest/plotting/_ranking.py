"""Pictures of leaderboards: the confidence sets of the ranks, with the tiers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from caltest.plotting._axes import BAR, DENSITY, LINE, POINT, draw_forest, in_one_look, literal, require, several
from caltest.ranking import Leaderboard, Ranking, Unranked
from caltest.results._description import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINE_OF_TEXT = 0.27  # inches
_NAMED = 60  # models whose names fit below each other
_LONGEST = 40  # letters of a name


@in_one_look
def plot_leaderboard(result: Leaderboard, axes: Any = None) -> Any:
    """Plot the ranks of all models by each measure, with their simultaneous confidence sets.

    Models are in the order of their estimates. A bar is the confidence set of the rank, the dot the rank of the
    estimate. Every second tier is shaded: models of the first one cannot be separated from the best. By measures that
    rank no models the points are values, orange where calibration is rejected, and the bars what chance alone shows.

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
    axes = several(axes, (1, len(result.measures)), figure_size(result))
    order = [model.name for model in result.measures[0]]
    for ax, found in zip(axes, result.measures, strict=True):
        if isinstance(found, Ranking):
            _draw_ranks(ax, found)
        else:
            _draw_errors(ax, found, order)
        shown = len(found) <= _NAMED
        names = [model.name for model in found] if isinstance(found, Ranking) else order
        ax.set_yticks(range(len(found)) if shown else [], [_cut(name) for name in names] if shown else [])
        ax.set_ylim(len(found) - 0.5, -0.5)
        ax.set_title(literal(found.words))
    return axes


def _draw_ranks(ax: Axes, ranking: Ranking) -> None:
    """Draw ranks with their confidence sets, and the tiers."""
    first = {tier: place for place, tier in reversed([*enumerate(model.tier for model in ranking)])}
    gap, last = max(1.0, len(ranking) / _NAMED), -math.inf
    for place, model in enumerate(ranking):
        low, high = model.rank_interval
        if model.tier % 2:
            ax.axhspan(place - 0.5, place + 0.5, color=DENSITY, alpha=0.5, linewidth=0, zorder=0)
        ax.barh(place, high - low + 0.6, left=low - 0.3, height=0.5, color=BAR, zorder=2)
        ax.plot(model.rank, place, "o", color=POINT, markersize=4, zorder=3)
        if first[model.tier] == place and place >= last + gap:
            last = place
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
    ax.set_xlim(0.4, len(ranking) + max(1.0, 0.2 * len(ranking)))
    ax.locator_params(axis="x", integer=True)
    ax.set_xlabel(f"rank, {percent(ranking.confidence_level)} sets of all models together")


def _draw_errors(ax: Axes, errors: Unranked, order: Sequence[str]) -> None:
    """Draw errors that rank no models, and what chance alone shows."""
    models = [errors[name] for name in order]
    draw_forest(
        ax,
        [model.measure.estimate for model in models],
        [model.rejected for model in models],
        order,
        xlabel="value; bars: if calibrated, 5 % to 95 %",
        title="",
        intervals=[model.noise_interval for model in models],
    )


def _cut(name: str) -> str:
    """Return a name that leaves room for the picture."""
    half = _LONGEST // 2
    return literal(name if len(name) <= _LONGEST else f"{name[: half - 1]}…{name[-half:]}")


def figure_size(result: Leaderboard) -> tuple[float, float]:
    """Return width and height in inches that leave room for every name."""
    models = result.measures[0].models
    longest = max(len(model.name) for model in models) if len(models) <= _NAMED else 0
    width = len(result.measures) * (3.6 + 0.08 * min(longest, _LONGEST))
    return width, 1.2 + _LINE_OF_TEXT * min(len(models), _NAMED)
