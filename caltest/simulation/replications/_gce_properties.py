"""Properties of the metrics of Nixon et al. (2019), and means over the metrics that share one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caltest.hypothesis_tests._gce_table import gce_metrics, gce_name
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
    msg = f"`metrics` must hold one or more different GCE(...), got {metrics!r}."
    if not all(isinstance(metric, GCE) for metric in chosen):
        raise TypeError(msg)
    if not chosen or len(set(chosen)) < len(chosen):
        raise ValueError(msg)
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
