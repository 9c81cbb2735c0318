"""Times and leads: every way to write them gives the same steps, and no lead is counted too short."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

from caltest.predictions.inputs._times import is_time_index, read_duration, validate_timing
from tests.reference.cases import check_refused, failures

N = 12
DAYS = pd.date_range("2026-01-01", periods=N)
WEEK = {
    "steps": 7,
    "text": "7D",
    "datetime": datetime.timedelta(days=7),
    "numpy": np.timedelta64(7, "D"),
    "pandas": pd.Timedelta(days=7),
    "hours": "168h",
}
DAILY = {
    "index": DAYS,
    "series": pd.Series(DAYS),
    "numpy": DAYS.to_numpy(),
    "seconds": DAYS.to_numpy().astype("datetime64[s]"),
    "datetimes": DAYS.to_pydatetime().tolist(),
    "dates": [day.date() for day in DAYS],
    "texts": DAYS.strftime("%Y-%m-%d").tolist(),
    "array of texts": DAYS.strftime("%Y-%m-%d").to_numpy().astype(str),
    "strings": pd.Series(DAYS.strftime("%Y-%m-%d"), dtype="string"),
    "categories": pd.Series(DAYS.strftime("%Y-%m-%d")).astype("category"),
    "periods": pd.period_range("2026-01-01", periods=N),
    "zone": DAYS.tz_localize("Asia/Tokyo"),
    "polars": pl.Series(DAYS),
    "since": pd.timedelta_range("0D", periods=N),
}


def test_every_kind_of_day_and_of_week_gives_the_same_steps():
    def check(time):
        for lead in WEEK.values():
            timing = validate_timing(time, lead, N)
            assert timing.lead == 7
            np.testing.assert_array_equal(timing.step, np.arange(N))

    assert failures(DAILY, check) == {}


def test_numbers_are_as_dates():
    for numbers in (np.arange(N), np.arange(N) - 5.0, list(range(N)), pd.Series(range(N)), 0.25 * np.arange(N)):
        lead = 7 if np.max(numbers) > 3 else 2
        timing = validate_timing(numbers, lead, N)
        np.testing.assert_array_equal(timing.step, np.arange(N))
        assert timing.lead == (7 if lead == 7 else 8)


def test_numbers_that_are_no_dates_or_few_are_numbers():
    for first in (20260121, 20260223, 18991201, 21001225):  # the 32nd of January, the 29th of February, other years
        np.testing.assert_array_equal(validate_timing(first + np.arange(N), 7, N).step, np.arange(N))
    assert validate_timing([20260101, 20260102], 1, 2).lead == 1
    masked = np.ma.masked_array(np.arange(N))
    np.testing.assert_array_equal(validate_timing(masked, 7, N).step, np.arange(N))


def test_any_order_and_ties_keep_their_rows():
    rng = np.random.default_rng(0)
    time = rng.integers(30, size=50)
    timing = validate_timing(time, 4, 50)
    distance = np.abs(time[:, None] - time)
    near = distance < 4
    found = np.abs(timing.step[:, None] - timing.step)
    np.testing.assert_array_equal(found < timing.lead, near)
    np.testing.assert_array_equal(found[near], distance[near])


def test_whole_leads_may_be_floats_and_none_is_missing():
    assert validate_timing(np.arange(N), np.full(N, 3.0), N).lead == 3
    with pytest.raises(TypeError, match="got nan in row 1"):
        validate_timing(np.arange(3), [2.0, np.nan, 2.0], 3)


def test_of_many_leads_the_longest_counts():
    number = np.arange(N) % 3 + 1
    days = pd.date_range("2026-01-01", periods=N)
    cases = [
        (np.arange(N), number, 3),
        (days, number.tolist(), 3),
        (days, pd.Series(pd.to_timedelta(number, "D")), "3D"),
        (days, number.astype("m8[D]"), "3D"),
        (days, ["3D", *["36h"] * (N - 1)], "3D"),
    ]
    for time, leads, longest in cases:
        found, known = validate_timing(time, leads, N), validate_timing(time, longest, N)
        np.testing.assert_array_equal(found.step, known.step)
        assert (found.lead, found.text) == (known.lead, f"{known.text} (the longest lead)")


def test_gaps_are_as_long_as_the_lead():
    timing = validate_timing([0, 1, 1000, 1001, 1005], 3, 5)
    assert timing.step.tolist() == [0, 1, 4, 5, 8]
    assert timing.n_windows == pytest.approx(3)


@pytest.mark.parametrize("lead", ["7D", "9h", datetime.timedelta(minutes=100)])
def test_irregular_times_that_are_closer_than_the_lead_share_a_shock(lead):
    rng = np.random.default_rng(1)
    minutes = np.sort(rng.choice(60 * 24 * 60, size=300, replace=False))
    time = pd.Timestamp("2026-01-01") + pd.to_timedelta(minutes, unit="min")
    timing = validate_timing(time, lead, 300)
    distance = np.abs(minutes[:, None] - minutes) * pd.Timedelta(minutes=1) / pd.Timedelta(lead)
    found = np.abs(timing.step[:, None] - timing.step)
    assert (found[distance < 1] < timing.lead).all()
    assert (found[distance >= 1 + 1 / 16] >= timing.lead).all()
    assert timing.n_steps <= 33 * 300


def test_steps_may_be_months_or_days_of_23_hours():
    for time in (
        pd.date_range("2026-01-01", periods=N, freq="MS"),
        pd.date_range("2026-01-01", periods=N, freq="ME"),
        pd.period_range("2026-01", periods=N, freq="M"),
        [f"2026-{month:02}" for month in range(1, N + 1)],
        pd.date_range("2026-03-25", periods=N, tz="Europe/Berlin"),
    ):
        timing = validate_timing(time, 3, N)
        np.testing.assert_array_equal(timing.step, np.arange(N))
        assert timing.lead == 3
    assert validate_timing(pd.date_range("2026-01-01", periods=N, freq="QS"), 4, N).text == "4 steps of 3 months"


def test_without_a_lead_times_are_batches():
    timing = validate_timing([3.5, 1, 1, 9], None, 4)
    assert (timing.step.tolist(), timing.lead) == ([1, 0, 0, 2], 1)
    assert validate_timing(None, None, 4) is None
    assert validate_timing(timing, None, 4) is timing


def test_a_timing_is_needed_if_two_observations_are_close():
    assert not validate_timing([0, 7, 14], 7, 3).is_needed
    assert not validate_timing([2, 1, 3], None, 3).is_needed
    assert validate_timing([1, 1, 2], None, 3).is_needed
    timing = validate_timing([0, 6, 13, 50], 7, 4)
    assert timing.is_needed
    assert not timing[np.array([3, 1, 2])].is_needed
    assert timing[np.array([3, 1, 2])].settled().step.tolist() == [14, 0, 7]
    assert validate_timing([0, 6, 13, 50], 8, 4)[np.array([3, 1, 2])].settled().step.tolist() == [15, 0, 7]


def test_an_index_of_dates_is_known():
    assert is_time_index(DAYS)
    assert is_time_index(pd.period_range("2026-01", periods=2, freq="M"))
    assert not is_time_index(pd.RangeIndex(3))
    assert read_duration("1us") == 1


REFUSED = {
    "a lead alone": ((None, 7), ValueError, "`lead` needs `time`, when each prediction was made; got lead=7 alone."),
    "no lead": ((DAYS, 0), ValueError, "`lead` must be a whole number >= 1 or a duration such as '7D', got 0."),
    "past": ((DAYS, "-3D"), ValueError, "`lead` must be positive, got '-3D'."),
    "a share": ((DAYS, 1.5), TypeError, "`lead` must be a whole number >= 1 or a duration such as '7D'"),
    "a truth": ((DAYS, True), TypeError, "got True."),
    "a number as text": ((DAYS, "7"), ValueError, "got '7'."),
    "no unit": ((DAYS, "7 monkeys"), ValueError, "got '7 monkeys' (invalid unit abbreviation: monkeys)."),
    "duration of numbers": ((range(N), "7D"), TypeError, "`lead` must be a whole number, because `time` holds numbers"),
    "too many": (
        (DAYS, [1, 2]),
        ValueError,
        f"`lead` must be one lead, or that of each of the {N} observations, got 2.",
    ),
    "both": (
        (DAYS, [1] * (N - 1) + ["1D"]),
        TypeError,
        f"whole numbers or durations, got both: see rows 0 and {N - 1}.",
    ),
    "one of them": ((DAYS, [1] * (N - 1) + [0]), ValueError, f"`lead` must be positive, got 0 in row {N - 1}."),
    "none of them": ((DAYS, ["1D"] * (N - 1) + [None]), ValueError, f"got None in row {N - 1}."),
    "nested": ((DAYS, [[1]] * N), TypeError, "`lead` must hold whole numbers or durations, got [1] in row 0."),
    "too long": ((range(N), 13), ValueError, "`lead` (13) must not be longer than the time from the first to the last"),
    "too long a duration": ((DAYS, "30D"), ValueError, "`lead` (30 days) must not be longer than the time from the"),
    "unit of time": (
        (np.arange(N) * 7, 3),
        ValueError,
        "whose values are at least 7 apart; got 3. If labels are known",
    ),
    "length": ((DAYS[:5], 1), ValueError, "`time` must have the time of each of the 12 observations, got 5."),
    "shape": ((np.zeros((N, 2)), 1), ValueError, "`time` must have shape (n_samples,), got (12, 2)."),
    "a text": (("2026", 1), TypeError, "`time` must be an array of shape (n_samples,), got '2026'."),
    "truths": (([True, False] * 6, 1), TypeError, "`time` must hold numbers or dates, got dtype('bool')."),
    "missing number": (([*range(11), np.nan], 1), ValueError, "for every observation, got nan in row 11."),
    "missing date": (([*DAYS[:11], None], 1), ValueError, "for every observation, got NaT in row 11."),
    "missing time": ((pd.Series([*DAYS[:11], pd.NaT]), 1), ValueError, "got NaT in row 11."),
    "empty text": ((["2026-01-01"] * 10 + ["", ""], 1), ValueError, "for every observation, got '' in row 10."),
    "array of texts": ((np.array(["NaT", "2026-01-01"] * 6), "7D"), ValueError, "got 'NaT' in row 0."),
    "strings": ((pd.Series(["2026-01-01", "nan"] * 6, dtype="string"), "1D"), ValueError, "got 'nan' in row 1."),
    "categories": ((pd.Categorical(["2026-01-01", "NaN"] * 6), "1D"), ValueError, "got 'NaN' in row 1."),
    "a period": (([pd.Period("2026-01"), "NaT"] * 6, 1), ValueError, "got 'NaT' in row 1."),
    "masked": ((np.ma.masked_array(np.arange(N), np.arange(N) == 5), 7), ValueError, "got None in row 5."),
    "now": ((["2026-01-01", "now"] * 6, 1), TypeError, "either numbers or dates, got 'now' in row 1 among"),
    "today": ((np.array(["today"] * N), 1), TypeError, "either numbers or dates, got 'today' in row 0 among"),
    "large": (
        (np.uint64(2**63) + np.arange(N, dtype=np.uint64), 7),
        ValueError,
        "and 2^62, got [9223372036854775808].",
    ),
    "low": ((np.arange(N) + np.iinfo(np.int64).min, 7), ValueError, "and 2^62, got [-9223372036854775808]."),
    "dates as numbers": (
        ([20260130, 20260131, *range(20260201, 20260211)], 7),
        ValueError,
        "pass dates, e.g. pandas.to_datetime(time, format='%Y%m%d'), or texts such as '2026-01-30'.",
    ),
    "such with a duration": ((np.repeat([20240229.0, 20240305, 20240312], 4), "7D"), ValueError, "such as 20240229,"),
    "other order": ((["2026-01-01", "31.12.2026"] * 6, 1), ValueError, "(ISO 8601), got '31.12.2026' in row 1;"),
    "two kinds": (([*DAYS[:11], 3], 1), TypeError, "`time` must hold either numbers or dates, got 3 in row 11 among"),
    "zones": (([*DAYS[:11], DAYS[11].tz_localize("UTC")], 1), ValueError, "in one time zone, got UTC and none."),
    "zones in texts": ((["2026-01-01T00:00+02:00", "2026-01-02T00:00+01:00"] * 6, 1), ValueError, "in one time zone"),
    "uneven": (
        (DAYS + pd.to_timedelta([0] * 11 + [5], unit="h"), 2),
        ValueError,
        "`lead=2` counts steps of `time`, which must be whole multiples of the smallest one: got differences of 1 day "
        "and 29 hours. Give `lead` as a duration, such as '2D'.",
    ),
}


def test_what_is_refused():
    def check(case):
        (time, lead), kind, message = case
        check_refused(validate_timing, kind, message, time, lead, N)

    assert failures(REFUSED, check) == {}
