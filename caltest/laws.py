r"""Null laws that need no sampling.

With predictions fixed, the number of events in a cell is a sum of independent indicators with known probabilities: a
Poisson-binomial variable (Bröcker & Smith 2007).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_LOG_NEGLIGIBLE = 18 * math.log(10) + math.log(2)  # mass outside the window: 2 exp(-this) = 1e-18
_SLACK = 1e-12


@dataclass(frozen=True, eq=False)
class PoissonBinomial:
    r"""Law of :math:`K = \sum_i Y_i` with independent :math:`Y_i \sim \mathrm{Bernoulli}(p_i)`.

    Attributes
    ----------
    first : int
        Smallest count of the window that holds all but 1e-18 of the mass.
    pmf : array of shape (n_counts,)
        ``P(K = first), P(K = first + 1), ...``, with an absolute error of about 1e-15.
    """

    first: int
    pmf: NDArray[np.float64]

    @classmethod
    def of(cls, probabilities: NDArray[np.float64]) -> "PoissonBinomial":
        r"""Return the law for probabilities ``(n,)``, from its characteristic function.

        .. math:: \phi(\omega) = \prod_i (1 - p_i + p_i e^{i \omega}), \qquad
                  |\phi(\omega)|^2 \le e^{-2 V (1 - \cos\omega)}, \quad V = \sum_i p_i (1 - p_i)

        On a window of W counts the law is the discrete Fourier transform of W frequencies; all but about 30 of them
        are negligible, whatever n is. The window follows from Bernstein's inequality.

        Examples
        --------
        >>> import numpy as np
        >>> law = PoissonBinomial.of(np.array([0.5, 0.5]))
        >>> law.first, law.pmf.round(12).tolist()
        (0, [0.25, 0.5, 0.25])
        """
        p = np.clip(probabilities, 0.0, 1.0)
        mean, variance = p.sum(), (p * (1 - p)).sum()
        third = _LOG_NEGLIGIBLE / 3
        half_width = third + math.sqrt(third**2 + 2 * variance * _LOG_NEGLIGIBLE)
        first = max(0, math.floor(mean - half_width))
        n_counts = min(len(p), math.ceil(mean + half_width)) - first + 1
        frequency = 2 * math.pi * np.arange(n_counts // 2 + 1) / n_counts
        frequency = frequency[variance * (1 - np.cos(frequency)) <= _LOG_NEGLIGIBLE + 4]
        spectrum = np.zeros(n_counts // 2 + 1, dtype=complex)
        # Likely events are counted by their complements and phases are centred: what is summed stays small and exact.
        likely = p > 0.5
        rest, sign = np.where(likely, 1 - p, p), np.where(likely, 1.0, -1.0)
        with np.errstate(divide="ignore"):  # a factor of 0 belongs to p = 1/2 at frequency pi
            for j, w in enumerate(frequency):
                log_size = 0.5 * np.log1p(-2 * rest * (1 - rest) * (1 - math.cos(w))).sum()
                phase = np.arctan2(rest * math.sin(w), 1 - rest * (1 - math.cos(w))) - w * rest
                spectrum[j] = np.exp(log_size + 1j * ((sign * phase).sum() + w * (first - mean)))
        pmf = np.clip(np.fft.irfft(spectrum, n_counts), 0.0, None)
        return cls(first, pmf / pmf.sum())

    @property
    def counts(self) -> NDArray[np.int64]:
        """Counts of the window, ``(n_counts,)``."""
        return self.first + np.arange(len(self.pmf))

    def central_interval(self, level: float) -> tuple[int, int]:
        """Return the closed interval of counts with at most ``(1 - level) / 2`` of the mass on either side of it.

        Examples
        --------
        >>> import numpy as np
        >>> PoissonBinomial.of(np.full(100, 0.5)).central_interval(0.9)
        (42, 58)
        """
        tail = (1 - level) / 2 + _SLACK
        below = np.cumsum(self.pmf)
        above = np.append(np.cumsum(self.pmf[::-1])[::-1][1:], 0.0)
        return self.first + int(np.argmax(below > tail)), self.first + int(np.argmax(above <= tail))
