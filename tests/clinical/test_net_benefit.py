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
    """Of 200 patients some would be above the threshold all the same: Wilson's limit of 0 of 200."""
    y, p = problem
    found = NetBenefit.at(make_sample(y, p), 0.999, MISSED)
    assert (found.n_treated, found.estimate) == (0, 0.0)
    limit = 1.959964**2 / (200 + 1.959964**2)
    assert found.confidence_interval == pytest.approx((-999 * limit, limit), rel=1e-5)


def test_no_event_among_the_treated_is_no_proof_of_harm():
    """None of 30 treated patients has the event: up to 3 of 1,000 patients may all the same."""
    p = np.r_[np.full(970, 0.001), np.full(30, 0.02)]
    y = np.zeros(1000, dtype=int)
    y[0] = 1
    found = NetBenefit.at(make_sample(y, p), 0.01, MISSED)
    assert found.estimate < 0 < found.confidence_interval.high


def test_the_gain_is_that_over_treating_everybody(problem):
    y, p = problem
    sample = make_sample(y, p)
    low, high = NetBenefit.at(sample, 0.1, MISSED).gain_interval
    weighted = NetBenefit.at(make_sample(y, p, sample_weight=np.full(200, 2.0)), 0.1, MISSED).gain_interval
    copies = NetBenefit.at(
        make_sample(np.repeat(y, 2), np.repeat(p, 2), groups=np.repeat(np.arange(200), 2)), 0.1, MISSED
    )
    assert weighted == (low, high)
    assert copies.gain_interval == pytest.approx((low, high), rel=0.03)


@pytest.mark.slow(few_draws=True)
@pytest.mark.parametrize("threshold", [0.02, 0.2])
def test_net_benefit_is_covered(threshold):
    """Of 150 patients, 10 of whom have the event; the gain is over the same strategy in most data sets."""
    rng, sets = np.random.default_rng(1), 1_000
    prob = expit(rng.normal(-3, 1.2, 200_000))
    cost = threshold / (1 - threshold)
    worth = prob - (1 - prob) * cost
    true = np.mean((prob >= threshold) * worth)
    all_true = np.mean(worth)
    missed, gains = [], []
    for _ in range(sets):
        p = rng.choice(prob, 150)
        found = NetBenefit.at(make_sample((rng.random(150) < p).astype(int), p), threshold, MISSED)
        low, high = found.confidence_interval
        missed.append(not low <= true <= high)
        low, high = found.gain_interval
        wanted = true - (all_true if found.treat_all > 0 else 0)
        gains.append(not low <= wanted <= high)
    most = 0.05 + 4 * np.sqrt(0.05 * 0.95 / sets)
    assert np.mean(missed) <= most
    assert np.mean(gains) <= most
