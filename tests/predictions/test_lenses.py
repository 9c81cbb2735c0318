"""Lenses against their loops, observation by observation."""

from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest

import caltest
from caltest import ClassGroups
from caltest.predictions._lens import lens_name, lens_short_name, names_event, outcome_dtype
from tests.reference import naive
from tests.reference.cases import check_refused, failures
from tests.reference.examples import LENSES, VIEWS

PROB = np.array([[0.5, 0.25, 0.125, 0.125], [0.125, 0.125, 0.5, 0.25]])
OUTCOME = np.array([3, 0])
ALL_VIEWS = {str(view): view for view in VIEWS}


def test_every_lens_has_an_example_and_a_twin(lens_classes):
    assert lens_classes
    for kind, has_example in lens_classes.items():
        assert has_example, f"{kind.__name__} needs an example in examples.LENSES"
        assert kind in naive.LENSES, f"{kind.__name__} needs a twin in naive.LENSES"
        assert kind.__name__ in caltest.__all__


def test_equals_the_loops():
    for name, view in ALL_VIEWS.items():
        prob, outcome = view.induced
        expected_prob, expected_outcome = naive.look(view.lens, view.y_prob.astype(float), view.y_true)
        np.testing.assert_allclose(prob, expected_prob, rtol=0, atol=1e-12, err_msg=name)
        np.testing.assert_array_equal(outcome, expected_outcome, err_msg=name)


def test_returns_a_problem():
    def check(view):
        prob, outcome = view.induced
        assert prob.dtype == np.float64
        assert prob.ndim == 2
        assert prob.shape[1] >= 2
        assert outcome.shape == (len(prob),)
        assert outcome.dtype.kind == "i"
        assert outcome.min() >= 0
        assert outcome.max() < prob.shape[1]
        np.testing.assert_allclose(prob.sum(axis=1), view.y_prob.sum(axis=1), rtol=0, atol=1e-6)

    assert failures(ALL_VIEWS, check) == {}


def test_depends_on_predictions_alone_and_leaves_its_input_alone():
    for name, view in ALL_VIEWS.items():
        prob, outcome = view.y_prob.astype(float), view.y_true.copy()
        prob.flags.writeable = outcome.flags.writeable = False
        one, _ = view.lens(prob, outcome)
        other, _ = view.lens(prob, (outcome + 1) % prob.shape[1])
        np.testing.assert_array_equal(one, other, err_msg=name)


@pytest.mark.parametrize(
    ("lens", "prob", "outcome"),
    [
        (caltest.Canonical(), PROB, [3, 0]),
        (caltest.Confidence(), [[0.5, 0.5], [0.5, 0.5]], [0, 0]),
        (caltest.TopK(1), [[0.5, 0.5], [0.5, 0.5]], [0, 0]),
        (caltest.TopK(2), [[0.5, 0.25, 0.25], [0.5, 0.25, 0.25]], [2, 2]),
        (caltest.TopK(3), [[0.5, 0.25, 0.125, 0.125], [0.5, 0.25, 0.125, 0.125]], [3, 2]),
        (caltest.TopRank(3), [[0.875, 0.125], [0.875, 0.125]], [0, 1]),
        (caltest.TopRank(4), [[0.875, 0.125], [0.875, 0.125]], [1, 0]),
        (caltest.WithinTop(3), [[0.125, 0.875], [0.125, 0.875]], [0, 1]),
        (caltest.ClassWise(0), [[0.5, 0.5], [0.875, 0.125]], [0, 1]),
        (ClassGroups([[3, 0], [1, 2]]), [[0.625, 0.375], [0.375, 0.625]], [0, 0]),
    ],
)
def test_by_hand(lens, prob, outcome):
    found_prob, found_outcome = lens(PROB, OUTCOME)
    np.testing.assert_array_equal(found_prob, prob)
    np.testing.assert_array_equal(found_outcome, outcome)


def test_ties_go_to_the_smaller_class():
    for lens in (caltest.Confidence(), caltest.TopK(1), caltest.TopRank(1), caltest.WithinTop(1)):
        _, outcome = lens(np.full((3, 3), 1 / 3), np.arange(3))
        assert outcome.tolist() == [1, 0, 0], lens
    _, outcome = caltest.TopK(2)(np.array([[0.1, 0.4, 0.1, 0.4]] * 4), np.arange(4))
    assert outcome.tolist() == [2, 0, 2, 1]


def test_rest_is_the_sum_of_the_others():
    """1 minus the largest would be rounding error where they round to 1, and not 0 where the others are."""
    for largest in ([0.75, 0.125, 0.0625, 0.0625], [0.75, 0.25 + 1e-8, 1e-12, 0.0], [0.7, 0.2, 0.1, 0.0]):
        prob, outcome = np.array([largest]), np.array([0])
        assert caltest.TopK(2)(prob, outcome)[0].tolist() == [[*largest[:2], largest[2] + largest[3]]]
        assert caltest.TopK(3)(prob, outcome)[0].tolist() == [largest]
        assert caltest.WithinTop(2)(prob, outcome)[0].tolist() == [[largest[2] + largest[3], largest[0] + largest[1]]]


def test_lenses_are_frozen_and_comparable():
    for lens in [lens for make in LENSES.values() for lens in make(4)]:
        given = {field.name: getattr(lens, field.name) for field in fields(lens)}
        assert type(lens)(**given) == lens
        assert hash(type(lens)(**given)) == hash(lens)
        assert eval(repr(lens), {type(lens).__name__: type(lens)}) == lens
        with pytest.raises((FrozenInstanceError, TypeError)):
            setattr(lens, next(iter(given), "new"), 1)


def test_names_in_words():
    names = {
        caltest.Canonical(): "whole prediction",
        caltest.Confidence(): "confidence",
        caltest.TopK(2): "top 2 and the rest",
        caltest.TopRank(2): "is the class of rank 2 right",
        caltest.WithinTop(2): "is the class within the top 2",
        caltest.ClassWise(1): "class 1 against the rest",
        ClassGroups([[0, 2], [1]]): "groups 0, 2 | 1",
    }
    assert {lens: lens_name(lens) for lens in names} == names
    assert lens_name(caltest.ClassWise(1), np.array(["cat", "dog", "eel"])) == "class dog against the rest"
    assert lens_name(ClassGroups([[0, 2], [1]]), ["cat", "dog", "eel"]) == "groups cat, eel | dog"
    assert lens_name(test_names_in_words) == "test_names_in_words"


def test_the_smallest_type_holds_the_outcomes():
    assert [outcome_dtype(n) for n in (2, 256, 257, 65_537)] == [np.uint8, np.uint8, np.uint16, np.uint32]


REFUSED = {
    "TopK(0)": (ValueError, lambda: caltest.TopK(0), "`k` must be an integer >= 1, got 0."),
    "TopK(1.5)": (TypeError, lambda: caltest.TopK(1.5), "`k` must be an integer >= 1, got 1.5."),
    "TopK(True)": (TypeError, lambda: caltest.TopK(True), "`k` must be an integer >= 1, got True."),
    "TopRank(0)": (ValueError, lambda: caltest.TopRank(0), "`rank` must be an integer >= 1, got 0."),
    "TopRank text": (TypeError, lambda: caltest.TopRank("1"), "`rank` must be an integer >= 1, got '1'."),
    "WithinTop(-1)": (ValueError, lambda: caltest.WithinTop(-1), "`rank` must be an integer >= 1, got -1."),
    "WithinTop(None)": (TypeError, lambda: caltest.WithinTop(None), "`rank` must be an integer >= 1, got None."),
    "ClassWise(-1)": (ValueError, lambda: caltest.ClassWise(-1), "`k` must be an integer >= 0, got -1."),
    "ClassWise(0.0)": (TypeError, lambda: caltest.ClassWise(0.0), "`k` must be an integer >= 0, got 0.0."),
    "one group": (
        ValueError,
        lambda: ClassGroups([[0, 1, 2]]),
        "`groups` must be at least two groups, none of",
    ),
    "empty group": (
        ValueError,
        lambda: ClassGroups([[0, 1, 2], []]),
        "`groups` must be at least two groups, none",
    ),
    "class in two groups": (
        ValueError,
        lambda: ClassGroups([[0, 1], [1, 2]]),
        "hold every class once, class 1 appears more than once in ((0, 1), (1, 2)).",
    ),
    "class twice": (ValueError, lambda: ClassGroups([[0, 0], [1, 2]]), "class 0 appears more than once"),
    "negative class": (
        ValueError,
        lambda: ClassGroups([[0, -1], [1]]),
        "`groups` must be an integer >= 0, got -1.",
    ),
    "half a class": (
        TypeError,
        lambda: ClassGroups([[0, 0.5], [1]]),
        "`groups` must be an integer >= 0, got 0.5.",
    ),
    "groups of numbers": (
        TypeError,
        lambda: ClassGroups([0, 1]),
        "`groups` must be groups of class indices such as [[0, 1], [2, 3]], got [0, 1].",
    ),
    "groups a number": (TypeError, lambda: ClassGroups(2), "`groups` must be groups of class indices such as"),
}
NOT_FITTING = {
    caltest.TopK(4): "`k` must be less than the number of classes, 4, got 4.",
    caltest.TopRank(5): "`rank` must be at most the number of classes, 4, got 5.",
    caltest.WithinTop(4): "`rank` must be less than the number of classes, 4, got 4.",
    caltest.ClassWise(4): "`k` must be a class index 0 to 3, got 4.",
    ClassGroups([[0, 1], [3]]): "`groups` must hold every class, class 2 is in no group of",
    ClassGroups([[0, 1], [2, 3, 4]]): "`groups` must hold class indices 0 to 3, got 4.",
}


def test_bad_parameters_are_refused_when_a_lens_is_made():
    assert failures(REFUSED, lambda case: check_refused(case[1], case[0], case[2])) == {}


def test_lenses_that_do_not_fit_the_classes_are_refused():
    for lens, message in NOT_FITTING.items():
        check_refused(lens, ValueError, message, PROB, OUTCOME)
        check_refused(lens.outcomes, ValueError, message, PROB)
        check_refused(caltest.calibration_error, ValueError, message, OUTCOME, PROB, lens=lens)


def test_a_users_lens_serves_as_one_of_the_package():
    def second_half(prob, outcome):
        event = prob[:, 2:].sum(axis=1)
        return np.column_stack([1 - event, event]), outcome >= 2

    groups = ClassGroups([[0, 1], [2, 3]])
    one, other = (
        caltest.calibration_test(OUTCOME, PROB, lens=lens, n_resamples=99, rng=1) for lens in (second_half, groups)
    )
    assert one.pvalue == other.pvalue
    np.testing.assert_array_equal(one.null_distribution, other.null_distribution)
    assert "second_half" in str(one)


def test_short_names():
    names = ["ant", "bee", "cat"]
    assert lens_short_name(caltest.ClassWise(1)) == "class 1"
    assert lens_short_name(caltest.ClassWise(1), names) == "class bee"
    assert lens_name(caltest.ClassWise(1), names) == "class bee against the rest"
    for kind, make in LENSES.items():
        for lens in make(4):
            assert kind is caltest.ClassWise or lens_short_name(lens) == lens_name(lens)


def test_lenses_of_an_event_of_the_user():
    kinds = {kind for kind, make in LENSES.items() if all(map(names_event, make(4)))}
    assert kinds == {caltest.Canonical, caltest.ClassWise, caltest.ClassGroups}
    assert not names_event(lambda prob, outcome: (prob, outcome))
