r"""Debiased squared l2 calibration errors of models as U-statistics, and the variances of their differences.

The estimate of one model is a sum over pairs of observations, :math:`T = \frac1n \sum_{i \ne j} H_{ij}` with
:math:`H_{ij} = 1\{b_i = b_j\}\, e_i \cdot e_j / (n_b - 1)`. Hoeffding's decomposition splits its deviation into a sum
over observations, which vanishes if the model is calibrated, and a sum over pairs, which is small otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest.comparison._grouped_terms import FEW_SURPRISES, GroupedPairTerms
from caltest.predictions._arrays import Booleans, Floats, Integers
from caltest.predictions._sample import Sample
from caltest.predictions.cells._cells import cells_of
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import SeedLike, validate_rng
from caltest.resampling.distributions._base import TIE_TOLERANCE, MonteCarloDistribution
from caltest.resampling.draws._rows import BootstrapDraws
from caltest.results._progress import Progress, part_of
from caltest.statistics._segments import rare_outcomes
from caltest.statistics._skce import residuals
from caltest.statistics._squared_l2_distribution import cell_moments, stated_deviation
from caltest.statistics._sums_in_time import SumsInTime

_BLOCK_VALUES = 2**22  # counts of drawn observations held at a time: 8 MB


@dataclass(frozen=True, eq=False)
class PairTerms:
    """The parts of the terms H of one model; observations in the caller's order.

    Attributes
    ----------
    sample : Sample
        Predictions and outcomes.
    position : array of shape (n_samples,)
        Position of each observation in the sample.
    cell : array of shape (n_samples,)
        Cell of each observation.
    scale : array of shape (n_cells,)
        Factor of the products of residuals, ``1 / (count - 1)``; 0 for a cell of one observation.
    predicted_deviation : float
        Standard deviation of T according to the predictions.
    minority : int
        Number of labels that show that labels vary (`rare_outcomes`).
    squares : float
        Sum of the squared terms of all pairs.
    """

    sample: Sample
    position: Integers
    cell: Integers
    scale: Floats
    predicted_deviation: float
    minority: int
    squares: float

    unknown: ClassVar[float] = 0.0
    """A cell of one observation cannot show a squared error; the error is that of the other cells."""
    degrees: ClassVar[float] = math.inf
    """Degrees of freedom of a variance."""

    @classmethod
    def of(cls, sample: Sample, partition: Any) -> PairTerms:
        """Return the terms of a sample over the cells of a partition."""
        cells = cells_of(sample, partition)
        position = np.argsort(sample.row)
        others = cells.count - 1
        scale = np.divide(1.0, others, out=np.zeros(cells.n_cells), where=others > 0)
        return cls(
            sample,
            position,
            cells.index[position],
            scale,
            stated_deviation(sample, partition),
            rare_outcomes(sample.outcome.astype(np.int64), sample.prob, cells.index),
            sum(cell.pairs for cell in sample.once(cell_moments, partition)),
        )

    @property
    def n_samples(self) -> int:
        """Number of observations."""
        return len(self.cell)

    @property
    def total_weight(self) -> float:
        """Number of observations."""
        return float(self.n_samples)

    @cached_property
    def members(self) -> list[Integers]:
        """Observations of each cell."""
        return np.split(np.argsort(self.cell, kind="stable"), np.cumsum(np.bincount(self.cell))[:-1])

    def residual(self, observations: Integers) -> Floats:
        """Return outcomes (one-hot) minus predictions, ``(n, n_outcomes)``; of two outcomes that of the event, (n, 1).

        Those of a large sample are not kept.
        """
        if not self.sample.is_large:
            return self._all_residuals.take(observations, axis=0)
        some = self.sample.take(self.position[observations])
        return residuals(some, some.outcome)

    @cached_property
    def _all_residuals(self) -> Floats:
        residual = residuals(self.sample, self.sample.outcome)[self.position]
        return residual[:, 1:] if self.sample.n_outcomes == 2 else residual

    @cached_property
    def lengths(self) -> Floats:
        """Squared length of the residual of each observation, ``(n_samples,)``."""
        found = np.empty(self.n_samples)
        for members in self.members:
            found[members] = np.square(self.residual(members)).sum(axis=1)
        return found

    @cached_property
    def term_sum(self) -> Floats:
        """Sum of the terms of each observation, ``(n_samples,)``."""
        found = np.empty(self.n_samples)
        for scale, members in zip(self.scale, self.members, strict=True):
            residual = self.residual(members)
            found[members] = scale * np.einsum("ik,ik->i", residual, residual.sum(axis=0) - residual)
        return found

    @cached_property
    def scores(self) -> Floats:
        """Sum of the terms of each observation minus their mean, ``(n_samples,)``."""
        return self.term_sum - self.term_sum.mean()

    @property
    def estimate(self) -> float:
        """The debiased squared l2 calibration error T."""
        return float(self.term_sum.sum() / self.n_samples)

    def inner(self, other: Any) -> float:
        r"""Return :math:`\sum_{i \ne j} H_{ij} H'_{ij}` in O(n).

        Over observations that share a cell of both models, :math:`\sum_{ij} (e_i \cdot e_j)(e'_i \cdot e'_j)` is the
        squared Frobenius norm of :math:`\sum_i e_i e_i'^\top`.
        """
        if other is self:
            return self.squares
        pair = self.cell * len(other.scale) + other.cell
        order = np.argsort(pair, kind="stable")
        own = self.lengths * other.lengths
        total = 0.0
        for shared in np.split(order, np.flatnonzero(np.diff(pair[order])) + 1):
            if len(shared) > 1:
                e, f = self.residual(shared), other.residual(shared)
                scale = self.scale[self.cell[shared[0]]] * other.scale[other.cell[shared[0]]]
                few = len(shared) < e.shape[1]  # fewer than outcomes: their products are the smaller matrices
                squares = np.vdot(e @ e.T, f @ f.T) if few else np.square(e.T @ f).sum()
                total += scale * (squares - own[shared].sum())
        return float(total)

    def deviations(self, change: NDArray[Any]) -> tuple[Floats, Floats]:
        r"""Return the changes of the estimate if observations count more or less, ``(n_replicates,)`` each.

        With changes :math:`\xi` of the counts, ``(n_replicates, n_samples)``, these are the part linear in the
        observations, :math:`\frac2n \sum_i \xi_i (H_{i\cdot} - \bar H)`, and that of the pairs,
        :math:`\frac1n \sum_{i \ne j} \xi_i \xi_j H_{ij}`. Small integers that lie together for each observation, not
        for each replicate, are read fastest.
        """
        by_pair, linear = np.zeros((2, len(change)))
        alone = np.flatnonzero(self.scale[self.cell] == 0)
        several = ((scale, members) for scale, members in zip(self.scale, self.members, strict=True) if scale > 0)
        for scale, members in (*several, (0.0, alone)):
            part = change.T.take(members, axis=0).astype(np.float64)
            found = np.column_stack([self.scores[members], self.residual(members)]).T @ part
            linear += found[0]
            by_pair += scale * (np.square(found[1:]).sum(axis=0) - self.lengths[members] @ np.square(part, out=part))
        return 2 / self.n_samples * linear, by_pair / self.n_samples


Terms = PairTerms | GroupedPairTerms | SumsInTime
_EQUAL = 1e-9  # relative; estimates that differ less differ by rounding


def terms_of(samples: Sequence[Sample], partition: Any) -> list[Any]:
    """Return the terms of each sample over the cells of a partition.

    They are those of forecasts in time for all if any has times, and those of groups if any has groups or weights.
    """
    if any(sample.timing is not None for sample in samples):
        return [SumsInTime.of(sample, partition) for sample in samples]
    is_plain = all(sample.group is None and sample.weight is None for sample in samples)
    return [(PairTerms if is_plain else GroupedPairTerms).of(sample, partition) for sample in samples]


@dataclass(frozen=True, eq=False)
class Differences:
    r"""Differences between the estimates of several models, and their variances.

    With the terms :math:`H = H_A - H_B` of a difference D, :math:`g_i = \sum_j H_{ij}` and :math:`Q = \sum_{i \ne j}
    H_{ij}^2`,

    .. math:: \mathrm{Var}(D) = \frac{2 Q}{n^2} + \max\Bigl(0, \frac{4}{n^2} \bigl[\sum_i (g_i - \bar g)^2 - Q\bigr]
              \Bigr),

    that is the variance of the sum over pairs plus that of the sum over observations, from whose plain estimate the
    noise of the pairs is subtracted. Both are bilinear in the models, so that one matrix of each serves all pairs of
    models; models on different observations have no terms in common. If fewer than ten observations of a model have a
    rare outcome (`rare_outcomes`), the variance is at least :math:`(s_A + s_B)^2`, with the standard deviations s
    according to the predictions.

    Attributes
    ----------
    estimate : array of shape (n_models,)
        Debiased squared l2 calibration error of each model.
    by_pair, linear : arrays of shape (n_models, n_models)
        Covariances of the sums over pairs and over observations.
    predicted : array of shape (n_models,)
        Standard deviation of each estimate according to the predictions.
    few : array of shape (n_models,)
        Whether fewer than ten observations of a model have a rare outcome.
    unknown : array of shape (n_models,)
        How large the squared error of each model may be in cells of a single group, which no pair of groups shows.
    degrees : float
        Degrees of freedom of the variances; infinite where their limit is normal.
    """

    estimate: Floats
    by_pair: Floats
    linear: Floats
    predicted: Floats
    few: Booleans
    unknown: Floats
    degrees: float = math.inf

    @classmethod
    def of(cls, terms: Sequence[Any], *, paired: bool) -> Differences:
        """Return the differences between models, all on the same observations or all on different ones."""
        by_pair, linear = np.zeros((2, len(terms), len(terms)))
        for a, left in enumerate(terms):
            for b in range(a + 1) if paired else [a]:
                right = terms[b]
                inner = left.inner(right)
                by_pair[a, b] = by_pair[b, a] = 2 * inner / left.total_weight**2
                linear[a, b] = linear[b, a] = 4 * (left.scores @ right.scores - inner) / left.total_weight**2
        predicted = np.array([part.predicted_deviation for part in terms])
        few = np.array([part.minority < FEW_SURPRISES for part in terms])
        unknown = np.array([part.unknown for part in terms])
        estimate, degrees = np.array([part.estimate for part in terms]), min(part.degrees for part in terms)
        return cls(estimate, by_pair, linear, predicted, few, unknown, degrees)

    @cached_property
    def variance(self) -> Floats:
        """Variance of every difference, ``(n_models, n_models)``; 0 for models whose terms differ by rounding only.

        Models that differ by a constant in each of their common cells have the same centred pairs: the linear part is
        all that varies.
        """
        pairs, linear = _contrast(self.by_pair), np.maximum(_contrast(self.linear), 0.0)
        differ = _exceeds_rounding(self.by_pair) | _exceeds_rounding(self.linear + 2 * self.by_pair)
        plain = np.where(differ, np.maximum(pairs, 0.0) + linear, 0.0)
        predicted = np.square(np.add.outer(self.predicted, self.predicted))
        unknown = np.square(np.add.outer(self.unknown, self.unknown))
        size = np.abs(self.estimate)
        differ |= np.abs(np.subtract.outer(self.estimate, self.estimate)) > _EQUAL * np.add.outer(size, size)
        return np.where(self.unreliable & differ, np.maximum(plain, predicted), plain) + unknown

    @property
    def unreliable(self) -> Booleans:
        """Whether a model of a pair has too few rare outcomes for a sample variance, ``(n_models, n_models)``."""
        return np.logical_or.outer(self.few, self.few)

    @property
    def informative(self) -> Booleans:
        """Whether any two observations of a cell vary, for a model of each pair, ``(n_models, n_models)``."""
        alone = self.by_pair.diagonal() + np.where(self.few, self.predicted, 0.0)
        return np.add.outer(alone, alone) > 0

    @cached_property
    def shrinkage(self) -> Floats:
        """Factor that gives the bootstrap's sum over observations its variance here, ``(n_models, n_models)``."""
        plain = _contrast(self.linear + 2 * self.by_pair)
        true = np.maximum(_contrast(self.linear), 0.0)
        return np.sqrt(np.divide(true, plain, out=np.zeros_like(true), where=plain > 0))


def resample(
    models: Sequence[Terms],
    differences: Differences,
    *,
    paired: bool,
    n_resamples: int,
    rng: SeedLike = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> Floats:
    """Return the deviation of every difference on bootstrap samples, ``(n_models, n_models, n_resamples)``.

    Observations are drawn with replacement, the same ones for all models that share them. Pairs of copies of one
    observation are left out, so that the deviations are centred, and the sum over observations is shrunk: its plain
    bootstrap counts the noise of the pairs again, which triples the variance near calibration.

    Of forecasts in time the cosines are weighted by normal numbers, over one that makes each of them Student's.
    """
    generator = validate_rng(rng)  # one seed for each set of observations
    if len({len(terms.scores) for terms in models}) > 1 and paired:
        refuse("models that are compared on the same observations must have the same groups.")
    if isinstance(models[0], SumsInTime):
        change = _student_numbers(generator, n_resamples, models[0].n_cosines)
        linear, by_pair = np.stack([terms.deviations(change) for terms in models], axis=1)
        return _differences_of(linear, by_pair, differences)
    groups = [models] if paired else [[model] for model in models]
    schemes = [BootstrapDraws.of(n_resamples, generator) for _ in groups]
    parts = [
        draws.map(partial(_deviations, models=group), workers, part_of(progress, number, len(groups)))
        for number, (draws, group) in enumerate(zip(schemes, groups, strict=True))
    ]
    linear, by_pair = np.concatenate(parts, axis=1)
    return _differences_of(linear, by_pair, differences)


def _differences_of(linear: Floats, by_pair: Floats, differences: Differences) -> Floats:
    """Return the deviations of differences from those of the models, ``(n_models, n_resamples)`` each."""
    return differences.shrinkage[..., None] * (linear[:, None] - linear) + by_pair[:, None] - by_pair


def _student_numbers(rng: np.random.Generator, n_resamples: int, degrees: int) -> Floats:
    """Return numbers ``(n_resamples, degrees)`` of Student's distribution, whose variance is the same for a draw."""
    normal = rng.standard_normal((n_resamples, degrees))
    return normal / np.sqrt(rng.chisquare(degrees, (n_resamples, 1)) / degrees)


def critical_value(null: Floats, observed: float, level: float) -> tuple[float, float]:
    """Return the p-value of an observed value, and the largest value whose p-value is above ``1 - level``.

    This is the k-th largest of ``null (n_resamples,)``, with ``k = (n_resamples + 1) (1 - level)`` rounded down, and
    infinite if there are too few draws for the level.
    """
    tail = math.floor((len(null) + 1) * (1 - level) * (1 + TIE_TOLERANCE))
    largest = float(np.sort(null)[-tail]) if tail else math.inf
    return MonteCarloDistribution(null).sf(observed), largest


def largest_deviations(differences: Differences, drawn: Floats) -> Floats:
    """Return the largest studentised deviation of all pairs on each bootstrap sample, ``(n_resamples,)``."""
    error = np.sqrt(differences.variance)[..., None]
    return np.abs(np.divide(drawn, error, out=np.zeros_like(drawn), where=error > 0)).max(axis=(0, 1))


def _deviations(draws: BootstrapDraws, models: Sequence[Terms]) -> Floats:
    """Return the linear deviations and those of pairs, ``(2, n_models, n_resamples)``."""
    n_units = len(models[0].scores)  # observations or groups
    blocks = []
    for part in draws.slices(max(_BLOCK_VALUES // n_units, 1)):
        change = np.ascontiguousarray(part.row_counts(n_units).T - np.int16(1)).T
        blocks.append(np.stack([terms.deviations(change) for terms in models], axis=1))
    return np.concatenate(blocks, axis=-1)


def _contrast(covariance: Floats) -> Floats:
    """Return the variance of every difference."""
    alone = covariance.diagonal()
    return np.add.outer(alone, alone) - 2 * covariance


def _exceeds_rounding(covariance: Floats) -> Booleans:
    """Return whether the variance of a difference is more than what rounding leaves of those of the two models."""
    alone = covariance.diagonal()
    return _contrast(covariance) > TIE_TOLERANCE * np.add.outer(alone, alone)
