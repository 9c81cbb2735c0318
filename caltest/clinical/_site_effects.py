"""What sites add to a mean over sites: estimates without their first-order bias, and variances that all sites give.

The variance of a site that is estimated from its own labels follows its estimate: a site that happens to have few
events has a small O/E and a large variance, so that the mean over sites is too large. So variances here are those of
parameters that all sites share, and the sites differ by their numbers and predictions alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from caltest.clinical._discrimination import placements
from caltest.clinical._random_effects import deviations
from caltest.estimation.event._event_cells import FEWEST_EVENTS, EventCells
from caltest.estimation.scores._mean_interval import Spread
from caltest.predictions._arrays import Floats
from caltest.predictions._sample import Sample
from caltest.predictions.inputs._parts import effective_number

_ROUNDS = 2  # in which the common slope is corrected by the bias that it has


class Effect(NamedTuple):
    """The estimate of a site on a scale, its variance, and its deviation from the common value.

    The deviation is in standard deviations, and of ratios and slopes that of the score at the common value, which is
    close to normal where the estimate is not yet. ``of_groups`` is the variance if only groups are independent.
    """

    value: float
    variance: float
    deviation: float
    of_groups: float


def known_effects(effects: Sequence[Effect]) -> Floats:
    """Return estimates, variances and deviations ``(n_sites, 3)`` of the sites that have them.

    With groups all variances are multiplied by one number, the sum of those of the groups over that of independent
    observations.
    """
    known = np.array([one for one in effects if math.isfinite(one.value) and 0 < one.variance < math.inf])
    if not len(known):
        return np.empty((0, 3))
    value, variance, deviation, of_groups = known.T
    grouped = np.isfinite(of_groups)
    ratio = of_groups[grouped].sum() / variance[grouped].sum() if grouped.any() else 1.0
    return np.column_stack([value, variance * ratio, deviation / math.sqrt(ratio)])


def log_ratios(samples: Sequence[Sample]) -> list[Effect]:
    r"""Return the logarithms of observed over expected events.

    With the probabilities :math:`\pi_i` of the predictions whose logits are moved until all sites together have as many
    events as they had, a site has O events with the mean :math:`\lambda = \sum \pi_i` and the variance :math:`v = \sum
    \pi_i (1 - \pi_i)`. The estimate is :math:`\log((O + v / (2 \lambda)) / E)`, whose bias is of the order
    :math:`\lambda^{-2}`, and which a site without events has too; its variance is :math:`v / \lambda^2`.
    """
    cells = [sample.once(EventCells.of) for sample in samples]
    logit, count, events = (np.concatenate([getattr(one, name) for one in cells]) for name in _COUNTS)
    shift = EventCells.of_counts(1 / (1 + np.exp(-logit)), count, events).intercept() if count.size else math.nan
    found = []
    for sample, one in zip(samples, cells, strict=True):
        prob, expected = one.prob(shift, 1.0), one.predicted + one.certain
        mean, variance = float(one.count @ prob) + one.certain, float(_squares(one) @ (prob * (1 - prob)))
        if not math.isfinite(shift) or expected <= 0 or mean <= 0:
            found.append(Effect(*[math.nan] * 4))
            continue
        observed, of_groups = one.observed + one.certain, math.nan
        if sample.group is not None:
            deviation = sample.outcome - observed / expected * sample.event
            spread = Spread.of(deviation / mean * one.total, sample, 0.5)
            of_groups = math.nan if spread is None else spread.error**2
        value = math.log((observed + variance / (2 * mean)) / expected)
        found.append(Effect(value, variance / mean**2, (observed - mean) / math.sqrt(variance), of_groups))
    return found


def slopes(samples: Sequence[Sample]) -> list[Effect]:
    """Return the calibration slopes of sites with enough events, minus the bias of the common slope in each.

    The bias is that of the order of one over the number of events of an estimate of greatest likelihood (Cordeiro and
    McCullagh 1991), with the intercept of the site.
    """
    every = [sample.once(EventCells.of) for sample in samples]
    cells = [one for one in every if min(one.worth) >= FEWEST_EVENTS and math.isfinite(one.raw_fit[1])]
    if not cells:
        return []
    own = np.array([one.raw_fit for one in cells])
    bias, variance, score = np.array([_slope_at(one, *fit) for one, fit in zip(cells, own, strict=True)]).T
    for _ in range(_ROUNDS):
        common = float(np.average(own[:, 1] - bias, weights=1 / variance))
        bias, variance, score = np.array([_slope_at(one, one.intercept(common), common) for one in cells]).T
    score = (score - np.average(score, weights=1 / variance)) / np.sqrt(variance)
    of_groups = [math.nan if one.clusters is None else one.clusters.slope_error(*one.raw_fit) ** 2 for one in cells]
    return list(map(Effect, own[:, 1] - bias, variance, score, of_groups))


def _slope_at(cells: EventCells, intercept: float, slope: float) -> tuple[float, float, float]:
    """Return bias and variance of the slope at an intercept and a slope, and the step of the score from there."""
    prob = cells.prob(intercept, slope)
    variance = prob * (1 - prob)
    mass = cells.count * variance
    distance = cells.logit - mass @ cells.logit / mass.sum()
    information = float(mass @ distance**2)
    inflation = float((_squares(cells) * variance) @ distance**2) / information
    leverage = variance * (1 / mass.sum() + distance**2 / information)
    bias = float((cells.count * leverage * (prob - 0.5)) @ distance) / information
    step = float((cells.events - cells.count * prob) @ distance) / information
    return inflation * bias, inflation / information, step


def c_statistics(samples: Sequence[Sample]) -> list[Effect]:
    r"""Return the logits of c-statistics between 0 and 1, minus their bias.

    The variance of DeLong et al. is that of the placements of events over their number, plus the same of the others.
    Both variances of placements are means over sites. A variance v of c is one of :math:`v / (c (1 - c))^2` of its
    logit, and a bias of :math:`v (2 c - 1) / (2 (c (1 - c))^2)`, with the mean c.
    """
    rows = []
    for sample in samples:
        c, influence = placements(sample)
        if not 0 < c < 1 or not np.isfinite(influence).all():
            continue
        event, weight = sample.outcome > 0, sample.weight_or_ones
        parts = np.square(influence * weight / sample.n_samples)
        ratio = sample.n_samples / (sample.n_samples - 1)
        numbers = [effective_number(weight[some]) for some in (event, ~event)]
        spread = None if sample.group is None else Spread.of(influence, sample, 0.5)
        of_groups = math.nan if spread is None else spread.error**2
        rows.append((c, *numbers, *(ratio * parts[some].sum() for some in (event, ~event)), of_groups))
    if not rows:
        return []
    c, n_events, n_others, of_events, of_others, of_groups = np.array(rows).T
    variance = sum(
        float((own * number**2).sum() / number.sum()) / number
        for own, number in ((of_events, n_events), (of_others, n_others))
    )
    if not np.any(variance):  # all predictions of a site are equal
        return []
    logit = np.log(c / (1 - c))
    mean = 1 / (1 + math.exp(-float(np.average(logit, weights=1 / np.asarray(variance)))))
    unit = (mean * (1 - mean)) ** 2
    value, variance = logit - variance * (2 * mean - 1) / (2 * unit), variance / unit
    return list(map(Effect, value, variance, deviations(value, variance), of_groups / unit))


_COUNTS = "logit", "count", "events"


def _squares(cells: EventCells) -> Floats:
    return cells.count if cells.squares is None else cells.squares
