"""Real predictions that ship with the package."""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Predictions(NamedTuple):
    """Labels ``y_true (n_samples,)`` and predicted probabilities ``y_prob (n_samples, n_classes)`` of held-out rows."""

    y_true: NDArray[np.int64]
    y_prob: NDArray[np.float32]


class ModelPredictions(NamedTuple):
    """Labels ``y_true (n_samples,)`` and, for each model, ``y_prob[name] (n_samples, n_classes)`` of held-out rows."""

    y_true: NDArray[np.int64]
    y_prob: dict[str, NDArray[np.float64]]


def load_cifar10_vgg16() -> Predictions:
    """Return predictions of a VGG-16 network on the 10,000 test images of CIFAR-10, ten classes, float32.

    From the verified_calibration project of Kumar, Liang and Ma (2019), MIT licence; see
    ``cifar10_vgg16.LICENSE.txt`` beside the data.

    Returns
    -------
    Predictions
        Unpacks as ``y_true, y_prob``.

    Examples
    --------
    >>> y_true, y_prob = load_cifar10_vgg16()
    >>> y_prob.shape, round(float((y_prob.argmax(axis=1) == y_true).mean()), 4)
    ((10000, 10), 0.9359)
    """
    with np.load(str(files(__package__) / "cifar10_vgg16.npz")) as data:
        return Predictions(data["labels"], data["probs"])


def load_digits_predictions() -> ModelPredictions:
    """Return predictions of four scikit-learn classifiers for 899 held-out images of handwritten digits, ten classes.

    Made by ``python -m caltest.datasets._make_digits``: a random half of scikit-learn's digits trains, the other is
    predicted. The models behave differently: logistic regression and the random forest are under-confident, naive
    Bayes is over-confident and gives some labels probability 0, and nothing speaks against the neural network. See
    ``digits.LICENSE.txt`` beside the data.

    Returns
    -------
    ModelPredictions
        Unpacks as ``y_true, y_prob``; ``y_prob`` maps "logistic_regression", "naive_bayes", "random_forest" and
        "neural_network" to float64 arrays.

    Notes
    -----
    Predictions pooled over cross-validation folds, one for each of the 1,797 images, would not do. Every fold's model
    has seen the labels of the other folds, so that neither are the rows independent given the predictions nor were
    the predictions made without the labels that test them, and the p-value is not valid: a model that always predicts
    its training prevalence is rejected at the level 0.05 in 13 % of the cases with 5 folds.

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
        names = [name for name in data.files if name not in {"labels", "sklearn_version"}]
        return ModelPredictions(data["labels"].astype(np.int64), {name: data[name] for name in names})
