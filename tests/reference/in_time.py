"""Sums over pairs of observations that are a lead or more apart, and cosines of the time, one loop after the other."""

import math

import numpy as np

from caltest.predictions.cells._cells import cells_of


def number_of_cosines(step, lead):
    """K: a third of the windows, at most .4 n^(2/3), or 8 where that is less, and at most 100; at least 2."""
    windows, times = (max(step) + 1) / lead, len(set(step))
    return max(2, min(int(windows / 3 + 1e-9), max(8, int(0.4 * times ** (2 / 3))), 100))


def terms_in_time(sample, partition):
    """T, the terms of all pairs of cosines, and the linear score of each cosine."""
    index, step, lead = cells_of(sample, partition).index, sample.timing.step.tolist(), sample.timing.lead
    w = np.ones(sample.n_samples) if sample.weight is None else sample.weight
    e = np.eye(sample.n_outcomes)[sample.outcome] - sample.prob
    e = e[:, 1:] if sample.n_outcomes == 2 else e
    number, total = number_of_cosines(step, lead), w.sum()
    value, terms, score = 0.0, np.zeros((number, number)), np.zeros(number)
    for b in set(index.tolist()):
        rows = np.flatnonzero(index == b)
        far = [(i, j) for i in rows for j in rows if abs(step[i] - step[j]) >= lead]
        near = w[rows].sum() ** 2 - sum(w[i] * w[j] for i, j in far)
        if w[rows].sum() ** 2 < (2 - 1e-9) * near:
            continue
        factor = w[rows].sum() / sum(w[i] * w[j] for i, j in far)
        value += factor * sum(w[i] * w[j] * e[i] @ e[j] for i, j in far) / total
        mean = sum(w[i] * e[i] for i in rows) / w[rows].sum()
        vectors, left = [], 0.0
        for j in range(1, number + 1):
            cosine = {i: math.sqrt(2) * math.cos(math.pi * j * (step[i] + 0.5) / (max(step) + 1)) for i in rows}
            middle = sum(w[i] * cosine[i] for i in rows) / w[rows].sum()
            left += sum(w[i] ** 2 * (cosine[i] - middle) ** 2 for i in rows)
            vectors.append(sum(w[i] * cosine[i] * (e[i] - mean) for i in rows))
        share = max(left / number / sum(w[i] ** 2 for i in rows), 0.01)
        vectors = np.array(vectors) / math.sqrt(number * share)
        for j in range(number):
            score[j] += 2 / total * vectors[j] @ mean
            for k in range(number):
                terms[j, k] += factor * vectors[j] @ vectors[k] * (j != k)
    return value, terms * math.sqrt(number / (number - 1)), score


def variance_in_time(samples, partition):
    """D and Var(D) = 2 Q / W^2 + max(0, L) of two models at the same times."""
    (one, first, along), (two, second, other) = (terms_in_time(sample, partition) for sample in samples)
    weight = samples[0].n_samples if samples[0].weight is None else samples[0].weight.sum()
    squares = np.square(first - second).sum() / weight**2
    return one - two, 2 * squares + max(0.0, np.square(along - other).sum() - 4 * squares)


def law_in_time(sample, partition):
    """T, its null deviation and the unit of its chi-squared distribution, two outcomes without weights."""
    index, step, lead = cells_of(sample, partition).index, sample.timing.step.tolist(), sample.timing.lead
    value, terms, score = terms_in_time(sample, partition)
    number, n = len(score), sample.n_samples
    error = sample.outcome - sample.event
    mean = np.array([error[index == b].mean() for b in index])
    centred, variance = error - mean, sample.event * (1 - sample.event)
    near = [(i, j) for i in range(n) for j in range(n) if abs(step[i] - step[j]) < lead]
    inflation = max(1.0, sum(centred[i] * centred[j] for i, j in near) / np.square(centred).sum())
    predicted = squares = trace = 0.0
    for b in set(index.tolist()):
        rows = np.flatnonzero(index == b)
        far = sum(abs(step[i] - step[j]) >= lead for i in rows for j in rows)
        predicted += (len(rows) / far * inflation * variance[rows].sum()) ** 2
        cosine = np.array([
            [math.sqrt(2) * math.cos(math.pi * j * (step[i] + 0.5) / (max(step) + 1)) for i in rows]
            for j in range(1, number + 1)
        ])  # fmt: skip
        share = np.square(cosine - cosine.mean(axis=1, keepdims=True)).sum() / number / len(rows)
        own = np.square(cosine @ centred[rows]) / number / share
        squares += (own.sum() ** 2 - np.square(own).sum()) * number / (number - 1) / len(rows)
        trace += own.sum()
    noise = math.sqrt(2 * max(np.square(terms).sum(), predicted)) / n
    along = np.square(score * n / 2).sum() / np.square(mean).sum()
    return value, noise, max(along, squares / trace, inflation * variance.sum() / n) / n
