"""``caltest test`` as a user meets it: files, guesses, lenses and statistics, tables, JSON and exit codes."""

import json
import re
import shlex

import numpy as np
import pandas as pd
import polars as pl
import pytest

import caltest as ct
from caltest.cli import main
from caltest.cli._main import _parser
from tests.cli.conftest import FAST
from tests.reference.cases import mostly_slow


def expected(problem, **options):
    return ct.calibration_table(*problem, n_resamples=99, rng=0, **options)


@pytest.mark.slow(few_draws=True)
@pytest.mark.filterwarnings("ignore::caltest.results.CalibrationWarning")
def test_every_kind_of_file_gives_the_same_answer(tmp_path, problem, frame, answer):
    y, prob = problem
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_csv(tmp_path / "a.tsv", index=False, sep="\t")
    pl.from_pandas(frame).write_parquet(tmp_path / "a.parquet")
    np.savez(tmp_path / "a.npz", probs=prob, labels=y)
    np.save(tmp_path / "a.npy", np.column_stack([prob, y]))
    table = expected(problem)
    for kind in ("csv", "tsv", "parquet", "npz", "npy"):
        found = answer("test", tmp_path / f"a.{kind}")
        assert [test["pvalue"] for test in found["tests"]] == [test.pvalue for test in table], kind
        assert found["pvalue"] == table.pvalue
        assert found["data"]["label_guessed"]
        assert found["data"]["n_samples"] == 60


@pytest.mark.slow(few_draws=True)
@pytest.mark.filterwarnings("ignore::caltest.results.CalibrationWarning")
def test_labels_are_matched_to_columns(tmp_path, problem, frame, answer):
    rng = np.random.default_rng(2)
    p = rng.random(50)
    happened = rng.random(50) < p
    chosen = {"statistic": ct.TemperatureScore(), "lens": ct.Canonical()}
    event, three = (
        ct.calibration_test(*data, **chosen, n_resamples=99, rng=0).statistic for data in ((happened, p), problem)
    )
    words = np.array(["cat", "dog", "eel"])[frame["label"]]

    def two(labels):
        return pd.DataFrame({"y_true": np.array(labels)[happened.astype(int)], "prob_yes": p})

    cases = [
        (frame.assign(label=words), [], three),
        (frame.assign(label=words, id=range(60)).rename(columns={"label": "beast"}), ["--label", "beast"], three),
        (frame.set_axis(["p_1", "p_2", "p_3", "y"], axis=1).assign(y=frame["label"] + 1), [], three),
        (frame.assign(label=words), ["--label", "label", "--prob", "p_cat,p_dog,p_eel"], three),
        (two([0, 1]), [], event),
        (two([False, True]), [], event),
        (two(["no", "yes"]), [], event),
        (two(["maybe", "yes"]), ["--classes", "yes"], event),
        (two([-1, 1]), ["--classes", "1"], event),
    ]
    for number, (table, options, statistic) in enumerate(cases):
        table.to_csv(tmp_path / f"{number}.csv", index=False)
        chosen = ("--statistic", "TemperatureScore", "--lens", "Canonical")
        (test,) = answer("test", tmp_path / f"{number}.csv", *chosen, *options)["tests"]
        assert test["statistic"] == pytest.approx(statistic, rel=1e-12), options


@pytest.mark.slow(few_draws=True)
def test_lenses_are_expressions(path, named, problem, answer):
    cases = {
        "Canonical": ct.Canonical(),
        "Confidence()": ct.Confidence(),
        "TopK(2)": ct.TopK(2),
        "TopRank(2)": ct.TopRank(2),
        "WithinTop(2)": ct.WithinTop(2),
        "ClassWise(1)": ct.ClassWise(1),
        "ClassGroups([[0, 2], [1]])": ct.ClassGroups([[0, 2], [1]]),
        "ClassWise(dog)": ct.ClassWise(1),
        "ClassWise('eel')": ct.ClassWise(2),
        "ClassGroups([[eel, cat], ['dog']])": ct.ClassGroups([[2, 0], [1]]),
    }
    for text, lens in cases.items():
        (test,) = answer("test", named, "--lens", text, "--statistic", "ECE")["tests"]
        assert test["lens"] == str(lens)
        assert test["statistic"] == pytest.approx(ct.calibration_error(*problem, lens=lens, statistic=ct.ECE())), text
    assert answer("test", path, "--lens", "ClassWise('2')")["tests"][0]["lens"] == "ClassWise(2)"


@pytest.mark.slow(few_draws=True)
def test_statistics_are_expressions(path, problem, answer, run):
    cases = {
        "ECE(EqualWidth(4), chebyshev)": ct.ECE(ct.EqualWidth(4), ct.predictions.chebyshev),
        "MCE(EqualMass('sqrt'))": ct.MCE(ct.EqualMass("sqrt")),
        "KS": ct.KS(),
        "SKCE": ct.SKCE(),
        "HosmerLemeshow(Edges([0.5, 0.7]))": ct.HosmerLemeshow(ct.Edges([0.5, 0.7])),
    }
    for text, statistic in cases.items():
        (test,) = answer("test", path, "--lens", "Confidence", "--statistic", text)["tests"]
        assert test["test_statistic"] == str(statistic)
        lens = ct.Confidence()
        found = ct.calibration_test(*problem, lens=lens, statistic=statistic, n_resamples=99, rng=0)
        assert test["pvalue"] == pytest.approx(found.pvalue), text
    # What needs two outcomes looks at the confidence by default, as in Python; what does not, at everything.
    assert [test["lens"] for test in answer("test", path, "--statistic", "KS")["tests"]] == ["Confidence()"]
    assert len(answer("test", path, "--statistic", "ECE")["tests"]) == 5
    assert (
        "Calibration test (KS, confidence, 60 observations"
        in run("test", path, "--statistic", "KS", "--details", *FAST)[1]
    )


@pytest.mark.slow(few_draws=True)
def test_size_seed_and_workers(path, answer):
    one = answer("test", path, "--lens", "Confidence", "--seed", 3, "--workers", 1)
    assert one == answer("test", path, "--lens", "Confidence", "--seed", 3, "--workers", 2)
    assert one != answer("test", path, "--lens", "Confidence", "--seed", 4, "--workers", 1)
    size = one["tests"][0]["l2_error"]
    assert size["root_interval"]["low"] <= size["root"] <= size["root_interval"]["high"]


def test_impossible_labels_keep_json_strict(tmp_path, answer):
    pd.DataFrame({"y": [1, 0, 1], "p": [0.0, 0.5, 0.5]}).to_csv(tmp_path / "impossible.csv", index=False)
    test = answer("test", tmp_path / "impossible.csv")["tests"][0]
    assert test["impossible_samples"] == [0]
    assert test["pvalue"] == 0.01
    assert [part["statistic"] for part in test["components"]].count(None) == 2  # both sides of the score


def test_exit_code(tmp_path, path, run):
    """1 where calibration is rejected, 0 where it is not, 3 where that is open, and 0 without the option."""
    rejected = ["test", "--lens", "Confidence", *FAST]
    assert run(*rejected)[0] == 0
    assert run(*rejected, "--exit-code")[0] == 1
    assert run(*rejected, "--exit-code", "--alpha", "0.001")[0] == 3  # 99 draws have no smaller p-value than 0.01
    assert run(*rejected, "--exit-code", "--alpha", "0.01", "--json")[0] == 1  # p = 0.01
    assert run("test", path, "--lens", "Confidence", "--exit-code", *FAST)[0] == 0


@pytest.fixture
def three_sites(tmp_path):
    """A model that predicts 0.9 for everybody, where the event happens to 24 %, at three sites."""
    rng = np.random.default_rng(0)
    data = {"y": (rng.random(240) < 0.24).astype(int), "p": 0.9, "site": np.arange(240) % 3}
    pd.DataFrame(data).to_csv(tmp_path / "sites.csv", index=False)
    return tmp_path / "sites.csv"


@pytest.mark.slow(few_draws=True)
def test_three_groups_cannot_decide(three_sites, run, answer):
    """The first line says so, and a pipeline does not take it for a pass."""
    code, out, _ = run("test", three_sites, "--groups", "site", *FAST)
    assert code == 0
    text = " ".join(out.split())
    assert "These data cannot decide: with 3 groups no p-value below 0.25 is possible, and the level is" in text
    assert "not rejected" not in text
    assert "use `subgroup_tests`" not in text
    assert run("test", three_sites, "--groups", "site", "--exit-code", *FAST)[0] == 3
    assert run("test", three_sites, "--groups", "site", "--lens", "Canonical", "--exit-code", *FAST)[0] == 3
    found = answer("test", three_sites, "--groups", "site")
    assert (found["decision"], found["smallest_possible_pvalue"]) == ("undecidable", 0.25)
    assert run("test", three_sites, "--exit-code", *FAST)[0] == 1


@pytest.mark.slow(few_draws=True)
def test_three_values_are_no_groups(three_sites, run, tmp_path):
    """`--groups` is recommended only where there are enough of them."""
    _, _, err = run("guess", three_sites)
    assert "too few groups to allow for observations that are alike within them" in err
    assert "no p-value could be below 0.25" in err
    assert f"use 'caltest subgroups {three_sites} --by site'" in err
    assert "--groups" not in err
    for command in (("watch", three_sites, "--once"), ("scan", three_sites, "-o", tmp_path / "state.npz")):
        assert f"use 'caltest subgroups {three_sites} --by site'" in run(*command)[2]
    frame = pd.read_csv(three_sites).assign(site=np.arange(240) % 6)
    frame.to_csv(tmp_path / "six.csv", index=False)
    assert "name it with --groups" in run("guess", tmp_path / "six.csv")[2]


@pytest.mark.slow(few_draws=True)
def test_report(path, run, answer):
    code, out, _ = run("test", path, "--all", "--resamples", 999)
    assert code == 0
    assert "Calibration report (8 statistics, 60 observations)" in out
    assert [test["test_statistic"].partition("(")[0] for test in answer("test", path, "--all")["tests"]] == [
        *("ECE", "ECE", "SCE", "KS", "Kuiper", "SKCE", "Spiegelhalter", "TCal")
    ]


@pytest.mark.slow(few_draws=True)
def test_notes_come_before_the_work_as_one_line(path, run, monkeypatch):
    code, _, err = run("test", path, "--resamples", 19)
    assert code == 0
    assert re.fullmatch(r"caltest: note: With 19 draws and 5 tests no .*adjusted .*\[C205\]\n", err)

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("caltest.hypothesis_tests._diagnostics.run", stop)
    code, out, err = run("test", path, "--resamples", 19)
    assert (code, out) == (130, "")
    first, second = err.splitlines()
    assert first.startswith("caltest: note: ")
    assert second == "caltest: stopped"


@pytest.mark.slow
def test_plot(tmp_path, path, run):
    for number, options in enumerate(
        [[], ["--lens", "ClassWise(1)", "--statistic", "ECE(EqualMass(5))"], ["--lens", "TopK(2)"]]
    ):
        picture = tmp_path / f"{number}.png"
        code, _, err = run("test", path, *FAST, "--plot", picture, *options)
        assert code == 0
        assert err.endswith(f"reliability diagram written to {picture}\n")
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert ("the diagram shows the confidence, because TopK(2) has more than two outcomes" in err) == (number == 2)


@pytest.mark.slow(few_draws=True)
def test_a_note_is_printed_once(tmp_path, frame, run):
    """The table, the test behind the picture and the diagram validate the same predictions."""
    frame.iloc[:, :3] = frame.iloc[:, :3].round(4)
    frame.to_csv(tmp_path / "rounded.csv", index=False)
    code, _, err = run("test", tmp_path / "rounded.csv", *FAST, "--plot", tmp_path / "picture.png")
    assert code == 0
    assert err.count("each was divided by its sum") == 1


# Print-outs.


@pytest.mark.slow(few_draws=True)
def test_bundled_predictions_are_the_default(run):
    """The golden print-out at 80 columns: data, verdict, size, one line per lens, conditions."""
    code, out, err = run("test", "--details", "--resamples", "999")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    data, title, verdict, numbers, _, *tables = out.split("\n\n")
    assert data == (
        "Data: bundled CIFAR-10 predictions of a VGG-16 network, 10,000 observations.\n"
        "Label column: labels. Probability columns: probs.\n"
        "Labels and their probability columns: 0 -> probs[0], 1 -> probs[1], 2 ->\n"
        "probs[2], 3 -> probs[3], 4 -> probs[4], 5 -> probs[5], 6 -> probs[6], 7 ->\n"
        "probs[7], 8 -> probs[8], 9 -> probs[9]."
    )
    assert title == "Calibration table (Omnibus, 12 lenses, 10,000 observations)"
    assert " ".join(verdict.split()).startswith(
        "The model is over-confident: its confidence is 97.6 % on average, 93.6 % of its predictions are right."
    )
    for part in ("Calibration is rejected at the 5 % level (global p = 0.001).", "All 12 single", "ECE 0.01685"):
        assert part in " ".join(verdict.split())
    assert "typical error              2.4 points (1.6 to 3.1)" in numbers
    lenses, statistics, conditions = tables
    head = re.split(" {2,}", lenses.splitlines()[0].strip())
    assert head == ["lens", "l2 error (95 % interval)", "p-value", "p (Holm)", "direction"]
    for lens in ("whole prediction", "confidence", *(f"class {k}" for k in range(10))):
        numbers = r".* 0\.\d{4} \(0\.\d{4} to 0\.\d{4}\) +0\.0010 +0\.0120  (over|too|wrong)"
        assert re.search(rf"^ {lens}{numbers}", lenses, flags=re.MULTILINE), lens
    assert [line.split()[0] for line in statistics.splitlines()] == [
        *("statistic", "ECE()", "OverConfidence()", "UnderConfidence()", "ClasswiseKS()", "ConfidenceECE()")
    ]
    assert "999 Monte Carlo draws" in conditions
    assert "Valid if observations are independent" in conditions


@pytest.mark.slow(few_draws=True)
def test_the_first_screen(path, run):
    """What was read, what was found, what to do, and where more is."""
    code, out, err = run("test", path, *FAST)
    assert (code, err) == (0, "")
    head, found, numbers, advice, more = out.split("\n\n")
    assert " ".join(head.split()) == f"{path}: 60 observations, 3 classes"
    assert found.startswith("No miscalibration is found: ")
    assert "accuracy minus confidence" in numbers
    assert "What to do: " in advice
    assert more.startswith("Labels: column label (guessed). Labels and their probability columns: 0 ->")
    assert "More: --details (every lens and statistic), --plot FILE" in " ".join(more.split())


def test_columns_are_named(path, named, run):
    _, out, _ = run("test", path, "--details", *FAST)
    assert f"Data: {path}, 60 observations." in " ".join(out.split())
    assert "\nLabel column: label (guessed). Probability columns: p_cat, p_dog, p_eel.\n" in out
    order = (
        "Labels and their probability columns: 0 -> p_cat, 1 -> p_dog, 2 -> p_eel; found by the order of the columns"
    )
    assert f"{order} (guessed)." in " ".join(out.split())
    _, out, _ = run("test", named, "--label", "label", "--details", *FAST)
    assert "\nLabel column: label. Probability columns: p_cat, p_dog, p_eel.\n" in out
    mapping = "cat -> p_cat, dog -> p_dog, eel -> p_eel; found by the names of the columns."
    assert f"Labels and their probability columns: {mapping}" in " ".join(out.split())
    assert "\n class dog " in out


@pytest.mark.slow
def test_lines_fit_the_terminal(tmp_path, problem, run, monkeypatch):
    y, prob = problem
    words = np.array([f"a long name of a class that nobody would type, number {k}" for k in range(3)])
    path = tmp_path / f"{'long' * 30}.csv"
    pd.DataFrame(prob, columns=words).assign(label=words[y]).to_csv(path, index=False)
    many = tmp_path / "many.csv"
    pd.DataFrame(np.full((40, 40), 1 / 40)).assign(label=range(40)).to_csv(many, index=False)
    for columns, widest in (("80", 80), ("200", 120)):
        monkeypatch.setenv("COLUMNS", columns)
        for arguments in ([path], [path, "--lens", "ClassWise(1)"], [path, "--all"], [many, "--details"]):
            _, out, _ = run("test", *arguments, *FAST)
            kept = [line for line in out.splitlines() if "`caltest " not in line]  # commands are copied
            assert max(map(len, kept)) <= widest
        assert "Probability columns: 0, 1, 2, ..., 39 (40)." in " ".join(out.split())


# Refusals.


def write_bad_files(folder):
    for name, text in {
        "empty": "",
        "header": "label,p\n",
        "text": "label,p\n0,high\n",
        "nolabel": "a,b\n0.5,0.5\n",
        "nan": "label,p\n1,0.5\n0,\n",
        "big": "label,p\n1,0.5\n0,1.5\n",
        "ragged": 'label,p\n1,0.5\n0,0.5,0.5,"\n',
        "ints": "label,p\n0,1\n1,0\n",
        "one": "label,risk\nno,0.5\nyes,0.25\n",
        "sums": "label,a,b\n0,0.5,0.4\n",
        "good": "label,a,b\n0,0.5,0.5\n",
        "words": "label,a,b\ncat,0.5,0.5\ndog,0.5,0.5\n",
    }.items():
        (folder / f"{name}.csv").write_text(text)
    (folder / "odd.xyz").write_text("?")
    (folder / "broken.npz").write_text("no zip")
    (folder / "broken.parquet").write_text("no parquet")
    (folder / "empty.npy").write_bytes(b"")
    (folder / "cut.npz").write_bytes(b"PK\x03\x04 cut short")
    np.savez(folder / "keys.npz", a=np.zeros(3), b=np.zeros(3))


REFUSED = [
    # files
    ("missing.csv", "no such file: missing.csv"),
    ("empty.csv", "cannot be read"),
    ("header.csv", "there are no observations: the file is empty but for its first line"),
    ("text.csv", "no column of probabilities (floats) beside the label 'label'; name them with --prob"),
    ("nolabel.csv", "no column looks like labels, which are texts or whole numbers, among a, b; name it with --label"),
    (
        "nan.csv",
        "values are missing: 1 of the column 'p' (line 3); to leave out their rows: --drop-missing. If that is what",
    ),
    ("big.csv", "1.5 in line 3, column 'p', is no probability between 0 and 1"),
    ("ragged.csv", "cannot be read"),
    ("ints.csv", "no column of probabilities"),
    ("sums.csv", "the probabilities in line 2 sum to 0.9, not to 1 within 0.0001; if this is rounding: --normalise"),
    (
        "words.csv",
        "'a', 'b'. Name the columns after the labels, or pass --classes, the label of each column.",
    ),
    ("sums.csv", "If that is what the file means: caltest test sums.csv --normalise"),
    ("-", "standard input is a terminal"),
    ("odd.xyz", "expected a file ending in .csv"),
    ("broken.npz", "cannot be read"),
    ("broken.parquet", "cannot be read"),
    ("empty.npy", "cannot be read"),
    ("cut.npz", "cannot be read"),
    ("keys.npz", "cannot choose among the arrays a, b; name one with --label"),
    ("keys.npz --label a --prob a,b", "--prob must name one array of an NPZ file, got a, b"),
    # columns
    ("good.csv --label c", "no column 'c' for --label; the columns are label, a, b"),
    ("good.csv --prob a,x", "no column 'x' for --prob"),
    ("good.csv --classes cat", "--classes must name 2 classes, one per probability column, got 1"),
    ("words.csv --classes cat,eel", "the label column must hold labels from --classes ['cat', 'eel'], got 'dog'"),
    ("--label y", "--label, --prob, --classes, --folds, --groups, --weights, --time, --sep and the like need a FILE"),
    ("--sep ;", "--sep and the like need a FILE"),
    ("--no-header", "--sep and the like need a FILE"),
    # lenses
    ("--lens class:3", "--lens: 'class:3' is not a Python expression such as ClassWise(3)"),
    ("--lens confidence", "--lens: 'confidence': there is no confidence; did you mean Confidence?"),
    ("--lens ClassWise", "--lens: 'ClassWise': missing a required argument: 'k'; the arguments are ClassWise(k)"),
    ("--lens ClassWise(-1)", "--lens: 'ClassWise(-1)': k must be an integer >= 0, got -1"),
    ("--lens ClassWise(10)", "--lens: k must be a class index 0 to 9, got 10"),
    ("--lens ClassWise(dog)", "there is no class 'dog'; the classes of this file are 0, 1, 2, 3"),
    ("one.csv --classes yes,no", "name the label whose probability it is alone, such as no"),
    ("words.csv --classes cat,dog --lens ClassWise(eel)", "there is no class 'eel'; the classes of this file are cat"),
    ("--lens ClassGroups([[0,1],[1,2]])", "groups must hold every class once"),
    ("--lens ECE", "--lens: 'ECE' is not a lens such as ClassWise(3); known are Canonical, ClassGroups, ClassWise"),
    # statistics
    ("--statistic best", "--statistic: 'best': there is no best"),
    (
        "--statistic Confidence",
        "--statistic: 'Confidence' is not a statistic such as ECE(EqualWidth(15)); known are ACE",
    ),
    ("--statistic ECE(EqualWidth(0))", "'ECE(EqualWidth(0))': n_cells must be an integer >= 1, "),
    ("--statistic KS --lens Canonical", 'KS needs a lens with two outcomes, such as --lens "Confidence()"'),
    ("--all --lens Confidence", "--all has its own lenses and statistics: leave out --lens and --statistic"),
    # numbers
    ("--resamples 0", "--resamples: must be an integer >= 1, got '0'"),
    ("--resamples many", "--resamples: must be an integer >= 1, got 'many'"),
    ("--seed -1", "--seed: must be an integer >= 0, got '-1'"),
    ("--workers 0", "--workers: must be an integer >= 1, or -1 for all processors, got '0'"),
    ("--alpha 1", "--alpha: must be a number strictly between 0 and 1, got '1'"),
    ("--alpha 5%", "--alpha: must be a number strictly between 0 and 1, got '5%'"),
    # pictures
    ("--plot no/such/folder.png", "--plot: cannot write to no/such/folder.png"),
    ("--plot picture.doc", "--plot: must name a picture such as FILE.png, got picture.doc"),
]


def test_bad_input_is_one_line_and_exit_code_2(tmp_path, monkeypatch, run):
    write_bad_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    for arguments, message in REFUSED:
        code, out, err = run("test", *arguments.split())
        assert (code, out) == (2, ""), arguments
        assert err.count("\n") == 1, err
        assert message in err or any(part in err for part in message.split("|")), (arguments, err)
        assert err.startswith("caltest")
        assert "`" not in err
        assert "argument --" not in message


@pytest.mark.slow(few_draws=True)
def test_json_has_stable_names(path, answer):
    found = answer("test", path)
    assert list(found) == [
        *("data", "verdict", "tests", "pvalue", "alpha", "smallest_possible_pvalue", "correction", "notes"),
        *("decision", "decisions", "conclusion"),
    ]
    assert list(found["data"]) == [
        "source",
        "n_samples",
        "label",
        "label_guessed",
        "prob",
        "classes",
        "columns",
        "matched_by",
        "reading",
    ]
    assert {
        "label",
        "pvalue",
        "pvalue_adjusted",
        "statistic",
        "test_statistic",
        "lens",
        "lens_name",
        "l2_error",
    } <= set(found["tests"][0])
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_classes_that_contradict_the_names_of_the_columns_are_refused(tmp_path, capsys):
    """The labels would be given the probabilities of other columns."""
    rows = "severe,0.2,0.5,0.3\nmild,0.5,0.25,0.25\nmoderate,0.25,0.5,0.25\n"
    (tmp_path / "file.csv").write_text(f"label,severe,mild,moderate\n{rows}")
    options = [str(tmp_path / "file.csv"), "--resamples", "19"]
    assert main(["test", *options, "--classes", "mild,moderate,severe"]) == 2
    message = capsys.readouterr().err
    assert "--classes names them in another order; --prob mild,moderate,severe takes them in that order" in message
    assert main(["test", *options, "--prob", "mild,moderate,severe", "--classes", "mild,moderate,severe"]) == 0


@pytest.mark.slow
def test_groups_and_weights_of_a_file(tmp_path, problem, frame, answer, run):
    patient, weight = np.arange(60) // 3, np.arange(60) % 4 + 1
    path = tmp_path / "patients.csv"
    frame.assign(patient=patient, w=weight / 2).to_csv(path, index=False)
    found = answer("test", path, "--groups", "patient", "--weights", "w")
    table = expected(problem, groups=patient, sample_weight=weight / 2)
    assert [test["pvalue"] for test in found["tests"]] == [test.pvalue for test in table]
    assert found["tests"][0]["n_groups"] == 20
    assert found["tests"][0]["weighted"] is True
    code, out, err = run("test", path, "--prob", "p_cat,p_dog,p_eel", *FAST)
    assert code == 0
    assert "the column 'patient' has 20 different values among 60 observations" in err
    assert "name it with --groups" in err
    code, out, err = run("test", "--groups", "patient")
    assert (code, out) == (2, "")
    assert "--groups, --weights, --time, --sep and the like need a FILE" in err
    code, out, _ = run("compare", path, path.rename(tmp_path / "a.csv"), "--groups", "patient", *FAST)
    assert code == 2  # one of the files is gone
    frame.assign(patient=patient).to_csv(tmp_path / "b.csv", index=False)
    options = ("--groups", "patient", "--prob", "p_cat,p_dog,p_eel", *FAST)
    code, out, _ = run("compare", tmp_path / "a.csv", tmp_path / "b.csv", *options, "--details")
    assert code == 0
    assert "random signs" in " ".join(out.split())


@pytest.mark.slow(few_draws=True)
def test_folds_are_tested_one_by_one(tmp_path, problem, frame, answer, capsys):
    y_true, y_prob = problem
    fold = np.array(["a", "b", "c"])[np.arange(60) % 3]
    frame.assign(part=fold).to_csv(tmp_path / "a.csv", index=False)
    np.savez(tmp_path / "a.npz", probs=y_prob, labels=y_true, part=fold)
    options = ["--folds", "part", "--lens", "Confidence()", "--resamples", 199]
    expected = ct.calibration_table(y_true, y_prob, lenses=[ct.Confidence()], folds=fold, n_resamples=199, rng=0)
    for name in ("a.csv", "a.npz"):
        found = answer("test", tmp_path / name, *options)
        assert found["pvalue"] == expected.pvalue
        assert [entry["fold"] for entry in found["fold_pvalues"]] == ["a", "b", "c"]
    assert main(["test", str(tmp_path / "a.csv"), *map(str, options)]) == 0
    screen = " ".join(capsys.readouterr().out.split())
    assert "a.csv: 60 observations in 3 folds, right predictions (" in screen
    assert "accuracy minus confidence" in screen
    assert "The numbers are those of all folds together; the decision is made fold by fold." in screen
    assert "l2 error" not in screen
    assert main(["test", str(tmp_path / "a.csv"), *map(str, options), "--details"]) == 0
    assert "l2 error" in capsys.readouterr().out
    assert main(["test", str(tmp_path / "a.csv"), "--folds", "none"]) == 2
    assert "no column 'none'" in capsys.readouterr().err
    assert main(["test", str(tmp_path / "a.csv"), "--folds", "part", "--plot", str(tmp_path / "a.png")]) == 2
    assert "--plot draws the predictions of one model" in capsys.readouterr().err
    assert main(["test", "--folds", "part"]) == 2


@pytest.mark.slow
def test_announced_number_of_draws_is_that_of_the_lenses(tmp_path, run, monkeypatch):
    """Holm's correction of 60 classes needs 1,240 draws; one lens has 999, and a number that is asked for is made."""
    from caltest.resampling.engine import _stopping

    monkeypatch.setattr(_stopping, "MANY_PROBABILITIES", 100)
    rng = np.random.default_rng(0)
    y_prob = rng.dirichlet(np.ones(60), 60)
    frame = pd.DataFrame(y_prob, columns=[f"p{k}" for k in range(60)]).assign(label=rng.integers(0, 60, 60))
    frame.to_csv(tmp_path / "many.csv", index=False)
    given = ["test", tmp_path / "many.csv", "--normalise"]
    for more, wanted in (([], "1,240"), (["--lens", "Confidence()"], "999"), (["--resamples", "1250"], "1,250")):
        code, _, errors = run(*given, *more)
        assert code == 0, errors
        assert f": {wanted} draws at most" in errors
    frame[["label", "p1"]].assign(label=frame.label % 2).to_csv(tmp_path / "event.csv", index=False)
    monkeypatch.setattr(_stopping, "MANY_PROBABILITIES", 50)
    assert ": 999 draws at most" in run("test", tmp_path / "event.csv")[2]


@pytest.mark.parametrize("cells", ["EqualWidth", "EqualMass"])
def test_too_many_cells_are_refused_in_one_line(run, path, cells):
    code, out, err = run("test", path, "--statistic", f"ECE({cells}(1000000000))")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "must be at most 16,777,216" in err


@pytest.mark.slow(few_draws=True)
def test_advised_commands_read_the_file_as_this_one_did(tmp_path, capsys):
    """Advice without --classes was refused, without --groups it was another test, and a space ended the name."""
    file = tmp_path / "my file.csv"
    rows = [f"{'yes' if i % 2 else 'no'},{0.1 if i % 2 else 0.9},{i // 2},{i % 3}" for i in range(60)]
    file.write_text("\n".join(["outcome,risk,patient,site", *rows]))
    command = ["test", str(file), "--classes", "yes", "--resamples", "199", "--groups"]
    assert main([*command, "patient"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for advised, out in (("repair", "repaired.csv"), ("report", "report.html")):
        assert f"`caltest {advised} '{file}' --classes yes --groups patient -o {out}`" in said
    assert main([*command, "site"]) == 0
    assert f"`caltest subgroups '{file}' --classes yes --by COLUMN`" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    "asked",
    mostly_slow(
        [
            ["--no-header", "--alpha", "0.1"],
            ["--no-header", "--lens", "Confidence()", "--statistic", "KS()", "--alpha", "0.2"],
            ["--no-header", "--groups", "2", "--weights", "3"],
        ]
    ),
)
def test_a_command_that_is_advised_asks_in_the_same_way(tmp_path, run, asked):
    """The level, the lens and the statistic were lost on the way to the command that was to be copied."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.2, 0.8, 300)
    label = (rng.random(300) < p**4).astype(int)
    path = tmp_path / "two words.csv"
    pd.DataFrame({"y": label, "p": p, "g": np.arange(300) // 3, "w": 1 + np.arange(300) % 2}).to_csv(
        path, index=False, header=False
    )
    asked = [*asked, "--prob", "1", "--label", "0"]
    code, out, err = run("test", path, *asked, *FAST)
    assert code == 0, err
    commands = [shlex.split(one) for one in re.findall("`(caltest [^`]*)`", out)]
    assert [one[1] for one in commands] == ["repair", "report"]
    given = _parser().parse_args(["test", str(path), *asked])
    for command in commands:
        kept = vars(_parser().parse_args(command[1:]))
        assert (kept["file"] if "file" in kept else kept["files"][0]) == path
        for name in ("alpha", "header", "groups", "sample_weight", "lens", "statistic"):
            assert name not in kept or str(kept[name]) == str(getattr(given, name)), (command, name)
        assert (kept["label"], kept["prob"]) == ("0", ["1"])
    assert 'event "column 0 = 1"' in " ".join(out.split()) or "Confidence()" in asked


def test_predictions_near_the_smallest_number_have_no_endless_ratio(tmp_path, run):
    """The interval was "below no limit"."""
    path = tmp_path / "tiny.csv"
    pd.DataFrame({"y": [0, 1] * 20, "p": [5e-324] * 40}).to_csv(path, index=False)
    code, out, err = run("test", path, *FAST)
    assert code == 0, err
    assert "no limit" not in out
    assert "too low: 0 % predicted, 50.0 % observed" in " ".join(out.split())
