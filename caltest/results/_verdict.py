"""The verdict of a test: what was decided, what is wrong and how large it is, what to do, and how that is said.

Sentences are made here from numbers and words, so that no text is ever cut apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from caltest.results._base import Result
from caltest.results._decision import Decided, DecisionWord, cannot_decide, decide, equate_pvalue, level_of, rejects
from caltest.results._description import Description, Table, as_percent, counted, percent, sized
from caltest.results._finding import Finding, Number, Subject
from caltest.results._note import Note

FEWEST_TO_MEND = 20  # events and other observations for a recalibration, and for advice how many to collect
_USUAL = 0.95  # confidence of the interval of the typical error


@dataclass(frozen=True)
class Impossible:
    """Labels that had been given probability 0.

    Parameters
    ----------
    n_zero, n_one : int
        Events that were predicted with probability 0, and observations without the event that were predicted with 1.
    pvalue : float
        The p-value without them.
    smallest : float
        The smallest positive prediction of an event; NaN for several classes.
    n_class : int
        Observations of several classes whose class was predicted with probability 0.
    """

    n_zero: int = 0
    n_one: int = 0
    pvalue: float = math.nan
    smallest: float = math.nan
    n_class: int = 0

    @property
    def number(self) -> int:
        """Number of labels."""
        return self.n_zero + self.n_one + self.n_class


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Verdict(Result):
    """What a test found: the decision, what is wrong, how large it is, and what to do.

    Attributes
    ----------
    pvalue, alpha, smallest_possible_pvalue : float
        P-value of the hypothesis, level, and p-value of the most extreme data.
    hypothesis : str
        What is decided on, such as "Calibration".
    proof : str
        What a test that does not reject leaves open, in words.
    subject : Subject or None
        What the sentences speak of; None if nothing but the decision is said.
    n_samples : int
        Number of observations.
    n_groups, weighted : int or None, bool
        Number of groups of observations, if only these are independent, and whether observations have weights.
    n_outcomes : int
        Number of outcomes.
    n_resamples : int
        Number of draws; 0 if nothing was drawn.
    n_expected : float
        Expected number of the rarer one of events and other observations; of several classes of right and wrong
        predictions. With fewer than 5 a test that does not reject decides nothing.
    n_observed : float
        Observed number of the one that is rarer in the data.
    predicted, observed : float
        Average prediction and frequency of the event, without impossible labels; of several classes confidence and
        accuracy.
    frequency : float
        Frequency of the event, or accuracy, in all observations.
    streamed : bool
        Whether the observations were not kept.
    certain : bool
        Whether all predictions are 0 or 1, so that no label is uncertain.
    p : str
        The p-value in words, such as "p = 0.012".
    bound : bool
        Whether the p-value is an upper bound.
    least : str
        Added to the p-value of a rejection, if it is the smallest possible one; may be empty.
    findings : tuple of Finding
        What is wrong, if the hypothesis is rejected; each is significant after adjustment for the others that could
        have been named.
    numbers : tuple of Number
        The numbers of the answer with their intervals.
    size : L2Interval or None
        The calibration error with its interval, where it is defined.
    where : Finding or None
        The range of predictions with the largest significant deviation.
    impossible : Impossible or None
        Labels that had been given probability 0.
    detectable : DetectableError or None
        The smallest error that would have been found, if none is.
    why_unknown : str
        Why no smallest detectable error is known, as the rest of a sentence; may be empty.
    cautions : tuple of Note
        What changes the reading.
    details : tuple of str
        Further sentences of a rejection; with folds the first one says which of them reject.
    parts : tuple of str
        What is wrong in single folds or subgroups, as sentences, if nothing is known to be wrong in all of them.
    in_time : bool
        Whether labels are known only after a lead, so that folds would mix past and future.
    n_folds : int
        Number of cross-validation folds; 0 without. The decision is made by fold, the numbers are those of all.
    undecidable : str
        The sentence if nothing can be decided; if empty, it is made from the numbers.
    said : str
        The conclusion of a result that is about something else, such as a difference; if empty, it is made from the
        numbers.
    advised : tuple of str
        What to do, if it does not follow from the numbers; if empty, it is made from them.

    See Also
    --------
    TestResult : The result whose verdict this is.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel, Temperature
    >>> _, y_true, y_prob = DirichletModel(2, truth=Temperature(2.0)).draw(300, rng=0)
    >>> result = caltest.calibration_test(y_true, y_prob, n_resamples=99, rng=0)
    >>> verdict = result.verdict
    >>> verdict.decision, verdict.pvalue
    ('rejected', 0.01)
    >>> print(verdict.sentences()[0])
    Predicted risks are too extreme: differences between low and high risks are overstated (calibration slope
    0.42, joint 95 % interval 0.25 to 0.60).
    """

    pvalue: float
    alpha: float
    smallest_possible_pvalue: float = 0.0
    hypothesis: str = "Calibration"
    proof: str = "that the model is calibrated"
    subject: Subject | None = None
    n_samples: int
    n_groups: int | None = None
    weighted: bool = False
    n_outcomes: int = 2
    n_resamples: int = 0
    n_expected: float = math.inf
    n_observed: float = math.inf
    predicted: float = math.nan
    observed: float = math.nan
    frequency: float = math.nan
    streamed: bool = False
    certain: bool = False
    p: str = ""
    bound: bool = False
    least: str = ""
    findings: tuple[Finding, ...] = ()
    numbers: tuple[Number, ...] = ()
    size: Any = None
    where: Finding | None = None
    impossible: Impossible | None = None
    detectable: Any = None
    why_unknown: str = ""
    cautions: tuple[Note, ...] = ()
    details: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    in_time: bool = False
    n_folds: int = 0
    undecidable: str = ""
    said: str = ""
    advised: tuple[str, ...] = ()

    _left_out: ClassVar[frozenset[str]] = frozenset({"subject", "in_time"})
    _derived: ClassVar[tuple[str, ...]] = ("decision", "conclusion", "advice")

    @property
    def decision(self) -> DecisionWord:
        """The decision at the level ``alpha``: "rejected", "not rejected" or "undecidable"."""
        return decide(self.pvalue, self.alpha, self.smallest_possible_pvalue, self.n_expected)

    @property
    def conclusion(self) -> str:
        """What is wrong and the decision, in whole sentences."""
        return " ".join(self.sentences())

    def sentences(self, *, brief: bool = False) -> list[str]:
        """Return what is wrong and the decision; brief, where the intervals stand beside the sentences."""
        if self.said:
            return [self.said]
        if self.decision == "undecidable" and not self._came_true:
            return [self._cannot_tell()]
        if self.decision != "rejected":
            return self._nothing_found(brief)
        at = "" if brief else f" at the {percent(self.alpha)} level"
        decided = f"{self.hypothesis} is rejected{at} ({self._shown_p(brief)}{'' if brief else self.least})."
        details = self.details[: bool(self.n_folds)] if brief else self.details  # which folds
        if self.impossible is not None:
            return [*self._about_impossible(), *self._found(brief), *details]
        return [*self._found(brief), decided, *details]

    @property
    def advice(self) -> tuple[str, ...]:
        """What to do next."""
        if self.advised:
            return self.advised
        if self.said or self.subject is None:
            return ()
        if self.decision == "rejected":
            return (self._mend(),)
        if self.decision == "undecidable" and not self._came_true:
            return (self._collect(),)
        if self.certain:
            return ("Make sure that these are predictions, not the outcomes or decisions made from probabilities.",)
        return (self._approve(),)

    @property
    def _came_true(self) -> bool:
        """Whether all predictions are certain and more observations, however many, would be no evidence."""
        return self.certain and self.subject is not None and rejects(self.smallest_possible_pvalue, self.alpha)

    @property
    def _by_hand(self) -> bool:
        """Whether the reader has neither the file nor the arrays, as that of a page or of a stream."""
        return self.streamed or (self.subject is not None and bool(self.subject.source) and not self.subject.path)

    @property
    def _p(self) -> str:
        return self.p or equate_pvalue(self.pvalue)

    def _shown_p(self, brief: bool) -> str:
        """The p-value in words, without its name where it is the only one."""
        return equate_pvalue(self.pvalue) if brief and (self.n_folds or not self.bound) else self._p

    @property
    def _averages(self) -> str:
        """Average prediction and frequency side by side; empty where there are none."""
        about = self.findings[0].subject if self.subject is None and self.findings else self.subject
        return "" if about is None or math.isnan(self.predicted) else about.compare(self.predicted, self.observed)

    def _found(self, brief: bool) -> list[str]:
        """Say what is wrong, or that it is not known."""
        if self.parts:
            return list(self.parts)
        if not self.findings:
            unknown = self.subject is not None and self.impossible is None
            averages = f" ({self._averages})" if self._averages else ""
            what = f"Something is wrong with these predictions, but these data do not show what{averages}."
            return [what] if unknown else []
        first, *others = self.findings
        further = [finding.also for finding in others if not (brief and finding.place)]  # a place is a row of numbers
        said = [first.brief if brief else first.sentence, *further]
        if self._averages and first.kind != "totals" and not any(finding.of_average for finding in self.findings):
            said.insert(1, f"On average no error is found ({self._averages}).")
        return said

    def _about_impossible(self) -> list[str]:
        """Say which labels were impossible, and what is left without them."""
        found = self.impossible
        assert found is not None
        said = {
            "had a class that was predicted with 0 %": found.n_class,
            "predicted with 0 % had the event": found.n_zero,
            "predicted with 100 % did not have it": found.n_one,
        }
        parts = [f"{counted(number)} {what}" for what, number in said.items() if number]
        without = f"Without {'it' if found.number == 1 else 'them'}"
        rest = "no miscalibration is found" if not rejects(found.pvalue, self.alpha) else "calibration is rejected, too"
        p = f" {without} {rest} ({equate_pvalue(found.pvalue)})."
        if math.isnan(found.pvalue):
            unknown = self.streamed and found.number < self.n_samples
            p = f" {without} the p-value is not known: the observations were not kept." if unknown else ""
        return [f"Impossible: {' and '.join(parts)}. One such case alone rejects the predictions ({self._p}).{p}"]

    def _nothing_found(self, brief: bool) -> list[str]:
        """Say that nothing is found, what the p-value means, and what could have been missed."""
        if not self._averages:
            size = counted(self.n_samples)
            said = f"{self.hypothesis} is not rejected ({self._p}, {size}). This does not prove {self.proof}."
            return [said, *(() if brief else self.details)]
        if self.certain:
            return ["All predictions are 0 % or 100 %, and all of them came true. Nothing else can be tested."]
        found = f"No miscalibration is found: {self._averages}."
        missed = [] if self.detectable is None else [self.detectable.conclusion]
        proof = [] if missed and brief else [f"This does not prove {self.proof}."]
        return [found, self._chance(self._shown_p(brief)), *proof, *(() if brief else self.details), *missed]

    def _chance(self, p: str) -> str:
        """Say what the p-value means."""
        times = round(100 * self.pvalue)
        if self.bound and times == 100:
            return f"If the predictions were exactly right, such data sets would be nothing unusual ({p})."
        most = "at most " if self.bound else ""
        often = {0: "fewer than 1", 100: "nearly all"}.get(times, f"{most}{times}")
        return (
            f"If the predictions were exactly right, {often} of 100 such data sets would look as bad as this or worse "
            f"({p})."
        )

    def _cannot_tell(self) -> str:
        """Say that these data decide nothing, and why."""
        if self.undecidable:
            return self.undecidable
        if rejects(self.smallest_possible_pvalue, self.alpha) and self.subject is not None:
            return (
                f"It cannot be told whether these predictions are right: only {self.n_expected:.2g} {self._rarer} were "
                f"to be expected ({self._p})."
            )
        size = sized(self.n_samples, self.n_groups, weighted=self.weighted)
        return cannot_decide(
            self.smallest_possible_pvalue,
            self.alpha,
            numbers=f"{self._p}, {size}",
            n_groups=self.n_groups,
            n_resamples=self.n_resamples,
        )

    @property
    def rarer(self) -> str:
        """What is rarer in the data, in the plural."""
        assert self.subject is not None
        return self.subject.outcome if self._share <= 0.5 else self.subject.opposite

    @property
    def _rarer(self) -> str:
        """What is rarer according to the predictions, in the plural."""
        assert self.subject is not None
        return self.subject.outcome if self.predicted <= 0.5 else self.subject.opposite

    def _mend(self) -> str:
        """Say what to do with predictions that are wrong."""
        found, about = self.impossible, self.subject or Subject()
        if found is not None and not rejects(found.pvalue, self.alpha):
            which, other = " or ".join([*["0 %"] * (found.number > found.n_one), *["100 %"] * bool(found.n_one)]), ""
            if found.n_zero and not math.isnan(found.smallest):
                other = f" (the smallest other prediction is {as_percent(found.smallest)})"
            return (
                f"If {which} was rounded, replace it by what it stands for{other}, in all observations, not in these "
                "alone, and test new data."
            )
        if self.n_observed < FEWEST_TO_MEND:
            return (
                f"Do not use these predictions as they are. There are too few {self.rarer} ({self.n_observed:.4g}) to "
                "recalibrate them: find out whether this is the population and the outcome that they were made for."
            )
        first = "Do not use these predictions as they are."
        if any(finding.is_turned for finding in self.findings):
            first = f"{first} Check first that the right event is named, and that its column of predictions is."
        if self._by_hand:
            return f"{first} Recalibrate them, and find out on held-out observations what is left."
        if self.in_time and self.n_groups is not None:
            return (
                f"{first} Recalibrate them by the earlier predictions alone, and test those that were made a lead or "
                "more after the last of them: random folds would mix past and future."
            )
        how = f"`caltest.recalibration_study(y_true, y_prob{', time=time, lead=lead' * self.in_time})`"
        if about.path:
            how = about.command("repair", "-o repaired.csv")
        if self.in_time:
            return f"{first} {how} recalibrates each by those made a lead or more earlier, and shows what is left."
        return f"{first} {how} recalibrates them and shows on held-out folds what is left."

    def _collect(self) -> str:
        """Say how many observations to collect where nothing can be decided."""
        if not rejects(self.smallest_possible_pvalue, self.alpha) or (self.undecidable and self.n_groups):
            if self._by_hand:
                return "Collect data from more groups. To compare groups, test each by itself."
            about, how = self.subject or Subject(), "`caltest.subgroup_tests`"
            if about.path:  # with the groups each of them would have too few again
                how = about.command("subgroups", "--by COLUMN", without=["--groups"])
            return f"Collect data from more groups. To compare groups: {how} tests each by itself."
        number = round_up(self.n_samples * FEWEST_TO_MEND / max(self.n_expected, 1e-9))
        size = f"{number:,} observations ({FEWEST_TO_MEND} {self._rarer})"
        return f"Collect about {size}. Until then rely on other evidence."

    def _approve(self) -> str:
        """Say whether predictions in which nothing is found can be used."""
        if self.detectable is not None and self.detectable.too_few:
            few: str = self.detectable.advice
            return few
        if self.detectable is None:
            unknown = "No error is found, but it is not known how large an error would have been found"
            how = " `caltest.detectable_error` computes it from a sample of the predictions." if self.streamed else ""
            why = f", because {self.why_unknown}" if self.why_unknown else ""
            return (
                f"{unknown}{why}: this answer approves nothing by itself.{how} Test the predictions again on new data."
            )
        return "Nothing speaks against these predictions. Test them again on new data from time to time."

    @property
    def _share(self) -> float:
        """Frequency of the event in all observations, where it is known."""
        return self.observed if math.isnan(self.frequency) else self.frequency

    @property
    def head(self) -> str:
        """What was tested, in one line."""
        about = self.subject or Subject()
        size = sized(self.n_samples, self.n_groups)
        size += f" {'in' if self.n_groups is None else 'and'} {self.n_folds} folds" if self.n_folds else ""
        outcomes = f", {self.n_outcomes} classes"
        share = self._share
        if self.n_outcomes == 2 and math.isfinite(share):
            events = f"{share * self.n_samples:,.0f}, " if not self.weighted else ""
            name = f'event "{about.event}"' if about.event else about.outcome
            outcomes = f", {name} ({events}{as_percent(share)})"
        by = f', predicted by "{about.column}"' if about.column else ""
        return f"{f'{about.source}: ' if about.source else ''}{size}{outcomes}{by}"

    @property
    def in_brackets(self) -> str:
        """What the brackets beside the numbers are; empty where there are none."""
        shown = [number.name for number in self.numbers if number.interval is not None]
        if not shown:
            return ""
        together = " for the first two together" * ("calibration slope" in shown[1:2])
        words = f"In brackets: what is compatible with these data, with {percent(1 - self.alpha)} confidence{together}"
        if self.size is not None and level_of(_USUAL) != self.alpha:
            words += f" (of the typical error {percent(_USUAL)})"
        folds = " The numbers are those of all folds together; the decision is made fold by fold." * bool(self.n_folds)
        return f"{words}.{folds}"

    def described(self, title: str, conclusion: Sequence[str], **further: Any) -> Description:
        """Return the description of a result with this verdict: the answer first, then what else there is."""
        rows = [(row.name, row.shown, row.meaning) for row in self.numbers if row.meaning]
        places = [f"{row.name.capitalize()}: {row.shown}." for row in self.numbers if not row.meaning]
        return Description(
            title,
            conclusion,
            numbers=Table(("", "", ""), rows, left=("",)) if rows else None,
            advice=[*filter(None, [self.in_brackets]), *places, *(f"What to do: {words}" for words in self.advice)],
            **further,
        )

    def _describe(self) -> Description:
        known = {"C201"} if self.impossible is not None else set()  # said already
        cautions = [note for note in self.cautions if not note.about and note.code not in known]
        return self.described(self.head, [" ".join(self.sentences(brief=True))], notes=cautions)


def round_up(number: float) -> int:
    """Return a number of observations rounded up to two digits.

    Examples
    --------
    >>> round_up(1234), round_up(7)
    (1300, 7)
    """
    unit = 10 ** max(math.floor(math.log10(max(number, 1))) - 1, 0)
    return math.ceil(number / unit) * unit


class Judged(Decided):
    """What results have in common that decide by one p-value, and say their conclusion themselves."""

    @property
    def verdict(self: Any) -> Verdict:
        """The decision, what is wrong and what changes the reading."""
        return Verdict(
            pvalue=float(self.pvalue),
            alpha=self.alpha,
            smallest_possible_pvalue=getattr(self, "smallest_possible_pvalue", 0.0),
            n_expected=getattr(self, "n_expected", math.inf),
            n_samples=self.n_samples,
            cautions=getattr(self, "notes", ()),
            said=self.conclusion,
        )
