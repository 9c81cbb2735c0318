"""Stable sorting: equal values keep their order, so that results are the same on every machine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def stable_order(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return ``np.argsort(values, kind="stable")``, several times faster where few values are equal.

    NumPy's fast sort leaves equal values in an order that depends on the processor, and simulated labels would depend
    on it too. Here only the runs of equal values are put in order.
    """
    order = np.argsort(values)
    ordered = values[order]
    equal = ordered[1:] == ordered[:-1]
    if not equal.any():
        return order
    follows = np.append(False, equal)
    tied = follows | np.append(equal, False)
    run = np.cumsum(~follows[tied])
    order[tied] = np.sort(run * len(values) + order[tied]) % len(values)  # by run, then by place
    return order
