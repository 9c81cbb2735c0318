"""Fitted maps are written to JSON and read again; foreign and changed files are refused."""

import json

import numpy as np
import pandas as pd
import pytest

import caltest
from caltest.recalibration import (
    MatrixScaling,
    Recalibrator,
    TemperatureScaling,
    VectorScaling,
    load_recalibrator,
)
from caltest.recalibration.maps._saved_map import _digest
from tests.recalibration.maps.test_base import LABELS, over_confident
from tests.reference.cases import mostly_slow

pytestmark = pytest.mark.filterwarnings("ignore:.*worse than temperature scaling")
METHODS = (
    TemperatureScaling(),
    TemperatureScaling(caltest.ECE(caltest.EqualWidth(10)), lens=caltest.Confidence()),
    VectorScaling(0.1, classes=LABELS.tolist()),
    MatrixScaling((0.1, 1.0)),
)


@pytest.fixture
def saved(tmp_path):
    """A fitted method and its file."""
    prob, y_true = over_confident(100, 3)
    fitted = TemperatureScaling().fit(prob, y_true)
    path = tmp_path / "map.json"
    fitted.save(path)
    return fitted, path


@pytest.mark.parametrize("method", mostly_slow(METHODS), ids=str)
def test_what_is_read_is_what_was_written(method, tmp_path):
    prob, y_true = over_confident(100, 3)
    frame = pd.DataFrame(prob, columns=LABELS)
    fitted = method.fit(frame, LABELS[y_true])
    fitted.save(tmp_path / "map.json")
    again = load_recalibrator(str(tmp_path / "map.json"))
    assert type(again) is type(fitted)
    assert str(again.get_params()) == str(fitted.get_params())
    np.testing.assert_array_equal(again.predict_proba(frame), fitted.predict_proba(frame))
    assert again.predict(frame).tolist() == fitted.predict(frame).tolist()
    assert vars(again).keys() == vars(fitted).keys()


@pytest.mark.parametrize("labels", [[False, True], [1.5, 2.5], ["no", "yes"], [-1, 1], ["a", 2]])
def test_labels_keep_their_type(labels, tmp_path):
    prob, y_true = over_confident(60, 2)
    given = np.array(labels, dtype=object)[y_true] if "a" in labels else np.array(labels)[y_true]
    fitted = TemperatureScaling(classes=labels).fit(prob, given)
    fitted.save(tmp_path / "map.json")
    assert load_recalibrator(tmp_path / "map.json").classes_.tolist() == labels


def test_foreign_and_changed_files_are_refused(saved, tmp_path):
    _, path = saved
    content = json.loads(path.read_text())
    for change, message in (
        ({"format": "other"}, "is no recalibration map"),
        ({"version": 1}, "has version 1 of the format"),
        ({"fitted": content["fitted"] | {"temperature_": 1.0}}, "was changed after it was written"),
        ({"method": "RecalibratedClassifier"}, "was changed"),
    ):
        path.write_text(json.dumps(content | change))
        with pytest.raises(ValueError, match=message):
            load_recalibrator(path)
    for text in ("", "[1, 2]", '"text"', "not JSON"):
        path.write_text(text)
        with pytest.raises(ValueError, match="is no recalibration map of caltest"):
            load_recalibrator(path)
    path.write_bytes(b"\x80\x04\x95pickle")
    with pytest.raises(ValueError, match="is no recalibration map of caltest"):
        load_recalibrator(path)
    with pytest.raises(FileNotFoundError):
        load_recalibrator(tmp_path / "absent.json")


def test_a_network_is_refused_by_name(saved):
    _, path = saved
    content = json.loads(path.read_text())
    del content["sha256"]
    content["method"] = "NetworkScaling"
    path.write_text(json.dumps(content | {"sha256": _digest(content)}))
    with pytest.raises(ValueError, match="NetworkScaling, which is no method of caltest any more, because it overfits"):
        load_recalibrator(path)


def test_only_what_json_can_hold_is_written(saved, tmp_path):
    fitted, path = saved
    fitted.set_params(lens=lambda prob, outcome: (prob, outcome))
    with pytest.raises(TypeError, match=r"`lens` = .* cannot be written to JSON"):
        fitted.save(tmp_path / "other.json")

    class Own(TemperatureScaling):
        pass

    prob, y_true = over_confident(100, 3)
    with pytest.raises(TypeError, match=r"only the methods of caltest.recalibration can be saved, got Own"):
        Own().fit(prob, y_true).save(path)


def forge(path, change):
    """Change a saved map and give it the checksum of what it holds now."""
    content = json.loads(path.read_text())
    content.pop("sha256")
    change(content)
    path.write_text(json.dumps(content | {"sha256": _digest(content)}))


def deep():
    value = []
    for _ in range(600):
        value = [value]
    return {"list": value}


IMPOSSIBLE = {
    "an attribute of Python": (lambda c: c["fitted"].update(__class__=1), "no attribute '__class__'"),
    "a method": (lambda c: c["fitted"].update(predict=1), "no attribute 'predict'"),
    "another attribute": (lambda c: c["fitted"].update(weights_=1.0), "no attribute 'weights_'"),
    "no such parameter": (lambda c: c["parameters"].update(speed=1), "speed"),
    "a wrong parameter": (lambda c: c["parameters"].update(input="odds"), "`input` must be"),
    "a temperature that is not a number": (lambda c: c["fitted"].update(temperature_="hot"), "cannot be used"),
    "a temperature of 0": (lambda c: c["fitted"].update(temperature_=0.0), "cannot be used"),
    "an infinite temperature": (lambda c: c["fitted"].update(temperature_={"float": "nan"}), "cannot be used"),
    "one class": (lambda c: c["fitted"]["classes_"].update(array=[0], shape=[1]), "`classes_` must be two"),
    "equal classes": (lambda c: c["fitted"]["classes_"].update(array=[0, 1, 1]), "`classes_` must be two"),
    "a wrong shape": (lambda c: c["fitted"]["classes_"].update(shape=[10**12]), "reshape"),
    "large elements": (lambda c: c["fitted"]["classes_"].update(dtype="<U500000000"), "which no map has"),
    "objects of NumPy": (lambda c: c["fitted"]["classes_"].update(dtype="V8"), "which no map has"),
    "many columns": (lambda c: c["fitted"].update(n_features_in_=10**8), "`n_features_in_` must be"),
    "no fitted part": (lambda c: c.pop("fitted"), "there is no 'fitted'"),
    "a base class": (lambda c: c.update(method="Recalibrator"), "cannot be used"),
    "a list as a method": (lambda c: c.update(method=[1]), "does not have"),
    "deep lists": (lambda c: c["parameters"].update(classes=deep()), "is no recalibration map"),
}


@pytest.mark.filterwarnings("ignore:.*encountered in")
@pytest.mark.parametrize("name", mostly_slow(IMPOSSIBLE))
def test_impossible_maps_with_the_right_checksum_are_refused(saved, name):
    _, path = saved
    change, words = IMPOSSIBLE[name]
    forge(path, lambda content: None)
    load_recalibrator(path)
    forge(path, change)
    with pytest.raises(ValueError, match=r"map\.json") as raised:
        load_recalibrator(path)
    assert words in str(raised.value)


@pytest.mark.parametrize("name", mostly_slow(sorted(name for name in dir(caltest.recalibration) if name[0].isupper())))
def test_fitted_attributes_are_declared(name):
    """A file may set what is declared and nothing else, so that everything that `fit` sets must be."""
    kind = getattr(caltest.recalibration, name)
    if not issubclass(kind, Recalibrator) or kind is Recalibrator:
        return
    prob, y_true = over_confident(100, 2)
    fitted = kind().fit(pd.DataFrame(prob, columns=["a", "b"]), np.array(["a", "b"])[y_true])
    found = {one for one in vars(fitted) if one.endswith("_") and one[0] != "_"}
    assert found <= kind.fitted_attributes()
