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


@inner
def _unit_of(units):
    """Return a wealth of 1 in the unit of all others."""
    return 1.0 if units == 0.0 else 1.0 / UNIT if units == 1.0 else 0.0


@inner
def _raise(x, powers):
    """Raise a probability to the slopes of the second half of the fixed bets."""
    root = math.sqrt(x)
    for j in range(3):
        powers[j], powers[5 + j] = root, x * x
    powers[3], powers[4] = root * math.sqrt(root), x * root


@inner
def _stake_of(sums, z):
    """Return theta_0 + theta_1 z of q = p + bet v: a step of likelihood estimation from what is remembered."""
    first, mixed, second = sums[3] + PRIOR, sums[4], sums[5] + PRIOR
    shift = second * sums[1] - mixed * sums[2]
    slope = first * sums[2] - mixed * sums[1]
    bet = np.divide(shift + slope * z, first * second - mixed * mixed)
    return min(max(bet, -1.0), 1.0)


@inner
def _learn(sums, keep, p, c, residual):
    """Add an outcome to sums of which a part is remembered."""
    z, v = p - c, p * c
    sums[1] = sums[1] * keep + residual
    sums[2] = sums[2] * keep + residual * z
    sums[3] = sums[3] * keep + v
    sums[4] = sums[4] * keep + v * z
    sums[5] = sums[5] * keep + v * z * z
    sums[6] = sums[6] * keep + 1.0
    sums[7] = sums[7] * keep + p


@inner
def _multiply(factor, fixed, adaptive):
    """Change the unit of all wealth that is bet."""
    for s in range(len(fixed)):
        for j in range(fixed.shape[1]):
            fixed[s, j] *= factor
        for m in range(N_ADAPTIVE):
            adaptive[s, m, 0] *= factor
            for k in range(N_SUMS, adaptive.shape[2]):
                adaptive[s, m, k] *= factor


@inner
def _note(tally, total, units):
    """Keep the wealth, and the largest one, and return what counts for the alarm."""
    if units > tally[PEAK_UNITS] or (units == tally[PEAK_UNITS] and total > tally[PEAK]):
        tally[PEAK], tally[PEAK_UNITS] = total, units
    tally[NOW] = total
    return total if units == 0.0 and tally[N_IMPOSSIBLE] == 0.0 else math.inf


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
        unit = _unit_of(units)
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
                gain = np.divide(1.0, x)
                root_x, root_w = math.sqrt(x), math.sqrt(w)  # not by `_raise`: a call takes a sixth of the time of all
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
            share = started * unit * shares[s, 1]
            v, residual = p * c, c if yes else -p
            for m in range(N_ADAPTIVE):
                sums = adaptive[s, m]
                bet = _stake_of(sums, p - c)
                sums[0] = (sums[0] + share) * (1.0 + bet * residual if possible else 1.0)
                _learn(sums, 1.0 if m == 0 else 1.0 - v * (1.0 / MEMORY), p, c, residual)
                total += sums[0]
        if total > UNIT or (total < 1.0 and units > 0.0):
            factor = 1.0 / UNIT if total > UNIT else UNIT
            units += 1.0 if total > UNIT else -1.0
            total *= factor
            _multiply(factor, fixed, adaptive)
        enough = _note(tally, total, units) >= threshold
        until -= 1
        if until == 0:
            path[0, place], path[1, place] = total, units if tally[N_IMPOSSIBLE] == 0.0 else math.inf
            until, place = every, place + 1
        used += 1
        if silent and enough:
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

    What a pending bet can lose is not in the wealth any more, and ``paid (n_places, n_streams, N_SCALES * (N_FIXED +
    N_ADAPTIVE))`` is what it returns when its time is settled. ``learned (n_places, n_streams, N_ADAPTIVE, N_LEARNED)``
    is what is then added to the sums. Time t has place t modulo the number of places, of which there must be one for
    all times that are pending together. ``fixed (n_streams, N_SCALES * N_FIXED)`` and ``adaptive (n_streams,
    N_ADAPTIVE, N_SUMS + N_SCALES - 1)`` have the wealth of each scale, of adaptive bets of the first scale before their
    sums and of the others after them. ``place (3,)`` is the number of times that are settled, of new ones that were bet
    on, and of points of the path that were written; at an alarm they say where to go on. A path has the wealth of
    before where a time ends later.
    """
    n_streams, n_fixed = event.shape[1], N_SCALES * N_FIXED
    n_new, n_old = len(before), len(size) - len(before)
    half = ratio.shape[1] // 2  # not a constant: the compiler would unroll the loops instead of vectorising them
    n_bets = 2 * half + N_ADAPTIVE
    top, other, loss, scale = np.empty(2 * half), np.empty(2 * half), np.empty(n_bets), np.ones(N_SCALES)
    won, risk, part, lost = np.empty(n_bets), np.empty(n_bets), np.empty(n_bets), np.empty((N_SCALES, n_bets))
    silent = tally[ALARM] == 0.0
    settled, new, n_places = place[0], place[1], len(paid)
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
            here = settled % n_places
            for s in range(n_streams):
                for k in range(n_fixed):
                    fixed[s, k] += paid[here, s, k]
                for m in range(N_ADAPTIVE):
                    for k in range(N_SCALES):
                        adaptive[s, m, N_SUMS - 1 + k if k else 0] += paid[here, s, n_fixed + m * N_SCALES + k]
                    for k in range(1, N_SUMS):
                        adaptive[s, m, k] = adaptive[s, m, k] * learned[here, s, m, KEPT] + learned[here, s, m, k]
                tally[N_IMPOSSIBLE] += learned[here, s, 0, LOW] + learned[here, s, 0, HIGH]
            tally[COUNT] += size[settled]
            waiting -= size[settled]
            settled += 1
            total = _sum_of(tally, fixed, adaptive)
            while total > UNIT or (0.0 < total < 1.0 and tally[UNITS] > 0.0):
                factor = 1.0 / UNIT if total > UNIT else UNIT
                tally[UNITS] += 1.0 if total > UNIT else -1.0
                _multiply(factor, fixed, adaptive)
                for u in range(settled, n_old + t):
                    for s in range(n_streams):
                        for k in range(paid.shape[2]):
                            paid[u % n_places, s, k] *= factor
                total = _sum_of(tally, fixed, adaptive)
            enough = _note(tally, total, tally[UNITS]) >= threshold
            while (written + 1) * every <= tally[COUNT]:
                ended = (written + 1) * every == tally[COUNT]
                path[0, written - first] = total if ended else earlier
                path[1, written - first] = tally[UNITS] if ended else units
                if tally[N_IMPOSSIBLE] > 0.0:
                    path[1, written - first] = math.inf
                written += 1
            if silent and enough:
                tally[ALARM] = tally[COUNT]
                place[0], place[1], place[2] = settled, t, written - first
                return True
        if step % 2 == 0:
            continue
        here, together = (n_old + t) % n_places, size[n_old + t] > 1.0
        waiting += size[n_old + t]
        number += size[n_old + t]
        scale[1], scale[2] = np.divide(1.0, math.sqrt(waiting)), np.divide(1.0, waiting)
        left = np.divide(0.5, math.sqrt(math.sqrt(1.0 + 0.01 * number)))
        started, tally[CASH] = (tally[CASH] - left) * _unit_of(tally[UNITS]) * (1.0 / N_SCALES), left
        begin, row = row, row + np.int64(size[n_old + t])
        for s in range(n_streams):
            learns, odds = learned[here, s], ratio[1]
            for m in range(N_ADAPTIVE):
                for k in range(N_LEARNED):
                    learns[m, k] = 1.0 if k == KEPT else 0.0
            # Of a unit of wealth without scale: what is won back, what can be lost, and the latter one after the other.
            for j in range(n_bets):
                won[j] = risk[j] = 0.0
            for k in range(N_SCALES if together else 0):
                for j in range(n_bets):
                    lost[k, j] = 0.0
            for i in range(begin, row):
                p, c = event[i, s], rest[i, s]
                if p <= c:
                    c = 1.0 - p
                else:
                    p = 1.0 - c
                yes = happened[i, s] != 0
                if (p if yes else c) < TINY:
                    for m in range(N_ADAPTIVE):
                        learns[m, LOW if yes else HIGH] += 1.0
                certain = p < TINY or c < TINY
                if certain:
                    for j in range(n_bets):
                        loss[j] = 0.0
                else:
                    # q / p and (1 - q) / (1 - p) are r p^s / p and (1 - p)^s / (1 - p) over r p^s + (1 - p)^s.
                    for j in range(half):
                        top[j], other[j] = p, c
                    _raise(p, top[half:])
                    _raise(c, other[half:])
                    up, down = np.divide(1.0, p), np.divide(1.0, c)
                    for j in range(2 * half):
                        q = odds[j] * top[j]
                        over = np.divide(1.0, q + other[j])
                        if_yes, if_no = q * up * over, other[j] * down * over
                        worst = min(if_yes, if_no)
                        loss[j] = 1.0 - worst
                        won[j] += (if_yes if yes else if_no) - worst
                v, residual = p * c, c if yes else -p
                for m in range(N_ADAPTIVE):
                    bet = 0.0 if certain else _stake_of(adaptive[s, m], p - c)
                    loss[2 * half + m] = max(bet * p, -bet * c)
                    won[2 * half + m] += bet * residual + loss[2 * half + m]
                    learns[m, KEPT] *= 1.0 if m == 0 else 1.0 - v * (1.0 / MEMORY)
                    _learn(learns[m], 1.0, p, c, residual)
                for k in range(N_SCALES if together else 0):
                    of_scale, less = scale[k], lost[k]
                    for j in range(n_bets):
                        less[j] += of_scale * loss[j] * (1.0 - less[j])
                for j in range(n_bets):
                    risk[j] += loss[j]
            # All predictions of the time share what each account would have lost with one after the other.
            for k in range(N_SCALES):
                of_scale, at, share = scale[k], k * N_FIXED, started * shares[s, 0]
                if together:
                    for j in range(n_bets):
                        most = of_scale * risk[j]
                        part[j] = np.divide(lost[k, j], most if most > 0.0 else 1.0) if most > 0.0 else 1.0
                    for j in range(2 * half):
                        wealth = fixed[s, at + j] + share
                        paid[here, s, at + j] = wealth * part[j] * (of_scale * won[j])
                        fixed[s, at + j] = wealth * (1.0 - lost[k, j])
                else:  # the same with a part of 1, in a loop that is vectorised
                    for j in range(2 * half):
                        wealth = fixed[s, at + j] + share
                        paid[here, s, at + j] = wealth * (of_scale * won[j])
                        fixed[s, at + j] = wealth * (1.0 - of_scale * risk[j])
                for m in range(N_ADAPTIVE):
                    at, j = N_SUMS - 1 + k if k else 0, 2 * half + m
                    wealth = adaptive[s, m, at] + started * shares[s, 1]
                    back = wealth * part[j] if together else wealth
                    paid[here, s, n_fixed + m * N_SCALES + k] = back * (of_scale * won[j])
                    adaptive[s, m, at] = wealth * (1.0 - (lost[k, j] if together else of_scale * risk[j]))
    tally[NOW] = _sum_of(tally, fixed, adaptive)
    place[0], place[1], place[2] = settled, n_new, written - first
    return False


@inner
def _sum_of(tally, fixed, adaptive):
    """Return all wealth that is not pending, in its unit."""
    total = tally[CASH] * _unit_of(tally[UNITS])
    for s in range(len(fixed)):
        wealth = fixed[s]
        for k in range(0, N_SCALES * N_FIXED, 8):
            one = (wealth[k] + wealth[k + 4]) + (wealth[k + 1] + wealth[k + 5])
            total += one + ((wealth[k + 2] + wealth[k + 6]) + (wealth[k + 3] + wealth[k + 7]))
        for m in range(N_ADAPTIVE):
            total += adaptive[s, m, 0] + (adaptive[s, m, N_SUMS] + adaptive[s, m, N_SUMS + 1])
    return total
