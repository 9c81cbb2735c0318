"""The Poisson-binomial law against convolution, the binomial law and enumeration."""

from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from caltest.resampling._distributions import PoissonBinomial


def convolved(p):
    return reduce(np.convolve, [np.array([1 - x, x]) for x in p], np.ones(1))


def spread(law, n):
    full = np.zeros(n + 1)
    full[law.counts] = law.pmf
    return full


@pytest.mark.parametrize("n", [1, 2, 3, 10, 64, 400])
@pytest.mark.parametrize("power", [0.2, 1, 8])
def test_pmf_equals_convolution(n, power):
    p = np.random.default_rng(n).random(n) ** power
    np.testing.assert_allclose(spread(PoissonBinomial.of(p), n), convolved(p), atol=1e-14)


@pytest.mark.parametrize("n", [1, 2, 50, 1001, 20_000])
@pytest.mark.parametrize("p", [0.0, 1e-4, 0.5, 0.97, 1.0])
def test_equal_probabilities_are_binomial(n, p):
    law = PoissonBinomial.of(np.full(n, p))
    np.testing.assert_allclose(law.pmf, binom.pmf(law.counts, n, p), atol=1e-13)
    assert law.pmf.sum() == pytest.approx(1.0, abs=1e-14)


def test_window_stays_small():
    law = PoissonBinomial.of(np.full(100_000, 0.01))
    assert len(law.pmf) < 1000
    assert law.counts @ law.pmf == pytest.approx(1000.0, abs=1e-8)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.floats(0.05, 0.99))
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
