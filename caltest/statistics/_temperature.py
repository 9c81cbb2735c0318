"""The score of temperature scaling, which detects over- and under-confidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._cells import sum_over_events
from caltest._compiled._lookup import sum_logarithms, sum_selected
from caltest.predictions._sample import Sample
from caltest.resampling._signs import sum_signed, sums_of_groups
from caltest.resampling._summaries import EntrySums
from caltest.statistics._base import Statistic

_BLOCK_VALUES = 2**15  # of which logarithms are made at a time, in the cache


@dataclass(frozen=True, repr=False)
class TemperatureScore(Statistic):
    r"""Score statistic :math:`|U|` of temperature scaling at temperature 1, two-sided.

    .. math:: U = \sum_i \Bigl[\log p_{i, y_i} - \sum_k p_{ik} \log p_{ik}\Bigr], \qquad 0 \log 0 = 0,

    the derivative, up to sign, of the log-likelihood of :math:`p_{ik}^{1/T} / \sum_l p_{il}^{1/T}` with respect to T
    at T = 1. So it is locally most powerful against a wrong temperature. The model is over-confident if U < 0 and
    under-confident if U > 0. If the null hypothesis is a calibration function :math:`\rho`, the expectation is over
    :math:`\rho(p_i)`. An outcome of probability 0 is infinite evidence of over-confidence. Sample weights multiply the
    terms.

    See Also
    --------
    OverConfidence, UnderConfidence : Evidence of one side.
    Spiegelhalter : The same for the Brier score.
    CoxScore : Intercept and slope on the logit scale, for two outcomes.

    References
    ----------
    C. Guo et al. (2017), On calibration of modern neural networks, ICML: temperature scaling.

    Examples
    --------
    A forecaster who predicts 0.9 and is right in 6 of 10 cases is over-confident:

    >>> import caltest
    >>> y_true, y_prob = [1] * 6 + [0] * 4, [0.9] * 10
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=caltest.TemperatureScore()), 4)
    6.5917
    """

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        """Return the statistic ``(...)`` of outcomes ``(..., n_samples)``."""
        return self.read(self.signed(sample, outcomes))

    def read(self, signed: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the statistic of U."""
        return np.abs(signed)

    def signed(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        """Return U, ``(...)``: negative if over-confident."""
        flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
        if sample.n_outcomes == 2 and (event := sample.once(_event_terms)) is not None:
            without, added = event
            whole = np.array([0, sample.n_samples])
            return without + sum_over_events(flat, added, whole).reshape(outcomes.shape[:-1])
        if not sample.is_large:
            return sum_selected(flat, sample.once(_terms)).reshape(outcomes.shape[:-1])
        if sample.weight is None:
            logarithms = sum_logarithms(flat, sample.given, sample.given_null)
            return (logarithms - sample.once(_expected_log).sum()).reshape(outcomes.shape[:-1])
        row = np.arange(sample.n_samples)  # the logarithms of what was drawn, instead of a table of all
        chosen = ((sample.given[row, drawn, None], sample.given_null[row, drawn, None]) for drawn in flat)
        expected_log = sample.once(_expected_log)
        return np.array([_terms_of(sample, *some, expected_log).sum() for some in chosen]).reshape(outcomes.shape[:-1])

    def summary(self, sample: Sample) -> EntrySums | None:
        """Return what suffices: the sum of the terms, unless a table of all takes too much memory."""
        return None if sample.is_large or sample.weight is not None else sample.once(_sum_of_terms)

    def evaluate_summary(self, sample: Sample, counted: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the statistic of drawn sums."""
        return self.read(counted)

    def evaluate_signs(self, sample: Sample, signs: NDArray[np.int8]) -> NDArray[np.float64]:
        """Return the statistic of signed residuals."""
        return self.read(sum_signed(signs, sample.once(_group_terms))[:, 0])

    def direction(self, sample: Sample, outcomes: NDArray[Any]) -> float:
        """Return U: below 0 if over-confident."""
        return float(self.signed(sample, outcomes))


@dataclass(frozen=True, repr=False)
class OverConfidence(TemperatureScore):
    r"""Evidence that a model is over-confident: :math:`-U`, the score of temperature scaling on one side.

    It is large if the labels are less probable than predicted, on average of the logarithm. See `TemperatureScore` for
    the definition of U. For sharp predictions U is skewed: a few wrong labels of confident predictions make it very
    negative, and nothing makes it very positive. A test by :math:`|U|` then has little power against under-confidence,
    so that `Omnibus` has a part for each side. A p-value of one side is about half of that of both.

    See Also
    --------
    UnderConfidence : Evidence of the other side.
    TemperatureScore : Both sides.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = [1] * 6 + [0] * 4, [0.9] * 10
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=caltest.OverConfidence()), 4)
    6.5917
    """

    one_sided = True

    def read(self, signed: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return :math:`-U`."""
        return 0.0 - signed


@dataclass(frozen=True, repr=False)
class UnderConfidence(TemperatureScore):
    r"""Evidence that a model is under-confident: :math:`U`, the score of temperature scaling on one side.

    It is large if the labels are more probable than predicted, on average of the logarithm. See `TemperatureScore` for
    the definition of U, and `OverConfidence` for why there are two sides.

    See Also
    --------
    OverConfidence : Evidence of the other side.
    TemperatureScore : Both sides.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = [1] * 9 + [0], [0.6] * 10
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=caltest.UnderConfidence()), 4)
    1.2164
    """

    one_sided = True

    def read(self, signed: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return :math:`U`."""
        return signed


def _terms(sample: Sample) -> NDArray[np.float64]:
    """Return what each observation adds to U by its outcome, ``(n_samples, n_outcomes)``; -inf if impossible."""
    return _terms_of(sample, sample.prob, sample.null_prob, sample.once(_expected_log))


def _group_terms(sample: Sample) -> NDArray[np.float64]:
    """Return what the labels of each group add to U, ``(n_groups, 1)``."""
    terms = np.empty(sample.n_samples)
    for start in range(0, sample.n_samples, _BLOCK_VALUES):
        rows = slice(start, start + _BLOCK_VALUES)
        given, null = sample.given[rows], sample.given_null[rows]
        own = np.arange(len(given)), sample.outcome[rows]
        expected_log = _expected_log_of(given, null)
        terms[rows] = _terms_of(sample, given[own][:, None], null[own][:, None], expected_log, rows)[:, 0]
    return sums_of_groups(sample, terms)[:, None]


def _sum_of_terms(sample: Sample) -> EntrySums:
    """Return U as a sum over the labels; what is impossible, and never drawn, adds nothing."""
    terms = _terms(sample)
    return EntrySums(np.where(np.isfinite(terms), terms, 0.0))


def _event_terms(sample: Sample) -> tuple[float, NDArray[np.float64]] | None:
    """Return U without events, and what each event adds ``(n_samples,)``; None if an outcome is impossible."""
    added, without = np.empty(sample.n_samples), 0.0
    for start in range(0, sample.n_samples, _BLOCK_VALUES):  # a table of both outcomes is not needed
        rows = slice(start, start + _BLOCK_VALUES)
        prob, null_prob = sample.given[rows], sample.given_null[rows]
        terms = _terms_of(sample, prob, null_prob, _expected_log_of(prob, null_prob), rows)
        if not np.isfinite(terms).all():
            return None
        without += float(terms[:, 0].sum())
        added[rows] = terms[:, 1] - terms[:, 0]
    return without, added


def _terms_of(
    sample: Sample,
    prob: NDArray[Any],
    null_prob: NDArray[Any],
    expected_log: NDArray[np.float64],
    rows: slice = slice(None),
) -> NDArray[np.float64]:
    """Return what the outcomes with some probabilities of some observations, ``(n_samples, n)``, add to U."""
    terms = _log(prob)
    terms -= expected_log[:, None]
    terms[(prob <= 0) & (null_prob <= 0)] = -np.inf
    if sample.weight is not None:
        terms *= sample.weight[rows, None]
    return terms


def _expected_log(sample: Sample) -> NDArray[np.float64]:
    """Return the expectation of each observation's logarithm, ``(n_samples,)``, some observations at a time."""
    size = max(1, _BLOCK_VALUES // sample.n_outcomes)
    starts = range(0, sample.n_samples, size)
    blocks = ((sample.given[i : i + size], sample.given_null[i : i + size]) for i in starts)
    return np.concatenate([_expected_log_of(prob, null_prob) for prob, null_prob in blocks])


def _expected_log_of(prob: NDArray[Any], null_prob: NDArray[Any]) -> NDArray[np.float64]:
    return np.einsum("ik,ik->i", np.maximum(null_prob.astype(np.float64), 0.0), _log(prob))


def _log(prob: NDArray[Any]) -> NDArray[np.float64]:
    # The floor matters only if a calibration function gives a positive probability where the model predicts 0.
    return np.log(np.maximum(prob.astype(np.float64), np.finfo(np.float64).smallest_subnormal))
