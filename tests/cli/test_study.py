"""``caltest study``: what a file says is what is run, and a killed study goes on."""

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

import caltest
from benchmarks import alternatives
from caltest import cli
from caltest.cli._expressions import read_object
from caltest.simulation import DirichletModel, GaussianMixture1D, Temperature, bias_study, power_study, size_study

ROOT = Path(caltest.__file__).parents[1]
KNOWN = {"ECE": caltest.ECE, "EqualWidth": caltest.EqualWidth, "cox_test": caltest.cox_test, "amount": 2.5}

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
    assert run(tmp_path, "size", SIZE, "--seed", "3") == 0
    tests = {
        "cells": caltest.ECE(caltest.EqualWidth(15)),
        "limit": partial(caltest.hosmer_lemeshow_test, method="asymptotic"),
    }
    models, lenses = {"spread": DirichletModel(3, 0.5)}, {"Confidence()": caltest.Confidence()}
    expected = size_study(models, tests, [20, 40], 30, lenses=lenses, n_resamples=19, rng=3)
    assert_same(frame_of(tmp_path, "size"), expected.to_frame())
    printed = capsys.readouterr().out
    assert str(expected) in printed
    assert "written:" in printed


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


def test_bias(tmp_path):
    assert run(tmp_path, "bias", BIAS) == 0
    models = {
        "GaussianMixture1D(0, -2)": GaussianMixture1D(0, -2),
        "GaussianMixture1D(1.0, 1)": GaussianMixture1D(1, 1),
    }
    statistic = caltest.ECE(caltest.EqualWidth(5), caltest.squared_euclidean)
    expected = bias_study(models, {"ECE(EqualWidth(5), squared_euclidean)": statistic}, 20, 10, rng=0)
    assert_same(frame_of(tmp_path, "bias", ("-1", "-2")), expected.to_frame())


def test_a_killed_command_goes_on(tmp_path):
    config = f"{SIZE.partition('[tests]')[0]}[tests]\nscore = 'TemperatureScore()'\n".replace("= 30", "= 500")
    (tmp_path / "study.toml").write_text(config)
    out = tmp_path / "out"
    command = [sys.executable, "-c", "import sys; from caltest.cli import main; sys.exit(main())", "study", "size"]
    command += ["--config", str(tmp_path / "study.toml"), "--out", str(out), "--workers", "1"]
    with subprocess.Popen(command, cwd=ROOT) as process:
        while process.poll() is None and len(list((out / "parts").glob("[!.s]*"))) < 2:
            pass
        os.kill(process.pid, signal.SIGKILL)
    kept = {file: file.stat().st_mtime_ns for file in (out / "parts").glob("[!.s]*")}
    assert 2 <= len(kept) < 10
    assert not (out / "size.csv").exists()
    assert run(tmp_path, "size", config) == 0
    assert all(file.stat().st_mtime_ns == moment for file, moment in kept.items())
    assert len(list((out / "parts").glob("[!.s]*"))) == 10
    resumed = frame_of(tmp_path, "size")
    assert resumed["n_replicates"].unique().tolist() == [500]
    (uninterrupted := tmp_path / "uninterrupted").mkdir()
    assert run(uninterrupted, "size", config) == 0
    assert_same(resumed, frame_of(uninterrupted, "size"))


def test_stopping_by_hand_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("caltest.simulation.studies._size.run_study", stopped)
    with pytest.raises(SystemExit) as found:
        run(tmp_path, "size", SIZE)
    assert found.value.code == 130
    assert "the same command goes on" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("n_samples = [", "is no TOML file"),
        ("n_sample = 3", "there is no `n_sample`; known are models, tests, n_samples"),
        ("n_samples = 3", "`models` is missing"),
        (SIZE.replace("DirichletModel(3, 0.5)", "Dirichlet(3)"), "there is no Dirichlet; did you mean DirichletModel?"),
        (SIZE.replace("DirichletModel(3, 0.5)", "DirichletModel(1)"), "`n_classes` must be an integer >= 2"),
        (SIZE.replace('"Confidence()"', "3"), "`lenses` must be a text, a list or a table of texts"),
        (SIZE.replace("n_samples = [20, 40]", "n_samples = [0]"), "`n_samples` must be an integer >= 1"),
    ],
)
def test_bad_files(tmp_path, capsys, config, says):
    assert run(tmp_path, "size", config) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


def test_another_seed_needs_another_folder(tmp_path, capsys):
    assert run(tmp_path, "size", SIZE) == 0
    assert run(tmp_path, "size", SIZE, "--seed", "1") == 2
    assert "`rng` must be None or 0" in capsys.readouterr().err


# Texts that name objects.


def test_texts_that_name_objects():
    assert read_object(" ECE(EqualWidth(n_cells=15)) ", KNOWN) == caltest.ECE(caltest.EqualWidth(15))
    assert read_object("[1, (2, -0.5), {'a': None}, amount]", {"amount": 3}) != []
    assert read_object("[1, -2.5, 'a', True, amount, (1, amount)]", KNOWN) == [1, -2.5, "a", True, 2.5, (1, 2.5)]
    found = read_object("cox_test(method='score')", KNOWN)
    assert (found.func, found.keywords) == (caltest.cox_test, {"method": "score"})
    assert read_object("cox_test", KNOWN) is caltest.cox_test


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('echo')",
        "open('x')",
        "ECE.__class__",
        "ECE().partition",
        "(lambda: 1)()",
        "[x for x in (1, 2)]",
        "ECE(*[1])",
        "ECE(**{'partition': 1})",
        "EqualWidth(1) if 1 else 2",
        "1 + amount",
        "f'{amount}'",
        "a = 1",
        "",
        "EqualWidth(",
        "EqualWidth(-1)",
        "EqualWidth(cells=1)",
    ],
)
def test_nothing_else_is_run(text):
    with pytest.raises(ValueError, match=r"there is no|is not the name|neither a name|must be|unexpected keyword"):
        read_object(text, KNOWN)


# The power page.


def test_the_power_page_is_made_from_its_data():
    data = ROOT / "docs" / "power.csv"
    text = data.read_text()
    assert data.with_suffix(".md").read_text() == alternatives.page(text)
    frame = pd.read_csv(data, comment="#")
    assert len(frame) == sum(
        3 * len(alternatives.alternatives(3)) * len(alternatives.tests(n)) for n in alternatives.SIZES
    )
    for name in alternatives.CURVES:
        assert (data.parent / "images" / f"{name}.png").exists()
        assert f"images/{name}.png" in data.with_suffix(".md").read_text()
