"""Combination of the p-values of several data sets, such as folds, whatever their dependence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from caltest.resampling._distributions import Distribution


@dataclass(frozen=True)
class CombinedPValues(Distribution):
    r"""Bonferroni's combination of K p-values, and what it says of -log10 of the smallest.

    .. math:: p = \min(1, K \min_k p_k), \qquad P(p \le \alpha) \le \sum_k P(p_k \le \alpha / K) \le \alpha

    under any dependence. Its power was compared with that of the other rules that are valid under any dependence in
    docs/cross-validation.md.

    Attributes
    ----------
    number : int
        K.

    References
    ----------
    V. Vovk and R. Wang (2020), Combining p-values via averaging, Biometrika.
    """

    number: int

    mean = std = math.nan

    @property
    def origin(self) -> str:
        """The rule in words."""
        return (
            f"{self.number} times the smallest p-value of {self.number} folds (Bonferroni's rule, valid under any "
            "dependence between the folds)"
        )

    def pvalue(self, pvalues: Sequence[float]) -> float:
        """Return the combined p-value of as many p-values or, where some folds lack a test, of fewer."""
        return min(1.0, self.number * min(pvalues))

    def sf(self, x: float) -> float:
        """Return the bound of P(-log10 of the smallest p-value >= x)."""
        return min(1.0, self.number * 10.0**-x)

    def quantile(self, q: float) -> float:
        """Return NaN: the distribution is not known."""
        return math.nan
