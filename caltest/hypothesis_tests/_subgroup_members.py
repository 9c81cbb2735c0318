"""Which observations each subgroup holds: the levels of columns, and the segments that one column or two make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import combinations
from typing import Any

import numpy as np

from caltest.predictions._arrays import Booleans, Integers
from caltest.predictions.files._levels import MOST_LEVELS, merged_levels
from caltest.predictions.inputs._parts import SMALL, part_of
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import refuse_if, require
from caltest.results import Note
from caltest.results._description import counted, join

MOST_SEGMENTS = 300
"""Smaller segments are left out; with 9,999 draws each of as many can be rejected."""
_RULES = (
    "Segments are made by one column, and by two together, from predictions and columns alone. Numbers with more than "
    "8 different values are cut into four ranges with about as many observations each; other values are levels. Levels "
    f"of fewer than {SMALL} observations, and the rarest of more than {MOST_LEVELS}, are one level, ranges of fewer "
    "are joined to a neighbour, and missing values are a level."
)


@dataclass(frozen=True, eq=False)
class Segments:
    """Subgroups that one column makes, or two together.

    Attributes
    ----------
    names : list of str
        The name of each, by column in their order, then by pairs of columns.
    members : list of array of shape (n_samples,)
        Which observations each holds.
    rules : tuple of str
        How they were made, and how many were too small or the same as others.
    notes : tuple of Note
        What was left out that was asked for.
    """

    names: list[str]
    members: list[Booleans]
    rules: tuple[str, ...]
    notes: tuple[Note, ...]

    @classmethod
    def of(cls, subgroup: Any, counts: Booleans, most: int) -> Segments:
        """Return the largest ``most`` segments of the observations that count, those of one column first.

        Neither the names of columns nor their order decide which: of two that are as large, a digest of what they hold.
        """
        columns, rows = columns_of(subgroup, len(counts)), np.flatnonzero(counts)
        found = _Found()
        levels = {name: merged_levels(name, part_of(_plain(values), rows), SMALL) for name, values in columns.items()}
        useful = {name: pair for name, pair in levels.items() if len(pair[0]) > 1}
        for names, code in useful.values():
            found.add(names, code, of_pair=False)
        for (names, code), (others, other) in combinations(useful.values(), 2):
            both = [f"{name} and {another}" for name in names for another in others]
            found.add(both, code * len(others) + other, of_pair=True)
        if not found.names:
            must = f"`subgroup` must make segments of at least {SMALL} observations with `depth=2`"
            refuse(f"{must}, got none of {counted(len(rows))} in columns that have one level only or few observations.")
        chosen = sorted(sorted(range(len(found.names)), key=found.order.__getitem__)[:most])
        members = np.zeros((len(chosen), len(counts)), dtype=bool)
        for member, place in zip(members, chosen, strict=True):
            member[rows[found.rows[place]]] = True
        notes = _notes([name for name in columns if name not in useful], len(found.names), most)
        return cls([found.names[k] for k in chosen], list(members), (_RULES, *found.left_out), tuple(notes))


@dataclass
class _Found:
    """Segments so far, the order in which they are kept, and how many were not taken."""

    names: list[str] = field(default_factory=list)
    rows: list[Integers] = field(default_factory=list)
    order: list[tuple[bool, int, bytes]] = field(default_factory=list)
    _digests: set[bytes] = field(default_factory=set)
    _n_small: int = 0
    _n_same: int = 0

    def add(self, names: list[str], code: Integers, *, of_pair: bool) -> None:
        """Take the levels of a code that hold enough observations, and others than any before."""
        for level, rows in _cut(code):
            digest = blake2b(rows.tobytes(), digest_size=16).digest()
            if len(rows) < SMALL:
                self._n_small += 1
            elif digest in self._digests:
                self._n_same += 1
            else:
                self._digests.add(digest)
                self.names.append(names[level])
                self.rows.append(rows)
                self.order.append((of_pair, -len(rows), digest))

    @property
    def left_out(self) -> list[str]:
        """How many were too small, or the same as another."""
        small = f"{self._n_small:,} of fewer than {SMALL} observations"
        same = f"{self._n_same:,} with the same observations as another"
        said = [small] * (self._n_small > 0) + [same] * (self._n_same > 0)
        return [f"Segments left out: {join(said)}."] if said else []


def _cut(code: Integers) -> Iterator[tuple[int, Integers]]:
    """Yield each level that occurs, and its positions, which increase."""
    order = np.argsort(code, kind="stable").astype(np.int64, copy=False)
    found, starts = np.unique(code[order], return_index=True)
    yield from zip(found.tolist(), np.split(order, starts[1:]), strict=True)


def _notes(unused: list[str], number: int, most: int) -> list[Note]:
    """Return notes of the columns that make no segments, and of segments above the largest number."""
    found = []
    if unused:
        which = f"The column {join(unused)} makes" if len(unused) == 1 else f"The columns {join(unused)} make"
        text = (
            f"{which} no segments: one value, or none, is that of {SMALL} observations. Group the values of an id "
            "beforehand, for example by region."
        )
        found.append(Note("C217", text))
    if number > most:
        text = (
            f"The {number - most:,} smallest of {number:,} segments are left out by `max_segments={most}`. Nothing is "
            "known about them. Pass fewer columns or a larger number."
        )
        found.append(Note("C217", text))
    return found


def subgroup_members(
    subgroup: Any, n_samples: int, argument: str = "subgroup"
) -> tuple[list[str], list[Booleans], bool]:
    """Return the name of each subgroup, which observations it holds, and whether subgroups may overlap."""
    columns = columns_of(subgroup, n_samples, argument)
    names, members = [], []
    for name, values in columns.items():
        levels, code = _levels(values, argument)
        names += [f"{name}={level}" if name else str(level) for level in levels]
        members += [code == k for k in range(len(levels))]
    return names, members, len(columns) > 1


def columns_of(subgroup: Any, n_samples: int, argument: str = "subgroup") -> dict[str, Any]:
    """Return the columns of a frame or of an array, by name; a single column of an array has none."""
    if hasattr(subgroup, "columns"):
        names = list(subgroup.columns)
        refuse_if(len(set(names)) < len(names), f"`{argument}` must have columns of different names, got {names}.")
        columns = {str(name): subgroup[name] for name in names}
    elif isinstance(subgroup, Mapping):
        columns = {str(name): values for name, values in subgroup.items()}
    elif hasattr(subgroup, "dtype") and not isinstance(subgroup, np.ndarray):  # a series, or categories
        columns = {"": subgroup}
    else:
        array = subgroup if isinstance(subgroup, np.ndarray) else np.asarray(subgroup, dtype=object)
        if array.ndim not in {1, 2} or np.ma.is_masked(array):
            refuse(
                f"`{argument}` must have shape (n_samples,) or (n_samples, n_columns), without masked values, "
                f"got {array.shape}."
            )
        columns = {"": array} if array.ndim == 1 else {str(k): column for k, column in enumerate(array.T)}
    refuse_if(not columns, f"`{argument}` must have at least one column, got none.")
    for values in columns.values():
        must = f"`{argument}` must have a label for each of the {n_samples:,} observations"
        require(len(values) == n_samples, must, len(values))
    return columns


def _plain(values: Any) -> Any:
    """Return what pandas or NumPy made, or a list."""
    return values if type(values).__module__.startswith(("pandas", "numpy")) else list(values)


def _levels(values: Any, argument: str) -> tuple[list[Any], Integers]:
    """Return the levels that occur and that of each observation; categories keep their order, others are sorted."""
    import pandas as pd

    try:
        labels = pd.Categorical(_plain(values)).remove_unused_categories()
    except TypeError as error:  # not hashable
        refuse(f"`{argument}` must hold labels such as strings or numbers: {error}.", TypeError)
    code = np.asarray(labels.codes, dtype=np.int64)
    missing = np.flatnonzero(code < 0)
    if missing.size:
        first = missing[0]
        found = f"{list(values)[first]!r} for observation {first}"
        refuse(f"`{argument}` must have a label for every observation, got {found}.")
    return list(labels.categories), code
