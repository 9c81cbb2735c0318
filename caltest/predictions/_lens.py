"""The form of a lens, its name in words, and the type of its outcomes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Floats
from caltest.results._finding import OF_CONFIDENCE, Subject
from caltest.results._naming import Specification, describe

Problem = tuple[Floats, NDArray[Any]]


class Lens(Specification, ABC):
    """Base class of the lenses of the package: maps from predictions and labels to a smaller problem.

    A subclass is a frozen dataclass that defines `induced`, `outcomes` and `name`; a plain function of
    ``(prob, outcome)`` is a lens too.

    See Also
    --------
    caltest.Confidence : A lens.
    caltest.ClassGroups : Another one.

    Examples
    --------
    >>> from caltest import Confidence
    >>> isinstance(Confidence(), Lens), Confidence().name(3)
    (True, 'confidence')
    """

    names_event: ClassVar[bool] = False
    """Whether the second of two outcomes is an event of the user, such as a class, not that a prediction is right."""
    of_confidence: ClassVar[bool] = False
    """Whether the probability of the event is the confidence, and its frequency the accuracy."""

    @abstractmethod
    def induced(self, prob: Floats) -> Floats:
        """Return the probabilities of the outcomes, ``(n_samples, n_outcomes)``."""

    @abstractmethod
    def outcomes(self, prob: Floats) -> NDArray[np.integer[Any]]:
        """Return the outcome of each class, ``(n_samples, n_classes)``, unsigned integers.

        The shape is ``(1, n_classes)`` where it is the same for every observation.
        """

    @abstractmethod
    def name(self, classes: Sequence[Any] | None = None) -> str:
        """Return the name of the lens in words; ``classes`` are the labels of the columns."""

    def short_name(self, classes: Sequence[Any] | None = None) -> str:
        """Return the name in a table of similar lenses."""
        return self.name(classes)

    def subject(self, classes: Sequence[Any] | None = None) -> Subject:
        """Return what sentences about the second of two outcomes speak of."""
        return OF_CONFIDENCE if self.of_confidence else _subject_behind(self.name(classes))

    def __call__(self, prob: Floats, outcome: NDArray[Any]) -> Problem:
        """Return the induced problem."""
        table = self.outcomes(prob)
        row = np.arange(len(prob)) if len(table) > 1 else 0
        return self.induced(prob), table[row, np.asarray(outcome)].astype(np.int64)


LensLike = Lens | Callable[[Floats, NDArray[Any]], Problem]
"""A lens of the package, or a user's function of ``(prob, outcome)``."""


def lens_name(lens: LensLike, classes: Sequence[Any] | None = None) -> str:
    """Return the name of a lens in words; a user's function is called by its own name."""
    return lens.name(classes) if isinstance(lens, Lens) else describe(lens)


def lens_short_name(lens: LensLike, classes: Sequence[Any] | None = None) -> str:
    """Return the name of a lens in a table of similar ones."""
    return lens.short_name(classes) if isinstance(lens, Lens) else describe(lens)


def subject_of(lens: LensLike, classes: Sequence[Any] | None = None) -> Subject:
    """Return what sentences about the second of two outcomes behind a lens speak of."""
    return lens.subject(classes) if isinstance(lens, Lens) else _subject_behind(describe(lens))


def _subject_behind(name: str) -> Subject:
    return probabilities_of(f'the lens "{name}"', "through")


def probabilities_of(what: str, by: str = "of") -> Subject:
    """Return the subject of predicted probabilities of a class, or through a lens."""
    return Subject(predictions=f"Predicted probabilities {by} {what}", low_and_high="low and high probabilities")


def names_event(lens: LensLike) -> bool:
    """Return whether the second of two outcomes behind a lens is an event of the user."""
    return isinstance(lens, Lens) and lens.names_event


def outcome_dtype(n_outcomes: int) -> np.dtype[Any]:
    """Return the smallest unsigned integer type that holds the outcomes: simulated labels take most of the memory."""
    return np.min_scalar_type(n_outcomes - 1)
