r"""Errors made from cells: how far observed frequencies lie from predictions, on average (ECE) or at worst (MCE)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._distances import Distance, total_variation
from caltest.predictions._partitions import Partition
from caltest.predictions._sample import CellSums, Sample, apply_distance
from caltest.predictions._variance_tree import VarianceTree
from caltest.resampling._distributions import CellLaw, Law, PoissonBinomial, Tail
from caltest.resampling._draws import Draws
from caltest.resampling._exact import MaximumLaw, SumLaw
from caltest.statistics._base import Statistic, counts_events


@dataclass(frozen=True)
class Binned(Statistic):
    """A statistic made from distances in the cells of a partition; subclasses say how: `reduce`, `law` and `tail`."""

    partition: Partition | Any = VarianceTree()
    distance: Distance = total_variation

    measures_scatter = True

    @abstractmethod
    def reduce(self, sums: CellSums) -> NDArray[np.float64]:
        """Return the statistic ``(...)`` of cell sums with leading axes ``(...)``."""

    @abstractmethod
    def law(self, cells: ExactCells) -> Any:
        """Return the exact null law, for two outcomes."""

    @abstractmethod
    def tail(self, law: Any, cells: ExactCells) -> Tail:
        """Return the tail of that law at the observed outcomes."""

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        """Return the statistic ``(...)`` of outcomes ``(..., n_samples)``."""
        return self.reduce(CellSums.of(sample, sample.cells(self.partition), outcomes))

    def null(self, sample: Sample, draws: Draws) -> NDArray[np.float64]:
        """Return the statistic on every draw, ``(n_resamples,)``, of drawn cell sums."""
        return np.concatenate([self.reduce(sums) for sums in draws.cell_sums(sample, self.partition)])

    def exact_law(self, sample: Sample) -> Law | None:
        """Return the exact null law, for two outcomes without weights."""
        cells = self._exact_cells(sample)
        return None if cells is None else self.law(cells)

    def exact(self, sample: Sample) -> tuple[Law, Tail] | None:
        """Return the exact null law and the observed tail, for two outcomes without weights."""
        cells = self._exact_cells(sample)
        if cells is None:
            return None
        law = self.law(cells)
        return law, self.tail(law, cells)

    def _exact_cells(self, sample: Sample) -> ExactCells | None:
        return ExactCells(sample, self.partition, self.distance) if counts_events(sample) else None


@dataclass(frozen=True)
class ECE(Binned):
    r"""Expected calibration error, equation 6 of Vaicenavicius et al. (2019).

    .. math:: \hat\eta_d = \sum_{i=1}^L \hat p^{(i)} \, d(\hat g^{(i)}, \hat r^{(i)})

    with the share of rows, the average prediction and the outcome frequencies of each cell. Its target is the expected
    miscalibration averaged within cells; with a fixed partition it underestimates :math:`\eta_d` as n grows (Theorem
    2) and overestimates it in small samples, so that a value says little without its noise floor. It is nearly blind
    to under-confidence, which makes outcomes scatter less.

    Parameters
    ----------
    partition : Partition or callable
        Cells of the induced simplex; `VarianceTree()` with 2 ** round(0.3 log2 n) cells by default.
    distance : callable
        A function ``d(predicted, observed)`` of arrays ``(..., n_outcomes)``; total variation by default.

    References
    ----------
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, section 4.1.
    C. Guo et al. (2017), On calibration of modern neural networks, ICML.

    Examples
    --------
    Nixon et al. (2019), figure 4: predictions of 0.52 that are always wrong and of 0.58 that are always right share
    a cell, and the error all but vanishes.

    >>> import caltest
    >>> confidence = [[0.52, 0.48]] * 450 + [[0.58, 0.42]] * 550
    >>> y_true = [1] * 450 + [0] * 550
    >>> ece = caltest.ECE(partition=caltest.EqualWidth(10))
    >>> round(caltest.calibration_error(y_true, confidence, lens=caltest.Confidence(), statistic=ece), 6)
    0.003
    """

    def reduce(self, sums: CellSums) -> NDArray[np.float64]:
        """Return the average distance, weighted by the shares of the cells."""
        # Not a matrix product: its rounding would depend on how many draws are evaluated at once.
        return (cell_distances(sums, self.distance) * sums.share).sum(axis=-1)

    def law(self, cells: ExactCells) -> SumLaw:
        """Return the law of the sum over cells."""
        shares = cells.sums.share
        laws = cells.laws(shares)
        return SumLaw(laws, lambda: cells.laws(shares, tails=True), cells.spacing, cells.unit(laws))

    def tail(self, law: SumLaw, cells: ExactCells) -> Tail:
        """Return the tail of the sum, to which the observed contributions are known."""
        contributions = cell_distances(cells.sums, self.distance) * cells.sums.share
        return law.tail(float(contributions.sum()), contributions)


@dataclass(frozen=True)
class MCE(Binned):
    r"""Maximum calibration error: the distance in the worst occupied cell.

    .. math:: \max_i d(\hat g^{(i)}, \hat r^{(i)})

    Its target is the worst-case miscalibration :math:`\max_\mu d(r(\mu), \mu)` of section 3.2, averaged within cells.
    The cell with the fewest rows decides it as a rule: never a default.

    Parameters
    ----------
    partition : Partition or callable
        Cells of the induced simplex.
    distance : callable
        A function ``d(predicted, observed)`` of arrays ``(..., n_outcomes)``.

    Examples
    --------
    >>> import caltest
    >>> mce = caltest.MCE(partition=caltest.EqualWidth(2))
    >>> round(caltest.calibration_error([0, 1, 1, 1], [0.25, 0.25, 0.875, 1.0], statistic=mce), 6)
    0.25
    """

    def reduce(self, sums: CellSums) -> NDArray[np.float64]:
        """Return the largest distance of an occupied cell."""
        return cell_distances(sums, self.distance).max(axis=-1)

    def law(self, cells: ExactCells) -> MaximumLaw:
        """Return the law of the largest distance."""
        one = np.ones(len(cells.sums.count))
        return MaximumLaw(cells.laws(one), lambda: cells.laws(one, tails=True))

    def tail(self, law: MaximumLaw, cells: ExactCells) -> Tail:
        """Return the tail of the largest distance."""
        return law.tail(float(self.reduce(cells.sums)))


def cell_distances(sums: CellSums, distance: Distance) -> NDArray[np.float64]:
    """Return the distance ``(..., n_cells)`` in each cell, 0 where it is empty."""
    predicted, observed = sums.predicted, sums.observed
    empty = (sums.count <= 0)[..., None]
    if empty.any():  # resampled rows leave cells empty; a distance never sees them
        predicted, observed = (np.where(empty, 1 / observed.shape[-1], values) for values in (predicted, observed))
    distances = apply_distance(distance, predicted, observed)
    return np.where(empty[..., 0], 0.0, distances) if empty.any() else distances


class ExactCells:
    """Laws of the distance in each cell of a two-outcome problem, predictions fixed."""

    def __init__(self, sample: Sample, partition: Any, distance: Distance) -> None:
        self._distance = distance
        self._cells = sample.cells(partition)
        self._probability = sample.expected[:, 1]
        self.sums = CellSums.of(sample, self._cells, sample.outcome)
        if not callable(distance):
            msg = f"`distance` must be a function of (predicted, observed), got {distance!r}."
            raise ValueError(msg)
        with np.errstate(all="ignore"):
            farthest = float(np.asarray(distance(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])))[0])
        proportional = 0 < farthest < np.inf
        self.spacing = farthest / sample.n_samples if proportional else np.nan
        """What one more event adds, for distances that are proportional to the deviation; NaN where none can be."""

    def laws(self, scale: NDArray[np.float64], *, tails: bool = False) -> list[CellLaw]:
        """Return the law of ``scale[b] * distance`` in each cell b."""
        make = PoissonBinomial.with_tails if tails else PoissonBinomial.of
        laws = []
        for b, probability in enumerate(self._cells.split(self._probability)):
            count = make(probability)
            n = self.sums.count[b]
            observed = np.column_stack([(n - count.counts) / n, count.counts / n])
            values = np.asarray(self._distance(self.sums.predicted[b], observed)) * scale[b]
            possible = count.pmf > 0
            laws.append(CellLaw.of(values[possible], count.pmf[possible]))
        return laws

    def unit(self, laws: list[CellLaw]) -> float | None:
        """Return the step of the lattice on which all contributions lie, if the predictions are multiples of 1 / q."""
        q = _common_denominator(np.sort(self._probability))
        if q is None or not self.spacing > 0:
            return None
        unit = self.spacing / q
        atoms = np.concatenate([law.values for law in laws]) / unit
        return unit if np.all(np.abs(atoms - np.rint(atoms)) < _ON_LATTICE) else None


_ON_LATTICE = 1e-6
_LARGEST_DENOMINATOR = 1000


def _common_denominator(p: NDArray[np.float64]) -> int | None:
    """Return the smallest q up to 1000 such that all of increasing p are multiples of 1 / q, if there is one."""
    distinct = p[np.append(True, np.diff(p) > 0)]
    if len(distinct) > _LARGEST_DENOMINATOR + 1:
        return None
    q = np.arange(1, _LARGEST_DENOMINATOR + 1)
    product = distinct[:, None] * q
    whole = np.all(np.abs(product - np.rint(product)) < 1e-9, axis=0)
    return int(q[np.argmax(whole)]) if whole.any() else None
