"""Results of several tests on the same draws: each test, adjusted p-values and a global one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from caltest.predictions._arrays import Booleans, Floats
from caltest.predictions._lenses import Canonical, ClassWise
from caltest.resampling import correct_pvalues
from caltest.results import Note, Result, TestResult
from caltest.results._component_result import components_table
from caltest.results._decision import (
    FEWEST_EXPECTED,
    Decided,
    DecisionWord,
    cannot_decide,
    decide,
    equate_pvalue,
    rejects,
)
from caltest.results._description import Description, Table, counted, join, sized
from caltest.results._note import PAGE
from caltest.results._picture import Picture
from caltest.results._test_result import cannot_decide_by_fold, fold_record, in_folds, rejecting, short_direction
from caltest.results._verdict import Verdict

if TYPE_CHECKING:
    import pandas as pd

_NO_DIRECTION: dict[str, Any] = {"findings": [], "direction": None}
_SIZE = {"l2 error (95 % interval)": "{l2_error:.4f} ({l2_low:.4f} to {l2_high:.4f})"}
MOST_ROWS = 25  # of a printed table
LONGEST = 60  # characters of the rejected tests in a conclusion


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CalibrationTable(Decided, Result):
    """Result of `calibration_table`; iterates over its tests.

    Attributes
    ----------
    tests : tuple of TestResult
        One test for each lens, each with its own p-value, which is combined over the folds if there are any.
    pvalue : float
        Global p-value of "calibrated through every lens": exact min-p over the tests, on the same draws. With folds,
        their number times the smallest of their global p-values, at most 1 (Bonferroni).
    alpha : float
        Level of the conclusion.
    smallest_possible_pvalue : float
        The global p-value of the most extreme data. If it is above ``alpha``, the data cannot decide.
    decision : {"rejected", "not rejected", "undecidable"}
        The decision by the global p-value.
    correction : str
        How the p-values are adjusted for their number.
    notes : tuple of Note
        Cautions about the table; `all_notes` holds those of the tests too.
    folds : tuple of CalibrationTable
        The table of each fold; empty without folds.
    fold_names : tuple of str
        The id of each fold.
    fold_sizes : tuple of int
        Number of observations of each fold.

    See Also
    --------
    caltest.calibration_table : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(3).draw(300, rng=0)
    >>> table = caltest.calibration_table(y_true, y_prob, n_resamples=499, rng=0)
    >>> len(table.tests), table.decision
    (5, 'not rejected')
    """

    tests: tuple[TestResult, ...]
    pvalue: float
    alpha: float = 0.05
    smallest_possible_pvalue: float = 0.0
    correction: str = "holm"
    notes: tuple[Note, ...] = ()
    folds: tuple[Self, ...] = ()
    fold_names: tuple[str, ...] = ()
    fold_sizes: tuple[int, ...] = ()

    plot = Picture("plot_class_histogram", known=lambda table: len(table.of_classes) > 1)
    _derived: ClassVar[tuple[str, ...]] = ("pvalue_adjusted", "decision", "decisions", "conclusion", "all_notes")
    _left_out: ClassVar[frozenset[str]] = frozenset({"folds", "fold_names", "fold_sizes"})
    _kind: ClassVar[str] = "Calibration table"
    _of_one_statistic: ClassVar[bool] = True
    _what: ClassVar[tuple[str, str]] = ("lens", "lenses")
    _where: ClassVar[str] = ""
    """Which observations belong to the groups of a test."""
    is_of_parts: ClassVar[bool] = False
    """Whether each test is about a part of the observations."""

    def __getstate__(self) -> dict[str, Any]:
        """A pickle has the verdict; its tests have no detectable errors that have not been asked for, to be fast."""
        content = {**vars(self), "verdict": self.verdict}
        for computed in ("_whole", "_adjusted", "ranking"):
            content.pop(computed, None)
        return content | {"tests": [(type(test), test.without_observations()) for test in self.tests]}

    def __setstate__(self, content: dict[str, Any]) -> None:
        tests = [object.__new__(kind) for kind, _ in content["tests"]]
        for test, (_, known) in zip(tests, content["tests"], strict=True):
            vars(test).update(known)
        vars(self).update(content | {"tests": tuple(tests)})

    def __iter__(self) -> Iterator[TestResult]:
        return iter(self.tests)

    def __len__(self) -> int:
        return len(self.tests)

    def __getitem__(self, number: int) -> TestResult:
        return self.tests[number]

    def with_tests(self, tests: Sequence[TestResult], labels: Sequence[str], **changes: Any) -> Self:
        """Return the table with other tests, whose labels are given; further fields are replaced."""
        return replace(self, tests=tuple(tests), **changes)

    @cached_property
    def pvalue_adjusted(self) -> Floats:
        """P-values adjusted for the number of tests, ``(n_tests,)``."""
        return correct_pvalues([test.pvalue for test in self.tests], self.correction)

    @property
    def of_classes(self) -> tuple[int, ...]:
        """Places of the tests of single classes by one statistic whose null distributions were drawn."""
        found = tuple(
            place
            for place, test in enumerate(self.tests)
            if isinstance(test.lens, ClassWise) and test.null_distribution is not None and not self.is_of_parts
        )
        return found if len({self.tests[place].test_statistic for place in found}) == 1 else ()

    @property
    def labels(self) -> tuple[str, ...]:
        """What distinguishes the tests, in words."""
        return tuple(test.lens_name for test in self.tests)

    @property
    def _row_names(self) -> tuple[str, ...]:
        """The names of the tests in the table."""
        return tuple(test.lens_short_name or test.lens_name for test in self.tests)

    @property
    def n_samples(self) -> int:
        """Number of observations of the largest test, with folds of all of them."""
        return sum(self.fold_sizes) or max(test.n_samples for test in self.tests)

    @property
    def rejected_tests(self) -> Booleans:
        """Whether each test rejects after the correction, ``(n_tests,)``."""
        return rejects(self.pvalue_adjusted, self.alpha)

    @cached_property
    def directions(self) -> tuple[str | None, ...]:
        """Direction of each test that rejects after the correction, such as "over-confident"; None of the others."""
        return tuple(
            test.direction if rejected else None for test, rejected in zip(self.tests, self.rejected_tests, strict=True)
        )

    @property
    def decision(self) -> DecisionWord:
        """The decision by the global p-value.

        It is "undecidable" if none as small as ``alpha`` was possible, or too few events were to be expected.
        """
        n_expected = (test.n_expected for test in (self.tests if self._whole is None else [self._whole]))
        return decide(self.pvalue, self.alpha, self.smallest_possible_pvalue, max(n_expected))

    @cached_property
    def decisions(self) -> tuple[DecisionWord, ...]:
        """The decision of each test after the correction.

        A test is "undecidable" if it is not rejected, and would not be with its smallest possible p-value either.
        """
        return tuple(
            decide(adjusted, self.alpha, self._smallest_adjusted(number))
            for number, adjusted in enumerate(self.pvalue_adjusted)
        )

    def _smallest_adjusted(self, number: int) -> float:
        """Return the adjusted p-value of a test if its own were the smallest possible; 0 if it can reject anyway."""
        pvalues = np.array([test.pvalue for test in self.tests])
        pvalues[number] = self.tests[number].smallest_possible_pvalue
        if rejects(len(pvalues) * pvalues[number], self.alpha):
            return 0.0
        return float(correct_pvalues(pvalues, self.correction)[number])

    @property
    def conclusion(self) -> str:
        """What is wrong, the decision, and how many tests reject."""
        return self.tests[0].conclusion if self._is_single else self._verdict().conclusion

    @cached_property
    def verdict(self) -> Verdict:
        """What is wrong, the decision by the global p-value, how large the error is, and what to do."""
        if self._is_single:
            return self.tests[0].verdict
        numbers = {} if self._whole is None else self._whole._about.numbers_of(self._whole)
        return replace(self._verdict(), cautions=self.all_notes, **numbers)

    def _verdict(self) -> Verdict:
        """Return the verdict without what is not needed for its sentences and may take time."""
        p = equate_pvalue(self.pvalue, name="global p")
        own: dict[str, Any] = {"p": p, "least": "", "undecidable": self._undecidable()}
        own["details"] = (*self._rejecting_folds(), self._count())
        if self._whole is not None:
            return replace(self._whole._verdict(), **own)
        spoken = self.tests[self._spoken]
        return replace(
            spoken._verdict(),
            pvalue=self.pvalue,
            smallest_possible_pvalue=self.smallest_possible_pvalue,
            subject=None,
            impossible=None,
            findings=spoken.findings if self.rejected_tests[self._spoken] else (),
            parts=spoken._verdict().parts if self.rejected_tests[self._spoken] else (),
            **own,
        )

    def _rejecting_folds(self) -> list[str]:
        """Say which folds reject by their global p-values."""
        if not self.folds or not self.rejected:
            return []
        wrong = rejects(correct_pvalues([table.pvalue for table in self.folds]), self.alpha)
        return [rejecting(list(compress(self.fold_names, wrong)), len(self.folds))]

    @cached_property
    def _whole(self) -> TestResult | None:
        """The test of the whole prediction, with the global p-value; None without one."""
        whole = next((test for test in self.tests if isinstance(test.lens, Canonical)), None)
        if whole is None or self.is_of_parts:
            return None
        about = whole._about if whole._about is None else whole._about.among(whole, self.tests)
        smallest = self.smallest_possible_pvalue
        return replace(whole, pvalue=self.pvalue, smallest_possible_pvalue=smallest, _evidence=about)

    @property
    def _is_single(self) -> bool:
        """Whether the only test says everything."""
        return len(self.tests) == 1

    @property
    def size_sentences(self) -> list[str]:
        """How large the miscalibration is, of a test that is named; with folds it is that of several models."""
        return [] if self.folds else self._sizes()

    def _undecidable(self) -> str:
        """Say that no global p-value could have rejected, or that there is too little time; empty otherwise."""
        if rejects(self.smallest_possible_pvalue, self.alpha):
            return self._too_little_time()
        p = equate_pvalue(self.pvalue, name="global p")
        if self.folds:
            numbers = f"{p}, {counted(self.n_samples)}"
            smallest, own = self.smallest_possible_pvalue, self.tests[0].folds
            return cannot_decide_by_fold(own, smallest, self.alpha, numbers=numbers, name="global p-value")
        return cannot_decide(
            self.smallest_possible_pvalue,
            self.alpha,
            numbers=f"{p}, {self._size}",
            n_groups=max((test.n_groups or 0 for test in self.tests), default=0) or None,
            n_resamples=max(test.n_resamples for test in self.tests),
            name="global p-value",
            where=self._where,
        )

    def _too_little_time(self) -> str:
        """Say that predictions were made within too little time for any decision; empty if there is enough."""
        known = [test._about for test in self.tests]
        if self.folds or any(about is None or about.n_windows >= FEWEST_EXPECTED for about in known):
            return ""
        p = equate_pvalue(self.pvalue, name="global p")
        return f"It cannot be told whether these predictions are right: {known[0].too_few} ({p})."

    @cached_property
    def _spoken(self) -> int:
        """The test whose numbers are given in sentences: the clearest one that rejects, else the first."""
        return int(np.argmin(self.pvalue_adjusted)) if self.rejected_tests.any() else 0

    def _through(self, number: int) -> str:
        """Name a test at the beginning of a sentence."""
        return f'Through the lens "{self.tests[number].lens_name}"'

    @property
    def all_notes(self) -> tuple[Note, ...]:
        """Cautions about the table and about single tests, each once."""
        found: dict[Note, list[str]] = {}
        for label, test in zip(self.labels, self.tests, strict=True):
            for note in test.notes:
                found.setdefault(note, []).append(label)
        about = [
            note if len(labels) == len(self.tests) or note.about == labels[0] else _about(labels, note)
            for note, labels in found.items()
        ]
        return (*self.notes, *about)

    def to_dict(self) -> dict[str, Any]:
        """Return tests, adjusted p-values, global p-value and conclusion as plain Python objects, ready for JSON.

        Returns
        -------
        dict
            With a list ``tests``, one entry for each test, which holds ``label`` and ``pvalue_adjusted`` too, and a
            direction only if it rejects after the correction; with folds also ``fold_pvalues``, the global p-value of
            each.
        """
        content = super().to_dict()
        adjusted, labels = content.pop("pvalue_adjusted"), self.labels
        content["tests"] = [
            {"label": label, "pvalue_adjusted": p, **test} | ({} if rejected else _NO_DIRECTION)
            for label, p, test, rejected in zip(labels, adjusted, content["tests"], self.rejected_tests, strict=True)
        ]
        content["notes"] = content.pop("all_notes")
        if not self.folds:
            return content
        folds = zip(self.fold_names, self.folds, strict=True)
        pvalues = [{"fold": name, "pvalue": table.pvalue} for name, table in folds]
        return content | {"fold_names": [*self.fold_names], "sizes": [*self.fold_sizes], "fold_pvalues": pvalues}

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each test as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            Lens, statistic with its value and noise floor, p-value, adjusted p-value, direction (of those that reject
            after the correction) and l2 error. With folds, instead of statistic and l2 error, the smallest p-value of a
            fold with this fold; see `folds_frame`.
        """
        import pandas as pd

        return pd.DataFrame([self._record(number, test) for number, test in enumerate(self.tests)])

    def _record(self, number: int, test: TestResult) -> dict[str, Any]:
        """Return the numbers of a test, with folds those of all of them and of the one with the smallest p-value."""
        if self.folds:
            name, fold = min(zip(test.fold_names, test.folds, strict=True), key=lambda pair: pair[1].pvalue)
            return {
                self._what[0]: self.labels[number],
                "n_samples": test.n_samples,
                "pvalue": test.pvalue,
                "pvalue_adjusted": self.pvalue_adjusted[number],
                "smallest_pvalue": fold.pvalue,
                "smallest_fold": name,
                "direction": self.directions[number],
            }
        size = test.l2_error
        low, high = (math.nan, math.nan) if size is None else size.root_interval
        return {
            "lens": test.lens_name,
            "test_statistic": str(test.test_statistic),
            "n_samples": test.n_samples,
            "n_resamples": test.n_resamples,
            "statistic": test.statistic,
            "noise_floor": test.noise_floor,
            "pvalue": test.pvalue,
            "pvalue_adjusted": self.pvalue_adjusted[number],
            "direction": self.directions[number],
            "l2_error": math.nan if size is None else size.root,
            "l2_low": low,
            "l2_high": high,
        }

    @property
    def _size(self) -> str:
        """Number of observations of the largest test, in words."""
        return max(self.tests, key=lambda test: test.n_samples)._size

    @property
    def _adjusted_name(self) -> str:
        return f"p ({self.correction.title()})"

    @property
    def _after(self) -> str:
        return f"after {self.correction.title()}'s correction"

    @property
    def _number(self) -> str:
        """How many tests there are, in words: "12 lenses"."""
        one, several = self._what
        return f"{len(self.tests)} {one if len(self.tests) == 1 else several}"

    def _count(self) -> str:
        """Say how many single tests reject, and which."""
        found = [label for label, rejects in zip(self.labels, self.rejected_tests, strict=True) if rejects]
        total, after = len(self.tests), self._after
        if not found and set(self.decisions) == {"undecidable"}:
            return f"None of the {total} single tests can reject {after}."
        if not found:
            return f"None of the {total} single tests rejects {after}."
        if len(found) == total:
            return f"{'Both' if total == 2 else f'All {total}'} single tests reject {after}."
        which = f": {named}" if len(named := join(found)) <= LONGEST else ""
        return f"{len(found)} of the {total} single tests {'rejects' if len(found) == 1 else 'reject'} {after}{which}."

    def _describe(self) -> Description:
        return self.described(self.verdict)

    def described(self, verdict: Verdict) -> Description:
        """Return what is shown, with a verdict that may name the file."""
        title, tables, remarks = self._title(), self._tables, self._remarks
        if self.folds:
            title, tables, remarks = f"Calibration by fold ({self._about})", self._tables_by_fold, self._remarks_by_fold
        more: dict[str, Any] = {"tables": tables(), "remarks": remarks(), "notes": self.all_notes}
        return verdict.described(title, [verdict.conclusion, *self.size_sentences], **more)

    def _title(self) -> str:
        return f"{self._kind} ({self._about})"

    @property
    def _about(self) -> str:
        """The statistic, how many tests there are, and on how many observations."""
        first, size = self.tests[0], self._size
        if self.folds:
            n_groups = first.n_groups if first.n_samples == self.n_samples else None  # of all observations
            size = in_folds(sized(self.n_samples, n_groups, weighted=first.weighted), len(self.folds))
        statistic = f"{(first.folds or (first,))[0]._full_name}, " if self._of_one_statistic else ""
        return f"{statistic}{self._number}, {size}"

    def _sizes(self) -> list[str]:
        """Say how large the miscalibration is, of a test that is named."""
        test = self.tests[self._spoken]
        if len(self.tests) == 1:
            return test._sizes()
        through = self._through(self._spoken)
        size = [] if test.l2_error is None else [f"{through} {test.l2_error.clause}"]
        usual = test._usual_size(self._name_of_size(test))
        return [*size, *(f"{'Through the same lens' if size else through}: {words}" for words in usual)]

    def _name_of_size(self, test: TestResult) -> str:
        """Return the name of the statistic whose value is given in a sentence."""
        name: str = test.components[0].test_statistic.name
        return name

    @cached_property
    def _shown(self) -> list[int]:
        """The tests that are printed: all, or the first and those of the smallest p-values."""
        if len(self.tests) <= MOST_ROWS:
            return list(range(len(self.tests)))
        smallest = np.argsort([test.pvalue for test in self.tests[1:]], kind="stable")[: MOST_ROWS - 1]
        return [0, *sorted(1 + int(i) for i in smallest)]

    def _table_of_tests(self, shown: Sequence[int], **columns: str) -> Table:
        """Return the table of some tests: their names, columns of their numbers, and their directions."""
        rows = [
            self._record(i, self.tests[i]) | {"row": self._row_names[i], "towards": short_direction(self.directions[i])}
            for i in shown
        ]
        return Table.of(rows, {self._what[0]: "{row}", **columns, "direction": "{towards}"}, left=("direction",))

    def _tables(self) -> list[Table]:
        parts = self.tests[self._spoken].components
        tests = self._table_of_tests(self._shown, **self._numbers_shown)
        return [tests, *([components_table(parts)] if len(parts) > 1 else [])]

    @property
    def _numbers_shown(self) -> dict[str, str]:
        """The numbers that the table of tests shows."""
        size = _SIZE if all(test.l2_error is not None for test in self.tests) else {}
        return {**size, "p-value": "{pvalue:p}", self._adjusted_name: "{pvalue_adjusted:p}"}

    def _remarks(self) -> list[str]:
        return [*self._hidden(), *self._combined(), *self._averages(), *self._sources(), *self._conditions()]

    def _hidden(self) -> list[str]:
        """Say which tests are not printed."""
        if len(self._shown) == len(self.tests):
            return []
        _, several = self._what
        return [
            f"The table shows {len(self._shown)} of {len(self.tests)} {several}, those with the smallest p-values. "
            "`to_frame()` and `--json` have all."
        ]

    def _combined(self) -> list[str]:
        """Say which statistics a p-value combines."""
        spoken = self.tests[self._spoken]
        if len(spoken.components) == 1:
            return []
        named = [dict.fromkeys(part.test_statistic.name for part in test.components) for test in self.tests]
        parts = [name for name in named[self._spoken] if all(name in names for names in named)]
        added = dict.fromkeys(name for names in named for name in names if name not in parts)
        of_two = f", that of two outcomes also {join(added)}" if added else ""
        return [f"Each p-value combines {join(parts)}{of_two}{self._where_parts_are()}."]

    def _where_parts_are(self) -> str:
        """Say where a table shows the statistics that a p-value combines."""
        return f'; the second table shows them for the lens "{self.tests[self._spoken].lens_name}"'

    def _averages(self) -> list[str]:
        """Explain why a test rejects although the estimated l2 error is 0."""
        rejected = (test for test, rejects in zip(self.tests, self.rejected_tests, strict=True) if rejects)
        if all(test.l2_error is None or test.l2_error.root > 0 for test in rejected):
            return []
        return [
            "The l2 error compares averages within cells (bins), so that its estimate can be 0 where a test rejects: "
            "the tests detect deviations within cells too."
        ]

    def _sources(self) -> list[str]:
        decides = (
            "global p: the share of draws in which the smallest p-value of all tests is as small as here. It decides."
        )
        return [*([decides] if len(self.tests) > 1 else []), f"Null distribution: {shared_origin(self.tests)}."]

    def _conditions(self) -> list[str]:
        return [f"Valid if {note.text} [{note.code}: {PAGE}]" for note in self.tests[0].conditions]

    def folds_frame(self) -> pd.DataFrame:
        """Return one row for each test and fold as a pandas frame; no row without folds.

        Returns
        -------
        pandas.DataFrame
            Lens, statistic or subgroup, fold, and the numbers of the test of this fold.
        """
        import pandas as pd

        return pd.DataFrame(
            [
                {self._what[0]: label, **fold_record(name, fold)}
                for label, test in zip(self.labels, self.tests, strict=True)
                for name, fold in zip(test.fold_names, test.folds, strict=True)
            ]
        )

    def _tables_by_fold(self) -> list[Table]:
        columns = {"combined p": "{pvalue:p}", self._adjusted_name: "{pvalue_adjusted:p}"}
        columns |= {"smallest p": "{smallest_pvalue:p}", "in fold": "{smallest_fold}"}
        return [self._table_of_tests(range(len(self.tests)), **columns), self._table_of_folds()]

    def _table_of_folds(self) -> Table:
        """Return the table of the folds, with the statistic of the first test."""
        folds = [
            {"size": size, "global": table.pvalue, **fold_record(name, table.tests[0])}
            for name, size, table in zip(self.fold_names, self.fold_sizes, self.folds, strict=True)
        ]
        statistic = {f"statistic, {self.labels[0]}": "{statistic:.4g}"}
        return Table.of(folds, {"fold": "{fold}", "n": "{size:,}", **statistic, **_SIZE, "global p": "{global:p}"})

    def _remarks_by_fold(self) -> list[str]:
        first = self.tests[0]
        return [
            f"P-values: {first.origin}. The global p of a fold is the share of draws in which the smallest p-value of "
            "its tests is as small as here; the smallest one, times the number of folds, decides.",
            f"Null distribution in a fold: {first.folds[0].origin}.",
            *self._conditions(),
        ]


def shared_origin(tests: Sequence[TestResult]) -> str:
    """Return where the null distributions come from: that of the most draws, and the fewest draws if they differ."""
    drawn = [test for test in tests if test.n_resamples]
    if not drawn:
        return tests[0].origin
    most, fewest = max(drawn, key=lambda test: test.n_resamples), min(test.n_resamples for test in drawn)
    return most.origin if fewest == most.n_resamples else f"{most.origin}; {fewest:,} draws or more for each test"


def _about(labels: Sequence[str], note: Note) -> Note:
    return Note(note.code, f"{', '.join(labels)}: {note.text}")
