"""The approximate distribution of the debiased squared l2 error of forecasts whose labels are known after a lead."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from caltest.predictions._sample import Sample
from caltest.statistics._squared_l2_distribution import SquaredL2Distribution, greatest_l2
from caltest.statistics._sums_in_time import SumsInTime

_FEW_SURPRISES = 5  # expected ones over the inflation: with fewer the lower limit is 0
_MIDDLE = 0.45  # tail up to which quantiles of Student's distribution are compared with normal ones


@dataclass(frozen=True, eq=False)
class SquaredL2InTime(SquaredL2Distribution):
    r"""Approximate distribution of T of forecasts in time, for every value of its target.

    It is that of `SquaredL2Distribution` with variances from K cosines of the time (`SumsInTime`): with the sums
    :math:`V_{jb}` of a cosine over the residuals of a cell, their covariance :math:`\Omega_b = \sum_j V_{jb}
    V_{jb}^\top`, and the terms H of T for all pairs of cosines,

    .. math::
        s_0^2 &= \frac{2}{W^2} \max\Bigl\{\frac{K}{K - 1} \sum_{j \ne k} H_{jk}^2, \;
                 R^2 \sum_b c_b^2 |v_b|^2 \Bigr\}, \\
        \kappa &= \max\Bigl\{\frac{\sum_j g_j^2}{\sum_b W_b |m_b|^2}, \;
                 \frac{\sum_b \operatorname{tr} \Omega_b^2 / W_b}{\sum_b \operatorname{tr} \Omega_b}, \;
                 \frac RW \sum_b v_b \text{ (two outcomes)}\Bigr\},

    where :math:`v_b` are the predicted variances of the sums of the cells, R is the inflation, and :math:`g_j = \sum_b
    V_{jb} \cdot m_b`. Because K cosines do not know a variance well, an end whose tail is :math:`\alpha` has both
    multiplied by the square of the ratio of the quantiles of Student's distribution with K degrees of freedom and of
    the normal one.

    Attributes
    ----------
    degrees : float
        K.
    is_known : bool
        Whether there are enough windows of time for an interval.
    unknown : float
        How large the squared error may be in cells of a single window.
    """

    degrees: float
    is_known: bool
    unknown: float

    @classmethod
    def of(cls, sample: Sample, partition: Any) -> SquaredL2InTime:
        """Estimate the distribution from the residuals of a sample with times."""
        sums = SumsInTime.of(sample, partition)
        known, total, number = sums.factor > 0, sums.total_weight, sums.n_cosines
        cosine, mean, count = sums.cosine[:, known], sums.mean[known], sums.count[known]
        predicted = float(np.square(sums.factor[:, None] * sums.variance * sums.inflation).sum())
        noise = math.sqrt(2 * max(sums.inner(sums), predicted)) / total
        along, gap = float(np.square(sums.scores).sum()), float(count @ np.square(mean).sum(axis=1))
        products = np.square(np.einsum("jbk,lbk->bjl", cosine, cosine))
        pairs = (products.sum(axis=(1, 2)) - np.trace(products, axis1=1, axis2=2)) * number / (number - 1)
        trace = float(np.square(cosine).sum())
        largest, n_outcomes = greatest_l2(sample.n_outcomes), sample.n_outcomes
        kappa = max(
            along / gap if gap > 0 else 0.0,
            float((pairs / count).sum()) / trace if trace > 0 else 0.0,
            float(sums.variance.sum()) * sums.inflation / total if n_outcomes == 2 else 0.0,
        )
        surprises = np.rint(sums.squares / largest)
        quiet = np.column_stack([np.maximum(sums.count / sums.inflation, surprises + 1), sums.count / total, surprises])
        spread = math.sqrt(noise**2 + 4 * along / total**2)
        few = float((sample.prob * (1 - sample.prob)).sum()) / n_outcomes < _FEW_SURPRISES * sums.inflation
        return cls(
            sums.estimate,
            noise,
            kappa / total,
            spread if spread > 0 and n_outcomes > 2 else None,
            quiet[(surprises <= 1) | (noise == 0)],
            largest,
            float(few),
            sums.degrees,
            sums.is_known,
            sums.unknown,
        )

    @property
    def origin(self) -> str:
        """How an interval is found, in words."""
        return f"{super().origin}, variances from {self.degrees:.0f} cosines of the time"

    def upper_end(self, alpha: float) -> float:
        """Return the target above which a value at most T has a probability below ``alpha``."""
        if not self.is_known:
            return self.largest
        return min(SquaredL2Distribution.upper_end(self._wider(alpha), alpha) + self.unknown, self.largest)

    def lower_end(self, alpha: float) -> float:
        """Return the target below which a value at least T has a probability below ``alpha``; no more than T."""
        return SquaredL2Distribution.lower_end(self._wider(alpha), alpha) if self.is_known else 0.0

    def _wider(self, alpha: float) -> SquaredL2InTime:
        from scipy.special import ndtri, stdtrit

        tail = min(alpha, 1 - alpha, _MIDDLE)
        ratio = float(stdtrit(self.degrees, tail) / ndtri(tail))
        spread = None if self.spread is None else ratio * self.spread
        return replace(self, noise=ratio * self.noise, unit=ratio**2 * self.unit, spread=spread)
