"""Tables of cases in one test, in which no failure hides another, and cases of which most wait for the slow tests."""

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


def mostly_slow(cases: Iterable[Any], kept: int = 1) -> list[Any]:
    """Cases of a test that calculates the same for each: the first ones as they are, the others marked slow.

    A tuple holds the values of several arguments.
    """
    return _mostly(pytest.mark.slow(few_draws=True), cases, kept)


def mostly_nightly(cases: Iterable[Any], kept: int = 1) -> list[Any]:
    """Cases of a slow test, the first ones as they are, the others marked nightly; tuples as in `mostly_slow`."""
    return _mostly(pytest.mark.nightly, cases, kept)


def _mostly(mark: pytest.MarkDecorator, cases: Iterable[Any], kept: int) -> list[Any]:
    tuples = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*values, marks=() if k < kept else mark) for k, values in enumerate(tuples)]
