"""Fragments of files, which are read one by one into states."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from caltest.predictions._lens import Lens
from caltest.predictions.files._prediction_file import Asked, PredictionFile, from_table
from caltest.predictions.files._table import Table
from caltest.predictions.files._text import check_separator
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import require
from caltest.streaming.scans._file_marks import content_hash, own_name
from caltest.streaming.states._redrawn_cells import RedrawnCells
from caltest.streaming.states._state import CalibrationState

_MARKS = {"tab": "\t", "\\t": "\t"}
_FORMATS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv"}
_BATCH_ROWS, _READ_AHEAD = 2**17, 2
_FRAGMENT_ROWS = 2**20  # of Parquet: row groups that are smaller are read together


@dataclass(frozen=True)
class CsvFormat:
    """Separator of values and decimal mark.

    Parameters
    ----------
    sep : str, optional
        One character, or "tab"; a comma by default, or a semicolon if ``decimal`` is a comma.
    decimal : {".", ","}
        Decimal mark.

    Raises
    ------
    TypeError, ValueError
        If ``sep`` is no text of one character, ``decimal`` is another mark, or both are the same.
    """

    sep: str | None = None
    decimal: str = "."

    def __post_init__(self) -> None:
        require(self.decimal in {".", ","}, '`decimal` must be "." or ","', self.decimal)
        if self.sep is not None and not isinstance(self.sep, str):
            refuse(f"`sep` must be a text, got {self.sep!r}.", TypeError)
        must = '`sep` must be one character that is not the decimal mark, such as ";", or "tab"'
        require(len(self.mark) == 1 and self.mark != self.decimal, must, self.sep)

    @property
    def mark(self) -> str:
        """The character between values."""
        if self.sep is None:
            return ";" if self.decimal == "," else ","
        return _MARKS.get(self.sep, self.sep)

    def arrow(self) -> Any:
        """Return the format of Arrow."""
        import pyarrow.csv as pc
        import pyarrow.dataset as ds

        return ds.CsvFileFormat(
            parse_options=pc.ParseOptions(delimiter=self.mark),
            convert_options=pc.ConvertOptions(decimal_point=self.decimal),
        )


class Fragment(NamedTuple):
    """A file, or some row groups of a Parquet file.

    Attributes
    ----------
    file : str
    n_fragments : int
        Of the file.
    groups : tuple of int
        The row groups; empty for text.
    first_row : int
        Number of rows of the file before it.
    n_bytes : int
        Its share of the size of the file.
    source : str
        The last part of the path, with a hash of the content.
    csv : CsvFormat
        How it is written, if it is text.
    """

    file: str
    n_fragments: int
    groups: tuple[int, ...]
    first_row: int
    n_bytes: int
    source: str
    csv: CsvFormat = CsvFormat()


@dataclass(frozen=True)
class Reading:
    """Which columns hold what, and the settings of the states."""

    label: str
    prob: tuple[str, ...]
    classes: Any
    n_classes: int
    lens: Lens | None = None
    micro_cells: int | RedrawnCells = 4096

    @classmethod
    def of(cls, name: str, batch: Any, named: dict[str, Any], lens: Lens | None, micro_cells: Any) -> Reading:
        """Return what the names of columns and the values of a first batch tell."""
        found = understand(name, batch, named)
        return cls(found.label, found.prob, found.classes, found.n_classes, lens, micro_cells)

    def empty(self) -> CalibrationState:
        """Return a state without observations."""
        return CalibrationState(self.n_classes, self.lens, self.micro_cells)

    @property
    def columns(self) -> dict[str, Any]:
        """The columns and their classes, as plain objects that a file can keep."""
        classes = None if self.classes is None else [str(label) for label in self.classes]
        return {"label": self.label, "prob": list(self.prob), "classes": classes}

    def add(self, state: CalibrationState, batch: Any, source: str = "", first_row: int | None = None) -> None:
        """Add a record batch of Arrow."""
        columns = [_numbers(batch.column(name)) for name in self.prob]
        prob = columns[0] if len(columns) == 1 else np.column_stack(columns)
        labels = _labels(batch.column(self.label))
        state.update(labels, prob, classes=self.classes, source=source, first_row=first_row)

    def state_of(self, fragment: Fragment) -> CalibrationState:
        """Return the state of a fragment.

        Raises
        ------
        ValueError
            If a value is refused, naming file, row group and row.
        """
        state = self.empty()
        for place, batch in _read(fragment, [self.label, *self.prob]):
            row = fragment.first_row + state.n_samples
            try:
                self.add(state, batch, fragment.source, row)
            except ValueError as error:
                msg = f"{fragment.file}, {place}, batch that begins at row {row} of the file: {error}"
                raise ValueError(msg) from error
        return state


def understand(name: str, batch: Any, named: Mapping[str, Any]) -> PredictionFile:
    """Return a record batch as predictions: which columns hold what, as far as it is not ``named``."""
    return from_table(Table(name, batch.to_pandas()), Asked(named["label"], named["prob"], named["classes"]))


def is_path(value: Any) -> bool:
    """Return whether a value names a file."""
    return isinstance(value, str | os.PathLike)


def find_files(source: Any) -> list[str]:
    """Return the files that paths, folders and patterns name, each once, in the order of their names."""
    found: set[str] = set()
    for one in [source] if is_path(source) else source:
        path = Path(one)
        for place in [path] if path.exists() else map(Path, glob(str(path), recursive=True)):
            # Spark names folders like files. A link to no file is kept, so that reading names it.
            inside = place.rglob("*") if place.is_dir() else ()
            found.update([str(p) for p in inside if p.suffix in _FORMATS and not p.is_dir()])
            found.update([] if place.is_dir() else [str(place)])
    wrong = next((name for name in sorted(found) if Path(name).suffix not in _FORMATS), None)
    if not found or wrong is not None:
        got = f"the file {wrong}" if wrong else f"no file for {source!r}"
        refuse(f"`source` must name Parquet or CSV files (.parquet, .pq, .csv), got {got}.")
    # One of the paths of each file, which may be named by a relative and by an absolute one.
    return sorted({os.path.realpath(name): name for name in sorted(found, reverse=True)}.values())


def first_batch(names: Sequence[str], csv: CsvFormat) -> tuple[str, Any]:
    """Return the first file that has rows and its first record batch; text is written like ``csv``.

    Raises
    ------
    ValueError
        If there are no rows, or a file cannot be read.
    """
    for name in names:
        for fragment in fragments_of(name, csv):
            for _, batch in _read(fragment, None):
                return name, batch
    others = "" if len(names) == 1 else f", nor in the other files ({len(names) - 1})"
    msg = f"{names[0]}: there are no rows{others}."
    raise ValueError(msg)


def fragments_of(name: str, csv: CsvFormat) -> list[Fragment]:
    """Return the fragments of a file, in their order."""
    size = os.stat(name).st_size
    # Without the folder, so that a file has the same draws by every path, and is noticed if it is counted twice.
    source = f"{own_name(name)} {content_hash(name)}"
    if _FORMATS[Path(name).suffix] != "parquet":
        return [Fragment(name, 1, (), 0, size, source, csv)]
    with _named(name), _open(name) as file:
        rows = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
    ends = np.cumsum([0, *rows])
    parts: list[list[int]] = []
    for group in range(len(rows)):
        if not parts or ends[group] - ends[parts[-1][0]] >= _FRAGMENT_ROWS:
            parts.append([])
        parts[-1].append(group)
    shares = [int(size * (ends[part[-1] + 1] - ends[part[0]]) / max(ends[-1], 1)) for part in parts]
    return [
        Fragment(name, len(parts), tuple(part), int(ends[part[0]]), share, source)
        for part, share in zip(parts, shares, strict=True)
    ]


@contextmanager
def _named(name: str, csv: CsvFormat | None = None) -> Iterator[None]:
    """Raise ValueError with the name of the file where it cannot be read; ``csv`` says how it is written, if a text."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowInvalid, KeyError) as error:
        text = error.args[0] if isinstance(error, KeyError) else str(error)  # the text of a KeyError is in quotes
        msg = f"{name}: {' '.join(str(text).split())}"
        if not os.path.getsize(name):
            msg = f"{name}: the file is empty; a CSV file needs a line with the names of its columns."
        elif csv is not None and isinstance(error, pa.ArrowInvalid):
            _check_lines(name, csv)
            msg = f"{name}: a CSV file needs as many values in each line; give `sep` if no comma separates them; {msg}"
        raise ValueError(msg) from error


def _check_lines(name: str, csv: CsvFormat) -> None:
    """Raise ValueError with the remedy if the first lines of a text show another separator."""
    with open(name, encoding="utf-8", errors="replace", newline="") as stream:
        rows = [line.rstrip("\r\n").split(csv.mark) for line in islice(stream, 4)]
    if rows:
        check_separator(name, rows, csv.mark, csv.decimal)


def _open(name: str) -> Any:
    import pyarrow.parquet as pq

    return pq.ParquetFile(name, pre_buffer=False)  # which would keep the bytes of a whole row group


def _read(fragment: Fragment, columns: list[str] | None) -> Iterator[tuple[str, Any]]:
    """Return the record batches of a fragment and where they stand, a bounded number of them read ahead."""
    with _named(fragment.file, None if fragment.groups else fragment.csv):
        for place, batch in (_groups if fragment.groups else _text)(fragment, columns):
            if batch.num_rows:
                yield place, batch


def _groups(fragment: Fragment, columns: list[str] | None) -> Iterator[tuple[str, Any]]:
    with _open(fragment.file) as file:
        names = file.schema_arrow.names
        _require(columns, names)
        for number in fragment.groups:
            for batch in file.iter_batches(_BATCH_ROWS, row_groups=[number], columns=columns, use_threads=False):
                yield f"row group {number}", batch


def _text(fragment: Fragment, columns: list[str] | None) -> Iterator[tuple[str, Any]]:
    import pyarrow.dataset as ds

    options = {"batch_size": _BATCH_ROWS, "batch_readahead": _READ_AHEAD, "fragment_readahead": 1}
    file = ds.dataset(fragment.file, format=fragment.csv.arrow())
    _require(columns, file.schema.names)
    for batch in file.to_batches(columns=columns, use_threads=False, **options):
        yield "text", batch


def _require(columns: list[str] | None, names: list[str]) -> None:
    """Raise KeyError if a file has not all columns."""
    missing = next((name for name in columns or [] if name not in names), None)
    if missing is not None:
        refuse(
            f"there is no column {missing!r}, which the first file has; the columns are {', '.join(names)}", KeyError
        )


def _numbers(column: Any) -> Any:
    return column.to_numpy(zero_copy_only=False)


def _labels(column: Any) -> Any:
    values = column.to_numpy(zero_copy_only=False)
    return values.astype(str) if values.dtype == object and not column.null_count else values
