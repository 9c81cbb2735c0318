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
_GAPS = ("NA", "N/A", "NaN", "nan", "None", "NULL", "null", ".", "-")  # of R, pandas, Python, SQL, SAS
_GUESSED = " (guessed)"
_SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", " ": "blanks", "|": "|"}


def read_text(
    source: Source,
    sep: str | None,
    decimal: str | None,
    header: Any,
    encoding: str | None,
    *,
    dtype: type | None = None,
) -> Table:
    """Return the table of a CSV or TSV file, with types that its values seem to have unless all have one ``dtype``.

    Raises
    ------
    ValueError
        If an option is wrong, the text cannot be decoded, the separator does not fit, the first line looks like data,
        or rows have more values than there are names.
    """
    import pandas as pd

    given_sep, given_decimal = sep, decimal
    encoding, said = encoding_of(source, encoding)
    sep, decimal = marks_of(source, sep, decimal, encoding)
    rows = _first_rows(source, sep, encoding)
    named = settle_header(source.name, rows, header, decimal)
    rows, names = _names(source, rows, named=named)
    before = tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1)  # where numbers are read with an error of 1e-12
    exact: dict[str, Any] = {"float_precision": "round_trip"} if before else {}
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
            **exact,
        )
    source.refuse_if(not len(frame), "there are no observations: the file is empty but for its first line")
    if dtype is None:
        frame = frame.assign(**_numbers_with_gaps(frame))
    usual = "\t" if source.file_format == "tsv" else ";" if given_decimal == "," else ","
    marks = {
        "separator": _SEPARATORS.get(sep, sep) + _GUESSED * (given_sep is None and sep != usual),
        "decimal mark": "point" if decimal == "." else "comma" + _GUESSED * (given_decimal is None),
    }
    header_said = f"{'the first line' if named else 'none'}{' (guessed)' if header == 'infer' else ''}"
    return Table(
        source.name,
        _without_empty(frame, names, rows if named else []),
        lambda row: _place(source, sep, encoding, row + named),
        {**source.reading, "encoding": said, **marks, "header": header_said},
        named,
    )


def marks_of(source: Source, sep: str | None, decimal: str | None, encoding: str) -> tuple[str, str]:
    """Return separator and decimal mark of a CSV or TSV file; those that are None are guessed."""
    require(decimal in {None, ".", ","}, '`decimal` must be "." or ","', decimal)
    sep = _given_separator(sep, decimal) or _guess_separator(source, encoding, decimal)
    rows = _first_rows(source, sep, encoding)
    check_separator(source.name, rows, sep, decimal or ".")
    return sep, decimal or _guess_decimal(rows, sep)


def _given_separator(sep: str | None, decimal: str | None) -> str | None:
    """Return the separator that was named, in one character; with a decimal comma it is a semicolon."""
    if sep is None:
        return ";" if decimal == "," else None
    sep = {r"\t": "\t", "tab": "\t", r"\s+": " "}.get(sep, sep)
    if len(sep) != 1 or sep.isalnum() or sep in '"\r\n\0._-+' or ord(sep) > 127:
        refuse(f'`sep` must be one character such as ";", "tab" or " " (blanks), got {sep!r}.')
    refuse_if(sep == decimal, f"`sep` and `decimal` must differ, got {sep!r} for both.")
    return sep


def _guess_separator(source: Source, encoding: str, decimal: str | None) -> str:
    """Return the only mark that divides all of the first lines into the same number of values, two or more.

    The usual one is taken where there is none, so that what does not fit is refused by its line.
    """
    usual = "\t" if source.file_format == "tsv" else ","
    with _decoding(source, encoding), _text(source, encoding) as stream:
        text = "".join(itertools.islice(stream, _SHOWN_ROWS))
    fitting = [sep for sep in _SEPARATORS if sep not in {" ", decimal} and _divides(text, sep)]
    return " " if not fitting and _divides(text, " ") else fitting[0] if len(fitting) == 1 else usual


def _divides(text: str, sep: str) -> bool:
    """Return whether a mark divides all lines alike; the header may lack the name of the first column, as R's does."""
    rows = _divided(_rows(io.StringIO(text, newline=""), sep), sep)
    rows = rows[:-1] if len(rows) > 2 else rows  # a quoted text may go on after the lines that are looked at
    below = {len(row) for row in rows[1:]} or {len(row) for row in rows}
    return len(below) == 1 and min(below) > 1 and len(rows[0]) in {min(below), min(below) - 1} - {1}


def _guess_decimal(rows: list[list[str]], sep: str) -> str:
    """Return a comma where some numbers of the first rows have one and begin with 0, and none has a point."""
    cells = [cell.strip() for row in rows for cell in row]
    comma = sep != "," and any(re.fullmatch(r"-?0?,\d+", cell) for cell in cells)
    return "," if comma and not any(re.fullmatch(r"-?\d*\.\d+", cell) for cell in cells) else "."


def encoding_of(source: Source, given: str | None) -> tuple[str, str]:
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
        rows = _divided(itertools.islice(_rows(stream, sep), 4 * _SHOWN_ROWS), sep)[:_SHOWN_ROWS]
    source.refuse_if(not rows, "cannot be read: there is nothing but blanks in it")
    return rows


def _divided(rows: Any, sep: str) -> list[list[str]]:
    """Return rows that are not empty; blanks that follow each other are one separator."""
    filled = [row for row in rows if any(row)]
    return [[cell for cell in row if cell] for row in filled] if sep == " " else filled


@contextmanager
def _decoding(source: Source, encoding: str) -> Iterator[None]:
    """Refuse in our words what cannot be decoded or is no table."""
    try:
        yield
    except UnicodeError as error:
        said = f"the text is not {encoding.upper()} ({said_by(error)})"
        if encoding == "utf-8":
            source.refuse(f'{said}; it may be Latin-1: `encoding="latin-1"`', encoding="latin-1")
        source.refuse(f"{said}; name its encoding with `encoding`")
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


def _names(source: Source, rows: list[list[str]], *, named: bool) -> tuple[list[list[str]], list[str]]:
    """Return the rows, with a header as long as they are, and the name of each column."""
    n_names, n_values = len(rows[0]), max(map(len, rows[1:]), default=0)
    if not named:
        if n_values > n_names:
            line = next(k for k, row in enumerate(rows, 1) if len(row) > n_names)
            source.refuse(f"line {line} has {len(rows[line - 1])} values, the first line {n_names}")
        return rows, [str(k) for k in range(n_names)]
    too_long = [row for row in rows[1:] if len(row) > n_names and any(cell.strip() for cell in row[n_names:])]
    if too_long and len(too_long) == len(rows) - 1:
        if {len(row) for row in too_long} == {n_names + 1} and [row[0] for row in too_long] == _counted(too_long):
            rows = [["", *rows[0]], *rows[1:]]  # R writes no name for the column of row names
        else:
            source.refuse(
                f"the header has {n_names} names, the lines below have {len(too_long[0])} values; give every column a "
                "name, or delete the first line if it is a title"
            )
    return rows, differing_names(source.name, rows[0])


def _counted(rows: list[list[str]]) -> list[str]:
    """Return the numbers of rows, from 1, as R writes them."""
    return [str(number) for number, _ in enumerate(rows, 1)]


def _numbers_with_gaps(frame: Any) -> dict[str, Any]:
    """Return columns in which all texts are numbers or words for a missing one, as numbers; NA may be a label too."""
    import pandas as pd

    found = {}
    for name in frame.columns:
        column = frame[name]
        if column.dtype.kind == "O" and column.isin(_GAPS).any():
            cells = column.mask(column.isin(_GAPS))
            numbers = pd.to_numeric(cells, errors="coerce")
            if numbers.notna().any() and (numbers.isna() == cells.isna()).all():
                found[name] = numbers
    return found


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
