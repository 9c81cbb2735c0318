"""P-values: ranks among simulated data sets, their combination, and corrections for several tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from caltest.predictions._arrays import Booleans, Floats, Integers
from caltest.predictions._sample import Sample
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import validate_choice
from caltest.resampling.distributions._base import SMALLEST_PVALUE, TIE_TOLERANCE, Distribution
from caltest.results._decision import rejects

_LARGEST_CODE = 2**62


def rank_pvalues(sample: Sample, observed: Floats, null: Floats) -> tuple[Floats, Floats]:
    """Return p-values of the components ``(n_components, B + 1)`` and combined ``(B + 1,)``, the observed data first.

    A label that had been given probability 0 makes every p-value of the observed data the smallest attainable.
    """
    values = np.column_stack([observed, null])
    if sample.impossible.size:
        values[:, 0] = np.inf
    part_pvalues = tail_pvalues(values)
    return part_pvalues, part_pvalues[0] if len(values) == 1 else combine_pvalues(part_pvalues)


def tail_pvalue(sample: Sample, probability: float) -> float:
    """Return the p-value of a computed tail; never 0, but the smallest float if there are impossible labels."""
    return max(0.0 if sample.impossible.size else min(probability, 1.0), SMALLEST_PVALUE)


def global_pvalue(samples: Iterable[Sample], ranked: Iterable[Floats]) -> float:
    """Return the exact min-p over tests on the same draws, from p-values ``(B + 1,)``, the observed data first."""
    pvalues = np.stack(list(ranked))
    impossible = any(sample.impossible.size for sample in samples)
    return 1 / pvalues.shape[1] if impossible else float(combine_pvalues(pvalues)[0])


def smallest_pvalue(ranked: Sequence[Floats], n_resamples: int) -> float:
    """Return the smallest p-value that residuals with random signs can have, from those of all draws ``(B + 1,)``.

    It is that of the most extreme arrangement of signs, which several draws share where there are few groups, and a
    statistic may have the same value for an arrangement and its opposite. ``n_resamples`` is the largest number of
    draws; they may have stopped before.
    """
    pvalues = ranked[0] if len(ranked) == 1 else combine_pvalues(np.stack(ranked))
    smallest, n = float(pvalues.min()), len(pvalues)
    return 1 / (n_resamples + 1) if smallest * n < 1.5 else smallest


def tail_pvalues(values: Floats) -> Floats:
    """Return for every value ``(..., n)`` the share of the values on its last axis that are at least as large.

    Values that differ by less than 1e-12 of the largest are ties and count; a tolerance relative to each value would
    let rounding decide among values that cancel to 0. With the observed value among the n = B + 1 this is
    ``(1 + #{null >= observed}) / (1 + B)``.
    """
    n = values.shape[-1]
    rows = values.reshape(-1, n)
    slack = TIE_TOLERANCE * np.abs(rows).max(axis=1, initial=0.0, where=np.isfinite(rows), keepdims=True)
    order = np.argsort(rows, axis=1) + np.arange(0, rows.size, n)[:, None]  # among all values
    ordered = rows.reshape(-1).take(order)
    least = ordered - slack
    pvalues, share = np.empty(rows.size), np.arange(n, 0, -1) / n
    pvalues[order] = share
    # A search is needed only after a value that is as large.
    row, place = np.nonzero(ordered[:, :-1] >= least[:, 1:])
    for one in np.unique(row) if row.size else ():
        tied = place[row == one] + 1
        pvalues[order[one, tied]] = share[np.searchsorted(ordered[one], least[one, tied], side="left")]
    return pvalues.reshape(values.shape)


def combine_pvalues(pvalues: Floats) -> Floats:
    """Return the exact min-p p-value of each of the n data sets from component p-values ``(n_components, n)``.

    Columns are ranked by their sorted p-values in lexicographic order; the p-value of a column is the share of columns
    that rank no higher.
    """
    n = pvalues.shape[1]
    ranks = np.sort(np.rint(pvalues * n).astype(np.int64).T.copy(), axis=1)  # 1 to n
    code = ranks[:, 0]  # one number in lexicographic order
    largest = n + 1
    for rank in ranks.T[1:]:
        if largest > _LARGEST_CODE // (n + 1):
            code = np.unique(code, return_inverse=True)[1]
            largest = n
        code = code * (n + 1) + rank
        largest = (largest + 1) * (n + 1)
    order = np.argsort(code)
    ordered = code[order]
    ends = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), n - 1) + 1
    combined = np.empty(n)
    combined[order] = np.repeat(ends / n, np.diff(ends, prepend=0))
    return combined


def adjust_jointly(
    samples: Sequence[Sample], ranked: Sequence[Floats], smallest: Sequence[float]
) -> tuple[Floats, Floats]:
    """Return step-down min-p adjusted p-values ``(n_tests,)``, and those that the smallest possible ones would have.

    The tests share draws; ``ranked`` are the p-values ``(B + 1,)`` of each, the observed data first. In the order of
    the observed ones, each is compared with the smallest p-value that any test from there on has in a draw (Westfall
    and Young 1993, algorithm 2.8). A label that had been given probability 0 makes the smallest p-value of its tests.
    """
    n = len(ranked[0])
    ranks = np.rint(np.stack(ranked) * n).astype(np.int64)
    order = np.argsort(ranks[:, 0], kind="stable")
    least = np.minimum.accumulate(ranks[order][::-1], axis=0)[::-1]
    adjusted = np.empty(len(ranks))
    adjusted[order] = np.maximum.accumulate((least <= ranks[order, :1]).mean(axis=1))
    adjusted[[sample.impossible.size > 0 for sample in samples]] = 1 / n
    drawn = np.sort(least[0, 1:])
    possible = np.rint(np.asarray(smallest) * n)
    return adjusted, (1 + np.searchsorted(drawn, possible, side="right")) / n


@dataclass(frozen=True, eq=False)
class RankedDraws:
    """Draws of a test, among which further data sets are ranked one by one, as its observed data set is.

    A draw counts itself in its rank, and so does a data set, which is one more than the draws.

    Attributes
    ----------
    null : array of shape (n_components, n_resamples)
        The components of the draws, in the order of ``smallest``.
    ranks : array of shape (n_components, n_resamples)
        The rank of each among the draws: the number of draws that are at least as large.
    smallest : array of shape (n_resamples,)
        The smallest rank of each draw, increasing.
    """

    null: Floats
    ranks: Integers
    smallest: Integers

    @classmethod
    def of(cls, null: Floats) -> RankedDraws:
        """Return the draws with components ``(n_components, n_resamples)``."""
        ranks = np.rint(tail_pvalues(null) * null.shape[1]).astype(np.int64)
        order = np.argsort(ranks.min(axis=0), kind="stable")
        return cls(null[:, order], ranks[:, order], ranks.min(axis=0)[order])

    @cached_property
    def _ordered(self) -> tuple[Floats, Floats]:
        """The components, each increasing, and the difference up to which values of each are ties."""
        ordered = np.sort(self.null, axis=1)
        return ordered, TIE_TOLERANCE * np.abs(np.where(np.isfinite(ordered), ordered, 0.0)).max(axis=1, keepdims=True)

    def rejected(self, values: Floats, alpha: float) -> Booleans:
        """Return which data sets with components ``(n_components, n_data_sets)`` are rejected.

        Most are decided by their smallest p-value; ties of it are broken as by `combine_pvalues`.
        """
        ordered, slack = self._ordered
        n = ordered.shape[1]
        pairs = zip(ordered, values - slack, strict=True)
        ranks = 1 + n - np.stack([np.searchsorted(row, some, side="left") for row, some in pairs])
        # The data set may add 1 to the rank of a draw.
        first = np.searchsorted(self.smallest, ranks.min(axis=0) - 2, side="right")
        last = np.searchsorted(self.smallest, ranks.min(axis=0), side="right")
        rejected: Booleans = rejects((1 + last) / (n + 1), alpha)
        open_ = np.flatnonzero(~rejected & rejects((1 + first) / (n + 1), alpha))
        _, one, which = np.unique(values[:, open_], axis=1, return_index=True, return_inverse=True)
        tied = [slice(first[j], last[j]) for j in open_[one]]
        counts = [
            part.start + self._no_higher(values[:, j], ranks[:, j], part)
            for j, part in zip(open_[one], tied, strict=True)
        ]
        rejected[open_] = rejects((1 + np.array(counts, dtype=np.int64)) / (n + 1), alpha)[which.ravel()]
        return rejected

    def _no_higher(self, value: Floats, rank: Integers, part: slice) -> int:
        """Return how many of some draws have ranks no higher than a data set, in lexicographic order."""
        _, slack = self._ordered
        pooled = np.sort(self.ranks[:, part] + (value[:, None] >= self.null[:, part] - slack), axis=0)
        difference = pooled - np.sort(rank)[:, None]
        decisive = (difference != 0).argmax(axis=0)
        return int((np.take_along_axis(difference, decisive[None], axis=0) <= 0).sum())


@dataclass(frozen=True)
class CombinedPValues(Distribution):
    r"""Bonferroni's combination of K p-values, and what it says of -log10 of the smallest.

    .. math:: p = \min(1, K \min_k p_k), \qquad P(p \le \alpha) \le \sum_k P(p_k \le \alpha / K) \le \alpha

    under any dependence. Its power was compared with that of the other rules that are valid under any dependence in
    docs/cross-validation.md.

    Attributes
    ----------
    number : int
        K.

    References
    ----------
    V. Vovk and R. Wang (2020), Combining p-values via averaging, Biometrika.
    """

    number: int

    mean = std = math.nan

    @property
    def origin(self) -> str:
        """The rule in words."""
        return (
            f"{self.number} times the smallest p-value of {self.number} folds (Bonferroni's rule, valid under any "
            "dependence between the folds)"
        )

    def pvalue(self, pvalues: Sequence[float]) -> float:
        """Return the combined p-value of as many p-values or, where some folds lack a test, of fewer."""
        return min(1.0, self.number * min(pvalues))

    def sf(self, x: float) -> float:
        """Return the bound of P(-log10 of the smallest p-value >= x)."""
        return min(1.0, self.number * 10.0**-x)

    def quantile(self, q: float) -> float:
        """Return NaN: the distribution is not known."""
        return math.nan


UNDER_ANY_DEPENDENCE = ("holm", "bonferroni")
JOINTLY = "min-p"
"""The adjustment by `adjust_jointly`, for tests on the same draws."""
UNDER_INDEPENDENCE = ("holm-sidak", "sidak", "simes-hochberg", "hommel")


def correct_pvalues(
    pvalues: ArrayLike, correction: str = "holm", allowed: Sequence[str] = UNDER_ANY_DEPENDENCE + UNDER_INDEPENDENCE
) -> Floats:
    r"""Return p-values adjusted for their number, with control of the probability of any false rejection.

    If all null hypotheses are true, the smallest adjusted p-value is at most :math:`\alpha` with probability
    :math:`\alpha` at most. Holm's, of sorted p-values :math:`p_{(1)} \le \dots \le p_{(m)}`, are

    .. math:: \tilde p_{(i)} = \max_{j \le i} \min(1, (m - j + 1) \, p_{(j)})

    Parameters
    ----------
    pvalues : array-like of shape (n_tests,)
        P-values, each of which is valid by itself.
    correction : {"holm", "bonferroni", "holm-sidak", "sidak", "simes-hochberg", "hommel"}
        The procedure of the adjustment. "holm" and "bonferroni" hold under any dependence of the tests, the others if
        the tests are independent. ``allowed`` may add "fdr_bh" and "fdr_by", which control the expected share of false
        rejections.
    allowed : sequence of str
        The corrections that hold for these tests.

    Returns
    -------
    array of shape (n_tests,)
        Adjusted p-values, in the order of ``pvalues``.

    Raises
    ------
    TypeError
        If ``correction`` is no text.
    ValueError
        If ``correction`` is not allowed, or ``pvalues`` has values outside [0, 1].

    See Also
    --------
    caltest.calibration_table : Tests whose p-values are adjusted.

    References
    ----------
    S. Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics.

    Examples
    --------
    >>> correct_pvalues([0.01, 0.04, 0.03]).round(4).tolist()
    [0.03, 0.06, 0.06]
    """
    validate_choice(correction, "correction", allowed)
    values = np.asarray(pvalues, dtype=np.float64)
    if not np.all((values >= 0) & (values <= 1)):
        refuse(f"`pvalues` must lie in [0, 1], got {values[~((values >= 0) & (values <= 1))][0]}.")
    if correction.startswith("fdr_"):
        from scipy.stats import false_discovery_control

        return np.asarray(false_discovery_control(values, method=correction.removeprefix("fdr_")))
    order = np.argsort(values, kind="stable")
    adjusted = np.empty_like(values)
    with np.errstate(divide="ignore"):  # log(1 - p) at p = 1
        adjusted[order] = _ADJUSTED[correction](values[order], np.arange(len(values), 0, -1))
    return np.minimum(adjusted, 1.0)


def _sidak(p: Floats, number: Integers) -> Floats:
    """Return the probabilities that the smallest of so many independent p-values is at most p."""
    return -np.expm1(number * np.log1p(-p))


def _hommel(p: Floats, remaining: Integers) -> Floats:
    """Return the largest p-value of Simes among all sets of tests that hold a test.

    Of the sets of a size, that of the largest p-values has the largest one; beside it a test has its smallest p-value.
    """
    adjusted = p
    for size in remaining:
        simes = (size * p[-size:] / np.arange(1, size + 1)).min()
        adjusted = np.maximum(adjusted, np.minimum(size * p, simes))
    return adjusted


_ADJUSTED: dict[str, Callable[[Floats, Integers], Floats]] = {
    "holm": lambda p, remaining: np.maximum.accumulate(p * remaining),
    "bonferroni": lambda p, remaining: p * len(p),
    "holm-sidak": lambda p, remaining: np.maximum.accumulate(_sidak(p, remaining)),
    "sidak": lambda p, remaining: _sidak(p, np.full_like(remaining, len(p))),
    "simes-hochberg": lambda p, remaining: np.minimum.accumulate((p * remaining)[::-1])[::-1],
    "hommel": _hommel,
}
"""Adjusted values of increasing p-values, from them and from the numbers of p-values that are not smaller."""
