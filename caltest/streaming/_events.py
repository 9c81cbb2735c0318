"""The events of plain arrays, validated in one pass; all that is unusual is left to the validation of every test."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._events import read_events
from caltest.predictions._lens import Lens
from caltest.predictions._lenses import Canonical, ClassWise, Confidence
from caltest.predictions._validation import FLOAT32_ROUNDING, PAIR_ROUNDING, validate_given_problem

_BLOCK = 2**15  # probabilities that are copied at once, into the cache
_SURE = 0.99  # of the tolerance: sums closer to it depend on the order of summation, and are left to the validation


def events_of(y_true: Any, y_prob: Any, classes: Any, n_classes: int, lens: Lens) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the probability of each event and whether it happened, ``(n_samples,)``; refuse what is no problem."""
    plain = plain_events(y_true, y_prob, n_classes, lens) if classes is None else None
    if plain is not None:
        return plain
    prob, outcome = outcomes_of(y_true, y_prob, classes, n_classes, lens)
    return prob[:, 1], outcome


def outcomes_of(
    y_true: Any, y_prob: Any, classes: Any, n_classes: int, lens: Lens
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the probabilities of the outcomes ``(n_samples, n_outcomes)``, and the outcomes; refuse what is none."""
    prob, outcome = validate_given_problem(y_true, y_prob, classes)
    if prob.shape[1] != n_classes:
        msg = f"`y_prob` must have {n_classes} classes as the state has, got {prob.shape[1]}."
        raise ValueError(msg)
    return (prob, outcome) if type(lens) is Canonical else lens(prob, outcome)


def plain_events(y_true: Any, y_prob: Any, n_classes: int, lens: Lens) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Return the probability of each event and whether it happened, ``(n_samples,)``, perhaps the caller's arrays.

    The answer is that of the validation and the lens. It is None where they would refuse or change something, and for
    types and lenses that are not common.
    """
    plain = type(y_true) is np.ndarray and y_true.dtype.kind in "biu" and type(y_prob) is np.ndarray
    if not plain or y_prob.dtype not in (np.float32, np.float64) or y_true.shape != y_prob.shape[:1] or not y_true.size:
        return None
    if y_prob.ndim == 1:
        known = n_classes == 2 and type(lens) is Canonical
        return (y_prob, y_true) if known and _is_inside(y_true) and _is_inside(y_prob) else None
    if y_prob.shape[1:] != (n_classes,) or (y_true.dtype.kind == "b" and n_classes != 2):
        return None
    chosen = {Canonical: 1, Confidence: -1, ClassWise: getattr(lens, "k", 0)}.get(type(lens))
    return None if chosen is None else _events(y_true, y_prob, chosen)


def _is_inside(values: NDArray[Any]) -> bool:
    """Return whether all values are in [0, 1]; what is no number is not."""
    return values.dtype.kind == "b" or bool(values.min() >= 0 and values.max() <= 1)


def _events(label: NDArray[Any], prob: NDArray[Any], chosen: int) -> tuple[NDArray[Any], NDArray[Any]] | None:
    n_rows, n_classes = prob.shape
    size = max(_BLOCK // n_classes, 1)
    table, own = np.empty((min(size, n_rows), n_classes)), np.empty(min(size, n_rows), dtype=np.int64)
    event, happened = np.empty(n_rows), np.empty(n_rows, dtype=np.uint8)
    tolerance = _SURE * FLOAT32_ROUNDING * n_classes
    rounding = PAIR_ROUNDING if n_classes == 2 else 1.0  # as the validation divides rows
    for start in range(0, n_rows, size):
        rows = slice(start, min(start + size, n_rows))
        n = rows.stop - start
        table[:n], own[:n] = prob[rows], label[rows]
        if not read_events(table[:n], own[:n], chosen, tolerance, rounding, event[rows], happened[rows]):
            return None
    return event, happened
