"""Recalibration of each class against the rest, and the normalisation of what comes out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Booleans, Floats, Integers
from caltest.predictions.cells._order import top_and_rest
from caltest.predictions.inputs._validation import PAIR_ROUNDING
from caltest.recalibration.maps._base import Recalibrator
from caltest.recalibration.maps._logits import FLOOR, Objective, blocks


def event_logarithms(prob: NDArray[Any]) -> Iterator[tuple[slice, Floats, Floats]]:
    r"""Yield :math:`\log p_{ik}` and :math:`\log(1 - p_{ik})`, blocks of rows at a time.

    The most probable class has as complement the sum of the others, as 1 - p would be rounding error near 1. Numbers
    below `FLOOR` count as `FLOOR`.

    Yields
    ------
    rows : slice
        The rows.
    event, rest : arrays of shape (n_rows, n_classes)
        Both logarithms.
    """
    for rows in blocks(*prob.shape):
        part = prob[rows].astype(np.float64)
        top = part.argmax(axis=1)[:, None]
        rest = 1.0 - part
        np.put_along_axis(rest, top, top_and_rest(part, top)[1][:, None], axis=1)
        yield rows, np.log(np.maximum(part, FLOOR)), np.log(np.maximum(rest, FLOOR))


def n_functions(n_classes: int) -> int:
    """Return the number of classes that have a function: two classes need one."""
    return n_classes if n_classes > 2 else 1


def class_logarithms(prob: NDArray[Any]) -> Iterator[tuple[int, Floats, Floats]]:
    r"""Yield the same for each class that has a function: all, or the second of two.

    Yields
    ------
    k : int
        The class.
    event, rest : arrays of shape (n_samples,)
        Both logarithms.
    """
    n_classes = prob.shape[1]
    top = prob.argmax(axis=1)
    others = top_and_rest(prob, top[:, None])[1]
    for k in range(n_classes) if n_classes > 2 else (1,):
        event = prob[:, k].astype(np.float64)
        rest = np.where(top == k, others, 1.0 - event)
        yield k, np.log(np.maximum(event, FLOOR)), np.log(np.maximum(rest, FLOOR))


_COLUMNS = 16  # columns that are copied together, so that memory is read in order

Map = tuple[NDArray[Any], NDArray[Any]]

UNCHANGED: Map = (np.array([0.0, 1.0]), np.array([0.0, 1.0]))
"""Scores and values, between which a function is linear, of the function that changes nothing."""


class OneVsRest(Recalibrator):
    r"""Base of methods that map the probability of each class by its function.

    .. math:: \hat c_k(p) = \frac{\gamma_k(p_k)}{\sum_j \gamma_j(p_j)}

    A row whose mapped probabilities are all 0 becomes 1 / n_classes, as in scikit-learn. Two classes need one function,
    that of the second class, where the function of the complement is the complement of the function.

    A subclass defines `_fit_map` and `_evaluate`; a function is a pair of arrays.
    """

    _mirrors: ClassVar[bool] = False
    """Whether the function of the complement is the complement of the function."""

    maps_: list[Map]
    _fitted: ClassVar[tuple[str, ...]] = ("maps_",)

    @abstractmethod
    def _fit_map(self, score: NDArray[Any], event: Booleans, weight: Floats | None) -> tuple[Map, Objective | None]:
        """Return the function, as a pair of arrays, that fits the event of probability ``score (n_samples,)``.

        Second is what it minimises; None if the functions of the method do not include the one that changes nothing.
        """

    @abstractmethod
    def _evaluate(self, fitted: Map, score: NDArray[Any]) -> Floats:
        """Return a fitted function at ``score (n_samples,)``."""

    def _fit(self, values: NDArray[Any], outcome: Integers, weight: Floats | None) -> Objective | None:
        found = [self._fit_map(score, outcome == k, weight) for k, score in self._scores(values)]
        self.maps_ = [fitted for fitted, _ in found]
        return Objective.sum(objective for _, objective in found)

    def _leave_unchanged(self, n_classes: int) -> None:
        self.maps_ = [UNCHANGED] * len(self.maps_)

    def _map(self, values: NDArray[Any]) -> NDArray[Any]:
        found = np.empty(values.shape, dtype=values.dtype)
        for (k, score), fitted in zip(self._scores(values), self.maps_, strict=True):
            found[:, k] = self._evaluate(fitted, score)
        return complete(found) if self._is_single(values) else normalise(found)

    def _scores(self, values: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield the classes that have a function, with their probabilities."""
        if self._is_single(values):
            yield 1, np.ascontiguousarray(values[:, 1])
            return
        for start in range(0, values.shape[1], _COLUMNS):
            block = np.ascontiguousarray(values[:, start : start + _COLUMNS].T)
            yield from enumerate(block, start)

    def _is_single(self, values: NDArray[Any]) -> bool:
        return self._mirrors and values.shape[1] == 2


def complete(prob: NDArray[Any]) -> NDArray[Any]:
    """Fill the first of two columns with the complement of the second one, and return them."""
    np.subtract(1.0, prob[:, 1], out=prob[:, 0])
    return prob


def normalise(prob: NDArray[Any]) -> NDArray[Any]:
    """Divide rows by their sums in place, and return them; rows of zeros become equal probabilities."""
    for rows in blocks(*prob.shape):
        total = prob[rows].sum(axis=1, keepdims=True, dtype=np.float64)
        empty = total[:, 0] == 0
        total[empty | (np.abs(total[:, 0] - 1) <= PAIR_ROUNDING)] = 1.0  # ties stay ties
        prob[rows] /= total
        prob[rows][empty] = 1.0 / prob.shape[1]
    return prob
