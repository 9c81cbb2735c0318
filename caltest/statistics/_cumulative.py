"""Errors of the cumulative residual: its largest deviation from 0, and the bridge test's mean and shape."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._cumulative import CHUNK, path_ends_and_bridges, path_extremes, weighted_extremes
from caltest.predictions._arrays import Booleans, Floats, Integers, blocks
from caltest.predictions._distances import ScaleWeight, validate_scale_weight
from caltest.predictions._lens import outcome_dtype
from caltest.predictions._sample import Sample
from caltest.predictions._user_functions import apply_scale_weight
from caltest.predictions.cells._cells import contiguous_columns
from caltest.predictions.cells._order import stable_order
from caltest.predictions.inputs._validation import LARGE
from caltest.resampling.distributions._base import SMALLEST_PVALUE, Distribution, chi_squared
from caltest.resampling.distributions._brownian import EITHER_END, EXCURSION, RANGE, BrownianDistribution, BrownianLimit
from caltest.resampling.draws._path_blocks import Path, PathBlocks
from caltest.resampling.draws._points import usual_labels
from caltest.resampling.draws._signs import signed_extremes
from caltest.resampling.draws._summaries import EitherEndExcursion, KeptSums, LargestExcursion, PathExtremes
from caltest.results._naming import parameter
from caltest.statistics._base import Statistic

_CHUNKS_TOGETHER = 2**10
_ROUNDING = 1e-9  # bounds are a little wider than the sums that they bound


@dataclass(frozen=True, repr=False)
class Cumulative(Statistic):
    """Base class of statistics of the path of the event: the cumulative residual in the order of its probability."""

    scale_weight: ScaleWeight | None = parameter(None, validate_scale_weight)

    n_outcomes = 2
    measures_scatter = True
    brownian: ClassVar[BrownianLimit]
    """What the statistic is if the path were a Brownian motion."""

    @staticmethod
    @abstractmethod
    def read(high: Floats, low: Floats) -> Floats:
        """Return the statistic of paths from their largest and smallest values, ``high >= 0 >= low``."""

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return the error ``(...)`` of outcomes ``(..., n_samples)``."""
        sample = self._on_scale(sample)
        high, low, _ = _extremes(sample, outcomes, 1)
        return self.read(high, low) / sample.total_weight

    def summary(self, sample: Sample) -> PathExtremes | None:
        """Return what suffices: the extremes of the path."""
        return None if self._on_scale(sample).weight is not None else sample.once(_event_summary)

    def evaluate_summary(self, sample: Sample, counted: Floats) -> Floats:
        """Return the error of drawn extremes."""
        return self.read(counted[:, 0], counted[:, 1]) / sample.total_weight

    def evaluate_signs(self, sample: Sample, signs: NDArray[np.int8]) -> Floats:
        """Return the error of signed residuals."""
        sample = self._on_scale(sample)
        high, low, _ = signed_extremes(sample, signs, 1)
        return self.read(high, low) / sample.total_weight

    def evaluate_sums(self, sums: KeptSums) -> Floats | None:
        """Return the error of the path at the ends of narrow cells, which is at most that of all observations."""
        if sums.extremes is None or self.scale_weight is not None:
            return None
        return self.read(*sums.extremes) / sums.n_samples

    def bounds_of_sums(self, sums: KeptSums) -> tuple[float, float] | None:
        """Return the error at the ends of narrow cells, and with what may happen within them."""
        if sums.extremes is None or sums.widest_extremes is None or self.scale_weight is not None:
            return None
        low, high = (self.read(*some) / sums.n_samples for some in (sums.extremes, sums.widest_extremes))
        return float(low[0]), float(high[0])

    def asymptotic_distribution(self, sample: Sample) -> Distribution:
        """Return the distribution of the statistic of the Brownian motion that is the limit of the path."""
        sample = self._on_scale(sample)
        scale = float(np.sqrt(sample.of_predictions(_path_variances)[0])) / sample.total_weight
        return BrownianDistribution(self.brownian, scale)

    def _on_scale(self, sample: Sample) -> Sample:
        """Return the sample whose observations count by their predictions too: itself without a weight."""
        return sample if self.scale_weight is None else sample.once(_weighted_on_scale, self.scale_weight)


def _weighted_on_scale(sample: Sample, weight: ScaleWeight) -> Sample:
    values = sample.weight_or_ones * apply_scale_weight(weight, np.clip(sample.event, 0.0, 1.0))
    # Equal weights are none, so that a constant changes nothing.
    return replace(sample, weight=None if values.min() == values.max() else values / values.mean())


@dataclass(frozen=True, repr=False)
class KS(Cumulative):
    r"""Kolmogorov-Smirnov calibration error (KS) of Gupta et al. (2020), for two-outcome lenses.

    .. math:: \max_s |C(s)|, \qquad C(s) = \frac1n \sum_{i : p_i \le s} (y_i - p_i)

    with :math:`p_i` the event's probability and :math:`y_i` its indicator. The cumulative residual C is evaluated only
    at the end of a block of tied probabilities, so that the order of the observations never matters. Its target is the
    largest total miscalibration below any threshold. It needs neither cells nor a bandwidth. Sample weights multiply
    the residuals and replace n by their sum. Behind `ClassWise`, `TopRank` and `WithinTop` it is the class, r-th top
    and within-top-r error of the paper.

    Divided by :math:`\sigma = (\sum_i p_i (1 - p_i))^{1/2} / n` it is the ECCE-MAD of Arrieta-Ibarra et al. (2022),
    whose limit is the largest distance of a Brownian motion from 0: ``calibration_test(..., method="asymptotic")``.

    Parameters
    ----------
    scale_weight : callable or {"p", "1-p", "p(1-p)", "(1-2p)^2"}, optional
        Where on the probability scale errors matter: a function w of probabilities, or one of these by name. The
        residual of an observation then counts :math:`w(p_i)`, and :math:`\sum_i w(p_i)` replaces n, as sample weights
        do; a constant changes nothing (Nixon et al. 2019, appendix D.2; see `ECE`). States of streams refuse it.

    Raises
    ------
    TypeError
        If ``scale_weight`` is not a function, or cannot be hashed.
    ValueError
        If ``scale_weight`` is another text; when it is evaluated, if it is negative, infinite or 0 for all
        predictions.

    See Also
    --------
    ECE : The same weights, for cells.
    Kuiper : Range of the cumulative residual: more power against deviations in the middle.
    ClasswiseKS : Largest standardised cumulative residual over all classes.

    References
    ----------
    K. Gupta et al. (2020), Calibration of neural networks using splines, equation 7.
    I. Arrieta-Ibarra et al. (2022), Metrics of calibration for probabilistic predictions, Journal of Machine Learning
    Research 23.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = [0, 0, 1, 1], [0.25, 0.25, 0.75, 0.75]
    >>> caltest.calibration_error(y_true, y_prob, statistic=caltest.KS())
    0.125
    >>> caltest.calibration_error(y_true, y_prob, statistic=caltest.KS(scale_weight="1-p"))
    0.1875
    """

    words = "largest cumulative error"

    brownian = EXCURSION

    @staticmethod
    def read(high: Floats, low: Floats) -> Floats:
        """Return the largest distance of the path from 0."""
        return np.maximum(high, 0.0 - low)


@dataclass(frozen=True, repr=False)
class Kuiper(Cumulative):
    r"""Kuiper calibration error, the range of the cumulative residual, for two-outcome lenses.

    .. math:: \max_s C(s) - \min_s C(s), \qquad C(s) = \frac1n \sum_{i : p_i \le s} (y_i - p_i), \quad C(-\infty) = 0

    over all thresholds s, including the start of the path at 0. It equals the largest :math:`|\frac1n \sum_{i : s < p_i
    \le t} (y_i - p_i)|` over all intervals of predictions: the cutoff calibration error (CutoffError) of Rossellini et
    al. (2025), for which `caltest.estimation.cutoff_interval` has a confidence interval. It has the unit of `KS` and
    lies between KS and 2 KS. Unlike KS it does not favour thresholds near the ends: it detects an error in the middle
    as well as one that begins at 0. The path is evaluated at the end of tied blocks; sample weights multiply the
    residuals and replace n by their sum.

    Divided by :math:`\sigma = (\sum_i p_i (1 - p_i))^{1/2} / n` it is the standardised ECCE-R of Arrieta-Ibarra et al.
    (2022), whose limit is the range of a Brownian motion: ``calibration_test(..., method="asymptotic")``, where
    :math:`\sigma` is ``result.null.scale``.

    Parameters
    ----------
    scale_weight : callable or {"p", "1-p", "p(1-p)", "(1-2p)^2"}, optional
        Where on the probability scale errors matter, as in `KS`.

    Raises
    ------
    TypeError
        If ``scale_weight`` is not a function, or cannot be hashed.
    ValueError
        If ``scale_weight`` is another text; when it is evaluated, if it is negative, infinite or 0 for all
        predictions.

    See Also
    --------
    KS : Largest absolute value of the cumulative residual.
    caltest.estimation.cutoff_interval : Confidence interval for this error.

    References
    ----------
    N. H. Kuiper (1960), Tests concerning random points on a circle, Indagationes Mathematicae 22.
    I. Arrieta-Ibarra et al. (2022), Metrics of calibration for probabilistic predictions, Journal of Machine Learning
    Research 23.
    R. Rossellini et al. (2025), Can a calibration metric be both testable and actionable? arXiv:2502.19851.

    Examples
    --------
    The path rises to 0.125 and falls to -0.25:

    >>> import caltest
    >>> caltest.calibration_error([1, 0, 0, 0], [0.25, 0.25, 0.75, 0.75], statistic=caltest.statistics.Kuiper())
    0.375
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> options = {"lens": caltest.Confidence(), "statistic": caltest.statistics.Kuiper(), "method": "asymptotic"}
    >>> result = caltest.calibration_test(y_true, y_prob, **options)
    >>> round(result.statistic, 4), round(result.statistic / result.null.scale, 2)
    (0.04, 30.9)
    """

    words = "range of the cumulative error"

    brownian = RANGE

    @staticmethod
    def read(high: Floats, low: Floats) -> Floats:
        """Return the range of the path."""
        return high - low


@dataclass(frozen=True, repr=False)
class ClasswiseKS(Statistic):
    r"""Class-wise KS: the largest standardised cumulative residual of all classes, on the whole prediction.

    .. math:: \max_k \frac{n \, \mathrm{KS}_k}{\bigl(\sum_i p_{ik} (1 - p_{ik})\bigr)^{1/2}}

    where :math:`\mathrm{KS}_k` is `KS` of class k against the rest. One draw of the class serves all paths, so that all
    classes are tested jointly. Two outcomes are two classes too: with the path C of the event, the larger of
    :math:`\max_s |C(s)|` and :math:`\max_s |C(s) - C(1)|`, which is the path of the complement from its smallest
    probability on. So the value stays the same when the event and its complement are exchanged, which `KS` does not,
    and its limit is known: ``calibration_test(..., method="asymptotic")``. A class without variance adds 0, or infinity
    if a prediction of 0 or 1 was wrong.

    See Also
    --------
    KS : The error of one event, in the unit of a probability.
    Classwise : ``Classwise(KS(), "max")`` is the largest error of a class, not standardised.
    SCE : Average of the binned errors of all classes.

    Examples
    --------
    >>> import caltest
    >>> y_prob = [[0.5, 0.25, 0.25]] * 4
    >>> caltest.calibration_error([0, 0, 1, 2], y_prob, statistic=caltest.statistics.ClasswiseKS())
    0.0
    """

    words = "largest cumulative error of a class"

    measures_scatter = True

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return the statistic ``(...)`` of outcomes ``(..., n_samples)``."""
        if sample.n_outcomes == 2 or sample.weight is not None:
            return self._largest(sample, _excursions(sample, partial(_extremes, sample, outcomes)))
        summary = sample.once(_class_summary)
        flat = np.ascontiguousarray(outcomes, dtype=outcome_dtype(sample.n_outcomes)).reshape(-1, sample.n_samples)
        found = summary.blocks.largest_of_labels(flat, summary.scale)
        return found.reshape(outcomes.shape[:-1])

    def summary(self, sample: Sample) -> EitherEndExcursion | LargestExcursion | None:
        """Return what suffices: the excursion of the event, or the largest one of many outcomes."""
        if sample.weight is not None or sample.is_large:
            return None
        return sample.once(_either_end_summary) if sample.n_outcomes == 2 else sample.once(_class_summary)

    def evaluate_summary(self, sample: Sample, counted: Floats) -> Floats:
        """Return the statistic of drawn excursions."""
        return counted if sample.n_outcomes > 2 else self._largest(sample, counted[:, None])

    def evaluate_signs(self, sample: Sample, signs: NDArray[np.int8]) -> Floats:
        """Return the statistic of signed residuals."""
        return self._largest(sample, _excursions(sample, partial(signed_extremes, sample, signs)))

    def _largest(self, sample: Sample, excursion: Floats) -> Floats:
        """Return the largest standardised excursion ``(...)`` of the classes ``(..., n_paths)``."""
        variance = sample.of_predictions(_path_variances)
        scale = np.sqrt(np.where(variance > 0, variance, 1.0))
        # Without variance the path stays at 0, unless an outcome of probability 0 happened.
        contradicted = np.where(excursion > 0, np.inf, 0.0)
        return np.where(variance > 0, excursion / scale, contradicted).max(axis=-1)

    def asymptotic_distribution(self, sample: Sample) -> Distribution | None:
        """Return the limit for two outcomes, whose paths are one; the paths of more classes depend on each other."""
        if sample.n_outcomes > 2:
            return None
        return BrownianDistribution(EITHER_END, 1.0 if sample.of_predictions(_path_variances)[0] > 0 else 0.0)


def _excursions(sample: Sample, extremes: Callable[[int], Floats]) -> Floats:
    """Return the largest distances from 0, ``(..., n_paths)``, of paths of outcomes k with ``extremes(k) (3, ...)``.

    Of two outcomes it is the distance of one path from its start or from its end, the start of the complement.
    """
    if sample.n_outcomes > 2:
        return np.stack([KS.read(*extremes(k)[:2]) for k in range(sample.n_outcomes)], axis=-1)
    high, low, end = extremes(1)
    return np.maximum(np.maximum(high, end - low), np.maximum(0.0 - low, high - end))[..., None]


def _path_variances(sample: Sample) -> Floats:
    """Return the variance of the end of each path, ``(n_outcomes,)``, or that of the event alone, ``(1,)``."""
    variance = np.zeros(sample.n_outcomes)
    for rows in blocks(*sample.given.shape):
        p = np.clip(sample.given_null[rows].astype(np.float64), 0.0, 1.0)
        q = 1.0 - p
        if sample.weight is not None:
            q *= np.square(sample.weight[rows, None])
        variance += np.einsum("ik,ik->k", p, q)
    return variance[1:] if sample.n_outcomes == 2 else variance


def _expected(sample: Sample, k: int) -> Floats:
    """Return the null probabilities of a class, without rounding where all are 0 or 1."""
    return _without_rounding(sample.given_null[:, k].astype(np.float64))


def _without_rounding(column: NDArray[Any]) -> Floats:
    """Return probabilities; where all are 0 or 1 they are exactly that, so that their path stays at 0."""
    return column if _is_uncertain(column) else np.clip(column, 0.0, 1.0)


def _is_uncertain(column: NDArray[Any]) -> bool:
    return 0 < column[0] < 1 or bool(np.any((column > 0) & (column < 1)))


def _event_summary(sample: Sample) -> PathExtremes:
    return PathExtremes(Path(sample.event, _expected(sample, 1), 1))


def _either_end_summary(sample: Sample) -> EitherEndExcursion:
    return EitherEndExcursion(sample.once(_event_summary).path)


def _class_summary(sample: Sample) -> LargestExcursion:
    """Return the paths of all classes."""
    given, null = sample.given, sample.given_null
    scores = contiguous_columns(given)
    columns = ((one, one) for one in scores) if null is given else zip(scores, contiguous_columns(null), strict=True)
    paths = (Path(score, _without_rounding(expected), k) for k, (score, expected) in enumerate(columns))
    shape, dtype = (sample.n_outcomes, sample.n_samples), outcome_dtype(sample.n_outcomes)
    kind = np.result_type(given, null)
    in_place = null if null.size > LARGE and _are_read_in_place(null, kind) else None
    blocks = PathBlocks.of(paths, *shape, dtype, expected_dtype=kind, in_place=in_place, usual=usual_labels(sample))
    return LargestExcursion(blocks, np.sqrt(sample.of_predictions(_path_variances)))


def _are_read_in_place(null: NDArray[Any], kind: np.dtype[Any]) -> bool:
    """Return whether paths need no copy of the probabilities: no column is without rounding."""
    return null.dtype == kind and null.flags.carray and all(map(_is_uncertain, null.T))


def _extremes(sample: Sample, outcomes: NDArray[Any], k: int) -> Floats:
    """Return the largest, the smallest (0 at the start included) and the last value of a path, ``(3, ...)``.

    It is the path of outcome k; without weights that of the event. Without variance the path ends where it begins,
    unless an outcome of probability 0 happened.
    """
    flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
    if sample.weight is None:
        bounds = sample.once(_step_bounds) if len(flat) > 1 else _NO_BOUNDS
        found = path_extremes(flat, *sample.once(_event_sums), *bounds)
    else:  # orders of many classes take three times as much as the data
        kept = sample.n_outcomes == 2 or not sample.is_large
        order, *path = sample.once(_weighted_steps, k) if kept else _weighted_steps(sample, k)
        found = weighted_extremes(np.ascontiguousarray((flat == k).view(np.uint8)[:, order]), *path)
    return found.T.reshape(3, *outcomes.shape[:-1])


def _weighted_steps(sample: Sample, k: int) -> tuple[Integers | slice, Floats, Floats, Booleans]:
    """Return the order of the predictions of outcome k, weights, null probabilities and ends of tied blocks in it."""
    order = slice(None) if sample.n_outcomes == 2 else stable_order(sample.prob[:, k])  # sorted by the event
    score = sample.given[order, k]
    return order, sample.weight_or_ones[order], _expected(sample, k)[order], np.append(score[1:] > score[:-1], True)


def _event_sums(sample: Sample) -> tuple[Floats, Floats]:
    """Return predicted sums ``(n_samples,)`` twice: see `path_extremes`."""
    return _predicted_sums(sample.event, _expected(sample, 1))


_NO_BOUNDS = np.empty((2, 0), dtype=np.int8), np.empty((2, 0))
"""All observations of one replicate are read, which takes less time than to bound its path."""


def _step_bounds(sample: Sample) -> tuple[NDArray[np.int8], Floats]:
    """Return the bounds of predicted sums in steps of integers: see `path_extremes`."""
    after, following = sample.once(_event_sums)
    n_chunks = sample.n_samples // CHUNK
    levels, steps = np.empty((2, n_chunks)), np.empty((2, n_chunks * CHUNK), dtype=np.int8)
    for start in range(0, n_chunks, _CHUNKS_TOGETHER):  # some at a time, which take little memory
        some = slice(start, start + _CHUNKS_TOGETHER)
        rows = slice(start * CHUNK, min(start + _CHUNKS_TOGETHER, n_chunks) * CHUNK)
        risen, fallen = (sums[rows].reshape(-1, CHUNK) for sums in (after, following))
        rise, fall = np.floor(risen), np.ceil(fallen)
        levels[0, some] = rise[:, 0] + (risen - rise).min(axis=1) - _ROUNDING
        levels[1, some] = fall[:, -1] - (fall - fallen).min(axis=1) + _ROUNDING
        # Inside a tied block that is longer than a chunk, steps are cut to what a byte holds: bounds remain bounds.
        steps[0, rows] = np.minimum(rise - rise[:, :1], CHUNK).ravel()
        steps[1, rows] = np.maximum(fall - fall[:, -1:], -CHUNK).ravel()
    return steps, levels


def _predicted_sums(score: Floats, expected: Floats) -> tuple[Floats, Floats]:
    """Return the predicted sums after the tied block of each observation, and before that of the next observation.

    Scores increase. Where none are equal both are the same array.
    """
    total = np.cumsum(expected)
    last = np.append(score[1:] > score[:-1], True)
    if last.all():
        return total, total
    end = np.flatnonzero(last)
    size = np.diff(end, prepend=-1)
    after, before = np.repeat(total[end], size), np.repeat(np.append(0.0, total[end[:-1]]), size)
    before[:-1] = before[1:]
    before[-1] = after[-1]
    return after, before


@dataclass(frozen=True, repr=False)
class Bridge(Statistic):
    r"""Statistic of the bridge test: mean and shape of the cumulative residual, combined by Fisher's method.

    It needs a two-outcome lens. With observations in the order of the event's probability, :math:`e_i = y_i - p_i`,
    :math:`v_i = p_i (1 - p_i)` and :math:`V = \sum_i v_i`, the path :math:`S_k = \sum_{i \le k} e_i / V^{1/2}` at the
    time :math:`t_k = \sum_{i \le k} v_i / V` tends to a Brownian motion if the model is calibrated. Its end and the
    Brownian bridge that is left after the end is subtracted in proportion to time are independent in the limit:

    .. math::
        M = |S_n|, \quad D = \max_k |S_k - t_k S_n|, \qquad
        T = -2 \log\bigl(2 \Phi(-M)\bigr) - 2 \log P(K > D),

    with K the supremum of the absolute value of a Brownian bridge (Kolmogorov's distribution). In the limit T follows
    chi-squared(4): ``calibration_test(..., method="asymptotic")``. The path is evaluated only at the end of a block of
    tied probabilities. M measures calibration in the large, D all other deviations of the path. Without variance T is
    0, or infinite if a prediction of 0 or 1 was wrong. Sample weights multiply the residuals, their squares the
    variances.

    See Also
    --------
    KS : Largest cumulative residual; detects deviations of the mean and of the shape together.

    References
    ----------
    M. Sadatsafavi and J. Petkau (2024), Non-parametric inference on calibration of predicted risks, Statistics in
    Medicine, doi 10.1002/sim.10138.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = [0, 1, 0, 1, 1, 1, 0, 1], [0.25, 0.25, 0.25, 0.25, 0.75, 0.75, 0.75, 0.75]
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=caltest.statistics.Bridge()), 4)
    1.7702
    """

    n_outcomes = 2
    measures_scatter = True

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return T, ``(...)``, of outcomes ``(..., n_samples)``."""
        end, bridge = self.parts(sample, outcomes)
        return 0.0 - 2 * (log_normal_pvalue(np.abs(end)) + log_kolmogorov_pvalue(bridge))  # never -0

    def asymptotic_distribution(self, sample: Sample) -> Distribution:
        """Return chi-squared(4), the limit of the distribution of T."""
        return chi_squared(4)

    def derived(self, sample: Sample, value: float, null: Distribution) -> dict[str, float]:
        """Return the signed mean, the shape, and their asymptotic p-values."""
        mean, shape = self.parts(sample, sample.outcome)
        logs = log_normal_pvalue(np.abs(mean)), log_kolmogorov_pvalue(shape)
        mean_pvalue, shape_pvalue = (max(float(np.exp(log)), SMALLEST_PVALUE) for log in logs)
        return {"mean": float(mean), "mean_pvalue": mean_pvalue, "shape": float(shape), "shape_pvalue": shape_pvalue}

    def parts(self, sample: Sample, outcomes: NDArray[Any]) -> tuple[Floats, Floats]:
        """Return the signed mean :math:`S_n` and the shape :math:`D`, ``(...)`` each."""
        start, expected, time, variance = sample.once(_path)
        flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
        if sample.weight is None:
            ends = path_ends_and_bridges(flat, start, expected, time)
        else:
            path = np.cumsum(sample.weight * flat, axis=1)[:, start[1:] - 1] - expected
            ends = np.column_stack([path[:, -1], np.abs(path - time * path[:, -1:]).max(axis=1)])
        # Without variance only wrong predictions of 0 or 1 move the path.
        contradicted = np.where(np.abs(ends) > 0, np.copysign(np.inf, ends), 0.0)
        ends = ends / np.sqrt(variance) if variance > 0 else contradicted
        return ends[:, 0].reshape(outcomes.shape[:-1]), ends[:, 1].reshape(outcomes.shape[:-1])


def _path(sample: Sample) -> tuple[Integers, Floats, Floats, float]:
    """Return the starts of tied blocks ``(n_blocks + 1,)``, expected events and times at their ends, and V."""
    start = np.append(np.flatnonzero(np.append(True, np.diff(sample.event) > 0)), sample.n_samples)
    weight = sample.weight_or_ones
    expected = np.cumsum(weight * sample.expected[:, 1])[start[1:] - 1]
    variance = np.cumsum(np.square(weight) * sample.event_variance)[start[1:] - 1]
    total = float(variance[-1])
    return start, expected, variance / total if total > 0 else np.zeros(len(variance)), total


def log_normal_pvalue(z: Floats) -> Floats:
    """Return the logarithm of P(|N(0, 1)| >= z), accurate in the tail."""
    from scipy.special import log_ndtr

    return np.minimum(np.log(2.0) + log_ndtr(-z), 0.0)


def log_kolmogorov_pvalue(d: Floats) -> Floats:
    r"""Return the logarithm of P(K >= d), K the supremum of \|Brownian bridge\|, accurate in the tail.

    Beyond 1, five terms of :math:`2 \sum_k (-1)^{k-1} e^{-2 k^2 d^2}` are exact to rounding; the first one is factored
    out.
    """
    from scipy.special import kolmogorov

    square = np.square(np.maximum(d, 1.0))
    rest = sum((-1) ** (k - 1) * np.exp(-2 * (k * k - 1) * square) for k in range(2, 6))
    return np.where(d > 1, np.log(2.0) - 2 * square + np.log1p(rest), np.log(kolmogorov(np.minimum(d, 1.0))))
