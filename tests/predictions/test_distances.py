"""Distances against their loops."""

import numpy as np
import pytest

import caltest
from tests.reference import naive
from tests.reference.examples import distances

EXACT = {"rtol": 1e-12, "atol": 1e-12}


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
        assert distance.__name__ in caltest.__all__


def test_equals_the_loops(any_distance, pairs):
    expected = [naive.distance_between(any_distance, p.tolist(), q.tolist()) for p, q in zip(*pairs, strict=True)]
    np.testing.assert_allclose(any_distance(*pairs), expected, **EXACT)


def test_reduces_the_last_axis_and_broadcasts_the_others(any_distance, pairs):
    predicted, observed = pairs[0], np.stack([pairs[1], pairs[0][::-1]])
    together = any_distance(predicted, observed)
    assert together.shape == (2, 30)
    for r in range(2):
        np.testing.assert_allclose(together[r], any_distance(predicted, observed[r]), **EXACT)


def test_is_zero_only_between_equals(any_distance, pairs):
    values = any_distance(*pairs)
    assert values[0] == pytest.approx(0, abs=1e-7)
    assert np.all(values[1:] > 0)


@pytest.mark.parametrize(
    ("distance", "largest"),
    [
        (caltest.total_variation, 1.0),
        (caltest.euclidean, np.sqrt(2)),
        (caltest.squared_euclidean, 2.0),
        (caltest.chebyshev, 1.0),
    ],
)
def test_two_certainties_that_differ_are_farthest_apart(distance, largest, pairs):
    values = distance(*pairs)
    assert values[1] == pytest.approx(largest, rel=1e-12)
    assert values.max() == values[1]


def test_total_variation_of_two_outcomes_is_the_difference_of_the_event():
    event, observed = np.array([0.25, 0.5, 1.0]), np.array([0.5, 0.375, 0.0])
    value = caltest.total_variation(np.stack([1 - event, event], -1), np.stack([1 - observed, observed], -1))
    np.testing.assert_array_equal(value, abs(event - observed))


@pytest.mark.parametrize("kind", [caltest.ECE, caltest.MCE])
@pytest.mark.parametrize(
    "distance",
    [lambda p, q: abs(p - q), lambda p, q: abs(p - q).sum(), lambda p, q: abs(p - q).sum(axis=0)],
    ids=["reduces nothing", "reduces all", "reduces the first"],
)
def test_a_users_distance_must_reduce_the_last_axis(kind, distance):
    statistic = kind(caltest.EqualWidth(3), distance)
    with pytest.raises(ValueError, match=r"`distance` must reduce the last axis of arrays \(..., n_outcomes\)"):
        caltest.calibration_error([0, 1, 0], [0.25, 0.5, 0.875], statistic=statistic)
