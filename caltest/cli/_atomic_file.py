"""A file that takes its name when it is complete: whoever reads it sees the old or the new content."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Open a new file that takes the name ``path`` when the block ends, or never if it raises."""
    beside = path.parent / f".caltest-{secrets.token_hex(12)}.part"
    try:
        with beside.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise


def require_writable(path: Path) -> None:
    """Raise OSError if `atomic_file` could not write here; nothing is changed."""
    if path.exists() and not os.access(path, os.W_OK):
        msg = "may not be written"
        raise PermissionError(None, msg, str(path))
    with suppress(_NothingWrittenError), atomic_file(path):
        raise _NothingWrittenError


class _NothingWrittenError(Exception):
    """Leaves `atomic_file` before anything has a name."""
