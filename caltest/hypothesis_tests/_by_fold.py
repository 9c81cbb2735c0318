"""Tests of cross-validated predictions: each fold is tested separately, and the p-values are combined."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from inspect import signature, unwrap
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.hypothesis_tests._calibration_table_result import CalibrationTable
from caltest.hypothesis_tests._diagnostics import few_draws, impossible_note, warn_before
from caltest.hypothesis_tests._evidence import Evidence
from caltest.predictions._arrays import Integers
from caltest.predictions._lenses import Canonical
from caltest.predictions._sample import induce
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._models import naming
from caltest.predictions.inputs._parts import SMALL, Folds, part_of, validate_folds
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import (
    SeedLike,
    design_of,
    validate_design,
    validate_given_problem,
    validate_rng,
)
from caltest.resampling import correct_pvalues
from caltest.resampling.engine._pvalues import CombinedPValues
from caltest.resampling.engine._stopping import EXCEEDANCES
from caltest.results import Note, TestResult
from caltest.results._description import join, percent
from caltest.results._progress import Progress, reporting

_TOO_FEW_DRAWS, _IMPOSSIBLE, _INDEPENDENT, _IN_TIME = "C205", "C201", "C101", "C105"

Tested = TypeVar("Tested", bound=TestResult | CalibrationTable)


@reads_arguments
def by_fold(
    test: Callable[..., Tested],
    y_true: ArrayLike,
    y_prob: ArrayLike,
    folds: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    subgroup: Any = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    time: Any = None,
    lead: Any = None,
    rng: SeedLike = None,
    progress: bool | Progress | None = None,
    input: str = "probabilities",  # noqa: A002
    **options: Any,
) -> Tested:
    r"""Test cross-validated predictions fold by fold, by any test of calibration.

    The predictions of each fold are those of another model, which is fixed given the labels of the other folds. So each
    fold is tested separately, and the p-values of K folds are combined to :math:`\min(1, K \min_k p_k)`, which is valid
    under any dependence between the folds. Functions with an argument ``folds`` do the same.

    Parameters
    ----------
    test : callable
        A test of labels and predictions, such as `calibration_test`, `calibration_table` or `hosmer_lemeshow_test`.
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given or columns have their names.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; one dimension is the probability of the positive class.
    folds : array-like of shape (n_samples,)
        The cross-validation fold of every observation, integers or strings. Each model was made with the labels of the
        other folds.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    subgroup : array-like of shape (n_samples,) or (n_samples, n_columns), or data frame, optional
        The subgroup of every observation, for `subgroup_tests`.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each observation: how much it counts.
    groups : array-like of shape (n_samples,), optional
        The group of each observation, such as its patient, if observations of a group may depend on each other.
    time, lead : optional
        When each prediction was made, and how long after that its label is known, as in `calibration_test`.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness; every fold has its own stream.
    progress : bool or callable
        True shows a bar with the time left; a function is called with ``(done, total)``.
    input : {"probabilities", "logits"}
        What predictions are, as in `calibration_test`.
    **options
        Further arguments of the test.

    Returns
    -------
    TestResult or CalibrationTable
        What the test returns, with p-values that are combined over the folds; ``folds`` holds those of each fold.

    Raises
    ------
    TypeError
        If ``folds`` is no array of integers or strings, or ``test`` returns neither a test result nor a table of tests.
    ValueError
        If ``folds`` has another length, lacks a value, or holds one fold only or a different one for every observation;
        if a group lies in several folds; if the test refuses its arguments.

    See Also
    --------
    caltest.cross_val_calibration : Fits, predicts and tests in one call.

    References
    ----------
    V. Vovk and R. Wang (2020), Combining p-values via averaging, Biometrika.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> event, risk = y_true[:900] == 3, y_prob[:900, 3]
    >>> from caltest.hypothesis_tests import by_fold, spiegelhalter_test
    >>> result = by_fold(spiegelhalter_test, event, risk, [0, 1, 2] * 300)
    >>> result.pvalue == min(1, 3 * min(fold.pvalue for fold in result.folds))
    True
    """
    prob, outcome = validate_given_problem(y_true, y_prob, classes)
    parts = validate_folds(folds, len(prob))
    each = {"subgroup": subgroup, "sample_weight": sample_weight, "groups": groups, "time": time, "lead": lead}
    shared: dict[str, Any] = {"rng": rng, "progress": progress, "classes": classes, **options}
    found = each_fold(test, parts, (labels_of(outcome, classes), prob), each, **shared)
    design = validate_design(sample_weight, groups, len(prob), time, lead)
    if isinstance(found[0], CalibrationTable):
        return combine_tables(parts, found, design)
    if isinstance(found[0], TestResult):
        return combine_tests(parts, found, pool(parts, found, design))  # type: ignore[return-value]
    msg = f"`test` must return a TestResult or a CalibrationTable, got {type(found[0]).__name__}."
    raise TypeError(msg)


run_by_fold: Callable[..., Any] = unwrap(by_fold)
"""The same for functions with an argument ``folds``, whose arguments were read."""


def each_fold(
    test: Callable[..., Any],
    folds: Folds,
    arguments: Sequence[Any],
    each: Mapping[str, Any] | None = None,
    *,
    rng: SeedLike,
    progress: bool | Progress | None,
    tests_in: Callable[[Any], Sequence[TestResult]] | None = None,
    **options: Any,
) -> list[Any]:
    """Return what a public function returns for each fold; every fold has another stream of random numbers.

    Arguments are arrays that were read for all folds: a label that a fold lacks is no reason for a note. After the
    first fold, a warning says if the draws are too few for the tests of all folds, which ``tests_in`` returns.
    """
    test = unwrap(test)
    known = signature(test).parameters.values()
    takes_rng = any(parameter.name == "rng" or parameter.kind is parameter.VAR_KEYWORD for parameter in known)
    each = _by_observation(folds, dict(each or {}))
    streams, found = validate_rng(rng).spawn(len(folds)), []
    with reporting(progress, f"testing {len(folds)} folds") as report:
        for number, ((name, rows), stream) in enumerate(zip(folds, streams, strict=True)):

            def share(done: float, total: float, number: int = number) -> None:
                report(number + done / max(total, 1), len(folds))

            given = [part_of(argument, rows) for argument in arguments]
            shared = {"rng": stream, "progress": share} if takes_rng else {}
            with naming(f"fold {name}"):
                found.append(test(*given, **part_of(each, rows), **options, **shared))
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
    """Return the arguments that are given; refuse weights and groups of another length, and groups in several folds.

    Steps of time are those of all folds.
    """
    n_samples = sum(map(len, folds.members))
    names = ("sample_weight", "groups", "time", "lead")
    design = design_of({name: each.pop(name, None) for name in names}, n_samples)
    if design["group"] is not None:
        refuse_divided_groups(design["group"], folds.number)
    given = {**each, "sample_weight": design["weight"], "groups": design["group"], "time": design["timing"]}
    return {name: values for name, values in given.items() if values is not None}


def refuse_divided_groups(group: Integers, fold: Integers) -> None:
    """Raise ValueError if observations of a group lie in several folds."""
    pairs = np.unique(np.stack([group, fold]), axis=1)
    if len(pairs[0]) > len(np.unique(pairs[0])):
        refuse(
            "`groups` must each lie in one fold, got a group in several: its other observations were used to fit "
            "the model that is tested on it. Use folds of whole groups, such as those of sklearn's GroupKFold."
        )


def combine_tests(
    folds: Folds, tests: Sequence[TestResult], evidence: Evidence | None = None, *, in_table: bool = False
) -> TestResult:
    """Return the tests of all folds as one result; a table has the notes about all its tests itself.

    The numbers of the ``evidence`` describe the predictions of all folds together; they decide nothing.
    """
    own = [_of_all(test, rows) for (_, rows), test in zip(folds, tests, strict=True)]
    design = {"is_grouped": tests[0].n_groups is not None, "is_timed": _is_timed(tests[0])}
    first, smallest = own[0], min(own, key=lambda test: test.pvalue)
    combined = CombinedPValues(len(own))
    impossible = np.sort(np.concatenate([test.impossible_samples for test in own]))
    return first.extend(
        TestResult,
        title=f"{first.title} by fold",
        derived={},
        statistic=-math.log10(smallest.pvalue),
        pvalue=combined.pvalue([test.pvalue for test in own]),
        smallest_possible_pvalue=combined.pvalue([test.smallest_possible_pvalue for test in own]),
        null=combined,
        n_samples=sum(test.n_samples for test in own),
        n_groups=None if first.n_groups is None else sum(test.n_groups or 0 for test in own),
        components=tuple(own),
        score=None,
        method=smallest.method,
        numerical_error=min(len(own) * smallest.numerical_error, 1.0),
        hypothesis=f"{first.hypothesis}, for the model of each fold",
        origin=combined.origin,
        conditions=tuple(condition_of_folds(note, **design) for note in first.conditions),
        impossible_samples=impossible,
        notes=(
            *([] if in_table else small_notes(folds.names, [test.n_samples for test in own])),
            *([] if in_table else few_draws_of_folds(own, len(own))),
            *impossible_note(impossible),
            *fold_notes(folds.names, own),
        ),
        fold_names=folds.names,
        pvalue_adjusted=correct_pvalues([test.pvalue for test in own]),
        _evidence=evidence,
    )


def pool(folds: Folds, tests: Sequence[TestResult], design: Mapping[str, Any]) -> Evidence | None:
    """Return what is known of the predictions of all folds together; None if it is not known of each.

    ``design`` are weights and groups of all observations, as `validate_design` returns them.
    """
    samples = [test._about.sample for test in tests if test._about is not None]
    if len(samples) < len(tests):
        return None
    rows = np.concatenate([held[sample.row] for held, sample in zip(folds.members, samples, strict=True)])
    given, outcome = (np.concatenate([getattr(sample, name) for sample in samples]) for name in ("given", "outcome"))
    sample = induce(given, outcome, **{name: None if of is None else of[rows] for name, of in design.items()})
    return Evidence.of(replace(sample, row=rows[sample.row]), tests[0].lens, tests[0]._about.classes)


def combine_tables(folds: Folds, tables: Sequence[Any], design: Mapping[str, Any]) -> Any:
    """Return the tables of all folds as one of their kind; a test that some folds lack is combined over the others."""
    first, rule = tables[0], CombinedPValues(len(folds))
    labels = list(dict.fromkeys(label for table in tables for label in table.labels))
    tests = []
    for label in labels:
        held = [i for i, table in enumerate(tables) if label in table.labels]
        part = Folds(tuple(folds.names[i] for i in held), tuple(folds.members[i] for i in held))
        found = [tables[i].tests[tables[i].labels.index(label)] for i in held]
        # what sentences are about
        asked = first.is_of_parts or len(labels) == 1 or isinstance(found[0].lens, Canonical)
        tests.append(combine_tests(part, found, pool(part, found, design) if asked else None, in_table=True))
    combined = first.with_tests(
        tests,
        labels,
        pvalue=rule.pvalue([table.pvalue for table in tables]),
        smallest_possible_pvalue=rule.pvalue([table.smallest_possible_pvalue for table in tables]),
        folds=tuple(tables),
        fold_names=folds.names,
        fold_sizes=tuple(table.n_samples for table in tables),
    )
    return replace(
        combined,
        notes=(
            *small_notes(folds.names, combined.fold_sizes),
            *few_draws_of_folds([test for table in tables for test in table], len(folds) * len(labels)),
            *dict.fromkeys(note for table in tables for note in table.notes if note.code != _TOO_FEW_DRAWS),
        ),
    )


def condition_of_folds(note: Note, *, is_grouped: bool, is_timed: bool = False) -> Note:
    """Return a condition of the p-value of a fold as that of all folds."""
    if note.code != _INDEPENDENT:
        return note
    units = "groups of observations" if is_grouped else "observations"
    if is_timed:
        units = "errors of predictions that are the lead or more apart"
    text = f"{units} are independent and no model was made with the labels of the fold that it is tested on."
    return Note(note.code, text)


def _is_timed(test: TestResult) -> bool:
    """Return whether labels of a test may depend on each other in time."""
    return any(note.code == _IN_TIME for note in test.conditions)


def small_notes(names: Sequence[str], sizes: Sequence[int]) -> list[Note]:
    """Return a note if folds have few observations."""
    small = [name for name, size in zip(names, sizes, strict=True) if size < SMALL]
    if not small:
        return []
    which = f"Fold {small[0]} has" if len(small) == 1 else f"{len(small)} of {len(names)} folds have"
    text = f"{which} fewer than {SMALL} observations. Their tests are valid but detect little. Use fewer, larger folds."
    return [Note("C207", text)]


def few_draws_of_folds(tests: Sequence[TestResult], number: int) -> list[Note]:
    """Return a note if ``number`` tests like these, adjusted together, cannot reject with their draws.

    Tests that stopped early, because many draws are larger, could have had more.
    """
    larger = [test.pvalue * test.n_resamples for test in tests]
    drawn = [test.n_resamples for test, number in zip(tests, larger, strict=True) if number < EXCEEDANCES]
    if not drawn or not all(drawn):
        return []
    alpha = tests[0].alpha
    so = f", so that none can reject at the {percent(alpha)} level"
    return few_draws(max(drawn), number, alpha, f"for each of {number} tests", so)


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


def _of_all(test: TestResult, rows: Integers) -> TestResult:
    """Return a test of a fold that names observations by their number among those of all folds."""
    impossible = rows[test.impossible_samples]
    others = tuple(note for note in test.notes if note.code != _IMPOSSIBLE)
    return replace(test, impossible_samples=impossible, notes=(*others, *impossible_note(impossible)))


def labels_of(outcome: Integers, classes: Sequence[Any] | None) -> NDArray[Any]:
    """Return labels as the functions take them: class indices, or the names of the classes."""
    if classes is None:
        return outcome
    names = np.empty(len(classes), dtype=object)
    names[:] = list(classes)
    return names[outcome]
