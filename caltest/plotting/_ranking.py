"""Pictures of leaderboards: the confidence sets of the ranks, with the tiers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest.plotting._axes import BAR, DENSITY, LINE, POINT, draw_forest, in_one_look, literal, require, several
from caltest.ranking import Leaderboard, Ranking, Unranked
from caltest.results._description import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINE_OF_TEXT = 0.27  # inches
MOST_NAMED = 60  # models whose names fit below each other
_LONGEST = 40  # letters of a name
_BESIDE: dict[str, Any] = {"textcoords": "offset points", "fontsize": "small", "zorder": 4}
_NUMBERED = 20  # models whose ranks stand beside their points


@in_one_look
def plot_leaderboard(result: Leaderboard, axes: Any = None) -> Any:
    """Plot the ranks of all models by each measure, with their simultaneous confidence sets.

    Models are in the order of their estimates. A bar is the confidence set of the rank, the dot the rank of the
    estimate. Every second tier is shaded: models of the first one cannot be separated from the best. By measures that
    rank no models the points are values, orange where calibration is rejected, and the bars what chance alone shows.
    If scores were divided, the last panel has the discrimination against the miscalibration in the first of them; the
    models on a line have the same score, and those of the first tier are black.

    Parameters
    ----------
    result : Leaderboard
        From `caltest.leaderboard`.
    axes : array of matplotlib.axes.Axes, optional
        Where to draw, one for each measure, and one for the parts of a score that was divided; new axes by default.

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

    See Also
    --------
    caltest.leaderboard : Computes what is drawn.

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
    axes = several(axes, (1, number_of_panels(result)), figure_size(result))
    order = [model.name for model in result.measures[0]]
    for ax, found in zip(axes, result.measures, strict=False):
        draw_measure(ax, found, order)
    for ranking in _divided(result):
        draw_parts(axes[-1], ranking)
    return axes


def draw_measure(ax: Axes, found: Ranking | Unranked, order: Sequence[str], longest: int = _LONGEST) -> None:
    """Draw what was found by a measure; errors that rank no models are in a given order."""
    if isinstance(found, Ranking):
        _draw_ranks(ax, found)
    else:
        _draw_errors(ax, found, order)
    shown = len(found) <= MOST_NAMED
    names = [model.name for model in found] if isinstance(found, Ranking) else order
    ax.set_yticks(range(len(found)) if shown else [], _cut(names, longest) if shown else [])
    ax.set_ylim(len(found) - 0.5, -0.5)
    ax.set_title(literal(found.words))


def _divided(result: Leaderboard) -> list[Ranking]:
    """Return the first ranking whose score was divided, if there is one."""
    return [ranking for ranking in result if ranking.is_divided][:1]


def number_of_panels(result: Leaderboard) -> int:
    """Return the number of panels: one for each measure, and one for the parts of the first score."""
    return len(result.measures) + len(_divided(result))


def _draw_ranks(ax: Axes, ranking: Ranking) -> None:
    """Draw ranks with their confidence sets, and the tiers."""
    first = {tier: place for place, tier in reversed([*enumerate(model.tier for model in ranking)])}
    gap, last = max(1.0, len(ranking) / MOST_NAMED), -math.inf
    for place, model in enumerate(ranking):
        low, high = model.rank_interval
        if model.tier % 2:
            ax.axhspan(place - 0.5, place + 0.5, color=DENSITY, alpha=0.5, linewidth=0, zorder=0)
        ax.barh(place, high - low + 0.6, left=low - 0.3, height=0.5, color=BAR, zorder=2)
        ax.plot(model.rank, place, "o", color=POINT, markersize=4, zorder=3)
        if first[model.tier] == place and place >= last + gap:
            last = place
            at: dict[str, Any] = {
                "xycoords": ("axes fraction", "data"),
                "xytext": (-3, 0),
                "ha": "right",
                "va": "center",
            }
            ax.annotate(f"tier {model.tier}", (1, place), color=LINE, **at, **_BESIDE)
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


def draw_parts(ax: Axes, ranking: Ranking) -> None:
    """Draw discrimination against miscalibration, with lines of equal scores; numbers are ranks."""
    models = [model for model in ranking if model.parts is not None and math.isfinite(model.parts.miscalibration)]
    few = len(models) <= _NUMBERED
    for model in models:
        parts = model.parts
        assert parts is not None
        x, y = parts.miscalibration, parts.discrimination
        color = POINT if model.tier == 1 else LINE
        if few:
            ax.hlines(y, *parts.intervals["miscalibration"], color=BAR, zorder=2)
            ax.vlines(x, *parts.intervals["discrimination"], color=BAR, zorder=2)
            ax.annotate(str(model.rank), (x, y), xytext=(4, 3), color=color, **_BESIDE)
        ax.plot(x, y, "o", color=color, markersize=5 if model.tier == 1 else 3.5, zorder=3)
    ax.margins(0.1)
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    for start in np.linspace(bottom - right, top - left, 9)[1:-1]:  # the score is the same along each line
        ax.axline((0, start), slope=1, color=DENSITY, linewidth=0.8, zorder=0)
    ax.set(xlim=(left, right), ylim=(bottom, top))
    ax.spines[["top", "right"]].set_visible(False)
    ax.locator_params(nbins=4)
    ax.set_xlabel("miscalibration")
    ax.set_ylabel("discrimination")
    numbers = "; numbers: ranks" if few else ""
    ax.set_title(literal(f"parts of the {ranking.words} (better: up, left{numbers})"))


def _length_in_common(names: Sequence[str]) -> int:
    """Return how many letters all names begin with."""
    return next(
        (at for at, letters in enumerate(zip(*names, strict=False)) if len(set(letters)) > 1), min(map(len, names))
    )


def _cut(names: Sequence[str], longest: int) -> list[str]:
    """Return names that leave room for the picture: if one is too long, without what all begin and end with."""
    if max(map(len, names)) <= longest:
        return [literal(name) for name in names]
    start = _length_in_common(names)
    end = _length_in_common([name[start:][::-1] for name in names])
    short = [f"{'…' * (start > 0)}{name[start : len(name) - end]}{'…' * (end > 0)}" for name in names]
    half = longest // 2
    return [literal(name if len(name) <= longest else f"{name[: half - 1]}…{name[-half:]}") for name in short]


def figure_size(result: Leaderboard) -> tuple[float, float]:
    """Return width and height in inches that leave room for every name."""
    models = result.measures[0].models
    longest = max(len(model.name) for model in models) if len(models) <= MOST_NAMED else 0
    width = number_of_panels(result) * (3.6 + 0.08 * min(longest, _LONGEST))
    return width, max(1.2 + _LINE_OF_TEXT * min(len(models), MOST_NAMED), 3.2 if _divided(result) else 0.0)
