"""The ECE of the top prediction, on the whole prediction: errors of the confidence that change their sign."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Floats
from caltest.predictions._lens import outcome_dtype
from caltest.predictions._sample import Sample
from caltest.predictions.cells._cells import CellSums, cell_dtype, cells_of
from caltest.predictions.cells._partitions import EqualWidth
from caltest.predictions.inputs._validation import require, validate_count
from caltest.resampling.distributions._base import Distribution
from caltest.resampling.draws._signs import signed_sums
from caltest.resampling.draws._summaries import CellCounts, EntryCounts
from caltest.results._naming import parameter
from caltest.statistics._base import Statistic
from caltest.statistics._binned import ECE


def _validate_odd(value: Any, name: str) -> None:
    require(validate_count(value, name) % 2, f"`{name}` must be odd, so that 0.5 is not an edge", value)


@dataclass(frozen=True, repr=False)
class ConfidenceECE(Statistic):
    r"""ECE of the confidence in cells (bins) of equal width, on the whole prediction; of the event for two outcomes.

    .. math:: \sum_{b=1}^L \frac{n_b}{n} \bigl|\mathrm{acc}_b - \mathrm{conf}_b\bigr|

    with the average confidence (largest probability) and the accuracy of the :math:`n_b` observations in each cell. It
    is the expected calibration error of Guo et al. (2017), computed on the whole prediction so that it can be combined
    with statistics of all classes on the same draws, as in `Omnibus`. For two outcomes it is the ECE of the event: of
    its probability for two classes, and of the confidence again behind `Confidence`.

    An edge belongs to the cell that is nearer to 0 or 1, ``EqualWidth(n_cells, closed="outer")``, so that the value
    stays the same if event and complement are exchanged. Apart from confidences on an edge it is
    ``ECE(EqualWidth(n_cells))`` behind the lens `Confidence`. Among equally probable classes the first is predicted.
    Sample weights replace counts.

    Parameters
    ----------
    n_cells : int
        Number of cells; odd, so that 0.5 is not an edge.

    Raises
    ------
    TypeError
        If ``n_cells`` is not an integer.
    ValueError
        If ``n_cells`` is less than 1 or even.

    See Also
    --------
    ECE : Any cells and distances; the cells of a tree by default.
    caltest.statistics.RMSCE : Root mean square of the same gaps.

    References
    ----------
    C. Guo et al. (2017), On calibration of modern neural networks, ICML.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=caltest.statistics.ConfidenceECE()), 6)
    0.03978
    """

    words = "average error of the confidence"

    n_cells: int = parameter(15, _validate_odd)

    measures_scatter = True

    @cached_property
    def _partition(self) -> EqualWidth:
        return EqualWidth(self.n_cells, closed="outer")

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return the error ``(...)`` of outcomes ``(..., n_samples)``."""
        top, event = _event_of(sample)
        happened = outcomes if top is None else (outcomes == top).view(np.uint8)
        return self.evaluate_summary(sample, CellSums.of(event, cells_of(event, self._partition), happened))

    def summary(self, sample: Sample) -> CellCounts | EntryCounts | None:
        """Return what suffices: how often the event, or the predicted class, happened in each cell."""
        if sample.n_outcomes == 2:
            return CellCounts(self._partition)
        return None if sample.is_large else sample.once(_predicted_entries, self._partition)

    def evaluate_summary(self, sample: Sample, counted: Any) -> Floats:
        """Return the error of drawn counts."""
        if isinstance(counted, CellSums):
            return _error(counted.count, counted.predicted_sum, counted.observed_count[..., 1])
        cells = cells_of(_event_of(sample)[1], self._partition)
        return _error(cells.count, cells.null_sum, counted[:, :-1])

    def evaluate_signs(self, sample: Sample, signs: NDArray[np.int8]) -> Floats:
        """Return the error of signed residuals."""
        top, event = _event_of(sample)
        event = event if top is None else event.relabelled((sample.outcome == top).view(np.uint8))
        cells = cells_of(event, self._partition)
        sums = signed_sums(sample, signs, cells.index, cells.n_cells, of=event, outcomes=slice(1, 2))[..., 0]
        return np.abs(sums).sum(axis=-1) / cells.count.sum()

    def exact_distribution(self, sample: Sample) -> Distribution | None:
        """Return the exact null distribution, for two outcomes without weights."""
        return ECE(self._partition).exact_distribution(sample)


def _error(count: Floats, predicted_sum: Floats, events: NDArray[Any]) -> Floats:
    """Return the error of the number (weight) of events in each cell, ``(..., n_cells)``."""
    # The rows of float32 predictions miss the sum 1; so neither outcome has precedence.
    expected = (predicted_sum[..., 1] + (count - predicted_sum[..., 0])) / 2
    return np.abs(events - expected).sum(axis=-1) / count.sum(axis=-1)


def _predicted_entries(sample: Sample, partition: EqualWidth) -> EntryCounts:
    """Return the cell of the entry of each predicted class; all other entries share the last cell."""
    top, confidence = sample.of_predictions(_top_sample)
    cells = cells_of(confidence, partition)
    entry = np.full((sample.n_samples, sample.n_outcomes), cells.n_cells, dtype=cell_dtype(cells.n_cells + 1))
    entry[np.arange(sample.n_samples), top] = cells.index
    return EntryCounts(entry, cells.n_cells + 1)


def _event_of(sample: Sample) -> tuple[NDArray[Any] | None, Sample]:
    """Return the predicted class and the sample of the event that it is right; of two outcomes None and the sample."""
    return (None, sample) if sample.n_outcomes == 2 else sample.of_predictions(_top_sample)


def _top_sample(sample: Sample) -> tuple[NDArray[Any], Sample]:
    """Return the predicted class of each observation, and the sample of the event that it is right, without labels.

    It is not sorted by the event, unlike other samples of two outcomes: the order of draws is that of ``sample``.
    """
    row = np.arange(sample.n_samples)
    top = sample.given.argmax(axis=1)
    kinds = [sample.given] if sample.given_null is sample.given else [sample.given, sample.given_null]
    rights = (prob[row, top].astype(np.float64) for prob in kinds)
    given, null = [np.column_stack([1.0 - right, right]) for right in rights] * (3 - len(kinds))
    unknown = np.zeros(sample.n_samples, dtype=np.uint8)
    return top.astype(outcome_dtype(sample.n_outcomes)), Sample(given, unknown, null, sample.row, sample.weight)
