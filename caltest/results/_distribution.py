"""The one declaration of a null distribution: what results and tests need of it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

TIE_TOLERANCE = 1e-12
"""Values within this relative distance are ties, because the same counts may be summed in another order."""


@dataclass(frozen=True)
class Tail:
    """A tail probability with what is known of its error.

    Attributes
    ----------
    probability : float
        P(T >= x).
    relative_error : float
        Estimated relative error: of rounding and left-out atoms, or between two grids; NaN for a limit distribution.
    method : str
        How it was computed.

    See Also
    --------
    caltest.resampling.Distribution : Its method ``tail`` returns it.

    Examples
    --------
    >>> str(Tail(0.25, 1e-12, "sum over all outcomes"))
    'exact: sum over all outcomes, relative error about 1e-12'
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


class Distribution(ABC):
    """The distribution of a statistic under the null hypothesis, whether computed or simulated.

    See Also
    --------
    LimitDistribution : A distribution that is known in the limit.

    Examples
    --------
    >>> from caltest.resampling import chi_squared
    >>> isinstance(chi_squared(1), Distribution), round(chi_squared(1).sf(3.84), 3)
    (True, 0.05)
    """

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

    def tail(self, x: float) -> Tail:
        """Return P(T >= x) with its method and error."""
        return Tail(self.sf(x), math.nan, "limit of the null distribution")

    def cdf(self, x: float) -> float:
        """Return P(T <= x), as 1 - P(T >= just above x)."""
        return 1.0 - self.sf(x + 1e-9 * (abs(x) + self.std) + 1e-300)

    @abstractmethod
    def quantile(self, q: float) -> float:
        """Return the smallest value t with P(T <= t) >= q, as exactly as the distribution is known."""
