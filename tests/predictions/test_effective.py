"""Effective numbers of observations and groups."""

import numpy as np
import pytest

from caltest.predictions._effective import effective_groups, effective_number, effective_numbers, effective_samples
from caltest.predictions._sample import make_sample


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
def test_effective_numbers_do_not_depend_on_the_scale(scale):
    weight = scale * np.array([3.0, 3.0, 3.0, 1.0, 0.0])
    assert effective_number(weight) == pytest.approx(100 / 28, rel=1e-14)
    found = effective_numbers(weight, np.array([0, 0, 2, 2, 2]), 3)
    np.testing.assert_allclose(found, [2.0, 0.0, 16 / 10], rtol=1e-14)


def test_five_groups_of_60_and_100_of_one():
    """They are worth (400)^2 / (5 x 3600 + 100) groups of equal size."""
    group = np.append(np.repeat(np.arange(5), 60), 5 + np.arange(100))
    sample = make_sample(np.zeros(400, dtype=int), np.full(400, 0.5), groups=group)
    assert effective_groups(sample) == pytest.approx(400**2 / 18100, rel=1e-14)
    assert effective_samples(sample) == 400


def test_without_groups_there_are_as_many_as_observations():
    sample = make_sample([0, 1, 0], [0.1, 0.2, 0.3], sample_weight=[2.0, 1.0, 1.0])
    assert effective_groups(sample) == effective_samples(sample) == pytest.approx(16 / 6, rel=1e-14)
