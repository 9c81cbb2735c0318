"""Labels that are alike within groups: how alike they are, and that labels are simulated so."""

import math

import numpy as np
import pytest

from caltest.hypothesis_tests._alike_labels import AlikeLabels
from caltest.predictions._sample import make_sample


def test_the_intraclass_correlation_is_estimated_from_labels():
    """Half of the groups have the same label throughout, as often as predicted; all others alternate."""
    prob, groups = np.full(400, 0.5), np.arange(400) // 4
    same = np.where(groups < 50, groups % 2, np.arange(400) % 2)
    found = AlikeLabels.as_observed(make_sample(same, prob, groups=groups))
    # Sums of groups are +-2 or 0, of variance 1 if they were independent: R = (50 * 4 / 4) / 25.
    assert found.icc == pytest.approx((2 - 1) / 3)
    assert found.interval.low < found.icc < found.interval.high
    none = AlikeLabels.as_observed(make_sample(np.arange(400) % 2, prob, groups=groups))
    assert none.icc == 0


@pytest.mark.slow
def test_labels_are_as_alike_as_they_are_asked_to_be():
    rng = np.random.default_rng(np.random.SeedSequence().entropy)
    for prob in (rng.uniform(0.1, 0.6, 600), rng.dirichlet(np.ones(3), 600)):
        sample = make_sample(np.zeros(600, dtype=int), prob, groups=np.arange(600) // 6, sample_weight=rng.random(600))
        alike = AlikeLabels(sample, 0.15)
        labels = np.concatenate([*alike.draw(sample.expected, 400, 1)])
        found = [AlikeLabels.as_observed(sample.relabelled(some)).icc for some in labels]
        assert np.mean(found) == pytest.approx(0.15, abs=4 * np.std(found) / math.sqrt(400) + 0.005)
        counts = [(labels == k).mean(axis=0) for k in range(sample.n_outcomes)]
        assert np.abs(np.transpose(counts) - sample.expected).max() < 5 * math.sqrt(0.25 / 400)
