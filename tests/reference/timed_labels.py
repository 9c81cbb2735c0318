"""Labels that share shocks of time and of groups, one number after the other, and the scale of their residuals."""

import numpy as np
from scipy.special import ndtri

WORD = 2**64 - 1
LANES = 32
"""Streams of random words that stand side by side."""


def mixed(x):
    """The finaliser of splitmix64."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & WORD
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & WORD
    return x ^ (x >> 31)


def states(seed, replicate):
    """What states are made of: as many words as are asked for."""
    golden = 0x9E3779B97F4A7C15
    key = mixed(mixed((seed + golden) & WORD) + replicate * 0xD1342543DE82EF95 & WORD)
    j = 0
    while True:
        yield mixed((key + j * golden) & WORD)
        j += 1


def words(s):
    """The words of one stream of xoshiro256++."""

    def turned(x, k):
        return (x << k | x >> (64 - k)) & WORD

    while True:
        yield turned((s[0] + s[3]) & WORD, 23) + s[0] & WORD
        t = s[1] << 17 & WORD
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = turned(s[3], 45)


def halves(known):
    """The halves of one word of each stream, first all lower ones; ``known`` are the words of the states."""
    streams = [words([known[k * LANES + lane] for k in range(4)]) for lane in range(LANES)]
    while True:
        some = [next(stream) for stream in streams]
        yield from (word & 0xFFFFFFFF for word in some)
        yield from (word >> 32 for word in some)


def normal(half):
    """The normal number of 31 bits of the tail and a sign."""
    below = ndtri(((half & 0x7FFFFFFF) + 0.5) / 2**32)
    return -below if half >> 31 else below


def labels_of(sample, scores, draws, replicate):
    """The labels ``(n_samples,)`` of one replicate, and which ones rounding of normal numbers cannot change."""
    step, lead, made = sample.timing.step, sample.timing.lead, states(int(draws.seed), replicate)
    stream = halves([next(made) for _ in range(4 * LANES)])
    begin = (next(made) >> 32) * lead >> 32
    in_time, alike = draws.correlation, draws.alike
    of_group = [normal(next(stream)) for _ in range(0 if sample.group is None else int(sample.group.max()) + 1)]
    of_window = [normal(next(stream)) for _ in range(int(step.max()) // lead + 2)]
    classes = np.argsort(scores[0], kind="stable")
    label, sure = np.empty(sample.n_samples, dtype=int), np.empty(sample.n_samples, dtype=bool)
    for i in range(sample.n_samples):
        common = of_window[(step[i] + lead - 1 - begin) // lead]
        latent = np.sqrt(in_time) * common + np.sqrt(1 - in_time - alike) * normal(next(stream))
        if of_group:
            latent += np.sqrt(alike) * of_group[sample.group[i]]
        bounds = ndtri(np.minimum(np.cumsum(sample.prob[i, classes])[:-1], 1.0))
        label[i] = classes[(latent >= bounds).sum()]
        sure[i] = np.abs(latent - bounds).min() > 2e-5
    return label, sure


def inflation(sample, scores, label):
    """R: products of all dependent pairs over squares, without a common shift, from 1 to that of shared shocks."""
    step, lead, w = sample.timing.step, sample.timing.lead, sample.weight_or_ones
    apart = np.abs(step[:, None] - step)
    kinds = [np.clip(1 - apart / lead, 0, None)]
    near = apart < lead
    if sample.group is not None:
        same = sample.group[:, None] == sample.group
        kinds, near = [*kinds, same.astype(float)], near | same
    products = squares = alone = 0.0
    shared = np.zeros(len(kinds))
    for score in scores:
        mean = sample.prob @ score
        variance = sample.prob @ score**2 - mean**2
        e, v = w * (score[label] - mean), w * variance
        r = e - v * (e.sum() / v.sum())
        products += r @ near @ r
        squares += r @ r
        spread = w * np.sqrt(variance)
        shared += [spread @ share @ spread for share in kinds]
        alone += spread @ spread
    largest = 1 + (shared / alone - 1).sum()
    return min(max(products / squares, 1.0), largest)
