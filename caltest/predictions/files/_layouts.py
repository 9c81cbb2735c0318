"""Tables that are not one observation a row with a number for each class, and the tables that they mean.

Each layout is recognised by what it holds, not by names alone, and is named in what is said about the reading.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from caltest.predictions.files._columns import LABEL_NAMES, is_predicted, is_true, likely_probabilities
from caltest.predictions.files._table import Table, is_number
from caltest.predictions.files._values import MOST_NORMALISED
from caltest.predictions.inputs._class_columns import normal, without_prefix
from caltest.predictions.inputs._refusals import shortened

_LABEL_KEYS, _SCORE_KEYS = ("label", "class", "name"), ("score", "probability", "prob", "confidence", "p")
_BOTH, _SPARK = 2, ("type", "values")
_NUMBERED = "LABEL_"
"""What pipelines write before the number of a class without a name."""


def arranged(table: Table) -> Table:
    """Return a table with one observation a row and one column for each class, and say which layout it had."""
    for arrange in (_of_choices, _of_lists, _of_scores, _of_objects, _of_long, _of_one_hot, _of_top_class):
        table = arrange(table) or table
    return table


def _said(table: Table, frame: Any, layout: str, place: Callable[[int], str] | None = None) -> Table:
    return replace(table, frame=frame, place=place or table.place).said("layout", f"{layout} (guessed)")


def _of_choices(table: Table) -> Table | None:
    """Read log-likelihoods of choices, as lm-eval logs them, as probabilities of the choices.

    They are divided by the sum of their exponentials. Where numbers of choices differ, the event is that the most
    probable one is right.
    """
    import pandas as pd
    from scipy.special import softmax

    frame = table.frame
    if not {"doc_id", "target", "filtered_resps"} <= set(frame.columns):
        return None
    rows = [_log_likelihoods(cell) for cell in frame["filtered_resps"]]
    target = pd.to_numeric(frame["target"], errors="coerce")
    if not all(rows) or target.isna().any():
        return None
    prob = [softmax(row) for row in rows]
    if len({len(row) for row in prob}) == 1:
        found = pd.DataFrame(np.array(prob)).add_prefix("p_").assign(target=target.astype(int))
        return _said(table, found, "log-likelihoods of choices (lm-eval), the probabilities of each row divided out")
    right = [int(row.argmax()) == int(own) for row, own in zip(prob, target, strict=True)]
    found = pd.DataFrame({"correct": right, "confidence": [float(row.max()) for row in prob]})
    return _said(table, found, "log-likelihoods of choices (lm-eval), the event is that the most probable one is right")


def _log_likelihoods(cell: Any) -> list[float] | None:
    """Return the first numbers of pairs such as ["-2.3", "False"], one for each choice."""
    if not isinstance(cell, list) or len(cell) < 2 or not all(isinstance(pair, list) and pair for pair in cell):
        return None
    texts = [str(pair[0]) for pair in cell]
    return [float(text) for text in texts] if all(map(is_number, texts)) else None


def _of_lists(table: Table) -> Table | None:
    """Read texts such as "[0.1, 0.9]" or "[0.1 0.9]", and vectors of Spark, as lists of numbers."""
    columns = {name: _lists(table.frame[name]) for name in table.frame.columns}
    found = {name: cells for name, cells in columns.items() if cells is not None}
    return replace(table, frame=table.frame.assign(**found)) if found else None


def _lists(column: Any) -> list[list[float]] | None:
    if column.dtype.kind != "O" or not len(column):
        return None
    cells = column.tolist()
    if all(isinstance(cell, dict) and set(_SPARK) <= set(cell) for cell in cells):
        return [_vector_of_spark(cell) for cell in cells]
    if not all(isinstance(cell, str) and cell.strip()[:1] == "[" and cell.strip()[-1:] == "]" for cell in cells):
        return None
    parts = [re.split(r"[\s,;]+", cell.strip()[1:-1].strip()) for cell in cells]
    if not all(is_number(text) for row in parts for text in row):
        return None
    return [[float(text) for text in row] for row in parts]


def _vector_of_spark(cell: dict[str, Any]) -> list[float]:
    """Return a vector of Spark, which is dense (type 1) or has the places of its values."""
    if cell["type"] == 1:
        return list(cell["values"])
    dense = np.zeros(int(cell["size"]))
    dense[cell["indices"]] = cell["values"]
    return [*map(float, dense)]


def _of_scores(table: Table) -> Table | None:
    """Read cells such as [{"label": "cat", "score": 0.9}, ...] or {"cat": 0.9, ...}, as pipelines return them."""
    import pandas as pd

    for name in table.frame.columns:
        column = table.frame[name]
        if column.dtype.kind != "O" or not len(column):
            continue
        rows = [_scores(cell) for cell in column]
        if not all(rows):
            continue
        labels = sorted({label for row in rows if row for label in row}, key=str)
        values = pd.DataFrame([[(row or {}).get(label, np.nan) for label in labels] for row in rows])
        scores = values.set_axis([f"p_{label}" for label in labels], axis=1)
        rest = table.frame.drop(columns=[name])
        if set(scores.columns) & set(rest.columns):
            continue
        return _said(table, pd.concat([rest, scores], axis=1), f"labels and scores in the column {name}")
    return None


def _scores(cell: Any) -> dict[str, float] | None:
    """Return the score of each label in a cell; None for anything else."""
    if isinstance(cell, str) and cell.strip()[:1] in {"[", "{"}:
        try:
            cell = json.loads(cell)
        except ValueError:
            return None
    if isinstance(cell, dict) and len(cell) > 1 and all(isinstance(value, int | float) for value in cell.values()):
        return {str(label): float(value) for label, value in cell.items()}
    if isinstance(cell, np.ndarray):
        cell = cell.tolist()
    if not isinstance(cell, list) or len(cell) < 2 or not all(isinstance(part, dict) for part in cell):
        return None
    keys = [next((key for key in known if key in cell[0]), None) for known in (_LABEL_KEYS, _SCORE_KEYS)]
    if None in keys or not all(set(keys) <= set(part) for part in cell):
        return None
    label, score = keys
    found = {str(part[label]): part[score] for part in cell}
    right = len(found) == len(cell) and all(isinstance(value, int | float) for value in found.values())
    return {name: float(value) for name, value in found.items()} if right else None


def _of_objects(table: Table) -> Table | None:
    """Read objects in cells as a column for each of their values; of a log of Inspect, whether answers were right."""
    import pandas as pd

    nested = [name for name in table.frame.columns if _holds(table.frame[name], dict)]
    if not nested:
        return None
    frame = table.frame.drop(columns=nested)
    for name in nested:
        cells = [cell if isinstance(cell, dict) else {} for cell in table.frame[name]]
        frame = pd.concat([frame, pd.json_normalize(cells).set_index(frame.index).add_prefix(f"{name}.")], axis=1)
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        table.refuse(f"{twice[0]!r} is the name of a column and of a value within an object; rename one of them")
    frame = frame[[name for name in frame.columns if not _holds(frame[name], list)]]  # such as messages
    scorers = [name for name in frame.columns if re.fullmatch(r"scores\.[^.]+\.value", name)]
    if len(scorers) != 1 or not set(frame[scorers[0]].unique()) <= set("CI") or "correct" in frame.columns:
        return _said(table, frame, f"a column for each value of the objects in {shortened(nested)}")
    right = frame.drop(columns=[*scorers, "target"], errors="ignore").assign(correct=frame[scorers[0]] == "C")
    return _said(table, right, f"a log of Inspect, of which the event is that {scorers[0]} is C (correct)")


def _holds(column: Any, kind: type) -> bool:
    return column.dtype.kind == "O" and any(isinstance(cell, kind) for cell in column)


def _of_long(table: Table) -> Table | None:
    """Read a row for each observation and class as one row for each observation."""
    import pandas as pd

    frame = table.frame
    likely = likely_probabilities(table)
    if len(likely) != 1:
        return None
    (prob,) = likely
    others = [name for name in frame.columns if name != prob and not isinstance(frame[name].iloc[0], list | np.ndarray)]
    sizes = {name: frame[name].nunique() for name in others}
    for observation in others:
        for kind in others:
            n_classes = sizes[kind]
            if observation == kind or n_classes < 2 or sizes[observation] * n_classes != len(frame):
                continue
            if sizes[observation] < n_classes or frame.duplicated([observation, kind]).any():
                continue
            total = frame.groupby(observation, sort=False)[prob].sum()
            if (total - 1).abs().max() > MOST_NORMALISED:
                continue
            wide = frame.pivot_table(index=observation, columns=kind, values=prob, sort=False)
            rest = frame.drop(columns=[prob, kind]).groupby(observation, sort=False)
            kept = [name for name in others if name not in {observation, kind} and (rest[name].nunique() == 1).all()]
            body = rest[kept].first() if kept else pd.DataFrame(index=wide.index)
            true = _true_class(frame, observation, kind, [name for name in others if name not in kept])
            seen = set(map(str, wide.columns))
            if true.empty and not any(set(map(str, body[name].unique())) <= seen for name in kept):
                continue  # nothing says which class is the true one
            names = [f"p_{label}" for label in wide.columns]
            found = pd.concat([body, true, wide.set_axis(names, axis=1)], axis=1).reset_index()
            places = [f"for {observation} {one}" for one in found[observation]]
            layout = f"one row for each {observation} and {kind}"
            return _said(table, found, layout, places.__getitem__)
    return None


def _true_class(frame: Any, observation: str, kind: str, names: list[str]) -> Any:
    """Return the class whose row is marked by 1, where the labels are such marks."""
    import pandas as pd

    for name in names:
        if name in {observation, kind} or not set(frame[name].unique()) <= {0, 1}:
            continue
        marked = frame[frame[name] == 1]
        if len(marked) == frame[observation].nunique() == marked[observation].nunique():
            return pd.Series(marked[kind].to_numpy(), marked[observation], name=name)
    return pd.DataFrame()


def _of_one_hot(table: Table) -> Table | None:
    """Read columns of 0 and 1, of which each row has one 1, as the name of that column."""
    frame = table.frame
    if any(normal(name) in LABEL_NAMES for name in frame.columns):
        return None
    marks = [name for name in frame.columns if frame[name].dtype.kind in "iub" and set(frame[name].unique()) <= {0, 1}]
    likely = likely_probabilities(table)
    if len(marks) < 2 or len(marks) != len(likely) or frame[marks].sum(axis=1).ne(1).any():
        return None
    start = next(k for k in range(len(marks[0]) + 1) if len({name[: k + 1] for name in marks}) > 1)
    labels, bare = [name[start:] for name in marks], [without_prefix(name) for name in likely]
    if set(bare) not in (set(marks), set(labels)):
        table.refuse(
            f"the labels seem to be one-hot, in the columns {shortened(marks)}, which are not named as the probability "
            f"columns are, {shortened(likely)}; write one column with the class of each row"
        )
    own = marks if set(marks) == set(bare) else labels
    found = frame.drop(columns=marks)
    found.insert(0, "label", np.array(own, dtype=object)[frame[marks].to_numpy().argmax(axis=1)])
    return _said(table, found, f"one-hot labels in the columns {marks[0]} to {marks[-1]}")


def _of_top_class(table: Table) -> Table | None:
    """Read labels, predicted classes and the score of these as whether the prediction was right."""
    frame = table.frame
    likely = likely_probabilities(table)
    if len(likely) != 1:
        return None
    whole = [name for name in frame.columns if name not in likely and frame[name].dtype.kind in "iubO"]
    predicted = [name for name in whole if is_predicted(name)]
    true = [name for name in whole if is_true(name)]
    of_pipeline = len(true) == _BOTH and not predicted and "label" in true and likely == ["score"]
    if of_pipeline:
        predicted, true = ["label"], [name for name in true if name != "label"]
    if len(predicted) != 1 or len(true) != 1:
        return None
    own, given = (frame[name].astype(str) for name in (*true, *predicted))
    if given.str.startswith(_NUMBERED).all():
        given = given.str.removeprefix(_NUMBERED)
    seen = set(own.unique()), set(given.unique())
    of_both = len(seen[0] | seen[1]) <= _BOTH and frame[likely[0]].min() < 1 / _BOTH  # it may be that of the event
    if not seen[0] & seen[1] or (of_both and not of_pipeline):
        return None
    found = frame.drop(columns=[*true, *predicted]).assign(correct=(own == given).astype(int))
    return _said(table, found, f"{true[0]} = {predicted[0]} is the event that the predicted class is right")
