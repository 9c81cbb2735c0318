"""Observed over expected events, with an interval and a p-value, from cells."""

from __future__ import annotations

import math
from dataclasses import dataclass

from caltest.estimation.event._clusters import FEWEST_GROUPS
from caltest.estimation.event._event_cells import EventCells
from caltest.estimation.event._event_count import EventCount
from caltest.resampling.draws._timed_draws import FEWEST_WINDOWS
from caltest.results import ConfidenceInterval
from caltest.results._decision import level_of
from caltest.results._description import counted

_NAN = float("nan")
UNKNOWN = ConfidenceInterval(_NAN, _NAN)
"""The interval where there is none."""
NOTHING = "There is no interval and nothing is tested"
_SLOPES = 0.2, 5.0  # between which the fitted slope is used, as that of few labels is not known well
_SAME = 1e-6  # slopes that differ by less from 1


def nothing_known(cells: EventCells) -> str:
    """Return why there is no interval with so few groups or so little time; empty if there are enough."""
    if cells.n_windows < FEWEST_WINDOWS:
        return f"{NOTHING}: the time is worth only {cells.n_windows:.2g} leads, and it takes {FEWEST_WINDOWS} or more."
    n = FEWEST_GROUPS if cells.clusters is None else cells.clusters.n_groups
    why = f"{NOTHING}: {counted(n, 'independent group')} cannot show how groups differ; at least {FEWEST_GROUPS} can."
    return why if n < FEWEST_GROUPS else ""


@dataclass(frozen=True, eq=False)
class InTheLarge:
    """Calibration in the large.

    Attributes
    ----------
    ratio : float
        Observed over expected number of events; NaN if no event was expected.
    ratio_interval, intercept_interval : ConfidenceInterval
        The interval of the ratio, and the same in shifts of the logits.
    intercept : float
        The shift of all logits by which as many events are expected as happened.
    pvalue : float
        Two-sided p-value of "the ratio is 1"; 1 where nothing can be tested.
    reason : str
        Why there is no interval; may be empty.
    """

    ratio: float
    ratio_interval: ConfidenceInterval
    intercept: float
    intercept_interval: ConfidenceInterval
    pvalue: float
    reason: str = ""

    @classmethod
    def of(cls, cells: EventCells, confidence_level: float) -> InTheLarge:
        """Return the numbers of cells."""
        expected = cells.predicted + cells.certain
        ratio = (cells.observed + cells.certain) / expected if expected > 0 else _NAN
        if not cells.size:
            return cls(ratio, UNKNOWN, _NAN, UNKNOWN, 1.0, f"{NOTHING}: all predictions are 0 or 1.")
        missed = level_of(confidence_level) / 2
        count = EventCount(cells)
        intercept = count.estimate
        error, reason = _error_of_groups(cells, intercept)
        if reason:
            return cls(ratio, UNKNOWN, intercept, UNKNOWN, 1.0, reason)
        ends, pvalue = count.interval(missed), count.pvalue(0.0)
        low, high = _expected_events(cells, ends[0], 1.0), _expected_events(cells, ends[1], 1.0)
        slope = min(max(cells.raw_fit[1], _SLOPES[0]), _SLOPES[1])  # NaN stays NaN
        if abs(slope - 1) > _SAME:
            other = EventCount(cells, slope)
            hypothesis = cells.intercept(slope, total=cells.predicted)
            pvalue = max(pvalue, other.pvalue(hypothesis))
            more = other.interval(missed)
            low = min(low, _expected_events(cells, more[0], slope))
            high = max(high, _expected_events(cells, more[1], slope))
        if cells.clusters is not None:
            reach, of_groups = cells.clusters.student(intercept, error, missed)
            pvalue = max(pvalue, of_groups)
            low = min(low, _expected_events(cells, intercept - reach, 1.0))
            high = max(high, _expected_events(cells, intercept + reach, 1.0))
        shifts = (cells.intercept(total=total) for total in (low, high))
        ratios = ((total + cells.certain) / expected for total in (low, high))
        return cls(ratio, ConfidenceInterval(*ratios), intercept, ConfidenceInterval(*shifts), pvalue)


def _expected_events(cells: EventCells, intercept: float, slope: float) -> float:
    """Return the number of events that are expected in the cells at an intercept, which may be infinite."""
    if math.isinf(intercept):
        return 0.0 if intercept < 0 else cells.size
    return cells.at(intercept, slope).mean


def _error_of_groups(cells: EventCells, intercept: float) -> tuple[float, str]:
    """Return the standard error of the shift between groups, if there are any, and why nothing is known."""
    few = nothing_known(cells)
    if few or cells.clusters is None:
        return math.inf, few
    if math.isinf(intercept):
        none = f"there are no {'events' if intercept < 0 else 'non-events'}"
        return math.inf, f"{NOTHING}: {none}, and the groups do not show whether others would have had some."
    error = cells.clusters.intercept_error(intercept)
    return error, "" if math.isfinite(error) else f"{NOTHING}: one group alone decides how many events there are."
