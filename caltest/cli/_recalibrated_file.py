"""Files with recalibrated predictions: the columns of the file that was read, with other probabilities."""

from __future__ import annotations

import argparse
import io
import tempfile
from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from caltest.cli._messages import refuse_if, say
from caltest.cli._options import reading_of
from caltest.predictions.inputs._refusals import refuse
from caltest.results._atomic_file import atomic_file, require_writable
from caltest.results._description import join

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TEXT = {".csv": ",", ".tsv": "\t"}
ENDINGS = (*_TEXT, ".parquet", ".npz")
_KEPT = {";", "|"}
"""Separators that a CSV file keeps; others become commas."""


def parse_output(text: str) -> Path:
    """Return the path of a file of predictions that can be written."""
    path = Path(text)
    if path.suffix not in ENDINGS:
        refuse(
            f"must name a file such as OUT.csv, OUT.tsv, OUT.parquet or OUT.npz, got {text}", argparse.ArgumentTypeError
        )
    return path


def check_outputs(outputs: Mapping[str, Path], sources: Collection[Path]) -> None:
    """Refuse, before the work begins, what could not be written after it, and what would replace a file that is read.

    Raises
    ------
    OSError
        If nothing can be written in one of the places.
    ValueError
        If a folder does not exist, if a file is read or written twice, or if the library of a format is not installed.
    """
    for option, path in outputs.items():
        refuse_if(not path.parent.is_dir(), f"{option}: the folder {path.parent} does not exist")
        read = next((source for source in sources if path.resolve() == source.resolve()), None)
        refuse_if(read is not None, f"{option} would replace the file that is read, {read}: name another one")
    same = len({path.resolve() for path in outputs.values()}) < len(outputs)
    refuse_if(same, f"{', '.join(outputs)} must name different files")
    for path in outputs.values():
        require_writable(path)
        lacking = path.suffix == ".parquet" and find_spec("pyarrow") is None
        refuse_if(lacking, f"writing {path} needs pyarrow: pip install pyarrow")
    replaced = [str(path) for path in outputs.values() if path.exists()]
    if replaced:
        say("note", f"{join(replaced)} will be replaced")


class RecalibratedFile:
    """The columns of a file, as they stand there and in their order, with other probabilities.

    Parameters
    ----------
    path : Path
        Where to write it.
    options : Namespace
        How the file was read. A CSV file keeps a semicolon and a decimal comma.
    """

    def __init__(self, path: Path, options: argparse.Namespace) -> None:
        self.path = path
        self._reading = reading_of(options)
        self._marks = ",", "."
        self._columns: dict[str, NDArray[Any]] = {}
        self._labels: Collection[Any] = ()

    def fill(
        self,
        given: Path | BinaryIO,
        prob: NDArray[Any],
        names: Sequence[str],
        labels: Sequence[Any],
        rows: NDArray[Any] | None = None,
    ) -> None:
        """Take the columns of a file with other probabilities.

        Parameters
        ----------
        given : Path or stream
            The file that was read.
        prob : array of shape (n_samples, n_columns)
            The new probabilities of the columns, in the order of their names. Those that stood in one array, or as a
            list in each row, are one array here.
        names : sequence of str
            The names of these columns.
        labels : sequence
            The labels of all classes.
        rows : array of int, optional
            The rows of the file that were taken.
        """
        from caltest.predictions.files._read import decimal_mark, read_columns

        for_marks, for_columns = (given, given) if isinstance(given, Path) else _twice(given)
        self._marks = decimal_mark(for_marks, **self._reading)
        # Numbers with decimal commas would be texts where a format has numbers.
        as_text = self.path.suffix in _TEXT or self._marks[1] == "."
        columns = read_columns(for_columns, len(prob), as_text=as_text, rows=rows, **self._reading)
        if len(names) == 1:
            columns[names[0]] = prob[:, 0] if prob.shape[1] == 1 else prob
        else:
            columns |= {name: prob[:, k] for k, name in enumerate(names)}
        self._columns, self._labels = columns, labels

    def add(self, name: str, values: NDArray[Any]) -> None:
        """Add a column, under another name if it is taken."""
        more = (f"repair_{name}_{k}" for k in range(2, 3 + len(self._columns)))
        free = next(one for one in (name, f"repair_{name}", *more) if one not in self._columns)
        self._columns[free] = values

    def write(self) -> None:
        """Write the file; in the folder for temporary files if it cannot be written.

        Finished work is not lost because a disk is full or a folder is gone: then the exception says where the columns
        are.
        """
        try:
            with atomic_file(self.path) as stream:
                self._write(stream, self.path.suffix)
        except Exception as error:  # what a failed write raises is up to libraries
            saved = Path(tempfile.mkdtemp(prefix="caltest-repair-")) / f"{self.path.stem}.csv"
            with atomic_file(saved) as stream:
                self._write(stream, ".csv")
            reason = getattr(error, "strerror", None) or error
            msg = f"{self.path} could not be written ({reason}); the recalibrated predictions are in {saved}"
            raise ValueError(msg) from error

    def _write(self, stream: BinaryIO, ending: str) -> None:
        import numpy as np
        import pandas as pd

        if ending == ".npz":
            arrays: dict[str, Any] = {name: _without_objects(values) for name, values in self._columns.items()}
            np.savez(stream, allow_pickle=False, **arrays)
            return
        table: dict[str, Any] = {}
        for name, values in self._columns.items():
            table |= dict(self._as_columns(name, values))
        frame = pd.DataFrame(table)
        if ending == ".parquet":
            frame.to_parquet(stream, index=False)
            return
        sep, decimal = self._marks
        marks = {"sep": sep if sep in _KEPT and ending == ".csv" else _TEXT[ending], "decimal": decimal}
        frame.to_csv(stream, index=False, **marks)

    def _as_columns(self, name: str, values: NDArray[Any]) -> list[tuple[str, NDArray[Any]]]:
        """Return the columns of an array: a table of probabilities has a column ``p_LABEL`` for each label."""
        if values.ndim == 1:
            return [(name, values)]
        flat, labels = values.reshape(len(values), -1), self._labels
        ends = list(map(str, labels)) if flat.shape[1] == len(labels) else [str(k) for k in range(flat.shape[1])]
        stem = "p" if flat.shape[1] == len(labels) else name
        while any(f"{stem}_{end}" in self._columns for end in ends):
            stem = f"{stem}_{name}"
        return [(f"{stem}_{end}", flat[:, k]) for k, end in enumerate(ends)]


def _twice(stream: BinaryIO) -> tuple[BinaryIO, BinaryIO]:
    """Return the content of a stream as two, which are read from their beginnings."""
    stream.seek(0)
    content = stream.read()
    return io.BytesIO(content), io.BytesIO(content)


def _without_objects(values: NDArray[Any]) -> NDArray[Any]:
    """Return an array that is read without running code: objects as texts, missing ones as empty texts."""
    if values.dtype != object:
        return values
    import numpy as np
    import pandas as pd

    texts = pd.Series(values.ravel()).map(str, na_action="ignore").fillna("")
    return texts.to_numpy().astype(np.str_).reshape(values.shape)
