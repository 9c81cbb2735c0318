"""Results of tests of several parts of the data, such as subgroups or labels: one line of a table for each."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import Any, ClassVar

from caltest.hypothesis_tests._calibration_table_result import LONGEST, MOST_ROWS, CalibrationTable
from caltest.results import TestResult
from caltest.results._decision import align_pvalue, equate_pvalue
from caltest.results._description import Table, join, percent
from caltest.results._finding import Number, Subject
from caltest.results._picture import Picture
from caltest.results._test_result import NAMED, findings_of_parts
from caltest.results._verdict import Verdict


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PartsTable(CalibrationTable):
    """Tests of several parts of the data, each with its averages; what is said of each part names it."""

    _n_samples: int = 0

    _more_columns: ClassVar[dict[str, str]] = {}
    _within: ClassVar[tuple[str, str]] = ("within", "in")
    """What stands before the parts, and before each of them."""
    is_of_parts: ClassVar[bool] = True
    plot = Picture("plot_parts")

    @property
    @abstractmethod
    def labels(self) -> tuple[str, ...]:
        """What distinguishes the tests: the parts."""

    @property
    def _row_names(self) -> tuple[str, ...]:
        return self.labels

    @property
    def n_samples(self) -> int:
        """Number of observations in any part; parts may overlap."""
        return sum(self.fold_sizes) or self._n_samples

    @property
    def _is_single(self) -> bool:
        """A single part is not all there is."""
        return False

    @cached_property
    def verdict(self) -> Verdict:
        """The parts that are wrong, how, and the decision by the global p-value."""
        return self._verdict()

    def _verdict(self) -> Verdict:
        tests = list(compress(self._adjusted, self.rejected_tests))
        findings = findings_of_parts(tests, list(compress(self.labels, self.rejected_tests)), self._subject_of_part)
        (before, before_each), (one, several) = self._within, self._what
        few = (
            f"It cannot be told whether predictions are right: {before_each} each {one} fewer than 5 events, or fewer "
            "than 5 other observations, were to be expected."
        )
        models = f" of the models of {len(self.folds)} folds" if self.folds else ""
        return Verdict(
            pvalue=self.pvalue,
            alpha=self.alpha,
            smallest_possible_pvalue=self.smallest_possible_pvalue,
            hypothesis=f"Calibration{models} {before} the {several}",
            proof=f"that the model is calibrated {before_each} each of them",
            n_samples=self.n_samples,
            n_expected=max(test.n_expected for test in self.tests),
            p=equate_pvalue(self.pvalue, name="global p"),
            findings=tuple(findings),
            parts=tuple(finding.brief for finding in findings[:NAMED]),
            details=(*self._rejecting_folds(), self._count()),
            cautions=self.all_notes,
            in_time=any(test._in_time for test in self.tests),
            undecidable=f"{self._undecidable() or few} {self._count()}",
        )

    def _subject_of_part(self, subject: Subject, name: str) -> Subject:
        """Return what sentences about a part speak of."""
        return replace(subject, within=f'the {self._what[0]} "{name}"')

    @cached_property
    def _adjusted(self) -> list[TestResult]:
        """The tests with their adjusted p-values, which decide what is named."""
        return [replace(test, pvalue=float(p)) for test, p in zip(self.tests, self.pvalue_adjusted, strict=True)]

    @cached_property
    def directions(self) -> tuple[str | None, ...]:
        """What is wrong in each part that rejects after the correction, in a word."""
        return tuple(next(iter(test._kinds), None) for test in self._adjusted)

    def _count(self) -> str:
        """Say how many parts are rejected, and which cannot be."""
        found = [label for label, rejects in zip(self.labels, self.rejected_tests, strict=True) if rejects]
        (one, several), after = self._what, self._after
        single = f"No single {one} is rejected {after} for {self._number}."
        if found:
            share = f"{len(found)} of {self._number} {'is' if len(found) == 1 else 'are'}"
            if len(found) == len(self.tests) > 1:
                share = f"{'Both' if len(found) == 2 else f'All {len(found)}'} {several} are"
            single = f"{share} rejected {after}: {join(found)}."
        open_ones = zip(self.labels, self.decisions, strict=True)
        unknown = [label for label, decision in open_ones if decision == "undecidable"]
        if not unknown:
            return single
        which = named if len(named := join(unknown)) <= LONGEST else f"{len(unknown)} of them"
        return f"{single} Nothing can be decided about {which}, because no p-value can be small enough."

    def _record(self, number: int, test: TestResult) -> dict[str, Any]:
        return {self._what[0]: self.labels[number], **super()._record(number, test)}

    def _title(self) -> str:
        first = self.tests[0]
        return f"Calibration {self._within[0]} {self._number} ({first._full_name}, {first.lens_name})"

    @property
    def size_sentences(self) -> list[str]:
        """Nothing: the table has the numbers of each part."""
        return []

    def means(self) -> list[dict[str, Any]]:
        """Return what stands in the printed table, the parts in their order.

        Returns
        -------
        list of dict
            ``subgroup`` or ``label``, ``n_samples``, ``predicted`` and ``observed`` (averages; of several classes
            confidence and accuracy), ``average`` (observed / expected, of several classes their difference, with its
            interval), ``pvalue_adjusted``, ``rejected`` and ``direction``.
        """
        rows = zip(self.labels, self._adjusted, self.rejected_tests.tolist(), self.directions, strict=True)
        return [
            {
                self._what[0]: name,
                "n_samples": test.n_samples,
                **dict(zip(("predicted", "observed"), test._about.averages, strict=True)),
                "average": self._average(number),
                "pvalue_adjusted": test.pvalue,
                "rejected": wrong,
                "direction": direction,
            }
            for number, (name, test, wrong, direction) in enumerate(rows)
        ]

    def _average(self, number: int) -> Number:
        """Return the number that compares the averages of a part, with its interval."""
        test = self._adjusted[number]
        return test._about.average(test)

    @cached_property
    def ranking(self) -> list[int]:
        """The parts, that with the smallest adjusted p-value first, then by the difference of averages."""
        rows = self.means()
        key = [(row["pvalue_adjusted"], -abs(row["observed"] - row["predicted"])) for row in rows]
        return sorted(range(len(rows)), key=key.__getitem__)

    @property
    def drawn_parts(self) -> list[int]:
        """The parts in a picture."""
        return list(range(len(self.tests)))

    @property
    def words(self) -> tuple[str, str]:
        """What the two averages of a part are called."""
        subject = self.tests[0]._about.subject
        return subject.average, subject.observed

    def table(self) -> Table:
        """Return the numbers of the parts, that with the smallest p-value first, then by the difference."""
        rows = self.means()
        rows = [rows[number] for number in self.ranking]
        shown = [
            row
            | {name: f"{100 * row[name]:.1f} %" for name in ("predicted", "observed")}
            | {"p": align_pvalue(row["pvalue_adjusted"]), "wrong": row["direction"] or "wrong" * row["rejected"]}
            for row in rows[:MOST_ROWS]
        ]
        (average, observed), name = self.words, rows[0]["average"].name
        columns = {self._what[0]: f"{{{self._what[0]}}}", "n": "{n_samples:,}"}
        columns |= {average: "{predicted}", observed: "{observed}"}
        columns |= {name: "{average.shown}", **self._more_columns, self._adjusted_name: "{p}", "": "{wrong}"}
        return Table.of(shown, columns, left=("",))

    def how_to_read(self) -> list[str]:
        """Say what the averages and intervals of the table are."""
        name = self.tests[0]._about.average(self.tests[0]).name
        one = self._what[0]
        return [
            f"The tests look at all predictions of a {one}, not at averages alone. In brackets: what is compatible "
            f"with the data, with {percent(1 - self.alpha)} confidence for each {one} by itself ({name})."
        ]

    def _tables(self) -> list[Table]:
        return [self.table()]

    def _averages(self) -> list[str]:
        return self.how_to_read()

    def _tables_by_fold(self) -> list[Table]:
        return [self.table(), self._table_of_folds()]

    def _table_of_folds(self) -> Table:
        parts = zip(self.fold_names, self.fold_sizes, self.folds, strict=True)
        return Table(
            ("fold", "n", "global p"), [(name, f"{n:,}", align_pvalue(table.pvalue)) for name, n, table in parts]
        )

    def _where_parts_are(self) -> str:
        return ""
