"""Whether arrays are what nearly all arrays are: probabilities that sum to 1, an event in each row."""

import numpy as np

from caltest._compiled._jit import kernel


@kernel
def are_usual(prob, outcome, rounding):
    """Return whether all of ``prob (n, n_classes)`` lie in [0, 1], rows sum to 1 and ``outcome (n,)`` are classes."""
    n_classes = prob.shape[1]
    usual = prob.shape[0] == outcome.size and outcome.size > 0
    for i in range(outcome.size if usual else 0):
        total = 0.0
        for k in range(n_classes):
            usual &= 0.0 <= prob[i, k] <= 1.0
            total += prob[i, k]
        usual &= np.abs(total - 1.0) <= rounding
        usual &= 0 <= outcome[i] < n_classes
    return usual


@kernel
def read_events(prob, label, chosen, tolerance, rounding, event, happened, impossible):
    """Fill each row's event, whether it happened, and whether the label is impossible; return whether rows are valid.

    The event of ``prob (n_rows, n_classes)`` is the class ``chosen``, or the most probable one (the first of several)
    if that is negative; its probability is filled in. Rows are valid if ``label (n_rows,)`` is a class, probabilities
    are in [0, 1], and their sum misses 1 by at most ``tolerance``. Rows whose sum misses 1 by more than ``rounding``
    are divided by it. A label is impossible if its probability is 0.
    """
    valid, least = True, 1.0
    for i in range(prob.shape[0]):
        total, top, place, smallest = 0.0, prob[i, 0], 0, prob[i, 0]
        for k in range(prob.shape[1]):
            p = prob[i, k]
            total += p
            smallest = min(smallest, p)
            larger = p > top
            top = p if larger else top
            place = k if larger else place
        valid &= smallest >= 0.0 and top <= 1.0 and abs(total - 1.0) <= tolerance  # the sum finds what is no number
        valid &= label[i] >= 0 and label[i] < prob.shape[1]
        least = min(least, smallest)
        p = prob[i, chosen] if chosen >= 0 else top
        event[i] = np.divide(p, total if abs(total - 1.0) > rounding else 1.0)  # no branch, which rows would mispredict
        happened[i] = label[i] == (chosen if chosen >= 0 else place)
    impossible[:] = False
    if valid and least == 0.0:
        for i in range(prob.shape[0]):
            impossible[i] = prob[i, label[i]] == 0.0
    return valid
