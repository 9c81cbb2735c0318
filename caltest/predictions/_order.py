"""Stable sorting: equal values keep their order, so that results are the same on every machine."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def stable_order(values: NDArray[Any]) -> NDArray[np.int64]:
    """Return ``np.argsort(values, kind="stable")``, several times faster where all that is nearly equal is equal.

    Positive doubles are ordered as the integers with the same bits. The lowest bits make room for the place, so that
    the keys are distinct, a fast sort brings along the places, and equal values keep their order. Different values
    with equal keys are noticed.
    """
    places = np.arange(len(values))
    bits = np.int64(len(values).bit_length())
    key = (values.astype(np.float64) + 0.0).view(np.int64)  # 0.0 instead of -0.0
    key >>= bits
    key <<= bits
    key |= places
    key.sort()
    order: NDArray[np.int64] = key & ((np.int64(1) << bits) - 1)
    ordered = values[order]
    if np.all(key[:1] >= 0) and np.all(ordered[:-1] <= ordered[1:]):
        return order
    return np.argsort(values, kind="stable")
