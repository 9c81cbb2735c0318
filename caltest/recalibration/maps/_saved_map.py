"""Fitted recalibration maps as JSON files: written without pickle, read without running code."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from inspect import isfunction
from pathlib import Path
from typing import Any

import numpy as np

from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import refuse_if
from caltest.results._atomic_file import write_atomically
from caltest.results._naming import Specification, describe
from caltest.results._plain import read_json

_FORMAT, _VERSION = "caltest recalibration map", 2
_MOST_BYTES = 4 * 10_000  # of an element of an array: a text of so many characters
_ROOMS = ("statistics", "predictions")
"""Where specifications that are parameters come from."""


def write_map(recalibrator: Any, path: str | Path) -> None:
    """Write a fitted method; see `Recalibrator.save`."""
    content = {"format": _FORMAT, "version": _VERSION, "caltest": _caltest_version(), **_described(recalibrator)}
    text = json.dumps(content | {"sha256": _digest(content)}, indent=1, allow_nan=False)
    write_atomically(path, text + "\n")


def read_map(path: str | Path) -> Any:
    """Return the fitted method of a file; see `load_recalibrator`."""
    file = Path(path)
    foreign = f"{str(file)!r} is no recalibration map of caltest: expected the JSON that `save` of a method writes"
    try:
        content = read_json(file.read_text(encoding="utf-8"))
    except ValueError as error:  # no UTF-8, no JSON, or nested too deep
        refuse(f"{foreign} ({type(error).__name__}).")
    refuse_if(not isinstance(content, dict) or content.get("format") != _FORMAT, f"{foreign}.")
    if content.get("version") != _VERSION:
        refuse(
            f"{str(file)!r} has version {content.get('version')!r} of the format, this caltest ({_caltest_version()}) "
            f"reads version {_VERSION}: read it with the version that wrote it, {content.get('caltest')!r}."
        )
    written = content.pop("sha256", None)
    if written != _digest(content):
        refuse(f"{str(file)!r} was changed after it was written (its checksum differs): save the map again.")
    try:
        found = _rebuilt(content)
        _require_probabilities(found)
    except Exception as error:  # what an impossible map raises when it is applied is up to its method
        what = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        refuse(f"{str(file)!r} holds a map that cannot be used: {what}")
    return found


def _require_probabilities(found: Any) -> None:
    """Raise an error unless a fitted map makes probabilities of predictions."""
    if not hasattr(found, "classes_"):  # saved before it was fitted
        return
    classes, n_columns = found.classes_, found.n_features_in_
    n_classes = len(classes)
    flat = isinstance(classes, np.ndarray) and classes.ndim == 1
    if not flat or n_classes < 2 or len(set(classes.tolist())) < n_classes:
        refuse(f"`classes_` must be two or more different labels, got {classes!r:.80}.")
    if type(n_columns) is not int or n_columns not in ({1, 2} if n_classes == 2 else {n_classes}):
        refuse(f"`n_features_in_` must be the number of columns of {n_classes} classes, got {n_columns!r:.80}.")
    prob = np.vstack([np.full(n_classes, 1 / n_classes), np.linspace(1, 2, n_classes) / (1.5 * n_classes)])
    values = np.log(prob) if found.input == "logits" else prob
    given = values if n_columns > 1 else values[:, 1:] - values[:, :1] if found.input == "logits" else values[:, 1:]
    names = getattr(found, "feature_names_in_", None)
    if names is not None:
        import pandas as pd

        given = pd.DataFrame(given, columns=list(names))
    mapped = np.asarray(found.predict_proba(given))
    inside = mapped.shape == prob.shape and bool((mapped >= 0).all()) and np.allclose(mapped.sum(axis=1), 1, atol=1e-6)
    refuse_if(not inside, "what it makes of predictions are no probabilities.")


def _described(recalibrator: Any) -> dict[str, Any]:
    """Return the name of a method, its parameters, and what was fitted if anything was."""
    kind = type(recalibrator).__name__
    if type(recalibrator) is not _public("recalibration", kind):
        refuse(f"only the methods of caltest.recalibration can be saved, got {kind}.", TypeError)
    fitted = {name: value for name, value in vars(recalibrator).items() if name.endswith("_") and name[0] != "_"}
    return {
        "method": kind,
        "parameters": {name: _plain(value, name) for name, value in recalibrator.get_params(deep=False).items()},
        "fitted": {name: _plain(value, name) for name, value in fitted.items()},
    }


def _rebuilt(content: dict[str, Any]) -> Any:
    """Return the method that `_described` was given."""
    kind = _method(content["method"])
    recalibrator = kind(**{name: _object(value) for name, value in content["parameters"].items()})
    recalibrator.validate_parameters()
    unknown = sorted(set(content["fitted"]) - kind.fitted_attributes())
    if unknown:
        refuse(f"{content['method']} has no attribute {', '.join(unknown)!r:.80}.")
    for name, value in content["fitted"].items():
        setattr(recalibrator, name, _object(value))
    return recalibrator


def _method(name: str) -> Any:
    """Return the public method of a name."""
    if name == "NetworkScaling":
        refuse(
            "the file holds a NetworkScaling, which is no method of caltest any more, because it overfits: fit another "
            "one, such as TemperatureScaling()."
        )
    kind = _public("recalibration", name)
    if not hasattr(kind, "fitted_attributes"):
        refuse(f"the file holds the method {name!r}, which caltest {_caltest_version()} does not have.")
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
        dtype: np.dtype[Any] = np.dtype(value["dtype"])
        if dtype.kind not in "biufUO" or dtype.itemsize > _MOST_BYTES:
            refuse(f"an array has the type {value['dtype']!r:.80}, which no map has.")
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
        refuse(f"the file holds {named!r}, which caltest {_caltest_version()} does not have.")
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
