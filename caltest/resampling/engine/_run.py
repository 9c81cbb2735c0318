"""The engine: observed values, null distributions and p-values of several statistics on the same draws.

Every public test, table and study of calibration is a list of questions to `run`; a single test is a list of one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TypeVar

import numpy as np

from caltest.predictions._arrays import Floats
from caltest.predictions._sample import Sample
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import SeedLike, refuse_if, validate_rng, validate_workers
from caltest.resampling.distributions._base import (
    SMALLEST_PVALUE,
    AllArrangements,
    Distribution,
    MonteCarloDistribution,
    Tail,
)
from caltest.resampling.draws._alike_draws import MOST_NUMBERS, AlikeDraws
from caltest.resampling.draws._labels import Draws
from caltest.resampling.draws._schemes import Consistency, TimedLabels
from caltest.resampling.draws._signs import AllSigns, SignDraws, n_groups
from caltest.resampling.draws._similar_draws import SimilarDraws
from caltest.resampling.draws._timed_draws import SharedShockDraws, TimedDraws
from caltest.resampling.engine._evaluation import Evaluation, Question, components
from caltest.resampling.engine._pvalues import adjust_jointly, global_pvalue, rank_pvalues, smallest_pvalue, tail_pvalue
from caltest.resampling.engine._statistic import Statistic
from caltest.resampling.engine._stopping import EXCEEDANCES, FEWER_DRAWS, Stopping
from caltest.results._progress import Progress

VALID_METHODS = ("auto", "exact", "monte-carlo")
"""How a null distribution may be found that is valid at every sample size."""
METHODS = (*VALID_METHODS, "asymptotic")
"""How a null distribution may be found."""

LARGEST_ERROR, FAR_TAIL = 0.05, 1e-8  # a less exact tail is replaced by draws, unless no draw would reach it
# A second simulation has fewer rounds, because each takes as long as hundreds of draws. Where there is little time it
# decides more often than not; there draws go on until the p-value is larger than the usual level, whatever comes.
_FAST_GROWTH, _FASTER_GROWTH = 1.5, 4.0
_USUAL_LEVEL = 0.05
_OF_BOTH = ("smallest", "adjusted", "smallest_adjusted")

AnyStatistic = TypeVar("AnyStatistic", bound=Statistic)


@dataclass(frozen=True, eq=False)
class Answer:
    """The numbers of one test.

    Attributes
    ----------
    statistic : Statistic
        The statistic, for this sample.
    sample : Sample
        The sample that it was evaluated on.
    value : float
        Observed value; for a combination -log10 of the smallest p-value of its components.
    null : Distribution
        Its null distribution.
    pvalue : float
        P-value.
    component_values, component_pvalues : arrays of shape (n_components,)
        Observed values and p-values of the components.
    component_nulls : tuple of Distribution
        Their null distributions.
    method : {"monte-carlo", "random-signs", "all-signs", "alike-labels", "timed-labels", "shared-shocks", "exact", ...}
        How the null distribution was found.
    smallest : float
        No p-value below it is possible, whatever the labels are.
    tail : Tail or None
        A computed tail probability and its error; None for Monte Carlo draws.
    draws : Draws or None
        The draws that the p-value rests on; None for a computed distribution.
    stopping : Stopping or None
        How many draws there could have been; None for a computed distribution.
    ranked : array of shape (n_resamples + 1,) or None
        P-values of all data sets, the observed one first; None for a computed distribution.
    adjusted, smallest_adjusted : float
        P-value adjusted for the number of questions on the same draws by min-p, and the smallest one that there could
        be, of the draws made; those of the test itself if it is asked alone.
    """

    statistic: Statistic
    sample: Sample
    value: float
    null: Distribution
    pvalue: float
    component_values: Floats
    component_pvalues: Floats
    component_nulls: tuple[Distribution, ...]
    method: str
    smallest: float = SMALLEST_PVALUE
    tail: Tail | None = None
    draws: Draws | None = None
    stopping: Stopping | None = None
    ranked: Floats | None = None
    adjusted: float = math.nan
    smallest_adjusted: float = math.nan

    def undecided(self) -> Answer:
        """Return the answer of data that decide nothing: every p-value is 1, unless a label had been ruled out."""
        if self.sample.impossible.size:
            return self
        return replace(self, pvalue=1.0, component_pvalues=np.ones_like(self.component_pvalues), adjusted=1.0)


@dataclass(frozen=True, eq=False)
class Answers:
    """The numbers of several tests on the same draws, in the order of the questions.

    Attributes
    ----------
    answers : tuple of Answer
        The numbers of each test.
    known : float or None
        The global p-value, if the answers come from two null distributions or from different numbers of draws.
    smallest : float
        No global p-value below it is possible.
    """

    answers: tuple[Answer, ...]
    known: float | None = None
    smallest: float = SMALLEST_PVALUE

    @cached_property
    def pvalue(self) -> float:
        """Global p-value of "all hypotheses are true": exact min-p over the tests, or that of a single test."""
        if self.known is not None:
            return self.known
        if len(self.answers) == 1:
            return self.answers[0].pvalue
        ranked = [answer.ranked for answer in self.answers if answer.ranked is not None]
        return global_pvalue((answer.sample for answer in self.answers), ranked)


def run(
    questions: Sequence[Question],
    base: Sample,
    null: Consistency,
    *,
    n_resamples: int | Stopping,
    method: str = "monte-carlo",
    workers: int = 1,
    rng: SeedLike = None,
    progress: Progress | None = None,
) -> Answers:
    """Answer several questions on the same draws.

    Parameters
    ----------
    questions : sequence of Question
        Statistics and samples; their samples follow the null hypothesis already (`Consistency.under_null`).
    base : Sample
        The sample that labels are simulated for.
    null : Consistency
        The null hypothesis.
    n_resamples : int or Stopping
        Number of draws, or a rule that stops them early. Each question takes its p-value at its own stop, the global
        p-value at another; the draws end when all of them have stopped.
    workers, rng, progress
        As in `calibration_test`.
    method : {"auto", "exact", "monte-carlo", "asymptotic"}
        How the null distribution is found. Several questions share their draws, so that "auto" simulates labels for
        them.

    Returns
    -------
    Answers
        In the order of the questions.

    Raises
    ------
    ValueError
        If a sample has more outcomes than its statistic is defined for; if ``method`` is "exact" or "asymptotic" and
        there are several questions or the distribution is not known; if predictions are resampled for several lenses.
    """
    asked = [Question(settle(question.statistic, question.sample), question.view) for question in questions]
    if null.resample_predictions and not all(question.view.is_base for question in asked):
        refuse(f"several lenses or subgroups need fixed predictions, Consistency(); got {null}.")
    refuse_if(
        any(question.view.is_base and question.sample is not base for question in asked),
        "a view without a lens must be a view of `base`, the sample that labels are simulated for.",
    )
    generator = validate_rng(rng)
    stopping = n_resamples if isinstance(n_resamples, Stopping) else Stopping(n_resamples)
    draws = null.draws(stopping.n_resamples, generator)
    validate_workers(workers)
    scheme = null.for_sample(base)
    if scheme is not null:
        _refuse_others(asked)
    conclude = partial(_draw_until, asked, base, stopping=stopping, workers=workers, progress=progress)
    if isinstance(scheme, TimedLabels):
        refuse_if(method in {"exact", "asymptotic"}, _for_independent(method, "time"))
        return _conclude_in_time(conclude, null, base, stopping, generator)
    found = None
    if len(asked) == 1 and method != "monte-carlo":
        computed = _compute(asked[0], null, method)
        found = None if computed is None else Answers((computed,))
    elif method in {"exact", "asymptotic"}:
        refuse(f'method="{method}" answers one question, several share their draws; got {len(asked)} questions.')
    found = conclude(draws) if found is None else found
    if scheme is null:
        return found
    found = _larger(found, conclude(scheme.draws(stopping.n_resamples, generator)))
    few = min(stopping.n_resamples, max(FEWER_DRAWS, MOST_NUMBERS // base.n_samples))
    draw = partial(conclude, stopping=Stopping(few, stopping.n_exceedances or EXCEEDANCES))
    alike = scheme.alike_draws(base, few, generator)
    if alike is not None:
        found = _larger(found, draw(alike))
    least = 0.0 if alike is None else alike.icc
    allowed = [0.0 if one.view.is_base else scheme.largest_icc(one.sample) for one in asked]
    if not max(allowed) > least or base.is_large:
        return found
    return _larger_of_parts(found, draw(AlikeDraws.as_alike(base, max(allowed), few, generator)), allowed, least)


def _conclude_in_time(
    conclude: Callable[..., Answers], null: Consistency, base: Sample, stopping: Stopping, rng: np.random.Generator
) -> Answers:
    """Return the answers where labels are known only after a lead.

    Where labels of similar predictions depend more on each other, there is too little time, or labels are rare, the
    p-values of labels that share more of their shocks are taken if these are larger.
    """
    n_resamples = stopping.n_resamples
    found = conclude(TimedDraws.as_observed(base, n_resamples, rng))
    own = [_in_time(null, answer.sample) for answer in found.answers]
    similar = SimilarDraws.of_similar(base, n_resamples, rng)
    if similar is not None:
        early = Stopping(n_resamples, stopping.n_exceedances or EXCEEDANCES, _FAST_GROWTH)
        found = _larger(found, conclude(similar, stopping=early, known=found))
    enough = max(EXCEEDANCES, math.ceil(_USUAL_LEVEL * (n_resamples + 1)))
    early = Stopping(n_resamples, stopping.n_exceedances or enough, _FASTER_GROWTH)
    for shares in dict.fromkeys(one for scheme in own for one in scheme.further):
        draws = SharedShockDraws.with_shares(shares, base, n_resamples, rng)
        shared = conclude(draws, stopping=early, known=found)
        both = zip(own, found.answers, shared.answers, strict=True)
        answers = tuple(_of_larger(*pair) if shares in scheme.further else pair[0] for scheme, *pair in both)
        found = Answers(answers, max(found.pvalue, shared.pvalue), found.smallest)
    pairs = zip(own, found.answers, strict=True)
    answers = tuple(one.undecided() if scheme.decides_nothing else one for scheme, one in pairs)
    nothing = _in_time(null, base).decides_nothing and not any(one.sample.impossible.size for one in answers)
    return Answers(answers, 1.0 if nothing else found.pvalue, found.smallest)


def _in_time(null: Consistency, sample: Sample) -> TimedLabels:
    """Return the null hypothesis for the timing of a sample, of which nothing is known where there is none."""
    scheme = null.for_sample(sample)
    return scheme if isinstance(scheme, TimedLabels) else TimedLabels()


def _draw_until(
    questions: Sequence[Question],
    base: Sample,
    draws: Draws,
    *,
    stopping: Stopping,
    workers: int,
    progress: Progress | None,
    known: Answers | None = None,
) -> Answers:
    """Return the answers of draws that are made until every question, and the global one, has its p-value.

    ``known`` are answers of other draws, if the larger p-values count: where these draws cannot exceed one, they stop.
    """
    stopping = Stopping(draws.n_resamples) if isinstance(draws, AllSigns) else stopping
    evaluation = Evaluation(questions, base, draws)
    observed, ranked = evaluation.observed()
    found: list[Answer | None] = [None] * len(questions)
    joint: float | None = None
    nulls: list[Floats] = [np.empty((len(values), 0)) for values in ranked]

    others = [0.0] * len(questions) if known is None else [answer.pvalue for answer in known.answers]

    def report(done: float, _: float) -> None:
        if progress is not None:
            progress(done, stopping.n_resamples)

    report(0.0, 0.0)  # from here on time is spent on draws
    for before, number in stopping.rounds:
        some = replace(draws, first=draws.first + before, n_resamples=number - before)
        more = evaluation.nulls(some, workers, report)
        nulls = [np.concatenate(pair, axis=1) for pair in zip(nulls, more, strict=True)]
        pool = replace(draws, n_resamples=number)
        each = zip(questions, observed, ranked, nulls, strict=True)
        concluded = [_conclude(*one, draws=pool, stopping=stopping) for one in each]
        joined, possible = _adjusted(concluded)
        for place, answer in enumerate(concluded):
            pvalue = _at_checkpoint(stopping, answer.pvalue, number, before, others[place])
            if found[place] is None and pvalue is not None:
                # A rank of min-p is at least as large, so that it has come to its stop too.
                own = max(pvalue, _at_checkpoint(stopping, joined[place], number, before, others[place]) or 0.0)
                found[place] = replace(answer, pvalue=pvalue, adjusted=own, smallest_adjusted=possible[place])
        if joint is None and len(questions) > 1:
            rank = Answers(tuple(concluded)).pvalue
            joint = _at_checkpoint(stopping, rank, number, before, 0.0 if known is None else known.pvalue)
        answers = [answer for answer in found if answer is not None]
        if len(answers) == len(questions) and (joint is not None or len(questions) == 1):
            if number < stopping.n_resamples:
                report(stopping.n_resamples, 0.0)
            break
    ranks = [answer.ranked for answer in concluded if answer.ranked is not None]
    smallest = smallest_pvalue(ranks, stopping.n_resamples) if isinstance(draws, SignDraws) else answers[0].smallest
    return Answers(tuple(answers), joint, smallest)


def _adjusted(answers: Sequence[Answer]) -> tuple[Floats, Floats]:
    """Return p-values adjusted by min-p, and the smallest possible ones, of answers on the same draws."""
    if len(answers) == 1:
        return np.array([answers[0].pvalue]), np.array([answers[0].smallest])
    ranked = [answer.ranked for answer in answers if answer.ranked is not None]
    return adjust_jointly([answer.sample for answer in answers], ranked, [answer.smallest for answer in answers])


def _at_checkpoint(stopping: Stopping, rank: float, number: int, before: int, other: float) -> float | None:
    """Return the p-value if the draws stop at a checkpoint, also because it cannot exceed another one."""
    pvalue, largest = stopping.pvalue(rank, number, before), stopping.largest(number)
    return largest if pvalue is None and largest < other else pvalue


def _larger(independent: Answers, signed: Answers) -> Answers:
    """Return for every question the answer with the larger p-value.

    Random signs know how observations of a group depend on each other, but not how few rare labels there could have
    been; independent labels know the second only. Labels that are alike know both, if groups are as they suppose. An
    impossible label rejects however few arrangements of signs there are.
    """
    pairs = list(zip(independent.answers, signed.answers, strict=True))
    impossible = any(other.method == "all-signs" and other.sample.impossible.size for _, other in pairs)
    pvalue = independent.pvalue if impossible else max(independent.pvalue, signed.pvalue)
    return Answers(tuple(_of_larger(*pair) for pair in pairs), pvalue, max(independent.smallest, signed.smallest))


def _larger_of_parts(found: Answers, alike: Answers, allowed: Sequence[float], least: float) -> Answers:
    """Return the larger p-values of the parts that allow labels to be more alike than the whole does.

    A subgroup, or a class behind its lens, may have few groups with a surprise where the whole has many.
    """
    both = _larger(found, alike)
    each = zip(allowed, both.answers, found.answers, strict=True)
    return replace(both, answers=tuple(larger if icc > least else before for icc, larger, before in each))


def _of_larger(independent: Answer, signed: Answer) -> Answer:
    if signed.method == "all-signs" and signed.sample.impossible.size:
        return independent
    larger = independent if independent.pvalue > signed.pvalue else signed
    both = {name: max(getattr(one, name) for one in (independent, signed)) for name in _OF_BOTH}
    return replace(larger, **both)


def settle(statistic: AnyStatistic, sample: Sample) -> AnyStatistic:
    """Return a statistic for a sample; refuse a sample with more outcomes than it is defined for."""
    parts: list[Statistic] = [statistic, *statistic.components]
    for part in parts:
        if part.n_outcomes not in {None, sample.n_outcomes}:
            limited = part.partition if getattr(part.partition, "n_outcomes", None) == part.n_outcomes else part
            needed = "two-outcome lens" if part.n_outcomes == 2 else f"lens with {part.n_outcomes} outcomes"
            such = {2: " such as Confidence()", 3: " such as TopK(2)"}.get(part.n_outcomes or 0, "")
            refuse(f"`{type(limited).__name__}` needs a {needed}{such}, got {sample.n_outcomes} outcomes.")
    return statistic.for_sample(sample)  # type: ignore[return-value]


def computed_distribution(statistic: Statistic, sample: Sample, null: Consistency, method: str) -> Distribution | None:
    """Return the null distribution without draws where the method allows it and it is known: exact, or its limit.

    Raises
    ------
    ValueError
        If ``method`` is "exact" or "asymptotic" and the distribution is not known.
    """
    find = statistic.asymptotic_distribution if method == "asymptotic" else statistic.exact_distribution
    found = None if method == "monte-carlo" or null.resample_predictions else find(sample)
    if found is None and method == "asymptotic":
        refuse(f'method="asymptotic" needs {statistic.limit_needs}; got {statistic}, {null}.')
    if found is None and method == "exact":
        weighted = "" if sample.weight is None else ", without `sample_weight`"
        refuse(
            'method="exact" needs ECE, MCE, ConfidenceECE or HosmerLemeshow behind a two-outcome lens such as '
            f"Confidence(), predictions fixed{weighted}; got {statistic} with {sample.n_outcomes} outcomes, {null}."
        )
    return found


def _compute(question: Question, null: Consistency, method: str) -> Answer | None:
    """Return the answer of a computed distribution; None where labels must be simulated."""
    statistic, sample = question.statistic, question.sample
    refuse_if(sample.group is not None and method != "auto", _for_independent(method, "groups"))
    found = computed_distribution(statistic, sample, null, method)
    if found is None:
        return None
    observed = components(statistic, sample, sample.outcome)
    value = float(observed[0])
    tail = found.tail(value)
    if method == "auto" and not (tail.relative_error <= LARGEST_ERROR or tail.probability < FAR_TAIL):
        return None
    pvalue = tail_pvalue(sample, tail.probability)
    one = observed, np.array([pvalue])
    kind = "asymptotic" if method == "asymptotic" else "upper-bound" if math.isinf(tail.relative_error) else "exact"
    return Answer(statistic, sample, value, found, pvalue, *one, (found,), kind, tail=tail)


def _for_independent(method: str, design: str) -> str:
    return f'method="{method}" is for independent observations; with `{design}` use "auto" or "monte-carlo".'


def _refuse_others(questions: Sequence[Question]) -> None:
    """Raise ValueError if a statistic is not a function of the residuals."""
    for question in questions:
        sample = question.sample
        design = "groups" if sample.timing is None else "time"
        if sample.timing is not None:  # one group is enough to ask
            sample = replace(sample, group=np.zeros(sample.n_samples, dtype=np.int64))
        one = np.ones((1, n_groups(sample)), dtype=np.int8)
        for part in question.statistic.components:
            if part.evaluate_signs(sample, one) is None:
                refuse(
                    f"`{design}` needs a statistic of the residuals, such as ECE, KS, Kuiper, ClasswiseKS, SquaredL2, "
                    f"TemperatureScore, SCE, SKCE, MMCE or Omnibus of these; got {part}."
                )


def _conclude(
    question: Question, observed: Floats, ranked: Floats, null: Floats, *, draws: Draws, stopping: Stopping
) -> Answer:
    """Rank observed components ``(n_components,)`` among drawn ones ``(n_components, n_resamples)``.

    ``ranked`` are the observed ones again, computed as the draws are, so that rounding does not decide about ties.
    """
    part_pvalues, pvalues = rank_pvalues(question.sample, ranked, null)
    signed = isinstance(draws, SignDraws)
    nulls = tuple(_null(*one, draws) for one in zip(ranked, null, strict=True))
    value, distribution = float(observed[0]), nulls[0]
    if len(nulls) > 1:
        smallest = 0.0 - np.log10(part_pvalues.min(axis=0))  # never -0
        value, distribution = float(smallest[0]), _null(smallest[0], smallest[1:], draws)
    return Answer(
        question.statistic,
        question.sample,
        value,
        distribution,
        float(pvalues[0]),
        observed,
        part_pvalues[:, 0],
        nulls,
        draws.method,
        smallest=smallest_pvalue([pvalues], stopping.n_resamples) if signed else 1 / (stopping.n_resamples + 1),
        draws=draws,
        stopping=stopping,
        ranked=pvalues,
    )


def _null(observed: float, drawn: Floats, draws: Draws) -> Distribution:
    """Return the null distribution of draws; the observed arrangement is one of all."""
    return AllArrangements(np.append(observed, drawn)) if isinstance(draws, AllSigns) else MonteCarloDistribution(drawn)


def monte_carlo_error(pvalue: float, n_resamples: int, parts: Sequence[float] | Floats = ()) -> float:
    """Return the standard error of a p-value from a number of draws; 0 if nothing is drawn.

    That of a combination of several ``parts`` also has the error of the smallest of their p-values.
    """
    own = math.sqrt(pvalue * (1 - pvalue) / n_resamples) if n_resamples else 0.0
    if len(parts) < 2:
        return own
    smallest = min(parts)
    return math.hypot(own, joint_error(pvalue, smallest, monte_carlo_error(smallest, n_resamples)))


def joint_error(pvalue: float, smallest: float, error: float) -> float:
    """Return the standard error of a joint p-value that comes from that of the smallest p-value p.

    The joint one is taken as 1 - (1 - p)^m, that of m independent tests.
    """
    number = math.log1p(-pvalue) / math.log1p(-smallest) if max(pvalue, smallest) < 1 else 0.0
    return number * (1 - smallest) ** (number - 1) * error if number else 0.0
