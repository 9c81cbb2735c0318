"""Counts of cells, counts of blocks of paths, and a sum, all from one pass over simulated labels."""

import numpy as np
from numba import int32, int64, uint64

from caltest._compiled._jit import inner, kernel

_ENTRIES = 2**14
"""Their records stay in the second-level cache, with all counters, while every replicate passes over them."""


@inner
def _add_cells(counts, cells, cell_counts):
    """Fill ``cell_counts``: every joint cell is counted in all its cells."""
    cell_counts[:] = 0
    for r in range(cell_counts.shape[0]):
        count = cell_counts[r]
        for j in range(cells.shape[0]):
            for c in range(cells.shape[1]):
                count[uint64(cells[j, c])] += counts[r, j]


@kernel
def tally_labels(labels, places, values, cells, counts, cell_counts, sums):
    """Count all labels ``(n_replicates, n_samples)`` by what the records of their entries hold.

    ``places (n_entries,) uint32`` are two counters of each entry: that of its joint cell in the lower half, that of its
    block in the upper half; ``values (n_entries,)`` are whole numbers. Filled are ``counts (n_replicates,
    n_counters)``, of joint cells and then of blocks; ``cell_counts (n_replicates, n_cells)``, with every joint cell
    counted in the ``cells (n_joint_cells, n_partitions)`` that it lies in; and ``sums (n_replicates,)``.
    """
    n_replicates, n_samples = labels.shape
    n_outcomes = uint64(places.size // n_samples)
    tile = max(_ENTRIES * n_samples // places.size, 16)
    lower = uint64(0xFFFF)
    counts[:] = 0
    sums[:] = 0
    for first in range(0, n_samples, tile):
        size = min(tile, n_samples - first)
        for r in range(n_replicates):
            label = labels[r, first : first + size]
            count = counts[r]
            total = int64(0)
            entry = uint64(first) * n_outcomes
            for i in range(size):
                e = entry + uint64(label[i])
                place = uint64(places[e])
                count[place & lower] += int32(1)
                count[place >> uint64(16)] += int32(1)
                total += values[e]
                entry += n_outcomes
            sums[r] += total
    _add_cells(counts, cells, cell_counts)


@kernel
def tally_events(labels, places, first_values, second_values, cells, cell_counts, sums):
    """Count labels, and add what they have, for each outcome against the rest.

    ``places (n_entries,) uint16`` are the joint cells of entries, whose counts are added to the columns ``cells
    (n_joint_cells, n)`` of ``cell_counts (n_replicates, n_columns)``. ``sums (n_replicates, 2, n_outcomes)`` are those
    of the first and of the second values ``(n_entries,)`` of the labels of each outcome. Eight rows have a sum each,
    because a sum must wait for the previous one of the same outcome.
    """
    n_replicates, n_samples = labels.shape
    n_outcomes = uint64(places.size // n_samples)
    tile = max(_ENTRIES // 4 * n_samples // places.size, 16)
    counts = np.zeros((n_replicates, cells.shape[0]), np.int32)
    total = np.empty((2, 8 * sums.shape[2]), np.int64)
    sums[:] = 0
    for first in range(0, n_samples, tile):
        size = min(tile, n_samples - first)
        for r in range(n_replicates):
            label = labels[r, first : first + size]
            count = counts[r]
            one = total[0]
            other = total[1]
            one[:] = 0
            other[:] = 0
            entry = uint64(first) * n_outcomes
            for i in range(size):
                outcome = uint64(label[i])
                e = entry + outcome
                count[uint64(places[e])] += int32(1)
                place = (outcome << uint64(3)) + (uint64(i) & uint64(7))
                one[place] += first_values[e]
                other[place] += second_values[e]
                entry += n_outcomes
            for place in range(one.size):
                sums[r, 0, place >> 3] += one[place]
                sums[r, 1, place >> 3] += other[place]
    _add_cells(counts, cells, cell_counts)
