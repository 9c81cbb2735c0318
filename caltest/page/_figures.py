"""The pictures of the page: drawn by `caltest.plotting`, embedded as SVG."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from caltest.estimation.curves._reliability_curve import ReliabilityCurve
from caltest.estimation.simplex._simplex_diagram import SimplexDiagram
from caltest.plotting._axes import literal, to_svg
from caltest.plotting._reliability import draw_both_styles, plot_reliability
from caltest.plotting._simplex import plot_simplex

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LONGEST = 28  # characters of a name above a panel


@dataclass(frozen=True)
class Picture:
    """A picture: its source as a data address, what it shows in words for those who cannot see it, and a caption."""

    source: str
    alternative: str
    caption: str


def diagram(curve: ReliabilityCurve) -> Picture:
    """Return the reliability diagram of one event, as deviations and as frequencies."""
    caption = f"Reliability diagram of the {curve.lens_name}. {curve.conclusion}"
    return _picture(lambda figure: draw_both_styles(figure, curve), (11, 6.0), _in_words([curve]), caption)


def diagrams(curves: Mapping[str, ReliabilityCurve], caption: str) -> Picture:
    """Return the reliability diagrams of several classes side by side."""

    def draw(figure: Figure) -> None:
        panels = figure.subplots(-(-len(curves) // 3), 3, squeeze=False)
        for panel in panels.flat[len(curves) :]:
            panel.remove()
        for panel, (name, curve) in zip(panels.flat, curves.items(), strict=False):
            plot_reliability(curve, panel, style="classical", tests=curve.cell_tests(), legend=False)
            shown = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..."
            panel.set_title(literal(shown), fontsize="medium")

    height = 4.8 * -(-len(curves) // 3)  # in less, the labels of the predictions are cut off
    return _picture(draw, (11, height), _in_words(list(curves.values()), list(curves)), caption)


def overlay(curves: Mapping[str, ReliabilityCurve], caption: str) -> Picture:
    """Return the reliability diagram of several models in the same axes, as deviations and as frequencies."""
    height = 5.6 + 0.32 * len(curves)
    words = _in_words(list(curves.values()), list(curves))
    return _picture(lambda figure: draw_both_styles(figure, curves), (11, height), words, caption)


def triangle(found: SimplexDiagram) -> Picture:
    """Return the reliability diagram of three classes in the triangle of their probabilities."""
    words = f"Reliability diagram on the triangle of three classes. {found.conclusion}"
    return _picture(lambda figure: plot_simplex(found, figure.subplots()), (8, 7), words, "")


def _picture(draw: Callable[[Figure], Any], size: tuple[float, float], words: str, caption: str) -> Picture:
    content = base64.b64encode(to_svg(draw, size)).decode()
    return Picture(f"data:image/svg+xml;base64,{content}", words, caption)


def _in_words(curves: Sequence[ReliabilityCurve], names: Sequence[str] | None = None) -> str:
    """Return what diagrams show, in words."""
    texts = []
    for name, curve in zip(names or [curve.lens_name for curve in curves], curves, strict=True):
        worst = int(abs(curve.deviation).argmax())
        texts.append(
            f"{name}: {int(curve.outside.sum())} of {curve.n_cells} cells (bins) are outside their bars; the largest "
            f"difference between frequency and prediction is {curve.deviation[worst]:+.3f}, where the prediction is "
            f"{curve.predicted[worst]:.3f}."
        )
    return "Reliability diagram. " + " ".join(texts)
