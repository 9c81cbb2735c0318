"""Ends between which another draw lies with a given probability, at every number of draws."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_ROUNDING = 1e-12


def drawn_ends(drawn: NDArray[np.float64], level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Return the ends ``(...)`` of an interval for one more draw, from draws ``(n_draws, ...)``.

    Of B draws and another one each is the smallest with the same probability. So the k-th smallest and the k-th largest
    draw with :math:`k = \lfloor (B + 1) (1 - \text{level}) / 2 \rfloor` leave at most half of 1 - level on either side,
    with ties too. With too few draws, k = 0, the ends are infinite.
    """
    outside = int((len(drawn) + 1) * (1 - level) / 2 * (1 + _ROUNDING))
    if not outside:
        return np.full(drawn.shape[1:], -np.inf), np.full(drawn.shape[1:], np.inf)
    ranks = [outside - 1, len(drawn) - outside]
    low, high = np.partition(drawn, ranks, axis=0)[ranks]
    return low, high
