"""The temperature at which each calibration error is smallest (Nixon et al. 2019, section 5.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.estimation.curves._temperature_curve import minimise
from caltest.predictions._arrays import Floats
from caltest.predictions._sample import Sample, induce
from caltest.predictions.inputs._arguments import read_problem, reads_arguments
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import require, validate_count, validate_positive, validate_problem
from caltest.results import Result
from caltest.results._description import Description
from caltest.simulation.replications._agreement import mean_by_property, metric_values, metrics_frame, validate_metrics
from caltest.simulation.studies._run import increasing_pair
from caltest.simulation.studies._study import frame_table
from caltest.statistics import GCE

if TYPE_CHECKING:
    import pandas as pd

_ECE = GCE(max_prob=True, class_conditional=False)
_TOLERANCE = 1e-3  # of log T


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class BestTemperatures(Result):
    """Result of `best_temperatures`: the temperature that minimises each metric, evaluated by another metric.

    Attributes
    ----------
    metrics : tuple of GCE
        The metrics that were minimised.
    temperature : array of shape (n_metrics,)
        Where each metric is smallest.
    value : array of shape (n_metrics,)
        Its value there.
    judge : GCE
        The metric that evaluates all temperatures.
    judged : array of shape (n_metrics,)
        Its value at each temperature, on the held-out observations if there are any.
    log_temperature, log_judged : float
        The same for the temperature that minimises the log score (negative log-likelihood), the usual one; NaN where
        an outcome had probability 0, which no temperature changes.
    judged_before : float
        The judge's value at temperature 1.
    bounds : tuple of float
        Interval of temperatures that was searched.

    See Also
    --------
    best_temperatures : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> metrics = [caltest.statistics.GCE(), caltest.statistics.GCE("equal-mass")]
    >>> best = caltest.simulation.best_temperatures(y_true, y_prob, metrics=metrics, n_grid=9)
    >>> best.temperature.shape
    (2,)
    """

    metrics: tuple[GCE, ...]
    temperature: Floats
    value: Floats
    judge: GCE
    judged: Floats
    log_temperature: float
    log_judged: float
    judged_before: float
    bounds: tuple[float, float]

    _derived: ClassVar[tuple[str, ...]] = ("conclusion",)

    def by_property(self) -> pd.DataFrame:
        """Return mean temperature and mean value of the judge for every property of metrics: table 3 of the paper.

        Returns
        -------
        pandas.DataFrame
            One row for each property.
        """
        return mean_by_property(
            self.metrics,
            {"temperature": lambda chosen: self.temperature[chosen], "judged": lambda chosen: self.judged[chosen]},
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each metric as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            Parameters, name, temperature, value there, and the judge's value.
        """
        return metrics_frame(self.metrics).assign(temperature=self.temperature, value=self.value, judged=self.judged)

    @property
    def conclusion(self) -> str:
        """How far the temperatures differ, in words."""
        return (
            f"The metrics are smallest at temperatures from {self.temperature.min():.4g} to "
            f"{self.temperature.max():.4g}, where the judge is between {self.judged.min():.4f} and "
            f"{self.judged.max():.4f}; at temperature 1 it is {self.judged_before:.4f}."
        )

    def _describe(self) -> Description:
        heads = {
            "property": "property",
            "n_metrics": "metrics",
            "temperature": "mean temperature",
            "judged": "mean value of the judge",
        }
        log = (
            "A label had probability 0, so the log score is infinite at every temperature."
            if np.isnan(self.log_temperature)
            else f"The log score is smallest at temperature {self.log_temperature:.4g}, where the judge is "
            f"{self.log_judged:.4f}."
        )
        return Description(
            f"Temperatures that minimise calibration errors ({len(self.metrics)} metrics)",
            [self.conclusion, log],
            [frame_table(self.by_property(), heads)],
            [f"Judge: {self.judge}. Each row is a mean over the metrics with this property."],
        )


@reads_arguments
def best_temperatures(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    held_out: tuple[ArrayLike, ArrayLike] | None = None,
    metrics: Sequence[GCE] | None = None,
    judge: GCE = _ECE,
    bounds: tuple[float, float] = (0.1, 10.0),
    n_grid: int = 61,
    input: str = "probabilities",  # noqa: A002
) -> BestTemperatures:
    r"""Find the temperature at which each calibration error is smallest, and evaluate all with one of them.

    .. math:: p_k(T) = \frac{p_k^{1/T}}{\sum_l p_l^{1/T}}, \qquad T_M = \arg\min_T M(p(T), y)

    A metric is not a continuous function of T: it jumps where a prediction crosses the edge of a cell (bin), and has
    many local minima. Each is therefore evaluated on a grid of temperatures that are equally spaced in log T, and then
    minimised by SciPy's bounded search between the neighbours of the best one; the smallest of all values counts. The
    search may miss a narrow dip between two other points of the grid; the paper's downhill simplex starts at one point
    only. The log score is convex in 1 / T, and its temperature is exact to the tolerance of the search.

    Predictions of 0 stay 0. A judge is too optimistic on the observations on which temperatures were chosen; with
    ``held_out`` observations it is not.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given or columns have their names.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    held_out : pair (y_true, y_prob), optional
        Other observations of the same model, on which the judge is evaluated; by default those of the search.
    metrics : sequence of GCE, optional
        All 32 of the paper with 15 cells (bins) by default.
    judge : GCE
        The metric that evaluates the temperatures; by default the ECE of the paper.
    bounds : (low, high)
        Interval of temperatures that is searched. A temperature at a bound means that the metric has no minimum inside:
        where classes are balanced, all entries of flat predictions are calibrated, and the minimum is at infinity.
    n_grid : int
        Number of temperatures on the grid, at least 3.
    input : {"probabilities", "logits"}
        What predictions are, those held out too, as in `caltest.calibration_test`.

    Returns
    -------
    BestTemperatures
        Prints means by property; ``by_property()`` and ``to_frame()`` for pandas.

    Raises
    ------
    TypeError
        If ``judge`` or a metric is not a `GCE`; if ``bounds`` or ``held_out`` is not a pair.
    ValueError
        If ``bounds`` are not two increasing positive numbers or ``n_grid`` < 3; if metrics are equal; if ``held_out``
        has another number of classes; if predictions have values outside [0, 1] or rows that do not sum to 1.

    See Also
    --------
    caltest.recalibration.TemperatureScaling : The temperature that minimises the log score.

    References
    ----------
    J. Nixon et al. (2019), Measuring calibration in deep learning, CVPR workshops, section 5.2 and table 3.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import best_temperatures
    >>> y_true, y_prob = caltest.datasets.load_digits_predictions()
    >>> metrics = [caltest.statistics.GCE(scheme) for scheme in ("equal-width", "equal-mass")]
    >>> best = best_temperatures(y_true, y_prob["logistic_regression"], metrics=metrics)
    >>> best.to_frame()[["scheme", "temperature", "value", "judged"]].round(3)
            scheme  temperature  value  judged
    0  equal-width        0.376  0.007   0.021
    1   equal-mass        0.514  0.004   0.015
    """
    chosen, counted = validate_metrics(metrics), validate_count(n_grid, "n_grid", 3)
    low, high = increasing_pair(bounds, "bounds", "be two increasing positive numbers", validate_positive)
    require(isinstance(judge, GCE), "`judge` must be a GCE(...)", judge, right_type=False)
    prob, outcome = validate_problem(y_true, y_prob, classes)
    searched = _Tempered(prob, outcome)
    judging = searched if held_out is None else _held_out(held_out, classes, prob.shape[1], input)
    grid = np.linspace(np.log(low), np.log(high), counted)
    values = np.array([metric_values(chosen, searched.sample(log_t)) for log_t in grid]).T
    found = [
        minimise(partial(searched.metric, metric), grid, row, _TOLERANCE)
        for metric, row in zip(chosen, values, strict=True)
    ]
    log_t, value = np.array(found).T
    log_best, log_score = minimise(
        searched.log_score, grid, np.array([searched.log_score(t) for t in grid]), _TOLERANCE
    )
    known = np.isfinite(log_score)
    return BestTemperatures(
        metrics=chosen,
        temperature=np.exp(log_t),
        value=value,
        judge=judge,
        judged=np.array([judging.metric(judge, t) for t in log_t]),
        log_temperature=float(np.exp(log_best)) if known else np.nan,
        log_judged=judging.metric(judge, log_best) if known else np.nan,
        judged_before=judging.metric(judge, 0.0),
        bounds=(low, high),
    )


@dataclass(frozen=True, eq=False)
class _Tempered:
    """Observations whose predictions can have any temperature."""

    prob: Floats
    outcome: NDArray[Any]

    def sample(self, log_t: float) -> Sample:
        """Return the observations at a temperature; the largest probability of each is scaled to 1 before, and kept."""
        power = (self.prob / self.prob.max(axis=1, keepdims=True)) ** np.exp(-log_t)
        return induce(power / power.sum(axis=1, keepdims=True), self.outcome)

    def metric(self, metric: GCE, log_t: float) -> float:
        """Return the value of a metric at a temperature."""
        return float(metric_values([metric], self.sample(log_t))[0])

    def log_score(self, log_t: float) -> float:
        """Return the mean negative log-likelihood; infinite where an outcome had probability 0."""
        sample = self.sample(log_t)
        with np.errstate(divide="ignore"):
            return float(-np.log(sample.prob[np.arange(sample.n_samples), sample.outcome]).mean())


def _held_out(held_out: Any, classes: Sequence[Any] | None, n_classes: int, kind: str) -> _Tempered:
    if not isinstance(held_out, tuple) or len(held_out) != 2:
        refuse(f"`held_out` must be a pair (y_true, y_prob), got {type(held_out).__name__}.", TypeError)
    read = read_problem({"y_true": held_out[0]}, {"y_prob": held_out[1]}, classes, kind)
    prob, outcome = validate_problem(read.labels["y_true"], read.probs["y_prob"], read.classes)
    require(prob.shape[1] == n_classes, f"`held_out` must have {n_classes} classes, as `y_prob` has", prob.shape[1])
    return _Tempered(prob, outcome)
