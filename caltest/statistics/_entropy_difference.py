"""Expected difference of the entropies of predictions and of the labels of their predicted class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._sample import Sample
from caltest.predictions.cells._cells import Cells, CellSums, cells_of
from caltest.statistics._base import Statistic, in_batches
from caltest.statistics._entropy import entropy_of

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
