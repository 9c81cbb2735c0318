"""Sums of numbers in parts, such as the groups or the cells (bins) of observations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def sums_in_parts(part: NDArray[np.integer], values: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return the sums ``(n,)`` of values ``(n_values,)`` in the parts from 0 to n - 1; 0 in an empty one."""
    return np.bincount(part, values, n).astype(np.float64, copy=False)
