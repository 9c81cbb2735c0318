"""Spiegelhalter's statistic: is the Brier score what the predictions themselves expect?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._lookup import sum_selected
from caltest.predictions._sample import Sample
from caltest.statistics._base import Statistic

_ROUNDING = 1e-12


@dataclass(frozen=True)
class Spiegelhalter(Statistic):
    r"""Standardised difference between the Brier score and its expectation, two-sided: :math:`|Z|`.

    .. math:: Z = \frac{\sum_i (y_i - p_i)(1 - 2 p_i)}{\bigl(\sum_i (1 - 2 p_i)^2 p_i (1 - p_i)\bigr)^{1/2}}

    for two outcomes (Spiegelhalter 1986), and with the Brier score :math:`\sum_k (p_{ik} - 1\{y_i = k\})^2` of any
    number of outcomes

    .. math::
        Z = \frac{\sum_i (m_i - p_{i, y_i})}{\bigl(\sum_{ik} p_{ik} (p_{ik} - m_i)^2\bigr)^{1/2}},
        \qquad m_i = \sum_k p_{ik}^2,

    the same number where there are two. Z > 0: the score is worse than expected, as it is for over-confident
    predictions; Z < 0: better, under-confident (`signed`). A row whose possible outcomes have equal probabilities adds
    nothing, so that it is blind at :math:`p = 1/2`, and shifts on either side of it cancel: it does not see every
    miscalibration. Without any variance it is 0, or infinite if an outcome happened that was excluded. With a
    calibration function :math:`\rho` as null, expectation and variance are those under :math:`\rho(p_i)`. Sample
    weights multiply the terms.

    References
    ----------
    D. J. Spiegelhalter (1986), Probabilistic prediction in patient management and clinical trials, Statistics in
    Medicine 5, 421-433.

    Examples
    --------
    A forecaster who says 0.9 and is right in 6 of 10 cases:

    >>> import caltest
    >>> y_true, y_prob = [1] * 6 + [0] * 4, [0.9] * 10
    >>> round(caltest.calibration_error(y_true, y_prob, statistic=caltest.Spiegelhalter()), 4)
    3.1623
    """

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        """Return :math:`|Z|`, ``(...)``, of outcomes ``(..., n_samples)``."""
        return np.abs(self.signed(sample, outcomes))

    def signed(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        """Return Z itself, ``(...)``: positive where over-confident."""
        flat = np.atleast_2d(outcomes).reshape(-1, sample.n_samples)
        return sum_selected(flat, sample.once(_terms)).reshape(outcomes.shape[:-1])


def _terms(sample: Sample) -> NDArray[np.float64]:
    """Return what each row adds to Z if it falls to each outcome, ``(n_samples, n_outcomes)``."""
    mean = (sample.expected * sample.prob).sum(axis=1, keepdims=True)
    excess = mean - sample.prob
    possible = sample.expected > 0
    # Equal probabilities differ by rounding only, which would be all there is where every row is such.
    excess[possible & (np.abs(excess) <= _ROUNDING * mean)] = 0.0
    if sample.weight is not None:
        excess *= sample.weight[:, None]
        possible |= sample.weight[:, None] <= 0
    variance = (sample.expected * np.square(excess)).sum()
    return excess / np.sqrt(variance) if variance > 0 else np.where(possible, 0.0, np.inf)
