"""Options that functions share: one declaration makes the signature, the documentation and the validation."""

import importlib
import inspect
from typing import Annotated, Unpack

import numpy as np
import pytest

import caltest
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._options import AlphaOption, DesignOptions, Option, WorkOptions

ROOMS = (
    *("comparison", "estimation", "hypothesis_tests", "page", "recalibration", "resampling", "simulation"),
    *("statistics", "streaming"),
)
LABEL, PROB = np.array([0, 1, 1, 0]), np.array([0.2, 0.7, 0.6, 0.4])


class FoundOptions(DesignOptions, AlphaOption, WorkOptions, total=False):
    unit: Annotated[str, Option("str", "What is counted.", "rows")]


@reads_arguments
def found(y_true, y_prob, *, kind: str = "one", **options: Unpack[FoundOptions]):
    """Return what was passed.

    Parameters
    ----------
    kind : str
        An own option.
    groups : array-like
        Documented by the function itself.

    Returns
    -------
    dict
        The options.
    """
    return {"kind": kind, **options}


def test_the_function_gets_every_option_validated():
    given = found(LABEL, PROB, alpha=np.float64(0.1), workers=np.int64(2), groups=["a", "a", "b", "b"])
    assert list(given) == ["kind", "groups", "alpha", "workers", "sample_weight", "rng", "progress", "unit"]
    assert given["unit"] == "rows"
    assert type(given["alpha"]) is float
    assert type(given["workers"]) is int
    with pytest.raises(ValueError, match="`alpha` must lie strictly between 0 and 1, got 2"):
        found(LABEL, PROB, alpha=2)


def test_others_are_refused_by_name():
    with pytest.raises(TypeError, match=r"found\(\) got an unexpected keyword argument 'size'"):
        found(LABEL, PROB, size=3)
    with pytest.raises(TypeError, match=r"found\(\) has no `n_jobs`; use workers=3\."):
        found(LABEL, PROB, n_jobs=3)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y_prob'"):
        found(LABEL)
    with pytest.raises(TypeError, match=r"has no `pos_label`; use classes=\[other_label, 'yes'\]"):
        caltest.calibration_test(LABEL, PROB, pos_label="yes")
    with pytest.raises(TypeError, match="has no `weights`; use sample_weight"):
        caltest.calibration_test(LABEL, PROB, weights=[1, 1, 1, 1])


def test_the_signature_names_them_and_the_docstring_says_them_once():
    names = ["y_true", "y_prob", "kind", "sample_weight", "groups", "alpha", "workers", "rng", "progress", "unit"]
    assert list(inspect.signature(found).parameters) == names
    said = inspect.getdoc(found)
    assert [line.split(" :")[0] for line in said.splitlines() if " : " in line] == names
    assert said.count("Documented by the function itself.") == 1
    assert "The group of each observation" not in said
    assert "What is counted." in said
    assert said.endswith("The options.")


def test_functions_that_read_no_frames_complete_options_too():
    """Folds call the inner function, whose arguments were read for all of them."""
    assert inspect.unwrap(found)(LABEL, PROB)["alpha"] == 0.05


def public_functions():
    """Every public function of the rooms, once, by its name."""
    rooms = [importlib.import_module(f"caltest.{room}") for room in ROOMS]
    found = {name: getattr(room, name) for room in rooms for name in room.__all__}
    return {name: each for name, each in found.items() if inspect.isfunction(each)}


def test_workers_and_progress_are_those_of_config_context_by_default():
    found = {
        (name, option): inspect.signature(function).parameters[option].default
        for name, function in public_functions().items()
        for option in ("workers", "progress")
        if option in inspect.signature(function).parameters
    }
    assert len(found) > 50
    assert {key: value for key, value in found.items() if value is not None} == {}


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("name", ["cells_curve", "temperature_curve"])
def test_curves_of_errors_do_not_depend_on_workers(name):
    """They take threads as other functions do, from `config_context` too."""
    curve, given = getattr(caltest, name), {"n_resamples": 19, "rng": 0}
    rng = np.random.default_rng(1)
    prob = rng.dirichlet(np.ones(3), 200)
    label = np.argmax(rng.multinomial(1, prob), axis=1)
    alone = curve(label, prob, **given)
    with caltest.config_context(workers=2, progress=False):
        together = curve(label, prob, **given)
    np.testing.assert_array_equal(together.floor, alone.floor)
    np.testing.assert_array_equal(together.floor_upper, alone.floor_upper)


@pytest.mark.parametrize("room", ROOMS)
def test_the_number_of_draws_is_left_to_one_rule(room):
    """`caltest.resampling.engine._stopping.number_of_draws`, which no signature anticipates."""
    public = importlib.import_module(f"caltest.{room}")
    functions = {name: getattr(public, name) for name in public.__all__ if inspect.isfunction(getattr(public, name))}
    drawing = {name: inspect.signature(function).parameters.get("n_resamples") for name, function in functions.items()}
    assert {name: found.default for name, found in drawing.items() if found and found.default is not None} == {}
