"""Cells (bins) of the simplex as convex bodies, and tests of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from caltest.estimation.curves._bars import contradicted_cells, drawn_origin
from caltest.predictions._arrays import Booleans, Floats
from caltest.predictions._sample import Sample
from caltest.predictions.cells._cells import Cells, CellSums, cell_dtype
from caltest.predictions.cells._partitions import cell_boxes
from caltest.predictions.cells._simplex_grid import SimplexGrid
from caltest.predictions.inputs._validation import SeedLike, validate_rng
from caltest.resampling import Consistency, EntryCounts
from caltest.resampling.distributions._base import SMALLEST_PVALUE
from caltest.resampling.distributions._exact import MOST_COUNTS, exact_pearson_pvalue, n_counts, pearson_statistic
from caltest.resampling.draws._labels import Draws
from caltest.resampling.draws._signs import SignDraws, residual_sums
from caltest.resampling.engine._pvalues import tail_pvalues

Corners = tuple[Floats, ...]

_ROUNDING = 1e-9
EXACT = "the exact distribution of the counts of outcomes, predictions fixed (valid at every sample size)"


def cell_regions(cells: Cells, partition: object, prob: Floats) -> Corners:
    """Return the corners of each cell, arrays ``(n_corners, n_outcomes)``; of three outcomes in the order of a polygon.

    Triangles of a `SimplexGrid`, and boxes of a tree or a product grid cut with the simplex, are the cells themselves;
    of another partition it is the convex hull of the predictions in the cell.
    """
    if isinstance(partition, SimplexGrid):
        return tuple(partition.corners[cells.label])
    boxes = cell_boxes(cells.assign, cells.label, prob.shape[1])
    if boxes is None:
        return tuple(_hull(part) for part in cells.split(prob))
    return tuple(_cut(lower, upper) for lower, upper in zip(*boxes, strict=True))


def _cut(lower: Floats, upper: Floats) -> Floats:
    """Return the corners of a box cut with the simplex: all probabilities but one are at an end of theirs."""
    corners = []
    for free in range(len(lower)):
        for at_upper in product((False, True), repeat=len(lower) - 1):
            corner = np.where(np.insert(at_upper, free, False), upper, lower)
            corner[free] += 1 - corner.sum()
            if lower[free] - _ROUNDING <= corner[free] <= upper[free] + _ROUNDING:
                corners.append(np.clip(corner, 0.0, 1.0))
    found = np.array(corners)
    distinct = np.unique(found.round(9), axis=0, return_index=True)[1]
    return _ordered(found[distinct])


def _hull(points: Floats) -> Floats:
    """Return the corners of the convex hull, in a plane or on a line if that is where the points lie."""
    from scipy.spatial import ConvexHull

    distinct = np.unique(points, axis=0)
    centred = distinct - distinct.mean(axis=0)
    _, size, axes = np.linalg.svd(centred.T @ centred)
    place = centred @ axes[size > (_ROUNDING * len(centred)) ** 2].T
    if place.shape[1] == 0:
        return distinct[:1]
    if place.shape[1] == 1:
        return distinct[[place[:, 0].argmin(), place[:, 0].argmax()]]
    return _ordered(distinct[ConvexHull(place, qhull_options="QJ").vertices])


def _ordered(corners: Floats) -> Floats:
    """Return the corners of a polygon in their order around its middle; other corners as they are."""
    if corners.shape[1] != 3:
        return corners
    x, y = ((corners - corners.mean(axis=0)) @ np.array([[-1.0, -1.0], [1.0, -1.0], [0.0, 2.0]]) / [1, 3**0.5]).T
    return corners[np.argsort(np.arctan2(y, x), kind="stable")]


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

    statistic: Floats
    pvalue: Floats
    exact: Booleans
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


def _statistics(sample: Sample, cells: Cells, outcomes: NDArray[np.unsignedinteger]) -> Floats:
    """Return the statistics ``(n_replicates, n_cells)`` of outcomes ``(n_replicates, n_samples)``."""
    sums = CellSums.of(sample, cells, outcomes)
    found = pearson_statistic(sums.observed_count - sums.predicted_sum, sums.predicted_sum)
    return found / _mean_weights(sample, cells)


def _mean_weights(sample: Sample, cells: Cells) -> Floats | float:
    r"""Return :math:`\sum_i w_i^2 / \sum_i w_i` of each cell, ``(n_cells,)``: its weights divided by it have no unit.

    Their sum is then the effective number of observations (Kish 1965), so that the variance of the sums of the outcomes
    is about that of counts.
    """
    if sample.weight is None:
        return 1.0
    squares = np.bincount(cells.index, np.square(sample.weight), cells.n_cells)
    return np.divide(squares, cells.count, out=np.ones(cells.n_cells), where=cells.count > 0)


def _of_draws(sample: Sample, cells: Cells, draws: Draws) -> Floats:
    """Return the statistics of every draw of labels, or of signs, ``(n_resamples, n_cells)``."""
    found = [
        pearson_statistic(residual_sums(sample, drawn, cells), cells.null_sum) / _mean_weights(sample, cells)
        if isinstance(draws, SignDraws)
        else _statistics(sample, cells, drawn)
        for _, drawn in draws.blocks(sample)
    ]
    return np.concatenate(found)


def _of_large_cells(sample: Sample, cells: Cells, large: Booleans, draws: Draws) -> Floats:
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


def _blocks(counted: Iterator[NDArray[np.signedinteger]] | None, n_entries: int) -> Iterator[Floats]:
    for counts in counted or ():
        yield counts.reshape(-1, n_entries).astype(np.float64)


def _ranked(statistic: Floats, drawn: Floats) -> Floats:
    """Return the share of the draws, the data among them, whose statistic is at least as large, ``(n_cells,)``."""
    return tail_pvalues(np.column_stack([statistic, drawn.T]))[:, 0]


def _origin(exact: Booleans, drawn: str) -> str:
    if exact.all():
        return EXACT
    if not exact.any():
        return drawn
    n_exact = int(exact.sum())
    few = f"{n_exact} cell{'s' if n_exact > 1 else ''} with few observations"
    return f"{EXACT} in {few}; {drawn} in the other {int((~exact).sum())}"
