"""The temperature that each calibration error likes best (Nixon et al. 2019, section 5.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.predictions._sample import Sample, induce
from caltest.predictions._validation import validate_count, validate_positive, validate_problem
from caltest.simulation.replications._agreement import metric_values
from caltest.simulation.replications._gce_properties import mean_by_property, metrics_frame, validate_metrics
from caltest.statistics import GCE

if TYPE_CHECKING:
    import pandas as pd

_ECE = GCE(max_prob=True, class_conditional=False)
_TOLERANCE = 1e-3  # of log T


@dataclass(frozen=True, eq=False)
class BestTemperatures:
    """The temperature that minimises each metric, and what another metric says of it.

    Attributes
    ----------
    metrics : tuple of GCE
        The metrics that were minimised.
    temperature : array of shape (n_metrics,)
        Where each is smallest.
    value : array of shape (n_metrics,)
        How small that is.
    judge : GCE
        The metric that evaluates all temperatures.
    judged : array of shape (n_metrics,)
        Its value at each temperature, on the held-out rows if there are any.
    log_temperature, log_judged : float
        The same for the temperature that minimises the log score (negative log-likelihood): the usual one. NaN
        where an outcome had probability 0, which no temperature mends.
    judged_before : float
        The judge's value at temperature 1.
    bounds : tuple of float
        Between which temperatures were sought.
    """

    metrics: tuple[GCE, ...]
    temperature: NDArray[np.float64]
    value: NDArray[np.float64]
    judge: GCE
    judged: NDArray[np.float64]
    log_temperature: float
    log_judged: float
    judged_before: float
    bounds: tuple[float, float]

    def by_property(self) -> pd.DataFrame:
        """Return mean temperature and mean value of the judge for every property of metrics: table 3 of the paper."""
        return mean_by_property(
            self.metrics,
            {"temperature": lambda chosen: self.temperature[chosen], "judged": lambda chosen: self.judged[chosen]},
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row per metric: parameters, name, temperature, value there, and the judge's value."""
        return metrics_frame(self.metrics).assign(temperature=self.temperature, value=self.value, judged=self.judged)

    def __str__(self) -> str:
        table = self.by_property().to_string(index=False, float_format="{:.4f}".format)
        return (
            f"Temperatures that minimise {len(self.metrics)} metrics, judged by {self.judge}\n{table}\n"
            f"before (temperature 1): judged {self.judged_before:.4f}\n"
            f"log score: temperature {self.log_temperature:.4f}, judged {self.log_judged:.4f}"
        )

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


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
) -> BestTemperatures:
    r"""Find the temperature at which each metric is smallest, and let one metric judge them all.

    .. math:: p_k(T) = \frac{p_k^{1/T}}{\sum_l p_l^{1/T}}, \qquad T_M = \arg\min_T M(p(T), y)

    A metric is no continuous function of T: it jumps where a prediction crosses the edge of a cell, and has many local
    minima. Each is therefore evaluated on a grid of temperatures that are equally spaced in log T, and then minimised
    by SciPy's bounded search between the neighbours of the best one; the smallest value that was met counts. It may
    miss a narrow dip between two other points of the grid; the paper's downhill simplex starts at one point only. The
    log score is convex in 1 / T, and its temperature exact to the tolerance of the search.

    Predictions of 0 stay 0. What minimises a metric on the rows that judge it flatters that metric; with ``held_out``
    rows that bias is gone.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    held_out : pair (y_true, y_prob), optional
        Other rows of the same model, on which the judge evaluates; by default those of the search.
    metrics : sequence of GCE, optional
        All 32 of the paper with 15 cells by default.
    judge : GCE
        What evaluates the temperatures; by default the ECE of the paper.
    bounds : (low, high)
        Between which temperatures are sought; a temperature at a bound says that the metric has no minimum inside.
        All entries of flat predictions are calibrated where classes are balanced: there is a minimum at infinity.
    n_grid : int
        Temperatures on the grid, at least 3.

    Returns
    -------
    BestTemperatures
        Prints means by property; ``by_property()`` and ``to_frame()`` for pandas.

    Raises
    ------
    ValueError
        If an argument is not of the form above.

    References
    ----------
    J. Nixon et al. (2019), Measuring calibration in deep learning, CVPR workshops, section 5.2 and table 3.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import best_temperatures
    >>> y_true, y_prob = caltest.datasets.load_digits_predictions()
    >>> metrics = [caltest.GCE(scheme) for scheme in ("equal-width", "equal-mass")]
    >>> best = best_temperatures(y_true, y_prob["logistic_regression"], metrics=metrics)
    >>> best.to_frame()[["scheme", "temperature", "value", "judged"]].round(3)
            scheme  temperature  value  judged
    0  equal-width        0.376  0.007   0.021
    1   equal-mass        0.514  0.004   0.015
    """
    chosen, counted, (low, high) = validate_metrics(metrics), validate_count(n_grid, "n_grid", 3), _ends(bounds)
    if not isinstance(judge, GCE):
        msg = f"`judge` must be a GCE(...), got {judge!r}."
        raise ValueError(msg)
    prob, outcome = validate_problem(y_true, y_prob, classes)
    searched = _Tempered(prob, outcome)
    judging = searched if held_out is None else _held_out(held_out, classes, prob.shape[1])
    grid = np.linspace(np.log(low), np.log(high), counted)
    values = np.array([metric_values(chosen, searched.sample(log_t)) for log_t in grid]).T
    found = [_minimise(partial(searched.metric, metric), grid, row) for metric, row in zip(chosen, values, strict=True)]
    log_t, value = np.array(found).T
    log_best, log_score = _minimise(searched.log_score, grid, np.array([searched.log_score(t) for t in grid]))
    known = np.isfinite(log_score)
    return BestTemperatures(
        chosen,
        np.exp(log_t),
        value,
        judge,
        np.array([judging.metric(judge, t) for t in log_t]),
        float(np.exp(log_best)) if known else np.nan,
        judging.metric(judge, log_best) if known else np.nan,
        judging.metric(judge, 0.0),
        (low, high),
    )


@dataclass(frozen=True, eq=False)
class _Tempered:
    """Rows whose predictions have any temperature."""

    prob: NDArray[np.float64]
    outcome: NDArray[Any]

    def sample(self, log_t: float) -> Sample:
        """Return the rows at a temperature; the largest probability of a row is scaled to 1 first, and not lost."""
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


def _minimise(
    function: Callable[[float], float], grid: NDArray[np.float64], values: NDArray[np.float64]
) -> tuple[float, float]:
    """Return the argument and the value of the smallest of all values met."""
    from scipy.optimize import minimize_scalar

    best = int(np.argmin(values))
    start = float(grid[best]), float(values[best])
    if not np.isfinite(start[1]):
        return start
    around = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(function, bounds=around, method="bounded", options={"xatol": _TOLERANCE})
    return (float(found.x), float(found.fun)) if found.fun < start[1] else start


def _ends(bounds: Any) -> tuple[float, float]:
    pair = tuple(bounds) if isinstance(bounds, Sequence) else ()
    if len(pair) == 2:
        low, high = (validate_positive(end, "bounds") for end in pair)
        if low < high:
            return low, high
    msg = f"`bounds` must be two increasing positive numbers, got {bounds!r}."
    raise ValueError(msg)


def _held_out(held_out: Any, classes: Sequence[Any] | None, n_classes: int) -> _Tempered:
    if not isinstance(held_out, tuple) or len(held_out) != 2:
        msg = f"`held_out` must be a pair (y_true, y_prob), got {type(held_out).__name__}."
        raise ValueError(msg)
    prob, outcome = validate_problem(*held_out, classes)
    if prob.shape[1] != n_classes:
        msg = f"`held_out` must have {n_classes} classes, as `y_prob` has, got {prob.shape[1]}."
        raise ValueError(msg)
    return _Tempered(prob, outcome)
