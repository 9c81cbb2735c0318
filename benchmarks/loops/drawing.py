"""Random numbers for the tuned loops: as few bits as the law needs, in as few NumPy calls as possible."""

import numpy as np


def generator(seed):
    """SFC64, the fastest bit generator of NumPy (PCG64: a tenth to a quarter more per number)."""
    return np.random.Generator(np.random.SFC64(seed))


def random_words(rng, n):
    """Return n uniform 32-bit numbers.

    The raw output of the generator, cut in two: half the time of float32 uniforms and of `Generator.integers`, which
    fetch every 32 bits by themselves.
    """
    return rng.bit_generator.random_raw((n + 1) // 2).view(np.uint32)[:n]


def as_words(p):
    """Return probabilities as 32-bit thresholds: a uniform word lies below with probability p, to 2**-32."""
    return np.minimum(np.rint(p * 2.0**32), 2**32 - 1).astype(np.uint32)


def cumulative(prob):
    """Return cumulative probabilities ``(n, k)``, of which the last is 1."""
    total = np.cumsum(prob, axis=1)
    return total / total[:, -1:]


def alias_tables(prob):
    """Return Walker's alias method for every row at once: acceptance ``(n, k)`` and alias ``(n, k)``.

    Outcome j of k equally likely ones is kept with probability ``accept[i, j]`` and else replaced by ``alias[i, j]``:
    one comparison and two look-ups instead of k - 1 comparisons. Made in k - 1 rounds, in each of which every row
    fills its smallest open share from its largest.
    """
    n, k = prob.shape
    open_share = prob * (k / prob.sum(axis=1, keepdims=True))
    accept = np.ones((n, k))
    alias = np.tile(np.arange(k), (n, 1))
    row = np.arange(n)
    for _ in range(k - 1):
        small = open_share.argmin(axis=1)
        closed = np.isinf(open_share)
        large = np.where(closed, -np.inf, open_share).argmax(axis=1)
        value = open_share[row, small]
        accept[row, small] = np.minimum(value, 1.0)
        alias[row, small] = large
        open_share[row, large] -= 1 - value
        open_share[row, small] = np.inf
    return accept, alias


class RowsAndClasses:
    """Draws rows with replacement and a class for each, from one uniform number per draw.

    A uniform double times n k: its whole part is a row and a slot of the alias table, its fraction (36 random bits or
    more) decides between the slot's own class and the alias.
    """

    def __init__(self, prob, value):
        """``value (n, k)``: what class j of row i is mapped to."""
        accept, alias = alias_tables(prob)
        n, self._k = prob.shape
        self._accept = accept.ravel()
        self._value = np.stack([np.take_along_axis(value, alias, axis=1), value], axis=2).ravel()
        self._uniform = np.empty(n)
        self._slot = np.empty(n, dtype=np.intp)

    def draw(self, rng):
        """Return row numbers and the values that the drawn classes are mapped to, ``(n,)`` each."""
        u, slot = self._uniform, self._slot
        rng.random(out=u)
        u *= len(self._accept)
        slot[:] = u
        u -= slot
        kept = u < self._accept.take(slot, mode="clip")
        row = slot // self._k
        slot *= 2
        slot += kept
        return row, self._value.take(slot, mode="clip")


class RowsAndEvents:
    """Draws rows with replacement and whether the event happened; returns how often each row was drawn.

    One uniform double per draw as in `RowsAndClasses`, and one bincount: a drawn event is counted in the second half
    of a table of 2 n. With integers and uniforms apart, or a second bincount for events: 22 instead of 15 ns.
    """

    def __init__(self, p):
        self._p = p
        self._uniform = np.empty(len(p))
        self._row = np.empty(len(p), dtype=np.intp)

    def draw(self, rng, rows, events):
        """Fill ``rows`` and ``events (n,)`` with the multiplicities of a resample."""
        u, row, n = self._uniform, self._row, len(self._p)
        rng.random(out=u)
        u *= n
        row[:] = u
        u -= row
        row += (u < self._p.take(row, mode="clip")) * np.intp(n)
        count = np.bincount(row, minlength=2 * n)
        events[:] = count[n:]
        np.add(count[:n], count[n:], out=rows)
