"""Micro-cells: narrow cells (bins) of one probability, of which coarser cells are made without the observations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._micro_cells import DEEPEST, PARTS
from caltest.predictions._partitions import Edges, EqualWidth, Intervals, resolve_n_cells
from caltest.results._naming import describe

SMALLEST, LARGEST = 2**11, 2**15
"""Numbers of micro-cells that are possible."""
USUAL = 2**12
"""Number of micro-cells by default."""
_DIGITS = 53  # of a double


@dataclass(frozen=True, eq=False)
class MicroCells:
    """Narrow cells of one probability, closed on the left.

    Their edges are the doubles ``j / n`` and ``j / 1800``, so that they are those of EqualWidth(m) for every m that
    divides n or 1800. The first and the last of the n cells are cut at powers of 2, which end at 2^-64, and at their
    complements; 0 and 1 have a micro-cell each.

    Attributes
    ----------
    lower : array of shape (n_cells,)
        Lower ends, increasing; those of the micro-cell of 0 and of the next one are both 0.
    scale : array of shape (n_cells,)
        2^52 divided by the width, which is rounded up to a power of 2.
    power : int
        Logarithm of n to base 2.
    """

    lower: NDArray[np.float64]
    scale: NDArray[np.float64]
    power: int

    @classmethod
    def of(cls, n: int) -> MicroCells:
        """Return micro-cells of width 1 / n, a power of 2; made once."""
        return _make(n)

    @property
    def n_cells(self) -> int:
        """Number of micro-cells."""
        return len(self.lower)

    @property
    def width(self) -> NDArray[np.float64]:
        """Upper bound of the width of each micro-cell, ``(n_cells,)``."""
        return 2.0**52 / self.scale

    def starts(self, partition: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the first micro-cell of every cell of a partition, and the edges ``(n_cells + 1,)`` of these cells.

        Raises
        ------
        ValueError
            If an edge of the partition is none of a micro-cell, or the cells depend on the predictions.
        """
        edges = _edges(partition)
        n = 2**self.power
        place = np.searchsorted(self.lower, edges)
        known = self.lower[np.minimum(place, self.n_cells - 1)] == edges
        if not known.all():
            msg = (
                f"the cells of {describe(partition)} cannot be made of micro-cells, whose edges are j / {n} and "
                f"j / {PARTS}; its edge {edges[~known][0]:.6g} is none of them. Possible are EqualWidth(n) for every n "
                f"that divides {n} or {PARTS} (such as 10, 15, 20, 100), and Edges at such places."
            )
            raise ValueError(msg)
        return np.append(0, place), np.concatenate([[0.0], edges, [1.0]])


def _edges(partition: Any) -> NDArray[np.float64]:
    """Return the inner edges of cells that do not depend on the predictions, closed on the left."""
    fixed = isinstance(partition, EqualWidth) and not isinstance(partition.n_cells, str)
    if not (fixed or isinstance(partition, Edges)) or partition.closed != "left":
        msg = (
            f"a state has cells (bins) that are fixed beforehand and closed on the left; use EqualWidth(15), "
            f"Edges([0.1, 0.5]) or equal_mass_cells(state, 15) of caltest.streaming, got {describe(partition)}."
        )
        raise ValueError(msg)
    if isinstance(partition, EqualWidth):
        n_cells = resolve_n_cells(partition.n_cells, 1)
        return np.arange(1, n_cells) / n_cells
    return Intervals(np.array(partition.edges)).edges


@cache
def _make(n: int) -> MicroCells:
    m = n.bit_length() - 1
    deep = np.arange(DEEPEST, m, -1)  # the cells from 2^-e to 2^(1 - e)
    inside = np.union1d(np.arange(1, n - 1) / n, np.arange(1, PARTS) / PARTS)
    inside = inside[(inside >= 1 / n) & (inside < 1 - 1 / n)]
    high = np.arange(m, _DIGITS + 1)  # the cells from 1 - 2^-k to 1 - 2^-(k + 1)
    lower = np.concatenate([[0.0, 0.0], 2.0**-deep, inside, 1 - 2.0**-high, [1.0]])
    powers = np.concatenate([[0, 52 + DEEPEST], 52 + deep, np.full(len(inside), 52 + m), 53 + high, [0]])
    return MicroCells(lower, 2.0**powers, m)
