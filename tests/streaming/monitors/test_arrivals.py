"""Times, batches and early labels: the same bits for updates of any size, and every refusal changes nothing."""

import datetime
import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from caltest import CalibrationMonitor
from caltest.streaming.monitors import _saved_monitor
from tests.reference.bets import pending_wealth
from tests.reference.cases import mostly_slow


def stream(n, seed=0, n_classes=2):
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.ones(n_classes), n)
    return np.minimum((prob.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), n_classes - 1), prob


def everything(monitor):
    return monitor._now.to_dict(), monitor._bets.to_dict(), monitor._arrivals.to_dict()


DAYS = pd.date_range("2026-01-01", periods=300)
HOURS = pd.date_range("2026-01-01", periods=300, freq="h")
TIMES = {
    "lead of observations": (7, {}),
    "numbers": (5, {"time": np.sort(np.random.default_rng(0).integers(150, size=300))}),
    "numbers that are not whole": (2, {"time": 0.25 + np.arange(300) / 3}),
    "batches": (3, {"batch": np.arange(300) // 7}),
    "names of batches": (None, {"batch": np.repeat([f"patient {k}" for k in range(60)], 5)}),
    "days": ("7D", {"time": DAYS}),
    "texts of days": (7, {"time": DAYS.strftime("%Y-%m-%d").to_numpy()}),
    "a day of hours": ("1D", {"time": HOURS}),
    "a zone": (datetime.timedelta(hours=30), {"time": HOURS.tz_localize("Europe/Berlin")}),
    "some of a day": ("36h", {"time": DAYS.repeat(3)[:300]}),
    "no lead": (None, {"time": DAYS.repeat(2)[:300]}),
}


@pytest.mark.parametrize("kind", mostly_slow(TIMES))
def test_updates_of_any_size_and_saved_monitors_give_the_same_bits(kind, tmp_path):
    lead, options = TIMES[kind]
    y_true, prob = stream(300, n_classes=3 if kind == "batches" else 2)
    y_true[100:] = 0
    whole = CalibrationMonitor(lead=lead).update(y_true, prob, **options)
    assert whole.alarm is not None
    assert whole.n_samples + whole.n_pending == 300
    rng, file = np.random.default_rng(1), tmp_path / "monitor.json"
    for cuts in ([0, *range(120, 161), 300], sorted({0, 300, *rng.integers(300, size=25).tolist()})):
        monitor = CalibrationMonitor(lead=lead)
        for place, (start, stop) in enumerate(pairwise(cuts)):
            monitor.update(y_true[start:stop], prob[start:stop], **{k: v[start:stop] for k, v in options.items()})
            if place % 16 == 10:
                monitor.save(file)
                again = CalibrationMonitor.load(file)
                assert repr(again) == repr(monitor)
                assert everything(again) == everything(monitor)
                monitor = again
        assert everything(monitor) == everything(whole)
        assert str(monitor) == str(whole)


def test_times_that_count_steps_are_those_of_the_same_observations_without():
    y_true, prob = stream(300)
    plain = CalibrationMonitor(lead=7).update(y_true, prob)
    for lead, time in ((7, np.arange(300) + 5), (7, DAYS), (7, DAYS.strftime("%Y-%m-%d").tolist()), ("7D", DAYS)):
        timed = CalibrationMonitor(lead=lead).update(y_true, prob, time=time)
        assert timed._now.to_dict() == plain._now.to_dict()
        assert (timed.n_samples, timed.n_pending) == (294, 6)
    gaps = CalibrationMonitor(lead=7).update(y_true, prob, time=3 * np.arange(300))
    assert gaps._now.to_dict() == CalibrationMonitor(lead=3).update(y_true, prob)._now.to_dict() or gaps.n_pending == 2


def test_what_is_found_within_a_time_is_that_of_the_time_until_then():
    y_true, prob = stream(40)
    week = np.arange(40) // 10
    monitor = CalibrationMonitor().update(y_true[:35], prob[:35], time=week[:35])
    assert (monitor.n_samples, monitor.n_pending) == (35, 0)
    monitor.update(y_true[35:], prob[35:], time=week[35:])
    assert everything(monitor) == everything(CalibrationMonitor().update(y_true, prob, time=week))


@pytest.mark.parametrize("dates", [False, True])
def test_early_labels_are_held_back_until_all_of_their_time_may_be_known(dates):
    """Labels 1 are reported a day after the prediction, labels 0 at its end, a week after: the same as in order."""
    y_true, prob = stream(120)
    y_true[-2:] = 0
    time = np.arange(120) // 2
    known = time + np.where(y_true == 1, 1, 7)
    order = np.argsort(known, kind="stable")
    lead = "7D" if dates else 7

    def moment(days):
        return np.datetime64("2026-01-01") + days if dates else days

    def report(monitor, rows):
        return monitor.update(y_true[rows], prob[rows], time=moment(time[rows]), known_at=moment(known[rows]))

    arrived = np.lexsort((np.argsort(order), time))  # in a time, labels that were reported first come first
    in_order = CalibrationMonitor(lead=lead).update(y_true[arrived], prob[arrived], time=moment(time[arrived]))
    whole = report(CalibrationMonitor(lead=lead), order)
    assert everything(whole)[:2] == everything(in_order)[:2]
    parts = CalibrationMonitor(lead=lead)
    for start in range(0, 120, 7):
        report(parts, order[start : start + 7])
        reported = order[: start + 7]
        complete = time[reported] + 7 <= known[reported].max()
        assert parts.n_samples + parts.n_pending == len(reported)
        assert parts._arrivals.n_held == (~complete).sum()
    assert everything(parts) == everything(whole)
    clock = CalibrationMonitor(lead=lead)
    for day in range(67):
        rows = np.flatnonzero(known == day)
        if rows.size:
            clock.update(y_true[rows], prob[rows], time=moment(time[rows]), known_at=moment(np.array([day]))[0])
    assert clock.n_samples == whole.n_samples


@pytest.mark.parametrize("index", [DAYS, pd.period_range("2026-01-01", periods=300), DAYS.repeat(2)[:300]])
def test_an_index_of_dates_is_the_time_if_there_is_a_lead(index):
    y_true, prob = stream(300)
    labels, frame = pd.Series(y_true, index), pd.DataFrame(prob, index)
    for lead in (7, "7D"):
        wanted = everything(CalibrationMonitor(lead=lead).update(y_true, prob, time=index))
        for given in ((labels, frame), (y_true, frame), (labels, prob)):
            assert everything(CalibrationMonitor(lead=lead).update(*given)) == wanted
    monitor = CalibrationMonitor(lead=7).update(labels[:200], frame[:200])
    with pytest.raises(ValueError, match="`time` must not go backwards"):
        monitor.update(labels[:9], frame[:9])
    with pytest.raises(ValueError, match="every update must have `time`, as the first one, got neither"):
        monitor.update(y_true[200:], prob[200:])
    assert everything(monitor.update(labels[200:], frame[200:])) == everything(
        CalibrationMonitor(lead=7).update(labels, frame)
    )
    with pytest.raises(ValueError, match=r"got time\. With a `lead`, the index of a frame or series is `time`"):
        CalibrationMonitor(lead=7).update(y_true, prob).update(labels, frame)
    assert CalibrationMonitor().update(labels, frame)._arrivals is None
    assert CalibrationMonitor(lead=7).update(labels, frame, batch=np.arange(300))._arrivals.kind == "batches"


def test_a_number_as_lead_of_weekdays_counts_different_dates():
    """A test, which knows all dates, counts calendar days; the monitor does not know whether there is a Sunday."""
    y_true, prob = stream(300)
    weekdays = CalibrationMonitor(lead=3).update(y_true, prob, time=pd.bdate_range("2026-01-01", periods=300))
    assert weekdays.result().log_e_value == CalibrationMonitor(lead=3).update(y_true, prob).result().log_e_value


def test_dates_as_numbers_are_refused_in_updates_of_any_size():
    number = [20260130, 20260131, 20260201]
    for before in (0, 1, 2):
        monitor = CalibrationMonitor(lead=7)
        for one in number[:before]:
            monitor.update([0], [0.5], time=[one])
        rest = number[before:]
        with pytest.raises(ValueError, match="are not days: pass dates"):
            monitor.update([0] * len(rest), [0.5] * len(rest), time=rest)
        assert monitor.n_samples + monitor.n_pending == before


def test_an_empty_time_is_refused():
    with pytest.raises(ValueError, match="`time` must have a time for every observation, got '' in row 1"):
        CalibrationMonitor(lead="7D").update([0, 1], [0.2, 0.7], time=["2026-01-01", ""])
    with pytest.raises(TypeError, match="because `time` holds numbers; got '7D'"):
        CalibrationMonitor(lead="7D").update([0, 1], [0.2, 0.7], time=[1, 2])


REFUSED = {
    "backwards": ({"time": [3, 2]}, r"must not go backwards, got 2 in row 1 after 3: pass observations in the order"),
    "before the last update": ({"time": [0, 5]}, "must not go backwards, got 0 in row 0 after 1"),
    "of another length": ({"time": [3]}, "must have the time of each of the 2 observations, got 1"),
    "missing": ({"time": [3, np.nan]}, "must have a time for every observation, got nan in row 1"),
    "dates after numbers": ({"time": DAYS[:2]}, "`time` must hold numbers, as the times before, got dates"),
    "no times": ({}, "every update must have `time`, as the first one, got neither"),
    "batches": ({"batch": [3, 4]}, "every update must have `time`, as the first one, got batch"),
    "both": ({"batch": [3, 4], "time": [3, 4]}, "every update must have `time`, as the first one, got time and batch"),
    "a label of the future": (
        {"time": [3, 4], "known_at": [9, 3]},
        "`known_at` must not be before `time`, got 3 for a pre",
    ),
    "a late label": (
        {"time": [8, 7], "known_at": [9, 10]},
        "got 7 in row 1 after 8: all outcomes of it counted as known",
    ),
    "known at no number": ({"time": [8, 9], "known_at": [9, np.nan]}, "`known_at` must have a time for every"),
    "known at many times": (
        {"time": [8, 9], "known_at": [9, 10, 11]},
        "`known_at` must have the time of each of the 2",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_update_changes_nothing(name):
    options, words = REFUSED[name]
    monitor = CalibrationMonitor(lead=1).update([0, 1], [0.2, 0.3], time=[0, 1])
    before = everything(monitor)
    with pytest.raises((ValueError, TypeError), match=words):
        monitor.update([0, 1], [0.2, 0.3], **options)
    assert everything(monitor) == before


def test_leads_and_first_updates_that_are_refused():
    for lead in (0, -1, 2**62 + 1, "0D", "-1D", "soon", "7"):
        with pytest.raises(ValueError, match="`lead`"):
            CalibrationMonitor(lead=lead)
    for lead in (1.5, True):
        with pytest.raises(TypeError, match="`lead`"):
            CalibrationMonitor(lead=lead)
    data = [0, 1], [0.2, 0.3]
    for lead, options, words in (
        ("7D", {}, "`lead` of 7 days needs `time`"),
        ("7D", {"batch": [0, 1]}, "`lead` of 7 days needs `time`"),
        ("7D", {"time": [0, 1]}, "`lead` must be a whole number, because `time` holds numbers"),
        (7, {"known_at": 3}, "`known_at` needs `time`"),
        (None, {"time": [0, 1], "known_at": 3}, "`known_at` needs a `lead` in the unit of `time`"),
        (7, {"time": DAYS[:2], "known_at": DAYS[:2]}, "`known_at` needs a `lead` in the unit of `time`"),
        (None, {"time": [0, 1], "batch": [0, 1]}, "`time` and `batch` must not both be given"),
        (None, {"time": "2026-01-01"}, "`time` must be an array"),
        (None, {"batch": [[0, 1]]}, "`batch` must have"),
    ):
        monitor = CalibrationMonitor(lead=lead)
        with pytest.raises((ValueError, TypeError), match=words):
            monitor.update(*data, **options)
        assert monitor.n_samples + monitor.n_pending == 0
    plain = CalibrationMonitor().update(*data)
    with pytest.raises(ValueError, match="every update must have neither `time` nor `batch`"):
        plain.update(*data, time=[2, 3])


def test_a_batch_that_comes_back_is_refused(tmp_path):
    """Its labels were known when the other ones were predicted."""
    monitor = CalibrationMonitor().update([0, 1, 1], [0.2, 0.3, 0.4], batch=["ann", "ann", "bob"])
    monitor.update([0, 1], [0.2, 0.3], batch=["bob", "cy"])
    monitor.save(tmp_path / "a.json")
    for one in (monitor, CalibrationMonitor.load(tmp_path / "a.json")):
        before = everything(one)
        with pytest.raises(ValueError, match="got 'ann' again in row 1: its outcomes were known before"):
            one.update([0, 1], [0.2, 0.3], batch=["dan", "ann"])
        assert everything(one) == before
    with pytest.raises(ValueError, match="got 1 again in row 2"):
        CalibrationMonitor().update([0, 1, 1], [0.2, 0.3, 0.4], batch=[1, 2, 1])


def test_held_labels_need_known_at_again():
    monitor = CalibrationMonitor(lead=7).update([1], [0.2], time=[0], known_at=1)
    assert (monitor.n_samples, monitor.n_pending) == (0, 1)
    with pytest.raises(ValueError, match="`known_at` must be given again"):
        monitor.update([1], [0.2], time=[3])


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_dates_with_and_without_a_time_zone_are_not_compared(zone, tmp_path):
    """Nor in a later update, nor by the times of reports, nor after loading; other zones are the same moments."""
    days, others = DAYS[:9].tz_localize(zone), DAYS[:9].tz_localize(None if zone else "UTC")
    monitor = CalibrationMonitor(lead="2D").update([0, 1], [0.2, 0.3], time=days[:2])
    monitor.save(tmp_path / "a.json")
    words = f"`(time|known_at)` must have {'a' if zone else 'no'} time zone, as the times before"
    for one in (monitor, CalibrationMonitor.load(tmp_path / "a.json")):
        before = everything(one)
        for options in ({"time": others[2:4]}, {"time": days[2:4], "known_at": others[8]}):
            with pytest.raises(ValueError, match=words):
                one.update([0, 1], [0.2, 0.3], **options)
        assert everything(one) == before
    with pytest.raises(ValueError, match=words):
        CalibrationMonitor(lead="2D").update([0, 1], [0.2, 0.3], time=days[:2], known_at=others[8])
    older = json.loads((tmp_path / "a.json").read_text())
    del older["times"]["arrivals"]["zoned"]
    (tmp_path / "a.json").write_text(json.dumps(older))
    forged(tmp_path / "a.json", lambda *_: None)
    again = CalibrationMonitor.load(tmp_path / "a.json").update([0, 1], [0.2, 0.3], time=days[2:4])
    assert everything(again) == everything(monitor.update([0, 1], [0.2, 0.3], time=days[2:4]))
    if zone:
        monitor.update([0], [0.2], time=days[5:6].tz_convert("Asia/Tokyo"))


@pytest.mark.parametrize("seed", mostly_slow(range(24)))
def test_what_counts_when_is_that_of_the_twin(seed, tmp_path):
    """Ties, gaps, numbers below 0 and not whole ones, in parts that are saved, with reports in any order."""
    rng = np.random.default_rng(seed)
    n, lead = int(rng.integers(3, 20)), int(rng.integers(1, 9))
    prob = rng.choice([0.03, 0.3, 0.5, 0.9], n)
    y_true = (rng.random(n) < prob).astype(int)
    times = rng.integers(-10, 20, n), rng.integers(-40, 60, n) / 4 + 0.125, rng.integers(6, size=n), 2 * np.arange(n)
    time = np.sort(times[seed % 4])
    whole = CalibrationMonitor(1e-9, lead=lead).update(y_true, prob, time=time)
    expected = pending_wealth(y_true.tolist(), prob.tolist(), time.tolist(), lead, unit=int(seed % 4 != 1))
    path = dict(whole.result().path.tolist())
    np.testing.assert_allclose([path[k] for k, _ in expected], np.log([w for _, w in expected]), atol=1e-10)
    assert whole.n_samples == (expected[-1][0] if expected else 0)
    known = time + rng.integers(lead + 1, size=n)
    order = np.argsort(known, kind="stable")
    reported = CalibrationMonitor(1e-9, lead=lead).update(
        y_true[order], prob[order], time=time[order], known_at=known[order]
    )
    for rows, wanted in ((np.arange(n), whole), (order, reported)):
        monitor = CalibrationMonitor(1e-9, lead=lead)
        for part in np.array_split(rows, 4):
            if part.size:
                options = {"known_at": known[part]} if wanted is reported else {}
                monitor.update(y_true[part], prob[part], time=time[part], **options)
                monitor.save(tmp_path / "a.json")
                monitor = CalibrationMonitor.load(tmp_path / "a.json")
        assert everything(monitor) == everything(wanted)


def test_hours_after_whole_days_are_refused_if_outcomes_count_already():
    """A lead of a day after daily times: the last outcome counts, since the next prediction is a day later."""
    days = DAYS[:4]
    monitor = CalibrationMonitor(lead="1D").update([0, 1, 1, 0], [0.2, 0.3, 0.3, 0.3], time=days)
    assert monitor.n_pending == 0
    before = everything(monitor)
    with pytest.raises(ValueError, match="`time` must be at least 1 day after 2026-01-04, whose outcome counts"):
        monitor.update([1], [0.5], time=[days[-1] + pd.Timedelta("1h")])
    assert everything(monitor) == before
    hourly = CalibrationMonitor(lead="1D").update([0, 1, 1, 0], [0.2, 0.3, 0.3, 0.3], time=HOURS[:4])
    assert hourly.n_pending == 4


def forged(path, change):
    """Change a saved monitor and give it the checksum of what it holds now."""
    whole = json.loads(path.read_text())
    change(whole["times"], whole["bets"])
    body = {name: whole[name] for name in ("settings", "bets", "times")}
    path.write_text(json.dumps(whole | {"checksum": _saved_monitor._checksum(body)}))


IMPOSSIBLE = {
    "no kind": (lambda t, _: t["arrivals"].update(kind="moons"), "`kind` holds"),
    "a lead of 0": (lambda t, _: t.update(lead=[0, False]), "lead"),
    "a lead of days of numbers": (lambda t, _: t.update(lead=[7, True]), "`kind` holds"),
    "more times than there are": (lambda t, _: t["arrivals"].update(n_times=2**70), "`n_times` holds"),
    "a time out of reach": (lambda t, _: t["arrivals"].update(now=2**63), "`now` holds"),
    "a time zone of numbers": (lambda t, _: t["arrivals"].update(zoned=True), "`zoned` holds"),
    "a unit of a year": (lambda t, _: t["arrivals"].update(unit=10**14), "`unit` holds"),
    "fewer pending times": (lambda t, _: t["arrivals"]["pending"].pop(), "`pending` must have the 3 times"),
    "pending times backwards": (lambda t, _: t["arrivals"].update(pending=[3, 2, 1]), "`pending` holds"),
    "no arrivals": (lambda t, _: t.update(arrivals=None), "`arrivals` must not be null"),
    "an open observation of another time": (
        lambda t, _: t["arrivals"]["opened"][0].__setitem__(0, 3),
        "`opened` holds",
    ),
    "an open observation of no outcome": (
        lambda t, _: t["arrivals"]["opened"][2].__setitem__(0, 3),
        "observations must be",
    ),
    "half a prediction": (lambda _, b: b["size"].__setitem__(0, 0.5), "`size` holds"),
    "fewer payments": (lambda _, b: b["paid"].pop(), "`paid` has shape"),
    "payments below 0": (lambda _, b: b["paid"][0][0].__setitem__(0, -1.0), "`paid` holds"),
    "remembered less than nothing": (lambda _, b: b["learned"][0][0][0].__setitem__(0, -1.0), "`learned` holds"),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_monitors_with_the_right_checksum_are_refused(tmp_path, name):
    path, (change, words) = tmp_path / "monitor.json", IMPOSSIBLE[name]
    CalibrationMonitor(lead=4).update([0, 1, 1, 0, 1], [0.2, 0.6, 0.9, 0.5, 0.5], time=range(5)).save(path)
    forged(path, lambda *_: None)
    assert CalibrationMonitor.load(path).n_pending == 3
    forged(path, change)
    with pytest.raises(ValueError, match=r"monitor\.json") as raised:
        CalibrationMonitor.load(path)
    assert words in str(raised.value)


def test_the_version_of_a_file_tells_whether_it_has_times(tmp_path):
    """Files of monitors without times are those of before; a lead is kept before the first observation."""
    for lead, options, version in ((None, {}, 2), (1, {}, 2), (2, {}, 3), (None, {"time": [0, 1]}, 3)):
        monitor = CalibrationMonitor(lead=lead)
        monitor.update([0, 1], [0.2, 0.4], **options).save(tmp_path / "a.json")
        whole = json.loads((tmp_path / "a.json").read_text())
        assert (whole["version"], "times" in whole) == (version, version == 3)
    CalibrationMonitor(lead="7D").save(tmp_path / "b.json")
    assert CalibrationMonitor.load(tmp_path / "b.json").lead == datetime.timedelta(days=7)
