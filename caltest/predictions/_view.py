"""Lenses on simulated labels: the outcomes of drawn classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._lookup import map_events, map_outcomes
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._lens import LensLike, outcome_dtype
from caltest.predictions._lenses import Canonical
from caltest.predictions._sample import Sample, induce
from caltest.predictions._user_functions import outcomes_of_classes
from caltest.predictions.inputs._refusals import refuse


def push_forward(table: NDArray[Any], class_prob: Floats, n_outcomes: int) -> Floats:
    """Return the probabilities of the outcomes, ``(n_samples, n_outcomes)``, of classes with given probabilities.

    ``table`` holds the outcome of each class, as `outcomes_of_classes` returns it.
    """
    pushed = np.zeros((len(class_prob), n_outcomes))
    row = np.arange(len(class_prob))
    for column, outcome in zip(class_prob.T, table.T, strict=True):
        pushed[row, outcome] += column
    return pushed


@dataclass(frozen=True, eq=False)
class LensView:
    """The sample behind a lens, and the outcomes through that lens of labels drawn for another sample.

    Attributes
    ----------
    sample : Sample
        The problem behind the lens.
    base_row : array of shape (n_samples,) or None
        For each observation of ``sample`` its row in the sample that labels are drawn for; None where both are the
        same sample.
    seen : array of shape (n_base_samples, n_classes) or (1, n_classes), or None
        Outcome of each class, for every observation that labels are drawn for, or the same for all; None where both
        are the same sample.
    packed : bool
        Whether two outcomes are packed, eight classes in a byte, as for a large sample.
    """

    sample: Sample
    base_row: Integers | None = None
    seen: NDArray[Any] | None = None
    packed: bool = False

    @classmethod
    def of(cls, lens: LensLike, prob: Floats, outcome: Integers, base: Sample) -> LensView:
        """Return the view of predictions and labels, of which ``base`` is the sample, through a lens."""
        if isinstance(lens, Canonical):
            return cls(base)
        kept, rank = base.row, base.row
        if base.n_samples < len(prob):  # observations of weight 0 are left out
            kept, rank = np.unique(base.row, return_inverse=True)
            prob, outcome = np.take(prob, kept, axis=0), outcome[kept]
        place = np.empty(base.n_samples, dtype=np.int64)
        place[rank] = np.arange(base.n_samples)
        given = {"weight": base.weight, "group": base.group, "timing": base.timing}
        design: Any = {name: None if each is None else each[place] for name, each in given.items()}
        sample = induce(prob, outcome, lens=lens, **design)
        table = outcomes_of_classes(lens, prob).astype(sample.outcome.dtype, copy=False)
        if len(table) > 1 and base.n_outcomes == 2:  # sorted by the event
            table = table[rank]
        packed = len(table) > 1 and base.is_large and sample.n_outcomes == 2
        seen = np.packbits(table, axis=1) if packed else np.ascontiguousarray(table)
        same = np.array_equal(place, np.arange(len(place)))  # then one array serves both
        view = cls(sample, sample.row if same else place[sample.row], seen, packed)
        if kept is not rank:
            view = replace(view, sample=replace(sample, row=kept[sample.row]))
        if not np.array_equal(view.outcomes(base.outcome[None])[0], sample.outcome):
            refuse("`lens` must make the outcome of an observation from its prediction and its own label alone.")
        return view

    @cached_property
    def _event(self) -> NDArray[Any] | None:
        """The only class of each observation that is the event, ``(n_samples,)``; None if it is the same for all."""
        if self.seen is None or len(self.seen) == 1 or self.packed or self.sample.n_outcomes != 2:
            return None
        is_event = self.seen == 1
        if not np.all(is_event.sum(axis=1) == 1):
            return None
        return is_event.argmax(axis=1).astype(outcome_dtype(self.seen.shape[1]))[self.base_row]

    @property
    def is_base(self) -> bool:
        """Whether labels are drawn for this very sample."""
        return self.seen is None

    def take(self, position: Integers) -> LensView:
        """Return the view of the observations at increasing positions of the sample."""
        row, table = self.base_row, self.seen
        if row is None or table is None:
            row = np.arange(self.sample.n_samples)
            table = np.arange(self.sample.n_outcomes, dtype=self.sample.outcome.dtype)[None]
        return LensView(self.sample.take(position), row[position], table, self.packed)

    def outcomes(self, drawn: NDArray[Any]) -> NDArray[Any]:
        """Return the outcomes of drawn classes ``(n_replicates, n_samples)`` through the lens."""
        if self.seen is None:
            return drawn
        if self._event is not None and self.base_row is not None:  # reading a table by row would take twice as long
            return (np.take(drawn, self.base_row, axis=1) == self._event).view(np.uint8)
        out = np.empty((len(drawn), self.sample.n_samples), dtype=self.seen.dtype)
        (map_events if self.packed else map_outcomes)(drawn, self.seen, self.base_row, out)
        return out
