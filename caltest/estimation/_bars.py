"""Bars and p-values of the cells of a reliability curve.

The number of events of a cell has an exact distribution, unless there are sample weights, whose sums are no counts, or
groups, whose observations depend on each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.estimation._cell_tests import cell_pvalue
from caltest.estimation._drawn_ends import drawn_ends
from caltest.estimation._effective_interval import EffectiveCounts
from caltest.predictions._cells import Cells, CellSums
from caltest.predictions._sample import Sample
from caltest.predictions._validation import SeedLike, validate_rng
from caltest.resampling._distributions import SMALLEST_PVALUE
from caltest.resampling._draws import Draws
from caltest.resampling._poisson_binomial import PoissonBinomial
from caltest.resampling._pvalues import tail_pvalues
from caltest.resampling._row_draws import RowDraws
from caltest.resampling._schemes import Consistency, SignedGroups
from caltest.resampling._signs import SignDraws, group_of, residual_sums

Ends = tuple[NDArray[np.float64], NDArray[np.float64]]


def exact_pvalues(sample: Sample, cells: Cells, counts: Sequence[PoissonBinomial]) -> NDArray[np.float64]:
    """Return exact two-sided p-values ``(n_cells,)``."""
    probabilities, events = cells.split(sample.expected[:, 1]), cells.split(sample.outcome == 1)
    pvalues = [cell_pvalue(count, p, int(y.sum())) for count, p, y in zip(counts, probabilities, events, strict=True)]
    return np.where(contradicted_cells(sample, cells), SMALLEST_PVALUE, pvalues)


def exact_deviations(counts: Sequence[PoissonBinomial], size: NDArray[Any]) -> NDArray[np.float64]:
    """Return the expected absolute difference of frequency and prediction under calibration, ``(n_cells,)``.

    ``size (n_cells,)`` is the number of observations of each cell.
    """
    found = []
    for count in counts:
        events = count.first + np.arange(len(count.pmf))
        found.append(np.abs(events - count.pmf @ events / count.pmf.sum()) @ count.pmf)
    return np.array(found) / size


def smallest_pvalues(counts: Sequence[PoissonBinomial], size: NDArray[Any]) -> NDArray[np.float64]:
    """Return the smallest possible exact p-values ``(n_cells,)``: those without events, or with nothing else.

    ``size (n_cells,)`` is the number of observations of each cell. A label of probability 0 has none: 0 stands for it.
    """
    extremes = [
        (count.pmf[0] if count.first == 0 else 0.0, count.pmf[-1] if count.counts[-1] == n else 0.0)
        for count, n in zip(counts, size, strict=True)
    ]
    return np.minimum(2 * np.min(extremes, axis=1), 1.0)


def smallest_drawn_pvalues(sample: Sample, cells: Cells, n_resamples: int) -> NDArray[np.float64]:
    r"""Return the smallest possible p-values ``(n_cells,)`` from draws.

    The signs of G groups are one of :math:`2^G` patterns, so that a two-sided p-value is at least :math:`2^{1 - G}`.
    """
    heavy = np.ones(sample.n_samples, dtype=bool) if sample.weight is None else sample.weight > 0
    index, prob = cells.index[heavy], sample.expected[heavy]
    with np.errstate(divide="ignore"):
        same = [np.exp(np.bincount(index, np.log(prob[:, k]), cells.n_cells)) for k in (0, 1)]
    smallest = 2 * np.min(same, axis=0)
    impossible = np.bincount(index, (prob <= 0).any(axis=1), cells.n_cells) > 0  # such labels would reject alone
    if sample.group is not None:
        smallest = np.maximum(smallest, 2.0 ** (1 - groups_in_cells(sample, cells)))
    smallest = np.clip(smallest, 2 / (n_resamples + 1), 1.0)
    return np.where(impossible, 1 / (n_resamples + 1), smallest)


def groups_in_cells(sample: Sample, cells: Cells) -> NDArray[np.int64]:
    """Return the number of groups with weight in each cell, ``(n_cells,)``."""
    heavy = slice(None) if sample.weight is None else sample.weight > 0
    pairs = np.unique(group_of(sample)[heavy] * cells.n_cells + cells.index[heavy])
    return np.bincount(pairs % cells.n_cells, minlength=cells.n_cells)


def consistency_bars(counts: Sequence[PoissonBinomial], cells: Cells, level: float) -> Ends:
    """Return exact consistency bars."""
    ends = np.array([count.central_interval(level) for count in counts]) / cells.count[:, None]
    return ends[:, 0], ends[:, 1]


def resampled_bars(sample: Sample, partition: Any, sums: CellSums, draws: RowDraws, level: float) -> Ends:
    """Return consistency bars from resampled observations."""
    drawn = draws.sums_of_fixed_cells(sample, partition)
    deviation = np.concatenate([
        np.where(part.count > 0, part.observed[..., 1] - part.predicted[..., 1], np.nan) for part in drawn
    ])  # fmt: skip
    expected = sums.predicted[:, 1]
    deviation[:, np.isnan(deviation).all(axis=0)] = 0.0
    low, high = np.nanquantile(deviation, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return np.clip(expected + low, 0.0, 1.0), np.clip(expected + high, 0.0, 1.0)


def confidence_bars(sums: CellSums, level: float) -> Ends:
    """Return Clopper-Pearson intervals."""
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(sums.observed_count[:, 1], sums.count, alpha=1 - level, method="beta")
    return np.asarray(low), np.asarray(high)


def drawn_deviations(
    sample: Sample, cells: Cells, null: Consistency, n_resamples: int, rng: SeedLike
) -> list[NDArray[np.float64]]:
    """Return observed minus expected frequency of the event in each cell under calibration, ``(B + 1, n_cells)``.

    One array for simulated labels, and one for random signs of the groups if there are groups. The first row of each is
    that of the data.
    """
    generator = validate_rng(rng)
    schemes = dict.fromkeys([null, null.for_sample(sample)])
    return [_of_draws(sample, cells, scheme.draws(n_resamples, generator)) for scheme in schemes]


def drawn_origin(sample: Sample, null: Consistency, n_resamples: int) -> str:
    """Return where these deviations come from, in words."""
    grouped = null.for_sample(sample)
    if not isinstance(grouped, SignedGroups):
        return null.origin(n_resamples)
    return (
        f"{n_resamples} Monte Carlo draws of the labels and {grouped.signs_in_words(n_resamples)}, "
        "predictions fixed, of which the larger p-value counts (asymptotic in the number of groups)"
    )


def origin_of_cells(sample: Sample, null: Consistency, n_resamples: int) -> str:
    """Return where bars and p-values of the cells of a curve come from, in words."""
    if not isinstance(null.for_sample(sample), SignedGroups):
        return null.origin(n_resamples)
    return (
        f"{n_resamples} Monte Carlo draws of the labels, {n_resamples} random signs of {sample.n_groups} groups, and "
        "the effective number of observations, of which the largest p-value counts (approximate)"
    )


def _of_draws(sample: Sample, cells: Cells, draws: Draws) -> NDArray[np.float64]:
    weight = np.where(cells.count > 0, cells.count, 1.0)
    found = [_deviations(sample, cells, sample.outcome[None])]
    for _, drawn in draws.blocks(sample):
        if isinstance(draws, SignDraws):
            found.append(residual_sums(sample, drawn, cells)[..., 1] / weight)
        else:
            found.append(_deviations(sample, cells, drawn))
    return np.concatenate(found)


def _deviations(sample: Sample, cells: Cells, outcomes: NDArray[Any]) -> NDArray[np.float64]:
    sums = CellSums.of(sample, cells, outcomes)
    return sums.observed[..., 1] - sums.predicted[..., 1]


def quantile_bars(expected: NDArray[np.float64], deviations: list[NDArray[np.float64]], level: float) -> Ends:
    """Return bars around the expected frequencies with at most half of 1 - level of the draws on either side."""
    ends = np.array([drawn_ends(found[1:], level) for found in deviations])
    low, high = expected + ends[:, 0].min(axis=0), expected + ends[:, 1].max(axis=0)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def drawn_pvalues(sample: Sample, cells: Cells, deviations: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return two-sided p-values ``(n_cells,)``: twice the smaller tail of the first row among all; the largest."""
    tails = [[tail_pvalues(sign * found.T)[:, 0] for sign in (1, -1)] for found in deviations]
    pvalues = np.minimum(2 * np.min(tails, axis=1), 1.0).max(axis=0)
    return np.where(contradicted_cells(sample, cells), 1 / len(deviations[0]), pvalues)


def contradicted_cells(sample: Sample, cells: Cells) -> NDArray[np.bool_]:
    """Return whether a label of the cell had been given probability 0, ``(n_cells,)``."""
    return np.array([rows.any() for rows in cells.split(np.isin(sample.row, sample.impossible))])


def effective_counts(sample: Sample, cells: Cells) -> EffectiveCounts:
    """Return events and other labels of each cell with their effective number."""
    weight = np.ones(sample.n_samples) if sample.weight is None else sample.weight
    return EffectiveCounts.of_cells(sample.outcome == 1, weight, sample.group, cells.index, cells.n_cells)
