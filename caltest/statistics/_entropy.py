"""Uncertainty calibration errors: the entropy of predictions against the errors, or the entropy, of their top class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._sample import Sample
from caltest.predictions.cells._cells import Cells, CellSums, cell_dtype, cells_of
from caltest.predictions.cells._partitions import EqualWidth
from caltest.predictions.inputs._parts import sums_in_parts
from caltest.predictions.inputs._validation import one_of, validate_count
from caltest.results._naming import parameter
from caltest.statistics._base import Statistic, in_batches
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


_BLOCK_COUNTS = 2**22  # of labels, by predicted class, draw and label


@dataclass(frozen=True, repr=False)
class EntropyDifference(Statistic):
    r"""Expected difference of entropies (Laves et al. 2020, equations 7 to 10), in nats, from 0 to log K.

    .. math:: \frac1n \sum_i \bigl|H(q_{t(i)}) - H(p_i)\bigr|, \qquad H(p) = -\sum_k p_k \log p_k

    where :math:`t(i)` is the predicted class of observation i (among equally probable ones the smaller index), and
    :math:`q_t` holds the label frequencies of all observations of the predicted class t. It is the error from which
    the authors derive `UCE`. Divide it by log K to compare numbers of classes.

    **It is not 0 for a calibrated model**, unless all predictions of the same class have the same entropy:
    :math:`q_t` is then about the mean of these predictions, and the entropy of a mean is at least the mean of the
    entropies. If half of the predictions are (0.9, 0.1) and half (0.6, 0.4), and both are right that often, it is
    0.174. The p-value, from simulated labels, is valid all the same; compare the value with its noise floor only. It
    cannot detect labels that are permuted within a predicted class: their frequencies have the same entropy.

    See Also
    --------
    UCE : Compares the normalised entropy with the error rate.
    caltest.estimation.entropy : The entropy of each prediction.

    References
    ----------
    M.-H. Laves, S. Ihler, K.-P. Kortmann and T. Ortmaier (2020), Uncertainty Calibration Error: A New Metric for
    Multi-Class Classification, submission to ICLR 2021, OpenReview, equations 7 to 10.

    Examples
    --------
    The authors' example: three inputs with labels 1, 1, 2 are predicted to be of class 1, q = (2/3, 1/3).

    >>> import caltest
    >>> from caltest.statistics import EntropyDifference
    >>> third = [[2 / 3, 1 / 3]] * 3
    >>> round(caltest.calibration_error([0, 0, 1], third, statistic=EntropyDifference()), 12)
    0.0
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> result = caltest.calibration_test(y_true, y_prob, statistic=EntropyDifference(), n_resamples=99, rng=0)
    >>> round(result.statistic, 4), round(result.noise_floor, 2), result.pvalue
    (0.3005, 0.16, 0.01)
    """

    words = "average difference of the entropies"

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return the statistic ``(...)`` of outcomes ``(..., n_samples)``."""
        cells = cells_of(sample, predicted_class)
        entropies = sample.of_predictions(_Entropies.of)
        few_labels = cells.n_cells * sample.n_outcomes <= sample.n_samples
        of_labels = _by_counting if few_labels else _by_sorting

        def differences(some: NDArray[Any]) -> Floats:
            return entropies.distances(of_labels(sample, cells, some)).sum(axis=1) / cells.count.sum()

        size = max(1, _BLOCK_COUNTS // (cells.n_cells * sample.n_outcomes if few_labels else sample.n_samples))
        flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
        return in_batches(differences, flat, size).reshape(outcomes.shape[:-1])


def predicted_class(prob: Floats) -> Integers:
    """Return the predicted class of each observation, ``(n_samples,)``: the cells, one for each class."""
    return prob.argmax(axis=1)


def _by_counting(sample: Sample, cells: Cells, outcomes: NDArray[Any]) -> Floats:
    """Return the entropies of the labels of cells, ``(n_replicates, n_cells)``."""
    return entropy_of(CellSums.of(sample, cells, outcomes).observed)


def _by_sorting(sample: Sample, cells: Cells, outcomes: NDArray[Any]) -> Floats:
    """Return the same where most of the labels of a cell do not occur."""
    from scipy.special import xlogy

    n_replicates, n_samples = outcomes.shape
    label = (cells.index * sample.n_outcomes + outcomes.astype(np.int64)).ravel()
    label += np.repeat(np.arange(n_replicates) * (cells.n_cells * sample.n_outcomes), n_samples)
    if sample.weight is None:
        label.sort()
        first = np.flatnonzero(np.append(True, label[1:] > label[:-1]))
        size = np.diff(first, append=len(label)).astype(np.float64)
    else:
        order = np.argsort(label, kind="stable")
        label = label[order]
        first = np.flatnonzero(np.append(True, label[1:] > label[:-1]))
        size = np.add.reduceat(sample.weight[order % n_samples], first)
    whole = n_replicates * cells.n_cells
    sums = np.bincount(label[first] // sample.n_outcomes, xlogy(size, size), whole).reshape(-1, cells.n_cells)
    return np.maximum(np.log(cells.count) - sums / cells.count, 0.0)


@dataclass(frozen=True, eq=False)
class _Entropies:
    """The entropies of predictions, sorted within cells that are laid one after the other.

    Attributes
    ----------
    place : array of shape (n_samples,)
        Entropies, to which those of a cell add its number times ``width``; increasing.
    sums : array of shape (2, n_samples + 1)
        Cumulative weights and weighted entropies.
    start : array of shape (n_cells + 1,)
        Position of the first entropy of each cell.
    width : float
        More than the largest entropy.
    """

    place: Floats
    sums: Floats
    start: Integers
    width: float

    @classmethod
    def of(cls, sample: Sample) -> _Entropies:
        """Return the entropies of the predictions of a sample."""
        cells, value, weight = cells_of(sample, predicted_class), entropy_of(sample.given), sample.weight_or_ones
        width = np.log(sample.n_outcomes) + 1
        order = np.lexsort((value, cells.index))
        terms = np.stack([weight, weight * value])[:, order]
        sums = np.concatenate([np.zeros((2, 1)), np.cumsum(terms, axis=1)], axis=1)
        start = np.searchsorted(cells.index[order], np.arange(cells.n_cells + 1))
        return cls(value[order] + width * cells.index[order], sums, start, width)

    def distances(self, at: Floats) -> Floats:
        """Return the weighted sums of the distances of the entropies of cells from values ``(n_replicates, n_cells)``.

        A value is compared with entropies that have lost digits, which matters only to those that are as good as equal.
        """
        first, last = self.sums[:, self.start[:-1]], self.sums[:, self.start[1:]]
        below = self.sums[:, np.searchsorted(self.place, at + self.width * np.arange(at.shape[1]))]
        weight, total = 2 * below - (first + last)[:, None]
        return np.maximum(at * weight - total, 0.0)
