"""Vector scaling, matrix scaling and Dirichlet calibration, with their penalties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest.predictions._arrays import Floats, Integers
from caltest.predictions.inputs._class_columns import show_labels
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import SeedLike, validate_number, validate_rng
from caltest.recalibration.maps._base import Recalibrator
from caltest.recalibration.maps._linear_map import SEPARATED, Layout, LinearMap
from caltest.recalibration.maps._logits import Objective, blocks, softmax_in_place
from caltest.recalibration.maps._temperature import likely_temperature
from caltest.results._note import warn_user

N_FOLDS = 5
_ALWAYS_FITTED = -1


def observation_order(logits: NDArray[Any], outcome: Integers, weight: Floats | None = None) -> NDArray[np.intp]:
    """Return an order of the observations that depends on neither their own order nor that of the classes.

    They are sorted by the logit of their label relative to the largest one, then by their sorted logits and weights, so
    that only observations that are alike but for the names of the classes are left in their order.
    """
    own = logits[np.arange(len(logits)), outcome]
    keys = (*np.sort(logits, axis=1).T, own - logits.max(axis=1))
    return np.lexsort(keys if weight is None else (weight, *keys))


def stratified_folds(logits: NDArray[Any], outcome: Integers, weight: Floats | None, rng: SeedLike) -> Integers:
    """Return the fold of each observation: those of each class are dealt out at random, to folds of equal size.

    Chance belongs to observations in the order above, so that the folds are the same for permuted observations. They
    must be random: dealt out in this order, every held-out observation has neighbours like itself among the others,
    and a map that follows them seems to predict it well.

    The only observation of a class is in no fold, because a map without this class cannot predict it.
    """
    order = observation_order(logits, outcome, weight)
    order = order[validate_rng(rng).permutation(len(order))]
    order = order[np.argsort(outcome[order], kind="stable")]
    counts = np.bincount(outcome)
    starts = np.concatenate([[0], np.cumsum(counts)])[:-1]
    rank = np.arange(len(order)) - starts[outcome[order]]
    fold = np.empty(len(order), dtype=np.int64)
    fold[order] = rank % N_FOLDS
    fold[counts[outcome] == 1] = _ALWAYS_FITTED
    return fold


def validate_ridge(ridge: Any) -> tuple[float, ...]:
    """Return the ridges to choose from, the largest first; a single one is not chosen.

    Raises
    ------
    TypeError
        If a ridge is no number.
    ValueError
        If one is negative or not finite, two are equal, or there is none.
    """
    listed = tuple(ridge) if isinstance(ridge, Sequence | np.ndarray) and not isinstance(ridge, str) else (ridge,)
    values = sorted((validate_number(one, "ridge", 0.0) for one in listed), reverse=True)
    if not values or len(set(values)) < len(values):
        refuse(f"`ridge` must be a number or different numbers to choose from, got {ridge!r}.")
    return tuple(values)


def odir_penalty(layout: Layout, ridge: float) -> Floats:
    r"""Return the ridge of each parameter: off-diagonal and intercept regularisation (ODIR).

    .. math:: \frac{\lambda}{K (K - 1)} \sum_{j \ne k} W_{jk}^2 + \frac{\lambda}{K} \sum_k b_k^2
    """
    n = layout.n_classes
    return layout.join((1 - layout.identity) * ridge / (n * (n - 1)), np.full(n, ridge / n))


RIDGES = (0.1, 1.0, 10.0, 100.0, 1000.0)
_EXTREME = 10.0  # times the factor of temperature scaling, and units of the logit (odds of 20,000 to 1)


@dataclass(eq=False, repr=False)
class LinearScaling(Recalibrator):
    """Base of the methods that fit softmax(Wz + b); they differ in W and in the scale of z."""

    _scale: ClassVar[str] = "logits"
    _diagonal: ClassVar[bool] = False

    ridge: float | Sequence[float] = RIDGES
    _: KW_ONLY
    rng: SeedLike = 0

    _fitted: ClassVar[tuple[str, ...]] = ("intercept_", "ridge_", "ridge_scores_", "weights_")

    def _validate(self) -> None:
        validate_ridge(self.ridge)
        validate_rng(self.rng)

    def _fit(self, values: NDArray[Any], outcome: Integers, weight: Floats | None) -> Objective:
        ridges, (n_samples, n_classes) = validate_ridge(self.ridge), values.shape
        self.refuse_absent_classes(outcome)
        layout = Layout(n_classes, self._diagonal)
        if ridges[-1] == 0 and n_samples < layout.n_parameters:
            refuse(
                f"{type(self).__name__} has {layout.n_parameters} parameters for {n_classes} classes, more than the "
                f"{n_samples:,} observations: pass a positive `ridge`, or use TemperatureScaling."
            )
        weight = np.ones(n_samples) if weight is None else weight
        inverse = 1 / likely_temperature(values, outcome, weight).temperature
        self.ridge_, self.ridge_scores_ = ridges[0], None
        worse = ""
        if len(ridges) > 1:
            found, tempered = self._held_out_losses(values, outcome, weight, ridges)
            self.ridge_ = ridges[int(np.argmin(found))]  # the first of equal ones is the largest
            self.ridge_scores_ = np.array([found[ridges.index(ridge)] for ridge in np.atleast_1d(self.ridge)])
            if found.min() > tempered:
                worse = (
                    "predicts held-out observations worse than temperature scaling (negative log-likelihood "
                    f"{found.min():.4g} and {tempered:.4g} nats): it has too many parameters for these data"
                )
        penalty = odir_penalty(layout, self.ridge_)
        likelihood = LinearMap(values, outcome, weight / weight.sum(), penalty, layout)
        theta, loss = likelihood.minimise(layout.tempered(inverse))
        weights, intercept = layout.split(theta)
        self.weights_: Floats = weights.copy()
        self.intercept_: Floats = intercept - intercept.mean()  # a number for all classes means nothing
        spread = values.std(axis=0, dtype=np.float64)
        doubt = self._separation(loss, inverse, spread) or worse
        if doubt:
            warn_user(f"{type(self).__name__} {doubt}. Fit on more observations, or use TemperatureScaling.")
        return Objective(loss, likelihood.loss_and_gradient(layout.tempered(1.0))[0])

    def _held_out_losses(
        self, logits: NDArray[Any], outcome: Integers, weight: Floats, ridges: Sequence[float]
    ) -> tuple[Floats, float]:
        """Return the mean negative log-likelihood of held-out observations for each ridge, and of temperature scaling.

        Ridges decrease, and each search starts where the one before ended, the first from temperature scaling.
        """
        layout = Layout(logits.shape[1], self._diagonal)
        fold, total = stratified_folds(logits, outcome, weight, self.rng), np.zeros(1 + len(ridges))
        for number in range(N_FOLDS):
            held = fold == number
            if not held.any():
                continue
            inside = ~held
            share = weight[inside] / weight[inside].sum()
            inverse = 1 / likely_temperature(logits[inside], outcome[inside], weight[inside]).temperature
            theta = layout.tempered(inverse)
            free = LinearMap(logits[inside], outcome[inside], share, odir_penalty(layout, 0.0), layout)
            for k, ridge in enumerate((None, *ridges)):
                if ridge is not None:
                    theta, _ = replace(free, penalty=odir_penalty(layout, ridge)).minimise(theta)
                lost = layout.losses(logits[held], outcome[held], theta)
                total[k] += float(weight[held] @ lost)
        total /= max(weight[fold >= 0].sum(), np.finfo(np.float64).tiny)
        return total[1:], float(total[0])

    def _leave_unchanged(self, n_classes: int) -> None:
        self.weights_ = Layout(n_classes, self._diagonal).identity
        self.intercept_ = np.zeros(n_classes)

    def _separation(self, loss: float, usual: float, spread: Floats) -> str:
        """Return how the labels are separated, wholly or those of one class; empty if they are not."""
        if loss < SEPARATED:
            return (
                "separates all labels, so that the likelihood has no maximum: the map is the first one of the search "
                f"whose mean log score is below {SEPARATED:.0e} nats, and predicts nearly 0 and 1"
            )
        own = np.abs(self.weights_ if self._diagonal else np.diag(self.weights_))
        worst = int(own.argmax())
        if own[worst] <= _EXTREME * usual or own[worst] * spread[worst] <= _EXTREME:
            return ""
        label = show_labels(self.classes_[[worst]].tolist())
        return (
            f"multiplies the logit of class {label} by {own[worst]:.3g}, temperature scaling all by {usual:.3g}: "
            "the labels of this class are nearly separated, and new observations that contradict them get a "
            "probability near 0"
        )

    def _map(self, values: NDArray[Any]) -> NDArray[Any]:
        layout, found = Layout(values.shape[1], self._diagonal), np.empty_like(values)
        theta = layout.join(self.weights_, self.intercept_)
        for rows in blocks(*values.shape):
            found[rows] = softmax_in_place(layout.scores(values[rows], theta))
        return found


@dataclass(eq=False, repr=False)
class VectorScaling(LinearScaling):
    r"""Vector scaling: a factor and an intercept for the logit of each class (Guo et al. 2017).

    .. math:: \hat c(z) = \mathrm{softmax}(w \odot z + b)

    It repairs classes that are predicted too often or too rarely, which a temperature cannot, at the cost of 2 K
    parameters; the order of the classes of an observation may change. Logits are those that were passed, or the
    logarithms of probabilities; the two differ by a number for each observation, which matters here.

    The likelihood is maximised, with :math:`\lambda / K \cdot \sum_k b_k^2` subtracted from its mean logarithm, by
    Newton's method up to 300 classes, and by L-BFGS with exact gradients above. With several ridges the one with the
    largest likelihood of held-out observations is taken, in five random folds that have equal shares of each class and
    do not depend on the order of the observations.

    The factors have no ridge, as in the papers: if every label can be separated, the maximum is at infinity. Then the
    map is the first one of the search whose mean log score is below 1e-6 nats, with a `CalibrationWarning`; where
    already a temperature separates the labels, it is that of `TemperatureScaling`. If the labels of one class only can
    be separated, its factor is very large, which new observations that contradict it punish severely; this happens with
    predictions of exactly 0 and 1. A `CalibrationWarning` names the class if its factor is more than 10 times that of
    temperature scaling; if none is, but ridges are compared and held-out observations are predicted worse, it says so.

    Parameters
    ----------
    ridge : float or sequence of float
        The ridge :math:`\lambda` of the intercepts; several to choose from by cross-validation.
    input : {"probabilities", "logits"}
        What X holds.
    classes : sequence, optional
        The label of each column of X.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness of the folds that compare ridges; 0 by default, so that a fit can be repeated.

    Attributes
    ----------
    weights_, intercept_ : arrays of shape (n_classes,)
        The factors w and the intercepts b, whose sum is 0.
    ridge_ : float
        The ridge that was used.
    ridge_scores_ : array of shape (n_ridges,) or None
        Mean negative log-likelihood of held-out observations for each ridge; None where there was no choice.
    classes_, n_features_in_, feature_names_in_
        As in `Recalibrator`.

    Raises
    ------
    TypeError
        When fitted, if ``ridge`` is no number.
    ValueError
        When fitted, if a ridge is negative, or two are equal; if a class has no label; if there are fewer observations
        than parameters without a ridge; and as in `Recalibrator.fit`.

    See Also
    --------
    TemperatureScaling : One parameter.
    MatrixScaling : Logits of other classes too.

    References
    ----------
    C. Guo et al. (2017), On calibration of modern neural networks, ICML, section 4.2.

    Examples
    --------
    >>> import caltest
    >>> from caltest.recalibration import VectorScaling
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> fitted = VectorScaling().fit(y_prob[:5000], y_true[:5000])
    >>> [round(float(weight), 2) for weight in (fitted.weights_.min(), fitted.weights_.max())]
    [0.48, 0.67]
    """

    _diagonal: ClassVar[bool] = True

    ridge: float | Sequence[float] = 0.0


class MatrixScaling(LinearScaling):
    r"""Matrix scaling with off-diagonal and intercept regularisation, MS-ODIR (Guo et al. 2017, Kull et al. 2019).

    .. math:: \hat c(z) = \mathrm{softmax}(W z + b), \qquad \min_{W, b} -\frac1n \sum_i \log \hat c_{y_i}(z_i)
              + \lambda \Bigl(\frac{1}{K (K - 1)} \sum_{j \ne k} W_{jk}^2 + \frac1K \sum_k b_k^2\Bigr)

    It repairs classes that a model confuses, with K (K + 1) parameters. Without the ridge it needs many observations
    for each; with it the map tends to one factor for each class as :math:`\lambda` grows. The order of the classes of
    an observation may change.

    The problem is convex. Up to 24 classes its minimum is found by Newton's method to rounding, so that the map does
    not depend on the order of the observations; above, by L-BFGS with exact gradients. With several ridges the one with
    the largest likelihood of held-out observations is taken, in random folds as in `VectorScaling`. As in the paper the
    ridge is not scaled with the logits: logits times a number are fitted differently unless the ridge is 0. The
    authors' program subtracts the last row of W from the others before it squares them, which makes the last class
    special; here all classes are alike.

    With probabilities as input the logits are their logarithms, and the method is `DirichletCalibration`.

    Parameters
    ----------
    ridge : float or sequence of float
        The ridge :math:`\lambda`; several to choose from by cross-validation, 0.1 to 1000 by default.
    input : {"probabilities", "logits"}
        What X holds.
    classes : sequence, optional
        The label of each column of X.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness of the folds that compare ridges; 0 by default, so that a fit can be repeated.

    Attributes
    ----------
    weights_ : array of shape (n_classes, n_classes)
        The matrix W; row k has the weights of all logits for class k.
    intercept_ : array of shape (n_classes,)
        The intercepts b, whose sum is 0.
    ridge_, ridge_scores_
        As in `VectorScaling`.
    classes_, n_features_in_, feature_names_in_
        As in `Recalibrator`.

    Raises
    ------
    TypeError
        When fitted, if ``ridge`` is no number.
    ValueError
        When fitted, as in `VectorScaling`.

    See Also
    --------
    VectorScaling : A diagonal matrix.
    caltest.statistics.MatrixScore : The test that looks for what this method repairs.

    References
    ----------
    C. Guo et al. (2017), On calibration of modern neural networks, ICML, section 4.2.
    M. Kull et al. (2019), Beyond temperature scaling: obtaining well-calibrated multiclass probabilities with Dirichlet
    calibration, NeurIPS, section 4.

    Examples
    --------
    >>> import numpy as np
    >>> import caltest
    >>> from caltest.recalibration import MatrixScaling
    >>> y_true, y_prob = caltest.datasets.load_digits_predictions()
    >>> logits = np.log(y_prob["logistic_regression"])
    >>> MatrixScaling(ridge=1.0, input="logits").fit(logits, y_true).weights_.shape
    (10, 10)
    """


class DirichletCalibration(LinearScaling):
    r"""Dirichlet calibration with off-diagonal and intercept regularisation (Dir-ODIR; Kull et al. 2019).

    .. math:: \hat c(p) = \mathrm{softmax}(W \ln p + b)

    This is the map from predictions to outcomes if the predictions of each class have a Dirichlet distribution; for two
    classes it is beta calibration. W and b minimise the penalised negative log-likelihood of `MatrixScaling`, from
    which it differs only if the input is logits: it takes the logarithms of their softmax.

    Parameters
    ----------
    ridge : float or sequence of float
        The ridge :math:`\lambda`; several to choose from by cross-validation, 0.1 to 1000 by default.
    input : {"probabilities", "logits"}
        What X holds.
    classes : sequence, optional
        The label of each column of X.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness of the folds that compare ridges; 0 by default, so that a fit can be repeated.

    Attributes
    ----------
    weights_, intercept_, ridge_, ridge_scores_
        As in `MatrixScaling`.
    classes_, n_features_in_, feature_names_in_
        As in `Recalibrator`.

    Raises
    ------
    TypeError
        When fitted, if ``ridge`` is no number.
    ValueError
        When fitted, as in `VectorScaling`.

    See Also
    --------
    MatrixScaling : The same on logits; how the minimum and the ridge are found.

    References
    ----------
    M. Kull et al. (2019), Beyond temperature scaling: obtaining well-calibrated multiclass probabilities with Dirichlet
    calibration, NeurIPS, sections 3 and 4.

    Examples
    --------
    >>> import caltest
    >>> from caltest.recalibration import DirichletCalibration
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> fitted = DirichletCalibration(ridge=(1.0, 10.0, 100.0)).fit(y_prob[:3000], y_true[:3000])
    >>> fitted.ridge_, fitted.ridge_scores_.round(3).tolist()
    (10.0, [0.209, 0.204, 0.204])
    """

    _scale: ClassVar[str] = "log-probabilities"
