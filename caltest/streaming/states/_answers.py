"""What a state answers: errors, tests and curves from its sums."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Never

import numpy as np

from caltest.estimation import ReliabilityCurve
from caltest.estimation.curves._bars import exact_deviations, smallest_pvalues
from caltest.estimation.errors._cell_tests import EXACT
from caltest.estimation.errors._l2_interval import L2Interval, interval_of_cells
from caltest.estimation.uncertainty._prediction_distribution import prediction_density
from caltest.hypothesis_tests._class_totals import DrawnTotals
from caltest.hypothesis_tests._evidence import ClassesEvidence, EventEvidence, Evidence
from caltest.predictions._arrays import Floats
from caltest.predictions._lens import Lens, lens_name, lens_short_name
from caltest.predictions._lenses import Confidence
from caltest.predictions._sample import induce
from caltest.predictions.cells._partitions import EqualWidth, Partition
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import SeedLike, validate_rng
from caltest.resampling import Consistency
from caltest.resampling.distributions._base import SMALLEST_PVALUE, Distribution, MonteCarloDistribution
from caltest.resampling.engine._pvalues import combine_pvalues, tail_pvalues
from caltest.resampling.engine._run import monte_carlo_error
from caltest.results import ComponentResult, Note, TestResult
from caltest.results._verdict import Impossible
from caltest.statistics import SquaredL2
from caltest.statistics._base import Statistic, validate_estimate, validate_statistic
from caltest.streaming.states._fitting_predictions import FittingPredictions
from caltest.streaming.states._micro_cells import CoarseCells, Nodes
from caltest.streaming.states._values import OutcomeSums, Simulation, StateSums, Streamed, refusal, values_of

_DRAWS = 999
_MOST_SAMPLES = 2**18  # of which observations with the same sums are made, so that everything is known that arrays tell


@dataclass(frozen=True, eq=False)
class Answers(ABC):
    """What the sums of a state answer."""

    sums: StateSums
    lens: Lens
    n_hidden: int = 0
    """Number of labels that had been predicted with probability 0, of a state of the confidence; else 0."""

    @property
    def n_impossible(self) -> int:
        """Number of labels that had been predicted with probability 0, whether the lens shows it or not."""
        return max(self.n_hidden, self.sums.n_impossible)

    def chosen(self, statistic: Statistic | None) -> Statistic:
        """Return the statistic that is asked for, or the default."""
        return self.sums.default if statistic is None else statistic

    def values(self, parts: Sequence[Statistic], statistic: Statistic) -> Floats:
        """Return the values of the parts of a statistic, ``(n_parts, n_data_sets)``."""
        return values_of(parts, self.sums, refusal(statistic, self.sums))

    def error(self, statistic: Statistic | None) -> float:
        """Return the value of a statistic."""
        chosen = validate_estimate(self.chosen(statistic))
        return float(self.values((chosen,), chosen)[0, 0])

    def error_bounds(self, statistic: Statistic | None) -> tuple[float, float]:
        """Return bounds of the value that a statistic has on all observations."""
        value = self.error(statistic)
        return self.chosen(statistic).bounds_of_sums(self.sums) or (value, value)

    def log_score(self) -> float:
        """Return the mean of -log of the probability of the outcome."""
        return math.inf if self.sums.n_impossible else self.sums.total_loss / self.sums.n_samples

    @abstractmethod
    def test(self, statistic: Statistic | None, *, alpha: float, n_resamples: int | None, rng: SeedLike) -> TestResult:
        """Return the result of a test."""

    @abstractmethod
    def curve(self, partition: Partition | None, level: float, *, simultaneous: bool) -> ReliabilityCurve:
        """Return the reliability curve."""

    def ranked(self, parts: Sequence[Statistic], values: Floats, origin: str) -> dict[str, Any]:
        """Return the fields of a result that Monte Carlo draws tell.

        ``values (n_statistics, B + 1)`` begin with the observed ones.
        """
        observed, drawn = values[:, 0].copy(), values[:, 1:]
        if self.n_impossible:
            values[:, 0] = np.inf
        ranked = tail_pvalues(values)
        components = tuple(
            ComponentResult(
                test_statistic=part, statistic=float(value), pvalue=float(p[0]), null=MonteCarloDistribution(some)
            )
            for part, value, p, some in zip(parts, observed, ranked, drawn, strict=True)
        )
        first = components[0]
        value, pvalue, null = first.statistic, first.pvalue, first.null
        if len(parts) > 1:
            smallest = 0.0 - np.log10(ranked.min(axis=0))
            value, pvalue = float(smallest[0]), float(combine_pvalues(ranked)[0])
            null = MonteCarloDistribution(smallest[1:])
        return {
            "components": components,
            "statistic": value,
            "pvalue": pvalue,
            "null": null,
            "method": "monte-carlo",
            "numerical_error": monte_carlo_error(pvalue, drawn.shape[1], ranked[:, 0]),
            "origin": origin,
            "smallest_possible_pvalue": 1 / values.shape[1],
        }

    def report(self, statistic: Statistic, found: dict[str, Any], alpha: float, evidence: Evidence) -> TestResult:
        """Return the result of a test whose value, p-value and null distribution were found."""
        null = Consistency()
        return TestResult(
            title="Calibration test of a state",
            test_statistic=statistic,
            lens=self.lens,
            lens_name=lens_name(self.lens),
            lens_short_name=lens_short_name(self.lens),
            n_samples=self.sums.n_samples,
            n_outcomes=self.sums.n_outcomes,
            hypothesis=null.hypothesis,
            conditions=null.conditions,
            alpha=alpha,
            _evidence=evidence,
            notes=_impossible(self.n_impossible),
            **found,
        )


@dataclass(frozen=True, eq=False)
class TwoOutcomes(Answers):
    """Answers from sums over micro-cells of the probability of an event.

    Attributes
    ----------
    others : Streamed or None
        The sums without the labels that ``n_hidden`` counts, if there are any.
    """

    sums: Streamed
    others: Streamed | None = None

    def test(self, statistic: Statistic | None, *, alpha: float, n_resamples: int | None, rng: SeedLike) -> TestResult:
        """Return the result of a test, exact where the null distribution is known."""
        chosen = validate_statistic(self.chosen(statistic))
        n_draws = _DRAWS if n_resamples is None else n_resamples
        source = validate_rng(rng)
        parts = chosen.for_sample(self.sums).components
        observed = self.values(parts, chosen)
        exact = chosen.exact_distribution_of_sums(self.sums)
        if exact is None:
            found = self._simulated(parts, observed, n_draws, source)
        else:
            found = self._computed(chosen, float(observed[0, 0]), exact)
        return self.report(chosen, found, alpha, self.evidence(self._without_impossible(chosen)))

    def curve(self, partition: Partition | None, level: float, *, simultaneous: bool) -> ReliabilityCurve:
        """Return the curve with exact consistency bars and p-values of the cells."""
        partition, sums = EqualWidth(15) if partition is None else partition, self.sums.micro
        cells = CoarseCells(sums, partition)
        nodes = cells.nodes
        counts = [part.count for part in nodes]
        own_level = level ** (1 / cells.n_cells) if simultaneous else level
        bars = np.array([count.central_interval(own_level) for count in counts]) / cells.count[:, None]
        pvalues = [part.two_sided(events) for part, events in zip(nodes, cells.events.tolist(), strict=True)]
        predicted, observed = cells.expected / cells.count, cells.events / cells.count
        share = cells.count / sums.n_samples
        size, mean = sums.count.sum(axis=1), sums.prob.sum(axis=1)
        used = size > 0  # the prediction of each micro-cell for the picture: its mean
        return ReliabilityCurve(
            lower=cells.lower,
            upper=cells.upper,
            count=cells.count,
            predicted=predicted,
            expected=predicted,
            observed=observed,
            bar_lower=bars[:, 0],
            bar_upper=bars[:, 1],
            bars="consistency",
            confidence_level=level,
            simultaneous=simultaneous,
            exact=True,
            lens=self.lens,
            lens_name=lens_name(self.lens),
            partition=partition,
            notes=(),
            density=prediction_density(mean[used] / size[used], size[used]),
            error=float(np.abs(observed - predicted) @ share),
            noise_floor=float(exact_deviations(counts, cells.count) @ share),
            pvalue=np.where(cells.impossible(), SMALLEST_PVALUE, pvalues),
            smallest_pvalue=smallest_pvalues(counts, cells.count),
            origin=EXACT,
        )

    def _computed(self, statistic: Statistic, value: float, exact: Distribution) -> dict[str, Any]:
        """Return the fields of a result that the exact null distribution tells."""
        tail = exact.tail(value)
        pvalue = max(0.0 if self.n_impossible else min(tail.probability, 1.0), SMALLEST_PVALUE)
        bound = math.isinf(tail.relative_error)
        kind = "upper bound" if bound else "computed exactly"
        origin = f"{kind} from sums over micro-cells, predictions fixed (valid at every sample size): {tail.method}"
        return {
            "components": (ComponentResult(test_statistic=statistic, statistic=value, pvalue=pvalue, null=exact),),
            "statistic": value,
            "pvalue": pvalue,
            "null": exact,
            "method": "upper-bound" if bound else "exact",
            "numerical_error": min(tail.relative_error, 1.0) * pvalue,
            "origin": origin,
            "smallest_possible_pvalue": SMALLEST_PVALUE,
        }

    def _simulated(
        self, parts: Sequence[Statistic], observed: Floats, n_resamples: int, rng: np.random.Generator
    ) -> dict[str, Any]:
        """Return the fields of a result that simulated numbers of events tell."""
        sets = Simulation(self.sums).data_sets(n_resamples, rng)
        drawn = [values_of(parts, sums, refusal(parts[0], self.sums)) for sums in sets]
        origin = (
            f"{n_resamples:,} Monte Carlo draws of the numbers of events in micro-cells, predictions fixed; "
            "predictions within a micro-cell are replaced by two with the same mean and variance"
        )
        return self.ranked(parts, np.concatenate([observed, *drawn], axis=1), origin)

    def evidence(self, without: dict[str, Impossible]) -> EventEvidence:
        """What is known of the predictions: those of a micro-cell with the same outcome are replaced by two."""
        micro, parts = self.sums.micro, ("count", "first", "second", "third")
        nodes = [
            Nodes.of(replace(micro, **{name: getattr(micro, name) * (np.arange(2) == outcome) for name in parts}))
            for outcome in (0, 1)
        ]
        known: dict[str, Any] = {"streamed": True, "_known": without}
        if micro.n_samples <= _MOST_SAMPLES:
            whole = [one.whole for one in nodes]
            prob = np.concatenate([np.repeat(one.prob, one.weight.astype(np.int64)) for one in whole])
            event = np.repeat([0, 1], micro.count.sum(axis=0))
            return EventEvidence(induce(np.column_stack([1 - prob, prob]), event), self.lens, **known)
        prob, weight = (np.concatenate([getattr(one, name) for one in nodes]) for name in ("prob", "weight"))
        events = np.where(np.arange(len(prob)) < len(nodes[0].prob), 0.0, weight)
        return EventEvidence(None, self.lens, counts=(prob, weight, events), **known)

    def _without_impossible(self, statistic: Statistic) -> dict[str, Impossible]:
        """Return which labels were impossible, with the p-value of the others; nothing where all are possible."""
        if not self.n_impossible:
            return {}
        micro, others = self.sums.micro, self.others
        inside = micro.nodes.prob[(micro.nodes.prob > 0) & (micro.nodes.prob < 1)]
        smallest = float(inside.min()) if inside.size else math.nan
        found = Impossible(int(micro.count[0, 1]), int(micro.count[-1, 0]), smallest=smallest)
        if others is None:
            possible = micro.count.copy()
            possible[0, 1] = possible[-1, 0] = 0
            others = replace(self.sums, micro=replace(micro, count=possible))
        else:
            found = Impossible(n_class=self.n_hidden)
        if others.n_samples:
            rest = TwoOutcomes(others, self.lens).test(statistic, alpha=0.05, n_resamples=None, rng=0)
            found = replace(found, pvalue=rest.pvalue)
        return {str(statistic): found}


@dataclass(frozen=True, eq=False)
class ManyOutcomes(Answers):
    """Answers from sums over cells of more than two outcomes."""

    sums: OutcomeSums

    def test(self, statistic: Statistic | None, *, alpha: float, n_resamples: int | None, rng: SeedLike) -> TestResult:
        """Return the result of a test with the draws that were made when the rows were added."""
        if n_resamples is not None:
            refuse(
                f"`n_resamples` is not for this state, whose {self.sums.redrawn.n_resamples:,} draws were made when "
                f"rows were added, got {n_resamples}; more are made by RedrawnCells(n_resamples={n_resamples})."
            )
        if rng is not None:
            refuse(
                "`rng` is not for this state, whose draws were made when rows were added; another seed is chosen by "
                f"RedrawnCells(rng=...), got {rng!r}."
            )
        chosen = validate_estimate(self.chosen(statistic))
        origin = (
            f"{self.sums.redrawn.n_resamples:,} Monte Carlo draws of the outcomes of every observation, made when it "
            "was added, predictions fixed (valid at every sample size)"
        )
        found = self.ranked((chosen,), self.values((chosen,), chosen), origin)
        impossible = self.n_impossible
        known: dict[str, Any] = {"_known": {str(chosen): Impossible(n_class=impossible)} if impossible else {}}
        evidence = ClassesEvidence(None, self.lens, streamed=True, of_state=self, **known)
        return self.report(chosen, found, alpha, evidence)

    def of_confidence(self) -> EventEvidence:
        """Return what is known of the confidence."""
        return TwoOutcomes(self.sums.confidence, Confidence()).evidence({})

    def totals(self) -> DrawnTotals:
        """Return the totals of the outcomes."""
        count, *drawn = self.sums.outcomes.sum(axis=1).astype(np.int64)
        return DrawnTotals(count, (), np.array(drawn), self.sums.predicted.sum(axis=0))

    def interval(self) -> L2Interval:
        """Return the l2 error within the cells of the state, with its interval."""
        partition, right = self.sums.redrawn.partition, self.sums.confidence.micro

        def surprise_pvalue() -> float:
            return right.nodes.whole.two_sided(int(right.count[:, 1].sum()))

        estimate = float(SquaredL2(partition).evaluate_sums(self.sums)[0])
        look = {"lens": self.lens, "lens_name": lens_name(self.lens)}
        return interval_of_cells(estimate, self.sums.cells(partition), partition, surprise_pvalue, **look)

    def fitting(self) -> Floats | str:
        """Return predictions that fit the sums, or why labels of them would not show what is detectable."""
        found = FittingPredictions(self.sums)
        return found.why_not or found.prob

    def curve(self, partition: Partition | None, level: float, *, simultaneous: bool) -> Never:
        """Raise ValueError: a curve has two outcomes."""
        refuse(
            f"a reliability curve needs a lens with two outcomes, such as Confidence(); this state has {self.lens!r}."
        )


def _impossible(number: int) -> tuple[Note, ...]:
    if not number:
        return ()
    labels = "1 label" if number == 1 else f"{number} labels"
    text = (
        f"{labels} had been given probability 0. That is impossible under the null hypothesis, so the p-value is the "
        "smallest possible. Check whether the zero was meant or came from rounding."
    )
    return (Note("C201", text),)
