"""Logistic regression of the outcomes on a restricted cubic spline of the logit of the predictions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caltest.predictions._arrays import Floats
from caltest.predictions.inputs._refusals import refuse

_N_KNOTS = 5
_OUTER = 0.05  # share of the observations beyond the first and the last knot
_FEW = 100  # with fewer observations the outer knots are the fifth ones from the ends
_MOST_STEPS = 60
_LONGEST = 4.0  # a step at a logit of 0: beyond it the quadratic approximation is of no use
_SOLVED = 1e-10  # change of a probability
_RIDGE = 1e-12  # of the information: where labels are separated it vanishes, and the fit has no end


@dataclass(frozen=True, eq=False)
class SplineRegression:
    """The logistic regressions of many outcomes on the same predictions.

    Attributes
    ----------
    design : array of shape (n_samples, n_features)
        The spline with an intercept, in features with the identity as information where predictions are right.
    start : array of shape (n_features,)
        Coefficients that return the predictions themselves.
    weight : array of shape (n_samples,)
        Weights of the observations.
    """

    design: Floats
    start: Floats
    weight: Floats

    @classmethod
    def of(cls, position: Floats, weight: Floats) -> SplineRegression:
        """Return the regressions on predictions ``(n_samples,)``, increasing; 0 and 1 are refused."""
        if position[0] <= 0 or position[-1] >= 1:
            refuse(
                "`y_prob` must be above 0 and below 1 for `smoother='spline'`, which needs the logit of predictions, "
                f"got {position[0] if position[0] <= 0 else position[-1]:g}; use smoother='loess'."
            )
        logit = np.log(position) - np.log1p(-position)
        raw = np.column_stack([np.ones_like(logit), logit, *_bends(logit, _knots(logit))])
        root = np.sqrt(weight * position * (1 - position))[:, None]
        left, size, _ = np.linalg.svd(raw * root, full_matrices=False)
        kept = size > 1e-10 * size[0]
        return cls(left[:, kept] / root, left[:, kept].T @ (logit[:, None] * root)[:, 0], weight)

    def fitted(self, outcomes: Floats) -> Floats:
        """Return the fitted probabilities ``(n_replicates, n_samples)`` of outcomes 0 and 1 of the same shape."""
        n_features = self.design.shape[1]
        product = (self.design[:, :, None] * self.design[:, None, :]).reshape(len(self.design), -1)
        coefficient = np.tile(self.start, (len(outcomes), 1))
        open_fits = np.arange(len(outcomes))
        for _ in range(_MOST_STEPS):
            if not open_fits.size:
                break
            logit = coefficient[open_fits] @ self.design.T
            prob = _expit(logit)
            variance = prob * (1 - prob)
            gradient = ((outcomes[open_fits] - prob) * self.weight) @ self.design
            information = ((self.weight * variance) @ product).reshape(-1, n_features, n_features)
            step = np.linalg.solve(information + _RIDGE * np.eye(n_features), gradient[:, :, None])[:, :, 0]
            change = np.abs(step @ self.design.T)
            too_long = (change / (_LONGEST + np.abs(logit) / 2)).max(axis=1)
            coefficient[open_fits] += step / np.maximum(too_long, 1.0)[:, None]
            open_fits = open_fits[(change * variance).max(axis=1) > _SOLVED]
        return _expit(coefficient @ self.design.T)


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
    scale, last, before = (knots[-1] - knots[0]) ** 2, knots[-1], knots[-2]

    def cube(knot: float) -> Floats:
        return np.asarray(np.clip(logit - knot, 0.0, None) ** 3)

    return [
        (cube(knot) + (cube(last) * (before - knot) - cube(before) * (last - knot)) / (last - before)) / scale
        for knot in knots[:-2]
    ]


def _expit(logit: Floats) -> Floats:
    from scipy.special import expit

    return np.asarray(expit(logit))
