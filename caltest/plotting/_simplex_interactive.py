"""The reliability diagram of three or four classes that can be rotated and asked for numbers, with plotly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from caltest.estimation.simplex._simplex_diagram import SimplexDiagram
from caltest.plotting._axes import FEW, FINDING, LINE, require
from caltest.plotting._simplex import PALE, SHADES, TETRAHEDRON, TRIANGLE, about, rejected_words, title
from caltest.predictions.inputs._refusals import refuse
from caltest.results._decision import show_pvalue
from caltest.results._description import counted

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def plot_simplex_interactive(diagram: SimplexDiagram, figure: Figure | None = None, **layout: Any) -> Figure:
    """Plot a reliability diagram of three or four classes with plotly, to be rotated and asked for its numbers.

    The text under the pointer gives the number of observations of a cell (bin), its average prediction, the frequencies
    of the outcomes and the p-values.

    Parameters
    ----------
    diagram : SimplexDiagram
        From `caltest.simplex_diagram`.
    figure : plotly.graph_objects.Figure, optional
        Where to draw; a new figure by default.
    **layout
        Passed to ``figure.update_layout``, such as ``width``.

    Returns
    -------
    plotly.graph_objects.Figure
        What was drawn into: ``figure.show()``, ``figure.write_html(path)``.

    Raises
    ------
    TypeError
        If ``diagram`` is not a `SimplexDiagram`.
    ImportError
        If plotly is not installed.

    See Also
    --------
    plot_simplex : The same, not interactive.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> diagram = caltest.simplex_diagram(y_true, y_prob, lens=caltest.TopK(3), rng=0)
    >>> figure = caltest.plotting.plot_simplex_interactive(diagram)  # doctest: +SKIP
    >>> figure.write_html("diagram.html")  # doctest: +SKIP
    """
    require(diagram, SimplexDiagram, "diagram", "simplex_diagram")
    try:
        from plotly import graph_objects as go
    except ImportError:
        refuse(
            'an interactive diagram needs plotly: pip install "caltest[interactive]" or pip install plotly.',
            ImportError,
        )
    solid = diagram.n_outcomes == 4
    place = TETRAHEDRON if solid else TRIANGLE
    scatter, axes = (go.Scatter3d, "xyz") if solid else (go.Scatter, "xy")
    shown = go.Figure() if figure is None else figure

    def at(points: Any) -> dict[str, Any]:
        return dict(zip(axes, np.asarray(points, dtype=float).T, strict=True))

    path = [0, 1, 2, 3, 0, 2, 1, 3] if solid else [0, 1, 2, 0]
    quiet = {"hoverinfo": "skip", "showlegend": False}
    edge = {"color": LINE, "width": 1.5}
    shown.add_trace(scatter(**at(place[path]), mode="lines", line=edge, name="simplex", **quiet))
    names = [f"<b>{name}</b>" for name in diagram.outcomes]
    where = place + 0.06 * (place - place.mean(axis=0))
    shown.add_trace(scatter(**at(where), mode="text", text=names, name="outcomes", **quiet))
    start, end = diagram.predicted @ place, diagram.observed @ place
    full = diagram.count >= FEW
    for chosen, colour, width, words in (
        (full & ~diagram.rejected, PALE, 2, "not rejected"),
        (full & diagram.rejected, FINDING, 5, rejected_words(diagram)),
    ):
        if not chosen.any():
            continue
        gaps = np.full((int(chosen.sum()), 1, len(axes)), np.nan)
        lines = np.concatenate([start[chosen, None], end[chosen, None], gaps], axis=1).reshape(-1, len(axes))
        look = {"color": colour, "width": width}
        shown.add_trace(scatter(**at(lines), mode="lines", line=look, name=words, hoverinfo="skip"))
        head = {"color": colour, "size": 3 if solid else 7, "symbol": "diamond" if solid else "circle"}
        shown.add_trace(scatter(**at(end[chosen]), mode="markers", marker=head, name=f"{words}: head", **quiet))
    shares = {"color": np.log10(diagram.share), "colorscale": [[0, SHADES[0]], [1, SHADES[1]]], "size": 6}
    ticks = np.log10(np.unique([diagram.share.min(), diagram.share.max()]))
    shares["colorbar"] = {"title": "share", "tickvals": ticks, "ticktext": [f"{100 * 10**t:.3g} %" for t in ticks]}
    shares["line"] = {"color": LINE, "width": 1}
    text = [_words(diagram, cell) for cell in range(diagram.n_cells)]
    label = "average prediction of a cell (bin)"
    shown.add_trace(scatter(**at(start), mode="markers", marker=shares, text=text, hoverinfo="text", name=label))
    hidden = {"visible": False}
    frame: dict[str, Any] = {"scene": {f"{axis}axis": hidden for axis in axes} | {"aspectmode": "data"}}
    if not solid:
        frame = {"xaxis": hidden, "yaxis": hidden | {"scaleanchor": "x"}, "plot_bgcolor": "white"}
    shown.update_layout(title=f"{title(diagram)}<br>{about(diagram)}", legend={"orientation": "h", "y": 0}, **frame)
    return shown.update_layout(**layout)


def _words(diagram: SimplexDiagram, cell: int) -> str:
    """Return the numbers of a cell."""
    lines = [
        f"{name}: predicted {predicted:.4f}, observed {observed:.4f}"
        for name, predicted, observed in zip(
            diagram.outcomes, diagram.predicted[cell], diagram.observed[cell], strict=True
        )
    ]
    pvalue, adjusted = show_pvalue(diagram.pvalue[cell]), show_pvalue(diagram.pvalue_adjusted[cell])
    numbers = f"{counted(diagram.count[cell])} ({100 * diagram.share[cell]:.3g} %)"
    return "<br>".join([numbers, *lines, f"p-value {pvalue}, {diagram.correction.title()}-adjusted {adjusted}"])
