"""Arguments with the name of another package, or of an earlier form of caltest, are answered with ours."""

import importlib
import inspect
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

import caltest
from caltest.predictions.inputs._refusals import _ANSWERS
from tests.reference.cases import check_refused

LABEL, PROB = np.array([0, 1, 1, 0]), np.array([0.2, 0.7, 0.6, 0.4])
ROOMS = ("comparison", "estimation", "hypothesis_tests", "recalibration", "simulation")


def reading_functions():
    """The public functions that read their arguments at the door, by name."""
    rooms = [importlib.import_module(f"caltest.{room}") for room in ROOMS]
    every = {name: getattr(room, name) for room in rooms for name in room.__all__}
    return {name: each for name, each in every.items() if inspect.isfunction(each) and hasattr(each, "__wrapped__")}


@pytest.mark.parametrize("name", _ANSWERS)
def test_every_function_answers_every_name(name):
    asked = 0
    for function, each in reading_functions().items():
        taken = inspect.signature(each).parameters
        answer = next((text for ours, text in _ANSWERS[name] if ours in taken), None)
        if name in taken or answer is None:
            continue
        with pytest.raises(TypeError) as refused:
            each(**{name: 3})
        assert str(refused.value) == f"{function}() has no `{name}`; use {answer.format(value=3)}."
        asked += 1
    assert asked > 0


@pytest.mark.parametrize("name", ["sample_weight", "groups"])
def test_weights_and_groups_are_taken_or_refused_by_name_with_advice(name):
    """The functions that are named instead do take them; without labels, what to do with groups."""
    parameters = {function: inspect.signature(each).parameters for function, each in reading_functions().items()}
    taking = {function for function, taken in parameters.items() if name in taken}
    for function in parameters.keys() - taking:
        with pytest.raises(TypeError) as refused:
            reading_functions()[function](**{name: [1, 1, 1, 1]})
        said = str(refused.value)
        if name == "groups" and "groups_a" in parameters[function]:
            assert said == f"{function}() has no `groups`; use groups_a and groups_b."
        elif name == "groups" and function in {"detectable_error", "plan_sample_size"}:
            assert said.startswith(f"{function}() takes no `groups`: predictions do not tell how alike the labels of a")
            assert said.endswith("The answer lies between the two.")
        else:
            others = re.fullmatch(rf"{function}\(\) takes no `{name}`; (\w+), (\w+) and (\w+) do\.", said)
            assert others, said
            assert set(others.groups()) <= taking


@pytest.mark.parametrize(
    ("name", "value", "answer"),
    [
        ("y_score", PROB, "y_prob"),
        ("y_pred", PROB, "y_prob, with predicted probabilities"),
        ("preds", PROB, "y_prob"),
        ("target", LABEL, "y_true"),
        ("from_logits", True, 'input="logits" for predictions that are logits'),
        ("bins", 10, "statistic=ECE(EqualWidth(10))"),
        (
            "norm",
            "max",
            "statistic=ECE(EqualWidth(15)) for 'l1', RMSCE(15, 'equal-width') for 'l2' of the confidence, MCE(",
        ),
        (
            "strategy",
            "quantile",
            "statistic=ECE(...) with EqualWidth(15) where others have 'uniform', EqualMass(15) for",
        ),
        ("metric", "ECE", "statistic='ECE'"),
    ],
)
def test_names_of_other_packages_beside_all_that_is_needed(name, value, answer):
    with pytest.raises(TypeError, match=re.escape(f"calibration_test() has no `{name}`; use {answer}")):
        caltest.calibration_test(LABEL, PROB, **{name: value})
    with pytest.raises(TypeError, match=f"calibration_test.. has no `{name}`; use "):
        caltest.calibration_test(**{name: value})


WORDS = np.array(["a", "b", "a", "b", "a", "b"], dtype=object)
EVENTS, SIX = [0, 1, 0, 1, 0, 1], np.linspace(0.1, 0.9, 6)
COLUMNS = pd.DataFrame({"a": 1 - SIX, "b": SIX})


def without(values, missing, rows=(0, 2, 3, 5)):
    return [missing if row in rows else value for row, value in enumerate(values)]


LACKING = {
    "nan": (without(EVENTS, np.nan), SIX, {}),
    "None": (without(EVENTS, None), SIX, {}),
    "Int64": (pd.Series(without(EVENTS, None), dtype="Int64"), SIX, {}),
    "boolean": (pd.Series(without([False, True] * 3, None), dtype="boolean"), SIX, {}),
    "polars": (pl.Series(without(EVENTS, None)), SIX, {}),
    "words of classes": (without(WORDS, None), COLUMNS.to_numpy(), {"classes": ["a", "b"]}),
    "words of columns": (without(WORDS, None), COLUMNS, {}),
    "texts of pandas": (pd.Series(without(WORDS, None), dtype="string"), COLUMNS, {}),
    "categories": (pd.Series(without(WORDS, None), dtype="category"), COLUMNS, {}),
    "times": (without(np.array(["2020-01-01"] * 6, dtype="M8[D]"), np.datetime64("NaT", "D")), SIX, {}),
}


@pytest.mark.parametrize("kind", LACKING)
def test_labels_that_are_missing_are_counted(kind):
    label, prob, options = LACKING[kind]
    message = "`y_true`: 4 labels are missing, of 6 (rows 0, 2, 3, ...). Leave these observations out of all arguments"
    check_refused(caltest.calibration_test, ValueError, message, label, prob, **options)


def test_one_missing_label_masked_values_and_missing_predictions():
    def refused(message, label, prob):
        check_refused(caltest.calibration_error, ValueError, message, label, prob)

    refused("`y_true`: 1 label is missing, of 6 (row 4).", without(EVENTS, np.nan, (4,)), SIX)
    masked = np.ma.masked_array(EVENTS, [False, True] * 3)
    refused("`y_true` must not hold masked values, which are missing (rows 1, 3, 5).", masked, SIX)
    prob = np.where([[False, True]] + 2 * [[False, False]] + 3 * [[True, True]], np.nan, COLUMNS.to_numpy())
    message = "`y_prob` must be finite, got nan in row 0, column 1. 4 of 6 predictions are missing (rows 0, 3, 4, ...)."
    refused(message, EVENTS, prob)
    refused("must hold class indices 0 to 1, one for each column of `y_prob`, got 2 in row 0", [2, 0, 0, 1, 0, 1], SIX)


@pytest.mark.parametrize(
    ("function", "call"),
    [
        (caltest.compare_models, "compare_models(y_true, models)"),
        (caltest.recalibration_study, "recalibration_study(y_true, models, recalibrators)"),
        (caltest.training_track, "training_track(y_true, epochs)"),
    ],
)
def test_labels_come_first(function, call):
    given = [{"a": PROB, "b": PROB[::-1]}, LABEL, None][: call.count(",") + 1]
    for models in (given[0], list(given[0].items())):
        with pytest.raises(TypeError) as refused:
            function(models, *given[1:])
        what = "a mapping" if isinstance(models, dict) else "pairs of names and predictions"
        assert str(refused.value) == f"`y_true` must hold labels, got {what}. Labels come first: {call}."
    with pytest.raises(TypeError, match=r"Labels come first: write_page\(y_true, y_prob, path\)"):
        caltest.page.write_page("page.html", LABEL, PROB)
