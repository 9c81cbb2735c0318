r"""Residuals of forecasts in time, of which those less than a lead apart may depend on each other in any way.

The debiased squared l2 error takes pairs of observations that are a lead or more apart. Its variance follows from
cosines of the time (equal-weighted cosines, Lazarus, Lewis, Stock & Watson 2018): the sums of the residuals weighted by

.. math:: \sqrt2 \cos(\pi j (t + 1/2) / n), \qquad j = 1, ..., K,

with the number n of steps, are nearly independent of each other and of the plain sums, and have nearly the same
covariance, however the residuals depend on each other within a lead. So K of them are K observations of what varies,
and a mean over its standard error has Student's distribution with K degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._sample import Sample
from caltest.predictions.cells._cells import cells_of
from caltest.predictions.inputs._parts import sums_in_parts
from caltest.predictions.inputs._times import Timing
from caltest.statistics._segments import LARGEST_SHARE, rare_outcomes, sums_by_cell
from caltest.statistics._squared_l2_distribution import greatest_l2
from caltest.statistics._windows import Windows

FEWEST_COSINES = 3
"""With fewer, nothing is known of how much sums vary."""
_WINDOWS = 3  # as long as the lead for each cosine: faster ones miss what is shared within a lead
_FEW, _MOST = 8, 100  # cosines up to which only windows count, and more of which gain nothing
_WORTH = 2 - 1e-9  # windows of a cell; of the error of a cell of fewer nothing is known


def number_of_cosines(timing: Timing) -> int:
    """Return K: a third of the windows, and at most .4 n^(2/3) for n different times, or 8 where that is less."""
    n_times = len(np.unique(timing.step))
    return int(min(timing.n_windows / _WINDOWS + 1e-9, max(_FEW, 0.4 * n_times ** (2 / 3)), _MOST))


def fewest_windows() -> int:
    """Return how many windows as long as the lead are needed."""
    return FEWEST_COSINES * _WINDOWS


def cosines(timing: Timing) -> Iterator[Floats]:
    """Yield each cosine at the time of every observation, ``(n_samples,)``; at least two, whatever the number."""
    angle = np.pi * (np.arange(timing.n_steps) + 0.5) / timing.n_steps
    for j in range(1, max(number_of_cosines(timing), 2) + 1):
        yield (math.sqrt(2) * np.cos(j * angle))[timing.step]


def deviations_in_time(sample: Sample, parts: Floats) -> Floats:
    """Return what each cosine says by how much a sum deviates, ``(n_cosines,)``; their squares add up to its variance.

    ``parts (n_samples,)`` is what each observation adds to the sum, minus the mean of their weight.
    """
    assert sample.timing is not None
    whole = np.zeros(sample.n_samples, dtype=np.int64)
    return _cosine_sums(sample.timing, whole, parts[:, None], sample.weight_or_ones, 1)[:, 0, 0]


@dataclass(frozen=True, eq=False)
class SumsInTime:
    r"""The sums of a sample over cells (bins) and times, and the debiased squared l2 error.

    With the weighted residuals :math:`w_i e_i`, the weight :math:`W_b` of a cell and the pairs of observations of the
    cell that are at least a lead h apart,

    .. math:: T = \frac1W \sum_b c_b \sum_{|t_i - t_j| \ge h} w_i w_j \, e_i \cdot e_j, \qquad
              c_b = W_b \Big/ \sum_{|t_i - t_j| \ge h} w_i w_j.

    Cells that are worth fewer than two windows as long as the lead are unknown, and left out.

    Attributes
    ----------
    estimate : float
        T.
    count, factor : arrays of shape (n_cells,)
        Weights of the cells, and c; 0 in an unknown cell.
    mean : array of shape (n_cells, n_columns)
        Mean residual of each cell; of two outcomes that of the event alone.
    cosine : array of shape (n_cosines, n_cells, n_columns)
        Sums of the residuals minus the mean of their cell times each cosine, divided by what the mean took from them,
        and by the root of their number: their products sum up to the covariance of the sums of the cells.
    variance : array of shape (n_cells, n_columns)
        Variance of the sums of the cells if labels are independent and follow the predictions, or more.
    squares : array of shape (n_cells,)
        Sum of the squared lengths of the weighted residuals of each cell.
    inflation, largest_inflation : float
        Variance of the sum of the residuals over that of independent ones, at least 1, and the largest possible value.
    minority : float
        Number of labels that show that labels vary (`rare_outcomes`), in cells that are known, over the inflation: an
        effective number.
    timing : Timing
        When predictions were made.
    """

    estimate: float
    count: Floats
    factor: Floats
    mean: Floats
    cosine: Floats
    variance: Floats
    squares: Floats
    inflation: float
    largest_inflation: float
    minority: float
    timing: Timing

    @classmethod
    def of(cls, sample: Sample, partition: Any) -> SumsInTime:
        """Return the sums of a sample with times over the cells of a partition."""
        assert sample.timing is not None
        cells, timing = cells_of(sample, partition), sample.timing
        cell, weight, n_cells = cells.index, sample.weight_or_ones, cells.n_cells
        windows, count = Windows.of(cell, timing), sums_in_parts(cell, weight, n_cells)
        near = windows.products(weight)
        known = np.square(count) >= _WORTH * near
        factor = np.divide(count, np.square(count) - near, out=np.zeros(n_cells), where=known)
        columns = range(1 if sample.n_outcomes == 2 else 0, sample.n_outcomes)
        residual = np.column_stack([weight * ((sample.outcome == k) - sample.prob[:, k]) for k in columns])
        whole = sums_by_cell(cell, residual, n_cells)
        mean = whole / count[:, None]
        centred = residual - weight[:, None] * mean[cell]
        square = np.square(weight)
        pairs = np.square(whole).sum(axis=1) - sum(windows.products(column) for column in residual.T)
        together = Windows.of(np.zeros_like(cell), timing)
        independent = float(np.square(centred).sum())
        shared = sum(float(together.products(column)[0]) for column in centred.T)
        inflation = max(shared / independent, 1.0) if independent > 0 else 1.0
        prob = sample.prob[:, columns.start :]
        own = prob * (1 - prob) if len(columns) == 1 else prob  # an upper limit of more than two
        is_known = known[cell]
        return cls(
            estimate=float(factor @ pairs) / float(count.sum()),
            count=count,
            factor=factor,
            mean=mean,
            cosine=_cosine_sums(timing, cell, centred, weight, n_cells),
            variance=sums_by_cell(cell, square[:, None] * own, n_cells),
            squares=sums_in_parts(cell, np.square(residual).sum(axis=1), n_cells),
            inflation=inflation,
            largest_inflation=float(together.products(weight)[0] / square.sum()),
            minority=rare_outcomes(sample.outcome[is_known].astype(np.int64), sample.prob[is_known], cell[is_known])
            / inflation,
            timing=timing,
        )

    @property
    def total_weight(self) -> float:
        """Weight of all observations."""
        return float(self.count.sum())

    @property
    def n_cosines(self) -> int:
        """Number of cosines."""
        return len(self.cosine)

    @property
    def degrees(self) -> float:
        """Degrees of freedom of a variance."""
        return float(self.n_cosines)

    @property
    def is_known(self) -> bool:
        """Whether there are enough cosines for a variance."""
        return number_of_cosines(self.timing) >= FEWEST_COSINES

    @property
    def unknown(self) -> float:
        """How large the squared error may be in cells of a single window, which no pair of observations shows."""
        share = float(self.count[self.factor == 0].sum()) / self.total_weight
        return share * greatest_l2(max(self.mean.shape[1], 2))

    @cached_property
    def predicted_deviation(self) -> float:
        """Standard deviation of T according to the predictions, at the observed mean residuals.

        Sums vary as much more than those of independent labels as is observed. If no label differs from the others of
        its cell, nothing is observed, and all labels within a lead may be equal.
        """
        variance = self.variance * (self.inflation if self.minority else self.largest_inflation)
        pairs = 2 * float((np.square(self.factor)[:, None] * np.square(variance)).sum())
        along = 4 * float((np.square(self.mean) * variance)[self.factor > 0].sum())
        return math.sqrt(pairs + along) / self.total_weight

    @cached_property
    def scores(self) -> Floats:
        r"""The part of T that is linear in the residuals, times :math:`W / 2`, for each cosine, ``(n_cosines,)``."""
        return np.einsum("jbk,bk->j", self.cosine[:, self.factor > 0], self.mean[self.factor > 0])

    @cached_property
    def products(self) -> Floats:
        """The terms of T for all pairs of cosines, times W, ``(n_cosines, n_cosines)``."""
        root = self.cosine * np.sqrt(self.factor)[None, :, None]
        flat = root.reshape(self.n_cosines, -1)
        return flat @ flat.T

    def inner(self, other: SumsInTime) -> float:
        r"""Return what :math:`\sum_{i \ne j} H_{ij} H'_{ij}` of independent residuals is of sums in time.

        The products of different cosines have the same expectation, so that their sum is one of all K^2 pairs.
        """
        both = self.products * other.products
        return float(both.sum() - np.trace(both)) * self.n_cosines / (self.n_cosines - 1)

    def deviations(self, change: Floats) -> tuple[Floats, Floats]:
        """Return the changes of T if cosines count ``change (n_replicates, n_cosines)``: linear part, and pairs."""
        linear = 2 / self.total_weight * (change @ self.scores)
        by_pair = ((change @ self.products) * change).sum(axis=1) - np.square(change) @ self.products.diagonal()
        return linear, by_pair / self.total_weight


def _cosine_sums(timing: Timing, cell: Integers, centred: Floats, weight: Floats, n_cells: int) -> Floats:
    """Return the attribute ``cosine`` of weighted residuals ``(n_samples, n_columns)`` minus their means."""
    count, square = sums_in_parts(cell, weight, n_cells), np.square(weight)
    own, left, found = sums_in_parts(cell, square, n_cells), np.zeros(n_cells), []
    for cosine in cosines(timing):
        found.append(sums_by_cell(cell, cosine[:, None] * centred, n_cells))
        mean = sums_in_parts(cell, weight * cosine, n_cells) / count
        left += sums_in_parts(cell, square * np.square(cosine - mean[cell]), n_cells)
    # What is left of the variance of independent residuals where a cell is empty for a part of the time.
    share = np.maximum(left / (own * len(found)), 1 - LARGEST_SHARE)
    return np.stack(found) / np.sqrt(share * len(found))[None, :, None]
