"""Residual correlations by loops over all pairs: the slow twin of `residual_correlation`."""

import numpy as np


def residuals(y_true, prob):
    """Return residuals ``(n, n_classes)`` without the shift, slope and bend that a weighted regression finds."""
    left = np.empty(prob.shape)
    for k in range(prob.shape[1]):
        p = np.clip(prob[:, k], 1e-12, 1 - 1e-12)
        variance, logit = p * (1 - p), np.log(p / (1 - p))
        root = np.sqrt(variance)
        design = np.column_stack([np.ones(len(p)), logit, logit**2]) * root[:, None]
        e = (np.asarray(y_true) == k) - prob[:, k]
        coefficient = np.linalg.lstsq(design, e / root, rcond=None)[0]
        left[:, k] = e - root * (design @ coefficient)
    return left


def lag_correlations(y_true, prob, time, lags):
    """Return for each lag the number of pairs and their correlation."""
    e, times = residuals(y_true, prob), sorted(set(time))
    place = [times.index(t) for t in time]
    square = sum(float(row @ row) for row in e)
    found = []
    for lag in lags:
        number, total = 0, 0.0
        for i in range(len(e)):
            for j in range(len(e)):
                if place[j] - place[i] == lag and (lag or i < j):
                    number, total = number + 1, total + float(e[i] @ e[j])
        found.append((number, total / square * len(e) / max(number, 1)))
    return found


def variance_ratios(found, n):
    """Return the variance ratios of windows, from numbers of pairs and correlations at lags 0, 1, 2, ..."""
    ratios = []
    for window in range(1, len(found) + 1):
        ratio = 1.0
        for lag in range(window):
            number, correlation = found[lag]
            ratio += 2 * (1 - lag / window) * correlation * number / n
        ratios.append(ratio)
    return ratios
