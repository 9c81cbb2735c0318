"""The classes of a state, which all of its batches must have where its event is one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from caltest.predictions._lens import Lens, lens_name
from caltest.predictions._lenses import Canonical, ClassWise, Groups

Answer = TypeVar("Answer", bound=Any)


def agreed_classes(lens: Lens, known: list[str] | None, given: Sequence[Any] | None) -> list[str] | None:
    """Return the names of the classes ``known`` and ``given``, either of which may be missing; refuse other classes."""
    if given is None or not isinstance(lens, Canonical | ClassWise | Groups):
        return known
    names = [str(label) for label in given]
    if known not in (None, names):
        msg = f"all batches must have the same classes in the same order, got {known} before and {names} now."
        raise ValueError(msg)
    return names


def read_classes(written: Any, n_classes: int) -> list[str] | None:
    """Return the names of classes that a file holds; refuse what are no names of so many classes."""
    if written is None:
        return None
    numbers = {1, 2} if n_classes == 2 else {n_classes}  # of two classes the name of the event is enough
    listed = isinstance(written, list) and len(written) in numbers and all(isinstance(name, str) for name in written)
    if not listed or len(set(written)) < len(written):
        msg = f"`data` must hold different names of {n_classes} classes, got `classes` = {written!r:.80}."
        raise ValueError(msg)
    return list(written)


def with_class_names(answer: Answer, classes: Sequence[str] | None) -> Answer:
    """Return a result of a state whose lens is called by the labels of the classes, where these are known."""
    return replace(answer, lens_name=lens_name(answer.lens, classes))
