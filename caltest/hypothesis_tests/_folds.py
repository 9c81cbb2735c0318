"""Tests of cross-validated predictions: each fold is tested separately, and the p-values are combined."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from inspect import unwrap
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.hypothesis_tests._calibration_table_result import CalibrationTable
from caltest.hypothesis_tests._diagnostics import enough_draws, impossible_note, warn_before
from caltest.hypothesis_tests._fold_table import FoldTable
from caltest.hypothesis_tests._fold_tests import FoldTests
from caltest.predictions.inputs._parts import SMALL, Folds, part_of, validate_folds
from caltest.predictions.inputs._validation import SeedLike, validate_design, validate_given_problem, validate_rng
from caltest.resampling.engine._pvalues import CombinedPValues
from caltest.results import Note, TestResult
from caltest.results._decision import rejects
from caltest.results._description import join, percent
from caltest.results._progress import Progress, reporting


def fold_tests(test: Callable[..., TestResult], *arguments: Any, **options: Any) -> FoldTests:
    """Return the results of a test of each fold, and their combined p-value; arguments as in `by_fold`."""
    return combine_tests(*by_fold(test, *arguments, **options))


def fold_table(test: Callable[..., CalibrationTable], *arguments: Any, **options: Any) -> FoldTable:
    """Return the results of several tests of each fold, and their combined p-values; arguments as in `by_fold`."""
    return combine_tables(*by_fold(test, *arguments, **options))


def by_fold(
    test: Callable[..., Any],
    y_true: ArrayLike,
    y_prob: ArrayLike,
    folds: Any,
    *,
    classes: Sequence[Any] | None,
    rng: SeedLike,
    progress: bool | Progress,
    each: Mapping[str, Any] | None = None,
    **options: Any,
) -> tuple[Folds, list[Any]]:
    """Return the folds, and what a public function of labels and predictions returns for each.

    ``each`` holds further arguments with an entry for each observation, such as subgroups and groups, or None.
    """
    prob, outcome = validate_given_problem(y_true, y_prob, classes)
    parts = validate_folds(folds, len(prob))
    arguments = labels_of(outcome, classes), prob
    return parts, each_fold(test, parts, arguments, each, rng=rng, progress=progress, classes=classes, **options)


def each_fold(
    test: Callable[..., Any],
    folds: Folds,
    arguments: Sequence[Any],
    each: Mapping[str, Any] | None = None,
    *,
    rng: SeedLike,
    progress: bool | Progress,
    tests_in: Callable[[Any], Sequence[TestResult]] | None = None,
    **options: Any,
) -> list[Any]:
    """Return what a public function returns for each fold; every fold has another stream of random numbers.

    Arguments are arrays that were read for all folds: a label that a fold lacks is no reason for a note. After the
    first fold, a warning says if the draws are too few for the tests of all folds, which ``tests_in`` returns.
    """
    test = unwrap(test)
    each = _by_observation(folds, dict(each or {}))
    streams, found = validate_rng(rng).spawn(len(folds)), []
    with reporting(progress, f"testing {len(folds)} folds") as report:
        for number, ((name, rows), stream) in enumerate(zip(folds, streams, strict=True)):

            def share(done: float, total: float, number: int = number) -> None:
                report(number + done / max(total, 1), len(folds))

            given = [part_of(argument, rows) for argument in arguments]
            named = {key: part_of(value, rows) for key, value in each.items()}
            try:
                found.append(test(*given, **named, **options, rng=stream, progress=share))
            except ValueError as error:
                msg = f"fold {name}: {error}"
                raise ValueError(msg) from None
            if number == 0:
                tests = (tests_in or _tests_in)(found[0])
                warn_before(few_draws_of_folds(tests, len(folds) * len(tests)))
            report(number + 1, len(folds))
    return found


def _tests_in(result: Any) -> Sequence[TestResult]:
    if isinstance(result, CalibrationTable):
        return result.tests
    return (result,) if isinstance(result, TestResult) else ()


def _by_observation(folds: Folds, each: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments that are given; refuse weights and groups of another length, and groups in several folds."""
    fold = np.empty(sum(len(rows) for rows in folds.members), dtype=np.int64)
    for number, rows in enumerate(folds.members):
        fold[rows] = number
    design = validate_design(each.pop("sample_weight", None), each.pop("groups", None), len(fold))
    if design["group"] is not None:
        refuse_divided_groups(design["group"], fold)
    given = {**each, "sample_weight": design["weight"], "groups": design["group"]}
    return {name: values for name, values in given.items() if values is not None}


def refuse_divided_groups(group: NDArray[np.int64], fold: NDArray[np.int64]) -> None:
    """Raise ValueError if observations of a group lie in several folds."""
    pairs = np.unique(np.stack([group, fold]), axis=1)
    if len(pairs[0]) > len(np.unique(pairs[0])):
        msg = (
            "`groups` must each lie in one fold, got a group in several: its other observations were used to fit "
            "the model that is tested on it. Use folds of whole groups, such as those of sklearn's GroupKFold."
        )
        raise ValueError(msg)


def combine_tests(folds: Folds, tests: Sequence[TestResult], *, in_table: bool = False) -> FoldTests:
    """Return the tests of all folds as one result; a table has the notes about all its tests itself."""
    own = [_of_all(test, rows) for (_, rows), test in zip(folds, tests, strict=True)]
    first, smallest = own[0], min(own, key=lambda test: test.pvalue)
    combined = CombinedPValues(len(own))
    impossible = np.sort(np.concatenate([test.impossible_samples for test in own]))
    size = -math.log10(smallest.pvalue)
    return FoldTests(
        title=f"{first.title} by fold",
        test_statistic=first.test_statistic,
        statistic=size,
        pvalue=combined.pvalue([test.pvalue for test in own]),
        smallest_possible_pvalue=combined.pvalue([test.smallest_possible_pvalue for test in own]),
        null=combined,
        lens=first.lens,
        lens_name=first.lens_name,
        n_samples=sum(test.n_samples for test in own),
        n_outcomes=first.n_outcomes,
        n_groups=None if first.n_groups is None else sum(test.n_groups or 0 for test in own),
        weighted=first.weighted,
        components=tuple(own),
        method=smallest.method,
        numerical_error=min(len(own) * smallest.numerical_error, 1.0),
        hypothesis=f"{first.hypothesis}, for the model of each fold",
        of_calibration=first.of_calibration,
        origin=combined.origin,
        conditions=tuple(of_folds(note) for note in first.conditions),
        alpha=first.alpha,
        impossible_samples=impossible,
        notes=(
            *([] if in_table else small_notes(folds.names, [test.n_samples for test in own])),
            *([] if in_table else few_draws_of_folds(own, len(own))),
            *impossible_note(impossible),
            *fold_notes(folds.names, own),
        ),
        fold_names=folds.names,
    )


def combine_tables(folds: Folds, tables: Sequence[CalibrationTable]) -> FoldTable:
    """Return the tables of all folds as one result; a test that some folds lack is combined over the others."""
    labels = list(dict.fromkeys(label for table in tables for label in table.labels))
    tests = []
    for label in labels:
        held = [i for i, table in enumerate(tables) if label in table.labels]
        part = Folds(tuple(folds.names[i] for i in held), tuple(folds.members[i] for i in held))
        found = [tables[i].tests[tables[i].labels.index(label)] for i in held]
        tests.append(combine_tests(part, found, in_table=True))
    first = tables[0]
    whole = [len(rows) for rows in folds.members]
    sizes = whole if first._what[0] == "subgroup" else [max(test.n_samples for test in table) for table in tables]
    return FoldTable(
        tests=tuple(tests),
        pvalue=CombinedPValues(len(folds)).pvalue([table.pvalue for table in tables]),
        smallest_possible_pvalue=CombinedPValues(len(folds)).pvalue(
            [table.smallest_possible_pvalue for table in tables]
        ),
        alpha=first.alpha,
        correction=first.correction,
        notes=(
            *small_notes(folds.names, sizes),
            *few_draws_of_folds([test for table in tables for test in table], len(folds) * len(labels)),
            *dict.fromkeys(note for table in tables for note in table.notes if note.code != _TOO_FEW_DRAWS),
        ),
        tables=tuple(tables),
        fold_names=folds.names,
        sizes=tuple(sizes),
        names=tuple(labels),
        what=first._what,
    )


_TOO_FEW_DRAWS, _IMPOSSIBLE = "C205", "C201"
_INDEPENDENT = "C101"


def of_folds(note: Note) -> Note:
    """Return a condition of the p-value of a fold as that of all folds."""
    if note.code != _INDEPENDENT:
        return note
    independent = note.text.partition(" and ")[0]
    return Note(note.code, f"{independent} and no model was made with the labels of the fold that it is tested on.")


def small_notes(names: Sequence[str], sizes: Sequence[int]) -> list[Note]:
    """Return a note if folds have few observations."""
    small = [name for name, size in zip(names, sizes, strict=True) if size < SMALL]
    if not small:
        return []
    which = f"Fold {small[0]} has" if len(small) == 1 else f"{len(small)} of {len(names)} folds have"
    text = f"{which} fewer than {SMALL} observations. Their tests are valid but detect little. Use fewer, larger folds."
    return [Note("C207", text)]


def few_draws_of_folds(tests: Sequence[TestResult], number: int) -> list[Note]:
    """Return a note if ``number`` tests like these, adjusted together, cannot reject with their draws."""
    drawn = [test.n_resamples for test in tests]
    if not drawn or not all(drawn) or rejects(number / (max(drawn) + 1), alpha := tests[0].alpha):
        return []
    text = (
        f"With {max(drawn)} draws for each of {number} tests no adjusted p-value can be below "
        f"{min(number / (max(drawn) + 1), 1):.2g}, so that none can reject at the {percent(alpha)} level. Take "
        f"{enough_draws(number, alpha)} draws or more."
    )
    return [Note(_TOO_FEW_DRAWS, text)]


def fold_notes(names: Sequence[str], results: Sequence[Any]) -> list[Note]:
    """Return the notes of the folds, each once, with the folds that they are about where these are not all."""
    found: dict[Note, list[str]] = {}
    for name, result in zip(names, results, strict=True):
        for note in result.notes:
            if note.code not in {_IMPOSSIBLE, _TOO_FEW_DRAWS}:
                found.setdefault(note, []).append(name)
    return [
        note
        if len(about) == len(names)
        else Note(note.code, f"Fold{'s' if len(about) > 1 else ''} {join(about)}: {note.text}")
        for note, about in found.items()
    ]


def _of_all(test: TestResult, rows: NDArray[np.int64]) -> TestResult:
    """Return a test of a fold that names observations by their number among those of all folds."""
    impossible = rows[test.impossible_samples]
    others = tuple(note for note in test.notes if note.code != _IMPOSSIBLE)
    return replace(test, impossible_samples=impossible, notes=(*others, *impossible_note(impossible)))


def labels_of(outcome: NDArray[np.int64], classes: Sequence[Any] | None) -> NDArray[Any]:
    """Return labels as the functions take them: class indices, or the names of the classes."""
    if classes is None:
        return outcome
    names = np.empty(len(classes), dtype=object)
    names[:] = list(classes)
    return names[outcome]
