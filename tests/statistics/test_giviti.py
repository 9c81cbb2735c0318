"""The GiViTI statistic: likelihoods of statsmodels, its degree, and what must hold."""

import numpy as np
import pytest
from scipy import stats
from statsmodels.genmod.families import Binomial
from statsmodels.genmod.generalized_linear_model import GLM

import caltest
from caltest.predictions._sample import make_sample
from caltest.statistics import GiViTI
from tests.reference.cases import check_refused, mostly_slow
from tests.statistics.problems import LEVELS, error, most_rejections


def by_statsmodels(y, p, first=1, last=4, threshold=0.95):
    """Fit polynomials one after the other, as the paper says."""
    logit = np.log(p / (1 - p))
    null = stats.bernoulli.logpmf(y, p).sum()

    def likelihood(degree):
        design = np.power(logit[:, None], np.arange(degree + 1))
        return GLM(y, design, family=Binomial()).fit(tol=1e-13, maxiter=200).llf

    degree, found = first, likelihood(first)
    while degree < last:
        higher = likelihood(degree + 1)
        if 2 * (higher - found) < stats.chi2(1).ppf(threshold):
            break
        degree, found = degree + 1, higher
    return 2 * (found - null), degree


@pytest.mark.parametrize("bend", mostly_slow([0.0, 0.3, -0.4]))
def test_equals_statsmodels(bend):
    rng = np.random.default_rng(4)
    for options in ({}, {"first": 2}, {"threshold": 0.6}, {"last": 2}):
        logit = rng.normal(-1, 1.3, 500)
        p = 1 / (1 + np.exp(-logit))
        y = (rng.random(500) < 1 / (1 + np.exp(-logit - bend * (logit**2 - 2)))).astype(int)
        value, degree = by_statsmodels(y, p, **options)
        names = {"first": "first_degree", "last": "last_degree", "threshold": "threshold"}
        statistic = GiViTI(**{names[name]: given for name, given in options.items()})
        sample = make_sample(y, p)
        found, degrees = statistic.selected(sample, sample.outcome[None])
        assert (found[0], degrees[0]) == (pytest.approx(value, rel=1e-8), degree)
        assert error(y, p, statistic) == pytest.approx(value, rel=1e-8)


def test_the_coefficients_are_those_of_the_polynomial():
    rng = np.random.default_rng(0)
    logit = rng.normal(0, 1.5, 5_000)
    p = 1 / (1 + np.exp(-logit))
    y = (rng.random(5_000) < 1 / (1 + np.exp(-(0.2 + 0.8 * logit + 0.3 * logit**2)))).astype(int)
    result = caltest.calibration_test(y, p, statistic=GiViTI(last_degree=2), method="asymptotic")
    model = GLM(y, np.power(logit[:, None], np.arange(3)), family=Binomial()).fit(tol=1e-13)
    assert result.selected_degree == 2
    assert result.coefficients == pytest.approx(model.params, abs=1e-7)


@pytest.mark.slow(few_draws=True)
def test_the_complement_mirrors_and_the_order_does_not_count():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.01, 0.99, 300)
    y = (rng.random(300) < p**1.5).astype(int)
    value, shuffled = error(y, p, GiViTI()), rng.permutation(300)
    assert error(1 - y, 1 - p, GiViTI()) == pytest.approx(value, rel=1e-8)
    assert error(y[shuffled], p[shuffled], GiViTI()) == pytest.approx(value, rel=1e-9)
    assert error(y, p, GiViTI(), sample_weight=np.full(300, 2.0)) == pytest.approx(value, rel=1e-9)


@pytest.mark.slow(few_draws=True)
def test_odd_data_have_a_value():
    """Few values, one observation, constant predictions, separated and equal labels."""
    cases = [([1], [0.3]), ([0, 1], [0.2, 0.2]), ([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9]), ([0] * 9, np.full(9, 0.01))]
    cases += [(np.arange(60) % 3 == 0, np.tile([0.2, 0.3, 0.4], 20)), (np.arange(50) > 25, np.linspace(0.01, 0.99, 50))]
    for y, p in cases:
        result = caltest.calibration_test(np.asarray(y, dtype=int), p, statistic=GiViTI(), n_resamples=19, rng=0)
        assert 0 <= result.statistic < np.inf
        assert 0.05 <= result.pvalue <= 1
        assert 1 <= result.selected_degree <= 4
    constant = caltest.calibration_test([0, 1, 1], [0.4] * 3, statistic=GiViTI(), method="asymptotic")
    assert constant.null.degrees_of_freedom == 1  # the intercept


@pytest.mark.slow(few_draws=True)
def test_sure_predictions_add_nothing_or_infinity():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 100)
    y = (rng.random(100) < p).astype(int)
    value = error(y, p, GiViTI())
    assert error(np.r_[y, 0, 1], np.r_[p, 0.0, 1.0], GiViTI()) == pytest.approx(value, rel=1e-12)
    assert error(np.r_[y, 1], np.r_[p, 0.0], GiViTI()) == np.inf
    assert error([0, 1], [0.0, 1.0], GiViTI()) == 0
    certain = caltest.calibration_test([0, 1], [0.0, 1.0], statistic=GiViTI(), method="asymptotic")
    assert certain.pvalue == 1


@pytest.mark.nightly
def test_levels():
    """Simulated labels hold the level with few events, where the limit need not."""
    rng = np.random.default_rng(0)
    for n, a, b in ((60, 1, 4), (200, 1, 40)):
        pvalues = []
        for _ in range(200):
            p = rng.beta(a, b, n).clip(1e-3)
            y = (rng.random(n) < p).astype(int)
            pvalues.append(caltest.calibration_test(y, p, statistic=GiViTI(), n_resamples=99, rng=rng).pvalue)
        rejected = (np.array(pvalues)[:, None] <= np.array(LEVELS) + 1e-12).sum(axis=0)
        assert (rejected <= most_rejections(200, 6)).all(), (n, rejected)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: GiViTI(0), ValueError, "`first_degree` must be"),
        (lambda: GiViTI(2, 1), ValueError, "`last_degree` must be at least `first_degree` and at most 6, got 2 and 1."),
        (lambda: GiViTI(1, 7), ValueError, "`last_degree` must be at least `first_degree` and at most 6, got 1 and 7."),
        (lambda: GiViTI(1.5), TypeError, "`first_degree` must be"),
        (lambda: GiViTI(threshold=1), ValueError, "`threshold` must lie strictly between 0 and 1"),
    ],
)
def test_refusals(make, kind, message):
    check_refused(make, kind, message)
