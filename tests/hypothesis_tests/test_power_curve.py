"""The probit curve of the power: against statsmodels, and at the place that is known."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from caltest.hypothesis_tests._power_curve import PowerCurve


def counts(places, a, b, total=10**8):
    return [(x, round(total * ndtr(a + b * x)), total) for x in places]


@pytest.mark.slow
def test_the_curve_is_that_of_statsmodels():
    import statsmodels.api as sm

    counted = [(2.0, 30, 100), (2.3, 60, 150), (2.5, 140, 200), (20.0, 10, 10)]  # the last one is too far away
    curve = PowerCurve.near(2.3, counted, 0.8)
    place, rejected, total = np.array(counted[:3]).T
    design = sm.add_constant(np.tile(place, 2))
    weight = np.concatenate([rejected, total - rejected]) + 0.5 / 3
    family = sm.families.Binomial(sm.families.links.Probit())
    found = sm.GLM(np.repeat([1.0, 0.0], 3), design, family=family, freq_weights=weight).fit()
    np.testing.assert_allclose(curve.coefficients, found.params, rtol=1e-6)
    np.testing.assert_allclose(curve.covariance, found.cov_params(), rtol=1e-5)


def test_the_place_of_a_known_curve_is_found():
    curve = PowerCurve.near(3.0, counts((2.5, 3.0, 3.5), -2.0, 1.0), 0.8)
    assert curve.place == pytest.approx(2.0 + 0.8416212, abs=1e-5)
    low, high = curve.interval(0.95)
    assert low < curve.place < high < low + 1e-3


def test_a_curve_that_does_not_rise_has_no_place():
    assert PowerCurve.near(1.0, counts((0.9, 1.0, 1.1), 0.0, -1.0), 0.8).place == math.inf
    assert PowerCurve.near(1.0, counts((0.9, 1.0, 1.1), 3.0, -1.0), 0.8).place == 0.0
    assert PowerCurve.near(1.0, [(1.0, 0, 10), (1.1, 0, 10)], 0.8).place > 1.1


def test_one_place_says_on_which_side_the_answer_is():
    assert PowerCurve.near(1.0, [(1.0, 50, 100)], 0.8).place > 1.0
    assert PowerCurve.near(1.0, [(1.0, 95, 100)], 0.8).place < 1.0
