"""Sums in parts."""

import numpy as np

from caltest.predictions.inputs._parts import sums_in_parts


def test_sums_in_parts():
    np.testing.assert_array_equal(sums_in_parts(np.array([2, 0, 2]), np.array([1.0, 2.0, 4.0]), 4), [2, 0, 5, 0])


def test_sums_of_nothing_are_zeros_of_double_precision():
    found = sums_in_parts(np.empty(0, np.int64), np.empty(0), 2)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [0, 0])
