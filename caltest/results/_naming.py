"""How objects of the package call themselves in reports: ``Name(field=value)``, defaults left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from typing import Any


def describe(thing: Any) -> str:
    """Return a short name: a dataclass shows the fields that differ from their defaults, a function its name.

    A function with options (`functools.partial`) shows them.
    """
    if is_dataclass(thing) and not isinstance(thing, type):
        parts = [
            f"{field.name}={describe(getattr(thing, field.name))}"
            for field in fields(thing)
            if field.repr and not _equal(getattr(thing, field.name), _default(field))
        ]
        return f"{type(thing).__name__}({', '.join(parts)})"
    if isinstance(thing, Mapping):
        return "{" + ", ".join(f"{name}: {describe(part)}" for name, part in thing.items()) + "}"
    if isinstance(thing, tuple):
        return "[" + ", ".join(describe(part) for part in thing) + "]"
    if isinstance(thing, partial):
        options = [f"{name}={describe(value)}" for name, value in thing.keywords.items()]
        return f"{describe(thing.func)}({', '.join([*map(describe, thing.args), *options])})"
    if callable(thing):
        return getattr(thing, "__name__", type(thing).__name__)
    return repr(thing)


def _equal(value: Any, default: Any) -> bool:
    try:
        return bool(value == default)
    except ValueError:  # arrays
        return False


def _default(field: Any) -> Any:
    return field.default_factory() if field.default_factory is not MISSING else field.default
