"""The pictures of the page, embedded as SVG, with what they show in words for those who cannot see them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from caltest.estimation.curves._reliability_curve import ReliabilityCurve
from caltest.estimation.simplex._simplex_diagram import SimplexDiagram
from caltest.page._places import Place
from caltest.plotting._axes import draw_forest, to_svg
from caltest.plotting._reliability import plot_reliability
from caltest.plotting._simplex import plot_simplex
from caltest.results._description import as_percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PLAIN = " /:;=,.()'!*+-_~@$?"  # what stands in an address in an attribute as it is
_NAME_WIDTH = 26  # characters of a name above a panel or beside a row


@dataclass(frozen=True)
class Picture:
    """A picture: its source as a data address, what it shows in words, and a caption."""

    source: str
    alternative: str
    caption: str = ""


def diagram(curves: Mapping[str, ReliabilityCurve], caption: str) -> Picture:
    """Return the reliability diagram of one model or of several on the diagonal, legible on a phone."""

    def draw(figure: Figure) -> None:
        panel = figure.subplots()
        plot_reliability(**_shown(curves), ax=panel, style="classical")
        panel.set_title("")  # the page says what it is about, and has the numbers
        if (legend := panel.get_legend()) is not None:
            legend.set_title("")

    return picture_of(draw, (5.4, 6.15 + 0.6 * len(curves)), _in_words(curves), caption)


def deviations(curves: Mapping[str, ReliabilityCurve]) -> Picture:
    """Return the same as frequencies minus predictions, which shows small errors."""

    def draw(figure: Figure) -> None:
        plot_reliability(**_shown(curves), ax=figure.subplots(), style="deviation")

    return picture_of(draw, (6.4, 5.0 + 0.35 * len(curves)), _in_words(curves), "Frequency minus prediction.")


def triangle(found: SimplexDiagram) -> Picture:
    """Return the reliability diagram of three classes in the triangle of their probabilities."""
    words = f"Reliability diagram on the triangle of three classes. {found.conclusion}"
    return picture_of(lambda figure: plot_simplex(found, figure.subplots()), (8, 7), words)


def forest(places: Sequence[Place], words: tuple[str, str], caption: str) -> Picture:
    """Return a forest plot: the frequency of each place with its interval, and a tick for the average prediction."""

    def draw(figure: Figure) -> None:
        panel = figure.subplots()
        draw_forest(
            panel,
            [100 * one.observed for one in places],
            [one.is_wrong for one in places],
            [fill(one.name, _NAME_WIDTH, max_lines=2) for one in places],
            xlabel=f"{words[1]} (point) and {words[0]} (tick), %",
            title="",
            intervals=[(100 * one.low, 100 * one.high) for one in places],  # NaN is not drawn
        )
        ticks: dict[str, Any] = {
            "linestyle": "none",
            "marker": "|",
            "markersize": 14,
            "markeredgewidth": 2.5,
            "zorder": 4,
        }
        panel.plot([100 * one.predicted for one in places], range(len(places)), color="black", **ticks)
        panel.margins(x=0.06)

    said = [
        f"{one.name}: {as_percent(one.predicted)} {words[0]}, {as_percent(one.observed)} {words[1]}" for one in places
    ]
    return picture_of(draw, (5.4, 1.0 + 0.36 * max(len(places), 3)), f"Forest plot. {'; '.join(said)}.", caption)


def _shown(curves: Mapping[str, ReliabilityCurve]) -> dict[str, Any]:
    """Return one curve or several with the tests of their cells, as they are drawn."""
    tests = {name: one.cell_tests() for name, one in curves.items()}
    if len(curves) > 1:
        return {"curve": curves, "tests": tests}
    return {"curve": next(iter(curves.values())), "tests": next(iter(tests.values()))}


def picture_of(draw: Callable[[Figure], Any], size: tuple[float, float], words: str, caption: str = "") -> Picture:
    """Return what ``draw(figure)`` draws, of a size in inches, with what it shows in words."""
    return Picture(_as_address(to_svg(draw, size).decode()), words, caption)


def _as_address(svg: str) -> str:
    """Return an SVG as an address that may stand in an attribute; a third shorter than in base 64."""
    text = " ".join(svg.split())
    short = text if "'" in text else text.replace('"', "'")
    return f"data:image/svg+xml,{quote(short, safe=_PLAIN)}"


def _in_words(curves: Mapping[str, ReliabilityCurve]) -> str:
    """Return what diagrams show, in words."""
    texts = []
    for name, curve in curves.items():
        worst = int(abs(curve.deviation).argmax())
        texts.append(
            f"{name or curve.lens_name}: {int(curve.outside.sum())} of {curve.n_cells} cells (bins) are outside their "
            f"bars; the largest difference between frequency and prediction is {curve.deviation[worst]:+.3f}, where "
            f"the prediction is {curve.predicted[worst]:.3f}."
        )
    return "Reliability diagram. " + " ".join(texts)
