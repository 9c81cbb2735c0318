"""Cross-validation folds: which observations belong to which, and the parts of data that a fold holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._ids import validate_ids

SMALL = 20
"""A test of fewer observations has little power, and so has a fold of fewer."""


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
    members: tuple[NDArray[np.int64], ...]

    def __iter__(self) -> Iterator[tuple[str, NDArray[np.int64]]]:
        return iter(zip(self.names, self.members, strict=True))

    def __len__(self) -> int:
        return len(self.names)


def validate_folds(folds: Any, n_samples: int) -> Folds:
    """Return the observations of every fold.

    Numbers are ordered as numbers and come before texts, whatever the order in which they occur.
    """
    ids, number = validate_ids(folds, n_samples, "folds", "fold")
    if len(ids) == 1:
        msg = f"`folds` must hold several folds, got {ids[0]!r} for every observation; leave it out for a single model."
        raise ValueError(msg)
    if len(ids) == n_samples:
        msg = (
            "`folds` must hold several observations of each fold, got a different one for every observation. Each fold "
            "is tested separately, and a single observation shows nothing: use fewer, larger folds."
        )
        raise ValueError(msg)
    return Folds(tuple(map(str, ids)), tuple(np.flatnonzero(number == i) for i in range(len(ids))))


def part_of(values: Any, rows: NDArray[np.int64]) -> Any:
    """Return some observations of an array, a frame, a series or a sequence."""
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    if isinstance(values, list | tuple):
        return [values[row] for row in rows]
    return values[rows]
