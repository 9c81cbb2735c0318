"""What recalibration achieves on observations to which it was not fitted, in the numbers of a verdict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from caltest.results._base import Result
from caltest.results._decision import Decided, DecisionWord
from caltest.results._description import Description, Table
from caltest.results._finding import Number
from caltest.results._verdict import FEWEST_TO_MEND, Verdict

_ROUNDING = 1e-9  # relative, of log scores
_MORE = "Recalibrate them with more observations, or try another method."


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class BeforeAfter(Decided, Result):
    """Predictions before and after recalibration, on held-out observations.

    Attributes
    ----------
    model, recalibrator : str
        Their names in the study.
    fitted : str
        What was fitted, in words, such as "temperature scaling (T = 1.68 to 1.69)".
    n_folds : int
        Number of held-out parts; the map of each was fitted to the other observations.
    before, after : Verdict
        What is wrong with the predictions. Numbers and findings are those of all held-out observations together, after
        recalibration so of the maps of all folds together. P-values are combined over the folds; that before may be one
        of a test of all observations.
    accuracy, log_score : tuple of float
        Before and after; of the log score smaller is better.
    unchanged : bool
        Whether the predictions stay as they are.
    is_smaller : bool
        Whether a smaller calibration error is shown.
    is_larger : bool
        Whether a larger calibration error is shown.
    clear_change : int
        -1 if the mean log score of held-out observations falls, 1 if it rises, by more than chance: a t test of the
        differences at the level ``alpha``, of sums over groups where there are groups, or a label that one of both
        thought impossible; 0 otherwise. The test is asymptotic.
    further : str
        What else to do with recalibrated predictions that are recommended, such as a command; may be empty.

    See Also
    --------
    caltest.recalibration_study : The study whose method ``before_after`` returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel, Temperature
    >>> _, y_true, y_prob = DirichletModel(2, truth=Temperature(2.0)).draw(300, rng=0)
    >>> repairs = [caltest.recalibration.TemperatureScaling(), caltest.recalibration.PlattScaling()]
    >>> study = caltest.recalibration_study(y_true, {"model": y_prob}, repairs, folds=2, n_resamples=199, rng=0)
    >>> result = study.before_after("TemperatureScaling()")
    >>> result.model, result.recalibrator, result.n_folds
    ('model', 'TemperatureScaling()', 2)
    """

    model: str
    recalibrator: str
    fitted: str
    n_folds: int
    before: Verdict
    after: Verdict
    accuracy: tuple[float, float]
    log_score: tuple[float, float]
    unchanged: bool
    is_smaller: bool
    is_larger: bool
    clear_change: int
    further: str = ""

    _derived: ClassVar[tuple[str, ...]] = ("decision", "conclusion", "is_recommended", "advice")

    @property
    def verdict(self) -> Verdict:
        """What is left after recalibration, and what to do."""
        return replace(self.after, advised=(self.advice,))

    @property
    def pvalue(self) -> float:
        """P-value of calibration after recalibration."""
        return self.after.pvalue

    @property
    def alpha(self) -> float:
        """Level of the decisions."""
        return self.after.alpha

    @property
    def n_samples(self) -> int:
        """Number of held-out observations."""
        return self.after.n_samples

    @property
    def decision(self) -> DecisionWord:
        """The decision about calibration after recalibration."""
        return self.after.decision

    @property
    def conclusion(self) -> str:
        """What is left after recalibration, in whole sentences."""
        return self.after.conclusion

    def tested(self, verdict: Verdict) -> BeforeAfter:
        """Return the same with the verdict of a test of all observations before recalibration.

        Such a test detects more than those of single folds. Predictions before recalibration are those of one model, so
        that their folds may be pooled; the maps of the folds differ.

        Parameters
        ----------
        verdict : Verdict
            Of the same observations, such as that of `caltest.calibration_table`.

        Returns
        -------
        BeforeAfter
            With other findings and another p-value before recalibration.
        """
        return replace(self, before=replace(verdict, numbers=self.before.numbers, size=self.before.size))

    @property
    def _is_gained(self) -> bool:
        before, after = self.log_score
        return not self.unchanged and after < before * (1 - _ROUNDING)

    @property
    def _are_too_few(self) -> bool:
        return self.before.n_observed < FEWEST_TO_MEND

    @property
    def is_recommended(self) -> bool:
        """Whether recalibrated predictions are recommended instead of the original ones.

        They are if the mean log score of held-out observations is smaller than before; if in addition it falls by more
        than chance, or a smaller calibration error is shown; and if there are at least 20 events and 20 other
        observations (of several classes, 20 right and 20 wrong predictions). That calibration was rejected before is
        not enough: a map may change what is right.
        """
        shown = self.is_smaller or self.clear_change < 0
        return self._is_gained and shown and not self._are_too_few

    @property
    def advice(self) -> str:
        """Whether to use the recalibrated predictions or to keep the original ones, and why."""
        more = f" {self.further}" if self.further else ""
        if self.is_recommended and not self.rejected:
            return f"Use the recalibrated predictions.{more}"
        other = "look for subgroups whose errors differ, or try another method."
        if self.is_recommended:
            return (
                "Use the recalibrated predictions rather than the original ones, but they are not right either: "
                f"{other}{more}"
            )
        if self.before.decision != "rejected":
            return f"Keep the original predictions{f': {self._reason}' if self._reason else ''}."
        if self._are_too_few:
            return " ".join(self.before.advice)
        if self._is_gained:
            return (
                f"Do not use these predictions as they are. Recalibrated they may be no better: {self._reason}. {_MORE}"
            )
        return f"Do not use these predictions, neither as they are nor recalibrated: {other}"

    @property
    def _reason(self) -> str:
        """Why to keep the original predictions; empty if they stay as they are anyway."""
        before, after = self.log_score
        scores = f"the average log score, which should be small, is {before:.4f} before and {after:.4f} after"
        if self.unchanged:
            return ""
        if not self._is_gained:
            return f"nothing is gained, {scores}"
        if self._are_too_few:
            return f"there are too few {self.before.rarer} ({self.before.n_observed:.4g}) to recalibrate them"
        return f"so little is gained that it may be chance, {scores}"

    @property
    def headline(self) -> str:
        """Whether recalibration helps, in one sentence."""
        if self.unchanged:
            return "The predictions stay as they are, because no method predicts held-out observations better."
        if self.is_recommended:
            return "Recalibration makes these predictions better."
        if self.is_larger or self.clear_change > 0:
            return "Recalibration makes these predictions worse."
        return "It is not shown that recalibration makes these predictions better."

    @property
    def _verdicts(self) -> dict[str, Verdict]:
        """The verdicts that differ, by what they are called."""
        return {"before": self.before} if self.unchanged else {"before": self.before, "after": self.after}

    @property
    def table(self) -> Table:
        """The numbers of both verdicts side by side; of one column if the predictions stay as they are."""
        columns = self._verdicts
        numbers = [{row.name: row for row in one.numbers if row.meaning} for one in columns.values()]
        none = Number(name="", estimate=0.0, shown="-")
        rows = [
            (name, *(known.get(name, none).shown for known in numbers), numbers[-1].get(name, none).meaning)
            for name in dict.fromkeys(name for known in numbers for name in known)
        ]
        shares, scores = self.accuracy[: len(columns)], self.log_score[: len(columns)]
        rows.append(("accuracy", *(f"{100 * share:.1f} %" for share in shares), ""))
        rows.append(("average log score", *(f"{score:.4f}" for score in scores), "smaller is better"))
        return Table(("", *columns, ""), rows, left=("", *columns))

    @property
    def places(self) -> list[str]:
        """The range of predictions that is wrong most, before and after, where the sentences do not have it already."""
        named = {when: one.where for when, one in self._verdicts.items() if one.where not in one.findings[:1]}
        return [f"Worst {when}: {where.place}." for when, where in named.items() if where is not None]

    @property
    def sentences(self) -> list[str]:
        """Whether recalibration helps, and what is wrong before and after."""
        said = {when: " ".join(one.sentences(brief=True)) for when, one in self._verdicts.items()}
        return [self.headline, *(f"{when.capitalize()}: {words}" for when, words in said.items())]

    @property
    def explained(self) -> list[str]:
        """What the numbers are about."""
        if self.unchanged:
            return []
        which = "observations to which the map was not fitted"
        if self.n_folds > 1:
            which = f"{self.n_folds} maps together, each on the observations of the fold to which it was not fitted"
        return [f"Numbers after recalibration are approximate. They are those of {which}. Fitted: {self.fitted}."]

    def _describe(self) -> Description:
        *_, last = self._verdicts.values()
        return Description(
            self.before.head,
            self.sentences,
            numbers=self.table,
            advice=[*filter(None, [last.in_brackets]), *self.places, f"What to do: {self.advice}"],
            remarks=self.explained,
            notes=[note for note in last.cautions if not note.about],
        )
