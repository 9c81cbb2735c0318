"""Confidence ECE with 15 equal-width cells: predictions fixed, and rows resampled."""

import numpy as np

from benchmarks.loops.drawing import as_words, generator, random_words

N_CELLS = 15


def problem(y_true, y_prob):
    """Return confidence, correctness and cell of every row, rows sorted by confidence, and so by cell."""
    confidence = y_prob.max(axis=1).astype(float)
    order = np.argsort(confidence, kind="stable")
    confidence = confidence[order]
    cell = np.searchsorted(np.arange(1, N_CELLS) / N_CELLS, confidence, side="right")
    return confidence, (y_prob.argmax(axis=1) == y_true)[order], cell


def tuned_fixed(y_true, y_prob, n_resamples, seed):
    """Predictions fixed, every pass over the rows one NumPy call: 1.7 ns.

    Rows sorted by cell, so that a cell is a slice and its count a np.add.reduceat over bytes (bincount, cumsum or one
    count_nonzero per cell: 3 to 30 times slower); the generator's raw words compared with integer thresholds into a
    reused buffer (float32 uniforms: `float32_fixed`, 3.1 ns); the distance once, at the end. Several resamples per
    call save a tenth at most.
    """
    confidence, correct, cell = problem(y_true, y_prob)
    threshold = as_words(confidence)
    start, predicted = _starts(confidence, cell)
    rng = generator(seed)
    happened = np.empty(len(cell), dtype=bool)
    as_bytes = happened.view(np.uint8)
    count = np.empty((n_resamples + 1, len(start)), dtype=np.min_scalar_type(len(cell)))
    for row in count[:-1]:
        np.less(random_words(rng, len(cell)), threshold, out=happened)
        np.add.reduceat(as_bytes, start, dtype=count.dtype, out=row)
    happened[:] = correct
    np.add.reduceat(as_bytes, start, dtype=count.dtype, out=count[-1])
    return _errors(count, predicted, len(cell))


def float32_fixed(y_true, y_prob, n_resamples, seed):
    """As `tuned_fixed` with float32 uniforms in a reused buffer, the loop that the targets were written for: 3.1 ns."""
    confidence, correct, cell = problem(y_true, y_prob)
    start, predicted = _starts(confidence, cell)
    confidence = confidence.astype(np.float32)
    rng = generator(seed)
    uniform = np.empty(len(cell), dtype=np.float32)
    happened = np.empty(len(cell), dtype=bool)
    as_bytes = happened.view(np.uint8)
    count = np.empty((n_resamples + 1, len(start)), dtype=np.min_scalar_type(len(cell)))
    for row in count[:-1]:
        rng.random(out=uniform, dtype=np.float32)
        np.less(uniform, confidence, out=happened)
        np.add.reduceat(as_bytes, start, dtype=count.dtype, out=row)
    happened[:] = correct
    np.add.reduceat(as_bytes, start, dtype=count.dtype, out=count[-1])
    return _errors(count, predicted, len(cell))


def plain_fixed(y_true, y_prob, n_resamples, seed):
    """Predictions fixed, the way it is usually written: bincount."""
    confidence, correct, cell = problem(y_true, y_prob)
    predicted = np.bincount(cell, weights=confidence, minlength=N_CELLS)
    rng = np.random.default_rng(seed)

    def error(outcome):
        return np.abs(np.bincount(cell, weights=outcome, minlength=N_CELLS) - predicted).sum() / len(cell)

    null = np.array([error(rng.random(len(cell)) < confidence) for _ in range(n_resamples)])
    return error(correct), null


def tuned_resampled(y_true, y_prob, n_resamples, seed):
    """Rows resampled, cells fixed: 7.5 ns.

    How many rows fall into each cell is multinomial; given that, a cell's rows are drawn uniformly among its own. Draws
    come sorted by cell, so that what is added is a np.add.reduceat again, of the residual itself, and rows are looked
    up near each other. One uniform double gives the row (whole part) and the outcome (fraction); four resamples share
    every call. Tried: rows from Generator.integers and bincount of residuals (`plain_resampled`) 12; multiplicities by
    bincount, then reduceat 18; multiplicities and np.repeat of sorted rows 18; sorted rows from cumulated exponentials
    19; one cell at a time 19; 1 or 16 resamples per call 9.2 and 8.0; raw words instead of doubles 7.3 to 10.
    """
    block = 4
    confidence, correct, cell = problem(y_true, y_prob)
    n = len(cell)
    start, predicted = _starts(confidence, cell)
    size = np.diff(start, append=n)
    sizes, starts = np.tile(size.astype(float), block), np.tile(start.astype(float), block)
    single = confidence.astype(np.float32)
    rng = generator(seed)
    uniform = np.empty(block * n)
    row = np.empty(block * n, dtype=np.intp)
    p = np.empty(block * n, dtype=np.float32)
    happened = np.empty(block * n, dtype=bool)
    residual = np.zeros(block * n + 1, dtype=np.float32)
    total = np.empty((-(-n_resamples // block), block * len(start)))
    for sums in total:
        count = rng.multinomial(n, size / n, size=block).ravel()
        rng.random(out=uniform)
        uniform *= np.repeat(sizes, count)
        uniform += np.repeat(starts, count)
        row[:] = uniform
        uniform -= row
        single.take(row, mode="clip", out=p)
        np.less(uniform, p, out=happened)
        np.subtract(happened, p, out=residual[:-1])
        first = np.cumsum(count) - count
        sums[:] = np.where(count > 0, np.add.reduceat(residual, first, dtype=float), 0.0)
    null = np.abs(total.reshape(-1, len(start))).sum(axis=1)[:n_resamples] / n
    observed = np.add.reduceat(correct, start, dtype=float) - predicted
    return np.abs(observed).sum() / n, null


def plain_resampled(y_true, y_prob, n_resamples, seed):
    """Rows resampled, the way it is usually written: integers, uniforms, bincount; 12 ns."""
    confidence, correct, cell = problem(y_true, y_prob)
    rng = np.random.default_rng(seed)
    n = len(cell)

    def error(p, outcome, where):
        return np.abs(np.bincount(where, weights=outcome - p, minlength=N_CELLS)).sum() / n

    null = np.empty(n_resamples)
    for r in range(n_resamples):
        row = rng.integers(0, n, n)
        p = confidence[row]
        null[r] = error(p, rng.random(n) < p, cell[row])
    return error(confidence, correct, cell), null


def _starts(confidence, cell):
    """Return the first row and the summed confidence of each occupied cell."""
    start = np.flatnonzero(np.diff(cell, prepend=-1))
    return start, np.add.reduceat(confidence, start)


def _errors(count, predicted, n):
    error = np.abs(count - predicted).sum(axis=1) / n
    return error[-1], error[:-1]
