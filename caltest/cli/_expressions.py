"""Texts that name objects, such as ``ECE(EqualWidth(15))``: known names and literals, and nothing else."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import partial
from typing import Any


def read_object(text: str, known: Mapping[str, Any]) -> Any:
    """Return what a text names: calls of known names with known names, literals and further calls as arguments.

    A call of a class makes an object, a call of a function is the function with these options
    (`functools.partial`): nothing else is run.

    Raises
    ------
    ValueError
        If the text is anything else.

    Examples
    --------
    >>> from caltest.predictions import EqualWidth
    >>> read_object("EqualWidth(15)", {"EqualWidth": EqualWidth}).n_cells
    15
    """
    try:
        return _value(ast.parse(text.strip(), mode="eval").body, known)
    except SyntaxError:
        msg = f"{text!r} is not the name of an object, such as ECE(EqualWidth(15))."
        raise ValueError(msg) from None
    except (TypeError, ValueError) as error:
        msg = f"{text!r}: {error}"
        raise ValueError(msg) from None


def _value(node: ast.expr, known: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        return _known(node.id, known)
    if isinstance(node, ast.List | ast.Tuple):
        values = [_value(part, known) for part in node.elts]
        return tuple(values) if isinstance(node, ast.Tuple) else values
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        called = _known(node.func.id, known)
        arguments = [_value(part, known) for part in node.args]
        options = {str(part.arg): _value(part.value, known) for part in node.keywords}
        return called(*arguments, **options) if isinstance(called, type) else partial(called, *arguments, **options)
    try:
        return ast.literal_eval(node)
    except ValueError:
        msg = f"{ast.unparse(node)!r} is neither a name, a call of one, a list nor a literal."
        raise ValueError(msg) from None


def _known(name: str, known: Mapping[str, Any]) -> Any:
    if name in known:
        return known[name]
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=1)
    meant = f"; did you mean {near[0]}?" if near else "."
    msg = f"there is no {name}{meant}"
    raise ValueError(msg)
