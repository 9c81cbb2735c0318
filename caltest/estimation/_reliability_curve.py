"""The reliability curve: observed frequencies against predictions, with consistency or confidence bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.estimation._cell_tests import CellTests, cell_pvalue
from caltest.predictions._cells import Cells, CellSums, few_cells_notes
from caltest.predictions._lens import LensLike, lens_name
from caltest.predictions._partitions import EqualWidth, Intervals, Partition
from caltest.predictions._sample import Sample, make_event_sample
from caltest.predictions._user_functions import Region
from caltest.predictions._validation import SeedLike, validate_bool, validate_choice, validate_level
from caltest.resampling import Consistency, correct_pvalues
from caltest.resampling._distributions import SMALLEST_PVALUE
from caltest.resampling._poisson_binomial import PoissonBinomial
from caltest.resampling._row_draws import RowDraws
from caltest.resampling._schemes import validate_resampling
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
        Frequency of the event.
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
        Distribution of the predictions: share of the observations in bins of equal width.
    pvalue : array of shape (n_cells,)
        Exact two-sided p-value of each cell, not adjusted; see `cell_tests` for all cells together.
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
    pvalue: NDArray[np.float64]

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
        slack = 1e-12
        return (point < self.bar_low - slack) | (point > self.bar_high + slack)

    def cell_tests(self, correction: str = "holm", *, alpha: float = 0.05) -> CellTests:
        r"""Test every cell (bin), with p-values adjusted for the number of cells.

        With predictions fixed, the number of events :math:`K_b` of a cell has a Poisson-binomial distribution under the
        null hypothesis. With k events observed,

        .. math:: p_b = \min(1, 2 \min(P(K_b \le k), P(K_b \ge k)))

        is a p-value that is valid at every sample size; if a label of the cell had been given probability 0, it is the
        smallest possible. Cells are independent given the predictions, so every correction below controls the
        probability of any false rejection. The tests do not depend on the bars of the curve. A cell may be calibrated
        on average and miscalibrated within.

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
        ['0.13', '0.0062', '8.3e-10', '2.4e-13']
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
            correction=correction,
            alpha=validate_level(alpha, "alpha"),
            lens_name=self.lens_name,
            partition=self.partition,
        )

    @property
    def conclusion(self) -> str:
        """How many cells are outside their bars, and what the bars mean, in words."""
        point = "observed frequency" if self.bars == "consistency" else "average prediction"
        found = f"In {int(self.outside.sum())} of {self.n_cells} cells (bins) the {point} is outside its bar."
        return f"{found} {self._meaning}"

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
        rows = [
            (
                f"{cell.lower:.4f} to {cell.upper:.4f}",
                f"{cell.count}",
                f"{cell.predicted:.4f}",
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


def reliability_curve(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    lens: LensLike | None = None,
    partition: Partition | Any | None = None,
    region: Region | None = None,
    bars: str = "consistency",
    confidence_level: float = 0.9,
    simultaneous: bool = False,
    resampling: Consistency | None = None,
    n_resamples: int = 999,
    rng: SeedLike = None,
) -> ReliabilityCurve:
    r"""Compute observed frequencies and consistency bars for a reliability diagram.

    With predictions fixed, the number of events :math:`K_b` of a cell (bin) has a Poisson-binomial distribution under
    the null hypothesis. The consistency bar of level :math:`\gamma` is the closed interval of frequencies with
    :math:`P(K_b / n_b < \text{low}) \le (1 - \gamma) / 2` and :math:`P(K_b / n_b > \text{high}) \le (1 - \gamma) / 2`.
    Cells are independent given the predictions, so simultaneous bars of L cells have level :math:`\gamma^{1/L}` each.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    lens : lens, optional
        A lens with two outcomes; by default `Confidence()`, or the event itself for two classes.
    partition : Partition or callable, optional
        Cells of the event's probability; ``EqualWidth(15)`` by default.
    region : callable, optional
        From induced probabilities ``(n_samples, 2)`` to booleans ``(n_samples,)``; others are left out.
    bars : {"consistency", "confidence"}
        Quantiles of the frequency if the model is calibrated; or Clopper-Pearson intervals around the observed
        frequency, from ``statsmodels.stats.proportion``.
    confidence_level : float
        Level of the bars; 0.9 leaves 5 % on either side.
    simultaneous : bool
        Whether the level holds for all cells at once.
    resampling : Consistency, optional
        The null hypothesis; with ``resample_predictions=True`` the consistency bars are quantiles of deviations over
        resampled observations, as in figure 4 of Vaicenavicius et al. (2019), and only approximate.
    n_resamples : int
        Number of resamples, with ``resample_predictions=True``.
    rng : None, int or numpy.random.Generator
        Source of randomness, with ``resample_predictions=True``.

    Returns
    -------
    ReliabilityCurve
        Data for `caltest.plotting.plot_reliability`; prints as a table.

    Raises
    ------
    TypeError
        If ``resampling`` is no `Consistency`, or ``lens``, ``partition`` or ``region`` has a wrong type.
    ValueError
        If ``y_prob`` has values outside [0, 1] or does not sum to 1, a label is unknown or lengths differ; if the lens
        has more than two outcomes; if ``bars`` is unknown, ``confidence_level`` is not strictly between 0 and 1, or
        ``n_resamples`` < 1; if no observation lies in the region.

    References
    ----------
    J. Bröcker and L. A. Smith (2007), Increasing the reliability of reliability diagrams, Weather and Forecasting.
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, section 4.4.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> curve = caltest.reliability_curve(y_true, y_prob)
    >>> curve.n_cells, int(curve.outside.sum())
    (11, 6)
    """
    validate_choice(bars, "bars", ("consistency", "confidence"))
    validate_bool(simultaneous, "simultaneous")
    level = validate_level(confidence_level, "confidence_level")
    scheme = validate_resampling(Consistency() if resampling is None else resampling)
    sample, look = make_event_sample(y_true, y_prob, classes=classes, lens=lens, region=region)
    sample = scheme.under_null(sample)
    cut = EqualWidth(15) if partition is None else partition
    cells = sample.cells(cut)
    order = np.argsort(cells.predicted_sum[:, 1] / cells.count)
    sums = CellSums.of(sample, cells, sample.outcome)
    counts = [PoissonBinomial.of(p) for p in cells.split(sample.expected[:, 1])]
    cell_level = level ** (1 / cells.n_cells) if simultaneous else level
    if bars == "confidence":
        low, high = _confidence_bars(sums, cell_level)
    elif scheme.resample_predictions:
        low, high = _resampled_bars(sample, cut, sums, RowDraws.of(n_resamples, rng), cell_level)
    else:
        low, high = _consistency_bars(counts, cells, cell_level)
    lower, upper = _cell_ends(sample, cells)
    density, edges = np.histogram(np.clip(sample.event, 0.0, 1.0), bins=40, range=(0.0, 1.0))
    return ReliabilityCurve(
        lower=lower[order],
        upper=upper[order],
        count=cells.count[order].astype(np.int64),
        predicted=(cells.predicted_sum[:, 1] / cells.count)[order],
        expected=sums.predicted[order, 1],
        observed=sums.observed[order, 1],
        bar_low=low[order],
        bar_high=high[order],
        bars=bars,
        confidence_level=level,
        simultaneous=simultaneous,
        exact=bars == "consistency" and not scheme.resample_predictions,
        lens=look,
        lens_name=lens_name(look, classes),
        partition=cut,
        notes=few_cells_notes(sample, cut),
        density_edges=edges,
        density=density / sample.n_samples,
        pvalue=_cell_pvalues(sample, cells, counts)[order],
    )


def _cell_pvalues(sample: Sample, cells: Cells, counts: Sequence[PoissonBinomial]) -> NDArray[np.float64]:
    probabilities, events = cells.split(sample.expected[:, 1]), cells.split(sample.outcome == 1)
    pvalues = [cell_pvalue(count, p, int(y.sum())) for count, p, y in zip(counts, probabilities, events, strict=True)]
    excluded = cells.split(np.isin(sample.row, sample.impossible))
    return np.where([rows.any() for rows in excluded], SMALLEST_PVALUE, pvalues)


def _consistency_bars(
    counts: Sequence[PoissonBinomial], cells: Cells, level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    ends = np.array([count.central_interval(level) for count in counts]) / cells.count[:, None]
    return ends[:, 0], ends[:, 1]


def _resampled_bars(
    sample: Sample, partition: Any, sums: CellSums, draws: RowDraws, level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    drawn = draws.sums_of_fixed_cells(sample, partition)
    deviation = np.concatenate([
        np.where(part.count > 0, part.observed[..., 1] - part.predicted[..., 1], np.nan) for part in drawn
    ])  # fmt: skip
    expected = sums.predicted[:, 1]
    deviation[:, np.isnan(deviation).all(axis=0)] = 0.0
    low, high = np.nanquantile(deviation, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return expected + low, expected + high


def _confidence_bars(sums: CellSums, level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(sums.observed_count[:, 1], sums.count, alpha=1 - level, method="beta")
    return np.asarray(low), np.asarray(high)


def _cell_ends(sample: Sample, cells: Cells) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of each cell; for a user's own partition the range of its predictions."""
    if isinstance(cells.assign, Intervals):
        ends = np.concatenate([[0.0], cells.assign.edges, [1.0]])
        return ends[cells.label], ends[cells.label + 1]
    members = cells.split(sample.event)
    return np.array([m.min() for m in members]), np.array([m.max() for m in members])
