"""The smallest difference of averages that a test of the average finds, against simulated labels."""

import math

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import norm

from caltest.hypothesis_tests._subgroups import detectable_differences
from caltest.predictions._sample import induce


def sample_of(event, **design):
    return induce(np.column_stack([1 - event, event]), np.zeros(len(event), dtype=np.int64), **design)


def power(event, weight, sign, difference, alpha, rng, n_sets=20_000):
    """Share of data sets whose average is rejected if the logits are moved until the average has moved as much."""
    low, high = 0.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        far = abs(weight @ (expit(logit(event) + sign * middle) - event)) > difference
        low, high = (low, middle) if far else (middle, high)
    moved = expit(logit(event) + sign * low)
    critical = norm.ppf(1 - alpha / 2) * math.sqrt(weight**2 @ (event * (1 - event)))
    labels = rng.random((n_sets, len(event))) < moved
    return float((np.abs((labels - event) @ weight) > critical).mean())


@pytest.mark.parametrize("weighted", [False, True])
def test_the_power_is_80_percent(weighted):
    """4 standard errors of 20,000 data sets, and 3 points for whole numbers of events."""
    rng = np.random.default_rng(0)
    event = rng.beta(2, 5, 200)
    weight = rng.exponential(size=200) if weighted else np.ones(200)
    design = {"weight": weight} if weighted else {}
    for sign, difference in zip((1, -1), detectable_differences(sample_of(event, **design), 0.01), strict=True):
        reached = power(event, weight / weight.sum(), sign, difference, 0.01, rng)
        assert abs(reached - 0.8) < 0.03 + 4 * math.sqrt(0.16 / 20_000), (sign, difference, reached)


def test_a_smaller_level_needs_more():
    sample = sample_of(np.full(300, 0.3))
    assert detectable_differences(sample, 0.001)[0] > detectable_differences(sample, 0.05)[0] > 0


def test_where_there_is_no_number():
    assert np.isnan(detectable_differences(sample_of(np.full(100, 0.01)), 0.05)).all(), "1 event is expected"
    up, down = detectable_differences(sample_of(np.full(120, 0.05)), 0.0001)
    assert up > 0
    assert math.isnan(down), "no event at all is not rare enough"
    grouped = sample_of(np.full(300, 0.3), group=np.arange(300) // 3)
    assert np.isnan(detectable_differences(grouped, 0.05)).all()
    assert np.isnan(detectable_differences(sample_of(np.array([0.0, 1.0] * 50)), 0.05)).all(), "nothing can be shifted"


def test_several_classes_are_judged_by_the_predicted_one():
    prob = np.tile([0.2, 0.7, 0.1], (200, 1))
    three = induce(prob, np.zeros(200, dtype=np.int64))
    confidence = detectable_differences(sample_of(np.full(200, 0.7)), 0.01)
    assert detectable_differences(three, 0.01) == pytest.approx(confidence, rel=1e-9)
