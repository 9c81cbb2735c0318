"""Alias tables, from which numbers of any discrete distribution are drawn in constant time."""

import numpy as np
from numba import int64, uint32, uint64

from caltest._compiled._jit import kernel


@kernel
def _fill_tables(mass, start, share, places, thresholds, alias):
    # Vose's construction; `places` holds those below their share from the left, the others from the right.
    for t in range(start.size - 1):
        a = start[t]
        size = start[t + 1] - a
        total = 0.0
        for j in range(size):
            total += max(mass[a + j], 0.0)
        below = 0
        above = size
        for j in range(size):
            thresholds[a + j] = 0
            alias[a + j] = j  # unless it is given another
            share[j] = max(mass[a + j], 0.0) * size / total
            if share[j] < 1.0:
                places[below] = j
                below += 1
            else:
                above -= 1
                places[above] = j
        while below > 0 and above < size:
            below -= 1
            small = places[below]
            large = places[above]
            thresholds[a + small] = uint32(min(np.rint(share[small] * 2.0**32), 2.0**32 - 1))
            alias[a + small] = large
            share[large] -= 1.0 - share[small]
            if share[large] < 1.0:
                above += 1
                places[below] = large
                below += 1


def alias_tables(mass, start):
    """Return thresholds and aliases, ``(n_entries,) uint32``, for draws of j from ``mass[start[t] : start[t + 1]]``.

    Walker's alias method: a uniform j is kept if a fraction of 32 bits lies below its threshold, else its alias,
    counted from the start of the table, is taken. Probabilities are met within 2**-32; 0 stays 0.
    """
    longest = np.diff(start).max(initial=0)  # memory is taken here, because in a kernel that is compiled too
    thresholds, alias = np.empty(mass.size, np.uint32), np.empty(mass.size, np.uint32)
    _fill_tables(mass, start, np.empty(longest), np.empty(longest, np.int64), thresholds, alias)
    return thresholds, alias


_WHOLE = 2.0**32
_ROUNDS = 2.0**52  # added, it leaves the nearest integer in the lowest bits


@kernel
def _fill_row(prob, share, scaled, light, heavy, records):
    # The light outcomes, which are less likely than a record, are filled up by the heavy ones in turn: Vose's
    # construction (1991) without its stacks. Once a heavy one has given so much that it is light, the next one fills
    # it. What rounding leaves over at the end is as likely as a record. Separate loops, most of them vectorised.
    n_outcomes = prob.size
    s0 = s1 = s2 = s3 = 0.0
    quads = n_outcomes // 4 * 4
    for k in range(0, quads, 4):  # four sums in a fixed order hide the latency of addition
        s0 += max(np.float64(prob[k]), 0.0)
        s1 += max(np.float64(prob[k + 1]), 0.0)
        s2 += max(np.float64(prob[k + 2]), 0.0)
        s3 += max(np.float64(prob[k + 3]), 0.0)
    for k in range(quads, n_outcomes):
        s0 += max(np.float64(prob[k]), 0.0)
    scale = n_outcomes / ((s0 + s1) + (s2 + s3))
    for k in range(n_outcomes):
        share[k] = max(np.float64(prob[k]), 0.0) * scale
    for k in range(n_outcomes):
        records[k] = uint64(k)
    for k in range(n_outcomes):
        scaled[k] = min(share[k] * _WHOLE, _WHOLE - 1.0) + _ROUNDS
    threshold = scaled.view(np.uint64)  # in the lower 32 bits
    n_light = uint64(0)
    for k in range(n_outcomes):  # both lists are written and one is counted, because no processor predicts which
        light[n_light] = k
        heavy[uint64(k) - n_light] = k
        n_light += uint64(share[k] < 1.0)
    n_heavy = uint64(n_outcomes) - n_light
    if n_heavy == uint64(0):
        return
    giver = uint64(heavy[0])
    rest = share[giver]
    taken = uint64(1)
    for j in range(int64(n_light)):
        k = uint64(light[j])
        records[k] = (threshold[k] << uint64(32)) | giver
        rest -= 1.0 - share[k]
        while rest < 1.0:
            if taken == n_heavy:
                return
            following = uint64(heavy[taken])
            taken += uint64(1)
            kept = uint64(int64(min(rest * _WHOLE + 0.5, _WHOLE - 1.0)))
            records[giver] = (kept << uint64(32)) | following
            rest = share[following] - (1.0 - rest)
            giver = following


@kernel
def fill_row_records(prob, start, records):
    """Fill ``records (n_rows, n_outcomes) uint64`` of the rows of ``prob (n_samples, n_outcomes)`` from ``start`` on.

    Rows are divided by their sum, and negative rounding errors count as 0. Probabilities are met within 2**-32, and 0
    stays 0.
    """
    n_rows, n_outcomes = records.shape
    share = np.empty(n_outcomes)
    scaled = np.empty(n_outcomes)
    light = np.empty(n_outcomes, np.uint32)
    heavy = np.empty(n_outcomes, np.uint32)
    for i in range(n_rows):
        _fill_row(prob[start + i], share, scaled, light, heavy, records[i])
