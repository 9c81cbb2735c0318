"""Poisson-binomial distribution, and Chernoff's bounds of tails that are too small to be worth computing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._poisson_binomial import characteristic_function, log_moment, log_moment_of_deviations
from caltest.predictions._arrays import Floats, Integers, blocks
from caltest.resampling.distributions._base import SMALLEST_PVALUE, TIE_TOLERANCE, CellDistribution

_BLOCK_VALUES = 2**18  # complex numbers that are made at a time
_LOG_NEGLIGIBLE = 18 * math.log(10) + math.log(2)  # mass outside the window: 2 exp(-this) = 1e-18
SMALLEST_EXACT = 1e-12
"""A smaller tail probability is replaced by an upper bound."""
CHERNOFF = "Chernoff's inequality"
_LOG_SLOPES = math.log(1e-8), math.log(200.0)  # where log t is searched; exp(200) must not overflow
_N_STEPS = 16  # of golden section search: t to 1 %
_EQUAL = 1e-9  # variance of probabilities, relative to their squares, that is rounding
_GOLDEN = (math.sqrt(5) - 1) / 2
_FEW_EVENTS, _BLOCK_PARTS = 64, 2**10  # so few are convolved one by one, so many distributions at a time


def _inside(values: Floats) -> Floats:
    """Return values, or 0 or 1 where they are less or more; for few of them several times as fast as np.clip."""
    return np.minimum(np.maximum(values, 0.0), 1.0)


def window_half_width(variance: float | Floats) -> Any:
    """Return the distance from the mean beyond which a sum of indicators has a probability below 1e-18 (Bernstein)."""
    third = _LOG_NEGLIGIBLE / 3
    return third + np.sqrt(third**2 + 2 * variance * _LOG_NEGLIGIBLE)


@dataclass(frozen=True, eq=False)
class _Window:
    """Counts that are not too improbable, and the frequencies at which their characteristic function is needed."""

    first: int
    n_counts: int
    frequency: Floats

    @classmethod
    def of(cls, mean: float, variance: float, n: int) -> _Window:
        half_width = window_half_width(variance)
        first = max(0, math.floor(mean - half_width))
        n_counts = min(n, math.ceil(mean + half_width)) - first + 1
        frequency = 2 * math.pi * np.arange(n_counts // 2 + 1) / n_counts
        return cls(first, n_counts, frequency[variance * (1 - np.cos(frequency)) <= _LOG_NEGLIGIBLE + 4])

    @property
    def waves(self) -> tuple[Floats, Floats]:
        return np.cos(self.frequency) - 1, np.sin(self.frequency)

    def invert(self, values: NDArray[np.complex128], shift: float) -> PoissonBinomial:
        """Return the distribution of a count from the characteristic function of the count minus ``shift``."""
        spectrum = np.zeros(self.n_counts // 2 + 1, dtype=complex)
        spectrum[: len(values)] = values.conj() * np.exp(1j * self.frequency * (self.first - shift))
        pmf = np.maximum(np.fft.irfft(spectrum, self.n_counts), 0.0)
        return PoissonBinomial(self.first, pmf / pmf.sum())


@dataclass(frozen=True, eq=False)
class PoissonBinomial:
    r"""Distribution of :math:`K = \sum_i Y_i` with independent :math:`Y_i \sim \mathrm{Bernoulli}(p_i)`.

    It is made by `PoissonBinomial.of`, on a window of counts.

    Parameters
    ----------
    first : int
        Smallest count of the window.
    pmf : array of shape (n_counts,)
        ``P(K = first), P(K = first + 1), ...``

    See Also
    --------
    caltest.resampling.Distribution : What a null distribution provides.

    References
    ----------
    J. Bröcker and L. A. Smith (2007), Increasing the reliability of reliability diagrams, Weather and Forecasting.

    Examples
    --------
    >>> import numpy as np
    >>> PoissonBinomial.of(np.array([0.5, 0.5])).pmf.round(12).tolist()
    [0.25, 0.5, 0.25]
    """

    first: int
    pmf: Floats

    @classmethod
    def of(cls, probabilities: Floats) -> PoissonBinomial:
        r"""Return the distribution for probabilities ``(n,)``, with an absolute error below 1e-11, usually about 1e-15.

        .. math:: \phi(\omega) = \prod_i (1 - p_i + p_i e^{i \omega}), \qquad
                  |\phi(\omega)| \le e^{-V (1 - \cos\omega)}, \quad V = \sum_i p_i (1 - p_i)

        On a window of W counts the probabilities are the discrete Fourier transform of W frequencies; all but about 30
        of them are negligible, whatever n is. By Bernstein's inequality the window leaves out less than 1e-18.

        Parameters
        ----------
        probabilities : array of shape (n,)
            Probabilities of the indicators; values outside [0, 1] are clipped.

        Returns
        -------
        PoissonBinomial
            The distribution on a window of counts.

        Examples
        --------
        >>> import numpy as np
        >>> count = PoissonBinomial.of(np.array([0.5, 0.5]))
        >>> count.first, count.pmf.round(12).tolist()
        (0, [0.25, 0.5, 0.25])
        """
        # Not copies of millions at once.
        parts = [probabilities[some] for some in blocks(len(probabilities), 1, _BLOCK_VALUES)]
        mean = variance = 0.0
        for part in parts:
            p = _inside(part)
            mean += p.sum()
            variance += (p * (1 - p)).sum()
        window = _Window.of(mean, variance, len(probabilities))
        real, imag, *batch = np.empty((4, len(window.frequency)))
        values, n_likely = np.ones(len(window.frequency), dtype=complex), 0
        for part in parts:
            p = _inside(part)
            likely = p > 0.5  # counted down from certain, so that phases stay small
            np.subtract(p, 1, out=p, where=likely)
            characteristic_function(p, *window.waves, real, imag, *batch)
            values *= real + 1j * imag
            n_likely += int(likely.sum())
        return window.invert(values, n_likely)

    @classmethod
    def of_each(cls, probabilities: Sequence[Floats]) -> list[PoissonBinomial]:
        """Return the distribution for each of several arrays of probabilities, as `of` does.

        Those of few events are convolved event by event, side by side, in the time of a few of the others.

        Parameters
        ----------
        probabilities : sequence of arrays of shape (n,)
            Probabilities of the indicators of each count.

        Returns
        -------
        list of PoissonBinomial
            Their distributions, on the windows of `of`.

        Examples
        --------
        >>> [count.pmf.tolist() for count in PoissonBinomial.of_each([np.array([0.5, 0.5]), np.array([0.25])])]
        [[0.25, 0.5, 0.25], [0.75, 0.25]]
        """
        few = [place for place, part in enumerate(probabilities) if len(part) <= _FEW_EVENTS]
        few.sort(key=lambda place: -len(probabilities[place]))
        found: dict[int, PoissonBinomial] = {}
        for start in range(0, len(few), _BLOCK_PARTS):
            some = few[start : start + _BLOCK_PARTS]
            found |= dict(zip(some, _convolved([probabilities[place] for place in some]), strict=True))
        return [found[place] if place in found else cls.of(part) for place, part in enumerate(probabilities)]

    @classmethod
    def of_weighted(cls, probabilities: Floats, weight: Floats) -> PoissonBinomial:
        r"""Return the distribution with the characteristic function :math:`\prod_i (1 - p_i + p_i e^{i\omega})^{w_i}`.

        Weights need not be whole numbers, but their sum must be: probabilities with weights stand for more indicators,
        whose probabilities have the same moments.

        Parameters
        ----------
        probabilities, weight : arrays of shape (n,)
            Probabilities in [0, 1] and how many indicators have them.

        Returns
        -------
        PoissonBinomial
            The distribution on a window of counts.

        Examples
        --------
        >>> import numpy as np
        >>> PoissonBinomial.of_weighted(np.array([0.5]), np.array([2.0])).pmf.round(12).tolist()
        [0.25, 0.5, 0.25]
        """
        p = _inside(probabilities)
        window = _Window.of(float(weight @ p), float(weight @ (p * (1 - p))), round(float(weight.sum())))
        likely = p >= 0.5
        q = np.where(likely, 1 - p, p)
        logarithm = np.zeros(len(window.frequency), dtype=complex)
        cosine, sine = window.waves
        for some in blocks(len(cosine), len(q), _BLOCK_VALUES):
            a, b = q * cosine[some, None], q * sine[some, None]
            with np.errstate(divide="ignore"):
                length = np.log1p(np.maximum(2 * a + a * a + b * b, -1.0)) / 2
            angle = np.arctan2(np.where(likely, -b, b), 1 + a)
            logarithm[some] = (weight * length).sum(axis=1) + 1j * (weight * angle).sum(axis=1)
        return window.invert(np.exp(logarithm), float(weight[likely].sum()))

    @property
    def counts(self) -> Integers:
        """Counts of the window, ``(n_counts,)``."""
        return self.first + np.arange(len(self.pmf))

    def two_sided(self, count: int) -> float:
        r"""Return :math:`\min(1, 2 \min(P(K \le k), P(K \ge k)))`, the p-value of an observed count k.

        Examples
        --------
        >>> import numpy as np
        >>> round(PoissonBinomial.of(np.full(4, 0.5)).two_sided(4), 12)
        0.125
        """
        here = min(max(count - self.first, -1), len(self.pmf))
        return min(1.0, 2 * float(min(self.pmf[: here + 1].sum(), self.pmf[max(here, 0) :].sum())))

    def central_interval(self, level: float) -> tuple[int, int]:
        """Return the closed interval of counts with at most ``(1 - level) / 2`` of the mass on either side of it.

        Examples
        --------
        >>> import numpy as np
        >>> PoissonBinomial.of(np.full(100, 0.5)).central_interval(0.9)
        (42, 58)
        """
        tail = (1 - level) / 2 + TIE_TOLERANCE
        below = np.cumsum(self.pmf)
        above = np.append(np.cumsum(self.pmf[::-1])[::-1][1:], 0.0)
        return self.first + int(np.argmax(below > tail)), self.first + int(np.argmax(above <= tail))


def _convolved(probabilities: Sequence[Floats]) -> list[PoissonBinomial]:
    """Return the distribution of each count of few events, those of the most events first.

    All terms are positive where they are, so that the smallest probabilities are as precise as the others.
    """
    sizes = np.array([len(part) for part in probabilities])
    number = np.repeat(np.arange(len(sizes)), sizes)
    p, mass = np.zeros((sizes[0], len(sizes))), np.zeros((sizes[0] + 1, len(sizes)))
    p[np.arange(len(number)) - (np.cumsum(sizes) - sizes)[number], number] = _inside(np.concatenate(probabilities))
    mass[0] = 1.0
    for i, n in enumerate(np.searchsorted(-sizes, -np.arange(sizes[0]))):  # so many have an event more than i
        moved = mass[: i + 1, :n] * p[i, :n]
        mass[: i + 1, :n] *= 1.0 - p[i, :n]
        mass[1 : i + 2, :n] += moved
    mean, half = p.sum(axis=0), window_half_width((p * (1.0 - p)).sum(axis=0))
    first = np.maximum(np.floor(mean - half), 0.0).astype(np.int64).tolist()
    ends = np.minimum(np.ceil(mean + half), sizes).astype(np.int64) + 1
    rows = np.ascontiguousarray((mass / mass.sum(axis=0)).T)
    return [PoissonBinomial(low, row[low:end]) for low, end, row in zip(first, ends.tolist(), rows, strict=True)]


def distributions_of(
    counts: Sequence[PoissonBinomial], value: Callable[[Integers, Integers], Floats]
) -> list[CellDistribution]:
    """Return the distribution of each cell's ``value(cell, events)``, of arrays, from those of its events."""
    sizes, mass = np.array([len(count.pmf) for count in counts]), np.concatenate([count.pmf for count in counts])
    cell, before = np.repeat(np.arange(len(sizes)), sizes), np.cumsum(sizes) - sizes
    possible = np.flatnonzero(mass > 0)
    cell, mass = cell[possible], mass[possible]
    events = possible + (np.array([count.first for count in counts]) - before)[cell]
    return CellDistribution.of_each(value(cell, events), mass, np.bincount(cell))


def chernoff_bound(log_moment_of_sum: Callable[[float], float], x: float) -> float:
    """Return an upper bound of P(T >= x), at most 1, from the function t -> log E exp(t T).

    Its exponent is convex in t, so that golden section search finds the minimum.

    Examples
    --------
    >>> coin = lambda t: math.log((1 + math.exp(t)) / 2)
    >>> round(chernoff_bound(lambda t: 100 * coin(t), 100) * 2**100, 6)
    1.0
    """

    def exponent(log_slope: float) -> float:
        t = math.exp(log_slope)
        return log_moment_of_sum(t) - t * x

    low, high = _LOG_SLOPES
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = exponent(left), exponent(right)
    smallest = min(0.0, at_left, at_right)
    for _ in range(_N_STEPS):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = exponent(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = exponent(right)
        smallest = min(smallest, at_left, at_right)
    return math.exp(smallest)


def count_bound(prob: Floats, count: int, *, upper: bool) -> float:
    """Return a bound of P(K >= count), or of P(K <= count), for events with probabilities ``(n,)``.

    Examples
    --------
    >>> round(count_bound(np.full(100, 0.5), 0, upper=False) * 2**100, 6)
    1.0
    """
    sign = 1.0 if upper else -1.0
    p = _inside(prob)
    return chernoff_bound(lambda t: log_moment(p, sign * t), sign * count)


def deviations_bound(prob: Sequence[Floats], centre: Floats, counts: Sequence[PoissonBinomial], x: float) -> float:
    r"""Return a bound of :math:`P(\sum_b |K_b - m_b| \ge x)`.

    Parameters
    ----------
    prob : sequence of arrays of shape (n_observations,)
        Probabilities of the events in each cell.
    centre : array of shape (n_cells,)
        The number m of each cell.
    counts : sequence of PoissonBinomial
        Distribution of the number of events K of each cell.
    x : float
        The observed sum.
    """
    deviation = np.concatenate([np.abs(count.counts - m) for count, m in zip(counts, centre, strict=True)])
    start = np.cumsum([0, *map(len, prob)])
    first = np.cumsum([0, *(len(count.pmf) for count in counts)])
    cells = np.concatenate(prob), start, centre, deviation, np.concatenate([count.pmf for count in counts]), first
    return chernoff_bound(lambda t: log_moment_of_deviations(*cells, t), x)


@dataclass(frozen=True, eq=False)
class Events:
    """Independent events: their probabilities, and how many have each of them; weights need not be whole numbers.

    Attributes
    ----------
    prob, weight : arrays of shape (n,)
        Probabilities in [0, 1], and numbers of events that have them.
    """

    prob: Floats
    weight: Floats

    @classmethod
    def of_power_sums(cls, sums: Floats) -> list[Events]:
        r"""Return three events for each column of sums of powers of probabilities, by Gauss quadrature.

        Their weighted probabilities have the same sums, so that the number of events has the same first five cumulants.
        Three or fewer different probabilities are found again.

        Parameters
        ----------
        sums : array of shape (6, n)
            Sums of :math:`p^0, \dots, p^5`, the first positive.

        Returns
        -------
        list of Events
            One for each column.

        References
        ----------
        G. H. Golub and J. H. Welsch (1969), Calculation of Gauss quadrature rules, Mathematics of Computation 23.

        Examples
        --------
        >>> p = np.array([0.1, 0.1, 0.3, 0.6])
        >>> (events,) = Events.of_power_sums(np.stack([np.sum(p**k, keepdims=True) for k in range(6)]))
        >>> events.prob.round(6).tolist(), events.weight.round(6).tolist()
        ([0.1, 0.3, 0.6], [2.0, 1.0, 1.0])
        """
        moments = sums / sums[0]
        mean = moments[1]
        first = moments[1:] - mean * moments[:-1]  # of Chebyshev's algorithm, which ends where a variance is rounding
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = first[2] / first[1]
            several = first[1] > _EQUAL * moments[2]
            spread, centre = np.where(several, first[1], 0.0), np.where(several, ratio - mean, mean)
            second = first[1:] - centre * first[:-1] - spread * moments[:4]
            three = several & (second[2] > _EQUAL * first[3])
            further = np.where(three, second[2] / first[1], 0.0)
            last = np.where(three, second[3] / second[2] - ratio, centre)
        matrix = np.zeros((sums.shape[1], 3, 3))
        matrix[:, [0, 1, 2], [0, 1, 2]] = np.stack([mean, centre, last], axis=1)
        matrix[:, [1, 2], [0, 1]] = np.sqrt(np.stack([spread, further], axis=1))
        prob, vector = np.linalg.eigh(matrix)  # reads the lower triangle
        weight = sums[0][:, None] * np.square(vector[:, 0])
        return [cls(_inside(p[w > 0]), w[w > 0]) for p, w in zip(prob, weight, strict=True)]

    @cached_property
    def count(self) -> PoissonBinomial:
        """Distribution of the number K of events that happen."""
        return PoissonBinomial.of_weighted(self.prob, self.weight)

    def log_moment(self, t: float) -> float:
        """Return log E exp(t K)."""
        with np.errstate(divide="ignore"):
            moments = np.log1p(self.prob * np.expm1(t))
        return float(self.weight @ np.where(self.prob == 1, t, moments))  # certain events lose all digits

    def bound(self, count: int, *, upper: bool) -> float:
        """Return Chernoff's bound of P(K >= count), or of P(K <= count)."""
        sign = 1.0 if upper else -1.0
        return chernoff_bound(lambda t: self.log_moment(sign * t), sign * count)

    def two_sided(self, count: int) -> float:
        """Return the p-value of a number of events, a bound of it below 1e-12; see `PoissonBinomial.two_sided`."""
        pvalue = self.count.two_sided(count)
        if pvalue < SMALLEST_EXACT:
            upper = count > self.weight @ self.prob
            pvalue = min(2 * self.bound(count, upper=bool(upper)), SMALLEST_EXACT)
        return max(pvalue, SMALLEST_PVALUE)
