"""The command line as a user meets it: files, guesses, one-line errors, clean pipes."""

import json
import os
import pty
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

import caltest as ct
from caltest.cli import main

FAST = ["--resamples", "99"]


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    prob = rng.dirichlet(np.ones(3), 60)
    y = (rng.random(60)[:, None] > prob.cumsum(axis=1)[:, :2]).sum(axis=1)
    return y, prob


def run(capsys, *arguments):
    code = main(["test", *map(str, arguments)])
    return code, *capsys.readouterr()


def as_json(capsys, *arguments):
    code, out, err = run(capsys, *arguments, "--json", *FAST)
    assert code == 0, err
    return json.loads(out, parse_constant=lambda word: pytest.fail(f"{word} in JSON"))


def write(folder, problem, kind):
    y, prob = problem
    frame = pd.DataFrame(prob, columns=["p_cat", "p_dog", "p_eel"]).assign(label=y)
    path = folder / f"predictions.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "tsv":
        frame.to_csv(path, index=False, sep="\t")
    elif kind == "parquet":
        pl.from_pandas(frame).write_parquet(path)
    elif kind == "npz":
        np.savez(path, probs=prob, labels=y)
    else:
        np.save(path, np.column_stack([prob, y]))
    return path


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "npz", "npy"])
def test_every_kind_of_file_gives_the_same_answer(tmp_path, problem, kind, capsys):
    answer = as_json(capsys, write(tmp_path, problem, kind))
    expected = ct.calibration_table(*problem, n_resamples=99, rng=0)
    assert [row["pvalue"] for row in answer["rows"]] == [row.pvalue for row in expected]
    assert answer["rows"][0]["statistic"] == pytest.approx(expected.rows[0].statistic)
    assert answer["pvalue"] == expected.pvalue
    assert answer["data"]["label_guessed"]
    assert answer["data"]["n_samples"] == 60


def test_bundled_predictions_are_the_default(capsys):
    code, out, err = run(capsys, *FAST)
    assert (code, err) == (0, "")
    assert "VGG-16" in out
    for part in ("Canonical()", "Confidence()", "ClassWise(k=9)", "noise floor", "p (Holm)", "global p-value"):
        assert part in out


def test_label_column_is_said(tmp_path, problem, capsys):
    path = write(tmp_path, problem, "csv")
    _, out, _ = run(capsys, path, *FAST)
    assert "label column: label (guessed); probabilities: p_cat, p_dog, p_eel" in out
    _, out, _ = run(capsys, path, "--label", "label", "--prob", "p_cat,p_dog,p_eel", *FAST)
    assert "label column: label; probabilities: p_cat, p_dog, p_eel" in out


def test_text_labels_are_matched_to_columns(tmp_path, problem, capsys):
    y, prob = problem
    names = np.array(["cat", "dog", "eel"])
    frame = pd.DataFrame(prob, columns=[f"prob_{name}" for name in names]).assign(animal=names[y], id=range(len(y)))
    path = tmp_path / "named.csv"
    frame.to_csv(path, index=False)
    answer = as_json(capsys, path, "--label", "animal")
    assert answer["pvalue"] == ct.calibration_table(*problem, n_resamples=99, rng=0).pvalue


@pytest.mark.parametrize(("labels", "words"), [(["no", "yes"], "no,yes"), ([-1, 1], "-1,1")])
def test_labels_that_no_column_names(tmp_path, labels, words, capsys):
    rng = np.random.default_rng(2)
    p = rng.random(50)
    happened = rng.random(50) < p
    path = tmp_path / "labels.csv"
    pd.DataFrame({"y": np.array(labels)[happened.astype(int)], "p": p}).to_csv(path, index=False)
    answer = as_json(capsys, path, f"--classes={words}")
    assert answer["pvalue"] == ct.calibration_table(happened, p, n_resamples=99, rng=0).pvalue


def test_classes_numbered_from_one(tmp_path, problem, capsys):
    y, prob = problem
    path = tmp_path / "one.csv"
    pd.DataFrame(prob, columns=["p_1", "p_2", "p_3"]).assign(y=y + 1).to_csv(path, index=False)
    assert as_json(capsys, path)["pvalue"] == ct.calibration_table(*problem, n_resamples=99, rng=0).pvalue


@pytest.mark.parametrize("labels", [[0, 1], [False, True], ["no", "yes"]])
def test_one_probability_column_is_the_event(tmp_path, labels, capsys):
    rng = np.random.default_rng(1)
    p = rng.random(50)
    happened = rng.random(50) < p
    path = tmp_path / "event.csv"
    pd.DataFrame({"y_true": np.array(labels)[happened.astype(int)], "prob_yes": p}).to_csv(path, index=False)
    assert as_json(capsys, path)["pvalue"] == ct.calibration_table(happened, p, n_resamples=99, rng=0).pvalue


@pytest.mark.parametrize(
    ("word", "lens"),
    [
        ("canonical", ct.Canonical()),
        ("confidence", ct.Confidence()),
        ("top-k:2", ct.TopK(2)),
        ("top-rank:2", ct.TopRank(2)),
        ("within-top:2", ct.WithinTop(2)),
        ("class:1", ct.ClassWise(1)),
        ("groups:0,2/1", ct.Groups([[0, 2], [1]])),
    ],
)
def test_lenses(tmp_path, problem, word, lens, capsys):
    path = write(tmp_path, problem, "csv")
    answer = as_json(capsys, path, "--lens", word, "--statistic", "ece")
    assert len(answer["rows"]) == 1
    assert answer["rows"][0]["statistic"] == pytest.approx(ct.calibration_error(*problem, lens=lens))
    _, out, _ = run(capsys, path, "--lens", word, *FAST)
    assert "Test of perfect calibration" in out


@pytest.mark.parametrize(
    ("word", "partition"),
    [
        ("tree", ct.VarianceTree()),
        ("tree-min-leaf:5", ct.VarianceTree(min_leaf=5)),
        ("tree-min-split:20", ct.VarianceTree(min_split=20)),
        ("equal-width:4", ct.EqualWidth(4)),
        ("equal-mass:4", ct.EqualMass(4)),
        ("equal-mass:sqrt", ct.EqualMass("sqrt")),
        ("edges:0.5,0.7", ct.Edges([0.5, 0.7])),
    ],
)
@pytest.mark.parametrize("distance", ["total_variation", "euclidean", "squared_euclidean", "chebyshev"])
def test_partitions_and_distances(tmp_path, problem, word, partition, distance, capsys):
    path = write(tmp_path, problem, "csv")
    options = ["--lens", "confidence", "--partition", word, "--distance", distance]
    answer = as_json(capsys, path, *options)
    ece = ct.ECE(partition, getattr(ct, distance))
    assert answer["rows"][0]["components"][0]["statistic"] == pytest.approx(
        ct.calibration_error(*problem, lens=ct.Confidence(), statistic=ece)
    )


@pytest.mark.parametrize("word", ["ece", "mce", "ks", "classwise-ks", "temperature-score"])
def test_statistics(tmp_path, problem, word, capsys):
    answer = as_json(capsys, write(tmp_path, problem, "csv"), "--lens", "confidence", "--statistic", word)
    assert answer["rows"][0]["name"].lower().startswith(word.replace("-", ""))


def test_seed_and_workers(tmp_path, problem, capsys):
    path = write(tmp_path, problem, "csv")
    one = as_json(capsys, path, "--seed", 3, "--workers", 1)
    assert one == as_json(capsys, path, "--seed", 3, "--workers", 2)
    assert one != as_json(capsys, path, "--seed", 4)


def test_impossible_label_keeps_json_clean(tmp_path, capsys):
    path = tmp_path / "impossible.csv"
    pd.DataFrame({"y": [1, 0, 1], "p": [0.0, 0.5, 0.5]}).to_csv(path, index=False)
    row = as_json(capsys, path)["rows"][0]
    assert row["impossible_rows"] == [0]
    assert row["pvalue"] == 0.01
    assert [part["statistic"] for part in row["components"]].count(None) == 1


@pytest.mark.parametrize("lens", [None, "class:3", "top-k:2"])
def test_plot(tmp_path, lens, capsys):
    picture = tmp_path / "diagram.png"
    code, _, err = run(capsys, *FAST, "--plot", picture, *(["--lens", lens] if lens else []))
    assert code == 0
    assert str(picture) in err
    assert picture.read_bytes().startswith(b"\x89PNG")


def bad_files(folder):
    (folder / "empty.csv").write_text("")
    (folder / "header.csv").write_text("label,p\n")
    (folder / "text.csv").write_text("label,p\n0,high\n")
    (folder / "nolabel.csv").write_text("a,b\n0.5,0.5\n")
    (folder / "nan.csv").write_text("label,p\n1,0.5\n0,\n")
    (folder / "big.csv").write_text("label,p\n1,0.5\n0,1.5\n")
    (folder / "ragged.csv").write_text('label,p\n1,0.5\n0,0.5,0.5,"\n')
    (folder / "ints.csv").write_text("label,p\n0,1\n1,0\n")
    (folder / "sums.csv").write_text("label,a,b\n0,0.5,0.4\n")
    (folder / "words.csv").write_text("label,a,b\ncat,0.5,0.5\ndog,0.5,0.5\n")
    (folder / "odd.xyz").write_text("?")
    (folder / "broken.npz").write_text("no zip")
    (folder / "broken.parquet").write_text("no parquet")
    (folder / "empty.npy").write_bytes(b"")
    (folder / "cut.npz").write_bytes(b"PK\x03\x04 cut short")
    np.savez(folder / "keys.npz", a=np.zeros(3), b=np.zeros(3))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.csv"], "no such file"),
        (["empty.csv"], "cannot be read"),
        (["header.csv"], "empty|no column of probabilities"),
        (["text.csv"], "no column of probabilities"),
        (["nolabel.csv"], "cannot tell the label column among a, b; name it with --label"),
        (["nan.csv"], "`y_prob` must be finite, got nan in row 1"),
        (["big.csv"], r"`y_prob` must lie in \[0, 1\], got 1.5 in row 1"),
        (["ragged.csv"], "cannot be read"),
        (["ints.csv"], "no column of probabilities"),
        (["sums.csv"], "rows of `y_prob` must sum to 1 within 0.0001, got 0.9 in row 0"),
        (["words.csv"], "`y_true` must hold class indices 0 to 1, .*got 'cat' in row 0"),
        (["odd.xyz"], "expected a file ending in .csv"),
        (["broken.npz"], "cannot be read"),
        (["broken.parquet"], "cannot be read"),
        (["empty.npy"], "cannot be read"),
        (["cut.npz"], "cannot be read"),
        (["keys.npz"], "cannot choose among the arrays a, b; name one with --label"),
        (["sums.csv", "--label", "c"], "no column 'c'; the columns are label, a, b"),
        (["sums.csv", "--prob", "a,x"], "no column 'x'"),
        (["--label", "y"], "--label, --prob and --classes need a FILE"),
        (["--lens", "top"], "argument --lens: 'top' is none of canonical, confidence"),
        (["--lens", "class"], "argument --lens: 'class' is none of"),
        (["--lens", "class:x"], "argument --lens: 'class:x'"),
        (["--lens", "class:10"], "`k` must be a class index 0 to 9, got 10"),
        (["--lens", "groups:0,1/1,2"], "`groups` must hold every class once"),
        (["--partition", "equal-width:0"], "`n_cells` must be an integer >= 1 or .sqrt., got 0"),
        (["--partition", "equal-mass:5"], "`EqualMass` needs a two-outcome lens"),
        (["--distance", "l1"], "'l1' is none of total_variation"),
        (["--statistic", "best"], "argument --statistic: invalid choice: 'best'"),
        (["--statistic", "ks"], "`KS` needs a two-outcome lens"),
        (["--resamples", "0"], "`n_resamples` must be an integer >= 1, got 0"),
        (["--resamples", "many"], "argument --resamples: invalid int value"),
        (["--seed", "-1"], "`rng` must be None, an integer >= 0"),
        (["--workers", "0"], "`workers` must be an integer >= 1, or -1 for all processors, got 0"),
        (["--plot", "no/such/folder.png"], "--plot: cannot write to no/such/folder.png"),
        (["--plot", "picture.doc"], "--plot must name a picture such as FILE.png, got picture.doc"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path, monkeypatch, capsys, arguments, message):
    bad_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    try:
        code = main(["test", *arguments])
    except SystemExit as stop:  # argparse leaves this way
        code = stop.code
    out, err = capsys.readouterr()
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert re.search(message, err), err
    assert "Traceback" not in err


def command(*arguments):
    code = (
        "import sys; from caltest import cli; from caltest.results import _progress; "
        "_progress.PROGRESS_AFTER = 0; sys.exit(cli.main())"
    )
    return [sys.executable, "-c", code, *arguments]


def test_a_pipe_gets_plain_text():
    done = subprocess.run(command("test", "--resamples", "999"), capture_output=True, check=True)
    assert done.stderr == b""
    assert b"\x1b" not in done.stdout
    assert b"\r" not in done.stdout


def test_a_terminal_gets_a_progress_bar():
    leader, follower = pty.openpty()
    arguments = command("test", "--resamples", "999")
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=follower) as process:
        os.close(follower)
        shown = b""
        try:
            while chunk := os.read(leader, 4096):
                shown += chunk
        except OSError:  # how Linux ends a closed terminal
            pass
        out, _ = process.communicate()
    os.close(leader)
    assert process.returncode == 0
    assert b"drawing outcomes" in shown
    assert b"\x1b" not in out
