"""Public names are documented in NumPy style: what they are, parameters, what is returned, what else, an example."""

import inspect
from dataclasses import fields, is_dataclass
from typing import get_origin

import pytest
from numpydoc.validate import Validator, get_doc_object, validate

import caltest
from caltest.results import Result
from caltest.results._naming import Specification
from caltest.results._other_names import ROOMS

REQUIRED = {
    "GL06": "unknown section",
    "GL07": "sections in the wrong order",
    "GL08": "no docstring",
    "SS01": "no summary",
    "SS02": "summary does not begin with a capital letter",
    "SS03": "summary does not end with a full stop",
    "SS06": "summary longer than a line",
    "PR01": "parameter not documented",
    "PR02": "unknown parameter documented",
    "PR03": "parameters in the wrong order",
    "PR04": "parameter without a type",
    "PR07": "parameter without a description",
    "RT01": "no Returns section",
    "RT03": "return value without a description",
    "EX01": "no example",
    "SA01": "no See Also section",
    "SA04": "entry of See Also without a description",
}
"""What numpydoc checks; other codes are matters of taste."""

PRIVATE_WORDS = (
    "taken at their word",
    "honest band",
    "what chance explains",
    "if an argument is not of the form above",
)


def public() -> dict[str, object]:
    """What users call: the names of the package, and those of its rooms, by the path under which they are imported."""
    found = {}
    for name in dir(caltest):
        thing = getattr(caltest, name)
        if inspect.ismodule(thing):
            inner = {f"caltest.{name}.{inner}": getattr(thing, inner) for inner in thing.__all__}
            found |= {path: part for path, part in inner.items() if get_origin(part) is None}  # type aliases have none
        else:
            found[f"caltest.{name}"] = thing
    unique = {id(thing): path for path, thing in sorted(found.items(), key=lambda item: -len(item[0]))}
    paths = sorted(path for path in unique.values() if not isinstance(found[path], Specification))  # ready-made objects
    return {path: found[path] for path in paths}


PUBLIC = public()
RESULTS = {path: thing for path, thing in PUBLIC.items() if inspect.isclass(thing) and issubclass(thing, Result)}


def needed(thing: object) -> set[str]:
    """The codes that apply to a function, a class to be made, or a class that functions return."""
    codes = set(REQUIRED)
    if inspect.isclass(thing):
        codes -= {"RT01", "RT03"}
        if (
            issubclass(thing, Result | Warning | tuple)
            or inspect.isabstract(thing)
            or thing.__name__ in {"Sample", "CellSums", "Tail", "Note"}
        ):
            codes -= {"PR01"}
    return codes


class Documented(Validator):
    """A name whose place in its file is not searched for, which takes longer than to read its docstring."""

    source_file_name = source_file_def_line = None

    def __init__(self, obj_name: str) -> None:
        super().__init__(get_doc_object(self._load_obj(obj_name)))


@pytest.mark.parametrize("path", PUBLIC)
def test_docstrings_are_complete(path):
    found = validate(path, validator_cls=Documented)["errors"]
    problems = [(code, text) for code, text in found if code in needed(PUBLIC[path])]
    assert problems == []


def test_results_document_their_fields():
    for path, result in RESULTS.items():
        assert is_dataclass(result), path
        assert result.__dataclass_params__.frozen, path
        own = {field.name for field in fields(result) if not field.name.startswith("_")}
        inherited = {field.name for base in result.__mro__[1:] if is_dataclass(base) for field in fields(base)}
        said = inspect.getdoc(result)
        assert [name for name in sorted(own - inherited) if name not in said] == [], path


def test_public_names_are_true():
    assert len(set(caltest.__all__)) == len(caltest.__all__)
    rooms = {name for name in dir(caltest) if inspect.ismodule(getattr(caltest, name))}
    assert {*rooms} == {*ROOMS}
    assert sorted(dir(caltest)) == sorted([*caltest.__all__, *ROOMS]), "no import of ours is visible"
    assert len(caltest.__all__) <= 68, "tasks, lenses, cells and what people type; the rest is in its room"
    assert {"caltest.calibration_test", "caltest.datasets.load_digits_predictions"} <= set(PUBLIC)


def test_no_private_words_in_docstrings():
    found = [
        (path, word)
        for path, thing in PUBLIC.items()
        for word in PRIVATE_WORDS
        if word in (inspect.getdoc(thing) or "")
    ]
    assert found == []
