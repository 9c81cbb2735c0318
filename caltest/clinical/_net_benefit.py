"""Net benefit of treating patients from a predicted risk on."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from caltest.estimation.event._event_estimate import show_interval
from caltest.estimation.scores._mean_interval import share_interval
from caltest.predictions._arrays import Booleans
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
        Its interval: Wilson's for both shares, together as in Zou and Donner (2008, Statistics in Medicine 27).
    treat_all : float
        Net benefit of treating everybody; that of treating nobody is 0.
    gain, gain_interval : float, ConfidenceInterval
        Net benefit minus the larger one of treating everybody and nobody, with its interval.
    confidence_level : float
        Probability with which an interval contains its target.

    See Also
    --------
    clinical_calibration : The validation that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> result = caltest.clinical.clinical_calibration(y_true, y_prob[:, 1], thresholds=[0.3], n_resamples=99, rng=0)
    >>> (benefit,) = result.net_benefits
    >>> benefit.threshold, benefit.n_treated, round(benefit.estimate, 3), round(benefit.treat_all, 3)
    (0.3, 208, 0.331, 0.286)
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
        treated, event, cost = sample.event >= threshold, sample.outcome > 0, threshold / (1 - threshold)
        own = _difference(treated & event, treated & ~event, cost, sample, missed)
        everybody = float(np.average(np.where(event, 1.0, -cost), weights=sample.weight))
        more = own
        if everybody > 0:  # those who are not treated: fewer false positives, at the price of missed events
            less, (low, high) = _difference(~treated & event, ~treated & ~event, cost, sample, missed)
            more = 0.0 - less, ConfidenceInterval(-high, -low)
        return cls(
            threshold=threshold,
            n_treated=int(np.count_nonzero(treated)),
            estimate=own[0],
            confidence_interval=own[1],
            treat_all=everybody,
            gain=more[0],
            gain_interval=more[1],
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


def _difference(
    right: Booleans, wrong: Booleans, cost: float, sample: Sample, missed: float
) -> tuple[float, ConfidenceInterval]:
    r"""Return a share a minus ``cost`` times a share b of patients, of which none is among both, with its interval.

    With the limits of Wilson's intervals of both, and the correlation :math:`r = -\sqrt{ab / ((1 - a) (1 - b))}` of
    multinomial shares, the lower limit is (Zou and Donner 2008)

    .. math:: a - c b - \sqrt{(a - l_a)^2 + c^2 (u_b - b)^2 - 2 r c (a - l_a) (u_b - b)}.
    """
    (a, (a_low, a_high)), (b, (b_low, b_high)) = (
        share_interval(each.astype(np.float64), sample, missed) for each in (right, wrong)
    )
    odds = a / (1 - a) * b / (1 - b) if a < 1 and b < 1 else 0.0
    value, r = a - cost * b, -math.sqrt(odds)

    def reach(of_a: float, of_b: float) -> float:
        return math.sqrt(of_a**2 + of_b**2 - 2 * r * of_a * of_b)

    low, high = reach(a - a_low, cost * (b_high - b)), reach(a_high - a, cost * (b - b_low))
    return value, ConfidenceInterval(value - low, value + high)
