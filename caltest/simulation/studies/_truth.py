"""What statistics estimate: the expected miscalibration of models, exact or simulated."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from caltest.predictions._distances import Distance, total_variation
from caltest.predictions._lens import LensLike
from caltest.results._naming import describe
from caltest.simulation.models._base import Model
from caltest.simulation.models._exact import in_words
from caltest.simulation.studies._run import by_lens, replicate_rng
from caltest.statistics import Statistic

if TYPE_CHECKING:
    import pandas as pd

Truth = Callable[[Model, LensLike, Statistic], float]
ROUNDING = 1e-12
"""Error of a quadrature: the truth of a calibrated model is 0."""


class Target(NamedTuple):
    """What a statistic estimates: a number, its Monte Carlo standard error, and what it is."""

    value: float
    standard_error: float
    words: str


_UNKNOWN = Target(float("nan"), 0.0, "unknown")


def truths(
    models: dict[str, Model],
    lenses: dict[str, LensLike] | None,
    statistics: dict[str, Statistic],
    truth: Truth | None,
    n_truth: int,
) -> pd.DataFrame:
    """Return one row for each model, lens and statistic with its target; ``truth`` is that of the user."""
    import pandas as pd

    rows = []
    for name, model in models.items():
        for view, (lens, estimators) in by_lens(lenses, statistics, model.n_classes).items():
            known: dict[Any, Target] = {}
            for estimator, statistic in estimators.items():
                distance = statistic.target
                key = distance if truth is None else estimator
                if key not in known:
                    known[key] = (
                        _target(model, lens, distance, n_truth)
                        if truth is None
                        else Target(float(truth(model, lens, statistic)), 0.0, describe(truth))
                    )
                partition, target = statistic.partition, known[key]
                rows.append(
                    {
                        "model": name,
                        "lens": view,
                        "test_statistic": estimator,
                        "partition": None if partition is None else type(partition).__name__,
                        "n_cells": getattr(partition, "n_cells", None),
                        "truth": target.value,
                        "truth_se": target.standard_error,
                        "target": target.words,
                    }
                )
    return pd.DataFrame(rows)


def _target(model: Model, lens: LensLike, distance: Distance | None, n_truth: int) -> Target:
    if distance is None:
        return _UNKNOWN
    exact = exact_miscalibration(model, lens, distance)
    if not np.isnan(exact):
        return Target(exact, 0.0, f"{in_words(distance)} through {describe(lens)}, exact")
    if not n_truth:
        return _UNKNOWN
    rng = replicate_rng(0, f"truth/{describe(model)}", 0)  # that of the model: no study has another
    try:
        found = model.estimate_miscalibration(lens, distance, n_samples=n_truth, rng=rng)
    except NotImplementedError:
        return _UNKNOWN
    return Target(found.value, found.standard_error, found.target)


def exact_miscalibration(model: Model, lens: LensLike, distance: Distance = total_variation) -> float:
    """Return the expected miscalibration of a model through a lens; NaN where no quadrature knows it."""
    try:
        found = model.expected_miscalibration(lens, distance)
    except (NotImplementedError, ValueError):  # not known, or too rough for quadrature
        return float("nan")
    return found if abs(found) > ROUNDING else 0.0
