"""The honest band of an increasing calibration function, in the two styles of the reliability diagram."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from caltest.estimation._calibration_band import CalibrationBand
from caltest.plotting._reliability import BAR, DENSITY, LINE, POINT
from caltest.predictions._validation import validate_choice

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_calibration_band(
    band: CalibrationBand, ax: Axes | None = None, style: str = "classical", *, legend: bool = True
) -> Axes:
    """Draw a band for an increasing calibration function.

    The pale area is the band, the line the isotonic fit to the outcomes; where the diagonal leaves the band it
    is drawn thick. Ticks at the foot mark the distinct scores, every k-th of them if there are more than 200.

    Parameters
    ----------
    band : CalibrationBand
        From `caltest.calibration_band`.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default. The legend stands below the axes: give your figure
        ``layout="constrained"`` to make room for it. Nothing else is touched.
    style : {"classical", "deviation"}
        Calibration function against prediction, with square axes; or calibration function minus prediction.
    legend : bool
        Whether to draw the legend.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.

    Raises
    ------
    ValueError
        If ``style`` is neither of the two, or ``band`` is no `CalibrationBand`.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> matplotlib.use("Agg")
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> ax = caltest.plot_calibration_band(caltest.calibration_band(y_true, y_prob))
    >>> ax.get_ylabel()
    'calibration function'
    """
    validate_choice(style, "style", ("classical", "deviation"))
    if not isinstance(band, CalibrationBand):
        msg = f"`band` must be a CalibrationBand from calibration_band(...), got {type(band).__name__}."
        raise ValueError(msg)
    square = style == "classical"
    if ax is None:
        from matplotlib import pyplot as plt

        _, ax = plt.subplots(figsize=(5.2, 5.2) if square else (6.4, 4.4), layout="constrained")
    point, lower, upper = _outline(band)
    base = 0.0 if square else point
    label = f"{band.confidence_level:.0%} band, all scores at once"
    ax.fill_between(point, lower - base, upper - base, color=DENSITY, linewidth=0, zorder=1, label=label)
    for edge in (lower, upper):
        ax.plot(point, edge - base, color=LINE, linewidth=0.7, zorder=2)
    fit = band.recalibrated - (0.0 if square else band.score)
    ax.plot(band.score, fit, color=POINT, linewidth=1.3, zorder=4, label="isotonic fit")
    diagonal: dict[str, Any] = {"color": LINE, "linewidth": 1, "linestyle": (0, (4, 3)), "zorder": 3}
    ax.plot([0, 1], [0, 1 if square else 0], label="calibrated", **diagonal)
    for i, (start, end) in enumerate(band.rejected_regions):
        height = [start, end] if square else [0, 0]
        said: dict[str, Any] = {"label": "calibrated, outside the band"} if i == 0 else {}
        ax.plot([start, end], height, color=BAR, linewidth=3.5, solid_capstyle="butt", zorder=5, **said)
    ax.set_xlim(-0.02, 1.02)
    ax.set_xlabel("predicted probability")
    ax.set_title(f"{band.lens}, {band.n_samples:,} rows, p = {band.pvalue:.2g}", fontsize="medium")
    shown = band.score[:: -(-len(band.score) // _MOST_TICKS)]
    ax.plot(shown, np.zeros(len(shown)), transform=ax.get_xaxis_transform(), **_TICKS)
    if square:
        ax.set_ylim(-0.02, 1.02)
        ax.set_ylabel("calibration function")
        ax.set_box_aspect(1)
    else:
        reach = 1.1 * max(np.abs(band.lower - band.score).max(), np.abs(band.upper - band.score).max(), 0.01)
        ax.set_ylim(-reach, reach)
        ax.set_ylabel("calibration function - predicted")
    if legend:
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, fontsize="small", frameon=False)
    return ax


_MOST_TICKS = 200
_TICKS: dict[str, Any] = {"linestyle": "none", "marker": "|", "markersize": 7, "color": LINE, "clip_on": False}


def _outline(band: CalibrationBand) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return abscissae and ends of the band: its lower end steps up after a score, its upper end before one."""
    point = np.concatenate([[0.0], np.repeat(band.score, 2), [1.0]])
    lower = np.repeat(np.append(0.0, band.lower), 2)
    upper = np.repeat(np.append(band.upper, 1.0), 2)
    return point, lower, upper
