"""One number about predictions: what it is, its estimate and interval, and what a calibrated model has."""

from __future__ import annotations

import math
from dataclasses import dataclass

from caltest.estimation.event._event_estimate import show_interval
from caltest.results import ConfidenceInterval, Result
from caltest.results._decision import align_pvalue
from caltest.results._description import Description, Table


@dataclass(frozen=True, eq=False, repr=False)
class Measure(Result):
    """One number about predictions.

    Attributes
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
    confidence_level : float
        Probability with which the interval contains its target.

    See Also
    --------
    clinical_calibration : The validation that returns measures.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> result = caltest.clinical.clinical_calibration(y_true, y_prob[:, 1], thresholds=[0.3], n_resamples=99, rng=0)
    >>> slope = result["calibration_slope"]
    >>> slope.words, slope.about, slope.if_calibrated
    ('calibration slope', 'calibration', 1)
    >>> [round(float(end), 2) for end in slope.confidence_interval]
    [0.63, 1.07]
    """

    name: str
    words: str
    about: str
    estimate: float
    confidence_interval: ConfidenceInterval
    if_calibrated: float = math.nan
    pvalue: float = math.nan
    confidence_level: float = 0.95

    @property
    def row(self) -> tuple[str, ...]:
        """The line of a table: words, estimate, interval, value if calibrated, p-value."""
        shown = (f"{value:.4g}" if not math.isnan(value) else "" for value in (self.estimate, self.if_calibrated))
        estimate, calibrated = shown
        interval = show_interval(self.confidence_interval)
        return self.words, estimate, "" if interval == "none" else interval, calibrated, align_pvalue(self.pvalue)

    def _describe(self) -> Description:
        return Description(
            f"{self.words} ({self.about})",
            (),
            [Table(("", "estimate", "interval", "if calibrated", "p-value"), [self.row])],
        )
