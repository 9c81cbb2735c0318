"""The most probable classes, and what is left for the others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_BLOCK_VALUES = 2**19


def top_and_rest(
    prob: NDArray[np.float64], ranked: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the probabilities of the ranked classes, and the sum of all others.

    1 minus the ranked ones would be rounding error where little is left.
    """
    top = np.take_along_axis(prob, ranked, axis=1).astype(np.float64)
    rest = np.empty(len(prob))
    step = max(1, _BLOCK_VALUES // prob.shape[1])
    for start in range(0, len(prob), step):
        others = prob[start : start + step].astype(np.float64)
        np.put_along_axis(others, ranked[start : start + step], 0.0, axis=1)
        rest[start : start + step] = others.sum(axis=1)
    return top, rest


def ranking(prob: NDArray[np.float64], size: int, name: str) -> NDArray[np.int64]:
    """Return the classes of the largest probabilities, ``(n_samples, size)``; ties go to the smaller index."""
    if size > prob.shape[1]:
        msg = f"`{name}` must be at most the number of classes, {prob.shape[1]}, got {size}."
        raise ValueError(msg)
    return np.argsort(-prob, axis=1, kind="stable")[:, :size]
