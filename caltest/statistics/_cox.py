"""Score statistics of Cox's recalibration: intercept and slope on the logit scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._lookup import sum_selected
from caltest.predictions._sample import Sample
from caltest.predictions._validation import validate_choice
from caltest.resampling._distributions import Distribution, chi_squared
from caltest.resampling._signs import sum_signed, sums_of_groups
from caltest.statistics._base import Statistic

_ROUNDING = 1e-12


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
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=caltest.CoxScore()), 12)
    5.0
    """

    part: str = "joint"

    n_outcomes = 2

    def __post_init__(self) -> None:
        validate_choice(self.part, "part", tuple(_PARTS))

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        """Return the statistic ``(...)`` of outcomes ``(..., n_samples)``."""
        return np.stack([np.square(_sum(sample, outcomes, terms)) for terms in _PARTS[self.part]]).sum(axis=0)

    def evaluate_signs(self, sample: Sample, signs: NDArray[np.int8]) -> NDArray[np.float64]:
        """Return the statistic of signed residuals."""
        chosen = [sum_signed(signs, sample.once(_group_terms, terms))[:, 0] for terms in _PARTS[self.part]]
        return np.square(chosen).sum(axis=0)

    def asymptotic_distribution(self, sample: Sample) -> Distribution:
        """Return chi-squared with one degree of freedom for each direction in which the statistic can vary."""
        return chi_squared(self._degrees_of_freedom(sample))

    def direction(self, sample: Sample, outcomes: NDArray[Any]) -> float | None:
        """Return :math:`Z_b` of the slope: below 0 where predictions are too extreme; None where a shift counts too."""
        return float(_sum(sample, outcomes, _slope)) if _PARTS[self.part] == (_slope,) else None

    def informative(self, sample: Sample) -> bool:
        """Return whether the statistic can be anything but 0 or infinite: the slope needs predictions that vary."""
        return self._degrees_of_freedom(sample) > 0

    def _degrees_of_freedom(self, sample: Sample) -> int:
        several = [sample.once(terms) for terms in _PARTS[self.part]]
        return sum(bool(np.any(terms[np.isfinite(terms)])) for terms in several)


def _group_terms(sample: Sample, terms: Callable[[Sample], NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return what the labels of each group add to Z_a or Z_b, ``(n_groups, 1)``."""
    return sums_of_groups(sample, sample.once(terms)[np.arange(sample.n_samples), sample.outcome])[:, None]


def _sum(sample: Sample, outcomes: NDArray[Any], terms: Callable[[Sample], NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the sum ``(...)`` of the terms that outcomes ``(..., n_samples)`` select: Z_a or Z_b."""
    flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
    return sum_selected(flat, sample.once(terms)).reshape(outcomes.shape[:-1])


def logits(sample: Sample) -> NDArray[np.float64]:
    """Return the logit of the event, ``(n_samples,)``; infinite for predictions of 0 and 1."""
    with np.errstate(divide="ignore"):
        log_prob = np.log(np.clip(sample.prob, 0.0, None))
    return log_prob[:, 1] - log_prob[:, 0]


def _residuals(sample: Sample) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return residuals of both outcomes ``(n_samples, 2)``, variances and logits; 0 for predictions of 0 and 1."""
    logit = logits(sample)
    weight = np.ones(sample.n_samples) if sample.weight is None else sample.weight
    weight = np.where(np.isfinite(logit), weight, 0.0)
    residual = np.column_stack([-sample.expected[:, 1], sample.expected[:, 0]]) * weight[:, None]
    variance = sample.expected.prod(axis=1) * np.square(weight)
    return residual, variance, np.where(np.isfinite(logit), logit, 0.0)


def _intercept(sample: Sample) -> NDArray[np.float64]:
    """Return what each observation adds to Z_a by its outcome, ``(n_samples, 2)``; infinity if that is impossible."""
    residual, variance, _ = _residuals(sample)
    total = variance.sum()
    terms = residual / np.sqrt(total) if total > 0 else np.zeros_like(residual)
    return np.where(sample.expected <= 0, np.inf, terms)


def _slope(sample: Sample) -> NDArray[np.float64]:
    """Return what each observation adds to Z_b by its outcome, ``(n_samples, 2)``."""
    residual, variance, logit = _residuals(sample)
    centre = np.average(logit, weights=variance) if variance.any() else 0.0
    distance = logit - centre
    # Equal logits differ from their mean by rounding only.
    distance[np.abs(distance) <= _ROUNDING * max(abs(centre), 1.0)] = 0.0
    spread = (variance * np.square(distance)).sum()
    return residual * (distance / np.sqrt(spread))[:, None] if spread > 0 else np.zeros_like(residual)


_PARTS = {"joint": (_intercept, _slope), "intercept": (_intercept,), "slope": (_slope,)}
"""The directions whose squares are summed."""
