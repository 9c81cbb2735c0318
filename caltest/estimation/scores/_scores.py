"""Proper scores, accuracy and confidence: how good and how confident predictions are, calibrated or not.

The Brier, logarithmic and spherical scores are proper, but reward discrimination as well. All are behind a lens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.estimation._options import ScoreOptions
from caltest.estimation.scores._score_decomposition import (
    accuracy_of,
    brier_of,
    brier_terms,
    log_of,
    log_terms,
    mean_of,
    spherical_of,
    spherical_terms,
)
from caltest.predictions._arrays import Floats
from caltest.predictions._lens import LensLike
from caltest.predictions._sample import Sample
from caltest.predictions._user_functions import apply_lens
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._refusals import refuse, require
from caltest.predictions.inputs._validation import validate_problem, validate_weight
from caltest.resampling import EntrySums
from caltest.results._naming import describe
from caltest.statistics import Statistic
from caltest.statistics._base import sum_of_terms, validate_estimate


@reads_arguments
def brier_score(y_true: ArrayLike, y_prob: ArrayLike, **options: Unpack[ScoreOptions]) -> float:
    r"""Compute the Brier score, a proper score of which smaller values are better.

    .. math:: \frac1n \sum_i \sum_k (p_{ik} - 1\{y_i = k\})^2

    For two outcomes it is half of that, :math:`\frac1n \sum_i (p_i - y_i)^2`, as in scikit-learn.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each observation.

    Returns
    -------
    float
        From 0 to 1 for two outcomes, to 2 for more.

    Raises
    ------
    ValueError
        If probabilities are outside [0, 1] or do not sum to 1, a label is unknown, lengths differ or weights are < 0.

    See Also
    --------
    caltest.estimation.log_score : The score of likelihoods.
    caltest.score_decomposition : Its parts.

    References
    ----------
    G. W. Brier (1950), Verification of forecasts expressed in terms of probability, Monthly Weather Review 78, 1-3.

    Examples
    --------
    >>> import caltest
    >>> caltest.estimation.brier_score([1, 0], [0.75, 0.5])
    0.15625
    >>> caltest.estimation.brier_score([1, 0], [[0.25, 0.5, 0.25], [1.0, 0.0, 0.0]])
    0.1875
    """
    prob, outcome, weight = _induced(y_true, y_prob, **options)
    return mean_of(brier_of(prob, outcome), weight)


@reads_arguments
def log_score(y_true: ArrayLike, y_prob: ArrayLike, **options: Unpack[ScoreOptions]) -> float:
    r"""Compute the logarithmic score (negative log-likelihood, cross-entropy), of which smaller values are better.

    .. math:: -\frac1n \sum_i \log p_{i, y_i}

    This proper score is measured in nats. It is infinite if a label had been given probability 0, because probabilities
    are not clipped (scikit-learn's ``log_loss`` clips them to the resolution of the number type).

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each observation; those of weight 0 are left out, whatever their labels.

    Returns
    -------
    float
        At least 0, perhaps infinite.

    Raises
    ------
    ValueError
        If probabilities are outside [0, 1] or do not sum to 1, a label is unknown, lengths differ or weights are < 0.

    See Also
    --------
    caltest.estimation.brier_score : A score that is bounded.
    caltest.score_decomposition : Its parts.

    References
    ----------
    I. J. Good (1952), Rational decisions, Journal of the Royal Statistical Society B 14, 107-114.

    Examples
    --------
    >>> import caltest
    >>> round(caltest.estimation.log_score([1, 0], [0.5, 0.75]), 6)
    1.039721
    >>> caltest.estimation.log_score([1, 0], [0.0, 0.75])
    inf
    """
    prob, outcome, weight = _induced(y_true, y_prob, **options)
    return mean_of(log_of(prob, outcome), weight)


@reads_arguments
def spherical_score(y_true: ArrayLike, y_prob: ArrayLike, **options: Unpack[ScoreOptions]) -> float:
    r"""Compute the spherical score, a proper score of which larger values are better.

    .. math:: \frac1n \sum_i \frac{p_{i, y_i}}{\bigl(\sum_k p_{ik}^2\bigr)^{1/2}}

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each observation.

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    ValueError
        If probabilities are outside [0, 1] or do not sum to 1, a label is unknown, lengths differ or weights are < 0.

    See Also
    --------
    caltest.estimation.brier_score : The quadratic score.
    caltest.estimation.log_score : The score of likelihoods.

    References
    ----------
    T. Gneiting and A. E. Raftery (2007), Strictly proper scoring rules, prediction, and estimation, Journal of the
    American Statistical Association 102, 359-378.

    Examples
    --------
    >>> import caltest
    >>> round(caltest.estimation.spherical_score([1], [[0.5, 0.375, 0.125]]), 6)
    0.588348
    """
    prob, outcome, weight = _induced(y_true, y_prob, **options)
    return mean_of(spherical_of(prob, outcome), weight)


@reads_arguments
def accuracy(y_true: ArrayLike, y_prob: ArrayLike, **options: Unpack[ScoreOptions]) -> float:
    r"""Compute the accuracy: the share of the observations whose most probable class is the right one.

    .. math:: \frac1n \sum_i a_i, \qquad
              a_i = \frac{1\{p_{i, y_i} = \max_k p_{ik}\}}{\#\{k: p_{ik} = \max_j p_{ij}\}}

    If m classes have the largest probability and the label is one of them, the observation counts as 1 / m right: the
    average of a choice among them by lot, which does not depend on the order of the columns. Probabilities that differ
    by less than a relative 1e-9 are equal here. The lens `Confidence` looks at the first of these classes, because a
    test needs one event of each observation; where there are ties, its frequency may differ from the accuracy.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each observation.

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    ValueError
        If probabilities are outside [0, 1] or do not sum to 1, a label is unknown, lengths differ or weights are < 0.

    See Also
    --------
    caltest.estimation.mean_confidence : What a calibrated model expects of it.

    Examples
    --------
    >>> import caltest
    >>> caltest.estimation.accuracy([1, 0, 1, 1], [0.75, 0.25, 0.5, 0.875])
    0.875
    """
    prob, outcome, weight = _induced(y_true, y_prob, **options)
    return mean_of(accuracy_of(prob, outcome), weight)


@reads_arguments
def mean_confidence(y_true: ArrayLike, y_prob: ArrayLike, **options: Unpack[ScoreOptions]) -> float:
    r"""Compute the mean confidence: the average of the largest probability.

    .. math:: \frac1n \sum_i \max_k p_{ik}

    The difference ``mean_confidence - accuracy`` is the top-label gap.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        As in `accuracy`; the value does not depend on them.

    Returns
    -------
    float
        From 1 / n_outcomes to 1.

    Raises
    ------
    ValueError
        If probabilities are outside [0, 1] or do not sum to 1, a label is unknown, lengths differ or weights are < 0.

    See Also
    --------
    caltest.estimation.accuracy : What it should be equal to.

    Examples
    --------
    >>> import caltest
    >>> caltest.estimation.mean_confidence([1, 0, 1, 1], [0.75, 0.25, 0.5, 0.875])
    0.71875
    """
    confidence, _, weight = _top(y_true, y_prob, **options)
    return float(np.average(confidence, weights=weight))


@reads_arguments
def overconfidence_score(y_true: ArrayLike, y_prob: ArrayLike, **options: Unpack[ScoreOptions]) -> float:
    r"""Compute the overconfidence: the confidence in wrong predictions, averaged over all observations.

    .. math:: \frac1n \sum_i c_i (1 - a_i), \qquad c_i = \max_k p_{ik}

    Whether the observation is right, :math:`a_i`, is that of `accuracy`, a fraction where classes are tied.
    ``overconfidence_score - underconfidence_score`` equals ``mean_confidence - accuracy``. Neither is 0 for a
    calibrated model: both have the expected value :math:`\frac1n \sum_i c_i (1 - c_i)`. Divided by the share of wrong
    predictions, this is the overconfidence of Mund et al. (2015), the average confidence where the model is wrong.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each observation.

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    ValueError
        If probabilities are outside [0, 1] or do not sum to 1, a label is unknown, lengths differ or weights are < 0.

    See Also
    --------
    caltest.estimation.underconfidence_score : The other direction.
    caltest.statistics.OverConfidence : The statistic that tests it.

    References
    ----------
    D. Mund, R. Triebel and D. Cremers (2015), Active online confidence boosting for efficient object classification,
    ICRA.

    Examples
    --------
    >>> import caltest
    >>> caltest.estimation.overconfidence_score([1, 0, 1, 1], [0.75, 0.25, 0.5, 0.875])
    0.0625
    """
    confidence, right, weight = _top(y_true, y_prob, **options)
    return float(np.average(confidence * (1 - right), weights=weight))


@reads_arguments
def underconfidence_score(y_true: ArrayLike, y_prob: ArrayLike, **options: Unpack[ScoreOptions]) -> float:
    r"""Compute the underconfidence: one minus the confidence in right predictions, averaged over all observations.

    .. math:: \frac1n \sum_i (1 - c_i) a_i, \qquad c_i = \max_k p_{ik}

    See `overconfidence_score`. Divided by the share of right predictions, this is the underconfidence of Mund et al.
    (2015).

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each observation.

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    ValueError
        If probabilities are outside [0, 1] or do not sum to 1, a label is unknown, lengths differ or weights are < 0.

    See Also
    --------
    caltest.estimation.overconfidence_score : The other direction.
    caltest.statistics.UnderConfidence : The statistic that tests it.

    Examples
    --------
    >>> import caltest
    >>> caltest.estimation.underconfidence_score([1, 0, 1, 1], [0.75, 0.25, 0.5, 0.875])
    0.21875
    """
    confidence, right, weight = _top(y_true, y_prob, **options)
    return float(np.average((1 - confidence) * right, weights=weight))


_Induced = tuple[Floats, NDArray[Any], Floats | None]


def _induced(
    y_true: Any, y_prob: Any, *, classes: Any, lens: LensLike | None, sample_weight: Any, **_: Any
) -> _Induced:
    """Return probabilities, outcomes and weights behind the lens, in the caller's order."""
    prob, outcome = validate_problem(y_true, y_prob, classes)
    found, seen = (prob, outcome) if lens is None else apply_lens(lens, prob, outcome)
    return found, seen.astype(np.int64), validate_weight(sample_weight, len(prob))


def _top(y_true: Any, y_prob: Any, **options: Any) -> _Induced:
    """Return the largest probability, whether it is that of the outcome, and weights, ``(n_samples,)`` each."""
    prob, outcome, weight = _induced(y_true, y_prob, **options)
    return prob.max(axis=1), accuracy_of(prob, outcome), weight


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
