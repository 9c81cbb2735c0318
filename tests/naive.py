"""Slow and obvious twins of the package: every definition as loops over plain lists, to be read beside the papers.

Rows are lists of floats, outcomes are ints, weights are lists or None. NumPy serves as logarithm and to hand arrays
to a user's functions, nothing else. Variances and means are exact fractions, so that ties are ties.
"""

from fractions import Fraction
from functools import cache

import numpy as np

import caltest

TIE_TOLERANCE = 1e-12


# Lenses: one row of probabilities and its outcome.


def ranking(p):
    """Classes from the most to the least probable; among equals the smaller index first."""
    left = list(range(len(p)))
    order = []
    while left:
        best = left[0]
        for k in left:
            if p[k] > p[best]:
                best = k
        order.append(best)
        left.remove(best)
    return order


def event(p, happened):
    """Two outcomes: the rest and the event."""
    return [1 - p, p], int(happened)


def top_rank(p, y, rank):
    """The class of the rank-th largest probability against the rest."""
    chosen = ranking(p)[rank - 1]
    return event(p[chosen], y == chosen)


def within_top(p, y, rank):
    """Is the outcome among the rank most probable classes?"""
    chosen = ranking(p)[:rank]
    return event(sum(p[k] for k in chosen), y in chosen)


def top_k(p, y, k):
    """The ordered k largest probabilities and the rest; one alone is the confidence."""
    if k == 1:
        return top_rank(p, y, 1)
    chosen = ranking(p)[:k]
    top = [p[c] for c in chosen]
    return [*top, 1 - sum(top)], chosen.index(y) if y in chosen else k


def groups(p, y, parts):
    """Outcome i is "one of the classes of part i"."""
    induced = [sum(p[k] for k in part) for part in parts]
    return induced, next(i for i, part in enumerate(parts) if y in part)


LENSES = {
    caltest.Canonical: lambda _, p, y: (list(p), y),
    caltest.Confidence: lambda _, p, y: top_rank(p, y, 1),
    caltest.TopK: lambda lens, p, y: top_k(p, y, lens.k),
    caltest.TopRank: lambda lens, p, y: top_rank(p, y, lens.rank),
    caltest.WithinTop: lambda lens, p, y: within_top(p, y, lens.rank),
    caltest.ClassWise: lambda lens, p, y: event(p[lens.k], y == lens.k),
    caltest.Groups: lambda lens, p, y: groups(p, y, lens.groups),
}


def look(lens, prob, outcome):
    """A lens row by row: induced probabilities and induced outcomes; a user's function receives arrays of one row."""
    if type(lens) in LENSES:
        seen = [LENSES[type(lens)](lens, list(p), int(y)) for p, y in zip(prob, outcome, strict=True)]
    else:
        pairs = [lens(np.array([p]), np.array([y])) for p, y in zip(prob, outcome, strict=True)]
        seen = [(induced[0], y[0]) for induced, y in pairs]
    return [p for p, _ in seen], [y for _, y in seen]


# Partitions: a fitted partition is a function from one row of probabilities to a label.


def width_cell(x, n_cells, closed):
    """The j with j / n_cells <= x < (j + 1) / n_cells, or with the other end closed; 0 and 1 lie in the end cells."""
    if closed == "left":
        cell = n_cells - 1
        while cell > 0 and x < cell / n_cells:
            cell -= 1
        return cell
    cell = 0
    while cell < n_cells - 1 and x > (cell + 1) / n_cells:
        cell += 1
    return cell


def equal_width(partition, prob):
    """Equal cells of the event, or the product grid over all classes but the last, or over all of them."""
    n_outcomes = len(prob[0])
    axes = range(n_outcomes if partition.axes == "all" else n_outcomes - 1)
    if n_outcomes == 2:
        axes = [1]
    return lambda p: tuple(width_cell(p[k], partition.n_cells, partition.closed) for k in axes)


def edges(partition, prob):
    """The number of edges below the event's probability; one that is hit counts as below if closed on the left."""
    require_two_outcomes(prob)

    def assign(p):
        return sum(edge < p[1] or (edge == p[1] and partition.closed == "left") for edge in partition.edges)

    return assign


def equal_mass(partition, prob):
    """Cut the sorted rows as numpy.array_split does; a block of ties goes to the cell of its first row."""
    require_two_outcomes(prob)
    values = sorted(p[1] for p in prob)
    n, n_cells = len(values), partition.n_cells
    split = []
    for cell in range(n_cells):
        split += [cell] * (n // n_cells + (cell < n % n_cells))
    cell_of = {}
    for value, cell in zip(values, split, strict=True):
        cell_of.setdefault(value, cell)

    def assign(p):
        below = [value for value in cell_of if value <= p[1]]
        return cell_of[max(below) if below else values[0]]

    return assign


def variance_tree(partition, prob):
    """Split leaves, that of largest variance first, on the class of largest variance, as long as the rule allows."""
    rule = settle(partition, len(prob))
    root = {"rows": list(range(len(prob)))}
    leaves = [root]
    while len(leaves) < rule["max_cells"]:
        chosen = None
        for leaf in leaves:
            if "variance" not in leaf:
                leaf["variance"], leaf["cut"] = find_cut(leaf["rows"], prob, rule)
            if leaf["cut"] is not None and (chosen is None or leaf["variance"] > chosen["variance"]):
                chosen = leaf
        if chosen is None:
            break
        axis, threshold = chosen["cut"]
        chosen["left"] = {"rows": [i for i in chosen["rows"] if feature(prob[i])[axis] < threshold]}
        chosen["right"] = {"rows": [i for i in chosen["rows"] if feature(prob[i])[axis] >= threshold]}
        leaves.remove(chosen)
        leaves += [chosen["left"], chosen["right"]]

    def assign(p):
        node = root
        while "left" in node:
            axis, threshold = node["cut"]
            node = node["left"] if feature(p)[axis] < threshold else node["right"]
        return leaves.index(node)

    return assign


def settle(partition, n):
    """The stopping rule; given nothing: 2 ** round(0.3 log2 n) cells of at least 0.7 n / cells rows."""
    min_leaf, max_cells = partition.min_leaf, partition.max_cells
    if min_leaf is None and partition.min_split is None:
        max_cells = max_cells or 2 ** round(0.3 * float(np.log2(n)))
        min_leaf = max(1, int(0.7 * n / max_cells))
    return {
        "split": partition.split,
        "min_leaf": min_leaf,
        "min_split": partition.min_split,
        "max_cells": max_cells or n,
    }


def find_cut(rows, prob, rule):
    """The largest variance of a node, and (class, threshold) if the node may be split there, else None."""
    columns = list(zip(*(feature(prob[i]) for i in rows), strict=True))
    variances = [variance(column) for column in columns]
    axis = variances.index(max(variances))
    values, n = sorted(columns[axis]), len(rows)
    if rule["min_leaf"] is not None:
        threshold, fewest, allowed = values[n // 2], rule["min_leaf"], n >= 2 * rule["min_leaf"]
    else:
        threshold, fewest, allowed = middle(values, rule["split"]), 1, n >= rule["min_split"]
    below = sum(value < threshold for value in values)
    return variances[axis], (axis, threshold) if allowed and min(below, n - below) >= fewest else None


def middle(values, split):
    """The mean, or the median: the average of the two middle values where there are two."""
    if split == "mean":
        return float(sum(map(Fraction, values)) / len(values))
    n = len(values)
    return (values[(n - 1) // 2] + values[n // 2]) / 2


def variance(values):
    """Mean squared deviation from the mean, divisor n, exactly."""
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / len(exact)
    return sum((value - mean) ** 2 for value in exact) / len(exact)


def feature(p):
    """What a tree may split on: every class, or the event alone."""
    return [p[1]] if len(p) == 2 else p


def require_two_outcomes(prob):
    """Some partitions cut one probability only."""
    if len(prob[0]) != 2:
        raise ValueError("two outcomes")  # noqa: EM101


def user_function(partition, _):
    """A plain function from an array of rows to labels."""
    return lambda p: partition(np.array([p]))[0]


PARTITIONS = {
    caltest.EqualWidth: equal_width,
    caltest.Edges: edges,
    caltest.EqualMass: equal_mass,
    caltest.VarianceTree: variance_tree,
}


def fit(partition, prob):
    """The function from a row to its cell."""
    return PARTITIONS.get(type(partition), user_function)(partition, plain(prob))


def cells(partition, prob):
    """The cell of every row."""
    return remembered_cells(partition, tuple(map(tuple, plain(prob))))


@cache
def remembered_cells(partition, rows):
    """Found once for all the tests that ask."""
    assign = fit(partition, rows)
    return [assign(p) for p in rows]


def plain(prob):
    """Rows as lists of Python floats."""
    return [[float(value) for value in p] for p in prob]


# Distances.


def total_variation(predicted, observed):
    """Half the sum of absolute differences."""
    return sum(abs(q - p) for p, q in zip(predicted, observed, strict=True)) / 2


def euclidean(predicted, observed):
    """Root of the sum of squared differences."""
    return squared_euclidean(predicted, observed) ** 0.5


def squared_euclidean(predicted, observed):
    """Sum of squared differences."""
    return sum((q - p) ** 2 for p, q in zip(predicted, observed, strict=True))


def chebyshev(predicted, observed):
    """Largest absolute difference."""
    return max(abs(q - p) for p, q in zip(predicted, observed, strict=True))


DISTANCES = {
    caltest.total_variation: total_variation,
    caltest.euclidean: euclidean,
    caltest.squared_euclidean: squared_euclidean,
    caltest.chebyshev: chebyshev,
}


def distance_between(distance, predicted, observed):
    """A distance of two probability vectors; a user's function receives arrays."""
    if distance in DISTANCES:
        return DISTANCES[distance](predicted, observed)
    return float(distance(np.array(predicted), np.array(observed)))


# Statistics. `expected` are the probabilities under the null hypothesis, the predictions unless given.


def cell_sums(labels, expected, outcome, weight=None):
    """For every label: rows (weights), sum of the expected probabilities, rows (weights) of each outcome."""
    sums = {}
    for i, label in enumerate(labels):
        n_outcomes = len(expected[i])
        count, predicted, observed = sums.get(label, (0.0, [0.0] * n_outcomes, [0.0] * n_outcomes))
        w = 1.0 if weight is None else float(weight[i])
        predicted = [total + w * float(p) for total, p in zip(predicted, expected[i], strict=True)]
        observed = [total + w * (outcome[i] == k) for k, total in enumerate(observed)]
        sums[label] = count + w, predicted, observed
    return sums


def cell_errors(statistic, prob, outcome, weight=None, expected=None):
    """For every cell that has weight: its share and the distance of its averages."""
    labels = cells(statistic.partition, prob)
    sums = cell_sums(labels, prob if expected is None else expected, outcome, weight)
    total = sum(count for count, _, _ in sums.values())
    return [
        (
            count / total,
            distance_between(statistic.distance, [p / count for p in predicted], [q / count for q in observed]),
        )
        for count, predicted, observed in sums.values()
        if count > 0
    ]


def ece(statistic, prob, outcome, weight=None, expected=None):
    """Average over cells of the distance between mean prediction and frequencies."""
    return sum(share * error for share, error in cell_errors(statistic, prob, outcome, weight, expected))


def mce(statistic, prob, outcome, weight=None, expected=None):
    """The distance in the worst cell."""
    return max(error for _, error in cell_errors(statistic, prob, outcome, weight, expected))


def signed_temperature_score(prob, outcome, weight=None, expected=None):
    """U = sum of log p_y - E log p, 0 log 0 = 0; a rest below 0 counts as 0."""
    expected = prob if expected is None else expected
    score = 0.0
    for i, p in enumerate(prob):
        w = 1.0 if weight is None else float(weight[i])
        if w == 0:
            continue
        y = outcome[i]
        mean = sum(q * log(x) for x, q in zip(p, expected[i], strict=True) if q > 0)
        score += w * (log(p[y]) - mean) if p[y] > 0 or expected[i][y] > 0 else -np.inf
    return score


def log(x):
    """Logarithm that stays finite at 0: it matters only where a calibration function allows what the model excludes."""
    return float(np.log(max(float(x), float(np.finfo(float).tiny))))


def temperature_score(_, prob, outcome, weight=None, expected=None):
    """The absolute value of U."""
    return abs(signed_temperature_score(prob, outcome, weight, expected))


def largest_excursion(score, expected, happened, weight):
    """The largest |sum of weight * (happened - expected)| over rows of score at most s, for every score s that occurs.

    Tied rows enter together.
    """
    largest, total = 0.0, 0.0
    for s in sorted(set(score)):
        for i, value in enumerate(score):
            if value == s:
                total += weight[i] * (happened[i] - expected[i])
        largest = max(largest, abs(total))
    return largest


def class_excursion(prob, outcome, k, weight, expected):
    """The largest excursion of class k, in the order of its probability."""
    return largest_excursion(
        [float(p[k]) for p in prob],
        [float(q[k]) for q in (prob if expected is None else expected)],
        [int(y == k) for y in outcome],
        [1.0] * len(prob) if weight is None else [float(w) for w in weight],
    )


def ks(_, prob, outcome, weight=None, expected=None):
    """Largest excursion of the event over the number (weight) of rows."""
    if len(prob[0]) != 2:
        raise ValueError("two outcomes")  # noqa: EM101
    total = len(prob) if weight is None else sum(float(w) for w in weight)
    return class_excursion(prob, outcome, 1, weight, expected) / total


def classwise_ks(_, prob, outcome, weight=None, expected=None):
    """Largest over the classes of excursion / sqrt(sum w^2 p (1 - p)); with two outcomes the event alone.

    Without variance: infinity if a row of positive weight contradicts the prediction, else 0.
    """
    values = []
    for k in [1] if len(prob[0]) == 2 else range(len(prob[0])):
        total, contradicted = 0.0, False
        for i, row in enumerate(prob if expected is None else expected):
            w = 1.0 if weight is None else float(weight[i])
            p = min(max(float(row[k]), 0.0), 1.0)
            total += w * w * p * (1 - p)
            contradicted |= w > 0 and abs((outcome[i] == k) - p) == 1
        if total > 0:
            values.append(class_excursion(prob, outcome, k, weight, expected) / total**0.5)
        else:
            values.append(np.inf if contradicted else 0.0)
    return max(values)


def skce(statistic, prob, outcome, weight=None, expected=None):
    """Mean of k(p, q) times the inner product of the residuals, over the pairs that the estimator looks at."""
    expected = prob if expected is None else expected
    n, w = len(prob), [1.0] * len(prob) if weight is None else [float(x) for x in weight]
    bandwidth = statistic.bandwidth
    if bandwidth == "median":
        bandwidth = median_distance(statistic.kernel, tuple(tuple(p) for p, x in zip(prob, w, strict=True) if x > 0))
    pairs = {
        "biased": [(i, j) for i in range(n) for j in range(n)],
        "unbiased": [(i, j) for i in range(n) for j in range(n) if i != j],
        "block": [(i, i + 1) for i in range(0, n - 1, 2)],
    }[statistic.estimator]
    residual = [[(y == k) - float(q) for k, q in enumerate(row)] for y, row in zip(outcome, expected, strict=True)]
    total, counted = 0.0, 0.0
    for i, j in pairs:
        inner = sum(r * s for r, s in zip(residual[i], residual[j], strict=True))
        total += w[i] * w[j] * kernel_between(statistic.kernel, prob[i], prob[j], bandwidth) * inner
        counted += w[i] * w[j]
    return total / counted if counted > 0 else 0.0


def kernel_between(kernel, p, q, bandwidth):
    """A kernel of two rows; a user's function receives arrays."""
    if kernel is caltest.total_variation_kernel:
        return float(np.exp(-total_variation(p, q) / bandwidth))
    if kernel is caltest.euclidean_kernel:
        return float(np.exp(-euclidean(p, q) / bandwidth))
    if kernel is caltest.gaussian_kernel:
        return float(np.exp(-((euclidean(p, q) / bandwidth) ** 2) / 2))
    return float(kernel(np.array(p), np.array(q), bandwidth))


@cache
def median_distance(kernel, rows):
    """The middle of all n * n distances, or the average of the two middle ones; 1e-150 instead of 0."""
    distance = euclidean if kernel in {caltest.euclidean_kernel, caltest.gaussian_kernel} else total_variation
    return max(middle(sorted(distance(p, q) for p in rows for q in rows), "median"), 1e-150)


def mmce(statistic, prob, outcome, weight=None, expected=None):
    """Root of sum r_i r_j exp(-|p_i - p_j| / bandwidth) over the squared number (weight) of rows.

    Residuals of equal scores are added first, exactly: where they cancel, the root would magnify any rounding.
    """
    if len(prob[0]) != 2:
        raise ValueError("two outcomes")  # noqa: EM101
    expected = prob if expected is None else expected
    sums, total = {}, 0.0
    for i, p in enumerate(prob):
        w = 1.0 if weight is None else float(weight[i])
        residual = Fraction(w) * (int(outcome[i]) - Fraction(float(expected[i][1])))
        sums[p[1]] = sums.get(p[1], 0) + residual
        total += w
    scores = [(score, float(residual)) for score, residual in sums.items()]
    form = sum(r * s * float(np.exp(-abs(x - y) / statistic.bandwidth)) for x, r in scores for y, s in scores)
    return max(form, 0.0) ** 0.5 / total


STATISTICS = {
    caltest.SKCE: skce,
    caltest.MMCE: mmce,
    caltest.ECE: ece,
    caltest.MCE: mce,
    caltest.TemperatureScore: temperature_score,
    caltest.KS: ks,
    caltest.ClasswiseKS: classwise_ks,
}


def evaluate(statistic, prob, outcome, weight=None, expected=None):
    """Any statistic on plain rows."""
    rows = plain(prob)
    return STATISTICS[type(statistic)](statistic, rows, [int(y) for y in outcome], weight, expected)


# P-values.


def pvalue(observed, null):
    """(1 + #{null >= observed}) / (1 + B)."""
    return tail_pvalues([observed, *null])[0]


def tail_pvalues(values):
    """For every value the share of all values that reach it, itself included; within 1e-12 of the largest is a tie."""
    finite = [abs(value) for value in values if np.isfinite(value)]
    tolerance = TIE_TOLERANCE * max(finite, default=0.0)
    return [sum(other >= value - tolerance for other in values) / len(values) for value in values]


def combine_pvalues(pvalues):
    """Min-p: the share of columns whose sorted p-values come no later in lexicographic order."""
    columns = [sorted(column) for column in zip(*pvalues, strict=True)]
    return [sum(other <= column for other in columns) / len(columns) for column in columns]
