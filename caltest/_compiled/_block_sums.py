"""Sums over the cells of many fixed partitions of one probability, of many data sets, in one pass without sorting."""

import numpy as np

from caltest._compiled._jit import kernel

_BUCKETS = 1024  # of equal width, a power of two: a probability finds its own exactly
_ROUND = 6755399441055744.0  # 1.5 * 2**52: what is added to it is rounded to a whole number


@kernel
def block_sums(prob, outcome, merged, cells, scatter):
    """Return ``(n_replicates, n_cells, 3)``: count, residual (events - probabilities) and squared residuals of cells.

    ``prob (n_replicates, n_samples, 2)`` are probabilities of both outcomes, of which the second is cut at the
    increasing edges ``merged`` of all partitions; a value on an edge lies above it. Cell c of the partitions joins the
    cells ``cells[c, 0] : cells[c, 1]`` between those. Squared residuals are 0 unless ``scatter``.

    Sums are whole multiples of 2**-50, or of more if n_samples > 2**12, such that they do not overflow. They are exact,
    so that the sums of a partition are the same to the last bit whatever other partitions there are.
    """
    n_replicates, n_samples = outcome.shape
    n_merged = merged.size + 1
    guide = np.empty(_BUCKETS + 1, np.int64)  # the edges that lie at or below the start of each bucket
    edge = 0
    for bucket in range(_BUCKETS + 1):
        while edge < merged.size and merged[edge] <= bucket / _BUCKETS:
            edge += 1
        guide[bucket] = edge
    edges = np.append(merged, np.inf)
    bits = 50
    while n_samples >> (62 - bits):
        bits -= 1
    unit = 2.0**bits
    total = np.empty((n_merged, 4), np.int64)
    sums = np.empty((n_replicates, cells.shape[0], 3))
    for r in range(n_replicates):
        total[:] = 0
        for i in range(n_samples):
            value = prob[r, i, 1]
            place = guide[np.int64(value * _BUCKETS)]
            while edges[place] <= value:
                place += 1
            residual = outcome[r, i] - value
            total[place, 0] += 1
            total[place, 1] += np.int64((residual * unit + _ROUND) - _ROUND)
            if scatter:
                total[place, 2] += np.int64((residual * residual * unit + _ROUND) - _ROUND)
        for c in range(cells.shape[0]):
            count = 0
            gap = 0
            square = 0
            for k in range(cells[c, 0], cells[c, 1]):
                count += total[k, 0]
                gap += total[k, 1]
                square += total[k, 2]
            sums[r, c, 0] = count
            sums[r, c, 1] = gap / unit
            sums[r, c, 2] = square / unit
    return sums


@kernel
def equal_mass_edges(values, n_cells):
    """Return the inner edges of cells of equal mass of increasing values.

    Sizes differ by at most one, the larger cells first; a cut moves on to the next block of ties, and empty cells
    vanish.
    """
    n_samples = values.size
    size = n_samples // n_cells
    larger = n_samples - size * n_cells
    edges = np.empty(min(n_cells, n_samples))
    found = 0
    row = 0
    for c in range(1, n_cells):
        cut = c * size + min(c, larger)
        if cut >= n_samples:
            break
        row = max(row, cut)
        while row < n_samples and values[row] == values[row - 1]:
            row += 1
        if row == n_samples:
            break
        if found == 0 or values[row] != edges[found - 1]:
            edges[found] = values[row]
            found += 1
    return edges[:found]
