"""Slow twins of the statistics of Stukel, Osius and Rojek, and le Cessie: loops over lists."""

from math import log, sqrt


def observations(prob, outcome, weight, expected):
    """Logit, weight, residual and variance of each observation; None if something impossible happened."""
    found = []
    for i, p in enumerate(prob):
        low, high = (max(q, 0.0) for q in (p if expected is None else expected[i]))
        low, high = low / (low + high), high / (low + high)
        if (high if outcome[i] else low) <= 0:
            return None
        w = 1.0 if weight is None else float(weight[i])
        if min(p) > 0 and w > 0:
            found.append((log(p[1]) - log(p[0]), w, outcome[i] - high, low * high))
    return found


def stukel(_, prob, outcome, weight=None, expected=None):
    """The sum of two squared scores."""
    found = observations(prob, outcome, weight, expected)
    if found is None:
        return float("inf")
    total = 0.0
    for sign in (-1, 1):
        side = [(x * x / 2, w, r, v) for x, w, r, v in found if sign * x > 0]
        spread = sum((z * w) ** 2 * v for z, w, _, v in side)
        if spread > 0:
            total += sum(z * w * r for z, w, r, _ in side) ** 2 / spread
    return total


def osius_rojek(_, prob, outcome, weight=None, expected=None):
    """Pearson's chi-square of equal predictions minus its mean, divided by its standard deviation."""
    found = observations(prob, outcome, weight, expected)
    if found is None:
        return float("inf")
    excess, spread, n_patterns = 0.0, 0.0, 0
    for logit in sorted({one[0] for one in found}):
        same = [one for one in found if one[0] == logit]
        variance = sum(w * w * v for _, w, _, v in same)
        if variance > 0:
            n_patterns += 1
            excess += sum(w * r for _, w, r, _ in same) ** 2 / variance - 1
            # E R^4 = 3 variance^2 + the fourth cumulant
            spread += 2 + sum(w**4 * v * (1 - 6 * v) for _, w, _, v in same) / variance**2
    return abs(excess) / sqrt(spread) if spread > 1e-9 * n_patterns else 0.0


def le_cessie(_, prob, outcome, weight=None, expected=None):
    """The mean of squared smoothed residuals; the half-width is the smallest distance that is large enough."""
    found = observations(prob, outcome, weight, expected)
    if found is None:
        return float("inf")
    if not found:
        return 0.0
    total = sum(w for _, w, _, _ in found)
    wanted = sqrt(sum(w * w for _, w, _, _ in found)) / total
    pairs = sorted((abs(a[0] - b[0]), a[1] * b[1] / total**2) for a in found for b in found)
    share, half = 0.0, 0.0
    for distance, mass in pairs:
        if share >= wanted * (1 - 1e-9) and distance > half * (1 + 1e-9):
            break
        share, half = share + mass, distance
    value = 0.0
    for x, w, _, _ in found:
        window = [one for one in found if abs(one[0] - x) <= half * (1 + 1e-9)]
        spread = sum(weight * weight * v for _, weight, _, v in window)
        if spread > 0:
            value += w / total * sum(weight * r for _, weight, r, _ in window) ** 2 / spread
    return value
