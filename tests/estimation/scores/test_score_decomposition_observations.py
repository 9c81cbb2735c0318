"""Scores of single observations: ties, probability 0, and means with weights of 0."""

import numpy as np
import pytest

from caltest.estimation.scores._score_decomposition import accuracy_of, brier_of, log_of, mean_of


def test_probabilities_that_differ_by_rounding_are_tied():
    third = 1 / 3
    prob = np.array([[0.5, 0.5, 0.0], [0.2, 0.2, 0.6], [third, third * (1 + 1e-13), third]])
    assert accuracy_of(prob, np.array([1, 0, 2])) == pytest.approx([1 / 2, 0, 1 / 3])
    assert np.isinf(log_of(prob, np.array([2, 2, 2]))[0])


def test_the_brier_score_of_two_outcomes_is_half_of_the_sum():
    prob, outcome = np.array([[0.25, 0.75], [1.0, 0.0]]), np.array([1, 1])
    assert brier_of(prob, outcome).tolist() == [0.0625, 1.0]
    assert brier_of(np.column_stack([prob, [0, 0]]), outcome).tolist() == [0.125, 2.0]


def test_an_observation_of_weight_0_does_not_count_even_if_it_is_infinite():
    assert mean_of(np.array([1.0, np.inf, 4.0]), np.array([2.0, 0.0, 1.0])) == 2
    assert mean_of(np.array([1.0, 2.0]), None) == 1.5
