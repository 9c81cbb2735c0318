"""The reliability curve: observed frequencies against predictions, with consistency and confidence bars."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest.estimation._options import DesignedEventOptions, event_of
from caltest.estimation.curves._curve_in_cells import CurveInCells, EventFrequencies
from caltest.predictions._arrays import Floats
from caltest.predictions._sample import Sample
from caltest.predictions.cells._cells import few_cells_notes
from caltest.predictions.cells._partitions import EqualWidth, Partition
from caltest.predictions.cells._quantiles import EqualSpread, label_spread
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._refusals import refuse, refuse_if
from caltest.predictions.inputs._validation import SeedLike, validate_bool, validate_choice, validate_level
from caltest.resampling.engine._stopping import number_of_draws
from caltest.results._picture import Picture

_CELLS = 15
_FEWEST_CELLS = 5
_FEWEST = 10  # observations of a cell, on average
_LEAST_SPREAD = 5.0  # of a cell: that of 10 observations with probability 1/2


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ReliabilityCurve(CurveInCells):
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

    See Also
    --------
    caltest.reliability_curve : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(2).draw(300, rng=0)
    >>> curve = caltest.reliability_curve(y_true, y_prob[:, 1])
    >>> curve.count[:3], curve.predicted[:3].round(2), curve.observed[:3].round(2)
    (array([21, 15, 23]), array([0.04, 0.11, 0.17]), array([0.  , 0.13, 0.22]))
    """

    pvalue: Floats

    plot = Picture("plot_reliability")
    error_name = "ECE"
    _title = "Reliability curve"
    _shown: ClassVar[dict[str, str]] = {"predicted": "predicted", "observed": "observed"}
    _of_bars = "calibration function"
    _derived: ClassVar[tuple[str, ...]] = ("outside", "conclusion")
    _columns: ClassVar[tuple[str, ...]] = (
        *("lower", "upper", "count", "predicted", "expected", "observed"),
        *("deviation", "bar_lower", "bar_upper", "outside", "pvalue"),
    )

    @property
    def pvalue_of_cells(self) -> Floats:
        """P-value of each cell, not adjusted, ``(n_cells,)``."""
        return self.pvalue

    @property
    def _if(self) -> str:
        if np.array_equal(self.expected, self.predicted):
            return "the model is calibrated"
        return "the given calibration function is the true one"

    @property
    def conclusion(self) -> str:
        """How many cells are outside their bars, and what the bars mean, in words."""
        point = "observed frequency" if self.bars == "consistency" else "average prediction"
        size = f"The ECE in these cells is {self.error:.4g}; a calibrated model has {self.noise_floor:.4g} on average."
        found = f"In {int(self.outside.sum())} of {self.n_cells} cells (bins) the {point} is outside its bar."
        return f"{found} {self._meaning} {size}"


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
    which holds for few groups with an event: the widest bar and the largest p-value count. With ``time`` and ``lead``,
    of forecasts whose labels are known after a lead, labels are simulated that share shocks of time as the observed
    ones do, and their deviations are divided by the root of their inflation (see `calibration_test`); where little
    time or rare labels do not show how much they share, the wider bar counts of these and of labels that share more of
    them.

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
        frequency; with ``sample_weight`` or ``groups`` the same for the effective number of observations (Kish 1965,
        Korn and Graubard 1998), never wider than if every group were one observation. With ``time`` there
        are consistency bars only.
    confidence_level : float
        Level of the bars; 0.9 leaves 5 % on either side.
    simultaneous : bool
        Whether the level holds for all cells at once.
    resampling : Consistency, optional
        The null hypothesis; with ``resample_predictions=True`` the consistency bars are quantiles of deviations over
        resampled observations, as in figure 4 of Vaicenavicius et al. (2019), and only approximate.
    n_resamples : int, optional
        Number of draws, with ``resample_predictions=True``, ``sample_weight``, ``groups`` or ``time``; 999 by default.
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
        ``n_resamples`` < 1; if no observation lies in the region; if ``time`` is given with ``groups`` or for
        confidence bars.

    See Also
    --------
    caltest.smooth_reliability_curve : A curve without cells.
    caltest.calibration_band : A band for the whole curve.

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
    if (sample.weight is not None or sample.group is not None) and scheme.resample_predictions:
        refuse(f"`sample_weight` and `groups` need fixed predictions, Consistency(); got {scheme}.")
    refuse_if(
        sample.timing is not None and bars == "confidence",
        'bars="confidence" is for independent observations or groups. With `time` take bars="consistency", or pass '
        "stretches of time that are several leads long as `groups`.",
    )
    cut = _default_cells(sample) if partition is None else partition
    found = EventFrequencies(sample, cut, scheme, n_resamples, rng)
    return ReliabilityCurve(
        **about,
        **found.fields(bars, level, simultaneous=simultaneous),
        notes=(*scheme.for_sample(sample).notes, *few_cells_notes(sample, cut)),
        error=float(np.abs(found.observed - found.expected) @ found.share),
        noise_floor=found.noise_floor,
        pvalue=found.pvalues[found.order],
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
