"""The jackknife over groups of observations, for the intercept and the slope of a logistic model."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from caltest.predictions._arrays import Booleans, Floats, Integers
from caltest.predictions.inputs._parts import sums_in_parts

FEWEST_GROUPS = 6
"""Fewer groups show too little of how much groups differ: of five, no two-sided p-value of signs is below 1/16."""


@dataclass(frozen=True, eq=False)
class Clusters:
    """Observations in groups that are independent of each other; predictions are strictly between 0 and 1.

    Attributes
    ----------
    logit, event, weight : arrays of shape (n_samples,)
        Logit of the prediction, whether the event happened, weight.
    group : array of shape (n_samples,)
        Number of the group, from 0 without gaps.
    n_groups : int
        Number of groups.
    """

    logit: Floats
    event: Floats
    weight: Floats
    group: Integers
    n_groups: int

    @classmethod
    def of(cls, logit: Floats, event: Booleans, weight: Floats, group: Integers) -> Clusters:
        """Return the groups that have an observation."""
        present = np.bincount(group) > 0 if len(group) else np.zeros(0, dtype=bool)
        numbered = (np.cumsum(present) - 1)[group] if len(group) else group
        return cls(logit, event.astype(np.float64), weight, numbered, int(present.sum()))

    def _sums(self, *values: Floats) -> list[Floats]:
        return [sums_in_parts(self.group, value, self.n_groups) for value in values]

    def _at(self, intercept: float, slope: float) -> tuple[Floats, Floats]:
        """Return residuals and variances at an intercept and a slope, both times the weight."""
        prob = 1.0 / (1.0 + np.exp(-np.clip(intercept + slope * self.logit, -700.0, 700.0)))
        return self.weight * (self.event - prob), self.weight * prob * (1 - prob)

    def intercept_error(self, intercept: float) -> float:
        r"""Return the standard error (CR3) of the intercept with slope 1; infinite if one group decides it.

        Without group g the intercept is moved by :math:`u_g / (V - V_g)` to first order, with the residuals and the
        variances of the group. For rare events it is moved by :math:`\log(1 - u_g / (V - V_g))`, and for rare
        non-events by the mirror image. The larger size of both is taken.
        """
        residual, variance = self._sums(*self._at(intercept, 1.0))
        rest = variance.sum() - variance
        moved = np.divide(np.abs(residual), rest, out=np.full(self.n_groups, np.inf), where=rest > 0)
        if (moved >= 1).any():
            return math.inf
        return self._error(np.log1p(-moved))

    def slope_error(self, intercept: float, slope: float) -> float:
        """Return the standard error (CR3) of the slope by one step of Newton's method without each group."""
        residual, variance = self._at(intercept, slope)
        score, score_logit, v, v_logit, v_square = self._sums(
            residual, residual * self.logit, variance, variance * self.logit, variance * self.logit**2
        )
        a, b, c = (part.sum() - part for part in (v, v_logit, v_square))
        determinant = a * c - b**2
        if not (determinant > 1e-12 * a * c).all():
            return math.inf
        return self._error((a * score_logit - b * score) / determinant)

    def student(self, deviation: float, error: float, missed: float) -> tuple[float, float]:
        """Return the half width of an interval by Student's t, and the p-value of a deviation."""
        from scipy.special import stdtr, stdtrit

        freedom = self.n_groups - 1
        value = abs(deviation) / error if error > 0 else math.inf
        return error * float(stdtrit(freedom, 1 - missed)), 2 * float(stdtr(freedom, -value))

    def _error(self, moved: Floats) -> float:
        return math.sqrt((self.n_groups - 1) / self.n_groups * float(moved @ moved))
