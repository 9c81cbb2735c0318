"""The lock of an output: processes, threads, kills, links, and systems without locks."""

import errno
import os
import signal
import subprocess
import sys

import pytest

from caltest.results import CalibrationWarning
from caltest.streaming.scans import _output_lock
from caltest.streaming.scans._output_lock import locked
from tests.house.processes import ROOT, in_fresh_process

HOLD = """
import sys
from caltest.streaming.scans._output_lock import locked
with locked(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock of an output until a line is sent."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", HOLD, str(tmp_path / "state.npz")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
    ) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def take(output):
    with locked(output):
        return True


def test_the_lock_of_another_process_is_refused_until_it_ends(tmp_path, holder):
    output = tmp_path / "state.npz"
    with pytest.raises(ValueError, match=rf"state\.npz is being written .*\(process {holder.pid} on .*\): wait until"):
        take(output)
    assert take(tmp_path / "other.npz")
    holder.communicate("\n")
    assert take(output)
    assert os.listdir(tmp_path) == []


def test_a_killed_process_holds_nothing(tmp_path, holder):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert os.listdir(tmp_path) == [".state.npz.caltest-lock"]
    assert take(tmp_path / "state.npz")
    assert os.listdir(tmp_path) == []


def test_a_second_scan_of_the_same_process_is_refused(tmp_path):
    output, link = tmp_path / "state.npz", tmp_path / "link.npz"
    link.symlink_to(output)
    with locked(output):
        for same in (output, str(output), link):
            with pytest.raises(ValueError, match=f"process {os.getpid()} on"):
                take(same)


def test_an_error_gives_the_lock_back(tmp_path):
    def fail():
        with locked(tmp_path / "state.npz"):
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert os.listdir(tmp_path) == []


def test_a_lock_file_that_was_removed_before_it_was_locked_is_made_again(tmp_path, monkeypatch):
    """Two processes open the file; the one that holds the lock removes it; the other one has locked what is gone."""
    output, lock = tmp_path / "state.npz", tmp_path / ".state.npz.caltest-lock"
    flock, calls = _output_lock.fcntl.flock, []

    def remove_then_lock(number, how):
        calls.append(number)
        if len(calls) == 1:
            lock.unlink()
        flock(number, how)

    monkeypatch.setattr(_output_lock.fcntl, "flock", remove_then_lock)
    with locked(output):
        assert lock.exists()
        with pytest.raises(ValueError, match="is being written"):
            take(output)
    assert len(calls) == 3


def test_a_link_or_another_file_in_place_of_the_lock_is_refused(tmp_path):
    victim, lock = tmp_path / "victim", tmp_path / ".state.npz.caltest-lock"
    victim.write_text("mine")
    lock.symlink_to(victim)
    with pytest.raises(OSError, match="state"):
        take(tmp_path / "state.npz")
    lock.unlink()
    os.link(victim, lock)
    with pytest.raises(FileExistsError, match="not a lock of caltest"):
        take(tmp_path / "state.npz")
    assert victim.read_text() == "mine"


def test_without_locks_a_scan_runs_with_a_warning(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(_output_lock.fcntl, "flock", refuse)
    with pytest.warns(CalibrationWarning, match=r"state\.npz cannot be locked here: run one scan into it at a time"):
        take(tmp_path / "state.npz")
    monkeypatch.setattr(_output_lock, "fcntl", None)
    with pytest.warns(CalibrationWarning, match="cannot be locked"):
        take(tmp_path / "state.npz")


def test_the_module_is_imported_where_there_is_no_fcntl():
    code = "import sys; sys.modules['fcntl'] = None; import caltest.streaming.scans._output_lock as m; print(m.fcntl)"
    assert in_fresh_process(code) == "None\n"
