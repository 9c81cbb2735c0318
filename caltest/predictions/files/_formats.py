"""Tables in formats that say what they hold, read by their libraries: Parquet, Arrow, JSON, Excel, arrays of NumPy."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from caltest.predictions.files._source import NAMES, Source, said_by
from caltest.predictions.files._table import Table, differing_names, settle_header
from caltest.predictions.inputs._refusals import refuse

_LIBRARIES = {"parquet": "pyarrow", "arrow": "pyarrow", "excel": "openpyxl"}


def read_table(source: Source, header: Any) -> Table:
    """Return the table of a file that is neither CSV nor an archive of arrays.

    Raises
    ------
    ValueError
        If the file is broken, its library is not installed, it holds no table, or names of columns occur twice.
    """
    with _library(source):
        frame, reading = _READERS[source.file_format](source, header)
    frame = frame.set_axis(differing_names(source.name, [str(name) for name in frame.columns]), axis=1)
    source.refuse_if(not len(frame), "there are no observations in it")
    first = reading.pop("first line", "0")
    place = (lambda row: f"in line {row + int(first)}") if first != "0" else "in row {}".format
    named = reading.pop("names", "file") == "file"
    return Table(source.name, frame, place, {**source.reading, **reading}, named)


class _RefusedError(Exception):
    """A file was read, and what it holds is refused in words that need no more."""


def _refuse(source: Source, text: str) -> NoReturn:
    refuse(f"{source.name}: {text}", _RefusedError)


@contextmanager
def _library(source: Source) -> Iterator[None]:
    """Refuse in our words what a library cannot read, or a library that is not installed."""
    try:
        yield
    except ImportError as error:
        library = _LIBRARIES.get(source.file_format, error.name)
        source.refuse(f"reading {NAMES[source.file_format]} needs {library}: pip install {library}")
    except _RefusedError as error:
        refuse(str(error))
    except Exception as error:  # what a broken file raises is up to libraries
        source.refuse(f"cannot be read as {NAMES[source.file_format]}: {said_by(error)}")


def _input(source: Source) -> Any:
    return source.where if isinstance(source.where, Path) else source.open()


def _read_parquet(source: Source, _: Any) -> tuple[Any, dict[str, str]]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(_input(source)) as file:
        return _as_frame(file.read()), {}


def _read_arrow(source: Source, _: Any) -> tuple[Any, dict[str, str]]:
    import pyarrow as pa
    from pyarrow import feather

    if source.head().startswith(b"\xff\xff\xff\xff"):
        with source.open() as stream, pa.ipc.open_stream(stream) as reader:
            return _as_frame(reader.read_all()), {}
    return _as_frame(feather.read_table(_input(source), memory_map=False)), {}


def _as_frame(table: Any) -> Any:
    """Return a frame; an index that pandas had stored is one of its columns again, if it has a name."""
    names = table.column_names
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        refuse(f"the name {double!r} occurs {names.count(double)} times among the columns; rename them")
    hidden = [name for name in names if name.startswith("__index_level_")]
    table.validate(full=True)  # a broken length would have all memory
    return table.drop_columns(hidden).to_pandas(ignore_metadata=True)


def _read_jsonl(source: Source, _: Any) -> tuple[Any, dict[str, str]]:
    import pandas as pd

    records = []
    text = _whole_text(source)
    lines = text.removesuffix("\n").split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = _load(line)
        except (ValueError, RecursionError) as error:
            _refuse(source, f"line {number} is not JSON: {said_by(error)}; JSON lines have one object in each line")
        if not isinstance(record, dict):
            hint = "; a whole list is `file_format` 'json'" if isinstance(record, list) else ""
            _refuse(source, f"line {number} must hold an object such as {{...}}, got {type(record).__name__}{hint}")
        records.append(record)
    return pd.DataFrame.from_records(records), {"first line": "1"} if len(records) == len(lines) else {}


def _read_json(source: Source, header: Any) -> tuple[Any, dict[str, str]]:
    import pandas as pd

    text = _whole_text(source)
    try:
        found = _load(text)
    except (ValueError, RecursionError) as error:
        if len(text.strip().splitlines()) > 1 and text.lstrip().startswith("{"):
            return _read_jsonl(source, header)
        _refuse(source, f"is not JSON: {said_by(error)}")
    layout = {}
    if isinstance(found, dict):  # what is said about a model, and one list of records
        lists = {name: value for name, value in found.items() if _are_records(value)}
        if len(lists) == 1 == sum(isinstance(value, list) for value in found.values()):
            ((name, found),) = lists.items()
            layout = {"layout": f"the list {name} (guessed)"}
    if _are_records(found):
        return pd.DataFrame.from_records(found), layout
    if isinstance(found, dict) and {"columns", "data"} <= set(found) <= {"columns", "data", "index", "schema"}:
        return pd.DataFrame(found["data"], columns=found["columns"]), {"layout": "columns and data"}
    if isinstance(found, dict) and found and len({_kind_of_column(column) for column in found.values()}) == 1:
        columns = [column if isinstance(column, list) else list(column.values()) for column in found.values()]
        keys = {tuple(column) for column in found.values() if isinstance(column, dict)}
        if len(keys) <= 1 and len({len(column) for column in columns}) == 1:
            return pd.DataFrame(dict(zip(found, columns, strict=True))), {}
    return _refuse(source, "JSON must hold a list of objects, or an object with a list for each column of one length")


def _are_records(found: Any) -> bool:
    return isinstance(found, list) and bool(found) and all(isinstance(record, dict) for record in found)


def _kind_of_column(column: Any) -> str:
    """Return "list" or "dict", or a name that no other column has."""
    return type(column).__name__ if isinstance(column, list | dict) else f"{id(column)}"


def _whole_text(source: Source) -> str:
    with source.open() as stream:
        return stream.read().decode("utf-8-sig")


def _load(text: str) -> Any:
    def refuse_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        record = dict(pairs)
        if len(record) < len(pairs):
            names = [name for name, _ in pairs]
            refuse(f"the name {next(name for name in names if names.count(name) > 1)!r} occurs twice")
        return record

    return json.loads(text, object_pairs_hook=refuse_twice)


def _read_excel(source: Source, header: Any) -> tuple[Any, dict[str, str]]:
    import pandas as pd

    with pd.ExcelFile(_input(source), engine="openpyxl") as book:
        sheets = [str(sheet) for sheet in book.sheet_names]
        frame = pd.read_excel(book, sheet_name=sheets[0], header=None, keep_default_na=False, na_values=[""])
    frame = frame.dropna(how="all").dropna(how="all", axis=1)
    if not len(frame):
        _refuse(source, f"the sheet {sheets[0]!r} is empty")
    rows = [["" if pd.isna(cell) else str(cell) for cell in row] for row in frame.head(50).itertuples(index=False)]
    try:
        named = settle_header(source.name, rows, header)
    except ValueError as error:
        refuse(str(error), _RefusedError)
    names = rows[0] if named else [str(k) for k in range(frame.shape[1])]
    start = int(frame.index[0]) + 1 + named if frame.index[-1] - frame.index[0] + 1 == len(frame) else 0
    body = frame.iloc[int(named) :].reset_index(drop=True).set_axis(names, axis=1).infer_objects()
    others = f", the first of {len(sheets)}" if len(sheets) > 1 else ""
    return body, {"sheet": f"{sheets[0]}{others}", "first line": str(start), "names": "file" if named else "none"}


def _read_npy(source: Source, _: Any) -> tuple[Any, dict[str, str]]:
    import pandas as pd

    with source.open() as stream:
        array = load_array(source, "the array", stream)
    if array.dtype.names:
        if array.ndim != 1:
            _refuse(source, f"expected records in one dimension, got shape {array.shape}")
        return pd.DataFrame({name: array[name] for name in array.dtype.names}), {}
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        _refuse(
            source,
            f"expected a table of numbers in two dimensions, got shape {array.shape} of {array.dtype}; "
            "an NPZ file can hold labels and probabilities as two arrays",
        )
    columns = {str(k): array[:, k] for k in range(array.shape[1])}
    whole = {name: bool(np.all(values == np.rint(values))) for name, values in columns.items()}
    with np.errstate(invalid="ignore"):
        return pd.DataFrame({name: v.astype(np.int64) if whole[name] else v for name, v in columns.items()}), {
            "names": "none"
        }


def load_array(source: Source, what: str, stream: Any) -> NDArray[Any]:
    """Return an array of NumPy's format; objects are not read, because their bytes may run any code."""
    try:
        return np.lib.format.read_array(stream, allow_pickle=False)
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        why = "which are not read because they may run code; save numbers or texts"
        _refuse(source, f"{what} holds Python objects, {why}")


def read_arrays(source: Source) -> dict[str, NDArray[Any]]:
    """Return the arrays of an NPZ file.

    Raises
    ------
    ValueError
        If the archive is broken or holds objects.
    """
    import zipfile

    arrays = {}
    with _library(source), source.open() as stream, zipfile.ZipFile(stream) as archive:
        for member in archive.namelist():
            with archive.open(member) as inner:
                key = member.removesuffix(".npy")
                arrays[key] = load_array(source, f"the array {key!r}", inner)
    return arrays


_READERS: dict[str, Callable[[Source, Any], tuple[Any, dict[str, str]]]] = {
    "parquet": _read_parquet,
    "arrow": _read_arrow,
    "json": _read_json,
    "jsonl": _read_jsonl,
    "excel": _read_excel,
    "npy": _read_npy,
}
