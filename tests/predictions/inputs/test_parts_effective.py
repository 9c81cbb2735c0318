"""Effective numbers of observations and groups."""

import numpy as np
import pytest

from caltest.predictions.inputs._parts import effective_number, effective_numbers, effective_of_sums


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
def test_effective_numbers_do_not_depend_on_the_scale(scale):
    weight = scale * np.array([3.0, 3.0, 3.0, 1.0, 0.0])
    assert effective_number(weight) == pytest.approx(100 / 28, rel=1e-14)
    found = effective_numbers(weight, np.array([0, 0, 2, 2, 2]), 3)
    np.testing.assert_allclose(found, [2.0, 0.0, 16 / 10], rtol=1e-14)


def test_five_groups_of_60_and_100_of_one():
    """They are worth (400)^2 / (5 x 3600 + 100) groups of equal size."""
    size = np.append(np.full(5, 60.0), np.ones(100))
    assert effective_number(size) == pytest.approx(400**2 / 18100, rel=1e-14)


def test_sums_of_weights_are_enough():
    found = effective_of_sums(np.array([3.0, 0.0, 2.0]), np.array([5.0, 0.0, 4.0]))
    np.testing.assert_array_equal(found, [9 / 5, 0.0, 1.0])
    assert effective_of_sums(1.0, 0.25) == 4.0
