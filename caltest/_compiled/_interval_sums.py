"""Sums over the cells of many partitions of one sorted probability.

Labels are passed as the sorted probabilities of the events that happened: two arrays of numbers are sorted faster than
one array with the order of its elements.
"""

import numpy as np

from caltest._compiled._jit import inner, kernel


@inner
def _position(values, edge, right):
    # How many of the increasing values lie below the edge, or on it where intervals are closed on the right.
    low = 0
    high = values.size
    while low < high:
        middle = (low + high) // 2
        if values[middle] < edge or (right and values[middle] == edge):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def interval_sums(values, happened, edges, first, right):
    """Return ``(n_cells, 4)``: count, sum of probabilities, events and sum of squared residuals of every cell.

    ``values`` are increasing probabilities, ``happened`` those of them whose event happened, increasing too. Partition
    p has the increasing inner edges ``edges[first[p] : first[p + 1]]``, closed on the right where ``right[p]``; its
    cells, one more than it has edges, follow those of partition p - 1. Sums are differences of running sums, so that a
    partition costs no pass over the data.
    """
    n_partitions = first.size - 1
    total = np.zeros(values.size + 1)
    square = np.zeros(values.size + 1)
    for i in range(values.size):
        total[i + 1] = total[i] + values[i]
        square[i + 1] = square[i] + values[i] * values[i]
    change = np.zeros(happened.size + 1)  # of the squared residual, from that without the event
    for i in range(happened.size):
        change[i + 1] = change[i] + (1.0 - 2.0 * happened[i])
    sums = np.empty((edges.size + n_partitions, 4))
    cell = 0
    for p in range(n_partitions):
        a = 0
        b = 0
        for e in range(first[p], first[p + 1] + 1):
            end = values.size
            events = happened.size
            if e < first[p + 1]:
                end = _position(values, edges[e], right[p])
                events = _position(happened, edges[e], right[p])
            sums[cell, 0] = end - a
            sums[cell, 1] = total[end] - total[a]
            sums[cell, 2] = events - b
            sums[cell, 3] = square[end] - square[a] + (change[events] - change[b])
            a = end
            b = events
            cell += 1
    return sums
