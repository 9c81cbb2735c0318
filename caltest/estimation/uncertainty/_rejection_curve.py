"""Rejection curve: error rate of the predictions that are kept when the most uncertain ones are rejected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.estimation.curves._bars import EffectiveCounts, frequency_intervals
from caltest.estimation.scores._score_decomposition import accuracy_of
from caltest.estimation.uncertainty._prediction_distribution import (
    MOST,
    WORDS,
    UncertaintyCurve,
    join_curves,
    uncertainty_of,
    validate_uncertainty,
)
from caltest.predictions._arrays import Floats, Integers
from caltest.predictions._sample import observations_that_count
from caltest.predictions.inputs._arguments import reads_arguments
from caltest.predictions.inputs._models import by_name, validate_models
from caltest.predictions.inputs._options import DesignOptions, InputOption
from caltest.predictions.inputs._validation import design_of, validate_count, validate_level
from caltest.results._description import Description, Table, counted, percent
from caltest.results._picture import Picture

_FIFTH = 0.2 - 1e-9  # of the predictions: what is rejected in the conclusion, up to rounding
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RejectionCurve(UncertaintyCurve):
    """Result of `rejection_curve`; one entry for each model, measure of uncertainty and threshold, increasing.

    Attributes
    ----------
    model, uncertainty : arrays of shape (n_points,)
        The model and the measure of uncertainty of each entry; the name of a single model is empty.
    threshold : array of shape (n_points,)
        Predictions with an uncertainty above the threshold are rejected.
    rejected : array of shape (n_points,)
        Share of the predictions that are rejected, with sample weights of their weight.
    n_kept : array of shape (n_points,)
        Number of the predictions that are kept.
    error : array of shape (n_points,)
        Share of wrong top classes among the predictions that are kept, with sample weights of their weight: 1 minus
        their accuracy.
    error_lower, error_upper : arrays of shape (n_points,)
        Confidence interval of this error rate, at each threshold alone: exact (Clopper-Pearson), with sample weights or
        groups from the effective number of observations.
    predicted_error : array of shape (n_points,)
        What the model predicts for the error rate: the average of 1 - largest probability of those that are kept.
    area : dict of (str, str) to float
        Area under the curve of each model and measure: average error rate over all shares that are kept.
    confidence_level : float
        Level of the intervals.
    exact : bool
        Whether the intervals are exact.
    n_samples : int
        Number of observations.

    See Also
    --------
    caltest.rejection_curve : The function that returns it.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel
    >>> _, y_true, y_prob = DirichletModel(3).draw(300, rng=0)
    >>> curve = caltest.rejection_curve(y_true, y_prob, n_points=5)
    >>> curve.n_kept[:5], curve.error[:5].round(2)
    (array([ 60, 120, 180, 240, 300]), array([0.25, 0.32, 0.34, 0.38, 0.42]))
    """

    threshold: Floats
    rejected: Floats
    n_kept: Integers
    error: Floats
    error_lower: Floats
    error_upper: Floats
    predicted_error: Floats
    area: Mapping[tuple[str, str], float]
    confidence_level: float
    exact: bool
    n_samples: int

    plot = Picture("plot_rejection_curve")
    _left_out: ClassVar[frozenset[str]] = frozenset({"area"})
    _columns: ClassVar[tuple[str, ...]] = (
        *("model", "uncertainty", "threshold", "rejected", "n_kept", "error"),
        *("error_lower", "error_upper", "accuracy", "predicted_error"),
    )

    @property
    def accuracy(self) -> Floats:
        """Share of right top classes among the predictions that are kept, ``(n_points,)``."""
        return 1.0 - self.error

    @property
    def _kind(self) -> str:
        if self.exact:
            return "exact (Clopper-Pearson)"
        return "from the effective number of observations (Korn and Graubard 1998, approximate)"

    @property
    def _unit(self) -> str:
        return "observations" if self.exact else "observations, or groups if there are any,"

    def _sentence(self, model: str, uncertainty: str) -> str:
        rows = self.entries(model, uncertainty)
        of = f" of {model}" if model else ""
        begin = f"Without rejection {percent(_short(self.error[rows[-1]]))} of the predictions{of} are wrong"
        kept = rows[self.rejected[rows] >= _FIFTH]
        if not kept.size:
            return f"{begin}; the {WORDS[uncertainty]} is equal for too many of them to reject a fifth."
        at = kept[-1]
        low, high = (percent(_short(end)) for end in (self.error_lower[at], self.error_upper[at]))
        return (
            f"{begin}; without the {percent(_short(self.rejected[at]))} with the {MOST[uncertainty]}, "
            f"{percent(_short(self.error[at]))} ({low} to {high}; "
            f"{percent(_short(self.predicted_error[at]))} predicted)."
        )

    def _describe(self) -> Description:
        rows = [
            (model or "the model", WORDS[name], f"{self.error[self.entries(model, name)[-1]]:.4g}", f"{area:.4g}")
            for (model, name), area in self.area.items()
        ]
        head = ("model", "rejected by", "error of all", "area under the curve")
        return Description(
            f"Rejection curve ({counted(self.n_samples)})",
            self._sentences,
            [Table(head, rows, left=("rejected by",))],
            [
                f"Error: share of wrong top classes. Intervals: {self._kind}, {percent(self.confidence_level)} for "
                f"each threshold alone, if it is chosen without these labels and {self._unit} are independent.",
                "Area: average error over all shares that are kept; smaller is better. It depends on the accuracy too, "
                "not on calibration alone.",
            ],
        )


def _short(share: float) -> float:
    return float(f"{share:.3g}")


class RejectionOptions(DesignOptions, InputOption, total=False):
    """What a rejection curve shares with other functions."""


@reads_arguments
def rejection_curve(
    y_true: ArrayLike,
    y_prob: ArrayLike | Mapping[str, ArrayLike],
    *,
    classes: Sequence[Any] | None = None,
    uncertainty: str | Sequence[str] = ("entropy", "confidence"),
    n_points: int = 100,
    confidence_level: float = 0.95,
    **options: Unpack[RejectionOptions],
) -> RejectionCurve:
    r"""Compute the error rate of the predictions that are kept when the most uncertain ones are rejected.

    With the uncertainty :math:`u_i` of each prediction and a threshold t,

    .. math:: \mathrm{err}(t) = \frac{\sum_{i : u_i \le t} (1 - a_i)}{\#\{i : u_i \le t\}}

    where :math:`a_i` is 1 if the most probable class is the right one, 1 / m if it is one of m tied ones, otherwise 0
    (`caltest.estimation.accuracy`), and u is the normalised entropy :math:`-\sum_k p_{ik} \log p_{ik} / \log K`, or
    :math:`1 - \max_k p_{ik}` (Laves et al. 2020, figures 2 and 9). Its target is the error rate of new predictions with
    an uncertainty up to t. A useful uncertainty makes it fall as more is rejected. A calibrated model also predicts it:
    the average of :math:`1 - \max_k p_{ik}` over those that are kept is ``predicted_error``. For two classes both
    measures have the same order.

    Thresholds are predicted uncertainties, so that equal ones are kept or rejected together; there is one for about
    each of ``n_points`` equal shares. The area under the curve (Geifman and El-Yaniv 2017) is the average of the error
    over all n numbers that can be kept, where equal predictions are kept in random order; with sample weights it is the
    integral over the share of the weight that is kept.

    Of a stack of passes, "mutual-information" is the normalised entropy of the average minus the average entropy of the
    passes: the mutual information of label and network, divided by log K (Gal, Islam and Ghahramani 2017). "variance"
    is the variance of each class between passes, summed over the classes. Both are 0 if all passes predict the same,
    however uncertain they are.

    With ``sample_weight`` or ``groups`` an interval is that of Clopper and Pearson for the effective number of
    observations: that of Kish (1965) for independent observations, and from the variance between groups otherwise, as
    Korn and Graubard (1998) propose for surveys.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,), or mapping of str to such
        Predicted probabilities; of several models by name.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    uncertainty : {"entropy", "confidence", "mutual-information", "variance"} or sequence of these
        What predictions are rejected by. The last two are disagreements of the passes of a
        `caltest.predictions.PredictionStack` (see below).
    n_points : int
        Number of thresholds aimed at, for each curve.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each observation: how much it counts. Observations of weight 0 are left out.
    groups : array-like of shape (n_samples,), optional
        The group of each observation, such as its patient, if observations of a group may depend on each other.
    confidence_level : float
        Level of the interval at each threshold.

    Returns
    -------
    RejectionCurve
        Data for `caltest.plotting.plot_rejection_curve`; prints as a report.

    Raises
    ------
    TypeError
        If a name of a model or of ``uncertainty`` is no string, or ``n_points`` no integer.
    ValueError
        If ``y_prob`` has values outside [0, 1] or does not sum to 1, a label is unknown or lengths differ; if
        weights are negative or all 0, or there is only one group; if there is
        no model, or models differ in their number of classes; if ``uncertainty`` is unknown, or the disagreement of
        passes of predictions that are no `PredictionStack`; if ``n_points`` < 1, or ``confidence_level`` is not
        strictly between 0 and 1.

    See Also
    --------
    shift_curve : Uncertainty against the share of foreign data.

    References
    ----------
    M.-H. Laves, S. Ihler, K.-P. Kortmann and T. Ortmaier (2020), Uncertainty Calibration Error: A New Metric for
    Multi-Class Classification, submission to ICLR 2021, OpenReview, section 5.1, figures 2
    and 9.
    E. L. Korn and B. I. Graubard (1998), Confidence intervals for proportions with small expected number of positive
    counts estimated from survey data, Survey Methodology 24.
    L. Kish (1965), Survey Sampling, Wiley.
    Y. Gal, R. Islam and Z. Ghahramani (2017), Deep Bayesian active learning with image data, ICML.
    Y. Geifman and R. El-Yaniv (2017), Selective classification for deep neural networks, NeurIPS.

    Examples
    --------
    >>> import caltest
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> curve = caltest.rejection_curve(y_true, y_prob, uncertainty="entropy")
    >>> kept = curve.rejected >= 0.2
    >>> round(float(curve.error[-1]), 4), round(float(curve.error[kept][-1]), 4)
    (0.0641, 0.008)
    """
    level, points = validate_level(confidence_level, "confidence_level"), validate_count(n_points, "n_points")
    measures = validate_uncertainty(uncertainty)
    named = by_name(y_prob)
    outcome, probs = validate_models(y_true, named, classes)
    row, weight, group = observations_that_count(**design_of(options, len(outcome)))
    outcome = outcome[row]
    curves, area = {}, {}
    for (model, given), prob in zip(named.items(), probs, strict=True):
        wrong = 1 - accuracy_of(prob[row], outcome)
        doubt = 1.0 - prob[row].max(axis=1).astype(np.float64)
        for measure in measures:
            values = uncertainty_of(prob, measure, given)[row]
            found = _curve(values, wrong, doubt, points, level, weight=weight, group=group)
            curves[model, measure], area[model, measure] = found
    return RejectionCurve(
        **join_curves(curves),
        area=area,
        confidence_level=level,
        exact=weight is None and group is None,
        n_samples=len(outcome),
    )


def _curve(
    uncertainty: Floats,
    wrong: Floats,
    doubt: Floats,
    n_points: int,
    level: float,
    *,
    weight: Floats | None,
    group: Integers | None,
) -> tuple[dict[str, NDArray[Any]], float]:
    """Return the points of a curve, and the area under it."""
    order = np.argsort(uncertainty, kind="stable")
    ordered, wrong, own = uncertainty[order], wrong[order], np.ones(len(order)) if weight is None else weight[order]
    ends = np.flatnonzero(np.append(np.diff(ordered) > 0, True))  # last positions of blocks of equal ones
    kept, errors, doubts = np.cumsum(own), np.cumsum(own * wrong), np.cumsum(own * doubt[order])
    wanted = np.arange(1, n_points + 1) / n_points * kept[-1] * (1 - _ROUNDING)
    shown = ends[np.unique(np.searchsorted(kept[ends], wanted))]
    if weight is None and group is None:  # known sums: a tenth of the time of the curve
        low, high = frequency_intervals(errors[shown], kept[shown] - errors[shown], kept[shown], level)
    else:
        unit = None if group is None else np.unique(group[order], return_inverse=True)[1]
        low, high = EffectiveCounts.of_first(wrong, own, unit, shown).intervals(level)
    # Inside a block of equal ones the expected number of errors rises in proportion.
    at, count = np.append(0.0, kept[ends]), np.append(0.0, errors[ends])
    if weight is None:
        number = np.arange(1, len(order) + 1)
        area = np.mean(np.interp(number, at, count) / number)
    else:
        area = _integral(at, count) / kept[-1]
    points = {
        "threshold": ordered[shown],
        "rejected": (kept[-1] - kept[shown]) / kept[-1],
        "n_kept": shown + 1,
        "error": errors[shown] / kept[shown],
        "error_lower": low,
        "error_upper": high,
        "predicted_error": doubts[shown] / kept[shown],
    }
    return points, float(area)


def _integral(at: Floats, count: Floats) -> float:
    """Return the integral of E(t) / t from 0, with E linear between its values ``count`` at ``at``, first 0 at 0."""
    step = np.diff(at)
    slope = np.diff(count) / step
    ratio = np.append(0.0, np.log(at[2:] / at[1:-1]))  # E is 0 at 0, so that its first piece is slope * t
    return float(np.sum(slope * step + (count[:-1] - slope * at[:-1]) * ratio))
