r"""Kernels on the simplex, which measure the similarity of two predictions, and sums over all pairs of observations.

A kernel is any symmetric, positive definite function ``k(p, q, bandwidth)`` of arrays ``(..., n_classes)`` that reduces
the last axis; leading axes broadcast. Those of this module run compiled; a user's function is called on blocks of
observations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._pairwise import collect_distances, distances_of, fill_block, sum_pairs
from caltest.predictions._arrays import Floats
from caltest.predictions._distances import euclidean, squared_euclidean, total_variation, validate_function
from caltest.predictions._sample import Sample
from caltest.predictions._user_functions import call
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import require

Kernel = Callable[[Floats, Floats, float], Floats]

LARGEST_MEDIAN = 20_000
"""Largest number of observations whose median distance is that of all pairs; of more, so many are chosen."""

BLOCK = 512  # observations: 2 MB of kernel values at a time
_USER_ROWS = 64  # a user's function makes temporary arrays of n_classes times as many values
_SMALLEST_BANDWIDTH = 1e-150  # for the median of equal predictions; its square is still a divisor
_SAMPLED_PAIRS = 2**17


def total_variation_kernel(p: Floats, q: Floats, bandwidth: float) -> Floats:
    r"""Exponential kernel of the total variation distance, :math:`k(p, q) = \exp(-d_{TV}(p, q) / \gamma)`.

    The values that Widmann et al. (2019) published use it. By default `SKCE` takes the median total variation distance
    as its bandwidth.

    Parameters
    ----------
    p, q : array of shape (..., n_classes)
        Probabilities; leading axes broadcast.
    bandwidth : float
        :math:`\gamma > 0`.

    Returns
    -------
    array of shape (...)
        Values in (0, 1].

    See Also
    --------
    caltest.SKCE : The statistic that takes a kernel.

    Examples
    --------
    >>> import numpy as np
    >>> round(float(total_variation_kernel(np.array([0.25, 0.75]), np.array([0.75, 0.25]), 0.5)), 6)
    0.367879
    """
    return np.exp(-total_variation(p, q) / bandwidth)


def euclidean_kernel(p: Floats, q: Floats, bandwidth: float) -> Floats:
    r"""Exponential kernel of the Euclidean distance, :math:`k(p, q) = \exp(-\lVert p - q \rVert_2 / \gamma)`.

    By default `SKCE` takes the median Euclidean distance as its bandwidth.

    Parameters
    ----------
    p, q : array of shape (..., n_classes)
        Probabilities; leading axes broadcast.
    bandwidth : float
        :math:`\gamma > 0`.

    Returns
    -------
    array of shape (...)
        Values in (0, 1].

    See Also
    --------
    caltest.SKCE : The statistic that takes a kernel.

    Examples
    --------
    >>> import numpy as np
    >>> round(float(euclidean_kernel(np.array([0.0, 1.0]), np.array([0.3, 0.6]), 0.5)), 6)
    0.367879
    """
    return np.exp(-euclidean(p, q) / bandwidth)


def gaussian_kernel(p: Floats, q: Floats, bandwidth: float) -> Floats:
    r"""Gaussian kernel, :math:`k(p, q) = \exp(-\lVert p - q \rVert_2^2 / (2 \gamma^2))`.

    By default `SKCE` takes the median Euclidean distance as its bandwidth.

    Parameters
    ----------
    p, q : array of shape (..., n_classes)
        Probabilities; leading axes broadcast.
    bandwidth : float
        :math:`\gamma > 0`.

    Returns
    -------
    array of shape (...)
        Values in (0, 1].

    See Also
    --------
    caltest.SKCE : The statistic that takes a kernel.

    Examples
    --------
    >>> import numpy as np
    >>> round(float(gaussian_kernel(np.array([0.0, 1.0]), np.array([0.6, 0.2]), 1.0)), 6)
    0.606531
    """
    return np.exp(-0.5 * squared_euclidean(p, q) / bandwidth**2)


_SHAPES = {total_variation_kernel: 0, euclidean_kernel: 1, gaussian_kernel: 2}


@dataclass(frozen=True)
class Similarity:
    """A kernel with its bandwidth, and its sums over pairs of observations.

    Attributes
    ----------
    kernel : callable
        A function ``k(p, q, bandwidth)``.
    bandwidth : float
        Its scale, positive.
    """

    kernel: Kernel
    bandwidth: float

    def between(self, p: Floats, q: Floats) -> Floats:
        """Return the kernel of arrays that broadcast; checks what a user's function returns."""
        found = call("kernel", lambda p, q: self.kernel(p, q, self.bandwidth), p, q)
        values = np.asarray(found, dtype=np.float64)
        expected = np.broadcast_shapes(p.shape, q.shape)[:-1]
        must = f"`kernel` must reduce the last axis of arrays (..., n_classes): expected shape {expected}"
        require(values.shape == expected, must, values.shape)
        if not np.isfinite(values).all():
            refuse(f"`kernel` must return finite numbers, got {values[~np.isfinite(values)][0]}.")
        return values

    def block(self, rows: Floats, others: Floats) -> Floats:
        """Return the kernel between all pairs of two sets of predictions, ``(n_rows, n_others)``."""
        if self.kernel not in _SHAPES:
            parts = range(0, len(rows), _USER_ROWS)
            return np.concatenate([self.between(rows[i : i + _USER_ROWS, None], others[None]) for i in parts])
        out = np.empty((len(rows), len(others)))
        fill_block(even_columns(rows), even_columns(others), _SHAPES[self.kernel], self._rate, out)
        return out

    def blocks(self, prob: Floats) -> Iterator[tuple[slice, slice, Floats]]:
        """Yield the upper half of the kernel matrix of predictions ``(n_samples, n_classes)``, block by block."""
        tiles = tiles_of(len(prob))
        for i, rows in enumerate(tiles):
            for others in tiles[i:]:
                yield rows, others, self.block(prob[rows], prob[others])

    def sum_products(self, prob: Floats, vectors: Floats) -> float:
        r"""Return :math:`\sum_{i < j} k(p_i, p_j) \, v_i \cdot v_j` for arrays ``(n_samples, n_classes)``."""
        if self.kernel in _SHAPES:
            shape = _SHAPES[self.kernel]
            return float(sum_pairs(even_columns(prob), even_columns(vectors), shape, self._rate))
        total = 0.0
        for rows, others, similar in self.blocks(prob):
            products = similar * (vectors[rows] @ vectors[others].T)
            total += float((products if rows != others else np.triu(products, 1)).sum())
        return total

    @property
    def _rate(self) -> float:
        return 0.5 / self.bandwidth**2 if self.kernel is gaussian_kernel else 1.0 / self.bandwidth


def with_median_bandwidth(sample: Sample, kernel: Kernel) -> Similarity:
    """Return a kernel with the median distance between the predictions of a sample; for `Sample.once`."""
    squared = kernel in {euclidean_kernel, gaussian_kernel}
    return Similarity(kernel, max(median_distance(sample.prob, squared), _SMALLEST_BANDWIDTH))


def median_distance(prob: Floats, squared: bool) -> float:
    """Return the median distance over all n^2 pairs, including n distances of 0; total variation, or Euclidean.

    It takes one pass over the pairs: a sample of them gives an interval around the median, and the pass counts the
    distances below the interval and collects those inside. Of more than `LARGEST_MEDIAN` observations so many are
    chosen, with seed 0 and after sorting, so that the caller's order does not matter.
    """
    if len(prob) > LARGEST_MEDIAN:
        chosen = np.random.default_rng(0).choice(len(prob), LARGEST_MEDIAN, replace=False)
        prob = prob[np.lexsort(prob.T)[chosen]]
    n = len(prob)
    # In the sorted list of all n^2 distances the n zeros come first, then every other distance twice.
    ranks = [(rank - n) // 2 for rank in ((n * n - 1) // 2, n * n // 2)]
    if ranks[1] < 0:
        return 0.0
    first, last = _select(even_columns(prob), squared, max(ranks[0], 0), ranks[1])
    return (first + last) / 2 if ranks[0] >= 0 else last / 2


def _select(prob: Floats, squared: bool, first: int, last: int) -> tuple[float, float]:
    """Return the distances of two adjacent ranks among those of all pairs i < j."""
    n_pairs = len(prob) * (len(prob) - 1) // 2
    low, high, room = -1.0, np.inf, n_pairs
    if n_pairs > _SAMPLED_PAIRS:
        low, high = _bracket(prob, squared, first / n_pairs)
        room = n_pairs // 16
    while True:
        between = np.empty(room)
        below, at_low, inside, at_high = collect_distances(prob, squared, low, high, between)
        if not below <= first <= last < below + at_low + inside + at_high:  # has a chance of one in a million
            low, high, room = -1.0, np.inf, n_pairs
        elif inside > room:
            room = inside
        else:
            break
    places = [rank - below - at_low for rank in (first, last)]
    kept = [place for place in places if 0 <= place < inside]
    values = np.partition(between[:inside], kept) if kept else between
    one, other = (low if place < 0 else float(values[place]) if place < inside else high for place in places)
    return one, other


def _bracket(prob: Floats, squared: bool, share: float) -> tuple[float, float]:
    """Return an interval for a quantile of the distances of all pairs: that of a sample, plus and minus 5 errors."""
    rng = np.random.default_rng(0)
    i, step = rng.integers(len(prob), size=_SAMPLED_PAIRS), rng.integers(1, len(prob), size=_SAMPLED_PAIRS)
    sampled = np.sort(distances_of(prob, squared, i, (i + step) % len(prob)))
    margin = 5 * np.sqrt(share * (1 - share) / _SAMPLED_PAIRS)
    first, last = (int((share + sign * margin) * _SAMPLED_PAIRS) for sign in (-1, 1))
    return (float(sampled[first]) if first > 0 else -1.0), (float(sampled[last]) if last < len(sampled) else np.inf)


def tiles_of(n_samples: int) -> list[slice]:
    """Return the slices that cut observations into blocks."""
    return [slice(first, min(first + BLOCK, n_samples)) for first in range(0, n_samples, BLOCK)]


def even_columns(rows: NDArray[Any]) -> Floats:
    """Return rows with a further column of zeros if their number is odd: compiled loops take two columns at a time."""
    return np.ascontiguousarray(np.pad(rows, ((0, 0), (0, 1))) if rows.shape[1] % 2 else rows)


def is_bounded_by_one(kernel: Kernel) -> bool:
    """Return whether a kernel is known to be at most 1, as the kernels of this module are."""
    return kernel in _SHAPES


def validate_kernel(kernel: Any, name: str) -> None:
    """Raise TypeError unless ``kernel`` is a function that can be hashed."""
    validate_function(kernel, name, "(p, q, bandwidth) such as total_variation_kernel")
