"""Simultaneous binomial bounds over all blocks of neighbouring groups of rows.

Groups are given by how many rows and how many events come before each of them, with all of them last. Only blocks that
begin with a group in ``starts`` and end with a group that holds an event can matter: to take in another group full of
events, or to leave out one without any, makes a lower bound larger.
"""

import math

import numpy as np

from caltest._compiled._jit import kernel


@kernel
def _log_tail(n, s, c, log_factorial):
    """Return log P(Binomial(n, c) >= s) for s >= 1 above the mean, and the share of the first term in it."""
    log_pmf = log_factorial[n] - log_factorial[s] - log_factorial[n - s] + s * math.log(c)
    if n > s:
        log_pmf += (n - s) * math.log1p(-c)
    odds = c / (1.0 - c) if c < 1.0 else 0.0
    term = 1.0
    total = 1.0
    for k in range(s, n):
        term *= (n - k) / (k + 1.0) * odds
        total += term
        if term < 1e-17 * total:
            break
    return log_pmf + math.log(total), 1.0 / total


@kernel
def _lower_bound(n, s, start, log_level, log_factorial):
    """Return c with P(Binomial(n, c) >= s) = level, s >= 1.

    The log of the probability is increasing and concave in log c: Newton's steps from the left stay on the left.
    """
    least = (log_level - log_factorial[n] + log_factorial[s] + log_factorial[n - s]) / s
    log_c = least if start <= 0.0 else max(math.log(start), least)
    for _ in range(100):
        log_tail, first = _log_tail(n, s, math.exp(log_c), log_factorial)
        step = (log_level - log_tail) / (s * first)
        log_c += step
        if not step > 1e-15:
            break
    return math.exp(log_c)


@kernel
def lower_band(rows_before, events_before, starts, log_factorial, log_level):
    """Return ``(n_groups,)``: the largest lower bound of all blocks that end at or before each group."""
    n_groups = rows_before.size - 1
    low = np.empty(n_groups)
    current = 0.0
    # A tail is at least exp(-n KL) / sqrt(2 n), and KL at most the chi-squared distance (Ash 1965, lemma 4.7.2).
    reach = -log_level - 0.5 * math.log(2.0 * rows_before[n_groups])
    for k in range(n_groups):
        rows = rows_before[k + 1]
        events = events_before[k + 1]
        if events > events_before[k]:
            for i in range(starts.size):
                j = starts[i]
                if j > k:
                    break
                n = rows - rows_before[j]
                s = events - events_before[j]
                gap = s - n * current
                if gap <= 0.0 or gap * gap <= reach * current * (1.0 - current) * n:
                    continue
                if current > 0.0 and _log_tail(n, s, current, log_factorial)[0] >= log_level:
                    continue
                current = _lower_bound(n, s, current, log_level, log_factorial)
        low[k] = current
    return low


@kernel
def smallest_tail(rows_before, events_before, starts, score, log_factorial, log_largest):
    """Return the smallest log P(Binomial(n, score) >= s) of all blocks, at the score of their last group.

    ``log_largest`` if none is smaller.
    """
    best = log_largest
    half = 0.5 * math.log(2.0 * rows_before[rows_before.size - 1])
    for k in range(rows_before.size - 1):
        c = score[k]
        rows = rows_before[k + 1]
        events = events_before[k + 1]
        if events == events_before[k] or c >= 1.0:
            continue
        if c <= 0.0:
            return -np.inf
        for i in range(starts.size):
            j = starts[i]
            if j > k:
                break
            n = rows - rows_before[j]
            s = events - events_before[j]
            gap = s - n * c
            if gap <= 0.0 or gap * gap <= (-best - half) * c * (1.0 - c) * n:
                continue
            best = min(best, _log_tail(n, s, c, log_factorial)[0])
    return best
