"""The result of a test that is made fold by fold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest.hypothesis_tests._calibration_table_result import short_direction
from caltest.resampling import correct_pvalues
from caltest.results import TestResult
from caltest.results._decision import cannot_decide, rejects
from caltest.results._description import Description, Table, join, percent
from caltest.results._note import PAGE
from caltest.results._picture import Picture

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FoldTests(TestResult):
    """Result of a test of cross-validated predictions, fold by fold; unpacks as ``statistic, pvalue``.

    The predictions of each fold are those of another model, so that there is no statistic of all observations:
    ``statistic`` is -log10 of the smallest p-value of the folds, and ``l2_error`` is None. Each fold has both.

    Attributes
    ----------
    components : tuple of TestResult
        The test of each fold; `tests` is the same.
    pvalue : float
        Number of folds times the smallest of their p-values, at most 1 (Bonferroni); valid under any dependence between
        the folds.
    fold_names : tuple of str
        The id of each fold.
    method
        How the null distribution was found in the fold with the smallest p-value.
    direction : str or None
        The direction of the folds that reject after Holm's correction, if it is the same in all of them.
    """

    fold_names: tuple[str, ...]

    plot = Picture(None)
    _derived: ClassVar[tuple[str, ...]] = (
        "n_resamples",
        "decision",
        "conclusion",
        "pvalue_adjusted",
        "direction",
        "direction_words",
    )

    @property
    def tests(self) -> tuple[TestResult, ...]:
        """The test of each fold."""
        return self.components  # type: ignore[return-value]

    @cached_property
    def pvalue_adjusted(self) -> NDArray[np.float64]:
        """P-values of the folds, Holm-adjusted for their number, ``(n_folds,)``; the smallest is ``pvalue``."""
        return correct_pvalues([test.pvalue for test in self.tests])

    @property
    def direction(self) -> str | None:
        """The direction of the folds that reject after Holm's correction, if it is the same in all of them."""
        found = {
            test.direction for test, p in zip(self.tests, self.pvalue_adjusted, strict=True) if rejects(p, self.alpha)
        }
        return found.pop() if len(found) == 1 else None

    @property
    def n_resamples(self) -> int:
        """Number of draws in each fold; 0 if nothing was drawn."""
        return max(test.n_resamples for test in self.tests)

    @property
    def conclusion(self) -> str:
        """The decision in words."""
        what = f"{self._subject} of the models of {len(self.fold_names)} folds"
        if self.decision == "undecidable":
            return cannot_decide_by_fold(self, f"combined p = {self.pvalue:.4g}, {self._size}", "combined p-value")
        if not self.rejected:
            proved = "that the models are calibrated" if self.of_calibration else "it"
            return (
                f"{what} is not rejected (combined p = {self.pvalue:.4g}, {self.n_samples} observations). This does "
                f"not prove {proved}."
            )
        towards = towards_of_models(self.direction)
        rejected = [
            name for name, p in zip(self.fold_names, self.pvalue_adjusted, strict=True) if rejects(p, self.alpha)
        ]
        if len(rejected) == len(self.fold_names):
            single = "Each single fold rejects"
        else:
            verb = "rejects" if len(rejected) == 1 else "reject"
            single = f"{len(rejected)} of the {len(self.fold_names)} single folds {verb}"
        level = percent(self.alpha)
        return (
            f"{what} is rejected at the {level} level (combined p = {self.pvalue:.4g}{self._smallest}).{towards} "
            f"{single} after Holm's correction{'' if len(rejected) == len(self.fold_names) else f': {join(rejected)}'}."
        )

    @property
    def _smallest(self) -> str:
        n = self.n_resamples
        if not n or self.pvalue * (n + 1) > len(self.fold_names) + 0.5:
            return ""
        return f", the smallest possible with {n} draws in each of {len(self.fold_names)} folds"

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain Python objects, ready for strict JSON; infinities and NaN become None.

        Returns
        -------
        dict
            Combined numbers by name, and the list ``components`` with an entry for each fold.
        """
        content = super().to_dict()
        content["components"] = [
            {"fold": name, **test} for name, test in zip(self.fold_names, content["components"], strict=True)
        ]
        return content

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each fold as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            Fold, number of observations, statistic with its noise floor, p-value, Holm-adjusted p-value, direction and
            l2 error with its interval.
        """
        import pandas as pd

        return pd.DataFrame(
            [
                fold_record(name, test) | {"pvalue_adjusted": adjusted}
                for name, test, adjusted in zip(self.fold_names, self.tests, self.pvalue_adjusted, strict=True)
            ]
        )

    def _describe(self) -> Description:
        size = f"{in_folds(self._size, len(self.fold_names))}, {self.n_outcomes} outcomes"
        name = str(self.test_statistic).partition("(")[0]
        return Description(
            f"{self.title} ({name}, {self.lens_name}, {size})",
            [self.conclusion],
            self._tables(),
            self._remarks(),
            self.notes,
        )

    def _tables(self) -> list[Table]:
        head = ("fold", "n", "statistic", "l2 error (95 % interval)", "p-value", "p (Holm)", "direction")
        rows = [
            (
                name,
                f"{test.n_samples}",
                f"{test.statistic:.4g}",
                "" if test.l2_error is None else test.l2_error.root_text,
                f"{test.pvalue:.4g}",
                f"{adjusted:.4g}",
                short_direction(test.direction if rejects(adjusted, self.alpha) else None),
            )
            for name, test, adjusted in zip(self.fold_names, self.tests, self.pvalue_adjusted, strict=True)
        ]
        return [Table(head, rows, left=("direction",))]

    def _remarks(self) -> list[str]:
        error = "" if math.isnan(self.numerical_error) else f" Numerical error of p: {self.numerical_error:.1g}."
        return [
            f"Hypothesis: {self.hypothesis}.",
            f"P-value: {self.origin}.{error}",
            f"Null distribution in a fold: {self.tests[0].origin}.",
            "No statistic, l2 error or interval of all observations is given, because the predictions of different "
            "folds are those of different models.",
            *(f"Valid if {note.text} [{note.code}: {PAGE}]" for note in self.conditions),
        ]


def cannot_decide_by_fold(tests: FoldTests, numbers: str, name: str, smallest: float | None = None) -> str:
    """Return the conclusion of tests of folds of which none could have rejected."""
    groups = [test.n_groups for test in tests.tests if test.n_groups is not None]
    return cannot_decide(
        tests.smallest_possible_pvalue if smallest is None else smallest,
        tests.alpha,
        numbers=numbers,
        n_groups=max(groups, default=None),
        n_resamples=tests.n_resamples if not groups else 0,
        name=name,
        where=" or fewer in each fold",
    )


def in_folds(size: str, n_folds: int) -> str:
    """Return a number of observations in words, with that of their folds."""
    return f"{size} {'and' if ' in ' in size else 'in'} {n_folds} folds"


def towards_of_models(direction: str | None) -> str:
    """Return the direction of several models as a further sentence; empty if there is none."""
    if direction is None:
        return ""
    return f" They are {direction}." if direction.endswith("-confident") else f" Their predictions are {direction}."


def fold_record(name: str, test: TestResult) -> dict[str, Any]:
    """Return the numbers of the test of a fold by name."""
    size = test.l2_error
    known = size is not None
    return {
        "fold": name,
        "n_samples": test.n_samples,
        "statistic": test.statistic,
        "noise_floor": test.noise_floor,
        "pvalue": test.pvalue,
        "direction": test.direction,
        "l2_error": size.root if known else math.nan,
        "l2_low": size.root_interval.low if known else math.nan,
        "l2_high": size.root_interval.high if known else math.nan,
    }
