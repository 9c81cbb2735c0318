"""Uncertainty calibration error: the entropy of predictions against the error rate of their top class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Floats
from caltest.predictions._sample import Sample
from caltest.predictions.cells._cells import cell_dtype
from caltest.predictions.cells._partitions import EqualWidth
from caltest.predictions.inputs._parts import sums_in_parts
from caltest.predictions.inputs._validation import one_of, validate_count
from caltest.results._naming import parameter
from caltest.statistics._classwise_cells import EntryCells, EntryStatistic, Layout, labels_of

_BLOCK = 2**20  # probabilities


@dataclass(frozen=True, repr=False)
class UCE(EntryStatistic):
    r"""Uncertainty calibration error (UCE) of Laves et al. (2020).

    .. math:: \sum_b \frac{n_b}{n} \bigl|\mathrm{err}_b - \mathrm{uncert}_b\bigr|, \qquad
              h_i = -\frac{1}{\log K} \sum_k p_{ik} \log p_{ik}

    with cells (bins) :math:`(j/L, (j+1)/L]` of the normalised entropy h, and the mean entropy uncert and the error rate
    err of the top prediction in each. It uses the whole prediction; behind a two-outcome lens both columns, K = 2.

    **It is not 0 for a calibrated model.** Such a model is wrong at the rate :math:`1 - \max_k p_{ik}`, not at the rate
    h. If it predicts (0.6, 0.4) for everybody and 60 % of the labels are of the first class, it is calibrated, and its
    UCE is 0.571, since it is wrong in 0.4 of all cases and the entropy is 0.971 (the authors' figure 3, where they call
    this model degenerate). With 3 % of the first class the same predictions are far off, and UCE is 0.001. The p-value
    is valid all the same, but it shows only whether UCE is larger than that of a calibrated model with these
    predictions. Prefer `ECE` behind `Confidence`.

    Parameters
    ----------
    n_cells : int
        Number of cells L; the first one contains 0 too.

    Raises
    ------
    TypeError
        If ``n_cells`` is not an integer.
    ValueError
        If ``n_cells`` < 1.

    See Also
    --------
    ECE : Compares the confidence, not the entropy, with the error rate.
    ClassConditionalUCE : The same for each predicted class.
    EntropyDifference : Compares the entropy with that of the labels of a predicted class.
    caltest.estimation.normalized_entropy : The uncertainty h.

    References
    ----------
    M.-H. Laves, S. Ihler, K.-P. Kortmann and T. Ortmaier (2020), Uncertainty Calibration Error: A New Metric for
    Multi-Class Classification, submission to ICLR 2021, OpenReview, equations 11 and 15 to 17.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> result = caltest.calibration_test(y_true, y_prob, statistic=caltest.statistics.UCE(), n_resamples=99, rng=0)
    >>> round(result.statistic, 6), round(result.noise_floor, 2)
    (0.036385, 0.01)

    A calibrated model, and one that is not:

    >>> import numpy as np
    >>> y_prob = np.tile([0.6, 0.4], (1000, 1))
    >>> for first in (600, 30):
    ...     y_true = np.repeat([0, 1], [first, 1000 - first])
    ...     found = [caltest.calibration_error(y_true, y_prob, statistic=error) for error in (UCE(), caltest.ECE())]
    ...     print([round(float(value), 3) for value in found])
    [0.571, 0.0]
    [0.001, 0.57]
    """

    words = "average error of the uncertainty"

    n_cells: int = parameter(15, validate_count)

    def evaluate_signs(self, sample: Sample, signs: NDArray[np.int8]) -> None:
        """Return None: the uncertainty of a prediction is not the expected frequency of an outcome."""

    def entry_cells(self, sample: Sample) -> EntryCells:
        """Return the cells, computed once: all entries of an observation but the top one lie in that of its entropy."""
        return sample.once(entropy_cells, self._layout())

    def _layout(self) -> Layout:
        return Layout(EqualWidth(self.n_cells, closed="right"), max_prob=True, class_conditional=False)


@dataclass(frozen=True, repr=False)
class ClassConditionalUCE(UCE):
    r"""Class-wise uncertainty calibration error (Laves et al. 2020): the UCE, averaged over the predicted classes.

    .. math:: \sum_{k=1}^K v_k \sum_b \frac{n_{bk}}{n_k} \bigl|\mathrm{err}_{bk} - \mathrm{uncert}_{bk}\bigr|

    over the :math:`n_k` observations whose top prediction is k, in cells (bins) of their normalised entropy as in
    `UCE`. Like `UCE` it is not 0 for a calibrated model. A class that is never predicted adds 0; the authors' mean, and
    `caltest.torch.uce_loss`, divide by the number of classes that are predicted. It is not ``Classwise(UCE())``, the
    entropy of each class against the rest.

    Parameters
    ----------
    n_cells : int
        Cells of each class.
    class_weight : {"equal", "observations"}
        :math:`v_k = 1 / K`, or :math:`v_k = n_k / n`.

    Raises
    ------
    TypeError
        If ``n_cells`` is not an integer, or ``class_weight`` is not a text.
    ValueError
        If ``n_cells`` < 1, or ``class_weight`` is unknown.

    See Also
    --------
    ClassConditionalECE : Compares the confidence, not the entropy, with the error rate.
    caltest.torch.uce_loss : The same as a penalty in training, also by label.

    References
    ----------
    M.-H. Laves, S. Ihler, K.-P. Kortmann and T. Ortmaier (2020), Uncertainty Calibration Error: A New Metric for
    Multi-Class Classification, submission to ICLR 2021, OpenReview, section 7.3.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=caltest.statistics.ClassConditionalUCE()), 9)
    0.037836794
    """

    words = "average error of the uncertainty given the class"

    class_weight: str = parameter("equal", one_of("equal", "observations"))

    def _layout(self) -> Layout:
        return replace(super()._layout(), class_conditional=True, class_weight=self.class_weight)


def entropy_cells(sample: Sample, layout: Layout) -> EntryCells:
    """Return cells of the normalised entropy, of all observations or by predicted class; for `Sample.once`."""
    entropy, top = normalised_entropy(sample.given), sample.given.argmax(axis=1)
    n_groups, n_cells = sample.n_outcomes if layout.class_conditional else 1, layout.partition.n_cells
    row_cell = labels_of(layout.partition, entropy)
    if layout.class_conditional:
        row_cell = top * n_cells + row_cell
    size = n_groups * n_cells
    count = sums_in_parts(row_cell, sample.weight_or_ones, size)
    expected = sums_in_parts(row_cell, sample.weight_or_ones * entropy, size)
    importance = layout.importance(count.reshape(n_groups, n_cells)).ravel()
    cell = np.where(top[:, None] == np.arange(sample.n_outcomes), size, row_cell[:, None]).astype(cell_dtype(size))
    return EntryCells(cell, count, expected, importance)


def entropy_of(prob: NDArray[Any]) -> Floats:
    """Return the entropy of the last axis in nats, ``(...)``; 0 log 0 = 0, a rest below 0 counts as 0.

    Large arrays are converted to doubles in parts.
    """
    flat = prob.reshape(-1, prob.shape[-1])
    found, size = np.empty(len(flat)), max(1, _BLOCK // flat.shape[1])
    for start in range(0, len(flat), size):
        positive = np.clip(flat[start : start + size], 0.0, None, dtype=np.float64)
        logarithm = np.log(np.where(positive > 0, positive, 1.0))
        found[start : start + size] = 0.0 - (positive * logarithm).sum(axis=1)
    return found.reshape(prob.shape[:-1])


def normalised_entropy(prob: NDArray[Any]) -> Floats:
    """Return the entropy of the last axis divided by its largest possible value, ``(...)``: from 0 to 1."""
    return np.minimum(entropy_of(prob) / np.log(prob.shape[-1]), 1.0)  # rounding could exceed it
