"""Logistic regression on a few features by Newton's method, without regularisation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from caltest.recalibration import _newton

_DECREMENT, _SEPARATED = 1e-21, 1e-9

Floats = NDArray[np.float64]


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
    coef, loss = _newton.minimise(problem, np.zeros(features.shape[1]), decrement=_DECREMENT, enough=_SEPARATED)
    if loss < _SEPARATED and np.isin(target, (0.0, 1.0)).all():
        msg = "the labels are separated by the predictions."
        raise ValueError(msg)
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
        self._prob = _expit(score)
        gradient = (self._weight * (self._prob - self._target)) @ self._features
        return float(self._weight @ (np.logaddexp(0.0, score) - self._target * score)), gradient

    def newton_step(self, theta: Floats, gradient: Floats) -> Floats:
        """Return the step at the parameters for which the loss was computed last."""
        curvature = self._weight * self._prob * (1 - self._prob)
        hessian = (self._features * curvature[:, None]).T @ self._features
        return np.asarray(np.linalg.lstsq(hessian, gradient, rcond=1e-14)[0], dtype=np.float64)


def _expit(z: Floats) -> Floats:
    return 0.5 * (1.0 + np.tanh(0.5 * z))
