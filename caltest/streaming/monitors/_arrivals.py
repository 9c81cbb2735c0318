"""Observations with the times of their predictions: which of them are complete, and when each outcome counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from hashlib import blake2b
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Integers
from caltest.predictions.inputs._parts import validate_ids
from caltest.predictions.inputs._refusals import refuse, refuse_if, require
from caltest.predictions.inputs._times import Moments, read_duration, read_moments, refuse_dates_as_numbers
from caltest.predictions.inputs._validation import is_number, validate_count

OBSERVATIONS, BATCHES, NUMBERS, DATES = "observations", "batches", "numbers", "dates"
_UNITS = {86_400_000_000: "day", 3_600_000_000: "hour", 60_000_000: "minute", 1_000_000: "second", 1: "microsecond"}
"""Names of numbers of microseconds."""

_DAY, _MOST = max(_UNITS), 2**62
_COUNTED = {OBSERVATIONS: ("observation", "observations"), BATCHES: ("batch", "batches"), DATES: ("step", "steps")}


class Lead(NamedTuple):
    """How long after its prediction an outcome is known: a number, or a number of microseconds; and what was passed."""

    number: int
    is_duration: bool
    passed: Any = None

    @classmethod
    def of(cls, lead: Any) -> Self | None:
        """Return what was passed, validated; None stands for outcomes that are known before the next prediction."""
        if lead is None:
            return None
        if isinstance(lead, int | np.integer) and not isinstance(lead, bool | np.timedelta64):
            require(1 <= lead <= _MOST, "`lead` must be a whole number from 1 to 2^62 or a duration such as '7D'", lead)
            return cls(int(lead), is_duration=False)
        return cls(read_duration(lead), is_duration=True, passed=lead)

    @classmethod
    def from_list(cls, written: Any) -> Self | None:
        """Return the lead that JSON holds as a list."""
        if written is None:
            return None
        number, is_duration = written
        refuse_if(not isinstance(is_duration, bool), f"`lead` must be a number and true or false, got {written!r:.80}.")
        return cls(validate_count(number, "lead"), is_duration)

    @property
    def value(self) -> int | timedelta:
        """The lead as it may be passed."""
        return timedelta(microseconds=self.number) if self.is_duration else self.number

    def in_words(self, one: str, many: str) -> str:
        """Return the lead in words, a number with the name of what is counted."""
        number = self.number
        if self.is_duration:
            unit, one = next((unit, one) for unit, one in _UNITS.items() if number % unit == 0)
            number, many = number // unit, f"{one}s"
        return f"{number:,} {one if number == 1 else many}"


class Rows(NamedTuple):
    """Some observations: times, predictions ``(n_rows, n_outcomes)`` and outcomes."""

    time: NDArray[Any]
    prob: NDArray[Any]
    outcome: Integers

    def take(self, rows: Any) -> Rows:
        """Return some of the observations."""
        return Rows(*(part[rows] for part in tuple(self)))

    def to_list(self) -> list[Any]:
        """Return times, predictions and outcomes as plain Python objects."""
        return [part.tolist() for part in tuple(self)]

    @classmethod
    def from_list(cls, n_outcomes: int, written: Any) -> Self | None:
        """Return the observations that were written by `to_list`, validated."""
        if written is None:
            return None
        time, prob, outcome = (np.array(part) for part in written)
        n = len(outcome)
        fits = (
            time.shape == (n,) and n > 0 and time.dtype.kind in "if" and np.isfinite(time).all()
            and prob.shape == (n, n_outcomes) and prob.dtype.kind == "f" and ((prob >= 0) & (prob <= 1)).all()
            and outcome.shape == (n,) and outcome.dtype.kind == "i" and ((outcome >= 0) & (outcome < n_outcomes)).all()
        )  # fmt: skip
        refuse_if(not fits, f"observations must be times, predictions and outcomes of one length, got {written!r:.80}.")
        return cls(time, prob, outcome)


class Complete(NamedTuple):
    """Observations of times to which nothing is added, ready to be bet on.

    ``size``, ``before`` and ``after (n_times,)`` are as in `caltest.streaming.monitors._pending_bets.PendingBets`.
    """

    prob: NDArray[Any]
    outcome: Integers
    size: Integers
    before: Integers
    after: Integers


@dataclass(frozen=True)
class Arrivals:
    """What was passed with times, or batches, and is not bet on yet.

    Attributes
    ----------
    lead : Lead or None
        How long after its prediction an outcome is known.
    kind : str
        What the time of a prediction is: the number of the observation or of the batch, a number, or a date.
    n_times : int
        Number of complete times.
    pending : array of shape (n_pending,)
        Complete times, or their numbers, whose outcomes do not count yet.
    unit : int
        Dates are multiples of so many microseconds so far; of whole numbers 1, of others 0.
    last : number or None
        The last time.
    opened : Rows or None
        Observations of the last time, to which others may be added.
    held : Rows or None
        Observations whose outcomes were reported early.
    now : number or None
        The last time at which an outcome was reported.
    batches : frozenset of int
        Digests of the names of batches, and in ``batch`` that of the last one.
    zoned : bool or None
        Whether dates have a time zone; None before the first.
    """

    lead: Lead | None
    kind: str
    n_times: int = 0
    pending: NDArray[Any] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    unit: int = _DAY
    last: Any = None
    opened: Rows | None = None
    held: Rows | None = None
    now: Any = None
    batches: frozenset[int] = frozenset()
    batch: int | None = None
    zoned: bool | None = None

    @classmethod
    def begin(cls, lead: Lead | None, time: Any, batch: Any, known_at: Any) -> Self | None:
        """Return arrivals before the first observation; None where each outcome is known before the next prediction."""
        if time is not None:
            refuse_if(
                batch is not None, "`time` and `batch` must not both be given: predictions of equal `time` are a batch."
            )
            is_date = read_moments(time, len(time) if hasattr(time, "__len__") else 0).is_date
            if lead is not None and lead.is_duration and not is_date:
                refuse(f"`lead` must be a whole number, because `time` holds numbers; got {lead.passed!r}.", TypeError)
            return cls(lead, DATES if is_date else NUMBERS)
        refuse_if(known_at is not None, "`known_at` needs `time`, when each prediction was made.")
        if lead is not None and lead.is_duration:
            refuse(f"`lead` of {lead.in_words('', '')} needs `time`, the date of each prediction.")
        if batch is not None:
            return cls(lead, BATCHES)
        return None if lead is None or lead.number == 1 else cls(lead, OBSERVATIONS)

    def to_dict(self) -> dict[str, Any]:
        """Return the state as plain Python objects; the lead is that of the monitor."""
        return {
            "kind": self.kind,
            "n_times": self.n_times,
            "pending": self.pending.tolist(),
            "unit": self.unit,
            "last": _plain(self.last),
            "opened": None if self.opened is None else self.opened.to_list(),
            "held": None if self.held is None else self.held.to_list(),
            "now": _plain(self.now),
            "batches": sorted(self.batches),
            "batch": self.batch,
            "zoned": self.zoned,
        }

    @classmethod
    def from_dict(cls, lead: Lead | None, n_outcomes: int, state: Mapping[str, Any]) -> Self:
        """Return the arrivals whose state was written by `to_dict`.

        Raises
        ------
        KeyError, TypeError, ValueError
            If the state has another form, or is one that arrivals cannot have.
        """
        pending = np.array(state["pending"]) if state["pending"] else np.empty(0, dtype=np.int64)
        found = cls(
            lead,
            state["kind"],
            validate_count(state["n_times"], "n_times", minimum=0),
            pending,
            validate_count(state["unit"], "unit", minimum=0),
            state["last"],
            Rows.from_list(n_outcomes, state["opened"]),
            Rows.from_list(n_outcomes, state["held"]),
            state["now"],
            frozenset(validate_count(batch, "batches", minimum=0) for batch in state["batches"]),
            state["batch"],
            state.get("zoned"),  # older files do not have it
        )
        found._refuse_impossible()
        return found

    def _refuse_impossible(self) -> None:
        """Raise ValueError for what arrivals never come to."""
        pending, last, opened = self.pending, self.last, self.opened
        end = last if not self.counts and opened is None else np.inf
        fits = {
            "kind": self.kind in (OBSERVATIONS, BATCHES, NUMBERS, DATES)
            and not (self.lead is not None and self.lead.is_duration and self.kind != DATES)
            and not (self.kind == OBSERVATIONS and self.lead is None),
            "pending": pending.ndim == 1
            and pending.dtype.kind in "if"
            and (abs(pending) <= _MOST).all()
            and (np.diff(pending) > 0).all()
            and len(pending) <= self.n_times
            and (pending[-1:] <= end).all(),
            "n_times": self.n_times <= _MOST,
            "unit": self.unit <= _DAY,
            "last": last is None or (is_number(last) and abs(last) <= _MOST),
            "opened": opened is None or (self.kind != OBSERVATIONS and (opened.time == last).all()),
            "held": self.held is None or (self.kind in (NUMBERS, DATES) and not self.counts and self.now is not None),
            "now": self.now is None or (is_number(self.now) and abs(self.now) <= _MOST),
            "zoned": self.zoned is None or (isinstance(self.zoned, bool) and self.kind == DATES),
            "batch": (self.batch is None) == (not self.batches) and (self.batch is None or self.batch in self.batches),
        }
        wrong = next((name for name, fit in fits.items() if not fit), None)
        refuse_if(wrong is not None, f"`{wrong}` holds what arrivals never come to.")

    @property
    def counts(self) -> bool:
        """Whether the lead counts times, and is not a difference of times."""
        return (
            self.lead is None
            or self.kind in {OBSERVATIONS, BATCHES}
            or not (self.lead.is_duration or self.kind == NUMBERS)
        )

    @property
    def n_held(self) -> int:
        """Number of observations that are held back."""
        return 0 if self.held is None else len(self.held.outcome)

    @property
    def text(self) -> str:
        """The lead in words."""
        number = self.kind == NUMBERS and self.lead is not None
        names = ("unit of time", "units of time") if number else _COUNTED.get(self.kind, _COUNTED[DATES])
        return (self.lead or Lead(1, is_duration=False)).in_words(*names)

    def receive(
        self, prob: NDArray[Any], outcome: Integers, time: Any, batch: Any, known_at: Any
    ) -> tuple[Arrivals, Complete | None]:
        """Return the arrivals with further observations, and what is complete now."""
        found, rows, places = self._read(prob, outcome, time, batch, known_at)
        if not len(rows.outcome):
            return found, None
        found._refuse_backwards(rows.time, places, held=known_at is not None)
        if found.opened is not None:
            rows = _joined(found.opened, rows)
        starts = np.concatenate([[0], np.flatnonzero(rows.time[1:] != rows.time[:-1]) + 1])
        n_open = 0 if self.kind == OBSERVATIONS else 1
        last, end = rows.time[-1], starts[-1] if n_open else len(rows.time)
        new = {"last": last, "opened": rows.take(slice(end, None)) if n_open else None}
        if len(starts) == n_open:
            return replace(found, **new), None
        return found._completed(rows.take(slice(end)), starts[: len(starts) - n_open], [last] * n_open, new)

    def closed(self) -> tuple[Arrivals, Complete | None]:
        """Return the arrivals if nothing is added to the last time, and its observations."""
        if self.opened is None:
            return self, None
        return self._completed(self.opened, np.zeros(1, dtype=np.int64), [], {"opened": None})

    def _read(
        self, prob: NDArray[Any], outcome: Integers, time: Any, batch: Any, known_at: Any
    ) -> tuple[Arrivals, Rows, Integers]:
        """Return observations that need not be held back, in the order of their times, and their rows here."""
        n = len(outcome)
        rows = np.arange(n)
        if self.kind == OBSERVATIONS:
            return self, Rows((-1 if self.last is None else self.last) + 1 + rows, prob, outcome), rows
        if self.kind == BATCHES:
            found, number = self._read_batches(batch, n)
            return found, Rows(number, prob, outcome), rows
        moments = read_moments(time, n)
        self._refuse_other_kind(moments, "time")
        found = replace(self, zoned=moments.clock is not None) if moments.is_date and self.zoned is None else self
        if self.kind == NUMBERS and not self.counts and self.last is not None:
            refuse_dates_as_numbers(np.concatenate([self.pending, [self.last], moments.value]))
        new = Rows(moments.value, prob, outcome)
        if known_at is None:
            require(self.held is None, "`known_at` must be given again, as some outcomes are held back", known_at)
            return found, new, rows
        return found._hold_back(new, known_at)

    def _read_batches(self, batch: Any, n: int) -> tuple[Arrivals, Integers]:
        """Return the number of the batch of each observation."""
        names, code = validate_ids(batch, n, "batch", "batch")
        digests = [int.from_bytes(blake2b(repr(name).encode(), digest_size=7).digest()) for name in names]
        starts = np.flatnonzero(np.append(True, code[1:] != code[:-1]))
        known, last, number = set(self.batches), self.batch, -1 if self.last is None else self.last
        numbers = np.empty(len(starts), dtype=np.int64)
        for place, start in enumerate(starts):
            digest = digests[code[start]]
            if digest != last:
                if digest in known:
                    refuse(
                        f"`batch` must have all observations of a batch next to each other, got {names[code[start]]!r} "
                        f"again in row {start}: its outcomes were known before. Pass all observations of a patient, "
                        "document or day together, or only the first."
                    )
                known.add(digest)
                last, number = digest, number + 1
            numbers[place] = number
        length = np.diff(np.append(starts, n))
        return replace(self, batches=frozenset(known), batch=last), numbers.repeat(length)

    def _hold_back(self, new: Rows, known_at: Any) -> tuple[Arrivals, Rows, Integers]:
        """Return the observations for whose time all outcomes may be known, and hold others back."""
        n = len(new.outcome)
        single = isinstance(known_at, str) or not hasattr(known_at, "__len__")
        now = _read_known_at([known_at] if single else known_at, 1 if single else n)
        self._refuse_other_kind(now, "known_at")
        if self.lead is None or self.counts:
            refuse(
                "`known_at` needs a `lead` in the unit of `time`, such as lead='7D' for dates: after what time are all "
                f"outcomes known? Got lead={None if self.lead is None else self.lead.number}."
            )
        value = np.broadcast_to(now.value, n)
        early = np.flatnonzero(value < new.time)
        if early.size:
            row = early[0]
            refuse(
                f"`known_at` must not be before `time`, got {self._shown(value[row])} for a prediction of "
                f"{self._shown(new.time[row])} in row {row}."
            )
        clock = np.maximum.accumulate(value if self.now is None else np.maximum(value, self.now))
        n_held = self.n_held
        rows = new if self.held is None else _joined(self.held, new)
        arrival = np.append(np.zeros(n_held, dtype=np.int64), np.arange(n))
        ready = np.maximum(np.searchsorted(clock, rows.time + self.lead.number), arrival)
        order = np.lexsort((np.arange(len(ready)), rows.time, ready))
        order, wait = order[ready[order] < n], np.flatnonzero(ready >= n)
        held = rows.take(wait) if wait.size else None
        return replace(self, held=held, now=clock[-1]), rows.take(order), order - n_held

    def _refuse_other_kind(self, moments: Moments, name: str) -> None:
        if moments.is_date != (self.kind == DATES):
            got = DATES if moments.is_date else NUMBERS
            refuse(f"`{name}` must hold {self.kind}, as the times before, got {got}.", TypeError)
        zoned = moments.clock is not None
        if self.zoned not in {None, zoned}:
            words = ("no time zone", "a time zone")
            refuse(f"`{name}` must have {words[not zoned]}, as the times before, got dates with {words[zoned]}.")

    def _refuse_backwards(self, time: NDArray[Any], places: Integers, *, held: bool) -> None:
        before = np.concatenate([time[:1] if self.last is None else [self.last], time[:-1]])
        wrong = np.flatnonzero(time < before)
        if wrong.size:
            i = wrong[0]
            advice = (
                "all outcomes of it counted as known then; `lead` must be as long as the slowest outcome takes"
                if held
                else "pass observations in the order of their predictions, when all outcomes of a time are known"
            )
            refuse(
                f"`time` must not go backwards, got {self._shown(time[i])} in row {places[i]} after "
                f"{self._shown(before[i])}: {advice}."
            )

    def _completed(
        self, rows: Rows, starts: Integers, following: list[Any], new: dict[str, Any]
    ) -> tuple[Arrivals, Complete]:
        """Return the arrivals after some times are complete, and these; perhaps it is known which time follows."""
        n, time = len(starts), rows.time[starts]
        moment = np.arange(self.n_times, self.n_times + n) if self.counts else time
        lead = 1 if self.lead is None else self.lead.number
        every = np.concatenate([self.pending, moment])
        ahead, unit = self._ahead(time)
        if (every[1:] - every[:-1] >= lead).all():  # nothing is pending when the next prediction is made
            before = np.arange(len(self.pending), len(self.pending) + n)
            after, first = before + (ahead >= lead), n - 1
        else:
            before = np.searchsorted(every, moment - lead, side="right")
            after, first = np.maximum(before, np.searchsorted(every, moment + ahead - lead, side="right")), 0
        if not self.counts:
            self._refuse_too_fine(every, after[first:], np.append(time[first + 1 :], following), lead)
        found = replace(self, n_times=self.n_times + n, pending=every[after[-1] :], unit=unit, **new)
        size = np.concatenate([starts[1:], [len(rows.time)]]) - starts
        return found, Complete(rows.prob, rows.outcome, size, before, after)

    def _ahead(self, time: NDArray[Any]) -> tuple[Any, int]:
        """Return how much later than each time the next one is at least, and the unit of all times so far.

        That of the first date is not known: it may be midnight by chance.
        """
        if self.counts or self.kind == NUMBERS:
            unit = 1 if self.counts else 0 if time.dtype.kind == "f" else min(self.unit, 1)
            return unit, unit
        units = np.minimum.accumulate(np.minimum(_units_of(time), self.unit))
        ahead = units if self.n_times else np.append(0, units[1:])
        return ahead, int(units[-1])

    def _refuse_too_fine(self, every: NDArray[Any], after: Integers, following: NDArray[Any], lead: int) -> None:
        """Refuse a time before outcomes are known that count already, because times had been whole days until then."""
        settled = after[: len(following)]
        last = every[np.maximum(settled - 1, 0)]
        wrong = np.flatnonzero((settled > 0) & (last + lead > following))
        if wrong.size:
            refuse(
                f"`time` must be at least {self.text} after {self._shown(last[wrong[0]])}, whose outcome counts "
                f"already because times had been whole {'days or hours' if self.kind == DATES else 'numbers'} until "
                f"then, got {self._shown(following[wrong[0]])}. Begin with a new monitor whose first times are as fine "
                "as later ones."
            )

    def _shown(self, value: Any) -> str:
        if self.kind != DATES:
            return f"{value:.15g}"
        moment = np.datetime64(int(value), "us")
        return str(moment.astype("datetime64[D]") if value % _DAY == 0 else moment.astype(object))


def require_alike(before: Arrivals | None, time: Any, batch: Any, known_at: Any) -> None:
    """Raise ValueError unless observations come with times, or with batches, as those before."""
    kinds = {OBSERVATIONS: None, BATCHES: "batch", NUMBERS: "time", DATES: "time"}
    needed = None if before is None else kinds[before.kind]
    given = [name for name, value in (("time", time), ("batch", batch)) if value is not None]
    if given != ([needed] if needed else []):
        words = [f"`{needed}`" if needed else "neither `time` nor `batch`", " and ".join(given) or "neither"]
        index = " With a `lead`, the index of a frame or series is `time` if it holds dates." * (given == ["time"])
        refuse(f"every update must have {words[0]}, as the first one, got {words[1]}.{index}")
    refuse_if(known_at is not None and needed != "time", "`known_at` needs `time`, when each prediction was made.")


def _read_known_at(known_at: Any, n_samples: int) -> Moments:
    try:
        return read_moments(known_at, n_samples)
    except (TypeError, ValueError) as error:
        refuse(str(error).replace("`time`", "`known_at`"), type(error))


def _units_of(time: Integers) -> Integers:
    """Return the largest unit of which each date is a multiple."""
    found = np.ones(len(time), dtype=np.int64)
    for unit in reversed(_UNITS):
        found[time % unit == 0] = unit
    return found


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _joined(one: Rows, other: Rows) -> Rows:
    return Rows(*(np.concatenate(parts) for parts in zip(tuple(one), tuple(other), strict=True)))
