"""Look-ups by the outcome of each row, and sums of the rows of each outcome."""

import numpy as np
from numba import int64, uint64

from caltest._compiled._jit import kernel, unless_one

_TILE = 256  # rows: their part of the table stays in the first-level cache while every replicate passes over it
_ENTRIES = 2**16  # of rows of many outcomes, for the second-level cache
_LN2 = 0.6931471805599453
_SMALLEST = 2.0**-1022


def _sum_selected_of_one(outcomes, table):
    # Both sums add one number after the other, as the kernel does.
    row = np.arange(outcomes.shape[1])
    quads = row.size // 4 * 4
    place = row // _TILE * 4 + np.where(row < quads, row % 4, 0)
    s0, s1, s2, s3 = np.bincount(place, table[row, outcomes[0]], minlength=-(-row.size // _TILE) * 4).reshape(-1, 4).T
    return np.cumsum((s0 + s1) + (s2 + s3))[-1:]


@unless_one(_sum_selected_of_one)
@kernel
def sum_selected(outcomes, table):
    """Return ``(n_replicates,)``: the sum over rows of ``table[i, outcome[i]]``.

    Four accumulators in a fixed order hide the latency of addition and give the same bits on every machine.
    """
    n_replicates, n_samples = outcomes.shape
    n_outcomes, entries = uint64(table.shape[1]), table.ravel()  # without a test for negative indices
    sums = np.zeros(n_replicates)
    for start in range(0, n_samples, _TILE):
        size = min(_TILE, n_samples - start)
        quads, first = size // 4 * 4, uint64(start) * n_outcomes
        for r in range(n_replicates):
            outcome = outcomes[r, start : start + size]
            s0 = s1 = s2 = s3 = 0.0
            for i in range(0, quads, 4):
                row = first + uint64(i) * n_outcomes
                s0 += entries[row + uint64(outcome[i])]
                s1 += entries[row + n_outcomes + uint64(outcome[i + 1])]
                s2 += entries[row + uint64(2) * n_outcomes + uint64(outcome[i + 2])]
                s3 += entries[row + uint64(3) * n_outcomes + uint64(outcome[i + 3])]
            for i in range(quads, size):
                s0 += entries[first + uint64(i) * n_outcomes + uint64(outcome[i])]
            sums[r] += (s0 + s1) + (s2 + s3)
    return sums


@kernel
def sum_logarithms(outcomes, prob, null_prob):
    """Return ``(n_replicates,)``: the sum over rows of the logarithm of ``prob[i, outcome[i]]``.

    -inf if both probabilities of an outcome are 0; where only ``prob`` is, the smallest normal number stands for it.
    Mantissas are multiplied and exponents added, so that there is one logarithm for each tile of rows.
    """
    n_replicates, n_samples = outcomes.shape
    n_outcomes = uint64(prob.shape[1])
    entries = prob.ravel()
    tile = min(max(_ENTRIES // prob.shape[1], 4), _TILE) // 4 * 4
    sums = np.zeros(n_replicates)
    x = np.empty(tile)
    bits = x.view(np.uint64)
    for start in range(0, n_samples, tile):
        size = min(tile, n_samples - start)
        for r in range(n_replicates):
            outcome = outcomes[r, start : start + size]
            least = 1.0
            for i in range(size):
                x[i] = entries[uint64(start + i) * n_outcomes + uint64(outcome[i])]
            for i in range(size):
                least = min(least, x[i])
            if least < _SMALLEST:
                for i in range(size):
                    if x[i] <= 0.0 and null_prob[start + i, outcome[i]] <= 0.0:
                        sums[r] = -np.inf
                    x[i] = max(x[i], _SMALLEST)
            exponent = uint64(0)
            for i in range(size):
                exponent += bits[i] >> uint64(52)
                bits[i] = (bits[i] & uint64(0xFFFFFFFFFFFFF)) | uint64(0x3FF0000000000000)
            for i in range(size, (size + 3) // 4 * 4):
                x[i] = 1.0
            p0 = p1 = p2 = p3 = 1.0
            for i in range(0, size, 4):
                p0 *= x[i]
                p1 *= x[i + 1]
                p2 *= x[i + 2]
                p3 *= x[i + 3]
            sums[r] += np.log((p0 * p1) * (p2 * p3)) + _LN2 * (int64(exponent) - 1023 * size)
    return sums


def _map_outcomes_of_one(outcomes, table, row, out):
    out[0] = table[row if len(table) > 1 else 0, outcomes[0, row]]


@unless_one(_map_outcomes_of_one)
@kernel
def map_outcomes(outcomes, table, row, out):
    """Fill ``out[r, i]`` with ``table[row[i], outcomes[r, row[i]]]``: drawn classes behind a lens, in its row order.

    A table of one row serves all rows.
    """
    own = int(table.shape[0] > 1)
    for r in range(outcomes.shape[0]):
        outcome = outcomes[r]
        for i in range(row.size):
            out[r, i] = table[own * row[i], outcome[row[i]]]


def _map_events_of_one(outcomes, bits, row, out):
    drawn = outcomes[0, row].astype(np.int64)
    out[0] = bits[row, drawn >> 3] >> (7 - (drawn & 7)) & 1


@unless_one(_map_events_of_one)
@kernel
def map_events(outcomes, bits, row, out):
    """Fill ``out`` as `map_outcomes` from a table of two outcomes, packed by ``numpy.packbits(table, axis=1)``."""
    for r in range(outcomes.shape[0]):
        outcome = outcomes[r]
        for i in range(row.size):
            drawn = np.int64(outcome[row[i]])
            out[r, i] = bits[row[i], drawn >> 3] >> (7 - (drawn & 7)) & 1


@kernel
def largest_scores(outcomes, table, centre, expected, scale):
    """Return ``(n_replicates,)``: the largest absolute standardised score of a pair of an outcome and a column.

    ``table (n_samples, n_columns)`` holds the weight of each row in its first column and weighted values in the others.
    With its sums A over the rows that fell to outcome j, the score of the pair (j, k) is ``(A[j, k] - centre[j, k] *
    A[j, 0] - expected[j, k]) * scale[j, k]``; all three are ``(n_outcomes, n_columns)``.
    """
    n_replicates, n_samples = outcomes.shape
    n_outcomes, n_columns = centre.shape
    largest = np.zeros(n_replicates)
    total = np.empty((n_outcomes, n_columns))
    for r in range(n_replicates):
        outcome = outcomes[r]
        total[:] = 0.0
        for i in range(n_samples):
            row = total[outcome[i]]
            values = table[i]
            for k in range(n_columns):
                row[k] += values[k]
        high = 0.0
        for j in range(n_outcomes):
            for k in range(n_columns):
                score = (total[j, k] - centre[j, k] * total[j, 0] - expected[j, k]) * scale[j, k]
                high = max(high, abs(score))
        largest[r] = high
    return largest
