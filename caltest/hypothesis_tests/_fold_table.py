"""The result of several tests that are made fold by fold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from caltest.hypothesis_tests._calibration_table_result import CalibrationTable, short_direction
from caltest.hypothesis_tests._fold_tests import (
    FoldTests,
    cannot_decide_by_fold,
    fold_record,
    in_folds,
    towards_of_models,
)
from caltest.results import TestResult
from caltest.results._description import Table, percent, sized

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FoldTable(CalibrationTable):
    """Result of several tests of cross-validated predictions, fold by fold; iterates over its tests.

    Attributes
    ----------
    tests : tuple of FoldTests
        One for each lens, statistic or subgroup, with the p-value that is combined over the folds.
    pvalue : float
        Number of folds times the smallest of their global p-values, at most 1 (Bonferroni).
    tables : tuple of CalibrationTable
        The table of each fold.
    fold_names : tuple of str
        The id of each fold.
    sizes : tuple of int
        Number of observations of each fold.
    names : tuple of str
        What distinguishes the tests, in words: lenses, statistics or subgroups.
    what : tuple of str
        What the names are, in the singular and in the plural.
    correction : str
        How the combined p-values are adjusted for the number of tests.
    alpha, notes
        As in `CalibrationTable`.
    """

    tests: tuple[FoldTests, ...]
    tables: tuple[CalibrationTable, ...]
    fold_names: tuple[str, ...]
    sizes: tuple[int, ...]
    names: tuple[str, ...]
    what: tuple[str, str]

    _left_out: ClassVar[frozenset[str]] = frozenset({"tables", "names", "what"})

    @property
    def labels(self) -> tuple[str, ...]:
        """What distinguishes the tests, in words."""
        return self.names

    @property
    def _sentences(self) -> list[str]:
        return [*self._answer(), self._count()]

    def _answer(self) -> list[str]:
        what = f"Calibration of the models of {len(self.fold_names)} folds"
        if self.decision == "undecidable":
            numbers = f"global p = {self.pvalue:.4g}, {self._n_samples} observations"
            return [cannot_decide_by_fold(self.tests[0], numbers, "global p-value", self.smallest_possible_pvalue)]
        if self.decision == "not rejected":
            return [
                f"{what} is not rejected (global p = {self.pvalue:.4g}, {self._n_samples} observations). This does not "
                "prove that the models are calibrated."
            ]
        decision = f"{what} is rejected at the {percent(self.alpha)} level (global p = {self.pvalue:.4g})."
        direction = self.tests[self._spoken].direction if self.rejected[self._spoken] else None
        towards = towards_of_models(direction).strip()
        return [decision, *([f"{self._through(self._spoken)} {towards[0].lower()}{towards[1:]}"] if towards else [])]

    def _through(self, number: int) -> str:
        if self.what[0] == "subgroup":
            return f'In the subgroup "{self.labels[number]}"'
        return super()._through(number)

    def to_dict(self) -> dict[str, Any]:
        """Return tests, adjusted p-values, global p-values and conclusion as plain Python objects, ready for JSON.

        Returns
        -------
        dict
            With a list ``tests``, one entry for each test with its folds, and ``fold_pvalues``, the global p-value of
            each fold.
        """
        each = [
            {"fold": name, "pvalue": table.pvalue} for name, table in zip(self.fold_names, self.tables, strict=True)
        ]
        return super().to_dict() | {"fold_pvalues": each}

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each test as a pandas frame; see `folds_frame` for the folds.

        Returns
        -------
        pandas.DataFrame
            Lens, statistic or subgroup, number of observations, combined p-value, adjusted p-value, the smallest
            p-value of a fold with this fold, and direction.
        """
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    self.what[0]: label,
                    "n_samples": test.n_samples,
                    "pvalue": test.pvalue,
                    "pvalue_adjusted": adjusted,
                    "smallest_pvalue": _deciding(test)[1].pvalue,
                    "smallest_fold": _deciding(test)[0],
                    "direction": direction,
                }
                for label, test, adjusted, direction in zip(
                    self.labels, self.tests, self.pvalue_adjusted, self.directions, strict=True
                )
            ]
        )

    def folds_frame(self) -> pd.DataFrame:
        """Return one row for each test and fold as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            Lens, statistic or subgroup, fold, and the numbers of the test of this fold.
        """
        import pandas as pd

        return pd.DataFrame(
            [
                {self.what[0]: label, **fold_record(name, one)}
                for label, test in zip(self.labels, self.tests, strict=True)
                for name, one in zip(test.fold_names, test.tests, strict=True)
            ]
        )

    @property
    def _number(self) -> str:
        one, several = self.what
        return f"{len(self.tests)} {one if len(self.tests) == 1 else several}"

    @property
    def _n_samples(self) -> int:
        return sum(self.sizes)

    def _title(self) -> str:
        of = "" if self.what[0] == "statistic" else f"{self.tests[0].tests[0]._full_name}, "
        first, whole = self.tests[0], self.what[0] != "subgroup"
        size = sized(self._n_samples, first.n_groups if whole else None, weighted=first.weighted)
        size = in_folds(size, len(self.fold_names))
        return f"Calibration by fold ({of}{self._number}, {size})"

    def _sizes(self) -> list[str]:
        return []  # there is no l2 error of predictions of several models

    def _tables(self) -> list[Table]:
        rows = []
        for label, test, adjusted, direction in zip(
            self.labels, self.tests, self.pvalue_adjusted, self.directions, strict=True
        ):
            fold, least = _deciding(test)
            rows.append(
                (
                    label.removesuffix(" against the rest"),
                    f"{test.pvalue:.4g}",
                    f"{adjusted:.4g}",
                    f"{least.pvalue:.4g}",
                    fold,
                    short_direction(direction),
                )
            )
        head = (self.what[0], "combined p", self._adjusted_name, "smallest p", "in fold", "direction")
        return [Table(head, rows, left=("direction",)), self._fold_table()]

    def _fold_table(self) -> Table:
        """Return the table of the folds, with the statistic of the first test where every fold has that."""
        parts = list(zip(self.fold_names, self.sizes, self.tables, strict=True))
        if self.what[0] == "subgroup":
            return Table(("fold", "n", "global p"), [(name, f"{n}", f"{table.pvalue:.4g}") for name, n, table in parts])
        head = ("fold", "n", f"statistic, {self.labels[0]}", "l2 error (95 % interval)", "global p")
        return Table(head, [(name, f"{n}", *_size(table.tests[0]), f"{table.pvalue:.4g}") for name, n, table in parts])

    def _combined(self) -> list[str]:
        return []

    def _averages(self) -> list[str]:
        return []

    def _sources(self) -> list[str]:
        one = self.tests[0]
        return [
            f"P-values: {one.origin}; the global p-value of a fold is an exact min-p over its tests.",
            f"Null distribution in a fold: {one.tests[0].origin}.",
        ]


def _deciding(test: FoldTests) -> tuple[str, TestResult]:
    """Return the fold with the smallest p-value, and its test."""
    return min(zip(test.fold_names, test.tests, strict=True), key=lambda pair: pair[1].pvalue)


def _size(test: TestResult) -> tuple[str, str]:
    return f"{test.statistic:.4g}", "" if test.l2_error is None else test.l2_error.root_text
