r"""Regions of the predicted probabilities of an event, such as those between 60 and 80 %, in which they are wrong.

A region is a union of adjacent cells (bins) between round numbers, which are joined until each has enough expected
events and non-events. A region has K events, of which E are expected, with variance V and third central moment
:math:`\mu_3`,

.. math:: E = \sum_i p_i, \qquad V = \sum_i p_i (1 - p_i), \qquad \mu_3 = \sum_i p_i (1 - p_i) (1 - 2 p_i).

Its score is the standardised deviation without its skewness, by Hall's cubic (1992),

.. math:: z + q - q z^2 + \tfrac13 q^2 z^3, \qquad z = \frac{K - E}{V^{1/2}}, \quad q = \frac{\mu_3}{6 V^{3/2}},

increasing in K and about standard normal. The p-value of a region is the probability that the largest absolute score of
all regions is at least as large as its own if the model is calibrated. So all regions with p-values of at most
:math:`\alpha` are wrong, with probability :math:`1 - \alpha` (single-step max). Numbers of events are drawn for whole
cells from their exact distributions, which takes as long for millions of observations as for thousands.

With weights E and K are weighted sums, V and :math:`\mu_3` have squared and cubed weights, and labels are simulated one
by one. With groups the p-value is the larger one of that and of random signs of the residuals of whole groups.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from caltest.estimation.event._event_cells import ROUND_NUMBERS, EventCells, between_round_numbers
from caltest.estimation.event._event_count import outward_root, without_skewness
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._sample import Sample
from caltest.predictions.inputs._parts import sums_in_parts
from caltest.resampling.distributions._base import MonteCarloDistribution
from caltest.resampling.distributions._poisson_binomial import PoissonBinomial
from caltest.resampling.draws._signs import sum_signed
from caltest.results import ConfidenceInterval
from caltest.statistics._recalibration_scores import logits

REGION_DRAWS = 1999
"""Draws of the numbers of events of all cells."""
_HALF = len(ROUND_NUMBERS) // 2 - 1  # the interval of predictions of exactly one half
_LEAST_VARIANCE, _LEAST_SHARE = 1.0, 1 / 24
_ROUNDING = 1e-9
_MOST_LABELS, _FEWEST_DRAWS = 10**8, 199  # that are simulated with weights
_NOTHING = 1e-3  # events: no deviation but for rounding, as that of two different predictions after the fit
_FEWEST = 10  # events and non-events for a bend, after two numbers were fitted


@dataclass(frozen=True, eq=False)
class RegionCells:
    """Adjacent cells between round numbers, of which regions are made.

    Attributes
    ----------
    table : EventCells
        Narrow cells of predictions strictly between 0 and 1, with numbers of observations and events.
    low, high : arrays of shape (n_cells,)
        Limits of the cells. A prediction that is equal to one belongs to the side of one half, so that the cells of the
        complement are their mirror images: .2 lies between .2 and .3, and .8 between .7 and .8.
    start : array of shape (n_cells + 1,)
        First entry of each cell in the table, and the number of entries.
    first : array of shape (n_cells,)
        First interval between round numbers of each cell.
    """

    table: EventCells
    low: Floats
    high: Floats
    start: Integers
    first: Integers

    @classmethod
    def of(cls, table: EventCells) -> RegionCells:
        """Return the cells of a table; weights count as much as observations of equal weight that are worth as much."""
        prob = table.prob(0.0, 1.0)
        place = between_round_numbers(table.logit)
        variance = table.count * prob * (1 - prob)
        if table.squares is not None and variance.any():
            variance *= variance.sum() / (table.squares @ (prob * (1 - prob)))
        cells = joined_intervals(sums_in_parts(place, variance, len(ROUND_NUMBERS) - 1))
        first, after = np.transpose(cells)
        return cls(
            table,
            ROUND_NUMBERS[first],
            ROUND_NUMBERS[after],
            np.searchsorted(place, np.append(first, len(ROUND_NUMBERS))),
            first,
        )

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return len(self.low)

    @property
    def regions(self) -> tuple[Integers, Integers]:
        """First cell of each region and the cell after its last one; the whole range is none."""
        first, after = np.triu_indices(self.n_cells + 1, 1)
        part = after - first < self.n_cells
        return first[part], after[part]

    def sum(self, values: Floats) -> Floats:
        """Return the sums of a column of the table over each cell."""
        return np.add.reduceat(values, self.start[:-1])

    def draw(self, prob: Floats, n_draws: int, rng: np.random.Generator) -> Floats:
        """Return numbers of events of each cell ``(n_cells, n_draws)``, for probabilities of the table's entries.

        The rarer of the event and its complement is drawn, so that both have the same draws, mirrored.
        """
        common = self.table.count @ prob > self.table.size / 2
        drawn = np.empty((self.n_cells, n_draws))
        cells = list(enumerate(pairwise(self.start)))
        for j, (a, b) in reversed(cells) if common else cells:
            number = PoissonBinomial.of_weighted(1 - prob[a:b] if common else prob[a:b], self.table.count[a:b])
            below = np.cumsum(number.pmf)
            drawn[j] = number.first + np.searchsorted(below, rng.random(n_draws) * below[-1], side="right")
        return self.sum(self.table.count)[:, None] - drawn if common else drawn


def joined_intervals(variance: Floats) -> list[tuple[int, int]]:
    """Return the first interval of each cell and the one after its last, for the variances of the intervals' events.

    Intervals are joined from both ends towards one half, until a cell has a variance of at least 1 and a 24th of the
    total. What is left in the middle joins the neighbour with the smaller variance, or both if they are equal.
    """
    least = max(_LEAST_VARIANCE, variance.sum() * _LEAST_SHARE) * (1 - _ROUNDING)
    lower = [0, *_joined(variance[:_HALF], least)]  # ends of cells, from outside
    upper = [len(variance) - number for number in (0, *_joined(variance[:_HALF:-1], least))]
    below, above = list(pairwise(lower)), [(first, after) for after, first in pairwise(upper)]
    first, after = lower[-1], upper[-1]
    middle = variance[first:after].sum()
    if middle == 0 and (below or above):
        return [*below, *reversed(above)]
    if middle < least and (below or above):
        left, right = (variance[slice(*cells[-1])].sum() if cells else math.inf for cells in (below, above))
        first = below.pop()[0] if left <= right * (1 + _ROUNDING) else first
        after = above.pop()[1] if right <= left * (1 + _ROUNDING) else after
    return [*below, (first, after), *reversed(above)]


def _joined(variance: Floats, least: float) -> list[int]:
    """Return after how many intervals a cell is complete."""
    found, total = [], 0.0
    for number, part in enumerate(variance, 1):
        total += part
        if total >= least:
            found.append(number)
            total = 0.0
    return found


@dataclass(frozen=True, eq=False)
class Regions:
    """Regions of the predicted probabilities of an event, with p-values that are adjusted for their number.

    Attributes
    ----------
    cells : RegionCells
        The cells that they are made of.
    low, high : arrays of shape (n_regions,)
        Limits of each region, round numbers.
    n, predicted, observed : arrays of shape (n_regions,)
        Number of observations, average prediction and frequency of the event.
    score : array of shape (n_regions,)
        Standardised deviation without its skewness, positive if events are more frequent than predicted.
    null : tuple of MonteCarloDistribution
        Largest absolute score of all regions, if the model is calibrated: of simulated labels, and with random signs of
        groups, if there are any.
    """

    cells: RegionCells
    low: Floats
    high: Floats
    n: Floats
    predicted: Floats
    observed: Floats
    score: Floats
    null: tuple[MonteCarloDistribution, ...]

    @classmethod
    def of(
        cls, cells: RegionCells, rng: np.random.Generator, n_draws: int = REGION_DRAWS, sample: Sample | None = None
    ) -> Regions:
        """Return all regions; none if there are too few expected events or non-events for two cells.

        With weights or groups the sample is needed, of which the cells are made.
        """
        if cells.n_cells < 2:
            none = np.zeros(0)
            return cls(cells, none, none, none, none, none, none, (MonteCarloDistribution(none),))
        first, after = cells.regions
        table, prob = cells.table, cells.table.prob(0.0, 1.0)
        sums = _Moments.of(cells, prob)
        size, observed = (sums.of_regions(cells.sum(part)) for part in (table.count, table.events))
        drawn, n = [], size
        if sample is None or sample.weight is None:
            drawn.append(cells.draw(prob, n_draws, rng))
        if sample is not None:
            each = _Observations.of(cells, sample)
            n = sums.of_regions(np.diff(each.start).astype(np.float64))
            if sample.weight is not None:
                drawn.append(each.draw_labels(n_draws, rng))
            if sample.group is not None:
                drawn.append(each.draw_signs(n_draws, rng) + cells.sum(table.count * prob)[:, None])
        null = (MonteCarloDistribution(np.abs(sums.score(sums.of_regions(some))).max(axis=0)) for some in drawn)
        low, high, score = cells.low[first], cells.high[after - 1], sums.score(observed[:, None])[:, 0]
        return cls(cells, low, high, n, sums.expected / size, observed / size, score, tuple(null))

    @cached_property
    def pvalue(self) -> Floats:
        """P-values ``(n_regions,)``, adjusted for the number of regions."""
        return np.array([max(null.sf(score) for null in self.null) for score in np.abs(self.score)])

    def interval(self, region: int, level: float) -> ConfidenceInterval:
        """Return the confidence interval of the average probability of the event in a region.

        The intervals of all regions hold at the same time with probability ``level``. They have the averages that the
        test does not reject if the logits of a region are shifted, so that the predicted average is outside if and only
        if the p-value is at most ``1 - level``.

        Parameters
        ----------
        region : int
            Its number.
        level : float
            Confidence level.

        Returns
        -------
        ConfidenceInterval
            Lower and upper limit.
        """
        largest = 0.0
        for null in self.null:
            values = np.sort(null.values)
            beyond = math.floor((1 - level) * (len(values) + 1) * (1 + _ROUNDING))
            largest = max(largest, values[-beyond] if beyond else math.inf)
        first, after = (part[region] for part in self.cells.regions)
        entries = slice(self.cells.start[first], self.cells.start[after])
        table = self.cells.table
        part = replace(
            table, logit=table.logit[entries], count=table.count[entries], events=table.events[entries]
        )  # its other numbers are not used
        if table.squares is not None and table.cubes is not None:
            part = replace(part, squares=table.squares[entries], cubes=table.cubes[entries])
        return _limits(part, largest)


def bend_pvalue(cells: RegionCells, rng: np.random.Generator, n_draws: int = REGION_DRAWS) -> float:
    r"""Return the p-value of the hypothesis that logistic recalibration repairs everything.

    The regions are tested with the probabilities that were fitted, :math:`q_i = \mathrm{expit}(a + b\,\mathrm{logit}\,
    p_i)`, and the part of the simulated residuals that would have been fitted is taken out: with the information matrix
    I of (a, b) and the score s of a draw, :math:`\sum_{i \in r} q_i (1 - q_i) (1, l_i) I^{-1} s` of each region r. The
    score has a part within the cells, which is drawn from a normal distribution.

    Parameters
    ----------
    cells : RegionCells
        Cells of the predictions.
    rng : numpy.random.Generator
        Source of randomness.
    n_draws : int
        Number of draws.

    Returns
    -------
    float
        The p-value of the largest absolute score of a region; 1 without regions, for separated labels, for fewer than
        10 events or non-events, if nothing is left, and with groups or weights, for which it is not known.
    """
    table = cells.table
    if table.squares is not None or table.clusters is not None:
        return 1.0
    intercept, slope = table.raw_fit
    if cells.n_cells < 2 or not math.isfinite(slope) or min(table.worth) < _FEWEST:
        return 1.0
    logit, fitted = table.logit, table.prob(intercept, slope)
    sums = _Moments.of(cells, fitted)
    weight = table.count * fitted * (1 - fitted)
    spread = cells.sum(weight)
    centre = cells.sum(weight * logit) / spread
    within = weight @ np.square(logit - np.repeat(centre, np.diff(cells.start)))
    drawn = cells.draw(fitted, n_draws, rng)
    residual = drawn - cells.sum(table.count * fitted)[:, None]
    directions = np.stack([spread, spread * centre])
    information = directions @ np.stack([np.ones_like(centre), centre], axis=1) + np.diag([0.0, within])
    score = np.stack([np.ones_like(centre), centre]) @ residual
    score[1] += math.sqrt(within) * rng.standard_normal(n_draws)
    drawn = drawn - directions.T @ np.linalg.solve(information, score)
    null = MonteCarloDistribution(np.abs(sums.score(sums.of_regions(drawn))).max(axis=0))
    observed = sums.of_regions(cells.sum(table.events))
    if np.abs(observed - sums.expected).max() < _NOTHING:
        return 1.0
    return null.sf(float(np.abs(sums.score(observed[:, None])).max()))


@dataclass(frozen=True, eq=False)
class _Moments:
    """Moments of the numbers of events of regions ``(n_regions,)``, and the regions as parts of sorted cells."""

    regions: tuple[Integers, Integers]
    expected: Floats
    variance: Floats
    third: Floats

    @classmethod
    def of(cls, cells: RegionCells, prob: Floats) -> _Moments:
        """Return the moments for probabilities of the table's entries."""
        variance, third = _variance_of(cells.table, prob)
        parts = (cells.sum(part) for part in (cells.table.count * prob, variance, third))
        return cls(cells.regions, *(_of_regions(cells.regions, part) for part in parts))

    def of_regions(self, values: Floats) -> Floats:
        """Return sums ``(n_regions, ...)`` of values of cells ``(n_cells, ...)``."""
        return _of_regions(self.regions, values)

    def score(self, events: Floats) -> Floats:
        """Return the scores of numbers of events ``(n_regions, n)``."""
        expected, variance, third = (part[:, None] for part in (self.expected, self.variance, self.third))
        scores: Floats = without_skewness(events - expected, variance, third)
        return scores


@dataclass(frozen=True, eq=False)
class _Observations:
    """Observations whose predictions are strictly between 0 and 1, by the cells in which they lie.

    Attributes
    ----------
    prob, weight, residual : arrays of shape (n,)
        Probability of the event, increasing, weight, and label minus probability, times the weight.
    group : array of shape (n,) or None
        Number of the group.
    start : array of shape (n_cells + 1,)
        First observation of each cell, and the number of observations.
    """

    prob: Floats
    weight: Floats
    residual: Floats
    group: Integers | None
    start: Integers

    @classmethod
    def of(cls, cells: RegionCells, sample: Sample) -> _Observations:
        """Return the observations of a sample, which is sorted."""
        logit = logits(sample)
        inside = np.isfinite(logit)
        start = np.append(np.searchsorted(between_round_numbers(logit[inside]), cells.first), inside.sum())
        group = None if sample.group is None else sample.group[inside]
        return cls(sample.event[inside], sample.weight_or_ones[inside], sample.residual(1)[inside], group, start)

    def draw_labels(self, n_draws: int, rng: np.random.Generator) -> Floats:
        """Return weighted sums of simulated events of each cell ``(n_cells, n_draws)``, fewer of large samples.

        The complement has the same draws, mirrored.
        """
        common = self.weight @ self.prob > self.weight.sum() / 2
        flip = slice(None, None, -1) if common else slice(None)
        prob, weight = (1 - self.prob if common else self.prob)[flip], self.weight[flip]
        start = (len(prob) - self.start)[flip] if common else self.start
        number = int(np.clip(_MOST_LABELS // len(prob), _FEWEST_DRAWS, n_draws))
        happened = (rng.random(len(prob)) < prob for _ in range(number))
        sums: Floats = np.transpose([np.add.reduceat(weight * some, start[:-1]) for some in happened])
        return np.add.reduceat(self.weight, self.start[:-1])[:, None] - sums[::-1] if common else sums

    def draw_signs(self, n_draws: int, rng: np.random.Generator) -> Floats:
        """Return the residual sums of each cell with random signs of groups, ``(n_cells, n_draws)``."""
        assert self.group is not None
        n_cells, n_groups = len(self.start) - 1, int(self.group.max()) + 1
        cell = np.repeat(np.arange(n_cells), np.diff(self.start))
        sums = np.bincount(self.group * n_cells + cell, self.residual, n_groups * n_cells).astype(np.float64)
        signs = (2 * rng.integers(0, 2, (n_draws, n_groups)) - 1).astype(np.int8)
        return sum_signed(signs, sums.reshape(n_groups, n_cells)).T


def _variance_of(table: EventCells, prob: Floats) -> tuple[Floats, Floats]:
    """Return the variances and the third moments of numbers (weights) of events of entries."""
    variance = prob * (1 - prob)
    squares = table.count if table.squares is None else table.squares
    cubes = table.count if table.cubes is None else table.cubes
    return squares * variance, cubes * variance * (1 - 2 * prob)


def _of_regions(regions: tuple[Integers, Integers], values: Floats) -> Floats:
    first, after = regions
    below = np.concatenate([np.zeros((1, *values.shape[1:])), np.cumsum(values, axis=0)])
    return below[after] - below[first]


def _limits(cells: EventCells, largest: float) -> ConfidenceInterval:
    """Return the average probabilities at which the score of a region has an absolute value of ``largest``."""
    size, observed = cells.size, cells.observed

    def score(shift: float) -> float:
        prob = cells.prob(shift, 1.0)
        variance, third = _variance_of(cells, prob)
        return float(without_skewness(observed - cells.count @ prob, variance.sum(), third.sum()))

    estimate = cells.intercept(total=min(max(observed, 0.5), size - 0.5))
    step = 0.5 / math.sqrt(max(cells.at(estimate, 1.0).variance, 0.2))

    def limit(sign: float) -> float:
        """Return the average where the score is ``sign * largest`` for the first time, seen from the estimate."""

        def gap(shift: float) -> float:
            return largest - sign * score(shift)

        if gap(0.0) < 0:  # in between, whatever the score is further away, where few events are expected
            shift = outward_root(gap, estimate, -estimate)
        else:
            shift = outward_root(gap, sign * min(sign * estimate, 0.0), -sign * step)
        return float(cells.count @ cells.prob(shift, 1.0)) / size

    return ConfidenceInterval(limit(1.0) if observed > 0 else 0.0, limit(-1.0) if observed < size else 1.0)
