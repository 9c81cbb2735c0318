"""The one declaration of a statistic: what the engine, streams and reports need of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Floats
from caltest.predictions._distances import Distance
from caltest.predictions._sample import Sample
from caltest.resampling.draws._summaries import KeptSums, Summary
from caltest.results._distribution import Distribution
from caltest.results._naming import Specification


class Statistic(Specification, ABC):
    """Base class of statistics: estimators of miscalibration that serve as test statistics.

    A subclass is a frozen dataclass that holds its parameters and defines `evaluate`. The same code is applied to
    observed and to simulated labels. Large values are evidence against calibration.

    See Also
    --------
    caltest.ECE : A statistic.

    Examples
    --------
    >>> import caltest
    >>> isinstance(caltest.ECE(), Statistic)
    True
    """

    measures_scatter: ClassVar[bool] = False
    """Whether an unusually small value means that labels vary less than predicted."""
    is_slow: ClassVar[bool] = False
    """Whether its time grows with the square of the number of observations, so that reports draw less for it."""
    degree: ClassVar[int] = 1
    """The power of the residuals with which it grows: 2 if it is a sum of their products."""
    hint_of_sums: ClassVar[str] = ""
    """What a refusal of the statistic adds where it is asked of a state of a stream."""
    limit_needs: ClassVar[str] = (
        "a statistic whose limit is known (KS, Kuiper, ClasswiseKS of two outcomes, Bridge, Spiegelhalter, "
        "HosmerLemeshow or CoxScore), predictions fixed"
    )
    """What ``method="asymptotic"`` needs where it is refused."""
    partition: Any = None
    """What makes the cells (bins) that the statistic is computed from, often a parameter; None if there are none."""

    @property
    def name(self) -> str:
        """Short name in sentences and tables: that of the class, without parameters."""
        return type(self).__name__

    @property
    def words(self) -> str:
        """What it is called on the axes of pictures, in words or as code."""
        return str(self)

    @property
    def target(self) -> Distance | None:
        """The distance of predicted and true probabilities whose expectation is estimated; None for what is no mean."""
        return None

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

    def for_sample(self, sample: Sample | KeptSums) -> Statistic:
        """Return the statistic for this sample: itself, unless its components depend on the number of observations."""
        return self

    @abstractmethod
    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return the statistic ``(...)`` of outcomes ``(..., n_samples)`` on the predictions of the sample."""

    def evaluate_components(self, sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return every component ``(n_components, ...)``; an override may be faster, its values are the same."""
        return np.stack([part.evaluate(sample, outcomes) for part in self.components])

    @property
    def companions(self) -> Any:
        """What it has in common with statistics that `evaluate_companions` evaluates at once; None if with no other."""
        return None

    @staticmethod
    def evaluate_companions(parts: Sequence[Any], sample: Sample, outcomes: NDArray[Any]) -> Floats:
        """Return statistics with the same `companions`, ``(n_parts, ...)``: the values of `evaluate`, found faster."""
        return np.stack([part.evaluate(sample, outcomes) for part in parts])

    def summary(self, sample: Sample) -> Summary | None:
        """Return what suffices of the labels: `CellCounts`, `EntryCounts`, `EntrySums`; None if all labels matter."""
        return None

    def evaluate_summary(self, sample: Sample, counted: Any) -> Floats:
        """Return the statistic ``(n_replicates,)`` of the summary that was asked for, which says what is received."""
        raise NotImplementedError

    def evaluate_signs(self, sample: Sample, signs: NDArray[np.int8]) -> Floats | None:
        """Return the statistic ``(n_replicates,)`` of residuals whose groups have signs ``(n_replicates, n_groups)``.

        It is needed for tests with ``groups``. None, if the statistic is not a function of the residuals.
        """
        return None

    def evaluate_sums(self, sums: KeptSums) -> Floats | None:
        """Return the statistic ``(n_data_sets,)`` of the sums that a state of a stream keeps.

        It is needed for `caltest.streaming`. None, if the statistic needs the observations.
        """
        return None

    def bounds_of_sums(self, sums: KeptSums) -> tuple[float, float] | None:
        """Return bounds of the value on all observations, where their sums do not determine it; else None."""
        return None

    def exact_distribution_of_sums(self, sums: KeptSums) -> Distribution | None:
        """Return the exact null distribution from the sums of a state; None where it is not known."""
        return None

    def exact_distribution(self, sample: Sample) -> Distribution | None:
        """Return the exact null distribution; None where it is not known."""
        return None

    def asymptotic_distribution(self, sample: Sample) -> Distribution | None:
        """Return the limit of the null distribution as the sample grows; None where it is not known."""
        return None

    def lower_ends(self, sample: Sample) -> Floats | None:
        """Return the smallest prediction in each cell ``(n_groups, n_cells)``; None if cells do not depend on them."""
        return None

    def derived(self, sample: Sample, value: float, null: Distribution) -> dict[str, Any]:
        """Return numbers and arrays besides the observed value, by name; results carry both and print the numbers."""
        return {}

    def direction(self, sample: Sample, outcomes: NDArray[Any]) -> float | None:
        """Return a number below 0 for over-confidence and above 0 for under-confidence; None if it shows neither."""
        return None
