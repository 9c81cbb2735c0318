"""Alias tables, from which labels of many classes are drawn, and resampled observations are counted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._alias import alias_tables, fill_row_records
from caltest._compiled._draws import draw_counts, draw_from_records, start_states
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._lens import outcome_dtype
from caltest.predictions._sample import Sample
from caltest.resampling.distributions._poisson_binomial import window_half_width

_LARGEST_STRATUM = 2048  # observations: their probabilities stay in the first-level cache
_DEVIATIONS, _RARE, _TINY = 8.0, 12.0, 1e-300  # numbers farther from the mean are too rare to be drawn
FEW = 32
"""Labels of up to so many classes are drawn by thresholds, which is faster for them."""
_KEPT_RECORDS = 2**24  # of 8 bytes, as the predictions; more are made again for every block of replicates
_BAND_RECORDS = 2**19  # made at a time; rows in multiples of 32, the lanes of the generator
_TOGETHER = 64, 1024  # replicates


@dataclass(frozen=True, eq=False)
class AliasTables:
    """Tables from which independent numbers are drawn in constant time (Walker 1977).

    Attributes
    ----------
    thresholds, alias : arrays of shape (n_entries,)
        See `_compiled._alias.alias_tables`.
    begin, end : arrays of shape (n_tables,)
        Entries of each table.
    """

    thresholds: NDArray[np.uint32]
    alias: NDArray[np.uint32]
    begin: Integers
    end: Integers

    @classmethod
    def of(cls, masses: list[Floats]) -> AliasTables:
        """Return tables for several mass functions on 0, 1, 2, ..."""
        start = np.cumsum([0, *map(len, masses)])
        thresholds, alias = alias_tables(np.concatenate(masses), start)
        return cls(thresholds, alias, start[:-1], start[1:])

    def take(self, table: Integers) -> AliasTables:
        """Return the given tables; repeats cost nothing."""
        return AliasTables(self.thresholds, self.alias, self.begin[table], self.end[table])

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """What the kernels take."""
        return self.thresholds, self.alias, self.begin, self.end


@dataclass(frozen=True, eq=False)
class BinomialNumbers:
    """Independent binomial numbers, each with its size and probability.

    Attributes
    ----------
    fewest : array of shape (n_numbers,)
        Fewer than these are less likely than what random numbers of 32 bits can tell from never.
    tables : AliasTables
        How many more there are.
    """

    fewest: Integers
    tables: AliasTables

    @classmethod
    def of(cls, size: Integers, prob: Floats) -> BinomialNumbers:
        """Return the numbers of sizes and probabilities ``(n_numbers,)``."""
        from scipy.special import gammaln

        mean = size * prob
        reach = _DEVIATIONS * np.sqrt(mean * (1 - prob)) + _RARE
        fewest = np.maximum(mean - reach, 0).astype(np.int64)
        count = fewest[:, None] + np.arange(int((np.minimum(mean + reach, size) - fewest).max()) + 1)
        possible = count <= size[:, None]
        count = np.minimum(count, size[:, None])
        factorial = gammaln(np.arange(size.max() + 1) + 1.0)
        log_odds = np.log(np.maximum(prob, _TINY)) - np.log(np.maximum(1 - prob, _TINY))
        log_mass = count * log_odds[:, None] - factorial[count] - factorial[size[:, None] - count]
        mass = np.where(possible, np.exp(log_mass - log_mass.max(axis=1, keepdims=True)), 0.0)
        start = np.arange(0, mass.size + 1, mass.shape[1])
        thresholds, alias = alias_tables(mass.ravel(), start)
        return cls(fewest, AliasTables(thresholds, alias, start[:-1], start[1:]))

    def draw(self, n_replicates: int, rng: np.random.Generator) -> Integers:
        """Return numbers ``(n_replicates, n_numbers)``."""
        more = np.empty((n_replicates, len(self.fewest)), dtype=np.int64)
        draw_counts(*self.tables.arrays, rng.integers(2**64, dtype=np.uint64), 0, more)
        return self.fewest + more


@dataclass(frozen=True, eq=False)
class Strata:
    """Observations sorted by cell and cut into strata.

    Attributes
    ----------
    row : array of shape (n_samples,)
        Positions of the observations, sorted by cell.
    start : array of shape (n_strata + 1,)
        Where each stratum begins in that order.
    cell : array of shape (n_cells,)
        First stratum of each cell.
    tables : AliasTables
        Poisson numbers of observations, one table per stratum, and a last table of the strata by their share.
    """

    row: Integers
    start: Integers
    cell: Integers
    tables: AliasTables

    @classmethod
    def of(cls, index: Integers, n_cells: int) -> Strata:
        """Return the strata of observations in the cells ``index (n_samples,)``, none of which is empty."""
        n_samples = len(index)
        row = np.argsort(index, kind="stable")
        bounds = np.searchsorted(index[row], np.arange(n_cells + 1))
        parts = [np.arange(a, b, _LARGEST_STRATUM) for a, b in pairwise(bounds)]
        start = np.append(np.concatenate(parts), n_samples)
        size = np.diff(start)
        # A mean of n - 2 sqrt(n) observations: the sum exceeds n in one of 44 draws, which are then repeated; with a
        # smaller mean, more observations would be added one by one.
        share = max(0.0, 1 - 2 / math.sqrt(n_samples))
        distinct, which = np.unique(size, return_inverse=True)
        masses = [*(_poisson(share * float(rows)) for rows in distinct), size / n_samples]
        tables = AliasTables.of(masses).take(np.append(which, len(distinct)))
        return cls(row, start, np.cumsum([0, *map(len, parts[:-1])]), tables)

    def sum_by_cell(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return sums over the strata of each cell, along axis 1 of ``(n_replicates, n_strata, ...)``."""
        return np.add.reduceat(values, self.cell, axis=1)


def _poisson(mean: float) -> Floats:
    """Return the Poisson probabilities of 0, 1, ... up to where less than 1e-18 is left."""
    from scipy.special import gammaln, xlogy

    count = np.arange(math.ceil(mean + window_half_width(mean)) + 1)
    return np.exp(xlogy(count, mean) - mean - gammaln(count + 1))


def replicates_together(sample: Sample) -> int:
    """Return how many replicates are drawn at a time: enough to pay for the records of a row, which serve all of them.

    Their labels take at most half of the memory of float32 predictions, or 64 bytes for each observation.
    """
    low, high = _TOGETHER
    return min(max(2 * sample.n_outcomes // outcome_dtype(sample.n_outcomes).itemsize, low), high)


def draw_many_labels(sample: Sample, seed: np.uint64, first: int, n_replicates: int) -> NDArray[Any]:
    """Return outcomes ``(n_replicates, n_samples)`` drawn for the null probabilities of a sample."""
    prob = sample.given_null
    out = np.empty((n_replicates, sample.n_samples), dtype=outcome_dtype(sample.n_outcomes))
    states = start_states(seed, first, n_replicates)
    if prob.size <= _KEPT_RECORDS and not sample.is_large:
        draw_from_records(sample.once(_all_records), 0, states, out)
        return out
    band = max(_BAND_RECORDS // sample.n_outcomes // 32, 1) * 32
    table = np.empty((band, sample.n_outcomes), dtype=np.uint64)
    for start in range(0, sample.n_samples, band):
        records = table[: sample.n_samples - start]
        fill_row_records(prob, start, records)
        draw_from_records(records, start, states, out)
    return out


def _all_records(sample: Sample) -> NDArray[np.uint64]:
    """Return the alias records of all rows, ``(n_samples, n_outcomes)``."""
    records = np.empty(sample.given_null.shape, dtype=np.uint64)
    fill_row_records(sample.given_null, 0, records)
    return records
