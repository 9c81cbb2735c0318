"""Warnings where cells are too small for resampled observations.

Copies of an observation share a cell, so that the null distribution has too small values there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._sample import Sample
from caltest.predictions.cells._cells import cells_of
from caltest.resampling.draws._labels import Draws
from caltest.resampling.draws._summaries import CellCounts, EntryCounts
from caltest.resampling.engine._statistic import Statistic
from caltest.results import Note
from caltest.results._note import warn_user

SPARSE_ROWS = 10
"""Cells of fewer observations are sparse."""
_TOLERATED = 0.05
_REFITS = 20


def sparsity(statistic: Statistic, sample: Sample, draws: Draws) -> tuple[float, int, float] | None:
    """Count the cells of a statistic on the sample and on some resamples; None if the statistic has no cells.

    Returns
    -------
    share : float
        Share of the observations (entries) that lie in sparse cells.
    n_cells : int
        Number of occupied cells.
    refitted : float
        Their average number on resampled observations.
    """
    size = _sizes(statistic, sample)
    if not size.size:
        return None
    refitted = _refitted(statistic, sample, draws.slices(_REFITS)[0])
    return float(size[size < SPARSE_ROWS].sum() / size.sum()), len(size), refitted


def sparsity_notes(statistics: Sequence[Statistic], sample: Sample, draws: Draws) -> list[Note]:
    """Return notes on cells that are too small for resampled observations, and warn."""
    if not draws.resample_predictions:
        return []
    notes = []
    for statistic in statistics:
        found = sparsity(statistic, sample, draws)
        if found is None:
            continue
        share, n_cells, refitted = found
        if share > _TOLERATED:
            text = (
                f"{share:.0%} of the observations lie in cells (bins) of {statistic} with fewer than "
                f"{SPARSE_ROWS} observations. The null distribution from resampled observations is not valid there; "
                "keep the predictions fixed, Consistency()."
            )
            notes.append(Note("C301", text))
        if abs(refitted / n_cells - 1) > _TOLERATED:
            text = (
                f"On resampled observations {statistic} has {refitted:.1f} cells (bins) on average instead of "
                f"{n_cells}. The null distribution from resampled observations is not valid; keep the "
                "predictions fixed, Consistency()."
            )
            notes.append(Note("C302", text))
    for note in notes:
        warn_user(str(note))
    return notes


def _sizes(statistic: Statistic, sample: Sample) -> NDArray[Any]:
    """Return the number of observations, or entries, in each occupied cell of a statistic; empty if it has no cells."""
    if statistic.partition is not None:
        return np.bincount(cells_of(sample, statistic.partition).index)
    summary = statistic.summary(sample)
    if not isinstance(summary, EntryCounts):
        return np.empty(0)
    size = np.bincount(summary.cell.ravel(), minlength=summary.n_cells)[: summary.n_cells - 1]
    return size[size > 0]


def _refitted(statistic: Statistic, sample: Sample, draws: Draws) -> float:
    """Return the average number of occupied cells on resampled observations, with cells fitted again each time."""
    has_cells = statistic.partition is not None
    sums = draws.summarise(sample, CellCounts(statistic.partition)) if has_cells else None
    if sums is not None:
        return float(np.concatenate([np.atleast_2d(part.count > 0).sum(axis=1) for part in sums]).mean())
    return float(np.mean([len(_sizes(statistic, drawn)) for drawn, _ in draws.blocks(sample)]))
