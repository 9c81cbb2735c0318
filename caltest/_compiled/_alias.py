"""Alias tables, from which numbers of any discrete distribution are drawn in constant time (Walker 1977, Vose 1991)."""

import numpy as np
from numba import uint32, uint64

from caltest._compiled._jit import kernel


@kernel
def _fill_table(mass, share, places, thresholds, alias):
    # Vose's construction; `places` holds those below their share from the left, the others from the right.
    size = mass.size
    total = 0.0
    for j in range(size):
        total += max(mass[j], 0.0)
    below = 0
    above = size
    for j in range(size):
        thresholds[j] = 0
        alias[j] = j  # unless it is given another
        share[j] = max(mass[j], 0.0) * size / total
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
        thresholds[small] = uint32(min(np.rint(share[small] * 2.0**32), 2.0**32 - 1))
        alias[small] = large
        share[large] -= 1.0 - share[small]
        if share[large] < 1.0:
            above += 1
            places[below] = large
            below += 1


@kernel
def alias_tables(mass, start):
    """Return thresholds and aliases, ``(n_entries,) uint32``, for draws of j from ``mass[start[t] : start[t + 1]]``.

    Walker's alias method: a uniform j is kept if a fraction of 32 bits lies below its threshold, else its alias,
    counted from the start of the table, is taken. Probabilities are met within 2**-32; 0 stays 0.
    """
    thresholds = np.empty(mass.size, np.uint32)
    alias = np.empty(mass.size, np.uint32)
    longest = 0
    for t in range(start.size - 1):
        longest = max(longest, start[t + 1] - start[t])
    share = np.empty(longest)
    places = np.empty(longest, np.int64)
    for t in range(start.size - 1):
        a = start[t]
        b = start[t + 1]
        _fill_table(mass[a:b], share, places, thresholds[a:b], alias[a:b])
    return thresholds, alias


@kernel
def class_records(prob, row):
    """Return ``(n_samples * n_outcomes,) uint64``: the alias table of each row of ``prob``, in the order ``row``.

    The threshold stands in the upper 32 bits of an entry, the alias in the next 16 and the outcome itself in the last.
    """
    n_samples, n_outcomes = prob.shape
    records = np.empty(n_samples * n_outcomes, np.uint64)
    share = np.empty(n_outcomes)
    places = np.empty(n_outcomes, np.int64)
    thresholds = np.empty(n_outcomes, np.uint32)
    alias = np.empty(n_outcomes, np.uint32)
    for i in range(n_samples):
        _fill_table(prob[row[i]], share, places, thresholds, alias)
        for k in range(n_outcomes):
            record = (uint64(thresholds[k]) << uint64(32)) | (uint64(alias[k]) << uint64(16)) | uint64(k)
            records[i * n_outcomes + k] = record
    return records
