"""From the numbers of a test to its result: notes, direction, and the origin of the null distribution in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from caltest.hypothesis_tests._evidence import Evidence
from caltest.predictions._arrays import Integers
from caltest.predictions._lens import LensLike, lens_name, lens_short_name
from caltest.predictions._sample import Sample
from caltest.predictions.cells._cells import few_cells_notes
from caltest.predictions.inputs._parts import effective_number
from caltest.resampling.distributions._base import TIE_TOLERANCE
from caltest.resampling.draws._alike_draws import AlikeDraws
from caltest.resampling.draws._schemes import Consistency, SignedGroups, TimedLabels
from caltest.resampling.draws._signs import AllSigns, SignDraws
from caltest.resampling.draws._similar_draws import SimilarDraws
from caltest.resampling.draws._timed_draws import SharedShockDraws, TimedDraws, inflation_of
from caltest.resampling.engine._evaluation import Question
from caltest.resampling.engine._pvalues import JOINTLY, UNDER_ANY_DEPENDENCE, correct_pvalues
from caltest.resampling.engine._run import Answer, monte_carlo_error, run
from caltest.resampling.engine._sparsity import sparsity_notes
from caltest.resampling.engine._stopping import Stopping
from caltest.results import ComponentResult, Note, TestResult
from caltest.results._decision import rejects
from caltest.results._description import percent
from caltest.results._note import warn_user
from caltest.results._progress import reporting

_UNUSUALLY_SMALL = 0.01
_FEW_WEIGHTS = 0.1  # of the observations
_SHOWN = 5  # observations that a note names


def ask_together(
    questions: Sequence[Question],
    base: Sample,
    null: Consistency,
    lenses: Sequence[LensLike],
    *,
    stopping: Stopping,
    options: Mapping[str, Any],
    notes: Sequence[Note] = (),
    correction: str = "holm",
    **how: Any,
) -> dict[str, Any]:
    """Return what a table of tests on the same draws holds: the tests, their global p-value, the level and notes.

    The notes are known beforehand, and warn before the work starts, with that on too few draws for the correction. With
    min-p, which is known after it, there are the adjusted p-values too, and the smallest ones that were possible.
    """
    level, jointly = options["alpha"], correction == JOINTLY
    if not jointly:
        notes = *notes, *few_draws_notes(len(questions), stopping.n_resamples, level, correction)
    warn_before(notes)
    with reporting(options["progress"], "simulating labels") as report:
        shared = {"workers": options["workers"], "rng": options["rng"], "progress": report}
        found = run(questions, base, null, n_resamples=stopping, **shared, **how)
    joint: dict[str, Any] = {}
    if jointly:
        joint = {
            "adjusted": tuple(answer.adjusted for answer in found.answers),
            "smallest_adjusted": tuple(answer.smallest_adjusted for answer in found.answers),
        }
        few = few_draws_notes(len(questions), stopping.n_resamples, level, least=min(joint["smallest_adjusted"]))
        warn_before(few)
        notes = *notes, *few
    return joint | {
        "tests": describe_answers(found.answers, null, lenses, classes=options["classes"], alpha=level),
        "pvalue": found.pvalue,
        "smallest_possible_pvalue": found.smallest,
        "alpha": level,
        "notes": notes,
    }


def describe_answers(
    answers: Sequence[Answer],
    null: Consistency,
    lenses: Sequence[LensLike],
    *,
    classes: Sequence[Any] | None = None,
    alpha: float = 0.05,
) -> tuple[TestResult, ...]:
    """Return the results of several tests, in their order; what is known of a sample is computed once."""
    evidence: dict[int, Evidence] = {}
    results = []
    for answer, lens in zip(answers, lenses, strict=True):
        found = describe_answer(answer, null, lens=lens, classes=classes, alpha=alpha)
        results.append(replace(found, _evidence=evidence.setdefault(id(answer.sample), found._evidence)))
    return tuple(results)


def describe_answer(
    answer: Answer,
    null: Consistency,
    *,
    lens: LensLike,
    classes: Sequence[Any] | None = None,
    alpha: float = 0.05,
    title: str = "Calibration test",
) -> TestResult:
    """Return the result of a test; its l2 error is that of calibration, whatever the hypothesis is."""
    sample, parts = answer.sample, answer.statistic.components
    scheme = null.for_sample(sample)
    components = tuple(
        ComponentResult(
            test_statistic=part,
            statistic=float(value),
            pvalue=float(pvalue),
            null=distribution,
            derived=part.derived(sample, float(value), distribution),
        )
        for part, value, pvalue, distribution in zip(
            parts, answer.component_values, answer.component_pvalues, answer.component_nulls, strict=True
        )
    )
    notes = (
        *scheme.notes,
        *_weight_notes(sample),
        *(sparsity_notes(parts, sample, answer.draws) if answer.draws is not None else ()),
        *dict.fromkeys(note for part in parts for note in few_cells_notes(sample, part.partition)),
        *_constant_notes(components),
        *_scatter_notes(components),
        *impossible_note(sample.impossible),
    )
    many = Note("C103", "many observations have predictions far from 0 and 1.")
    return TestResult(
        title=title,
        test_statistic=answer.statistic,
        statistic=answer.value,
        pvalue=answer.pvalue,
        smallest_possible_pvalue=answer.smallest,
        null=answer.null,
        derived=components[0].derived if len(components) == 1 else {},
        lens=lens,
        lens_name=lens_name(lens, classes),
        lens_short_name=lens_short_name(lens, classes),
        n_samples=sample.n_samples,
        n_outcomes=sample.n_outcomes,
        n_groups=sample.n_groups,
        weighted=sample.weight is not None,
        components=components,
        method=answer.method,
        numerical_error=_numerical_error(answer),
        hypothesis=null.hypothesis,
        of_calibration=null.calibration_function is None,
        origin=_origin(answer, null),
        conditions=(*scheme.conditions, many) if answer.method == "asymptotic" else scheme.conditions,
        alpha=alpha,
        score=_score(components, sample),
        impossible_samples=sample.impossible,
        notes=notes,
        _evidence=Evidence.of(replace(sample, given_null=sample.given), lens, classes),
    )


def _score(components: Sequence[ComponentResult], sample: Sample) -> float | None:
    """Return the signed value of the first statistic that shows a direction; None without one."""
    scores = (component.test_statistic.direction(sample, sample.outcome) for component in components)
    return next((score for score in scores if score is not None), None)


def _weight_notes(sample: Sample) -> tuple[Note, ...]:
    """Return a caution if a few observations have nearly all of the weight."""
    worth = sample.n_samples if sample.weight is None else effective_number(sample.weight)
    if worth >= _FEW_WEIGHTS * sample.n_samples:
        return ()
    text = f"The weights are so unequal that {sample.n_samples:,} observations are worth {worth:.3g} of equal weight."
    return (Note("C304", text),)


def _origin(answer: Answer, null: Consistency) -> str:
    """Return where the null distribution comes from, in words."""
    scheme = null.for_sample(answer.sample)
    if isinstance(answer.draws, AllSigns) and isinstance(scheme, SignedGroups):
        return scheme.origin_of_all(answer.draws.n_resamples + 1)
    if isinstance(answer.draws, SignDraws):
        return _simulated_origin(answer, scheme.origin)
    if isinstance(answer.draws, AlikeDraws) and isinstance(scheme, SignedGroups):
        return _simulated_origin(answer, partial(scheme.origin_of_alike, icc=answer.draws.icc))
    if isinstance(answer.draws, TimedDraws) and isinstance(scheme, TimedLabels):
        shared = (
            max(answer.draws.correlation, answer.draws.alike) if isinstance(answer.draws, SharedShockDraws) else 0.0
        )
        similar = isinstance(answer.draws, SimilarDraws)
        how = partial(scheme.origin_of_timed, inflation=inflation_of(answer.sample), shared=shared, similar=similar)
        return _simulated_origin(answer, how)
    if answer.tail is None:
        said = _simulated_origin(answer, null.origin)
    else:
        said = f"{_ORIGINS.get(answer.method, _LIMIT)}: {answer.tail.method}"
    return scheme.origin_of_independent(said) if isinstance(scheme, SignedGroups) else said


_ORIGINS = {
    "upper-bound": "upper bound, predictions fixed (valid at every sample size)",
    "exact": "computed exactly, predictions fixed (valid at every sample size)",
}
_LIMIT = "limit for large samples, predictions fixed (not exact in small samples)"


def _simulated_origin(answer: Answer, origin: Callable[[int | str], str]) -> str:
    """Return the origin of draws, and why they stopped if they did before their largest number."""
    made, stopping = _n_draws(answer), answer.stopping
    if stopping is None or made == stopping.n_resamples:
        return origin(made)
    reason = f"stopped because at least {stopping.n_exceedances} of them were at least as extreme"
    return f"{origin(f'{made:,} of at most {stopping.n_resamples:,}')}; {reason}"


def _n_draws(answer: Answer) -> int:
    return 0 if answer.draws is None or isinstance(answer.draws, AllSigns) else answer.draws.n_resamples


def _numerical_error(answer: Answer) -> float:
    if answer.tail is None:
        return monte_carlo_error(answer.pvalue, _n_draws(answer), answer.component_pvalues)
    return min(answer.tail.relative_error, 1.0) * answer.pvalue  # an infinite error: the p-value is an upper bound


def _scatter_notes(components: Sequence[ComponentResult]) -> list[Note]:
    """Name the statistics that are smaller than chance allows."""
    return [
        Note(
            "C203",
            f"{component.test_statistic} is below the 1 % quantile of its null distribution. The labels vary less than "
            "predicted: the model is under-confident, the observations are not independent, or it is chance (1 in "
            "100).",
            about=str(component.test_statistic),
        )
        for component in components
        if component.test_statistic.measures_scatter
        and rejects(1 - component.pvalue, _UNUSUALLY_SMALL)
        and not _is_constant(component)
        and component.null.cdf(component.statistic) < _UNUSUALLY_SMALL
    ]


def _constant_notes(components: Sequence[ComponentResult]) -> list[Note]:
    """Name the statistics whose null distribution is a single value, unless others of a combination can vary."""
    if not all(map(_is_constant, components)):
        return []
    return [
        Note(
            "C202",
            f"{component.test_statistic} is constant under the null hypothesis for these predictions, so it can only "
            "detect labels that had been given probability 0. Choose another lens or statistic.",
            about=str(component.test_statistic),
        )
        for component in components
    ]


def _is_constant(component: ComponentResult) -> bool:
    return bool(component.null.std <= TIE_TOLERANCE * abs(component.null.mean))


def impossible_note(rows: Integers) -> list[Note]:
    """Name these observations, if there are any: their label had been given probability 0."""
    if not rows.size:
        return []
    shown = ", ".join(map(str, rows[:_SHOWN])) + (", ..." if rows.size > _SHOWN else "")
    one = rows.size == 1
    labels = f"1 label (observation {shown})" if one else f"{rows.size} labels (observations {shown})"
    return [
        Note(
            "C201",
            f"{labels} had been given probability 0 through this lens. That is impossible under the null hypothesis, "
            "so the p-value is the smallest possible. Check whether the zero was meant or came from rounding.",
        )
    ]


def few_draws_notes(
    n_tests: int, n_resamples: int, alpha: float, correction: str = "holm", *, least: float | None = None
) -> list[Note]:
    """Return a note if no adjusted p-value, at least ``least`` if that is known, can reach the level with the draws."""
    if n_tests == 1:
        return []
    smallest = least
    if correction not in UNDER_ANY_DEPENDENCE:
        smallest = float(correct_pvalues([1 / (n_resamples + 1)] * n_tests, correction)[0])
    so = f", so no single test can reject at the {percent(alpha)} level"
    return few_draws(n_resamples, n_tests, alpha, f"and {n_tests} tests", so, smallest=smallest)


def few_draws(
    n_resamples: int,
    number: float,
    alpha: float,
    tests: str,
    so: str = "",
    *,
    of: str = "",
    smallest: float | None = None,
) -> list[Note]:
    """Return a note if no adjusted p-value, ``number`` times the smallest one unless given, can reach the level.

    The words say which tests are adjusted together, what follows, and of what the p-value is.
    """
    least = min(number / (n_resamples + 1), 1.0) if smallest is None else smallest
    if rejects(least, alpha):
        return []
    what = f"With {n_resamples:,} draws {tests} no adjusted p-value{of} can be below {least:.2g}{so}."
    return [Note("C205", f"{what} Take {enough_draws(number, alpha):,} draws or more.")]


def stopping_of_tests(n_tests: int, options: Mapping[str, Any], n_probabilities: int) -> Stopping:
    """Return the draws of some tests: by default as many as their correction needs, also for large data."""
    stopping = Stopping.of(options["n_resamples"], options["n_exceedances"], n_probabilities)
    return stopping.at_least(enough_draws(n_tests, options["alpha"])) if options["n_resamples"] is None else stopping


def enough_draws(n_tests: float, alpha: float) -> int:
    """Return a number of draws with which every one of several tests can reject."""
    return math.ceil(n_tests / alpha * (1 - TIE_TOLERANCE))


def most_tests(n_resamples: int, alpha: float) -> int:
    """Return the largest number of tests of which each can reject with this number of draws."""
    return math.floor(alpha * (n_resamples + 1) * (1 + TIE_TOLERANCE))


def warn_before(notes: Sequence[Note]) -> None:
    """Warn of something before the work starts."""
    for note in notes:
        warn_user(str(note))
