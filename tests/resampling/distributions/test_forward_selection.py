"""The limit after forward selection: simulated sums, closed forms without selection, and its moments."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from caltest.resampling.distributions._forward_selection import ForwardSelection
from tests.reference.cases import mostly_slow


def simulated(null, rng, n):
    """Chi-squared numbers, as the definition adds them."""
    total, rising = rng.chisquare(null.degrees_of_freedom, n), np.ones(n, dtype=bool)
    for _ in range(null.most_added):
        improvement = rng.chisquare(1, n)
        rising &= improvement >= stats.chi2(1).ppf(null.threshold)
        total += improvement * rising
    return total


@pytest.mark.parametrize(
    ("freedom", "added", "threshold"), mostly_slow([(2, 3, 0.95), (1, 2, 0.95), (3, 1, 0.5), (2, 3, 0.3)])
)
def test_it_is_the_distribution_of_the_sums(freedom, added, threshold):
    null, n = ForwardSelection(freedom, added, threshold), 200_000
    drawn = simulated(null, np.random.default_rng(1), n)
    for x in (0.3, 2.0, 4.5, 8.0, 12.0):
        expected = null.sf(x)
        assert abs(np.mean(drawn >= x) - expected) < 4 * math.sqrt(expected * (1 - expected) / n)
    assert abs(drawn.mean() - null.mean) < 4 * null.std / math.sqrt(n)
    spread = math.sqrt(np.mean((drawn - null.mean) ** 4) / n)
    assert abs(drawn.var() - null.std**2) < 4 * spread


def test_without_selection_it_is_chi_squared():
    for freedom in (1, 2, 3):
        null = ForwardSelection(freedom, 0, 0.95)
        for x in (0.1, 3.0, 40.0):
            assert null.sf(x) == pytest.approx(stats.chi2.sf(x, freedom), rel=1e-12)
        assert (null.mean, null.std) == pytest.approx((freedom, math.sqrt(2 * freedom)))


def test_one_step_is_an_integral():
    """P(D >= x) .95 + the sum of both if the improvement is significant, by adaptive quadrature."""
    q, null = stats.chi2(1).ppf(0.95), ForwardSelection(2, 1, 0.95)
    for x in (1.0, q, 5.0, 15.0, 60.0):
        both, _ = integrate.quad(lambda d: stats.chi2.pdf(d, 1) * stats.chi2.sf(x - d, 2), q, max(x, q), epsabs=1e-16)  # noqa: B023
        expected = 0.95 * stats.chi2.sf(x, 2) + both + stats.chi2.sf(max(x, q), 1)
        assert null.sf(x) == pytest.approx(expected, rel=1e-8)


@pytest.mark.slow(few_draws=True)
def test_moments_and_quantiles_belong_to_the_tail():
    null = ForwardSelection(2, 3, 0.95)
    x = np.linspace(0, 60, 121)
    assert integrate.simpson([null.sf(one) for one in x], x=x) == pytest.approx(null.mean, abs=5e-3)
    for share in (0.05, 0.95):
        assert 1 - null.sf(null.quantile(share)) == pytest.approx(share, abs=1e-10)
    assert null.quantile(0.0) == 0.0
    assert (null.sf(0.0), null.sf(-1.0)) == pytest.approx((1.0, 1.0))
