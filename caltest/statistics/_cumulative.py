"""Errors without cells: how far the cumulative residual strays in score order."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._cumulative import CHUNK, largest_excursions, path_extremes, word_extremes
from caltest.predictions._order import stable_order
from caltest.predictions._sample import Sample
from caltest.resampling._brownian import BrownianLaw, ExcursionLaw, RangeLaw
from caltest.resampling._distributions import Law, Tail
from caltest.statistics._base import Statistic

_ROUNDING = 1e-9  # bounds are a little wider than the sums that they bound


@dataclass(frozen=True)
class Cumulative(Statistic):
    """A statistic of the event's path, the cumulative residual in score order; subclasses say which, by `read`."""

    measures_scatter = True
    brownian: ClassVar[type[BrownianLaw]]
    """What the statistic would be of a Brownian motion."""

    @staticmethod
    @abstractmethod
    def read(high: NDArray[np.float64], low: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the statistic of paths from their extremes, ``high >= 0 >= low``."""

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        """Return the error ``(...)`` of outcomes ``(..., n_samples)``."""
        if sample.n_outcomes != 2:
            name = type(self).__name__
            msg = f"`{name}` needs a two-outcome lens such as Confidence(), got {sample.n_outcomes} outcomes."
            raise ValueError(msg)
        return self.read(*_event_extremes(sample, outcomes)) / _total(sample)

    def limit(self, sample: Sample) -> tuple[Law, Tail]:
        """Return the law of the Brownian motion that the path tends to, and its tail at the observed outcomes."""
        value = float(self.evaluate(sample, sample.outcome))
        law = self.brownian(float(np.sqrt(sample.once(_class_variances)[-1])) / _total(sample))
        standardised = value / law.scale if law.scale > 0 else 0.0
        said = (
            f"Brownian limit, standardised statistic {standardised:.6g}, log10 p {law.log_sf(value) / np.log(10):.4g}; "
            "not to be trusted where few predictions are distinct or few lie far from 0 and 1"
        )
        return law, Tail(law.sf(value), np.nan, said)


@dataclass(frozen=True)
class KS(Cumulative):
    r"""Kolmogorov-Smirnov calibration error of Gupta et al. (2020), for two-outcome lenses.

    .. math:: \max_s |C(s)|, \qquad C(s) = \frac1n \sum_{i : p_i \le s} (y_i - p_i)

    with :math:`p_i` the event's probability and :math:`y_i` its indicator. The cumulative residual is read only at the
    end of a block of tied probabilities, so that row order never matters. Its target is the largest mass of
    miscalibration below any threshold; no cells, no smoothing. Sample weights multiply the residuals and replace n by
    their sum. Behind `ClassWise`, `TopRank` and `WithinTop` it is the class, r-th top and within-top-r error of the
    paper.

    Divided by :math:`\sigma = (\sum_i p_i (1 - p_i))^{1/2} / n` it is the ECCE-MAD of Arrieta-Ibarra et al. (2022), and
    tends to the largest distance of a Brownian motion from 0: ``calibration_test(..., method="asymptotic")``.

    Raises
    ------
    ValueError
        If the lens has more than two outcomes.

    References
    ----------
    K. Gupta et al. (2020), Calibration of neural networks using splines, equation 7.
    I. Arrieta-Ibarra et al. (2022), Metrics of calibration for probabilistic predictions, Journal of Machine Learning
    Research 23.

    Examples
    --------
    >>> import caltest
    >>> caltest.calibration_error([0, 0, 1, 1], [0.25, 0.25, 0.75, 0.75], statistic=caltest.KS())
    0.125
    """

    brownian = ExcursionLaw

    @staticmethod
    def read(high: NDArray[np.float64], low: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the largest distance from 0."""
        return np.maximum(high, 0.0 - low)


@dataclass(frozen=True)
class Kuiper(Cumulative):
    r"""Kuiper calibration error, the range of the cumulative residual, for two-outcome lenses.

    .. math:: \max_s C(s) - \min_s C(s), \qquad C(s) = \frac1n \sum_{i : p_i \le s} (y_i - p_i), \quad C(-\infty) = 0

    over all thresholds s, the path's start at 0 included. It equals the largest :math:`|\frac1n \sum_{i : s < p_i \le
    t} (y_i - p_i)|` over all intervals of scores, and has the unit of `KS`, between KS and 2 KS: unlike KS it does not
    favour thresholds near the ends, and it sees an error in the middle as well as one that begins at 0. Read at the
    end of tied blocks; sample weights multiply the residuals and replace n by their sum.

    Divided by :math:`\sigma = (\sum_i p_i (1 - p_i))^{1/2} / n` it is the standardised ECCE-R of Arrieta-Ibarra et al.
    (2022), and tends to the range of a Brownian motion: ``calibration_test(..., method="asymptotic")``, where
    :math:`\sigma` is ``result.null.scale``.

    Raises
    ------
    ValueError
        If the lens has more than two outcomes.

    References
    ----------
    N. H. Kuiper (1960), Tests concerning random points on a circle, Indagationes Mathematicae 22.
    I. Arrieta-Ibarra et al. (2022), Metrics of calibration for probabilistic predictions, Journal of Machine Learning
    Research 23.

    Examples
    --------
    The path rises to 0.125 and falls to -0.25:

    >>> import caltest
    >>> caltest.calibration_error([1, 0, 0, 0], [0.25, 0.25, 0.75, 0.75], statistic=caltest.Kuiper())
    0.375
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> options = {"lens": caltest.Confidence(), "statistic": caltest.Kuiper(), "method": "asymptotic"}
    >>> result = caltest.calibration_test(y_true, y_prob, **options)
    >>> round(result.statistic, 4), round(result.statistic / result.null.scale, 2)
    (0.04, 30.9)
    """

    brownian = RangeLaw

    @staticmethod
    def read(high: NDArray[np.float64], low: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the range."""
        return high - low


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
            excursion = KS.read(*_event_extremes(sample, outcomes))[..., None]
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


def _total(sample: Sample) -> float:
    return sample.n_samples if sample.weight is None else float(sample.weight.sum())


def _event_extremes(sample: Sample, outcomes: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the highest and the lowest value of the event's path, ``(...)`` each, its start at 0 included."""
    if sample.weight is not None:
        path = _weighted_path(sample, sample.weight, 1, outcomes)
        return path.max(axis=-1, initial=0.0), path.min(axis=-1, initial=0.0)
    flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
    high, low = path_extremes(flat, *sample.once(_event_path)).T
    return high.reshape(outcomes.shape[:-1]), low.reshape(outcomes.shape[:-1])


def _class_excursions(sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
    """Return max |cumulative residual| of each class in the order of its probability, ``(..., n_outcomes)``."""
    if sample.weight is not None:
        paths = [_weighted_path(sample, sample.weight, k, outcomes == k) for k in range(sample.n_outcomes)]
        return np.stack([np.abs(path).max(axis=-1) for path in paths], axis=-1)
    flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
    return largest_excursions(flat, *sample.once(_class_paths)).reshape(*outcomes.shape[:-1], sample.n_outcomes)


def _weighted_path(sample: Sample, weight: NDArray[np.float64], k: int, event: NDArray[Any]) -> NDArray[np.float64]:
    """Return the weighted cumulative residual of outcome k at the ends of tied blocks, ``(..., n_blocks)``."""
    order = stable_order(sample.prob[:, k])
    residual = event[..., order] - sample.once(_expected)[order, k]
    path = np.cumsum(weight[order] * residual, axis=-1)
    return path[..., np.append(np.diff(sample.prob[order, k]) > 0, True)]


def _event_path(sample: Sample) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return predicted sums ``(n_samples,)`` twice, and their bounds by steps of whole numbers: see `path_extremes`."""
    before, after = _block_sums(sample.event, sample.once(_expected)[:, 1])
    following = np.append(before[1:], after[-1])
    n_chunks = sample.n_samples // CHUNK
    risen, fallen = (sums[: n_chunks * CHUNK].reshape(n_chunks, CHUNK) for sums in (after, following))
    rise, fall = np.floor(risen), np.ceil(fallen)
    levels = np.stack(
        [
            rise[:, 0] + (risen - rise).min(axis=1) - _ROUNDING,
            fall[:, -1] - (fall - fallen).min(axis=1) + _ROUNDING,
        ]
    )
    # Inside a tied block that is longer than a chunk, steps are cut to what a byte holds: bounds remain bounds.
    steps = np.stack([np.minimum(rise - rise[:, :1], CHUNK), np.maximum(fall - fall[:, -1:], -CHUNK)])
    return after, following, steps.reshape(2, -1).astype(np.int8), levels


def _block_sums(
    score: NDArray[np.float64], expected: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the predicted sums before and after the tied block of each row, for increasing scores."""
    total = np.concatenate([[0.0], np.cumsum(expected)])
    return total[np.searchsorted(score, score, side="left")], total[np.searchsorted(score, score, side="right")]


def _class_paths(sample: Sample) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return ranks, predicted sums, starts of tied blocks and extremes of every class: see `largest_excursions`."""
    n_samples, n_outcomes = sample.prob.shape
    n_words = -(-n_samples // 64)
    rank = np.empty((n_samples, n_outcomes), dtype=np.int32)
    total = np.zeros((n_outcomes, n_samples + 1))
    block = np.zeros((n_outcomes, n_words + 1), dtype=np.uint64)
    extremes = np.empty((n_outcomes, 2, n_words))
    expected = sample.once(_expected)
    for k in range(n_outcomes):
        order = stable_order(sample.prob[:, k])
        rank[order, k] = np.arange(n_samples, dtype=np.int32)
        np.cumsum(expected[order, k], out=total[k, 1:])
        score = sample.prob[order, k]
        bits = np.packbits(np.concatenate([[True], score[1:] > score[:-1], [True]]), bitorder="little")
        block[k].view(np.uint8)[: len(bits)] = bits
        word_extremes(total[k], block[k], extremes[k])
    return rank, total, block, np.ascontiguousarray(extremes.transpose(1, 0, 2))
