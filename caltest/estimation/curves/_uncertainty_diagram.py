"""The uncertainty diagram: error rates of the predicted class against the normalised entropy of predictions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from caltest.estimation._options import DiagramOptions, look_at
from caltest.estimation.curves._curve_in_cells import CurveInCells, EventFrequencies
from caltest.predictions._arrays import Floats
from caltest.predictions._lenses import Canonical
from caltest.predictions._sample import Sample, induce
from caltest.predictions.cells._cells import few_cells_notes
from caltest.predictions.cells._partitions import EqualWidth, Partition
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._validation import SeedLike, validate_bool, validate_choice, validate_level
from caltest.resampling import Consistency
from caltest.resampling.distributions._poisson_binomial import SMALLEST_EXACT
from caltest.resampling.draws._signs import GroupsWithSurprise
from caltest.resampling.engine._stopping import number_of_draws
from caltest.results._decision import FEWEST_EXPECTED, NO_PROOF, decide, decided, equate_pvalue, rejects, show_pvalue
from caltest.results._distribution import Distribution
from caltest.results._picture import Picture
from caltest.results._verdict import Judged
from caltest.statistics._entropy import normalised_entropy


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class UncertaintyDiagram(Judged, CurveInCells):
    """Result of `uncertainty_diagram`; one entry per occupied cell (bin), in increasing order.

    Attributes
    ----------
    lower, upper : arrays of shape (n_cells,)
        Ends of each cell on the axis of the normalised entropy.
    count : array of shape (n_cells,)
        Number of observations in each cell.
    predicted : array of shape (n_cells,)
        Average normalised entropy, with sample weights the weighted one.
    expected : array of shape (n_cells,)
        Error rate of a calibrated model with these predictions: the average of 1 - largest probability.
    observed : array of shape (n_cells,)
        Error rate of the predicted class.
    bar_lower, bar_upper : arrays of shape (n_cells,)
        Ends of the bars, as error rates. Consistency bars contain ``observed`` if the model is calibrated; confidence
        bars contain the probability of an error in the cell.
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
        What is looked at, in words.
    partition : Partition or callable
        The cells (bins).
    notes : tuple of Note
        Cautions.
    density_edges, density : arrays of shape (n_bins + 1,) and (n_bins,)
        Distribution of the entropies: share of the observations in bins that are finer near 0 and 1.
    error : float
        Average of the absolute ``gap``, weighted with the observations: the UCE in these cells.
    noise_floor : float
        Average of this error if the model is calibrated, predictions fixed. It is not small.
    null_distribution : Distribution
        Distribution of this error if the model is calibrated: exact, or drawn with sample weights or groups.
    pvalue : float
        Two-sided p-value of this error.
    smallest_possible_pvalue : float
        No p-value below it is possible, whatever the labels are.
    n_expected : float
        Expected number of the rarer one of wrong and right predictions, with weights as many as are worth observations
        of equal weight, or of groups with a wrong prediction if fewer. A test that does not reject is undecidable if
        it is below 5.
    undecidable : str
        Why these are too few, in words; empty if they are enough.
    alpha : float
        Level of the conclusion.
    cell_pvalue : array of shape (n_cells,)
        Two-sided p-value of each cell, not adjusted; see `cell_tests` for all cells together.
    smallest_pvalue : array of shape (n_cells,)
        Smallest p-value that is possible in each cell.
    origin : str
        Where the p-values come from, in words.

    See Also
    --------
    uncertainty_diagram : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(3).draw(300, rng=0)
    >>> diagram = caltest.estimation.uncertainty_diagram(y_true, y_prob)
    >>> diagram.count[:3], diagram.rejected
    (array([1, 1, 1]), False)
    """

    null_distribution: Distribution
    pvalue: float
    smallest_possible_pvalue: float
    n_expected: float
    undecidable: str
    alpha: float
    cell_pvalue: Floats

    plot = Picture("plot_uncertainty_diagram")
    error_name = "UCE"
    _title = "Uncertainty diagram"
    _shown: ClassVar[dict[str, str]] = {"uncertainty": "predicted", "calibrated": "expected", "error rate": "observed"}
    _of_bars = "probability of an error"
    _if = "the model is calibrated"
    _left_out: ClassVar[frozenset[str]] = frozenset({"null_distribution"})
    _derived: ClassVar[tuple[str, ...]] = ("rejected", "n_samples", "outside", "conclusion")
    _columns: ClassVar[tuple[str, ...]] = (
        *("lower", "upper", "count", "predicted", "expected", "observed", "gap"),
        *("bar_lower", "bar_upper", "outside", "cell_pvalue"),
    )

    @property
    def gap(self) -> Floats:
        """``observed - predicted``: error rate minus uncertainty, ``(n_cells,)``."""
        return self.observed - self.predicted

    @property
    def n_samples(self) -> int:
        """Number of observations."""
        return int(self.count.sum())

    @property
    def pvalue_of_cells(self) -> Floats:
        """P-value of each cell, not adjusted, ``(n_cells,)``."""
        return self.cell_pvalue

    @property
    def decision_in_words(self) -> str:
        """The decision in a sentence, with its p-value; below 2e-12 it is an upper bound."""
        bound = self.pvalue <= 2 * SMALLEST_EXACT
        if decide(self.pvalue, self.alpha, self.smallest_possible_pvalue, self.n_expected) != "undecidable":
            return decided(self.pvalue, self.alpha, bound=bound)
        if rejects(self.smallest_possible_pvalue, self.alpha):
            shown = equate_pvalue(self.pvalue, bound=bound)
            return f"It cannot be told whether the model is calibrated: {self.undecidable} ({shown})."
        least = show_pvalue(self.smallest_possible_pvalue)
        return f"There are too few groups or draws for a test: no p-value below {least} is possible."

    @property
    def conclusion(self) -> str:
        """The decision, the size of the error and how many cells are outside their bars, in words."""
        size = (
            f"The UCE in these cells (bins) is {self.error:.4g}; a calibrated model with these predictions has "
            f"{self.noise_floor:.4g} on average."
        )
        proof = "" if self.rejected else f" {NO_PROOF}"
        point = "error rate" if self.bars == "consistency" else "error rate of a calibrated model"
        found = f"In {int(self.outside.sum())} of {self.n_cells} cells the {point} is outside its bar."
        return f"{self.decision_in_words} {size}{proof} {found} {self._meaning}"


@reads_arguments
def uncertainty_diagram(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    partition: Partition | Any | None = None,
    bars: str = "consistency",
    confidence_level: float = 0.9,
    simultaneous: bool = False,
    n_resamples: int | None = None,
    rng: SeedLike = None,
    **options: Unpack[DiagramOptions],
) -> UncertaintyDiagram:
    r"""Compute error rates against the normalised entropy, with consistency bars and the UCE (Laves et al. 2020).

    In cells (bins) of the normalised entropy :math:`h_i = -\sum_k p_{ik} \log p_{ik} / \log K`,

    .. math:: \mathrm{err}_b = \frac{1}{n_b} \sum_{i \in b} 1\{\hat y_i \ne y_i\}, \qquad
              \mathrm{uncert}_b = \frac{1}{n_b} \sum_{i \in b} h_i, \qquad
              \mathrm{UCE} = \sum_b \frac{n_b}{n} |\mathrm{err}_b - \mathrm{uncert}_b|

    (equations 11 and 15 to 17), where :math:`\hat y_i` is the most probable class, among equals the first.

    **A calibrated model is inside the bars, not on the diagonal.** It is wrong with probability
    :math:`1 - \max_k p_{ik}`, which is smaller than the entropy in all but extreme predictions
    (`caltest.estimation.normalized_entropy`). With predictions fixed, the number of errors of a cell then has a
    Poisson-binomial distribution with these probabilities, from which bars, p-values of cells (`cell_tests`) and the
    null distribution of the UCE are computed exactly. The p-value of the UCE is two-sided, because a wrong model may
    have a smaller UCE than a calibrated one; that of ``calibration_test(statistic=UCE())`` is for large values only.
    They are valid at every sample size if observations are independent.

    With ``sample_weight`` or ``groups`` the distributions come from simulated labels, and with ``groups`` from random
    signs of the residuals of whole groups too (see `calibration_test`), of which the widest bar and the largest p-value
    count. Simultaneous bars are as in `reliability_curve`.

    Parameters
    ----------
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities.
    partition : Partition or callable, optional
        Cells of the normalised entropy, as of an event's probability; by default those of the paper and of
        `caltest.statistics.UCE`, ``EqualWidth(15, closed="right")``.
    bars : {"consistency", "confidence"}
        Quantiles of the error rate if the model is calibrated; or Clopper-Pearson intervals around the observed error
        rate, with ``sample_weight`` or ``groups`` for the effective number of observations.
    confidence_level : float
        Level of the bars; 0.9 leaves 5 % on either side.
    simultaneous : bool
        Whether the level holds for all cells at once.
    n_resamples : int, optional
        Number of draws, where something is drawn; 999 by default.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness of these draws.

    Returns
    -------
    UncertaintyDiagram
        Data for `caltest.plotting.plot_uncertainty_diagram`; prints as a table.

    Raises
    ------
    TypeError
        If ``lens``, ``partition`` or ``region`` has a wrong type, or ``simultaneous`` is no boolean.
    ValueError
        If ``y_prob`` has values outside [0, 1] or does not sum to 1, a label is unknown or lengths differ; if ``bars``
        is unknown, ``confidence_level`` or ``alpha`` is not strictly between 0 and 1, or ``n_resamples`` < 1; if no
        observation lies in the region.

    See Also
    --------
    reliability_curve : Frequencies against predicted probabilities, on whose diagonal a calibrated model lies.
    rejection_curve : Errors of what is kept if the most uncertain predictions are rejected.

    References
    ----------
    M.-H. Laves, S. Ihler, K.-P. Kortmann and T. Ortmaier (2020), Uncertainty Calibration Error: A New Metric for
    Multi-Class Classification, submission to ICLR 2021, OpenReview, equations 11 to 17, figure 3.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> diagram = caltest.estimation.uncertainty_diagram(y_true, y_prob)
    >>> round(diagram.error, 6), round(diagram.noise_floor, 4), diagram.rejected
    (0.036385, 0.0075, True)

    The authors' figure 3: 60 % of the labels are of the class that is predicted with probability 0.6.

    >>> import numpy as np
    >>> y_true, y_prob = np.repeat([0, 1], [600, 400]), np.tile([0.6, 0.4], (1000, 1))
    >>> diagram = caltest.estimation.uncertainty_diagram(y_true, y_prob)
    >>> round(diagram.error, 3), round(diagram.noise_floor, 3), round(diagram.pvalue, 9), int(diagram.outside.sum())
    (0.571, 0.571, 1.0, 0)
    """
    validate_choice(bars, "bars", ("consistency", "confidence"))
    validate_bool(simultaneous, "simultaneous")
    level, n_resamples = validate_level(confidence_level, "confidence_level"), number_of_draws(n_resamples)
    sample, about = look_at(y_true, y_prob, options)
    errors, scheme = errors_of(sample), Consistency()
    cut = EqualWidth(15, closed="right") if partition is None else partition
    found = EventFrequencies(errors, cut, scheme, n_resamples, rng)
    centre = found.cells.predicted_sum[:, 1] / np.where(found.cells.count > 0, found.cells.count, 1.0)
    uce = found.error_about(centre)
    behind = "" if isinstance(about["lens"], Canonical) else f", {about['lens_name']}"
    return UncertaintyDiagram(
        **about | {"lens_name": f"error of the top class{behind}"},
        **found.fields(bars, level, simultaneous=simultaneous),
        notes=(*scheme.for_sample(sample).notes, *few_cells_notes(errors, cut)),
        error=uce.value,
        noise_floor=uce.null.mean,
        null_distribution=uce.null,
        pvalue=uce.pvalue,
        smallest_possible_pvalue=uce.smallest_possible_pvalue,
        **_expected(sample, errors),
        alpha=options["alpha"],
        cell_pvalue=found.pvalues[found.order],
    )


def _expected(sample: Sample, errors: Sample) -> dict[str, Any]:
    """Return the expected number of the rarer one of wrong and right predictions, and why it is too small."""
    weight = errors.weight_or_ones
    right, wrong = (
        float(np.square(weight @ part)) / max(float(np.square(weight) @ part), np.finfo(float).tiny)
        for part in errors.expected.T
    )
    number, rarer = (right, "right") if right < wrong else (wrong, "wrong")
    few = "" if number >= FEWEST_EXPECTED else f"only {number:.2g} {rarer} predictions were to be expected"
    if sample.group is not None:
        groups = GroupsWithSurprise.counted(sample)
        if groups.effective_number < min(number, FEWEST_EXPECTED):
            few = groups.too_few(FEWEST_EXPECTED)
        number = min(number, groups.effective_number)
    return {"n_expected": number, "undecidable": few}


def errors_of(sample: Sample) -> Sample:
    """Return the sample of the event that the top outcome is wrong, cut by the normalised entropy of the predictions.

    The entropy stands where the probability of the event is otherwise; that under the null hypothesis is 1 minus the
    largest probability.
    """
    uncertainty, top = normalised_entropy(sample.given), sample.given.argmax(axis=1)
    wrong = (sample.outcome != top).astype(np.int64)
    prob = np.column_stack([1.0 - uncertainty, uncertainty])
    errors = induce(prob, wrong, weight=sample.weight, group=sample.group)
    right = sample.given_null[errors.row, top[errors.row]].astype(np.float64)
    return replace(errors, given_null=np.column_stack([right, 1.0 - right]), row=sample.row[errors.row])
