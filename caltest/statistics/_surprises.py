"""Surprises: observations with their less probable outcome. They are few, and only these need to be summed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._sample import Sample


def usual(sample: Sample) -> NDArray[np.uint8]:
    """Return the more probable outcome of each observation, ``(n_samples,)``."""
    return (sample.null_prob[:, 1] > 0.5).astype(np.uint8)


def sign(usual: NDArray[np.uint8]) -> NDArray[Any]:
    """Return what a surprise adds to the number of events, ``(n_samples,)``: -1 where the event is usual, else 1."""
    return 1.0 - 2.0 * usual


def surprises(sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.uint8]:
    """Return 1 where an outcome ``(..., n_samples)`` is a surprise, else 0, with shape ``(n_replicates, n_samples)``.

    Sums of events are sums of signed surprises plus a constant; a sharp model leaves few surprises to sum.
    """
    return np.atleast_2d(outcomes).reshape(-1, sample.n_samples) ^ sample.once(usual)


def rare_outcomes(outcome: NDArray[np.integer], prob: NDArray[np.float64], cell: NDArray[np.integer]) -> int:
    """Return how many labels show that labels vary: those that are not the usual one of their cell and prediction.

    The usual label is the most frequent one among the observations of a cell with the same most probable outcome, and
    of a single one this outcome. Of several classes in a cell, labels differ that all are as predicted.
    """
    n_outcomes, top = prob.shape[1], prob.argmax(axis=1)
    _, place, size = np.unique(cell * n_outcomes + top, return_inverse=True, return_counts=True)
    number = np.bincount(place * n_outcomes + outcome, minlength=len(size) * n_outcomes).reshape(-1, n_outcomes)
    alone = (size[place] == 1) & (outcome != top)
    return int((size - number.max(axis=1)).sum() + np.count_nonzero(alone))
