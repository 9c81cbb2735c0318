"""Random signs of groups: every squared error from one pass over the groups, and large data by signs alone."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import caltest as ct
from caltest.estimation.errors._l2_interval import l2_distribution
from caltest.predictions._sample import make_sample
from caltest.resampling.draws._group_shocks import Shocks
from caltest.statistics._segments import ResidualSums, Segments
from caltest.statistics._squared_l2_inversion import GroupSigns, SquaredL2Inversion


class _AllSigns(Shocks):
    """All patterns of the signs of the groups instead of random ones."""

    def of_groups(self):
        yield slice(0, self.n_draws), np.array([*product((-1.0, 1.0), repeat=self.n_groups)], dtype=np.float32).T


@pytest.mark.slow
@pytest.mark.parametrize("n_outcomes", [2, 3])
def test_variances_are_those_over_all_signs(n_outcomes):
    """Groups that lie in one cell each: the stated variance of A is that over all 256 patterns of signs."""
    rng = np.random.default_rng(1)
    group = np.repeat(np.arange(8), 4)
    prob = rng.dirichlet(np.ones(n_outcomes), 32)
    outcome = rng.integers(n_outcomes, size=32)
    segments = Segments.of(prob, outcome, rng.uniform(0.5, 2, 32), group, group % 2)
    seen = ResidualSums.of(segments)
    patterns = [rng.normal(size=(2, n_outcomes)) for _ in range(2)]
    signs = GroupSigns.of(segments, seen.sums, seen.centred, patterns, _AllSigns(0, 256, 8, 32))
    assert signs.value.mean() == pytest.approx(0, abs=1e-12)
    assert signs.value.var() == pytest.approx(signs.quadratic, rel=1e-9)
    for j, pattern in enumerate(patterns):
        along = (seen.sums * pattern[segments.place, : segments.n_columns]).sum(axis=1)
        others = segments.factor[segments.place] * (segments.count[segments.place] - segments.mass)  # about 1
        assert signs.along[j].mean() == pytest.approx(0, abs=1e-12)
        assert signs.along[j].var() == pytest.approx(4 * np.square(others * along).sum() / segments.total**2, rel=1e-9)
        assert signs.linear[j] == pytest.approx(4 * np.square(along).sum() / segments.total**2, rel=1e-9)
        assert signs.length[j] == pytest.approx(segments.squared_error(pattern), rel=1e-12)


def large(seed, rate=None, weighted=False, n=20_000):
    rng = np.random.default_rng(seed)
    y_prob = rng.random(n) if rate is None else rng.beta(0.5, 0.5 / rate, n)
    y_true = (rng.random(n) < 0.97 * y_prob).astype(int)
    design = {"sample_weight": rng.uniform(0.5, 2, n)} if weighted else {"groups": np.arange(n) // 4}
    return y_true, y_prob, design


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [True, False])
def test_large_data_by_signs_alone_agree_with_simulated_labels(weighted):
    y_true, y_prob, design = large(2, weighted=weighted)
    found, _ = l2_distribution(make_sample(y_true, y_prob, **design), None)
    assert isinstance(found, SquaredL2Inversion)
    assert found.by_signs
    assert "random signs of" in found.origin
    labels = replace(found, by_signs=False)
    for root in (0.0, 0.01, 0.02, 0.025):
        # Two Monte Carlo p-values of 199 draws, of which that of labels is the larger one of several.
        for one, two in ((found.below(root**2), labels.below(root**2)), (found.above(root**2), labels.above(root**2))):
            assert abs(one - two) < 4 * np.sqrt(2 * 0.25 / 199)


def test_few_events_are_not_left_to_signs_alone():
    for rate, by_signs in ((0.05, True), (0.0005, False)):
        y_true, y_prob, design = large(3, rate)
        found, _ = l2_distribution(make_sample(y_true, y_prob, **design), None)
        assert found.by_signs == by_signs
    y_true, y_prob, design = large(3)
    found, _ = l2_distribution(make_sample(y_true, y_prob, groups=np.arange(len(y_true)) // 100), None)
    assert not found.by_signs  # 200 groups


def test_the_complement_of_large_data_has_the_same_interval():
    y_true, y_prob, design = large(4)
    one, two = (ct.l2_interval(y, p, **design) for y, p in ((y_true, y_prob), (1 - y_true, 1 - y_prob)))
    np.testing.assert_allclose(one.confidence_interval, two.confidence_interval, rtol=1e-6)


def test_equal_predictions_of_equally_frequent_classes_have_an_upper_end():
    """No pattern of errors was left to test, so that the upper end was 3e-13 and equivalence proved to 2e-308."""
    n = 30_000
    y_true, y_prob, groups = np.arange(n) % 3, np.full((n, 3), 1 / 3), np.arange(n) // 10
    found = ct.l2_interval(y_true, y_prob, groups=groups, rng=0)
    assert found.confidence_interval.high > 1e-6
    margin = found.confidence_interval.high / 2
    test = ct.equivalence_test(y_true, y_prob, margin, groups=groups, rng=0)
    assert test.pvalue > 0.05
