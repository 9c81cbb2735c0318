"""Sums over cells of outcomes and of redrawn outcomes, which a counter tells: seed, number of the row, replicate."""

import numpy as np
from numba import uint64

from caltest._compiled._jit import inner, kernel

_GOLDEN = uint64(0x9E3779B97F4A7C15)
_STEP = uint64(0xD1342543DE82EF95)
_UNIT = 2.0**52
_WHOLE = 2.0**53
_BITS, _LOG_BITS = 26, 27
_LOW, _LOG_LOW = 2**26 - 1, 2**27 - 1
_FEW = 32  # outcomes, which are compared one after the other for many replicates at once


@inner
def _mix(x):
    """Return a word of splitmix64, as the generator of the package has it."""
    x = (x ^ (x >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> uint64(27))) * uint64(0x94D049BB133111EB)
    return x ^ (x >> uint64(31))


@inner
def _draw(key, row, below, words, drawn):
    """Fill ``drawn`` from its second place on with the outcomes of one row, one for each replicate."""
    n_resamples, n_outcomes = words.size, below.size
    start = _mix(key + uint64(row) * _GOLDEN)
    for b in range(n_resamples):
        words[b] = np.int64(_mix(start + uint64(b + 1) * _STEP) >> uint64(11))
        drawn[b + 1] = 0
    if n_outcomes <= _FEW:
        for k in range(n_outcomes - 1):
            for b in range(n_resamples):
                drawn[b + 1] += words[b] >= below[k]
        return
    size = n_outcomes - 1
    while size > 0:  # bisection, the same steps for all replicates
        half = max(size >> 1, 1)
        for b in range(n_resamples):
            drawn[b + 1] += half * (below[drawn[b + 1] + half - 1] <= words[b])
        size = size - half if size > 1 else 0


@kernel
def add_redrawn(prob, outcome, cell, order, loss, expected, key, first_row, sums, counts, own, logs):
    """Add rows to the sums of their cells, of their outcomes and of redrawn ones; return how many were impossible.

    ``prob (n_rows, n_outcomes)`` are predictions, ``outcome (n_rows,)`` and ``cell (n_rows,)`` integers, and
    ``order (n_rows,)`` says which row comes first: where those of a cell follow each other, its sums stay in the cache.
    Place 0 of each axis of ``1 + n_resamples`` replicates is that of the given outcomes; replicate b of row i draws an
    outcome with the probabilities of the row, divided by their sum, by a hash of ``key``, ``first_row + i`` and b. So
    every order of rows and any parts of them have the same sums, all of which are integers.

    A sum of numbers is a pair, of the upper and the lower bits, which may be carried from one to the other. Row c of
    ``sums (n_cells, 3 + 2 * n_outcomes)`` holds the number of rows, the sum of squared lengths, and the sums of the
    predictions (all upper, then all lower parts), in units of 2^-52. ``counts (n_cells, n_outcomes, 1 + n_resamples)``
    are numbers of outcomes, ``own (n_cells, 2, 1 + n_resamples)`` sums of the outcomes' probabilities, in units of
    2^-52. ``logs (2, 2 + n_resamples)`` are sums of ``loss (n_rows, n_outcomes)``, whole numbers, at the outcomes; its
    last column is the sum of ``expected (n_rows,)``.
    """
    n_outcomes = prob.shape[1]
    n_resamples = own.shape[2] - 1
    below, units = np.empty(n_outcomes, dtype=np.int64), np.empty(n_outcomes, dtype=np.int64)
    words, drawn = np.empty(n_resamples, dtype=np.int64), np.empty(n_resamples + 1, dtype=np.int64)
    n_impossible = 0
    for i in order:
        c = cell[i]
        row = sums[c]
        total, square = 0.0, 0.0
        for k in range(n_outcomes):
            p = prob[i, k]
            total += p
            square += p * p
            units[k] = np.int64(p * _UNIT + 0.5)
            row[3 + k] += units[k] >> _BITS
            row[3 + n_outcomes + k] += units[k] & _LOW
        squared = np.int64(square * _UNIT + 0.5)
        row[0] += 1
        row[1] += squared >> _BITS
        row[2] += squared & _LOW
        cumulative = 0.0
        for k in range(n_outcomes):
            cumulative += prob[i, k]
            below[k] = np.int64(
                np.true_divide(cumulative, total) * _WHOLE
            )  # all words where the rest is 0: never drawn
        _draw(key, first_row + i, below, words, drawn)
        drawn[0] = outcome[i]
        n_impossible += prob[i, drawn[0]] == 0.0
        high, low, loss_high, loss_low, losses = own[c, 0], own[c, 1], logs[0], logs[1], loss[i]
        for b in range(n_resamples + 1):
            unit = units[drawn[b]]
            high[b] += unit >> _BITS
            low[b] += unit & _LOW
        for b in range(n_resamples + 1):
            one = losses[drawn[b]]
            loss_high[b] += one >> _LOG_BITS
            loss_low[b] += one & _LOG_LOW
        table = counts[c]
        for b in range(n_resamples + 1):
            table[drawn[b], b] += 1
        logs[0, n_resamples + 1] += expected[i] >> _LOG_BITS
        logs[1, n_resamples + 1] += expected[i] & _LOG_LOW
    return n_impossible
