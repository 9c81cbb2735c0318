"""Decisions at a level, the same for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_ROUNDING = 1e-12  # 1 / (B + 1) and the level are rounded differently
_SMALLEST_SHOWN = 1e-300  # computed p-values end there


def show_pvalue(pvalue: float, *, bound: bool = False) -> str:
    """Return a p-value as text, such as "0.012"; an upper bound as "< 3.1e-20".

    Examples
    --------
    >>> show_pvalue(0.01234567), show_pvalue(3.12e-20, bound=True), show_pvalue(0.0)
    ('0.01235', '< 3.3e-20', '< 1e-300')
    """
    if pvalue <= _SMALLEST_SHOWN:
        return f"< {_SMALLEST_SHOWN:g}"
    return f"< {1.05 * pvalue:.2g}" if bound else f"{pvalue:.4g}"  # rounded up


def equate_pvalue(pvalue: float, *, bound: bool = False, name: str = "p") -> str:
    """Return a p-value in a sentence: "p = 0.012", "p < 3.1e-20"."""
    shown = show_pvalue(pvalue, bound=bound)
    return f"{name} {shown}" if shown.startswith("<") else f"{name} = {shown}"


def rejects(pvalue: Any, alpha: float) -> Any:
    """Return whether a hypothesis with this p-value, or these, is rejected at the level ``alpha``."""
    return pvalue <= alpha * (1 + _ROUNDING)


def level_of(confidence_level: float) -> float:
    """Return the level of the test that belongs to the level of an interval, without the rounding of the subtraction.

    Examples
    --------
    >>> 1 - 0.9, level_of(0.9)
    (0.09999999999999998, 0.1)
    """
    return round(1 - confidence_level, 12)


class Decision:
    """What results of tests have in common: they unpack as ``statistic, pvalue`` and reject at a level."""

    statistic: float
    pvalue: float
    alpha: float

    def __iter__(self) -> Iterator[float]:
        return iter((self.statistic, self.pvalue))

    @property
    def rejected(self) -> bool:
        """Whether the hypothesis is rejected at the level ``alpha``."""
        return bool(rejects(self.pvalue, self.alpha))
