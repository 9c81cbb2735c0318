"""Tests within the subgroups that the columns of a file make, named as a reader would name them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.hypothesis_tests._subgroups import SubgroupTests, subgroup_tests
from caltest.predictions._arrays import Booleans
from caltest.predictions.files._levels import levels_of
from caltest.predictions.inputs._frames import index_of


def levels_of_columns(columns: Mapping[str, NDArray[Any]], n_ranges: int = 4) -> dict[str, dict[str, Booleans]]:
    """Return for each column the names of its levels and the observations of each."""
    found = {}
    for name, column in columns.items():
        levels, code = levels_of(name, column, n_ranges)
        found[name] = {level: code == number for number, level in enumerate(levels)}
    return found


def judge_levels(
    y_true: ArrayLike, y_prob: ArrayLike, levels: Mapping[str, Mapping[str, Booleans]], **options: Any
) -> SubgroupTests:
    """Return `subgroup_tests` of the levels of columns, without the name of a column before those of its levels."""
    import pandas as pd

    columns = {
        name: pd.Categorical.from_codes(np.argmax(list(members.values()), axis=0), list(members))
        for name, members in levels.items()
    }
    index = next((each for each in map(index_of, (y_true, y_prob)) if each is not None), None)
    table = pd.DataFrame(columns, index=index)
    found = subgroup_tests(y_true, y_prob, subgroup=table, **options)
    short = {f"{name}={level}": level for name, members in levels.items() for level in members}
    return _renamed(found, short)


def _renamed(tests: SubgroupTests, names: Mapping[str, str]) -> SubgroupTests:
    folds = tuple(_renamed(fold, names) for fold in tests.folds)
    return tests.with_tests(tests.tests, [names[name] for name in tests.subgroups], folds=folds)
