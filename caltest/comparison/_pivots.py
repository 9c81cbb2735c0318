r"""The studentised difference of two models of grouped or weighted observations, on simulated data.

With few groups the difference is not normal and its variance is uncertain. So the pivot :math:`(D - \delta) / s`, with
the standard deviation s estimated from the same data, is computed on two kinds of data whose :math:`\delta` is known:

* **Labels** that are drawn with probabilities halfway between the two recalibrated models, and that depend on each
  other within groups so strongly that their sums vary as much as the observed ones.
* **Signs**: the deviations of the groups from the mean residuals of their cells get random signs, the same for both
  models, around the observed means (the wild cluster bootstrap), divided by one minus their share of the cell (CR3).

Labels know the shape of the distribution, for instance of rare events; signs know the dependence that was observed.
The p-value is the larger one of the two. Models on different observations are drawn separately. For weighted
observations that are independent, of which few may have most of the weight, labels alone are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.comparison._grouped_terms import FEW_SURPRISES, Contrast, GroupedPairTerms
from caltest.comparison._label_margins import LabelOutcomes, margins_of
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions.inputs._parts import effective_number
from caltest.predictions.inputs._validation import SeedLike, validate_rng, validate_workers
from caltest.resampling.distributions._base import TIE_TOLERANCE
from caltest.resampling.draws._group_shocks import Shocks, correlation_in_groups, latent_bounds
from caltest.results._progress import Progress, part_of

_SLACK = 1e-9  # pivots within this relative distance are ties
_MOST_LABELS = 2 * 10**8  # drawn of all replicates, if these are more than the fewest
_FEWEST_DRAWS = 199
_ANCHOR = 0.01  # share of the draws beyond which the tail follows Student's distribution


@dataclass(frozen=True, eq=False)
class PivotTail:
    """Probability that a pivot is at least as large as a value.

    Within the draws it is the share of the draws, with the observed value counted among them. Beyond the largest
    hundredth of the draws it is that of Student's distribution with ``degrees`` of freedom, scaled to agree there.

    Attributes
    ----------
    values : array of shape (n_resamples,)
        Pivots, decreasing.
    degrees : float
        Effective number of groups minus 1.
    """

    values: Floats
    degrees: float

    @classmethod
    def of(cls, pivots: Floats, degrees: float) -> PivotTail:
        """Return the upper tail of some draws."""
        return cls(-np.sort(-pivots), degrees)

    @property
    def _anchor(self) -> int:
        return max(1, int(_ANCHOR * (len(self.values) + 1)))

    @property
    def _share(self) -> float:
        return (self._anchor + 1) / (len(self.values) + 1)

    @property
    def _scale(self) -> float:
        from scipy.special import stdtrit

        return max(1.0, float(self.values[self._anchor - 1] / stdtrit(self.degrees, 1 - self._share)))

    def probability(self, value: float) -> float:
        """Return the probability of a pivot of at least ``value``."""
        from scipy.special import stdtr

        low = value - _SLACK * abs(value)
        number = int(np.searchsorted(-self.values, -low, side="right"))
        if number >= self._anchor or self._share >= 0.5:
            return (number + 1) / (len(self.values) + 1)
        return min(self._share, float(stdtr(self.degrees, -value / self._scale)))

    def critical(self, level: float) -> float:
        """Return the largest value, at least 0, whose probability is above ``level``; infinite for too few draws."""
        from scipy.special import stdtrit

        if level < self._share < 0.5:
            beyond = -self._scale * float(stdtrit(self.degrees, level))
            return max(0.0, float(self.values[self._anchor - 1]), beyond)
        number = math.floor(level * (len(self.values) + 1) * (1 + TIE_TOLERANCE))
        return math.inf if number == 0 else max(0.0, float(self.values[min(number, len(self.values)) - 1]))


@dataclass(frozen=True, eq=False)
class Pivots:
    """Pivots of the difference of two models.

    Attributes
    ----------
    kinds : array of shape (n_kinds, n_resamples)
        Pivots of labels and, for groups, of signs.
    degrees : float
        Effective number of groups minus 1, of the model with fewer.
    """

    kinds: Floats
    degrees: float

    def pvalue(self, z: float) -> float:
        """Return the largest two-sided p-value of an observed pivot: twice the tail on its side."""
        tails = [PivotTail.of(math.copysign(1.0, z) * kind, self.degrees) for kind in self.kinds]
        return min(1.0, 2 * max(tail.probability(abs(z)) for tail in tails)) if z else 1.0

    def reach(self, level: float) -> tuple[float, float]:
        """Return how many standard errors an interval reaches below and above the difference."""
        each = [
            max(PivotTail.of(sign * kind, self.degrees).critical((1 - level) / 2) for kind in self.kinds)
            for sign in (1, -1)
        ]
        return each[0], each[1]

    @property
    def n_resamples(self) -> int:
        """Number of draws of each kind."""
        return int(self.kinds.shape[1])


def draw_pivots(
    terms: Sequence[GroupedPairTerms],
    pairs: Sequence[tuple[int, int]],
    *,
    paired: bool,
    outcomes: Sequence[LabelOutcomes] | None = None,
    n_resamples: int,
    rng: SeedLike = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> dict[tuple[int, int], Pivots]:
    """Return the pivots of pairs of models, all from the same random numbers.

    Parameters
    ----------
    terms : sequence of GroupedPairTerms
        The models.
    pairs : sequence of pairs of int
        Which models are compared.
    paired : bool
        Whether all models have the same observations.
    outcomes : sequence of LabelOutcomes, optional
        What labels are behind the lens of each model, if this differs between models.
    n_resamples : int
        Number of draws of labels and of signs; fewer, but at least 199, for very many observations.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness.
    workers : int
        Threads.
    progress : callable, optional
        Called with ``(done, total)``.
    """
    generator = validate_rng(rng)
    n_resamples = min(n_resamples, max(_FEWEST_DRAWS, _MOST_LABELS // max(len(part.weight) for part in terms)))
    options: Any = {"n_resamples": n_resamples, "rng": generator, "workers": workers}
    degrees = [max(known_groups(part) - 1, 1.0) for part in terms]
    if paired:
        jobs = [
            _Simulation.of(Contrast.of([terms[a], terms[b]]), None if outcomes is None else [outcomes[a], outcomes[b]])
            for a, b in pairs
        ]

        def evaluate(shock: NDArray[np.float32], noise: NDArray[np.float32]) -> Floats:
            return np.stack([job.pivots(shock, noise) for job in jobs])

        kinds = _simulate(evaluate, terms, progress=progress, **options)
        found = dict(zip(pairs, kinds, strict=True))
    else:
        alone = [
            _simulate(
                _Simulation.of(model.alone, None).deviations,
                [model],
                progress=part_of(progress, number, len(terms)),
                **options,
            )
            for number, model in enumerate(terms)
        ]
        found = {}
        for a, b in pairs:
            least = sum(float(_variance(np.array(terms[i].alone.observed))) for i in (a, b))
            least += _predicted([terms[a], terms[b]])
            kinds = min(alone[i].shape[1] for i in (a, b))  # one if the groups of a model have one observation each
            first, second = alone[a][:, :kinds], alone[b][:, :kinds]
            found[a, b] = _studentised(first[0] - second[0], first[1] + second[1], least)
    return {(a, b): Pivots(found[a, b], min(degrees[a], degrees[b])) for a, b in pairs}


def _simulate(
    evaluate: Callable[..., Floats],
    models: Sequence[GroupedPairTerms],
    *,
    n_resamples: int,
    rng: np.random.Generator,
    workers: int,
    progress: Progress | None,
) -> Floats:
    """Return ``evaluate(shock, noise)`` of all draws of the same observations, joined along the last axis."""
    terms, place = models[0], _places(models)
    n_groups = terms.n_groups if terms.is_grouped else 1  # without groups the shock counts for nothing
    blocks = Shocks(int(rng.integers(2**63)), n_resamples, n_groups, len(terms.weight)).blocks()
    threads, done = validate_workers(workers), 0
    found: list[Floats] = []
    with ThreadPoolExecutor(threads) if threads > 1 else nullcontext() as pool:
        while some := list(islice(blocks, threads)):
            numbers = [[np.ascontiguousarray(x.T) for x in (shock, noise[place])] for _, shock, noise in some]
            run = map if pool is None else pool.map
            found.extend(run(evaluate, *zip(*numbers, strict=True)))
            done += sum(len(noise) for _, noise in numbers)
            if progress is not None:
                progress(done, n_resamples)
    return np.concatenate(found, axis=-1)


def _places(models: Sequence[GroupedPairTerms]) -> Integers:
    """Return which random number each observation takes, by its predictions: the caller's order does not matter."""
    terms = models[0]
    values = [part.prob @ np.sqrt(np.arange(1.0, part.prob.shape[1] + 1)) for part in models]
    order = np.lexsort((*values[::-1], terms.weight, *([terms.row_group] if terms.is_grouped else [])))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place


def known_groups(terms: GroupedPairTerms) -> float:
    """Return the effective number of groups in cells of several groups; 0 if there are none."""
    return effective_number(terms.known_weight)


@dataclass(frozen=True, eq=False)
class _Simulation:
    """What labels and signs of one model or two are drawn from.

    Attributes
    ----------
    contrast : Contrast
        The models.
    bound : array of shape (n_samples, n_labels - 1)
        Normal quantiles of the cumulative probabilities of the labels.
    outcome : array of shape (n_models, n_labels)
        The outcome of each label.
    correlation : float
        Latent correlation of labels of a group.
    expected : float
        The difference of the squared errors if labels have these probabilities.
    """

    contrast: Contrast
    bound: NDArray[np.float32]
    outcome: Integers
    correlation: float
    expected: float

    @classmethod
    def of(cls, contrast: Contrast, outcomes: Sequence[LabelOutcomes] | None) -> _Simulation:
        """Return the labels halfway between two recalibrated models, or those of one."""
        terms = contrast.terms
        margin, outcome = margins_of(terms, outcomes)
        number = terms[0].prob.shape[1]
        chances = [margin @ (of[:, None] == np.arange(number)) for of in outcome]
        inflation = float(np.mean([part.inflation for part in terms]))
        correlation = _correlation(terms[0], chances[0], inflation) if terms[0].is_grouped else 0.0
        expected = contrast.error_of(contrast.means_of(chances))
        return cls(contrast, latent_bounds(margin), outcome, correlation, expected)

    def pivots(self, shock: NDArray[np.float32], noise: NDArray[np.float32]) -> Floats:
        """Return the pivots of labels and, for groups, of signs, ``(n_kinds, n_replicates)``."""
        deviation, variance = self.deviations(shock, noise)
        least = float(_variance(np.array(self.contrast.observed))) + _predicted(self.contrast.terms)
        return _studentised(deviation, variance, least)

    def deviations(self, shock: NDArray[np.float32], noise: NDArray[np.float32]) -> Floats:
        """Return the deviations from their expectation and their variances, ``(2, n_kinds, n_replicates)``."""
        by_labels = self.contrast.of_labels(shock, noise, self.correlation, self.bound, self.outcome)
        kinds = [(by_labels, self.expected)]
        if self.contrast.terms[0].is_grouped:
            kinds.append((self.contrast.of_signs(shock), self.contrast.error_of(self.contrast.mean)))
        return np.stack([[found[:, 0] - centre, _variance(found)] for found, centre in kinds], axis=1)


def _correlation(terms: GroupedPairTerms, chance: Floats, inflation: float) -> float:
    """Return the latent correlation that inflates the variances of the outcomes of a model by a factor."""
    columns = chance[:, -terms.n_columns :]
    own = float(np.square(terms.weight) @ (columns * (1 - columns)).sum(axis=1))
    of_groups = chance, terms.weight, terms.row_group, terms.n_groups
    return correlation_in_groups(*of_groups, target=(inflation - 1) * own, n_columns=terms.n_columns)


def _variance(found: NDArray[Any]) -> Floats:
    """Return the variance of differences, ``(..., 3)``: their values, and the variances of pairs and linear part."""
    pairs, linear = found[..., 1], found[..., 2]
    return np.maximum(pairs, linear - pairs)


def _predicted(terms: Sequence[GroupedPairTerms]) -> float:
    """Return the least variance of a difference of models of which labels show hardly any."""
    few = any(part.minority < FEW_SURPRISES for part in terms)
    return sum(part.predicted_deviation for part in terms) ** 2 if few else 0.0


def _studentised(deviation: Floats, variance: Floats, observed: float) -> Floats:
    """Return deviations in standard errors; 0 where nothing varies, as for such data."""
    varies = variance > TIE_TOLERANCE * observed
    return np.divide(deviation, np.sqrt(variance), out=np.zeros_like(deviation), where=varies)
