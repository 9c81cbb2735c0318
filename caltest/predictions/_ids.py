"""Ids of the parts that observations belong to: groups and cross-validation folds."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ID_WORDS = {
    *("id", "patient", "subject", "participant", "person", "user", "case", "group", "cluster", "centre", "center"),
    *("site", "mrn", "hospital", "clinic", "video", "prompt", "session", "document", "household", "family", "animal"),
}


def validate_ids(ids: Any, n_samples: int, name: str, part: str) -> tuple[list[int | str], NDArray[np.int64]]:
    """Return the ids in their order and the number of that of each observation, ``(n_samples,)``.

    Numbers are ordered as numbers and come before texts, whatever the order in which they occur. ``name`` is that of
    the argument, ``part`` what an id stands for.
    """
    import pandas as pd

    values = _array(ids, name)
    if values.ndim != 1:
        msg = f"`{name}` must have shape (n_samples,), got {values.shape}."
        raise ValueError(msg)
    if len(values) != n_samples:
        msg = f"`{name}` must have the {part} of each of the {n_samples} observations, got {len(values)}."
        raise ValueError(msg)
    try:
        code, found = pd.factorize(values)
    except TypeError as error:  # not hashable
        msg = f"`{name}` must hold integers or strings: {error}."
        raise TypeError(msg) from None
    missing = np.flatnonzero(code < 0)
    if missing.size:
        msg = f"`{name}` must have a {part} for every observation, got a missing id for observation {missing[0]}."
        raise ValueError(msg)
    if isinstance(found, np.ndarray) and found.dtype.kind in "iu":  # perhaps millions
        places = np.argsort(found)
        return found[places].tolist(), np.argsort(places)[code]
    known = [_validated(value, name) for value in found.tolist()]
    order = sorted(range(len(known)), key=lambda i: (isinstance(known[i], str), known[i]))
    return [known[i] for i in order], np.argsort(order)[code]


def _array(ids: Any, name: str) -> NDArray[Any]:
    """Return ids as an array; a sequence becomes one of objects, so that its numbers do not turn into texts."""
    if isinstance(ids, str) or not hasattr(ids, "__len__"):
        msg = f"`{name}` must be an array of shape (n_samples,), got {ids!r}."
        raise TypeError(msg)
    if hasattr(ids, "detach"):  # a PyTorch tensor that may still carry a gradient
        ids = ids.detach()
    if isinstance(ids, list | tuple):
        values = np.empty(len(ids), dtype=object)
        values[:] = ids
        return values
    return np.asarray(ids)


def _validated(value: Any, name: str) -> int | str:
    value = value.item() if isinstance(value, np.generic) else value  # of a list
    if isinstance(value, int | str):
        return value
    if isinstance(value, float) and value == int(value):  # a column of integers that were read as floats
        return int(value)
    msg = f"`{name}` must hold integers or strings, got {value!r}."
    raise TypeError(msg) if not isinstance(value, float) else ValueError(msg)


def names_an_id(name: Any) -> bool:
    """Return whether a column or an index has the name of an id, such as "patient_id"."""
    return bool(_ID_WORDS & {word.lower() for word in re.split(r"[^A-Za-z]+|(?<=[a-z])(?=[A-Z])", str(name))})


_FEWEST_IDS = 6  # with fewer groups no two-sided p-value from signs is at most 5 %; 2 ** (1 - 6) with six


def advice_on_groups(n_groups: int) -> str:
    """Return what to do with an id that is not used yet and has so many values, as the end of a caution."""
    if n_groups < _FEWEST_IDS:
        return (
            f"{n_groups} values are too few for groups of dependent observations, because no p-value could be below "
            f"{2.0 ** (1 - n_groups):.2g}. To test each of these parts of the data by itself, use "
            "caltest.subgroup_tests in Python."
        )
    return (
        "If observations with the same value may depend on each other, name it with `groups`, otherwise p-values are "
        "too small."
    )


def repeated_index(frame: Any) -> tuple[str, int] | None:
    """Return the name of the index of a frame or series if it is an id whose values repeat, and their number."""
    index: Any = getattr(frame, "index", None)
    for level, name in enumerate(getattr(index, "names", ())):
        if name is not None and names_an_id(name):
            values = index.get_level_values(level)
            number = int(values.nunique())
            return (str(name), number) if 1 < number < len(values) else None
    return None
