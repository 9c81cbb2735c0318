"""Sums and paths of residuals whose groups have random signs."""

import numpy as np

from caltest._compiled._jit import kernel


@kernel
def sum_signed(signs, terms):
    """Return ``(n_replicates, n_terms)``: the sum over groups of ``terms (n_groups, n_terms)`` times their signs.

    Groups are added one after the other, so that rounding does not depend on how many replicates are evaluated at once.
    """
    n_replicates, n_groups = signs.shape
    n_terms = terms.shape[1]
    out = np.zeros((n_replicates, n_terms))
    for r in range(n_replicates):
        total = out[r]
        for g in range(n_groups):
            term = terms[g]
            if signs[r, g] > 0:
                for j in range(n_terms):
                    total[j] += term[j]
            else:
                for j in range(n_terms):
                    total[j] -= term[j]
    return out


@kernel
def signed_path_extremes(signs, group, residual, is_end):
    """Return ``(n_replicates, 3)``: largest and smallest value, including the start at 0, and end of each path.

    The path adds ``residual (n_samples,)`` times the sign of its ``group`` and is read where ``is_end``.
    """
    n_replicates = signs.shape[0]
    out = np.zeros((n_replicates, 3))
    for r in range(n_replicates):
        sign = signs[r]
        total = high = low = 0.0
        for i in range(residual.size):
            total += sign[group[i]] * residual[i]
            if is_end[i]:
                high = max(high, total)
                low = min(low, total)
        out[r, 0] = high
        out[r, 1] = low
        out[r, 2] = total
    return out
