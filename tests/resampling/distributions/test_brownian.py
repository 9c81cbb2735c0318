"""The Brownian limits of KS and Kuiper: published tails, both series, far tails, moments and quantiles."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import caltest
from caltest.resampling.distributions import _brownian as brownian
from caltest.resampling.distributions._brownian import EITHER_END, EXCURSION, RANGE, BrownianDistribution

PVALUE = {"KS": brownian.ks_pvalue, "Kuiper": brownian.kuiper_pvalue}
LOG_PVALUE = {"KS": brownian.ks_log_pvalue, "Kuiper": brownian.kuiper_log_pvalue}

PUBLISHED = [
    ("KS", 1, 0.6292225702, 1e-9),
    ("KS", 2, 0.0910005238, 1e-8),
    ("KS", 3, 0.0053995921, 1e-7),
    ("KS", 8, 2.488e-15, 2e-4),
    ("KS", 10, 3.0e-23, 2e-2),
    ("Kuiper", 1, 0.9366354121, 1e-9),
    ("Kuiper", 2, 0.18149433939, 1e-10),
    ("Kuiper", 3, 0.0107991685, 1e-8),
    ("Kuiper", 8, 4.977e-15, 2e-4),
]
"""Of Arrieta-Ibarra et al. (2022), with the digits that are given."""


def test_published_tails():
    for name, x, pvalue, digits in PUBLISHED:
        assert PVALUE[name](x) == pytest.approx(pvalue, rel=digits), (name, x)
        assert LOG_PVALUE[name](x) == pytest.approx(math.log(pvalue), abs=2 * digits), (name, x)


def by_tail_series(name, x):
    """Many terms, as plain sums of normal tails."""
    if name == "KS":
        return 4 * sum((-1) ** k * norm.sf((2 * k + 1) * x) for k in range(100))
    return 8 * sum((-1) ** (k - 1) * k * norm.sf(k * x) for k in range(1, 200))


@pytest.mark.parametrize("name", PVALUE)
def test_both_series_are_one_distribution(name):
    x = np.linspace(0.3, 6, 200)
    pvalues = PVALUE[name](x)
    np.testing.assert_allclose(pvalues, by_tail_series(name, x), rtol=1e-11)
    np.testing.assert_allclose(np.log(pvalues), LOG_PVALUE[name](x), rtol=1e-11, atol=1e-15)
    assert np.all(np.diff(pvalues) <= 0)


@pytest.mark.parametrize("name", PVALUE)
def test_far_tails_keep_their_digits(name):
    """The first term is all there is."""
    for x in (9.0, 35.0, 40.0, 1e3, 1e8):
        first = math.log(4 if name == "KS" else 8) + norm.logsf(x)
        assert LOG_PVALUE[name](x) == pytest.approx(first, rel=1e-14), x


@pytest.mark.parametrize("name", PVALUE)
def test_ends(name):
    assert PVALUE[name](0) == 1
    assert PVALUE[name](1e-200) == 1
    assert LOG_PVALUE[name](np.inf) == -np.inf
    assert isinstance(PVALUE[name](2), float)
    assert PVALUE[name]([[1, 2, 3]]).shape == (1, 3)


def test_what_is_no_statistic():
    for function in (*PVALUE.values(), *LOG_PVALUE.values()):
        for wrong in (-0.5, np.nan):
            for statistic in (wrong, [1.0, wrong]):
                with pytest.raises(ValueError, match=f"`statistic` must not be negative or nan, got {wrong}"):
                    function(statistic)


def test_the_distance_from_either_end_against_integrals_of_reflections():
    """Given B(1) = w >= 0 the path stays in [w - x, x]: 41 reflections, integrated numerically."""
    either = BrownianDistribution(EITHER_END, 1.0)
    k = np.arange(-20, 21)

    def inside(w, x):
        d = 2 * x - w
        return (norm.pdf(w + 2 * k * d) - norm.pdf(2 * x - w + 2 * k * d)).sum()

    for x in (0.35, 0.6, 1.0, 1.4999, 1.5, 2.0, 3.0):
        staying = 2 * quad(inside, 0, x, args=(x,), epsabs=1e-13)[0]
        assert either.sf(x) == pytest.approx(1 - staying, rel=1e-8), x
    assert either.sf(0.0) == either.sf(0.05) == 1
    for x in (9.0, 40.0, 1e8):
        assert either.log_sf(x) == pytest.approx(math.log(16 / 3) + norm.logsf(x), rel=1e-14), x
    # It lies between the distance from one end and the range.
    for x in (0.5, 1.0, 2.0, 3.0):
        assert brownian.ks_pvalue(x) <= either.sf(x) <= brownian.kuiper_pvalue(x)


def test_the_distance_from_either_end_against_random_walks():
    steps = np.random.default_rng(0).standard_normal((4000, 1000)).astype(np.float32)
    path = np.cumsum(steps, axis=1) / np.sqrt(np.float32(1000))
    end = path[:, -1:]
    largest = np.maximum(np.abs(path).max(axis=1), np.maximum(np.abs(end - path).max(axis=1), np.abs(end[:, 0])))
    largest = largest + 0.5826 / np.sqrt(1000)  # what a walk of so many steps misses (Chernoff 1965)
    for x in (0.7, 1.0, 1.5, 2.0):
        expected = BrownianDistribution(EITHER_END, 1.0).sf(x)
        assert abs((largest >= x).mean() - expected) <= 4 * np.sqrt(expected * (1 - expected) / 4000), x


@pytest.mark.parametrize("limit", [EXCURSION, RANGE, EITHER_END])
def test_moments_and_quantiles(limit):
    standard, scaled = BrownianDistribution(limit, 1.0), BrownianDistribution(limit, 0.25)
    mean = quad(standard.sf, 0, 12, points=[1.5])[0]
    square = quad(lambda x: 2 * x * standard.sf(x), 0, 12, points=[1.5])[0]
    assert standard.mean == pytest.approx(mean, rel=1e-10)
    assert standard.std == pytest.approx(math.sqrt(square - mean**2), rel=1e-10)
    assert (scaled.mean, scaled.std) == (standard.mean / 4, standard.std / 4)
    for q in (0.001, 0.05, 0.5, 0.95, 0.9999):
        assert scaled.cdf(scaled.quantile(q)) == pytest.approx(q, abs=1e-8)
        assert scaled.sf(scaled.quantile(q)) == pytest.approx(1 - q, rel=1e-8)


def test_asymptotic_is_refused_where_no_limit_is_known():
    y_true, event = np.arange(50) % 2, np.linspace(0.1, 0.9, 50)
    rows = caltest.Consistency(resample_predictions=True)
    for statistic, scheme in [(caltest.ECE(), None), (None, None), (caltest.KS(), rows)]:
        with pytest.raises(ValueError, match=r'method="asymptotic" needs a statistic whose limit is known .*; got'):
            caltest.calibration_test(y_true, event, statistic=statistic, resampling=scheme, method="asymptotic")
