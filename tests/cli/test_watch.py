"""Growing files are followed to the first alarm; what arrives when is decided here, not by a clock."""

import io
import json
import sys
from itertools import pairwise

import numpy as np
import pytest

import caltest
from caltest.cli import _watch, main
from tests.reference.cases import mostly_slow


@pytest.fixture
def drifting():
    """Labels and predictions of which the last 600 have half the predicted odds."""
    rng = np.random.default_rng(0)
    prob = np.round(rng.random(900), 6)
    true = np.where(np.arange(900) < 300, prob, prob / (2 - prob))
    return (rng.random(900) < true).astype(int), prob


@pytest.fixture
def follow(monkeypatch, tmp_path, capsys):
    """Run ``watch`` on a file that grows by a part whenever its end was reached."""

    def run(parts, *arguments, name="data.csv"):
        file, left = tmp_path / name, list(parts[1:])
        file.write_text(parts[0])

        def grow(_):
            if not left:
                raise KeyboardInterrupt
            with file.open("a") as stream:
                stream.write(left.pop(0))

        monkeypatch.setattr(_watch.time, "sleep", grow)
        code = main(["watch", str(file), *map(str, arguments)])
        return code, *capsys.readouterr()

    return run


def csv_of(y_true, y_prob):
    return "risk,died\n" + "".join(f"{p},{y}\n" for y, p in zip(y_true, y_prob, strict=True))


def said(monitor):
    """What a monitor says, but for the title, which names the file on the command line."""
    return str(monitor).partition("\n\n")[2]


def test_a_growing_file_is_followed_to_the_alarm(follow, drifting):
    text = csv_of(*drifting)
    cuts = [0, 3, 40, 41, 1000, 1001, 5000, 7000, len(text)]  # in the middle of lines and of the header
    code, out, err = follow([text[a:b] for a, b in pairwise(cuts)], "--every", 100)
    monitor = caltest.CalibrationMonitor().update(*drifting)
    assert 300 < monitor.alarm < 900
    assert code == 1
    words = " ".join(out.split())
    assert 'observations, event "died = 1" (' in words
    assert '), predicted by "risk" Predicted risks are too high: ' in words
    assert f"The alarm was at observation {monitor.alarm};" in words
    assert "observations: e-value" in out
    assert "Label column: died. Probability columns: risk." in err


def test_a_calm_file_ends_or_is_stopped(follow, drifting, run, tmp_path):
    calm = [part[:300] for part in drifting]
    code, out, err = follow([csv_of(*calm)], "--every", 100)
    assert (code, "300 observations: e-value" in out, "stopped" in err) == (130, True, True)
    code, out, _ = run("watch", tmp_path / "data.csv", "--once")
    assert code == 0
    assert said(caltest.CalibrationMonitor().update(*calm)) in out


def test_ctrl_c_prints_what_was_found_until_then(follow, drifting):
    """The e-value of a calm file that was watched for a year was lost."""
    y_true, prob = (part[:250] for part in drifting)
    code, out, _ = follow([csv_of(y_true, prob)])
    assert code == 130
    assert out.split("observations", 1)[0].split()[-1] == "250"
    assert said(caltest.CalibrationMonitor().update(y_true, prob)) in out
    code, out, _ = follow(["risk,died\n"])
    assert (code, out) == (130, "")


def test_the_report_of_an_alarm_is_not_printed_again_at_the_end(follow, drifting, run, tmp_path):
    follow([csv_of(*drifting)])
    code, out, _ = run("watch", tmp_path / "data.csv", "--once", "--keep-going")
    assert code == 1
    assert out.count("The alarm was at") == 1


def test_json_lines_and_after_the_alarm(follow, drifting):
    y_true, y_prob = drifting
    texts = np.array(["cat", "dog"])[y_true]
    lines = [json.dumps({"y": t, "prob": [1 - p, p]}) + "\n" for t, p in zip(texts, y_prob, strict=True)]
    parts = ["".join(lines[:200]), "".join(lines[200:700]), "".join(lines[700:]).rstrip("\n")]
    options = "--json", "--keep-going", "--every", 100, "--classes", "cat,dog", "--alpha", 0.01, "--prob", "prob"
    code, out, _ = follow(parts, *options, "--label", "y", name="log.jsonl")
    shown = [json.loads(line) for line in out.splitlines()]
    assert code == 130
    wanted = caltest.CalibrationMonitor(0.01).update(y_true[:899], np.column_stack([1 - y_prob, y_prob])[:899])
    assert [found["n_samples"] for found in shown] == [200, 700, 899]  # the last line is not complete
    assert shown[-1]["log_e_value"] == pytest.approx(wanted.result().log_e_value, abs=1e-9)
    assert (shown[-1]["alarm"], shown[-1]["direction"]) == (wanted.alarm, "too high")
    (finding,) = shown[-1]["verdict"]["findings"]
    assert finding["kind"] == "too high"
    assert finding["observed"] < finding["predicted"]


def test_standard_input(monkeypatch, drifting, run):
    class Input:
        buffer = io.BytesIO(csv_of(*drifting).encode())

        def isatty(self):
            return False

    monkeypatch.setattr(sys, "stdin", Input())
    code, out, _ = run("watch", "-", "--lens", "Confidence()")
    monitor = caltest.CalibrationMonitor(lens=caltest.Confidence()).update(*drifting)
    assert code == int(monitor.alarm is not None)
    assert out.startswith("standard input: 900 observations, right predictions (662, 73.6 %)\n")
    assert out.endswith(f"{said(monitor)}\n")


def test_columns_of_names_and_few_labels(follow):
    """The first lines have one of the labels only, and wait for the others."""
    rng = np.random.default_rng(1)
    prob = np.round(rng.dirichlet(np.ones(3), 200), 6)
    prob[:, 2] = 1 - prob[:, 0] - prob[:, 1]
    names = np.array(["ant", "bee", "cat"])
    label = (prob.cumsum(axis=1) < rng.random((200, 1))).sum(axis=1)
    rows = [f"{names[y]},{p[2]:.6f},{p[0]:.6f},{p[1]:.6f}\n" for y, p in zip(label, prob, strict=True)]
    parts = [*rows[:12], "".join(rows[12:])]
    code, out, _ = follow(["truth,cat,ant,bee\n", *parts], "--json", "--every", 200)
    monitor = caltest.CalibrationMonitor().update(label, np.round(prob, 6))
    assert code == 130
    assert json.loads(out)["log_e_value"] == pytest.approx(monitor.result().log_e_value, abs=1e-9)


def test_bad_input_is_refused_with_its_line(follow, run, drifting, tmp_path):
    text = csv_of(*[part[:50] for part in drifting])
    for further, words in (
        ("0.5,\n", "the label is missing in the column 'died' (line 52)"),
        ("0.5,1\n1.5,0\n", "1.5 in line 53, column 'risk', is no probability"),
        ("0.5,7\n", "got 7 in line 52"),
    ):
        code, _, err = follow([text, further])
        assert code == 2
        assert words in err
    code, _, err = follow([text, "0.5,1\n", "\n\n0.5,1\n\n0.5,7\n"])
    assert (code, "got 7 in line 57" in err) == (2, True), "empty lines count"
    code, _, err = follow(["risk,died\n"], "--once")
    assert (code, "there are no observations" in err) == (2, True)
    for arguments in ((tmp_path / "absent.csv",), (tmp_path,), (tmp_path / "data.csv", "--poll", "0")):
        assert run("watch", *arguments)[0] == 2
    np.savez(tmp_path / "arrays.npz", labels=[0, 1], probs=[0.25, 0.5])
    words = "watch follows CSV, TSV and JSON lines, and this is NPZ; 'caltest test' reads it"
    assert words in run("watch", tmp_path / "arrays.npz", "--once")[2]
    (tmp_path / "sums.csv").write_text("patient_id,label,p_0,p_1\n1,1,0.5,0.49\n1,0,0.5,0.5\n")
    code, _, err = run("watch", tmp_path / "sums.csv", "--once")
    assert (code, "--normalise" in err, "--groups" in err, "divide each row" in err) == (2, False, False, True)


LINES = "label,prob\n" + "0,0.1\n1,0.9\n" * 20


@pytest.mark.parametrize("standard_input", mostly_slow([True, False]))
@pytest.mark.parametrize("last", ["1,0.", "1,0.95"])
def test_a_line_without_its_end_is_not_an_observation(run, tmp_path, monkeypatch, standard_input, last):
    """Cut off from "1,0.95", the line "1,0." is an event that is impossible, and its e-value infinite."""
    (tmp_path / "cut.csv").write_text(LINES + last)

    class Input:
        buffer = io.BytesIO((LINES + last).encode())

        def isatty(self):
            return False

    monkeypatch.setattr(sys, "stdin", Input())
    file = "-" if standard_input else str(tmp_path / "cut.csv")
    code, out, err = run("watch", file, "--once", "--json")
    name = "standard input" if standard_input else file
    words = "is left out, because it does not end with a line break and may be cut off"
    assert code == 0
    assert json.loads(out)["n_samples"] == 40
    assert f"caltest: note: {name}: the last line {words}: {last}\n" in err
    (tmp_path / "cut.csv").write_text("label,prob\n0,0.5")
    code, _, err = run("watch", tmp_path / "cut.csv", "--once")
    assert (code, "0,0.5" in err, "there are no observations" in err) == (2, True, True)


def test_a_file_that_becomes_shorter_while_it_is_read_once_is_refused(run, tmp_path, monkeypatch):
    file = tmp_path / "data.csv"
    file.write_text(LINES)
    monkeypatch.setattr(_watch._Lines, "updates", lambda _, parts: [file.write_text(LINES[:30]) for _ in parts])
    code, _, err = run("watch", file, "--once")
    assert (code, "has become shorter" in err) == (2, True)


@pytest.mark.parametrize("way", ["cut off", "renamed", "removed"])
@pytest.mark.parametrize("names", mostly_slow(["label,prob\n", "prob,label\n", ""]))
def test_a_file_that_begins_again_is_followed(tmp_path, monkeypatch, run, way, names):
    """Its columns may be in another order, or without names if they are those of the file before."""
    file, (y_true, y_prob) = tmp_path / "data.csv", ([1, 0, 1] * 40, [0.7, 0.4, 0.5] * 40)
    pairs = [(p, y) if names.startswith("prob") else (y, p) for y, p in zip(y_true, y_prob, strict=True)]
    looks = []

    def sleep(_):
        looks.append(1)
        if len(looks) == 8:
            raise KeyboardInterrupt
        if len(looks) > 1:
            return
        if way == "renamed":
            file.rename(tmp_path / "data.csv.1")
        elif way == "removed":
            file.unlink()
        file.write_text(names + "".join(f"{a},{b}\n" for a, b in pairs))

    file.write_text(LINES + "0,0.")
    monkeypatch.setattr(_watch.time, "sleep", sleep)
    code, out, err = run("watch", file, "--json", "--every", "1", "--alpha", "1e-12")
    assert code == 130
    wanted = caltest.CalibrationMonitor().update([0, 1] * 20, [0.1, 0.9] * 20).update(y_true, y_prob)
    shown = [json.loads(line) for line in out.splitlines()]
    assert [found["n_samples"] for found in shown] == [40, 160]
    assert shown[-1]["log_e_value"] == pytest.approx(wanted.result().log_e_value, abs=1e-9)
    assert (err.count("is left out"), err.count("is read from its beginning")) == (1, 1)


def test_names_alone_in_a_file_that_begins_again(tmp_path, monkeypatch, run):
    """Before there is an observation, and after some."""
    file = tmp_path / "data.csv"
    contents = ["other,name\n", "label,prob\n", LINES, "label,prob\n", LINES + "1,0.5\n" * 9]
    looks = []

    def sleep(_):
        looks.append(1)
        if len(looks) % 4 == 0 and not contents:
            raise KeyboardInterrupt
        if len(looks) % 4 == 0:
            (tmp_path / "new").write_text(contents.pop(0))
            (tmp_path / "new").replace(file)

    file.write_text("label,prob\n")
    monkeypatch.setattr(_watch.time, "sleep", sleep)
    code, out, _ = run("watch", file, "--json", "--every", "1")
    assert code == 130
    assert [json.loads(line)["n_samples"] for line in out.splitlines()] == [40, 49]


def forecasts(n):
    """A file of daily forecasts, three a day, and what a monitor needs of it."""
    rng = np.random.default_rng(3)
    prob = np.round(rng.random(n), 6)
    y_true = (rng.random(n) < np.where(np.arange(n) < n // 3, prob, prob / (4 - 3 * prob))).astype(int)
    days = np.datetime64("2026-01-01") + np.arange(n) // 3
    lines = [f"{p},{y},{day},week {k // 7}\n" for p, y, day, k in zip(prob, y_true, days, range(n), strict=True)]
    return ["risk,died,date,week\n", *lines], y_true, prob, days


@pytest.mark.slow(few_draws=True)
def test_forecasts_of_a_week_ahead(follow, run, tmp_path):
    """Lines of the last day wait for a later one, so that no alarm is preliminary, or for the end of the file."""
    lines, y_true, prob, days = forecasts(900)
    rng = np.random.default_rng(0)
    cuts = sorted({0, 1, 901, *rng.integers(901, size=30).tolist()})
    options = "--prob", "risk", "--label", "died", "--time", "date", "--lead", "7D", "--keep-going"
    code, out, _ = follow(["".join(lines[a:b]) for a, b in pairwise(cuts)], *options, "--json", "--every", 1)
    assert code == 130
    monitor = caltest.CalibrationMonitor(lead="7D").update(y_true[:897], prob[:897], time=days[:897])
    shown = [json.loads(line) for line in out.splitlines()]
    assert shown[-1]["log_e_value"] == monitor.result().log_e_value
    assert (shown[-1]["alarm"], shown[-1]["n_pending"], shown[-1]["lead"]) == (monitor.alarm, 18, "7 days")
    assert monitor.alarm is not None
    code, out, _ = run("watch", tmp_path / "data.csv", "--once", *options)
    whole = caltest.CalibrationMonitor(lead="7D").update(y_true, prob, time=days)
    assert (code, said(whole) in out) == (1, True)
    assert "those made at least 7 days before" in " ".join(out.split())
    code, out, _ = run("watch", tmp_path / "data.csv", "--once", *options[:-1])
    assert code == 1
    first = monitor.alarm
    assert f"The alarm was at observation {first};" in " ".join(out.split())


@pytest.mark.slow(few_draws=True)
def test_batches_and_reports(follow, run, tmp_path):
    lines, y_true, prob, days = forecasts(300)
    options = "--prob", "risk", "--label", "died", "--once", "--keep-going"
    (tmp_path / "data.csv").write_text("".join(lines))
    _, out, _ = run("watch", tmp_path / "data.csv", *options, "--batch", "week", "--lead", 2)
    batches = caltest.CalibrationMonitor(lead=2).update(y_true, prob, batch=[f"week {k // 7}" for k in range(300)])
    assert said(batches) in out
    known = days + np.where(y_true == 1, 1, 7)
    order = np.argsort(known, kind="stable")
    text = "risk,died,date,known\n" + "".join(f"{prob[k]},{y_true[k]},{days[k]},{known[k]}\n" for k in order)
    (tmp_path / "known.csv").write_text(text)
    _, out, _ = run("watch", tmp_path / "known.csv", *options, "--time", "date", "--known-at", "known", "--lead", "7D")
    reported = caltest.CalibrationMonitor(lead="7D")
    reported.update(y_true[order], prob[order], time=days[order], known_at=known[order])
    assert said(reported) in out


def test_bad_times_are_refused_with_their_place(follow, run, tmp_path):
    lines, *_ = forecasts(60)
    options = "--prob", "risk", "--label", "died", "--once"
    for number, (further, given, words) in enumerate(
        [
            ("0.5,1,2025-01-01,x\n", ("--time", "date"), "--time must not go backwards, got 2025-01-01"),
            ("0.5,1,,x\n", ("--time", "date"), "column 'date', is missing"),
            ("0.5,1,2027-01-01,week 2\n", ("--batch", "week"), "got 'week 2' again"),
            ("", ("--time", "day"), "there is no column 'day'"),
            ("", ("--lead", "7D"), "--lead of 7 days needs --time"),
            ("", ("--time", "date", "--lead", "soon"), "must be a whole number >= 1, or a duration"),
        ]
    ):
        file = tmp_path / f"{number}.csv"
        file.write_text("".join(lines) + further)
        code, _, err = run("watch", file, *options, *given)
        assert code == 2
        assert words in " ".join(err.split())


@pytest.mark.parametrize(
    "cuts",
    [
        (1,),
        *(pytest.param(c, marks=pytest.mark.slow(few_draws=True)) for c in ((), (61,), (58, 60, 61, 63), (30, 62))),
    ],
)
def test_the_line_of_a_bad_time_does_not_depend_on_what_is_read_at_once(follow, cuts):
    """Observations of the last time wait for a later one, so that an update begins before the lines that were read."""
    lines, *_ = forecasts(60)  # lines 2 to 61
    options = "--prob", "risk", "--label", "died", "--time", "date", "--lead", "7D"
    for further, words in (
        ("0.5,1,2026-01-22,x\n0.5,1,,x\n", "the value in line 63, column 'date', is missing"),
        (
            "0.5,1,2026-01-22,x\n0.5,1,2026-01-21,x\n0.5,1,2026-01-24,x\n",
            "go backwards, got 2026-01-21 in line 63 after 2026-01-22:",
        ),
        ("0.5,1,2026-01-22,x\n0.5,1,nan,x\n0.5,1,2026-01-24,x\n", "for every observation, got 'nan' in line 63."),
        ("0.5,1,2026-01-22,x\n0.5,1,2026-01-23T01:00,x\n", ""),
    ):
        whole = [*lines, *further.splitlines(keepends=True)]
        parts = ["".join(whole[a:b]) for a, b in pairwise([0, *cuts, len(whole)])]
        code, _, err = follow(parts, *options)
        assert (code, words in " ".join(err.split())) == (2 if words else 130, True), (cuts, words, err)


def test_the_line_of_a_missing_time_in_the_first_lines(follow):
    _, _, err = follow(["y,p,t\n1,.3,1\n0,.4,2\n1,.2,\n"], "--label", "y", "--prob", "p", "--time", "t")
    assert "the value in line 4, column 't', is missing" in " ".join(err.split())


def test_a_duration_of_numbers_is_refused_as_it_was_written(follow):
    columns = "--label", "y", "--prob", "p", "--time", "t", "--once"
    _, _, err = follow(["y,p,t\n1,.3,1\n0,.4,2\n1,.2,3\n"], *columns, "--lead", "7D")
    assert "--lead must be a whole number, because --time holds numbers; got '7D'" in " ".join(err.split())


def test_percentages_and_an_event_that_is_named(follow, drifting):
    y_true, y_prob = drifting
    rows = [f"{'ill' if y else 'well'},{100 * p:.4f} %\n" for y, p in zip(y_true, y_prob, strict=True)]
    parts = ["state,risk\n" + "".join(rows[:200]), "".join(rows[200:700]), "".join(rows[700:])]
    code, out, err = follow(parts, "--json", "--keep-going", "--event", "ill", "--alpha", 0.01)
    assert code == 130, err
    shown = [json.loads(line) for line in out.splitlines()]
    wanted = caltest.CalibrationMonitor(0.01).update(y_true, np.round(y_prob, 6))
    assert shown[-1]["log_e_value"] == pytest.approx(wanted.result().log_e_value, abs=1e-6)
