"""Random signs of the sums of groups, around every squared l2 error at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._group_draws import signed_sums_of_groups
from caltest.resampling._group_shocks import Shocks
from caltest.statistics._segments import Segments

_LEAST = 1e-12  # of the squares of the sums of groups, which counts as variation between them


@dataclass(frozen=True, eq=False)
class GroupSigns:
    r"""T where the sum of each group has a random sign, and cells have a mean residual.

    With :math:`S_{gb} = \epsilon_g R_{gb} + W_{gb}\, c\, \pi_b`, for sums R, signs :math:`\epsilon`, weights W of
    groups in cells and a pattern :math:`\pi` of mean residuals, T is :math:`A + c B + \theta` with the squared error
    :math:`\theta = c^2 |\pi|^2` of the cells: one pass over the groups serves every value of it.

    Attributes
    ----------
    value, ratio : arrays of shape (n_draws,)
        A, and the variance of the centred sums of groups over the observed one.
    along : array of shape (n_patterns, n_draws)
        B of each pattern.
    quadratic : float
        Variance of A.
    linear, length : arrays of shape (n_patterns,)
        Variance of B and squared error of each pattern.
    """

    value: NDArray[np.float64]
    ratio: NDArray[np.float64]
    along: NDArray[np.float64]
    quadratic: float
    linear: NDArray[np.float64]
    length: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        segments: Segments,
        base: NDArray[np.float64],
        centred: NDArray[np.float64],
        patterns: Sequence[NDArray[np.float64]],
        shocks: Shocks,
    ) -> GroupSigns:
        """Draw the signs of sums ``base (n_segments, n_columns)``, of which ``centred`` shows the variance."""
        n_cells, n_columns = len(segments.count), segments.n_columns
        between = float(np.square(np.add.reduceat(centred, segments.group_start[:-1], axis=0)).sum())
        between = max(between, _LEAST * float(np.square(base).sum()))
        pairs = 0.0
        linear = np.zeros(len(patterns))
        order = np.argsort(segments.place, kind="stable")
        for b, rows in enumerate(np.split(order, np.cumsum(np.bincount(segments.place, minlength=n_cells))[:-1])):
            some = base[rows]
            joint = some.T @ some if len(some) > n_columns else some @ some.T  # the sums of squares are the same
            own = np.square(np.square(some).sum(axis=1)).sum()
            pairs += segments.factor[b] ** 2 * max(float(np.square(joint).sum() - own), 0.0)
            linear += [np.square(some @ pattern[b, :n_columns]).sum() for pattern in patterns]
        moved = np.array([pattern[:, :n_columns] for pattern in patterns]).reshape(-1, n_cells, n_columns)
        value, variance = np.empty((2, shocks.n_draws))
        along = np.empty((len(patterns), shocks.n_draws))
        for part, shock in shocks.of_groups():
            drawn = np.empty((len(patterns), shock.shape[1]))
            signed_sums_of_groups(segments.layout, shock, base, moved, value[part], drawn, variance[part])
            along[:, part] = drawn
        return cls(
            value,
            variance / between if between > 0 else np.ones(shocks.n_draws),
            along,
            2 * pairs / segments.total**2,
            4 * linear / segments.total**2,
            np.array([segments.squared_error(pattern) for pattern in patterns]),
        )

    def pivots(self, theta: float) -> Iterator[tuple[NDArray[np.float64], float]]:
        """Yield T minus theta over its standard deviation of all draws, and the observed one, for each pattern."""
        tiny = np.finfo(float).tiny
        shifts: Iterable[tuple[Any, Any]] = [(0.0, 0.0)]  # of T, and their variances
        if theta > 0:
            square = theta / self.length
            shifts = zip(np.sqrt(square)[:, None] * self.along, square * self.linear, strict=True)
        for shift, linear in shifts:
            spread = np.sqrt(self.quadratic * self.ratio**2 + linear * self.ratio + tiny)
            yield (self.value + shift) / spread, float(np.sqrt(self.quadratic + linear + tiny))
