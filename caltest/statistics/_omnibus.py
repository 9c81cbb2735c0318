"""The default test: an exact min-p over statistics that see different kinds of miscalibration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._sample import Sample
from caltest.resampling._distributions import TIE_TOLERANCE
from caltest.statistics._base import Statistic
from caltest.statistics._binned import ECE
from caltest.statistics._cumulative import ClasswiseKS
from caltest.statistics._temperature import TemperatureScore


def _default_parts() -> tuple[Statistic, ...]:
    return (ECE(), TemperatureScore(), ClasswiseKS())


@dataclass(frozen=True)
class Omnibus(Statistic):
    r"""Exact min-p over several statistics on the same draws; the default test.

    Every component c has a p-value :math:`p_c`, its rank among all B + 1 data sets, the observed one included; so has
    every draw. The statistic is :math:`-\log_{10} \min_c p_c`, and its p-value the rank of the observed components'
    sorted p-values, compared lexicographically: ties in the smallest are broken by the next. All B + 1 rows are
    treated alike, so the p-value is valid at every n (Besag & Clifford 1989; Westfall & Young 1993). It combines
    components and is not itself an error: there is nothing to estimate.

    Parameters
    ----------
    parts : tuple of Statistic
        ``(ECE(), TemperatureScore(), ClasswiseKS())``: the tree ECE cannot see under-confidence, the score
        sees it best, and the paths see shifts of single classes.

    Raises
    ------
    ValueError
        If there are fewer than two parts, or one is not a statistic with a value of its own.

    Examples
    --------
    >>> import caltest
    >>> print(caltest.Omnibus())
    Omnibus()
    """

    parts: tuple[Statistic, ...] = field(default_factory=_default_parts)

    def __post_init__(self) -> None:
        parts = tuple(self.parts)
        simple = all(isinstance(part, Statistic) and part.components == (part,) for part in parts)
        if len(parts) < 2 or not simple:
            msg = f"`parts` must be at least two statistics other than Omnibus, got {self.parts!r}."
            raise ValueError(msg)
        object.__setattr__(self, "parts", parts)

    @property
    def components(self) -> tuple[Statistic, ...]:
        """The statistics that are combined."""
        return self.parts

    def evaluate(self, sample: Sample, outcomes: NDArray[Any]) -> NDArray[np.float64]:
        """Raise ValueError: a combination of tests has no value on one data set."""
        msg = (
            "`Omnibus` combines tests and estimates no error; use calibration_test, or another statistic such as ECE()."
        )
        raise ValueError(msg)


def tail_pvalues(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for every value ``(..., n)`` the share of the values on its last axis that are at least as large.

    Values that differ by less than 1e-12 of the largest are ties and count: relative to the values alone, rounding
    would decide among those that cancel to 0. With the observed value among the n = B + 1 this is
    ``(1 + #{null >= observed}) / (1 + B)``.
    """
    n = values.shape[-1]
    pvalues = np.empty(values.shape)
    for row, out in zip(values.reshape(-1, n), pvalues.reshape(-1, n), strict=True):
        slack = TIE_TOLERANCE * np.abs(row[np.isfinite(row)]).max(initial=0.0)
        out[:] = (n - np.searchsorted(np.sort(row), row - slack, side="left")) / n
    return pvalues


def combine_pvalues(pvalues: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the exact min-p p-value of each of the n data sets from component p-values ``(n_components, n)``.

    Columns are ranked by their sorted p-values in lexicographic order; the p-value of a column is the share of columns
    that rank no higher.
    """
    n = pvalues.shape[1]
    ordered = np.sort(pvalues, axis=0)
    # np.lexsort sorts by its last key first.
    order = np.lexsort(ordered[::-1])
    ranked = ordered[:, order]
    new = np.append(np.any(ranked[:, 1:] != ranked[:, :-1], axis=0), True)
    last_tie = np.flatnonzero(new)[np.searchsorted(np.flatnonzero(new), np.arange(n))]
    combined = np.empty(n)
    combined[order] = (last_tie + 1) / n
    return combined
