"""Distances against their loops."""

import numpy as np
import pytest

import caltest
from tests.reference import naive
from tests.reference.examples import distances, hellinger

EXACT = {"rtol": 1e-12, "atol": 1e-12}
ALL_DISTANCES = [*distances(), hellinger]


@pytest.fixture
def pairs():
    rng = np.random.default_rng(0)
    predicted, observed = rng.dirichlet(np.ones(4), size=(2, 30))
    observed[0] = predicted[0]
    predicted[1], observed[1] = [1, 0, 0, 0], [0, 0, 0, 1]
    return predicted, observed


def test_every_distance_has_a_twin():
    found = distances()
    assert found
    for distance in found:
        assert distance in naive.DISTANCES, f"{distance.__name__} needs a twin in naive.DISTANCES"
        assert distance.__name__ in caltest.predictions.__all__


def test_equals_the_loops(pairs):
    for distance in ALL_DISTANCES:
        expected = [naive.distance_between(distance, p.tolist(), q.tolist()) for p, q in zip(*pairs, strict=True)]
        np.testing.assert_allclose(distance(*pairs), expected, **EXACT, err_msg=distance.__name__)


def test_reduces_the_last_axis_and_broadcasts_the_others(pairs):
    predicted, observed = pairs[0], np.stack([pairs[1], pairs[0][::-1]])
    for distance in ALL_DISTANCES:
        together = distance(predicted, observed)
        assert together.shape == (2, 30)
        for r in range(2):
            expected = distance(predicted, observed[r])
            np.testing.assert_allclose(together[r], expected, **EXACT, err_msg=distance.__name__)


def test_is_zero_only_between_equals(pairs):
    for distance in ALL_DISTANCES:
        values = distance(*pairs)
        assert values[0] == pytest.approx(0, abs=1e-7), distance
        assert np.all(values[1:] > 0), distance


def test_two_certainties_that_differ_are_farthest_apart(pairs):
    largest = {"total_variation": 1.0, "euclidean": np.sqrt(2), "squared_euclidean": 2.0, "chebyshev": 1.0}
    assert set(largest) == {distance.__name__ for distance in distances()}
    for name, value in largest.items():
        values = getattr(caltest.predictions, name)(*pairs)
        assert values[1] == pytest.approx(value, rel=1e-12), name
        assert values.max() == values[1], name


def test_total_variation_of_two_outcomes_is_the_difference_of_the_event():
    event, observed = np.array([0.25, 0.5, 1.0]), np.array([0.5, 0.375, 0.0])
    pair = np.stack([1 - event, event], -1), np.stack([1 - observed, observed], -1)
    np.testing.assert_array_equal(caltest.predictions.total_variation(*pair), abs(event - observed))
