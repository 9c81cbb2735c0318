"""Predictions of real models that are bundled with the package."""

from __future__ import annotations

from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Predictions(NamedTuple):
    """Labels and predicted probabilities of held-out observations.

    Attributes
    ----------
    y_true : array of shape (n_samples,)
        Class indices.
    y_prob : array of shape (n_samples, n_classes)
        Predicted probabilities.

    See Also
    --------
    caltest.datasets.load_cifar10_vgg16 : The function that returns it.

    Examples
    --------
    >>> y_true, y_prob = load_cifar10_vgg16()
    """

    y_true: NDArray[np.int64]
    y_prob: NDArray[np.float32]


class ModelPredictions(NamedTuple):
    """Labels and predicted probabilities of several models for the same held-out observations.

    Attributes
    ----------
    y_true : array of shape (n_samples,)
        Class indices.
    y_prob : dict of str to array of shape (n_samples, n_classes)
        Predicted probabilities of each model, by name.

    See Also
    --------
    caltest.datasets.load_digits_predictions : The function that returns it.

    Examples
    --------
    >>> y_true, models = load_digits_predictions()
    """

    y_true: NDArray[np.int64]
    y_prob: dict[str, NDArray[np.float64]]


def load_cifar10_vgg16() -> Predictions:
    """Load predictions of a VGG-16 network for the 10,000 test images of CIFAR-10 (ten classes, float32).

    They are from the verified_calibration project of Kumar, Liang and Ma (2019), MIT licence; see
    ``cifar10_vgg16.LICENSE.txt`` beside the data.

    Returns
    -------
    Predictions
        Unpacks as ``y_true, y_prob``.

    See Also
    --------
    load_digits_predictions : Predictions of four models, small.

    References
    ----------
    A. Kumar, P. Liang and T. Ma (2019), Verified uncertainty calibration, NeurIPS.

    Examples
    --------
    >>> y_true, y_prob = load_cifar10_vgg16()
    >>> y_prob.shape, round(float((y_prob.argmax(axis=1) == y_true).mean()), 4)
    ((10000, 10), 0.9359)
    """
    with np.load(str(files(__package__) / "cifar10_vgg16.npz")) as data:
        prob = _decoded(data["probs"], data["probs_offsets"])
        return Predictions((prob.argmax(axis=1) + data["labels_after_top"]) % prob.shape[1], prob)


def load_digits_predictions() -> ModelPredictions:
    """Load predictions of four scikit-learn classifiers for 899 held-out images of handwritten digits (ten classes).

    They are made by ``python benchmarks/digits.py`` of the repository: the models are trained on a random half of
    scikit-learn's digits and predict the other half. Logistic regression and the random forest are under-confident,
    naive Bayes is over-confident and gives some labels probability 0, and calibration of the neural network is not
    rejected. Probabilities have seven digits, and the largest of each observation is what the others leave to 1; those
    of the random forest are as they were. See ``digits.LICENSE.txt`` beside the data.

    Returns
    -------
    ModelPredictions
        Unpacks as ``y_true, y_prob``; ``y_prob`` maps "logistic_regression", "naive_bayes", "random_forest" and
        "neural_network" to float64 arrays.

    See Also
    --------
    load_cifar10_vgg16 : Predictions of one neural network for 10,000 images.

    Notes
    -----
    Predictions pooled over cross-validation folds, one for each of the 1,797 images, would give invalid p-values. The
    model of a fold is trained on the labels of the other folds, so that the observations are not independent given the
    predictions, and the predictions were made with the labels that test them. For example, a model that always predicts
    the prevalence in its training data is rejected at the level 0.05 in 13 % of data sets with 5 folds. Tests of
    cross-validated predictions take ``folds``, which tests each fold separately.

    Examples
    --------
    >>> y_true, y_prob = load_digits_predictions()
    >>> for name, prob in y_prob.items():
    ...     print(name, prob.shape, round(float((prob.argmax(axis=1) == y_true).mean()), 2))
    logistic_regression (899, 10) 0.96
    naive_bayes (899, 10) 0.83
    random_forest (899, 10) 0.98
    neural_network (899, 10) 0.97
    """
    with np.load(str(files(__package__) / "digits.npz")) as data:
        names = [name for name in data.files if not name.startswith(("labels", "sklearn")) and "_offsets" not in name]
        models = {name: _decoded(data[name], data.get(f"{name}_offsets")) for name in names}
        return ModelPredictions(data["labels"].astype(np.int64), models)


def _decoded(stored: NDArray[Any], offsets: NDArray[np.int8] | None) -> NDArray[Any]:
    """Return probabilities from what makes their file small.

    Votes of 200 trees are counts. Otherwise the first bytes of all probabilities may be stored together, then the
    second ones, and so on, ``(n_bytes, n_samples, n_classes)``; the largest probability of each observation is then
    NaN. It is 1 minus the others, from which it differs by ``offsets`` units of its last digit.
    """
    if stored.dtype == np.uint8 and stored.ndim == 2:
        return stored / 200
    if offsets is None:
        return stored
    prob = np.ascontiguousarray(np.moveaxis(stored, 0, -1)).view(f"<f{len(stored)}")[:, :, 0].astype(f"f{len(stored)}")
    rows, tops = np.nonzero(np.isnan(prob))
    others = np.nancumsum(prob, axis=1, dtype=float)[:, -1]  # added one by one: rounded in the same way everywhere
    nearly = (1 - others).astype(prob.dtype)
    prob[rows, tops] = (nearly.view(f"i{len(stored)}") + offsets).view(prob.dtype)
    return prob
