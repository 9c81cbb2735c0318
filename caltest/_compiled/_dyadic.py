"""Debiased squared errors at all dyadic scales, from the sums in the finest cells."""

import numpy as np

from caltest._compiled._jit import kernel


@kernel
def dyadic_errors(outcomes, change, start, expected, squares, inverse):
    """Return ``(n_scales, n_replicates)``: sums over cells of (residual^2 - sum of squared residuals) / rows.

    For two outcomes and rows sorted by probability. The finest scale has m cells, the next coarser m / 2, down to 2;
    finest cell b holds the rows ``start[b] : start[b + 1]``. ``expected`` and ``squares (m,)`` are the expected events
    and the sum of squared residuals if no event happened there; an event of row i adds ``change[i]`` to the latter.
    ``inverse`` holds 1 / rows of the cells, 0 if empty, of all scales one after the other, the finest first.
    """
    n_replicates = outcomes.shape[0]
    m = start.size - 1
    n_scales = 0
    while 2 << n_scales <= m:
        n_scales += 1
    residual = np.empty(m)
    square = np.empty(m)
    errors = np.empty((n_scales, n_replicates))
    for r in range(n_replicates):
        outcome = outcomes[r]
        for b in range(m):
            events = 0
            added = 0.0
            for i in range(start[b], start[b + 1]):
                events += outcome[i]
                added += outcome[i] * change[i]
            residual[b] = events - expected[b]
            square[b] = squares[b] + added
        size = m
        offset = 0
        for scale in range(n_scales - 1, -1, -1):
            s0 = s1 = 0.0
            for b in range(0, size, 2):
                s0 += (residual[b] * residual[b] - square[b]) * inverse[offset + b]
                s1 += (residual[b + 1] * residual[b + 1] - square[b + 1]) * inverse[offset + b + 1]
            errors[scale, r] = s0 + s1
            offset += size
            size //= 2
            for b in range(size):
                residual[b] = residual[2 * b] + residual[2 * b + 1]
                square[b] = square[2 * b] + square[2 * b + 1]
    return errors
