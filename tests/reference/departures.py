"""Slow twins of drawing and counting labels by their departures from the usual ones."""

import numpy as np

from caltest._compiled._draws import random_words


def labels_of_points(points, seed, replicate):
    """The labels of one replicate, point by point, from the same random words."""
    words = np.empty((1, len(points.number)), dtype=np.uint64)
    random_words(seed, replicate, words)
    first, *others = (int(word) for word in words[0])
    labels, hit = points.usual.astype(int), set()
    n_points = next(j for j, threshold in enumerate(points.number) if int(threshold) >= first)
    for word in others[:n_points]:
        high, low = word >> 32, word & 0xFFFFFFFF  # in halves, which may lose a carry
        split = high * len(points.table) + ((low * len(points.table)) >> 32)
        threshold, own, alias = (int(x) for x in points.table[split >> 32])
        entry = own if split & 0xFFFFFFFF < threshold else alias
        row = entry >> points.shift
        if row not in hit:
            hit.add(row)
            labels[row] = entry - (row << points.shift)
    return labels


def probabilities_of_points(points, n_outcomes):
    """The probabilities of labels ``(n_samples, n_outcomes)`` in the tables that points are drawn from."""
    threshold, own, alias = points.table.T
    kept, m = threshold / 2**32, len(points.table)
    share = np.zeros(points.n_samples << points.shift)
    np.add.at(share, own, kept / m)
    np.add.at(share, alias, (1 - kept) / m)
    below = points.number.astype(float) / 2.0**64
    mean = np.sum(1 - below)  # of the number of points
    rate = share.reshape(points.n_samples, -1)[:, :n_outcomes] * mean
    total = rate.sum(axis=1)
    prob = rate * np.divide(-np.expm1(-total), total, out=np.zeros_like(total), where=total > 0)[:, None]
    prob[np.arange(points.n_samples), points.usual] = np.exp(-total)
    return prob
