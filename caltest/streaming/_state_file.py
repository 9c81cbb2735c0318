"""The bytes of a state: an NPZ archive without pickled objects, with the fingerprint of the settings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from io import BytesIO
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

VERSION = 2
_FORMAT = "caltest calibration state"


def pack(settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], more: Mapping[str, Any]) -> bytes:
    """Return an NPZ archive of arrays with their settings; the same content has the same bytes."""
    header = {"format": _FORMAT, "version": VERSION, "settings": dict(settings), "more": dict(more)}
    header["checksum"] = _checksum(header, arrays)
    text = np.frombuffer(json.dumps(header, sort_keys=True).encode(), dtype=np.uint8)
    buffer = BytesIO()
    np.savez_compressed(buffer, header=text, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]], dict[str, Any]]:
    """Return settings, arrays and further entries; refuse what is not a whole state.

    Raises
    ------
    TypeError
        If ``data`` is no bytes.
    ValueError
        If ``data`` is truncated or changed, is no state, or was written by another version.
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        msg = f"`data` must be bytes, got {type(data).__name__}."
        raise TypeError(msg)
    try:
        with np.load(BytesIO(bytes(data)), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(arrays.pop("header").tobytes())
        found = header["format"], header["version"]
    except (ValueError, KeyError, TypeError, OSError, EOFError, AttributeError, BadZipFile) as error:
        msg = "`data` must be the bytes of a calibration state, got something else or a truncated file."
        raise ValueError(msg) from error
    except Exception as error:  # zlib.error, and what else a damaged archive raises
        msg = "`data` must be the bytes of a calibration state, got a damaged file."
        raise ValueError(msg) from error
    if found != (_FORMAT, VERSION):
        msg = f"`data` must be a {_FORMAT} of version {VERSION}, got {found[0]!r} of version {found[1]!r}."
        raise ValueError(msg)
    checksum = header.pop("checksum", None)
    if checksum != _checksum(header, arrays):
        msg = "`data` must be the bytes of a calibration state as they were written; these were changed."
        raise ValueError(msg)
    return header["settings"], arrays, header["more"]


def _checksum(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
