"""The wealth of bets against calibration, on one event or on several, and its path."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._bets import (
    ALARM,
    CASH,
    COUNT,
    N_ADAPTIVE,
    N_FIXED,
    N_IMPOSSIBLE,
    N_SUMS,
    NOW,
    PEAK,
    PEAK_UNITS,
    PRIOR,
    TINY,
    UNIT,
    UNITS,
    place_bets,
)
from caltest.predictions._arrays import Booleans, Floats
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import refuse_if, validate_count

_ODDS = np.array([1 / 4, 1 / 2, 2 / 3, 4 / 5, 5 / 4, 3 / 2, 2, 4, 1 / 2, 1, 2, 1, 1, 1 / 2, 1, 2])
RATIO = np.stack([1 / _ODDS, _ODDS])
"""Odds ratios of the fixed bets in the order of the kernel, of the rest and of the event."""

MOST_POINTS = 1024  # of the path
_BLOCK = 2**18  # probabilities that are handed to the kernel at once

TOO_HIGH, TOO_LOW = "too high", "too low"
TOO_EXTREME, NOT_EXTREME = "too extreme", "not extreme enough"


class Alarm(NamedTuple):
    """What made the wealth reach the threshold: the number of the observation, the stream, and the direction.

    ``n_recent`` is the number of observations that were remembered (0 after a label of probability 0), ``predicted``
    and ``observed`` are their average prediction and the frequency of the event.
    """

    observation: int
    stream: int
    direction: str
    n_recent: float = 0.0
    predicted: float = 0.0
    observed: float = 0.0


@dataclass
class Bets:
    """Wealth that begins at 1 and is bet on events whose probabilities were predicted.

    Attributes
    ----------
    n_outcomes : int
        Two have one stream of events, the second outcome; more have one for each and one for the most probable one.
    threshold : float
        Wealth of the alarm.
    tally : array of shape (8,)
        See `caltest._compiled._bets`, also for the next two.
    fixed : array of shape (n_streams, 16)
    adaptive : array of shape (n_streams, 2, 8)
    path : array of shape (2, n_points)
        Wealth and its units after every observation whose number is a multiple of ``every``.
    every : int
        A power of 2, so that there are at most `MOST_POINTS` of them.
    alarm : Alarm or None
        The first alarm.
    """

    n_outcomes: int
    threshold: float
    tally: Floats
    fixed: Floats
    adaptive: Floats
    path: Floats = field(default_factory=lambda: np.empty((2, 0)))
    every: int = 1
    alarm: Alarm | None = None

    @classmethod
    def of(cls, n_outcomes: int, threshold: float) -> Self:
        """Return bets of which half is placed at once."""
        shares = shares_of(n_outcomes)
        tally = np.zeros(8)
        tally[CASH] = 0.5
        tally[[NOW, PEAK]] = 1.0
        adaptive = np.zeros((len(shares), N_ADAPTIVE, N_SUMS))
        adaptive[:, :, 0] = 0.5 * shares[:, 1:]
        fixed = np.repeat(0.5 * shares[:, :1], N_FIXED, axis=1)
        return cls(n_outcomes, threshold, tally, fixed, adaptive)

    @property
    def n_samples(self) -> int:
        """Number of observations."""
        return int(self.tally[COUNT])

    @property
    def n_impossible(self) -> int:
        """How often an event of probability 0 happened; the wealth is infinite then."""
        return int(self.tally[N_IMPOSSIBLE])

    @property
    def log_wealth(self) -> float:
        """Logarithm of the wealth."""
        return math.inf if self.n_impossible else _logarithm(self.tally[NOW], self.tally[UNITS])

    @property
    def log_peak(self) -> float:
        """Logarithm of the largest wealth so far."""
        return math.inf if self.n_impossible else _logarithm(self.tally[PEAK], self.tally[PEAK_UNITS])

    @property
    def log_path(self) -> Floats:
        """Logarithm of the wealth at the points of the path, ``(n_points,)``."""
        return np.array([_logarithm(*point) for point in self.path.T.tolist()])

    @property
    def n_pending(self) -> int:
        """Number of predictions that were bet on and whose outcomes do not count yet: none, where all are known."""
        return 0

    def copy(self) -> Self:
        """Return bets that go on by themselves."""
        return replace(self, tally=self.tally.copy(), fixed=self.fixed.copy(), adaptive=self.adaptive.copy())

    def place(self, prob: NDArray[Any], outcome: NDArray[Any]) -> None:
        """Bet on the outcomes ``(n_samples,)`` of predictions ``(n_samples, n_outcomes)``, one after the other."""
        n_rows = max(1, _BLOCK // prob.shape[1])
        for start in range(0, len(prob), n_rows):
            rows = slice(start, start + n_rows)
            event, rest, happened = events_of(prob[rows].astype(np.float64, copy=False), outcome[rows])
            used = self._advance(event, rest, happened)
            if used < len(event):  # the kernel stops at the alarm
                self._advance(event[used:], rest[used:], happened[used:])

    def raise_alarm(self, event: Floats, happened: Booleans) -> bool:
        """Bet on events ``(n_samples,)`` up to the alarm, if there is one, and return whether there is."""
        self._advance(event[:, None], 1 - event[:, None], happened.astype(np.uint8)[:, None])
        return self.alarm is not None

    def _advance(self, event: Floats, rest: Floats, happened: NDArray[np.uint8]) -> int:
        before, silent = self.n_samples, self.tally[ALARM] == 0
        every, new = self._path_to(before + len(event))
        shares = shares_of(self.n_outcomes)
        used: int = place_bets(
            event, rest, happened, shares, RATIO, self.threshold, self.tally, self.fixed, self.adaptive, every, new
        )
        self._extend_path(every, new, before)
        if silent and self.tally[ALARM]:
            x, w, yes = event[used - 1], rest[used - 1], happened[used - 1] != 0
            low, high = np.where(x <= w, x, 1.0 - w) < TINY, np.where(x <= w, 1.0 - x, w) < TINY
            self.alarm = Alarm(self.n_samples, *self._cause(low & yes, high & ~yes))
        return used

    def _path_to(self, n_samples: int) -> tuple[int, Floats]:
        """Return the distance of the points of a path to so many observations, and room for new ones."""
        every = self.every
        while n_samples // every > MOST_POINTS:
            every *= 2
        return every, np.empty((2, (n_samples - self.n_samples) // every + 1))

    def _extend_path(self, every: int, new: Floats, before: int) -> None:
        """Add the points that a kernel found after so many observations."""
        n_new = self.n_samples // every - before // every
        if n_new or every > self.every:
            kept = self.path[:, every // self.every - 1 :: every // self.every]
            self.path, self.every = np.append(kept, new[:, :n_new], axis=1), every

    def averages(self, stream: int, memory: int = 0) -> tuple[float, float, float]:
        """Return how many observations are remembered, the average prediction of an event, and its frequency."""
        residual, n, predicted = self.adaptive[stream, memory, [1, 6, 7]].tolist()
        shares = (predicted / n, (predicted + residual) / n) if n else (math.nan, math.nan)
        return n, *(min(max(share, 0.0), 1.0) for share in shares)

    @property
    def _adaptive_wealth(self) -> Floats:
        """Wealth of the adaptive bets of each stream, ``(n_streams, 2)``."""
        return self.adaptive[:, :, 0]

    def _cause(self, low: NDArray[Any], high: NDArray[Any]) -> tuple[int, str, *tuple[float, ...]]:
        """Return an alarm but for its observation: the stream with the largest wealth, and what is wrong with it.

        ``low`` and ``high (n_streams,)`` are whether events of probability 0 happened, or of probability 1 did not.
        """
        impossible = np.flatnonzero((low != 0) | (high != 0))
        if impossible.size:
            stream = int(impossible[-1])  # of many classes the confidence comes last and goes first
            return stream, TOO_LOW if low[stream] else TOO_HIGH
        wealth = self._adaptive_wealth
        stream = int(np.argmax(self.fixed.sum(axis=1) + wealth.sum(axis=1)))
        memory = int(np.argmax(wealth[stream]))
        return stream, direction_of(self.adaptive[stream, memory, 1:6]), *self.averages(stream, memory)

    def to_dict(self) -> dict[str, Any]:
        """Return the state as plain Python objects."""
        return {
            "tally": self.tally.tolist(),
            "fixed": self.fixed.tolist(),
            "adaptive": self.adaptive.tolist(),
            "path": [[value if math.isfinite(value) else None for value in row] for row in self.path.tolist()],
            "every": self.every,
            "alarm": None if self.alarm is None else list(self.alarm),
        }

    @classmethod
    def from_dict(cls, n_outcomes: int, threshold: float, state: Mapping[str, Any]) -> Self:
        """Return the bets whose state was written by `to_dict`.

        Raises
        ------
        KeyError, TypeError, ValueError
            If the state has another form, or is one that bets cannot have.
        """
        n_streams = 1 if n_outcomes == 2 else n_outcomes + 1
        if len(state["fixed"]) != n_streams:  # before so much is allocated
            refuse(f"`fixed` must have {n_streams} rows for {n_outcomes} outcomes, got {len(state['fixed'])}.")
        found = cls.of(n_outcomes, threshold)
        for name in ("tally", "fixed", "adaptive", "path"):
            array, usual = np.array(state[name], dtype=np.float64), getattr(found, name)
            if name == "path":
                array[np.isnan(array)] = np.inf
            if array.ndim != usual.ndim or (name != "path" and array.shape != usual.shape):
                refuse(f"{name} has shape {array.shape}.")
            setattr(found, name, array)
        found.every = validate_count(state["every"], "every")
        found.alarm = None if state["alarm"] is None else _read_alarm(state["alarm"], n_streams)
        found._refuse_impossible()
        return found

    def _refuse_impossible(self) -> None:
        """Raise ValueError for what bets never come to."""
        tally, n_streams = self.tally, len(self.fixed)
        whole = tally[[COUNT, UNITS, PEAK_UNITS, N_IMPOSSIBLE, ALARM]]
        count = tally[COUNT]
        fits = {
            "tally": np.isfinite(tally).all()
            and (whole >= 0).all()
            and (whole == np.floor(whole)).all()
            and count <= 2**53
            and tally[N_IMPOSSIBLE] <= count * n_streams
            and 0 < tally[CASH] <= 0.5
            and min(tally[NOW], tally[PEAK]) > 0
            and (tally[PEAK_UNITS], tally[PEAK]) >= (tally[UNITS], tally[NOW])
            and tally[ALARM] <= count,
            "fixed": np.isfinite(self.fixed).all() and (self.fixed >= 0).all(),
            "adaptive": np.isfinite(self.adaptive).all() and (self.adaptive[:, :, [0, 3, 5, 6, 7]] >= 0).all(),
            "every": self.every & (self.every - 1) == 0,
            "path": self.path.shape == (2, count // self.every)
            and self.path.shape[1] <= MOST_POINTS
            and (self.path[0] > 0).all()
            and (self.path[1] >= 0).all(),
            "alarm": tally[ALARM] == (0 if self.alarm is None else self.alarm.observation),
        }
        wrong = next((name for name, fit in fits.items() if not fit), None)
        refuse_if(wrong is not None, f"`{wrong}` holds what bets never come to.")


def direction_of(sums: Floats) -> str:
    r"""Return in which direction outcomes differ from predictions, by the larger one of two standardised scores.

    With sums of :math:`r = y - p`, :math:`r z`, :math:`v = p (1 - p)`, :math:`v z` and :math:`v z^2` for :math:`z = 2 p
    - 1`, they are those of a shift, and of a slope beside it.
    """
    shift, slope, first, mixed, second = sums.tolist()
    centre = mixed / first if first > 0 else 0.0
    left = second - centre * mixed
    slope -= centre * shift
    by_shift = abs(shift) / math.sqrt(first + PRIOR)
    by_slope = abs(slope) / math.sqrt(left + PRIOR) if left > 0 else 0.0
    if by_shift >= by_slope:
        return TOO_LOW if shift > 0 else TOO_HIGH
    return NOT_EXTREME if slope > 0 else TOO_EXTREME


def _read_alarm(written: Any, n_streams: int) -> Alarm:
    if not isinstance(written, list) or len(written) != len(Alarm._fields):
        refuse(f"`alarm` must be an observation, a stream, a direction and averages, got {written!r:.80}.")
    observation = validate_count(written[0], "alarm")
    stream = validate_count(written[1], "alarm", minimum=0)
    if stream >= n_streams or written[2] not in (TOO_HIGH, TOO_LOW, TOO_EXTREME, NOT_EXTREME):
        refuse(f"`alarm` must have a stream below {n_streams} and a direction, got {written!r:.80}.")
    n_recent, *shares = (float(number) for number in written[3:])
    if not (0 <= n_recent <= 2 * observation and all(0 <= share <= 1 for share in shares)):
        refuse(f"`alarm` must have a number of observations and two shares, got {written!r:.80}.")
    return Alarm(observation, stream, written[2], n_recent, *shares)


@cache
def shares_of(n_outcomes: int) -> Floats:
    """Return the shares of a fixed and of an adaptive bet of each stream, ``(n_streams, 2)``; half for each kind."""
    weight = np.ones(1) if n_outcomes == 2 else np.append(np.full(n_outcomes, 0.5 / n_outcomes), 0.5)
    return weight[:, None] * np.array([0.5 / N_FIXED, 0.5 / N_ADAPTIVE])


def events_of(prob: Floats, outcome: NDArray[Any]) -> tuple[Floats, Floats, NDArray[np.uint8]]:
    """Return the probabilities of the events and of the rest, and what happened, each ``(n_samples, n_streams)``."""
    n_outcomes = prob.shape[1]
    if n_outcomes == 2:
        event, rest = np.array([prob[:, 1:], prob[:, :1]])  # rows without gaps that may be written to, for the kernel
        return event, rest, (outcome == 1).astype(np.uint8)[:, None]
    chosen = prob.argmax(axis=1)
    event = np.column_stack([prob, prob[np.arange(len(prob)), chosen]])
    happened = np.empty(event.shape, dtype=np.uint8)
    happened[:, :-1] = outcome[:, None] == np.arange(n_outcomes)
    happened[:, -1] = outcome == chosen
    return event, 1.0 - event, happened


def _logarithm(wealth: float, units: float) -> float:
    return float(math.log(wealth) + units * math.log(UNIT))
