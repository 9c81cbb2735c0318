"""Brier score and likelihood indexes: values of predictions that are not about calibration alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from caltest.clinical._discrimination import rarer
from caltest.clinical._unreliability import unreliability_interval
from caltest.estimation.event._event_cells import EventCells
from caltest.estimation.scores._mean_interval import UNKNOWN, mean_interval
from caltest.predictions._arrays import Booleans, Floats
from caltest.predictions._sample import Sample
from caltest.results import ConfidenceInterval
from caltest.statistics._recalibration_scores import logits

_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Overall:
    """A number with its interval, and its value if the predictions are calibrated (NaN if that is not known)."""

    estimate: float
    interval: ConfidenceInterval = UNKNOWN
    if_calibrated: float = math.nan

    @classmethod
    def of_mean(cls, values: Floats, sample: Sample, missed: float, calibrated: float = math.nan) -> Overall:
        """Return the mean of values ``(n_samples,)`` of observations."""
        mean = float(np.average(values, weights=sample.weight))
        return cls(mean, mean_interval(mean, values - mean, sample, missed), calibrated)


def brier_scores(sample: Sample, missed: float) -> dict[str, Overall]:
    r"""Return the Brier score B, the mean of :math:`(y - p)^2`, and :math:`1 - B / (\bar y (1 - \bar y))`.

    Here and in `likelihood_indexes` what compares predictions with the frequency of the event has Student's quantile
    for the number of the rarer label, or of the groups with it, minus 1: these show how much it varies, as they do of
    the c-statistic.
    """
    outcome, prob, weight = sample.outcome * 1.0, sample.event, sample.weight
    score = Overall.of_mean(
        np.square(outcome - prob), sample, missed, float(np.average(prob * (1 - prob), weights=weight))
    )
    mean = float(np.average(outcome, weights=weight))
    variance = mean * (1 - mean)
    if not variance:
        return {"brier": score, "scaled_brier": Overall(math.nan)}
    scaled = 1 - score.estimate / variance
    each = np.square(outcome - prob) - score.estimate
    influence = -each / variance + score.estimate / variance**2 * (1 - 2 * mean) * (outcome - mean)
    influence[np.abs(influence) < _ROUNDING] = 0.0  # of predictions that all equal the frequency nothing else is left
    interval = mean_interval(scaled, influence, sample, missed, rarer(sample))
    return {"brier": score, "scaled_brier": Overall(scaled, interval)}


def likelihood_indexes(sample: Sample, cells: EventCells, missed: float) -> dict[str, Overall]:
    r"""Return the indexes D, U, Q and R2 of Harrell's ``val.prob``, of predictions other than 0 and 1.

    With the log-likelihoods :math:`\ell_0` of the frequency of the event, :math:`\ell_1` of the predictions and
    :math:`\ell_2` of the logistic recalibration with the best intercept and slope,

    .. math:: D = \frac{2 (\ell_1 - \ell_0) - 1}n, \quad U = \frac{2 (\ell_2 - \ell_1) - 2}n, \quad Q = D - U, \quad
              R^2 = \frac{1 - e^{2 (\ell_0 - \ell_1) / n}}{1 - e^{2 \ell_0 / n}}

    (Nagelkerke 1991). U is an error of calibration, about 0 if there is none; its interval is that of
    `unreliability_interval`.
    """
    unknown = dict.fromkeys(("discrimination_index", "unreliability_index", "quality_index", "r2"), Overall(math.nan))
    logit = logits(sample)
    finite = np.isfinite(logit)
    inner = sample.take(np.flatnonzero(finite))
    intercept, slope = cells.raw_fit
    happened = inner.outcome > 0
    if math.isnan(slope) or happened.all() or not happened.any():
        return unknown
    weight, logit = inner.weight_or_ones, logit[finite]
    number, total = float(weight.sum()), float(weight @ happened)
    of_none = np.where(happened, math.log(total / number), math.log1p(-total / number))
    refitted = np.zeros(inner.n_samples)  # of separated labels, whose recalibration predicts 0 and 1
    if math.isfinite(slope):
        refitted = _log_likelihood(intercept + slope * logit, happened)
    reliable = unreliability_interval(inner, missed) if math.isfinite(slope) else UNKNOWN
    of_model = _log_likelihood(logit, happened)
    gained, missed_gain, possible = 2 * (of_model - of_none), 2 * (refitted - of_model), -2 * of_none
    gain, miss, most = (float(np.average(each, weights=inner.weight)) for each in (gained, missed_gain, possible))
    share, bound = -math.expm1(-gain) / -math.expm1(-most), -math.expm1(-most)
    of_share = math.exp(-gain) * (gained - gain) / bound - share * math.exp(-most) * (possible - most) / bound
    index, of_quality = gain - 1 / number, gained - gain - (missed_gain - miss)
    quality, units = gain - miss + 1 / number, rarer(inner)
    return {
        "discrimination_index": Overall(index, mean_interval(index, gained - gain, inner, missed, units)),
        "unreliability_index": Overall(miss - 2 / number, reliable, if_calibrated=0.0),
        "quality_index": Overall(quality, mean_interval(quality, of_quality, inner, missed, units)),
        "r2": Overall(share, mean_interval(share, of_share, inner, missed, units)),
    }


def _log_likelihood(logit: Floats, happened: Booleans) -> Floats:
    return np.asarray(-np.logaddexp(0.0, np.where(happened, -logit, logit)))
