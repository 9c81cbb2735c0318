"""One model through several lenses, on the same draws: adjusted p-values and a global one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.hypothesis_tests._by_fold import run_by_fold
from caltest.hypothesis_tests._calibration_table_result import CalibrationTable
from caltest.hypothesis_tests._diagnostics import (
    ask_together,
    enough_draws,
    few_draws_notes,
    most_tests,
    stopping_of_tests,
)
from caltest.hypothesis_tests._residual_correlation import noting_correlation
from caltest.predictions._arrays import Booleans, Floats
from caltest.predictions._lens import LensLike
from caltest.predictions._lenses import Canonical, ClassWise, Confidence
from caltest.predictions._sample import induce
from caltest.predictions._user_functions import Region, apply_region
from caltest.predictions._view import LensView
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._validation import design_of, refuse_if, require, validate_given_problem
from caltest.resampling import Consistency
from caltest.resampling.engine._evaluation import Question
from caltest.resampling.engine._options import SharedDrawOptions
from caltest.resampling.engine._stopping import Stopping
from caltest.results import Note
from caltest.statistics import Omnibus, Statistic
from caltest.statistics._base import default_lens, validate_statistic


@reads_arguments
def calibration_table(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    lenses: Sequence[LensLike] | None = None,
    statistic: Statistic | str | None = None,
    folds: Any = None,
    **options: Unpack[SharedDrawOptions],
) -> CalibrationTable:
    """Test calibration through several lenses at once, predictions fixed.

    The class of every observation is simulated from the whole prediction and looked at through each lens, so that one
    draw serves all tests. Each test has a p-value that is exact under its own hypothesis. Holm's correction needs no
    assumption, and the global p-value is an exact min-p, which uses the dependence of the tests. A single lens is
    tested as by `calibration_test`: exactly where that is possible, otherwise with labels simulated behind the lens.

    Parameters
    ----------
    lenses : sequence of lenses, optional
        By default the whole prediction, if the statistic can judge it, the confidence, and every class against the
        rest; for two classes the event alone. If there are more than 100 classes, and Holm's correction would leave no
        test a chance to reject with this number of draws, only the 20 classes (or fewer) with the most expected events
        are tested, and a note says so. Predictions choose them, not labels.
    statistic : Statistic or str, optional
        ``Omnibus()`` by default.
    region : callable, optional
        From predictions ``(n_samples, n_classes)`` to booleans ``(n_samples,)``; observations outside are left out.
    folds : array-like of shape (n_samples,), optional
        The cross-validation fold of every observation, integers or strings, if the predictions are those of several
        models, each made with the labels of the other folds. Every fold is tested separately, and the p-values are
        combined, as by `by_fold`.
    n_resamples : int, optional
        Number of draws, all of which are made. By default 9,999; and for more than 5,000,000 predicted probabilities
        (observations times classes) at most 999, or as many as Holm's correction needs, which stop after 100
        exceedances.
    n_exceedances : int, optional
        Number of draws at least as extreme as the observed data after which the draws of a test stop, as in
        `calibration_test`. Every test, and the global p-value, stops separately; the draws end with the last one.

    Returns
    -------
    CalibrationTable
        Prints as a table. With ``folds``, its ``folds`` are the tables of the folds.

    Raises
    ------
    TypeError
        If ``lenses`` is no list, ``statistic`` no statistic, ``region`` no function or ``folds`` no array of
        integers or strings.
    ValueError
        If ``y_prob`` has values outside [0, 1] or rows that do not sum to 1; if ``y_true`` holds other labels than the
        columns; if there is no lens, or the statistic needs two outcomes and a lens returns more; if ``region`` holds
        no observation; if ``folds`` has another length, lacks a value, or holds one fold only or a different one for
        every observation; if ``n_resamples`` or ``n_exceedances`` < 1, or ``alpha`` is not strictly between 0 and 1.

    Warns
    -----
    CalibrationWarning
        Before the work starts, if no Holm-adjusted p-value can reach ``alpha`` with this number of draws, or if
        classes are left out.

    See Also
    --------
    calibration_test : A single lens.
    subgroup_tests : Subgroups of the observations instead of lenses.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> table = caltest.calibration_table(
    ...     y_true, y_prob, lenses=[caltest.Canonical(), caltest.Confidence()], n_resamples=99, rng=0)
    >>> table.pvalue, table.pvalue_adjusted.tolist()
    (0.01, [0.02, 0.02])
    """
    if folds is not None:
        return run_by_fold(calibration_table, y_true, y_prob, folds, lenses=lenses, statistic=statistic, **options)
    prob, outcome = validate_given_problem(y_true, y_prob, options["classes"])
    chosen = validate_statistic(Omnibus() if statistic is None else statistic)
    looks, stopping, notes = plan_of_table(lenses, chosen, prob, options)
    design = design_of(options, len(prob))
    single = len(looks) == 1
    if single:  # needs no draws in common with others: labels are simulated as they look through the lens
        base = induce(prob, outcome, lens=looks[0], region=options["region"], **design)
        views = [LensView(base)]
    else:
        base, inside = induce(prob, outcome, **design), inside_region(options["region"], prob)
        views = [within(LensView.of(look, prob, outcome, base), inside) for look in looks]
    questions, method = [Question(chosen, view) for view in views], "auto" if single else "monte-carlo"
    how: dict[str, Any] = {"stopping": stopping, "notes": notes, "options": options, "method": method}
    found = CalibrationTable(**ask_together(questions, base, Consistency(), looks, **how))
    if single:
        return replace(found, tests=(noting_correlation(found.tests[0], base, options),))
    return noting_correlation(found, base, options)


def plan_of_table(
    lenses: Any, statistic: Statistic, prob: NDArray[Any], options: Mapping[str, Any]
) -> tuple[list[LensLike], Stopping, list[Note]]:
    """Return the lenses of a table, its number of draws, and notes on classes that are left out."""
    first = Stopping.of(options["n_resamples"], options["n_exceedances"], prob.size)
    looks, notes = _chosen_lenses(lenses, statistic, prob, first.n_resamples, options["alpha"])
    return looks, stopping_of_tests(len(looks), options, prob.size), notes


def inside_region(region: Region | None, prob: Floats) -> Booleans | None:
    """Return which observations of the caller a region of the predictions holds; None without a region."""
    if region is None:
        return None
    inside = apply_region(region, prob)
    refuse_if(not inside.any(), "`region` must hold at least one observation, got none.")
    return inside


def within(view: LensView, inside: Booleans | None) -> LensView:
    """Return a view without the observations outside."""
    return view if inside is None else view.take(np.flatnonzero(inside[view.sample.row]))


_MANY_CLASSES = 100  # more are tested one by one only if the draws leave each of them a chance
_MOST_OF_MANY = 20  # classes that are tested otherwise: those of the most expected events
_FEWEST_EVENTS = 10.0  # expected: of fewer, a frequency tells little about its prediction


def _chosen_lenses(
    lenses: Any, statistic: Statistic, prob: NDArray[Any], n_resamples: int, alpha: float
) -> tuple[list[LensLike], list[Note]]:
    """Return the lenses, and notes on classes that are left out with this number of draws."""
    if lenses is None:
        n_classes = prob.shape[1]
        usual: LensLike = default_lens(statistic, n_classes)
        if n_classes == 2:  # the confidence would be nearly the same test, and Holm would double p for nothing
            return [usual], []
        whole: list[LensLike] = list(dict.fromkeys([usual, Confidence()]))
        chosen = whole + [ClassWise(k) for k in range(n_classes)]
        if n_classes > _MANY_CLASSES and few_draws_notes(len(chosen), n_resamples, alpha):
            some = _frequent_classes(prob, most_tests(n_resamples, alpha) - len(whole))
            return whole + [ClassWise(k) for k in some], [_left_out(len(chosen), whole, some, n_resamples, alpha)]
        return chosen, []
    require(isinstance(lenses, list | tuple), "`lenses` must be a list of lenses", lenses, right_type=False)
    refuse_if(not lenses, "`lenses` must hold at least one lens, got none.")
    return [Canonical() if lens is None else lens for lens in lenses], []


def _frequent_classes(prob: NDArray[Any], most: int) -> list[int]:
    """Return the classes of the most expected events, at most some, in the order of the columns; labels are not used.

    They depend on the predictions alone, so that the p-values are as valid as those of classes named beforehand.
    """
    expected = prob.sum(axis=0, dtype=np.float64)
    found = np.argsort(-expected, kind="stable")[: max(0, min(most, _MOST_OF_MANY))]
    return np.sort(found[expected[found] >= _FEWEST_EVENTS]).tolist()


def _left_out(n_all: int, whole: Sequence[LensLike], some: Sequence[int], n_resamples: int, alpha: float) -> Note:
    """Return the note on classes that are not tested one by one."""
    n_classes = n_all - len(whole)
    which = f"The {n_classes:,} classes are not tested one by one"
    if some:
        which = f"Of {n_classes:,} classes only the {len(some)} with the most expected events are tested one by one"
    joint = " The whole prediction covers all classes jointly." if isinstance(whole[0], Canonical) else ""
    return Note(
        "C206",
        f"{which}: with {n_resamples:,} draws none of {n_all:,} tests could reject "
        f"after Holm's correction.{joint} Pass the lenses of the classes that matter, or take "
        f"{enough_draws(n_all, alpha):,} draws or more.",
    )
