"""Maps by logistic regression of the labels on the predictions: Platt scaling, beta calibration, an intercept alone."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Booleans, Floats, Integers
from caltest.predictions.inputs._validation import validate_choice
from caltest.recalibration.maps._base import Recalibrator
from caltest.recalibration.maps._logits import Objective, blocks, softmax_in_place
from caltest.recalibration.maps._newton import fit_logistic, log_loss, minimise, solve_damped
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


_DECREMENT, _DAMPING = 1e-24, 1e-10  # squared length of the last step; a number for all classes changes nothing


class InterceptCalibration(Recalibrator):
    r"""Recalibration in the large: a logistic recalibration whose slope is 1.

    .. math:: \hat c(p) = \mathrm{softmax}(\ln p + b), \qquad \text{of two classes} \quad
              \operatorname{logit} \hat c_2(p) = \operatorname{logit} p_2 + b_2 - b_1

    The intercepts maximise the likelihood: then the sum of the probabilities of every class is the number of its
    labels. This is the first update of a prediction model where an event is more or less frequent than where the model
    was made (Steyerberg 2004), and what `caltest.clinical.update_test` means by an update of the intercept. The order
    of observations of two classes stays the same; of several classes, the largest one of an observation may change.

    Parameters
    ----------
    input : {"probabilities", "logits"}
        What X holds.
    classes : sequence, optional
        The label of each column of X.

    Attributes
    ----------
    intercept_ : array of shape (n_classes,)
        The intercepts b, whose sum is 0.
    classes_, n_features_in_, feature_names_in_
        As in `Recalibrator`.

    Raises
    ------
    ValueError
        When fitted, if a class has no label; and as in `Recalibrator.fit`.

    See Also
    --------
    PlattScaling : A slope too: logistic recalibration.
    TemperatureScaling : A slope without an intercept.
    caltest.clinical.update_test : Which of them is needed.

    Notes
    -----
    The loss is convex, and its minimum is found by Newton's method to rounding. Probabilities below :math:`2^{-52}`
    count as this number.

    References
    ----------
    E. W. Steyerberg, G. J. J. M. Borsboom, H. C. van Houwelingen, M. J. C. Eijkemans and J. D. F. Habbema (2004),
    Validation and updating of predictive logistic regression models: a study on sample size and shrinkage, Statistics
    in Medicine 23, 2567-2586: method 2.

    Examples
    --------
    >>> import numpy as np
    >>> from caltest.recalibration import InterceptCalibration
    >>> risk, died = np.array([0.1, 0.2, 0.4, 0.6]), np.array([0, 1, 0, 1])
    >>> updated = InterceptCalibration().fit(risk, died).predict_proba(risk)[:, 1]
    >>> updated.round(2).tolist(), round(float(updated.sum()), 6)
    ([0.21, 0.38, 0.62, 0.79], 2.0)
    """

    _scale: ClassVar[str] = "logits"
    _fitted: ClassVar[tuple[str, ...]] = ("intercept_",)

    def _fit(self, values: NDArray[Any], outcome: Integers, weight: Floats | None) -> Objective:
        self.refuse_absent_classes(outcome)
        each = np.ones(len(outcome)) if weight is None else weight
        likelihood = _Likelihood(values, outcome, each / each.sum())
        unchanged = likelihood.loss_and_gradient(np.zeros(values.shape[1]))[0]
        found, loss = minimise(likelihood, np.zeros(values.shape[1]), decrement=_DECREMENT, enough=0.0)
        self.intercept_: Floats = found - found.mean()  # a number for all classes means nothing
        return Objective(loss, unchanged)

    def _leave_unchanged(self, n_classes: int) -> None:
        self.intercept_ = np.zeros(n_classes)

    def _map(self, values: NDArray[Any]) -> NDArray[Any]:
        found = np.empty_like(values)
        for rows in blocks(*values.shape):
            found[rows] = softmax_in_place(values[rows] + self.intercept_.astype(values.dtype))
        return found


@dataclass(frozen=True)
class _Likelihood:
    """The mean negative log-likelihood of intercepts, for labels with weights of sum 1."""

    logits: NDArray[Any]
    outcome: Integers
    weight: Floats

    def _of_blocks(self, theta: Floats) -> Any:
        for rows in blocks(*self.logits.shape):
            yield rows, softmax_in_place(self.logits[rows].astype(np.float64) + theta)

    def loss_and_gradient(self, theta: Floats) -> tuple[float, Floats]:
        """Return the loss and its derivatives ``(n_classes,)``."""
        loss, gradient = 0.0, -np.bincount(self.outcome, self.weight, len(theta)).astype(np.float64)
        for rows, prob in self._of_blocks(theta):
            own = np.take_along_axis(prob, self.outcome[rows, None], axis=1)[:, 0]
            with np.errstate(divide="ignore"):  # of a step that is far too long
                loss -= float(self.weight[rows] @ np.log(own))
            gradient += self.weight[rows] @ prob
        return loss, gradient

    def newton_step(self, theta: Floats, gradient: Floats) -> Floats:
        """Return what Newton's method subtracts."""
        hessian = np.zeros((len(theta), len(theta)))
        for rows, prob in self._of_blocks(theta):
            weighted = self.weight[rows, None] * prob
            hessian += np.diag(weighted.sum(axis=0)) - weighted.T @ prob
        return solve_damped(hessian, gradient, _DAMPING)
