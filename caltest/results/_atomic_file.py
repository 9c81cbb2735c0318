"""Files that are replaced at once: whoever reads one sees the old or the new content, never half of it."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_MOST_LINKS = 40  # in a chain of symbolic links, as Linux has it


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a new file that takes the name ``path`` when the block ends, or never if it raises.

    The content is written to a file of an unpredictable name in the same folder, which is created here and never opened
    if it exists, reaches the disk, and is renamed. A process that is killed leaves ``path`` as it was.

    * A symbolic link stays a link: the file that it names is replaced, as a shell does for ``> path``. In a folder
      where everybody may write (such as ``/tmp``), a link of somebody else is refused, which could name any file.
    * A file that exists keeps its permissions, and its owner as far as the system allows it. One that may not be
      written is refused. Other hard links to it keep the old content.
    * What is not a regular file (a pipe, ``/dev/null``) cannot be replaced, and is written directly.

    Parameters
    ----------
    path : str or path-like
        The final name.

    Yields
    ------
    BinaryIO
        A file that is open for writing bytes.

    Raises
    ------
    OSError
        If the file cannot be written; the message names ``path``.
    """
    if _is_special(path):
        with open(path, "wb") as stream:
            yield stream
        return
    target = _target(Path(path))
    known = _writable(target)
    beside = target.parent / f".caltest-{secrets.token_hex(12)}.part"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    try:
        number = os.open(beside, flags, 0o666 if known is None else 0o600)  # the umask is taken off by the system
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    try:
        with os.fdopen(number, "wb") as stream:
            yield stream
            stream.flush()
            if known is not None:
                _like(number, beside, known)
            os.fsync(number)
        os.replace(beside, target)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise


def write_atomically(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Replace the content of a file at once, text in UTF-8, as `atomic_file` does."""
    with atomic_file(path) as stream:
        stream.write(content.encode() if isinstance(content, str) else content)


def require_writable(path: str | os.PathLike[str]) -> None:
    """Raise OSError if `atomic_file` could not write here; nothing is changed."""
    if _is_special(path) and not os.path.isdir(path):  # opening a pipe and closing it would end what reads it
        return
    with suppress(_NothingWrittenError), atomic_file(path):
        raise _NothingWrittenError


class _NothingWrittenError(Exception):
    """Leaves `atomic_file` before anything has a name."""


def _is_special(path: str | os.PathLike[str]) -> bool:
    """Return whether something is there that is not a regular file."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return False


def _target(path: Path) -> Path:
    """Return the file behind symbolic links, which may be missing."""
    for _ in range(_MOST_LINKS):
        if not path.is_symlink():
            return path
        _refuse_link_of_others(path)
        path = path.parent / path.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


def _refuse_link_of_others(link: Path) -> None:
    """Raise PermissionError where Linux refuses to follow a link with ``fs.protected_symlinks``."""
    if not hasattr(os, "geteuid"):
        return
    folder, owner = link.parent.stat(), link.lstat().st_uid
    shared = folder.st_mode & stat.S_ISVTX and folder.st_mode & stat.S_IWOTH
    if shared and owner not in {os.geteuid(), folder.st_uid}:
        words = "is a symbolic link of another user in a folder where everybody may write"
        raise PermissionError(errno.EACCES, words, str(link))


def _writable(target: Path) -> os.stat_result | None:
    """Return what is known of the file that is replaced, None if there is none; refuse one that may not be written."""
    try:
        known = target.stat()
    except FileNotFoundError:
        return None
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))
    return known


def _like(number: int, path: Path, known: os.stat_result) -> None:
    """Give an open file the owner and the permissions of another one."""
    if hasattr(os, "fchown"):
        with suppress(PermissionError):
            os.fchown(number, known.st_uid, known.st_gid)
        os.fchmod(number, known.st_mode & 0o777)
    else:
        os.chmod(path, known.st_mode & 0o777)
