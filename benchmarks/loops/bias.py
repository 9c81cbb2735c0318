"""Estimates of many data sets of a one-dimensional Gaussian mixture as a NumPy user would compute them.

Both loops take the logistic parameters, the number of observations, numbers of cells, the kinds of statistics (of
`KINDS`), a number of replicates and a seed, and return the estimates ``(n_replicates, n_statistics)``. Predictions
are all different, which the tuned loop makes use of, or all the same.
"""

from itertools import pairwise

import numpy as np

KINDS = ("ECE", "equal mass, SquaredL2 and KS", "GCE", "trees")


def draw(beta, n, rng):
    """Return outcomes and probabilities of the event."""
    y = rng.integers(2, size=n)
    x = rng.standard_normal(n) + 2 * y - 1
    return y, 1 - 1 / (1 + np.exp(-(beta[0] + beta[1] * x)))


def plain(beta, n, cells, kinds, *, n_replicates, seed):
    """The way it is usually written (Guo et al. 2017): a mask for each cell."""
    rng = np.random.default_rng(seed)
    return np.array([plain_estimates(*draw(beta, n, rng), cells, kinds) for _ in range(n_replicates)])


def tuned(beta, n, cells, kinds, *, n_replicates, seed):
    """The fastest that was found: a bincount of residuals for each partition, or sums of what was sorted once."""
    rng = np.random.default_rng(seed)
    return np.array([tuned_estimates(*draw(beta, n, rng), cells, kinds) for _ in range(n_replicates)])


def plain_estimates(y, p, cells, kinds):
    """Return the estimates of one data set, by masks."""
    n, row = len(p), []
    if KINDS[0] in kinds:
        row += [_masked(y, p, np.linspace(0, 1, count + 1)) for count in cells]
    if KINDS[1] in kinds:
        order = np.argsort(p, kind="stable")
        y, p = y[order], p[order]
        row += [_masked(y, p, [*(part[0] for part in np.array_split(p, count)), 2]) for count in cells]
        row += [_debiased(y, p, np.array_split(np.arange(n), count)) for count in cells]
        row.append(np.abs(np.cumsum(y - p)).max() / n)
    if KINDS[2] in kinds:
        classes = (1 - y, 1 - p), (y, p)
        for count in cells:
            row.append(np.mean([_masked(*one, np.linspace(0, 1, count + 1)) for one in classes]))
            first = np.rint(np.linspace(0, n, count, endpoint=False)).astype(int)
            row.append(np.mean([_masked(*one, [*np.sort(one[1])[first], 2]) for one in classes]))
    if KINDS[3] in kinds:
        leaves = _leaves(p, np.arange(n), _smallest_leaf(n))
        row.append(sum(len(leaf) / n * abs(y[leaf].mean() - p[leaf].mean()) for leaf in leaves))
        row.append(_debiased(y, p, leaves))
    return row


def tuned_estimates(y, p, cells, kinds):
    """Return the estimates of one data set, by bincount and reduceat."""
    n, row = len(p), []
    residual = y - p
    if KINDS[0] in kinds:
        row += [np.abs(np.bincount((p * count).astype(np.intp), residual)).sum() / n for count in cells]
    if KINDS[2] in kinds:
        widths = [
            [np.abs(np.bincount((one * count).astype(np.intp), residual)).sum() / n for one in (1 - p, p)]
            for count in cells
        ]
    if len(kinds) > 1 or KINDS[0] not in kinds:
        order = np.argsort(p)
        residual = residual[order]
        square = residual * residual
    if KINDS[1] in kinds:
        starts = [np.arange(count) * (n // count) + np.minimum(np.arange(count), n % count) for count in cells]
        found = [_between(residual, square, start[start < n]) for start in starts]
        row += [error for error, _ in found] + [debiased for _, debiased in found]
        row.append(np.abs(np.cumsum(residual)).max() / n)
    if KINDS[2] in kinds:
        reverse = residual[::-1]
        for count, errors in zip(cells, widths, strict=True):
            row.append(sum(errors) / 2)
            first = np.rint(np.linspace(0, n, count, endpoint=False)).astype(np.intp)
            row.append(sum(np.abs(np.add.reduceat(one, first)).sum() for one in (reverse, residual)) / n / 2)
    if KINDS[3] in kinds:
        row += _between(residual, square, np.array(_leaf_starts(p[order], 0, n, _smallest_leaf(n))))
    return row


def _masked(y, p, edges):
    error = 0.0
    for low, high in pairwise(edges):
        inside = (p >= low) & (p < high)
        if inside.any():
            error += inside.mean() * abs(y[inside].mean() - p[inside].mean())
    return error


def _debiased(y, p, cells):
    error = 0.0
    for cell in cells:
        if len(cell) > 1:
            residual = y[cell] - p[cell]
            error += (residual.sum() ** 2 - (residual**2).sum()) / (len(cell) - 1) / len(y)
    return error


def _between(residual, square, start):
    size = np.diff(start, append=len(residual))
    gap = np.add.reduceat(residual, start)
    debiased = (gap**2 - np.add.reduceat(square, start)) / np.maximum(size - 1, 1)
    return np.abs(gap).sum() / len(residual), debiased.sum() / len(residual)


def _smallest_leaf(n):
    return max(1, int(0.7 * n / 2 ** round(0.3 * np.log2(n))))


def _leaves(p, rows, smallest):
    if len(rows) < 2 * smallest or np.ptp(p[rows]) == 0:
        return [rows]
    median = np.sort(p[rows])[len(rows) // 2]
    below = p[rows] <= median if len(rows) % 2 and median < 0.5 else p[rows] < median
    return _leaves(p, rows[below], smallest) + _leaves(p, rows[~below], smallest)


def _leaf_starts(p, start, stop, smallest):
    size = stop - start
    if size < 2 * smallest or p[start] == p[stop - 1]:
        return [start]
    middle = start + size // 2
    middle += size % 2 and p[middle] < 0.5
    return _leaf_starts(p, start, middle, smallest) + _leaf_starts(p, middle, stop, smallest)
