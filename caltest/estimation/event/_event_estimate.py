"""What the numbers of an event have in common: cells of what was passed, the decision, and how they are shown."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from caltest.estimation._options import event_of
from caltest.estimation.event._event_cells import EventCells
from caltest.predictions._lens import LensLike, subject_of
from caltest.predictions._lenses import Canonical
from caltest.resampling import Consistency
from caltest.resampling.draws._schemes import TimedLabels
from caltest.results import ConfidenceInterval, Note, Result
from caltest.results._decision import DecisionWord, decide, equate_pvalue, level_of
from caltest.results._description import Description, Table, percent, sized
from caltest.results._finding import Subject
from caltest.results._note import PAGE
from caltest.results._verdict import Judged


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class EventEstimate(Judged, Result):
    """An estimate for predictions of an event, with an interval and a p-value that are computed, not simulated."""

    estimate: float
    confidence_interval: ConfidenceInterval
    pvalue: float
    confidence_level: float
    predicted: float
    observed: float
    n_events: int
    expected_events: float
    intercept: float
    reason: str
    lens: LensLike
    lens_name: str
    n_samples: int
    n_impossible: int
    n_groups: int | None = None
    lead: str | None = None
    weighted: bool = False
    notes: tuple[Note, ...] = ()

    _title: ClassVar[str]
    _derived: ClassVar[tuple[str, ...]] = ("direction", "rejected", "decision", "conclusion")

    @property
    def alpha(self) -> float:
        """Level of the decision, 1 - `confidence_level`."""
        return level_of(self.confidence_level)

    @property
    def smallest_possible_pvalue(self) -> float:
        """What decides between "not rejected" and "undecidable": 1 for too few data, otherwise 0."""
        return 1.0 if self._too_few else 0.0

    @property
    def decision(self) -> DecisionWord:
        """The decision: "undecidable" if the number does not differ significantly from 1, but hardly could have."""
        return decide(self.pvalue, self.alpha, self.smallest_possible_pvalue)

    @property
    def _too_few(self) -> bool:
        return math.isnan(self.confidence_interval.low)

    @property
    @abstractmethod
    def _rows(self) -> list[tuple[str, str, str, str]]:
        """Names, estimates, intervals and values of calibrated predictions."""

    def _describe(self: Any) -> Description:
        size = sized(self.n_samples, self.n_groups, weighted=self.weighted)
        sound, *_ = (Consistency() if self.lead is None else TimedLabels(lead=self.lead)).conditions
        of_groups = "" if self.n_groups is None else "groups of "
        remarks = [
            "Interval and p-value are computed without Monte Carlo draws.",
            f"A test of calibration prints the interval with {percent(1 - self.alpha / 2)} confidence, so that average "
            f"and slope lie in theirs with {percent(self.confidence_level)} together.",
            f"Valid if {of_groups}{sound.text} [{sound.code}: {PAGE}]",
        ]
        return Description(
            f"{self._title} ({self.lens_name}, {size}, {self.n_events} events)",
            [self.conclusion],
            [Table(("", "estimate", "interval", "if calibrated"), self._rows)],
            remarks,
            self.notes,
        )

    @property
    def _numbers(self) -> str:
        """The interval and the p-value in brackets."""
        level = f"{percent(self.confidence_level)} interval"
        return f"{level} {show_interval(self.confidence_interval)}, {equate_pvalue(self.pvalue)}"

    @property
    def _subject(self) -> Subject:
        """What sentences speak of, in the words of a verdict."""
        return subject_of(self.lens)


def show_interval(interval: ConfidenceInterval) -> str:
    """Return an interval as text; one that has a single end as "above 3.2".

    Examples
    --------
    >>> show_interval(ConfidenceInterval(0.5, 1.25)), show_interval(ConfidenceInterval(3.2, math.inf))
    ('0.5 to 1.25', 'above 3.2')
    """
    low, high = interval
    if math.isnan(low) or (math.isinf(low) and math.isinf(high)):
        return "none"
    if math.isinf(high):
        return f"above {low:.3g}"
    return f"below {high:.3g}" if math.isinf(low) else f"{low:.3g} to {high:.3g}"


def event_cells(y_true: ArrayLike, y_prob: ArrayLike, options: Mapping[str, Any]) -> tuple[EventCells, dict[str, Any]]:
    """Return the cells of what was passed, and what every estimate of them reports."""
    sample, about = event_of(y_true, y_prob, options, of_many=Canonical())
    cells: EventCells = sample.once(EventCells.of)
    if isinstance(about["lens"], Canonical):
        about["lens_name"] = "event"
    expected = cells.predicted + cells.certain
    happened = cells.observed + cells.certain
    notes = []
    if cells.n_impossible:
        labels = "1 label" if cells.n_impossible == 1 else f"{cells.n_impossible} labels"
        text = (
            f"{labels} had been given probability 0, which alone shows that the predictions are wrong. All numbers "
            "here are those of the other observations."
        )
        notes.append(Note("C201", text))
    return cells, {
        **about,
        "predicted": expected / cells.total if cells.total else math.nan,
        "observed": happened / cells.total if cells.total else math.nan,
        "n_events": cells.n_events,
        "expected_events": expected,
        "n_samples": sample.n_samples,
        "n_impossible": cells.n_impossible,
        "n_groups": sample.n_groups,
        "lead": None if sample.timing is None else sample.timing.text,
        "weighted": sample.weight is not None,
        "notes": tuple(notes),
    }
