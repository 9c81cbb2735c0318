"""Progress: a bar after a second, nothing, or a function; interruptions pass through."""

import inspect
import itertools

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import caltest as ct
from caltest import comparison, estimation, hypothesis_tests, simulation
from caltest.hypothesis_tests import by_fold
from caltest.recalibration import TemperatureScaling
from caltest.results import _progress
from caltest.results._progress import ProgressBar, ProgressLines, reporting
from tests.results import examples
from tests.results.examples import FOLD, MODEL, PARTITION, epochs, family, problem, three_models, two_classes

FAST = {"n_resamples": 99, "rng": 0}
STUDY = {"n_resamples": 19, "rng": 0}
ROOMS = (ct, ct.clinical, estimation, hypothesis_tests, comparison, simulation)

CALLS = {
    "bootstrap_interval": lambda **more: ct.bootstrap_interval(*problem(), n_resamples=39, rng=0, **more),
    "bridge_test": lambda **more: ct.bridge_test(*two_classes(), **FAST, **more),
    "cutoff_interval": lambda **more: estimation.cutoff_interval(*two_classes(), **FAST, **more),
    "calibration_report": lambda **more: ct.calibration_report(*problem(), n_resamples=199, rng=0, **more),
    "calibration_band": lambda **more: ct.calibration_band(
        *problem(), lens=ct.Confidence(), n_resamples=199, rng=0, **more
    ),
    "calibration_table": lambda **more: ct.calibration_table(*problem(), n_resamples=199, rng=0, **more),
    "calibration_test": lambda **more: ct.calibration_test(*problem(), **FAST, **more),
    "by_fold": lambda **more: by_fold(ct.calibration_test, *problem(), FOLD, **FAST, **more),
    "calibration_by_site": lambda **more: ct.clinical.calibration_by_site(
        *two_classes(), site=FOLD, n_resamples=699, rng=0, **more
    ),
    "optimism_corrected": lambda **more: ct.clinical.optimism_corrected(
        GaussianNB(), two_classes()[1][:, None], two_classes()[0], n_resamples=5, smoother="lowess", rng=0, **more
    ),
    "update_test": lambda **more: ct.clinical.update_test(*two_classes(), **FAST, **more),
    "clinical_calibration": lambda **more: ct.clinical.clinical_calibration(*two_classes(), **FAST, **more),
    "compare_models": lambda **more: ct.compare_models(problem()[0], three_models(), **FAST, **more),
    "leaderboard": lambda **more: ct.leaderboard(problem()[0], three_models(), by="brier", **FAST, **more),
    "cox_test": lambda **more: ct.cox_test(*two_classes(), **FAST, **more),
    "cross_val_calibration": lambda **more: ct.cross_val_calibration(
        GaussianNB(), problem()[1], problem()[0], cv=2, **FAST, **more
    ),
    "cumulative_graphs": lambda **more: ct.cumulative_graphs(*problem(), **FAST, **more),
    "temperature_curve": lambda **more: ct.temperature_curve(*problem(), temperatures=[1, 2], **FAST, **more),
    "cells_curve": lambda **more: ct.cells_curve(*problem(), n_cells=[3, 5], **FAST, **more),
    "gce_table": lambda **more: ct.gce_table(*problem(), n_resamples=699, rng=0, **more),
    "hosmer_lemeshow_test": lambda **more: ct.hosmer_lemeshow_test(*problem(), method="monte-carlo", **FAST, **more),
    "multilabel_table": lambda **more: ct.multilabel_table(
        problem()[0][:, None] == [0, 1], problem()[1][:, :2], **FAST, **more
    ),
    "noise_floor": lambda **more: ct.noise_floor(problem()[1], **FAST, **more),
    "paired_test": lambda **more: ct.paired_test(
        problem()[0], *list(three_models().values())[:2], variance="bootstrap", **FAST, **more
    ),
    "giviti_test": lambda **more: ct.hypothesis_tests.giviti_test(*two_classes(), **FAST, **more),
    "le_cessie_test": lambda **more: ct.hypothesis_tests.le_cessie_test(*two_classes(), **FAST, **more),
    "osius_rojek_test": lambda **more: ct.hypothesis_tests.osius_rojek_test(*two_classes(), **FAST, **more),
    "safe_hosmer_lemeshow_test": lambda **more: ct.hypothesis_tests.safe_hosmer_lemeshow_test(
        *two_classes(), rng=0, **more
    ),
    "stukel_test": lambda **more: ct.hypothesis_tests.stukel_test(*two_classes(), **FAST, **more),
    "sum_of_squares_test": lambda **more: ct.hypothesis_tests.sum_of_squares_test(
        np.repeat([0, 1, 0, 1], [30, 10, 15, 25]), np.repeat([0.25, 0.625], 40), np.arange(80) // 40, **FAST, **more
    ),
    "residual_correlation": lambda **more: ct.hypothesis_tests.residual_correlation(*problem(), **FAST, **more),
    "skce_test": lambda **more: ct.skce_test(*problem(), **FAST, **more),
    "spiegelhalter_test": lambda **more: ct.spiegelhalter_test(*problem(), method="monte-carlo", **FAST, **more),
    "subgroup_tests": lambda **more: ct.subgroup_tests(*problem(), subgroup=np.arange(300) % 2, **FAST, **more),
    "tcal_test": lambda **more: ct.hypothesis_tests.tcal_test(*two_classes(), **FAST, **more),
    "training_track": lambda **more: ct.training_track(None, epochs(), **FAST, **more),
    "unpaired_test": lambda **more: ct.unpaired_test(
        *problem(), *problem(seed=1), variance="bootstrap", **FAST, **more
    ),
    "recalibration_study": lambda **more: ct.recalibration_study(
        problem()[0], {"sharp": three_models()["sharp"]}, [TemperatureScaling()], folds=2, **FAST, **more
    ),
    "size_study": lambda **more: simulation.size_study(MODEL, ct.KS(), 30, 20, **STUDY, **more),
    "power_study": lambda **more: simulation.power_study(family, [-2, -4], ct.KS(), 30, 10, **STUDY, **more),
    "detectable_error": lambda **more: ct.detectable_error(problem()[1], n_resamples=99, rng=0, **more),
    "plan_sample_size": lambda **more: ct.hypothesis_tests.plan_sample_size(problem()[1], temperature=3, rng=0, **more),
    "bias_study": lambda **more: simulation.bias_study(MODEL, [ct.ECE(PARTITION)], 30, 20, rng=0, **more),
    "metric_agreement": lambda **more: simulation.metric_agreement(
        problem()[0], three_models(), metrics=["ECE", "KS"], **FAST, **more
    ),
    "coverage_study": lambda **more: simulation.coverage_study(
        MODEL, {"mean": (examples.mean_interval, examples.mean_target)}, 30, 20, rng=0, **more
    ),
    "sample_size": lambda **more: simulation.sample_size(
        family(-4), ct.KS(), power=0.5, n_range=(200, 1000), n_replicates=24, **STUDY, **more
    ),
    "approximation_study": lambda **more: simulation.approximation_study(
        MODEL, {"ECE": ct.ECE(PARTITION)}, [30, 60], 10, n_holdout=1000, rng=0, **more
    ),
    "label_noise_study": lambda **more: simulation.label_noise_study(
        examples.base_rates, np.zeros(60, int), np.zeros(60, int), classes=[0, 1], shares=[0, 0.5], **STUDY, **more
    ),
}
"""A call of every public function that takes ``progress``."""


def test_every_function_that_takes_progress_has_a_call():
    public = {name: getattr(room, name) for room in ROOMS for name in room.__all__}
    functions = {name: thing for name, thing in public.items() if inspect.isfunction(thing)}
    taking = {name for name, thing in functions.items() if "progress" in inspect.signature(thing).parameters}
    assert taking - {"config_context"} == set(CALLS)


SLOW = {
    "approximation_study",
    "by_fold",
    "calibration_by_site",
    "clinical_calibration",
    "gce_table",
    "optimism_corrected",
    "power_study",
    "recalibration_study",
    "sample_size",
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow(few_draws=True)] if name in SLOW else []) for name in CALLS]
)
def test_functions_report_and_pass_interruptions_on(name):
    """Called with numbers from 0 to their total, which does not change; the answer is the same; Ctrl-C ends it."""
    calls = []
    told = CALLS[name](progress=lambda done, total: calls.append((done, total)))
    assert calls, "nothing was reported"
    assert all(0 <= done <= total for done, total in calls)
    assert calls[-1][0] == calls[-1][1], "all is done at the end"
    assert [done for done, _ in calls] == sorted(done for done, _ in calls), "it never goes back"
    assert told.to_dict() == CALLS[name]().to_dict()

    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        CALLS[name](progress=interrupt)
    with pytest.raises(TypeError, match=r"`progress` must be True, False or a function of .*, got 'bar'"):
        CALLS[name](progress="bar")


def test_no_bar_unless_asked_for(capsys):
    with reporting(False, "working") as report:
        report(1, 2)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("terminal", [True, False])
def test_what_takes_minutes_shows_a_bar_on_a_terminal_and_nothing_elsewhere(terminal, capsys, monkeypatch):
    monkeypatch.setattr(_progress, "PROGRESS_AFTER", -1.0)
    monkeypatch.setattr(_progress, "LINE_AFTER", 0.0)
    monkeypatch.setattr(_progress.sys.stderr, "isatty", lambda: terminal)
    with reporting(None, "working") as report:
        assert isinstance(report, ProgressBar) == terminal
        report(1, 3)
        report(2, 3)
    assert terminal or capsys.readouterr() == ("", "")
    assert inspect.signature(ct.recalibration_study).parameters["progress"].default is None


def test_a_function_is_called_itself():
    def mine(done, total):
        """What a user passes."""

    with reporting(mine, "working") as report:
        assert report is mine


def test_a_bar_appears_after_a_second_and_goes(capsys, monkeypatch):
    clock = itertools.count()
    monkeypatch.setattr(_progress.time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(_progress.sys.stderr, "isatty", lambda: True)
    with reporting(True, "simulating labels") as report:
        assert isinstance(report, ProgressBar)
        report(0, 10)  # one second
        assert report._bar is None
        report(5, 10)
        bar = report._bar
        assert bar is not None
        assert bar.tasks[0].description == "simulating labels"
        assert (bar.tasks[0].completed, bar.tasks[0].total) == (5, 10)
        report(10, 10)
        assert bar.tasks[0].completed == 10
    assert bar.finished
    assert not bar.live.is_started
    assert capsys.readouterr().out == "", "the bar is on the error stream"


def test_the_bar_goes_when_interrupted(monkeypatch):
    monkeypatch.setattr(_progress, "PROGRESS_AFTER", -1.0)
    monkeypatch.setattr(_progress.sys.stderr, "isatty", lambda: True)
    seen = []

    def work():
        with reporting(True, "working") as report:
            report(1, 10)
            seen.append(report._bar)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert seen[0] is not None
    assert not seen[0].live.is_started


def test_lines_where_no_terminal_is(capsys, monkeypatch):
    """How long it takes as soon as that is known, then share and time left every 10 seconds; nothing if it is short."""
    now = [0.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])

    def lines(seconds_each, seconds_first=0.0):
        now[0] = 100.0  # preparation
        with reporting(True, "simulating labels") as report:
            assert isinstance(report, ProgressLines)
            for done in range(101):
                report(done, 100)
                now[0] += seconds_each + (seconds_first if done == 0 else 0)
        return capsys.readouterr()

    assert lines(0.09) == ("", "")
    assert lines(0.09, seconds_first=9) == ("", ""), "functions are compiled once"
    out, err = lines(0.4)
    assert out == ""
    assert err.splitlines() == [
        "simulating labels: about 40 s expected",
        "simulating labels: 29 % done, about 28 s left",
        "simulating labels: 54 % done, about 18 s left",
        "simulating labels: 79 % done, about 8 s left",
    ]
    assert lines(60)[1].splitlines()[:2] == [
        "simulating labels: about 99 min expected",
        "simulating labels: 3 % done, about 97 min left",
    ]
    assert "about 9.9 h expected" in lines(360)[1]


def test_a_function_that_is_compiled_later_is_not_taken_for_work(capsys, monkeypatch):
    """A thousandth of the work in 4 seconds, and then the rest at once; what goes on so slowly is said after 10."""
    now = [0.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    with reporting(True, "simulating labels") as report:
        for time, done in ((0, 0), (1, 1), (5, 2), (6, 900), (7, 1000)):
            now[0] = 100.0 + time
            report(done, 1000)
    assert capsys.readouterr().err == ""
    with reporting(True, "simulating labels") as report:
        for time, done in ((0, 0), (1, 1), (5, 2), (12, 4)):
            now[0] = 100.0 + time
            report(done, 1000)
    assert capsys.readouterr().err == "simulating labels: about 61 min expected\n"


def test_a_test_in_a_pipe_says_how_long_it_takes(capsys, monkeypatch):
    monkeypatch.setattr(_progress, "PROGRESS_AFTER", -1.0)
    monkeypatch.setattr(_progress, "LINE_AFTER", -1.0)
    ct.calibration_test(*problem(), **FAST | {"n_resamples": 4999}, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert "expected" in lines[0]
    assert all("done, about" in line for line in lines[1:])


def test_nothing_else_is_taken():
    for wrong in ("bar", 1, 0):
        with pytest.raises(TypeError, match="`progress` must be True, False or a function of"), reporting(wrong, "x"):
            pass
