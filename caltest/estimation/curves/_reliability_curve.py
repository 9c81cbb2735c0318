"""The reliability curve: observed frequencies against predictions, with consistency and confidence bars."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest.estimation._options import DesignedEventOptions, event_of
from caltest.estimation.curves._bars import (
    confidence_bars,
    consistency_bars,
    contradicted_cells,
    drawn_deviations,
    drawn_pvalues,
    effective_counts,
    exact_deviations,
    exact_pvalues,
    origin_of_cells,
    quantile_bars,
    resampled_bars,
    smallest_drawn_pvalues,
    smallest_pvalues,
)
from caltest.estimation.errors._cell_tests import EXACT, CellTests, smallest_adjusted
from caltest.estimation.uncertainty._prediction_distribution import EDGES, prediction_density
from caltest.predictions._arrays import Booleans, Floats, Integers
from caltest.predictions._lens import LensLike
from caltest.predictions._sample import Sample
from caltest.predictions.cells._cells import Cells, CellSums, cells_of, few_cells_notes
from caltest.predictions.cells._partitions import EqualWidth, Intervals, Partition
from caltest.predictions.cells._quantiles import EqualSpread, label_spread
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import SeedLike, validate_bool, validate_choice, validate_level
from caltest.resampling import correct_pvalues
from caltest.resampling.distributions._poisson_binomial import PoissonBinomial
from caltest.resampling.draws._rows import RowDraws
from caltest.resampling.engine._stopping import number_of_draws
from caltest.results import Note, Result
from caltest.results._description import Description, Table, counted, percent
from caltest.results._naming import describe
from caltest.results._picture import Picture

_OF_CELLS = (
    *("lower", "upper", "count", "expected", "observed", "pvalue", "smallest_pvalue"),
    *("lens_name", "partition", "origin"),
)
_CELLS = 15
_FEWEST_CELLS = 5
_FEWEST = 10  # observations of a cell, on average
_LEAST_SPREAD = 5.0  # of a cell: that of 10 observations with probability 1/2


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
    bar_lower, bar_upper : arrays of shape (n_cells,)
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

    lower: Floats
    upper: Floats
    count: Integers
    predicted: Floats
    expected: Floats
    observed: Floats
    bar_lower: Floats
    bar_upper: Floats
    bars: str
    confidence_level: float
    simultaneous: bool
    exact: bool
    lens: LensLike
    lens_name: str
    partition: Any
    notes: tuple[Note, ...]
    density_edges: Floats = field(default_factory=lambda: EDGES)
    density: Floats
    error: float
    noise_floor: float
    pvalue: Floats
    smallest_pvalue: Floats
    origin: str

    plot = Picture("plot_reliability")
    _derived: ClassVar[tuple[str, ...]] = ("outside", "conclusion")
    _columns: ClassVar[tuple[str, ...]] = (
        *("lower", "upper", "count", "predicted", "expected", "observed"),
        *("deviation", "bar_lower", "bar_upper", "outside", "pvalue"),
    )

    @property
    def n_cells(self) -> int:
        """Number of occupied cells."""
        return len(self.count)

    @property
    def deviation(self) -> Floats:
        """``observed - expected``, ``(n_cells,)``."""
        return self.observed - self.expected

    @property
    def outside(self) -> Booleans:
        """Cells with the observed frequency (consistency bars) or the expected one outside the bar, ``(n_cells,)``."""
        point = self.observed if self.bars == "consistency" else self.expected
        return (point < self.bar_lower - 1e-12) | (point > self.bar_upper + 1e-12)

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
            **{name: getattr(self, name) for name in _OF_CELLS},
            pvalue_adjusted=correct_pvalues(self.pvalue, correction),
            smallest_adjusted=smallest_adjusted(self.pvalue, self.smallest_pvalue, correction),
            correction=correction,
            alpha=validate_level(alpha, "alpha"),
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

    def _describe(self) -> Description:
        digits = _digits(self.lower, self.upper)
        rows = [
            (
                f"{cell.lower:.{digits}f} to {cell.upper:.{digits}f}",
                f"{cell.count:,}",
                f"{cell.predicted:.{digits}f}",
                f"{cell.observed:.4f}",
                f"{cell.bar_lower:.4f} to {cell.bar_upper:.4f}",
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


def _digits(lower: Floats, upper: Floats) -> int:
    """Return the decimals that tell the two ends of every cell apart, from 4 to 6."""
    wide = upper - lower
    narrow = wide[wide > 0].min(initial=1.0)
    return int(np.clip(np.ceil(-np.log10(narrow)), 4, 6))


@reads_arguments
def reliability_curve(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    partition: Partition | Any | None = None,
    bars: str = "consistency",
    confidence_level: float = 0.9,
    simultaneous: bool = False,
    n_resamples: int | None = None,
    rng: SeedLike = None,
    **options: Unpack[DesignedEventOptions],
) -> ReliabilityCurve:
    r"""Compute observed frequencies and consistency bars for a reliability diagram.

    With predictions fixed, the number of events :math:`K_b` of a cell (bin) has a Poisson-binomial distribution under
    the null hypothesis. The consistency bar of level :math:`\gamma` is the closed interval of frequencies with
    :math:`P(K_b / n_b < \text{low}) \le (1 - \gamma) / 2` and :math:`P(K_b / n_b > \text{high}) \le (1 - \gamma) / 2`.
    Cells are independent given the predictions, so simultaneous bars of L cells have level :math:`\gamma^{1/L}` each.
    With ``sample_weight`` or ``groups`` the distribution comes from simulated labels, and simultaneous bars have level
    :math:`1 - (1 - \gamma) / L`. With ``groups`` it comes from random signs of the residuals of whole groups too (see
    `calibration_test`), and a frequency must be compatible with the expected one by its confidence interval (below),
    which holds for few groups with an event: the widest bar and the largest p-value count.

    Parameters
    ----------
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities.
    partition : Partition or callable, optional
        Cells of the event's probability. By default ``EqualWidth(15, closed="outer")``; if more than half of at least
        150 predictions lie in one of these cells, or in the first and the last together, ``EqualSpread(15)``, or fewer
        cells, but at least 5, so that each has the spread of 10 predictions of 1/2. This choice depends on the
        predictions alone, so that bars and p-values stay valid, and is mirrored by the complement of the event.
    bars : {"consistency", "confidence"}
        Quantiles of the frequency if the model is calibrated; or Clopper-Pearson intervals around the observed
        frequency, from ``statsmodels.stats.proportion``; with ``sample_weight`` or ``groups`` the same for the
        effective number of observations (Kish 1965, Korn and Graubard 1998), never wider than if every group were one
        observation.
    confidence_level : float
        Level of the bars; 0.9 leaves 5 % on either side.
    simultaneous : bool
        Whether the level holds for all cells at once.
    resampling : Consistency, optional
        The null hypothesis; with ``resample_predictions=True`` the consistency bars are quantiles of deviations over
        resampled observations, as in figure 4 of Vaicenavicius et al. (2019), and only approximate.
    n_resamples : int, optional
        Number of draws, with ``resample_predictions=True``, ``sample_weight`` or ``groups``; 999 by default.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness of these draws.

    Returns
    -------
    ReliabilityCurve
        Data for `caltest.plotting.plot_reliability`; prints as a table.

    Raises
    ------
    TypeError
        If ``y_prob`` is a mapping of several models, ``resampling`` is no `Consistency`, or ``lens``, ``partition`` or
        ``region`` has a wrong type.
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
    (15, 12)
    >>> round(curve.error, 4), round(curve.noise_floor, 4)
    (0.0397, 0.0037)
    """
    if isinstance(y_prob, Mapping):
        refuse(
            f"`y_prob` must be the predictions of one model, got a mapping of {list(y_prob)}; make a curve of each and "
            "draw them together with caltest.plotting.plot_reliability({name: curve, ...}).",
            TypeError,
        )
    validate_choice(bars, "bars", ("consistency", "confidence"))
    validate_bool(simultaneous, "simultaneous")
    level, n_resamples = validate_level(confidence_level, "confidence_level"), number_of_draws(n_resamples)
    scheme = options["resampling"]
    sample, about = event_of(y_true, y_prob, options)
    sample = scheme.under_null(sample)
    drawn = sample.weight is not None or sample.group is not None
    if drawn and scheme.resample_predictions:
        refuse(f"`sample_weight` and `groups` need fixed predictions, Consistency(); got {scheme}.")
    cut = _default_cells(sample) if partition is None else partition
    cells = cells_of(sample, cut)
    order = np.argsort(cells.predicted_sum[:, 1] / np.where(cells.count > 0, cells.count, 1.0))
    order = order[cells.count[order] > 0]  # a cell without weight shows nothing
    sums = CellSums.of(sample, cells, sample.outcome)
    counts = [] if drawn else [PoissonBinomial.of(p) for p in cells.split(sample.expected[:, 1])]
    cell_level = level ** (1 / cells.n_cells) if simultaneous else level
    if drawn:
        cell_level = 1 - (1 - level) / cells.n_cells if simultaneous else level  # cells share groups
        deviations = drawn_deviations(sample, cells, scheme, n_resamples, rng)
        pvalue = drawn_pvalues(sample, cells, deviations)
        worth, expected = effective_counts(sample, cells), sums.predicted[:, 1]
        low, high = (
            worth.intervals(cell_level) if bars == "confidence" else quantile_bars(expected, deviations, cell_level)
        )
        if sample.group is not None:  # where signs of few groups with an event would reject too often
            pvalue = np.where(contradicted_cells(sample, cells), pvalue, np.maximum(pvalue, worth.pvalues(expected)))
            if bars == "consistency":
                wide = worth.bars(expected, cell_level)
                low, high = np.minimum(low, wide[0]), np.maximum(high, wide[1])
    elif bars == "confidence":
        low, high = confidence_bars(sums, cell_level)
    elif scheme.resample_predictions:
        low, high = resampled_bars(sample, cut, sums, RowDraws.of(n_resamples, rng), cell_level)
    else:
        low, high = consistency_bars(counts, cells, cell_level)
    lower, upper = _cell_ends(sample, cells)
    least = smallest_drawn_pvalues(sample, cells, n_resamples) if drawn else smallest_pvalues(counts, cells.count)
    size = np.abs(sums.observed[:, 1] - sums.predicted[:, 1])
    by_chance = np.abs(deviations[0][1:]).mean(axis=0) if drawn else exact_deviations(counts, cells.count)
    return ReliabilityCurve(
        **about,
        lower=lower[order],
        upper=upper[order],
        count=np.bincount(cells.index)[order],
        predicted=cells.predicted_sum[order, 1] / cells.count[order],
        expected=sums.predicted[order, 1],
        observed=sums.observed[order, 1],
        bar_lower=low[order],
        bar_upper=high[order],
        bars=bars,
        confidence_level=level,
        simultaneous=simultaneous,
        exact=bars == "consistency" and not scheme.resample_predictions and not drawn,
        partition=cut,
        notes=(*scheme.for_sample(sample).notes, *few_cells_notes(sample, cut)),
        density=prediction_density(sample.event),
        error=float(size @ cells.count / cells.count.sum()),
        noise_floor=float(by_chance @ cells.count / cells.count.sum()),
        pvalue=(pvalue if drawn else exact_pvalues(sample, cells, counts))[order],
        smallest_pvalue=least[order],
        origin=origin_of_cells(sample, scheme, n_resamples) if drawn else EXACT,
    )


def _default_cells(sample: Sample) -> Partition:
    """Return cells of equal width, or of equal spread if those would not separate most of the predictions."""
    width = EqualWidth(_CELLS, closed="outer")
    count = np.bincount(width.fit(sample.prob)(sample.prob), minlength=_CELLS)
    crowded = max(count.max(), count[0] + count[-1]) > sample.n_samples / 2
    if not crowded or sample.n_samples < _FEWEST * _CELLS:
        return width
    # The small number keeps an event and its complement, whose sums are rounded differently, on the same side.
    n_cells = int(label_spread(sample.event).sum() / _LEAST_SPREAD + 1e-6)
    return EqualSpread(min(max(n_cells, _FEWEST_CELLS), _CELLS))


def _cell_ends(sample: Sample, cells: Cells) -> Floats:
    """Return both ends of each cell, ``(2, n_cells)``; for a user's own partition the range of its predictions."""
    if not isinstance(cells.assign, Intervals):
        return np.array([(m.min(), m.max()) for m in cells.split(sample.event)]).T
    ends = np.concatenate([[0.0], cells.assign.edges, [1.0]])
    return ends[np.stack([cells.label, cells.label + 1])]
