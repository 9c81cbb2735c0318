"""Values of statistics on simulated labels, several of them on the same draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Floats
from caltest.predictions._sample import Sample
from caltest.predictions._view import LensView
from caltest.predictions.inputs._refusals import refuse
from caltest.resampling.draws._label_tally import LabelTally
from caltest.resampling.draws._labels import Draws, counts_events
from caltest.resampling.draws._points import Points
from caltest.resampling.draws._signs import SignDraws
from caltest.resampling.draws._summaries import LargestExcursion, Wanted
from caltest.resampling.draws._tally import Tally, countable
from caltest.resampling.engine._statistic import Statistic
from caltest.results._progress import Progress

_FEW_LABELS = 2**15  # are evaluated together, because every statistic takes a time to begin
_FEW_DRAWS = 2_000  # take less time than the records of subgroups
_MOST_ITEMS = 2**24  # of lists of counters, which take memory: entries times lenses times statistics


@dataclass(frozen=True, eq=False)
class Question:
    """A statistic and the sample that it is evaluated on.

    Attributes
    ----------
    statistic : Statistic
        The statistic.
    view : LensView
        The sample, and the outcomes of simulated labels through its lens.
    """

    statistic: Statistic
    view: LensView

    @property
    def sample(self) -> Sample:
        """The problem behind the lens."""
        return self.view.sample


@dataclass(frozen=True, eq=False)
class _ViewTally:
    """How the outcomes of a subgroup, or behind a lens, are counted for several questions.

    Attributes
    ----------
    tally : LabelTally
        The counts, of outcomes of the view as if these were drawn.
    known : dict
        The summaries of the components of each question.
    """

    tally: LabelTally
    known: Mapping[Question, list[Wanted]]

    @classmethod
    def of(cls, view: LensView, questions: Sequence[Question]) -> _ViewTally | None:
        """Return the tally of the questions on a view; None if it does not have all of their summaries."""
        itself = LensView(view.sample)
        found = _known_of_labels([Question(question.statistic, itself) for question in questions])
        known = {question: pairs for question, pairs in zip(questions, found, strict=True) if pairs is not None}
        wanted = list(dict.fromkeys(pair for pairs in known.values() for pair in pairs))
        tally = LabelTally.of(view.sample, wanted) if len(known) == len(questions) else None
        return None if tally is None else cls(tally, known)

    def values(self, questions: Sequence[Question], outcomes: NDArray[Any]) -> list[Floats]:
        """Return every component ``(n_components, n_replicates)`` of outcomes ``(n_replicates, n_samples)``."""
        counted, number = self.tally.of_labels(outcomes), len(outcomes)
        return [_of_summaries(question, self.known[question], counted, number) for question in questions]


class Evaluation:
    """How several questions are evaluated on the same draws, and on the observed labels.

    Parameters
    ----------
    questions : sequence of Question
        The questions.
    base : Sample
        The sample that labels are simulated for.
    draws : Draws
        What is drawn.
    """

    def __init__(self, questions: Sequence[Question], base: Sample, draws: Draws) -> None:
        self._questions, self._base = questions, base
        self._signs = isinstance(draws, SignDraws)
        known: list[list[Wanted] | None] = [None] * len(questions)
        self._tally: Tally | LabelTally | None = None
        if not self._signs and not _counts_events(questions):
            points = draws.points(base)
            if points is not None:
                known = [_known(question, points) for question in questions]
            elif draws.tallies_labels(base):
                known = _known_of_labels(questions)
            wanted = list(dict.fromkeys(pair for pairs in known if pairs for pair in pairs))
            if wanted and sum(view.sample.given.size for view, _ in wanted) <= _MOST_ITEMS:
                self._tally = LabelTally.of(base, wanted) if points is None else Tally(points, wanted)
            if isinstance(self._tally, LabelTally):
                computed = self._tally.wanted
                known = [pairs if pairs and computed.issuperset(pairs) else None for pairs in known]
        self._known = [None] * len(questions) if self._tally is None else known
        self._of_views = {} if self._signs else self._tallies_of_views(draws)

    def _tallies_of_views(self, draws: Draws) -> dict[LensView, _ViewTally]:
        """Return how the outcomes of subgroups, and behind lenses, are counted where no tally of all labels does."""
        asked: dict[LensView, list[Question]] = {}
        if draws.n_resamples < _FEW_DRAWS:
            return {}
        for question, known in zip(self._questions, self._known, strict=True):
            if known is None and not question.view.is_base and draws.tallies_labels(question.sample):
                asked.setdefault(question.view, []).append(question)
        if sum(view.sample.given.size for view in asked) > _MOST_ITEMS:
            return {}
        found = {view: _ViewTally.of(view, questions) for view, questions in asked.items()}
        return {view: tally for view, tally in found.items() if tally is not None}

    def nulls(self, draws: Draws, workers: int = 1, progress: Progress | None = None) -> list[Floats]:
        """Return the components of every question on all draws, ``(n_components, n_resamples)`` each."""
        least = max(_FEW_LABELS // self._base.n_samples, draws.least_together(self._base))
        values = draws.map(self._evaluate, workers, progress, least)
        return np.split(values, np.cumsum([len(question.statistic.components) for question in self._questions])[:-1])

    def observed(self) -> tuple[list[Floats], list[Floats]]:
        """Return the components ``(n_components,)`` of every question on the observed labels, and those as of draws.

        Rounding may part them where a tally computes the second.
        """
        ranked = self.of_labels(self._base.outcome)
        return [
            values
            if known is None and question.view not in self._of_views
            else components(question.statistic, question.sample, question.sample.outcome)
            for question, known, values in zip(self._questions, self._known, ranked, strict=True)
        ], ranked

    def of_labels(self, labels: NDArray[Any]) -> list[Floats]:
        """Return the components ``(n_components, ...)`` of every question on labels ``(..., n_samples)`` of the base.

        They are computed as those of the draws are, so that they equal those of a draw with the same labels.
        """
        shape, many = labels.shape[:-1], np.atleast_2d(labels)
        counted = {} if self._tally is None else self._tally.of_labels(many)
        found = []
        for question, known in zip(self._questions, self._known, strict=True):
            view = question.view
            if known is not None:
                values = _of_summaries(question, known, counted, len(many))
            elif view in self._of_views:
                values = self._of_views[view].values([question], view.outcomes(many))[0]
            else:
                values = components(question.statistic, view.sample, view.outcomes(many).reshape(*shape, -1))
            found.append(values.reshape(-1, *shape))
        return found

    def _evaluate(self, draws: Draws) -> Floats:
        if self._signs:
            return _values_of_signs(self._questions, self._base, draws)
        question = self._questions[0]
        alone = question.view.is_base and question.statistic.components == (question.statistic,)
        if self._tally is None:
            if len(self._questions) == 1 and alone:
                return null_values(question.statistic, self._base, draws)[None]
            return np.concatenate(self._values_of_labels(self._questions, draws))
        others = [one for one, known in zip(self._questions, self._known, strict=True) if known is None]
        if others and isinstance(self._tally, LabelTally):
            on_others: list[list[Floats]] = [[] for _ in others]
            counted: Mapping[Wanted, Any] = self._tally.read(
                self._evaluated(others, draws, on_others), draws.n_resamples
            )
            on_labels = iter([np.concatenate(values, axis=1) for values in on_others])
        else:
            counted = draws.tallied(self._tally)
            on_labels = iter(self._values_of_labels(others, draws) if others else [])
        return np.concatenate(
            [
                next(on_labels) if known is None else _of_summaries(one, known, counted, draws.n_resamples)
                for one, known in zip(self._questions, self._known, strict=True)
            ]
        )

    def _values_of_labels(self, questions: Sequence[Question], draws: Draws) -> list[Floats]:
        """Return the components ``(n_components, n_replicates)`` of questions on drawn labels."""
        blocks: list[list[Floats]] = [[] for _ in questions]
        for _ in self._evaluated(questions, draws, blocks):
            pass
        return [np.concatenate(values, axis=1) for values in blocks]

    def _evaluated(
        self, questions: Sequence[Question], draws: Draws, found: Sequence[list[Floats]]
    ) -> Iterator[NDArray[Any]]:
        """Yield blocks of drawn labels, after the components of every question on them were added to what is found."""
        asked: dict[LensView, list[int]] = {}
        for place, question in enumerate(questions):
            asked.setdefault(question.view, []).append(place)
        for sample, drawn, scale in draws.scaled_blocks(self._base):
            for view, places in asked.items():
                some = [questions[place] for place in places]
                outcomes = view.outcomes(drawn)
                if view in self._of_views:
                    values = self._of_views[view].values(some, outcomes)
                else:
                    of_view = view.sample, outcomes, draws.scale(view.sample, outcomes)
                    seen = (sample, drawn, scale) if view.is_base else of_view
                    values = _drawn_together([question.statistic for question in some], *seen)
                for place, value in zip(places, values, strict=True):
                    found[place].append(value)
            yield drawn


def draw_nulls(
    questions: Sequence[Question], base: Sample, draws: Draws, workers: int = 1, progress: Progress | None = None
) -> list[Floats]:
    """Return the components of every question on shared draws, ``(n_components, n_resamples)`` each."""
    return Evaluation(questions, base, draws).nulls(draws, workers, progress)


def _counts_events(questions: Sequence[Question]) -> bool:
    """Return whether the only question needs counts of events, which are drawn from their distribution."""
    (question, *others) = questions
    (part, *more) = question.statistic.components
    return not others and not more and counts_events(question.view, part.summary(question.sample))


def _known(question: Question, points: Points) -> list[Wanted] | None:
    """Return the summaries of the components of a question if a tally computes all of them, otherwise None."""
    asked = [part.summary(question.sample) for part in question.statistic.components]
    found = [(question.view, each) for each in asked if each is not None and countable(points, question.view, each)]
    return found if len(found) == len(asked) else None


def _known_of_labels(questions: Sequence[Question]) -> list[list[Wanted] | None]:
    """Return the summaries of the components of each question whose components all have one.

    There must be one of the labels themselves that has the paths of all outcomes; otherwise all are None.
    """
    nothing: list[list[Wanted] | None] = [None] * len(questions)
    known = nothing[:]
    for own in (True, False):
        for place, question in enumerate(questions):
            if question.view.is_base is own:
                asked = [part.summary(question.sample) for part in question.statistic.components]
                found = [(question.view, each) for each in asked if each is not None]
                known[place] = found if len(found) == len(asked) else None
        if not any(isinstance(each, LargestExcursion) for pairs in known if pairs for _, each in pairs):
            return nothing
    return known


def _of_summaries(question: Question, known: list[Wanted], counted: Mapping[Wanted, Any], n_replicates: int) -> Floats:
    """Return every component ``(n_components, n_replicates)`` from its summary."""
    parts = zip(question.statistic.components, known, strict=True)
    found = [(part, part.evaluate_summary(question.sample, counted[pair])) for part, pair in parts]
    return np.stack([_of_summary(part, values, n_replicates) for part, values in found])


def _values_of_signs(questions: Sequence[Question], base: Sample, draws: Draws) -> Floats:
    """Return every component ``(n_components, n_replicates)`` of residuals whose groups have random signs."""
    blocks = []
    for _, signs in draws.blocks(base):
        asked = ((part, question.sample) for question in questions for part in question.statistic.components)
        blocks.append(np.stack([part.evaluate_signs(sample, signs) for part, sample in asked]))  # type: ignore[misc]
    return np.concatenate(blocks, axis=1)


def scale_components(statistic: Statistic, values: Floats, scale: Floats) -> Floats:
    """Return components ``(n_components, n_replicates)`` of residuals that are multiplied by ``scale``."""
    return np.stack([value * scale**part.degree for part, value in zip(statistic.components, values, strict=True)])


def null_values(statistic: Statistic, sample: Sample, draws: Draws) -> Floats:
    """Return a statistic on every draw, ``(n_resamples,)``, from the summary that it needs or from all labels."""
    summary = statistic.summary(sample)
    counted = None if summary is None else draws.summarise(sample, summary)
    if counted is not None:
        values = np.concatenate([np.atleast_1d(statistic.evaluate_summary(sample, part)) for part in counted])
        return _of_summary(statistic, values, draws.n_resamples)
    return np.concatenate([_drawn_components(statistic, *some)[0] for some in draws.scaled_blocks(sample)])


def _drawn_components(statistic: Statistic, sample: Sample, outcomes: NDArray[Any], scale: Floats | None) -> Floats:
    """Return every component of drawn outcomes, whose residuals may have to be scaled."""
    values = components(statistic, sample, outcomes)
    return values if scale is None else scale_components(statistic, values, scale)


def _drawn_together(
    statistics: Sequence[Statistic], sample: Sample, outcomes: NDArray[Any], scale: Floats | None
) -> list[Floats]:
    """Return every component of each statistic on drawn outcomes; companions are evaluated at once."""
    shared: dict[Any, list[int]] = {}
    for place, one in enumerate(statistics):
        shared.setdefault(place if one.companions is None else one.companions, []).append(place)
    found: dict[int, Floats] = {}
    for first, *others in shared.values():
        if not others:
            found[first] = _drawn_components(statistics[first], sample, outcomes, scale)
            continue
        parts = [statistics[place] for place in (first, *others)]
        together = zip((first, *others), parts, parts[0].evaluate_companions(parts, sample, outcomes), strict=True)
        for place, part, values in together:
            found[place] = values[None] if scale is None else scale_components(part, values[None], scale)
    return [found[place] for place in range(len(statistics))]


def components(statistic: Statistic, sample: Sample, outcomes: NDArray[Any]) -> Floats:
    """Return every component ``(n_components, ...)`` of outcomes ``(..., n_samples)``; refuse other shapes and NaN."""
    expected = (len(statistic.components), *outcomes.shape[:-1])
    try:
        values = np.asarray(statistic.evaluate_components(sample, outcomes), dtype=np.float64)
    except IndexError as error:  # NumPy's AxisError among them
        raise ValueError(_not_reduced(statistic, outcomes, f"{type(error).__name__}: {error}")) from error
    if values.shape != expected:
        refuse(_not_reduced(statistic, outcomes, values.shape[1:]))
    if np.isnan(values).any():
        refuse(f"`{type(statistic).__name__}.evaluate` must return numbers, got nan.")
    return values


def _not_reduced(statistic: Statistic, outcomes: NDArray[Any], got: Any) -> str:
    return (
        f"`{type(statistic).__name__}.evaluate` must reduce the last axis of outcomes (..., n_samples): expected shape "
        f"{outcomes.shape[:-1]} of outcomes {outcomes.shape}, got {got}."
    )


def _of_summary(statistic: Statistic, values: Any, n_replicates: int) -> Floats:
    """Return what `evaluate_summary` returned; refuse other shapes and NaN."""
    found = np.asarray(values, dtype=np.float64)
    if found.shape != (n_replicates,):
        refuse(
            f"`{type(statistic).__name__}.evaluate_summary` must return a number for each replicate: expected shape "
            f"({n_replicates},), got {found.shape}."
        )
    if np.isnan(found).any():
        refuse(f"`{type(statistic).__name__}.evaluate_summary` must return numbers, got nan.")
    return found
