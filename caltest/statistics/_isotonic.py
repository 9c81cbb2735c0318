r"""The CORP error: by how much isotonic recalibration, fitted to the labels, improves a proper score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._cumulative import pool_adjacent_violators
from caltest._compiled._lookup import sum_selected
from caltest.predictions._sample import Sample
from caltest.predictions._validation import validate_choice
from caltest.statistics._base import Statistic


@dataclass(frozen=True)
class IsotonicError(Statistic):
    r"""Miscalibration term of the CORP decomposition (Dimitriadis et al. 2021), for two-outcome lenses.

    .. math:: \mathrm{MCB} = \frac1n \sum_i S(p_i, y_i) - \frac1n \sum_i S(\hat p_i, y_i)

    with the event's probability :math:`p_i`, its indicator :math:`y_i`, and :math:`\hat p` the increasing function of
    :math:`p` that fits the labels best: pool-adjacent-violators, tied probabilities pooled first, which minimises both
    scores at once. No cells and no smoothing are chosen. Its target is what recalibration could gain if the calibration
    function is increasing; from a finite sample it is biased upwards, as :math:`\hat p` was fitted to these labels, by
    an amount of the order :math:`n^{-2/3}`: compare it with its noise floor. `score_decomposition` gives the other
    terms.

    Under a known calibration function :math:`\rho`, :math:`\rho(p_i)` takes the place of :math:`p_i` in the first sum;
    :math:`\hat p` remains an increasing function of :math:`p`, so that the error may be negative where :math:`\rho`
    decreases.

    Parameters
    ----------
    score : {"brier", "log"}
        :math:`(p - y)^2`, or :math:`-\log p` of what happened, in nats, with 0 log 0 = 0: infinite if an excluded
        outcome happened.

    Raises
    ------
    ValueError
        If ``score`` is none of these, or the lens has more than two outcomes.

    References
    ----------
    T. Dimitriadis, T. Gneiting and A. I. Jordan (2021), Stable reliability diagrams for probabilistic classifiers,
    Proceedings of the National Academy of Sciences 118, e2016191118.

    Examples
    --------
    Recalibration turns 0.25 and 0.75 into 0 and 1, and a mean score of 0.0625 into 0:

    >>> import caltest
    >>> y_true, y_prob = [0, 0, 1, 1], [0.25, 0.25, 0.75, 0.75]
    >>> caltest.calibration_error(y_true, y_prob, statistic=caltest.IsotonicError())
    0.0625
    """

    score: str = "brier"

    measures_scatter = True

    def __post_init__(self) -> None:
        validate_choice(self.score, "score", tuple(SCORES))

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        """Return the error ``(...)`` of outcomes ``(..., n_samples)``."""
        require_two_outcomes(sample, type(self).__name__)
        return stated_score(sample, outcomes, self.score) - recalibrated_score(sample, outcomes, self.score)


def require_two_outcomes(sample: Sample, name: str) -> None:
    """Refuse more outcomes than an event and the rest."""
    if sample.n_outcomes != 2:
        msg = f"`{name}` needs a two-outcome lens such as Confidence(), got {sample.n_outcomes} outcomes."
        raise ValueError(msg)


def stated_score(sample: Sample, outcomes: NDArray[Any], score: str) -> NDArray[np.float64]:
    """Return the mean score ``(...)`` of the probabilities that were stated, two outcomes."""
    of_rows, _ = SCORES[score]
    flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
    return sum_selected(flat, sample.once(of_rows)).reshape(outcomes.shape[:-1]) / _total(sample)


def recalibrated_score(sample: Sample, outcomes: NDArray[Any], score: str) -> NDArray[np.float64]:
    """Return the mean score ``(...)`` of the isotonic fit to the outcomes themselves, two outcomes."""
    _, of_blocks = SCORES[score]
    flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
    if sample.weight is None:
        size, events, first = pool_adjacent_violators(flat, sample.once(_tie_masks))
        sums = np.add.reduceat(of_blocks(size, events), first[:-1])
    else:
        sums = np.array([of_blocks(*_weighted_blocks(sample, sample.weight, outcome)).sum() for outcome in flat])
    return sums.reshape(outcomes.shape[:-1]) / _total(sample)


def climatological_score(sample: Sample, outcomes: NDArray[Any], score: str) -> NDArray[np.float64]:
    """Return the mean score ``(...)`` of the base rate of the outcomes, two outcomes."""
    _, of_blocks = SCORES[score]
    total = _total(sample)
    weight = 1.0 if sample.weight is None else sample.weight
    return of_blocks(total, (weight * outcomes).sum(axis=-1)) / total


def _total(sample: Sample) -> float:
    return float(sample.n_samples if sample.weight is None else sample.weight.sum())


def _tie_masks(sample: Sample) -> NDArray[np.uint64]:
    """Return the bitmaps of tied blocks, ``(3, n_words)``: see `pool_adjacent_violators`."""
    rises = np.diff(sample.event) > 0
    alone = np.append(True, rises) & np.append(rises, True)
    bits = np.zeros((3, -(-sample.n_samples // 64) * 64), dtype=bool)
    bits[:, : sample.n_samples] = np.append(rises, False), alone, np.append(alone[1:], False)
    return np.packbits(bits, axis=1, bitorder="little").view(np.uint64)


def _weighted_blocks(
    sample: Sample, weights: NDArray[np.float64], outcome: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return weight and weight of events of the blocks of the isotonic fit to weighted rows, ``(n_blocks,)`` each."""
    from scipy.optimize import isotonic_regression

    weighs = weights > 0
    event, weight = sample.event[weighs], weights[weighs]
    start = np.flatnonzero(np.append(True, np.diff(event) > 0))
    size = np.add.reduceat(weight, start)
    events = np.add.reduceat(weight * outcome[weighs], start)
    blocks = isotonic_regression(events / size, weights=size).blocks[:-1]
    return np.add.reduceat(size, blocks), np.add.reduceat(events, blocks)


def _brier_of_rows(sample: Sample) -> NDArray[np.float64]:
    """Return the score of each row and outcome, ``(n_samples, 2)``."""
    p = sample.null_prob[:, 1]
    return _weigh(sample, np.square(np.column_stack([p, 1 - p])))


def _log_of_rows(sample: Sample) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        return _weigh(sample, -np.log(np.clip(sample.null_prob, 0.0, None)))


def _weigh(sample: Sample, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    if sample.weight is None:
        return scores
    return np.where(sample.weight[:, None] > 0, scores, 0.0) * sample.weight[:, None]


def _brier_of_blocks(size: Any, events: Any) -> Any:
    """Return the sum of the scores of rows whose probability is the share of their events."""
    return events * (size - events) / size


def _log_of_blocks(size: Any, events: Any) -> Any:
    from scipy.special import xlogy

    others = size - events
    return -xlogy(events, events / size) - xlogy(others, others / size)


SCORES: dict[str, tuple[Callable[[Sample], NDArray[np.float64]], Callable[[Any, Any], Any]]] = {
    "brier": (_brier_of_rows, _brier_of_blocks),
    "log": (_log_of_rows, _log_of_blocks),
}
"""Proper scores: of every row and outcome, and of blocks of rows that share the probability that fits them best."""
