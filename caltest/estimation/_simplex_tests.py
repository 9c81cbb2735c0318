"""Tests of the cells (bins) of a simplex diagram, by Pearson's statistic of the outcomes in a cell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caltest.estimation._bars import contradicted_cells, drawn_origin
from caltest.predictions._cells import Cells, CellSums, cell_dtype
from caltest.predictions._sample import Sample
from caltest.predictions._validation import SeedLike, validate_rng
from caltest.resampling import Consistency, EntryCounts
from caltest.resampling._distributions import SMALLEST_PVALUE
from caltest.resampling._draws import Draws
from caltest.resampling._pearson import MOST_COUNTS, exact_pearson_pvalue, n_counts, pearson_statistic
from caltest.resampling._pvalues import tail_pvalues
from caltest.resampling._signs import SignDraws, residual_sums


@dataclass(frozen=True, eq=False)
class PearsonTests:
    """Pearson's statistic of each cell with its p-value.

    Attributes
    ----------
    statistic, pvalue : arrays of shape (n_cells,)
        The statistic, and the probability of one at least as large under the null hypothesis.
    exact : array of shape (n_cells,)
        Whether the p-value is computed from all counts instead of draws.
    origin : str
        Where the p-values come from, in words.
    """

    statistic: NDArray[np.float64]
    pvalue: NDArray[np.float64]
    exact: NDArray[np.bool_]
    origin: str


def pearson_tests(sample: Sample, cells: Cells, n_resamples: int, rng: SeedLike) -> PearsonTests:
    """Test every cell: exactly if it has few different counts of outcomes, otherwise by simulated labels.

    With sample weights or groups all cells are tested by simulated labels, and with groups also by random signs of the
    residuals of whole groups: the larger p-value counts.
    """
    null, generator = Consistency(), validate_rng(rng)
    statistic = _statistics(sample, cells, sample.outcome[None])[0]
    impossible = contradicted_cells(sample, cells)
    if sample.weight is not None or sample.group is not None:
        schemes = dict.fromkeys([null, null.for_sample(sample)])
        drawn = [_of_draws(sample, cells, scheme.draws(n_resamples, generator)) for scheme in schemes]
        pvalue = np.max([_ranked(statistic, values) for values in drawn], axis=0)
        pvalue[impossible] = 1 / (n_resamples + 1)
        return PearsonTests(
            statistic, pvalue, np.zeros(cells.n_cells, dtype=bool), drawn_origin(sample, null, n_resamples)
        )
    exact = np.array([n_counts(int(n), sample.n_outcomes) <= MOST_COUNTS for n in cells.count])
    pvalue = np.empty(cells.n_cells)
    for cell in np.flatnonzero(exact).tolist():
        pvalue[cell] = exact_pearson_pvalue(sample.expected[cells.members(cell)], statistic[cell])
    pvalue[exact & impossible] = SMALLEST_PVALUE
    if not exact.all():
        values = _of_large_cells(sample, cells, ~exact, null.draws(n_resamples, generator))
        pvalue[~exact] = _ranked(statistic[~exact], values)
        pvalue[~exact & impossible] = 1 / (n_resamples + 1)
    return PearsonTests(statistic, pvalue, exact, _origin(exact, null.origin(n_resamples)))


def _statistics(sample: Sample, cells: Cells, outcomes: NDArray[np.unsignedinteger]) -> NDArray[np.float64]:
    """Return the statistics ``(n_replicates, n_cells)`` of outcomes ``(n_replicates, n_samples)``."""
    sums = CellSums.of(sample, cells, outcomes)
    found = pearson_statistic(sums.observed_count - sums.predicted_sum, sums.predicted_sum)
    return found / _mean_weights(sample, cells)


def _mean_weights(sample: Sample, cells: Cells) -> NDArray[np.float64] | float:
    r"""Return :math:`\sum_i w_i^2 / \sum_i w_i` of each cell, ``(n_cells,)``: its weights divided by it have no unit.

    Their sum is then the effective number of observations (Kish 1965), so that the variance of the sums of the outcomes
    is about that of counts.
    """
    if sample.weight is None:
        return 1.0
    squares = np.bincount(cells.index, np.square(sample.weight), cells.n_cells)
    return np.divide(squares, cells.count, out=np.ones(cells.n_cells), where=cells.count > 0)


def _of_draws(sample: Sample, cells: Cells, draws: Draws) -> NDArray[np.float64]:
    """Return the statistics of every draw of labels, or of signs, ``(n_resamples, n_cells)``."""
    found = [
        pearson_statistic(residual_sums(sample, drawn, cells), cells.null_sum) / _mean_weights(sample, cells)
        if isinstance(draws, SignDraws)
        else _statistics(sample, cells, drawn)
        for _, drawn in draws.blocks(sample)
    ]
    return np.concatenate(found)


def _of_large_cells(sample: Sample, cells: Cells, large: NDArray[np.bool_], draws: Draws) -> NDArray[np.float64]:
    """Return the statistics of every draw in some cells, ``(n_resamples, n_large)``; labels of others are not drawn."""
    member = np.flatnonzero(large[cells.index])
    part = sample if large.all() else sample.take(member)
    rank = np.cumsum(large) - 1
    n_entries = int(large.sum()) * sample.n_outcomes
    entry = rank[cells.index[member], None] * sample.n_outcomes + np.arange(sample.n_outcomes)
    counted = draws.summarise(part, EntryCounts(entry.astype(cell_dtype(n_entries)), n_entries))
    expected = cells.null_sum[large]
    found = [
        pearson_statistic(counts.reshape(-1, *expected.shape) - expected, expected)
        for counts in _blocks(counted, n_entries)
    ]
    return np.concatenate(found)


def _blocks(counted: Iterator[NDArray[np.signedinteger]] | None, n_entries: int) -> Iterator[NDArray[np.float64]]:
    for counts in counted or ():
        yield counts.reshape(-1, n_entries).astype(np.float64)


def _ranked(statistic: NDArray[np.float64], drawn: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of the draws, the data among them, whose statistic is at least as large, ``(n_cells,)``."""
    return tail_pvalues(np.column_stack([statistic, drawn.T]))[:, 0]


EXACT = "the exact distribution of the counts of outcomes, predictions fixed (valid at every sample size)"


def _origin(exact: NDArray[np.bool_], drawn: str) -> str:
    if exact.all():
        return EXACT
    if not exact.any():
        return drawn
    n_exact = int(exact.sum())
    few = f"{n_exact} cell{'s' if n_exact > 1 else ''} with few observations"
    return f"{EXACT} in {few}; {drawn} in the other {int((~exact).sum())}"
