"""The classes of a state, which all of its batches must have where its event is one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from caltest.predictions._lens import Lens
from caltest.predictions._lenses import Canonical, ClassWise, Groups


def agreed_classes(lens: Lens, known: list[str] | None, given: Sequence[Any] | None) -> list[str] | None:
    """Return the names of the classes ``known`` and ``given``, either of which may be missing; refuse other classes."""
    if given is None or not isinstance(lens, Canonical | ClassWise | Groups):
        return known
    names = [str(label) for label in given]
    if known not in (None, names):
        msg = f"all batches must have the same classes in the same order, got {known} before and {names} now."
        raise ValueError(msg)
    return names
