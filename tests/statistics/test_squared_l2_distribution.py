"""The distribution of the debiased squared error: against loops, its moments, and what must hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import caltest as ct
from caltest.predictions._sample import make_sample
from caltest.statistics._squared_l2_distribution import SquaredL2Distribution, noncentral_chi2_cdf
from tests.reference import naive
from tests.reference.examples import draw_labels
from tests.statistics.problems import PROFILE


def problem(n_classes, n=60, seed=0):
    """Labels that follow other probabilities than the predicted ones."""
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.ones(n_classes), n)
    return draw_labels(0.7 * prob + 0.3 * np.roll(prob, 1, axis=1), rng), prob


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_the_distribution_equals_its_loops(n_classes):
    y, prob = problem(n_classes)
    for partition in (ct.VarianceTree(min_leaf=5), ct.VarianceTree(min_leaf=2), ct.VarianceTree()):
        found = SquaredL2Distribution.of(make_sample(y, prob), partition)
        estimate, noise, unit, spread = naive.l2_law(naive.plain(prob), y.tolist(), naive.cells(partition, prob))
        values = [found.estimate, found.noise, found.unit]
        np.testing.assert_allclose(values, [estimate, noise, unit], rtol=1e-11, err_msg=str(partition))
        assert found.spread == (pytest.approx(spread, rel=1e-11) if n_classes > 2 else None)
        assert found.estimate == ct.calibration_error(y, prob, statistic=ct.SquaredL2(partition))


def test_sankaran_is_close_to_the_exact_distribution():
    """At few degrees of freedom, those of few cells, its low tail is too heavy: upper ends err to the safe side."""
    levels = np.array([0.005, 0.025, 0.05, 0.16, 0.5, 0.84, 0.95, 0.975, 0.995])
    for nu, heavier in ((1, 0.065), (2, 0.016), (4, 0.004), (8, 0.0012), (100, 0.0002), (1e4, 1e-6)):
        for noncentrality in (0.1, 1, 5, 20, 100, 1e4):
            x = stats.ncx2.ppf(levels, nu, noncentrality)
            error = [noncentral_chi2_cdf(value, nu, noncentrality) for value in x] - levels
            assert -min(heavier, 0.02) < error.min()
            assert error.max() < heavier
            assert np.abs(error[levels >= 0.95]).max() < min(heavier, 0.004)


def test_the_distribution_has_the_moments_that_were_asked_for():
    y, prob = problem(2, 400)
    found = SquaredL2Distribution.of(make_sample(y, prob), ct.VarianceTree())
    nu, target = found.degrees_of_freedom, 0.03
    chi2 = stats.ncx2(nu, target / found.unit)
    assert found.unit * (chi2.mean() - nu) == pytest.approx(target)
    assert found.unit**2 * chi2.var() == pytest.approx(found.noise**2 + 4 * found.unit * target)


@PROFILE
@given(st.integers(0, 10**6), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_probabilities_are_monotone_in_the_target(seed, a, b):
    y, prob = problem(2 + seed % 2, 40, seed)
    found = SquaredL2Distribution.of(make_sample(y, prob), ct.VarianceTree(min_leaf=8))
    low, high = sorted((a, b))
    assert found.below(low) >= found.below(high) - 1e-12
    assert found.above(low) <= found.above(high) + 1e-12
