"""How studies run: the same numbers wherever they run, and nothing finished is lost or counted twice."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import joblib
import numpy as np
import pandas as pd
import pytest

from caltest.results import _progress
from caltest.simulation import DirichletModel, size_study
from caltest.simulation.studies import _run as _store
from caltest.simulation.studies._run import Design, Part, identify, replicate_rng, run_study

QUIET = {"workers": 1, "progress": False}


def draw(seed, number, log=None):
    if log is not None:
        with Path(log).open("a") as file:
            file.write(f"{number}\n")
    return pd.DataFrame({"number": [number], "value": replicate_rng(seed, "draw", number).standard_normal(1)})


def busy(number):
    time.sleep(0.05)
    return pd.DataFrame({"number": [number], "thread": [threading.get_ident()]})


def parts(seed, count=6, log=None):
    return [Part(f"part {number}", partial(draw, seed, number, log), cost=number + 1) for number in range(count)]


@pytest.fixture(scope="module")
def whole():
    return run_study("test", parts, out=None, rng=5, **QUIET)


def test_parts_come_back_in_order(whole):
    assert whole["number"].tolist() == list(range(6))
    assert whole["value"].nunique() == 6


@pytest.mark.parametrize(
    ("backend", "workers"), [("threading", 3), pytest.param("loky", 2, marks=pytest.mark.slow), ("sequential", 1)]
)
def test_the_backend_changes_nothing(whole, backend, workers):
    with joblib.parallel_config(backend=backend, n_jobs=workers):
        assert run_study("test", parts, out=None, rng=5, **QUIET).equals(whole)


def test_workers_change_nothing(whole):
    for workers in (2, -1):
        assert run_study("test", parts, out=None, rng=5, workers=workers, progress=False).equals(whole), workers


def test_one_worker_is_what_joblib_is_configured_for():
    """``workers=1``, the default, leaves the number of threads to ``joblib.parallel_config``."""

    def threads(seed):
        return [Part(str(number), partial(busy, number)) for number in range(4)]

    alone = run_study("test", threads, out=None, rng=5, **QUIET)
    assert alone["thread"].nunique() == 1
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert run_study("test", threads, out=None, rng=5, **QUIET)["thread"].nunique() == 2


@pytest.mark.slow(few_draws=True)
def test_a_cluster_changes_nothing(whole):
    import distributed

    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0")
    with cluster, distributed.Client(cluster), joblib.parallel_config(backend="dask"):
        assert run_study("test", parts, out=None, rng=5, **QUIET).equals(whole)


def test_what_was_kept_is_what_was_computed(whole, tmp_path, monkeypatch):
    """In Parquet files, and in CSV files where pyarrow is not installed."""
    for kind in ("parquet", "csv"):
        if kind == "csv":
            monkeypatch.setattr(_store, "find_spec", lambda name: None)
        out, log = tmp_path / kind, tmp_path / f"log of {kind}"
        assert run_study("test", parts, out=out, rng=5, **QUIET).equals(whole), kind
        assert len(list(out.glob(f"*.{kind}"))) == 6
        assert run_study("test", partial(parts, log=log), out=out, rng=5, **QUIET).equals(whole), kind
        assert not log.exists(), f"nothing was computed again, {kind}"


def test_a_study_that_grows_computes_what_is_new(whole, tmp_path):
    log = tmp_path / "log"
    run_study("test", partial(parts, count=4), out=tmp_path, rng=5, **QUIET)
    assert run_study("test", partial(parts, log=log), out=tmp_path, rng=5, **QUIET).equals(whole)
    assert log.read_text().split() == ["4", "5"]


def test_a_random_seed_is_kept(tmp_path):
    first = run_study("test", parts, out=tmp_path, rng=None, **QUIET)
    assert run_study("test", partial(parts, count=7), out=tmp_path, rng=None, **QUIET)[:6].equals(first)
    assert not run_study("test", parts, out=None, rng=None, **QUIET).equals(first)


def test_a_generator_is_drawn_from_once(tmp_path):
    one, other = np.random.default_rng(3), np.random.default_rng(3)
    first = run_study("test", parts, out=None, rng=one, **QUIET)
    assert run_study("test", parts, out=tmp_path, rng=other, **QUIET).equals(first)
    assert not run_study("test", parts, out=None, rng=one, **QUIET).equals(first)


def test_a_folder_belongs_to_one_study(tmp_path):
    run_study("test", parts, out=tmp_path, rng=5, **QUIET)
    with pytest.raises(ValueError, match=r"`rng` must be None or 5, with which the study in .* was begun, got 6"):
        run_study("test", parts, out=tmp_path, rng=6, **QUIET)
    with pytest.raises(ValueError, match="`out` must be a new folder or that of a size study, got that of a test"):
        run_study("size", parts, out=tmp_path, rng=5, **QUIET)


def test_a_folder_is_a_folder_and_whole(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="`out` must be a folder, got the file"):
        run_study("test", parts, out=tmp_path / "file", rng=5, **QUIET)
    (tmp_path / "study.json").write_text("{")
    with pytest.raises(ValueError, match=r"`out` must be a new folder or that of a study, got .*study.json is damaged"):
        run_study("test", parts, out=tmp_path, rng=5, **QUIET)


KILLED = """
import sys, time
from tests.simulation.studies.test_run import parts, Part, run_study, partial
def slow(task, number):
    time.sleep(0.2)
    return task()
run_study("test", lambda seed: [Part(p.name, partial(slow, p.task, 0), p.cost) for p in parts(seed, log=sys.argv[2])],
          out=sys.argv[1], rng=5, workers=2, progress=False)
"""


@pytest.mark.slow
def test_a_study_that_is_killed_goes_on(whole, tmp_path):
    log, out = tmp_path / "log", tmp_path / "out"
    tests = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": str(tests)}
    with subprocess.Popen([sys.executable, "-c", KILLED, str(out), str(log)], env=environment) as study:
        while study.poll() is None and len(list(out.glob("[!.]*.parquet"))) < 2:
            time.sleep(0.01)
        study.send_signal(signal.SIGKILL)
    kept = len(list(out.glob("[!.]*.parquet")))
    assert 2 <= kept < 6, "killed half-way"
    log.unlink()
    assert run_study("test", partial(parts, log=log), out=out, rng=5, **QUIET).equals(whole)
    assert len(log.read_text().split()) == 6 - kept, "what was finished is not done again"


def test_what_fails_loses_nothing_that_was_finished(tmp_path):
    def failing(seed):
        return [*parts(seed, count=3), Part("bad", partial(pd.DataFrame, {"a": 1}))]

    with pytest.raises(ValueError, match="scalar"):
        run_study("test", failing, out=tmp_path, rng=5, **QUIET)
    log = tmp_path / "log"
    run_study("test", partial(parts, count=3, log=log), out=tmp_path, rng=5, **QUIET)
    assert not log.exists()


def test_progress_is_reported_in_the_unit_of_the_costs(tmp_path):
    told = []
    run_study("test", partial(parts, count=3), out=tmp_path, rng=5, workers=1, progress=lambda *now: told.append(now))
    assert told == [(0, 6), (1, 6), (3, 6), (6, 6)]
    told.clear()
    run_study("test", partial(parts, count=4), out=tmp_path, rng=5, workers=1, progress=lambda *now: told.append(now))
    assert told == [(6, 10), (10, 10)], "what was kept counts as done"


def test_the_bar_shows_the_time_left(monkeypatch, capsys):
    monkeypatch.setattr(_progress, "PROGRESS_AFTER", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    run_study("test", parts, out=None, rng=5, workers=1, progress=True)
    shown = capsys.readouterr().err
    assert "test study" in shown
    assert ":" in shown


def test_the_blocks_of_a_design_hold_each_replicate_once(monkeypatch):
    def numbers(block):
        return pd.DataFrame({"replicate": block.replicates, "first": block.replicates.start})

    monkeypatch.setattr(_store, "_REPLICATES", 3)
    found = Design({"m": DirichletModel(2)}, [5], 7).run("test", numbers, out=None, rng=0, **QUIET)
    assert found["replicate"].tolist() == list(range(7))
    assert found["first"].tolist() == [0, 0, 0, 3, 3, 3, 6]


def test_replicates_have_their_own_random_numbers():
    drawn = {replicate_rng(seed, name, r).random() for seed in (0, 1) for name in "ab" for r in range(3)}
    assert len(drawn) == 12
    assert replicate_rng(1, "a", 2).random() == replicate_rng(1, "a", 2).random()


def test_functions_of_one_name_are_distinguished(tmp_path):
    """Closures, lambdas, defaults and options: what they do counts, in every process, not their names."""

    def always(pvalue):
        return lambda y_true, y_prob: SimpleNamespace(pvalue=pvalue)

    for pvalue in (0.5, 0.001, 0.5):
        study = size_study(DirichletModel(2), {"own": always(pvalue)}, 20, 5, out=tmp_path, rng=0)
        assert set(study.pvalues["pvalue"]) == {pvalue}
    assert len(list(tmp_path.glob("[!.]*.parquet"))) == 2


def test_the_identity_of_functions():
    def one(x, k=1):
        return x + k

    def recursive(n):
        return n * recursive(n - 1) if n else 1

    others = [lambda x: x + 1, lambda x: x + 2, one, partial(one, k=3), partial(one, k=4), recursive]
    names = [identify({"f": function}) for function in others]
    assert len(set(names)) == len(names)
    assert identify(lambda x: x in {"a", "b", "c"}) == identify(lambda x: x in {"a", "b", "c"})
    one.__defaults__ = (2,)
    assert identify({"f": one}) not in names
    assert identify(("text", 3)) == "['text', 3]"


def test_no_identity_shows_the_address_of_a_function():
    """Another process would not find what this one kept: not in a dataclass, a partial, a list or a mapping."""

    @dataclass(frozen=True)
    class Plain:
        function: object

    def own(x):
        return x

    several = [Plain(own), partial(own, 1, k=own), [own], {"f": own}, DirichletModel(2, truth=own), (Plain([own]),)]
    for thing in several:
        assert " at 0x" not in identify(thing), thing
    assert len({identify(thing) for thing in several}) == len(several)


@pytest.mark.slow(few_draws=True)
def test_the_identity_is_that_of_other_processes():
    code = """
import caltest
from caltest.simulation.studies._run import identify

names = {"a", "b", "c", "d"}
print(identify([lambda x: x in {"a", "b", "c", "d"}, lambda x: x in names, caltest.hosmer_lemeshow_test]))
"""
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1
