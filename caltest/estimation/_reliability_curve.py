"""The reliability curve: observed frequencies against predictions, with bars that say what chance explains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.estimation._cell_tests import CellTests, cell_pvalue
from caltest.predictions._lenses import Canonical, Confidence, Lens
from caltest.predictions._partitions import EqualWidth, Intervals, Partition
from caltest.predictions._sample import Cells, CellSums, Region, Sample, make_sample
from caltest.predictions._validation import SeedLike, validate_choice, validate_level, validate_prob
from caltest.resampling._distributions import PoissonBinomial
from caltest.resampling._draws import Draws
from caltest.resampling._multiple_testing import correct_pvalues
from caltest.resampling._schemes import Consistency
from caltest.results._naming import describe

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """What a reliability diagram shows, as data; one entry per occupied cell, in increasing order.

    Attributes
    ----------
    lower, upper : arrays of shape (n_cells,)
        Ends of each cell on the probability axis.
    count : array of shape (n_cells,)
        Rows in each cell.
    predicted : array of shape (n_cells,)
        Average predicted probability of the event.
    expected : array of shape (n_cells,)
        What the null hypothesis expects: ``predicted``, or the average of a known calibration function.
    observed : array of shape (n_cells,)
        Frequency of the event.
    bar_low, bar_high : arrays of shape (n_cells,)
        Ends of the bars, as frequencies: consistency bars hold ``observed`` if the model is calibrated, confidence
        bars hold the mean calibration function in the cell.
    bars : {"consistency", "confidence"}
        Which of the two.
    confidence_level : float
        Probability with which a bar holds, per cell or for all cells.
    simultaneous : bool
        Whether the level is that of all cells together.
    exact : bool
        Whether the bars come from the exact law of each cell.
    lens, partition : str
        What was looked at and how it was cut.
    density_edges, density : arrays of shape (n_bins + 1,) and (n_bins,)
        Distribution of the predictions: share of the rows in bins of equal width.
    pvalue : array of shape (n_cells,)
        Exact two-sided p-value of each cell by itself, whatever the bars; see `cell_tests` for all cells together.
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
    lens: str
    partition: str
    density_edges: NDArray[np.float64]
    density: NDArray[np.float64]
    pvalue: NDArray[np.float64]

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
        """Cells where calibration lies outside the bar, ``(n_cells,)``: the observed frequency, or the expected one."""
        point = self.observed if self.bars == "consistency" else self.expected
        slack = 1e-12
        return (point < self.bar_low - slack) | (point > self.bar_high + slack)

    @property
    def reading(self) -> str:
        """What may be said about the bars, in words."""
        level = f"{self.confidence_level:.0%}"
        if self.bars == "confidence":
            each = "all bars hold" if self.simultaneous else "each bar holds"
            return f"With probability at least {level} {each} the average calibration function of its cell."
        known = np.array_equal(self.expected, self.predicted)
        held = "the model were calibrated" if known else "the given calibration function were the true one"
        made = "" if self.exact else " (bars from resampled rows: approximate)"
        if self.simultaneous:
            return f"If {held}, all points would lie in their bars in at least {level} of cases{made}."
        chance = 1 - self.confidence_level
        return (
            f"If {held} through this lens, each bar would hold its point with probability at least "
            f"{level}; at most about {chance:.0%} of the cells fall outside by chance{made}."
        )

    def cell_tests(self, correction: str = "holm", *, level: float = 0.05) -> CellTests:
        r"""Test every cell, with control of the probability of any false rejection: which cells carry the evidence?

        With predictions fixed, the events :math:`K_b` of a cell follow a Poisson-binomial law under the null
        hypothesis, and with k of them observed

        .. math:: p_b = \min(1, 2 \min(P(K_b \le k), P(K_b \ge k)))

        is valid at every number of rows; if a label of the cell had probability 0, it is the smallest attainable.
        Cells are independent given the predictions, so that every correction below holds. What the bars of the curve
        are does not matter. A cell may be calibrated on average and miscalibrated within.

        Parameters
        ----------
        correction : {"holm", "bonferroni", "holm-sidak", "sidak", "simes-hochberg", "hommel"}
            Over the cells, by ``statsmodels.stats.multitest``.
        level : float
            Largest probability with which any cell is rejected although the hypothesis holds.

        Returns
        -------
        CellTests
            Prints as a table; `caltest.plot_reliability` marks the rejected cells with it.

        Raises
        ------
        ValueError
            If an argument is not of the form above.

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
        >>> [f"{q:.2g}" for q in tests.pvalue_corrected]
        ['0.13', '0.0062', '8.3e-10', '2.4e-13']
        >>> tests.rejected.tolist()
        [False, True, True, True]
        """
        return CellTests(
            self.lower,
            self.upper,
            self.count,
            self.expected,
            self.observed,
            self.pvalue,
            correct_pvalues(self.pvalue, correction),
            correction,
            validate_level(level, "level"),
            self.lens,
            self.partition,
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row per cell as a pandas frame."""
        import pandas as pd

        names = ("lower", "upper", "count", "predicted", "expected", "observed", "deviation", "bar_low", "bar_high")
        return pd.DataFrame({name: getattr(self, name) for name in (*names, "outside")})

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def __str__(self) -> str:
        head = f"{'cell':>17} {'rows':>8} {'predicted':>10} {'observed':>10} {'bar':>19}"
        rows = [
            f"[{low:.4f}, {high:.4f}] {count:>8} {g:>10.4f} {r:>10.4f}   [{a:.4f}, {b:.4f}]{' *' if out else ''}"
            for low, high, count, g, r, a, b, out in zip(
                self.lower, self.upper, self.count, self.predicted, self.observed, self.bar_low, self.bar_high,
                self.outside, strict=True,
            )
        ]  # fmt: skip
        title = f"Reliability curve through {self.lens}, {self.partition}, {self.bars} bars (* outside)"
        return "\n".join([title, head, *rows, self.reading])


def reliability_curve(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    partition: Partition | Any | None = None,
    region: Region | None = None,
    bars: str = "consistency",
    confidence_level: float = 0.9,
    simultaneous: bool = False,
    resampling: Consistency | None = None,
    n_resamples: int = 999,
    rng: SeedLike = None,
) -> ReliabilityCurve:
    r"""Compute a reliability diagram: frequencies against predictions, with bars that say what chance explains.

    With predictions fixed, the events :math:`K_b` of a cell follow a Poisson-binomial law under the null hypothesis;
    the consistency bar of level :math:`\gamma` is the closed interval of frequencies with
    :math:`P(K_b / n_b < \text{low}) \le (1 - \gamma) / 2` and :math:`P(K_b / n_b > \text{high}) \le (1 - \gamma) / 2`.
    Cells are independent given the predictions, so simultaneous bars use :math:`\gamma^{1/L}` per cell.

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
        From induced probabilities ``(n_samples, 2)`` to booleans; rows outside are left out.
    bars : {"consistency", "confidence"}
        Quantiles under calibration, around the diagonal; or Clopper-Pearson intervals around the estimate, from
        ``statsmodels.stats.proportion``.
    confidence_level : float
        Of the bars; 0.9 leaves 5 % on either side.
    simultaneous : bool
        Whether the level holds for all cells at once.
    resampling : Consistency, optional
        The null hypothesis; with ``resample_predictions=True`` the consistency bars are quantiles of deviations over
        resampled rows, as in figure 4 of the paper, and only approximate.
    n_resamples : int
        Number of resamples, where there are any.
    rng : None, int or numpy.random.Generator
        Source of randomness, where there is any.

    Returns
    -------
    ReliabilityCurve
        Data for `caltest.plot_reliability`; prints as a table.

    Raises
    ------
    ValueError
        If an argument is not of the form above, or the lens has more than two outcomes.

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
    level = validate_level(confidence_level, "confidence_level")
    scheme = Consistency() if resampling is None else resampling
    prob = validate_prob(y_prob)
    chosen = lens if lens is not None else Canonical() if prob.shape[1] == 2 else Confidence()
    sample = make_sample(y_true, prob, classes=classes, lens=chosen, region=region)
    if sample.n_outcomes != 2:
        msg = f"`lens` must have two outcomes, such as Confidence(), got {describe(chosen)} with {sample.n_outcomes}."
        raise ValueError(msg)
    sample = scheme.under_null(sample)
    cut = EqualWidth(15) if partition is None else partition
    cells = sample.cells(cut)
    order = np.argsort(cells.predicted_sum[:, 1] / cells.count)
    sums = CellSums.of(sample, cells, sample.outcome)
    laws = [PoissonBinomial.of(p) for p in cells.split(sample.expected[:, 1])]
    cell_level = level ** (1 / cells.n_cells) if simultaneous else level
    if bars == "confidence":
        low, high = _confidence_bars(sums, cell_level)
    elif scheme.resample_predictions:
        low, high = _resampled_bars(sample, cut, sums, scheme.draws(n_resamples, rng), cell_level)
    else:
        low, high = _consistency_bars(laws, cells, cell_level)
    lower, upper = _cell_ends(sample, cells)
    density, edges = np.histogram(np.clip(sample.event, 0.0, 1.0), bins=40, range=(0.0, 1.0))
    return ReliabilityCurve(
        lower[order],
        upper[order],
        cells.count[order].astype(np.int64),
        (cells.predicted_sum[:, 1] / cells.count)[order],
        sums.predicted[order, 1],
        sums.observed[order, 1],
        low[order],
        high[order],
        bars,
        level,
        simultaneous,
        exact=bars == "consistency" and not scheme.resample_predictions,
        lens=describe(chosen),
        partition=describe(cut),
        density_edges=edges,
        density=density / sample.n_samples,
        pvalue=_cell_pvalues(sample, cells, laws)[order],
    )


def _cell_pvalues(sample: Sample, cells: Cells, laws: Sequence[PoissonBinomial]) -> NDArray[np.float64]:
    probabilities, events = cells.split(sample.expected[:, 1]), cells.split(sample.outcome == 1)
    pvalues = [cell_pvalue(law, p, int(y.sum())) for law, p, y in zip(laws, probabilities, events, strict=True)]
    excluded = cells.split(np.isin(sample.row, sample.impossible))
    return np.where([rows.any() for rows in excluded], np.finfo(np.float64).tiny, pvalues)


def _consistency_bars(
    laws: Sequence[PoissonBinomial], cells: Cells, level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    ends = np.array([law.central_interval(level) for law in laws]) / cells.count[:, None]
    return ends[:, 0], ends[:, 1]


def _resampled_bars(
    sample: Sample, partition: Any, sums: CellSums, draws: Draws, level: float
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
    """Return the ends of each cell; for a user's own partition the range of its rows."""
    if isinstance(cells.assign, Intervals):
        ends = np.concatenate([[0.0], cells.assign.edges, [1.0]])
        return ends[cells.label], ends[cells.label + 1]
    members = cells.split(sample.event)
    return np.array([m.min() for m in members]), np.array([m.max() for m in members])
