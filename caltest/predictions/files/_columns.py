"""Guesses: which column holds the labels, which the probabilities, and what the others may be."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._class_columns import PREFIXES, normal
from caltest.predictions._ids import advice_on_groups, names_an_id
from caltest.predictions.files._table import Table, is_number, shortened
from caltest.predictions.files._values import holds_vectors

LABEL_NAMES = ("label", "labels", "y_true", "y", "target", "true", "truth", "class", "outcome", "actual")
PROB_NAMES = ("y_prob", "prob", "probs", "proba", "probabilities", "softmax", "predictions", "scores", "p")
_FOLD_WORDS = {"fold", "folds", "split"}
_WEIGHT_NAMES = {"weight", "weights", "sample_weight", "w"}


def guess_label(table: Table, prob: Sequence[str] | None) -> str:
    """Return the label column by its name, or as the only one that holds no fractions.

    Raises
    ------
    ValueError
        If there is none, or more than one.
    """
    frame = table.frame
    free = [name for name in frame.columns if name not in (prob or ()) and not normal(name).startswith(PREFIXES)]
    by_name = [name for known in LABEL_NAMES for name in free if normal(name) == known]
    if len(by_name) == 1:
        return by_name[0]
    candidates = by_name
    if not by_name:
        whole = [name for name in free if frame[name].dtype.kind != "f" and not holds_vectors(table, name)]
        whole = [name for name in whole if not _mostly_numbers(table, name) and not name.startswith("Unnamed: ")]
        by_type = [name for name in whole if not _is_aside(table, name)] or whole
        if len(by_type) == 1:
            return by_type[0]
        candidates = by_type
        one_hot = len(by_type) > 1 and all(set(frame[name].unique()) <= {0, 1} for name in by_type)
        if one_hot and not frame[by_type].sum(axis=1).ne(1).any():
            msg = (
                f"{table.name}: the labels seem to be one-hot, in the columns {shortened(by_type)}; write one column "
                "with the class of each row"
            )
            raise ValueError(msg)
    if candidates:
        msg = f"{table.name}: any of the columns {shortened(candidates)} could hold the labels; name it with `label`"
    else:
        msg = (
            f"{table.name}: no column looks like labels, which are texts or whole numbers, among "
            f"{shortened(list(frame.columns))}; name it with `label`"
        )
    raise ValueError(msg)


def guess_prob(table: Table, label: str, classes: set[str]) -> tuple[str, ...]:
    """Return the probability columns: by their names, as those of the classes, or as all that hold fractions.

    ``classes`` are the labels as texts.

    Raises
    ------
    ValueError
        If there is none; if a column seems to be one of them, but holds something that is no number.
    """
    frame = table.frame
    rest = [name for name in frame.columns if name != label]
    numeric = [name for name in rest if _is_numeric(frame[name])]
    floats = [name for name in numeric if frame[name].dtype.kind not in "iub" and not _is_aside(table, name)]
    prefixed = [name for name in rest if normal(name).startswith(PREFIXES)]
    vectors = [name for name in rest if holds_vectors(table, name)]
    if prefixed:
        chosen = prefixed
    elif vectors and not floats:
        chosen = [name for name in vectors if normal(name) in PROB_NAMES] or vectors
        if len(chosen) > 1:
            msg = f"{table.name}: several columns hold vectors: {shortened(chosen)}; name one with `prob`"
            raise ValueError(msg)
        return tuple(chosen)
    else:
        named = set(floats) | {name for name in numeric if _belongs(table, name, floats, classes)}
        broken = [name for name in rest if name not in numeric and _mostly_numbers(table, name)]
        named |= {name for name in broken if not _is_aside(table, name)}  # refused, with the value that is no number
        chosen = [name for name in rest if name in named]
    if not chosen:
        whole = [name for name in numeric if not _is_aside(table, name)]
        hint = f"; {shortened(whole)} holds whole numbers" if len(whole) == 1 else ""
        msg = (
            f"{table.name}: no column of probabilities (floats) beside the label {label!r}{hint}; name them with `prob`"
        )
        raise ValueError(msg)
    return tuple(chosen)


def _is_numeric(column: Any) -> bool:
    if column.dtype.kind in "fiub":
        return True
    if column.dtype.kind != "O" or str(column.dtype) in {"str", "string"}:
        return False
    import decimal

    return any(isinstance(cell, decimal.Decimal) for cell in column.head(20))


def _belongs(table: Table, name: str, floats: list[str], classes: set[str]) -> bool:
    """Return whether a column of whole numbers is a probability that happens to be always 0 or 1.

    It is if its name is a class, or a number as those of the other columns are.
    """
    values: NDArray[Any] = table.frame[name].to_numpy()
    if _is_aside(table, name) or not np.isin(values, (0, 1)).all() or not floats:
        return False
    stem = re.fullmatch(r"(.*?)([0-9]+)", name)
    return name in classes or bool(stem and any(re.fullmatch(re.escape(stem[1]) + "[0-9]+", f) for f in floats))


def _mostly_numbers(table: Table, name: str) -> bool:
    """Return whether a column of texts looks like numbers, but for some values."""
    column = table.frame[name]
    if column.dtype.kind != "O" or holds_vectors(table, name):
        return False
    cells = [str(cell).strip().removesuffix("%").strip() for cell in column.dropna().head(1000)]
    looks = [is_number(cell) for cell in cells]
    fractions = [not cell.lstrip("+-").isdecimal() for cell, good in zip(cells, looks, strict=True) if good]
    return sum(looks) >= max(1, len(cells) / 2) and (any(fractions) or sum(looks) < len(cells))


def _is_aside(table: Table, name: str) -> bool:
    """Return whether a column has the name of an id, a fold or a weight, or is the number of the row."""
    words = set(re.split(r"[^a-z]+", name.lower()))
    return bool(
        words & _FOLD_WORDS
        or normal(name) in _WEIGHT_NAMES
        or names_an_id(name)
        or normal(name) in {"index", "row"}
        or name.startswith("Unnamed: ")
    )


def notice(table: Table, used: Sequence[str], others: dict[str, str | None]) -> tuple[list[str], list[str]]:
    """Return sentences about columns that are not used: those that matter for the p-value, and the others."""
    warned, said, n_rows = [], [], len(table.frame)
    for name in table.frame.columns:
        if name in used or name in others.values() or holds_vectors(table, name):
            continue
        column = table.frame[name]
        n_different = len(set(map(str, column.tolist()))) if column.dtype.kind == "O" else column.nunique()
        words = set(re.split(r"[^a-z]+", name.lower()))
        found = f"{table.name}: the column {name!r} has {n_different} different values in {n_rows} rows."
        repeats = 1 < n_different < n_rows
        if repeats and words & _FOLD_WORDS and not others["folds"]:
            warned.append(
                f"{found} If it is the fold of a cross-validation, name it with `folds`: pooled folds mislead."
            )
        elif repeats and names_an_id(name) and not others["groups"]:
            warned.append(f"{found} {advice_on_groups(n_different)}")
        elif normal(name) in _WEIGHT_NAMES and not others["sample_weight"] and column.dtype.kind in "iuf":
            warned.append(f"{found} If these are weights of the observations, name it with `sample_weight`.")
        else:
            said.append(f"the column {name!r} is not used")
    return warned, said
