"""Statistics of signed residuals and sums over pairs of groups, one loop after the other."""

import numpy as np

from caltest.predictions.cells._cells import cells_of


def residuals(sample, sign):
    """Residuals ``(n_samples, n_outcomes)`` times the weight and the sign of the group."""
    rows = []
    for i in range(sample.n_samples):
        weight = 1.0 if sample.weight is None else sample.weight[i]
        unit = np.zeros(sample.n_outcomes)
        unit[sample.outcome[i]] = 1.0
        rows.append(sign[sample.group[i]] * weight * (unit - sample.null_prob[i]))
    return np.array(rows)


def cell_sums(sample, partition, values):
    """Sums over cells of a list of vectors, by cell."""
    index = cells_of(sample, partition).index
    return [sum(values[i] for i in np.flatnonzero(index == b)) for b in range(index.max() + 1)]


def ece(sample, partition, sign):
    """Expected calibration error with total variation."""
    total = sample.n_samples if sample.weight is None else sample.weight.sum()
    return sum(0.5 * np.abs(s).sum() for s in cell_sums(sample, partition, residuals(sample, sign))) / total


def squared_l2(sample, partition, sign):
    """Debiased squared l2 error, pair by pair."""
    e, index = residuals(sample, sign), cells_of(sample, partition).index
    w = np.ones(sample.n_samples) if sample.weight is None else sample.weight
    if sample.n_outcomes == 2:
        e = e[:, 1:]
    total = 0.0
    for b in range(index.max() + 1):
        rows = np.flatnonzero(index == b)
        pairs = sum(w[i] * w[j] for i in rows for j in rows if i != j)
        if pairs > 0:
            total += w[rows].sum() / w.sum() * sum(e[i] @ e[j] for i in rows for j in rows if i != j) / pairs
    return total


def classwise_ks(sample, sign):
    """Largest standardised cumulative residual of all classes."""
    e, largest = residuals(sample, sign), 0.0
    for k in range(sample.n_outcomes):
        p, q = sample.prob[:, k], sample.null_prob[:, k]
        w = np.ones(sample.n_samples) if sample.weight is None else sample.weight
        path = [abs(e[p <= s, k].sum()) for s in np.unique(p)]
        largest = max(largest, max(path) / np.sqrt((w**2 * q * (1 - q)).sum()))
    return largest


def skce(statistic, sample, sign):
    """Kernel calibration error, pair by pair."""
    e, similarity = residuals(sample, sign), statistic.similarity(sample)
    w = np.ones(sample.n_samples) if sample.weight is None else sample.weight
    own = statistic.estimator == "biased"
    pairs = [(i, j) for i in range(sample.n_samples) for j in range(sample.n_samples) if i != j or own]
    total = sum(float(similarity.between(sample.prob[i], sample.prob[j])) * (e[i] @ e[j]) for i, j in pairs)
    return total / sum(w[i] * w[j] for i, j in pairs)


def temperature(sample, sign):
    """Absolute score of temperature scaling."""
    return abs((residuals(sample, sign) * np.log(sample.prob)).sum())


def terms_of_groups(sample, partition):
    """T, the terms H of all pairs of groups and the linear score of each group, with CR2 sums, by loops."""
    e, index = residuals(sample, np.ones(sample.group.max() + 1)), cells_of(sample, partition).index
    w = np.ones(sample.n_samples) if sample.weight is None else sample.weight
    e = e[:, 1:] if sample.n_outcomes == 2 else e
    groups, total = sorted(set(sample.group.tolist())), w.sum()
    value, terms, score = 0.0, np.zeros((len(groups), len(groups))), np.zeros(len(groups))
    for b in set(index.tolist()):
        rows = [(index == b) & (sample.group == g) for g in groups]
        weight = np.array([w[r].sum() for r in rows])
        sums = np.array([e[r].sum(axis=0) for r in rows])
        if np.count_nonzero(weight) < 2:
            continue
        factor, mean = weight.sum() / (weight.sum() ** 2 - np.square(weight).sum()), sums.sum(axis=0) / weight.sum()
        centred = [(s - x * mean) / np.sqrt(1 - x / weight.sum()) for s, x in zip(sums, weight, strict=True)]
        for g in range(len(groups)):
            score[g] += 2 / total * centred[g] @ mean
            for h in range(len(groups)):
                if g != h:
                    value += factor * sums[g] @ sums[h] / total
                    terms[g, h] += factor * centred[g] @ centred[h]
    return value, terms, score


def variance_of_groups(samples, partition):
    """D and Var(D) = max(P, L - P) of two models on the same groups, by loops."""
    (one, first, along), (two, second, other) = (terms_of_groups(sample, partition) for sample in samples)
    weight = samples[0].n_samples if samples[0].weight is None else samples[0].weight.sum()
    pairs, linear = 2 * np.square(first - second).sum() / weight**2, np.square(along - other).sum()
    return one - two, max(pairs, linear - pairs)
