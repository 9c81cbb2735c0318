r"""The debiased squared l2 error as a U-statistic of groups of observations.

With the sums :math:`R_{gb}` of the (weighted) residuals of group g in cell b and their weights :math:`W_{gb}`,

.. math:: T = \frac1W \sum_{g \ne h} H_{gh}, \qquad H_{gh} = \sum_b c_b \, R_{gb} \cdot R_{hb}, \qquad
          c_b = \frac{W_b}{W_b^2 - \sum_g W_{gb}^2},

is unbiased for :math:`\sum_b \frac{W_b}{W} |\mu_b|^2` if all observations of a cell have the expected residual
:math:`\mu_b`, however the residuals of a group depend on each other. If every observation is a group by itself it is
`SquaredL2`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._sample import Sample


@dataclass(frozen=True, eq=False)
class GroupTerms:
    r"""The vectors :math:`(c_b^{1/2} R_{gb})_b` of all groups, whose inner products are the terms H.

    Attributes
    ----------
    total_weight : float
        Number (weight) of the observations.
    vector : array of shape (n_groups, n_dimensions)
        The vector of each group: one entry for each cell and outcome, of two outcomes for the event alone.
    centred : array of shape (n_groups, n_dimensions)
        The same of the residuals minus their mean in the cell.
    effective : array of shape (n_cells,)
        Number of groups of equal weight that a cell is worth, :math:`W_b^2 / \sum_g W_{gb}^2`, rounded down.
    unknown : float
        Share of the weight that lies in cells of a single group, whose error no pair of groups shows.
    """

    total_weight: float
    vector: NDArray[np.float64]
    centred: NDArray[np.float64]
    effective: NDArray[np.float64]
    unknown: float

    @classmethod
    def of(cls, sample: Sample, partition: Any) -> GroupTerms:
        """Return the terms of a sample over the cells of a partition."""
        cells = sample.cells(partition)
        ids = sample.row if sample.group is None else sample.group  # the same for all models of these observations
        _, group = np.unique(ids, return_inverse=True)
        n_groups, outcomes = int(group.max()) + 1, range(1 if sample.n_outcomes == 2 else 0, sample.n_outcomes)
        place, shape = group * cells.n_cells + cells.index, (n_groups, cells.n_cells)

        def sums(values: NDArray[np.float64] | None) -> NDArray[np.float64]:
            return np.bincount(place, values, n_groups * cells.n_cells).reshape(shape).astype(np.float64)

        weight = sums(sample.weight)
        squares = np.square(weight).sum(axis=0)
        pairs = np.square(cells.count) - squares
        several = (weight > 0).sum(axis=0) > 1
        factor = np.sqrt(np.divide(cells.count, pairs, out=np.zeros(cells.n_cells), where=several))
        vectors, centred = [], []
        for k in outcomes:
            residual = sums(sample.residual(k))
            mean = residual.sum(axis=0) / np.where(cells.count > 0, cells.count, 1.0)
            vectors.append(residual * factor)
            centred.append((residual - weight * mean) * factor)
        effective = np.floor(np.square(cells.count) / np.where(squares > 0, squares, 1.0) + 1e-9)
        total = float(cells.count.sum())
        unknown = float(cells.count[~several].sum() / total)
        return cls(total, np.concatenate(vectors, axis=1), np.concatenate(centred, axis=1), effective, unknown)

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.vector)

    @property
    def estimate(self) -> float:
        """The debiased squared l2 calibration error T."""
        total = self.vector.sum(axis=0)
        return float(total @ total - np.square(self.vector).sum()) / self.total_weight

    @property
    def term_sum(self) -> NDArray[np.float64]:
        """Sum of the terms of each group with the others, if its residuals are centred, ``(n_groups,)``.

        It includes the correction of a sample variance for few groups, :math:`(G / (G - 1))^{1/2}`.
        """
        found = self.centred @ self.vector.sum(axis=0) - (self.centred * self.vector).sum(axis=1)
        return (found - found.mean()) * np.sqrt(self.n_groups / max(self.n_groups - 1, 1))

    def inner(self, other: Any) -> float:
        r"""Return :math:`\sum_{g \ne h} H_{gh} H'_{gh}` of the centred residuals of two models on the same groups."""
        one, two = self.centred, other.centred
        own = np.square(one).sum(axis=1) @ np.square(two).sum(axis=1)
        if max(one.shape[1], two.shape[1]) <= self.n_groups:
            return float(np.square(one.T @ two).sum() - own)
        size = max(1, _BLOCK_VALUES // self.n_groups)
        starts = range(0, self.n_groups, size)
        return float(sum(np.vdot(one[i : i + size] @ one.T, two[i : i + size] @ two.T) for i in starts) - own)

    def deviations(self, change: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the changes of the estimate if groups count more or less, ``(n_replicates,)`` each.

        For changes ``(n_replicates, n_groups)``: the part linear in the groups, and that of the pairs of groups.
        """
        linear = 2 / self.total_weight * (change @ self.term_sum)
        own = np.square(change) @ np.square(self.centred).sum(axis=1)
        return linear, (np.square(change @ self.centred).sum(axis=1) - own) / self.total_weight

    @property
    def third_moment(self) -> float:
        r"""The ratio :math:`\operatorname{tr} M^3 / \operatorname{tr} M^2` of :math:`M = \sum_g u_g u_g^\top`.

        T is about :math:`\frac1W \sum_j \lambda_j (\chi^2_1 - 1)` near calibration, with the eigenvalues
        :math:`\lambda` of M, which are also those of the matrix of all inner products of the centred vectors u.
        """
        one = self.centred
        joint = one.T @ one if one.shape[1] <= self.n_groups else one @ one.T
        squared = joint @ joint
        second = float(np.trace(squared))
        return float(np.vdot(squared, joint)) / second if second > 0 else 0.0


_BLOCK_VALUES = 2**24
