r"""Random signs for whole groups of observations, the null distribution where observations of a group may be dependent.

Under calibration the residuals of a group (outcome minus predicted probability) have mean 0, however the observations
of the group depend on each other, and groups are independent. So the residuals :math:`s_g e_i` with independent random
signs :math:`s_g` have the same mean and, within and between groups, the same covariances as the residuals themselves.
A statistic of these residuals approximates the null distribution: exactly if the sums of a group have a symmetric
distribution, and as the number of groups grows otherwise (the wild cluster bootstrap with the null hypothesis imposed:
Cameron, Gelbach and Miller 2008; Canay, Santos and Shaikh 2021).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._draws import draw_outcomes
from caltest._compiled._signs import LANES, add_signed_terms, follow_signed_paths, pack_signs
from caltest.predictions._arrays import Booleans, Floats, Integers
from caltest.predictions._sample import Sample
from caltest.predictions.cells._cells import Cells
from caltest.predictions.cells._order import stable_order
from caltest.predictions.inputs._parts import effective_number
from caltest.resampling.distributions._poisson_binomial import PoissonBinomial
from caltest.resampling.draws._labels import Draws
from caltest.results import Note
from caltest.results._decision import rejects

_ROWS = 2**15  # observations whose residuals are in the cache when they are added
_HALF = 2**31  # of 2**32: a fair coin
_BYTES_OF_SUMS = 256  # of an outcome, in some cells
MANY_GROUPS = 10
"""With fewer groups the p-value from random signs is unreliable."""
_FEWER = 0.01
_FEW = 4  # observations for each group and cell from which they are added before they get signs


@dataclass(frozen=True)
class SignDraws(Draws):
    """Random signs of the groups of a sample, predictions and labels fixed."""

    method = "random-signs"
    together = LANES

    def blocks(self, sample: Sample) -> Iterator[tuple[Sample, NDArray[Any]]]:
        """Yield the sample with signs ``(n_replicates, n_groups)``, -1 or 1."""
        for part in self.blocks_of(n_groups(sample) + _BYTES_OF_SUMS * sample.n_outcomes):
            yield sample, part.signs(sample)

    def signs(self, sample: Sample) -> NDArray[np.int8]:
        """Return the signs ``(n_resamples, n_groups)``, -1 or 1."""
        threshold = np.full((1, n_groups(sample)), _HALF, dtype=np.uint32)
        coin = np.empty((self.n_resamples, threshold.size), dtype=np.uint8)
        draw_outcomes(threshold, self.seed, self.first, coin)
        signs = coin.view(np.int8)  # the memory of coins: there may be millions
        signs *= 2
        signs -= 1
        return signs


@dataclass(frozen=True)
class AllSigns(SignDraws):
    """All arrangements of the signs of few groups, but for the observed one: there are fewer than draws.

    Replicate r is the arrangement whose negative signs are the binary digits of r + 1. Groups without an observation
    of positive weight have no sign.
    """

    method = "all-signs"

    @classmethod
    def of_groups(cls, number: int) -> AllSigns:
        """Return the arrangements of the signs of a number of groups."""
        return cls(np.uint64(0), 0, 2**number - 1)

    def signs(self, sample: Sample) -> NDArray[np.int8]:
        """Return the signs ``(n_resamples, n_groups)``, -1 or 1."""
        counted = group_of(sample) if sample.weight is None else group_of(sample)[sample.weight > 0]
        places = np.unique(counted)
        number = np.arange(self.first + 1, self.first + self.n_resamples + 1)
        signs = np.ones((len(number), n_groups(sample)), dtype=np.int8)
        signs[:, places] -= 2 * (number[:, None] >> np.arange(len(places)) & 1).astype(np.int8)
        return signs


def n_groups(sample: Sample) -> int:
    """Return one more than the largest number of a group; regions and lenses keep the numbers."""
    return int(group_of(sample).max()) + 1


def group_of(sample: Sample) -> Integers:
    """Return the group of each observation, ``(n_samples,)``; every observation is its own if there are none."""
    return np.arange(sample.n_samples) if sample.group is None else sample.group


def sum_signed(signs: NDArray[np.int8], sums: Floats) -> Floats:
    """Return the signed sums ``(n_replicates, n_terms)`` of the sums of groups, ``(n_groups, n_terms)``."""
    group = np.arange(len(sums))
    total = _Signed.of(signs, (1, sums.shape[1]))
    total.add(group, np.zeros_like(group), sums)
    return total.read()[:, 0]


def sums_of_groups(sample: Sample, terms: Floats) -> Floats:
    """Return the sums ``(n_groups,)`` of what each observation adds, ``(n_samples,)``.

    An infinite term belongs to an impossible label, which decides the p-value without it.
    """
    finite = np.where(np.isfinite(terms), terms, 0.0)
    return np.bincount(group_of(sample), finite, n_groups(sample)).astype(np.float64)


def signed_sums(
    sample: Sample,
    signs: NDArray[np.int8],
    cell: NDArray[Any],
    n_cells: int,
    *,
    of: Sample,
    outcomes: slice = slice(None),
) -> Floats:
    """Return the signed sums of residuals over cells ``(n_samples,)``, ``(n_replicates, n_cells, n_outcomes)``.

    The residuals are those of some outcomes of the sample ``of``, whose observations have the groups of ``sample``.
    """
    group, n_terms = group_of(sample), len(range(of.n_outcomes)[outcomes])
    total = _Signed.of(signs, (n_cells, n_terms))
    parts = [slice(start, start + _ROWS) for start in range(0, sample.n_samples, _ROWS)]
    if _FEW * n_groups(sample) * n_cells > sample.n_samples:
        for rows in parts:
            total.add(group[rows], cell[rows], residuals(of, rows)[:, outcomes])
        return total.read()
    place = group * n_cells + cell
    sums = np.zeros((n_groups(sample) * n_cells, n_terms))
    for rows in parts:
        for k, residual in enumerate(residuals(of, rows)[:, outcomes].T):
            sums[:, k] += np.bincount(place[rows], residual, len(sums))
    total.add(*np.divmod(np.arange(len(sums)), n_cells), sums)
    return total.read()


def residuals(sample: Sample, rows: slice) -> Floats:
    """Return the residuals of all outcomes of some observations, ``(n, n_outcomes)``, as `Sample.residual`."""
    residual = 0.0 - sample.given_null[rows].astype(np.float64)
    residual[np.arange(len(residual)), sample.outcome[rows]] += 1.0
    return residual if sample.weight is None else residual * sample.weight[rows, None]


def residual_sums(sample: Sample, signs: NDArray[np.int8], cells: Cells) -> Floats:
    """Return the signed sums of the residuals of every outcome, ``(n_replicates, n_cells, n_outcomes)``."""
    return signed_sums(sample, signs, cells.index, cells.n_cells, of=sample)


def signed_extremes(sample: Sample, signs: NDArray[np.int8], k: int) -> Floats:
    """Return ``(3, n_replicates)``: largest and smallest value and end of the signed path of outcome k.

    Observations are followed in an order of increasing probability of the outcome; the start at 0 counts.
    """
    order, is_end = _path(sample, k) if sample.is_large else sample.of_predictions(_path, k)
    words = _words(signs)
    state = np.zeros((len(words), 3, LANES))
    follow_signed_paths(words, group_of(sample)[order], sample.residual(k)[order], is_end, state)
    return _replicates(state, len(signs)).T


def _path(sample: Sample, k: int) -> tuple[Integers | slice, Booleans]:
    """Return the order of the predictions of outcome k, and which of them are the last of equal ones."""
    order = slice(None) if sample.n_outcomes == 2 else stable_order(sample.given[:, k])  # sorted by the event
    score = sample.given[order, k]
    return order, np.append(score[1:] > score[:-1], True)


@dataclass(frozen=True, eq=False)
class _Signed:
    """Signed sums to which observations are added, some at a time."""

    words: NDArray[np.uint32]
    sums: Floats
    n_replicates: int

    @classmethod
    def of(cls, signs: NDArray[np.int8], shape: tuple[int, int]) -> _Signed:
        """Return sums ``shape``, (n_cells, n_terms), of 0."""
        words = _words(signs)
        return cls(words, np.zeros((len(words), *shape, LANES)), len(signs))

    def add(self, group: Integers, cell: NDArray[Any], terms: Floats) -> None:
        """Add terms ``(n, n_terms)`` of observations in some groups and cells."""
        add_signed_terms(self.words, group, cell.astype(np.int64, copy=False), np.ascontiguousarray(terms), self.sums)

    def read(self) -> Floats:
        """Return the sums ``(n_replicates, n_cells, n_terms)``."""
        return _replicates(self.sums, self.n_replicates)


def _words(signs: NDArray[np.int8]) -> NDArray[np.uint32]:
    words = np.empty((-(-len(signs) // LANES), signs.shape[1]), dtype=np.uint32)
    pack_signs(np.ascontiguousarray(signs), words)
    return words


def _replicates(found: Floats, n_replicates: int) -> Floats:
    """Return ``(n_words, ..., LANES)`` by replicate, ``(n_replicates, ...)``."""
    by_replicate = np.moveaxis(found, -1, 1)
    return np.ascontiguousarray(by_replicate.reshape(-1, *by_replicate.shape[2:])[:n_replicates])


@dataclass(frozen=True)
class GroupsWithSurprise:
    """How many groups have a surprise, a label other than the most probable one.

    Attributes
    ----------
    n_groups, number : int
        Number of groups, and of those with a surprise.
    expected : float
        How many there would be on average if labels were independent and followed the predictions.
    pvalue : float
        Probability of so few, or fewer, in that case.
    effective_number : float
        How many groups of equal size (weight) those with a surprise are worth, to nine digits.
    """

    n_groups: int
    number: int
    expected: float
    pvalue: float
    effective_number: float

    @classmethod
    def of(cls, sample: Sample) -> GroupsWithSurprise:
        """Count the groups of a sample, and compare with independent labels."""
        group, found = group_of(sample), cls.counted(sample)
        known = np.bincount(group) > 0  # a region leaves gaps
        with np.errstate(divide="ignore"):
            none = np.exp(np.bincount(group, np.log(sample.given.max(axis=1).astype(np.float64))))[known]
        probability = np.clip(1 - none, 0.0, 1.0)
        count = PoissonBinomial.of(probability)
        fewer = float(count.pmf[count.counts <= found.number].sum())
        return replace(found, expected=float(probability.sum()), pvalue=fewer)

    @classmethod
    def counted(cls, sample: Sample) -> GroupsWithSurprise:
        """Count the groups of a sample alone."""
        group = group_of(sample)
        surprising = np.bincount(group, sample.outcome != sample.given.argmax(axis=1)) > 0
        size = np.bincount(group, sample.weight).astype(np.float64, copy=False)[surprising]
        number = int(np.count_nonzero(np.bincount(group)))
        return cls(number, len(size), math.nan, 1.0, round(effective_number(size), 9))

    def too_few(self, needed: float) -> str:
        """Say that fewer groups have a surprise than are needed."""
        have = "have" if self.number > 1 else "has"
        some = f"only {self.number}" if self.number else "none"
        worth = f" (worth {self.effective_number:.2g} groups of equal size)" if self.number >= needed else ""
        return (
            f"{some} of {self.n_groups} groups {have} a label other than the most probable one{worth}, and "
            f"{needed:g} are needed"
        )

    @property
    def notes(self) -> tuple[Note, ...]:
        """A caution if there are few groups, or fewer with a surprise than independent labels would have."""
        other = "a label other than the most probable one"
        if self.effective_number < MANY_GROUPS:
            few = "only " if self.n_groups < MANY_GROUPS else ""
            which = f"{self.number} of them have" if self.number != 1 else "1 of them has"
            are = "is only 1 group" if self.n_groups == 1 else f"are {few}{self.n_groups} groups"
            worth = ""
            if self.number >= MANY_GROUPS:
                worth = f" They are so unequal that these are worth {self.effective_number:.2g} groups of equal size."
            text = (
                f"There {are}, and {which} {other}.{worth} With fewer than {MANY_GROUPS} of these "
                "groups the p-value is not reliable: dependence within groups is not known well enough."
            )
            if self.n_groups < MANY_GROUPS:
                text += (
                    f" A two-sided statistic has no p-value below {2.0 ** (1 - self.n_groups):.2g}. If the "
                    "observations of a group are independent of each other, `subgroup_tests` tests each group."
                )
        elif rejects(self.pvalue, _FEWER):
            text = (
                f"Of {self.n_groups} groups {self.number} have {other}; {self.expected:.1f} would be expected of "
                "independent labels. Either the predictions are wrong, or such labels come in few groups; then the "
                "p-value is too small."
            )
        else:
            return ()
        return (Note("C303", text),)


NO_GROUPS = GroupsWithSurprise(0, 0, 0.0, 1.0, 0.0)
