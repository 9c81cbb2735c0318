"""The values of columns: probabilities as numbers, labels without gaps; what is wrong is named by line and column."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Booleans
from caltest.predictions.files._source import Named
from caltest.predictions.files._table import Table, is_number
from caltest.predictions.inputs._refusals import shortened
from caltest.predictions.inputs._scale import INPUTS as SCALES
from caltest.predictions.inputs._scale import doubt_about_logits, probabilities_of_logits
from caltest.predictions.inputs._validation import MOST_PERCENT, divided_by_sums, rounding_of_sums, said_if_times
from caltest.results._decision import rejects
from caltest.results._description import counted
from caltest.results._note import warn_user

MOST_NORMALISED = 0.1
"""Sums that miss 1 by more than this are no rounding."""

_MOST_WORDS, _MOST_COLUMNS, _MANY_ROWS = 20, 5, 1000
_MANY = 0.2  # of the numbers of a column, outside [0, 1]: they are all of another kind
_SOME, _SEVERAL = 0.05, 3  # of those of a rare event above 1 %: so large a part, and so many different ones
_OUTSIDE = 1e-6  # numbers that miss [0, 1] by less are left to the validation, which has a tolerance


INPUTS = (*SCALES, "percent")
"""What numbers of predictions in files may be."""


def probabilities(
    table: Table, columns: tuple[str, ...], kind: str = "probabilities", words: Mapping[str, float] | None = None
) -> NDArray[Any]:
    """Return the probabilities of columns, ``(n_samples, n_columns)``; one column of vectors gives their elements.

    ``kind`` is one of `INPUTS`, and ``words`` are the probabilities that texts stand for.

    Raises
    ------
    ValueError
        If a value is missing, no number or outside [0, 1].
    """
    if len(columns) == 1 and holds_vectors(table, columns[0]):
        prob = _vectors(table, columns[0])
    else:
        prob = np.column_stack([_numbers(table, name, columns, kind, words) for name in columns])
    prob = of_input(prob, kind, columns[0])
    refuse_outside(prob, table, columns)
    return prob


def of_input(values: NDArray[Any], kind: str, name: str) -> NDArray[Any]:
    """Return percentages or logits ``(n_samples, n_columns)`` as probabilities; one column of logits is the event's.

    Warns of logits in a column of some name that look like probabilities or percentages, and of such percentages.
    """
    if kind == "percent":
        if values.shape[1] == 1 and values.max(initial=0.0) <= 1:
            warn_user(
                f"All values of `{name}` are at most 1: read as percentages they are predictions of at most 1 %. If "
                'they are probabilities, leave out `input="percent"`.'
            )
        return values / 100
    if kind == "logits":
        doubt = doubt_about_logits(values, name) if values.shape[1] == 1 else None
        if doubt is not None:
            warn_user(doubt.text)
        return probabilities_of_logits(values)
    return values


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
    hint, cure = _hint(prob)
    by_column = wrong.reshape(len(wrong), -1)
    if by_column.shape[1] != len(columns):
        by_column = np.any(by_column, axis=1)[:, None]
    all_of_them = _all_of_them(table, dict(zip(columns, map(np.flatnonzero, by_column.T), strict=True)))
    what = f"{value:.12g} {table.place(row)}, column {name!r}, is no probability between 0 and 1{all_of_them}"
    table.refuse(f"{what}; {hint}", **cure)


_REMEDY = "correct it, remove the row, or name other columns with `prob`"


def _hint(prob: NDArray[Any]) -> tuple[str, dict[str, str]]:
    """Return what numbers that are no probabilities may be, and the option that says so."""
    finite = prob[np.isfinite(prob)]
    outside = float(np.mean((prob < 0) | (prob > 1), axis=0).max())  # of a column
    if finite.size and finite.min() >= 0 and 1 < finite.max() <= MOST_PERCENT:
        above = finite[finite > 1]
        several = len(np.unique(above)) >= _SEVERAL  # no code of missing values
        if np.median(finite) > 1 or (several and outside > _SOME):
            return 'if these are percentages: `input="percent"`', {"input": "percent"}
        return f'{_REMEDY}; if all are percentages: `input="percent"`' if several else _REMEDY, {}
    if outside > _MANY:
        hint = 'if these are logits: `input="logits"`; if the column is something else, name the columns with `prob`'
        return hint, {"input": "logits"} if finite.min() < 0 else {}
    return _REMEDY, {}


def _numbers(
    table: Table, name: str, columns: Sequence[str], kind: str, words: Mapping[str, float] | None
) -> NDArray[Any]:
    """Return the numbers of a column; where it holds others, those of all ``columns`` are counted."""
    column = table.frame[name]
    of_type = column.dtype.kind
    if of_type == "f" and isinstance(column.dtype, np.dtype):
        return column.to_numpy()
    if of_type in "iub" and isinstance(column.dtype, np.dtype):
        return column.to_numpy().astype(np.float64)
    if of_type in "Mm":
        table.refuse(f"column {name!r} holds dates or times, not probabilities; {_REMEDY}")
    cells, signed = _cells(table, name, kind, words)
    if signed and kind == "probabilities":
        table.reading["values"] = "percentages (guessed)"
        return np.array(cells) / 100
    broken = _broken(cells)
    if broken.size:
        others = {one: _broken(_cells(table, one, kind, words)[0]) for one in columns if one != name}
        _refuse_no_number(table, name, int(broken[0]), cells, _all_of_them(table, {name: broken, **others}))
    return np.array([float(cell) for cell in cells])


def _cells(table: Table, name: str, kind: str, words: Mapping[str, float] | None) -> tuple[list[Any], bool]:
    """Return what a column holds, words as their numbers, and whether all of it are numbers with a percent sign."""
    column = table.frame[name]
    cells = column.astype(object).where(column.notna(), np.nan).tolist()
    if words is not None:
        cells = [words.get(cell.strip(), cell) if isinstance(cell, str) else cell for cell in cells]
    signed = all(isinstance(cell, str) and is_number(cell.strip()[:-1]) and cell.strip()[-1] == "%" for cell in cells)
    if kind == "percent" or signed:
        cells = [cell.strip().removesuffix("%").strip() if isinstance(cell, str) else cell for cell in cells]
        cells = [float(c.replace(",", ".", 1)) if isinstance(c, str) and is_number(c) else c for c in cells]
    return cells, signed


def _broken(cells: list[Any]) -> NDArray[np.intp]:
    """Return where cells are no numbers: of texts those that do not even look like one, if there are such."""
    texts = [isinstance(cell, str) for cell in cells]
    oddest = [text and not is_number(cell) for text, cell in zip(texts, cells, strict=True)]
    return np.flatnonzero(
        oddest if any(oddest) else [text or not _is_real(cell) for text, cell in zip(texts, cells, strict=True)]
    )


def _is_real(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError, OverflowError):
        return False
    return not isinstance(cell, bytes)


def _refuse_no_number(table: Table, name: str, row: int, cells: list[Any], all_of_them: str) -> NoReturn:
    """Name the first value that is no number."""
    cell = cells[row]
    what = repr(cell)[:60]
    hint, cure = _REMEDY, {}
    texts = sorted({text.strip() for text in cells if isinstance(text, str)})
    if isinstance(cell, dict | list | tuple | np.ndarray):
        what, hint = "a list or a record", "vectors of probabilities must be the only probability column"
    elif isinstance(cell, str) and cell.strip().endswith("%"):
        hint, cure = 'if these are percentages: `input="percent"`', {"input": "percent"}
    elif isinstance(cell, str) and "," in cell and is_number(cell):
        hint, cure = 'if the decimal mark is a comma, say `decimal=","`', {"decimal": ","}
    elif isinstance(cell, str) and is_number(cell):
        hint = "the numbers are stored as texts: convert them"
    elif len(texts) <= _MOST_WORDS and not any(map(is_number, texts)):
        hint = f"if words stand for probabilities ({shortened(texts)}), give them with `verbal`"
    table.refuse(f"{what} {table.place(row)}, column {name!r}, is not a number{all_of_them}; {hint}", **cure)


def holds_vectors(table: Table, name: str) -> bool:
    """Return whether the cells of a column are lists or arrays."""
    column = table.frame[name]
    return column.dtype == object and len(column) > 0 and isinstance(column.iloc[0], list | tuple | np.ndarray)


def holds_distributions(table: Table, name: str) -> bool:
    """Return whether the cells of a column are lists of probabilities that sum to 1 and are not all 0 or 1."""
    cells = table.frame[name].tolist()[:_MANY_ROWS]
    try:
        values = np.array([np.asarray(cell, dtype=np.float64) for cell in cells])
    except (TypeError, ValueError):  # of different lengths, or texts
        return False
    is_one = values.ndim == 2 and bool((values >= 0).all() and (np.abs(values.sum(axis=1) - 1) < MOST_NORMALISED).all())
    return is_one and bool((values != np.rint(values)).any())


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


def refuse_missing(table: Table, names: Sequence[str]) -> None:
    """Raise ValueError if values of some columns are missing, with their number and first places by column."""
    gaps = {name: np.flatnonzero(table.frame[name].isna().to_numpy()) for name in names}
    if any(rows.size for rows in gaps.values()):
        words = "to leave out their rows: `drop_missing=True`"
        table.refuse(f"values are missing: {_by_column(table, gaps)}; {words}", drop_missing=True)


def without_missing(table: Table, needed: Sequence[str], prob: Sequence[str]) -> Table:
    """Return the rows in which no value of some columns is missing, and warn of the others.

    If the predictions of rows without a label differ from the others, by a two-sided Mann-Whitney test of the largest
    probability (of one column: of the number in it), the warning says so: then the rows that are left are no sample.
    """
    gaps = {name: table.frame[name].isna().to_numpy() for name in needed}
    missing = np.any([*gaps.values()], axis=0)
    if not missing.any():
        return table
    table.refuse_if(missing.all(), "a value is missing in every row, so that nothing is left")
    shown = ", ".join(f"{rows.sum():,} without {name!r}" for name, rows in gaps.items() if rows.any())
    text = f"{table.name}: {missing.sum():,} of {len(missing):,} rows are left out: {shown}."
    warn_user(text + _selection(table, gaps[needed[0]], prob))
    return table.rows(np.flatnonzero(~missing))


def _selection(table: Table, no_label: Booleans, prob: Sequence[str]) -> str:
    """Return a sentence if predictions without a label differ from the others at a level of 1 %."""
    columns = [table.frame[name] for name in prob]
    if not no_label.any() or not all(column.dtype.kind == "f" for column in columns):
        return ""
    from scipy.stats import mannwhitneyu

    largest = np.max([column.to_numpy(float) for column in columns], axis=0)
    parts = [part[np.isfinite(part)] for part in (largest[no_label], largest[~no_label])]
    if not all(part.size for part in parts) or rejects(float(mannwhitneyu(*parts).pvalue), 0.01) is False:
        return ""
    means = [f"{part.mean():.3g}" for part in parts]
    return (
        f" Their predictions differ from the others (mean {means[0]}, of the others {means[1]}): labels are not "
        "missing at random, and the answer is about the rows that have one."
    )


def _all_of_them(table: Table, rows: Mapping[str, NDArray[Any]]) -> str:
    """Return how many values are wrong, by column and with the first places; nothing if there is one."""
    number = sum(each.size for each in rows.values())
    if number < 2:
        return ""
    only = next(iter(rows.values())) if len(rows) == 1 else None
    return f" ({number:,} such values: {_by_column(table, rows) if only is None else _places(table, only)})"


def _by_column(table: Table, rows: Mapping[str, NDArray[Any]]) -> str:
    """Return the number of rows of each column that has some, with their first places; of many columns the first."""
    some = [
        f"{each.size:,} of the column {name!r} ({_places(table, each)})" for name, each in rows.items() if each.size
    ]
    more = [f"and in {counted(len(some) - _MOST_COLUMNS, 'other column')}"] if len(some) > _MOST_COLUMNS else []
    return ", ".join([*some[:_MOST_COLUMNS], *more])


def _places(table: Table, rows: NDArray[Any]) -> str:
    """Return the first three places of some rows."""
    shown = [table.place(int(row)).removeprefix("in ") for row in rows[:3]]
    counted = ["counted from 0"] if shown[0].startswith("row ") else []
    return ", ".join([*shown, *(["..."] if len(rows) > 3 else []), *counted])


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
        table.refuse(f"the label is missing in the column {name!r} ({_places(table, gaps)})")
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
                f"or whole numbers: name their column with `label`{said_if_times(values)}"
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
            "is the prediction of another model",
            prob=[columns[0]],
        )


def summed(source: Named, prob: NDArray[Any], place: Callable[[int], str]) -> NDArray[Any]:
    """Return probabilities as they are, if rounding to four decimals explains by how much their sums miss 1.

    Raises
    ------
    ValueError
        If it does not; with the option that divides by the sums, where no sum is off by more than `MOST_NORMALISED`.
    """
    if prob.ndim == 1 or prob.shape[1] == 1:
        return prob
    total = prob.sum(axis=1, dtype=np.float64)
    missing, allowed = np.abs(total - 1), rounding_of_sums(prob.shape[1])
    wrong = np.flatnonzero(missing > allowed * (1 + 1e-9))
    if wrong.size:
        said = f"the probabilities {place(int(wrong[0]))} sum to {total[wrong[0]]:.6g}, not to 1 within {allowed:g}"
        said += f" ({wrong.size:,} such rows)" * (wrong.size > 1)
        source.refuse_if(missing.max() > MOST_NORMALISED, f"{said}; are all probability columns named, and no others?")
        source.refuse(f"{said}; if this is rounding: `normalise=True`", normalise=True)
    return prob


def normalised(source: Named, prob: NDArray[Any], place: Callable[[int], str]) -> NDArray[Any]:
    """Return probabilities whose rows sum to 1, and say the largest change.

    Raises
    ------
    ValueError
        If a sum misses 1 by more than `MOST_NORMALISED`: this is no rounding.
    """
    if prob.ndim == 1 or prob.shape[1] == 1:
        return prob
    total = prob.sum(axis=1, dtype=np.float64)
    row = int(np.argmax(np.abs(total - 1)))
    if not abs(total[row] - 1) <= MOST_NORMALISED:
        source.refuse(
            f"`normalise` is for rounding, and the probabilities {place(row)} sum to "
            f"{total[row]:.6g}; are all probability columns named, and no others?"
        )
    divided = divided_by_sums(prob)
    change = np.abs(divided - prob)
    n_off = int(np.count_nonzero(np.abs(total - 1) > 1e-9))
    where = int(np.argmax(change.max(axis=1)))
    warn_user(
        f"{source.name}: {n_off} of {len(prob)} rows did not sum to 1 and were divided by their sums; the largest "
        f"change of a probability is {change.max():.3g} ({place(where)}, whose sum was {total[where]:.6g})."
    )
    return divided
