"""Data sets of two equally likely normal classes and a logistic prediction, one random number for each observation."""

import math

import numpy as np
from numba import njit, uint64

from caltest._compiled._jit import inner, kernel

_TILE = 1024  # observations whose features stay in the first-level cache
_GOLDEN = uint64(0x9E3779B97F4A7C15)
_END = 3.6541528853610088  # of the lowest layer of 256 of equal area under the normal density
_UNIT = 2.0**-53
_LAST = 708.0  # beyond it the exponential is no normal number, and counts as 0
# exp(r) for |r| <= log(2) / 2 is a polynomial of degree 13, log(2) a number of few digits and what remains.
_LOG2_HIGH = 6.93147180369123816490e-01
_LOG2_LOW = 1.90821492927058770002e-10
_PER_LOG2 = 1.44269504088896338700
_ROUND = 6755399441055744.0  # 1.5 * 2**52: what is added to it is rounded to a whole number


@njit(inline="always")
def _mix(x):
    x = (x ^ (x >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> uint64(27))) * uint64(0x94D049BB133111EB)
    return x ^ (x >> uint64(31))


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
