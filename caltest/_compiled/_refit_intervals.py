"""Cells of one probability fitted again to every resample: rows stay sorted and carry multiplicities.

``drawn (n_replicates, n_samples) uint16`` holds in its lower 8 bits how often each row was drawn. Sums over 64 rows are
vectorised and made once a resample; whatever is sought by its rank is found among them first, then among 64 rows.
"""

import numpy as np
from numba import njit, uint32

from caltest._compiled._jit import kernel

_CHUNK = 64


@kernel
def _accumulate(drawn, before):
    # Rows drawn before every chunk, and all of them last.
    n_samples = drawn.size
    total = 0
    for chunk in range(before.size - 1):
        before[chunk] = total
        rows = drawn[chunk * _CHUNK : min((chunk + 1) * _CHUNK, n_samples)]
        count = uint32(0)
        for i in range(rows.size):
            count += uint32(rows[i] & np.uint16(255))
        total += count
    before[before.size - 1] = total


@njit(inline="always")
def _rank(drawn, before, row):
    """Return how many rows were drawn before ``row``."""
    chunk = row // _CHUNK
    count = before[chunk]
    for i in range(chunk * _CHUNK, row):
        count += drawn[i] & np.uint16(255)
    return count


@njit(inline="always")
def _locate(drawn, before, rank, low, high):
    """Return the row that holds the drawn row number ``rank``, which lies in the chunks ``low : high``."""
    while high - low > 1:
        middle = (low + high) // 2
        if before[middle] <= rank:
            low = middle
        else:
            high = middle
    row = low * _CHUNK
    count = before[low] + (drawn[row] & np.uint16(255))
    while count <= rank:
        row += 1
        count += drawn[row] & np.uint16(255)
    return row


@kernel
def cut_equal_mass(block_start, drawn, cut):
    """Return ``(n_replicates, n_cuts + 2)``: where the cells of every resample start, 0 and n_samples at the ends.

    A cell starts at the first block of ties that begins at or after its cut, the number of drawn rows before it;
    ``block_start (n_samples,)`` is the first row of each row's block.
    """
    n_replicates, n_samples = drawn.shape
    starts = np.zeros((n_replicates, cut.size + 2), np.int64)
    before = np.empty((n_samples + _CHUNK - 1) // _CHUNK + 1, np.int64)
    for r in range(n_replicates):
        _accumulate(drawn[r], before)
        starts[r, cut.size + 1] = n_samples
        for c in range(cut.size):
            if cut[c] <= 0:
                continue
            if cut[c] >= n_samples:
                starts[r, c + 1] = n_samples
                continue
            row = _locate(drawn[r], before, cut[c] - 1, 0, before.size - 1) + 1
            while row < n_samples and block_start[row] != row:
                row += 1
            starts[r, c + 1] = row
    return starts


@kernel
def _variance(values, drawn, start, stop):
    """Return the variance of the values ``start : stop``, each counted as often as its row was drawn."""
    count = 0
    total = 0.0
    for i in range(start, stop):
        times = drawn[i] & np.uint16(255)
        count += times
        total += times * values[i]
    mean = total / count
    squares = 0.0
    for i in range(start, stop):
        squares += (drawn[i] & np.uint16(255)) * (values[i] - mean) ** 2
    return squares / count


@kernel
def _grow(
    values, block_start, drawn, before, min_rows, min_leaf, balanced, max_cells, by_variance, nodes, variance, starts
):
    """Fill ``starts`` with the first rows of the leaves, and return their number, or -1 if it exceeds ``max_cells``.

    ``nodes (4, n_nodes)`` is working space: begin, end, rows drawn before either.
    """
    n_samples = values.size
    nodes[0, 0] = 0
    nodes[1, 0] = n_samples
    nodes[2, 0] = 0
    nodes[3, 0] = before[before.size - 1]
    if by_variance:
        variance[0] = _variance(values, drawn, 0, n_samples) if nodes[3, 0] >= min_rows else -1.0
    n_nodes = 1
    n_cells = 1
    starts[0] = 0
    done = 0
    while True:
        node = -1
        if by_variance:
            largest = -0.5
            for k in range(n_nodes):
                if variance[k] > largest * (1 + 1e-11) and variance[k] >= 0:
                    node = k
                    largest = variance[k]
            if node < 0 or n_cells == max_cells:
                return n_cells
            variance[node] = -1.0
        else:
            if done == n_nodes:
                return n_cells
            node = done
            done += 1
            if nodes[3, node] - nodes[2, node] < min_rows:
                continue
        a = nodes[0, node]
        b = nodes[1, node]
        first = nodes[2, node]
        last = nodes[3, node]
        low = a // _CHUNK
        high = (b + _CHUNK - 1) // _CHUNK
        middle = first + (last - first) // 2
        row = _locate(drawn, before, middle, low, high)
        cut = max(a, block_start[row])
        below = _rank(drawn, before, cut)
        size = last - first
        if 2 * (below - first) < size:  # perhaps a cut beyond the ties of the median is better
            beyond = row + 1
            while beyond < b and block_start[beyond] != beyond:
                beyond += 1
            up_to = _rank(drawn, before, beyond) if beyond < b else last
            lead = abs(2 * (below - first) - size) - abs(2 * (up_to - first) - size)
            better = below - first < min_leaf
            if balanced:
                better = lead > 0 or (lead == 0 and values[row] < 0.5)
                if lead == 0 and values[row] == 0.5:
                    total = 0.0
                    for i in range(a, b):
                        total += (drawn[i] & np.uint16(255)) * values[i]
                    better = total / size < 0.5 - 1e-9
            if better:
                cut = beyond
                below = up_to
        if min(below - first, last - below) < min_leaf:
            continue
        if n_cells == max_cells:
            return -1
        for side in range(2):
            nodes[0, n_nodes] = a if side == 0 else cut
            nodes[1, n_nodes] = cut if side == 0 else b
            nodes[2, n_nodes] = first if side == 0 else below
            nodes[3, n_nodes] = below if side == 0 else last
            if by_variance:
                enough = nodes[3, n_nodes] - nodes[2, n_nodes] >= min_rows
                variance[n_nodes] = _variance(values, drawn, nodes[0, n_nodes], nodes[1, n_nodes]) if enough else -1.0
            n_nodes += 1
        place = n_cells
        while starts[place - 1] > cut:
            starts[place] = starts[place - 1]
            place -= 1
        starts[place] = cut
        n_cells += 1


@kernel
def _fit(values, block_start, drawn, before, limits, nodes, variance, starts):
    """Fill ``starts`` with the first rows of the leaves, and the rest with the number of rows."""
    n_cells = _grow(values, block_start, drawn, before, *limits, False, nodes, variance, starts)
    if n_cells < 0:
        n_cells = _grow(values, block_start, drawn, before, *limits, True, nodes, variance, starts)
    starts[n_cells:] = values.size


@kernel
def grow_trees(values, min_rows, min_leaf, balanced, max_cells):
    """Return ``(n_replicates, max_cells + 1)`` as `fit_trees`, of data sets ``values (n_replicates, n_samples)``."""
    n_replicates, n_samples = values.shape
    starts = np.full((n_replicates, max_cells + 1), n_samples)
    drawn = np.ones(n_samples, np.uint16)
    before = np.empty((n_samples + _CHUNK - 1) // _CHUNK + 1, np.int64)
    _accumulate(drawn, before)
    block_start = np.zeros(n_samples, np.int64)
    nodes = np.empty((4, 2 * max_cells), np.int64)
    variance = np.empty(2 * max_cells)
    for r in range(n_replicates):
        row = values[r]
        for i in range(1, n_samples):
            block_start[i] = block_start[i - 1] if row[i] == row[i - 1] else i
        limits = min_rows, min_leaf, balanced, max_cells
        _fit(row, block_start, drawn, before, limits, nodes, variance, starts[r])
    return starts


@kernel
def fit_trees(values, block_start, drawn, min_rows, min_leaf, balanced, max_cells):
    """Return ``(n_replicates, max_cells + 1)``: where the cells of every resample start; the rest is n_samples.

    ``values (n_samples,)`` increase. A node of at least ``min_rows`` rows is cut before or beyond the ties of its
    median, if either side keeps ``min_leaf`` rows. If ``balanced``, whichever is more balanced, and beyond them if both
    are as balanced and the median is below 1/2; else beyond them only where too few rows lie before. Only where that
    makes more than ``max_cells`` leaves does their order matter: then the node of largest variance is cut first.
    """
    n_replicates, n_samples = drawn.shape
    starts = np.empty((n_replicates, max_cells + 1), np.int64)
    before = np.empty((n_samples + _CHUNK - 1) // _CHUNK + 1, np.int64)
    nodes = np.empty((4, 2 * max_cells), np.int64)
    variance = np.empty(2 * max_cells)
    for r in range(n_replicates):
        row = drawn[r]
        _accumulate(row, before)
        limits = min_rows, min_leaf, balanced, max_cells
        _fit(values, block_start, row, before, limits, nodes, variance, starts[r])
    return starts
