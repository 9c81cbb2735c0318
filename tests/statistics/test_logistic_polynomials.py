"""Polynomials of the logit: nodes stand for many predictions, and fits are those of all of them."""

import numpy as np
import pytest
from scipy.special import expit
from statsmodels.genmod.families import Binomial
from statsmodels.genmod.generalized_linear_model import GLM

from caltest.statistics._logistic_polynomials import LogisticPolynomials

PREDICTIONS = {
    "usual": lambda rng: rng.normal(-1, 1.2, 3_000),
    "wide": lambda rng: rng.normal(0, 6, 3_000),
    "narrow": lambda rng: rng.normal(-3, 0.01, 3_000),
    "an outlier": lambda rng: np.append(rng.normal(-4, 0.5, 2_000), 9.0),
    "few values": lambda rng: rng.choice([-2.0, -1.5, 0.0, 3.0, 3.5], 3_000),
}


@pytest.mark.parametrize("logit", PREDICTIONS.values(), ids=PREDICTIONS)
def test_nodes_have_the_sums_of_the_observations(logit):
    rng = np.random.default_rng(0)
    x = logit(rng)
    weight = rng.choice([0.0, 1.0, 2.5], len(x))
    curves = LogisticPolynomials(x, weight, 4)
    assert len(curves.node) < 2_000
    assert (curves.node_weight > 0).all()
    for slope in (0.3, 1.0, -3.0):
        size = np.logaddexp(0, 1 - slope * x) @ weight
        assert np.logaddexp(0, 1 - slope * curves.node) @ curves.node_weight == pytest.approx(size, rel=1e-12)


@pytest.mark.parametrize("logit", PREDICTIONS.values(), ids=PREDICTIONS)
def test_fits_are_those_of_all_observations(logit):
    rng = np.random.default_rng(1)
    x = logit(rng)
    weight = rng.choice([1.0, 2.0], len(x))
    y = (rng.random((2, len(x))) < expit(0.2 + 0.9 * x)).astype(np.int8)
    curves = LogisticPolynomials(x, weight, 3)
    scaled = (x - x.mean()) / x.std()
    for degree in (1, 2, 3):
        found, twice = curves.fit(y, degree)
        for own, coefficient, value in zip(y, found, twice, strict=True):
            model = GLM(own, np.power(scaled[:, None], np.arange(degree + 1)), family=Binomial(), var_weights=weight)
            fit = model.fit(tol=1e-13, maxiter=200)
            assert value == pytest.approx(
                2
                * (
                    own * weight * fit.predict(which="linear") - weight * np.logaddexp(0, fit.predict(which="linear"))
                ).sum(),
                rel=1e-9,
            )
            at = np.power(curves.node[:, None], np.arange(degree + 1)) @ curves.of_logit(coefficient)
            assert at == pytest.approx(curves.powers(curves.node)[:, : degree + 1] @ coefficient, abs=1e-6)


def test_a_fit_does_not_depend_on_those_beside_it():
    rng = np.random.default_rng(2)
    x = rng.normal(0, 1, 400)
    y = (rng.random((20, 400)) < expit(x)).astype(np.int8)
    y[3], y[5] = 0, x > 0  # of equal labels, and separated ones
    curves = LogisticPolynomials(x, np.ones(400), 2)
    together = curves.fit(y, 2)[1]
    assert [curves.fit(one[None], 2)[1][0] for one in y] == together.tolist()
    assert together[[3, 5]] == pytest.approx(0, abs=1e-6)
    assert np.isfinite(together).all()
