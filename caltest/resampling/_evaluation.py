"""Values of statistics on simulated labels, several of them on the same draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._sample import Sample
from caltest.predictions._view import LensView
from caltest.resampling._draws import Draws, counts_events
from caltest.resampling._points import Points
from caltest.resampling._protocol import TestStatistic
from caltest.resampling._signs import SignDraws
from caltest.resampling._summaries import Wanted
from caltest.resampling._tally import Tally
from caltest.results._progress import Progress


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

    statistic: TestStatistic
    view: LensView

    @property
    def sample(self) -> Sample:
        """The problem behind the lens."""
        return self.view.sample


def draw_nulls(
    questions: Sequence[Question], base: Sample, draws: Draws, workers: int = 1, progress: Progress | None = None
) -> list[NDArray[np.float64]]:
    """Return the components of every question on shared draws, ``(n_components, n_resamples)`` each."""
    evaluate: Callable[[Draws], NDArray[np.float64]]
    if isinstance(draws, SignDraws):
        evaluate = partial(_values_of_signs, questions, base)
    elif (points := draws.points(base)) is not None:
        evaluate = _by_departures(questions, base, points)
    else:
        evaluate = _by_labels(questions, base)
    return _split(draws.map(evaluate, workers, progress), questions)


def _by_labels(questions: Sequence[Question], base: Sample) -> Callable[[Draws], NDArray[np.float64]]:
    """Return the function that evaluates questions on labels, or a single statistic on what it needs of them."""
    (question, *others) = questions
    if not others and question.view.is_base and question.statistic.components == (question.statistic,):
        return partial(_values_of_one, question.statistic, base)
    return partial(_values_of_labels, questions, base)


def _by_departures(
    questions: Sequence[Question], base: Sample, points: Points
) -> Callable[[Draws], NDArray[np.float64]]:
    """Return the function that evaluates questions on summaries of departures, where these suffice."""
    asked = [
        (question, [part.summary(question.sample) for part in question.statistic.components]) for question in questions
    ]
    wanted = list(dict.fromkeys((one.view, summary) for one, some in asked for summary in some if summary is not None))
    if not wanted or (len(questions) == 1 and len(wanted) == 1 and counts_events(*wanted[0])):
        return _by_labels(questions, base)
    tally = Tally(points, wanted)
    return partial(_values_of_tally, [(one, tally.known(one.view, some)) for one, some in asked], base, tally)


def _split(values: NDArray[np.float64], questions: Sequence[Question]) -> list[NDArray[np.float64]]:
    """Return the components of each question."""
    ends = np.cumsum([len(question.statistic.components) for question in questions])
    return np.split(values, ends[:-1])


def _values_of_one(statistic: TestStatistic, base: Sample, draws: Draws) -> NDArray[np.float64]:
    return null_values(statistic, base, draws)[None]


def _values_of_signs(questions: Sequence[Question], base: Sample, draws: Draws) -> NDArray[np.float64]:
    """Return every component ``(n_components, n_replicates)`` of residuals whose groups have random signs."""
    blocks = []
    for _, signs in draws.blocks(base):
        asked = ((part, question.sample) for question in questions for part in question.statistic.components)
        blocks.append(np.stack([part.evaluate_signs(sample, signs) for part, sample in asked]))  # type: ignore[misc]
    return np.concatenate(blocks, axis=1)


def _values_of_labels(questions: Sequence[Question], base: Sample, draws: Draws) -> NDArray[np.float64]:
    """Return every component ``(n_components, n_replicates)`` on drawn labels, seen through every lens once."""
    views, blocks = list(dict.fromkeys(question.view for question in questions)), []
    for sample, drawn in draws.blocks(base):
        seen = {view: (sample, drawn) if view.is_base else (view.sample, view.outcomes(drawn)) for view in views}
        blocks.append(np.concatenate([components(question.statistic, *seen[question.view]) for question in questions]))
    return np.concatenate(blocks, axis=1)


def _values_of_tally(
    asked: Sequence[tuple[Question, list[Wanted] | None]], base: Sample, tally: Tally, draws: Draws
) -> NDArray[np.float64]:
    """Return every component ``(n_components, n_replicates)``, from labels where a question has no summaries."""
    counted = draws.tallied(tally)
    others = [question for question, known in asked if known is None]
    values = dict(zip(others, _split(_values_of_labels(others, base, draws), others), strict=True)) if others else {}
    for question, known in asked:
        if known is not None:
            parts = zip(question.statistic.components, known, strict=True)
            values[question] = np.stack([part.evaluate_summary(question.sample, counted[pair]) for part, pair in parts])
    return np.concatenate([values[question] for question, _ in asked])


def null_values(statistic: TestStatistic, sample: Sample, draws: Draws) -> NDArray[np.float64]:
    """Return a statistic on every draw, ``(n_resamples,)``, from the summary that it needs or from all labels."""
    summary = statistic.summary(sample)
    counted = None if summary is None else draws.summarise(sample, summary)
    if counted is not None:
        return np.concatenate([statistic.evaluate_summary(sample, part) for part in counted])
    return np.concatenate([components(statistic, drawn, outcomes)[0] for drawn, outcomes in draws.blocks(sample)])


def components(statistic: TestStatistic, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
    """Return every component ``(n_components, ...)`` of outcomes ``(..., n_samples)``; refuse other shapes and NaN."""
    values = np.asarray(statistic.evaluate_components(sample, outcomes), dtype=np.float64)
    expected = (len(statistic.components), *outcomes.shape[:-1])
    if values.shape != expected:
        msg = (
            f"`{type(statistic).__name__}.evaluate` must reduce the last axis of outcomes (..., n_samples): expected "
            f"shape {expected[1:]}, got {values.shape[1:]}."
        )
        raise ValueError(msg)
    if np.isnan(values).any():
        msg = f"`{type(statistic).__name__}.evaluate` must return numbers, got nan."
        raise ValueError(msg)
    return values
