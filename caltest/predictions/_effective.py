"""Effective numbers: how many observations, or groups, of equal weight some of unequal weight are worth.

References
----------
L. Kish (1965), Survey Sampling, Wiley.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._parts import sums_in_parts


def effective_number(weight: NDArray[np.float64]) -> float:
    r"""Return :math:`(\sum w)^2 / \sum w^2`, which does not depend on the unit of weights; 0 if there are none."""
    return float(effective_numbers(weight, np.zeros(len(weight), dtype=np.int64), 1)[0])


def effective_numbers(weight: NDArray[np.float64], index: NDArray[np.integer], n: int) -> NDArray[np.float64]:
    """Return the effective number of each of n parts, ``(n,)``, of weights in the parts ``index``, ``(n_weights,)``."""
    share = weight / weight.max(initial=np.finfo(float).tiny)  # squares of large or small weights are no numbers
    return effective_of_sums(sums_in_parts(index, share, n), sums_in_parts(index, np.square(share), n))


def effective_of_sums(total: float | NDArray[np.float64], squares: float | NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the effective numbers of weights whose sums, and whose sums of squares, are known; 0 without weight."""
    squares = np.asarray(squares, dtype=np.float64)
    return np.divide(np.square(total), squares, out=np.zeros_like(squares), where=squares > 0)
