"""The command line: ``caltest test [FILE]``, ``caltest compare FILE FILE ...``, ``caltest study ...``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import caltest
from caltest.cli import _compare, _study, _test


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 done, 2 bad input.

    Parameters
    ----------
    arguments : sequence of str, optional
        Command line arguments; those of the process by default.
    """
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, OSError) as error:
        print(f"caltest: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="caltest", description="May predicted probabilities be taken at their word?")
    parser.add_argument("--version", action="version", version=f"caltest {caltest.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in (_test, _compare, _study):
        command.add_command(commands)
    return parser
