"""Recalibration by isotonic regression of each class against the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest.recalibration._objective import Objective
from caltest.recalibration._one_vs_rest import Map, OneVsRest


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

    def __init__(self, *, input: str = "probabilities", classes: Any = None) -> None:  # noqa: A002
        self.input = input
        self.classes = classes

    def _fit_map(
        self, score: NDArray[Any], event: NDArray[np.bool_], weight: NDArray[np.float64] | None
    ) -> tuple[Map, Objective]:
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

    def _evaluate(self, fitted: Map, score: NDArray[Any]) -> NDArray[np.float64]:
        return np.interp(score, *fitted)
