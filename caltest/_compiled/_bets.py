"""Bets against calibration: the wealth of a mixture of recalibrations, one observation after the other.

Only sums, products, quotients and square roots, which every processor rounds alike, so that states agree to the bit.
`np.divide` instead of a slash, which would ask for a denominator of 0 and so keep the loop from being vectorised.
"""

import math

import numpy as np

from caltest._compiled._jit import inner, kernel

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


N_SCALES = 3
"""Accounts of a bet on outcomes that are known later, of which each bets another part of what the bet would."""

KEPT, LOW, HIGH = 0, 8, 9
"""Places of what is learned from the outcomes of a time: the part of earlier sums that is remembered, and how often an
event of probability 0 happened, or one of probability 1 did not, the same for both memories."""

N_LEARNED = 10


@kernel
def place_pending(
    event,
    rest,
    happened,
    shares,
    ratio,
    threshold,
    tally,
    fixed,
    adaptive,
    size,
    before,
    after,
    paid,
    learned,
    place,
    every,
    path,
):
    """Update safe wealth by predictions whose outcomes count later, up to the alarm; return whether there is one.

    The predictions of one time are made before any of their outcomes is known, and their order does not matter. ``size
    (n_times,)`` is their number at each time, first at the ``n_times - len(before)`` earlier times that are pending,
    then at the times of ``event``, ``rest`` and ``happened``, which are as in `place_bets`. So many times are settled
    ``before`` the predictions of each new time are bet on, and so many ``after``.

    What a pending bet can lose is not in the wealth any more, and ``paid (n_times, n_streams, N_SCALES * (N_FIXED +
    N_ADAPTIVE))`` is what it returns when its time is settled. ``learned (n_times, n_streams, N_ADAPTIVE, N_LEARNED)``
    is what is then added to the sums. ``fixed (n_streams, N_SCALES * N_FIXED)`` and ``adaptive (n_streams, N_ADAPTIVE,
    N_SUMS + N_SCALES - 1)`` have the wealth of each scale, of adaptive bets of the first scale before their sums and of
    the others after them. ``place (2,)`` is the number of times that are settled, and of new ones that were bet on; at
    an alarm both say where to go on. A path has the wealth of before where a time ends later.
    """
    n_streams, n_fixed = event.shape[1], N_SCALES * N_FIXED
    n_new, n_old = len(before), len(size) - len(before)
    half = ratio.shape[1] // 2  # not a constant: the compiler would unroll the loops instead of vectorising them
    top, other = np.empty(2 * half), np.empty(2 * half)
    loss, scale = np.empty(2 * half + N_ADAPTIVE), np.ones(N_SCALES)
    won, risk, lost = np.empty(len(loss)), np.empty(len(loss)), np.empty((N_SCALES, len(loss)))
    silent = tally[ALARM] == 0.0
    settled, new = place[0], place[1]
    waiting, number, row = 0.0, tally[COUNT], 0
    for t in range(settled, n_old + new):
        waiting += size[t]
    number += waiting
    for t in range(n_old, n_old + new):
        row += np.int64(size[t])
    written = np.int64(tally[COUNT]) // every
    first = written - place[2]
    for step in range(2 * new, 2 * n_new + 1):
        # Even steps settle what was due after the time before, odd ones what is due before a new time.
        t = step // 2
        until = before[t] if step % 2 else after[t - 1] if t else 0
        while settled < until:
            units = tally[UNITS]
            earlier = _sum_of(tally, fixed, adaptive) if size[settled] > 1.0 else 0.0
            for s in range(n_streams):
                accounts, pay = fixed[s], paid[settled, s]
                for k in range(n_fixed):
                    accounts[k] += pay[k]
                for m in range(N_ADAPTIVE):
                    sums, found = adaptive[s, m], learned[settled, s, m]
                    at = n_fixed + m * N_SCALES
                    sums[0] += pay[at]
                    for k in range(1, N_SCALES):
                        sums[N_SUMS - 1 + k] += pay[at + k]
                    for k in range(1, N_SUMS):
                        sums[k] = sums[k] * found[KEPT] + found[k]
                tally[N_IMPOSSIBLE] += learned[settled, s, 0, LOW] + learned[settled, s, 0, HIGH]
            tally[COUNT] += size[settled]
            waiting -= size[settled]
            settled += 1
            total = _sum_of(tally, fixed, adaptive)
            while total > UNIT or (0.0 < total < 1.0 and tally[UNITS] > 0.0):
                factor = 1.0 / UNIT if total > UNIT else UNIT
                tally[UNITS] += 1.0 if total > UNIT else -1.0
                for s in range(n_streams):
                    for k in range(n_fixed):
                        fixed[s, k] *= factor
                    for m in range(N_ADAPTIVE):
                        adaptive[s, m, 0] *= factor
                        for k in range(1, N_SCALES):
                            adaptive[s, m, N_SUMS - 1 + k] *= factor
                    for u in range(settled, n_old + t):
                        for k in range(paid.shape[2]):
                            paid[u, s, k] *= factor
                total = _sum_of(tally, fixed, adaptive)
            if tally[UNITS] > tally[PEAK_UNITS] or (tally[UNITS] == tally[PEAK_UNITS] and total > tally[PEAK]):
                tally[PEAK], tally[PEAK_UNITS] = total, tally[UNITS]
            while (written + 1) * every <= tally[COUNT]:
                ended = (written + 1) * every == tally[COUNT]
                path[0, written - first] = total if ended else earlier
                path[1, written - first] = tally[UNITS] if ended else units
                if tally[N_IMPOSSIBLE] > 0.0:
                    path[1, written - first] = math.inf
                written += 1
            tally[NOW] = total
            if silent and (total >= threshold or tally[UNITS] > 0.0 or tally[N_IMPOSSIBLE] > 0.0):
                tally[ALARM] = tally[COUNT]
                place[0], place[1], place[2] = settled, t, written - first
                return True
        if step % 2 == 0:
            continue
        waiting += size[n_old + t]
        number += size[n_old + t]
        scale[1], scale[2] = np.divide(1.0, math.sqrt(waiting)), np.divide(1.0, waiting)
        unit = 1.0 if tally[UNITS] == 0.0 else 1.0 / UNIT if tally[UNITS] == 1.0 else 0.0
        left = np.divide(0.5, math.sqrt(math.sqrt(1.0 + 0.01 * number)))
        started, tally[CASH] = (tally[CASH] - left) * unit * (1.0 / N_SCALES), left
        begin, row = row, row + np.int64(size[n_old + t])
        for s in range(n_streams):
            pay, learns = paid[n_old + t, s], learned[n_old + t, s]
            learns[:, KEPT] = 1.0
            # Of a unit of wealth without scale: what is won back, what can be lost, and the latter one after the other.
            won[:], risk[:], lost[:] = 0.0, 0.0, 0.0
            for i in range(begin, row):
                p, c = event[i, s], rest[i, s]
                if p <= c:
                    c = 1.0 - p
                else:
                    p = 1.0 - c
                yes = happened[i, s] != 0
                if (p if yes else c) < TINY:
                    learns[:, LOW if yes else HIGH] += 1.0
                certain = p < TINY or c < TINY
                # q / p and (1 - q) / (1 - p) are r p^s / p and (1 - p)^s / (1 - p) over r p^s + (1 - p)^s.
                root_p, root_c = math.sqrt(p), math.sqrt(c)
                for j in range(half):
                    top[j], other[j] = p, c
                for j in range(3):
                    top[half + j], other[half + j] = root_p, root_c
                    top[half + 5 + j], other[half + 5 + j] = p * p, c * c
                top[half + 3], other[half + 3] = root_p * math.sqrt(root_p), root_c * math.sqrt(root_c)
                top[half + 4], other[half + 4] = p * root_p, c * root_c
                if certain:
                    loss[:] = 0.0
                else:
                    up, down = np.divide(1.0, p), np.divide(1.0, c)
                    for j in range(2 * half):
                        odds = ratio[1, j] * top[j]
                        part = np.divide(1.0, odds + other[j])
                        if_yes, if_no = odds * up * part, other[j] * down * part
                        worst = min(if_yes, if_no)
                        loss[j] = 1.0 - worst
                        won[j] += (if_yes if yes else if_no) - worst
                z, v, residual = p - c, p * c, c if yes else -p
                for m in range(N_ADAPTIVE):
                    sums, found = adaptive[s, m], learns[m]
                    one, mixed, second = sums[3] + PRIOR, sums[4], sums[5] + PRIOR
                    shift = second * sums[1] - mixed * sums[2]
                    slope = one * sums[2] - mixed * sums[1]
                    bet = np.divide(shift + slope * z, one * second - mixed * mixed)
                    bet = 0.0 if certain else min(max(bet, -1.0), 1.0)
                    loss[2 * half + m] = max(bet * p, -bet * c)
                    won[2 * half + m] += bet * residual + loss[2 * half + m]
                    found[KEPT] *= 1.0 if m == 0 else 1.0 - v * (1.0 / MEMORY)
                    found[1] += residual
                    found[2] += residual * z
                    found[3] += v
                    found[4] += v * z
                    found[5] += v * z * z
                    found[6] += 1.0
                    found[7] += p
                for k in range(N_SCALES):
                    for j in range(len(loss)):
                        lost[k, j] += scale[k] * loss[j] * (1.0 - lost[k, j])
                for j in range(len(loss)):
                    risk[j] += loss[j]
            # All predictions of the time share what each account would have lost with one after the other.
            for k in range(N_SCALES):
                for j in range(2 * half):
                    wealth, most = fixed[s, k * N_FIXED + j] + started * shares[s, 0], scale[k] * risk[j]
                    part = np.divide(lost[k, j], most) if most > 0.0 else 1.0
                    pay[k * N_FIXED + j] = wealth * part * (scale[k] * won[j])
                    fixed[s, k * N_FIXED + j] = wealth * (1.0 - lost[k, j])
                for m in range(N_ADAPTIVE):
                    at, j = N_SUMS - 1 + k if k else 0, 2 * half + m
                    wealth, most = adaptive[s, m, at] + started * shares[s, 1], scale[k] * risk[j]
                    part = np.divide(lost[k, j], most) if most > 0.0 else 1.0
                    pay[n_fixed + m * N_SCALES + k] = wealth * part * (scale[k] * won[j])
                    adaptive[s, m, at] = wealth * (1.0 - lost[k, j])
    tally[NOW] = _sum_of(tally, fixed, adaptive)
    place[0], place[1], place[2] = settled, n_new, written - first
    return False


@inner
def _sum_of(tally, fixed, adaptive):
    """Return all wealth that is not pending, in its unit."""
    unit = 1.0 if tally[UNITS] == 0.0 else 1.0 / UNIT if tally[UNITS] == 1.0 else 0.0
    total = tally[CASH] * unit
    for s in range(len(fixed)):
        wealth = fixed[s]
        for k in range(0, N_SCALES * N_FIXED, 8):
            one = (wealth[k] + wealth[k + 4]) + (wealth[k + 1] + wealth[k + 5])
            total += one + ((wealth[k + 2] + wealth[k + 6]) + (wealth[k + 3] + wealth[k + 7]))
        for m in range(N_ADAPTIVE):
            total += adaptive[s, m, 0] + (adaptive[s, m, N_SUMS] + adaptive[s, m, N_SUMS + 1])
    return total
