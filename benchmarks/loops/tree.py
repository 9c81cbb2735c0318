"""ECE over the median-variance tree, fitted again to every resample of the rows; 10 classes (canonical) and 2.

The tree: a node of at least ``2 * min_leaf`` rows is cut at the upper median of the class that varies most in it,
before or beyond the rows that are equal to it, if both sides keep ``min_leaf`` rows. The loops try no other class, as
`caltest.VarianceTree` does where many predictions are equal.
"""

import numpy as np

from benchmarks.loops.drawing import RowsAndClasses, RowsAndEvents, cumulative, generator

MIN_LEAF = 100


def tuned_classes(y_true, y_prob, n_resamples, seed, min_leaf=MIN_LEAF):
    """Ten classes: 175 ns with 64 leaves, 100 ns with 16.

    All nodes of a level at once, because a call for each of 127 nodes costs more than the arithmetic: rows stand in
    the order of their nodes; what is below its node's median comes first, in one take for all nodes. Only sums over
    left children are made, the right ones are differences. The resample's rows are row numbers into a table of
    centred predictions and their squares, so that mean and variance of ten classes are one matrix product per node.
    np.partition runs once per node (AVX2 inside). Tried: stacks of nodes with index lists, boolean masks and X.var
    (`plain_classes`) 1,035; nodes that own copies of their rows, sums by BLAS and einsum 288 (113 with 16 leaves),
    in float64 325; nodes with row numbers only 374; boolean indexing instead of nonzero and take 390; np.add.reduceat
    for the sums of all nodes 215; medians of float32 ranks instead of float64 values 179.
    """
    prob, outcome = np.ascontiguousarray(y_prob, dtype=float), np.asarray(y_true)
    n, k = prob.shape
    grow = _LevelwiseTree(prob, min_leaf)
    source = RowsAndClasses(prob, np.tile(np.arange(k, dtype=np.uint8), (n, 1)))
    rng = generator(seed)
    null = np.array([grow.error(*source.draw(rng)) for _ in range(n_resamples)])
    return grow.error(np.arange(n), outcome), null


class _LevelwiseTree:
    def __init__(self, prob, min_leaf):
        self._k = prob.shape[1]
        self._mean = prob.mean(axis=0)
        centred = prob - self._mean
        self._table = np.concatenate([centred, centred**2], axis=1).astype(np.float32)
        self._prob = prob.ravel()
        self._one = np.ones(len(prob), dtype=np.float32)
        self._min_leaf = min_leaf

    def _sums(self, row, size):
        """Return the sums of centred predictions and squares over consecutive groups of rows, ``(n_groups, 2 k)``."""
        values = self._table.take(row, axis=0, mode="clip")
        sums = np.empty((len(size), values.shape[1]), dtype=np.float32)
        start = 0
        for stop, out in zip(np.cumsum(size).tolist(), sums, strict=True):
            np.matmul(self._one[: stop - start], values[start:stop], out=out)
            start = stop
        return sums.astype(float)

    def error(self, row, outcome):
        """Return the error of the given rows (repeats allowed) and their outcomes, on the tree fitted to them."""
        k, n, total = self._k, len(row), 0.0
        size = np.array([n])
        sums = self._sums(row, size)
        while len(size):
            start = np.cumsum(size) - size
            splits = size >= 2 * self._min_leaf
            if splits.any():
                value, median = self._medians(row, size, start, sums)
                below = value < np.repeat(median, size)
                n_below = np.add.reduceat(below.view(np.uint8), start, dtype=np.intp)
                stuck = splits & (n_below < self._min_leaf)
                if stuck.any():
                    below |= (value == np.repeat(median, size)) & np.repeat(stuck, size)
                    n_below = np.add.reduceat(below.view(np.uint8), start, dtype=np.intp)
                splits &= np.minimum(n_below, size - n_below) >= self._min_leaf
            if not splits.all():
                node = np.repeat(np.arange(len(size)), size)
                seen = np.bincount(node * k + outcome, minlength=len(size) * k).reshape(-1, k)
                predicted = sums[:, :k] + size[:, None] * self._mean
                total += np.abs(seen - predicted)[~splits].sum()
                if not splits.any():
                    break
                keep = splits[node]
                row, outcome, below = row[keep], outcome[keep], below[keep]
                size, n_below, sums = size[splits], n_below[splits], sums[splits]
            left = below.nonzero()[0]
            order = np.concatenate([left, (~below).nonzero()[0]])
            row, outcome = row.take(order, mode="clip"), outcome.take(order, mode="clip")
            left_sums = self._sums(row[: len(left)], n_below)
            size = np.concatenate([n_below, size - n_below])
            sums = np.concatenate([left_sums, sums - left_sums])
        return total / (2 * n)

    def _medians(self, row, size, start, sums):
        """Return the values of the rows and the upper median of each node, on the class that varies most there."""
        k = self._k
        widest = (sums[:, k:] - sums[:, :k] ** 2 / size[:, None]).argmax(axis=1)
        at = row * k
        at += np.repeat(widest, size)
        value = self._prob.take(at, mode="clip")
        partitioned = value.copy()
        for first, count in zip(start.tolist(), size.tolist(), strict=True):
            partitioned[first : first + count].partition(count // 2)
        return value, partitioned[start + size // 2]


def plain_classes(y_true, y_prob, n_resamples, seed, min_leaf=MIN_LEAF):
    """Ten classes, the way it is usually written: a stack of index lists, np.var, np.partition, boolean masks."""
    prob, outcome = np.asarray(y_prob, dtype=float), np.asarray(y_true)
    n, k = prob.shape
    bound = cumulative(prob)[:, :-1]
    rng = np.random.default_rng(seed)

    def error(p, label):
        leaves = _grow(p, min_leaf)
        return sum(np.abs(np.bincount(label[i], minlength=k) - p[i].sum(axis=0)).sum() for i in leaves) / (2 * n)

    null = np.empty(n_resamples)
    for r in range(n_resamples):
        row = rng.integers(0, n, n)
        null[r] = error(prob[row], (rng.random((n, 1)) >= bound[row]).sum(axis=1))
    return error(prob, outcome), null


def tuned_events(y_true, y_prob, n_resamples, seed, min_leaf=MIN_LEAF):
    """Two classes: 17 ns with 64 leaves, 13 ns with 16.

    Rows stay sorted by probability and carry how often they were drawn; with cumulative multiplicities a node is a
    range of rows, its median a binary search, and all nodes of a level in eight resamples are one np.searchsorted
    (1 resample per call 26, 4 18, 16 27). No variance is needed where there is one class to choose from. Tried: nodes
    that own copies of their values, np.partition 100; index lists, np.partition and boolean masks (`plain_events`) 170.
    """
    block = 8
    p, happened = _sorted_events(y_true, y_prob)
    n = len(p)
    source = RowsAndEvents(p)
    errors = _SortedTree(p, min_leaf).errors
    rng = generator(seed)
    rows = np.empty((block, n), dtype=np.intp)
    events = np.empty((block, n), dtype=np.intp)
    null = np.empty((-(-n_resamples // block), block))
    for values in null:
        for r in range(block):
            source.draw(rng, rows[r], events[r])
        values[:] = errors(rows, events)
    return errors(np.ones((1, n), dtype=np.intp), happened[None])[0], null.ravel()[:n_resamples]


class _SortedTree:
    def __init__(self, p, min_leaf):
        self._p = p
        self._tie, self._beyond = np.searchsorted(p, p), np.searchsorted(p, p, side="right")  # the block of ties
        self._min_leaf = min_leaf

    def errors(self, rows, events):
        """Return the error of each resample, given by multiplicities ``(n_resamples, n)``, on its own tree."""
        n = len(self._p)
        drawn = np.zeros(rows.size + 1, dtype=np.intp)
        np.cumsum(rows, out=drawn[1:])
        start = np.arange(len(rows)) * n
        stop, leaves = start + n, []
        while len(start):
            before = drawn[start]
            size = drawn[stop] - before
            median = drawn.searchsorted(before + size // 2, side="right") - 1
            cut = np.maximum(median - median % n + self._tie[median % n], start)
            below = drawn[cut] - before
            beyond = np.minimum(median - median % n + self._beyond[median % n], stop)
            up_to = drawn[beyond] - before
            lead = np.abs(2 * below - size) - np.abs(2 * up_to - size)
            better = (lead > 0) | ((lead == 0) & (self._p[median % n] < 0.5))
            cut, below = np.where(better, beyond, cut), np.where(better, up_to, below)
            splits = np.minimum(below, size - below) >= self._min_leaf
            if not splits.all():
                leaves.append(start[~splits])
                start, stop, cut = start[splits], stop[splits], cut[splits]
            start, stop = np.concatenate([start, cut]), np.concatenate([cut, stop])
        leaf = np.sort(np.concatenate(leaves))
        residual = np.add.reduceat((events - rows * self._p).ravel(), leaf)
        return np.bincount(leaf // n, weights=np.abs(residual)) / n


def plain_events(y_true, y_prob, n_resamples, seed, min_leaf=MIN_LEAF):
    """Two classes, the way it is usually written: a stack of index lists, np.partition, boolean masks."""
    p, happened = _sorted_events(y_true, y_prob)
    n = len(p)
    rng = np.random.default_rng(seed)

    def error(event, outcome):
        residual = outcome - event
        return sum(abs(residual[i].sum()) for i in _grow(event[:, None], min_leaf)) / n

    null = np.empty(n_resamples)
    for r in range(n_resamples):
        event = p[rng.integers(0, n, n)]
        null[r] = error(event, rng.random(n) < event)
    return error(p, happened), null


def _sorted_events(y_true, y_prob):
    """Return event probabilities, increasing, and outcomes."""
    event = np.asarray(y_prob, dtype=float)
    order = np.argsort(event, kind="stable")
    return event[order], np.asarray(y_true)[order].astype(bool)


def _grow(prob, min_leaf):
    """Return the rows of each leaf."""
    stack, leaves = [np.arange(len(prob))], []
    while stack:
        row = stack.pop()
        if len(row) >= 2 * min_leaf:
            widest = prob[row].var(axis=0).argmax() if prob.shape[1] > 1 else 0
            value = prob[row, widest]
            median = np.partition(value, len(row) // 2)[len(row) // 2]
            below = _below(value, median, min_leaf, is_event=prob.shape[1] == 1)
            if min(below.sum(), (~below).sum()) >= min_leaf:
                stack += [row[below], row[~below]]
                continue
        leaves.append(row)
    return leaves


def _below(value, median, min_leaf, *, is_event):
    """Return which rows are cut off below: before the ties of the median, or with them."""
    before, beyond = value < median, value <= median
    if is_event:
        lead = abs(2 * before.sum() - len(value)) - abs(2 * beyond.sum() - len(value))
        return beyond if lead > 0 or (lead == 0 and median < 0.5) else before
    return beyond if before.sum() < min_leaf else before
