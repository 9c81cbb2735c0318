"""Random outcomes and random rows, reproducible for any number of threads and any block size.

One generator serves the whole package: 32 interleaved xoshiro256++ streams (Blackman & Vigna 2021), so that the
update vectorises, seeded by splitmix64 from ``(seed, replicate)``. Replicate ``r`` therefore draws the same numbers
whichever block or thread it falls to, and row ``i`` always receives the ``i``-th 32-bit number of its replicate.
"""

import numpy as np
from numba import njit, uint8, uint32, uint64

_LANES = 32
_WORDS = 512  # 64-bit words a refill yields, 1,024 rows
_GOLDEN = uint64(0x9E3779B97F4A7C15)


@njit(inline="always")
def _mix(x):
    x = (x ^ (x >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> uint64(27))) * uint64(0x94D049BB133111EB)
    return x ^ (x >> uint64(31))


@njit(nogil=True, cache=True)
def _seed(seed, replicate, state):
    key = _mix(_mix(uint64(seed) + _GOLDEN) + uint64(replicate) * uint64(0xD1342543DE82EF95))
    for j in range(state.size):
        state[j] = _mix(key + uint64(j) * _GOLDEN)


@njit(nogil=True, cache=True)
def _refill(state, words):
    # The four state words of a lane stand _LANES apart, so that the loop over lanes is one vector operation.
    for step in range(_WORDS // _LANES):
        offset = uint64(step * _LANES)
        for lane in range(_LANES):
            i = uint64(lane)
            a = state[i]
            b = state[uint64(_LANES) + i]
            c = state[uint64(2 * _LANES) + i]
            d = state[uint64(3 * _LANES) + i]
            s = a + d
            words[offset + i] = ((s << uint64(23)) | (s >> uint64(41))) + a
            t = b << uint64(17)
            c ^= a
            d ^= b
            b ^= c
            a ^= d
            c ^= t
            d = (d << uint64(45)) | (d >> uint64(19))
            state[i] = a
            state[uint64(_LANES) + i] = b
            state[uint64(2 * _LANES) + i] = c
            state[uint64(3 * _LANES) + i] = d


@njit(nogil=True, cache=True)
def draw_outcomes(thresholds, seed, first, out):
    """Fill ``out (n_replicates, n_samples)``: row i of a replicate falls to outcome #{c : u_i >= thresholds[c, i]}.

    ``thresholds (n_outcomes - 1, n_samples) uint32`` are cumulative probabilities times 2**32; the value 2**32 - 1
    stands for certainty, hence u is capped just below it. Rows are the outer loop, so that a tile of thresholds
    stays in the first-level cache while every replicate of the block passes over it.
    """
    n_replicates, n_samples = out.shape
    n_thresholds = thresholds.shape[0]
    states = np.empty((n_replicates, 4 * _LANES), np.uint64)
    for r in range(n_replicates):
        _seed(seed, first + r, states[r])
    words = np.empty(_WORDS, np.uint64)
    u = words.view(np.uint32)
    for start in range(0, n_samples, 2 * _WORDS):
        size = min(2 * _WORDS, n_samples - start)
        for r in range(n_replicates):
            _refill(states[r], words)
            outcome = out[r, start : start + size]
            for i in range(size):
                u[i] = min(u[i], uint32(0xFFFFFFFE))
                outcome[i] = 0
            for c in range(n_thresholds):
                threshold = thresholds[c, start : start + size]
                for i in range(size):
                    outcome[i] += uint8(u[i] >= threshold[i])


@njit(nogil=True, cache=True)
def draw_rows(seed, replicate, out):
    """Fill ``out (n_samples,) int64`` with row numbers drawn uniformly with replacement (bias below n / 2**53)."""
    n_samples = out.size
    state = np.empty(4 * _LANES, np.uint64)
    _seed(seed, replicate, state)
    words = np.empty(_WORDS, np.uint64)
    for start in range(0, n_samples, _WORDS):
        _refill(state, words)
        for i in range(min(_WORDS, n_samples - start)):
            out[start + i] = np.int64((words[i] >> uint64(11)) * (n_samples / 9007199254740992.0))
