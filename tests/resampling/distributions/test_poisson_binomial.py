"""The Poisson-binomial distribution against convolution and the binomial distribution."""

from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from caltest.resampling import PoissonBinomial
from caltest.resampling.distributions._poisson_binomial import Events, window_half_width
from tests.reference import naive


def convolved(p):
    return reduce(np.convolve, [np.array([1 - x, x]) for x in p], np.ones(1))


def spread(count, n):
    full = np.zeros(n + 1)
    full[count.counts] = count.pmf
    return full


def test_pmf_equals_convolution():
    for n in (1, 2, 3, 10, 64, 400):
        for power in (0.2, 1, 8):
            p = np.random.default_rng(n).random(n) ** power
            expected = convolved(p)
            np.testing.assert_allclose(spread(PoissonBinomial.of(p), n), expected, atol=1e-14, err_msg=f"{n}, {power}")


def test_equal_probabilities_are_binomial():
    for n in (1, 2, 50, 1001, 20_000):
        for p in (0.0, 1e-4, 0.5, 0.97, 1.0):
            count = PoissonBinomial.of(np.full(n, p))
            expected = binom.pmf(count.counts, n, p)
            np.testing.assert_allclose(count.pmf, expected, atol=1e-13, err_msg=f"{n}, {p}")
            assert count.pmf.sum() == pytest.approx(1.0, abs=1e-14)


def test_probabilities_that_rounding_moved_are_clipped():
    count = PoissonBinomial.of(np.array([-1e-9, 0.5, 1 + 1e-9]))
    np.testing.assert_allclose(spread(count, 3), [0, 0.5, 0.5, 0], atol=1e-15)


def test_many_distributions_at_once_equal_convolution():
    rng = np.random.default_rng(3)
    sizes = [65, 1, 64, 0, 7, 300, *rng.integers(1, 65, 1100)]  # more of few events than are convolved side by side
    parts = [rng.random(n) ** rng.choice([0.2, 1.0, 8.0]) for n in sizes]
    parts[2] -= 1e-3  # clipped, as by `of`
    found = PoissonBinomial.of_each(parts)
    assert len(found) == len(parts)
    for count, p in zip(found, parts, strict=True):
        one = PoissonBinomial.of(p)
        assert (count.first, len(count.pmf)) == (one.first, len(one.pmf))
        expected = convolved(np.clip(p, 0, 1))
        np.testing.assert_allclose(spread(count, len(p)), expected, atol=1e-14)
        if len(p) <= 64:  # sums of what is not negative: small probabilities keep their digits
            np.testing.assert_allclose(count.pmf, expected[count.counts], rtol=1e-13)
    assert PoissonBinomial.of_each([]) == []


def test_window_stays_small():
    count = PoissonBinomial.of(np.full(100_000, 0.01))
    assert len(count.pmf) < 1000
    assert count.counts @ count.pmf == pytest.approx(1000.0, abs=1e-8)
    for variance in (0.0, 1.0, 250.0):
        width = window_half_width(variance)
        bound = 2 * np.exp(-(width**2) / (2 * (variance + width / 3)))  # Bernstein
        assert bound == pytest.approx(1e-18, rel=1e-6)


def test_moments_of_certain_events_keep_their_digits():
    for t in (-60.0, -1.0, 60.0):
        assert Events(np.array([0.0, 1.0]), np.array([5.0, 2.0])).log_moment(t) == 2 * t


def test_two_sided_pvalues():
    p = np.random.default_rng(1).random(12)
    count = PoissonBinomial.of(p)
    for k in range(13):
        assert count.two_sided(k) == pytest.approx(naive.two_sided(p, k), rel=1e-9)
    far = PoissonBinomial.of(np.full(10_000, 0.5))
    assert far.two_sided(0) == far.two_sided(10_000) == 0.0  # outside of the window
    assert far.two_sided(5000) == 1.0


def power_sums(p):
    return np.stack([np.sum(p**k, axis=0) for k in range(6)])


@pytest.mark.parametrize(
    "p",
    [[0.1] * 15 + [0.3] * 16 + [0.6] * 19, [0.2] * 30 + [0.9] * 20, [0.3] * 50, [0.37], [0.0] * 5, [0.0, 1.0, 1.0]],
)
def test_power_sums_of_three_probabilities_give_them_back(p):
    p = np.array(p)
    (events,) = Events.of_power_sums(power_sums(p[:, None]))
    value, number = np.unique(p, return_counts=True)
    np.testing.assert_allclose(events.prob, value, atol=1e-9)
    np.testing.assert_allclose(events.weight, number, rtol=1e-7)
    for k in range(len(p) + 1):
        expected = PoissonBinomial.of(p).two_sided(k)
        assert events.two_sided(k) == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_power_sums_have_the_cumulants_of_many_probabilities():
    """Weights of probabilities on both sides of one half are no whole numbers."""
    rng = np.random.default_rng(3)
    p = np.stack([rng.beta(0.3, 0.3, 60), rng.beta(0.5, 5, 60), rng.beta(8, 2, 60)], axis=1)
    for events, one in zip(Events.of_power_sums(power_sums(p)), p.T, strict=True):
        exact = PoissonBinomial.of(one)
        deviation = exact.counts - one.sum()
        own = events.count.counts - one.sum()
        for k in range(4):
            assert own**k @ events.count.pmf == pytest.approx(deviation**k @ exact.pmf, abs=1e-6)
        for k in exact.counts[exact.pmf > 1e-4]:
            assert events.two_sided(int(k)) == pytest.approx(exact.two_sided(int(k)), rel=0.05)


@pytest.mark.slow(few_draws=True)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.floats(0.05, 0.99))
@settings(deadline=None, derandomize=True, database=None)
def test_central_interval_leaves_at_most_half_the_rest_on_either_side(p, level):
    low, high = PoissonBinomial.of(np.array(p)).central_interval(level)
    pmf = convolved(p)
    tail = (1 - level) / 2
    assert 0 <= low <= high <= len(p)
    assert pmf[:low].sum() <= tail + 1e-9
    assert pmf[high + 1 :].sum() <= tail + 1e-9
    # and it is as short as that allows
    assert pmf[: low + 1].sum() > tail - 1e-9
    assert high == 0 or pmf[high:].sum() > tail - 1e-9
