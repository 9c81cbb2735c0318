"""Net benefit of treating patients from a predicted risk on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caltest.clinical._overall import Overall
from caltest.estimation.event._event_estimate import show_interval
from caltest.predictions._sample import Sample
from caltest.results import ConfidenceInterval, Result
from caltest.results._decision import level_of
from caltest.results._description import Description, Table


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NetBenefit(Result):
    r"""Net benefit of treating those whose predicted risk is at least a threshold t.

    .. math:: \frac1n \sum_i 1\{p_i \ge t\} \Bigl(y_i - (1 - y_i) \frac t{1 - t}\Bigr)

    Attributes
    ----------
    threshold : float
        The threshold t.
    n_treated : int
        Number of observations with a predicted risk of at least t.
    estimate : float
        Net benefit, in true positives for each observation.
    confidence_interval : ConfidenceInterval
        Its interval; NaN if nobody would be treated.
    treat_all : float
        Net benefit of treating everybody; that of treating nobody is 0.
    gain, gain_interval : float, ConfidenceInterval
        Net benefit minus the larger one of treating everybody and nobody, with its interval.
    confidence_level : float
        Probability with which an interval contains its target.
    """

    threshold: float
    n_treated: int
    estimate: float
    confidence_interval: ConfidenceInterval
    treat_all: float
    gain: float
    gain_interval: ConfidenceInterval
    confidence_level: float

    @classmethod
    def at(cls, sample: Sample, threshold: float, missed: float) -> NetBenefit:
        """Return the net benefit at a threshold."""
        treated = sample.event >= threshold
        worth = np.where(sample.outcome > 0, 1.0, -threshold / (1 - threshold))
        own = Overall.of_mean(worth * treated, sample, missed)
        everybody = float(np.average(worth, weights=sample.weight))
        more = Overall.of_mean(worth * treated - (worth if everybody > 0 else 0.0), sample, missed)
        return cls(
            threshold=threshold,
            n_treated=int(np.count_nonzero(treated)),
            estimate=own.estimate,
            confidence_interval=own.interval,
            treat_all=everybody,
            gain=more.estimate,
            gain_interval=more.interval,
            confidence_level=level_of(2 * missed),
        )

    @property
    def row(self) -> tuple[str, ...]:
        """The line of a table: threshold, treated, net benefit, interval, treat all, gain, its interval."""
        own, more = map(show_interval, (self.confidence_interval, self.gain_interval))
        numbers = (f"{value:.4g}" for value in (self.estimate, self.treat_all, self.gain))
        estimate, everybody, gain = numbers
        return f"{self.threshold:g}", f"{self.n_treated:,}", estimate, own, everybody, gain, more

    def _describe(self) -> Description:
        return Description(f"Net benefit at a risk of {self.threshold:g}", (), [Table(HEAD, [self.row])])


HEAD = "threshold", "treated", "net benefit", "interval", "treat all", "gain", "its interval"
"""What the numbers of a line are."""
