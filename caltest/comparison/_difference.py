"""The difference in calibration of two models, with its interval and its p-value; with folds, of all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest.comparison._judged import level_of_folds, mean_interval, means_of_folds
from caltest.hypothesis_tests._by_fold import condition_of_folds, fold_notes, small_notes
from caltest.predictions._lens import LensLike
from caltest.resampling import correct_pvalues
from caltest.resampling.engine._pvalues import CombinedPValues
from caltest.results import ConfidenceInterval, Note, Result
from caltest.results._decision import Decision, equate_pvalue, rejects
from caltest.results._description import Description, Table, join, percent
from caltest.results._note import PAGE
from caltest.results._verdict import Judged

if TYPE_CHECKING:
    import pandas as pd

TARGET = (
    "the difference of the squared l2 calibration errors, each within the cells (bins) of the model's own partition"
)
NO_ESTIMATE = (
    "No difference or interval of all observations is given, because the predictions of different folds are those of "
    "different models."
)
TYPICAL = "typical error (points)"
MEANING = (
    "Typical error: the root of the debiased squared l2 calibration error, in percentage points; 0 if calibrated. "
    "Differences are tested by the squared errors."
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DifferenceResult(Judged, Decision, Result):
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
    smallest_possible_pvalue : float
        The smallest p-value that any labels could have; 1 with fewer than 5 effective groups or observations.
    notes : tuple of Note
        Cautions.
    folds : tuple of DifferenceResult
        The test of each fold; empty without folds.
    fold_names : tuple of str
        The id of each fold.
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
    smallest_possible_pvalue: float = 0.0
    notes: tuple[Note, ...] = ()
    folds: tuple[DifferenceResult, ...] = ()
    fold_names: tuple[str, ...] = ()

    _of_folds: ClassVar[frozenset[str]] = frozenset({"folds", "fold_names", "better", "pvalue_adjusted"})
    _derived: ClassVar[tuple[str, ...]] = (
        *("target", "rejected", "decision", "conclusion", "better", "pvalue_adjusted"),
    )

    @property
    def target(self) -> str:
        """What is estimated, in words."""
        return TARGET

    @property
    def pvalue_adjusted(self) -> NDArray[np.float64]:
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
        what = "observations" if self.n_groups is None else "groups of observations"
        return Note("C101", f"{what} are independent and no label was used to make the predictions.")

    @property
    def conclusion(self) -> str:
        """The decision in words."""
        kind, p = ("combined p", f"combined p = {self.pvalue:.4g}") if self.folds else ("p", equate_pvalue(self.pvalue))
        p += f", {len(self.folds)} folds" if self.folds else ""
        at = f" at the {percent(self.alpha)} level"
        if self.decision == "undecidable":
            least = f"no labels could have a {kind}-value below {self.smallest_possible_pvalue:.2g}"
            return f"Whether the models differ in calibration is undecidable{at} ({p}): {least}."
        names, errors = ("model A", "model B"), self.errors
        if not self.rejected:
            proof = "This does not prove that they are equally calibrated."
            return f"M{apart_sentence(*names, errors, p, at)[1:]} {proof}"
        where = [name for name, p in zip(self.fold_names, self.pvalue_adjusted, strict=True) if rejects(p, self.alpha)]
        p += f", in fold{'s' if len(where) > 1 else ''} {join(where)}" if self.folds else ""
        if self.better is None:
            return f"The models differ in calibration{at} ({p}), in different directions."
        order = 1 if self.better == "A" else -1
        winner, loser = names[::order]
        return f"M{better_sentence(winner, [loser], errors and errors[::order], p, at)[1:]}"

    @property
    def errors(self) -> tuple[float, float] | None:
        """The typical error of each model, the root of its estimate; None with folds, whose models differ."""
        return None if self.folds else (root_of(self.estimate_a), root_of(self.estimate_b))

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
        names = "model A", "model B"
        return self.describe_as("Calibration of two models", names, self.conclusion, self.confidence_interval)

    def describe_as(
        self, title: str, names: tuple[str, str], conclusion: str, interval: ConfidenceInterval
    ) -> Description:
        """Return a description with other names of the models, another conclusion and another interval."""
        shown = in_points([root_of(self.estimate_a), root_of(self.estimate_b)])
        size = str(self.n_samples[0]) if self.paired else f"{self.n_samples[0]} and {self.n_samples[1]}"
        return Description(
            f"{title} ({self.lens_name}, {size} observations)",
            [conclusion],
            [Table(("model", TYPICAL), list(zip(names, shown, strict=True)))],
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
        columns = {"fold": "{fold}", "n": "{n_samples}"}
        columns[f"A - B ({percent(first.confidence_level)} interval)"] = "{difference:.3g} {low:.4g} to {high:.4g}"
        columns |= {"z": "{statistic:.3g}", "p-value": "{pvalue:.4g}", "p (Holm)": "{pvalue_adjusted:.4g}"}
        condition = condition_of_folds(first.condition, is_grouped=first.n_groups is not None)
        size = f"{self.n_samples[0]} observations in {len(self.folds)} folds"
        return Description(
            f"Calibration of two models by fold ({first.lens_name}, {size})",
            [self.conclusion],
            [Table.of(self._records(), columns)],
            [
                f"Target in a fold: {first.target} (the same observations).",
                f"P-value: {self.origin}.",
                f"Null distribution in a fold: {first.origin}.",
                NO_ESTIMATE,
                f"Valid if {condition.text} [{condition.code}: {PAGE}]",
            ],
            self.notes,
        )


def root_of(estimate: float) -> float:
    """Return a squared error as an error, 0 where its estimate is negative."""
    return math.sqrt(max(estimate, 0.0))


def in_points(errors: Sequence[float]) -> list[str]:
    """Return errors in percentage points, with as many of three decimals as tell them apart.

    Examples
    --------
    >>> in_points([0.021, 0.0452]), in_points([0.0212, 0.0214]), in_points([0.3, 0.3])
    (['2.1', '4.5'], ['2.12', '2.14'], ['30.0', '30.0'])
    """
    shown: list[str] = []
    for digits in (1, 2, 3):
        shown = [f"{100 * error:.{digits}f}" for error in errors]
        if len(set(shown)) == len(set(errors)):
            break
    return shown


def better_sentence(winner: str, losers: Sequence[str], errors: Sequence[float] | None, p: str, at: str = "") -> str:
    """Return which model is better calibrated than others, with the error of each, the winner's first."""
    sizes = ""
    if errors is not None and all(errors[0] < error for error in errors[1:]):
        first, *others = in_points(errors)
        those = f"that of {losers[0]}" if len(losers) == 1 else "theirs"
        sizes = f": its typical error is {first} points, {those} {join(others)}"
    return f"{winner} is better calibrated than {join(losers)}{at}{sizes} ({p})."


def apart_sentence(a: str, b: str, errors: Sequence[float] | None, p: str, at: str = "") -> str:
    """Return that two models cannot be told apart, with the error of each."""
    sizes = "" if errors is None else f": their typical errors are {' and '.join(in_points(errors))} points"
    return f"{a} and {b} cannot be told apart in calibration{at}{sizes} ({p})."


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
        notes=(*small_notes(names, sizes), *fold_notes(names, tests)),
        folds=tuple(tests),
        fold_names=tuple(names),
    )
