"""Do calibration errors agree on which model is calibrated best? (Nixon et al. 2019)"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest.estimation._options import ErrorCurveOptions
from caltest.estimation.curves._cells_curve import draws_of_points, measure_errors, measure_values
from caltest.estimation.scores._scores import validate_errors_and_scores
from caltest.hypothesis_tests._gce_table import gce_metrics, gce_name
from caltest.predictions._arrays import Booleans, Floats
from caltest.predictions._sample import Sample, observations_that_count
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._models import by_name, validate_models
from caltest.predictions.inputs._validation import refuse_if, require, validate_weight
from caltest.results import Result
from caltest.results._description import Description
from caltest.results._naming import describe
from caltest.results._picture import Picture
from caltest.results._progress import reporting
from caltest.simulation.studies._run import sizes
from caltest.simulation.studies._study import frame_table
from caltest.statistics import GCE, Statistic

if TYPE_CHECKING:
    import pandas as pd

PROPERTIES: dict[str, Callable[[GCE], bool]] = {
    "all": lambda metric: True,
    "equal-width": lambda metric: metric.scheme == "equal-width",
    "equal-mass": lambda metric: metric.scheme == "equal-mass",
    "top prediction": lambda metric: metric.max_prob,
    "all entries": lambda metric: not metric.max_prob,
    "classes apart": lambda metric: metric.class_conditional,
    "classes together": lambda metric: not metric.class_conditional,
    "thresholded": lambda metric: metric.threshold > 0,
    "unthresholded": lambda metric: metric.threshold == 0,
    "l1": lambda metric: metric.norm == "l1",
    "l2": lambda metric: metric.norm == "l2",
}
"""The rows of the paper's tables 3 and 4, in their order; "even" there is equal-width, "adaptive" equal-mass."""


def validate_metrics(metrics: Any) -> tuple[GCE, ...]:
    """Return the metrics of a study; all 32 of the paper with 15 cells (bins) by default."""
    if metrics is None:
        return gce_metrics()
    chosen = tuple(metrics) if isinstance(metrics, Sequence) else (metrics,)
    right_type = all(isinstance(metric, GCE) for metric in chosen)
    different = right_type and 0 < len(chosen) == len(set(chosen))
    require(different, "`metrics` must hold one or more different GCE(...)", metrics, right_type=right_type)
    return chosen


def name_of(metric: Statistic) -> str:
    """Return what the paper calls one of its metrics, empty if it has no name; other statistics as code."""
    return gce_name(metric) if isinstance(metric, GCE) else describe(metric)


def _with_cells(metric: Statistic, n_cells: int) -> Statistic | None:
    """Return a metric with another number of cells; None if it has none."""
    if hasattr(metric, "n_cells"):
        return replace(metric, n_cells=n_cells)  # type: ignore[type-var]
    if hasattr(metric.partition, "n_cells"):
        return replace(metric, partition=replace(metric.partition, n_cells=n_cells))  # type: ignore[type-var]
    return None


def metrics_frame(metrics: Sequence[Statistic]) -> pd.DataFrame:
    """Return one row for each metric: the parameters of those of the paper, and its name."""
    import pandas as pd

    parameters = ("scheme", "max_prob", "class_conditional", "threshold", "norm", "n_cells")
    frame = pd.DataFrame([{name: getattr(metric, name, None) for name in parameters} for metric in metrics])
    return frame.assign(name=[name_of(metric) for metric in metrics])


def mean_by_property(metrics: Sequence[Statistic], values: Mapping[str, Callable[[Booleans], Floats]]) -> pd.DataFrame:
    """Return one row for each property of metrics, with means of the values that each function selects for them.

    Undefined values (NaN) are left out. Statistics that are not of the paper count among all of them only.
    """
    import pandas as pd

    rows = []
    for name, has in PROPERTIES.items():
        chosen = np.array([has(metric) if isinstance(metric, GCE) else name == "all" for metric in metrics])
        if chosen.any():
            means = {column: _mean(pick(chosen)) for column, pick in values.items()}
            rows.append({"property": name, "n_metrics": int(chosen.sum()), **means})
    return pd.DataFrame(rows)


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MetricAgreement(Result):
    """Result of `metric_agreement`: values of many metrics on many models, and how far their rankings agree.

    Attributes
    ----------
    metrics : tuple of Statistic
        The metrics.
    models : tuple of str
        Names of the models.
    n_cells : tuple of int
        Numbers of cells (bins) by which the metrics were varied.
    values : array of shape (n_metrics, n_models)
        Each metric, with its own number of cells, on each model.
    floor, floor_upper : arrays of shape (n_metrics, n_models)
        Noise floor: mean and 95 % quantile of the metric if the model is calibrated, from simulated labels.
    values_by_cells : array of shape (len(n_cells), n_metrics, n_models)
        Values for the other numbers of cells; NaN for a metric without cells.
    ranks : array of shape (n_metrics, n_models)
        Rank of each model by each metric: 1 is the smallest value, ties have averages.
    correlation : array of shape (n_metrics, n_metrics)
        Spearman's rank correlation of two metrics over the models; NaN where a metric is the same on all models.
    cells_correlation : array of shape (n_metrics,)
        Rank correlation of a metric with itself, averaged over all pairs of two numbers of cells; NaN without cells.
    n_resamples : int
        Number of draws of the labels.

    See Also
    --------
    metric_agreement : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(3).draw(300, rng=0)
    >>> models = {
    ...     "as it is": y_prob,
    ...     "flat": 0.5 * y_prob + 0.5 / 3,
    ...     "sharp": y_prob**2 / (y_prob**2).sum(axis=1)[:, None],
    ... }
    >>> result = caltest.simulation.metric_agreement(y_true, models, n_cells=[5, 10], n_resamples=19, rng=0)
    >>> result.models, result.values.shape
    (('as it is', 'flat', 'sharp'), (32, 3))
    """

    metrics: tuple[Statistic, ...]
    models: tuple[str, ...]
    n_cells: tuple[int, ...]
    values: Floats
    floor: Floats
    floor_upper: Floats
    values_by_cells: Floats
    n_resamples: int

    plot = Picture("plot_metric_agreement")
    _derived: ClassVar[tuple[str, ...]] = ("ranks", "correlation", "cells_correlation", "conclusion")

    @property
    def ranks(self) -> Floats:
        """Rank of each model by each metric."""
        from scipy.stats import rankdata

        return np.asarray(rankdata(self.values, axis=1))

    @cached_property
    def correlation(self) -> Floats:
        """Spearman's rank correlation of any two metrics over the models."""
        return rank_correlation(self.values)

    @cached_property
    def cells_correlation(self) -> Floats:
        """Mean rank correlation of each metric over pairs of numbers of cells."""
        pairs = np.triu_indices(len(self.n_cells), 1)
        return np.array([
            rank_correlation(self.values_by_cells[:, metric])[pairs].mean() for metric in range(len(self.metrics))
        ])  # fmt: skip

    def by_rank(self) -> pd.DataFrame:
        """Return the models in the order of each metric: table 5 of the paper.

        Returns
        -------
        pandas.DataFrame
            A column for each metric by its number, of the paper's 32 that of its appendix C; a row for each place, with
            the names of the models, the smallest value first. Equal values keep the order of the models.
        """
        import pandas as pd

        order = np.argsort(self.values, axis=1, kind="stable")
        places = pd.RangeIndex(1, len(self.models) + 1, name="rank")
        return pd.DataFrame(np.array(self.models, dtype=object)[order].T, index=places)

    def by_property(self) -> pd.DataFrame:
        """Return the mean rank correlation for every property of metrics.

        ``metrics`` averages over pairs of different metrics that both have the property (table 4 of the paper),
        ``n_cells`` over the metrics that have it, between numbers of cells (its section 5.3). Top predictions of fewer
        than 1 / threshold classes all exceed the threshold: those metrics occur twice and agree perfectly.

        Returns
        -------
        pandas.DataFrame
            One row for each property.
        """
        pairs = np.triu(np.ones(self.correlation.shape, dtype=bool), 1)
        return mean_by_property(
            self.metrics,
            {
                "metrics": lambda chosen: self.correlation[pairs & np.outer(chosen, chosen)],
                "n_cells": lambda chosen: self.cells_correlation[chosen],
            },
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each metric as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            Parameters, name, mean correlation with the other metrics, correlation over numbers of cells, and the value
            and its noise floor on each model.
        """
        others = np.where(np.eye(len(self.metrics), dtype=bool), np.nan, self.correlation)
        known = ~np.isnan(others)
        total, count = np.where(known, others, 0.0).sum(axis=1), known.sum(axis=1)
        mean = np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)
        both = zip(self.models, self.values.T, self.floor.T, strict=True)
        values = {f"{what} of {name}": column for name, *pair in both for what, column in zip(_BOTH, pair, strict=True)}
        frame = metrics_frame(self.metrics)
        return frame.assign(mean_correlation=mean, cells_correlation=self.cells_correlation, **values)

    @property
    def conclusion(self) -> str:
        """How far the rankings agree, in words."""
        every = self.by_property().iloc[0]
        numbers = ", ".join(map(str, self.n_cells))
        varied = f"; those by one metric with two of the numbers of cells {numbers} have {every['n_cells']:.3f}"
        cells = "" if np.isnan(every["n_cells"]) else varied
        above = int((self.values > self.floor_upper).sum())
        return (
            f"The rankings of {len(self.models)} models by two metrics have a mean rank correlation of "
            f"{every['metrics']:.3f}{cells}. Of {self.values.size} values {above} are above what 95 % of calibrated "
            "models would have."
        )

    def _describe(self) -> Description:
        heads = {
            "property": "property",
            "n_metrics": "metrics",
            "metrics": "correlation of metrics",
            "n_cells": "correlation over numbers of cells",
        }
        return Description(
            f"Rank correlation of calibration errors ({len(self.metrics)} metrics, {len(self.models)} models)",
            [self.conclusion],
            [frame_table(self.by_property(), heads)],
            [
                "Each row is a mean over the metrics with this property.",
                f"Noise floors: {self.n_resamples:,} Monte Carlo draws of the labels, predictions fixed.",
            ],
        )


_BOTH = ("value", "floor")


@reads_arguments
def metric_agreement(
    y_true: ArrayLike,
    y_prob: Mapping[str, ArrayLike],
    *,
    metrics: Statistic | str | Sequence[Statistic | str] | None = None,
    n_cells: Sequence[int] = (10, 20, 30, 40, 50),
    n_resamples: int | None = None,
    **options: Unpack[ErrorCurveOptions],
) -> MetricAgreement:
    r"""Compare the rankings of models by many calibration errors, with the noise floor of each.

    With :math:`r_1, r_2` the ranks that two metrics give to m models (averages for ties), the rank correlation is
    Spearman's,

    .. math:: \rho = \operatorname{corr}(r_1, r_2) = 1 - \frac{6 \sum (r_1 - r_2)^2}{m (m^2 - 1)}

    where the second form holds without ties. The paper prints :math:`|r_1 - r_2|` without the square. That cannot be
    what it computed: with m = 10 models that form is never below 0.69, and its table 4 has values down to 0.11.

    Low agreement has two sources: metrics that measure different things, and models whose differences are smaller
    than the noise of the labels. A value below the 95 % quantile of its noise floor ranks noise.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given or columns have their names.
    y_prob : mapping of str to array-like of shape (n_samples, n_classes) or (n_samples,)
        Predictions of at least three models for the same observations.
    metrics : Statistic, str, or sequence of them, optional
        Statistics, their names, and the scores "brier", "log" and "spherical" (as in `temperature_curve`, smaller is
        better). All 32 of the paper with 15 cells (bins) by default.
    lens : lens, optional
        By default that of each statistic: the whole prediction if it can judge it, and the confidence otherwise.
    n_cells : sequence of int
        At least two numbers of cells, by which every metric that has cells is varied.
    n_resamples : int, optional
        Number of draws of the labels for each noise floor; 999 by default.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each observation. The statistics must take weights.

    Returns
    -------
    MetricAgreement
        Prints means by property; ``by_property()``, ``by_rank()`` and ``to_frame()`` for pandas; ``plot()`` draws it.

    Raises
    ------
    TypeError
        If ``y_prob`` is not a mapping, or a metric is neither a statistic nor a name of one.
    ValueError
        If there are fewer than three models or fewer than two different numbers of cells; if metrics are equal, or one
        combines tests or has no such number of cells; if predictions have values outside [0, 1] or rows that do not sum
        to 1; if ``n_resamples`` < 1.

    See Also
    --------
    caltest.gce_table : The 32 metrics of one model, with p-values.
    caltest.compare_models : Which model is better calibrated.

    References
    ----------
    J. Nixon et al. (2019), Measuring calibration in deep learning, CVPR workshops, sections 5.3, 5.4 and table 4.

    Examples
    --------
    The bundled predictions of four models; metrics of all entries disagree most:

    >>> import caltest
    >>> from caltest.simulation import metric_agreement
    >>> problem = caltest.datasets.load_digits_predictions()
    >>> agreement = metric_agreement(*problem, n_resamples=19, rng=0)
    >>> agreement.by_property().set_index("property")["metrics"].round(2)[["top prediction", "all entries"]]
    property
    top prediction    1.00
    all entries       0.88
    Name: metrics, dtype: float64

    Any errors and scores:

    >>> some = metric_agreement(*problem, metrics=["ECE", "KS", "brier"], n_resamples=19, rng=0)
    >>> some.by_rank().set_axis([str(metric) for metric in some.metrics], axis=1)
                        ECE()                 KS()          Brier score
    rank
    1          neural_network       neural_network       neural_network
    2     logistic_regression  logistic_regression  logistic_regression
    3           random_forest          naive_bayes        random_forest
    4             naive_bayes        random_forest          naive_bayes
    """
    chosen = validate_errors_and_scores(gce_metrics() if metrics is None else metrics, "metrics")
    counts = tuple(sizes(n_cells, "n_cells"))
    require(len(counts) > 1, "`n_cells` must hold at least two numbers of cells", n_cells)
    is_named = isinstance(y_prob, Mapping)
    found = f"{len(y_prob)} models" if is_named else type(y_prob).__name__
    msg = f"`y_prob` must map names to the predictions of at least three models, got {found}."
    refuse_if(not is_named or len(y_prob) < 3, msg, right_type=is_named)
    named, draws = by_name(y_prob), draws_of_points(n_resamples, options)
    outcome, probs = validate_models(y_true, named, options["classes"])
    row, weight, _ = observations_that_count(validate_weight(options["sample_weight"], len(outcome)), None)
    own = dict(enumerate(chosen))
    varied = {(c, i): _with_cells(one, count) for c, count in enumerate(counts) for i, one in own.items()}
    known = {place: one for place, one in varied.items() if one is not None}
    errors = np.empty((3, len(chosen), len(probs)))
    by_cells = np.full((len(counts), len(chosen), len(probs)), np.nan)
    with reporting(options["progress"], "models") as report:
        for m, prob in enumerate(probs):  # one at a time: each keeps all of its cells
            seen = prob[row], outcome[row], weight
            errors[:, :, m] = measure_errors(own, *seen, draws=draws, options=options)
            for place, value in measure_values(known, *seen, options["lens"]).items():
                by_cells[(*place, m)] = value
            report(m + 1, len(probs))
    return MetricAgreement(
        metrics=chosen,
        models=tuple(named),
        n_cells=counts,
        values=errors[0],
        floor=errors[1],
        floor_upper=errors[2],
        values_by_cells=by_cells,
        n_resamples=draws.n_resamples,
    )


def metric_values(metrics: Sequence[GCE], sample: Sample) -> Floats:
    """Return the value of each metric ``(n_metrics,)``; metrics that differ in the norm share their cells."""
    return np.array([float(metric.evaluate(sample, sample.outcome)) for metric in metrics])


def rank_correlation(values: Floats) -> Floats:
    """Return Spearman's rank correlation of the rows of ``values``; NaN where a row is constant."""
    import pandas as pd

    return pd.DataFrame(values.T).corr(method="spearman").to_numpy()
