"""What stands above a picture, and its caption: one rule for all pictures.

Above stands what was found: a sentence of the verdict, the decision of a result that has a p-value or tests cells, or
the question that the picture answers. The caption is the title of the legend: what is drawn, and its numbers. Several
panels have a question each, and the sentence stands above a new figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caltest.plotting._axes import TEXT, add_legend, literal, wrap, wrapped
from caltest.results._description import counted

if TYPE_CHECKING:
    from caltest.results import Verdict

QUESTION = "Is what is predicted also observed?"
DIFFERENCE = "How much is observed more or less than predicted?"
"""What a reliability diagram answers on the diagonal, and as differences."""


def first_sentence(verdict: Verdict) -> str:
    """Return the first sentence of a verdict, without intervals."""
    return verdict.sentences(brief=True)[0]


def decided_in_cells(rejected: Any) -> str:
    """Return in how many cells calibration is rejected; the question if in none, which proves nothing of them together.

    Examples
    --------
    >>> decided_in_cells([True, False]), decided_in_cells([False])
    ('Calibration is rejected in 1 of 2 cells (bins).', 'Is what is predicted also observed?')
    """
    number, total = int(np.sum(rejected)), len(rejected)
    of = "1 cell (bin)" if total == 1 else f"{total} cells (bins)"
    return f"Calibration is rejected in {number} of {of}." if number else QUESTION


def what_is_shown(results: Iterable[Any]) -> str:
    """Return the lenses and the numbers of observations of results, each once."""
    each = list(results)
    names = dict.fromkeys(one.lens_name for one in each) | dict.fromkeys(counted(one.n_samples) for one in each)
    return ", ".join(names)


def head_figure(figure: Any, said: str) -> None:
    """Write a sentence above a figure, in lines that fit."""
    wrap(figure.suptitle(literal(said), fontsize=TEXT), figure.get_figwidth() - 0.4)


def in_panels(
    plot: Callable[..., Any],
    curves: Mapping[str, Any],
    axes: Any,
    *,
    caption: str,
    legend: bool,
    tests: Mapping[str, Any] | None = None,
) -> NDArray[Any]:
    """Draw each of many models into a panel that has its name and what was found, with one legend; return the axes."""
    grid = wrapped(axes, len(curves), 3, (3.4, 3.9), 0.6, sharey=False)
    for ax, (name, curve) in zip(grid, curves.items(), strict=True):
        plot(curve, ax, legend=False, **({} if tests is None else {"tests": tests.get(name)}))
        said = " ".join(ax.get_title().split())
        ax.set_title(literal(name) if said in {QUESTION, DIFFERENCE} else literal(f"{name}\n") + said)
    if legend:
        add_legend(grid, new=axes is None, caption=caption)
    if axes is None:
        head_figure(grid[0].figure, QUESTION)
    return grid
