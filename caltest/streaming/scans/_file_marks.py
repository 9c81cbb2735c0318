"""How a file is known again when a scan goes on that has read some files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from caltest.predictions.inputs._refusals import refuse

_HASHED = 2**16  # bytes at either end of a file
Stamp = list[int | str]


class FileMark(NamedTuple):
    """How a file is known, however the caller spells its path.

    Attributes
    ----------
    path : str
        From the folder of the output, so that folders can be moved together.
    stamp : list
        Name, size, time of change and hash of the content. The name is not that of a symbolic link to the file.
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
        return cls(Path(path).as_posix(), [own_name(name), facts.st_size, facts.st_mtime_ns, content_hash(name)])


def left_to_read(marks: Mapping[str, FileMark], counted: Mapping[str, Stamp]) -> tuple[list[str], dict[str, Stamp]]:
    """Return the files that are not counted yet, and the stamps of those that are, by the paths that they have now.

    A file at a new path is known by its stamp, unless the file that had it is at its place. Its new path is kept, so
    that a later change of it is noticed there; of several copies only one is the file that was moved.

    Raises
    ------
    ValueError
        If a file was changed since it was counted.
    """
    changed = next((name for name, mark in marks.items() if counted.get(mark.path, mark.stamp) != mark.stamp), None)
    if changed is not None:
        refuse(f"{changed} was changed since the output was written; remove the output to read all files again.")
    here = {mark.path for mark in marks.values()}
    gone: dict[tuple[int | str, ...], list[str]] = {}
    for path, stamp in counted.items():
        if path not in here:
            gone.setdefault(tuple(stamp), []).append(path)
    left, known = [], dict(counted)
    for name, mark in marks.items():
        if mark.path in counted:
            continue
        before = gone.get(tuple(mark.stamp))
        if before:
            known[mark.path] = known.pop(before.pop())
        else:
            left.append(name)
    return left, known


def own_name(name: str) -> str:
    """Return the last part of the path of a file, also where a symbolic link of another name was given."""
    return os.path.basename(os.path.realpath(name))


def content_hash(name: str) -> str:
    """Return a hash of the size of a file, its beginning and its end, where Parquet keeps statistics."""
    with open(name, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        digest = hashlib.sha256(str(size).encode())
        for place in (0, max(size - _HASHED, 0)):
            file.seek(place)
            digest.update(file.read(_HASHED))
    return digest.hexdigest()[:16]
