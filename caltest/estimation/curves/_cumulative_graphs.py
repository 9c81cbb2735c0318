"""Cumulative graphs: observed against predicted sums of the event, with bands and a spline."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest.estimation._options import TestedEventOptions
from caltest.predictions._arrays import Floats
from caltest.predictions._lens import LensLike, lens_name
from caltest.predictions._lenses import Canonical, Confidence
from caltest.predictions._sample import Sample, induce
from caltest.predictions._view import LensView
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._models import by_name, validate_models
from caltest.predictions.inputs._validation import validate_choice, validate_count, validate_rng
from caltest.resampling import Consistency
from caltest.resampling.distributions._base import TIE_TOLERANCE, MonteCarloDistribution
from caltest.resampling.engine._evaluation import Question
from caltest.resampling.engine._run import Answer, run
from caltest.resampling.engine._stopping import USUAL_DRAWS, number_of_draws
from caltest.results import Result
from caltest.results._decision import NO_PROOF, align_pvalue, decide, equate_pvalue
from caltest.results._description import Description, Table, counted, percent
from caltest.results._naming import describe
from caltest.results._picture import Picture
from caltest.results._progress import part_of, reporting
from caltest.results._verdict import Judged
from caltest.statistics import KS

if TYPE_CHECKING:
    import pandas as pd
    from scipy.interpolate import CubicSpline

N_GRID = 101
"""Number of fractiles at which the slope is evaluated."""

_MOST_SHOWN = 2**11
_METHODS = ("monte-carlo", "asymptotic")
_CURVES = {
    "residuals": "prediction plus slope of a cubic spline through the cumulative residuals",
    "labels": "slope of a cubic spline through the cumulative labels",
}


@dataclass(frozen=True, eq=False)
class SplineFrequency:
    r"""Frequency of the event by the slope of a cubic spline, and its mean and standard deviation under calibration.

    The spline fits the points :math:`(i / n, h_i - \tilde h_i)` best, i = 0 to n, and the prediction is added to its
    slope ("residuals"); or the points :math:`(i / n, h_i)` ("labels"). Knots are equally spaced and the ends straight
    ("linear run-out"). The slope is a linear function of the labels, so that its mean and its variance under
    calibration are exact.

    Attributes
    ----------
    fractile, score : arrays of shape (n_grid,)
        Where the slope is evaluated, and the prediction there.
    frequency, expected, std : arrays of shape (n_grid,)
        Frequency of the event, and its mean and standard deviation if the model is calibrated. The mean is the
        prediction for residuals, and the slope of the spline through the cumulative predictions for labels.
    """

    fractile: Floats
    score: Floats
    frequency: Floats
    expected: Floats
    std: Floats

    @classmethod
    def of(cls, sample: Sample, n_knots: int, curve: str) -> SplineFrequency:
        """Fit the spline to a sample with two outcomes; with few observations there are fewer knots."""
        from scipy.interpolate import CubicSpline

        n, p = sample.n_samples, sample.expected[:, 1]
        knots = np.linspace(0.0, 1.0, min(n_knots, n + 1))
        basis = CubicSpline(knots, np.eye(len(knots)), bc_type="natural")
        weights = _slope_weights(basis, n)
        # Tied predictions have no order: each label of a block counts as the mean of the block.
        start = np.flatnonzero(np.append(True, np.diff(sample.event) > 0))
        size = np.diff(np.append(start, n))
        weights = np.add.reduceat(weights, start, axis=1) / size
        residual, variance = (np.add.reduceat(values, start) for values in ((sample.outcome == 1) - p, p * (1 - p)))
        grid = np.linspace(0.0, 1.0, N_GRID)
        rows = n * np.arange(N_GRID)  # over N_GRID - 1, in integers, so that an event and its complement mirror
        at_most, at_least = -(-rows // (N_GRID - 1)) - 1, rows // (N_GRID - 1)
        slope = basis.derivative()(grid)
        covariance = (weights * variance) @ weights.T
        score = (sample.event[np.maximum(at_most, 0)] + sample.event[np.minimum(at_least, n - 1)]) / 2
        expected = score if curve == "residuals" else slope @ (weights @ np.add.reduceat(p, start))
        return cls(
            fractile=grid,
            score=score,
            frequency=expected + slope @ (weights @ residual),
            expected=expected,
            std=np.sqrt(np.clip(np.einsum("gj,jk,gk->g", slope, covariance, slope), 0.0, None)),
        )


def _slope_weights(basis: CubicSpline, n: int) -> Floats:
    """Return the values of the spline at its knots as functions of the labels, ``(n_knots, n)``."""
    values = basis(np.arange(n + 1) / n)
    after = np.cumsum(values[:0:-1], axis=0)[::-1]  # the label of row i adds to all points from i + 1 on
    return np.linalg.solve(values.T @ values, after.T) / n


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CumulativeGraph(Judged, Result):
    """The graphs of one model in a `CumulativeGraphs`.

    Attributes
    ----------
    name : str
        The model; empty if it has no name.
    fractile : array of shape (n_points,)
        Share of the observations with predictions up to each point, from 0 to 1.
    predicted, observed : arrays of shape (n_points,)
        Sum of the predictions, and number of events, up to each point, divided by the number of observations. Points
        are the ends of blocks of equal predictions; of more than 2,048 some are left out, never the largest deviation.
    statistic : float
        Largest absolute value of ``observed - predicted``: `caltest.KS`.
    pvalue : float
        P-value of this statistic, not adjusted for the number of models.
    critical_value : float
        Largest value of the statistic that is not rejected at the level ``alpha``. The path leaves the band from
        ``lower`` to ``upper``, which is ``predicted`` plus or minus this value, exactly if the p-value is at most
        ``alpha``.
    worst : int
        Position of the largest deviation among the points.
    grid, score : arrays of shape (n_grid,)
        Fractiles for the curve of the frequency, and the prediction at each.
    frequency : array of shape (n_grid,)
        Frequency of the event: the prediction plus the slope of a spline through the cumulative residuals, or the slope
        of one through the cumulative labels; clipped to [0, 1].
    frequency_lower, frequency_upper : arrays of shape (n_grid,)
        Band under calibration of each point of this curve alone (normal approximation with the exact variance).
    n_samples : int
        Number of observations.
    n_expected : float
        Expected number of the rarer one of events and other observations; below 5 a test that does not reject decides
        nothing.
    alpha : float
        Probability with which a calibrated model leaves its band anywhere, and with which a point of its curve of the
        frequency lies outside that one's band.

    See Also
    --------
    caltest.cumulative_graphs : The function that returns graphs.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> graphs = caltest.cumulative_graphs(y_true, {"model": y_prob}, n_resamples=99, rng=0)
    >>> graph = graphs["model"]
    >>> graph.n_samples, graph.rejected
    (300, False)
    """

    name: str
    fractile: Floats
    predicted: Floats
    observed: Floats
    statistic: float
    pvalue: float
    critical_value: float
    worst: int
    grid: Floats
    score: Floats
    frequency: Floats
    frequency_lower: Floats
    frequency_upper: Floats
    n_samples: int
    n_expected: float
    alpha: float

    plot = Picture("plot_cumulative_graphs")
    _derived: ClassVar[tuple[str, ...]] = ("rejected", "conclusion")

    @property
    def lower(self) -> Floats:
        """Lower end of the band of ``observed`` if the model is calibrated, ``(n_points,)``."""
        return self.predicted - self.critical_value

    @property
    def upper(self) -> Floats:
        """Upper end of this band, ``(n_points,)``."""
        return self.predicted + self.critical_value

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each point of the cumulative graphs as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            Model, fractile, cumulative prediction and frequency, and the ends of the band.
        """
        import pandas as pd

        names = ("fractile", "predicted", "observed", "lower", "upper")
        return pd.DataFrame({"model": self.name} | {name: getattr(self, name) for name in names})

    @property
    def conclusion(self) -> str:
        """The decision, and where the deviation is largest, in words."""
        who = f"{self.name}: " if self.name else ""
        p = equate_pvalue(self.pvalue)
        if decide(self.pvalue, self.alpha, n_expected=self.n_expected) == "undecidable":
            few = f"only {self.n_expected:.2g} events, or other observations, were to be expected"
            return f"{who}It cannot be told whether the model is calibrated: {few} ({p})."
        if not self.rejected:
            return f"{who}Calibration is not rejected ({p}). {NO_PROOF}"
        gap = float(self.observed[self.worst] - self.predicted[self.worst])
        more = "more" if gap > 0 else "less"
        share = percent(float(f"{self.fractile[self.worst]:.3g}"))
        return (
            f"{who}Calibration is rejected ({p}). Among the {share} of the observations with the smallest predictions "
            f"the event is {more} frequent than predicted, by {abs(gap):.4g} of all observations."
        )

    def _describe(self) -> Description:
        return Description(f"Cumulative graphs of a model ({counted(self.n_samples)})", [self.conclusion])


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CumulativeGraphs(Result):
    """Result of `cumulative_graphs`; iterates over the models, and ``graphs["name"]`` is one of them.

    Attributes
    ----------
    models : tuple of CumulativeGraph
        The graphs of each model.
    lens : lens
        The lens.
    lens_name : str
        The lens in words.
    alpha : float
        Probability with which a calibrated model leaves its band.
    n_knots : int
        Number of knots of the spline.
    curve : {"residuals", "labels"}
        What the spline fits.
    method : {"monte-carlo", "asymptotic"}
        How the null distribution of the path was found.
    origin : str
        The same in words.

    See Also
    --------
    caltest.cumulative_graphs : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> graphs = caltest.cumulative_graphs(y_true, {"model": y_prob}, n_resamples=99, rng=0)
    >>> [graph.name for graph in graphs], graphs.alpha
    (['model'], 0.05)
    """

    models: tuple[CumulativeGraph, ...]
    lens: LensLike
    lens_name: str
    alpha: float
    n_knots: int
    curve: str
    method: str
    origin: str

    plot = Picture("plot_cumulative_graphs")
    _derived: ClassVar[tuple[str, ...]] = ("conclusion",)

    def __iter__(self) -> Iterator[CumulativeGraph]:
        return iter(self.models)

    def __getitem__(self, name: str) -> CumulativeGraph:
        return {model.name: model for model in self.models}[name]

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each point of the cumulative graphs of each model as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            Model, fractile, cumulative prediction and frequency, and the ends of the band.
        """
        import pandas as pd

        return pd.concat([model.to_frame() for model in self.models], ignore_index=True)

    @property
    def conclusion(self) -> str:
        """The decision for each model in words."""
        return " ".join(model.conclusion for model in self.models)

    def _describe(self) -> Description:
        level = percent(1 - self.alpha)
        rows = [
            (
                model.name or "the model",
                f"{model.statistic:.4g}",
                f"{model.critical_value:.4g}",
                align_pvalue(model.pvalue),
            )
            for model in self.models
        ]
        separate = ["P-values are not adjusted for the number of models."] if len(rows) > 1 else []
        return Description(
            f"Cumulative graphs ({self.lens_name}, {counted(self.models[0].n_samples)})",
            [model.conclusion for model in self.models],
            [Table(("model", describe(KS()), f"{level} limit if calibrated", "p-value"), rows)],
            [
                f"Band of the sums: it contains the whole path of a calibrated model with probability {level}. "
                f"Distribution: {self.origin}.",
                f"Frequencies: {_CURVES[self.curve]}, {self.n_knots} knots; their band is that of each point alone, by "
                "a normal approximation.",
                *separate,
            ],
        )


@reads_arguments
def cumulative_graphs(
    y_true: ArrayLike,
    y_prob: ArrayLike | Mapping[str, ArrayLike],
    *,
    method: str = "monte-carlo",
    n_knots: int = 6,
    curve: str = "residuals",
    n_resamples: int | None = None,
    **options: Unpack[TestedEventOptions],
) -> CumulativeGraphs:
    r"""Compute the four cumulative calibration graphs of Gupta et al. (2020), with bands of a calibrated model.

    Sort the observations by the predicted probability of the event, :math:`p_1 \le \dots \le p_n`. With the indicators
    :math:`y_i` of the event,

    .. math:: h_i = \frac1n \sum_{j \le i} y_j, \qquad \tilde h_i = \frac1n \sum_{j \le i} p_j, \qquad
              \mathrm{KS} = \max_i |h_i - \tilde h_i|

    (equations 11 and 12), where blocks of equal predictions are not split. The graphs show (a) :math:`h_i` and
    :math:`\tilde h_i` against the fractile i / n; (b) :math:`h_i` against :math:`\tilde h_i`, so that a calibrated
    model is near the diagonal; (c) the frequency of the event and the prediction against the fractile; and (d) the
    frequency against the prediction. The frequency is the prediction plus the slope
    of the natural cubic spline, with equally spaced knots, that fits the points :math:`(i / n, h_i - \tilde h_i)` best.
    The paper fits the points :math:`(i / n, h_i)` instead (section 4; ``curve="labels"``), which draws even a
    calibrated model away from the diagonal where the predictions rise steeply, and its band with it; residuals have the
    slope 0 on average if the model is calibrated.

    The band in (a) and (b) has the same width everywhere and the level of all points together: it is the quantile of
    KS if the model is calibrated, so that the path leaves it exactly where the test with `KS` rejects. For a class pass
    `ClassWise`, for the r-th top class `TopRank`, and for the r top classes `WithinTop`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,), or mapping of str to such
        Predicted probabilities; of several models, or before and after recalibration, by name.
    alpha : float
        Level of the test that the band shows: with this probability a calibrated model leaves its band anywhere.
    method : {"monte-carlo", "asymptotic"}
        How the distribution of KS is found: by simulated labels (valid at every sample size), or as the limit, the
        largest distance of a Brownian motion from 0.
    n_knots : int
        Number of knots of the spline, at least 2; the paper has 6.
    curve : {"residuals", "labels"}
        What the spline of the frequency fits: cumulative residuals, to whose slope the prediction is added, or
        cumulative labels, as in the paper.
    n_resamples : int, optional
        Number of draws of the labels; by default 9,999, and 999 for more than 5,000,000 predicted probabilities.

    Returns
    -------
    CumulativeGraphs
        Data for `caltest.plotting.plot_cumulative_graphs`; prints as a report.

    Raises
    ------
    TypeError
        If a name of a model is no string, or ``lens``, ``region``, ``n_knots``, ``n_resamples``, ``workers`` or ``rng``
        has another wrong type.
    ValueError
        If ``y_prob`` has values outside [0, 1] or does not sum to 1, a label is unknown or lengths differ; if the lens
        has more than two outcomes; if there is no model, or models differ in their number of classes; if
        ``alpha`` is not strictly between 0 and 1, ``method`` or ``curve`` is unknown, ``n_knots`` < 2 or
        ``n_resamples`` < 1; if no observation lies in the region.

    See Also
    --------
    reliability_curve : Frequencies in cells (bins).
    calibration_test : The test with ``statistic=KS()`` or ``Kuiper()``.

    References
    ----------
    K. Gupta et al. (2020), Calibration of neural networks using splines, figures 1 to 10, sections 3 and 4.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> graphs = caltest.cumulative_graphs(y_true, y_prob, n_resamples=999, rng=0)
    >>> (model,) = graphs
    >>> round(model.statistic, 4), model.pvalue, round(model.critical_value, 4)
    (0.0397, 0.001, 0.003)
    """
    classes, lens, alpha = options["classes"], options["lens"], options["alpha"]
    validate_choice(method, "method", _METHODS)
    knots = validate_count(n_knots, "n_knots", 2)
    validate_choice(curve, "curve", tuple(_CURVES))
    named = by_name(y_prob)
    outcome, probs = validate_models(y_true, named, classes)
    look: LensLike = (Canonical() if probs[0].shape[1] == 2 else Confidence()) if lens is None else lens
    n_resamples = number_of_draws(n_resamples, USUAL_DRAWS, probs[0].size)
    seed = int(validate_rng(options["rng"]).integers(2**62))  # the same labels are simulated for every model
    models = []
    with reporting(options["progress"], "simulating labels") as report:
        for number, (name, prob) in enumerate(zip(named, probs, strict=True)):
            sample = induce(prob, outcome, lens=look, region=options["region"])
            found = run(
                [Question(KS(), LensView(sample))],
                sample,
                Consistency(),
                n_resamples=n_resamples,
                method=method,
                workers=options["workers"],
                rng=seed,
                progress=part_of(report, number, len(probs)),
            ).answers[0]
            models.append(_graph(name, found, alpha, SplineFrequency.of(sample, knots, curve)))
    return CumulativeGraphs(
        models=tuple(models),
        lens=look,
        lens_name=lens_name(look, classes),
        alpha=alpha,
        n_knots=knots,
        curve=curve,
        method=method,
        origin="Brownian limit" if method == "asymptotic" else Consistency().origin(n_resamples),
    )


def _graph(name: str, found: Answer, alpha: float, spline: SplineFrequency) -> CumulativeGraph:
    from scipy.special import ndtri

    sample = found.sample
    assert isinstance(sample, Sample)
    end = np.append(0, np.flatnonzero(np.append(np.diff(sample.event) > 0, True)) + 1)
    observed, predicted = (
        np.append(0.0, np.cumsum(values))[end] / sample.n_samples for values in (sample.outcome == 1, sample.event)
    )
    worst = int(np.argmax(np.abs(observed - predicted)))
    shown = np.unique(np.append(np.linspace(0, len(end) - 1, min(len(end), _MOST_SHOWN - 1)).astype(np.int64), worst))
    reach = ndtri(1 - alpha / 2) * spline.std
    ends = spline.frequency, spline.expected - reach, spline.expected + reach
    frequency, low, high = (np.clip(values, 0.0, 1.0) for values in ends)
    return CumulativeGraph(
        name=name,
        fractile=end[shown] / sample.n_samples,
        predicted=predicted[shown],
        observed=observed[shown],
        statistic=found.value,
        pvalue=found.pvalue,
        critical_value=_critical_value(found, alpha),
        worst=int(np.searchsorted(shown, worst)),
        grid=spline.fractile,
        score=spline.score,
        frequency=frequency,
        frequency_lower=low,
        frequency_upper=high,
        n_samples=sample.n_samples,
        n_expected=float(sample.expected.sum(axis=0).min()),
        alpha=alpha,
    )


def _critical_value(found: Answer, alpha: float) -> float:
    """Return the largest value of KS that is not rejected; 1, which no path exceeds, if draws are too few for any."""
    if not isinstance(found.null, MonteCarloDistribution):
        return found.null.quantile(1 - alpha) if found.null.std > 0 else 0.0
    drawn = np.sort(found.null.values)[::-1]
    rank = math.floor(alpha * (1 + TIE_TOLERANCE) * (len(drawn) + 1)) - 1
    return float(drawn[rank]) if rank >= 0 else 1.0
