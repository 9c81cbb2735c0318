"""Pairs of observations within a lead: their products equal loops."""

import numpy as np
import pytest

from caltest.predictions.inputs._times import Timing
from caltest.statistics._windows import Windows


def test_products_of_near_observations_equal_loops():
    rng = np.random.default_rng(1)
    cell, step, values = rng.integers(3, size=50), rng.integers(40, size=50), rng.standard_normal(50)
    found = Windows.of(cell, Timing(step, 4, "4")).products(values)
    for b in range(3):
        pairs = [
            values[i] * values[j] for i in range(50) for j in range(50)
            if cell[i] == cell[j] == b and abs(step[i] - step[j]) < 4
        ]  # fmt: skip
        assert found[b] == pytest.approx(sum(pairs), abs=1e-12)
