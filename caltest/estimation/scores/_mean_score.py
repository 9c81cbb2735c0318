"""The mean of a proper score as a statistic, and the lists of errors and scores that curves and tracks take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.estimation.scores._score_decomposition import brier_terms, log_terms, spherical_terms
from caltest.predictions._arrays import Floats
from caltest.predictions._sample import Sample
from caltest.predictions.inputs._refusals import refuse, require
from caltest.resampling import EntrySums
from caltest.results._naming import describe
from caltest.statistics import Statistic
from caltest.statistics._base import sum_of_terms, validate_estimate

_LOSSES: dict[str, tuple[str, Callable[[NDArray[Any], NDArray[Any]], Floats]]] = {
    "brier": ("Brier score", brier_terms),
    "log": ("log score", log_terms),
    "spherical": ("1 - spherical score", lambda prob, own: 1.0 - spherical_terms(prob, own)),
}
"""By name, what a score is called and what each outcome adds; smaller is better, as of errors."""


@dataclass(frozen=True, repr=False)
class MeanScore(Statistic):
    """The mean of a proper score, of which smaller values are better: "brier", "log" or "spherical" (1 minus it)."""

    score: str

    def __repr__(self) -> str:
        return self.words

    @property
    def words(self) -> str:
        """What the score is called."""
        return _LOSSES[self.score][0]

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return the mean ``(...)`` of outcomes ``(..., n_samples)``; infinite where one has probability 0."""
        return sum_of_terms(sample, outcomes, sample.of_predictions(_terms, self.score)) / sample.total_weight

    def summary(self, sample: Sample) -> EntrySums:
        """Return what suffices: the sum of the scores of what is drawn, which is never impossible."""
        terms = sample.of_predictions(_terms, self.score)
        return EntrySums(np.where(np.isfinite(terms), terms, 0.0))

    def evaluate_summary(self, sample: Sample, counted: Floats) -> Floats:
        """Return the mean from drawn sums."""
        return counted / sample.total_weight


def _terms(sample: Sample, score: str) -> Floats:
    """Return the weighted score of each possible outcome, ``(n_samples, n_outcomes)``."""
    return _LOSSES[score][1](sample.prob, sample.prob) * sample.weight_or_ones[:, None]


def validate_error_or_score(statistic: Any) -> Statistic:
    """Return a statistic that has a value on one data set, or the mean of the score that a text names."""
    named = isinstance(statistic, str) and statistic in _LOSSES
    return MeanScore(statistic) if named else validate_estimate(statistic)


def validate_errors_and_scores(statistics: Any, name: str = "statistics") -> tuple[Statistic, ...]:
    """Return one or several different statistics that have values on one data set, or scores that texts name."""
    listed = [statistics] if isinstance(statistics, Statistic | str) else statistics
    require(isinstance(listed, Sequence), f"`{name}` must be statistics or their names", statistics, right_type=False)
    chosen = tuple(validate_error_or_score(one) for one in listed)
    if not chosen or len({describe(one) for one in chosen}) < len(chosen):
        refuse(f"`{name}` must be different statistics, got {describe(list(chosen))}.")
    return chosen
