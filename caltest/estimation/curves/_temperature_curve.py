"""Temperature curve: calibration errors against the softmax temperature, with their noise floors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest.estimation._options import ErrorCurveOptions
from caltest.estimation.curves._cells_curve import ErrorCurve, draws_of_points, measure_errors
from caltest.estimation.scores._scores import validate_errors_and_scores
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._sample import observations_that_count
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._models import by_name, naming, validate_models
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import require, validate_distinct, validate_positive, validate_weight
from caltest.results._description import Description, counted
from caltest.results._naming import describe
from caltest.results._picture import Picture
from caltest.results._progress import reporting
from caltest.statistics import UCE, ConfidenceECE, Statistic
from caltest.statistics._base import quantities

_TEMPERATURES = tuple((4.0 ** (np.arange(-12, 13) / 12)).tolist())


def minimise(function: Callable[[float], float], grid: Floats, values: Floats, tolerance: float) -> tuple[float, float]:
    """Return argument and value of the smallest of all values.

    Parameters
    ----------
    function : callable
        What is minimised.
    grid, values : arrays of shape (n_points,)
        Increasing arguments, and the values there.
    tolerance : float
        How exactly the argument is found between the neighbours of the best point of the grid.
    """
    from scipy.optimize import minimize_scalar

    best = int(np.argmin(values))
    start = float(grid[best]), float(values[best])
    if not np.isfinite(start[1]):
        return start
    around = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(function, bounds=around, method="bounded", options={"xatol": tolerance})
    return (float(found.x), float(found.fun)) if found.fun < start[1] else start


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TemperatureCurve(ErrorCurve):
    """Result of `temperature_curve`.

    Attributes
    ----------
    temperature : array of shape (n_points,)
        Softmax temperatures, increasing.
    models : tuple of str
        Names of the models; a single one has the name "".
    statistics : tuple of str
        Names of the statistics.
    value : array of shape (n_statistics, n_models, n_points)
        The error of the observed labels.
    floor, floor_upper : arrays of shape (n_statistics, n_models, n_points)
        Noise floor: mean and 95 % quantile of the error if the model is calibrated at this temperature, from simulated
        labels.
    log_score : array of shape (n_models, n_points)
        Negative log-likelihood (nats per observation), which temperature scaling minimises.
    n_resamples, n_samples : int
        Number of draws of the labels at each point, and of observations.

    See Also
    --------
    caltest.temperature_curve : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel, Temperature
    >>> _, y_true, y_prob = DirichletModel(2, truth=Temperature(2.0)).draw(300, rng=0)
    >>> curve = caltest.temperature_curve(y_true, y_prob, temperatures=[1, 2, 4], n_resamples=19, rng=0)
    >>> curve.temperature, curve.log_score.round(2)
    (array([1., 2., 4.]), array([[0.7 , 0.64, 0.64]]))
    """

    temperature: Floats
    log_score: Floats

    parameter: ClassVar[str] = "temperature"
    plot = Picture("plot_temperature_curve")
    _derived: ClassVar[tuple[str, ...]] = ("best", "best_log_score", "conclusion")

    @property
    def best(self) -> Integers:
        """Position of the temperature of the smallest error, ``(n_statistics, n_models)``."""
        return self.value.argmin(axis=-1)

    @property
    def best_log_score(self) -> Integers:
        """Position of the temperature of the smallest negative log-likelihood, ``(n_models,)``."""
        return self.log_score.argmin(axis=-1)

    def _sentence(self, s: int, m: int) -> str:
        values, at = self.value[s, m], self.best[s, m]
        of = f" of {self.models[m]}" if self.models[m] else ""
        if np.all(self.value[s, m] == values[0]):
            found = f"{values[0]:.4g}" if np.isfinite(values[0]) else "infinite"
            return f"{self.statistics[s]}{of} is {found} at every temperature."
        usual = self.floor_upper[s, m, at]
        floor = "above" if values[at] > usual else "not above"
        as_is = np.flatnonzero(self.temperature == 1)
        now = f", at temperature 1 it is {values[as_is[0]]:.4g}" if as_is.size else ""
        return (
            f"{self.statistics[s]}{of} is smallest at temperature {self.temperature[at]:.4g}: {values[at]:.4g}{now}. "
            f"The minimum is {floor} what 95 % of calibrated models would have there ({usual:.4g})."
        )

    def _describe(self) -> Description:
        likely = ", ".join(
            f"{self.temperature[at]:.4g}" + (f" ({name})" if name else "")
            for name, at in zip(self.models, self.best_log_score, strict=True)
        )
        return Description(
            f"Temperature curve ({counted(self.n_samples)})",
            self._sentences,
            [self._table(self.best, "best temperature")],
            [
                f"The negative log-likelihood is smallest at temperature {likely}.",
                f"Noise floor: {self.n_resamples:,} Monte Carlo draws of the labels from the tempered predictions.",
                "The temperature is chosen and the minimum is found with the same labels, so that the minimum is too "
                "small. Choose it on other data. Errors of models with different noise floors cannot be compared.",
            ],
        )


@reads_arguments
def temperature_curve(
    y_true: ArrayLike,
    y_prob: ArrayLike | Mapping[str, ArrayLike] | None = None,
    *,
    logits: ArrayLike | Mapping[str, ArrayLike] | None = None,
    statistics: Statistic | str | Sequence[Statistic | str] | None = None,
    temperatures: Sequence[float] | None = None,
    n_resamples: int | None = None,
    **options: Unpack[ErrorCurveOptions],
) -> TemperatureCurve:
    r"""Compute calibration errors against the softmax temperature, with noise floors and the smallest error.

    At the temperature :math:`\tau` the prediction is

    .. math:: p_{ik}(\tau) = \frac{p_{ik}^{1 / \tau}}{\sum_j p_{ij}^{1 / \tau}} =
              \mathrm{softmax}_k(z_i / \tau)

    with the logits z. A temperature above 1 makes predictions less sharp (Laves et al. 2020, figures 5 to 8; Nixon et
    al. 2019, figure 1). Each error estimates that of the model at this temperature, with the bias of its statistic. The
    noise floor under it is what a calibrated model with the predictions of this temperature has on average; it changes
    with the temperature too, because sharper predictions leave less noise.

    Scores stand beside errors: "brier" is `brier_score`, "log" `log_score`, and "spherical" 1 - `spherical_score`, so
    that smaller values are better. They reward discrimination too, and their noise floor is no bias, but the score
    that the predictions expect of themselves. A score above it means labels that are less probable than predicted
    (over-confidence); one below it points to predictions that are not sharp enough, and the smallest may lie there.

    Probabilities of exactly 0 stay 0 at every temperature, so that predictions of exactly 0 and 1 do not change. Pass
    ``logits`` where the softmax has lost small probabilities to rounding.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,), or mapping of str to such, optional
        Predicted probabilities; of several models by name.
    logits : array-like of shape (n_samples, n_classes) or (n_samples,), or mapping of str to such, optional
        Instead of ``y_prob``: what the softmax is applied to; one dimension is the log odds of the positive class.
    lens : lens, optional
        By default that of each statistic: the whole prediction if it can judge it, and the confidence otherwise.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each observation: how much it counts, for errors, scores and noise floors. Labels are not repeated.
        The statistics must take weights.
    statistics : Statistic, str, or sequence of them, optional
        Errors, and scores "brier", "log" and "spherical"; ``ConfidenceECE()`` and ``UCE()`` by default. The UCE of a
        calibrated model is not 0, so that its smallest value does not show the right temperature.
    temperatures : sequence of float, optional
        Positive and different; 25 from 1/4 to 4, equally spaced on a logarithmic axis, by default.
    n_resamples : int, optional
        Number of draws of the labels for each noise floor; 999 by default.

    Returns
    -------
    TemperatureCurve
        Data for `caltest.plotting.plot_temperature_curve`; prints as a report.

    Raises
    ------
    TypeError
        If a statistic or a name of a model has a wrong type, or not exactly one of ``y_prob`` and ``logits`` is given.
    ValueError
        If ``y_prob`` has values outside [0, 1] or does not sum to 1, ``logits`` are not finite, a label is unknown or
        lengths differ, or weights are negative or all 0; if there is no model, or models differ in their number of
        classes; if a statistic combines tests or occurs twice, or needs two outcomes and the lens returns more; if a
        temperature is not positive and finite or occurs twice; if ``n_resamples`` < 1.

    See Also
    --------
    cells_curve : Errors against the number of cells (bins).
    caltest.simulation.best_temperatures : The temperature that minimises each metric, to higher precision.

    References
    ----------
    M.-H. Laves, S. Ihler, K.-P. Kortmann and T. Ortmaier (2020), Uncertainty Calibration Error: A New Metric for
    Multi-Class Classification, submission to ICLR 2021, OpenReview, figures 5 to 8.
    J. Nixon et al. (2019), Measuring calibration in deep learning, CVPR workshops, figure 1.
    C. Guo et al. (2017), On calibration of modern neural networks, ICML.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> curve = caltest.temperature_curve(y_true, y_prob, statistics=caltest.statistics.ConfidenceECE(), rng=0)
    >>> round(float(curve.temperature[curve.best[0, 0]]), 3), round(float(curve.value[0, 0].min()), 4)
    (1.587, 0.0165)

    The Brier score is smallest at temperature 2, where it is far below that of a calibrated model:

    >>> scores = caltest.temperature_curve(y_true, y_prob, statistics=["brier", "log"], temperatures=[1, 2], rng=0)
    >>> scores.to_frame().drop(columns="model").round(3)
         statistic  temperature  value  floor  floor_upper
    0  Brier score          1.0  0.105  0.035        0.038
    1  Brier score          2.0  0.096  0.130        0.137
    2    log score          1.0  0.257  0.064        0.070
    3    log score          2.0  0.210  0.328        0.345
    """
    from scipy.special import softmax

    named = by_name(y_prob, "y_prob") if logits is None else by_name(logits, "logits")
    if (y_prob is None) == (logits is None):
        refuse("temperature_curve needs `y_prob` or `logits`, and not both.", TypeError)
    listed = (ConfidenceECE(), UCE()) if statistics is None else statistics
    chosen = {describe(one): one for one in validate_errors_and_scores(listed)}
    points = _TEMPERATURES if temperatures is None else temperatures
    grid = validate_distinct(points, "temperatures", validate_positive, "positive numbers", "numbers")
    draws = draws_of_points(n_resamples, options)
    if logits is None:
        outcome, as_is = validate_models(y_true, named, options["classes"])
        with np.errstate(divide="ignore"):
            logs = [np.log(prob.astype(np.float64)) for prob in as_is]
    else:
        logs = [_validate_logits(name, values) for name, values in named.items()]
        given = {name: softmax(z, axis=1) for name, z in zip(named, logs, strict=True)}
        outcome, as_is = validate_models(y_true, given, options["classes"])
    row, weight, _ = observations_that_count(validate_weight(options["sample_weight"], len(outcome)), None)
    outcome, as_is, logs = outcome[row], [prob[row] for prob in as_is], [log[row] for log in logs]
    errors = np.empty((3, len(chosen), len(logs), len(grid)))
    log_score = np.empty((len(logs), len(grid)))
    with reporting(options["progress"], "temperatures") as report:
        for m, log in enumerate(logs):
            for t, temperature in enumerate(grid):
                # Logarithm and softmax would move rounded predictions off the edges of cells.
                tempered = as_is[m] if temperature == 1 else softmax(log / temperature, axis=1)
                errors[:, :, m, t] = measure_errors(chosen, tempered, outcome, weight, draws=draws, options=options)
                log_score[m, t] = _mean_log_score(log / temperature, outcome, weight)
                report(m * len(grid) + t + 1, len(logs) * len(grid))
    return TemperatureCurve(
        temperature=grid,
        models=tuple(named),
        statistics=tuple(chosen),
        value=errors[0],
        floor=errors[1],
        floor_upper=errors[2],
        log_score=log_score,
        n_resamples=draws.n_resamples,
        n_samples=len(outcome),
        quantities=quantities(chosen.values()),
    )


def _mean_log_score(logits: Floats, outcome: Integers, weight: Floats | None) -> float:
    largest = logits.max(axis=1)
    total = largest + np.log(np.exp(logits - largest[:, None]).sum(axis=1))
    score = total - logits[np.arange(len(outcome)), outcome]
    return float(np.average(score, weights=weight))


def _validate_logits(name: str, logits: Any) -> Floats:
    """Return logits ``(n_samples, n_classes)``."""
    with naming(name):
        try:
            values = np.asarray(logits, dtype=np.float64)
        except (TypeError, ValueError) as error:
            refuse(f"`logits` must hold real numbers: {error}.")
        right = values.ndim in {1, 2} and 0 not in values.shape and not (values.ndim == 2 and values.shape[1] == 1)
        require(right, "`logits` must have shape (n_samples,) or (n_samples, n_classes)", values.shape)
        if not np.isfinite(values).all():
            refuse(f"`logits` must be finite, got {values[~np.isfinite(values)][0]}.")
    return np.column_stack([np.zeros_like(values), values]) if values.ndim == 1 else values
