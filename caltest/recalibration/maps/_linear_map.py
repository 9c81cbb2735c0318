"""Maps softmax(Wz + b) with a full or diagonal W: likelihood, gradient, Hessian and fit."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController  # which scikit-learn needs

from caltest.recalibration.maps import _newton
from caltest.recalibration.maps._logits import blocks, softmax_in_place


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which products and solutions of matrices use one thread.

    A product of 8,000 x 110 numbers takes some ten times as long on threads where other programs use the processors.
    """
    return _controller().limit(limits=1, user_api="blas")


@cache
def _controller() -> ThreadpoolController:
    """Return what limits the threads of the libraries that are loaded; looking for them takes milliseconds."""
    return ThreadpoolController()


MOST_BY_NEWTON = 600
"""Of more parameters than these the maximum is found by L-BFGS instead of Newton's method."""

SEPARATED = 1e-6
"""Where the loss is below this many nats per observation, the labels are separated and the search ends."""

_DECREMENT = 1e-22  # of Newton's method: squared length of the last step in the Hessian
_DAMPING = 1e-10  # of the mean curvature, in directions in which the map does not change
_GRADIENT, _MAX_ITERATIONS = 1e-6, 1000  # of L-BFGS; a standard error is 1 / sqrt(n_samples) in these units


@dataclass(frozen=True, eq=False)
class LinearMap:
    r"""The penalised negative log-likelihood of softmax(Wz + b), in nats per observation.

    .. math:: -\sum_i v_i \log \mathrm{softmax}_{y_i}(W z_i + b) + \sum_m \rho_m \theta_m^2

    Parameters are in one array: w and b of shape (2, n_classes) for a diagonal W, otherwise the rows of W, each
    followed by its intercept, (n_classes, n_classes + 1).

    Attributes
    ----------
    logits : array of shape (n_samples, n_classes)
        The logits z; those of float32 are multiplied in float32, sums over blocks of observations are doubles.
    outcome : array of shape (n_samples,)
        Class indices.
    share : array of shape (n_samples,)
        Weights v, whose sum is 1.
    penalty : array of shape (n_parameters,)
        The ridge of each parameter.
    diagonal : bool
        Whether W is diagonal.
    """

    logits: NDArray[Any]
    outcome: NDArray[np.int64]
    share: NDArray[np.float64]
    penalty: NDArray[np.float64]
    diagonal: bool

    @property
    def n_classes(self) -> int:
        """Number of classes K."""
        return int(self.logits.shape[1])

    def loss_and_gradient(self, theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the penalised negative log-likelihood and its derivatives ``(n_parameters,)``."""
        loss, gradient = 0.0, np.zeros(self._shape)
        for rows in self._blocks:
            z, share = self.logits[rows], self.share[rows]
            scores = linear_scores(z, theta.reshape(self._shape), diagonal=self.diagonal)
            own = np.arange(len(z)), self.outcome[rows]
            scores -= scores.max(axis=1, keepdims=True)
            loss -= float(share @ scores[own])
            np.exp(scores, out=scores)
            total = scores.sum(axis=1, keepdims=True)
            loss += float(share @ np.log(total[:, 0]))
            scores /= total
            scores[own] -= 1
            scores *= share[:, None].astype(scores.dtype)
            if self.diagonal:
                gradient[0] += np.einsum("ik,ik->k", scores, z)
                gradient[1] += scores.sum(axis=0)
            else:
                gradient[:, :-1] += scores.T @ z
                gradient[:, -1] += scores.sum(axis=0)
        loss += float(self.penalty @ theta**2)
        return loss, gradient.ravel() + 2 * self.penalty * theta

    def hessian(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the second derivatives ``(n_parameters, n_parameters)``."""
        k = self.n_classes
        found = np.zeros((theta.size, theta.size))
        for rows in self._blocks:
            z, share = self.logits[rows].astype(np.float64), self.share[rows, None]
            prob = softmax_in_place(linear_scores(z, theta.reshape(self._shape), diagonal=self.diagonal))
            if self.diagonal:
                terms = np.hstack([prob * z, prob])
                weighted = share * prob
                own = np.einsum("ik,ik->k", weighted, z * z), np.einsum("ik,ik->k", weighted, z), weighted.sum(axis=0)
                first, second = np.arange(k), np.arange(k, 2 * k)
                found[first, first] += own[0]
                found[second, second] += own[2]
                found[first, second] += own[1]
                found[second, first] += own[1]
            else:
                x = np.column_stack([z, np.ones(len(z))])
                terms = (prob[:, :, None] * x[:, None, :]).reshape(len(z), -1)
                for j in range(k):
                    part = slice(j * (k + 1), (j + 1) * (k + 1))
                    found[part, part] += x.T @ (x * (share * prob[:, j : j + 1]))
            terms *= np.sqrt(share)
            found -= terms.T @ terms  # of a matrix with itself NumPy computes one half only
        found[np.diag_indices(theta.size)] += 2 * self.penalty
        return found

    def minimise(self, theta: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        """Return the parameters of the smallest loss, from a start, and the loss there."""
        if theta.size > MOST_BY_NEWTON or self.logits.dtype != np.float64:
            return self._by_lbfgs(theta)
        with one_blas_thread():
            return _newton.minimise(self, theta, decrement=_DECREMENT, enough=SEPARATED)

    def newton_step(self, theta: NDArray[np.float64], gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what Newton's method subtracts from the parameters, ``(n_parameters,)``."""
        return _newton.solve_damped(self.hessian(theta), gradient, _DAMPING)

    def _by_lbfgs(self, theta: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        """Search in parameters that have unit curvature at the start, w and b of a class being uncorrelated there."""
        from scipy.optimize import minimize

        of_weight, of_intercept, centre = self._curvatures(theta)

        def inner(u: NDArray[np.float64]) -> NDArray[np.float64]:
            weight, intercept = self._parts(u)
            w = weight / of_weight
            return self._join(w, intercept / of_intercept - self._over_logits(w * centre))

        def function(u: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            loss, gradient = self.loss_and_gradient(inner(u))
            by_w, by_b = self._parts(gradient)
            shared = by_b if self.diagonal else by_b[:, None]
            return loss, self._join((by_w - shared * centre) / of_weight, by_b / of_intercept)

        w, b = self._parts(theta)
        start = self._join(w * of_weight, (b + self._over_logits(w * centre)) * of_intercept)
        options = {
            "maxcor": 20,
            "gtol": _GRADIENT,
            "ftol": 1e-13,
            "maxiter": _MAX_ITERATIONS,
            "maxfun": _MAX_ITERATIONS,
        }
        found = minimize(function, start, jac=True, method="L-BFGS-B", options=options)
        return inner(found.x), float(found.fun)

    def _curvatures(self, theta: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        """Return roots of curvatures of weights and intercepts, and the centres of logits for each class."""
        shape = self._parts(theta)[0].shape
        squares, products, alone = np.zeros(shape), np.zeros(shape), np.zeros(self.n_classes)
        for rows in self._blocks:
            z = self.logits[rows]
            prob = softmax_in_place(linear_scores(z, theta.reshape(self._shape), diagonal=self.diagonal))
            prob *= 1 - prob
            prob *= self.share[rows, None].astype(prob.dtype)
            alone += prob.sum(axis=0)
            products += np.einsum("ik,ik->k", prob, z) if self.diagonal else prob.T @ z
            squares += np.einsum("ik,ik->k", prob, z * z) if self.diagonal else prob.T @ (z * z)
        by_weight, by_intercept = self._parts(2 * self.penalty)
        alone = np.maximum(alone, 1e-3 * alone.max() + 1e-300) + by_intercept
        centre = products / (alone if self.diagonal else alone[:, None])
        curvature = np.maximum(squares - centre * products, 0.0)
        curvature = np.maximum(curvature, 1e-6 * curvature.max() + 1e-300) + by_weight
        return np.sqrt(curvature), np.sqrt(alone), centre

    def _over_logits(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values if self.diagonal else values.sum(axis=1)

    def _parts(self, theta: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return weights and intercepts."""
        table = theta.reshape(self._shape)
        return (table[0], table[1]) if self.diagonal else (table[:, :-1], table[:, -1])

    def _join(self, weight: NDArray[np.float64], intercept: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.concatenate([weight, intercept]) if self.diagonal else np.column_stack([weight, intercept]).ravel()

    @property
    def _shape(self) -> tuple[int, int]:
        return (2, self.n_classes) if self.diagonal else (self.n_classes, self.n_classes + 1)

    @cached_property
    def _blocks(self) -> list[slice]:
        return list(blocks(len(self.logits), self.n_classes if self.diagonal else self.n_classes * 8))


def linear_scores(logits: NDArray[Any], table: NDArray[np.float64], *, diagonal: bool) -> NDArray[Any]:
    """Return Wz + b in the type of the logits."""
    own = table.astype(logits.dtype, copy=False)
    scores = logits * own[0] if diagonal else logits @ own[:, :-1].T
    scores += own[1] if diagonal else own[:, -1]
    return np.asarray(scores)


def mean_log_score(
    logits: NDArray[Any], outcome: NDArray[np.int64], table: NDArray[np.float64], *, diagonal: bool
) -> Any:
    """Return the negative log-likelihood of each observation ``(n_samples,)``."""
    found = np.empty(len(logits))
    for rows in blocks(*logits.shape):
        scores = linear_scores(logits[rows].astype(np.float64), table, diagonal=diagonal)
        scores -= scores.max(axis=1, keepdims=True)
        found[rows] = np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(scores)), outcome[rows]]
    return found
