r"""Labels that share shocks of time: the null distribution of a test whose labels are known only after a lead.

The residuals of predictions that are made a lead of h steps or more apart are uncorrelated if each prediction uses what
was known; those of closer ones may depend on each other in any way. How much, is estimated by one number, the inflation

.. math:: R = \sum_{|t_i - t_j| < h} r_i r_j \Bigm/ \sum_i r_i^2, \qquad r_i = w_i (e_i - \delta v_i), \quad
              \delta = \sum_i w_i e_i \Bigm/ \sum_i w_i v_i,

with residuals :math:`e_i`, their variances :math:`v_i` under the null hypothesis and weights :math:`w_i`. A common
shift is removed, because miscalibration would look like dependence. The residual is that of the event, y - p. Of
several classes residuals of scores of the classes are taken, :math:`c_{y_i} - \sum_k c_k p_{ik}`, and both sums are
added over at most three sets of scores: those for which the sum of products is largest, given their length.

Labels with exact margins are simulated with a Gaussian copula: that of observation i is the number of cumulative
probabilities, classes in the order of the first scores, that do not exceed
:math:`\Phi(\sqrt\rho M_{t_i} + \sqrt{1 - \rho}\,\varepsilon_i)`. The normal shocks M are shared within windows of h
steps, which begin at a random step in every draw, so that predictions k steps apart share a shock with probability
:math:`1 - k / h`. By Mehler's series

.. math:: \mathrm{cov}(e^*_i, e^*_j) = (1 - k / h) \sum_m \rho^m g_{im} g_{jm}, \qquad
              g_{im} = \sum_c (s_{i,c+1} - s_{ic}) \varphi(a_{ic}) He_{m-1}(a_{ic}) / \sqrt{m!},

for residuals :math:`s_{ic}` of the labels c and bounds :math:`a_{ic}`. So the expected sum of the products of close
residuals is a polynomial in :math:`\rho`. The equation is solved for max(R, 1), divided by what the removed shift takes
from independent labels; of batches, also multiplied by 1 plus the standard error that R has of such labels. With
:math:`N = \sum_{|t_i - t_j| < h} u_i u_j`, :math:`u_i = w_i v_i` and :math:`V = \sum_i u_i` these are
:math:`1 - N / V^2` and :math:`\sqrt{2 (N - \sum_i u_i^2)} / V`; of one prediction a time, :math:`1 - (2 h - 1) / n` and
:math:`\sqrt{4 (h - 1) / n}`.

Every draw has its own inflation :math:`R^*`, found as R is, and its residuals are multiplied by :math:`\sqrt{R / R^*}`
(studentised): so the noise of R is in the null distribution. A larger correlation is not more cautious here, because
most statistics vary less with it than sums do: 1 % more of calibrated series were rejected with it. With few windows
labels that are not studentised are drawn too, with the correlation for an inflation that is one standard error larger,
and with very few windows or rare labels others that share all of their shocks, or most of them. Both R and :math:`R^*`
are at least 1, because negative dependence counts as none, and at most the inflation of labels which share all of their
shocks. These vary as much as any with this lead can: :math:`e_t = \sum_{j=1}^h d_{tj}` with the revisions
:math:`d_{tj} = E(y_t | F_{t+j}) - E(y_t | F_{t+j-1})`, and those of different times are uncorrelated, so that

.. math:: \mathrm{Var}\Bigl(\sum_t g_t e_t\Bigr) = \sum_u \mathrm{Var}\Bigl(\sum_j g_{u-j} d_{u-j,j}\Bigr)
              \le h \sum_t g_t^2 \mathrm{Var}(e_t).

Groups that come back over time are crossed with it: labels may depend on each other if they are less than a lead apart,
or of the same group however far apart. R adds the products of all such pairs once, which are those close in time and
those of a group without those that are both. The normal number is :math:`\sqrt\rho M_{t_i} + \sqrt\gamma S_{g_i} +
\sqrt{1 - \rho - \gamma}\,\varepsilon_i` with a shock S of each group. Pairs close in time that are of different groups
determine :math:`\rho`, and :math:`\gamma` is what then lacks in the sum of all, taken as the sum of both series: labels
of pairs that are both kinds depend on each other somewhat more. The inflation is not raised by its standard error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._normals import (
    FIRST,
    LARGEST,
    LARGEST_SUM,
    N_PLACES,
    draw_labels_in_time,
    products_in_time,
    room_for_numbers,
)
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._lens import outcome_dtype
from caltest.predictions._sample import Sample
from caltest.predictions.inputs._parts import sums_in_parts
from caltest.predictions.inputs._times import Timing
from caltest.resampling.draws._group_shocks import N_TERMS, correlation_of_terms, latent_bounds
from caltest.resampling.draws._labels import Draws

FEW_WINDOWS, MANY_WINDOWS, FEW_SURPRISES = 20, 40, 20
"""With few windows of time, or expected surprises, the inflation is not known; with many windows it is known well."""
FEWEST_WINDOWS = 5
"""With fewer windows batches of predictions decide nothing."""
_LARGEST_LOSS = 0.9
CERTAIN = 1e-12
"""With a smaller average variance labels are certain, and no shift is removed."""
_MOST_CLASSES, _MOST_SCORES = 20, 3  # that have different scores, and sets of scores


@dataclass(frozen=True, eq=False)
class OrderOfTime:
    """Observations in the order of time.

    Attributes
    ----------
    order : array of shape (n_samples,)
        Where the observations stand in the sample.
    start : array of shape (n_steps + 1,)
        The first observation of each step of time.
    lead : int
        Number of steps after which labels are known.
    """

    order: Integers
    start: Integers
    lead: int

    @classmethod
    def of(cls, timing: Timing) -> OrderOfTime:
        """Return the order of the observations of a sample."""
        order = np.argsort(timing.step, kind="stable")
        return cls(order, np.searchsorted(timing.step[order], np.arange(timing.n_steps + 1)), timing.lead)

    @property
    def n_steps(self) -> int:
        """Number of steps of time."""
        return len(self.start) - 1

    def of_steps(self, values: Floats) -> Floats:
        """Return the sums ``(n_steps,)`` of values ``(n_samples,)``."""
        return sums_in_parts(np.repeat(np.arange(self.n_steps), np.diff(self.start)), values, self.n_steps)

    @cached_property
    def times(self) -> tuple[Integers, Integers]:
        """The first observation of each time with observations, and their number; and the first one close to each."""
        step = np.flatnonzero(np.diff(self.start))
        return np.append(self.start[step], self.start[-1]), self.start[np.maximum(step - self.lead + 1, 0)]

    @cached_property
    def windows(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The step of each observation of the sample divided by the lead, and what is left of it."""
        step = np.empty(len(self.order), dtype=np.int32)
        step[self.order] = np.repeat(np.arange(self.n_steps), np.diff(self.start))
        window, place = np.divmod(step, np.int32(self.lead))
        return window, place

    @cached_property
    def _windows(self) -> tuple[Integers, Integers]:
        """The first observation of each window of ``lead`` steps that holds a step, and the one after the last."""
        step = np.arange(1 - self.lead, self.n_steps)
        return self.start[np.maximum(step, 0)], self.start[np.minimum(step + self.lead, self.n_steps)]

    def near(self, values: Floats) -> Floats:
        """Return for each observation the sum of values of those less than a lead away, itself among them."""
        total, (first, last) = np.append(0.0, np.cumsum(values)), self._windows
        return np.repeat(total[last[self.lead - 1 :]] - total[first[: self.n_steps]], np.diff(self.start))

    def within_windows(self, values: Floats) -> float:
        """Return the sum of the products of values of all pairs, each with the probability that it shares a window.

        Windows of ``lead`` steps begin at a random step; a value is a pair with itself.
        """
        total, (first, last) = np.append(0.0, np.cumsum(values)), self._windows
        return float(np.square(total[last] - total[first]).sum()) / self.lead


@dataclass(frozen=True, eq=False)
class ScoredLabels:
    """Weighted residuals of scores of the classes, in the order of time.

    Attributes
    ----------
    time : OrderOfTime
        The observations.
    residual : array of shape (n_samples, n_outcomes)
        The weighted residual of each label.
    variance, own : arrays of shape (n_samples,)
        Variance of the residual without its weight, times the weight; and variance of the weighted residual.
    """

    time: OrderOfTime
    residual: Floats
    variance: Floats
    own: Floats

    @classmethod
    def of(cls, score: Floats, time: OrderOfTime, prob: Floats, weight: Floats) -> ScoredLabels:
        """Return the residuals of scores ``(n_outcomes,)`` of labels with probabilities ``(n_samples, n_outcomes)``."""
        residual = score - (prob @ score)[:, None]
        variance = weight * (prob * np.square(residual)).sum(axis=1)
        return cls(time, residual * weight[:, None], variance, variance * weight)

    @cached_property
    def near(self) -> Floats:
        """Of each observation the sum of the variances of those less than a lead away."""
        return self.time.near(self.variance)

    @property
    def in_units(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], Floats]:
        """Arguments of `products_in_time`: residuals ``(n_outcomes, n_samples)`` and variances in whole numbers.

        The unit of residuals is the smallest power of 2 with which no product of them, and no sum of products, is too
        large; that of the variances makes their largest sum as large as the sums of its products with residuals allow.
        """
        size = np.abs(self.residual).max(axis=1)
        largest, all_ = float(size.max()), float(size.sum())
        allowed = max(largest / LARGEST, math.sqrt(2 * float(self.time.near(size).max()) * all_ / LARGEST_SUM))
        unit = 2.0 ** math.ceil(math.log2(allowed)) if largest > 0 else 1.0
        most = float(self.near.max()) or 1.0
        of_variance = most / min(LARGEST, LARGEST_SUM * unit / max(all_, unit))
        near, variance = self.near / of_variance, self.variance / of_variance
        total = float(variance.sum())
        inverse = 1 / total if total * of_variance > CERTAIN * len(variance) else 0.0
        constant = np.array([unit, inverse, near @ variance, variance @ variance])
        whole = np.ascontiguousarray(np.rint(self.residual / unit).astype(np.int32).T)
        return whole, np.rint(near).astype(np.int32), np.rint(variance).astype(np.int32), constant

    @cached_property
    def close(self) -> float:
        """The sum of the products of the variances of all close pairs."""
        return float(self.variance @ self.near)


@dataclass(frozen=True, eq=False)
class TimedOutcome:
    """The labels of a sample in the order of time, and how much they depend on each other.

    Attributes
    ----------
    time : OrderOfTime
        The observations.
    classes : array of shape (n_outcomes,)
        Classes in the order of their scores.
    prob : array of shape (n_samples, n_outcomes)
        Probabilities of the classes in this order.
    scored : tuple of ScoredLabels
        The residuals of each set of scores.
    n_surprises : float
        Expected number of labels other than the most probable one.
    """

    time: OrderOfTime
    classes: Integers
    prob: Floats
    scored: tuple[ScoredLabels, ...]
    n_surprises: float

    @classmethod
    def of(cls, sample: Sample) -> TimedOutcome:
        """Return the labels of a sample; use ``sample.once``, because scores of several classes depend on them."""
        assert sample.timing is not None
        time = OrderOfTime.of(sample.timing)
        scores = np.array([[0.0, 1.0]])
        if sample.n_outcomes > 2:
            order = time.order
            scores = _scores(time, sample.expected[order], sample.outcome[order], sample.weight_or_ones[order])
        own = cls.with_scores(sample, time, scores)
        if sample.group is None:
            return own
        alike, both = (
            cls.with_scores(sample, OrderOfTime.of(one), scores)
            for one in (Timing(sample.group, 1, ""), within_groups(sample.timing, sample.group))
        )
        parts = {field.name: getattr(own, field.name) for field in fields(own)}
        return CrossedOutcome(**parts, alike=alike, both=both)

    @classmethod
    def with_scores(cls, sample: Sample, time: OrderOfTime, scores: Floats) -> TimedOutcome:
        """Return the labels of a sample in some order of time, with scores ``(n_sets, n_outcomes)``."""
        prob, weight = sample.expected[time.order], sample.weight_or_ones[time.order]
        classes = np.argsort(scores[0], kind="stable")
        scored = tuple(ScoredLabels.of(score, time, prob, weight) for score in scores)
        return TimedOutcome(time, classes, prob[:, classes], scored, float((1 - prob.max(axis=1)).sum()))

    @cached_property
    def n_windows(self) -> float:
        """Number of stretches of time as long as the lead that count alike.

        It is (2 - 1 / h) V^2 / N, which is n / h if all predictions have the same variance and weight. Otherwise a few
        stretches may have most of the information.
        """
        lead = self.time.lead
        totals = [one.variance.sum() for one in self.scored]
        all_ = self.time.n_steps / lead
        if min(totals) <= CERTAIN * len(self.prob):
            return all_
        lost = max(one.close / total**2 for one, total in zip(self.scored, totals, strict=True))
        return float(min(all_, (2 - 1 / lead) / lost))

    @property
    def n_groups(self) -> float:
        """Number of groups that count alike; infinite if there are none."""
        return math.inf

    @property
    def close(self) -> Floats:
        """For each set of scores the sum of the products of the variances of pairs that may depend on each other."""
        return np.array([one.close for one in self.scored])

    @cached_property
    def in_batches(self) -> bool:
        """Whether predictions of the same time differ more from each other than those of different times.

        Predictions that change slowly have few independent stretches themselves, also if they are made several times.
        """
        size = np.diff(self.time.start)
        mean = np.column_stack([self.time.of_steps(column) for column in self.prob.T]) / np.maximum(size, 1)[:, None]
        within = float(np.square(self.prob - np.repeat(mean, size, axis=0)).sum())
        return within > float(np.square(self.prob - self.prob.mean(axis=0)).sum()) / 2

    @property
    def is_few(self) -> bool:
        """Whether labels that share all of their shocks are needed too.

        Of batches they are hardly ever rejected, so that there few windows are not enough of a reason.
        """
        return self.n_surprises < FEW_SURPRISES or (self.n_windows < FEW_WINDOWS and not self.in_batches)

    @property
    def shared(self) -> tuple[float | None, ...]:
        """Correlations of further labels that are needed; None is that of a raised inflation.

        If labels share all of their shocks, rare events come all at once and seldom: most of the draws have none.
        """
        if self.is_few:
            return (1.0, 0.8) if self.n_surprises < FEW_SURPRISES else (1.0,)
        return () if self.in_batches or self.n_windows >= MANY_WINDOWS else (None,)

    @cached_property
    def largest(self) -> float:
        """The inflation of labels that share all of their shocks."""
        shared = sum(self.time.within_windows(np.sqrt(one.own)) for one in self.scored)
        alone = sum(float(one.own.sum()) for one in self.scored)
        return max(1.0, shared / alone) if alone > 0 else 1.0

    @cached_property
    def tables(self) -> tuple[NDArray[Any], ...]:
        """Arguments of `products_in_time` for the residuals of each label."""
        return tuple(np.stack(some) for some in zip(*[one.in_units for one in self.scored], strict=True))

    def products(self, labels: NDArray[np.unsignedinteger]) -> Floats:
        """Return the sums of products of close residuals, and of squares, ``(n_replicates, 2)``.

        Labels ``(n_replicates, n_samples)`` are in the order of the sample.
        """
        found, order = np.empty((len(labels), 2)), self.time.order.astype(np.int32)
        products_in_time(np.ascontiguousarray(labels), order, *self.time.times, *self.tables, found)
        return found

    def ratio(self, products: Floats) -> Floats:
        """Return the inflation of products and squares ``(n_replicates, 2)``."""
        pairs, squares = products.T
        return np.clip(np.divide(pairs, squares, out=np.ones(len(products)), where=squares > 0), 1.0, self.largest)

    def inflation(self, labels: NDArray[np.unsignedinteger]) -> Floats:
        """Return the inflation of labels ``(n_replicates, n_samples)`` in the order of the sample."""
        return self.ratio(self.products(labels))

    @cached_property
    def bound(self) -> NDArray[np.float32]:
        """The bounds of normal numbers between the classes, ``(n_samples, n_outcomes - 1)``."""
        return latent_bounds(self.prob)

    @cached_property
    def sorted_bound(self) -> NDArray[np.float32]:
        """The bounds in the order of the sample, ``(n_outcomes - 1, n_samples)``."""
        found = np.empty(self.bound.T.shape, dtype=np.float32)
        found[:, self.time.order] = self.bound.T
        return found

    def raised_inflation(self, labels: NDArray[np.unsignedinteger], n_errors: float = 1.0) -> float:
        """Return the inflation of labels ``(n_samples,)``, with what the removed shift took and standard errors."""
        totals = np.array([one.variance.sum() for one in self.scored])
        if totals.min() <= CERTAIN * len(self.prob):
            return 1.0
        close = self.close
        squares = np.array([np.square(one.variance).sum() for one in self.scored])
        lost = min(float((close / totals).sum() / totals.sum()), _LARGEST_LOSS)
        error = math.sqrt(max(2 * float((close - squares).sum()), 0.0)) / float(totals.sum())
        return float(self.inflation(labels[None])[0]) / (1 - lost) * (1 + n_errors * error)

    @cached_property
    def terms(self) -> Floats:
        """The expected sum of products of close residuals, without squares, as coefficients of a polynomial.

        It is one in the correlation of the normal numbers, from the power 1 on.
        """
        bound, finite = self.bound.astype(np.float64), np.isfinite(self.bound)
        step = np.stack([np.diff(one.residual[:, self.classes], axis=1) for one in self.scored])
        bound[~finite] = 0.0
        now = np.where(finite, np.exp(-0.5 * bound * bound) / math.sqrt(2 * math.pi), 0.0)
        before, found = np.zeros_like(now), np.empty(N_TERMS)
        for m in range(1, N_TERMS + 1):
            own = np.einsum("kic,ic->ki", step, now)
            found[m - 1] = sum(self.time.within_windows(one) - float(np.square(one).sum()) for one in own)
            now, before = (bound * now - (m - 1) / math.sqrt(m) * before) / math.sqrt(m + 1), now
        return found

    def correlations(self, labels: NDArray[np.unsignedinteger], n_errors: float | None = None) -> tuple[float, float]:
        """Return the correlations of normal numbers with which labels vary as observed ones ``(n_samples,)`` do.

        They are those of the shocks of time and of groups; there are no groups here. The inflation is raised by
        some standard errors; None stands for 1 of batches, and 0 otherwise.
        """
        n_errors = float(self.in_batches) if n_errors is None else n_errors
        ((_, squares),) = self.products(labels[None])
        return correlation_of_terms(self.terms, (self.raised_inflation(labels, n_errors) - 1) * squares, 1.0), 0.0


def within_groups(timing: Timing, group: Integers) -> Timing:
    """Return the timing in which groups follow each other a lead apart."""
    order = np.lexsort((timing.step, group))
    gap = np.where(np.diff(group[order]) > 0, timing.lead, np.minimum(np.diff(timing.step[order]), timing.lead))
    step = np.empty_like(order)
    step[order] = np.append(0, np.cumsum(gap))
    return Timing(step, timing.lead, timing.text)


@dataclass(frozen=True, eq=False)
class CrossedOutcome(TimedOutcome):
    """Labels that may depend on each other if they are less than a lead apart, or of the same group however far apart.

    All pairs of both kinds count once: those close in time, and those of a group, without those that are both
    (Cameron, Gelbach and Miller 2011, Robust inference with multiway clustering).

    Attributes
    ----------
    alike, both : TimedOutcome
        The same labels with groups as steps of time, and with the groups one after the other.

    The others are those of `TimedOutcome`.
    """

    alike: TimedOutcome
    both: TimedOutcome

    @property
    def n_groups(self) -> float:
        """Number of groups that count alike: V^2 over the sum of the squares of their variances."""
        return self.alike.n_windows

    @cached_property
    def close(self) -> Floats:
        """For each set of scores the sum of the products of the variances of pairs that may depend on each other."""
        return super().close + self.alike.close - self.both.close

    @cached_property
    def largest(self) -> float:
        """The sum of the inflations of labels that share all shocks of time, or all of groups."""
        own = TimedOutcome.largest.func(self)  # type: ignore[attr-defined]
        return float(own + self.alike.largest - 1)

    def products(self, labels: NDArray[np.unsignedinteger]) -> Floats:
        """Return the sums of products of residuals that may depend on each other, and of squares."""
        found = super().products(labels)
        found[:, 0] += self.alike.products(labels)[:, 0] - self.both.products(labels)[:, 0]
        return found

    def correlations(self, labels: NDArray[np.unsignedinteger], n_errors: float | None = None) -> tuple[float, float]:
        """Return the correlations of the shocks of time and of groups.

        The first one is that of pairs close in time and not of the same group, the second one adds what is missing in
        the products of all pairs. What is added for the removed shift is divided by the number of pairs of both kinds.
        By default nothing is added for the standard error: draws are studentised, and with it more was rejected.
        """
        ((pairs, squares),) = self.products(labels[None])
        target = (self.raised_inflation(labels, n_errors or 0.0) - 1) * squares
        ((own, _),), ((shared, _),) = super().products(labels[None]), self.both.products(labels[None])
        added = target - max(pairs - squares, 0.0)
        part = np.clip((super().close - self.both.close).sum() / max(self.close.sum(), 1e-300), 0.0, 1.0)
        in_time = correlation_of_terms(self.terms - self.both.terms, own - shared + part * added, 1.0)
        powers = in_time ** np.arange(1, N_TERMS + 1)
        return in_time, correlation_of_terms(self.alike.terms, target - float(self.terms @ powers), 1.0 - in_time)


def _scores(time: OrderOfTime, prob: Floats, label: NDArray[np.unsignedinteger], weight: Floats) -> Floats:
    """Return sets of scores of several classes, ``(n_sets, n_outcomes)``, with the largest sums of products first.

    They are orthogonal to each other and have the length 1. Rare classes, if there are many, have the same score.
    """
    common = np.argsort(-prob.sum(axis=0), kind="stable")[:_MOST_CLASSES]
    place = np.full(prob.shape[1], len(common))
    place[common] = np.arange(len(common))
    number = int(place.max()) + 1
    sums = np.zeros((time.n_steps, number))
    for k in range(number):
        own = prob[:, place == k].sum(axis=1)
        residual, variance = weight * ((place[label] == k) - own), weight * own * (1 - own)
        if variance.sum() > CERTAIN * len(variance):
            residual -= variance * (residual.sum() / variance.sum())
        sums[:, k] = time.of_steps(residual)
    total = np.vstack([np.zeros(number), np.cumsum(sums, axis=0)])
    before = total[:-1] - total[np.maximum(np.arange(time.n_steps) - time.lead + 1, 0)]
    mixed = sums.T @ before
    scores = np.linalg.eigh(sums.T @ sums + mixed + mixed.T)[1].T[::-1][: min(number - 1, _MOST_SCORES)]
    signs = np.sign(np.take_along_axis(scores, np.abs(scores).argmax(axis=1)[:, None], axis=1))
    return (scores * signs)[:, place]


@dataclass(frozen=True)
class TimedDraws(Draws):
    """Labels that share shocks of time as much as the observed ones, predictions fixed; statistics are studentised.

    Attributes
    ----------
    correlation : float
        Correlation of the normal numbers that labels of the same time are made from.
    alike : float
        Correlation of those of the same group.
    """

    correlation: float = 0.0
    alike: float = 0.0

    method = "timed-labels"

    @classmethod
    def as_observed(cls, sample: Sample, n_resamples: int, rng: Any) -> Self:
        """Return draws with the dependence of the labels of a sample."""
        correlation, alike = sample.once(TimedOutcome.of).correlations(sample.outcome)
        return replace(cls.of(n_resamples, rng), correlation=correlation, alike=alike)

    def blocks(self, sample: Sample) -> Iterator[tuple[Sample, NDArray[Any]]]:
        """Yield the sample with outcomes ``(n_replicates, n_samples)`` drawn for it."""
        outcome = sample.once(TimedOutcome.of)
        group, alike = self._levels(sample)
        shares = outcome.time.lead, self.correlation, group, int(group.max(initial=-1)) + 1, alike
        name = np.diff(outcome.classes, prepend=0).astype(np.int32)
        for part in self.blocks_of(sample.n_samples):
            out = np.empty((part.n_resamples, sample.n_samples), dtype=outcome_dtype(sample.n_outcomes))
            room = room_for_numbers()
            draw_labels_in_time(
                outcome.sorted_bound,
                name,
                *outcome.time.windows,
                *shares,
                *quantile_table(),
                self.seed,
                part.first,
                room,
                out,
            )
            yield sample, out

    def _levels(self, sample: Sample) -> tuple[NDArray[np.int32], Floats]:
        """Return groups that share shocks, ``(n_levels, n_samples)``, and how much of them."""
        if sample.group is None:
            return np.empty((0, sample.n_samples), dtype=np.int32), np.empty(0)
        return sample.group[None].astype(np.int32), np.array([self.alike])

    def scale(self, sample: Sample, outcomes: NDArray[Any]) -> Floats | None:
        """Return by what the residuals of drawn outcomes are multiplied, ``(n,)``, to vary as the observed ones."""
        if sample.timing is None:
            return None
        return np.sqrt(inflation_of(sample) / sample.once(TimedOutcome.of).inflation(outcomes))


def inflation_of(sample: Sample) -> float:
    """Return the inflation of the labels of a sample."""
    return sample.once(_inflation_of)


def _inflation_of(sample: Sample) -> float:
    return float(sample.once(TimedOutcome.of).inflation(sample.outcome[None])[0])


@dataclass(frozen=True)
class SharedShockDraws(TimedDraws):
    """Labels that are at least as dependent as labels of time and groups are thought to be, and are not studentised."""

    method = "shared-shocks"

    @classmethod
    def with_shares(cls, shares: tuple[float | None, float], sample: Sample, n_resamples: int, rng: Any) -> Self:
        """Return draws with correlations of time and groups; with 1 predictions of a time have the same shock.

        None stands for those of the labels of the sample, with an inflation that is raised by one standard error.
        """
        time, alike = shares
        if time is None:
            time, alike = sample.once(TimedOutcome.of).correlations(sample.outcome, 1.0)
        return replace(cls.of(n_resamples, rng), correlation=time, alike=alike)

    def scale(self, sample: Sample, outcomes: NDArray[Any]) -> None:
        """Return None: nothing is estimated, so that nothing is studentised."""


def draws_of_test(sample: Sample, n_resamples: int, rng: Any) -> TimedDraws:
    """Return the draws of the test of a sample: with little time those that share more of their shocks."""
    for correlation in sample.once(TimedOutcome.of).shared:
        return SharedShockDraws.with_shares((correlation, 0.0), sample, n_resamples, rng)
    return TimedDraws.as_observed(sample, n_resamples, rng)


@cache
def quantile_table() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the normal quantiles at the places of `draw_labels_in_time`, and their slopes in between."""
    from scipy.special import ndtri

    places = (np.arange(N_PLACES + 1) + FIRST).astype(np.int32) << 16
    quantile = ndtri(np.minimum(places.view(np.float32).astype(np.float64) / 2.0**32, 0.5))
    return quantile[:-1].astype(np.float32), (np.diff(quantile) / 2.0**16).astype(np.float32)
