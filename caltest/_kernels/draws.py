"""Random outcomes and random rows, reproducible for any number of threads and any block size.

One generator serves the whole package: 32 interleaved xoshiro256++ streams (Blackman & Vigna 2021), so that the
update vectorises, seeded by splitmix64 from ``(seed, replicate)``. Replicate ``r`` therefore draws the same numbers
whichever block or thread it falls to, and row ``i`` always receives the ``i``-th 32-bit number of its replicate.
"""

import numpy as np
from llvmlite import ir
from numba import njit, types, uint8, uint32, uint64
from numba.extending import intrinsic

from caltest._kernels._compile import kernel

_LANES = 32
_WORDS = 512  # 64-bit words a refill yields, 1,024 rows
_GOLDEN = uint64(0x9E3779B97F4A7C15)
_CERTAIN = uint32(0xFFFFFFFF)
_SHARP = 0.9  # from this share of usual outcomes on, looking for the others is faster than drawing every row


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
            for i in range(size):
                u[i] = min(u[i], uint32(0xFFFFFFFE))
                outcome[i] = 0
            for c in range(n_thresholds):
                threshold = thresholds[c, start : start + size]
                for i in range(size):
                    outcome[i] += uint8(u[i] >= threshold[i])


@intrinsic
def _trailing_zeros(typing_context, x):
    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


@kernel
def _find_usual(thresholds, start, low, width, usual, by_row):
    """Find the likeliest outcome of the rows from ``start`` on, and the interval ``low``, ``width`` that u must hit.

    Fills ``by_row (n_rows, stride)`` with the thresholds of a row side by side; returns the mean chance of a hit.
    """
    n_thresholds = thresholds.shape[0]
    size = min(low.size, thresholds.shape[1] - start)
    below = np.zeros(size, np.uint32)
    certain = np.full(size, _CERTAIN)
    low[:] = 0
    width[:] = 0
    usual[:] = 0
    for c in range(n_thresholds + 1):
        above = thresholds[c, start : start + size] if c < n_thresholds else certain
        for i in range(size):
            wider = uint32(above[i] - below[i])
            low[i] = below[i] if wider > width[i] else low[i]
            usual[i] = uint32(c) if wider > width[i] else usual[i]
            width[i] = max(wider, width[i])
            below[i] = above[i]
        if c < n_thresholds:
            for i in range(size):
                by_row[i, c] = above[i]
    covered = 0.0
    for i in range(size):
        covered += width[i]
    return covered / size / 2.0**32


@kernel
def _draw_all(u, thresholds, start, size, outcome):
    """Fill ``outcome`` with the outcomes of the rows ``start : start + size``; four thresholds at a time."""
    n_thresholds = thresholds.shape[0]
    quads = n_thresholds // 4 * 4
    for i in range(size):
        u[i] = min(u[i], uint32(0xFFFFFFFE))
        outcome[i] = 0
    for c in range(0, quads, 4):
        t0 = thresholds[c, start : start + size]
        t1 = thresholds[c + 1, start : start + size]
        t2 = thresholds[c + 2, start : start + size]
        t3 = thresholds[c + 3, start : start + size]
        for i in range(size):
            first_two = uint32(u[i] >= t0[i]) + uint32(u[i] >= t1[i])
            outcome[i] += first_two + uint32(u[i] >= t2[i]) + uint32(u[i] >= t3[i])
    for c in range(quads, n_thresholds):
        threshold = thresholds[c, start : start + size]
        for i in range(size):
            outcome[i] += uint32(u[i] >= threshold[i])


@kernel
def count_drawn(thresholds, cell, seed, first, counts):
    """Fill ``counts (n_replicates, n_cells) int32``: how many rows fall to an outcome whose entry lies in each cell.

    The outcomes of `draw_outcomes`, none of which is stored; ``cell (n_samples, n_outcomes)`` holds the cell of every
    entry. Rows as a rule fall to their likeliest outcome, their usual one: in tiles of sharp predictions all are
    counted as if they did, one comparison of vectors finds the rows that do not, and only these are corrected.
    """
    n_replicates, n_cells = counts.shape
    n_thresholds, n_samples = thresholds.shape
    n_outcomes = uint64(n_thresholds + 1)
    cells = cell.ravel()
    states = np.empty((n_replicates, 4 * _LANES), np.uint64)
    for r in range(n_replicates):
        _seed(seed, first + r, states[r])
    words = np.empty(_WORDS, np.uint64)
    u = words.view(np.uint32)
    missed = np.empty(_WORDS // 4, np.uint64)
    miss = missed.view(np.uint8)
    outcome = np.empty(2 * _WORDS, np.uint32)
    low = np.empty(2 * _WORDS, np.uint32)
    width = np.empty(2 * _WORDS, np.uint32)
    usual = np.empty(2 * _WORDS, np.uint32)
    stride = uint64((n_thresholds + 3) // 4 * 4)  # in fours; what fills the last four is never reached
    by_row = np.full((2 * _WORDS, stride), _CERTAIN)
    row_thresholds = by_row.ravel()
    all_usual = np.zeros(n_cells, np.int32)
    counts[:] = 0
    for start in range(0, n_samples, 2 * _WORDS):
        size = min(2 * _WORDS, n_samples - start)
        entry = uint64(start) * n_outcomes
        sharp = _find_usual(thresholds, start, low, width, usual, by_row) > _SHARP
        if sharp:
            for i in range(size):
                usual[i] = cells[entry + uint64(i) * n_outcomes + usual[i]]
                all_usual[usual[i]] += 1
        missed[:] = 0
        for r in range(n_replicates):
            _refill(states[r], words)
            count = counts[r]
            if not sharp:
                _draw_all(u, thresholds, start, size, outcome)
                for i in range(size):
                    count[uint64(cells[entry + uint64(i) * n_outcomes + uint64(outcome[i])])] += 1
                continue
            for i in range(size):  # without the cap: u = 2**32 - 1 is always missed
                miss[i] = uint8(uint32(u[i] - low[i]) >= width[i])
            for w in range(missed.size):
                word = missed[w]
                while word:
                    i = uint64(8 * w) + (_trailing_zeros(word) >> uint64(3))
                    word &= word - uint64(1)
                    v = min(u[i], uint32(0xFFFFFFFE))
                    drawn = uint64(0)
                    for j in range(i * stride, (i + uint64(1)) * stride, uint64(4)):
                        drawn += uint64(v >= row_thresholds[j]) + uint64(v >= row_thresholds[j + uint64(1)])
                        drawn += uint64(v >= row_thresholds[j + uint64(2)]) + uint64(v >= row_thresholds[j + uint64(3)])
                    count[uint64(usual[i])] -= 1
                    count[uint64(cells[entry + i * n_outcomes + drawn])] += 1
    for r in range(n_replicates):
        for j in range(n_cells):
            counts[r, j] += all_usual[j]


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
