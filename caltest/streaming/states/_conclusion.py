"""Tests of calibration from the sums of a state."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._lens import Lens, LensLike, lens_name, lens_short_name, names_event
from caltest.resampling import Consistency
from caltest.resampling.distributions._base import SMALLEST_PVALUE, Distribution, MonteCarloDistribution
from caltest.resampling.draws._kept_sums import KeptSums
from caltest.resampling.engine._pvalues import combine_pvalues, tail_pvalues
from caltest.resampling.engine._run import monte_carlo_error
from caltest.results import ComponentResult, Note, TestResult
from caltest.results._decision import rejects
from caltest.results._naming import describe
from caltest.results._verdict import OF_CONFIDENCE, OF_EVENT, FindingKind
from caltest.results._verdict import Finding as FoundError
from caltest.statistics._base import Statistic
from caltest.streaming.states._micro_cells import Nodes
from caltest.streaming.states._values import Simulation, Streamed

_DIRECTION_LEVEL = 0.05
_SMALLEST_SHOWN = 1e-12


@dataclass(frozen=True, eq=False)
class Finding:
    """Value, p-value and null distribution of a test, and how they were found."""

    parts: tuple[ComponentResult, ...]
    value: float
    pvalue: float
    null: Distribution
    method: str
    error: float
    origin: str
    smallest: float = SMALLEST_PVALUE


def conclude(
    statistic: Statistic,
    state: Streamed,
    *,
    lens: LensLike,
    alpha: float,
    n_resamples: int,
    rng: np.random.Generator,
) -> TestResult:
    """Return the result of a test of two outcomes, exact where the null distribution is known."""
    parts = statistic.for_sample(state).components
    observed = values_of(parts, state, statistic)[:, 0]
    exact = statistic.exact_distribution_of_sums(state)
    if exact is None:
        found = _simulated(parts, observed, state, n_resamples, rng)
    else:
        found = _computed(statistic, state, float(observed[0]), exact)
    size, impossible = (state.n_samples, 2), state.sums.n_impossible
    findings = _findings(state, lens)
    return report(statistic, found, lens=lens, alpha=alpha, size=size, n_impossible=impossible, findings=findings)


POSSIBLE = (
    "a state has no observations, so that `statistic` may be ECE, MCE, SquaredL2 and HosmerLemeshow with EqualWidth or "
    "Edges cells, KS, Kuiper, Spiegelhalter, TemperatureScore and its sides, and in tests TCal(n)"
)


def values_of(
    parts: Sequence[Statistic], sums: KeptSums, asked: Statistic, possible: str = POSSIBLE
) -> NDArray[np.float64]:
    """Return the values of statistics ``(n_statistics, n_data_sets)``; refuse what needs the observations."""
    refusal = ValueError(f"{possible}; got {describe(asked)}{asked.hint_of_sums}.")
    if any(part.n_outcomes not in {None, sums.n_outcomes} for part in parts):
        raise refusal
    try:
        found = [part.evaluate_sums(sums) for part in parts]
    except ValueError:  # cells cannot be made of those of the state
        if len(parts) == 1:
            raise
        raise refusal from None
    values = [value for value in found if value is not None]
    if len(values) < len(found):
        raise refusal
    return np.stack(values)


def report(
    statistic: Statistic,
    found: Finding,
    *,
    lens: LensLike,
    alpha: float,
    size: tuple[int, int],
    n_impossible: int,
    findings: tuple[FoundError, ...] = (),
) -> TestResult:
    """Return the result of a test of a state; ``size`` are the numbers of observations and of outcomes."""
    null = Consistency()
    return TestResult(
        title="Calibration test of a state",
        test_statistic=statistic,
        statistic=found.value,
        pvalue=found.pvalue,
        smallest_possible_pvalue=found.smallest,
        null=found.null,
        lens=lens,
        lens_name=lens_name(lens),
        lens_short_name=lens_short_name(lens),
        n_samples=size[0],
        n_outcomes=size[1],
        components=found.parts,
        method=found.method,
        numerical_error=found.error,
        hypothesis=null.hypothesis,
        origin=found.origin,
        conditions=null.conditions,
        alpha=alpha,
        findings=findings,
        notes=_impossible(n_impossible),
    )


def _computed(statistic: Statistic, state: Streamed, value: float, law: Distribution) -> Finding:
    """Return what the exact null distribution tells."""
    tail = law.tail(value)
    pvalue = max(0.0 if state.sums.n_impossible else min(tail.probability, 1.0), SMALLEST_PVALUE)
    bound = math.isinf(tail.relative_error)
    kind = "upper bound" if bound else "computed exactly"
    origin = f"{kind} from sums over micro-cells, predictions fixed (valid at every sample size): {tail.method}"
    parts = (ComponentResult(test_statistic=statistic, statistic=value, pvalue=pvalue, null=law),)
    error = min(tail.relative_error, 1.0) * pvalue
    return Finding(parts, value, pvalue, law, "upper-bound" if bound else "exact", error, origin)


def _simulated(
    parts: tuple[Statistic, ...],
    observed: NDArray[np.float64],
    state: Streamed,
    n_resamples: int,
    rng: np.random.Generator,
) -> Finding:
    """Return what simulated numbers of events tell."""
    drawn = [observed[:, None]]
    drawn += [values_of(parts, sums, parts[0]) for sums in Simulation(state).data_sets(n_resamples, rng)]
    origin = (
        f"{n_resamples} Monte Carlo draws of the numbers of events in micro-cells, predictions fixed; predictions "
        "within a micro-cell are replaced by two with the same mean and variance"
    )
    return drawn_finding(parts, np.concatenate(drawn, axis=1), state.sums.n_impossible, origin)


def drawn_finding(parts: tuple[Statistic, ...], values: NDArray[np.float64], n_impossible: int, origin: str) -> Finding:
    """Return what Monte Carlo draws tell, from ``values (n_statistics, B + 1)`` that begin with the observed ones."""
    observed, drawn = values[:, 0].copy(), values[:, 1:]
    if n_impossible:
        values[:, 0] = np.inf
    ranked = tail_pvalues(values)
    components = tuple(
        ComponentResult(
            test_statistic=part, statistic=float(value), pvalue=float(p[0]), null=MonteCarloDistribution(some)
        )
        for part, value, p, some in zip(parts, observed, ranked, drawn, strict=True)
    )
    if len(parts) == 1:
        value, pvalue = float(observed[0]), float(ranked[0, 0])
        law: Distribution = components[0].null
    else:
        smallest = 0.0 - np.log10(ranked.min(axis=0))
        value, pvalue, law = float(smallest[0]), float(combine_pvalues(ranked)[0]), MonteCarloDistribution(smallest[1:])
    error = monte_carlo_error(pvalue, drawn.shape[1])
    return Finding(components, value, pvalue, law, "monte-carlo", error, origin, 1 / values.shape[1])


def _impossible(number: int) -> tuple[Note, ...]:
    if not number:
        return ()
    labels = "1 label" if number == 1 else f"{number} labels"
    text = (
        f"{labels} had been given probability 0 through this lens. That is impossible under the null hypothesis, so "
        "the p-value is the smallest possible. Check whether the zero was meant or came from rounding."
    )
    return (Note("C201", text),)


def _findings(state: Streamed, lens: LensLike) -> tuple[FoundError, ...]:
    """Return the direction and the numbers that it rests on, if the number of events is significantly off."""
    nodes: Nodes = state.sums.nodes
    events, n = int(state.sums.count[:, 1].sum()), state.sums.n_samples
    expected = float(state.sums.prob.sum())
    if not (nodes.prob * (1 - nodes.prob)).any():
        return ()
    pvalue = nodes.two_sided(events)
    if not rejects(pvalue, _DIRECTION_LEVEL):
        return ()
    kinds: tuple[FindingKind, FindingKind] = ("over-confident", "under-confident")
    if names_event(lens):
        kinds = ("too high", "too low")
    finding = FoundError(
        kind=kinds[int(events > expected)],
        predicted=expected / n,
        observed=events / n,
        pvalue=max(pvalue, _SMALLEST_SHOWN),
        bound=pvalue < _SMALLEST_SHOWN,
        source="number of events",
        quantities=OF_CONFIDENCE if isinstance(lens, Lens) and lens.of_confidence else OF_EVENT,
    )
    return (finding,)
