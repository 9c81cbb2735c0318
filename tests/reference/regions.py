"""Slow and obvious twins of the regions of an event: loops over observations, and over all numbers of events."""

import math
from itertools import pairwise, product

LOW_NUMBERS = [0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4]


def intervals():
    """Pairs of round numbers, from 0 to 1; one half alone is between one half and itself."""
    below = [0.0, *LOW_NUMBERS, 0.5]
    above = [0.5, *(1 - x for x in reversed(LOW_NUMBERS)), 1.0]
    return [*pairwise(below), (0.5, 0.5), *pairwise(above)]


def is_in(p, low, high):
    """Whether a prediction lies between two round numbers, of which it may be that nearer to one half."""
    if low == high:
        return math.isclose(p, low)
    if math.isclose(p, low) or math.isclose(1 - p, 1 - low):
        return low < 0.5
    if math.isclose(p, high) or math.isclose(1 - p, 1 - high):
        return high > 0.5
    return low < p < high


def cells(prob):
    """The cells of predictions: lists of neighbouring intervals with a prediction, joined from both ends."""
    parts = [(low, high, [p for p in prob if is_in(p, low, high)]) for low, high in intervals()]
    total = sum(p * (1 - p) for p in prob)
    least = max(1.0, total / 24) * (1 - 1e-9)
    centre = parts.index(next(part for part in parts if part[0] == part[1]))

    def join(some):
        found, open_ = [], []
        for part in some:
            open_.append(part)
            if spread(open_) >= least:
                found.append(open_)
                open_ = []
        return found, open_

    below, left_over = join(parts[:centre])
    above, right_over = join(parts[:centre:-1])
    middle = [*left_over, parts[centre], *reversed(right_over)]
    if 0 < spread(middle) < least:
        left, right = (spread(side[-1]) if side else math.inf for side in (below, above))
        if below and (left <= right or math.isclose(left, right)):
            middle = below.pop() + middle
        if above and (right <= left or math.isclose(left, right)):
            middle = middle + list(reversed(above.pop()))
    found = [*below, middle, *([*reversed(part)] if part[0][0] > part[-1][0] else part for part in reversed(above))]
    found = [part for part in found if spread(part) > 0]
    return [(part[0][0], part[-1][1], [p for _, _, some in part for p in some]) for part in found]


def spread(parts):
    """The variance of the number of events in intervals."""
    return sum(p * (1 - p) for *_, some in parts for p in some)


def score(events, prob):
    """The deviation of a number of events, standardised and made symmetric."""
    variance = sum(p * (1 - p) for p in prob)
    third = sum(p * (1 - p) * (1 - 2 * p) for p in prob)
    z, q = (events - sum(prob)) / math.sqrt(variance), third / variance**1.5 / 6
    return q + z - q * z**2 + q**2 * z**3 / 3


def masses(prob):
    """Probabilities of 0, 1, ... events."""
    found = [1.0]
    for p in prob:
        found = [a * (1 - p) + b * p for a, b in zip([*found, 0.0], [0.0, *found], strict=True)]
    return found


def regions(prob, events):
    """Limits, score and exact p-value of each region, for numbers of events by cell, from all that are possible."""
    some = cells(prob)
    spans = [(a, b) for a in range(len(some)) for b in range(a + 1, len(some) + 1) if b - a < len(some)]
    members = {(a, b): [p for *_, part in some[a:b] for p in part] for a, b in spans}
    probabilities = [masses(part) for *_, part in some]
    largest = []
    for counts in product(*(range(len(part)) for part in probabilities)):
        chance = math.prod(part[k] for part, k in zip(probabilities, counts, strict=True))
        largest.append((max(abs(score(sum(counts[a:b]), members[a, b])) for a, b in spans), chance))
    found = []
    for a, b in spans:
        own = score(sum(events[a:b]), members[a, b])
        exact = sum(chance for value, chance in largest if value >= abs(own) - 1e-9)
        found.append((some[a][0], some[b - 1][1], own, exact))
    return found
