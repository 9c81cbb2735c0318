"""One recalibrated model of a study, and the comparison of two methods on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from caltest.comparison._difference import DifferenceResult
from caltest.comparison._judged import ComparedModel, mean_of_folds
from caltest.estimation.event._calibration_slope import Slope
from caltest.estimation.event._event_cells import EventCells
from caltest.hypothesis_tests._evidence import EventEvidence, Evidence
from caltest.hypothesis_tests._findings import level_of_each
from caltest.predictions._arrays import Integers
from caltest.predictions._lens import LensLike
from caltest.predictions._sample import Sample, induce
from caltest.recalibration.maps._base import Recalibrator
from caltest.resampling.engine._pvalues import CombinedPValues
from caltest.results import Result
from caltest.results._decision import Decided, DecisionWord, decide, equate_pvalue, rejects
from caltest.results._description import Description, Table, counted, join, percent
from caltest.results._naming import describe
from caltest.results._plain import to_plain
from caltest.results._test_result import cannot_decide_by_fold
from caltest.results._verdict import Verdict

BEFORE, UNCHANGED = "before", "no change"


@dataclass(frozen=True, eq=False)
class _EvidenceOfMaps(EventEvidence):
    """What is known of the predictions by several maps, each of the observations of a fold.

    Attributes
    ----------
    folds : sequence of arrays of int
        The observations of each fold.
    """

    folds: Sequence[Integers] = ()

    def slope(self, alpha: float) -> Slope:
        """Return the calibration slope within folds."""
        return Slope.of(self._within, level_of_each(alpha))

    @cached_property
    def _within(self) -> EventCells:
        """The predictions in cells, after the logits of each fold were shifted until it is right on average.

        Where a fold has more events, the others, to which its map was fitted, have fewer: between folds predictions and
        events vary against each other, and predictions that hardly differ would have a slope far below 1.
        """
        sample = self.sample
        assert sample is not None
        event = sample.event.copy()
        for rows in self.folds:
            inside = np.flatnonzero(np.isin(sample.row, rows))
            cells = EventCells.of(sample.take(inside))
            if 0 < cells.observed < cells.size:
                odds = math.exp(cells.intercept())
                event[inside] *= odds / (1 + (odds - 1) * event[inside])
        prob = np.column_stack([1 - event, event])
        design: dict[str, Any] = {"weight": sample.weight, "group": sample.group, "timing": sample.timing}
        return EventCells.of(induce(prob, sample.outcome, **design))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RepairedModel(Decided, ComparedModel):
    """One model of a `RecalibrationStudy`, before or after recalibration by one method.

    It is judged as in `caltest.compare_models`: p-values are combined over the folds, other numbers are means of the
    folds, and ``folds`` holds what the held-out observations of each fold show.

    Attributes
    ----------
    name : str
        The recalibrator as code, or "before"; ``recalibrator`` is the same.
    model : str
        The model.
    maps : tuple of Recalibrator
        The recalibrator, fitted to the calibration part of each fold; empty before recalibration.
    change : DifferenceResult or None
        Squared l2 error before minus after; None before recalibration.
    alpha : float
        Level of the decisions; 1 minus that of the intervals.
    pvalue_adjusted : float
        P-value of calibration, Holm-adjusted for all models and recalibrators of the study.
    change_adjusted : float
        P-value of the hypothesis that nothing changed, Holm-adjusted for all models and recalibrators; NaN before.

    See Also
    --------
    caltest.recalibration_study : The study that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel, Temperature
    >>> _, y_true, y_prob = DirichletModel(2, truth=Temperature(2.0)).draw(300, rng=0)
    >>> repairs = [caltest.recalibration.TemperatureScaling(), caltest.recalibration.PlattScaling()]
    >>> study = caltest.recalibration_study(y_true, {"model": y_prob}, repairs, folds=2, n_resamples=199, rng=0)
    >>> row = study.rows[1]
    >>> row.name, row.model, round(row.pvalue_adjusted, 2)
    ('TemperatureScaling()', 'model', 1.0)
    """

    model: str
    maps: tuple[Recalibrator, ...]
    change: DifferenceResult | None
    alpha: float
    change_adjusted: float = math.nan

    @property
    def recalibrator(self) -> str:
        """The recalibrator as code, or "before"."""
        return self.name

    @property
    def decision(self) -> DecisionWord:
        """The decision at ``alpha``, not adjusted for others; "undecidable" if no p-value as small was possible."""
        return decide(self.pvalue, self.alpha, self.smallest_possible_pvalue)

    @property
    def conclusion(self) -> str:
        """The decision in words."""
        if self.decision == "undecidable":
            return self.undecidable
        return f"Calibration is {self.decision} at the {percent(self.alpha)} level ({equate_pvalue(self.pvalue)})."

    @property
    def undecidable(self) -> str:
        """The sentence that no p-value of the tests in the folds could have rejected."""
        tests = [test for fold in self.folds for test in fold.tests]
        numbers = f"{equate_pvalue(self.pvalue)}, {counted(self.n_samples)}"
        return cannot_decide_by_fold(tests, self.smallest_possible_pvalue, self.alpha, numbers=numbers)

    def verdict_of(
        self, sample: Sample, lens: LensLike, classes: Sequence[Any] | None, folds: Sequence[Integers]
    ) -> Verdict:
        """Return what is wrong with the held-out observations of all folds together, decided by `pvalue`."""
        evidence = Evidence.of(sample, lens, classes)
        if self.maps and isinstance(evidence, EventEvidence):
            evidence = _EvidenceOfMaps(sample, lens, classes, folds=folds)
        test = replace(self.test, pvalue=self.pvalue, alpha=self.alpha, _evidence=evidence)
        known = rejects(self.smallest_possible_pvalue, self.alpha)
        return replace(
            test._verdict(),
            smallest_possible_pvalue=self.smallest_possible_pvalue,
            hypothesis=Verdict.hypothesis,
            proof=Verdict.proof,
            p=equate_pvalue(self.pvalue, name="combined p"),
            n_folds=len(self.folds) if len(self.folds) > 1 else 0,
            details=(),
            undecidable="" if known else self.undecidable,
            **evidence.sizes_of(test, evidence.interval),
        )

    @property
    def better(self) -> bool | None:
        """Whether the model is shown to be better (True) or worse (False) calibrated than before; None if neither."""
        if self.change is None or not rejects(self.change_adjusted, self.alpha):
            return None
        return {"B": True, "A": False}.get(shown_better(self.change) or "")

    @property
    def found(self) -> str:
        """What was fitted in one phrase, such as "T = 1.69 to 1.75", or the methods that were chosen; may be empty."""
        chosen = [one.chosen for one in self.maps]
        temperatures = [one.temperature_ for one in chosen if hasattr(one, "temperature_")]
        if self.maps and len(temperatures) == len(chosen):
            low, high = (f"{end:.3g}" for end in (min(temperatures), max(temperatures)))
            return f"T = {low}" if low == high else f"T = {low} to {high}"
        return ""

    @property
    def chosen(self) -> dict[str, int]:
        """Method in words, and in how many folds it was chosen; "no change" where predictions stay as they are."""
        names = [UNCHANGED if one.unchanged_ else method_in_words(one.chosen) for one in self.maps]
        return {name: names.count(name) for name in dict.fromkeys(names)}

    @property
    def fitted(self) -> str:
        """What was fitted, in words, such as "temperature scaling (T = 1.68 to 1.69)"; the methods of the folds."""
        chosen = self.chosen
        if len(chosen) == 1:
            return f"{next(iter(chosen))}{f' ({self.found})' if self.found else ''}"
        return f"{join(f'{words} in {number}' for words, number in chosen.items())} of {len(self.folds)} folds"

    def mean_error(self, place: int) -> tuple[float, float]:
        """Return the mean of an error over the folds, and that of its noise floor."""
        sizes, parts = [fold.n_samples for fold in self.folds], [fold.errors[place] for fold in self.folds]
        return mean_of_folds(sizes, [p.statistic for p in parts]), mean_of_folds(sizes, [p.noise_floor for p in parts])

    @property
    def scores(self) -> dict[str, float]:
        """Accuracy, and Brier and log score of the whole prediction with the parts of that of the confidence."""
        return _scores(self)

    @property
    def numbers(self) -> dict[str, Any]:
        """Means of the folds, intervals and p-values, by name."""
        errors: dict[str, float] = {}
        for place, part in enumerate(self.folds[0].errors):
            name, pvalues = describe(part.test_statistic), [fold.errors[place].pvalue for fold in self.folds]
            errors[name], errors[f"{name}_noise_floor"] = self.mean_error(place)
            errors[f"{name}_pvalue"] = CombinedPValues(len(pvalues)).pvalue(pvalues)
        change: dict[str, Any] = dict.fromkeys(("change", "change_low", "change_high", "change_pvalue"), math.nan)
        if self.change is not None:
            low, high = self.change.confidence_interval
            change = {"change": self.change.difference, "change_low": low, "change_high": high}
            change["change_pvalue"] = self.change.pvalue
        size = self.miscalibration
        return {
            "model": self.model,
            "recalibrator": self.recalibrator,
            "n_samples": self.n_samples,
            **self.scores,
            "squared_l2": size.estimate,
            "l2": size.root,
            "l2_low": size.root_interval.low,
            "l2_high": size.root_interval.high,
            "pvalue": self.pvalue,
            "pvalue_adjusted": self.pvalue_adjusted,
            **change,
            "change_adjusted": self.change_adjusted,
            "better": self.better,
            **errors,
        }

    @property
    def fold_numbers(self) -> list[dict[str, Any]]:
        """What was found in each fold, by name."""
        return [
            {
                "fold": name,
                "n_samples": fold.n_samples,
                **_scores(fold),
                "squared_l2": fold.miscalibration.estimate,
                "squared_l2_low": fold.miscalibration.confidence_interval.low,
                "squared_l2_high": fold.miscalibration.confidence_interval.high,
                "pvalues": [test.pvalue for test in fold.tests],
                "errors": [
                    {"statistic": describe(part.test_statistic), "value": part.statistic}
                    | {"noise_floor": part.noise_floor, "pvalue": part.pvalue}
                    for part in fold.errors
                ],
            }
            for name, fold in zip(self.test.fold_names, self.folds, strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, and those of each fold, as plain Python objects, ready for JSON.

        Returns
        -------
        dict
            `numbers`, the conclusion, what was fitted, and a list of the numbers of each fold as ``folds``.
        """
        return to_plain(
            {**self.numbers, "conclusion": self.conclusion, "found": self.found, "folds": self.fold_numbers}
        )

    def _describe(self) -> Description:
        rows = [
            (
                name,
                f"{fold.n_samples:,}",
                f"{fold.accuracy:.4f}",
                f"{fold.log_score:.4f}",
                fold.miscalibration.root_text,
            )
            for name, fold in zip(self.test.fold_names, self.folds, strict=True)
        ]
        return Description(
            f"{self.model}, {self.recalibrator} ({counted(self.n_samples)})",
            [self.conclusion],
            [Table(("fold", "n", "accuracy", "log", "l2 error"), rows)],
        )


def _scores(judged: ComparedModel) -> dict[str, float]:
    parts = {"brier": (judged.brier_score, judged.brier), "log": (judged.log_score, judged.log)}
    found = {"accuracy": judged.accuracy}
    for name, (score, decomposed) in parts.items():
        found |= {name: score, f"{name}_miscalibration": decomposed.miscalibration}
        found[f"{name}_discrimination"] = decomposed.discrimination
    return found


def shown_better(difference: DifferenceResult) -> str | None:
    """Return which of two is better, "A" or "B", if the folds that reject and the mean of all folds agree."""
    mean = {1: "B", -1: "A"}.get(int(np.sign(difference.difference)))
    return mean if difference.better == mean else None


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RepairedPair(Result):
    """Two recalibrators on the same model of a `RecalibrationStudy`.

    Attributes
    ----------
    model, a, b : str
        The model and the two recalibrators.
    test : DifferenceResult
        Squared l2 error after a minus that after b.
    alpha : float
        Level of the decision.
    pvalue_adjusted : float
        P-value, Holm-adjusted for all pairs of the study.

    See Also
    --------
    caltest.recalibration_study : The study that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel, Temperature
    >>> _, y_true, y_prob = DirichletModel(2, truth=Temperature(2.0)).draw(300, rng=0)
    >>> repairs = [caltest.recalibration.TemperatureScaling(), caltest.recalibration.PlattScaling()]
    >>> study = caltest.recalibration_study(y_true, {"model": y_prob}, repairs, folds=2, n_resamples=199, rng=0)
    >>> (pair,) = study.pairs
    >>> pair.a, pair.b, pair.test.rejected
    ('TemperatureScaling()', 'PlattScaling()', False)
    """

    model: str
    a: str
    b: str
    test: DifferenceResult
    alpha: float
    pvalue_adjusted: float = math.nan

    _left_out: ClassVar[frozenset[str]] = frozenset({"test"})

    @property
    def better(self) -> str | None:
        """The recalibrator after which the model is better calibrated; None if no difference is shown."""
        if not rejects(self.pvalue_adjusted, self.alpha):
            return None
        return {"B": self.b, "A": self.a}.get(shown_better(self.test) or "")

    @property
    def numbers(self) -> dict[str, Any]:
        """Difference with its interval and p-values, by name."""
        low, high = self.test.confidence_interval
        return {
            "model": self.model,
            "a": self.a,
            "b": self.b,
            "difference": self.test.difference,
            "low": low,
            "high": high,
            "pvalue": self.test.pvalue,
            "pvalue_adjusted": self.pvalue_adjusted,
            "better": self.better,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers of the pair as plain Python objects, ready for JSON.

        Returns
        -------
        dict
            `numbers`.
        """
        return to_plain(self.numbers)

    def _describe(self) -> Description:
        found = "No difference is shown" if self.better is None else f"{self.better} is better"
        shown = f"{found} ({equate_pvalue(self.pvalue_adjusted, name='adjusted p')})."
        return Description(f"{self.a} and {self.b} on {self.model}", [shown])


def method_in_words(method: Recalibrator) -> str:
    """Return a method in words.

    Examples
    --------
    >>> from caltest.recalibration import PlattScaling, TemperatureScaling
    >>> method_in_words(TemperatureScaling()), method_in_words(PlattScaling())
    ('temperature scaling', 'Platt scaling')
    """
    name = type(method).__name__
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()
    for person in ("platt", "dirichlet"):
        words = words.replace(person, person.title())
    return words
