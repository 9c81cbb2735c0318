r"""Expected miscalibration of predictions that are a function of one feature, by quadrature over level sets.

The truth behind an induced prediction q is the mean of the true probabilities over all features that lead to it,

.. math:: r(q) = \sum_{t : s(t) = q} \frac{f(t)}{|s'(t)|} \pi(t) \Big/ \sum_{t : s(t) = q} \frac{f(t)}{|s'(t)|},

with s the induced prediction, f the density of the feature and :math:`\pi` the induced true probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Booleans, Floats
from caltest.predictions._distances import Distance
from caltest.predictions._lens import LensLike
from caltest.predictions._user_functions import apply_distance, outcomes_of_classes
from caltest.simulation.models._exact import Path, integrate, look
from caltest.simulation.models._gaussian_mixture import Mixture

_GRID = 2**13
_TOLERANCE = 1e-10  # of a panel of the quadrature
_SAME = 1e-7  # induced predictions that differ by less, and whose first log ratio is equal, are of one level set
_STEP = 2e-3  # of the feature, in units of the narrowest component: for derivatives
_SECANTS = 8
_MOST = 1e4  # no log ratio of two doubles is larger, unless one of them is 0
_OFFSETS = np.arange(-2, 3)
_DERIVATIVES = np.linalg.inv(np.vander(_OFFSETS, increasing=True))[1:] * np.arange(1, 5)[:, None]
"""Row j: factors of the values at the offsets in the coefficient of u ** j of the derivative of their polynomial."""


_REACHES = (0.0, 1.5, 4.0, 9.5)  # standard deviations of a component: less than 1e-20 of its mass lies beyond


class Line(NamedTuple):
    """A feature: what quadrature needs.

    ``class_prob`` and ``density`` map features ``(n,)`` to true probabilities ``(n, n_classes)`` and the density.
    ``edges`` increase; the first and the last are the limits, those between mark where the density changes. ``scale``
    is the length on which it changes.
    """

    class_prob: Path
    density: Path
    edges: list[float]
    scale: float


def line_of(mixture: Mixture) -> Line:
    """Return posterior, density, edges of panels and the narrowest standard deviation of a mixture of one feature."""
    _, means, factors, _ = mixture.components
    spread = np.abs(factors[:, 0, 0])
    reach = np.array(_REACHES + tuple(-one for one in _REACHES[1:]))
    return Line(
        lambda t: mixture.posterior(t[:, None]),
        lambda t: mixture.density(t[:, None]),
        np.unique(means[:, 0] + spread * reach[:, None]).tolist(),
        float(spread.min()),
    )


@dataclass(frozen=True)
class _Branch:
    """An interval of the feature on which the log ratio of the induced prediction increases or decreases."""

    low: float
    high: float
    grid: Floats
    ratio: Floats


def level_set_miscalibration(lens: LensLike | None, distance: Distance, y_prob: Path, line: Line) -> float:
    """Return the expected miscalibration of a model of one feature, through any lens, to about 1e-9.

    Parameters
    ----------
    lens : lens or callable or None
        What is looked at.
    distance : callable
        The distance.
    y_prob : callable
        Maps features ``(n,)`` to predictions ``(n, n_classes)``; smooth.
    line : Line
        The feature.

    Raises
    ------
    ValueError
        If the predictions or the distance are too rough.
    """
    _, density, edges, scale = line

    def seen(t: Floats) -> tuple[Floats, Floats]:
        return look(lens, y_prob(t), line.class_prob(t))

    def ratio_at(t: Floats) -> Floats:
        return _log_ratio(seen(t)[0])

    def kinds(t: Floats) -> NDArray[Any]:
        prob = y_prob(t)
        table = np.zeros((1, 1)) if lens is None else outcomes_of_classes(lens, prob)
        return np.broadcast_to(table, (len(t), table.shape[1]))

    n_points = max(_GRID // len(edges), 65)
    grid = np.unique(np.concatenate([np.linspace(a, b, n_points) for a, b in pairwise(edges)]))
    switches = _switches(kinds, grid)
    branches = _branches(ratio_at, grid, switches)
    step = _STEP * scale

    def slope(t: Floats, low: Floats, high: Floats) -> Floats:
        """Derivative of the log ratio from five points of the same branch."""
        width = np.minimum(step, (high - low) / 4)
        centre = np.clip(t, low + 2 * width, high - 2 * width)
        values = ratio_at((centre[:, None] + width[:, None] * _OFFSETS).ravel()).reshape(len(t), 5)
        u = (t - centre) / np.where(width > 0, width, 1.0)
        found = np.einsum("nj,jk,nk->n", u[:, None] ** np.arange(4), _DERIVATIVES, values)
        return found / np.where(width > 0, width, 1.0)

    inner = np.array([branch.high for branch in branches[:-1]])

    def contribution(t: Floats) -> Floats:
        predicted, true = seen(t)
        mass = density(t)
        own = np.searchsorted(inner, t)
        low, high = (np.array([getattr(branch, end) for branch in branches])[own] for end in ("low", "high"))
        level = _log_ratio(predicted)
        weight = mass / np.maximum(np.abs(slope(t, low, high)), 1e-300)
        total, summed = weight.copy(), weight[:, None] * true
        for number, branch in enumerate(branches):
            there = _within(level, branch) & (own != number) & np.isfinite(level)
            if not there.any():
                continue
            rows = np.flatnonzero(there)
            root = _root(ratio_at, branch, level[rows])
            other, other_true = seen(root)
            same = np.abs(other - predicted[rows]).max(axis=1) <= _SAME
            rows, root, other_true = rows[same], root[same], other_true[same]
            if not len(rows):
                continue
            ends = np.full(len(rows), branch.low), np.full(len(rows), branch.high)
            more = density(root) / np.maximum(np.abs(slope(root, *ends)), 1e-300)
            total[rows] += more
            summed[rows] += more[:, None] * other_true
        known = np.isfinite(total) & (total > 0)
        mean = np.where(known[:, None], summed / np.where(known, total, 1.0)[:, None], true)
        return mass * apply_distance(distance, predicted, mean)

    if np.ptp(seen(grid)[0], axis=0).max() <= 1e-12:  # one level set
        predicted, _ = seen(grid[:1])
        columns = range(predicted.shape[1])
        mean = [integrate(lambda t, k=k: density(t) * seen(t)[1][:, k], edges) for k in columns]  # type: ignore[misc]
        return float(apply_distance(distance, predicted, np.array([mean]) / np.sum(mean))[0])
    return integrate(contribution, _edges(ratio_at, branches, edges), _TOLERANCE, panels=4)


def _edges(ratio_at: Path, branches: Sequence[_Branch], edges: Sequence[float]) -> list[float]:
    """Return where the truth may have a kink or a jump: ends of branches, and features with the log ratio of one."""
    found = [*edges, *(end for branch in branches for end in (branch.low, branch.high))]
    for branch in branches:
        level = np.unique([end for other in branches for end in other.ratio[[0, -1]]])
        level = level[np.isfinite(level) & _within(level, branch)]
        found += _root(ratio_at, branch, level).tolist() if len(level) else []
    inside = np.unique(found)
    return inside[np.append(True, np.diff(inside) > 1e-9 * (inside[-1] - inside[0]))].tolist()


def _log_ratio(predicted: Floats) -> Floats:
    """Return a number that is equal for equal induced predictions: log odds, exact where they are near 0 or 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(predicted)
        if predicted.shape[1] == 2:
            return logs[:, 1] - logs[:, 0]
        # Factors without a simple relation to each other, so that different predictions hardly have the same sum.
        factors = np.sqrt(np.arange(2.0, 2.0 + logs.shape[1]))
        return logs @ (factors - factors.mean())


def _switches(kinds: Callable[[Floats], NDArray[Any]], grid: Floats) -> Floats:
    """Return where a lens turns to other classes, such as the most probable one."""
    seen = kinds(grid)
    at = np.flatnonzero((seen[1:] != seen[:-1]).any(axis=1))
    low, high = grid[at], grid[at + 1]
    before = seen[at]
    for _ in range(60 if len(at) else 0):
        middle = (low + high) / 2
        moved = (kinds(middle) == before).all(axis=1)
        low, high = np.where(moved, middle, low), np.where(moved, high, middle)
    return high


def _branches(ratio_at: Path, grid: Floats, switches: Floats) -> list[_Branch]:
    """Return the intervals between turning points of the log ratio and switches of the lens."""
    pieces = np.unique(np.concatenate([grid[[0, -1]], switches]))
    found = []
    for low, high in pairwise(pieces):
        # Just inside: at its ends a lens looks at other classes.
        inset = 1e-13 * max(abs(low), abs(high), 1.0)
        inside = np.concatenate([[low + inset], grid[(grid > low + inset) & (grid < high - inset)], [high - inset]])
        ratio = ratio_at(inside)
        with np.errstate(invalid="ignore"):
            sign = np.sign(np.diff(ratio))
        turns = [_turn(ratio_at, inside[i], inside[i + 2], sign[i]) for i in np.flatnonzero(sign[1:] * sign[:-1] < 0)]
        cuts = [low, *turns, high]
        for a, b in pairwise(cuts):
            start, end = max(a, low + inset), min(b, high - inset)
            points = np.concatenate([[start], inside[(inside > start) & (inside < end)], [end]])
            found.append(_Branch(start, end, points, ratio_at(points)))
    return found


def _turn(ratio_at: Path, low: float, high: float, sign: float) -> float:
    """Return the turning point between two positions."""
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(
        lambda t: float(np.clip(-sign * ratio_at(np.array([t]))[0], -_MOST, _MOST)), bounds=(low, high),
        method="bounded", options={"xatol": 1e-12},
    )  # fmt: skip
    return float(found.x)


def _within(level: Floats, branch: _Branch) -> Booleans:
    ends = branch.ratio[[0, -1]]
    return (level >= ends.min()) & (level <= ends.max())


def _root(ratio_at: Path, branch: _Branch, level: Floats) -> Floats:
    """Return the only feature on a branch with each log ratio: secants between two points that enclose it."""
    up = branch.ratio[-1] >= branch.ratio[0]
    ratio, grid = (branch.ratio, branch.grid) if up else (branch.ratio[::-1], branch.grid[::-1])
    at = np.clip(np.searchsorted(ratio, level), 1, len(ratio) - 1)
    low, high, below, above = grid[at - 1], grid[at], ratio[at - 1] - level, ratio[at] - level
    t = (low + high) / 2
    for number in range(3 * _SECANTS):
        with np.errstate(divide="ignore", invalid="ignore"):
            t = low - below * (high - low) / (above - below)
        t = np.where(np.isfinite(t), t, (low + high) / 2)
        if number % 3 == 2:  # halve from time to time: secants may approach from one side only
            t = (low + high) / 2
        value = ratio_at(t) - level
        left = value < 0
        low, below = np.where(left, t, low), np.where(left, value, below)
        high, above = np.where(left, high, t), np.where(left, above, value)
        if (np.abs(value) <= 1e-14 * np.maximum(1.0, np.abs(level))).all():
            break
    return np.where(np.abs(below) < np.abs(above), low, high)
