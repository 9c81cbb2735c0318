"""The numbers of an answer: ratios, differences and errors with their intervals, as text."""

from __future__ import annotations

import math
from dataclasses import replace

from caltest.estimation.errors._l2_interval import L2Interval
from caltest.results import ConfidenceInterval
from caltest.results._finding import Number, digits_of, show_ratio, show_ratios
from caltest.results._models_verdict import typical_error as of_error

IF_CALIBRATED = "1 if calibrated"

NO_TOTALS = Number(
    name="class totals", estimate=math.nan, shown="-", meaning="not known: this state holds the confidence alone"
)
NO_SIZE = Number(name="typical error", estimate=math.nan, shown="-", meaning="not computed from the sums of this state")


def reaching_one(interval: ConfidenceInterval) -> ConfidenceInterval:
    """Return an interval that reaches 1; NaN stays."""
    low, high = interval
    return interval if math.isnan(low) else ConfidenceInterval(min(low, 1.0), max(high, 1.0))


def ratio(name: str, value: float, interval: ConfidenceInterval, meaning: str, reason: str = "") -> Number:
    """Return a ratio or a slope with its interval, or why there is none."""
    if math.isnan(value) or (math.isinf(value) and math.isinf(interval.low)):
        return Number(name=name, estimate=value, shown="-", meaning=reason)
    if math.isnan(interval.low):
        return Number(name=name, estimate=value, shown=show_ratio(value), meaning=meaning)
    shown = (
        f"{show_ratio(value, digits_of(interval))}  ({show_ratios(interval)})"
        if math.isfinite(value)
        else show_ratios(interval)
    )
    return Number(name=name, estimate=value, interval=interval, shown=shown, meaning=meaning)


def difference(predicted: float, observed: float, ratio: ConfidenceInterval) -> Number:
    """Return accuracy minus confidence in percentage points, from the interval of their ratio."""
    low, high = (100 * predicted * (end - 1) for end in ratio)
    shown, interval = f"{100 * (observed - predicted):+z.1f} points", None
    if not math.isnan(low):
        shown, interval = f"{shown} ({low:+z.1f} to {high:+z.1f})", ConfidenceInterval(low, high)
    return Number(
        name="accuracy minus confidence",
        estimate=100 * (observed - predicted),
        interval=interval,
        shown=shown,
        meaning="0 if calibrated",
    )


def typical_error(size: L2Interval) -> Number:
    """Return the root of the squared l2 error, in percentage points, with what chance alone shows."""
    number = of_error("typical error", size.root, size.root_interval)
    return replace(number, meaning=f"0 if calibrated; chance alone shows up to {100 * size.chance:.1f}")
