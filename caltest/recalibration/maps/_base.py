"""The base of all recalibration methods: a scikit-learn classifier whose features are predictions."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from caltest.predictions._arrays import Floats, Integers
from caltest.predictions.inputs._arguments import one_blas_thread
from caltest.predictions.inputs._class_columns import show_labels
from caltest.predictions.inputs._frames import refuse_other_indexes
from caltest.predictions.inputs._refusals import refuse
from caltest.predictions.inputs._scale import validate_input
from caltest.predictions.inputs._validation import require, validate_weight
from caltest.recalibration.maps._columns import as_in_fit, read_new, read_training
from caltest.recalibration.maps._logits import Objective, on_scale
from caltest.recalibration.maps._saved_map import read_map, write_map
from caltest.results import CalibrationWarning
from caltest.results._note import warn_user


@dataclass(eq=False, repr=False, kw_only=True)
class Recalibrator(ClassifierMixin, BaseEstimator, ABC):
    r"""Base of the recalibration methods: a map of predictions, fitted to labels, from the simplex to the simplex.

    .. math:: \hat c: \Delta^{K-1} \to \Delta^{K-1}, \qquad \hat c(p) \approx P(Y = \cdot \mid p)

    A method is a scikit-learn classifier whose features are the predictions of a model: ``fit(X, y)`` on observations
    that the model was not trained on, then ``predict_proba(X)`` of new predictions. It works in pipelines and with
    ``clone``; `RecalibratedClassifier` joins it with a classifier.

    Predictions are probabilities of shape (n_samples, n_classes), the probability of the positive class (n_samples,) or
    (n_samples, 1), or with ``input="logits"`` the same in logits (one dimension: log odds). Columns of frames that are
    named after the labels may stand in any order. Where a method takes logarithms, probabilities below
    :math:`2^{-52} \approx 2.2 \cdot 10^{-16}`, those of exactly 0 among them, count as this number.

    No map is returned whose objective (the likelihood, or whatever its method minimises) is worse than that of
    predictions as they are: a search that ends so leaves them unchanged, with a `CalibrationWarning`. This compares
    values of the observations of the fit; on others a map may still be worse than none.

    A subclass is a dataclass whose fields are its parameters, with ``input`` and ``classes`` of this class among them,
    or has an ``__init__`` with all of them. It defines ``_fit``, ``_map``, and where its maps include one that changes
    nothing, ``_leave_unchanged``.

    Attributes
    ----------
    keeps_ranking : bool
        Class attribute: whether the order of the classes of an observation, and with it the accuracy, stays the same.
    classes_ : array of shape (n_classes,)
        The label of each column of `predict_proba`: sorted, as in scikit-learn, whatever the order of ``classes``.
        Labels that cannot be compared, such as numbers and texts, stay in their order.
    columns_ : array of shape (n_classes,)
        Where each of these labels stands in ``classes`` or among the columns of X.
    unchanged_ : bool
        Whether the fitted map leaves predictions as they are, because the method found no better one.
    n_features_in_ : int
        Number of columns of X; 1 for the probability of the positive class.
    feature_names_in_ : array of shape (n_classes,)
        The column of each class, where X was a frame with names of text.

    See Also
    --------
    TemperatureScaling : The method with one parameter, which keeps the accuracy.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import DirichletModel, Temperature
    >>> _, y_true, y_prob = DirichletModel(2, truth=Temperature(2.0)).draw(300, rng=0)
    >>> method = caltest.recalibration.TemperatureScaling().fit(y_prob, y_true)
    >>> isinstance(method, Recalibrator), round(method.temperature_, 1)
    (True, 2.4)
    """

    keeps_ranking: ClassVar[bool] = False
    _scale: ClassVar[str] = "probabilities"
    """What `_fit` and `_map` get: "probabilities", "logits" (logarithms where probabilities were passed), or
    "log-probabilities"."""
    _fitted: ClassVar[tuple[str, ...]] = ("classes_", "columns_", "feature_names_in_", "n_features_in_", "unchanged_")
    """The attributes that `fit` of this class sets, in addition to those of the classes above it."""

    input: str = "probabilities"
    classes: Sequence[Any] | None = None

    @abstractmethod
    def _fit(self, values: NDArray[Any], outcome: Integers, weight: Floats | None) -> Objective | None:
        """Find the map.

        Parameters
        ----------
        values : array of shape (n_samples, n_classes)
            Predictions on the scale of the method; may be the caller's, so that nothing may write to it.
        outcome : array of shape (n_samples,)
            Class indices.
        weight : array of shape (n_samples,) or None
            Positive weights; observations of weight 0 have been dropped.

        Returns
        -------
        Objective or None
            What the method minimises, at the map that was found and at predictions as they are; None if its maps do not
            include the one that changes nothing.

        Notes
        -----
        What is found is kept in attributes that end with an underscore: arrays, numbers, texts, None, and lists and
        dictionaries of such. All of them are saved.
        """

    @abstractmethod
    def _map(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return recalibrated probabilities ``(n_samples, n_classes)`` of predictions on the scale of the method."""

    def _leave_unchanged(self, n_classes: int) -> None:
        """Set what `_fit` finds to the map that changes nothing; for methods whose `_fit` returns an objective.

        Parameters
        ----------
        n_classes : int
            Number of classes.
        """
        raise NotImplementedError

    def _validate(self) -> None:
        """Raise TypeError or ValueError for a parameter of the method."""

    @property
    def chosen(self) -> Recalibrator:
        """The fitted method that makes the predictions: this one, unless it is a choice among others."""
        return self

    def validate_parameters(self) -> None:
        """Raise TypeError or ValueError for a parameter that `fit` would refuse."""
        validate_input(self.input, "input")
        self._validate()

    @classmethod
    def fitted_attributes(cls) -> frozenset[str]:
        """Return the names of the attributes that `fit` may set, the only ones that a file may set."""
        return frozenset(name for kind in cls.__mro__ for name in vars(kind).get("_fitted", ()))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # of features that are no predictions
        return tags

    def refuse_absent_classes(self, outcome: Integers) -> None:
        """Raise ValueError if a class has no label, for methods with parameters of each class.

        Parameters
        ----------
        outcome : array of shape (n_samples,)
            Class indices.
        """
        absent = np.flatnonzero(np.bincount(outcome, minlength=len(self.classes_)) == 0)
        if absent.size:
            labels = show_labels(self.classes_[absent].tolist())
            refuse(
                f"`y` has no label {labels}: {type(self).__name__} has parameters for each class, which its labels "
                "determine. Fit on more observations, or use TemperatureScaling, which has one parameter."
            )

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:  # noqa: N803
        """Fit the map to predictions and labels.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_classes), (n_samples,) or (n_samples, 1)
            Predictions of observations that the model was not trained on.
        y : array-like of shape (n_samples,)
            Labels: those of the named columns or of ``classes``; otherwise the sorted labels are the columns, or class
            indices if some class has no label.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each observation.

        Returns
        -------
        Recalibrator
            The fitted method itself.

        Raises
        ------
        TypeError
            If a parameter has the wrong type.
        ValueError
            If a parameter has a wrong value; if probabilities lie outside [0, 1] or do not sum to 1, or logits are not
            finite; if a label is unknown, lengths or indexes differ, or weights are negative or all 0.
        """
        self.validate_parameters()
        refuse_other_indexes({"X": X, "y": y, "sample_weight": sample_weight})
        method = type(self).__name__
        data = read_training(X, y, self.classes, self.input, method=method)
        with as_in_fit(method):
            weight = validate_weight(sample_weight, len(data.outcome))
        values, outcome = data.values, data.outcome
        if weight is not None and not weight.all():
            used = weight > 0
            values, outcome, weight = values[used], outcome[used], weight[used]
        self.classes_, self.columns_ = data.classes, data.columns
        self.n_features_in_ = data.n_columns
        if data.names is not None:
            self.feature_names_in_ = np.array(data.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.unchanged_ = False
        with one_blas_thread():
            objective = self._fit(on_scale(values, self.input, self._scale), outcome, weight)
        if objective is not None and objective.is_worse:
            self._leave_unchanged(values.shape[1])
            self.unchanged_ = True
            warn_user(
                f"{type(self).__name__} found no map with a smaller objective than predictions as they are "
                f"({objective.found:.4g} and {objective.unchanged:.4g}), so that it leaves them unchanged."
            )
        return self

    def predict_proba(self, X: ArrayLike) -> NDArray[Any]:  # noqa: N803
        """Return recalibrated probabilities.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_classes), (n_samples,) or (n_samples, 1)
            Predictions like those of `fit`.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Probabilities; columns are in the order of ``classes_``.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If `fit` was not called before.
        ValueError
            If predictions are refused, or have another number of columns than in `fit`.
        """
        return self._map(self._read(X))

    def _read(self, X: ArrayLike) -> NDArray[Any]:  # noqa: N803
        """Return new predictions on the scale of the method; refuse those that differ from the ones of `fit`."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        values, found = read_new(X, self.classes_, self.columns_, names, self.input, method=type(self).__name__)
        if found != self.n_features_in_:
            refuse(
                f"X has {found} features, but {type(self).__name__} is expecting {self.n_features_in_} features as "
                "input, the columns of `fit`."
            )
        return on_scale(values, self.input, self._scale)

    def predict(self, X: ArrayLike) -> NDArray[Any]:  # noqa: N803
        """Return the label with the largest recalibrated probability.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_classes), (n_samples,) or (n_samples, 1)
            Predictions like those of `fit`.

        Returns
        -------
        array of shape (n_samples,)
            Labels; of equal probabilities that of the first column.
        """
        prob = self.predict_proba(X)
        return np.asarray(self.classes_[prob.argmax(axis=1)])

    def save(self, path: str | Path) -> None:
        """Write the fitted map to a JSON file, which `caltest.recalibration.load_recalibrator` reads.

        The file has the name of the method, its parameters and what was fitted; no pickle, so that reading it runs no
        code. Numbers keep all their digits.

        Parameters
        ----------
        path : str or pathlib.Path
            Where to write; a file that exists is replaced.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If `fit` was not called before.
        TypeError
            If a parameter or a label cannot be written, such as a user's own function.
        """
        check_is_fitted(self)
        write_map(self, path)


def load_recalibrator(path: str | Path) -> Recalibrator:
    """Read a fitted recalibration map from a JSON file.

    Parameters
    ----------
    path : str or pathlib.Path
        A file that ``save`` of a recalibration method wrote.

    Returns
    -------
    Recalibrator
        The fitted method; its predictions are those of the one that was saved.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is no recalibration map, has another version of the format, was changed after it was written (its
        checksum differs), or holds parameters or attributes that its method cannot have.

    See Also
    --------
    Recalibrator.save : Writes such a file.

    Examples
    --------
    >>> import os, tempfile
    >>> import caltest
    >>> from caltest.recalibration import TemperatureScaling, load_recalibrator
    >>> y_true, y_prob = caltest.datasets.load_cifar10_vgg16()
    >>> fitted = TemperatureScaling().fit(y_prob[:5000], y_true[:5000])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "temperature.json")
    ...     fitted.save(path)
    ...     again = load_recalibrator(path)
    >>> again.temperature_ == fitted.temperature_
    True
    """
    found: Recalibrator = read_map(path)
    return found


def validate_methods(methods: Any, argument: str) -> None:
    """Refuse what is no recalibration method on probabilities."""
    for method in methods:
        must = f"`{argument}` must hold methods such as caltest.recalibration.TemperatureScaling()"
        require(isinstance(method, Recalibrator), must, method, right_type=False)
        if method.input != "probabilities":
            refuse(f"`{argument}` must hold methods on probabilities, got {method!r}: leave out `input`.")


def names_of_methods(methods: Sequence[Recalibrator]) -> list[str]:
    """Return the methods as the code that makes them, in one line; equal ones are numbered."""
    shown = [" ".join(repr(method).split()) for method in methods]
    return [name if shown.count(name) == 1 else f"{name} {shown[: i + 1].count(name)}" for i, name in enumerate(shown)]


def on_indices(method: Recalibrator, n_classes: int) -> Recalibrator:
    """Return a method, not yet fitted, whose labels are class indices."""
    return clone(method).set_params(classes=list(range(n_classes)))


def fit_quietly(
    method: Recalibrator, values: NDArray[Any], outcome: Integers, weight: Floats | None
) -> tuple[Recalibrator, list[str]]:
    """Return a clone of a method that is fitted to class indices, and its cautions."""
    with warnings.catch_warnings(record=True) as cautions:
        warnings.simplefilter("always", CalibrationWarning)
        fitted = on_indices(method, values.shape[1]).fit(values, outcome, weight)
    found = []
    for caution in cautions:
        if issubclass(caution.category, CalibrationWarning):
            found.append(str(caution.message))
        else:
            warnings.warn_explicit(caution.message, caution.category, caution.filename, caution.lineno)
    return fitted, found
