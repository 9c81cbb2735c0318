"""What is known of tested predictions besides the p-value: averages, findings, and the numbers of an answer."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np

from caltest.estimation.errors._l2_interval import L2Interval, interval_of_sample
from caltest.estimation.event._calibration_in_the_large import InTheLarge
from caltest.estimation.event._calibration_slope import Slope
from caltest.estimation.event._event_cells import FEWEST_EVENTS, EventCells
from caltest.hypothesis_tests._class_totals import ClassTotals, DrawnTotals
from caltest.hypothesis_tests._detection import CRITICAL_DRAWS, Detection, sample_of
from caltest.hypothesis_tests._findings import NamedError, findings_of_classes, findings_of_event, level_of_each
from caltest.hypothesis_tests._numbers import (
    IF_CALIBRATED,
    NO_SIZE,
    NO_TOTALS,
    difference,
    ratio,
    reaching_one,
    typical_error,
)
from caltest.predictions._arrays import Floats
from caltest.predictions._lens import LensLike, lens_name, subject_of
from caltest.predictions._lenses import Canonical, Confidence
from caltest.predictions._sample import Sample, induce
from caltest.predictions._view import LensView
from caltest.resampling.draws._schemes import Consistency
from caltest.resampling.draws._signs import NO_GROUPS, GroupsWithSurprise
from caltest.resampling.engine._evaluation import Question
from caltest.resampling.engine._pvalues import correct_pvalues
from caltest.resampling.engine._run import run
from caltest.resampling.engine._stopping import USUAL_DRAWS, number_of_draws
from caltest.results import TestResult
from caltest.results._decision import FEWEST_EXPECTED, rejects
from caltest.results._finding import DIFFERENCES, OF_AVERAGE, OF_CONFIDENCE, Finding, Number, Subject
from caltest.results._verdict import Impossible
from caltest.statistics import Statistic

_SEED = 0  # of the draws of regions, which only order what is known to be wrong
_MOST = 2**16  # predictions of a state for which labels are simulated
_EXACT = 0.005 - 1e-12  # round numbers from here to the complement are edges of the narrow cells of a state
_TINY = 1e-300
_LONGER = ("Collect predictions over a longer time. Until then rely on other evidence.",)


@dataclass(frozen=True, eq=False)
class Evidence(ABC):
    """What is known of the predictions of a test.

    Attributes
    ----------
    sample : Sample or None
        The observations; None in the copy from a pickle, and for a stream.
    lens : lens
        What is looked at.
    classes : sequence or None
        The labels of the classes.
    streamed : bool
        Whether the observations were not kept: those of ``sample`` have the same sums in narrow cells.
    """

    sample: Sample | None
    lens: LensLike
    classes: Sequence[Any] | None = None
    streamed: bool = False
    _known: dict[Any, Any] = field(default_factory=dict)  # impossible labels by statistic, estimates by level

    @classmethod
    def of(cls, sample: Sample, lens: LensLike, classes: Sequence[Any] | None) -> Evidence:
        """Return the evidence of a sample of two or more outcomes."""
        kind = EventEvidence if sample.n_outcomes == 2 else ClassesEvidence
        return kind(sample, lens, classes)

    @cached_property
    def interval(self) -> L2Interval | None:
        """The l2 error with its interval, in default cells."""
        if self.sample is None:
            return None
        return interval_of_sample(self.sample, lens=self.lens, lens_name=lens_name(self.lens, self.classes))

    @property
    @abstractmethod
    def subject(self) -> Subject:
        """What sentences speak of."""

    @property
    @abstractmethod
    def cells(self) -> EventCells:
        """The predictions of the event, or of "the prediction is right"."""

    @abstractmethod
    def findings(self, test: TestResult) -> tuple[Finding, ...]:
        """Return what is wrong, where the hypothesis is rejected."""

    @abstractmethod
    def average(self, test: TestResult) -> Number:
        """Return the number that compares average prediction and frequency.

        Its interval is that of the adjusted test behind the findings: it excludes the value of calibrated predictions
        if and only if an error of the average is named, so that no sentence contradicts it. An error is named if the
        gate rejects at the level alpha and the test of the average at alpha / 2. The interval at 1 - alpha / 2 excludes
        the value exactly then, if it is made to reach the value where the gate, or another fold, does not reject. That
        can only raise its coverage.
        """

    def _numbers(self, test: TestResult) -> list[Number]:
        """Return the numbers of this kind of outcomes."""
        return [self.average(test)]

    @property
    @abstractmethod
    def expected(self) -> tuple[float, float]:
        """Expected numbers of events and of other observations, as many as are worth observations of equal weight."""

    @property
    @abstractmethod
    def frequency(self) -> float:
        """Frequency of the event."""

    @property
    def n_expected(self) -> float:
        """Expected number of the rarer one of events and others, of groups with a surprise or of windows of time."""
        return min(*self.expected, self.surprises.effective_number, self.n_windows)

    @cached_property
    def surprises(self) -> GroupsWithSurprise:
        """The groups with a surprise; infinitely many where observations are independent."""
        if self.sample is None or self.sample.group is None:
            return replace(NO_GROUPS, effective_number=math.inf)
        return GroupsWithSurprise.counted(self.sample)

    @cached_property
    def n_windows(self) -> float:
        """Number of stretches of time as long as the lead; infinitely many where labels are independent."""
        timing = None if self.sample is None else self.sample.timing
        return math.inf if timing is None else timing.n_windows

    @property
    def too_few(self) -> str:
        """Say that there are too few groups or too little time to decide anything; empty if there are enough."""
        if self.n_windows < FEWEST_EXPECTED:
            many = math.floor(10 * self.n_windows) / 10  # 4.96 are not 5
            how = f"only {many:g} times as long as the lead, and" if many > 1 else "no longer than one lead, and"
            return f"the predictions were made within a time that is {how} {FEWEST_EXPECTED} are needed"
        return "" if self.surprises.effective_number >= FEWEST_EXPECTED else self.surprises.too_few(FEWEST_EXPECTED)

    @cached_property
    def averages(self) -> tuple[float, float]:
        """Average prediction and frequency, without impossible labels."""
        cells = self.cells
        if not cells.total:
            return math.nan, math.nan
        return (cells.predicted + cells.certain) / cells.total, (cells.observed + cells.certain) / cells.total

    def sums_of(self, test: TestResult) -> dict[str, Any]:
        """Return the fields of a verdict that its sentences need."""
        predicted, observed = self.averages
        return {
            "subject": self.subject,
            "predicted": predicted,
            "observed": observed,
            "frequency": self.frequency,
            "n_expected": self.n_expected,
            "n_observed": min(self.frequency, 1 - self.frequency) * sum(self.expected),
            "impossible": self._impossible(test),
            "streamed": self.streamed,
            "in_time": math.isfinite(self.n_windows),
            "certain": not self.cells.size,
            "advised": _LONGER if self.n_windows < FEWEST_EXPECTED and not rejects(test.pvalue, test.alpha) else (),
        }

    def numbers_of(self, test: TestResult) -> dict[str, Any]:
        """Return the fields of a verdict that are numbers beside its sentences."""
        sizes = self.sizes_of(test, self.interval if test.rejected else None)
        detectable = self._detectable(test)
        return {**sizes, "detectable": detectable, "why_unknown": "" if detectable is not None else self.why_unknown}

    def sizes_of(self, test: TestResult, size: L2Interval | None) -> dict[str, Any]:
        """Return the fields of a verdict that are what was observed, with a typical error if there is one."""
        numbers = [*self._numbers(test), *([] if size is None else [typical_error(size)])]
        if size is None and self.streamed and test.rejected:
            numbers.append(NO_SIZE)
        where = next((finding for finding in test.findings if finding.place), None)
        if where is not None and where is not test.findings[0]:  # which is a sentence
            numbers.append(Number(name="worst", estimate=where.observed, shown=where.place))
        return {"numbers": tuple(numbers), "size": size, "where": where}

    @property
    def why_unknown(self) -> str:
        """Why no smallest detectable error is known, as the rest of a sentence; empty without a reason."""
        return ""

    def _detectable(self, test: TestResult) -> Any:
        """Return the smallest error that would have been found, if none is; None where it is not known."""
        known = isinstance(test.test_statistic, Statistic) and test.method != "distribution-free"
        if test.decision != "not rejected" or not known or not self.cells.size:
            return None
        detection = self._detection(test)
        return None if detection is None else detection.usual

    def _detection(self, test: TestResult) -> Detection | None:
        """Return the test on simulated labels; None where it is not known."""
        return None if self.sample is None else Detection.of_test(test, self.sample)

    def gate(self, test: TestResult) -> float:
        """Return the p-value of calibration that findings need: without impossible labels, where there are any."""
        impossible = self._impossible(test)
        return test.pvalue if impossible is None else impossible.pvalue

    def _impossible(self, test: TestResult) -> Impossible | None:
        """Return which labels were impossible, with the p-value without them."""
        name, sample, known = str(test.test_statistic), self.sample, isinstance(test.test_statistic, Statistic)
        if len(test.impossible_samples) and sample is not None and known and name not in self._known:
            self._known[name] = self._find_impossible(test, sample)
        return self._known.get(name)

    def among(self, test: TestResult, tests: Sequence[TestResult]) -> Evidence:
        """Return the same for one of several tests: the p-value without its impossible labels is that of all of them.

        It is the smallest one after Holm's correction, as that of a table without them is.
        """
        own, name = self._impossible(test), ("among", *(one.lens_name for one in tests))
        if own is None or math.isnan(own.pvalue) or test.folds:
            return self
        samples = [one._evidence.sample for one in tests]
        if name not in self._known and all(sample is not None for sample in samples):
            asked = (replace(one, impossible_samples=test.impossible_samples) for one in tests)
            pvalues = [self._find_impossible(*pair).pvalue for pair in zip(asked, samples, strict=True)]
            self._known[name] = replace(own, pvalue=float(correct_pvalues(pvalues).min()))
        found = object.__new__(type(self))
        known = {**self._known, str(test.test_statistic): self._known.get(name, own)}
        vars(found).update(vars(self), _known=known)
        return found

    @staticmethod
    def _find_impossible(test: TestResult, sample: Sample) -> Impossible:
        """Count impossible labels, and test the others with as many draws; with folds each fold."""
        rows = test.impossible_samples
        wrong = np.isin(sample.row, rows)
        kept = np.flatnonzero(~wrong)
        pvalue = math.nan
        if test.folds:
            pvalue = min(1.0, len(test.folds) * min(fold._about.gate(fold) for fold in test.folds))
        elif len(kept):
            rest, scheme = sample.take(kept), Consistency()
            asked = [Question(test.test_statistic, LensView(rest))]
            number = test.n_resamples or number_of_draws(None, USUAL_DRAWS, rest.given.size)
            pvalue = run(asked, rest, scheme, n_resamples=number, method="auto", rng=0).answers[0].pvalue
        if sample.n_outcomes > 2:
            return Impossible(n_class=len(rows), pvalue=pvalue)
        uncertain, zero = (sample.event > 0) & (sample.event < 1), int((sample.outcome[wrong] == 1).sum())
        smallest = float(sample.event[uncertain].min()) if uncertain.any() else math.nan
        return Impossible(zero, len(rows) - zero, pvalue, smallest)


@dataclass(frozen=True, eq=False)
class EventEvidence(Evidence):
    """What is known of predicted probabilities of an event.

    Attributes
    ----------
    counts : tuple of arrays or None
        Probabilities, numbers of observations and of events, of a stream of too many observations for a sample.
    """

    counts: tuple[Floats, Floats, Floats] | None = None

    @cached_property
    def cells(self) -> EventCells:
        """The predictions of the event in cells."""
        return EventCells.of_counts(*self._event) if self.sample is None else self.sample.once(EventCells.of)

    @property
    def _event(self) -> tuple[Floats, Floats, Floats]:
        if self.sample is None:
            assert self.counts is not None
            return self.counts
        weight = self.sample.weight_or_ones
        return self.sample.event, weight, weight * (self.sample.outcome == 1)

    @cached_property
    def expected(self) -> tuple[float, float]:
        """Expected numbers of events and of other observations, as many as are worth observations of equal weight."""
        prob, weight, _ = self._event
        squares = weight**2 if self.counts is None else weight  # a count is that of observations of weight 1
        worth = (float(np.square(weight @ part) / max(float(squares @ part), _TINY)) for part in (prob, 1 - prob))
        return next(worth), next(worth)

    @cached_property
    def frequency(self) -> float:
        """Frequency of the event."""
        _, weight, events = self._event
        return float(events.sum() / weight.sum())

    def _detection(self, test: TestResult) -> Detection | None:
        """Return the test on simulated labels, of a state on so many of its predictions that it takes a second."""
        if not self.streamed:
            return super()._detection(test)
        prob, weight, _ = self._event
        order, number = np.argsort(prob, kind="stable"), min(test.n_samples, _MOST)
        passed = np.cumsum(weight[order])
        event = prob[order][np.searchsorted(passed, (np.arange(number) + 0.5) / number * passed[-1])]
        sample = sample_of(np.column_stack([1 - event, event]), number)
        return Detection.of_either(test.test_statistic, sample, alpha=test.alpha, n_samples=test.n_samples)

    @property
    def subject(self) -> Subject:
        """What sentences speak of."""
        return subject_of(self.lens, self.classes)

    def in_the_large(self, alpha: float) -> InTheLarge:
        """Return observed over expected events; its interval holds together with that of the slope."""
        return self._at_level(InTheLarge, alpha)

    def slope(self, alpha: float) -> Slope:
        """Return the calibration slope; its interval holds together with that of the average."""
        return self._at_level(Slope, alpha)

    def _at_level(self, kind: Any, alpha: float) -> Any:
        key = kind.__name__, alpha
        if key not in self._known:
            self._known[key] = kind.of(self.cells, level_of_each(alpha) if self.cells.varies else 1 - alpha)
        return self._known[key]

    def findings(self, test: TestResult) -> tuple[Finding, ...]:
        """Return what is wrong: the average, the slope, a range of predictions."""
        found = findings_of_event(
            self.cells,
            self.in_the_large(test.alpha),
            self.slope(test.alpha),
            gate_pvalue=self.gate(test),
            alpha=test.alpha,
            rng=np.random.default_rng(_SEED),
            sample=self.sample,
        )
        if self.subject.of_confidence:  # as of several classes
            found = tuple(sorted(found, key=lambda error: error.kind not in OF_AVERAGE))
        return tuple(finding_of(error, self.subject, test.alpha, streamed=self.streamed) for error in found)

    @property
    def _without_slope(self) -> str:
        """Why there is no slope, in a few words."""
        if not self.cells.size:
            return "all predictions are 0 % or 100 %"
        events, others = self.cells.worth
        if min(events, others) >= FEWEST_EVENTS:
            return "all predictions are equal"
        return "too few events" if events <= others else f"too few {self.subject.opposite}"

    def average(self, test: TestResult) -> Number:
        """Return observed over expected events; of the confidence its difference from the accuracy."""
        large, named = self.in_the_large(test.alpha), any(finding.of_average for finding in test.findings)
        interval = large.ratio_interval if named else reaching_one(large.ratio_interval)
        if self.subject.of_confidence:
            return difference(*self.averages, interval)
        return ratio("observed / expected", large.ratio, interval, IF_CALIBRATED, "no events are predicted")

    def _numbers(self, test: TestResult) -> list[Number]:
        slope = self.slope(test.alpha)
        found = [finding for finding in test.findings if finding.kind in DIFFERENCES]
        steep = "".join(
            "the wrong way" if one.is_turned else f"differences are {DIFFERENCES[one.kind]}" for one in found
        )
        interval = slope.interval if steep else reaching_one(slope.interval)
        meaning = f"{IF_CALIBRATED}; {steep}" if steep else IF_CALIBRATED
        return [
            self.average(test),
            ratio("calibration slope", slope.slope, interval, meaning, self._without_slope),
            *([NO_TOTALS] if self.streamed and self.subject.of_confidence else []),
        ]

    def __getstate__(self) -> dict[str, Any]:
        """A pickle holds the cells instead of the sample."""
        of_all = ("lens", "classes", "streamed", "averages", "interval", "surprises", "n_windows", "_known")
        known = (*of_all, "counts", "cells", "frequency", "expected")
        return {"sample": None, **{name: getattr(self, name) for name in known}}


class KeptClasses(Protocol):
    """What a state of several classes knows of the observations, which it does not hold."""

    def of_confidence(self) -> EventEvidence:
        """Return what is known of the event that the predicted class is right."""

    def totals(self) -> ClassTotals:
        """Return the totals of the classes."""

    def interval(self) -> L2Interval:
        """Return the l2 error with its interval, in the cells of the state."""

    def fitting(self) -> Floats | str:
        """Return predictions of which labels are simulated, or why there are none, as the rest of a sentence."""


@dataclass(frozen=True, eq=False)
class ClassesEvidence(Evidence):
    """What is known of predicted probabilities of several classes.

    Attributes
    ----------
    of_state : KeptClasses or None
        What a state knows of the observations, which it does not hold.
    """

    of_state: KeptClasses | None = None

    @cached_property
    def confidence(self) -> EventEvidence:
        """What is known of the event that the predicted class is right."""
        if self.of_state is not None:
            return self.of_state.of_confidence()
        assert self.sample is not None
        sample = self.sample
        design: dict[str, Any] = {"weight": sample.weight, "group": sample.group, "timing": sample.timing}
        return EventEvidence(induce(sample.given, sample.outcome, lens=Confidence(), **design), Confidence())

    @cached_property
    def interval(self) -> L2Interval | None:
        """The l2 error with its interval: in default cells, of a state in its own ones."""
        return super().interval if self.of_state is None else self.of_state.interval()

    @cached_property
    def _fitting(self) -> Floats | str:
        """Predictions that fit what a state holds, or why there are none."""
        return "" if self.of_state is None else self.of_state.fitting()

    @property
    def why_unknown(self) -> str:
        """Why no smallest detectable error is known, as the rest of a sentence; empty without a reason."""
        return (isinstance(self._fitting, str) and self._fitting) or super().why_unknown

    def _detection(self, test: TestResult) -> Detection | None:
        """Return the test on simulated labels, of a state on predictions that fit what it holds."""
        if self.of_state is None:
            return super()._detection(test)
        if isinstance(self._fitting, str):
            return None
        sample = induce(self._fitting, np.zeros(len(self._fitting), dtype=np.int64))
        more: dict[str, Any] = {"alpha": test.alpha, "n_resamples": CRITICAL_DRAWS, "n_samples": test.n_samples}
        return Detection.of(test.test_statistic, sample, **more)

    @property
    def cells(self) -> EventCells:
        """The confidence and the right predictions in cells."""
        return self.confidence.cells

    @property
    def expected(self) -> tuple[float, float]:
        """Expected numbers of right and of wrong predictions."""
        return self.confidence.expected

    @property
    def frequency(self) -> float:
        """Accuracy."""
        return self.confidence.frequency

    @property
    def subject(self) -> Subject:
        """What sentences speak of."""
        return OF_CONFIDENCE

    def findings(self, test: TestResult) -> tuple[Finding, ...]:
        """Return what is wrong: the confidence, and the totals of classes."""
        large, totals = self.confidence.in_the_large(test.alpha), self.totals
        found = findings_of_classes(self.cells, large, totals, gate_pvalue=self.gate(test), alpha=test.alpha)
        classes = self.classes if isinstance(self.lens, Canonical) else None
        names = range(test.n_outcomes) if classes is None else classes
        subjects = (Subject() if error.kind == "totals" else OF_CONFIDENCE for error in found)
        return tuple(map(partial(finding_of, alpha=test.alpha, names=[f"{name}" for name in names]), found, subjects))

    @cached_property
    def totals(self) -> ClassTotals | None:
        """The numbers of observations of the classes; None if observations have groups or weights."""
        if self.of_state is not None:
            return self.of_state.totals()
        sample = self.sample
        assert sample is not None
        if sample.weight is not None or sample.group is not None:
            return None
        if sample.timing is not None:
            return DrawnTotals.in_time(sample)
        return ClassTotals.of(sample.given, sample.outcome)

    def average(self, test: TestResult) -> Number:
        """Return accuracy minus average confidence."""
        return self.confidence.average(test)

    def __getstate__(self) -> dict[str, Any]:
        """A pickle holds the cells instead of the sample."""
        of_all = ("lens", "classes", "streamed", "averages", "interval", "surprises", "n_windows", "_known")
        known = (*of_all, "confidence", "totals")
        return {"sample": None, **{name: getattr(self, name) for name in known}}


def finding_of(
    error: NamedError, subject: Subject, alpha: float, names: Sequence[str] = (), *, streamed: bool = False
) -> Finding:
    """Return an error of the predictions in words."""
    numbers = {each.name: getattr(error, each.name) for each in fields(error)}
    numbers["classes"] = tuple(names[k] for k in error.classes)
    numbers["confidence_level"] = 1 - alpha if error.alone else level_of_each(alpha)
    if subject.of_confidence:
        numbers["kind"] = OF_AVERAGE.get(error.kind, error.kind)
    within = streamed and any(0 < min(end, 1 - end) < _EXACT for end in (error.low, error.high))
    return Finding(subject=subject, n_classes=max(len(names), 2), approximate=within, **numbers)
