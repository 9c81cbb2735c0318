"""What a careful NumPy user would write: the null distribution of the confidence ECE with 15 equal-width cells.

Predictions are fixed and outcomes redrawn from them, as in `caltest.calibration_test`. Nothing of caltest is used.
"""

import numpy as np

N_CELLS = 15


def tuned_loop(y_true, y_prob, n_resamples, seed):
    """Return the observed error and ``n_resamples`` null values; every pass over the rows is one NumPy call.

    What was measured to help: rows sorted by cell, so that a cell is a slice (np.add.reduceat, 3 to 30 times faster
    than bincount, cumsum or one count_nonzero per cell); the fastest generator (SFC64) filling a reused float32
    buffer; comparing into a reused boolean buffer; summing bytes in the smallest type that holds the counts; the
    distance once, at the end.
    """
    confidence = y_prob.max(axis=1)
    correct = y_prob.argmax(axis=1) == y_true
    cell = _cells(confidence)
    order = np.argsort(cell, kind="stable")
    confidence = np.ascontiguousarray(confidence[order], dtype=np.float32)
    start = np.flatnonzero(np.diff(cell[order], prepend=-1))
    predicted = np.add.reduceat(confidence.astype(float), start)
    n_samples = len(confidence)

    rng = np.random.Generator(np.random.SFC64(seed))
    uniform = np.empty(n_samples, dtype=np.float32)
    happened = np.empty(n_samples, dtype=bool)
    as_bytes = happened.view(np.uint8)
    count = np.empty((n_resamples + 1, len(start)), dtype=np.min_scalar_type(n_samples))
    happened[:] = correct[order]
    np.add.reduceat(as_bytes, start, dtype=count.dtype, out=count[-1])
    for row in count[:-1]:
        rng.random(out=uniform, dtype=np.float32)
        np.less(uniform, confidence, out=happened)
        np.add.reduceat(as_bytes, start, dtype=count.dtype, out=row)
    error = np.abs(count - predicted).sum(axis=1) / n_samples
    return error[-1], error[:-1]


def plain_loop(y_true, y_prob, n_resamples, seed):
    """Return the observed error and ``n_resamples`` null values, the way it is usually written: bincount."""
    confidence = y_prob.max(axis=1).astype(float)
    correct = y_prob.argmax(axis=1) == y_true
    cell = _cells(confidence)
    predicted = np.bincount(cell, weights=confidence, minlength=N_CELLS)
    rng = np.random.default_rng(seed)

    def error(outcome):
        return np.abs(np.bincount(cell, weights=outcome, minlength=N_CELLS) - predicted).sum() / len(cell)

    null = np.array([error(rng.random(len(cell)) < confidence) for _ in range(n_resamples)])
    return error(correct), null


def _cells(confidence):
    return np.searchsorted(np.arange(1, N_CELLS) / N_CELLS, confidence, side="right")
