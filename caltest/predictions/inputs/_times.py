"""When predictions were made, and how long after that their labels are known, in whole steps of time."""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Integers
from caltest.predictions.inputs._frames import from_tensor
from caltest.predictions.inputs._refusals import refuse, refuse_if, require

_FINENESS = 32  # steps of a lead where times are irregular
_SPARSE = 4  # a grid with more steps than this for each time is made coarser
_ROUNDING = 1e-6  # of a step, up to which numbers that are not whole are multiples of it
_MICROSECONDS = "us"
_MOST = 2**62  # differences of whole numbers below it do not overflow
_NOT_DATES = ("now", "today")  # which pandas reads as the time of the call


@dataclass(frozen=True, eq=False)
class Timing:
    """The step of time of each observation, and the lead: labels of steps that are so far apart are independent.

    It has one entry for each observation, as weights and groups have: ``timing[rows]`` is that of some observations.

    Attributes
    ----------
    step : array of shape (n_samples,)
        Steps of time from 0. A gap that is longer than the lead is as long as the lead, because nothing else matters.
    lead : int
        Number of steps after a prediction at which its label is known.
    text : str
        The lead in the caller's unit, such as "7 days".
    """

    step: Integers
    lead: int
    text: str

    def __len__(self) -> int:
        return len(self.step)

    def __getitem__(self, rows: Any) -> Timing:
        return Timing(self.step[rows], self.lead, self.text)

    @property
    def n_steps(self) -> int:
        """Number of steps from the first to the last one."""
        return int(self.step.max()) + 1

    @property
    def n_windows(self) -> float:
        """Number of stretches of time as long as the lead, which is that of independent pieces of information."""
        return self.n_steps / self.lead

    @property
    def is_needed(self) -> bool:
        """Whether two observations are less than a lead apart; all are independent otherwise."""
        times, count = np.unique(self.step, return_counts=True)
        return bool(count.max() > 1 or (np.diff(times) < self.lead).any())

    def settled(self) -> Timing:
        """Return the timing from step 0 on, with short gaps; observations may have been left out."""
        times, place = np.unique(self.step, return_inverse=True)
        return Timing(_with_short_gaps(times, self.lead)[place], self.lead, self.text)


@dataclass(frozen=True, eq=False)
class OfferedTime:
    """Times that stand beside the predictions and that nobody named: without a lead nothing is computed from them.

    Attributes
    ----------
    values : array-like of shape (n_samples,)
        Dates.
    column : str or None
        The name of their column; None for an index.
    option : str
        What has to be given so that they are used.
    """

    values: Any
    column: str | None = None
    option: str = "`lead`"

    @property
    def name(self) -> str:
        """Where they were found, in words."""
        return "the index" if self.column is None else f"the column {self.column!r}"

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> OfferedTime:
        return OfferedTime(self.values[rows], self.column, self.option)


def validate_timing(time: Any, lead: Any, n_samples: int) -> Timing | None:
    """Return when predictions were made and the lead, in steps of one length; None if neither is given.

    Parameters
    ----------
    time : array-like of shape (n_samples,), Timing, OfferedTime or None
        Numbers, dates, datetimes or texts of dates in ISO 8601, in any order; equal ones are a batch.
    lead : int, timedelta, numpy.timedelta64, str, None or one of these for each prediction
        How long after its prediction a label is known. A whole number is in the unit of ``time`` if that holds numbers;
        of dates it counts steps as long as the smallest difference between two of them (of weekdays: calendar days),
        or months. None stands for labels that are known before the next prediction.
    n_samples : int
        Number of observations.

    Raises
    ------
    TypeError
        If ``time`` holds neither numbers nor dates, or ``lead`` is neither a whole number nor a duration.
    ValueError
        If ``lead`` is given without ``time``, is not positive, or longer than the data; if ``time`` has another length,
        a missing value or several time zones; if ``lead`` is a number, and dates are not whole steps apart.
    """
    if isinstance(time, OfferedTime):
        time = None if lead is None else time.values
    if time is None:
        refuse_if(
            lead is not None,
            f"`lead` needs `time`, when each prediction was made; got lead={lead!r} alone. The index of a frame or "
            "series of pandas is taken if it holds dates.",
        )
        return None
    if isinstance(time, Timing):  # which was read before
        return time
    moments = read_moments(time, n_samples)
    if not isinstance(lead, str) and getattr(lead, "ndim", None) != 0 and hasattr(lead, "__len__"):
        timing = _timing(moments, longest_lead(lead, n_samples))
        return replace(timing, text=f"{timing.text} (the longest lead)")
    return _timing(moments, lead)


def _timing(moments: Moments, lead: Any) -> Timing:
    """Return the timing of predictions with one lead, or without."""
    times, place = np.unique(moments.value, return_inverse=True)
    if lead is None:
        return Timing(place.astype(np.int64), 1, "1 step")
    if not _is_integer(lead):
        duration = read_duration(lead)
        if not moments.is_date:
            refuse(f"`lead` must be a whole number, because `time` holds numbers; got {lead!r}.", TypeError)
        return _on_grid(times, place, duration, _in_words(duration), _in_words(int(times[-1] - times[0])))
    require(lead >= 1, "`lead` must be a whole number >= 1 or a duration such as '7D'", lead)
    if moments.is_date:
        span = _in_words(int(times[-1] - times[0]))
        times, step, unit = _steps_of_dates(moments, times, int(lead))
        return _on_grid(times, place, int(lead) * step, f"{lead} {'step' if lead == 1 else 'steps'} of {unit}", span)
    if len(times) > 1 and 1 < lead < (least := np.diff(times).min()):
        refuse(
            f"`lead` is in the unit of `time`, whose values are at least {least:g} apart; got {lead}. If labels are "
            "known before the next prediction, leave it out."
        )
    return _on_grid(times, place, int(lead), f"{lead}", f"{times[-1] - times[0]:g}")


def read_known_times(time: Any, lead: Any, n_samples: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return when predictions were made, and when their labels are known, as numbers of one unit, ``(n_samples,)``."""
    moments = read_moments(time.values if isinstance(time, OfferedTime) else time, n_samples)
    refuse_if(lead is None, "`lead` must be how long after each prediction its label is known, got None.")
    several = not isinstance(lead, str) and getattr(lead, "ndim", None) != 0 and hasattr(lead, "__len__")
    longest = longest_lead(lead if several else [lead], n_samples if several else 1)
    given = list(lead) if several else [lead] * n_samples
    if not _is_integer(longest):
        refuse_if(
            not moments.is_date, f"`lead` must hold whole numbers, because `time` holds numbers; got {longest!r}."
        )
        return moments.value, moments.value + np.array([read_duration(one) for one in given])
    leads = np.array([int(one) for one in given])
    if not moments.is_date:
        return moments.value, moments.value + leads
    times, place = np.unique(moments.value, return_inverse=True)
    times, step, _ = _steps_of_dates(moments, times, int(longest))
    return times[place], times[place] + leads * step


def is_time_index(index: Any) -> bool:
    """Return whether an index of pandas holds dates or periods."""
    return type(index).__name__ in {"DatetimeIndex", "PeriodIndex"}


@dataclass(frozen=True, eq=False)
class Moments:
    """Numbers, or dates in microseconds; of dates with a time zone also what the clock there shows."""

    value: NDArray[Any]
    is_date: bool
    clock: Integers | None = None


def read_moments(time: Any, n_samples: int) -> Moments:
    """Return times as numbers that can be compared, those of several calls too; refuse what is neither."""
    if isinstance(time, str) or not hasattr(time, "__len__"):
        refuse(f"`time` must be an array of shape (n_samples,), got {time!r}.", TypeError)
    time = from_tensor(time)
    values = _array(time.tolist() if np.ma.is_masked(time) else time)  # a list has None where an array is masked
    require(values.ndim == 1, "`time` must have shape (n_samples,)", values.shape)
    if len(values) != n_samples:
        refuse(f"`time` must have the time of each of the {n_samples:,} observations, got {len(values):,}.")
    if values.dtype.kind == "f":
        _refuse_missing(~np.isfinite(values), values)
        if (values != np.rint(values)).any() or np.abs(values).max(initial=0.0) >= 2.0**53:
            return Moments(values.astype(np.float64), is_date=False)
        values = values.astype(np.int64)
    if values.dtype.kind in "iu":
        large = values[(values >= _MOST) | (values <= -_MOST)].tolist()
        refuse_if(large, f"`time` must hold whole numbers between -2^62 and 2^62, got {large[:1]}.")
        refuse_dates_as_numbers(values := values.astype(np.int64))
        return Moments(values, is_date=False)
    require(values.dtype.kind in "OMUTm", "`time` must hold numbers or dates", values.dtype, right_type=False)
    return _read_dates(values)


def _array(values: Any) -> Any:
    """Return an array, or dates of pandas as they are; what is in a list keeps its type."""
    if type(values).__module__.startswith("pandas.") and getattr(values.dtype, "kind", "O") in "OM":
        return values
    if isinstance(values, list | tuple) and not all(isinstance(each, int | float | np.number) for each in values):
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array
    return np.asarray(values)


def refuse_dates_as_numbers(values: NDArray[Any]) -> None:
    """Refuse numbers such as 20260131, the day after which is not 1 but 70 later."""
    import pandas as pd

    if values.dtype.kind != "i" or not len(values) or values.min() < 1900_01_01 or values.max() > 2100_12_31:
        return
    number = np.unique(values)
    date = pd.to_datetime(number.astype(str), format="%Y%m%d", errors="coerce")
    if len(number) > 2 and date.notna().all():  # one or two may be such numbers by chance
        refuse(
            f"`time` holds numbers such as {number[0]}, which are dates, and whose differences are not days: pass "
            f"dates, e.g. pandas.to_datetime(time, format='%Y%m%d'), or texts such as '{date[0]:%Y-%m-%d}'."
        )


def _read_dates(values: Any) -> Moments:
    import pandas as pd

    if values.dtype.kind == "m":
        value = pd.TimedeltaIndex(values).as_unit(_MICROSECONDS)
        _refuse_missing(value.isna(), value)
        return Moments(value.asi8, is_date=True)
    series: Any = pd.Series(values)
    given = series.array
    _refuse_missing(series.isna().to_numpy(), given)
    if isinstance(series.dtype, pd.PeriodDtype) or isinstance(series.iloc[0], pd.Period):
        series = pd.Series(pd.PeriodIndex(series).to_timestamp())
    elif series.dtype.kind != "M":
        wrong = [each in _NOT_DATES if isinstance(each, str) else isinstance(each, int | float) for each in series]
        if True in wrong:
            row = wrong.index(True)
            refuse(
                f"`time` must hold either numbers or dates, got {given[row]!r} in row {row} among others.", TypeError
            )
        zones = {str(getattr(each, "tzinfo", None) or "none") for each in series}
        refuse_if(len(zones) > 1, f"`time` must be in one time zone, got {' and '.join(sorted(zones)[:2])}.")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", FutureWarning)  # of pandas 2, where later ones refuse several zones
                series = pd.to_datetime(series, format="ISO8601")
        except (ValueError, TypeError, FutureWarning) as error:
            if "zone" in str(error).lower() or "tz-" in str(error):
                refuse("`time` must be in one time zone, got several; convert it with `pandas.to_datetime(utc=True)`.")
            row = int(pd.to_datetime(series, format="ISO8601", errors="coerce", utc=True).isna().argmax())
            refuse(
                f"`time` must hold numbers, dates or texts such as '2026-12-31' (ISO 8601), got {given[row]!r} "
                f"in row {row}; convert it with `pandas.to_datetime`."
            )
    index = pd.DatetimeIndex(series)
    _refuse_missing(index.isna(), given)  # which texts such as "" and "nan" are
    clock = None if index.tz is None else index.tz_localize(None).as_unit(_MICROSECONDS).asi8
    return Moments(index.as_unit(_MICROSECONDS).asi8, is_date=True, clock=clock)


def _refuse_missing(missing: Any, values: Any) -> None:
    for row in np.flatnonzero(missing)[:1]:
        value = np.asarray(values[row]).item()
        refuse(f"`time` must have a time for every observation, got {value!r} in row {row}.")


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def read_duration(lead: Any) -> int:
    """Return a duration in microseconds."""
    import pandas as pd

    must = "`lead` must be a whole number >= 1 or a duration such as '7D', datetime.timedelta(days=7) or '12h'"
    number = isinstance(lead, bool | float | np.floating) or (
        isinstance(lead, str) and not re.search("[A-Za-z:]", lead)
    )
    require(not number, must, lead, right_type=isinstance(lead, str))
    try:
        duration = pd.Timedelta(lead)
    except (ValueError, TypeError) as error:
        refuse(f"{must}, got {lead!r} ({error}).", type(error) if isinstance(error, TypeError) else ValueError)
    require(isinstance(duration, pd.Timedelta), must, lead)
    microseconds = math.floor(duration / pd.Timedelta(1, _MICROSECONDS))
    require(microseconds >= 1, "`lead` must be positive", lead)
    return microseconds


def longest_lead(leads: Any, n_samples: int) -> Any:
    """Return the longest of the leads of all predictions; refuse missing ones, and numbers beside durations."""
    array = np.asarray(leads)
    values = list(leads)
    if array.dtype.kind == "f":  # as a column of whole numbers is read in which some are missing
        values = [int(each) if float(each).is_integer() else float(each) for each in array]
    if len(values) != n_samples:
        refuse(f"`lead` must be one lead, or that of each of the {n_samples:,} observations, got {len(values):,}.")
    size: dict[Any, int] = {}
    kinds: dict[bool, int] = {}
    for row, value in enumerate(values):
        try:
            new = value not in size
        except TypeError:
            new = False
            refuse(f"`lead` must hold whole numbers or durations, got {value!r:.80} in row {row}.", TypeError)
        if new:
            kinds.setdefault(_is_integer(value), row)
            try:
                size[value] = int(value) if _is_integer(value) else read_duration(value)
                require(size[value] >= 1, "`lead` must be positive", size[value])
            except (TypeError, ValueError) as error:
                refuse(f"{str(error).removesuffix('.')} in row {row}.", type(error))
    if len(kinds) > 1:
        refuse(
            f"`lead` must hold whole numbers or durations, got both: see rows 0 and {max(kinds.values())}.", TypeError
        )
    return max(size, key=lambda value: size[value])


def _in_words(microseconds: int) -> str:
    for size, name in ((86_400_000_000, "day"), (3_600_000_000, "hour"), (60_000_000, "minute"), (1_000_000, "second")):
        if microseconds % size == 0:
            number = microseconds // size
            return f"{number:,} {name}{'' if number == 1 else 's'}"
    return f"{microseconds / 1e6:,} seconds"


def _steps_of_dates(moments: Moments, times: Integers, lead: int) -> tuple[Integers, int, str]:
    """Return different times as numbers, the length of a step, and that in words."""
    if len(times) == 1:
        return times, 1, "time"
    step, others = _common_step(times)
    if others is None:
        return times, step, _in_words(step)
    if moments.clock is not None:  # a day of the summer time has 23 hours
        clock = moments.clock[np.unique(moments.value, return_index=True)[1]]
        if (np.diff(clock) > 0).all() and (found := _common_step(clock))[1] is None:
            return clock, found[0], _in_words(found[0])
    else:
        clock = times
    months = _months(clock)
    found = (0, others) if months is None else _common_step(months)
    if months is None or found[1] is not None:
        refuse(
            f"`lead={lead}` counts steps of `time`, which must be whole multiples of the smallest one: got differences "
            f"of {_in_words(step)} and {_in_words(others)}. Give `lead` as a duration, such as '{lead}D'."
        )
    return months, found[0], f"{found[0]} month{'' if found[0] == 1 else 's'}"


def _common_step(times: Integers) -> tuple[int, int | None]:
    """Return the smallest difference of increasing times, and a difference that is no multiple of it, or None."""
    gap = np.diff(times)
    step = int(gap.min())
    others = gap[gap % step != 0]
    return step, int(others[0]) if others.size else None


def _months(clock: Integers) -> Integers | None:
    """Return the number of the month of dates on the same day of the month, or the last one; None for others."""
    date = clock.astype(f"datetime64[{_MICROSECONDS}]")
    month = date.astype("datetime64[M]")
    since, left = date - month, (month + np.timedelta64(1, "M")).astype(date.dtype) - date
    if (since != since[0]).any() and (left != left[0]).any():
        return None
    number = month.astype(np.int64)
    return number if (np.diff(number) > 0).all() else None


def _on_grid(times: NDArray[Any], place: Integers, lead: int, text: str, span: str) -> Timing:
    """Return steps in which times less than a lead apart are less than a lead apart.

    ``text`` and ``span`` are the lead and the time from the first to the last prediction in words.
    """
    since = times - times[0]
    if len(since) > 1 and lead > since[-1] + np.diff(since).min():
        refuse(
            f"`lead` ({text}) must not be longer than the time from the first to the last prediction ({span}): all "
            "labels may then depend on each other, and nothing can be tested."
        )
    step, steps = _exact_steps(since, lead)
    if step is None:
        # Times within a lead may have one step more between them, because each is rounded down.
        step, steps = np.floor(since * (_FINENESS / lead)).astype(np.int64), _FINENESS + 1
    return Timing(_with_short_gaps(step, steps)[place], steps, text)


def _exact_steps(since: NDArray[Any], lead: int) -> tuple[Integers | None, int]:
    """Return increasing times in steps of their common divisor, and the lead; None if that makes too many steps."""
    if len(since) == 1:
        return np.zeros(1, dtype=np.int64), 1
    if since.dtype.kind == "f":
        unit = float(np.diff(since).min())
        step, steps = since / unit, lead / unit
        whole = max(np.abs(step - np.rint(step)).max(), abs(steps - round(steps))) < _ROUNDING and steps > 0.5
        return (np.rint(step).astype(np.int64), round(steps)) if whole else (None, 0)
    unit = math.gcd(int(np.gcd.reduce(since)), lead)
    if lead // unit > _FINENESS and int(since[-1]) // unit > _SPARSE * len(since):
        return None, 0
    return since // unit, lead // unit


def _with_short_gaps(times: Integers, lead: int) -> Integers:
    """Return increasing steps from 0, of which none is longer than the lead."""
    return np.append(0, np.cumsum(np.minimum(np.diff(times), lead)))
