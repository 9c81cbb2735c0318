"""Kernel calibration errors: products of the residuals of pairs of observations, and the mean over a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._lookup import sum_selected
from caltest._compiled._pairwise import add_changes, laplace_forms, list_changes
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._sample import Sample
from caltest.predictions.inputs._validation import is_number, one_of, refuse_if, require, validate_positive
from caltest.resampling.draws._signs import group_of
from caltest.results._naming import parameter
from caltest.statistics._base import Statistic
from caltest.statistics._similarity import (
    Kernel,
    Similarity,
    tiles_of,
    total_variation_kernel,
    validate_kernel,
    with_median_bandwidth,
)

_LEAST = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class Expansion:
    """The parts of the kernel sum that all draws share.

    Attributes
    ----------
    similarity : Similarity
        The kernel.
    order : array of shape (n_samples,)
        Position in the sample of each observation.
    prob : array of shape (n_samples, n_outcomes)
        Predictions in this order.
    base : array of shape (n_samples,)
        The base class of each observation, -1 for none.
    constant : float
        The sum if every observation had its base class.
    change : array of shape (n_samples, n_outcomes)
        What an outcome adds if all other observations have their base class, without the pair of the observation with
        itself.
    own : array of shape (n_samples, n_outcomes)
        The term of the pair of the observation with itself.
    """

    similarity: Similarity
    order: Integers
    prob: Floats
    base: Integers
    constant: float
    change: Floats
    own: Floats

    @classmethod
    def of(cls, sample: Sample, similarity: Similarity) -> Expansion:
        """Return the expansion: one pass over all pairs of observations."""
        expected = sample.null_prob
        top = expected.argmax(axis=1)
        likely = expected.max(axis=1) > 0.5
        # Observations that change most often come first: blocks that never change are never visited.
        order = np.argsort(np.where(likely, expected.max(axis=1), 0.0), kind="stable")
        prob, expected = sample.prob[order], expected[order]
        base = np.where(likely, top, -1)[order]
        row, kept = np.flatnonzero(base >= 0), base[base >= 0]
        residual = -expected
        residual[row, kept] += 1.0

        smoothed = np.zeros(prob.shape)
        own = np.empty(len(prob))
        for rows, others, similar in similarity.blocks(prob):
            smoothed[rows] += similar @ residual[others]
            if rows == others:
                own[rows] = similar.diagonal()
            else:
                smoothed[others] += similar.T @ residual[rows]
        change = 2 * smoothed
        change[row] -= change[row, kept][:, None]
        squared = 1.0 - 2 * expected + np.square(expected).sum(axis=1, keepdims=True)
        return cls(similarity, order, prob, base, float((residual * smoothed).sum()), change, own[:, None] * squared)

    def sums(self, outcomes: NDArray[Any], *, with_own: bool) -> Floats:
        """Return the sums over all pairs, or over pairs of different observations, of ``(n_replicates, n_samples)``."""
        drawn = np.ascontiguousarray(outcomes[:, self.order])
        table = self.change if with_own else self.change - self.own
        return self.constant + sum_selected(drawn, table) + self._sum_changes(drawn)

    def _sum_changes(self, drawn: NDArray[Any]) -> Floats:
        """Return the third sum of the expansion, ``(n_replicates,)``."""
        sums = np.zeros(len(drawn))
        changed = (drawn != self.base).any(axis=0)
        tiles = [tile for tile in tiles_of(len(self.base)) if changed[tile].any()]
        lists = [
            list_changes(drawn, self.base, tile.start, tile.stop - tile.start, self.prob.shape[1]) for tile in tiles
        ]
        for a, rows in enumerate(tiles):
            row = rows.start + np.flatnonzero(changed[rows])
            for tile, (start, place) in zip(tiles[a:], lists[a:], strict=True):
                similar = self.similarity.block(self.prob[row], self.prob[tile])
                add_changes(similar, row, drawn, self.base, start, place, 1.0 if tile == rows else 2.0, sums)
        return sums


def _number_or_median(value: Any, name: str) -> float | str:
    is_text, is_real = isinstance(value, str), is_number(value)
    right = value == "median" if is_text else is_real and 0 < value < np.inf
    require(right, f'`{name}` must be a positive, finite number or "median"', value, right_type=is_text or is_real)
    return value if is_text else float(value)


@dataclass(frozen=True, repr=False)
class SKCE(Statistic):
    r"""Squared kernel calibration error (SKCE) of Widmann et al. (2019), on the whole prediction.

    .. math:: h_{ij} = k(p_i, p_j) \, (e_{y_i} - p_i) \cdot (e_{y_j} - p_j)

    with :math:`e_y` the unit vector of the outcome: the matrix-valued kernel is k times the identity. The estimators
    are, where the order of the observations matters in that of the caller,

    .. math:: \text{unbiased: } \frac{1}{n (n - 1)} \sum_{i \ne j} h_{ij}, \qquad
              \text{biased: } \frac{1}{n^2} \sum_{i, j} h_{ij}, \qquad
              \text{block: } \frac{1}{\lfloor n / 2 \rfloor} \sum_{l} h_{2l - 1, 2l}

    Their target is :math:`E\, h` of two independent observations. It is 0 for a calibrated model and positive for all
    others if the kernel is characteristic, as the kernels of the package are. It needs no cells, but its unit depends
    on the kernel, so that only values with the same bandwidth can be compared. The unbiased and the block estimate may
    be negative. A single observation has no pair, and the value is 0. Sample weights multiply the residuals, and the
    denominators become sums over pairs of products of weights.

    Parameters
    ----------
    kernel : callable
        `total_variation_kernel`, `euclidean_kernel`, `gaussian_kernel`, or a symmetric, positive definite function
        ``k(p, q, bandwidth)`` of arrays ``(..., n_outcomes)`` that reduces the last axis.
    bandwidth : "median" or float
        The median over all n^2 pairs of observations, including those of an observation with itself, of the Euclidean
        distance for the two Euclidean kernels and of total variation for all others; or a positive number. With more
        than 20,000 observations the median is that of 20,000 of them, drawn with seed 0.
    estimator : {"unbiased", "biased", "block"}
        "block" takes linear time, but uses only n / 2 pairs.

    Raises
    ------
    TypeError
        If ``kernel`` is not a function, ``bandwidth`` is neither a number nor a text, or ``estimator`` is not a text.
    ValueError
        If ``bandwidth`` is not positive and finite or another text than "median", or ``estimator`` is unknown; when it
        is evaluated, if ``kernel`` does not return finite numbers of the right shape.

    See Also
    --------
    MMCE : Kernel error of one probability.
    caltest.skce_test : Test with the asymptotic distributions and bounds of the paper.

    References
    ----------
    D. Widmann, F. Lindsten and D. Zachariah (2019), Calibration tests in multi-class classification: a unifying
    framework, NeurIPS.

    Examples
    --------
    Residuals (1/4, -1/4) and (3/4, -3/4), whose inner product is 3/8, at distance 1/2:

    >>> import caltest
    >>> skce = caltest.SKCE(bandwidth=0.5)
    >>> round(caltest.calibration_error([0, 0], [0.25, 0.75], statistic=skce), 6)
    0.137955
    """

    words = "squared kernel calibration error"
    degree = 2

    kernel: Kernel = parameter(total_variation_kernel, validate_kernel)
    bandwidth: float | str = parameter("median", _number_or_median)
    estimator: str = parameter("unbiased", one_of("unbiased", "biased", "block"))

    is_slow = True

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return the estimate ``(...)`` of outcomes ``(..., n_samples)``."""
        if self.estimator == "block":
            terms, weight = self.pair_terms(sample, outcomes)
            return (terms * weight).sum(axis=-1) / max(weight.sum(), _LEAST)
        if outcomes.ndim == 1:
            sums: Any = self._sum(sample, outcomes)
        elif sample.weight is None:
            flat = outcomes.reshape(-1, sample.n_samples)
            sums = sample.once(Expansion.of, self.similarity(sample)).sums(flat, with_own=self.estimator == "biased")
        else:
            sums = np.array([self._sum(sample, outcome) for outcome in outcomes.reshape(-1, sample.n_samples)])
        return np.reshape(sums / self._n_pairs(sample), outcomes.shape[:-1])

    def evaluate_signs(self, sample: Sample, signs: NDArray[np.int8]) -> Floats:
        """Return the estimate of signed residuals: one pass over all pairs, then sums over pairs of groups."""
        if self.estimator == "block":
            one, two = (signs[:, group_of(sample)[rows]] for rows in _pairs(sample))
            terms, weight = self.pair_terms(sample, sample.outcome)
            return (one * two * terms * weight).sum(axis=-1) / max(weight.sum(), _LEAST)
        between = sample.once(pairs_of_groups, self.similarity(sample))
        some = signs[:, : len(between)].astype(np.float64)  # a region may leave out the last groups
        products = ((some @ between) * some).sum(axis=1)
        observed = between.sum()
        total = self._sum(sample, sample.outcome) + (products - observed)
        return total / self._n_pairs(sample)

    def pair_terms(self, sample: Sample, outcomes: NDArray[Any]) -> tuple[Floats, Floats]:
        """Return h of pairs (1, 2), (3, 4), ... of the caller's observations, ``(..., n // 2)``, and their weights."""
        one, two = _pairs(sample)
        similar = self.similarity(sample).between(sample.prob[one], sample.prob[two])
        p, q = sample.null_prob[one], sample.null_prob[two]
        y, z = (np.asarray(outcomes[..., rows], dtype=np.int64) for rows in (one, two))
        pair = np.arange(len(one))
        products = (y == z) - p[pair, z] - q[pair, y] + (p * q).sum(axis=1)
        return similar * products, sample.weight_or_ones[one] * sample.weight_or_ones[two]

    def similarity(self, sample: Sample) -> Similarity:
        """Return the kernel with its bandwidth on this sample."""
        if self.bandwidth == "median":
            return sample.once(with_median_bandwidth, self.kernel)
        return Similarity(self.kernel, float(self.bandwidth))

    def _sum(self, sample: Sample, outcome: NDArray[Any]) -> float:
        """Return the sum of h over the pairs that the estimator counts, for one set of outcomes ``(n_samples,)``."""
        residual = residuals(sample, outcome)
        similarity = self.similarity(sample)
        total = 2 * similarity.sum_products(sample.prob, residual)
        if self.estimator == "biased":
            total += float((similarity.between(sample.prob, sample.prob) * np.square(residual).sum(axis=1)).sum())
        return total

    def _n_pairs(self, sample: Sample) -> float:
        own = np.square(sample.weight_or_ones).sum() if self.estimator == "unbiased" else 0.0
        pairs = sample.total_weight**2 - own
        return float(pairs) if pairs > 0 else np.inf  # a single observation has no pairs: 0, not rounding over 0


def _pairs(sample: Sample) -> tuple[Integers, Integers]:
    """Return the first and the second observations of the pairs of neighbours in the caller's order."""
    order = np.argsort(sample.row, kind="stable")[: sample.n_samples // 2 * 2]
    return order[::2], order[1::2]


def residuals(sample: Sample, outcome: NDArray[Any]) -> Floats:
    """Return the unit vector of the outcome minus its expectation, times the weight, ``(n_samples, n_outcomes)``."""
    residual = -sample.null_prob
    residual[np.arange(sample.n_samples), outcome] += 1.0
    return residual if sample.weight is None else residual * sample.weight[:, None]


def pairs_of_groups(sample: Sample, similarity: Similarity) -> Floats:
    """Return the sums of kernel times product of residuals over the pairs of two groups, ``(n_groups, n_groups)``."""
    group, residual = group_of(sample), residuals(sample, sample.outcome)
    n_groups = int(group.max()) + 1
    refuse_if(n_groups > MOST_GROUPS, f"`groups` must hold at most {MOST_GROUPS} groups for SKCE, got {n_groups}.")
    between = np.zeros((n_groups, n_groups))
    order = np.argsort(group, kind="stable")
    prob, residual, group = sample.prob[order], residual[order], group[order]
    for rows, others, similar in similarity.blocks(prob):
        products = similar * (residual[rows] @ residual[others].T)
        (row, first), (other, start) = (np.unique(group[part], return_index=True) for part in (rows, others))
        sums = np.add.reduceat(np.add.reduceat(products, first, axis=0), start, axis=1)
        between[np.ix_(row, other)] += sums
        if rows != others:
            between[np.ix_(other, row)] += sums.T
    return between


MOST_GROUPS = 10_000


@dataclass(frozen=True, repr=False)
class MMCE(Statistic):
    r"""Maximum mean calibration error (MMCE) of Kumar et al. (2018), for two-outcome lenses.

    .. math:: \Bigl(\frac{1}{n^2} \sum_{i, j} r_i r_j \, e^{-|p_i - p_j| / \gamma}\Bigr)^{1/2}, \qquad r_i = y_i - p_i

    with :math:`p_i` the event's probability and :math:`y_i` its indicator. Behind `Confidence` :math:`r_i` is
    correctness minus confidence, as in the paper. Pairs of an observation with itself count, so that a calibrated model
    has a value above 0, which decreases like :math:`n^{-1/2}`. It needs no cells. Its target is the norm of the mean
    residual, smoothed by a Laplace kernel. Sample weights multiply the residuals and replace n by their sum.

    Parameters
    ----------
    bandwidth : float
        :math:`\gamma`, 0.4 in the paper.

    Raises
    ------
    TypeError
        If ``bandwidth`` is not a number.
    ValueError
        If ``bandwidth`` is not positive and finite.

    See Also
    --------
    SKCE : Squared kernel error for any number of outcomes.

    References
    ----------
    A. Kumar, S. Sarawagi and U. Jain (2018), Trainable calibration measures for neural networks from kernel mean
    embeddings, ICML.

    Examples
    --------
    >>> import caltest
    >>> caltest.calibration_error([0, 1, 1, 1], [0.5] * 4, statistic=caltest.statistics.MMCE())
    0.25
    """

    words = "maximum mean calibration error"

    bandwidth: float = parameter(0.4, validate_positive)

    n_outcomes = 2
    measures_scatter = True

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return the error ``(...)`` of outcomes ``(..., n_samples)``."""
        weight = sample.weight_or_ones
        return self._norm(sample, outcomes, weight, -weight * sample.null_prob[:, 1])

    def evaluate_signs(self, sample: Sample, signs: NDArray[np.int8]) -> Floats:
        """Return the error of signed residuals."""
        residual = sample.residual(1)
        return self._norm(sample, signs[:, group_of(sample)] > 0, 2 * residual, -residual)

    def _norm(self, sample: Sample, chosen: NDArray[Any], step: Floats, offset: Floats) -> Floats:
        """Return the error of residuals ``offset``, plus ``step`` where chosen, for ``chosen (..., n_samples)``."""
        gap = np.diff(sample.event, prepend=-np.inf) / self.bandwidth
        flat = np.ascontiguousarray(chosen, dtype=np.uint8).reshape(-1, sample.n_samples)
        forms = laplace_forms(flat, step, offset, np.exp(-gap), -np.expm1(-2 * gap))
        return (np.sqrt(forms) / sample.total_weight).reshape(chosen.shape[:-1])
