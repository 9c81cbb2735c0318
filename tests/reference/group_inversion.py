"""The squared l2 error of groups, one group, cell and observation after the other.

`caltest.statistics._segments` and `_squared_l2_inversion` compute the same from sorted segments; here every sum runs
over groups and cells as the formulas are written.
"""

from itertools import pairwise
from math import exp, factorial, inf, pi, sqrt

import numpy as np


def residual_sums(error, weight, group, cell):
    """Weighted residual sums and weights by (group, cell)."""
    sums, mass = {}, {}
    for e, w, g, b in zip(error, weight, group, cell, strict=True):
        sums[g, b] = sums.get((g, b), 0) + w * np.asarray(e)
        mass[g, b] = mass.get((g, b), 0) + w
    return sums, mass


def estimate(error, weight, group, cell):
    """T: over the cells, the sum over pairs of different groups of the products of their sums."""
    sums, mass = residual_sums(error, weight, group, cell)
    found = 0.0
    for b in set(cell):
        groups = [g for g, c in sums if c == b]
        pairs = [(g, h) for g in groups for h in groups if g != h]
        products = sum(float(sums[g, b] @ sums[h, b]) for g, h in pairs)
        masses = sum(mass[g, b] * mass[h, b] for g, h in pairs)
        found += sum(mass[g, b] for g in groups) * products / masses
    return found / sum(weight)


def inflation(error, weight, group, cell):
    """Variance of the centred sums of groups (CR2) over that of independent observations."""
    sums, mass = residual_sums(error, weight, group, cell)
    whole = {b: sum(m for (_, c), m in mass.items() if c == b) for b in set(cell)}
    mean = {b: sum(u for (_, c), u in sums.items() if c == b) / whole[b] for b in whole}
    between = 0.0
    for g in set(group):
        total = 0.0
        for (h, b), u in sums.items():
            if h == g:
                total = total + (u - mass[g, b] * mean[b]) / sqrt(1 - mass[g, b] / whole[b])
        between += float(total @ total)
    own = 0.0
    for b, size in whole.items():
        rows = [i for i, c in enumerate(cell) if c == b]
        squares = sum(weight[i] ** 2 * float(np.sum((error[i] - mean[b]) ** 2)) for i in rows)
        share = sum(weight[i] ** 2 for i in rows) / size**2
        own += squares / (1 - min(share, 0.99))
    return between / own if own > 0 else 0.0


def labels(prob, group, shock, noise, correlation):
    """The class whose cumulative probability is the first above the normal probability of the latent number."""
    from scipy.special import ndtr

    latent = [sqrt(correlation) * shock[g] + sqrt(1 - correlation) * e for g, e in zip(group, noise, strict=True)]
    return [int(np.searchsorted(np.cumsum(p)[:-1], ndtr(z), side="right")) for p, z in zip(prob, latent, strict=True)]


def covariance_of_pairs(prob, weight, group, correlation):
    """Sum over pairs of a group and over classes of the covariances of weighted labels, by Mehler's series."""
    from scipy.special import eval_hermitenorm, ndtri

    def coefficient(bound, m):
        if abs(bound) == inf:
            return 0.0
        return exp(-(bound**2) / 2) / sqrt(2 * pi) * eval_hermitenorm(m - 1, bound) / sqrt(factorial(m))

    terms = []
    for p in prob:
        bounds = [-inf, *ndtri(np.minimum(np.cumsum(p)[:-1], 1)), inf]
        terms.append([[coefficient(b, m) - coefficient(a, m) for m in range(1, 17)] for a, b in pairwise(bounds)])
    powers = [correlation**m for m in range(1, 17)]
    total = 0.0
    for i in range(len(prob)):
        for j in range(len(prob)):
            if i != j and group[i] == group[j]:
                products = np.array(terms[i]) * np.array(terms[j])
                total += weight[i] * weight[j] * float((products @ powers).sum())
    return total
