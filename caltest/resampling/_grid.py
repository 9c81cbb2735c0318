"""Sums of independent contributions on a grid: Fourier convolution, tilting, and quantiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from caltest.resampling._distributions import CellDistribution

NEGLIGIBLE = 1e-19
"""Atoms of less mass are dropped; a million of them lose 1e-13."""
SMALLEST_GRID = 2**14
"""Number of points."""
_FEWEST_STEPS, _ROOM = 256, 64  # of the grid: below a quantile, and above it, where it smears atoms

_Atoms = tuple[NDArray[np.int64], NDArray[np.float64]]


def quantile_of_sum(cells: Sequence[CellDistribution], q: float) -> float:
    """Return the q-quantile of a sum, to within 1/256 of it or the step of a grid of 2**14 points.

    Rare large contributions make the grid coarse. Contributions above the quantile are cut off, which does not change
    the distribution below it, until the grid is fine enough.
    """
    if q <= math.prod(float(cell.mass[0]) for cell in cells):
        return sum(float(cell.values[0]) for cell in cells)
    before = math.inf
    while True:
        step = end_of_grid(cells) / SMALLEST_GRID
        pmf = convolve([split(cell.values, cell.mass, step) for cell in cells], SMALLEST_GRID)
        found = float(np.interp(q, np.cumsum(pmf), np.arange(SMALLEST_GRID) * step))
        if found >= _FEWEST_STEPS * step or step > before / 2:
            return found
        cells, before = [cell.cut_off(2 * found + _ROOM * step) for cell in cells], step


def split(values: NDArray[np.float64], mass: NDArray[np.float64], step: float) -> _Atoms:
    """Split atoms linearly over the two grid points beside them: the mean stays exact."""
    position = values / step
    point = position.astype(np.int64)
    upper = mass * (position - point)
    return np.concatenate([point, point + 1]), np.concatenate([mass - upper, upper])


def convolve(cells: Sequence[_Atoms], size: int) -> NDArray[np.float64]:
    """Return the distribution of the sum on grid points ``0 .. size - 1``; mass above them must be negligible."""
    spectra = (np.fft.rfft(np.bincount(np.minimum(point, size - 1), mass, minlength=size)) for point, mass in cells)
    return np.clip(np.fft.irfft(reduce(np.multiply, spectra), size), 0.0, None)


def end_of_grid(cells: Sequence[CellDistribution]) -> float:
    """Return where a grid may end: the largest possible sum, or what is exceeded with probability below 1e-18.

    Splitting may move an atom up by one step per cell; the grid has room for that, as what leaves it would wrap.
    """
    cells = [cell.heavier_than(NEGLIGIBLE) for cell in cells]
    mean, std = sum(cell.mean for cell in cells), math.sqrt(sum(cell.variance for cell in cells))
    top = largest = sum(cell.values[-1] for cell in cells)
    for width in (14, 20, 30, 50, 80, 120):
        if mean + width * std < largest and tilt(cells, mean + width * std)[1] < math.log(1e-18):
            top = mean + width * std
            break
    return top * (1 + 2 * (len(cells) + 2) / SMALLEST_GRID) + 1e-300


def tilted_mass(cell: CellDistribution, theta: float) -> NDArray[np.float64]:
    """Return the probabilities of the atoms under the measure of density exp(theta x), up to a constant."""
    weight = np.exp(theta * (cell.values - cell.values[-1]) + np.log(cell.mass))
    return weight / weight.sum()


def tilt(cells: Sequence[CellDistribution], x: float) -> tuple[float, float]:
    """Return theta that moves the mean to x, and the log of Chernoff's bound E exp(theta (T - x))."""
    low, high, theta = 0.0, math.inf, 0.0
    for _ in range(200):
        tilted = [CellDistribution(cell.values, tilted_mass(cell, theta)) for cell in cells]
        mean, variance = sum(cell.mean for cell in tilted), sum(cell.variance for cell in tilted)
        if abs(mean - x) <= 1e-3 * math.sqrt(variance):
            break
        low, high = (theta, high) if mean < x else (low, theta)
        newton = theta + (x - mean) / variance if variance > 0 else math.nan  # NaN bisects
        theta = newton if low < newton < high else (low + high) / 2 if math.isfinite(high) else 2 * theta + 1
    log_moments = [
        theta * cell.values[-1] + math.log(np.exp(theta * (cell.values - cell.values[-1]) + np.log(cell.mass)).sum())
        for cell in cells
    ]
    return theta, sum(log_moments) - theta * x
