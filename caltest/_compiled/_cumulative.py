"""Events counted in score order, read at the end of tied blocks only, and the bridge of their residual."""

import numpy as np
from llvmlite import ir
from numba import int8, types, uint64
from numba.extending import intrinsic

from caltest._compiled._jit import kernel, unless_one

CHUNK = 64  # a count of so many rows, and its distance from the predicted sum, fit in one byte
_TILE = 1024
_PASSES = 3  # of candidates for the ends of isotonic blocks; more of them drop too few to be worth it


@intrinsic
def _trailing_zeros(typing_context, x):
    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


@intrinsic
def _ones(typing_context, x):
    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


def _path_extremes_of_one(outcomes, after, following, steps, levels):
    count = np.cumsum(outcomes[0], dtype=np.int64)
    high, low = (count - after).max(initial=0.0), (count - following).min(initial=0.0)
    return np.array([[high, low, count[-1] - after[-1]]])


@kernel
def _fill_extremes(outcomes, after, following, steps, levels, words, counts, events, bounds, extremes):
    # ``counts (_TILE,) uint8`` are the bytes of ``words``. NumPy has the memory, as it takes long to compile for it.
    n_replicates, n_samples = outcomes.shape
    n_chunks = levels.shape[1]
    chunked = n_chunks * CHUNK
    rises = steps[0]
    falls = steps[1]
    highest = bounds[0]
    lowest = bounds[1]  # what the path may fall below 0
    for r in range(n_replicates):
        outcome = outcomes[r]
        total = 0
        top = 0
        bottom = 0
        rise_bound = -np.inf
        fall_bound = -np.inf
        for start in range(0, chunked, _TILE):
            size = min(_TILE, chunked - start)
            drawn = outcome[start : start + size]
            for i in range(size):
                counts[i] = drawn[i]
            for c in range(size // CHUNK):
                happened = uint64(0)
                for j in range(c * CHUNK // 8, (c + 1) * CHUNK // 8):
                    # The product counts in all eight bytes: each holds the events so far in this chunk.
                    word = (words[j] + happened) * uint64(0x0101010101010101)
                    words[j] = word
                    happened = word >> uint64(56)
                events[start // CHUNK + c] = total
                total += np.int64(happened)
            for c in range(size // CHUNK):
                k = start // CHUNK + c
                counted = counts[c * CHUNK : (c + 1) * CHUNK]
                rise = rises[k * CHUNK : (k + 1) * CHUNK]
                fall = falls[k * CHUNK : (k + 1) * CHUNK]
                above = int8(-128)
                below = int8(-128)
                for i in range(CHUNK):
                    above = max(above, int8(counted[i] - rise[i]))
                    below = max(below, int8(fall[i] - counted[i]))
                highest[k] = events[k] - levels[0, k] + above
                lowest[k] = levels[1, k] - events[k] + below
                if highest[k] > rise_bound:
                    rise_bound = highest[k]
                    top = k
                if lowest[k] > fall_bound:
                    fall_bound = lowest[k]
                    bottom = k
        high = 0.0
        low = 0.0
        for i in range(chunked, n_samples):
            total += outcome[i]
            high = max(high, total - after[i])
            low = min(low, total - following[i])
        k = top  # it and the lowest leave few others to read
        j = -2 if n_chunks else 0
        while j < n_chunks:
            count = events[k]
            for i in range(k * CHUNK, (k + 1) * CHUNK):
                count += outcome[i]
                high = max(high, count - after[i])
                low = min(low, count - following[i])
            j += 1
            k = bottom
            if j >= 0:
                while j < n_chunks and highest[j] <= high and lowest[j] <= -low:
                    j += 1
                k = j
        extremes[r, 0] = high
        extremes[r, 1] = low
        extremes[r, 2] = total - after[n_samples - 1]


@unless_one(_path_extremes_of_one)
def path_extremes(outcomes, after, following, steps, levels):
    """Return ``(n_replicates, 3)``: the highest, the lowest (its start at 0 included) and the last value of the path.

    For two outcomes, rows sorted by score; ``following[i]`` is ``before[i + 1]``, and the predicted sum of all rows
    for the last row. In chunk c, ``steps (2, n_chunks * CHUNK) int8`` and ``levels (2, n_chunks)`` bound the predicted
    sums: ``after[i] >= levels[0, c] + steps[0, i]``, ``following[i] <= levels[1, c] + steps[1, i]``. Counts and steps
    of one byte, a vector at a time, then bound the path, and only chunks whose bound lies beyond what was found are
    read exactly.
    """
    n_chunks = levels.shape[1]
    words, extremes = np.empty(_TILE // 8, np.uint64), np.empty((len(outcomes), 3))
    events, bounds = np.empty(n_chunks, np.int64), np.empty((2, n_chunks))
    _fill_extremes(outcomes, after, following, steps, levels, words, words.view(np.uint8), events, bounds, extremes)
    return extremes


def _weighted_extremes_of_one(events, weight, expected, last):
    path = np.cumsum(weight * (events[0] - expected))[last]
    return np.array([[path.max(initial=0.0), path.min(initial=0.0), path[-1]]])


@unless_one(_weighted_extremes_of_one)
@kernel
def weighted_extremes(events, weight, expected, last):
    """Return the extremes of `path_extremes` for weighted observations, whose sums are not counts.

    ``events (n_replicates, n_samples)`` are 0 or 1 and ``last (n_samples,)`` says where tied blocks end.
    """
    n_replicates, n_samples = events.shape
    extremes = np.empty((n_replicates, 3))
    for r in range(n_replicates):
        total = 0.0
        high = 0.0
        low = 0.0
        for i in range(n_samples):
            total += weight[i] * (events[r, i] - expected[i])
            if last[i]:
                high = max(high, total)
                low = min(low, total)
        extremes[r, 0] = high
        extremes[r, 1] = low
        extremes[r, 2] = total
    return extremes


@kernel
def _grow(values, used, more):
    grown = np.empty(2 * (used + more), np.int64)
    for i in range(used):  # a slice takes seconds to compile
        grown[i] = values[i]
    return grown


@kernel
def _lower_hull(x, y, last):
    """Reduce the points ``0 : last + 1`` to the vertices of their lower hull, x increasing; return its last place.

    A vertex is strictly convex whatever its neighbours are: passes that do not branch drop points, and few are left for
    the stack, which does.
    """
    for _ in range(_PASSES):
        n_points = uint64(1)
        x0, y0, x1, y1 = x[0], y[0], x[1], y[1]
        for i in range(2, last + 1):
            x2, y2 = x[i], y[i]
            x[n_points] = x1
            y[n_points] = y1
            n_points += uint64((y1 - y0) * (x2 - x1) < (y2 - y1) * (x1 - x0))
            x0, y0, x1, y1 = x1, y1, x2, y2
        last = np.int64(n_points)
        x[last] = x1
        y[last] = y1
    top = 0
    for i in range(1, last + 1):
        while top > 0 and (y[top] - y[top - 1]) * (x[i] - x[top]) >= (y[i] - y[top]) * (x[top] - x[top - 1]):
            top -= 1
        top += 1
        x[top] = x[i]
        y[top] = y[i]
    return top


@kernel
def pool_adjacent_violators(outcomes, masks):
    """Return the blocks of the isotonic fit to each replicate: ``sizes`` and ``events (n_blocks,)``, and ``first``.

    Two outcomes, rows sorted by score; the blocks of replicate r are ``first[r] : first[r + 1]``. ``masks (3, n_words)
    uint64`` are bitmaps of the rows, 64 to a word: the row is the last of its tied block, but not of all; it is alone
    in its block; the next row is alone in its own.

    Blocks end at the vertices of the lower convex hull of the points (rows so far, events so far).
    """
    n_replicates, n_samples = outcomes.shape
    n_words = masks.shape[1]
    words = np.zeros(8 * n_words, np.uint64)
    drawn = words.view(np.uint8)
    happened = np.zeros(n_words + 1, np.uint64)
    x = np.zeros(n_samples + 1, np.int64)
    y = np.zeros(n_samples + 1, np.int64)
    first = np.zeros(n_replicates + 1, np.int64)
    sizes = np.empty(64 * n_replicates, np.int64)
    events = np.empty(64 * n_replicates, np.int64)
    used = 0
    for r in range(n_replicates):
        outcome = outcomes[r]
        for i in range(n_samples):
            drawn[i] = outcome[i]
        for w in range(n_words):
            bits = uint64(0)
            for j in range(8):  # the product gathers the lowest bits of eight bytes in the highest byte
                packed = (words[8 * w + j] * uint64(0x0102040810204080)) >> uint64(56)
                bits |= packed << uint64(8 * j)
            happened[w] = bits
        count = uint64(0)
        n_points = uint64(1)
        for w in range(n_words):
            bits = happened[w]
            following = (bits >> uint64(1)) | (happened[w + 1] << uint64(63))
            # No block ends behind an event, or before a row without, that is alone with its score.
            ends = masks[0, w] & ~(masks[1, w] & bits) & (following | ~masks[2, w])
            while ends:
                up_to = ends ^ (ends - uint64(1))
                x[n_points] = 64 * w + _trailing_zeros(ends) + 1
                y[n_points] = count + _ones(bits & up_to)
                n_points += uint64(1)
                ends &= ends - uint64(1)
            count += _ones(bits)
        x[n_points] = n_samples
        y[n_points] = count
        top = _lower_hull(x, y, np.int64(n_points))
        if used + top > sizes.size:
            sizes = _grow(sizes, used, top)
            events = _grow(events, used, top)
        for i in range(top):
            sizes[used + i] = x[i + 1] - x[i]
            events[used + i] = y[i + 1] - y[i]
        used += top
        first[r + 1] = used
    return sizes[:used], events[:used], first


@kernel
def path_ends_and_bridges(outcomes, start, expected, time):
    """Return ``(n_replicates, 2)``: the path's end C, and max over blocks of |path - time * C|.

    Rows are sorted by score; block b of tied scores holds the rows ``start[b] : start[b + 1]``. ``expected
    (n_blocks,)`` is the expected number of events up to its end, ``time (n_blocks,)`` the share of the variance there.
    """
    n_replicates = outcomes.shape[0]
    n_blocks = start.size - 1
    path = np.empty(n_blocks)
    ends = np.empty((n_replicates, 2))
    for r in range(n_replicates):
        outcome = outcomes[r]
        events = 0
        for b in range(n_blocks):
            for i in range(start[b], start[b + 1]):
                events += outcome[i]
            path[b] = events
        end = path[n_blocks - 1] - expected[n_blocks - 1]
        # Counting and comparing apart: only the first loop has to go one row at a time.
        largest = 0.0
        for b in range(n_blocks):
            largest = max(largest, abs(path[b] - expected[b] - time[b] * end))
        ends[r, 0] = end
        ends[r, 1] = largest
    return ends
