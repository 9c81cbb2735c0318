"""Recalibration by frequencies in cells (bins) of the predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._partitions import EqualWidth, Partition
from caltest.predictions._validation import SeedLike, validate_choice, validate_count, validate_rng
from caltest.recalibration._objective import Objective
from caltest.recalibration._one_vs_rest import Map, OneVsRest, normalise
from caltest.recalibration._steps import evaluate_steps, fit_steps, mean_steps, validate_cells

Floats = NDArray[np.float64]
KINDS = ("per_class", "shared", "bootstrap")


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
    n_resamples : int
        Number of bootstrap samples; used by ``kind="bootstrap"`` only.
    rng : int, numpy.random.Generator or None
        Seed of the bootstrap samples. They are drawn among the sorted scores, alike for all classes, so that the map
        does not depend on the order of observations or classes.
    input : {"probabilities", "logits"}
        What X holds.
    classes : sequence, optional
        The label of each column of X.

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

    def __init__(
        self,
        partition: Partition | None = None,
        kind: str = "per_class",
        *,
        n_resamples: int = 100,
        rng: SeedLike = None,
        input: str = "probabilities",  # noqa: A002
        classes: Any = None,
    ) -> None:
        self.partition = partition
        self.kind = kind
        self.n_resamples = n_resamples
        self.rng = rng
        self.input = input
        self.classes = classes

    def _validate(self) -> None:
        validate_cells(self.partition)
        validate_choice(self.kind, "kind", KINDS)
        validate_count(self.n_resamples, "n_resamples")

    def _fit(self, values: NDArray[Any], outcome: NDArray[np.int64], weight: Floats | None) -> None:
        if self.kind == "shared":
            event = np.zeros(values.shape, dtype=bool)
            event[np.arange(len(values)), outcome] = True
            each = None if weight is None else np.repeat(weight, values.shape[1])
            self.maps_ = [self._fit_map(values.ravel(), event.ravel(), each)[0]]
            return
        if self.kind == "bootstrap":
            rng, n = validate_rng(self.rng), len(values)
            self._drawn = rng.multinomial(n, np.full(n, 1.0 / n), size=self.n_resamples)
        try:
            super()._fit(values, outcome, weight)
        finally:
            if self.kind == "bootstrap":
                del self._drawn

    def _map(self, values: NDArray[Any]) -> NDArray[Any]:
        if self.kind != "shared":
            return super()._map(values)
        found = self._evaluate(self.maps_[0], values.ravel()).reshape(values.shape)
        return normalise(found.astype(values.dtype, copy=False))

    def _fit_map(
        self, score: NDArray[Any], event: NDArray[np.bool_], weight: Floats | None
    ) -> tuple[Map, Objective | None]:
        if self.kind != "bootstrap":
            return fit_steps(self._cells, score, event.astype(np.float64), weight), None
        each = np.ones(len(score)) if weight is None else weight
        order = np.lexsort((each, event, score))
        columns = score[order], event[order].astype(np.float64), each[order]
        steps = [fit_steps(self._cells, *(np.repeat(one, n) for one in columns)) for n in self._drawn]
        return mean_steps(steps), None

    @property
    def _cells(self) -> Partition:
        return EqualWidth(15) if self.partition is None else self.partition

    def _evaluate(self, fitted: Map, score: NDArray[Any]) -> Floats:
        return evaluate_steps(fitted, score)
