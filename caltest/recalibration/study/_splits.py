"""Splits of a study: which observations methods are fitted to, and which judge them. No label decides it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.hypothesis_tests._by_fold import refuse_divided_groups
from caltest.predictions.inputs._parts import validate_folds
from caltest.predictions.inputs._validation import refuse_if, require, validate_count


@dataclass(frozen=True)
class Split:
    """A split into calibration and held-out part.

    Attributes
    ----------
    name : str
        The id of the fold.
    fitted, held_out : arrays of int
        The observations of the two parts.
    """

    name: str
    fitted: NDArray[np.int64]
    held_out: NDArray[np.int64]


def validate_splits(
    folds: Any, held_out: Any, n_samples: int, group: NDArray[np.int64] | None, rng: np.random.Generator
) -> list[Split]:
    """Return the splits of a study; a group is never divided.

    Folds are drawn without looking at labels: in stratified folds the labels of the calibration part would determine
    how often each class occurs in the held-out part, which is then not the independent judge that tests assume.
    """
    if held_out is not None:
        number = _validate_held_out(held_out, n_samples).astype(np.int64)
        names: tuple[str, ...] = ("calibration", "held-out")
        judged = [1]
    elif isinstance(folds, int | np.integer) and not isinstance(folds, bool):
        number = _drawn(validate_count(folds, "folds", minimum=2), n_samples, group, rng)
        names = tuple(str(k) for k in range(int(folds)))
        judged = list(range(int(folds)))
    else:
        parts = validate_folds(folds, n_samples)
        number = np.empty(n_samples, dtype=np.int64)
        for k, rows in enumerate(parts.members):
            number[rows] = k
        names, judged = parts.names, list(range(len(parts)))
    if group is not None:
        refuse_divided_groups(group, number)
    return [Split(names[k], np.flatnonzero(number != k), np.flatnonzero(number == k)) for k in judged]


def _validate_held_out(held_out: Any, n_samples: int) -> NDArray[np.bool_]:
    array = np.asarray(held_out)
    if array.dtype != bool:
        msg = f"`held_out` must hold booleans, True for observations that judge, got {array.dtype} values."
        raise TypeError(msg)
    must = f"`held_out` must have shape ({n_samples},), one for each observation"
    require(array.shape == (n_samples,), must, array.shape)
    if array.all() or not array.any():
        msg = f"`held_out` must be True for some observations and False for others, got {bool(array[0])} for all."
        raise ValueError(msg)
    return array


def _drawn(
    n_folds: int, n_samples: int, group: NDArray[np.int64] | None, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return a random fold of each observation, all of nearly the same number of observations or of groups."""
    n_units = n_samples if group is None else int(group.max()) + 1
    what = "observations" if group is None else "groups"
    refuse_if(n_units < 4, f"`folds` needs 4 {what} or more, two in each of two folds, but there are {n_units}.")
    if n_folds > n_units // 2:
        msg = f"`folds` must be at most half of the {n_units} {what}, so that every fold holds several, got {n_folds}."
        raise ValueError(msg)
    fold = rng.permutation(n_units) % n_folds
    return fold if group is None else fold[group]
