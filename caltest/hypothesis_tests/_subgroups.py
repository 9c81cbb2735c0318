"""Tests of calibration within subgroups of the data, on the same draws, one by one and jointly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.hypothesis_tests._by_fold import run_by_fold
from caltest.hypothesis_tests._calibration_table import inside_region
from caltest.hypothesis_tests._diagnostics import ask_together, stopping_of_tests
from caltest.hypothesis_tests._parts_table import PartsTable
from caltest.hypothesis_tests._residual_correlation import noting_correlation
from caltest.predictions._lens import LensLike
from caltest.predictions._sample import induce
from caltest.predictions._user_functions import Region
from caltest.predictions._view import LensView
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import (
    design_of,
    refuse_if,
    require,
    validate_choice,
    validate_problem,
)
from caltest.resampling import Consistency
from caltest.resampling.engine._evaluation import Question
from caltest.resampling.engine._options import SharedDrawOptions
from caltest.resampling.engine._pvalues import UNDER_ANY_DEPENDENCE, UNDER_INDEPENDENCE
from caltest.results import Note, TestResult
from caltest.statistics import Omnibus, Statistic
from caltest.statistics._base import default_lens, validate_statistic


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SubgroupTests(PartsTable):
    """Result of `subgroup_tests`; iterates over its tests.

    Attributes
    ----------
    tests : tuple of TestResult
        One test for each subgroup, each with its own p-value.
    pvalue : float
        Global p-value of "calibrated within every subgroup": exact min-p over the subgroups, on the same draws.
    subgroups : tuple of str
        Name of each subgroup.
    correction : str
        How the p-values are adjusted for the number of subgroups.
    alpha, notes
        As in `CalibrationTable`.
    """

    subgroups: tuple[str, ...]

    _what: ClassVar[tuple[str, str]] = ("subgroup", "subgroups")
    _where: ClassVar[str] = " or fewer in each subgroup"

    @property
    def labels(self) -> tuple[str, ...]:
        """What distinguishes the tests: the subgroups."""
        return self.subgroups

    def with_tests(self, tests: Sequence[TestResult], labels: Sequence[str], **changes: Any) -> Self:
        """Return the table with other tests, of these subgroups; further fields are replaced."""
        return super().with_tests(tests, labels, subgroups=tuple(labels), **changes)


@reads_arguments
def subgroup_tests(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    subgroup: Any,
    lens: LensLike | None = None,
    statistic: Statistic | str | None = None,
    folds: Any = None,
    correction: str = "holm",
    **options: Unpack[SharedDrawOptions],
) -> SubgroupTests:
    r"""Test calibration within subgroups of the data, predictions and subgroups fixed.

    The hypothesis is :math:`P(Y = \cdot \mid g(X), X \in S_j) = g(X)` through the lens, within every subgroup
    :math:`S_j`. This is more than calibration of all observations together, where subgroups that err in opposite
    directions may cancel. Labels are simulated for all observations at once, and every subgroup takes its part of every
    draw, so that subgroups may overlap. Each p-value is exact, whatever the size of the subgroup; a small one has
    little power. The global p-value ranks the smallest of the subgroups' p-values among those of the draws, and is
    exact too.

    Parameters
    ----------
    subgroup : array-like of shape (n_samples,) or (n_samples, n_columns), data frame, or mapping of names to columns
        The subgroup of every observation: labels of any type. With several columns, the levels of each column are
        subgroups. They must depend on predictions or covariates, never on outcomes.
    lens : lens, optional
        What to look at. By default the whole prediction if the statistic can judge it, and the confidence otherwise.
    statistic : Statistic or str, optional
        ``Omnibus()`` by default.
    region : callable, optional
        From induced probabilities ``(n_samples, n_outcomes)`` to booleans ``(n_samples,)``; observations outside are
        left out, and so are subgroups that hold no others.
    folds : array-like of shape (n_samples,), optional
        The cross-validation fold of every observation, integers or strings, if the predictions are those of several
        models, each made with the labels of the other folds. Every fold is tested separately, and the p-values are
        combined, as by `by_fold`.
    correction : {"holm", "bonferroni", "holm-sidak", "sidak", "simes-hochberg", "hommel"}
        Over the subgroups, by ``statsmodels.stats.multitest``. Subgroups of one column share no observation and are
        independent given the predictions; those of several columns overlap, and only the first two are valid;
        so it is with ``folds``.
    n_resamples : int, optional
        Number of draws, all of which are made. By default 9,999; and for more than 5,000,000 predicted probabilities
        (observations times classes) at most 999, or as many as the correction needs, which stop after 100 exceedances.
    n_exceedances : int, optional
        Number of draws at least as extreme as the observed data after which the draws of a test stop, as in
        `calibration_test`. Every test, and the global p-value, stops separately; the draws end with the last one.

    Returns
    -------
    SubgroupTests
        Prints as a table. With ``folds``, its ``folds`` are the tables of the folds; a subgroup that a fold lacks is
        combined over the others.

    Raises
    ------
    TypeError
        If ``lens`` is no lens, ``statistic`` no statistic ``region`` no function or ``folds`` no array of
        integers or strings, or if ``subgroup`` holds what cannot be a label.
    ValueError
        If ``subgroup`` has another length than ``y_prob``, lacks a label or has two columns of the same name; if
        ``correction`` is unknown or needs independent subgroups, and these overlap or ``folds`` are given; if ``folds``
        has another length, lacks a value, or holds one fold only or a different one for every observation; if
        ``y_prob`` has values outside [0, 1] or rows that do not sum to 1; if ``y_true`` holds other labels than the
        columns; if ``region`` holds no observation; if the statistic needs two outcomes and the lens returns more; if
        ``n_resamples`` or ``n_exceedances`` < 1, or ``alpha`` is not strictly between 0 and 1.

    Warns
    -----
    CalibrationWarning
        Before the work starts, if every subgroup holds observations of one class only, because subgroups must not be
        made from labels; or if no adjusted p-value can reach ``alpha`` with this number of draws.

    See Also
    --------
    calibration_table : Lenses instead of subgroups.

    References
    ----------
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, section 4.3: the p-value.
    P. H. Westfall and S. S. Young (1993), Resampling-based multiple testing, Wiley: the global p-value.

    Examples
    --------
    Predictions are too low in one half and too high in the other; together they look calibrated:

    >>> import caltest
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y_prob, site = rng.uniform(0.2, 0.8, 2000), np.repeat(["north", "south"], 1000)
    >>> y_true = rng.random(2000) < y_prob + np.where(site == "north", 0.08, -0.08)
    >>> caltest.calibration_test(y_true, y_prob, n_resamples=999, rng=0).pvalue > 0.05
    True
    >>> tests = caltest.subgroup_tests(y_true, y_prob, subgroup=site, n_resamples=999, rng=0)
    >>> tests.subgroups, tests.pvalue_adjusted.tolist(), tests.pvalue
    (('north', 'south'), [0.002, 0.002], 0.001)
    """
    if folds is not None:
        validate_choice(correction, "correction", UNDER_ANY_DEPENDENCE)
        own = {"subgroup": subgroup, "lens": lens, "statistic": statistic, "correction": correction}
        return run_by_fold(subgroup_tests, y_true, y_prob, folds, **own, **options)
    prob, outcome = validate_problem(y_true, y_prob, options["classes"])
    names, members, overlap = subgroup_members(subgroup, len(prob))
    validate_choice(correction, "correction", UNDER_ANY_DEPENDENCE + (() if overlap else UNDER_INDEPENDENCE))
    stopping = stopping_of_tests(len(names), options, prob.size)
    chosen = validate_statistic(Omnibus() if statistic is None else statistic)
    look = default_lens(chosen, prob.shape[1]) if lens is None else lens
    base = induce(prob, outcome, **design_of(options, len(prob)))
    whole = LensView.of(look, prob, outcome, base)
    names, members = _inside(options["region"], whole, names, members)
    views = [whole.take(np.flatnonzero(inside[whole.sample.row])) for inside in members]
    for name, view in zip(names, views, strict=True):
        if not view.sample.n_samples:
            refuse(f"every subgroup must hold an observation of positive weight, got none in {name!r}.")
    questions, looks = [Question(chosen, view) for view in views], [look] * len(names)
    how: dict[str, Any] = {"stopping": stopping, "notes": _label_notes(members, outcome), "correction": correction}
    tests = ask_together(questions, base, Consistency(), looks, options=options, **how)
    found = SubgroupTests(
        **tests,
        correction=correction,
        subgroups=tuple(names),
        _n_samples=int(np.count_nonzero(np.any(members, axis=0)[whole.sample.row])),
    )
    return noting_correlation(found, base, options)


def _inside(
    region: Region | None, whole: LensView, names: list[str], members: list[NDArray[np.bool_]]
) -> tuple[list[str], list[NDArray[np.bool_]]]:
    """Return the subgroups that have observations in a region, without those outside."""
    inside = inside_region(region, whole.sample.given)
    if inside is None:
        return names, members
    kept = np.zeros(len(inside), dtype=bool)
    kept[whole.sample.row[inside]] = True
    found = [(name, held & kept) for name, held in zip(names, members, strict=True) if (held & kept).any()]
    return [name for name, _ in found], [held for _, held in found]


def _label_notes(members: Sequence[NDArray[np.bool_]], outcome: NDArray[np.int64]) -> list[Note]:
    """Return a note if the subgroups determine every label: they must depend on predictions and covariates only."""
    several = [outcome[inside] for inside in members if np.count_nonzero(inside) > 1]
    if not several or len(np.unique(outcome)) == 1 or any((labels != labels[0]).any() for labels in several):
        return []
    text = (
        "Every subgroup holds observations of one class only. If `subgroup` was made from labels, no p-value is valid. "
        "Make subgroups from predictions or covariates."
    )
    return [Note("C204", text)]


def subgroup_members(
    subgroup: Any, n_samples: int, argument: str = "subgroup"
) -> tuple[list[str], list[NDArray[np.bool_]], bool]:
    """Return the name of each subgroup, which observations it holds, and whether subgroups may overlap."""
    columns = _columns(subgroup, argument)
    names, members = [], []
    for name, values in columns.items():
        must = f"`{argument}` must have a label for each of the {n_samples:,} observations"
        require(len(values) == n_samples, must, len(values))
        levels, code = _levels(values, argument)
        names += [f"{name}={level}" if name else str(level) for level in levels]
        members += [code == k for k in range(len(levels))]
    return names, members, len(columns) > 1


def _columns(subgroup: Any, argument: str) -> dict[str, Any]:
    """Return the columns of a frame or of an array, by name; a single column of an array has none."""
    if hasattr(subgroup, "columns"):
        names = list(subgroup.columns)
        refuse_if(len(set(names)) < len(names), f"`{argument}` must have columns of different names, got {names}.")
        columns = {str(name): subgroup[name] for name in names}
    elif isinstance(subgroup, Mapping):
        columns = {str(name): values for name, values in subgroup.items()}
    elif hasattr(subgroup, "dtype") and not isinstance(subgroup, np.ndarray):  # a series, or categories
        columns = {"": subgroup}
    else:
        array = subgroup if isinstance(subgroup, np.ndarray) else np.asarray(subgroup, dtype=object)
        if array.ndim not in {1, 2} or np.ma.is_masked(array):
            refuse(
                f"`{argument}` must have shape (n_samples,) or (n_samples, n_columns), without masked values, "
                f"got {array.shape}."
            )
        columns = {"": array} if array.ndim == 1 else {str(k): column for k, column in enumerate(array.T)}
    refuse_if(not columns, f"`{argument}` must have at least one column, got none.")
    return columns


def _levels(values: Any, argument: str) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the levels that occur and that of each observation; categories keep their order, others are sorted."""
    import pandas as pd

    plain = values if type(values).__module__.startswith(("pandas", "numpy")) else list(values)
    try:
        labels = pd.Categorical(plain).remove_unused_categories()
    except TypeError as error:  # not hashable
        msg = f"`{argument}` must hold labels such as strings or numbers: {error}."
        raise TypeError(msg) from None
    code = np.asarray(labels.codes, dtype=np.int64)
    missing = np.flatnonzero(code < 0)
    if missing.size:
        first = missing[0]
        found = f"{list(values)[first]!r} for observation {first}"
        refuse(f"`{argument}` must have a label for every observation, got {found}.")
    return list(labels.categories), code
