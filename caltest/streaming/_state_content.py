"""What the sums of a state can be, which is checked where they come from a file."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_ROWS = 2**34
"""The most observations that a state holds, for which no sum overflows."""


def require(fits: bool, name: str, what: str) -> None:
    """Raise ValueError unless an array of a file fits."""
    if not fits:
        msg = f"`data` is no possible state: its array `{name}` must hold {what}, and holds what these cannot be."
        raise ValueError(msg)


def is_increasing(numbers: NDArray[Any], stop: int) -> bool:
    """Return whether numbers increase, from 0 and below ``stop``."""
    return not numbers.size or bool(numbers[0] >= 0 and numbers[-1] < stop and (numbers[1:] > numbers[:-1]).all())


def is_counts(count: NDArray[Any], least: int) -> bool:
    """Return whether these are numbers of observations, each at least ``least`` and together at most `MOST_ROWS`."""
    inside = bool((count >= least).all() and (count <= MOST_ROWS).all())
    return inside and float(count.sum(dtype=np.float64)) <= MOST_ROWS


def is_low(part: NDArray[Any], bits: int) -> bool:
    """Return whether these are lower parts of sums, of so many bits."""
    return bool((part >= 0).all() and (part < 2**bits).all())
