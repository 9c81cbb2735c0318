"""``caltest guess FILE``: what would be read from a file, without a test."""

from __future__ import annotations

import argparse
import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from caltest.cli._messages import WORDS, say, translate
from caltest.cli._options import (
    FILES,
    HelpFormatter,
    add_columns,
    add_design,
    add_reading,
    design_of,
    facts_of,
    read_file,
    shortened,
)

if TYPE_CHECKING:
    from typing import Any

    from caltest.predictions import PredictionFile

_FIRST_ROWS, _MOST_COLUMNS = 5, 12

_EXAMPLES = """
examples:
  caltest guess predictions.csv
  caltest guess semicolons.csv --sep ";" --decimal ","
  caltest guess binary.csv --classes yes
"""


def add_command(commands: Any) -> None:
    """Add ``guess`` to the commands of a parser."""
    guess = commands.add_parser(
        "guess",
        help="show what would be read from a file, without a test",
        description="Show how a file would be read: its format, which column holds the labels, which column is the "
        "probability of which label, what else was noticed, and the first rows. Nothing is tested. The exit code is 0 "
        "if 'caltest test' would read the file, and 2 if not.",
        epilog=_EXAMPLES,
        formatter_class=HelpFormatter,
    )
    guess.add_argument("file", type=Path, metavar="FILE", help=FILES)
    guess.add_argument("--json", action="store_true", help="print JSON instead of text")
    add_columns(guess)
    add_design(guess)
    add_reading(guess)
    guess.set_defaults(run=_run, words=WORDS)


def _run(options: argparse.Namespace) -> int:
    data = read_file(options.file, options)
    _validate(data)
    print(_as_json(data, options.file) if options.json else _as_text(data, options), flush=True)
    return 0


def _validate(data: PredictionFile) -> None:
    """Raise what ``caltest test`` would raise, as it does."""
    from caltest.predictions.inputs._parts import validate_folds
    from caltest.predictions.inputs._validation import validate_design, validate_given_problem, widen

    prob, note = widen(data.y_prob, "y_prob")
    validate_given_problem(data.y_true, prob, data.classes)
    if note is not None:
        say("note", translate(note.text, WORDS))
    validate_design(**design_of(data), n_samples=len(data.y_true))
    if data.folds is not None:
        validate_folds(data.folds, len(data.y_true))


def _as_text(data: PredictionFile, options: argparse.Namespace) -> str:
    from caltest.results._description import counted
    from caltest.results._text import terminal_width

    facts = {
        "file": "standard input" if str(options.file) == "-" else str(options.file),
        **data.reading,
        "observations": str(len(data.y_true)),
        "label column": f"{data.label}{' (guessed)' if data.label_guessed else ''}",
        "label -> column": shortened([f"{label} -> {column}" for label, column in data.columns.items()], _MOST_COLUMNS),
        "found by": translate(data.matched_by, WORDS),
        "labels": shortened([f"{label} ({n})" for label, n in data.counts.items()], _MOST_COLUMNS),
        "folds": options.folds or "none",
        "groups": options.groups or "none",
        "weights": options.weights or "none",
    }
    indent = " " * 21
    lines = [
        textwrap.fill(f"{what:<20} {said}", terminal_width(), subsequent_indent=indent, break_on_hyphens=False)
        for what, said in facts.items()
    ]
    never = [label for label, n in data.counts.items() if n == 0]
    notes = [f"the label {label} never occurs" for label in never[:3]] + list(data.noticed)
    lines += [textwrap.fill(f"note: {note}", terminal_width(), subsequent_indent="  ") for note in notes]
    return "\n".join([*lines, "", f"first rows, of {counted(len(data.y_true))}:", _first_rows(data)])


def _first_rows(data: PredictionFile) -> str:
    """Return labels and probabilities as they were read."""
    import numpy as np
    import pandas as pd

    prob = data.y_prob[:_FIRST_ROWS].reshape(len(data.y_prob[:_FIRST_ROWS]), -1)[:, :_MOST_COLUMNS]
    shown = pd.DataFrame(prob.astype(np.float64), columns=list(data.columns.values())[: prob.shape[1]])
    shown.insert(0, data.label, data.y_true[:_FIRST_ROWS], allow_duplicates=True)
    return shown.to_string(index=False, max_colwidth=40)


def _as_json(data: PredictionFile, path: Path) -> str:
    facts = {
        "source": str(path),
        **facts_of(data),
        "counts": [{"label": label, "n_samples": n} for label, n in data.counts.items()],
        "noticed": list(data.noticed),
    }
    return json.dumps({"data": facts}, indent=2, allow_nan=False)
