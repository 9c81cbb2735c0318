"""The smallest error that a monitor would have noticed, by sequences of labels simulated with errors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from caltest.hypothesis_tests._detectable_error_result import (
    USUAL_POWER,
    DetectableError,
    SmallestError,
    in_words,
    points_in_words,
)
from caltest.hypothesis_tests._power_curve import search_power
from caltest.hypothesis_tests._typical_errors import OF_EVENTS, TypicalError, mean_change
from caltest.predictions._arrays import Booleans, Floats
from caltest.results._description import Description
from caltest.streaming.monitors._bets import Bets
from caltest.streaming.monitors._pending_bets import PendingBets

MOST = 10_000
"""Observations of a simulated sequence; a monitor of more has noticed at least what it noticed in the first ones."""
MOST_TIMES = 2_000
"""Times of a simulated sequence where outcomes of other predictions are pending, which takes longer."""
_FEWER = 15  # sequences than of a test
_UNIT = 4.0  # standard errors of an error that raises an alarm, about
_OF_CONFIDENCE = {"too low": "under-confident", "too high": "over-confident"}
_ROUNDING = 1e-9
_SEED = 0
_SHIFTS = OF_EVENTS[:2]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NoticedError(DetectableError):
    """The smallest errors from the first observation on that a monitor would have noticed.

    Attributes
    ----------
    n_passed : int
        Number of observations of the monitor; an alarm comes within the first ``n_samples`` of them.
    of_confidence : bool
        Whether the errors are those of the confidence.
    at_once : bool
        Whether outcomes of several predictions may depend on each other, which those of the sequences do not.

    See Also
    --------
    caltest.CalibrationMonitor : The monitor whose result has it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> result = caltest.CalibrationMonitor().update(y_true, y_prob).result()
    >>> noticed = result.verdict.detectable
    >>> noticed.n_passed, noticed.power
    (300, 0.8)
    """

    n_passed: int
    of_confidence: bool = False
    at_once: bool = False

    def _sentences(self) -> Iterator[str]:
        within = "" if self.n_samples == self.n_passed else f" within the first {self.n_samples:,} observations"
        independent = " of independent outcomes" if self.at_once else ""
        often = (
            f"there would have been an alarm{within} in {in_words(self.power)} such sequences{independent}; "
            "smaller errors may be missed, and errors that begin later are noticed later."
        )
        found, missed = (self._names_of([e for e in self.errors if e.found is wanted]) for wanted in (True, False))
        if self.is_rare and math.isfinite(self.factor) and not self.of_confidence:
            risks = "risks" if self.predicted <= 0.5 else "risks that the event does not happen"
            yield f"Had the true {risks} been {self.factor:.3g} times the predicted ones from the beginning, {often}"
        elif found:
            what = "model" if self.of_confidence else "predictions"
            yield f"Had the {what} been {found} by {points_in_words(self.points)} from the beginning, {often}"
        if not found:
            yield "These are so few observations that no error, however large, would have raised an alarm reliably."
        elif missed:
            yield f"That they are {missed} would not have raised an alarm reliably, however large the error."
        if found and not self.of_confidence:
            yield "Which wrong slope would have been noticed is not known, as the predictions were not kept."

    def _describe(self) -> Description:
        return Description("Smallest error that is noticed", [*filter(None, [self.conclusion, self.advice])])


@dataclass(frozen=True)
class Noticing:
    r"""A monitor whose labels are simulated with errors of predictions such as those that it has had.

    A monitor does not hold predictions, but for each stream of bets the sums of p, of v = p (1 - p), of v z and of
    v z^2 with z = 2 p - 1, and so those of p to the powers 1 to 3. Two probabilities with weights that have these sums
    stand for the predictions, in random order; with labels that have the probabilities of an error a new monitor bets
    against them. The share of sequences with an alarm is the power, which is searched for as that of a test.

    Errors are shifts of the logits. Their effect on the mean is the sum of v to first order, which the two
    probabilities have. That of a slope depends on how extreme the predictions are, which they do not show: errors of
    the slope that were found in this way had 0.56 to 0.8 of the points that they should have, so that none is reported.

    How far outcomes of a batch or within a lead depend on each other is not known: those of a sequence are independent.

    Of several classes the sums do not tell how predictions of the classes go together, and errors of the confidence
    alone are simulated. Its bets hold half of the wealth, so that they raise an alarm by themselves at twice the
    threshold: the other bets can only add to it, and the power is at least that.

    Attributes
    ----------
    prob, weight : tuples of float
        What stands for the predictions, and the shares of the observations that have them.
    n_passed : int
        Number of observations.
    threshold : float
        Wealth of the alarm.
    alpha : float
        Level of the monitor.
    of_confidence : bool
        Whether it is the confidence that is bet on.
    batch, lead : int
        Number of predictions of a time, and of times until outcomes count, on average.
    """

    prob: tuple[float, ...]
    weight: tuple[float, ...]
    n_passed: int
    threshold: float
    alpha: float
    of_confidence: bool = False
    batch: int = 1
    lead: int = 1

    @classmethod
    def of(cls, bets: Bets, alpha: float, n_times: int) -> Noticing:
        """Return what a monitor with these bets, on predictions of so many times, would have noticed."""
        several = bets.n_outcomes > 2
        first, mixed, number, total = bets.adaptive[-1, 0, [3, 4, 6, 7]].tolist()
        mean, second = total / number, (total - first) / number
        prob, weight = _nodes(mean, second, (3 * second - mean - mixed / number) / 2)
        more = {}
        if isinstance(bets, PendingBets):
            more = {"batch": round((bets.n_samples + bets.n_pending) / n_times), "lead": len(bets.size) + 1}
        return cls(prob, weight, bets.n_samples, bets.threshold * (2 if several else 1), alpha, several, **more)

    @property
    def result(self) -> NoticedError | None:
        """The smallest errors that are noticed with the usual power; None if all predictions are certain."""
        errors = [error for error in map(self._smallest, _SHIFTS) if error is not None]
        if not errors:
            return None
        return NoticedError(
            errors=tuple(errors),
            power=USUAL_POWER,
            alpha=self.alpha,
            test_statistic=None,  # type: ignore[arg-type]  # the wealth is no statistic
            n_samples=self._horizon,
            n_outcomes=2,
            predicted=float(self._table[:, 1] @ self.weight),
            n_resamples=0,
            n_passed=self.n_passed,
            of_confidence=self.of_confidence,
            at_once=self.batch * self.lead > 1,
        )

    @property
    def _horizon(self) -> int:
        return min(self.n_passed, MOST, MOST if self.batch * self.lead == 1 else MOST_TIMES * self.batch)

    @property
    def _table(self) -> Floats:
        event = np.array(self.prob)
        return np.column_stack([1 - event, event])

    def alarms(self, true_prob: Floats, number: int, first: int) -> int:
        """Return how many sequences raise an alarm whose labels have probabilities ``(n_nodes, 2)``."""
        found, passed, event = 0, np.cumsum(self.weight), np.array(self.prob)
        mirrored = passed[-1] < 2 * event @ self.weight  # so that the complement of an event has the same sequences
        for place in range(first, first + number):
            rng = np.random.default_rng([_SEED, place])
            draw, label = rng.random((2, self._horizon))
            node = np.searchsorted(passed, (1 - draw if mirrored else draw) * passed[-1])
            happened = label >= true_prob[node, 0] if mirrored else label < true_prob[node, 1]
            found += self._raises_alarm(event[node], happened)
        return found

    def _raises_alarm(self, event: Floats, happened: Booleans) -> bool:
        if self.batch * self.lead == 1:
            return Bets.of(2, self.threshold).raise_alarm(event, happened)
        bets, n_times = PendingBets.of(2, self.threshold), -(-len(event) // self.batch)
        size = np.full(n_times, self.batch)
        size[-1] -= self.batch * n_times - len(event)
        before = np.maximum(np.arange(n_times) + 1 - self.lead, 0)
        after = np.append(before[1:], n_times)  # at the end all outcomes count
        bets.place_times(np.column_stack([1 - event, event]), happened.astype(np.int64), size, before, after)
        return bets.alarm is not None

    def _smallest(self, error: TypicalError) -> SmallestError | None:
        """Return the smallest error of a kind that is noticed; None if the predictions cannot have it."""
        table, weight = self._table, np.array(self.weight)
        information = self._horizon * float(weight @ table.prod(axis=1))
        if information <= 0:
            return None

        def alarms(amount: float, number: int, first: int) -> int:
            return self.alarms(error.true_prob(table, amount), number, first)

        start = _UNIT / math.sqrt(information)
        amount, power = search_power(alarms, start, error.largest, USUAL_POWER, fewer=_FEWER)
        size = points = factor = math.nan
        if math.isfinite(amount):
            true_prob = error.true_prob(table, amount)
            size, points = error.size(amount), 100 * mean_change(table, true_prob, weight)
            factor = float(weight @ true_prob[:, 1] / (weight @ table[:, 1]))
        kind: Any = _OF_CONFIDENCE[error.kind] if self.of_confidence else error.kind
        return SmallestError(kind=kind, family="shift", size=size, points=points, factor=factor, power=power)


@lru_cache(maxsize=64)
def _noticed(noticing: Noticing) -> NoticedError | None:
    return noticing.result


def noticed_error(bets: Bets, alpha: float, n_times: int) -> NoticedError | None:
    """Return the smallest errors that a monitor with these bets would have noticed, computed once."""
    return _noticed(Noticing.of(bets, alpha, n_times))


def _nodes(mean: float, second: float, third: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return probabilities and weights that have the means of p, p^2 and p^3 (Gauss quadrature)."""
    variance = second - mean**2
    if variance <= _ROUNDING * mean * (1 - mean):
        return (mean,), (1.0,)
    half = (third - 3 * mean * second + 2 * mean**3) / variance / 2
    root = math.sqrt(half**2 + variance)
    left, right = max(half - root, -mean), min(half + root, 1 - mean)
    return (mean + left, mean + right), (right / (right - left), -left / (right - left))
