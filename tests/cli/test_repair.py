"""``caltest repair``: held-out predictions, the map, a picture and the verdict."""

import io
import json
import shlex
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import caltest
from caltest.cli._repair import _about_folds
from caltest.recalibration import AutomaticCalibration, TemperatureScaling, load_recalibrator
from tests.recalibration.maps.test_base import over_confident
from tests.reference.cases import mostly_nightly

CLASSES = np.array(["cat", "dog", "eel"])
PROB, OUTCOME = over_confident(400, 3)
METHOD = ("--method", "TemperatureScaling", "--resamples", "199")


@pytest.fixture
def given(tmp_path):
    path = tmp_path / "predictions.csv"
    pd.DataFrame(PROB, columns=[f"p_{name}" for name in CLASSES]).assign(label=CLASSES[OUTCOME]).to_csv(
        path, index=False
    )
    return path


def test_it_writes_what_the_function_finds(given, tmp_path, run):
    out = tmp_path / "repaired.csv"
    code, text, err = run("repair", given, "-o", out, *METHOD)
    assert code == 0, err
    study = caltest.recalibration_study(
        OUTCOME, {"the model": PROB}, {"TemperatureScaling": TemperatureScaling()}, n_resamples=199, rng=0
    )
    table = pd.read_csv(out)
    assert list(table.columns) == ["p_cat", "p_dog", "p_eel", "label", "fold"]
    assert table["label"].tolist() == CLASSES[OUTCOME].tolist()
    np.testing.assert_allclose(table.iloc[:, :3].to_numpy(), study.predict("TemperatureScaling"), rtol=1e-12)
    for number, rows in enumerate(study.held_out):
        assert np.flatnonzero(table["fold"] == number).tolist() == rows.tolist()
    said, (before, after) = " ".join(text.split()), study.rows
    table = caltest.calibration_table(OUTCOME, PROB, n_resamples=199, rng=0)
    found = study.before_after("TemperatureScaling").tested(table.verdict)
    assert said.startswith("predictions.csv: 400 observations, 3 classes Recalibration makes these predictions better.")
    assert (
        f"Before: {' '.join(table.verdict.sentences(brief=True))} After: {found.after.sentences(brief=True)[0]}" in said
    )
    assert f"average log score {before.log_score:.4f} {after.log_score:.4f}" in said
    assert f"What to do: {found.advice} `caltest apply" in said
    fitted = load_recalibrator(tmp_path / "repaired.json")
    assert fitted.classes_.tolist() == CLASSES.tolist()
    assert fitted.temperature_ == pytest.approx(TemperatureScaling().fit(PROB, OUTCOME).temperature_)
    assert f"(T = {fitted.temperature_:.3g}), fitted to all observations; it was not tested itself." in said
    assert (tmp_path / "repaired.png").stat().st_size > 10_000
    assert f"map written to {tmp_path / 'repaired.json'}" in err


@pytest.mark.slow(few_draws=True)
def test_auto_says_how_it_chose(given, tmp_path, run):
    code, text, _ = run(
        *("repair", given, "-o", tmp_path / "out.tsv", "--map", tmp_path / "m.json", "--plot", tmp_path / "p.svg"),
        *("--json", "--exit-code", "--n-folds", "2", "--resamples", "99"),
    )
    assert code == 0
    found = json.loads(text)
    assert found["verdict"]["decision"] == found["before_after"]["decision"] == "not rejected"
    assert found["verdict"]["advice"] == [found["before_after"]["advice"]]
    assert [finding["kind"] for finding in found["before_after"]["before"]["findings"]] == ["over-confident"]
    assert isinstance(load_recalibrator(tmp_path / "m.json"), AutomaticCalibration)
    assert len(found["rows"][1]["folds"]) == 2
    assert pd.read_csv(tmp_path / "out.tsv", sep="\t").shape == (400, 5)


@pytest.mark.slow(few_draws=True)
def test_one_column_and_folds_of_the_file(tmp_path, run):
    prob, y_true = over_confident(200, 2)
    path, out = tmp_path / "event.csv", tmp_path / "out.csv"
    part = np.arange(200) % 2
    pd.DataFrame({"y": y_true, "p": prob[:, 1], "part": part}).to_csv(path, index=False)
    code, _, err = run("repair", path, "-o", out, *METHOD, "--folds", "part")
    assert code == 0, err
    table = pd.read_csv(out)
    assert list(table.columns) == ["y", "p", "part", "fold"]
    assert table["part"].tolist() == part.tolist()
    wanted = TemperatureScaling().fit(prob[part == 1, 1], y_true[part == 1]).predict_proba(prob[part == 0, 1])
    np.testing.assert_allclose(table["p"][part == 0], wanted[:, 1], rtol=1e-12)


@pytest.mark.slow(few_draws=True)
def test_a_column_named_fold_stays_and_predictions_outlive_a_failed_fit(tmp_path, run, monkeypatch):
    path, out = tmp_path / "given.csv", tmp_path / "out.csv"
    pd.DataFrame(PROB, columns=CLASSES).assign(fold=CLASSES[OUTCOME]).to_csv(path, index=False)
    fit, fits = TemperatureScaling.fit, []

    def fail_at_last(*arguments):
        fits.append(len(arguments[1]))
        if fits[-1] == len(PROB):
            msg = "no map of all observations"
            raise ValueError(msg)
        return fit(*arguments)

    monkeypatch.setattr(TemperatureScaling, "fit", fail_at_last)
    code, _, err = run("repair", path, "-o", out, "--label", "fold", *METHOD)
    assert code == 2
    assert "no map of all observations" in err
    table = pd.read_csv(out)
    assert list(table.columns) == [*CLASSES, "fold", "repair_fold"]
    assert table[CLASSES].sum(axis=1).to_numpy() == pytest.approx(1)


@pytest.fixture
def digits(tmp_path):
    """An NPZ file with ten classes, patients, and an array that has no row for each observation."""
    prob, y_true = over_confident(300, 10)
    arrays = {"labels": y_true, "probs": prob, "patient": np.arange(300) // 3, "names": np.arange(10)}
    np.savez(tmp_path / "digits.npz", **arrays)
    return tmp_path / "digits.npz", arrays


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("ending", mostly_nightly([".npz", ".csv", ".parquet"]))
def test_an_archive_with_ten_classes_is_repaired_and_can_be_tested_with_its_groups(digits, ending, tmp_path, run):
    """One array was taken for one column: IndexError after all work."""
    path, arrays = digits
    out = tmp_path / f"repaired{ending}"
    groups = ("--groups", "patient")
    code, _, err = run("repair", path, "-o", out, *METHOD, *groups)
    assert code == 0, err
    assert "judging 1 recalibration methods" not in err
    found = caltest.predictions.read_predictions(out, groups="patient", folds="fold")
    assert found.y_prob.shape == (300, 10)
    assert found.y_true.tolist() == arrays["labels"].tolist()
    assert found.groups.tolist() == arrays["patient"].tolist()
    folds_of_patients = set(zip(arrays["patient"].tolist(), found.folds.tolist(), strict=True))
    assert len(folds_of_patients) == 100  # a patient lies in one fold
    for name in np.unique(found.folds):
        held = found.folds == name
        fitted = TemperatureScaling().fit(arrays["probs"][~held], arrays["labels"][~held])
        np.testing.assert_allclose(found.y_prob[held], fitted.predict_proba(arrays["probs"][held]), rtol=1e-12)
    assert load_recalibrator(tmp_path / "repaired.json").classes_.tolist() == list(range(10))
    code, text, err = run("test", out, *groups, "--folds", "fold", "--resamples", "99")
    assert code == 0, err
    assert "groups" in text


@pytest.mark.slow(few_draws=True)
def test_all_other_columns_stay_as_they_are(tmp_path, run):
    path, out = tmp_path / "given.csv", tmp_path / "out.csv"
    ids = [f"{k:04d}" for k in range(len(PROB))]
    others = pd.DataFrame({"case": ids, "fold": "a", "repair_fold": 1.50, "remark": ["x, y", *[""] * (len(PROB) - 1)]})
    frame = pd.DataFrame(PROB, columns=[f"p_{name}" for name in CLASSES]).assign(label=CLASSES[OUTCOME])
    pd.concat([others, frame], axis=1).to_csv(path, index=False)
    code, _, err = run("repair", path, "-o", out, *METHOD)
    assert code == 0, err
    found = pd.read_csv(out, dtype=str, keep_default_na=False)
    given = pd.read_csv(path, dtype=str, keep_default_na=False)
    assert found[others.columns].equals(given[others.columns]), "ids keep their zeros"
    assert list(found.columns) == [*given.columns, "repair_fold_2"]
    assert found["label"].equals(given["label"])
    through_a_pipe = tmp_path / "piped.csv"
    code, _, err = run_with_input(run, path, "repair", "-", "-o", through_a_pipe, *METHOD)
    assert code == 0, err
    assert through_a_pipe.read_bytes() == out.read_bytes()


def run_with_input(run, path, *arguments):
    with pytest.MonkeyPatch.context() as patch, path.open("rb") as stream:
        patch.setattr("sys.stdin", io.TextIOWrapper(stream))
        return run(*arguments)


@pytest.mark.slow(few_draws=True)
def test_a_repair_that_cannot_be_written_is_not_lost(given, tmp_path, run, monkeypatch):
    """The place is looked at before the work; if writing fails after it, predictions are kept elsewhere."""
    out = tmp_path / "out.csv"
    out.write_text("old")

    to_csv, written = pd.DataFrame.to_csv, []

    def full_at_first(frame, stream, **more):
        written.append(stream)
        if len(written) == 1:
            raise OSError(28, "No space left on device")
        to_csv(frame, stream, **more)

    with monkeypatch.context() as patch:
        patch.setattr(pd.DataFrame, "to_csv", full_at_first)
        patch.setattr("tempfile.tempdir", str(tmp_path))
        code, _, err = run("repair", given, "-o", out, *METHOD)
    assert code == 2
    assert out.read_text() == "old"
    saved = next(tmp_path.glob("caltest-repair-*/out.csv"))
    assert "no space left on device" in " ".join(err.lower().split())
    assert str(saved) in err
    assert len(pd.read_csv(saved)) == len(PROB)
    assert not list(tmp_path.glob("*.part"))
    monkeypatch.setattr("caltest.results._atomic_file.secrets.token_hex", lambda _: "no/such/folder")
    code, _, err = run("repair", given, "-o", tmp_path / "new.csv", *METHOD)
    assert code == 2
    assert "judging" not in err
    assert not (tmp_path / "new.csv").exists()


@pytest.mark.slow(few_draws=True)
def test_a_map_that_makes_predictions_worse_is_no_success(tmp_path, run):
    """On the logistic digits the log score rose, and the report began with "no longer rejected"."""
    rng = np.random.default_rng(0)
    event = rng.uniform(0.02, 0.98, 60)
    path = tmp_path / "calibrated.csv"
    pd.DataFrame({"y": (rng.random(60) < event).astype(int), "p": event}).to_csv(path, index=False)
    bins = ("--method", "HistogramBinning(EqualWidth(30))", "--resamples", "99")
    code, text, err = run("repair", path, "-o", tmp_path / "out.csv", *bins)
    assert code == 0, err
    said = " ".join(text.split())
    assert "Recalibration makes these predictions worse." in said
    assert "What to do: Keep the original predictions: nothing is gained" in said
    assert "caltest apply" not in said


@pytest.mark.slow(few_draws=True)
def test_the_command_that_is_advised_reads_the_same_kind_of_file(tmp_path, run, monkeypatch):
    """Without header, with semicolons and decimal commas: the command lacked the options, and refused the file."""
    prob, y_true = over_confident(300, 2)
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"y": y_true, "p": prob[:, 1]}).to_csv("given.txt", index=False, header=False, sep=";", decimal=",")
    how = ("--no-header", "--sep", ";", "--decimal", ",", "--format", "csv")
    code, text, err = run("repair", "given.txt", "-o", "out.csv", *METHOD, *how, "--label", "0", "--prob", "1")
    assert code == 0, err
    command = " ".join(text.split()).split("`")[1]
    assert command == "caltest apply out.json FILE -o OUT --prob 1 --format csv --sep ';' --decimal , --no-header"
    code, _, err = run(*shlex.split(command.replace("FILE", "given.txt").replace("OUT", "new.csv"))[1:])
    assert code == 0, err
    assert len((tmp_path / "new.csv").read_text().splitlines()) in {300, 301}


def test_refusals(given, tmp_path, run):
    out = tmp_path / "out.csv"
    for arguments, words in (
        (("-o", tmp_path / "out.png"), "must name a file such as OUT.csv"),
        (("-o", tmp_path / "no" / "out.csv"), "does not exist"),
        (("-o", given), "would replace the file that is read"),
        (("-o", out, "--map", out), "different files"),
        (("-o", out, "--method", "Magic"), "must be auto or a method"),
        (("-o", out, "--method", "TemperatureScaling(x=1)"), "--method"),
        (("-o", out, "--n-folds", "1"), "--n-folds must be at least 2"),
        (("-o", out, "--n-folds", "300"), "--n-folds must be at most half of the 400 observations"),
    ):
        code, _, err = run("repair", given, *arguments)
        assert (code, words in err) == (2, True), (arguments, err)
    assert not out.exists()


def test_three_sites_are_too_few_groups_for_folds(given, tmp_path, run):
    """The error named --folds, which had not been given, and half of three groups as what is allowed."""
    frame = pd.read_csv(given)
    frame.assign(site=np.arange(len(frame)) % 3).to_csv(given, index=False)
    code, _, err = run("repair", given, "-o", tmp_path / "out.csv", "--groups", "site", *METHOD)
    assert code == 2
    assert "--n-folds needs 4 groups or more, two in each of two folds, got 3." in err


def test_the_methods_are_those_of_the_room():
    from caltest.cli._repair import _method_names

    known = {name for name in dir(caltest.recalibration) if name.endswith(("Scaling", "Calibration", "Binning"))}
    assert set(_method_names()) == known - {"AutomaticCalibration"}


@pytest.mark.parametrize(("folds", "final", "said"), [([1, 0, 1], 1, "in 1 of 3 folds"), ([1, 1], 1, ""), ([0], 0, "")])
def test_written_predictions_that_are_not_those_to_keep_are_named(folds, final, said):
    """The predictions were said to stay as they are, and those of some folds were others in the file."""
    maps = [SimpleNamespace(unchanged_=bool(one)) for one in folds]
    found = _about_folds(SimpleNamespace(maps=maps), SimpleNamespace(unchanged_=bool(final)))
    assert said in found
    assert bool(said) == bool(found)
