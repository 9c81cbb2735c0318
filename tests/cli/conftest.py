"""What tests of the command line share: a small problem, files that hold it, and a way to run commands."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from benchmarks.streams import STREAMS
from caltest.cli import main
from caltest.results import _progress

FAST = ("--resamples", "99")


@pytest.fixture(autouse=True)
def width(monkeypatch):
    """Lines do not depend on the terminal of the tests."""
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture(autouse=True)
def silence(monkeypatch):
    """What is said on the error stream does not depend on how busy the machine is."""
    monkeypatch.setattr(_progress, "PROGRESS_AFTER", math.inf)
    monkeypatch.setattr(_progress, "LINE_AFTER", math.inf)


@pytest.fixture(scope="session")
def problem():
    """Labels 0 to 2 and their predicted probabilities."""
    rng = np.random.default_rng(0)
    prob = rng.dirichlet(np.ones(3), 60)
    y = (rng.random(60)[:, None] > prob.cumsum(axis=1)[:, :2]).sum(axis=1)
    return y, prob


@pytest.fixture
def frame(problem):
    """The problem as a table."""
    y, prob = problem
    return pd.DataFrame(prob, columns=["p_cat", "p_dog", "p_eel"]).assign(label=y)


@pytest.fixture
def path(frame, tmp_path):
    """A file whose labels are class indices."""
    frame.to_csv(tmp_path / "indices.csv", index=False)
    return tmp_path / "indices.csv"


@pytest.fixture
def named(frame, tmp_path):
    """A file whose labels are names."""
    words = np.array(["cat", "dog", "eel"])
    frame.assign(label=words[frame["label"]]).to_csv(tmp_path / "named.csv", index=False)
    return tmp_path / "named.csv"


@pytest.fixture
def forecasts(tmp_path):
    """A file of calibrated forecasts for a week ahead, and its frame."""
    stream = STREAMS["AR(.8)"](np.random.default_rng(0), 365, 7)
    days = pd.date_range("2026-01-01", periods=365).strftime("%Y-%m-%d")
    frame = pd.DataFrame({"day of issue": days, "rain": stream.y_true, "risk": stream.y_prob, "site": "north"})
    frame.loc[::2, "site"] = "south"
    frame.to_csv(tmp_path / "forecasts.csv", index=False)
    return tmp_path / "forecasts.csv", frame


@pytest.fixture
def run(capsys):
    """Run a command: its exit code, what it prints and what it says on the error stream."""

    def run_it(*arguments):
        code = main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return run_it


@pytest.fixture
def answer(run):
    """Run a fast command and read its JSON, which must be strict."""

    def read(*arguments):
        code, out, err = run(*arguments, "--json", *FAST)
        assert code in {0, 1}, err
        return json.loads(out, parse_constant=lambda word: pytest.fail(f"{word} in JSON"))

    return read
