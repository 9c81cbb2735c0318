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
from caltest.predictions.inputs._refusals import refuse, refuse_if
from caltest.predictions.inputs._validation import validate_count, validate_level
from caltest.results._atomic_file import write_atomically
from caltest.results._naming import describe
from caltest.results._plain import read_json
from caltest.streaming.monitors._arrivals import Arrivals, Lead
from caltest.streaming.monitors._bets import Bets
from caltest.streaming.monitors._pending_bets import PendingBets
from caltest.streaming.states._settings import MOST_CLASSES

FORMAT, VERSION, TIMED = "caltest.CalibrationMonitor", 2, 3
"""The version is that of the bets too: wealth of other bets must not go on. Monitors with a lead, times or batches have
their own, because bets on outcomes that are known before the next prediction would go on wrongly from theirs."""

_WITHOUT = {"lead": None, "arrivals": None}
_LENSES = {name: kind for name, kind in vars(_lenses).items() if isinstance(kind, type) and issubclass(kind, Lens)}


def write_monitor(
    path: Path, settings: Mapping[str, Any], bets: Bets | None, lead: Lead | None, arrivals: Arrivals | None
) -> None:
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
    timed = arrivals is not None or (lead is not None and bets is None)
    if timed:
        body["times"] = {"lead": lead and lead[:2], "arrivals": None if arrivals is None else arrivals.to_dict()}
    whole = {"format": FORMAT, "version": TIMED if timed else VERSION, "checksum": _checksum(body), **body}
    write_atomically(path, json.dumps(whole, allow_nan=False))


def read_monitor(path: Path) -> tuple[dict[str, Any], Bets | None, Arrivals | None]:
    """Return settings, bets, and what is not bet on yet, of a file.

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
    if whole.get("version") not in (VERSION, TIMED):
        refuse(
            f"{path} was written with version {whole.get('version')!r} of the bets, and this is version {VERSION} "
            f"or {TIMED}: its wealth cannot go on. Begin with a new CalibrationMonitor."
        )
    timed = whole["version"] == TIMED
    body = {name: whole.get(name) for name in ("settings", "bets", "times")[: 3 if timed else 2]}
    if whole.get("checksum") != _checksum(body):
        refuse(f"{path} was changed after it was written by CalibrationMonitor.save: its checksum is wrong.")
    try:
        return _read_body(whole["settings"], whole["bets"], whole["times"] if timed else _WITHOUT)
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        found = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        refuse(f"{path} holds a monitor that cannot be read: {found}")


def _read_body(settings: Any, state: Any, times: Any) -> tuple[dict[str, Any], Bets | None, Arrivals | None]:
    """Return settings, bets and arrivals, validated as arguments of a monitor are and before anything is allocated."""
    alpha = validate_level(settings["alpha"], "alpha")
    lead = Lead.from_list(times["lead"])
    found = {"alpha": alpha, "lens": _read_lens(settings["lens"]), "n_classes": settings["n_classes"]}
    found["lead"] = None if lead is None else lead.value
    found["classes"] = _read_classes(settings["classes"], found["n_classes"])
    if state is None:
        if found["n_classes"] is not None:
            refuse(f"`n_classes` must be null where there are no bets, got {found['n_classes']!r:.80}.")
        refuse_if(times["arrivals"] is not None, "`arrivals` must be null where there are no bets.")
        return found, None, None
    n_classes = validate_count(found["n_classes"], "n_classes", minimum=2)
    n_outcomes = validate_count(settings["n_outcomes"], "n_outcomes", minimum=2)
    if n_classes > MOST_CLASSES or n_outcomes > n_classes + 1:
        refuse(f"`n_classes` and `n_outcomes` must be at most {MOST_CLASSES:,}, got {n_classes:,} and {n_outcomes:,}.")
    induced = found["lens"].induced(np.full((1, n_classes), 1 / n_classes)).shape[1]
    if induced != n_outcomes:
        refuse(f"`n_outcomes` must be {induced} for {found['lens']!r} of {n_classes} classes, got {n_outcomes}.")
    kind = PendingBets if "paid" in state else Bets
    bets = kind.from_dict(n_outcomes, 1 / alpha, state)
    if times["arrivals"] is None:
        refuse_if(kind is PendingBets, "`arrivals` must not be null where bets are pending.")
        return found, bets, None
    arrivals = Arrivals.from_dict(lead, n_outcomes, times["arrivals"])
    n_times = len(bets.size) if isinstance(bets, PendingBets) else 0
    refuse_if(len(arrivals.pending) != n_times, f"`pending` must have the {n_times} times of bets that are pending.")
    return found, bets, arrivals


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
