"""Parts of the observations, groups and cross-validation folds: ids, sums, effective numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Floats, Integers
from caltest.predictions.inputs._frames import from_tensor
from caltest.predictions.inputs._refusals import refuse, refuse_if

_ID_WORDS = {
    *("id", "patient", "subject", "participant", "person", "user", "case", "group", "cluster", "centre", "center"),
    *("site", "mrn", "hospital", "clinic", "video", "prompt", "session", "document", "household", "family", "animal"),
    *("item", "question"),
}
_FEWEST_IDS = 6  # with fewer groups no two-sided p-value from signs is at most 5 %; 2 ** (1 - 6) with six
SMALL = 20
"""A test of fewer observations has little power, and so has a fold of fewer."""


def sums_in_parts(part: NDArray[np.integer], values: Floats, n: int) -> Floats:
    """Return the sums ``(n,)`` of values ``(n_values,)`` in the parts from 0 to n - 1; 0 in an empty one."""
    return np.bincount(part, values, n).astype(np.float64, copy=False)


def effective_number(weight: Floats) -> float:
    r"""Return :math:`(\sum w)^2 / \sum w^2`, which does not depend on the unit of weights; 0 if there are none."""
    return float(effective_numbers(weight, np.zeros(len(weight), dtype=np.int64), 1)[0])


def effective_numbers(weight: Floats, index: NDArray[np.integer], n: int) -> Floats:
    """Return the effective number of each of n parts, ``(n,)``, of weights in the parts ``index``, ``(n_weights,)``."""
    share = weight / weight.max(initial=np.finfo(float).tiny)  # squares of large or small weights are no numbers
    return effective_of_sums(sums_in_parts(index, share, n), sums_in_parts(index, np.square(share), n))


def effective_of_sums(total: float | Floats, squares: float | Floats) -> Floats:
    """Return the effective numbers of weights whose sums, and whose sums of squares, are known; 0 without weight."""
    squares = np.asarray(squares, dtype=np.float64)
    return np.divide(np.square(total), squares, out=np.zeros_like(squares), where=squares > 0)


def validate_ids(ids: Any, n_samples: int, name: str, part: str) -> tuple[list[int | str], Integers]:
    """Return the ids in their order and the number of that of each observation, ``(n_samples,)``.

    Numbers are ordered as numbers and come before texts, whatever the order in which they occur. ``name`` is that of
    the argument, ``part`` what an id stands for.
    """
    import pandas as pd

    values = _array(ids, name)
    refuse_if(values.ndim != 1, f"`{name}` must have shape (n_samples,), got {values.shape}.")
    if len(values) != n_samples:
        refuse(f"`{name}` must have the {part} of each of the {n_samples:,} observations, got {len(values)}.")
    try:
        code, found = pd.factorize(values)
    except TypeError as error:  # not hashable
        refuse(f"`{name}` must hold integers or strings: {error}.", TypeError)
    missing = np.flatnonzero(code < 0)
    if missing.size:
        refuse(f"`{name}` must have a {part} for every observation, got a missing id for observation {missing[0]}.")
    if isinstance(found, np.ndarray) and found.dtype.kind in "iu":  # perhaps millions
        places = np.argsort(found)
        return found[places].tolist(), np.argsort(places)[code]
    known = [_validated(value, name) for value in found.tolist()]
    order = sorted(range(len(known)), key=lambda i: (isinstance(known[i], str), known[i]))
    return [known[i] for i in order], np.argsort(order)[code]


def _array(ids: Any, name: str) -> NDArray[Any]:
    """Return ids as an array; a sequence becomes one of objects, so that its numbers do not turn into texts."""
    if isinstance(ids, str) or not hasattr(ids, "__len__"):
        refuse(f"`{name}` must be an array of shape (n_samples,), got {ids!r}.", TypeError)
    if isinstance(ids, list | tuple):
        values = np.empty(len(ids), dtype=object)
        values[:] = ids
        return values
    return np.asarray(from_tensor(ids))


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


def advice_on_groups(n_groups: int) -> str:
    """Return what to do with an id that is not used yet and has so many values, as the end of a caution."""
    if n_groups < _FEWEST_IDS:
        return (
            f"These are too few groups to allow for observations that are alike within them: no p-value could be below "
            f"{2.0 ** (1 - n_groups):.2g}. To test each of these parts of the data by itself, use `subgroup_tests`."
        )
    return (
        "If observations with the same value may be alike, as those of one patient are, name it with `groups`; "
        "otherwise p-values are too small."
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


@dataclass(frozen=True)
class Folds:
    """The folds of a cross-validation, in the order of their ids.

    Attributes
    ----------
    names : tuple of str
        The id of each fold.
    members : tuple of array of int
        The observations of each fold.
    """

    names: tuple[str, ...]
    members: tuple[Integers, ...]

    def __iter__(self) -> Iterator[tuple[str, Integers]]:
        return iter(zip(self.names, self.members, strict=True))

    def __len__(self) -> int:
        return len(self.names)

    @property
    def number(self) -> Integers:
        """The position of the fold of each observation in `names`."""
        fold = np.empty(sum(map(len, self.members)), dtype=np.int64)
        for number, rows in enumerate(self.members):
            fold[rows] = number
        return fold


def validate_folds(folds: Any, n_samples: int) -> Folds:
    """Return the observations of every fold.

    Numbers are ordered as numbers and come before texts, whatever the order in which they occur.
    """
    ids, number = validate_ids(folds, n_samples, "folds", "fold")
    if len(ids) == 1:
        refuse(
            f"`folds` must hold several folds, got {ids[0]!r} for every observation; leave it out for a single model."
        )
    if len(ids) == n_samples:
        refuse(
            "`folds` must hold several observations of each fold, got a different one for every observation. Each fold "
            "is tested separately, and a single observation shows nothing: use fewer, larger folds."
        )
    return Folds(tuple(map(str, ids)), tuple(np.flatnonzero(number == i) for i in range(len(ids))))


def part_of(values: Any, rows: Integers) -> Any:
    """Return some observations of an array, a frame, a series or a sequence, or of each in a mapping."""
    if isinstance(values, Mapping):
        return {name: part_of(value, rows) for name, value in values.items()}
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    return [values[row] for row in rows] if isinstance(values, list | tuple) else values[rows]
