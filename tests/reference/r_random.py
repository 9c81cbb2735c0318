"""Random numbers as R draws them: Mersenne Twister, normal numbers by inversion, and indices by rejection.

From the documentation of R's ``RNGkind`` (R 3.6.0 and later). Results of R that depend on ``set.seed`` can then be
compared without R.
"""

import numpy as np
from numpy.random import MT19937
from scipy.special import ndtri

_BIG = 134217728


class RRandom:
    """The generator after ``set.seed(seed)``."""

    def __init__(self, seed):
        state = []
        for step in range(50 + 625):
            seed = (69069 * seed + 1) % 2**32
            if step >= 50:
                state.append(seed)
        self._twister = MT19937()
        key = np.array(state[1:], dtype=np.uint32)
        self._twister.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": 624}}

    def uniform(self, n):
        """``runif(n)``."""
        return self._twister.random_raw(n) * 2.3283064365386963e-10

    def normal(self, n):
        """``rnorm(n)``."""
        first, second = self.uniform(2 * n).reshape(-1, 2).T
        return ndtri((np.floor(_BIG * first) + second) / _BIG)

    def binary(self, prob):
        """``rbinom(length(prob), 1, prob)``."""
        rarer = np.minimum(prob, 1 - np.asarray(prob))
        return (self.uniform(len(rarer)) >= 1 - rarer) != (np.asarray(prob) > 0.5)

    def indices(self, n):
        """``sample(n, replace = TRUE)``, from 0 on."""
        bits, found = int(np.ceil(np.log2(n))), []
        while len(found) < n:
            value = 0
            for _ in range(0, bits + 1, 16):
                value = 65536 * value + int(np.floor(65536 * self.uniform(1)[0]))
            value %= 2**bits
            if value < n:
                found.append(value)
        return np.array(found)
