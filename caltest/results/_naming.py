"""How objects show themselves: as the code that makes them, parameters at their defaults left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, field, fields, is_dataclass
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


def parameter(default: T, check: Callable[[Any, str], Any]) -> T:
    """Return a field of a `Specification` that is checked when an object is made.

    Parameters
    ----------
    default : object
        The default value.
    check : callable
        A function of a value and the name of the field. It raises TypeError or ValueError; what it returns is stored,
        or the value as it is if that is None.
    """
    return field(default=default, metadata={"check": check})


class Specification:
    """A frozen dataclass that shows itself as the code that makes it, in print and in messages.

    Parameters without a default are shown by their place, others by their name where they differ from it:
    ``ECE(partition=EqualWidth(15))``.
    """

    def __post_init__(self) -> None:
        for each in fields(self):  # type: ignore[arg-type]
            if "check" in each.metadata:
                given = getattr(self, each.name)
                checked = each.metadata["check"](given, each.name)
                self._keep(**{each.name: given if checked is None else checked})

    def _keep(self, **values: Any) -> None:
        """Set parameters while they are checked; afterwards they are frozen."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._shown())})"

    @property
    def brief(self) -> str:
        """The same without empty parentheses: ``KS``, ``ECE(partition=EqualWidth(15))``."""
        return repr(self) if self._shown() else type(self).__name__

    def _shown(self) -> list[str]:
        """Return the parameters that are shown, as code."""
        parts: list[str] = []
        if not is_dataclass(self):  # a user's own class
            return parts
        for each in fields(self):
            value, default = getattr(self, each.name), _default(each)
            if not each.repr or _equal(value, default):
                continue
            parts.append(describe(value) if default is MISSING else f"{each.name}={describe(value)}")
        return parts


def describe(thing: Any) -> str:
    """Return an object as code: a specification by its parameters, a function or a class by its name."""
    if isinstance(thing, Mapping):
        return "{" + ", ".join(f"{name!r}: {describe(part)}" for name, part in thing.items()) + "}"
    if isinstance(thing, tuple) and hasattr(thing, "_asdict"):  # a named tuple
        parts = (f"{name}={describe(part)}" for name, part in thing._asdict().items())
        return f"{type(thing).__name__}({', '.join(parts)})"
    if isinstance(thing, tuple | list):
        return "[" + ", ".join(describe(part) for part in thing) + "]"
    if isinstance(thing, partial):
        options = [f"{name}={describe(value)}" for name, value in thing.keywords.items()]
        return f"{describe(thing.func)}({', '.join([*map(describe, thing.args), *options])})"
    if isinstance(thing, type) or (callable(thing) and not is_dataclass(thing)):
        return getattr(thing, "__name__", type(thing).__name__)
    return repr(thing)


def _default(field: Field[Any]) -> Any:
    return field.default_factory() if field.default_factory is not MISSING else field.default


def _equal(value: Any, default: Any) -> bool:
    try:
        return bool(value == default)
    except ValueError:  # arrays
        return False
