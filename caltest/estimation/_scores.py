"""Scores for context: how good and how sure predictions are, whether or not they are calibrated.

Unlike the statistics these are no measures of miscalibration: the Brier, logarithmic and spherical scores are proper,
hence best for the true probabilities, but reward sharpness as well. All look at what a lens shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caltest.predictions._lenses import Lens
from caltest.predictions._sample import apply_lens
from caltest.predictions._validation import validate_problem, validate_weight


def brier_score(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Return the Brier score, a proper score; smaller is better.

    .. math:: \frac1n \sum_i \sum_k (p_{ik} - 1\{y_i = k\})^2,

    and for two outcomes half of that, :math:`\frac1n \sum_i (p_i - y_i)^2`, as in scikit-learn.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; one dimension is the probability of the positive class.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    lens : lens, optional
        What to look at; the whole prediction by default.
    sample_weight : array-like of shape (n_samples,), optional
        Importance of each row.

    Returns
    -------
    float
        From 0 to 1 for two outcomes, to 2 for more.

    Raises
    ------
    ValueError
        If an argument is not of the form above.

    References
    ----------
    G. W. Brier (1950), Verification of forecasts expressed in terms of probability, Monthly Weather Review 78, 1-3.

    Examples
    --------
    >>> import caltest
    >>> caltest.brier_score([1, 0], [0.75, 0.5])
    0.15625
    >>> caltest.brier_score([1, 0], [[0.25, 0.5, 0.25], [1.0, 0.0, 0.0]])
    0.1875
    """
    prob, outcome, weight = _look(y_true, y_prob, classes, lens, sample_weight)
    missed = prob - (outcome[:, None] == np.arange(prob.shape[1]))
    if prob.shape[1] == 2:
        missed = missed[:, 1:]
    return float(np.average(np.square(missed).sum(axis=1), weights=weight))


def log_score(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Return the logarithmic score (negative log-likelihood, cross-entropy), a proper score; smaller is better.

    .. math:: -\frac1n \sum_i \log p_{i, y_i}

    in nats. It is infinite if a label had been given probability 0: nothing is clipped (scikit-learn's ``log_loss``
    clips to the resolution of the number type).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; one dimension is the probability of the positive class.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    lens : lens, optional
        What to look at; the whole prediction by default.
    sample_weight : array-like of shape (n_samples,), optional
        Importance of each row; a row of weight 0 counts nothing, whatever its label.

    Returns
    -------
    float
        At least 0, perhaps infinite.

    Raises
    ------
    ValueError
        If an argument is not of the form above.

    References
    ----------
    I. J. Good (1952), Rational decisions, Journal of the Royal Statistical Society B 14, 107-114.

    Examples
    --------
    >>> import caltest
    >>> round(caltest.log_score([1, 0], [0.5, 0.75]), 6)
    1.039721
    >>> caltest.log_score([1, 0], [0.0, 0.75])
    inf
    """
    prob, outcome, weight = _look(y_true, y_prob, classes, lens, sample_weight)
    stated = np.clip(np.take_along_axis(prob, outcome[:, None], axis=1)[:, 0], 0.0, None)
    if weight is not None:
        stated, weight = stated[weight > 0], weight[weight > 0]
    with np.errstate(divide="ignore"):
        return 0.0 - float(np.average(np.log(stated), weights=weight))


def spherical_score(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Return the spherical score, a proper score; larger is better.

    .. math:: \frac1n \sum_i \frac{p_{i, y_i}}{\bigl(\sum_k p_{ik}^2\bigr)^{1/2}}

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; one dimension is the probability of the positive class.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    lens : lens, optional
        What to look at; the whole prediction by default.
    sample_weight : array-like of shape (n_samples,), optional
        Importance of each row.

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    ValueError
        If an argument is not of the form above.

    References
    ----------
    T. Gneiting and A. E. Raftery (2007), Strictly proper scoring rules, prediction, and estimation, Journal of the
    American Statistical Association 102, 359-378.

    Examples
    --------
    >>> import caltest
    >>> round(caltest.spherical_score([1], [[0.5, 0.375, 0.125]]), 6)
    0.588348
    """
    prob, outcome, weight = _look(y_true, y_prob, classes, lens, sample_weight)
    stated = np.take_along_axis(prob, outcome[:, None], axis=1)[:, 0]
    return float(np.average(stated / np.linalg.norm(prob, axis=1), weights=weight))


def accuracy(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Return the share of the rows whose most probable class is the right one.

    .. math:: \frac1n \sum_i 1\{y_i = \arg\max_k p_{ik}\}

    Among equal probabilities the smaller class index is predicted, as by `Confidence`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; one dimension is the probability of the positive class.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    lens : lens, optional
        What to look at; the whole prediction by default.
    sample_weight : array-like of shape (n_samples,), optional
        Importance of each row.

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    ValueError
        If an argument is not of the form above.

    Examples
    --------
    >>> import caltest
    >>> caltest.accuracy([1, 0, 1, 1], [0.75, 0.25, 0.5, 0.875])
    0.75
    """
    _, right, weight = _top(y_true, y_prob, classes, lens, sample_weight)
    return float(np.average(right, weights=weight))


def mean_confidence(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Return the average of the largest probability; minus `accuracy` it is the top-1 gap.

    .. math:: \frac1n \sum_i \max_k p_{ik}

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; the value does not depend on them.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; one dimension is the probability of the positive class.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    lens : lens, optional
        What to look at; the whole prediction by default.
    sample_weight : array-like of shape (n_samples,), optional
        Importance of each row.

    Returns
    -------
    float
        From 1 / n_outcomes to 1.

    Raises
    ------
    ValueError
        If an argument is not of the form above.

    Examples
    --------
    >>> import caltest
    >>> caltest.mean_confidence([1, 0, 1, 1], [0.75, 0.25, 0.5, 0.875])
    0.71875
    """
    confidence, _, weight = _top(y_true, y_prob, classes, lens, sample_weight)
    return float(np.average(confidence, weights=weight))


def overconfidence(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Return the confidence that was spent on wrong predictions, per row: the upper half of the top-1 gap.

    .. math:: \frac1n \sum_i c_i (1 - a_i), \qquad c_i = \max_k p_{ik}, \quad a_i = 1\{y_i = \arg\max_k p_{ik}\}

    ``overconfidence - underconfidence`` is exactly ``mean_confidence - accuracy``. Neither half is 0 for a calibrated
    model: both then have the mean :math:`\frac1n \sum_i c_i (1 - c_i)`. Divided by the share of wrong predictions it is
    the over-confidence of Mund et al. (2015), the average confidence where the model is wrong.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; one dimension is the probability of the positive class.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    lens : lens, optional
        What to look at; the whole prediction by default.
    sample_weight : array-like of shape (n_samples,), optional
        Importance of each row.

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    ValueError
        If an argument is not of the form above.

    References
    ----------
    D. Mund, R. Triebel and D. Cremers (2015), Active online confidence boosting for efficient object classification,
    ICRA.

    Examples
    --------
    >>> import caltest
    >>> caltest.overconfidence([1, 0, 1, 1], [0.75, 0.25, 0.5, 0.875])
    0.125
    """
    confidence, right, weight = _top(y_true, y_prob, classes, lens, sample_weight)
    return float(np.average(confidence * ~right, weights=weight))


def underconfidence(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: Sequence[Any] | None = None,
    lens: Lens | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Return the confidence that was held back on right predictions, per row: the lower half of the top-1 gap.

    .. math:: \frac1n \sum_i (1 - c_i) a_i, \qquad c_i = \max_k p_{ik}, \quad a_i = 1\{y_i = \arg\max_k p_{ik}\}

    See `overconfidence`. Divided by the share of right predictions it is the under-confidence of Mund et al. (2015).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices from 0; booleans for two classes; any labels if ``classes`` is given.
    y_prob : array-like of shape (n_samples, n_classes) or (n_samples,)
        Predicted probabilities; one dimension is the probability of the positive class.
    classes : sequence, optional
        The label of each column of ``y_prob``.
    lens : lens, optional
        What to look at; the whole prediction by default.
    sample_weight : array-like of shape (n_samples,), optional
        Importance of each row.

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    ValueError
        If an argument is not of the form above.

    Examples
    --------
    >>> import caltest
    >>> caltest.underconfidence([1, 0, 1, 1], [0.75, 0.25, 0.5, 0.875])
    0.15625
    """
    confidence, right, weight = _top(y_true, y_prob, classes, lens, sample_weight)
    return float(np.average((1 - confidence) * right, weights=weight))


_Seen = tuple[NDArray[np.float64], NDArray[Any], NDArray[np.float64] | None]


def _look(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    classes: Sequence[Any] | None,
    lens: Lens | None,
    sample_weight: ArrayLike | None,
) -> _Seen:
    """Return probabilities, outcomes and weights behind the lens, in the caller's order."""
    prob, outcome = validate_problem(y_true, y_prob, classes)
    weight = validate_weight(sample_weight, len(prob))
    if lens is not None:
        prob, outcome = apply_lens(lens, prob, outcome)
    return prob, outcome.astype(np.int64), weight


def _top(*arguments: Any) -> _Seen:
    """Return the largest probability, whether it is that of the outcome, and weights, ``(n_samples,)`` each."""
    prob, outcome, weight = _look(*arguments)
    return prob.max(axis=1), prob.argmax(axis=1) == outcome, weight
