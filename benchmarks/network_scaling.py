"""Recalibration by a small neural network, a column of docs/papers/recalibration-compared.md.

It is no part of the package, because it overfits: it made one of three held-out networks worse.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from caltest.estimation.scores._score_decomposition import log_of
from caltest.predictions.inputs._validation import SeedLike, validate_count, validate_number, validate_rng
from caltest.recalibration.maps._base import Recalibrator
from caltest.recalibration.maps._linear_scaling import observation_order
from caltest.recalibration.maps._logits import Objective, blocks, softmax, softmax_in_place


class NetworkScaling(Recalibrator):
    r"""Recalibration by a network with one hidden layer on the logits ("neural network scaling" of Nixon et al. 2019).

    .. math:: \hat c(z) = \mathrm{softmax}\bigl(V \max(0, U \tilde z + a) + b\bigr), \qquad
              \tilde z_k = \frac{z_k - \bar z}{s}

    with the mean :math:`\bar z` of the logits of the observation, and the root mean square s of these deviations in the
    data to which it is fitted. It can represent nearly any map, and forgets the model if it has few observations: it
    does not start from the predictions as the other methods do, and its ridge draws it to the same prediction for all
    observations. The order of the classes of an observation may change.

    The network is scikit-learn's ``MLPClassifier`` with L-BFGS. Its start is random (``rng``), so that its map is not
    unique, and it depends on the order of the classes; it does not depend on the order of the observations, which are
    sorted before. The paper does not report its network.

    Parameters
    ----------
    n_hidden : int
        Units of the hidden layer.
    ridge : float
        Ridge of U and V (``alpha`` of scikit-learn).
    max_iter : int
        Most iterations of L-BFGS; stopping early is a ridge too, so that no warning is given.
    rng : None, int or numpy.random.Generator
        Source of randomness, for the start.
    input : {"probabilities", "logits"}
        What X holds.
    classes : sequence, optional
        The label of each column of X.

    Attributes
    ----------
    coefs_, intercepts_ : lists of arrays
        U and V, transposed, and a and b.
    spread_ : float
        The root mean square s.
    classes_, n_features_in_, feature_names_in_
        As in `Recalibrator`.

    Raises
    ------
    TypeError
        When fitted, if a parameter has another type than the one above.
    ValueError
        When fitted, if ``n_hidden`` or ``max_iter`` < 1, ``ridge`` is negative, or a class has no label; and as in
        `Recalibrator.fit`.

    See Also
    --------
    MatrixScaling : A linear map of the logits, which is unique.

    References
    ----------
    J. Nixon et al. (2019), Measuring calibration in deep learning, CVPR workshops, section 5.3.

    Examples
    --------
    >>> import caltest
    >>> from benchmarks.network_scaling import NetworkScaling
    >>> y_true, y_prob = caltest.datasets.load_digits_predictions()
    >>> fitted = NetworkScaling(8, max_iter=20, rng=0).fit(y_prob["naive_bayes"], y_true)
    >>> [part.shape for part in fitted.coefs_]
    [(10, 8), (8, 10)]
    """

    _scale: ClassVar[str] = "logits"
    _fitted: ClassVar[tuple[str, ...]] = ("coefs_", "intercepts_", "spread_")

    def __init__(
        self,
        n_hidden: int = 32,
        *,
        ridge: float = 0.1,
        max_iter: int = 200,
        rng: SeedLike = None,
        input: str = "probabilities",  # noqa: A002
        classes: Sequence[Any] | None = None,
    ) -> None:
        self.n_hidden = n_hidden
        self.ridge = ridge
        self.max_iter = max_iter
        self.rng = rng
        self.input = input
        self.classes = classes

    def _validate(self) -> None:
        validate_count(self.n_hidden, "n_hidden")
        validate_count(self.max_iter, "max_iter")
        validate_number(self.ridge, "ridge", 0.0)
        validate_rng(self.rng)

    def _fit(self, values: NDArray[Any], outcome: NDArray[np.int64], weight: NDArray[np.float64] | None) -> Objective:
        self.refuse_absent_classes(outcome)
        order = observation_order(values, outcome)
        values, outcome = values[order].astype(np.float64), outcome[order]
        spread = float(np.sqrt(np.average(values.var(axis=1), weights=None if weight is None else weight[order])))
        self.spread_ = spread or 1.0
        network = MLPClassifier(
            (self.n_hidden,),
            solver="lbfgs",
            alpha=self.ridge,
            max_iter=self.max_iter,
            random_state=int(validate_rng(self.rng).integers(2**31)),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            options = {} if weight is None else {"sample_weight": weight[order]}
            network.fit(self._centred(values), outcome, **options)
        self.coefs_, self.intercepts_ = network.coefs_, network.intercepts_
        if len(self.classes_) == 2:  # one unit, the log odds of the positive class
            last, intercept = self.coefs_[1], self.intercepts_[1]
            self.coefs_ = [self.coefs_[0], np.column_stack([np.zeros_like(last), last])]
            self.intercepts_ = [self.intercepts_[0], np.append(0.0, intercept)]
        share = None if weight is None else weight[order]
        found, unchanged = (
            float(np.average(log_of(prob, outcome), weights=share)) for prob in (self._map(values), softmax(values))
        )
        return Objective(found, unchanged)

    def _leave_unchanged(self, n_classes: int) -> None:
        """Set two units for each class, the positive and the negative part of its logit."""
        one, nothing = np.eye(n_classes), np.zeros(n_classes)
        self.coefs_ = [np.hstack([one, -one]), self.spread_ * np.vstack([one, -one])]
        self.intercepts_ = [np.zeros(2 * n_classes), nothing]

    def _map(self, values: NDArray[Any]) -> NDArray[Any]:
        found = np.empty_like(values)
        for rows in blocks(*values.shape):
            hidden = np.maximum(self._centred(values[rows]) @ self.coefs_[0] + self.intercepts_[0], 0.0)
            found[rows] = softmax_in_place(hidden @ self.coefs_[1] + self.intercepts_[1])
        return found

    def _centred(self, logits: NDArray[Any]) -> NDArray[Any]:
        return np.asarray((logits - logits.mean(axis=1, keepdims=True)) / self.spread_)
