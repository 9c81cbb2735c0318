"""The scorer that returns minus a calibration error, and the three that are used most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from caltest.estimation.errors._calibration_error import calibration_error
from caltest.predictions._lens import LensLike
from caltest.predictions.inputs._frames import refuse_other_indexes
from caltest.predictions.inputs._refusals import refuse
from caltest.results._naming import Specification
from caltest.statistics import ECE, KS, SquaredL2, Statistic
from caltest.statistics._base import validate_estimate


@dataclass(frozen=True)
class NegativeError(Specification):
    r"""Scorer that returns minus the calibration error of a fitted classifier, so that greater is better.

    .. math:: \text{score} = -\hat\eta(y, \text{estimator.predict\_proba}(X))

    The target is the error of the fitted model on new observations like those of X. Most errors are biased upwards near
    calibration, and the more so the fewer observations a fold has (see `caltest.noise_floor`): compare models that are
    scored on the same folds, and test differences with `caltest.paired_test`. A model that predicts the frequencies of
    the classes for everybody is calibrated: do not select models by a calibration error alone.

    Parameters
    ----------
    statistic : Statistic
        The error, such as ``ECE()`` or ``KS()``.
    lens : lens, optional
        What to look at; by default the whole prediction, or the confidence if the statistic needs two outcomes.

    Raises
    ------
    TypeError
        If ``statistic`` is no statistic; if the estimator that is scored has no ``predict_proba``.
    ValueError
        If ``statistic`` is a combination of tests (`caltest.Omnibus`), which has no value; when it scores, if a label
        is not among the classes of the estimator, or as in `caltest.calibration_error`.

    See Also
    --------
    caltest.calibration_error : The error itself.
    caltest.cross_val_calibration : A test of calibration with the same interface as scikit-learn's `cross_validate`.

    References
    ----------
    J. Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS, equation 6.

    Examples
    --------
    >>> import caltest
    >>> from caltest.scorers import NegativeError, neg_ece
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import cross_validate
    >>> from sklearn.naive_bayes import GaussianNB
    >>> features, labels = load_breast_cancer(return_X_y=True)
    >>> scoring = {"ece": neg_ece, "five cells": NegativeError(caltest.ECE(caltest.EqualWidth(5)))}
    >>> scores = cross_validate(GaussianNB(), features, labels, scoring=scoring)
    >>> scores["test_five cells"].round(3)
    array([-0.072, -0.082, -0.044, -0.052, -0.046])
    """

    statistic: Statistic
    lens: LensLike | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "statistic", validate_estimate(self.statistic))  # of a name, the object

    def __call__(self, estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:  # noqa: N803
        """Return minus the error of the estimator's probabilities of features X, given the labels y.

        Parameters
        ----------
        estimator : classifier
            Fitted, with ``predict_proba`` and ``classes_``.
        X : array-like, sparse matrix or data frame
            Features of the observations.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each observation.

        Returns
        -------
        float
            Minus the error; 0 is the score of a perfectly calibrated model, apart from noise.
        """
        if not hasattr(estimator, "predict_proba"):
            refuse(f"`estimator` must have predict_proba, which {type(estimator).__name__} lacks.", TypeError)
        refuse_other_indexes({"y": y, "sample_weight": sample_weight})
        prob: Any = estimator.predict_proba(X)
        classes: Any = np.asarray(estimator.classes_)
        options: dict[str, Any] = {"lens": self.lens, "statistic": self.statistic, "sample_weight": sample_weight}
        return -calibration_error(np.asarray(y), np.asarray(prob), classes=classes, **options)


neg_ece = NegativeError(ECE())
"""Minus the expected calibration error of the whole prediction, in the cells (bins) of a tree."""

neg_ks = NegativeError(KS())
"""Minus the Kolmogorov-Smirnov error (Gupta et al. 2021) of the event of two classes, otherwise of the confidence."""

neg_squared_l2 = NegativeError(SquaredL2())
"""Minus the debiased squared l2 error, whose expectation is 0 for a calibrated model; it may be above 0 by chance."""
