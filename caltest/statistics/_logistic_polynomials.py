"""Logistic regressions of many outcomes on polynomials of the logit of their predictions."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Booleans, Floats
from caltest.predictions._sample import Sample
from caltest.statistics._base import in_equal_batches
from caltest.statistics._logistic_curves import LogisticCurves, expit
from caltest.statistics._recalibration_scores import logits

_WIDTH, _CELLS = 0.25, 32  # of a cell of logits, and least number of cells
_NODES = 5  # of a cell: integrals of polynomials up to degree 9 are those of its observations
_RANK = 1e-10  # length of what a power adds, on logits from -1 to 1: with less it adds nothing
_FAR = 20.0  # logits from the predictions to a fitted curve: products of sums with its coefficients would cancel
_STEEP = 0.5  # difference of fitted logits at neighbouring nodes of a cell


@dataclass(frozen=True, eq=False)
class LogisticPolynomials:
    r"""The logistic regressions of many outcomes on polynomials of the logits of the same predictions.

    The log-likelihood of coefficients :math:`\beta` is :math:`\beta^\top s - A(\beta)`. The sums s of the powers over
    the events are all that it needs from the outcomes, and A, a sum over the predictions, is the same for all outcomes.
    It is computed on nodes of Gauss in the place of many predictions. Where a fitted curve is so steep that their
    distance counts, it is fitted to all predictions.

    Powers are combined to the polynomials that are orthonormal under the information of the predictions, by the
    recurrence of Stieltjes: with those of a wide range of logits, sums over events and likelihoods would cancel.

    Attributes
    ----------
    logit : array of shape (n,)
        Finite logits of predictions.
    weight : array of shape (n,)
        Weights of the observations.
    last_degree : int
        The largest degree.
    most_values : int
        Number of different predictions up to which they are their own nodes.
    """

    logit: Floats
    weight: Floats
    last_degree: int
    most_values: int = 256
    node: Floats = field(init=False)
    node_weight: Floats = field(init=False)
    curves: list[LogisticCurves] = field(init=False)
    _beside: Booleans = field(init=False)
    _recurrence: tuple[list[float], list[float]] = field(init=False)
    _features: Floats = field(init=False)
    _rounding: float = field(init=False)

    def __post_init__(self) -> None:
        node, mass, beside = _nodes(self.logit, self.weight, self.most_values)
        middle, half = self._range
        centre, length = _recurrence((self.logit - middle) / half, self.logit, self.weight, self.last_degree)
        object.__setattr__(self, "_recurrence", (centre, length))
        own, rank = self.powers(node), len(centre)
        start = np.zeros(max(rank, 2))
        if rank:  # the logit, of the first two polynomials
            start[0] = (middle + half * centre[0]) * length[0]
        if rank > 1:
            start[1] = half * length[1] * length[0]
        size = float(np.logaddexp(0.0, self.logit) @ self.weight - np.logaddexp(0.0, node) @ mass)
        used = [min(degree + 1, rank) for degree in range(self.last_degree + 1)]
        for name, value in {
            "node": node,
            "node_weight": mass,
            "curves": [LogisticCurves(own[:, :n], start[:n], mass) for n in used],
            "_beside": beside,
            "_features": self.powers(self.logit),
            "_rounding": size,
        }.items():
            object.__setattr__(self, name, value)

    @cached_property
    def _range(self) -> tuple[float, float]:
        """Middle and half of the length of the range of the logits, or 1."""
        low, high = (self.logit.min(), self.logit.max()) if self.logit.size else (0.0, 0.0)
        return (low + high) / 2, (high - low) / 2 or 1.0

    @cached_property
    def of_all_values(self) -> LogisticPolynomials:
        """The same with all predictions as nodes."""
        return LogisticPolynomials(self.logit, self.weight, self.last_degree, len(self.logit))

    def powers(self, logit: Floats) -> Floats:
        """Return the orthonormal polynomials ``(n, last_degree + 1)``, 0 from the degree on that adds nothing."""
        middle, half = self._range
        centre, length = self._recurrence
        u, found = (logit - middle) / half, np.zeros((self.last_degree + 1, len(logit)))
        before, now = np.zeros_like(u), np.ones_like(u)
        for k in range(len(centre)):
            now = now / length[k]
            found[k] = now
            before, now = now, (u - centre[k]) * now - (length[k] * before if k else 0.0)
        return found.T

    def sums(self, outcomes: NDArray[Any]) -> Floats:
        """Return the sums of the powers over the events, ``(n_replicates, last_degree + 1)``."""
        weighted = self._features * self.weight[:, None]
        return in_equal_batches(lambda part: (part @ weighted).T, outcomes).T

    def fit(self, outcomes: NDArray[Any], degree: int) -> tuple[Floats, Floats]:
        """Return coefficients ``(n_replicates, degree + 1)`` of `powers`, and twice their log-likelihood."""
        curves = self.curves[degree]
        n_used = len(curves.start)
        prob = expit(self.node)
        usual = (prob * self.node_weight) @ curves.design
        to_shares = (prob * (1 - prob))[:, None] * curves.design
        # Events at the nodes, any number, that have the sums: only these matter to the likelihood.
        inverse = np.linalg.pinv((curves.design * self.node_weight[:, None]).T @ to_shares)

        def largest(part: Floats) -> Floats:  # batches are filled up with zeros, which are solved at once
            own = part + usual
            found = np.tile(curves.start, (len(part), 1))
            curves.improve(prob + part @ inverse.T @ to_shares.T, found)
            logit = found @ curves.design.T
            twice = 2 * ((found * own).sum(axis=1) - np.logaddexp(0.0, logit) @ self.node_weight - self._rounding)
            far = np.abs(logit - self.node).max(axis=-1, initial=0.0) > _FAR
            return np.vstack([found.T, twice, self.are_steep(logit) | far])

        *rows, twice, again = in_equal_batches(largest, self.sums(outcomes)[:, :n_used] - usual, few=True)
        coefficient = np.zeros((len(outcomes), degree + 1))
        coefficient[:, :n_used] = np.array(rows).T
        if (again > 0).any():
            coefficient[again > 0, :n_used], twice[again > 0] = self._fit_observations(
                outcomes[again > 0], coefficient[again > 0, :n_used]
            )
        return coefficient, twice

    def _fit_observations(self, outcomes: NDArray[Any], coefficient: Floats) -> tuple[Floats, Floats]:
        """Return what `fit` does, from residuals of observations and with likelihoods whose terms have one sign."""
        features = self._features[:, : coefficient.shape[1]]
        found = np.ascontiguousarray(coefficient)
        LogisticCurves(features, found[0], self.weight).improve(outcomes, found)
        twice = []
        for one, happened in zip(found, outcomes, strict=True):  # a product of matrices depends on the shapes
            logit = features @ one
            twice.append(-2 * (np.logaddexp(0.0, np.where(happened == 1, -logit, logit)) @ self.weight))
        return found, np.array(twice)

    def are_steep(self, logit: Floats) -> Booleans:
        """Return whether logits ``(..., n_nodes)`` differ too much between nodes, which then need all predictions."""
        return np.asarray((np.abs(np.diff(logit)) * self._beside).max(axis=-1, initial=0.0) > _STEEP)

    def of_logit(self, coefficient: Floats) -> Floats:
        """Return the coefficients ``(degree + 1,)`` of the powers of the logit, of those of `powers`."""
        powers = np.power(self.node[:, None], np.arange(len(coefficient)))
        scale = np.abs(powers).max(axis=0, initial=0.0)
        scale[scale == 0] = 1.0
        fitted = self.powers(self.node)[:, : len(coefficient)] @ coefficient
        return np.asarray(np.linalg.lstsq(powers / scale, fitted, rcond=None)[0] / scale)


def fit_polynomials(sample: Sample, last_degree: int) -> LogisticPolynomials:
    """Return the regressions on polynomials of the finite logits of a sample; for `Sample.of_predictions`."""
    logit = sample.of_predictions(logits)
    inner = np.isfinite(logit)
    return LogisticPolynomials(logit[inner], sample.weight_or_ones[inner], last_degree)


def _nodes(x: Floats, weight: Floats, most_values: int) -> tuple[Floats, Floats, Booleans]:
    """Return nodes and their weights, whose sums of smooth functions are those of weighted observations.

    The third array ``(n_nodes - 1,)`` says whether observations of one cell are represented by neighbouring nodes.
    """
    value, index = np.unique(x, return_inverse=True)
    mass: Floats = np.bincount(index, weights=weight, minlength=len(value)).astype(np.float64)
    value, mass = value[mass > 0], mass[mass > 0]
    if len(value) <= most_values:
        return value, mass, np.zeros(max(len(value) - 1, 0), dtype=np.bool_)
    width = min(_WIDTH, (value[-1] - value[0]) / _CELLS)
    cell = np.floor((value - value[0]) / width)
    first = np.flatnonzero(np.diff(cell, prepend=-1.0))
    lengths = np.diff(first, append=len(value))
    middle = value[0] + (cell[first] + 0.5) * width
    u = (value - np.repeat(middle, lengths)) / width
    total = np.add.reduceat(mass, first)
    jacobi = np.zeros((len(first), _NODES, _NODES))  # of the orthogonal polynomials of each cell (Golub and Welsch)
    before, now, norm, ratio = np.zeros_like(u), np.ones_like(u), total, np.zeros_like(total)
    for k in range(_NODES):
        centre = np.divide(np.add.reduceat(mass * u * now**2, first), norm, out=np.zeros_like(norm), where=norm > 0)
        jacobi[:, k, k] = centre
        if k:
            jacobi[:, k, k - 1] = jacobi[:, k - 1, k] = np.sqrt(ratio)
        before, now = now, (u - np.repeat(centre, lengths)) * now - np.repeat(ratio, lengths) * before
        square = np.add.reduceat(mass * now**2, first)
        ratio = np.divide(square, norm, out=np.zeros_like(norm), where=norm > 0)
        norm = square
    place, vector = np.linalg.eigh(jacobi)
    share = np.square(vector[:, 0, :])
    kept = share > np.finfo(float).eps
    which = np.repeat(np.arange(len(first)), kept.sum(axis=1))
    return (middle[:, None] + width * place)[kept], (total[:, None] * share)[kept], np.diff(which) == 0


def _recurrence(u: Floats, logit: Floats, mass: Floats, last_degree: int) -> tuple[list[float], list[float]]:
    """Return centres and lengths of the polynomials of u that are orthonormal under the information of logits."""
    log_information = -np.logaddexp(0.0, logit) - np.logaddexp(0.0, -logit)
    information = mass * np.exp(log_information - log_information.max(initial=-np.inf))
    centres: list[float] = []
    lengths: list[float] = []
    before, now = np.zeros_like(u), np.ones_like(u)
    for k in range(last_degree + 1):
        length = float(np.sqrt(information @ now**2))
        if length <= (_RANK if k else 0.0):
            break
        now = now / length
        centre = float(information @ (u * now**2))
        before, now = now, (u - centre) * now - (length * before if k else 0.0)
        centres.append(centre)
        lengths.append(length)
    return centres, lengths
