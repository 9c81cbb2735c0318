"""Score statistics of recalibration maps: temperature scaling, matrix scaling and Cox's logistic recalibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._cells import sum_over_events
from caltest._compiled._lookup import largest_scores, sum_logarithms, sum_selected
from caltest.predictions._arrays import Floats, blocks
from caltest.predictions._sample import Sample, expected_outcomes
from caltest.predictions.inputs._validation import one_of
from caltest.resampling.distributions._base import Distribution, chi_squared
from caltest.resampling.draws._signs import group_of, sum_signed, sums_of_groups
from caltest.resampling.draws._summaries import EntrySums, KeptSums
from caltest.results._naming import parameter
from caltest.statistics._base import Statistic, sum_of_terms, terms_of_groups

_ROUNDING = 1e-12
_COX_ROUNDING = 1e-12


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

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return the statistic ``(...)`` of outcomes ``(..., n_samples)``."""
        return self.read(self.signed(sample, outcomes))

    def read(self, signed: Floats) -> Floats:
        """Return the statistic of U."""
        return np.abs(signed)

    def signed(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return U, ``(...)``: negative if over-confident."""
        flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
        if sample.n_outcomes == 2 and (event := sample.once(_event_terms)) is not None:
            without, added = event
            whole = np.array([0, sample.n_samples])
            return without + sum_over_events(flat, added, whole).reshape(outcomes.shape[:-1])
        if not sample.is_large:
            return sum_of_terms(sample, outcomes, sample.once(_terms))
        if sample.weight is None:
            logarithms = sum_logarithms(flat, sample.given, sample.given_null)
            return (logarithms - sample.of_predictions(_expected_log).sum()).reshape(outcomes.shape[:-1])
        row = np.arange(sample.n_samples)  # the logarithms of what was drawn, instead of a table of all
        chosen = ((sample.given[row, drawn, None], sample.given_null[row, drawn, None]) for drawn in flat)
        expected_log = sample.of_predictions(_expected_log)
        terms = (_terms_of(sample, *some, _log(some[0]), expected_log) for some in chosen)
        return np.array([each.sum() for each in terms]).reshape(outcomes.shape[:-1])

    def summary(self, sample: Sample) -> EntrySums | None:
        """Return what suffices: the sum of the terms, unless a table of all takes too much memory."""
        return None if sample.is_large or sample.weight is not None else sample.once(_sum_of_terms)

    def evaluate_summary(self, sample: Sample, counted: Floats) -> Floats:
        """Return the statistic of drawn sums."""
        return self.read(counted)

    def evaluate_signs(self, sample: Sample, signs: NDArray[np.int8]) -> Floats:
        """Return the statistic of signed residuals."""
        return self.read(sum_signed(signs, sample.once(_group_terms))[:, 0])

    def evaluate_sums(self, sums: KeptSums) -> Floats:
        """Return the statistic of kept sums of logarithms."""
        return self.read(sums.log_excess)

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
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=caltest.statistics.OverConfidence()), 4)
    6.5917
    """

    def read(self, signed: Floats) -> Floats:
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
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=caltest.statistics.UnderConfidence()), 4)
    1.2164
    """

    def read(self, signed: Floats) -> Floats:
        """Return :math:`U`."""
        return signed


def _terms(sample: Sample) -> Floats:
    """Return what each observation adds to U by its outcome, ``(n_samples, n_outcomes)``; -inf if impossible."""
    terms = np.empty(sample.given.shape)
    for rows in blocks(*sample.given.shape):
        prob, null_prob = sample.given[rows], sample.given_null[rows]
        logs = _log(prob)
        terms[rows] = _terms_of(sample, prob, null_prob, logs, _mean_log(logs, null_prob), rows=rows)
    return terms


def _group_terms(sample: Sample) -> Floats:
    """Return what the labels of each group add to U, ``(n_groups, 1)``."""
    own = np.arange(sample.n_samples), sample.outcome
    given, null = (prob[own].astype(np.float64)[:, None] for prob in (sample.given, sample.given_null))
    terms = _terms_of(sample, given, null, _log(given), sample.of_predictions(_expected_log))
    return sums_of_groups(sample, terms[:, 0])[:, None]


def _sum_of_terms(sample: Sample) -> EntrySums:
    """Return U as a sum over the labels; what is impossible, and never drawn, adds nothing."""
    terms = sample.once(_terms)
    finite = np.isfinite(terms)
    return EntrySums(terms if finite.all() else np.where(finite, terms, 0.0))


def _event_terms(sample: Sample) -> tuple[float, Floats] | None:
    """Return U without events, and what each event adds ``(n_samples,)``; None if an outcome is impossible."""
    added, without = np.empty(sample.n_samples), 0.0
    for rows in blocks(sample.n_samples, 1):  # a table of both outcomes is not needed
        prob, null_prob = sample.given[rows], sample.given_null[rows]
        logs = _log(prob)
        terms = _terms_of(sample, prob, null_prob, logs, _mean_log(logs, null_prob), rows=rows)
        if not np.isfinite(terms).all():
            return None
        without += float(terms[:, 0].sum())
        added[rows] = terms[:, 1] - terms[:, 0]
    return without, added


def _terms_of(
    sample: Sample,
    prob: NDArray[Any],
    null_prob: NDArray[Any],
    logs: Floats,
    expected_log: Floats,
    *,
    rows: slice = slice(None),
) -> Floats:
    """Return what the outcomes with some probabilities of some observations, ``(n_samples, n)``, add to U."""
    terms = logs - expected_log[:, None]
    terms[(prob <= 0) & (null_prob <= 0)] = -np.inf
    if sample.weight is not None:
        terms *= sample.weight[rows, None]
    return terms


def _expected_log(sample: Sample) -> Floats:
    """Return the expectation of each observation's logarithm, ``(n_samples,)``, some observations at a time."""
    parts = ((sample.given[rows], sample.given_null[rows]) for rows in blocks(*sample.given.shape))
    return np.concatenate([_mean_log(_log(prob), null_prob) for prob, null_prob in parts])


def _mean_log(logs: Floats, null_prob: NDArray[Any]) -> Floats:
    return np.einsum("ik,ik->i", np.maximum(null_prob.astype(np.float64), 0.0), logs)


def _log(prob: NDArray[Any]) -> Floats:
    # The floor matters only if a calibration function gives a positive probability where the model predicts 0.
    return np.log(np.maximum(prob.astype(np.float64), np.finfo(np.float64).smallest_subnormal))


FLOOR = 2.0**-52
"""Smaller predictions count as this one in the logarithm."""


@dataclass(frozen=True, repr=False)
class MatrixScore(Statistic):
    r"""Largest standardised score of matrix scaling at the identity, for errors of pairs of classes.

    .. math:: \max_{j, k} \frac{|G_{jk}|}{V_{jk}^{1/2}}, \qquad
              G_{jk} = \sum_i (e_{ij} - p_{ij}) (x_{ik} - \bar x_{jk}), \qquad
              V_{jk} = \sum_i p_{ij} (1 - p_{ij}) (x_{ik} - \bar x_{jk})^2

    over all classes j and k = 0, ..., K, where :math:`e_{ij}` says whether observation i has class j. The values are
    :math:`x_{ik} = \log p_{ik}`, with mean :math:`\bar x_{jk}` weighted by :math:`p_{ij} (1 - p_{ij})`; the column k =
    0 is constant, :math:`x_{i0} = 1` and :math:`\bar x_{j0} = 0`. :math:`G_{j0}` and :math:`G_{jk}` are the derivatives
    of the log-likelihood of :math:`\mathrm{softmax}(W \log p + b)` (Dirichlet calibration, Kull et al. 2019) with
    respect to :math:`b_j` and :math:`W_{jk}` at W = I, b = 0, the latter with :math:`b_j` free. So a large
    :math:`G_{jk}` means that the frequency of class j depends on the probability of class k in another way than
    predicted: the model confuses the two, or the class is too frequent, or too steep (j = k).

    The largest of the standardised derivatives was chosen, and not their quadratic form (Rao's statistic): it needs no
    inverse of an information matrix of order K (K + 1), so that it is defined for many classes and few observations,
    and it is not diluted where one pair of many is wrong. Against one temperature for all classes, which changes many
    entries a little, `TemperatureScore` has more power.

    Probabilities below :math:`2^{-52}`, zeros among them, have its logarithm. An outcome of probability 0 makes the
    statistic infinite. A column without variation adds nothing. Under another null hypothesis than calibration,
    :math:`p_{ij}` is the expected probability, and the logarithm that of the prediction. Sample weights multiply the
    terms of G, their squares those of V. For two outcomes it is a score of beta calibration, and the same for the event
    and its complement. It makes a table of a double for each prediction, and a draw costs as much as a pass over it.

    See Also
    --------
    TemperatureScore : One temperature for all classes.
    ClasswiseKS : Errors of single classes of any shape.
    CoxScore : Intercept and slope, for two outcomes.

    References
    ----------
    M. Kull et al. (2019), Beyond temperature scaling: obtaining well-calibrated multi-class probabilities with
    Dirichlet calibration, NeurIPS.
    C. Guo et al. (2017), On calibration of modern neural networks, ICML: matrix scaling.

    Examples
    --------
    Four of eight labels are class 0 where two are expected, of variance 3/2:

    >>> import caltest
    >>> y_prob = [[0.25, 0.25, 0.5]] * 8
    >>> y_true = [0, 0, 0, 0, 1, 1, 2, 2]
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=caltest.statistics.MatrixScore()), 6)
    1.632993
    """

    words = "score of matrix scaling"

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return the statistic ``(...)`` of outcomes ``(..., n_samples)``."""
        flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
        scores = largest_scores(flat, *sample.once(_standardisation))
        impossible = sample.once(_impossible)
        if impossible is not None:
            scores = np.where(sum_selected(flat, impossible) > 0, np.inf, scores)
        return scores.reshape(outcomes.shape[:-1])

    def evaluate_signs(self, sample: Sample, signs: NDArray[np.int8]) -> Floats:
        """Return the statistic of signed residuals."""
        values, centre, _, scale = sample.once(_standardisation)
        group, weight = group_of(sample), sample.weight_or_ones
        order = np.argsort(group, kind="stable")
        present, start = np.unique(group[order], return_index=True)
        largest = np.zeros(len(signs))
        for j in range(sample.n_outcomes):
            unit = (sample.outcome == j) - sample.expected[:, j]
            terms = unit[:, None] * (values - weight[:, None] * centre[j])
            scores = sum_signed(signs[:, present], np.add.reduceat(terms[order], start, axis=0))
            largest = np.maximum(largest, (np.abs(scores) * scale[j]).max(axis=1))
        return largest


def _standardisation(sample: Sample) -> tuple[Floats, ...]:
    """Return what `largest_scores` takes: the table, the centres, the expected scores and the factors."""
    weight = sample.weight_or_ones
    values = np.column_stack([np.ones(sample.n_samples), np.log(np.maximum(sample.prob, FLOOR))])
    variance = np.square(weight)[:, None] * sample.expected * (1 - sample.expected)
    total = variance.sum(axis=0)[:, None]
    centre = (variance.T @ values) / np.where(total > 0, total, 1.0)
    centre[:, 0] = 0.0
    square = variance.T @ np.square(values)
    spread = np.stack([v @ np.square(values - c) for v, c in zip(variance.T, centre, strict=True)])
    varies = spread > _ROUNDING * square
    scale = np.where(varies, 1 / np.sqrt(np.where(varies, spread, 1.0)), 0.0)
    weighted = weight[:, None] * sample.expected
    expected = weighted.T @ values - centre * weighted.sum(axis=0)[:, None]
    return weight[:, None] * values, centre, expected, scale


def _impossible(sample: Sample) -> Floats | None:
    """Return a table of the outcomes of probability 0, ``(n_samples, n_outcomes)``; None if there are none."""
    impossible = sample.given_null <= 0
    return impossible.astype(np.float64) if impossible.any() else None


@dataclass(frozen=True, repr=False)
class CoxScore(Statistic):
    r"""Score statistic of Cox's recalibration, :math:`\operatorname{logit} r = a + b \operatorname{logit} p`.

    It needs a two-outcome lens.

    .. math::
        Z_a^2 + Z_b^2, \qquad Z_a = \frac{\sum_i e_i}{(\sum_i v_i)^{1/2}}, \qquad
        Z_b = \frac{\sum_i e_i (l_i - \bar l)}{(\sum_i v_i (l_i - \bar l)^2)^{1/2}},

    with residuals :math:`e_i = y_i - p_i`, variances :math:`v_i = p_i (1 - p_i)`, logits :math:`l_i` and their mean
    :math:`\bar l` weighted by :math:`v_i`. This is Rao's score statistic :math:`U' I^{-1} U` of (a, b) = (0, 1), split
    into two independent directions. :math:`Z_a` tests calibration in the large and is positive if events are more
    frequent than predicted. :math:`Z_b` tests the slope with a free intercept and is negative if predictions are too
    extreme (over-confident, b < 1). In the limit the sum follows chi-squared(2), each square chi-squared(1):
    ``calibration_test(..., method="asymptotic")``. No model is fitted, so that the statistic exists if the predictions
    separate the labels. Constant predictions have no slope: :math:`Z_b = 0`. Predictions of exactly 0 and 1 do not
    depend on a and b > 0: they add nothing, or infinity if they are wrong. Sample weights multiply the residuals, their
    squares the variances.

    Parameters
    ----------
    part : {"joint", "intercept", "slope"}
        The sum, or one of the two squares.

    Raises
    ------
    TypeError
        If ``part`` is not a text.
    ValueError
        If ``part`` is unknown.

    See Also
    --------
    TemperatureScore : Over- and under-confidence for any number of outcomes.
    Spiegelhalter : Difference between the Brier score and its expectation.

    References
    ----------
    D. R. Cox (1958), Two further applications of a model for binary regression, Biometrika 45, 562-565.
    C. R. Rao (1948), Large sample tests of statistical hypotheses concerning several parameters, Proceedings of the
    Cambridge Philosophical Society 44, 50-57.

    Examples
    --------
    Fifteen events where ten are expected, of variance 5:

    >>> import caltest
    >>> y_true, y_prob = [1] * 15 + [0] * 5, [0.5] * 20
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=caltest.statistics.CoxScore()), 12)
    5.0
    """

    part: str = parameter("joint", one_of("joint", "intercept", "slope"))

    @property
    def words(self) -> str:
        """What it is called as the source of a direction and on the axes of pictures."""
        return "score of the calibration " + {"joint": "intercept and slope"}.get(self.part, self.part)

    n_outcomes = 2
    degree = 2

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return the statistic ``(...)`` of outcomes ``(..., n_samples)``."""
        sums = [
            _slope_of(sample, outcomes) if terms is _slope else sum_of_terms(sample, outcomes, sample.once(terms))
            for terms in _PARTS[self.part]
        ]
        return np.square(sums).sum(axis=0)

    def summary(self, sample: Sample) -> EntrySums | None:
        """Return what suffices for the slope: the sum of the terms."""
        return sample.once(_sum_of_slopes) if self.part == "slope" and sample.weight is None else None

    def evaluate_summary(self, sample: Sample, counted: Floats) -> Floats:
        """Return the square of drawn sums."""
        return np.square(counted)

    def evaluate_signs(self, sample: Sample, signs: NDArray[np.int8]) -> Floats:
        """Return the statistic of signed residuals."""
        chosen = [sum_signed(signs, sample.once(terms_of_groups, terms))[:, 0] for terms in _PARTS[self.part]]
        return np.square(chosen).sum(axis=0)

    def asymptotic_distribution(self, sample: Sample) -> Distribution:
        """Return chi-squared with one degree of freedom for each direction in which the statistic can vary."""
        return chi_squared(self._degrees_of_freedom(sample))

    def direction(self, sample: Sample, outcomes: NDArray[Any]) -> float | None:
        """Return :math:`Z_b` of the slope: below 0 where predictions are too extreme; None where a shift counts too."""
        return float(_slope_of(sample, outcomes)) if self.part == "slope" else None

    def informative(self, sample: Sample) -> bool:
        """Return whether the statistic can be anything but 0 or infinite: the slope needs predictions that vary."""
        return self._degrees_of_freedom(sample) > 0

    def _degrees_of_freedom(self, sample: Sample) -> int:
        several = [sample.once(terms) for terms in _PARTS[self.part]]
        return sum(bool(np.any(terms[np.isfinite(terms)])) for terms in several)


def logits(sample: Sample, rows: slice = slice(None)) -> Floats:
    """Return the logit of the event, ``(n_samples,)``; infinite for predictions of 0 and 1."""
    return logits_of(sample.given[rows].astype(np.float64))


def logits_of(prob: Floats) -> Floats:
    """Return the logit of the second of two probabilities ``(n, 2)``."""
    with np.errstate(divide="ignore"):
        log_prob = np.log(np.maximum(prob, 0.0))
    return log_prob[:, 1] - log_prob[:, 0]


def _intercept(sample: Sample) -> Floats:
    """Return what each observation adds to Z_a by its outcome, ``(n_samples, 2)``; infinity if that is impossible."""
    weight = np.where(np.isfinite(logits(sample)), sample.weight_or_ones, 0.0)
    residual = np.column_stack([-sample.expected[:, 1], sample.expected[:, 0]]) * weight[:, None]
    total = (sample.event_variance * np.square(weight)).sum()
    terms = residual / np.sqrt(total) if total > 0 else np.zeros_like(residual)
    return np.where(sample.expected <= 0, np.inf, terms)


def _slope_of(sample: Sample, outcomes: NDArray[Any]) -> Floats:
    """Return Z_b ``(...)`` of outcomes ``(..., n_samples)``."""
    flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
    without, added = sample.of_predictions(_slope_of_events)
    return without + sum_over_events(flat, added, np.array([0, sample.n_samples])).reshape(outcomes.shape[:-1])


def _slope_of_events(sample: Sample) -> tuple[float, Floats]:
    """Return Z_b without events, and what each event adds ``(n_samples,)``; 0 for predictions of 0 and 1."""
    logit, prob, variance = (np.empty(sample.n_samples) for _ in range(3))  # the first one is kept
    for rows in blocks(sample.n_samples, 1):  # a table of both outcomes is not needed
        expected = expected_outcomes(sample.given_null[rows].astype(np.float64))
        logit[rows], prob[rows], variance[rows] = logits(sample, rows), expected[:, 1], expected[:, 0] * expected[:, 1]
    weight = np.where(np.isfinite(logit), sample.weight_or_ones, 0.0)
    variance *= np.square(weight)
    logit[weight == 0.0] = 0.0
    centre = np.average(logit, weights=variance) if variance.any() else 0.0
    distance = np.subtract(logit, centre, out=logit)
    # Equal logits differ from their mean by rounding only.
    distance[np.abs(distance) <= _COX_ROUNDING * max(abs(centre), 1.0)] = 0.0
    spread = (variance * np.square(distance)).sum()
    distance *= weight / np.sqrt(spread) if spread > 0 else 0.0
    return 0.0 - float((prob * distance).sum()), distance


def _slope(sample: Sample) -> Floats:
    """Return what each observation adds to Z_b by its outcome, ``(n_samples, 2)``."""
    _, added = sample.of_predictions(_slope_of_events)
    return np.column_stack([-sample.expected[:, 1] * added, sample.expected[:, 0] * added])


def _sum_of_slopes(sample: Sample) -> EntrySums:
    """Return Z_b as a sum over the labels."""
    return EntrySums(_slope(sample))


_PARTS = {"joint": (_intercept, _slope), "intercept": (_intercept,), "slope": (_slope,)}
"""The directions whose squares are summed."""
