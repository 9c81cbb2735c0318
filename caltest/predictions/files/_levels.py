"""The levels of a column of a file: ranges of quantities, the most frequent names, and what is missing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions.inputs._parts import names_an_id
from caltest.predictions.inputs._refusals import refuse, refuse_if
from caltest.results._note import warn_user

MOST_LEVELS = 20
"""Rarer values that are no quantities are one level together."""
_FEW_NUMBERS = 8
"""So many different quantities are levels; more are divided into ranges."""


def levels_of(name: str, column: NDArray[Any], n_ranges: int = 4) -> tuple[list[str], NDArray[np.int64]]:
    """Return the name of each level of a column, and the level of each observation.

    Parameters
    ----------
    name : str
        The name of the column.
    column : array of shape (n_samples,)
        Its values: texts, numbers, booleans or dates; None, NaN and empty texts are missing, and a level. Numbers are
        no quantities where the name is that of an id, such as "site".
    n_ranges : int
        Into how many ranges with about the same number of observations many quantities are divided.

    Returns
    -------
    names : list of str
        Such as "site=north", "age 40 to 52", "age missing". The ends of a range are values that occur.
    level : array of shape (n_samples,)
        Positions in these names, each of which occurs.

    Raises
    ------
    ValueError
        If the column has more dimensions, holds one level only, or names of which nearly every one is different.

    Warns
    -----
    CalibrationWarning
        If there are more than `MOST_LEVELS` names.

    Examples
    --------
    >>> import numpy as np
    >>> levels_of("age", np.array([31, 40, 22, 67, 58, 49, 73, 85, 90]), 3)[0]
    ['age 22 to 40', 'age 49 to 67', 'age 73 to 90']
    >>> names, level = levels_of("site", np.array(["north", None, "south", "north"], dtype=object))
    >>> names, level.tolist()
    (['site=north', 'site=south', 'site missing'], [0, 2, 1, 0])
    """
    import pandas as pd

    refuse_if(column.ndim != 1, f"the column {name!r} must hold one value for each observation, got {column.shape}.")
    values = pd.Series(column)
    values = values.mask(values.isna() | (values.astype(str).str.strip() == "")).infer_objects()
    present = values.dropna()
    if present.dtype.kind in "iufMm" and present.nunique() > _FEW_NUMBERS and not names_an_id(name):
        names, code = _ranges(name, present, n_ranges)
    else:
        names, code = _values(name, present)
    level = np.full(len(values), len(names), dtype=np.int64)
    level[values.notna().to_numpy()] = code
    names += [f"{name} missing"] * (len(present) < len(values))
    refuse_if(len(names) < 2, f"the column {name!r} has the same value for all observations, and makes no subgroups.")
    return names, level


def _ranges(name: str, values: Any, n_ranges: int) -> tuple[list[str], NDArray[np.int64]]:
    """Divide numbers or dates into ranges with about the same number of observations; ties stay together."""
    rank = values.rank(method="average", pct=True).to_numpy()
    found, code = np.unique(np.ceil(rank * n_ranges - 1e-9), return_inverse=True)
    parts = [values[code == k] for k in range(len(found))]
    ends = [(_shown(part.min()), _shown(part.max())) for part in parts]
    return [f"{name} {low} to {high}" if low != high else f"{name}={low}" for low, high in ends], code


def _values(name: str, values: Any) -> tuple[list[str], NDArray[np.int64]]:
    """Return the values in their order, the rarest of many texts as one."""
    counts = values.value_counts()
    if len(counts) > max(MOST_LEVELS, len(values) / 2):
        refuse(
            f"the column {name!r} has {len(counts)} different values in {len(values):,} observations, so that it names "
            "observations, not subgroups."
        )
    kept = list(counts.index if len(counts) <= MOST_LEVELS else counts.index[: MOST_LEVELS - 1])
    try:
        kept.sort()
    except TypeError:  # texts and numbers
        kept.sort(key=str)
    names, place = [f"{name}={_shown(value)}" for value in kept], {value: k for k, value in enumerate(kept)}
    if len(kept) < len(counts):
        others = f"{len(counts) - len(kept)} rarer values"
        warn_user(f"The column {name!r} has {len(counts)} different values, of which {others} are one subgroup.")
        names.append(f"{name}: {others}")
    return names, values.map(place).fillna(len(kept)).to_numpy().astype(np.int64)


def _shown(value: Any) -> str:
    """Return a value as a reader writes it."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value).removesuffix(" 00:00:00")
