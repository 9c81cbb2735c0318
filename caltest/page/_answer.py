"""What the page says of a model to the person who decides: the answer, where, for whom, what to do, what is missed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from numpy.typing import ArrayLike

from caltest.estimation import reliability_curve
from caltest.estimation.curves._reliability_curve import ReliabilityCurve
from caltest.hypothesis_tests import CalibrationTable, SubgroupTests
from caltest.hypothesis_tests._numbers import typical_error
from caltest.page._pictures import Picture, diagram, forest
from caltest.page._places import classes_of, ranges_of, subgroups_of, table_of
from caltest.predictions import Confidence
from caltest.predictions._arrays import Booleans
from caltest.predictions._lens import LensLike
from caltest.predictions._sample import Sample, make_sample
from caltest.predictions.inputs._arguments import read_problem
from caltest.predictions.inputs._frames import read_observations
from caltest.predictions.inputs._scale import PROBABILITIES
from caltest.results import BeforeAfter, Verdict
from caltest.results._description import Table, percent

_ABOUT_DATA = {"C209", "C303", "C304", "C901"}  # cautions; others are about tests


@dataclass(frozen=True)
class Word:
    """The decision in one word, with the name of its colour and the path of its icon in a square of 24."""

    text: str
    colour: str
    icon: str


WRONG = Word("Wrong", "wrong", "M6 6l12 12M18 6L6 18")
RIGHT = Word("No error found", "right", "M4.5 12.5l5 5 10-11")
QUESTION = "M8.5 9a3.5 3.5 0 1 1 5 3.2c-1 .6-1.5 1.2-1.5 2.3M12 18.2v.3"
_UNKNOWN = Word("Cannot tell", "unknown", QUESTION)
_TOO_FEW = Word("Too few data", "unknown", QUESTION)


def _without_calls(verdict: Verdict) -> Verdict:
    """Return a verdict for a reader who has a page, and no arrays."""
    if verdict.subject is None:
        return verdict
    return replace(verdict, subject=replace(verdict.subject, source="these data"))


@dataclass(frozen=True, eq=False)
class Model:
    """A model and its observations.

    Attributes
    ----------
    name : str
        Its name; empty if there is no other.
    y_true, y_prob : array-like
        Labels and predictions.
    design : dict
        ``classes``, ``sample_weight``, ``groups``, ``time`` and ``lead``; ``input``, unless predictions are
        probabilities.
    in_words : callable
        Returns a verdict in which data, event and column have the names that the user gave them.
    levels : dict of str to dict of str to array
        For each column that makes subgroups, the observations of each level.
    repaired : BeforeAfter or None
        What recalibration achieves on held-out observations.
    """

    name: str
    y_true: ArrayLike
    y_prob: Any
    design: Mapping[str, Any]
    in_words: Callable[[Verdict], Verdict] = _without_calls
    levels: Mapping[str, Mapping[str, Booleans]] = field(default_factory=dict)
    repaired: BeforeAfter | None = None

    @property
    def members(self) -> dict[str, Booleans]:
        """The observations of each subgroup, by its name."""
        return {level: inside for members in self.levels.values() for level, inside in members.items()}

    @cached_property
    def problem(self) -> tuple[Any, Any, list[Any] | None]:
        """Labels, predictions without the names of their columns, and classes in their order."""
        classes, kind = self.design["classes"], self.design.get("input", PROBABILITIES)
        read = read_problem({"y_true": self.y_true}, {"y_prob": self.y_prob}, classes, kind)
        return read.labels["y_true"], read.probs["y_prob"], read.classes

    def _seen(self, lens: LensLike | None) -> Sample:
        labels, prob, classes = self.problem
        design = {name: self.design[name] for name in ("sample_weight", "groups", "lead")}
        time = self.design["time"]
        design["time"] = None if time is None else read_observations(time, "time")
        return make_sample(labels, prob, classes=classes, lens=lens, **design)

    @cached_property
    def sample(self) -> Sample:
        """The observations with all classes."""
        return self._seen(None)

    @cached_property
    def event(self) -> Sample:
        """The observations with the event, or with "the prediction is right"."""
        return self._seen(Confidence() if self.has_classes else None)

    @property
    def lead(self) -> str:
        """How far labels are apart that are independent of each other, in words; empty if all are."""
        timing = self.sample.timing
        return "" if timing is None else timing.text

    @property
    def by_chance(self) -> str:
        """What bars allow for, as the rest of a sentence about chance; empty if labels are independent."""
        return f" if labels less than {self.lead} apart depend on each other" if self.lead else ""

    @property
    def has_classes(self) -> bool:
        """Whether there are more than two classes."""
        return self.sample.n_outcomes > 2

    @cached_property
    def curve(self) -> ReliabilityCurve:
        """The reliability curve of the event, or of the confidence."""
        return reliability_curve(self.y_true, self.y_prob, rng=0, **self.design)

    @property
    def class_names(self) -> list[str]:
        """The labels of the classes as texts."""
        _, _, classes = self.problem
        return [str(one) for one in (range(self.sample.n_outcomes) if classes is None else classes)]


@dataclass(frozen=True)
class Part:
    """Places in a table, with a heading, sentences, and a picture or none."""

    heading: str
    sentences: Sequence[str]
    table: Table
    table_name: str
    picture: Picture | None = None


@dataclass(frozen=True, eq=False)
class Answer:
    """What is said of one model.

    Attributes
    ----------
    name : str
        The model; empty if there is no other.
    verdict : Verdict
        What all sentences come from.
    numbers : dict of str to str
        The numbers by name, also those that are not shown where calibration is not rejected.
    picture : Picture
        The diagram.
    where, whom : tuple of Part
        Ranges of predictions and classes; subgroups.
    repaired : BeforeAfter or None
        What recalibration achieves on held-out observations.
    lead : str
        How far labels are apart that are independent of each other; empty if all are.
    """

    name: str
    verdict: Verdict
    numbers: Mapping[str, str]
    picture: Picture
    where: tuple[Part, ...]
    whom: tuple[Part, ...]
    repaired: BeforeAfter | None
    lead: str = ""

    @classmethod
    def of(cls, model: Model, table: CalibrationTable, subgroups: SubgroupTests | None) -> Answer:
        """Return what is said of a model, from its table of tests and the tests of its subgroups, if there are any."""
        verdict = model.in_words(table.verdict)
        whom = () if subgroups is None else (_whom(model, verdict, subgroups),)
        caption = (
            f"On the diagonal, what was predicted is what happened. Bars are what chance explains{model.by_chance}."
        )
        picture = diagram({"": model.curve}, caption)
        numbers, where = numbers_in_words(table), tuple(_where(model, verdict))
        repaired = None if model.repaired is None else model.repaired.tested(verdict)
        return cls(model.name, verdict, numbers, picture, where, whom, repaired, model.lead)

    @property
    def word(self) -> Word:
        """The decision in one word."""
        if self.verdict.decision == "not rejected":
            found = self.verdict.detectable
            return _TOO_FEW if found is not None and found.too_few else RIGHT
        return WRONG if self.verdict.decision == "rejected" else _UNKNOWN

    def about(self, title: str) -> str:
        """Return what was judged, in one line; without the name of the data if it is the title, or if there is none."""
        subject = self.verdict.subject
        if subject is None or (subject.path and subject.source != title):
            return self.verdict.head
        return replace(self.verdict, subject=replace(subject, source="")).head

    @property
    def advice(self) -> list[str]:
        """What to do; where recalibration was tried it is not advised again."""
        tried = [] if self.repaired is None else [self.repaired.advice]
        return tried if tried and self.verdict.decision == "rejected" else [*self.verdict.advice, *tried]

    @property
    def numbers_are(self) -> str:
        """What stands in brackets beside the numbers; empty if nothing does."""
        return self.verdict.in_brackets

    @property
    def missed(self) -> Table | None:
        """The smallest error of each kind that would have been found; None if one was found, or it is not known."""
        found = self.verdict.detectable
        if found is None or not found.errors:
            return None
        rows = [
            (error.kind, f"{error.points:.2g} points on average" if error.found else "none, however large")
            for error in found.errors
        ]
        return Table(("if predictions are", f"an error is found with {percent(found.power)} probability from"), rows)

    @property
    def _cautions(self) -> list[str]:
        """Cautions about the data, without those that advise functions."""
        found = [note for note in self.verdict.cautions if note.code in _ABOUT_DATA]
        return [note.text.replace("`", "") for note in found if note.code == "C209" or "`" not in note.text]

    @property
    def conditions(self) -> list[tuple[str, str]]:
        """What the answer rests on: name and sentence."""
        groups = self.verdict.n_groups
        independent = (
            "Each observation stands for itself. Several visits of one patient, or overlapping forecasts, must be "
            "named as groups, or with their times."
            if groups is None
            else f"The {groups:,} groups are independent of each other; observations of one group need not be."
        )
        if self.lead:
            independent = (
                f"Outcomes of predictions that were made less than {self.lead} apart may depend on each other. Those "
                "further apart do not, given what was known when the later prediction was made."
            )
        return [
            ("Independence", independent),
            ("Labels", "No label of these data was used to make, to choose or to adjust the predictions."),
            (
                "Time",
                "The answer is about the period and the population of these data. Both change: test new data from time "
                "to time.",
            ),
            *(("Caution", text) for text in self._cautions),
        ]


def numbers_in_words(table: CalibrationTable) -> dict[str, str]:
    """Return the numbers of a verdict by name, with the typical error also where calibration is not rejected."""
    size = table[0].l2_error
    typical = [] if size is None else [typical_error(size)]
    return {number.name: number.shown for number in (*table.verdict.numbers, *typical) if number.meaning}


def _words(verdict: Verdict) -> tuple[str, str]:
    """Return what the two averages are called."""
    subject = verdict.subject
    return ("predicted", "observed") if subject is None else (subject.average, subject.observed)


def _where(model: Model, verdict: Verdict) -> list[Part]:
    """Return the ranges of the predictions, and of several classes those that differ most."""
    what = "range of confidence" if model.has_classes else "predictions"
    table = table_of(ranges_of(model.event), what, _words(verdict))
    parts = [Part("Where", [], table, f"Ranges of the {'confidence' if model.has_classes else 'predictions'}")]
    if model.has_classes:
        found, number = classes_of(model.sample, model.class_names), len(model.class_names)
        said = [f"The {len(found)} of {number:,} classes whose totals differ most."] if number > len(found) else []
        parts.append(
            Part("Which classes", said, table_of(found, "class", ("predicted", "observed")), "Totals of classes")
        )
    return parts


def _whom(model: Model, verdict: Verdict, tests: SubgroupTests) -> Part:
    """Return the subgroups."""
    words, wrong = _words(verdict), tests.rejected_tests
    places = subgroups_of(model.event, model.members, wrong)
    number = f"{wrong.sum() or 'none'} of {len(wrong)} subgroups"
    said = f"Calibration is rejected in {number}, after adjustment for their number."
    caption = "Filled points: rejected." if wrong.any() else ""
    return Part("For whom", [said], table_of(places, "subgroup", words), "Subgroups", forest(places, words, caption))
