"""The distribution of the debiased squared error: against loops, its moments, and what must hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import caltest as ct
from caltest.predictions._sample import make_sample
from caltest.statistics._squared_l2_distribution import SquaredL2Distribution
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


def test_probabilities_are_those_of_the_exact_distribution():
    """A Poisson mixture of chi-squared distributions, summed; degrees of freedom need not be whole."""
    problems = [problem(2), problem(2, 400), problem(3)]
    for y, prob in problems:
        found = SquaredL2Distribution.of(make_sample(y, prob), ct.VarianceTree())
        nu, x = found.degrees_of_freedom, found.estimate / found.unit + found.degrees_of_freedom
        for target in (1e-9, 1e-4, 0.01, 0.1, 1.0):
            half = target / found.unit / 2
            j = np.arange(int(half + 40 * np.sqrt(half + 1)) + 200)
            exact = np.sum(stats.poisson.pmf(j, half) * stats.chi2.sf(x, nu + 2 * j))
            assert found.above(target) == pytest.approx(exact, rel=1e-9, abs=1e-12), (len(y), target)


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
