"""Ends of an interval for one more draw."""

import numpy as np
import pytest

from caltest.estimation.curves._bars import drawn_ends


@pytest.mark.parametrize(("n_draws", "level"), [(9, 0.8), (19, 0.9), (20, 0.9), (99, 0.9), (999, 0.95), (7, 0.5)])
def test_another_draw_is_outside_at_most_as_often_as_stated(n_draws, level):
    """By exchangeability: each of B + 1 different values, or of tied ones, is the other draw once."""
    for values in (np.arange(n_draws + 1.0), np.arange(n_draws + 1) // 3.0):
        outside = np.zeros(2)
        for one in range(n_draws + 1):
            low, high = drawn_ends(np.delete(values, one)[:, None], level)
            outside += values[one] < low[0], values[one] > high[0]
        assert outside.max() <= (n_draws + 1) * (1 - level) / 2 + 1e-9
    low, high = drawn_ends(np.arange(n_draws + 0.0)[:, None], level)
    k = round((n_draws + 1) * (1 - level) / 2 - 0.5 + 1e-9)  # the largest number that may be outside
    assert (low[0], high[0]) == (k - 1, n_draws - k)


def test_too_few_draws_have_no_ends():
    low, high = drawn_ends(np.zeros((18, 3)), 0.9)
    assert (low == -np.inf).all()
    assert (high == np.inf).all()
