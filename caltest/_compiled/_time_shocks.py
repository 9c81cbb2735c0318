"""Labels that share normal shocks within windows of time, and products of residuals that are close in time.

Thirty-two replicates stand side by side, so that every loop over them is one vector operation. Each has a stream of
xoshiro256++ (Blackman & Vigna 2021), seeded by its seed and its number alone.
"""

import math

import numpy as np
from numba import float32, int32, njit, uint32, uint64

from caltest._compiled._jit import inner, kernel

LANES = 32
_ROWS = 64  # of normal numbers that are made at a time
_TILE = 64  # observations whose labels are turned together
_GOLDEN = uint64(0x9E3779B97F4A7C15)
FIRST = 126 << 7
"""Exponent and seven more bits of the single-precision number 1/2, the smallest one that is looked up."""
N_PLACES = 33 << 7
"""Number of places in a table of normal quantiles: 128 for each of 33 powers of 2."""
CERTAIN = 1e-12
"""With a smaller average variance labels are certain, and no shift is removed."""
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


@inner
def _add_products(label, start, lead, residual, near, variance, work, last, found):
    # Adds to both rows of `found` the sum of products of residuals that are close in time, and of squares, of labels
    # that stand side by side. The window holds the sums of the last lead - 1 steps, which `last` keeps one by one.
    here, window, pairs, total, moved, squares, mixed = work[0], work[1], work[2], work[3], work[4], work[5], work[6]
    work[:] = 0.0
    last[:] = 0.0
    all_variance, all_near, all_squares = 0.0, 0.0, 0.0
    for t in range(start.size - 1):
        here[:] = 0.0
        for i in range(start[t], start[t + 1]):
            v, a = variance[i], near[i]
            all_variance += v
            all_near += v * a
            all_squares += v * v
            own = label[i]
            if residual.shape[1] == 2:
                zero = residual[i, 0]
                step = residual[i, 1] - zero
                for lane in range(LANES):
                    e = zero + step * own[lane]
                    here[lane] += e
                    total[lane] += e
                    moved[lane] += e * a
                    mixed[lane] += e * v
                    squares[lane] += e * e
            else:
                for lane in range(LANES):
                    e = residual[i, own[lane]]
                    here[lane] += e
                    total[lane] += e
                    moved[lane] += e * a
                    mixed[lane] += e * v
                    squares[lane] += e * e
        place = t % lead
        for lane in range(LANES):
            rest = window[lane] - last[place, lane]
            pairs[lane] += here[lane] * (here[lane] + 2 * rest)
            window[lane] = rest + here[lane]
            last[place, lane] = here[lane]
    for lane in range(LANES):
        shift = total[lane] / all_variance if all_variance > CERTAIN * variance.size else 0.0
        found[0, lane] += pairs[lane] - 2 * shift * moved[lane] + shift * shift * all_near
        found[1, lane] += squares[lane] - 2 * shift * mixed[lane] + shift * shift * all_squares


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
    residual,
    near,
    variance,
    seed,
    first,
    out,
    products,
):
    """Fill ``out (n_replicates, n_samples)`` with labels that share a shock within windows of ``lead`` steps of time.

    The windows of each replicate follow each other from a random step on. The label of observation i is ``name[c]``,
    where c is the number of ``bound (n_samples, n_bounds)`` that do not exceed
    ``sqrt(correlation) * shock + sqrt(alike) * shock_g + sqrt(1 - correlation - alike) * noise_i``, with a shock of the
    ``group (n_samples,)`` of the observation if ``n_groups`` is not 0.
    Observations are in the order of time, ``start (n_steps + 1,)`` is the first one of each step, and
    ``order (n_samples,)`` where they stand in ``out``. ``quantile`` and ``slope`` tabulate the normal quantile
    function, as `_fill_normals` looks it up. ``products (n_replicates, 2)`` become those of `products_in_time`, of
    residuals of the numbers c.
    """
    n_replicates, n_samples = out.shape
    n_bounds = bound.shape[1]
    shared = float32(math.sqrt(correlation))
    of_group = float32(math.sqrt(alike))
    apart = float32(math.sqrt(max(1 - correlation - alike, 0.0)))
    shock = np.empty((n_groups, LANES), np.float32)
    state = np.empty((4, LANES), np.uint64)
    half = np.empty((_ROWS, LANES), np.uint32)
    tail = np.empty((_ROWS, LANES), np.float32)
    normal = np.empty((_ROWS, LANES), np.float32)
    begin = np.empty(LANES, np.int64)
    common = np.empty(LANES, np.float32)
    coming = np.empty(LANES, np.float32)
    latent = np.empty(LANES, np.float32)
    label = np.empty((n_samples, LANES), out.dtype)
    work = np.empty((7, LANES))
    last = np.empty((lead, LANES))
    found = np.empty((2, LANES))
    for begun in range(0, n_replicates, LANES):
        n_lanes = min(LANES, n_replicates - begun)
        _seed(seed, first + begun, state)
        for g in range(n_groups):
            if g % _ROWS == 0:
                _fill_normals(state, quantile, slope, half, tail, normal)
            for lane in range(LANES):
                shock[g, lane] = of_group * normal[g % _ROWS, lane]
        _fill_normals(state, quantile, slope, half, tail, normal)
        for lane in range(LANES):
            begin[lane] = (uint64(half[0, lane]) * uint64(lead)) >> uint64(32)
            common[lane] = shared * normal[1, lane]
        used = 2
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
                own = label[i]
                lowest = bound[i, 0]
                for lane in range(LANES):
                    latent[lane] = common[lane] + apart * normal[used, lane]
                if n_groups:
                    for lane in range(LANES):
                        latent[lane] += shock[group[i], lane]
                for lane in range(LANES):
                    own[lane] = latent[lane] >= lowest
                for c in range(1, n_bounds):
                    for lane in range(LANES):
                        own[lane] += latent[lane] >= bound[i, c]
                used += 1
        for tile in range(0, n_samples, _TILE):
            for lane in range(n_lanes):
                for i in range(tile, min(tile + _TILE, n_samples)):
                    out[begun + lane, order[i]] = name[label[i, lane]]
        found[:] = 0.0
        for k in range(residual.shape[0]):
            _add_products(label, start, lead, residual[k], near[k], variance[k], work, last, found)
        for lane in range(n_lanes):
            products[begun + lane, 0] = found[0, lane]
            products[begun + lane, 1] = found[1, lane]


@kernel
def products_in_time(labels, order, start, lead, residual, near, variance, products):
    """Fill ``products (n_replicates, 2)`` with the sum of products of residuals close in time, and of their squares.

    A shift in proportion to the variances is removed from the residuals before, and the sums are added over several
    kinds of residuals. ``residual (n_kinds, n_samples, n_outcomes)`` is that of each label,
    ``variance (n_kinds, n_samples)`` the weighted variance, ``near (n_kinds, n_samples)`` the sum of those less than
    ``lead`` steps away, all in the order of time; ``order`` is where these observations stand in ``labels``.
    """
    n_replicates, n_samples = labels.shape
    label = np.zeros((n_samples, LANES), labels.dtype)
    work = np.empty((7, LANES))
    last = np.empty((lead, LANES))
    found = np.empty((2, LANES))
    for group in range(0, n_replicates, LANES):
        n_lanes = min(LANES, n_replicates - group)
        for begun in range(0, n_samples, _TILE):
            for lane in range(n_lanes):
                for i in range(begun, min(begun + _TILE, n_samples)):
                    label[i, lane] = labels[group + lane, order[i]]
        found[:] = 0.0
        for k in range(residual.shape[0]):
            _add_products(label, start, lead, residual[k], near[k], variance[k], work, last, found)
        for lane in range(n_lanes):
            products[group + lane, 0] = found[0, lane]
            products[group + lane, 1] = found[1, lane]
