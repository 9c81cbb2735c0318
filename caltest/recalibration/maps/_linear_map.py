"""Maps softmax(Wz + b) with a full or diagonal W: likelihood, gradient, Hessian and fit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Floats, Integers
from caltest.predictions.inputs._scale import softmax_in_place
from caltest.recalibration.maps import _newton
from caltest.recalibration.maps._logits import blocks

MOST_BY_NEWTON = 600
"""Of more parameters than these the maximum is found by L-BFGS instead of Newton's method."""

SEPARATED = 1e-6
"""Where the loss is below this many nats per observation, the labels are separated and the search ends."""

_DECREMENT = 1e-24, 1e-22  # of a full and a diagonal W: squared length of the last step, in the Hessian there
_FALLS_FAST = 0.02  # of the squared length of the step
_DAMPING = 1e-10  # of the mean curvature, in directions in which the map does not change
_GRADIENT, _MAX_ITERATIONS = 1e-6, 1000  # of L-BFGS; a standard error is 1 / sqrt(n_samples) in these units


@dataclass(frozen=True)
class Layout:
    """How the parameters of softmax(Wz + b) stand in one array.

    They are w and b of shape (2, n_classes) for a diagonal W, otherwise the rows of W, each followed by its intercept,
    (n_classes, n_classes + 1).

    Attributes
    ----------
    n_classes : int
        Number of classes K.
    diagonal : bool
        Whether W is diagonal; then its weights are an array ``(n_classes,)``.
    """

    n_classes: int
    diagonal: bool

    @property
    def n_parameters(self) -> int:
        """Number of parameters."""
        return 2 * self.n_classes if self.diagonal else self.n_classes * (self.n_classes + 1)

    @property
    def identity(self) -> Floats:
        """The weights of the map that changes nothing."""
        return np.ones(self.n_classes) if self.diagonal else np.eye(self.n_classes)

    def split(self, theta: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return weights and intercepts, which are parts of the array."""
        if self.diagonal:
            return theta[: self.n_classes], theta[self.n_classes :]
        table = theta.reshape(self.n_classes, -1)
        return table[:, :-1], table[:, -1]

    def join(self, weight: Floats, intercept: Floats) -> Floats:
        """Return the array of weights and intercepts."""
        return np.concatenate([weight, intercept]) if self.diagonal else np.column_stack([weight, intercept]).ravel()

    def tempered(self, inverse: float) -> Floats:
        """Return the parameters of temperature scaling."""
        return self.join(inverse * self.identity, np.zeros(self.n_classes))

    def scores(self, logits: NDArray[Any], theta: Floats) -> NDArray[Any]:
        """Return Wz + b in the type of the logits."""
        weight, intercept = self.split(theta.astype(logits.dtype, copy=False))
        scores = logits * weight if self.diagonal else logits @ weight.T
        scores += intercept
        return np.asarray(scores)

    def losses(self, logits: NDArray[Any], outcome: Integers, theta: Floats) -> Any:
        """Return the negative log-likelihood of each observation ``(n_samples,)``."""
        found = np.empty(len(logits))
        for rows in blocks(*logits.shape):
            scores = self.scores(logits[rows].astype(np.float64), theta)
            scores -= scores.max(axis=1, keepdims=True)
            found[rows] = np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(scores)), outcome[rows]]
        return found


@dataclass(eq=False)
class Curvature:
    """The second derivatives of a likelihood as they were computed last, and the squared length of the last step.

    Attributes
    ----------
    hessian : array of shape (n_parameters, n_parameters) or None
        Without the penalty.
    slope : float
        What the gradient promises along the step.
    """

    hessian: Floats | None = None
    slope: float = math.inf


@dataclass(frozen=True, eq=False)
class LinearMap:
    r"""The penalised negative log-likelihood of softmax(Wz + b), in nats per observation.

    .. math:: -\sum_i v_i \log \mathrm{softmax}_{y_i}(W z_i + b) + \sum_m \rho_m \theta_m^2

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
    layout : Layout
        What the parameters are.
    curvature : Curvature
        What Newton's method knows; for another penalty of the same likelihood it may go on with it.
    """

    logits: NDArray[Any]
    outcome: Integers
    share: Floats
    penalty: Floats
    layout: Layout
    curvature: Curvature = field(default_factory=Curvature)

    def loss_and_gradient(self, theta: Floats) -> tuple[float, Floats]:
        """Return the penalised negative log-likelihood and its derivatives ``(n_parameters,)``."""
        loss, gradient = 0.0, np.zeros(theta.size)
        by_weight, by_intercept = self.layout.split(gradient)
        for rows in self._blocks:
            z, share = self.logits[rows], self.share[rows]
            scores = self.layout.scores(z, theta)
            own = np.arange(len(z)), self.outcome[rows]
            scores -= scores.max(axis=1, keepdims=True)
            loss -= float(share @ scores[own])
            np.exp(scores, out=scores)
            total = scores.sum(axis=1, keepdims=True)
            loss += float(share @ np.log(total[:, 0]))
            scores /= total
            scores[own] -= 1
            scores *= share[:, None].astype(scores.dtype)
            by_weight += self._products(scores, z)
            by_intercept += scores.sum(axis=0)
        loss += float(self.penalty @ theta**2)
        return loss, gradient + 2 * self.penalty * theta

    def hessian(self, theta: Floats) -> Floats:
        """Return the second derivatives of the likelihood ``(n_parameters, n_parameters)``, without the penalty's."""
        return self._diagonal_hessian(theta) if self.layout.diagonal else self._full_hessian(theta)

    def _diagonal_hessian(self, theta: Floats) -> Floats:
        k = self.layout.n_classes
        found = np.zeros((theta.size, theta.size))
        for rows in self._blocks:
            z, share = self.logits[rows].astype(np.float64), self.share[rows, None]
            prob = softmax_in_place(self.layout.scores(z, theta))
            terms = np.hstack([prob * z, prob])
            weighted = share * prob
            own = np.einsum("ik,ik->k", weighted, z * z), np.einsum("ik,ik->k", weighted, z), weighted.sum(axis=0)
            first, second = np.arange(k), np.arange(k, 2 * k)
            found[first, first] += own[0]
            found[second, second] += own[2]
            found[first, second] += own[1]
            found[second, first] += own[1]
            terms *= np.sqrt(share)
            found -= terms.T @ terms  # of a matrix with itself NumPy computes one half only
        return found

    def _full_hessian(self, theta: Floats) -> Floats:
        r"""Return the second derivatives of the likelihood, of which each number is computed once.

        With x = (z, 1) the block of classes :math:`j \ne k` is :math:`-\sum_i v_i p_{ij} p_{ik} x_i x_i^\top`: pairs of
        probabilities times pairs of x. All blocks of a class sum to 0, as probabilities sum to 1.
        """
        k = self.layout.n_classes
        first, second = np.triu_indices(k, 1)
        lower, upper = np.triu_indices(k + 1)
        sums = np.zeros((len(first), len(lower)))
        for rows in self._blocks:
            z = self.logits[rows].astype(np.float64)
            x = np.vstack([z.T, np.ones(len(z))])
            prob = np.ascontiguousarray(softmax_in_place(self.layout.scores(z, theta)).T)
            own = prob * self.share[rows]
            sums += _products_of_pairs(own, prob, 1) @ _products_of_pairs(x, x, 0).T
        block = np.empty((len(first), k + 1, k + 1))
        block[:, lower, upper] = block[:, upper, lower] = -sums
        found = np.zeros((k, k, k + 1, k + 1))
        found[first, second] = found[second, first] = block
        found[np.diag_indices(k)] = -found.sum(axis=1)
        return found.swapaxes(1, 2).reshape(theta.size, -1)

    def minimise(self, theta: Floats) -> tuple[Floats, float]:
        """Return the parameters of the smallest loss, from a start, and the loss there."""
        if theta.size > MOST_BY_NEWTON or self.logits.dtype != np.float64:
            return self._by_lbfgs(theta)
        self.curvature.slope = math.inf
        decrement = _DECREMENT[self.layout.diagonal]
        return _newton.minimise(self, theta, decrement=decrement, enough=SEPARATED)

    def newton_step(self, theta: Floats, gradient: Floats) -> Floats:
        """Return what Newton's method subtracts from the parameters, ``(n_parameters,)``.

        The last second derivatives of a full W, which take longer than several steps, serve as long as the slope falls
        fast.
        """
        known = self.curvature
        if known.hessian is not None and not self.layout.diagonal:
            step = self._solve(known.hessian, gradient)
            if (slope := float(gradient @ step)) <= _FALLS_FAST * known.slope:
                known.slope = slope
                return step
        known.hessian = self.hessian(theta)
        step = self._solve(known.hessian, gradient)
        known.slope = float(gradient @ step)
        return step

    def _solve(self, hessian: Floats, gradient: Floats) -> Floats:
        return _newton.solve_damped(hessian + np.diag(2 * self.penalty), gradient, _DAMPING)

    def _by_lbfgs(self, theta: Floats) -> tuple[Floats, float]:
        """Search in parameters that have unit curvature at the start, w and b of a class being uncorrelated there."""
        from scipy.optimize import minimize

        split, join = self.layout.split, self.layout.join
        of_weight, of_intercept, centre = self._curvatures(theta)

        def inner(u: Floats) -> Floats:
            weight, intercept = split(u)
            w = weight / of_weight
            return join(w, intercept / of_intercept - self._over_logits(w * centre))

        def function(u: Floats) -> tuple[float, Floats]:
            loss, gradient = self.loss_and_gradient(inner(u))
            by_w, by_b = split(gradient)
            return loss, join((by_w - self._per_class(by_b) * centre) / of_weight, by_b / of_intercept)

        w, b = split(theta)
        start = join(w * of_weight, (b + self._over_logits(w * centre)) * of_intercept)
        options = {
            "maxcor": 20,
            "gtol": _GRADIENT,
            "ftol": 1e-13,
            "maxiter": _MAX_ITERATIONS,
            "maxfun": _MAX_ITERATIONS,
        }
        found = minimize(function, start, jac=True, method="L-BFGS-B", options=options)
        return inner(found.x), float(found.fun)

    def _curvatures(self, theta: Floats) -> tuple[Floats, ...]:
        """Return roots of curvatures of weights and intercepts, and the centres of logits for each class."""
        shape = self.layout.identity.shape
        squares, products, alone = np.zeros(shape), np.zeros(shape), np.zeros(self.layout.n_classes)
        for rows in self._blocks:
            z = self.logits[rows]
            prob = softmax_in_place(self.layout.scores(z, theta))
            prob *= 1 - prob
            prob *= self.share[rows, None].astype(prob.dtype)
            alone += prob.sum(axis=0)
            products += self._products(prob, z)
            squares += self._products(prob, z * z)
        by_weight, by_intercept = self.layout.split(2 * self.penalty)
        alone = np.maximum(alone, 1e-3 * alone.max() + 1e-300) + by_intercept
        centre = products / self._per_class(alone)
        curvature = np.maximum(squares - centre * products, 0.0)
        curvature = np.maximum(curvature, 1e-6 * curvature.max() + 1e-300) + by_weight
        return np.sqrt(curvature), np.sqrt(alone), centre

    def _products(self, values: NDArray[Any], z: NDArray[Any]) -> NDArray[Any]:
        """Return the sums of products of values of the classes with the logits that belong to their weights."""
        return np.einsum("ik,ik->k", values, z) if self.layout.diagonal else values.T @ z

    def _over_logits(self, values: Floats) -> Floats:
        return values if self.layout.diagonal else values.sum(axis=1)

    def _per_class(self, values: Floats) -> Floats:
        return values if self.layout.diagonal else values[:, None]

    @cached_property
    def _blocks(self) -> list[slice]:
        return list(blocks(len(self.logits), self.layout.n_classes * (1 if self.layout.diagonal else 8)))


def _products_of_pairs(one: Floats, other: Floats, beyond: int) -> Floats:
    """Return ``one[j] * other[k]`` for all ``k >= j + beyond``, row by row."""
    ends = np.cumsum(np.arange(len(one) - beyond, 0, -1))
    found = np.empty((ends[-1], one.shape[1]))
    for j, part in enumerate(np.split(found, ends[:-1])):
        np.multiply(one[j], other[j + beyond :], out=part)
    return found
