"""What is said of the smallest errors of predictions that a test finds."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from caltest.hypothesis_tests._typical_errors import ErrorFamily, ErrorKind
from caltest.results import ConfidenceInterval, Result
from caltest.results._decision import rejects
from caltest.results._description import Description, Table, percent, sized
from caltest.results._verdict import round_up
from caltest.statistics import Statistic

if TYPE_CHECKING:
    import pandas as pd

USUAL_POWER = 0.8
TOLERATED_POINTS, TOLERATED_FACTOR = 5.0, 1.5
"""Errors that data must find to approve predictions; the factor is for rare events."""
RARE = 0.05
"""Share of an outcome below which errors are reported as a factor: 0.05 points mean nothing to a reader."""

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

    See Also
    --------
    caltest.detectable_error : The function that returns such errors.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> result = caltest.detectable_error(y_prob, n_resamples=99, rng=0)
    >>> error = result.errors[0]
    >>> error.kind, error.power, round(error.points, 1)
    ('too low', 0.8, 8.9)
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
    n_groups : int or None
        Number of groups, if observations of a group may depend on each other.
    icc : float or None
        Intraclass correlation of the labels of a group, which was given, or estimated from observed labels.
    icc_interval : ConfidenceInterval or None
        Its 95 % confidence interval, if it was estimated.
    inflation : float or None
        How much more residuals vary together than independent ones, if labels depend on each other in time.

    See Also
    --------
    caltest.detectable_error : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> result = caltest.detectable_error(y_prob, n_resamples=99, rng=0)
    >>> result.power, [error.kind for error in result.errors]
    (0.8, ['too low', 'too high', 'too extreme', 'not extreme enough'])
    """

    errors: tuple[SmallestError, ...]
    power: float
    alpha: float
    test_statistic: Statistic
    n_samples: int
    n_outcomes: int
    predicted: float
    n_resamples: int
    n_groups: int | None = None
    icc: float | None = None
    icc_interval: ConfidenceInterval | None = None
    inflation: float | None = None

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
        """Whether one of two outcomes is so rare that errors are reported as a factor."""
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
            times = ((math.sqrt(self.factor) - 1) / (math.sqrt(TOLERATED_FACTOR) - 1)) ** 2
            error = f"true risks of {TOLERATED_FACTOR:g} times the predicted ones"
            return f"{few} To find {error}, collect {self._about(times)}."
        if math.isfinite(self.points) and not self.is_rare:
            times, error = (self.points / TOLERATED_POINTS) ** 2, f"errors of {TOLERATED_POINTS:g} percentage points"
            return f"{few} To find {error}, collect {self._about(times)}."
        if self.n_groups is not None or self.inflation is not None:
            more = "data from more groups" if self.inflation is None else "predictions over a longer time"
            return f"{few} Collect {more}."
        if rarer <= _EVENTS / sys.maxsize:  # more observations than an array can have
            return few
        return f"{few} Collect {self._about(_EVENTS / rarer / self.n_samples)} at least."

    def _about(self, times: float) -> str:
        """Return some times as many observations, or groups, in words."""
        if self.inflation is not None:
            return f"predictions over {_times(times)} as long a time"
        if self.n_groups is None:
            return f"about {round_up(self.n_samples * times):,} observations"
        return f"data from about {round_up(self.n_groups * times):,} groups such as these"

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

    def of_complement(self) -> DetectableError:
        """Return the same errors in words of the complement of the event."""
        swapped: dict[ErrorKind, ErrorKind] = {"too low": "too high", "too high": "too low"}
        share = self.predicted
        errors = [
            replace(
                error,
                kind=swapped.get(error.kind, error.kind),
                size=-error.size if error.family == "shift" else error.size,
                factor=(1 - error.factor * share) / (1 - share),
            )
            for error in self.errors
        ]
        errors.sort(key=lambda error: error.kind == "too high" if error.family == "shift" else 2)
        return replace(self, errors=tuple(errors), predicted=1 - share)

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
        smallest = 0.0 if self.n_groups is None else 2.0 ** (1 - self.n_groups)
        if not rejects(smallest, self.alpha):
            yield f"With {self.n_groups} groups no p-value below {smallest:.4g} is possible: no error would be found."
        elif not found:
            what = "observations" if self.n_groups is None else "groups"
            what = what if self.inflation is None else "stretches of time"
            yield f"These are so few {what} that no error, however large, would have been found reliably."
        elif missed:
            yield f"That they are {missed} would not have been found reliably, however large the error."
        if found and self.inflation is not None:
            yield f"Labels were taken to depend on each other in time as these do (inflation {self.inflation:.3g})."
        if found and self.icc_interval is not None:
            low, high = self.icc_interval
            between = f"intraclass correlation {self.icc:.2g}, 95 % interval {low:.2g} to {high:.2g}"
            yield f"Labels of a group were taken to be as alike as these are ({between})."
        elif found and self.icc is not None:
            best = " This is the best case." if self.icc == 0 else ""
            yield f"Labels of a group were taken to have an intraclass correlation of {self.icc:g}.{best}"

    def _names_of(self, errors: Sequence[SmallestError]) -> str:
        """Return what predictions with some errors are, as the rest of a sentence; empty without errors."""
        kinds: list[str] = [error.kind for error in errors]
        shifts = [error.kind for error in errors if error.family == "shift"]
        if shifts and self.n_outcomes > 2:
            kinds = [*kinds[len(shifts) :], f"{' or '.join(shifts)} for the most frequent class"]
        *first, last = kinds or [""]
        return f"{', '.join(first)} or {last}" if first else last

    def _describe(self) -> Description:
        size = f"{sized(self.n_samples, self.n_groups)}, {self.n_outcomes} outcomes"
        signs = "" if self.n_groups is None else " and with random signs of groups"
        looked = self.icc_interval is not None or self.inflation is not None
        used = "Of labels only their dependence was used." if looked else "No label was used."
        remarks = [
            "size: shift of the logits, slope of the logits, or temperature of the true probabilities. points: mean "
            "absolute change of the probability, in percentage points. factor: mean of the true probabilities divided "
            "by that of the predicted ones.",
            f"Power {percent(self.power)}, level {percent(self.alpha)}; labels simulated from changed predictions and "
            f"compared with {self.n_resamples:,} draws from the predictions{signs}. {used}",
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


def _times(number: float) -> str:
    """Return how many times as long a time must be, in words."""
    return "about twice" if number <= 2 else f"about {round_up(number):,} times"


def points_in_words(points: float) -> str:
    """Return an error in percentage points, as few digits as it needs."""
    shown = f"{points:.2g}" if points < 1 else f"{points:.1f}"
    return f"{shown} percentage point{'' if shown == '1' else 's'}"


def in_words(share: float) -> str:
    """Return a share as "4 of 5", or in per cent."""
    near = Fraction(share).limit_denominator(_SHARES)
    return f"{near.numerator} of {near.denominator}" if abs(near - share) < 1e-9 else f"{percent(share)} of"
