"""Combinations of statistics, and what a function that takes a statistic asks of it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._lens import Lens
from caltest.predictions._lenses import Canonical, Confidence
from caltest.predictions._sample import Sample
from caltest.resampling.engine._statistic import Statistic

__all__ = ["Combination", "Statistic"]


class Combination(Statistic):
    """Base class of combinations of several statistics by min-p, which have no value on one data set."""

    @property
    @abstractmethod
    def components(self) -> tuple[Statistic, ...]:
        """The statistics that are combined."""

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        """Raise ValueError: the engine evaluates the components."""
        raise _no_estimate(self)


def counts_events(sample: Sample) -> bool:
    """Return whether cells count the events of a two-outcome problem without weights, whose distribution is known."""
    return sample.n_outcomes == 2 and sample.weight is None


def validate_statistic(statistic: Any) -> Statistic:
    """Return ``statistic`` if it is one."""
    if isinstance(statistic, Statistic):
        return statistic
    msg = f"`statistic` must be a statistic such as ECE() or Omnibus(), got {statistic!r}."
    raise TypeError(msg)


def validate_estimate(statistic: Any) -> Statistic:
    """Return ``statistic`` if it is a statistic that has a value on one data set."""
    chosen = validate_statistic(statistic)
    if chosen.components != (chosen,):
        raise _no_estimate(chosen)
    return chosen


def default_lens(statistic: Statistic, n_classes: int) -> Lens:
    """Return the default lens of a statistic: the whole prediction if it can judge it, otherwise the confidence."""
    parts = (statistic, *statistic.components)
    return Canonical() if all(part.n_outcomes in {None, n_classes} for part in parts) else Confidence()


def _no_estimate(statistic: Statistic) -> ValueError:
    return ValueError(
        f"`{statistic.name}` combines tests and estimates no error; use calibration_test, or ECE() to estimate."
    )
