"""Monitors in files: strict JSON with a version and a checksum, which cannot run any code."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from caltest.predictions import _lenses
from caltest.predictions._lens import Lens
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import validate_count, validate_level
from caltest.results._atomic_file import write_atomically
from caltest.results._naming import describe
from caltest.results._plain import read_json
from caltest.streaming.monitors._bets import Bets
from caltest.streaming.states._settings import MOST_CLASSES

FORMAT, VERSION = "caltest.CalibrationMonitor", 2
"""The version is that of the bets too: wealth of other bets must not go on."""

_LENSES = {name: kind for name, kind in vars(_lenses).items() if isinstance(kind, type) and issubclass(kind, Lens)}


def write_monitor(path: Path, settings: Mapping[str, Any], bets: Bets | None) -> None:
    """Write settings and bets to a file, which is replaced at once or not at all.

    Raises
    ------
    TypeError
        If the lens is a function, or a class is neither a text nor a number.
    """
    written = {
        **settings,
        "lens": _write_lens(settings["lens"]),
        "classes": None if settings["classes"] is None else [_write_class(label) for label in settings["classes"]],
        "n_outcomes": None if bets is None else bets.n_outcomes,
    }
    body = {"settings": written, "bets": None if bets is None else bets.to_dict()}
    whole = {"format": FORMAT, "version": VERSION, "checksum": _checksum(body), **body}
    write_atomically(path, json.dumps(whole, allow_nan=False))


def read_monitor(path: Path) -> tuple[dict[str, Any], Bets | None]:
    """Return settings and bets of a file.

    Raises
    ------
    ValueError
        If it is no monitor, of another version, changed or cut off.
    """
    try:
        whole = read_json(path.read_text(encoding="utf-8"))
    except ValueError:  # no UTF-8, no JSON, or nested too deep
        whole = None
    if not isinstance(whole, dict) or whole.get("format") != FORMAT:
        refuse(f"{path} is not a monitor that was written by CalibrationMonitor.save, or it was cut off.")
    if whole.get("version") != VERSION:
        refuse(
            f"{path} was written with version {whole.get('version')!r} of the bets, and this is version {VERSION}: its "
            "wealth cannot go on. Begin with a new CalibrationMonitor."
        )
    body = {name: whole.get(name) for name in ("settings", "bets")}
    if whole.get("checksum") != _checksum(body):
        refuse(f"{path} was changed after it was written by CalibrationMonitor.save: its checksum is wrong.")
    try:
        return _read_body(whole["settings"], whole["bets"])
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        found = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        msg = f"{path} holds a monitor that cannot be read: {found}"
        raise ValueError(msg) from None


def _read_body(settings: Any, state: Any) -> tuple[dict[str, Any], Bets | None]:
    """Return settings and bets, validated as the arguments of a monitor are and before anything is allocated."""
    alpha = validate_level(settings["alpha"], "alpha")
    found = {"alpha": alpha, "lens": _read_lens(settings["lens"]), "n_classes": settings["n_classes"]}
    found["classes"] = _read_classes(settings["classes"], found["n_classes"])
    if state is None:
        if found["n_classes"] is not None:
            refuse(f"`n_classes` must be null where there are no bets, got {found['n_classes']!r:.80}.")
        return found, None
    n_classes = validate_count(found["n_classes"], "n_classes", minimum=2)
    n_outcomes = validate_count(settings["n_outcomes"], "n_outcomes", minimum=2)
    if n_classes > MOST_CLASSES or n_outcomes > n_classes + 1:
        refuse(f"`n_classes` and `n_outcomes` must be at most {MOST_CLASSES:,}, got {n_classes:,} and {n_outcomes:,}.")
    induced = found["lens"].induced(np.full((1, n_classes), 1 / n_classes)).shape[1]
    if induced != n_outcomes:
        refuse(f"`n_outcomes` must be {induced} for {found['lens']!r} of {n_classes} classes, got {n_outcomes}.")
    return found, Bets.from_dict(n_outcomes, 1 / alpha, state)


def _read_classes(written: Any, n_classes: Any) -> list[Any] | None:
    if written is None:
        return None
    kinds = isinstance(written, list) and all(one is None or isinstance(one, str | int | float) for one in written)
    if not kinds or len(set(written)) < len(written) or (n_classes is not None and len(written) not in {1, n_classes}):
        refuse(f"`classes` must be different texts or numbers, one for each class, got {written!r:.80}.")
    return list(written)


def _checksum(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _write_lens(lens: Any) -> dict[str, Any]:
    if _LENSES.get(type(lens).__name__) is not type(lens):
        refuse(f"a monitor with the lens {describe(lens)} cannot be saved: only the lenses of caltest can.", TypeError)
    return {"name": type(lens).__name__, "arguments": dict(vars(lens))}


def _read_lens(written: Mapping[str, Any]) -> Lens:
    found: Lens = _LENSES[written["name"]](**written["arguments"])
    return found


def _write_class(label: Any) -> Any:
    plain = label.item() if isinstance(label, np.generic) else label
    if plain is None or isinstance(plain, str | int | float):
        return plain
    msg = f"a monitor with classes such as {label!r} cannot be saved: only texts and numbers can."
    raise TypeError(msg)
