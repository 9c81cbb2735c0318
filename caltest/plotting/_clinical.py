"""The calibration curve of a clinical prediction model."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from caltest.clinical import ClinicalCalibration
from caltest.plotting._axes import COLORS, DENSITY, POINT, in_one_look, require, single
from caltest.plotting._prediction_axis import PredictionAxis, finish
from caltest.results._description import percent, sized

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@in_one_look
def plot_clinical_calibration(
    result: ClinicalCalibration,
    ax: Axes | None = None,
    *,
    scale: str | None = None,
    histogram: bool = True,
    legend: bool = True,
    **options: Any,
) -> Axes:
    """Plot the smooth calibration curve of a validation, with groups of similar risks and the risks by outcome.

    The band around the diagonal is where the curve of a calibrated model lies, at each risk by itself. Dots are ten
    groups with about as many patients each. The panel below is the distribution of the risks, for patients with and
    without the event.

    Parameters
    ----------
    result : ClinicalCalibration
        From `caltest.clinical.clinical_calibration`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; new axes by default. Histogram and legend are below the axes: a figure with
        ``layout="constrained"`` makes room for them.
    scale : {"linear", "logit", "equal-mass"}, optional
        Scale of the risks, by default chosen from them as in `plot_reliability`.
    histogram : bool
        Whether to draw the distribution of the risks below.
    legend : bool
        Whether to draw the legend.
    **options
        Passed to ``matplotlib.axes.Axes.plot`` for the curve, such as ``linewidth=2``.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn into.

    Raises
    ------
    TypeError
        If ``result`` is no `ClinicalCalibration`.
    ValueError
        If ``scale`` is unknown.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> import numpy as np
    >>> matplotlib.use("Agg")
    >>> rng = np.random.default_rng(0)
    >>> risk = rng.beta(1, 3, 300)
    >>> result = caltest.clinical.clinical_calibration(rng.random(300) < risk, risk, n_resamples=99, rng=0)
    >>> result.plot().get_ylabel()
    'observed frequency'
    """
    require(result, ClinicalCalibration, "result", "clinical_calibration")
    ax, curve = single(ax, (6.4, 7.0)), result.curve
    heights = [curve.mean_risk, curve.observed, curve.prediction, curve.frequency]
    axis = PredictionAxis.of(scale, curve.densities, heights)
    band = f"{percent(result.confidence_level)} band of a calibrated model, at each risk"
    ax.fill_between(curve.prediction, curve.lower, curve.upper, color=DENSITY, linewidth=0, zorder=1, label=band)
    line: dict[str, Any] = {"color": POINT, "linewidth": 1.6, "zorder": 4, "label": f"smooth curve ({result.smoother})"}
    ax.plot(curve.prediction, curve.frequency, **line | options)
    dots: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 6, "color": POINT, "zorder": 5}
    groups = len(curve.mean_risk)
    ax.plot(curve.mean_risk, curve.observed, **dots, clip_on=False, label=f"{groups} groups of similar risks")
    for name, color in zip(curve.densities, COLORS[1:3], strict=True):
        ax.plot([], [], color=color, label=f"{name} (below)")
    words = {"observed_expected": "observed/expected", "calibration_slope": "slope", "c_statistic": "c-statistic"}
    known = [
        f"{said} {result[name].estimate:.3g}" for name, said in words.items() if not math.isnan(result[name].estimate)
    ]
    size = sized(result.n_samples, result.n_groups, weighted=result.weighted)
    caption = f"{size}, {result.n_events:,} events; {', '.join(known)}"
    said = f"Calibration is {result.decision}"
    finish(axis, ax, COLORS[1:3], said, None, caption=caption, histogram=histogram, legend=legend)
    return ax
