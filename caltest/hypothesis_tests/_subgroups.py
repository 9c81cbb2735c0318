"""Tests of calibration within subgroups of the data, on the same draws, one by one and jointly."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.hypothesis_tests._by_fold import run_by_fold
from caltest.hypothesis_tests._calibration_table import inside_region
from caltest.hypothesis_tests._calibration_table_result import MOST_ROWS
from caltest.hypothesis_tests._diagnostics import ask_together, stopping_of_tests
from caltest.hypothesis_tests._parts_table import PartsTable
from caltest.hypothesis_tests._residual_correlation import noting_correlation
from caltest.hypothesis_tests._subgroup_members import MOST_SEGMENTS, Segments, subgroup_members
from caltest.predictions._arrays import Booleans, Floats, Integers
from caltest.predictions._lens import LensLike
from caltest.predictions._sample import Sample, induce
from caltest.predictions._user_functions import Region
from caltest.predictions._view import LensView
from caltest.predictions.files._levels import levels_of
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._frames import index_of
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import (
    design_of,
    refuse_if,
    validate_choice,
    validate_count,
    validate_problem,
)
from caltest.resampling import Consistency
from caltest.resampling.engine._evaluation import Question
from caltest.resampling.engine._options import SharedDrawOptions
from caltest.resampling.engine._pvalues import JOINTLY, UNDER_ANY_DEPENDENCE, UNDER_INDEPENDENCE
from caltest.resampling.engine._run import joint_error
from caltest.results import Note, TestResult
from caltest.results._decision import FEWEST_EXPECTED
from caltest.results._description import percent
from caltest.results._finding import Number
from caltest.statistics import Omnibus, Statistic
from caltest.statistics._base import default_lens, validate_statistic

_POWER = 0.8
_N_HALVINGS = 40
_LARGEST_SHIFT = 20.0  # of logits


def detectable_differences(sample: Sample, alpha: float) -> tuple[float, float]:
    r"""Return by how much an event must be more frequent than predicted, and less, to be found with a power of 80 %.

    The probabilities p of the event (of several classes, of the predicted one) are shifted on the logit scale to q.
    With relative weights w, a two-sided test of the average at the level :math:`\alpha` finds the shift if

    .. math:: \Bigl\lvert\sum_i w_i (q_i - p_i)\Bigr\rvert \ge z_{1-\alpha/2} \sqrt{\sum_i w_i^2 p_i (1 - p_i)}
        + z_{0.8} \sqrt{\sum_i w_i^2 q_i (1 - q_i)}

    up to the normal approximation. A number is NaN if no shift is found, and both are if all predictions are 0 or 1, if
    fewer than 5 events, or 5 others, are expected, or if observations depend on each other.
    """
    from scipy.special import expit, logit, ndtri

    prob, weight = sample.expected, sample.weight_or_ones / sample.total_weight
    event = prob[:, 1] if sample.n_outcomes == 2 else prob.max(axis=1)
    rarer = min(weight @ event, weight @ (1 - event)) / np.square(weight).sum()
    if rarer < FEWEST_EXPECTED or sample.group is not None or sample.timing is not None:
        return math.nan, math.nan
    with np.errstate(divide="ignore"):
        logits = logit(event)
    critical = float(ndtri(1 - alpha / 2)) * math.sqrt(np.square(weight) @ (event * (1 - event)))
    more = float(ndtri(_POWER))
    sign, low, high = np.array([1.0, -1.0]), np.zeros(2), np.full(2, _LARGEST_SHIFT)
    for _ in range(_N_HALVINGS):
        middle = (low + high) / 2
        moved = expit(logits + (sign * middle)[:, None])
        needed = critical + more * np.sqrt((moved * (1 - moved)) @ np.square(weight))
        found = np.abs((moved - event) @ weight) >= needed
        low, high = np.where(found, low, middle), np.where(found, middle, high)
    differences = np.abs((expit(logits + (sign * high)[:, None]) - event) @ weight)
    up, down = np.where((high < _LARGEST_SHIFT) & (critical > 0), differences, math.nan).tolist()
    return up, down


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

    See Also
    --------
    caltest.subgroup_tests : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> subgroup = ["east", "west"] * 150
    >>> result = caltest.subgroup_tests(y_true, y_prob, subgroup=subgroup, n_resamples=99, rng=0)
    >>> result.subgroups, result.rejected
    (('east', 'west'), False)
    """

    subgroups: tuple[str, ...]

    _what: tuple[str, str] = ("subgroup", "subgroups")  # type: ignore[misc]
    _where: ClassVar[str] = " or fewer in each subgroup"

    @property
    def labels(self) -> tuple[str, ...]:
        """What distinguishes the tests: the subgroups."""
        return self.subgroups

    def with_tests(self, tests: Sequence[TestResult], labels: Sequence[str], **changes: Any) -> Self:
        """Return the table with other tests, of these subgroups; further fields are replaced."""
        return super().with_tests(tests, labels, subgroups=tuple(labels), **changes)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SegmentTests(SubgroupTests):
    """Result of `subgroup_tests` with ``depth=2``; iterates over its tests.

    Attributes
    ----------
    tests : tuple of TestResult
        One test for each segment, each with its own p-value.
    pvalue : float
        Global p-value of "calibrated within every segment": exact min-p over all segments, on the same draws.
    subgroups : tuple of str
        Name of each segment.
    rules : tuple of str
        How segments were made, and how many were too small or the same as others.
    detectable : tuple of (float, float)
        For each segment, by how much the event must be more frequent than predicted, and less, to be found with a power
        of 80 % after Bonferroni's correction; NaN where there is no such number, and with groups or times.
    correction : str
        "min-p", "holm" or "bonferroni".
    alpha, notes
        As in `CalibrationTable`.

    See Also
    --------
    caltest.subgroup_tests : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> subgroup = ["east", "west"] * 150
    >>> result = caltest.subgroup_tests(y_true, y_prob, subgroup=subgroup, depth=2, n_resamples=99, rng=0)
    >>> len(result.tests), result.rejected
    (2, False)
    """

    rules: tuple[str, ...]
    detectable: tuple[tuple[float, float], ...]
    _joint: tuple[tuple[float, ...], tuple[float, ...]] | None = None

    _what: tuple[str, str] = ("segment", "segments")  # type: ignore[misc]
    _where: ClassVar[str] = " or fewer in each segment"
    _more_columns: ClassVar[dict[str, str]] = {"found from, points": "{found_from}"}

    @cached_property
    def pvalue_adjusted(self) -> Floats:
        """P-values adjusted for the number of segments, ``(n_tests,)``: by min-p over all, on the same draws."""
        return super().pvalue_adjusted if self._joint is None else np.array(self._joint[0])

    def _smallest_adjusted(self, number: int) -> float:
        return super()._smallest_adjusted(number) if self._joint is None else self._joint[1][number]

    @property
    def _numerical_error(self) -> float:
        """Standard error of the smallest adjusted p-value, which comes from that of its own p-value."""
        first = self.tests[self.ranking[0]]
        return joint_error(self.pvalue_adjusted.min(), first.pvalue, first.numerical_error)

    @property
    def _adjusted_name(self) -> str:
        return super()._adjusted_name if self._joint is None else "p (min-p)"

    @property
    def _after(self) -> str:
        return super()._after if self._joint is None else "after the min-p adjustment"

    def with_tests(self, tests: Sequence[TestResult], labels: Sequence[str], **changes: Any) -> Self:
        """Refuse other tests: the adjusted p-values are those of the draws of these."""
        refuse("`depth=2` is for one model: leave out `folds`, and test the segments of each fold.")

    @property
    def all_notes(self) -> tuple[Note, ...]:
        """Cautions, without those of a few labels that vary little: one of 100 does so in each of many segments."""
        return tuple(note for note in super().all_notes if note.code != "C203")

    def means(self) -> list[dict[str, Any]]:
        """Return the averages of each segment, with simultaneous intervals and detectable differences.

        Returns
        -------
        list of dict
            As of `SubgroupTests`, with ``segment`` for its name, and ``detectable``.
        """
        rows = zip(super().means(), self.detectable, strict=True)
        return [row | {"detectable": found, "found_from": _points(*found)} for row, found in rows]

    def _average(self, number: int) -> Number:
        """Return the number that compares the averages; its interval holds for all segments together."""
        test = self.tests[number]
        return test._about.average(replace(test, alpha=self.alpha / len(self.tests)))

    @cached_property
    def ranking(self) -> list[int]:
        """The segments, that with the smallest adjusted p-value first, then by p-value and by difference."""
        keys = list(zip(self.pvalue_adjusted, (test.pvalue for test in self.tests), strict=True))
        return sorted(super().ranking, key=keys.__getitem__)

    @property
    def drawn_parts(self) -> list[int]:
        """The segments in a picture."""
        return self.ranking[:MOST_ROWS]

    def how_to_read(self) -> list[str]:
        """Say what the averages and intervals of the table are, and how segments were made."""
        name = self.tests[0]._about.average(self.tests[0]).name
        return [
            f"The tests look at all predictions of a segment, not at averages alone. In brackets: what is compatible "
            f"with the data, with {percent(1 - self.alpha)} confidence for all {len(self)} segments together ({name}).",
            "found from: by how many percentage points the event must be more frequent than predicted, and less, for a "
            f"test of the average at the level {percent(self.alpha)} / {len(self)} to find it in 80 of 100 cases.",
            *[f"Another seed changes the global p by about {self._numerical_error:.1g}."] * (self._joint is not None),
            *self.rules,
        ]

    def _record(self, number: int, test: TestResult) -> dict[str, Any]:
        average, (up, down) = self._average(number), self.detectable[number]
        predicted, observed = test._about.averages
        return super()._record(number, test) | {
            "predicted": predicted,
            "observed": observed,
            "average_low": average.interval[0] if average.interval else math.nan,
            "average_high": average.interval[1] if average.interval else math.nan,
            "detectable_above": up,
            "detectable_below": down,
        }


def _points(up: float, down: float) -> str:
    """Return two differences in percentage points; nothing for those that are not known."""
    signs = zip("+-", (up, down), strict=True)
    return ", ".join(f"{sign}{100 * each:.1f}" for sign, each in signs if not math.isnan(each))


@reads_arguments
def subgroup_tests(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    subgroup: Any,
    lens: LensLike | None = None,
    statistic: Statistic | str | None = None,
    folds: Any = None,
    correction: str | None = None,
    depth: int = 1,
    max_segments: int | None = None,
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
    correction : {"holm", "bonferroni", "holm-sidak", "sidak", "simes-hochberg", "hommel", "min-p"}, optional
        Over the subgroups; "holm" by default. Subgroups of one column share no
        observation and are independent given the predictions; those of several columns overlap, and only the first two
        are valid; so it is with ``folds``. "min-p", the default with ``depth=2`` and only there, compares the p-value
        of each segment with the smallest one of all segments in every draw, step by step (Westfall and Young 1993).
    depth : {1, 2}
        With 2 subgroups are segments, which columns make alone and two together: numbers with more than 8 different
        values are cut into four ranges with about as many observations each, other values are levels. Levels of fewer
        than 20 observations, and the rarest of more than 20, are one level, ranges of fewer are joined to a neighbour,
        and missing values are a level. Segments of fewer than 20 observations are left out, and those of the same
        observations are counted once. Names of columns, their order and labels decide nothing.
    max_segments : int, optional
        The largest number of segments, 300 by default. The smallest are left out, those of two columns first, and a
        note says how many. Only with ``depth=2``.
    n_resamples : int, optional
        Number of draws, all of which are made. By default 9,999; and for more than 5,000,000 predicted probabilities
        (observations times classes) at most 999, or as many as the correction needs, which stop after 100 exceedances.
    n_exceedances : int, optional
        Number of draws at least as extreme as the observed data after which the draws of a test stop, as in
        `calibration_test`. Every test, and the global p-value, stops separately; the draws end with the last one.

    Returns
    -------
    SubgroupTests
        Prints as a table; with ``depth=2`` a `SegmentTests`, whose intervals hold for all segments together. With
        ``folds``, its ``folds`` are the tables of the folds; a subgroup that a fold lacks is combined over the others.

    Raises
    ------
    TypeError
        If ``lens`` is no lens, ``statistic`` no statistic ``region`` no function or ``folds`` no array of
        integers or strings, or if ``subgroup`` holds what cannot be a label.
    ValueError
        If ``subgroup`` has another length than ``y_prob``, lacks a label or has two columns of the same name; if
        ``correction`` is unknown or needs independent subgroups, and these overlap or ``folds`` are given; if ``depth``
        is neither 1 nor 2, or 2 with ``folds``, or no segment has 20 observations; if ``max_segments`` < 1; if
        ``folds`` has another length, lacks a value, or holds one fold only or a different one for every observation; if
        ``y_prob`` has values outside [0, 1] or rows that do not sum to 1; if ``y_true`` holds other labels than the
        columns; if ``region`` holds no observation; if the statistic needs two outcomes and the lens returns more; if
        ``n_resamples`` or ``n_exceedances`` < 1, or ``alpha`` is not strictly between 0 and 1.

    Warns
    -----
    CalibrationWarning
        Before the work starts, if every subgroup holds observations of one class only, because subgroups must not be
        made from labels; or if no adjusted p-value can reach ``alpha`` with this number of draws. With ``depth=2``, if
        columns make no segments, or some are left out because there are too many.

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

    An error of old patients in the north only is found by segments of two columns:

    >>> age = rng.integers(20, 90, 2000)
    >>> y_true = rng.random(2000) < y_prob + 0.2 * ((site == "north") & (age > 73))
    >>> tests = caltest.subgroup_tests(y_true, y_prob, subgroup={"site": site, "age": age}, depth=2, rng=0)
    >>> len(tests), tests.subgroups[tests.ranking[0]]
    (14, 'site=north and age 74 to 89')
    """
    refuse_if(depth not in (1, 2), f"`depth` must be 1 or 2, got {depth!r}.")
    refuse_if(depth == 1 and max_segments is not None, "`max_segments` is for `depth=2`.")
    correction = correction or (JOINTLY if depth == 2 else "holm")
    if folds is not None:
        refuse_if(depth == 2, "`depth=2` is for one model: leave out `folds`, and test the segments of each fold.")
        validate_choice(correction, "correction", UNDER_ANY_DEPENDENCE)
        own = {"subgroup": subgroup, "lens": lens, "statistic": statistic, "correction": correction}
        return run_by_fold(subgroup_tests, y_true, y_prob, folds, **own, **options)
    prob, outcome = validate_problem(y_true, y_prob, options["classes"])
    chosen = validate_statistic(Omnibus() if statistic is None else statistic)
    look = default_lens(chosen, prob.shape[1]) if lens is None else lens
    if depth == 1:
        names, members, overlap = subgroup_members(subgroup, len(prob))
        validate_choice(correction, "correction", UNDER_ANY_DEPENDENCE + (() if overlap else UNDER_INDEPENDENCE))
    else:
        most = MOST_SEGMENTS if max_segments is None else validate_count(max_segments, "max_segments")
        validate_choice(correction, "correction", (JOINTLY, *UNDER_ANY_DEPENDENCE))
    base = induce(prob, outcome, **design_of(options, len(prob)))
    whole = LensView.of(look, prob, outcome, base)
    segments = None
    if depth == 1:
        names, members = _inside(options["region"], whole, names, members)
    else:
        segments = Segments.of(subgroup, _counted(options["region"], whole, len(prob)), most)
        names, members = segments.names, segments.members
    views = [whole.take(np.flatnonzero(inside[whole.sample.row])) for inside in members]
    for name, view in zip(names, views, strict=True):
        if not view.sample.n_samples:
            refuse(f"every subgroup must hold an observation of positive weight, got none in {name!r}.")
    questions, looks = [Question(chosen, view) for view in views], [look] * len(names)
    notes = [*_label_notes(members, outcome), *(segments.notes if segments else ())]
    how: dict[str, Any] = {"stopping": stopping_of_tests(len(names), options, prob.size), "notes": notes}
    found = ask_together(questions, base, Consistency(), looks, options=options, correction=correction, **how)
    n_samples = int(np.count_nonzero(np.any(members, axis=0)[whole.sample.row]))
    kept: dict[str, Any] = {"correction": correction, "subgroups": tuple(names), "_n_samples": n_samples}
    if segments is None:
        return noting_correlation(SubgroupTests(**found, **kept), base, options)
    joint = (found.pop("adjusted"), found.pop("smallest_adjusted")) if correction == JOINTLY else None
    detectable = tuple(detectable_differences(view.sample, options["alpha"] / len(views)) for view in views)
    tests = SegmentTests(**found, **kept, rules=segments.rules, detectable=detectable, _joint=joint)
    return noting_correlation(tests, base, options)


def _counted(region: Region | None, whole: LensView, n_samples: int) -> Booleans:
    """Return which observations have weight and lie in a region."""
    inside = inside_region(region, whole.sample.given)
    counted = np.zeros(n_samples, dtype=bool)
    counted[whole.sample.row if inside is None else whole.sample.row[inside]] = True
    return counted


def _inside(
    region: Region | None, whole: LensView, names: list[str], members: list[Booleans]
) -> tuple[list[str], list[Booleans]]:
    """Return the subgroups that have observations in a region, without those outside."""
    if region is None:
        return names, members
    kept = _counted(region, whole, len(members[0]))
    found = [(name, held & kept) for name, held in zip(names, members, strict=True) if (held & kept).any()]
    return [name for name, _ in found], [held for _, held in found]


def _label_notes(members: Sequence[Booleans], outcome: Integers) -> list[Note]:
    """Return a note if the subgroups determine every label: they must depend on predictions and covariates only."""
    several = [outcome[inside] for inside in members if np.count_nonzero(inside) > 1]
    if not several or len(np.unique(outcome)) == 1 or any((labels != labels[0]).any() for labels in several):
        return []
    text = (
        "Every subgroup holds observations of one class only. If `subgroup` was made from labels, no p-value is valid. "
        "Make subgroups from predictions or covariates."
    )
    return [Note("C204", text)]


def levels_of_columns(columns: Mapping[str, NDArray[Any]], n_ranges: int = 4) -> dict[str, dict[str, Booleans]]:
    """Return for each column the names of its levels and the observations of each."""
    found = {}
    for name, column in columns.items():
        levels, code = levels_of(name, column, n_ranges)
        found[name] = {level: code == number for number, level in enumerate(levels)}
    return found


def judge_levels(
    y_true: ArrayLike, y_prob: ArrayLike, levels: Mapping[str, Mapping[str, Booleans]], **options: Any
) -> SubgroupTests:
    """Return `subgroup_tests` of the levels of columns, without the name of a column before those of its levels."""
    import pandas as pd

    columns = {
        name: pd.Categorical.from_codes(np.argmax(list(members.values()), axis=0), list(members))
        for name, members in levels.items()
    }
    index = next((each for each in map(index_of, (y_true, y_prob)) if each is not None), None)
    table = pd.DataFrame(columns, index=index)
    found = subgroup_tests(y_true, y_prob, subgroup=table, **options)
    short = {f"{name}={level}": level for name, members in levels.items() for level in members}
    return _renamed(found, short)


def _renamed(tests: SubgroupTests, names: Mapping[str, str]) -> SubgroupTests:
    folds = tuple(_renamed(fold, names) for fold in tests.folds)
    return tests.with_tests(tests.tests, [names[name] for name in tests.subgroups], folds=folds)
