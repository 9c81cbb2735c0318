r"""Least-squares natural cubic spline through cumulative sums, and its slope (Gupta et al. 2020, appendix C).

The points are :math:`(i / n, h_i)`, i = 1 to n, with evenly spaced knots; beyond the ends the spline is straight
("natural", "linear run-out"). All classes have the same fractiles, so that one factorisation serves all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ROUNDS = 200
_TOLERANCE = 1e-12

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class CumulativeSpline:
    r"""Natural cubic splines with the same knots and fractiles, as linear functions of the values that they fit.

    With :math:`A_{ij} = a_j(t_i)`, the j-th cardinal spline at fractile :math:`t_i`, the knots have the values
    :math:`\hat v = \arg\min \sum_i w_i ((A \hat v)_i - h_i)^2` and the slope at :math:`t_i` is
    :math:`(A' \hat v)_i`.

    Attributes
    ----------
    orthogonal, triangular : arrays of shape (n, n_knots) and (n_knots, n_knots)
        QR factors of A, whose rows are multiplied by the roots of the weights.
    slope : array of shape (n, n_knots)
        Derivatives :math:`A'` of the cardinal splines at the fractiles.
    root_weight : array of shape (n,) or None
        Roots of the weights; None if all are 1.
    """

    orthogonal: Floats
    triangular: Floats
    slope: Floats
    root_weight: Floats | None

    @classmethod
    def of(cls, fractile: Floats, n_knots: int, weight: Floats | None = None) -> CumulativeSpline:
        """Return the splines with ``n_knots`` knots, evenly spaced from 0 to 1, for points at the fractiles."""
        from scipy.interpolate import CubicSpline

        cardinal = CubicSpline(np.linspace(0.0, 1.0, n_knots), np.eye(n_knots), bc_type="natural")
        value, root = cardinal(fractile), None
        if weight is not None:
            root = np.sqrt(weight)
            value *= root[:, None]
        orthogonal, triangular = np.linalg.qr(value)
        return cls(orthogonal, triangular, cardinal(fractile, 1), root)

    def fit(self, height: Floats) -> Floats:
        """Return the values at the knots, ``(n_knots,)``, of the spline that fits ``height (n,)`` best."""
        return np.linalg.solve(self.triangular, self.projection(height))

    def distance(self, height: Floats, knots: Floats) -> float:
        """Return the sum of squares between ``height (n,)`` and the spline with the values ``knots (n_knots,)``.

        A part that is the same for all splines is left out.
        """
        target = self.projection(height)
        return float(np.square(self.triangular @ knots - target).sum() - target @ target)

    def projection(self, height: Floats) -> Floats:
        """Return the coordinates of ``height`` in the column space of A, ``(n_knots,)``."""
        return (height if self.root_weight is None else height * self.root_weight) @ self.orthogonal

    def fit_constrained(self, height: Floats, slope: Floats, low: Floats, high: Floats) -> Floats:
        """Return the values at the knots of the best spline with ``low <= slope @ values <= high``.

        The quadratic programme is solved with the constraints that the solution violates, which are added until none
        is left, while those that are not needed any more are left out: the distance grows with every round, so that no
        set comes back. Each round is a least distance problem (Lawson and Hanson 1974, chapter 23), solved by
        `scipy.optimize.nnls`.
        """
        target = self.projection(height)
        direction = np.linalg.solve(self.triangular.T, slope.T).T  # slopes as functions of the coordinates
        found, active = target, np.zeros((2, len(slope)), dtype=bool)
        for _ in range(_ROUNDS):
            value = direction @ found
            short = np.stack([low - value, value - high])
            worst = _worst_of_runs(short) & ~active
            if not worst.any():
                break
            side, place = np.nonzero(active | worst)
            rows = np.where(side == 0, 1.0, -1.0)[:, None] * direction[place]
            limit = np.where(side == 0, low[place], -high[place])
            change, needed = _least_distance(rows, limit - rows @ target)
            found = target + change
            active[:] = False
            active[side[needed], place[needed]] = True
        return np.linalg.solve(self.triangular, found)


def _worst_of_runs(short: Floats) -> NDArray[np.bool_]:
    """Return which constraints are violated more than their neighbours, ``(2, n)``."""
    padded = np.pad(short, ((0, 0), (1, 1)), constant_values=-np.inf)
    return (short > _TOLERANCE) & (short >= padded[:, :-2]) & (short >= padded[:, 2:])


def _least_distance(rows: Floats, limit: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the shortest vector x with ``rows @ x >= limit``, and which rows determine it; there is one."""
    from scipy.optimize import nnls

    matrix = np.vstack([rows.T, limit])
    aim = np.append(np.zeros(rows.shape[1]), 1.0)
    multiplier = nnls(matrix, aim)[0]
    residual = matrix @ multiplier - aim
    return -residual[:-1] / residual[-1], multiplier > 0
