"""Sums of the losses of many models, which can be added up over batches, and what they say of ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caltest.predictions._arrays import Floats
from caltest.ranking._separation import (
    FEWEST_GROUPS,
    Pairs,
    Separation,
    cubed_differences,
    nothing_separated,
    squared_differences,
)

_TIED = 1e-12  # relative to the largest squares; what is smaller is lost in the rounding of the drawn sums


def sums_of_losses(losses: Floats, expected: Floats) -> Floats:
    """Return what `SummedLosses` holds of losses ``(n_models, n_samples)``, and of the sums of expected scores."""
    is_finite = np.isfinite(losses)
    adds = np.concatenate([np.where(is_finite, losses, 0.0), np.zeros((1, losses.shape[1]))])
    centred = adds - adds.mean(axis=0)
    rows = [centred.sum(axis=1), [*expected, 0.0], [*np.count_nonzero(~is_finite, axis=1), 0]]
    squares = squared_differences(centred, np.square(adds).sum(axis=1))
    return np.concatenate([rows, squares, cubed_differences(centred)])


@dataclass(frozen=True, eq=False)
class SummedLosses:
    """Sums over observations of what models lose, the last of which is a model without losses.

    Attributes
    ----------
    n_samples : int
        Number of observations.
    table : array of shape (2 n_models + 5, n_models + 1)
        A row with the losses, those of each observation less the same number, one with the scores that calibrated
        predictions have on average, and one with the numbers of infinite losses, which count as 0 elsewhere; then the
        squared differences of each pair of models, and the cubed ones, "column minus row".
    """

    n_samples: int
    table: Floats

    @property
    def is_known(self) -> np.ndarray:
        """Whether the mean loss of each model is finite."""
        return np.asarray(self.table[2, :-1] == 0)

    @property
    def expected(self) -> Floats:
        """The mean losses of calibrated predictions."""
        return self.table[1, :-1] / self.n_samples

    @property
    def estimate(self) -> Floats:
        """The mean losses, ``(n_models,)``."""
        return np.where(self.is_known, self.table[0, :-1] - self.table[0, -1], np.inf) / self.n_samples

    @property
    def central(self) -> tuple[Floats, Floats]:
        """Sums of the squares and cubes of the differences from their means, ``(n_models + 1, n_models + 1)`` each."""
        n, start = self.n_samples, 3 + self.table.shape[1]
        mean = np.subtract.outer(-self.table[0], -self.table[0]) / n
        squares = self.table[3:start] - n * mean**2
        return squares, self.table[start:] - 3 * mean * squares - n * mean**3

    def separate(self, n_resamples: int, rng: np.random.Generator) -> Separation:
        r"""Return which models are shown to be better than which, by random directions of the observations.

        Sums of n losses times a random direction of length :math:`\sqrt n` are those of independent normal numbers,
        divided by the length of these: :math:`S^{1/2} z \sqrt n / (|z|^2 + \chi^2_{n-r})^{1/2}`, where S has the
        inner products of the models, which follow from the squared differences, and r is its rank.
        """
        n, known, estimate = self.n_samples, self.is_known, self.estimate
        if n < FEWEST_GROUPS:
            return nothing_separated(len(known), n_resamples)
        squares, middle = self.table[3 : 3 + len(known), :-1] / n**2, np.eye(known.sum()) - 1 / max(known.sum(), 1)
        size, axes = np.linalg.eigh(-0.5 * middle @ squares[np.ix_(known, known)] @ middle)
        is_seen = size > (limit := _TIED * size.max(initial=0.0))
        normal = axes[:, is_seen].T @ rng.standard_normal((len(axes), n_resamples))
        length = np.square(normal).sum(axis=0) + rng.chisquare(max(n - len(normal), 1e-9), n_resamples)
        total = np.zeros((len(known), n_resamples))
        total[known] = axes[:, is_seen] @ (np.sqrt(size[is_seen])[:, None] * normal) * np.sqrt(n / length)
        shared = np.where(known, estimate, 0.0) / n
        cubes = self.central[1][:-1, :-1] / n**3
        return Pairs(estimate, np.where(squares > limit, squares, 0.0), cubes, shared, 1 / n).separate(total, total / n)
