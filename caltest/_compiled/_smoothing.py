"""Spreading rows over a grid: what kernel smoothing by Fourier transforms starts from."""

import numpy as np
from numba import int64, uint64

from caltest._compiled._jit import kernel

_ROWS = 256  # of the table, which should stay in cache while every replicate passes over it


@kernel
def spread_counts(counts, start, first, table, out):
    """Add ``counts[r, start + i] * table[i, j]`` to ``out[r, first[i] + j]`` for every replicate r.

    ``counts (n_replicates, n_samples) uint8`` say how often a row counts, most of them 0; ``first (n_rows,) int64`` and
    ``table (n_rows, width)`` are for the rows from ``start`` on; ``out (n_replicates, n_nodes)``. The rows that count
    are listed first, because a branch on a random outcome is mispredicted.
    """
    n_replicates = counts.shape[0]
    n_rows, width = table.shape
    chosen = np.empty(_ROWS, np.int64)
    for begin in range(0, n_rows, _ROWS):
        size = min(_ROWS, n_rows - begin)
        for r in range(n_replicates):
            count = counts[r, start + begin : start + begin + size]
            n_chosen = 0
            for i in range(size):
                chosen[n_chosen] = i
                n_chosen += int64(count[i] != 0)
            nodes = out[r]
            for c in range(n_chosen):
                i = chosen[c]
                times = float(count[i])
                node = uint64(first[begin + i])
                for j in range(width):
                    nodes[node + uint64(j)] += times * table[begin + i, j]
