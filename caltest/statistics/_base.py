"""The contract of a statistic: one number for every set of labels, large where they contradict the predictions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._lens import Lens
from caltest.predictions._lenses import Canonical, Confidence
from caltest.predictions._sample import Sample
from caltest.resampling.distributions._base import Distribution
from caltest.resampling.draws._summaries import Summary
from caltest.results._naming import Specification


class Statistic(Specification, ABC):
    """Base class of statistics: estimators of miscalibration that serve as test statistics.

    A subclass is a frozen dataclass that holds its parameters and defines `evaluate`. The same code is applied to
    observed and to simulated labels. Large values are evidence against calibration.
    """

    measures_scatter: ClassVar[bool] = False
    """Whether an unusually small value means that labels vary less than predicted."""
    one_sided: ClassVar[bool] = False
    """Whether only one of the two directions that `direction` tells apart makes the statistic large."""
    partition: Any = None
    """What makes the cells (bins) that the statistic is computed from, often a parameter; None if there are none."""

    @property
    def n_outcomes(self) -> int | None:
        """Number of outcomes that the statistic is defined for: 2 for statistics of one probability, None for any.

        It is that of the partition, if there is one; a class attribute of this name overrides it. The
        engine refuses samples with another number of outcomes.
        """
        return getattr(self.partition, "n_outcomes", None)

    @property
    def components(self) -> tuple[Statistic, ...]:
        """Statistics that are evaluated on the same draws; more than one are combined by min-p."""
        return (self,)

    def for_sample(self, sample: Sample) -> Statistic:
        """Return the statistic for this sample: itself, unless its components depend on the number of observations."""
        return self

    @abstractmethod
    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        """Return the statistic ``(...)`` of outcomes ``(..., n_samples)`` on the predictions of the sample."""

    def evaluate_components(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        """Return every component ``(n_components, ...)``; an override may be faster, its values are the same."""
        return np.stack([part.evaluate(sample, outcomes) for part in self.components])

    def summary(self, sample: Sample) -> Summary | None:
        """Return what suffices of the labels: `CellCounts`, `EntryCounts`, `EntrySums`; None if all labels matter."""
        return None

    def evaluate_summary(self, sample: Sample, counted: Any) -> NDArray[np.float64]:
        """Return the statistic ``(n_replicates,)`` of the summary that was asked for, which says what is received."""
        raise NotImplementedError

    def evaluate_signs(self, sample: Sample, signs: NDArray[np.int8]) -> NDArray[np.float64] | None:
        """Return the statistic ``(n_replicates,)`` of residuals whose groups have signs ``(n_replicates, n_groups)``.

        It is needed for tests with ``groups``. None, if the statistic is not a function of the residuals.
        """
        return None

    def exact_distribution(self, sample: Sample) -> Distribution | None:
        """Return the exact null distribution; None where it is not known."""
        return None

    def asymptotic_distribution(self, sample: Sample) -> Distribution | None:
        """Return the limit of the null distribution as the sample grows; None where it is not known."""
        return None

    def derived(self, sample: Sample, value: float, null: Distribution) -> dict[str, Any]:
        """Return numbers and arrays besides the observed value, by name; results carry both and print the numbers."""
        return {}

    def direction(self, sample: Sample, outcomes: NDArray[Any]) -> float | None:
        """Return a number below 0 for over-confidence and above 0 for under-confidence; None if it shows neither."""
        return None


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
    name = type(statistic).__name__
    return ValueError(f"`{name}` combines tests and estimates no error; use calibration_test, or ECE() to estimate.")
