"""Arguments with the name of another package, or of an earlier form of caltest, are answered with ours."""

import importlib
import inspect
import re

import numpy as np
import pytest

import caltest
from caltest.predictions.inputs._refusals import _ANSWERS

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
