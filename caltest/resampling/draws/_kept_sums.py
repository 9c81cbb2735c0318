"""What a state of a stream keeps instead of observations, and what statistics compute from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from caltest.predictions._arrays import Floats
from caltest.predictions.cells._cells import CellSums
from caltest.resampling.distributions._poisson_binomial import Events

Extremes = tuple[Floats, Floats]
"""Largest and smallest values of paths, ``(n_data_sets,)`` each, 0 at the start included."""


@dataclass(frozen=True, eq=False)
class KeptCells(CellSums):
    """Sums over the occupied cells of a partition, of one data set or several.

    Attributes
    ----------
    count, predicted_sum, observed_count : arrays
        As in `CellSums`; the leading axis of ``observed_count`` is that of the data sets.
    own : array of shape (n_data_sets, n_cells)
        Sums of the squared residuals of the observations: those of the event for two outcomes, else of all outcomes.
    spread : array of shape (n_cells,)
        Their expectation, if the model is calibrated.
    """

    own: Floats
    spread: Floats


class KeptSums(ABC):
    """Sums of a state: of the outcomes that happened, of simulated ones, or of both.

    They are of one or several data sets with the same predictions. `Statistic.evaluate_sums` reads them. What a state
    does not keep is None.

    Attributes
    ----------
    n_samples, n_outcomes : int
        Number of observations, and of outcomes.
    """

    n_samples: int
    n_outcomes: int

    @abstractmethod
    def cells(self, partition: Any) -> KeptCells:
        """Return the sums over the cells of a partition; refuse cells that cannot be made of those of the state."""

    @property
    @abstractmethod
    def log_excess(self) -> Floats:
        """Sums of the logarithms of the outcomes' probabilities minus their expectations; -inf where one is 0."""

    @property
    def brier_excess(self) -> Floats | None:
        """Brier scores minus their expectation, in units of its standard deviation."""
        return None

    @property
    def extremes(self) -> Extremes | None:
        """Extremes of the cumulative residual of the event, evaluated at the ends of narrow cells."""
        return None

    @property
    def widest_extremes(self) -> Extremes | None:
        """Bounds of the extremes of the cumulative residual of the event, evaluated at every observation."""
        return None

    def events(self, partition: Any) -> Sequence[Events] | None:
        """Return what stands for the event's probabilities in the cells of a partition."""
        return None
