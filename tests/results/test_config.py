"""The context of options: what it sets, for how long, and what wins over it."""

import io
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import caltest as ct
from caltest.predictions.inputs._validation import validate_workers
from caltest.results import _config, _progress
from caltest.results._config import config_in_use, on_terminal, progress_in_use, workers_in_use
from caltest.results._progress import ProgressBar, reporting


@pytest.fixture
def terminal(monkeypatch):
    """An error stream that says it is a terminal."""
    monkeypatch.setattr(_config.sys.stderr, "isatty", lambda: True)


def test_workers_are_those_of_the_call_then_of_the_block_then_one():
    assert workers_in_use(None) == 1
    with ct.config_context(workers=3):
        assert (workers_in_use(None), validate_workers(None)) == (3, 3)
        assert (workers_in_use(2), validate_workers(2)) == (2, 2)
    assert workers_in_use(None) == 1
    with ct.config_context(workers=-1):
        assert config_in_use().workers == -1
        assert workers_in_use(None) == os.cpu_count()
    assert workers_in_use(np.int64(2)) == 2


def test_blocks_are_nested_and_leave_what_they_do_not_name():
    with ct.config_context(workers=2, progress=True):
        with ct.config_context(progress=False):
            assert (workers_in_use(None), progress_in_use(None)) == (2, False)
        with ct.config_context(workers=4):
            assert (workers_in_use(None), progress_in_use(None)) == (4, True)
        assert (workers_in_use(None), progress_in_use(None)) == (2, True)


def test_a_block_that_raises_ends_too():
    with pytest.raises(KeyboardInterrupt), ct.config_context(workers=2, progress=True):
        raise KeyboardInterrupt
    assert (workers_in_use(None), progress_in_use(None)) == (1, False)


def test_a_block_holds_in_its_own_thread():
    with ct.config_context(workers=2, progress=True), ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: (workers_in_use(None), progress_in_use(None))).result() == (1, False)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"workers": 0}, ValueError, "`workers` must be an integer >= 1, or -1 for all processors, got 0."),
        ({"workers": "2"}, TypeError, "`workers` must be an integer >= 1, or -1 for all processors, got '2'."),
        ({"workers": True}, TypeError, "`workers` must be an integer >= 1, or -1 for all processors, got True."),
        ({"progress": "bar"}, TypeError, "`progress` must be True, False or a function of .*, got 'bar'."),
        ({"progress": 1}, TypeError, "`progress` must be True, False or a function of .*, got 1."),
    ],
)
def test_bad_settings_are_refused_before_the_block(options, error, message):
    with pytest.raises(error, match=message), ct.config_context(**options):
        pytest.fail("the block was entered")
    assert config_in_use() == _config.Config()


@pytest.mark.usefixtures("terminal")
def test_progress_is_shown_on_a_terminal_unless_somebody_says_otherwise():
    assert progress_in_use(None) is True
    assert progress_in_use(False) is False
    with ct.config_context(progress=False):
        assert progress_in_use(None) is False
        assert progress_in_use(True) is True

    def mine(done, total):
        """What a user passes."""

    with ct.config_context(progress=mine):
        assert progress_in_use(None) is mine


def test_progress_is_not_shown_elsewhere(monkeypatch):
    assert progress_in_use(None) is False  # tests have no terminal
    for stream in (None, io.StringIO(), object()):
        monkeypatch.setattr(_config.sys, "stderr", stream)
        assert not on_terminal()
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(_config.sys, "stderr", closed)
    assert not on_terminal()


@pytest.mark.usefixtures("terminal")
def test_threads_and_worker_processes_show_no_bar_by_themselves(monkeypatch):
    found = []
    thread = threading.Thread(target=lambda: found.append(progress_in_use(None)))
    thread.start()
    thread.join()
    assert found == [False]
    monkeypatch.setattr("multiprocessing.parent_process", object)
    assert progress_in_use(None) is False
    assert progress_in_use(True) is True


@pytest.mark.usefixtures("terminal")
def test_work_inside_of_work_shows_no_second_bar(monkeypatch):
    monkeypatch.setattr(_progress, "PROGRESS_AFTER", -1.0)
    with reporting(None, "outside") as outside:
        assert isinstance(outside, ProgressBar)
        with reporting(None, "inside") as inside:
            assert not isinstance(inside, ProgressBar)
            inside(1, 2)
    with reporting(False, "outside"), reporting(None, "inside") as inside:
        assert not isinstance(inside, ProgressBar)
    assert progress_in_use(None) is True


def test_answers_do_not_depend_on_the_settings():
    y_true, y_prob = ct.datasets.load_digits_predictions()
    prob = next(iter(y_prob.values()))
    plain = ct.calibration_test(y_true, prob, n_resamples=99, rng=0)
    with ct.config_context(workers=2, progress=lambda done, total: None):
        assert ct.calibration_test(y_true, prob, n_resamples=99, rng=0).to_dict() == plain.to_dict()


@pytest.mark.usefixtures("terminal")
def test_functions_use_what_is_set_and_what_they_are_given_wins(monkeypatch):
    """Also the default: a bar on a terminal."""
    y_true, y_prob = [0, 1] * 20, np.linspace(0.1, 0.9, 40)
    found = []

    def kept(progress, description):
        found.append(progress_in_use(progress))
        return reporting(False, description)

    monkeypatch.setattr("caltest.hypothesis_tests._calibration.reporting", kept)
    ct.calibration_test(y_true, y_prob, n_resamples=9, rng=0)
    with ct.config_context(progress=False):
        ct.calibration_test(y_true, y_prob, n_resamples=9, rng=0)
        ct.calibration_test(y_true, y_prob, n_resamples=9, rng=0, progress=True)
    assert found == [True, False, True]
