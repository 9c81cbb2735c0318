"""Binned errors: average (ECE) or largest (MCE) distance of frequencies and predictions, and its sweep over cells."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._sweep import sweep
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._distances import (
    OF_DIFFERENCES,
    Distance,
    ScaleWeight,
    total_variation,
    validate_distance,
    validate_scale_weight,
)
from caltest.predictions._sample import Sample
from caltest.predictions._user_functions import apply_distance, apply_scale_weight
from caltest.predictions.cells._cells import CellSums, cells_of
from caltest.predictions.cells._partitions import Partition, validate_partition
from caltest.predictions.cells._trees import VarianceTree
from caltest.predictions.inputs._validation import one_of
from caltest.resampling.distributions._base import CellDistribution, Distribution
from caltest.resampling.distributions._exact import MaximumDistribution, SumDistribution
from caltest.resampling.distributions._poisson_binomial import (
    Events,
    PoissonBinomial,
    chernoff_bound,
    count_bound,
    deviations_bound,
    distributions_of,
)
from caltest.resampling.draws._signs import residual_sums
from caltest.resampling.draws._summaries import CellCounts, KeptCells, KeptSums
from caltest.results._naming import parameter
from caltest.statistics._base import Statistic, counts_events, in_batches

_ON_LATTICE = 1e-6
_LARGEST_DENOMINATOR = 1000
_BLOCK_COUNTS = 2**16  # of all cells and outcomes, which stay in the cache with what is made of them


@dataclass(frozen=True, repr=False)
class Binned(Statistic):
    """Base class of statistics of the distances in the cells of a partition: `reduce` and `distribution` define one."""

    partition: Partition | Any = parameter(VarianceTree(), validate_partition)
    distance: Distance = parameter(total_variation, validate_distance)

    measures_scatter = True

    @abstractmethod
    def reduce(self, sums: CellSums) -> Floats:
        """Return the statistic ``(...)`` of cell sums with leading axes ``(...)``."""

    @abstractmethod
    def distribution(self, cells: ExactCells) -> Distribution:
        """Return the exact null distribution, for two outcomes."""

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return the statistic ``(...)`` of outcomes ``(..., n_samples)``, of some replicates at a time."""
        cells = cells_of(sample, self.partition)
        flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
        size = max(1, _BLOCK_COUNTS // (cells.n_cells * sample.n_outcomes))
        found = in_batches(lambda some: self.reduce(CellSums.of(sample, cells, some)), flat, size)
        return found.reshape(outcomes.shape[:-1])

    def summary(self, sample: Sample) -> CellCounts:
        """Return what suffices: the counts of the cells."""
        return CellCounts(self.partition)

    def evaluate_summary(self, sample: Sample, counted: CellSums) -> Floats:
        """Return the statistic of drawn cell sums."""
        return self.reduce(counted)

    def evaluate_signs(self, sample: Sample, signs: NDArray[np.int8]) -> Floats | None:
        """Return the statistic of signed residuals; None if the distance is not one of differences."""
        if self.distance not in OF_DIFFERENCES:
            return None
        cells = cells_of(sample, self.partition)
        residual = residual_sums(sample, signs, cells)
        return self.reduce(CellSums(cells.count, cells.null_sum, cells.null_sum + residual))

    def evaluate_sums(self, sums: KeptSums) -> Floats:
        """Return the statistic of kept cell sums."""
        return self.reduce(sums.cells(self.partition))

    def exact_distribution_of_sums(self, sums: KeptSums) -> Distribution | None:
        """Return the exact null distribution, for two outcomes."""
        events = sums.events(self.partition)
        if events is None:
            return None
        return self.distribution(CellsOfSums(sums.cells(self.partition), events, self.distance))

    def exact_distribution(self, sample: Sample) -> Distribution | None:
        """Return the exact null distribution, for two outcomes without weights."""
        return self.distribution(ExactCells(sample, self.partition, self.distance)) if counts_events(sample) else None


@dataclass(frozen=True, repr=False)
class ECE(Binned):
    r"""Expected calibration error (ECE), equation 6 of Vaicenavicius et al. (2019).

    .. math:: \hat\eta_d = \sum_{i=1}^L \hat p^{(i)} \, d(\hat g^{(i)}, \hat r^{(i)})

    with the share of the observations, the average prediction and the outcome frequencies of each cell (bin). Its
    target is the expected miscalibration averaged within cells. With a fixed partition it underestimates
    :math:`\eta_d` as n grows (Theorem 2) and overestimates it in small samples, so that a value means little without
    its noise floor. It has almost no power against under-confidence, because labels then vary less than predicted.

    Parameters
    ----------
    partition : Partition or callable
        Cells of the induced simplex; `VarianceTree()` with 2 ** round(0.3 log2 n) cells by default.
    distance : callable
        A function ``d(predicted, observed)`` of arrays ``(..., n_outcomes)``; total variation by default.
    scale_weight : callable or {"p", "1-p", "p(1-p)", "(1-2p)^2"}, optional
        Where on the probability scale errors matter, for two outcomes: a function w of probabilities, or one of these
        by name. Cell i then counts :math:`\hat p^{(i)} w(\bar g_i)`, at its average prediction, divided by the sum
        over the cells, so that the error keeps its unit, and a constant changes nothing (Nixon et al. 2019, appendix
        D.2: the ends of the scale where rare events matter, its middle for foreign data).

    Raises
    ------
    TypeError
        If ``partition`` is neither a partition nor a function, or ``distance`` or ``scale_weight`` is no function; if
        one cannot be hashed.
    ValueError
        If ``scale_weight`` is another text; when it is evaluated, if it is negative, infinite or 0 for all
        predictions.

    See Also
    --------
    MCE : The largest distance in a cell instead of the average.
    SquaredL2 : Squared error without the bias of small samples.
    TemperatureScore : Power against over- and under-confidence.

    References
    ----------
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, section 4.1.
    C. Guo et al. (2017), On calibration of modern neural networks, ICML.
    J. Nixon et al. (2019), Measuring calibration in deep learning, CVPR workshops, appendix D.2.

    Examples
    --------
    Nixon et al. (2019), figure 4: predictions of 0.52 that are always wrong and of 0.58 that are always right share
    a cell, where they cancel:

    >>> import caltest
    >>> confidence = [[0.52, 0.48]] * 450 + [[0.58, 0.42]] * 550
    >>> y_true = [1] * 450 + [0] * 550
    >>> ece = caltest.ECE(partition=caltest.EqualWidth(10))
    >>> round(caltest.calibration_error(y_true, confidence, lens=caltest.Confidence(), statistic=ece), 6)
    0.003

    Where errors of rare events matter most:

    >>> rare = caltest.ECE(caltest.EqualWidth(2), scale_weight="1-p")
    >>> round(caltest.calibration_error([0, 1, 1, 1], [0.25, 0.25, 0.75, 0.75], statistic=rare), 6)
    0.25
    """

    words = "average error in cells"

    scale_weight: ScaleWeight | None = parameter(None, validate_scale_weight)

    @property
    def n_outcomes(self) -> int | None:
        """Number of outcomes that it is defined for: 2 with a weight on the scale of one probability."""
        return super().n_outcomes if self.scale_weight is None else 2

    @property
    def target(self) -> Distance | None:
        """The distance that is averaged; None if it is weighted."""
        return self.distance if self.scale_weight is None else None

    def reduce(self, sums: CellSums) -> Floats:
        """Return the average distance, weighted by the shares of the cells."""
        if self.distance is total_variation:  # the same without dividing counts, which is several times faster
            gap, count = np.abs(sums.observed_count - sums.predicted_sum), sums.count
            if self.scale_weight is not None:
                weight = self._weights(sums)
                gap, count = gap * weight[..., None], count * weight
            return gap.reshape(*gap.shape[:-2], -1).sum(axis=-1) / (2 * count.sum(axis=-1))
        # Not a matrix product: its rounding would depend on how many draws are evaluated at once.
        return (cell_distances(sums, self.distance) * self._shares(sums)).sum(axis=-1)

    def distribution(self, cells: ExactCells) -> SumDistribution:
        """Return the distribution of the sum over cells."""
        shares = self._shares(cells.sums)
        parts = cells.distributions(shares)
        observed = cell_distances(cells.sums, self.distance) * shares
        largest = float((shares / cells.sums.share).max())  # a weighted sum is at most so many times the other one
        bound = partial(_bound_of_multiple, cells.bound_of_sum, largest)
        return SumDistribution(parts, cells.spacing, bound, cells.unit(parts), observed)

    def _shares(self, sums: CellSums) -> Floats:
        """Return what each cell counts in the average, ``(..., n_cells)``."""
        if self.scale_weight is None:
            return sums.share
        count = sums.count * self._weights(sums)
        return count / count.sum(axis=-1, keepdims=True)

    def _weights(self, sums: CellSums) -> Floats:
        """Return the weight at the average prediction of each cell, ``(..., n_cells)``."""
        assert self.scale_weight is not None
        event = np.clip(sums.predicted[..., 1], 0.0, 1.0)  # sums of predictions round
        return apply_scale_weight(self.scale_weight, event)


def _bound_of_multiple(bound: Callable[[float], float], factor: float, x: float) -> float:
    return bound(x / factor)


@dataclass(frozen=True, repr=False)
class MCE(Binned):
    r"""Maximum calibration error (MCE): the largest distance of an occupied cell (bin).

    .. math:: \max_i d(\hat g^{(i)}, \hat r^{(i)})

    with the average prediction and the outcome frequencies of each cell. Its target is the worst-case miscalibration
    :math:`\max_\mu d(r(\mu), \mu)` of section 3.2 of Vaicenavicius et al. (2019), averaged within cells. As a rule
    the cell with the fewest observations decides it, so that it is mostly noise.

    Parameters
    ----------
    partition : Partition or callable
        Cells of the induced simplex.
    distance : callable
        A function ``d(predicted, observed)`` of arrays ``(..., n_outcomes)``.

    Raises
    ------
    TypeError
        If ``partition`` is neither a partition nor a function, or ``distance`` is not a function; if either cannot be
        hashed.

    See Also
    --------
    ECE : The average over the cells.

    References
    ----------
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, section 3.2.

    Examples
    --------
    >>> import caltest
    >>> mce = caltest.MCE(partition=caltest.EqualWidth(2))
    >>> round(caltest.calibration_error([0, 1, 1, 1], [0.25, 0.25, 0.875, 1.0], statistic=mce), 6)
    0.25
    """

    words = "largest error of a cell"

    def reduce(self, sums: CellSums) -> Floats:
        """Return the largest distance of an occupied cell."""
        return cell_distances(sums, self.distance).max(axis=-1)

    def distribution(self, cells: ExactCells) -> MaximumDistribution:
        """Return the distribution of the largest distance."""
        return MaximumDistribution(cells.distributions(np.ones(len(cells.sums.count))), cells.bound_of_largest)


def cell_distances(sums: CellSums, distance: Distance) -> Floats:
    """Return the distance ``(..., n_cells)`` in each cell, 0 where it is empty."""
    predicted, observed = sums.predicted, sums.observed
    empty = (sums.count <= 0)[..., None]
    if empty.any():  # resampled observations leave cells empty; no distance is computed there
        predicted, observed = (np.where(empty, 1 / observed.shape[-1], values) for values in (predicted, observed))
    distances = apply_distance(distance, predicted, observed)
    return np.where(empty[..., 0], 0.0, distances) if empty.any() else distances


class ExactCells:
    """Null distributions of the distance in each cell of a two-outcome problem, predictions fixed."""

    def __init__(self, sample: Sample, partition: Any, distance: Distance) -> None:
        self._distance = distance
        self._cells = cells_of(sample, partition)
        self._probability = np.clip(sample.expected[:, 1], 0.0, 1.0)
        self._prob = self._cells.split(self._probability)
        self._counts = PoissonBinomial.of_each(self._prob)
        self._n = sample.n_samples
        self.sums = CellSums.of(sample, self._cells, sample.outcome)
        self.spacing = self._spacing()

    def _spacing(self) -> float:
        """Return what one more event adds, if the distance is proportional to the deviation; NaN if it cannot be."""
        with np.errstate(all="ignore"):
            farthest = float(np.max(self._distance(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]))))
        return farthest / self._n if 0 < farthest < np.inf else np.nan

    def distributions(self, scale: Floats) -> list[CellDistribution]:
        """Return the distribution of ``scale[b] * distance`` in each cell b."""
        return distributions_of(self._counts, lambda b, events: self._distances(b, events) * scale[b])

    def bound_of_sum(self, x: float) -> float:
        """Return a bound of P(sum of share times distance >= x); 1 unless distances grow at most with deviations."""
        centre = self.sums.predicted_sum[:, 1]
        for b, (n, m) in enumerate(zip(self.sums.count, centre, strict=True)):
            if self._distance is total_variation:
                break
            events = np.arange(int(n) + 1)
            allowed = self.spacing * (np.abs(events - m) + _ON_LATTICE)
            if not np.all(self._distances(b, events) * n / self._n <= allowed):
                return 1.0
        return deviations_bound(self._prob, centre, self._counts, x / self.spacing)

    def bound_of_largest(self, x: float) -> float:
        """Return a bound of P(largest distance >= x): one for each side of each cell, added up."""
        total = 0.0
        for b, (n, m) in enumerate(zip(self.sums.count, self.sums.predicted_sum[:, 1], strict=True)):
            far = np.flatnonzero(self._distances(b, np.arange(int(n) + 1)) >= x)
            above, below = far[far >= m], far[far < m]
            total += count_bound(self._prob[b], int(above[0]), upper=True) if above.size else 0.0
            total += count_bound(self._prob[b], int(below[-1]), upper=False) if below.size else 0.0
        return total

    def _distances(self, b: int | Integers, events: Integers) -> Floats:
        """Return the distance for several numbers of events, in a cell or in a cell each."""
        n = self.sums.count[b]
        return apply_distance(self._distance, self.sums.predicted[b], np.column_stack([(n - events) / n, events / n]))

    def unit(self, parts: list[CellDistribution]) -> float | None:
        """Return the step of the lattice on which all contributions lie, if the predictions are multiples of 1 / q."""
        q = _common_denominator(np.sort(self._probability))
        if q is None or not self.spacing > 0:
            return None
        unit = self.spacing / q
        atoms = np.concatenate([part.values for part in parts]) / unit
        return unit if np.all(np.abs(atoms - np.rint(atoms)) < _ON_LATTICE) else None


class CellsOfSums(ExactCells):
    """The same from sums that a state keeps."""

    def __init__(self, cells: KeptCells, events: Sequence[Events], distance: Distance) -> None:
        self._distance = distance
        self._events = events
        self._counts = [part.count for part in events]
        self._probability = np.concatenate([part.prob for part in events])
        self._n = int(cells.count.sum())
        self.sums = CellSums(cells.count, cells.predicted_sum, cells.observed_count[0])
        self.spacing = self._spacing()

    def bound_of_sum(self, x: float) -> float:
        """Return a bound of P(sum of share times distance >= x); 1 unless the distance is the total variation."""
        if self._distance is not total_variation:
            return 1.0
        centre = self.sums.predicted_sum[:, 1]

        def log_moment(t: float) -> float:
            total = 0.0
            for part, count, m in zip(self._events, self._counts, centre, strict=True):
                up, down = part.log_moment(t) - t * m, part.log_moment(-t) + t * m
                top = max(up, down)
                inner = float(count.pmf @ np.exp(-t * np.abs(count.counts - m) - top))
                total += top + math.log(math.exp(up - top) + math.exp(down - top) - inner)
            return total

        return chernoff_bound(log_moment, x / self.spacing)

    def bound_of_largest(self, x: float) -> float:
        """Return a bound of P(largest distance >= x); 1 unless the distance is the total variation."""
        if self._distance is not total_variation:
            return 1.0
        total = 0.0
        for part, n, m in zip(self._events, self.sums.count, self.sums.predicted_sum[:, 1], strict=True):
            above, below = math.ceil(m + n * x), math.floor(m - n * x)
            total += part.bound(above, upper=True) if above <= n else 0.0
            total += part.bound(below, upper=False) if below >= 0 else 0.0
        return total


def _common_denominator(p: Floats) -> int | None:
    """Return the smallest q up to 1000 such that all of increasing p are multiples of 1 / q, if there is one."""
    distinct = p[np.append(True, np.diff(p) > 0)]
    if len(distinct) > _LARGEST_DENOMINATOR + 1:
        return None
    q = np.arange(1, _LARGEST_DENOMINATOR + 1)
    product = distinct[:, None] * q
    whole = np.all(np.abs(product - np.rint(product)) < 1e-9, axis=0)
    return int(q[np.argmax(whole)]) if whole.any() else None


@dataclass(frozen=True, repr=False)
class MonotonicSweepECE(Statistic):
    r"""Calibration error of the monotonic sweep (Roelofs et al. 2022), for two-outcome lenses.

    .. math::
        \sum_{b=1}^{B^*} \frac{n_b}{n} \bigl|\bar y_b - \bar p_b\bigr|, \qquad
        B^* = \max \{B \le n : \bar y_1 \le \dots \le \bar y_{B'} \text{ for all } B' \le B\}

    over the cells (bins) of ``EqualMass(B)``, with :math:`\bar p_b` the mean prediction and :math:`\bar y_b` the
    frequency of the event. The sweep stops at the first number of cells at which frequencies decrease somewhere. Its
    target is the miscalibration of a model with a non-decreasing calibration function, with as little smoothing as that
    allows. If the predictions do not discriminate, it stops at one cell, and only the overall gap is left; if the
    calibration function decreases somewhere, it stops at few cells, and the estimate is too small with any number of
    observations (docs/which-estimator.md). The cells
    depend on the outcomes and are chosen again for every draw, so that the p-value is valid. Tied predictions stay
    together, and cells are cut as by ``numpy.array_split``; the authors' program cuts ties in the order of the
    observations and distributes the remainder of n / B differently. Sample weights change means and frequencies, not
    the cells.

    Parameters
    ----------
    norm : {"l1", "l2"}
        The mean absolute gap, or the root of the mean squared gap (the default of the authors' program).

    Raises
    ------
    TypeError
        If ``norm`` is not a text.
    ValueError
        If ``norm`` is unknown.

    See Also
    --------
    ECE : The same on a given number of cells, ``ECE(EqualMass(15))``.
    IsotonicError : Assumes a non-decreasing calibration function too, without cells.

    References
    ----------
    R. Roelofs, N. Cain, J. Shlens and M. C. Mozer (2022), Mitigating bias in calibration error estimation, AISTATS.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> sweep = caltest.statistics.MonotonicSweepECE()
    >>> round(caltest.calibration_error(y_true, y_prob, lens=caltest.Confidence(), statistic=sweep), 4)
    0.0397
    """

    words = "average error in monotonic cells"

    norm: str = parameter("l1", one_of("l1", "l2"))

    n_outcomes = 2

    @property
    def target(self) -> Distance:
        """The distance that is averaged."""
        return total_variation

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return the error ``(...)`` of outcomes ``(..., n_samples)``."""
        return self._sweep(sample, outcomes)[1].reshape(outcomes.shape[:-1])

    def n_cells(self, sample: Sample, outcomes: NDArray[Any]) -> Integers:
        """Return the chosen number of cells :math:`B^*`, ``(...)``; ties may leave fewer occupied cells."""
        return self._sweep(sample, outcomes)[0].reshape(outcomes.shape[:-1])

    def _sweep(self, sample: Sample, outcomes: NDArray[Any]) -> tuple[Integers, Floats]:
        flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
        return sweep(flat, *sample.once(_sorted_sums), sample.weight is not None, self.norm == "l2")


def _sorted_sums(sample: Sample) -> tuple[Floats, Floats, Integers]:
    """Return cumulative probabilities, cumulative weights and starts of blocks of ties, ``(n_samples + 1,)`` each."""
    weight = sample.weight_or_ones
    expected, mass = (np.append(0.0, np.cumsum(value)) for value in (weight * sample.null_prob[:, 1], weight))
    start = np.append(np.flatnonzero(np.append(True, np.diff(sample.event) > 0)), sample.n_samples)
    return expected, mass, start[np.searchsorted(start, np.arange(sample.n_samples + 1))]
