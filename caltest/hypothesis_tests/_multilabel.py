"""Tests of several labels of each observation, each with its own probability."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest.hypothesis_tests._calibration import run_test
from caltest.hypothesis_tests._calibration_table_result import shared_origin
from caltest.hypothesis_tests._diagnostics import few_draws_notes, stopping_of_tests, warn_before
from caltest.hypothesis_tests._parts_table import PartsTable
from caltest.predictions._lens import probabilities_of
from caltest.predictions._lenses import Canonical
from caltest.predictions._sample import induce
from caltest.predictions.inputs._arguments import reads_label_arguments
from caltest.predictions.inputs._label_columns import LabelColumns, read_label_columns
from caltest.predictions.inputs._parts import part_of
from caltest.predictions.inputs._refusals import refuse_if
from caltest.predictions.inputs._validation import design_of, validate_choice, validate_rng
from caltest.resampling import Consistency
from caltest.resampling.engine._options import LabelOptions
from caltest.resampling.engine._pvalues import UNDER_ANY_DEPENDENCE, UNDER_INDEPENDENCE, correct_pvalues
from caltest.results import Note, TestResult
from caltest.results._description import counted
from caltest.results._finding import Subject
from caltest.results._progress import reporting
from caltest.statistics import Omnibus, Statistic
from caltest.statistics._base import validate_statistic


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MultilabelTable(PartsTable):
    """Result of `multilabel_table`; iterates over its tests.

    Attributes
    ----------
    tests : tuple of TestResult
        One test for each label, each with its own p-value.
    pvalue : float
        Global p-value of "the probabilities of every label are calibrated": the smallest adjusted one.
    names : tuple of str
        What each label is called.
    correction : str
        How the p-values are adjusted for the number of labels.
    alpha, notes
        As in `CalibrationTable`.

    See Also
    --------
    caltest.multilabel_table : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(3).draw(300, rng=0)
    >>> table = caltest.multilabel_table(y_true[:, None] == [0, 1], y_prob[:, :2], n_resamples=199, rng=0)
    >>> table.names, table.rejected
    (('0', '1'), False)
    """

    names: tuple[str, ...]

    _kind: ClassVar[str] = "Multi-label table"
    _what: ClassVar[tuple[str, str]] = ("label", "labels")
    _within: ClassVar[tuple[str, str]] = ("of", "for")
    _where: ClassVar[str] = " or fewer for each label"

    @property
    def labels(self) -> tuple[str, ...]:
        """What distinguishes the tests: the labels."""
        return self.names

    def _subject_of_part(self, subject: Subject, name: str) -> Subject:
        return probabilities_of(f'"{name}"')

    def _record(self, number: int, test: TestResult) -> dict[str, Any]:
        """Return the numbers of a test, with averages and observed divided by expected events."""
        predicted, observed = test._about.averages
        average = test._about.average(test)
        low, high = (np.nan, np.nan) if average.interval is None else average.interval
        of_average = {"observed_expected": average.estimate, "ratio_low": low, "ratio_high": high}
        return super()._record(number, test) | {"predicted": predicted, "observed": observed, **of_average}

    def _sources(self) -> list[str]:
        how = "however the labels of an observation depend on each other"
        if self.correction in UNDER_INDEPENDENCE:
            how = "if the labels of an observation are independent of each other, given the predictions"
        return [
            f"global p: the smallest p-value after {self.correction.title()}'s correction, which is valid {how}. It "
            "decides.",
            f"Null distribution: {shared_origin(self.tests)}.",
        ]


@reads_label_arguments
def multilabel_table(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    statistic: Statistic | str | None = None,
    correction: str = "holm",
    input: str = "probabilities",  # noqa: A002
    **options: Unpack[LabelOptions],
) -> MultilabelTable:
    r"""Test the probabilities of several labels, any number of which an observation may have.

    The hypothesis is :math:`P(Y_k = 1 \mid g_k(X)) = g_k(X)` for every label k: each column of ``y_prob`` holds the
    probabilities of its own event, and rows need not sum to 1. Each label is tested by itself, as by `calibration_test`
    of its two columns, so that its p-value is valid at every sample size if observations are independent, and as there
    with ``groups`` or ``time``.

    The labels of an observation may depend on each other. With the p-values :math:`p_k` of m labels

    .. math:: P(m \min_k p_k \le \alpha) \le \sum_k P(p_k \le \alpha / m) \le \alpha

    whatever this dependence is, so that the smallest p-value after Holm's correction is that of all labels together.
    Little is lost: even if the labels are independent, its level is :math:`1 - (1 - \alpha / m)^m`, 4.9 % instead of
    5 %. Random signs of whole observations would learn the dependence from the data, and are not valid for rare labels
    (docs/several-labels.md).

    Parameters
    ----------
    y_true : array-like or frame of shape (n_samples, n_labels)
        1 (or True) if an observation has the label, 0 if not, NaN if that is not known. A label is tested on the
        observations for which it is known.
    y_prob : array-like or frame of shape (n_samples, n_labels)
        The predicted probability of each label. Columns of frames are matched by their names, also by names such as
        ``y_cat`` and ``p_cat``. A list of arrays of two columns, one for each label, is what forests of scikit-learn
        return.
    statistic : Statistic or str, optional
        ``Omnibus()`` by default.
    correction : {"holm", "bonferroni", "holm-sidak", "sidak", "simes-hochberg", "hommel"}
        Over the labels. The first two are valid under any dependence, the others if the labels of an observation are
        independent of each other, given the predictions.

    input : {"probabilities", "logits"}
        What predictions are. Of logits the logistic function is taken, of each by itself.

    Returns
    -------
    MultilabelTable
        Prints as a table, ``to_frame()`` for pandas.

    Raises
    ------
    TypeError
        If ``statistic`` is no statistic.
    ValueError
        If ``y_true`` does not have two dimensions or another shape than ``y_prob``, or holds anything but 0, 1 and NaN;
        if a label is known for no observation (of positive weight), or its probability is missing or outside [0, 1]
        where it is known; if columns of frames have different names; if ``correction`` is unknown, ``n_resamples`` < 1,
        or ``alpha`` is not strictly between 0 and 1.

    Warns
    -----
    CalibrationWarning
        Before the work starts, if no adjusted p-value can reach ``alpha`` with this number of draws; if every
        observation has one label and its probabilities sum to 1, as those of classes, which `calibration_table` tests;
        if logits look like probabilities or percentages.

    See Also
    --------
    calibration_table : One of several classes for each observation.

    Examples
    --------
    >>> import caltest
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y_prob = rng.uniform(0.1, 0.9, (1000, 3))
    >>> y_true = rng.random((1000, 3)) < y_prob + [0, 0.1, 0]
    >>> table = caltest.multilabel_table(y_true, y_prob, n_resamples=999, rng=0)
    >>> table.pvalue, table.pvalue_adjusted.tolist(), table.directions
    (0.003, [0.058, 0.003, 0.122], (None, 'too low', None))
    """
    chosen = validate_statistic(Omnibus() if statistic is None else statistic)
    validate_choice(correction, "correction", UNDER_ANY_DEPENDENCE + UNDER_INDEPENDENCE)
    columns = read_label_columns(y_true, y_prob, input)
    n_labels, level = len(columns.names), options["alpha"]
    design = design_of(options, len(columns.prob))
    counts = columns.known if design["weight"] is None else columns.known & (design["weight"][:, None] > 0)
    for name, some in zip(columns.names, counts.T, strict=True):
        must = "`sample_weight` must be positive for an observation whose labels are known"
        refuse_if(not some.any(), f"{must}, got 0 for all of the label {name!r}.")
    stopping = stopping_of_tests(n_labels, options | {"n_exceedances": None}, len(columns.prob))
    notes = [*few_draws_notes(n_labels, stopping.n_resamples, level, correction), *_notes(columns)]
    warn_before([note for note in notes if note.code != _MISSING])
    streams = _streams(options["rng"], n_labels, shared=correction in UNDER_ANY_DEPENDENCE)
    how: dict[str, Any] = {"n_resamples": stopping, "alpha": level, "workers": options["workers"]}
    tests = []
    with reporting(options["progress"], "simulating labels") as report:
        for k, how["rng"] in enumerate(streams):
            how["progress"] = lambda done, total, k=k: report(k + done / max(total, 1), n_labels)
            tests.append(_test(chosen, columns, k, design, **how))
        report(n_labels, n_labels)
    smallest = [test.smallest_possible_pvalue for test in tests]
    return MultilabelTable(
        tests=tuple(tests),
        names=columns.names,
        pvalue=float(correct_pvalues([test.pvalue for test in tests], correction).min()),
        smallest_possible_pvalue=float(correct_pvalues(smallest, correction).min()),
        alpha=level,
        correction=correction,
        notes=tuple(notes),
        _n_samples=int(counts.any(axis=1).sum()),
    )


def _test(statistic: Statistic, columns: LabelColumns, k: int, design: dict[str, Any], **how: Any) -> TestResult:
    """Return the test of a label, on the observations for which it is known."""
    rows = np.flatnonzero(columns.known[:, k])
    prob = columns.prob[rows, k]
    own = {name: None if values is None else part_of(values, rows) for name, values in design.items()}
    sample = induce(np.column_stack([1 - prob, prob]), columns.label[rows, k].astype(np.int64), **own)
    found = run_test(statistic, sample, Consistency(), lens=Canonical(), method="auto", **how)
    return replace(found, impossible_samples=rows[found.impossible_samples])


def _streams(rng: Any, number: int, *, shared: bool) -> Sequence[np.random.Generator]:
    """Return the source of randomness of each label.

    The same draws serve all labels where no independence is needed, so that the order of labels does not matter.
    """
    generator = validate_rng(rng)
    return [*(deepcopy(generator) for _ in range(1, number)), generator] if shared else generator.spawn(number)


_MISSING, _CLASSES = "C210", "C211"


def _notes(columns: LabelColumns) -> list[Note]:
    """Return notes on labels that are not known everywhere or look like classes, and on logits that may be none."""
    found = [] if columns.doubt is None else [columns.doubt]
    number = columns.known.sum(axis=0)
    some = np.flatnonzero(number < len(columns.known))
    if some.size:
        fewest = some[np.argmin(number[some])]
        which = f"{len(some)} of {counted(len(number), 'label')} {'is' if len(some) == 1 else 'are'}"
        text = (
            f"{which} not known for all {counted(len(columns.known))} (fewest: {columns.names[fewest]!r}, "
            f"{number[fewest]:,}). Each is tested where it is known, which is valid if it is not known for reasons "
            "that have nothing to do with the label itself, given its prediction."
        )
        found.append(Note(_MISSING, text))
    if columns.are_classes:
        text = (
            "Every observation has exactly one of these labels, and its probabilities sum to 1: they are classes. "
            "`calibration_table` tests classes together, with the confidence; pass it `y_true.argmax(axis=1)`."
        )
        found.append(Note(_CLASSES, text))
    return found
