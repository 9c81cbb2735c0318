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
from caltest.results._atomic_file import write_atomically
from caltest.results._naming import describe
from caltest.streaming._bets import Bets

FORMAT, VERSION = "caltest.CalibrationMonitor", 1
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
        whole = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:  # no UTF-8, or no JSON
        whole = None
    if not isinstance(whole, dict) or whole.get("format") != FORMAT:
        msg = f"{path} is not a monitor that was written by CalibrationMonitor.save, or it was cut off."
        raise ValueError(msg)
    if whole.get("version") != VERSION:
        msg = (
            f"{path} was written with version {whole.get('version')!r} of the bets, and this is version {VERSION}: its "
            "wealth cannot go on. Begin with a new CalibrationMonitor."
        )
        raise ValueError(msg)
    body = {name: whole.get(name) for name in ("settings", "bets")}
    if whole.get("checksum") != _checksum(body):
        msg = f"{path} was changed after it was written by CalibrationMonitor.save: its checksum is wrong."
        raise ValueError(msg)
    try:
        settings, state = whole["settings"], whole["bets"]
        found = {**settings, "lens": _read_lens(settings["lens"])}
        bets = None if state is None else Bets.from_dict(found.pop("n_outcomes"), 1 / settings["alpha"], state)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        msg = f"{path} holds a monitor that cannot be read: {error}"
        raise ValueError(msg) from None
    return found, bets


def _checksum(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _write_lens(lens: Any) -> dict[str, Any]:
    if _LENSES.get(type(lens).__name__) is not type(lens):
        msg = f"a monitor with the lens {describe(lens)} cannot be saved: only the lenses of caltest can."
        raise TypeError(msg)
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
