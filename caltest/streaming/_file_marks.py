"""How a file is known again when a scan goes on that has read some files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

_HASHED = 2**16  # bytes at either end of a file
Stamp = list[int | str]


class FileMark(NamedTuple):
    """How a file is known, however the caller spells its path.

    Attributes
    ----------
    path : str
        From the folder of the output, so that folders can be moved together.
    stamp : list
        Name, size, time of change and hash of the content.
    """

    path: str
    stamp: Stamp

    @classmethod
    def of(cls, name: str, output: str | Path | None) -> FileMark:
        """Return the mark of a file for the scan into an output."""
        facts, real = os.stat(name), os.path.realpath(name)
        try:
            path = os.path.relpath(real, os.path.dirname(os.path.realpath(output or "")))
        except ValueError:  # another drive
            path = real
        return cls(Path(path).as_posix(), [Path(name).name, facts.st_size, facts.st_mtime_ns, content_hash(name)])


def left_to_read(marks: Mapping[str, FileMark], counted: Mapping[str, Stamp]) -> list[str]:
    """Return the files that are not counted yet, given the stamps of those that are, by path.

    A file at a new path is known by its stamp, unless the file that had it is at its place.

    Raises
    ------
    ValueError
        If a file was changed since it was counted.
    """
    changed = next((name for name, mark in marks.items() if counted.get(mark.path, mark.stamp) != mark.stamp), None)
    if changed is not None:
        msg = f"{changed} was changed since the output was written; remove the output to read all files again."
        raise ValueError(msg)
    here = {mark.path for mark in marks.values()}
    moved = [stamp for path, stamp in counted.items() if path not in here]
    return [name for name, mark in marks.items() if mark.path not in counted and mark.stamp not in moved]


def content_hash(name: str) -> str:
    """Return a hash of the size of a file, its beginning and its end, where Parquet keeps statistics."""
    with open(name, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        digest = hashlib.sha256(str(size).encode())
        for place in (0, max(size - _HASHED, 0)):
            file.seek(place)
            digest.update(file.read(_HASHED))
    return digest.hexdigest()[:16]
