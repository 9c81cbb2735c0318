"""The interval of the unreliability index: by a general optimiser, its coverage, and where there is none."""

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import expit, logit

from caltest.clinical import clinical_calibration
from caltest.clinical._unreliability import unreliability_interval
from caltest.predictions._sample import make_sample
from tests.clinical.test_clinical_calibration_programs import NAMES, problem

MISSED = 0.025


def gain(beta, x):
    """Twice the mean divergence of the predictions from the probabilities of an intercept and a slope."""
    p, q = expit(x), expit(beta[0] + beta[1] * x)
    return 2 * np.mean(q * np.log(q / p) + (1 - q) * np.log((1 - q) / (1 - p)))


def by_optimiser(y, x):
    def lack(beta):
        return np.logaddexp(0, beta[0] + beta[1] * x).sum() - y @ (beta[0] + beta[1] * x)

    best = optimize.minimize(lack, [0.0, 1.0], method="BFGS", options={"gtol": 1e-9}).x
    reach = stats.chi2(2).ppf(1 - 2 * MISSED)
    inside = {"type": "ineq", "fun": lambda beta: reach / 2 - lack(beta) + lack(best)}
    ends = []
    for sign in (1, -1):
        found = [
            optimize.minimize(lambda beta, sign=sign: sign * gain(beta, x), best + step, constraints=inside, tol=1e-14)
            for step in ([0.1, 0.1], [-0.1, 0.1], [0.1, -0.1], [-0.1, -0.1])
        ]
        ends.append(sign * min(one.fun for one in found if lack(one.x) - lack(best) < reach / 2 * (1 + 1e-6)))
    return ends


@pytest.mark.parametrize("name", NAMES)
def test_a_general_optimiser_agrees(name):
    y, p = problem(name)
    found = unreliability_interval(make_sample(y, p), MISSED)
    assert found == pytest.approx(by_optimiser(y, logit(p)), rel=1e-3, abs=1e-7)


@pytest.mark.slow(few_draws=True)
def test_it_begins_at_0_if_the_likelihood_ratio_does_not_reject():
    for name in NAMES:
        y, p = problem(name)
        found = clinical_calibration(y, p, n_resamples=19, rng=0)["unreliability_index"]
        ratio = len(y) * found.estimate + 2
        assert (found.confidence_interval.low == 0) == (stats.chi2(2).sf(ratio) >= 0.05)
        assert found.confidence_interval.low <= ratio / len(y) <= found.confidence_interval.high


@pytest.mark.slow
@pytest.mark.parametrize(("slope", "shift"), [(1.0, 0.0), (0.5, 0.0), (1.5, -0.5)])
def test_coverage(slope, shift):
    """At least 95 %, of 300 data sets with about 80 events; of calibrated predictions it is exact in the limit."""
    rng, number, missed = np.random.default_rng(5), 300, 0
    for _ in range(number):
        x = rng.normal(-0.7, 1.2, 250)
        y = (rng.random(250) < expit(shift + slope * x)).astype(int)
        low, high = unreliability_interval(make_sample(y, expit(x)), MISSED)
        missed += not low - 1e-12 <= gain((shift, slope), x) <= high
    assert missed <= 0.05 * number + 4 * np.sqrt(0.05 * 0.95 * number)
    assert missed > 0


@pytest.mark.slow(few_draws=True)
def test_many_observations_are_fitted_at_nodes():
    rng = np.random.default_rng(0)
    x = rng.normal(-1, 1.5, 3_000)
    y = (rng.random(3_000) < expit(0.3 + 0.8 * x)).astype(int)
    found = unreliability_interval(make_sample(y, expit(x)), MISSED)
    assert found == pytest.approx(by_optimiser(y, x), rel=1e-3)


@pytest.mark.slow(few_draws=True)
def test_where_there_is_none():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, 60)
    y = (rng.random(60) < p).astype(int)
    for options in ({"groups": np.arange(60) % 20}, {"sample_weight": np.arange(60.0) + 1}):
        found = clinical_calibration(y, p, n_resamples=19, rng=0, **options)["unreliability_index"]
        assert np.isnan(found.confidence_interval).all()
    separated = clinical_calibration((p > 0.5).astype(int), p, n_resamples=19, rng=0)["unreliability_index"]
    assert np.isnan(separated.confidence_interval).all()
    ones = clinical_calibration(y, p, n_resamples=19, rng=0, sample_weight=np.ones(60))["unreliability_index"]
    assert not np.isnan(ones.confidence_interval).any()
