"""Ridge on off-diagonal weights and intercepts, and its choice by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._validation import SeedLike, validate_number
from caltest.recalibration._choice_folds import N_FOLDS, stratified_folds
from caltest.recalibration._linear_map import LinearMap, mean_log_score
from caltest.recalibration._temperature import likely_temperature


def validate_ridge(ridge: Any) -> tuple[float, ...]:
    """Return the ridges to choose from, the largest first; a single one is not chosen.

    Raises
    ------
    TypeError
        If a ridge is no number.
    ValueError
        If one is negative or not finite, two are equal, or there is none.
    """
    listed = tuple(ridge) if isinstance(ridge, Sequence | np.ndarray) and not isinstance(ridge, str) else (ridge,)
    values = sorted((validate_number(one, "ridge", 0.0) for one in listed), reverse=True)
    if not values or len(set(values)) < len(values):
        msg = f"`ridge` must be a number or different numbers to choose from, got {ridge!r}."
        raise ValueError(msg)
    return tuple(values)


def odir_penalty(n_classes: int, ridge: float, *, diagonal: bool) -> NDArray[np.float64]:
    r"""Return the ridge of each parameter: off-diagonal and intercept regularisation (ODIR).

    .. math:: \frac{\lambda}{K (K - 1)} \sum_{j \ne k} W_{jk}^2 + \frac{\lambda}{K} \sum_k b_k^2
    """
    of_intercepts = np.full(n_classes, ridge / n_classes)
    if diagonal:
        return np.concatenate([np.zeros(n_classes), of_intercepts])
    off_diagonal = (1 - np.eye(n_classes)) * ridge / (n_classes * (n_classes - 1))
    return np.column_stack([off_diagonal, of_intercepts]).ravel()


def cross_validated_scores(
    logits: NDArray[Any],
    outcome: NDArray[np.int64],
    weight: NDArray[np.float64],
    ridges: Sequence[float],
    *,
    diagonal: bool,
    rng: SeedLike,
) -> tuple[NDArray[np.float64], float]:
    """Return the mean negative log-likelihood of held-out observations for each ridge, and of temperature scaling.

    Ridges decrease, and each search starts where the one before ended, the first from temperature scaling.
    """
    fold, total = stratified_folds(logits, outcome, weight, rng), np.zeros(1 + len(ridges))
    n_classes = logits.shape[1]
    shape = (2, n_classes) if diagonal else (n_classes, n_classes + 1)
    for number in range(N_FOLDS):
        held = fold == number
        if not held.any():
            continue
        inside = ~held
        share = weight[inside] / weight[inside].sum()
        inverse = 1 / likely_temperature(logits[inside], outcome[inside], weight[inside]).temperature
        theta = tempered_start(n_classes, inverse, diagonal=diagonal)
        for k, ridge in enumerate((None, *ridges)):
            if ridge is not None:
                penalty = odir_penalty(n_classes, ridge, diagonal=diagonal)
                theta, _ = LinearMap(logits[inside], outcome[inside], share, penalty, diagonal).minimise(theta)
            lost = mean_log_score(logits[held], outcome[held], theta.reshape(shape), diagonal=diagonal)
            total[k] += float(weight[held] @ lost)
    total /= max(weight[fold >= 0].sum(), np.finfo(np.float64).tiny)
    return total[1:], float(total[0])


def tempered_start(n_classes: int, inverse: float, *, diagonal: bool) -> NDArray[np.float64]:
    """Return the parameters of temperature scaling."""
    if diagonal:
        return np.repeat([inverse, 0.0], n_classes)
    return np.column_stack([inverse * np.eye(n_classes), np.zeros(n_classes)]).ravel()
