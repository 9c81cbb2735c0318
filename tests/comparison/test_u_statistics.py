"""Differences of U-statistics: their bootstrap, their variances, and critical values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import caltest as ct
from caltest.comparison._u_statistics import Differences, PairTerms, critical_value, resample
from caltest.predictions._sample import induce
from caltest.resampling.draws._rows import BootstrapDraws
from caltest.results._progress import part_of
from tests.comparison.models import as_naive, two_models
from tests.reference import naive
from tests.reference.cases import mostly_slow


def joint(samples, partition, paired=True):
    terms = [PairTerms.of(sample, partition) for sample in samples]
    return terms, Differences.of(terms, paired=paired)


@pytest.mark.parametrize("partition", mostly_slow([ct.VarianceTree(min_leaf=10), ct.VarianceTree(min_split=3)]))
@pytest.mark.parametrize("n_classes", [2, 4])
def test_every_bootstrap_sample_equals_the_sum_over_all_pairs(n_classes, partition):
    """Also where cells have one observation, which is in no pair."""
    y_true, a, b = two_models(50, n_classes, seed=1, calibrated=False)
    samples = [induce(p, y_true) for p in (a, b)]
    terms, differences = joint(samples, partition)
    found = resample(terms, differences, paired=True, n_resamples=20, rng=7)
    change = BootstrapDraws.of(20, np.random.default_rng(7)).row_counts(samples[0].n_samples) - 1
    twins = [as_naive(sample, partition) for sample in samples]
    assert found[0, 1] == pytest.approx([naive.resampled(*twins, counts) for counts in change], abs=1e-12)
    np.testing.assert_allclose(found[0, 1], -found[1, 0], rtol=0, atol=1e-14)


def test_bootstrap_samples_have_as_many_observations_as_the_data():
    counts = BootstrapDraws.of(9, 0).row_counts(70)
    assert counts.shape == (9, 70)
    assert set(counts.sum(axis=1)) == {70.0}


def test_the_shrunk_bootstrap_has_the_variance_of_the_difference():
    """Near calibration, where the plain one has three times the variance: (2 + 4) Q / n^2 instead of 2 Q / n^2."""
    y_true, a, _ = two_models(1500, 3, seed=3)
    samples = [induce(p, y_true) for p in (a, a[:, [0, 2, 1]])]
    terms, differences = joint(samples, ct.VarianceTree(max_cells=64, min_leaf=5))
    n_resamples = 800
    change = BootstrapDraws.of(n_resamples, 0).row_counts(samples[0].n_samples) - 1
    linear, by_pair = terms[0].deviations(change)
    alone = Differences.of(terms, paired=False)
    plain, pairs = alone.linear[0, 0] + 2 * alone.by_pair[0, 0], alone.by_pair[0, 0]
    for values, variance in ((linear, plain), (by_pair, pairs)):
        squares = np.square(values)
        error = 4 * squares.std() / np.sqrt(n_resamples)
        assert abs(squares.mean() - variance) < error + 4 / 1500 * variance  # moments of multinomial counts: O(1 / n)
    assert plain > 1.9 * pairs
    assert differences.shrinkage[0, 1] < 1


@pytest.mark.slow(few_draws=True)
@given(
    values=st.lists(st.floats(0, 10), min_size=1, max_size=60),
    observed=st.floats(0, 12),
    level=st.sampled_from([0.5, 0.8, 0.9, 0.95]),
)
def test_the_critical_value_is_where_the_pvalue_turns(values, observed, level):
    null = np.array(values)
    pvalue, critical = critical_value(null, observed, level)
    assert pvalue == pytest.approx(naive.pvalue(observed, values))
    if abs(observed - critical) > 1e-9:
        assert (observed > critical) == (pvalue <= (1 - level) * (1 + 1e-9))


def test_the_critical_value_of_too_few_draws_is_infinite():
    assert critical_value(np.ones(9), 2.0, 0.95) == (0.1, np.inf)


def test_the_progress_of_parts_is_that_of_the_whole():
    seen = []
    for number in range(3):
        part = part_of(lambda *parts: seen.append(parts), number, 3)
        part(1, 2)
        part(2, 2)
    assert seen == [(1, 6), (2, 6), (3, 6), (4, 6), (5, 6), (6, 6)]
    assert part_of(None, 0, 3) is None
