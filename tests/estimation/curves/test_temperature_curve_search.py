"""The search for the smallest value of a function with many local minima."""

import numpy as np
import pytest

from caltest.estimation.curves._temperature_curve import minimise


def test_the_search_is_never_worse_than_the_grid():
    """A dip at one point of the grid, which the search does not meet again."""
    grid = np.array([0.0, 1.0, 2.0])
    assert minimise(lambda t: float(t != 1), grid, np.array([1.0, 0.0, 1.0]), 1e-3) == (1.0, 0.0)
    at, value = minimise(lambda t: (t - 1.3) ** 2, grid, (grid - 1.3) ** 2, 1e-3)
    assert at == pytest.approx(1.3, abs=1e-3)
    assert value < 1e-6
