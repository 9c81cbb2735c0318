"""Commands in a process of their own: starting, pipes, terminals, Ctrl-C; and the help."""

import os
import pty
import signal
import subprocess
import sys

import pytest

import caltest
from caltest.results import _progress
from tests.reference.cases import mostly_slow

CALTEST = [sys.executable, "-m", "caltest.cli"]
SHORT = ["test", "--lens", "Confidence", "--resamples", "99"]
LONG = ["test", "--resamples", "9999999"]


@pytest.mark.slow(few_draws=True)
def test_without_a_command_the_help_is_printed(run):
    code, out, err = run()
    assert (code, err) == (0, "")
    assert out.startswith("usage: caltest")
    assert out == run("--help")[1]
    for command in ("test", "compare", "watch", "guess", "study"):
        code, text, _ = run(command, "--help")
        assert code == 0
        assert f"\n    {command} " in out
        assert "\nexample" in text
        assert max(map(len, text.splitlines())) <= 80
    assert "SmoothECE" in run("test", "--help")[1]
    assert "3 the data cannot decide" in " ".join(out.split())
    merge = run("merge", "--help")[1]
    assert "caltest merge monday.npz" in merge
    assert "interruption" not in merge  # merging reads every state anew
    assert run("--version") == (0, f"caltest {caltest.__version__}\n", "")
    for wrong in (["best"], ["test", "--best"], ["study"], ["compare"], ["guess"], ["watch"]):
        code, out, err = run(*wrong)
        assert (code, out, err.count("\n")) == (2, "", 1)


@pytest.mark.slow(few_draws=True)
def test_help_and_refused_arguments_load_no_heavy_library():
    code = (
        "import sys; from caltest.cli import main\n"
        "for line in sys.stdin.read().splitlines():\n"
        "    main(line.split())\n"
        "    print('loaded:', *sorted({name.partition('.')[0] for name in sys.modules} & "
        "{'numpy', 'numba', 'pandas', 'scipy', 'matplotlib', 'sklearn', 'rich', 'joblib'}))\n"
    )
    # One process runs all of them in this order: what one command loads, those after it have as well.
    commands = "--help", "test --help", "test --resamples 0", "test --lens ClassWise(-1)", "test --statistic ECE(-1)"
    done = subprocess.run(
        [sys.executable, "-c", code], input="\n".join(commands), capture_output=True, check=True, text=True
    )
    loaded = [set(line.split()[1:]) for line in done.stdout.splitlines() if line.startswith("loaded:")]
    assert loaded[:4] == [set(), set(), set(), {"numpy"}]
    (last,) = loaded[4:]
    assert not last & {"pandas", "matplotlib", "sklearn"}


@pytest.mark.slow(few_draws=True)
def test_what_is_no_terminal_gets_plain_text(run, path, monkeypatch):
    monkeypatch.setattr(_progress, "PROGRESS_AFTER", 0)  # a terminal would get a bar at once
    code, out, err = run("test", path, "--resamples", "99")
    assert (code, err) == (0, "")
    assert not {"\x1b", "\r"} & set(out)


@pytest.mark.slow
def test_a_pipe_gets_plain_text():
    done = subprocess.run([*CALTEST, *SHORT], capture_output=True, check=True)
    assert done.stderr == b""
    assert b"\x1b" not in done.stdout
    assert b"\r" not in done.stdout


@pytest.mark.slow
def test_a_reader_that_stops_reading_is_no_error():
    for arguments in (SHORT, ["test", "--help"], []):
        with subprocess.Popen([*CALTEST, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.close()
            assert process.stderr.read() == b""
            assert process.wait() == 0


def on_a_terminal(command, interrupt=False):
    """Run a command whose error stream is a terminal: exit code, what it prints, what the terminal shows."""
    leader, follower = pty.openpty()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=follower) as process:
        os.close(follower)
        shown = b""
        try:
            while chunk := os.read(leader, 4096):
                shown += chunk
                if interrupt and b"simulating labels" in shown:
                    process.send_signal(signal.SIGINT)
                    interrupt = False
        except OSError:  # how Linux ends a closed terminal
            pass
        out, _ = process.communicate()
    os.close(leader)
    return process.returncode, out, shown


@pytest.mark.slow
def test_a_terminal_gets_a_progress_bar():
    code = (
        "import sys; from caltest import cli; from caltest.results import _progress; "
        "_progress.PROGRESS_AFTER = 0; sys.exit(cli.main())"
    )
    done, out, shown = on_a_terminal([sys.executable, "-c", code, *SHORT])
    assert done == 0
    assert b"simulating labels" in shown
    assert b"\x1b" not in out


@pytest.mark.slow
def test_ctrl_c_gives_the_terminal_back():
    code, out, shown = on_a_terminal([*CALTEST, *LONG], interrupt=True)
    assert (code, out) == (130, b"")
    assert shown.endswith(b"\x1b[?25hcaltest: stopped\r\n")


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("seconds", [0.4, *(pytest.param(s, marks=pytest.mark.slow) for s in (0.1, 3))])
def test_ctrl_c_is_one_line_and_exit_code_130(seconds):
    """Also while libraries are being imported, and at once while threads compute."""
    code = (
        "import os, signal, sys, threading; from caltest.cli import main; "
        "interrupt = threading.Timer({}, os.kill, (os.getpid(), signal.SIGINT)); interrupt.start(); sys.exit(main())"
    )
    command = [sys.executable, "-c", code.format(seconds), *LONG]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    *expected, last = done.stderr.splitlines()
    assert (done.returncode, done.stdout, last) == (130, b"", b"caltest: stopped")
    assert all(line.startswith(b"simulating labels: about") for line in expected), "a fast machine says how long"


RAISE = """
import sys
from caltest.cli import _guess, main
def fail(options):
    raise {error}
_guess._run = fail
sys.exit(main(["guess", "predictions.csv"]))
"""


@pytest.mark.parametrize(
    ("error", "words"),
    mostly_slow(
        [
            ("KeyError('name')", "unexpected KeyError: 'name'; this is a defect, please report it"),
            ("RuntimeError('in\\ntwo lines')", "unexpected RuntimeError: in two lines; this is a defect"),
            ("ZeroDivisionError", "unexpected ZeroDivisionError; this is a defect"),
            ("RecursionError", "unexpected RecursionError"),
            ("MemoryError('2 GiB')", "there is not enough memory for this: 2 GiB"),
        ]
    ),
)
def test_an_unexpected_error_does_not_exit_with_the_code_of_a_rejection(error, words):
    """1 means "rejected" to what runs the command."""
    done = subprocess.run(
        [sys.executable, "-c", RAISE.format(error=error)], capture_output=True, check=False, text=True
    )
    assert done.returncode == 70
    assert done.stderr.startswith(f"caltest: error: {words}")
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)


def test_a_variable_shows_where_an_error_was_raised(run, monkeypatch):
    monkeypatch.setenv("CALTEST_DEBUG", "1")
    code, _, err = run("test", "absent.csv")
    assert code == 2
    assert err.startswith("Traceback")
    assert err.splitlines()[-1].startswith("caltest: error: ")
