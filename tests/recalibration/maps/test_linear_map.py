"""The likelihood of linear maps: its derivatives, and that Newton's method and L-BFGS find the same maximum."""

from dataclasses import replace

import numpy as np
import pytest

from caltest.recalibration.maps._linear_map import Layout, LinearMap
from caltest.recalibration.maps._linear_scaling import odir_penalty, validate_ridge
from tests.recalibration.maps.test_base import over_confident


def problem(*, diagonal, ridge=0.3, n_samples=60, n_classes=4):
    prob, y_true = over_confident(n_samples, n_classes)
    share = np.random.default_rng(1).random(n_samples)
    layout = Layout(n_classes, diagonal)
    return LinearMap(np.log(prob), y_true, share / share.sum(), odir_penalty(layout, ridge), layout)


@pytest.mark.parametrize("diagonal", [True, False])
def test_the_loss_is_its_definition(diagonal):
    likelihood = problem(diagonal=diagonal)
    theta = np.random.default_rng(2).normal(size=likelihood.penalty.size)
    weights, intercept = theta.reshape(2, -1) if diagonal else (theta.reshape(4, 5)[:, :4], theta.reshape(4, 5)[:, 4])
    weights = np.diag(weights) if diagonal else weights
    loss = 0.0
    for z, label, share in zip(likelihood.logits, likelihood.outcome, likelihood.share, strict=True):
        scores = [sum(weights[k][j] * z[j] for j in range(4)) + intercept[k] for k in range(4)]
        loss -= share * (scores[label] - np.log(sum(np.exp(scores))))
    loss += 0.3 / 12 * sum(weights[k][j] ** 2 for k in range(4) for j in range(4) if j != k)
    loss += 0.3 / 4 * sum(intercept**2)
    assert likelihood.loss_and_gradient(theta)[0] == pytest.approx(loss, rel=1e-12)
    each = likelihood.layout.losses(likelihood.logits, likelihood.outcome, theta)
    assert likelihood.share @ each + likelihood.penalty @ theta**2 == pytest.approx(loss, rel=1e-12)


@pytest.mark.parametrize("diagonal", [True, False])
def test_derivatives_are_those_of_finite_differences(diagonal):
    likelihood, h = problem(diagonal=diagonal), 1e-6
    theta = np.random.default_rng(2).normal(size=likelihood.penalty.size)
    around = [
        [likelihood.loss_and_gradient(theta + sign * h * axis) for sign in (1, -1)] for axis in np.eye(len(theta))
    ]
    _, gradient = likelihood.loss_and_gradient(theta)
    assert gradient == pytest.approx(np.array([(up[0] - down[0]) / (2 * h) for up, down in around]), abs=1e-8)
    rows = np.array([(up[1] - down[1]) / (2 * h) for up, down in around])
    assert likelihood.hessian(theta) + np.diag(2 * likelihood.penalty) == pytest.approx(rows, abs=1e-7)


@pytest.mark.parametrize("diagonal", [True, False])
def test_known_curvature_changes_no_minimum(diagonal):
    """The second derivatives of another ridge, or from far away, are computed again where they lead too slowly."""
    first = problem(diagonal=diagonal, ridge=100.0, n_samples=300)
    start = first.layout.tempered(1.0)
    first.minimise(first.layout.tempered(5.0))
    for ridge in (10.0, 0.1, 1e-3):
        alone = problem(diagonal=diagonal, ridge=ridge, n_samples=300)
        then = replace(alone, curvature=first.curvature)
        for found in (alone.minimise(start)[0], then.minimise(start)[0]):
            assert is_minimum(alone, found)
        gap = alone.layout.scores(alone.logits, found - alone.minimise(start)[0])
        assert np.ptp(gap, axis=1).max() < 1e-8


def is_minimum(likelihood, theta):
    """No derivative exceeds twice what the last step, of a squared length of 1e-24 in the Hessian, leaves of it."""
    curvature = likelihood.hessian(theta).diagonal() + 2 * likelihood.penalty
    return np.all(np.abs(likelihood.loss_and_gradient(theta)[1]) < 2e-12 * np.sqrt(curvature))


@pytest.mark.parametrize("diagonal", [True, False])
@pytest.mark.parametrize("ridge", [1e-3, 1.0])
def test_both_methods_find_the_same_maximum(diagonal, ridge):
    likelihood = problem(diagonal=diagonal, ridge=ridge, n_samples=300)
    start = np.repeat([1.0, 0.0], 4) if diagonal else np.column_stack([np.eye(4), np.zeros(4)]).ravel()
    newton, lbfgs = likelihood.minimise(start)[0], likelihood._by_lbfgs(start)[0]
    assert is_minimum(likelihood, newton)
    prob = [np.exp(likelihood.layout.scores(likelihood.logits, theta)) for theta in (newton, lbfgs)]
    prob = [one / one.sum(axis=1, keepdims=True) for one in prob]
    assert prob[0] == pytest.approx(prob[1], abs=1e-3)
    gap = likelihood.loss_and_gradient(lbfgs)[0] - likelihood.loss_and_gradient(newton)[0]
    assert -1e-14 < gap < 1e-7


def test_ridges_are_validated():
    assert validate_ridge(np.array([0.1, 10.0, 1.0])) == (10.0, 1.0, 0.1)
    assert validate_ridge(2) == (2.0,)
    for bad in (-1.0, np.inf, [], [1.0, 1.0]):
        with pytest.raises(ValueError, match="`ridge`"):
            validate_ridge(bad)
    for bad in ("cv", [None], None):
        with pytest.raises(TypeError, match="`ridge`"):
            validate_ridge(bad)
