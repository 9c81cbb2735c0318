"""Folds for a choice by cross-validation within a fit: random, stratified, and independent of the order of the data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Floats, Integers
from caltest.predictions.inputs._validation import SeedLike, validate_rng

N_FOLDS = 5
_ALWAYS_FITTED = -1


def observation_order(logits: NDArray[Any], outcome: Integers, weight: Floats | None = None) -> NDArray[np.intp]:
    """Return an order of the observations that depends on neither their own order nor that of the classes.

    They are sorted by the logit of their label relative to the largest one, then by their sorted logits and weights, so
    that only observations that are alike but for the names of the classes are left in their order.
    """
    own = logits[np.arange(len(logits)), outcome]
    keys = (*np.sort(logits, axis=1).T, own - logits.max(axis=1))
    return np.lexsort(keys if weight is None else (weight, *keys))


def stratified_folds(logits: NDArray[Any], outcome: Integers, weight: Floats | None, rng: SeedLike) -> Integers:
    """Return the fold of each observation: those of each class are dealt out at random, to folds of equal size.

    Chance belongs to observations in the order above, so that the folds are the same for permuted observations. They
    must be random: dealt out in this order, every held-out observation has neighbours like itself among the others,
    and a map that follows them seems to predict it well.

    The only observation of a class is in no fold, because a map without this class cannot predict it.
    """
    order = observation_order(logits, outcome, weight)
    order = order[validate_rng(rng).permutation(len(order))]
    order = order[np.argsort(outcome[order], kind="stable")]
    counts = np.bincount(outcome)
    starts = np.concatenate([[0], np.cumsum(counts)])[:-1]
    rank = np.arange(len(order)) - starts[outcome[order]]
    fold = np.empty(len(order), dtype=np.int64)
    fold[order] = rank % N_FOLDS
    fold[counts[outcome] == 1] = _ALWAYS_FITTED
    return fold
