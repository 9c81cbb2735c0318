"""The limit of a likelihood ratio whose model is selected forward, one parameter after the other."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from caltest.predictions._arrays import Floats
from caltest.resampling.distributions._root import root_between
from caltest.results._distribution import Distribution, Tail

_FAR = 1e5  # a value whose tail is 0, in the place of infinity
_NODES = 16  # of Gauss and Legendre in each interval: more change no digit of 9


@dataclass(frozen=True)
class ForwardSelection(Distribution):
    r"""Distribution of a likelihood ratio after forward selection, in the limit of many observations.

    .. math:: T = D + \sum_{j=1}^{m} \Delta_j, \qquad m = \max\{k \le M : \Delta_1, \dots, \Delta_k \ge q\}

    with independent chi-squared numbers, D with some degrees of freedom, each :math:`\Delta_j` with one: a parameter is
    added as long as it improves the likelihood significantly.

    Attributes
    ----------
    degrees_of_freedom : int
        Those of D.
    most_added : int
        M, the number of parameters that may be added.
    threshold : float
        Level whose quantile of chi-squared(1) is q, such as 0.95.

    Examples
    --------
    >>> null = ForwardSelection(2, 3, 0.95)
    >>> round(null.sf(6.0), 6), round(null.quantile(0.95), 4)
    (0.081862, 7.2179)
    """

    degrees_of_freedom: int
    most_added: int
    threshold: float

    @cached_property
    def _limit(self) -> float:
        from scipy.stats import chi2

        return float(chi2(1).ppf(self.threshold))

    @cached_property
    def _added(self) -> Floats:
        """Probability that exactly 0, 1, ... parameters are added, ``(most_added + 1,)``."""
        reached = (1 - self.threshold) ** np.arange(self.most_added + 1.0)
        return reached - np.append(reached[1:], 0.0)

    @property
    def mean(self) -> float:
        """Expected value."""
        return float(self.degrees_of_freedom + self._added @ (np.arange(self.most_added + 1) * self._step_moments[0]))

    @property
    def std(self) -> float:
        """Standard deviation."""
        number = np.arange(self.most_added + 1)
        mean, variance = self._step_moments
        second = self._added @ (number * variance + np.square(number * mean))
        excess = self._added @ (number * mean)
        return math.sqrt(2 * self.degrees_of_freedom + second - excess**2)

    @cached_property
    def _step_moments(self) -> tuple[float, float]:
        """Mean and variance of an improvement that is significant."""
        q, share = self._limit, 1 - self.threshold
        density = math.exp(-q / 2) / math.sqrt(2 * math.pi * q)
        mean = 1 + 2 * q * density / share
        second = 3 * mean + 2 * q**2 * density / share
        return mean, second - mean**2

    def sf(self, x: float) -> float:
        """Return P(T >= x)."""
        tails = [self._tail(number, np.array([min(x, _FAR)]))[0] for number in range(self.most_added + 1)]
        below = np.append(np.full(self.most_added, self.threshold), 1.0)  # the next one is not significant
        return float(min(np.array(tails) @ below, 1.0))

    def _tail(self, number: int, x: Floats) -> Floats:
        """Return P(D plus a number of improvements >= x, and all of these are significant), ``(n,)``."""
        from scipy.special import chdtrc  # the tail of chi-squared

        if not number:
            return np.asarray(chdtrc(self.degrees_of_freedom, np.maximum(x, 0.0)))
        q = self._limit
        reach = x - q  # what the others and D may still lack
        found = chdtrc(1, np.maximum(x, q)) * (1 - self.threshold) ** (number - 1)  # this improvement suffices
        for k in range(number):  # where one more improvement alone reaches x the integrand has a kink
            low, high = np.clip(k * q, 0, reach.clip(0)), np.clip((k + 1) * q, 0, reach.clip(0))
            found += self._integral(number, x, low, np.where(k == number - 1, reach.clip(0), high))
        return np.asarray(found)

    def _integral(self, number: int, x: Floats, low: Floats, high: Floats) -> Floats:
        """Integrate the tail of one improvement less, at y from low to high, times the density at x - y."""
        node, mass = np.polynomial.legendre.leggauss(_NODES)
        root = np.sqrt(np.maximum(high - low, 0.0))[:, None]
        u = root * (node + 1) / 2  # y = low + u^2: D with one degree of freedom has a root at 0
        y = low[:, None] + np.square(u)
        step = x[:, None] - y
        density = np.exp(-step / 2) / np.sqrt(2 * np.pi * np.maximum(step, self._limit))
        tail = self._tail(number - 1, y.ravel()).reshape(y.shape)
        return np.asarray((density * tail * u * root) @ mass)

    def sf_given(self, added: int, x: float) -> float:
        """Return P(T >= x | so many parameters are added)."""
        return float(min(self._tail(added, np.array([min(x, _FAR)]))[0] / (1 - self.threshold) ** added, 1.0))

    def quantile_given(self, added: int, q: float) -> float:
        """Return the value t with P(T <= t | so many parameters are added) = q."""
        return self._root(lambda x: self.sf_given(added, x), q)

    def tail(self, x: float) -> Tail:
        """Return P(T >= x)."""
        return Tail(self.sf(x), math.nan, "forward selection of chi-squared terms")

    def quantile(self, q: float) -> float:
        """Return the value t with P(T <= t) = q."""
        return self._root(self.sf, q) if q > 0 else 0.0

    def _root(self, sf: Callable[[float], float], q: float) -> float:
        high = self.mean + 1
        while sf(high) > 1 - q:
            high *= 2
        return root_between(lambda x: 1 - q - sf(x), 0.0, high, 1e-12)
