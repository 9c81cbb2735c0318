"""Names that things had before are answered with those that they have now, and those exist."""

import ast
import pickle
from pathlib import Path

import numpy as np
import pytest

import caltest
from caltest.results._other_names import ATTRIBUTES, NAMES, OF_CLASSES, ROOMS, AnswersOtherNames, attach
from tests.results.examples import EXAMPLES, example


def found(path):
    """What a path of names below the package is."""
    thing = caltest
    for name in path.split("."):
        thing = getattr(thing, name)
    return thing


@pytest.mark.parametrize(("room", "name"), NAMES)
def test_a_name_of_a_room_is_answered_with_one_that_is_there(room, name):
    now = NAMES[room, name]
    where = f"caltest.{room}" if room else "caltest"
    with pytest.raises(AttributeError, match=rf"^{where}\.{name} is called caltest\.{now} now\.$"):
        getattr(found(room) if room else caltest, name)
    assert found(now) is not None


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_an_attribute_of_results_is_answered(name):
    """By every result that has what it is called now, and does not have the name itself."""
    now = ATTRIBUTES[name]
    having = [each for each in map(example, EXAMPLES) if hasattr(each, now) and not hasattr(type(each), name)]
    asked = 0
    for each in having:
        if name in vars(each) or (type(each).__name__, name) in OF_CLASSES:
            continue
        with pytest.raises(AttributeError, match=rf"^{type(each).__name__}\.{name} is called {now} now\.$"):
            getattr(each, name)
        asked += 1
    assert asked > 0


@pytest.mark.parametrize(("kind", "name"), [pair for pair in OF_CLASSES if pair[0] in {k.__name__ for k in EXAMPLES}])
def test_an_attribute_of_one_class_is_answered(kind, name):
    result = example(next(each for each in EXAMPLES if each.__name__ == kind))
    now = OF_CLASSES[kind, name]
    with pytest.raises(AttributeError) as refused:
        getattr(result, name)
    assert str(refused.value) == f"{kind}.{name} is called {now} now."
    if "(" not in now:
        for part in now.split("."):
            result = getattr(result, part)


def test_samples_and_recalibrators_answer_too():
    fitted = caltest.recalibration.AutomaticCalibration()
    with pytest.raises(AttributeError, match=r"AutomaticCalibration\.method_ is called recalibrator_ now"):
        _ = fitted.method_
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = fitted.nothing
    sample = caltest.predictions.Sample.__new__(caltest.predictions.Sample)
    with pytest.raises(AttributeError, match=r"Sample\.cells is called cells_of\(sample, partition\) now"):
        _ = sample.cells
    kept = {type(example(kind)).__name__ for kind in EXAMPLES} | {"Sample", "AutomaticCalibration"}
    assert {kind for kind, _ in OF_CLASSES} <= kept


def test_a_name_in_a_room_is_told():
    with pytest.raises(AttributeError, match=r"^caltest\.SCE is in caltest\.statistics: caltest\.statistics\.SCE\.$"):
        _ = caltest.SCE
    for name in ("nothing", "_SCE", "__wrapped__"):
        assert not hasattr(caltest, name)
    assert not hasattr(caltest.statistics, "reliability_curve"), "rooms answer for themselves only"
    assert attach("caltest.estimation", caltest.estimation.__file__)[2] == caltest.estimation.__all__


class Broken(AnswersOtherNames):
    @property
    def conclusion(self):
        return self.cause

    @property
    def cause(self):
        msg = "the cause"
        raise AttributeError(msg)


def test_errors_of_properties_are_told_as_they_are():
    with pytest.raises(AttributeError, match=r"^the cause$"):
        _ = Broken().conclusion
    with pytest.raises(AttributeError, match=r"^'Broken' object has no attribute 'nothing'$"):
        _ = Broken().nothing
    with pytest.raises(AttributeError, match=r"^Broken\.reading is called conclusion now\.$"):
        _ = Broken().reading
    curve = caltest.reliability_curve(np.array([0, 1, 1, 0]), np.array([0.2, 0.7, 0.6, 0.4]), rng=0)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(curve)).bar_lower, curve.bar_lower)


@pytest.mark.parametrize("room", ["", *ROOMS])
def test_a_stub_is_read_as_python_reads_it(room):
    """It is read line by line, without its syntax."""
    place = Path(caltest.__file__).parent / room
    imports = [
        node for node in ast.parse((place / "__init__.pyi").read_text()).body if isinstance(node, ast.ImportFrom)
    ]
    assert attach(f"caltest.{room}", str(place / "__init__.py"))[2] == sorted(
        alias.name for node in imports for alias in node.names
    )
