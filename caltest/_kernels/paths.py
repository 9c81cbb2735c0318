"""Largest excursion of the cumulative residual in score order, read at the end of tied blocks only.

With rows sorted by score, let ``after[i]`` be the predicted sum up to the end of the tied block of row i and
``before[i]`` the predicted sum up to its start. Then ``max_i (count_i - after[i])`` and ``min_i (count_{i-1} -
before[i])`` are attained at block ends: inside a block the count is still too small for the first and already too
large for the second. Ties cost nothing, and the predicted sums are computed once for all replicates.
"""

import numpy as np
from llvmlite import ir
from numba import types, uint64
from numba.extending import intrinsic

from caltest._kernels._compile import kernel


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


@kernel
def largest_excursion(outcomes, before, after):
    """Return ``(n_replicates,)``: max |sum of (event - probability)| for two outcomes, rows sorted by score."""
    n_replicates, n_samples = outcomes.shape
    count = np.empty(513, np.int64)
    largest = np.empty(n_replicates)
    for r in range(n_replicates):
        high = 0.0
        low = 0.0
        count[0] = 0
        for start in range(0, n_samples, 512):
            size = min(512, n_samples - start)
            outcome = outcomes[r, start : start + size]
            # Counting and comparing apart: only the first loop has to go one row at a time.
            total = count[0]
            for i in range(size):
                total += outcome[i]
                count[i + 1] = total
            after_block = after[start : start + size]
            before_block = before[start : start + size]
            for i in range(size):
                high = max(high, count[i + 1] - after_block[i])
                low = min(low, count[i] - before_block[i])
            count[0] = total
        low = min(low, count[0] - after[n_samples - 1])
        largest[r] = max(high, -low)
    return largest


@kernel
def word_extremes(before, after):
    """Return ``(2, n_outcomes, n_words)``: max of ``i + 1 - after[i]``, min of ``i - before[i]`` in words of 64 places.

    What a path would reach there if every row so far were an event: see `largest_excursions`.
    """
    n_outcomes, n_samples = before.shape
    n_words = (n_samples + 63) // 64
    extremes = np.empty((2, n_outcomes, n_words))
    for c in range(n_outcomes):
        for w in range(n_words):
            high = -np.inf
            low = np.inf
            for i in range(64 * w, min(64 * w + 64, n_samples)):
                high = max(high, i + 1 - after[c, i])
                low = min(low, i - before[c, i])
            extremes[0, c, w] = high
            extremes[1, c, w] = low
    return extremes


@kernel
def largest_excursions(outcomes, rank, before, after, extremes):
    """Return ``(n_replicates, n_outcomes)``: for each class the largest excursion of its own path.

    ``rank (n_samples, n_outcomes)`` is the place of a row when sorted by a class's probability; ``before`` and
    ``after (n_outcomes, n_samples)`` are in that order, ``extremes`` is made from them by `word_extremes`. Between two
    rows that fall to class c its path only decreases, so extremes occur at those rows alone: n_samples visits serve
    all classes. A bitmap per class sorts them, and a word of 64 places is skipped where counting its events, or its
    other rows, shows that the path sets no new extreme there.
    """
    n_replicates, n_samples = outcomes.shape
    n_outcomes = rank.shape[1]
    n_words = (n_samples + 63) // 64
    ranks = rank.ravel()
    bitmap = np.zeros(n_outcomes * n_words, np.uint64)
    largest = np.empty((n_replicates, n_outcomes))
    for r in range(n_replicates):
        outcome = outcomes[r]
        for i in range(n_samples):
            drawn = uint64(outcome[i])
            place = uint64(ranks[uint64(i) * uint64(n_outcomes) + drawn])
            bitmap[drawn * uint64(n_words) + (place >> uint64(6))] |= uint64(1) << (place & uint64(63))
        for c in range(n_outcomes):
            high = 0.0
            low = 0.0
            count = 0.0
            for w in range(n_words):
                word = bitmap[c * n_words + w]
                if word == 0:
                    continue
                bitmap[c * n_words + w] = 0
                first = 64 * w
                last = min(first + 63, n_samples - 1)
                events = float(_ones(word))
                others = first - count  # rows of other classes so far
                highest = min(count + events - after[c, first], extremes[0, c, w] - others)
                lowest = max(count - before[c, last], extremes[1, c, w] - others - (last + 1 - first - events))
                if highest <= high and lowest >= low:
                    count += events
                    continue
                while word:
                    j = uint64(first) + _trailing_zeros(word)
                    word &= word - uint64(1)
                    low = min(low, count - before[c, j])
                    count += 1.0
                    high = max(high, count - after[c, j])
            low = min(low, count - after[c, n_samples - 1])
            largest[r, c] = max(high, -low)
    return largest
