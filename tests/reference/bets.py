"""A slow and obvious twin of the monitor: every bet from every moment at which it may begin, in logarithms."""

import math
from itertools import product

import numpy as np

FIXED = [(odds, 1.0) for odds in (1 / 4, 1 / 2, 2 / 3, 4 / 5, 5 / 4, 3 / 2, 2, 4)]
FIXED += [*product((1 / 2, 1, 2), (1 / 2, 2)), (1, 3 / 4), (1, 3 / 2)]


def fixed_gain(past, p, y, odds, slope):
    """q(y) / p(y) with logit q = log odds + slope logit p."""
    if p in {0, 1}:
        return 1.0
    q = 1 / (1 + math.exp(-(math.log(odds) + slope * (math.log(p) - math.log1p(-p)))))
    return q / p if y else (1 - q) / (1 - p)


def adaptive_gain(past, p, y, memory):
    return 1 + adaptive_stake([[one] for one in past], p, memory) * (y - p)


def adaptive_stake(past, p, memory):
    """The parameters minimise a quadratic approximation of the log score of what is remembered, ridge 10.

    The past has a list of observations for each time; those of one time do not fade each other.
    """
    score, information = np.zeros(2), 10 * np.eye(2)
    weight = 1.0
    for same_time in reversed(past):
        for p_old, y_old in same_time:
            x, v = np.array([1, 2 * p_old - 1]), p_old * (1 - p_old)
            score += weight * x * (y_old - p_old)
            information += weight * v * np.outer(x, x)
        weight *= math.prod(1 - p_old * (1 - p_old) / memory for p_old, _ in same_time)
    return float(np.clip(np.linalg.solve(information, score) @ [1, 2 * p - 1], -1, 1))


BETS = [(lambda *a, bet=bet: fixed_gain(*a, *bet), 0.5 / 16) for bet in FIXED]
BETS += [(lambda *a, memory=memory: adaptive_gain(*a, memory), 0.25) for memory in (math.inf, 400.0)]


def log_wealth_of_event(y, p):
    """The logarithm of the wealth after each observation of one event, all bets together."""
    not_bet = [0.5 * (1 + t / 100) ** -0.25 for t in range(len(y) + 1)]
    begins = [0.5, *(not_bet[t] - not_bet[t + 1] for t in range(len(y)))]  # of all wealth, before observations 0, 0, 1
    parts = [[] for _ in y]
    for gain, share in BETS:
        gains = [math.log(gain(list(zip(p[:t], y[:t], strict=True)), p[t], y[t])) for t in range(len(y))]
        for t in range(len(y)):
            for k in range(t + 2):
                parts[t].append(math.log(share * begins[k]) + math.fsum(gains[max(k - 1, 0) : t + 1]))
    return [float(np.logaddexp.reduce([*parts[t], math.log(not_bet[t + 1])])) for t in range(len(y))]


def log_wealth(y, prob):
    """The same of predictions ``(n_samples, n_classes)``: half on the confidence, half on the classes."""
    prob = np.asarray(prob)
    n, n_classes = prob.shape
    if n_classes == 2:
        return log_wealth_of_event(list(y), prob[:, 1].tolist())
    events = [(1 / (2 * n_classes), [int(v == k) for v in y], prob[:, k].tolist()) for k in range(n_classes)]
    top = prob.argmax(axis=1)
    events.append((0.5, [int(v == t) for v, t in zip(y, top, strict=True)], prob.max(axis=1).tolist()))
    paths = [[math.log(weight) + part for part in log_wealth_of_event(*event)] for weight, *event in events]
    return [float(np.logaddexp.reduce([path[t] for path in paths])) for t in range(n)]


# The direction of an alarm.

MEMORIES = (math.inf, 400.0)


def remembered(y, p, memory):
    """Sums of r = y - p, r z, v = p (1 - p), v z and v z^2 for z = 2 p - 1, as far as they are remembered."""
    r, v, z = y - p, p * (1 - p), 2 * p - 1
    kept = np.append(np.cumprod((1 - v / memory)[:0:-1])[::-1], np.ones(min(len(y), 1)))  # later observations fade it
    return [float(kept @ terms) for terms in (r, r * z, v, v * z, v * z * z)]


def from_every_moment(gains):
    """The logarithm of what is bet at every moment and gains from then on, of a share of 1."""
    not_bet = 0.5 * (1 + np.arange(len(gains) + 1) / 100) ** -0.25
    begins = np.append(0.5, not_bet[:-1] - not_bet[1:])  # before observations 0, 0, 1 and so on
    to_come = np.cumsum(gains[::-1])[::-1]
    return float(np.logaddexp.reduce(np.log(begins) + np.append(to_come[0], to_come)))


def adaptive_log_wealth(y, p, memory):
    """The logarithm of the wealth of an adaptive bet after the last observation, of a share of 1."""
    gains = []
    for t in range(len(y)):
        shift, slope, first, mixed, second = remembered(y[:t], p[:t], memory)
        theta = np.linalg.solve([[first + 10, mixed], [mixed, second + 10]], [shift, slope])
        gains.append(math.log1p(np.clip(theta @ [1, 2 * p[t] - 1], -1, 1) * (y[t] - p[t])))
    return from_every_moment(gains)


def log_wealth_of_stream(y, p):
    """The logarithm of all that is bet on one event."""
    fixed = [
        from_every_moment([math.log(fixed_gain(None, *one, *bet)) for one in zip(p, y, strict=True)]) for bet in FIXED
    ]
    parts = [math.log(0.5 / 16) + wealth for wealth in fixed]
    parts += [math.log(0.25) + adaptive_log_wealth(y, p, memory) for memory in MEMORIES]
    return float(np.logaddexp.reduce(parts))


def direction_of_memory(y, p, memory):
    """The direction of the larger one of two standardised scores: of a shift, and of a slope beside it."""
    shift, slope, first, mixed, second = remembered(y, p, memory)
    slope, second = slope - mixed / first * shift, second - mixed / first * mixed
    if abs(shift) / math.sqrt(first + 10) >= abs(slope) / math.sqrt(second + 10):
        return "too low" if shift > 0 else "too high"
    return "not extreme enough" if slope > 0 else "too extreme"


def direction(y, p):
    """The memory with more wealth after the last observation, and the direction that each memory knows."""
    y, p = np.asarray(y, dtype=float), np.asarray(p, dtype=float)
    wealth = [adaptive_log_wealth(y, p, memory) for memory in MEMORIES]
    return int(np.argmax(wealth)), [direction_of_memory(y, p, memory) for memory in MEMORIES]


def cause(y, prob):
    """The stream with the largest wealth, of each class against the rest and last of the confidence; its direction."""
    y, prob = np.asarray(y), np.asarray(prob)
    n_classes, top = prob.shape[1], prob.argmax(axis=1)
    events = [(1 / (2 * n_classes), (y == k).astype(float), prob[:, k]) for k in range(n_classes)]
    events.append((0.5, (y == top).astype(float), prob.max(axis=1)))
    wealth = [math.log(share) + log_wealth_of_stream(*event) for share, *event in events]
    event = events[int(np.argmax(wealth))][1:]
    memory, found = direction(*event)
    return int(np.argmax(wealth)), found[memory]


# Outcomes that are known later.


def stake_of(bet, known, p):
    """What a bet would stake on a unit of wealth if nothing was pending: the stake pays stake (y - p)."""
    if p in {0, 1}:
        return 0.0
    if bet in MEMORIES:
        return adaptive_stake(known, p, bet)
    odds, slope = bet
    yes, no = odds * p**slope, (1 - p) ** slope
    return (yes / (yes + no) - p) / (p * (1 - p))


def pending_wealth(y, p, time, lead, unit=1):
    """The safe wealth of one event after each time is settled, ``[(number of settled outcomes, wealth)]``.

    Each of 18 bets has three accounts for three parts of its stake. An account is what was put into it and what its
    settled bets have paid, less the most that its pending ones can lose, and is counted anew whenever it is needed. All
    bets of a time together risk what they would if each was a part of what the one before had left.
    """
    share = {bet: 0.5 / len(FIXED) for bet in FIXED} | dict.fromkeys(MEMORIES, 0.25)
    accounts = [(bet, part) for bet in share for part in (0, 0.5, 1)]
    put, paid = {(bet, part): 0.5 * share[bet] / 3 for bet, part in accounts}, dict.fromkeys(accounts, 0.0)
    pending, known, path, unbet, n_made = [], [], [], 0.5, 0

    def most_lost(stake, i):
        return max(stake * p[i], -stake * (1 - p[i]))

    def safe(account):
        return put[account] + paid[account] - sum(most_lost(stakes[account], i) for i, stakes in pending)

    def settle(until):
        for t in sorted({time[i] for i, _ in pending if time[i] <= until}):
            due = [one for one in pending if time[one[0]] == t]
            for i, stakes in due:
                for account in accounts:
                    paid[account] += stakes[account] * (y[i] - p[i])
                pending.remove((i, stakes))
            known.append([(p[i], y[i]) for i, _ in due])
            path.append((sum(map(len, known)), unbet + sum(map(safe, accounts))))

    for t in sorted(set(time)):
        settle(t - lead)
        new = [i for i in range(len(y)) if time[i] == t]
        m, n_made = len(pending) + len(new), n_made + len(new)
        left = 0.5 * (1 + n_made / 100) ** -0.25
        for bet, part in accounts:
            put[bet, part] += share[bet] * (unbet - left) / 3
        unbet, stakes = left, [{} for _ in new]
        for bet, part in accounts:
            wishes = [stake_of(bet, known, p[i]) * m**-part for i in new]
            risks = [most_lost(wish, i) for wish, i in zip(wishes, new, strict=True)]
            together = (1 - math.prod(1 - risk for risk in risks)) / sum(risks) if len(new) > 1 and sum(risks) else 1.0
            for one, wish in zip(stakes, wishes, strict=True):
                one[bet, part] = wish * together * safe((bet, part))
        pending += zip(new, stakes, strict=True)
        settle(t + unit - lead)
    return path
