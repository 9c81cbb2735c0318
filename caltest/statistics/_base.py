"""The contract of a statistic: one number, large where predictions and outcomes disagree."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._sample import Sample
from caltest.resampling._distributions import Law, Tail
from caltest.resampling._draws import Draws
from caltest.results._naming import describe


class Statistic(ABC):
    """An estimator used as test statistic.

    A subclass is a frozen dataclass that owns its parts and defines `evaluate`; the same code then serves the observed
    labels and the redrawn ones. Large values speak against calibration.
    """

    measures_scatter: ClassVar[bool] = False
    """Whether an unusually small value means that outcomes scatter less than predicted."""

    @property
    def components(self) -> tuple[Statistic, ...]:
        """Statistics that are evaluated on the same draws; more than one are combined by min-p."""
        return (self,)

    def settle(self, sample: Sample) -> Statistic:
        """Return the statistic for this sample: itself, unless its components depend on the number of rows."""
        return self

    def evaluate_components(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        """Return every component ``(n_components, ...)``; may be overridden to be faster, never to differ."""
        return np.stack([part.evaluate(sample, outcomes) for part in self.components])

    @abstractmethod
    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        """Return the statistic ``(...)`` of outcomes ``(..., n_samples)`` on the predictions of the sample."""

    def null(self, sample: Sample, draws: Draws) -> NDArray[np.float64]:
        """Return the statistic on every draw, ``(n_resamples,)``; may be overridden to be faster, never to differ."""
        return joint_null([self], sample, draws)[0]

    def derived(self, value: float, null: Law) -> dict[str, float]:
        """Return named numbers that follow from a value and its null law; a result carries and prints them."""
        return {}

    def exact_law(self, sample: Sample) -> Law | None:
        """Return the exact null law, which no outcome changes; None where no exact law is known."""
        return None

    def exact(self, sample: Sample) -> tuple[Law, Tail] | None:
        """Return the exact null law and the tail at the observed outcomes; None where no exact law is known."""
        return None

    def limit(self, sample: Sample) -> tuple[Law, Tail] | None:
        """Return the limit of the null law as n grows and the observed tail; None where no limit is known."""
        return None

    def __str__(self) -> str:
        return describe(self)


def counts_events(sample: Sample) -> bool:
    """Return whether cells count the events of a two-outcome problem without weights: their laws are known."""
    return sample.n_outcomes == 2 and sample.weight is None


def require_two_outcomes(sample: Sample, name: str) -> None:
    """Raise ValueError unless the sample has two outcomes."""
    if sample.n_outcomes != 2:
        msg = f"`{name}` needs a two-outcome lens such as Confidence(), got {sample.n_outcomes} outcomes."
        raise ValueError(msg)


def joint_null(statistics: Sequence[Statistic], sample: Sample, draws: Draws) -> NDArray[np.float64]:
    """Return ``(n_statistics, n_resamples)``: several statistics on one set of draws."""
    parts = [
        [statistic.evaluate(drawn, outcomes) for statistic in statistics] for drawn, outcomes in draws.blocks(sample)
    ]
    return np.concatenate(parts, axis=1)
