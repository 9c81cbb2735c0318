r"""What may be named after a rejection: what is wrong with predictions, each error significant by itself.

The hypotheses about an event are "right on average", "the slope is 1" and "every region is right". The default test,
the gate, tests all three at once. An error is named at the level :math:`\alpha` if the gate rejects at
:math:`\alpha` and its own test at :math:`\alpha / 2`. If all three hypotheses hold, the gate errs with a probability of
at most :math:`\alpha`; if two of them do, one of both is rejected with at most :math:`2 \cdot \alpha / 2`; if one does,
with :math:`\alpha / 2`. So any wrong name is given with a probability of at most :math:`\alpha`, and what is named lies
outside of its interval at :math:`1 - \alpha / 2`. Those of average and slope hold together at :math:`1 - \alpha`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from caltest.estimation.event._calibration_in_the_large import InTheLarge
from caltest.estimation.event._calibration_slope import Slope
from caltest.estimation.event._event_cells import EventCells
from caltest.estimation.event._regions import RegionCells, Regions, bend_pvalue
from caltest.hypothesis_tests._class_totals import ClassTotals
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._sample import Sample
from caltest.resampling.draws._signs import MANY_GROUPS
from caltest.results import ConfidenceInterval
from caltest.results._decision import rejects

_MOST = 0.75  # of the observations: a region of more is not a part of them


@dataclass(frozen=True, kw_only=True)
class NamedError:
    """One error of the predictions, with the numbers that show it.

    Attributes
    ----------
    kind : str
        Of an event "too low" or "too high" (the average), "too extreme" or "not extreme enough" (the slope), "wrong in
        parts" (a region, where a logistic recalibration would leave something) or "wrong in one part" (a region); of
        several classes "over-confident", "under-confident" or "totals" (numbers of observations of classes).
    predicted, observed : float
        Average prediction and frequency: of the event, in the region, of the confidence, of the class with the largest
        difference.
    estimate, interval : float and ConfidenceInterval
        Observed divided by expected events of the average and the confidence, the slope, or the frequency of a region
        or a class, with its confidence interval.
    pvalue : float
        Adjusted for all errors that could have been named.
    n : int
        Number of observations that it is about.
    low, high : float
        Limits of the region.
    classes : tuple of int
        Classes whose totals are wrong, that with the largest difference first.
    alone : bool
        Whether all predictions are equal, so that nothing else of the event can be wrong.
    """

    kind: str
    predicted: float
    observed: float
    estimate: float
    interval: ConfidenceInterval
    pvalue: float
    n: int
    low: float = 0.0
    high: float = 1.0
    classes: tuple[int, ...] = ()
    alone: bool = False


def adjust(gate: float, pvalue: Floats | float) -> Floats:
    """Return p-values adjusted for what else could be named: the larger one of the gate's and twice their own.

    Examples
    --------
    >>> adjust(0.001, [0.01, 0.6]).tolist(), adjust(0.2, [0.01]).tolist()
    ([0.02, 1.0], [0.2])
    """
    return np.minimum(np.maximum(2 * np.asarray(pvalue, dtype=np.float64), gate), 1.0)


def level_of_each(alpha: float) -> float:
    """Return the level of the interval that excludes the value of calibrated predictions if an error is named."""
    return 1 - alpha / 2


def findings_of_event(
    cells: EventCells,
    large: InTheLarge,
    slope: Slope,
    *,
    gate_pvalue: float,
    alpha: float,
    rng: np.random.Generator,
    sample: Sample | None = None,
) -> tuple[NamedError, ...]:
    """Return what is wrong with the probabilities of an event, what the first sentence is about first.

    A region comes first if a logistic recalibration would not repair everything, unless the average is wrong and the
    region holds three quarters of the observations; otherwise the average is first, then the slope, and a region is
    last. Of several regions the one with the largest difference is named, and after a bend the one with the most
    evidence. With groups or weights regions need the sample, and ten groups; with a lead none
    is named. If all predictions are equal, nothing but
    the average can be wrong, so that its p-value is not adjusted.

    Parameters
    ----------
    cells : EventCells
        Predictions and labels.
    large, slope : InTheLarge, Slope
        Their numbers, with intervals at the level ``level_of_each(alpha)``; 1 - alpha if all predictions are equal.
    gate_pvalue : float
        P-value of the default test.
    alpha : float
        Level at which anything wrong is named.
    rng : numpy.random.Generator
        Source of randomness of the regions.
    sample : Sample or None
        What the cells were made of.

    Returns
    -------
    tuple of NamedError
        Empty if the gate does not reject, or nothing can be named.
    """
    if not rejects(gate_pvalue, alpha):
        return ()
    if not cells.varies and not math.isnan(large.ratio_interval.low):
        pvalue, kind = max(gate_pvalue, large.pvalue), "too low" if large.ratio > 1 else "too high"
        one = _of_all(cells, kind, large.ratio, large.ratio_interval, pvalue)
        return (one,) if rejects(pvalue, alpha) else ()
    plain = cells.clusters is None and cells.squares is None
    regions = None
    timed = sample is not None and sample.timing is not None
    if plain or (
        sample is not None and not timed and (cells.clusters is None or cells.clusters.n_groups >= MANY_GROUPS)
    ):
        regions = Regions.of(RegionCells.of(cells), rng, sample=None if plain else sample)
    found = []
    sides = (
        (large.pvalue, large.ratio, large.ratio_interval, "too low", "too high"),
        (slope.pvalue, slope.slope, slope.interval, "not extreme enough", "too extreme"),
    )
    for single, estimate, interval, above, below in sides:
        if not math.isnan(interval.low) and rejects(pvalue := float(adjust(gate_pvalue, single)), alpha):
            found.append(_of_all(cells, above if estimate > 1 else below, estimate, interval, pvalue))
    if regions is not None and len(regions.pvalue):
        pvalues = adjust(gate_pvalue, regions.pvalue)
        wrong = rejects(pvalues, alpha)
        if wrong.any():
            clearest, largest = (
                int(np.argmax(np.where(wrong, np.abs(evidence), -1.0)))
                for evidence in (regions.score, regions.observed - regions.predicted)
            )
            # A region of most observations says no more than the average, if that is wrong.
            most = regions.n[clearest] > _MOST * cells.total
            tells = not most or not found or found[0].kind not in {"too low", "too high"}
            bent = tells and bool(rejects(bend_pvalue(regions.cells, rng), alpha))
            worst = clearest if bent else largest
            found.insert(0 if bent else len(found), _of_region(regions, worst, float(pvalues[worst]), alpha, bent=bent))
    return tuple(found)


def _of_all(cells: EventCells, kind: str, estimate: float, interval: ConfidenceInterval, pvalue: float) -> NamedError:
    return NamedError(
        kind=kind,
        predicted=(cells.predicted + cells.certain) / cells.total,
        observed=(cells.observed + cells.certain) / cells.total,
        estimate=estimate,
        interval=interval,
        pvalue=pvalue,
        n=cells.n_samples,
        alone=not cells.varies,
    )


def _of_region(regions: Regions, number: int, pvalue: float, alpha: float, *, bent: bool) -> NamedError:
    observed = float(regions.observed[number])
    return NamedError(
        kind="wrong in parts" if bent else "wrong in one part",
        predicted=float(regions.predicted[number]),
        observed=observed,
        estimate=observed,
        interval=regions.interval(number, level_of_each(alpha)),
        pvalue=pvalue,
        n=round(float(regions.n[number])),
        low=float(regions.low[number]),
        high=float(regions.high[number]),
    )


def findings_of_classes(
    cells: EventCells, large: InTheLarge, totals: ClassTotals | None, *, gate_pvalue: float, alpha: float
) -> tuple[NamedError, ...]:
    """Return what is wrong with predictions of several classes: the confidence, then the totals of classes.

    Each is tested at half of the level.

    Parameters
    ----------
    cells : EventCells
        The confidence and whether predictions are right.
    large : InTheLarge
        Its numbers, with intervals at the level ``level_of_each(alpha)``.
    totals : ClassTotals or None
        The numbers of observations of the classes; None if observations have groups or weights.
    gate_pvalue : float
        P-value of the default test.
    alpha : float
        Level at which anything wrong is named.

    Returns
    -------
    tuple of NamedError
        Empty if the gate does not reject, or nothing can be named.
    """
    if not rejects(gate_pvalue, alpha):
        return ()
    found = []
    pvalue = float(adjust(gate_pvalue, 1.0 if math.isnan(large.ratio_interval.low) else large.pvalue))
    if rejects(pvalue, alpha):
        kind = "under-confident" if large.ratio > 1 else "over-confident"
        found.append(_of_all(cells, kind, large.ratio, large.ratio_interval, pvalue))
    if totals is not None:
        pvalues = adjust(gate_pvalue, totals.pvalue)
        wrong = np.flatnonzero(rejects(pvalues, alpha))
        if wrong.size:
            found.append(_of_totals(totals, wrong, pvalues, alpha))
    return tuple(found)


def _of_totals(totals: ClassTotals, wrong: Integers, pvalues: Floats, alpha: float) -> NamedError:
    size = np.abs(totals.observed - totals.predicted)[wrong]
    classes = wrong[np.argsort(-size, kind="stable")]
    worst = int(classes[0])
    return NamedError(
        kind="totals",
        predicted=float(totals.predicted[worst]),
        observed=float(totals.observed[worst]),
        estimate=float(totals.observed[worst]),
        interval=ConfidenceInterval(*totals.interval(worst, level_of_each(alpha))),
        pvalue=float(pvalues[worst]),
        n=totals.n_samples,
        classes=tuple(map(int, classes)),
    )
