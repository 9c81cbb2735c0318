"""Normal numbers: shocks that labels share within windows of time, and features of two classes.

Each replicate of shocks has 32 streams of xoshiro256++ (Blackman & Vigna 2021) side by side, so that their update is
one vector operation, seeded by its seed and its number alone. Everything else is a loop over the observations of one
replicate in the order of time, and sums of products of residuals that are close in time are those of whole numbers: no
order of adding them changes one.
"""

import math

import numpy as np
from numba import float32, int32, int64, njit, uint32, uint64

from caltest._compiled._jit import inner, kernel

_LANES = 32
_NUMBERS = 256  # normal numbers that are made at a time
_TILE = 1024  # observations whose residuals or features stay in the first-level cache
_GOLDEN = uint64(0x9E3779B97F4A7C15)
FIRST = 126 << 7
"""Exponent and seven more bits of the single-precision number 1/2, the smallest one that is looked up."""
N_PLACES = 33 << 7
"""Number of places in a table of normal quantiles: 128 for each of 33 powers of 2."""
LARGEST, LARGEST_SUM = 2.0**30, 2.0**60
"""Residuals are whole numbers of a unit; no one is larger, and no sum of their products, which is a 64-bit integer."""
_FIRST = uint64(FIRST)


@njit(inline="always")
def _mix(x):
    x = (x ^ (x >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> uint64(27))) * uint64(0x94D049BB133111EB)
    return x ^ (x >> uint64(31))


@inner
def _seed(seed, replicate, state):
    # Fills the state, and returns 32 more random bits.
    key = _mix(_mix(uint64(seed) + _GOLDEN) + uint64(replicate) * uint64(0xD1342543DE82EF95))
    for j in range(4 * _LANES):
        state[j] = _mix(key + uint64(j) * _GOLDEN)
    return _mix(key + uint64(4 * _LANES) * _GOLDEN) >> uint64(32)


@inner
def _fill_normals(state, quantile, slope, half, tail, bits, normal, signed):
    # Of a random word each half makes a normal number: 31 bits are the probability of the tail, the other one is the
    # sign. Exponent and upper bits of that probability are the place in the table, which is finer in the tail.
    for row in range(0, _NUMBERS, 2 * _LANES):
        for lane in range(_LANES):
            a = state[lane]
            b = state[_LANES + lane]
            c = state[2 * _LANES + lane]
            d = state[3 * _LANES + lane]
            s = a + d
            word = ((s << uint64(23)) | (s >> uint64(41))) + a
            half[row + lane] = uint32(word)
            half[row + _LANES + lane] = uint32(word >> uint64(32))
            t = b << uint64(17)
            c ^= a
            d ^= b
            b ^= c
            a ^= d
            c ^= t
            d = (d << uint64(45)) | (d >> uint64(19))
            state[lane] = a
            state[_LANES + lane] = b
            state[2 * _LANES + lane] = c
            state[3 * _LANES + lane] = d
    for i in range(_NUMBERS):
        tail[i] = float32(int32(half[i] & uint32(0x7FFFFFFF))) + float32(0.5)
    for i in range(_NUMBERS):
        place = uint64(uint32(bits[i]) >> uint32(16)) - _FIRST
        normal[i] = quantile[place] + float32(int32(bits[i] & int32(0xFFFF))) * slope[place]
    for i in range(_NUMBERS):
        signed[i] ^= half[i] & uint32(0x80000000)


def room_for_numbers():
    """Return arrays of normal numbers with their bits; to look at these otherwise takes seconds to compile."""
    tail, normal = np.empty((2, _NUMBERS), np.float32)
    return tail, tail.view(np.int32), normal, normal.view(np.uint32)


@kernel
def draw_labels_in_time(
    bound, name, window, place, lead, correlation, group, n_groups, alike, quantile, slope, seed, first, numbers, out
):
    """Fill ``out (n_replicates, n_samples)`` with labels that share a shock within windows of ``lead`` steps of time.

    The windows of each replicate follow each other from a random step on. The label of observation i is the sum of the
    first ``name[:c + 1]``, where c is the number of ``bound (n_bounds, n_samples)`` that do not exceed
    ``sqrt(correlation) * shock + sum_l sqrt(alike[l]) * shock_g[l] + sqrt(1 - correlation - sum(alike)) * noise_i``,
    with a shock of each of the groups ``g (n_levels, n_samples)`` of the observation, of ``n_groups`` in all.
    ``window (n_samples,)`` and ``place (n_samples,)`` are the step of time of an observation divided by the lead and
    what is left of it. ``quantile`` and ``slope`` tabulate the normal quantile function, as `_fill_normals` looks it
    up. The normal numbers of a replicate are the shocks of groups, those of windows, and the noise; ``numbers`` are the
    work arrays of `room_for_numbers`.
    """
    n_replicates, n_samples = out.shape
    n_samples, n_windows = uint64(n_samples), uint64(window.max() + 2)
    n_shocks = uint64(n_groups) + n_windows
    shared = float32(math.sqrt(correlation))
    of_group = np.sqrt(alike).astype(np.float32)
    apart = float32(math.sqrt(max(1 - correlation - alike.sum(), 0.0)))
    state = np.empty(4 * _LANES, np.uint64)
    half = np.empty(_NUMBERS, np.uint32)
    tail, bits, normal, signed = numbers
    shock = np.empty(n_shocks, np.float32)
    here = np.empty(n_samples, np.float32)
    latent = np.empty(_NUMBERS, np.float32)
    label = np.empty(_NUMBERS, np.int32)
    none, one = int32(0), int32(1)
    end = uint64(_NUMBERS)
    for r in range(n_replicates):
        begin = int32((_seed(seed, first + r, state) * uint64(lead)) >> uint64(32))
        used = end
        done = uint64(0)
        while done < n_shocks:
            if used == end:
                _fill_normals(state, quantile, slope, half, tail, bits, normal, signed)
                used = uint64(0)
            n = min(end - used, n_shocks - done)
            for j in range(n):
                shock[done + j] = normal[used + j]
            done += n
            used += n
        for w in range(uint64(n_groups), n_shocks):
            shock[w] *= shared
        for i in range(n_samples):
            later = one if place[i] > begin else none
            here[i] = shock[uint64(n_groups) + uint64(window[i] + later)]
        for level in range(group.shape[0]):
            root, own = of_group[level], group[level]
            for i in range(n_samples):
                here[i] += root * shock[uint64(own[i])]
        row = out[r]
        done = uint64(0)
        while done < n_samples:
            if used == end:
                _fill_normals(state, quantile, slope, half, tail, bits, normal, signed)
                used = uint64(0)
            n = min(end - used, n_samples - done)
            for j in range(n):
                latent[j] = here[done + j] + apart * normal[used + j]
            for j in range(n):
                label[j] = name[0]
            # Each bound that is reached adds what the next class has more than the last one.
            for c in range(bound.shape[0]):
                limit, more = bound[c], name[c + 1]
                for j in range(n):
                    label[j] += more if latent[j] >= limit[done + j] else none
            for j in range(n):
                row[done + j] = label[j]
            done += n
            used += n


@kernel
def products_in_time(labels, order, start, back, residual, near, variance, constant, products):
    """Fill ``products (n_replicates, 2)`` with the sum of products of residuals close in time, and of their squares.

    A shift in proportion to the variances is removed from the residuals before, and the sums are added over several
    kinds of residuals. ``residual (n_kinds, n_outcomes, n_samples)`` is that of each label in whole numbers of a unit,
    ``variance (n_kinds, n_samples)`` the weighted variance in whole numbers of another one, ``near (n_kinds,
    n_samples)`` the sum of those close in time, all in the order of time; ``order`` is where these observations stand
    in ``labels``. ``start (n_times + 1,)`` is the first observation of each time, and ``back (n_times,)`` the first one
    that is close to it. ``constant (n_kinds, 4)`` has the unit of the residuals, one over the sum of the variances, or
    0 if labels are certain, the sum of variance times near, and that of the squares of the variances.
    """
    n_replicates = labels.shape[0]
    n_samples = uint64(labels.shape[1])
    several = residual.shape[1] > 2
    # From some time on each is one observation, and the first one that is close to it as many before it.
    lag, irregular = back.size - 1 - back[-1], back.size
    while irregular > lag and start[irregular] == irregular and back[irregular - 1] + lag + 1 == irregular:
        irregular -= 1
    label = np.empty(n_samples, np.int32)
    part = np.empty(_TILE, np.int32)
    total = np.empty(n_samples + uint64(1), np.int64)
    total[0] = 0
    for r in range(n_replicates):
        row = labels[r]
        for i in range(n_samples):
            label[i] = row[uint64(order[i])]
        products[r, 0] = products[r, 1] = 0.0
        for k in range(residual.shape[0]):
            each, zero, one, own, close = residual[k], residual[k, 0], residual[k, 1], variance[k], near[k]
            all_, squares, mixed, moved = int64(0), int64(0), int64(0), int64(0)
            for tile in range(uint64(0), n_samples, uint64(_TILE)):
                n = min(uint64(_TILE), n_samples - tile)
                if several:
                    for j in range(n):
                        part[j] = each[uint64(label[tile + j]), tile + j]
                else:
                    for j in range(n):
                        no, yes = zero[tile + j], one[tile + j]  # both are read: the loop is one vector operation
                        part[j] = yes if label[tile + j] else no
                for j in range(n):
                    e = int64(part[j])
                    squares += e * e
                    mixed += e * int64(own[tile + j])
                    moved += e * int64(close[tile + j])
                for j in range(n):
                    all_ += int64(part[j])
                    total[tile + j + uint64(1)] = all_
            pairs, now = int64(0), int64(0)
            for t in range(uint64(irregular)):
                later = total[uint64(start[t + uint64(1)])]
                pairs += (later - now) * (later + now - 2 * total[uint64(back[t])])
                now = later
            for t in range(uint64(irregular), uint64(back.size)):
                now, later = total[t], total[t + uint64(1)]
                pairs += (later - now) * (later + now - 2 * total[t - uint64(lag)])
            unit, inverse, all_near, all_squares = constant[k]
            shift = all_ * inverse
            products[r, 0] += (pairs - 2 * shift * moved + shift * shift * all_near) * unit * unit
            products[r, 1] += (squares - 2 * shift * mixed + shift * shift * all_squares) * unit * unit


_END = 3.6541528853610088  # of the lowest layer of 256 of equal area under the normal density
_UNIT = 2.0**-53
_LAST = 708.0  # beyond it the exponential is no normal number, and counts as 0
# exp(r) for |r| <= log(2) / 2 is a polynomial of degree 13, log(2) a number of few digits and what remains.
_LOG2_HIGH = 6.93147180369123816490e-01
_LOG2_LOW = 1.90821492927058770002e-10
_PER_LOG2 = 1.44269504088896338700
_ROUND = 6755399441055744.0  # 1.5 * 2**52: what is added to it is rounded to a whole number


@inner
def _outside(word, widths, heights):
    # A standard normal number of a word that fell outside the rectangles: other words are made out of this one.
    state = word
    while True:
        layer = word & uint64(255)
        x = (word >> uint64(12)) * widths[layer] * 2.0**-52
        sign = -1.0 if word & uint64(512) else 1.0
        if x < widths[layer + uint64(1)]:
            return sign * x
        state += _GOLDEN
        uniform = ((_mix(state) >> uint64(11)) + 0.5) * _UNIT
        if layer == 0:
            while True:
                state += _GOLDEN
                other = ((_mix(state) >> uint64(11)) + 0.5) * _UNIT
                beyond = -np.log(uniform) / _END
                if -2.0 * np.log(other) > beyond * beyond:
                    return sign * (_END + beyond)
                state += _GOLDEN
                uniform = ((_mix(state) >> uint64(11)) + 0.5) * _UNIT
        low = heights[layer]
        if low + uniform * (heights[layer + uint64(1)] - low) < np.exp(-0.5 * x * x):
            return sign * x
        state += _GOLDEN
        word = _mix(state)


@kernel
def gaussian_events(words, intercept, slope, widths, heights, feature, outcome, prob):
    """Fill ``feature``, ``outcome`` and ``prob (..., 2)`` of ``words``, all ``(n_replicates, n_samples)``.

    Outcomes 0 and 1 are equally likely, the feature x is normal around -1 and 1, and the probability of outcome 0 is
    ``1 / (1 + exp(-(intercept + slope * x)))``. Of a random word 8 bits choose a layer under the normal density, whose
    ``widths (257,)`` and ``heights (257,)`` are passed, one is the outcome, one the sign, and 52 the place in the layer
    (Marsaglia & Tsang 2000, with separate bits for each).
    """
    n_replicates, n_samples = outcome.shape
    logit = np.empty(_TILE)
    power = np.empty(_TILE, np.int64)
    scale = power.view(np.float64)
    small = np.empty(_TILE)
    for r in range(n_replicates):
        for start in range(0, n_samples, _TILE):
            size = min(_TILE, n_samples - start)
            word = words[r, start : start + size]
            seen = feature[r, start : start + size]
            happened = outcome[r, start : start + size]
            for i in range(size):
                w = word[i]
                layer = w & uint64(255)
                x = (w >> uint64(12)) * (widths[layer] * 2.0**-52)
                x = x if (w & uint64(512)) == uint64(0) else -x
                if abs(x) >= widths[layer + uint64(1)]:
                    x = _outside(w, widths, heights)
                y = np.int64((w >> uint64(8)) & uint64(1))
                happened[i] = y
                seen[i] = x + (2.0 * y - 1.0)
                logit[i] = intercept + slope * seen[i]
            for i in range(size):
                t = -min(abs(logit[i]), _LAST)
                k = (t * _PER_LOG2 + _ROUND) - _ROUND
                r_ = (t - k * _LOG2_HIGH) - k * _LOG2_LOW
                e = 1.0 / 6227020800.0
                e = e * r_ + 1.0 / 479001600.0
                e = e * r_ + 1.0 / 39916800.0
                e = e * r_ + 1.0 / 3628800.0
                e = e * r_ + 1.0 / 362880.0
                e = e * r_ + 1.0 / 40320.0
                e = e * r_ + 1.0 / 5040.0
                e = e * r_ + 1.0 / 720.0
                e = e * r_ + 1.0 / 120.0
                e = e * r_ + 1.0 / 24.0
                e = e * r_ + 1.0 / 6.0
                e = e * r_ + 0.5
                small[i] = 1.0 + (r_ + e * (r_ * r_))
                power[i] = (np.int64(k) + 1023) << 52
            found = prob[r, start : start + size]
            for i in range(size):
                rare = small[i] * scale[i] if abs(logit[i]) <= _LAST else 0.0
                likely = 1.0 / (1.0 + rare)
                rare *= likely
                first = logit[i] >= 0.0
                found[i, 0] = likely if first else rare
                found[i, 1] = rare if first else likely


def layers():
    """Return widths and heights ``(257,)`` of the 256 layers of equal area under exp(-x**2 / 2)."""
    area = _END * math.exp(-(_END**2) / 2) + math.sqrt(math.pi / 2) * math.erfc(_END / math.sqrt(2))
    widths = np.zeros(257)
    widths[:2] = area * math.exp(_END**2 / 2), _END
    for i in range(1, 255):
        widths[i + 1] = np.sqrt(-2 * np.log(area / widths[i] + np.exp(-(widths[i] ** 2) / 2)))
    heights = np.exp(-np.square(widths) / 2)
    return widths, heights
