r"""Null laws: what a statistic does under the hypothesis, known exactly or from draws.

With predictions fixed, the number of events in a cell of a two-outcome problem is a sum of independent indicators with
known probabilities, a Poisson-binomial variable (Bröcker & Smith 2007).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caltest._compiled._poisson_binomial import add_indicators, characteristic_function

TIE_TOLERANCE = 1e-12
"""Values within this relative distance are ties: the same counts may be summed in another order."""

SMALLEST_PVALUE = float(np.finfo(np.float64).tiny)
"""A p-value is never reported as 0."""


def alpha_of(confidence_level: float) -> float:
    """Return the level of a test that belongs to a confidence level; a p-value that ties with it is not above it."""
    return (1 - confidence_level) * (1 + TIE_TOLERANCE)


_LOG_NEGLIGIBLE = 18 * math.log(10) + math.log(2)  # mass outside the window: 2 exp(-this) = 1e-18
_BLOCK = 128


def window_half_width(variance: float) -> float:
    """Return the distance from the mean beyond which a sum of indicators has a probability below 1e-18 (Bernstein)."""
    third = _LOG_NEGLIGIBLE / 3
    return third + math.sqrt(third**2 + 2 * variance * _LOG_NEGLIGIBLE)


@dataclass(frozen=True, eq=False)
class PoissonBinomial:
    r"""Law of :math:`K = \sum_i Y_i` with independent :math:`Y_i \sim \mathrm{Bernoulli}(p_i)`.

    Attributes
    ----------
    first : int
        Smallest count of the window.
    pmf : array of shape (n_counts,)
        ``P(K = first), P(K = first + 1), ...``
    """

    first: int
    pmf: NDArray[np.float64]

    @classmethod
    def of(cls, probabilities: NDArray[np.float64]) -> PoissonBinomial:
        r"""Return the law for probabilities ``(n,)``, with an absolute error below 1e-11, as a rule about 1e-15.

        .. math:: \phi(\omega) = \prod_i (1 - p_i + p_i e^{i \omega}), \qquad
                  |\phi(\omega)| \le e^{-V (1 - \cos\omega)}, \quad V = \sum_i p_i (1 - p_i)

        On a window of W counts the law is the discrete Fourier transform of W frequencies; all but about 30 of them
        are negligible, whatever n is. The window, by Bernstein's inequality, leaves out less than 1e-18.

        Examples
        --------
        >>> import numpy as np
        >>> law = PoissonBinomial.of(np.array([0.5, 0.5]))
        >>> law.first, law.pmf.round(12).tolist()
        (0, [0.25, 0.5, 0.25])
        """
        p = np.clip(probabilities, 0.0, 1.0)
        mean, variance = p.sum(), (p * (1 - p)).sum()
        half_width = window_half_width(variance)
        first = max(0, math.floor(mean - half_width))
        n_counts = min(len(p), math.ceil(mean + half_width)) - first + 1
        frequency = 2 * math.pi * np.arange(n_counts // 2 + 1) / n_counts
        frequency = frequency[variance * (1 - np.cos(frequency)) <= _LOG_NEGLIGIBLE + 4]
        likely = p > 0.5  # counted down from certain, so that phases stay small
        real, imag, *batch = np.empty((4, len(frequency)))
        waves = np.cos(frequency) - 1, np.sin(frequency)
        characteristic_function(np.where(likely, p - 1, p), *waves, real, imag, *batch)
        spectrum = np.zeros(n_counts // 2 + 1, dtype=complex)
        spectrum[: len(frequency)] = (real - 1j * imag) * np.exp(1j * frequency * (first - likely.sum()))
        pmf = np.clip(np.fft.irfft(spectrum, n_counts), 0.0, None)
        return cls(first, pmf / pmf.sum())

    @classmethod
    def with_tails(cls, probabilities: NDArray[np.float64]) -> PoissonBinomial:
        """Return the law for probabilities ``(n,)`` with a small relative error down to 1e-300.

        Blocks of indicators are added one by one and joined pairwise by direct convolution: sums of positive numbers
        lose no digits, however small they are. Slower than `of`, and needed for tails below 1e-10 only.

        Examples
        --------
        >>> import numpy as np
        >>> law = PoissonBinomial.with_tails(np.full(100, 0.001))
        >>> f"{law.pmf[100]:.6e}"
        '1.000000e-300'
        """
        p = np.clip(probabilities, 0.0, 1.0)
        parts = []
        for start in range(0, len(p), _BLOCK):
            block = np.empty(min(_BLOCK, len(p) - start) + 1)
            add_indicators(p[start : start + _BLOCK], block)
            parts.append(_trim(0, block))
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=False)
            joined = [_trim(a + b, np.convolve(x, y)) for (a, x), (b, y) in pairs]
            parts = joined + parts[len(joined) * 2 :]
        return cls(*parts[0])

    @property
    def counts(self) -> NDArray[np.int64]:
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


def _trim(first: int, pmf: NDArray[np.float64]) -> tuple[int, NDArray[np.float64]]:
    kept = np.flatnonzero(pmf > 1e-305)
    return first + int(kept[0]), pmf[kept[0] : kept[-1] + 1]


@dataclass(frozen=True)
class Tail:
    """A tail probability with what is known of its error.

    Attributes
    ----------
    probability : float
        P(T >= x).
    relative_error : float
        Estimated relative error: of rounding and left-out atoms, or between two grids; NaN for a limit law.
    method : str
        How it was computed.
    """

    probability: float
    relative_error: float
    method: str

    def __str__(self) -> str:
        if math.isnan(self.relative_error):
            return f"asymptotic: {self.method}"
        if self.relative_error == math.inf:
            return f"upper bound: {self.method}"
        return f"exact: {self.method}, relative error about {self.relative_error:.0e}"


class Law(ABC):
    """The law of a statistic under the null hypothesis: one interface for exact and resampled ones."""

    @property
    @abstractmethod
    def mean(self) -> float:
        """Expected value: the noise floor."""

    @property
    @abstractmethod
    def std(self) -> float:
        """Standard deviation."""

    @abstractmethod
    def sf(self, x: float) -> float:
        """Return P(T >= x); values within a relative 1e-12 of x count as ties."""

    def cdf(self, x: float) -> float:
        """Return P(T <= x), as 1 - P(T >= just above x)."""
        return 1.0 - self.sf(x + 1e-9 * (abs(x) + self.std) + 1e-300)

    @abstractmethod
    def quantile(self, q: float) -> float:
        """Return the smallest value t with P(T <= t) >= q, as near as the accuracy allows."""


@dataclass(frozen=True, eq=False)
class ResampledLaw(Law):
    """The law of B draws; tail probabilities count the observed data too, ``(1 + #{T_b >= x}) / (1 + B)``.

    Values that differ by less than 1e-12 of the largest are ties.

    Attributes
    ----------
    values : array of shape (n_resamples,)
        The statistic of every draw.
    """

    values: NDArray[np.float64]

    def _slack(self, x: float) -> float:
        return TIE_TOLERANCE * np.abs(self._finite).max(initial=abs(x) if math.isfinite(x) else 0.0)

    @property
    def _finite(self) -> NDArray[np.float64]:
        return self.values[np.isfinite(self.values)]

    @property
    def mean(self) -> float:
        """Mean of the finite draws."""
        return float(self._finite.mean()) if self._finite.size else math.inf

    @property
    def std(self) -> float:
        """Standard deviation of the finite draws."""
        return float(self._finite.std()) if self._finite.size else 0.0

    @property
    def accuracy(self) -> str:
        """Monte Carlo, with the number of draws."""
        return f"Monte Carlo, {len(self.values)} draws"

    def sf(self, x: float) -> float:
        """Return ``(1 + #{T_b >= x}) / (1 + B)``, ties counted."""
        return float((1 + np.count_nonzero(self.values >= x - self._slack(x))) / (1 + len(self.values)))

    def cdf(self, x: float) -> float:
        """Return the share of the draws that are at most x."""
        return float(np.mean(self.values <= x + self._slack(x)))

    def quantile(self, q: float) -> float:
        """Return the smallest drawn value t with at least a share q of the draws at or below it."""
        return float(np.quantile(self.values, q, method="inverted_cdf"))


@dataclass(frozen=True, eq=False)
class CellLaw:
    """What one cell can contribute to a statistic, and how probable that is.

    Attributes
    ----------
    values : array of shape (n_atoms,)
        Contributions, increasing and distinct.
    mass : array of shape (n_atoms,)
        Their probabilities.
    """

    values: NDArray[np.float64]
    mass: NDArray[np.float64]

    @classmethod
    def of(cls, values: NDArray[np.float64], mass: NDArray[np.float64]) -> CellLaw:
        """Sort atoms and merge those that tie."""
        order = np.argsort(values, kind="stable")
        values, mass = values[order], mass[order]
        new = np.append(True, np.diff(values) > TIE_TOLERANCE * values[-1])
        start = np.flatnonzero(new)
        return cls(values[start], np.add.reduceat(mass, start))

    @property
    def mean(self) -> float:
        """Expected contribution."""
        return float(self.values @ self.mass)

    @property
    def variance(self) -> float:
        """Variance of the contribution."""
        return float(np.square(self.values - self.mean) @ self.mass)

    def heavier_than(self, negligible: float) -> CellLaw:
        """Return the law without the atoms of less mass."""
        kept = self.mass > negligible
        return CellLaw(self.values[kept], self.mass[kept])

    def plus(self, other: CellLaw) -> CellLaw:
        """Return the law of the sum of two independent contributions, its atoms not sorted."""
        values = np.add.outer(self.values, other.values).ravel()
        return CellLaw(values, np.multiply.outer(self.mass, other.mass).ravel())
