"""Tests of single cells (bins): one exact test for each, with p-values adjusted for their number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from caltest.predictions._arrays import Booleans, Floats, Integers
from caltest.resampling import correct_pvalues
from caltest.resampling.distributions._base import SMALLEST_PVALUE
from caltest.resampling.distributions._poisson_binomial import SMALLEST_EXACT, PoissonBinomial, count_bound
from caltest.results import Result
from caltest.results._decision import NO_PROOF, align_pvalue, rejects, show_pvalue
from caltest.results._description import Description, Table, counted, join, percent
from caltest.results._naming import describe

_ROUNDING = 1e-12  # of a frequency
EXACT = (
    "the exact Poisson-binomial distribution of the number of events, predictions fixed (valid at every sample size)"
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CellTests(Result):
    """Result of `ReliabilityCurve.cell_tests`; one entry per occupied cell (bin), in the order of the curve.

    Attributes
    ----------
    lower, upper : arrays of shape (n_cells,)
        Ends of each cell on the probability axis.
    count : array of shape (n_cells,)
        Number of observations in each cell.
    expected, observed : arrays of shape (n_cells,)
        Frequency of the event under the null hypothesis, and in the data.
    pvalue : array of shape (n_cells,)
        Exact two-sided p-value of each cell, not adjusted.
    pvalue_adjusted : array of shape (n_cells,)
        P-values adjusted for the number of cells.
    smallest_pvalue : array of shape (n_cells,)
        Smallest p-value that is possible in each cell, not adjusted.
    smallest_adjusted : array of shape (n_cells,)
        Adjusted p-value that each cell would have with it; a cell with a larger one than ``alpha`` is undecidable.
    correction : str
        How p-values were adjusted.
    alpha : float
        Cells with an adjusted p-value of at most this level are rejected. If the model is calibrated, the probability
        that any cell is rejected is at most this level.
    lens_name : str
        The lens in words.
    partition : Partition or callable
        The cells (bins).
    origin : str
        Where the p-values come from, in words.

    See Also
    --------
    caltest.reliability_curve : Its result has the method ``cell_tests``, which returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel, Temperature
    >>> _, y_true, y_prob = DirichletModel(2, truth=Temperature(2.0)).draw(300, rng=0)
    >>> cells = caltest.reliability_curve(y_true, y_prob[:, 1]).cell_tests()
    >>> cells.count[:3], cells.pvalue_adjusted[:3].round(3)
    (array([21, 15, 23]), array([1.  , 0.08, 0.08]))
    """

    lower: Floats
    upper: Floats
    count: Integers
    expected: Floats
    observed: Floats
    pvalue: Floats
    pvalue_adjusted: Floats
    smallest_pvalue: Floats
    smallest_adjusted: Floats
    correction: str
    alpha: float
    lens_name: str
    partition: Any
    origin: str

    _derived: ClassVar[tuple[str, ...]] = ("rejected", "undecidable", "conclusion")
    _columns: ClassVar[tuple[str, ...]] = (
        *("lower", "upper", "count", "expected", "observed"),
        *("pvalue", "pvalue_adjusted", "rejected", "undecidable"),
    )

    @property
    def n_cells(self) -> int:
        """Number of tests."""
        return len(self.count)

    @property
    def rejected(self) -> Booleans:
        """Whether calibration is rejected in each cell, ``(n_cells,)``."""
        return rejects(self.pvalue_adjusted, self.alpha)

    @property
    def undecidable(self) -> Booleans:
        """Whether calibration cannot be rejected in a cell, whatever is observed there, ``(n_cells,)``."""
        return ~rejects(self.smallest_adjusted, self.alpha) & ~self.rejected

    @property
    def conclusion(self) -> str:
        """The decision in words."""
        undecidable = self._about_undecidable
        return f"{self._decision} {undecidable}" if undecidable else self._decision

    @property
    def _about_undecidable(self) -> str:
        """Say in how many cells nothing can be decided, and why."""
        number = int(self.undecidable.sum())
        if not number:
            return ""
        least = show_pvalue(float(self.smallest_adjusted[self.undecidable].min()))
        many = "All cells (bins) are" if number == self.n_cells > 1 else "1 cell (bin) is"
        if 1 < number < self.n_cells:
            many = f"{number} cells (bins) are"
        one = number == 1
        return (
            f"{many} undecidable: {'it has' if one else 'they have'} so few observations or groups that no adjusted "
            f"p-value below {least} is possible in {'it' if one else 'them'}. Wider cells hold more."
        )

    @property
    def _decision(self) -> str:
        found = np.flatnonzero(self.rejected)
        decision = (
            f"After {self.correction.title()}'s correction calibration is rejected in {found.size or 'none'} of the "
            f"{self.n_cells} cells (bins) at the {percent(self.alpha)} level."
        )
        if not found.size:
            return f"{decision} {NO_PROOF}"
        gap = self.observed - self.expected
        n_more, n_less = int((gap[found] > _ROUNDING).sum()), int((gap[found] < -_ROUNDING).sum())
        worst = found[np.argmax(np.abs(gap[found]))]
        largest = f"{gap[worst]:+z.3f}, is in the cell from {self.lower[worst]:.4g} to {self.upper[worst]:.4g}"
        n_equal = found.size - n_more - n_less  # rejected because of a label that is impossible
        counts = [
            (n_more, f"more frequent than predicted in {n_more}"),
            (n_less, f"less frequent than predicted in {n_less}"),
            (n_equal, f"as frequent as predicted, but with a label that had been given probability 0, in {n_equal}"),
        ]
        directions = join(words for number, words in counts if number)
        return f"{decision} The event is {directions} of these. The largest deviation, {largest}."

    def _describe(self) -> Description:
        rows = [
            (
                f"{cell.lower:.4f} to {cell.upper:.4f}",
                f"{cell.count:,}",
                f"{cell.expected:.4f}",
                f"{cell.observed:.4f}",
                align_pvalue(cell.pvalue, bound=cell.pvalue <= SMALLEST_EXACT),
                align_pvalue(cell.pvalue_adjusted, bound=cell.pvalue <= SMALLEST_EXACT),
                "*" if cell.rejected else "undecidable" if cell.undecidable else "",
            )
            for cell in self.to_frame().itertuples()
        ]
        n_samples = int(self.count.sum())
        return Description(
            f"Tests of single cells ({self.lens_name}, {counted(n_samples)}, {describe(self.partition)})",
            [self.conclusion],
            [Table(("cell (bin)", "count", "expected", "observed", "p-value", "adjusted p", "rejected"), rows)],
            [
                f"p-value: two-sided, from {self.origin}.",
                f"If the model is calibrated, the probability that any cell is rejected is at most "
                f"{percent(self.alpha)}.",
            ],
        )


def cell_pvalue(distribution: PoissonBinomial, probabilities: Floats, n_events: int) -> float:
    r"""Return the two-sided p-value of a cell, :math:`\min(1, 2 \min(P(K \le k), P(K \ge k)))`.

    Parameters
    ----------
    distribution : PoissonBinomial
        Distribution of the number of events.
    probabilities : array of shape (n,)
        Probabilities of the events; below 1e-12 they give Chernoff's upper bound of the p-value.
    n_events : int
        The observed number k.
    """
    pvalue = distribution.two_sided(n_events)
    if pvalue < SMALLEST_EXACT:
        upper = n_events > probabilities.sum()
        pvalue = min(2 * count_bound(probabilities, n_events, upper=upper), SMALLEST_EXACT)
    return max(pvalue, SMALLEST_PVALUE)


def smallest_adjusted(pvalue: Floats, smallest: Floats, correction: str) -> Floats:
    """Return the adjusted p-value ``(n_cells,)`` that each cell would have with its smallest p-value."""
    found = np.empty(len(pvalue))
    for cell, least in enumerate(smallest):
        values = pvalue.copy()
        values[cell] = min(least, values[cell])
        found[cell] = correct_pvalues(values, correction)[cell]
    return found
