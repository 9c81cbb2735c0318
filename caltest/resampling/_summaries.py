"""Summaries of simulated labels that are enough for a statistic, where it does not need all labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray


@dataclass(frozen=True)
class CellCounts:
    """Counts of the outcomes in the cells of a partition; draws return it as `CellSums`."""

    partition: Any


@dataclass(frozen=True, eq=False)
class EntryCounts:
    """Counts of the entries of the predictions that labels select, by cell; draws return ``(n_replicates, n_cells)``.

    Attributes
    ----------
    cell : array of shape (n_samples, n_outcomes), uint16 or uint32
        Cell of each entry, 0 to ``n_cells - 1``.
    n_cells : int
        Number of cells.
    """

    cell: NDArray[Any]
    n_cells: int


Summary = CellCounts | EntryCounts
