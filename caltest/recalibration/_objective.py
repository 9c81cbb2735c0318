"""What a recalibration method minimises, at the map that it found and at predictions as they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_ROUNDING = 1e-9  # relative; sums of single precision are rounded like this


@dataclass(frozen=True)
class Objective:
    """The value that a fit minimises, at two maps.

    Attributes
    ----------
    found : float
        At the map that was found.
    unchanged : float
        At the map that leaves predictions as they are.
    """

    found: float
    unchanged: float

    @classmethod
    def sum(cls, parts: Iterable[Objective | None]) -> Objective | None:
        """Return the sums over the functions of a map; None unless all of them have an objective."""
        listed = list(parts)
        known = [part for part in listed if part is not None]
        if len(known) < len(listed):
            return None
        return cls(sum(part.found for part in known), sum(part.unchanged for part in known))

    @property
    def is_worse(self) -> bool:
        """Whether the map that was found is worse than predictions as they are, by more than rounding."""
        return not self.found <= self.unchanged + _ROUNDING * (1 + abs(self.unchanged))  # not a number is worse
