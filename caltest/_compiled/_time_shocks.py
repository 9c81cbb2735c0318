"""Labels that share normal shocks within windows of time, and products of residuals that are close in time.

Thirty-two replicates stand side by side, so that every loop over them is one vector operation. Each has a stream of
xoshiro256++ (Blackman & Vigna 2021), seeded by its seed and its number alone. Work arrays are flat and few: the parts
of one array cannot overlap, which the compiler must know of arrays that a vector operation reads and writes.
"""

import math

import numpy as np
from numba import float32, int32, njit, uint32, uint64

from caltest._compiled._jit import inner, kernel

LANES = 32
_ROWS = 64  # of normal numbers that are made at a time
_WORDS = LANES // 8  # of the labels that stand side by side, of one byte each
_TILE = 64  # observations whose labels are turned together
_KEPT = 16  # terms of single precision that are added before they go to sums of double precision
_GOLDEN = uint64(0x9E3779B97F4A7C15)
FIRST = 126 << 7
"""Exponent and seven more bits of the single-precision number 1/2, the smallest one that is looked up."""
N_PLACES = 33 << 7
"""Number of places in a table of normal quantiles: 128 for each of 33 powers of 2."""
LARGEST_SUM = 2.0**29
"""Residuals are whole numbers of a unit; with them the sum of two windows is a 32-bit integer."""
_FIRST = uint64(FIRST)
_BYTES, _PAIRS, _HALVES = uint64(0x00FF00FF00FF00FF), uint64(0x0000FFFF0000FFFF), uint64(0x00000000FFFFFFFF)
_NEVER = float32(math.inf)
_WINDOW, _HERE, _EACH = LANES, 2 * LANES, 3 * LANES  # parts of the whole numbers, after the residuals of a label
_TOTAL, _MOVED, _SQUARES, _MIXED, _ALL = (j * LANES for j in range(1, 6))  # parts of the sums, after the products


@njit(inline="always")
def _mix(x):
    x = (x ^ (x >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> uint64(27))) * uint64(0x94D049BB133111EB)
    return x ^ (x >> uint64(31))


@njit(inline="always")
def _seed(seed, first, state):
    for lane in range(LANES):
        key = _mix(_mix(uint64(seed) + _GOLDEN) + uint64(first + lane) * uint64(0xD1342543DE82EF95))
        for j in range(4):
            state[j * LANES + lane] = _mix(key + uint64(j) * _GOLDEN)


@inner
def _fill_normals(state, quantile, slope, half, tail, bits, normal, signed):
    # Of a random word each half makes a normal number: 31 bits are the probability of the tail, the other one is the
    # sign. Exponent and upper bits of that probability are the place in the table, which is finer in the tail.
    for row in range(0, _ROWS * LANES, 2 * LANES):
        for lane in range(LANES):
            a = state[lane]
            b = state[LANES + lane]
            c = state[2 * LANES + lane]
            d = state[3 * LANES + lane]
            s = a + d
            word = ((s << uint64(23)) | (s >> uint64(41))) + a
            half[row + lane] = uint32(word)
            half[row + LANES + lane] = uint32(word >> uint64(32))
            t = b << uint64(17)
            c ^= a
            d ^= b
            b ^= c
            a ^= d
            c ^= t
            d = (d << uint64(45)) | (d >> uint64(19))
            state[lane] = a
            state[LANES + lane] = b
            state[2 * LANES + lane] = c
            state[3 * LANES + lane] = d
    for i in range(_ROWS * LANES):
        tail[i] = float32(int32(half[i] & uint32(0x7FFFFFFF))) + float32(0.5)
    for i in range(_ROWS * LANES):
        place = uint64(uint32(bits[i]) >> uint32(16)) - _FIRST
        normal[i] = quantile[place] + float32(int32(bits[i] & int32(0xFFFF))) * slope[place]
    for i in range(_ROWS * LANES):
        signed[i] ^= half[i] & uint32(0x80000000)


def room_for_numbers():
    """Return arrays of normal numbers with their bits; to look at these otherwise takes seconds to compile."""
    tail, normal = np.empty((2, _ROWS * LANES), np.float32)
    return tail, tail.view(np.int32), normal, normal.view(np.uint32)


def room_for_labels(n_samples, dtype):
    """Return arrays of labels that stand side by side, with their words, and of a tile of them in both orders."""
    label, beside = np.zeros(n_samples * LANES, dtype), np.zeros((_TILE, _WORDS), np.uint64)
    turned = np.zeros((LANES, _TILE // 8), np.uint64)
    return label, label.view(np.uint64), beside, beside.reshape(-1), turned, turned.reshape(-1).view(dtype)


@inner
def _keep(some, sums):
    for j in range(_ALL):
        sums[j] += some[j]
        some[j] = 0


@inner
def _turn(source, target):
    # Turns a table of bytes, of which each row is some words. In squares of 8 bytes of 8 rows bytes of each two words
    # are exchanged, then pairs, then halves.
    word = np.empty(8, np.uint64)
    for row in range(source.shape[0] // 8):
        for column in range(source.shape[1]):
            for j in range(8):
                word[j] = source[8 * row + j, column]
            for j in (0, 2, 4, 6):
                moved = ((word[j] >> uint64(8)) ^ word[j + 1]) & _BYTES
                word[j] ^= moved << uint64(8)
                word[j + 1] ^= moved
            for j in (0, 1, 4, 5):
                moved = ((word[j] >> uint64(16)) ^ word[j + 2]) & _PAIRS
                word[j] ^= moved << uint64(16)
                word[j + 2] ^= moved
            for j in range(4):
                moved = ((word[j] >> uint64(32)) ^ word[j + 4]) & _HALVES
                word[j] ^= moved << uint64(32)
                word[j + 4] ^= moved
            for j in range(8):
                target[8 * column + j, row] = word[j]


@kernel
def draw_labels_in_time(
    bound,
    name,
    order,
    start,
    lead,
    correlation,
    group,
    n_groups,
    alike,
    quantile,
    slope,
    seed,
    first,
    numbers,
    copies,
    out,
):
    """Fill ``out (n_replicates, n_samples)`` with labels that share a shock within windows of ``lead`` steps of time.

    The windows of each replicate follow each other from a random step on. The label of observation i is the sum of the
    first ``name[:c + 1]``, where c is the number of ``bound (n_samples, n_bounds)`` that do not exceed
    ``sqrt(correlation) * shock + sum_l sqrt(alike[l]) * shock_g[l] + sqrt(1 - correlation - sum(alike)) * noise_i``,
    with a shock of each of the groups ``g (n_levels, n_samples)`` of the observation, of ``n_groups`` in all.
    Observations are in the order of time, ``start (n_steps + 1,)`` is the first one of each step, and
    ``order (n_samples,)`` where they stand in ``out``. ``quantile`` and ``slope`` tabulate the normal quantile
    function, as `_fill_normals` looks it up. The work arrays are those of `room_for_numbers` and `room_for_labels`.
    """
    n_replicates, n_samples = out.shape
    n_bounds = bound.shape[1]
    shared = float32(math.sqrt(correlation))
    of_group = np.sqrt(alike).astype(np.float32)
    apart = float32(math.sqrt(max(1 - correlation - alike.sum(), 0.0)))
    shock = np.empty((n_groups, LANES), np.float32)
    state = np.empty(4 * LANES, np.uint64)
    half = np.empty(_ROWS * LANES, np.uint32)
    tail, bits, normal, signed = numbers
    label, words, beside, flat_beside, turned, flat = copies
    begin = np.empty(LANES, np.int32)
    common = np.empty(2 * LANES, np.float32)
    here = np.empty(LANES, np.float32) if n_groups else common
    none = int32(0)
    n_words, narrow = uint64(_WORDS), out.itemsize == 1
    places = np.empty(n_samples, np.int64)
    for i in range(n_samples):
        places[order[i]] = i
    end = uint64(_ROWS * LANES)
    for begun in range(0, n_replicates, LANES):
        n_lanes = min(LANES, n_replicates - begun)
        _seed(seed, first + begun, state)
        for g in range(n_groups):
            if g % _ROWS == 0:
                _fill_normals(state, quantile, slope, half, tail, bits, normal, signed)
            for lane in range(LANES):
                shock[g, lane] = normal[g % _ROWS * LANES + lane]
        _fill_normals(state, quantile, slope, half, tail, bits, normal, signed)
        for lane in range(LANES):
            begin[lane] = int32((uint64(half[lane]) * uint64(lead)) >> uint64(32))
            common[lane] = shared * normal[LANES + lane]
        used = uint64(2 * LANES)
        place = int32(0)
        for t in range(start.size - 1):
            if used == end:
                _fill_normals(state, quantile, slope, half, tail, bits, normal, signed)
                used = uint64(0)
            if place == 0:
                for lane in range(uint64(LANES)):
                    common[uint64(LANES) + lane] = shared * normal[used + lane]
                used += uint64(LANES)
            for lane in range(LANES):
                common[lane] = common[LANES + lane] if begin[lane] == place else common[lane]
            for i in range(start[t], start[t + 1]):
                if used == end:
                    _fill_normals(state, quantile, slope, half, tail, bits, normal, signed)
                    used = uint64(0)
                if n_groups:
                    for lane in range(uint64(LANES)):
                        here[lane] = common[lane]
                    for level in range(group.shape[0]):
                        root, g = of_group[level], group[level, i]
                        for lane in range(uint64(LANES)):
                            here[lane] += root * shock[g, lane]
                own = uint64(i * LANES)
                for lane in range(uint64(LANES)):
                    label[own + lane] = name[0]
                # Each bound that is reached adds what the next class has more than the last one.
                for c in range(0, n_bounds, 4):
                    more = n_bounds - c
                    b0, n0 = bound[i, c], name[c + 1]
                    b1, n1 = (bound[i, c + 1], name[c + 2]) if more > 1 else (_NEVER, n0)
                    b2, n2 = (bound[i, c + 2], name[c + 3]) if more > 2 else (_NEVER, n0)
                    b3, n3 = (bound[i, c + 3], name[c + 4]) if more > 3 else (_NEVER, n0)
                    for lane in range(uint64(LANES)):
                        x = here[lane] + apart * normal[used + lane]
                        low = int32((n0 if x >= b0 else none) + (n1 if x >= b1 else none))
                        high = int32((n2 if x >= b2 else none) + (n3 if x >= b3 else none))
                        label[own + lane] += int32(low + high)
                used += uint64(LANES)
            place = int32(place + 1) if place + 1 < lead else int32(0)
        for tile in range(0, n_samples, _TILE):
            own, n = uint64(tile), uint64(min(_TILE, n_samples - tile))
            if narrow:
                for i in range(n):
                    for j in range(n_words):
                        flat_beside[i * n_words + j] = words[uint64(places[own + i]) * n_words + j]
                _turn(beside, turned)
            for lane in range(n_lanes):
                row, at = out[begun + lane], uint64(lane * _TILE)
                for i in range(n):
                    row[own + i] = flat[at + i] if narrow else label[places[own + i] * LANES + lane]


@kernel
def products_in_time(labels, order, start, lead, residual, near, variance, constant, copies, products):
    """Fill ``products (n_replicates, 2)`` with the sum of products of residuals close in time, and of their squares.

    A shift in proportion to the variances is removed from the residuals before, and the sums are added over several
    kinds of residuals. ``residual (n_kinds, n_samples, n_outcomes)`` is that of each label in whole numbers of a unit,
    ``variance (n_kinds, n_samples)`` the weighted variance in any unit, ``near (n_kinds, n_samples)`` the sum of those
    less than ``lead`` steps away, all in the order of time; ``order`` is where these observations stand in ``labels``.
    ``constant (n_kinds, 4)`` has the unit of the residuals, one over the sum of the variances, or 0 if labels are
    certain, the sum of variance times near, and that of the squares of the variances. ``copies`` are the work arrays of
    `room_for_labels`.
    """
    n_replicates, n_samples = labels.shape
    label, words, beside, flat_beside, turned, flat = copies
    n_words, narrow = uint64(_WORDS), labels.itemsize == 1
    places = np.empty(n_samples, np.int64)
    for i in range(n_samples):
        places[order[i]] = i
    found = np.empty((LANES, 2))
    n_labels = uint64(residual.shape[2])
    whole = np.empty(4 * LANES, np.int32)
    last = np.empty(lead * LANES, np.int32)
    some = np.empty(_ALL, np.float32)
    some[:] = 0
    sums = np.empty(_ALL)
    for begun in range(0, n_replicates, LANES):
        n_lanes = min(LANES, n_replicates - begun)
        for tile in range(0, n_samples, _TILE):
            own, n = uint64(tile), uint64(min(_TILE, n_samples - tile))
            for lane in range(n_lanes):
                row, at = labels[begun + lane], uint64(lane * _TILE)
                for i in range(n):
                    if narrow:
                        flat[at + i] = row[own + i]
                    else:
                        label[places[own + i] * LANES + lane] = row[own + i]
            if narrow:
                _turn(turned, beside)
                for i in range(n):
                    for j in range(n_words):
                        words[uint64(places[own + i]) * n_words + j] = flat_beside[i * n_words + j]
        found[:] = 0.0
        for k in range(residual.shape[0]):
            whole[:] = 0
            last[:] = 0
            sums[:] = 0.0
            each = residual[k].reshape(-1)
            place = uint64(0)
            kept = 0
            for t in range(start.size - 1):
                a = float32(0)
                for i in range(start[t], start[t + 1]):
                    v, a = variance[k, i], near[k, i]
                    own = uint64(i) * uint64(LANES)
                    first = uint64(i) * n_labels
                    if n_labels == 2:
                        zero, one = each[first], each[first + uint64(1)]
                        for lane in range(uint64(LANES)):
                            whole[lane] = one if label[own + lane] else zero
                    else:
                        for lane in range(uint64(LANES)):
                            whole[lane] = each[first + uint64(label[own + lane])]
                    for lane in range(LANES):
                        e = whole[lane]
                        whole[_HERE + lane] = int32(whole[_HERE + lane] + e)
                        f = float32(e)
                        some[_SQUARES + lane] += f * f
                        some[_MIXED + lane] += f * v
                    kept += 1
                    if kept == _KEPT:
                        _keep(some, sums)
                        kept = 0
                for lane in range(uint64(LANES)):
                    e = whole[_HERE + lane]
                    rest = int32(whole[_WINDOW + lane] - last[place + lane])
                    both = int32(rest + e)
                    whole[_WINDOW + lane] = both
                    whole[_HERE + lane] = int32(0)
                    last[place + lane] = e
                    f = float32(e)
                    some[lane] += f * float32(int32(rest + both))
                    some[_TOTAL + lane] += f
                    some[_MOVED + lane] += f * a
                kept += 1
                if kept >= _KEPT:
                    _keep(some, sums)
                    kept = 0
                place += uint64(LANES)
                if place == uint64(last.size):
                    place = uint64(0)
            _keep(some, sums)
            unit, inverse, all_near, all_squares = constant[k]
            for lane in range(LANES):
                shift = sums[_TOTAL + lane] * inverse
                moved = sums[lane] - 2 * shift * sums[_MOVED + lane] + shift * shift * all_near
                alone = sums[_SQUARES + lane] - 2 * shift * sums[_MIXED + lane] + shift * shift * all_squares
                found[lane, 0] += moved * unit * unit
                found[lane, 1] += alone * unit * unit
        for lane in range(n_lanes):
            products[begun + lane, 0] = found[lane, 0]
            products[begun + lane, 1] = found[lane, 1]
