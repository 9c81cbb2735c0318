"""Recalibration by beta calibration of each class against the rest (Kull et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Floats, Integers
from caltest.predictions.inputs._validation import validate_choice
from caltest.recalibration.maps._base import Recalibrator
from caltest.recalibration.maps._logits import Objective
from caltest.recalibration.maps._newton import fit_logistic, log_loss
from caltest.recalibration.maps._one_vs_rest import class_logarithms, complete, event_logarithms, n_functions, normalise
from caltest.recalibration.maps._platt_scaling import platt_targets

_DIRECTIONS = {
    "abm": np.eye(3),
    "am": np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    "ab": np.array([[1.0, 0.0, np.log(2.0)], [0.0, 1.0, -np.log(2.0)]]),
}
"""The free parameters as rows: what each adds to a, b and c."""


@dataclass(eq=False, repr=False)
class BetaCalibration(Recalibrator):
    r"""Recalibration by beta calibration of each class against the rest (Kull, Silva Filho and Flach 2017).

    .. math::

        \gamma_k(p) = \frac{1}{1 + \exp\bigl(-a_k \log p_k + b_k \log(1 - p_k) - c_k\bigr)}, \qquad a_k, b_k \ge 0,
        \qquad \hat c_k(p) = \frac{\gamma_k(p)}{\sum_j \gamma_j(p)}

    This is the ratio of two beta densities; a, b and c have the greatest likelihood. Two classes need one function,
    that of the second class.

    Parameters
    ----------
    parameters : {"abm", "am", "ab"}
        Which parameters are free: all three; a = b and c (a logistic function of the log odds); or a and b, where c is
        such that 1/2 stays 1/2, :math:`c = (a - b) \log 2` (m, where :math:`\gamma = 1/2`, is 1/2).
    input : {"probabilities", "logits"}
        What X holds.
    classes : sequence, optional
        The label of each column of X.

    Attributes
    ----------
    a_, b_, c_ : arrays of shape (n_classes,)
        The parameters of each class; of two classes shape (1,).
    classes_ : array of shape (n_classes,)
        The label of each column of `predict_proba`.

    Raises
    ------
    TypeError
        If ``parameters`` is no text.
    ValueError
        If ``parameters`` is unknown.

    See Also
    --------
    PlattScaling : The same with a = b, and with targets away from 0 and 1.
    IsotonicCalibration : Any increasing function.

    Notes
    -----
    The maximum under :math:`a, b \ge 0` is found on the faces of the cone, so that each function increases; the
    authors' program leaves out a feature with a negative coefficient and fits the other one again, which finds the same
    maximum unless the other coefficient is negative then. Where predictions separate the labels of a class from the
    others, and where a class has no label, no finite parameters have the greatest likelihood: for this class Platt's
    targets replace the labels (`PlattScaling`). Probabilities below :math:`2^{-52}` count as this number, on either
    side. The ranking of the classes of an observation may change.

    References
    ----------
    M. Kull, T. Silva Filho and P. Flach (2017), Beta calibration: a well-founded and easily implemented improvement on
    logistic calibration for binary classifiers, AISTATS.

    Examples
    --------
    >>> import caltest
    >>> from caltest.recalibration import BetaCalibration
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> beta = BetaCalibration("ab").fit(y_prob[:5000, 3], y_true[:5000] == 3)
    >>> beta.predict_proba([0.5])
    array([[0.5, 0.5]])
    """

    _fitted: ClassVar[tuple[str, ...]] = ("a_", "b_", "c_")

    parameters: str = "abm"

    def _validate(self) -> None:
        validate_choice(self.parameters, "parameters", ("abm", "am", "ab"))

    def _fit(self, values: NDArray[Any], outcome: Integers, weight: Floats | None) -> Objective:
        each = np.ones(len(outcome)) if weight is None else weight
        found, losses = [], np.zeros(2)
        for k, event, rest in class_logarithms(values):
            label = outcome == k
            target, fitted = label.astype(np.float64), None
            if label.any() and not label.all():
                fitted = self._best(event, rest, target, each)
            if fitted is None:
                target = platt_targets(label, each)
                fitted = self._best(event, rest, target, each)
            parameters, loss = fitted or (np.full(3, np.nan), np.nan)
            found.append(parameters)
            losses += loss, log_loss(event, rest, target, each)
        self.a_, self.b_, self.c_ = np.array(found).T
        return Objective(*losses)

    def _leave_unchanged(self, n_classes: int) -> None:
        size = n_functions(n_classes)
        self.a_, self.b_, self.c_ = np.ones(size), np.ones(size), np.zeros(size)

    def _best(self, event: Floats, rest: Floats, target: Floats, weight: Floats) -> tuple[Floats, float] | None:
        """Return a, b and c of greatest likelihood, and the mean log loss there; None if no finite ones have it."""
        directions = _DIRECTIONS[self.parameters]
        features = np.column_stack([event, -rest, np.ones(len(event))]) @ directions.T
        slopes = [j for j, direction in enumerate(directions) if direction[:2].any()]
        always = [j for j in range(len(directions)) if j not in slopes]
        best, least = np.zeros(3), float(np.log(2.0))  # a = b = c = 0
        for used in _faces(slopes):
            columns = [*used, *always]
            if not columns:
                continue
            try:
                coef, loss = fit_logistic(features[:, columns], target, weight)
            except ValueError:
                return None
            if (coef[: len(used)] >= 0).all() and loss < least:
                best, least = coef @ directions[columns], loss
                if len(used) == len(slopes):
                    break  # the free maximum is allowed
        return best, least

    def _map(self, values: NDArray[Any]) -> NDArray[Any]:
        from scipy.special import expit

        found = np.empty(values.shape, dtype=values.dtype)
        for rows, event, rest in event_logarithms(values):
            found[rows] = expit(self.a_ * event - self.b_ * rest + self.c_)
        return complete(found) if values.shape[1] == 2 else normalise(found)


def _faces(slopes: list[int]) -> list[list[int]]:
    """Return which slopes are positive, for each face of the cone of slopes >= 0: the most of them first."""
    return [list(used) for size in range(len(slopes), -1, -1) for used in combinations(slopes, size)]
