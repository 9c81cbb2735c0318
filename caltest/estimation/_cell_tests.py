"""Which cells carry the evidence: one exact test per cell, corrected over the cells."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caltest.resampling._distributions import PoissonBinomial

if TYPE_CHECKING:
    import pandas as pd

_FAR_TAIL = 1e-8  # below, only sums of positive numbers keep their digits


@dataclass(frozen=True, eq=False)
class CellTests:
    """Result of `ReliabilityCurve.cell_tests`; one entry per occupied cell, in the order of the curve.

    Attributes
    ----------
    lower, upper : arrays of shape (n_cells,)
        Ends of each cell on the probability axis.
    count : array of shape (n_cells,)
        Rows in each cell.
    expected, observed : arrays of shape (n_cells,)
        Frequency of the event under the null hypothesis, and in the data.
    pvalue : array of shape (n_cells,)
        Exact two-sided p-value of each cell by itself.
    pvalue_corrected : array of shape (n_cells,)
        P-values corrected over the cells.
    correction : str
        How they were corrected.
    level : float
        Cells with a corrected p-value of at most this are rejected; without miscalibration, any cell is with at most
        this probability.
    lens, partition : str
        What was looked at and how it was cut.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    count: NDArray[np.int64]
    expected: NDArray[np.float64]
    observed: NDArray[np.float64]
    pvalue: NDArray[np.float64]
    pvalue_corrected: NDArray[np.float64]
    correction: str
    level: float
    lens: str
    partition: str

    @property
    def n_cells(self) -> int:
        """Number of tests."""
        return len(self.count)

    @property
    def rejected(self) -> NDArray[np.bool_]:
        """Cells that carry evidence against calibration, ``(n_cells,)``."""
        return self.pvalue_corrected <= self.level

    @property
    def conclusion(self) -> str:
        """What the tests say, in words."""
        found = int(self.rejected.sum())
        after = f"at level {self.level:.4g}, corrected over the cells ({self.correction})"
        if not found:
            return f"No cell carries evidence against calibration {after}; this is no proof of it."
        gap = self.observed - self.expected
        low, high = int((self.rejected & (gap < 0)).sum()), int((self.rejected & (gap > 0)).sum())
        rest = f"; {found - low - high} hold labels that had probability 0" if low + high < found else ""
        return (
            f"{found} of {self.n_cells} cells carry evidence against calibration {after}: the event happened "
            f"less often than expected in {low} of them, more often in {high}{rest}."
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row per cell as a pandas frame."""
        import pandas as pd

        names = ("lower", "upper", "count", "expected", "observed", "pvalue", "pvalue_corrected", "rejected")
        return pd.DataFrame({name: getattr(self, name) for name in names})

    def to_dict(self) -> dict[str, Any]:
        """Return cells, correction and conclusion as plain Python objects, ready for JSON."""
        return {
            "lens": self.lens,
            "partition": self.partition,
            "cells": self.to_frame().to_dict("records"),
            "correction": self.correction,
            "level": self.level,
            "conclusion": self.conclusion,
        }

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def __str__(self) -> str:
        lines = [
            f"Tests of the cells of {self.partition} through {self.lens} (* rejected)",
            f"{'cell':>17} {'rows':>8} {'expected':>9} {'observed':>9} {'p-value':>10} {'corrected':>10}",
        ]
        lines += [
            f"[{low:.4f}, {high:.4f}] {count:>8} {g:>9.4f} {r:>9.4f} {p:>10.4g} {q:>10.4g}{' *' if found else ''}"
            for low, high, count, g, r, p, q, found in zip(
                self.lower, self.upper, self.count, self.expected, self.observed, self.pvalue, self.pvalue_corrected,
                self.rejected, strict=True,
            )
        ]  # fmt: skip
        exact = (
            "p-value: exact, from the Poisson-binomial law of the events in the cell, predictions fixed (two-sided). "
            f"If the hypothesis holds, the probability that any cell is rejected is at most {self.level:.4g}."
        )
        for words in (self.conclusion, exact):
            lines += textwrap.wrap(words, width=100, subsequent_indent="  ")
        return "\n".join(lines)


def cell_pvalue(law: PoissonBinomial, probabilities: NDArray[np.float64], n_events: int) -> float:
    r"""Return the two-sided p-value of a cell, :math:`\min(1, 2 \min(P(K \le k), P(K \ge k)))`.

    Parameters
    ----------
    law : PoissonBinomial
        Law of the number of events.
    probabilities : array of shape (n,)
        What it is made of: far tails are summed again, without loss of digits.
    n_events : int
        The observed number k.
    """
    pvalue = law.two_sided(n_events)
    if pvalue < _FAR_TAIL:
        pvalue = PoissonBinomial.with_tails(probabilities).two_sided(n_events)
    return max(pvalue, float(np.finfo(np.float64).tiny))  # a p-value is never reported as 0
