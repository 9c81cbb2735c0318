"""Where predictions come from: paths and streams, how they are compressed, and which format name and content say."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from caltest.predictions.inputs._refusals import refuse, refuse_if

FORMATS = {
    "csv": (".csv", ".txt", ".dat"),
    "tsv": (".tsv", ".tab"),
    "json": (".json",),
    "jsonl": (".jsonl", ".ndjson"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".feather", ".arrow", ".ipc"),
    "excel": (".xlsx", ".xlsm"),
    "npz": (".npz",),
    "npy": (".npy",),
}
"""Formats by the word of ``file_format=``, and their endings."""

NAMES = {
    **{"csv": "CSV", "tsv": "TSV", "json": "JSON", "jsonl": "JSON lines", "parquet": "Parquet", "arrow": "Arrow"},
    **{"excel": "Excel", "npz": "NPZ", "npy": "NPY", "xls": "an old Excel file (.xls)", "zip": "zip", "gzip": "gzip"},
    **{"bzip2": "bzip2", "xz": "xz", "zstd": "Zstandard"},
}
TEXT = {"csv", "tsv", "json", "jsonl"}

_COMPRESSIONS = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zip": "zip", ".zst": "zstd"}
_MAGIC = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"FEA1": "arrow",
    b"\xff\xff\xff\xff": "arrow",
    b"\x93NUMPY": "npy",
    b"\xd0\xcf\x11\xe0": "xls",
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}
"""First bytes of files. See the specifications of the formats."""

_JSON = re.compile(rb'(?:\xef\xbb\xbf)?\s*(?:(\[\s*[\[{])|\{\s*")')
_HEAD = 1 << 16  # bytes


class UndecidedError(ValueError):
    """A file that could be read once something is decided.

    Attributes
    ----------
    options : dict
        The options of `read_predictions` with which it is read, if they say what is meant.
    """

    def __init__(self, text: str, options: dict[str, Any]) -> None:
        super().__init__(text)
        self.options = options


class Named:
    """What messages call by a name."""

    name: str

    def refuse(self, text: str, **options: Any) -> NoReturn:
        """Raise a ValueError that says what is wrong with it, and which options of `read_predictions` would mend it."""
        if options:
            msg = f"{self.name}: {text}"
            raise UndecidedError(msg, options) from None
        refuse(f"{self.name}: {text}")

    def refuse_if(self, wrong: Any, text: str) -> None:
        """Refuse it with a text that costs nothing to write."""
        refuse_if(wrong, f"{self.name}: {text}")


@dataclass(frozen=True)
class Source(Named):
    """A file or a stream, without its compression.

    Attributes
    ----------
    name : str
        What messages call it.
    file_format : str
        One of `FORMATS`.
    where : Path or bytes
        The file if it can be read as it is, otherwise the whole content.
    reading : dict
        What to say about how it is read.
    """

    name: str
    file_format: str
    where: Path | bytes
    reading: dict[str, str]

    def open(self) -> BinaryIO:
        """Return a stream of the content, from its beginning."""
        return self.where.open("rb") if isinstance(self.where, Path) else io.BytesIO(self.where)

    def head(self) -> bytes:
        """Return the first bytes."""
        with self.open() as stream:
            return stream.read(_HEAD)


def find_source(given: Any, file_format: str | None) -> Source:
    """Return what is to be read.

    Raises
    ------
    TypeError
        If ``given`` is neither a path nor a stream of bytes.
    ValueError
        If there is no such file; if it is a directory, a device or empty; if its compression is broken; if its name,
        its content and ``file_format`` contradict each other.
    """
    name, suffixes, where = _given(given)
    compression = _COMPRESSIONS.get(suffixes[-1]) if suffixes else None
    source = Source(name, "", where, {})
    found = _magic(source)
    if found in _UNPACK and not (found == "zip" and compression is None and file_format):
        compression = compression or found
    reading: dict[str, str] = {}
    if compression is not None:
        unpacked, inner = _unpacked(source, compression, found)
        source = replace(source, where=unpacked)
        reading["compression"] = NAMES[compression]
        suffixes = [suffix.lower() for suffix in Path(inner).suffixes] if inner else suffixes[:-1]
        found = _magic(source)
    source.refuse_if(not source.head(), "cannot be read: it is empty (0 bytes)")
    by_name = next((word for word, endings in FORMATS.items() if suffixes and suffixes[-1] in endings), None)
    chosen = _choose(source, file_format, by_name, found, suffixes, is_stream=isinstance(where, bytes))
    origin = "given" if file_format else "by its name" if by_name == chosen else "guessed from its content"
    return replace(source, file_format=chosen, reading={"format": f"{NAMES[chosen]} ({origin})", **reading})


def _given(given: Any) -> tuple[str, list[str], Path | bytes]:
    """Return the name, its endings, and the path, or the content of what can be read once."""
    if hasattr(given, "read"):
        content = given.read()
        if not isinstance(content, bytes):
            got = type(given).__name__
            refuse(f"`path` must be a path or a file opened in binary mode ('rb'), got {got}.", TypeError)
        name = getattr(given, "name", None)
        return ("standard input" if name == "<stdin>" else str(name or "the stream")), [], content
    path = Path(given)
    try:
        exists = path.exists()
    except (OSError, ValueError):  # too long a name, or one with a NUL byte
        exists = False
    refuse_if(not exists, f"no such file: {given}")
    refuse_if(path.is_dir(), f"{given} is a directory, not a file; name one file in it")
    is_device = path.is_char_device() or path.is_block_device() or path.is_socket()
    refuse_if(is_device, f"{given} is a device, not a file")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return str(given), suffixes, path.read_bytes() if path.is_fifo() else path


def content_of(path: Path) -> str | None:
    """Return the name of the format or the compression that the first bytes of a file say; None for text."""
    found = _magic(Source(str(path), "", path, {}))
    return found if found in TEXT else NAMES.get(found or "")


def _magic(source: Source) -> str | None:
    """Return the format or the compression that the first bytes say; None for text that is not JSON."""
    head = source.head()
    known = next((word for magic, word in _MAGIC.items() if head.startswith(magic)), None)
    if known == "zip":
        return _kind_of_zip(source)
    if known is None and (match := _JSON.match(head)):
        return "json" if match[1] else "jsonl"
    return known


def _kind_of_zip(source: Source) -> str:
    """Tell arrays of NumPy and Excel from other archives."""
    try:
        with source.open() as stream, zipfile.ZipFile(stream) as archive:
            members = archive.namelist()
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, NotImplementedError):
        return "zip"
    if "xl/workbook.xml" in members:
        return "excel"
    return "npz" if members and all(member.endswith(".npy") for member in members) else "zip"


def _unpacked(source: Source, compression: str, found: str | None) -> tuple[bytes, str | None]:
    """Return the content without its compression, and the name of the file in an archive."""
    if found != compression and not (compression == "zip" and found in {"npz", "excel"}):
        what = f"{NAMES[found]}" if found else "not compressed"
        source.refuse(
            f"the name says {NAMES[compression]}, but the content is not ({what}); give the file the ending of "
            "its content"
        )
    try:
        with source.open() as stream:
            return _UNPACK[compression](stream)
    except ImportError:
        source.refuse("reading Zstandard needs pyarrow: pip install pyarrow")
    except Exception as error:  # what a broken file raises is up to libraries
        source.refuse(f"cannot be read: the {NAMES[compression]} compression is broken: {said_by(error)}")


def _unzip(stream: BinaryIO) -> tuple[bytes, str]:
    with zipfile.ZipFile(stream) as archive:
        members = [m for m in archive.namelist() if not m.endswith("/") and not m.startswith("__MACOSX/")]
        if len(members) != 1:
            listed = ", ".join(members[:5]) or "none"
            refuse(f"the archive must hold one file, got {len(members)} ({listed}); unpack it and name one")
        return archive.read(members[0]), members[0]


def _unpack_zstd(stream: BinaryIO) -> tuple[bytes, None]:
    import pyarrow as pa

    with pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), "zstd") as unpacked:
        return unpacked.read(), None


_UNPACK: dict[str, Callable[[BinaryIO], tuple[bytes, str | None]]] = {
    "gzip": lambda stream: (gzip.decompress(stream.read()), None),
    "bzip2": lambda stream: (bz2.decompress(stream.read()), None),
    "xz": lambda stream: (lzma.decompress(stream.read()), None),
    "zip": _unzip,
    "zstd": _unpack_zstd,
}


def _choose(
    source: Source, given: str | None, by_name: str | None, found: str | None, suffixes: list[str], *, is_stream: bool
) -> str:
    """Return the format, unless what was given, the name and the content contradict each other."""
    if found == "xls" or suffixes[-1:] == [".xls"]:
        source.refuse("old Excel files (.xls) are not read; save it as .xlsx or CSV")
    if given is not None and given not in FORMATS:
        refuse(f"`file_format` must be one of {', '.join(map(repr, FORMATS))}, got {given!r}.")
    said = given or by_name
    if said is None:
        if found in FORMATS:
            return str(found)
        if is_stream and found is None:
            return "csv"
        endings = ", ".join(ending for all_of in FORMATS.values() for ending in all_of)
        source.refuse(
            f"expected a file ending in {endings}, also compressed ({', '.join(_COMPRESSIONS)}), got "
            f"{suffixes[-1] if suffixes else 'no ending'!r}; other names need `file_format`"
        )
    content = None if found is None else NAMES.get(found)
    contradicts = found is not None and found != said and not ({found, said} <= {"json", "jsonl"})
    if contradicts:
        who = "`file_format`" if given else "the name"
        remedy = f"; say so with `file_format` {found!r}" if found in FORMATS else ""
        source.refuse(f"{who} says {NAMES[said]}, but the content is {content}{remedy}")
    return said


def said_by(error: Exception) -> str:
    """Return what an exception of a library says, in one line that is not too long."""
    text = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    return text if len(text) <= 300 else f"{text[:300]} ..."
