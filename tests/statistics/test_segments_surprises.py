"""How many labels show that labels vary, counted by loops."""

import numpy as np
import pytest

from caltest.statistics._segments import rare_outcomes
from tests.reference import naive


@pytest.mark.parametrize("n_outcomes", [2, 3, 10])
@pytest.mark.parametrize("sharpness", [0.02, 1.0])
def test_rare_outcomes_equal_the_loops(n_outcomes, sharpness):
    rng = np.random.default_rng(n_outcomes)
    for n in (1, 2, 40, 300):
        prob = rng.dirichlet(np.full(n_outcomes, sharpness), n)
        outcome = (rng.random(n)[:, None] > np.cumsum(prob, axis=1)[:, :-1]).sum(axis=1)
        cell = rng.integers(0, 4, n) * 3
        assert rare_outcomes(outcome, prob, cell) == naive.rare_rows(cell, prob, outcome)


def test_labels_that_are_as_predicted_show_no_variance():
    top = np.arange(60) % 4
    assert rare_outcomes(top, np.eye(4)[top], np.zeros(60, dtype=np.int64)) == 0
    assert rare_outcomes((top + 1) % 4, np.eye(4)[top], np.zeros(60, dtype=np.int64)) == 0  # all wrong, and all alike
    assert rare_outcomes(np.array([1]), np.eye(4)[:1], np.zeros(1, dtype=np.int64)) == 1
