"""Result of `reliability_curve`: the cells of a reliability diagram with their bars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest.estimation._cell_tests import EXACT, CellTests, smallest_adjusted
from caltest.predictions._lens import LensLike
from caltest.predictions._validation import validate_level
from caltest.resampling import correct_pvalues
from caltest.results import Note, Result
from caltest.results._description import Description, Table, counted
from caltest.results._naming import describe
from caltest.results._test_result import percent

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ReliabilityCurve(Result):
    """Result of `reliability_curve`; one entry per occupied cell (bin), in increasing order.

    Attributes
    ----------
    lower, upper : arrays of shape (n_cells,)
        Ends of each cell on the probability axis.
    count : array of shape (n_cells,)
        Number of observations in each cell.
    predicted : array of shape (n_cells,)
        Average predicted probability of the event.
    expected : array of shape (n_cells,)
        Expected frequency under the null hypothesis: ``predicted``, or the average of a known calibration function.
    observed : array of shape (n_cells,)
        Frequency of the event, with sample weights the weighted one.
    bar_low, bar_high : arrays of shape (n_cells,)
        Ends of the bars, as frequencies. Consistency bars contain ``observed`` if the model is calibrated; confidence
        bars contain the mean of the calibration function in the cell.
    bars : {"consistency", "confidence"}
        The kind of the bars.
    confidence_level : float
        Level of the bars, of each cell or of all cells together.
    simultaneous : bool
        Whether it is the level of all cells together.
    exact : bool
        Whether the bars are computed from the exact distribution of each cell.
    lens : lens
        The lens.
    lens_name : str
        The lens in words.
    partition : Partition or callable
        The cells (bins).
    notes : tuple of Note
        Cautions.
    density_edges, density : arrays of shape (n_bins + 1,) and (n_bins,)
        Distribution of the predictions: share of the observations in bins that are finer near 0 and 1.
    error : float
        Average of the absolute ``deviation``, weighted with the observations: the ECE in these cells.
    noise_floor : float
        Average of this error if the model is calibrated, predictions fixed: exact, from the simulated labels with
        sample weights or groups.
    pvalue : array of shape (n_cells,)
        Two-sided p-value of each cell, not adjusted; see `cell_tests` for all cells together.
    smallest_pvalue : array of shape (n_cells,)
        Smallest p-value that is possible in each cell; that of few observations or groups is large.
    origin : str
        Where the p-values come from, in words.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    count: NDArray[np.int64]
    predicted: NDArray[np.float64]
    expected: NDArray[np.float64]
    observed: NDArray[np.float64]
    bar_low: NDArray[np.float64]
    bar_high: NDArray[np.float64]
    bars: str
    confidence_level: float
    simultaneous: bool
    exact: bool
    lens: LensLike
    lens_name: str
    partition: Any
    notes: tuple[Note, ...]
    density_edges: NDArray[np.float64]
    density: NDArray[np.float64]
    error: float
    noise_floor: float
    pvalue: NDArray[np.float64]
    smallest_pvalue: NDArray[np.float64]
    origin: str

    _picture: ClassVar[str | None] = "plot_reliability"
    _derived: ClassVar[tuple[str, ...]] = ("outside", "conclusion")

    @property
    def n_cells(self) -> int:
        """Number of occupied cells."""
        return len(self.count)

    @property
    def deviation(self) -> NDArray[np.float64]:
        """``observed - expected``, ``(n_cells,)``."""
        return self.observed - self.expected

    @property
    def outside(self) -> NDArray[np.bool_]:
        """Cells with the observed frequency (consistency bars) or the expected one outside the bar, ``(n_cells,)``."""
        point = self.observed if self.bars == "consistency" else self.expected
        return (point < self.bar_low - 1e-12) | (point > self.bar_high + 1e-12)

    def cell_tests(self, correction: str = "holm", *, alpha: float = 0.05) -> CellTests:
        r"""Test every cell (bin), with p-values adjusted for the number of cells.

        With predictions fixed, the number of events :math:`K_b` of a cell has a Poisson-binomial distribution under the
        null hypothesis. With k events observed,

        .. math:: p_b = \min(1, 2 \min(P(K_b \le k), P(K_b \ge k)))

        is a p-value that is valid at every sample size; if a label of the cell had been given probability 0, it is the
        smallest possible. Cells are independent given the predictions, so every correction below controls the
        probability of any false rejection. The tests do not depend on the bars of the curve. A cell may be calibrated
        on average and miscalibrated within.

        With ``groups`` the p-value is the largest one of those of simulated labels, of random signs of whole groups,
        and of the confidence interval for the effective number of observations. In a cell of G groups it is at least
        :math:`2^{1-G}`: one with three groups cannot be rejected. Cells that cannot be rejected, whatever is observed
        in them, are undecidable, and the result says so.

        Parameters
        ----------
        correction : {"holm", "bonferroni", "holm-sidak", "sidak", "simes-hochberg", "hommel"}
            How p-values are adjusted for the number of cells, by ``statsmodels.stats.multitest``.
        alpha : float
            Largest probability with which any cell is rejected if the model is calibrated.

        Returns
        -------
        CellTests
            Prints as a table; `caltest.plotting.plot_reliability` marks the rejected cells with it.

        Raises
        ------
        ValueError
            If ``correction`` is unknown, or ``alpha`` is not strictly between 0 and 1.

        References
        ----------
        J. Bröcker and L. A. Smith (2007), Increasing the reliability of reliability diagrams, Weather and Forecasting.
        S. Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics.

        Examples
        --------
        >>> import caltest
        >>> y_true, models = caltest.datasets.load_digits_predictions()
        >>> curve = caltest.reliability_curve(y_true, models["logistic_regression"], partition=caltest.EqualWidth(5))
        >>> tests = curve.cell_tests()
        >>> [f"{q:.2g}" for q in tests.pvalue_adjusted]
        ['0.13', '0.0062', '8.3e-10', '8.5e-13']
        >>> tests.rejected.tolist()
        [False, True, True, True]
        """
        return CellTests(
            lower=self.lower,
            upper=self.upper,
            count=self.count,
            expected=self.expected,
            observed=self.observed,
            pvalue=self.pvalue,
            pvalue_adjusted=correct_pvalues(self.pvalue, correction),
            smallest_pvalue=self.smallest_pvalue,
            smallest_adjusted=smallest_adjusted(self.pvalue, self.smallest_pvalue, correction),
            correction=correction,
            alpha=validate_level(alpha, "alpha"),
            lens_name=self.lens_name,
            partition=self.partition,
            origin=self.origin,
        )

    @property
    def conclusion(self) -> str:
        """How many cells are outside their bars, and what the bars mean, in words."""
        point = "observed frequency" if self.bars == "consistency" else "average prediction"
        size = f"The ECE in these cells is {self.error:.4g}; a calibrated model has {self.noise_floor:.4g} on average."
        found = f"In {int(self.outside.sum())} of {self.n_cells} cells (bins) the {point} is outside its bar."
        return f"{found} {self._meaning} {size}"

    @property
    def _meaning(self) -> str:
        level = percent(self.confidence_level)
        if self.bars == "confidence":
            if self.simultaneous:
                return f"With {level} confidence all bars contain the means of the calibration function in their cells."
            return f"With {level} confidence a bar contains the mean of the calibration function in its cell."
        known = np.array_equal(self.expected, self.predicted)
        calibrated = "the model is calibrated" if known else "the given calibration function is the true one"
        made = "" if self.exact else " The bars come from resampled observations and are approximate."
        if self.origin != EXACT:
            wider = "; the widest bar counts" if "random signs" in self.origin else ""
            made = f" The bars come from {self.origin}{wider}."
        if self.simultaneous:
            return f"If {calibrated}, all frequencies are inside their bars in at least {level} of data sets.{made}"
        chance = percent(round(1 - self.confidence_level, 12))
        return f"If {calibrated}, at most about {chance} of the cells are outside by chance.{made}"

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each cell as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            Ends of the cell, number of observations, predictions, frequencies, deviation, bar, p-value.
        """
        import pandas as pd

        names = ("lower", "upper", "count", "predicted", "expected", "observed", "deviation", "bar_low", "bar_high")
        return pd.DataFrame({name: getattr(self, name) for name in (*names, "outside", "pvalue")})

    def _describe(self) -> Description:
        digits = _digits(self.lower, self.upper)
        rows = [
            (
                f"{cell.lower:.{digits}f} to {cell.upper:.{digits}f}",
                f"{cell.count}",
                f"{cell.predicted:.{digits}f}",
                f"{cell.observed:.4f}",
                f"{cell.bar_low:.4f} to {cell.bar_high:.4f}",
                "*" if cell.outside else "",
            )
            for cell in self.to_frame().itertuples()
        ]
        bar = f"{self.bars} bar"
        return Description(
            f"Reliability curve ({self.lens_name}, {counted(int(self.count.sum()))}, {describe(self.partition)})",
            [self.conclusion],
            [Table(("cell (bin)", "observations", "predicted", "observed", bar, "outside"), rows)],
            notes=self.notes,
        )


def _digits(lower: NDArray[np.float64], upper: NDArray[np.float64]) -> int:
    """Return the decimals that tell the two ends of every cell apart, from 4 to 6."""
    wide = upper - lower
    narrow = wide[wide > 0].min(initial=1.0)
    return int(np.clip(np.ceil(-np.log10(narrow)), 4, 6))
