"""Slow twin of the ranks of many models: the step-down method as loops, one step after the other."""

from math import inf, sqrt


def studentised(adds, shares, signs):
    """The sum of what units add times their signs, in standard errors that come from the same signs."""
    total = sum(sign * d for sign, d in zip(signs, adds, strict=True))
    spread = sum((sign * d - share * total) ** 2 for sign, d, share in zip(signs, adds, shares, strict=True))
    return total / sqrt(max(spread, 1e-12 * sum(d * d for d in adds)))


def least_without_skewness(adds, shares):
    """A studentised difference that is positive, or what Hall's transformation leaves of it if that is less.

    The skewness is twice that of the units.
    """
    total = sum(adds)
    centred = [d - share * total for d, share in zip(adds, shares, strict=True)]
    spread = sum(d * d for d in centred)
    t, skewness = total / sqrt(spread), max(2 * sum(d**3 for d in centred) / spread**1.5, -1)
    return min(t, max(0, t + skewness * t**2 / 3 + skewness**2 * t**3 / 27 + skewness / 6))


def shown_better(losses, shares, draws, alpha):
    """Pairs (j, k) of which j is shown to be better: all ordered pairs, then those that are left, until none goes.

    ``losses[j][g]`` is what unit g adds to the loss of model j, and every draw is a list of signs.
    """
    models = range(len(losses))
    difference = {
        (j, k): [b - a for a, b in zip(losses[j], losses[k], strict=True)] for j in models for k in models if j != k
    }
    difference = {pair: adds for pair, adds in difference.items() if any(adds)}
    observed = {pair: least_without_skewness(adds, shares) for pair, adds in difference.items() if sum(adds) > 0}
    drawn = [{pair: studentised(adds, shares, signs) for pair, adds in difference.items()} for signs in draws]
    active, shown = set(difference), set()
    while True:
        largest = [max((one[pair] for pair in active), default=-inf) for one in drawn]
        now = {
            pair
            for pair in active & set(observed)
            if (1 + sum(value >= observed[pair] - 1e-9 for value in largest)) / (len(draws) + 1) <= alpha
        }
        if not now:
            return shown
        shown |= now
        active -= now


def rank_sets(n_models, shown):
    """The confidence set of the rank of each model."""
    return [
        (
            1 + sum((k, j) in shown for k in range(n_models)),
            n_models - sum((j, k) in shown for k in range(n_models)),
        )
        for j in range(n_models)
    ]


def tier_of(model, shown):
    """1 + the largest tier of a model that is shown to be better."""
    return 1 + max((tier_of(j, shown) for j, k in shown if k == model), default=0)


def summed_losses(losses):
    """Numbers of infinite losses, mean losses, and sums of squares and cubes of differences from their means.

    The last model has no losses; infinite ones count as 0 in the sums.
    """
    finite = [[0.0 if loss == inf else loss for loss in one] for one in losses]
    finite.append([0.0] * len(losses[0]))
    found = {
        "n_infinite": [sum(loss == inf for loss in one) for one in losses],
        "mean": [sum(one) / len(one) for one in losses],
    }
    for name, power in (("squares", 2), ("cubes", 3)):
        rows = []
        for row in finite:
            rows.append([])
            for column in finite:
                differences = [b - a for a, b in zip(row, column, strict=True)]
                mean = sum(differences) / len(differences)
                rows[-1].append(sum((d - mean) ** power for d in differences))
        found[name] = rows
    return found
