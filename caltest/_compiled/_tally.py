"""Counts and sums of simulated labels from their departures: each departure leaves one entry and reaches another.

An entry, a row and an outcome, adds one to some counters, and numbers to some sums, if the label of the row selects it.
Departures have the number ``row << shift | outcome``. Tables have a line for each entry, without gaps, and what belongs
to an entry stands together: reads from memory at random places are what takes the time here.
"""

from numba import int32, uint64

from caltest._compiled._jit import kernel

LEFT = 2**16
"""What is added to a counter of paths when a usual label is left; what is reached adds 1, so that both are known."""


@kernel
def longest_list(entry, length):
    """Return how often the most frequent of the numbers ``entry (m,)`` occurs; ``length (n_entries,)`` is overwritten.

    It holds how often each occurs.
    """
    length[:] = 0
    longest = 0
    for j in range(entry.size):
        length[uint64(entry[j])] += 1
        longest = max(longest, length[uint64(entry[j])])
    return longest


@kernel
def list_by_entry(entry, item, value, length, first, places, values):
    """Fill the lists of entries: the items in ``places (n_entries, width)`` from column ``first`` on, and their values.

    ``length (n_entries,)`` is overwritten. ``values (n_entries, n)`` are those of lists from its first column on.
    """
    length[:] = 0
    for j in range(entry.size):
        e = uint64(entry[j])
        k = uint64(length[e])
        places[e, uint64(first) + k] = item[j]
        if value.size:
            values[e, k] = value[j]
        length[e] += 1


@kernel
def tally_departures(departed, end, shift, usual, n_entries, places, widths, values, counted, summed, counts, sums):
    """Fill ``counts (n_replicates, n_counters)`` and ``sums (n_replicates, n_sums)`` of replicates.

    They start as ``counted`` and ``summed``, those of the usual outcomes ``usual (n_samples,)``, and are corrected for
    every departure. Of the ``sum(widths)`` places of an entry the first ``widths[0]`` are counters, the next
    ``widths[1]`` counters of paths, which add what is left in the upper half instead of subtracting it, and the others
    sums, to which the ``widths[2]`` values of the entry are added. Sums are whole numbers, so that they do not depend
    on the order of the departures.
    """
    n_outcomes = uint64(n_entries // usual.size)
    outcome = (uint64(1) << uint64(shift)) - uint64(1)
    # Unsigned numbers, which are not checked for counting from the end.
    none = uint64(0)
    n_counters = uint64(widths[0])
    n_paths = uint64(widths[1])
    n_sums = uint64(widths[2])
    width = n_counters + n_paths + n_sums
    for r in range(counts.shape[0]):
        count = counts[r]
        total = sums[r]
        for c in range(counted.size):
            count[c] = counted[c]
        for s in range(summed.size):
            total[s] = summed[s]
        for d in range(end[r], end[r + 1]):
            entry = uint64(departed[d])
            row = entry >> uint64(shift)
            left = row * n_outcomes + uint64(usual[row])
            reached = row * n_outcomes + (entry & outcome)
            i = left * width
            j = reached * width
            for k in range(none, n_counters):
                count[uint64(places[i + k])] -= int32(1)
                count[uint64(places[j + k])] += int32(1)
            i += n_counters
            j += n_counters
            for k in range(none, n_paths):
                count[uint64(places[i + k])] += int32(LEFT)
                count[uint64(places[j + k])] += int32(1)
            i += n_paths
            j += n_paths
            for k in range(none, n_sums):
                total[uint64(places[i + k])] -= values[left * n_sums + k]
                total[uint64(places[j + k])] += values[reached * n_sums + k]
