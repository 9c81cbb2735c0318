"""The variance tree on one probability, fitted again to every resample: rows stay sorted and carry multiplicities."""

import numpy as np

from caltest._kernels._compile import kernel


@kernel
def _variance(values, row, start, stop):
    """Return the variance of the values ``start : stop``, each counted as often as its row was drawn."""
    count = 0
    total = 0.0
    for i in range(start, stop):
        count += row[i]
        total += row[i] * values[i]
    mean = total / count
    squares = 0.0
    for i in range(start, stop):
        squares += row[i] * (values[i] - mean) ** 2
    return squares / count


@kernel
def _find(cumulative, position, start, stop):
    """Return the row of ``start : stop`` that holds the drawn value number ``position``."""
    low = start
    high = stop - 1
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle + 1] > position:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def fit_trees(values, rows, min_rows, min_leaf, upper, max_cells):
    """Return ``(n_replicates, max_cells + 1)``: where the cells of every resample start; the rest is n_samples.

    ``values (n_samples,)`` increase, ``rows (n_replicates, n_samples)`` are multiplicities. A node of at least
    ``min_rows`` rows is cut at its upper median or its median, if either side keeps ``min_leaf`` rows; the node of
    largest variance first.
    """
    n_replicates, n_samples = rows.shape
    starts = np.full((n_replicates, max_cells + 1), n_samples)
    cumulative = np.zeros(n_samples + 1, np.int64)
    begin = np.empty(2 * max_cells, np.int64)
    end = np.empty(2 * max_cells, np.int64)
    variance = np.empty(2 * max_cells)  # negative: not to be split
    for r in range(n_replicates):
        row = rows[r]
        for i in range(n_samples):
            cumulative[i + 1] = cumulative[i] + row[i]
        begin[0] = 0
        end[0] = n_samples
        variance[0] = _variance(values, row, 0, n_samples) if cumulative[n_samples] >= min_rows else -1.0
        n_nodes = 1
        n_cells = 1
        starts[r, 0] = 0
        while n_cells < max_cells:
            node = -1
            largest = -0.5
            for k in range(n_nodes):
                if variance[k] > largest * (1 + 1e-11) and variance[k] >= 0:
                    node = k
                    largest = variance[k]
            if node < 0:
                break
            variance[node] = -1.0
            a = begin[node]
            b = end[node]
            count = cumulative[b] - cumulative[a]
            middle = cumulative[a] + count // 2
            threshold = values[_find(cumulative, middle, a, b)]
            if not upper and count % 2 == 0:
                threshold = (threshold + values[_find(cumulative, middle - 1, a, b)]) / 2
            cut = a + np.searchsorted(values[a:b], threshold)
            below = cumulative[cut] - cumulative[a]
            if min(below, count - below) < min_leaf:
                continue
            for start, stop, size in ((a, cut, below), (cut, b, count - below)):
                begin[n_nodes] = start
                end[n_nodes] = stop
                variance[n_nodes] = _variance(values, row, start, stop) if size >= min_rows else -1.0
                n_nodes += 1
            place = n_cells
            while starts[r, place - 1] > cut:
                starts[r, place] = starts[r, place - 1]
                place -= 1
            starts[r, place] = cut
            n_cells += 1
    return starts
