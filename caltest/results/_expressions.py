"""Texts that name objects, such as ``ECE(EqualWidth(15))``: public names and literals, and nothing else."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import ModuleType
from typing import Any

_OF_LABELS = ("ClassWise", "ClassGroups")
"""Lenses whose arguments may be labels."""


class PublicNames(Mapping[str, Any]):
    """The public names of rooms of the package, and further objects; a file is loaded when its name is looked up."""

    def __init__(self, *rooms: ModuleType, **objects: Any) -> None:
        self._rooms = {name: room for room in rooms for name in dir(room)}
        self._objects = objects

    def __getitem__(self, name: str) -> Any:
        return self._objects[name] if name in self._objects else getattr(self._rooms[name], name)

    def __contains__(self, name: object) -> bool:
        return name in self._objects or name in self._rooms

    def __iter__(self) -> Iterator[str]:
        return iter({**self._rooms, **self._objects})

    def __len__(self) -> int:
        return len({**self._rooms, **self._objects})


def read_object(
    text: str, known: Mapping[str, Any], label: Callable[[str], int] | None = None, example: str = "ECE(EqualWidth(15))"
) -> Any:
    """Return what a text names: calls of known names with known names, literals and further calls as arguments.

    A call of a class makes an object, and a class alone stands for its call without arguments; a call of a function is
    the function with these options (`functools.partial`). Nothing else is run.

    Parameters
    ----------
    text : str
        The text.
    known : mapping
        What may be named.
    label : callable, optional
        Returns the class index of a label; names and texts in `ClassWise` and `ClassGroups` are labels then.
    example : str
        What a message shows to those who write something else.

    Returns
    -------
    object
        What is named.

    Raises
    ------
    ValueError
        If the text is anything else, or its arguments are refused.

    Examples
    --------
    >>> from caltest.predictions import EqualWidth
    >>> read_object("EqualWidth(15)", {"EqualWidth": EqualWidth}).n_cells
    15
    """
    try:
        return _Reader(known, label).value(ast.parse(text.strip(), mode="eval").body)
    except SyntaxError:
        msg = f"{text!r} is not a Python expression such as {example}."
        raise ValueError(msg) from None
    except (TypeError, ValueError) as error:
        msg = f"{text!r}: {error}"
        raise ValueError(msg) from None


class _Reader:
    """Turns the syntax tree of a text into an object."""

    def __init__(self, known: Mapping[str, Any], label: Callable[[str], int] | None) -> None:
        self._known = known
        self._label = label

    def value(self, node: ast.expr, label: Callable[[str], int] | None = None) -> Any:
        """Return the object of a node; with ``label``, names and texts are labels."""
        if isinstance(node, ast.List | ast.Tuple):
            values = [self.value(part, label) for part in node.elts]
            return tuple(values) if isinstance(node, ast.Tuple) else values
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self._call(node.func.id, node)
        if isinstance(node, ast.Name):
            if label is not None:
                return label(node.id)
            found = self._look_up(node.id)
            return _make(found) if isinstance(found, type) else found
        try:
            literal = ast.literal_eval(node)
        except ValueError:
            msg = f"{ast.unparse(node)!r} is neither a name, a call of one, a list nor a literal."
            raise ValueError(msg) from None
        return label(literal) if label is not None and isinstance(literal, str) else literal

    def _call(self, name: str, node: ast.Call) -> Any:
        called = self._look_up(name)
        label = self._label if name in _OF_LABELS else None
        arguments = [self.value(part, label) for part in node.args]
        options = {str(part.arg): self.value(part.value, label) for part in node.keywords}
        return _make(called, *arguments, **options)

    def _look_up(self, name: str) -> Any:
        if name in self._known:
            return self._known[name]
        from difflib import get_close_matches

        folded = {known.lower(): known for known in self._known}
        near = get_close_matches(name.lower(), folded, n=1)
        meant = f"; did you mean {folded[near[0]]}?" if near else "."
        msg = f"there is no {name}{meant}"
        raise ValueError(msg)


def _make(called: Any, *arguments: Any, **options: Any) -> Any:
    """Call a class; give a function its options."""
    if not isinstance(called, type):
        return partial(called, *arguments, **options)
    signature = inspect.signature(called)
    try:
        signature.bind(*arguments, **options)
    except TypeError as error:
        msg = f"{error}; the arguments are {called.__name__}({', '.join(signature.parameters)})."
        raise ValueError(msg) from None
    return called(*arguments, **options)
