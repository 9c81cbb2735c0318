"""Approximate distribution of the debiased squared l2 error of independent observations around its target."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from caltest.predictions._arrays import Floats
from caltest.predictions._sample import Sample
from caltest.predictions.cells._cells import cells_of
from caltest.resampling.distributions._poisson_binomial import PoissonBinomial
from caltest.resampling.distributions._root import root_between
from caltest.statistics._skce import residuals
from caltest.statistics._squared_l2 import SquaredL2

_FEW_SURPRISES = 5  # expected ones, as a variance: with fewer the chi-squared approximation is unreliable
_PSEUDO_ROWS = 4


@dataclass(frozen=True, eq=False)
class SquaredL2Distribution:
    r"""Approximate distribution of the debiased squared l2 error T for every value :math:`\theta` of its target.

    .. math:: P_\theta(T \le t) = F(t / a + \nu; \nu, \theta / a), \qquad a = \kappa / n, \quad \nu = s_0^2 / (2 a^2)

    with F the non-central chi-squared distribution function. :math:`a (\chi^2_\nu(\theta / a) - \nu)` has mean
    :math:`\theta` and variance :math:`s_0^2 + 4 \kappa \theta / n`: the noise of a calibrated model plus the part that
    is due to miscalibration. `l2_interval` defines :math:`s_0` and :math:`\kappa`, and reports how accurate the
    approximation is.

    Attributes
    ----------
    estimate : float
        T.
    noise : float
        :math:`s_0`, about the standard deviation of T if the model is calibrated.
    unit : float
        a.
    spread : float or None
        Standard deviation of T at the estimate, for more than two outcomes, where a normal distribution is used too.
    quiet : array of shape (n_quiet, 3)
        Number of observations, their share, and the number of surprises (0 or 1) of each cell whose labels show almost
        no variance.
    largest : float
        Largest possible target.
    evidence : float
        Exact two-sided p-value of the number of surprises if the model is calibrated, where so few were expected that
        the chi-squared approximation is unreliable; elsewhere 0.
    """

    estimate: float
    noise: float
    unit: float
    spread: float | None
    quiet: Floats
    largest: float
    evidence: float

    @classmethod
    def of(cls, sample: Sample, partition: Any) -> SquaredL2Distribution:
        """Estimate the distribution from the residuals of a sample."""
        estimate = float(SquaredL2(partition).evaluate(sample, sample.outcome))
        surprise_pvalue = partial(_surprise_pvalue, sample)
        moments = sample.once(cell_moments, partition)
        return cls.of_moments(moments, estimate, sample.n_samples, sample.n_outcomes, surprise_pvalue)

    @classmethod
    def of_moments(
        cls,
        moments: Sequence[CellMoments],
        estimate: float,
        n: int,
        n_outcomes: int,
        surprise_pvalue: Callable[[], float],
    ) -> SquaredL2Distribution:
        """Estimate the distribution of T from the residuals in cells, with the exact p-value of surprises if needed."""
        largest = greatest_l2(n_outcomes)
        rows = np.array([cell.n_samples for cell in moments])
        surprises = np.array([round(cell.squares / largest) for cell in moments])
        noise = math.sqrt(2 * max(sum(cell.null_pairs for cell in moments), sum(cell.pairs for cell in moments))) / n
        gap = math.fsum(cell.n_samples * cell.mean @ cell.mean for cell in moments)
        along = math.fsum(cell.n_samples * cell.along for cell in moments)
        kappa = max(along / gap if gap > 0 else 0.0, _null_scale(moments, n))
        spread = math.sqrt(noise**2 + 4 * along / n**2)
        return cls(
            estimate,
            noise,
            kappa / n,
            spread if spread > 0 and n_outcomes > 2 else None,
            np.column_stack([rows, rows / n, surprises])[(surprises <= 1) | (noise == 0)],
            largest,
            surprise_pvalue() if sum(cell.predicted_variance for cell in moments) < _FEW_SURPRISES else 0.0,
        )

    @property
    def origin(self) -> str:
        """How an interval is found, in words."""
        normal = "" if self.spread is None else " and a normal one"
        return f"inversion of a non-central chi-squared distribution{normal}"

    @property
    def degrees_of_freedom(self) -> float:
        """The parameter nu."""
        return self.noise**2 / (2 * self.unit**2) if self.unit > 0 else 0.0

    @property
    def null_tail(self) -> float:
        """Probability of a value at most T if the model is calibrated."""
        return self._cdf(self.estimate / self.unit + self.degrees_of_freedom, 0.0) if self.noise > 0 else 1.0

    def below(self, target: float) -> float:
        r"""Return the probability of a value at most T; decreasing in the target.

        An estimate far below 0 means that outcomes vary less than those of a calibrated model, not that the
        miscalibration is below 0: it is replaced by the 16 % quantile of the null distribution. Cells with almost no
        surprises cannot exclude a small rate of them: a target :math:`\theta = \tfrac m n \mu^2` of a cell of m
        observations is compatible with no more surprises than observed with a binomial probability.
        """
        from scipy.special import bdtr, ndtr

        if not self.unit:
            return 1.0
        rows, share, surprises = self.quiet.T
        rate = np.minimum(np.sqrt(target / (self.largest * share)), 1.0)
        found = [bdtr(surprises, rows.astype(int), rate).max(initial=0.0)]
        if self.noise > 0:
            nu = self.degrees_of_freedom
            x = max(self.estimate / self.unit + nu, _low_quantile(nu))
            found.append(self._cdf(x, target))
        if self.spread is not None:
            found.append(float(ndtr((self.estimate - target) / self.spread)))
        return float(max(found))

    def above(self, target: float) -> float:
        """Return the probability of a value at least T; increasing in the target."""
        if not self.noise:
            return 1.0
        return 1 - self._cdf(self.estimate / self.unit + self.degrees_of_freedom, target)

    def _cdf(self, x: float, target: float) -> float:
        """Return the non-central chi-squared distribution function."""
        from scipy.special import chndtr

        return float(chndtr(max(x, 0.0), self.degrees_of_freedom, target / self.unit))

    def upper_end(self, alpha: float) -> float:
        """Return the target above which a value at most T has a probability below ``alpha``."""
        return _crossing(lambda target: self.below(target) - alpha, self.largest)

    def lower_end(self, alpha: float) -> float:
        """Return the target below which a value at least T has a probability below ``alpha``; no more than T."""
        if self.evidence > alpha:
            return 0.0
        crossing = _crossing(lambda target: alpha - self.above(target), self.largest)
        return min(crossing, max(self.estimate, 0.0))


@dataclass(frozen=True, eq=False)
class CellMoments:
    r"""Moments of the residuals of one cell; d is 1 for two outcomes, else their number.

    Attributes
    ----------
    n_samples : int
        Number of observations.
    mean : array of shape (d,)
        Mean residual.
    traces : tuple of float
        Traces of C, C^2 and C^3, with C the covariance of a residual, to which four pseudo-observations are added that
        are spread evenly over the outcomes.
    along : float
        :math:`m' C m`, with m the mean residual.
    predicted_variance, predicted_along : float
        Trace of P and :math:`m' P m`, with P the sum over the observations of the covariances that follow from the
        predictions.
    squares : float
        Sum of the squared lengths of the residuals.
    pairs, null_pairs : float
        :math:`\sum_{i \ne j} (e_i \cdot e_j)^2 / (n_b - 1)^2`, and its expected value if the model is calibrated.
    """

    n_samples: int
    mean: Floats
    traces: tuple[float, float, float]
    along: float
    predicted_variance: float
    predicted_along: float
    squares: float
    pairs: float
    null_pairs: float

    @classmethod
    def of(cls, error: Floats, prob: Floats) -> CellMoments:
        """Return the moments of residuals and predictions ``(n_samples, d)`` of at least two observations."""
        square, predicted = np.square(error).sum(axis=1), np.diag(prob.sum(axis=0)) - prob.T @ prob
        return cls._of(
            len(error),
            error.mean(axis=0),
            error.T @ error,  # as fast as half of a product: NumPy knows that it is symmetric
            predicted,
            float(square.sum()),
            float(np.square(square).sum()),
            float(squared_norms(prob).sum()),
        )

    @classmethod
    def of_sums(cls, n: int, observed: Floats, predicted: Floats, own: float, squares: float) -> CellMoments:
        r"""Return the moments of a cell of at least two observations of which only sums are known.

        ``observed`` and ``predicted (n_outcomes,)`` are the numbers N of outcomes and the sums of predictions with mean
        m, ``own`` and ``squares`` the sums of the probability of the outcome and of the squared length of the
        predictions. With the sum S of the residuals, whose squared lengths sum up to Q, the sum of their products is
        taken to be :math:`S S^\top / n` plus a multiple of :math:`\operatorname{diag} N - N N^\top / n` with which the
        trace is Q, and that of the predicted covariances to be such a multiple of :math:`\operatorname{diag} m - m
        m^\top`. Sums of fourth powers are the smallest possible ones, so that the noise is not too small.
        """
        mean, total = predicted / n, observed - predicted
        squared, stated = n - 2 * own + squares, np.diag(mean) - np.outer(mean, mean)
        seen = np.diag(observed) - np.outer(observed, observed) / n
        left = max(squared - float(total @ total) / n, 0.0)
        joint = np.outer(total, total) / n + _with_trace(seen if np.trace(seen) > 0 else stated, left)
        variance = _with_trace(stated, max(n - squares, 0.0))
        fourths, norms = squared**2 / n, float(np.square(variance).sum()) / n
        return cls._of(n, total / n, joint, variance, squared, fourths, norms)

    @classmethod
    def _of(cls, n: int, mean: Floats, joint: Floats, predicted: Floats, squares: float, *others: float) -> CellMoments:
        """Return moments from sums of products: of residuals, and of the covariances that follow from predictions.

        ``others`` are the sums of the fourth powers of the residuals, and of the squared norms of the covariances.
        """
        fourths, norms = others
        n_outcomes = max(len(mean), 2)
        even = np.eye(len(mean)) / n_outcomes - 1 / n_outcomes**2
        covariance = (joint - n * np.outer(mean, mean) + _PSEUDO_ROWS * even) / (n - 1 + _PSEUDO_ROWS)
        squared = covariance.T @ covariance
        return cls(
            n,
            mean,
            (float(np.trace(covariance)), float(np.trace(squared)), float((squared * covariance).sum())),
            float(mean @ covariance @ mean),
            float(np.trace(predicted)),
            float(mean @ predicted @ mean),
            squares,
            max(float(np.square(joint).sum() - fourths), 0.0) / (n - 1) ** 2,
            max(float(np.square(predicted).sum() - norms), 0.0) / (n - 1) ** 2,
        )


def _with_trace(matrix: Floats, trace: float) -> Floats:
    """Return the multiple of a matrix that has a trace; a matrix of trace 0 stays."""
    own = float(np.trace(matrix))
    return matrix * (trace / own) if own > 0 else matrix


def squared_norms(prob: Floats) -> Floats:
    r"""Return the squared norm of the covariance of each label, ``(n_samples,)``, for the first or all outcomes.

    :math:`|\operatorname{diag} p - p p^\top|^2 = \sum p^2 - 2 \sum p^3 + (\sum p^2)^2`.
    """
    second = np.square(prob)
    return second.sum(axis=1) - 2 * (second * prob).sum(axis=1) + np.square(second.sum(axis=1))


def greatest_l2(n_outcomes: int) -> float:
    """Return the largest squared l2 miscalibration; of two outcomes only the event counts."""
    return 1.0 if n_outcomes == 2 else 2.0


def cell_moments(sample: Sample, partition: Any) -> list[CellMoments]:
    """Return the moments of every cell of at least two observations."""
    cells = cells_of(sample, partition)
    first = 1 if sample.n_outcomes == 2 else 0  # one determines the other
    moments = []
    for b in range(cells.n_cells):
        rows = cells.members(b)
        part = sample.take(np.arange(rows.start, rows.stop) if isinstance(rows, slice) else np.flatnonzero(rows))
        if part.n_samples > 1:
            moments.append(CellMoments.of(residuals(part, part.outcome)[:, first:], part.prob[:, first:]))
    return moments


def stated_deviation(sample: Sample, partition: Any) -> float:
    r"""Return the standard deviation of T that the predictions imply at the observed mean residuals :math:`m_b`.

    .. math:: s^2 = \frac{2}{n^2} \sum_b q_b + \frac{4}{n^2} \sum_b m_b' \Bigl(\sum_{i \in b} \Sigma_i\Bigr) m_b

    with the expected sum over pairs :math:`q_b` of each cell. Labels without surprises show no variance; this standard
    deviation does not depend on the number of surprises.
    """
    moments = sample.once(cell_moments, partition)
    along = math.fsum(cell.predicted_along for cell in moments)
    return math.sqrt(2 * math.fsum(cell.null_pairs for cell in moments) + 4 * max(along, 0.0)) / sample.n_samples


def _surprise_pvalue(sample: Sample) -> float:
    """Return the exact two-sided p-value of the number of outcomes that were not the most probable one."""
    surprises = int(np.count_nonzero(sample.outcome != sample.given.argmax(axis=1)))
    largest = sample.given.max(axis=1).astype(np.float64)
    return PoissonBinomial.of(np.clip(1 - largest, 0.0, 1.0)).two_sided(surprises)


def _null_scale(cells: Sequence[CellMoments], n_samples: int) -> float:
    """Return the variance of a residual: pooled for two outcomes, else such that the third cumulant of T is right."""
    if not cells:
        return 0.0
    if len(cells[0].mean) == 1:
        return sum(cell.n_samples * cell.traces[0] for cell in cells) / n_samples
    second, third = (sum(cell.traces[power] for cell in cells) for power in (1, 2))
    return third / second if second > 0 else 0.0


def _low_quantile(degrees_of_freedom: float) -> float:
    """Return the 16 % quantile of the chi-squared distribution, one standard deviation below its centre."""
    from scipy.special import gammaincinv

    return 2 * float(gammaincinv(degrees_of_freedom / 2, 0.16))


def _crossing(decreasing: Callable[[float], float], largest: float) -> float:
    """Return the zero of a decreasing function on [0, largest], or the end that is nearer to it."""
    if decreasing(0.0) <= 0:
        return 0.0
    return largest if decreasing(largest) >= 0 else root_between(decreasing, 0.0, largest, 1e-16)
