"""One recalibrated model of a study, and the comparison of two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from caltest.comparison._difference import DifferenceResult
from caltest.estimation.errors._l2_interval import L2Interval
from caltest.estimation.scores._score_decomposition import ScoreDecomposition
from caltest.recalibration.maps._base import Recalibrator
from caltest.resampling.engine._pvalues import CombinedPValues
from caltest.results import ComponentResult, ConfidenceInterval, Result, TestResult
from caltest.results._decision import DecisionWord, decide, equate_pvalue, rejects
from caltest.results._description import Description, Table, counted, percent
from caltest.results._naming import describe
from caltest.results._plain import to_plain

BEFORE, UNCHANGED = "before", "no change"


@dataclass(frozen=True)
class JudgedFold:
    """What the held-out observations of a fold show about one model.

    Attributes
    ----------
    name : str
        The id of the fold.
    n_samples : int
        Number of held-out observations.
    tests : tuple of TestResult
        A test of calibration for each statistic.
    miscalibration : L2Interval
        Debiased squared l2 error; the level of the interval is divided by the number of folds.
    accuracy, brier, log : float
        Accuracy, and Brier and log score of the whole prediction.
    brier_parts, log_parts : ScoreDecomposition
        Scores of the confidence (of the event, if there are two classes) with their parts.
    n_impossible : int
        Number of labels that got probability 0.
    """

    name: str
    n_samples: int
    tests: tuple[TestResult, ...]
    miscalibration: L2Interval
    accuracy: float
    brier: float
    log: float
    brier_parts: ScoreDecomposition
    log_parts: ScoreDecomposition
    n_impossible: int

    @property
    def errors(self) -> list[ComponentResult]:
        """Every error with its null distribution."""
        return [part for test in self.tests for part in test.components]

    @property
    def numbers(self) -> dict[str, Any]:
        """What was found, by name."""
        size = self.miscalibration
        scores = ("miscalibration", "discrimination")
        return {
            "fold": self.name,
            "n_samples": self.n_samples,
            "accuracy": self.accuracy,
            "brier": self.brier,
            **{f"brier_{part}": getattr(self.brier_parts, part) for part in scores},
            "log": self.log,
            **{f"log_{part}": getattr(self.log_parts, part) for part in scores},
            "squared_l2": size.estimate,
            "squared_l2_low": size.confidence_interval.low,
            "squared_l2_high": size.confidence_interval.high,
            "pvalues": [test.pvalue for test in self.tests],
            "errors": [
                {"statistic": describe(part.test_statistic), "value": part.statistic}
                | {"noise_floor": part.noise_floor, "pvalue": part.pvalue}
                for part in self.errors
            ],
        }


@dataclass(frozen=True)
class CombinedDifference:
    """The differences of two models in all folds, with one p-value; none pools observations of different folds.

    Attributes
    ----------
    folds : tuple of DifferenceResult
        Squared l2 error of the first minus that of the second, in each fold; the level of the intervals is divided by
        the number of folds.
    """

    folds: tuple[DifferenceResult, ...]

    @property
    def difference(self) -> float:
        """Mean of the differences, by the number of observations."""
        return _mean(self._sizes, [fold.difference for fold in self.folds])

    @property
    def confidence_interval(self) -> ConfidenceInterval:
        """Interval for the mean: the means of the ends in the folds."""
        return _mean_interval(self._sizes, [fold.confidence_interval for fold in self.folds])

    @property
    def pvalue(self) -> float:
        """P-value of the hypothesis of no difference in any fold, combined by Bonferroni's rule."""
        return CombinedPValues(len(self.folds)).pvalue([fold.pvalue for fold in self.folds])

    @property
    def _sizes(self) -> list[int]:
        return [fold.n_samples[0] for fold in self.folds]

    def direction(self, alpha: float) -> int:
        """Return 1 if the second one is better, -1 if worse, 0 if the mean and the folds that differ disagree."""
        smallest = min(self.folds, key=lambda fold: fold.pvalue)
        shown = [fold for fold in self.folds if rejects(len(self.folds) * fold.pvalue, alpha)]
        signs = {int(np.sign(fold.difference)) for fold in (*shown, smallest)}
        signs.add(int(np.sign(self.difference)))
        return signs.pop() if len(signs) == 1 else 0


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RepairedModel(Result):
    """One model of a `RecalibrationStudy`, before or after recalibration by one method.

    Attributes
    ----------
    model, method : str
        The model, and the method as code, or "before".
    folds : tuple of JudgedFold
        What the held-out observations of each fold show.
    maps : tuple of Recalibrator
        The method, fitted to the calibration part of each fold; empty before recalibration.
    change : CombinedDifference or None
        Squared l2 error before minus after; None before recalibration.
    alpha : float
        Level of the decisions; 1 minus that of the intervals.
    pvalue_adjusted : float
        P-value of calibration, Holm-adjusted for all models and methods of the study.
    change_adjusted : float
        P-value of the hypothesis that nothing changed, Holm-adjusted for all models and methods; NaN before.
    """

    model: str
    method: str
    folds: tuple[JudgedFold, ...]
    maps: tuple[Recalibrator, ...]
    change: CombinedDifference | None
    alpha: float
    pvalue_adjusted: float = math.nan
    change_adjusted: float = math.nan

    _left_out: ClassVar[frozenset[str]] = frozenset({"folds", "maps", "change"})

    @property
    def pvalue(self) -> float:
        """P-value of "calibrated in every fold": number of tests times the smallest of their p-values, at most 1."""
        pvalues = [test.pvalue for fold in self.folds for test in fold.tests]
        return CombinedPValues(len(pvalues)).pvalue(pvalues)

    @property
    def smallest_possible_pvalue(self) -> float:
        """The p-value of the most extreme data; with few groups in each fold it may be above every level."""
        smallest = [test.smallest_possible_pvalue for fold in self.folds for test in fold.tests]
        return CombinedPValues(len(smallest)).pvalue(smallest)

    @property
    def decision(self) -> DecisionWord:
        """The decision at ``alpha``, not adjusted for others; "undecidable" if no p-value as small was possible."""
        return decide(self.pvalue, self.alpha, self.smallest_possible_pvalue)

    @property
    def rejected(self) -> bool:
        """Whether calibration is rejected at the level ``alpha``, not adjusted for other models and methods."""
        return self.decision == "rejected"

    @property
    def better(self) -> bool | None:
        """Whether the model is shown to be better (True) or worse (False) calibrated than before; None if neither."""
        if self.change is None or not rejects(self.change_adjusted, self.alpha):
            return None
        sign = self.change.direction(self.alpha)
        return None if sign == 0 else sign > 0

    @property
    def n_samples(self) -> int:
        """Number of held-out observations."""
        return sum(self._sizes)

    @property
    def squared_l2(self) -> float:
        """Debiased squared l2 error, the mean of the folds."""
        return _mean(self._sizes, [fold.miscalibration.estimate for fold in self.folds])

    @property
    def squared_l2_interval(self) -> ConfidenceInterval:
        """Interval for the mean of the squared l2 errors of the folds."""
        return _mean_interval(self._sizes, [fold.miscalibration.confidence_interval for fold in self.folds])

    @property
    def l2(self) -> float:
        """Root of the squared l2 error, 0 where the estimate is negative."""
        return math.sqrt(max(self.squared_l2, 0.0))

    @property
    def l2_interval(self) -> ConfidenceInterval:
        """Interval for the l2 error, the root of the squared one."""
        return ConfidenceInterval(*(math.sqrt(max(end, 0.0)) for end in self.squared_l2_interval))

    @property
    def l2_text(self) -> str:
        """The l2 error with its interval: "0.0238 (0.0163 to 0.0312)"."""
        return f"{self.l2:.4f} ({self.l2_interval.low:.4f} to {self.l2_interval.high:.4f})"

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

    def mean(self, name: str) -> float:
        """Return the mean of a number of the folds, such as "accuracy", "log" or "brier_miscalibration"."""
        return _mean(self._sizes, [fold.numbers[name] for fold in self.folds])

    def mean_error(self, place: int) -> tuple[float, float]:
        """Return the mean of an error over the folds, and that of its noise floor."""
        parts = [fold.errors[place] for fold in self.folds]
        return _mean(self._sizes, [p.statistic for p in parts]), _mean(self._sizes, [p.noise_floor for p in parts])

    @property
    def numbers(self) -> dict[str, Any]:
        """Means of the folds, intervals and p-values, by name."""
        names = [describe(part.test_statistic) for part in self.folds[0].errors]
        errors: dict[str, float] = {}
        for place, name in enumerate(names):
            errors[name], errors[f"{name}_noise_floor"] = self.mean_error(place)
            pvalues = [fold.errors[place].pvalue for fold in self.folds]
            errors[f"{name}_pvalue"] = CombinedPValues(len(pvalues)).pvalue(pvalues)
        parts = ("miscalibration", "discrimination")
        ends = ("", *(f"_{part}" for part in parts))
        scores = ["accuracy", *(f"{score}{end}" for score in ("brier", "log") for end in ends)]
        change: dict[str, Any] = dict.fromkeys(("change", "change_low", "change_high", "change_pvalue"), math.nan)
        if self.change is not None:
            low, high = self.change.confidence_interval
            change = {"change": self.change.difference, "change_low": low, "change_high": high}
            change["change_pvalue"] = self.change.pvalue
        return {
            "model": self.model,
            "method": self.method,
            "n_samples": self.n_samples,
            **{name: self.mean(name) for name in scores},
            "squared_l2": self.squared_l2,
            "l2": self.l2,
            "l2_low": self.l2_interval.low,
            "l2_high": self.l2_interval.high,
            "pvalue": self.pvalue,
            "pvalue_adjusted": self.pvalue_adjusted,
            **change,
            "change_adjusted": self.change_adjusted,
            "better": self.better,
            **errors,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, and those of each fold, as plain Python objects, ready for JSON.

        Returns
        -------
        dict
            `numbers`, and a list of the numbers of each fold as ``folds``.
        """
        return to_plain({**self.numbers, "found": self.found, "folds": [fold.numbers for fold in self.folds]})

    @property
    def _sizes(self) -> list[int]:
        return [fold.n_samples for fold in self.folds]

    def _describe(self) -> Description:
        rows = [
            (fold.name, f"{fold.n_samples}", f"{fold.accuracy:.4f}", f"{fold.log:.4f}", fold.miscalibration.root_text)
            for fold in self.folds
        ]
        return Description(
            f"{self.model}, {self.method} ({counted(self.n_samples)})",
            [f"Calibration is {self.decision} at the {percent(self.alpha)} level ({equate_pvalue(self.pvalue)})."],
            [Table(("fold", "n", "accuracy", "log", "l2 error"), rows)],
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RepairedPair(Result):
    """Two methods on the same model of a `RecalibrationStudy`.

    Attributes
    ----------
    model, a, b : str
        The model and the two methods.
    test : CombinedDifference
        Squared l2 error after a minus that after b.
    alpha : float
        Level of the decision.
    pvalue_adjusted : float
        P-value, Holm-adjusted for all pairs of the study.
    """

    model: str
    a: str
    b: str
    test: CombinedDifference
    alpha: float
    pvalue_adjusted: float = math.nan

    _left_out: ClassVar[frozenset[str]] = frozenset({"test"})

    @property
    def better(self) -> str | None:
        """The method after which the model is better calibrated; None if no difference is shown."""
        if not rejects(self.pvalue_adjusted, self.alpha):
            return None
        return {1: self.b, -1: self.a, 0: None}[self.test.direction(self.alpha)]

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


def _mean(sizes: Sequence[int], values: Sequence[float]) -> float:
    return float(np.average(values, weights=sizes))


def _mean_interval(sizes: Sequence[int], ends: Sequence[ConfidenceInterval]) -> ConfidenceInterval:
    """Return the mean of intervals: it contains the mean of the targets wherever each contains its own."""
    return ConfidenceInterval(_mean(sizes, [one.low for one in ends]), _mean(sizes, [one.high for one in ends]))
