"""The c-statistic, and what each observation adds to it."""

from __future__ import annotations

import math

import numpy as np

from caltest.estimation.scores._mean_interval import UNKNOWN, logit_interval
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._sample import Sample
from caltest.results import ConfidenceInterval

_FEWEST_UNITS = 2  # observations, or groups, with a label, that show how much its placements vary


def c_statistic(sample: Sample, missed: float) -> tuple[float, ConfidenceInterval]:
    r"""Return the probability that an event has a larger prediction than another observation, with its interval.

    .. math:: c = \frac1{n_1 n_0} \sum_{y_i = 1} \sum_{y_j = 0} \bigl(1\{p_i > p_j\} + \tfrac12 1\{p_i = p_j\}\bigr)

    The interval has the variance of DeLong, DeLong and Clarke-Pearson (1988) for the logit of c (Pepe 2003); with
    groups their placements are summed within each group (Obuchowski 1997). The quantile is that of Student's
    distribution for the number of the rarer label, or of the groups with it, minus 1: these show how much c varies. If
    the predictions separate the labels, the number m of disjoint pairs of an event and another observation, the smaller
    of their numbers, bounds c: :math:`c^m` is at most the probability of that. A single event, or a single other
    observation, does not show how much c varies: it has no interval.
    """
    value, influence = placements(sample)
    if math.isnan(value):
        return value, UNKNOWN
    if value in (0.0, 1.0):
        event = sample.outcome > 0
        end = missed ** (1 / min(np.count_nonzero(event), np.count_nonzero(~event)))
        return value, ConfidenceInterval(end, 1.0) if value else ConfidenceInterval(0.0, 1 - end)
    return value, logit_interval(value, influence, sample, missed, rarer(sample))


def placements(sample: Sample) -> tuple[float, Floats]:
    """Return the c-statistic, and what each observation adds to it, ``(n_samples,)``; NaN if all labels are equal.

    What observations add is unknown, NaN, if one of the labels is that of a single observation or of a single group.
    """
    event, weight = sample.outcome > 0, sample.weight_or_ones
    of_events, of_others = weight * event, weight * ~event
    total, rest = float(of_events.sum()), float(of_others.sum())
    if not total or not rest:
        return math.nan, np.zeros(sample.n_samples)
    place = _places(sample.event)
    others_below, events_below = _below(place, of_others), _below(place, of_events)
    placement = np.where(event, others_below / rest, 1 - events_below / total)
    value = float(np.average(placement, weights=of_events))
    if rarer(sample) < _FEWEST_UNITS:
        return value, np.full(sample.n_samples, math.nan)
    influence = (placement - value) * np.where(event, 1 / total, 1 / rest) * sample.n_samples
    if sample.group is None:  # the variances of the placements of events and of others have a mean each
        n, number = sample.n_samples, np.where(event, np.count_nonzero(event), np.count_nonzero(~event))
        influence *= np.sqrt((n - 1) / n * number / np.maximum(number - 1, 1))
    return value, influence


def concordance(prob: Floats, of_events: Floats, of_others: Floats) -> float:
    """Return the c-statistic of predictions with weights of events and of other observations, ``(n_samples,)``."""
    return float(np.average(_below(_places(prob), of_others) / of_others.sum(), weights=of_events))


def rarer(sample: Sample) -> int:
    """Return the number of observations with the rarer label, or of the groups that hold them."""
    happened, group = sample.outcome > 0, sample.group
    if group is None:
        return int(min(np.count_nonzero(happened), np.count_nonzero(~happened)))
    return min(len(np.unique(group[happened])), len(np.unique(group[~happened])))


def _places(prob: Floats) -> Integers:
    """Return the index of each prediction among the different ones."""
    return np.unique(prob, return_inverse=True)[1]


def _below(place: Integers, weight: Floats) -> Floats:
    """Return the weight of smaller values, and half of that of equal ones, ``(n_samples,)``."""
    of_value = np.bincount(place, weights=weight)
    return np.asarray((np.cumsum(of_value) - of_value / 2)[place])
