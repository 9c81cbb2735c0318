"""The variance tree on many probabilities, fitted again to every resample: nodes hold (row, times drawn), not copies.

A median is sought by bisection of the ranks of a class, which are made once, in vectors (`_below`). Sums of squares are
computed in the smaller child alone; those of the other are what is left, as long as rounding cannot decide anything.
"""

import math

import numpy as np
from numba import int32, int64, njit, uint64

from caltest._compiled._jit import inner, kernel, reduction

_EPSILON = 2.3e-16  # rounding of one addition; of a sum of n, whose errors have either sign, sqrt(n) times as much


@kernel
def _below(key, times, rank):
    # Rows drawn whose key lies below a rank. A mask, because AVX2 has no masked addition; 32 bits throughout.
    total = int32(0)
    bound = int32(rank)
    for i in range(key.size):
        total = int32(total + (times[i] & int32(-int64(key[i] < bound))))
    return int64(total)


@njit(inline="always")
def _row(member):
    return member >> uint64(32)


@njit(inline="always")
def _times(member):
    return float(int32(member & uint64(0xFFFFFFFF)))


@reduction
def _add_moments(prob, members, centre, total, square):
    """Fill ``total`` and ``square (n_outcomes + 3,)``: sums of the rows about ``centre``, and of their squares.

    Four classes at a time, whose sums stay in registers. Where fewer are left, the next row of ``prob`` is read instead
    and what it adds is never looked at. The last row, which need not have a next one, is added by itself.
    """
    n_outcomes = uint64(prob.shape[1])
    flat = prob.ravel()
    last = uint64(members.size - 1)
    for k in range(0, prob.shape[1], 4):
        c0, c1, c2, c3 = centre[k], centre[k + 1], centre[k + 2], centre[k + 3]
        t0 = t1 = t2 = t3 = 0.0
        s0 = s1 = s2 = s3 = 0.0
        for j in range(last):
            member = members[uint64(j)]  # an index without a sign is not compared with 0
            entry = _row(member) * n_outcomes + uint64(k)
            weight = _times(member)
            x0 = flat[entry] - c0
            x1 = flat[entry + uint64(1)] - c1
            x2 = flat[entry + uint64(2)] - c2
            x3 = flat[entry + uint64(3)] - c3
            y0 = weight * x0
            y1 = weight * x1
            y2 = weight * x2
            y3 = weight * x3
            t0 += y0
            t1 += y1
            t2 += y2
            t3 += y3
            s0 += y0 * x0
            s1 += y1 * x1
            s2 += y2 * x2
            s3 += y3 * x3
        total[k], total[k + 1], total[k + 2], total[k + 3] = t0, t1, t2, t3
        square[k], square[k + 1], square[k + 2], square[k + 3] = s0, s1, s2, s3
    for k in range(prob.shape[1]):
        x = prob[_row(members[last]), k] - centre[k]
        total[k] += _times(members[last]) * x
        square[k] += _times(members[last]) * x * x


@reduction
def _add_rows(prob, members, total):
    # As `_add_moments`, of the rows themselves.
    n_outcomes = uint64(prob.shape[1])
    flat = prob.ravel()
    last = uint64(members.size - 1)
    for k in range(0, prob.shape[1], 4):
        t0 = t1 = t2 = t3 = 0.0
        for j in range(last):
            member = members[uint64(j)]
            entry = _row(member) * n_outcomes + uint64(k)
            weight = _times(member)
            t0 += weight * flat[entry]
            t1 += weight * flat[entry + uint64(1)]
            t2 += weight * flat[entry + uint64(2)]
            t3 += weight * flat[entry + uint64(3)]
        total[k], total[k + 1], total[k + 2], total[k + 3] = t0, t1, t2, t3
    for k in range(prob.shape[1]):
        total[k] += _times(members[last]) * prob[_row(members[last]), k]


@kernel
def _measure(prob, members, count, mean, scatter, centre, total, square):
    # Means, and sums of squares about them, from means that are nearly right.
    for k in range(mean.size):
        centre[k] = mean[k]
    _add_moments(prob, members, centre, total, square)
    for k in range(mean.size):
        mean[k] = centre[k] + total[k] / count
        scatter[k] = max(square[k] - total[k] * total[k] / count, 0.0)


@inner
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
def fit_class_trees(prob, null_prob, rank, rows, outcomes, min_rows, min_leaf, max_cells, counts, predicted, observed):
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
    members = np.empty(n_samples + 1, np.uint64)  # rows by node, in the upper 32 bits, and how often each was drawn
    right = np.empty(n_samples + 1, np.uint64)
    key = np.empty(n_samples, np.int32)
    times = np.empty(n_samples, np.int32)
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
    centre = np.zeros(n_outcomes + 3)
    total = np.empty(n_outcomes + 3)
    square = np.empty(n_outcomes + 3)
    overall = np.zeros(n_outcomes)
    for i in range(n_samples):
        for k in range(n_outcomes):
            overall[k] += prob[i, k] / n_samples
    tried = np.zeros(n_outcomes, np.bool_)
    for r in range(n_replicates):
        drawn[:] = 0
        for i in range(n_drawn):
            drawn[uint64(rows[r, i])] += int32(1)
        size = uint64(0)
        for i in range(n_samples):
            members[size] = (uint64(i) << uint64(32)) | uint64(drawn[i])
            size += uint64(drawn[i] > 0)
        begin[0] = 0
        end[0] = size
        count[0] = n_drawn
        doubt[0] = np.inf
        for k in range(n_outcomes):  # a slice takes seconds to compile
            scatter[0, k] = 0.0
            mean[0, k] = overall[k]
        n_seen = 0
        n_nodes = 1
        n_cells = 1
        while True:
            for k in range(n_seen, n_nodes):
                is_leaf[k] = True
                variance[k] = -1.0
                if count[k] >= min_rows:
                    axis[k], largest, lead = _widest(scatter[k], tried)
                    if not (lead > 4 * doubt[k] and doubt[k] < 4e-12 * largest):
                        inside = members[begin[k] : end[k]]
                        _measure(prob, inside, count[k], mean[k], scatter[k], centre, total, square)
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
            inside = members[a:b]
            keys = key[: b - a]
            weights = times[: b - a]
            middle = count[node] // 2
            below = 0
            cut = 0
            while axis[node] >= 0:
                ranks = rank[axis[node]]
                for i in range(b - a):
                    keys[i] = ranks[_row(inside[i])]
                    weights[i] = inside[i] & uint64(0xFFFFFFFF)
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
                    _measure(prob, inside, count[node], mean[node], scatter[node], centre, total, square)
                    doubt[node] = 0.0
                tried[axis[node]] = True
                axis[node], largest, lead = _widest(scatter[node], tried)
                if not largest > 0.0:
                    axis[node] = -1
            tried[:] = False
            if axis[node] < 0:
                continue
            n_left = uint64(0)
            n_right = uint64(0)
            for i in range(b - a):
                member = inside[i]
                goes_left = uint64(keys[i] < int32(cut))
                right[n_right] = member
                inside[n_left] = member
                n_left += goes_left
                n_right += uint64(1) - goes_left
            left = a + int64(n_left)
            for i in range(int64(n_right)):
                inside[n_left + uint64(i)] = right[i]
            first = n_nodes
            begin[first], end[first], count[first] = a, left, below
            begin[first + 1], end[first + 1], count[first + 1] = left, b, count[node] - below
            is_leaf[node] = False
            small = first if left - a <= b - left else first + 1
            large = 2 * first + 1 - small
            if max(below, count[node] - below) >= min_rows:
                for k in range(n_outcomes):
                    centre[k] = mean[node, k]
                _add_moments(prob, members[begin[small] : end[small]], centre, total, square)
                n = count[small]
                m = count[large]
                rounding = _EPSILON * math.sqrt(end[small] - begin[small])
                doubt[small] = 0.0
                doubt[large] = doubt[node]
                for k in range(n_outcomes):
                    mean[small, k] = centre[k] + total[k] / n
                    mean[large, k] = centre[k] - total[k] / m
                    scatter[small, k] = max(square[k] - total[k] * total[k] / n, 0.0)
                    scatter[large, k] = max(scatter[node, k] - square[k] - total[k] * total[k] / m, 0.0)
                    error = rounding * square[k]
                    doubt[small] = max(doubt[small], error)
                    doubt[large] = max(doubt[large], doubt[node] + error + _EPSILON * scatter[node, k])
            n_nodes += 2
            n_cells += 1
        cell = 0
        for k in range(n_nodes):
            if is_leaf[k]:
                inside = members[begin[k] : end[k]]
                for i in range(inside.size):
                    leaf[_row(inside[i])] = cell
                _add_rows(null_prob, inside, total)
                for j in range(n_outcomes):
                    predicted[r, cell, j] = total[j]
                counts[r, cell] = count[k]
                cell += 1
        for i in range(n_drawn):
            observed[r, uint64(leaf[uint64(rows[r, i])]), uint64(outcomes[r, i])] += 1.0
        most_cells = max(most_cells, n_cells)
    return most_cells
