"""The levels of a column of a file: ranges of quantities, the most frequent names, and what is missing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Integers
from caltest.predictions.inputs._parts import names_an_id
from caltest.predictions.inputs._refusals import refuse, refuse_if
from caltest.results._note import warn_user

MOST_LEVELS = 20
"""Rarer values that are no quantities are one level together."""
_FEW_NUMBERS = 8
"""So many different quantities are levels; more are divided into ranges."""
_N_RANGES = 4


def levels_of(name: str, column: NDArray[Any], n_ranges: int = 4) -> tuple[list[str], Integers]:
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
    values = _without_blanks(pd.Series(column))
    present = values.dropna()
    if _are_quantities(present) and not names_an_id(name):
        names, code = _ranges(name, present, n_ranges)
    else:
        names, code = _values(name, present)
    names, level = _with_missing(name, names, values, code)
    refuse_if(len(names) < 2, f"the column {name!r} has the same value for all observations, and makes no subgroups.")
    return names, level


def merged_levels(name: str, column: Any, fewest: int) -> tuple[list[str], Integers]:
    """Return the levels of a column as `levels_of` does, but merged where they hold few observations.

    Parameters
    ----------
    name : str
        The name of the column, which decides nothing.
    column : array, series or sequence of shape (n_samples,)
        Its values. Many numbers are four ranges, also those of an id; categories are levels.
    fewest : int
        Ranges of fewer observations are joined to the smaller of their neighbours; names of fewer are one level
        together, with the rarest of more than `MOST_LEVELS`. Missing values are a level however few they are.

    Returns
    -------
    names, level
        As of `levels_of`; a single name if the column has no two levels.

    Examples
    --------
    >>> merged_levels("site", ["north"] * 3 + ["south", "east", None], 2)[0]
    ['site=north', 'site: 2 rarer values', 'site missing']
    """
    import pandas as pd

    values = _without_blanks(pd.Series(column).reset_index(drop=True))
    present = values.dropna()
    if _are_quantities(present):
        names, code = _ranges(name, present, _N_RANGES, fewest)
    else:
        counts = present.astype(object).value_counts()
        ordered = sorted(counts.items(), key=lambda pair: (-pair[1], str(pair[0])))
        frequent = [value for value, count in ordered if count >= fewest]
        kept = frequent if len(counts) == len(frequent) <= MOST_LEVELS else frequent[: MOST_LEVELS - 1]
        kept = [value for value, _ in ordered] if len(counts) == len(kept) + 1 else kept
        names, code = _named(name, present.astype(object), kept, len(counts))
    return _with_missing(name, names, values, code)


def _without_blanks(values: Any) -> Any:
    """Return a series in which empty texts are missing."""
    return values.mask(values.isna() | (values.astype(str).str.strip() == "")).infer_objects()


def _are_quantities(values: Any) -> bool:
    return values.dtype.kind in "iufMm" and values.nunique() > _FEW_NUMBERS


def _with_missing(name: str, names: list[str], values: Any, code: Integers) -> tuple[list[str], Integers]:
    """Return the names with that of missing values, if there are any, and the level of each value."""
    present = values.notna().to_numpy()
    level = np.full(len(values), len(names), dtype=np.int64)
    level[present] = code
    return [*names, *[f"{name} missing".strip()] * (not present.all())], level


def _ranges(name: str, values: Any, n_ranges: int, fewest: int = 1) -> tuple[list[str], Integers]:
    """Divide numbers or dates into ranges with about the same number of observations; ties stay together."""
    rank = values.rank(method="average", pct=True).to_numpy()
    code = np.unique(np.ceil(rank * n_ranges - 1e-9), return_inverse=True)[1]
    sizes = np.bincount(code).tolist()
    while len(sizes) > 1 and min(sizes) < fewest:
        few = sizes.index(min(sizes))
        other = min((k for k in (few - 1, few + 1) if 0 <= k < len(sizes)), key=sizes.__getitem__)
        code[code >= max(few, other)] -= 1
        sizes[min(few, other)] += sizes.pop(max(few, other))
    parts = [values[code == k] for k in range(len(sizes))]
    ends = [(_shown(part.min()), _shown(part.max())) for part in parts]
    return [_said(name, low) if low == high else f"{name} {low} to {high}".strip() for low, high in ends], code


def _said(name: str, value: str) -> str:
    return f"{name}={value}" if name else value


def _values(name: str, values: Any) -> tuple[list[str], Integers]:
    """Return the values in their order, the rarest of many texts as one."""
    counts = values.value_counts()
    if len(counts) > max(MOST_LEVELS, len(values) / 2):
        refuse(
            f"the column {name!r} has {len(counts)} different values in {len(values):,} observations, so that it names "
            "observations, not subgroups."
        )
    kept = list(counts.index if len(counts) <= MOST_LEVELS else counts.index[: MOST_LEVELS - 1])
    if len(kept) < len(counts):
        others = f"{len(counts) - len(kept)} rarer values"
        warn_user(f"The column {name!r} has {len(counts)} different values, of which {others} are one subgroup.")
    return _named(name, values, kept, len(counts))


def _named(name: str, values: Any, kept: list[Any], n_values: int) -> tuple[list[str], Integers]:
    """Return the values that are kept in their order, and the others as one."""
    try:
        kept = sorted(kept)
    except TypeError:  # texts and numbers
        kept = sorted(kept, key=str)
    names, place = [_said(name, _shown(value)) for value in kept], {value: k for k, value in enumerate(kept)}
    if len(kept) < n_values:
        names.append(f"{name}: {n_values - len(kept)} rarer values".removeprefix(": "))
    return names, values.map(place).fillna(len(kept)).to_numpy().astype(np.int64)


def _shown(value: Any) -> str:
    """Return a value as a reader writes it."""
    return f"{value:.6g}" if isinstance(value, float) else str(value).removesuffix(" 00:00:00")
