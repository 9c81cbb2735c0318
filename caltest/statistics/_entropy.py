"""Errors of uncertainty: does the entropy of a prediction say how often its top class is wrong?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._partitions import EqualWidth
from caltest.predictions._sample import Sample
from caltest.predictions._validation import validate_count
from caltest.resampling._draws import cell_dtype
from caltest.statistics._classwise_cells import EntryCells, EntryStatistic, sum_in_cells


@dataclass(frozen=True)
class UCE(EntryStatistic):
    r"""Uncertainty calibration error of Laves et al. (2020).

    .. math:: \sum_b \frac{n_b}{n} \bigl|\mathrm{err}_b - \mathrm{uncert}_b\bigr|, \qquad
              h_i = -\frac{1}{\log K} \sum_k p_{ik} \log p_{ik}

    with cells :math:`(j/L, (j+1)/L]` of the normalised entropy h, its mean uncert and the error rate err of the top
    prediction in each. It uses the whole prediction; behind a two-outcome lens both columns, K = 2.

    A calibrated model is wrong at the rate :math:`1 - \max_k p_{ik}`, not at the rate h: the error of a perfect model
    is not 0, and a model that is wrong more often than it says may show a smaller one. Its p-value is exact all the
    same, but says only whether UCE is larger than that of a perfect model with these predictions. Prefer `ECE` behind
    `Confidence`.

    Parameters
    ----------
    n_cells : int
        Number of cells L; the first one holds 0 too.

    Raises
    ------
    ValueError
        If ``n_cells`` is not a positive integer.

    References
    ----------
    M.-H. Laves et al. (2020), Calibration of model uncertainty for dropout variational inference, equation 15.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> result = caltest.calibration_test(y_true, y_prob, statistic=caltest.UCE(), n_resamples=99, rng=0)
    >>> round(result.statistic, 6), round(result.noise_floor, 2)
    (0.036385, 0.01)
    """

    n_cells: int = 15

    def __post_init__(self) -> None:
        validate_count(self.n_cells, "n_cells")

    def entry_cells(self, sample: Sample) -> EntryCells:
        """Return the cells: all entries of a row but the top one lie in the cell of its entropy; computed once."""
        return sample.once(EntropyCells(self.n_cells))


@dataclass(frozen=True)
class EntropyCells:
    """Cells of equal width of the normalised entropy, closed on the right."""

    n_cells: int

    def __call__(self, sample: Sample) -> EntryCells:
        """Return the cells; see `Sample.once`."""
        entropy = normalised_entropy(sample.prob)
        event = np.broadcast_to(entropy[:, None], (len(entropy), 2))
        row_cell = EqualWidth(self.n_cells, closed="right").fit(event)(event)
        weight = np.ones(sample.n_samples) if sample.weight is None else sample.weight
        count = sum_in_cells(row_cell, weight, self.n_cells)
        expected = sum_in_cells(row_cell, weight * entropy, self.n_cells)
        top = sample.prob.argmax(axis=1)[:, None] == np.arange(sample.n_outcomes)
        cell = np.where(top, self.n_cells, row_cell[:, None]).astype(cell_dtype(self.n_cells))
        return EntryCells(cell, count, expected, count / count.sum())


def normalised_entropy(prob: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the entropy of each row over log n_outcomes, ``(n_samples,)``; 0 log 0 = 0, a rest below 0 counts as 0."""
    positive = np.clip(prob, 0.0, None)
    logarithm = np.log(np.where(positive > 0, positive, 1.0))
    return -(positive * logarithm).sum(axis=1) / np.log(prob.shape[1])
