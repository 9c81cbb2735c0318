"""Errors without cells: the largest excursion of the cumulative residual in score order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._kernels.paths import largest_excursion, largest_excursions, word_extremes
from caltest._sample import Sample
from caltest.statistics._base import Statistic


@dataclass(frozen=True)
class KS(Statistic):
    r"""Kolmogorov-Smirnov calibration error of Gupta et al. (2020), for two-outcome lenses.

    .. math:: \max_s \Bigl|\frac1n \sum_{i : p_i \le s} (y_i - p_i)\Bigr|

    with :math:`p_i` the event's probability and :math:`y_i` its indicator. The cumulative residual is read only at the
    end of a block of tied probabilities, so that row order never matters. Its target is the largest mass of
    miscalibration below any threshold; no cells, no smoothing. Sample weights multiply the residuals and replace n by
    their sum.

    Raises
    ------
    ValueError
        If the lens has more than two outcomes.

    References
    ----------
    K. Gupta et al. (2020), Calibration of neural networks using splines, equation 7.

    Examples
    --------
    >>> import caltest
    >>> caltest.calibration_error([0, 0, 1, 1], [0.25, 0.25, 0.75, 0.75], statistic=caltest.KS())
    0.125
    """

    measures_scatter = True

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        """Return the error ``(...)`` of outcomes ``(..., n_samples)``."""
        if sample.n_outcomes != 2:
            msg = f"`KS` needs a two-outcome lens such as Confidence(), got {sample.n_outcomes} outcomes."
            raise ValueError(msg)
        total = sample.n_samples if sample.weight is None else sample.weight.sum()
        return _event_excursion(sample, outcomes) / total


@dataclass(frozen=True)
class ClasswiseKS(Statistic):
    r"""Largest standardised cumulative residual over the classes, on the whole prediction.

    .. math:: \max_k \frac{n \, \mathrm{KS}_k}{\bigl(\sum_i p_{ik} (1 - p_{ik})\bigr)^{1/2}}

    where :math:`\mathrm{KS}_k` is `KS` of class k against the rest. One draw of the class serves all paths, so the
    test is a joint one. Behind a two-outcome lens it is the event's path alone. A class without variance counts 0, or
    infinity if it is contradicted.

    Examples
    --------
    >>> import caltest
    >>> y_prob = [[0.5, 0.25, 0.25]] * 4
    >>> caltest.calibration_error([0, 0, 1, 2], y_prob, statistic=caltest.ClasswiseKS())
    0.0
    """

    measures_scatter = True

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        """Return the statistic ``(...)`` of outcomes ``(..., n_samples)``."""
        if sample.n_outcomes == 2:
            excursion = _event_excursion(sample, outcomes)[..., None]
        else:
            excursion = _class_excursions(sample, outcomes)
        variance = sample.once(_class_variances)
        scale = np.sqrt(np.where(variance > 0, variance, 1.0))
        # Without variance the path stays at 0, unless an outcome happened that was excluded.
        contradicted = np.where(excursion > 0, np.inf, 0.0)
        return np.where(variance > 0, excursion / scale, contradicted).max(axis=-1)


def _class_variances(sample: Sample) -> NDArray[np.float64]:
    """Return the variance of each path's end, ``(n_outcomes,)``, or that of the event alone, ``(1,)``."""
    squared = np.ones(sample.n_samples) if sample.weight is None else np.square(sample.weight)
    expected = (np.clip(column, 0.0, 1.0) for column in sample.null_prob.T)
    variance = np.array([(squared * p * (1 - p)).sum() for p in expected])
    return variance[1:] if sample.n_outcomes == 2 else variance


def _expected(sample: Sample) -> NDArray[np.float64]:
    """Return null probabilities, free of drift in classes whose probabilities are all 0 or 1: their paths stay at 0."""
    varies = np.any((sample.null_prob > 0) & (sample.null_prob < 1), axis=0)
    return sample.null_prob if varies.all() else np.where(varies, sample.null_prob, np.clip(sample.null_prob, 0.0, 1.0))


def _class_excursions(sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
    """Return max |cumulative residual| of each class in the order of its probability, ``(..., n_outcomes)``."""
    if sample.weight is not None:
        paths = [
            _excursion(sample.prob[:, k], sample.once(_expected)[:, k], outcomes == k, sample.weight)
            for k in range(sample.n_outcomes)
        ]
        return np.stack(paths, axis=-1)
    rank, before, after, extremes = sample.once(_class_paths)
    flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
    return largest_excursions(flat, rank, before, after, extremes).reshape(*outcomes.shape[:-1], sample.n_outcomes)


def _event_excursion(sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
    """Return max |cumulative residual| of the event, ``(...)``."""
    if sample.weight is not None:
        return _excursion(sample.event, sample.once(_expected)[:, 1], outcomes, sample.weight)
    before, after = sample.once(_event_path)
    flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
    return largest_excursion(flat, before, after).reshape(outcomes.shape[:-1])


def _event_path(sample: Sample) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return _block_sums(sample.event, sample.once(_expected)[:, 1])


def _block_sums(
    score: NDArray[np.float64], expected: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the predicted sums before and after the tied block of each row, for increasing scores."""
    total = np.concatenate([[0.0], np.cumsum(expected)])
    return total[np.searchsorted(score, score, side="left")], total[np.searchsorted(score, score, side="right")]


def _class_paths(sample: Sample) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return ranks ``(n_samples, n_outcomes)``, block sums ``(n_outcomes, n_samples)`` and extremes of every class."""
    shape = sample.n_outcomes, sample.n_samples
    rank = np.empty(shape[::-1], dtype=np.int32)
    before, after = np.empty(shape), np.empty(shape)
    expected = sample.once(_expected)
    for k in range(sample.n_outcomes):
        order = np.argsort(sample.prob[:, k], kind="stable")
        rank[order, k] = np.arange(sample.n_samples, dtype=np.int32)
        before[k], after[k] = _block_sums(sample.prob[order, k], expected[order, k])
    return rank, before, after, word_extremes(before, after)


def _excursion(
    score: NDArray[np.float64],
    expected: NDArray[np.float64],
    event: NDArray[Any],
    weight: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return max |weighted cumulative residual|, ``(...)``, for events ``(..., n_samples)``."""
    order = np.argsort(score, kind="stable")
    path = np.cumsum(weight[order] * (event[..., order] - expected[order]), axis=-1)
    block_end = np.append(np.diff(score[order]) > 0, True)
    return np.abs(path[..., block_end]).max(axis=-1)
