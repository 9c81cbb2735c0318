"""JSON of files that anybody may have written: no numbers that JSON does not have, and no deep nesting."""

from __future__ import annotations

import json
from typing import Any

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
