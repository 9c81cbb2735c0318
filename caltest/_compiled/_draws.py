"""Random outcomes and random rows, reproducible for any number of threads and any block size.

One generator serves the whole package: 32 interleaved xoshiro256++ streams (Blackman & Vigna 2021), so that the
update vectorises, seeded by splitmix64 from ``(seed, replicate)``. Replicate ``r`` therefore draws the same numbers
whichever block or thread it falls to, and row ``i`` always receives the ``i``-th 32-bit number of its replicate.
"""

import numpy as np
from llvmlite import ir
from numba import njit, types, uint8, uint32, uint64
from numba.extending import intrinsic

from caltest._compiled._jit import kernel, reduction

_LANES = 32
_WORDS = 512  # 64-bit words held at a time
_GOLDEN = uint64(0x9E3779B97F4A7C15)
_CERTAIN = uint32(0xFFFFFFFF)
_TILE_RECORDS = 2**16  # alias records of 8 bytes, for the second-level cache
_FEW = 3  # thresholds; more of them are passed four at a time
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
    for step in range(words.size // _LANES):
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


@njit(inline="always")
def _started(seed, first, n_replicates):
    states = np.empty((n_replicates, 4 * _LANES), np.uint64)
    for r in range(n_replicates):
        _seed(seed, first + r, states[r])
    return states


@kernel
def _fill_words(seed, first, state, words):
    for r in range(words.shape[0]):
        _seed(seed, first + r, state)
        _refill(state, words[r])


def random_words(seed, first, words):
    """Fill ``words (n_replicates, n_words) uint64`` with random numbers; n_words is a multiple of 32."""
    _fill_words(seed, first, np.empty(4 * _LANES, np.uint64), words)


@kernel
def draw_outcomes(thresholds, seed, first, out):
    """Fill ``out (n_replicates, n_samples)``: row i of a replicate falls to outcome #{c : u_i >= thresholds[c, i]}.

    ``thresholds (n_outcomes - 1, n_samples) uint32`` are cumulative probabilities times 2**32; the value 2**32 - 1
    stands for certainty, so that u is capped just below it. Rows are the outer loop, so that a tile of thresholds
    stays in the first-level cache while every replicate of the block passes over it.
    """
    n_replicates, n_samples = out.shape
    n_thresholds = thresholds.shape[0]
    states = _started(seed, first, n_replicates)
    words = np.empty(_WORDS, np.uint64)
    u = words.view(np.uint32)
    drawn = np.empty(2 * _WORDS, np.uint32)
    for start in range(0, n_samples, 2 * _WORDS):
        size = min(2 * _WORDS, n_samples - start)
        for r in range(n_replicates):
            _refill(states[r], words)
            outcome = out[r, start : start + size]
            if n_thresholds > _FEW:
                _draw_all(u, thresholds, start, size, drawn)
                for i in range(size):
                    outcome[i] = drawn[i]
                continue
            threshold = thresholds[0, start : start + size]
            for i in range(size):
                u[i] = min(u[i], uint32(0xFFFFFFFE))
                outcome[i] = uint8(u[i] >= threshold[i])
            for c in range(1, n_thresholds):
                threshold = thresholds[c, start : start + size]
                for i in range(size):
                    outcome[i] += uint8(u[i] >= threshold[i])


@njit(inline="always")
def _split(word, n):
    """Return a number of 0 .. n - 1 in the upper 32 bits and a fraction, uniform given the number, in the lower ones.

    The upper half of the product of the word and n < 2**32 (Lemire 2019), with a bias below n / 2**64: a row and its
    outcome cost one word. In halves of 32 bits, because vectors multiply those.
    """
    return (word >> uint64(32)) * n + (((word & uint64(0xFFFFFFFF)) * n) >> uint64(32))


@njit(inline="always")
def _padded(size):
    return (size + _LANES - 1) // _LANES * _LANES


def start_states(seed, first, n_replicates):
    """Return the state of the generator ``(n_replicates, 128)`` of each replicate from ``first`` on."""
    states = np.empty((n_replicates, 4 * _LANES), np.uint64)
    for r, state in enumerate(states):
        _seed(seed, first + r, state)
    return states


@kernel
def draw_from_records(records, start, states, out):
    """Fill the columns of ``out (n_replicates, n_samples)`` from ``start`` on with labels drawn from alias records.

    ``records (n_rows, n_outcomes)`` are those of these rows, by `fill_row_records`; ``start`` is a multiple of 32. Row
    i takes the i-th 64-bit number of its replicate, and ``states`` are moved on. A tile of records stays in the
    second-level cache while every replicate passes over it.
    """
    n_rows = records.shape[0]
    n = uint64(records.shape[1])
    flat = records.ravel()
    words = np.empty(_WORDS, np.uint64)
    tile = min(max(_TILE_RECORDS // records.shape[1] // _LANES, 1) * _LANES, _WORDS)
    for begin in range(0, n_rows, tile):
        size = min(tile, n_rows - begin)
        entry = uint64(begin) * n
        for r in range(states.shape[0]):
            _refill(states[r], words[: _padded(size)])
            label = out[r, start + begin : start + begin + size]
            for i in range(size):
                words[i] = _split(words[i], n)
            for i in range(size):
                own = words[i] >> uint64(32)
                record = flat[entry + uint64(i) * n + own]
                is_own = uint32(words[i]) < uint32(record >> uint64(32))
                label[i] = own if is_own else record & uint64(0xFFFFFFFF)


@intrinsic
def _trailing_zeros(typing_context, x):
    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


@kernel
def _find_usual(thresholds, start, low, width, usual, by_row, stride):
    """Find the likeliest outcome of the rows from ``start`` on, and the interval ``low``, ``width`` that u must hit.

    Fills ``by_row (n_rows * stride,)`` with the thresholds of a row side by side; returns the mean chance of a hit.
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
                by_row[uint64(i) * stride + uint64(c)] = above[i]
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
def count_drawn(thresholds, cells, seed, first, counts):
    """Fill ``counts (n_replicates, n_cells) int32``: how many rows fall to an outcome whose entry lies in each cell.

    The outcomes of `draw_outcomes`, none of which is stored; ``cells (n_samples * n_outcomes,)`` are those of the
    entries. Rows as a rule fall to their likeliest outcome, their usual one: in tiles of sharp predictions all are
    counted as if they did, one comparison of vectors finds the rows that do not, and only these are corrected.
    """
    n_replicates, n_cells = counts.shape
    n_thresholds, n_samples = thresholds.shape
    n_outcomes = uint64(n_thresholds + 1)
    states = _started(seed, first, n_replicates)
    words = np.empty(_WORDS, np.uint64)
    u = words.view(np.uint32)
    missed = np.empty(_WORDS // 4, np.uint64)
    miss = missed.view(np.uint8)
    outcome = np.empty(2 * _WORDS, np.uint32)
    low = np.empty(2 * _WORDS, np.uint32)
    width = np.empty(2 * _WORDS, np.uint32)
    usual = np.empty(2 * _WORDS, np.uint32)
    stride = uint64((n_thresholds + 3) // 4 * 4)  # in fours; what fills the last four is never reached
    row_thresholds = np.full(2 * _WORDS * ((n_thresholds + 3) // 4 * 4), _CERTAIN)
    all_usual = np.zeros(n_cells, np.int32)
    counts[:] = 0
    for start in range(0, n_samples, 2 * _WORDS):
        size = min(2 * _WORDS, n_samples - start)
        entry = uint64(start) * n_outcomes
        sharp = _find_usual(thresholds, start, low, width, usual, row_thresholds, stride) > _SHARP
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


# Drawing, looking up and counting are separate loops: the first is vectorised, and where a count goes is known long
# before it goes there, so that it keeps no later load waiting.


@kernel
def draw_rows(threshold, seed, first, rows, outcomes):
    """Draw rows of a two-outcome problem with replacement, and their outcomes: ``(n_replicates, n_samples)`` both."""
    n_replicates, n_samples = rows.shape
    n = uint64(n_samples)
    state = np.empty(4 * _LANES, np.uint64)
    words = np.empty(_WORDS, np.uint64)
    for r in range(n_replicates):
        _seed(seed, first + r, state)
        for start in range(0, n_samples, _WORDS):
            _refill(state, words)
            for i in range(min(_WORDS, n_samples - start)):
                split = _split(words[i], n)
                rows[r, start + i] = split >> uint64(32)
                outcomes[r, start + i] = min(uint32(split), uint32(0xFFFFFFFE)) >= threshold[split >> uint64(32)]


@kernel
def draw_class_rows(records, seed, first, rows, outcomes):
    """Draw rows with replacement and their outcomes, ``(n_replicates, n_samples)`` both.

    ``records (n_samples * n_outcomes,)`` are alias tables of the rows: of each entry the threshold in the upper 32
    bits, the alias in the next 16 and the outcome itself in the last.
    """
    n_replicates, n_samples = rows.shape
    n = uint64(n_samples)
    m = uint64(records.size // n_samples)
    state = np.empty(4 * _LANES, np.uint64)
    words = np.empty(_WORDS, np.uint64)
    entry = np.empty(_WORDS, np.uint64)
    u = np.empty(_WORDS, np.uint32)
    for r in range(n_replicates):
        _seed(seed, first + r, state)
        for start in range(0, n_samples, _WORDS):
            _refill(state, words)
            size = min(_WORDS, n_samples - start)
            drawn = rows[r, start : start + size]
            for i in range(size):
                split = _split(words[i], n)
                outcome = (split & uint64(0xFFFFFFFF)) * m
                drawn[i] = split >> uint64(32)
                entry[i] = (split >> uint64(32)) * m + (outcome >> uint64(32))
                u[i] = uint32(outcome)
            for i in range(size):
                record = records[entry[i]]
                shift = uint64(u[i] >= uint32(record >> uint64(32))) << uint64(4)
                outcomes[r, start + i] = (record >> shift) & uint64(0xFFFF)


@kernel
def draw_multiplicities(threshold, seed, first, drawn):
    """Fill ``drawn (n_replicates, n_samples) uint16``: how often each row was drawn + 256 times how often with event 1.

    What `draw_rows` draws for two outcomes, but nothing is copied: sorted rows stay sorted, whatever is drawn. That a
    row of more than 255 is drawn 256 times has a probability below 1e-500.
    """
    n_replicates, n_samples = drawn.shape
    n = uint64(n_samples)
    state = np.empty(4 * _LANES, np.uint64)
    words = np.empty(_WORDS, np.uint64)
    place = np.empty(_WORDS, np.uint32)
    u = np.empty(_WORDS, np.uint32)
    for r in range(n_replicates):
        _seed(seed, first + r, state)
        row = drawn[r]
        row[:] = 0
        for start in range(0, n_samples, _WORDS):
            _refill(state, words)
            size = min(_WORDS, n_samples - start)
            for i in range(size):
                split = _split(words[i], n)
                place[i] = split >> uint64(32)
                u[i] = min(uint32(split), uint32(0xFFFFFFFE))
            for i in range(size):
                u[i] = uint32(1) + (uint32(u[i] >= threshold[uint64(place[i])]) << uint32(8))
            for i in range(size):
                row[uint64(place[i])] += np.uint16(u[i])


@njit(inline="always")
def _look_up(word, thresholds, alias, begin, end):
    split = _split(word, uint64(end - begin))
    at = uint64(begin) + (split >> uint64(32))
    return split >> uint64(32) if uint32(split) < thresholds[at] else uint64(alias[at])


@kernel
def draw_counts(thresholds, alias, begin, end, seed, first, counts):
    """Fill ``counts (n_replicates, n_tables) int64``: table t is the entries ``begin[t] : end[t]`` of alias tables."""
    n_tables = counts.shape[1]
    state = np.empty(4 * _LANES, np.uint64)
    words = np.empty(_WORDS, np.uint64)
    for r in range(counts.shape[0]):
        _seed(seed, first + r, state)
        for t in range(n_tables):
            if t % _WORDS == 0:
                _refill(state, words[: _padded(min(_WORDS, n_tables - t))])
            counts[r, t] = _look_up(words[t % _WORDS], thresholds, alias, begin[t], end[t])


@kernel
def _allocate(state, words, thresholds, alias, begin, end, n_samples, counts):
    """Fill ``counts (n_strata,)`` with multinomial numbers of rows.

    Poisson numbers, one from each table, whose mean falls a little short of n_samples in sum, are topped up one by one
    from the last table: given their sum, independent Poisson numbers are multinomial.
    """
    n_strata = counts.size
    total = n_samples + 1
    while total > n_samples:
        total = 0
        for t in range(n_strata):
            if t % _WORDS == 0:
                _refill(state, words[: _padded(min(_WORDS, n_strata - t))])
            counts[t] = _look_up(words[t % _WORDS], thresholds, alias, begin[t], end[t])
            total += counts[t]
    while total < n_samples:
        size = min(_WORDS, n_samples - total)
        _refill(state, words[: _padded(size)])
        for i in range(size):
            counts[_look_up(words[i], thresholds, alias, begin[n_strata], end[n_strata])] += 1
        total += size


@reduction
def _dot(x, y):
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@kernel
def draw_events(prob, stratum, thresholds, alias, begin, end, seed, first, counts, predicted, events):
    """Resample the rows of a two-outcome problem within strata, the rows ``stratum[b] : stratum[b + 1]``.

    Fills, each ``(n_replicates, n_strata)``: ``counts`` of drawn rows, by `_allocate`; ``predicted``, the sum of their
    event probabilities, which ``prob (n_samples,) uint64`` holds times 2**48; ``events``, how many of them fell to it.
    Strata are the outer loop: one fits into the first-level cache. Sums are whole numbers, which fit into 64 bits
    unless one stratum is drawn from 65,536 times; of 2,048 rows, that has a probability below 1e-1000.

    The upper half of a word draws the row, with a bias below 2**-32 times the rows of the stratum (Lemire 2019), and
    the lower half its outcome: two multiplications and an addition less than `_split`.
    """
    n_replicates, n_strata = counts.shape
    states = _started(seed, first, n_replicates)
    words = np.empty(_WORDS, np.uint64)
    p = np.empty(_WORDS, np.uint64)
    for r in range(n_replicates):
        _allocate(states[r], words, thresholds, alias, begin, end, prob.size, counts[r])
    for b in range(n_strata):
        rows = prob[stratum[b] : stratum[b + 1]]
        n = uint64(rows.size)
        for r in range(n_replicates):
            total = uint64(0)
            happened = uint64(0)
            for at in range(0, counts[r, b], _WORDS):
                size = min(_WORDS, counts[r, b] - at)
                _refill(states[r], words[: _padded(size)])
                for i in range(size):
                    p[i] = rows[((words[i] >> uint64(32)) * n) >> uint64(32)]
                for i in range(size):
                    total += p[i]
                    happened += uint64(((words[i] & uint64(0xFFFFFFFF)) << uint64(16)) < p[i])
            predicted[r, b] = total * 2.0**-48
            events[r, b] = happened


@kernel
def draw_classes(columns, records, stratum, thresholds, alias, begin, end, seed, first, counts, predicted, observed):
    """Resample the rows of a problem of many outcomes within strata, the rows ``stratum[b] : stratum[b + 1]``.

    Fills ``counts (n_replicates, n_strata) int64`` of drawn rows, ``predicted (n_replicates, n_strata, n_outcomes)``,
    the sums of their ``columns (n_outcomes, n_samples)``, and ``observed``, of the same shape, their outcomes, drawn
    from the ``records`` of `draw_class_rows`. Rows are counted while they are drawn, and their predictions are added
    once, in order, not at every draw.
    """
    n_replicates, n_strata = counts.shape
    n_outcomes = columns.shape[0]
    states = _started(seed, first, n_replicates)
    words = np.empty(_WORDS, np.uint64)
    place = np.empty(_WORDS, np.uint32)
    entry = np.empty(_WORDS, np.uint32)
    u = np.empty(_WORDS, np.uint32)
    longest = 0
    for b in range(n_strata):
        longest = max(longest, stratum[b + 1] - stratum[b])
    times = np.empty(longest)
    fallen = np.empty(4 * n_outcomes, np.int64)  # neighbours in different counters: an increment takes its time
    for r in range(n_replicates):
        _allocate(states[r], words, thresholds, alias, begin, end, columns.shape[1], counts[r])
    for b in range(n_strata):
        start = stratum[b]
        stop = stratum[b + 1]
        n = uint64(stop - start)
        m = uint64(n_outcomes)
        tables = records[start * n_outcomes : stop * n_outcomes]
        for r in range(n_replicates):
            times[: stop - start] = 0.0
            fallen[:] = 0
            for at in range(0, counts[r, b], _WORDS):
                size = min(_WORDS, counts[r, b] - at)
                _refill(states[r], words[: _padded(size)])
                for i in range(size):
                    split = _split(words[i], n)
                    place[i] = split >> uint64(32)
                    outcome = (split & uint64(0xFFFFFFFF)) * m
                    entry[i] = (split >> uint64(32)) * m + (outcome >> uint64(32))
                    u[i] = uint32(outcome)
                for i in range(size):
                    record = tables[uint64(entry[i])]
                    alias_shift = uint64(u[i] >= uint32(record >> uint64(32))) << uint64(4)
                    u[i] = uint32(record >> alias_shift) & uint32(0xFFFF)
                for i in range(size):
                    times[uint64(place[i])] += 1.0
                for i in range(size):
                    fallen[uint64(u[i]) * uint64(4) + uint64(i & 3)] += 1
            for k in range(n_outcomes):
                predicted[r, b, k] = _dot(times[: stop - start], columns[k, start:stop])
                observed[r, b, k] = fallen[4 * k] + fallen[4 * k + 1] + fallen[4 * k + 2] + fallen[4 * k + 3]
