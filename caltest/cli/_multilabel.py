"""``caltest test FILE --multilabel``: are the probabilities of several labels of each row calibrated?"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from caltest.cli._messages import code_of, refuse_if, say_written, show
from caltest.cli._options import (
    NO_TIME,
    OF_COLUMNS,
    chosen,
    given_option,
    lead_column,
    parse_names,
    reading_of,
    standard_input,
    typed_options,
)
from caltest.predictions.inputs._refusals import shortened

if TYPE_CHECKING:
    from caltest.hypothesis_tests import MultilabelTable

_OTHERS = ("lens", "all", "n_exceedances")
"""Options of ``caltest test`` for one label, beside those of columns."""
_BESIDE = ("groups", "sample_weight", "time")


def run_multilabel(options: argparse.Namespace) -> int:
    """Test the labels of a file, print the table, and return the exit code."""
    import pandas as pd

    from caltest.hypothesis_tests import multilabel_table
    from caltest.predictions.files._read import read_columns
    from caltest.results._plain import to_plain

    refuse_if(options.file is None, "--multilabel needs a FILE")
    other = given_option(
        options, [name for name in (*OF_COLUMNS, *_OTHERS) if name not in ("label", "prob", "input", *_BESIDE)]
    )
    refuse_if(
        other is not None, f"{options.words.get(other, other)} is for a single label: leave out --multilabel or it"
    )
    source = standard_input() if str(options.file) == "-" else options.file
    columns = read_columns(source, None, as_text=False, **reading_of(options))
    is_table = not any(getattr(column, "ndim", 1) == 2 for column in columns.values())
    pairs = _pairs(options, list(columns)) if is_table else _of_arrays(options, columns)
    labels, event = _as_numbers({name: _column(columns, label) for name, (label, _) in pairs.items()})
    given = chosen(options, *_BESIDE).items()
    design: dict[str, Any] = {name: _column(columns, column) for name, column in given if column is not None}
    lead = lead_column(options)
    design["lead"] = options.lead if lead is None else _column(columns, lead)
    refuse_if(design["lead"] is not None and "time" not in design, NO_TIME)
    given_prob = pd.DataFrame({name: _column(columns, prob) for name, (_, prob) in pairs.items()})
    if options.input == "percent":
        given_prob = given_prob.apply(lambda values: values / 100 if values.dtype.kind in "iuf" else values)
    table = multilabel_table(
        pd.DataFrame(labels),
        given_prob,
        input="logits" if options.input == "logits" else "probabilities",
        **design,
        **chosen(options, "statistic", "n_resamples", "alpha", "workers", "rng", "progress"),
    )
    facts = {
        "source": str(options.file),
        "n_samples": table.n_samples,
        "columns": [{"name": name, "label": label, "prob": prob} for name, (label, prob) in pairs.items()],
        "label_guessed": options.label is None,
        "event": event,
    }
    text = str(table) if options.details else _as_text(table, pairs, event, options, is_table=is_table)
    found = {"means": to_plain(table.means()), "verdict": table.verdict.to_dict(), **table.to_dict()}
    show(options, text, facts, **found)
    if options.plot is not None:
        from caltest.plotting._parts import save_parts

        save_parts(table, options.plot)
        say_written("picture of the labels", options.plot)
    return code_of(table.decision) if options.exit_code else 0


def _pairs(options: argparse.Namespace, names: list[str]) -> dict[str, tuple[str, str]]:
    """Return the two columns of each label, by its name."""
    from caltest.predictions.inputs._label_columns import pair_columns

    if options.label is None and options.prob is None:
        beside = {*chosen(options, *_BESIDE).values(), lead_column(options)}
        return pair_columns([name for name in names if name not in beside])
    labels = [] if options.label is None else parse_names(options.label)
    probs = options.prob or []
    refuse_if(
        len(labels) != len(probs),
        f"--multilabel needs as many columns in --label as in --prob, got {len(labels)} and {len(probs)}",
    )
    used = [*labels, *probs]
    twice = next((name for name in used if used.count(name) > 1), None)
    refuse_if(twice is not None, f"the column {twice!r} is named twice; every column has one meaning")
    return {label: (label, prob) for label, prob in zip(labels, probs, strict=True)}


def _of_arrays(options: argparse.Namespace, arrays: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Add the columns of the two arrays of an NPZ file to its arrays, and return the pairs of them."""
    from caltest.predictions.files._columns import LABEL_NAMES, PROB_NAMES

    chosen_arrays = []
    for option, given, known in (
        ("--label", None if options.label is None else parse_names(options.label), LABEL_NAMES),
        ("--prob", options.prob, PROB_NAMES),
    ):
        names = given or [name for name in arrays if name.lower() in known][:1]
        refuse_if(len(names) != 1, f"{option} must name one array of this file: {shortened(list(arrays))}")
        chosen_arrays.append(names[0])
    label, prob = (_column(arrays, name) for name in chosen_arrays)
    refuse_if(
        label.ndim != 2 or label.shape != prob.shape,
        "--multilabel needs two arrays of the same shape (n_samples, n_labels), got "
        f"{' and '.join(f'{name!r} of shape {arrays[name].shape}' for name in chosen_arrays)}",
    )
    of_label, of_prob = chosen_arrays
    pairs = {str(k): (f"{of_label}[{k}]", f"{of_prob}[{k}]") for k in range(label.shape[1])}
    for k, (one, other) in enumerate(pairs.values()):
        arrays |= {one: label[:, k], other: prob[:, k]}
    return pairs


def _column(columns: Mapping[str, Any], name: str) -> Any:
    refuse_if(name not in columns, f"there is no column {name!r}; the columns are {shortened(list(columns))}")
    return columns[name]


def _as_numbers(labels: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Return labels in words such as yes and no as 1 and 0, and the word that means 1; numbers as they are."""
    import numpy as np
    import pandas as pd

    from caltest.predictions.inputs._class_columns import event_in_words

    words = sorted({value for column in labels.values() for value in column.tolist() if isinstance(value, str)})
    if not words:
        return labels, None
    event = event_in_words(words)
    refuse_if(event is None, f"a label column must hold 0 and 1, or words such as yes and no, got {shortened(words)}")
    found = {
        name: np.where(pd.isna(column), np.nan, column == event) if column.dtype == object else column
        for name, column in labels.items()
    }
    return found, str(event)


def _as_text(
    table: MultilabelTable,
    pairs: Mapping[str, tuple[str, str]],
    event: str | None,
    options: argparse.Namespace,
    *,
    is_table: bool,
) -> str:
    """Return the answer: which labels are wrong and how, and one table."""
    from caltest.results._description import Description, counted
    from caltest.results._text import to_text

    guessed = " (guessed by their names)" if options.label is None else ""
    columns = shortened([f"{name} -> {label}, {prob}" for name, (label, prob) in pairs.items()])
    remarks = [*table.how_to_read(), f"Labels, their columns and those of their probabilities: {columns}{guessed}."]
    remarks += [] if event is None else [f"Of the words in the label columns {event!r} means that a row has the label."]
    if table.rejected_tests.any():
        label, prob = pairs[table.labels[int(table.pvalue_adjusted.argmin())]]
        one = argparse.Namespace(**(vars(options) | {"label": label, "prob": [prob]}))
        command = " ".join(["caltest repair", shlex.quote(str(options.file)), *typed_options(one), "-o repaired.csv"])
        how = f" `{command}` recalibrates those of one label." if is_table else ""  # it reads one label
        remarks.insert(0, f"What to do: do not use the probabilities of these labels as they are.{how}")
    remarks.append("More: --details (how the p-values were found), --plot FILE, --json.")
    title = f"{options.file}: {counted(table.n_samples)}, {counted(len(table), 'label')}."
    return to_text(Description(title, [table.conclusion], [table.table()], remarks, table.all_notes))
