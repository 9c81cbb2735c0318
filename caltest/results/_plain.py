"""Results as plain Python objects, and JSON that anybody may have written, read without surprises."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from caltest.results._naming import describe


def to_plain(value: Any) -> Any:
    """Return a value as strict JSON holds it; infinities and NaN become None, objects the code that makes them."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    elif hasattr(value, "to_dict") and not isinstance(value, type):  # a result or a frame
        value = value.to_dict("records") if hasattr(value, "columns") else value.to_dict()
    elif hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name if isinstance(name, str) else f"{name:.12g}": to_plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(part) for part in value]
    return value if isinstance(value, int | str | None) else describe(value)


_DEEPEST = 40
"""Lists and objects within each other; files of the package have at most about 15."""


def read_json(text: str | bytes) -> Any:
    """Return what a text in JSON holds.

    Raises
    ------
    ValueError
        If it is no JSON, has NaN or an infinity, or nests lists and objects more than 40 deep.
    """
    try:
        found = json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError(_too_deep()) from None
    level, depth = [found], 0
    while level := [one for one in level if isinstance(one, list | dict)]:
        depth += 1
        if depth > _DEEPEST:
            raise ValueError(_too_deep())
        level = [part for one in level for part in (one.values() if isinstance(one, dict) else one)]
    return found


def _refuse(name: str) -> Any:
    msg = f"{name} is no number of JSON"
    raise ValueError(msg)


def _too_deep() -> str:
    return f"lists and objects are nested more than {_DEEPEST} deep"
