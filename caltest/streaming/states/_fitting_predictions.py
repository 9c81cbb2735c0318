"""Predictions of more than two outcomes that fit what a state holds of those that were added."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from caltest.predictions._arrays import Floats, Integers
from caltest.statistics._entropy import entropy_of
from caltest.streaming.states._values import OutcomeSums

MOST, _MOST_VALUES = 2**14, 2**18
"""Observations, and probabilities, of which labels are simulated in a second or two."""
WIDE = 0.2
"""Share of the variance of predictions within cells above which the smallest errors are not known to some per cent."""
_SPARSE, _RARE = 0.02, 5.0  # share of outcomes of which fewer are expected in a cell: errors do not go with a root
_LEAST, _MOST_CONCENTRATION, _STEPS = 1e-2, 3e2, 9
_TRIED, _MISFIT = 2**12, 1.01  # observations by which the entropy is compared, and how much larger it may be
_TOP = 0.1  # of the variance in a cell, at least, is that of its most probable outcome
_HALVINGS, _SEVERAL, _FARTHEST = 6, 5, 2.0
_EQUAL = 1e-12  # variance of predictions that rounding may leave where all are equal
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class FittingPredictions:
    r"""Predictions that fit a state: in every cell their mean, the sum of their squares, and overall their entropy.

    A state does not hold how predictions vary within a cell. They are taken to be Dirichlet, with the mean m of the
    cell and the concentration :math:`(1 - |m|^2) / (s - |m|^2) - 1` that gives the mean s of the squared lengths. In
    cells with :math:`\max_k m_k > 1/2` the most probable outcome is a beta variable, and what is left is shared by a
    Dirichlet variable; their concentrations follow from s and from one number for all cells, with which the entropy of
    the predictions is that of the state. What falls outside of its cell is moved towards the mean, and the variance is
    corrected for that once. Cells of one observation are exact.

    Attributes
    ----------
    sums : OutcomeSums
        What the state holds.
    """

    sums: OutcomeSums

    @property
    def number(self) -> int:
        """How many there are: as many as in the state, but no more than labels can be simulated of soon."""
        return min(self.sums.n_samples, MOST, max(_MOST_VALUES // self.sums.n_outcomes, 1))

    @property
    def within(self) -> float:
        """Share of the variance of the predictions that lies within cells, of which the state holds little."""
        sums = self.sums
        overall = float(np.square(sums.predicted.sum(axis=0)).sum() / sums.n_samples)
        squares = float(sums.squares.sum())
        inside = squares - float(np.square(self._mean).sum(axis=1) @ sums.count)
        return max(inside, 0.0) / max(squares - overall, _TINY) if inside > 1e-9 * squares else 0.0

    @property
    def why_not(self) -> str:
        """Why smallest errors that are found with these predictions would not be those of the state; or empty."""
        expected = self.sums.predicted * (self.number / self.sums.n_samples)
        if self.within > WIDE:
            share = f"{100 * self.within:.0f} % of the variance of the predictions lies"
            return f"{share} within the cells (bins) of this state, of which it holds sums alone"
        if self.number < self.sums.n_samples and expected[expected < _RARE].sum() > _SPARSE * expected.sum():
            return "it would take too long to simulate so many labels in so many cells (bins)"
        return "" if self._concentration else "no predictions are found that fit what this state holds of them"

    @cached_property
    def prob(self) -> Floats:
        """The predictions ``(number, n_outcomes)``."""
        return self._drawn(self._places(self.number), self._concentration)

    @cached_property
    def _concentration(self) -> float:
        """The concentration with which the entropy is that of the state; 0 if none is as small."""
        few = self._places(min(self.number, _TRIED))
        goal = self.sums.expected_loss / self.sums.n_samples
        low, high = math.log(_LEAST), math.log(_MOST_CONCENTRATION)
        if not (self._mean.max(axis=1) > 1 / 2).any():
            return _LEAST
        if entropy_of(self._drawn(few, _LEAST)).mean() > _MISFIT * goal:
            return 0.0
        for _ in range(_STEPS):  # the entropy increases with the concentration of what is left
            middle = (low + high) / 2
            too_large = entropy_of(self._drawn(few, math.exp(middle))).mean() > goal
            low, high = (low, middle) if too_large else (middle, high)
        return math.exp((low + high) / 2)

    @cached_property
    def _mean(self) -> Floats:
        return self.sums.predicted / self.sums.count[:, None]

    def _places(self, number: int) -> Integers:
        """Return the cells of some observations, in proportion to all."""
        passed = np.cumsum(self.sums.count)
        return np.searchsorted(passed, (np.arange(number) + 0.5) / number * passed[-1])

    def _drawn(self, cell: Integers, concentration: float) -> Floats:
        """Return predictions in cells ``(n,)``, of which the variance is corrected for what was moved."""
        mean, n_cells = self._mean, len(self._mean)
        number = np.bincount(cell, minlength=n_cells)
        length = np.square(mean).sum(axis=1)
        goal = np.maximum(self.sums.squares / self.sums.count - length, 0.0)
        once = self._moved(cell, self._spread(cell, concentration, goal))
        reached = np.bincount(cell, np.square(once - mean[cell]).sum(axis=1), n_cells) / np.maximum(number, 1)
        known = (number >= _SEVERAL) & (reached > 0)
        factor = np.where(known, goal / np.where(known, reached, 1.0), 1.0)
        wider = np.minimum(goal * np.clip(factor, 1 / _FARTHEST, _FARTHEST), 0.999 * (1 - length))
        return self._moved(cell, self._spread(cell, concentration, np.maximum(wider, 0.0)))

    def _spread(self, cell: Integers, concentration: float, variance: Floats) -> Floats:
        """Return predictions with the means of their cells, and a variance in each; they may lie outside."""
        rng, mean = np.random.default_rng(0), self._mean  # the same numbers, so that the entropy is a smooth function
        place, column = np.arange(len(cell)), mean.argmax(axis=1)
        top = mean.max(axis=1)
        rest = mean.copy()
        rest[np.arange(len(mean)), column] = 0.0
        rest /= np.maximum(1 - top, _TINY)[:, None]
        length, own = np.square(rest).sum(axis=1), variance + np.square(mean).sum(axis=1)
        left = own - top**2
        square = (concentration * length + 1) / (concentration + 1)  # of what is left, as a share
        most = (left - _TOP * variance) / np.maximum((1 - top) ** 2 + _TOP * variance, _TINY)
        square = np.clip(np.minimum(square, most), length, 1.0)
        of_top = np.clip((left - (1 - top) ** 2 * square) / (1 + square), 1e-12, 0.98 * top * (1 - top) + 1e-12)
        of_rest = np.clip((1 - square) / np.maximum(square - length, 1e-12), 1e-6, 1e9)
        size = np.maximum(top * (1 - top) / of_top - 1, 1e-9)
        first = rng.beta((size * top)[cell] + 1e-12, (size * (1 - top))[cell] + 1e-12)
        found = _dirichlet(rest[cell], of_rest[cell], rng) * (1 - first)[:, None]
        found[place, column[cell]] = first
        flat = np.flatnonzero(top[cell] <= 1 / 2)
        share = np.clip(variance / np.maximum(1 - np.square(mean).sum(axis=1), _TINY), 1e-9, 0.999)
        found[flat] = _dirichlet(mean[cell[flat]], (1 / share - 1)[cell[flat]], rng)
        equal = np.flatnonzero(variance[cell] <= _EQUAL)
        found[equal] = mean[cell[equal]]
        return found

    def _moved(self, cell: Integers, prob: Floats) -> Floats:
        """Return predictions, those outside of their cell moved towards its mean."""
        own, mean = self.sums.label[cell], self._mean[cell]
        label = self.sums.redrawn.label
        outside = np.flatnonzero(label(prob) != own)
        start, step = mean[outside], prob[outside] - mean[outside]
        low, high = np.zeros(len(outside)), np.ones(len(outside))
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            inside = label(start + middle[:, None] * step) == own[outside]
            low, high = np.where(inside, middle, low), np.where(inside, high, middle)
        prob[outside] = start + low[:, None] * step
        return prob


def _dirichlet(mean: Floats, concentration: Floats, rng: np.random.Generator) -> Floats:
    """Return Dirichlet variables with means ``(n, n_outcomes)``; means of 0 stay."""
    drawn = np.maximum(rng.standard_gamma(concentration[:, None] * mean), _TINY * mean)
    total = drawn.sum(axis=1, keepdims=True)
    return np.where(total > 0, drawn / np.where(total > 0, total, 1.0), mean)
