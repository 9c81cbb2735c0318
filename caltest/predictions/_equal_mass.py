"""Cells (bins) with equal numbers of observations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._refit_intervals import cut_equal_mass
from caltest.predictions._partitions import (
    Assignment,
    Intervals,
    Partition,
    block_starts,
    require_two_outcomes,
    resolve_n_cells,
    validate_n_cells,
)
from caltest.predictions._validation import validate_choice


@dataclass(frozen=True, repr=False)
class EqualMass(Partition):
    """Cells that hold the same number of observations, as far as ties allow; for two outcomes.

    The order of the observations does not matter: a block of tied values belongs to one cell as a whole, and cells that
    are empty because of that are dropped.

    Parameters
    ----------
    n_cells : int or "sqrt"
        Number of cells aimed at; "sqrt" makes the integer part of the square root of the number of observations
        (Posocco and Bonnefoy 2021, section 4.5.1; they find that it grows somewhat too fast).
    cut : {"value", "halfway"}
        "value" cuts the sorted observations where ``numpy.array_split`` cuts them, so that edges are predicted values;
        a block of tied values belongs to the cell of its first one. "halfway" (the adaptive binning of Posocco and
        Bonnefoy 2021, as released) cuts after every ``n_samples // n_cells`` observations, halfway to the next value; a
        value equal to an edge belongs above it, the last cell takes the remainder, and there are at most as many cells
        as observations.

    Raises
    ------
    TypeError
        If ``n_cells`` is neither an integer nor a text, or ``cut`` is no text.
    ValueError
        If ``n_cells`` < 1 or another text than "sqrt", if ``cut`` is unknown, or if the fitted predictions have more
        than two outcomes.

    See Also
    --------
    EqualWidth : Cells of equal width.
    VarianceTree : Cells for any number of outcomes that adapt to the predictions.

    References
    ----------
    N. Posocco and A. Bonnefoy (2021), Estimating expected calibration errors, ICANN, section 4.3.

    Examples
    --------
    >>> import numpy as np
    >>> event = np.array([0.1, 0.2, 0.2, 0.2, 0.7, 0.9])
    >>> prob = np.column_stack([1 - event, event])
    >>> EqualMass(3).fit(prob)(prob)
    array([0, 0, 0, 0, 1, 1])
    >>> EqualMass(3, cut="halfway").fit(prob)(prob)
    array([0, 1, 1, 1, 2, 2])
    """

    n_cells: int | str
    cut: str = "value"

    n_outcomes = 2

    def __post_init__(self) -> None:
        validate_n_cells(self.n_cells)
        validate_choice(self.cut, "cut", ("value", "halfway"))

    def fit(self, prob: NDArray[np.float64]) -> Assignment:
        """Return the assignment to intervals between the cuts of the fitted observations."""
        require_two_outcomes(prob, "EqualMass")
        event = np.sort(prob[:, 1])
        if self.cut == "halfway":
            n_cells = min(resolve_n_cells(self.n_cells, len(event)), len(event))
            after = np.arange(1, n_cells) * (len(event) // n_cells)
            return Intervals((event[after - 1] + event[after]) / 2)
        starts = self.refit(event, np.ones((1, len(event)), dtype=np.uint16))[0, 1:-1]
        return Intervals(np.unique(event[starts[starts < len(event)]]))

    @property
    def refits(self) -> bool:
        """Whether `refit` is defined: for cuts at predicted values."""
        return self.cut == "value"

    def refit(self, event: NDArray[np.float64], drawn: NDArray[np.uint16]) -> NDArray[np.int64]:
        """Cut every resample; a cell starts at the first block of ties that begins at or after its cut."""
        n_cells = resolve_n_cells(self.n_cells, len(event))
        size, larger = divmod(len(event), n_cells)
        cut = np.cumsum(np.where(np.arange(n_cells) < larger, size + 1, size))[:-1]
        return cut_equal_mass(block_starts(event), drawn, cut)
