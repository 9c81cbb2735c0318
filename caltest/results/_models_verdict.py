"""The verdict of a comparison: which models are better calibrated than which, by how much, and how that is said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from caltest.results._base import ConfidenceInterval, Result
from caltest.results._decision import FEWEST_EXPECTED, DecisionWord, align_pvalue, equate_pvalue, rejects, too_few
from caltest.results._description import Description, Table, join, percent, sized
from caltest.results._finding import Number, Subject
from caltest.results._verdict import Verdict

UNNAMED = "model A", "model B"
"""Names of two models that have none."""
_MOST = 3  # pairs, or groups of models, with a sentence each; others are counted
_MOST_PAIRS = 10  # in the table of an answer
_DIGITS, _MOST_DIGITS = 1, 3
_LARGEST = 100.0  # points; a larger error is possible with several classes only
_TYPICAL = "Typical error: the root mean square of the errors of a model, in percentage points; 0 if it is calibrated."

DifferenceKind = Literal["better calibrated", "opposite in folds", "not told apart", "undecidable"]
_SHOWN = {"better calibrated", "opposite in folds"}


def typical_error(name: str, error: float, interval: ConfidenceInterval | None = None) -> Number:
    """Return the root of a squared error in percentage points; only the upper end where the interval begins at 0.

    Examples
    --------
    >>> typical_error("a", 0.0238, ConfidenceInterval(0.0163, 0.0312)).shown
    '2.4 points (1.6 to 3.1)'
    >>> typical_error("a", 0.0, ConfidenceInterval(0.0, 0.07)).shown, typical_error("a", 0.05).shown
    ('up to 7.0 points', '5.0 points')
    """
    points = None if interval is None else ConfidenceInterval(*(100 * end for end in interval))
    number = Number(name=name, estimate=100 * error, interval=points, shown="")
    if points is None or _is_bound(number):
        said = f"{in_points(number)} points".replace("at most", "up to")  # in a table
        shown = said if points is None or points.high < _LARGEST else "not known"
    else:
        shown = _with_ends(number.estimate, points)
    return Number(name=name, estimate=100 * error, interval=points, shown=shown)


def in_points(number: Number, digits: int = _DIGITS) -> str:
    """Return a typical error without its unit: "2.4", "at most 7.0", or "about 0" without an interval."""
    if number.interval is None and number.estimate <= 0:
        return "about 0"
    return f"{'at most ' if _is_bound(number) else ''}{_shown(number):.{digits}f}"


def _is_bound(number: Number) -> bool:
    """Whether the interval of an error begins at 0, so that only its end is known."""
    return number.interval is not None and number.interval.low <= 0


def _shown(number: Number) -> float:
    """Return the number that is printed first."""
    return number.interval.high if number.interval is not None and _is_bound(number) else number.estimate


def points_apart(estimate: float, interval: ConfidenceInterval) -> Number:
    """Return a difference of errors in percentage points, with its interval; without a sign where 0 is in it.

    Examples
    --------
    >>> points_apart(3.2, ConfidenceInterval(1.0, 5.4)).shown, points_apart(0.5, ConfidenceInterval(-1.0, 2.1)).shown
    ('3.2 points (1.0 to 5.4)', 'up to 2.1 points')
    """
    low, high = interval
    far = max(abs(low), abs(high))
    shown = _with_ends(estimate, interval) if low > 0 else f"up to {far:.1f} points"
    return Number(
        name="difference", estimate=estimate, interval=interval, shown=shown if far < _LARGEST else "not known"
    )


def _with_ends(estimate: float, interval: ConfidenceInterval) -> str:
    """Return a size in points with its interval, with as many of three decimals as show that it excludes 0."""
    digits = next((d for d in range(_DIGITS, _MOST_DIGITS) if round(interval.low, d) > 0), _MOST_DIGITS)
    return f"{estimate:.{digits}f} points ({interval.low:.{digits}f} to {interval.high:.{digits}f})"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ModelDifference(Result):
    """What the comparison of two models found.

    Attributes
    ----------
    kind : str
        "better calibrated" (the first model), "opposite in folds" (each is better in some), "not told apart", or
        "undecidable" (too few data or draws).
    models : tuple of str
        The names of the two models.
    errors : tuple of Number
        Their typical errors, in percentage points; empty with folds, whose models differ.
    difference : Number or None
        Error of the second model minus that of the first, in percentage points; None with folds.
    pvalue : float
        Adjusted for the other pairs that could have been named.
    p_name : str
        What the p-value is called: "p", "adjusted p" or "combined p".
    n : int
        Number of observations; of two data sets that of the larger one.
    folds : tuple of str
        The folds that show the difference.

    See Also
    --------
    ModelsVerdict : Holds such findings.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(3).draw(300, rng=0)
    >>> models = {"as it is": y_prob, "flat": 0.5 * y_prob + 0.5 / 3}
    >>> comparison = caltest.compare_models(y_true, models, n_resamples=99, rng=0)
    >>> finding = comparison.pairs[0].finding
    >>> finding.kind, finding.models
    ('not told apart', ('as it is', 'flat'))
    """

    kind: DifferenceKind
    models: tuple[str, str]
    errors: tuple[Number, ...] = ()
    difference: Number | None = None
    pvalue: float
    p_name: str = "adjusted p"
    n: int
    folds: tuple[str, ...] = ()

    _derived: ClassVar[tuple[str, ...]] = ("sentence",)

    @property
    def better(self) -> str | None:
        """The name of the model that is shown to be better calibrated; None if there is none."""
        return self.models[0] if self.kind == "better calibrated" else None

    @property
    def sentence(self) -> str:
        """What was found about these two models."""
        (first, second), p = self.models, equate_pvalue(self.pvalue, name=self.p_name)
        if self.kind == "better calibrated":
            return _better([first], [second], [self], self.errors)
        if self.kind == "opposite in folds":
            return f"{first} and {second} differ in calibration{self.place}, in different directions ({p})."
        if self.kind == "undecidable":
            return f"Whether {first} and {second} differ in calibration cannot be told ({p})."
        return f"{first} and {second} cannot be told apart in calibration ({p})."

    @property
    def place(self) -> str:
        """The folds that show it; empty without folds."""
        return f" in fold{'s' if len(self.folds) > 1 else ''} {join(self.folds)}" if self.folds else ""

    def _describe(self) -> Description:
        return Description("Difference of two models", [self.sentence])


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ModelsVerdict(Verdict):
    """What a comparison found: which models are better calibrated, how large their errors are, and what to do.

    Attributes
    ----------
    findings : tuple of ModelDifference
        The pairs that differ significantly, after adjustment for their number.
    others : tuple of ModelDifference
        The pairs of which no difference is shown.
    numbers : tuple of Number
        The typical error of each model, in percentage points; empty with folds.
    size : Number or None
        The largest difference that is shown.
    names : tuple of str
        Names of the models, that with the smallest error first.
    calibration : dict of str to str
        The decision about the calibration of each model, adjusted for the number of models; may be empty.
    p_of_calibration : dict of str to float
        Adjusted p-values of calibration.
    unknown : str
        Why it cannot be told whether the models are calibrated whose decision is "undecidable".
    n_folds : int
        Number of folds; 0 without.
    n_windows : float or None
        How many times the lead forecasts in time span.
    paired : bool
        Whether all models have the same observations.

    See Also
    --------
    caltest.compare_models : The comparison that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(3).draw(300, rng=0)
    >>> models = {"as it is": y_prob, "flat": 0.5 * y_prob + 0.5 / 3}
    >>> comparison = caltest.compare_models(y_true, models, n_resamples=99, rng=0)
    >>> verdict = comparison.verdict
    >>> verdict.names, verdict.decision
    (('as it is', 'flat'), 'not rejected')
    """

    findings: tuple[Any, ...] = ()
    others: tuple[ModelDifference, ...] = ()
    names: tuple[str, ...]
    calibration: Mapping[str, DecisionWord]
    p_of_calibration: Mapping[str, float]
    unknown: str = ""
    n_folds: int = 0
    n_windows: float | None = None
    paired: bool = True

    _left_out: ClassVar[frozenset[str]] = Verdict._left_out | {
        *("hypothesis", "proof", "weighted", "n_outcomes", "n_observed", "predicted", "observed", "frequency"),
        *("streamed", "certain", "p", "bound", "least", "where", "impossible", "detectable", "details", "undecidable"),
    }

    @classmethod
    def of_pairs(cls, pairs: Sequence[ModelDifference], **further: Any) -> Self:
        """Return the verdict of what was found about each pair."""
        shown = [one for one in pairs if one.kind in _SHOWN]
        sizes = [one.difference for one in shown if one.difference is not None]
        return cls(
            findings=tuple(shown),
            others=tuple(one for one in pairs if one.kind not in _SHOWN),
            size=max(sizes, key=lambda number: number.estimate, default=None),
            **further,
        )

    def sentences(self, *, brief: bool = False) -> list[str]:
        """Return which models are better calibrated than which, and of which calibration is rejected."""
        of = ", of pairs and of folds" if self.n_folds else " and of pairs"
        adjusted = f", adjusted for the numbers of models{of}" if self.calibration else ""
        level = [] if brief else [f"Decisions are made at the {percent(self.alpha)} level{adjusted}."]
        said = [*self._differences(), *self._about_calibration(), *level]
        return [f"M{words[1:]}" if words.startswith(UNNAMED) else words for words in said]

    def _differences(self) -> list[str]:
        """Say which models are better calibrated than which, and which cannot be told apart."""
        if not self.findings:
            return [self._cannot_compare()] if self.decision == "undecidable" else [*self._none_better()]
        said = [*self._better_ones(), *(one.sentence for one in self.findings if one.better is None)]
        if len(self.others) <= _MOST:
            return [*said, *(one.sentence for one in self.others)]
        return [*said, f"{len(self.others)} of the {self._n_pairs} pairs cannot be told apart in calibration."]

    @property
    def _n_pairs(self) -> int:
        return len(self.findings) + len(self.others)

    def _better_ones(self) -> Iterator[str]:
        """Say which models are better than which others; those that are better than the same ones together."""
        worse: dict[str, set[str]] = {}
        for one in self.findings:
            if one.better is not None:
                worse.setdefault(one.better, set()).add(one.models[1])
        groups: dict[frozenset[str], list[str]] = {}
        for name in filter(worse.__contains__, self.names):
            groups.setdefault(frozenset(worse[name]), []).append(name)
        best = next((beaten for beaten in groups if len(beaten) == len(self.names) - 1), None)
        counted_only = len(groups) > _MOST
        for beaten, winners in groups.items():
            if not counted_only or beaten == best:
                found = [one for one in self.findings if one.better in winners and one.models[1] in beaten]
                losers = [name for name in self.names if name in beaten]
                yield _better(winners, losers, found, self.numbers, all_others=beaten == best)
        if counted_only:
            unbeaten = [name for name in self.names if not any(name in beaten for beaten in groups)]
            none = "" if best else f"No model is shown to be better calibrated than {_some(unbeaten)}: "
            yield f"{none}{len(self.findings)} of the {self._n_pairs} pairs differ in calibration."

    def _none_better(self) -> Iterator[str]:
        """Say that no model is shown to be better, and how large the errors are."""
        than, sizes = "" if len(self.names) == 2 else " than another", ""
        if self.numbers:
            ordered = sorted(self.numbers, key=lambda number: self.names.index(number.name))
            each = [f"{in_points(number)} ({number.name})" for number in ordered]
            sizes = f": the typical errors are {join(each) if len(each) <= 1 + _MOST else _listed(ordered)} points"
        yield f"No model is shown to be better calibrated{than}{sizes} ({self._p_of_all})."
        yield "This does not prove that they are equally calibrated."

    @property
    def _p_of_all(self) -> str:
        """The smallest p-value of a pair in words."""
        name = self.others[0].p_name
        return equate_pvalue(self.pvalue, name=name if self._n_pairs == 1 else f"smallest {name}")

    def _cannot_compare(self) -> str:
        """Say that no difference could have been shown, and why."""
        what = " and ".join(self.others[0].models) if self._n_pairs == 1 else "the models"
        smallest, kind = self.smallest_possible_pvalue, self.others[0].p_name
        if rejects(smallest, self.alpha):
            reason = few_expected(self.subject or Subject())
        elif self.n_windows is not None and smallest >= 1:
            reason = f"the predictions span only {self.n_windows:.3g} times the lead"
        elif self.n_groups is None and smallest >= 1:
            reason = "the weights are those of too few observations"
        else:
            where = f" in {self.n_folds} folds" if self.n_folds else ""
            single = smallest / max(self.n_folds, 1)
            reason = too_few(smallest, single, self.n_groups, self.n_resamples, name=f"{kind}-value", where=where)
        return f"Whether {what} differ in calibration cannot be told: {reason} ({self._p_of_all})."

    def _about_calibration(self) -> Iterator[str]:
        """Say of which models calibration is rejected, and of which that cannot be told."""
        by_decision: dict[str, list[str]] = {"rejected": [], "not rejected": [], "undecidable": []}
        for name, decision in self.calibration.items():
            by_decision[decision].append(name)
        rejected, kept, unknown = by_decision.values()
        if rejected:
            yield f"Calibration is rejected for {_some(rejected)}{f', but not for {_some(kept)}' if kept else ''}."
        elif kept:
            yield f"No miscalibration is found in {_some(kept)}. This does not prove that they are calibrated."
        if unknown:
            are = "is" if len(unknown) == 1 else "are"
            yield f"Whether {_some(unknown)} {are} calibrated cannot be told: {self.unknown}."

    @property
    def advice(self) -> tuple[str, ...]:
        """What to do next."""
        if self.decision == "undecidable":
            return ("Collect more data before a model is chosen by its calibration.",)
        first = "Compare their accuracy and scores, too: calibration is not all that matters."
        if not self.findings:
            first = "Choose by what else matters, such as accuracy, scores and costs."
        mend = "Recalibrate the models whose calibration is rejected before they are left out."
        return (first, *[mend] * ("rejected" in self.calibration.values()))

    @property
    def head(self) -> str:
        """What was compared, in one line."""
        size, folds = sized(self.n_samples, self.n_groups), f" in {self.n_folds} folds" if self.n_folds else ""
        return f"Calibration of {len(self.names)} models: {'the same ' if self.paired else ''}{size}{folds}"

    def tables(self) -> list[Table]:
        """Return the table of the models, and that of the pairs of named models."""
        sizes = {one.name: one.shown for one in self.numbers}
        if not self.calibration:
            return [Table(("model", "typical error"), [*sizes.items()])] if sizes else []
        columns = {"model": list(self.calibration)}
        if sizes:
            columns[f"typical error ({percent(1 - self.alpha)} interval)"] = [sizes[name] for name in self.calibration]
        columns["calibration"] = list(self.calibration.values())
        columns["adjusted p"] = [align_pvalue(self.p_of_calibration[name]) for name in self.calibration]
        pairs: Sequence[ModelDifference] = (*self.findings, *self.others)
        of_pairs = {"pair": [" and ".join(one.models) for one in pairs]}
        if not self.n_folds:
            of_pairs["errors differ by"] = [one.difference.shown if one.difference else "" for one in pairs]
        of_pairs["adjusted p"] = [align_pvalue(one.pvalue) for one in pairs]
        of_pairs["better calibrated"] = [one.better or _OPEN[one.kind] for one in pairs]
        return [
            Table(tuple(part), [*zip(*part.values(), strict=True)], left=("calibration", "better calibrated"))
            for part in (columns, of_pairs)
        ]

    def _describe(self) -> Description:
        cautions = [note for note in self.cautions if not note.about and note.code not in _OF_OTHER_NUMBERS]
        tables, together = self.tables(), ""
        if self._n_pairs > _MOST_PAIRS:
            tables, together = tables[:1], f" The {self._n_pairs} pairs are in `pairs_frame()`."
        elif self._n_pairs > 1:
            together = " Intervals of differences hold for all pairs together."
        remarks = [*(f"What to do: {words}" for words in self.advice), f"{_TYPICAL}{together}"]
        return Description(self.head, [" ".join(self.sentences(brief=True))], tables, remarks, cautions)


_OF_OTHER_NUMBERS = {"C701"}
"""Cautions about estimates that are not shown here."""
_OPEN = {"not told apart": "", "undecidable": "cannot be told", "opposite in folds": "different in folds"}
"""What stands in the column of the better model where there is none."""


def _better(
    winners: Sequence[str],
    losers: Sequence[str],
    found: Sequence[ModelDifference],
    numbers: Iterable[Number],
    *,
    all_others: bool = False,
) -> str:
    """Say that models are better calibrated than others, with their errors where these are printed in this order."""
    several, least = len(winners) > 1, max(found, key=lambda one: one.pvalue)
    p = equate_pvalue(least.pvalue, name=least.p_name if len(found) == 1 else f"largest {least.p_name}")
    known, sizes = {number.name: number for number in numbers}, ""
    best, rest = ([known[name] for name in names if name in known] for names in (winners, losers))
    digits = next((d for d in range(_DIGITS, 1 + _MOST_DIGITS) if _in_order(best, rest, d)), None)
    if digits is not None:
        what = "their typical errors are" if several else "its typical error is"
        those = f"that of {losers[0]} is" if len(losers) == 1 else "those of the others are"
        sizes = f": {what} {_listed(best, digits)} points, and {those} {_listed(rest, digits)} points"
    whom = f"all {len(losers)} others" if all_others and len(losers) > _MOST else _some(losers)
    verb, place = "are" if several else "is", least.place if len(found) == 1 else ""
    return f"{_some(winners)} {verb} better calibrated than {whom}{place}{sizes} ({p})."


def few_expected(about: Subject) -> str:
    """Return why a test decides nothing where an outcome is rare."""
    return f"fewer than {FEWEST_EXPECTED} {about.outcome} or {about.opposite} were to be expected"


def _in_order(best: Sequence[Number], rest: Sequence[Number], digits: int) -> bool:
    """Whether the errors of better models are smaller than those of the others, as they are printed."""
    printed = [[round(_shown(one), digits) for one in part] for part in (best, rest)]
    return bool(best and rest) and max(printed[0]) < min(printed[1])


def _listed(numbers: Sequence[Number], digits: int = _DIGITS) -> str:
    """Return errors as a list; of many from where to where they lie."""
    if len(numbers) > 1 + _MOST:
        ordered = sorted(numbers, key=_shown)
        return f"between {in_points(ordered[0], digits)} and {in_points(ordered[-1], digits)}"
    return join(in_points(one, digits) for one in numbers)


def _some(names: Sequence[str]) -> str:
    """Return names as a list in a sentence; of many the first ones."""
    return join(names if len(names) <= 1 + _MOST else [*names[:_MOST], f"{len(names) - _MOST} others"])
