"""Recalibration by a logistic function of the log odds of each class (Platt 1999)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Booleans, Floats, Integers
from caltest.recalibration.maps._base import Recalibrator
from caltest.recalibration.maps._logits import Objective
from caltest.recalibration.maps._newton import fit_logistic, log_loss
from caltest.recalibration.maps._one_vs_rest import class_logarithms, complete, event_logarithms, n_functions, normalise


class PlattScaling(Recalibrator):
    r"""Recalibration by a logistic function of the log odds of each class (Platt 1999).

    .. math::

        \gamma_k(p) = \frac{1}{1 + \exp(-a_k \operatorname{logit} p_k - b_k)}, \qquad
        \hat c_k(p) = \frac{\gamma_k(p)}{\sum_j \gamma_j(p)}

    Slope and intercept have the greatest likelihood for Platt's targets :math:`(n_+ + 1) / (n_+ + 2)` instead of 1
    and :math:`1 / (n_- + 2)` instead of 0, with :math:`n_+` labels of the class and :math:`n_-` others, so that they
    are finite even if predictions separate the labels. Weights that are whole numbers are numbers of labels, as in
    scikit-learn; of others only the proportions count, and their sum is taken for the number of observations with
    positive weight. Two classes need one function, that of the second class.

    Parameters
    ----------
    input : {"probabilities", "logits"}
        What X holds.
    classes : sequence, optional
        The label of each column of X.

    Attributes
    ----------
    slope_, intercept_ : arrays of shape (n_classes,)
        a and b of each class; of two classes shape (1,).
    classes_ : array of shape (n_classes,)
        The label of each column of `predict_proba`.

    See Also
    --------
    BetaCalibration : Three parameters for each class; it can leave calibrated predictions as they are.
    TemperatureScaling : One parameter for all classes together.

    Notes
    -----
    Platt's scores are distances from the margin of a support vector machine. Here they are log odds, so that calibrated
    predictions are in the family (a = 1, b = 0). Probabilities below :math:`2^{-52}` count as this number, on either
    side. A class without a label has a constant function with the value 1 / (n + 2). With two classes the ranking of
    observations stays the same if the slope is positive; with more the ranking of classes may change.

    References
    ----------
    J. Platt (1999), Probabilistic outputs for support vector machines and comparisons to regularized likelihood
    methods, in: Advances in large margin classifiers.

    Examples
    --------
    >>> import caltest
    >>> from caltest.recalibration import PlattScaling
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> platt = PlattScaling().fit(y_prob[:5000], y_true[:5000])
    >>> platt.slope_.shape
    (10,)
    """

    _fitted: ClassVar[tuple[str, ...]] = ("intercept_", "slope_")

    def _fit(self, values: NDArray[Any], outcome: Integers, weight: Floats | None) -> Objective:
        each = np.ones(len(outcome)) if weight is None else weight
        found, losses = [], np.zeros(2)
        for k, event, rest in class_logarithms(values):
            odds, target = event - rest, platt_targets(outcome == k, each)
            coef, loss = fit_logistic(np.column_stack([odds, np.ones(len(odds))]), target, each)
            found.append(coef)
            losses += loss, log_loss(event, rest, target, each)
        self.slope_, self.intercept_ = np.array(found).T
        return Objective(*losses)

    def _leave_unchanged(self, n_classes: int) -> None:
        self.slope_, self.intercept_ = np.ones(n_functions(n_classes)), np.zeros(n_functions(n_classes))

    def _map(self, values: NDArray[Any]) -> NDArray[Any]:
        from scipy.special import expit

        found = np.empty(values.shape, dtype=values.dtype)
        for rows, event, rest in event_logarithms(values):
            found[rows] = expit(self.slope_ * (event - rest) + self.intercept_)
        return complete(found) if values.shape[1] == 2 else normalise(found)


def platt_targets(event: Booleans, weight: Floats) -> Floats:
    """Return Platt's targets of labels ``(n_samples,)``: probabilities that are a little away from 0 and 1."""
    n_event, n_rest = float(weight[event].sum()), float(weight[~event].sum())
    if not np.array_equal(weight, np.rint(weight)):  # weights that sum to 1 would make all targets 1/2
        unit = (n_event + n_rest) / np.count_nonzero(weight)
        n_event, n_rest = n_event / unit, n_rest / unit
    return np.where(event, (n_event + 1) / (n_event + 2), 1 / (n_rest + 2))
