r"""Simulated labels of groups: each label has its own probabilities, and a normal shock is shared within the group.

The label of observation i of group g is the number of cumulative probabilities that do not exceed
:math:`\Phi(\sqrt\rho\, M_g + \sqrt{1 - \rho}\, \varepsilon_i)`, with independent standard normal shocks M and noise
:math:`\varepsilon` (a Gaussian copula). The correlation :math:`\rho` is chosen such that the sums of the groups vary as
much as is observed, compared with independent labels (the inflation, or design effect, R).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._signs import correlation_terms
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._lens import outcome_dtype

LARGEST_CORRELATION = 0.95
"""Of latent numbers; larger ones hardly differ in their labels, and the series converges slowly."""
N_TERMS = 16
"""Of the series in powers of the correlation: exact to 1e-4 at .8, 1 % too small at .95."""
_KEPT = 2**24  # numbers that are kept for the next call


@dataclass(frozen=True, eq=False)
class Shocks:
    """Normal numbers of groups and of observations, the same whenever they are asked for.

    Attributes
    ----------
    seed : int
        Seed of all draws.
    n_draws, n_groups, n_samples : int
        Numbers of draws, of groups and of observations.
    together : int
        Number of draws that are made together.
    """

    seed: int
    n_draws: int
    n_groups: int
    n_samples: int
    together: int = 32

    def blocks(self) -> Iterator[tuple[slice, NDArray[np.float32], NDArray[np.float32]]]:
        """Yield draws, the shocks of groups ``(n_groups, n)`` and the noise of observations ``(n_samples, n)``."""
        yield from self._known if self.n_draws * self.n_samples <= _KEPT else self._draw()

    def blocks_from(self, first: int) -> Iterator[tuple[slice, NDArray[np.float32], NDArray[np.float32]]]:
        """Yield the blocks from that of a draw on."""
        yield from self._draw(first)

    def of_groups(self) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        """Yield draws and the shocks of groups alone."""
        for part, shock, _ in self._draws():
            yield part, shock

    @cached_property
    def _known(self) -> list[tuple[slice, NDArray[np.float32], NDArray[np.float32]]]:
        return [*self._draw()]

    def _draw(self, after: int = 0) -> Iterator[tuple[slice, NDArray[np.float32], NDArray[np.float32]]]:
        for part, shock, rng in self._draws(after):
            yield part, shock, rng.standard_normal((self.n_samples, shock.shape[1]), dtype=np.float32)

    def _draws(self, after: int = 0) -> Iterator[tuple[slice, NDArray[np.float32], np.random.Generator]]:
        """Yield draws, the shocks of groups, and the generator that makes the noise of observations next."""
        for number in range(after // self.together, -(-self.n_draws // self.together)):
            first = number * self.together
            size = min(self.together, self.n_draws - first)
            rng = np.random.default_rng([self.seed, number])
            yield slice(first, first + size), rng.standard_normal((self.n_groups, size), dtype=np.float32), rng


def latent_bounds(prob: Floats) -> NDArray[np.float32]:
    """Return the normal quantiles of the cumulative probabilities of classes, ``(n_samples, n_classes - 1)``."""
    from scipy.special import ndtri

    cumulative = np.cumsum(prob, axis=1)
    return ndtri(np.minimum(cumulative[:, :-1] / cumulative[:, -1:], 1.0)).astype(np.float32)


def labels_of_latent(
    bound: NDArray[np.float32], correlation: float, shock: NDArray[np.float32], noise: NDArray[np.float32]
) -> NDArray[np.unsignedinteger]:
    """Return labels ``(n_samples, n)``: how many bounds ``(n_samples, n_bounds)`` shock and noise do not fall below."""
    shared, apart = (np.float32(math.sqrt(share)) for share in (correlation, 1 - correlation))
    latent = shared * shock + apart * noise
    labels = np.zeros(latent.shape, dtype=outcome_dtype(bound.shape[1] + 1))
    for one in bound.T:
        labels += latent >= one[:, None]
    return labels


def correlation_in_groups(
    prob: Floats, weight: Floats, group: Integers, n_groups: int, *, target: float, n_columns: int
) -> float:
    """Return the `latent_correlation` of labels with these probabilities, ``(n_samples, n_classes)``, in any order."""
    order = np.argsort(group, kind="stable")
    start, groups = np.searchsorted(group[order], np.arange(n_groups + 1)), np.arange(n_groups)
    bound = latent_bounds(prob)[order]
    return latent_correlation(bound, weight[order], start, groups, target=target, n_columns=n_columns)


def latent_correlation(
    bound: NDArray[np.float32], weight: Floats, start: Integers, group: Integers, *, target: float, n_columns: int
) -> float:
    """Return the correlation at which weighted labels of the same group have a given sum of covariances.

    Parameters
    ----------
    bound : array of shape (n_samples, n_bounds)
        Normal quantiles of the cumulative probabilities.
    weight : array of shape (n_samples,)
        Weights.
    start : array of shape (n_segments + 1,)
        First observation of each segment; all observations of a segment are of the same group.
    group : array of shape (n_segments,)
        Group of each segment, increasing.
    target : float
        The sum over all pairs of different observations of a group, and over the first ``n_columns`` classes.
    n_columns : int
        Number of classes that count; 1 of two, because the other one adds nothing.
    """
    terms = np.zeros(N_TERMS)
    if target > 0:
        correlation_terms(bound, weight, start, group, n_columns, terms)
    return correlation_of_terms(terms, target, LARGEST_CORRELATION)


def correlation_of_terms(terms: Floats, target: float, largest: float) -> float:
    """Return the smallest correlation r, up to the largest, at which the sum of ``terms[m - 1] * r**m`` is a target."""
    if target <= 0:
        return 0.0
    grid = np.linspace(0.0, largest, round(100 * largest) + 1)
    reached = np.maximum.accumulate(np.polynomial.polynomial.polyval(grid, np.append(0.0, terms)))
    return largest if reached[-1] < target else float(np.interp(target, reached, grid))
