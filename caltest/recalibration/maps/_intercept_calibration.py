"""Recalibration in the large: one intercept for each class, logits otherwise as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Floats, Integers
from caltest.recalibration.maps._base import Recalibrator
from caltest.recalibration.maps._logits import Objective, blocks, softmax_in_place
from caltest.recalibration.maps._newton import minimise, solve_damped

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
