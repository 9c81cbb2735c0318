"""What is enough for a statistic that does not need all labels: summaries of simulated labels, and sums of a stream.

Summaries of paths and sums of a stream are for statistics of the package; the others are public.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from caltest.predictions._arrays import Floats
from caltest.predictions._view import LensView
from caltest.predictions.cells._cells import CellSums
from caltest.resampling.distributions._poisson_binomial import Events
from caltest.resampling.draws._path_blocks import Path, PathBlocks

Extremes = tuple[Floats, Floats]
"""Largest and smallest values of paths, ``(n_data_sets,)`` each, 0 at the start included."""


@dataclass(frozen=True)
class CellCounts:
    """Counts of the outcomes in the cells (bins) of a partition; a statistic receives them as `CellSums`.

    Parameters
    ----------
    partition : Partition or callable
        The cells.

    See Also
    --------
    caltest.resampling.EntryCounts : Counts of each class.

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

    See Also
    --------
    caltest.resampling.EntrySums : Sums of each class.

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


@dataclass(frozen=True, eq=False)
class EntrySums:
    """The sum of what each label adds, of the entries that labels select; a statistic receives ``(n_replicates,)``.

    Parameters
    ----------
    term : array of shape (n_samples, n_outcomes)
        What each outcome of an observation adds. It is finite, also where the outcome is impossible.

    See Also
    --------
    caltest.resampling.EntryCounts : Counts of each class.

    Examples
    --------
    The logarithm of the probability of what happened:

    >>> import numpy as np
    >>> from caltest.resampling import EntrySums
    >>> EntrySums(np.log([[0.2, 0.8], [0.5, 0.5]])).term.shape
    (2, 2)
    """

    term: Floats


@dataclass(frozen=True, eq=False)
class PathExtremes:
    """The extremes of the cumulative residual of the event of two outcomes.

    A statistic receives ``(n_replicates, 3)``: the highest and the lowest value, its start at 0 included, and the last.

    Parameters
    ----------
    path : Path
        The event's path.
    """

    path: Path


@dataclass(frozen=True, eq=False)
class EitherEndExcursion:
    """The largest distance of the cumulative residual of an event from its start or from its end.

    A statistic receives ``(n_replicates,)``. The distance from the end is that of the complement from its start.

    Parameters
    ----------
    path : Path
        The event's path.
    """

    path: Path


@dataclass(frozen=True, eq=False)
class LargestExcursion:
    """The largest standardised distance from 0 of the cumulative residuals of all outcomes.

    A statistic receives ``(n_replicates,)``.

    Parameters
    ----------
    blocks : PathBlocks
        The path of every outcome.
    scale : array of shape (n_outcomes,)
        What each is divided by; a path of scale 0 adds infinity if it ever leaves 0, and nothing else.
    """

    blocks: PathBlocks
    scale: Floats


Summary = CellCounts | EntryCounts | EntrySums | PathExtremes | EitherEndExcursion | LargestExcursion

Wanted = tuple[LensView, Summary]
"""A summary of the outcomes behind a lens."""


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
