"""Simultaneous binomial bounds over all blocks of neighbouring groups of rows.

Groups are given by how many rows and how many events come before each of them, with all of them last. Blocks have one
of the increasing ``lengths``, in groups. Only those that end with a group that holds an event can matter: to leave out
one without any makes a lower bound larger. Where all lengths are allowed, only those can matter that begin with a group
which holds an event and does not follow one that is full of events. ``next_begin (n_groups + 1,)`` has for each group
the next one, or itself, with which blocks begin; where some lengths are not allowed, that is each group itself.
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
def lower_band(rows_before, events_before, next_begin, lengths, log_factorial, log_level):
    """Return ``(n_groups,)``: the largest lower bound of the blocks that end at or before each group."""
    n_groups = rows_before.size - 1
    low = np.empty(n_groups)
    current = log_current = log_rest = 0.0
    n_lengths = 0  # that fit before a group
    # A tail is at least exp(-n KL) / sqrt(2 n), and KL at most the chi-squared distance (Ash 1965, lemma 4.7.2).
    reach = -log_level - 0.5 * math.log(2.0 * rows_before[n_groups])
    for k in range(n_groups):
        rows = rows_before[k + 1]
        events = events_before[k + 1]
        if events > events_before[k]:
            while n_lengths < lengths.size and lengths[n_lengths] <= k + 1:
                n_lengths += 1
            i = n_lengths - 1
            while i >= 0:  # long ones first
                j = k + 1 - lengths[i]
                skipped = next_begin[j] - j
                i -= max(skipped, 1)
                if skipped:
                    continue
                n = rows - rows_before[j]
                s = events - events_before[j]
                gap = s - n * current
                if gap <= 0.0 or gap * gap <= reach * current * (1.0 - current) * n:
                    continue
                if current > 0.0:
                    choices = log_factorial[n] - log_factorial[s] - log_factorial[n - s]
                    if choices + s * log_current + (n - s) * log_rest >= log_level:  # the first term alone
                        continue
                    if _log_tail(n, s, current, log_factorial)[0] >= log_level:
                        continue
                current = _lower_bound(n, s, current, log_level, log_factorial)
                log_current = math.log(current)
                log_rest = math.log1p(-current)
        low[k] = current
    return low


@kernel
def smallest_tails(rows_before, events_before, lengths, score, log_factorial, best):
    """Lower ``best (n_draws,)`` to the smallest log P(Binomial(n, score) >= s) of all blocks, at their last score.

    ``events_before (n_draws, n_groups + 1)`` are those of each draw.
    """
    # A tail is at least exp(-n KL) / sqrt(2 n), and KL at most the chi-squared distance (Ash 1965, lemma 4.7.2).
    half = 0.5 * np.log(2.0 * np.arange(rows_before[rows_before.size - 1] + 1.0) + 1e-300)
    for r in range(best.size):
        before = events_before[r]
        smallest = best[r]
        for k in range(rows_before.size - 1):
            c = score[k]
            events = before[k + 1]
            if events == before[k] or c >= 1.0:
                continue
            if c <= 0.0:
                smallest = -np.inf
                break
            log_c = math.log(c)
            log_rest = math.log1p(-c)
            variance = c * (1.0 - c)
            for i in range(lengths.size):
                j = k + 1 - lengths[i]
                if j < 0:
                    break
                n = rows_before[k + 1] - rows_before[j]
                s = events - before[j]
                gap = s - n * c
                if gap <= 0.0 or gap * gap <= (-smallest - half[n]) * variance * n:
                    continue
                choices = log_factorial[n] - log_factorial[s] - log_factorial[n - s]
                if choices + s * log_c + (n - s) * log_rest >= smallest:  # the first term alone
                    continue
                smallest = min(smallest, _log_tail(n, s, c, log_factorial)[0])
        best[r] = smallest
