"""Fitted recalibration maps as JSON files: written without pickle, read without running code."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from inspect import isfunction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest.results._atomic_file import write_atomically
from caltest.results._naming import Specification, describe

if TYPE_CHECKING:
    from caltest.recalibration._base import Recalibrator

_FORMAT, _VERSION = "caltest recalibration map", 1
_ROOMS = ("statistics", "predictions")
"""Where specifications that are parameters come from."""


def write_map(recalibrator: Recalibrator, path: str | Path) -> None:
    """Write a fitted method; see `Recalibrator.save`."""
    content = {"format": _FORMAT, "version": _VERSION, "caltest": _caltest_version(), **_described(recalibrator)}
    text = json.dumps(content | {"sha256": _digest(content)}, indent=1, allow_nan=False)
    write_atomically(path, text + "\n")


def load(path: str | Path) -> Recalibrator:
    """Read a fitted recalibration map from a JSON file.

    Parameters
    ----------
    path : str or pathlib.Path
        A file that ``save`` of a recalibration method wrote.

    Returns
    -------
    Recalibrator
        The fitted method; its predictions are those of the one that was saved.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is no recalibration map, has another version of the format, or was changed after it was written
        (its checksum differs).

    See Also
    --------
    Recalibrator.save : Writes such a file.

    Examples
    --------
    >>> import os, tempfile
    >>> import caltest
    >>> from caltest.recalibration import TemperatureScaling, load
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> fitted = TemperatureScaling().fit(y_prob[:5000], y_true[:5000])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "temperature.json")
    ...     fitted.save(path)
    ...     again = load(path)
    >>> again.temperature_ == fitted.temperature_
    True
    """
    file = Path(path)
    foreign = f"{str(file)!r} is no recalibration map of caltest: expected the JSON that `save` of a method writes"
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        msg = f"{foreign} ({type(error).__name__})."
        raise ValueError(msg) from None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        msg = f"{foreign}."
        raise ValueError(msg)
    if content.get("version") != _VERSION:
        msg = (
            f"{str(file)!r} has version {content.get('version')!r} of the format, this caltest ({_caltest_version()}) "
            f"reads version {_VERSION}: read it with the version that wrote it, {content.get('caltest')!r}."
        )
        raise ValueError(msg)
    written = content.pop("sha256", None)
    if written != _digest(content):
        msg = f"{str(file)!r} was changed after it was written (its checksum differs): save the map again."
        raise ValueError(msg)
    return _rebuilt(content)


def _described(recalibrator: Recalibrator) -> dict[str, Any]:
    """Return the name of a method, its parameters, and what was fitted if anything was."""
    kind = type(recalibrator).__name__
    if type(recalibrator) is not _public("recalibration", kind):
        msg = f"only the methods of caltest.recalibration can be saved, got {kind}."
        raise TypeError(msg)
    fitted = {name: value for name, value in vars(recalibrator).items() if name.endswith("_") and name[0] != "_"}
    return {
        "method": kind,
        "parameters": {name: _plain(value, name) for name, value in recalibrator.get_params(deep=False).items()},
        "fitted": {name: _plain(value, name) for name, value in fitted.items()},
    }


def _rebuilt(content: dict[str, Any]) -> Recalibrator:
    """Return the method that `_described` was given."""
    kind = _method(content["method"])
    recalibrator: Recalibrator = kind(**{name: _object(value) for name, value in content["parameters"].items()})
    for name, value in content["fitted"].items():
        setattr(recalibrator, name, _object(value))
    return recalibrator


def _method(name: str) -> Any:
    """Return the public method of a name."""
    from caltest.recalibration._base import Recalibrator

    kind = _public("recalibration", name)
    if not isinstance(kind, type) or not issubclass(kind, Recalibrator):
        msg = f"the file holds the method {name!r}, which caltest {_caltest_version()} does not have."
        raise ValueError(msg)
    return kind


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, allow_nan=False).encode()).hexdigest()


def _plain(value: Any, name: str) -> Any:  # noqa: PLR0911 (one line for each kind)
    """Return a value as JSON knows it; arrays and specifications are dictionaries with their kind."""
    if isinstance(value, np.ndarray):
        listed = [_plain(one, name) for one in value.ravel().tolist()]
        return {"array": listed, "dtype": value.dtype.str if value.dtype != object else "object", "shape": value.shape}
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else {"float": str(value)}
    if isinstance(value, list | tuple):
        return {"tuple" if isinstance(value, tuple) else "list": [_plain(one, name) for one in value]}
    if isinstance(value, Mapping):
        return {"mapping": [[_plain(key, name), _plain(one, name)] for key, one in value.items()]}
    if isinstance(value, Specification) and is_dataclass(value) and _known(type(value).__name__) is type(value):
        parts = {field.name: _plain(getattr(value, field.name), name) for field in fields(value) if field.init}
        return {"specification": type(value).__name__, "parameters": parts}
    if callable(value) and _function(getattr(value, "__name__", "")) is value:
        return {"function": value.__name__}
    if type(value) is _public("recalibration", type(value).__name__):  # a method within a method
        return _described(value)
    msg = (
        f"`{name}` = {describe(value)} cannot be written to JSON. Parameters that only the fit needs may be replaced "
        f"before, such as set_params({name}=None); the fitted map stays the same."
    )
    raise TypeError(msg)


def _object(value: Any) -> Any:  # noqa: PLR0911 (one line for each kind)
    """Return what `_plain` was given."""
    if not isinstance(value, dict):
        return value
    if "array" in value:
        listed = [_object(one) for one in value["array"]]
        dtype = object if value["dtype"] == "object" else np.dtype(value["dtype"])
        array: Any = np.empty(len(listed), dtype=dtype)
        array[:] = listed
        return array.reshape(value["shape"])
    if "float" in value:
        return float(value["float"])
    if "list" in value:
        return [_object(one) for one in value["list"]]
    if "tuple" in value:
        return tuple(_object(one) for one in value["tuple"])
    if "mapping" in value:
        return {_object(key): _object(one) for key, one in value["mapping"]}
    if "method" in value:
        return _rebuilt(value)
    named = value["specification" if "specification" in value else "function"]
    found = _known(named) if "specification" in value else _function(named)
    if found is None:
        msg = f"the file holds {named!r}, which caltest {_caltest_version()} does not have."
        raise ValueError(msg)
    if "function" in value:
        return found
    return found(**{name: _object(part) for name, part in value["parameters"].items()})


def _function(name: str) -> Any:
    """Return the public function of a name, such as a distance; None where there is none."""
    found = (_public(room, name) for room in _ROOMS)
    return next((one for one in found if isfunction(one)), None)


def _known(name: str) -> Any:
    """Return the public specification of a name; None where there is none."""
    found = (_public(room, name) for room in _ROOMS)
    return next((kind for kind in found if isinstance(kind, type) and issubclass(kind, Specification)), None)


def _public(room: str, name: str) -> Any:
    """Return what has a public name in a room; None where there is nothing."""
    module = import_module(f"caltest.{room}")
    return getattr(module, name) if name in dir(module) else None


def _caltest_version() -> str:
    return str(import_module("caltest").__version__)
