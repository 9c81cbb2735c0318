"""A growing file under a name: rotation, deletion and truncation are noticed, as ``tail -F`` does."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from hashlib import blake2b
from io import FileIO
from pathlib import Path
from typing import Any

_BYTES = 2**22  # that are read at once
_COMPARED = 4096  # bytes at the beginning of a file, and before the place that was reached, by which it is known again


def _opened(path: Path) -> FileIO:
    """Return a file without a buffer, which would hold bytes that are no longer in the file."""
    return path.open("rb", buffering=0)


class FollowedFile(AbstractContextManager["FollowedFile"]):
    """What is appended to a file, also after another file has taken its name or its content was cut off.

    When the file is another one, or no longer holds what was read, it is read from its beginning, with two exceptions
    that keep observations from being counted twice. A file that begins with everything that was read is read on from
    there: it was written again with more lines. A shorter file that begins like the one that was read is waited for,
    until it has grown longer or differs.

    Parameters
    ----------
    path : Path
        The name of the file.
    say : callable
        Receives a sentence on what has happened to the file.

    Notes
    -----
    Truncation is noticed by the size and by the 4,096 bytes before the place that was reached. A file that was cut off
    and has grown beyond that place between two looks, with the same bytes there, looks like one that grew.
    """

    def __init__(self, path: Path, say: Callable[[str], object]) -> None:
        self._path, self._say = path, say
        self._file = _opened(path)
        self._missing = self._leaving = self._in_doubt = False
        self._why, self._waits = "", False
        self._place, self._head, self._tail = 0, b"", b""
        self._digest: Any = blake2b()

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self) -> bytes | None:
        """Return the next bytes, none where there are no new ones, and None if the file begins again."""
        if self._in_doubt:
            return self._settle()
        data = self._file.read(_BYTES)
        if not self._holds_what_was_read(len(data)):
            return self._doubt("was cut off")
        if data:
            self._take(data)
            self._leaving = False
            return data
        return self._look_for_another()

    def _look_for_another(self) -> bytes | None:
        """Open the file that has the name now, if it is another one and no more is appended to the old one."""
        try:
            now = self._path.stat()
        except OSError:
            now = None
        if now is None or not self._path.is_file():
            if not self._missing:
                self._say(f"{self._path} is gone; waiting until there is a file of this name again")
            self._missing = True
            return b""
        self._missing = False
        if os.path.samestat(now, os.fstat(self._file.fileno())):
            return b""
        if not self._leaving:  # who writes may not have noticed yet: one more look at the old file
            self._leaving = True
            return b""
        try:
            opened = _opened(self._path)
        except OSError:  # gone again, or not readable yet
            return b""
        self._file.close()
        self._file, self._leaving = opened, False
        return self._doubt("was replaced by another file")

    def _settle(self) -> bytes | None:
        """Decide where to read on in a file that is not the one that was read, or no longer holds what was read."""
        size = os.fstat(self._file.fileno()).st_size
        if size < self._place:
            self._file.seek(0)
            if self._head.startswith(self._file.read(_COMPARED)):
                if not self._waits:
                    self._say(f"{self._path} {self._why}; waiting for lines that were not read yet")
                self._waits = True
                return self._look_for_another()
        elif self._begins_with_what_was_read():
            self._in_doubt = False
            return b""
        self._say(f"{self._path} {self._why}, and is read from its beginning; its lines are new observations")
        self._in_doubt = False
        self._file.seek(0)
        self._forget()
        return None

    def _begins_with_what_was_read(self) -> bool:
        """Read the file up to the place that was reached, and return whether it is what was read."""
        self._file.seek(0)
        digest, left = blake2b(), self._place
        while left:
            data = self._file.read(min(left, _BYTES))
            if not data:
                return False
            digest.update(data)
            left -= len(data)
        return digest.digest() == self._digest.digest()

    def _holds_what_was_read(self, more: int) -> bool:
        """Return whether the bytes before the place that was reached are still there, and so many more."""
        if os.fstat(self._file.fileno()).st_size < self._place + more:
            return False
        after = self._file.tell()
        self._file.seek(self._place - len(self._tail))
        same = self._file.read(len(self._tail)) == self._tail
        self._file.seek(after)
        return same

    def _take(self, data: bytes) -> None:
        self._place += len(data)
        self._digest.update(data)
        self._head += data[: _COMPARED - len(self._head)]
        self._tail = (self._tail + data)[-_COMPARED:]

    def _doubt(self, why: str) -> bytes | None:
        """Go on in a file of which it is not clear whether it holds what was read."""
        self._in_doubt, self._why, self._waits = True, why, False
        return self._settle()

    def _forget(self) -> None:
        """Nothing was read yet."""
        self._place, self._head, self._tail = 0, b"", b""
        self._digest = blake2b()
