"""Slow and obvious twins of the package: every definition as loops over plain lists, to be read beside the papers.

Rows are lists of floats, outcomes are ints, weights are lists or None. NumPy serves as logarithm, to hand arrays to a
user's functions, and to write down all pairs of rows or all points of a grid at once, nothing else. Variances and means
are exact fractions, so that ties are ties.
"""

from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from math import floor, fsum, pi, sqrt

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq, linprog
from scipy.stats import beta, binom, kstwobign, multivariate_normal, norm

import caltest
from caltest.predictions.cells._cells import cells_of
from tests.reference.residual_patterns import le_cessie, osius_rojek, stukel
from tests.reference.smooth_curves import curve_distances, giviti, quantile

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
    return [the_rest(p, rank), sum(p[c] for c in chosen)], int(y in chosen)


def the_rest(p, rank):
    """The sum of all but the largest probabilities."""
    return fsum(p[c] for c in ranking(p)[rank:])


def top_k(p, y, k):
    """The ordered k largest probabilities and the rest; one alone is the confidence."""
    if k == 1:
        return top_rank(p, y, 1)
    chosen = ranking(p)[:k]
    top = [p[c] for c in chosen]
    return [*top, the_rest(p, k)], chosen.index(y) if y in chosen else k


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
    caltest.ClassGroups: lambda lens, p, y: groups(p, y, lens.groups),
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
    if closed == "outer":  # as for the complement
        return width_cell(x, n_cells, "left") if x >= 0.5 else n_cells - 1 - width_cell(1 - x, n_cells, "left")
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
    n_cells = number_of_cells(partition.n_cells, len(prob))
    return lambda p: tuple(width_cell(p[k], n_cells, partition.closed) for k in axes)


def step_down_pvalues(pvalues):
    """Westfall and Young's algorithm 2.8: p-values of tests [test][data set], the observed data first."""
    observed = [row[0] for row in pvalues]
    order = sorted(range(len(observed)), key=observed.__getitem__)
    adjusted, largest = [0.0] * len(observed), 0.0
    for position, test in enumerate(order):
        least = [min(column) for column in zip(*[pvalues[k] for k in order[position:]], strict=True)]
        largest = max(largest, sum(value <= observed[test] + 1e-12 for value in least) / len(least))
        adjusted[test] = largest
    return adjusted


def number_of_cells(n_cells, n):
    """The number itself, the largest whole number whose square is at most n, or the smallest whose cube is at least."""
    if n_cells == "cube-root":
        return min(m for m in range(1, n + 1) if m**3 >= n)
    return max(m for m in range(1, n + 1) if m * m <= n) if n_cells == "sqrt" else n_cells


def edges(partition, prob):
    """The number of edges below the event's probability; one that is hit counts as below if closed on the left."""
    require_two_outcomes(prob)

    def assign(p):
        return sum(edge < p[1] or (edge == p[1] and partition.closed == "left") for edge in partition.edges)

    return assign


def equal_mass(partition, prob):
    """Cut the sorted rows as numpy.array_split or Nixon do; a block of ties goes to the cell of its first row."""
    require_two_outcomes(prob)
    values = sorted(p[1] for p in prob)
    n, n_cells = len(values), number_of_cells(partition.n_cells, len(prob))
    if partition.cut == "halfway":
        inner = halfway(values, n_cells)
        return lambda p: sum(edge <= p[1] for edge in inner)
    if partition.cut == "floor":
        n_cells = min(n_cells, n)
        split = [min(rank // (n // n_cells), n_cells - 1) for rank in range(n)]
    else:
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


def equal_spread(partition, prob):
    """Place values by the standard deviations below and half of their own; boundaries belong to the outer cell."""
    require_two_outcomes(prob)
    values = [p[1] for p in prob]
    total = fsum(sqrt(max(v * (1 - v), 0)) for v in values)
    cell_of = {}
    for value in set(values):
        below = fsum(sqrt(max(v * (1 - v), 0)) for v in values if v < value)
        own = fsum(sqrt(max(v * (1 - v), 0)) for v in values if v == value)
        place = partition.n_cells * (below + own / 2) / total if total > 0 else 0
        cell = floor(place)
        if abs(place - round(place)) < 1e-9:
            cell = round(place) - (round(place) < partition.n_cells / 2)
        cell_of[value] = min(max(cell, 0), partition.n_cells - 1) if total > 0 else int(value > 0.5)

    def assign(p):
        return cell_of[min(cell_of, key=lambda value: (abs(value - p[1]), -value))]

    return assign


def halfway(values, n_cells):
    """Edges after every n // n_cells sorted values, in the middle between the two neighbours."""
    n_cells = min(n_cells, len(values))
    size = len(values) // n_cells
    return [(values[b * size - 1] + values[b * size]) / 2 for b in range(1, n_cells)]


def variance_tree(partition, prob):
    """The leaf that a row falls to."""
    root, leaves = grow(partition, prob)

    def assign(p):
        node = root
        while "left" in node:
            axis, threshold = node["cut"]
            node = node["left"] if feature(p)[axis] < threshold else node["right"]
        return leaves.index(node)

    return assign


def grow(partition, prob):
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
    return root, leaves


def thresholds(node):
    """The cuts below a node."""
    return [node["cut"][1], *thresholds(node["left"]), *thresholds(node["right"])] if "left" in node else []


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
    """The largest variance of a node, and the (class, threshold) where it is split, or None if no class allows it."""
    columns = list(zip(*(feature(prob[i]) for i in rows), strict=True))
    variances = [variance(column) for column in columns]
    fewest, smallest = 1, rule["min_split"]
    if rule["min_leaf"] is not None:
        fewest, smallest = rule["min_leaf"], 2 * rule["min_leaf"]
    if len(rows) >= smallest:
        for axis in sorted(range(len(columns)), key=lambda k: -variances[k]):
            threshold = cut_values(sorted(columns[axis]), rule, binary=len(columns) == 1)
            below = sum(value < threshold for value in columns[axis])
            if min(below, len(rows) - below) >= fewest:
                return max(variances), (axis, threshold)
    return max(variances), None


def cut_values(values, rule, binary):
    """Where sorted values are cut: at the mean, or before or after all values that are equal to the median."""
    n = len(values)
    if rule["split"] == "mean":
        return middle(values, "mean")
    if values[(n - 1) // 2] < values[n // 2]:
        between = middle(values, "median")
        return values[n // 2] if rule["min_leaf"] is not None or between == values[(n - 1) // 2] else between
    median = values[n // 2]
    above = min([value for value in values if value > median], default=float("inf"))
    if binary and rule["min_leaf"] is not None:
        less, more = (abs(n - 2 * sum(value < t for value in values)) for t in (median, above))
        down = median < 0.5 or (median == 0.5 and middle(values, "mean") < 0.5 - 1e-9)
        return above if less > more or (less == more and down) else median
    return median if sum(value < median for value in values) >= (rule["min_leaf"] or 1) else above


def middle(values, split):
    """The mean, or the median: the average of the two middle values where there are two."""
    if split == "mean":
        return float(sum(map(Fraction, values)) / len(values))
    n = len(values)
    return (values[(n - 1) // 2] + values[n // 2]) / 2


def variance(values):
    """Mean squared deviation from the mean, divisor n, exactly: floats are integers over a common power of 2."""
    ratios = [float(value).as_integer_ratio() for value in values]
    unit, n = max(bottom for _, bottom in ratios), len(ratios)
    whole = [top * (unit // bottom) for top, bottom in ratios]
    return Fraction(n * sum(x * x for x in whole) - sum(whole) ** 2, (n * unit) ** 2)


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


def against_rest(partition, prob):
    """The partition of the pair (outcome k, all others); of two outcomes the partition itself."""

    def pair(p):
        return p if len(p) == 2 else [p[partition.k], 1 - p[partition.k]]

    assign = fit(partition.partition, [pair(p) for p in prob])
    return lambda p: assign(pair(p))


def fixed_tree(partition, _):
    """The leaf that a row falls to, from node to node."""

    def assign(p):
        node = 0
        while partition.left[node] != -1:
            node = partition.left[node] + (p[partition.axis[node]] >= partition.threshold[node])
        return node

    return assign


def simplex_grid(partition, _):
    """Triangles one by one: upward ones hold their edges, and where several meet the largest probabilities decide."""
    n = partition.n
    lines = Fraction(1, 2**22)

    def assign(p):
        total = sum(map(Fraction, p))
        share = [Fraction(q) / total for q in p]
        share = [Fraction(round(q * n), n) if abs(q - Fraction(round(q * n), n)) <= lines else q for q in share]
        up = [low for low in lower_ends(n - 1) if all(q >= Fraction(a, n) for a, q in zip(low, share, strict=True))]
        if len(up) == 1:
            return ("up", *up[0])
        if not up:
            inside = [(a, b, c) for a, b, c in lower_ends(n - 2) if [a, b, c] == [int(q * n) for q in share]]
            return ("down", *inside[0])
        top = [k for k in range(3) if share[k] == max(share)]
        ends = [int(q * n) - (k in (top if len(top) < 3 else [0])) for k, q in enumerate(share)]
        return ("up" if len(top) != 2 else "down", *ends)

    return assign


def lower_ends(total):
    """Three numbers from 0 with a sum."""
    return [(a, b, total - a - b) for a in range(total + 1) for b in range(total + 1 - a)]


PARTITIONS = {
    caltest.AgainstRest: against_rest,
    caltest.Edges: edges,
    caltest.EqualMass: equal_mass,
    caltest.EqualSpread: equal_spread,
    caltest.EqualWidth: equal_width,
    caltest.FixedTree: fixed_tree,
    caltest.SimplexGrid: simplex_grid,
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
    return np.asarray(prob, dtype=float).tolist()


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
    caltest.predictions.total_variation: total_variation,
    caltest.predictions.euclidean: euclidean,
    caltest.predictions.squared_euclidean: squared_euclidean,
    caltest.predictions.chebyshev: chebyshev,
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
        count, predicted, observed = sums.setdefault(label, ([0.0], [0.0] * n_outcomes, [0.0] * n_outcomes))
        w = 1.0 if weight is None else float(weight[i])
        count[0] += w
        for k, p in enumerate(expected[i]):
            predicted[k] += w * float(p)
        observed[outcome[i]] += w
    return {label: (count, predicted, observed) for label, ([count], predicted, observed) in sums.items()}


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
    """Average over cells of the distance between mean prediction and frequencies, weighted at the mean prediction."""
    if statistic.scale_weight is None:
        return sum(share * error for share, error in cell_errors(statistic, prob, outcome, weight, expected))
    require_two_outcomes(prob)
    total, counted = 0.0, 0.0
    sums = cell_sums(cells(statistic.partition, prob), prob if expected is None else expected, outcome, weight)
    for count, predicted, observed in sums.values():
        if count > 0:
            mean, seen = ([x / count for x in part] for part in (predicted, observed))
            scale = count * scale_weight(statistic, mean[1])
            total += scale * distance_between(statistic.distance, mean, seen)
            counted += scale
    return total / counted


SCALE_WEIGHTS = {
    "p": lambda p: p,
    "1-p": lambda p: 1 - p,
    "p(1-p)": lambda p: p * (1 - p),
    "(1-2p)^2": lambda p: (1 - 2 * p) * (1 - 2 * p),
}


def scale_weight(statistic, p):
    """The weight at a probability; a sum of probabilities that rounds to more than 1 counts as 1."""
    return SCALE_WEIGHTS[statistic.scale_weight](min(max(float(p), 0.0), 1.0))


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


def temperature_score(statistic, prob, outcome, weight=None, expected=None):
    """The absolute value of U, or its evidence of one side."""
    score = signed_temperature_score(prob, outcome, weight, expected)
    return {caltest.statistics.OverConfidence: -score, caltest.statistics.UnderConfidence: score}.get(
        type(statistic), abs(score)
    )


def confidence_ece(statistic, prob, outcome, weight=None, expected=None):
    """Sum over cells of |weight of hits - expected hits| over the total; for two outcomes the event is the hit."""
    gaps, total = {}, 0.0
    for i, p in enumerate(prob):
        top = 1 if len(p) == 2 else p.index(max(p))
        w = 1.0 if weight is None else float(weight[i])
        q = p if expected is None else expected[i]
        cell = width_cell(p[top], statistic.n_cells, "outer")
        # Two columns may miss the sum 1 by rounding: neither has precedence.
        hit = (float(q[1]) + 1 - float(q[0])) / 2 if len(p) == 2 else float(q[top])
        gaps[cell] = gaps.get(cell, 0.0) + w * ((outcome[i] == top) - hit)
        total += w
    return sum(abs(gap) for gap in gaps.values()) / total


def matrix_score(_, prob, outcome, weight=None, expected=None):
    """The largest standardised derivative, pair by pair; infinity for an outcome of probability 0."""
    expected = prob if expected is None else expected
    weight = [1.0] * len(prob) if weight is None else [float(w) for w in weight]
    rows = range(len(prob))
    if any(weight[i] > 0 and expected[i][outcome[i]] <= 0 for i in rows):
        return np.inf
    sums = [fsum(max(float(q), 0.0) for q in row) for row in expected]
    largest = 0.0
    for j in range(len(prob[0])):
        p = [max(float(expected[i][j]), 0.0) / sums[i] for i in rows]
        v = [weight[i] ** 2 * p[i] * (1 - p[i]) for i in rows]
        for k in range(-1, len(prob[0])):
            x = [1.0 if k < 0 else float(np.log(max(float(prob[i][k]), 2.0**-52))) for i in rows]
            mean = 0.0 if k < 0 or fsum(v) == 0 else fsum(v[i] * x[i] for i in rows) / fsum(v)
            variance = fsum(v[i] * (x[i] - mean) ** 2 for i in rows)
            if variance <= 1e-12 * fsum(v[i] * x[i] ** 2 for i in rows):
                continue
            score = fsum(weight[i] * ((outcome[i] == j) - p[i]) * (x[i] - mean) for i in rows)
            largest = max(largest, abs(score) / variance**0.5)
    return largest


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


def on_scale(statistic, prob, weight):
    """The weights of rows times those of their predictions."""
    if statistic.scale_weight is None:
        return weight
    ones = [1.0] * len(prob) if weight is None else weight
    return [float(w) * scale_weight(statistic, p[1]) for w, p in zip(ones, prob, strict=True)]


def ks(statistic, prob, outcome, weight=None, expected=None):
    """Largest excursion of the event over the number (weight) of rows."""
    if len(prob[0]) != 2:
        raise ValueError("two outcomes")  # noqa: EM101
    weight = on_scale(statistic, prob, weight)
    total = len(prob) if weight is None else sum(float(w) for w in weight)
    return class_excursion(prob, outcome, 1, weight, expected) / total


def classwise_ks(_, prob, outcome, weight=None, expected=None):
    """Largest over the classes of excursion / sqrt(sum w^2 p (1 - p)); for two, by the event's column and its mirror.

    Without variance: infinity if a row of positive weight contradicts the prediction, else 0.
    """
    if len(prob[0]) == 2:
        prob = [[1 - p[1], p[1]] for p in prob]
        expected = None if expected is None else [[1 - q[1], q[1]] for q in expected]
    values = []
    for k in range(len(prob[0])):
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


def inner_edges(partition, prob):
    """The edges of intervals, found from the definition or, for trees and equal mass, at the first rows of cells."""
    values = sorted(p[1] for p in prob)
    if type(partition) is caltest.EqualWidth:
        n_cells = number_of_cells(partition.n_cells, len(prob))
        return [b / n_cells for b in range(1, n_cells)]
    if type(partition) is caltest.Edges:
        return list(partition.edges)
    if type(partition) is caltest.VarianceTree:
        return sorted(thresholds(grow(partition, prob)[0]))
    if partition.cut == "halfway":
        return halfway(values, number_of_cells(partition.n_cells, len(prob)))
    cell = {value: equal_mass(partition, prob)([1 - value, value]) for value in values}
    return [min(v for v in values if cell[v] == b) for b in sorted(set(cell.values())) if b != cell[values[0]]]


def convex_ece(statistic, prob, outcome, weight=None, expected=None):
    """Every row belongs to the cells whose centres are its neighbours; the nearer one has the larger share."""
    require_two_outcomes(prob)
    scores = [(p[1] - statistic.low) / (1 - statistic.low) for p in prob]
    edge = [0.0, *inner_edges(statistic.partition, [[1 - s, s] for s in scores]), 1.0]
    centre = [(a + b) / 2 for a, b in pairwise(edge)]
    sums = [[0.0, 0.0, 0.0, 0.0] for _ in centre]
    for i, s in enumerate(scores):
        shares = {0: 1.0} if s <= centre[0] else {len(centre) - 1: 1.0}
        for b in range(1, len(centre)):
            if centre[b - 1] < s <= centre[b]:
                near = (s - centre[b - 1]) / (centre[b] - centre[b - 1])
                near = 1 - near if statistic.share == "swapped" else near
                shares = {b: near, b - 1: 1 - near}
        for b, share in shares.items():
            w = share if weight is None else share * float(weight[i])
            q = (prob if expected is None else expected)[i]
            for k, term in enumerate((w, w * q[0], w * q[1], w * outcome[i])):
                sums[b][k] += term
    total = sum(count for count, *_ in sums)
    return sum(
        count / total * distance_between(statistic.distance, [zero / count, one / count], [1 - y / count, y / count])
        for count, zero, one, y in sums
        if count > 0
    )


def monotonic_sweep(statistic, prob, outcome, weight=None, expected=None):
    """One cell more, as long as the frequencies do not decrease from any cell to the next."""
    require_two_outcomes(prob)
    chosen = 1
    while chosen < len(prob) and increasing(cell_gaps(chosen + 1, prob, outcome, weight, expected)):
        chosen += 1
    gaps = cell_gaps(chosen, prob, outcome, weight, expected)
    total = sum(count for count, _, _ in gaps)
    if statistic.norm == "l2":
        return sum(count / total * gap**2 for count, _, gap in gaps) ** 0.5
    return sum(count / total * gap for count, _, gap in gaps)


def cell_gaps(n_cells, prob, outcome, weight, expected):
    """Weight, frequency and absolute gap in each of the equal-mass cells that has weight, in order."""
    labels = cells(caltest.EqualMass(n_cells), prob)
    sums = cell_sums(labels, prob if expected is None else expected, outcome, weight)
    return [
        (count, observed[1] / count, abs(observed[1] - predicted[1]) / count)
        for _, (count, predicted, observed) in sorted(sums.items())
        if count > 0
    ]


def increasing(gaps):
    """No frequency is below the one before; rounding aside."""
    return all(later >= sooner - 1e-12 for (_, sooner, _), (_, later, _) in pairwise(gaps))


def squared_l2(statistic, prob, outcome, weight=None, expected=None):
    """Products of the residuals of all pairs of rows in a cell; cells of one row count nothing."""
    members = {}
    for i, label in enumerate(cells(statistic.partition, prob)):
        if weight is None or weight[i] > 0:
            members.setdefault(label, []).append(i)
    w = [1.0] * len(prob) if weight is None else [float(value) for value in weight]
    n_outcomes = len(prob[0])
    looked_at = [1] if n_outcomes == 2 else range(n_outcomes)
    residual = [
        [(outcome[i] == k) - q[k] for k in looked_at] for i, q in enumerate(prob if expected is None else expected)
    ]
    total = 0.0
    for rows in members.values():
        if len(rows) < 2:
            continue
        mass = sum(w[i] for i in rows)
        pairs = np.outer([w[i] for i in rows], [w[i] for i in rows])
        np.fill_diagonal(pairs, 0.0)  # what is left is every pair of different rows, twice
        error = np.array([residual[i] for i in rows], dtype=float)
        weight_of_pairs = float(pairs.sum())
        products = float((pairs * (error @ error.T)).sum())
        if statistic.estimator == "unbiased":
            squared = products / weight_of_pairs
        elif statistic.estimator == "t-cal":
            squared = products / mass**2
        else:
            squared = 0.0
            for place, k in enumerate(looked_at):
                gap = sum(w[i] * residual[i][place] for i in rows) / mass
                frequency = sum(w[i] * (outcome[i] == k) for i in rows) / mass
                squared += gap**2 - frequency * (1 - frequency) * sum(w[i] ** 2 for i in rows) / weight_of_pairs
        total += mass * squared
    return total / sum(w)


# Errors over entries: every pair of a row and a class is a prediction of its own.


def entry_groups(prob, outcome, weight, expected, *, top, apart):
    """Entries (value, happened, expected, weight) of each class, or of all in one group; of top predictions only."""
    groups = [[] for _ in (prob[0] if apart else [0])]
    for i, p in enumerate(prob):
        for k in ranking(p)[:1] if top else range(len(p)):
            q = (prob if expected is None else expected)[i][k]
            w = 1.0 if weight is None else float(weight[i])
            groups[k if apart else 0].append((p[k], outcome[i] == k, float(q), w))
    return groups


def gaps(group, cut):
    """Weight and |frequency - expectation| of every cell that has weight; ``cut`` gives the cell of each value."""
    sums = {}
    for cell, (_, happened, expected, w) in zip(cut([value for value, *_ in group]), group, strict=True):
        count, seen, predicted = sums.get(cell, (0.0, 0.0, 0.0))
        sums[cell] = count + w, seen + w * happened, predicted + w * expected
    return [(count, abs(seen - predicted) / count) for count, seen, predicted in sums.values() if count > 0]


def by_rows(cells, power=1):
    """Average over cells, weighted by rows; 0 without rows."""
    return sum(count * gap**power for count, gap in cells) / (sum(count for count, _ in cells) or 1.0)


def width_cut(n_cells, closed="left"):
    """Equal cells, the end cells closed."""
    return lambda values: [width_cell(x, n_cells, closed) for x in values]


def mass_cut(n_cells, cut="value"):
    """Cells of as many values each, ties together."""
    partition = caltest.EqualMass(n_cells, cut)

    def cut(values):
        rows = [[1 - x, x] for x in values]
        assign = equal_mass(partition, rows) if rows else None
        return [assign(p) for p in rows]

    return cut


CUTS = {"equal-mass": "value", "equal-mass-floor": "floor"}


def scheme_cut(scheme, n_cells):
    """By the name of the scheme."""
    return width_cut(n_cells) if scheme == "equal-width" else mass_cut(n_cells, CUTS[scheme])


def authors_cut(scheme, n_cells):
    """As in the code of Nixon et al.: the number of lower edges up to the value, 1 being an edge."""

    def cut(values):
        m, ordered = len(values), sorted(values)
        if scheme == "equal-width":
            lower = [j / n_cells for j in range(1, n_cells)]
        else:
            lower = [ordered[min(round(r * (m / n_cells)), m - 1)] for r in range(1, n_cells)] if m else []
        return [sum(edge <= x for edge in [*lower, 1.0]) for x in values]

    return cut


def gce(statistic, prob, outcome, weight=None, expected=None):
    """Average over the classes of the average over the cells of gap ** q, and the q-th root."""
    power = {"l1": 1, "l2": 2}[statistic.norm]
    cut = authors_cut(statistic.scheme, statistic.n_cells)
    groups = entry_groups(prob, outcome, weight, expected, top=statistic.max_prob, apart=statistic.class_conditional)
    errors = []
    for group in groups:
        kept = [entry for entry in group if entry[0] > statistic.threshold]
        errors.append(by_rows(gaps(kept, cut), power))
    return (sum(errors) / len(errors)) ** (1 / power)


def sce(statistic, prob, outcome, weight=None, expected=None):
    """The ECE of every class, averaged or added."""
    groups = entry_groups(prob, outcome, weight, expected, top=False, apart=True)
    total = sum(by_rows(gaps(group, width_cut(statistic.n_cells, statistic.closed))) for group in groups)
    return total / len(groups) if statistic.average == "mean" else total


def cell_average(cells, cell_weight, n_cells):
    """Average over the cells in one of three ways."""
    if cell_weight == "observations":
        return by_rows(cells)
    return sum(gap for _, gap in cells) / (n_cells if cell_weight == "cells" else len(cells) or 1)


def ace(statistic, prob, outcome, weight=None, expected=None):
    """Average over classes and cells; of top predictions over cells."""
    top = statistic.max_prob
    groups = entry_groups(prob, outcome, weight, expected, top=top, apart=not top)
    cut = scheme_cut(statistic.scheme, statistic.n_cells)
    return sum(cell_average(gaps(g, cut), statistic.cell_weight, statistic.n_cells) for g in groups) / len(groups)


def tace(statistic, prob, outcome, weight=None, expected=None):
    """The same over the values above the threshold."""
    total = 0.0
    groups = entry_groups(prob, outcome, weight, expected, top=False, apart=True)
    for group in groups:
        kept = [entry for entry in group if entry[0] > statistic.threshold]
        cut = scheme_cut(statistic.scheme, statistic.n_cells)
        total += cell_average(gaps(kept, cut), statistic.cell_weight, statistic.n_cells)
    return total / len(groups)


def rmsce(statistic, prob, outcome, weight=None, expected=None):
    """Root of the mean square over the cells of the top prediction."""
    n_cells = statistic.n_cells
    if statistic.samples_per_cell is not None:
        n_cells = max(1, round(len(prob) / statistic.samples_per_cell))
    [group] = entry_groups(prob, outcome, weight, expected, top=True, apart=False)
    return by_rows(gaps(group, scheme_cut(statistic.scheme, n_cells)), 2) ** 0.5


def class_conditional_ece(statistic, prob, outcome, weight=None, expected=None):
    """The ECE of the rows that are predicted to be of each class."""
    total, shares = 0.0, 0.0
    for group in entry_groups(prob, outcome, weight, expected, top=True, apart=True):
        share = 1.0 if statistic.class_weight == "equal" else sum(w for *_, w in group)
        total += share * by_rows(gaps(group, width_cut(statistic.n_cells)))
        shares += share
    return total / shares


def uce(statistic, prob, outcome, weight=None, expected=None):
    """Normalised entropy against the error of the top prediction; a null hypothesis does not move its centre."""
    entries = []
    for i, p in enumerate(prob):
        doubt = entropy(p) / log(len(p))
        entries.append((doubt, outcome[i] != ranking(p)[0], doubt, 1.0 if weight is None else float(weight[i])))
    return by_rows(gaps(entries, width_cut(statistic.n_cells, "right")))


def entropy(p):
    """In nats."""
    return -sum(x * log(x) for x in p if x > 0)


def entropy_difference(statistic, prob, outcome, weight=None, expected=None):
    """Entropy of the labels of each predicted class against that of every prediction of it, in loops."""
    weight = [1.0] * len(prob) if weight is None else [float(w) for w in weight]
    total = 0.0
    for k in range(len(prob[0])):
        own = [i for i, p in enumerate(prob) if ranking(p)[0] == k and weight[i] > 0]
        size = sum(weight[i] for i in own)
        labels = [sum(weight[i] for i in own if outcome[i] == c) / size for c in range(len(prob[0]))] if own else []
        total += sum(weight[i] * abs(entropy(labels) - entropy(prob[i])) for i in own)
    return total / sum(weight)


def class_conditional_uce(statistic, prob, outcome, weight=None, expected=None):
    """The same of the observations of each predicted class, in equal shares or in those of their weights."""
    weight = [1.0] * len(prob) if weight is None else [float(w) for w in weight]
    total = 0.0
    for k in range(len(prob[0])):
        own = [i for i, p in enumerate(prob) if ranking(p)[0] == k]
        if own:
            share = 1 / len(prob[0]) if statistic.class_weight == "equal" else sum(weight[i] for i in own) / sum(weight)
            total += share * uce(statistic, *([values[i] for i in own] for values in (prob, outcome, weight)))
    return total


def kde_error(statistic, prob, outcome, weight=None, expected=None):
    """Average over the points g of a grid of |sum of k * (y - g)|, over the sum of k, the kernel being mirrored.

    Linear binning: a row (or image) has two neighbours on the grid, and each of them a kernel.
    """
    if len(prob[0]) != 2:
        raise ValueError("two outcomes")  # noqa: EM101
    low, high = statistic.support
    position = [min(max(p[1], low), high) for p in prob]
    bandwidth = statistic.bandwidth
    if bandwidth == "silverman":
        bandwidth = max(silverman(position), 8 * (high - low) / 2**17)
    start, step, n_points = grid_of(statistic, bandwidth)
    half = int(np.ceil(KERNEL_ENDS[statistic.kernel] * bandwidth / step))
    taps = np.array([kernel_shape(statistic.kernel, distance * step / bandwidth) for distance in range(half + 1)])
    grid = start + step * np.arange(n_points)
    gap, density = np.zeros(n_points), 0.0
    for i, x in enumerate(position):
        w = 1.0 if weight is None else float(weight[i])
        p, y = prob[i][1], outcome[i]
        q = p if expected is None else float(expected[i][1])
        for image in images(x, low, high, (half + 1) * step):
            below = int(np.floor((image - start) / step))
            share = (image - start) / step - below
            for node, part in ((below, 1 - share), (below + 1, share)):
                points = np.arange(max(node - half, 0), min(node + half + 1, n_points))
                points = points[(low < grid[points]) & (grid[points] <= high)]
                k = w * part * taps[abs(points - node)]
                density += k.sum()
                gap[points] += k * (y - q if statistic.reference == "mean" else y - grid[points] - (q - p))
    return float(abs(gap).sum() / density)


KERNEL_ENDS = {"triweight": 3.0, "gaussian": 8.5}


def kernel_shape(kernel, z):
    """Value at z standard deviations, up to a factor."""
    return max(1 - z * z / 9, 0.0) ** 3 if kernel == "triweight" else float(np.exp(-z * z / 2))


def grid_of(statistic, bandwidth):
    """First point, distance and number of points: midpoints of at least 256 parts, 8 to a bandwidth, unless given."""
    if statistic.grid is not None:
        start, stop, n_points = statistic.grid
        return start, (stop - start) / (n_points - 1), n_points
    low, high = statistic.support
    n_points = 256
    while (high - low) / n_points > bandwidth / 8:
        n_points *= 2
    return low + (high - low) / n_points / 2, (high - low) / n_points, n_points


def images(x, low, high, reach):
    """x and its mirror images at both ends, and theirs, as far as the reach beyond the ends."""
    found, turn = [], 0
    while 2 * turn * (high - low) <= 2 * (high - low) + reach:
        for shift in {2 * turn * (high - low), -2 * turn * (high - low)}:
            found += [x + shift, 2 * low - x + shift]
        turn += 1
    return [image for image in found if low - reach <= image <= high + reach]


def silverman(values):
    """Silverman's rule with the smaller of standard deviation and interquartile range."""
    n, ordered = len(values), sorted(values)
    if n == 1:
        return 0.0

    def quantile(q):
        place = q * (n - 1)
        below = min(int(place), n - 2)
        return ordered[below] + (place - below) * (ordered[below + 1] - ordered[below])

    mean = sum(values) / n
    deviation = (sum((x - mean) ** 2 for x in values) / (n - 1)) ** 0.5
    spread = min(deviation, (quantile(0.75) - quantile(0.25)) / 1.3489795003921634)
    if spread <= 0:
        spread = (quantile(0.99) - quantile(0.01)) / 4.6526957480816815
    return spread * (4 / (3 * n)) ** 0.2


def smooth_ece(statistic, prob, outcome, weight=None, expected=None):
    """The bandwidth that equals its own error; the error at the smallest bandwidth if it is smaller than that."""
    if len(prob[0]) != 2:
        raise ValueError("two outcomes")  # noqa: EM101
    total = len(prob) if weight is None else sum(float(w) for w in weight)
    residual = {}
    for i, p in enumerate(prob):
        x = min(max(p[1], 0.0), 1.0)
        w = 1.0 if weight is None else float(weight[i])
        q = p[1] if expected is None else float(expected[i][1])
        residual[x] = residual.get(x, 0.0) + w * (outcome[i] - q) / total

    def error(sigma):
        t = (np.arange(statistic.n_points) + 0.5) / statistic.n_points
        return float(np.mean(abs(sum(r * reflected(t, x, sigma) for x, r in residual.items()))))

    if statistic.bandwidth is not None:
        return error(statistic.bandwidth)
    low = 3 / statistic.n_points
    high = error(low)
    if high <= low:
        return high
    return brentq(lambda sigma: error(sigma) - sigma, low, 2 * high, xtol=1e-14, rtol=1e-14)


def smooth_calibration_error(statistic, prob, outcome, weight=None, expected=None):
    """The linear program of its definition: a weight at each prediction, at most 1, and a limit for every pair."""
    if len(prob[0]) != 2:
        raise ValueError("two outcomes")  # noqa: EM101
    total = len(prob) if weight is None else sum(float(w) for w in weight)
    residual = {}
    for i, p in enumerate(prob):
        w = 1.0 if weight is None else float(weight[i])
        q = p[1] if expected is None else float(expected[i][1])
        x = min(max(p[1], 0.0), 1.0)
        residual[x] = residual.get(x, 0.0) + w * (outcome[i] - q) / total
    points = list(residual)
    rows, limits = [], []
    for (i, x), (j, z) in product(enumerate(points), repeat=2):
        if i != j:
            row = [0.0] * len(points)
            row[i], row[j] = 1.0, -1.0
            rows.append(row)
            limits.append(abs(x - z))
    tolerances = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog([-r for r in residual.values()], rows or None, limits or None, bounds=(-1, 1), options=tolerances)
    return -float(found.fun)


def reflected(t, x, sigma):
    """The Gaussian density around x at the points t, reflected at 0 and 1."""
    value, turn = np.zeros_like(t), 0
    while 2 * turn <= 2 + 9 * sigma:
        for shift in {2 * turn, -2 * turn}:
            for image in (x + shift, -x + shift):
                z = (t - image) / sigma
                value += np.where(abs(z) < 9, np.exp(-z * z / 2), 0.0)
        turn += 1
    return value / (sigma * (2 * pi) ** 0.5)


def drawn_from(p):
    """The probabilities that outcomes are drawn from: nothing below 0, sum 1."""
    positive = [max(value, 0.0) for value in p]
    return [value / sum(positive) for value in positive]


def signed_spiegelhalter(prob, outcome, weight=None, expected=None):
    """Z = sum of (E p_Y - p_y) over the root of the sum of the variances of p_Y; equal probabilities have none.

    Brier score minus its expectation is twice the numerator.
    """
    numerator, total, contradicted = 0.0, 0.0, False
    for i, p in enumerate(prob):
        w = 1.0 if weight is None else float(weight[i])
        r = drawn_from((prob if expected is None else expected)[i])
        mean = sum(q * x for q, x in zip(r, p, strict=True))
        terms = [mean - x for x in p]
        for k, q in enumerate(r):
            if q > 0 and abs(terms[k]) <= 1e-12 * mean:
                terms[k] = 0.0
        numerator += w * terms[outcome[i]]
        total += w * w * sum(q * term * term for q, term in zip(r, terms, strict=True))
        contradicted |= w > 0 and r[outcome[i]] == 0
    if total == 0:
        return np.inf if contradicted else 0.0
    return numerator / total**0.5


def spiegelhalter(_, prob, outcome, weight=None, expected=None):
    """The absolute value of Z."""
    return abs(signed_spiegelhalter(prob, outcome, weight, expected))


def hosmer_lemeshow(statistic, prob, outcome, weight=None, expected=None):
    """Sum over groups of S' G S, G a generalised inverse of the covariance of the residuals S."""
    labels = cells(statistic.partition, prob)
    return sum(
        group_form(statistic, [i for i, other in enumerate(labels) if other == label], prob, outcome, weight, expected)
        for label in sorted(set(labels))
    )


def group_form(statistic, rows, prob, outcome, weight, expected):
    """S' G S of one group: infinite if S is not in the range of the covariance."""
    w = [1.0 if weight is None else float(weight[i]) for i in rows]
    r = [drawn_from((prob if expected is None else expected)[i]) for i in rows]
    n_outcomes, total = len(r[0]), sum(w)
    if total == 0:
        return 0.0
    if statistic.covariance == "mean":
        mean = [sum(v * q[k] for v, q in zip(w, r, strict=True)) / total for k in range(n_outcomes)]
        shown = [mean] * len(rows)
    else:
        shown = r
    residual = [
        sum(v * ((outcome[i] == k) - q[k]) for i, v, q in zip(rows, w, r, strict=True)) for k in range(n_outcomes)
    ]
    covariance = [
        [
            sum(
                v * v * (q[j] * sum(x for m, x in enumerate(q) if m != j) if j == k else -q[j] * q[k])
                for v, q in zip(w, shown, strict=True)
            )
            for k in range(n_outcomes)
        ]
        for j in range(n_outcomes)
    ]
    return quadratic_form(covariance, residual, total)


def quadratic_form(matrix, vector, scale):
    """x' G x of a positive semi-definite matrix: Gauss-Jordan from the smallest diagonal to the largest.

    What is left of the diagonal relative to what was there tells rank from rounding.
    """
    a, x = [list(row) for row in matrix], list(vector)
    value = 0.0
    for j in sorted(range(len(x)), key=lambda k: matrix[k][k]):
        if a[j][j] <= 1e-13 * matrix[j][j]:
            if abs(x[j]) > 1e-9 * scale:
                return np.inf
            continue
        value += x[j] * x[j] / a[j][j]
        for k in range(len(x)):
            if k != j:
                share = a[k][j] / a[j][j]
                x[k] -= share * x[j]
                a[k] = [left - share * top for left, top in zip(a[k], a[j], strict=True)]
        for k in range(len(x)):
            a[k][j] = a[j][k] = 0.0
        x[j] = 0.0
        a[j][j] = 0.0
    return value


def cox_parts(prob, outcome, weight=None, expected=None):
    """Z_a and Z_b: residuals, and residuals times centred logits, over the roots of their variances."""
    if len(prob[0]) != 2:
        raise ValueError("two outcomes")  # noqa: EM101
    rows, contradicted = [], False
    for i, p in enumerate(prob):
        w = 1.0 if weight is None else float(weight[i])
        r = drawn_from((prob if expected is None else expected)[i])
        contradicted |= w > 0 and r[outcome[i]] == 0
        if p[0] > 0 and p[1] > 0:
            logit = float(np.log(p[1]) - np.log(p[0]))
            residual = r[0] if outcome[i] == 1 else -r[1]
            rows.append((w * residual, w * w * r[0] * r[1], logit))
    total = sum(v for _, v, _ in rows)
    if total == 0:
        return (np.inf if contradicted else 0.0), 0.0
    centre = sum(v * x for _, v, x in rows) / total
    apart = [0.0 if abs(x - centre) <= 1e-12 * max(abs(centre), 1.0) else x - centre for _, _, x in rows]
    spread = sum(v * d * d for (_, v, _), d in zip(rows, apart, strict=True))
    slope = sum(e * d for (e, _, _), d in zip(rows, apart, strict=True)) / spread**0.5 if spread > 0 else 0.0
    return (np.inf if contradicted else sum(e for e, _, _ in rows) / total**0.5), slope


def cox_score(statistic, prob, outcome, weight=None, expected=None):
    """Z_a^2 + Z_b^2, or one of the two."""
    a, b = cox_parts(prob, outcome, weight, expected)
    return {"joint": a * a + b * b, "intercept": a * a, "slope": b * b}[statistic.part]


def bridge_parts(prob, outcome, weight=None, expected=None):
    """S_n and max |S_k - t_k S_n| over the ends of tied blocks."""
    if len(prob[0]) != 2:
        raise ValueError("two outcomes")  # noqa: EM101
    w = [1.0] * len(prob) if weight is None else [float(v) for v in weight]
    r = [drawn_from(p) for p in (prob if expected is None else expected)]
    variance = sum(v * v * q[0] * q[1] for v, q in zip(w, r, strict=True))
    path = []
    for score in sorted({p[1] for p in prob}):
        rows = [i for i, p in enumerate(prob) if p[1] <= score]
        path.append(
            (
                sum(w[i] * ((outcome[i] == 1) - r[i][1]) for i in rows),
                sum(w[i] * w[i] * r[i][0] * r[i][1] for i in rows),
            )
        )
    end = path[-1][0]
    if variance == 0:
        return (np.inf if end else 0.0), (np.inf if any(s for s, _ in path) else 0.0)
    return end / variance**0.5, max(abs(s - v / variance * end) for s, v in path) / variance**0.5


def bridge(_, prob, outcome, weight=None, expected=None):
    """Fisher's combination of the p-values of the two parts, which scipy.stats knows."""
    mean, shape = bridge_parts(prob, outcome, weight, expected)
    if shape == np.inf:
        return np.inf
    return max(-2 * (float(np.log(2) + norm.logsf(abs(mean))) + float(np.log(kstwobign.sf(shape)))), 0.0)


def path(score, expected, happened, weight):
    """The sums of weight * (happened - expected) over rows of score at most s, for every score s that occurs.

    It starts at 0; tied rows enter together.
    """
    total, sums = 0.0, [0.0]
    for s in sorted(set(score)):
        for i, value in enumerate(score):
            if value == s:
                total += weight[i] * (happened[i] - expected[i])
        sums.append(total)
    return sums


def class_path(prob, outcome, k, weight, expected):
    """The path of class k, in the order of its probability."""
    return path(
        [float(p[k]) for p in prob],
        [float(q[k]) for q in (prob if expected is None else expected)],
        [int(y == k) for y in outcome],
        [1.0] * len(prob) if weight is None else [float(w) for w in weight],
    )


def event_path(prob, outcome, weight, expected):
    """The path of the event over the number (weight) of rows."""
    require_two_outcomes(prob)
    total = len(prob) if weight is None else sum(float(w) for w in weight)
    return [value / total for value in class_path(prob, outcome, 1, weight, expected)]


def kuiper(_, prob, outcome, weight=None, expected=None):
    """Range of the event's path."""
    values = event_path(prob, outcome, weight, expected)
    return max(values) - min(values)


def row_score(kind, p, y):
    """Brier or logarithmic score of one row; what has weight 0 is not asked."""
    if kind == "brier":
        return (p[1] - y) ** 2
    return -float(np.log(p[y])) if p[y] > 0 else np.inf


@cache
def isotonic_fit(score, happened, weight):
    """The increasing function of the score that is nearest to the outcomes, in every row.

    By its min-max formula: over all scores from below up to here, the largest of the smallest averages that begin
    there and end here or beyond.
    """
    levels = sorted(set(score))
    sums = []
    for s in levels:
        rows = [i for i, value in enumerate(score) if value == s]
        sums.append((sum(weight[i] for i in rows), sum(weight[i] * happened[i] for i in rows)))
    fitted = {}
    for here, s in enumerate(levels):
        best = -np.inf
        for start in range(here + 1):
            size = sum(w for w, _ in sums[start:here])
            events = sum(k for _, k in sums[start:here])
            lowest = np.inf
            for w, k in sums[here:]:
                size, events = size + w, events + k
                lowest = min(lowest, events / size)
            best = max(best, lowest)
        fitted[s] = best
    return [fitted[s] for s in score]


def mean_scores(kind, prob, outcome, weight=None, expected=None):
    """Mean score of what was stated, of the isotonic fit, and of the base rate; rows of weight 0 are left out."""
    require_two_outcomes(prob)
    weight = [1.0] * len(prob) if weight is None else [float(w) for w in weight]
    rows = [i for i, w in enumerate(weight) if w > 0]
    stated = [[float(q) for q in (prob if expected is None else expected)[i]] for i in rows]
    y, w = [outcome[i] for i in rows], [weight[i] for i in rows]
    fitted = isotonic_fit(tuple(float(prob[i][1]) for i in rows), tuple(y), tuple(w))
    rate = sum(v * k for v, k in zip(w, y, strict=True)) / sum(w)
    return [
        sum(v * row_score(kind, p, k) for v, p, k in zip(w, forecast, y, strict=True)) / sum(w)
        for forecast in (stated, [[1 - q, q] for q in fitted], [[1 - rate, rate]] * len(rows))
    ]


def isotonic_error(statistic, prob, outcome, weight=None, expected=None):
    """What the isotonic fit gains on what was stated."""
    stated, recalibrated, _ = mean_scores(statistic.score, prob, outcome, weight, expected)
    return stated - recalibrated


def skce(statistic, prob, outcome, weight=None, expected=None):
    """Mean of k(p, q) times the inner product of the residuals, over the pairs that the estimator looks at."""
    expected = prob if expected is None else expected
    n, w = len(prob), [1.0] * len(prob) if weight is None else [float(x) for x in weight]
    bandwidth = statistic.bandwidth
    if bandwidth == "median":
        bandwidth = median_distance(statistic.kernel, tuple(tuple(p) for p, x in zip(prob, w, strict=True) if x > 0))
    looked_at = {
        "biased": np.ones((n, n)),
        "unbiased": 1 - np.eye(n),
        "block": [[float(i % 2 == 0 and j == i + 1) for j in range(n)] for i in range(n)],
    }[statistic.estimator]
    residual = np.array(
        [[(y == k) - float(q) for k, q in enumerate(row)] for y, row in zip(outcome, expected, strict=True)]
    )
    pairs = np.outer(w, w) * looked_at
    similar = similarities(statistic.kernel, tuple(map(tuple, prob)), float(bandwidth))
    products = pairs * similar * (residual @ residual.T)
    return float(products.sum() / pairs.sum()) if pairs.sum() > 0 else 0.0


@cache
def similarities(kernel, rows, bandwidth):
    """The kernel of every two rows, found once for all estimators and weights."""
    if kernel is caltest.statistics.gaussian_kernel:
        return np.exp(-np.square(distances_of_pairs(kernel, rows) / bandwidth) / 2)
    if kernel in (caltest.statistics.total_variation_kernel, caltest.statistics.euclidean_kernel):
        return np.exp(-distances_of_pairs(kernel, rows) / bandwidth)
    return mirrored(
        [[float(kernel(np.array(p), np.array(q), bandwidth)) for q in rows[: i + 1]] for i, p in enumerate(rows)]
    )


@cache
def distances_of_pairs(kernel, rows):
    """The distance of every two rows that a kernel of the package looks at; total variation for any other kernel."""
    euclidean_kernels = {caltest.statistics.euclidean_kernel, caltest.statistics.gaussian_kernel}
    distance = euclidean if kernel in euclidean_kernels else total_variation
    return mirrored([[distance(p, q) for q in rows[: i + 1]] for i, p in enumerate(rows)])


def mirrored(triangle):
    """The symmetric matrix of which the rows hold what is left of the diagonal and on it."""
    return np.array([[triangle[max(i, j)][min(i, j)] for j in range(len(triangle))] for i in range(len(triangle))])


def median_distance(kernel, rows):
    """The middle of all n * n distances, or the average of the two middle ones; 1e-150 instead of 0."""
    return max(middle(sorted(distances_of_pairs(kernel, rows).ravel().tolist()), "median"), 1e-150)


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


def classwise(statistic, prob, outcome, weight=None, expected=None):
    """The mean or the maximum of a statistic over the classes, each against the rest."""
    values = []
    for k in range(len(prob[0])):
        one, null = ([[1 - p[k], float(p[k])] for p in rows] if rows is not None else None for rows in (prob, expected))
        values.append(evaluate(statistic.statistic, one, [y == k for y in outcome], weight, null))
    return sum(values) / len(values) if statistic.combine == "mean" else max(values)


def curve_distance(statistic, prob, outcome, weight=None, expected=None):
    """The mean, a quantile or the maximum of the distances to a smooth curve."""
    distances = curve_distances(statistic, prob, outcome, weight, expected)
    kind = type(statistic).__name__
    if kind == "ICI":
        return float(np.average(distances, weights=weight))
    if kind == "ECI":
        return 100 * float(np.average([d * d for d in distances], weights=weight))
    return max(distances) if kind == "Emax" else quantile(distances, weight, int(kind[1:]) / 100)


STATISTICS = {
    caltest.statistics.E50: curve_distance,
    caltest.statistics.ECI: curve_distance,
    caltest.statistics.E90: curve_distance,
    caltest.statistics.Emax: curve_distance,
    caltest.statistics.ICI: curve_distance,
    caltest.statistics.ACE: ace,
    caltest.statistics.Bridge: bridge,
    caltest.statistics.ClassConditionalECE: class_conditional_ece,
    caltest.statistics.ClassConditionalUCE: class_conditional_uce,
    caltest.statistics.Classwise: classwise,
    caltest.statistics.ClasswiseKS: classwise_ks,
    caltest.statistics.ConfidenceECE: confidence_ece,
    caltest.statistics.ConvexECE: convex_ece,
    caltest.statistics.CoxScore: cox_score,
    caltest.ECE: ece,
    caltest.statistics.EntropyDifference: entropy_difference,
    caltest.statistics.GCE: gce,
    caltest.statistics.GiViTI: giviti,
    caltest.HosmerLemeshow: hosmer_lemeshow,
    caltest.statistics.LeCessie: le_cessie,
    caltest.statistics.OsiusRojek: osius_rojek,
    caltest.statistics.Stukel: stukel,
    caltest.statistics.IsotonicError: isotonic_error,
    caltest.statistics.KDEError: kde_error,
    caltest.KS: ks,
    caltest.statistics.Kuiper: kuiper,
    caltest.statistics.MatrixScore: matrix_score,
    caltest.MCE: mce,
    caltest.statistics.MMCE: mmce,
    caltest.statistics.MonotonicSweepECE: monotonic_sweep,
    caltest.statistics.RMSCE: rmsce,
    caltest.statistics.SCE: sce,
    caltest.statistics.OverConfidence: temperature_score,
    caltest.SKCE: skce,
    caltest.statistics.SmoothCalibrationError: smooth_calibration_error,
    caltest.SmoothECE: smooth_ece,
    caltest.statistics.Spiegelhalter: spiegelhalter,
    caltest.SquaredL2: squared_l2,
    caltest.statistics.TACE: tace,
    caltest.TemperatureScore: temperature_score,
    caltest.statistics.UCE: uce,
    caltest.statistics.UnderConfidence: temperature_score,
}


def evaluate(statistic, prob, outcome, weight=None, expected=None):
    """Any statistic on plain rows."""
    rows = plain(prob)
    return STATISTICS[type(statistic)](statistic, rows, [int(y) for y in outcome], weight, expected)


# P-values.


def pvalue(observed, null):
    """(1 + #{null >= observed}) / (1 + B)."""
    values = [observed, *null]
    tolerance = tie_tolerance(values)
    return sum(other >= observed - tolerance for other in values) / len(values)


def tail_pvalues(values):
    """For every value the share of all values that reach it, itself included; within 1e-12 of the largest is a tie."""
    tolerance = tie_tolerance(values)
    return [sum(other >= value - tolerance for other in values) / len(values) for value in values]


def tie_tolerance(values):
    """The distance within which values are equal: a share of the largest."""
    return TIE_TOLERANCE * max((abs(value) for value in values if np.isfinite(value)), default=0.0)


def combine_pvalues(pvalues):
    """Min-p: the share of columns whose sorted p-values come no later in lexicographic order."""
    columns = [sorted(column) for column in zip(*pvalues, strict=True)]
    return [sum(other <= column for other in columns) / len(columns) for column in columns]


def stopped_pvalue(observed, draws, exceedances, checkpoints):
    """Number of draws and p-value if draws are made one by one, and looked at after some numbers of them.

    ``observed`` holds the value of each component, ``draws`` those of each draw.
    """
    return _stopped([observed], [draws], exceedances, checkpoints)


def stopped_global_pvalue(observed, draws, exceedances, checkpoints):
    """The same of "all hypotheses are true" if each of several questions has components, all of the same draws."""
    return _stopped(observed, draws, exceedances, checkpoints)


def _stopped(observed, draws, exceedances, checkpoints):
    before = exceedances - 1
    for n in range(1, len(draws[0]) + 1):
        if n not in checkpoints:
            continue
        ranked = []
        for first, others in zip(observed, draws, strict=True):
            pool = [first, *others[:n]]
            parts = [tail_pvalues([values[c] for values in pool]) for c in range(len(first))]
            ranked.append(parts[0] if len(parts) == 1 else combine_pvalues(parts))
        pvalue = (ranked[0] if len(ranked) == 1 else combine_pvalues(ranked))[0]
        extreme = round(pvalue * (n + 1)) - 1
        if n == checkpoints[-1]:
            return n, pvalue
        if extreme >= exceedances:
            return n, min(pvalue, exceedances / (before + 1))
        before = n
    raise AssertionError


# Studies of metrics.


def rank_correlation(one, other):
    """Spearman's: the correlation of ranks, equal values sharing the mean of theirs."""

    def ranks(values):
        return [sum(v < value for v in values) + (sum(v == value for v in values) + 1) / 2 for value in values]

    x, y = ranks(one), ranks(other)
    mean = (len(x) + 1) / 2
    product = sum((a - mean) * (b - mean) for a, b in zip(x, y, strict=True))
    norm = (sum((a - mean) ** 2 for a in x) * sum((b - mean) ** 2 for b in y)) ** 0.5
    return product / norm


def at_temperature(row, temperature):
    """Probabilities to the power 1 / temperature, normalised."""
    power = [p ** (1 / temperature) if p > 0 else 0.0 for p in row]
    return [p / sum(power) for p in power]


# Models with known truth.


def two_class_miscalibration(density, truth, distance, kinks, event=None):
    """E d(prediction, truth) of a two-class model whose probability p of class 0 has a density and a truth r(p).

    ``event`` None sees the whole prediction; "top" and "bottom" see that of the more or the less probable class, of
    which p and 1 - p look the same: their truths are averaged by their densities.
    """

    def pair(predicted, observed):
        return float(distance(np.array([1 - predicted, predicted]), np.array([1 - observed, observed])))

    def whole(p):
        return density(p) * float(distance(np.array([p, 1 - p]), np.array([truth(p), 1 - truth(p)])))

    def top(c):
        mass = density(c) + density(1 - c)
        right = (density(c) * truth(c) + density(1 - c) * (1 - truth(1 - c))) / mass
        return mass * (pair(c, right) if event == "top" else pair(1 - c, 1 - right))

    low, function = (0.0, whole) if event is None else (0.5, top)
    edges = sorted({low, 1.0, *(kink for kink in kinks if kink > low)})
    return sum(quad(function, a, b, epsabs=1e-11, epsrel=1e-11, limit=200)[0] for a, b in pairwise(edges))


def gaussian_posterior(mixture, x):
    """P(Y = k | x) of a Gaussian mixture by Bayes' rule, mode by mode."""
    joint = [
        sum(multivariate_normal(mean, matrix.T @ matrix).pdf(x) for mean, matrix in zip(means, matrices, strict=True))
        for means, matrices in zip(mixture.means, mixture.matrices, strict=True)
    ]
    return [density / sum(joint) for density in joint]


def cell_miscalibration(predicted, seen, label, distance):
    """Share of each cell times the distance between its mean prediction and the mean of what is seen there."""
    total = 0.0
    for cell in set(label):
        rows = [i for i in range(len(label)) if label[i] == cell]
        means = [sum(np.asarray(values[i]) for i in rows) / len(rows) for values in (predicted, seen)]
        total += len(rows) / len(label) * float(distance(*means))
    return total


# Laws of few rows.


def enumerate_law(statistic, p):
    """Values and probabilities of a statistic over all outcomes of independent events of probabilities p."""
    prob = [[1 - x, x] for x in p]
    values, probability = [], []
    for outcome in product((0, 1), repeat=len(p)):
        values.append(evaluate(statistic, prob, outcome))
        probability.append(float(np.prod([x if y else 1 - x for x, y in zip(p, outcome, strict=True)])))
    return np.array(values), np.array(probability)


def two_sided(p, k):
    """min(1, 2 min(P(K <= k), P(K >= k))) for the number K of independent events of probabilities p."""
    law = [1.0]
    for x in map(float, p):
        law = [a * (1 - x) + b * x for a, b in zip([*law, 0.0], [0.0, *law], strict=True)]
    return min(1.0, 2 * min(sum(law[: k + 1]), sum(law[k:])))


# Differences between two models, from the terms of all pairs of rows.


def pair_rows(residual, cell):
    """Rows of the matrix H, H_ij = 1{same cell} e_i . e_j / (n_b - 1) and H_ii = 0, one after the other."""
    members = {label: np.flatnonzero(cell == label) for label in set(cell.tolist())}
    for i, label in enumerate(cell.tolist()):
        row, same = np.zeros(len(cell)), members[label]
        if len(same) > 1:
            row[same] = residual[same] @ residual[i] / (len(same) - 1)
            row[i] = 0.0
        yield row


def difference(left, right):
    """D and Var(D) of two models on the same rows, each (residuals, cells)."""
    n = len(left[1])
    g, q = np.empty(n), 0.0
    for i, (a, b) in enumerate(zip(pair_rows(*left), pair_rows(*right), strict=True)):
        g[i] = np.sum(a - b)
        q += np.sum(np.square(a - b))
    by_row = 4 / n**2 * (np.sum(np.square(g - g.mean())) - q)
    return g.sum() / n, 2 * q / n**2 + max(0.0, by_row)


def stated_deviation(sample, partition):
    """Standard deviation of T if the predictions are true and the mean residuals of the cells are those seen."""
    first = 1 if sample.n_outcomes == 2 else 0
    n, cell = sample.n_samples, cells_of(sample, partition).index
    covariance = [(np.diag(p) - np.outer(p, p))[first:, first:] for p in sample.prob]
    residual = (np.eye(sample.n_outcomes)[sample.outcome] - sample.prob)[:, first:]
    variance = 0.0
    for label in set(cell.tolist()):
        rows = np.flatnonzero(cell == label)
        if len(rows) > 1:
            mean = residual[rows].mean(axis=0)
            pairs = sum(np.trace(covariance[i] @ covariance[j]) for i in rows for j in rows if i != j)
            variance += 2 * pairs / (len(rows) - 1) ** 2 + 4 * sum(mean @ covariance[i] @ mean for i in rows)
    return np.sqrt(variance) / n


def rare_rows(index, prob, labels):
    """Number of rows whose outcome is not the most frequent one of their cell and most probable outcome.

    Of a single such row: whether its outcome is not the most probable one.
    """
    alike = {}
    for cell, row, outcome in zip(index, prob, labels, strict=True):
        top = max(range(len(row)), key=lambda k: row[k])
        alike.setdefault((cell, top), []).append(outcome)
    return sum(
        sum(y != max(part, key=part.count) for y in part) if len(part) > 1 else part[0] != top
        for (_, top), part in alike.items()
    )


def paired_variance(samples, twins, partition):
    """Var(D), at least (s_A + s_B)^2 where a model has fewer than ten rare rows; 0 for models that do not differ."""
    variance = difference(*twins)[1]
    if (
        variance > 1e-20
        and min(rare_rows(cells_of(one, partition).index, one.prob, one.outcome) for one in samples) < 10
    ):
        return max(variance, sum(stated_deviation(sample, partition) for sample in samples) ** 2)
    return variance


def resampled(left, right, change):
    """What D deviates by as row i counts 1 + change_i times, its linear part scaled to the variance above."""
    n = len(left[1])
    h = np.array([a - b for a, b in zip(pair_rows(*left), pair_rows(*right), strict=True)])
    g = h.sum(axis=1) - h.sum() / n
    plain = np.sum(np.square(g))
    scale = np.sqrt(max(0.0, plain - np.sum(np.square(h))) / plain) if plain > 0 else 0.0
    return 2 * scale / n * change @ g + change @ h @ change / n


# Intervals, tolerance and the honest band.


def l2_residuals(prob, outcome):
    """One-hot outcome minus prediction; for two outcomes the event's alone."""
    if len(prob[0]) == 2:
        return [[y - p[1]] for p, y in zip(prob, outcome, strict=True)]
    return [[(k == y) - p[k] for k in range(len(p))] for p, y in zip(prob, outcome, strict=True)]


def stated_covariance(p):
    """diag p - p p'; for two outcomes the event's variance."""
    if len(p) == 2:
        return [[p[1] * (1 - p[1])]]
    return [[(p[j] if j == k else 0.0) - p[j] * p[k] for k in range(len(p))] for j in range(len(p))]


def dot(x, y):
    """Inner product."""
    return sum(a * b for a, b in zip(x, y, strict=True))


def multiply(a, b):
    """Matrix product."""
    columns = list(zip(*b, strict=True))
    return [[dot(row, column) for column in columns] for row in a]


def trace(a):
    """Sum of the diagonal."""
    return sum(a[k][k] for k in range(len(a)))


def l2_law(prob, outcome, labels):
    """T, s0, kappa / n, and the standard deviation of T at the estimate: sums over pairs of rows of a cell."""
    n, error = len(prob), l2_residuals(prob, outcome)
    groups = [[i for i in range(n) if labels[i] == cell] for cell in sorted(set(labels))]
    groups = [rows for rows in groups if len(rows) > 1]
    estimate = pairs = null_pairs = gap = along = 0.0
    covariances = []
    for rows in groups:
        m = len(rows)
        for i in rows:
            for j in rows:
                if i != j:
                    estimate += dot(error[i], error[j]) / (m - 1) / n
                    pairs += dot(error[i], error[j]) ** 2 / (m - 1) ** 2
                    a, b = stated_covariance(prob[i]), stated_covariance(prob[j])
                    null_pairs += trace(multiply(a, b)) / (m - 1) ** 2
        size = len(error[0])
        outcomes = max(size, 2)
        mean = [sum(error[i][k] for i in rows) / m for k in range(size)]
        even = [[(j == k) / outcomes - 1 / outcomes**2 for k in range(size)] for j in range(size)]
        covariance = [
            [
                (sum((error[i][j] - mean[j]) * (error[i][k] - mean[k]) for i in rows) + 4 * even[j][k]) / (m + 3)
                for k in range(size)
            ]
            for j in range(size)
        ]
        covariances.append((m, covariance))
        gap += m / n * dot(mean, mean)
        along += m / n * dot(mean, [dot(row, mean) for row in covariance])
    if len(error[0]) == 1:
        null_scale = sum(m * covariance[0][0] for m, covariance in covariances) / n
    else:
        squares = [multiply(c, c) for _, c in covariances]
        third = sum(trace(multiply(s, c)) for s, (_, c) in zip(squares, covariances, strict=True))
        null_scale = third / sum(trace(s) for s in squares)
    noise = (2 * max(pairs, null_pairs)) ** 0.5 / n
    return estimate, noise, max(along / gap, null_scale) / n, (noise**2 + 4 * along / n) ** 0.5


def calibration_band(score, happened, level, groups=None):
    """Lower and upper ends at the distinct scores: every block of groups, one after the other."""
    scores = sorted(set(score))
    group = list(range(len(scores))) if groups is None else groups
    number = len(set(group))
    delta = (1 - level) / (number * (number + 1))
    lower, upper = [0.0] * len(scores), [1.0] * len(scores)
    for first in range(number):
        for last in range(first, number):
            block = [x for x, g in zip(scores, group, strict=True) if first <= g <= last]
            rows = sum(x in block for x in score)
            events = sum(y for x, y in zip(score, happened, strict=True) if x in block)
            low = beta.ppf(delta, events, rows - events + 1) if events else 0.0
            high = beta.ppf(1 - delta, events + 1, rows - events) if events < rows else 1.0
            for i, x in enumerate(scores):
                lower[i] = max(lower[i], low) if x >= block[-1] else lower[i]
                upper[i] = min(upper[i], high) if x <= block[0] else upper[i]
    return lower, upper


def smallest_block_tail(score, happened, lengths, groups):
    """Smallest tail probability of the blocks of so many groups, if the model is calibrated."""
    scores, number, smallest = sorted(set(score)), max(groups) + 1, 1.0
    for first in range(number):
        for last in range(first, number):
            if last - first + 1 in lengths:
                block = [x for x, g in zip(scores, groups, strict=True) if first <= g <= last]
                rows = sum(x in block for x in score)
                events = sum(y for x, y in zip(score, happened, strict=True) if x in block)
                smallest = min(smallest, binom.sf(events - 1, rows, block[-1]), binom.cdf(events, rows, block[0]))
    return smallest
