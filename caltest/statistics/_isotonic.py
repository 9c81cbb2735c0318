"""The CORP miscalibration: the improvement of a proper score by isotonic recalibration fitted to the labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._cumulative import pool_adjacent_violators
from caltest.predictions._arrays import Floats
from caltest.predictions._sample import Sample
from caltest.predictions.inputs._validation import one_of
from caltest.results._naming import parameter
from caltest.statistics._base import Statistic, sum_of_terms


@dataclass(frozen=True, repr=False)
class IsotonicError(Statistic):
    r"""Miscalibration term of the CORP score decomposition (Dimitriadis et al. 2021), for two-outcome lenses.

    .. math:: \mathrm{MCB} = \frac1n \sum_i S(p_i, y_i) - \frac1n \sum_i S(\hat p_i, y_i)

    with the event's probability :math:`p_i`, its indicator :math:`y_i`, and :math:`\hat p` the non-decreasing function
    of :math:`p` that fits the labels best. The pool-adjacent-violators algorithm, which pools tied probabilities first,
    minimises both scores at once. Neither cells nor a bandwidth have to be chosen. Its target is the improvement that
    recalibration could bring if the calibration function is non-decreasing. In a finite sample it is biased upwards by
    an amount of the order :math:`n^{-2/3}`, because :math:`\hat p` was fitted to these labels: compare it with its
    noise floor.

    Under a known calibration function :math:`\rho`, :math:`\rho(p_i)` replaces :math:`p_i` in the first sum.
    :math:`\hat p` remains a non-decreasing function of :math:`p`, so that the error may be negative where :math:`\rho`
    decreases.

    Parameters
    ----------
    score : {"brier", "log"}
        :math:`(p - y)^2`, or :math:`-\log` of the probability of the outcome, in nats, with 0 log 0 = 0; it is infinite
        if an outcome of probability 0 happened.

    Raises
    ------
    TypeError
        If ``score`` is not a text.
    ValueError
        If ``score`` is unknown.

    See Also
    --------
    caltest.score_decomposition : All terms: miscalibration, discrimination and uncertainty.
    ECE : Error in cells (bins).

    References
    ----------
    T. Dimitriadis, T. Gneiting and A. I. Jordan (2021), Stable reliability diagrams for probabilistic classifiers,
    Proceedings of the National Academy of Sciences 118, e2016191118.

    Examples
    --------
    Recalibration changes 0.25 and 0.75 to 0 and 1, and the mean score from 0.0625 to 0:

    >>> import caltest
    >>> y_true, y_prob = [0, 0, 1, 1], [0.25, 0.25, 0.75, 0.75]
    >>> caltest.calibration_error(y_true, y_prob, statistic=caltest.statistics.IsotonicError())
    0.0625
    """

    words = "error of the isotonic fit"

    score: str = parameter("brier", one_of("brier", "log"))

    n_outcomes = 2
    measures_scatter = True

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return the error ``(...)`` of outcomes ``(..., n_samples)``."""
        return stated_score(sample, outcomes, self.score) - recalibrated_score(sample, outcomes, self.score)


def stated_score(sample: Sample, outcomes: NDArray[Any], score: str) -> Floats:
    """Return the mean score ``(...)`` of the predicted probabilities, for two outcomes."""
    of_rows, _ = SCORES[score]
    return sum_of_terms(sample, outcomes, sample.once(of_rows)) / sample.total_weight


def recalibrated_score(sample: Sample, outcomes: NDArray[Any], score: str) -> Floats:
    """Return the mean score ``(...)`` of the isotonic fit to the outcomes themselves, for two outcomes."""
    _, of_blocks = SCORES[score]
    flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
    if sample.weight is None:
        size, events, first = pool_adjacent_violators(flat, sample.once(tie_masks))
        sums = np.add.reduceat(of_blocks(size, events), first[:-1])
    else:
        sums = np.array([of_blocks(*_weighted_blocks(sample, outcome)).sum() for outcome in flat])
    return sums.reshape(outcomes.shape[:-1]) / sample.total_weight


def climatological_score(sample: Sample, outcomes: NDArray[Any], score: str) -> Floats:
    """Return the mean score ``(...)`` of the base rate of the outcomes, for two outcomes."""
    _, of_blocks = SCORES[score]
    total = sample.total_weight
    return of_blocks(total, (sample.weight_or_ones * outcomes).sum(axis=-1)) / total


def tie_masks(sample: Sample) -> NDArray[np.uint64]:
    """Return the bitmaps of tied blocks, ``(3, n_words)``: see `pool_adjacent_violators`."""
    rises = np.diff(sample.event) > 0
    alone = np.append(True, rises) & np.append(rises, True)
    bits = np.zeros((3, -(-sample.n_samples // 64) * 64), dtype=bool)
    bits[:, : sample.n_samples] = np.append(rises, False), alone, np.append(alone[1:], False)
    return np.packbits(bits, axis=1, bitorder="little").view(np.uint64)


def _weighted_blocks(sample: Sample, outcome: NDArray[Any]) -> tuple[Floats, Floats]:
    """Return the weights, and those of the events, of the blocks of a weighted isotonic fit, ``(n_blocks,)`` each."""
    from scipy.optimize import isotonic_regression

    start = np.flatnonzero(np.append(True, np.diff(sample.event) > 0))
    size = np.add.reduceat(sample.weight_or_ones, start)
    events = np.add.reduceat(sample.weight_or_ones * outcome, start)
    blocks = isotonic_regression(events / size, weights=size).blocks[:-1]
    return np.add.reduceat(size, blocks), np.add.reduceat(events, blocks)


def _brier_of_rows(sample: Sample) -> Floats:
    """Return the score of each observation and outcome, ``(n_samples, 2)``."""
    p = sample.null_prob[:, 1]
    return np.square(np.column_stack([p, 1 - p])) * sample.weight_or_ones[:, None]


def _log_of_rows(sample: Sample) -> Floats:
    with np.errstate(divide="ignore"):
        return -np.log(np.clip(sample.null_prob, 0.0, None)) * sample.weight_or_ones[:, None]


def _brier_of_blocks(size: Any, events: Any) -> Any:
    """Return the sum of the scores of blocks of observations whose probability is the share of their events."""
    return events * (size - events) / size


def _log_of_blocks(size: Any, events: Any) -> Any:
    from scipy.special import xlogy

    others = size - events
    return -xlogy(events, events / size) - xlogy(others, others / size)


SCORES: dict[str, tuple[Callable[[Sample], Floats], Callable[[Any, Any], Any]]] = {
    "brier": (_brier_of_rows, _brier_of_blocks),
    "log": (_log_of_rows, _log_of_blocks),
}
"""Proper scores: of every observation and outcome, and of blocks whose probability is the share of their events."""
