"""Counts of cells, counts of blocks of paths, and a sum, all from one pass over simulated labels."""

from numba import int32, int64, uint64

from caltest._compiled._jit import kernel

_ENTRIES = (
    2**14
)  # whose records stay in the second-level cache, with all counters, while every replicate passes over them


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
    for r in range(n_replicates):
        count = cell_counts[r]
        count[:] = 0
        for j in range(cells.shape[0]):
            for c in range(cells.shape[1]):
                count[uint64(cells[j, c])] += counts[r, j]
