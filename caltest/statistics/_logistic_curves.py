"""Logistic regressions of many outcomes on the same predictions: smooth curves of the logit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._logistic_fits import fit_logistic
from caltest.predictions._arrays import Booleans, Floats, Integers
from caltest.predictions.inputs._refusals import refuse

_N_KNOTS = 5
_OUTER = 0.05  # share of the observations beyond the first and the last knot
_FEW = 100  # with fewer observations the outer knots are the fifth ones from the ends
_MOST_STEPS, _FEW_STEPS = 80, 15
_MOST_CELLS = 256  # of neighbouring observations, from whose curves the others start
_LONGEST = 4.0  # a step at a logit of 0: beyond it the quadratic approximation is of no use
_NEAR = 3e-6  # change of a logit: the square of it is left
_SOLVED = 1e-14  # change of a probability, where logits grow without limit
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
    def of(cls, logit: Floats, raw: Floats, weight: Floats) -> LogisticCurves:
        """Return the regressions on features ``(n_samples, n_features)``, which span 1 and the logit of predictions."""
        root = np.sqrt(weight * np.exp(-np.logaddexp(0, logit) - np.logaddexp(0, -logit)))[:, None]
        weighted = raw * root
        length = np.sqrt(np.square(weighted).sum(axis=0))
        left, size, _ = np.linalg.svd(weighted / np.where(length > 0, length, 1.0), full_matrices=False)
        kept = left[:, size > _RANK * size.max(initial=0.0)]
        return cls(kept / root, kept.T @ (root[:, 0] * logit), weight)

    def logits(self, outcomes: NDArray[Any]) -> Floats:
        """Return the fitted logits ``(n_replicates, n_samples)`` of outcomes 0 and 1 of the same shape."""
        if not self.design.shape[1]:  # without observations
            return np.zeros(outcomes.shape)
        coefficient = np.tile(self.start, (len(outcomes), 1))
        if len(self.design) > 2 * _MOST_CELLS:
            place, cells = self._cells
            share = np.add.reduceat(outcomes * self.weight, place, axis=1) / cells.weight
            solved = cells.improve(share, coefficient, _FEW_STEPS)
            coefficient[~solved] = self.start
        self.improve(outcomes, coefficient)
        curves = np.zeros(outcomes.shape)
        for each, feature in zip(coefficient.T, self._columns, strict=True):  # a product depends on the shapes
            curves += each[:, None] * feature
        return curves

    def improve(self, outcomes: NDArray[Any], coefficient: Floats, most_steps: int = _MOST_STEPS) -> Booleans:
        """Move coefficients ``(n_replicates, n_features)`` in place to the best ones; return which have arrived."""
        solved = np.empty(len(outcomes), dtype=np.bool_)
        limits = most_steps, _LONGEST, _NEAR, _SOLVED, _RIDGE
        happened = np.ascontiguousarray(outcomes, dtype=np.float64)
        fit_logistic(self._columns, self.weight, happened, *limits, coefficient, solved)
        return solved

    @cached_property
    def _columns(self) -> Floats:
        return np.ascontiguousarray(self.design.T)

    @cached_property
    def _cells(self) -> tuple[Integers, LogisticCurves]:
        """First observation of each cell (bin) of neighbours, and the regressions on the mean features of cells.

        Their coefficients are near those of all observations, and soon found.
        """
        place = np.arange(0, len(self.design), -(-len(self.design) // _MOST_CELLS))
        weight = np.add.reduceat(self.weight, place)
        design = np.add.reduceat(self.design * self.weight[:, None], place) / weight[:, None]
        return place, LogisticCurves(design, self.start, weight)

    def fitted(self, outcomes: NDArray[Any]) -> Floats:
        """Return the fitted probabilities ``(n_replicates, n_samples)`` of outcomes 0 and 1 of the same shape."""
        return expit(self.logits(outcomes))


def spline(logit: Floats, weight: Floats) -> LogisticCurves:
    """Return the regressions on a restricted cubic spline of logits ``(n_samples,)``, increasing and finite."""
    if np.isinf(logit[[0, -1]]).any():
        refuse(
            "`y_prob` must be above 0 and below 1 for `smoother='spline'`, which needs the logit of predictions, got "
            f"{int(logit[0] > -np.inf)}; use smoother='loess'."
        )
    raw = np.column_stack([np.ones_like(logit), logit, *_bends(logit, _knots(logit))])
    return LogisticCurves.of(logit, raw, weight)


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
