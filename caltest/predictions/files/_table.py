"""A table that was read from a file, whose cells have places that a reader of the file can find."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from caltest.predictions._arrays import Integers
from caltest.predictions.files._source import Named, UndecidedError
from caltest.predictions.inputs._refusals import require, shortened

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Table(Named):
    """Columns of a file.

    Attributes
    ----------
    name : str
        What messages call the file.
    frame : DataFrame
        The columns; their names are texts and differ.
    place : callable
        From the number of a row, counted from 0, to words such as "in line 3".
    reading : dict
        What to say about how the file was read.
    named : bool
        Whether the names of the columns are those of the file, rather than their positions.
    taken : array of int or None
        The rows of the file that were taken, where not all were.
    """

    name: str
    frame: pd.DataFrame
    place: Callable[[int], str] = "in row {}".format
    reading: dict[str, str] = field(default_factory=dict)
    named: bool = True
    taken: Integers | None = None

    def rows(self, kept: Integers) -> Table:
        """Return a table of some of the rows, whose places are those of the file."""
        taken = kept if self.taken is None else self.taken[kept]
        frame = self.frame.iloc[kept].reset_index(drop=True)
        return replace(self, frame=frame, place=lambda row: self.place(int(kept[row])), taken=taken)

    def said(self, what: str, text: str) -> Table:
        """Return the same table with more to say about how it was read."""
        return replace(self, reading={**self.reading, what: text})


def settle_header(name: str, rows: list[list[str]], header: Any, decimal: str = ".") -> bool:
    """Return whether the first row of a table of texts holds names.

    ``header`` is "infer", 0 (the first row holds names) or None (there are none), as in pandas.

    Raises
    ------
    ValueError
        If ``header`` is "infer", and the first row looks like data: it would be lost. A row of numbers with fractions
        has no names.
    """
    if header is None:
        return False
    if header == 0 and not isinstance(header, bool):
        return True
    require(header == "infer", '`header` must be "infer", 0 or None', header)
    first = [cell.strip() for cell in rows[0]]
    fraction = any(re.search(r"[.,]\d", cell) for cell in first)  # digits behind a decimal mark, as no name has
    if len(first) > 1 and all(is_number(cell, decimal) for cell in first) and fraction:
        return False
    reason = _looks_like_data(first, rows[1:], decimal)
    if reason:
        msg = (
            f"{name}: the first line looks like data, not like names ({shortened(first)}): {reason}; say `header=None` "
            "if there are no names, `header=0` if these are names"
        )
        raise UndecidedError(msg, {"header": None})
    return True


def _looks_like_data(first: list[str], below: list[list[str]], decimal: str) -> str:
    numbers = [cell for cell in first if is_number(cell, decimal)]
    broken = next((cell for cell in numbers if not cell.lstrip("+-").isdecimal()), None)
    if broken is not None:
        return f"{broken} is a number"
    if numbers and len(numbers) == len(first) and not _count_columns(first):
        return "all are numbers"
    for k, cell in enumerate(first):
        if cell and not is_number(cell, decimal) and any(len(row) > k and row[k].strip() == cell for row in below):
            return f"{cell!r} occurs again below"
    return ""


def _count_columns(first: list[str]) -> bool:
    """Return whether names are 0, 1, 2, ... or 1, 2, 3, ..., as those that pandas gives; two could be data."""
    return len(first) > 2 and first in ([str(k + start) for k in range(len(first))] for start in (0, 1))


def is_number(text: str, decimal: str = ".") -> bool:
    """Return whether a text is a number, also where its decimal mark is a comma."""
    try:
        float(text.replace(decimal, ".") if decimal != "." else text.replace(",", ".", 1))
    except ValueError:
        return False
    return "_" not in text and any(letter.isdigit() for letter in text)  # nor "nan", nor "inf"


def differing_names(name: str, names: list[str]) -> list[str]:
    """Return names of columns as they are used: without surrounding blanks; columns without a name as in pandas.

    Raises
    ------
    ValueError
        If a name occurs twice.
    """
    bare = [text.strip() for text in names]
    for text in bare:
        if text and bare.count(text) > 1:
            where = ", ".join(str(k) for k, other in enumerate(bare, 1) if other == text)
            msg = f"{name}: the name {text!r} occurs {bare.count(text)} times in the header (columns {where}); rename "
            raise ValueError(msg + "them, so that every column has its own name")
    return [text or f"Unnamed: {k}" for k, text in enumerate(bare)]
