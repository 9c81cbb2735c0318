"""Cross-validation folds: which observations belong to which, and the parts of data that a fold holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    import pandas as pd

    values = _array(folds)
    if values.ndim != 1:
        msg = f"`folds` must have shape (n_samples,), got {values.shape}."
        raise ValueError(msg)
    if len(values) != n_samples:
        msg = f"`folds` must have the fold of each of the {n_samples} observations, got {len(values)}."
        raise ValueError(msg)
    try:
        code, found = pd.factorize(values)
    except TypeError as error:  # not hashable
        msg = f"`folds` must hold integers or strings: {error}."
        raise TypeError(msg) from None
    missing = np.flatnonzero(code < 0)
    if missing.size:
        msg = (
            f"`folds` must have a fold for every observation, got {values[missing[0]]!r} for observation {missing[0]}."
        )
        raise ValueError(msg)
    ids = [_validated(value) for value in found.tolist()]
    if len(ids) == 1:
        msg = f"`folds` must hold several folds, got {ids[0]!r} for every observation; leave it out for a single model."
        raise ValueError(msg)
    if len(ids) == n_samples:
        msg = (
            "`folds` must hold several observations of each fold, got a different one for every observation. Each fold "
            "is tested separately, and a single observation shows nothing: use fewer, larger folds."
        )
        raise ValueError(msg)
    order = sorted(range(len(ids)), key=lambda i: (isinstance(ids[i], str), ids[i]))
    return Folds(tuple(str(ids[i]) for i in order), tuple(np.flatnonzero(code == i) for i in order))


def part_of(values: Any, rows: NDArray[np.int64]) -> Any:
    """Return some observations of an array, a frame, a series or a sequence."""
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    if isinstance(values, list | tuple):
        return [values[row] for row in rows]
    return values[rows]


def _array(folds: Any) -> NDArray[Any]:
    """Return ids as an array; a sequence becomes one of objects, so that its numbers do not turn into texts."""
    if isinstance(folds, str) or not hasattr(folds, "__len__"):
        msg = f"`folds` must be an array of shape (n_samples,), got {folds!r}."
        raise TypeError(msg)
    if hasattr(folds, "detach"):  # a PyTorch tensor that may still carry a gradient
        folds = folds.detach()
    if isinstance(folds, list | tuple):
        values = np.empty(len(folds), dtype=object)
        values[:] = folds
        return values
    return np.asarray(folds)


def _validated(value: Any) -> int | str:
    if isinstance(value, int | str):
        return value
    if isinstance(value, float) and value == int(value):  # a column of integers that were read as floats
        return int(value)
    msg = f"`folds` must hold integers or strings, got {value!r}."
    raise TypeError(msg) if not isinstance(value, float) else ValueError(msg)
