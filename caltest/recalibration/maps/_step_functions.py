"""Recalibration by step functions: frequencies in cells (bins), averaged maps and isotonic regression."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from caltest.predictions._arrays import Booleans, Floats, Integers
from caltest.predictions.cells._partitions import EqualWidth, Intervals, Partition, fit_partition
from caltest.predictions.cells._quantiles import EqualMass
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import SeedLike, validate_choice, validate_count, validate_rng
from caltest.recalibration.maps._base import Recalibrator
from caltest.recalibration.maps._logistic_maps import PlattScaling
from caltest.recalibration.maps._logits import Objective
from caltest.recalibration.maps._one_vs_rest import Map, OneVsRest, normalise

Steps = tuple[Floats, Floats]


def validate_cells(partition: Any) -> None:
    """Refuse what is neither a partition of the package nor None."""
    if partition is not None and not isinstance(partition, Partition):
        refuse(f"`partition` must be a partition such as EqualMass(15), got {partition!r}.", TypeError)


def fit_steps(partition: Partition, score: NDArray[Any], value: Floats, weight: Floats | None) -> Steps:
    """Return the weighted means of ``value (n_samples,)`` in the cells of the scores; midpoints where there are none.

    Raises
    ------
    ValueError
        If the cells of the partition are not intervals.
    """
    score = score.astype(np.float64)
    assign = fit_partition(partition, np.column_stack([1.0 - score, score]))
    if not isinstance(assign, Intervals):
        refuse(f"`partition` must make intervals, as EqualMass, EqualWidth and Edges do, got {partition!r}.")
    edges = assign.edges if assign.closed == "left" else np.nextafter(assign.edges, np.inf)
    cell = np.searchsorted(edges, score, side="right")
    size = np.bincount(cell, weight, len(edges) + 1)
    total = np.bincount(cell, value if weight is None else value * weight, len(edges) + 1)
    ends = np.concatenate([[0.0], edges, [1.0]])
    found = (ends[:-1] + ends[1:]) / 2
    np.divide(total, size, out=found, where=size > 0)
    return edges, found


def evaluate_steps(steps: Steps, score: NDArray[Any]) -> Floats:
    """Return the values at ``score (n_samples,)``; a score that equals an edge belongs to the cell above it."""
    edges, value = steps
    return value[np.searchsorted(edges, score.astype(np.float64, copy=False), side="right")]


def mean_steps(each: list[Steps]) -> Steps:
    """Return the mean of step functions, whose edges are those of all of them."""
    edges = np.unique(np.concatenate([one for one, _ in each]))
    starts = np.append(-np.inf, edges)
    return edges, np.mean([evaluate_steps(one, starts) for one in each], axis=0)


KINDS = ("per_class", "shared", "bootstrap")


@dataclass(eq=False, repr=False)
class HistogramBinning(OneVsRest):
    r"""Recalibration by frequencies in cells (bins): histogram binning (Zadrozny and Elkan 2001).

    .. math:: \gamma(s) = \frac{\sum_{i: s_i \in B(s)} y_i}{\#\{i: s_i \in B(s)\}}

    A score (predicted probability) becomes the frequency of the event among the fitted observations whose scores lie in
    the same cell :math:`B(s)`. Rows are divided by their sums.

    Parameters
    ----------
    partition : EqualWidth, EqualMass or Edges, optional
        The cells of a score; ``EqualWidth(15)`` by default. A cell without observations has its midpoint as value.
    kind : {"per_class", "shared", "bootstrap"}
        The three methods of Nixon et al. (2019, section 4 and table 5): a function for each class ("class-conditional
        histogram binning"), one for all, fitted to the scores of all classes together ("histogram binning"), or the
        mean of the functions of a class over bootstrap samples, each with its cells ("bootstrap").
    input : {"probabilities", "logits"}
        What X holds.
    classes : sequence, optional
        The label of each column of X.
    n_resamples : int
        Number of bootstrap samples; used by ``kind="bootstrap"`` only.
    rng : int, numpy.random.Generator or None
        Seed of the bootstrap samples. They are drawn among the sorted scores, alike for all classes, so that the map
        does not depend on the order of observations or classes.

    Attributes
    ----------
    maps_ : list of tuples of arrays
        Inner edges (n_cells - 1,) and values (n_cells,) for each class; with ``kind="shared"`` a single tuple.
    classes_ : array of shape (n_classes,)
        The label of each column of `predict_proba`.

    Raises
    ------
    TypeError
        If ``partition`` is no partition, or ``n_resamples`` no integer.
    ValueError
        If ``kind`` is unknown, ``n_resamples`` < 1, or the cells of ``partition`` are not intervals.

    See Also
    --------
    ScalingBinning : Cells whose values are means of a fitted function, which needs fewer labels.
    caltest.histogram_regression : Frequencies in cells of the whole prediction, with tests.

    Notes
    -----
    The bootstrap of Nixon et al. is not described beyond its name; the definition here is bagging. With cells of equal
    width, which do not depend on the sample, its mean is close to the function of the data; with cells of equal mass
    edges vary and the mean is smoother. Weights count in the frequencies, not in the choice of cells. Observations in
    one cell get one value, so that the map has ties and may change the ranking of classes; it need not increase. Sharp
    predictions of many classes put most cells of equal mass near 0, and all large probabilities into one: the accuracy
    of the bundled CIFAR-10 network falls from .940 to .877 with ``EqualMass(15)``, to .939 with ``EqualWidth(15)``.

    References
    ----------
    B. Zadrozny and C. Elkan (2001), Obtaining calibrated probability estimates from decision trees and naive Bayesian
    classifiers, ICML.

    J. Nixon, M. Dusenberry, G. Jerfel, T. Nguyen, J. Liu, L. Zhang and D. Tran (2019), Measuring calibration in deep
    learning, arXiv 1904.01685.

    Examples
    --------
    >>> import numpy as np
    >>> from caltest import EqualWidth
    >>> from caltest.recalibration import HistogramBinning
    >>> binning = HistogramBinning(EqualWidth(2)).fit(np.array([0.1, 0.2, 0.3, 0.8]), np.array([0, 0, 1, 1]))
    >>> binning.predict_proba(np.array([0.4, 0.9])).round(3)
    array([[0.667, 0.333],
           [0.   , 1.   ]])
    """

    partition: Partition | None = None
    kind: str = "per_class"
    _: KW_ONLY
    n_resamples: int = 100
    rng: SeedLike = None

    def _validate(self) -> None:
        validate_cells(self.partition)
        validate_choice(self.kind, "kind", KINDS)
        validate_count(self.n_resamples, "n_resamples")

    def _fit(self, values: NDArray[Any], outcome: Integers, weight: Floats | None) -> None:
        if self.kind == "shared":
            event = np.zeros(values.shape, dtype=bool)
            event[np.arange(len(values)), outcome] = True
            each = None if weight is None else np.repeat(weight, values.shape[1])
            self.maps_ = [self._fit_map(values.ravel(), event.ravel(), each)[0]]
            return
        if self.kind == "bootstrap":
            rng, n = validate_rng(self.rng), len(values)
            drawn = rng.multinomial(n, np.full(n, 1.0 / n), size=self.n_resamples)
            self.maps_ = [self._mean_map(score, outcome == k, weight, drawn) for k, score in self._scores(values)]
            return
        super()._fit(values, outcome, weight)

    def _map(self, values: NDArray[Any]) -> NDArray[Any]:
        if self.kind != "shared":
            return super()._map(values)
        found = self._evaluate(self.maps_[0], values.ravel()).reshape(values.shape)
        return normalise(found.astype(values.dtype, copy=False))

    def _fit_map(self, score: NDArray[Any], event: Booleans, weight: Floats | None) -> tuple[Map, Objective | None]:
        return fit_steps(self._cells, score, event.astype(np.float64), weight), None

    def _mean_map(self, score: NDArray[Any], event: Booleans, weight: Floats | None, drawn: Integers) -> Map:
        """Return the mean of the functions of data sets with ``drawn (n_resamples, n_samples)`` times each row."""
        each = np.ones(len(score)) if weight is None else weight
        order = np.lexsort((each, event, score))
        columns = score[order], event[order].astype(np.float64), each[order]
        steps = [fit_steps(self._cells, *(np.repeat(one, n) for one in columns)) for n in drawn]
        return mean_steps(steps)

    @property
    def _cells(self) -> Partition:
        return EqualWidth(15) if self.partition is None else self.partition

    def _evaluate(self, fitted: Map, score: NDArray[Any]) -> Floats:
        return evaluate_steps(fitted, score)


@dataclass(eq=False, repr=False)
class ScalingBinning(OneVsRest):
    r"""Recalibration by a fitted map whose values are averaged in cells (Kumar, Liang and Ma 2019).

    .. math:: \gamma_k(p) = \operatorname{mean} \{ g_k(p_i) : g_k(p_i) \in B_k(g_k(p)) \}

    A map g is fitted to the labels, its values for each class are cut into cells (bins), and each value becomes the
    mean value in its cell. Rows are divided by their sums. As the map has few values, its remaining error can be
    estimated, and as values and not labels are averaged, it varies less than `HistogramBinning`.

    Parameters
    ----------
    recalibrator : Recalibrator, optional
        The method that fits g; `PlattScaling` by default, as in the paper. Its ``input`` and ``classes`` do not matter.
    partition : EqualMass, EqualWidth or Edges, optional
        The cells of the values of g; ``EqualMass(10)`` by default. A cell without observations has its midpoint as
        value.
    input : {"probabilities", "logits"}
        What X holds.
    classes : sequence, optional
        The label of each column of X.

    Attributes
    ----------
    recalibrator_ : Recalibrator
        The fitted method.
    maps_ : list of tuples of arrays
        Inner edges (n_cells - 1,) and values (n_cells,) of the values of g, for each class.
    classes_ : array of shape (n_classes,)
        The label of each column of `predict_proba`.

    Raises
    ------
    TypeError
        If ``recalibrator`` is no recalibration method, or ``partition`` no partition.
    ValueError
        If the cells of ``partition`` are not intervals.

    See Also
    --------
    HistogramBinning : Means of labels in cells.

    Notes
    -----
    The theorems of the paper have three sets of observations: for g, for the cells, and for the means. All three steps
    use the same observations here, as they do in the authors' program (uncertainty-calibration). Weights count in g and
    in the means, not in the cells. The map has ties and may change the ranking of classes.

    References
    ----------
    A. Kumar, P. Liang and T. Ma (2019), Verified uncertainty calibration, NeurIPS, section 4.

    Examples
    --------
    >>> import numpy as np
    >>> import caltest
    >>> from caltest.recalibration import ScalingBinning
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> binning = ScalingBinning().fit(y_prob[:5000], y_true[:5000])
    >>> len(binning.maps_[0][1])
    10
    """

    _fitted: ClassVar[tuple[str, ...]] = ("recalibrator_",)

    recalibrator: Recalibrator | None = None
    partition: Partition | None = None

    def _validate(self) -> None:
        validate_cells(self.partition)
        if self.recalibrator is not None and not isinstance(self.recalibrator, Recalibrator):
            refuse(
                f"`recalibrator` must be a recalibration method such as PlattScaling(), got {self.recalibrator!r}.",
                TypeError,
            )

    def _fit(self, values: NDArray[Any], outcome: Integers, weight: Floats | None) -> None:
        method = PlattScaling() if self.recalibrator is None else clone(self.recalibrator)
        self.recalibrator_ = method.set_params(input="probabilities", classes=list(range(values.shape[1])))
        self.recalibrator_.fit(values, outcome, weight)
        super()._fit(self.recalibrator_.predict_proba(values), outcome, weight)

    def _map(self, values: NDArray[Any]) -> NDArray[Any]:
        return super()._map(self.recalibrator_.predict_proba(values))

    def _fit_map(self, score: NDArray[Any], event: Booleans, weight: Floats | None) -> tuple[Map, Objective | None]:
        partition = EqualMass(10) if self.partition is None else self.partition
        return fit_steps(partition, score, score.astype(np.float64), weight), None

    def _evaluate(self, fitted: Map, score: NDArray[Any]) -> Floats:
        return evaluate_steps(fitted, score)


class IsotonicCalibration(OneVsRest):
    r"""Recalibration by the best increasing function of the probability of each class (Zadrozny and Elkan 2002).

    .. math:: \gamma_k = \arg\min_{\gamma\ \text{increasing}} \sum_i w_i \bigl( \gamma(p_{ik}) - 1(y_i = k) \bigr)^2

    The function is that of `sklearn.isotonic.IsotonicRegression`, and rows are divided by their sums as in
    `sklearn.calibration.CalibratedClassifierCV`. Two classes need one function, that of the second class.

    Parameters
    ----------
    input : {"probabilities", "logits"}
        What X holds.
    classes : sequence, optional
        The label of each column of X.

    Attributes
    ----------
    maps_ : list of tuples of arrays
        Scores and values, both increasing, between which the function is linear; of two classes a single tuple.
    classes_ : array of shape (n_classes,)
        The label of each column of `predict_proba`.

    See Also
    --------
    HistogramBinning : Frequencies in cells that are chosen beforehand.
    caltest.isotonic_curve : The same function as a reliability diagram, with bands.

    Notes
    -----
    Observations with the same score count as one with their mean label. Between fitted scores the function is linear;
    beyond the smallest and the largest fitted score it is constant. A class without a label gets probability 0, and a
    row whose values are all 0 becomes 1 / n_classes. Each function keeps the order of a probability among observations,
    with ties; the ranking of the classes of an observation may change. Values of exactly 0 and 1 are common, so that
    the log score can be infinite. Several hundred labels per class are needed.

    References
    ----------
    B. Zadrozny and C. Elkan (2002), Transforming classifier scores into accurate multiclass probability estimates, KDD.

    Examples
    --------
    >>> import numpy as np
    >>> from caltest.recalibration import IsotonicCalibration
    >>> isotonic = IsotonicCalibration().fit(np.array([0.1, 0.2, 0.4, 0.6, 0.9]), np.array([0, 1, 0, 1, 1]))
    >>> isotonic.predict_proba(np.array([0.3, 0.5]))[:, 1]
    array([0.5 , 0.75])
    """

    _mirrors = True

    def _fit_map(self, score: NDArray[Any], event: Booleans, weight: Floats | None) -> tuple[Map, Objective]:
        from sklearn.isotonic import IsotonicRegression

        order = np.argsort(score)  # sorted ones are fitted and evaluated in less time
        ordered, label = score[order].astype(np.float64), event[order].astype(np.float64)
        share = None if weight is None else weight[order]
        fitted = IsotonicRegression(out_of_bounds="clip").fit(ordered, label, share)
        found = fitted.X_thresholds_, fitted.y_thresholds_
        losses = [
            float(np.average(np.square(value - label), weights=share))
            for value in (self._evaluate(found, ordered), ordered)
        ]
        return found, Objective(*losses)

    def _evaluate(self, fitted: Map, score: NDArray[Any]) -> Floats:
        return np.interp(score, *fitted)
