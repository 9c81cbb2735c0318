"""Frequency of the event by the slope of a spline through the cumulative residuals (Gupta et al. 2020, section 4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._sample import Sample

N_GRID = 101
"""Number of fractiles at which the slope is evaluated."""

_BLOCK = 2**16  # rows of the matrix of the spline that are made at a time


@dataclass(frozen=True, eq=False)
class SplineFrequency:
    r"""Slope of the cubic spline that fits the cumulative residuals best, and its standard deviation under calibration.

    The points are :math:`(i / n, h_i - \tilde h_i)`, i = 0 to n; knots are equally spaced and the ends straight
    ("linear run-out"). The slope is a linear function of the labels, so that its mean, 0, and its variance under
    calibration are exact.

    Attributes
    ----------
    fractile, score : arrays of shape (n_grid,)
        Where the slope is evaluated, and the prediction there.
    deviation : array of shape (n_grid,)
        Slope of the cumulative residuals: frequency of the event minus prediction.
    std : array of shape (n_grid,)
        Its standard deviation if the model is calibrated.
    """

    fractile: NDArray[np.float64]
    score: NDArray[np.float64]
    deviation: NDArray[np.float64]
    std: NDArray[np.float64]

    @classmethod
    def of(cls, sample: Sample, n_knots: int) -> SplineFrequency:
        """Fit the spline to a sample with two outcomes; with few observations there are fewer knots."""
        from scipy.interpolate import CubicSpline

        n, p = sample.n_samples, sample.expected[:, 1]
        knots = np.linspace(0.0, 1.0, min(n_knots, n + 1))
        basis = CubicSpline(knots, np.eye(len(knots)), bc_type="natural")
        weights = _slope_weights(basis, len(knots), n)
        # Tied predictions have no order: each label of a block counts as the mean of the block.
        start = np.flatnonzero(np.append(True, np.diff(sample.event) > 0))
        size = np.diff(np.append(start, n))
        weights = np.add.reduceat(weights, start, axis=1) / size
        residual, variance = (np.add.reduceat(values, start) for values in ((sample.outcome == 1) - p, p * (1 - p)))
        grid = np.linspace(0.0, 1.0, N_GRID)
        rows = n * np.arange(N_GRID)  # over N_GRID - 1, in integers, so that an event and its complement mirror
        at_most, at_least = -(-rows // (N_GRID - 1)) - 1, rows // (N_GRID - 1)
        slope = basis.derivative()(grid)
        covariance = (weights * variance) @ weights.T
        return cls(
            fractile=grid,
            score=(sample.event[np.maximum(at_most, 0)] + sample.event[np.minimum(at_least, n - 1)]) / 2,
            deviation=slope @ (weights @ residual),
            std=np.sqrt(np.clip(np.einsum("gj,jk,gk->g", slope, covariance, slope), 0.0, None)),
        )


def _slope_weights(basis: object, n_knots: int, n: int) -> NDArray[np.float64]:
    """Return the values of the spline at its knots as functions of the labels, ``(n_knots, n)``."""
    squares = np.zeros((n_knots, n_knots))
    after = np.zeros((n_knots, n))  # the label of row i adds to all points from i + 1 on
    total = np.zeros(n_knots)
    for end in range(n + 1, 0, -_BLOCK):  # from the last point to the first
        begin = max(end - _BLOCK, 0)
        values = basis(np.arange(begin, end) / n)  # type: ignore[operator]
        squares += values.T @ values
        sums = total + np.cumsum(values[::-1], axis=0)[::-1]
        total = sums[0]
        first = max(begin, 1)
        after[:, first - 1 : end - 1] = sums[first - begin :].T
    return np.linalg.solve(squares, after) / n
