"""Per-row look-ups by outcome."""

import numpy as np

from caltest._compiled._jit import kernel

_TILE = 256  # rows: their part of the table stays in the first-level cache while every replicate passes over it


@kernel
def sum_selected(outcomes, table):
    """Return ``(n_replicates,)``: the sum over rows of ``table[i, outcome[i]]``.

    Four accumulators in a fixed order hide the latency of addition and give the same bits on every machine.
    """
    n_replicates, n_samples = outcomes.shape
    k = table.shape[1]
    flat = table.ravel()
    sums = np.zeros(n_replicates)
    for start in range(0, n_samples, _TILE):
        stop = min(start + _TILE, n_samples)
        quads = start + (stop - start) // 4 * 4
        for r in range(n_replicates):
            outcome = outcomes[r]
            s0 = s1 = s2 = s3 = 0.0
            for i in range(start, quads, 4):
                base = i * k
                s0 += flat[base + outcome[i]]
                s1 += flat[base + k + outcome[i + 1]]
                s2 += flat[base + 2 * k + outcome[i + 2]]
                s3 += flat[base + 3 * k + outcome[i + 3]]
            for i in range(quads, stop):
                s0 += flat[i * k + outcome[i]]
            sums[r] += (s0 + s1) + (s2 + s3)
    return sums


@kernel
def map_outcomes(outcomes, table, row):
    """Return ``out[r, i] = table[row[i], outcomes[r, row[i]]]``: drawn classes behind a lens, in its row order.

    A table of one row serves all rows.
    """
    n_replicates, n_samples = outcomes.shape[0], len(row)
    k = table.shape[1] if table.shape[0] > 1 else 0
    flat = table.ravel()
    out = np.empty((n_replicates, n_samples), table.dtype)
    for r in range(n_replicates):
        outcome = outcomes[r]
        for i in range(n_samples):
            out[r, i] = flat[row[i] * k + outcome[row[i]]]
    return out


@kernel
def map_events(outcomes, bits, row):
    """Return what `map_outcomes` returns for a table of two outcomes, packed by ``numpy.packbits(table, axis=1)``."""
    n_replicates, n_samples = outcomes.shape[0], len(row)
    width = bits.shape[1]
    flat = bits.ravel()
    out = np.empty((n_replicates, n_samples), np.uint8)
    for r in range(n_replicates):
        outcome = outcomes[r]
        for i in range(n_samples):
            drawn = np.int64(outcome[row[i]])
            out[r, i] = flat[row[i] * width + (drawn >> 3)] >> (7 - (drawn & 7)) & 1
    return out
