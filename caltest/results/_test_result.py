"""Results of hypothesis tests: one class for all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from caltest.results._component_result import ComponentResult, components_table, numbers_line
from caltest.results._decision import Decision, align_pvalue, cannot_decide, equate_pvalue, rejects, show_pvalue
from caltest.results._description import Description, Table, counted, join, sized
from caltest.results._finding import Finding, Subject
from caltest.results._note import PAGE, Note
from caltest.results._other_names import answer_attribute
from caltest.results._verdict import Verdict

if TYPE_CHECKING:
    import pandas as pd

Extended = TypeVar("Extended", bound="TestResult")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TestResult(Decision, ComponentResult):
    """Result of a hypothesis test; unpacks as ``statistic, pvalue``.

    With cross-validation folds each fold is tested separately, and its test is one of ``folds``. Their predictions are
    those of different models, so that there is no statistic of all observations: ``statistic`` is -log10 of the
    smallest p-value of the folds, ``pvalue`` the number of folds times this p-value, at most 1 (Bonferroni; valid under
    any dependence between the folds), and ``l2_error`` is None.

    Attributes
    ----------
    test_statistic, statistic, pvalue, null, derived
        Of the statistic; for a combination of statistics -log10 of the smallest p-value of its components. Derived
        numbers are attributes too: ``result.slope`` is ``result.derived["slope"]``.
    title : str
        What was tested.
    lens : lens
        What was looked at, as an object.
    lens_name : str
        What was looked at, in words.
    lens_short_name : str or None
        The same in a table of similar lenses.
    n_samples, n_outcomes : int
        Number of observations, and of outcomes behind the lens.
    components : tuple of ComponentResult
        The combined statistics; for a single statistic the one itself; with folds the test of each fold.
    method : str
        How the null distribution was found: "monte-carlo", "random-signs", "all-signs", "alike-labels",
        "timed-labels", "shared-shocks", "exact", "upper-bound", "asymptotic" or "distribution-free". If "all-signs", it
        consists of all arrangements of the signs of few groups, and nothing was drawn. If "upper-bound", the exact
        p-value is below 1e-12 and ``pvalue`` is Chernoff's or another upper bound of it; if "distribution-free", the
        null distribution is not known and ``pvalue`` is an upper bound too. With folds it is that of the fold with the
        smallest p-value.
    numerical_error : float
        Standard error of the p-value due to the number of draws, or error of a computed p-value; NaN for a limit
        distribution, whose error is not known. If several statistics are combined, the p-value is taken as that of the
        smallest of so many independent tests as it comes from, so that the error is approximate.
    hypothesis : str
        The null hypothesis.
    of_calibration : bool
        Whether it is calibration, not another calibration function.
    origin : str
        Where the null distribution comes from.
    conditions : tuple of Note
        When the p-value is valid.
    alpha : float
        Level of the conclusion.
    smallest_possible_pvalue : float
        The p-value of the most extreme data: 1 / (B + 1) with B draws, and with G groups at least :math:`2^{1-G}` for a
        statistic that has the same value for opposite signs. If it is above ``alpha``, the data cannot decide.
    decision : {"rejected", "not rejected", "undecidable"}
        The decision at the level ``alpha``; "undecidable" if no p-value as small as ``alpha`` was possible.
    score : float or None
        Signed value of the statistic that shows the direction: negative means over-confident.
    findings : tuple of Finding
        What is wrong, if the hypothesis is rejected: of an event whether predictions are too high or too low on
        average, too extreme or not extreme enough, or wrong in a range; of several classes whether the model is
        over-confident or under-confident, and which totals are wrong. Each is significant after adjustment for the
        others that could have been named; with folds a slope or a range is also found in a single fold, after
        Bonferroni's correction for their number. ``direction`` is the kind of that about the average, or of the first
        one, or None; with folds and without findings it is that of the folds that reject after Holm's correction, if
        it is the same in all of them.
    n_expected : float
        Expected number of the rarer one of events and other observations (of right and wrong predictions for several
        classes), or with groups the number of those that have a label other than the most probable one, in units of
        groups of equal size, if that is smaller. With fewer than 5 a test that does not reject is undecidable.
    n_groups : int or None
        Number of groups of observations, if only groups are independent.
    weighted : bool
        Whether the observations have weights.
    impossible_samples : array of int
        Observations whose label had been given probability 0; if there are any, the p-value is the smallest possible.
    notes : tuple of Note
        Cautions.
    fold_names : tuple of str
        The id of each fold; empty without folds.
    pvalue_adjusted : array of shape (n_folds,)
        P-values of the folds, Holm-adjusted for their number; the smallest is ``pvalue``.

    See Also
    --------
    caltest.calibration_test : A test that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel, Temperature
    >>> _, y_true, y_prob = DirichletModel(2, truth=Temperature(2.0)).draw(300, rng=0)
    >>> result = caltest.calibration_test(y_true, y_prob, n_resamples=99, rng=0)
    >>> statistic, pvalue = result
    >>> pvalue, result.decision, result.direction
    (0.01, 'rejected', 'too extreme')
    """

    __test__: ClassVar[bool] = False  # not a test of pytest

    title: str
    lens: Any
    lens_name: str
    n_samples: int
    n_outcomes: int
    components: tuple[ComponentResult, ...]
    method: str
    numerical_error: float
    hypothesis: str
    origin: str
    of_calibration: bool = True
    lens_short_name: str | None = None
    conditions: tuple[Note, ...] = ()
    alpha: float = 0.05
    smallest_possible_pvalue: float = 0.0
    score: float | None = None
    n_groups: int | None = None
    weighted: bool = False
    impossible_samples: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    notes: tuple[Note, ...] = ()
    fold_names: tuple[str, ...] = ()
    pvalue_adjusted: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    _evidence: Any = field(default=None, repr=False)  # `Evidence` of hypothesis_tests

    _left_out: ClassVar[frozenset[str]] = ComponentResult._left_out | {"of_calibration", "lens_short_name"}
    _of_folds: ClassVar[frozenset[str]] = frozenset({"fold_names", "pvalue_adjusted"})
    _derived: ClassVar[tuple[str, ...]] = (
        *("noise_floor", "noise_interval", "n_resamples", "decision", "conclusion", "l2_error"),
        *("n_expected", "findings", "direction"),
    )

    def __getattr__(self, name: str) -> Any:
        """Return a derived number, such as ``result.slope`` of a Cox test."""
        derived = self.__dict__.get("derived", {})
        if name in derived:
            return derived[name]
        raise AttributeError(answer_attribute(type(self), name), name=name, obj=self)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.derived})

    @property
    def folds(self) -> tuple[TestResult, ...]:
        """The test of each fold; empty without folds."""
        return self.components if self.fold_names else ()  # type: ignore[return-value]

    @property
    def _is_drawn(self) -> bool:
        return not self.fold_names and all(part.null is not None for part in self.components)

    @property
    def n_resamples(self) -> int:
        """Number of draws, with folds in each fold; 0 if nothing was drawn."""
        if self.fold_names:
            return max(fold.n_resamples for fold in self.folds)
        drawn = self.null_distribution is not None and self.method != "all-signs"
        return len(self.null.values) if drawn else 0  # type: ignore[attr-defined]

    @property
    def conclusion(self) -> str:
        """The decision in words."""
        return self._verdict().conclusion

    @cached_property
    def verdict(self) -> Verdict:
        """What is wrong, the decision, how large the error is, and what to do."""
        return self._verdict() if self._about is None else replace(self._verdict(), **self._about.numbers_of(self))

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong, if the hypothesis is rejected."""
        if self._about is None or not self.rejected:
            return ()
        found: tuple[Finding, ...] = self._about.findings(self)
        return tuple(filter(None, map(self._in_a_fold, found))) if self.fold_names else found

    def _in_a_fold(self, finding: Finding) -> Finding | None:
        """Return what is wrong in all folds together; of slope and ranges only what a single fold shows as well.

        Labels of one fold have made the predictions of the others. That leaves the intervals of averages as they are
        (in 1,800 data sets those at 97.5 % missed 2 to 3 %), but not those of slopes (2 to 12 %).
        """
        if finding.of_average or finding.kind == "totals":
            return finding
        pvalues = (
            each.pvalue
            for fold in self.folds
            for each in fold.findings
            if each.kind == finding.kind or (each.place and finding.place)
        )
        pvalue = len(self.folds) * min(pvalues, default=1.0)
        return replace(finding, pvalue=pvalue) if rejects(pvalue, self.alpha) else None

    @property
    def n_expected(self) -> float:  # type: ignore[override]
        """Expected number of the rarer one of events and other observations; infinite where it is not counted."""
        return math.inf if self._about is None else self._about.n_expected

    @property
    def _about(self) -> Any:
        """What is known of the predictions, if it is calibration that is tested."""
        return self._evidence if self.of_calibration else None

    @property
    def _in_time(self) -> bool:
        """Whether simulated labels share shocks of time."""
        return any(one.method in {"timed-labels", "shared-shocks"} for one in self.folds or (self,))

    def _verdict(self) -> Verdict:
        """Return the verdict without what is not needed for its sentences and may take time."""
        calibrated = "that the models are calibrated" if self.fold_names else "that the model is calibrated"
        undecidable, details, parts = "", list[str](), list[str]()
        if self._about is not None and not self.fold_names and rejects(self.smallest_possible_pvalue, self.alpha):
            few = self._about.too_few
            undecidable = few and f"It cannot be told whether these predictions are right: {few} ({self._p})."
        if self.fold_names:
            smallest, numbers = self.smallest_possible_pvalue, f"{self._p}, {self._size}"
            if not rejects(smallest, self.alpha):
                undecidable = cannot_decide_by_fold(self.folds, smallest, self.alpha, numbers=numbers)
            if self.rejected:
                details = [rejecting(self.rejecting_folds, len(self.folds))]
                found = findings_of_parts(self._folds_that_reject, self.rejecting_folds, _of_fold)
                parts = [finding.brief for finding in found[:NAMED]]
        return Verdict(
            pvalue=self.pvalue,
            alpha=self.alpha,
            smallest_possible_pvalue=self.smallest_possible_pvalue,
            hypothesis=self._subject,
            proof=calibrated if self.of_calibration else "it",
            n_samples=self.n_samples,
            n_groups=self.n_groups,
            weighted=self.weighted,
            n_outcomes=self.n_outcomes,
            n_resamples=self.n_resamples,
            p=self._p,
            bound=self.method in {"distribution-free", "upper-bound"} or bool(self.fold_names),
            least=self._smallest,
            findings=self.findings,
            cautions=self.notes,
            details=tuple(details),
            parts=() if self.findings else tuple(parts),
            n_folds=len(self.fold_names),
            undecidable=undecidable,
            **({} if self._about is None else self._about.sums_of(self)),
        )

    @property
    def direction(self) -> str | None:
        """What is wrong in a word, if that is beyond doubt."""
        if self.fold_names and not self.findings:
            first, *others = [fold._kinds for fold in self._folds_that_reject] or [()]
            return next((kind for kind in first if all(kind in kinds for kinds in others)), None)
        return next(iter(self._kinds), None)

    @property
    def _kinds(self) -> tuple[str, ...]:
        """The kinds of the findings, that about the average first."""
        averages = [finding for finding in self.findings if finding.of_average]
        return tuple(dict.fromkeys(finding.kind for finding in (*averages, *self.findings)))

    def __getstate__(self) -> dict[str, Any]:
        """A pickle has the verdict, which needs the observations that it lacks."""
        return {**self.without_observations(), "verdict": self.verdict}

    def without_observations(self) -> dict[str, Any]:
        """Return the attributes with the findings, but without a verdict that has not been asked for."""
        return {**vars(self), "findings": self.findings}

    @property
    def rejecting_folds(self) -> list[str]:
        """The folds that reject after Holm's correction for their number."""
        return list(compress(self.fold_names, rejects(self.pvalue_adjusted, self.alpha)))

    @property
    def _folds_that_reject(self) -> list[TestResult]:
        return list(compress(self.folds, rejects(self.pvalue_adjusted, self.alpha)))

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain Python objects, ready for strict JSON; infinities and NaN become None.

        Returns
        -------
        dict
            Fields and derived numbers by name; with folds, ``components`` has an entry for each fold. Large arrays such
            as null distributions are left out.
        """
        content = super().to_dict()
        for name in ("noise_floor", "noise_interval", "l2_error") if self.fold_names else ():
            del content[name]
        parts = zip(self.fold_names, content["components"], strict=False)
        return content | {"components": [{"fold": name, **part} for name, part in parts] or content["components"]}

    def to_frame(self) -> pd.DataFrame:
        """Return the result as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            One row; with folds one for each: fold, number of observations, statistic with its noise floor, p-value,
            Holm-adjusted p-value, direction and l2 error with its interval.
        """
        import pandas as pd

        if not self.fold_names:
            return super().to_frame()
        return pd.DataFrame(
            [
                fold_record(name, fold) | {"pvalue_adjusted": adjusted}
                for name, fold, adjusted in zip(self.fold_names, self.folds, self.pvalue_adjusted, strict=True)
            ]
        )

    @property
    def l2_error(self) -> Any:
        """The size of the miscalibration: `l2_interval` of the same problem; None where it is not defined."""
        return None if self._evidence is None or self.fold_names else self._evidence.interval

    def extend(self, kind: type[Extended], /, **more: Any) -> Extended:
        """Return the result as one of a kind that may carry more; fields that are named are replaced."""
        return kind(**{f.name: getattr(self, f.name) for f in fields(TestResult)} | more)

    @property
    def _subject(self) -> str:
        subject = "Calibration" if self.of_calibration else "The hypothesis"
        return f"{subject} of the models of {len(self.folds)} folds" if self.fold_names else subject

    @property
    def _size(self) -> str:
        return sized(self.n_samples, self.n_groups, weighted=self.weighted)

    @property
    def _p(self) -> str:
        if self.fold_names:
            return equate_pvalue(self.pvalue, name="combined p")
        if self.method == "distribution-free":
            return f"p is at most {show_pvalue(self.pvalue)}"
        return equate_pvalue(self.pvalue, bound=self.method == "upper-bound")

    @property
    def _smallest(self) -> str:
        draws = counted(self.n_resamples, "draw")
        if self.fold_names:
            few = self.n_resamples and self.pvalue * (self.n_resamples + 1) <= len(self.folds) + 0.5
            return f", the smallest possible with {draws} in each of {len(self.folds)} folds" if few else ""
        if self.method == "all-signs":
            few = self.pvalue <= self.smallest_possible_pvalue
            return f", the smallest p-value possible with {self.n_groups} groups" if few else ""
        if not self.n_resamples or self.pvalue * (self.n_resamples + 1) > 1.5:
            return ""
        return f", the smallest p-value possible with {draws}"

    @property
    def _full_name(self) -> str:
        """The statistic with its parameters; a combination is named by its class."""
        name: str = self.test_statistic.name if len(self.components) > 1 else self.test_statistic.brief
        return name

    def _describe(self) -> Description:
        return self.described(self.verdict)

    def described(self, verdict: Verdict) -> Description:
        """Return what is shown, with a verdict that may name the file."""
        size = self._size if not self.fold_names else in_folds(self._size, len(self.folds))
        size = f"{size}, {self.n_outcomes} outcomes"
        title = f"{self.title} ({self.test_statistic.name}, {self.lens_name}, {size})"
        more: dict[str, Any] = {"tables": self._tables(), "remarks": self._remarks(), "notes": self.notes}
        return verdict.described(title, [verdict.conclusion, *self._sizes()], **more)

    def _sizes(self) -> list[str]:
        """Say how large the miscalibration is; with folds it is that of several models."""
        if self.fold_names:
            return []
        size = self.l2_error
        if size is None or self.verdict.size is not None:  # as a number of the answer
            return self._usual_size()
        said = size.conclusion if self.of_calibration else f"Of the predictions as they are, {size.clause}"
        return [said, *self._usual_size()]

    def _usual_size(self, name: str = "") -> list[str]:
        """Say what chance makes of the first statistic, by its name or another one."""
        first = self.components[0]
        if not math.isfinite(first.noise_floor):
            return []
        name = name or first.test_statistic.name
        kind = "a calibrated model" if self.of_calibration else "a model as in the hypothesis"
        each, under_null = _DRAWN.get(self.method, ("data sets", f"{kind} with these predictions has"))
        return [
            f"{name} {first.statistic:.4g}; {under_null} {first.noise_floor:.4g} on average and at most "
            f"{first.null.quantile(0.95):.4g} in 95 % of {each}."
        ]

    def _tables(self) -> list[Table]:
        if self.fold_names:
            return [self._table_of_folds()]
        return [components_table(self.components, bound=self.method == "upper-bound")]

    def _table_of_folds(self) -> Table:
        head = ("fold", "n", "statistic", "l2 error (95 % interval)", "p-value", "p (Holm)", "direction")
        rows = [
            (
                name,
                f"{fold.n_samples:,}",
                *size_in_fold(fold),
                align_pvalue(fold.pvalue),
                align_pvalue(adjusted),
                short_direction(fold.direction if rejects(adjusted, self.alpha) else None),
            )
            for name, fold, adjusted in zip(self.fold_names, self.folds, self.pvalue_adjusted, strict=True)
        ]
        return Table(head, rows, left=("direction",))

    def _remarks(self) -> list[str]:
        known = self.method != "upper-bound" and not math.isnan(self.numerical_error)
        error = f"; numerical error of p {self.numerical_error:.1g}" if known else ""
        origins = [f"Null distribution: {self.origin}{error}."]
        if self.fold_names:
            error = "" if math.isnan(self.numerical_error) else f" Numerical error of p: {self.numerical_error:.1g}."
            origins = [
                f"P-value: {self.origin}.{error}",
                f"Null distribution in a fold: {self.folds[0].origin}.",
                "There is no statistic of all observations, because the predictions of different folds are those of "
                "different models.",
            ]
        valid = [f"Valid if {note.text} [{note.code}: {PAGE}]" for note in self.conditions]
        return [*self._numbers(), f"Hypothesis: {self.hypothesis}.", *origins, *valid]

    def _numbers(self) -> list[str]:
        """Name the derived numbers of each statistic; those of a fold are in its own test."""
        parts = () if self.fold_names else self.components
        return [line for part in parts if (line := numbers_line(part.test_statistic, part.derived))]


def cannot_decide_by_fold(
    tests: Sequence[TestResult], smallest: float, alpha: float, *, numbers: str, name: str = "combined p-value"
) -> str:
    """Return the conclusion of tests in folds, none of which could have rejected."""
    groups = [test.n_groups for test in tests if test.n_groups is not None]
    return cannot_decide(
        smallest,
        alpha,
        numbers=numbers,
        n_groups=max(groups, default=None),
        n_resamples=0 if groups else max(test.n_resamples for test in tests),
        name=name,
        where=" or fewer in each fold",
    )


def in_folds(size: str, n_folds: int) -> str:
    """Return a number of observations in words, with that of their folds."""
    return f"{size} {'and' if ' in ' in size else 'in'} {n_folds} folds"


def rejecting(found: Sequence[str], n_folds: int) -> str:
    """Say which folds reject."""
    if len(found) == n_folds:
        return "Each single fold rejects after Holm's correction."
    verb = "rejects" if len(found) == 1 else "reject"
    return f"{len(found)} of the {n_folds} single folds {verb} after Holm's correction: {join(found)}."


def findings_of_parts(
    tests: Sequence[TestResult], names: Sequence[str], about: Callable[[Subject, str], Subject]
) -> list[Finding]:
    """Return what is wrong first in each part of the data that rejects, the smallest p-value first.

    ``about`` returns what sentences about a part speak of, from what they speak of in its test, and its name.
    """
    order = sorted(range(len(tests)), key=lambda number: tests[number].pvalue)
    found = ((tests[number].findings[0], names[number]) for number in order if tests[number].findings)
    return [replace(one, subject=about(one.subject, name)) for one, name in found]


def _of_fold(subject: Subject, name: str) -> Subject:
    return replace(subject, within=f"fold {name}")


_DRAWN = {
    "random-signs": ("draws", "with random signs of the groups it is"),
    "all-signs": ("arrangements", "with random signs of the groups it is"),
    "alike-labels": ("draws", "with labels that are alike within groups it is"),
    "timed-labels": ("draws", "with labels that share shocks of time it is"),
    "shared-shocks": ("draws", "with labels that share shocks of time it is"),
}
NAMED = 3
"""Parts of which a conclusion says what is wrong."""


_SHORT = {"over-confident": "over", "under-confident": "under"}


def short_direction(direction: str | None) -> str:
    """Return a direction in short: "over" or "under", "too low" or "too high"; "" without one."""
    return _SHORT.get(direction or "", direction or "")


def size_in_fold(fold: TestResult) -> tuple[str, str]:
    """Return the statistic of a fold, and its l2 error with the interval, as text."""
    return f"{fold.statistic:.4g}", "" if fold.l2_error is None else fold.l2_error.root_text


def fold_record(name: str, fold: TestResult) -> dict[str, Any]:
    """Return the numbers of the test of a fold by name."""
    size = fold.l2_error
    error = (math.nan,) * 3 if size is None else (size.root, *size.root_interval)
    own = {each: getattr(fold, each) for each in ("n_samples", "statistic", "noise_floor", "pvalue", "direction")}
    return {"fold": name, **own, **dict(zip(("l2_error", "l2_low", "l2_high"), error, strict=True))}
