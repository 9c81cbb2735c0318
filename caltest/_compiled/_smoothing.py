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


@kernel
def change_errors(place, end, start, offset, first, share, taps, expected, sums, out):
    """Add to ``out[r]`` by how much surprises change the sum over the points of |kernel sum - expected|.

    The surprises of replicate r are the rows ``place[end[r] : end[r + 1]]``. Image m has the rows from ``start[m]`` on;
    their lower nodes and shares ``(n, 2)`` of two nodes are those from ``offset[m]`` to ``offset[m + 1]``. Point j gets
    ``taps[node - j]`` of a node; ``expected, sums (n_points,)``, the latter 0, and 0 again afterwards.
    """
    n_points, n_taps = expected.size, taps.size
    for r in range(out.size):
        total = 0.0
        for s in range(end[r], end[r + 1]):
            for m in range(start.size):
                i = place[s] - start[m] + offset[m]
                if offset[m] <= i < offset[m + 1]:
                    node = first[i]
                    for j in range(max(0, node - n_taps + 1), min(n_points, node + 2)):
                        tap = node - j
                        more = share[i, 0] * taps[tap] if tap >= 0 else 0.0
                        if tap + 1 < n_taps:
                            more += share[i, 1] * taps[tap + 1]
                        old = sums[j]
                        sums[j] = old + more
                        total += abs(sums[j] - expected[j]) - abs(old - expected[j])
        for s in range(end[r], end[r + 1]):
            for m in range(start.size):
                i = place[s] - start[m] + offset[m]
                if offset[m] <= i < offset[m + 1]:
                    sums[max(0, first[i] - n_taps + 1) : first[i] + 2] = 0.0
        out[r] += total
