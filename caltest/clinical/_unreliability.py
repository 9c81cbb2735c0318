"""Interval for the unreliability index: how much the best intercept and slope would gain."""

from __future__ import annotations

import math

import numpy as np

from caltest.estimation.scores._mean_interval import UNKNOWN
from caltest.predictions._arrays import Floats
from caltest.predictions._sample import Sample
from caltest.results import ConfidenceInterval
from caltest.statistics._logistic_curves import expit
from caltest.statistics._logistic_polynomials import fit_polynomials

_RAYS = 256  # from the estimate to the end of the region
_HALVINGS = 26
_FURTHER, _FURTHEST = 1.5, 1e6  # standard errors


def unreliability_interval(sample: Sample, missed: float) -> ConfidenceInterval:
    r"""Return an interval for the gain of the best intercept and slope on infinitely many labels of these predictions.

    With the log-likelihood :math:`\ell` of the coefficients :math:`\beta = (a, b)`, the probabilities
    :math:`\pi_i(\beta)` and :math:`\beta_0 = (0, 1)`, the gain is twice a mean divergence,

    .. math:: U(\beta) = \frac2n \sum_i \mathrm{KL}\bigl(\pi_i(\beta) \,\|\, p_i\bigr),

    and the interval holds its values in the region :math:`2 (\ell(\hat\beta) - \ell(\beta)) \le k` with the quantile k
    of chi-squared with two degrees of freedom. It begins at 0 exactly if the likelihood ratio does not reject
    calibration. A region for two coefficients covers one function of them more often than it says. U is convex, so
    that it is largest, and unless the region holds :math:`\beta_0` smallest, at the edge.

    It is unknown with weights or groups, whose likelihood ratio has another limit, and where the predictions separate
    the labels.
    """
    if sample.group is not None or sample.weight is not None:
        return UNKNOWN
    polynomials = fit_polynomials(sample, 1)
    curves, happened = polynomials.curves[1], sample.outcome[None] > 0
    (coefficient,), _ = polynomials.fit(happened, 1)
    (own,) = polynomials.sums(happened)
    design, calibrated = curves.design, curves.start
    if len(calibrated) < 2:
        return UNKNOWN

    def size(beta: Floats) -> Floats:
        return np.logaddexp(0.0, beta @ design.T) @ curves.weight

    def lack(beta: Floats) -> Floats:
        return 2 * (size(beta) - beta @ own - (size(coefficient[None]) - coefficient @ own))

    prob = expit(design @ coefficient)
    information = (design.T * (curves.weight * prob * (1 - prob))) @ design
    angle = 2 * np.pi * np.arange(_RAYS) / _RAYS
    ray = np.column_stack([np.cos(angle), np.sin(angle)]) @ np.linalg.inv(np.linalg.cholesky(information))
    reach = -2 * math.log(2 * missed)
    inside, outside = np.zeros(_RAYS), np.full(_RAYS, math.sqrt(reach))
    while (short := lack(coefficient + outside[:, None] * ray) < reach).any():
        if outside.max() > _FURTHEST:
            return UNKNOWN
        outside = np.where(short, _FURTHER * outside, outside)
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        short = lack(coefficient + middle[:, None] * ray) < reach
        inside, outside = np.where(short, middle, inside), np.where(short, outside, middle)
    edge = coefficient + outside[:, None] * ray
    expected = (expit(edge @ design.T) * curves.weight) @ design
    gain = 2 * (((edge - calibrated) * expected).sum(axis=1) - size(edge) + size(calibrated[None])) / sample.n_samples
    low = 0.0 if lack(calibrated[None])[0] <= reach else max(float(gain.min()), 0.0)
    return ConfidenceInterval(low, float(gain.max()))
