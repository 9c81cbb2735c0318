"""Expected difference of the entropies of predictions and of the labels of their predicted class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._sample import Sample
from caltest.predictions.cells._cells import CellSums, cells_of
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
        entropies = sample.of_predictions(_entropies)
        flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)

        def differences(some: NDArray[Any]) -> Floats:
            found = entropy_of(CellSums.of(sample, cells, some).observed)
            return sum(map(_distances, entropies, found.T), start=np.zeros(len(some))) / cells.count.sum()

        size = max(1, _BLOCK_COUNTS // (cells.n_cells * sample.n_outcomes))
        return in_batches(differences, flat, size).reshape(outcomes.shape[:-1])


def predicted_class(prob: Floats) -> Integers:
    """Return the predicted class of each observation, ``(n_samples,)``: the cells, one for each class."""
    return prob.argmax(axis=1)


def _entropies(sample: Sample) -> list[tuple[Floats, Floats]]:
    """Return, for each cell, sorted entropies ``(n,)`` and sums of weights and weighted entropies ``(2, n + 1)``."""
    cells = cells_of(sample, predicted_class)
    found = []
    for values, weight in zip(cells.split(entropy_of(sample.given)), cells.split(sample.weight_or_ones), strict=True):
        order = np.argsort(values, kind="stable")
        terms = np.stack([weight, weight * values])[:, order]
        found.append((values[order], np.concatenate([np.zeros((2, 1)), np.cumsum(terms, axis=1)], axis=1)))
    return found


def _distances(entropies: tuple[Floats, Floats], at: Floats) -> Floats:
    """Return the weighted sum of the distances of sorted entropies from each value, ``(n_replicates,)``."""
    ordered, sums = entropies
    below = sums[:, np.searchsorted(ordered, at)]
    weight, total = 2 * below - sums[:, -1:]
    return np.maximum(at * weight - total, 0.0)
