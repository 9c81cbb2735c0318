"""What models are ranked by: the estimate of each measure, its interval, and what each unit adds to it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.comparison._grouped_terms import FEW_SURPRISES
from caltest.comparison._u_statistics import terms_of
from caltest.estimation._measure import Measure
from caltest.estimation.errors._l2_interval import interval_of_distribution, l2_distribution
from caltest.estimation.scores._mean_interval import (
    UNKNOWN,
    Spread,
    mean_interval,
    share_interval,
    spread_interval,
    wilson_interval,
)
from caltest.estimation.scores._score_decomposition import (
    accuracy_of,
    brier_of,
    brier_terms,
    log_of,
    log_terms,
    mean_of,
)
from caltest.predictions._arrays import Floats
from caltest.predictions._sample import Sample
from caltest.predictions.inputs._parts import sums_in_parts
from caltest.ranking._separation import Contributions
from caltest.ranking._summed_losses import SummedLosses, sums_of_losses
from caltest.recalibration import CrossFittedDecomposition
from caltest.results import ConfidenceInterval
from caltest.results._decision import level_of
from caltest.statistics._sums_in_time import deviations_in_time

_ROOT_OF_CHANCE = 2**-0.75 * math.gamma(0.75) / math.sqrt(math.pi)
"""Mean of the root of a standard normal number, of which a negative one counts as 0."""


@dataclass(frozen=True)
class Asked:
    """What the number of a model is reported with: the level of its interval, and its p-value of calibration."""

    confidence_level: float
    pvalue: float

    @property
    def missed(self) -> float:
        """Probability that an interval misses its target on one side."""
        return level_of(self.confidence_level) / 2

    def measure(self, kind: Kind, estimate: float, interval: ConfidenceInterval, if_calibrated: float) -> Measure:
        """Return the number with what it is called."""
        return Measure(
            name=kind.name,
            words=kind.words,
            about=kind.about,
            estimate=estimate,
            confidence_interval=interval,
            if_calibrated=if_calibrated,
            pvalue=self.pvalue,
            confidence_level=self.confidence_level,
        )


@dataclass(frozen=True)
class Judged(Asked):
    """The predictions of a model, and what is known of its observations, in the order of the caller.

    Attributes
    ----------
    sample : Sample
        Predictions and outcomes.
    prob, outcome : arrays
        The same in the order of the caller.
    share : array of shape (n_samples,)
        Share of the weight of each observation.
    """

    sample: Sample
    prob: NDArray[Any]
    outcome: NDArray[np.int64]
    share: Floats

    def in_units(self, values: Floats) -> Floats:
        """Return the sums of what observations add, over groups if there are any, in time over stretches of it."""
        sample = self.sample
        if sample.timing is not None:
            weight, total, added = sample.weight_or_ones, float(values.sum()), values[sample.row]
            return in_stretches(total, deviations_in_time(sample, added - weight / weight.sum() * total))
        if sample.group is None:
            return values
        group = np.empty(len(values), dtype=np.int64)
        group[sample.row] = sample.group
        return sums_in_parts(group, values, int(group.max()) + 1)


@dataclass(frozen=True)
class Kind(ABC):
    """What models can be ranked by: its name in code and in print, and what it measures."""

    name: str
    words: str
    about: str
    larger_is_better: bool = field(default=False, kw_only=True)
    score: str = field(default="", kw_only=True)
    """The proper score that is divided into miscalibration and discrimination."""

    @property
    def sign(self) -> float:
        """What makes smaller values better."""
        return -1.0 if self.larger_is_better else 1.0

    @abstractmethod
    def of(self, judged: Judged) -> Found:
        """Return the measure of a model and what units add to it."""


@dataclass(frozen=True, eq=False)
class Found:
    """The measure of a model, and what each unit adds to it; smaller sums are better."""

    measure: Measure
    adds: Floats
    is_known: bool = True
    predicted: float = 0.0
    is_reliable: bool = True
    unknown: float = 0.0
    parts: CrossFittedDecomposition | None = None


@dataclass(frozen=True)
class MeanScore(Kind):
    """The mean of what each observation has; of calibrated predictions what they expect of themselves."""

    each: Callable[[NDArray[Any], NDArray[np.int64]], Floats] = field(repr=False)
    expected: Callable[[NDArray[Any]], Floats] = field(repr=False)

    def of(self, judged: Judged) -> Found:
        """Return the mean with its interval."""
        sample, values = judged.sample, self.each(judged.prob, judged.outcome)
        expected = mean_of(self.expected(judged.prob), judged.share)
        estimate = mean_of(values, judged.share)
        if math.isinf(estimate):
            return Found(judged.measure(self, estimate, UNKNOWN, expected), np.zeros(0), is_known=False)
        centred = (values - estimate)[sample.row]
        interval = (
            share_interval(values[sample.row], sample, judged.missed)[1]
            if self.larger_is_better
            else mean_interval(estimate, centred, sample, judged.missed)
        )
        adds = judged.in_units(self.sign * values * judged.share)
        return Found(judged.measure(self, estimate, interval, expected), adds)

    def sums_of(self, probs: Sequence[NDArray[Any]], outcome: NDArray[np.int64]) -> Floats:
        """Return the sums over observations of what models lose."""
        losses = np.stack([self.sign * self.each(prob, outcome) for prob in probs])
        return sums_of_losses(losses, np.array([self.expected(prob).sum() for prob in probs]))

    def of_sums(self, sums: SummedLosses, model: int, asked: Asked) -> Found:
        """Return the mean of a model with its interval, from the sums over all observations."""
        from scipy.special import ndtri

        n, estimate, interval = sums.n_samples, self.sign * float(sums.estimate[model]), UNKNOWN
        if sums.is_known[model]:
            squares, cubes = (float(one[-1, model]) for one in sums.central)
            quantile = float(ndtri(1 - asked.missed))
            spread = Spread.of_sums(n, squares / n**2, cubes / n**3, quantile)
            share = self.larger_is_better
            interval = wilson_interval(estimate, spread, n, quantile) if share else spread_interval(estimate, spread)
        return Found(asked.measure(self, estimate, interval, float(sums.expected[model])), np.zeros(0))


@dataclass(frozen=True)
class TypicalError(Kind):
    """The l2 calibration error: the root of the debiased squared one, by which models are ordered."""

    def of(self, judged: Judged) -> Found:
        """Return the error with its interval."""
        sample = judged.sample
        distribution, cells = l2_distribution(sample, None)
        size = interval_of_distribution(
            distribution, sample, cells, confidence_level=judged.confidence_level, lens=None, lens_name=""
        )
        terms = terms_of([sample], cells)[0]
        linear = 2 * terms.scores / terms.total_weight  # of each unit, in time of each cosine
        if sample.timing is None:
            adds = linear + (terms.estimate - linear.sum()) * judged.in_units(judged.share)
        else:
            adds = in_stretches(terms.estimate, linear)
        return Found(
            judged.measure(self, size.root, size.root_interval, _ROOT_OF_CHANCE * math.sqrt(size.null_std)),
            adds,
            predicted=terms.predicted_deviation,
            is_reliable=terms.minority >= FEW_SURPRISES,
            unknown=terms.unknown,
        )


def _expected_of(terms: Callable[[NDArray[Any], NDArray[Any]], Floats]) -> Callable[[NDArray[Any]], Floats]:
    """Return the function of predictions to the scores that they expect of themselves."""

    def expected(prob: NDArray[Any]) -> Floats:
        each = terms(prob, prob)
        return np.einsum("ik,ik->i", prob, np.where(prob > 0, each, 0.0), dtype=np.float64)

    return expected


def _largest(prob: NDArray[Any]) -> Floats:
    """Return the accuracy that predictions expect of themselves."""
    return np.asarray(prob.max(axis=1), dtype=np.float64)


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        MeanScore("log_score", "log score", "overall", log_of, _expected_of(log_terms), score="log"),
        MeanScore("brier", "Brier score", "overall", brier_of, _expected_of(brier_terms), score="brier"),
        MeanScore("accuracy", "accuracy", "discrimination", accuracy_of, _largest, larger_is_better=True),
        TypicalError("l2", "l2 calibration error", "calibration"),
    )
}
"""What models can be ranked by, by name."""


def in_stretches(total: float, deviations: Floats) -> Floats:
    """Return as many numbers as there are cosines, and one, whose sum is the total.

    Times the cosines of `SumsInTime`, with a step for each number, they are what the cosines of the observations are,
    ``deviations (n_cosines,)``: sums over stretches of time that are as good as independent of each other.
    """
    n = len(deviations) + 1
    angle = np.pi * (np.arange(n) + 0.5) / n
    return (total + np.sqrt(2 * (n - 1)) * np.cos(np.outer(angle, np.arange(1, n))) @ deviations) / n


def contributions_of(found: Sequence[Found], share: Floats, *, in_time: bool = False) -> Contributions:
    """Return what units add to the estimates of all models."""
    predicted, unknown = (np.array([getattr(one, name) for one in found]) for name in ("predicted", "unknown"))
    few = np.array([not one.is_reliable for one in found])
    least = np.where(np.logical_or.outer(few, few), np.add.outer(predicted, predicted), 0.0)
    return Contributions(
        adds=np.stack([one.adds if one.is_known else np.zeros(len(share)) for one in found]),
        share=share,
        least=np.hypot(least, np.add.outer(unknown, unknown)),
        is_known=np.array([one.is_known for one in found]),
        in_time=in_time,
    )
