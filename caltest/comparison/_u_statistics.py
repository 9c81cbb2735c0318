r"""Debiased squared l2 miscalibration of models on the same rows: U-statistics, and how their differences vary.

The estimate of one model is a sum over pairs of rows, :math:`T = \frac1n \sum_{i \ne j} H_{ij}` with
:math:`H_{ij} = 1\{b_i = b_j\}\, e_i \cdot e_j / (n_b - 1)`. Hoeffding's decomposition splits what it deviates by into a
sum over rows, which vanishes where the model is calibrated, and a sum over pairs, which is small elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._sample import Sample
from caltest.predictions._validation import SeedLike, validate_rng
from caltest.resampling._distributions import TIE_TOLERANCE, ResampledLaw
from caltest.resampling._draws import BootstrapDraws
from caltest.resampling._schemes import Bootstrap
from caltest.statistics._skce import residuals
from caltest.statistics._squared_l2_distribution import stated_deviation

_FEW_ROWS = 10  # that fell to a rare outcome: with fewer, what the outcomes vary by is chance itself
_BLOCK_VALUES = 2**20  # counts of drawn rows held at a time: 8 MB


@dataclass(frozen=True, eq=False)
class PairTerms:
    """What the terms H of one model are made of; rows in the caller's order.

    Attributes
    ----------
    residual : array of shape (n_samples, n_outcomes) or (n_samples, 1)
        Outcomes (one-hot) minus predictions; the event's alone for two outcomes, as in `SquaredL2`.
    cell : array of shape (n_samples,)
        Cell of each row.
    scale : array of shape (n_cells,)
        What a product of residuals counts, ``1 / (rows - 1)``; 0 for a cell of one row.
    stated_deviation : float
        Standard deviation of T that the predictions state.
    minority : int
        Rows whose outcome is not the most frequent one of their cell.
    """

    residual: NDArray[np.float64]
    cell: NDArray[np.int64]
    scale: NDArray[np.float64]
    stated_deviation: float
    minority: int

    @classmethod
    def of(cls, sample: Sample, partition: Any) -> PairTerms:
        """Return the terms of a sample over the cells of a partition."""
        cells = sample.cells(partition)
        position = np.argsort(sample.row)
        residual = residuals(sample, sample.outcome)[position]
        others = cells.count - 1
        scale = np.divide(1.0, others, out=np.zeros(cells.n_cells), where=others > 0)
        return cls(
            residual[:, 1:] if sample.n_outcomes == 2 else residual,
            cells.index[position],
            scale,
            stated_deviation(sample, partition),
            sum(len(outcomes) - int(np.bincount(outcomes).max()) for outcomes in cells.split(sample.outcome)),
        )

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return len(self.cell)

    @cached_property
    def members(self) -> list[NDArray[np.int64]]:
        """Rows of each cell."""
        return np.split(np.argsort(self.cell, kind="stable"), np.cumsum(np.bincount(self.cell))[:-1])

    @cached_property
    def row_sum(self) -> NDArray[np.float64]:
        """Sum of the terms of each row, ``(n_samples,)``."""
        n_cells = len(self.scale)
        total = np.stack([np.bincount(self.cell, column, n_cells) for column in self.residual.T], axis=-1)
        others = np.einsum("ik,ik->i", self.residual, total[self.cell] - self.residual)
        return self.scale[self.cell] * others

    @property
    def estimate(self) -> float:
        """The debiased squared l2 miscalibration T."""
        return float(self.row_sum.sum() / self.n_samples)

    def inner(self, other: PairTerms) -> float:
        r"""Return :math:`\sum_{i \ne j} H_{ij} H'_{ij}` in O(n).

        Over rows that share a cell of both models, :math:`\sum_{ij} (e_i \cdot e_j)(e'_i \cdot e'_j)` is the squared
        Frobenius norm of :math:`\sum_i e_i e_i'^\top`.
        """
        pair = self.cell * len(other.scale) + other.cell
        order = np.argsort(pair, kind="stable")
        own = np.square(self.residual).sum(axis=1) * np.square(other.residual).sum(axis=1)
        total = 0.0
        for rows in np.split(order, np.flatnonzero(np.diff(pair[order])) + 1):
            if len(rows) > 1:
                e, f = self.residual[rows], other.residual[rows]
                scale = self.scale[self.cell[rows[0]]] * other.scale[other.cell[rows[0]]]
                few = len(rows) < e.shape[1]  # fewer rows than outcomes: their products are the smaller matrices
                squares = np.vdot(e @ e.T, f @ f.T) if few else np.square(e.T @ f).sum()
                total += scale * (squares - own[rows].sum())
        return float(total)

    def deviations(self, change: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        r"""Return what the estimate changes by as rows count more or less, ``(n_replicates,)`` each.

        With changes :math:`\xi`, ``(n_replicates, n_samples)``: the part linear in rows,
        :math:`\frac2n \sum_i \xi_i (H_{i\cdot} - \bar H)`, and that of pairs,
        :math:`\frac1n \sum_{i \ne j} \xi_i \xi_j H_{ij}`.
        """
        n = self.n_samples
        by_row = 2 / n * (change @ (self.row_sum - self.row_sum.mean()))
        own = np.square(self.residual).sum(axis=1) * self.scale[self.cell]
        by_pair = -np.square(change) @ own
        for scale, rows in zip(self.scale, self.members, strict=True):
            if scale > 0:
                by_pair += scale * np.square(change[:, rows] @ self.residual[rows]).sum(axis=1)
        return by_row, by_pair / n


@dataclass(frozen=True, eq=False)
class Differences:
    r"""Differences between the estimates of several models, and their variances.

    With the terms :math:`H = H_A - H_B` of a difference D, :math:`g_i = \sum_j H_{ij}` and :math:`Q = \sum_{i \ne j}
    H_{ij}^2`,

    .. math:: \mathrm{Var}(D) = \frac{2 Q}{n^2} + \max\Bigl(0, \frac{4}{n^2} \bigl[\sum_i (g_i - \bar g)^2 - Q\bigr]
              \Bigr),

    the sum over pairs and the sum over rows, from whose plain estimate the noise of the pairs is taken away. Both are
    bilinear in the models, so that one matrix of each serves all pairs; models on different rows have no terms in
    common. Where fewer than ten rows of a model fell to a rare outcome of their cell, the variance is at least
    :math:`(s_A + s_B)^2`, of the deviations that the predictions state.

    Attributes
    ----------
    estimate : array of shape (n_models,)
        Debiased squared l2 miscalibration of each model.
    by_pair, by_row : arrays of shape (n_models, n_models)
        Covariances of the sums over pairs and over rows.
    stated : array of shape (n_models,)
        Standard deviation of each estimate that the predictions state.
    few : array of shape (n_models,)
        Whether fewer than ten rows of a model fell to a rare outcome of their cell.
    """

    estimate: NDArray[np.float64]
    by_pair: NDArray[np.float64]
    by_row: NDArray[np.float64]
    stated: NDArray[np.float64]
    few: NDArray[np.bool_]

    @classmethod
    def of(cls, terms: Sequence[PairTerms], *, same_rows: bool) -> Differences:
        """Return the differences between models, all on the same rows or all on different ones."""
        by_pair, by_row = np.zeros((2, len(terms), len(terms)))
        for a, left in enumerate(terms):
            for b in range(a + 1) if same_rows else [a]:
                right = terms[b]
                inner = left.inner(right)
                centred = left.row_sum - left.row_sum.mean(), right.row_sum - right.row_sum.mean()
                by_pair[a, b] = by_pair[b, a] = 2 * inner / left.n_samples**2
                by_row[a, b] = by_row[b, a] = 4 * (centred[0] @ centred[1] - inner) / left.n_samples**2
        stated = np.array([part.stated_deviation for part in terms])
        few = np.array([part.minority < _FEW_ROWS for part in terms])
        return cls(np.array([part.estimate for part in terms]), by_pair, by_row, stated, few)

    @cached_property
    def variance(self) -> NDArray[np.float64]:
        """Variance of every difference, ``(n_models, n_models)``; 0 for models whose terms differ by rounding only."""
        pairs, rows = _contrast(self.by_pair), np.maximum(_contrast(self.by_row), 0.0)
        alone = self.by_pair.diagonal()
        plain = np.where(pairs > TIE_TOLERANCE * np.add.outer(alone, alone), pairs + rows, 0.0)
        stated = np.square(np.add.outer(self.stated, self.stated))
        return np.where(self.few_rows & (plain > 0), np.maximum(plain, stated), plain)

    @property
    def few_rows(self) -> NDArray[np.bool_]:
        """Whether a model of a pair has too few rows of rare outcomes to show a variance, ``(n_models, n_models)``."""
        return np.logical_or.outer(self.few, self.few)

    @property
    def informative(self) -> NDArray[np.bool_]:
        """Whether any pair of rows says something of the two models, ``(n_models, n_models)``: two of a cell vary."""
        alone = self.by_pair.diagonal()
        return np.add.outer(alone, alone) > 0

    @cached_property
    def shrinkage(self) -> NDArray[np.float64]:
        """What the bootstrap's sum over rows is multiplied by to have its variance here, ``(n_models, n_models)``."""
        plain = _contrast(self.by_row + 2 * self.by_pair)
        true = np.maximum(_contrast(self.by_row), 0.0)
        return np.sqrt(np.divide(true, plain, out=np.zeros_like(true), where=plain > 0))


def resample(
    models: Sequence[tuple[Sample, PairTerms]],
    differences: Differences,
    *,
    same_rows: bool,
    n_resamples: int,
    rng: SeedLike = None,
    workers: int = 1,
) -> NDArray[np.float64]:
    """Return what every difference deviates by on bootstrap samples of the rows, ``(n_models, n_models, n_resamples)``.

    Rows are drawn with replacement, the same ones for all models on the same rows. A row meets no copy of itself, so
    that the deviations are centred, and the sum over rows is shrunk: its plain bootstrap takes the noise of the pairs
    for signal, which near calibration triples the variance.
    """
    generator = validate_rng(rng)  # one seed for each set of rows
    schemes = [Bootstrap().draws(n_resamples, generator) for _ in (models[:1] if same_rows else models)]
    groups = [models] if same_rows else [[model] for model in models]
    by_row, by_pair = np.concatenate(
        [draws.map(partial(_deviations, models=group), workers) for draws, group in zip(schemes, groups, strict=True)],
        axis=1,
    )
    return differences.shrinkage[..., None] * (by_row[:, None] - by_row) + by_pair[:, None] - by_pair


def critical_value(null: NDArray[np.float64], observed: float, level: float) -> tuple[float, float]:
    """Return the p-value of an observed value, and the largest value whose p-value is above ``1 - level``.

    Of ``null (n_resamples,)`` the k-th largest, with ``k = (n_resamples + 1) (1 - level)`` rounded down; infinite if
    there are too few draws for the level.
    """
    tail = math.floor((len(null) + 1) * (1 - level) * (1 + TIE_TOLERANCE))
    largest = float(np.sort(null)[-tail]) if tail else math.inf
    return ResampledLaw(null).sf(observed), largest


def largest_deviations(differences: Differences, drawn: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the largest of all pairs' studentised deviations on each bootstrap sample, ``(n_resamples,)``."""
    error = np.sqrt(differences.variance)[..., None]
    return np.abs(np.divide(drawn, error, out=np.zeros_like(drawn), where=error > 0)).max(axis=(0, 1))


def _deviations(draws: BootstrapDraws, models: Sequence[tuple[Sample, PairTerms]]) -> NDArray[np.float64]:
    """Return the deviations by row and by pair, ``(2, n_models, n_resamples)``; any order of rows is as good."""
    base = models[0][0]
    blocks = []
    for part in draws.slices(max(_BLOCK_VALUES // base.n_samples, 1)):
        change = part.row_counts(base) - 1
        blocks.append(np.stack([terms.deviations(change) for _, terms in models], axis=1))
    return np.concatenate(blocks, axis=-1)


def _contrast(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the variance of every difference."""
    alone = covariance.diagonal()
    return np.add.outer(alone, alone) - 2 * covariance
