"""The verdict of a test: what was decided, what is wrong and how large it is, and the sentences that say so.

Sentences are made here from numbers and words, so that no text is ever cut apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from caltest.results._base import Result
from caltest.results._decision import DecisionWord, cannot_decide, decide, equate_pvalue
from caltest.results._description import Description, counted, percent, sized
from caltest.results._note import Note

OF_CONFIDENCE, OF_EVENT = ("average confidence", "accuracy"), ("average prediction", "frequency")
"""What the two numbers of a finding are."""

FindingKind = Literal["over-confident", "under-confident", "too low", "too high"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Finding(Result):
    """What is wrong with predictions: one error, with the two numbers that show it and its own p-value.

    Attributes
    ----------
    kind : {"over-confident", "under-confident", "too low", "too high"}
        The direction: of a model's confidence, or of the predictions of an event.
    predicted, observed : float
        Average confidence and accuracy, or average prediction and frequency of the event.
    pvalue : float
        P-value of the statistic that shows the direction; not adjusted.
    source : str
        That statistic, in words.
    bound : bool
        Whether the p-value is an upper bound.
    quantities : tuple of str
        What the two numbers are.
    """

    kind: FindingKind
    predicted: float
    observed: float
    pvalue: float
    source: str
    bound: bool = False
    quantities: tuple[str, str] = OF_CONFIDENCE

    _derived: ClassVar[tuple[str, ...]] = ("sentence",)

    @property
    def of_confidence(self) -> bool:
        """Whether it is about the confidence of a model, not about the probability of an event."""
        return self.kind in {"over-confident", "under-confident"}

    @property
    def clause(self) -> str:
        """What is wrong, with its numbers, as the rest of a sentence."""
        wrong = "the model is " + self.kind
        if not self.of_confidence:
            wrong = f"the event is {'more' if self.kind == 'too low' else 'less'} frequent than predicted"
        numbers = f"{self.quantities[0]} {self.predicted:.4g}, {self.quantities[1]} {self.observed:.4g}"
        return f"{wrong}: {numbers} ({self.source}, {equate_pvalue(self.pvalue, bound=self.bound)})."

    @property
    def sentence(self) -> str:
        """What is wrong, with its numbers."""
        return f"T{self.clause[1:]}"

    def _describe(self) -> Description:
        return Description("Finding", [self.sentence])


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Verdict(Result):
    """What a test found: the decision, what is wrong, how large it is, and what to do.

    Attributes
    ----------
    pvalue, alpha, smallest_possible_pvalue : float
        P-value of the hypothesis, level, and p-value of the most extreme data.
    subject : str
        The hypothesis that is decided on, such as "Calibration".
    proof : str
        What a test that does not reject leaves open, in words.
    n_samples : int
        Number of observations.
    n_groups, weighted : int or None, bool
        Number of groups of observations, if only these are independent, and whether observations have weights.
    n_resamples : int
        Number of draws; 0 if nothing was drawn.
    p : str
        The p-value in words, such as "p = 0.012".
    least : str
        Added to the p-value of a rejection, if it is the smallest possible one; may be empty.
    findings : tuple of Finding
        What is wrong, if the hypothesis is rejected and the direction is beyond doubt.
    size : L2Interval or None
        The calibration error with its interval, where it is defined.
    where : object
        The region with the largest significant deviation, or None.
    cautions : tuple of Note
        What changes the reading.
    advice : tuple of str
        What to do next.
    details : tuple of str
        Further sentences of a rejection, such as those about single folds.
    undecidable : str
        The sentence if nothing can be decided; if empty, it is made from the numbers.
    said : str
        The conclusion of a result that is about something else, such as a difference; if empty, it is made from the
        numbers.
    """

    pvalue: float
    alpha: float
    smallest_possible_pvalue: float = 0.0
    subject: str = "Calibration"
    proof: str = "that the model is calibrated"
    n_samples: int
    n_groups: int | None = None
    weighted: bool = False
    n_resamples: int = 0
    p: str = ""
    least: str = ""
    findings: tuple[Finding, ...] = ()
    size: Any = None
    where: Any = None
    cautions: tuple[Note, ...] = ()
    advice: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    undecidable: str = ""
    said: str = ""

    _derived: ClassVar[tuple[str, ...]] = ("decision", "conclusion")

    @property
    def decision(self) -> DecisionWord:
        """The decision at the level ``alpha``: "rejected", "not rejected" or "undecidable"."""
        return decide(self.pvalue, self.alpha, self.smallest_possible_pvalue)

    @property
    def conclusion(self) -> str:
        """The decision in words, and what is wrong."""
        if self.said:
            return self.said
        p = self.p or equate_pvalue(self.pvalue)
        if self.decision == "undecidable" and self.undecidable:
            return self.undecidable
        if self.decision == "undecidable":
            size = sized(self.n_samples, self.n_groups, weighted=self.weighted)
            return cannot_decide(
                self.smallest_possible_pvalue,
                self.alpha,
                numbers=f"{p}, {size}",
                n_groups=self.n_groups,
                n_resamples=self.n_resamples,
            )
        if self.decision == "not rejected":
            return f"{self.subject} is not rejected ({p}, {counted(self.n_samples)}). This does not prove {self.proof}."
        rejected = f"{self.subject} is rejected at the {percent(self.alpha)} level ({p}{self.least})."
        return " ".join([rejected, *(finding.sentence for finding in self.findings), *self.details])

    def _describe(self) -> Description:
        size = [] if self.size is None else [self.size.conclusion]
        return Description("Verdict", [self.conclusion, *size], remarks=self.advice, notes=self.cautions)


class Judged:
    """What results have in common that decide by one p-value, and say their conclusion themselves."""

    @property
    def verdict(self: Any) -> Verdict:
        """The decision, what is wrong and what changes the reading."""
        size = np.max(self.n_samples) if getattr(self, "paired", True) else np.sum(self.n_samples)
        return Verdict(
            pvalue=float(self.pvalue),
            alpha=self.alpha,
            smallest_possible_pvalue=getattr(self, "smallest_possible_pvalue", 0.0),
            n_samples=int(size),
            findings=self._findings() if hasattr(self, "_findings") else (),
            size=getattr(self, "interval", None),
            cautions=getattr(self, "notes", ()),
            said=self.conclusion,
        )
