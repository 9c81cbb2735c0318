"""Lenses against their loops, row by row."""

from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest

import caltest
from tests.reference import naive
from tests.reference.examples import LENSES

PROB = np.array([[0.5, 0.25, 0.125, 0.125], [0.125, 0.125, 0.5, 0.25]])
OUTCOME = np.array([3, 0])
EXACT = {"rtol": 0, "atol": 1e-12}


def test_every_lens_has_an_example_and_a_twin(lens_classes):
    assert lens_classes
    for kind, has_example in lens_classes.items():
        assert has_example, f"{kind.__name__} needs an example in conftest.LENSES"
        assert kind in naive.LENSES, f"{kind.__name__} needs a twin in naive.LENSES"
        assert kind.__name__ in caltest.__all__


def test_equals_the_loops(any_view):
    prob, outcome = any_view.induced
    expected_prob, expected_outcome = naive.look(any_view.lens, any_view.y_prob.astype(float), any_view.y_true)
    np.testing.assert_allclose(prob, expected_prob, **EXACT)
    np.testing.assert_array_equal(outcome, expected_outcome)


def test_returns_a_problem(any_view):
    prob, outcome = any_view.induced
    assert prob.dtype == np.float64
    assert prob.ndim == 2
    assert prob.shape[1] >= 2
    assert outcome.shape == (len(prob),)
    assert outcome.dtype.kind == "i"
    assert outcome.min() >= 0
    assert outcome.max() < prob.shape[1]
    np.testing.assert_allclose(prob.sum(axis=1), any_view.y_prob.sum(axis=1), rtol=0, atol=1e-6)


def test_chooses_by_predictions_and_leaves_its_input_alone(any_view):
    prob, outcome = any_view.y_prob.astype(float), any_view.y_true.copy()
    prob.flags.writeable = outcome.flags.writeable = False
    one, _ = any_view.lens(prob, outcome)
    other, _ = any_view.lens(prob, (outcome + 1) % prob.shape[1])
    np.testing.assert_array_equal(one, other)


def test_induced_prediction_is_the_law_of_the_induced_outcome(any_view):
    """Section 3.1: the induced probability of j is the sum of the probabilities of the classes seen as j."""
    prob = any_view.y_prob.astype(float)
    induced = np.zeros_like(any_view.induced[0])
    for k in range(prob.shape[1]):
        _, seen = any_view.lens(prob, np.full(len(prob), k))
        induced[np.arange(len(prob)), seen] += prob[:, k]
    # Rows of float32 miss 1 by some 1e-7, and "the rest" is 1 minus the others.
    np.testing.assert_allclose(any_view.induced[0], induced, rtol=0, atol=1e-6)


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
        (caltest.Groups([[3, 0], [1, 2]]), [[0.625, 0.375], [0.375, 0.625]], [0, 0]),
    ],
)
def test_by_hand(lens, prob, outcome):
    seen_prob, seen_outcome = lens(PROB, OUTCOME)
    np.testing.assert_array_equal(seen_prob, prob)
    np.testing.assert_array_equal(seen_outcome, outcome)


@pytest.mark.parametrize(
    "lens", [caltest.Confidence(), caltest.TopK(1), caltest.TopRank(1), caltest.WithinTop(1)], ids=repr
)
@pytest.mark.parametrize(("label", "right"), [(0, 1), (1, 0), (2, 0)])
def test_ties_go_to_the_smaller_class(lens, label, right):
    _, outcome = lens(np.full((1, 3), 1 / 3), np.array([label]))
    assert outcome.tolist() == [right]


@pytest.mark.parametrize(("label", "place"), [(0, 2), (1, 0), (2, 2), (3, 1)])
def test_ties_in_the_order_of_top_k(label, place):
    _, outcome = caltest.TopK(2)(np.array([[0.1, 0.4, 0.1, 0.4]]), np.array([label]))
    assert outcome.tolist() == [place]


def test_rest_is_one_minus_the_others_and_may_lie_below_zero():
    prob = np.array([[0.75, 0.25 + 1e-8, 0.0]])
    induced, _ = caltest.TopK(2)(prob, np.array([0]))
    assert induced[0, 2] == 1 - (0.75 + (0.25 + 1e-8)) < 0
    induced, _ = caltest.WithinTop(2)(prob, np.array([0]))
    assert induced[0, 0] < 0


@pytest.mark.parametrize("lens", [lens for make in LENSES.values() for lens in make(4)], ids=repr)
def test_lenses_are_frozen_and_comparable(lens):
    given = {field.name: getattr(lens, field.name) for field in fields(lens)}
    assert type(lens)(**given) == lens
    assert hash(type(lens)(**given)) == hash(lens)
    name = next(iter(given), "new")
    with pytest.raises((FrozenInstanceError, TypeError)):
        setattr(lens, name, 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: caltest.TopK(0), r"`k` must be an integer >= 1, got 0"),
        (lambda: caltest.TopK(1.5), r"`k` must be an integer >= 1, got 1.5"),
        (lambda: caltest.TopK(True), r"`k` must be an integer >= 1, got True"),
        (lambda: caltest.TopRank(0), r"`rank` must be an integer >= 1, got 0"),
        (lambda: caltest.TopRank("1"), r"`rank` must be an integer >= 1, got '1'"),
        (lambda: caltest.WithinTop(-1), r"`rank` must be an integer >= 1, got -1"),
        (lambda: caltest.WithinTop(None), r"`rank` must be an integer >= 1, got None"),
        (lambda: caltest.ClassWise(-1), r"`k` must be an integer >= 0, got -1"),
        (lambda: caltest.ClassWise(0.0), r"`k` must be an integer >= 0, got 0.0"),
        (lambda: caltest.Groups([[0, 1, 2]]), r"`groups` must be at least two groups, none of them empty"),
        (lambda: caltest.Groups([[0, 1, 2], []]), r"`groups` must be at least two groups, none of them empty"),
        (lambda: caltest.Groups([[0, 1], [1, 2]]), r"hold every class once, class 1 stands more than once"),
        (lambda: caltest.Groups([[0, 0], [1, 2]]), r"hold every class once, class 0 stands more than once"),
        (lambda: caltest.Groups([[0, -1], [1]]), r"`groups` must be an integer >= 0, got -1"),
        (lambda: caltest.Groups([[0, 0.5], [1]]), r"`groups` must be an integer >= 0, got 0.5"),
    ],
)
def test_bad_parameters_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("lens", "message"),
    [
        (caltest.TopK(4), r"`k` must be less than the number of classes, 4, got 4"),
        (caltest.TopRank(5), r"`rank` must be at most the number of classes, 4, got 5"),
        (caltest.WithinTop(4), r"`rank` must be less than the number of classes, 4, got 4"),
        (caltest.ClassWise(4), r"`k` must be a class index 0 to 3, got 4"),
        (caltest.Groups([[0, 1], [3]]), r"`groups` must hold every class, class 2 is in no group"),
        (caltest.Groups([[0, 1], [2, 3, 4]]), r"`groups` must hold class indices 0 to 3, got 4"),
    ],
)
def test_lenses_that_do_not_fit_the_classes_are_refused(lens, message):
    for call in (lambda: lens(PROB, OUTCOME), lambda: caltest.calibration_error(OUTCOME, PROB, lens=lens)):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize(
    ("lens", "message"),
    [
        (caltest.Confidence, r"`lens` must be a lens such as Confidence\(\) or a function of \(prob, outcome\)"),
        ("confidence", r"`lens` must be a lens .* got 'confidence'"),
        (lambda p, y: (p[:, 0], y), r"`lens` must return probabilities \(2, n_outcomes >= 2\).*got \(2,\) and \(2,\)"),
        (lambda p, y: (p[:, :1], y), r"`lens` must return probabilities .* got \(2, 1\)"),
        (lambda p, y: (p[:1], y), r"`lens` must return probabilities .* got \(1, 4\)"),
        (lambda p, y: (p, y[:1]), r"`lens` must return probabilities .* and \(1,\)"),
        (lambda p, y: (p[:, :2], y), r"`lens` must return outcomes 0 to 1, got int64"),
        (lambda p, y: (p, y - 1), r"`lens` must return outcomes 0 to 3"),
        (lambda p, y: (p, y / 1), r"`lens` must return outcomes 0 to 3, got float64"),
    ],
)
def test_what_a_users_lens_must_return(lens, message):
    with pytest.raises(ValueError, match=message):
        caltest.calibration_error(OUTCOME, PROB, lens=lens)


def test_a_users_lens_serves_as_one_of_the_package():
    def second_half(prob, outcome):
        event = prob[:, 2:].sum(axis=1)
        return np.column_stack([1 - event, event]), outcome >= 2

    groups = caltest.Groups([[0, 1], [2, 3]])
    one, other = (
        caltest.calibration_test(OUTCOME, PROB, lens=lens, n_resamples=99, rng=1) for lens in (second_half, groups)
    )
    assert one.pvalue == other.pvalue
    np.testing.assert_array_equal(one.null_distribution, other.null_distribution)
    assert "second_half" in str(one)
