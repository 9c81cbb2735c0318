"""The smallest errors of predictions that a test finds, from the predictions and their number alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest.hypothesis_tests._power_curve import search_power, validate_power
from caltest.hypothesis_tests._typical_errors import (
    ErrorFamily,
    ErrorKind,
    TypicalError,
    mean_change,
    shifted_class,
    typical_errors,
)
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._sample import Sample, induce
from caltest.predictions._view import LensView
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._validation import (
    SeedLike,
    validate_count,
    validate_prob,
)
from caltest.resampling.draws._labels import Draws, OutcomeDraws
from caltest.resampling.engine._evaluation import Evaluation, Question, draw_nulls
from caltest.resampling.engine._options import DetectionOptions
from caltest.resampling.engine._pvalues import RankedDraws
from caltest.resampling.engine._run import settle
from caltest.resampling.engine._stopping import USUAL_DRAWS, number_of_draws
from caltest.results import Result, TestResult
from caltest.results._description import Description, Table, counted, percent
from caltest.results._progress import reporting
from caltest.results._verdict import round_up
from caltest.statistics import Omnibus, Statistic

if TYPE_CHECKING:
    import pandas as pd

ENOUGH_DRAWS = 999
"""Draws of a test that are enough to take its critical value from them; otherwise new ones are made."""
USUAL_POWER = 0.8
TOLERATED_POINTS, TOLERATED_FACTOR = 5.0, 1.5
"""Errors that data must find to approve predictions; the factor is for rare events."""
RARE = 0.05
"""Share of an outcome below which errors are told as a factor: 0.05 points tell nobody anything."""

UNIT = 3.2
"""Standard errors of an error that the default test finds, about."""
LARGE = 2**18
"""Predicted probabilities from which fewer data sets are simulated."""

_FEWER = 3  # a third as many
_EVENTS = 20  # that are expected, or not, in data that can decide
_SHARES = 20  # "4 of 5": the largest denominator


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SmallestError(Result):
    """The smallest error of one kind that a test finds with some probability.

    Attributes
    ----------
    kind : str
        What predictions with this error are: of two outcomes "too low", "too high", "too extreme" or "not extreme
        enough"; of several classes "too low" or "too high" for the most frequent class, "over-confident" or
        "under-confident".
    family : {"shift", "slope", "temperature"}
        What is wrong: the constant, the slope or the temperature of the logits.
    size : float
        Shift in logits, slope or temperature of the true probabilities; NaN if no error of this kind is found.
    points : float
        Mean absolute change of the probability, in percentage points; for several classes half the sum over them.
    factor : float
        Mean of the true probabilities divided by that of the predicted ones, of the event or the most frequent class.
    power : float
        Probability with which the error is found; where ``size`` is NaN, that of the largest error.
    """

    kind: ErrorKind
    family: ErrorFamily
    size: float
    points: float
    factor: float
    power: float

    _derived: ClassVar[tuple[str, ...]] = ("found",)

    @property
    def found(self) -> bool:
        """Whether an error of this kind is found at all."""
        return math.isfinite(self.size)

    def _describe(self) -> Description:
        return Description(f"Smallest error that is found ({self.kind})", [], [_table([self])])


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DetectableError(Result):
    """Result of `detectable_error`.

    Attributes
    ----------
    errors : tuple of SmallestError
        The smallest error of each kind. A kind that such predictions cannot have is left out: a slope if they are all
        equal, any if they are all 0 or 1.
    power, alpha : float
        Probability with which these errors are found, and level of the test.
    test_statistic : Statistic
        What is tested.
    n_samples, n_outcomes : int
        Number of observations, and of outcomes.
    predicted : float
        Mean predicted probability of the event, or of the most frequent class.
    n_resamples : int
        Number of draws of the null distribution.
    """

    errors: tuple[SmallestError, ...]
    power: float
    alpha: float
    test_statistic: Statistic
    n_samples: int
    n_outcomes: int
    predicted: float
    n_resamples: int

    _derived: ClassVar[tuple[str, ...]] = ("points", "factor", "too_few", "conclusion", "advice")

    @property
    def points(self) -> float:
        """Mean error in percentage points: the largest of the smallest errors of all kinds that are found; else NaN."""
        return max((error.points for error in self.errors if error.found), default=math.nan)

    @property
    def factor(self) -> float:
        """True divided by predicted probability of the rarer of two outcomes that is found; NaN if none is."""
        if self.n_outcomes != 2:
            return math.nan
        for error in self.errors:
            if error.family == "shift" and error.found and error.kind == self._raises_the_rarer:
                share = self.predicted
                return error.factor if share <= 0.5 else (1 - error.factor * share) / (1 - share)
        return math.nan

    @property
    def is_rare(self) -> bool:
        """Whether one of two outcomes is so rare that errors are told as a factor."""
        return self.n_outcomes == 2 and min(self.predicted, 1 - self.predicted) < RARE

    @property
    def too_few(self) -> bool:
        """Whether no error, or only one above 5 percentage points or above the base rate, would have been found."""
        base = 100 * min(self.predicted, 1 - self.predicted) if self.n_outcomes == 2 else math.inf
        return bool(self.errors) and not self.points <= min(TOLERATED_POINTS, base)

    @property
    def conclusion(self) -> str:
        """What would have been found, and what not, in words."""
        return " ".join(self._sentences())

    @property
    def advice(self) -> str:
        """How many observations to collect if these are too few, in words; empty if they are not.

        If nothing is found that the number could be derived from, it has 20 expected events of the rarer outcome, or of
        the most frequent class and of the others.
        """
        if not self.too_few:
            return ""
        few, rarer = "These data are too few to approve the predictions.", min(self.predicted, 1 - self.predicted)
        if self.is_rare and math.isfinite(self.factor):
            # The root of a number of rare events has the same variance whatever their rate is.
            number = self.n_samples * ((math.sqrt(self.factor) - 1) / (math.sqrt(TOLERATED_FACTOR) - 1)) ** 2
            return (
                f"{few} To find true risks of {TOLERATED_FACTOR:g} times the predicted ones, collect {_about(number)}."
            )
        if math.isfinite(self.points) and not self.is_rare:
            number, error = self.n_samples_for(TOLERATED_POINTS), f"errors of {TOLERATED_POINTS:g} percentage points"
            return f"{few} To find {error}, collect {_about(number)}."
        number = _EVENTS / rarer if rarer > 0 else math.inf
        return f"{few} Collect {_about(number)} at least." if math.isfinite(number) else few

    def n_samples_for(self, points: float) -> float:
        """Return about how many such observations find an error of some points; NaN if none is found now.

        The error that is found is assumed to shrink with the root of their number.

        Parameters
        ----------
        points : float
            Mean error in percentage points.

        Returns
        -------
        float
            The number of observations.
        """
        return self.n_samples * (self.points / points) ** 2

    def to_frame(self) -> pd.DataFrame:
        """Return the smallest error of each kind.

        Returns
        -------
        pandas.DataFrame
            One row for each kind: ``kind``, ``family``, ``size``, ``points``, ``factor``, ``power``.
        """
        import pandas as pd

        names = SmallestError._names()
        return pd.DataFrame([{name: getattr(error, name) for name in names} for error in self.errors], columns=names)

    @property
    def _raises_the_rarer(self) -> ErrorKind:
        return "too low" if self.predicted <= 0.5 else "too high"

    def _sentences(self) -> Iterator[str]:
        if not self.errors:
            yield "All predictions are 0 or 1: one observation that contradicts its prediction would have been found."
            return
        found, missed = (self._names_of([e for e in self.errors if e.found is wanted]) for wanted in (True, False))
        often = f"this would have been found in {in_words(self.power)} such data sets; smaller errors may be missed."
        if self.is_rare and math.isfinite(self.factor):
            risks = "risks" if self.predicted <= 0.5 else "risks that the event does not happen"
            yield f"Had the true {risks} been {self.factor:.3g} times the predicted ones, {often}"
        elif math.isfinite(self.points):
            which = f"{found}, and wrong" if missed else "wrong"
            yield f"Had the predictions been {which} by {points_in_words(self.points)} on average, {often}"
        if not found:
            yield "These are so few observations that no error, however large, would have been found reliably."
        elif missed:
            yield f"That they are {missed} would not have been found reliably, however large the error."

    def _names_of(self, errors: Sequence[SmallestError]) -> str:
        """Return what predictions with some errors are, as the rest of a sentence; empty without errors."""
        kinds: list[str] = [error.kind for error in errors]
        shifts = [error.kind for error in errors if error.family == "shift"]
        if shifts and self.n_outcomes > 2:
            kinds = [*kinds[len(shifts) :], f"{' or '.join(shifts)} for the most frequent class"]
        *first, last = kinds or [""]
        return f"{', '.join(first)} or {last}" if first else last

    def _describe(self) -> Description:
        size = f"{counted(self.n_samples)}, {self.n_outcomes} outcomes"
        remarks = [
            "size: shift of the logits, slope of the logits, or temperature of the true probabilities. points: mean "
            "absolute change of the probability, in percentage points. factor: mean of the true probabilities divided "
            "by that of the predicted ones.",
            f"Power {percent(self.power)}, level {percent(self.alpha)}; labels simulated from changed predictions and "
            f"compared with {self.n_resamples} draws from the predictions. No label was used.",
        ]
        tables = [_table(self.errors)] if self.errors else []
        return Description(
            f"Smallest detectable error ({self.test_statistic.name}, {size})",
            [*filter(None, [self.conclusion, self.advice])],
            tables,
            remarks,
        )


def _table(errors: Sequence[SmallestError]) -> Table:
    records = [
        {name: getattr(error, name) for name in SmallestError._names()}
        | {"shown": f"{error.family} {error.size:.3g}" if error.found else f"none (power {error.power:.2f})"}
        | {name: f"{getattr(error, name):.3g}" if error.found else "" for name in ("points", "factor")}
        for error in errors
    ]
    columns = {"predictions are": "{kind}", "size": "{shown}", "points": "{points}", "factor": "{factor}"}
    return Table.of(records, columns, left=("size",))


def _about(number: float) -> str:
    return f"about {round_up(number):,} observations"


def points_in_words(points: float) -> str:
    """Return an error in percentage points, as few digits as it needs."""
    shown = f"{points:.2g}" if points < 1 else f"{points:.1f}"
    return f"{shown} percentage point{'' if shown == '1' else 's'}"


def in_words(share: float) -> str:
    """Return a share as "4 of 5", or in per cent."""
    near = Fraction(share).limit_denominator(_SHARES)
    return f"{near.numerator} of {near.denominator}" if abs(near - share) < 1e-9 else f"{percent(share)} of"


@dataclass(frozen=True, eq=False)
class Detection:
    """A test of some predictions, of which new labels are drawn from other probabilities.

    Attributes
    ----------
    statistic : Statistic
        What is tested, settled for the sample.
    sample : Sample
        The predictions; their labels are not used.
    null : array of shape (n_components, n_resamples)
        Draws of its components from the predictions: those of the test, if it has been made.
    alpha : float
        Level of the test.
    seed : numpy.uint64
        Seed of the simulated labels.
    workers : int
        Threads.
    n_samples : int or None
        Number of observations, if the sample is a part of them: the amount of an error that is found goes with its
        inverse root.
    """

    statistic: Statistic
    sample: Sample
    null: Floats = field(repr=False)
    alpha: float = 0.05
    seed: np.uint64 = field(default_factory=np.uint64)
    workers: int = 1
    n_samples: int | None = None

    @classmethod
    def of(
        cls,
        statistic: Statistic,
        sample: Sample,
        *,
        alpha: float = 0.05,
        n_resamples: int | None = None,
        workers: int = 1,
        rng: SeedLike = 0,
        n_samples: int | None = None,
    ) -> Detection:
        """Return the test of a sample, with draws that are made here."""
        chosen, number = settle(statistic, sample), number_of_draws(n_resamples, USUAL_DRAWS, sample.given.size)
        draws = OutcomeDraws.of(number, rng)
        (null,) = draw_nulls([Question(chosen, LensView(sample))], sample, draws, workers)
        return cls(chosen, sample, null, alpha, ~draws.seed, workers, n_samples)

    @classmethod
    def of_test(cls, test: TestResult, sample: Sample) -> Detection | None:
        """Return a test that has been made of a sample; None where errors cannot be simulated.

        These are groups of observations, other hypotheses than calibration, folds, and samples of so many classes that
        tables of doubles are not made. The draws of the test are taken if there are enough of them.
        """
        if sample.group is not None or not test.of_calibration or test.fold_names or sample.is_large:
            return None
        drawn = [part.null_distribution for part in test.components]
        if any(values is None or len(values) < ENOUGH_DRAWS for values in drawn):
            return cls.of(test.test_statistic, sample, alpha=test.alpha)
        statistic = settle(test.test_statistic, sample)
        return cls(statistic, sample, np.stack(drawn), test.alpha)  # type: ignore[arg-type]

    @cached_property
    def usual(self) -> DetectableError:
        """The smallest errors that are found with the usual power."""
        return self.result(USUAL_POWER)

    @cached_property
    def _evaluation(self) -> Evaluation:
        question = Question(self.statistic, LensView(self.sample))
        return Evaluation([question], self.sample, OutcomeDraws(self.seed, 0, 1))

    @cached_property
    def _ranked(self) -> RankedDraws:
        return RankedDraws.of(self.null)

    def rejections(self, true_prob: Floats, number: int, first: int = 0) -> int:
        """Return how many of some data sets are rejected whose labels have these probabilities."""
        moved = replace(self.sample, given_null=true_prob)

        def evaluate(draws: Draws) -> Floats:
            drawn = (labels for _, labels in draws.blocks(moved))
            return np.concatenate([self._evaluation.of_labels(some)[0] for some in drawn], axis=1)

        values = OutcomeDraws(self.seed, first, number).map(evaluate, self.workers)
        return int(self._ranked.rejected(values, self.alpha).sum())

    def smallest_amount(self, error: TypicalError, power: float) -> tuple[float, float]:
        """Return the smallest amount of a kind of error that is found, and its power.

        If none is found the amount is infinite, and the power that of the largest one; both are NaN if the predictions
        cannot have the error.
        """
        prob = self.sample.expected
        information = error.information(prob)
        if information <= 0:
            return math.nan, math.nan
        return search_power(
            lambda amount, *which: self.rejections(error.true_prob(prob, amount), *which),
            UNIT / math.sqrt(information),
            error.largest,
            power,
            fewer=_FEWER if prob.size > LARGE else 1,
        )

    def smallest(self, error: TypicalError, power: float) -> SmallestError | None:
        """Return the smallest error of a kind that is found; None if the predictions cannot have it."""
        (amount, reached), prob = self.smallest_amount(error, power), self.sample.expected
        if math.isnan(amount):
            return None
        whole = self.n_samples or self.sample.n_samples
        if math.isinf(amount) and whole > self.sample.n_samples:  # more observations may find it
            return None
        if math.isinf(amount):
            return SmallestError(
                kind=error.kind, family=error.family, size=math.nan, points=math.nan, factor=math.nan, power=reached
            )
        amount *= math.sqrt(self.sample.n_samples / whole)
        true_prob, column = error.true_prob(prob, amount), shifted_class(prob)
        return SmallestError(
            kind=error.kind,
            family=error.family,
            size=error.size(amount),
            points=100 * mean_change(prob, true_prob),
            factor=float(true_prob[:, column].mean() / prob[:, column].mean()),
            power=power,
        )

    def result(self, power: float, progress: Any = None) -> DetectableError:
        """Return the smallest errors of all kinds."""
        errors, kinds = [], typical_errors(self.sample.n_outcomes)
        for done, error in enumerate(kinds):
            if progress is not None:
                progress(done, len(kinds))
            errors.append(self.smallest(error, power))
        if progress is not None:
            progress(len(kinds), len(kinds))
        prob = self.sample.expected
        return DetectableError(
            errors=tuple(error for error in errors if error is not None),
            power=power,
            alpha=self.alpha,
            test_statistic=self.statistic,
            n_samples=self.n_samples or self.sample.n_samples,
            n_outcomes=self.sample.n_outcomes,
            predicted=float(prob[:, shifted_class(prob)].mean()),
            n_resamples=self.null.shape[1],
        )


@reads_arguments
def detectable_error(
    y_prob: ArrayLike,
    *,
    power: float = USUAL_POWER,
    n_samples: int | None = None,
    **options: Unpack[DetectionOptions],
) -> DetectableError:
    r"""Compute the smallest errors that `calibration_test` finds with some probability (no labels needed).

    Errors that people make are looked at, each in both directions. With predictions p and an amount t the true
    probabilities are

    .. math:: \operatorname{logit} \pi = \operatorname{logit} p + t, \qquad
              \operatorname{logit} \pi = a + e^t \operatorname{logit} p, \qquad
              \pi_k \propto p_k^{1 / e^t}:

    a shift (of several classes, of the odds of the most frequent one); for two outcomes a slope, with the a that keeps
    the mean; for several classes a temperature. The default test is made on labels that are simulated from
    :math:`\pi`, with the critical value that its draws from p have. The power is fitted as :math:`\Phi(a + b t)` to
    data sets at about ten amounts, 3,600 of them near the answer, which is the t where the fit reaches ``power``. Data
    that do not reject calibration show no more than that the error is smaller than about this.

    Labels are independent of each other. If those of a group, such as a patient, may be alike, the answer lies between
    this one and that with the number of groups as ``n_samples``, where all labels of a group are the same.

    Parameters
    ----------
    power : float
        Probability with which the error is found, larger than ``alpha``.
    n_samples : int, optional
        Number of observations; by default as many as there are predictions. For another number, as many are taken at
        equal steps from the predictions in their order; those of more observations repeat.
    alpha : float
        Level of the test.

    Returns
    -------
    DetectableError
        The smallest error of each kind: its size, and the mean absolute change of the probability in percentage points.

    Raises
    ------
    TypeError
        If ``n_samples``, ``power`` or ``alpha`` is no number.
    ValueError
        If ``y_prob`` has values outside [0, 1] or rows that do not sum to 1; if ``power`` or ``alpha`` is not strictly
        between 0 and 1, or ``power`` not larger than ``alpha``; if ``n_samples`` or ``n_resamples`` < 1.

    See Also
    --------
    caltest.simulation.sample_size : The number of observations that any test needs against a model of known truth,
        whose predictions are drawn too.
    caltest.simulation.power_study : Power against models, by the amount of their miscalibration.
    equivalence_test : Is the error shown to be smaller than a margin? It needs labels.
    noise_floor : What chance alone shows on these predictions.

    References
    ----------
    J. M. Hoenig and D. M. Heisey (2001), The abuse of power: the pervasive fallacy of power calculations for data
    analysis, The American Statistician 55, 19-24: power is computed for errors of a size that matters, never for the
    error that was observed.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> y_prob = np.random.default_rng(0).beta(2, 6, 2000)
    >>> found = caltest.detectable_error(y_prob, n_resamples=999, rng=0)
    >>> [(error.kind, round(error.points)) for error in found.errors]
    [('too low', 3), ('too high', 3), ('too extreme', 2), ('not extreme enough', 2)]
    """
    power = validate_power(power, options["alpha"])
    prob = validate_prob(y_prob)
    number = len(prob) if n_samples is None else validate_count(n_samples, "n_samples")
    own: dict[str, Any] = {name: options[name] for name in ("alpha", "n_resamples", "workers", "rng")}
    with reporting(options["progress"], "simulating labels") as report:
        return Detection.of(Omnibus(), sample_of(prob, number), **own).result(power, report)


def sample_of(prob: Floats, n_samples: int) -> Sample:
    """Return a sample of some observations with predictions such as these, at equal steps in their order."""
    n = len(prob)
    if n_samples != n:
        order = np.argsort(prob[:, 1], kind="stable") if prob.shape[1] == 2 else _by_confidence(prob)
        prob = prob[order[(np.arange(n_samples) * 2 + 1) * n // (2 * n_samples)]]
    return induce(prob, np.zeros(n_samples, dtype=np.int64))  # labels are not looked at


def _by_confidence(prob: Floats) -> Integers:
    """Return the order of predictions by the most probable class, and by its probability."""
    return np.lexsort([prob.max(axis=1), prob.argmax(axis=1)])
