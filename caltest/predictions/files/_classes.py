"""Which label has which column: by the names of the columns, by what was given, or by their order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._class_columns import match_event, match_labels, without_prefix
from caltest.predictions.files._table import shortened


class Match(NamedTuple):
    """Labels, the label of each column (None: class indices), and how they were matched."""

    y_true: NDArray[Any]
    classes: list[Any] | None
    by: str


class Columns(NamedTuple):
    """Probability columns: where they stand, and their names if these are known."""

    file: str
    names: tuple[str, ...]
    n_columns: int
    named: bool

    @property
    def bare(self) -> list[str]:
        """Names without prefixes, or the numbers in them if all have one: p0, class_0, y0."""
        numbered = [re.fullmatch(r"[^0-9]*([0-9]+)", name) for name in self.names]
        if all(numbered):
            return [match[1] for match in numbered if match]
        return [without_prefix(name) for name in self.names]

    @property
    def shown(self) -> str:
        """The names, as messages show them."""
        return shortened(list(self.names))


def match_classes(
    y_true: NDArray[Any], columns: Columns, classes: Sequence[Any] | None, class_names: Sequence[str] | None
) -> Match:
    """Return which label has which column.

    Raises
    ------
    ValueError
        If labels and columns contradict each other, or nothing says which column is whose.
    """
    if class_names is not None:
        if classes is not None:
            msg = "`classes` and `class_names` say the same thing in two ways; leave out one of them."
            raise ValueError(msg)
        return _by_class_names(y_true, columns, list(map(str, class_names)))
    seen = _seen(y_true)
    if classes is not None:
        return _given(y_true, columns, list(classes), seen)
    if columns.n_columns == 1:
        return _event(y_true, columns, seen)
    return _several(y_true, columns, seen)


def _seen(y_true: NDArray[Any]) -> list[Any]:
    """Return the different labels in their order."""
    import pandas as pd

    found = pd.unique(pd.Series(y_true)).tolist()
    return sorted(found, key=lambda value: (isinstance(value, str), value))


def _by_class_names(y_true: NDArray[Any], columns: Columns, names: list[str]) -> Match:
    n_classes = max(columns.n_columns, 2)
    if len(set(names)) < len(names) or len(names) != n_classes:
        msg = (
            f"`class_names` must be the {n_classes} different names of the labels 0 to {n_classes - 1}, got {names!r}."
        )
        raise ValueError(msg)
    if y_true.dtype.kind not in "iub" or y_true.min() < 0 or y_true.max() >= n_classes:
        wrong = next(value for value in y_true.tolist() if not isinstance(value, int) or not 0 <= value < n_classes)
        msg = (
            f"{columns.file}: `class_names` are the names of the labels 0 to {n_classes - 1}, got the label {wrong!r}; "
            "other labels are named by `classes`, the label of each column"
        )
        raise ValueError(msg)
    renamed = np.array(names, dtype=object)[y_true.astype(np.int64)]
    known = [name for name in (columns.bare, list(columns.names)) if columns.named and set(name) & set(names)]
    if not known:
        return Match(renamed, names, "`class_names`, in the order of the columns")
    if columns.n_columns == 1:
        event = known[0][0]
        return Match(
            renamed, [name for name in names if name != event] + [event], "`class_names` and the column's name"
        )
    if set(known[0]) != set(names):
        msg = f"{columns.file}: `class_names` are {shortened(names)}, and the columns are {columns.shown}; correct one"
        raise ValueError(msg)
    return Match(renamed, known[0], "`class_names` and the names of the columns")


def _given(y_true: NDArray[Any], columns: Columns, classes: list[Any], seen: list[Any]) -> Match:
    """Match by ``classes``, the label of each column; of one column the label of the event."""
    of_text = {"False": False, "True": True} if y_true.dtype.kind == "b" else {str(value): value for value in seen}
    wanted = [of_text.get(str(value), _like(value, y_true)) for value in classes]
    if columns.n_columns == 1:
        if len(wanted) > 1:  # whose probability it is would be a guess
            msg = (
                f"{columns.file}: `classes` names {len(wanted)} labels, and the only probability column is "
                f"{columns.names[0]!r}; name the label whose probability it is alone, such as {classes[-1]}"
            )
            raise ValueError(msg)
        return Match(y_true, _with_event(columns, wanted[0], seen), "`classes`")
    texts = list(map(str, classes))
    if columns.named and (_are_reordered(texts, columns.names) or _are_reordered(texts, columns.bare)):
        own = list(columns.names) if sorted(texts) == sorted(columns.names) else columns.bare
        order = ",".join(columns.names[own.index(text)] for text in texts)
        msg = (
            f"{columns.file}: the probability columns are {columns.shown}, and `classes` names them in another order; "
            f"`prob` {order} takes them in that order"
        )
        raise ValueError(msg)
    return Match(y_true, wanted, "`classes`")


def _are_reordered(names: Sequence[str], expected: Sequence[str]) -> bool:
    """Return whether names are the expected ones in another order."""
    return list(names) != list(expected) and sorted(names) == sorted(expected)


def _like(value: Any, y_true: NDArray[Any]) -> Any:
    """Return a label that does not occur as a number where all others are numbers."""
    is_number = isinstance(value, str) and y_true.dtype.kind in "iu" and value.removeprefix("-").isdecimal()
    return int(value) if is_number else value


def _with_event(columns: Columns, event: Any, seen: list[Any]) -> list[Any]:
    others = [value for value in seen if str(value) != str(event)]
    if len(others) == len(seen) >= 2:
        msg = f"{columns.file}: `classes` names the event {event!r}, and the labels are {shortened(seen)}"
        raise ValueError(msg)
    if len(others) > 1:
        msg = (
            f"{columns.file}: one probability column needs labels of two values, the event and its opposite; got "
            f"{shortened(seen)}"
        )
        raise ValueError(msg)
    return [others[0] if others else _opposite(event), event]


def _opposite(event: Any) -> Any:
    """Return a label for what is not the event, where the file has none."""
    if isinstance(event, bool):
        return not event
    return f"not {event}" if isinstance(event, str) else 1 - event if event in {0, 1} else event - 1


def _event(y_true: NDArray[Any], columns: Columns, seen: list[Any]) -> Match:
    """Match the labels to one column, which is the probability of the event."""
    name = columns.names[0]
    if len(seen) > 2:
        msg = (
            f"{columns.file}: the labels are {shortened(seen)}, and there is one probability column, {name!r}; labels "
            "of more than two classes need one for each class: correct the labels, or name the columns with `prob`"
        )
        raise ValueError(msg)
    is_binary = y_true.dtype.kind in "iub" and set(seen) <= {0, 1}
    if not columns.named and is_binary:
        return Match(y_true, None, "convention: the event is 1 or True")
    try:
        found = match_event(name, seen, None)
    except ValueError:
        msg = (
            f"{columns.file}: the labels are {shortened(seen)}, and the only probability column is {name!r}: is it "
            f"the probability of {seen[-1]}? Name the label whose probability it is with `classes`, such as {seen[0]}"
        )
        raise ValueError(msg) from None
    if is_binary:
        return Match(y_true, None, "convention: the event is 1 or True")
    if not columns.named or not found.names:
        msg = (
            f"{columns.file}: the labels are {shortened(seen)}, and nothing says whose probability the column {name!r} "
            f"is; name the event with `classes`: {' or '.join(map(str, seen))}"
        )
        raise ValueError(msg)
    return Match(y_true, _with_event(columns, next(iter(found.names)), seen), "the name of the column")


def _several(y_true: NDArray[Any], columns: Columns, seen: list[Any]) -> Match:
    """Match labels to several columns as those of a frame are matched."""
    are_texts = y_true.dtype.kind not in "iub"
    if not columns.named:
        if are_texts:
            msg = (
                f"{columns.file}: the labels are {shortened(seen)}, and the columns have no names: name the label of "
                "each column with `classes`, in their order"
            )
            raise ValueError(msg)
        return Match(y_true, None, "the order of the columns")
    if y_true.dtype.kind == "b" and columns.n_columns > 2:
        msg = (
            f"{columns.file}: the labels are True and False, and there are {columns.n_columns} probability columns, "
            f"{columns.shown}; name the two of these labels with `prob`"
        )
        raise ValueError(msg)
    try:
        found = match_labels(columns.names, seen, "the probability columns", "the label column holds")
    except ValueError as error:
        msg = f"{columns.file}: {error}"
        raise ValueError(msg) from None
    if found.positional:
        return Match(y_true, None, "the order of the columns (guessed)")
    label_of = {name: label for label, name in found.names.items()}
    numbers = "the numbers in the names of the columns"
    by = "the names of the columns" if are_texts or y_true.dtype.kind == "b" else numbers
    return Match(
        y_true,
        [label_of[name] for name in columns.names],
        f"{by} but for capitals and blanks (guessed)" if found.loose else by,
    )
