r"""Lenses: which part of a prediction is looked at.

A lens maps a classification problem to an induced, smaller one (Vaicenavicius et al. 2019, section 3.1): with
:math:`\psi(y, \mu)` an outcome seen through the lens, the induced prediction is the law of :math:`\psi(Y', \mu)` for
:math:`Y' \sim \mu`. A calibrated model is calibrated through every lens; the converse fails.

Every lens is a function ``lens(prob, outcome) -> (prob, outcome)`` from ``(n_samples, n_classes)`` probabilities and
``(n_samples,)`` class indices to ``(n_samples, n_outcomes)`` and indices again; user functions of this form are
lenses too. What a lens looks at may depend on the predictions, never on the outcomes, and it keeps every row. A
two-outcome lens returns two columns, of which column 1 is the event. "The rest" is 1 minus the others. Ties in a
ranking go to the smaller class index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._validation import validate_count

Problem = tuple[NDArray[np.float64], NDArray[Any]]
Lens = Callable[[NDArray[np.float64], NDArray[Any]], Problem]


@dataclass(frozen=True)
class Canonical:
    r"""The whole prediction, :math:`\psi(y, \mu) = y` (Example 2 (i)).

    Examples
    --------
    >>> import numpy as np
    >>> prob, outcome = Canonical()(np.array([[0.2, 0.3, 0.5]]), np.array([1]))
    >>> prob, outcome
    (array([[0.2, 0.3, 0.5]]), array([1]))
    """

    def __call__(self, prob: NDArray[np.float64], outcome: NDArray[Any]) -> Problem:
        """Return the induced problem."""
        return prob, outcome


@dataclass(frozen=True)
class TopRank:
    r"""Is the class of the r-th largest probability the right one? (Gupta et al. 2020, section 2, "r-th top class").

    Column 1 is :math:`\mu_{(r)}`, column 0 the rest.

    Parameters
    ----------
    rank : int
        1 is the most probable class; at most the number of classes.

    Raises
    ------
    ValueError
        If ``rank`` is not a positive integer, or exceeds the number of classes when applied.

    Examples
    --------
    >>> import numpy as np
    >>> prob, outcome = TopRank(2)(np.array([[0.125, 0.25, 0.625]]), np.array([1]))
    >>> prob, outcome
    (array([[0.75, 0.25]]), array([1]))
    """

    rank: int

    def __post_init__(self) -> None:
        validate_count(self.rank, "rank")

    def __call__(self, prob: NDArray[np.float64], outcome: NDArray[Any]) -> Problem:
        """Return the induced problem."""
        ranking = _ranking(prob, self.rank, "rank")
        chosen = ranking[:, self.rank - 1]
        return _event(np.take_along_axis(prob, chosen[:, None], axis=1)[:, 0], outcome == chosen)


@dataclass(frozen=True)
class Confidence:
    r"""The top prediction against the rest: is :math:`P(Y = \arg\max g(X) \mid \max g(X)) = \max g(X)`?

    The notion of calibration of Guo et al. (2017), equation 2 of Vaicenavicius et al. (2019).

    Examples
    --------
    >>> import numpy as np
    >>> prob, outcome = Confidence()(np.array([[0.125, 0.25, 0.625]]), np.array([1]))
    >>> prob, outcome
    (array([[0.375, 0.625]]), array([0]))
    """

    def __call__(self, prob: NDArray[np.float64], outcome: NDArray[Any]) -> Problem:
        """Return the induced problem."""
        top = prob.argmax(axis=1)
        return _event(prob[np.arange(len(prob)), top], outcome == top)


@dataclass(frozen=True)
class TopK:
    r"""The ordered k largest probabilities and the rest: k + 1 outcomes (Example 2 (iii)).

    Outcome j < k is "the class of the (j + 1)-th largest probability", outcome k is "none of them". ``TopK(1)`` has
    two outcomes and is therefore laid out as `Confidence`, the event in column 1.

    Parameters
    ----------
    k : int
        At least 1 and less than the number of classes.

    Raises
    ------
    ValueError
        If ``k`` is not a positive integer, or not below the number of classes when applied.

    Examples
    --------
    >>> import numpy as np
    >>> prob, outcome = TopK(2)(np.array([[0.5, 0.125, 0.125, 0.25]]), np.array([3]))
    >>> prob, outcome
    (array([[0.5 , 0.25, 0.25]]), array([1]))
    """

    k: int

    def __post_init__(self) -> None:
        validate_count(self.k, "k")

    def __call__(self, prob: NDArray[np.float64], outcome: NDArray[Any]) -> Problem:
        """Return the induced problem."""
        if self.k >= prob.shape[1]:
            msg = f"`k` must be less than the number of classes, {prob.shape[1]}, got {self.k}."
            raise ValueError(msg)
        if self.k == 1:
            return Confidence()(prob, outcome)
        ranking = _ranking(prob, self.k, "k")
        top = np.take_along_axis(prob, ranking, axis=1)
        is_top = ranking == np.asarray(outcome)[:, None]
        return (
            np.column_stack([top, 1.0 - top.sum(axis=1)]),
            np.where(is_top.any(axis=1), is_top.argmax(axis=1), self.k),
        )


@dataclass(frozen=True)
class WithinTop:
    r"""Is the outcome among the r most probable classes? (Gupta et al. 2020, section 2, "within-top-r").

    Column 1 is :math:`\mu_{(1)} + \dots + \mu_{(r)}`, column 0 the rest.

    Parameters
    ----------
    rank : int
        At least 1 and less than the number of classes.

    Raises
    ------
    ValueError
        If ``rank`` is not a positive integer, or not below the number of classes when applied.

    Examples
    --------
    >>> import numpy as np
    >>> prob, outcome = WithinTop(2)(np.array([[0.5, 0.125, 0.125, 0.25]]), np.array([3]))
    >>> prob, outcome
    (array([[0.25, 0.75]]), array([1]))
    """

    rank: int

    def __post_init__(self) -> None:
        validate_count(self.rank, "rank")

    def __call__(self, prob: NDArray[np.float64], outcome: NDArray[Any]) -> Problem:
        """Return the induced problem."""
        if self.rank >= prob.shape[1]:
            msg = f"`rank` must be less than the number of classes, {prob.shape[1]}, got {self.rank}."
            raise ValueError(msg)
        ranking = _ranking(prob, self.rank, "rank")
        top = np.take_along_axis(prob, ranking, axis=1)
        return _event(top.sum(axis=1), (ranking == np.asarray(outcome)[:, None]).any(axis=1))


@dataclass(frozen=True)
class ClassWise:
    r"""Class k against the rest: is :math:`P(Y = k \mid g_k(X)) = g_k(X)`? (equation 3 of the paper).

    Parameters
    ----------
    k : int
        Class index, from 0.

    Raises
    ------
    ValueError
        If ``k`` is negative or not an integer, or no class when applied.

    Examples
    --------
    >>> import numpy as np
    >>> prob, outcome = ClassWise(0)(np.array([[0.125, 0.25, 0.625]]), np.array([1]))
    >>> prob, outcome
    (array([[0.875, 0.125]]), array([0]))
    """

    k: int

    def __post_init__(self) -> None:
        validate_count(self.k, "k", minimum=0)

    def __call__(self, prob: NDArray[np.float64], outcome: NDArray[Any]) -> Problem:
        """Return the induced problem."""
        if self.k >= prob.shape[1]:
            msg = f"`k` must be a class index 0 to {prob.shape[1] - 1}, got {self.k}."
            raise ValueError(msg)
        return _event(prob[:, self.k], outcome == self.k)


@dataclass(frozen=True)
class Groups:
    r"""A fixed partition of the classes, :math:`\psi(y, \mu) = i` for :math:`y \in A_i` (Example 2 (ii)).

    Parameters
    ----------
    groups : iterable of iterables of int
        Every class index in exactly one group; group i is outcome i. With two groups the second is the event.

    Raises
    ------
    ValueError
        If there are fewer than two groups, one is empty, a class stands twice, or, when applied, a class is missing
        or unknown.

    Examples
    --------
    >>> import numpy as np
    >>> prob, outcome = Groups([[0, 1], [2, 3]])(np.array([[0.5, 0.125, 0.125, 0.25]]), np.array([3]))
    >>> prob, outcome
    (array([[0.625, 0.375]]), array([1]))
    """

    groups: tuple[tuple[int, ...], ...]

    def __init__(self, groups: Iterable[Iterable[int]]) -> None:
        parts = tuple(tuple(validate_count(k, "groups", minimum=0) for k in group) for group in groups)
        if len(parts) < 2 or not all(parts):
            msg = f"`groups` must be at least two groups, none of them empty, got {parts!r}."
            raise ValueError(msg)
        flat = [k for part in parts for k in part]
        repeated = sorted({k for k in flat if flat.count(k) > 1})
        if repeated:
            msg = f"`groups` must hold every class once, class {repeated[0]} stands more than once in {parts!r}."
            raise ValueError(msg)
        object.__setattr__(self, "groups", parts)

    def __call__(self, prob: NDArray[np.float64], outcome: NDArray[Any]) -> Problem:
        """Return the induced problem."""
        group_of = np.full(prob.shape[1], -1)
        for i, group in enumerate(self.groups):
            if max(group) >= prob.shape[1]:
                msg = f"`groups` must hold class indices 0 to {prob.shape[1] - 1}, got {max(group)}."
                raise ValueError(msg)
            group_of[list(group)] = i
        if (group_of < 0).any():
            msg = f"`groups` must hold every class, class {np.argmin(group_of)} is in no group of {self.groups!r}."
            raise ValueError(msg)
        return (
            np.column_stack([prob[:, list(group)].sum(axis=1) for group in self.groups]),
            group_of[np.asarray(outcome)],
        )


def _event(prob: NDArray[np.float64], happened: NDArray[np.bool_]) -> Problem:
    return np.column_stack([1.0 - prob, prob]), happened.astype(np.int64)


def _ranking(prob: NDArray[np.float64], size: int, name: str) -> NDArray[np.int64]:
    if size > prob.shape[1]:
        msg = f"`{name}` must be at most the number of classes, {prob.shape[1]}, got {size}."
        raise ValueError(msg)
    return np.argsort(-prob, axis=1, kind="stable")[:, :size]
