"""Files of which some fragments have been read: their states, kept beside the output so that a kill loses little."""

from __future__ import annotations

import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from caltest.results._atomic_file import atomic_file
from caltest.streaming.scans._file_marks import FileMark
from caltest.streaming.scans._fragments import Fragment, Reading
from caltest.streaming.states._state import CalibrationState
from caltest.streaming.states._state_file import Packed

_SECONDS = 5.0  # between two writings


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
            msg = f"{found.path} is damaged; remove it to read the files in it from their beginning."
            raise ValueError(msg) from None
        names = {mark.path: name for name, mark in marks.items()}
        for data, more in kept:
            name = names.get(str(more.get("file")))
            if name is None or marks[name].stamp != more.get("stamp") or more.get("columns") != reading.columns:
                continue
            read = more.get("read")
            if isinstance(read, list) and all(type(row) is int for row in read):
                state = CalibrationState.from_bytes(data)
                if state.fingerprint != reading.empty().fingerprint:
                    msg = f"{found.path} holds rows of {name} in {state!r}; choose the same settings, or remove it."
                    raise ValueError(msg)
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
