"""The protocol of a statistic: what the engine needs of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._sample import Sample
from caltest.resampling.distributions._base import Distribution
from caltest.resampling.draws._summaries import Summary


class TestStatistic(Protocol):
    """A number for every set of labels, large where they contradict the predictions; see `statistics.Statistic`.

    `statistics.Statistic` defines all of it except `evaluate`.
    """

    @property
    def measures_scatter(self) -> bool:
        """Whether an unusually small value means that labels vary less than predicted."""

    @property
    def one_sided(self) -> bool:
        """Whether large values are evidence of one side of a deviation that another statistic reads from the other."""

    @property
    def partition(self) -> Any:
        """What makes the cells (bins) that the statistic is computed from; None if there are none."""

    @property
    def n_outcomes(self) -> int | None:
        """The number of outcomes that it is defined for; None if any."""

    @property
    def components(self) -> Sequence[TestStatistic]:
        """Statistics that are evaluated on the same draws; more than one are combined by min-p."""

    def for_sample(self, sample: Sample) -> TestStatistic:
        """Return the statistic for this sample."""

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        """Return the statistic ``(...)`` of outcomes ``(..., n_samples)``."""

    def evaluate_components(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        """Return every component ``(n_components, ...)``."""

    def summary(self, sample: Sample) -> Summary | None:
        """Return the summary of the labels that is enough for the statistic; None if it needs all labels."""

    def evaluate_summary(self, sample: Sample, counted: Any) -> NDArray[np.float64]:
        """Return the statistic of that summary."""

    def evaluate_signs(self, sample: Sample, signs: NDArray[np.int8]) -> NDArray[np.float64] | None:
        """Return the statistic of residuals with signs ``(n_replicates, n_groups)``; None if they do not suffice."""

    def exact_distribution(self, sample: Sample) -> Distribution | None:
        """Return the exact null distribution; None where it is not known."""

    def asymptotic_distribution(self, sample: Sample) -> Distribution | None:
        """Return the limit of the null distribution as the sample grows; None where it is not known."""

    def derived(self, sample: Sample, value: float, null: Distribution) -> dict[str, float]:
        """Return numbers besides the observed value, by name."""

    def direction(self, sample: Sample, outcomes: NDArray[Any]) -> float | None:
        """Return a number below 0 for over-confidence and above 0 for under-confidence; None if it shows neither."""
