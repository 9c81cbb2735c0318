"""Ranks of estimators that were evaluated on the same data sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

CLEAR = 4.0
"""Standard errors by which a difference must exceed chance."""


def rank(estimates: pd.DataFrame) -> pd.DataFrame:
    """Return ranks by mean squared error; see `BiasStudy.ranking`.

    ``estimates`` has one row for each model, lens, number of samples, statistic and replicate with ``value``,
    ``truth``, ``truth_se`` and ``target``.
    """
    import pandas as pd

    rows = []
    known = estimates[estimates["truth"].notna()]
    # A calibrated model has the truth 0 for every distance: estimates of an error and of its square are not compared.
    for key, group in known.groupby(["model", "lens", "n_samples", "target", "truth"], sort=False):
        wide = group.pivot_table(index="replicate", columns="test_statistic", values="value", sort=False)
        value, truth = wide.to_numpy(), float(group["truth"].iloc[0])
        difference, error = _differences(value - truth, float(group["truth_se"].iloc[0]))
        better = difference > CLEAR * error  # [i, j]: j is better than i
        mse = np.square(value - truth).mean(axis=0)
        rows += [
            dict(zip(("model", "lens", "n_samples"), key[:3], strict=True))
            | {"test_statistic": wide.columns[i], "rank": 1 + int(better[i].sum()), "rmse": np.sqrt(mse[i])}
            | {"excess": difference[i, mse.argmin()], "excess_se": error[i, mse.argmin()], "target": key[3]}
            for i in np.argsort(mse, kind="stable")
        ]
    names = ["model", "lens", "n_samples", "test_statistic", "rank", "rmse", "excess", "excess_se", "target"]
    return pd.DataFrame(rows, columns=names)


def _differences(deviation: NDArray[np.float64], truth_se: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return differences of mean squared errors and their standard errors, both ``(n_statistics, n_statistics)``."""
    square, mean = np.square(deviation), deviation.mean(axis=0)
    paired = square[:, :, None] - square[:, None, :]
    scatter = paired.std(axis=0, ddof=1) / np.sqrt(len(deviation))
    return paired.mean(axis=0), np.hypot(scatter, 2 * np.abs(mean[:, None] - mean) * truth_se)
