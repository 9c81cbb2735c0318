"""Pairs of observations of a cell that are made within a lead, over which labels may depend on each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caltest.predictions._arrays import Floats, Integers
from caltest.predictions.inputs._parts import sums_in_parts
from caltest.predictions.inputs._times import Timing


@dataclass(frozen=True, eq=False)
class Windows:
    """The pairs of observations of a cell (bin) that are less than a lead apart, each with itself among them.

    Attributes
    ----------
    order, cell : arrays of shape (n_samples,)
        Observations by cell and time, and the cell of each.
    first, last : arrays of shape (n_samples,)
        Positions in this order between which the observations near each one are.
    """

    order: Integers
    cell: Integers
    first: Integers
    last: Integers

    @classmethod
    def of(cls, cell: Integers, timing: Timing) -> Windows:
        """Return the pairs within the cells ``(n_samples,)``."""
        order = np.lexsort((timing.step, cell))
        key = cell[order] * np.int64(timing.n_steps + timing.lead) + timing.step[order]
        first = np.searchsorted(key, key - timing.lead, side="right")
        return cls(order, cell[order], first, np.searchsorted(key, key + timing.lead, side="left"))

    def products(self, values: Floats) -> Floats:
        """Return the sums of the products of values ``(n_samples,)`` over the pairs of each cell, ``(n_cells,)``."""
        own = values[self.order]
        until = np.append(0.0, np.cumsum(own))
        return sums_in_parts(self.cell, own * (until[self.last] - until[self.first]), int(self.cell.max()) + 1)
