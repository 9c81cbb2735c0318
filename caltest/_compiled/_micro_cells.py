"""Exact sums of predictions and outcomes, and of redrawn outcomes, in micro-cells."""

import math

import numpy as np
from numba import uint64

from caltest._compiled._jit import inner, kernel

PARTS = 1800
DEEPEST = 64

_LOG_UNIT = 2.0**44
_FRACTION = 2**52 - 1  # bits of the fraction of a double
_BIAS = 1023  # of its exponent
_NORMAL, _UP = 2.0**-1022, 2.0**64  # the smallest double with all digits, and a factor for smaller ones
_ROOT_HALF = 0x3FE6A09E667F3BCD  # bits of the square root of 1/2
_OFFSET = 1024 << 52
_TWO_52, _WHOLE = 2.0**52, 1075 << 52  # bits of 2^52, whose fraction is a whole number
_LOG_2 = math.log(2)
_BLOCK = 2048
_MOST_ROWS = 2**10  # of a micro-cell, whose sums do not overflow


@inner
def _place(event, power, cells, units):
    """Fill micro-cells and distances from their lower ends, where neither is near 0 or 1; count the others.

    The number of the micro-cell is that of the edges at or below the probability: of ``j / 2 ** power`` and of
    ``k / 1800``, less the multiples of 1 / 8, which are both. The loops here have no branches, nor look anything up.
    """
    n_base = np.float64(1 << power)
    low = 1.0 / n_base
    high = 1.0 - low
    scale = 2.0**52 * n_base
    n_lost = np.int32(0)  # edges k / 1800 in the first base cell
    while (n_lost + 1) / np.float64(PARTS) < low:
        n_lost += 1
    first = np.int32(1 + DEEPEST - power - n_lost)
    n_extreme = np.int32(0)
    for i in range(event.size):
        p = event[i]
        j = np.int32(p * n_base)
        k = np.int32(p * np.float64(PARTS) + 0.5)
        k -= np.int32(k / np.float64(PARTS) > p)
        cells[i] = first + j + k - (j >> (power - 3))
        units[i] = np.int64((p - max(j * low, k / np.float64(PARTS))) * scale)
        n_extreme += np.int32(p < low) + np.int32(p >= high)
    return n_extreme


@inner
def _place_extremes(event, power, last, cells, units):
    """Fill the micro-cells near 0 and 1, and the distances, with exponent and fraction of p and of 1 - p."""
    low = 1.0 / np.float64(1 << power)
    high = 1.0 - low
    deepest = np.int64(_BIAS - DEEPEST - 2)
    highest = np.int64(last - 54 + _BIAS - 1)
    for i in range(event.size):
        p = event[i]
        bits = np.float64(p).view(np.int64)
        rest = np.float64(1.0 - p).view(np.int64) - 1  # of the double below 1 - p, as the cells are closed on the left
        below = max((bits >> 52) - deepest, 1) - np.int64(bits == 0)
        below_units = bits & _FRACTION if below > 1 else np.int64(min(p, low) * 2.0 ** (52 + DEEPEST))
        above = highest - (rest >> 52) if rest >= 0 else np.int64(last)
        above_units = _FRACTION - (rest & _FRACTION) if rest >= 0 else 0
        cell, unit = np.int64(cells[i]), units[i]
        cell, unit = (below, below_units) if p < low else (cell, unit)
        cell, unit = (above, above_units) if p >= high else (cell, unit)
        cells[i], units[i] = cell, unit


@inner
def _logarithm(p):
    """Return log p for p > 0, and any number for 0, by operations that every processor rounds alike.

    With p = m 2^k and m between the square roots of 1/2 and of 2, log m is the series of 2 artanh((m - 1) / (m + 1)).
    """
    tiny = p < _NORMAL
    bits = np.float64(p * _UP if tiny else p).view(np.int64)
    exponent = (bits - _ROOT_HALF + _OFFSET) >> 52  # k + 1024, of which no sign is shifted
    m = np.int64(bits - (exponent << 52) + _OFFSET).view(np.float64)
    k = np.int64(exponent | _WHOLE).view(np.float64) - (_TWO_52 + 1024.0)
    k -= 64.0 if tiny else 0.0
    s = np.true_divide(m - 1.0, m + 1.0)  # without the check that it is not divided by 0, which is slow
    z = s * s
    series = 1 / 13 + z * (1 / 15 + z * (1 / 17 + z * (1 / 19)))
    series = 1 / 3 + z * (1 / 5 + z * (1 / 7 + z * (1 / 9 + z * (1 / 11 + z * series))))
    return k * _LOG_2 + (2.0 * s + 2.0 * s * z * series)


@inner
def _add_logarithms(event, outcome, logs):
    own_high = own_low = expected_high = expected_low = 0
    for i in range(event.size):
        p = event[i]
        of_event = _logarithm(p) if p > 0.0 else 0.0  # never expected, and counted as impossible if it happens
        of_rest = _logarithm(1.0 - p) if p < 1.0 else 0.0
        rest = np.int64(0.5 - _LOG_UNIT * of_rest)
        own = rest + np.int64(outcome[i]) * (np.int64(0.5 - _LOG_UNIT * of_event) - rest)
        expected = np.int64(0.5 - _LOG_UNIT * (p * of_event + (1.0 - p) * of_rest))
        own_high += own >> 27
        own_low += own & (2**27 - 1)
        expected_high += expected >> 27
        expected_low += expected & (2**27 - 1)
    logs[0, 0] += own_high
    logs[0, 1] += own_low
    logs[1, 0] += expected_high
    logs[1, 1] += expected_low


@kernel
def fill_losses(prob, loss, expected):
    """Fill -log of probabilities ``(n_rows, n_outcomes)``, 0 where they are 0, and their expectation ``(n_rows,)``.

    Both are whole numbers in units of 2^-44.
    """
    logs = np.empty(prob.shape[1])
    for i in range(prob.shape[0]):
        for k in range(prob.shape[1]):
            p = prob[i, k]
            logs[k] = _logarithm(p) if p > 0.0 else 0.0
            loss[i, k] = np.int64(0.5 - _LOG_UNIT * logs[k])
        total = 0.0
        for k in range(prob.shape[1]):
            total += prob[i, k] * logs[k]
        expected[i] = np.int64(0.5 - _LOG_UNIT * total)


@inner
def _carry(narrow, wide):
    """Move the sums of one row of the narrow table to the wide one."""
    wide[0] += narrow[0]
    wide[1] += narrow[1] >> 26
    wide[2] += narrow[1] & (2**26 - 1)
    wide[3] += narrow[2] >> 26
    wide[4] += narrow[2] & (2**26 - 1)
    wide[5] += narrow[3] >> 26
    wide[6] += narrow[3] & (2**26 - 1)
    narrow[:] = 0


@kernel
def carry(narrow, wide):
    """Move all sums of the narrow table to the wide one."""
    for k in range(narrow.shape[0]):
        _carry(narrow[k], wide[k])


@kernel
def add_rows(event, outcome, power, narrow, wide, logs):
    """Add rows to the sums of their micro-cells; every addition is one of integers, so that any order is the same.

    ``event (n_rows,)`` are probabilities in [0, 1], ``outcome (n_rows,)`` is 0 or 1. The edges of the micro-cells are
    ``j / 2 ** power`` and ``j / 1800``; below the first and above the last of the former they are powers of 2 down to
    2^-64 and complements of powers of 2, and 0 and 1 have a micro-cell each.

    The distance of a probability from the lower end of its micro-cell is an integer q below 2^52, without rounding, in
    units of the width (rounded up to a power of 2) over 2^52. Row ``2 * cell + outcome`` of
    ``narrow (2 * n_cells, 4)`` holds the number of rows and the sums of q, of (q / 2^26)^2 and of (q / 2^35)^3, rounded
    before the power. Before they overflow they are added to ``wide (2 * n_cells, 7)``, where each sum is a pair: of the
    upper and of the lower 26 bits. ``logs (2, 2)`` holds the sums of -log of the probability of the outcome, and of its
    expectation, in units of 2^-44, as a pair.
    """
    cells, units = np.empty(_BLOCK, dtype=np.int32), np.empty(_BLOCK, dtype=np.int64)
    for start in range(0, event.size, _BLOCK):
        stop = min(start + _BLOCK, event.size)
        p, y, found, distance = event[start:stop], outcome[start:stop], cells[: stop - start], units[: stop - start]
        if _place(p, power, found, distance) > 0:
            _place_extremes(p, power, narrow.shape[0] // 2 - 1, found, distance)
        _add_logarithms(p, y, logs)
        for i in range(p.size):
            q = distance[i]
            r = (q + 2**25) >> 26
            t = (q + 2**34) >> 35
            k = 2 * np.int64(found[i]) + np.int64(y[i])
            narrow[k, 0] += 1
            narrow[k, 1] += q
            narrow[k, 2] += r * r
            narrow[k, 3] += t * t * t
            if narrow[k, 0] == _MOST_ROWS:
                _carry(narrow[k], wide[k])


_GOLDEN = uint64(0x9E3779B97F4A7C15)
_STEP = uint64(0xD1342543DE82EF95)
_UNIT = 2.0**52
_REDRAWN_WHOLE = 2.0**53
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
                np.true_divide(cumulative, total) * _REDRAWN_WHOLE
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
