"""Logarithms of the probability of each class and of all others together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._ranking import top_and_rest
from caltest.recalibration._logits import FLOOR, blocks

Floats = NDArray[np.float64]


def event_logarithms(prob: NDArray[Any]) -> Iterator[tuple[slice, Floats, Floats]]:
    r"""Yield :math:`\log p_{ik}` and :math:`\log(1 - p_{ik})`, blocks of rows at a time.

    The most probable class has as complement the sum of the others, as 1 - p would be rounding error near 1. Numbers
    below `FLOOR` count as `FLOOR`.

    Yields
    ------
    rows : slice
        The rows.
    event, rest : arrays of shape (n_rows, n_classes)
        Both logarithms.
    """
    for rows in blocks(*prob.shape):
        part = prob[rows].astype(np.float64)
        top = part.argmax(axis=1)[:, None]
        rest = 1.0 - part
        np.put_along_axis(rest, top, top_and_rest(part, top)[1][:, None], axis=1)
        yield rows, np.log(np.maximum(part, FLOOR)), np.log(np.maximum(rest, FLOOR))


def n_functions(n_classes: int) -> int:
    """Return the number of classes that have a function: two classes need one."""
    return n_classes if n_classes > 2 else 1


def class_logarithms(prob: NDArray[Any]) -> Iterator[tuple[int, Floats, Floats]]:
    r"""Yield the same for each class that has a function: all, or the second of two.

    Yields
    ------
    k : int
        The class.
    event, rest : arrays of shape (n_samples,)
        Both logarithms.
    """
    n_classes = prob.shape[1]
    top = prob.argmax(axis=1)
    others = top_and_rest(prob, top[:, None])[1]
    for k in range(n_classes) if n_classes > 2 else (1,):
        event = prob[:, k].astype(np.float64)
        rest = np.where(top == k, others, 1.0 - event)
        yield k, np.log(np.maximum(event, FLOOR)), np.log(np.maximum(rest, FLOOR))
