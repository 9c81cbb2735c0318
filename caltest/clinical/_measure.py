"""One number of a validation: what it is, its estimate and interval, and what a calibrated model has."""

from __future__ import annotations

import math
from dataclasses import dataclass

from caltest.estimation.event._event_estimate import show_interval
from caltest.results import ConfidenceInterval
from caltest.results._decision import align_pvalue


@dataclass(frozen=True)
class Measure:
    """One number of a validation.

    Parameters
    ----------
    name : str
        Its name in code, such as "calibration_slope".
    words : str
        What it is called in papers.
    about : {"calibration", "overall", "discrimination", "utility"}
        What it measures.
    estimate : float
        Its value; NaN where there is none.
    confidence_interval : ConfidenceInterval
        The interval; NaN where there is none.
    if_calibrated : float
        The value of calibrated predictions; of an error its noise floor, the average value if they are calibrated. NaN
        if calibration does not determine it.
    pvalue : float
        P-value of "the predictions are calibrated", from this number; NaN where there is none.

    Examples
    --------
    >>> from caltest.results import ConfidenceInterval
    >>> interval = ConfidenceInterval(0.6, 0.9)
    >>> slope = Measure("calibration_slope", "calibration slope", "calibration", 0.75, interval, 1.0)
    >>> slope.estimate, slope.confidence_interval.high
    (0.75, 0.9)
    """

    name: str
    words: str
    about: str
    estimate: float
    confidence_interval: ConfidenceInterval
    if_calibrated: float = math.nan
    pvalue: float = math.nan

    @property
    def row(self) -> tuple[str, ...]:
        """The line of a table: words, estimate, interval, value if calibrated, p-value."""
        shown = (f"{value:.4g}" if not math.isnan(value) else "" for value in (self.estimate, self.if_calibrated))
        estimate, calibrated = shown
        interval = show_interval(self.confidence_interval)
        return self.words, estimate, "" if interval == "none" else interval, calibrated, align_pvalue(self.pvalue)
