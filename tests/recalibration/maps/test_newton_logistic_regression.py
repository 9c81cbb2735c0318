"""Newton's method for logistic regression, against scikit-learn."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from caltest.recalibration.maps._newton import fit_logistic, log_loss


def features(n=400, seed=0):
    rng = np.random.default_rng(seed)
    x = np.column_stack([5 * rng.normal(size=n), 1e3 * rng.normal(size=n), np.ones(n)])
    return x, rng.random(n) < 1 / (1 + np.exp(-(0.5 * x[:, 0] - 0.001 * x[:, 1] - 1)))


def test_it_is_the_maximum_of_the_likelihood():
    x, label = features()
    weight = np.random.default_rng(1).random(len(x))
    coef, loss = fit_logistic(x, label.astype(float), weight)
    prob = 1 / (1 + np.exp(-x @ coef))
    assert np.abs(x.T @ (weight * (prob - label)) / np.abs(x).sum(axis=0)).max() < 1e-13
    assert loss == pytest.approx(-np.average(np.log(np.where(label, prob, 1 - prob)), weights=weight))
    other = LogisticRegression(C=np.inf, fit_intercept=False, solver="newton-cholesky", tol=1e-10)
    np.testing.assert_allclose(coef, other.fit(x, label, weight).coef_[0], rtol=1e-6)


def test_labels_that_are_separated_are_refused():
    x, _ = features()
    with pytest.raises(ValueError, match="separated"):
        fit_logistic(x, (x[:, 0] > 0).astype(float), np.ones(len(x)))


def test_the_loss_of_probabilities_is_that_of_their_log_odds():
    x, label = features()
    coef, loss = fit_logistic(x, label.astype(float), np.ones(len(x)))
    prob = 1 / (1 + np.exp(-x @ coef))
    found = log_loss(np.log(prob), np.log1p(-prob), label.astype(float), np.full(len(x), 2.0))
    assert found == pytest.approx(loss, rel=1e-10)


def test_features_that_say_nothing():
    label = np.arange(10) < 3
    coef, _ = fit_logistic(np.ones((10, 2)), label.astype(float), np.ones(10))
    assert 1 / (1 + np.exp(-coef.sum())) == pytest.approx(0.3)
    coef, loss = fit_logistic(np.zeros((10, 1)), label.astype(float), np.ones(10))
    assert (coef.tolist(), loss) == ([0.0], pytest.approx(np.log(2)))
