"""The verdict of a test against a margin: whether an error is shown to be below or above it, and how that is said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from caltest.results._base import Result
from caltest.results._decision import equate_pvalue
from caltest.results._description import Description, counted, percent
from caltest.results._finding import Number
from caltest.results._verdict import Verdict


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MarginFinding(Result):
    """An error on one side of a margin.

    Attributes
    ----------
    kind : str
        "below" or "above" the margin.
    size : Number
        The error with its one-sided interval.
    margin : float
        The margin, in the same unit.
    unit : str
        The unit; empty for a number without one.
    pvalue : float
        P-value of the hypothesis that the error is on the other side.
    n : int
        Number of observations.

    See Also
    --------
    MarginVerdict : Holds such findings.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> verdict = caltest.equivalence_test(y_true, y_prob, 0.3).verdict
    >>> verdict.question.kind, verdict.question.margin
    ('below', 30.0)
    """

    kind: Literal["below", "above"]
    size: Number
    margin: float
    unit: str = ""
    pvalue: float
    n: int

    _derived: ClassVar[tuple[str, ...]] = ("sentence",)

    @property
    def side(self) -> str:
        """The side in words: "below 10 points"."""
        return f"{self.kind} {self.margin:.4g} {self.unit}".rstrip()

    @property
    def sentence(self) -> str:
        """What is shown, and by how much."""
        return f"The {self.size.name} is shown to be {self.side} ({equate_pvalue(self.pvalue)}): {self._limit}."

    @property
    def open_sentence(self) -> str:
        """What is not shown, and what is."""
        return f"The {self.size.name} is not shown to be {self.side} ({equate_pvalue(self.pvalue)}): {self._limit}."

    @property
    def unknown_sentence(self) -> str:
        """Why nothing is shown."""
        few = "these observations are too few to show any margin"
        return f"Whether the {self.size.name} is {self.side} cannot be told: {few} ({equate_pvalue(self.pvalue)})."

    @property
    def _limit(self) -> str:
        return f"it is {self.size.shown}"

    def _describe(self) -> Description:
        return Description(f"Error and margin ({counted(self.n)})", [self.sentence])


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MarginVerdict(Verdict):
    """Whether an error is shown to be below or above a margin, how large it is, and what to do.

    Attributes
    ----------
    findings : tuple of MarginFinding
        The side of the margin that is shown; empty if none is.
    question : MarginFinding
        What was to be shown.

    See Also
    --------
    caltest.equivalence_test : A test that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> verdict = caltest.equivalence_test(y_true, y_prob, 0.3).verdict
    >>> verdict.decision, verdict.question.kind
    ('rejected', 'below')
    """

    findings: tuple[Any, ...] = ()
    question: MarginFinding

    _left_out: ClassVar[frozenset[str]] = Verdict._left_out | {
        *("hypothesis", "proof", "n_observed", "predicted", "observed", "frequency", "streamed", "certain"),
        *("p", "bound", "least", "where", "impossible", "detectable", "details", "undecidable"),
    }

    def sentences(self, *, brief: bool = False) -> list[str]:
        """Return on which side of the margin the error is."""
        asked = self.question
        if self.decision == "undecidable":
            return [asked.unknown_sentence]
        said = asked.sentence if self.decision == "rejected" else asked.open_sentence
        return [said] if brief else [said, f"The decision is made at the {percent(self.alpha)} level."]

    @property
    def advice(self) -> tuple[str, ...]:
        """What to do next."""
        if self.decision == "undecidable":
            return ("Collect more data: until then nothing is approved.",)
        below, shown = self.question.kind == "below", self.decision == "rejected"
        if below and shown:
            return ("Errors within the margin are approved. Test the predictions again on new data from time to time.",)
        if below:
            return ("Do not approve these predictions yet: collect more data, or recalibrate them and test new data.",)
        if shown:
            return ("Do not use these predictions as they are: recalibrate them and test new data.",)
        return (f"Take `equivalence_test` to show that the {self.question.size.name} is small: this does not show it.",)

    def _describe(self) -> Description:
        words = " ".join(self.sentences(brief=True))
        return Description(self.head, [words, *(f"What to do: {one}" for one in self.advice)], notes=self.cautions)
