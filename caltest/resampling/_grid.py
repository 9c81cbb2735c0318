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
_NOISE = 1e-13  # of a mass that a Fourier transform returned, over the largest one
_PARTS = 8  # the end of a grid is a power of 2^(1/8)
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
    """Return the distribution of the sum on grid points ``0 .. size - 1``; the last one has what is beyond it, too.

    Atoms beyond the last point are left out of the transforms, so that they do not wrap. Sums beyond it of several
    atoms must be negligible, because they do.
    """
    at_once = max(_BLOCK // size, 1)  # several transforms in one call are faster
    spectrum, inside = np.ones(size // 2 + 1), 1.0
    for start in range(0, len(cells), at_once):
        some = cells[start : start + at_once]
        mass = np.stack([np.bincount(np.minimum(point, size), weight, minlength=size + 1) for point, weight in some])
        inside *= float(np.prod(1 - mass[:, size]))
        spectrum = spectrum * np.multiply.reduce(np.fft.rfft(mass[:, :size]), axis=0)
    pmf = np.clip(np.fft.irfft(spectrum, size), 0.0, None)
    pmf[-1] += 1 - inside
    return pmf


def end_of_grid(cells: Sequence[CellDistribution]) -> float:
    """Return where a grid may end: the largest possible sum, or what is exceeded with probability below 1e-18.

    Splitting may move an atom up by one step per cell; the grid has room for that, as what leaves it would wrap. Far
    from the mean a mass is mostly the rounding of a Fourier transform, which exponential moments enlarge: so much is
    subtracted from all, and the end is rounded up to a power of 2^(1/8). So the same predictions have the same grid in
    whatever way their distributions were computed, and p-values that agree to rounding, not just to the grid's error.
    """
    cells = [cell.less(_NOISE * float(cell.mass.max())) for cell in cells]
    top = sum(float(cell.values[-1]) for cell in cells)
    std = math.sqrt(sum(cell.variance for cell in cells))
    if std > 0:  # Chernoff's inequality, for the t of a normal distribution and for heavier tails
        t = np.array(_SLOPES) / std
        log_moment = t * top
        for cell in cells:
            log_moment += np.log(np.exp(np.outer(t, cell.values - cell.values[-1])) @ cell.mass)
        top = min(top, float(((log_moment - math.log(1e-18)) / t).min()))
    top = top * (1 + 2 * (len(cells) + 2) / SMALLEST_GRID) + 1e-300
    return 2.0 ** (math.ceil(_PARTS * math.log2(top)) / _PARTS)
