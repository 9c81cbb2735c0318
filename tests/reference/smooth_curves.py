"""Slow and obvious twins of the smooth calibration curves: R's loess and lowess over sorted lists, and a spline."""

from math import exp, log

import numpy as np
from scipy.interpolate import CubicHermiteSpline
from scipy.stats import chi2


def curve_distances(statistic, prob, outcome, weight, expected):
    """The distances of the curve from the predictions (or from what the null hypothesis expects), row by row."""
    if len(prob[0]) != 2:
        raise ValueError("two outcomes")  # noqa: EM101
    order = sorted(range(len(prob)), key=lambda i: prob[i][1])
    x = [prob[i][1] for i in order]
    w = [1.0 if weight is None else float(weight[i]) for i in order]
    y = [float(outcome[i]) for i in order]
    null = x if expected is None else [float(expected[i][1]) for i in order]
    span = statistic.span or {"loess": 0.75, "lowess": 2 / 3, "spline": None}[statistic.smoother]
    if statistic.smoother == "spline":
        curve = spline_curve(x, y, w)
    else:
        curve = {"loess": loess_curve, "lowess": lowess_curve}[statistic.smoother](x, y, w, span)
    distances = [0.0] * len(x)
    for place, i in enumerate(order):
        distances[i] = abs(curve[place] - null[place])
    return distances


def quantile(values, weight, share):
    """The interpolated order statistic; an observation of weight w counts w times."""
    weight = [1.0] * len(values) if weight is None else [float(w) * len(values) / sum(weight) for w in weight]
    place = 1 + (len(values) - 1) * share
    whole = int(place)

    def order_statistic(k):
        reached = 0.0
        for value, w in sorted(zip(values, weight, strict=True)):
            reached += w
            if reached >= min(k, len(values)) - 1e-9:
                return value
        raise AssertionError

    low = order_statistic(whole)
    return low + (place - whole) * (order_statistic(whole + 1) - low)


def lowess_curve(x, y, w, span):
    """The program of Cleveland: fit at a point, jump by at most a hundredth of the range, interpolate between."""
    n, step = len(x), 0.01 * (x[-1] - x[0])
    near = min(max(int(span * n + 1e-7), 2), n)
    curve: list[float | None] = [None] * n
    last, i = -1, 0
    while True:
        curve[i] = line_at(x, y, w, x[i], near)
        for j in range(last + 1, i):
            share = (x[j] - x[last]) / (x[i] - x[last])
            curve[j] = share * curve[i] + (1 - share) * curve[last]
        last, i = i, i + 1
        cut = x[last] + step
        while i < n and x[i] <= cut:
            if x[i] == x[last]:
                curve[i], last = curve[last], i
            i += 1
        if last >= n - 1:
            return curve
        i = max(last + 1, i - 1)


def line_at(x, y, w, at, near):
    """The local line at a point, or the local mean where the neighbours hardly differ."""
    h = sorted(abs(one - at) for one in x)[near - 1] if len(x) > 1 else 0.0
    local = []
    for one, own in zip(x, w, strict=True):
        r = abs(one - at)
        if r > 0.999 * h and r > 0:
            local.append(0.0)
        else:
            local.append(own if r <= 0.001 * h else own * (1 - (r / h) ** 3) ** 3)
    total = sum(local)
    centre = sum(v * one for v, one in zip(local, x, strict=True)) / total
    mean = sum(v * one for v, one in zip(local, y, strict=True)) / total
    spread = sum(v * (one - centre) ** 2 for v, one in zip(local, x, strict=True)) / total
    if h == 0 or not spread**0.5 > 0.001 * (x[-1] - x[0]):
        return mean
    slope = sum(v * (one - centre) * other for v, one, other in zip(local, x, y, strict=True)) / total / spread
    return mean + slope * (at - centre)


def loess_curve(x, y, w, span):
    """Local parabolas at the vertices of halved cells, and cubic polynomials between them."""
    n = len(x)
    if x[0] == x[-1]:
        return [sum(v * one for v, one in zip(w, y, strict=True)) / sum(w)] * n
    margin = 0.005 * max(x[-1] - x[0], max(abs(x[0]), abs(x[-1])) * 1e-10 + 1e-30)
    vertices = [x[0] - margin, x[-1] + margin]
    halve(x, 0, n - 1, vertices, int(n * span * 0.2))
    vertices.sort()
    near = min(max(int(n * span + 1e-5), 1), n)
    fits = [parabola_at(x, y, w, vertex, near) for vertex in vertices]
    spline = CubicHermiteSpline(vertices, [value for value, _ in fits], [slope for _, slope in fits])
    return [float(spline(one)) for one in x]


def halve(x, low, high, vertices, most):
    """Cut at the median, or the nearest place between different values, and go on with both halves."""
    if high - low + 1 <= most:
        return
    middle = cut = (low + high) // 2
    for offset in [0] + [sign * k for k in range(1, high - low + 2) for sign in (1, -1)]:
        if middle + offset >= high or middle + offset < low:
            break
        if x[middle + offset] != x[middle + offset + 1]:
            cut = middle + offset
            break
    if x[cut] in vertices:
        return
    vertices.append(x[cut])
    halve(x, low, cut, vertices, most)
    halve(x, cut + 1, high, vertices, most)


def parabola_at(x, y, w, at, near):
    """Value and slope of the local parabola of least squares, the shortest one of several."""
    h = sorted(abs(one - at) for one in x)[near - 1]
    if not any(abs(one - at) < h for one in x):
        farther = [abs(one - at) for one in x if abs(one - at) > h]
        h = min(farther) if farther else float("inf")
    rows, right = [], []
    for one, target, own in zip(x, y, w, strict=True):
        r = abs(one - at) / h
        root = (own * (1 - r**3) ** 3) ** 0.5 if r < 1 else 0.0
        rows.append([root, root * (one - at), root * (one - at) ** 2])
        right.append(root * target)
    table = np.array(rows)
    scale = np.sqrt((table**2).sum(axis=0))
    scale[scale == 0] = 1
    solution = np.linalg.lstsq(table / scale, np.array(right), rcond=100 * np.finfo(float).eps)[0] / scale
    return float(solution[0]), float(solution[1])


def spline_curve(x, y, w):
    """Logistic regression on the truncated powers of Harrell's spline, by many careful steps of Newton."""
    logit = [log(p / (1 - p)) for p in x]
    knots = [float(np.quantile(logit, q)) for q in (0.05, 0.275, 0.5, 0.725, 0.95)]
    if 10 <= len(logit) < 100:
        knots[0], knots[-1] = logit[4], logit[-5]
    knots = sorted(set(knots))
    rows = [[1.0, one, *truncated(one, knots)] for one in logit]
    table = np.linalg.qr(np.array(rows))[0]
    rank = np.linalg.matrix_rank(np.array(rows), tol=1e-10)
    if rank < len(rows[0]):  # as many independent columns as there are
        table = np.linalg.svd(np.array(rows), full_matrices=False)[0][:, :rank]
    y, w, eta = np.array(y), np.array(w), np.array(logit)
    for _ in range(400):
        p = np.array([1 / (1 + exp(-one)) if one > -700 else 0.0 for one in eta])
        information = (table * (w * p * (1 - p))[:, None]).T @ table
        information += max(1e-13 * np.trace(information), 1e-300) * np.eye(table.shape[1])
        step = table @ np.linalg.solve(information, table.T @ (w * (y - p)))
        eta = eta + step / max(1.0, float((np.abs(step) / (2 + np.abs(eta) / 2)).max()))
    return [1 / (1 + exp(-one)) if one > -700 else 0.0 for one in eta]


def truncated(one, knots):
    """Cubic between the knots, linear beyond them."""
    if len(knots) < 3:
        return []
    cube = [max(one - knot, 0.0) ** 3 for knot in knots]
    gap = knots[-1] - knots[-2]
    return [
        cube[j] - cube[-2] * (knots[-1] - knots[j]) / gap + cube[-1] * (knots[-2] - knots[j]) / gap
        for j in range(len(knots) - 2)
    ]


def giviti(statistic, prob, outcome, weight=None, expected=None):
    """Twice the logarithm of the likelihood ratio of a polynomial, whose degree rises while it is significant."""
    null = prob if expected is None else expected
    inner = [i for i in range(len(prob)) if min(prob[i]) > 0]  # of float32 an event may have 1, and the rest 1e-8
    if any(null[i][y] <= 0 for i, y in enumerate(outcome) if i not in inner):
        return float("inf")
    if not inner:
        return 0.0
    y = np.array([float(outcome[i]) for i in inner])
    w = np.array([1.0 if weight is None else float(weight[i]) for i in inner])
    logit = [log(prob[i][1]) - log(prob[i][0]) for i in inner]
    start = np.array([log(null[i][1]) - log(null[i][0]) for i in inner])
    before = float((w * -np.logaddexp(0, np.where(y > 0, -start, start))).sum())
    degree, found = statistic.first_degree, None
    while True:
        rows = np.array([[one**power for power in range(degree + 1)] for one in logit])
        left, size, _ = np.linalg.svd(rows / np.abs(rows).max(axis=0).clip(1e-300), full_matrices=False)
        higher = largest_likelihood(left[:, size > 1e-11 * size[0]], y, w, np.array(logit))
        if found is not None and 2 * (higher - found) < chi2(1).ppf(statistic.threshold):
            break
        found = higher
        if degree == statistic.last_degree:
            break
        degree += 1
    return max(2 * (found - before), 0.0)


def largest_likelihood(table, y, w, eta):
    """The log-likelihood of a logistic regression after many careful steps of Newton; 0 where the logit separates."""
    events, others = eta[y > 0], eta[y == 0]
    slopes = len(set(eta.tolist())) > 1 and table.shape[1] > 1
    if not len(events) or not len(others) or (slopes and (events.min() > others.max() or events.max() < others.min())):
        return 0.0
    for _ in range(150):
        p = 1 / (1 + np.exp(-np.clip(eta, -700, 700)))
        information = (table * (w * p * (1 - p))[:, None]).T @ table
        information += max(1e-13 * np.trace(information), 1e-300) * np.eye(table.shape[1])
        step = table @ np.linalg.solve(information, table.T @ (w * (y - p)))
        eta = eta + step / max(1.0, float((np.abs(step) / (2 + np.abs(eta) / 2)).max()))
    return float((w * -np.logaddexp(0, np.where(y > 0, -eta, eta))).sum())
