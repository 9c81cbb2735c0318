"""Stable sorting of predictions, and the most probable classes: the same results on every machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Booleans, Floats, Integers, blocks
from caltest.predictions.inputs._refusals import refuse_if

_BLOCK = 2**16


def stable_order(values: NDArray[Any]) -> Integers:
    """Return ``np.argsort(values, kind="stable")`` along the last axis, several times faster.

    Positive doubles are ordered as the integers with the same bits. The lowest bits make room for the place, so that
    the keys are distinct, a fast sort brings along the places, and equal values keep their order. Different values that
    share a key are sorted afterwards; none of 32 bits do. If values are negative, NumPy's stable sort is used.
    """
    n = values.shape[-1]
    if (values[..., :-1] <= values[..., 1:]).all():  # as events of a sample are
        return np.arange(n) + np.zeros((*values.shape[:-1], 1), dtype=np.int64)
    value = np.add(values, 0.0, dtype=np.float64, order="C")  # 0.0 instead of -0.0
    bits = np.int64(n.bit_length())
    key = value.view(np.int64) >> bits
    key <<= bits
    key |= np.arange(n)
    key.sort()
    if (key[..., 0] < 0).any():
        return np.argsort(values, kind="stable")
    rows, keys = value.reshape(-1, n), key.reshape(-1, n)
    mixed = list(_places_of_mixed_keys(rows, keys, bits))
    key &= (np.int64(1) << bits) - 1
    for row, places in mixed:
        some = keys[row, places]  # in the order of their keys, and of their places where these are equal
        keys[row, places] = some[np.argsort(rows[row, some], kind="stable")]
    return key


def _places_of_mixed_keys(value: Floats, key: Integers, bits: np.int64) -> Iterator[tuple[int, Integers]]:
    """Yield the rows in which values share a key with a larger one before them, and the places of all that do.

    Places are in the order of the keys, ``(n_rows, n)``.
    """
    mask, first = (np.int64(1) << bits) - 1, np.arange(0, value.size, value.shape[1])[:, None]
    found = []
    for start in range(0, value.shape[1], _BLOCK):  # in parts, which take little memory
        ordered = value.reshape(-1).take((key[:, start : start + _BLOCK + 1] & mask) + first)
        row, place = np.nonzero(ordered[:, 1:] < ordered[:, :-1])
        found.append((row, start + place))
    in_row, places = np.concatenate(found, axis=1)
    for row in set(in_row.tolist()):
        own = key[row]
        shared = np.unique(own[places[in_row == row]] >> bits)
        begin = np.searchsorted(own, shared << bits)
        size = np.searchsorted(own, (shared + 1) << bits) - begin
        yield row, np.repeat(begin - np.cumsum(size) + size, size) + np.arange(size.sum())


_TIED, _EXTREME = 2.0**-50, 2.0**-30
"""Probabilities that differ by no more, 8 rounding errors of a double just below 1, are equal up to rounding, but for
those that are nearer to 0 or 1, where small differences may matter."""
TIED_FLOAT32, _EXTREME_FLOAT32 = 2.0**-22, 2.0**-10
"""The same of float32, for values that are frequent: such data are not dense, so that it is no coincidence."""
_FREQUENT = 5


def with_ties(prob: Floats) -> Floats:
    """Return two columns, sorted by the event, in which events that differ by rounding only have one probability.

    A softmax makes of the same logits in another order .6 and .6000000000000001. Cells and cumulative sums would part
    these observations, and reject a model that is calibrated where they are together.
    """
    event = prob[:, 1]
    step = np.diff(event)
    some = np.flatnonzero((step > 0) & (step <= TIED_FLOAT32))
    low, high = event[some], event[some + 1]
    near = (step[some] <= _TIED) & (low >= _EXTREME) & (high <= 1 - _EXTREME)
    frequent = ~near & (low >= _EXTREME_FLOAT32) & (high <= 1 - _EXTREME_FLOAT32)
    frequent[frequent] = _are_frequent(event, some[frequent])
    tied = step == 0
    tied[some[near]] = True
    if frequent.any():
        close = tied.copy()
        close[some[frequent]] = True
        first = np.flatnonzero(np.append(True, ~close))
        last = np.append(first[1:], len(event)) - 1
        if (event[last] - event[first]).max() <= 2 * TIED_FLOAT32:  # otherwise they are dense
            tied = close
    if not tied[some].any():
        return prob
    first = np.flatnonzero(np.append(True, ~tied))
    return np.repeat(prob[first], np.diff(first, append=len(prob)), axis=0)


def _are_frequent(event: Floats, last: Integers) -> Booleans:
    """Return where both of two neighbours often occur among increasing values; ``last`` is where the lower one is."""
    low = (last >= _FREQUENT - 1) & (event.take(last - _FREQUENT + 1, mode="clip") == event[last])
    return low & (last + _FREQUENT < len(event)) & (event.take(last + _FREQUENT, mode="clip") == event[last + 1])


def top_and_rest(prob: Floats, ranked: Integers) -> tuple[Floats, Floats]:
    """Return the probabilities of the ranked classes, and the sum of all others.

    1 minus the ranked ones would be rounding error where little is left.
    """
    top = np.take_along_axis(prob, ranked, axis=1).astype(np.float64)
    rest = np.empty(len(prob))
    for rows in blocks(*prob.shape):
        others = prob[rows].astype(np.float64)
        np.put_along_axis(others, ranked[rows], 0.0, axis=1)
        rest[rows] = others.sum(axis=1)
    return top, rest


def ranking(prob: Floats, size: int, name: str) -> Integers:
    """Return the classes of the largest probabilities, ``(n_samples, size)``; ties go to the smaller index."""
    refuse_if(size > prob.shape[1], f"`{name}` must be at most the number of classes, {prob.shape[1]}, got {size}.")
    return np.argsort(-prob, axis=1, kind="stable")[:, :size]
