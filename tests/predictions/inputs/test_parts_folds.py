"""Ids of folds: what is accepted, in which order the folds come, and what each refusal says."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from caltest.predictions.inputs._parts import part_of, validate_folds

IDS = [10, 2, 10, 2, 2, 7]


def test_every_form_of_ids_gives_the_same_folds():
    expected = [("2", [1, 3, 4]), ("7", [5]), ("10", [0, 2])]
    forms = {
        "list": IDS,
        "tuple": tuple(IDS),
        "array": np.array(IDS, dtype=np.int16),
        "floats of a file": np.array(IDS, dtype=float),
        "series": pd.Series(IDS, index=list("bcdefg")),
        "nullable": pd.Series(IDS, dtype="Int64"),
        "categories": pd.Series(IDS).astype("category"),
        "polars": pl.Series(IDS),
    }
    for name, ids in forms.items():
        assert [(fold, rows.tolist()) for fold, rows in validate_folds(ids, 6)] == expected, name


def test_texts_are_sorted_and_come_after_numbers():
    assert validate_folds(["b", "a", "b", "a"], 4).names == ("a", "b")
    assert validate_folds(["b", 3, "b", 20], 4).names == ("3", "20", "b")


@pytest.mark.parametrize(
    ("ids", "error", "said"),
    [
        ([0, 1, 0], ValueError, "of each of the 4 observations, got 3"),
        ([[0], [1], [0], [1]], TypeError, "integers or strings: unhashable"),
        (np.zeros((4, 2)), ValueError, r"shape \(n_samples,\), got \(4, 2\)"),
        ([0, 1, None, 1], ValueError, "got a missing id for observation 2"),
        (["a", "b", float("nan"), "b"], ValueError, "got a missing id for observation 2"),
        (pd.Series([0, 1, None, 1], dtype="Int64"), ValueError, "for observation 2"),
        ([5, 5, 5, 5], ValueError, "several folds, got 5 for every observation"),
        ([0, 1, 2, 3], ValueError, "a different one for every observation"),
        ([0.5, 1, 0.5, 1], ValueError, "integers or strings, got 0.5"),
        ([(0,), (1,), (0,), (1,)], TypeError, r"integers or strings, got \(0,\)"),
        ("abab", TypeError, "array of shape"),
        (3, TypeError, "array of shape"),
    ],
)
def test_refusals_name_the_argument_and_the_value(ids, error, said):
    with pytest.raises(error, match="`folds`.*" + said):
        validate_folds(ids, 4)


def test_parts_of_every_container():
    rows = np.array([2, 0])
    assert part_of(["a", "b", "c"], rows) == ["c", "a"]
    assert part_of(np.arange(3), rows).tolist() == [2, 0]
    assert part_of(pd.Series(list("abc"), index=[5, 6, 7]), rows).tolist() == ["c", "a"]
    assert part_of(pd.DataFrame({"a": [1, 2, 3]}), rows)["a"].tolist() == [3, 1]
