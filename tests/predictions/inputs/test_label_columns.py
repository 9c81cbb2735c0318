"""Columns of several labels and of their probabilities: which belong together."""

import numpy as np
import pandas as pd
import pytest

from caltest.predictions.inputs._label_columns import pair_columns, read_label_columns

CAT_AND_DOG = {"cat": 0, "dog": 1}


@pytest.mark.parametrize(
    ("label", "prob"),
    [
        ("y_{}", "p_{}"),
        ("{}", "{}_prob"),
        ("{}", "P_{}"),
        ("{}_true", "{}_pred"),
        ("true_{}", "score_{}"),
        ("y_true_{}", "y_prob_{}"),
        ("target-{}", "probability-{}"),
        ("{}", "{}.proba"),
    ],
)
def test_columns_that_belong_together(label, prob):
    expected = {name: (label.format(name), prob.format(name)) for name in CAT_AND_DOG}
    names = [pair[place] for place in (1, 0) for pair in expected.values()]
    assert pair_columns(["id", *names, "age"]) == expected


@pytest.mark.parametrize(
    ("names", "match"),
    [
        (["a", "b"], r"no columns are those of a label.*--label a,b --prob p_a,p_b; the columns are a, b"),
        (["cat", "p_cat", "p_dog"], "the column 'p_dog' looks like a probability whose label is in no column"),
        (["cat", "y_cat", "p_cat"], "several columns could be the label or the probability of 'cat'"),
        (["cat", "p_cat", "cat_prob"], "several columns could be the label or the probability of 'cat'"),
    ],
)
def test_what_is_not_clear_is_refused(names, match):
    with pytest.raises(ValueError, match=match):
        pair_columns(names)


@pytest.mark.parametrize("dtype", [bool, int, "boolean", "Int64", float, object])
def test_labels_of_any_type(dtype):
    label = pd.DataFrame({"a": [1, 0, 1], "b": [0, 0, 1]}).astype(dtype)
    found = read_label_columns(label, np.full((3, 2), 0.25))
    assert found.names == ("a", "b")
    assert found.label.tolist() == [[1, 0], [0, 0], [1, 1]]
    assert found.known.all()
    assert not found.are_classes


def test_missing_labels_of_nullable_types():
    label = pd.DataFrame({"a": pd.array([1, None, 1], "Int64"), "b": [None, 0.0, 1.0]})
    found = read_label_columns(label, np.full((3, 2), 0.25))
    assert found.known.tolist() == [[True, False], [False, True], [True, True]]


def test_names_are_given_once():
    prob = pd.DataFrame(np.full((3, 2), 0.25), columns=["a", "a"])
    with pytest.raises(ValueError, match="`y_prob` has several columns of the name 'a'"):
        read_label_columns(np.eye(3)[:, :2], prob)
