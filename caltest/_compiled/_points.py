"""Simulated labels as departures from the usual ones, and the sums that these change."""

import numpy as np
from numba import int32, int64, njit, uint64

from caltest._compiled._jit import kernel

_SMALLEST_TERM = 1e-18
_NEVER = 1e-100  # of a chance that no draw meets; its rate could vanish
_WHOLE = 2.0**64
_ALL = 0xFFFFFFFFFFFFFFFF


# Before draws begin: what is done once for a sample is left to NumPy, which compiles nothing. Sums over outcomes are
# added in their order.


def _chances(prob):
    """Return what is not negative of each column, ``(n_outcomes, n_samples)``."""
    return np.maximum(prob.T, 0.0, dtype=np.float64, order="C")


def _sum(chances):
    total = np.zeros(chances.shape[1])
    for chance in chances:
        total += chance
    return total


def usual_outcomes(prob, usual):
    """Fill the most probable outcome ``(n_samples,)`` of each row.

    Returned are the chances of the others ``(n_outcomes, n_samples)``, 0 for the usual one, their sums ``(n_samples,)``
    and what share of all these are.
    """
    usual[:] = prob[:, 1] > prob[:, 0] if prob.shape[1] == 2 else prob.argmax(axis=1)  # of two 8 times as fast
    chances = _chances(prob)
    total = _sum(chances)
    chances[usual, np.arange(usual.size)] = 0.0
    others = _sum(chances)
    return chances, others, others / total


def _rate(q):
    """Return -log(1 - q), from products and sums alone, which are the same on every processor."""
    z = q / (2.0 - q)
    square = z * z
    total, power, place = z.copy(), z * square, np.arange(q.size)
    some = total  # of the rows at these places
    j = 3.0
    while number := np.count_nonzero(more := power > _SMALLEST_TERM * j):
        if 2 * number > power.size:
            power *= more
        else:  # not in every step, because to choose takes longer than to add 0
            total[place] = some
            kept = np.flatnonzero(more)
            place, some, power, square = (values.take(kept) for values in (place, some, power, square))
        some += power / j
        power *= square
        j += 2.0
    total[place] = some
    return 2.0 * total


def point_rates(chances, others, departure, shift):
    """Return the entries ``(m,) uint32`` that a point may fall on, and its rates ``(m,)``; chances are overwritten."""
    some = np.flatnonzero(departure > _NEVER)
    scale = np.zeros(others.size)
    scale[some] = _rate(departure[some]) / others[some]
    rates = np.multiply(chances, scale, out=chances).ravel(order="F")
    some = np.flatnonzero(rates > 0.0)
    outcome = np.arange(len(chances), dtype=np.uint32)
    entry = np.arange(others.size, dtype=np.uint32)[:, None] << np.uint32(shift) | outcome
    return entry.ravel()[some], rates[some]


def poisson_thresholds(mean, size):
    """Return ``(size,) uint64``: P(N <= j) times 2**64 for a Poisson number N of some mean, from products alone."""
    mode = min(int(mean), size - 1)
    mass = [1.0]
    for j in range(mode, 0, -1):
        mass.append(mass[-1] * j / mean)
    mass.reverse()
    for j in range(mode + 1, size):
        mass.append(mass[-1] * mean / j)
    total = np.cumsum(mass)
    thresholds = np.full(size, _ALL, dtype=np.uint64)
    np.multiply(total / total[-1], _WHOLE, out=thresholds, where=total < total[-1], casting="unsafe")
    return thresholds


@njit(inline="always")
def _search(thresholds, word):
    """Return the first place whose threshold is not below the word."""
    low = 0
    high = thresholds.size - 1
    while low < high:
        middle = (low + high) >> 1
        if thresholds[middle] >= word:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def draw_departures(words, number, table, shift, hit, departed, end):
    """List the entries of the labels that are not the usual ones, of several replicates.

    ``words (n_replicates, n_words) uint64`` are random: the first one chooses the number of points by the thresholds
    ``number``, each other one a point by the alias table of the entries: one of its m lines at random, whose three
    numbers of 32 bits are a threshold, an entry and its alias. The entry is kept if a fraction of 32 bits lies below
    the threshold. The entries of replicate r are ``departed[end[r] : end[r + 1]]``; ``hit (n_samples,) uint8`` are 0,
    and 0 again afterwards.
    """
    m = uint64(table.size // 3)
    lower = uint64(0xFFFFFFFF)
    last = uint64(0)
    end[0] = 0
    for r in range(words.shape[0]):
        word = words[r]
        begin = last
        number_of_points = uint64(_search(number, word[0]))
        for p in range(number_of_points):  # look-ups that do not wait for the rows before them
            drawn = word[p + uint64(1)]
            # The product of the word and m in two halves, because one of 128 bits is slow.
            place = (drawn >> uint64(32)) * m + (((drawn & lower) * m) >> uint64(32))
            line = (place >> uint64(32)) * uint64(3)
            # No branch anywhere, because none could be predicted: later points of a row are overwritten.
            is_own = (place & lower) < uint64(table[line])
            departed[begin + p] = table[line + uint64(2) - uint64(is_own)]
        for p in range(number_of_points):
            found = departed[begin + p]
            row = uint64(found) >> uint64(shift)
            departed[last] = found
            last += uint64(hit[row] == 0)
            hit[row] = 1
        for d in range(begin, last):
            hit[uint64(departed[d]) >> uint64(shift)] = 0
        end[r + 1] = last


LEFT = 2**16
"""What is added to a counter of paths when a usual label is left; what is reached adds 1, so that both are known."""


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
def tally_departures(departed, end, shift, usual, places, values, widths, first_path, counted, summed, counts, sums):
    """Fill ``counts (n_replicates, n_counters)`` and ``sums (n_replicates, n_sums)`` of replicates.

    They start as ``counted`` and ``summed``, those of the usual outcomes ``usual (n_samples,)``, and are corrected for
    every departure. The last columns of ``places (n_entries, width)`` are sums, to which the ``values (n_entries, n)``
    are added, the others are counters. An entry that is left has ``widths[0]`` counters and ``widths[1]`` sums, one
    that is reached ``widths[2]`` and ``widths[3]``. Counters from ``first_path`` on are those of paths, which add what
    is left in the upper half instead of subtracting it. Sums are whole numbers, so that they do not depend on the
    order of the departures.
    """
    n_outcomes = uint64(places.shape[0] // usual.size)
    first_sum = uint64(places.shape[1] - values.shape[1])
    outcome = (uint64(1) << uint64(shift)) - uint64(1)
    # Unsigned numbers, which are not checked for counting from the end.
    none = uint64(0)
    path = uint64(first_path)
    counters_left, sums_left = uint64(widths[0]), uint64(widths[1])
    counters_reached, sums_reached = uint64(widths[2]), uint64(widths[3])
    for r in range(counts.shape[0]):
        count = counts[r]
        total = sums[r]
        for c in range(counted.size):
            count[c] = counted[c]
        for s in range(summed.size):
            total[s] = summed[s]
        for d in range(uint64(end[r]), uint64(end[r + 1])):
            entry = uint64(departed[d])
            row = entry >> uint64(shift)
            left = row * n_outcomes + uint64(usual[row])
            reached = row * n_outcomes + (entry & outcome)
            for c in range(none, counters_left):
                place = uint64(places[left, c])
                count[place] += int32(LEFT) if place >= path else int32(-1)
            for c in range(none, counters_reached):
                count[uint64(places[reached, c])] += int32(1)
            for s in range(none, sums_left):
                total[uint64(places[left, first_sum + s])] -= values[left, s]
            for s in range(none, sums_reached):
                total[uint64(places[reached, first_sum + s])] += values[reached, s]


LANE = 21
"""Bits of the number of a counter in a line of `tally_lines`, which holds three of them in a word."""


@kernel
def tally_lines(departed, end, shift, usual, lines, first_path, counted, summed, counts, sums):
    """Do what `tally_departures` does, for at most three counters of an entry and one or two sums: 4 times as fast.

    ``lines (n_entries, 1 + n_sums) uint64`` have the three counters of an entry in their first word, and then what it
    adds to each sum, signed: what a departure needs stands together, and no loop is left.
    """
    width = uint64(lines.shape[1])
    n_outcomes = uint64(lines.shape[0] // usual.size)
    line = lines.reshape(lines.size)
    outcome = (uint64(1) << uint64(shift)) - uint64(1)
    lane = (uint64(1) << uint64(LANE)) - uint64(1)
    second, third = uint64(LANE), uint64(2 * LANE)
    path = uint64(first_path)
    one, two = uint64(1), uint64(width - uint64(1))  # the last sum is the first one where there is one
    for r in range(counts.shape[0]):
        count = counts[r]
        for c in range(counted.size):
            count[c] = counted[c]
        first_sum = int64(0)
        last_sum = int64(0)
        for d in range(uint64(end[r]), uint64(end[r + 1])):
            entry = uint64(departed[d])
            row = entry >> uint64(shift)
            left = (row * n_outcomes + uint64(usual[row])) * width
            reached = (row * n_outcomes + (entry & outcome)) * width
            a = line[left] & lane
            b = (line[left] >> second) & lane
            c = (line[left] >> third) & lane
            count[a] += int32(LEFT) if a >= path else int32(-1)
            count[b] += int32(LEFT) if b >= path else int32(-1)
            count[c] += int32(LEFT) if c >= path else int32(-1)
            count[line[reached] & lane] += int32(1)
            count[(line[reached] >> second) & lane] += int32(1)
            count[(line[reached] >> third) & lane] += int32(1)
            first_sum += int64(line[reached + one]) - int64(line[left + one])
            last_sum += int64(line[reached + two]) - int64(line[left + two])
        sums[r, 0] = summed[0] + first_sum
        sums[r, summed.size - 1] = summed[summed.size - 1] + last_sum
