"""Labels that share normal shocks within windows of time, and products of residuals that are close in time.

Thirty-two replicates stand side by side, so that every loop over them is one vector operation. Each has a stream of
xoshiro256++ (Blackman & Vigna 2021), seeded by its seed and its number alone.
"""

import math

import numpy as np
from numba import float32, int32, njit, uint32, uint64

from caltest._compiled._jit import kernel

LANES = 32
_ROWS = 64  # of normal numbers that are made at a time
_TILE = 64  # observations whose labels are turned together
_GOLDEN = uint64(0x9E3779B97F4A7C15)
FIRST = 126 << 7
"""Exponent and seven more bits of the single-precision number 1/2, the smallest one that is looked up."""
N_PLACES = 33 << 7
"""Number of places in a table of normal quantiles: 128 for each of 33 powers of 2."""
_FIRST = uint64(FIRST)


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
            state[j, lane] = _mix(key + uint64(j) * _GOLDEN)


@kernel
def _fill_normals(state, quantile, slope, half, tail, normal):
    # Of a random word each half makes a normal number: 31 bits are the probability of the tail, the other one is the
    # sign. Exponent and upper bits of that probability are the place in the table, which is finer in the tail.
    for step in range(_ROWS // 2):
        low, high = half[2 * step], half[2 * step + 1]
        for lane in range(LANES):
            a = state[0, lane]
            b = state[1, lane]
            c = state[2, lane]
            d = state[3, lane]
            s = a + d
            word = ((s << uint64(23)) | (s >> uint64(41))) + a
            low[lane] = uint32(word)
            high[lane] = uint32(word >> uint64(32))
            t = b << uint64(17)
            c ^= a
            d ^= b
            b ^= c
            a ^= d
            c ^= t
            d = (d << uint64(45)) | (d >> uint64(19))
            state[0, lane] = a
            state[1, lane] = b
            state[2, lane] = c
            state[3, lane] = d
    halves = half.reshape(-1)
    flat = tail.reshape(-1)
    bits = flat.view(np.int32)
    found = normal.reshape(-1)
    signed = found.view(np.uint32)
    for i in range(halves.size):
        flat[i] = float32(int32(halves[i] & uint32(0x7FFFFFFF))) + float32(0.5)
    for i in range(halves.size):
        place = uint64(uint32(bits[i]) >> uint32(16)) - _FIRST
        found[i] = quantile[place] + float32(int32(bits[i] & int32(0xFFFF))) * slope[place]
    for i in range(halves.size):
        signed[i] ^= halves[i] & uint32(0x80000000)


@kernel
def draw_labels_in_time(bound, order, start, lead, correlation, quantile, slope, seed, first, out):
    """Fill ``out (n_replicates, n_samples)`` with labels that share a shock within windows of ``lead`` steps of time.

    The windows of each replicate follow each other from a random step on. The label of observation i is the number of
    ``bound (n_samples, n_bounds)`` that do not exceed ``sqrt(correlation) * shock + sqrt(1 - correlation) * noise_i``.
    Observations are in the order of time, ``start (n_steps + 1,)`` is the first one of each step, and
    ``order (n_samples,)`` where they stand in ``out``. ``quantile`` and ``slope`` tabulate the normal quantile
    function, as `_fill_normals` looks it up.
    """
    n_replicates, n_samples = out.shape
    n_bounds = bound.shape[1]
    shared = float32(math.sqrt(correlation))
    apart = float32(math.sqrt(1 - correlation))
    state = np.empty((4, LANES), np.uint64)
    half = np.empty((_ROWS, LANES), np.uint32)
    tail = np.empty((_ROWS, LANES), np.float32)
    normal = np.empty((_ROWS, LANES), np.float32)
    begin = np.empty(LANES, np.int64)
    common = np.empty(LANES, np.float32)
    coming = np.empty(LANES, np.float32)
    latent = np.empty(LANES, np.float32)
    label = np.empty((_TILE, LANES), out.dtype)
    for group in range(0, n_replicates, LANES):
        _seed(seed, first + group, state)
        _fill_normals(state, quantile, slope, half, tail, normal)
        for lane in range(LANES):
            begin[lane] = (uint64(half[0, lane]) * uint64(lead)) >> uint64(32)
            common[lane] = shared * normal[1, lane]
        used = 2
        row, done = 0, 0
        for t in range(start.size - 1):
            if used == _ROWS:
                _fill_normals(state, quantile, slope, half, tail, normal)
                used = 0
            place = t % lead
            if place == 0:
                for lane in range(LANES):
                    coming[lane] = shared * normal[used, lane]
                used += 1
            for lane in range(LANES):
                common[lane] = coming[lane] if begin[lane] == place else common[lane]
            for i in range(start[t], start[t + 1]):
                if used == _ROWS:
                    _fill_normals(state, quantile, slope, half, tail, normal)
                    used = 0
                for lane in range(LANES):
                    latent[lane] = common[lane] + apart * normal[used, lane]
                used += 1
                own = label[row]
                own[:] = 0
                for c in range(n_bounds):
                    for lane in range(LANES):
                        own[lane] += latent[lane] >= bound[i, c]
                row += 1
                if row == _TILE or i == n_samples - 1:
                    for lane in range(min(LANES, n_replicates - group)):
                        for j in range(row):
                            out[group + lane, order[done + j]] = label[j, lane]
                    done += row
                    row = 0


@kernel
def products_in_time(labels, order, start, lead, residual, near, variance, out):
    """Fill ``out (n_replicates, 2)`` with the sum of products of residuals that are close in time, and of squares.

    A shift in proportion to the variances is removed from the residuals before. ``residual (n_samples, n_outcomes)``
    is that of each label, ``variance (n_samples,)`` the weighted variance, ``near (n_samples,)`` the sum of those less
    than ``lead`` steps away, all in the order of time; ``order`` is where these observations stand in ``labels``.
    """
    n_replicates, n_samples = labels.shape
    sums = np.empty((lead, LANES))
    here = np.empty(LANES)
    window = np.empty(LANES)
    pairs = np.empty(LANES)
    total = np.empty(LANES)
    moved = np.empty(LANES)
    squares = np.empty(LANES)
    mixed = np.empty(LANES)
    tile = np.zeros((_TILE, LANES))
    all_variance, all_near, all_squares = 0.0, 0.0, 0.0
    for i in range(n_samples):
        all_variance += variance[i]
        all_near += variance[i] * near[i]
        all_squares += variance[i] * variance[i]
    for group in range(0, n_replicates, LANES):
        n_lanes = min(LANES, n_replicates - group)
        for values in (window, pairs, total, moved, squares, mixed):
            values[:] = 0.0
        sums[:] = 0.0
        row, filled = 0, 0
        for t in range(start.size - 1):
            here[:] = 0.0
            for i in range(start[t], start[t + 1]):
                if i == filled:
                    row, filled = i, min(i + _TILE, n_samples)
                    for lane in range(n_lanes):
                        own = labels[group + lane]
                        for j in range(row, filled):
                            tile[j - row, lane] = residual[j, own[order[j]]]
                one = tile[i - row]
                v, a = variance[i], near[i]
                for lane in range(LANES):
                    e = one[lane]
                    here[lane] += e
                    total[lane] += e
                    moved[lane] += e * a
                    mixed[lane] += e * v
                    squares[lane] += e * e
            place = t % lead
            for lane in range(LANES):
                window[lane] -= sums[place, lane]
                pairs[lane] += here[lane] * (here[lane] + 2 * window[lane])
                window[lane] += here[lane]
                sums[place, lane] = here[lane]
        for lane in range(n_lanes):
            shift = total[lane] / all_variance if all_variance > 0 else 0.0
            out[group + lane, 0] = pairs[lane] - 2 * shift * moved[lane] + shift * shift * all_near
            out[group + lane, 1] = squares[lane] - 2 * shift * mixed[lane] + shift * shift * all_squares
