r"""Labels that are alike within groups, as much as the data allow: the third null distribution of a test with groups.

Random signs know how much the sums of few groups vary, but not how skewed they are. Where most groups have no event,
calibrated models are rejected because a group with many events happens to be missing, and no data can show how rare
such a group is. With more groups, too, the spread of signed sums is smallest where fewer events happened than were
expected, and that is when the sums are far from 0: with skewed sums the test is liberal, by about a quarter of their
squared skewness. So where fewer than `ENOUGH_GROUPS` groups have a surprise, a label other than the most probable one,
labels are also simulated that share a normal shock within groups. Where in each group the surprises are those with the
largest probabilities, all labels of a group may come from one draw, as copies of an outcome do that is predicted many
times: then each group has one outcome, with the mean of its probabilities. The sums of copies are the most skewed ones,
so that this is done where fewer than `ENOUGH_COPIES` groups have a surprise. Otherwise their intraclass correlation is
the upper 80 % confidence limit of the observed one, but not above 0.3 unless the observed one is. With the residuals
:math:`e_i = y_i - p_i` of the event, their variances :math:`v_i`, weights :math:`w_i`, the sums :math:`U_g` and
:math:`V_g` of :math:`w_i e_i` and :math:`w_i v_i` over a group and :math:`\delta = \sum_g U_g / \sum_g V_g`,

.. math:: R' = \sum_g \frac{(U_g - \delta V_g)^2}{1 - V_g / \sum_h V_h} \Bigm/
               \sum_i w_i^2 v_i (1 + \delta (1 - 2 p_i))

is the design effect around the observed frequency, whether predictions are right on average or not. It is about
:math:`\chi^2_\nu / \nu` times its mean, where :math:`\nu + 1` groups have a surprise (in units of groups of equal
size), because the others say little.

The spread of drawn residuals differs from draw to draw, and from that of the data. Statistics are compared after
division by it (they are studentised), so that a wrong correlation matters little: drawn residuals are multiplied by
:math:`\sqrt{R / R^*}`, where :math:`R = \max(1, \sum_g U_g^2 / \sum_i w_i^2 v_i)`.

Of several classes the event is a surprise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._cells import count_outcomes, weigh_outcomes
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._sample import Sample
from caltest.predictions.cells._cells import cell_dtype
from caltest.resampling.draws._group_shocks import Shocks, correlation_in_groups, labels_of_latent, latent_bounds
from caltest.resampling.draws._labels import Draws
from caltest.resampling.draws._signs import GroupsWithSurprise, group_of, n_groups

LARGEST_ICC = 0.3
"""Intraclass correlation that is thought possible where the data do not tell."""
ENOUGH_GROUPS, ENOUGH_COPIES = 40, 200
"""So many groups with a surprise, of equal size, show how skewed sums are, and those of copies: signs are enough."""
MOST_NUMBERS = 10**8
"""Normal numbers of observations beyond which fewer draws are made."""
_LEVEL = 0.8
_MOST_COUNTS = 2**22  # of groups in draws at a time


@dataclass(frozen=True, eq=False)
class RareOutcome:
    """The event of two outcomes, or a surprise of several classes, in groups of observations.

    Attributes
    ----------
    prob, deviation : arrays of shape (n_samples,)
        Probability of the outcome, and the standard deviation of its weighted indicator.
    usual : array of shape (n_samples,) or None
        The most probable class; None for two outcomes.
    group : array of shape (n_samples,)
        Group of each observation.
    n_groups : int
        Number of groups.
    weight : array of shape (n_samples,) or None
        Weight of each observation.
    """

    prob: Floats
    deviation: Floats
    usual: Integers | None
    group: Integers
    n_groups: int
    weight: Floats | None

    @classmethod
    def of(cls, sample: Sample) -> RareOutcome:
        """Return the outcome of a sample; it depends on predictions alone."""
        usual = None if sample.n_outcomes == 2 else sample.given_null.argmax(axis=1)
        prob = sample.expected[:, 1] if usual is None else 1 - sample.expected[np.arange(sample.n_samples), usual]
        deviation = sample.weight_or_ones * np.sqrt(np.clip(prob * (1 - prob), 0.0, None))
        return cls(prob, deviation, usual, group_of(sample), n_groups(sample), sample.weight)

    @cached_property
    def _expected(self) -> Floats:
        """Weighted sums of the probabilities of groups."""
        weighted = self.prob if self.weight is None else self.prob * self.weight
        return np.bincount(self.group, weighted, self.n_groups).astype(np.float64, copy=False)

    @cached_property
    def _cell(self) -> NDArray[Any]:
        return self.group.astype(cell_dtype(self.n_groups))[:, None]

    @cached_property
    def own(self) -> float:
        """The variance of the sum of all weighted indicators if labels are independent."""
        return float(np.square(self.deviation).sum())

    @cached_property
    def pairs(self) -> float:
        """The sum of the products of the standard deviations of two observations of a group."""
        return float(np.square(np.bincount(self.group, self.deviation)).sum()) - self.own

    def sums(self, labels: NDArray[np.unsignedinteger]) -> Floats:
        """Return the sums of weighted residuals of groups, ``(n, n_groups)``, of labels ``(n, n_samples)``."""
        outcomes = labels if self.usual is None else (labels != self.usual).astype(np.uint8)
        size = max(1, _MOST_COUNTS // (2 * self.n_groups))
        parts = [self._count(outcomes[start : start + size]) for start in range(0, len(outcomes), size)]
        counted: Floats = np.concatenate(parts) - self._expected
        return counted

    def _count(self, outcomes: NDArray[np.unsignedinteger]) -> NDArray[Any]:
        if self.weight is None:
            return count_outcomes(outcomes, self._cell, 2, 2 * self.n_groups)[:, 1::2]
        return weigh_outcomes(outcomes, self._cell, self.weight, 2, 2 * self.n_groups)[:, 1::2]

    def design_effect(self, labels: NDArray[np.unsignedinteger]) -> Floats:
        """Return how much more the sums of groups vary than those of independent labels, at least 1, ``(n,)``."""
        if not self.own:
            return np.ones(len(labels))
        return np.maximum(np.square(self.sums(labels)).sum(axis=1) / self.own, 1.0)

    def effect_around(self, labels: NDArray[np.unsignedinteger]) -> Floats:
        """Return the design effect around the frequency of labels, whatever was predicted on average, ``(n,)``."""
        weight = np.ones(len(self.prob)) if self.weight is None else self.weight
        variance = weight * self.prob * (1 - self.prob)
        of_groups = np.bincount(self.group, variance, self.n_groups)
        sums, total = self.sums(labels), of_groups.sum()
        change = sums.sum(axis=1) / total
        others = np.maximum(1 - of_groups / total, np.finfo(float).eps)
        spread = (np.square(sums - change[:, None] * of_groups) / others).sum(axis=1)
        weighted = weight * variance
        shown = weighted.sum() + change * (weighted * (1 - 2 * self.prob)).sum()
        return np.divide(spread, shown, out=np.zeros_like(spread), where=shown > 0)

    def largest_icc(self, sample: Sample) -> float:
        """Return the largest intraclass correlation that the labels of a sample allow; 0 if no draws are needed."""
        from scipy.stats import chi2

        number = GroupsWithSurprise.counted(sample).effective_number - 1
        if not self.pairs > 0:
            return 0.0
        if self.may_be_copies(sample):
            return 1.0
        if number + 1 >= ENOUGH_GROUPS:
            return 0.0
        (effect,) = self.effect_around(sample.outcome[None])
        worst = effect * number / float(chi2.ppf(1 - _LEVEL, number)) if number > 0 and effect > 0 else np.inf
        own, most = ((one - 1) * self.own / self.pairs for one in (effect, worst))
        return float(np.clip(min(most, max(own, LARGEST_ICC)), 0.0, 1.0))

    def may_be_copies(self, sample: Sample) -> bool:
        """Return whether the labels of each group may be one outcome, of groups too few for random signs alone."""
        few = GroupsWithSurprise.counted(sample).effective_number < ENOUGH_COPIES
        return self.pairs > 0 and few and self.may_be_one_draw(sample.outcome)

    def may_be_one_draw(self, label: NDArray[np.unsignedinteger]) -> bool:
        """Return whether the surprises of each group are those with the largest probabilities.

        Then its labels, of ``(n_samples,)``, may come from one draw that is compared with all of its probabilities.
        """
        surprising = (label if self.usual is None else label != self.usual).astype(bool)
        least, largest = np.full(self.n_groups, np.inf), np.full(self.n_groups, -np.inf)
        np.minimum.at(least, self.group[surprising], self.prob[surprising])
        np.maximum.at(largest, self.group[~surprising], self.prob[~surprising])
        return bool((least > largest).all())

    def correlation(self, icc: float) -> float:
        """Return the correlation of normal numbers that makes labels as alike; 1 means that a group has one outcome."""
        if icc >= 1:
            return 1.0
        prob = np.column_stack([1 - self.prob, self.prob])
        weight = np.ones(len(prob)) if self.weight is None else self.weight
        return correlation_in_groups(prob, weight, self.group, self.n_groups, target=icc * self.pairs, n_columns=1)


@dataclass(frozen=True)
class AlikeDraws(Draws):
    """Labels that are alike within groups, predictions fixed.

    Attributes
    ----------
    icc, correlation : float
        Intraclass correlation, and the correlation of the normal numbers that labels are made from.
    """

    icc: float = 0.0
    correlation: float = 0.0

    method = "alike-labels"
    together = 32

    @classmethod
    def as_alike(cls, sample: Sample, icc: float, n_resamples: int, rng: Any) -> AlikeDraws:
        """Return labels with an intraclass correlation."""
        plain = cls.of(n_resamples, rng)
        correlation = sample.of_predictions(RareOutcome.of).correlation(icc)
        return cls(plain.seed, plain.first, plain.n_resamples, icc, correlation)

    def blocks(self, sample: Sample) -> Iterator[tuple[Sample, NDArray[Any]]]:
        """Yield the sample with outcomes ``(n_replicates, n_samples)`` drawn for it."""
        bounds, order = sample.of_predictions(_bounds if self.correlation < 1 else _bounds_of_groups)
        group = group_of(sample)
        stop = self.first + self.n_resamples
        whole = -(-stop // self.together) * self.together  # a draw does not depend on how many there are
        shocks = Shocks(int(self.seed), whole, n_groups(sample), sample.n_samples, self.together)
        for part, shock, noise in shocks.blocks_from(self.first):
            labels = labels_of_latent(bounds, self.correlation, shock[group], noise)
            drawn = labels[:, max(self.first - part.start, 0) : stop - part.start].T
            if order is not None:
                drawn = order[np.arange(sample.n_samples), drawn].astype(labels.dtype)
            yield sample, np.ascontiguousarray(drawn)

    def scale(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return by what the residuals of drawn outcomes are multiplied, ``(n,)``, to vary as the observed ones."""
        rare = sample.of_predictions(RareOutcome.of)
        (observed,) = rare.design_effect(sample.outcome[None])
        return np.sqrt(observed / rare.design_effect(outcomes))


def _bounds(sample: Sample) -> tuple[NDArray[np.float32], Integers | None]:
    """Return the bounds of normal numbers between classes, and several classes in order, the most probable first."""
    if sample.n_outcomes == 2:
        return latent_bounds(sample.expected), None
    order = np.argsort(-sample.expected, axis=1, kind="stable")
    return latent_bounds(np.take_along_axis(sample.expected, order, axis=1)), order


def _bounds_of_groups(sample: Sample) -> tuple[NDArray[np.float32], Integers | None]:
    """Return the bounds of groups that have one outcome each, with the mean probabilities of their observations.

    A patient who is scored several times has one outcome, and no event as often as the mean of the scores says. The
    largest score would say that this is rarer.
    """
    _, order = sample.of_predictions(_bounds)
    prob = sample.expected if order is None else np.take_along_axis(sample.expected, order, axis=1)
    group, weight = group_of(sample), sample.weight_or_ones
    total = np.maximum(np.bincount(group, weight), np.finfo(float).tiny)
    mean = np.column_stack([np.bincount(group, weight * one) / total for one in prob.T])
    return latent_bounds(mean)[group], order
