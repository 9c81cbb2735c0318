"""``caltest guess FILE``: what would be read from a file, without a test."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from caltest.cli._messages import WORDS, say, show, translate, wrapped
from caltest.cli._options import (
    FILES,
    add_command,
    add_file_options,
    add_option,
    facts_of,
    read_file,
    reading_of,
    reread,
)
from caltest.predictions.inputs._refusals import shortened

if TYPE_CHECKING:
    from typing import Any, BinaryIO

    from caltest.predictions import PredictionFile

_FIRST_ROWS, _MOST_COLUMNS, _MOST_ROWS, _WIDEST = 5, 12, 40, 30

_EXAMPLES = """
examples:
  caltest guess predictions.csv
  caltest guess semicolons.csv --sep ";" --decimal ","
  caltest guess binary.csv --classes yes
"""


def add_to(commands: Any) -> None:
    """Add ``guess`` to the commands of a parser."""
    guess = add_command(
        commands,
        "guess",
        _run,
        help="show what would be read from a file, without a test",
        description="Show how a file would be read: its format, which column holds the labels, which column is the "
        "probability of which label, what else was noticed, and the first rows. Nothing is tested. A file that is "
        "refused is shown column by column, with the command that would read it if one is known. The exit code is 0 if "
        "'caltest test' would read the file, and 2 if not.",
        epilog=_EXAMPLES,
    )
    guess.add_argument("file", type=Path, metavar="FILE", help=FILES)
    add_option(guess, "--json", "print JSON instead of text")
    add_file_options(guess)


def _run(options: argparse.Namespace) -> int:
    given = reread(options.file)
    try:
        data = read_file(given, options)
        _validate(data)
    except ValueError:
        if not options.json:
            _show_columns(given, options)
        raise
    facts = {
        "source": str(options.file),
        **facts_of(data),
        "counts": [{"label": label, "n_samples": n} for label, n in data.counts.items()],
        "noticed": list(data.noticed),
    }
    show(options, _as_text(data, options), facts)
    return 0


def _show_columns(given: Path | BinaryIO, options: argparse.Namespace) -> None:
    """Print the columns of a file that is refused, if it can be read at all."""
    import numpy as np
    import pandas as pd

    from caltest.predictions.files._read import read_columns

    if not isinstance(given, Path):
        given.seek(0)
    try:
        columns = read_columns(given, None, as_text=False, **reading_of(options))
    except ValueError:
        return
    shown = []
    for name, values in columns.items():
        column = pd.Series(values.ravel())
        present = column.dropna()
        try:
            low, high, different = present.min(), present.max(), present.nunique()
        except TypeError:  # lists, or texts and numbers
            low, high, different = "", "", len(set(map(str, present)))
        kinds = {"i": "whole numbers", "u": "whole numbers", "f": "numbers", "b": "true or false", "M": "times"}
        kind = kinds.get(
            column.dtype.kind, "texts" if present.map(lambda one: isinstance(one, str)).all() else "others"
        )
        kind = f"{kind}, {' x '.join(map(str, values.shape))}" if values.ndim > 1 else kind
        said = [f"{one:.6g}" if isinstance(one, float | np.floating) else str(one) for one in (low, high, *column[:3])]
        row = (name, kind, f"{different:,}", f"{len(column) - len(present):,}", *said[:2], ", ".join(said[2:]))
        shown.append([text if len(text := str(cell)) <= _WIDEST else f"{text[:_WIDEST]}..." for cell in row])
    heads = ["column", "holds", "different", "missing", "from", "to", "first values"]
    print(pd.DataFrame(shown, columns=heads).head(_MOST_ROWS).to_string(index=False), flush=True)


def _validate(data: PredictionFile) -> None:
    """Raise what ``caltest test`` would raise, as it does."""
    from caltest.predictions.inputs._parts import validate_folds
    from caltest.predictions.inputs._validation import validate_design, validate_given_problem, widen

    prob, note = widen(data.y_prob, "y_prob")
    validate_given_problem(data.y_true, prob, data.classes)
    if note is not None:
        say("note", translate(note.text, WORDS))
    validate_design(data.sample_weight, data.groups, len(data.y_true))
    if data.folds is not None:
        validate_folds(data.folds, len(data.y_true))


def _as_text(data: PredictionFile, options: argparse.Namespace) -> str:
    from caltest.results._description import counted

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
        "weights": options.sample_weight or "none",
    }
    lines = wrapped((f"{what:<20} {said}" for what, said in facts.items()), subsequent_indent=" " * 21)
    never = [label for label, n in data.counts.items() if n == 0]
    notes = [f"the label {label} never occurs" for label in never[:3]] + list(data.noticed)
    said = wrapped((f"note: {note}" for note in notes), subsequent_indent="  ")
    shown = f"first rows, of {counted(len(data.y_true))}:\n{_first_rows(data)}"
    return "\n".join([lines, *([said] if notes else []), "", shown])


def _first_rows(data: PredictionFile) -> str:
    """Return labels and probabilities as they were read."""
    import numpy as np
    import pandas as pd

    prob = data.y_prob[:_FIRST_ROWS].reshape(len(data.y_prob[:_FIRST_ROWS]), -1)[:, :_MOST_COLUMNS]
    shown = pd.DataFrame(prob.astype(np.float64), columns=list(data.columns.values())[: prob.shape[1]])
    shown.insert(0, data.label, data.y_true[:_FIRST_ROWS], allow_duplicates=True)
    return shown.to_string(index=False, max_colwidth=40)
