"""Canonical ECE in total variation, cells of a fixed grid of 3 cells on every class: 66 cells for 10 classes."""

import numpy as np

from benchmarks.loops.drawing import RowsAndClasses, as_words, cumulative, generator, random_words

CELLS_PER_CLASS = 3


def problem(y_true, y_prob):
    """Return predictions, labels and cell of every row, rows sorted by cell."""
    digit = np.searchsorted(np.arange(1, CELLS_PER_CLASS) / CELLS_PER_CLASS, y_prob, side="right")
    code = digit @ CELLS_PER_CLASS ** np.arange(y_prob.shape[1])
    cell = np.unique(code, return_inverse=True)[1]
    order = np.argsort(cell, kind="stable")
    return np.ascontiguousarray(y_prob[order], dtype=float), y_true[order], cell[order]


def tuned_fixed(y_true, y_prob, n_resamples, seed):
    """Predictions fixed: 7 ns.

    A class is the number of cumulative thresholds that a uniform word reaches, added up class by class in bytes, each
    class a contiguous row of thresholds; one bincount of (cell, class). Tried: np.add.reduceat of the comparisons,
    class by class or in one call 8 (float32 uniforms 10), of eight bytes at a time 8; this with float32 uniforms 8.4,
    with one comparison of all classes 11; alias tables 17.
    """
    prob, outcome, cell = problem(y_true, y_prob)
    n, k = prob.shape
    threshold = np.ascontiguousarray(as_words(cumulative(prob)[:, :-1]).T)
    rng = generator(seed)
    reached = np.empty(n, dtype=bool)
    drawn = np.empty(n, dtype=np.uint8)
    base = cell * k
    place = np.empty(n, dtype=np.intp)
    count = np.empty((n_resamples + 1, (cell[-1] + 1) * k), dtype=np.int32)
    for row in count[:-1]:
        word = random_words(rng, n)
        np.greater_equal(word, threshold[0], out=drawn.view(bool))
        for t in threshold[1:]:
            np.greater_equal(word, t, out=reached)
            np.add(drawn, reached.view(np.uint8), out=drawn)
        np.add(base, drawn, out=place)
        row[:] = np.bincount(place, minlength=len(row))
    count[-1] = np.bincount(base + outcome, minlength=count.shape[1])
    predicted = np.add.reduceat(prob, _starts(cell), axis=0).ravel()
    error = np.array([np.abs(row - predicted).sum() for row in count]) / (2 * n)
    return error[-1], error[:-1]


def plain_fixed(y_true, y_prob, n_resamples, seed):
    """Predictions fixed, the way it is usually written: cumulative probabilities and bincount."""
    prob, outcome, cell = problem(y_true, y_prob)
    n, k = prob.shape
    bound = cumulative(prob)[:, :-1]
    size = (cell[-1] + 1) * k
    predicted = np.add.reduceat(prob, _starts(cell), axis=0).ravel()
    rng = np.random.default_rng(seed)

    def error(label):
        return np.abs(np.bincount(cell * k + label, minlength=size) - predicted).sum() / (2 * n)

    null = np.array([error((rng.random((n, 1)) >= bound).sum(axis=1)) for _ in range(n_resamples)])
    return error(outcome), null


def tuned_resampled(y_true, y_prob, n_resamples, seed):
    """Rows resampled: 16 ns.

    Row and class come from one uniform number and an alias table. Predictions of the drawn rows are added up by BLAS:
    multiplicities of a block of resamples times the predictions of each cell, in float32. Tried: thresholds of rows
    drawn in the order of cells and np.add.reduceat 27; looking up ten predictions per drawn row (`plain_resampled`)
    115 to 210.
    """
    block = 64
    prob, outcome, cell = problem(y_true, y_prob)
    n, k = prob.shape
    start = _starts(cell)
    slices = [slice(a, b) for a, b in zip(start, np.append(start[1:], n), strict=True)]
    single = prob.astype(np.float32)
    source = RowsAndClasses(prob, cell[:, None] * k + np.arange(k))
    rng = generator(seed)
    times = np.empty((block, n), dtype=np.float32)
    counted = np.empty((block, len(start) * k), dtype=np.float32)
    predicted = np.empty((len(start), block, k), dtype=np.float32)
    null = np.empty((-(-n_resamples // block), block))
    for errors in null:
        for r in range(block):
            row, where = source.draw(rng)
            times[r] = np.bincount(row, minlength=n)
            counted[r] = np.bincount(where, minlength=len(start) * k)
        for rows, sums in zip(slices, predicted, strict=True):
            np.matmul(times[:, rows], single[rows], out=sums)
        difference = counted.reshape(block, -1, k) - predicted.transpose(1, 0, 2)
        errors[:] = np.abs(difference).sum(axis=(1, 2)) / (2 * n)
    seen = np.bincount(cell * k + outcome, minlength=len(start) * k).reshape(-1, k)
    observed = np.abs(seen - np.add.reduceat(prob, start, axis=0)).sum() / (2 * n)
    return observed, null.ravel()[:n_resamples]


def plain_resampled(y_true, y_prob, n_resamples, seed):
    """Rows resampled, the way it is usually written: copies of rows, one bincount per class."""
    prob, outcome, cell = problem(y_true, y_prob)
    n, k = prob.shape
    bound = cumulative(prob)[:, :-1]
    n_cells = cell[-1] + 1
    rng = np.random.default_rng(seed)

    def error(p, label, where):
        seen = np.bincount(where * k + label, minlength=n_cells * k).reshape(n_cells, k)
        predicted = np.stack([np.bincount(where, weights=column, minlength=n_cells) for column in p.T], axis=1)
        return np.abs(seen - predicted).sum() / (2 * n)

    null = np.empty(n_resamples)
    for r in range(n_resamples):
        row = rng.integers(0, n, n)
        label = (rng.random((n, 1)) >= bound[row]).sum(axis=1)
        null[r] = error(prob[row], label, cell[row])
    return error(prob, outcome, cell), null


def _starts(cell):
    return np.flatnonzero(np.diff(cell, prepend=-1))
