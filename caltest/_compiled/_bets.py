"""Bets against calibration: the wealth of a mixture of recalibrations, one observation after the other.

Only sums, products, quotients and square roots, which every processor rounds alike, so that states agree to the bit.
`np.divide` instead of a slash, which would ask for a denominator of 0 and so keep the loop from being vectorised.
"""

import math

import numpy as np

from caltest._compiled._jit import kernel

N_FIXED, N_ADAPTIVE, N_SUMS = 16, 2, 8
"""Fixed bets; adaptive bets and what is kept of each: its wealth and seven sums."""

PRIOR, MEMORY = 10.0, 400.0
"""Information that draws adaptive bets towards no bet, and information that the second of them remembers."""

UNIT = 2.0**512
"""Wealth is divided by this when it is larger, and multiplied again when it is below 1."""

TINY = 1e-300
"""A smaller probability counts as 0: its odds cannot be written as a double."""

COUNT, CASH, UNITS, PEAK, PEAK_UNITS, N_IMPOSSIBLE, ALARM, NOW = range(8)
"""Places of a tally: observations so far, what is not yet bet, how often wealth was divided by `UNIT`, the largest
wealth and its units, outcomes of probability 0, the observation of the alarm (0 without), the wealth now."""


@kernel
def place_bets(event, rest, happened, shares, ratio, threshold, tally, fixed, adaptive, every, path):
    """Update the wealth of all bets by observations in their order, up to the alarm; return how many were used.

    ``event`` and ``rest (n_samples, n_streams) float64`` are the probabilities of an event and of the rest, of which
    the smaller one is used; ``happened (n_samples, n_streams) uint8`` is whether the event happened.
    ``shares (n_streams, 2)`` are the shares of a fixed and of an adaptive bet in the initial wealth 1. ``ratio (2,
    N_FIXED)`` are the odds ratios of the fixed bets, of the rest in row 0 and of the event in row 1: of 8 bets with
    slope 1, 3 with slope 1/2, one each with 3/4 and 3/2, and 3 with slope 2. The alarm is at a wealth of ``threshold``.

    These are changed: ``tally (8,)``, the wealth of the fixed bets ``fixed (n_streams, N_FIXED)``, and ``adaptive
    (n_streams, N_ADAPTIVE, N_SUMS)``, which holds the wealth of adaptive bets, and the sums of y - p and (y - p) z and
    of the information v = p (1 - p), v z and v z^2 for z = 2 p - 1, the number of observations and the sum of p; the
    second memory forgets. ``path (2, n_samples // every + 1)`` receives the
    wealth and its units (infinite after an outcome of probability 0) after each observation whose number is a multiple
    of ``every``.
    """
    n_samples, n_streams = event.shape
    half = ratio.shape[1] // 2  # not a constant: the compiler would unroll the loops instead of vectorising them
    top, other = np.empty(half), np.empty(half)
    count, cash, units = tally[COUNT], tally[CASH], tally[UNITS]
    until, place = every - np.int64(count) % every, 0
    silent = tally[ALARM] == 0.0
    used = 0
    for i in range(n_samples):
        # Of all wealth (1 + t / 100) ** -1/4 / 2 is not yet bet after t observations: what leaves it is bet now.
        count += 1.0
        left = np.divide(0.5, math.sqrt(math.sqrt(1.0 + 0.01 * count)))
        started, cash = cash - left, left
        unit = 1.0 if units == 0.0 else 1.0 / UNIT if units == 1.0 else 0.0
        total = cash * unit
        for s in range(n_streams):
            share = started * unit * shares[s, 0]
            p, c = event[i, s], rest[i, s]
            if p <= c:
                c = 1.0 - p
            else:
                p = 1.0 - c
            yes = happened[i, s] != 0
            # The gain of a bet is (r x^s / (r x^s + w^s)) / x, where x is the probability of what happened, w the rest.
            x, w, odds = (p, c, ratio[1]) if yes else (c, p, ratio[0])
            possible = x >= TINY
            wealth = fixed[s]
            if possible:
                root_x, root_w, gain = math.sqrt(x), math.sqrt(w), np.divide(1.0, x)
                for j in range(3):
                    top[j], other[j] = root_x, root_w
                    top[5 + j], other[5 + j] = x * x, w * w
                top[3], other[3] = root_x * math.sqrt(root_x), root_w * math.sqrt(root_w)
                top[4], other[4] = x * root_x, w * root_w
                for j in range(half):
                    new = odds[j] * x
                    wealth[j] = (wealth[j] + share) * np.divide(new * gain, new + w)
                for j in range(half):
                    new = odds[half + j] * top[j]
                    wealth[half + j] = (wealth[half + j] + share) * np.divide(new * gain, new + other[j])
            else:  # infinite wealth: what is bet elsewhere goes on
                tally[N_IMPOSSIBLE] += 1.0
                for j in range(len(wealth)):
                    wealth[j] += share
            for j in range(4):
                total += (wealth[j] + wealth[j + 4]) + (wealth[j + 8] + wealth[j + 12])
            # q = p + bet v with bet = theta_0 + theta_1 z: a step of likelihood estimation from what is remembered.
            share = started * unit * shares[s, 1]
            z, v, residual = p - c, p * c, c if yes else -p
            for m in range(N_ADAPTIVE):
                sums = adaptive[s, m]
                first, mixed, second = sums[3] + PRIOR, sums[4], sums[5] + PRIOR
                shift = second * sums[1] - mixed * sums[2]
                slope = first * sums[2] - mixed * sums[1]
                bet = np.divide(shift + slope * z, first * second - mixed * mixed)
                bet = min(max(bet, -1.0), 1.0)
                sums[0] = (sums[0] + share) * (1.0 + bet * residual if possible else 1.0)
                keep = 1.0 if m == 0 else 1.0 - v * (1.0 / MEMORY)
                sums[1] = sums[1] * keep + residual
                sums[2] = sums[2] * keep + residual * z
                sums[3] = sums[3] * keep + v
                sums[4] = sums[4] * keep + v * z
                sums[5] = sums[5] * keep + v * z * z
                sums[6] = sums[6] * keep + 1.0
                sums[7] = sums[7] * keep + p
                total += sums[0]
        if total > UNIT or (total < 1.0 and units > 0.0):
            factor = 1.0 / UNIT if total > UNIT else UNIT
            units += 1.0 if total > UNIT else -1.0
            total *= factor
            for s in range(n_streams):
                for j in range(N_FIXED):
                    fixed[s, j] *= factor
                for m in range(N_ADAPTIVE):
                    adaptive[s, m, 0] *= factor
        if units > tally[PEAK_UNITS] or (units == tally[PEAK_UNITS] and total > tally[PEAK]):
            tally[PEAK], tally[PEAK_UNITS] = total, units
        tally[NOW] = total
        until -= 1
        if until == 0:
            path[0, place], path[1, place] = total, units if tally[N_IMPOSSIBLE] == 0.0 else math.inf
            until, place = every, place + 1
        used += 1
        if silent and (total >= threshold or units > 0.0 or tally[N_IMPOSSIBLE] > 0.0):
            tally[ALARM] = count
            break
    tally[COUNT], tally[CASH], tally[UNITS] = count, cash, units
    return used
