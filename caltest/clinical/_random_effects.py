"""Random-effects meta-analysis: the mean over sites, how much sites differ, and where a new site would lie."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from caltest.predictions._arrays import Floats
from caltest.resampling.distributions._root import root_between
from caltest.results import ConfidenceInterval, Result
from caltest.results._decision import align_pvalue
from caltest.results._description import Description, Table, percent

FEWEST_SITES = 3
"""With fewer sites it is not known how much sites differ."""
_N_QUANTILES, _STEPS, _PRECISION = 200, 100, 1e-9  # of the variance between sites, and of the search for them
_SCALES = {"log": math.exp, "logit": lambda x: 1 / (1 + math.exp(-x)), "linear": float}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RandomEffects(Result):
    r"""Summary of a measure over sites.

    The estimates :math:`y_j` of k sites have known variances :math:`v_j` about the values of the sites, which are
    normal with mean :math:`\mu` and variance :math:`\tau^2`. The latter is that of restricted maximum likelihood, and
    the variance of the mean that of Hartung and Knapp (2001), as of ``rma(test="knha")`` in R's metafor.

    For a new site :math:`\tau^2` is not taken as known, because it is often estimated as 0 where sites differ. It has
    the confidence distribution of

    .. math:: Q(\tau^2) = \sum_j \frac{(y_j - \hat\mu_\tau)^2}{v_j + \tau^2} \sim \chi^2_{k-1}

    (Viechtbauer 2007). With each of its quantiles a new site has the distribution of :math:`\hat\mu_\tau + T (\tau^2 +
    \mathrm{se}(\hat\mu_\tau)^2)^{1/2}`, T of Student's distribution with k - 1 degrees of freedom, and the ends are
    quantiles of their mean, as of the method of Nagashima, Noma and Furukawa (2019). Ends are transformed back from the
    logarithm or the logit.

    Attributes
    ----------
    name, words : str
        The measure, as of `Measure`.
    estimate : float
        The mean over sites.
    confidence_interval : ConfidenceInterval
        Interval for the mean over sites.
    prediction_interval : ConfidenceInterval
        Interval for a new site.
    between_sites : float
        Standard deviation :math:`\hat\tau` of the values of sites, on the scale.
    scale : {"log", "logit", "linear"}
        Where sites are taken to be normal.
    share_between : float
        I2, the share of the variance of the estimates that is between sites.
    pvalue : float
        P-value of "all sites have one value", of Cochran's Q with scores instead of estimates of O/E and slope; a limit
        for large sites. With 20 events in each of 10 sites of one value it was at most 5 % in 5 % (O/E), 7.5 % (slope)
        and 8.7 % (c-statistic) of 600 data sets.
    n_sites : int
        Number of sites with an estimate.
    confidence_level : float
        Probability with which an interval contains its target.

    See Also
    --------
    calibration_by_site : The validation that returns it.

    Examples
    --------
    >>> import numpy as np
    >>> from caltest.clinical import calibration_by_site
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> result = calibration_by_site(y_true, y_prob[:, 1], site=np.arange(300) % 4, n_resamples=99, rng=0)
    >>> summary = result.summaries[0]
    >>> summary.name, summary.n_sites, round(summary.estimate, 2)
    ('observed_expected', 4, 1.0)
    >>> [round(float(end), 2) for end in summary.prediction_interval]
    [0.62, 1.62]
    """

    name: str
    words: str
    estimate: float
    confidence_interval: ConfidenceInterval
    prediction_interval: ConfidenceInterval
    between_sites: float
    scale: str
    share_between: float
    pvalue: float
    n_sites: int
    confidence_level: float

    head: ClassVar[tuple[str, ...]] = ("over sites", "mean", "interval", "a new site", "tau", "I2", "p (one value)")

    @classmethod
    def of(cls, name: str, words: str, effects: Floats, *, scale: str, missed: float) -> RandomEffects:
        """Return the summary of effects on a scale, their variances and `deviations`, ``(n_sites, 3)``."""
        from scipy.special import chdtrc, stdtrit

        (effect, variance, deviation), k = effects.T, len(effects)
        between = _restricted_variance(effect, variance)
        weight = 1 / (variance + between)
        mean = float(weight @ effect / weight.sum())
        error = math.sqrt(float(weight @ np.square(effect - mean)) / ((k - 1) * float(weight.sum())))
        reach, back = float(stdtrit(k - 1, 1 - missed)) * error, _SCALES[scale]
        low, high = _of_new_site(effect, variance, missed)
        fixed = 1 / variance
        q = float(deviation @ deviation)
        typical = (k - 1) * float(fixed.sum()) / (float(fixed.sum()) ** 2 - float(np.square(fixed).sum()))
        return cls(
            name=name,
            words=words,
            estimate=back(mean),
            confidence_interval=ConfidenceInterval(back(mean - reach), back(mean + reach)),
            prediction_interval=ConfidenceInterval(back(low), back(high)),
            between_sites=math.sqrt(between),
            scale=scale,
            share_between=between / (between + typical),
            pvalue=float(chdtrc(k - 1, q)),
            n_sites=k,
            confidence_level=round(1 - 2 * missed, 12),
        )

    @property
    def row(self) -> tuple[str, ...]:
        """The line of a table."""
        return (
            self.words,
            f"{self.estimate:.3g}",
            _ends(self.confidence_interval),
            _ends(self.prediction_interval),
            f"{self.between_sites:.2g}",
            percent(round(self.share_between, 2)),
            align_pvalue(self.pvalue),
        )

    def _describe(self) -> Description:
        return Description(f"{self.words} over {self.n_sites} sites", (), [Table(self.head, [self.row])])


def deviations(effect: Floats, variance: Floats) -> Floats:
    """Return the deviations of effects from their mean, in standard deviations; their squares add up to Cochran's Q."""
    return np.asarray((effect - np.average(effect, weights=1 / variance)) / np.sqrt(variance))


def _of_new_site(effect: Floats, variance: Floats, missed: float) -> tuple[float, float]:
    """Return where a new site lies, from quantiles of the variance between sites."""
    from scipy.special import chdtri, stdtr

    k, between = len(effect), np.zeros(_N_QUANTILES)
    goal = chdtri(k - 1, (np.arange(_N_QUANTILES) + 0.5) / _N_QUANTILES)
    for _ in range(_STEPS):  # Newton's method from below, as Q is convex and decreases
        weight = 1 / (variance + between[:, None])
        total = weight.sum(axis=1)
        mean = weight @ effect / total
        squares = np.square(effect - mean[:, None])
        q, slope = (weight * squares).sum(axis=1), (weight**2 * squares).sum(axis=1)
        step = np.maximum(q - goal, 0.0) / np.maximum(slope, np.finfo(float).tiny)
        if not (step > _PRECISION * (variance.min() + between)).any():
            break
        between = between + step
    spread = np.sqrt(between + q / ((k - 1) * total))
    widest = float(spread.max())
    if not widest:
        return float(mean[0]), float(mean[0])

    def beyond(x: float, share: float) -> float:
        return float(stdtr(k - 1, (x - mean) / spread).mean()) - share

    ends = []
    for share in (missed, 1 - missed):
        reach = widest
        while beyond(float(mean.min()) - reach, share) > 0 or beyond(float(mean.max()) + reach, share) < 0:
            reach *= 2
        low, high = float(mean.min()) - reach, float(mean.max()) + reach
        ends.append(root_between(lambda x: beyond(x, share), low, high, 1e-6 * widest))  # noqa: B023
    return ends[0], ends[1]


def _ends(interval: ConfidenceInterval) -> str:
    return f"{interval.low:.3g} to {interval.high:.3g}"


def _restricted_variance(effect: Floats, variance: Floats) -> float:
    """Return the variance between sites of largest restricted likelihood; 0 if that decreases from 0 on."""

    def score(between: float) -> float:
        weight = 1 / (variance + between)
        total = float(weight.sum())
        squares = float(np.square(weight).sum())
        deviation = effect - weight @ effect / total
        return float(np.square(weight) @ np.square(deviation)) - total + squares / total

    if score(0.0) <= 0:
        return 0.0
    high = float(np.var(effect)) + float(variance.mean())
    while score(high) > 0:
        high *= 2
    return root_between(score, 0.0, high, 1e-12 * high)
