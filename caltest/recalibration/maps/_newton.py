"""Newton's method for convex losses, and logistic regression on a few features by it."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from caltest.predictions._arrays import Floats
from caltest.predictions.inputs._refusals import refuse

_MAX_STEPS, _HALVINGS = 100, 40
_SUFFICIENT, _FLATTER = 1e-4, 0.5  # parts of the decrease that the slope promises, and of the slope
_ROUNDING = 4 * float(np.finfo(np.float64).eps)


class ConvexLoss(Protocol):
    """A convex loss with its derivatives."""

    def loss_and_gradient(self, theta: Floats) -> tuple[float, Floats]:
        """Return the loss and its derivatives ``(n_parameters,)``."""

    def newton_step(self, theta: Floats, gradient: Floats) -> Floats:
        """Return what Newton's method subtracts from the parameters, ``(n_parameters,)``."""


def minimise(loss: ConvexLoss, theta: Floats, *, decrement: float, enough: float) -> tuple[Floats, float]:
    r"""Return parameters of the smallest loss, and the loss there; it is at most that of the start, up to rounding.

    A step is halved until the loss has decreased by a part of what the slope promises (Armijo's rule). Near the
    minimum the decrease is less than the rounding error of the loss. There a step is taken if the loss has not
    increased by more than this error and the slope along the step has at most half its size (the approximate Wolfe
    conditions of Hager and Zhang 2005, section 2). If no step is accepted, the search ends where it is.

    Parameters
    ----------
    loss : ConvexLoss
        What is minimised.
    theta : array of shape (n_parameters,)
        The start.
    decrement : float
        The search ends where the squared length of the step in the Hessian is smaller.
    enough : float
        The search ends where the loss is smaller: a likelihood without a maximum tends to 0.

    References
    ----------
    W. W. Hager and H. Zhang (2005), A new conjugate gradient method with guaranteed descent and an efficient line
    search, SIAM Journal on Optimization 16, 170-192.
    """
    value, gradient = loss.loss_and_gradient(theta)
    for _ in range(_MAX_STEPS):
        if value < enough:
            break
        step = loss.newton_step(theta, gradient)
        slope = float(gradient @ step)
        if not slope > decrement:  # a slope that is not a number ends the search too
            break
        for halving in range(_HALVINGS):
            length = 0.5**halving
            tried = theta - length * step
            with np.errstate(over="ignore", invalid="ignore"):  # of a step that is far too long
                new_value, new_gradient = loss.loss_and_gradient(tried)
            if new_value <= value - _SUFFICIENT * length * slope:
                break
            unchanged = new_value <= value + _ROUNDING * (1 + abs(value))
            if unchanged and abs(float(new_gradient @ step)) <= _FLATTER * slope:
                break
        else:
            break
        theta, value, gradient = tried, new_value, new_gradient
    return theta, value


def solve_damped(hessian: Floats, gradient: Floats, damping: float) -> Floats:
    """Return the step of Newton's method; ``damping`` times the mean curvature is added to every curvature.

    A matrix that is singular in spite of it has the step of least squares.
    """
    size = len(gradient)
    hessian[np.diag_indices(size)] += damping * max(float(np.trace(hessian)) / size, 1e-300)
    try:
        step = np.linalg.solve(hessian, gradient)
    except np.linalg.LinAlgError:
        step = np.linalg.lstsq(hessian, gradient)[0]
    return np.asarray(step, dtype=np.float64)


_DECREMENT, _SEPARATED = 1e-21, 1e-9


def fit_logistic(features: Floats, target: Floats, weight: Floats) -> tuple[Floats, float]:
    r"""Return the coefficients of greatest likelihood, ``(n_features,)``, and the mean log loss there.

    The loss is :math:`\sum_i w_i (\log(1 + e^{z_i}) - t_i z_i) / \sum_i w_i` with :math:`z = X \beta`.

    Parameters
    ----------
    features : array of shape (n, n_features)
        X; an intercept is a column of ones.
    target : array of shape (n,)
        Labels or probabilities t in [0, 1].
    weight : array of shape (n,)
        Weights, not negative.

    Raises
    ------
    ValueError
        If the features separate the labels, so that no finite coefficients have the greatest likelihood.
    """
    scale = np.abs(features).max(axis=0)
    scale[scale == 0] = 1.0
    problem = _Likelihood(features / scale, target, weight / weight.sum())
    coef, loss = minimise(problem, np.zeros(features.shape[1]), decrement=_DECREMENT, enough=_SEPARATED)
    if loss < _SEPARATED and np.isin(target, (0.0, 1.0)).all():
        refuse("the labels are separated by the predictions.")
    return coef / scale, loss


def log_loss(event: Floats, rest: Floats, target: Floats, weight: Floats) -> float:
    r"""Return the same loss of probabilities p, given by :math:`\log p` and :math:`\log(1 - p)`."""
    return -float(weight @ (rest + target * (event - rest))) / float(weight.sum())


class _Likelihood:
    """The loss with its derivatives; weights sum to 1."""

    def __init__(self, features: Floats, target: Floats, weight: Floats) -> None:
        self._features, self._target, self._weight = features, target, weight
        self._prob = np.empty(0)

    def loss_and_gradient(self, theta: Floats) -> tuple[float, Floats]:
        score = self._features @ theta
        self._prob = 0.5 * (1.0 + np.tanh(0.5 * score))  # the logistic function
        gradient = (self._weight * (self._prob - self._target)) @ self._features
        return float(self._weight @ (np.logaddexp(0.0, score) - self._target * score)), gradient

    def newton_step(self, theta: Floats, gradient: Floats) -> Floats:
        """Return the step at the parameters for which the loss was computed last."""
        curvature = self._weight * self._prob * (1 - self._prob)
        hessian = (self._features * curvature[:, None]).T @ self._features
        return np.asarray(np.linalg.lstsq(hessian, gradient, rcond=1e-14)[0], dtype=np.float64)
