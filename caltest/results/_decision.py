"""Decisions at a level, the same for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_ROUNDING = 1e-12  # 1 / (B + 1) and the level are rounded differently


def rejects(pvalue: Any, alpha: float) -> Any:
    """Return whether a hypothesis with this p-value, or these, is rejected at the level ``alpha``."""
    return pvalue <= alpha * (1 + _ROUNDING)


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
