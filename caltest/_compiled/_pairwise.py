"""Sums over all pairs of rows, made in tiles, and kernel sums in linear time or by what changes."""

import math

import numpy as np
from llvmlite import ir
from numba import njit, types, uint64
from numba.extending import intrinsic

from caltest._compiled._jit import inner, kernel

_WIDTH = 128
_STRIDE = 136  # no power of two, whose columns would compete for the same cache lines

_LOG2E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_ROUNDER = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to an integer, found in the low bits
_LOWEST = -708.0


@intrinsic
def _fma(typing_context, a, b, c):
    def generate(context, builder, signature, arguments):
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


@intrinsic
def _bits(typing_context, x):
    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def _from_bits(typing_context, x):
    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@njit(inline="always")
def _exp(x):
    """Return exp(x) for x <= 0 to one or two units in the last place; below -708 as at -708.

    Cody & Waite's reduction and Taylor's polynomial, without a branch: unlike math.exp it becomes vector code.
    """
    x = x if x > _LOWEST else _LOWEST
    shifted = _fma(x, _LOG2E, _ROUNDER)
    k = shifted - _ROUNDER
    r = _fma(k, -_LN2_LOW, _fma(k, -_LN2_HIGH, x))
    # Estrin's scheme: neighbours first, so that few operations have to wait for one another.
    r2 = r * r
    r4 = r2 * r2
    p01 = 1.0 + r
    p23 = _fma(r, 1.0 / 6.0, 0.5)
    p45 = _fma(r, 1.0 / 120.0, 1.0 / 24.0)
    p67 = _fma(r, 1.0 / 5040.0, 1.0 / 720.0)
    p89 = _fma(r, 1.0 / 362880.0, 1.0 / 40320.0)
    pab = _fma(r, 1.0 / 39916800.0, 1.0 / 3628800.0)
    low = _fma(r4, _fma(r2, p67, p45), _fma(r2, p23, p01))
    high = _fma(r4, 1.0 / 479001600.0, _fma(r2, pab, p89))
    p = _fma(r4 * r4, high, low)
    return p * _from_bits((_bits(shifted) + 1023) << 52)


@kernel
def _load(rows, first, size, tile):
    """Copy rows into the columns of a tile."""
    for c in range(rows.shape[1]):
        for j in range(size):
            tile[c * _STRIDE + j] = rows[first + j, c]


@inner
def _columns(row, c):
    """Return the numbers in four columns of a row from c on, and where they begin in a tile; the last two may lack."""
    last = min(c + 3, row.size - 1)
    first = row[c], row[c + 1], uint64(c * _STRIDE), uint64((c + 1) * _STRIDE)
    return first, (row[last - 1], row[last], uint64((last - 1) * _STRIDE), uint64(last * _STRIDE)), last - c == 3


@kernel
def _gaps(row, tile, squared, size, out):
    """Fill ``out (size,)`` with sum |difference|, or the sum of squares, between one row and those of the tile."""
    for j in range(size):
        out[j] = 0.0
    for c in range(0, row.size, 4):
        (p0, p1, a0, a1), (p2, p3, a2, a3), are_four = _columns(row, c)
        if squared:
            for j in range(size):
                u = uint64(j)
                t0 = p0 - tile[a0 + u]
                t1 = p1 - tile[a1 + u]
                out[u] = _fma(t1, t1, _fma(t0, t0, out[u]))
                if are_four:
                    t2 = p2 - tile[a2 + u]
                    t3 = p3 - tile[a3 + u]
                    out[u] = _fma(t3, t3, _fma(t2, t2, out[u]))
        else:
            for j in range(size):
                u = uint64(j)
                gap = abs(p0 - tile[a0 + u]) + abs(p1 - tile[a1 + u])
                if are_four:
                    gap += abs(p2 - tile[a2 + u]) + abs(p3 - tile[a3 + u])
                out[u] += gap


@kernel
def _products(row, tile, size, out):
    """Fill ``out (size,)`` with the inner products of one row and those of the tile."""
    for j in range(size):
        out[j] = 0.0
    for c in range(0, row.size, 4):
        (p0, p1, a0, a1), (p2, p3, a2, a3), are_four = _columns(row, c)
        for j in range(size):
            u = uint64(j)
            out[u] = _fma(p1, tile[a1 + u], _fma(p0, tile[a0 + u], out[u]))
            if are_four:
                out[u] = _fma(p3, tile[a3 + u], _fma(p2, tile[a2 + u], out[u]))


@kernel
def _similarities(gaps, shape, rate, size, out):
    """Turn what `_gaps` returned into kernel values."""
    if shape == 0:
        for j in range(size):
            out[j] = _exp(-0.5 * rate * gaps[j])
    elif shape == 1:
        for j in range(size):
            out[j] = _exp(-rate * math.sqrt(gaps[j]))
    else:
        for j in range(size):
            out[j] = _exp(-rate * gaps[j])


@kernel
def sum_pairs(prob, residual, shape, rate):
    """Return the sum over i < j of k(p_i, p_j) r_i.r_j, for rows ``(n_samples, even number)``."""
    n_samples, k = prob.shape
    columns = np.empty(k * _STRIDE)
    others = np.empty(k * _STRIDE)
    gaps = np.empty(_WIDTH)
    products = np.empty(_WIDTH)
    similar = np.empty(_WIDTH)
    total = np.zeros(_WIDTH)
    for first in range(0, n_samples, _WIDTH):
        width = min(_WIDTH, n_samples - first)
        _load(prob, first, width, columns)
        _load(residual, first, width, others)
        for i in range(first + 1, n_samples):
            size = min(width, i - first)
            _gaps(prob[i], columns, shape != 0, size, gaps)
            _products(residual[i], others, size, products)
            _similarities(gaps, shape, rate, size, similar)
            for j in range(size):
                total[j] = _fma(similar[j], products[j], total[j])
    return total.sum()


@kernel
def fill_block(rows, others, shape, rate, out):
    """Fill ``out (n_rows, n_others)`` with the kernel between rows and others."""
    n_others, k = others.shape
    columns = np.empty(k * _STRIDE)
    gaps = np.empty(_WIDTH)
    for first in range(0, n_others, _WIDTH):
        size = min(_WIDTH, n_others - first)
        _load(others, first, size, columns)
        for i in range(rows.shape[0]):
            _gaps(rows[i], columns, shape != 0, size, gaps)
            _similarities(gaps, shape, rate, size, out[i, first : first + size])


@kernel
def distances_of(prob, squared, first, second):
    """Return the distances of given pairs of rows, with the very rounding of `collect_distances`."""
    columns = np.empty(prob.shape[1] * _STRIDE)
    distances = np.empty(first.size)
    for pair in range(first.size):
        _load(prob, second[pair], 1, columns)
        _gaps(prob[first[pair]], columns, squared, 1, distances[pair : pair + 1])
        gap = distances[pair]
        distances[pair] = math.sqrt(gap) if squared else 0.5 * gap
    return distances


@kernel
def collect_distances(prob, squared, low, high, between):
    """Sort the distances of all pairs i < j into those below, at and above two bounds.

    Fills ``between`` with those strictly between low and high, as far as it has room, and returns how many lie below
    low, at low, strictly between, and at high. The distance is total variation, or Euclidean if ``squared``.
    """
    n_samples, k = prob.shape
    columns = np.empty(k * _STRIDE)
    gaps = np.empty(_WIDTH)
    inside = np.empty(_WIDTH + 1)
    below = 0
    at_low = 0
    found = 0
    at_high = 0
    for first in range(0, n_samples, _WIDTH):
        width = min(_WIDTH, n_samples - first)
        _load(prob, first, width, columns)
        for i in range(first + 1, n_samples):
            size = min(width, i - first)
            _gaps(prob[i], columns, squared, size, gaps)
            for j in range(size):
                gaps[j] = math.sqrt(gaps[j]) if squared else 0.5 * gaps[j]
            for j in range(size):
                below += gaps[j] < low
                at_low += gaps[j] == low
                at_high += gaps[j] == high
            kept = 0
            for j in range(size):
                inside[kept] = gaps[j]
                kept += (gaps[j] > low) & (gaps[j] < high)
            for j in range(max(0, min(kept, between.size - found))):
                between[found + j] = inside[j]
            found += kept
    return below, at_low, found, at_high


_LANES = 8


@kernel
def laplace_forms(outcomes, weight, offset, decay, gain):
    """Return ``(n_replicates,)``: r'Kr for ``r_i = offset[i] + weight[i] * outcome[i]``, rows sorted by score.

    ``decay[i] (n_samples,)`` is the kernel between rows i - 1 and i, ``gain[i]`` is ``1 - decay[i] ** 2``; ``decay[0]``
    is 0. Replicates are taken eight at a time, because each step waits for the one before.
    """
    n_replicates, n_samples = outcomes.shape
    forms = np.empty(n_replicates)
    tail = np.empty(_LANES)
    total = np.empty(_LANES)
    drawn = np.empty(_LANES)
    for first in range(0, n_replicates, _LANES):
        tail[:] = 0.0
        total[:] = 0.0
        carried = 0.0
        for i in range(n_samples - 1, -1, -1):
            for lane in range(_LANES):
                drawn[lane] = outcomes[min(first + lane, n_replicates - 1), i]
            for lane in range(_LANES):
                tail[lane] = carried * tail[lane] + (offset[i] + weight[i] * drawn[lane])
                total[lane] += gain[i] * (tail[lane] * tail[lane])
            carried = decay[i]
        for lane in range(min(_LANES, n_replicates - first)):
            forms[first + lane] = total[lane]
    return forms


@kernel
def list_changes(outcomes, base, first, size, n_outcomes):
    """Return the unit vectors of each replicate in rows ``first`` to ``first + size``, sorted by class.

    Those of class c in replicate r are ``place[start[r, c] : start[r, c + 1]]``: the row's number within the tile,
    plus ``size`` if the sign is negative.
    """
    n_replicates = outcomes.shape[0]
    start = np.zeros((n_replicates, n_outcomes + 1), np.int64)
    for r in range(n_replicates):
        for i in range(first, first + size):
            y = np.int64(outcomes[r, i])
            if y != base[i]:
                start[r, y] += 1
                if base[i] >= 0:
                    start[r, base[i]] += 1
    total = 0
    for r in range(n_replicates):
        for c in range(n_outcomes + 1):
            count = start[r, c]
            start[r, c] = total
            total += count
    place = np.empty(total, np.uint16)
    free = start.copy()
    for r in range(n_replicates):
        for i in range(first, first + size):
            y = np.int64(outcomes[r, i])
            if y != base[i]:
                place[free[r, y]] = i - first
                free[r, y] += 1
                if base[i] >= 0:
                    place[free[r, base[i]]] = i - first + size
                    free[r, base[i]] += 1
    return start, place


@njit(inline="always")
def _gather(values, place, start, stop):
    """Return the sum of ``values[place[start:stop]]``; four accumulators hide the latency of addition."""
    s0 = s1 = s2 = s3 = 0.0
    quads = start + (stop - start) // 4 * 4
    for b in range(start, quads, 4):
        u = uint64(b)
        s0 += values[place[u]]
        s1 += values[place[u + uint64(1)]]
        s2 += values[place[u + uint64(2)]]
        s3 += values[place[u + uint64(3)]]
    for b in range(quads, stop):
        s0 += values[place[uint64(b)]]
    return (s0 + s1) + (s2 + s3)


@kernel
def add_changes(similar, rows, outcomes, base, start, place, factor, out):
    """Add ``factor * sum k s.s'`` to ``out (n_replicates,)``, over unit vectors s of ``rows`` and s' of a tile.

    ``similar (n_rows, size)`` holds the kernel between the rows and the tile that `list_changes` described.
    """
    size = similar.shape[1]
    signed = np.empty(2 * size)
    for a in range(rows.size):
        i = rows[a]
        for j in range(size):
            signed[j] = similar[a, j]
            signed[size + j] = -similar[a, j]
        common = base[i]
        for r in range(out.size):
            y = np.int64(outcomes[r, i])
            if y != common:
                total = _gather(signed, place, start[r, y], start[r, y + 1])
                if common >= 0:
                    total -= _gather(signed, place, start[r, common], start[r, common + 1])
                out[r] += factor * total
