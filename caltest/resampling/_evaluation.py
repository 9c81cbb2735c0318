"""Values of statistics on simulated labels, several of them on the same draws."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._sample import Sample
from caltest.predictions._view import LensView
from caltest.resampling._draws import Draws
from caltest.resampling._protocol import TestStatistic
from caltest.resampling._signs import SignDraws
from caltest.resampling._summaries import Summary
from caltest.resampling._tally import Tally, Wanted
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
    elif (tally := draws.tally(base, _wanted(questions))) is not None:
        evaluate = partial(_values_of_tally, questions, base, tally)
    elif _is_alone(questions):
        evaluate = partial(_values_of_one, questions[0].statistic, base)
    else:
        evaluate = partial(_values_of_labels, questions, base)
    return _split(draws.map(evaluate, workers, progress), questions)


def _split(values: NDArray[np.float64], questions: Sequence[Question]) -> list[NDArray[np.float64]]:
    """Return the components of each question."""
    ends = np.cumsum([len(question.statistic.components) for question in questions])
    return np.split(values, ends[:-1])


def _summaries(question: Question) -> list[Summary | None]:
    """Return what every component of a question needs to know of the labels; None if that is all of them."""
    return [part.summary(question.sample) for part in question.statistic.components]


def _wanted(questions: Iterable[Question]) -> list[Wanted]:
    """Return the summaries that questions need, each once."""
    pairs = ((question.view, summary) for question in questions for summary in _summaries(question))
    return list(dict.fromkeys((view, summary) for view, summary in pairs if summary is not None))


def _is_alone(questions: Sequence[Question]) -> bool:
    """Return whether a single statistic is asked for, on the sample that labels are drawn for."""
    question = questions[0]
    return len(questions) == 1 and question.view.is_base and question.statistic.components == (question.statistic,)


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


def _values_of_tally(questions: Sequence[Question], base: Sample, tally: Tally, draws: Draws) -> NDArray[np.float64]:
    """Return every component ``(n_components, n_replicates)`` from summaries, and from labels where these do not do."""
    counted = draws.tallied(tally)
    others = [question for question in questions if not _is_covered(question, tally)]
    values = dict(zip(others, _split(_values_of_labels(others, base, draws), others), strict=True)) if others else {}
    return np.concatenate(
        [values[question] if question in values else _values_of_summaries(question, counted) for question in questions]
    )


def _is_covered(question: Question, tally: Tally) -> bool:
    return all(summary is not None and tally.knows(question.view, summary) for summary in _summaries(question))


def _values_of_summaries(question: Question, counted: Mapping[Wanted, Any]) -> NDArray[np.float64]:
    parts = zip(question.statistic.components, _summaries(question), strict=True)
    found = [(part, counted[question.view, summary]) for part, summary in parts if summary is not None]
    return np.stack([part.evaluate_summary(question.sample, each) for part, each in found])


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
