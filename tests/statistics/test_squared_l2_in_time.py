"""The distribution of the debiased squared error of forecasts in time equals loops, and Student's widens its ends."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtri, stdtrit

import caltest as ct
from caltest.predictions._sample import make_sample
from caltest.statistics._squared_l2_distribution import SquaredL2Distribution
from caltest.statistics._squared_l2_in_time import SquaredL2InTime
from tests.comparison.models import exceedances, shifted
from tests.reference import in_time

TREE = ct.VarianceTree(max_cells=4, min_leaf=5)


def forecasts(n=90, lead=3, shift=0.6, seed=1):
    prob, label = exceedances(n, lead, 0.7, np.random.default_rng(seed))
    return make_sample(label, shifted(prob, shift), time=np.arange(n), lead=lead)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_distribution_equals_its_loops(seed):
    sample = forecasts(seed=seed)
    found, (estimate, noise, unit) = SquaredL2InTime.of(sample, TREE), in_time.law_in_time(sample, TREE)
    assert (found.estimate, found.noise, found.unit) == pytest.approx((estimate, noise, unit), rel=1e-9)
    assert found.spread is None
    assert found.degrees == 8


def test_ends_are_those_of_a_distribution_that_is_wider_as_student_is_than_normal():
    found = SquaredL2InTime.of(forecasts(n=300, shift=1.2), TREE)
    for tail in (0.025, 0.05):
        ratio = stdtrit(found.degrees, tail) / ndtri(tail)
        wider = SquaredL2Distribution(
            found.estimate, ratio * found.noise, ratio**2 * found.unit, None, found.quiet, 1.0, 0.0
        )
        assert 0 < found.lower_end(tail) == pytest.approx(wider.lower_end(tail))
        assert found.upper_end(tail) == pytest.approx(wider.upper_end(tail))
    assert found.lower_end(0.5) < found.upper_end(0.5)  # where both quantiles are 0
    assert found.lower_end(0.6) > 0


def test_too_little_time_has_no_ends_and_unknown_cells_may_be_as_wrong_as_possible():
    few = SquaredL2InTime.of(forecasts(n=26), ct.EqualWidth(1))
    assert (few.is_known, few.lower_end(0.1), few.upper_end(0.1)) == (False, 0.0, 1.0)
    known = SquaredL2InTime.of(forecasts(n=27), ct.EqualWidth(1))
    assert known.is_known
    part = replace(known, unknown=0.1)
    assert part.upper_end(0.1) == pytest.approx(min(known.upper_end(0.1) + 0.1, 1.0))


def test_few_expected_surprises_give_no_lower_end():
    n = 100
    label = np.zeros(n, int)
    label[[10, 40, 70]] = 1
    rare = SquaredL2InTime.of(make_sample(label, np.full(n, 0.01), time=np.arange(n), lead=3), ct.EqualWidth(1))
    assert (rare.evidence, rare.lower_end(0.4)) == (1.0, 0.0)
    assert math.isfinite(rare.noise)


def test_several_outcomes_have_a_normal_distribution_too():
    rng, n = np.random.default_rng(0), 120
    prob = rng.dirichlet(np.ones(3), n)
    sample = make_sample(rng.integers(3, size=n), prob, time=np.arange(n), lead=2)
    found = SquaredL2InTime.of(sample, TREE)
    estimate, terms, score = in_time.terms_in_time(sample, TREE)
    assert found.estimate == pytest.approx(estimate)
    assert found.spread == pytest.approx(math.sqrt(found.noise**2 + np.square(score).sum()))
    assert found.noise >= math.sqrt(2 * np.square(terms).sum()) / n * (1 - 1e-9)
