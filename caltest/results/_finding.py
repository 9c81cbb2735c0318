"""What is wrong with predictions, and the numbers that show how much: one sentence and one line of a table for each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from caltest.results._base import ConfidenceInterval, Result
from caltest.results._description import Description, as_percent, counted, decimals_of, percent

FindingKind = Literal[
    "too low",
    "too high",
    "too extreme",
    "not extreme enough",
    "wrong in parts",
    "wrong in one part",
    "over-confident",
    "under-confident",
    "totals",
]

OF_AVERAGE = {"too high": "over-confident", "too low": "under-confident"}
"""What a model is whose confidence is so."""
DIFFERENCES = {"too extreme": "overstated", "not extreme enough": "understated"}
"""What happens to differences between predictions whose slope is wrong."""


@dataclass(frozen=True)
class Subject:
    """What the sentences of a verdict call the things that they speak of.

    Parameters
    ----------
    predictions : str
        The predictions, such as "Predicted risks".
    plural : bool
        Whether ``predictions`` is a plural.
    average, observed : str
        What their average and the share of the outcome are called: "predicted" and "observed".
    low_and_high : str
        Predictions of which the slope overstates the differences.
    outcome, opposite : str
        What is counted, and its contrary, in the plural.
    event : str
        The event in the user's words; may be empty.
    source, path, column : str
        What the data are called, their file and the column of the predictions; empty for arrays.
    typed : tuple of str
        Options with which the file was read and tested, as they are typed: "--groups 'patient id'".
    within : str
        The part of the data that it is about, such as "fold 2"; empty for all.

    See Also
    --------
    caltest.results.Verdict : What speaks of a subject.

    Examples
    --------
    >>> Subject().predictions
    'Predicted risks'
    """

    predictions: str = "Predicted risks"
    plural: bool = True
    average: str = "predicted"
    observed: str = "observed"
    low_and_high: str = "low and high risks"
    outcome: str = "events"
    opposite: str = "observations without the event"
    event: str = ""
    source: str = ""
    path: str = ""
    column: str = ""
    typed: tuple[str, ...] = ()
    within: str = ""

    @property
    def of_confidence(self) -> bool:
        """Whether it is the confidence of a model, not an event of the user."""
        return self.average == "confidence"

    def command(self, name: str, more: str, without: Sequence[str] = ()) -> str:
        """Return a command that asks about the same file in the same way, or the same without some options.

        Examples
        --------
        >>> hospital = Subject(path="hospital.csv", typed=("--groups site", "--alpha 0.1"))
        >>> hospital.command("subgroups", "--by COLUMN", without=["--groups"])
        '`caltest subgroups hospital.csv --alpha 0.1 --by COLUMN`'
        """
        typed = [one for one in self.typed if not one.startswith(tuple(f"{flag} " for flag in without))]
        return f"`{' '.join(['caltest', name, self.path, *typed, more])}`"

    def wrong(self, kind: str) -> str:
        """Return what predictions are, with what a wrong slope means.

        Examples
        --------
        >>> Subject().wrong("too extreme")
        'Predicted risks are too extreme: differences between low and high risks are overstated'
        """
        if self.of_confidence and kind in OF_AVERAGE:
            return f"The model is {OF_AVERAGE[kind]}"
        what = f"{self.predictions} {'are' if self.plural else 'is'} {kind}"
        return (
            f"{what}: differences between {self.low_and_high} are {DIFFERENCES[kind]}" if kind in DIFFERENCES else what
        )

    @property
    def turned(self) -> str:
        """What a slope below 0 means."""
        if self.of_confidence:
            return "predictions are right less often where the confidence is higher"
        return "the event is less frequent where it is predicted to be more frequent"

    def compare(self, predicted: float, observed: float, fewer: int = 0) -> str:
        """Return two shares side by side, such as "15.9 % predicted, 24.3 % observed", with fewer digits if needed."""
        digits = max(map(decimals_of, (predicted, observed))) - fewer
        return f"{as_percent(predicted, digits)} {self.average}, {as_percent(observed, digits)} {self.observed}"


OF_CONFIDENCE = Subject(
    predictions="The confidence",
    plural=False,
    average="confidence",
    observed="right",
    low_and_high="low and high confidence",
    outcome="right predictions",
    opposite="wrong predictions",
)
"""The confidence of a model and the share of its predictions that are right."""


def show_range(low: float, high: float) -> str:
    """Return a range of probabilities in words.

    Examples
    --------
    >>> show_range(0.6, 0.8), show_range(0.0, 0.01), show_range(0.9, 1.0)
    ('between 60 and 80 %', 'below 1 %', 'at 90 % and above')
    """
    lower, upper = f"{100 * low:.6g}", f"{100 * high:.6g}"
    if low <= 0 and high >= 1:
        return "in the whole range"
    return (
        f"below {upper} %" if low <= 0 else f"at {lower} % and above" if high >= 1 else f"between {lower} and {upper} %"
    )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Finding(Result):
    """What is wrong with predictions: one error, with the numbers that show it and its own p-value.

    Attributes
    ----------
    kind : str
        Of an event "too low" or "too high" (the average), "too extreme" or "not extreme enough" (the slope), "wrong in
        parts" (more than average and slope, most in a range of predictions) or "wrong in one part" (a range alone); of
        a model of several classes "over-confident", "under-confident" or "totals" (of single classes).
    subject : Subject
        What the sentence speaks of.
    predicted, observed : float
        Average prediction and frequency, in the range of a finding that has one; of the largest error for "totals".
    estimate : float
        Observed divided by expected events, the calibration slope, or the frequency in the range.
    interval : ConfidenceInterval or None
        Confidence interval of ``estimate``; of "over-confident" and "under-confident" of ``observed``.
    confidence_level : float
        That of the interval: 1 - alpha / 2, so that average and slope lie in their intervals at 1 - alpha together.
    alone : bool
        Whether nothing else can be wrong, because all predictions are equal; the interval is at 1 - alpha then.
    pvalue : float
        Adjusted for the other findings that could have been named.
    n : int
        Number of observations that it is about.
    low, high : float
        Ends of the range of predictions.
    approximate : bool
        Whether an end of the range lies within a narrow cell of a state, so that the numbers in it are not exact.
    classes : tuple of str
        The classes whose totals are wrong, that with the largest error first.
    n_classes : int
        Number of classes.

    See Also
    --------
    Verdict : Holds the findings of a test.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel, Temperature
    >>> _, y_true, y_prob = DirichletModel(2, truth=Temperature(2.0)).draw(300, rng=0)
    >>> result = caltest.calibration_test(y_true, y_prob, n_resamples=99, rng=0)
    >>> finding = result.findings[0]
    >>> finding.kind, round(finding.estimate, 2), finding.n
    ('too extreme', 0.42, 300)
    """

    kind: FindingKind
    subject: Subject
    predicted: float
    observed: float
    estimate: float = math.nan
    interval: ConfidenceInterval | None = None
    confidence_level: float = 0.975
    alone: bool = False
    pvalue: float
    n: int
    low: float = 0.0
    high: float = 1.0
    approximate: bool = False
    classes: tuple[str, ...] = ()
    n_classes: int = 2

    _left_out: ClassVar[frozenset[str]] = frozenset({"subject"})
    _derived: ClassVar[tuple[str, ...]] = ("sentence",)

    @property
    def of_average(self) -> bool:
        """Whether it is about the average of all predictions."""
        return self.kind in {*OF_AVERAGE, *OF_AVERAGE.values()}

    @property
    def is_turned(self) -> bool:
        """Whether the slope is below 0: high predictions are followed by fewer events than low ones."""
        return self.kind == "too extreme" and self.interval is not None and self.interval[1] < 0

    @property
    def sentence(self) -> str:
        """What is wrong, with its numbers and their interval."""
        return f"{self.brief[:-1]} ({self._numbers})." if self._numbers else self.brief

    @property
    def brief(self) -> str:
        """What is wrong; the interval stands elsewhere."""
        within, said = self.subject.within, self._of_all
        return f"In {within} {said[0].lower()}{said[1:]}" if within else said

    @property
    def _of_all(self) -> str:
        """What is wrong, without the part of the data that it is about."""
        about, averages = self.subject, self.subject.compare(self.predicted, self.observed)
        if self.kind in OF_AVERAGE.values():
            predicted, right = as_percent(self.predicted), as_percent(self.observed)
            numbers = f"its confidence is {predicted} on average, {right} of its predictions are right"
            return f"The model is {self.kind}: {numbers}."
        if self.kind == "totals":
            several = len(self.classes) > 1
            worst = f"class {self.classes[0]}"
            total = f"The total of {worst} is wrong"
            if several:
                total = f"The totals of {len(self.classes)} of {self.n_classes} classes are wrong, most {worst}"
            return f"{total}: {averages}."
        if self.is_turned:
            return f"{about.predictions} point{'' if about.plural else 's'} the wrong way: {self.meaning}."
        if self.kind in DIFFERENCES:
            return f"{about.wrong(self.kind)}."
        if self.place:
            most = "most clearly " if self.kind == "wrong in parts" else ""
            return f"{about.wrong(self.kind)}, {most}{self.place}."
        return f"{about.wrong(self.kind)}: {averages}."

    @property
    def also(self) -> str:
        """What is wrong besides another error, as a further sentence."""
        averages = self.subject.compare(self.predicted, self.observed)
        if self.is_turned:
            return f"{'They also point' if self.subject.plural else 'It also points'} the wrong way: {self.meaning}."
        if self.kind in DIFFERENCES:
            return f"{self._they} also {self.kind}: {self.meaning}."
        if self.kind in OF_AVERAGE:
            return f"On average {self._they.lower()} {self.kind}: {averages}."
        return f"The largest difference is {self.place}." if self.place else self.brief

    @property
    def meaning(self) -> str:
        """What a wrong slope does to predictions; empty if it is not about the slope."""
        wrong = DIFFERENCES.get(self.kind)
        if self.is_turned:
            return self.subject.turned
        return f"differences between {self.subject.low_and_high} are {wrong}" if wrong else ""

    @property
    def place(self) -> str:
        """The range of predictions with its two numbers and number of observations; empty if it is not about one."""
        if not self.kind.startswith("wrong"):
            return ""
        about, number = ("about ", round(self.n, 1 - len(f"{self.n}") + 1)) if self.approximate else ("", self.n)
        averages = self.subject.compare(self.predicted, self.observed, fewer=len(about[:1]))
        return f"{show_range(self.low, self.high)}: {about}{averages} ({about}{counted(number)})"

    @property
    def _they(self) -> str:
        return "They are" if self.subject.plural else "It is"

    @property
    def _numbers(self) -> str:
        """The estimate with its interval, in brackets of a sentence."""
        if self.interval is None or self.kind not in {*OF_AVERAGE, *DIFFERENCES}:
            return ""
        name = "observed/expected" if self.kind in OF_AVERAGE else "calibration slope"
        level = f"joint {percent(2 * self.confidence_level - 1)} interval"  # half of the misses each
        if self.alone:
            level = f"{percent(self.confidence_level)} interval"
        shown = f" {show_ratio(self.estimate, digits_of(self.interval))}," if math.isfinite(self.estimate) else ","
        return f"{name}{shown} {level} {show_ratios(self.interval)}"

    def _describe(self) -> Description:
        return Description("Finding", [self.sentence])


def show_ratio(value: float, digits: int = 2) -> str:
    """Return a ratio or a slope with two decimals, fewer if it is large.

    Examples
    --------
    >>> show_ratio(1.5251), show_ratio(34.56), show_ratio(float("inf"))
    ('1.53', '34.6', 'no limit')
    """
    if not math.isfinite(value):
        return "no limit"
    return f"{value:z.{digits}f}" if abs(value) < 10 else f"{value:.1f}" if abs(value) < 100 else f"{value:.0f}"


def digits_of(interval: ConfidenceInterval) -> int:
    """Return two decimals, or as many as show that an interval excludes 1.

    Examples
    --------
    >>> digits_of(ConfidenceInterval(0.9, 1.1)), digits_of(ConfidenceInterval(0.9973, 0.9989))
    (2, 3)
    """
    digits = 2
    while digits < 6 and not interval.low <= 1 <= interval.high and any(round(end, digits) == 1 for end in interval):
        digits += 1
    return digits


def show_ratios(interval: ConfidenceInterval) -> str:
    """Return the ends of an interval of a ratio: "1.42 to 1.64"; of one end alone "above 3.20"."""
    (low, high), digits = interval, digits_of(interval)
    if not math.isfinite(high) and math.isfinite(low):
        return f"above {show_ratio(low)}"
    return (
        f"below {show_ratio(high)}"
        if not math.isfinite(low)
        else f"{show_ratio(low, digits)} to {show_ratio(high, digits)}"
    )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Number(Result):
    """One number of an answer, with its interval and what it would be if the model were calibrated.

    Attributes
    ----------
    name : str
        What it is, in words: "observed / expected".
    estimate : float
        Its value; NaN where there is none.
    interval : ConfidenceInterval or None
        What is compatible with the data.
    shown : str
        Value and interval as text, or why there is none.
    meaning : str
        What it would be if the model were calibrated, and what it means here.

    See Also
    --------
    Verdict : Holds the numbers of an answer.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> result = caltest.calibration_test(y_true, y_prob, n_resamples=99, rng=0)
    >>> [number.name for number in result.verdict.numbers]
    ['observed / expected', 'calibration slope']
    """

    name: str
    estimate: float
    interval: ConfidenceInterval | None = None
    shown: str
    meaning: str = ""

    def _describe(self) -> Description:
        return Description(self.name, [f"{self.name} {self.shown}{f' ({self.meaning})' if self.meaning else ''}."])
