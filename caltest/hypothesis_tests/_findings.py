r"""What may be named after a rejection: what is wrong with predictions, each error significant by itself.

Closed testing (Marcus, Peritz and Gabriel 1976). The hypotheses about an event are "right on average", "the slope is 1"
and "every region is right". The default test, the gate, tests all three at once. Two of them are tested by Bonferroni's
rule, and one by its own p-value, so that an error is named at the level :math:`\alpha` only if all of these tests
reject which contain its hypothesis. Then any wrong name is given with a probability of at most :math:`\alpha`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from caltest.estimation.event._event_cells import EventCells
from caltest.estimation.event._in_the_large import InTheLarge
from caltest.estimation.event._regions import RegionCells, Regions, bend_pvalue
from caltest.estimation.event._slope import Slope
from caltest.hypothesis_tests._class_totals import ClassTotals
from caltest.predictions._arrays import Floats, Integers
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


def closed_pvalues(gate: float, pvalue: Floats | float, others: Sequence[float]) -> Floats:
    r"""Return the adjusted p-value of a hypothesis that stands among others, by closed testing.

    .. math:: \max\bigl(g, \; p, \; \min(2 p, \, 2 \max_j q_j)\bigr)

    with the p-values g of all hypotheses together, p of this one, and q of the others.

    Parameters
    ----------
    gate : float
        P-value of the intersection of all hypotheses.
    pvalue : float or array
        P-value of the hypothesis, or those of its parts, such as regions, that are adjusted for their number.
    others : sequence of float
        P-values of the other hypotheses, two at most.

    Returns
    -------
    array
        Adjusted p-values.

    Examples
    --------
    >>> p = [0.01, 0.02, 0.04]
    >>> [float(closed_pvalues(0.001, p[i], p[:i] + p[i + 1 :])) for i in range(3)]
    [0.02, 0.04, 0.04]
    """
    single = np.asarray(pvalue, dtype=np.float64)
    pair = np.minimum(2 * single, 2 * max(others, default=0.0))
    return np.minimum(np.maximum(np.maximum(single, pair), gate), 1.0)


def findings_of_event(
    cells: EventCells,
    large: InTheLarge,
    slope: Slope,
    *,
    gate_pvalue: float,
    alpha: float,
    rng: np.random.Generator,
) -> tuple[NamedError, ...]:
    """Return what is wrong with the probabilities of an event, what the first sentence is about first.

    A region comes first if a logistic recalibration would not repair everything, unless the average is wrong and the
    region holds three quarters of the observations; otherwise the average is first, then the slope, and a region is
    last. Of several regions the one with the largest difference is named, and after a bend the one with the most
    evidence. With groups or weights no regions are tested.

    Parameters
    ----------
    cells : EventCells
        Predictions and labels.
    large, slope : InTheLarge, Slope
        Their numbers, with intervals at the level ``1 - alpha / 2``.
    gate_pvalue : float
        P-value of the default test.
    alpha : float
        Level at which anything wrong is named.
    rng : numpy.random.Generator
        Source of randomness of the regions.

    Returns
    -------
    tuple of NamedError
        Empty if the gate does not reject, or nothing can be named.
    """
    if not rejects(gate_pvalue, alpha):
        return ()
    regions = Regions.of(RegionCells.of(cells), rng) if cells.clusters is None and cells.squares is None else None
    tested: dict[str, float] = {}
    if not math.isnan(large.ratio_interval.low):
        tested["average"] = large.pvalue
    if not math.isnan(slope.interval.low):
        tested["slope"] = slope.pvalue
    if regions is not None and len(regions.pvalue):
        tested["regions"] = float(regions.pvalue.min())

    def adjusted(what: str, pvalue: Floats | None = None) -> Floats:
        others = [p for other, p in tested.items() if other != what]
        return closed_pvalues(gate_pvalue, tested.get(what, 1.0) if pvalue is None else pvalue, others)

    found = []
    sides = (
        ("average", large.ratio, large.ratio_interval, "too low", "too high"),
        ("slope", slope.slope, slope.interval, "not extreme enough", "too extreme"),
    )
    for what, estimate, interval, above, below in sides:
        if what in tested and rejects(pvalue := float(adjusted(what)), alpha):
            found.append(_of_all(cells, above if estimate > 1 else below, estimate, interval, pvalue))
    if regions is not None and "regions" in tested:
        pvalues = adjusted("regions", regions.pvalue)
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
    )


def _of_region(regions: Regions, number: int, pvalue: float, alpha: float, *, bent: bool) -> NamedError:
    alone = not rejects(2 * regions.pvalue[number], alpha)  # named because both other hypotheses are rejected
    observed = float(regions.observed[number])
    return NamedError(
        kind="wrong in parts" if bent else "wrong in one part",
        predicted=float(regions.predicted[number]),
        observed=observed,
        estimate=observed,
        interval=regions.interval(number, 1 - (alpha if alone else alpha / 2)),
        pvalue=pvalue,
        n=round(float(regions.n[number])),
        low=float(regions.low[number]),
        high=float(regions.high[number]),
    )


def findings_of_classes(
    cells: EventCells, large: InTheLarge, totals: ClassTotals | None, *, gate_pvalue: float, alpha: float
) -> tuple[NamedError, ...]:
    """Return what is wrong with predictions of several classes: the confidence, then the totals of classes.

    Each is tested at half of the level, and at the whole level once the other one is rejected; of the totals all.

    Parameters
    ----------
    cells : EventCells
        The confidence and whether predictions are right.
    large : InTheLarge
        Its numbers, with intervals at the level ``1 - alpha / 2``.
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
    single = 1.0 if math.isnan(large.ratio_interval.low) else large.pvalue
    of_classes = np.ones(1) if totals is None else totals.pvalue
    pvalue = max(gate_pvalue, min(2 * single, max(single, 2 * float(of_classes.max()))))
    if rejects(pvalue, alpha):
        kind = "under-confident" if large.ratio > 1 else "over-confident"
        found.append(_of_all(cells, kind, large.ratio, large.ratio_interval, pvalue))
    if totals is not None:
        pvalues = np.maximum(gate_pvalue, np.minimum(2 * of_classes, np.maximum(of_classes, 2 * single)))
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
        interval=ConfidenceInterval(*totals.interval(worst, 1 - alpha / 2)),
        pvalue=float(pvalues[worst]),
        n=totals.n_samples,
        classes=tuple(map(int, classes)),
    )
