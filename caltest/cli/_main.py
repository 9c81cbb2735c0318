"""From arguments to a command and its exit code."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

import caltest
from caltest.cli import (
    _apply,
    _clinical,
    _compare,
    _guess,
    _leaderboard,
    _plan,
    _repair,
    _report,
    _scan,
    _study,
    _subgroups,
    _test,
    _validity,
    _watch,
)
from caltest.cli._messages import explain, line, notes_on_stderr, say
from caltest.cli._options import typed_test

DONE, BAD_INPUT, DEFECT, STOPPED = 0, 2, 70, 130
"""Exit codes; 1 is "calibration is rejected", for ``caltest test --exit-code`` and ``caltest watch``, and nothing
else. 3 is "these data cannot decide", and 70 is EX_SOFTWARE of sysexits.h."""

_DEBUG = "CALTEST_DEBUG"
"""The environment variable with which an error is shown with its traceback."""

_BAD_INPUT = (ValueError, TypeError, OSError, ImportError)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: error: {' '.join(message.split())}\n")

    def words(self) -> dict[str, str]:
        """Return the long options by the arguments of Python that they are."""
        long = {action.dest: [name for name in action.option_strings if name[:2] == "--"] for action in self._actions}
        return {argument: names[0] for argument, names in long.items() if names}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        Command line arguments; those of the process by default.

    Returns
    -------
    int
        0 done, 1 calibration is rejected and ``--exit-code`` was given, or ``caltest watch`` raised an alarm, 2 bad
        input, 3 the data cannot decide and ``--exit-code`` was given, 70 another error (a defect, or too little
        memory), 130 stopped by Ctrl-C.
    """
    options = argparse.Namespace(words={}, hint="")
    if arguments is None:
        signal.signal(signal.SIGINT, lambda *_: _leave(options.hint))
    try:
        code = _run(arguments, options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        say("stopped", options.hint)
        return STOPPED
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except _BAD_INPUT as error:
        _show_traceback()
        say("error", explain(error, options.words))
        return BAD_INPUT
    except Exception as error:
        _show_traceback()
        say("error", _unexpected(error))
        return DEFECT
    return code


def _run(arguments: Sequence[str] | None, options: argparse.Namespace) -> int:
    """Run the command that the arguments name, or print the help where there is none."""
    parser = _parser()
    try:
        parser.parse_args(arguments, options)
    except SystemExit as stop:  # argparse leaves this way
        return stop.code if isinstance(stop.code, int) else DONE
    if not hasattr(options, "run"):
        parser.print_help()
        return DONE
    options.words = options.parser.words() | options.words
    options.command = shlex.join(["caltest", *(sys.argv[1:] if arguments is None else map(str, arguments))])
    options.notes = []  # about files
    files = [options.file] if hasattr(options, "file") else getattr(options, "files", [])
    if len(files) == 1 and files[0] and os.path.isfile(files[0]):  # otherwise each note says which file it is about
        named = " ".join([shlex.quote(str(files[0])), *(typed_test(options) if hasattr(options, "normalise") else [])])
        options.words = options.words | {"subgroup_tests": f"caltest subgroups {named} --by COLUMN"}
    with notes_on_stderr(options.words, options.notes):
        return options.run(options)


def _unexpected(error: Exception) -> str:
    """Return in one line what went wrong that is not the fault of the input."""
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return f"there is not enough memory for this{f': {text}' if text else ''}"
    found = f"{type(error).__name__}{f': {text}' if text else ''}"
    return f"unexpected {found}; this is a defect, please report it with what is printed if {_DEBUG}=1 is set"


def _show_traceback() -> None:
    """Print where the error was raised if this is wanted."""
    if os.environ.get(_DEBUG):
        traceback.print_exc()


def _leave(hint: str) -> NoReturn:
    """End the process at once: an exception could be caught by what runs, and would wait for threads that compute."""
    restored = "\r\x1b[2K\x1b[?25h" if sys.stderr.isatty() else ""  # a progress bar hides the cursor
    os.write(sys.stderr.fileno(), f"{restored}{line('stopped', hint)}\n".encode())
    os._exit(STOPPED)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="caltest",
        description="Test whether a classifier is calibrated: do events predicted with probability 0.8 happen 80 % of "
        "the time?",
        epilog="'caltest COMMAND --help' explains a command and shows examples. Exit codes: 0 done; 1 calibration is "
        "rejected ('caltest test', 'subgroups' and 'repair' with --exit-code), there is an alarm ('caltest watch') or "
        "a model is better than the one that is named ('caltest leaderboard' with --model); "
        "2 bad input; 3 the data cannot decide (with --exit-code); 70 another error; 130 stopped by Ctrl-C.",
    )
    parser.add_argument("--version", action="version", version=f"caltest {caltest.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")
    for command in (
        _test,
        _clinical,
        _subgroups,
        _compare,
        _leaderboard,
        _repair,
        _apply,
        _report,
        _watch,
        _guess,
        _plan,
        _scan,
        _study,
        _validity,
    ):
        command.add_to(commands)
    return parser
