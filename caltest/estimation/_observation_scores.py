"""Scores of single observations, each defined once for the whole package, and their means."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_TIED = 1e-9  # relative; probabilities that differ by rounding


def accuracy_of(prob: NDArray[Any], outcome: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
    """Return whether the outcome of each observation is the most probable one, ``(n_samples,)``; 1 / m if m are tied.

    Scores of predictions, comparisons, studies and tests all count right labels by this function.
    """
    two = prob.shape[1] == 2  # along an axis of two numbers a maximum is several times slower
    largest = np.maximum(prob[:, 0], prob[:, 1]) if two else prob.max(axis=1)
    least = largest * (1 - _TIED)
    own = prob[np.arange(len(prob)), outcome] >= least
    tied = prob >= least[:, None]
    n_tied = tied[:, 0].astype(np.int64) + tied[:, 1] if two else np.count_nonzero(tied, axis=1)
    return np.asarray(own / n_tied, dtype=np.float64)


def brier_of(prob: NDArray[Any], outcome: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
    """Return the Brier score of each observation, ``(n_samples,)``; of two outcomes half the sum of squares."""
    missed = prob - (outcome[:, None] == np.arange(prob.shape[1]))
    if prob.shape[1] == 2:
        missed = missed[:, 1:]
    return np.asarray(np.square(missed).sum(axis=1), dtype=np.float64)


def log_of(prob: NDArray[Any], outcome: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
    """Return the logarithmic score of each observation in nats, ``(n_samples,)``, infinite for probability 0."""
    predicted = np.maximum(prob[np.arange(len(prob)), outcome].astype(np.float64), 0.0)
    with np.errstate(divide="ignore"):
        return 0.0 - np.log(predicted)


def mean_of(values: NDArray[np.float64], weight: NDArray[np.float64] | None) -> float:
    """Return the weighted mean of values of observations; those of weight 0 do not count, infinite ones neither."""
    if weight is not None:
        values, weight = values[weight > 0], weight[weight > 0]
    return float(np.average(values, weights=weight))
