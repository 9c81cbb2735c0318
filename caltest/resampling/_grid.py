"""Sums of independent contributions on a grid: Fourier convolution and quantiles."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from caltest.resampling._distributions import CellDistribution

NEGLIGIBLE = 1e-19
"""Atoms of less mass are dropped; a million of them lose 1e-13."""
SMALLEST_GRID = 2**14
"""Number of points."""
_BLOCK = 2**18
_SLOPES = (9.0, 7.0, 5.0, 3.0, 1.5, 0.7, 0.3, 0.1)  # over the standard deviation
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
    at_once = max(_BLOCK // size, 1)  # several transforms in one call are faster
    spectrum = np.ones(size // 2 + 1)
    for start in range(0, len(cells), at_once):
        some = cells[start : start + at_once]
        mass = np.stack([np.bincount(np.minimum(point, size - 1), weight, minlength=size) for point, weight in some])
        spectrum = spectrum * np.multiply.reduce(np.fft.rfft(mass), axis=0)
    return np.clip(np.fft.irfft(spectrum, size), 0.0, None)


def end_of_grid(cells: Sequence[CellDistribution]) -> float:
    """Return where a grid may end: the largest possible sum, or what is exceeded with probability below 1e-18.

    Splitting may move an atom up by one step per cell; the grid has room for that, as what leaves it would wrap.
    """
    cells = [cell.heavier_than(NEGLIGIBLE) for cell in cells]
    top = sum(float(cell.values[-1]) for cell in cells)
    std = math.sqrt(sum(cell.variance for cell in cells))
    if std > 0:  # Chernoff's inequality, for the t of a normal distribution and for heavier tails
        t = np.array(_SLOPES) / std
        log_moment = t * top
        for cell in cells:
            log_moment += np.log(np.exp(np.outer(t, cell.values - cell.values[-1])) @ cell.mass)
        top = min(top, float(((log_moment - math.log(1e-18)) / t).min()))
    return top * (1 + 2 * (len(cells) + 2) / SMALLEST_GRID) + 1e-300
