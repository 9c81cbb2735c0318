"""Sums over the cells of many partitions of one probability, of many data sets at a time."""

import numpy as np

from caltest._compiled._jit import inner, kernel


@kernel
def equal_mass_starts(values, first, n_cells):
    """Return ``(n_rows, n_cells + 1)``: where cells of equal mass begin, and the end of the row.

    Sizes differ by at most one, the larger cells first; a cut moves on to the next block of ties, and cells that become
    empty are the last ones.
    """
    n_rows, n_entries = values.shape
    starts = np.full((n_rows, n_cells + 1), n_entries)
    for r in range(n_rows):
        row = values[r]
        size = (n_entries - first[r]) // n_cells
        larger = n_entries - first[r] - size * n_cells
        found = 0
        end = first[r]
        for c in range(n_cells):
            cut = max(end, first[r] + c * size + min(c, larger))
            while first[r] < cut < n_entries and row[cut] == row[cut - 1]:
                cut += 1
            if cut == n_entries:
                break
            if cut > end or c == 0:
                starts[r, found] = cut
                found += 1
            end = cut
    return starts


@inner
def _first_of(row, value, low, high):
    # The first of the places from low to high whose value is not below the given one.
    while low < high:
        middle = (low + high) // 2
        if row[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def rank_starts(values, first, n_cells):
    """Return ``(n_rows, n_cells + 2)``: where the equal-mass cells of Nixon et al. begin, and the end of the row.

    Cell c begins at the first of the ties of the value of rank round(c n / n_cells), halves to even, at most n - 1, and
    one more cell at 1.
    """
    n_rows, n_entries = values.shape
    starts = np.full((n_rows, n_cells + 2), n_entries)
    for r in range(n_rows):
        row = values[r]
        step = (n_entries - first[r]) / n_cells
        starts[r, 0] = first[r]
        if first[r] == n_entries:
            continue
        for c in range(1, n_cells):
            place = min(first[r] + np.int64(np.rint(c * step)), n_entries - 1)
            if place > first[r] and row[place - 1] == row[place]:
                place = _first_of(row, row[place], starts[r, c - 1], place)
            starts[r, c] = place
        last = _first_of(row, 1.0, first[r], n_entries)
        place = n_cells
        while starts[r, place - 1] > last:  # values above 1 by rounding
            starts[r, place] = starts[r, place - 1]
            place -= 1
        starts[r, place] = last
    return starts


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
    edges = np.full(merged.size + 1, np.inf)
    for k in range(merged.size):
        edges[k] = merged[k]
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
def sorted_sums(keys, values, first, merged, starts, cells):
    """Return ``(n_rows, n_cells, 3)`` as `block_sums`, and ``(n_rows, 2)`` extremes, of sorted rows.

    ``keys (n_rows, n_entries)`` are increasing: twice the bits of ``values (n_rows, n_entries)``, plus 1 if the event
    happened. Of each row the entries from ``first (n_rows,)`` on count. The bounds of cells are the end of what does
    not count, the places of the edges ``merged``, the end of the row, and ``starts (n_rows, n_starts)``; ``cells
    (n_cells, 2)`` are the numbers of their lower and upper bounds. The extremes are the largest and the smallest
    cumulative residual at ends of ties, ``high >= 0 >= low``. Sums are differences of running sums, so that a partition
    costs no pass over the data.
    """
    n_rows, n_entries = keys.shape
    n_fixed = merged.size + 2
    edges = np.full(merged.size + 1, np.inf)
    for k in range(merged.size):
        edges[k] = merged[k]
    bound = np.empty(n_fixed + starts.shape[1], np.int64)
    unit = _unit(n_entries)
    total = np.zeros((n_entries + 1, 2), np.int64)
    sums = np.empty((n_rows, cells.shape[0], 3))
    extremes = np.empty((n_rows, 2))
    for r in range(n_rows):
        place = 0
        high = 0
        low = 0
        bound[0] = first[r]
        total[first[r]] = 0
        for i in range(first[r], n_entries):
            value = values[r, i]
            while edges[place] <= value:
                place += 1
                bound[place] = i
            residual = (keys[r, i] & 1) - value
            path = total[i, 0] + np.int64((residual * unit + _ROUND) - _ROUND)
            total[i + 1, 0] = path
            total[i + 1, 1] = total[i, 1] + np.int64((residual * residual * unit + _ROUND) - _ROUND)
            if i + 1 == n_entries or value != values[r, i + 1]:
                high = max(high, path)
                low = min(low, path)
        extremes[r, 0] = high / unit
        extremes[r, 1] = low / unit
        for c in range(place + 1, n_fixed):
            bound[c] = n_entries
        for c in range(starts.shape[1]):
            bound[n_fixed + c] = starts[r, c]
        for c in range(cells.shape[0]):
            start = bound[cells[c, 0]]
            end = bound[cells[c, 1]]
            sums[r, c, 0] = end - start
            sums[r, c, 1] = (total[end, 0] - total[start, 0]) / unit
            sums[r, c, 2] = (total[end, 1] - total[start, 1]) / unit
    return sums, extremes
