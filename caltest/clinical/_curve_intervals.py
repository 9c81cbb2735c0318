"""Intervals for the distances between predictions and the smooth curve of infinitely many labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from caltest.estimation.event._event_cells import EventCells
from caltest.estimation.scores._mean_interval import FEWEST_UNITS, UNKNOWN
from caltest.predictions._arrays import Floats
from caltest.predictions._sample import Sample, induce
from caltest.resampling.draws._alias_tables import BinomialNumbers
from caltest.resampling.engine._pvalues import rank_pvalues
from caltest.resampling.engine._run import Answer
from caltest.results import ConfidenceInterval
from caltest.statistics._curve_distances import CurveDistance, evaluate_together, fit_curve
from caltest.statistics._logistic_curves import expit

_N_CELLS, _MOST_CELLS = 1_024, 4_096  # of neighbouring predictions, if there are more; for p-values
_DRAWS = 399
_SIZES = (0.0, 0.5, 1.0, 1.5)  # of the error, as multiples of the observed one, that are tried first
_FURTHER, _LARGEST = 1.5, 100.0
_HALVINGS, _STEEP = 4, 2.5  # of intervals between sizes, while their quantiles are so many standard deviations apart
_LARGEST_SHIFT = 5.0  # of logits
_LUCKY = 0.16  # share of calibrated labels whose distances are so small that they show luck: one standard deviation
_NUMBERS = 2**22  # that are drawn at a time


@dataclass(frozen=True, eq=False)
class Distances:
    """Distances of observed labels, the mean of those of calibrated labels, and p-values, ``(n_parts,)`` each."""

    value: Floats
    floor: Floats
    pvalue: Floats

    @classmethod
    def of(cls, answers: Sequence[Answer]) -> Distances:
        """Return what tests answered."""
        numbers = [(answer.value, answer.null.mean, answer.pvalue) for answer in answers]
        return cls(*np.array(numbers).T)

    @classmethod
    def of_cells(
        cls, sample: Sample, parts: tuple[CurveDistance, ...], n_resamples: int, rng: np.random.Generator
    ) -> Distances:
        """Return those of many observations, whose labels are simulated, and compared, in cells of neighbours.

        The number of events of a cell is drawn as if its predictions were equal, so that it varies a little more.
        """
        cells = CurveSimulation.of(sample, parts, rng, _MOST_CELLS)
        drawn = cells.drawn(cells.sample.event, n_resamples)
        pvalues, _ = rank_pvalues(sample, cells.observed, drawn)
        value = evaluate_together(parts, sample, sample.outcome[None])[:, 0]
        return cls(value, drawn.mean(axis=1), pvalues[:, 0])


Path = Callable[[float], Floats]
"""From the size of an error to the probabilities ``(n_samples,)`` of the event."""


@dataclass(eq=False)
class CurveSimulation:
    r"""Smooth curves and their distances from the predictions, of observed and of simulated labels.

    Errors of a shape and size :math:`\lambda` have true probabilities :math:`\rho_\lambda(p)`, the predictions at
    :math:`\lambda = 0`. For each of four shapes (the observed distance to the curve, the logistic recalibration of Cox,
    and shifts of the logit up and down) labels are simulated for several sizes. With groups, the residuals of whole
    groups have random signs instead.

    Attributes
    ----------
    sample : Sample
        The observations, or cells (bins) of neighbouring ones if there are many.
    parts : tuple of CurveDistance
        The distances, of one smoother.
    share, size : arrays of shape (n_cells,)
        Share of events in each cell, and number of observations of equal weight that it is worth.
    rng : numpy.random.Generator
        Source of randomness.
    floor, judged : arrays of shape (n_parts,)
        Mean distances of calibrated labels, and the distances that limits are of, once `intervals` has simulated some.
    """

    sample: Sample
    parts: tuple[CurveDistance, ...]
    share: Floats
    size: Floats
    rng: np.random.Generator
    observed: Floats = field(init=False)
    judged: Floats = field(init=False)
    curve: Floats = field(init=False)
    calibrated: Floats | None = None
    floor: Floats | None = None

    def __post_init__(self) -> None:
        self.observed = self.distances(self.share[None])[:, 0]
        self.curve = np.clip(self._fitted(self.share[None])[0], 0.0, 1.0)

    @classmethod
    def of(
        cls, sample: Sample, parts: tuple[CurveDistance, ...], rng: np.random.Generator, most_cells: int = _N_CELLS
    ) -> CurveSimulation:
        """Return the simulation of a sample; many observations that are independent are put into cells."""
        share = sample.outcome.astype(np.float64)
        if sample.n_samples <= most_cells or sample.group is not None:
            return cls(sample, parts, share, np.ones(sample.n_samples), rng)
        size = -(-sample.n_samples // most_cells)
        first = np.arange(0, sample.n_samples - size + 1, size)  # all of one size, but for the last one
        weight = sample.weight_or_ones
        total, squares = np.add.reduceat(weight, first), np.add.reduceat(np.square(weight), first)
        event, share = (np.add.reduceat(weight * values, first) / total for values in (sample.event, share))
        prob, alike = np.column_stack([1 - event, event]), sample.weight is None
        cells = induce(prob, np.zeros(len(first), dtype=np.int64), weight=None if alike else total)
        return cls(cells, parts, share[cells.row], np.maximum(np.rint(total**2 / squares)[cells.row], 1.0), rng)

    def distances(self, outcomes: Floats) -> Floats:
        """Return the distances ``(n_parts, n_replicates)`` of shares of events ``(n_replicates, n_cells)``."""
        return evaluate_together(self.parts, self.sample, outcomes)

    def _fitted(self, outcomes: Floats) -> Floats:
        """Return the curves ``(n_replicates, n_cells)``."""
        first = self.parts[0]
        return self.sample.of_predictions(fit_curve, first.smoother, first.span).fitted(outcomes)

    def band(self, missed: float) -> tuple[Floats, Floats]:
        """Return two quantiles ``(n_cells,)`` of the curves of calibrated labels, ``missed`` and 1 - ``missed``."""
        curves = np.concatenate([self._fitted(labels) for labels in self._labels(self.sample.event)])
        low, high = np.quantile(curves, (missed, 1 - missed), axis=0)
        return low, high

    def intervals(self, missed: float) -> list[ConfidenceInterval]:
        """Return for each distance the values that the labels do not contradict.

        The target is the distance of the curve that the same smoother would have for infinitely many labels of these
        predictions. Sizes of an error at which the observed distance lies between the quantiles ``missed`` and 1 -
        ``missed`` of the simulated ones are not contradicted. The interval holds the distances of all shapes. A
        distance that is smaller by luck than those of most calibrated labels would contradict every size, or all but
        small ones, as if an error of 0 were certain: so the upper end is at least that of their 16 % quantile, as of
        the power-constrained limits of Cowan et al. (2011, arXiv:1105.3166). Certain predictions show nothing.
        """
        few = self.sample.n_groups is not None and self.sample.n_groups < FEWEST_UNITS
        if few or not np.any(self.sample.event * (1 - self.sample.event)):
            return [UNKNOWN] * len(self.parts)
        limits = [self._limits(path, missed) for path in self._paths()]
        low, high = np.min([low for low, _ in limits], axis=0), np.max([high for _, high in limits], axis=0)
        return [ConfidenceInterval(float(a), float(b)) for a, b in zip(low, high, strict=True)]

    def _paths(self) -> Iterator[Path]:
        """Yield the shapes of errors; at size 1 the first two are the observed ones."""
        event, weight = self.sample.event, self.sample.weight_or_ones
        gap = self.curve - event
        yield lambda size: np.clip(event + size * gap, 0.0, 1.0)
        inner = np.clip(event, 1e-12, 1 - 1e-12)
        logit = np.log(inner) - np.log1p(-inner)

        def moved(size: float, intercept: float, slope: float) -> Floats:
            return np.where((event > 0) & (event < 1), expit(logit + size * (intercept + slope * logit)), event)

        intercept, slope = EventCells.of_counts(event, weight, weight * self.share).raw_fit
        if math.isfinite(slope):
            yield lambda size: moved(size, intercept, slope - 1)
        variance = inner * (1 - inner)
        error = math.sqrt(float((weight**2 * variance / self.size).sum())) / float(weight.sum())
        size = max(float(np.average(np.abs(gap), weights=weight)), error)  # the gap may be 0
        reach = min(size / float(np.average(variance, weights=weight)), _LARGEST_SHIFT)
        yield lambda size: moved(size, reach, 0.0)
        yield lambda size: moved(size, -reach, 0.0)

    def _limits(self, path: Path, missed: float) -> tuple[Floats, Floats]:
        """Return the smallest and the largest distance ``(n_parts,)`` of a shape that is not contradicted."""
        from scipy.special import ndtri

        z = float(ndtri(1 - missed))
        if self.calibrated is None:
            drawn = self.drawn(path(0.0))
            lucky = np.quantile(drawn, min(max(_LUCKY, 2 * missed), 0.5), axis=1)
            self.floor, self.judged = drawn.mean(axis=1), np.maximum(self.observed, lucky)
            self.calibrated = self._ranked(drawn)
        found = {0.0: self.calibrated}
        for size in _SIZES[1:]:
            found[size] = self._quantiles(path(size))
        size = _SIZES[-1]
        while (found[size] > -z).any() and size < _LARGEST:
            size *= _FURTHER
            found[size] = self._quantiles(path(size))
        for _ in range(_HALVINGS):
            sizes = sorted(found)
            middles = [(a + b) / 2 for a, b in pairwise(sizes) if _is_steep(found[a], found[b], z)]
            if not middles:
                break
            found |= {middle: self._quantiles(path(middle)) for middle in middles}
        sizes = sorted(found)
        quantile = np.minimum.accumulate([found[size] for size in sizes], axis=0)
        low, high = np.zeros(len(self.parts)), np.zeros(len(self.parts))
        for k, values in enumerate(quantile.T):
            if values[0] >= z:
                low[k] = self._target(path, float(np.interp(-z, -values, sizes)))[k]
            high[k] = self._target(path, float(np.interp(z, -values, sizes)))[k]
        return low, high

    def _target(self, path: Path, size: float) -> Floats:
        """Return the distances ``(n_parts,)`` of infinitely many labels."""
        return self.distances(path(size)[None])[:, 0] if size else np.zeros(len(self.parts))

    def drawn(self, prob: Floats, n_draws: int = _DRAWS) -> Floats:
        """Return distances ``(n_parts, n_draws)`` of simulated labels."""
        return np.concatenate([self.distances(labels) for labels in self._labels(prob, n_draws)], axis=1)

    def _quantiles(self, prob: Floats) -> Floats:
        return self._ranked(self.drawn(prob))

    def _ranked(self, drawn: Floats) -> Floats:
        """Return how many standard deviations the judged distances lie above simulated ones, ``(n_parts,)``.

        It is the normal quantile of the share of simulated distances that are smaller.
        """
        from scipy.special import ndtri

        judged = self.judged[:, None]
        smaller = ((drawn < judged).mean(axis=1) + (drawn <= judged).mean(axis=1)) / 2
        return np.asarray(ndtri(np.clip(smaller, 0.5 / _DRAWS, 1 - 0.5 / _DRAWS)))

    def _labels(self, prob: Floats, n_draws: int = _DRAWS) -> Iterator[Floats]:
        """Yield simulated shares of events ``(n_replicates, n_cells)``."""
        many = max(_NUMBERS // len(prob), 1)
        single = (self.size == 1).all()
        if self.sample.group is None and not single:
            events = BinomialNumbers.of(self.size.astype(np.int64), prob)
        for start in range(0, n_draws, many):
            number = min(many, n_draws - start)
            if self.sample.group is not None:
                groups = int(self.sample.group.max()) + 1
                signs = 2.0 * self.rng.integers(0, 2, (number, groups)) - 1
                ratio = math.sqrt(self.sample.n_groups / (self.sample.n_groups - 1))  # type: ignore[operator]
                yield prob + ratio * signs[:, self.sample.group] * (self.share - self.curve)
            elif single:
                yield (self.rng.random((number, len(prob))) < prob).astype(np.float64)
            else:
                yield events.draw(number, self.rng) / self.size


def _is_steep(before: Floats, after: Floats, z: float) -> bool:
    """Return whether a limit lies between two sizes whose quantiles differ much."""
    crossed = ((before > z) & (after < z)) | ((before > -z) & (after < -z))
    return bool((crossed & (before - after > _STEEP)).any())
