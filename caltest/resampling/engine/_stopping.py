r"""Number of draws of a Monte Carlo test, and the rule that stops them early and keeps the p-value valid.

A test of millions of observations spends its time on draws, and most draws answer a question that has been answered: a
p-value of 0.6 is known to be no evidence after 200 draws. Besag and Clifford (1991) stop once h draws are at least as
extreme as the observed data. Their proof counts draws one by one, which a combination such as `Omnibus` does not allow:
it ranks its components within the pool of all draws, so that an earlier draw may become more or less extreme as the
pool grows. The rule here holds for every statistic.

Let :math:`l_1 < \dots < l_K` be numbers of draws that are fixed beforehand, and :math:`R_k` the number among the first
:math:`l_k` draws that are at least as extreme as the observed data in the pool of :math:`l_k + 1` data sets, ties
included. The draws stop at the first k with :math:`R_k \ge h`, or at K. The p-value is

.. math:: p = \min\left(\frac{R_k + 1}{l_k + 1}, \; \frac{h}{l_{k-1} + 1}\right) \text{ if stopped at } k < K,
          \qquad p = \frac{R_K + 1}{l_K + 1} \text{ otherwise, with } l_0 = h - 1.

It is valid, :math:`P(p \le a) \le a` for every a. Under the null hypothesis the :math:`l_k + 1` data sets are
exchangeable, so that the rank :math:`p_k = (R_k + 1)/(l_k + 1)` at one fixed k satisfies :math:`P(p_k \le a) \le a`.
The intervals :math:`[h/(l_k + 1), h/(l_{k-1} + 1))` of k < K, and :math:`[0, h/(l_{K-1} + 1))` of K, cover [0, 1), so
that a determines a k. If :math:`p \le a`, the draws did not stop before k: a stop at j < k has :math:`R_j \ge h` and p
is at least :math:`h/(l_{k-1} + 1) > a`. If they stopped at k, :math:`p \le a` means :math:`p_k \le a`. If they went on,
then :math:`R_k < h`, and :math:`p_k \le h/(l_k + 1) \le a` as well. So :math:`p \le a` implies :math:`p_k \le a`, which
has a probability of at most a. Neither the order of the draws nor a growing :math:`R_k` was used.

Where the draws go on to the end, the p-value is the usual one. Its relative standard error is about
:math:`\sqrt{(1 - p)/h}`, a tenth for h = 100. A calibrated model needs :math:`h (1 + \log(B/h))` draws on average, 330
of B = 999 and 560 of 9,999; a small p-value needs all B.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

from caltest.predictions.inputs._validation import validate_count

MANY_PROBABILITIES = 5_000_000
"""Predicted probabilities (observations times classes) above which the defaults are `FEWER_DRAWS` and `EXCEEDANCES`."""
USUAL_DRAWS = 9999
"""Draws of a test where no number is asked for."""
FEWER_DRAWS = 999
"""Draws of bands, of tables of statistics, and of tests of large data."""
EXCEEDANCES = 100

_FIRST, _BLOCK, _GROWTH = 128, 64, 1.1  # draws: threads share a block; a tenth more costs little and loses little


@dataclass(frozen=True)
class Stopping:
    """How many draws are made, at most, and when they stop early.

    Attributes
    ----------
    n_resamples : int
        Largest number of draws B.
    n_exceedances : int or None
        Number h of draws at least as extreme as the observed data that stops them; None if all are made.
    growth : float
        By what numbers of draws after which they may stop grow; a larger one takes less time beside that of draws.
    """

    n_resamples: int
    n_exceedances: int | None = None
    growth: float = _GROWTH

    @classmethod
    def of(
        cls, n_resamples: int | None, n_exceedances: int | None, n_probabilities: int, *, usual: int = USUAL_DRAWS
    ) -> Stopping:
        """Return the rule for what a caller asked for, None where that is left to the size of the data.

        ``n_probabilities`` is the number of predicted probabilities; ``usual`` the number of draws if it is not large.
        A number of draws that is asked for is made, unless a number of exceedances is given too.
        """
        many = n_probabilities > MANY_PROBABILITIES
        if n_exceedances is not None:
            validate_count(n_exceedances, "n_exceedances")
        elif many and n_resamples is None:
            n_exceedances = EXCEEDANCES
        if n_resamples is None:
            return cls(min(usual, FEWER_DRAWS) if many else usual, n_exceedances)
        return cls(validate_count(n_resamples, "n_resamples"), n_exceedances)

    def at_least(self, n_resamples: int) -> Stopping:
        """Return the rule with no fewer draws than some, as far as the usual number goes."""
        return replace(self, n_resamples=max(self.n_resamples, min(n_resamples, USUAL_DRAWS)))

    @property
    def checkpoints(self) -> tuple[int, ...]:
        """Numbers of draws after which they may stop, increasing; the last one is ``n_resamples``."""
        found: list[int] = []
        if self.n_exceedances is not None:
            number = max(_FIRST, _whole_blocks(self.n_exceedances))
            while number < self.n_resamples:
                found.append(number)
                number = _whole_blocks(number * self.growth)
        return (*found, self.n_resamples)

    @property
    def rounds(self) -> tuple[tuple[int, int], ...]:
        """Numbers of draws before and after each round."""
        return tuple(pairwise((0, *self.checkpoints)))

    def pvalue(self, rank: float, number: int, before: int) -> float | None:
        """Return the p-value if the draws stop at a checkpoint, otherwise None.

        Parameters
        ----------
        rank : float
            Share of the ``number + 1`` data sets that are at least as extreme as the observed one, itself included.
        number, before : int
            Numbers of draws at this checkpoint and at the one before, 0 at the first.
        """
        if self.n_exceedances is None or number == self.n_resamples:
            return rank if number == self.n_resamples else None
        if round(rank * (number + 1)) <= self.n_exceedances:  # it counts the observed data too
            return None
        return min(rank, self.n_exceedances / (before + 1)) if before else rank

    def largest(self, number: int) -> float:
        r"""Return a p-value that draws which go on after a checkpoint need not exceed.

        It is h / (l + 1) after l draws. A later stop before the last draw has no larger p-value, and one after the last
        draw may be lowered to it: the proof does not use that p-value for a level of h / (l + 1) or more.
        """
        return 1.0 if self.n_exceedances is None else self.n_exceedances / (number + 1)


def number_of_draws(n_resamples: int | None, usual: int = FEWER_DRAWS, n_probabilities: int = 0) -> int:
    """Return the number of draws that is asked for; for None the usual one, or fewer for large data."""
    return Stopping.of(n_resamples, None, n_probabilities, usual=usual).n_resamples


def _whole_blocks(number: float) -> int:
    return math.ceil(number / _BLOCK) * _BLOCK
