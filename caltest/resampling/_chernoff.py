r"""Chernoff's upper bounds of tail probabilities that are too small to be worth computing.

For every t > 0, Markov's inequality for :math:`e^{tT}` gives

.. math:: P(T \ge x) \le e^{-tx} \, E e^{tT} = e^{-tx} \prod_b E e^{t V_b}

for a sum T of independent contributions :math:`V_b`. Every t gives a bound, and the smallest one is searched. A p-value
that is replaced by an upper bound stays valid: :math:`P(p \le \alpha) \le \alpha` still holds.

For numbers of events K, sums of independent indicators, the moments :math:`M(t) = \prod_i (1 - p_i + p_i e^t)` are a
product over the observations. Absolute deviations :math:`V = |K - m|` have

.. math:: E e^{tV} = e^{-tm} M(t) + e^{tm} M(-t) - E e^{-tV},

because :math:`e^{t|z|} + e^{-t|z|} = e^{tz} + e^{-tz}`. The last term is an average of numbers up to 1, which the
computed distribution of V yields to rounding: no far tail is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._poisson_binomial import log_moment, log_moment_of_deviations
from caltest.resampling._poisson_binomial import PoissonBinomial

SMALLEST_EXACT = 1e-12
"""A smaller tail probability is replaced by an upper bound."""
CHERNOFF = "Chernoff's inequality"

_LOG_SLOPES = math.log(1e-8), math.log(200.0)  # where log t is searched; exp(200) must not overflow
_N_STEPS = 16  # of golden section search: t to 1 %
_GOLDEN = (math.sqrt(5) - 1) / 2


def chernoff_bound(log_moment_of_sum: Callable[[float], float], x: float) -> float:
    """Return an upper bound of P(T >= x), at most 1, from the function t -> log E exp(t T).

    Its exponent is convex in t, so that golden section search finds the minimum.

    Examples
    --------
    >>> coin = lambda t: math.log((1 + math.exp(t)) / 2)
    >>> round(chernoff_bound(lambda t: 100 * coin(t), 100) * 2**100, 6)
    1.0
    """

    def exponent(log_slope: float) -> float:
        t = math.exp(log_slope)
        return log_moment_of_sum(t) - t * x

    low, high = _LOG_SLOPES
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = exponent(left), exponent(right)
    smallest = min(0.0, at_left, at_right)
    for _ in range(_N_STEPS):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = exponent(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = exponent(right)
        smallest = min(smallest, at_left, at_right)
    return math.exp(smallest)


def count_bound(prob: NDArray[np.float64], count: int, *, upper: bool) -> float:
    """Return a bound of P(K >= count), or of P(K <= count), for events with probabilities ``(n,)``.

    Examples
    --------
    >>> round(count_bound(np.full(100, 0.5), 0, upper=False) * 2**100, 6)
    1.0
    """
    sign = 1.0 if upper else -1.0
    p = np.clip(prob, 0.0, 1.0)
    return chernoff_bound(lambda t: log_moment(p, sign * t), sign * count)


def deviations_bound(
    prob: Sequence[NDArray[np.float64]], centre: NDArray[np.float64], counts: Sequence[PoissonBinomial], x: float
) -> float:
    r"""Return a bound of :math:`P(\sum_b |K_b - m_b| \ge x)`.

    Parameters
    ----------
    prob : sequence of arrays of shape (n_observations,)
        Probabilities of the events in each cell.
    centre : array of shape (n_cells,)
        The number m of each cell.
    counts : sequence of PoissonBinomial
        Distribution of the number of events K of each cell.
    x : float
        The observed sum.
    """
    deviation = np.concatenate([np.abs(count.counts - m) for count, m in zip(counts, centre, strict=True)])
    start = np.cumsum([0, *map(len, prob)])
    first = np.cumsum([0, *(len(count.pmf) for count in counts)])
    cells = np.concatenate(prob), start, centre, deviation, np.concatenate([count.pmf for count in counts]), first
    return chernoff_bound(lambda t: log_moment_of_deviations(*cells, t), x)
