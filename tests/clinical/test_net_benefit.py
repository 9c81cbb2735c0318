"""Net benefit is counted as in decision curve analysis."""

import numpy as np
import pytest
from scipy.special import expit

from caltest.clinical._net_benefit import NetBenefit
from caltest.predictions._sample import make_sample

MISSED = 0.025


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    logit = rng.normal(-1, 1.2, 200)
    return (rng.random(200) < expit(0.3 + 0.7 * logit)).astype(int), expit(logit)


def test_net_benefit_counts(problem):
    y, p = problem
    sample = make_sample(y, p)
    for t in (0.05, 0.2, 0.6):
        true, false = np.sum((p >= t) & (y == 1)), np.sum((p >= t) & (y == 0))
        found = NetBenefit.at(sample, t, MISSED)
        assert found.estimate == pytest.approx((true - false * t / (1 - t)) / len(y))
        assert found.treat_all == pytest.approx(y.mean() - (1 - y.mean()) * t / (1 - t))
        assert found.gain == pytest.approx(found.estimate - max(found.treat_all, 0))
        assert found.n_treated == true + false
        low, high = found.confidence_interval
        assert low < found.estimate < high


def test_nobody_is_treated(problem):
    y, p = problem
    found = NetBenefit.at(make_sample(y, p), 0.999, MISSED)
    assert (found.n_treated, found.estimate) == (0, 0.0)
    assert np.isnan(found.confidence_interval.low)
