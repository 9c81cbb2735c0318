"""The axis of the predictions: its scale, chosen so that sharp predictions stand apart, and their distribution below.

The scales are strictly increasing functions on [0, 1] that are finite at both ends, so that predictions of exactly 0
and 1 have their place. Data stay probabilities; only the axis is transformed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from caltest.estimation.uncertainty._prediction_distribution import EDGES, LINEAR, LOGIT
from caltest.plotting._axes import DASHED, DENSITY, LINE, below, legend_below, literal, room
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions.inputs._validation import validate_choice

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = Floats

SCALES = ("linear", "logit", "equal-mass")
_PANEL = 0.62  # inches, so that what is below the axes does not depend on their size, which layouts rely on
_SMALL = 0.13  # of the height that there is
_GAP = 0.13
_END = 0.05  # predictions this close to 0 or 1 are sharp
_RARE = 0.001
_PART = 0.3  # a smaller range of predictions is enlarged
_WIDTHS = {"logit": 0.5, "equal-mass": 0.68}  # inches between labels of ticks
_CLOSEST = 1e-6  # the logit scale does not tell predictions apart that are closer to 0 or 1
_DECADES = 10.0 ** -np.arange(6, 0, -1)
_TICKS = np.concatenate([[0.0], _DECADES, [0.5], 1 - _DECADES[::-1], [1.0]])
_WORDS = {"linear": "", "logit": " (logit scale)", "equal-mass": " (scale of equal shares)"}


class AxisWords(NamedTuple):
    """What is drawn: across, upwards, on the diagonal, and between diagonal and points, if anything is."""

    across: str
    upwards: str
    diagonal: str
    gap: str = ""


PROBABILITIES = AxisWords("predicted probability", "observed frequency", "calibrated")


@dataclass(frozen=True)
class PredictionAxis:
    """The horizontal axis of one picture.

    Attributes
    ----------
    scale : {"linear", "logit", "equal-mass"}
        The scale.
    densities : mapping of str to array of shape (n_bins,)
        Share of the predictions of each model in each of the bins between ``EDGES``.
    shown : array
        Predictions that are drawn; for square axes the frequencies, too, because both axes have the same scale.
    words : AxisWords
        What is drawn against what.
    """

    scale: str
    densities: Mapping[str, Array]
    shown: Array
    words: AxisWords = PROBABILITIES

    @classmethod
    def of(
        cls, scale: str | None, densities: Mapping[str, Array], shown: Sequence[Array], words: AxisWords = PROBABILITIES
    ) -> PredictionAxis:
        """Return the axis with a scale, or with that which suits the predictions of all models on average."""
        points = np.concatenate([*(np.ravel(some) for some in shown), *map(_range, densities.values())])
        if scale is not None:
            validate_choice(scale, "scale", SCALES)
        chosen = _suitable(np.mean(list(densities.values()), axis=0)) if scale is None else scale
        return cls(chosen, densities, points, words)

    def set(self, ax: Axes, *, square: bool) -> None:
        """Set scale, limits, ticks and label of the horizontal axis; with ``square`` also of that of frequencies."""
        ax.set_xlabel(f"{self.words.across}{_WORDS[self.scale]}")
        if square:
            ax.set_ylabel(f"{self.words.upwards}{_WORDS['logit'] if self.scale == 'logit' else ''}")
            ax.set(box_aspect=1, anchor="N")  # what is left over is below, where the legend is
            set_linear(ax.yaxis, self.shown)
        if self.scale == "linear":
            set_linear(ax.xaxis, self.shown)
            return
        forward, inverse, ticks = self._logit() if self.scale == "logit" else self._equal_mass()
        low, high = self._ends(forward)
        margin = 0.03 * (high - low)
        place = forward(ticks)
        inside = (place >= low - margin) & (place <= high + margin)
        kept = ticks[inside][_apart(place[inside], _WIDTHS[self.scale] / _inches(ax) * (high - low))]
        back = _extended(inverse, forward)
        for name in ("x", "y") if square and self.scale == "logit" else ("x",):
            # What a scale sets is for its own kind of ticks: limits and ticks come after it.
            getattr(ax, f"set_{name}scale")("function", functions=(_extended(forward), back))
            getattr(ax, f"set_{name}lim")(*back(np.array([low - margin, high + margin])))
            getattr(ax, f"set_{name}ticks")(kept, [_in_short(tick) for tick in kept])
        ax.minorticks_off()

    def _ends(self, forward: Callable[[Array], Array]) -> tuple[float, float]:
        """Return the range of what is drawn, on the scale."""
        low, high = forward(np.array([self.shown.min(), self.shown.max()]))
        return (low, high) if high - low > 1e-9 else (float(forward(np.zeros(1))[0]), float(forward(np.ones(1))[0]))

    def _logit(self) -> tuple[Callable[[Array], Array], Callable[[Array], Array], Array]:
        """Return log odds with a small offset, which keeps 0 and 1 finite, their inverse, and ticks."""
        distance = np.minimum(self.shown, 1 - self.shown)
        nearest = distance[distance > 1e-15].min(initial=0.01)  # 1 - p may be off by rounding
        offset = max(nearest / 2, _CLOSEST)

        def forward(p: Array) -> Array:
            return np.log((p + offset) / (1 - p + offset))

        def inverse(u: Array) -> Array:
            odds = np.exp(u)
            return ((1 + offset) * odds - offset) / (1 + odds)

        return forward, inverse, _TICKS

    def _equal_mass(self) -> tuple[Callable[[Array], Array], Callable[[Array], Array], Array]:
        """Return the distribution function of the predictions of all models, its inverse, and ticks."""
        share = np.mean(list(self.densities.values()), axis=0)
        # A little of the uniform distribution keeps the function increasing where there are no predictions.
        mass = np.append(0.0, np.cumsum(0.98 * share + 0.02 * np.diff(EDGES)))
        mass /= mass[-1]

        def forward(p: Array) -> Array:
            return np.interp(p, EDGES, mass)

        def inverse(u: Array) -> Array:
            return np.interp(u, mass, EDGES)

        return forward, inverse, np.unique(np.append(inverse(np.arange(0.0, 1.01, 0.125)), [0.0, 1.0]))

    def draw_histogram(self, ax: Axes, colors: Sequence[Any]) -> float:
        """Draw the distribution of the predictions below, and return where it ends, in inches below the axes.

        Columns for one model, outlines for several. On the equal-mass scale all columns would be equal, so that there
        are none.
        """
        if self.scale == "equal-mass":
            return 0.0
        edges = LOGIT if self.scale == "logit" else LINEAR
        start = np.searchsorted(EDGES, edges[:-1])
        height = min(_PANEL, _SMALL * room(ax)[2])
        bottom = -height - _GAP
        foot = ax.inset_axes((0.0, bottom, 1.0, height), transform=below(ax), sharex=ax)
        top = 0.0
        for (name, share), color in zip(self.densities.items(), colors, strict=False):
            column = np.add.reduceat(share, start)
            top = max(top, column.max())
            if len(self.densities) == 1:
                foot.bar(edges[:-1], column, width=np.diff(edges), align="edge", color=DENSITY, label=name)
            else:
                foot.stairs(column, edges, color=color, linewidth=1.1, label=name)
        foot.set_ylim(0, 1.15 * top)
        foot.set_yticks([0, top], ["0", f"{100 * top:.0f} %"])
        foot.tick_params(axis="y", colors=LINE)
        foot.set_ylabel("share", color=LINE)
        foot.spines[["top", "right"]].set_visible(False)
        foot.patch.set_visible(False)
        foot.minorticks_off()
        ax.tick_params(axis="x", which="both", labelbottom=False)
        return bottom


def finish(
    axis: PredictionAxis,
    ax: Axes,
    colors: Sequence[Any],
    title: str,
    reach: Sequence[float] | None,
    *,
    caption: str,
    histogram: bool,
    legend: bool,
) -> None:
    """Draw where a calibrated model lies, set title and axes, and draw predictions and legend below.

    ``reach`` is the range of deviations; None stands for frequencies and square axes. The caption is in the legend.
    """
    square = reach is None
    x = np.array([0.0, 1.0]) if axis.scale == "linear" else EDGES
    ax.plot(
        x, x if square else np.zeros(len(x)), color=LINE, zorder=2, label=axis.words.diagonal, scalex=False, **DASHED
    )
    if reach is not None:
        ax.set(ylim=reach, ylabel="observed - predicted")
    ax.set_title(literal(title))
    axis.set(ax, square=square)
    bottom = axis.draw_histogram(ax, colors) if histogram else 0.0
    if bottom:  # the label of the axis is below the panel and the labels of its ticks
        ax.xaxis.set_label_coords(0.5, bottom - 2.0 * float(ax.xaxis.label.get_fontsize()) / 72, transform=below(ax))
    if legend:  # below the axes: bars and bands reach everywhere inside
        legend_below(ax, bottom=bottom, caption=caption)


def set_linear(axis: Any, shown: Array) -> None:
    """Set the ends of a linear axis of probabilities, those of what is shown if it is a small part, and few ticks."""
    low, high = float(shown.min()), float(shown.max())
    margin = 0.02
    if 0 < high - low < _PART:
        margin = 0.05 * (high - low)
    else:
        low, high = 0.0, 1.0
    axis.axes.locator_params(axis.axis_name, nbins=int(np.clip(_inches(axis.axes) / 0.6, 2, 6)))
    getattr(axis.axes, f"set_{axis.axis_name}lim")(max(low, 0.0) - margin, min(high, 1.0) + margin)


def _inches(ax: Axes) -> float:
    """Return the width of the axes, about; with a fixed aspect they are no wider than high."""
    _, width, height = room(ax)
    return float(0.8 * width - 0.3 if ax.get_box_aspect() is None else min(0.8 * width - 0.3, height - 1.6))


def _suitable(share: Array) -> str:
    """Return the scale on which predictions with these shares in the bins between `EDGES` stand apart."""
    if np.count_nonzero(share) == 1 and 0 < share.argmax() < len(share) - 1:
        return "linear"  # as good as constant: nothing can be distinguished
    middle = (EDGES[:-1] + EDGES[1:]) / 2
    if share[(middle < _END) | (middle > 1 - _END)].sum() > 0.5:
        return "logit"
    wide = np.add.reduceat(share, np.searchsorted(EDGES, LINEAR[:-1:2]))
    return "equal-mass" if wide.max() > 0.5 else "linear"


def _range(share: Array) -> Array:
    """Return the range of the predictions, without a thousandth on either side."""
    mass = np.cumsum(share)
    return EDGES[[np.argmax(mass > _RARE), np.argmax(mass >= mass[-1] - _RARE) + 1]]


def _extended(function: Callable[[Array], Array], domain: Callable[[Array], Array] | None = None) -> Any:
    """Return a function on [0, 1] (or on its image under ``domain``) that goes on as a straight line outside."""
    low, high = (0.0, 1.0) if domain is None else domain(np.array([0.0, 1.0]))
    first, last = function(np.array([low, high]))
    slope = (last - first) / (high - low)

    def extended(values: Any) -> Array:
        given = np.asarray(values, dtype=np.float64)
        inside = np.clip(given, low, high)
        return function(inside) + (given - inside) * slope

    return extended


def _apart(place: Array, distance: float) -> Integers:
    """Return the positions of ticks that are far enough from each other; both ends win."""
    if not place.size:
        return np.zeros(0, dtype=np.int64)
    kept = [0]
    for at in range(1, len(place)):
        if place[at] - place[kept[-1]] >= distance:
            kept.append(at)
        elif at == len(place) - 1 and len(kept) > 1:
            kept[-1] = at
    return np.array(kept)


def _in_short(p: float) -> str:
    """Return a probability with as many decimals as its distance from 0 and 1 needs."""
    distance = min(p, 1 - p)
    if distance <= 0:
        return f"{p:g}"
    digits = int(np.clip(np.ceil(-np.log10(distance) - 1e-9), 1, 6))
    return f"{p:.{digits}f}" if f"{p:.{digits}f}" == f"{p:g}" else f"{p:.{digits + 1}f}".rstrip("0")
