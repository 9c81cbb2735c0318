"""Tables of cases in one test: every case that fails is named, none hides another."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest


def failures(cases: Mapping[str, Any] | Iterable[str], check: Callable[..., None]) -> dict[str, str]:
    """The cases whose check fails, by name, with the reason; ``check(value)`` or, without values, ``check(name)``."""
    pairs = cases.items() if isinstance(cases, Mapping) else ((name, name) for name in cases)
    found = {}
    for name, value in pairs:
        try:
            check(value)
        except (Exception, pytest.fail.Exception) as error:
            found[name] = f"{type(error).__name__}: {error}"
    return found


def check_refused(call: Callable[..., Any], kind: type[Exception], message: str, *arguments: Any, **options: Any):
    """A call raises an exception of exactly this kind with this text, and no traceback of another one above it."""
    with pytest.raises(kind, match=re.escape(message)) as caught:
        call(*arguments, **options)
    assert caught.type is kind
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
