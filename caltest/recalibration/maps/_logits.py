"""Probabilities and logits, and what a recalibration method minimises on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import blocks as blocks_of_values
from caltest.predictions.inputs._scale import softmax_in_place

FLOOR = 2.0**-52
"""Probabilities below this count as this in a logarithm: 2.2e-16, the rounding error of a double at 1."""

blocks = partial(blocks_of_values, n_values=2**18)  # 2 MB of doubles, so that they are worth a call


def logarithms(prob: NDArray[Any]) -> NDArray[Any]:
    """Return the logarithms of probabilities, those below `FLOOR` raised to it; the type of floats stays."""
    found = np.maximum(prob, prob.dtype.type(FLOOR))
    return np.log(found, out=found)


def log_softmax(logits: NDArray[Any]) -> NDArray[Any]:
    """Return the logarithms, with the same floor, of the probabilities that logits stand for."""
    return logarithms(softmax(logits))


def softmax(logits: NDArray[Any]) -> NDArray[Any]:
    """Return the probabilities ``(n_samples, n_classes)`` that logits stand for."""
    found = np.empty(logits.shape, dtype=logits.dtype)
    for rows in blocks(*logits.shape):
        found[rows] = logits[rows]
        softmax_in_place(found[rows])
    return found


def on_scale(values: NDArray[Any], given: str, wanted: str) -> NDArray[Any]:
    """Return predictions on the scale that a method works on.

    Parameters
    ----------
    values : array of shape (n_samples, n_classes)
        Probabilities or logits.
    given : {"probabilities", "logits"}
        What they are.
    wanted : {"probabilities", "logits", "log-probabilities"}
        What is returned. Logits stay as they were passed; those of probabilities are their logarithms.
    """
    if wanted == "probabilities":
        return values if given == "probabilities" else softmax(values)
    if given == "probabilities":
        return logarithms(values)
    return values if wanted == "logits" else log_softmax(values)


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
