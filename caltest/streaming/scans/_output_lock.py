"""The lock of an output: two scans that add files to one state at the same time would each lose those of the other."""

from __future__ import annotations

import errno
import os
import re
import socket
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from caltest.results import CalibrationWarning

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}  # what file systems without locks answer


@contextmanager
def locked(output: str | os.PathLike[str]) -> Iterator[None]:
    """Hold the lock of an output, which the system gives back however the process ends.

    It is a lock of the system (``flock``) on a file beside the output, ``.<name>.caltest-lock``, which says who holds
    it and is removed at the end. A file that a killed process left does not matter.

    Parameters
    ----------
    output : str or path-like
        The file that is written; symbolic links to it have the same lock.

    Raises
    ------
    ValueError
        If another process or thread holds the lock.
    """
    target = Path(os.path.realpath(output))
    path = target.with_name(f".{target.name}.caltest-lock")
    number = _acquired(path, output)
    if number is None:
        words = "cannot be locked here: run one scan into it at a time, otherwise files of the other one are lost"
        warnings.warn(f"{output} {words}.", CalibrationWarning, stacklevel=4)
        yield
        return
    try:
        os.ftruncate(number, 0)
        os.write(number, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        yield
    finally:
        with suppress(OSError):
            path.unlink()  # before the lock is given back, so that no file is removed that another process has locked
        os.close(number)


def _acquired(path: Path, output: str | os.PathLike[str]) -> int | None:
    """Return an open and locked file, or None where files cannot be locked."""
    while fcntl is not None:
        try:
            number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(output)) from None
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still_at(path, number):
                return number
        except BlockingIOError:
            msg = (
                f"{output} is being written by another scan or merge{_holder(number)}: wait until it has ended, or "
                "name another output and merge both."
            )
            os.close(number)
            raise ValueError(msg) from None
        except OSError as error:
            os.close(number)
            if error.errno in _NO_LOCKS:
                return None
            raise
        os.close(number)  # the process that held it has removed it meanwhile
    return None


def _is_still_at(path: Path, number: int) -> bool:
    """Return whether an open file has the name under which it was opened, and no other one."""
    opened = os.fstat(number)
    if not stat.S_ISREG(opened.st_mode) or opened.st_nlink > 1:
        raise FileExistsError(errno.EEXIST, "this is not a lock of caltest; remove it", str(path))
    try:
        return os.path.samestat(opened, path.stat())
    except FileNotFoundError:
        return False


def _holder(number: int) -> str:
    """Return who holds a lock, in words; nothing where it was not written down."""
    text = os.pread(number, 400, 0).decode(errors="replace")
    found = re.fullmatch(r"process (\d+) on ([\w.-]+)\n", text)
    return f" ({found[0].strip()})" if found else ""
