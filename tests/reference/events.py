"""Observed/expected and calibration slope as they are defined: all label vectors, and likelihoods over a list."""

import itertools
import math

import numpy as np
from scipy import optimize
from scipy.special import expit, logit


def all_labels(n):
    """Every vector of n labels, ``(2 ** n, n)``."""
    return np.array(list(itertools.product([0, 1], repeat=n)))


def tails_of_sum(prob, a, b, observed):
    """P(O <= o) and P(O >= o) at an intercept and a slope, by enumeration."""
    risk, labels = expit(a + b * logit(prob)), all_labels(len(prob))
    mass = np.where(labels == 1, risk, 1 - risk).prod(axis=1)
    total = labels.sum(axis=1)
    return mass[total <= observed].sum(), mass[total >= observed].sum()


def tails_of_slope(prob, b, y):
    """P(S > s | O), and P(S = s | O), at a slope, by enumeration; S is the sum of the logits of events."""
    x, labels = logit(prob), all_labels(len(prob))
    labels = labels[labels.sum(axis=1) == np.sum(y)]
    total = labels @ x
    mass = np.exp(b * (total - total.max()))
    mass /= mass.sum()
    equal = np.isclose(total, np.dot(y, x), rtol=0, atol=1e-9)
    return mass[(total > np.dot(y, x)) & ~equal].sum(), mass[equal].sum()


def log_likelihood(y, x, a, b):
    """Sum over the observations, one by one."""
    return sum(-math.log1p(math.exp(-(2 * t - 1) * (a + b * v))) for t, v in zip(y, x, strict=True))


def best_intercept(y, x, b):
    """The intercept of greatest likelihood for a slope."""
    return optimize.brentq(lambda a: np.sum(y - expit(a + b * x)), -200, 200, xtol=1e-13)


def logistic(y, x):
    """Intercept and slope of greatest likelihood, by a general minimiser."""
    found = optimize.minimize(
        lambda t: -log_likelihood(y, x, *t),
        [0.0, 0.5],
        jac=lambda t: -np.array([np.sum(y - expit(t[0] + t[1] * x)), np.sum((y - expit(t[0] + t[1] * x)) * x)]),
        tol=1e-12,
    )
    return found.x


def information(x, a, b):
    """The information matrix of intercept and slope."""
    risk, design = expit(a + b * x), np.column_stack([np.ones(len(x)), x])
    return (design * (risk * (1 - risk))[:, None]).T @ design


def signed_root(y, prob, b):
    """r* of the slope, from likelihoods and determinants."""
    x = logit(prob)
    a_best, b_best = logistic(y, x)
    a = best_intercept(y, x, b)
    r = np.sign(b_best - b) * math.sqrt(2 * (log_likelihood(y, x, a_best, b_best) - log_likelihood(y, x, a, b)))
    u = (b_best - b) * math.sqrt(np.linalg.det(information(x, a_best, b_best)) / information(x, a, b)[0, 0])
    return r + math.log(u / r) / r


def jackknife(estimates):
    """The standard error from estimates without each group, about the estimate of all (the first)."""
    whole, left = estimates[0], np.array(estimates[1:])
    return math.sqrt((len(left) - 1) / len(left) * np.sum((left - whole) ** 2))
