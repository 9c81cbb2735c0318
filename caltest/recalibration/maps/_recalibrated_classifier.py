"""A classifier and a recalibration method in one: cross-validated predictions fit the map."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import check_cv, cross_val_predict
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, column_or_1d

from caltest.predictions.inputs._frames import refuse_other_indexes
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._validation import require
from caltest.recalibration.maps._base import Recalibrator
from caltest.recalibration.maps._temperature import TemperatureScaling

_OF_FEATURES = ("n_features_in_", "feature_names_in_")


class RecalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Classifier whose predictions are recalibrated by a map that is fitted to its cross-validated predictions.

    Each observation is predicted by a classifier that was fitted without its fold; the recalibration method is fitted
    to these predictions of all observations, and the classifier then to all observations. Different from scikit-learn's
    ``CalibratedClassifierCV(ensemble=False)``, every method of this room can be used. The map is that of classifiers
    trained on less data, (cv - 1) / cv of them, which are slightly less sharp.

    For a classifier that is fitted already, wrap it into scikit-learn's ``FrozenEstimator``, and fit on observations
    that it was not trained on.

    Parameters
    ----------
    estimator : classifier
        With ``predict_proba``; or with ``decision_function``, whose values are the logits, if the recalibration method
        has ``input="logits"``.
    recalibrator : Recalibrator, optional
        The method; ``TemperatureScaling()`` by default.
    cv : int, splitter or iterable, optional
        Folds as in scikit-learn; each observation must be predicted exactly once.

    Attributes
    ----------
    estimator_ : classifier
        Fitted to all observations.
    recalibrator_ : Recalibrator
        Fitted to the cross-validated predictions; can be saved.
    classes_ : array of shape (n_classes,)
        The label of each column of ``predict_proba``.

    Raises
    ------
    TypeError
        When fitted, if ``recalibrator`` is no recalibration method, or ``estimator`` lacks what it needs.
    ValueError
        When fitted, if there is only one class, or as in `Recalibrator.fit`.

    See Also
    --------
    caltest.cross_val_calibration : Tests whether cross-validated predictions are calibrated.

    Examples
    --------
    >>> import caltest
    >>> from caltest.recalibration import RecalibratedClassifier
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import train_test_split
    >>> from sklearn.naive_bayes import GaussianNB
    >>> features, labels = load_breast_cancer(return_X_y=True)
    >>> train, test, y_train, y_test = train_test_split(features, labels, random_state=0)
    >>> plain, repaired = GaussianNB().fit(train, y_train), RecalibratedClassifier(GaussianNB()).fit(train, y_train)
    >>> round(repaired.recalibrator_.temperature_, 2)
    6.93
    >>> [round(caltest.estimation.log_score(y_test, model.predict_proba(test)), 3) for model in (plain, repaired)]
    [0.407, 0.128]
    """

    def __init__(self, estimator: Any, recalibrator: Recalibrator | None = None, *, cv: Any = 5) -> None:
        self.estimator = estimator
        self.recalibrator = recalibrator
        self.cv = cv

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:  # noqa: N803
        """Fit the recalibration method to cross-validated predictions, and the classifier to all observations.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Features of the observations.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each observation, for the classifier and the map.

        Returns
        -------
        RecalibratedClassifier
            Itself.
        """
        recalibrator = TemperatureScaling() if self.recalibrator is None else clone(self.recalibrator)
        must = "`recalibrator` must be a method such as TemperatureScaling()"
        require(isinstance(recalibrator, Recalibrator), must, self.recalibrator, right_type=False)
        method = _output(recalibrator)
        if not hasattr(self.estimator, method):
            other = "" if method == "predict_proba" else ', which input="logits" of the recalibration method asks for'
            refuse(f"`estimator` must have {method}{other}; {type(self.estimator).__name__} lacks it.", TypeError)
        refuse_other_indexes({"y": y, "sample_weight": sample_weight})
        y = column_or_1d(y, warn=True)
        options = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.estimator_ = clone(self.estimator).fit(X, y, **options)
        self.classes_: NDArray[Any] = np.asarray(self.estimator_.classes_)
        if len(self.classes_) < 2:
            refuse(f"`y` must have at least two classes, got one class: {self.classes_.tolist()[0]!r}.")
        for name in _OF_FEATURES:
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        folds = check_cv(self.cv, y, classifier=True)
        held_out = cross_val_predict(self.estimator, X, y, cv=folds, method=method, params=options)
        self.recalibrator_ = recalibrator.set_params(classes=self.classes_.tolist()).fit(held_out, y, sample_weight)
        return self

    def predict_proba(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Return recalibrated probabilities.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Features of the observations.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Probabilities; columns are in the order of ``classes_``.
        """
        check_is_fitted(self)
        return self.recalibrator_.predict_proba(getattr(self.estimator_, _output(self.recalibrator_))(X))

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Return the label with the largest recalibrated probability.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Features of the observations.

        Returns
        -------
        array of shape (n_samples,)
            Labels.
        """
        prob = self.predict_proba(X)
        return np.asarray(self.classes_[prob.argmax(axis=1)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags


def _output(recalibrator: Recalibrator) -> str:
    """Return the method of a classifier that returns what a recalibration method takes."""
    return "predict_proba" if recalibrator.input == "probabilities" else "decision_function"
