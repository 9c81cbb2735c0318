"""The most probable classes, and what is left for the others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def top_and_rest(
    prob: NDArray[np.float64], ranked: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the probabilities of all ranked classes but the last, and of the rest, which begins with the last."""
    largest = np.take_along_axis(prob, ranked, axis=1).astype(np.float64)
    top = largest[:, :-1]
    rest = 1.0 - top.sum(axis=1)
    return top, np.where(rest > 0, rest, largest[:, -1])


def ranking(prob: NDArray[np.float64], size: int, name: str) -> NDArray[np.int64]:
    """Return the classes of the largest probabilities, ``(n_samples, size)``; ties go to the smaller index."""
    if size > prob.shape[1]:
        msg = f"`{name}` must be at most the number of classes, {prob.shape[1]}, got {size}."
        raise ValueError(msg)
    return np.argsort(-prob, axis=1, kind="stable")[:, :size]
