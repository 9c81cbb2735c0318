r"""Labels that are alike within groups, and whether a test with groups rejects them.

How alike they are is one number, the intraclass correlation: with the residuals :math:`e_i = y_i - p_i` of an event and
their standard deviations :math:`\sigma_i`, the covariance of two labels of a group is :math:`\mathrm{icc}\,\sigma_i
\sigma_j` on average (of several classes, summed over them). With labels it is estimated from the sums of the groups,

.. math:: \widehat{\mathrm{icc}} = (R - 1) \frac{\sum_i w_i^2 \sigma_i^2}{\sum_{i \ne j} w_i w_j \sigma_i \sigma_j},
          \qquad R = \frac{\sum_g (\sum_{i \in g} w_i e_i)^2}{\sum_i w_i^2 \sigma_i^2},

over pairs of the same group. The design effect R is about :math:`\chi^2_\nu / \nu` times its mean, with the effective
number of groups :math:`\nu`, which gives the interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Floats
from caltest.predictions._sample import Sample
from caltest.predictions.inputs._parts import effective_number
from caltest.resampling.distributions._base import TIE_TOLERANCE
from caltest.resampling.draws._alike_draws import LARGEST_ICC, AlikeDraws, RareOutcome
from caltest.resampling.draws._group_shocks import Shocks, correlation_in_groups, labels_of_latent, latent_bounds
from caltest.resampling.draws._schemes import Consistency
from caltest.resampling.draws._signs import AllSigns, SignDraws, group_of, n_groups
from caltest.resampling.engine._evaluation import components, scale_components
from caltest.resampling.engine._pvalues import RankedDraws, rank_pvalues
from caltest.resampling.engine._statistic import Statistic
from caltest.results import ConfidenceInterval
from caltest.results._decision import rejects

_SIGNS, _MORE_SIGNS, _FEW = 199, 999, 20  # of a simulated data set; few groups have few p-values below the level
_LOST = 0.02  # share of the power that 199 signs have less than 9,999
_LEVEL = 0.95
_MANY, _LARGE, _OF_SIGNS = 100, 2**14, 3.5


@dataclass(frozen=True, eq=False)
class AlikeLabels:
    """Labels of the groups of a sample that have some intraclass correlation.

    Attributes
    ----------
    sample : Sample
        The predictions, with groups; their labels are not used.
    icc : float
        Intraclass correlation. Labels with unequal probabilities cannot have any; then they have the largest.
    interval : ConfidenceInterval or None
        Its 95 % confidence interval, if it was estimated.
    """

    sample: Sample
    icc: float
    interval: ConfidenceInterval | None = None

    @classmethod
    def as_observed(cls, sample: Sample) -> AlikeLabels:
        """Return labels that are as alike as those of the sample are, which follow the predictions on average."""
        from scipy.stats import chi2

        own, pairs = _variances(sample)
        residuals = (sample.residual(k) for k in _columns(sample))
        squares = sum(float(np.square(np.bincount(group_of(sample), one)).sum()) for one in residuals)
        number = _worth(sample)
        quantiles = np.array([number / end for end in chi2.ppf([(1 + _LEVEL) / 2, (1 - _LEVEL) / 2], number)])
        found = np.clip((squares / own * np.append(quantiles, 1.0) - 1) * own / pairs, 0.0, 1.0)
        low, high, estimate = (float(number) for number in found)
        return cls(sample, estimate, ConfidenceInterval(low, high))

    @cached_property
    def many(self) -> float | None:
        r"""How much larger errors must be for random signs than for draws of labels as alike as these; None if unknown.

        It is known for many groups in large samples, whose smallest errors hardly change the variance of labels. With
        the sums U_g of G groups, and an error of :math:`\delta` standard deviations, signs vary as
        :math:`\sum_g U_g^2` does, by a share :math:`\delta^2 / G` more than the sum itself.
        """
        number = _worth(self.sample)
        return 1 + _OF_SIGNS / number if number >= _MANY and self.sample.given.size >= _LARGE else None

    @cached_property
    def _correlation(self) -> float:
        """The correlation of the latent normal numbers."""
        sample = self.sample
        of_groups = sample.expected, sample.weight_or_ones, group_of(sample), n_groups(sample)
        target = self.icc * _variances(sample)[1]
        return correlation_in_groups(*of_groups, target=target, n_columns=len(_columns(sample)))

    def draw(self, true_prob: Floats, number: int, seed: int) -> Iterator[NDArray[np.unsignedinteger]]:
        """Yield labels ``(n, n_samples)`` of some data sets whose labels have these probabilities."""
        bounds, group = latent_bounds(true_prob), group_of(self.sample)
        for _, shock, noise in Shocks(seed, number, n_groups(self.sample), self.sample.n_samples).blocks():
            yield np.ascontiguousarray(labels_of_latent(bounds, self._correlation, shock[group], noise).T)


@dataclass(frozen=True, eq=False)
class SignTest:
    """The test by random signs of groups.

    Attributes
    ----------
    statistic : Statistic
        What is tested, settled for the sample.
    sample : Sample
        The predictions, with groups; their labels are not used.
    alpha : float
        Level.
    seed : int
        Seed of the signs.
    """

    statistic: Statistic
    sample: Sample
    alpha: float
    seed: int

    @cached_property
    def _draws(self) -> SignDraws:
        number = _SIGNS if n_groups(self.sample) >= _FEW else _MORE_SIGNS
        draws = Consistency().for_sample(self.sample).draws(number, self.seed)
        assert isinstance(draws, SignDraws)
        return draws

    def power(self, power: float) -> float:
        """Return the power with these signs of a test that has some power with as many signs as usual."""
        return power * (1 - _LOST) if self._draws.n_resamples == _SIGNS else power

    @cached_property
    def can_reject(self) -> bool:
        """Whether a two-sided statistic can have a p-value of at most the level, however large an error is."""
        return bool(rejects(2 / (self._draws.n_resamples + 1), self.alpha))

    def rejects(self, labels: NDArray[np.unsignedinteger], values: Floats, number: int) -> bool:
        """Return whether labels ``(n_samples,)`` with components ``(n_components,)`` are rejected.

        The ``number`` of the data set decides which signs are drawn for it.
        """
        draws = self._draws
        if not isinstance(draws, AllSigns):
            draws = replace(draws, first=number * draws.n_resamples)
        sample = self.sample.relabelled(labels)
        signs = draws.signs(sample)
        null = np.stack([part.evaluate_signs(sample, signs) for part in self.statistic.components])  # type: ignore[misc]
        return bool(rejects(rank_pvalues(sample, values, null)[1][0], self.alpha))


@dataclass(frozen=True, eq=False)
class AlikeTest:
    """The test by labels that are alike within groups, which few groups with a surprise need.

    Attributes
    ----------
    statistic : Statistic
        What is tested, settled for the sample.
    sample : Sample
        The predictions, with groups; their labels are not used.
    alpha : float
        Level.
    seed : int
        Seed of the draws.
    """

    statistic: Statistic
    sample: Sample
    alpha: float
    seed: int
    _known: dict[float, RankedDraws] = field(default_factory=dict)

    def rejects(self, labels: NDArray[np.unsignedinteger], values: Floats) -> bool:
        """Return whether labels ``(n_samples,)`` with components ``(n_components,)`` are rejected."""
        rare = self.sample.of_predictions(RareOutcome.of)
        icc = rare.largest_icc(self.sample.relabelled(labels))
        if not icc > 0:
            return True
        icc = min(1.0, LARGEST_ICC * 2.0 ** math.ceil(math.log2(icc / LARGEST_ICC) - TIE_TOLERANCE))
        if icc not in self._known:
            self._known[icc] = RankedDraws.of(self._draw(icc))
        scaled = self._scaled(values[:, None], labels[None])
        return bool(self._known[icc].rejected(scaled, self.alpha)[0])

    def _draw(self, icc: float) -> Floats:
        draws = AlikeDraws.as_alike(self.sample, icc, _SIGNS, self.seed)
        parts = [(components(self.statistic, self.sample, some), some) for _, some in draws.blocks(self.sample)]
        return np.concatenate([self._scaled(*part) for part in parts], axis=1)

    def _scaled(self, values: Floats, labels: NDArray[np.unsignedinteger]) -> Floats:
        """Return the components of residuals that are divided by their spread."""
        effect = self.sample.of_predictions(RareOutcome.of).design_effect(labels)
        return scale_components(self.statistic, values, 1 / np.sqrt(effect))


def _worth(sample: Sample) -> float:
    """Return how many groups of equal weight the groups are worth."""
    return effective_number(np.bincount(group_of(sample), sample.weight_or_ones).astype(np.float64, copy=False))


def _columns(sample: Sample) -> range:
    """Return the outcomes whose residuals count: one of two, because the other ones are the same but for the sign."""
    return range(1 if sample.n_outcomes == 2 else sample.n_outcomes)


def _variances(sample: Sample) -> tuple[float, float]:
    """Return the sum of the variances of weighted labels, and that of the products of pairs of a group."""
    own = total = 0.0
    for k in _columns(sample):
        deviation = sample.weight_or_ones * np.sqrt(sample.expected[:, k] * (1 - sample.expected[:, k]))
        own += float(np.square(deviation).sum())
        total += float(np.square(np.bincount(group_of(sample), deviation)).sum())
    return own, total - own
