"""Effective numbers: how many observations, or groups, of equal weight some of unequal weight are worth."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._sample import Sample


def effective_number(weight: NDArray[np.float64]) -> float:
    r"""Return :math:`(\sum w)^2 / \sum w^2`, which does not depend on the scale of the weights; 0 if there are none."""
    return float(effective_numbers(weight, np.zeros(len(weight), dtype=np.int64), 1)[0])


def effective_numbers(weight: NDArray[np.float64], index: NDArray[np.integer], n: int) -> NDArray[np.float64]:
    """Return the effective number of each of n parts, ``(n,)``, of weights in the parts ``index``, ``(n_weights,)``."""
    share = weight / weight.max(initial=np.finfo(float).tiny)  # squares of large or small weights are no numbers
    total = np.bincount(index, share, n)
    squares = np.bincount(index, np.square(share), n)
    return np.divide(np.square(total), squares, out=np.zeros(n), where=squares > 0)


def effective_samples(sample: Sample) -> float:
    """Return how many independent observations of equal weight the observations of a sample are worth by weight."""
    return float(sample.n_samples) if sample.weight is None else effective_number(sample.weight)


def effective_groups(sample: Sample) -> float:
    """Return how many groups of equal weight the groups of a sample are worth; of observations if there are none."""
    if sample.group is None:
        return effective_samples(sample)
    return effective_number(np.bincount(sample.group, sample.weight).astype(np.float64))
