"""A state of files, tables or batches that do not fit into memory."""

from __future__ import annotations

import os
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from caltest.predictions._lens import Lens
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import refuse_if, require, validate_workers
from caltest.results._atomic_file import atomic_file, require_writable, write_atomically
from caltest.results._progress import Progress, reporting
from caltest.streaming.scans._engines import on_cluster, on_threads
from caltest.streaming.scans._file_marks import FileMark, Stamp, left_to_read
from caltest.streaming.scans._fragments import (
    CsvFormat,
    Fragment,
    Reading,
    find_files,
    first_batch,
    fragments_of,
    is_path,
)
from caltest.streaming.scans._output_lock import locked
from caltest.streaming.states._redrawn_cells import RedrawnCells
from caltest.streaming.states._state import CalibrationState
from caltest.streaming.states._state_file import Packed

_SECONDS = 5.0  # between two writings of what is unfinished


def scan(
    source: Any,
    *,
    label: str | None = None,
    prob: Sequence[str] | None = None,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    micro_cells: int | RedrawnCells = 4096,
    sep: str | None = None,
    decimal: str = ".",
    workers: int | None = None,
    scheduler: Any = None,
    output: str | Path | None = None,
    name: str = "",
    progress: bool | Progress | None = None,
) -> CalibrationState:
    """Return the state of files, of a table, or of batches, in constant memory.

    Parameters
    ----------
    source : str, Path, sequence of these, object with ``__arrow_c_stream__``, or iterable of batches
        Parquet or CSV files, a folder of them or a pattern such as ``"data/*.parquet"``; a table of pandas, polars,
        DuckDB or pyarrow; or batches: pairs ``(y_true, y_prob)`` of arrays, or tables.
    label, prob : str and sequence of str, optional
        Names of the label column and of the probability columns. By default they are guessed from the first batch, as
        `caltest.predictions.read_predictions` does.
    classes : sequence, optional
        The label of each probability column.
    lens : lens, optional
        What to look at, as in `CalibrationState`.
    micro_cells : int or RedrawnCells
        Number of micro-cells, or the cells for a lens with more than two outcomes, as in `CalibrationState`. Outcomes
        are drawn by the name and the content of the file and the number of the row in it.
    sep, decimal : str, optional
        Separator of the values of CSV files, by default a comma (a semicolon if ``decimal=","``), and decimal mark.
    workers : int, optional
        Threads for files, each of which reads some row groups or a file; -1 for all processors. By default 1, or as in
        `caltest.config_context`. The state does not depend on it.
    scheduler : str or distributed.Client, optional
        For files that the workers of a Dask cluster read instead: the address of its scheduler, such as
        ``"tcp://10.0.0.1:8786"``, or a client. What a lost worker had done is done again by others, and counted once.
        Needs the extra ``dask``.
    output : str or Path, optional
        For files: where the state is kept. It is written whenever a file is finished, with the names of the finished
        files, and these are not read again by another call with the same ``output``. Row groups of files that are not
        finished are kept beside it, in ``<output>.unfinished``, unless a cluster reads. Another scan into the same
        output is refused as long as one runs.
    name : str
        For a table or batches through a lens with more than two outcomes: their ``source`` in
        `CalibrationState.update`, by which their rows differ from those of other states that are merged.
    progress : bool or callable, optional
        For files: whether a progress bar is shown, or a function that is called with ``(done, total)`` bytes. By
        default a bar on a terminal, or as in `caltest.config_context`.

    Returns
    -------
    CalibrationState
        The state; its number of classes is that of the columns.

    Raises
    ------
    TypeError
        If ``source`` is none of these, or ``scheduler`` is no address and no client.
    ValueError
        If there are no such files or columns, or ``sep`` or ``decimal`` is no such mark; if a value is refused,
        naming file, row group and row; if ``output`` holds a state with other settings or columns, of files that
        have changed since, or one that was merged, or is written by another scan now; if ``output`` or ``scheduler`` is
        given with a source that is no file.

    See Also
    --------
    CalibrationState : What is returned.
    arrow_states : The states of the partitions of Spark or Ray.

    Examples
    --------
    >>> batches = [([0, 1], [0.25, 0.5]), ([1], [0.75])]
    >>> scan(batches).n_samples
    3
    """
    named = {"label": label, "prob": prob, "classes": classes}
    if is_path(source) or (isinstance(source, Sequence) and source and all(map(is_path, source))):
        require(not name, "`name` is for a table or batches; files have names", name)
        files = find_files(source)
        csv = CsvFormat(sep, decimal)
        reading = Reading.of(*first_batch(files, csv), named, lens, micro_cells)
        options = {"csv": csv, "workers": validate_workers(workers), "scheduler": scheduler, "output": output}
        with nullcontext() if output is None else locked(output), reporting(progress, "reading") as report:
            return _scan_files(files, reading, **options, progress=report)
    refuse_if((sep, decimal) != (None, "."), "`sep` and `decimal` are for CSV files, got a table or batches.")
    if output is not None:
        refuse("`output` is for files, which are distinguished; save the state of batches by `to_bytes`.")
    if scheduler is not None:
        refuse("`scheduler` is for files, which every worker can read; on a cluster use `arrow_states` for batches.")
    if hasattr(source, "__arrow_c_stream__"):
        source = _arrow_batches(source)
    if not isinstance(source, Iterable) or isinstance(source, str | bytes):
        refuse(f"`source` must be files, a table or an iterable of batches, got {type(source).__name__}.", TypeError)
    return _scan_batches(source, named, lens, micro_cells, name)


def _scan_batches(
    batches: Iterable[Any], named: dict[str, Any], lens: Any, micro_cells: Any, name: str
) -> CalibrationState:
    state, reading, row = None, None, 0
    for k, batch in enumerate(batches):
        try:
            if isinstance(batch, tuple):
                y_true, y_prob = batch
                if state is None:
                    shape = np.shape(y_prob)
                    state = CalibrationState(shape[1] if len(shape) == 2 else 2, lens, micro_cells)
                state.update(y_true, y_prob, classes=named["classes"], source=name)
                row += len(y_true)
                continue
            for part in _arrow_batches(batch):
                if reading is None:
                    reading = Reading.of("batch 0", part, named, lens, micro_cells)
                    state = state or reading.empty()
                reading.add(state, part, name)  # type: ignore[arg-type]
                row += part.num_rows
        except ValueError as error:
            msg = f"batch {k}, whose first row is row {row} of all: {error}"
            raise ValueError(msg) from error
    if state is None:
        refuse("`source` must hold at least one batch, got none.")
    return state


def _arrow_batches(table: Any) -> Iterator[Any]:
    """Return the record batches of a table; they are read one by one where the table can be."""
    import pyarrow as pa

    if isinstance(table, pa.RecordBatch):
        return iter([table])
    if not hasattr(table, "__arrow_c_stream__"):
        refuse(
            f"a batch must be a pair (y_true, y_prob) or a table with __arrow_c_stream__, got {type(table).__name__}.",
            TypeError,
        )
    reader = pa.RecordBatchReader.from_stream(table)
    return (batch for batch in reader if batch.num_rows)


def _scan_files(
    files: list[str], reading: Reading, *, csv: CsvFormat, workers: int, scheduler: Any, output: Any, progress: Progress
) -> CalibrationState:
    state, counted = reading.empty(), dict[str, Stamp]()
    if output is not None:
        require_writable(output)  # before hours of reading
        output = os.path.realpath(output)  # what is unfinished is kept beside the file itself, not beside a link to it
        if Path(output).exists():
            kept, counted = _before(output, reading)
            state.merge(kept)
    marks = {name: FileMark.of(name, output) for name in files}
    left, known = left_to_read(marks, counted)
    if known != counted:  # files were moved
        counted = known
        save(state, output, counted, reading)
    beside = output if scheduler is None else None
    unfinished = UnfinishedFiles.of(beside, {name: marks[name] for name in left}, reading)
    fragments = [part for name in left for part in fragments_of(name, csv) if not unfinished.has(part)]
    steps = on_threads(fragments, reading, workers) if scheduler is None else on_cluster(fragments, reading, scheduler)
    n_bytes, total = 0, sum(fragment.n_bytes for fragment in fragments)
    errors: list[BaseException] = []
    try:
        with closing(steps):
            for step in steps:
                n_bytes += step.n_bytes
                progress(n_bytes, total)
                errors += step.errors
                new, names = step.state, step.files
                if new is not None and step.fragment is not None:
                    new, names = unfinished.add(step.fragment, new), (step.fragment.file,)
                if new is not None:
                    state.merge(new)
                    counted |= {marks[name].path: marks[name].stamp for name in names}
                    if output is not None:
                        save(state, output, counted, reading)
                unfinished.write_now_and_then()
    finally:
        unfinished.write()
    if errors:
        raise errors[0]
    return state


def _before(output: str, reading: Reading) -> tuple[CalibrationState, dict[str, Stamp]]:
    """Return the state of earlier scans into an output, and the stamps of its files, by path."""
    data = Path(output).read_bytes()
    try:
        more = Packed.of(data).more
    except ValueError as error:
        refuse(f"{output}: {error} Name another output, or remove it to read all files again.")
    if "files" not in more:
        refuse(
            f"{output} holds a state that does not know its files, of `caltest merge` or `to_bytes`, so that some "
            "could be counted twice; name another output, and merge both."
        )
    columns: Any = more.get("columns")
    if not _are_stamps(more["files"]) or not _are_columns(columns):
        refuse(f"{output} holds a state whose files or columns cannot be read; remove it to read all files again.")
    if columns != reading.columns:
        refuse(
            f"{output} holds a state of other columns, label {columns['label']!r} and probabilities "
            f"{', '.join(columns['prob'])}; name another output, or remove it to read all files again."
        )
    kept = CalibrationState.from_bytes(data)
    if kept.fingerprint != reading.empty().fingerprint:
        refuse(
            f"{output} holds a state with other settings, {kept!r}; name another output, or remove it to read all "
            "files again."
        )
    return kept, more["files"]


def _are_stamps(files: Any) -> bool:
    kinds = [str, int, int, str]
    return isinstance(files, dict) and all(
        isinstance(stamp, list) and [type(part) for part in stamp] == kinds for stamp in files.values()
    )


def _are_columns(columns: Any) -> bool:
    return isinstance(columns, dict) and "label" in columns and isinstance(columns.get("prob"), list)


def save(state: CalibrationState, output: str | Path, files: dict[str, Stamp], reading: Reading) -> None:
    """Write a state with its files and columns; a reader sees the old or the new one, never half of it."""
    write_atomically(output, state._pack({"files": files, "columns": reading.columns}))


@dataclass
class UnfinishedFiles:
    """The states of files that are not finished, and the numbers of the first rows of the fragments in them.

    They are not part of the output's state: a file that was refused may be mended, and is then read from its beginning.

    Attributes
    ----------
    path : Path or None
        Where they are kept; nowhere if None.
    marks : mapping of str to FileMark
        How every file is known.
    columns : mapping
        The columns that are read.
    """

    path: Path | None
    marks: Mapping[str, FileMark]
    columns: Mapping[str, Any]
    _states: dict[str, CalibrationState] = field(default_factory=dict)
    _read: dict[str, list[int]] = field(default_factory=dict)
    _written: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, output: str | Path | None, marks: Mapping[str, FileMark], reading: Reading) -> UnfinishedFiles:
        """Return what an earlier scan into ``output`` left of these files, as far as nothing has changed."""
        found = cls(None if output is None else Path(f"{output}.unfinished"), marks, reading.columns)
        if found.path is None or not found.path.exists():
            return found
        try:
            with zipfile.ZipFile(found.path) as archive:
                if any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist()):
                    raise zipfile.BadZipFile  # compressed entries may be of any size
                kept = [(data, Packed.of(data).more) for data in map(archive.read, archive.namelist())]
        except (zipfile.BadZipFile, ValueError):
            refuse(f"{found.path} is damaged; remove it to read the files in it from their beginning.")
        names = {mark.path: name for name, mark in marks.items()}
        for data, more in kept:
            name = names.get(str(more.get("file")))
            if name is None or marks[name].stamp != more.get("stamp") or more.get("columns") != reading.columns:
                continue
            read = more.get("read")
            if isinstance(read, list) and all(type(row) is int for row in read):
                state = CalibrationState.from_bytes(data)
                if state.fingerprint != reading.empty().fingerprint:
                    refuse(f"{found.path} holds rows of {name} in {state!r}; choose the same settings, or remove it.")
                found._states[name] = state
                found._read[name] = read
        return found

    def has(self, fragment: Fragment) -> bool:
        """Return whether a fragment is in one of the states."""
        return fragment.first_row in self._read.get(fragment.file, ())

    def add(self, fragment: Fragment, state: CalibrationState) -> CalibrationState | None:
        """Add a fragment; return the state of its file if this was the last one."""
        name = fragment.file
        self._states[name] = self._states[name].merge(state) if name in self._states else state
        self._read.setdefault(name, []).append(fragment.first_row)
        if len(self._read[name]) < fragment.n_fragments:
            return None
        del self._read[name]
        return self._states.pop(name)

    def write_now_and_then(self) -> None:
        """Write what is there unless this was done a few seconds ago."""
        if time.monotonic() - self._written > _SECONDS:
            self.write()

    def write(self) -> None:
        """Write what is there, or remove the file where there is nothing."""
        if self.path is None:
            return
        self._written = time.monotonic()
        if not self._states:
            self.path.unlink(missing_ok=True)
            return
        with atomic_file(self.path) as stream, zipfile.ZipFile(stream, "w") as archive:
            for number, (name, state) in enumerate(self._states.items()):
                mark = self.marks[name]
                place = {"file": mark.path, "stamp": mark.stamp, "read": self._read[name]}
                more: dict[str, Any] = place | {"columns": self.columns}
                archive.writestr(f"{number}.npz", state._pack(more))
