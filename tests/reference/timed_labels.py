"""Labels that share shocks of time and of groups, one number after the other, and the scale of their residuals."""

import numpy as np
from scipy.special import ndtri

WORD = 2**64 - 1
ROWS = 64
"""Normal numbers that are made at a time; those of the groups begin and end with a whole block."""


def mixed(x):
    """The finaliser of splitmix64."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & WORD
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & WORD
    return x ^ (x >> 31)


def halves(seed, replicate):
    """The halves of the words of xoshiro256++, the lower one first."""
    golden = 0x9E3779B97F4A7C15
    key = mixed((seed + golden) & WORD) + replicate * 0xD1342543DE82EF95 & WORD
    key = mixed(key)
    s = [mixed((key + j * golden) & WORD) for j in range(4)]

    def turned(x, k):
        return (x << k | x >> (64 - k)) & WORD

    while True:
        word = turned((s[0] + s[3]) & WORD, 23) + s[0] & WORD
        yield word & 0xFFFFFFFF
        yield word >> 32
        t = s[1] << 17 & WORD
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = turned(s[3], 45)


def normal(half):
    """The normal number of 31 bits of the tail and a sign."""
    below = ndtri(((half & 0x7FFFFFFF) + 0.5) / 2**32)
    return -below if half >> 31 else below


def labels_of(sample, scores, draws, replicate):
    """The labels ``(n_samples,)`` of one replicate, and which ones rounding of normal numbers cannot change."""
    step, lead, stream = sample.timing.step, sample.timing.lead, halves(int(draws.seed), replicate)
    in_time, alike = draws.correlation, draws.alike
    shock = []
    if sample.group is not None:
        n_groups = int(sample.group.max()) + 1
        block = [normal(next(stream)) for _ in range(-(-n_groups // ROWS) * ROWS)]
        shock = block[:n_groups]
    begin = next(stream) * lead >> 32
    common = coming = normal(next(stream))
    classes = np.argsort(scores[0], kind="stable")
    label, sure = np.empty(sample.n_samples, dtype=int), np.empty(sample.n_samples, dtype=bool)
    for t in range(int(step.max()) + 1):
        if t % lead == 0:
            coming = normal(next(stream))
        if t % lead == begin:
            common = coming
        for i in np.flatnonzero(step == t):
            latent = np.sqrt(in_time) * common + np.sqrt(1 - in_time - alike) * normal(next(stream))
            if shock:
                latent += np.sqrt(alike) * shock[sample.group[i]]
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
