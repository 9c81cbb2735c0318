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
_SCALES = {"log": math.exp, "logit": lambda x: 1 / (1 + math.exp(-x)), "linear": float}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RandomEffects(Result):
    r"""Summary of a measure over sites.

    The estimates :math:`y_j` of k sites have known variances :math:`v_j` about the values of the sites, which are
    normal with mean :math:`\mu` and variance :math:`\tau^2`. The latter is that of restricted maximum likelihood, the
    variance of the mean that of Hartung and Knapp (2001), and the value of a new site lies in

    .. math:: \hat\mu \pm t_{k-1} \bigl(\hat\tau^2 + \mathrm{se}(\hat\mu)^2\bigr)^{1/2}

    (Higgins, Thompson and Spiegelhalter 2009), as of ``rma(test="knha")`` in R's metafor. Ends are transformed back
    from the logarithm or the logit.

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
        P-value of Cochran's Q for "all sites have one value"; a limit for large sites.
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
    ('observed_expected', 4, 1.01)
    >>> [round(float(end), 2) for end in summary.prediction_interval]
    [0.85, 1.19]
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
        """Return the summary of effects on a scale and their variances, ``(n_sites, 2)``."""
        from scipy.special import chdtrc, stdtrit

        (effect, variance), k = effects.T, len(effects)
        between = _restricted_variance(effect, variance)
        weight = 1 / (variance + between)
        mean = float(weight @ effect / weight.sum())
        error = math.sqrt(float(weight @ np.square(effect - mean)) / ((k - 1) * float(weight.sum())))
        t, back = float(stdtrit(k - 1, 1 - missed)), _SCALES[scale]
        reach, further = t * error, t * math.sqrt(between + error**2)
        fixed = 1 / variance
        q = float(fixed @ np.square(effect - fixed @ effect / fixed.sum()))
        typical = (k - 1) * float(fixed.sum()) / (float(fixed.sum()) ** 2 - float(np.square(fixed).sum()))
        return cls(
            name=name,
            words=words,
            estimate=back(mean),
            confidence_interval=ConfidenceInterval(back(mean - reach), back(mean + reach)),
            prediction_interval=ConfidenceInterval(back(mean - further), back(mean + further)),
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
