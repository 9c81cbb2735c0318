"""Pictures of the validation of a clinical prediction model: its calibration curve, and its sites."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest.clinical import ClinicalCalibration, SiteCalibration
from caltest.plotting._axes import (
    BAR,
    COLORS,
    DASHED,
    DENSITY,
    LINE,
    POINT,
    draw_forest,
    in_one_look,
    require,
    several,
    single,
)
from caltest.plotting._heading import first_sentence
from caltest.plotting._prediction_axis import PredictionAxis, finish
from caltest.results._decision import rejects
from caltest.results._description import percent, sized

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LONGEST = 36  # characters of a site's name


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
        From `caltest.clinical_calibration`.
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

    See Also
    --------
    caltest.clinical.clinical_calibration : Computes what is drawn.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> import numpy as np
    >>> matplotlib.use("Agg")
    >>> rng = np.random.default_rng(0)
    >>> risk = rng.beta(1, 3, 300)
    >>> result = caltest.clinical_calibration(rng.random(300) < risk, risk, n_resamples=99, rng=0)
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


@in_one_look
def plot_sites(result: SiteCalibration, axes: Any = None) -> Any:
    """Plot observed over expected events and the calibration slope of every site as forest plots.

    Points are the estimates, lines their intervals; points are filled where calibration is rejected within the site
    after the adjustment for the number of sites. Below stand the mean over sites, and the interval for a new site. Ends
    far beyond the ranges of the points are cut, and have an arrow.

    Parameters
    ----------
    result : SiteCalibration
        From `caltest.clinical.calibration_by_site`.
    axes : array of two matplotlib.axes.Axes, optional
        Where to draw; new axes by default.

    Returns
    -------
    array of matplotlib.axes.Axes
        What was drawn into.

    Raises
    ------
    TypeError
        If ``result`` is no `SiteCalibration`.
    ValueError
        If there is another number of axes.

    See Also
    --------
    caltest.clinical.calibration_by_site : Computes what is drawn.

    Examples
    --------
    >>> import caltest, matplotlib
    >>> import numpy as np
    >>> matplotlib.use("Agg")
    >>> rng = np.random.default_rng(0)
    >>> risk, site = rng.beta(1, 3, 600), np.arange(600) % 4
    >>> died = rng.random(600) < risk
    >>> result = caltest.clinical.calibration_by_site(died, risk, site=site, n_resamples=99, rng=0)
    >>> [ax.get_xlabel() for ax in result.plot()]
    ['observed / expected events', 'calibration slope']
    """
    require(result, SiteCalibration, "result", "calibration_by_site")
    summaries = {one.name: one for one in result.summaries}
    names = [f"{_short(site.name)} ({site.n_events:,} of {site.n_samples:,})" for site in result.sites]
    names += ["mean over sites", "a new site"] * bool(summaries)
    axes = several(axes, (1, 2), (9.6, 1.8 + 0.3 * len(names)), sharey=True)
    rejected = [bool(rejects(site.pvalue_adjusted, result.alpha)) for site in result.sites]
    for ax, name, words in zip(
        axes,
        ("observed_expected", "calibration_slope"),
        ("observed / expected events", "calibration slope"),
        strict=True,
    ):
        measures = [getattr(site, name) for site in result.sites]
        places = [one.estimate if math.isfinite(one.estimate) else math.nan for one in measures]
        intervals = [one.confidence_interval for one in measures]
        filled, summary = list(rejected), summaries.get(name)
        if summaries:
            places += [math.nan] * 2 if summary is None else [summary.estimate, math.nan]
            unknown = (math.nan, math.nan)
            intervals += (
                [unknown] * 2 if summary is None else [summary.confidence_interval, summary.prediction_interval]
            )
            filled += [False] * 2
        known = np.array([value for value in [*places, 1.0] if not math.isnan(value)])
        margin = max(float(np.ptp(known)), 0.2)
        low, high = known.min() - margin, known.max() + margin
        if name == "observed_expected":
            low = max(low, -0.05 * high)
        ends = np.array(intervals, dtype=float)
        draw_forest(ax, places, filled, names, xlabel=words, title="", intervals=np.clip(ends, low, high))
        for limit, marker, beyond in ((low, "<", ends[:, 0] < low), (high, ">", ends[:, 1] > high)):
            rows = np.flatnonzero(beyond)
            ax.plot(np.full(len(rows), limit), rows, marker, color=BAR, markersize=6, clip_on=False)
        ax.axvline(1.0, color=LINE, zorder=1, **DASHED)
        if summaries:
            ax.axhline(len(result.sites) - 0.5, color=LINE, linewidth=0.6)
        ax.set_xlim(low, high)
    axes[0].set_title(first_sentence(result.verdict))
    return axes


def _short(name: str) -> str:
    """Return the name of a site with its middle left out if it is long."""
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST // 2].rstrip()} … {name[-_LONGEST // 2 :].lstrip()}"
