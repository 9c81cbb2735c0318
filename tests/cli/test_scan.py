"""``caltest scan``, ``caltest merge`` and ``caltest test`` of a state."""

import json
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caltest import Canonical
from caltest.cli import main
from caltest.streaming import CalibrationState
from caltest.streaming.scans._output_lock import locked
from tests.house.processes import ROOT


def test_scan_merge_and_test(tmp_path, capsys):
    rng = np.random.default_rng(0)
    p = rng.random(1000)
    y = (rng.random(1000) < p).astype(int)
    for k in range(2):
        rows = slice(500 * k, 500 * (k + 1))
        pq.write_table(pa.table({"label": y[rows], "prob": p[rows]}), tmp_path / f"{k}.parquet")
        assert main(["scan", str(tmp_path / f"{k}.parquet"), "-o", str(tmp_path / f"{k}.npz")]) == 0
        columns = "Label column: label. Labels and their probability columns: 1 -> prob"
        assert capsys.readouterr().out.startswith(columns)
    both = tmp_path / "both.npz"
    assert main(["merge", str(tmp_path / "0.npz"), str(tmp_path / "1.npz"), "-o", str(both)]) == 0
    whole = CalibrationState().update(y, p)
    assert both.read_bytes() == whole.to_bytes()
    capsys.readouterr()
    assert main(["test", str(both), "--details"]) == 0
    assert capsys.readouterr().out == f"{whole.test()}\n"
    assert main(["test", str(both), "--json", "--statistic", "MCE(EqualWidth(10))"]) == 0
    assert json.loads(capsys.readouterr().out)["n_samples"] == 1000
    biased = tmp_path / "biased.npz"
    biased.write_bytes(CalibrationState().update(np.ones(1000, dtype=int), p).to_bytes())
    assert main(["test", str(biased), "--exit-code"]) == 1
    capsys.readouterr()
    biased.write_bytes(both.read_bytes()[:5000])
    assert main(["merge", str(biased), "-o", str(both)]) == 2
    assert "truncated" in capsys.readouterr().err


@pytest.mark.slow(few_draws=True)
def test_a_state_rejects_the_impossible_label_that_its_file_rejects(tmp_path, run, answer):
    """The usual state of several classes holds the confidence, which a class that was predicted with 0 % is not in."""
    rng = np.random.default_rng(4)
    p = rng.dirichlet(np.ones(3), 500)
    y = (rng.random((500, 1)) > p.cumsum(axis=1)[:, :2]).sum(axis=1)
    p[7], y[7] = [0.25, 0.0, 0.75], 1
    said = []
    for k, order in enumerate(([0, 1, 2], [2, 0, 1])):
        file, state = tmp_path / f"{k}.parquet", tmp_path / f"{k}.npz"
        columns = {f"p_{'abc'[place]}": p[:, place] for place in order}
        pq.write_table(pa.table({"label": np.array(list("abc"))[y], **columns}), file)
        assert run("scan", file, "-o", state)[0] == 0
        said += [answer("test", name)["verdict"] for name in (file, state)]
    for verdict in said:
        assert verdict["decision"] == "rejected"
        first = "Impossible: 1 observation had a class that was predicted with 0 %. One such case alone rejects"
        assert verdict["conclusion"].startswith(first)
        assert "Without it no miscalibration is found (p = 0." in verdict["conclusion"]
    assert said[1]["conclusion"] == said[3]["conclusion"]


@pytest.mark.parametrize(
    "given",
    ["--lens Confidence()", "--all", "--label y", "--prob p", "--folds f", "--groups g", "--sep ;", "--format csv",
     "--decimal ,", "--normalise", "--exceedances 10", "--no-header", "--class-names a,b"],
)  # fmt: skip
def test_options_of_files_are_refused_for_a_state(tmp_path, capsys, given):
    state = tmp_path / "state.npz"
    state.write_bytes(CalibrationState().update([0, 1], [0.25, 0.5]).to_bytes())
    assert main(["test", str(state), *given.split(" ")]) == 2
    option = given.split(" ")[0].replace("--no-", "--")
    assert f"{option} is for files of observations" in capsys.readouterr().err


def test_the_progress_of_a_scan_is_told(tmp_path, monkeypatch):
    """The bar or the lines are those of every long command."""
    pq.write_table(pa.table({"label": [0, 1], "prob": [0.25, 0.5]}), tmp_path / "0.parquet")
    seen = []
    monkeypatch.setattr("caltest.results._progress.ProgressLines.__call__", lambda self, *step: seen.append(step))
    assert main(["scan", str(tmp_path), "-o", str(tmp_path / "state.npz")]) == 0
    size = (tmp_path / "0.parquet").stat().st_size
    assert seen == [(size, size)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("label;p\n1;0,5\n0;0,25\n", 'try --sep ";" and --decimal ","'),
        ("label,p_0,p_1\n1,0.5,0.49\n", "divide each row by its sum"),
        ("y,p\n1,20\n0,70.5\n", "if these are percentages: divide them by 100 in the files"),
        ("y,p\nja,0.25\nnein,0.5\n", "name the event with --classes: ja or nein"),
    ],
)
def test_refusals_name_only_remedies_that_scan_has(tmp_path, capsys, text, words):
    (tmp_path / "a.csv").write_text(text)
    assert main(["scan", str(tmp_path / "a.csv"), "-o", str(tmp_path / "a.npz")]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert not any(option in error for option in ("--normalise", "--percent", "--event", "If that is what"))


@pytest.mark.slow(few_draws=True)
def test_a_state_that_is_merged_twice_is_noted(tmp_path, capsys):
    given = [tmp_path / name for name in ("a.npz", "b.npz", "c.npz")]
    for path, p in zip(given, (0.25, 0.75, 0.25), strict=True):
        path.write_bytes(CalibrationState().update([0, 1], [p, p]).to_bytes())
    for states, noted in ((given[:2], False), (given, True)):
        assert main(["merge", *map(str, states), "-o", str(tmp_path / "all.npz")]) == 0
        assert ("hold the same sums" in capsys.readouterr().err) is noted
    picture = tmp_path / "all.png"
    assert main(["test", str(tmp_path / "all.npz"), "--plot", str(picture)]) == 0
    assert "reliability diagram written to" in capsys.readouterr().err


def test_states_that_share_a_file_are_not_merged(tmp_path, capsys):
    for name, p in (("x", 0.25), ("y", 0.5), ("z", 0.75)):
        (tmp_path / f"{name}.csv").write_text(f"label,prob\n0,{p}\n1,{p}\n")
    for output, names in (("a", "xy"), ("b", "yz"), ("c", "z")):
        files = [str(tmp_path / f"{name}.csv") for name in names]
        assert main(["scan", *files, "-o", str(tmp_path / f"{output}.npz")]) == 0
    one, other, disjoint = (str(tmp_path / f"{name}.npz") for name in "abc")
    merged = tmp_path / "all.npz"
    assert main(["merge", one, other, "-o", str(merged)]) == 2
    assert f"{one} and {other} both hold the file y.csv" in capsys.readouterr().err
    assert not merged.exists()
    assert main(["merge", one, disjoint, "-o", str(merged)]) == 0
    assert CalibrationState.from_bytes(merged.read_bytes()).n_samples == 6


NAMED = "p_dog,animal,p_cat,p_eel\n0.5,dog,0.25,0.25\n0.25,eel,0.25,0.5\n0.25,cat,0.5,0.25\n"


def test_a_lens_names_a_class_by_its_label(tmp_path, capsys):
    """The number of a class is that of its column, which differs from file to file."""
    path, state = tmp_path / "a.csv", tmp_path / "a.npz"
    path.write_text(NAMED)
    for lens, words in (
        ("ClassWise(eel)", "class eel against the rest"),
        ("ClassWise(0)", "class dog against the rest"),
        ("ClassGroups([[dog], [cat, eel]])", "groups dog | cat, eel"),
    ):
        state.unlink(missing_ok=True)
        assert main(["scan", str(path), "-o", str(state), "--lens", lens]) == 0
        assert "3 observations in" in capsys.readouterr().out
        assert main(["test", str(state), "--details"]) == 0
        assert words in capsys.readouterr().out.splitlines()[0]
    assert main(["scan", str(path), "-o", str(state), "--lens", "ClassWise(cow)"]) == 2
    assert "there is no class 'cow'; the classes of this file are dog, cat, eel" in capsys.readouterr().err
    many = ("--prob", "p_dog,p_cat,p_eel", "--classes", "dog,cat")
    assert main(["scan", str(path), "-o", str(tmp_path / "b.npz"), *many]) == 2
    found = capsys.readouterr()
    assert "--classes must name 3 classes, one per probability column, got 2" in found.err
    assert found.out == "", "no pairs of labels and columns that would be wrong"


def test_a_file_without_a_column_and_a_broken_state_are_named(tmp_path, capsys):
    state = tmp_path / "a.npz"
    (tmp_path / "a.csv").write_text(NAMED)
    (tmp_path / "b.csv").write_text(NAMED.replace("animal", "label"))
    pq.write_table(pa.table({"p_dog": [0.5], "p_cat": [0.5]}), tmp_path / "c.parquet")
    for other, names in (("b.csv", "p_dog, label, p_cat, p_eel"), ("c.parquet", "p_dog, p_cat")):
        assert main(["scan", str(tmp_path / "a.csv"), str(tmp_path / other), "-o", str(state)]) == 2
        words = f"{other}: there is no column 'animal', which the first file has; the columns are {names}\n"
        assert capsys.readouterr().err.endswith(words)
    state.write_bytes(state.read_bytes()[:500])
    assert main(["scan", str(tmp_path / "a.csv"), "-o", str(state)]) == 2
    assert f"{state}: data must be the bytes of a calibration state" in (error := capsys.readouterr().err)
    assert "Name another output, or remove it to read all files again" in error


def test_a_picture_that_a_state_does_not_have_is_refused_before_its_report(tmp_path, capsys):
    state = CalibrationState(3, Canonical()).update([0, 1], [[0.5, 0.25, 0.25]] * 2)
    (tmp_path / "whole.npz").write_bytes(state.to_bytes())
    assert main(["test", str(tmp_path / "whole.npz"), "--plot", str(tmp_path / "x.png")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "a reliability curve needs a lens with two outcomes" in err


def test_a_state_may_have_any_name(tmp_path, capsys):
    state = tmp_path / "state"
    state.write_bytes(CalibrationState().update([0, 1], [0.25, 0.5]).to_bytes())
    assert main(["test", str(state)]) == 0
    assert "2 observations, events (1, 50.0 %)" in " ".join(capsys.readouterr().out.split())


WAITING = """
import sys
from caltest.cli import main
from caltest.streaming.scans._fragments import Reading
read = Reading.state_of
def read_later(self, fragment):
    print("reading", flush=True)
    sys.stdin.readline()
    return read(self, fragment)
Reading.state_of = read_later
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_two_scans_of_one_output_lose_no_rows(tmp_path, capsys):
    """Two processes: the second one is refused while the first one reads, and adds its files afterwards."""
    rng = np.random.default_rng(0)
    p = rng.random(1000)
    y = (rng.random(1000) < p).astype(int)
    for k in range(2):
        rows = slice(500 * k, 500 * (k + 1))
        pq.write_table(pa.table({"label": y[rows], "prob": p[rows]}), tmp_path / f"{k}.parquet")
    output = tmp_path / "state.npz"
    first = [sys.executable, "-c", WAITING, "scan", str(tmp_path / "0.parquet"), "-o", str(output)]
    second = ["scan", str(tmp_path / "1.parquet"), "-o", str(output)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(first, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True) as running:
        while running.stdout.readline() not in {"reading\n", ""}:
            pass
        assert main(second) == 2
        assert f"is being written by another scan or merge (process {running.pid} on" in capsys.readouterr().err
        running.communicate("\n")
        assert running.returncode == 0
    assert main(second) == 0
    assert CalibrationState.from_bytes(output.read_bytes()) == CalibrationState().update(y, p)
    with locked(output):
        assert main(["merge", str(output), "-o", str(output)]) == 2


def test_a_column_of_weights_is_said_not_to_be_used(tmp_path, run):
    """The note advised --weights, an option that the command does not have."""
    path = tmp_path / "weighted.csv"
    path.write_text("label,prob,weight\n" + "1,0.75,2.0\n0,0.25,1.0\n" * 20, encoding="utf-8")
    code, _, err = run("scan", path, "-o", tmp_path / "state.npz")
    assert code == 0, err
    assert "--weights" not in err
    assert "If these are weights of the observations, they are not used: all observations count alike." in err


def test_a_column_of_folds_is_noted_without_an_option_that_is_missing(tmp_path, run):
    """The note advised --folds, an option that the command does not have."""
    path = tmp_path / "folds.csv"
    path.write_text("label,prob,fold\n" + "".join(f"1,0.75,{k}\n0,0.25,{k}\n" for k in range(5)), encoding="utf-8")
    code, _, err = run("scan", path, "-o", tmp_path / "state.npz")
    assert code == 0, err
    assert "--folds" not in err
    assert "If it is the fold of a cross-validation, pooled folds mislead." in err
