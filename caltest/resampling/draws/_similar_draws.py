r"""Labels that share more shocks of time with those of similar predictions: series beside each other.

One inflation says how much all residuals vary together. Of 20 stations that have nothing to do with each other it is
right for their sum, and labels that share shocks with all others then vary in each cell of predictions hardly more than
independent ones; but a station has similar predictions from day to day, so that its dependent labels are in few cells.
The pairs of predictions less than a lead apart are therefore told apart by how similar they are: halves, quarters,
eighths and sixteenths of the predictions in their order are nested in each other. The sum of the products of residuals
of each kind of pair determines their correlation of normal numbers, as in `_timed_draws`, and correlations that do not
increase with similarity are pooled (isotonic regression). What similar pairs have more is a shock of their part of the
predictions, which lasts a stretch of time as long as the lead.

The inflation of one part is also larger than that of labels which share their shocks within windows from a random step
on: of a forecast that is made anew once a lead, all labels until the next one may be the same.

Of several classes predictions are in the order of the most probable class, frequent ones first, and of its probability.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Floats
from caltest.predictions._sample import Sample
from caltest.resampling.draws._group_shocks import correlation_of_terms
from caltest.resampling.draws._timed_draws import OrderOfTime, ScoredLabels, TimedDraws, TimedOutcome, within_groups

PARTS = (2, 4, 8, 16)
"""Into how many parts the predictions are divided, each into those of the next one."""
STUDENTISED = 1 + PARTS.index(8)
"""The inflation of pairs in the same of so many parts is found again in every draw."""


@dataclass(frozen=True, eq=False)
class OutcomeInParts(TimedOutcome):
    """Labels that depend on each other if they are less than a lead apart and of the same part of the predictions."""

    @cached_property
    def largest(self) -> float:
        """The largest inflation that labels of this lead can have.

        The sum of the residuals of one part varies at most a lead times as much as those of each time do, as
        `_timed_draws` shows, and no two residuals vary together more than each alone.
        """
        pairs = times = alone = 0.0
        for one in self.scored:
            deviation = np.sqrt(one.own)
            pairs += float(deviation @ self.time.near(deviation))
            times += self.time.lead * float(np.square(self.time.of_steps(deviation)).sum())
            alone += float(one.own.sum())
        return max(1.0, min(pairs, times) / alone) if alone > 0 else 1.0


@dataclass(frozen=True, eq=False)
class SimilarOutcome:
    """Labels in time whose dependence may be larger if predictions are similar.

    Attributes
    ----------
    near : tuple of TimedOutcome
        Labels that depend on each other if they are less than a lead apart, first all of them, then those in the same
        of two parts of the predictions, and so on.
    group : array of shape (n_parts, n_samples)
        Part and stretch of time of each observation, numbered from 0.
    """

    near: tuple[TimedOutcome, ...]
    group: NDArray[np.int32]

    @classmethod
    def of(cls, sample: Sample) -> SimilarOutcome:
        """Return the labels of a sample, which has times."""
        whole, timing, rank = sample.once(TimedOutcome.of), sample.timing, _ranks(sample.expected)
        assert timing is not None
        near, group = [whole], []
        for place, number in enumerate(PARTS):
            part = np.minimum((rank * number).astype(np.int64), number - 1)
            near.append(_in_order(whole, OrderOfTime.of(within_groups(timing, part))))
            stretch = (timing.step + place * timing.lead // len(PARTS)) // timing.lead
            group.append(np.unique(stretch * number + part, return_inverse=True)[1].astype(np.int32))
        return cls(tuple(near), np.stack(group))

    def shares(self, labels: NDArray[np.unsignedinteger]) -> tuple[float, tuple[float, ...]]:
        """Return the shares of shocks of time, and of those of parts, that labels ``(n_samples,)`` show."""
        whole = self.near[0]
        found = np.array([one.products(labels[None])[0] for one in self.near])
        squares, close = found[0, 1], [float(one.close.sum()) for one in self.near]
        products = np.append(found[:, 0], squares)
        terms = [*(one.terms for one in self.near), np.zeros_like(whole.terms)]
        own = sum(float(np.square(one.variance).sum()) for one in whole.scored)
        weights = np.maximum(-np.diff([*close, own]), 0.0) / max(close[0], 1e-300)
        raised = (whole.raised_inflation(labels, float(whole.in_batches)) - 1) * squares
        added = raised - max(products[0] - squares, 0.0)
        each = [
            correlation_of_terms(terms[k] - terms[k + 1], products[k] - products[k + 1] + weights[k] * added, 1.0)
            for k in range(len(self.near))
        ]
        for k in reversed(range(len(PARTS))):
            if (
                weights[k] < 1e-9
            ):  # no such pairs, as of constant predictions: nothing tells them from more similar ones
                each[k] = each[k + 1]
        reached = _increasing(np.array(each), weights)
        shares = np.diff(reached, prepend=0.0)
        return float(shares[0]), tuple(shares[1:].tolist())


def _ranks(prob: Floats) -> Floats:
    """Return the place of each prediction among all, between 0 and 1; equal ones have the same."""
    if prob.shape[1] == 2:
        value = prob[:, 1]
    else:
        likely = prob[:, np.argsort(-prob.sum(axis=0), kind="stable")]  # so that the order of classes does not matter
        value = likely.argmax(axis=1) + likely.max(axis=1) / 2
    _, place, count = np.unique(value, return_inverse=True, return_counts=True)
    middle: Floats = (np.cumsum(count) - count / 2) / len(value)
    return middle[place]


def _in_order(outcome: TimedOutcome, time: OrderOfTime) -> OutcomeInParts:
    """Return labels in an order of time in which parts of the predictions follow each other a lead apart."""
    rows = np.argsort(outcome.time.order)[time.order]
    scored = tuple(ScoredLabels(time, one.residual[rows], one.variance[rows], one.own[rows]) for one in outcome.scored)
    return OutcomeInParts(time, outcome.classes, outcome.prob[rows], scored, outcome.n_surprises)


def _increasing(values: Floats, weights: Floats) -> Floats:
    """Return the increasing values that are closest to some, by pooling neighbours."""
    blocks: list[tuple[float, float, int]] = []
    for value, weight in zip(values, weights, strict=True):
        blocks.append((float(value), float(weight), 1))
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            (a, v, n), (b, w, m) = blocks[-2:]
            mean = (a * v + b * w) / (v + w) if v + w > 0 else max(a, b)
            blocks[-2:] = [(mean, v + w, n + m)]
    return np.concatenate([np.full(n, value) for value, _, n in blocks])


@dataclass(frozen=True)
class SimilarDraws(TimedDraws):
    """Labels that share shocks of time, and more of them with those of similar predictions; statistics are studentised.

    Attributes
    ----------
    shares : tuple of float
        Correlations of normal numbers of the same part of the predictions, beyond those of larger parts.
    """

    shares: tuple[float, ...] = ()

    @classmethod
    def of_similar(cls, sample: Sample, n_resamples: int, rng: Any) -> Self | None:
        """Return draws with the dependence of the labels of a sample; None if that is not larger of similar ones."""
        if sample.timing is None or sample.group is not None:
            return None
        correlation, shares = sample.once(SimilarOutcome.of).shares(sample.outcome)
        if not any(shares):
            return None
        return replace(cls.of(n_resamples, rng), correlation=correlation, shares=shares)

    def _levels(self, sample: Sample) -> tuple[NDArray[np.int32], Floats]:
        shares = np.array(self.shares)
        group = sample.once(SimilarOutcome.of).group[shares > 0]
        begin = np.cumsum(group.max(axis=1) + 1, dtype=np.int32) - (group.max(axis=1) + 1)
        return group + begin[:, None], shares[shares > 0]

    def scale(self, sample: Sample, outcomes: NDArray[Any]) -> Floats | None:
        """Return by what the residuals of drawn outcomes are multiplied, ``(n,)``, to vary as the observed ones."""
        if sample.timing is None:
            return None
        near = sample.once(SimilarOutcome.of).near[STUDENTISED]
        return np.sqrt(sample.once(_inflation_of_similar) / near.inflation(outcomes))


def _inflation_of_similar(sample: Sample) -> float:
    return float(sample.once(SimilarOutcome.of).near[STUDENTISED].inflation(sample.outcome[None])[0])
