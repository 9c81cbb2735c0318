"""The bytes of a state: an NPZ archive without pickled objects, and what its sums can be."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from typing import IO, Any, NamedTuple, Self
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import refuse_if
from caltest.results._plain import read_json

MOST_ROWS = 2**34
"""The most observations that a state holds, for which no sum overflows."""
_FORMAT = "caltest calibration state"
_SMALL, _MOST_TIMES = 2**20, 100  # bytes of a header; times that it can be compressed: it has a hash of every file
_LARGE = 2**26  # bytes of arrays, above which the checksum comes before them
_PIECE = 2**20  # bytes


def require(fits: bool, name: str, what: str) -> None:
    """Raise ValueError unless an array of a file fits."""
    if not fits:
        refuse(f"`data` is no possible state: its array `{name}` must hold {what}, and holds what these cannot be.")


def is_increasing(numbers: NDArray[Any], stop: int) -> bool:
    """Return whether numbers increase, from 0 and below ``stop``."""
    return not numbers.size or bool(numbers[0] >= 0 and numbers[-1] < stop and (numbers[1:] > numbers[:-1]).all())


def require_room(n_samples: int) -> None:
    """Raise ValueError before sums of so many observations could overflow."""
    refuse_if(n_samples > MOST_ROWS, f"a state holds at most {MOST_ROWS:,} observations; keep several states.")


def is_counts(count: NDArray[Any], least: int) -> bool:
    """Return whether these are numbers of observations, each at least ``least`` and together at most `MOST_ROWS`."""
    inside = bool((count >= least).all() and (count <= MOST_ROWS).all())
    return inside and float(count.sum(dtype=np.float64)) <= MOST_ROWS


def is_low(part: NDArray[Any], bits: int) -> bool:
    """Return whether these are lower parts of sums, of so many bits."""
    return bool((part >= 0).all() and (part < 2**bits).all())


VERSION = 3


class Declared(NamedTuple):
    """What an array of a state can be: its shape, None where any number is possible, its type, and most rows."""

    shape: tuple[int | None, ...]
    dtype: Any = np.int64
    most: int | None = None


def pack(settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], more: Mapping[str, Any]) -> bytes:
    """Return an NPZ archive of arrays with their settings; the same content has the same bytes."""
    header = {"format": _FORMAT, "version": VERSION, "settings": dict(settings), "more": dict(more)}
    header["checksum"] = _checksum(header, _pieces(arrays))
    text = np.frombuffer(json.dumps(header, sort_keys=True).encode(), dtype=np.uint8)
    buffer = BytesIO()
    np.savez_compressed(buffer, header=text, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


@dataclass(frozen=True)
class Packed:
    """The bytes of a state whose header was read; its arrays are only declared.

    Attributes
    ----------
    settings, more : dict
        The settings, and further entries.
    """

    settings: dict[str, Any]
    more: dict[str, Any]
    _header: dict[str, Any]
    _data: bytes

    @classmethod
    def of(cls, data: Any) -> Self:
        """Read the header of a state; refuse what is none.

        Raises
        ------
        TypeError
            If ``data`` is no bytes.
        ValueError
            If ``data`` is truncated or damaged, is no state, or was written by another version.
        """
        if not isinstance(data, bytes | bytearray | memoryview):
            refuse(f"`data` must be bytes, got {type(data).__name__}.", TypeError)
        data = bytes(data)
        with _whole(), ZipFile(BytesIO(data)) as archive:
            entry = archive.getinfo("header.npy")
            if entry.file_size > max(_SMALL, _MOST_TIMES * entry.compress_size):
                refuse("the header is larger than it can be")
            header = read_json(_array(archive, "header", {"header": Declared((None,), np.uint8)}).tobytes())
            found = header["format"], header["version"]
        if found != (_FORMAT, VERSION):
            refuse(f"`data` must be a {_FORMAT} of version {VERSION}, got {found[0]!r} of version {found[1]!r}.")
        settings, more = header.get("settings"), header.get("more")
        if not isinstance(settings, dict) or not isinstance(more, dict):
            refuse("`data` must be the bytes of a calibration state, got a header without settings.")
        return cls(settings, more, header, data)

    def arrays(self, declared: Mapping[str, Declared]) -> dict[str, NDArray[Any]]:
        """Return the arrays of the state.

        Sizes and types are compared with what a state of these settings can have, and the checksum of large arrays is
        computed, before memory is taken for them.

        Raises
        ------
        ValueError
            If arrays are missing, too many or of a wrong size or type; if the checksum is wrong.
        """
        with _whole(), ZipFile(BytesIO(self._data)) as archive:
            names = sorted(name.removesuffix(".npy") for name in archive.namelist())
            if names != sorted([*declared, "header"]):
                refuse(f"the arrays are {', '.join(names)}")
            if sum(_opened(archive, name, declared)[1] for name in sorted(declared)) > _LARGE:
                self._compare(_streamed_pieces(archive, declared))
            arrays = {name: _array(archive, name, declared) for name in declared}
        self._compare(_pieces(arrays))
        return arrays

    def _compare(self, pieces: Iterator[bytes]) -> None:
        if self._header.get("checksum") != _checksum(self._header, pieces):
            msg = "`data` must be the bytes of a calibration state as they were written; these were changed."
            raise _ChangedError(msg)


class _ChangedError(ValueError):
    """The checksum is wrong."""


@contextmanager
def _whole() -> Iterator[None]:
    """Say of anything that goes wrong while an archive is read that it is no state."""
    try:
        yield
    except _ChangedError:
        raise
    except (ValueError, KeyError, TypeError, OSError, EOFError, AttributeError, BadZipFile) as error:
        reason = f" ({error})" if type(error) is ValueError else ""
        msg = f"`data` must be the bytes of a calibration state, got something else or a truncated file{reason}."
        raise ValueError(msg) from error
    except Exception as error:  # zlib.error, and what else a damaged archive raises
        msg = "`data` must be the bytes of a calibration state, got a damaged file."
        raise ValueError(msg) from error


def _opened(archive: ZipFile, name: str, declared: Mapping[str, Declared]) -> tuple[IO[bytes], int, tuple[int, ...]]:
    """Return the stream of an array after its header, its size in bytes and its shape; refuse sizes it cannot have."""
    entry, wanted = archive.getinfo(f"{name}.npy"), declared[name]
    stream = archive.open(entry)
    version = np.lib.format.read_magic(stream)
    read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
    shape, fortran_order, dtype = read_header(stream)
    size = math.prod(shape) * dtype.itemsize
    fits = len(shape) == len(wanted.shape) and all(
        there == one if one is not None else there >= 0 for there, one in zip(shape, wanted.shape, strict=True)
    )
    if (
        not fits
        or dtype != wanted.dtype
        or (fortran_order and len(shape) > 1)
        or entry.file_size != stream.tell() + size
    ):
        refuse(f"the array {name} has shape {shape} and type {dtype}")
    if wanted.most is not None and shape[0] > wanted.most:
        refuse(f"the array {name} has {shape[0]} rows, at most {wanted.most} are possible")
    return stream, size, shape


def _array(archive: ZipFile, name: str, declared: Mapping[str, Declared]) -> NDArray[Any]:
    stream, size, shape = _opened(archive, name, declared)
    with stream:
        return np.frombuffer(stream.read(size), dtype=declared[name].dtype).reshape(shape).copy()


def _checksum(header: Mapping[str, Any], pieces: Iterator[bytes]) -> str:
    entries = {name: part for name, part in header.items() if name != "checksum"}
    digest = hashlib.sha256(json.dumps(entries, sort_keys=True).encode())
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def _pieces(arrays: Mapping[str, NDArray[Any]]) -> Iterator[bytes]:
    """Yield what the checksum of arrays depends on."""
    for name in sorted(arrays):
        yield _title(name, arrays[name].dtype, arrays[name].shape)
        yield arrays[name].tobytes()


def _streamed_pieces(archive: ZipFile, declared: Mapping[str, Declared]) -> Iterator[bytes]:
    """Yield the same of arrays in a file, of which only a piece is in memory."""
    for name in sorted(declared):
        stream, _, shape = _opened(archive, name, declared)
        yield _title(name, np.dtype(declared[name].dtype), shape)
        with stream:
            yield from iter(partial(stream.read, _PIECE), b"")


def _title(name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    return f"{name} {dtype.str} {shape}".encode()
