"""Logistic regressions: equal to statsmodels and to loops, and defined for separated labels."""

import numpy as np
import pytest
from scipy.special import logit
from statsmodels.genmod.families import Binomial
from statsmodels.genmod.generalized_linear_model import GLM

from caltest.statistics._logistic_curves import spline
from tests.reference.cases import mostly_slow
from tests.reference.smooth_curves import spline_curve, truncated


def test_equals_statsmodels():
    rng = np.random.default_rng(0)
    x, weight = np.sort(rng.beta(1, 3, 400)), rng.uniform(0.5, 2, 400)
    y = (rng.random((3, 400)) < x**1.3).astype(float)
    knots = np.quantile(logit(x), [0.05, 0.275, 0.5, 0.725, 0.95]).tolist()
    design = np.array([[1, one, *truncated(one, knots)] for one in logit(x)])
    fitted = spline(logit(x), weight).fitted(y)
    for found, outcome in zip(fitted, y, strict=True):
        model = GLM(outcome, design, family=Binomial(), var_weights=weight).fit(tol=1e-13, maxiter=100)
        assert found == pytest.approx(model.fittedvalues, abs=1e-8)


@pytest.mark.parametrize("n", mostly_slow([1, 2, 5, 12, 40]))
def test_equals_the_loops(n):
    """Labels of few observations are often separated: probabilities of 0 and 1 are then the limit."""
    rng = np.random.default_rng(n)
    for unsorted in (rng.uniform(0.01, 0.99, n), np.round(rng.uniform(0.1, 0.9, n), 1), np.full(n, 0.3)):
        x = np.sort(unsorted)
        y, weight = (rng.random((1, n)) < 0.4).astype(float), rng.uniform(0.5, 2, n)
        found = spline(logit(x), weight).fitted(y)[0]
        assert found == pytest.approx(spline_curve(x.tolist(), y[0].tolist(), weight.tolist()), abs=1e-6)


def test_the_complement_mirrors():
    rng = np.random.default_rng(1)
    x = np.sort(rng.uniform(0.01, 0.99, 300))
    y = (rng.random((1, 300)) < x).astype(float)
    found = spline(logit(x), np.ones(300)).fitted(y)[0]
    mirrored = spline(logit(1 - x[::-1]), np.ones(300)).fitted(1 - y[:, ::-1])[0]
    assert found == pytest.approx(1 - mirrored[::-1], abs=1e-9)


def test_separated_labels_have_their_limit():
    x = np.linspace(0.05, 0.95, 50)
    for y in (1.0 * (x > 0.5), np.zeros(50), np.ones(50)):
        assert spline(logit(x), np.ones(50)).fitted(y[None])[0] == pytest.approx(y, abs=1e-6)
