"""The variance tree on many probabilities, fitted again to every resample: nodes hold (row, times drawn), not copies.

A median is sought by bisection of the ranks of a class, which are made once, in vectors (`_below`). Sums of squares are
computed in the smaller child alone; those of the other are what is left, as long as rounding cannot decide anything.
"""

import numpy as np
from numba import int32, int64, njit, uint64

from caltest._compiled._jit import kernel, reduction


@kernel
def _below(key, times, rank):
    # Rows drawn whose key lies below a rank. A mask, because AVX2 has no masked addition; 32 bits throughout.
    total = int32(0)
    bound = int32(rank)
    for i in range(key.size):
        total = int32(total + (times[i] & int32(-int64(key[i] < bound))))
    return int64(total)


@reduction
def _add_moments(prob, row, times, centre, total, square):
    # Four rows at a time: sums over classes are loaded and stored once for them.
    n_outcomes = uint64(centre.size)
    flat = prob.ravel()
    for k in range(centre.size):
        total[k] = 0.0
        square[k] = 0.0
    quads = row.size // 4 * 4
    for i in range(0, quads, 4):
        a = uint64(row[i]) * n_outcomes
        b = uint64(row[i + 1]) * n_outcomes
        c = uint64(row[i + 2]) * n_outcomes
        d = uint64(row[i + 3]) * n_outcomes
        s = float(times[i])
        t = float(times[i + 1])
        u = float(times[i + 2])
        v = float(times[i + 3])
        for k in range(centre.size):
            j = uint64(k)
            w = flat[a + j] - centre[k]
            x = flat[b + j] - centre[k]
            y = flat[c + j] - centre[k]
            z = flat[d + j] - centre[k]
            total[k] += (s * w + t * x) + (u * y + v * z)
            square[k] += (s * w * w + t * x * x) + (u * y * y + v * z * z)
    for i in range(quads, row.size):
        for k in range(centre.size):
            x = prob[row[i], k] - centre[k]
            total[k] += times[i] * x
            square[k] += times[i] * x * x


@kernel
def _measure(prob, row, times, count, mean, scatter, centre, total, square):
    # Means and sums of squares about them, in two passes.
    centre[:] = 0.0
    for _ in range(2):
        _add_moments(prob, row, times, centre, total, square)
        for k in range(mean.size):
            mean[k] = centre[k] + total[k] / count
            scatter[k] = max(square[k] - total[k] * total[k] / count, 0.0)
            centre[k] = mean[k]


@njit(inline="always")
def _widest(scatter, tried):
    # The first untried class whose variance is largest, rounding apart, and the lead over the untried ones about it.
    largest = 0.0
    for k in range(scatter.size):
        if not tried[k]:
            largest = max(largest, scatter[k])
    axis = -1
    for k in range(scatter.size):
        if axis < 0 and not tried[k] and scatter[k] >= largest * (1 - 1e-11):
            axis = k
    lead = np.inf
    for k in range(scatter.size):
        if k != axis and not tried[k]:
            lead = min(lead, abs(largest * (1 - 1e-11) - scatter[k]))
    return axis, largest, lead


@kernel
def fit_class_trees(
    prob,
    null_prob,
    rank,
    rows,
    outcomes,
    min_rows,
    min_leaf,
    max_cells,
    counts,
    predicted,
    observed,
):
    """Grow a tree on every resample: counts, sums of null probabilities and outcome counts in its leaves.

    Adds to ``counts (n_replicates, capacity)``, ``predicted`` and ``observed (n_replicates, capacity, n_outcomes)`` and
    returns the largest number of leaves, or -1 where one tree has more than fit. ``rows`` and ``outcomes
    (n_replicates, n_samples)`` are what was drawn, ``rank (n_outcomes, n_samples) int32`` the place of each probability
    among the distinct ones of its class. A node of at least ``min_rows`` rows is cut before the ties of its median or,
    where fewer than ``min_leaf`` rows lie there, beyond them, if either side keeps that many; on the class of largest
    variance that allows it; the node of largest variance first.
    """
    n_replicates, n_drawn = rows.shape
    n_samples, n_outcomes = prob.shape
    capacity = counts.shape[1]
    most = 2 * capacity
    most_cells = 0
    drawn = np.empty(n_samples, np.int32)
    row = np.empty(n_samples + 1, np.int32)
    times = np.empty(n_samples + 1, np.int32)
    other_row = np.empty(n_samples + 1, np.int32)
    other_times = np.empty(n_samples + 1, np.int32)
    key = np.empty(n_samples, np.int32)
    leaf = np.empty(n_samples, np.int32)
    begin = np.empty(most, np.int64)
    end = np.empty(most, np.int64)
    count = np.empty(most, np.int64)
    axis = np.empty(most, np.int64)
    variance = np.empty(most)  # negative: a leaf, or a node that has been cut
    is_leaf = np.empty(most, np.bool_)
    mean = np.empty((most, n_outcomes))
    scatter = np.empty((most, n_outcomes))
    doubt = np.empty(most)  # what rounding may have done to the sums of squares
    centre = np.empty(n_outcomes)
    total = np.empty(n_outcomes)
    square = np.empty(n_outcomes)
    tried = np.zeros(n_outcomes, np.bool_)
    for r in range(n_replicates):
        drawn[:] = 0
        for i in range(n_drawn):
            drawn[uint64(rows[r, i])] += int32(1)
        size = 0
        for i in range(n_samples):
            row[size] = i
            times[size] = drawn[i]
            size += drawn[i] > 0
        begin[0] = 0
        end[0] = size
        count[0] = n_drawn
        doubt[0] = np.inf
        scatter[0, :] = 0.0
        n_seen = 0
        n_nodes = 1
        n_cells = 1
        while True:
            for k in range(n_seen, n_nodes):
                is_leaf[k] = True
                variance[k] = -1.0
                if count[k] >= min_rows:
                    axis[k], largest, lead = _widest(scatter[k], tried)
                    if not (lead > 4 * doubt[k] and doubt[k] < 1e-12 * largest):
                        chosen = slice(begin[k], end[k])
                        _measure(prob, row[chosen], times[chosen], count[k], mean[k], scatter[k], centre, total, square)
                        doubt[k] = 0.0
                        axis[k], largest, lead = _widest(scatter[k], tried)
                    variance[k] = largest / count[k]
            n_seen = n_nodes
            node = -1
            largest = -0.5
            for k in range(n_nodes):
                if variance[k] > largest * (1 + 1e-11) and variance[k] >= 0:
                    node = k
                    largest = variance[k]
            if node < 0 or n_cells == max_cells:
                break
            if n_cells == capacity:
                return -1
            variance[node] = -1.0
            a = begin[node]
            b = end[node]
            weights = times[a:b]
            keys = key[: b - a]
            middle = count[node] // 2
            below = 0
            cut = 0
            while axis[node] >= 0:
                ranks = rank[axis[node]]
                for i in range(b - a):
                    key[i] = ranks[uint64(row[a + i])]
                below = 0
                cut = 0
                high = n_samples - 1
                while cut < high:  # the largest rank with no more than `middle` rows below it: that of the median
                    at = (cut + high + 1) // 2
                    rows_below = _below(keys, weights, at)
                    if rows_below <= middle:
                        cut = at
                        below = rows_below
                    else:
                        high = at - 1
                if below < min_leaf:
                    cut += 1
                    below = _below(keys, weights, cut)
                if min(below, count[node] - below) >= min_leaf:
                    break
                if doubt[node] > 0.0:  # the order of the other classes must not depend on rounding
                    chosen = slice(a, b)
                    _measure(prob, row[chosen], weights, count[node], mean[node], scatter[node], centre, total, square)
                    doubt[node] = 0.0
                tried[axis[node]] = True
                axis[node], largest, lead = _widest(scatter[node], tried)
                if not largest > 0.0:
                    axis[node] = -1
            tried[:] = False
            if axis[node] < 0:
                continue
            left = a
            right = 0
            for i in range(b - a):
                this = row[a + i]
                weight = times[a + i]
                goes_left = key[i] < int32(cut)
                other_row[right] = this
                other_times[right] = weight
                row[left] = this
                times[left] = weight
                left += goes_left
                right += 1 - goes_left
            for i in range(right):
                row[left + i] = other_row[i]
                times[left + i] = other_times[i]
            first = n_nodes
            begin[first], end[first], count[first] = a, left, below
            begin[first + 1], end[first + 1], count[first + 1] = left, b, count[node] - below
            is_leaf[node] = False
            small = first if left - a <= b - left else first + 1
            large = 2 * first + 1 - small
            if max(below, count[node] - below) >= min_rows:
                for k in range(n_outcomes):  # a slice takes seconds to compile
                    centre[k] = mean[node, k]
                chosen = slice(begin[small], end[small])
                _add_moments(prob, row[chosen], times[chosen], centre, total, square)
                n = count[small]
                m = count[large]
                doubt[small] = 0.0
                doubt[large] = doubt[node]
                for k in range(n_outcomes):
                    mean[small, k] = centre[k] + total[k] / n
                    mean[large, k] = centre[k] - total[k] / m
                    scatter[small, k] = max(square[k] - total[k] * total[k] / n, 0.0)
                    scatter[large, k] = max(scatter[node, k] - square[k] - total[k] * total[k] / m, 0.0)
                    doubt[small] = max(doubt[small], 1e-14 * square[k])
                    doubt[large] = max(doubt[large], doubt[node] + 1e-14 * scatter[node, k])
            n_nodes += 2
            n_cells += 1
        centre[:] = 0.0
        cell = 0
        for k in range(n_nodes):
            if is_leaf[k]:
                for i in range(begin[k], end[k]):
                    leaf[uint64(row[i])] = cell
                chosen = slice(begin[k], end[k])
                _add_moments(null_prob, row[chosen], times[chosen], centre, predicted[r, cell], square)
                counts[r, cell] = count[k]
                cell += 1
        for i in range(n_drawn):
            observed[r, uint64(leaf[uint64(rows[r, i])]), uint64(outcomes[r, i])] += 1.0
        most_cells = max(most_cells, n_cells)
    return most_cells
