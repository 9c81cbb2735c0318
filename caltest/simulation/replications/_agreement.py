"""Do calibration errors agree on which model is calibrated best? (Nixon et al. 2019)"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.hypothesis_tests._gce_table import gce_metrics, gce_name
from caltest.predictions._sample import Sample, make_sample
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._validation import refuse_if, require
from caltest.results import Result
from caltest.results._description import Description
from caltest.results._picture import Picture
from caltest.simulation.studies._run import sizes
from caltest.simulation.studies._study import frame_table
from caltest.statistics import GCE

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


def metrics_frame(metrics: Sequence[GCE]) -> pd.DataFrame:
    """Return one row for each metric: its parameters and its name in the paper."""
    import pandas as pd

    parameters = ("scheme", "max_prob", "class_conditional", "threshold", "norm", "n_cells")
    frame = pd.DataFrame([{name: getattr(metric, name) for name in parameters} for metric in metrics])
    return frame.assign(name=[gce_name(metric) for metric in metrics])


def mean_by_property(
    metrics: Sequence[GCE], values: Mapping[str, Callable[[NDArray[np.bool_]], NDArray[np.float64]]]
) -> pd.DataFrame:
    """Return one row for each property of metrics, with means of the values that each function selects for them.

    Undefined values (NaN) are left out.
    """
    import pandas as pd

    rows = []
    for name, has in PROPERTIES.items():
        chosen = np.array([has(metric) for metric in metrics])
        if chosen.any():
            means = {column: _mean(pick(chosen)) for column, pick in values.items()}
            rows.append({"property": name, "n_metrics": int(chosen.sum()), **means})
    return pd.DataFrame(rows)


def _mean(values: NDArray[np.float64]) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MetricAgreement(Result):
    """Result of `metric_agreement`: values of many metrics on many models, and how far their rankings agree.

    Attributes
    ----------
    metrics : tuple of GCE
        The metrics.
    models : tuple of str
        Names of the models.
    n_cells : tuple of int
        Numbers of cells (bins) by which the metrics were varied.
    values : array of shape (n_metrics, n_models)
        Each metric, with its own number of cells, on each model.
    values_by_cells : array of shape (len(n_cells), n_metrics, n_models)
        The same for the other numbers of cells.
    correlation : array of shape (n_metrics, n_metrics)
        Spearman's rank correlation of two metrics over the models; NaN where a metric is the same on all models.
    cells_correlation : array of shape (n_metrics,)
        Rank correlation of a metric with itself, averaged over all pairs of two numbers of cells.
    """

    metrics: tuple[GCE, ...]
    models: tuple[str, ...]
    n_cells: tuple[int, ...]
    values: NDArray[np.float64]
    values_by_cells: NDArray[np.float64]

    plot = Picture("plot_metric_agreement")
    _derived: ClassVar[tuple[str, ...]] = ("correlation", "cells_correlation", "conclusion")

    @cached_property
    def correlation(self) -> NDArray[np.float64]:
        """Spearman's rank correlation of any two metrics over the models."""
        return rank_correlation(self.values)

    @cached_property
    def cells_correlation(self) -> NDArray[np.float64]:
        """Mean rank correlation of each metric over pairs of numbers of cells."""
        pairs = np.triu_indices(len(self.n_cells), 1)
        return np.array([
            rank_correlation(self.values_by_cells[:, metric])[pairs].mean() for metric in range(len(self.metrics))
        ])  # fmt: skip

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
            on each model.
        """
        others = np.where(np.eye(len(self.metrics), dtype=bool), np.nan, self.correlation)
        known = ~np.isnan(others)
        total, count = np.where(known, others, 0.0).sum(axis=1), known.sum(axis=1)
        mean = np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)
        values = {f"value of {name}": column for name, column in zip(self.models, self.values.T, strict=True)}
        frame = metrics_frame(self.metrics)
        return frame.assign(mean_correlation=mean, cells_correlation=self.cells_correlation, **values)

    @property
    def conclusion(self) -> str:
        """How far the rankings agree, in words."""
        every = self.by_property().iloc[0]
        cells = ", ".join(map(str, self.n_cells))
        return (
            f"The rankings of {len(self.models)} models by two metrics have a mean rank correlation of "
            f"{every['metrics']:.3f}; those by one metric with two of the numbers of cells {cells} have "
            f"{every['n_cells']:.3f}."
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
            ["Each row is a mean over the metrics with this property."],
        )


@reads_arguments
def metric_agreement(
    y_true: ArrayLike,
    y_prob: Mapping[str, ArrayLike],
    *,
    classes: Sequence[Any] | None = None,
    metrics: Sequence[GCE] | None = None,
    n_cells: Sequence[int] = (10, 20, 30, 40, 50),
) -> MetricAgreement:
    r"""Compare the rankings of models by many calibration errors.

    With :math:`r_1, r_2` the ranks that two metrics give to m models (averages for ties), the rank correlation is
    Spearman's,

    .. math:: \rho = \operatorname{corr}(r_1, r_2) = 1 - \frac{6 \sum (r_1 - r_2)^2}{m (m^2 - 1)}

    where the second form holds without ties. The paper prints :math:`|r_1 - r_2|` without the square. That cannot be
    what it computed: with m = 10 models that form is never below 0.69, and its table 4 has values down to 0.11.

    Low agreement has two sources: metrics that measure different things, and models whose differences are smaller
    than the noise of the labels. `gce_table` gives the noise floor of each metric.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given or columns have their names.
    y_prob : mapping of str to array-like of shape (n_samples, n_classes) or (n_samples,)
        Predictions of at least three models for the same observations.
    classes : sequence, optional
        The label of each column of the predictions.
    metrics : sequence of GCE, optional
        All 32 of the paper with 15 cells (bins) by default.
    n_cells : sequence of int
        At least two numbers of cells, by which every metric is varied.

    Returns
    -------
    MetricAgreement
        Prints means by property; ``by_property()`` and ``to_frame()`` for pandas; ``plot()`` draws it.

    Raises
    ------
    TypeError
        If ``y_prob`` is not a mapping, or a metric is not a `GCE`.
    ValueError
        If there are fewer than three models or fewer than two different numbers of cells; if metrics are equal; if
        predictions have values outside [0, 1] or rows that do not sum to 1.

    References
    ----------
    J. Nixon et al. (2019), Measuring calibration in deep learning, CVPR workshops, sections 5.3, 5.4 and table 4.

    Examples
    --------
    The bundled predictions of four models; metrics of all entries disagree most:

    >>> import caltest
    >>> from caltest.simulation import metric_agreement
    >>> agreement = metric_agreement(*caltest.datasets.load_digits_predictions())
    >>> agreement.by_property().set_index("property")["metrics"].round(2)[["top prediction", "all entries"]]
    property
    top prediction    1.00
    all entries       0.88
    Name: metrics, dtype: float64
    """
    chosen, counts = validate_metrics(metrics), tuple(sizes(n_cells, "n_cells"))
    require(len(counts) > 1, "`n_cells` must hold at least two numbers of cells", n_cells)
    named = isinstance(y_prob, Mapping)
    found = f"{len(y_prob)} models" if named else type(y_prob).__name__
    msg = f"`y_prob` must map names to the predictions of at least three models, got {found}."
    refuse_if(not named or len(y_prob) < 3, msg, right_type=named)
    varied = [chosen, *(tuple(replace(metric, n_cells=count) for metric in chosen) for count in counts)]
    columns = []
    for prob in y_prob.values():
        sample = make_sample(y_true, prob, classes=classes)  # one at a time: each keeps all of its cells
        columns.append([metric_values(metrics, sample) for metrics in varied])
    own, *others = np.moveaxis(np.array(columns), 0, -1)
    return MetricAgreement(
        metrics=chosen,
        models=tuple(map(str, y_prob)),
        n_cells=counts,
        values=own,
        values_by_cells=np.stack(others),
    )


def metric_values(metrics: Sequence[GCE], sample: Sample) -> NDArray[np.float64]:
    """Return the value of each metric ``(n_metrics,)``; metrics that differ in the norm share their cells."""
    return np.array([float(metric.evaluate(sample, sample.outcome)) for metric in metrics])


def rank_correlation(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Spearman's rank correlation of the rows of ``values``; NaN where a row is constant."""
    import pandas as pd

    return pd.DataFrame(values.T).corr(method="spearman").to_numpy()
