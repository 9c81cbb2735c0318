"""The values of columns: probabilities as numbers, labels without gaps; what is wrong is named by line and column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions.files._table import Table, is_number, shortened
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import divided_by_sums
from caltest.results._note import warn_user

MOST_NORMALISED = 0.1
"""Sums that miss 1 by more than this are no rounding."""

_OUTSIDE = 1e-6  # numbers that miss [0, 1] by less are left to the validation, which has a tolerance


def probabilities(table: Table, columns: tuple[str, ...]) -> NDArray[Any]:
    """Return the probabilities of columns, ``(n_samples, n_columns)``; one column of vectors gives their elements.

    Raises
    ------
    ValueError
        If a value is missing, no number or outside [0, 1].
    """
    if len(columns) == 1 and holds_vectors(table, columns[0]):
        prob = _vectors(table, columns[0])
    else:
        prob = np.column_stack([_numbers(table, name) for name in columns])
    refuse_outside(prob, table, columns)
    return prob


def refuse_outside(prob: NDArray[Any], table: Table, columns: tuple[str, ...]) -> None:
    """Raise ValueError if a probability is missing or outside [0, 1], with its place and column."""
    if prob.min() >= -_OUTSIDE and prob.max() <= 1 + _OUTSIDE:  # NaN fails every comparison
        return
    wrong = ~((prob >= -_OUTSIDE) & (prob <= 1 + _OUTSIDE))
    row, *element = (int(i) for i in np.argwhere(wrong)[0])
    value = prob[(row, *element)]
    is_one = len(columns) == 1 and (not element or prob.shape[1] == 1)
    name = columns[0] if is_one else columns[element[0]] if len(columns) > 1 else f"{columns[0]}[{element[0]}]"
    if np.isnan(value):
        table.refuse(f"the value {table.place(row)}, column {name!r}, is missing; {_REMEDY}")
    table.refuse(f"{value:.12g} {table.place(row)}, column {name!r}, is no probability{_hint(prob)}")


_REMEDY = "correct it, remove the row, or name other columns with `prob`"


def _hint(prob: NDArray[Any]) -> str:
    finite = prob[np.isfinite(prob)]
    if finite.size and finite.min() >= 0 and 1 < finite.max() <= 100 * (1 + 1e-9) and np.median(finite) > 1:
        return " between 0 and 1; if these are percentages, divide them by 100"
    if finite.size and (finite.min() < 0 or finite.max() > 1):
        return (
            " between 0 and 1; if these are logits, apply softmax first; if the column is something else, name the "
            "columns with `prob`"
        )
    return f"; {_REMEDY}"


def _numbers(table: Table, name: str) -> NDArray[Any]:
    column = table.frame[name]
    kind = column.dtype.kind
    if kind == "f" and isinstance(column.dtype, np.dtype):
        return column.to_numpy()
    if kind in "iub" and isinstance(column.dtype, np.dtype):
        return column.to_numpy().astype(np.float64)
    if kind in "Mm":
        table.refuse(f"column {name!r} holds dates or times, not probabilities; {_REMEDY}")
    cells = column.astype(object).where(column.notna(), np.nan).tolist()
    for row, cell in enumerate(cells):
        if isinstance(cell, str) or not _is_real(cell):
            raise _no_number(table, name, row, cells)
    return np.array([float(cell) for cell in cells])


def _is_real(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError, OverflowError):
        return False
    return not isinstance(cell, bytes)


def _no_number(table: Table, name: str, row: int, cells: list[Any]) -> ValueError:
    """Name the first value that is no number; of texts the first one that does not even look like one."""
    where = next((i for i, c in enumerate(cells) if isinstance(c, str) and not is_number(c)), row)
    cell = cells[where]
    what = repr(cell)[:60]
    hint = _REMEDY
    if isinstance(cell, dict | list | tuple | np.ndarray):
        what, hint = "a list or a record", "vectors of probabilities must be the only probability column"
    elif isinstance(cell, str) and cell.strip().endswith("%"):
        hint = "remove the percent signs and divide by 100"
    elif isinstance(cell, str) and "," in cell and is_number(cell):
        hint = 'if the decimal mark is a comma, say `decimal=","`'
    elif isinstance(cell, str) and is_number(cell):
        hint = "the numbers are stored as texts: convert them"
    return ValueError(f"{table.name}: {what} {table.place(where)}, column {name!r}, is not a number; {hint}")


def holds_vectors(table: Table, name: str) -> bool:
    """Return whether the cells of a column are lists or arrays."""
    column = table.frame[name]
    return column.dtype == object and len(column) > 0 and isinstance(column.iloc[0], list | tuple | np.ndarray)


def _vectors(table: Table, name: str) -> NDArray[Any]:
    cells = table.frame[name].tolist()
    n_classes = len(cells[0])
    for row, cell in enumerate(cells):
        length = len(cell) if isinstance(cell, list | tuple | np.ndarray) else None
        if length != n_classes or n_classes == 0:
            got = "nothing" if length is None else f"{length} of them"
            table.refuse(
                f"column {name!r} must hold {n_classes or 'several'} probabilities in every row, got "
                f"{got} {table.place(row)}"
            )
        if not all(isinstance(value, int | float | np.number) for value in cell):
            table.refuse(f"column {name!r} must hold lists of numbers, got {cell!r:.60} {table.place(row)}")
    return np.array([np.asarray(cell, dtype=np.float64) for cell in cells])


def labels(table: Table, name: str) -> NDArray[Any]:
    """Return labels: integers where all are whole numbers, otherwise as they are.

    Raises
    ------
    ValueError
        If a label is missing, or is no label: a fraction, a date, a list.
    """
    column = table.frame[name]
    gaps = np.flatnonzero(column.isna().to_numpy())
    if gaps.size:
        table.refuse(f"the label {table.place(int(gaps[0]))}, column {name!r}, is missing; remove the row")
    if column.dtype.kind in "Mm":
        table.refuse(f"column {name!r} holds dates or times, not labels; name the label column with `label`")
    values = column.to_numpy()
    if values.dtype.kind == "O":
        values = _of_objects(table, name, values.tolist())
    if values.dtype.kind == "f":
        broken = np.flatnonzero(~(np.isfinite(values) & (values == np.rint(values)) & (np.abs(values) < 2**53)))
        if broken.size:
            row = int(broken[0])
            table.refuse(
                f"{values[row]:.12g} {table.place(row)}, column {name!r}, is no label; labels are texts "
                "or whole numbers: name their column with `label`"
            )
        values = values.astype(np.int64)
    return values


def _of_objects(table: Table, name: str, cells: list[Any]) -> NDArray[Any]:
    """Return labels in an array of one kind; a column of texts and numbers becomes one of texts."""
    odd = next((row for row, cell in enumerate(cells) if isinstance(cell, list | dict | tuple | np.ndarray)), None)
    if odd is not None:
        table.refuse(f"column {name!r} holds lists or records {table.place(odd)}, not labels; name another column")
    if all(isinstance(cell, bool | np.bool_) for cell in cells):
        return np.array(cells, dtype=bool)
    if not any(isinstance(cell, str | bytes) for cell in cells) and all(_is_real(cell) for cell in cells):
        return np.array([float(cell) for cell in cells])
    texts = [cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell) for cell in cells]
    whole = all(text.removeprefix("-").isdecimal() and text.isascii() and len(text) < 19 for text in texts)
    values = np.array([int(text) for text in texts]) if whole else np.empty(len(texts), dtype=object)
    if not whole:
        values[:] = texts
    return values


def refuse_several_models(table: Table, columns: Sequence[str], prob: NDArray[Any]) -> None:
    """Refuse guessed columns that are no probabilities of classes, such as the predictions of two models.

    Raises
    ------
    ValueError
        If most sums miss 1 by more than `MOST_NORMALISED`.
    """
    total = prob.sum(axis=1, dtype=np.float64)
    off = np.flatnonzero(np.abs(total - 1) > MOST_NORMALISED)
    if 2 * off.size > len(total):
        where = table.place(int(off[0]))
        table.refuse(
            f"the columns {shortened(list(columns))} do not hold the probabilities of classes: {where} "
            f"they sum to {total[off[0]]:.4g}, not to 1; name the probability columns with `prob`, one of them if each "
            "is the prediction of another model"
        )


def normalised(name: str, prob: NDArray[Any], place: Callable[[int], str]) -> NDArray[Any]:
    """Return probabilities whose rows sum to 1, and say the largest change.

    Raises
    ------
    ValueError
        If a sum misses 1 by more than `MOST_NORMALISED`: this is no rounding.
    """
    if prob.ndim == 1:
        return prob
    total = prob.sum(axis=1, dtype=np.float64)
    row = int(np.argmax(np.abs(total - 1)))
    if not abs(total[row] - 1) <= MOST_NORMALISED:
        refuse(
            f"{name}: `normalise` is for rounding, and the probabilities {place(row)} sum to "
            f"{total[row]:.6g}; are all probability columns named, and no others?",
        )
    divided = divided_by_sums(prob)
    change = np.abs(divided - prob)
    n_off = int(np.count_nonzero(np.abs(total - 1) > 1e-9))
    where = int(np.argmax(change.max(axis=1)))
    warn_user(
        f"{name}: {n_off} of {len(prob)} rows did not sum to 1 and were divided by their sums; the largest change "
        f"of a probability is {change.max():.3g} ({place(where)}, whose sum was {total[where]:.6g})."
    )
    return divided
