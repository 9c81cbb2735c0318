"""True probabilities of predictions with typical errors: by hand, mirrored, and their information."""

import math

import numpy as np
import pytest

from caltest.hypothesis_tests._typical_errors import OF_CLASSES, OF_EVENTS, mean_change, shifted_class, typical_errors

EVENT = np.random.default_rng(0).beta(2, 5, 50)
TWO = np.column_stack([1 - EVENT, EVENT])
THREE = np.random.default_rng(1).dirichlet([1, 2, 3], 50)
ERRORS = {error.kind: error for error in (*OF_EVENTS, *OF_CLASSES)}


def logit(p):
    return np.log(p / (1 - p))


def test_a_shift_multiplies_odds():
    half = np.array([[0.5, 0.5], [0.8, 0.2]])
    np.testing.assert_allclose(ERRORS["too low"].true_prob(half, math.log(3)), [[0.25, 0.75], [4 / 7, 3 / 7]])
    moved = OF_CLASSES[1].true_prob(THREE, math.log(2))  # too high
    odds = THREE[:, 2] / (1 - THREE[:, 2]) / 2
    assert shifted_class(THREE) == 2
    np.testing.assert_allclose(moved[:, 2], odds / (1 + odds))
    np.testing.assert_allclose(moved.sum(axis=1), 1)


def test_a_slope_keeps_the_mean():
    for kind, slope in (("too extreme", 0.5), ("not extreme enough", 2.0)):
        error = ERRORS[kind]
        assert error.size(math.log(2)) == pytest.approx(slope)
        assert error.amount(slope) == pytest.approx(math.log(2))
        moved = error.true_prob(TWO, math.log(2))[:, 1]
        assert moved.mean() == pytest.approx(EVENT.mean(), rel=1e-10)
        constant = logit(moved) - slope * logit(EVENT)
        np.testing.assert_allclose(constant, constant[0], atol=1e-9)


def test_a_temperature_is_a_power():
    moved = ERRORS["over-confident"].true_prob(THREE, math.log(2))
    np.testing.assert_allclose(moved, np.sqrt(THREE) / np.sqrt(THREE).sum(axis=1, keepdims=True))
    assert ERRORS["under-confident"].size(math.log(2)) == pytest.approx(0.5)


def test_certain_predictions_are_right():
    two = np.array([[1.0, 0.0], [0.0, 1.0], [0.7, 0.3], [0.2, 0.8]])
    three = np.array([[1.0, 0.0, 0.0], [0.0, 0.2, 0.8], [0.0, 0.3, 0.7]])
    for prob in (two, three):
        for error in typical_errors(prob.shape[1]):
            moved = error.true_prob(prob, error.largest)
            assert np.array_equal(moved[prob == 0], prob[prob == 0])
            assert np.array_equal(moved[prob == 1], prob[prob == 1])
            assert not np.allclose(moved, prob)
    assert [error.information(np.eye(2)) for error in OF_EVENTS] == [0.0] * 4
    assert [error.information(np.eye(3)) for error in OF_CLASSES] == [0.0] * 4


def test_the_complement_is_mirrored():
    for one, other in ((0, 1), (2, 2), (3, 3)):
        there = OF_EVENTS[one].true_prob(TWO, 0.7)
        back = OF_EVENTS[other].true_prob(TWO[:, ::-1], 0.7)[:, ::-1]
        np.testing.assert_allclose(there, back, rtol=1e-9)


def test_the_information_is_the_curvature_of_the_divergence():
    for prob in (TWO, THREE):
        for error in typical_errors(prob.shape[1]):
            t = 1e-3
            divergence = (prob * np.log(prob / error.true_prob(prob, t))).sum()
            assert error.information(prob) == pytest.approx(2 * divergence / t**2, rel=5e-3), error


def test_equal_predictions_have_no_slope():
    equal = np.tile([0.7, 0.3], (20, 1))
    assert [error.information(equal) > 0 for error in OF_EVENTS] == [True, True, False, False]


def test_the_mean_change_is_a_total_variation_distance():
    assert mean_change(np.array([[0.5, 0.5]]), np.array([[0.3, 0.7]])) == pytest.approx(0.2)
    assert mean_change(np.array([[0.5, 0.5, 0]]), np.array([[0.3, 0.6, 0.1]])) == pytest.approx(0.2)
