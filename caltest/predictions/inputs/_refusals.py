"""Refusals: errors whose message names the argument, what is allowed and the value."""

from __future__ import annotations

from typing import Any, NoReturn


def refuse(msg: str, error: type[Exception] = ValueError) -> NoReturn:
    """Raise an error with a message; another one that is being handled is not shown."""
    raise error(msg) from None


def refuse_if(wrong: Any, msg: str, *, right_type: Any = True) -> None:
    """Refuse an argument with a message that costs nothing to write, of a wrong type as TypeError."""
    if wrong:
        refuse(msg, ValueError if right_type else TypeError)


def require(holds: Any, must: str, got: Any, *, right_type: Any = True) -> None:
    """Refuse an argument unless a condition holds: "`name` must ..., got ...", of a wrong type as TypeError."""
    if not holds:
        refuse(f"{must}, got {got!r}.", ValueError if right_type else TypeError)
