"""The GiViTI calibration belt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from caltest.hypothesis_tests.classical._giviti import GivitiBelt
from caltest.plotting._axes import (
    DASHED,
    DENSITY,
    FINDING,
    LINE,
    POINT,
    in_one_look,
    legend_below,
    literal,
    require,
    single,
)
from caltest.plotting._heading import what_is_shown
from caltest.plotting._prediction_axis import set_linear
from caltest.results._decision import decided
from caltest.results._description import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INNER = 0.3  # opacity of the inner belt


@in_one_look
def plot_giviti_belt(belt: GivitiBelt, ax: Axes | None = None, *, legend: bool = True) -> Axes:
    """Plot the GiViTI calibration belt: the fitted polynomial with its inner and outer belt.

    Where the outer belt does not contain the diagonal, the diagonal is thick.

    Parameters
    ----------
    belt : GivitiBelt
        From `caltest.hypothesis_tests.giviti_belt`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes by default. The legend is below the axes: a figure with ``layout="constrained"`` makes
        room for it.
    legend : bool
        Whether to draw the legend.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn into.

    Raises
    ------
    TypeError
        If ``belt`` is not a `GivitiBelt`.

    See Also
    --------
    caltest.hypothesis_tests.giviti_belt : Computes what is drawn.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> matplotlib.use("Agg")
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> ax = caltest.plotting.plot_giviti_belt(caltest.hypothesis_tests.giviti_belt(y_true[:500], y_prob[:500]))
    >>> ax.get_ylabel()
    'observed frequency'
    """
    require(belt, GivitiBelt, "belt", "giviti_belt")
    ax = single(ax, (6.4, 6.0))
    x = belt.prediction
    outer: dict[str, Any] = {"color": DENSITY, "label": f"{percent(belt.confidence_level)} belt"}
    inner: dict[str, Any] = {"color": LINE, "alpha": _INNER, "label": f"{percent(belt.inner_level)} belt"}
    ax.fill_between(x, belt.lower, belt.upper, linewidth=0, zorder=1, **outer)
    ax.fill_between(x, belt.inner_lower, belt.inner_upper, linewidth=0, zorder=2, **inner)
    ax.plot(x, belt.curve, color=POINT, linewidth=1.3, zorder=4, label=f"polynomial of degree {belt.selected_degree}")
    ax.plot([0, 1], [0, 1], color=LINE, zorder=3, label="calibrated", **DASHED)
    for i, run in enumerate(sorted(belt.too_low + belt.too_high)):
        label_once: dict[str, Any] = {"label": "outside the outer belt"} if i == 0 else {}
        ax.plot(run, run, color=FINDING, linewidth=3.5, solid_capstyle="butt", zorder=5, **label_once)
    ax.set_box_aspect(1)
    set_linear(ax.xaxis, x)
    set_linear(ax.yaxis, np.concatenate([x, belt.lower, belt.upper]))  # of rare events wider than the predictions
    ax.set(xlabel="predicted probability", ylabel="observed frequency")
    ax.set_title(literal(decided(belt.pvalue, belt.alpha)))
    if legend:
        legend_below(ax, caption=what_is_shown([belt]))
    return ax
