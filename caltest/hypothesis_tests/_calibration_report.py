"""Several statistics of the literature on one model, on the same draws."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

from numpy.typing import ArrayLike

from caltest.hypothesis_tests._by_fold import run_by_fold
from caltest.hypothesis_tests._calibration_table import inside_region, within
from caltest.hypothesis_tests._calibration_table_result import CalibrationTable, shared_origin
from caltest.hypothesis_tests._diagnostics import describe_answers, few_draws_notes, warn_before
from caltest.hypothesis_tests._residual_correlation import noting_correlation
from caltest.predictions._lens import Lens
from caltest.predictions._lenses import Canonical, Confidence
from caltest.predictions._sample import induce
from caltest.predictions._view import LensView
from caltest.predictions.cells._partitions import EqualWidth
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._validation import design_of, validate_count, validate_problem, validate_rng
from caltest.resampling import Consistency
from caltest.resampling.engine._evaluation import Question
from caltest.resampling.engine._options import SharedDrawOptions
from caltest.resampling.engine._run import run
from caltest.resampling.engine._stopping import FEWER_DRAWS, Stopping
from caltest.results import Note, TestResult
from caltest.results._description import Table
from caltest.results._progress import reporting
from caltest.statistics import ECE, KS, SCE, SKCE, Kuiper, Spiegelhalter, Statistic, TCal


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CalibrationReport(CalibrationTable):
    """Result of `calibration_report`; iterates over its tests.

    Attributes
    ----------
    tests : tuple of TestResult
        One test for each statistic, each with its own p-value.
    pvalue : float
        Global p-value: exact min-p over the tests that share all draws, which are all but `SKCE`.
    alpha, correction, notes
        As in `CalibrationTable`.

    See Also
    --------
    caltest.calibration_report : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(3).draw(300, rng=0)
    >>> report = caltest.calibration_report(y_true, y_prob, n_resamples=499, rng=0)
    >>> len(report.tests), report.rejected
    (8, False)
    """

    _kind: ClassVar[str] = "Calibration report"
    _of_one_statistic: ClassVar[bool] = False
    _what: ClassVar[tuple[str, str]] = ("statistic", "statistics")

    @property
    def labels(self) -> tuple[str, ...]:
        """What distinguishes the tests: their statistics."""
        return tuple(str(test.test_statistic) for test in self.tests)

    @property
    def _row_names(self) -> tuple[str, ...]:
        return self.labels

    def _name_of_size(self, test: TestResult) -> str:
        return str(test.test_statistic)

    def _tables(self) -> list[Table]:
        """Return one table for each lens, which is named in its first column."""
        rows: dict[str, list[dict[str, Any]]] = {}
        for number, test in enumerate(self.tests):
            rows.setdefault(test.lens_name, []).append(self._record(number, test))
        numbers = {"value": "{statistic:.4g}", "calibrated": "{noise_floor:.4g}", "p-value": "{pvalue:p}"}
        numbers[self._adjusted_name] = "{pvalue_adjusted:p}"
        return [Table.of(part, {name: "{test_statistic}", **numbers}) for name, part in rows.items()]

    def _remarks(self) -> list[str]:
        meaning = "Column calibrated: average value if the model is calibrated."
        return [meaning, *self._sources(), *self._conditions()]

    def _sources(self) -> list[str]:
        kernel = [test.n_resamples for test in self.tests if test.test_statistic.is_slow]
        others = [test for test in self.tests if not test.test_statistic.is_slow]
        if not kernel:
            return super()._sources()
        fewer = "" if kernel[0] == others[0].n_resamples else f", {kernel[0]} for SKCE"
        return [
            f"Null distribution: {shared_origin(others)}{fewer}; the global p-value is an exact min-p without SKCE."
        ]


@reads_arguments
def calibration_report(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    folds: Any = None,
    n_kernel_resamples: int | None = None,
    **options: Unpack[SharedDrawOptions],
) -> CalibrationReport:
    r"""Test calibration by eight statistics of the literature, predictions fixed.

    ===============================  ==========================================================
    whole prediction                 `ECE` over the variance tree, `SCE`, `SKCE`, `Spiegelhalter`
    top prediction (two classes:     `ECE` with 15 equal-width cells, `KS`, `Kuiper`, `TCal`
    the event)
    ===============================  ==========================================================

    The class of every observation is simulated from the whole prediction, and one draw serves all statistics. Every
    p-value is exact under its own hypothesis, and Holm's correction needs no assumption. The report is an overview; a
    decision should rest on one test that was chosen beforehand, such as `calibration_test`.

    Parameters
    ----------
    region : callable, optional
        From predictions ``(n_samples, n_classes)`` to booleans ``(n_samples,)``; observations outside are left out.
    folds : array-like of shape (n_samples,), optional
        The cross-validation fold of every observation, integers or strings, if the predictions are those of several
        models, each made with the labels of the other folds. Every fold is tested separately, and the p-values are
        combined, as by `by_fold`.
    n_resamples : int, optional
        Number of draws, all of which are made. By default 999; for more than 5,000,000 predicted probabilities
        (observations times classes) they stop after 100 exceedances.
    n_exceedances : int, optional
        Number of draws at least as extreme as the observed data after which the draws of a test stop, as in
        `calibration_table`.
    n_kernel_resamples : int, optional
        Number of these draws for `SKCE`, whose cost grows with the square of the number of observations. By default
        199; with more than 50,000 observations `SKCE` is left out unless a number is given, and a note says so.

    Returns
    -------
    CalibrationReport
        Prints as a table; ``to_frame()`` for pandas. With ``folds``, its ``folds`` are the reports of the folds.

    Raises
    ------
    TypeError
        If ``region`` is no function or ``folds`` no array of integers or strings.
    ValueError
        If ``y_prob`` has values outside [0, 1] or rows that do not sum to 1; if ``y_true`` holds other labels than the
        columns; if ``region`` holds no observation; if ``folds`` has another length, lacks a value, or holds one fold
        only or a different one for every observation; if ``n_resamples`` or ``n_kernel_resamples`` < 1, or ``alpha`` is
        not strictly between 0 and 1.

    Warns
    -----
    CalibrationWarning
        Before the work starts, if no Holm-adjusted p-value can reach ``alpha`` with this number of draws.

    See Also
    --------
    calibration_test : One test that was chosen beforehand.
    calibration_table : One statistic through several lenses.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> report = caltest.calibration_report(y_true[:500], y_prob[:500], n_resamples=199, rng=0)
    >>> [type(test.test_statistic).__name__ for test in report]
    ['ECE', 'ECE', 'SCE', 'KS', 'Kuiper', 'SKCE', 'Spiegelhalter', 'TCal']
    >>> report.pvalue
    0.005
    """
    if folds is not None:
        return run_by_fold(calibration_report, y_true, y_prob, folds, n_kernel_resamples=n_kernel_resamples, **options)
    classes, level = options["classes"], options["alpha"]
    prob, outcome = validate_problem(y_true, y_prob, classes)
    stopping = Stopping.of(options["n_resamples"], options["n_exceedances"], prob.size, usual=FEWER_DRAWS)
    n_draws = stopping.n_resamples
    n_kernel = 199 if n_kernel_resamples is None else validate_count(n_kernel_resamples, "n_kernel_resamples")
    n_kernel = min(n_kernel, n_draws)
    inside, null = inside_region(options["region"], prob), Consistency()
    n_samples = len(prob) if inside is None else int(inside.sum())
    whole: Lens = Canonical()
    top = whole if prob.shape[1] == 2 else Confidence()
    asked: list[tuple[Statistic, Lens]] = [
        (ECE(), whole),
        (ECE(EqualWidth(15)), top),
        (SCE(), whole),
        (KS(), top),
        (Kuiper(), top),
        *([] if n_kernel_resamples is None and n_samples > _MOST_FOR_KERNEL else [(SKCE(), whole)]),
        (Spiegelhalter(), whole),
        (TCal(), top),
    ]
    notes = few_draws_notes(len(asked), n_draws, level)
    if not any(statistic.is_slow for statistic, _ in asked):
        notes.append(_without_kernel(n_samples))
        n_kernel = 0
    warn_before(notes)
    base = induce(prob, outcome, **design_of(options, len(prob)))
    views = {look: within(LensView.of(look, prob, outcome, base), inside) for look in dict.fromkeys((whole, top))}
    questions = [Question(statistic, views[look]) for statistic, look in asked]
    slow = [question for question in questions if question.statistic.is_slow]
    fast = [question for question in questions if question not in slow]
    generator = validate_rng(options["rng"])
    again = deepcopy(generator)  # SKCE is evaluated on the first of the same draws
    how: dict[str, Any] = {"workers": options["workers"]}
    with reporting(options["progress"], "simulating labels") as report:
        how["progress"] = lambda done, total: report(done, total + n_kernel)
        shared = run(fast, base, null, n_resamples=stopping, rng=generator, **how)
        answers = dict(zip(fast, shared.answers, strict=True))
        if slow:
            how["progress"] = lambda done, total: report(n_draws + done, n_draws + total)
            kernel = run(slow, base, null, n_resamples=n_kernel, rng=again, **how)
            answers |= zip(slow, kernel.answers, strict=True)
    found, looks = [answers[question] for question in questions], [look for _, look in asked]
    tests = describe_answers(found, null, looks, classes=classes, alpha=level)
    table = CalibrationReport(
        tests=tests, pvalue=shared.pvalue, smallest_possible_pvalue=shared.smallest, alpha=level, notes=tuple(notes)
    )
    return noting_correlation(table, base, options)


_MOST_FOR_KERNEL = 50_000  # observations, which have 1.25 x 10^9 pairs


def _without_kernel(n_samples: int) -> Note:
    return Note(
        "C208",
        f"SKCE is left out, because its time grows with the square of the number of observations: there are "
        f"{n_samples:,}, more than {_MOST_FOR_KERNEL:,}. Pass `n_kernel_resamples` to have it all the same.",
    )
