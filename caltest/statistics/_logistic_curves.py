"""Logistic regressions of many outcomes on the same predictions: smooth curves of the logit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caltest.predictions._arrays import Floats
from caltest.predictions.inputs._refusals import refuse

_N_KNOTS = 5
_OUTER = 0.05  # share of the observations beyond the first and the last knot
_FEW = 100  # with fewer observations the outer knots are the fifth ones from the ends
_MOST_STEPS = 80
_LONGEST = 4.0  # a step at a logit of 0: beyond it the quadratic approximation is of no use
_SOLVED = 1e-14  # change of a probability
_RIDGE = 1e-13  # share of the information that is added to it: it may be singular
_RANK = 1e-10
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class LogisticCurves:
    """The logistic regressions of many outcomes on the same features of the predictions.

    Attributes
    ----------
    design : array of shape (n_samples, n_features)
        The features with an intercept, combined so that their information is the identity where predictions are right.
    start : array of shape (n_features,)
        Coefficients that return the predictions themselves.
    weight : array of shape (n_samples,)
        Weights of the observations.
    """

    design: Floats
    start: Floats
    weight: Floats

    @classmethod
    def of(cls, logit: Floats, features: list[Floats], weight: Floats) -> LogisticCurves:
        """Return the regressions on an intercept, the logit of the predictions and features, ``(n_samples,)`` each."""
        raw = np.column_stack([np.ones_like(logit), logit, *features])
        root = np.sqrt(weight * np.exp(-np.logaddexp(0, logit) - np.logaddexp(0, -logit)))[:, None]
        weighted = raw * root
        length = np.sqrt(np.square(weighted).sum(axis=0))
        left, size, _ = np.linalg.svd(weighted / np.where(length > 0, length, 1.0), full_matrices=False)
        kept = left[:, size > _RANK * size.max(initial=0.0)]
        return cls(kept / root, kept.T @ weighted[:, 1], weight)

    def logits(self, outcomes: Floats) -> Floats:
        """Return the fitted logits ``(n_replicates, n_samples)`` of outcomes 0 and 1 of the same shape."""
        n_features = self.design.shape[1]
        if not n_features:  # without observations
            return np.zeros_like(outcomes)
        product = (self.design[:, :, None] * self.design[:, None, :]).reshape(len(self.design), -1)
        coefficient = np.tile(self.start, (len(outcomes), 1))
        is_open = np.ones(len(outcomes), dtype=np.bool_)  # all are computed, so that the shape of products stays
        for _ in range(_MOST_STEPS):
            if not is_open.any():
                break
            logit = coefficient @ self.design.T
            prob = expit(logit)
            variance = prob * (1 - prob)
            gradient = ((outcomes - prob) * self.weight) @ self.design
            information = ((self.weight * variance) @ product).reshape(-1, n_features, n_features)
            ridge = np.maximum(_RIDGE * np.trace(information, axis1=1, axis2=2), _TINY)
            information += ridge[:, None, None] * np.eye(n_features)
            step = np.linalg.solve(information, gradient[:, :, None])[:, :, 0]
            change = np.abs(step @ self.design.T)
            too_long = (change / (_LONGEST + np.abs(logit) / 2)).max(axis=1)
            coefficient += np.where(is_open, 1 / np.maximum(too_long, 1.0), 0.0)[:, None] * step
            is_open &= (change * variance).max(axis=1) > _SOLVED
        return np.asarray(coefficient @ self.design.T)

    def fitted(self, outcomes: Floats) -> Floats:
        """Return the fitted probabilities ``(n_replicates, n_samples)`` of outcomes 0 and 1 of the same shape."""
        return expit(self.logits(outcomes))


def spline(logit: Floats, weight: Floats) -> LogisticCurves:
    """Return the regressions on a restricted cubic spline of logits ``(n_samples,)``, increasing and finite."""
    if np.isinf(logit[[0, -1]]).any():
        refuse(
            "`y_prob` must be above 0 and below 1 for `smoother='spline'`, which needs the logit of predictions, got "
            f"{int(logit[0] > -np.inf)}; use smoother='loess'."
        )
    return LogisticCurves.of(logit, _bends(logit, _knots(logit)), weight)


def polynomial(logit: Floats, weight: Floats, degree: int) -> LogisticCurves:
    """Return the regressions on a polynomial of logits ``(n_samples,)``."""
    return LogisticCurves.of(logit, [np.power(logit, power) for power in range(2, degree + 1)], weight)


def expit(logit: Floats) -> Floats:
    """Return probabilities from logits."""
    from scipy import special

    return np.asarray(special.expit(logit))


def _knots(logit: Floats) -> Floats:
    """Return the knots at equally spaced quantiles, as in Hmisc 4.8; equal ones count once."""
    knots = np.quantile(logit, np.linspace(_OUTER, 1 - _OUTER, _N_KNOTS))
    if 10 <= len(logit) < _FEW:
        knots[[0, -1]] = logit[4], logit[-5]
    return np.unique(knots)


def _bends(logit: Floats, knots: Floats) -> list[Floats]:
    """Return the features ``(n_samples,)`` of Harrell (2015), equation 2.25: cubic, and linear beyond the knots."""
    if len(knots) < 3:
        return []
    last, before = knots[-1], knots[-2]

    def cube(knot: float) -> Floats:
        return np.asarray(np.clip(logit - knot, 0.0, None) ** 3)

    return [
        cube(knot) + (cube(last) * (before - knot) - cube(before) * (last - knot)) / (last - before)
        for knot in knots[:-2]
    ]
