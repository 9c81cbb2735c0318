"""Newton's method for many logistic regressions on the same features."""

import math

import numpy as np
from numba import njit

from caltest._compiled._jit import reduction

_BLOCK = 256  # observations whose numbers stay in the first-level cache


@njit(inline="always")
def _sums(design, weight, outcome, coefficient, logit, variance, residual, scaled, gradient, information):
    # Fills the logits and variances of all observations, and the gradient and the lower half of the information.
    n_features, n_samples = design.shape
    gradient[:] = 0.0
    information[:] = 0.0
    for begin in range(0, n_samples, _BLOCK):
        end = min(begin + _BLOCK, n_samples)
        z, v, w, y, size = logit[begin:end], variance[begin:end], weight[begin:end], outcome[begin:end], end - begin
        z[:] = 0.0
        for j in range(n_features):
            feature, factor = design[j, begin:end], coefficient[j]
            for i in range(size):
                z[i] += factor * feature[i]
        for i in range(size):
            v[i] = math.exp(-abs(z[i]))
        for i in range(size):
            inverse = 1.0 / (1.0 + v[i])
            smaller = v[i] * inverse
            v[i] = smaller * inverse
            residual[i] = w[i] * (y[i] - (smaller if z[i] < 0.0 else 1.0 - smaller))
        for j in range(n_features):
            feature = design[j, begin:end]
            total = 0.0
            for i in range(size):
                total += residual[i] * feature[i]
                scaled[i] = w[i] * v[i] * feature[i]
            gradient[j] += total
            for k in range(j + 1):
                other = design[k, begin:end]
                total = 0.0
                for i in range(size):
                    total += scaled[i] * other[i]
                information[j, k] += total


@njit(inline="always")
def _solve(information, ridge, step):
    # Cholesky's decomposition in the lower half; `step` is the right side at first. The ridge is the least pivot.
    n = step.size
    for j in range(n):
        for k in range(j + 1):
            total = information[j, k]
            for m in range(k):
                total -= information[j, m] * information[k, m]
            if k < j:
                information[j, k] = total / information[k, k]
            else:
                information[j, j] = math.sqrt(max(total + ridge, ridge))
        total = step[j]
        for m in range(j):
            total -= information[j, m] * step[m]
        step[j] = total / information[j, j]
    for j in range(n - 1, -1, -1):
        total = step[j]
        for m in range(j + 1, n):
            total -= information[m, j] * step[m]
        step[j] = total / information[j, j]


@reduction
def fit_logistic(design, weight, outcomes, most_steps, longest, near, solved, ridge, coefficients, converged):
    """Move ``coefficients (n_replicates, n_features)`` to the largest likelihood of ``outcomes``.

    ``design (n_features, n_samples)``; ``outcomes (n_replicates, n_samples)`` are 0, 1 or shares. A step at a logit z
    is at most ``longest + |z| / 2``. Fits end once all logits change by at most ``near``, or all probabilities by at
    most ``solved``, which ``converged (n_replicates,)`` says. ``ridge`` is a share of the information.
    """
    n_features, n_samples = design.shape
    logit, variance, change = np.empty(n_samples), np.empty(n_samples), np.empty(n_samples)
    residual, scaled = np.empty(_BLOCK), np.empty(_BLOCK)
    step, information = np.empty(n_features), np.empty((n_features, n_features))
    for r in range(outcomes.shape[0]):
        outcome = outcomes[r]
        converged[r] = False
        for _ in range(most_steps):
            _sums(design, weight, outcome, coefficients[r], logit, variance, residual, scaled, step, information)
            trace = 0.0
            for j in range(n_features):
                trace += information[j, j]
            _solve(information, max(ridge * trace, 1e-300), step)
            change[:] = 0.0
            for j in range(n_features):
                for i in range(n_samples):
                    change[i] += step[j] * design[j, i]
            largest = moved = 0.0
            too_long = 1.0
            for i in range(n_samples):
                largest = max(largest, abs(change[i]))
            if largest > longest:
                for i in range(n_samples):
                    too_long = max(too_long, abs(change[i]) / (longest + abs(logit[i]) / 2))
            if largest > near:
                for i in range(n_samples):
                    moved = max(moved, abs(change[i]) * variance[i])
            for j in range(n_features):
                coefficients[r, j] += step[j] / too_long
            if largest <= near or moved <= solved:
                converged[r] = True
                break
