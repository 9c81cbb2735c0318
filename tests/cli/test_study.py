"""``caltest study``: what a file says is what is run, and a killed study goes on."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from matplotlib import pyplot as plt

import caltest
from benchmarks import alternatives
from caltest import cli
from caltest.cli._study import _draw
from caltest.simulation import (
    BentPosterior,
    DirichletModel,
    GaussianMixture,
    GaussianMixture1D,
    RecalibratedModel,
    Temperature,
    bias_study,
    power_study,
    size_study,
)
from caltest.simulation.studies import _run

ROOT = Path(caltest.__file__).parents[1]

SIZE = """
n_samples = [20, 40]
n_replicates = 30
n_resamples = 19
lenses = "Confidence()"
[models]
spread = "DirichletModel(3, 0.5)"
[tests]
cells = "ECE(EqualWidth(15))"
limit = "hosmer_lemeshow_test(method='asymptotic')"
"""
POWER = """
n_samples = 30
n_replicates = 5
n_resamples = 19
levels = [0.05]
amounts = [0.8, 1.25]
family = "DirichletModel(3, 0.5, Temperature(amount))"
tests = ["TemperatureScore()", "KS()"]
lenses = ["Confidence()"]
resampling = "Consistency(resample_predictions=True)"
"""
BIAS = """
n_samples = [20]
n_replicates = 10
models = ["GaussianMixture1D(0, -2)", "GaussianMixture1D(1.0, 1)"]
statistics = ["ECE(EqualWidth(5), squared_euclidean)"]
"""

MIXTURE = "BentPosterior(GaussianMixture([0.5, 0.5], [-1, 1], [1, 1], [0, 1]), Temperature(2))"

PICTURES = ("-GaussianMixture1D_0_-2-Canonical", "-GaussianMixture1D_1.0_1-Canonical")
LONG = ("-BentPosterior_GaussianMixture_0.5_0.5_-1_1_1_1_0_1_Temperature_2-Canonical",)


def run(tmp_path, study, config, *more):
    (tmp_path / "study.toml").write_text(config)
    given = ["--config", str(tmp_path / "study.toml"), "--out", str(tmp_path / "out"), "--workers", "1", *more]
    return cli.main(["study", study, *given])


def frame_of(tmp_path, study, pictures=("",)):
    drawn = sorted((tmp_path / "out").glob("*.png"))
    assert [picture.name for picture in drawn] == [f"{study}{number}.png" for number in pictures]
    assert all(picture.stat().st_size > 5000 for picture in drawn)
    return pd.read_csv(tmp_path / "out" / f"{study}.csv")


def assert_same(found, expected):
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, check_exact=False, rtol=1e-12)


def test_size(tmp_path, capsys):
    assert run(tmp_path, "size", SIZE.replace("= 30", "= 8"), "--seed", "3") == 0
    tests = {
        "cells": caltest.ECE(caltest.EqualWidth(15)),
        "limit": partial(caltest.hosmer_lemeshow_test, method="asymptotic"),
    }
    models, lenses = {"spread": DirichletModel(3, 0.5)}, {"Confidence()": caltest.Confidence()}
    expected = size_study(models, tests, [20, 40], 8, lenses=lenses, n_resamples=19, rng=3)
    assert_same(frame_of(tmp_path, "size"), expected.to_frame())
    printed = capsys.readouterr().out
    assert str(expected) in printed
    assert "written:" in printed


@pytest.mark.slow
def test_power(tmp_path):
    assert run(tmp_path, "power", POWER) == 0
    text = "DirichletModel(3, 0.5, Temperature(amount))"
    expected = power_study(
        {text: lambda t: DirichletModel(3, 0.5, Temperature(t))},
        [0.8, 1.25],
        {"TemperatureScore()": caltest.TemperatureScore(), "KS()": caltest.KS()},
        30,
        5,
        lenses=caltest.Confidence(),
        levels=0.05,
        n_resamples=19,
        resampling=caltest.Consistency(resample_predictions=True),
        rng=0,
    )
    assert_same(frame_of(tmp_path, "power"), expected.to_frame())


@pytest.mark.slow
def test_bias(tmp_path):
    assert run(tmp_path, "bias", BIAS) == 0
    models = {
        "GaussianMixture1D(0, -2)": GaussianMixture1D(0, -2),
        "GaussianMixture1D(1.0, 1)": GaussianMixture1D(1, 1),
    }
    statistic = caltest.ECE(caltest.EqualWidth(5), caltest.predictions.squared_euclidean)
    expected = bias_study(models, {"ECE(EqualWidth(5), squared_euclidean)": statistic}, 20, 10, rng=0)
    assert_same(frame_of(tmp_path, "bias", PICTURES), expected.to_frame())


@pytest.mark.slow
def test_intervals_and_recalibrated_models_may_be_named(tmp_path):
    text = f"RecalibratedModel({MIXTURE}, TemperatureScaling(), n_train=100)"
    config = f"""
n_samples = 50
n_replicates = 3
statistics = "SquaredL2(EqualWidth(5))"
[models]
repaired = "{text}"
[intervals]
l2 = "l2_interval"
wide = "l2_interval(confidence_level=0.99)"
"""
    assert run(tmp_path, "bias", config) == 0
    mixture = GaussianMixture([0.5, 0.5], [-1, 1], [1, 1], [0, 1])
    base = BentPosterior(mixture, Temperature(2))
    model = RecalibratedModel(base, caltest.recalibration.TemperatureScaling(), n_train=100)
    statistic = {"SquaredL2(EqualWidth(5))": caltest.SquaredL2(caltest.EqualWidth(5))}
    intervals = {"l2": caltest.l2_interval, "wide": partial(caltest.l2_interval, confidence_level=0.99)}
    expected = bias_study({"repaired": model}, statistic, 50, 3, intervals=intervals, rng=0)
    assert_same(frame_of(tmp_path, "bias", ("-repaired-Canonical",)), expected.to_frame())


@pytest.mark.slow(few_draws=True)
def test_a_file_of_a_whole_study(tmp_path):
    (tmp_path / "study.toml").write_text('study = "bias"\n' + BIAS)
    given = [str(tmp_path / "study.toml"), "-o", str(tmp_path / "out"), "--no-progress"]
    assert cli.main(["study", "run", *given, "--model", MIXTURE, "--backend", "threading"]) == 0
    mixture = GaussianMixture([0.5, 0.5], [-1, 1], [1, 1], [0, 1])
    statistic = caltest.ECE(caltest.EqualWidth(5), caltest.predictions.squared_euclidean)
    models = {MIXTURE: BentPosterior(mixture, Temperature(2))}
    expected = bias_study(models, {"ECE(EqualWidth(5), squared_euclidean)": statistic}, 20, 10, rng=0)
    assert_same(frame_of(tmp_path, "bias", LONG), expected.to_frame())


def test_what_a_whole_study_lacks_is_named(tmp_path, capsys):
    config = tmp_path / "study.toml"
    for text, more, message in (
        (BIAS, ["run", str(config)], 'needs a line study = "size"'),
        ("study = 'size'\n", ["bias", str(config)], "holds a study of size, not of bias"),
        (BIAS, ["bias", str(config), "--config", str(config)], "give FILE or --config FILE, not both"),
        (POWER, ["power", str(config), "--model", MIXTURE], "--model is for studies of bias and size"),
        ("", ["bias"], "caltest study bias needs FILE, or --model"),
        ("", ["size", "--model", MIXTURE], "caltest study size needs FILE"),
        (BIAS, ["bias", str(config), "--model", "GaussianMixture([1.0], [0], [1], [0])"], "at least two classes"),
    ):
        config.write_text(text)
        assert cli.main(["study", *more, "-o", str(tmp_path / "out")]) == 2
        assert message in capsys.readouterr().err


@pytest.mark.slow
def test_a_model_alone_makes_a_study_of_bias(tmp_path):
    assert cli.main(["study", "bias", "--model", MIXTURE, "-o", str(tmp_path / "out"), "--no-progress"]) == 0
    name = "-BentPosterior_GaussianMixture_0.5_0.5_-1_1_1_1_0_1_Temperature_2-Canonical"
    assert frame_of(tmp_path, "bias", (name,))["n_samples"].unique().tolist() == [100, 1000, 10_000]


@pytest.mark.slow
def test_a_killed_command_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(_run, "_REPLICATES", 30)  # in a part: ten parts
    config = f"{SIZE.partition('[tests]')[0]}[tests]\nscore = 'TemperatureScore()'\n".replace("= 30", "= 150")
    (tmp_path / "study.toml").write_text(config)
    out = tmp_path / "out"
    code = (
        "import sys; from caltest.simulation.studies import _run; _run._REPLICATES = 30; "
        "from caltest.cli import main; sys.exit(main())"
    )
    command = [sys.executable, "-c", code, "study", "size"]
    command += ["--config", str(tmp_path / "study.toml"), "--out", str(out), "--workers", "1"]
    with subprocess.Popen(command, cwd=ROOT) as process:
        while process.poll() is None and len(list((out / "parts").glob("[!.s]*"))) < 2:
            time.sleep(0.001)
        os.kill(process.pid, signal.SIGKILL)
    kept = {file: file.stat().st_mtime_ns for file in (out / "parts").glob("[!.s]*")}
    assert 2 <= len(kept) < 10
    assert not (out / "size.csv").exists()
    assert run(tmp_path, "size", config) == 0
    assert all(file.stat().st_mtime_ns == moment for file, moment in kept.items())
    assert len(list((out / "parts").glob("[!.s]*"))) == 10
    resumed = frame_of(tmp_path, "size")
    assert resumed["n_replicates"].unique().tolist() == [150]
    (uninterrupted := tmp_path / "uninterrupted").mkdir()
    assert run(uninterrupted, "size", config) == 0
    assert_same(resumed, frame_of(uninterrupted, "size"))


def test_stopping_by_hand_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("caltest.simulation.studies._run.run_study", stopped)
    assert run(tmp_path, "size", SIZE) == 130
    out = tmp_path / "out"
    assert capsys.readouterr().err == (f"caltest: stopped: the same command continues with what is finished in {out}\n")


def test_bad_files(tmp_path, capsys):
    cases = [
        ("n_samples = [", "is not a TOML file"),
        ("n_sample = 3", "there is no 'n_sample'; known are models, tests, n_samples"),
        ("n_samples = 3", "'models' is missing"),
        (SIZE.replace("DirichletModel(3, 0.5)", "Dirichlet(3)"), "there is no Dirichlet; did you mean DirichletModel?"),
        (SIZE.replace("DirichletModel(3, 0.5)", "DirichletModel(1)"), "n_classes must be an integer >= 2"),
        (SIZE.replace('"Confidence()"', "3"), "'lenses' must be an expression in quotes, or a list or a table of them"),
        (SIZE.replace("n_samples = [20, 40]", "n_samples = [0]"), "n_samples must be an integer >= 1"),
        (SIZE.replace("n_resamples = 19", "n_resamples = 0"), "n_resamples must be an integer >= 1"),
        (SIZE.replace("n_resamples = 19", "n_resamples = '9'"), "n_resamples must be an integer >= 1"),
    ]
    for config, message in cases:
        assert run(tmp_path, "size", config) == 2, config
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1


def test_a_missing_file_is_named(tmp_path, capsys):
    arguments = ["--config", str(tmp_path / "absent.toml"), "--out", str(tmp_path / "out")]
    assert cli.main(["study", "size", *arguments]) == 2
    assert capsys.readouterr().err == f"caltest: error: {tmp_path / 'absent.toml'}: no such file or directory\n"
    assert not (tmp_path / "out").exists()


@pytest.mark.slow(few_draws=True)
def test_another_seed_needs_another_folder(tmp_path, capsys):
    config = SIZE.replace("= 30", "= 2")
    assert run(tmp_path, "size", config) == 0
    assert run(tmp_path, "size", config, "--seed", "1") == 2
    assert "--seed must be 0, with which the study in" in capsys.readouterr().err


# The power page.


def test_the_power_page_is_made_from_its_data():
    data = ROOT / "docs" / "power.csv"
    text = data.read_text()
    assert data.with_suffix(".md").read_text() == alternatives.page(text)
    frame = pd.read_csv(data, comment="#")
    models = alternatives.predictions()
    for (kind, n), part in frame.groupby(["predictions", "n_samples"]):  # what was measured is complete
        _, n_classes, sizes = models[kind]
        assert n in sizes
        assert len(part) == len(alternatives.alternatives(n_classes)) * len(alternatives.tests(n, n_classes)), (kind, n)
        assert (part["n_replicates"] >= 400).all()
    for name in alternatives.CURVES:
        assert (data.parent / "images" / f"{name}.png").exists()
        assert f"images/{name}.png" in data.with_suffix(".md").read_text()


@pytest.mark.slow
def test_names_of_pictures_differ_and_suit_every_file_system():
    name = "a/b: " + "long " * 30
    models = {f"{name}{k}": GaussianMixture1D(1, 1) for k in range(2)} | {"a/b": GaussianMixture1D(0, 1)}
    study = bias_study(models, {"KS": caltest.KS()}, 20, 2, rng=0)
    names = list(_draw("bias", study))
    plt.close("all")
    assert names == [f"bias-{'a_b_' + 'long_' * 15}l-Canonical{k}" for k in ("", "-2")] + ["bias-a_b-Canonical"]
