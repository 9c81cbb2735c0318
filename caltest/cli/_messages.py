"""Errors, notes and exit codes of the command line: one line each on the error stream."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

REJECTED, UNDECIDABLE = 1, 3
"""Calibration is rejected; the data cannot decide. 2 is an error, as for other programs."""

MEANING = "1 if calibration is rejected at --alpha, 3 if the data cannot decide, 0 otherwise, 2 after an error"
"""What the exit codes of ``--exit-code`` mean."""


def code_of(decision: str) -> int:
    """Return the exit code of a decision, which a pipeline waits for.

    Data that cannot decide do not pass: a file of three hospitals would approve every model.

    Examples
    --------
    >>> code_of("rejected"), code_of("undecidable"), code_of("not rejected")
    (1, 3, 0)
    """
    return {"rejected": REJECTED, "undecidable": UNDECIDABLE}.get(decision, 0)


WORDS = {
    "y_prob": "the probability columns",
    "y_true": "the label column",
    "models": "the files",
    "lenses": "--lens",
    "header=None": "--no-header",
    "header=0": "--header",
    'input="percent"': "--percent",
    'input="logits"': "--logits",
    "drop_missing=True": "--drop-missing",
    "normalise=True": "--normalise",
    "classes": "--classes",
    "class_names": "--class-names",
    "folds": "--folds",
    "subgroup": "--by",
    "subgroup_tests": "caltest subgroups FILE --by COLUMN",
}
"""Arguments of Python that are called otherwise by the commands that read predictions; others are their options."""

_PHRASES = (
    (r"`y_prob` has (\d+)", r"there are \1 probability columns"),
    (r"column of `y_prob`", "probability column"),
    (r"a two-outcome lens such as (\w+\(\))", r'a lens with two outcomes, such as --lens "\1"'),
    ("`rng` must be None or", "`rng` must be"),
    ('pass input="logits"', "say --logits"),
    ("pass y_prob / 100", "say --percent"),
    (r"\b(in row \d+(, column \d+)?)", r"\1 (counted from 0)"),
)


def translate(text: str, words: Mapping[str, str]) -> str:
    """Return a message in which backquoted names of arguments are those of the command line."""
    own = [("divide each row by its sum", "say `normalise`")]
    if "normalise" not in words:
        own = [
            (": `normalise=True`", ", divide each row by its sum"),
            ("name it with `groups`; otherwise p-values", "p-values"),
            ("name it with `sample_weight`", "they are not used: all observations count alike"),
            ("name it with `folds`: pooled folds mislead", "pooled folds mislead"),
        ]
    for pattern, words_of_it in (*own, *_PHRASES):
        text = re.sub(pattern, words_of_it, text, count=1)
    if "subgroup_tests" in words:  # of the column that the message is about
        column = re.search("the column '([^']*)'", text)
        named = words["subgroup_tests"].replace("COLUMN", shlex.quote(column[1]) if column else "COLUMN")
        text = text.replace("`subgroup_tests`", f"'{named}'")
    text = re.sub("`([^`]+)`", lambda found: _as_option(found[1], words), text)
    return " ".join(text.split())


def _as_option(text: str, words: Mapping[str, str]) -> str:
    """Return the option of an argument, also of one with its value: ``sep=";"`` is ``--sep ";"``."""
    name, _, value = text.partition("=")
    return words[text] if text in words else f"{words[name]} {value}" if name in words and value else text


def explain(error: Exception, words: Mapping[str, str]) -> str:
    """Return what went wrong in one line."""
    if isinstance(error, OSError) and error.strerror:
        return translate(f"{error.filename}: {error.strerror.lower()}" if error.filename else error.strerror, words)
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"{error.name} is needed for this and is not installed: pip install {error.name}"
    return translate(str(error), words)


def line(kind: str, text: str) -> str:
    """Return a line such as "caltest: note: ..."."""
    return f"caltest: {kind}{f': {text}' if text else ''}"


def say(kind: str, text: str) -> None:
    """Print a line on the error stream."""
    print(line(kind, text), file=sys.stderr, flush=True)


def refuse_if(wrong: Any, msg: str) -> None:
    """Raise ValueError with a message if something is wrong."""
    if wrong:
        raise ValueError(msg)


def say_written(what: str, path: Path) -> None:
    """Say on the error stream where something was written."""
    print(f"{what} written to {path}", file=sys.stderr)


def show(options: argparse.Namespace, text: str, data: Any, **found: Any) -> None:
    """Print a text, or what is known of the data and what was found as strict JSON for people and programs."""
    print(json.dumps({"data": data, **found}, indent=2, allow_nan=False) if options.json else text, flush=True)


def wrapped(lines: Iterable[str], separator: str = "\n", **how: Any) -> str:
    """Return lines that are no wider than the terminal."""
    from caltest.results._text import terminal_width, wrap

    width = terminal_width()
    return separator.join("\n".join(wrap(one, width, **how)) for one in lines)


@contextmanager
def held(notes: list[Any]) -> Iterator[None]:
    """Add warnings to some notes, which are printed after the answer."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            notes += caught


@contextmanager
def notes_on_stderr(words: Mapping[str, str], later: Iterable[Any] = ()) -> Iterator[None]:
    """Print every warning as one line, at once, and the same one once; those that were held at the end."""
    from caltest.results import CalibrationWarning

    said = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = translate(str(message), words)
        if text not in said:
            said.add(text)
            say("note", text)

    with warnings.catch_warnings():
        warnings.simplefilter("always", CalibrationWarning)
        warnings.showwarning = show
        try:
            yield
        finally:
            for note in later:
                warnings.warn_explicit(note.message, note.category, note.filename, note.lineno)
