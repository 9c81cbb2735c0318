"""Local regression on the predictions: smooth curves that are linear in the outcomes, as loess and lowess of R."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from caltest.predictions._arrays import Floats

_MARGIN = 0.005  # of the range of the predictions, by which loess widens it
_CELL = 0.2  # of the span: loess divides the predictions until no cell (bin) has a larger share of them
_STEP = 0.01  # of the range: lowess interpolates over shorter distances
_FLAT = 0.001  # of the range: spread of the neighbours below which lowess takes their mean
_RANK = 100 * np.finfo(np.float64).eps


class Piece(NamedTuple):
    """Observations from ``start`` to ``stop``; ``basis (n_used, n)`` combines the coefficients from ``first`` on."""

    start: int
    stop: int
    first: int
    basis: Floats


@dataclass(frozen=True, eq=False)
class LocalRegression:
    """A smooth curve of any values of the observations, evaluated at their predictions.

    Attributes
    ----------
    operator : array of shape (n_coefficients, n_samples)
        Coefficients of the curve from the values of the observations.
    pieces : tuple of Piece
        The curve from its coefficients, piece by piece.
    """

    operator: Floats
    pieces: tuple[Piece, ...]

    def fitted(self, values: Floats) -> Floats:
        """Return the curve at each observation, ``(n_replicates, n_samples)``, of values of the same shape."""
        return self.at(values @ self.operator.T)

    def at(self, coefficient: Floats) -> Floats:
        """Return the curve at each observation, ``(n_replicates, n_samples)``, from its coefficients."""
        curve = np.empty((len(coefficient), self.operator.shape[1]))
        for start, stop, first, basis in self.pieces:
            np.matmul(coefficient[:, first : first + len(basis)], basis, out=curve[:, start:stop])
        return curve


def loess(position: Floats, weight: Floats, span: float) -> LocalRegression:
    """Return the local quadratic regression of Cleveland & Devlin (1988) at ``position (n_samples,)``, increasing.

    As in R, polynomials with tricube weights are fitted at the vertices of a tree of cells (bins), and cubic
    polynomials with their values and slopes lie between. A neighbourhood in which all predictions are equal is widened
    to the next one, where R gives an error. If all predictions are equal the curve is the mean.
    """
    if position[0] == position[-1]:
        return lowess(position, weight, span)
    n_near = min(max(int(len(position) * span + 1e-5), 1), len(position))
    vertex = _vertices(position, int(len(position) * span * _CELL))
    rows = np.empty((2 * len(vertex), len(position)))  # a list of rows would be there twice
    for row, at in zip(rows.reshape(-1, 2, len(position)), vertex, strict=True):
        row[:] = _quadratic(position, weight, at, n_near)
    ends = np.searchsorted(position, vertex)
    ends[0], ends[-1] = 0, len(position)
    pieces = []
    for cell, (start, stop) in enumerate(pairwise(ends)):
        width = vertex[cell + 1] - vertex[cell]
        t = (position[start:stop] - vertex[cell]) / width
        rest = 1 - t
        basis = np.array(
            [rest**2 * (1 + 2 * t), width * rest**2 * t, t**2 * (1 + 2 * rest), -width * t**2 * rest], dtype=np.float64
        )
        pieces.append(Piece(int(start), int(stop), 2 * cell, basis))
    return LocalRegression(rows, tuple(pieces))


def _vertices(position: Floats, most: int) -> Floats:
    """Return the vertices of a tree whose cells have at most so many observations, or equal ones, increasing."""
    reach = position[-1] - position[0]
    margin = _MARGIN * max(reach, np.abs(position[[0, -1]]).max() * 1e-10 + 1e-30)
    found = {position[0] - margin, position[-1] + margin}
    open_cells = [(0, len(position) - 1)]
    while open_cells:
        low, high = open_cells.pop()
        cut = _cut(position, low, high)
        if high - low + 1 > most and position[cut] not in found:
            found.add(position[cut])
            open_cells += [(low, cut), (cut + 1, high)]
    return np.sort([*found])


def _cut(position: Floats, low: int, high: int) -> int:
    """Return the last observation of the lower half of those from low to high.

    It differs from the next one: of the nearest such observations the upper one is taken. As in R the search ends at
    the first end that it meets, with the middle.
    """
    middle, inside = (low + high) // 2, position[low : high + 1]
    below, above = (int(np.searchsorted(inside, position[middle], side)) + low - 1 for side in ("left", "right"))
    if above - middle <= middle - below:
        return above if above < high else middle
    return below if below >= low else middle


def _quadratic(position: Floats, weight: Floats, at: float, n_near: int) -> Floats:
    """Return what each observation adds to the value and to the slope of the curve at a point, ``(2, n_samples)``."""
    distance = np.abs(position - at)
    local = weight * _tricube(distance, np.partition(distance, n_near - 1)[n_near - 1])
    near = np.flatnonzero(local)
    root = np.sqrt(local[near])
    change = position[near] - at
    design = np.column_stack([root, change * root, change * change * root])
    scale = np.sqrt(np.square(design).sum(axis=0))
    scale[scale == 0] = 1.0
    rows = np.zeros((2, len(position)))
    rows[:, near] = (np.linalg.pinv(design / scale, rcond=_RANK) * root / scale[:, None])[:2]
    return rows


def _tricube(distance: Floats, reach: float) -> Floats:
    """Return the weights ``(n_samples,)`` of observations at a distance, 0 beyond the reach of a neighbourhood."""
    if not (distance < reach).any():  # all of the neighbourhood is at its edge
        reach = distance[distance > reach].min(initial=np.inf)
    share = np.where(distance < reach, distance / reach, 1.0)
    return _cubed(1 - _cubed(share))


def _cubed(values: Floats) -> Floats:
    """Return third powers, as products: general powers take ten times as long."""
    return values * values * values


def lowess(position: Floats, weight: Floats, span: float) -> LocalRegression:
    """Return the local linear regression of Cleveland (1979) at ``position (n_samples,)``, increasing.

    As R's ``lowess(iter=0)``: lines are fitted at predictions that are a hundredth of the range apart, and the curve is
    linear between them.
    """
    n = len(position)
    value, start = np.unique(position, return_index=True)
    anchor = [0]
    while anchor[-1] < len(value) - 1:
        last = int(np.searchsorted(value, value[anchor[-1]] + _STEP * (value[-1] - value[0]), "right")) - 1
        anchor.append(max(anchor[-1] + 1, last))
    n_near = min(max(int(span * n + 1e-7), 2), n)
    rows = np.empty((len(anchor), n))
    for row, at in zip(rows, value[anchor], strict=True):
        row[:] = _line(position, weight, at, n_near)
    if len(anchor) == 1:
        return LocalRegression(rows, (Piece(0, n, 0, np.ones((1, n))),))
    ends = np.append(start[anchor[:-1]], n)
    pieces = []
    for i, (low, high) in enumerate(pairwise(ends)):
        left, right = value[anchor[i]], value[anchor[i + 1]]
        t = (position[low:high] - left) / (right - left)
        pieces.append(Piece(int(low), int(high), i, np.array([1 - t, t])))
    return LocalRegression(rows, tuple(pieces))


def _line(position: Floats, weight: Floats, at: float, n_near: int) -> Floats:
    """Return what each observation adds to the value of the curve at a prediction, ``(n_samples,)``."""
    distance = np.abs(position - at)
    reach = np.partition(distance, n_near - 1)[n_near - 1]
    share = distance / reach if reach > 0 else np.where(distance > 0, 1.0, 0.0)
    # As in the program of 1985: the nearest and the farthest thousandth are taken as the centre and the edge.
    local = np.where(share <= 0.001, 1.0, np.where(share > 0.999, 0.0, _cubed(1 - _cubed(share))))
    local *= weight
    local /= local.sum()
    centre = local @ position
    spread = local @ np.square(position - centre)
    if reach > 0 and math.sqrt(spread) > _FLAT * (position[-1] - position[0]):
        local *= 1 + (at - centre) / spread * (position - centre)
    return np.asarray(local)


SMOOTHERS: dict[str, tuple[Callable[[Floats, Floats, float], LocalRegression], float]] = {
    "loess": (loess, 0.75),
    "lowess": (lowess, 2 / 3),
}
"""Local regressions by name, with their default share of the observations in a neighbourhood."""
