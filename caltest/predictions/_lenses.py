r"""Lenses: maps from a classification problem to a smaller one, such as the confidence or one class against the rest.

A lens :math:`\psi` maps the class y of an observation with prediction :math:`\mu` to an outcome :math:`\psi(y, \mu)`
(Vaicenavicius et al. 2019, section 3.1). The induced prediction is the distribution of :math:`\psi(Y', \mu)` for
:math:`Y' \sim \mu`. A calibrated model is calibrated through every lens; the converse does not hold.

Every lens is a function ``lens(prob, outcome) -> (prob, outcome)`` from ``(n_samples, n_classes)`` probabilities and
``(n_samples,)`` class indices to ``(n_samples, n_outcomes)`` probabilities and indices of outcomes; user functions of
this form are lenses too. The lenses of the package also return the outcome of each class in closed form
(`Lens.outcomes`). The induced probabilities may depend on the predictions, never on the labels, and a lens keeps every
observation. A two-outcome lens returns two columns, of which column 1 is the event. "The rest" is the sum of the
classes that are not named. Ties in a ranking go to the smaller class index.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._lens import Lens, Problem, outcome_dtype, probabilities_of
from caltest.predictions.cells._order import ranking, top_and_rest
from caltest.predictions.inputs._refusals import refuse, refuse_if
from caltest.predictions.inputs._validation import validate_count
from caltest.results._finding import Subject


@dataclass(frozen=True, repr=False)
class Canonical(Lens):
    r"""The whole prediction, :math:`\psi(y, \mu) = y` (Example 2 (i)).

    See Also
    --------
    Confidence : The predicted class against the rest.

    Examples
    --------
    >>> import numpy as np
    >>> prob, outcome = Canonical()(np.array([[0.2, 0.3, 0.5]]), np.array([1]))
    >>> prob, outcome
    (array([[0.2, 0.3, 0.5]]), array([1]))
    """

    names_event = True

    def name(self, classes: Sequence[Any] | None = None) -> str:
        """Return the name of the lens in words."""
        return "whole prediction"

    def subject(self, classes: Sequence[Any] | None = None) -> Subject:
        """Return what sentences about the event of two classes speak of."""
        return Subject(event="" if classes is None else f"{list(classes)[1]}")

    def induced(self, prob: Floats) -> Floats:
        """Return the probabilities of the outcomes, ``(n_samples, n_outcomes)``."""
        return prob

    def outcomes(self, prob: Floats) -> NDArray[np.integer[Any]]:
        """Return the outcome of each class, ``(1, n_classes)``."""
        return np.arange(prob.shape[1], dtype=outcome_dtype(prob.shape[1]))[None]

    def __call__(self, prob: Floats, outcome: NDArray[Any]) -> Problem:
        """Return the problem as it is."""
        return prob, outcome


@dataclass(frozen=True, repr=False)
class TopRank(Lens):
    r"""Is the class of the r-th largest probability the right one? (Gupta et al. 2020, section 2, "r-th top class").

    Column 1 is :math:`\mu_{(r)}`, column 0 the rest.

    Parameters
    ----------
    rank : int
        1 is the most probable class; at most the number of classes.

    Raises
    ------
    TypeError
        If ``rank`` is not an integer.
    ValueError
        If ``rank`` < 1, or if it exceeds the number of classes of the predictions.

    See Also
    --------
    WithinTop : Whether the class is among the r most probable ones.

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

    def name(self, classes: Sequence[Any] | None = None) -> str:
        """Return the name of the lens in words."""
        return f"is the class of rank {self.rank} right"

    def induced(self, prob: Floats) -> Floats:
        """Return the probabilities of the outcomes, ``(n_samples, n_outcomes)``."""
        return _event(np.take_along_axis(prob, self._chosen(prob), axis=1)[:, 0])

    def outcomes(self, prob: Floats) -> NDArray[np.integer[Any]]:
        """Return the outcome of each class, ``(n_samples, n_classes)``."""
        return (np.arange(prob.shape[1]) == self._chosen(prob)).view(np.uint8)

    def _chosen(self, prob: Floats) -> Integers:
        return ranking(prob, self.rank, "rank")[:, self.rank - 1 :]


@dataclass(frozen=True, repr=False)
class Confidence(Lens):
    r"""The top prediction against the rest: is :math:`P(Y = \arg\max g(X) \mid \max g(X)) = \max g(X)`? (equation 2).

    The definition of calibration of Guo et al. (2017), equation 2 of Vaicenavicius et al. (2019).

    See Also
    --------
    Canonical : The whole prediction.
    TopK : The k largest probabilities and the rest.

    Examples
    --------
    >>> import numpy as np
    >>> prob, outcome = Confidence()(np.array([[0.125, 0.25, 0.625]]), np.array([1]))
    >>> prob, outcome
    (array([[0.375, 0.625]]), array([0]))
    """

    of_confidence = True

    def name(self, classes: Sequence[Any] | None = None) -> str:
        """Return the name of the lens in words."""
        return "confidence"

    def induced(self, prob: Floats) -> Floats:
        """Return the probabilities of the outcomes, ``(n_samples, n_outcomes)``."""
        return _event(prob.max(axis=1))

    def outcomes(self, prob: Floats) -> NDArray[np.integer[Any]]:
        """Return the outcome of each class, ``(n_samples, n_classes)``."""
        return (np.arange(prob.shape[1]) == prob.argmax(axis=1)[:, None]).view(np.uint8)

    def __call__(self, prob: Floats, outcome: NDArray[Any]) -> Problem:
        """Return the induced problem, without the table of all classes."""
        top = prob.argmax(axis=1)
        return _event(prob[np.arange(len(prob)), top]), (top == outcome).astype(np.int64)


@dataclass(frozen=True, repr=False)
class TopK(Lens):
    r"""The ordered k largest probabilities and the rest: k + 1 outcomes (Example 2 (iii)).

    Outcome j < k is "the class of the (j + 1)-th largest probability", outcome k is "none of them". ``TopK(1)`` has
    two outcomes and is the same as `Confidence`, with the event in column 1.

    Parameters
    ----------
    k : int
        At least 1 and less than the number of classes.

    Raises
    ------
    TypeError
        If ``k`` is not an integer.
    ValueError
        If ``k`` < 1, or if it is not less than the number of classes of the predictions.

    See Also
    --------
    caltest.Confidence : The most probable class alone.
    caltest.predictions.WithinTop : Whether the class is among the first k.

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

    def name(self, classes: Sequence[Any] | None = None) -> str:
        """Return the name of the lens in words."""
        return f"top {self.k} and the rest"

    def induced(self, prob: Floats) -> Floats:
        """Return the probabilities of the outcomes, ``(n_samples, n_outcomes)``."""
        if self.k == 1:
            return Confidence().induced(prob)
        top, rest = top_and_rest(prob, self._top(prob))
        return np.column_stack([top, rest])

    def outcomes(self, prob: Floats) -> NDArray[np.integer[Any]]:
        """Return the outcome of each class, ``(n_samples, n_classes)``."""
        if self.k == 1:
            return Confidence().outcomes(prob)
        table = np.full(prob.shape, self.k, dtype=outcome_dtype(self.k + 1))
        np.put_along_axis(table, self._top(prob), np.arange(self.k, dtype=table.dtype)[None], axis=1)
        return table

    def _top(self, prob: Floats) -> Integers:
        if self.k >= prob.shape[1]:
            refuse(f"`k` must be less than the number of classes, {prob.shape[1]}, got {self.k}.")
        return ranking(prob, self.k, "k")


@dataclass(frozen=True, repr=False)
class WithinTop(Lens):
    r"""Is the class among the r most probable ones? (Gupta et al. 2020, section 2, "within-top-r").

    Column 1 is :math:`\mu_{(1)} + \dots + \mu_{(r)}`, column 0 the rest.

    Parameters
    ----------
    rank : int
        At least 1 and less than the number of classes.

    Raises
    ------
    TypeError
        If ``rank`` is not an integer.
    ValueError
        If ``rank`` < 1, or if it is not less than the number of classes of the predictions.

    See Also
    --------
    TopRank : Whether the class is the r-th most probable one.

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

    def name(self, classes: Sequence[Any] | None = None) -> str:
        """Return the name of the lens in words."""
        return f"is the class within the top {self.rank}"

    def induced(self, prob: Floats) -> Floats:
        """Return the probabilities of the outcomes, ``(n_samples, n_outcomes)``."""
        top, rest = top_and_rest(prob, self._top(prob))
        return np.column_stack([rest, top.sum(axis=1)])

    def outcomes(self, prob: Floats) -> NDArray[np.integer[Any]]:
        """Return the outcome of each class, ``(n_samples, n_classes)``."""
        table = np.zeros(prob.shape, dtype=np.uint8)
        np.put_along_axis(table, self._top(prob), 1, axis=1)
        return table

    def _top(self, prob: Floats) -> Integers:
        if self.rank >= prob.shape[1]:
            refuse(f"`rank` must be less than the number of classes, {prob.shape[1]}, got {self.rank}.")
        return ranking(prob, self.rank, "rank")


@dataclass(frozen=True, repr=False)
class ClassWise(Lens):
    r"""Class k against the rest: is :math:`P(Y = k \mid g_k(X)) = g_k(X)`? (equation 3 of the paper).

    Parameters
    ----------
    k : int
        Class index, from 0.

    Raises
    ------
    TypeError
        If ``k`` is not an integer.
    ValueError
        If ``k`` < 0, or if the predictions have no class k.

    See Also
    --------
    ClassGroups : Groups of classes against each other.

    Examples
    --------
    >>> import numpy as np
    >>> prob, outcome = ClassWise(0)(np.array([[0.125, 0.25, 0.625]]), np.array([1]))
    >>> prob, outcome
    (array([[0.875, 0.125]]), array([0]))
    """

    k: int

    names_event = True

    def __post_init__(self) -> None:
        validate_count(self.k, "k", minimum=0)

    def name(self, classes: Sequence[Any] | None = None) -> str:
        """Return the name of the lens in words."""
        return f"{self.short_name(classes)} against the rest"

    def short_name(self, classes: Sequence[Any] | None = None) -> str:
        """Return the name of the class."""
        return f"class {self.k if classes is None else list(classes)[self.k]}"

    def subject(self, classes: Sequence[Any] | None = None) -> Subject:
        """Return what sentences about the class speak of."""
        return probabilities_of(self.short_name(classes))

    def induced(self, prob: Floats) -> Floats:
        """Return the probabilities of the outcomes, ``(n_samples, n_outcomes)``."""
        self._require_class(prob.shape[1])
        return _event(prob[:, self.k])

    def outcomes(self, prob: Floats) -> NDArray[np.integer[Any]]:
        """Return the outcome of each class, ``(1, n_classes)``."""
        self._require_class(prob.shape[1])
        return (np.arange(prob.shape[1]) == self.k).astype(np.uint8)[None]

    def _require_class(self, n_classes: int) -> None:
        refuse_if(self.k >= n_classes, f"`k` must be a class index 0 to {n_classes - 1}, got {self.k}.")


@dataclass(frozen=True, repr=False)
class ClassGroups(Lens):
    r"""A fixed partition of the classes, :math:`\psi(y, \mu) = i` for :math:`y \in A_i` (Example 2 (ii)).

    Parameters
    ----------
    groups : iterable of iterables of int
        Every class index in exactly one group; group i is outcome i. With two groups the second is the event.

    Raises
    ------
    TypeError
        If ``groups`` is no sequence of sequences of integers.
    ValueError
        If there are fewer than two groups, if one is empty, if a class is in two groups or negative, or if a class of
        the predictions is in no group or a group has a class that they do not have.

    See Also
    --------
    ClassWise : One class against the rest.

    Examples
    --------
    >>> import numpy as np
    >>> prob, outcome = ClassGroups([[0, 1], [2, 3]])(np.array([[0.5, 0.125, 0.125, 0.25]]), np.array([3]))
    >>> prob, outcome
    (array([[0.625, 0.375]]), array([1]))
    """

    groups: tuple[tuple[int, ...], ...]

    names_event = True

    def __init__(self, groups: Iterable[Iterable[int]]) -> None:
        try:
            given = [list(group) for group in groups]
        except TypeError:
            refuse(f"`groups` must be groups of class indices such as [[0, 1], [2, 3]], got {groups!r}.", TypeError)
        parts = tuple(tuple(validate_count(k, "groups", minimum=0) for k in group) for group in given)
        if len(parts) < 2 or not all(parts):
            refuse(f"`groups` must be at least two groups, none of them empty, got {parts!r}.")
        flat = [k for part in parts for k in part]
        repeated = sorted({k for k in flat if flat.count(k) > 1})
        if repeated:
            refuse(f"`groups` must hold every class once, class {repeated[0]} appears more than once in {parts!r}.")
        object.__setattr__(self, "groups", parts)

    def name(self, classes: Sequence[Any] | None = None) -> str:
        """Return the name of the lens in words."""
        return "groups " + " | ".join(
            ", ".join(str(k if classes is None else list(classes)[k]) for k in g) for g in self.groups
        )

    def induced(self, prob: Floats) -> Floats:
        """Return the probabilities of the outcomes, ``(n_samples, n_outcomes)``."""
        self._group_of_class(prob.shape[1])
        return np.column_stack([prob[:, list(group)].astype(np.float64).sum(axis=1) for group in self.groups])

    def outcomes(self, prob: Floats) -> NDArray[np.integer[Any]]:
        """Return the outcome of each class, ``(1, n_classes)``."""
        return self._group_of_class(prob.shape[1]).astype(outcome_dtype(len(self.groups)))[None]

    def _group_of_class(self, n_classes: int) -> Integers:
        group_of = np.full(n_classes, -1)
        for i, group in enumerate(self.groups):
            if max(group) >= n_classes:
                refuse(f"`groups` must hold class indices 0 to {n_classes - 1}, got {max(group)}.")
            group_of[list(group)] = i
        if (group_of < 0).any():
            refuse(f"`groups` must hold every class, class {np.argmin(group_of)} is in no group of {self.groups!r}.")
        return group_of


def _event(prob: Floats) -> Floats:
    """Return the columns of a two-outcome problem, the event in column 1."""
    event = prob.astype(np.float64, copy=False)
    return np.column_stack([1.0 - event, event])
