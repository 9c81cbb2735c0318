"""One statistic of a test: its value, its null distribution and its p-value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest.results._base import Result
from caltest.results._decision import align_pvalue
from caltest.results._description import Description, Table
from caltest.results._distribution import Distribution
from caltest.results._naming import describe
from caltest.results._picture import Picture


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ComponentResult(Result):
    """One statistic of a test with its null distribution and p-value.

    Attributes
    ----------
    test_statistic : Statistic
        What was computed.
    statistic : float
        Its observed value.
    pvalue : float
        ``(1 + #{null >= observed}) / (1 + n_resamples)``, or the tail of a computed distribution; not adjusted for
        other components.
    null : Distribution
        Its null distribution: ``mean``, ``std``, ``quantile(q)``, ``sf(x)`` and ``cdf(x)``.
    derived : dict
        Further numbers by name; empty for most statistics. Some are arrays, with an entry for each group.

    See Also
    --------
    TestResult : The result whose components these are.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(3).draw(300, rng=0)
    >>> result = caltest.calibration_test(y_true, y_prob, n_resamples=99, rng=0)
    >>> [str(part.test_statistic) for part in result.components]
    ['ECE()', 'OverConfidence()', 'UnderConfidence()', 'ClasswiseKS()', 'ConfidenceECE()']
    """

    test_statistic: Any
    statistic: float
    pvalue: float
    null: Distribution = field(repr=False)
    derived: Mapping[str, Any] = field(default_factory=dict)

    plot = Picture("plot_null_distribution", known=lambda result: result._is_drawn)
    _derived: ClassVar[tuple[str, ...]] = ("noise_floor", "noise_interval")
    _left_out: ClassVar[frozenset[str]] = frozenset({"null"})

    @property
    def _is_drawn(self) -> bool:
        """Whether there is a null distribution to draw."""
        return self.null is not None

    @property
    def null_distribution(self) -> NDArray[np.float64] | None:
        """Values of the statistic on every draw, ``(n_resamples,)``; None if nothing was drawn."""
        return getattr(self.null, "values", None)

    @property
    def noise_floor(self) -> float:
        """Mean of the null distribution: what a calibrated model shows on these predictions on average."""
        return self.null.mean

    @property
    def noise_interval(self) -> tuple[float, float]:
        """5 % and 95 % quantiles of the null distribution."""
        return self.null.quantile(0.05), self.null.quantile(0.95)

    def _row(self, *, bound: bool = False) -> tuple[str, str, str, str]:
        low, high = self.noise_interval
        under_null = f"{self.noise_floor:.4g} ({low:.4g} to {high:.4g})"
        return (
            describe(self.test_statistic),
            f"{self.statistic:.4g}",
            under_null,
            align_pvalue(self.pvalue, bound=bound),
        )

    def _describe(self) -> Description:
        return Description(str(self.test_statistic), (), (components_table([self]),))


def components_table(components: Sequence[ComponentResult], *, bound: bool = False) -> Table:
    """Return the table of statistics with their values under calibration; p-values may be upper bounds."""
    rows = [component._row(bound=bound) for component in components]
    return Table(("statistic", "value", "under calibration (5 % to 95 %)", "p-value"), rows)


def numbers_line(statistic: Any, derived: Mapping[str, Any]) -> str:
    """Return derived numbers as a line of a report, arrays left out; empty where there are none."""
    numbers = [
        f"{name.replace('_', ' ')} {value:.4g}" for name, value in derived.items() if isinstance(value, float | int)
    ]
    return f"{statistic}: {', '.join(numbers)}." if numbers else ""
