"""The difference in calibration of two models, with its interval and its p-value; with folds, of all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from caltest.comparison._judged import level_of_folds, mean_interval, means_of_folds
from caltest.hypothesis_tests._by_fold import condition_of_folds, fold_notes, small_notes
from caltest.predictions._arrays import Floats
from caltest.predictions._lens import LensLike
from caltest.resampling import correct_pvalues
from caltest.resampling.engine._pvalues import CombinedPValues
from caltest.results import ConfidenceInterval, Note, Result
from caltest.results._decision import Decision, DecisionWord, align_pvalue, rejects
from caltest.results._description import Description, Table, counted, percent
from caltest.results._finding import Number, Subject
from caltest.results._models_verdict import (
    UNNAMED,
    DifferenceKind,
    ModelDifference,
    ModelsVerdict,
    points_apart,
    typical_error,
)
from caltest.results._note import PAGE

if TYPE_CHECKING:
    import pandas as pd

TARGET = (
    "the difference of the squared l2 calibration errors, each within the cells (bins) of the model's own partition"
)
NO_ESTIMATE = (
    "No difference or interval of all observations is given, because the predictions of different folds are those of "
    "different models."
)
MEANING = (
    "Typical error: the root of the debiased squared l2 calibration error, in percentage points; 0 if calibrated. "
    "Differences are tested by the squared errors."
)
_UNCERTAIN = 2  # standard errors by which the smaller squared error may be smaller


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DifferenceResult(Decision, Result):
    """Result of `paired_test` and `unpaired_test`; unpacks as ``statistic, pvalue``.

    With folds the models of each fold are compared separately, and ``folds`` holds what was found. P-values are
    combined; difference and estimates are means of the folds by their number of observations.

    Attributes
    ----------
    difference : float
        Debiased squared l2 calibration error of model A minus that of model B; positive where B is better calibrated.
    standard_error : float
        Its standard error; NaN with folds.
    statistic : float
        ``difference / standard_error``; 0 for models that do not differ. With folds, -log10 of their smallest p-value.
    pvalue : float
        Two-sided p-value of the hypothesis that both models are equally miscalibrated. With folds, their number times
        the smallest of their p-values, at most 1: of the hypothesis that this is so in every fold.
    alpha : float
        Level of the test.
    confidence_interval : ConfidenceInterval
        Interval for the difference: ``low`` and ``high``. With folds, the means of the ends in the folds.
    confidence_level : float
        Level of the interval. With folds, the probability that all their intervals contain their targets, at least.
    estimate_a, estimate_b : float
        Debiased squared l2 calibration error of each model.
    paired : bool
        Whether both models were evaluated on the same observations.
    method : {"asymptotic", "bootstrap", "simulation"}
        How the null distribution was found; "simulation", for groups and weights, is by simulated labels and random
        signs of groups.
    origin : str
        Where the p-value and the interval come from.
    lens : lens
        The lens.
    lens_name : str
        The lens in words.
    n_samples : tuple of int
        Number of observations of each model.
    n_groups : tuple of int or None
        Number of groups of each model's observations, if only groups are independent.
    lead : str or None
        How long after its prediction a label is known, of forecasts that overlap.
    n_windows : float or None
        How many times the lead these forecasts span.
    smallest_possible_pvalue : float
        The smallest p-value that any labels could have; 1 with fewer than 5 effective groups or observations, or fewer
        than 9 windows as long as the lead.
    n_expected : float
        Expected number of the rarer one of events and other observations (of right and wrong predictions for several
        classes), the smaller one of both models. With fewer than 5 a test that does not reject is undecidable.
    n_resamples : int
        Number of draws or bootstrap samples; 0 if nothing was drawn.
    subject : Subject
        What is counted by ``n_expected``.
    notes : tuple of Note
        Cautions.
    folds : tuple of DifferenceResult
        The test of each fold; empty without folds.
    fold_names : tuple of str
        The id of each fold.

    See Also
    --------
    caltest.paired_test : The test that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(3).draw(300, rng=0)
    >>> models = {"as it is": y_prob, "flat": 0.5 * y_prob + 0.5 / 3}
    >>> result = caltest.paired_test(y_true, y_prob, models["flat"])
    >>> difference, (low, high) = result.difference, result.confidence_interval
    >>> bool(low < difference < high), result.paired
    (True, True)
    """

    difference: float
    standard_error: float
    statistic: float
    pvalue: float
    alpha: float
    confidence_interval: ConfidenceInterval
    confidence_level: float
    estimate_a: float
    estimate_b: float
    paired: bool
    method: str
    origin: str
    lens: LensLike
    lens_name: str
    n_samples: tuple[int, int]
    n_groups: tuple[int, int] | None = None
    lead: str | None = None
    n_windows: float | None = None
    smallest_possible_pvalue: float = 0.0
    n_expected: float = math.inf
    n_resamples: int = 0
    subject: Subject = field(default_factory=Subject)
    notes: tuple[Note, ...] = ()
    folds: tuple[DifferenceResult, ...] = ()
    fold_names: tuple[str, ...] = ()

    _left_out: ClassVar[frozenset[str]] = frozenset({"subject"})
    _of_folds: ClassVar[frozenset[str]] = frozenset({"folds", "fold_names", "better", "pvalue_adjusted"})
    _derived: ClassVar[tuple[str, ...]] = (
        *("target", "rejected", "decision", "conclusion", "verdict", "better", "pvalue_adjusted"),
    )

    @property
    def target(self) -> str:
        """What is estimated, in words."""
        return TARGET

    @property
    def pvalue_adjusted(self) -> Floats:
        """P-values of the folds, Holm-adjusted for their number, ``(n_folds,)``."""
        return correct_pvalues([fold.pvalue for fold in self.folds])

    @property
    def better(self) -> str | None:
        """The model that is better calibrated, "A" or "B"; None if no difference is shown.

        With folds, the one that is better in all folds that reject after Holm's correction.
        """
        each = self.folds or (self,)
        sign = agreed_sign([one.difference for one in each], [one.pvalue for one in each], self.alpha)
        return {1: "B", -1: "A"}.get(sign)

    @property
    def condition(self) -> Note:
        """When the p-value is valid."""
        if self.lead is not None:
            return Note("C101", f"{self._independent} and no label was used to make the predictions.")
        what = "observations" if self.n_groups is None else "groups of observations"
        return Note("C101", f"{what} are independent and no label was used to make the predictions.")

    @property
    def _independent(self) -> str:
        return f"predictions that are {self.lead} or more apart have independent errors"

    @property
    def condition_in_folds(self) -> Note:
        """When the p-value of a fold is valid."""
        if self.lead is None:
            return condition_of_folds(self.condition, is_grouped=self.n_groups is not None)
        own = "no model was made with the labels of the fold that it is tested on."
        return Note("C101", f"{self._independent} and {own}")

    @property
    def conclusion(self) -> str:
        """The decision in words."""
        return self.verdict.conclusion

    @cached_property
    def verdict(self) -> ModelsVerdict:
        """Which model is better calibrated and by how much, or why that is not known."""
        finding = difference_found(
            self,
            UNNAMED,
            self.typical_errors,
            self.confidence_interval,
            decision=self.decision,
            better={"A": UNNAMED[0], "B": UNNAMED[1]}.get(self.better or ""),
            pvalue=self.pvalue,
            p_name="combined p" if self.folds else "p",
            of_folds=self.pvalue_adjusted if self.folds else (),
        )
        ordered = sorted(zip((self.estimate_a, self.estimate_b), UNNAMED, strict=True))
        return ModelsVerdict.of_pairs(
            [finding],
            pvalue=self.pvalue,
            alpha=self.alpha,
            smallest_possible_pvalue=self.smallest_possible_pvalue,
            subject=self.subject,
            n_samples=finding.n,
            n_groups=None if self.n_groups is None else max(self.n_groups),
            n_windows=self.n_windows,
            n_resamples=self.n_resamples,
            n_expected=self.n_expected,
            numbers=self.typical_errors,
            cautions=self.notes,
            names=tuple(name for _, name in ordered),
            calibration={},
            p_of_calibration={},
            n_folds=len(self.folds),
            paired=self.paired,
        )

    @property
    def typical_errors(self) -> tuple[Number, ...]:
        """The typical error of each model, in points; none with folds, whose models differ."""
        both = zip(UNNAMED, (self.estimate_a, self.estimate_b), strict=True)
        return () if self.folds else tuple(typical_error(name, math.sqrt(max(squared, 0.0))) for name, squared in both)

    def to_frame(self) -> pd.DataFrame:
        """Return the result as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            One row; with folds one for each: number of observations, difference with its interval, z, p-value and
            Holm-adjusted p-value.
        """
        import pandas as pd

        return pd.DataFrame(self._records()) if self.folds else super().to_frame()

    def _records(self) -> list[dict[str, Any]]:
        """Return the numbers of each fold."""
        return [
            {
                "fold": name,
                "n_samples": fold.n_samples[0],
                "difference": fold.difference,
                "low": fold.confidence_interval.low,
                "high": fold.confidence_interval.high,
                "statistic": fold.statistic,
                "pvalue": fold.pvalue,
                "pvalue_adjusted": adjusted,
            }
            for name, fold, adjusted in zip(self.fold_names, self.folds, self.pvalue_adjusted, strict=True)
        ]

    def _describe(self) -> Description:
        if self.folds:
            return self._describe_by_fold()
        found = self.verdict
        errors = found.numbers
        return self.describe_as("Calibration of two models", errors, found.conclusion, self.confidence_interval)

    def describe_as(
        self, title: str, errors: Sequence[Number], conclusion: str, interval: ConfidenceInterval
    ) -> Description:
        """Return a description with the names and errors of the models, another conclusion and another interval."""
        first, second = self.n_samples
        size = counted(first) if self.paired else f"{first:,} and {counted(second)}"
        return Description(
            f"{title} ({self.lens_name}, {size})",
            [conclusion],
            [Table(("model", "typical error"), [(error.name, error.shown) for error in errors])],
            [
                MEANING,
                f"Target: {self.target} ({'the same' if self.paired else 'different'} observations). It is "
                f"{self.difference:.4g} ({percent(self.confidence_level)} interval {interval}); z = "
                f"{self.statistic:.4g}, with standard error {self.standard_error:.3g}.",
                f"Null distribution: {self.origin}.",
                f"Valid if {self.condition.text} [{self.condition.code}: {PAGE}]",
            ],
            self.notes,
        )

    def _describe_by_fold(self) -> Description:
        first = self.folds[0]
        rows = [
            (name, f"{fold.n_samples[0]:,}", *(one.shown for one in fold.typical_errors), align_pvalue(adjusted))
            for name, fold, adjusted in zip(self.fold_names, self.folds, self.pvalue_adjusted, strict=True)
        ]
        condition = first.condition_in_folds
        size = f"{counted(self.n_samples[0])} in {len(self.folds)} folds"
        return Description(
            f"Calibration of two models by fold ({first.lens_name}, {size})",
            [self.conclusion],
            [Table(("typical error in fold", "n", "model A", "model B", "p (Holm)"), rows)],
            [
                f"Target in a fold: {first.target} (the same observations).",
                f"P-value: {self.origin}.",
                f"Null distribution in a fold: {first.origin}.",
                NO_ESTIMATE,
                f"Valid if {condition.text} [{condition.code}: {PAGE}]",
            ],
            self.notes,
        )


def difference_found(
    test: DifferenceResult,
    names: tuple[str, str],
    errors: tuple[Number, ...],
    interval: ConfidenceInterval,
    *,
    decision: DecisionWord,
    better: str | None,
    pvalue: float,
    p_name: str,
    of_folds: Sequence[float] | Floats = (),
) -> ModelDifference:
    """Return what a test found about two models, whose p-value and interval may be adjusted for other pairs.

    ``errors`` are those of the two models, ``better`` the name of one of them, and ``of_folds`` the p-value of each
    fold, adjusted for their number.
    """
    kind: dict[DecisionWord, DifferenceKind] = {
        "rejected": "opposite in folds" if better is None else "better calibrated",
        "not rejected": "not told apart",
        "undecidable": "undecidable",
    }
    order = -1 if decision == "rejected" and better == names[1] else 1
    return ModelDifference(
        kind=kind[decision],
        models=names if order > 0 else (names[1], names[0]),
        errors=errors[::order],
        difference=None if test.folds else _apart(test, interval, order),
        pvalue=pvalue,
        p_name=p_name,
        n=max(test.n_samples),
        folds=tuple(name for name, p in zip(test.fold_names, of_folds, strict=True) if rejects(p, test.alpha)),
    )


def _apart(test: DifferenceResult, interval: ConfidenceInterval, order: int) -> Number:
    """Return by how much the error of B is larger than that of A, in points; with ``order`` -1 that of A.

    The ends are those of the interval of the squared difference, which keeps their order and their signs.
    """
    squared = max(test.estimate_a, 0.0), max(test.estimate_b, 0.0)
    estimate = 100 * (math.sqrt(squared[1]) - math.sqrt(squared[0]))
    least = max(min(squared) - _UNCERTAIN * test.standard_error, 0.0)
    high, low = (-100 * difference_of_roots(*squared, end, least) for end in interval)
    low, high = min(low, estimate), max(high, estimate)
    return points_apart(order * estimate, ConfidenceInterval(*((low, high) if order > 0 else (-high, -low))))


def difference_of_roots(a: float, b: float, difference: float, least: float = math.inf) -> float:
    """Return the difference of the roots of two numbers near ``a`` and ``b`` that have a difference.

    Both are changed in proportion to themselves, in opposite directions, until the smaller one is 0. A difference that
    is larger than theirs is the larger one of this and of that where the smaller one is ``least``.

    Examples
    --------
    >>> round(difference_of_roots(0.05**2, 0.03**2, 0.05**2 - 0.03**2), 9), difference_of_roots(0.0, 0.01, -0.04)
    (0.02, -0.2)
    >>> difference_of_roots(0.3, 0.3, 0.0), round(difference_of_roots(0.01, 0.0, 0.0144, 0.0), 9)
    (0.0, 0.12)
    """
    total, change, size = a + b, difference - (a - b), abs(difference)
    if abs(change) >= total:
        near = math.sqrt(size)
    else:
        near = abs(math.sqrt(a + a * change / total) - math.sqrt(b - b * change / total))
    is_inside = abs(change) < abs(a - b) and size < abs(a - b)
    far = 0.0 if is_inside or math.isinf(least) else math.sqrt(least + size) - math.sqrt(least)
    return math.copysign(max(near, far), difference)


def agreed_sign(differences: Sequence[float], pvalues: Sequence[float], alpha: float) -> int:
    """Return the sign of the differences that reject after Holm's correction; 0 if none does or they disagree."""
    decided = zip(differences, correct_pvalues(pvalues), strict=True)
    signs = {int(np.sign(difference)) for difference, p in decided if rejects(p, alpha)}
    return signs.pop() if len(signs) == 1 else 0


def combine_differences(names: Sequence[str], tests: Sequence[DifferenceResult], alpha: float) -> DifferenceResult:
    """Return the differences in all folds as one result; none pools observations of different folds."""
    rule, first = CombinedPValues(len(tests)), tests[0]
    sizes, pvalues = [test.n_samples[0] for test in tests], [test.pvalue for test in tests]
    n_groups = None if first.n_groups is None else sum(test.n_groups[0] for test in tests if test.n_groups)
    return DifferenceResult(
        **means_of_folds(sizes, tests, "difference", "estimate_a", "estimate_b"),
        standard_error=math.nan,
        statistic=-math.log10(min(pvalues)),
        pvalue=rule.pvalue(pvalues),
        alpha=alpha,
        confidence_interval=mean_interval(sizes, [test.confidence_interval for test in tests]),
        confidence_level=level_of_folds([test.confidence_level for test in tests]),
        paired=True,
        method=first.method,
        origin=rule.origin,
        lens=first.lens,
        lens_name=first.lens_name,
        n_samples=(sum(sizes), sum(sizes)),
        n_groups=None if n_groups is None else (n_groups, n_groups),
        smallest_possible_pvalue=rule.pvalue([test.smallest_possible_pvalue for test in tests]),
        n_expected=max(test.n_expected for test in tests),
        n_resamples=first.n_resamples,
        subject=first.subject,
        notes=(*small_notes(names, sizes), *fold_notes(names, tests)),
        folds=tuple(tests),
        fold_names=tuple(names),
    )
