"""Counts and sums of simulated labels from their departures: each departure leaves one entry and reaches another.

An entry, a row and an outcome, adds one to some counters, and numbers to some sums, if the label of the row selects it.
Departures have the number ``row << shift | outcome``. Tables have a line for each entry without gaps: what is random
here are reads from memory, so that tables should be small.
"""

import numpy as np
from numba import int32, njit, uint64

from caltest._compiled._jit import kernel

LEFT = 2**16
"""What is added to a counter of paths when a usual label is left; what is reached adds 1, so that both are known."""


@kernel
def longest_list(entry, n_entries):
    """Return how often the most frequent of the numbers ``entry (m,)`` occurs."""
    length = np.zeros(n_entries, np.uint16)
    longest = 0
    for j in range(entry.size):
        e = uint64(entry[j])
        length[e] += 1
        longest = max(longest, length[e])
    return longest


@kernel
def list_by_entry(entry, item, value, places, values):
    """Fill lists of the items of each entry, ``places (n_entries, width)``, and of their values, if there are any."""
    length = np.zeros(places.shape[0], np.uint16)
    for j in range(entry.size):
        e = uint64(entry[j])
        k = uint64(length[e])
        places[e, k] = item[j]
        if value.size:
            values[e, k] = value[j]
        length[e] += 1


@njit(inline="always")
def _line(departed, shift, n_outcomes):
    """Return the line of an entry in tables ``(n_samples * n_outcomes, width)``, and its row."""
    row = uint64(departed) >> uint64(shift)
    outcome = uint64(departed) & ((uint64(1) << uint64(shift)) - uint64(1))
    return row * uint64(n_outcomes) + outcome, row


@kernel
def count_departures(departed, end, shift, usual, counters, path_counters, base, counts):
    """Fill ``counts (n_replicates, n_counters) int32``: ``base (n_counters,)``, corrected for every departure.

    ``usual (n_samples,)`` are the usual outcomes; ``counters`` and ``path_counters``, ``(n_entries, width)`` each, what
    an entry counts in. The latter add what is left in the upper half instead of subtracting it.
    """
    n_outcomes = uint64(counters.shape[0] // usual.size)
    width = counters.shape[1]
    path_width = path_counters.shape[1]
    for r in range(counts.shape[0]):
        count = counts[r]
        for c in range(base.size):
            count[c] = base[c]
        for d in range(end[r], end[r + 1]):
            reached, row = _line(departed[d], shift, n_outcomes)
            left = row * n_outcomes + uint64(usual[row])
            for j in range(width):
                count[uint64(counters[left, j])] -= int32(1)
                count[uint64(counters[reached, j])] += int32(1)
            for j in range(path_width):
                count[uint64(path_counters[left, j])] += int32(LEFT)
                count[uint64(path_counters[reached, j])] += int32(1)


@kernel
def add_departures(departed, end, shift, usual, places, values, base, sums):
    """Fill ``sums (n_replicates, n_sums)``: ``base (n_sums,)``, corrected for every departure."""
    n_outcomes = uint64(places.shape[0] // usual.size)
    width = places.shape[1]
    for r in range(sums.shape[0]):
        total = sums[r]
        for s in range(base.size):
            total[s] = base[s]
        for d in range(end[r], end[r + 1]):
            reached, row = _line(departed[d], shift, n_outcomes)
            left = row * n_outcomes + uint64(usual[row])
            for j in range(width):
                total[uint64(places[left, j])] -= values[left, j]
                total[uint64(places[reached, j])] += values[reached, j]
