"""Tables in text: encoding, separator, decimal mark and header of CSV and TSV files."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from caltest.predictions.files._source import Source, said_by
from caltest.predictions.files._table import Table, differing_names, settle_header
from caltest.predictions.inputs._refusals import refuse, refuse_if, require

_SHOWN_ROWS = 50  # rows that guesses look at
_BOMS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", " ": "blanks", "|": "|"}


def read_text(
    source: Source, sep: str | None, decimal: str, header: Any, encoding: str | None, *, dtype: type | None = None
) -> Table:
    """Return the table of a CSV or TSV file, with types that its values seem to have unless all have one ``dtype``.

    Raises
    ------
    ValueError
        If an option is wrong, the text cannot be decoded, the separator does not fit, the first line looks like data,
        or rows have more values than there are names.
    """
    import pandas as pd

    sep = _separator(source, sep, decimal)
    encoding, said = _encoding(source, encoding)
    rows = _first_rows(source, sep, encoding)
    check_separator(source.name, rows, sep, decimal)
    named = settle_header(source.name, rows, header, decimal)
    names = _names(source, rows, named=named)
    with _decoding(source, encoding), warnings.catch_warnings(), source.open() as stream:
        warnings.simplefilter("error", pd.errors.ParserWarning)  # data would be lost
        frame = pd.read_csv(
            stream,
            sep=r"\s+" if sep == " " else sep,
            decimal=decimal,
            header=0 if named else None,
            names=names,
            index_col=False,
            encoding=encoding,
            dtype=dtype,
            keep_default_na=False,  # "NA" and "None" may be labels; as numbers they are refused by name
            na_values=[""],
            low_memory=False,
            skipinitialspace=True,
        )
    source.refuse_if(not len(frame), "there are no observations: the file is empty but for its first line")
    marks = {"separator": _SEPARATORS.get(sep, sep), "decimal mark": "point" if decimal == "." else "comma"}
    header_said = f"{'the first line' if named else 'none'}{' (guessed)' if header == 'infer' else ''}"
    return Table(
        source.name,
        _without_empty(frame, names, rows if named else []),
        lambda row: _place(source, sep, encoding, row + named),
        {**source.reading, "encoding": said, **marks, "header": header_said},
        named,
    )


def _separator(source: Source, sep: str | None, decimal: str) -> str:
    require(decimal in {".", ","}, '`decimal` must be "." or ","', decimal)
    if sep is None:
        sep = "\t" if source.file_format == "tsv" else ";" if decimal == "," else ","
    sep = {r"\t": "\t", "tab": "\t", r"\s+": " "}.get(sep, sep)
    if len(sep) != 1 or sep.isalnum() or sep in '"\r\n\0._-+' or ord(sep) > 127:
        refuse(f'`sep` must be one character such as ";", "tab" or " " (blanks), got {sep!r}.')
    refuse_if(sep == decimal, f"`sep` and `decimal` must differ, got {sep!r} for both.")
    return sep


def _encoding(source: Source, given: str | None) -> tuple[str, str]:
    """Return the encoding, and what to say about it."""
    if given is not None:
        try:
            "".encode(given)
        except (LookupError, UnicodeError, ValueError, TypeError):
            refuse(f'`encoding` must be one that Python knows, such as "utf-16" or "latin-1", got {given!r}.')
        return given, f"{given} (given)"
    head = source.head()
    for mark, encoding in _BOMS.items():
        if head.startswith(mark):
            return encoding, f"{encoding.removesuffix('-sig').upper()} (by its byte order mark)"
    if b"\0" in head:
        even, odd = head[::2].count(0), head[1::2].count(0)
        half = 0.4 * len(head) / 2
        if odd > half > even or even > half > odd:
            encoding = "utf-16-le" if odd > even else "utf-16-be"
            return encoding, f"{encoding.upper()} (guessed)"
        source.refuse(f"holds NUL bytes (byte {head.index(0)}), so it is not a text; is it in another format?")
    return "utf-8", "UTF-8"


def _text(source: Source, encoding: str) -> TextIO:
    return io.TextIOWrapper(source.open(), encoding=encoding, newline="")


def _rows(stream: TextIO, sep: str) -> Any:
    """Return a reader of rows; its ``line_num`` counts lines."""
    return csv.reader(stream, delimiter=sep, skipinitialspace=True)


def _first_rows(source: Source, sep: str, encoding: str) -> list[list[str]]:
    with _decoding(source, encoding), _text(source, encoding) as stream:
        filled = (row for row in _rows(stream, sep) if any(row))
        rows = list(itertools.islice(filled, _SHOWN_ROWS))
    source.refuse_if(not rows, "cannot be read: there is nothing but blanks in it")
    return [[cell for cell in row if cell] for row in rows] if sep == " " else rows


@contextmanager
def _decoding(source: Source, encoding: str) -> Iterator[None]:
    """Refuse in our words what cannot be decoded or is no table."""
    try:
        yield
    except UnicodeError as error:
        latin = 'it may be Latin-1: `encoding="latin-1"`'
        remedy = latin if encoding == "utf-8" else "name its encoding with `encoding`"
        source.refuse(f"the text is not {encoding.upper()} ({said_by(error)}); {remedy}")
    except Exception as error:  # what a broken file raises is up to libraries
        text = said_by(error).removeprefix("Error tokenizing data. C error: ")
        found = re.fullmatch(r"Expected (\d+) fields in line (\d+), saw (\d+)", text)
        if found:
            text = f"line {found[2]} has {found[3]} values where {found[1]} are expected; is a separator quoted?"
        source.refuse(f"cannot be read: {text}")


def check_separator(name: str, rows: list[list[str]], sep: str, decimal: str) -> None:
    """Raise ValueError if a table has one column that another separator would divide, or begins with a comment."""
    if rows[0][0].startswith("#"):
        refuse(f"{name}: the first line is a comment ({rows[0][0][:60]!r}); delete lines that begin with '#'")
    first = rows[0][0]
    if sep == "," and len(rows[0]) > 1 and decimal == "." and all(";" in "".join(row) for row in rows[:3]):
        first = ",".join(rows[0])
    elif len(rows[0]) > 1:
        return
    others = [other for other in (";", "\t", ",", "|", " ") if other != sep and other in first]
    if not others:  # a column of probabilities, where no labels are needed
        return
    other = others[0]
    below = [cell for row in rows[1:3] for cell in sep.join(row).split(other)]
    comma = other != "," and any(re.fullmatch(r"\s*[-+]?\d*,\d+\s*", cell) for cell in below)
    shown = "tab" if other == "\t" else other
    hint = f'`sep="{shown}"`' + (' and `decimal=","`' if comma and decimal == "." else "")
    refuse(f"{name}: there seems to be another separator than {_SEPARATORS.get(sep, sep)!r}: try {hint}")


def _names(source: Source, rows: list[list[str]], *, named: bool) -> list[str]:
    n_names, n_values = len(rows[0]), max(map(len, rows[1:]), default=0)
    if not named:
        if n_values > n_names:
            line = next(k for k, row in enumerate(rows, 1) if len(row) > n_names)
            source.refuse(f"line {line} has {len(rows[line - 1])} values, the first line {n_names}")
        return [str(k) for k in range(n_names)]
    too_long = [row for row in rows[1:] if len(row) > n_names and any(cell.strip() for cell in row[n_names:])]
    if too_long and len(too_long) == len(rows) - 1:
        source.refuse(
            f"the header has {n_names} names, the lines below have {len(too_long[0])} values; "
            "give every column a name (R writes none for row names: use row.names = FALSE)"
        )
    return differing_names(source.name, rows[0])


def _without_empty(frame: Any, names: list[str], rows: list[list[str]]) -> Any:
    """Drop columns without name and without values, as separators at the ends of lines make them."""
    unnamed = [name for name, text in zip(names, rows[0], strict=True) if not text.strip()] if rows else []
    return frame.drop(columns=[name for name in unnamed if frame[name].isna().all()])


def _place(source: Source, sep: str, encoding: str, number: int) -> str:
    """Return the line of a row that is not blank, counted from 0; it is looked for once a value is refused."""
    with _text(source, encoding) as stream:
        reader = _rows(stream, sep)
        filled = (reader.line_num for row in reader if any(cell.strip() for cell in row) or len(row) > 1)
        return f"in line {next(itertools.islice(filled, number, None), number + 1)}"
