"""Summaries of simulated labels that are enough for a statistic, where it does not need all labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray


@dataclass(frozen=True)
class CellCounts:
    """Counts of the outcomes in the cells (bins) of a partition; a statistic receives them as `CellSums`.

    Parameters
    ----------
    partition : Partition or callable
        The cells.

    Examples
    --------
    >>> import caltest
    >>> caltest.ECE(caltest.EqualWidth(15)).summary(sample=None)
    CellCounts(partition=EqualWidth(15))
    """

    partition: Any


@dataclass(frozen=True, eq=False)
class EntryCounts:
    """Counts of the entries that labels select, by cell (bin); a statistic receives ``(n_replicates, n_cells)``.

    Parameters
    ----------
    cell : array of shape (n_samples, n_outcomes), uint16 or uint32
        Cell of each entry, 0 to ``n_cells - 1``.
    n_cells : int
        Number of cells.

    Examples
    --------
    One cell for each outcome counts the labels of each class:

    >>> import numpy as np
    >>> from caltest.resampling import EntryCounts
    >>> EntryCounts(np.tile(np.arange(3, dtype=np.uint16), (100, 1)), n_cells=3).n_cells
    3
    """

    cell: NDArray[Any]
    n_cells: int


Summary = CellCounts | EntryCounts
