"""Texts that name objects: all public ones, and nothing else is run."""

import inspect

import pytest

import caltest
from caltest import hypothesis_tests, predictions, statistics
from caltest.cli import _options
from caltest.results._expressions import PublicNames, read_object
from caltest.results._naming import describe
from tests.reference.examples import default_statistics

KNOWN = PublicNames(predictions, statistics, hypothesis_tests, amount=2.5)


def test_texts_that_name_objects():
    cases = {
        " ECE(EqualWidth(n_cells=15)) ": caltest.ECE(caltest.EqualWidth(15)),
        "ECE(VarianceTree, chebyshev)": caltest.ECE(caltest.VarianceTree(), predictions.chebyshev),
        "Omnibus((KS, Kuiper()))": caltest.Omnibus((caltest.KS(), caltest.statistics.Kuiper())),
        "SKCE(gaussian_kernel, bandwidth=0.5)": caltest.SKCE(statistics.gaussian_kernel, bandwidth=0.5),
        "EqualMass('sqrt')": caltest.EqualMass("sqrt"),
        "Edges([0.5, 0.9])": caltest.Edges([0.5, 0.9]),
        "[1, -2.5, 'a', True, None, amount, (1, amount)]": [1, -2.5, "a", True, None, 2.5, (1, 2.5)],
        "cox_test": caltest.cox_test,
    }
    for text, expected in cases.items():
        assert read_object(text, KNOWN) == expected, text
    found = read_object("cox_test(method='score')", KNOWN)
    assert (found.func, found.keywords) == (caltest.cox_test, {"method": "score"})


def test_every_public_object_can_be_named():
    for statistic in default_statistics():
        assert _options.parse_statistic(describe(statistic)) == statistic
        assert _options.parse_statistic(type(statistic).__name__) == type(statistic)()
    for kind, listed in ((predictions.Lens, _options.LENSES), (predictions.Partition, _options.PARTITIONS)):
        objects = read_object(f"[{listed}]", KNOWN)
        public = {thing for name in predictions.__all__ if _is(thing := getattr(predictions, name), kind)}
        assert {type(thing) for thing in objects} == public
        assert read_object(describe(objects), KNOWN) == objects


def _is(thing, kind):
    return inspect.isclass(thing) and issubclass(thing, kind) and not inspect.isabstract(thing)


def test_names_and_texts_in_lenses_of_classes_are_labels():
    index = ["cat", "dog", "eel", "KS"].index
    cases = {
        "ClassWise(dog)": caltest.ClassWise(1),
        "ClassWise('dog')": caltest.ClassWise(1),
        "ClassWise(k=KS)": caltest.ClassWise(3),
        "ClassWise(2)": caltest.ClassWise(2),
        "ClassGroups([[cat, 'dog'], (2, KS)])": caltest.ClassGroups([[0, 1], [2, 3]]),
    }
    for text, expected in cases.items():
        assert read_object(text, KNOWN, index) == expected, text
    with pytest.raises(ValueError, match="there is no dog"):
        read_object("TopK(dog)", KNOWN, index)


def test_nothing_else_is_run():
    cases = {
        "__import__('os').system('echo')": "is neither a name",
        "open('x')": "there is no open",
        "ECE.__class__": "is neither a name",
        "ECE().partition": "is neither a name",
        "(lambda: 1)()": "is neither a name",
        "[x for x in (1, 2)]": "is neither a name",
        "ECE(*[1])": "is neither a name",
        "ECE(**{'partition': 1})": "unexpected keyword argument 'None'",
        "EqualWidth(1) if 1 else 2": "is neither a name",
        "1 + amount": "is neither a name",
        "f'{amount}'": "is neither a name",
        "a = 1": "is not a Python expression such as ECE",
        "": "is not a Python expression such as ECE",
        "EqualWidth(": "is not a Python expression such as ECE",
        "class:3": "is not a Python expression such as ECE",
        "EqualWidth(-1)": "`n_cells` must be",
        "EqualWidth(cells=1)": r"the arguments are EqualWidth\(n_cells, axes, closed\)",
        "EqualWidth": "missing a required argument: 'n_cells'",
        "equalwidth(3)": "there is no equalwidth; did you mean EqualWidth?",
        "ks": "there is no ks; did you mean KS?",
        "shrub": "there is no shrub.",
    }
    for text, message in cases.items():
        with pytest.raises(ValueError, match=message):
            read_object(text, KNOWN)


def test_public_names_are_a_mapping():
    assert set(KNOWN) == {"amount", *predictions.__all__, *statistics.__all__, *caltest.hypothesis_tests.__all__}
    assert len(KNOWN) == len(set(KNOWN))
