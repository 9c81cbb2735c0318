"""What distinguishes one part of a study from another: names alone do not, because two functions may share one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from hashlib import sha256
from types import CodeType, FunctionType
from typing import Any

from caltest.results._naming import describe


def identify(thing: Any) -> str:
    """Return the description of a thing, with a digest of the code of the functions in it.

    Two functions are the same if their code, defaults and enclosed values are; the functions that they call are not
    compared.
    """
    codes = [_meaning(function, ()) for function in _functions(thing)]
    return _text(thing) + (f" #{sha256(repr(codes).encode()).hexdigest()[:16]}" if codes else "")


def _text(thing: Any) -> str:
    """Describe a thing in the same words in every process: no dataclass shows the address of a function in it."""
    if is_dataclass(thing) and not isinstance(thing, type):
        parts = [f"{field.name}={_text(getattr(thing, field.name))}" for field in fields(thing) if field.repr]
        return f"{type(thing).__name__}({', '.join(parts)})"
    if isinstance(thing, Mapping):
        return "{" + ", ".join(f"{name!r}: {_text(part)}" for name, part in thing.items()) + "}"
    if isinstance(thing, tuple | list):
        return "[" + ", ".join(_text(part) for part in thing) + "]"
    if isinstance(thing, partial):
        options = [f"{name}={_text(value)}" for name, value in thing.keywords.items()]
        return f"{_text(thing.func)}({', '.join([*map(_text, thing.args), *options])})"
    return describe(thing)


def _functions(thing: Any) -> Iterator[FunctionType]:
    """Yield the functions in a thing, in a fixed order."""
    if isinstance(thing, FunctionType):
        yield thing
        return
    parts: Any = ()
    if isinstance(thing, partial):
        parts = (thing.func, *thing.args, *thing.keywords.values())
    elif isinstance(thing, Mapping):
        parts = thing.values()
    elif isinstance(thing, tuple | list):
        parts = thing
    elif is_dataclass(thing) and not isinstance(thing, type):
        parts = [getattr(thing, field.name) for field in fields(thing)]
    for part in parts:
        yield from _functions(part)


def _meaning(function: FunctionType, seen: tuple[FunctionType, ...]) -> Any:
    """Return code, defaults and enclosed values; a function that encloses itself is followed once only."""
    if function in seen:
        return function.__qualname__
    enclosed = [cell.cell_contents for cell in function.__closure__ or ()]
    values = [*enclosed, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    inner = [_meaning(value, (*seen, function)) for value in values for value in _functions(value)]
    return function.__module__, function.__qualname__, _instructions(function.__code__), _text(values), inner


def _instructions(code: CodeType) -> Any:
    return code.co_code, code.co_names, [_constant(value) for value in code.co_consts]


def _constant(value: Any) -> Any:
    if isinstance(value, CodeType):
        return _instructions(value)
    return sorted(map(repr, value)) if isinstance(value, frozenset) else repr(value)
