"""Random outcomes and random rows, reproducible for any number of threads and any block size.

One generator serves the whole package: 32 interleaved xoshiro256++ streams (Blackman & Vigna 2021), so that the
update vectorises, seeded by splitmix64 from ``(seed, replicate)``. Replicate ``r`` therefore draws the same numbers
whichever block or thread it falls to, and row ``i`` always receives the ``i``-th 32-bit number of its replicate.
"""

import numpy as np
from numba import njit, uint8, uint32, uint64

from caltest._kernels._compile import kernel

_LANES = 32
_WORDS = 512  # 64-bit words a refill yields, 1,024 rows
_GOLDEN = uint64(0x9E3779B97F4A7C15)


@njit(inline="always")
def _mix(x):
    x = (x ^ (x >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> uint64(27))) * uint64(0x94D049BB133111EB)
    return x ^ (x >> uint64(31))


@kernel
def _seed(seed, replicate, state):
    key = _mix(_mix(uint64(seed) + _GOLDEN) + uint64(replicate) * uint64(0xD1342543DE82EF95))
    for j in range(state.size):
        state[j] = _mix(key + uint64(j) * _GOLDEN)


@kernel
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


@kernel
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
            threshold = thresholds[0, start : start + size]
            for i in range(size):
                u[i] = min(u[i], uint32(0xFFFFFFFE))
                outcome[i] = uint8(u[i] >= threshold[i])
            for c in range(1, n_thresholds):
                threshold = thresholds[c, start : start + size]
                for i in range(size):
                    outcome[i] += uint8(u[i] >= threshold[i])


@njit(inline="always")
def _below(word, n):
    """Return the upper half of the product of two 64-bit numbers: uniform on 0 .. n - 1, bias below n / 2**64."""
    return ((word >> uint64(32)) * n + (((word & uint64(0xFFFFFFFF)) * n) >> uint64(32))) >> uint64(32)


@kernel
def draw_rows(seed, replicate, out):
    """Fill ``out (n_samples,) int64`` with row numbers drawn uniformly with replacement (fewer than 2**32 rows)."""
    n = uint64(out.size)
    state = np.empty(4 * _LANES, np.uint64)
    _seed(seed, replicate, state)
    words = np.empty(_WORDS, np.uint64)
    for start in range(0, out.size, _WORDS):
        _refill(state, words)
        for i in range(min(_WORDS, out.size - start)):
            out[start + i] = _below(words[i], n)


@kernel
def draw_multiplicities(threshold, row_seed, outcome_seed, first, rows, events):
    """Resample rows of a two-outcome problem: how often each was drawn, and how often with the event.

    Fills ``rows`` and ``events (n_replicates, n_samples) uint16`` with what `draw_rows` and `draw_outcomes` draw, but
    copies nothing: sorted rows stay sorted, whatever is drawn.
    """
    n_replicates, n_samples = rows.shape
    n = uint64(n_samples)
    row_state = np.empty(4 * _LANES, np.uint64)
    outcome_state = np.empty(4 * _LANES, np.uint64)
    words = np.empty(_WORDS, np.uint64)
    outcome_words = np.empty(_WORDS, np.uint64)
    u = outcome_words.view(np.uint32)
    for r in range(n_replicates):
        _seed(row_seed, first + r, row_state)
        _seed(outcome_seed, first + r, outcome_state)
        row = rows[r]
        event = events[r]
        row[:] = 0
        event[:] = 0
        for start in range(0, n_samples, _WORDS):
            half = start // _WORDS % 2 * _WORDS
            if half == 0:
                _refill(outcome_state, outcome_words)
            _refill(row_state, words)
            for i in range(min(_WORDS, n_samples - start)):
                j = _below(words[i], n)
                row[j] += np.uint16(1)
                event[j] += np.uint16(min(u[half + i], uint32(0xFFFFFFFE)) >= threshold[j])
