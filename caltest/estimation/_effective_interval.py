r"""Confidence intervals for the weighted frequency of an event, by the effective number of observations.

With the weights :math:`W_g` of the groups, the weights :math:`K_g` of their events, and of G groups,

.. math:: \hat r = \frac{\sum_g K_g}{\sum_g W_g}, \qquad
          \hat v = \frac{G}{G - 1} \frac{\sum_g (K_g - \hat r W_g)^2}{(\sum_g W_g)^2}, \qquad
          n_v = \frac{\hat r (1 - \hat r)}{\hat v} \left(\frac{z}{t_\nu}\right)^2,

the interval is that of Clopper and Pearson with :math:`n_e \hat r` events in :math:`n_e` observations (Korn and
Graubard 1998). Here :math:`n_e` is :math:`n_v`, but at least Kish's number of groups,
:math:`(\sum_g W_g)^2 / \sum_g W_g^2`, which is right if all labels of a group are equal, and at most Kish's number of
observations, which is right if they are independent. If no group holds both labels, nothing shows that labels of a
group differ: :math:`n_e` is the number of groups. Independent observations are groups of one, so that equal weights
give the exact interval.

The variance is known less well if few or unequal groups decide it, or if few of them hold an event. So Student's
quantile t has :math:`\nu = \min(\nu_1, \nu_2) - 1` degrees of freedom (z is the normal quantile), with Satterthwaite's
:math:`\nu_1 = (\sum_g d_g^2)^2 / \sum_g d_g^4` of the deviations :math:`d_g = K_g - \hat r W_g`, and :math:`\nu_2`, the
smaller number of groups (of equal size) that hold an event, and that hold another label:
:math:`\nu_2 = \sum_g W_g^2 \sum_{g: K_g > 0} W_g^2 / \sum_g W_g^4`, and the same with :math:`K_g < W_g`.

References
----------
E. L. Korn and B. I. Graubard (1998), Confidence intervals for proportions with small expected number of positive counts
estimated from survey data, Survey Methodology 24.
L. Kish (1965), Survey Sampling, Wiley.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._effective import effective_of_sums
from caltest.predictions._parts import sums_in_parts

Array = NDArray[np.float64]

_ROUNDING = 1e-10  # of a sum of squares
_SMALLEST, _LARGEST = 1e-15, 0.9  # p-values between which is searched; a larger one counts as 1
_HALVINGS = 28  # of intervals in which an end or a p-value is searched: to 1e-7 or better
_LEAST_FREEDOM = 0.05  # Student's quantile is so large there that the number of groups counts


@dataclass(frozen=True, eq=False)
class EffectiveCounts:
    """Weights of events and of other labels in cells (bins), and what determines their effective number.

    Attributes
    ----------
    events, others : arrays of shape (n_cells,)
        Weight of the events and of the other labels, exactly 0 where there are none.
    squares : array of shape (n_cells,)
        Sum of the squared weights.
    terms : array of shape (n_terms, n_cells) or None
        Sums over groups; None if observations are independent.
    """

    events: Array
    others: Array
    squares: Array
    terms: Array | None

    @classmethod
    def of_cells(
        cls,
        event: NDArray[np.bool_],
        weight: Array,
        group: NDArray[np.int64] | None,
        cell: NDArray[np.int64],
        n_cells: int,
    ) -> EffectiveCounts:
        """Return those of the observations of each cell; ``event``, ``weight``, ``group`` and ``cell`` ``(n,)``."""
        weight = weight / weight.mean()
        parts = (weight * event, weight * ~event)
        events, others, squares = (sums_in_parts(cell, values, n_cells) for values in (*parts, np.square(weight)))
        terms = None
        if group is not None:
            known, place = np.unique(group * n_cells + cell, return_inverse=True)
            of_groups = _terms(*(sums_in_parts(place, values, len(known)) for values in parts))
            terms = np.stack([sums_in_parts(known % n_cells, values, n_cells) for values in of_groups])
        return cls(events, others, squares, terms)

    @classmethod
    def of_first(
        cls, event: Array, weight: Array, group: NDArray[np.int64] | None, last: NDArray[np.int64]
    ) -> EffectiveCounts:
        """Return those of the first observations, up to the positions ``last (n_cells,)``; weights are positive.

        ``event (n,)`` is 1 or 0, or what share of an observation counts as an event.
        """
        weight = weight / weight.mean()
        parts = np.stack([weight * event, weight * (1 - event)])
        events, others = np.cumsum(parts, axis=1)[:, last]
        squares = np.cumsum(np.square(weight))[last]
        terms = None
        if group is not None:
            before = _of_group_before(parts, group)
            terms = np.cumsum(_terms(*(before + parts)) - _terms(*before), axis=1)[:, last]
        return cls(events, others, squares, terms)

    @property
    def rate(self) -> Array:
        """Weighted frequency of the event, ``(n_cells,)``; 0 without weight."""
        total = self.events + self.others
        return np.divide(self.events, total, out=np.zeros_like(total), where=total > 0)

    def number(self, level: float | Array) -> Array:
        """Return the effective number of observations for a level, ``(n_cells,)``."""
        total = self.events + self.others
        largest = effective_of_sums(total, self.squares)
        if self.terms is None:
            return largest
        return _number_of_groups(self.rate, total, largest, self.terms, level)

    def intervals(self, level: float) -> tuple[Array, Array]:
        """Return confidence intervals for the frequencies, [0, 1] without weight."""
        return frequency_intervals(self.events, self.others, self.number(level), level)

    def bars(self, expected: Array, level: float) -> tuple[Array, Array]:
        """Return where a frequency may lie so that its interval contains the expected one, ``(n_cells,)`` each."""
        number, alpha = self.number(level), (1 - level) / 2
        low = _last_accepted(expected, np.zeros_like(expected), lambda rate: _tails(rate, number, expected)[1], alpha)
        high = _last_accepted(expected, np.ones_like(expected), lambda rate: _tails(rate, number, expected)[0], alpha)
        return low, high

    def pvalues(self, expected: Array) -> Array:
        """Return 1 minus the smallest level of an interval that contains the expected frequency, ``(n_cells,)``."""
        smallest, largest = np.full(len(expected), _SMALLEST), np.full(len(expected), _LARGEST)

        def rejected(alpha: Array) -> NDArray[np.bool_]:
            return np.min(_tails(self.rate, self.number(1 - alpha), expected), axis=0) < alpha / 2

        never = ~rejected(largest)
        for _ in range(_HALVINGS):
            middle = np.sqrt(smallest * largest)
            found = rejected(middle)
            largest, smallest = np.where(found, middle, largest), np.where(found, smallest, middle)
        return np.where(never, 1.0, largest)


def running_intervals(
    event: Array, weight: Array, group: NDArray[np.int64] | None, last: NDArray[np.int64], level: float
) -> tuple[Array, Array]:
    """Return confidence intervals for the frequency of an event among the first observations."""
    return EffectiveCounts.of_first(event, weight, group, last).intervals(level)


def frequency_intervals(events: Array, others: Array, number: Array, level: float) -> tuple[Array, Array]:
    """Return Clopper and Pearson's intervals ``(n,)`` for shares of weights in effective numbers of observations.

    Parameters
    ----------
    events, others : arrays of shape (n,)
        Weight of the events and of the other labels, exactly 0 where there are none.
    number : array of shape (n,)
        Effective number of observations.
    level : float
        Level of the intervals.
    """
    from scipy.special import betaincinv

    total = events + others
    scale = np.divide(number, total, out=np.zeros_like(total), where=total > 0)
    yes, no, alpha = events * scale, others * scale, (1 - level) / 2
    low = np.where(yes > 0, betaincinv(np.where(yes > 0, yes, 1.0), no + 1, alpha), 0.0)
    high = np.where(no > 0, betaincinv(yes + 1, np.where(no > 0, no, 1.0), 1 - alpha), 1.0)
    return low, high


def _terms(events: Array, others: Array) -> Array:
    """Return what is summed over groups with these weights of events and of other labels, ``(n_terms, ...)``."""
    weight = events + others
    squares = np.square(weight)
    return np.stack([
        weight > 0,
        (events > 0) & (others > 0),
        squares,
        np.square(squares),
        squares * (events > 0),
        squares * (others > 0),
        events * weight,
        np.square(events),
        events * weight**3,
        np.square(events) * squares,
        events**3 * weight,
        events**4,
    ])  # fmt: skip


def _tails(rate: Array, number: Array, expected: Array) -> tuple[Array, Array]:
    """Return the probabilities of as large, and of as small a frequency if the expected one is true."""
    from scipy.special import betainc

    yes, no = number * rate, number * (1 - rate)
    upper = np.where(yes > 0, betainc(np.where(yes > 0, yes, 1.0), no + 1, expected), 1.0)
    lower = np.where(no > 0, 1 - betainc(yes + 1, np.where(no > 0, no, 1.0), expected), 1.0)
    return upper, lower


def _last_accepted(start: Array, end: Array, tail: Callable[[Array], Array], alpha: float) -> Array:
    """Return the frequencies farthest from ``start`` whose tail, which falls towards ``end``, is at least alpha."""
    whole = tail(end) >= alpha
    good, bad = start, end
    for _ in range(_HALVINGS):
        middle = (good + bad) / 2
        accepted = tail(middle) >= alpha
        good, bad = np.where(accepted, middle, good), np.where(accepted, bad, middle)
    return np.where(whole, end, good)


def _number_of_groups(rate: Array, total: Array, largest: Array, terms: Array, level: float | Array) -> Array:
    """Return the effective number of observations in groups, at most ``largest``."""
    from scipy.special import ndtri, stdtrit

    n_groups, n_mixed, w2, w4, with_event, with_other, kw, k2, kw3, k2w2, k3w, k4 = terms
    kish = effective_of_sums(total, w2)
    w2, w4 = np.where(w2 > 0, w2, 1.0), np.where(w4 > 0, w4, 1.0)
    second = k2 - 2 * rate * kw + rate**2 * w2
    fourth = k4 - 4 * rate * k3w + 6 * rate**2 * k2w2 - 4 * rate**3 * kw3 + rate**4 * w4
    varies = (n_mixed > 0.5) & (second > _ROUNDING * w2)
    second = np.where(varies, second, 1.0)
    spread = np.square(second) / np.maximum(fourth, np.square(second) / np.maximum(n_groups, 1.0))
    shown = np.minimum(with_event, with_other) * w2 / w4
    freedom = np.maximum(np.minimum(spread, shown) - 1, _LEAST_FREEDOM)
    tail = (1 + level) / 2
    variance = second / np.square(total) * n_groups / np.maximum(n_groups - 1, 1.0)
    number = rate * (1 - rate) / variance * np.square(ndtri(tail) / stdtrit(freedom, tail))
    return np.where(varies, np.clip(number, kish, np.maximum(largest, kish)), kish)


def _of_group_before(parts: Array, group: NDArray[np.int64]) -> Array:
    """Return for each observation the sums ``(n_parts, n)`` over earlier ones of its group."""
    order = np.argsort(group, kind="stable")
    start = np.flatnonzero(np.append(True, np.diff(group[order]) > 0))
    # Shifted instead of subtracted: without events the sum of a group stays exactly 0.
    sums = np.concatenate([np.zeros((len(parts), 1)), np.cumsum(parts[:, order], axis=1)[:, :-1]], axis=1)
    before = np.empty_like(parts)
    before[:, order] = sums - np.repeat(sums[:, start], np.diff(np.append(start, len(group))), axis=1)
    return before
