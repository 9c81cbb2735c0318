"""Convex estimator of the calibration error: every observation belongs to the two cells nearest to its prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._cells import sum_over_events
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._distances import Distance, total_variation, validate_distance
from caltest.predictions._sample import Sample
from caltest.predictions.cells._cells import CellSums
from caltest.predictions.cells._partitions import Intervals, Partition, fit_partition, validate_partition
from caltest.predictions.cells._trees import VarianceTree
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import one_of, validate_share
from caltest.results._naming import parameter
from caltest.statistics._base import Statistic
from caltest.statistics._binned import cell_distances


@dataclass(frozen=True, repr=False)
class ConvexECE(Statistic):
    r"""Expected calibration error with convex assignment (Posocco and Bonnefoy 2021), for two-outcome lenses.

    .. math::
        \sum_b \hat p_b \, d(\hat g_b, \hat r_b), \qquad
        \hat p_b = \tfrac1n \sum_i a_{ib}, \quad
        \hat g_b = \frac{\sum_i a_{ib} g_i}{\sum_i a_{ib}}, \quad
        \hat r_b = \frac{\sum_i a_{ib} y_i}{\sum_i a_{ib}}

    with predictions :math:`g_i` and outcomes :math:`y_i`. An observation between the centres
    :math:`c_{b-1} < g_i \le c_b` of two neighbouring cells (bins) belongs to the upper one with share
    :math:`a_{ib} = (g_i - c_{b-1}) / (c_b - c_{b-1})` and to the lower one with the rest (linear binning, as in kernel
    density estimates); beyond the outermost centres it belongs to the outermost cell. With given edges the estimate
    does not jump when a prediction crosses an edge. Its target is the miscalibration averaged within these overlapping
    windows; like `ECE` it is biased upwards near calibration. With `EqualWidth` cells it is the convex estimator of
    the paper, with `EqualMass` cells the adaptive convex one; the adaptive one is `ECE` with `EqualMass` cells. Sample
    weights multiply the shares.

    Parameters
    ----------
    partition : Partition
        Intervals of the event's probability: `EqualWidth`, `EqualMass`, `Edges` or `VarianceTree`.
    low : float
        The smallest possible prediction: 0 for a class, 1 / n_classes for a confidence. The partition is applied to
        ``(prediction - low) / (1 - low)``.
    share : {"linear", "swapped"}
        "linear" is as above. "swapped" exchanges the shares of the two cells, as the program released with the paper
        does, so that the farther centre counts more; use it only to reproduce the numbers of that program.
    distance : callable
        A function ``d(predicted, observed)`` of arrays ``(..., 2)``; total variation by default.

    Raises
    ------
    TypeError
        If ``partition`` is neither a partition nor a function, ``distance`` is not a function, ``low`` is not a number
        or ``share`` is not a text.
    ValueError
        If ``low`` is negative or at least 1, or ``share`` is unknown; when it is evaluated, if the partition does not
        make intervals.

    See Also
    --------
    ECE : Every observation belongs to one cell.
    KDEError : Smooths with a kernel instead of cells.

    References
    ----------
    N. Posocco and A. Bonnefoy (2021), Estimating expected calibration errors, ICANN, section 4.3.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> convex = caltest.statistics.ConvexECE(caltest.EqualWidth(15), low=0.1)
    >>> round(caltest.calibration_error(y_true, y_prob, lens=caltest.Confidence(), statistic=convex), 4)
    0.0399
    """

    words = "average error in overlapping cells"

    partition: Partition | Any = parameter(VarianceTree(), validate_partition)
    low: float = parameter(0.0, validate_share)
    share: str = parameter("linear", one_of("linear", "swapped"))
    distance: Distance = parameter(total_variation, validate_distance)

    n_outcomes = 2
    measures_scatter = True

    @property
    def target(self) -> Distance:
        """The distance that is averaged."""
        return self.distance

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return the error ``(...)`` of outcomes ``(..., n_samples)``."""
        mapping = sample.once(self._map)
        flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
        events = mapping.sum_events(flat).reshape(*outcomes.shape[:-1], -1)
        # Shares are summed in different orders: in a cell full of events only rounding is left.
        rest = mapping.count - events
        observed = np.stack([np.where(rest > 1e-13 * mapping.count, rest, 0.0), events], axis=-1)
        sums = CellSums(mapping.count, mapping.predicted_sum, observed)
        return (cell_distances(sums, self.distance) * sums.share).sum(axis=-1)

    def _map(self, sample: Sample) -> _ConvexMapping:
        """Return the shares of the observations in the cells."""
        position = (sample.event - self.low) / (1 - self.low)
        intervals = fit_partition(self.partition, np.column_stack([1 - position, position]))
        if not isinstance(intervals, Intervals):
            refuse(f"`partition` of `ConvexECE` must make intervals, as EqualWidth(15) does, got {self.partition!r}.")
        edge = np.concatenate([[0.0], intervals.edges, [1.0]])
        centre = (edge[1:] + edge[:-1]) / 2
        gap = np.searchsorted(centre, position)
        inside = (gap > 0) & (gap < len(centre))
        below, above = centre[gap[inside] - 1], centre[gap[inside]]
        upper = np.zeros(sample.n_samples)
        upper[inside] = (position[inside] - below) / (above - below)
        if self.share == "swapped":
            upper[inside] = 1 - upper[inside]
        return _ConvexMapping.of(sample, gap, upper, len(centre))


@dataclass(frozen=True, eq=False)
class _ConvexMapping:
    """Shares of sorted observations in cells; gap j lies between the centres of cells j - 1 and j.

    Attributes
    ----------
    start : array of shape (n_cells + 2,)
        Position of the first observation of each gap.
    upper, lower : arrays of shape (n_samples,)
        Share (times weight) of each observation in the cells above and below it; before the first centre the cell
        below is cell 0 too.
    count : array of shape (n_cells,)
        Sum of the shares in each cell.
    predicted_sum : array of shape (n_cells, 2)
        Sum of the null probabilities, times shares.
    """

    start: Integers
    upper: Floats
    lower: Floats
    count: Floats
    predicted_sum: Floats

    @classmethod
    def of(cls, sample: Sample, gap: Integers, upper: Floats, n_cells: int) -> _ConvexMapping:
        """Compute the sums over cells that do not depend on outcomes."""
        upper, lower = sample.weight_or_ones * upper, sample.weight_or_ones * (1 - upper)

        def add(value: Floats | float) -> Floats:
            sums = [np.bincount(gap, value * share, n_cells + 1).astype(np.float64) for share in (upper, lower)]
            return _join(*sums)

        predicted_sum = np.stack([add(column) for column in sample.null_prob.T], axis=-1)
        return cls(np.searchsorted(gap, np.arange(n_cells + 2)), upper, lower, add(1.0), predicted_sum)

    def sum_events(self, outcomes: NDArray[Any]) -> Floats:
        """Return the sum of the shares of the events, ``(n_replicates, n_cells)``."""
        return _join(*(sum_over_events(outcomes, share, self.start) for share in (self.upper, self.lower)))


def _join(upper: Floats, lower: Floats) -> Floats:
    """Return sums over cells ``(..., n_cells)`` from sums over the gaps around their centres ``(..., n_cells + 1)``."""
    joined = upper[..., :-1] + lower[..., 1:]
    joined[..., 0] += lower[..., 0]
    return joined
