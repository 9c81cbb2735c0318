r"""Errors made from cells: how far observed frequencies lie from predictions, on average (ECE) or at worst (MCE)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._sample import CellSums, Sample
from caltest.distances import Distance, total_variation
from caltest.partitions import Partition, VarianceTree
from caltest.statistics._base import Statistic


@dataclass(frozen=True)
class ECE(Statistic):
    r"""Expected calibration error, equation 6 of Vaicenavicius et al. (2019).

    .. math:: \hat\eta_d = \sum_{i=1}^L \hat p^{(i)} \, d(\hat g^{(i)}, \hat r^{(i)})

    with the share of rows, the average prediction and the outcome frequencies of each cell. Its target is the expected
    miscalibration averaged within cells; with a fixed partition it underestimates :math:`\eta_d` as n grows (Theorem
    2) and overestimates it in small samples, so that a value says little without its noise floor. It is nearly blind
    to under-confidence, which makes outcomes scatter less.

    Parameters
    ----------
    partition : Partition or callable
        Cells of the induced simplex; `VarianceTree()` with 2 ** round(0.3 log2 n) cells by default.
    distance : callable
        A function ``d(predicted, observed)`` of arrays ``(..., n_outcomes)``; total variation by default.

    References
    ----------
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, section 4.1.
    C. Guo et al. (2017), On calibration of modern neural networks, ICML.

    Examples
    --------
    Nixon et al. (2019), figure 4: predictions of 0.52 that are always wrong and of 0.58 that are always right share
    a cell, and the error all but vanishes.

    >>> import caltest
    >>> confidence = [[0.52, 0.48]] * 450 + [[0.58, 0.42]] * 550
    >>> y_true = [1] * 450 + [0] * 550
    >>> ece = caltest.ECE(partition=caltest.EqualWidth(10))
    >>> round(caltest.calibration_error(y_true, confidence, lens=caltest.Confidence(), statistic=ece), 6)
    0.003
    """

    partition: Partition | Any = VarianceTree()
    distance: Distance = total_variation

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        """Return the error ``(...)`` of outcomes ``(..., n_samples)``."""
        sums = CellSums.of(sample, sample.cells(self.partition), outcomes)
        return cell_distances(sums, self.distance) @ sums.share


@dataclass(frozen=True)
class MCE(Statistic):
    r"""Maximum calibration error: the distance in the worst occupied cell.

    .. math:: \max_i d(\hat g^{(i)}, \hat r^{(i)})

    Its target is the worst-case miscalibration :math:`\max_\mu d(r(\mu), \mu)` of section 3.2, averaged within cells.
    The cell with the fewest rows decides it as a rule: never a default.

    Parameters
    ----------
    partition : Partition or callable
        Cells of the induced simplex.
    distance : callable
        A function ``d(predicted, observed)`` of arrays ``(..., n_outcomes)``.

    Examples
    --------
    >>> import caltest
    >>> mce = caltest.MCE(partition=caltest.EqualWidth(2))
    >>> round(caltest.calibration_error([0, 1, 1, 1], [0.25, 0.25, 0.875, 1.0], statistic=mce), 6)
    0.25
    """

    partition: Partition | Any = VarianceTree()
    distance: Distance = total_variation

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        """Return the error ``(...)`` of outcomes ``(..., n_samples)``."""
        sums = CellSums.of(sample, sample.cells(self.partition), outcomes)
        distances = cell_distances(sums, self.distance)
        return np.where(sums.count > 0, distances, 0.0).max(axis=-1)


def cell_distances(sums: CellSums, distance: Distance) -> NDArray[np.float64]:
    """Return the distance ``(..., n_cells)`` in each cell; checks what a user's function returns."""
    distances = np.asarray(distance(sums.predicted, sums.observed), dtype=np.float64)
    if distances.shape != sums.observed.shape[:-1]:
        msg = (
            f"`distance` must reduce the last axis of arrays (..., n_outcomes): expected shape "
            f"{sums.observed.shape[:-1]}, got {distances.shape}."
        )
        raise ValueError(msg)
    return distances
