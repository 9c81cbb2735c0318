"""A quadratic form of drawn outcomes by what differs from a base outcome, class by class.

Writing a drawn outcome as its base plus signed unit vectors, two for a row that differs from its base class and one for
a row without base (base -1), only pairs of unit vectors of the same class meet: with sharp predictions there are few,
with vague ones a k-th of all pairs.
"""

import numpy as np
from numba import njit, uint64

from caltest._compiled._jit import kernel


@kernel
def list_changes(outcomes, base, first, size, n_outcomes):
    """Return the unit vectors of each replicate in rows ``first`` to ``first + size``, sorted by class.

    Those of class c in replicate r are ``place[start[r, c] : start[r, c + 1]]``: the row's number within the tile,
    plus ``size`` if the sign is negative.
    """
    n_replicates = outcomes.shape[0]
    start = np.zeros((n_replicates, n_outcomes + 1), np.int64)
    for r in range(n_replicates):
        for i in range(first, first + size):
            y = np.int64(outcomes[r, i])
            if y != base[i]:
                start[r, y] += 1
                if base[i] >= 0:
                    start[r, base[i]] += 1
    total = 0
    for r in range(n_replicates):
        for c in range(n_outcomes + 1):
            count = start[r, c]
            start[r, c] = total
            total += count
    place = np.empty(total, np.uint16)
    free = start.copy()
    for r in range(n_replicates):
        for i in range(first, first + size):
            y = np.int64(outcomes[r, i])
            if y != base[i]:
                place[free[r, y]] = i - first
                free[r, y] += 1
                if base[i] >= 0:
                    place[free[r, base[i]]] = i - first + size
                    free[r, base[i]] += 1
    return start, place


@njit(inline="always")
def _gather(values, place, start, stop):
    """Return the sum of ``values[place[start:stop]]``; four accumulators hide the latency of addition."""
    s0 = s1 = s2 = s3 = 0.0
    quads = start + (stop - start) // 4 * 4
    for b in range(start, quads, 4):
        u = uint64(b)
        s0 += values[place[u]]
        s1 += values[place[u + uint64(1)]]
        s2 += values[place[u + uint64(2)]]
        s3 += values[place[u + uint64(3)]]
    for b in range(quads, stop):
        s0 += values[place[uint64(b)]]
    return (s0 + s1) + (s2 + s3)


@kernel
def add_changes(similar, rows, outcomes, base, start, place, factor, out):
    """Add ``factor * sum k s.s'`` to ``out (n_replicates,)``, over unit vectors s of ``rows`` and s' of a tile.

    ``similar (n_rows, size)`` holds the kernel between the rows and the tile that `list_changes` described.
    """
    size = similar.shape[1]
    signed = np.empty(2 * size)
    for a in range(rows.size):
        i = rows[a]
        for j in range(size):
            signed[j] = similar[a, j]
            signed[size + j] = -similar[a, j]
        common = base[i]
        for r in range(out.size):
            y = np.int64(outcomes[r, i])
            if y != common:
                total = _gather(signed, place, start[r, y], start[r, y + 1])
                if common >= 0:
                    total -= _gather(signed, place, start[r, common], start[r, common + 1])
                out[r] += factor * total
