"""Sums over the cells of many partitions of one probability, of many data sets, in one pass over each."""

import numpy as np

from caltest._compiled._jit import inner, kernel

_BUCKETS = 1024  # of equal width, a power of two: a probability finds its own exactly
_ROUND = 6755399441055744.0  # 1.5 * 2**52: what is added to it is rounded to a whole number


@inner
def _unit(n_samples):
    bits = 50
    while n_samples >> (62 - bits):
        bits -= 1
    return 2.0**bits


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
    unit = _unit(n_samples)
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
def sorted_sums(keys, merged, cells, n_cells):
    """Return ``(n_replicates, n_all_cells, 3)`` as `block_sums`, and ``(n_replicates, 2)`` extremes, of sorted data.

    ``keys (n_replicates, n_samples)`` are increasing: twice the bits of a probability, plus 1 if the event happened.
    The cells of `block_sums` are followed by ``n_cells[p] <= n_samples`` cells of equal mass for each p: sizes differ
    by at most one, the larger cells first; a cut moves on to the next block of ties, and cells that become empty are
    the last ones. The extremes are the largest and the smallest cumulative residual at ends of ties,
    ``high >= 0 >= low``. Sums are differences of running sums, so that a partition costs no pass over the data.
    """
    n_replicates, n_samples = keys.shape
    n_fixed = cells.shape[0]
    edges = np.append(merged, np.inf)
    bound = np.empty(merged.size + 2, np.int64)
    bits = np.empty(n_samples + 1, np.int64)
    values = bits.view(np.float64)
    values[n_samples] = np.inf
    unit = _unit(n_samples)
    total = np.zeros((n_samples + 1, 2), np.int64)
    sums = np.zeros((n_replicates, n_fixed + n_cells.sum(), 3))
    extremes = np.empty((n_replicates, 2))
    for r in range(n_replicates):
        for i in range(n_samples):
            bits[i] = keys[r, i] >> 1
        place = 0
        high = 0
        low = 0
        for i in range(n_samples):
            while edges[place] <= values[i]:
                place += 1
                bound[place] = i
            residual = (keys[r, i] & 1) - values[i]
            path = total[i, 0] + np.int64((residual * unit + _ROUND) - _ROUND)
            total[i + 1, 0] = path
            total[i + 1, 1] = total[i, 1] + np.int64((residual * residual * unit + _ROUND) - _ROUND)
            if values[i] != values[i + 1]:
                high = max(high, path)
                low = min(low, path)
        extremes[r, 0] = high / unit
        extremes[r, 1] = low / unit
        bound[0] = 0
        bound[place + 1 :] = n_samples
        for c in range(n_fixed):
            _between(total, bound[cells[c, 0]], bound[cells[c, 1]], unit, sums[r, c])
        cell = n_fixed
        for p in range(n_cells.size):
            size = n_samples // n_cells[p]
            larger = n_samples - size * n_cells[p]
            start = 0
            for c in range(1, n_cells[p] + 1):
                end = max(start, c * size + min(c, larger))
                while end < n_samples and values[end] == values[end - 1]:
                    end += 1
                if end > start:
                    _between(total, start, end, unit, sums[r, cell])
                    cell += 1
                start = end
            cell = n_fixed + n_cells[: p + 1].sum()
    return sums, extremes


@inner
def _between(total, start, end, unit, found):
    found[0] = end - start
    found[1] = (total[end, 0] - total[start, 0]) / unit
    found[2] = (total[end, 1] - total[start, 1]) / unit
