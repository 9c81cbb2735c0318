"""The target of the l2 interval, by hand, through lenses, and as the mean of the estimate."""

import numpy as np
import pytest

import caltest as ct
from caltest.estimation import squared_l2_target


def test_target_by_hand():
    prob, truth = [0.1, 0.2, 0.8, 0.9, 0.95], [0.2, 0.4, 0.7, 0.7, 1.0]
    target = squared_l2_target(prob, truth, partition=ct.EqualWidth(2))
    assert target == pytest.approx(2 / 5 * 0.15**2 + 3 / 5 * (0.25 / 3) ** 2)
    assert squared_l2_target(prob, truth, partition=lambda p: np.arange(5)) == 0  # cells of one observation


def test_target_through_a_lens():
    """The true probability of an outcome is that of the classes that make it."""
    rng = np.random.default_rng(0)
    prob, truth = rng.dirichlet(np.ones(4), 100), rng.dirichlet(np.ones(4), 100)
    top = prob.argmax(axis=1)
    pair = prob.max(axis=1), truth[np.arange(100), top]
    for options in ({}, {"partition": ct.EqualWidth(7)}, {"region": lambda p: p[:, 1] > 0.5}):
        through = squared_l2_target(prob, truth, lens=ct.Confidence(), **options)
        assert through == pytest.approx(squared_l2_target(*pair, **options), rel=1e-12), options
    groups = ct.ClassGroups([[0, 2], [1], [3]])
    merged = [np.column_stack([p[:, 0] + p[:, 2], p[:, 1], p[:, 3]]) for p in (prob, truth)]
    assert squared_l2_target(prob, truth, lens=groups) == pytest.approx(squared_l2_target(*merged), rel=1e-12)


@pytest.mark.slow
def test_the_estimate_is_unbiased_for_the_target_where_deviations_are_constant():
    rng = np.random.default_rng(1)
    prob = rng.uniform(0.1, 0.8, 50)
    cut = ct.EqualWidth(4)
    values = [ct.l2_interval(rng.random(50) < prob + 0.1, prob, partition=cut).estimate for _ in range(400)]
    target = squared_l2_target(prob, prob + 0.1, partition=cut)
    assert abs(np.mean(values) - target) < 4 * np.std(values) / np.sqrt(400)


def test_bad_truths_are_refused():
    with pytest.raises(ValueError, match=r"`class_prob` must have the shape of `y_prob`, \(2, 2\), got \(3, 2\)"):
        squared_l2_target([0.1, 0.2], [0.1, 0.2, 0.3])
    with pytest.raises(ValueError, match="`class_prob` must lie in"):
        squared_l2_target([0.1, 0.2], [0.1, 1.2])
